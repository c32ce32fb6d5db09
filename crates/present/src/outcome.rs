//! An outcome as text for a terminal.

use crate::drawing::draw_assignment;
use crate::figures::{self, Scale};
use crate::sheet::{INDENT, Sheet};
use crate::shell::{Files, quoted};
use pinwise_campaign::{CampaignInfo, CampaignState};
use pinwise_placement::{Advice, Best, Bound, Budget, Cost, Forecast, Outcome, Question, Search};
use pinwise_topology::{CpuId, SharingTree};
use std::time::Duration;

/// Rivals beyond this many are counted, not listed.
const RIVALS_SHOWN: usize = 8;

/// Whether a stored question is about a program on a simulated processor: then its performances and
/// times are those of a model.
pub fn is_simulated(question: &serde_json::Value) -> bool {
    question.pointer("/subject/simulated").is_some()
}

/// What to know beside the verdict, in sentences. Whoever tells an outcome tells these, and nothing
/// else of the kind: the terminal, JSON, the page and the plan.
pub fn notes(info: &CampaignInfo, outcome: &Outcome) -> Vec<String> {
    // A model is in no placement before it is placed.
    let qualification = outcome.qualification().filter(|_| !is_simulated(&info.new.question));
    qualification.into_iter().chain(outcome.doubts()).collect()
}

/// The outcome as text, for a terminal `width` columns wide; ends in a newline.
pub fn outcome_text(
    info: &CampaignInfo,
    outcome: &Outcome,
    files: Files<'_>,
    width: usize,
) -> String {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let mut sheet = Sheet { text: String::new(), width };
    let simulated = is_simulated(&info.new.question);
    if simulated {
        let machine = &info.new.machine.name;
        sheet.paragraph(
            "",
            0,
            &format!(
                "Simulated on a model of {machine}: performances and times are those of the model, and unpinned means balanced over cores and \
                 pipes, which threads end up together being left to chance."
            ),
        );
    }
    sheet.paragraph("", 0, &verdict(info, outcome, &tree));
    for note in notes(info, outcome) {
        sheet.paragraph("", 0, &note);
    }
    sheet.text.push('\n');
    if let Some(best) = outcome.best.as_ref().or(outcome.so_far.as_ref()) {
        let names: Vec<String> =
            info.new.workload.threads.iter().map(|thread| thread.name.clone()).collect();
        let machine = &info.new.machine;
        sheet.paragraph("", 0, heading(outcome, simulated));
        sheet.text.push_str(&draw_assignment(
            machine,
            tree.leaves(),
            &names,
            &best.assignment,
            width,
        ));
        sheet.text.push('\n');
    }
    evidence(&mut sheet, info, outcome, &tree, files);
    sheet.text.push('\n');
    next(&mut sheet, info, outcome, files);
    sheet.text
}

/// The answer in a sentence. A model has no operating system: balanced placements stand for its
/// default.
fn verdict(info: &CampaignInfo, outcome: &Outcome, tree: &SharingTree) -> String {
    // A verdict on what was measured: nothing bounds what BlackBox did not look at but its own
    // profile.
    let few = outcome.forecast.is_some();
    let verdict = match outcome.advice {
        Advice::Pin if is_simulated(&info.new.question) => {
            "Pin: the best assignment beats balanced placements, which are the default of the model."
        }
        Advice::Pin if outcome.beats_as_found() => {
            "Pin: the best assignment beats the operating system's own placement."
        }
        Advice::Pin => {
            "Pin: the best assignment beats the unpinned windows, though not the placement in which the program was found."
        }
        Advice::KeepDefault if few => {
            "Keep the default: none of the assignments measured is better than leaving the threads unpinned."
        }
        Advice::KeepDefault => {
            "Keep the default: no assignment is better than leaving the threads unpinned."
        }
        Advice::Undecided if outcome.best.is_none() && info.state != CampaignState::Finished => {
            "Undecided so far: no assignment has had fresh windows yet."
        }
        Advice::Undecided if outcome.cost.classes == 0 && outcome.cost.failed > 0 => {
            "Undecided: no assignment could be measured."
        }
        Advice::Undecided if outcome.best.is_none() => {
            let remedy = enough(info, outcome, tree).unwrap_or_else(|| "raise --budget".to_owned());
            return format!(
                "Undecided: the budget ended before an assignment had fresh windows: {remedy}."
            );
        }
        Advice::Undecided if outcome.baseline.is_none() => {
            "Undecided: the program was not measured unpinned."
        }
        Advice::Undecided => {
            "Undecided: the measurements do not tell the best assignment from the default."
        }
    };
    verdict.to_owned()
}

