//! Files of `perf stat -x,`: what counters saw earlier, or on another machine.
//!
//! **Terms.** `perf stat -I 100` writes the counts of each interval of 100 ms, beginning with the
//! time of its end. Without `-I` a file is one interval. With `--per-thread` each thread has lines
//! of its own, `NAME-TID`. Otherwise a line is of the whole program.
//!
//! **Problem.** perf calls the format "not quite CSV": event names may hold the separator. The
//! beginning and the end of a line differ between versions:
//!
//! ```text
//! 123,cycles                                                  up to 3.13
//! 0.100,123,,cycles                                           3.14, with -I
//! 0.100,12.5,msec,task-clock,12500000,100.00,0.1,CPUs utilized  from 3.19 or 4.6 on
//! 0.100,sh-42,7,,context-switches,12500000,100.00             --per-thread
//! 0.100,500,,cpu_core/cycles/,50000,40.00                     a kind of core
//! ```
//!
//! **Method.** The reader looks for the value: a number, `<not counted>` or `<not supported>`. Then
//! come the unit, if there is one, and the event. The separator is the first of `;`, tab, `|` and
//! `,` that splits a line into these. The reader skips lines without a known event.
//!
//! Counts of several kinds of cores are added as they are live. The kinds are the PMUs that a file
//! names, if there are several. An event that one of them lacks is left out. Each kind may have its
//! own name of an event. If a kind has several, the first one with a count is taken.
//!
//! **Limits.** perf must write numbers with a point (`LC_ALL=C`). A file that names one kind of
//! core alone does not show that there are others.

use crate::event_table::{EVENTS, event_named};
use crate::multiplexing::{PartialCount, whole};
use pinwise_linux::Tid;
use pinwise_measure::{CounterEvent, EventCounts};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// More is no recording of a program's counters.
const LARGEST_FILE: u64 = 256 << 20;

/// What the counts of a file are of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordedSubject {
    /// The program, with all its threads.
    Program,
    /// One thread.
    Thread {
        /// Its number.
        tid: Tid,
        /// Its name when it was recorded.
        comm: String,
    },
}

/// The counts of all subjects in one interval. [`EventCounts::seconds`] is 0 without `-I`: the file
/// then lacks the length.
pub type RecordedInterval = BTreeMap<RecordedSubject, EventCounts>;

/// A file of `perf stat -x,`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedFile {
    /// The intervals, in the order of time.
    pub intervals: Vec<RecordedInterval>,
    /// Events that perf was asked for, and counted in no interval, or not on every kind of core.
    pub uncounted: BTreeSet<CounterEvent>,
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum RecordedFileError {
    /// It cannot be read.
    #[error(
        "{path}: {error}: name a file of 'perf stat -x, -I 100 -o FILE'",
        path = path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// It is none of perf.
    #[error("{path}: {error}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: NotRecorded,
    },
}

/// A text that is no output of `perf stat -x,` with counts of threads or of a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "line {line}: {reason}: record with 'perf stat -x, -I 100 -o FILE -e cycles,instructions,… \
    COMMAND'"
)]
pub struct NotRecorded {
    /// The line, from 1; 0 if none is to blame.
    pub line: usize,
    /// Its fault.
    pub reason: NotRecordedReason,
}

/// The fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotRecordedReason {
    /// No line has an event of [`CounterEvent`].
    #[error("no event that pinwise knows")]
    NoKnownEvent,
    /// It is none of perf, or of perf without `-x`.
    #[error("no line of 'perf stat -x,'")]
    NoCounts,
    /// The counts are those of a CPU, core or socket.
    #[error("counts of a CPU, core or socket, not of a thread or program")]
    OfCpus,
}

