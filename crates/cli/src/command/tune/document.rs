//! What was found, and as `--json` prints it; docs/reference/json.md describes the fields.

use super::finals::Finals;
use super::trial::{Trial, Trials};
use super::verdict::{Compared, unplaced};
use crate::command::threads;
use crate::outcome;
use pinwise_jobs::StoredSearch;
use pinwise_measure::Unit;
use pinwise_placement::{Choice, Estimate, Way};
use pinwise_present::figures;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// A number that was placed, or why it could not be.
pub(super) struct Placement {
    pub(super) parameter: u32,
    pub(super) searched: Option<StoredSearch>,
    pub(super) reason: Option<String>,
}

impl Placement {
    /// How fast it is at best, pinned or not, by its search's own fresh windows; `None` where
    /// nothing was measured.
    pub(super) fn best(&self) -> Option<f64> {
        let outcome = &self.searched.as_ref()?.outcome;
        let pinned = outcome.best.as_ref().map(|best| best.performance.mean);
        let unpinned = outcome.baseline.as_ref().map(|baseline| baseline.mean);
        [pinned, unpinned].into_iter().flatten().max_by(f64::total_cmp)
    }

    /// Why it has no placement, or what its search met, for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let n = self.parameter;
        let met = self.searched.iter().flat_map(|searched| &searched.outcome.notes);
        let met = met.map(|note| format!("while n = {n} was placed, {note}"));
        let reason =
            self.reason.iter().map(|reason| format!("n = {n} could not be placed: {reason}"));
        reason.chain(met).collect()
    }
}

/// What there is of a search that ended before the last comparison told anything.
pub(super) struct Remains {
    /// The search for the number alone.
    pub(super) surveyed: threads::Document,
    /// Numbers under policies of placement.
    pub(super) trials: Trials,
    /// The placements that were found until then.
    pub(super) placements: Vec<Placement>,
    pub(super) notes: Vec<String>,
    /// Why there is no answer.
    pub(super) error: String,
}

impl Remains {
    /// The fields of a finished search that are known by then.
    pub(super) fn json(&self) -> Value {
        let surveyed = json!(self.surveyed);
        let unit = unit(&self.placements).or(self.trials.unit.as_ref());
        json!({
            "program": self.surveyed.program,
            "machine": "host",
            "contexts": self.surveyed.contexts,
            "unit": unit.map(|unit| &unit.name),
            "lower_is_better": unit.map(|unit| unit.reciprocal),
            "advice": surveyed["advice"],
            "probes": surveyed["probes"],
            "search_seconds": surveyed["search_seconds"],
            "stopped_because": surveyed["stopped_because"],
            "monitor": surveyed["monitor"],
            "others": surveyed["others"],
            "trials": self.trials.json(),
            "placements": self.placements.iter().map(row).collect::<Vec<_>>(),
            "notes": self.notes,
            "error": self.error,
        })
    }
}

/// What the placed program's performance is counted in; `None` where nothing was placed.
pub(super) fn unit(placements: &[Placement]) -> Option<&Unit> {
    let searched = placements.iter().find_map(|placement| placement.searched.as_ref())?;
    Some(&searched.info.new.unit)
}

/// Everything that was found.
pub(super) struct Document {
    /// The search for the number alone.
    pub(super) surveyed: threads::Document,
    /// Numbers under policies of placement.
    pub(super) trials: Trials,
    /// The placements of the numbers near the best, in the order in which they were made last.
    pub(super) placements: Vec<Placement>,
    /// The number that was left.
    pub(super) n: u32,
    /// n where nobody decides; `None`: the program's own.
    pub(super) default: Option<u32>,
    pub(super) finals: Finals,
    pub(super) choice: Choice,
    /// The plan's n; `None`: the program's own.
    pub(super) parameter: Option<u32>,
    /// How it is started, where it is, as typed.
    pub(super) command: Option<String>,
    pub(super) notes: Vec<String>,
    pub(super) plan: Option<PathBuf>,
    pub(super) budget: Duration,
    pub(super) seconds: Duration,
}

impl Document {
    /// n of a way; `None`: the program's own.
    pub(super) fn parameter_of(&self, way: Way) -> Option<u32> {
        if way == Way::Default { self.default } else { Some(self.n) }
    }

    /// The search for the placement of the number that was left.
    pub(super) fn placement(&self) -> Option<&StoredSearch> {
        self.placements.iter().find(|placement| placement.parameter == self.n)?.searched.as_ref()
    }

