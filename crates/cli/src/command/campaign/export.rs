//! The measurements of a campaign for other tools.

use clap::ValueEnum;
use pinwise_campaign::{CampaignInfo, Kind, Purpose, Record, Store, StoreError};
use pinwise_measure::{
    CoscheduledPeriod, Detail, MemoryPolicy, OtherLoad, Placed, Probed, Retry, Setting, ThreadMoves,
};
use pinwise_present::{printable, tagged_program_notes};
use pinwise_topology::SharingTree;
use serde::Serialize;
use serde_json::Value;

/// The form of an export.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CampaignFormat {
    /// one line per measurement, after a header
    Csv,
    /// one document: the campaign and its measurements
    Json,
}

/// A measurement, flat.
#[derive(Serialize)]
struct RecordJson {
    number: u64,
    purpose: Purpose,
    /// The kernel's number of the context of each thread. For a profile, its copies of instances
    /// come one after the other. `None` unpinned.
    cpus: Option<Vec<u32>>,
    /// The instances that the parts of a profile are copies of. `None`: the workload ran as a
    /// whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<Vec<usize>>,
    /// The number of threads that the program was given, where that is what was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    /// What placed the threads, where no assignment did: a policy, or a way to move them.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Where the memory lay, if it was not left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryPolicy>,
    /// The measured programs, if there are several: those of a pair, or all that ran in a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    programs: Option<Vec<String>>,
    /// The benchmark on each of the CPUs, the one that is measured first.
    #[serde(skip_serializing_if = "Option::is_none")]
    benchmarks: Option<Vec<String>>,
    windows: f64,
    /// In the campaign's unit.
    value: Option<f64>,
    /// The same, or its reciprocal where lower is better.
    performance: Option<f64>,
    duration_s: Option<f64>,
    spread: Option<f64>,
    elapsed_s: f64,
    error: Option<String>,
    retry: Option<Retry>,
    expired: bool,
    below_floor: bool,
    /// What else was observed, as it is stored.
    detail: Option<Detail>,
}

/// What disturbed a session.
#[derive(Serialize)]
struct DisturbancesJson {
    others: Option<OtherLoad>,
    notes: Vec<Value>,
}

/// The document of an export.
#[derive(Serialize)]
pub(super) struct CampaignExportJson {
    campaign: CampaignInfo,
    /// What `campaign show --json` prints.
    answer: Option<Value>,
    /// What disturbed each session.
    disturbances: Vec<DisturbancesJson>,
    records: Vec<RecordJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<CampaignExportJson>,
}

/// A campaign with its parts. `answer` is asked for the answer of each.
pub(super) fn document(
    store: &Store,
    info: CampaignInfo,
    answer: &dyn Fn(&CampaignInfo) -> Option<Value>,
) -> Result<CampaignExportJson, StoreError> {
    let names = match info.new.kind {
        Kind::Characterize => pinwise_jobs::benchmark_names(&info, store),
        Kind::Pairs => pinwise_jobs::paired_names(&info),
        _ => Vec::new(),
    };
    let records = rows(&info, &store.records(info.id)?, &names);
    let disturbances = store.disturbances(info.id)?.into_iter().map(|met| DisturbancesJson {
        notes: tagged_program_notes(&met.notes),
        others: met.others,
    });
    let parts = store.parts(info.id)?.into_iter().map(|part| document(store, part, answer));
    Ok(CampaignExportJson {
        parts: parts.collect::<Result<_, _>>()?,
        answer: answer(&info),
        disturbances: disturbances.collect(),
        campaign: info,
        records,
    })
}

/// RFC 4180, one thread's context after the other separated by blanks, empty where there is none.
/// Programs of a pair are separated in the same way.
/// The last column is the campaign, or the part, that measured the row. Before it are the
/// campaign's unit and, if a search counted them, how many different assignments there are.
/// `pinwise bound` reads both.
pub(super) fn csv(document: &CampaignExportJson) -> String {
    let mut text = String::from(
        "number,purpose,cpus,n,policy,memory,benchmarks,programs,windows,value,performance,\
         duration_s,spread,elapsed_s,error,retry,unit,assignments,campaign\n",
    );
    write_rows(document, &mut text);
    text
}