impl RecordedFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, RecordedFileError> {
        let io = |error| RecordedFileError::Io { path: path.to_owned(), error };
        if std::fs::metadata(path).map_err(io)?.len() > LARGEST_FILE {
            return Err(io(io::ErrorKind::FileTooLarge.into()));
        }
        let text = String::from_utf8_lossy(&std::fs::read(path).map_err(io)?).into_owned();
        let malformed = |error| RecordedFileError::Malformed { path: path.to_owned(), error };
        Self::parse(&text).map_err(malformed)
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, NotRecorded> {
        let mut separator = None;
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed = match separator {
                Some(separator) => CountLine::parse(line, separator),
                None => [';', '\t', '|', ','].into_iter().find_map(|candidate| {
                    let parsed = CountLine::parse(line, candidate)?;
                    separator = Some(candidate);
                    Some(parsed)
                }),
            };
            let refuse = |reason| NotRecorded { line: index + 1, reason };
            match parsed.ok_or(refuse(NotRecordedReason::NoCounts))? {
                CountLine::Count(count) if count.of_cpus => {
                    return Err(refuse(NotRecordedReason::OfCpus));
                }
                CountLine::Count(count) => lines.push(count),
                CountLine::NoCount => {}
            }
        }
        if lines.iter().all(|line| line.event.is_none()) {
            return Err(NotRecorded { line: 0, reason: NotRecordedReason::NoKnownEvent });
        }
        Ok(Self::of(lines))
    }

    fn of(mut lines: Vec<RecordedCount>) -> Self {
        // After the intervals perf may write their sum, without a time.
        if lines.iter().any(|line| line.end.is_some()) {
            lines.retain(|line| line.end.is_some());
        }
        let kinds = kinds_of_cores(&mut lines);
        let names = names(&lines, &kinds);
        let mut intervals = Vec::new();
        let mut begin = 0.0;
        for of_interval in lines.chunk_by(|a, b| a.end == b.end) {
            let end = of_interval[0].end;
            // The times of appended lines begin at 0 again.
            begin = if end.is_some_and(|end| end < begin) { 0.0 } else { begin };
            let seconds = end.map_or(0.0, |end| end - begin);
            intervals.push(interval(of_interval, &names, seconds));
            begin = end.unwrap_or(0.0);
        }
        let counted = |event: &CounterEvent| {
            let mut all = intervals.iter().flat_map(BTreeMap::values);
            all.any(|counts: &EventCounts| counts.counts.contains_key(event))
        };
        let asked = lines.iter().filter_map(|line| line.event);
        let uncounted = asked.filter(|event| !counted(event)).collect();
        Self { intervals, uncounted }
    }

    /// The counts of one subject in each interval. They are empty in intervals that do not have it.
    pub fn of_subject(&self, subject: &RecordedSubject) -> Vec<EventCounts> {
        let of = |interval: &RecordedInterval| interval.get(subject).cloned().unwrap_or_default();
        self.intervals.iter().map(of).collect()
    }

    /// Everything whose counts the file has.
    pub fn subjects(&self) -> BTreeSet<&RecordedSubject> {
        self.intervals.iter().flat_map(BTreeMap::keys).collect()
    }
}

/// The name that counts of each event, on each kind of core. Events of the kernel have the kind "".
type ChosenNames<'a> = BTreeMap<(CounterEvent, &'a str), &'a str>;

/// The kinds of cores that the events of the processor name. It is written into `lines` where the
/// kind is the only one, or does not matter.
fn kinds_of_cores(lines: &mut [RecordedCount]) -> BTreeSet<String> {
    let of_processor = |line: &RecordedCount| line.event.is_some_and(|one| EVENTS.contains(&one));
    let named = |line: &&RecordedCount| of_processor(line) && !["", "cpu"].contains(&&*line.pmu);
    let mut kinds: BTreeSet<String> =
        lines.iter().filter(named).map(|one| one.pmu.clone()).collect();
    if kinds.len() < 2 {
        kinds = [String::new()].into();
    }
    for line in lines.iter_mut().filter(|line| kinds.len() == 1 || !of_processor(line)) {
        line.pmu.clear();
    }
    kinds
}

fn names<'a>(lines: &'a [RecordedCount], kinds: &BTreeSet<String>) -> ChosenNames<'a> {
    let mut names = ChosenNames::new();
    // Counted events come first, then those that could not be counted.
    for counted in [true, false] {
        for line in lines.iter().filter(|one| one.supported && one.count.is_some() == counted) {
            if let Some(event) = line.event {
                names.entry((event, line.pmu.as_str())).or_insert(&line.name);
            }
        }
    }
    let everywhere = |event| kinds.iter().all(|kind| names.contains_key(&(event, kind.as_str())));
    let complete: Vec<CounterEvent> = EVENTS.into_iter().filter(|&one| everywhere(one)).collect();
    names.retain(|&(event, kind), _| {
        !EVENTS.contains(&event) || complete.contains(&event) && kinds.contains(kind)
    });
    names
}

