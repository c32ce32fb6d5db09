//! A selection as a JSON document.

use pinwise_campaign::CampaignInfo;
use pinwise_jobs::SelectAnswer;
use pinwise_placement::{DrawnSelection, Estimate, PlacedSelection, SelectionOutcome};
use pinwise_present::{
    Files, SelectionVerdict, selection_name, selection_verdict, tagged_bound_notes,
};
use pinwise_topology::{Assignment, SharingTree};
use serde_json::{Value, json};

/// A selection with what its outputs need of it.
pub(super) struct ShownSelection<'a> {
    pub(super) answer: &'a SelectAnswer,
    pub(super) info: &'a CampaignInfo,
    pub(super) tree: SharingTree,
    /// The program of every ready instance.
    pub(super) names: Vec<String>,
}

impl<'a> ShownSelection<'a> {
    pub(super) fn new(answer: &'a SelectAnswer) -> Self {
        let info = &answer.campaign;
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        Self { answer, info, tree, names: answer.request.names() }
    }

    pub(super) fn named(&self, instances: impl IntoIterator<Item = usize>) -> String {
        selection_name(&self.names, instances)
    }

    /// The selection in words, from the number of instances of each application.
    pub(super) fn counted(&self, counts: &[usize]) -> String {
        self.named(self.answer.instances(counts))
    }

    pub(super) fn verdict(&self, outcome: &SelectionOutcome) -> SelectionVerdict {
        selection_verdict(outcome, &self.names, self.answer.request.question.choose)
    }

    /// The threads that run, and where.
    pub(super) fn placed(&self, best: &PlacedSelection) -> (Vec<String>, Assignment) {
        let workload = &self.info.new.workload;
        let names = best.instances.iter().flat_map(|pinned| workload.members(pinned.instance));
        let names = names.map(|thread| workload.threads[thread].name.clone()).collect();
        (
            names,
            Assignment::new(
                best.instances.iter().flat_map(|pinned| pinned.leaves.clone()).collect(),
            ),
        )
    }

    /// The selection as one JSON document; the fields are a contract.
    pub(super) fn document(&self, files: Files<'_>) -> Value {
        let outcome = &self.answer.outcome;
        let finite = |value: f64| value.is_finite().then_some(value);
        let placed = |best: &PlacedSelection| {
            let (names, assignment) = self.placed(best);
            let thread = |(index, name): (usize, &String)| {
                let cpu = self.tree.leaves()[assignment.leaf(index)].0;
                json!({ "thread": name, "cpu": cpu })
            };
            json!({
                "instances": best.instances.iter().map(|pinned| &self.names[pinned.instance])
                    .collect::<Vec<_>>(),
                "assignment": names.iter().enumerate().map(thread).collect::<Vec<Value>>(),
                "performance": best.performance.mean,
                "low": finite(best.performance.low),
                "high": finite(best.performance.high),
                "n": best.performance.n,
            })
        };
        let drawn = |drawn: &DrawnSelection| {
            json!({
                "selection": self.counted(&drawn.counts),
                "mean": drawn.performance.mean,
                "low": finite(drawn.performance.low),
                "high": finite(drawn.performance.high),
                "draws": drawn.performance.n,
                "best_window": drawn.best,
            })
        };
        let chance = |chance: Estimate| {
            json!({
                "mean": chance.mean,
                "low": finite(chance.low),
                "high": finite(chance.high),
                "n": chance.n,
            })
        };
        let bound = &outcome.bound;
        json!({
            "campaign": self.info.id,
            "verdict": self.verdict(outcome),
            "unfinished": self.answer.unfinished(files),
            "machine": self.info.new.machine.name,
            "simulated": self.info.new.simulated,
            "workload": self.info.new.workload.name,
            "ready": self.names,
            "alone": self.answer.request.alone,
            "choose": self.answer.request.question.choose,
            "unit": self.info.new.unit.name,
            "confidence": bound.confidence,
            "best": outcome.best.as_ref().map(placed),
            "ties": outcome.ties.iter().map(placed).collect::<Vec<_>>(),
            "chance": outcome.chance.map(chance),
            "gain": outcome.gain(),
            "upb": bound.upb,
            "upb_high": bound.upb_high,
            "gap_high": bound.gap_high,
            "notes": tagged_bound_notes(bound, &self.info.new.unit, 1.0),
            "selections": outcome.selections.iter().map(drawn).collect::<Vec<_>>(),
            "different_selections": outcome.different,
            "measurements": outcome.measurements,
            "seed": self.info.new.seed,
        })
    }
}
