//! The names of a selection and the rates of its programs, as text.

use crate::figures::Scale;
use pinwise_measure::Unit;

/// What runs in a selection: `intmul:2 + hash1_Mem`. `names` are those of all ready instances.
pub fn selection_name(names: &[String], instances: impl IntoIterator<Item = usize>) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in instances.into_iter().filter_map(|instance| names.get(instance)) {
        match counted.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let named = |(name, count): (&str, usize)| {
        if count > 1 { format!("{name}:{count}") } else { name.to_owned() }
    };
    counted.into_iter().map(named).collect::<Vec<_>>().join(" + ")
}

/// What a program reaches alone, with its unit.
pub fn alone_rate(rate: f64) -> String {
    Scale::new(&Unit::rate("packets/s"), rate).show(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_one_program_are_counted_together() {
        let names = ["a", "b", "a", "a"].map(str::to_owned);
        assert_eq!(selection_name(&names, [0, 1, 3]), "a:2 + b");
        assert_eq!(selection_name(&names, [1, 9]), "b", "an instance that there is none of");
    }
}
