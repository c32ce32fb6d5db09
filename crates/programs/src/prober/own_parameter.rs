//! Infers the n that a running program had before pinwise changed it: given, shown by its threads,
//! or guessed.

/// The program's own parameter, as far as it is known before the first probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnParameter {
    /// The parameter that the user gave; `None`: none.
    pub known: Option<u32>,
    /// A guess, for a program whose threads show nothing.
    pub guess: u32,
    /// No guess is above it. A program is not given a large number that nobody asked for.
    pub most: u32,
}

impl OwnParameter {
    /// The parameter. `inferred`: what the threads show, and whether that is sure.
    pub(super) fn decide(self, inferred: Option<(u32, bool)>) -> u32 {
        match (self.known, inferred) {
            (Some(known), _) => known,
            (None, Some((inferred, true))) => inferred,
            (None, Some((guess, false))) => guess.min(self.most),
            (None, None) => self.guess.min(self.most),
        }
    }
}

/// Infers the parameter of a program that has `threads` threads. `settled` has the parameters it
/// was given since, in their order, with the threads each made. The parameter is sure (`true`) once
/// several numbers have made the same surplus of threads. It stays so: threads that come later,
/// such as a timer's, say nothing about the beginning.
pub(super) fn infer(threads: u32, settled: &[(u32, u32)]) -> Option<(u32, bool)> {
    let first_sure =
        (1..=settled.len()).find_map(|many| of_all(threads, &settled[..many]).filter(|own| own.1));
    first_sure.or_else(|| of_all(threads, settled))
}

/// What all of `settled` show together: nothing unless each made the same surplus.
fn of_all(threads: u32, settled: &[(u32, u32)]) -> Option<(u32, bool)> {
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
        let both = (infer(5, &workers), infer(9, &workers));
        assert_eq!(both, (Some((4, true)), Some((8, true))));
        assert_eq!(infer(1, &workers), None, "no parameter makes one");
        assert_eq!(infer(9, &[(2, 9), (4, 9)]), None, "a pool that keeps the others asleep");
        assert_eq!(infer(11, &[(1, 5), (2, 9)]), None, "several threads for each");
        assert_eq!(infer(5, &[(2, 3), (8, 12), (4, 5)]), None, "one that made as many is chance");
        assert_eq!(infer(7, &[]), None);
        assert_eq!(infer(3, &[(2, 3)]), Some((2, false)), "one parameter is none to compare");
    }

    #[test]
    fn an_odd_count_does_not_unsettle_what_was_sure() {
        let settled = [(2, 3), (4, 5), (8, 12), (2, 3)];
        assert_eq!(infer(5, &settled), Some((4, true)));
    }

    #[test]
    fn a_guess_is_bounded_and_what_is_known_or_sure_is_not() {
        let own = OwnParameter { known: None, guess: 64, most: 8 };
        assert_eq!(own.decide(None), 8);
        assert_eq!(own.decide(Some((20, false))), 8);
        assert_eq!(own.decide(Some((20, true))), 20);
        assert_eq!(OwnParameter { known: Some(30), ..own }.decide(None), 30);
    }
}
