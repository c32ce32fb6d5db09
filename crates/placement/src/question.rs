//! The question of a placement search: strategy, budget, precision.

use pinwise_campaign::Record;
use pinwise_measure::{Testbed, value_or_text};
use pinwise_topology::{Alike, DomainKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How to look for the best assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyName {
    /// Exhaustive if every different assignment can be measured within about half of the budget,
    /// otherwise guided. If the budget is too small for either, random sampling followed by
    /// climbing.
    #[default]
    Auto,
    /// Random sampling with the iterative algorithm (optimal-assignment-evt, section 5.3).
    Random,
    /// Every different assignment.
    Exhaustive,
    /// Hill climbing from the best of a random start.
    Climb,
    /// The choice of `Auto` in a large space. A predictor that learns during the search chooses
    /// what to measure, and the bound comes from its error.
    Guided,
    /// Profile, predict every assignment, measure the most promising (blackbox-scheduler, section
    /// 3).
    Blackbox,
}

/// The options of [`StrategyName::Blackbox`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlackboxOptions {
    /// Threads are taken to interfere within the domains of this level; `None` for the usual one
    /// of the machine.
    pub core_local: Option<DomainKind>,
    /// The source of that level.
    #[serde(deserialize_with = "value_or_text")]
    pub core_local_because: LevelSource,
    /// Share of the experiments that are made at most, [`pinwise_prediction::Profiling::allowed`];
    /// all of them, as published, if it is 1.
    pub share: f64,
    /// How many assignments of the best predictions are measured. `None`: as many as the spread of
    /// the predictions requires.
    pub top: Option<usize>,
    /// Which of the predicted assignments are measured. Older stores do not have it.
    #[serde(default)]
    pub select: FinalistRule,
}

/// Which of the predicted assignments are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalistRule {
    /// The best predicted, and the best of those that need fewer assumptions
    /// ([`pinwise_prediction::BlackBox::selected`]).
    #[default]
    Varied,
    /// The best predicted only, in order, as published (blackbox-scheduler, section 3.1.3).
    Top,
}

/// The source of the level within which threads are taken to interfere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LevelSource {
    /// The user.
    Asked,
    /// The characterization of the machine.
    Characterized,
    /// None: it is the usual level.
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
        Self {
            core_local: None,
            core_local_because: LevelSource::Usual,
            share: 0.1,
            top: None,
            select: FinalistRule::default(),
        }
    }
}

/// The budget of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// A number of measurements.
    Measurements(u64),
    /// A time, from the first measurement to the last.
    Time(Duration),
}

impl Budget {
    /// The share that `history` has used; above 1 if it was exceeded. It depends on the records
    /// alone, never on a clock. So a resumed campaign decides as it would have.
    pub fn used(&self, history: &[Record]) -> f64 {
        let (used, whole) = match self {
            Self::Measurements(whole) => (history.len() as f64, *whole as f64),
            Self::Time(whole) => (
                history.last().map_or(0.0, |record| record.elapsed.as_secs_f64()),
                whole.as_secs_f64(),
            ),
        };
        if whole > 0.0 { used / whole } else { 1.0 }
    }

    /// The rest of the budget after `time` was spent on something else than measuring. `None`:
    /// nothing is left.
    pub fn after(self, time: Duration) -> Option<Self> {
        match self {
            Self::Measurements(_) => Some(self),
            Self::Time(whole) => {
                whole.checked_sub(time).filter(|left| !left.is_zero()).map(Self::Time)
            }
        }
    }
}

