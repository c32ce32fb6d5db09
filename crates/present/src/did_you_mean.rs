//! Names that were mistyped.

/// `; did you mean X?` if one of the `known` names is near to `typed`. The case may differ, and
/// about one letter in four may be wrong. Nothing otherwise.
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let typed = typed.to_lowercase();
    let apart = |name: &&str| strsim::damerau_levenshtein(&typed, &name.to_lowercase());
    let allowed = 1 + typed.chars().count() / 4;
    let nearest = known.into_iter().min_by_key(apart).filter(|name| apart(name) <= allowed);
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        let known = ["host", "ultrasparc-t2", "opteron-24"];
        let of = |typed| did_you_mean(typed, known);
        for typed in ["ULTRASPARC-T2", "ultrasparc-t22", "ultrasparct2", "ultrasparc_t1"] {
            assert_eq!(of(typed), "; did you mean ultrasparc-t2?", "{typed}");
        }
        assert_eq!(of("hots"), "; did you mean host?");
        for typed in ["pdp-11", "", "x", "sparc"] {
            assert_eq!(of(typed), "", "{typed}");
        }
        assert_eq!(did_you_mean("l2CACHE", ["Dcache", "L2cache"]), "; did you mean L2cache?");
        assert_eq!(did_you_mean("anything", []), "");
    }
}
