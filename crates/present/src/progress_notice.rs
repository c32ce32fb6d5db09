//! What a job says while it runs, as values and as text.

use crate::figures;
use crate::gain::budget_with_margin;
use crate::note::{note, time};
use crate::reason::unmeasured_remedy;
use crate::threads::{is_set, threads_note};
use crate::verdict::budget_for;
use pinwise_linux::LeftChanged;
use pinwise_measure::ProgramNote;
use pinwise_placement::Unmeasured;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Something that a job says while it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// What a killed pinwise had left changed is put back. Or this one could not put back what it
    /// changed.
    PutBack {
        /// What it had changed.
        what: LeftChanged,
        /// Whether it was put back. If not, the next start tries again.
        worked: bool,
    },
    /// Something that was changed could not be put back, and no notes say what.
    NotPutBack,
    /// The store was written by an earlier version. It is upgraded.
    StoreUpgraded {
        /// Where the store as it was is copied to.
        copy: PathBuf,
    },
    /// Slurm has no free node yet.
    NodesQueued {
        /// How many nodes are asked for.
        nodes: usize,
    },
    /// The metric reads a file that the program has not created yet.
    FileAwaited {
        /// The file.
        file: PathBuf,
    },
    /// The first run of a program that is timed goes on.
    StillRuns {
        /// The program.
        name: String,
        /// How long it has run.
        after: Duration,
        /// When it is ended.
        limit: Duration,
    },
    /// The characterization of this machine cannot be read, so the usual level counts as the one
    /// within which threads interfere.
    Uncharacterized {
        /// Why it cannot be read.
        error: String,
    },
    /// What profiling takes.
    Profiling(ProfilingOutlook),
    /// Much of the budget of time is spent before the first measurement.
    BudgetSpent {
        /// Seconds spent.
        spent: f64,
        /// Seconds left.
        left: f64,
    },
    /// The budget of time has no room for the measurements of a verdict.
    FewMeasurements {
        /// Measurements that it has room for.
        fits: u64,
        /// Measurements of a verdict.
        enough: u64,
        /// Seconds of each.
        each: f64,
        /// Seconds spent before the first one.
        spent: f64,
    },
    /// What a comparison takes.
    ComparisonTakes {
        /// How many searches it makes first.
        searches: usize,
        /// Seconds of all of them.
        searching: f64,
        /// Rounds of the last comparison.
        rounds: usize,
        /// Seconds of these, about.
        comparing: f64,
    },
    /// A budget of time has no room for the fewest rounds of a comparison.
    NoRoomToCompare {
        /// Seconds that these take.
        needed: f64,
        /// Seconds of each measurement.
        each: f64,
    },
    /// The budget has no room for narrow intervals in the last comparison of a search.
    WideIntervals {
        /// Seconds of each window.
        each: f64,
        /// Seconds of the whole search at least, if that is more than the budget.
        #[serde(skip_serializing_if = "Option::is_none")]
        takes: Option<f64>,
    },
    /// A comparison makes fewer rounds than were asked for, to keep its budget.
    FewerRounds {
        /// Rounds.
        rounds: usize,
        /// Rounds that were asked for.
        asked: usize,
        /// Draws of each way that has some.
        draws: usize,
    },
    /// A search of a comparison ended before it computed its bound.
    BoundNotReached {
        /// The search.
        name: String,
        /// Random assignments after which it computes its bound.
        first: u64,
        /// Random assignments that it measured.
        drawn: u64,
    },
    /// A number of threads could not be placed again. Its first placement stands.
    NotPlacedAgain {
        /// The number.
        n: u32,
        /// Why.
        reason: Unmeasured,
    },
    /// A running process has its own number again.
    NumberReturned {
        /// The process.
        pid: i32,
        /// The number.
        n: u32,
    },
    /// A running process could not be given its own number back.
    NumberLeft {
        /// The process.
        pid: i32,
    },
    /// The caches of this machine are measured first.
    MeasuringCaches,
    /// What is measured to characterize a machine.
    Characterizing {
        /// The machine.
        machine: String,
        /// Its sharing levels, innermost first.
        levels: Vec<String>,
        /// How many benchmarks take part.
        benchmarks: usize,
        /// How many sets of programs run.
        sets: usize,
        /// How often they run, in all rounds.
        runs: usize,
        /// How many rounds there are.
        rounds: usize,
    },
    /// What to know about a search for a number of threads.
    #[serde(untagged)]
    Threads(pinwise_threads::ThreadsNote),
    /// What to know about a program and its measurements.
    #[serde(untagged)]
    Program(ProgramNote),
}

