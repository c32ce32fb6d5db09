//! Tests of the text of an outcome.

use super::*;
use crate::verdict::budget_for;
use pinwise_campaign::{CampaignId, CampaignState, Kind, NewCampaign};
use pinwise_measure::{MemoryPolicy, MemoryUse, ProgramNote, Thread, Unit, Workload};
use pinwise_placement::{
    BoundMethod, BoundNote, Budget, Drift, Estimate, PlacementVerdict, StopReason, StrategyName,
    StrategyReason,
};
use pinwise_topology::{Alike, Assignment, Machine};
use serde::Deserialize as _;
use std::path::Path;
use std::time::Duration;

fn campaign(unit: Unit) -> CampaignInfo {
    let thread = |name: &str| Thread::new(name, "r", 0);
    CampaignInfo {
        id: CampaignId(7),
        new: NewCampaign {
            kind: Kind::Place,
            parent: None,
            command: vec!["pinwise".into(), "place".into()],
            machine: Machine::from_shape("2x2").unwrap(),
            alike: Alike::ByStructure,
            workload: Workload {
                name: "service".into(),
                threads: vec![thread("rx"), thread("tx")],
            },
            unit,
            simulated: false,
            question: serde_json::to_value(question()).unwrap(),
            seed: 1,
        },
        started: 0,
        state: CampaignState::Finished,
        conclusion: None,
        records: 240,
        running: false,
    }
}

fn question() -> PlacementQuestion {
    PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(240))
}

fn figure(mean: f64, half: f64) -> Estimate {
    Estimate { mean, low: mean - half, high: mean + half, n: 12, confidence: 0.95, spread: half }
}

fn best(leaves: [u32; 2], mean: f64) -> PlacedAssignment {
    PlacedAssignment {
        assignment: Assignment::new(leaves.to_vec()),
        performance: figure(mean, mean / 100.0),
    }
}

fn outcome(unit: Unit, mean: f64) -> Outcome {
    Outcome {
        verdict: PlacementVerdict::Pin,
        unit,
        best: Some(best([0, 1], mean)),
        baseline: Some(figure(mean * 0.8, mean / 20.0)),
        so_far: None,
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
            method: BoundMethod::Exact,
            n: 2,
            notes: vec![BoundNote::AllMeasured],
        },
        assignments: "2".into(),
        drift: None,
        notes: Vec::new(),
        cost: SearchCost {
            measurements: 240,
            failed: 3,
            classes: 2,
            time: Duration::from_secs(12),
            stalled: Duration::ZERO,
        },
        failure: Some("thread 125 may not run on CPU 3".to_owned().into()),
        strategy: vec![StrategyReason::Exhaustive { assignments: "2".into(), times: 3 }],
        stopped_because: vec![StopReason::Precise { windows: 12, precision: 0.01 }],
        memory: None,
        forecast: None,
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
    let text = text_of(&campaign(unit.clone()), &outcome(unit, 1.72e6), files, 100);
    assert_text(&text, PIN);
}

#[test]
fn disturbances_are_shown_beside_the_verdict() {
    let unit = Unit::rate("packets/s");
    let drift = Some(Drift { change: -0.138, significant: true, n: 31 });
    let met = Outcome {
        drift,
        notes: vec![ProgramNote::Text { text: "the machine was busy".into() }],
        ..outcome(unit.clone(), 1.72e6)
    };
    let text = text_of(&campaign(unit), &met, Files::default(), 100);
    let verdict = text.split("\n\n").next().unwrap();
    assert!(
        verdict.contains(
            "\nThe machine was busy.\nThe machine or the load changed: a reference became 13.8 % \
             worse (31 windows); "
        ),
        "{verdict}"
    );
}

#[test]
fn before_fresh_windows_the_leader_is_shown_as_leading() {
    let unit = Unit::rate("packets/s");
    let stopped = CampaignInfo { state: CampaignState::Stopped, ..campaign(unit.clone()) };
    let so_far = Outcome {
        verdict: PlacementVerdict::Undecided,
        best: None,
        so_far: Some(best([0, 3], 1.5e6)),
        gain: None,
        ties: Vec::new(),
        ..outcome(unit, 1.72e6)
    };
    let text = text_of(&stopped, &so_far, Files::default(), 100);
    assert!(
        text.contains("The assignment that leads so far, without fresh windows yet:\n"),
        "{text}"
    );
    assert!(
        text.contains("  best      none\n  so far    1.50 M packets/s (95 % interval 1.49 to 1.51"),
        "{text}"
    );
}