/// The counts of an interval from its lines.
fn interval(lines: &[RecordedCount], names: &ChosenNames, seconds: f64) -> RecordedInterval {
    /// For each part of an event, for each kind of core.
    type Parts<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Option<PartialCount>>>;
    let mut events: BTreeMap<(&RecordedSubject, CounterEvent), Parts> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.supported) {
        let Some(event) = line.event else { continue };
        if names.get(&(event, line.pmu.as_str())).is_some_and(|name| *name == line.name) {
            let parts = events.entry((&line.subject, event)).or_default();
            let count = parts.entry(&line.part).or_default().entry(&line.pmu).or_default();
            // An event that was given to perf twice counts once.
            *count = count.or(line.count);
        }
    }
    let mut interval = RecordedInterval::new();
    for ((subject, event), parts) in events {
        let counts = interval.entry(subject.clone()).or_insert_with(|| EventCounts {
            seconds,
            counts: BTreeMap::new(),
            counted: 1.0,
        });
        // Kinds of cores divide the time between them. Parts of an event divide the event, and all
        // of them are needed.
        let parts = parts.into_values().map(|kinds| whole(kinds.into_values().flatten()));
        for (count, share) in parts.collect::<Option<Vec<_>>>().unwrap_or_default() {
            *counts.counts.entry(event).or_insert(0.0) += count;
            counts.counted = counts.counted.min(share);
        }
    }
    interval
}

/// A line of a file.
#[derive(Debug, PartialEq)]
enum CountLine {
    Count(RecordedCount),
    /// A metric, which belongs to the line above, or the sum over all intervals.
    NoCount,
}

/// The count of one event in one interval.
#[derive(Clone, Debug, PartialEq)]
struct RecordedCount {
    /// Seconds since perf began.
    end: Option<f64>,
    subject: RecordedSubject,
    /// It is of a CPU, core or socket.
    of_cpus: bool,
    event: Option<CounterEvent>,
    /// The name of the event, without its PMU, part and modifiers.
    name: String,
    /// The PMU before the name, or empty: the kind of core.
    pmu: String,
    /// Which part of the event, such as `scalar_double` of the floating point operations.
    part: String,
    /// The machine has the event, or may have it.
    supported: bool,
    /// `None`: not counted.
    count: Option<PartialCount>,
}

