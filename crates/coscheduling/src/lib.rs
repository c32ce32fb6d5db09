#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cosched_outcome;
mod cosched_search;
mod coscheduler;
mod counter_model;
mod groups;
mod matching;
mod pairs_outcome;
mod pairs_search;
mod predicted_kept;
mod run_times;
mod seats;
mod speedup;

pub use cosched_outcome::{CoschedCost, CoschedOutcome, ProgramOutcome};
pub use cosched_search::{
    CoschedQuestion, CoschedSearch, CoschedVerdict, FLOOR, MOST_ROUNDS, SPLITS, WITHIN,
};
pub use coscheduler::{
    CoscheduleObjective, CoscheduleRule, CoscheduleRuleError, Coscheduler, MissGroups,
    PublishedRule, PublishedWeights, QueuedTask, TaskInterval,
};
pub use counter_model::{
    CounterModel, CounterModelError, FitQuality, PairFeatures, PairMargin, PredictedPair,
    TrainingPair, published_rank, quality,
};
pub use groups::{ProgramGroup, ProgramGroups};
pub use matching::Matchings;
pub use pairs_outcome::{
    Neighbour, PairOutcome, Pairing, PairsOutcome, PairsVerdict, Resampled, SoloOutcome,
};
pub use pairs_search::{PairsQuestion, PairsSearch, RecordedProgram};
pub use predicted_kept::counts_alone;
pub use seats::{PairSeats, SeatsError};
pub use speedup::{Lengths, PairTimes};