#[test]
fn a_narrow_terminal_has_hanging_lines() {
    let unit = Unit::rate("packets/s");
    let text = text_of(&campaign(unit.clone()), &outcome(unit, 1.72e6), Files::default(), 60);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert_text(&text, NARROW);
}

#[test]
fn a_cost_is_shown_as_a_cost_and_the_default_may_be_best() {
    let unit = Unit::cost("s");
    let kept = Outcome {
        verdict: PlacementVerdict::KeepDefault,
        gain: Some((-0.02, -0.03, -0.01)),
        ties: Vec::new(),
        ..outcome(unit.clone(), 0.5)
    };
    let files = Files { plan: Some(Path::new("plans/7.toml")), store: None };
    assert_text(&text_of(&campaign(unit), &kept, files, 100), KEEP);
}

#[test]
fn a_verdict_covers_what_was_measured_and_says_what_held_up_the_search() {
    let unit = Unit::rate("packets/s");
    let mut kept = Outcome {
        verdict: PlacementVerdict::KeepDefault,
        assignments: "12345".into(),
        ..outcome(unit.clone(), 1.72e6)
    };
    kept.cost.stalled = Duration::from_secs(3);
    let info = campaign(unit);
    assert_eq!(
        verdict(&info, &question(), &kept).to_string(),
        "Keep the default: none of the assignments measured (2 of 12,345) is better than unpinned."
    );
    let held_up = "The disk or other programs held it up for 3 s of 12 s: repeat.";
    assert_eq!(notes(&info, &kept), [held_up]);
    kept.cost.stalled = Duration::from_millis(2999);
    assert_eq!(notes(&info, &kept), [""; 0]);
}

#[test]
fn without_anything_measured_nothing_is_claimed() {
    let unit = Unit::rate("ops/s");
    let nothing = Outcome {
        verdict: PlacementVerdict::Undecided,
        best: None,
        baseline: None,
        gain: None,
        ties: Vec::new(),
        bound: Bound {
            upb: None,
            upb_high: None,
            gap_high: None,
            notes: vec!["there are no values".to_owned().into()],
            ..outcome(unit.clone(), 1.0).bound
        },
        cost: SearchCost {
            measurements: 3,
            failed: 3,
            classes: 0,
            time: Duration::from_secs(12),
            stalled: Duration::ZERO,
        },
        stopped_because: vec![StopReason::NoAssignment],
        ..outcome(unit.clone(), 1.0)
    };
    assert_text(&text_of(&campaign(unit.clone()), &nothing, Files::default(), 100), UNDECIDED);
    // A floor is the one reason. More budget would not help.
    let error = "the program fell to 5 ops/s, below the floor of 60 % of its speed unpinned: 9 \
        ops/s right after";
    let floored = Outcome {
        bound: Bound { notes: Vec::new(), ..nothing.bound.clone() },
        cost: SearchCost { classes: 1, ..nothing.cost },
        failure: Some(pinwise_placement::Unmeasured::Failed { error: error.into() }),
        stopped_because: vec![StopReason::BelowFloor { error: error.into() }],
        ..nothing
    };
    let text = text_of(&campaign(unit), &floored, Files::default(), 200);
    let first =
        format!("Undecided: stopped: with every assignment tried {error}. Lower --floor to go on.");
    assert_eq!(text.lines().next(), Some(first.as_str()));
    for word in ["--budget", "could be measured", "every assignment was", "failed  "] {
        assert!(!text.contains(word), "{text}");
    }
}

