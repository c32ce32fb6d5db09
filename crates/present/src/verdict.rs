//! The verdict of a placement, its caveats, and what to do next. These are the same on the terminal
//! and on the page.

use crate::figures;
use crate::gain::{LONGER, budget_with_margin, gain_text, raise_budget};
use crate::note::{note, sentence, tagged, texts};
use crate::shell::{Files, quoted};
use pinwise_campaign::{CampaignInfo, CampaignState, Kind, NewCampaign};
use pinwise_measure::ProgramNote;
use pinwise_placement::{
    Budget, Gain, Outcome, OutcomeNote, PlacementQuestion, PlacementSearch, PlacementVerdict,
    StopReason,
};
use pinwise_topology::SharingTree;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// What to do, and why: `Keep the default: no assignment is better than unpinned.`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `Pin`, `Keep the default` or `Undecided`.
    pub heading: &'static str,
    /// Why: begins small and ends in a full stop.
    pub reason: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.heading, self.reason)
    }
}

/// A command to run next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// What the command does, in the imperative.
    pub what: &'static str,
    /// The command, ready to be pasted into a shell.
    pub command: String,
}

/// What qualifies the numbers of a model: begins small and has no full stop.
pub(crate) const SIMULATED: &str = "simulated: numbers are those of the model";

/// Says that the numbers of a campaign are those of a model. `None`: they are not.
pub fn simulated(info: &CampaignInfo) -> Option<String> {
    let NewCampaign { machine, kind, simulated, .. } = &info.new;
    let unpinned = match kind {
        Kind::Select | Kind::Pairs => "",
        _ => "; unpinned is a random even spread",
    };
    let of = &machine.name;
    simulated.then(|| sentence(&format!("{SIMULATED} of {of}{unpinned}")))
}

/// What qualifies the verdict, in sentences. All outputs (terminal, JSON, page, plan) show exactly
/// these notes.
pub fn notes(info: &CampaignInfo, outcome: &Outcome) -> Vec<String> {
    texts(&tagged_notes(info, outcome))
}

/// As [`notes`], each with its kind and values.
pub fn tagged_notes(info: &CampaignInfo, outcome: &Outcome) -> Vec<Value> {
    let notes = outcome.qualifications(info.new.simulated);
    notes.iter().map(|note| tagged(note, qualification(note))).collect()
}

/// What qualifies a verdict, in sentences.
pub(crate) fn qualification(about: &OutcomeNote) -> String {
    match about {
        OutcomeNote::AsFound { apart, windows, after, drifted, gain } => {
            let Some(apart) = apart else {
                let [windows, after] = [windows, after].map(|n| figures::count(*n as u64));
                return format!(
                    "Initially it made progress; unpinned later none ({windows} and {after} \
                     windows). Check that it runs."
                );
            };
            let ending = match gain {
                _ if *drifted => ". The machine or the load changed too: repeat.".to_owned(),
                Some(Gain { low, high, .. }) => {
                    let low = figures::change(*low);
                    let gain = if high.is_finite() {
                        format!("{low} to {}", figures::change(*high))
                    } else {
                        format!("at least {low}")
                    };
                    format!("; gain over it {gain}. Repeat to check.")
                }
                None => ". The OS may have placed it otherwise: repeat.".to_owned(),
            };
            let apart = figures::better_or_worse(*apart);
            format!("Initially it was {apart} than unpinned later{ending}")
        }
        OutcomeNote::Drift { change, n } => sentence(&format!(
            "the machine or the load changed: a reference became {} ({}); repeat for a bound",
            figures::better_or_worse(*change),
            figures::counted(*n as u64, "window")
        )),
        OutcomeNote::Stalled { seconds, of } => {
            let [stalled, all] =
                [seconds, of].map(|s| figures::duration(Duration::from_secs_f64(*s)));
            format!("The disk or other programs held it up for {stalled} of {all}: repeat.")
        }
        OutcomeNote::Program(met) => sentence(&note(met)),
    }
}

