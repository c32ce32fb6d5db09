//! Records as the kernel writes them (perf_event_open(2), "Overflow handling").
//!
//! ```text
//! header   type u32, misc u16, size u16    size: of the whole record
//! body     by type
//! id       pid u32, tid u32, time u64      whom it happened to, and when (monotonic clock, ns)
//! ```

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// `tid` gave its CPU to `next` (0: to nobody); `preempted`: it would have gone on.
    Switch { next: u32, preempted: bool },
    /// `tid` got a CPU.
    Turn,
    /// `tid` of process `pid` was created by a thread of process `parent`.
    Fork { parent: u32 },
    /// It got a name.
    Comm(String),
    /// It ended.
    Exit,
    /// The kernel dropped this many records.
    Lost(u64),
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PerfRecord {
    /// Nanoseconds on the monotonic clock.
    pub(super) time: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) what: What,
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SWITCH_CPU_WIDE: u32 = 15;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
const HEADER: usize = 8;
const ID: usize = 16;

/// The records in `bytes`, those of other kinds left out. What cannot be whole records ends it.
pub(super) fn records(mut bytes: &[u8]) -> impl Iterator<Item = PerfRecord> {
    std::iter::from_fn(move || {
        loop {
            let size = usize::from(half(bytes, 6)?);
            let record = bytes.get(..size).filter(|_| size >= HEADER)?;
            bytes = &bytes[size..];
            if let Some(record) = parse(record) {
                return Some(record);
            }
        }
    })
}

/// `None`: not of interest, or shorter than its kind.
fn parse(record: &[u8]) -> Option<PerfRecord> {
    let (kind, misc) = (word(record, 0)?, half(record, 4)?);
    let body = record.get(HEADER..record.len().checked_sub(ID)?)?;
    let id = &record[record.len() - ID..];
    let (mut pid, mut tid, time) = (word(id, 0)?, word(id, 4)?, long(id, 8)?);
    let what = match kind {
        SWITCH_CPU_WIDE if misc & SWITCH_OUT != 0 => {
            What::Switch { next: word(body, 4)?, preempted: misc & PREEMPTED != 0 }
        }
        // The other half of a switch says nothing new, unless the kernel hides what the previous
        // thread does.
        SWITCH_CPU_WIDE => What::Turn,
        // pid, parent's pid, tid, parent's tid.
        FORK | EXIT => {
            (pid, tid) = (word(body, 0)?, word(body, 8)?);
            if kind == EXIT { What::Exit } else { What::Fork { parent: word(body, 4)? } }
        }
        // pid, tid, name.
        COMM => {
            (pid, tid) = (word(body, 0)?, word(body, 4)?);
            let name = body.get(8..)?.split(|&byte| byte == 0).next()?;
            What::Comm(String::from_utf8_lossy(name).into_owned())
        }
        // Number of the event, number of records.
        LOST => What::Lost(long(body, 8)?),
        _ => return None,
    };
    Some(PerfRecord { time, pid, tid, what })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record in the kernel's form.
    pub(in super::super) fn bytes(record: &PerfRecord) -> Vec<u8> {
        let words =
            |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let (kind, misc, body) = match &record.what {
            What::Switch { next, preempted } => (
                SWITCH_CPU_WIDE,
                SWITCH_OUT | if *preempted { PREEMPTED } else { 0 },
                words(&[*next, *next]),
            ),
            What::Turn => (SWITCH_CPU_WIDE, 0, words(&[1, 1])),
            What::Fork { parent } => {
                (FORK, 0, words(&[record.pid, *parent, record.tid, *parent, 0, 0]))
            }
            What::Exit => (EXIT, 0, words(&[record.pid, 1, record.tid, 1, 0, 0])),
            What::Comm(name) => {
                let mut body = words(&[record.pid, record.tid]);
                body.extend(name.bytes());
                body.resize(body.len() / 8 * 8 + 8, 0);
                (COMM, 0, body)
            }
            What::Lost(count) => (LOST, 0, [0u64.to_ne_bytes(), count.to_ne_bytes()].concat()),
        };
        let size = (HEADER + body.len() + ID) as u16;
        let header = [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes()].concat();
        [header, body, words(&[record.pid, record.tid]), record.time.to_ne_bytes().to_vec()]
            .concat()
    }

    fn any_record() -> impl Strategy<Value = PerfRecord> {
        let what = prop_oneof![
            (any::<u32>(), any::<bool>())
                .prop_map(|(next, preempted)| What::Switch { next, preempted }),
            Just(What::Turn),
            any::<u32>().prop_map(|parent| What::Fork { parent }),
            Just(What::Exit),
            "[a-z ()]{0,15}".prop_map(What::Comm),
            any::<u64>().prop_map(What::Lost),
        ];
        (any::<u64>(), any::<u32>(), any::<u32>(), what)
            .prop_map(|(time, pid, tid, what)| PerfRecord { time, pid, tid, what })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(written in proptest::collection::vec(any_record(), 0..20)) {
            let text: Vec<u8> = written.iter().flat_map(bytes).collect();
            prop_assert_eq!(records(&text).collect::<Vec<_>>(), written);
        }

        #[test]
        fn records_cut_short_end_the_reading(written in any_record(), cut in 0usize..64) {
            let text = bytes(&written);
            let cut = cut.min(text.len() - 1);
            prop_assert_eq!(records(&text[..cut]).count(), 0);
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            text in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            prop_assert!(records(&text).count() <= text.len() / HEADER);
        }
    }

    #[test]
    fn kinds_of_no_interest_are_passed_over() {
        let switch =
            PerfRecord { time: 5, pid: 1, tid: 2, what: What::Switch { next: 3, preempted: true } };
        let mut other = bytes(&switch);
        other[..4].copy_from_slice(&9u32.to_ne_bytes());
        let text = [other, bytes(&switch)].concat();
        assert_eq!(records(&text).collect::<Vec<_>>(), [switch]);
        // A size of 0 would never end.
        assert_eq!(records(&[0; 64]).count(), 0);
    }
}
