//! The notes of measurements as text, and as JSON: the kind, its values and the text. While it
//! runs, a job says a [`Notice`](crate::Notice).

use crate::doctor::counter_event;
use crate::figures;
use crate::other_load::busy;
use pinwise_campaign::CampaignInfo;
use pinwise_measure::{LeftAlone, MemoryPolicy, MemoryUse, ProgramNote};
use pinwise_placement::Outcome;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Notes as sentences, each with its kind and values.
pub fn tagged_program_notes(notes: &[ProgramNote]) -> Vec<Value> {
    notes.iter().map(|met| tagged(met, sentence(&note(met)))).collect()
}

/// A note as text that begins small and has no full stop.
pub fn note(note: &ProgramNote) -> String {
    match note {
        ProgramNote::Busy { share } => busy(*share, "measurements"),
        ProgramNote::ThreadsReplaced { times } => {
            let times = figures::counted(*times, "time");
            format!("threads ended and new ones took their places {times}: use apply --watch")
        }
        ProgramNote::ThreadsAppeared { threads: 1 } => {
            "a thread or child process appeared after the thread scan, unplaced: place it again now"
                .to_owned()
        }
        ProgramNote::ThreadsAppeared { threads } => format!(
            "{threads} threads or child processes appeared after the thread scan, unplaced: place \
             it again now"
        ),
        ProgramNote::ThreadsMoved { threads, name, cpus, by } => {
            let whom = match threads {
                1 => format!("thread {name} was"),
                more => format!("{more} threads, such as {name}, were"),
            };
            format!("{whom} moved to CPU {cpus} by {by}: stop that")
        }
        ProgramNote::WithoutEvents { events } => {
            let events: Vec<&str> = events.iter().map(|&event| counter_event(event)).collect();
            let events = events.join(", ");
            format!("not counted here: {events}; see pinwise doctor, or use --rule seen")
        }
        ProgramNote::ThreadsLeftToOthers { threads, by } => format!(
            "{} moved by {by}, and left alone since: stop that",
            match threads {
                1 => "a thread was".to_owned(),
                more => format!("{more} threads were"),
            }
        ),
        ProgramNote::ProgramsEnded => {
            "it ended early: fewer than two of the programs still ran; repeat with longer ones"
                .to_owned()
        }
        ProgramNote::CpusAway { cpus, seconds } => format!(
            "CPU {cpus} went away and came back: the search waited {} for it",
            time(*seconds)
        ),
        ProgramNote::ThreadMissing { runs, of } => {
            format!(
                "its threads vary: in {runs} of {of} runs a placed thread did not appear; use \
                 --exclude"
            )
        }
        ProgramNote::ThreadUnknown { runs, of } => format!(
            "its threads vary: in {runs} of {of} runs a new busy thread was not placed; place it \
             again"
        ),
        ProgramNote::NotSteady { n } => {
            format!("with n = {n} its progress never became steady: use a longer --window")
        }
        ProgramNote::BelowFloor { n } => {
            format!("with n = {n} the program fell below --floor: lower --floor to measure it")
        }
        ProgramNote::MaybeTotal => {
            "the metric never fell: use --counter if it is a total; if it is a rate, repeat when \
             warm"
                .to_owned()
        }
        ProgramNote::MetricRead { counter: true, by_name } => {
            let why = if *by_name { "by its name" } else { "it only grew" };
            format!(
                "read as a counter: its rate is measured ({why}; use --gauge if it is not a \
                 counter)"
            )
        }
        ProgramNote::MetricRead { counter: false, by_name } => {
            let why = if *by_name { "by its name" } else { "it went down" };
            format!("read as a gauge: its mean is measured ({why}; use --counter if it only grows)")
        }
        ProgramNote::LinesAdded { lines, seconds } => {
            format!("{lines} lines each {}: their numbers are added up", time(*seconds))
        }
        ProgramNote::MetricRare { seconds } => format!(
            "the program prints every {}: a measurement takes up to {}; for faster ones try cmd: \
             or prom:",
            time(*seconds),
            time(2.0 * seconds)
        ),
        ProgramNote::MetricSlow { seconds } => {
            let takes = time(*seconds);
            format!(
                "a reading of the metric takes {takes} or more: use a faster one, such as file: or \
                 prom:"
            )
        }
        ProgramNote::MetricStill => {
            "it did not change while pinwise watched it: put the program under load".to_owned()
        }
        ProgramNote::MetricRenewed { seconds } => {
            format!("it changes about every {}: shorter windows are stretched", time(*seconds))
        }
        ProgramNote::PeriodStretched { seconds, asked } => {
            format!("--window is {}, not {}: the metric needs it", time(*seconds), time(*asked))
        }
        ProgramNote::LeftAlone { reason, names } => {
            let reason = match reason {
                LeftAlone::HardlyRuns => {
                    let share = 100.0 * LeftAlone::HARDLY_RUNS;
                    format!("each uses less than {share:.0} % of a CPU")
                }
                LeftAlone::NotIncluded => "--include does not name them".to_owned(),
                LeftAlone::Excluded => "--exclude names them".to_owned(),
                LeftAlone::Unknown => "they are new to the campaign (place again)".to_owned(),
                LeftAlone::Confined => "their CPUs do not fit (use taskset -apc)".to_owned(),
            };
            format!("threads not placed, since {reason}: {}", with_counts(names))
        }
        ProgramNote::KeepsTo { names, cpus } => {
            format!("placed only within their own affinity (CPU {cpus}): {}", with_counts(names))
        }
        ProgramNote::NotPunctual { error } => {
            format!("windows are less punctual: no SCHED_FIFO ({error}); allow `ulimit -r 1`")
        }
        ProgramNote::NoInstructions { error } => {
            format!("instructions cannot be counted ({error}): use --metric or --per-run")
        }
        ProgramNote::PinnedBefore { threads, of } => format!(
            "{threads} of {of} threads were pinned before, also when \"unpinned\": try pinwise \
             apply --undo --pid PID"
        ),
        ProgramNote::OfflineForgotten { cpus } => format!(
            "Linux before 6.2 does not restore CPU {cpus}, which is offline: use taskset -ap when \
             it is online"
        ),
        ProgramNote::NothingKept { error } => format!(
            "nothing is kept for a kill of pinwise and its helper ({error}): set XDG_DATA_HOME"
        ),
        ProgramNote::ThreadsMissed => {
            "runs are so short that threads went unseen: n counts instead; measure longer \
             runs"
                .into()
        }
        ProgramNote::LockUnseen => {
            "LOCK is not visible here and counts as 0: run pinwise as the program's user".to_owned()
        }
        ProgramNote::MigrationsUnseen => {
            "MIGR_RATE is not visible here and counts as 0: use --method survey, or see pinwise \
             doctor"
                .to_owned()
        }
        ProgramNote::OneMemoryNode => "one memory node: --memory has no effect".to_owned(),
        ProgramNote::MemoryRemote { share } => format!(
            "{} of its memory is on nodes without its threads: try --memory follow",
            figures::percent(*share)
        ),
        ProgramNote::MemoryNotMoved { share } => format!(
            "{} of its memory could not follow: free memory on the node, or give pinwise \
             CAP_SYS_NICE",
            figures::percent(*share)
        ),
        ProgramNote::MemoryNotReturned { share } => format!(
            "{} of its memory is on other nodes than before: start the program again",
            figures::percent(*share)
        ),
        ProgramNote::NumaBalancing { pages, .. } => format!(
            "NUMA balancing moved {} on this machine: set kernel.numa_balancing to 0",
            figures::counted(*pages, "page")
        ),
        ProgramNote::NodeLost { node, error } => {
            format!("node {node} did not measure to the end: {error}")
        }
        ProgramNote::NodeScaled { node, factor, error } => format!(
            "node {node} differs: its values count {factor:.4} times, give or take {}",
            figures::percent(*error)
        ),
        ProgramNote::NodesAlike { nodes, references, checks, missed } => format!(
            "{nodes} nodes, {} of {references} windows each: differences up to {} go unseen",
            figures::counted(*checks, "check"),
            figures::percent(*missed)
        ),
        ProgramNote::Text { text } => text.clone(),
    }
}

