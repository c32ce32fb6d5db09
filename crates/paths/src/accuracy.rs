//! How good an estimated profile is, compared with the exact one.

use std::collections::{BTreeMap, BTreeSet};

/// A path is hot if it has at least this share of all path executions. Source: Ball, Mataga and
/// Sagiv, "Edge Profiling versus Path Profiling", POPL 1998.
pub const HOT: f64 = 0.001_25;

/// Wall's weight matching: how much of the flow of all hot paths the estimate finds. It finds a hot
/// path if the path is also hot in the estimate. Source: Wall, "Predicting Program Behavior Using
/// Real or Estimated Profiles", PLDI 1991.
///
/// The *flow* of a path is its count as a share of all counts. There are as many hot paths in the
/// estimate as in the exact profile. Of paths that are estimated alike, the smaller key comes
/// first. None if no path is hot.
pub fn weight_matching<K: Ord + Clone>(
    exact: &BTreeMap<K, f64>,
    estimated: &BTreeMap<K, f64>,
    threshold: f64,
) -> Option<f64> {
    let total: f64 = exact.values().sum();
    let hot: BTreeMap<&K, f64> = exact
        .iter()
        .map(|(path, count)| (path, count / total))
        .filter(|(_, flow)| *flow >= threshold)
        .collect();
    let mut ranked: Vec<(&K, f64)> =
        estimated.iter().map(|(path, count)| (path, *count)).filter(|it| it.1 > 0.0).collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    let chosen: BTreeSet<&K> = ranked.iter().take(hot.len()).map(|(path, _)| *path).collect();
    let all: f64 = hot.values().sum();
    let found: f64 = hot.iter().filter(|(path, _)| chosen.contains(*path)).map(|it| it.1).sum();
    (all > 0.0).then(|| found / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(counts: &[(u32, f64)]) -> BTreeMap<u32, f64> {
        counts.iter().copied().collect()
    }

    #[test]
    fn the_flow_of_the_hot_paths_that_were_found_counts() {
        let exact = profile(&[(1, 600.0), (2, 300.0), (3, 99.0), (4, 1.0)]);
        // Path 4 is not hot: three places. The estimate has 4 before 3.
        let estimated = profile(&[(1, 5.0), (2, 4.0), (4, 2.0), (3, 1.0)]);
        let accuracy = weight_matching(&exact, &estimated, HOT).unwrap();
        assert!((accuracy - 900.0 / 999.0).abs() < 1e-12);
        assert_eq!(weight_matching(&exact, &exact, HOT), Some(1.0));
        assert_eq!(weight_matching(&exact, &profile(&[]), HOT), Some(0.0));
        assert_eq!(weight_matching(&profile(&[]), &exact, HOT), None);
    }
}
