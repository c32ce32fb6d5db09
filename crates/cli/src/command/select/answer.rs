//! A selection as text and JSON, for `select` at its end and `campaign show` later.

use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_campaign::CampaignInfo;
use pinwise_characterization::StoredCharacterization;
use pinwise_jobs::{SelectAnswer, SelectRequest};
use pinwise_placement::{DrawnSelection, PlacedSelection, SelectionOutcome};
use pinwise_prediction::ThreadKinds;
use pinwise_present::Files;
use pinwise_present::Sheet;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{bound_notes, draw_assignment, simulated, tagged_bound_notes};
use pinwise_report::Selection;
use pinwise_topology::{Assignment, SharingTree};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Prints what the records of a selection show.
pub(crate) fn tell(answer: &SelectAnswer, named: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let shown = ShownSelection::new(answer);
    if json {
        return output::print_json(&shown.document(&answer.outcome));
    }
    let files = Files::of_store(named);
    output::print(&shown.text(&answer.outcome, files, output::width()))
}

/// The page of a selection.
pub(crate) fn page(
    answer: &SelectAnswer,
    files: Files<'_>,
    characterization: Option<&StoredCharacterization>,
) -> anyhow::Result<String> {
    let (shown, outcome) = (ShownSelection::new(answer), &answer.outcome);
    let pieces = outcome.best.iter().flat_map(|best| &best.pieces);
    let selection = Selection {
        best: shown.named(pieces.map(|piece| piece.instance)),
        names: outcome.selections.iter().map(|drawn| shown.counted(&drawn.counts)).collect(),
        alone: shown.alone(),
        ready: shown.names.len(),
        outcome,
    };
    Ok(pinwise_report::selection_page(&answer.campaign, &selection, files, characterization)?)
}

struct ShownSelection<'a> {
    info: &'a CampaignInfo,
    selected: &'a SelectRequest,
    tree: SharingTree,
    /// The program of every ready instance.
    names: Vec<String>,
}

impl<'a> ShownSelection<'a> {
    fn new(answer: &'a SelectAnswer) -> Self {
        let info = &answer.campaign;
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        Self { info, selected: &answer.request, tree, names: answer.request.names() }
    }

    /// `intmul:2 + hash1_Mem`
    fn named(&self, instances: impl Iterator<Item = usize>) -> String {
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for name in instances.filter_map(|instance| self.names.get(instance)) {
            match counted.iter_mut().find(|(known, _)| known == name) {
                Some((_, count)) => *count += 1,
                None => counted.push((name, 1)),
            }
        }
        let named = |(name, count): (&str, usize)| {
            if count > 1 { format!("{name}:{count}") } else { name.to_owned() }
        };
        counted.into_iter().map(named).collect::<Vec<_>>().join(" + ")
    }

    /// Which threads are which program's: `ipfwd0, ipfwd1 = hash1_L1; ipfwd2 = intmul`.
    fn pipelines(&self, best: &PlacedSelection) -> String {
        let workload = &self.info.new.workload;
        let mut programs: Vec<(&str, Vec<&str>)> = Vec::new();
        for piece in &best.pieces {
            let thread = workload.members(piece.instance).first().copied();
            let Some(thread) = thread.map(|thread| &workload.threads[thread].name) else {
                continue;
            };
            let front = thread.split_once('-').map_or(thread.as_str(), |(front, _)| front);
            let name = self.names[piece.instance].as_str();
            match programs.iter_mut().find(|(known, _)| *known == name) {
                Some((_, fronts)) => fronts.push(front),
                None => programs.push((name, vec![front])),
            }
        }
        let named = |(name, fronts): &(&str, Vec<&str>)| format!("{} = {name}", fronts.join(", "));
        programs.iter().map(named).collect::<Vec<_>>().join("; ")
    }