/// A number as programs read it, with an exponent where it would have many zeros.
fn decimal(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-5..1e15 => value.to_string(),
        _ => format!("{value:e}"),
    }
}

fn write_rows(document: &CampaignExportJson, text: &mut String) {
    let new = &document.campaign.new;
    let assignments = pinwise_jobs::assignment_count(&document.campaign);
    for row in &document.records {
        let number = |value: Option<f64>| value.map_or_else(String::new, decimal);
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let cpus = row.cpus.as_ref().map_or_else(
            || if row.policy.is_some() { String::new() } else { "unpinned".to_owned() },
            |cpus| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        );
        let cells = [
            row.number.to_string(),
            word(serde_json::json!(row.purpose)),
            cpus,
            row.n.map_or_else(String::new, |n| n.to_string()),
            row.policy.clone().unwrap_or_default(),
            row.memory.map_or_else(String::new, |memory| memory.name().to_owned()),
            row.benchmarks.as_ref().map_or_else(String::new, |names| names.join(" ")),
            quoted(&row.programs.as_ref().map_or_else(String::new, |names| names.join(" "))),
            row.windows.to_string(),
            number(row.value),
            number(row.performance),
            number(row.duration_s),
            number(row.spread),
            decimal(row.elapsed_s),
            quoted(row.error.as_deref().unwrap_or_default()),
            word(serde_json::json!(row.retry)),
            quoted(&new.unit.name),
            assignments.clone().unwrap_or_default(),
            document.campaign.id.0.to_string(),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    for part in &document.parts {
        write_rows(part, text);
    }
}

/// `names` are those of the benchmarks or the programs, by their index.
fn rows(info: &CampaignInfo, records: &[Record], names: &[String]) -> Vec<RecordJson> {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let leaves = tree.leaves();
    let cpu = |leaf: &u32| Some(leaves.get(*leaf as usize)?.0);
    let row = |record: &Record| {
        let measured = record.outcome.as_ref().ok();
        let failed = record.outcome.as_ref().err();
        RecordJson {
            number: record.number,
            purpose: record.trial.purpose,
            cpus: match &record.trial.setting {
                Setting::Unpinned | Setting::Coscheduled(_) => None,
                Setting::Pinned(assignment) => {
                    Some(assignment.leaves().iter().filter_map(cpu).collect())
                }
                Setting::Profile(parts) => {
                    Some(parts.iter().flat_map(|part| &part.leaves).filter_map(cpu).collect())
                }
                Setting::Threads(count) => count.placed.as_ref().and_then(|placed| match placed {
                    Placed::At(at) => Some(at.leaves().iter().filter_map(cpu).collect()),
                    Placed::By(_) => None,
                }),
                Setting::Pair(from, to) => Some(vec![from.0, to.0]),
                Setting::Caches(cpu) => Some(vec![cpu.0]),
                Setting::Benchmarks(seating) => {
                    Some(seating.seats.iter().filter_map(|seat| cpu(&seat.leaf)).collect())
                }
            },
            instances: match &record.trial.setting {
                Setting::Profile(parts) => Some(parts.iter().map(|part| part.instance).collect()),
                _ => None,
            },
            n: match &record.trial.setting {
                Setting::Threads(count) => count.n,
                _ => None,
            },
            policy: match &record.trial.setting {
                Setting::Threads(count) => count.placed.as_ref().and_then(|placed| match placed {
                    Placed::At(_) => None,
                    Placed::By(policy) => Some(policy.name().to_owned()),
                }),
                Setting::Coscheduled(ThreadMoves::Counted) => Some("counted".to_owned()),
                Setting::Coscheduled(ThreadMoves::Apart) => Some("apart".to_owned()),
                Setting::Coscheduled(ThreadMoves::Dealt(seed)) => Some(format!("dealt {seed}")),
                _ => None,
            },
            memory: match &record.trial.setting {
                Setting::Threads(count) => Some(count.memory).filter(|memory| !memory.is_leave()),
                _ => None,
            },
            programs: match &record.trial.setting {
                Setting::Profile(parts) => {
                    parts.iter().map(|part| names.get(part.instance).cloned()).collect()
                }
                _ if info.new.kind == Kind::Cosched => {
                    let period = record.detail().and_then(|detail| detail.read().ok());
                    let named = |period: CoscheduledPeriod| {
                        period.programs.into_iter().map(|program| program.name).collect()
                    };
                    period.map(named)
                }
                _ => None,
            },
            benchmarks: match &record.trial.setting {
                Setting::Benchmarks(seating) => {
                    let seats = seating.seats.iter();
                    seats.map(|seat| names.get(seat.benchmark).cloned()).collect()
                }
                _ => None,
            },
            windows: record.trial.effort.windows,
            value: measured
                .map(|measured| info.new.unit.quantity(measured.performance))
                .filter(|value| value.is_finite()),
            performance: measured.map(|measured| measured.performance),
            duration_s: measured.map(|measured| measured.duration.as_secs_f64()),
            spread: measured.and_then(|measured| measured.spread),
            elapsed_s: record.elapsed.as_secs_f64(),
            error: failed.map(|error| error.message.clone()),
            retry: failed.map(|error| error.retry),
            expired: failed.is_some_and(|error| error.expired),
            below_floor: failed.is_some_and(|error| error.below_floor)
                || measured.is_some_and(|measured| {
                    Probed::of(measured).is_ok_and(|probed| probed.below_floor)
                }),
            detail: record.detail().cloned(),
        }
    };
    records.iter().map(row).collect()
}

/// A cell. A name in it cannot control a terminal.
fn quoted(text: &str) -> String {
    let text = &*printable(text);
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{CampaignId, CampaignState, NewCampaign, Trial};
    use pinwise_measure::{
        Effort, MeasureError, Measurement, PinnedInstance, ProgramProgress, Seat, Seating,
        ThreadCount, Unit, Workload,
    };
    use pinwise_topology::{Alike, Assignment, Machine, Policy};
    use std::time::Duration;

    #[test]
    fn a_message_with_commas_and_quotes_stays_one_cell() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("no \"x\", sorry"), "\"no \"\"x\"\", sorry\"");
    }

    #[test]
    fn large_and_small_numbers_have_an_exponent() {
        let written = [0.0, 1.5, -123_456.75, 1e-5, 2.5e-7, 1e15, -3e75, f64::MAX].map(decimal);
        assert_eq!(written[..4], ["0", "1.5", "-123456.75", "0.00001"]);
        assert_eq!(written[4..], ["2.5e-7", "1e15", "-3e75", "1.7976931348623157e308"]);
    }

    #[test]
    fn a_row_says_which_programs_it_is_about_and_how_they_were_moved() {
        let info = |kind| CampaignInfo { new: NewCampaign { kind, ..new() }, ..info() };
        let record = |setting, detail| Record {
            number: 0,
            trial: Trial { setting, purpose: Purpose::Profile, effort: Effort::default() },
            outcome: Ok(Measurement { detail, ..Measurement::new(1.0, Duration::ZERO) }),
            elapsed: Duration::ZERO,
        };
        let part = |instance| PinnedInstance { instance, leaves: vec![0] };
        let pair = |parts: &[usize]| {
            record(Setting::Profile(parts.iter().map(|&number| part(number)).collect()), None)
        };
        let names = ["xz", "b,c"].map(str::to_owned);
        let pairs = rows(&info(Kind::Pairs), &[pair(&[1]), pair(&[0, 1])], &names);
        let program = ProgramProgress {
            name: "db".to_owned(),
            processes: 1,
            ran: 1.0,
            waited: 0.0,
            instructions: None,
            contexts: Vec::new(),
        };
        let period = CoscheduledPeriod { programs: vec![program], ..CoscheduledPeriod::default() };
        let period = Detail::of(&period);
        let settings = [
            Setting::Unpinned,
            Setting::Coscheduled(ThreadMoves::Dealt(3)),
            Setting::Coscheduled(ThreadMoves::Apart),
        ];
        let periods = settings.map(|setting| record(setting, period.clone()));
        let periods = rows(&info(Kind::Cosched), &periods, &[]);
        for (records, expected) in [
            (pairs, vec!["0,,,,,\"b,c\"", "0 0,,,,,\"xz b,c\""]),
            (periods, vec!["unpinned,,,,,db", ",,dealt 3,,,db", ",,apart,,,db"]),
        ] {
            let csv = csv(&CampaignExportJson {
                campaign: info(Kind::Pairs),
                answer: None,
                disturbances: Vec::new(),
                records,
                parts: Vec::new(),
            });
            let told = csv.lines().skip(1).zip(&expected);
            assert_eq!(csv.lines().count(), expected.len() + 1);
            for (line, expected) in told {
                assert!(line.contains(&format!(",{expected},1,")), "{line}");
            }
        }
    }

    fn new() -> NewCampaign {
        NewCampaign {
            kind: Kind::Characterize,
            parent: None,
            command: Vec::new(),
            machine: Machine::from_shape("2").unwrap(),
            alike: Alike::ByStructure,
            workload: Workload::new("microbenchmarks", &[]),
            unit: Unit::rate("1/s"),
            simulated: false,
            question: serde_json::Value::Null,
            seed: 1,
        }
    }

    fn info() -> CampaignInfo {
        CampaignInfo {
            id: CampaignId(7),
            new: new(),
            started: 0,
            state: CampaignState::Finished,
            conclusion: None,
            records: 4,
            running: false,
        }
    }

    /// What was tried is in the rows: the number beside the CPUs, a policy, benchmarks. So is what
    /// else was observed, and why there is no value.
    #[test]
    fn a_row_has_what_was_tried_and_all_that_was_observed() {
        let info = info();
        let followed = Setting::Threads(ThreadCount {
            n: Some(2),
            placed: Some(Placed::By(Policy::Compact)),
            memory: MemoryPolicy::Follow,
        });
        let threads =
            |placed| Setting::Threads(ThreadCount { placed, ..ThreadCount::unpinned(Some(2)) });
        let seats = vec![Seat { leaf: 1, benchmark: 1 }, Seat { leaf: 0, benchmark: 0 }];
        let settings = [
            threads(Some(Placed::At(Assignment::new(vec![0, 1])))),
            followed,
            threads(None),
            Setting::Benchmarks(Seating { seats, seed: 1 }),
        ];
        let detail = Detail::of(&serde_json::json!({ "locked": 0.25 }));
        let measured = Measurement::new(1.0, Duration::ZERO);
        let record = |(number, setting)| Record {
            number,
            trial: Trial { setting, purpose: Purpose::Other, effort: Effort::default() },
            outcome: match number {
                0 => Ok(Measurement { detail: detail.clone(), ..measured.clone() }),
                1 => Err(MeasureError::below_floor("slow")),
                2 => Err(MeasureError::expired("late")),
                _ => Err(MeasureError::new(Retry::Never, "no number")),
            },
            elapsed: Duration::ZERO,
        };
        let records: Vec<Record> = (0..).zip(settings).map(record).collect();
        let names = ["intadd", "mem"].map(str::to_owned);
        let records = rows(&info, &records, &names);
        let observed = records.iter().map(|row| {
            let row = serde_json::to_value(row).unwrap();
            ["detail", "below_floor", "expired"].map(|field| row[field].clone())
        });
        let expected = [
            serde_json::json!([{ "locked": 0.25 }, false, false]),
            serde_json::json!([null, true, false]),
            serde_json::json!([null, false, true]),
            serde_json::json!([null, false, false]),
        ];
        assert_eq!(serde_json::json!(observed.collect::<Vec<_>>()), serde_json::json!(expected));
        let csv = csv(&CampaignExportJson {
            campaign: info,
            answer: None,
            disturbances: Vec::new(),
            records,
            parts: Vec::new(),
        });
        let tried: Vec<String> = csv
            .lines()
            .map(|line| line.split(',').skip(2).take(6).collect::<Vec<_>>().join(","))
            .collect();
        let expected = [
            "cpus,n,policy,memory,benchmarks,programs",
            "0 1,2,,,,",
            ",2,compact,follow,,",
            "unpinned,2,,,,",
            "1 0,,,,mem intadd,",
        ];
        assert_eq!(tried, expected);
    }
}