#[test]
fn what_few_windows_leave_open_is_left_open() {
    let unit = Unit::rate("packets/s");
    let whole = outcome(unit.clone(), 1.72e6);
    let performance = Estimate { n: 4, ..figure(1.72e6, 2e4) };
    let few = Outcome {
        best: Some(PlacedAssignment { performance, ..best([0, 1], 1.72e6) }),
        baseline: None,
        as_found: Some(figure(1.4e6, 2e4)),
        verdict: PlacementVerdict::Undecided,
        ..whole
    };
    let mut info = campaign(unit);
    let text = text_of(&info, &few, Files::default(), 1000);
    assert!(text.contains("(too few windows for an interval)"), "{text}");
    let decided = Outcome { verdict: PlacementVerdict::Pin, ..few.clone() };
    let shown = text_of(&info, &decided, Files::default(), 1000);
    assert!(shown.contains("interval +20.0 % to +30.0 %"), "{shown}");
    assert!(text.contains("not measured since the first pin"), "{text}");
    info.state = CampaignState::Open;
    let text = text_of(&info, &few, Files::default(), 1000);
    assert!(
        text.starts_with("Undecided so far: the campaign was killed before its end."),
        "{text}"
    );
}

#[test]
fn memory_has_a_line_where_there_are_several_nodes() {
    let unit = Unit::rate("packets/s");
    let mut info = campaign(unit.clone());
    let line_of = |info: &CampaignInfo, policy, pages: &[(u32, u64)], local| {
        let nodes = pages.iter().copied().collect();
        let memory = Some(MemoryUse { policy, nodes, local });
        let held = Outcome { memory, ..outcome(unit.clone(), 1.72e6) };
        let text = text_of(info, &held, Files::default(), 1000);
        text.lines().find_map(|line| Some(line.strip_prefix("  memory    ")?.to_owned()))
    };
    let line =
        |info: &CampaignInfo, policy, pages: &[(u32, u64)]| line_of(info, policy, pages, None);
    let follow = MemoryPolicy::Follow;
    assert_eq!(line(&info, follow, &[(0, 7)]), None);
    let mut node = info.new.machine.numa[0].clone();
    node.os_index = 1;
    info.new.machine.numa.push(node);
    let told = |policy, pages: &[(u32, u64)]| line(&info, policy, pages).unwrap();
    assert_eq!(told(follow, &[(1, 12_345)]), "follow: 100 % of 12,345 pages on node 1");
    let spread = told(MemoryPolicy::Leave, &[(0, 250), (1, 750)]);
    assert_eq!(spread, "leave: 75 % of 1,000 pages on node 1, 25 % on node 0");
    let local = line_of(&info, follow, &[(1, 7)], Some(0.934)).unwrap();
    assert_eq!(
        local,
        "follow: 100 % of 7 pages on node 1; 93.4 % of all accesses seen in the search were local"
    );
    let unknown = "interleave; where the memory lay is not known";
    assert_eq!(told(MemoryPolicy::Interleave, &[]), unknown);
}

#[test]
fn the_advice_to_decide_a_verdict_has_an_amount() {
    let unit = Unit::rate("packets/s");
    let undecided = |budget, gain| {
        let question = PlacementQuestion { within: 0.025, budget, ..question() };
        let info = campaign(unit.clone());
        let outcome = Outcome {
            verdict: PlacementVerdict::Undecided,
            gain: Some(gain),
            stopped_because: Vec::new(),
            ..outcome(unit.clone(), 1.72e6)
        };
        let reason = verdict(&info, &question, &outcome).reason;
        reason.split_once("To decide it, ").unwrap().1.to_owned()
    };
    let (count, time) = (Budget::Measurements(240), Budget::Time(Duration::from_secs(20)));
    assert_eq!(undecided(count, (0.05, -0.05, 0.15)), "raise --budget to 1920 (measurements).");
    assert_eq!(undecided(time, (0.05, -0.05, 0.15)), "raise --budget to 3m.");
    assert_eq!(undecided(time, (0.05, -0.01, 0.11)), "raise --budget to 1m.");
    assert_eq!(undecided(time, (0.01, -0.4, 0.5)), "raise --budget to 6m or more.");
}

