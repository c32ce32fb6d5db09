//! Predicts pairs of programs from their counters, on a simulated core. It uses the model of the
//! paper on hardware monitoring (section 4), and that of `pinwise pairs --predict`.
//!
//! `cargo run --release -p pinwise-lab --example smt_counters` prints, in Markdown, the tables of
//! docs/lab/smt-core.md. It takes some minutes. No predictor knows a formula of the core.

use pinwise_coscheduling::{
    CounterModel, CounterModelError, PairFeatures, TrainingPair, published_rank, quality,
};
use pinwise_lab::parallel::each;
use pinwise_measure::{CounterEvent, EventCounts};
use pinwise_smt::{CounterValues, SmtCore, StreamProgram, events};
use pinwise_topology::Random;
use std::error::Error;

/// Cycles in which caches fill, and cycles that count.
const CYCLES: (u64, u64) = (1_000_000, 2_000_000);
const SEED: u64 = 1;
/// What was counted in the paper.
const PUBLISHED: [CounterEvent; 5] = [
    CounterEvent::Branches,
    CounterEvent::FrontEndMisses,
    CounterEvent::L2Misses,
    CounterEvent::FpOperations,
    CounterEvent::Instructions,
];
/// Programs that are left out at once, and in how many ways they are drawn.
const LEFT_OUT: usize = 4;
const DRAWS: u64 = 10;
/// The confidence of intervals.
const CONFIDENCE: f64 = 0.9;

/// Programs with their counts, and the pairs that were simulated.
struct CountedPrograms {
    programs: Vec<(String, EventCounts)>,
    pairs: Vec<TrainingPair>,
}

impl CountedPrograms {
    /// `programs` beside each other, those of `pairs`.
    fn of(programs: &[StreamProgram], pairs: &[[usize; 2]]) -> Self {
        let core = SmtCore::northwood();
        let run = |some: &[&StreamProgram]| events(&core, some, SEED, CYCLES.0, CYCLES.1);
        let alone: Vec<CounterValues> = each(programs, |program| run(&[program])[0]);
        let kept = each(pairs, |pair| {
            let together = run(&pair.map(|program| &programs[program]));
            [0, 1].map(|side| together[side].per_cycle() / alone[pair[side]].per_cycle())
        });
        let named = programs.iter().zip(&alone);
        let named = named.map(|(program, alone)| (program.name.clone(), alone.counts(1.0)));
        let trained = pairs.iter().zip(kept);
        Self {
            programs: named.collect(),
            pairs: trained.map(|(&programs, kept)| TrainingPair { programs, kept }).collect(),
        }
    }

