//! The answer of `pinwise tune`, as `--json` prints it; docs/reference/json.md describes the
//! fields.

use crate::command::place;
use crate::command::threads;
use pinwise_campaign::CampaignId;
use pinwise_jobs::{
    LastComparison, LastComparisonQuestion, PolicyMeasurement, PolicyMeasurements, StoredSearch,
    TuneAnswer, TuneConclusion, TuneLastComparison, TunedPlacement,
};
use pinwise_measure::Unit;
use pinwise_placement::{Estimate, Unmeasured, Way};
use pinwise_present::{Files, TuneVerdict, tagged, tagged_tune_notes, unmeasured};
use serde_json::{Value, json};

/// The document of a search that ended before the last comparison had a result.
pub(super) struct UnfinishedTuneJson<'a> {
    pub(super) answer: &'a TuneAnswer,
    /// The search for the number alone; `None`: it has not ended.
    pub(super) surveyed: Option<threads::ThreadsJson>,
    /// Why there is no answer.
    error: String,
}

impl<'a> UnfinishedTuneJson<'a> {
    pub(super) fn of(answer: &'a TuneAnswer, error: String) -> Self {
        Self { answer, surveyed: surveyed(answer), error }
    }
}

/// The search for the number alone, where it has ended.
fn surveyed(answer: &TuneAnswer) -> Option<threads::ThreadsJson> {
    let outcome = answer.threads.as_ref()?;
    let found = outcome.found.as_ref().ok()?;
    let document = threads::ThreadsJson::new(outcome, found, None, None);
    Some(document.estimated(outcome, found, answer.compared_numbers()))
}

impl UnfinishedTuneJson<'_> {
    /// The fields of a finished search that are known by then.
    pub(super) fn json(&self, files: Files<'_>) -> Value {
        let surveyed = json!(self.surveyed);
        let number = self.answer.threads.as_ref();
        let unit = unit(&self.answer.placements).or(self.answer.policies.unit.as_ref());
        json!({
            "campaign": self.answer.campaign.id,
            "unfinished": self.answer.unfinished(files),
            "program": number.map_or_else(
                || self.answer.campaign.new.workload.name.clone(),
                |outcome| outcome.question.request.name(),
            ),
            "machine": "host",
            "contexts": number.map(|outcome| outcome.question.contexts),
            "unit": unit.map(|unit| &unit.name),
            "lower_is_better": unit.map(|unit| unit.reciprocal),
            "estimate": surveyed["estimate"],
            "probes": number.map_or_else(Vec::new, |outcome| threads::rows(&outcome.probes)),
            "search_seconds": surveyed["search_seconds"],
            "stopped_because": surveyed["stopped_because"],
            "monitor": surveyed["monitor"],
            "others": surveyed["others"],
            "trials": policies(&self.answer.policies),
            "placements": self.answer.placements.iter().map(row).collect::<Vec<_>>(),
            "notes": tagged_tune_notes(self.answer.number_notes(), &self.answer.notes),
            "error": self.error,
        })
    }
}

/// What the placed program's performance is counted in; `None` if nothing was placed.
pub(super) fn unit(placements: &[TunedPlacement]) -> Option<&Unit> {
    let searched = placements.iter().find_map(|placement| placement.searched.as_ref())?;
    Some(&searched.info.new.unit)
}

/// Everything that was found.
pub(super) struct TuneJson<'a> {
    pub(super) answer: &'a TuneAnswer,
    /// The search for the number alone.
    pub(super) surveyed: threads::ThreadsJson,
    /// The campaign with the windows of the last comparison.
    pub(super) part: CampaignId,
    pub(super) compared: &'a LastComparisonQuestion,
    pub(super) comparison: &'a LastComparison,
    pub(super) conclusion: &'a TuneConclusion,
    /// What was compared, for words.
    pub(super) verdict: TuneVerdict<'a>,
}

impl<'a> TuneJson<'a> {
    /// `None` if there is no last comparison yet.
    pub(super) fn of(answer: &'a TuneAnswer) -> Option<Self> {
        let TuneLastComparison { campaign: part, compared, comparison, conclusion } =
            answer.concluded.as_ref()?;
        let (surveyed, verdict) = (surveyed(answer)?, answer.verdict()?);
        let part = *part;
        Some(Self { answer, surveyed, part, compared, comparison, conclusion, verdict })
    }