/// The time of preparing the program is part of what the user asks for.
#[test]
fn advice_on_a_budget_counts_preparing_and_is_not_below_what_a_verdict_takes() {
    let unit = Unit::rate("packets/s");
    let advised_on = |gain, prepared: u64, each: u64, stalled: u64| {
        let (budget, prepared) =
            (Budget::Time(Duration::from_secs(10)), Duration::from_secs(prepared));
        let question = PlacementQuestion { within: 0.025, budget, prepared, ..question() };
        let undecided = Outcome {
            verdict: PlacementVerdict::Undecided,
            gain: Some(gain),
            stopped_because: Vec::new(),
            ..outcome(unit.clone(), 1.72e6)
        };
        let stalled = Duration::from_secs(stalled);
        let time = Duration::from_millis(each) * undecided.cost.measurements as u32 + stalled;
        let cost = SearchCost { time, stalled, ..undecided.cost };
        let reason =
            verdict(&campaign(unit.clone()), &question, &Outcome { cost, ..undecided }).reason;
        reason.rsplit_once("raise --budget to ").unwrap().1.to_owned()
    };
    let advised = |prepared, each, stalled| advised_on((0.05, 0.0, 0.1), prepared, each, stalled);
    assert_eq!((advised(0, 1, 0), advised(10, 1, 0)), ("20s.".into(), "40s.".into()));
    assert_eq!(advised(0, 1000, 0), "2m.", "at least as much as the note up front");
    let wide = |stalled| advised_on((0.05, -0.05, 0.15), 0, 1, stalled);
    assert_eq!((wide(0), wide(5)), ("2m.".into(), "40s.".into()), "it need not stall again");
    assert_eq!(advised(0, 1, 90), "20s.", "nor do more measurements");
}

/// The text, with the question that the campaign stores.
fn text_of(info: &CampaignInfo, outcome: &Outcome, files: Files<'_>, width: usize) -> String {
    let question = PlacementQuestion::deserialize(&info.new.question).unwrap();
    outcome_text(info, &question, outcome, files, width)
}

/// The verdict of [`outcome`].
const GAINED: &str =
    "Pin: the best assignment beats unpinned by +25.0 % (interval +20.0 % to +30.0 %).";

/// What is said before the best assignment.
fn said(info: &CampaignInfo, outcome: &Outcome) -> String {
    let text = text_of(info, outcome, Files::default(), 1000);
    text.split("\n\n").next().unwrap_or_default().replace('\n', " ")
}

#[test]
fn a_program_found_doing_otherwise_than_unpinned_after_qualifies_the_verdict() {
    let unit = Unit::rate("packets/s");
    let info = campaign(unit.clone());
    // 1.38 unpinned; the best is 1.72.
    let found =
        |mean: f64| Outcome { as_found: Some(figure(mean, 2e4)), ..outcome(unit.clone(), 1.72e6) };
    assert_eq!(said(&info, &found(1.4e6)), GAINED);
    let better = said(&info, &found(1.6e6));
    assert!(better.starts_with(&format!("{GAINED} Initially it was ")), "{better}");
    assert!(
        better.ends_with(
            "16.3 % better than unpinned later; gain over it +5.1 % to +9.9 %. Repeat to check."
        ),
        "{better}"
    );
    let as_good = said(&info, &found(1.71e6));
    assert!(
        as_good.starts_with(&format!("{GAINED} A gain over the initial program ")),
        "{as_good}"
    );
    let kept = Outcome { verdict: PlacementVerdict::KeepDefault, ..found(1.6e6) };
    assert!(
        said(&info, &kept)
            .ends_with("unpinned later. The OS may have placed it otherwise: repeat."),
        "{}",
        said(&info, &kept)
    );
    // Found slower than after; so slow that nothing is known of how much.
    let slow = said(&info, &Outcome { as_found: Some(figure(1e5, 1.2e5)), ..found(0.0) });
    assert!(slow.contains("; gain over it at least +674.0 %. "), "{slow}");
    let drift = |change: f64| Some(Drift { change, significant: true, n: 30 });
    let told =
        |mean: f64, change: f64| said(&info, &Outcome { drift: drift(change), ..found(mean) });
    for (mean, change) in [(1.6e6, -0.1), (1.0e6, 0.1)] {
        let told = told(mean, change);
        assert!(
            told.contains("later. The machine or the load changed too: repeat.")
                && !told.contains("gain over it"),
            "{told}"
        );
    }
    assert!(told(1.6e6, 0.1).contains("gain over it +5.1 %"), "{}", told(1.6e6, 0.1));
}

