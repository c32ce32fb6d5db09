//! The reasons for the end and the course of a search, in clauses without a full stop.

use crate::figures::{counted, duration, group, percent};
use crate::shell::Files;
use pinwise_campaign::CampaignId;
use pinwise_placement::{LevelSource, StopReason, StrategyReason, Unmeasured};
use pinwise_threads::Jump;
use std::path::PathBuf;
use std::time::Duration;

/// Why a search ended, in one line.
pub fn stop_reasons(reasons: &[StopReason]) -> String {
    reasons.iter().map(stop_reason).collect::<Vec<_>>().join("; ")
}

/// Why a search went as it did, in one line.
pub fn strategy_reasons(reasons: &[StrategyReason]) -> String {
    reasons.iter().map(strategy_reason).collect::<Vec<_>>().join("; ")
}

/// A reason to stop.
pub fn stop_reason(reason: &StopReason) -> String {
    use StopReason as Is;
    let seconds =
        |seconds: f64| duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO));
    match reason {
        Is::FewLeft { left, of, rounds } => {
            let left = counted(*left, "assignment");
            let rounds = counted(*rounds, "round");
            format!("after {rounds} of the search, {left} of {of} may be the best")
        }
        Is::Tied { left, of, within } => {
            let within = percent(*within);
            format!("the best {left} of {of} assignments tie to within {within}")
        }
        Is::NearBound { gap, within, method } => {
            let ([gap, within], method) = ([*gap, *within].map(percent), method.name());
            format!("the best came within {gap} of the {method} bound ({within} asked for)")
        }
        Is::SampleNearBound { drawn, gap, within } => {
            let [gap, within] = [*gap, *within].map(percent);
            format!(
                "the best of {drawn} random assignments came within {gap} of the bound ({within} \
                 asked for)"
            )
        }
        Is::Sampled { drawn } => format!("{drawn} random assignments were measured"),
        Is::SampleFailed { last } => {
            format!("none of the last {last} random assignments could be measured")
        }
        Is::Fruitless { climbs } => format!("the last {climbs} climbs found nothing better"),
        Is::NoStartLeft { climbs } => {
            format!("no random start is left after climbs from {climbs} assignments")
        }
        Is::NoPredictor => "too few measurements succeeded to learn from".into(),
        Is::NoProfile => {
            "the profile predicts nothing: none of its experiments could be made".into()
        }
        Is::Predicted { measured, by_error } => {
            let chosen = if *by_error {
                "; each may be the best, given how far predictions were off"
            } else {
                ""
            };
            format!("the {measured} assignments with the best predictions were measured{chosen}")
        }
        Is::MeasuredAlone => "instances were measured alone".into(),
        Is::SearchShareUsed { share, .. } => {
            format!("the search used its share of the budget, {}", percent(*share))
        }
        Is::BudgetUsed { another_seconds: Some(another), left_seconds: Some(left) } => format!(
            "the budget is used up: another measurement takes about {}, {} are left",
            seconds(*another),
            seconds(*left)
        ),
        Is::BudgetUsed { .. } => "the budget is used up".into(),
        Is::Precise { windows, precision } => {
            format!("{windows} fresh windows each are precise to {}", percent(*precision))
        }
        Is::NoAssignment => "no assignment could be measured".into(),
        Is::BelowFloor { .. } => "with every assignment tried it fell below --floor".into(),
        Is::NothingMeasured { error } => format!("nothing could be measured: {error}"),
        Is::Running => "it is still running".into(),
        Is::Stopped { campaign, store } => go_on("stopped", *campaign, store),
        Is::Killed { campaign, store } => go_on("killed", *campaign, store),
        Is::Text { text } => text.clone(),
    }
}

fn go_on(how: &str, campaign: CampaignId, store: &Option<PathBuf>) -> String {
    let resume = Files::of_store(store.as_deref()).resume(campaign);
    format!("it was {how}; continue with: {resume}")
}

