//! [`ThreadCeiling`]: the number from which a program makes no more threads.
//!
//! Its input has no work for more, or it allows no more. `xz -T4` on an input of two blocks makes
//! as many threads as `xz -T2`. Differences between probes of the two are noise, and the answer is
//! at most 2.

use std::collections::BTreeMap;

/// The most threads that a program makes, which several numbers made alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCeiling {
    /// The number of threads, the first one included.
    pub threads: u32,
    /// The numbers that made them, two at least, ascending: no greater number was probed.
    pub numbers: Vec<u32>,
    /// Whether a smaller number made fewer threads. Otherwise the threads may not follow the number
    /// at all.
    pub follows: bool,
}

impl ThreadCeiling {
    /// From probes as pairs: the number of threads that was asked for, and the threads that were
    /// seen. `None` in two cases. The greatest number made more threads than all others, or fewer
    /// than another one did. Or the least of the numbers that made the most threads promises fewer
    /// threads, a waiting first one included. Then there is no lack of work. It is a pool of fixed
    /// size whose threads get work by the number.
    pub fn of(probes: impl IntoIterator<Item = (u32, u32)>) -> Option<Self> {
        // A thread that lives shortly is not seen in every probe.
        let mut made: BTreeMap<u32, u32> = BTreeMap::new();
        for (number, threads) in probes {
            let most = made.entry(number).or_default();
            *most = threads.max(*most);
        }
        let threads = *made.values().max()?;
        let (first, _) = made.iter().find(|(_, most)| **most == threads)?;
        let numbers: Vec<u32> = made.range(first..).map(|(number, _)| *number).collect();
        let alike = made.range(first..).all(|(_, most)| *most == threads);
        let follows = numbers.len() < made.len();
        (alike && numbers.len() > 1 && threads <= first + 1).then_some(Self {
            threads,
            numbers,
            follows,
        })
    }

    /// The fewest of the numbers that were seen to make all the threads.
    pub fn fewest(&self) -> u32 {
        self.numbers[0]
    }

    /// Whether the program was seen to make no more with `number` either.
    pub fn reaches(&self, number: u32) -> bool {
        self.numbers.last().is_some_and(|&last| last >= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_make_the_most_threads_alike_are_a_cap() {
        let cap = |threads, numbers: &[u32], follows| {
            Some(ThreadCeiling { threads, numbers: numbers.to_vec(), follows })
        };
        // xz with an input of one block, of three, and with one that is large enough.
        assert_eq!(ThreadCeiling::of([(2, 2), (4, 2), (1, 1), (4, 2)]), cap(2, &[2, 4], true));
        assert_eq!(
            ThreadCeiling::of([(8, 4), (72, 4), (1, 1), (4, 4), (3, 4), (2, 3)]),
            cap(4, &[3, 4, 8, 72], true)
        );
        assert_eq!(ThreadCeiling::of([(2, 3), (4, 5), (1, 1)]), None);
        assert_eq!(ThreadCeiling::of([(1, 2), (2, 2)]), cap(2, &[1, 2], false));
        assert_eq!(ThreadCeiling::of([(2, 2), (2, 2)]), None, "a single number");
        assert_eq!(ThreadCeiling::of([]), None);
    }

    #[test]
    fn a_pool_of_a_fixed_size_is_none() {
        // Eight workers with every number but 1; only the number asked for have work.
        assert_eq!(ThreadCeiling::of([(1, 1), (3, 9), (5, 9), (7, 9)]), None);
        assert_eq!(ThreadCeiling::of([(1, 1), (3, 9), (72, 9), (8, 9)]), None);
    }

    #[test]
    fn a_greater_number_with_more_or_fewer_threads_is_none() {
        assert_eq!(ThreadCeiling::of([(3, 4), (4, 4), (6, 5)]), None);
        assert_eq!(ThreadCeiling::of([(3, 4), (4, 4), (6, 3)]), None, "threads come and go");
        // One of two probes did not see a thread that lived shortly.
        assert_eq!(
            ThreadCeiling::of([(3, 4), (6, 3), (6, 4)]).map(|cap| cap.numbers),
            Some(vec![3, 6])
        );
    }
}
