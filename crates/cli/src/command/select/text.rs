//! A selection as text.

use super::document::ShownSelection;
use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_placement::{PlacedSelection, SelectionOutcome};
use pinwise_present::Files;
use pinwise_present::LabelledLines;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{alone_rate, bound_notes, draw_assignment, simulated};
use std::collections::BTreeSet;

impl ShownSelection<'_> {
    /// Which threads are which program's: `ipfwd0, ipfwd1 = hash1_L1; ipfwd2 = intmul`.
    fn pipelines(&self, best: &PlacedSelection) -> String {
        let workload = &self.info.new.workload;
        let mut programs: Vec<(&str, Vec<&str>)> = Vec::new();
        for pinned in &best.instances {
            let thread = workload.members(pinned.instance).first().copied();
            let Some(thread) = thread.map(|thread| &workload.threads[thread].name) else {
                continue;
            };
            let front = thread.split_once('-').map_or(thread.as_str(), |(front, _)| front);
            let name = self.names[pinned.instance].as_str();
            match programs.iter_mut().find(|(known, _)| *known == name) {
                Some((_, fronts)) => fronts.push(front),
                None => programs.push((name, vec![front])),
            }
        }
        let named = |(name, fronts): &(&str, Vec<&str>)| format!("{} = {name}", fronts.join(", "));
        programs.iter().map(named).collect::<Vec<_>>().join("; ")
    }

    /// The other selections whose fresh windows do not differ from those of the best, `selection`.
    fn open(&self, selection: &str, outcome: &SelectionOutcome) -> String {
        let ties = outcome.ties.iter();
        let tied = ties.map(|tie| self.named(tie.instances.iter().map(|pinned| pinned.instance)));
        let others: BTreeSet<String> = tied.filter(|other| other != selection).collect();
        if others.is_empty() {
            return String::new();
        }
        let others = others.into_iter().collect::<Vec<_>>().join("; ");
        format!(". Statistically tied with it: {others}. A larger --budget may choose another")
    }

    pub(super) fn text(&self, files: Files<'_>, width: usize) -> String {
        let outcome = &self.answer.outcome;
        let machine = &self.info.new.machine;
        let scale = Scale::new(&self.info.new.unit, 1.0);
        let mut sheet = LabelledLines { text: String::new(), width };
        let (ready, choose) = (self.names.len(), self.answer.request.question.choose);
        let unfinished = self.answer.unfinished(files);
        let caveat = simulated(self.info);
        match &outcome.best {
            Some(best) => {
                let selection = self.named(best.instances.iter().map(|pinned| pinned.instance));
                sheet.paragraph(
                    "",
                    0,
                    &format!(
                        "Of {ready} ready instances run these {choose}: {selection}{}.",
                        self.open(&selection, outcome)
                    ),
                );
                sheet.unfinished(unfinished.as_ref());
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
                sheet.unfinished(unfinished.as_ref());
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
            let selection = self.named(tie.instances.iter().map(|pinned| pinned.instance));
            let label = if index == 0 { "ties" } else { "" };
            sheet.line(label, &format!("{selection}, elsewhere, {}", tie.performance.show(&scale)));
        }
        let bound = &outcome.bound;
        let confidence = figures::percent(bound.confidence);
        let beside =
            outcome.best.as_ref().map_or(scale.clone(), |best| best.performance.telling(&scale));
        sheet.line("bound", &match (bound.upb_high, bound.gap_high) {
            (Some(high), Some(gap)) => format!(
                "no selection on any assignment is better than {} ({confidence} confidence, n = \
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
        let alone = self.answer.alone().into_iter();
        let alone: Vec<String> =
            alone.map(|(name, rate)| format!("{name} {}", alone_rate(rate))).collect();
        let alone = alone.join(", ");
        sheet.line("alone", &format!("on the best assignment of each: {alone}"));
        sheet.line("cost", &figures::counted(outcome.measurements, "measurement"));
        sheet.text.push('\n');
        let seen = outcome.selections.len();
        sheet.paragraph(
            "",
            0,
            &format!(
                "{seen} of {} different selections were drawn. The mean is over random \
                 assignments. The answer is the selection that is best on its best assignment, in \
                 fresh windows.",
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

    fn selections(&self, outcome: &SelectionOutcome, scale: &Scale, width: usize) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "",
            "mean",
            "interval",
            "draws",
            "best window",
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
}
