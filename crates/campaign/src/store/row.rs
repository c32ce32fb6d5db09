//! How campaigns and records stand in the rows of the store. What someone may query is in plain
//! columns and words. The rest is JSON text.

use super::{CampaignId, CampaignInfo, NewCampaign, Parent};
use crate::{Purpose, Record, Trial};
use pinwise_measure::{
    Effort, MeasureError, Measurement, MemoryPolicy, PinnedInstance, Placed, Seat, Seating,
    Setting, ThreadCount, ThreadMoves,
};
use pinwise_topology::{Assignment, CpuId, Policy};
use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How a record's `assignment` column says that nobody pinned.
const UNPINNED: &str = "unpinned";

/// How its `retry` column says that the time for all measurements was over.
const EXPIRED: &str = "expired";
/// How it says that the program fell below the floor.
const BELOW_FLOOR: &str = "below_floor";
/// How a number of threads begins; the program's own is [`DEFAULT`].
const NUMBER: &str = "n=";
const DEFAULT: &str = "default";
/// What comes before the policy of its memory, if that is not left alone.
const MEMORY: &str = " memory ";
/// How microbenchmarks on contexts begin, and what comes before their seed.
const SEATS: &str = "seats ";
const SEED: &str = " seed ";
const CACHES: &str = "caches ";
/// How threads that are moved while they run begin.
const MOVED: &str = "moved ";

pub(super) fn campaign_row(row: &Row<'_>) -> rusqlite::Result<CampaignInfo> {
    Ok(CampaignInfo {
        id: CampaignId(row.get(0)?),
        started: row.get(1)?,
        new: NewCampaign {
            kind: worded(row, 12)?,
            parent: match row.get::<_, Option<i64>>(13)? {
                Some(id) => Some(Parent { id: CampaignId(id), step: parsed(row, 14)? }),
                None => None,
            },
            command: parsed(row, 2)?,
            machine: parsed(row, 3)?,
            alike: worded(row, 4)?,
            workload: parsed(row, 5)?,
            unit: parsed(row, 6)?,
            simulated: row.get(15)?,
            question: parsed(row, 7)?,
            seed: row.get::<_, String>(8)?.parse().map_err(|error| malformed(8, error))?,
        },
        state: worded(row, 9)?,
        running: false,
        records: row.get::<_, i64>(11)? as u64,
        conclusion: match row.get::<_, Option<String>>(10)? {
            Some(_) => Some(parsed(row, 10)?),
            None => None,
        },
    })
}

pub(super) fn record_row(row: &Row<'_>) -> rusqlite::Result<Record> {
    let seconds = |column, value: f64| {
        Duration::try_from_secs_f64(value).map_err(|error| malformed(column, error))
    };
    let detail = match row.get::<_, Option<String>>(10)? {
        Some(_) => Some(parsed(row, 10)?),
        None => None,
    };
    let outcome = match row.get::<_, Option<String>>(7)? {
        Some(message) => {
            let error = match row.get::<_, String>(8)?.as_str() {
                EXPIRED => MeasureError::expired(message),
                BELOW_FLOOR => MeasureError::below_floor(message),
                _ => MeasureError::new(worded(row, 8)?, message),
            };
            Err(MeasureError { detail: detail.map(Box::new), ..error })
        }
        None => Ok(Measurement {
            performance: row.get(4)?,
            duration: seconds(5, row.get(5)?)?,
            spread: row.get(6)?,
            detail,
        }),
    };
    Ok(Record {
        number: row.get::<_, i64>(0)? as u64,
        trial: Trial {
            purpose: worded::<Purpose>(row, 1)?,
            setting: setting(&row.get::<_, String>(2)?).map_err(|error| malformed(2, error))?,
            effort: Effort { windows: row.get(3)? },
        },
        outcome,
        elapsed: seconds(9, row.get(9)?)?,
    })
}

/// Whether another try makes sense, as the `retry` column says it.
pub(super) fn retry_text(error: &MeasureError) -> String {
    match error {
        MeasureError { expired: true, .. } => EXPIRED.to_owned(),
        MeasureError { below_floor: true, .. } => BELOW_FLOOR.to_owned(),
        _ => word(&error.retry),
    }
}

