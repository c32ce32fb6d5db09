//! The cadence of a program that reports by lines, from the times at which they arrive.

/// The cadence in which a program reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cadence {
    /// Each line is a separate report.
    Lines {
        /// Seconds.
        period: f64,
    },
    /// Several lines make one report, such as one per port. Their numbers are added up.
    Blocks {
        /// Lines in each.
        lines: usize,
        /// Seconds between blocks.
        period: f64,
    },
    /// Lines arrive when a buffer is full, not when they are written.
    Buffered {
        /// Lines in a typical block.
        lines: usize,
        /// Seconds between blocks.
        period: f64,
    },
}

/// Lines closer together than this fraction of the longest gap belong to one block.
pub(crate) const WITHIN_A_BLOCK: f64 = 0.1;

/// A block with more matching lines than this is a full buffer, not a report.
const LINES_OF_A_REPORT: usize = 16;

/// This many blocks, or seconds, distinguish a buffer from a moment without reading. In such a
/// moment lines wait too, and come at once.
const BLOCKS_OF_A_BUFFER: usize = 8;
const SECONDS_OF_A_BUFFER: f64 = 1.0;

/// A program held a block back only if the block came within this share of its gap. Its time is
/// that of its lines and of the reader's wait. On a busy machine both wait, and the gap has both
/// waits. So pinwise misses a full buffer if its
/// reader is slow.
const PRINTED_MEANWHILE: f64 = 0.1;