/// What to call the best assignment: it may have done worse than the program without it, beyond the
/// intervals.
fn heading(outcome: &Outcome, simulated: bool) -> &'static str {
    if outcome.best.is_none() {
        "The assignment that leads so far, without fresh windows yet:"
    } else if outcome.gain.is_some_and(|(_, _, high)| high < 0.0) {
        "The best assignment measured, which did worse than unpinned:"
    } else if !simulated && outcome.is_worse_than_found() {
        "The best assignment measured, which did worse than the program as it was found:"
    } else {
        "The best assignment found:"
    }
}

/// The budget that may do, where measurements go on taking as long as they did: more than what did
/// not.
fn enough(info: &CampaignInfo, outcome: &Outcome, tree: &SharingTree) -> Option<String> {
    let question: Question = serde_json::from_value(info.new.question.clone()).ok()?;
    let search = Search::new(&question, tree, &info.new.workload).ok()?;
    let each = outcome.cost.time.checked_div(outcome.cost.measurements.try_into().ok()?)?;
    let enough = search.enough().max(outcome.cost.measurements.saturating_mul(2));
    // Getting to know the program takes a measurement or more.
    Some(budget_for(enough, matches!(question.budget, Budget::Time(_)).then_some(each), each))
}

/// What budget so many measurements take, and so much time each where it is one in time, of which
/// `spent` goes into getting to know the program.
pub fn budget_for(measurements: u64, each: Option<Duration>, spent: Duration) -> String {
    let about = figures::counted(measurements, "measurement");
    let Some(each) = each else {
        return format!("a verdict takes at least about {about}: --budget {measurements}");
    };
    let seconds = each.as_secs_f64() * measurements as f64 + spent.as_secs_f64();
    let budget = match seconds {
        seconds if seconds <= 120.0 => format!("{:.0}s", (seconds / 10.0).ceil() * 10.0),
        seconds => format!("{:.0}m", (seconds / 60.0).ceil()),
    };
    format!(
        "a verdict takes at least about {about}, {} each: --budget {budget}",
        figures::duration(each)
    )
}

fn evidence(
    sheet: &mut Sheet,
    info: &CampaignInfo,
    outcome: &Outcome,
    tree: &SharingTree,
    files: Files<'_>,
) {
    let typical = outcome.best.as_ref().map(|best| best.performance.mean);
    let typical = typical.or(outcome.so_far.as_ref().map(|so_far| so_far.performance.mean));
    let typical = typical.or(outcome.baseline.map(|baseline| baseline.mean)).or(outcome.bound.upb);
    let typical = typical.or(outcome.as_found.map(|found| found.mean));
    let scale = Scale::new(&outcome.unit, typical.unwrap_or(1.0));
    match &outcome.best {
        Some(best) => sheet.line("best", &best.performance.show(&scale)),
        None => sheet.line("best", "none"),
    }
    if let Some(so_far) = &outcome.so_far {
        let performance = so_far.performance.show(&scale);
        sheet.line(
            "so far",
            &format!("{performance}, by the windows it leads in, which overstate it"),
        );
    }
    match &outcome.baseline {
        Some(baseline) => sheet.line("unpinned", &baseline.show(&scale)),
        None => sheet.line("unpinned", "not measured"),
    }
    if let Some(found) = outcome.as_found.as_ref().filter(|_| !is_simulated(&info.new.question)) {
        sheet.line("as found", &format!("{}, before anything was pinned", found.show(&scale)));
    }
    if let Some((gain, low, high)) = outcome.gain {
        let [gain, low, high] = [gain, low, high].map(figures::change);
        let confidence = figures::percent(outcome.bound.confidence);
        sheet.line("gain", &format!("{gain} ({confidence} interval {low} to {high})"));
    }
    for (index, rival) in outcome.ties.iter().take(RIVALS_SHOWN).enumerate() {
        let label = if index == 0 { "ties" } else { "" };
        sheet.line(
            label,
            &format!("{}, {}", place(rival, tree, info), rival.performance.show(&scale)),
        );
    }
    if outcome.ties.len() > RIVALS_SHOWN {
        let more = outcome.ties.len() - RIVALS_SHOWN;
        sheet.line(
            "",
            &format!("and {more} more: pinwise campaign show {} --json{}", info.id.0, files.flag()),
        );
    }
    if let Some(forecast) = &outcome.forecast {
        predicted(sheet, forecast, &scale);
    }
    // To the digits of the best: rounded to fewer, it may read as below it.
    let best = outcome.best.as_ref().map(|best| &best.performance);
    sheet.line(
        "bound",
        &bound(&outcome.bound, &best.map_or(scale.clone(), |best| best.telling(&scale))),
    );
    if let Some((certified, within)) = certified(info, &outcome.bound) {
        let [within, confidence] = [within, outcome.bound.confidence].map(figures::percent);
        let text = if certified {
            format!("certified: within {within} of the best possible, {confidence} confidence")
        } else {
            format!("{within} asked for, not reached")
        };
        sheet.line("", &text);
    }
    for note in &outcome.bound.notes {
        sheet.line("", note);
    }
    let model = if is_simulated(&info.new.question) { " of the model's time" } else { "" };
    sheet.line("cost", &format!("{}{model}", cost(&outcome.cost, &outcome.assignments)));
    if let Some(failure) = &outcome.failure {
        sheet.line("failed", &format!("the last: {failure}"));
    }
    sheet.line("strategy", &outcome.strategy);
    sheet.line("stopped", &outcome.stopped_because);
}

