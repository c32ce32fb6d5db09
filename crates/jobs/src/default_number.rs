//! Finds the default n of a last comparison: the one that a program uses without pinwise. Decides
//! which numbers count as the default, and which other number is compared with it.

use pinwise_placement::LastComparisonNote;
use pinwise_programs::LinuxProber;
use pinwise_threads::ThreadsNote;

/// The number that a program uses on its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DefaultNumber {
    /// `None`: unknown, its variable is unset.
    pub(crate) n: Option<u32>,
    /// How that is known, if the user did not give it.
    pub(crate) known: Option<LastComparisonNote>,
}

impl DefaultNumber {
    /// What the user gave.
    pub(crate) fn given(n: u32) -> Self {
        Self { n: Some(n), known: None }
    }

    /// Assumed to be `cpus`, the number of CPUs that the program may use.
    pub(crate) fn assumed(cpus: u32) -> Self {
        let known = LastComparisonNote::DefaultAssumed { n: cpus, threads: None };
        Self { n: Some(cpus), known: Some(known) }
    }

    /// Inferred from the threads that the program began with. Otherwise assumed to be `cpus`, the
    /// number of CPUs that the program may use. `goes_on`: the program goes on running while its
    /// number changes.
    pub(crate) fn of(prober: &LinuxProber, goes_on: bool, cpus: u32) -> Self {
        let threads = prober.begun_with().filter(|_| goes_on);
        let (n, known) = match (threads, prober.began_with_parameter()) {
            (Some(threads), Some((n, true))) => {
                (n, LastComparisonNote::DefaultInferred { n, threads })
            }
            _ => (cpus, LastComparisonNote::DefaultAssumed { n: cpus, threads }),
        };
        Self { n: Some(n), known: Some(known) }
    }

    /// Whether it is a guess.
    pub(crate) fn is_guess(&self) -> bool {
        self.known.as_ref().is_some_and(LastComparisonNote::is_guess)
    }

    /// The number, unless that is a guess.
    pub(crate) fn sure(&self) -> Option<u32> {
        self.n.filter(|_| !self.is_guess())
    }

    /// Whether the program makes the same threads with `n`. `notes`: those of the search.
    pub(crate) fn counts_as(&self, n: u32, notes: &[ThreadsNote]) -> bool {
        let alike = alike(notes);
        self.n.is_some_and(|own| own == n || [own, n].iter().all(|n| alike.contains(n)))
    }

    /// The number to compare with it. The first of these that there is:
    ///
    /// 1. The one that was found, unless that counts as the default.
    /// 2. The fastest of the probed `rates` that does not count as the default.
    /// 3. The one that was found, or the fastest other one. It makes the same threads.
    /// 4. The one of `numbers` that was not probed and is nearest to half of the default.
    ///
    /// `None`: there is no other number.
    pub(crate) fn rival(
        &self,
        found: u32,
        rates: &[(u32, f64)],
        numbers: &[u32],
        notes: &[ThreadsNote],
    ) -> Option<u32> {
        let fastest = |is_own: &dyn Fn(u32) -> bool| {
            let others = rates.iter().copied().filter(|&(n, _)| !is_own(n));
            let others: Vec<(u32, f64)> = others.collect();
            if is_own(found) { fastest(&others) } else { Some(found) }
        };
        let half = self.n.unwrap_or(found) / 2;
        let unprobed = numbers.iter().copied().filter(|&n| self.n != Some(n));
        fastest(&|n| self.counts_as(n, notes))
            .or_else(|| fastest(&|n| self.n == Some(n)))
            .or_else(|| unprobed.min_by_key(|n| n.abs_diff(half)))
    }
}

/// The numbers with which the program makes the same threads.
fn alike(notes: &[ThreadsNote]) -> &[u32] {
    let capped = notes.iter().find_map(|note| match note {
        ThreadsNote::Capped { numbers, pooled: true, .. } => Some(numbers.as_slice()),
        _ => None,
    });
    capped.unwrap_or_default()
}

/// The number with the highest mean.
fn fastest(rates: &[(u32, f64)]) -> Option<u32> {
    let mean = |n: u32| {
        let own = rates.iter().filter(|rate| rate.0 == n).map(|rate| rate.1);
        own.clone().sum::<f64>() / own.count() as f64
    };
    rates.iter().map(|rate| rate.0).max_by(|&one, &other| mean(one).total_cmp(&mean(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capped(pooled: bool) -> [ThreadsNote; 2] {
        let (threads, numbers) = (3, vec![2, 4]);
        let capped = ThreadsNote::Capped { threads, numbers, pooled, follows: true };
        [ThreadsNote::Simulated, capped]
    }

    #[test]
    fn numbers_that_count_as_one_are_alike() {
        let own = DefaultNumber::given(4);
        assert!(own.counts_as(2, &capped(true)) && own.counts_as(4, &[]));
        assert!(!own.counts_as(2, &capped(false)) && !own.counts_as(3, &capped(true)));
        assert!(!DefaultNumber { n: None, known: None }.counts_as(4, &[]));
    }

    #[test]
    fn the_rival_of_the_default_is_what_was_found_or_else_the_fastest_other_on_average() {
        let rates = [(2, 5.0), (4, 9.0), (4, 1.0), (3, 5.5), (1, 2.0)];
        let rival = |own, found, notes: &[ThreadsNote]| {
            DefaultNumber::given(own).rival(found, &rates, &[], notes)
        };
        assert_eq!([rival(2, 4, &[]), rival(2, 2, &[])], [Some(4), Some(3)]);
        assert_eq!(rival(3, 3, &[]), Some(4), "the mean of 4 is 5");
        assert_eq!(rival(4, 2, &capped(true)), Some(3), "2 counts as 4");
        let rates = [(2, 5.0), (4, 6.0)];
        let alike = |own, found| DefaultNumber::given(own).rival(found, &rates, &[], &capped(true));
        assert_eq!([alike(4, 2), alike(4, 4)], [Some(2), Some(2)], "there are no others");
        let alone =
            |numbers: &[u32]| DefaultNumber::given(8).rival(8, &[(8, 5.0), (8, 6.0)], numbers, &[]);
        assert_eq!(alone(&[1, 3, 5, 8, 16]), Some(3), "the nearest to half");
        assert_eq!([alone(&[8, 16]), alone(&[8]), alone(&[])], [Some(16), None, None]);
    }
}
