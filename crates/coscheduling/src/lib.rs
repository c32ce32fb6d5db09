#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod coscheduler;
mod matching;
mod outcome;
mod run_times;
mod search;
mod seats;
mod speedup;

pub use coscheduler::{
    CoscheduleObjective, CoscheduleRule, Coscheduler, MissGroups, ObservedThread, PairSpeeds,
    PublishedRule, PublishedWeights, QueuedTask,
};
pub use matching::Matchings;
pub use outcome::{
    Neighbour, PairOutcome, Pairing, PairsOutcome, PairsVerdict, Resampled, SoloOutcome,
};
pub use search::{PairsQuestion, PairsSearch};
pub use seats::{PairSeats, SeatsError};
pub use speedup::{Lengths, PairTimes};