/// The verdict of `outcome`.
pub fn verdict(info: &CampaignInfo, question: &PlacementQuestion, outcome: &Outcome) -> Verdict {
    let (heading, reason) = match outcome.verdict {
        PlacementVerdict::Pin => {
            let gain = outcome
                .gain
                .map(|(mean, low, high)| format!(" by {}", gain_text(Gain { mean, low, high })));
            let unshown = match info.new.simulated || outcome.beats_as_found() {
                true => "",
                false => " A gain over the initial program is not shown: repeat to check.",
            };
            let gain = gain.unwrap_or_default();
            let reason = format!("the best assignment beats unpinned{gain}.{unshown}");
            return Verdict { heading: "Pin", reason };
        }
        PlacementVerdict::KeepDefault => {
            let [seen, all] = [outcome.cost.classes.to_string(), outcome.assignments.clone()];
            let reason = match seen == all {
                true => "no assignment is better than unpinned.".to_owned(),
                // The verdict covers what was measured, and nothing else.
                false => format!(
                    "none of the assignments measured ({} of {}) is better than unpinned.",
                    figures::group(&seen),
                    figures::group(&all)
                ),
            };
            return Verdict { heading: "Keep the default", reason };
        }
        PlacementVerdict::Undecided
            if outcome.best.is_none() && info.state != CampaignState::Finished =>
        {
            ("Undecided so far", "no assignment has had fresh windows yet.")
        }
        PlacementVerdict::Undecided if info.running => {
            ("Undecided so far", "the campaign is still running.")
        }
        PlacementVerdict::Undecided if info.state == CampaignState::Open => {
            ("Undecided so far", "the campaign was killed before its end.")
        }
        PlacementVerdict::Undecided if info.state == CampaignState::Stopped => {
            ("Undecided so far", "the campaign was stopped before its end.")
        }
        PlacementVerdict::Undecided if below_floor(outcome).is_some() => {
            let error = below_floor(outcome).unwrap_or_default();
            let reason =
                format!("stopped: with every assignment tried {error}. Lower --floor to go on.");
            return Verdict { heading: "Undecided", reason };
        }
        PlacementVerdict::Undecided if outcome.cost.classes == 0 && outcome.cost.failed > 0 => {
            ("Undecided", "no assignment could be measured. Check the last failure, and repeat.")
        }
        PlacementVerdict::Undecided if outcome.best.is_none() => {
            let remedy =
                enough(info, question, outcome).unwrap_or_else(|| "raise --budget".to_owned());
            let reason = format!(
                "the budget ended before an assignment had fresh windows. {}",
                sentence(&remedy)
            );
            return Verdict { heading: "Undecided", reason };
        }
        PlacementVerdict::Undecided if outcome.baseline.is_none() => {
            let remedy = match outcome.failure {
                Some(_) => "check the last failure, and repeat".to_owned(),
                None => raise_budget(question.asked_budget(), 2.0, 2.0, false),
            };
            let reason = format!("the program was not measured unpinned. {}", sentence(&remedy));
            return Verdict { heading: "Undecided", reason };
        }
        PlacementVerdict::Undecided => {
            let reason = format!(
                "the measurements do not show whether the best assignment beats unpinned. To \
                 decide it, {}.",
                decides(info, question, outcome)
            );
            return Verdict { heading: "Undecided", reason };
        }
    };
    Verdict { heading, reason: reason.to_owned() }
}

/// Why the floor left the search without an answer: how far the program fell below it.
pub(crate) fn below_floor(outcome: &Outcome) -> Option<&str> {
    outcome.stopped_because.iter().find_map(|why| match why {
        StopReason::BelowFloor { error } => Some(error.as_str()),
        _ => None,
    })
}

