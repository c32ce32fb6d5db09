//! Tests of [`SpeedSearch`].

use super::decision::PAIRS;
use super::*;
use crate::Law;
use crate::advice::Interval;
use pinwise_topology::Random;
use proptest::prelude::*;

/// The work after a probe grows with the square of the number of candidates: up to sixteen.
fn question(most: u32, contexts: u32) -> SpeedQuestion {
    SpeedQuestion {
        most_probes: 16,
        ..SpeedQuestion::new((1..=most).collect(), contexts, Duration::from_millis(100))
    }
}

/// Up to 72 threads on 24 contexts. A search takes computing time for each candidate. So there are
/// two in five of them, closer together where it matters.
fn question_72() -> SpeedQuestion {
    let candidates = (1..=72).filter(|&n| n <= 4 || n % 4 == 0 || (20..=32).contains(&n));
    SpeedQuestion { candidates: candidates.collect(), ..question(72, 24) }
}

/// Runs a search on a curve with relative noise that says how large it is.
fn run(
    question: &SpeedQuestion,
    speed: impl Fn(u32) -> f64,
    noise: f64,
    seed: u64,
) -> (NumberAdvice, Vec<u32>) {
    run_with(question, speed, |threads| threads, noise, seed)
}

/// Searches for a program that makes other numbers of threads than it is asked for.
fn run_with(
    question: &SpeedQuestion,
    speed: impl Fn(u32) -> f64,
    made: impl Fn(u32) -> u32,
    noise: f64,
    seed: u64,
) -> (NumberAdvice, Vec<u32>) {
    let mut random = Random::new(seed);
    let mut search = SpeedSearch::new(question.clone()).unwrap();
    let mut probed = Vec::new();
    loop {
        match search.next().clone() {
            SpeedSearchStep::Probe { threads, window } => {
                probed.push(threads);
                let error = noise / (window.as_secs_f64() / question.window.as_secs_f64()).sqrt();
                let value =
                    speed(threads) * (1.0 + error * (3.0f64).sqrt() * (2.0 * random.unit() - 1.0));
                let cost = window + Duration::from_millis(50);
                let threads = made(threads);
                search
                    .observe(SpeedSample { value, error: Some(error * value), cost, threads })
                    .unwrap();
            }
            SpeedSearchStep::Stop(advice) => return (advice, probed),
        }
    }
}

fn loss(advice: &NumberAdvice, question: &SpeedQuestion, speed: impl Fn(u32) -> f64) -> f64 {
    let best = question.candidates.iter().map(|&threads| speed(threads)).fold(0.0, f64::max);
    1.0 - speed(advice.threads) / best
}

#[test]
fn a_law_with_a_maximum_is_found_from_a_few_probes() {
    let law = Law { sigma: 0.02, kappa: 0.0012, knee: f64::INFINITY, decline: 0.0, uneven: 0.0 };
    let speed = |threads: u32| law.speedup(f64::from(threads)) * 350.0;
    let question = SpeedQuestion { most_probes: 10, ..question_72() };
    let seeds = 1..=8;
    let mut covered = 0;
    for seed in seeds.clone() {
        let (advice, probed) = run(&question, speed, 0.01, seed);
        assert!(loss(&advice, &question, speed) < 0.02, "{advice:?} after {probed:?}");
        let (low, high) = advice.between;
        assert!(low <= advice.threads && advice.threads <= high, "{advice:?}");
        // More threads are slower, and how much is said, with an interval of 90 %.
        let (most, cost) = advice.more.unwrap();
        let truth = 1.0 - speed(72) / speed(advice.threads);
        assert!(most == 72 && cost.high - cost.low < 0.2, "{advice:?}");
        covered += usize::from(cost.low <= truth && truth <= cost.high);
    }
    // 72 threads are read once.
    assert!(covered * 8 >= seeds.count() * 5, "{covered} intervals hold the truth");
}