impl From<ProgramNote> for Notice {
    fn from(note: ProgramNote) -> Self {
        Self::Program(note)
    }
}

/// What profiling takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProfilingOutlook {
    /// Experiments of one instance alone.
    pub alone: f64,
    /// Experiments of a thread among others.
    pub company: f64,
    /// Seconds of each; of a model's time on a model.
    pub each: f64,
    /// Seconds of this machine for all of them, on a model.
    pub here: Option<f64>,
}

/// A notice, as text that begins small and has no full stop.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::PutBack { what, worked } => put_back(what, *worked),
        Notice::NotPutBack => "not everything was put back: look at your program's affinities \
             (taskset -acp PID)"
            .to_owned(),
        Notice::StoreUpgraded { copy } => format!(
            "the store is upgraded to this version's format; it was copied to {}",
            copy.display()
        ),
        Notice::NodesQueued { nodes } => format!(
            "Slurm has no free node yet: waiting for {} in its queue (Ctrl-C ends that)",
            figures::counted(*nodes as u64, "node")
        ),
        Notice::FileAwaited { file } => {
            format!("there is no file {} yet; waiting for the program to create it", file.display())
        }
        Notice::StillRuns { name, after, limit } => format!(
            "{name} has run for {}; it is ended after {}: raise --limit, or give --metric if it \
             runs on",
            figures::duration(*after),
            figures::duration(*limit)
        ),
        Notice::Uncharacterized { error } => {
            format!("the usual level of interference counts, because {error}; characterize again")
        }
        Notice::Profiling(outlook) => profiling_outlook(outlook),
        Notice::BudgetSpent { spent, left } => format!(
            "{} of the budget went into preparing the program, {} are left",
            time(*spent),
            time(*left)
        ),
        Notice::FewMeasurements { fits, enough, each, spent } => {
            let room = figures::count(*fits);
            let [each, spent] = [*each, *spent].map(Duration::from_secs_f64);
            let remedy = budget_for(*enough, Some(each), spent);
            format!("the budget fits about {room}; {remedy}")
        }
        Notice::ComparisonTakes { searches, searching, rounds, comparing } => format!(
            "about {}: {} for {}, then {} for the last comparison ({})",
            time(round_up(searching + comparing)),
            time(round_up(*searching)),
            match searches {
                1 => "1 search".to_owned(),
                searches => format!("{searches} searches"),
            },
            time(round_up(*comparing)),
            figures::counted(*rounds as u64, "round")
        ),
        Notice::NoRoomToCompare { needed, each } => format!(
            "the last comparison takes about {} or more ({} a window): use --budget {}",
            time(round_up(*needed)),
            time(*each),
            budget_with_margin(*needed)
        ),
        Notice::WideIntervals { each, takes: None } => format!(
            "the budget is short for narrow intervals ({} a window): the answer names a --budget",
            time(*each)
        ),
        Notice::WideIntervals { each, takes: Some(takes) } => format!(
            "the budget is short ({} a window): all takes {} or more; the answer names a --budget",
            time(*each),
            time(round_up(*takes))
        ),
        Notice::FewerRounds { rounds, asked, draws } => format!(
            "{rounds} of {} and {} of each kind fit the budget: raise --budget for more",
            figures::counted(*asked as u64, "round"),
            figures::counted(*draws as u64, "draw")
        ),
        Notice::BoundNotReached { name, first, drawn } => format!(
            "{name} computes its bound after {} random assignments, but drew {}: raise --budget",
            figures::count(*first),
            figures::count(*drawn)
        ),
        Notice::NotPlacedAgain { n, reason } => {
            format!("n = {n} was not placed again: {}", unmeasured_remedy(reason))
        }
        Notice::NumberReturned { pid, n } => format!("process {pid}: {}", is_set(*n)),
        Notice::NumberLeft { pid } => format!(
            "process {pid} did not get its number back: run the command of --set with that number"
        ),
        Notice::MeasuringCaches => {
            "measuring the caches, up to a minute; the benchmarks come after that".to_owned()
        }
        Notice::Characterizing { machine, levels, benchmarks, sets, runs, rounds } => {
            let levels = match levels.is_empty() {
                true => "no sharing level".to_owned(),
                false => format!("levels {}", levels.join(", ")),
            };
            format!(
                "{machine}: {levels}; {}, {sets} sets, {runs} runs in {}",
                figures::counted(*benchmarks as u64, "benchmark"),
                figures::counted(*rounds as u64, "round")
            )
        }
        Notice::Threads(about) => threads_note(about),
        Notice::Program(about) => note(about),
    }
}