/// The memory under which the answer of a placement holds, if it lies on one of several nodes.
pub fn outcome_memory(info: &CampaignInfo, outcome: &Outcome) -> Option<String> {
    let several = info.new.machine.memory_nodes().len() > 1;
    outcome.memory.as_ref().filter(|_| several).map(memory)
}

/// The memory under which the answer of a search holds that never moves it. `None` on a machine
/// with one node of memory, and on a model.
pub fn unmoved_memory(info: &CampaignInfo) -> Option<MemoryPolicy> {
    let machine = &info.new.machine;
    (machine.memory_nodes().len() > 1 && !info.new.simulated).then_some(MemoryPolicy::Leave)
}

/// Memory, in words: `follow: 98 % of 12,345 pages on node 0, 2 % on node 1`. Then the share of
/// local accesses, if it is known.
pub fn memory(held: &MemoryUse) -> String {
    let policy = held.policy.name();
    let total = held.nodes.total();
    if total == 0 {
        return format!("{policy}; where the memory lay is not known");
    }
    let mut nodes: Vec<(u32, u64)> = held.nodes.iter().collect();
    nodes.sort_by_key(|&(node, pages)| (std::cmp::Reverse(pages), node));
    let share = |pages: u64| figures::percent(pages as f64 / total as f64);
    let on = nodes.iter().enumerate().map(|(index, &(node, pages))| match index {
        0 => format!("{} of {} on node {node}", share(pages), figures::counted(total, "page")),
        _ => format!("{} on node {node}", share(pages)),
    });
    let local = held.local.map_or(String::new(), |share| {
        format!("; {} of all accesses seen in the search were local", figures::percent(share))
    });
    format!("{policy}: {}{local}", on.collect::<Vec<_>>().join(", "))
}

