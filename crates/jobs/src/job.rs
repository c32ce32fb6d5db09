//! The [`Job`] trait: the steps that every question takes, and [`run`].

use crate::error::JobError;
use crate::events::{Event, Events, Listener, note};
use crate::leftovers::put_back_leftovers;
use pinwise_campaign::{CampaignInfo, CampaignState, Kind, NewCampaign, Store};
use pinwise_measure::Interrupt;
use pinwise_present::{Notice, Summary};
use serde_json::Value;
use std::path::PathBuf;

/// A question about a subject, as its request says it: where each thread runs, how many there are.
///
/// Each kind of question is one file, which implements this trait once. Both [`run()`] and
/// [`crate::resume()`] call its steps, in the same order for every kind.
pub trait Job: Sized {
    /// The kind of its campaigns.
    const KIND: Kind;
    /// The answer.
    type Answer;
    /// The open program and the question, with every default decided. `conduct` measures with it.
    type Prepared;

    /// Opens the program and decides what the request leaves open. A question that has no answer
    /// makes no campaign.
    ///
    /// # Errors
    /// The request makes no sense, or the program cannot be used.
    fn prepare(
        self,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, Self::Prepared), JobError>;

    /// Opens the program of a campaign that has not finished.
    ///
    /// # Errors
    /// The program cannot be used, or something has changed that the measurements depend on.
    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<Self::Prepared, JobError>;

    /// Measures from where the campaign's records end, and stores what it concludes.
    ///
    /// # Errors
    /// The run ended without an answer.
    fn conduct(
        ready: Self::Prepared,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<Self::Answer, JobError>;

    /// Reads the answer of a campaign, as far as it is known. Measures nothing.
    ///
    /// # Errors
    /// It was stored in another form than this version's.
    fn answer(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
    ) -> Result<Self::Answer, JobError>;

    /// The answer of a campaign that has finished. What belongs to it outside the campaign (a plan)
    /// and is absent is made again.
    ///
    /// # Errors
    /// The errors of [`Self::answer`].
    fn finished(
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
    ) -> Result<Self::Answer, JobError> {
        Self::answer(info, caller, store)
    }

    /// A stored conclusion in brief; `None` if it has no answer, or cannot be read.
    fn summary(conclusion: &Value) -> Option<Summary>;
}

/// What a job needs to know of its caller.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The command line, stored with the campaign for people to read. Empty for a library's user.
    pub command: Vec<String>,
    /// The `pinwise` program, which runs built-in workloads on this machine. `None`: this process.
    pub program: Option<PathBuf>,
    /// The store, if later commands have to name it.
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
/// See [`JobError`]. If a run is interrupted or fails after its first measurement,
/// [`crate::resume()`] can go on with its campaign.
pub fn run<J: Job>(
    job: J,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<J::Answer, JobError> {
    store.ensure_writable()?;
    with_listener(caller, events, |caller, events| {
        put_back(events)?;
        let (new, ready) = job.prepare(caller, store, events)?;
        upgrade(store, events)?;
        let id = store.create(&new)?;
        let _lock = store.lock(id)?;
        go_on::<J>(ready, &store.get(id)?, caller, store, events)
    })
}

/// Does what [`crate::resume()`] does, for a campaign whose kind is known.
pub(crate) fn resume_job<J: Job>(
    info: &CampaignInfo,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<J::Answer, JobError> {
    if info.state == CampaignState::Finished {
        return J::finished(info, caller, store);
    }
    put_back(events)?;
    // Before the program is opened: it would run beside the one that is measured. And until the
    // conclusion is stored.
    let _lock = store.lock(info.id)?;
    let ready = J::reopen(info, caller, store, events)?;
    upgrade(store, events)?;
    store.set_state(info.id, CampaignState::Open, None)?;
    go_on::<J>(ready, info, caller, store, events)
}

/// Puts back what a killed pinwise left changed, and says so. Otherwise this job would take it for
/// the program's own state.
fn put_back(events: &mut dyn Events) -> Result<(), JobError> {
    put_back_leftovers().into_iter().try_for_each(|notice| note(events, notice))
}

/// Says that a store is upgraded, if it is one of an earlier version.
fn upgrade(store: &mut Store, events: &mut dyn Events) -> Result<(), JobError> {
    let Some(copy) = store.upgrade()? else { return Ok(()) };
    note(events, Notice::StoreUpgraded { copy })
}

/// Runs `act` while somebody takes its events. Once nobody does, it ends as if interrupted.
pub(crate) fn with_listener<T>(
    caller: &Caller,
    events: &mut dyn Events,
    act: impl FnOnce(&Caller, &mut dyn Events) -> Result<T, JobError>,
) -> Result<T, JobError> {
    let caller = Caller { interrupt: caller.interrupt.of_one(), ..caller.clone() };
    let mut listener = Listener::new(events, &caller.interrupt);
    let done = act(&caller, &mut listener);
    let Some(error) = listener.gone else { return done };
    match done {
        Err(worse @ (JobError::Store(_) | JobError::Failed(_))) => Err(worse),
        _ => Err(JobError::Output(error)),
    }
}

fn go_on<J: Job>(
    ready: J::Prepared,
    info: &CampaignInfo,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<J::Answer, JobError> {
    events.take(Event::Begun(info)).map_err(JobError::Output)?;
    J::conduct(ready, info, caller, store, events)
}