/// If thirty numbers are equally fast, noise may prefer a higher one now and then.
#[test]
fn a_plateau_gets_few_threads() {
    let speed = |threads: u32| f64::from(threads.min(24));
    let question = question_72();
    let mut chosen: Vec<u32> =
        (0..5).map(|seed| run(&question, speed, 0.004, seed).0.threads).collect();
    chosen.sort_unstable();
    assert!(chosen[0] >= 23 && chosen[2] <= 30 && chosen[4] <= 48, "{chosen:?}");
}

/// A search on two contexts of a machine that others use. Readings are off by 8 % from one to the
/// next, and report 1.5 %.
fn busy(curve: [f64; 4], seed: u64) -> NumberAdvice {
    let mut random = Random::new(seed);
    let question = SpeedQuestion { most_time: Some(Duration::from_secs(1)), ..question(4, 2) };
    let mut search = SpeedSearch::new(question).unwrap();
    loop {
        match search.next().clone() {
            SpeedSearchStep::Probe { threads, window } => {
                let value = curve[threads as usize - 1] * (0.08 * random.normal()).exp();
                let cost = window + Duration::from_millis(20);
                search
                    .observe(SpeedSample { value, error: Some(0.015 * value), cost, threads })
                    .unwrap();
            }
            SpeedSearchStep::Stop(advice) => return advice,
        }
    }
}

/// Counts two kinds among twelve searches each. Some chose this number of threads, and the interval
/// of some holds what the choice gains.
fn searched(curve: [f64; 4]) -> ([usize; 4], usize) {
    let found: Vec<NumberAdvice> = (0..12).map(|seed| busy(curve, seed)).collect();
    let gain = |advice: &NumberAdvice| curve[advice.threads as usize - 1];
    let held =
        |advice: &&NumberAdvice| (advice.gain.low..=advice.gain.high).contains(&gain(advice));
    let chose = |n: u32| found.iter().filter(|advice| advice.threads == n).count();
    ([1, 2, 3, 4].map(chose), found.iter().filter(held).count())
}

#[test]
fn lucky_readings_seldom_make_more_threads_than_contexts_and_intervals_know_of_them() {
    let (slower, held) = searched([1.0, 1.93, 1.72, 1.49]);
    assert!(slower[1] >= 11 && held >= 8, "{slower:?}, {held}");
    let (equal, held) = searched([1.0, 1.94, 1.94, 1.94]);
    assert!(equal[1] >= 6 && equal[2] + equal[3] <= 4 && held >= 9, "{equal:?}, {held}");
    let (faster, held) = searched([1.0, 1.2, 1.6, 2.0]);
    assert!(faster[3] >= 11 && held >= 8, "{faster:?}, {held}");
}

/// One reading beyond four contexts is the fastest of all. With 2, 3 and 4 threads, the program is
/// equally fast. So neither that reading nor the fastest of these wins.
#[test]
fn of_a_plateau_up_to_the_contexts_the_fewest_are_chosen_where_a_reading_beyond_is_not_believed() {
    let mut search = SpeedSearch::new(question(8, 4)).unwrap();
    let window = Duration::from_millis(100);
    let plateau = [(1, 1.95), (2, 1.952), (3, 1.954)];
    let readings = std::iter::repeat_n(plateau, 4).flatten().chain([(0, 1.0), (6, 2.1)]);
    search.samples = readings
        .map(|(place, value)| {
            (
                place,
                window,
                SpeedSample { value, error: Some(0.003 * value), cost: window, threads: 1 },
            )
        })
        .collect();
    let decision = search.decision(&search.posterior());
    let contest = decision.contest.unwrap();
    assert!(contest.fast >= 4 && contest.few > 1, "{contest:?}");
    assert_eq!((decision.choice, decision.fewest), (1, 1));
    assert_eq!(search.expired().unwrap().threads, 2);
}

