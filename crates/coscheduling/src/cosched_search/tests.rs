use super::*;
use crate::CoschedOutcome;
use pinwise_measure::{Detail, MeasureError, Measurement, Retry};

fn question(counted: bool) -> CoschedQuestion {
    CoschedQuestion {
        objective: CoscheduleObjective::Both,
        counted,
        rule: CoscheduleRule::Seen,
        quantum: Duration::from_millis(100),
        budget: None,
        confidence: 0.95,
        seed: 1,
    }
}

/// Periods of two programs, `a` and `b`. Moves multiply their rates, by `speeds` for a split.
struct Simulation<'a> {
    speeds: &'a dyn Fn(ThreadMoves, usize) -> [f64; 2],
    /// How far a rate is off at most.
    noise: f64,
    /// The standard deviation of the logarithm of the CPU time that a program wants.
    demand: f64,
    random: Random,
    /// Periods after which the programs have ended.
    life: usize,
}

impl Simulation<'_> {
    fn period(&mut self, setting: &Setting, number: usize) -> Result<Measurement, MeasureError> {
        if number >= self.life {
            return Err(MeasureError::expired("the programs have ended"));
        }
        let speeds = match setting {
            Setting::Coscheduled(ThreadMoves::Apart) => [2.0, 2.0],
            Setting::Coscheduled(moves) => (self.speeds)(*moves, number),
            _ => [1.0, 1.0],
        };
        let mut program = |name: &str, speed: f64| {
            let noise = 1.0 + self.noise * (2.0 * self.random.unit() - 1.0);
            let normal = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
            let ran = (self.demand * normal).exp();
            let rate = ran * speed * noise;
            ProgramProgress {
                name: name.into(),
                processes: 1,
                ran,
                waited: 0.0,
                instructions: Some(1e9 * rate),
                contexts: vec![usize::from(name == "b")],
            }
        };
        let programs = vec![program("a", speeds[0]), program("b", speeds[1])];
        let performance = programs.iter().filter_map(|program| program.instructions).sum();
        let showed = CoscheduledPeriod {
            programs,
            seconds: 3.2,
            whole: 4.0,
            quanta: 40,
            moves: 2,
            cost: 0.02,
            ..CoscheduledPeriod::default()
        };
        let detail = Detail::of(&showed);
        Ok(Measurement { detail, ..Measurement::new(performance, Duration::from_secs(4)) })
    }

    /// Drives a search to its end.
    fn run(&mut self, question: &CoschedQuestion) -> Vec<Record> {
        let mut search = CoschedSearch::new(question.clone());
        let mut records: Vec<Record> = Vec::new();
        while let Step::Measure(trial) = search.step(&records) {
            let outcome = self.period(&trial.setting, records.len());
            let elapsed = Duration::from_secs(4 * (records.len() as u64 + 1));
            records.push(Record { number: records.len() as u64, trial, outcome, elapsed });
        }
        records
    }
}

fn simulate(
    question: &CoschedQuestion,
    seed: u64,
    noise: f64,
    life: usize,
    speeds: &dyn Fn(ThreadMoves, usize) -> [f64; 2],
) -> (Vec<Record>, CoschedOutcome) {
    let random = Random::new(seed);
    let records = Simulation { speeds, noise, demand: 0.0, random, life }.run(question);
    let outcome = CoschedOutcome::of(&records, question, 2);
    (records, outcome)
}

#[test]
fn what_gains_nothing_is_switched_off_and_seldom_taken_for_a_gain() {
    let mut wrong = 0;
    let searches = 160;
    for seed in 0..searches {
        let question = CoschedQuestion { seed, ..question(true) };
        let (_, outcome) = simulate(&question, seed, 0.1, 400, &|_, _| [1.0, 1.0]);
        // A first decision that moves help: it is at the end, or was taken back.
        let took = matches!(outcome.verdict, CoschedVerdict::Helps | CoschedVerdict::NoLonger);
        wrong += u64::from(took);
    }
    assert!(wrong * 20 <= searches, "{wrong} of {searches}");
}

