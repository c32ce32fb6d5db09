//! How an outcome is told: by `place` at its end, and by `campaign show` at any time after.

use pinwise_campaign::{CampaignInfo, CampaignState};
use pinwise_placement::{Advice, Best, Bound, Cost, Estimate, Outcome};
use pinwise_report::{Files, quoted};
use pinwise_testbed::figures::{self, Scale};
use pinwise_topology::{CpuId, SharingTree};
use serde_json::{Value, json};
use std::path::Path;

/// Rivals beyond this many are counted, not listed.
const RIVALS_SHOWN: usize = 8;

/// Columns before a value: two, the label, one.
const INDENT: usize = 12;

/// Lines are not broken into less than this, however narrow the terminal.
const LEAST_WIDTH: usize = 30;

/// The outcome as text, for a terminal `width` columns wide; ends in a newline.
pub(crate) fn tell(info: &CampaignInfo, outcome: &Outcome, files: Files<'_>, width: usize) -> String {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let mut sheet = Sheet { text: String::new(), width };
    sheet.paragraph("", 0, verdict(outcome, info.state));
    if let (Some(found), Some(best)) = (&outcome.as_found, &outcome.best)
        && outcome.advice == Advice::Pin
        && found.mean > best.performance.mean
    {
        sheet.paragraph(
            "",
            0,
            "For a moment before anything was pinned the program did as well by itself; in the unpinned windows after it did not.",
        );
    }
    if let Some(drift) = &outcome.drift
        && drift.significant
    {
        let change = figures::change(drift.change);
        let warning = format!(
            "The machine or the load changed meanwhile: a reference by {change} from the first to the last third of the run (n = {}). Repeat it.",
            drift.n
        );
        sheet.paragraph("", 0, &warning);
    }
    sheet.text.push('\n');
    if let Some(best) = &outcome.best {
        let names: Vec<String> = info.new.workload.threads.iter().map(|thread| thread.name.clone()).collect();
        let machine = &info.new.machine;
        sheet.paragraph("", 0, "The best assignment found:");
        sheet.text.push_str(&crate::draw::draw_assignment(machine, tree.leaves(), &names, &best.assignment, width));
        sheet.text.push('\n');
    }
    evidence(&mut sheet, info, outcome, &tree, files);
    sheet.text.push('\n');
    next(&mut sheet, info, outcome, files);
    sheet.text
}

/// Text that grows line by line.
struct Sheet {
    text: String,
    width: usize,
}

impl Sheet {
    /// `label value`; what does not fit on the line hangs below the value.
    fn line(&mut self, label: &str, value: &str) {
        self.paragraph(&format!("  {label:<9} "), INDENT, value);
    }