    /// The selection in words, from the number of instances of each application.
    fn counted(&self, counts: &[usize]) -> String {
        let thread_kinds = ThreadKinds::new(&self.info.new.workload);
        let of = |application: usize| {
            let all = thread_kinds.instances().iter().enumerate();
            all.filter(move |(_, instance)| instance.application == application)
                .map(|(index, _)| index)
        };
        self.named(
            counts
                .iter()
                .enumerate()
                .flat_map(|(application, count)| of(application).take(*count).collect::<Vec<_>>()),
        )
    }

    /// The threads that run, and where.
    fn placed(&self, best: &PlacedSelection) -> (Vec<String>, Assignment) {
        let workload = &self.info.new.workload;
        let names = best.pieces.iter().flat_map(|piece| workload.members(piece.instance));
        let names = names.map(|thread| workload.threads[thread].name.clone()).collect();
        (
            names,
            Assignment::new(best.pieces.iter().flat_map(|piece| piece.leaves.clone()).collect()),
        )
    }

    /// The other selections whose fresh windows do not differ from those of the best, `selection`.
    fn open(&self, selection: &str, outcome: &SelectionOutcome) -> String {
        let ties = outcome.ties.iter();
        let tied = ties.map(|tie| self.named(tie.pieces.iter().map(|piece| piece.instance)));
        let others: BTreeSet<String> = tied.filter(|other| other != selection).collect();
        if others.is_empty() {
            return String::new();
        }
        let others = others.into_iter().collect::<Vec<_>>().join("; ");
        format!(". Not told apart from it: {others}. A larger --budget may choose another")
    }

    fn text(&self, outcome: &SelectionOutcome, files: Files<'_>, width: usize) -> String {
        let machine = &self.info.new.machine;
        let scale = Scale::new(&self.info.new.unit, 1.0);
        let mut sheet = Sheet { text: String::new(), width };
        let (ready, choose) = (self.names.len(), self.selected.question.choose);
        let caveat = simulated(self.info);
        match &outcome.best {
            Some(best) => {
                let selection = self.named(best.pieces.iter().map(|piece| piece.instance));
                sheet.paragraph(
                    "",
                    0,
                    &format!(
                        "Of {ready} ready instances run these {choose}: {selection}{}",
                        self.open(&selection, outcome)
                    ),
                );
                let (names, assignment) = self.placed(best);
                sheet.paragraph("", 0, &format!("Their threads: {}.", self.pipelines(best)));
                caveat.iter().for_each(|caveat| sheet.paragraph("", 0, caveat));
                sheet.text.push('\n');
                sheet.text.push_str(&draw_assignment(
                    machine,
                    self.tree.leaves(),
                    &names,
                    &assignment,
                    width,
                ));
                sheet.text.push('\n');
                sheet.line("best", &best.performance.show(&scale));
            }
            None => {
                sheet.paragraph("", 0, "No result yet: no selection has fresh windows.");
                caveat.iter().for_each(|caveat| sheet.paragraph("", 0, caveat));
            }
        }
        if let Some(chance) = &outcome.chance {
            sheet.line("chance", &format!("{}, over all draws", chance.show(&scale)));
            if let Some(best) = &outcome.best {
                let performance = &best.performance;
                // From the ends that are the furthest apart: both are estimates.
                let [low, gain, high] = [
                    (performance.low, chance.high),
                    (performance.mean, chance.mean),
                    (performance.high, chance.low),
                ]
                .map(|(best, chance)| best / chance - 1.0);
                let interval = if low.is_finite() && high.is_finite() {
                    format!("{} to {}", figures::change(low), figures::change(high))
                } else {
                    "no interval: too few windows".to_owned()
                };
                let gain = figures::change(gain);
                sheet.line("gain", &format!("{gain} over the mean of all draws ({interval})"));
            }
        }
        for (index, tie) in outcome.ties.iter().enumerate() {
            let selection = self.named(tie.pieces.iter().map(|piece| piece.instance));
            let label = if index == 0 { "ties" } else { "" };
            sheet.line(label, &format!("{selection}, elsewhere, {}", tie.performance.show(&scale)));
        }
        let bound = &outcome.bound;
        let confidence = figures::percent(bound.confidence);
        let beside =
            outcome.best.as_ref().map_or(scale.clone(), |best| best.performance.telling(&scale));
        sheet.line("bound", &match (bound.upb_high, bound.gap_high) {
            (Some(high), Some(gap)) => format!(
                "no selection on any assignment is better than {} with {confidence} confidence (n = \
                 {}): the gap is at most {}",
                beside.show(high),
                figures::count(bound.n as u64),
                figures::percent(gap)
            ),
            _ => "none".to_owned(),
        });
        for note in bound_notes(bound, &self.info.new.unit, 1.0) {
            sheet.line("", &note);
        }
        let alone = self
            .alone()
            .into_iter()
            .map(|(name, rate)| format!("{name} {rate}"))
            .collect::<Vec<_>>()
            .join(", ");
        sheet.line("alone", &format!("on the best assignment of each: {alone}"));
        sheet.line("cost", &figures::counted(outcome.measurements, "measurement"));
        sheet.text.push('\n');
        let seen = outcome.selections.len();
        sheet.paragraph(
            "",
            0,
            &format!(
                "{seen} of {} different selections were drawn. MEAN is over random assignments. \
                 The answer is the selection that is best on its best assignment, in fresh windows.",
                figures::count(outcome.different)
            ),
        );
        sheet.text.push_str(&self.selections(outcome, &scale, width));
        let id = self.info.id.0;
        let flag = files.flag();
        sheet.text.push_str(&format!("\nSee it all on a page: pinwise report {id}{flag}\n"));
        sheet.text.push_str(&format!("Every measurement: pinwise campaign export {id}{flag}\n"));
        sheet.text
    }