/// A setting as the `assignment` column holds it.
pub(crate) fn assignment_text(setting: &Setting) -> String {
    match setting {
        Setting::Unpinned => UNPINNED.to_owned(),
        Setting::Pinned(assignment) => leaves_text(assignment.leaves()),
        Setting::Profile(parts) => {
            let part =
                |part: &PinnedInstance| format!("{}:{}", part.instance, leaves_text(&part.leaves));
            parts.iter().map(part).collect::<Vec<_>>().join(" ")
        }
        Setting::Threads(ThreadCount { n, placed, memory }) => {
            let n = n.map_or_else(|| DEFAULT.to_owned(), |n| n.to_string());
            let placed = placed.as_ref().map(|placed| match placed {
                Placed::At(assignment) => format!(" {}", leaves_text(assignment.leaves())),
                Placed::By(policy) => format!(" {}", word(policy)),
            });
            let memory = if memory.is_leave() { "" } else { &format!("{MEMORY}{}", memory.name()) };
            format!("{NUMBER}{n}{}{memory}", placed.unwrap_or_default())
        }
        Setting::Pair(from, to) => format!("{}>{}", from.0, to.0),
        Setting::Benchmarks(Seating { seats, seed }) => {
            let seat = |seat: &Seat| format!("{}={}", seat.leaf, seat.benchmark);
            let seats: Vec<String> = seats.iter().map(seat).collect();
            format!("{SEATS}{}{SEED}{seed}", seats.join(" "))
        }
        Setting::Caches(cpu) => format!("{CACHES}{}", cpu.0),
        Setting::Coscheduled(ThreadMoves::Counted) => format!("{MOVED}counted"),
        Setting::Coscheduled(ThreadMoves::Apart) => format!("{MOVED}apart"),
        Setting::Coscheduled(ThreadMoves::Dealt(seed)) => format!("{MOVED}{seed}"),
    }
}

pub(super) fn setting(text: &str) -> Result<Setting, std::num::ParseIntError> {
    if let Some(rest) = text.strip_prefix(NUMBER) {
        let with = |memory: &MemoryPolicy| {
            let rest = rest.strip_suffix(memory.name())?.strip_suffix(MEMORY)?;
            Some((rest, *memory))
        };
        let (rest, memory) =
            MemoryPolicy::ALL.iter().find_map(with).unwrap_or((rest, MemoryPolicy::Leave));
        let (n, placed) = rest.split_once(' ').map_or((rest, None), |(n, on)| (n, Some(on)));
        let n = if n == DEFAULT { None } else { Some(n.parse()?) };
        let placed = placed.map(|placed| match policy(placed) {
            Some(policy) => Ok(Placed::By(policy)),
            None => leaves(placed).map(Assignment::new).map(Placed::At),
        });
        let placed = placed.transpose()?;
        return Ok(Setting::Threads(ThreadCount { n, placed, memory }));
    }
    if let Some((seats, seed)) = text.strip_prefix(SEATS).and_then(|rest| rest.rsplit_once(SEED)) {
        let seat = |text: &str| {
            let (leaf, benchmark) = text.split_once('=').unwrap_or((text, ""));
            Ok(Seat { leaf: leaf.parse()?, benchmark: benchmark.parse()? })
        };
        let seats = seats.split(' ').map(seat).collect::<Result<_, _>>()?;
        return Ok(Setting::Benchmarks(Seating { seats, seed: seed.parse()? }));
    }
    if let Some(moves) = text.strip_prefix(MOVED) {
        return Ok(Setting::Coscheduled(match moves {
            "counted" => ThreadMoves::Counted,
            "apart" => ThreadMoves::Apart,
            seed => ThreadMoves::Dealt(seed.parse()?),
        }));
    }
    if let Some(cpu) = text.strip_prefix(CACHES) {
        return Ok(Setting::Caches(CpuId(cpu.parse()?)));
    }
    if let Some((from, to)) = text.split_once('>') {
        return Ok(Setting::Pair(CpuId(from.parse()?), CpuId(to.parse()?)));
    }
    if text == UNPINNED {
        return Ok(Setting::Unpinned);
    }
    // The colon is what no assignment has.
    if text.contains(':') {
        let part = |text: &str| {
            let (instance, placed) = text.split_once(':').unwrap_or((text, ""));
            Ok(PinnedInstance { instance: instance.parse()?, leaves: leaves(placed)? })
        };
        return text.split(' ').map(part).collect::<Result<_, _>>().map(Setting::Profile);
    }
    Ok(Setting::Pinned(Assignment::new(leaves(text)?)))
}

/// The policy of placement that has this name.
fn policy(name: &str) -> Option<Policy> {
    Policy::ALL.into_iter().find(|policy| word(policy) == name)
}

fn leaves_text(leaves: &[u32]) -> String {
    leaves.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn leaves(text: &str) -> Result<Vec<u32>, std::num::ParseIntError> {
    text.split(',').filter(|leaf| !leaf.is_empty()).map(str::parse).collect()
}

/// JSON text of a value whose serialization cannot fail: our own types have string keys and no
/// failing implementations.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The bare word of an enum that serializes to a JSON string.
pub(super) fn word(value: &impl Serialize) -> String {
    text(value).trim_matches('"').to_owned()
}

pub(super) fn parsed<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(&row.get::<_, String>(column)?).map_err(|error| malformed(column, error))
}

fn worded<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let word: String = row.get(column)?;
    serde_json::from_value(serde_json::Value::String(word))
        .map_err(|error| malformed(column, error))
}

pub(super) fn malformed(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