/// The cadence of lines that arrived at `times` (seconds, ascending). Each may have come up to
/// `late` seconds earlier, while its reader was kept from running. Gaps of more than a tenth of the
/// longest gap separate blocks. The first and the last block may be incomplete and do not count.
///
/// `None` while there are fewer than two complete blocks. Also `None` while an apparent buffer may
/// be one look that came late.
pub(crate) fn cadence(times: &[f64], late: &[f64]) -> Option<Cadence> {
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    let mut starts = vec![0];
    starts.extend((1..times.len()).filter(|&i| times[i] - times[i - 1] > longest * WITHIN_A_BLOCK));
    // Complete: every block but the first and the last.
    if starts.len() < 4 {
        return None;
    }
    let mut sizes: Vec<usize> = starts.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    let mut periods: Vec<f64> =
        starts.windows(2).map(|pair| times[pair[1]] - times[pair[0]]).collect();
    // The large blocks that the program may have held back.
    let held: Vec<bool> = starts[1..starts.len() - 1]
        .iter()
        .zip(&sizes)
        .filter(|&(_, &lines)| lines > LINES_OF_A_REPORT)
        .map(|(&start, &lines)| {
            let printing = late[start] + times[start + lines - 1] - times[start];
            printing < PRINTED_MEANWHILE * (times[start] - times[start - 1])
        })
        .collect();
    let held = held.iter().filter(|held| **held).count() * 2 > held.len();
    sizes.sort_unstable();
    periods.sort_by(f64::total_cmp);
    let (smallest, lines, largest) = (sizes[0], sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    let period = periods[periods.len() / 2];
    let seen = times[times.len() - 1] - times[0];
    if lines > LINES_OF_A_REPORT && sizes.len() < BLOCKS_OF_A_BUFFER && seen < SECONDS_OF_A_BUFFER {
        return None;
    }
    Some(if lines > LINES_OF_A_REPORT && held {
        Cadence::Buffered { lines, period }
    } else if smallest == largest && (2..=LINES_OF_A_REPORT).contains(&lines) {
        Cadence::Blocks { lines, period }
    } else {
        Cadence::Lines { period: seen / (times.len() - 1) as f64 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of a reader that was never late.
    fn cadence(times: &[f64]) -> Option<Cadence> {
        super::cadence(times, &vec![0.0; times.len()])
    }

    #[test]
    fn single_lines_have_a_period_however_uneven() {
        let cadence = cadence(&[0.0, 0.9, 2.0, 3.1, 4.0]).unwrap();
        assert_eq!(cadence, Cadence::Lines { period: 1.0 });
        assert_eq!(self::cadence(&[0.0, 1.0, 2.0]), None);
        assert_eq!(self::cadence(&[]), None);
        // Every line twenty milliseconds to a hundred after the last: some gaps are short, but the
        // groups differ in size.
        let uneven = self::cadence(&[0.0, 0.1, 0.105, 0.2, 0.3, 0.305, 0.31, 0.41, 0.51]).unwrap();
        assert!(matches!(uneven, Cadence::Lines { .. }), "{uneven:?}");
    }

    #[test]
    fn two_ports_each_second_make_blocks_of_two() {
        let times = [0.001, 1.0, 1.001, 2.0, 2.001, 3.0, 3.001];
        assert_eq!(cadence(&times), Some(Cadence::Blocks { lines: 2, period: 1.0 }));
    }

    #[test]
    fn lines_by_the_hundred_are_a_full_buffer() {
        let times: Vec<f64> = (0..5)
            .flat_map(|block| {
                (0..170 + block).map(move |line| f64::from(block) * 3.0 + f64::from(line) * 1e-6)
            })
            .collect();
        assert!(matches!(cadence(&times), Some(Cadence::Buffered { lines: 170..=175, .. })));
    }

    #[test]
    fn lines_that_waited_for_a_reader_that_could_not_run_are_no_full_buffer() {
        // 700 lines a second, and a reader that gets to run every 852 ms.
        let (mut times, mut late) = (Vec::new(), Vec::new());
        for line in 0..7000 {
            let turn = f64::from(line / 599 + 1) * 0.852;
            times.push(turn + f64::from(line % 599) * 1e-6);
            late.push(if line % 599 == 0 { 0.84 } else { 0.0 });
        }
        let found = super::cadence(&times, &late);
        assert!(matches!(found, Some(Cadence::Lines { .. })), "{found:?}");
        // One that waits for the program has nothing to do meanwhile.
        let idle = vec![0.0; times.len()];
        let found = super::cadence(&times, &idle);
        assert!(matches!(found, Some(Cadence::Buffered { lines: 599, .. })), "{found:?}");
    }

    #[test]
    fn a_program_that_waits_for_a_cpu_as_its_reader_does_holds_no_lines_back() {
        // Turns of 30 lines. Before each the program waited, and after it the reader.
        let blocks = |reader: f64, spread: f64| {
            let (mut times, mut late) = (Vec::new(), Vec::new());
            for line in 0..600 {
                times.push(f64::from(line / 30) * 0.05 + f64::from(line % 30) * spread);
                late.push(if line % 30 == 0 { reader } else { 0.0 });
            }
            super::cadence(&times, &late)
        };
        for (reader, spread) in [(0.02, 1e-6), (0.006, 1e-6), (0.0, 2e-4)] {
            let found = blocks(reader, spread);
            assert!(matches!(found, Some(Cadence::Lines { .. })), "{found:?}");
        }
        assert!(matches!(blocks(0.002, 1e-6), Some(Cadence::Buffered { lines: 30, .. })));
    }

    #[test]
    fn lines_that_waited_for_a_late_reader_are_no_full_buffer() {
        // A line every 2 ms, but twice nobody read for 80 ms; then all that waited come at once.
        let late = |at: f64| {
            if at < 0.08 {
                0.08
            } else if (0.1..0.18).contains(&at) {
                0.18
            } else {
                at
            }
        };
        let times: Vec<f64> =
            (0..200).map(|line| late(f64::from(line) * 0.002) + f64::from(line) * 1e-6).collect();
        for heard in 0..times.len() {
            let cadence = cadence(&times[..heard]);
            assert!(
                !matches!(cadence, Some(Cadence::Buffered { .. })),
                "{cadence:?} after {heard}"
            );
        }
    }

    proptest! {

        #[test]
        fn the_cadence_does_not_depend_on_when_listening_began(
            period in 0.01f64..10.0,
            lines in 1usize..5,
            torn in 0usize..5,
        ) {
            let times: Vec<f64> = (0..6)
                .flat_map(|block| {
                    let at = f64::from(block) * period;
                    (0..lines).map(move |line| at + line as f64 * period * 1e-4)
                })
                .skip(torn.min(lines - 1))
                .collect();
            match cadence(&times) {
                Some(Cadence::Lines { .. }) => prop_assert_eq!(lines, 1),
                Some(Cadence::Blocks { lines: found, period: every }) => {
                    prop_assert_eq!(found, lines);
                    prop_assert!((every / period - 1.0).abs() < 0.01);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