    /// One document: the fields of `threads` and of `place` that answer, and what only both
    /// together have.
    pub(super) fn json(&self) -> Value {
        let unit = &self.finals.unit;
        let contest = &self.finals.contest;
        let way = |&way: &Way| {
            let mut row =
                contest.estimate(way).map_or_else(|| json!({}), |estimate| figure(&estimate, unit));
            row["way"] = json!(way);
            row["parameter"] = json!(self.parameter_of(way));
            row
        };
        let placed =
            self.placement().map(|placed| outcome::document(&placed.info, &placed.outcome, None));
        let of = |field: &str| placed.as_ref().map_or(Value::Null, |placed| placed[field].clone());
        let surveyed = json!(self.surveyed);
        json!({
            "program": self.surveyed.program,
            "machine": "host",
            "contexts": self.surveyed.contexts,
            "choice": self.choice,
            "verdict": self.compared().verdict(),
            "parameter": self.parameter,
            "threads": self.parameter.and_then(|n| self.surveyed.threads_of(n)),
            "default": self.default,
            "unit": unit.name,
            "lower_is_better": unit.reciprocal,
            "ways": contest.ways().iter().map(way).collect::<Vec<_>>(),
            "rounds": contest.rounds(),
            "comparison_others": self.finals.others(),
            "cut_short": self.finals.cut_short.as_ref().map(|error| format!("{error:#}")),
            "gain": self.gain(),
            "gain_of_pinning": contest.gain(Way::Placed, self.compared().rival()),
            "advice": surveyed["advice"],
            "probes": surveyed["probes"],
            "search_seconds": surveyed["search_seconds"],
            "stopped_because": surveyed["stopped_because"],
            "loss": surveyed["loss"],
            "monitor": surveyed["monitor"],
            "others": surveyed["others"],
            "best": of("best"),
            "baseline": of("baseline"),
            "ties": of("ties"),
            "assignments": of("assignments"),
            "upb": of("upb"),
            "upb_low": of("upb_low"),
            "upb_high": of("upb_high"),
            "gap_high": of("gap_high"),
            "measurements": of("measurements"),
            "trials": self.trials.json(),
            "placements": self.placements.iter().map(row).collect::<Vec<_>>(),
            "notes": self.notes,
            "budget_seconds": self.budget.as_secs_f64(),
            "seconds": self.seconds.as_secs_f64(),
            "plan": self.plan,
        })
    }

    /// What was compared, to be told.
    pub(super) fn compared(&self) -> Compared<'_> {
        let winner = self.placements.iter().find(|placement| placement.parameter == self.n);
        Compared {
            contest: &self.finals.contest,
            choice: self.choice,
            n: self.n,
            default: self.default,
            unplaced: winner.and_then(unplaced),
            others: self.finals.others(),
        }
    }

    /// What the choice gains over doing nothing.
    pub(super) fn gain(&self) -> Option<pinwise_placement::Gain> {
        let way = match self.choice {
            Choice::Default => return None,
            Choice::Number | Choice::Fewer => Way::Number,
            Choice::Placed => Way::Placed,
        };
        self.finals.contest.gain(way, Way::Default)
    }
}

/// An estimate as the user knows it.
fn figure(estimate: &Estimate, unit: &Unit) -> Value {
    let [low, high] = unit.interval(estimate.low, estimate.high);
    json!({"performance": unit.quantity(estimate.mean), "low": low, "high": high, "n": estimate.n})
}

fn row(placement: &Placement) -> Value {
    let searched = placement.searched.as_ref();
    let outcome = searched.map(|searched| &searched.outcome);
    let shown = |estimate: Option<&Estimate>| Some(figure(estimate?, &searched?.info.new.unit));
    json!({
        "parameter": placement.parameter,
        "campaign": searched.map(|searched| searched.info.id),
        "threads": searched.map(|searched| searched.info.new.workload.threads.len()),
        "measurements": outcome.map(|outcome| outcome.cost.measurements),
        "placed": shown(outcome.and_then(|outcome| Some(&outcome.best.as_ref()?.performance))),
        "unpinned": shown(outcome.and_then(|outcome| outcome.baseline.as_ref())),
        "reason": placement.reason,
    })
}

impl Trials {
    fn json(&self) -> Value {
        let row = |trial: &Trial| {
            json!({
                "parameter": trial.parameter,
                "policy": trial.policy,
                "threads": trial.threads,
                "cores": trial.footprint.map(|used| used.cores),
                "packages": trial.footprint.map(|used| used.packages),
                "performance": self.unit.as_ref().map(|unit| unit.quantity(trial.performance)),
                "unit": self.unit.as_ref().map(|unit| &unit.name),
            })
        };
        self.rows.iter().map(row).collect()
    }
}

/// A gain as text: `+12 % (+8 to +16 %)`.
pub(super) fn shown(gain: pinwise_placement::Gain) -> String {
    let [mean, low, high] = [gain.mean, gain.low, gain.high].map(figures::change);
    format!("{mean} (interval {low} to {high})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_placed_has_no_unit() {
        let placement =
            Placement { parameter: 2, searched: None, reason: Some("it has ended".into()) };
        let row = row(&placement);
        assert!(
            row["placed"].is_null() && row["unpinned"].is_null() && row["campaign"].is_null(),
            "{row:#}"
        );
        assert_eq!(unit(&[placement]), None);
    }
}