/// What the best predicted was predicted to do, how far predictions were off, and what they rest
/// on.
fn predicted(sheet: &mut Sheet, forecast: &Forecast, scale: &Scale) {
    if let Some(first) = forecast.finalists.first() {
        let by = if forecast.measured < forecast.slowdown {
            format!(" ({} if all were profiled)", scale.range(first.low, first.high))
        } else {
            String::new()
        };
        sheet.line(
            "predicted",
            &format!("{} at best{by}", scale.telling(first.low, first.high).show(first.predicted)),
        );
    }
    if let Some(gap) = forecast.gap() {
        sheet.line("", &proven(gap, forecast.first_is_best()));
    }
    if let Some((ratio, spread)) = forecast.ratio() {
        let n = forecast.finalists.iter().filter(|finalist| finalist.measured.is_some()).count();
        sheet.line(
            "",
            &format!(
                "measured / predicted is {ratio:.3} ± {spread:.3} (standard deviation) over the {n} measured by prediction"
            ),
        );
    }
    let base = figures::counted(forecast.base as u64, "experiment");
    let [measured, slowdown] =
        [forecast.measured, forecast.slowdown].map(|count| figures::count(count as u64));
    sheet.line(
        "profile",
        &format!("{base} with one instance, {measured} of {slowdown} with a thread beside others"),
    );
    sheet.line("", &forecast.ended);
    if forecast.checked > 0 {
        let error = figures::percent(forecast.error);
        let (held, checked) = (forecast.held, forecast.checked);
        sheet.line(
            "",
            &format!("of {checked} entries forecast before they were measured {held} fell into their 95 % intervals; error {error} (rms)"),
        );
    }
}

/// How near the best of all predictions that one is which is told.
fn proven(gap: f64, is_best: bool) -> String {
    if is_best {
        return "the best predicted of all assignments: proven".to_owned();
    }
    format!(
        "proven to be within {} of the best predicted of all assignments",
        figures::percent(gap.max(1e-4))
    )
}

fn bound(bound: &Bound, scale: &Scale) -> String {
    let confidence = figures::percent(bound.confidence);
    match (bound.upb, bound.upb_high) {
        (_, Some(high)) if bound.method == "exact" => {
            let gap = gap(bound.gap_high, "at most");
            format!(
                "no assignment is better than {} with {confidence} confidence{gap}",
                scale.show(high)
            )
        }
        (_, Some(high)) if bound.method == "cap" => {
            format!(
                "nothing exceeds {}, the cap as given{}",
                scale.show(high),
                gap(bound.gap_high, "at most")
            )
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

/// Whether the upper end of the gap is what was asked for, and what that is; `None` where nothing
/// is claimed of the gap.
pub fn certified(info: &CampaignInfo, bound: &Bound) -> Option<(bool, f64)> {
    let question: Question = serde_json::from_value(info.new.question.clone()).ok()?;
    Some((bound.gap_high? <= question.within, question.within))
}

fn gap(gap: Option<f64>, how: &str) -> String {
    gap.map_or(String::new(), |gap| format!(": the gap is {how} {}", figures::percent(gap)))
}

fn cost(cost: &Cost, assignments: &str) -> String {
    let failed = if cost.failed > 0 {
        format!(" ({} failed)", figures::count(cost.failed))
    } else {
        String::new()
    };
    format!(
        "{}{failed} of {} of {} different assignment{} in {}",
        figures::counted(cost.measurements, "measurement"),
        figures::count(cost.classes),
        figures::group(assignments),
        if assignments == "1" { "" } else { "s" },
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
        // The plan of a simulated processor fits no machine of ours.
        if !is_simulated(&info.new.question) {
            commands.push((
                "pin the threads of a running process:",
                format!("pinwise apply {plan} --pid PID"),
            ));
            commands.push(("start the program pinned:", format!("pinwise run {plan} -- CMD")));
        }
        commands.push((
            "say it to taskset, OpenMP, DPDK, systemd, …:",
            format!("pinwise export {plan} --to FORMAT"),
        ));
    }
    commands.push((
        "see every measurement on a page:",
        format!("pinwise report {}{}", info.id.0, files.flag()),
    ));
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
    let texts: Vec<String> =
        cpus.iter().map(|(cpu, names)| format!("{}:{}", cpu.0, names.join("+"))).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests;