/// A reason why a search went as it did.
pub fn strategy_reason(reason: &StrategyReason) -> String {
    use StrategyReason as Is;
    match reason {
        Is::NotChosen => "not chosen yet".into(),
        Is::Exhaustive { assignments, times } => {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times over") };
            match group(assignments).as_str() {
                "1" => format!("exhaustive: the only assignment fits the budget {times}"),
                many => format!("exhaustive: the {many} assignments fit the budget {times}"),
            }
        }
        Is::ExhaustiveAsked { assignments, fits } => {
            let doubt =
                if *fits { "" } else { "; the budget may end before all of them are measured" };
            format!("exhaustive (--strategy): {} assignments{doubt}", group(assignments))
        }
        Is::Guided { uniform, assignments } => format!(
            "guided: a predictor chooses among {} assignments; it learns from {uniform} random \
             ones and all later ones",
            group(assignments)
        ),
        Is::SampleThenClimb { room, .. } => format!(
            "random sampling, then climbing from the best: the budget fits about {}, too few for \
             other searches",
            counted(*room, "measurement")
        ),
        Is::SampleOfMany { threads, .. } => format!(
            "random sampling, then climbing from the best: {} are too many for other searches",
            counted(*threads, "thread")
        ),
        Is::RandomAsked { assignments } => {
            format!("random sampling (--strategy): {} assignments", group(assignments))
        }
        Is::ClimbAsked { start, assignments } => format!(
            "climbing (--strategy) from the best of {start} random assignments: {} in all",
            group(assignments)
        ),
        Is::BlackBoxAsked { base, level, because, most, of, sampled } => {
            let because = level_source(because);
            // An earlier version left it out where it decided nothing.
            let because = if because.is_empty() { String::new() } else { format!(" ({because})") };
            let sampled = if sampled.is_empty() {
                String::new()
            } else {
                let counts: Vec<String> = sampled.iter().map(|count| group(count)).collect();
                format!(" at most, a sample of {}", counts.join(" and "))
            };
            format!(
                "blackbox (--strategy). It profiles one instance alone ({base} experiments\
                 {sampled}). It \
                 profiles each thread with co-runners in its {level}{because}: at most {most} of \
                 {of} experiments. Then it measures the best predictions"
            )
        }
        Is::AnyPerContext => {
            "any number of threads per context, since all such assignments fit the budget".into()
        }
        Is::OnePerContext => "at most one thread per context".into(),
        Is::AloneFirst => {
            "the performance of instances alone bounds their performance together".into()
        }
        Is::Text { text } => text.clone(),
    }
}

/// The source of the level of co-runners.
pub fn level_source(source: &LevelSource) -> &str {
    match source {
        LevelSource::Asked => "--core-local",
        LevelSource::Characterized => "found by characterize",
        LevelSource::Usual => "the usual one; pinwise characterize measures it",
        LevelSource::Text { text } => text,
    }
}

/// Why a part was not measured, or not to its end, as a clause.
pub fn unmeasured(why: &Unmeasured) -> String {
    match why {
        Unmeasured::NoTime => "no time was left for that".to_owned(),
        Unmeasured::Interrupted => "interrupted".to_owned(),
        Unmeasured::Failed { error } => error.clone(),
        &Unmeasured::Jumped { n, times } => Jump { n, times }.to_string(),
        Unmeasured::BelowFloor { n } => format!("the program fell below --floor with n = {n}"),
        Unmeasured::Text { text } => text.clone(),
    }
}

/// As [`unmeasured`], with what to do about it.
pub(crate) fn unmeasured_remedy(why: &Unmeasured) -> String {
    let remedy = match why {
        Unmeasured::NoTime => "raise --budget",
        Unmeasured::Interrupted => "resume the campaign",
        Unmeasured::Failed { .. } => "check that and repeat",
        Unmeasured::BelowFloor { .. } => "lower it",
        // A jump says so itself.
        Unmeasured::Jumped { .. } | Unmeasured::Text { .. } => return unmeasured(why),
    };
    format!("{}; {remedy}", unmeasured(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_interrupted_can_be_resumed() {
        let (campaign, store) = (CampaignId(3), Some("a b.db".into()));
        let text = |reason: &StopReason| {
            let kind = serde_json::to_value(reason).unwrap()["kind"].clone();
            let text = stop_reason(reason);
            assert!(text.contains(&format!("it was {}", kind.as_str().unwrap())), "{text}");
            text
        };
        let stopped = text(&StopReason::Stopped { campaign, store: None });
        assert_eq!(stopped, "it was stopped; continue with: pinwise campaign resume 3");
        let killed = text(&StopReason::Killed { campaign, store });
        let named = "it was killed; continue with: pinwise campaign resume 3 --store 'a b.db'";
        assert_eq!(killed, named);
    }

    #[test]
    fn reasons_stand_in_one_line() {
        let precise = StopReason::Precise { windows: 6, precision: 0.01 };
        let used = || StopReason::BudgetUsed { another_seconds: None, left_seconds: None };
        assert_eq!(
            stop_reasons(&[used(), precise]),
            "the budget is used up; 6 fresh windows each are precise to 1.0 %"
        );
        let divided = [StopReason::SearchShareUsed { share: 0.752, rest: true }, used()];
        let each: Vec<String> = divided.iter().map(stop_reason).collect();
        assert_eq!(
            each,
            ["the search used its share of the budget, 75.2 %", "the budget is used up"]
        );
        assert_eq!(stop_reasons(&divided), each.join("; "));
        let (another_seconds, left_seconds) = (Some(5.5), Some(2.5));
        assert_eq!(
            stop_reason(&StopReason::BudgetUsed { another_seconds, left_seconds }),
            "the budget is used up: another measurement takes about 5.5 s, 2.5 s are left"
        );
    }
}