/// Two contexts, readings that differ by a tenth from one to the next.
#[test]
fn numbers_above_the_contexts_are_probed_in_turn_with_the_best_below_until_it_is_clear() {
    let window = Duration::from_millis(100);
    let sample =
        |value: f64| SpeedSample { value, error: Some(0.005 * value), cost: window, threads: 1 };
    let mut search = SpeedSearch::new(question(4, 2)).unwrap();
    let readings = [
        (0, 1.0),
        (3, 1.0),
        (3, 1.1),
        (1, 1.2),
        (2, 1.3),
        (1, 1.3),
        (2, 1.45),
        (1, 1.1),
        (2, 1.15),
    ];
    search.samples = readings.map(|(place, value)| (place, window, sample(value))).to_vec();
    let next = |search: &SpeedSearch| {
        let decision = search.decision(&search.posterior());
        (
            decision.choice,
            decision.contest.map(|contest| contest.most),
            search.confirm(&decision, |_, _| true),
        )
    };
    let probe = |threads| Some(SpeedSearchStep::Probe { threads, window });
    assert_eq!(
        next(&search),
        (1, Some(PAIRS), probe(2)),
        "a gain of a tenth is possible, and not clear"
    );
    search.samples.push((1, window, sample(1.15)));
    assert_eq!(next(&search).2, probe(3));
    for (few, fast) in [(1.1, 1.35), (1.2, 1.45), (1.15, 1.4)] {
        search.samples.extend([(2, window, sample(fast)), (1, window, sample(few))]);
    }
    let (choice, most, _) = next(&search);
    assert_eq!((choice, most), (2, Some(DOUBTS)), "clear from a handful of pairs");
}

/// No law says so: 24 threads on 24 contexts are a third slower than 22. Threads that spin at
/// barriers next to other programs behave like that.
#[test]
fn a_wrong_law_cannot_hide_the_best() {
    let speed = |threads: u32| if threads < 23 { f64::from(threads).sqrt() } else { 3.2 };
    let question = SpeedQuestion { most_probes: 24, ..question(48, 24) };
    let (advice, probed) = run(&question, speed, 0.005, 3);
    assert!(loss(&advice, &question, speed) < 0.03, "{advice:?} after {probed:?}");
}

/// There is little time, and the probes are far from one thread. Laws fitted to 20 threads and more
/// say nothing sure of how fast one is.
#[test]
fn gains_are_over_a_number_that_was_probed() {
    let law = Law { sigma: 0.08, kappa: 0.0, knee: f64::INFINITY, decline: 0.0, uneven: 0.0 };
    let speed = |threads: u32| law.speedup(f64::from(threads));
    let mut held = 0;
    for seed in 0..8 {
        let question =
            SpeedQuestion { most_time: Some(Duration::from_millis(700)), ..question_72() };
        let (advice, probed) = run(&question, speed, 0.004, seed);
        let reference = advice.reference.unwrap();
        assert_eq!(Some(&reference), probed.iter().min(), "{advice:?}");
        let gain = speed(advice.threads) / speed(reference);
        let value = speed(advice.threads);
        let holds =
            |interval: &Interval<f64>, truth: f64| interval.low <= truth && truth <= interval.high;
        held += usize::from(holds(&advice.gain, gain)) + usize::from(holds(&advice.value, value));
    }
    assert!(held >= 13, "{held} of 16 intervals hold the truth");
}

/// Single readings may settle a search. They are repeated if there is time. Otherwise the lack of
/// time ended it.
#[test]
fn a_search_is_not_settled_by_single_readings() {
    let speed = |threads: u32| f64::from(threads);
    let (settled, probed) = run(&question(4, 4), speed, 0.002, 1);
    assert_eq!((settled.threads, settled.ended), (4, SpeedSearchEnd::Settled));
    assert!(settled.readings >= 2, "{settled:?} after {probed:?}");
    assert_eq!(
        settled.readings,
        probed.iter().filter(|&&threads| threads == settled.threads).count()
    );
    // As much time as all probes but the last took.
    let spent = Duration::from_millis(150) * (probed.len() as u32 - 1);
    let (hurried, fewer) =
        run(&SpeedQuestion { most_time: Some(spent), ..question(4, 4) }, speed, 0.002, 1);
    assert_eq!(
        (hurried.ended, fewer.len()),
        (SpeedSearchEnd::Time, probed.len() - 1),
        "{hurried:?} after {fewer:?}"
    );
}