/// A weight that depends on the unpinned period alone would show a gain in most searches.
#[test]
fn demand_that_varies_is_no_gain() {
    let (mut wrong, searches) = (0, 100);
    for seed in 0..searches {
        let question = CoschedQuestion { seed, ..question(true) };
        let speeds = &|_, _| [1.0, 1.0];
        let random = Random::new(seed);
        let mut simulation = Simulation { speeds, noise: 0.02, demand: 0.6, random, life: 400 };
        let records = simulation.run(&question);
        let outcome = CoschedOutcome::of(&records, &question, 2);
        let took = matches!(outcome.verdict, CoschedVerdict::Helps | CoschedVerdict::NoLonger);
        wrong += u64::from(took);
    }
    assert!(wrong * 20 <= searches, "{wrong} of {searches}");
}

#[test]
fn a_gain_is_found_kept_and_checked_until_the_programs_end() {
    let (records, outcome) = simulate(&question(true), 3, 0.05, 300, &|_, _| [1.2, 1.1]);
    assert_eq!(outcome.verdict, CoschedVerdict::Helps);
    let gain = outcome.gain.unwrap();
    assert!(gain.low > 0.05 && gain.low < 0.15 && gain.high > 0.15, "{gain:?}");
    let held = records.iter().filter(|record| record.trial.purpose == Purpose::Other);
    let [held, found] = [
        held.map(|record| record.trial.effort.windows).sum::<f64>(),
        records
            .iter()
            .filter(|record| record.trial.setting == Setting::Unpinned)
            .map(|record| record.trial.effort.windows)
            .sum(),
    ];
    assert!(held > 5.0 * found && found > 0.0, "{held} of moves, {found} unpinned");
    assert!(records.last().unwrap().outcome.is_err());
    // Both make 2e9 alone, and 1e9 unpinned.
    for program in &outcome.programs {
        let [found, moved] = [program.alone_as_found.unwrap(), program.alone_moved.unwrap()];
        assert!((found - 0.5).abs() < 0.02 && moved > 0.53, "{program:?}");
    }
    assert!((outcome.cost.share - 0.0025).abs() < 1e-9, "{:?}", outcome.cost);
}

#[test]
fn moves_that_help_no_longer_are_switched_off() {
    let later = |_, number: usize| if number < 40 { [1.3, 1.3] } else { [0.9, 0.9] };
    let (records, outcome) = simulate(&question(true), 3, 0.05, 1000, &later);
    assert_eq!(outcome.verdict, CoschedVerdict::NoLonger);
    assert!(outcome.gain.unwrap().high < 0.0 && records.len() < 1000);
    // Nothing is moved after that.
    let last = records.last().map(|record| record.trial.purpose);
    assert!(matches!(last, Some(Purpose::Final | Purpose::Baseline)), "{last:?}");
}

#[test]
fn a_gain_at_the_cost_of_one_program_is_refused_unless_throughput_is_asked_for() {
    let speeds = |_, _| [1.6, 0.7];
    let with = |objective| {
        let question = CoschedQuestion { objective, ..question(true) };
        simulate(&question, 3, 0.05, 300, &speeds).1
    };
    let both = with(CoscheduleObjective::Both);
    assert_eq!((both.verdict, &both.losers[..]), (CoschedVerdict::Unfair, &["b".to_owned()][..]));
    assert_eq!(with(CoscheduleObjective::Throughput).verdict, CoschedVerdict::Helps);
    assert_eq!(with(CoscheduleObjective::Fairness).verdict, CoschedVerdict::NoGain);
}

/// The same values are too few to accuse moving if many programs could have shown them.
#[test]
fn a_program_loses_too_much_only_if_that_is_rare_among_all_of_them() {
    let mut program = ProgramRounds {
        rounds: compared(&question(true)),
        sums: [0.0; 2],
        alone: Vec::new(),
        of_alone: [Vec::new(), Vec::new()],
        processes: 1,
        contexts: Vec::new(),
    };
    for moved in [0.7, 0.8, 0.9, 0.95, 0.75, 0.85, 0.7, 0.8, 0.9, 0.95, 0.75, 0.85] {
        program.rounds.take(vec![Some(1.0), Some(moved)]);
        program.sums = [program.sums[0] + 1.0, program.sums[1] + moved];
    }
    assert!(program.loses_too_much(1));
    assert!(!program.loses_too_much(1000));
}