/// What would decide it. It is never less than the measurements of a verdict take.
fn decides(info: &CampaignInfo, question: &PlacementQuestion, outcome: &Outcome) -> String {
    let precise = |reason: &StopReason| matches!(reason, StopReason::Precise { .. });
    if outcome.stopped_because.iter().any(precise) {
        return "lower --precision".to_owned();
    }
    let busy = outcome.notes.iter().any(|note| matches!(note, ProgramNote::Busy { .. }));
    let times =
        outcome.gain.map_or(2.0, |gain| PlacementVerdict::times_to_decide(gain, question.within));
    let asked = question.asked_budget();
    let stalled = match asked {
        Budget::Time(asked) => outcome.cost.stalled.as_secs_f64() / asked.as_secs_f64(),
        Budget::Measurements(_) => 0.0,
    };
    let times = times * (1.0 - stalled).max(0.0);
    let least = least(info, question, outcome).map_or(0.0, |(enough, each)| match asked {
        Budget::Time(asked) => {
            let needed = each.as_secs_f64() * enough as f64 + question.prepared.as_secs_f64();
            LONGER * needed / asked.as_secs_f64()
        }
        Budget::Measurements(asked) => enough as f64 / asked as f64,
    });
    raise_budget(asked, times, least.max(2.0), busy)
}

/// The measurements of a verdict, and what each of this search took. The next search is not
/// expected to stall.
fn least(
    info: &CampaignInfo,
    question: &PlacementQuestion,
    outcome: &Outcome,
) -> Option<(u64, Duration)> {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let search = PlacementSearch::new(question, &tree, &info.new.workload).ok()?;
    let cost = &outcome.cost;
    let each =
        cost.time.saturating_sub(cost.stalled).checked_div(cost.measurements.try_into().ok()?)?;
    Some((search.enough(), each))
}

/// A budget that may suffice if measurements keep their mean time. It is at least twice the budget
/// that did not suffice.
fn enough(info: &CampaignInfo, question: &PlacementQuestion, outcome: &Outcome) -> Option<String> {
    let (enough, each) = least(info, question, outcome)?;
    let enough = enough.max(outcome.cost.measurements.saturating_mul(2));
    let Budget::Time(asked) = question.budget else {
        return Some(budget_for(enough, None, Duration::ZERO));
    };
    // Getting to know the program takes a measurement or more. Without a stall, the measurements
    // alone may take less than what did not suffice.
    let measuring = each.saturating_mul(enough.try_into().unwrap_or(u32::MAX));
    let spent = question.prepared.max(each).max((2 * asked).saturating_sub(measuring));
    Some(budget_for(enough, Some(each), spent))
}

/// The budget that this number of measurements takes. With `each`, it is a budget in time: `each`
/// per measurement, and `spent` for the first scan of the program.
pub fn budget_for(measurements: u64, each: Option<Duration>, spent: Duration) -> String {
    let about = figures::counted(measurements, "measurement");
    let Some(each) = each else {
        return format!("a verdict takes at least about {about}: use --budget {measurements}");
    };
    let seconds = each.as_secs_f64() * measurements as f64 + spent.as_secs_f64();
    format!(
        "a verdict takes at least about {about}, {} each: use --budget {}",
        figures::duration(each),
        budget_with_margin(seconds)
    )
}

/// What to do with the result, in the order in which it is worth trying.
pub fn next_steps(info: &CampaignInfo, outcome: &Outcome, files: Files<'_>) -> Vec<NextStep> {
    let mut steps = Vec::new();
    if let Some(plan) = files.plan
        && outcome.verdict == PlacementVerdict::Pin
    {
        let plan = quoted(&plan.to_string_lossy());
        // The plan of a simulated processor fits no real machine.
        if !info.new.simulated {
            steps.push(NextStep {
                what: "pin the threads of a running process",
                command: format!("pinwise apply {plan} --pid PID"),
            });
            steps.push(NextStep {
                what: "start the program pinned",
                command: format!("pinwise run {plan} -- CMD"),
            });
        }
        steps.push(NextStep {
            what: "write it for taskset, OpenMP, DPDK, systemd, …",
            command: format!("pinwise export {plan} --to FORMAT"),
        });
    }
    steps
}
