//! What the user asks.

use pinwise_measure::{Testbed, value_or_text};
use pinwise_topology::{Alike, DomainKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How to look for the best assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyName {
    /// Exhaustive where every class can be measured within half of the budget or so, otherwise
    /// guided; random sampling followed by climbing where the budget is too small for either.
    #[default]
    Auto,
    /// Random sampling with the iterative algorithm (optimal-assignment-evt, section 5.3).
    Random,
    /// Every class.
    Exhaustive,
    /// Hill climbing from the best of a random start.
    Climb,
    /// As `Auto`, under the name of what it does in a large space: a predictor learned on the way
    /// chooses what to measure, and the bound comes from how wrong it is.
    Guided,
    /// Profile, predict every assignment, measure the most promising (blackbox-scheduler, section
    /// 3).
    Blackbox,
}

/// How [`StrategyName::Blackbox`] goes about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlackboxOptions {
    /// Threads are taken to interfere within the domains of this level; `None` for the usual one
    /// of the machine.
    pub core_local: Option<DomainKind>,
    /// Who says so.
    #[serde(deserialize_with = "value_or_text")]
    pub core_local_because: LevelSource,
    /// Share of the experiments that are made at most, [`pinwise_prediction::Profiling::allowed`];
    /// all of them, as published, where it is 1.
    pub share: f64,
    /// How many assignments are measured by what is predicted; `None` for as many as the spread of
    /// the predictions asks for.
    pub top: Option<usize>,
}

/// What decides within which level threads are taken to interfere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LevelSource {
    /// The user.
    Asked,
    /// The characterization of the machine.
    Characterized,
    /// Nothing: it is the usual level.
    Usual,
    /// Text: from a store that was written before the sources had kinds.
    Text {
        /// The text.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(LevelSource);

impl Default for BlackboxOptions {
    fn default() -> Self {
        Self { core_local: None, core_local_because: LevelSource::Usual, share: 0.1, top: None }
    }
}

/// What may be spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// That many measurements.
    Measurements(u64),
    /// That much time, from the first measurement to the last.
    Time(Duration),
}

impl Budget {
    /// What is left of it after `time` was spent on something else than measuring; `None` when
    /// nothing is.
    pub fn after(self, time: Duration) -> Option<Self> {
        match self {
            Self::Measurements(_) => Some(self),
            Self::Time(whole) => {
                whole.checked_sub(time).filter(|left| !left.is_zero()).map(Self::Time)
            }
        }
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// How to look.
    pub strategy: StrategyName,
    /// Stop once the best is within this fraction of the bound (0.025 for 2.5 %).
    pub within: f64,
    /// Confidence of every interval and of the bound.
    pub confidence: f64,
    /// What may be spent.
    pub budget: Budget,
    /// At most this many threads per context; `None` decides by the size of the space.
    pub per_context: Option<usize>,
    /// Which domains are alike.
    pub alike: Alike,
    /// First look at the bound after this many sampled assignments (the paper's N_init).
    pub start: u64,
    /// Further looks after this many more (the paper's N_delta); `None` doubles, which keeps the
    /// confidence honest.
    pub step: Option<u64>,
    /// The estimator of the bound.
    pub method: pinwise_evt::Method,
    /// A performance that cannot be exceeded (line rate), in the testbed's unit.
    pub cap: Option<f64>,
    /// Half-width of an interval, relative to the estimate, at which repetition stops.
    pub precision: f64,
    /// Of all randomness.
    pub seed: u64,
    /// Of the strategy that profiles.
    #[serde(default)]
    pub profile: BlackboxOptions,
    /// Whether the testbed can run instances of the workload by themselves ([`Testbed::profiles`]):
    /// what they do alone bounds what they do together. [`Self::on`] fills it in.
    #[serde(default)]
    pub pieces: bool,
    /// About how long it takes to start and measure one instance ([`Testbed::restart`]). `None`: it
    /// is not started for that. [`Self::on`] fills it in.
    #[serde(default)]
    pub restart: Option<Duration>,
}

impl Question {
    /// The usual [`Self::within`].
    pub const WITHIN: f64 = 0.025;
    /// The usual [`Self::confidence`].
    pub const CONFIDENCE: f64 = 0.95;
    /// The usual [`Self::start`].
    pub const FIRST_LOOK: u64 = 500;
    /// The usual [`Self::precision`].
    pub const PRECISION: f64 = 0.01;
    /// The usual [`Self::seed`].
    pub const SEED: u64 = 1;

    /// A question with this strategy and budget. The rest has its defaults: within 2.5 %, at 95 %
    /// confidence, intervals of 1 %, and seed 1. As few threads per context as fit, and there is no
    /// cap. Alike domains are interchangeable, but NUMA nodes are not: memory that a program has
    /// lies in one of them. Looks at the bound keep its confidence.
    pub fn new(strategy: StrategyName, budget: Budget) -> Self {
        Self {
            strategy,
            within: Self::WITHIN,
            confidence: Self::CONFIDENCE,
            budget,
            per_context: None,
            alike: Alike::ExceptNuma,
            start: Self::FIRST_LOOK,
            step: None,
            method: pinwise_evt::Method::Bayes,
            cap: None,
            precision: Self::PRECISION,
            seed: Self::SEED,
            profile: BlackboxOptions::default(),
            pieces: false,
            restart: None,
        }
    }

    /// The question as it is asked on a testbed: with all that a search has to know of what the
    /// testbed can do.
    pub fn on<T: Testbed + ?Sized>(self, testbed: &T) -> Self {
        let pieces = testbed.profiles();
        Self { pieces, restart: testbed.restart().filter(|_| pieces), ..self }
    }
}