/// The question of a placement search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementQuestion {
    /// How to look.
    pub strategy: StrategyName,
    /// Stop once the best is within this fraction of the bound (0.025 for 2.5 %).
    pub within: f64,
    /// Confidence of every interval and of the bound.
    pub confidence: f64,
    /// The budget, without the time of preparing the program.
    pub budget: Budget,
    /// The time of preparing the program, which was part of the budget that the user asked for.
    #[serde(default)]
    pub prepared: Duration,
    /// At most this many threads per context; `None` decides by the size of the space.
    pub per_context: Option<usize>,
    /// Which domains are alike.
    pub alike: Alike,
    /// First look at the bound after this many sampled assignments (the paper's N_init).
    pub start: u64,
    /// Further looks after this many more (the paper's N_delta). `None` doubles the sample for each
    /// look, which keeps the confidence correct.
    pub step: Option<u64>,
    /// The estimator of the bound.
    pub method: pinwise_evt::Method,
    /// A performance that cannot be exceeded (line rate). More is better, also if the testbed's
    /// unit is a cost.
    pub cap: Option<f64>,
    /// Half-width of an interval, relative to the estimate, at which repetition stops.
    pub precision: f64,
    /// The seed of all randomness.
    pub seed: u64,
    /// The options of the strategy that profiles.
    #[serde(default)]
    pub profile: BlackboxOptions,
    /// The abilities of the testbed. [`Self::on`] asks for them.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub abilities: TestbedAbilities,
}

/// The abilities of a testbed that a search must know. By default the testbed can do none of it.
/// Other values come from a testbed ([`PlacementQuestion::on`]), or are stored with the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestbedAbilities {
    /// Whether instances of the workload can run alone ([`Testbed::profiles`]). What they do alone
    /// bounds what they do together.
    #[serde(alias = "pieces")]
    pub(crate) profiles: bool,
    /// The approximate time to start and measure one instance ([`Testbed::restart`]). `None`:
    /// instances are not started for a measurement.
    pub(crate) restart: Option<Duration>,
    /// By which share readings of its nodes may differ ([`Testbed::node_spread`]).
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) node_spread: f64,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl PlacementQuestion {
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
    /// confidence, intervals of 1 %, and seed 1. As few threads per context as possible, and no
    /// cap. Alike domains are interchangeable, but NUMA nodes are not: memory that a program has
    /// lies in one of them. Looks at the bound keep its confidence.
    pub fn new(strategy: StrategyName, budget: Budget) -> Self {
        Self {
            strategy,
            within: Self::WITHIN,
            confidence: Self::CONFIDENCE,
            budget,
            prepared: Duration::ZERO,
            per_context: None,
            alike: Alike::ExceptNuma,
            start: Self::FIRST_LOOK,
            step: None,
            method: pinwise_evt::Method::Bayes,
            cap: None,
            precision: Self::PRECISION,
            seed: Self::SEED,
            profile: BlackboxOptions::default(),
            abilities: TestbedAbilities::default(),
        }
    }

    /// The budget that the user asked for.
    pub fn asked_budget(&self) -> Budget {
        match self.budget {
            Budget::Time(left) => Budget::Time(left + self.prepared),
            count => count,
        }
    }

    /// The question for a testbed. It has the abilities of the testbed that a search must know.
    pub fn on<T: Testbed + ?Sized>(self, testbed: &T) -> Self {
        let profiles = testbed.profiles();
        let restart = testbed.restart().filter(|_| profiles);
        let node_spread = testbed.node_spread();
        Self { abilities: TestbedAbilities { profiles, restart, node_spread }, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_testbed_can_do_is_stored_flat_and_absent_in_old_questions() {
        let restart = Some(Duration::from_secs(2));
        let abilities = TestbedAbilities { profiles: true, restart, ..Default::default() };
        let plain = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(60));
        let question = PlacementQuestion { abilities, ..plain.clone() };
        let mut stored = serde_json::to_value(&question).unwrap();
        assert_eq!(serde_json::from_value::<PlacementQuestion>(stored.clone()).unwrap(), question);
        let fields = stored.as_object_mut().unwrap();
        let profiles = fields.remove("profiles").unwrap();
        fields.insert("pieces".to_owned(), profiles);
        let named_before = serde_json::Value::Object(fields.clone());
        assert_eq!(serde_json::from_value::<PlacementQuestion>(named_before).unwrap(), question);
        fields.remove("pieces");
        assert!(fields.remove("restart").is_some());
        assert_eq!(serde_json::from_value::<PlacementQuestion>(stored).unwrap(), plain);
    }
}