impl CountLine {
    /// `None`: it is no line of perf's with this separator.
    fn parse(line: &str, separator: char) -> Option<Self> {
        let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
        if fields[0] == "summary" {
            return Some(Self::NoCount);
        }
        // With the time or without, and with up to two fields for whose count it is.
        let layouts = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)];
        layouts.into_iter().find_map(|(times, owners)| {
            let end = match times {
                0 => None,
                _ => Some(number(fields[0])?),
            };
            let rest = fields.get(times + owners..)?;
            let owner = fields[times..times + owners].first().copied();
            if owner.is_some_and(|owner| owner.is_empty() || is_value(owner)) {
                return None;
            }
            // The number of CPUs follows the name of what they are part of.
            if owners == 2 && number(fields[times + 1]).is_none() {
                return None;
            }
            if owners == 0 && rest.len() > 2 && rest[..3].iter().all(|field| field.is_empty()) {
                return Some(Self::NoCount);
            }
            Self::count(end, owner, rest, separator)
        })
    }

    /// From a value on: value, perhaps a unit, event, and what follows.
    fn count(
        end: Option<f64>,
        owner: Option<&str>,
        fields: &[&str],
        separator: char,
    ) -> Option<Self> {
        let value = fields.first().filter(|field| is_value(field))?;
        let is_name = |at: usize| {
            let field = fields.get(at)?;
            let first = field.chars().next()?;
            (first.is_ascii_alphabetic() && !is_value(field)).then_some(at)
        };
        let known = |&at: &usize| event_of(fields[at]).is_some();
        let at = is_name(1)
            .filter(known)
            .or_else(|| (!fields.get(1).is_some_and(|unit| is_value(unit))).then(|| is_name(2))?)
            .or_else(|| is_name(1).filter(|_| fields.len() == 2))?;
        let unit = if at == 2 { fields[1] } else { "" };
        // Terms of an event may be separated as fields are.
        let mut event = fields[at].to_owned();
        let mut rest = fields[at + 1..].iter();
        while event.matches('/').count() == 1 {
            let Some(more) = rest.next() else { break };
            event = format!("{event}{separator}{more}");
        }
        let (base, part) = base_and_part(&event);
        let named = event_of(&event);
        // Nanoseconds. Older versions give milliseconds without saying so.
        let scale = match (named, unit) {
            (Some(CounterEvent::TaskClock), "" | "msec") => 1e6,
            _ => 1.0,
        };
        // Run time and percentage, perhaps after the spread of repetitions.
        let mut rest = rest.skip_while(|field| field.ends_with('%'));
        let share = match (rest.next().and_then(|run| number(run)), rest.next()) {
            (Some(_), Some(percent)) => number(percent).map_or(1.0, |percent| percent / 100.0),
            _ => 1.0,
        };
        let share = share.min(1.0);
        // perf has scaled the count already.
        let count = number(value)
            .map(|count| PartialCount { count: count * scale * share, share })
            .filter(|_| share > 0.0);
        let thread = owner.and_then(thread_of);
        Some(Self::Count(RecordedCount {
            end,
            of_cpus: owner.is_some() && thread.is_none(),
            subject: thread.unwrap_or(RecordedSubject::Program),
            event: named,
            // The event as a whole is another name than that of its parts.
            name: format!("{base}{}", if part.is_empty() { "" } else { "." }),
            pmu: event.split_once('/').map_or("", |(pmu, _)| pmu).to_owned(),
            part: part.to_owned(),
            supported: *value != "<not supported>",
            count,
        }))
    }
}

/// A number that can be a time, a count or a share.
fn number(text: &str) -> Option<f64> {
    let starts = text.starts_with(|first: char| first.is_ascii_digit());
    text.parse().ok().filter(|value: &f64| starts && value.is_finite() && *value < 1e24)
}

fn is_value(text: &str) -> bool {
    matches!(text, "<not counted>" | "<not supported>") || number(text).is_some()
}

/// `NAME-TID`.
fn thread_of(owner: &str) -> Option<RecordedSubject> {
    let (comm, tid) = owner.rsplit_once('-')?;
    let tid = Tid(tid.parse().ok().filter(|tid| *tid > 0)?);
    Some(RecordedSubject::Thread { tid, comm: comm.to_owned() })
}

/// Events that perf lists mask by mask. Other masks, such as `.vector`, hold several of these.
const PARTS: [&str; 10] = [
    "fp_arith_inst_retired.scalar_double",
    "fp_arith_inst_retired.scalar_single",
    "fp_arith_inst_retired.128b_packed_double",
    "fp_arith_inst_retired.128b_packed_single",
    "fp_arith_inst_retired.256b_packed_double",
    "fp_arith_inst_retired.256b_packed_single",
    "fp_arith_inst_retired.512b_packed_double",
    "fp_arith_inst_retired.512b_packed_single",
    "ls_refills_from_sys.ls_mabresp_lcl_dram",
    "ls_refills_from_sys.ls_mabresp_rmt_dram",
];

/// The name of an event without its PMU and modifiers, and the part of the event it is.
fn base_and_part(event: &str) -> (&str, &str) {
    let name = match event.split_once('/') {
        Some((_, rest)) => rest.rsplit_once('/').map_or(rest, |(name, _)| name),
        None => event.split_once(':').map_or(event, |(name, _)| name),
    };
    match name.split_once('.') {
        Some(parts) if PARTS.iter().any(|one| one.eq_ignore_ascii_case(name)) => parts,
        _ => (name, ""),
    }
}

fn event_of(event: &str) -> Option<CounterEvent> {
    event_named(base_and_part(event).0)
}

#[cfg(test)]
mod tests;