/// `417 ms`.
pub(crate) fn time(seconds: f64) -> String {
    figures::duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// `text`, which begins small and has no full stop, as a sentence. The number n stays small.
pub fn sentence(text: &str) -> String {
    if text.starts_with("n = ") {
        return format!("{text}.");
    }
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    format!("{}{}.", first.into_iter().flatten().collect::<String>(), letters.as_str())
}

/// A value serialized with its `kind` and its `text`. JSON has notes and reasons in this form: a
/// program uses the kind, a person the text.
pub fn tagged(value: &impl Serialize, text: impl Into<String>) -> Value {
    let mut tagged = match serde_json::to_value(value) {
        Ok(value @ Value::Object(_)) => value,
        // Values of a kind are objects.
        _ => json!({ "kind": "text" }),
    };
    tagged["text"] = Value::String(text.into());
    tagged
}

/// The texts of values that are [`tagged`], or were plain text in documents of earlier versions.
pub fn texts(tagged: &[Value]) -> Vec<String> {
    let text = |one: &Value| one.as_str().or(one["text"].as_str()).unwrap_or_default().to_owned();
    tagged.iter().map(text).collect()
}

/// Names of threads, with their number where several have one.
fn with_counts(names: &BTreeMap<String, usize>) -> String {
    let name = |(name, count): (&String, &usize)| match count {
        1 => name.clone(),
        _ => format!("{name} ({count} of them)"),
    };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_a_capital_but_for_the_number() {
        assert_eq!(sentence("its threads vary"), "Its threads vary.");
        assert_eq!(sentence("n = 4 is set now"), "n = 4 is set now.");
    }

    #[test]
    fn threads_left_alone_are_listed_once_per_name() {
        let names = [("log".to_owned(), 1), ("mc-worker".to_owned(), 2)].into();
        let mut left = ProgramNote::LeftAlone { reason: LeftAlone::HardlyRuns, names };
        assert_eq!(
            note(&left),
            "threads not placed, since each uses less than 1 % of a CPU: log, mc-worker (2 of them)"
        );
        let json = json!({
            "kind": "left_alone",
            "reason": "hardly_runs",
            "names": { "log": 1, "mc-worker": 2 }
        });
        assert_eq!(serde_json::to_value(&left).unwrap(), json);
        left = ProgramNote::MetricRare { seconds: 1.5 };
        assert!(note(&left).starts_with("the program prints every 1.5 s: a measurement takes up"));
    }

    #[test]
    fn a_note_in_json_has_its_kind_its_values_and_its_text() {
        let missing = ProgramNote::ThreadMissing { runs: 2, of: 9 };
        assert_eq!(
            tagged(&missing, sentence(&note(&missing))),
            json!({
                "kind": "thread_missing",
                "runs": 2,
                "of": 9,
                "text": "Its threads vary: in 2 of 9 runs a placed thread did not appear; use \
                 --exclude."
            })
        );
    }
}
