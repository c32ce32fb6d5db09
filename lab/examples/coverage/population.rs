//! Populations whose best value is known.

use crate::assignment::Model;
use crate::random::Random;

/// What is sampled.
pub(crate) enum Law {
    /// 10 - 3 U^k: exactly a GPD of shape -k above every threshold.
    Power { k: f64 },
    /// The product of variables Beta(a, 1): the tail index is 1/factors, but only in the far tail.
    Beta { a: f64, factors: usize },
    /// A ring of 12 choices among 6. Each choice has a random worth, and so has each pair of
    /// neighbours.
    Interaction { worth: Vec<f64>, pairs: Vec<f64> },
    /// Placements of 24 threads.
    Assignment(Model),
    /// 10 - 3 U^0.15, but one in 100,000 is 11.
    Needle,
    /// A tail of index 0.15 on 200 values: a population of few classes.
    Atoms,
    /// A tail of index 0.15 cut off at a line rate that 2 % reach.
    Saturated,
    /// A tail of index 0.15, each value measured with a normal error of 1 %.
    Noise,
}

pub(crate) struct Population {
    pub(crate) name: &'static str,
    pub(crate) law: Law,
    /// The best possible value.
    pub(crate) optimum: f64,
    /// How the optimum is known.
    pub(crate) known: String,
}

const CHOICES: usize = 6;
const PLACES: usize = 12;

impl Population {
    pub(crate) fn draw(&self, random: &mut Random) -> f64 {
        let tail = |k: f64, u: f64| 10.0 - 3.0 * u.powf(k);
        match &self.law {
            Law::Power { k } => tail(*k, random.unit()),
            Law::Beta { a, factors } => {
                (0..*factors).map(|_| random.unit().powf(1.0 / a)).product()
            }
            Law::Interaction { worth, pairs } => {
                let choice: [usize; PLACES] = std::array::from_fn(|_| random.below(CHOICES));
                (0..PLACES)
                    .map(|i| {
                        worth[i * CHOICES + choice[i]]
                            + pairs[choice[i] * CHOICES + choice[(i + 1) % PLACES]]
                    })
                    .sum()
            }
            Law::Assignment(model) => model.draw(random),
            Law::Needle => {
                let value = tail(0.15, random.unit());
                if random.unit() < 1e-5 { 11.0 } else { value }
            }
            Law::Atoms => tail(0.15, (random.below(200) as f64 + 0.5) / 200.0),
            Law::Saturated => tail(0.15, random.unit()).min(tail(0.15, 0.02)),
            Law::Noise => tail(0.15, random.unit()) * (1.0 + 0.01 * random.normal()),
        }
    }
}

/// All of them; annealing takes most of the time.
pub(crate) fn all() -> Vec<Population> {
    let exact =
        |name, law, optimum| Population { name, law, optimum, known: "by construction".into() };
    let mut populations = vec![
        exact("power k=0.05", Law::Power { k: 0.05 }, 10.0),
        exact("power k=0.10", Law::Power { k: 0.1 }, 10.0),
        exact("power k=0.20", Law::Power { k: 0.2 }, 10.0),
        exact("power k=0.40", Law::Power { k: 0.4 }, 10.0),
        exact("power k=0.80", Law::Power { k: 0.8 }, 10.0),
        exact("beta product 4", Law::Beta { a: 3.0, factors: 4 }, 1.0),
        exact("beta product 12", Law::Beta { a: 12.0, factors: 12 }, 1.0),
        interaction(),
    ];
    let models = [
        (
            "issue-bound",
            Model {
                time: [1.0, 1.3, 0.9],
                issue: [0.3, 0.5, 0.25],
                cache: [0.02, 0.04, 0.02],
                distance: 0.02,
            },
        ),
        (
            "cache-bound",
            Model {
                time: [0.9, 1.5, 0.9],
                issue: [0.1, 0.15, 0.1],
                cache: [0.08, 0.2, 0.06],
                distance: 0.03,
            },
        ),
        (
            "talkative",
            Model {
                time: [1.0, 1.0, 1.0],
                issue: [0.15, 0.25, 0.15],
                cache: [0.03, 0.06, 0.03],
                distance: 0.12,
            },
        ),
    ];
    for (name, model) in models {
        let (optimum, reached) = model.optimum(&mut Random::new(12));
        let known = format!("annealed, {reached} of 12 restarts agree");
        populations.push(Population { name, law: Law::Assignment(model), optimum, known });
    }
    populations.extend([
        exact("needle", Law::Needle, 11.0),
        exact("atoms", Law::Atoms, 10.0 - 3.0 * (0.5f64 / 200.0).powf(0.15)),
        exact("saturated", Law::Saturated, 10.0 - 3.0 * 0.02f64.powf(0.15)),
        exact("noise 1 %", Law::Noise, 10.0),
    ]);
    populations
}

/// The optimum over a ring by dynamic programming, once for each first choice.
fn interaction() -> Population {
    let mut random = Random::new(7);
    let worth: Vec<f64> = (0..PLACES * CHOICES).map(|_| random.unit()).collect();
    let pairs: Vec<f64> = (0..CHOICES * CHOICES).map(|_| random.unit()).collect();
    let mut optimum = 0f64;
    for first in 0..CHOICES {
        let mut best = [f64::NEG_INFINITY; CHOICES];
        best[first] = worth[first];
        for place in 1..PLACES {
            best = std::array::from_fn(|choice| {
                let before = (0..CHOICES).map(|from| best[from] + pairs[from * CHOICES + choice]);
                before.fold(f64::NEG_INFINITY, f64::max) + worth[place * CHOICES + choice]
            });
        }
        let closed = (0..CHOICES).map(|last| best[last] + pairs[last * CHOICES + first]);
        optimum = optimum.max(closed.fold(f64::NEG_INFINITY, f64::max));
    }
    Population {
        name: "interaction",
        law: Law::Interaction { worth, pairs },
        optimum,
        known: "dynamic programming".into(),
    }
}
