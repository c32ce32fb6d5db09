//! A selection as text.

use super::document::ShownSelection;
use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_placement::{PlacedSelection, SelectionOutcome};
use pinwise_present::Files;
use pinwise_present::LabelledLines;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    alone_rate, bound_notes, draw_assignment, selection_bound, selection_estimates,
    selections_drawn, simulated,
};

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

    pub(super) fn text(&self, files: Files<'_>, width: usize) -> String {
        let outcome = &self.answer.outcome;
        let machine = &self.info.new.machine;
        let unit = &self.info.new.unit;
        let mut sheet = LabelledLines { text: String::new(), width };
        let unfinished = self.answer.unfinished(files);
        sheet.paragraph("", 0, &self.verdict(outcome).text);
        sheet.unfinished(unfinished.as_ref());
        if let Some(best) = &outcome.best {
            sheet.paragraph("", 0, &format!("Their threads: {}.", self.pipelines(best)));
        }
        simulated(self.info).iter().for_each(|note| sheet.paragraph("", 0, note));
        if let Some(best) = &outcome.best {
            let (names, assignment) = self.placed(best);
            sheet.text.push('\n');
            let leaves = self.tree.leaves();
            sheet.text.push_str(&draw_assignment(machine, leaves, &names, &assignment, width));
            sheet.text.push('\n');
        }
        for (label, estimate) in selection_estimates(outcome, &self.names, unit) {
            sheet.line(label, &estimate);
        }
        sheet.line("bound", &selection_bound(outcome, unit));
        for note in bound_notes(&outcome.bound, unit, 1.0) {
            sheet.line("", &note);
        }
        let alone = self.answer.alone().into_iter();
        let alone: Vec<String> =
            alone.map(|(name, rate)| format!("{name} {}", alone_rate(rate))).collect();
        let alone = alone.join(", ");
        sheet.line("alone", &format!("on the best assignment of each: {alone}"));
        sheet.line("cost", &figures::counted(outcome.measurements, "measurement"));
        sheet.text.push('\n');
        sheet.paragraph(
            "",
            0,
            &format!(
                "{} The mean is over random assignments. The answer is the selection that is best \
                 on its best assignment, in fresh windows.",
                selections_drawn(outcome)
            ),
        );
        sheet.text.push_str(&self.selections(outcome, &Scale::new(unit, 1.0), width));
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
