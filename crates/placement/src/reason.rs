//! Why a search is made the way it is, and why it stopped: values, each with its text.

use crate::LevelSource;
use pinwise_figures::{counted, duration, group, percent};
use pinwise_measure::value_or_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Why a search stopped, or went on from searching to fresh windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StopReason {
    /// After repeated rounds over all assignments, few can still be the best.
    FewLeft {
        /// How many.
        left: u64,
        /// All assignments.
        of: u64,
        /// Rounds.
        rounds: u64,
    },
    /// The best assignments tie.
    Tied {
        /// How many.
        left: u64,
        /// All assignments.
        of: u64,
        /// To within this share.
        within: f64,
    },
    /// The best came near the bound.
    NearBound {
        /// The upper end of the gap.
        gap: f64,
        /// The gap asked for.
        within: f64,
        /// The method of the bound ([`crate::Bound::method`]).
        method: String,
    },
    /// The best of a random sample came near the bound.
    SampleNearBound {
        /// The size of the sample.
        drawn: u64,
        /// The gap by which the method decides.
        gap: f64,
        /// The gap asked for.
        within: f64,
    },
    /// A random sample is complete.
    Sampled {
        /// Its size.
        drawn: u64,
    },
    /// Many random assignments in a row could not be measured.
    SampleFailed {
        /// How many.
        last: u64,
    },
    /// Climbing found nothing better.
    Fruitless {
        /// The last climbs, all without success.
        climbs: u64,
    },
    /// There is no assignment left to climb from.
    NoStartLeft {
        /// Assignments climbed from.
        climbs: u64,
    },
    /// There was too little to learn a predictor from.
    NoPredictor,
    /// None of the experiments of the profile could be made.
    NoProfile,
    /// The assignments most promising by prediction were measured.
    Predicted {
        /// How many.
        measured: u64,
        /// Their number follows from how far predictions were off, and was not given.
        by_error: bool,
    },
    /// Instances were measured alone.
    MeasuredAlone,
    /// Searching used its share of the budget.
    SearchShareUsed {
        /// The share used.
        share: f64,
        /// The rest remains for fresh windows.
        rest: bool,
    },
    /// The budget is used up.
    BudgetUsed {
        /// Seconds that another measurement takes, where much time is left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        another_seconds: Option<f64>,
        /// Seconds that are left, where they are many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_seconds: Option<f64>,
    },
    /// The fresh windows are as precise as asked.
    Precise {
        /// Fresh windows of each assignment.
        windows: u64,
        /// To within this share.
        precision: f64,
    },
    /// No assignment could be measured.
    NoAssignment,
    /// Not even the unpinned program could be measured.
    NothingMeasured {
        /// The last error.
        error: String,
    },
    /// The campaign is still running.
    Running,
    /// The campaign was stopped or killed.
    Interrupted {
        /// It was killed.
        killed: bool,
        /// The command that resumes it.
        resume: String,
    },
    /// Text: from a store that was written before reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

/// Why a search is made the way it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StrategyReason {
    /// Not chosen yet.
    NotChosen,
    /// Every assignment is measured, since the budget allows it.
    Exhaustive {
        /// All assignments, as a decimal number.
        assignments: String,
        /// How often the budget allows it, at least.
        times: u64,
    },
    /// Every assignment is measured, as asked.
    ExhaustiveAsked {
        /// All assignments, as a decimal number.
        assignments: String,
        /// The budget allows it.
        fits: bool,
    },
    /// A predictor that is learned chooses what to measure.
    Guided {
        /// Random assignments that it is first learned from.
        uniform: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// A random sample, then climbing: the budget is too small to learn from.
    SampleThenClimb {
        /// Measurements that searching has room for.
        room: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// A random sample, as asked.
    RandomAsked {
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// Climbing from the best of a random sample, as asked.
    ClimbAsked {
        /// Size of the sample.
        start: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// BlackBox, as asked.
    BlackBoxAsked {
        /// Experiments with one instance alone.
        base: u64,
        /// The sharing level up to which threads are measured with others.
        level: String,
        /// Why that level.
        #[serde(deserialize_with = "value_or_text")]
        because: LevelSource,
        /// Upper limit of the experiments with a thread and others.
        most: u64,
        /// All such experiments.
        of: u64,
    },
    /// The strategy asked for cannot be used.
    Refused {
        /// Why.
        error: String,
    },
    /// Any number of threads may share a context, since all such assignments fit the budget.
    AnyPerContext,
    /// At most one thread has a context.
    OnePerContext,
    /// First instances are measured alone.
    AloneFirst,
    /// Text: from a store that was written before reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

/// The reasons in one line.
pub fn joined<T: fmt::Display>(reasons: &[T]) -> String {
    reasons.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}

pinwise_measure::text_in_old_stores!(StopReason);

pinwise_measure::text_in_old_stores!(StrategyReason);

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds =
            |seconds: f64| duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO));
        match self {
            Self::FewLeft { left, of, rounds } => {
                let left = counted(*left, "assignment");
                write!(f, "after {rounds} rounds, {left} of {of} may be the best")
            }
            Self::Tied { left, of, within } => {
                let within = percent(*within);
                write!(f, "the best {left} of {of} assignments tie to within {within}")
            }
            Self::NearBound { gap, within, method } => {
                let [gap, within] = [*gap, *within].map(percent);
                write!(f, "the best came within {gap} of the {method} bound ({within} asked for)")
            }
            Self::SampleNearBound { drawn, gap, within } => {
                let [gap, within] = [*gap, *within].map(percent);
                write!(
                    f,
                    "the best of {drawn} random assignments came within {gap} of the bound \
                     ({within} asked for)"
                )
            }
            Self::Sampled { drawn } => write!(f, "{drawn} random assignments were measured"),
            Self::SampleFailed { last } => {
                write!(f, "of the last {last} random assignments none could be measured")
            }
            Self::Fruitless { climbs } => {
                write!(f, "the last {climbs} climbs found nothing better")
            }
            Self::NoStartLeft { climbs } => {
                write!(f, "no random start is left after {climbs} assignments climbed from")
            }
            Self::NoPredictor => f.write_str("too little could be measured to learn from"),
            Self::NoProfile => {
                f.write_str("the profile predicts nothing: none of its experiments could be made")
            }
            Self::Predicted { measured, by_error } => {
                write!(f, "the {measured} assignments most promising by prediction were measured")?;
                match by_error {
                    true => f.write_str(
                        ": those that may be as good as the best, by how far predictions were off",
                    ),
                    false => Ok(()),
                }
            }
            Self::MeasuredAlone => f.write_str("instances were measured alone"),
            Self::SearchShareUsed { share, rest } => {
                let rest = if *rest { ", the rest is for fresh windows" } else { "" };
                write!(f, "searching had used {} of the budget{rest}", percent(*share))
            }
            Self::BudgetUsed { another_seconds: Some(another), left_seconds: Some(left) } => {
                write!(
                    f,
                    "the budget is used up: another measurement takes about {}, {} are left",
                    seconds(*another),
                    seconds(*left)
                )
            }
            Self::BudgetUsed { .. } => f.write_str("the budget is used up"),
            Self::Precise { windows, precision } => {
                let precision = percent(*precision);
                write!(f, "{windows} fresh windows each are precise to {precision}")
            }
            Self::NoAssignment => f.write_str("no assignment could be measured"),
            Self::NothingMeasured { error } => write!(f, "nothing could be measured: {error}"),
            Self::Running => f.write_str("it is still running"),
            Self::Interrupted { killed, resume } => {
                let how = if *killed { "killed" } else { "stopped" };
                write!(f, "it was {how}; continue with: {resume}")
            }
            Self::Text { text } => f.write_str(text),
        }
    }
}

impl fmt::Display for StrategyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotChosen => f.write_str("not chosen yet"),
            Self::Exhaustive { assignments, times } => {
                let times =
                    if *times == 1 { "once".to_owned() } else { format!("{times} times over") };
                let count = group(assignments);
                write!(f, "exhaustive: the {count} assignments fit the budget {times}")
            }
            Self::ExhaustiveAsked { assignments, fits } => {
                let count = group(assignments);
                write!(f, "exhaustive, as asked: {count} assignments")?;
                match fits {
                    true => Ok(()),
                    false => f.write_str("; the budget may end before all of them are measured"),
                }
            }
            Self::Guided { uniform, assignments } => write!(
                f,
                "guided: a predictor learned from {uniform} random assignments and all later ones \
                 chooses what to measure; {} assignments are too many to measure each",
                group(assignments)
            ),
            Self::SampleThenClimb { room, assignments } => write!(
                f,
                "random sampling for the bound, then climbing from its best: searching has room \
                 for about {}, too few to measure each of {} assignments or to learn from",
                counted(*room, "measurement"),
                group(assignments)
            ),
            Self::RandomAsked { assignments } => {
                write!(f, "random sampling, as asked: {} assignments", group(assignments))
            }
            Self::ClimbAsked { start, assignments } => write!(
                f,
                "climbing from the best of {start} random assignments, as asked: {} in all",
                group(assignments)
            ),
            Self::BlackBoxAsked { base, level, because, most, of } => {
                // An earlier version left it out where it decided nothing.
                let because = match because {
                    LevelSource::Text { text } if text.is_empty() => String::new(),
                    because => format!(" ({because})"),
                };
                write!(
                    f,
                    "blackbox, as asked: a profile of one instance alone ({base} experiments) and \
                     of each thread with co-runners in its {level}{because}, {most} of {of} \
                     experiments at most; then the most promising are measured"
                )
            }
            Self::Refused { error } => f.write_str(error),
            Self::AnyPerContext => f.write_str(
                "any number of threads per context, since all such assignments fit the budget",
            ),
            Self::OnePerContext => f.write_str("at most one thread per context"),
            Self::AloneFirst => {
                f.write_str("first what instances do alone, which bounds what they do together")
            }
            Self::Text { text } => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_stored_with_its_kind_and_values_and_read_back() {
        let precise = StopReason::Precise { windows: 6, precision: 0.01 };
        let written = serde_json::to_value(&precise).unwrap();
        assert_eq!(
            written,
            serde_json::json!({ "kind": "precise", "windows": 6, "precision": 0.01 })
        );
        assert_eq!(serde_json::from_value::<StopReason>(written).unwrap(), precise);
        let used = StopReason::BudgetUsed { another_seconds: None, left_seconds: None };
        assert_eq!(
            joined(&[used, precise]),
            "the budget is used up; 6 fresh windows each are precise to 1.0 %"
        );
        let (another_seconds, left_seconds) = (Some(5.5), Some(2.5));
        assert_eq!(
            StopReason::BudgetUsed { another_seconds, left_seconds }.to_string(),
            "the budget is used up: another measurement takes about 5.5 s, 2.5 s are left"
        );
    }
}
