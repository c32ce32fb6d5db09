//! An outcome as text for a terminal.

use crate::bound_note::bound_notes;
use crate::drawing::draw_assignment;
use crate::figures::{self, Scale};
use crate::labelled_lines::{INDENT, LabelledLines};
use crate::note::outcome_memory;
use crate::reason::unmeasured;
use crate::reason::{stop_reasons, strategy_reasons};
use crate::shell::Files;
use crate::unfinished::Unfinished;
use crate::verdict::{NextStep, below_floor, next_steps, notes, simulated, verdict};
use pinwise_campaign::CampaignInfo;
use pinwise_placement::{
    BlackboxForecast, Bound, BoundMethod, Outcome, PlacedAssignment, PlacementQuestion,
    PlacementVerdict, ProfilingEnd, SearchCost,
};
use pinwise_topology::{CpuId, SharingTree};

/// Below this many fresh windows an interval is wide. It is shown only if a verdict rests on it.
const FEWEST: usize = 5;
const TOO_FEW: &str = "too few windows for an interval";

/// Rivals beyond this many are counted, not listed.
const RIVALS_SHOWN: usize = 8;

/// The outcome as text, for a terminal `width` columns wide; ends in a newline.
pub fn outcome_text(
    info: &CampaignInfo,
    question: &PlacementQuestion,
    outcome: &Outcome,
    files: Files<'_>,
    width: usize,
) -> String {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &verdict(info, question, outcome).to_string());
    let simulated = simulated(info);
    sheet.unfinished(Unfinished::of_placement(info, question, files).as_ref());
    for note in simulated.iter().cloned().chain(notes(info, outcome)) {
        sheet.paragraph("", 0, &note);
    }
    sheet.text.push('\n');
    if let Some(best) = outcome.best.as_ref().or(outcome.so_far.as_ref()) {
        let names: Vec<String> =
            info.new.workload.threads.iter().map(|thread| thread.name.clone()).collect();
        let machine = &info.new.machine;
        sheet.paragraph("", 0, heading(outcome, simulated.is_some()));
        sheet.text.push_str(&draw_assignment(
            machine,
            tree.leaves(),
            &names,
            &best.assignment,
            width,
        ));
        sheet.text.push('\n');
    }
    evidence(&mut sheet, info, question, outcome, &tree, files);
    sheet.text.push('\n');
    next(&mut sheet, info, outcome, files);
    sheet.text
}

/// The name of the best assignment. It may be significantly worse than the program without it.
fn heading(outcome: &Outcome, simulated: bool) -> &'static str {
    if outcome.best.is_none() {
        "The assignment that leads so far, without fresh windows yet:"
    } else if outcome.gain.is_some_and(|(_, _, high)| high < 0.0) {
        "The best assignment measured, which did worse than unpinned:"
    } else if !simulated && outcome.is_worse_than_found() {
        "The best assignment measured, which did worse than the initial program:"
    } else {
        "The best assignment found:"
    }
}

/// About the size of the performances of an outcome, by which its numbers are scaled.
pub fn typical(outcome: &Outcome) -> f64 {
    let typical = outcome.best.as_ref().map(|best| best.performance.mean);
    let typical = typical.or(outcome.so_far.as_ref().map(|so_far| so_far.performance.mean));
    let typical = typical.or(outcome.baseline.map(|baseline| baseline.mean)).or(outcome.bound.upb);
    typical.or(outcome.as_found.map(|found| found.mean)).unwrap_or(1.0)
}