    /// The number that was left.
    pub(super) fn n(&self) -> u32 {
        self.compared.n
    }

    /// The search for the placement of the number that was left.
    pub(super) fn placement(&self) -> Option<&StoredSearch> {
        let n = self.n();
        let placed = self.answer.placements.iter().find(|placed| placed.parameter == n);
        placed?.searched.as_ref()
    }

    /// One document: the fields of `threads` and of `place` that answer, and what only both
    /// together have.
    pub(super) fn json(&self, files: Files<'_>) -> Value {
        let unit = &self.comparison.unit;
        let rounds = &self.comparison.rounds;
        let placed = self
            .placement()
            .map(|placed| place::document(&placed.info, &placed.question, &placed.outcome, None));
        let of = |field: &str| placed.as_ref().map_or(Value::Null, |placed| placed[field].clone());
        let surveyed = json!(self.surveyed);
        let mut document = json!({
            "campaign": self.answer.campaign.id,
            "unfinished": self.answer.unfinished(files),
            "program": self.surveyed.program,
            "machine": self.surveyed.machine,
            "contexts": self.surveyed.contexts,
            "verdict": { "kind": self.conclusion.choice, "text": self.verdict.text() },
            // As versions before called its kind.
            "choice": self.conclusion.choice,
            "parameter": self.conclusion.parameter,
            "threads": self.threads(),
            "default": self.compared.default,
            "unit": unit.name,
            "lower_is_better": unit.reciprocal,
            "ways": threads::ways(self.comparison, self.compared),
            "rounds": rounds.count(),
            "comparison": self.part,
            "comparison_others": self.comparison.others(),
            "cut_short": self.conclusion.cut_short.as_ref().map(reason),
            "gain": rounds.gain_of(self.conclusion.choice),
            "gain_of_pinning": rounds.gain(Way::Placed, self.verdict.rival()),
            "estimate": surveyed["estimate"],
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
            "trials": policies(&self.answer.policies),
            "placements": self.answer.placements.iter().map(row).collect::<Vec<_>>(),
            "notes": tagged_tune_notes(self.answer.number_notes(), &self.answer.notes),
            "budget_seconds": self.answer.budget.as_secs_f64(),
            "seconds": self.conclusion.time.as_secs_f64(),
            "plan": self.answer.plan,
        });
        document["memory"] = of("memory");
        document
    }

    /// The threads that were seen with the number that is announced.
    fn threads(&self) -> Option<u32> {
        self.answer.threads.as_ref()?.threads_of(self.conclusion.parameter?)
    }
}

/// Why something was not measured, as JSON has it.
fn reason(why: &Unmeasured) -> Value {
    tagged(why, unmeasured(why))
}

fn row(placement: &TunedPlacement) -> Value {
    let searched = placement.searched.as_ref();
    let outcome = searched.map(|searched| &searched.outcome);
    let shown = |estimate: Option<&Estimate>| {
        Some(threads::performance(estimate?, &searched?.info.new.unit))
    };
    json!({
        "parameter": placement.parameter,
        "campaign": searched.map(|searched| searched.info.id),
        "threads": searched.map(|searched| searched.info.new.workload.threads.len()),
        "measurements": outcome.map(|outcome| outcome.cost.measurements),
        "placed": shown(outcome.and_then(|outcome| Some(&outcome.best.as_ref()?.performance))),
        "unpinned": shown(outcome.and_then(|outcome| outcome.baseline.as_ref())),
        "reason": placement.reason.as_ref().map(reason),
    })
}

fn policies(policies: &PolicyMeasurements) -> Value {
    let row = |measured: &PolicyMeasurement| {
        json!({
            "parameter": measured.parameter,
            "policy": measured.policy,
            "memory": measured.memory,
            "threads": measured.threads,
            "cores": measured.footprint.map(|used| used.cores),
            "packages": measured.footprint.map(|used| used.packages),
            "performance": policies.unit.as_ref().map(|unit| unit.quantity(measured.performance)),
            "unit": policies.unit.as_ref().map(|unit| &unit.name),
        })
    };
    policies.rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_placed_has_no_unit() {
        let placement =
            TunedPlacement { parameter: 2, searched: None, reason: Some(Unmeasured::NoTime) };
        let row = row(&placement);
        assert!(
            row["placed"].is_null() && row["unpinned"].is_null() && row["campaign"].is_null(),
            "{row:#}"
        );
        assert_eq!(unit(&[placement]), None);
    }
}
