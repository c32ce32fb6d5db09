//! What the terminal and the page say of a comparison in the same words.

use crate::figures::{self, Scale};
use crate::reason::stop_reasons;
use pinwise_measure::ProgramNote;
use pinwise_placement::{
    ClaimVerdict, Comparison, ComparisonRow, JudgedClaim, LeftOutReason, Loss, SearchError,
    WayStanding,
};

/// If more ways than this cannot be distinguished from the best known, they are counted, not
/// listed. The table marks each.
const TIES_SHOWN: usize = 3;

/// Which way is the best known, and how much the default loses against it, or that this is open.
/// Also which ways cannot be distinguished from the best.
pub fn comparison_verdict(comparison: &Comparison) -> String {
    let Some(best) = comparison.best() else {
        return nothing_yet(comparison);
    };
    let scale = Scale::new(&comparison.unit, comparison.typical());
    let reaches = best.performance.show(&scale);
    if comparison.contradiction().is_some() {
        return format!("{} reaches {reaches}.", best.name);
    }
    // The first row is the program as nobody pins it.
    let default = comparison.rows.first().filter(|row| row.standing == WayStanding::Worse);
    let against = default.map_or(String::new(), |row| {
        format!(
            " {} loses {} against it ({}).",
            row.name,
            figures::percent(row.loss.estimate),
            lost(&row.loss)
        )
    });
    let tied = comparison.rows.iter().filter(|row| row.standing == WayStanding::Tied);
    let tied: Vec<&str> = tied.map(|row| row.name.as_str()).collect();
    let tied = match tied.as_slice() {
        [] => String::new(),
        [shown @ .., _, _] if shown.len() >= TIES_SHOWN => format!(
            " Statistically tied with it: {}; and {} more.",
            tied[..TIES_SHOWN].join("; "),
            tied.len() - TIES_SHOWN
        ),
        names => format!(" Statistically tied with it: {}.", names.join("; ")),
    };
    match comparison.rows.first().filter(|row| row.standing == WayStanding::Tied) {
        Some(default) => format!(
            "Undecided: nothing is shown to be faster than {}. The best known assignment is that \
             of {}: {reaches}.{tied}",
            default.name, best.name
        ),
        None => {
            format!("The best known assignment is that of {}: {reaches}.{against}{tied}", best.name)
        }
    }
}

/// The result before the first round of fresh windows.
fn nothing_yet(comparison: &Comparison) -> String {
    let Some(before) = &comparison.before else {
        return "Nothing is compared yet: the fresh windows come last.".to_owned();
    };
    let leads = before.leader.as_ref().map_or(String::new(), |leader| {
        let scale = Scale::new(&comparison.unit, leader.performance);
        format!("{} leads so far with {}. ", leader.name, scale.show(leader.performance))
    });
    format!(
        "{leads}Nothing is decided yet: {} only chose what is compared. The rounds that compare \
         come after them.",
        figures::counted(before.windows as u64, "window")
    )
}

/// Whether a claim was true, and what was lost.
pub fn claim_verdict(judged: &JudgedClaim) -> String {
    let loses = lost(&judged.loss);
    match judged.verdict {
        ClaimVerdict::Holds if judged.loss.high <= 0.0 => {
            "holds: nothing better is known".to_owned()
        }
        ClaimVerdict::Holds => format!("holds: it loses {loses}"),
        ClaimVerdict::Open => format!("open: it loses {loses}"),
        ClaimVerdict::False => format!("FALSE: it loses {loses}"),
    }
}

/// `at most 3.1 %` if the loss may be none, else `2.0 % to 3.1 %`. A gain beyond doubt has both
/// ends, `-3.1 % to -2.0 %`.
pub fn lost(loss: &Loss) -> String {
    let high = figures::percent(loss.high);
    match loss.low > 0.0 || loss.high < 0.0 {
        true => format!("{} to {high}", figures::percent(loss.low)),
        false => format!("at most {high}"),
    }
}

/// `2.5 %`; `none` if there is no share of what got nothing done.
pub fn loses(loss: &Loss) -> String {
    if loss.estimate.is_finite() { figures::percent(loss.estimate) } else { "none".to_owned() }
}

/// Says if the fresh windows contradict the choice of the best known. Otherwise it names the ways
/// that too few or too noisy windows could not distinguish. It also says what would. `None` if
/// nothing is open.
pub fn caveat(comparison: &Comparison, notes: &[ProgramNote]) -> Option<String> {
    let busy = notes.iter().any(|note| matches!(note, ProgramNote::Busy { .. }));
    contradiction(comparison, busy).or_else(|| unclear(comparison, busy))
}

/// More windows help little while others take the contexts.
const WHEN_BUSY: &str = "stop other programs and repeat";

fn contradiction(comparison: &Comparison, busy: bool) -> Option<String> {
    let better = comparison.contradiction()?;
    let how = match comparison.is_idle() {
        true => "the former did nothing".to_owned(),
        false => figures::change(-better.loss.estimate),
    };
    Some(format!(
        "No best is known: {} led, but {} did better in fresh windows ({how}): {}.",
        comparison.best().map_or("", |best| best.name.as_str()),
        better.name,
        if busy { WHEN_BUSY } else { "raise --rounds" },
    ))
}

/// The reference of the losses, in a sentence. It is not called the best if the fresh windows
/// contradict that.
pub fn against(comparison: &Comparison) -> String {
    match (comparison.contradiction(), comparison.best()) {
        (Some(_), Some(led)) => format!("{} (which led before)", led.name),
        _ => "the best known".to_owned(),
    }
}

/// What a way is beside the others, in a word or two.
pub fn standing(comparison: &Comparison, row: &ComparisonRow) -> &'static str {
    match row.standing {
        WayStanding::Best if comparison.contradiction().is_some() => "led before",
        WayStanding::Best => "best known",
        WayStanding::Tied => "tied",
        WayStanding::Worse => "",
        WayStanding::Better => "better",
    }
}

fn unclear(comparison: &Comparison, busy: bool) -> Option<String> {
    let unclear = comparison.unclear()?;
    let who = match unclear.rows.as_slice() {
        [one] => one.name.clone(),
        rows => format!("{} ways", rows.len()),
    };
    let remedy = match busy {
        true => WHEN_BUSY.to_owned(),
        false => format!("use --rounds {}", unclear.rounds),
    };
    Some(format!(
        "{who} may be as good as the best, or {} worse: {remedy}.",
        figures::percent(unclear.high)
    ))
}

/// Why a way is not compared, as a clause.
pub fn left_out(reason: &LeftOutReason) -> String {
    match reason {
        LeftOutReason::Refused { error: SearchError::NoProfile { .. } } => {
            "its profile needs instances that run alone, and more than there are".to_owned()
        }
        LeftOutReason::Refused { error: SearchError::OneInstance { workload } } => format!(
            "it predicts how instances affect each other, and {workload} is one instance: run more \
             (--workload NAME:2)"
        ),
        LeftOutReason::Refused { error } => error.to_string(),
        LeftOutReason::NothingAnnounced { stopped_because } => {
            format!("it announced nothing ({})", stop_reasons(stopped_because))
        }
        LeftOutReason::NotMeasured => "it could not be measured".to_owned(),
        LeftOutReason::Text { text } => text.clone(),
    }
}