#[test]
fn one_candidate_is_probed_once_and_chosen() {
    let (advice, probed) =
        run(&SpeedQuestion::new(vec![4], 2, Duration::from_millis(100)), |_| 5.0, 0.01, 1);
    assert_eq!((advice.threads, probed, advice.ended), (4, vec![4], SpeedSearchEnd::Settled));
    assert_eq!((advice.between, advice.more), ((4, 4), None));
}

#[test]
fn candidates_have_to_ascend_from_one() {
    for candidates in [vec![], vec![0, 1], vec![2, 2], vec![3, 2]] {
        let question = SpeedQuestion::new(candidates, 2, Duration::from_millis(100));
        assert_eq!(SpeedSearch::new(question).map(|_| ()), Err(SpeedSearchError::Candidates));
    }
}

#[test]
fn no_progress_is_an_error_that_says_with_how_many() {
    let mut search = SpeedSearch::new(question(4, 2)).unwrap();
    let sample =
        SpeedSample { value: 0.0, error: None, cost: Duration::from_millis(150), threads: 2 };
    let error = search.observe(sample).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no progress in 0.15 s with 2 threads: probe longer (--window), start later (--after), or \
         choose another --metric"
    );
    let one = SpeedSearchError::Idle { threads: 1, cost: Duration::from_millis(440) };
    assert!(one.to_string().starts_with("no progress in 0.44 s with 1 thread: "), "{one}");
}

/// Speeds at any moment are those of the contexts at work; how 128 pieces divide decides.
#[test]
fn pieces_that_do_not_divide_decide_where_speeds_do_not() {
    let question = SpeedQuestion { pieces: Some(128), ..question_72() };
    let speed = |threads: u32| f64::from(threads.min(24));
    let (advice, _) = run(&question, speed, 0.002, 1);
    let even = |threads: u32| Evenness::new(128, threads, 24).mean();
    let best = question
        .candidates
        .iter()
        .map(|&threads| speed(threads).ln() + even(threads))
        .fold(f64::MIN, f64::max);
    assert!(speed(advice.threads).ln() + even(advice.threads) > best - 0.015, "{advice:?}");
    // Whole runs have shown their end.
    let whole = SpeedQuestion { whole_runs: true, ..question.clone() };
    assert_eq!(
        run(&whole, speed, 0.002, 1).0.threads,
        run(&SpeedQuestion { pieces: None, ..whole.clone() }, speed, 0.002, 1).0.threads
    );
}

/// With 72 candidates, and with four. There is a first thread besides those asked for. Or it is a
/// worker itself if it is the only thread (xz). Readings are noisy, and those of numbers that make
/// the same threads differ by nothing else.
#[test]
fn where_a_program_makes_no_more_threads_the_fewest_that_make_them_are_the_most_that_are_chosen() {
    let question = SpeedQuestion { counted: true, ..question_72() };
    for seed in 0..4 {
        let speed = |threads: u32| f64::from(threads.min(21)).sqrt();
        let (advice, probed) =
            run_with(&question, speed, |threads| threads.min(21) + 1, 0.02, seed);
        assert!(
            advice.threads <= 21
                && advice.between.1 <= 21
                && advice.more.is_none_or(|(most, _)| most == 21)
        );
        let lost = 1.0 - speed(advice.threads) / speed(21);
        assert!(
            lost < 0.03 && probed.iter().filter(|&&threads| threads > 21).count() <= 4,
            "{advice:?} after {probed:?}"
        );
    }
    let question = SpeedQuestion { counted: true, ..self::question(4, 2) };
    for seed in 0..8 {
        let (advice, probed) = run_with(&question, |_| 1.0, |threads| threads.min(2), 0.05, seed);
        assert!(advice.threads <= 2 && advice.between.1 <= 2, "{advice:?} after {probed:?}");
        assert!(probed.iter().filter(|&&threads| threads > 2).count() <= 2, "{probed:?}");
    }
}

