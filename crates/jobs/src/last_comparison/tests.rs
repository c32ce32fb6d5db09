use super::*;
use pinwise_campaign::Record;
use pinwise_measure::{Detail, MeasureError, Measurement, Retry};
use pinwise_present::last_comparison_note;

#[test]
fn one_round_is_made_whatever_it_takes_and_others_only_where_the_longest_would_fit() {
    let another = |ends: &[u64], time| {
        let ends = ends.iter().copied().map(Duration::from_secs);
        is_time_for_another(ends, Duration::from_secs(time))
    };
    assert!(another(&[], 0));
    assert!(!another(&[1], 1), "the second would not end in time");
    assert!(another(&[2, 4, 6, 8], 10), "the fifth ends in time");
    assert!(!another(&[1, 4, 6, 8], 10), "it may be as long as the second");
}

fn seen(measured: &Measurement) -> Option<Seen> {
    let others: Option<OtherLoad> = measured.detail.as_ref()?.read().ok();
    let (value, unit) = (measured.performance, Unit::cost("s"));
    // What others took, the program wanted.
    let lost = Some(others?.taken / 10.0);
    Some(Seen { value, unit, others, modelled: None, lost, below_floor: false })
}

/// Of three ways.
fn question() -> LastComparisonQuestion {
    LastComparisonQuestion {
        n: 2,
        default: Some(4),
        as_default: false,
        default_known: None,
        placed: Some(Assignment::new(vec![0, 1])),
        memory: MemoryPolicy::Leave,
        time: Duration::from_secs(1),
        windows: 1.0,
        precision: None,
        looks: 1,
        ranked_on: Some(10),
        own_load: false,
        goes_on: false,
        unplaced: Vec::new(),
    }
}