#[test]
fn the_best_is_called_what_it_is_where_the_program_did_better_without_it() {
    let unit = Unit::rate("packets/s");
    // The best is 10 ± 0.1.
    let of = |gain: f64, found: f64, half: f64| {
        let gain = Some((gain, gain - 0.02, gain + 0.02));
        let outcome =
            Outcome { gain, as_found: Some(figure(found, half)), ..outcome(unit.clone(), 10.0) };
        (heading(&outcome, false), outcome.beats_as_found())
    };
    let found = "The best assignment found:";
    assert_eq!(of(0.1, 9.0, 0.5), (found, true));
    assert!(of(-0.03, 9.0, 0.5).0.ends_with("did worse than unpinned:"));
    assert_eq!(of(-0.001, 9.0, 0.5).0, found, "it may as well be better");
    assert_eq!(of(0.1, 11.0, 3.0), (found, true), "four windows do not tell");
    assert_eq!(
        of(0.1, 11.0, 0.5),
        ("The best assignment measured, which did worse than the initial program:", false)
    );
}

#[test]
fn a_budget_that_ended_early_names_one_that_does() {
    let unit = Unit::cost("s");
    let ended = |budget: Budget, measurements: u64| {
        let mut info = campaign(unit.clone());
        let question = PlacementQuestion::new(pinwise_placement::StrategyName::Auto, budget);
        info.new.question = serde_json::to_value(question).unwrap();
        let cost = SearchCost {
            measurements,
            failed: 0,
            classes: 0,
            time: Duration::from_secs(5 * measurements),
            stalled: Duration::ZERO,
        };
        said(
            &info,
            &Outcome {
                verdict: PlacementVerdict::Undecided,
                best: None,
                cost,
                ..outcome(unit.clone(), 0.2)
            },
        )
    };
    // Two assignments: each three times, and five rounds of both and of the unpinned program.
    let told = "Undecided: the budget ended before an assignment had fresh windows. A verdict \
        takes at least about ";
    let enough = format!("{told}44 measurements, 5 s each: use --budget 6m.");
    assert_eq!(ended(Budget::Time(Duration::from_secs(20)), 2), enough);
    assert_eq!(
        ended(Budget::Measurements(2), 2),
        format!("{told}44 measurements: use --budget 44.")
    );
    // More than what did not do.
    assert_eq!(
        ended(Budget::Measurements(40), 40),
        format!("{told}80 measurements: use --budget 80.")
    );
    let budget =
        |spent: u64| budget_for(44, Some(Duration::from_millis(50)), Duration::from_secs(spent));
    assert!(
        budget(1).ends_with("--budget 5s") && budget(9).ends_with("--budget 20s"),
        "{}",
        budget(9)
    );
}

/// A placement is in use. It is the operating system's, or the balanced default of a model.
#[test]
fn what_is_searched_is_called_an_assignment_in_every_line() {
    let unit = Unit::rate("packets/s");
    let found = Some(figure(1.71e6, 2e4));
    for (decided, simulated, as_found) in [
        (PlacementVerdict::Pin, false, None),
        (PlacementVerdict::Pin, false, found),
        (PlacementVerdict::Pin, true, None),
        (PlacementVerdict::KeepDefault, false, None),
        (PlacementVerdict::Undecided, false, None),
    ] {
        let mut info = campaign(unit.clone());
        info.new.simulated = simulated;
        let mut outcome = Outcome { verdict: decided, as_found, ..outcome(unit.clone(), 1.72e6) };
        outcome.bound.notes = vec![
            BoundNote::AnyDistribution { share: 0.051 },
            BoundNote::LeftOut { assignments: 3 },
            BoundNote::Predicted { scatter: 0.01, draws: 40 },
            BoundNote::NothingMeasured,
            BoundNote::FewWindows,
            BoundNote::AllMeasured,
        ];
        let text = text_of(&info, &outcome, Files::default(), usize::MAX);
        assert!(!text.contains("placement") && text.contains("assignment"), "{text}");
    }
}

const PIN: &str = "\
Pin: the best assignment beats unpinned by +25.0 % (interval +20.0 % to +30.0 %).