/// One reading too few threads in makes no fewer candidates for good.
#[test]
fn numbers_that_seemed_to_make_as_many_threads_are_candidates_again_when_a_probe_shows_more() {
    let window = Duration::from_millis(100);
    let mut search = SpeedSearch::new(SpeedQuestion { counted: true, ..question(8, 8) }).unwrap();
    let mut observe = |threads: u32, made: u32| {
        search.next = SpeedSearchStep::Probe { threads, window };
        search
            .observe(SpeedSample {
                value: f64::from(made),
                error: None,
                cost: window,
                threads: made,
            })
            .unwrap();
        (
            search.question.candidates.len(),
            search.samples.iter().map(|sample| sample.0 + 1).collect::<Vec<_>>(),
        )
    };
    assert_eq!(observe(4, 5), (8, vec![4]));
    assert_eq!(observe(8, 5), (4, vec![4, 4]), "eight make no more than four");
    assert_eq!(observe(8, 9), (8, vec![4, 8, 8]), "they do");
}

/// Fewer may make them all, too: the search checks that before it announces them.
#[test]
fn all_threads_of_a_program_are_announced_with_the_fewest_that_make_them() {
    let question = SpeedQuestion { counted: true, ..question_72() };
    let speed = |threads: u32| f64::from(threads.min(3));
    let (advice, probed) = run_with(&question, speed, |threads| threads.min(3) + 1, 0.003, 1);
    assert_eq!((advice.threads, advice.more), (3, None), "{advice:?} after {probed:?}");
    // Whatever it is asked for.
    let (advice, probed) = run_with(&question, |_| 1.0, |_| 2, 0.003, 1);
    assert_eq!((advice.threads, advice.between), (1, (1, 1)), "{advice:?} after {probed:?}");
    // If the threads are not counted, these are numbers like others.
    let apart = SpeedQuestion { counted: false, ..question };
    assert!(run_with(&apart, |_| 1.0, |_| 2, 0.003, 1).0.more.is_some());
}

/// A single slow reading of a greater number says nothing of numbers beyond it.
#[test]
fn what_was_not_probed_is_not_claimed() {
    let peak = |threads: u32| f64::from(threads.min(12)) - 0.05 * f64::from(threads);
    for (most_probes, seed) in [2, 3, 5, 60].into_iter().flat_map(|most| [(most, 1), (most, 2)]) {
        let question = SpeedQuestion { most_probes, ..question_72() };
        let (advice, probed) = run(&question, peak, 0.01, seed);
        let all = &question.candidates;
        let place = |n: u32| all.iter().position(|&candidate| candidate == n).unwrap();
        let (low, high) = advice.between;
        let next = [place(low).checked_sub(1), Some(place(high) + 1)];
        for &outside in next.into_iter().flatten().filter_map(|place| all.get(place)) {
            assert!(probed.contains(&outside), "{advice:?} after {probed:?}");
        }
        assert!(low == 1 || probed.contains(&1), "{advice:?} after {probed:?}");
        assert!(high == 72 || probed.contains(&72), "{advice:?} after {probed:?}");
        let most = probed.iter().copied().max().filter(|&most| most > advice.threads);
        assert_eq!(advice.more.map(|(most, _)| most), most, "after {probed:?}");
        assert!(most_probes < 60 || high < 72 && low > 1, "{advice:?} after {probed:?}");
    }
}

#[test]
fn both_ends_are_probed_before_a_search_is_settled() {
    let question = question(20, 16);
    for full in [2, 4] {
        let speed = |n: u32| f64::from(n.min(full)) * (-0.05 * f64::from(n)).exp();
        let (advice, probed) = run(&question, speed, 0.01, 4);
        assert_eq!(advice.ended, SpeedSearchEnd::Settled);
        assert!([1, 20].iter().all(|end| probed.contains(end)), "{advice:?} after {probed:?}");
    }
}