    /// Words after `start`, broken at the width, with `indent` columns before all lines but the first. A word too long for a
    /// line is left whole: it is a path or a placement, which someone may want to copy.
    fn paragraph(&mut self, start: &str, indent: usize, words: &str) {
        let width = self.width.max(INDENT + LEAST_WIDTH);
        let mut line = start.to_owned();
        let mut fresh = true;
        for word in words.split_whitespace() {
            if !fresh && line.chars().count() + 1 + word.chars().count() > width {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = " ".repeat(indent);
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
            fresh = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn verdict(outcome: &Outcome, state: CampaignState) -> &'static str {
    match outcome.advice {
        Advice::Pin => "Pin: the best assignment beats the operating system's own placement.",
        Advice::KeepDefault => "Keep the default: no assignment is better than leaving the threads unpinned.",
        Advice::Undecided if outcome.best.is_none() && state != CampaignState::Finished => {
            "Undecided so far: no assignment has had fresh windows yet."
        }
        Advice::Undecided if outcome.best.is_none() => {
            "Undecided: the budget ended before an assignment had fresh windows; raise --budget."
        }
        Advice::Undecided if outcome.baseline.is_none() => "Undecided: the program was not measured unpinned.",
        Advice::Undecided => "Undecided: the measurements do not tell the best assignment from the default.",
    }
}

fn evidence(sheet: &mut Sheet, info: &CampaignInfo, outcome: &Outcome, tree: &SharingTree, files: Files<'_>) {
    let typical = outcome.best.as_ref().map(|best| best.performance.mean);
    let typical = typical.or(outcome.baseline.map(|baseline| baseline.mean)).or(outcome.bound.upb);
    let typical = typical.or(outcome.as_found.map(|found| found.mean));
    let scale = Scale::new(&outcome.unit, typical.unwrap_or(1.0));
    match &outcome.best {
        Some(best) => sheet.line("best", &best.performance.show(&scale)),
        None => sheet.line("best", "none"),
    }
    match &outcome.baseline {
        Some(baseline) => sheet.line("unpinned", &baseline.show(&scale)),
        None => sheet.line("unpinned", "not measured"),
    }
    if let Some(found) = &outcome.as_found {
        sheet.line("as found", &format!("{}, before anything was pinned", found.show(&scale)));
    }
    if let Some((gain, low, high)) = outcome.gain {
        let [gain, low, high] = [gain, low, high].map(figures::change);
        let confidence = figures::percent(outcome.bound.confidence);
        sheet.line("gain", &format!("{gain} ({confidence} interval {low} to {high})"));
    }
    for (index, rival) in outcome.ties.iter().take(RIVALS_SHOWN).enumerate() {
        let label = if index == 0 { "ties" } else { "" };
        sheet.line(label, &format!("{}, {}", place(rival, tree, info), rival.performance.show(&scale)));
    }
    if outcome.ties.len() > RIVALS_SHOWN {
        let more = outcome.ties.len() - RIVALS_SHOWN;
        sheet.line("", &format!("and {more} more: pinwise campaign show {} --json{}", info.id.0, files.flag()));
    }
    sheet.line("bound", &bound(&outcome.bound, &scale));
    for note in &outcome.bound.notes {
        sheet.line("", note);
    }
    sheet.line("cost", &cost(&outcome.cost, &outcome.assignments));
    sheet.line("strategy", &outcome.strategy);
    sheet.line("stopped", &outcome.stopped_because);
}

fn bound(bound: &Bound, scale: &Scale) -> String {
    let confidence = figures::percent(bound.confidence);
    match (bound.upb, bound.upb_high) {
        (_, Some(high)) if bound.method == "exact" => {
            let gap = gap(bound.gap_high, "at most");
            format!("no assignment is better than {} with {confidence} confidence{gap}", scale.show(high))
        }
        (Some(point), Some(high)) => format!(
            "the best possible is about {}, at most {} with {confidence} confidence ({}, n = {}){}",
            scale.show(point),
            scale.show(high),
            bound.method,
            figures::count(bound.n as u64),
            gap(bound.gap_high, "at most")
        ),
        (Some(point), None) => format!(
            "the best possible is about {}, with no upper end to the interval ({}, n = {}){}",
            scale.show(point),
            bound.method,
            figures::count(bound.n as u64),
            gap(bound.gap, "about")
        ),
        (None, _) => "none".to_owned(),
    }
}

fn gap(gap: Option<f64>, how: &str) -> String {
    gap.map_or(String::new(), |gap| format!(": the gap is {how} {}", figures::percent(gap)))
}

fn cost(cost: &Cost, assignments: &str) -> String {
    let failed = if cost.failed > 0 { format!(" ({} failed)", figures::count(cost.failed)) } else { String::new() };
    format!(
        "{} measurements{failed} of {} of {} different assignments in {}",
        figures::count(cost.measurements),
        figures::count(cost.classes),
        figures::group(assignments),
        figures::duration(cost.time)
    )
}

/// Commands stand on lines of their own, so that they can be copied.
fn next(sheet: &mut Sheet, info: &CampaignInfo, outcome: &Outcome, files: Files<'_>) {
    let mut commands = Vec::new();
    if let Some(plan) = files.plan
        && outcome.advice == Advice::Pin
    {
        let plan = quoted(&plan.to_string_lossy());
        commands.push(("pin the threads of a running process:", format!("pinwise apply {plan} --pid PID")));
        commands.push(("start the program pinned:", format!("pinwise run {plan} -- CMD")));
        commands.push(("say it to taskset, OpenMP, DPDK, systemd, …:", format!("pinwise export {plan} --to FORMAT")));
    }
    commands.push(("see every measurement on a page:", format!("pinwise report {}{}", info.id.0, files.flag())));
    for (index, (what, command)) in commands.iter().enumerate() {
        sheet.line(if index == 0 { "next" } else { "" }, what);
        sheet.text.push_str(&format!("{:INDENT$}  {command}\n", ""));
    }
}

/// An assignment in one line: the threads on each used context, by the kernel's numbers.
fn place(best: &Best, tree: &SharingTree, info: &CampaignInfo) -> String {
    let mut cpus: Vec<(CpuId, Vec<&str>)> = Vec::new();
    for (thread, found) in info.new.workload.threads.iter().enumerate() {
        let cpu = tree.leaves()[best.assignment.leaf(thread)];
        match cpus.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, names)) => names.push(&found.name),
            None => cpus.push((cpu, vec![&found.name])),
        }
    }
    cpus.sort_by_key(|(cpu, _)| *cpu);
    let texts: Vec<String> = cpus.iter().map(|(cpu, names)| format!("{}:{}", cpu.0, names.join("+"))).collect();
    texts.join(" ")
}