    /// Every program's rate alone.
    fn alone(&self) -> Vec<(String, String)> {
        let packets = pinwise_measure::Unit::rate("packets/s");
        let mut alone: Vec<(String, String)> = Vec::new();
        for (name, rate) in self.names.iter().zip(&self.selected.alone) {
            if alone.iter().all(|(known, _)| known != name) {
                alone.push((name.clone(), Scale::new(&packets, *rate).show(*rate)));
            }
        }
        alone
    }

    fn selections(&self, outcome: &SelectionOutcome, scale: &Scale, width: usize) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "",
            "MEAN",
            "INTERVAL",
            "DRAWS",
            "BEST WINDOW",
        ]);
        for column in [1, 3, 4] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for drawn in &outcome.selections {
            let performance = &drawn.performance;
            let known = performance.low.is_finite() && performance.high.is_finite();
            table.add_row([
                self.counted(&drawn.counts),
                performance.telling(scale).number(performance.mean),
                if known { scale.ends(performance.low, performance.high) } else { String::new() },
                figures::count(performance.n as u64),
                scale.number(drawn.best),
            ]);
        }
        output::fitted(table, width, &[])
    }

    /// The selection as one JSON document; the fields are a contract.
    fn document(&self, outcome: &SelectionOutcome) -> Value {
        let finite = |value: f64| value.is_finite().then_some(value);
        let placed = |best: &PlacedSelection| {
            let (names, assignment) = self.placed(best);
            let thread = |(index, name): (usize, &String)| {
                let cpu = self.tree.leaves()[assignment.leaf(index)].0;
                json!({ "thread": name, "cpu": cpu })
            };
            json!({
                "instances": best.pieces.iter().map(|piece| &self.names[piece.instance])
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
        let bound = &outcome.bound;
        json!({
            "campaign": self.info.id,
            "machine": self.info.new.machine.name,
            "workload": self.info.new.workload.name,
            "ready": self.names,
            "alone": self.selected.alone,
            "choose": self.selected.question.choose,
            "unit": self.info.new.unit.name,
            "confidence": bound.confidence,
            "best": outcome.best.as_ref().map(placed),
            "ties": outcome.ties.iter().map(placed).collect::<Vec<_>>(),
            "chance": outcome.chance.map(|chance| chance.mean),
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