/// Pinned, the program is twice as fast as by default. Other programs take a share of ten
/// contexts, which `taken` gives for each window. A share of half or more halves the program's
/// speed.
fn compared(rounds: usize, taken: impl Fn(u64) -> f64, lost: bool) -> LastComparison {
    let question = question();
    assert_eq!(question.ways(), [Way::Default, Way::Number, Way::Placed]);
    let as_default = LastComparisonQuestion { as_default: true, ..question.clone() };
    assert_eq!(as_default.ways(), [Way::Default, Way::Placed]);
    let mut strategy = LastComparisonSearch::new(&question, &seen);
    let mut history: Vec<Record> = Vec::new();
    let mut foreseen: Vec<Trial> = Vec::new();
    while history.len() < 3 * rounds {
        let Step::Measure(trial) = strategy.step(&history) else { panic!() };
        // What was foreseen comes, and all of a round stays together.
        assert!(foreseen.first().is_none_or(|first| *first == trial));
        foreseen = strategy.foresee(7);
        assert_eq!(foreseen.len(), 7);
        let TrialRounds { continued, rest, next } = strategy.rounds(2).unwrap();
        let place = history.len() % 3;
        assert_eq!((continued, rest.len()), (place > 0, 2 - place));
        assert_eq!(next.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        let Setting::Threads(count) = &trial.setting else { panic!() };
        let performance = match (count.n, &count.placed) {
            (Some(4), None) => 1.0,
            (Some(2), None) => 1.5,
            (Some(2), Some(Placed::At(_))) => 2.0,
            other => panic!("{other:?}"),
        };
        let number = history.len() as u64;
        let others = OtherLoad::new(10.0 * taken(number), 10.0);
        let outcome = if lost && performance == 1.5 {
            Err(MeasureError::new(Retry::Other, "its threads were others"))
        } else {
            let jitter = 1.0 + 0.001 * (number % 5) as f64;
            let slow = if taken(number) >= 0.5 { 0.5 } else { 1.0 };
            Ok(Measurement {
                performance: performance * jitter * slow,
                duration: Duration::ZERO,
                spread: None,
                detail: Detail::of(&others),
            })
        };
        history.push(Record { number, trial, outcome, elapsed: Duration::ZERO });
    }
    question.comparison(&history, &seen, None)
}

#[test]
fn a_comparison_of_few_rounds_or_among_others_says_so() {
    let enough = GOOD_ROUNDS as usize;
    let quiet = compared(enough, |_| 0.01, false);
    let number = LastComparisonVerdict::Number;
    assert_eq!((quiet.notes(number), quiet.others()), (Vec::new(), None));
    assert_eq!(quiet.rounds.count(), enough);
    let gain = quiet.rounds.gain(Way::Placed, Way::Default).unwrap();
    assert!((gain.mean - 1.0).abs() < 0.01 && gain.low > 0.9, "{gain:?}");
    let busy = compared(4, |_| 0.8, true);
    assert_eq!(busy.others(), Some(0.8));
    let lost = "its threads were others".to_owned();
    let notes = [
        LastComparisonNote::ComparisonBusy { share: 0.8 },
        LastComparisonNote::WindowsMissing { windows: 4, error: lost },
        LastComparisonNote::FewRounds { rounds: 4 },
    ];
    assert_eq!(busy.notes(number), notes);
    // The verdict has it.
    assert_eq!(busy.notes(LastComparisonVerdict::Undecided), notes[..2]);
    let text = busy.notes(number).iter().map(last_comparison_note).collect::<Vec<_>>();
    assert!(text[0].contains("80 %") && text[2].contains("only 4 rounds"), "{text:?}");
    assert!(busy.rounds.gain(Way::Number, Way::Default).is_none());
}

#[test]
fn a_round_in_which_others_starve_a_window_does_not_count() {
    let burst = compared(12, |window| if window == 4 { 0.9 } else { 0.0 }, false);
    assert_eq!((burst.rounds.count(), burst.starved), (11, 1));
    assert_eq!(
        burst.notes(LastComparisonVerdict::Number),
        [LastComparisonNote::RoundsStarved { rounds: 1, of: 12 }]
    );
    let first = compared(12, |window| if window == 1 { 0.9 } else { 0.0 }, false);
    assert_eq!((first.rounds.count(), first.starved), (11, 1), "judged after the fact");
    let steady = compared(12, |_| 0.9, false);
    assert_eq!((steady.rounds.count(), steady.starved), (12, 0));
    let gain = burst.rounds.gain(Way::Placed, Way::Default).unwrap();
    assert!((gain.mean - 1.0).abs() < 0.01 && gain.low > 0.98, "{gain:?}");
    // Earlier versions took all rounds.
    let earlier = LastComparisonQuestion { ranked_on: None, ..question() };
    let mut stored = serde_json::to_value(&earlier).unwrap();
    assert!(stored.as_object_mut().unwrap().remove("ranked_on").is_some());
    assert_eq!(serde_json::from_value::<LastComparisonQuestion>(stored).unwrap(), earlier);
}

/// A comparison of two ways that goes on as long as it asks, for at most 20 rounds. `of` gives
/// the speed of the default in a round, and the share of the contexts that others take.
fn of_rounds(
    question: &LastComparisonQuestion,
    of: impl Fn(usize) -> (f64, f64),
) -> (LastComparison, usize) {
    let mut strategy = LastComparisonSearch::new(question, &seen);
    let mut history: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = strategy.step(&history)
        && history.len() < 40
    {
        let Setting::Threads(count) = &trial.setting else { panic!() };
        let (speed, taken) = of(history.len() / 2);
        let jitter = 1.0 + 0.001 * (history.len() % 5) as f64;
        let gain = if count.n == Some(2) { 1.5 } else { 1.0 };
        let detail = Detail::of(&OtherLoad::new(10.0 * taken, 10.0));
        let outcome = Ok(Measurement {
            performance: speed * gain * jitter,
            duration: Duration::ZERO,
            spread: None,
            detail,
        });
        let (number, elapsed) = (history.len() as u64, Duration::ZERO);
        history.push(Record { number, trial, outcome, elapsed });
    }
    let made = history.len() / 2;
    (question.comparison(&history, &seen, None), made)
}

fn of_two() -> LastComparisonQuestion {
    LastComparisonQuestion {
        placed: None,
        memory: MemoryPolicy::Leave,
        precision: Some(0.005),
        looks: ComparedRounds::LOOKS,
        own_load: true,
        goes_on: true,
        ..question()
    }
}

#[test]
fn a_comparison_that_begins_in_a_burst_does_not_end_within_it() {
    let burst = |rounds: usize| move |round| (1.0, if round < rounds { 0.5 } else { 0.0 });
    let (_, made) = of_rounds(&of_two(), burst(0));
    assert_eq!(made, ComparedRounds::FIRST_LOOK);
    let (shown, made) = of_rounds(&of_two(), burst(5));
    assert_eq!((made, shown.rounds.count(), shown.starved), (20, 20, 0), "all rounds count");
    // An earlier version did, and its answer stays.
    let earlier = LastComparisonQuestion { own_load: false, ..of_two() };
    let (_, made) = of_rounds(&earlier, burst(5));
    assert_eq!(made, ComparedRounds::FIRST_LOOK);
}

#[test]
fn progress_that_jumps_with_both_numbers_ends_the_comparison_undecided() {
    let question = LastComparisonQuestion { precision: None, ..of_two() };
    let at = |jump: usize, times: f64| move |round| (if round < jump { 1.0 } else { times }, 0.0);
    for times in [5.0, 0.2] {
        let (shown, made) = of_rounds(&question, at(6, times));
        assert_eq!((made, shown.is_open()), (8, false));
        let Some(Unmeasured::Jumped { times: told, .. }) = shown.cut_short else { panic!() };
        assert!((told / times - 1.0).abs() < 0.01, "{told}");
        assert_eq!(shown.choice(false, 0.01), LastComparisonVerdict::Undecided);
    }
    let whole = |of: &dyn Fn(usize) -> (f64, f64)| of_rounds(&question, of).0.cut_short;
    assert_eq!(whole(&at(6, 3.5)), None);
    assert_eq!(whole(&|round| (if round % 7 == 6 { 5.0 } else { 1.0 }, 0.0)), None, "once");
    assert_eq!(whole(&|round| (if round % 4 < 2 { 5.0 } else { 1.0 }, 0.0)), None, "two speeds");
    assert_eq!(whole(&|round| if round < 6 { (1.0, 0.0) } else { (0.1, 0.9) }), None, "starved");
    assert_eq!(whole(&|round| if round < 6 { (0.1, 0.9) } else { (1.0, 0.0) }), None, "eased");
    assert_eq!(whole(&|round| (f64::from(round >= 6), 0.0)), None, "idle before: no factor");
    let anew = LastComparisonQuestion { goes_on: false, ..question.clone() };
    assert_eq!(of_rounds(&anew, at(6, 5.0)).0.cut_short, None);
}

#[test]
fn a_way_with_which_the_program_fell_below_the_floor_is_not_tried_again() {
    for below_floor in [false, true] {
        let mut strategy = LastComparisonSearch::new(&question(), &seen);
        let mut history: Vec<Record> = Vec::new();
        while let Step::Measure(trial) = strategy.step(&history)
            && history.len() < 6
        {
            let failed = MeasureError::new(Retry::Other, "it is slow");
            let outcome = Err(MeasureError { below_floor, ..failed });
            let (number, elapsed) = (history.len() as u64, Duration::ZERO);
            history.push(Record { number, trial, outcome, elapsed });
        }
        assert_eq!(history.len(), if below_floor { 3 } else { 6 });
    }
}

#[test]
fn the_others_go_on_without_a_way_that_fell_below_the_floor() {
    // Placed, or the number unpinned as well.
    for (both, made) in [(false, 3 + 5 * 2), (true, 3)] {
        let (time, memory) = (Duration::from_secs(6), MemoryPolicy::Follow);
        let question = LastComparisonQuestion { time, memory, ..question() };
        let read = |measured: &Measurement| {
            let below_floor = measured.performance < 1.0;
            Some(Seen { below_floor, ..seen(measured)? })
        };
        let mut strategy = LastComparisonSearch::new(&question, &read);
        let mut history: Vec<Record> = Vec::new();
        while let Step::Measure(trial) = strategy.step(&history) {
            let Setting::Threads(ThreadCount { n, placed, memory }) = &trial.setting else {
                panic!()
            };
            assert_eq!(memory.is_leave(), placed.is_none(), "memory follows pinned threads alone");
            let hurts = placed.is_some() || both && *n == Some(2);
            let (duration, others) = (Duration::from_secs(1), OtherLoad::new(0.0, 10.0));
            let performance = if hurts { 0.5 } else { 1.0 + f64::from(n.unwrap()) };
            let detail = Detail::of(&others);
            let outcome = Ok(Measurement { performance, duration, spread: None, detail });
            let number = history.len() as u64;
            let elapsed = Duration::from_secs(number / 2);
            history.push(Record { number, trial, outcome, elapsed });
        }
        assert_eq!(history.len(), made, "{both}");
        let shown = question.comparison(&history, &read, None);
        assert_eq!(shown.rounds.gain(Way::Number, Way::Default).is_some(), !both);
        let reason = both.then_some(Unmeasured::BelowFloor { n: 2 });
        assert_eq!((shown.is_open(), shown.cut_short), (false, reason));
    }
}

/// With the default alone, with two ways, and with two ways if one cannot be measured.
#[test]
fn rounds_go_on_until_it_is_decided_or_the_time_is_over() {
    let rounds = |ways: usize, speed: Option<f64>, precision, noisy: bool, window: Duration| {
        let question = LastComparisonQuestion {
            default: Some(if ways == 1 { 2 } else { 1 }),
            placed: None,
            memory: MemoryPolicy::Leave,
            time: Duration::from_secs(100),
            precision,
            looks: ComparedRounds::LOOKS,
            ranked_on: None,
            ..question()
        };
        assert_eq!(question.ways().len(), ways);
        let read: Read<'_> = &|measured| {
            let modelled = Some(measured.duration).filter(|took| !took.is_zero());
            let (value, unit) = (measured.performance, Unit::rate("1/s"));
            Some(Seen { value, unit, others: None, modelled, lost: None, below_floor: false })
        };
        let mut strategy = LastComparisonSearch::new(&question, read);
        let mut history: Vec<Record> = Vec::new();
        while let Step::Measure(trial) = strategy.step(&history) {
            let Setting::Threads(count) = &trial.setting else { panic!() };
            let number = history.len() as u64;
            let noise = if count.n == Some(2) { [0.5, 1.5, 1.0][history.len() % 3] } else { 1.0 };
            let measured = |performance: f64| Measurement {
                performance: performance * if noisy { noise } else { 1.0 },
                duration: window,
                spread: None,
                detail: None,
            };
            let failed = || MeasureError::new(Retry::Other, "it does not start");
            let speed = if count.n == Some(2) { speed } else { Some(1.0) };
            let outcome = speed.map(measured).ok_or_else(failed);
            // The records of a model take no time.
            let elapsed = if window.is_zero() { number as u32 + 1 } else { 0 };
            let elapsed = Duration::from_millis(500) * elapsed;
            history.push(Record { number, trial, outcome, elapsed });
        }
        history.len() / ways
    };
    let real = Duration::ZERO;
    let precise = Some(0.005);
    assert_eq!(rounds(1, Some(1.0), None, false, real), ALONE_ROUNDS);
    assert_eq!(rounds(2, Some(2.0), None, false, real), 100, "it uses its time");
    assert_eq!(rounds(2, Some(2.0), precise, false, real), ComparedRounds::FIRST_LOOK);
    assert_eq!(rounds(2, Some(1.0), precise, true, real), 100, "too noisy to tell");
    assert_eq!(rounds(2, None, precise, false, real), ComparedRounds::FIRST_LOOK, "no use");
    let modelled = Duration::from_secs(5);
    assert_eq!(rounds(2, Some(2.0), None, false, modelled), 10, "time of the model");
}