/// The outcome as one JSON document; the fields are a contract.
pub(crate) fn document(info: &CampaignInfo, outcome: &Outcome, plan: Option<&Path>) -> serde_json::Value {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let unit = &outcome.unit;
    // As the user knows it; a cost's interval changes its ends.
    let figure = |estimate: &Estimate| {
        let ends = [unit.quantity(estimate.low), unit.quantity(estimate.high)];
        json!({
            "performance": unit.quantity(estimate.mean),
            "low": finite(ends[0].min(ends[1])),
            "high": finite(ends[0].max(ends[1])),
            "n": estimate.n,
            "confidence": estimate.confidence,
            "unit": unit.name,
        })
    };
    let placed = |best: &Best| {
        let mut figure = figure(&best.performance);
        let threads = info.new.workload.threads.iter().enumerate();
        let assignment: Vec<Value> = threads
            .map(|(index, thread)| json!({"thread": thread.name, "cpu": tree.leaves()[best.assignment.leaf(index)].0}))
            .collect();
        figure["assignment"] = json!(assignment);
        figure
    };
    let bound = &outcome.bound;
    let shown = |performance: Option<f64>| performance.map(|performance| unit.quantity(performance));
    // As with `pinwise bound --minimize`: the lowest value is the low end, whichever direction is better.
    let (mut low, mut high) = (shown(bound.upb_low), shown(bound.upb_high));
    if unit.reciprocal {
        (low, high) = (high, low);
    }
    json!({
        "campaign": info.id,
        "advice": outcome.advice,
        "machine": info.new.machine.name,
        "workload": info.new.workload.name,
        "threads": info.new.workload.threads,
        "unit": unit.name,
        "lower_is_better": unit.reciprocal,
        "best": outcome.best.as_ref().map(placed),
        "baseline": outcome.baseline.as_ref().map(figure),
        "as_found": outcome.as_found.as_ref().map(figure),
        "gain": outcome.gain.map(|(mean, low, high)| json!({"mean": mean, "low": finite(low), "high": finite(high)})),
        "ties": outcome.ties.iter().map(placed).collect::<Vec<_>>(),
        "assignments": outcome.assignments,
        "upb": shown(bound.upb),
        "upb_low": low,
        "upb_high": high,
        "gap": bound.gap,
        "gap_high": bound.gap_high,
        "confidence": bound.confidence,
        "method": bound.method,
        "n": bound.n,
        "diagnostics": bound.notes,
        "drift": outcome.drift,
        "measurements": outcome.cost.measurements,
        "failed": outcome.cost.failed,
        "classes": outcome.cost.classes,
        "seconds": outcome.cost.time.as_secs_f64(),
        "strategy": outcome.strategy,
        "stopped_because": outcome.stopped_because,
        "seed": info.new.seed,
        "plan": plan,
    })
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{CampaignId, NewCampaign};
    use pinwise_testbed::{Thread, Unit, Workload};
    use pinwise_topology::{Alike, Assignment, Machine};
    use std::time::Duration;

    fn campaign(unit: Unit) -> CampaignInfo {
        let thread = |name: &str| Thread { name: name.into(), role: "r".into(), instance: 0 };
        CampaignInfo {
            id: CampaignId(7),
            new: NewCampaign {
                command: vec!["pinwise".into(), "place".into()],
                machine: Machine::from_shape("2x2").unwrap(),
                alike: Alike::ByStructure,
                workload: Workload { name: "service".into(), threads: vec![thread("rx"), thread("tx")] },
                unit,
                question: Value::Null,
                seed: 1,
            },
            started: 0,
            state: CampaignState::Finished,
            conclusion: None,
            records: 240,
            running: false,
        }
    }

    fn figure(mean: f64, half: f64) -> Estimate {
        Estimate { mean, low: mean - half, high: mean + half, n: 12, confidence: 0.95, spread: half }
    }

    fn best(leaves: [u32; 2], mean: f64) -> Best {
        Best { assignment: Assignment::new(leaves.to_vec()), performance: figure(mean, mean / 100.0) }
    }

    fn outcome(unit: Unit, mean: f64) -> Outcome {
        Outcome {
            advice: Advice::Pin,
            unit,
            best: Some(best([0, 1], mean)),
            baseline: Some(figure(mean * 0.8, mean / 20.0)),
            as_found: None,
            gain: Some((0.25, 0.2, 0.3)),
            ties: vec![best([0, 2], mean * 0.999)],
            bound: Bound {
                upb: Some(mean),
                upb_low: Some(mean),
                upb_high: Some(mean * 1.02),
                gap: Some(0.0),
                gap_high: Some(0.02),
                confidence: 0.95,
                method: "exact".into(),
                n: 2,
                notes: vec!["every assignment was measured: the bound rests on noise alone".into()],
            },
            assignments: "2".into(),
            drift: None,
            cost: Cost { measurements: 240, failed: 3, classes: 2, time: Duration::from_secs(12) },
            strategy: "exhaustive: the 2 assignments fit the budget 3 times over".into(),
            stopped_because: "12 fresh windows each are precise to 1.0 %".into(),
        }
    }

    fn assert_text(text: &str, expected: &str) {
        assert!(text.ends_with('\n') && !text.contains(" \n"), "{text}");
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn advice_to_pin_names_the_plan_and_the_store() {
        let unit = Unit::rate("packets/s");
        let files = Files { plan: Some(Path::new("plans/7.toml")), store: Some(Path::new("my.db")) };
        let text = tell(&campaign(unit.clone()), &outcome(unit, 1.72e6), files, 100);
        assert_text(&text, PIN);
    }

    #[test]
    fn a_narrow_terminal_has_hanging_lines() {
        let unit = Unit::rate("packets/s");
        let text = tell(&campaign(unit.clone()), &outcome(unit, 1.72e6), Files::default(), 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert_text(&text, NARROW);
    }

    #[test]
    fn a_cost_is_told_as_the_cost_and_the_default_may_be_best() {
        let unit = Unit::cost("s");
        let kept = Outcome {
            advice: Advice::KeepDefault,
            gain: Some((-0.02, -0.03, -0.01)),
            ties: Vec::new(),
            ..outcome(unit.clone(), 0.5)
        };
        let files = Files { plan: Some(Path::new("plans/7.toml")), store: None };
        assert_text(&tell(&campaign(unit), &kept, files, 100), KEEP);
    }

    #[test]
    fn the_document_of_a_cost_has_its_ends_in_order() {
        let unit = Unit::cost("s");
        let document = document(&campaign(unit.clone()), &outcome(unit, 0.5), None);
        let number = |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap();
        assert!(
            number("/best/low") < number("/best/performance") && number("/best/performance") < number("/best/high")
        );
        assert_eq!((number("/upb_low"), number("/upb_high")), (1.0 / 0.51, 2.0));
        assert_eq!(document["lower_is_better"], true);
    }

    #[test]
    fn without_anything_measured_nothing_is_claimed() {
        let unit = Unit::rate("ops/s");
        let nothing = Outcome {
            advice: Advice::Undecided,
            best: None,
            baseline: None,
            gain: None,
            ties: Vec::new(),
            bound: Bound {
                upb: None,
                upb_high: None,
                notes: vec!["there are no values".into()],
                ..outcome(unit.clone(), 1.0).bound
            },
            stopped_because: "nothing could be measured: no line matched".into(),
            ..outcome(unit.clone(), 1.0)
        };
        assert_text(&tell(&campaign(unit), &nothing, Files::default(), 100), UNDECIDED);
    }

    const PIN: &str = "\
Pin: the best assignment beats the operating system's own placement.

The best assignment found:
Core 0  0 [rx]  1 [tx]
Core 1: free (2,3)

  best      1.72 M packets/s (95 % interval 1.70 to 1.74 M packets/s, n = 12)
  unpinned  1.38 M packets/s (95 % interval 1.29 to 1.46 M packets/s, n = 12)
  gain      +25.0 % (95 % interval +20.0 % to +30.0 %)
  ties      0:rx 2:tx, 1.72 M packets/s (95 % interval 1.70 to 1.74 M packets/s, n = 12)
  bound     no assignment is better than 1.75 M packets/s with 95 % confidence: the gap is at most
            2.0 %
            every assignment was measured: the bound rests on noise alone
  cost      240 measurements (3 failed) of 2 of 2 different assignments in 12.0 s
  strategy  exhaustive: the 2 assignments fit the budget 3 times over
  stopped   12 fresh windows each are precise to 1.0 %

  next      pin the threads of a running process:
              pinwise apply plans/7.toml --pid PID
            start the program pinned:
              pinwise run plans/7.toml -- CMD
            say it to taskset, OpenMP, DPDK, systemd, …:
              pinwise export plans/7.toml --to FORMAT
            see every measurement on a page:
              pinwise report 7 --store my.db
";
    const NARROW: &str = "\
Pin: the best assignment beats the operating system's own
placement.

The best assignment found:
Core 0  0 [rx]  1 [tx]
Core 1: free (2,3)

  best      1.72 M packets/s (95 % interval 1.70 to 1.74 M
            packets/s, n = 12)
  unpinned  1.38 M packets/s (95 % interval 1.29 to 1.46 M
            packets/s, n = 12)
  gain      +25.0 % (95 % interval +20.0 % to +30.0 %)
  ties      0:rx 2:tx, 1.72 M packets/s (95 % interval 1.70
            to 1.74 M packets/s, n = 12)
  bound     no assignment is better than 1.75 M packets/s
            with 95 % confidence: the gap is at most 2.0 %
            every assignment was measured: the bound rests
            on noise alone
  cost      240 measurements (3 failed) of 2 of 2 different
            assignments in 12.0 s
  strategy  exhaustive: the 2 assignments fit the budget 3
            times over
  stopped   12 fresh windows each are precise to 1.0 %

  next      see every measurement on a page:
              pinwise report 7
";
    const KEEP: &str = "\
Keep the default: no assignment is better than leaving the threads unpinned.

The best assignment found:
Core 0  0 [rx]  1 [tx]
Core 1: free (2,3)

  best      2.00 s (95 % interval 1.98 to 2.02 s, n = 12)
  unpinned  2.50 s (95 % interval 2.35 to 2.67 s, n = 12)
  gain      −2.0 % (95 % interval −3.0 % to −1.0 %)
  bound     no assignment is better than 1.96 s with 95 % confidence: the gap is at most 2.0 %
            every assignment was measured: the bound rests on noise alone
  cost      240 measurements (3 failed) of 2 of 2 different assignments in 12.0 s
  strategy  exhaustive: the 2 assignments fit the budget 3 times over
  stopped   12 fresh windows each are precise to 1.0 %

  next      see every measurement on a page:
              pinwise report 7
";
    const UNDECIDED: &str = "\
Undecided: the budget ended before an assignment had fresh windows; raise --budget.

  best      none
  unpinned  not measured
  bound     none
            there are no values
  cost      240 measurements (3 failed) of 2 of 2 different assignments in 12.0 s
  strategy  exhaustive: the 2 assignments fit the budget 3 times over
  stopped   nothing could be measured: no line matched

  next      see every measurement on a page:
              pinwise report 7
";
}