/// The announced number was probed. If there was no time for that, the answer says so.
#[test]
fn the_choice_is_probed_or_reported_as_not_probed() {
    let speed = |threads: u32| f64::from(threads.min(20)).powf(0.9);
    for seed in 0..3 {
        let (advice, probed) = run(&question_72(), speed, 0.004, seed);
        assert!(advice.probed && probed.contains(&advice.threads), "{advice:?} after {probed:?}");
        let short = SpeedQuestion { most_time: Some(Duration::from_millis(200)), ..question_72() };
        let (advice, probed) = run(&short, speed, 0.004, seed);
        assert_eq!(advice.probed, probed.contains(&advice.threads), "{advice:?} after {probed:?}");
    }
}

#[test]
fn when_the_time_is_over_there_is_advice_from_what_was_seen() {
    let mut search = SpeedSearch::new(question(8, 4)).unwrap();
    assert_eq!(search.expired(), None);
    search
        .observe(SpeedSample {
            value: 3.0,
            error: None,
            cost: Duration::from_millis(150),
            threads: 4,
        })
        .unwrap();
    let advice = search.expired().unwrap();
    assert_eq!((advice.ended, advice.probes), (SpeedSearchEnd::Time, 1));
    // One probe of 4 threads says nothing sure of any other number.
    assert!(advice.between.0 < advice.between.1, "{advice:?}");
}

/// A run takes 10 s with the best number, which is not known beforehand. So 0.42 s are left for
/// probes of 75 ms and more.
#[test]
fn of_a_run_of_known_length_no_more_than_its_share_is_taken() {
    let speed = |threads: u32| f64::from(threads.min(20));
    for seed in 0..3 {
        let (advice, probed) =
            run(&SpeedQuestion { work: Some(200.0), ..question_72() }, speed, 0.01, seed);
        assert_eq!(advice.ended, SpeedSearchEnd::Time);
        // The first takes 150 ms.
        assert!((2..=4).contains(&probed.len()), "{advice:?} after {probed:?}");
    }
}

/// Whole runs: with one thread a run takes eight times the window.
#[test]
fn a_run_for_which_too_little_time_is_left_is_not_begun() {
    let window = Duration::from_millis(100);
    let budget = Duration::from_millis(500);
    let question = SpeedQuestion {
        whole_runs: true,
        most_time: Some(budget),
        ..SpeedQuestion::new((1..=8).collect(), 8, window)
    };
    let mut search = SpeedSearch::new(question).unwrap();
    let mut spent = Duration::ZERO;
    while let SpeedSearchStep::Probe { threads, window } = *search.next() {
        let run = 0.8 / f64::from(threads);
        let cost = Duration::from_secs_f64((window.as_secs_f64() / run).round().max(1.0) * run);
        spent += cost;
        search.observe(SpeedSample { value: 1.0 / run, error: None, cost, threads }).unwrap();
    }
    assert!(spent <= budget.mul_f64(1.3), "{spent:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn limits_are_kept_and_the_same_probes_give_the_same_advice(
        sigma in 0.0..0.3f64, decline in 0.0..1.0f64, noise in 0.001..0.05f64, seed in 0u64..1000,
        most_probes in 1usize..10, most_ms in 100u64..3000,
    ) {
        let law = Law { sigma, kappa: 0.0, knee: 8.0, decline, uneven: 0.0 };
        let most_time = Some(Duration::from_millis(most_ms));
        let question = SpeedQuestion { most_probes, most_time, ..question(24, 8) };
        let speed = |threads: u32| law.speedup(f64::from(threads));
        let (advice, probed) = run(&question, speed, noise, seed);
        prop_assert!(probed.len() <= most_probes);
        // The first probe is always made; the shortest takes 25 ms and 50 ms to start.
        prop_assert!(probed.len() == 1 || 150 + (probed.len() as u64 - 1) * 75 <= most_ms);
        prop_assert!(question.candidates.contains(&advice.threads));
        prop_assert!((0.0..=1.0).contains(&advice.loss));
        prop_assert_eq!((advice, probed), run(&question, speed, noise, seed));
    }
}