The best assignment found:
Core 0  0 [rx]  1 [tx]
Core 1: free (2,3)

  best      1.72 M packets/s (95 % interval 1.70 to 1.74 M packets/s, 12 windows)
  unpinned  1.38 M packets/s (95 % interval 1.29 to 1.46 M packets/s, 12 windows)
  gain      +25.0 % (95 % interval +20.0 % to +30.0 %)
  ties      0:rx 2:tx, 1.72 M packets/s (95 % interval 1.70 to 1.74 M packets/s, 12 windows)
  bound     no assignment has a better mean than 1.75 M packets/s with 95 % confidence: the gap is
            at most 2.0 %
            certified: within 2.5 % of the best possible, 95 % confidence
            every assignment was measured: the bound rests on noise alone
  cost      240 measurements (3 failed) of 2 of 2 different assignments in 12 s
  failed    the last: thread 125 may not run on CPU 3
  strategy  exhaustive: the 2 assignments fit the budget 3 times over
  ended     12 fresh windows each are precise to 1.0 %

  next      pin the threads of a running process:
              pinwise apply plans/7.toml --pid PID
            start the program pinned:
              pinwise run plans/7.toml -- CMD
            write it for taskset, OpenMP, DPDK, systemd, …:
              pinwise export plans/7.toml --to FORMAT
            see every measurement on a page:
              pinwise report 7 --store my.db
";
const NARROW: &str = "\
Pin: the best assignment beats unpinned by +25.0 % (interval
+20.0 % to +30.0 %).

The best assignment found:
Core 0  0 [rx]  1 [tx]
Core 1: free (2,3)

  best      1.72 M packets/s (95 % interval 1.70 to
            1.74 M packets/s, 12 windows)
  unpinned  1.38 M packets/s (95 % interval 1.29 to
            1.46 M packets/s, 12 windows)
  gain      +25.0 % (95 % interval +20.0 % to +30.0 %)
  ties      0:rx 2:tx, 1.72 M packets/s (95 % interval
            1.70 to 1.74 M packets/s, 12 windows)
  bound     no assignment has a better mean than
            1.75 M packets/s with 95 % confidence: the gap
            is at most 2.0 %
            certified: within 2.5 % of the best possible,
            95 % confidence
            every assignment was measured: the bound rests
            on noise alone
  cost      240 measurements (3 failed) of 2 of 2 different
            assignments in 12 s
  failed    the last: thread 125 may not run on CPU 3
  strategy  exhaustive: the 2 assignments fit the budget
            3 times over
  ended     12 fresh windows each are precise to 1.0 %

  next      see every measurement on a page:
              pinwise report 7
";
const KEEP: &str = "\
Keep the default: no assignment is better than unpinned.

The best assignment measured, which did worse than unpinned:
Core 0  0 [rx]  1 [tx]
Core 1: free (2,3)

  best      2.00 s (95 % interval 1.98 to 2.02 s, 12 windows)
  unpinned  2.50 s (95 % interval 2.35 to 2.67 s, 12 windows)
  gain      -2.0 % (95 % interval -3.0 % to -1.0 %)
  bound     no assignment has a better mean than 1.96 s with 95 % confidence: the gap is at most
            2.0 %
            certified: within 2.5 % of the best possible, 95 % confidence
            every assignment was measured: the bound rests on noise alone
  cost      240 measurements (3 failed) of 2 of 2 different assignments in 12 s
  failed    the last: thread 125 may not run on CPU 3
  strategy  exhaustive: the 2 assignments fit the budget 3 times over
  ended     12 fresh windows each are precise to 1.0 %

  next      see every measurement on a page:
              pinwise report 7
";
const UNDECIDED: &str = "\
Undecided: no assignment could be measured. Check the last failure, and repeat.

  best      none
  unpinned  not measured
  bound     none
            there are no values
  cost      3 measurements (3 failed) of 0 of 2 different assignments in 12 s
  failed    the last: thread 125 may not run on CPU 3
  strategy  exhaustive: the 2 assignments fit the budget 3 times over
  ended     no assignment could be measured

  next      see every measurement on a page:
              pinwise report 7
";