fn evidence(
    sheet: &mut LabelledLines,
    info: &CampaignInfo,
    question: &PlacementQuestion,
    outcome: &Outcome,
    tree: &SharingTree,
    files: Files<'_>,
) {
    let scale = Scale::new(&outcome.unit, typical(outcome));
    match &outcome.best {
        Some(best) => sheet.line("best", &best.performance.show(&scale)),
        None => sheet.line("best", "none"),
    }
    if let Some(so_far) = &outcome.so_far {
        let performance = so_far.performance.show(&scale);
        sheet.line(
            "so far",
            &format!("{performance}, from the windows that chose it, which overstate it"),
        );
    }
    match &outcome.baseline {
        Some(baseline) => sheet.line("unpinned", &baseline.show(&scale)),
        None if outcome.as_found.is_some() => {
            sheet.line("unpinned", "not measured since the first pin");
        }
        None => sheet.line("unpinned", "not measured"),
    }
    if let Some(found) = outcome.as_found.as_ref().filter(|_| !info.new.simulated) {
        sheet.line("initial", &format!("{}, before pinwise pinned anything", found.show(&scale)));
    }
    if let Some((gain, interval)) = placement_gain(outcome) {
        let confidence = figures::percent(outcome.bound.confidence);
        let interval = interval.map(|interval| format!("{confidence} interval {interval}"));
        let interval = interval.unwrap_or_else(|none| none.to_owned());
        sheet.line("gain", &format!("{gain} ({interval})"));
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
    let bound =
        bound_text(&outcome.bound, &best.map_or(scale.clone(), |best| best.telling(&scale)));
    let gap =
        gap_text(&outcome.bound).map_or_else(String::new, |gap| format!(": the gap is {gap}"));
    sheet.line("bound", &format!("{bound}{gap}"));
    if let Some(text) = certified_text(question, &outcome.bound) {
        sheet.line("", &text);
    }
    for note in bound_notes(&outcome.bound, &outcome.unit, typical(outcome)) {
        sheet.line("", &note);
    }
    if let Some(memory) = outcome_memory(info, outcome) {
        sheet.line("memory", &memory);
    }
    let model = if info.new.simulated { " of the model's time" } else { "" };
    sheet.line("cost", &format!("{}{model}", cost(&outcome.cost, &outcome.assignments)));
    // The verdict says how far the program fell below a floor.
    if let Some(failure) = outcome.failure.as_ref().filter(|_| below_floor(outcome).is_none()) {
        sheet.line("failed", &format!("the last: {}", unmeasured(failure)));
    }
    sheet.line("strategy", &strategy_reasons(&outcome.strategy));
    sheet.line("ended", &stop_reasons(&outcome.stopped_because));
}

/// The best predicted performance, the errors of the predictions, and what they rest on.
fn predicted(sheet: &mut LabelledLines, forecast: &BlackboxForecast, scale: &Scale) {
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
                "measured / predicted is {ratio:.3} ± {spread:.3} (standard deviation) over the \
                 {n} measured by prediction"
            ),
        );
    }
    let base = figures::counted(forecast.base as u64, "experiment");
    let [measured, slowdown] =
        [forecast.measured, forecast.slowdown].map(|count| figures::count(count as u64));
    sheet.line(
        "profile",
        &format!("{base} with one instance, {measured} of {slowdown} with a thread next to others"),
    );
    if let Some(sampled) = sampled(&forecast.sampled) {
        sheet.line("", &sampled);
    }
    sheet.line("", &profiling_end(&forecast.ended));
    if forecast.checked > 0 {
        let error = figures::percent(forecast.error);
        let (held, checked) = (forecast.held, forecast.checked);
        sheet.line(
            "",
            &format!(
                "of {checked} entries forecast and then measured, {held} fell into their \
                 95 % intervals; error {error} (rms)"
            ),
        );
    }
}

/// That of these numbers of assignments, one for each program, only samples were measured.
fn sampled(assignments: &[String]) -> Option<String> {
    let counts: Vec<String> = assignments.iter().map(|count| figures::group(count)).collect();
    (!counts.is_empty()).then(|| {
        format!(
            "one instance has {} assignments: a sample was measured, a model forecasts the others",
            counts.join(" and ")
        )
    })
}

/// Why profiling ended, as a clause.
pub fn profiling_end(end: &ProfilingEnd) -> String {
    match end {
        ProfilingEnd::EveryEntry => "every entry of the tables was measured".to_owned(),
        ProfilingEnd::GoodEntries => {
            "every entry that good assignments read was measured".to_owned()
        }
        ProfilingEnd::Settled { gap } => format!(
            "no assignment would be predicted better by more than {:.2} % if every entry were \
             measured",
            100.0 * gap
        ),
        ProfilingEnd::Allowed { experiments } => {
            format!("all {experiments} experiments allowed were made")
        }
        ProfilingEnd::AllMade => "all possible experiments were made".to_owned(),
        ProfilingEnd::Unended => "measuring ended first".to_owned(),
        ProfilingEnd::Text { text } => text.clone(),
    }
}

/// How near the prediction shown is to the best of all predictions.
fn proven(gap: f64, is_best: bool) -> String {
    if is_best {
        return "the best predicted of all assignments: proven".to_owned();
    }
    format!(
        "proven to be within {} of the best predicted of all assignments",
        figures::percent(gap.max(1e-4))
    )
}

