//! The parameter that a running program uses on its own, before it is given another.

/// The program's own parameter, as far as it is known before the first probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnParameter {
    /// The parameter that the user gave; `None`: none.
    pub known: Option<u32>,
    /// A guess, for a program whose threads show nothing.
    pub guess: u32,
}

/// Infers the parameter of a program that has `threads` threads. `settled` has the parameters it
/// was given since, with the threads each made. All must have made the same surplus of threads over
/// their number. The parameter is sure (`true`) if several numbers show it.
pub(super) fn of(threads: u32, settled: &[(u32, u32)]) -> Option<(u32, bool)> {
    let more = |&(n, made): &(u32, u32)| i64::from(made) - i64::from(n);
    let first = settled.first()?;
    let sure = settled.iter().any(|one| one.0 != first.0);
    let alike = settled.iter().all(|one| more(one) == more(first));
    let own = u32::try_from(i64::from(threads) - more(first)).ok();
    own.filter(|&n| alike && n > 0).map(|n| (n, sure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_show_which_parameter_a_program_began_with_or_nothing_does() {
        let workers = [(2, 3), (4, 5), (2, 3)];
        assert_eq!((of(5, &workers), of(9, &workers)), (Some((4, true)), Some((8, true))));
        assert_eq!(of(1, &workers), None, "no parameter makes one");
        assert_eq!(of(9, &[(2, 9), (4, 9)]), None, "a pool that keeps the others asleep");
        assert_eq!(of(11, &[(1, 5), (2, 9)]), None, "several threads for each");
        assert_eq!(of(5, &[(2, 3), (4, 5), (8, 12)]), None, "one that made as many is chance");
        assert_eq!(of(7, &[]), None);
        assert_eq!(of(3, &[(2, 3)]), Some((2, false)), "one parameter is none to compare");
    }
}