#[test]
fn without_counters_splits_are_tried_and_the_best_is_judged_by_fresh_rounds() {
    let speeds = |moves, _: usize| match moves {
        ThreadMoves::Dealt(4) => [1.2, 1.2],
        _ => [0.9, 0.9],
    };
    let (records, outcome) = simulate(&question(false), 3, 0.02, 120, &speeds);
    assert_eq!((outcome.verdict, outcome.tried), (CoschedVerdict::Helps, SPLITS as u64));
    assert_eq!(outcome.moves, Some(ThreadMoves::Dealt(4)));
    let tried = records.iter().filter(|record| record.trial.purpose == Purpose::Climb);
    assert_eq!(tried.count(), 2 * SPLITS);
    assert!(records.iter().all(|record| record.trial.purpose != Purpose::Profile));
}

#[test]
fn each_round_has_a_period_of_each_kind_in_random_order_and_of_random_length() {
    let (records, _) = simulate(&question(true), 3, 0.1, 60, &|_, _| [1.0, 1.0]);
    let compared: Vec<&Record> = records
        .iter()
        .filter(|record| matches!(record.trial.purpose, Purpose::Final | Purpose::Baseline))
        .collect();
    let found_first = compared.chunks_exact(2).filter(|round| {
        assert_ne!(round[0].trial.setting, round[1].trial.setting);
        round[0].trial.setting == Setting::Unpinned
    });
    let rounds = compared.len() / 2;
    let found_first = found_first.count();
    assert!(found_first > 0 && found_first < rounds, "{found_first} of {rounds}");
    let mut lengths: Vec<u64> =
        compared.iter().map(|record| record.trial.effort.windows as u64).collect();
    assert!(lengths.iter().all(|length| (QUANTA[0]..=QUANTA[1]).contains(length)));
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 5, "{lengths:?}");
}

#[test]
fn a_budget_cuts_the_last_period_and_ends_the_search() {
    let budget = Some(Duration::from_secs(30));
    let question = CoschedQuestion { budget, ..question(true) };
    let (records, outcome) = simulate(&question, 3, 0.1, 400, &|_, _| [1.0, 1.0]);
    assert!((7..=8).contains(&records.len()), "{}", records.len());
    assert_eq!(outcome.verdict, CoschedVerdict::Undecided);
}

#[test]
fn a_resumed_search_goes_on_as_it_would_have() {
    let question = question(true);
    let (records, _) = simulate(&question, 3, 0.05, 80, &|_, _| [1.1, 1.1]);
    for cut in [1, 7, 40] {
        let mut search = CoschedSearch::new(question.clone());
        for known in 0..cut {
            let step = search.step(&records[..known]);
            assert_eq!(step, Step::Measure(records[known].trial.clone()));
        }
    }
}

#[test]
fn periods_that_fail_again_and_again_end_the_search() {
    let mut records: Vec<Record> = Vec::new();
    // A resumed one tries again as often.
    for session in 1..=2 {
        let known = records.len();
        let mut search = CoschedSearch::new(question(false)).after(known);
        let reason = (0..).find_map(|number| match search.step(&records[..number]) {
            Step::Measure(trial) if number < known => {
                assert_eq!(trial, records[number].trial);
                None
            }
            Step::Measure(trial) => {
                let outcome = Err(MeasureError::new(Retry::Other, "no answer"));
                let (number, elapsed) = (number as u64, Duration::ZERO);
                records.push(Record { number, trial, outcome, elapsed });
                None
            }
            Step::Fail(reason) => Some(reason),
            Step::Stop => panic!("no reason"),
        });
        assert_eq!(reason.as_deref(), Some("no answer"));
        assert_eq!(records.len(), session * FAILURES);
    }
}

#[test]
fn the_first_verdict_takes_the_rounds_before_the_first_look() {
    let counted = question(true).first_verdict();
    assert_eq!(counted, [200, 400].map(|quanta| CoschedQuestion::QUANTUM * quanta));
    assert_eq!(question(false).first_verdict()[0], CoschedQuestion::QUANTUM * 2 * (8 + 5) * 20);
}
