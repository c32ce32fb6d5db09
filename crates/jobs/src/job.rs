//! A question, and who asks it.

use crate::campaign_run::stop;
use crate::characterize::{CharacterizeAnswer, CharacterizeRequest};
use crate::compare::{CompareAnswer, CompareRequest};
use crate::error::JobError;
use crate::events::{Event, Events};
use crate::interrupt::Interrupt;
use crate::latency::{LatencyAnswer, LatencyRequest};
use crate::place::{PlaceAnswer, PlaceRequest};
use crate::request::SelectRequest;
use crate::select::SelectAnswer;
use crate::summary::Summary;
use crate::threads::{ThreadsAnswer, ThreadsRequest};
use crate::tune::{TuneAnswer, TuneRequest};
use pinwise_campaign::{CampaignId, CampaignInfo, CampaignState, Kind, NewCampaign, Store};
use serde_json::Value;
use std::path::PathBuf;

/// A question about a subject, as its request says it: where each thread runs, how many there are.
///
/// Each kind of question is one file, which implements this trait once. [`run()`] and [`resume()`]
/// call its steps, in the same order for every kind.
pub trait Job: Sized {
    /// What its campaigns are.
    const KIND: Kind;
    /// What comes of it.
    type Answer;
    /// What measures: the open program and the question, with every default decided.
    type Ready;

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
    ) -> Result<(NewCampaign, Self::Ready), JobError>;

    /// Opens the program of a campaign that has not finished.
    ///
    /// # Errors
    /// The program cannot be used, or something has changed that the measurements depend on.
    fn reopen(info: &CampaignInfo, caller: &Caller) -> Result<Self::Ready, JobError>;

    /// Measures from where the campaign's records end, and stores what it concludes.
    ///
    /// # Errors
    /// The run ended without an answer.
    fn conduct(
        ready: Self::Ready,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<Self::Answer, JobError>;

    /// What a campaign answers, as far as it came. Nothing is measured.
    ///
    /// # Errors
    /// It was stored in another form than this version's.
    fn answer(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
    ) -> Result<Self::Answer, JobError>;

    /// A stored conclusion in brief; `None` where it has no answer, or cannot be read.
    fn summary(conclusion: &Value) -> Option<Summary>;
}

/// The questions that there are: a variant of [`Kind`] and of [`Answer`], the request, and what
/// comes of it.
macro_rules! questions {
    ($($(#[$doc:meta])* $kind:ident: $request:ty => $answer:ty,)*) => {
        /// What came of a question.
        #[derive(Clone, Debug)]
        pub enum Answer {
            $($(#[$doc])* $kind(Box<$answer>),)*
        }

        $(impl From<$answer> for Answer {
            fn from(answer: $answer) -> Self {
                Self::$kind(Box::new(answer))
            }
        })*

        $(const _: () = assert!(matches!(<$request>::KIND, Kind::$kind));)*

        impl Steps {
            /// Those of a kind; `None`: it is a part, which its parent answers for.
            fn of(kind: Kind) -> Option<Self> {
                match kind {
                    $(Kind::$kind => Some(Self::of_job::<$request>()),)*
                    Kind::Policies | Kind::Finals => None,
                }
            }
        }
    };
}

questions! {
    /// Where each thread runs.
    Place: PlaceRequest => PlaceAnswer,
    /// How strategies compare.
    Compare: CompareRequest => CompareAnswer,
    /// Which of the ready programs run together.
    Select: SelectRequest => SelectAnswer,
    /// How many threads a program should run.
    Threads: ThreadsRequest => ThreadsAnswer,
    /// How many threads, and where each of them runs.
    Tune: TuneRequest => TuneAnswer,
    /// What programs on shared hardware do to each other.
    Characterize: CharacterizeRequest => CharacterizeAnswer,
    /// How far the contexts of this machine are apart.
    Latency: LatencyRequest => LatencyAnswer,
}

type Resume = fn(&CampaignInfo, &Caller, &mut Store, &mut dyn Events) -> Result<Answer, JobError>;

/// What can be done with a stored campaign of any kind.
struct Steps {
    resume: Resume,
    answer: fn(&CampaignInfo, &Caller, &Store) -> Result<Answer, JobError>,
    summary: fn(&Value) -> Option<Summary>,
}

impl Steps {
    fn of_job<J: Job>() -> Self
    where
        Answer: From<J::Answer>,
    {
        Self {
            resume: |info, caller, store, events| {
                resume_job::<J>(info, caller, store, events).map(Answer::from)
            },
            answer: |info, caller, store| J::answer(info, caller, store).map(Answer::from),
            summary: J::summary,
        }
    }
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
pub fn run<J: Job>(
    job: J,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<J::Answer, JobError> {
    let (new, ready) = job.prepare(caller, store, events)?;
    let id = store.create(&new)?;
    go_on::<J>(ready, &store.get(id)?, caller, store, events)
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
    let (info, steps) = answering(store.get(id)?, store)?;
    (steps.resume)(&info, caller, store, events)
}

/// What a campaign answers, as far as it came. Nothing is measured.
///
/// # Errors
/// No such campaign; it was stored in another form than this version's.
pub fn answer(id: CampaignId, caller: &Caller, store: &Store) -> Result<Answer, JobError> {
    let (info, steps) = answering(store.get(id)?, store)?;
    (steps.answer)(&info, caller, store)
}

impl Summary {
    /// Of what `info` concluded; `None` where it has no answer yet, or is a part without one.
    pub fn of(info: &CampaignInfo) -> Option<Self> {
        (Steps::of(info.new.kind)?.summary)(info.conclusion.as_ref()?)
    }
}

/// As [`resume()`], for a campaign whose kind is known.
pub(crate) fn resume_job<J: Job>(
    info: &CampaignInfo,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<J::Answer, JobError> {
    if info.state == CampaignState::Finished {
        return J::answer(info, caller, store);
    }
    let ready = J::reopen(info, caller)?;
    go_on::<J>(ready, info, caller, store, events)
}

fn go_on<J: Job>(
    ready: J::Ready,
    info: &CampaignInfo,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<J::Answer, JobError> {
    if let Err(error) = events.take(Event::Begun(info)) {
        // Nobody reads along: what was not begun is not left behind as a campaign that was killed.
        // The error that counts is the first.
        let _ = stop(store, info.id);
        return Err(JobError::Output(error));
    }
    J::conduct(ready, info, caller, store, events)
}

/// The campaign that answers: a part that has no answer of its own is answered for by its parent.
fn answering(info: CampaignInfo, store: &Store) -> Result<(CampaignInfo, Steps), JobError> {
    if let Some(steps) = Steps::of(info.new.kind) {
        return Ok((info, steps));
    }
    let id = info.id.0;
    let parent = info.new.parent.ok_or_else(|| {
        JobError::failed(format!("campaign {id} is a part of another one, which is not named"))
    })?;
    answering(store.get(parent.id)?, store)
}