/// The gain, and its interval, `+4 % to +12 %`, or why there is none.
pub fn placement_gain(outcome: &Outcome) -> Option<(String, Result<String, &'static str>)> {
    let (gain, low, high) = outcome.gain?;
    let [gain, low, high] = [gain, low, high].map(figures::change);
    let windows = outcome.best.as_ref().map_or(0, |best| best.performance.n);
    let few = windows < FEWEST && outcome.verdict == PlacementVerdict::Undecided;
    Some((gain, if few { Err(TOO_FEW) } else { Ok(format!("{low} to {high}")) }))
}

/// The bound on the best possible, without the gap.
pub fn bound_text(bound: &Bound, scale: &Scale) -> String {
    let confidence = figures::percent(bound.confidence);
    let counted = match bound.method {
        BoundMethod::Solo => "experiment",
        _ => "assignment",
    };
    let from = || format!("{}, {}", bound.method.name(), figures::counted(bound.n as u64, counted));
    match (bound.upb, bound.upb_high) {
        (_, Some(high)) if bound.method == BoundMethod::Exact => {
            format!(
                "no assignment has a better mean than {} with {confidence} confidence",
                scale.show(high)
            )
        }
        (_, Some(high)) if bound.method == BoundMethod::Cap => {
            format!("nothing exceeds {}, the cap as given", scale.show(high))
        }
        (Some(point), Some(high)) => format!(
            "the best possible is about {}, at most {} with {confidence} confidence ({})",
            scale.show(point),
            scale.show(high),
            from()
        ),
        (Some(point), None) => format!(
            "the best possible is about {}, with no upper end to the interval ({})",
            scale.show(point),
            from()
        ),
        (None, _) => "none".to_owned(),
    }
}

/// The gap between the best found and the bound: `at most 2.0 %`.
pub fn gap_text(bound: &Bound) -> Option<String> {
    let (how, gap) = match (bound.upb_high, bound.gap_high) {
        (Some(_), Some(gap)) => ("at most", gap),
        (None, _) if bound.upb.is_some() => ("about", bound.gap?),
        _ => return None,
    };
    Some(format!("{how} {}", figures::percent(gap)))
}

/// Whether the upper end of the gap is within the requested limit, and that limit. `None` if
/// nothing is claimed of the gap.
pub fn certified(question: &PlacementQuestion, bound: &Bound) -> Option<(bool, f64)> {
    Some((bound.gap_high? <= question.within, question.within))
}

/// The same in words.
pub fn certified_text(question: &PlacementQuestion, bound: &Bound) -> Option<String> {
    let (certified, within) = certified(question, bound)?;
    let [within, confidence] = [within, bound.confidence].map(figures::percent);
    Some(if certified {
        format!("certified: within {within} of the best possible, {confidence} confidence")
    } else {
        format!("not certified: --within asks for {within}")
    })
}

fn cost(cost: &SearchCost, assignments: &str) -> String {
    let failed = if cost.failed > 0 {
        format!(" ({} failed)", figures::count(cost.failed))
    } else {
        String::new()
    };
    let stalled = match cost.stalled {
        stalled if stalled.saturating_mul(10) < cost.time || stalled.is_zero() => String::new(),
        stalled => format!(" (the disk or others held it up for {})", figures::duration(stalled)),
    };
    format!(
        "{}{failed} of {} of {} different assignment{} in {}{stalled}",
        figures::counted(cost.measurements, "measurement"),
        figures::count(cost.classes),
        figures::group(assignments),
        if assignments == "1" { "" } else { "s" },
        figures::duration(cost.time)
    )
}

/// Commands stand on lines of their own, so that they can be copied.
fn next(sheet: &mut LabelledLines, info: &CampaignInfo, outcome: &Outcome, files: Files<'_>) {
    let mut steps = next_steps(info, outcome, files);
    steps.push(NextStep {
        what: "see every measurement on a page",
        command: format!("pinwise report {}{}", info.id.0, files.flag()),
    });
    for (index, NextStep { what, command }) in steps.iter().enumerate() {
        sheet.line(if index == 0 { "next" } else { "" }, &format!("{what}:"));
        sheet.text.push_str(&format!("{:INDENT$}  {command}\n", ""));
    }
}

/// An assignment in one line: the threads on each used context, by the kernel's numbers.
fn place(best: &PlacedAssignment, tree: &SharingTree, info: &CampaignInfo) -> String {
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
