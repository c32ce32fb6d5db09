//! A question, and who asks it.

use crate::characterize::{self, CharacterizeAnswer, CharacterizeRequest};
use crate::compare::{self, CompareAnswer, CompareRequest};
use crate::error::JobError;
use crate::events::Events;
use crate::interrupt::Interrupt;
use crate::latency::{self, LatencyAnswer, LatencyRequest};
use crate::place::{self, PlaceAnswer, PlaceRequest};
use crate::request::SelectRequest;
use crate::select::{self, SelectAnswer};
use crate::threads::{self, ThreadsAnswer, ThreadsRequest};
use crate::tune::{self, TuneAnswer, TuneRequest};
use pinwise_campaign::{CampaignId, CampaignInfo, Kind, Store};
use std::path::PathBuf;

/// A question.
#[derive(Clone, Debug)]
pub enum Job {
    /// Where each thread runs.
    Place(Box<PlaceRequest>),
    /// How strategies compare.
    Compare(Box<CompareRequest>),
    /// Which of the ready programs run together.
    Select(Box<SelectRequest>),
    /// What programs on shared hardware do to each other.
    Characterize(Box<CharacterizeRequest>),
    /// How many threads, and where each of them runs.
    Tune(Box<TuneRequest>),
    /// How far the contexts of this machine are apart.
    Latency(LatencyRequest),
    /// How many threads a program should run.
    Threads(Box<ThreadsRequest>),
}

/// What came of a question.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of [`Job::Place`].
    Place(Box<PlaceAnswer>),
    /// Of [`Job::Compare`].
    Compare(Box<CompareAnswer>),
    /// Of [`Job::Select`].
    Select(Box<SelectAnswer>),
    /// Of [`Job::Characterize`].
    Characterize(Box<CharacterizeAnswer>),
    /// Of [`Job::Tune`].
    Tune(Box<TuneAnswer>),
    /// Of [`Job::Latency`].
    Latency(Box<LatencyAnswer>),
    /// Of [`Job::Threads`].
    Threads(Box<ThreadsAnswer>),
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The command line, stored with the campaign for people to read. Empty for a library's user.
    pub command: Vec<String>,
    /// The `pinwise` program, which runs built-in workloads on this machine. `None`: this process.
    pub program: Option<PathBuf>,
    /// The store, where later commands have to name it.
    pub store: Option<PathBuf>,
    /// The request to stop.
    pub interrupt: Interrupt,
}

impl Caller {
    pub(crate) fn program(&self) -> Result<PathBuf, JobError> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe().map_err(|error| {
                JobError::failed(format!("cannot find this program's own file: {error}"))
            }),
        }
    }
}

/// Answers a question by measuring. Every measurement is in `store` before the next one begins.
///
/// # Errors
/// See [`JobError`]. A run that was interrupted or failed after its first measurement left a
/// campaign that [`resume()`] goes on with.
pub fn run(
    job: Job,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<Answer, JobError> {
    match job {
        Job::Place(request) => {
            place::run(*request, caller, store, events).map(Box::new).map(Answer::Place)
        }
        Job::Compare(request) => {
            compare::run(*request, caller, store, events).map(Box::new).map(Answer::Compare)
        }
        Job::Select(request) => {
            select::run(*request, caller, store, events).map(Box::new).map(Answer::Select)
        }
        Job::Characterize(request) => characterize::run(*request, caller, store, events)
            .map(Box::new)
            .map(Answer::Characterize),
        Job::Tune(request) => {
            tune::run(*request, caller, store, events).map(Box::new).map(Answer::Tune)
        }
        Job::Latency(request) => {
            latency::run(request, caller, store, events).map(Box::new).map(Answer::Latency)
        }
        Job::Threads(request) => {
            threads::run(*request, caller, store, events).map(Box::new).map(Answer::Threads)
        }
    }
}

/// Goes on with a campaign that was interrupted or killed, and answers its question. Of one that
/// has finished the answer is read.
///
/// # Errors
/// As [`run()`]; no such campaign; something has changed that its measurements depend on.
pub fn resume(
    id: CampaignId,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<Answer, JobError> {
    let info = store.get(id)?;
    match info.new.kind {
        Kind::Place => place::resume(&info, caller, store, events).map(Box::new).map(Answer::Place),
        Kind::Compare => {
            compare::resume(&info, caller, store, events).map(Box::new).map(Answer::Compare)
        }
        Kind::Select => {
            select::resume(&info, caller, store, events).map(Box::new).map(Answer::Select)
        }
        Kind::Characterize => characterize::resume(&info, caller, store, events)
            .map(Box::new)
            .map(Answer::Characterize),
        Kind::Tune => tune::resume(&info, caller, store, events).map(Box::new).map(Answer::Tune),
        Kind::Latency => {
            latency::resume(&info, caller, store, events).map(Box::new).map(Answer::Latency)
        }
        Kind::Threads => {
            threads::resume(&info, caller, store, events).map(Box::new).map(Answer::Threads)
        }
        Kind::Policies | Kind::Finals => resume(whole(&info)?, caller, store, events),
    }
}

/// What a campaign answers, as far as it came. Nothing is measured.
///
/// # Errors
/// No such campaign; it was stored in another form than this version's.
pub fn answer(id: CampaignId, caller: &Caller, store: &Store) -> Result<Answer, JobError> {
    let info = store.get(id)?;
    match info.new.kind {
        Kind::Place => place::answer(caller, store, &info).map(Box::new).map(Answer::Place),
        Kind::Compare => compare::answer(store, &info).map(Box::new).map(Answer::Compare),
        Kind::Select => select::answer(store, &info).map(Box::new).map(Answer::Select),
        Kind::Characterize => {
            characterize::answer(store, &info).map(Box::new).map(Answer::Characterize)
        }
        Kind::Tune => tune::answer(store, &info).map(Box::new).map(Answer::Tune),
        Kind::Latency => latency::answer(store, &info).map(Box::new).map(Answer::Latency),
        Kind::Threads => threads::answer(store, &info).map(Box::new).map(Answer::Threads),
        Kind::Policies | Kind::Finals => answer(whole(&info)?, caller, store),
    }
}

/// The campaign that answers for a part which has no answer of its own.
fn whole(part: &CampaignInfo) -> Result<CampaignId, JobError> {
    let id = part.id.0;
    let parent = part.new.parent.as_ref().ok_or_else(|| {
        JobError::failed(format!("campaign {id} is a part of another one, which is not named"))
    })?;
    Ok(parent.id)
}