fn put_back(what: &LeftChanged, worked: bool) -> String {
    let (owner, changed) = match what {
        LeftChanged::Affinities(pid) => (format!("process {pid}"), "affinities"),
        LeftChanged::Number(pid) => (format!("process {pid}"), "number"),
        LeftChanged::Memory(pid) => (format!("process {pid}"), "memory"),
        LeftChanged::File(path) => (format!("file {}", path.display()), "text"),
        LeftChanged::Program(pid) if worked => {
            return format!("process {pid} was ended; a killed pinwise had started it");
        }
        LeftChanged::Program(pid) => {
            return format!(
                "process {pid}, which pinwise started, cannot be ended: end it yourself"
            );
        }
    };
    if worked {
        format!("{owner} has its {changed} back; a killed pinwise had left it changed")
    } else {
        format!("{owner} did not get its {changed} back; the next start tries again")
    }
}

/// Whole seconds, where it is one or more: an estimate is no more exact.
fn round_up(seconds: f64) -> f64 {
    if seconds < 1.0 { seconds } else { seconds.ceil() }
}

/// What profiling takes, as text that begins small and has no full stop.
pub fn profiling_outlook(outlook: &ProfilingOutlook) -> String {
    let ProfilingOutlook { alone, company, each, here } = outlook;
    let all = alone + company;
    let whose = here.map_or(String::new(), |here| {
        format!(" of the model's time, at most about {} here", long_time(here))
    });
    format!(
        "at most {}, {}{whose}: {} of one instance alone, {} of a thread with co-runners",
        experiments(&all.to_string()),
        long_time(all * each),
        figures::group(&alone.to_string()),
        figures::group(&company.to_string())
    )
}

/// `1 experiment`, `2,111 experiments`.
fn experiments(count: &str) -> String {
    format!("{} experiment{}", figures::group(count), if count == "1" { "" } else { "s" })
}

/// `417 ms`, `5.5 hours`, `2.5 days`.
pub fn long_time(seconds: f64) -> String {
    const HOUR: f64 = 3600.0;
    const YEAR: f64 = 365.25 * 24.0 * HOUR;
    let figure =
        |value: f64| if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    match seconds {
        seconds if seconds < HOUR => figures::duration(Duration::from_secs_f64(seconds)),
        seconds if seconds < 48.0 * HOUR => format!("{} hours", figure(seconds / HOUR)),
        seconds if seconds < 2.0 * YEAR => format!("{} days", figure(seconds / HOUR / 24.0)),
        seconds if seconds < 1e4 * YEAR => format!("{} years", figure(seconds / YEAR)),
        seconds => format!("{:.0e} years", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_notice_has_its_kind_and_its_values_whatever_it_is_about() {
        let json = |notice: Notice| serde_json::to_value(notice).unwrap();
        assert_eq!(json(Notice::NumberLeft { pid: 7 }), json!({ "kind": "number_left", "pid": 7 }));
        assert_eq!(json(ProgramNote::MetricStill.into()), json!({ "kind": "metric_still" }));
        let cores = pinwise_threads::ThreadsNote::SharedCores;
        assert_eq!(json(Notice::Threads(cores)), json!({ "kind": "shared_cores" }));
    }

    #[test]
    fn times_are_in_the_units_of_the_published_table() {
        assert_eq!(
            [19_698.0, 214_732.0, 1_455_552.0].map(long_time),
            ["5.5 hours", "2.5 days", "17 days"]
        );
        assert_eq!([208.3e-6, 0.5].map(long_time), ["208 µs", "500 ms"]);
        assert_eq!(long_time(2.8e31), "9e23 years");
    }
}