    /// Only the pairs whose programs are all among `these`, numbered again.
    fn only(&self, these: &[usize]) -> Self {
        let place = |program: usize| these.iter().position(|&one| one == program);
        let pair = |pair: &TrainingPair| {
            let [one, other] = pair.programs.map(place);
            Some(TrainingPair { programs: [one?, other?], kept: pair.kept })
        };
        Self {
            programs: these.iter().map(|&one| self.programs[one].clone()).collect(),
            pairs: self.pairs.iter().filter_map(pair).collect(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let programs = StreamProgram::spec2000();
    let with = |one| (one..programs.len()).map(move |two| [one, two]);
    let all: Vec<[usize; 2]> = (0..programs.len()).flat_map(with).collect();
    let study = CountedPrograms::of(&programs, &all);
    qualities(&study)?;
    dropped(&study)?;
    rank(&study)?;
    held_out(&study)?;
    other_data(&study, &programs)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{share:.2}"))
}

/// R² of models of growing order.
fn qualities(study: &CountedPrograms) -> Result<(), CounterModelError> {
    println!("| model | events | order | terms | R² | adjusted | out of sample |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    println!("| paper | 5 | | 256 | 0.942 | | |");
    type Features = fn(usize) -> PairFeatures;
    let sums: Features = |order| PairFeatures::Sums { order };
    let sides: Features = |order| PairFeatures::Sides { order };
    let forms = [
        ("sums, least squares", sums, &PUBLISHED[..], Some(0.0), &[1, 2, 3, 5][..]),
        ("sums, ridge", sums, &PUBLISHED, None, &[1, 2, 3, 5]),
        ("sides, least squares", sides, &PUBLISHED, Some(0.0), &[1, 2]),
        ("sides, ridge", sides, &PUBLISHED, None, &[1, 2]),
        ("sides, ridge", sides, &CounterModel::EVENTS, None, &[1, 2]),
    ];
    for (name, features, events, penalty, orders) in forms {
        for &order in orders {
            let made = quality(features(order), events, &study.programs, &study.pairs, penalty);
            let Ok(made) = made else {
                println!("| {name} | {} | {order} | not determined | | | |", events.len());
                continue;
            };
            println!(
                "| {name} | {} | {order} | {} | {:.3} | {} | {} |",
                events.len(),
                made.terms,
                made.r2,
                percent(made.adjusted),
                percent(made.out_of_sample)
            );
        }
    }
    Ok(())
}

/// R² without each counter.
fn dropped(study: &CountedPrograms) -> Result<(), CounterModelError> {
    println!("\n| without | sums: R² | out of sample | sides: R² | out of sample |");
    println!("|---|--:|--:|--:|--:|");
    let sums = PairFeatures::Sums { order: PUBLISHED.len() };
    let sides = PairFeatures::Sides { order: 2 };
    let none = [None].into_iter().chain(CounterModel::EVENTS.map(Some));
    for event in none {
        let without = |all: &[CounterEvent]| -> Vec<CounterEvent> {
            all.iter().copied().filter(|one| Some(*one) != event).collect()
        };
        let made = |features, all: &[CounterEvent], penalty| {
            quality(features, &without(all), &study.programs, &study.pairs, penalty)
        };
        let published = made(sums, &PUBLISHED, Some(0.0))?;
        let ours = made(sides, &CounterModel::EVENTS, None)?;
        let name = event.map_or("nothing".to_owned(), |event| format!("{event:?}"));
        println!(
            "| {name} | {:.2} | {} | {:.2} | {} |",
            published.r2,
            percent(published.out_of_sample),
            ours.r2,
            percent(ours.out_of_sample)
        );
    }
    Ok(())
}

/// How the published rank agrees with the speed-up.
fn rank(study: &CountedPrograms) -> Result<(), CounterModelError> {
    let of = |pair: &TrainingPair| {
        let [one, other] = pair.programs.map(|program| &study.programs[program]);
        Ok((published_rank([one, other])?, pair.kept[0] + pair.kept[1]))
    };
    let both: Vec<(f64, f64)> =
        study.pairs.iter().map(of).collect::<Result<_, CounterModelError>>()?;
    println!("\nPublished rank and weighted speed-up: correlation {:.2}.", correlation(&both));
    Ok(())
}

fn correlation(both: &[(f64, f64)]) -> f64 {
    let n = both.len() as f64;
    let (x, y) = both.iter().fold((0.0, 0.0), |(x, y), one| (x + one.0 / n, y + one.1 / n));
    let sum =
        |of: fn(f64, f64) -> f64| both.iter().map(|one| of(one.0 - x, one.1 - y)).sum::<f64>();
    sum(|x, y| x * y) / (sum(|x, _| x * x) * sum(|_, y| y * y)).sqrt()
}

/// What is predicted of pairs of programs that a model has never seen.
#[derive(Default)]
struct PredictionsJudged {
    pairs: usize,
    inside: usize,
    /// Predicted, and simulated.
    values: Vec<(f64, f64)>,
    margins: f64,
}

impl PredictionsJudged {
    /// Judges a pair. A program beside itself is none.
    fn add(
        &mut self,
        model: &CounterModel,
        study: &CountedPrograms,
        pair: &TrainingPair,
    ) -> Result<(), CounterModelError> {
        if pair.programs[0] == pair.programs[1] {
            return Ok(());
        }
        let [one, other] = pair.programs.map(|program| &study.programs[program]);
        let predicted = model.predict([one, other])?.weighted_speedup();
        let (value, margin) = (pair.kept[0] + pair.kept[1], model.margin(CONFIDENCE).value());
        self.pairs += 1;
        self.margins += margin;
        self.inside += usize::from((value - predicted).abs() <= margin);
        self.values.push((predicted, value));
        Ok(())
    }

    fn print(&self, name: &str) {
        let n = self.pairs as f64;
        let mean = self.values.iter().map(|one| one.1).sum::<f64>() / n;
        let left: f64 = self.values.iter().map(|one| (one.1 - one.0).powi(2)).sum();
        let all: f64 = self.values.iter().map(|one| (one.1 - mean).powi(2)).sum();
        println!(
            "| {name} | {} | {:.2} | {:.0} % | ± {:.2} |",
            self.pairs,
            1.0 - left / all,
            100.0 * self.inside as f64 / n,
            self.margins / n
        );
    }
}

const JUDGED: &str = "\n| programs | pairs | variance predicted | 90 % intervals hold | width |\n\
                      |---|--:|--:|--:|--:|";

/// Models that know all but four programs, which are drawn.
fn held_out(study: &CountedPrograms) -> Result<(), CounterModelError> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for seed in 0..DRAWS {
        let mut order: Vec<usize> = (0..study.programs.len()).collect();
        Random::new(seed).shuffle(&mut order);
        groups.extend(order.chunks(LEFT_OUT).map(<[usize]>::to_vec));
    }
    let fitted = each(&groups, |group| {
        let rest = (0..study.programs.len()).filter(|program| !group.contains(program));
        let rest = study.only(&rest.collect::<Vec<_>>());
        CounterModel::fit("model", &CounterModel::EVENTS, &rest.programs, &rest.pairs)
    });
    let (mut both, mut one) = (PredictionsJudged::default(), PredictionsJudged::default());
    for (group, model) in groups.iter().zip(fitted) {
        let model = model?;
        for pair in &study.pairs {
            match pair.programs.iter().filter(|program| group.contains(program)).count() {
                2 => both.add(&model, study, pair)?,
                1 => one.add(&model, study, pair)?,
                _ => {}
            }
        }
    }
    println!("{JUDGED}");
    both.print("both unknown");
    one.print("one unknown");
    Ok(())
}

/// The model of all programs, on programs that differ from them only in the sizes of their data.
fn other_data(study: &CountedPrograms, programs: &[StreamProgram]) -> Result<(), Box<dyn Error>> {
    let mut random = Random::new(7);
    let mut other = |program: &StreamProgram| {
        let mut other = program.clone();
        for data in &mut other.data {
            // Half to twice as large.
            let times = 4f64.powf(random.unit() - 0.5);
            data.kib = ((f64::from(data.kib) * times).round() as u32).max(1);
        }
        other
    };
    let others: Vec<StreamProgram> = programs.iter().map(&mut other).collect();
    let with = |one| (one..others.len()).map(move |two| [one, two]);
    let all: Vec<[usize; 2]> = (0..others.len()).flat_map(with).collect();
    let resized = CountedPrograms::of(&others, &all);
    let model = CounterModel::fit("model", &CounterModel::EVENTS, &study.programs, &study.pairs)?;
    let mut judged = PredictionsJudged::default();
    for pair in &resized.pairs {
        judged.add(&model, &resized, pair)?;
    }
    judged.print("other sizes of data");
    Ok(())
}
