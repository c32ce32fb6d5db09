//! The table of all kinds of questions: which request runs, resumes and reads each.

use crate::calibrate::{CalibrationAnswer, CalibrationRequest};
use crate::characterize::{CharacterizeAnswer, CharacterizeRequest};
use crate::compare::{CompareAnswer, CompareRequest};
use crate::cosched::{CoschedAnswer, CoschedRequest};
use crate::error::JobError;
use crate::events::Events;
use crate::job::{Caller, Job, resume_job, with_listener};
use crate::latency::{LatencyAnswer, LatencyRequest};
use crate::pairs::{PairsAnswer, PairsRequest};
use crate::place::{PlaceAnswer, PlaceRequest};
use crate::select::SelectAnswer;
use crate::select::SelectRequest;
use crate::threads::{ThreadsAnswer, ThreadsRequest};
use crate::tune::{TuneAnswer, TuneRequest};
use pinwise_campaign::{CampaignId, CampaignInfo, Kind, Store};
use pinwise_present::Summary;
use serde_json::Value;

/// All questions. Each has a variant of [`Kind`] and of [`Answer`], a request, and the answer to
/// it.
macro_rules! questions {
    ($($(#[$doc:meta])* $kind:ident: $request:ty => $answer:ty,)*) => {
        /// The answer to a question of any kind.
        #[derive(Debug)]
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
            /// The functions of a kind. `None`: it is a part, whose parent answers.
            fn of(kind: Kind) -> Option<Self> {
                match kind {
                    $(Kind::$kind => Some(Self::of_job::<$request>()),)*
                    part => {
                        debug_assert!(part.is_part());
                        None
                    }
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
    /// The thresholds of the published search for a number of threads.
    Calibrate: CalibrationRequest => CalibrationAnswer,
    /// How many threads, and where each of them runs.
    Tune: TuneRequest => TuneAnswer,
    /// The effects of programs on each other on shared hardware.
    Characterize: CharacterizeRequest => CharacterizeAnswer,
    /// How far the contexts of this machine are apart.
    Latency: LatencyRequest => LatencyAnswer,
    /// Which programs to pair.
    Pairs: PairsRequest => PairsAnswer,
    /// Whether it helps to move threads of running programs between siblings.
    Cosched: CoschedRequest => CoschedAnswer,
}

type Resume = fn(&CampaignInfo, &Caller, &mut Store, &mut dyn Events) -> Result<Answer, JobError>;

/// The functions that serve a stored campaign of any kind.
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

/// Goes on with a campaign that was interrupted or killed, and answers its question. For a finished
/// campaign it reads the answer, and writes an absent plan again.
///
/// # Errors
/// The errors of [`crate::run()`]. No such campaign. Something has changed that its measurements
/// depend on.
pub fn resume(
    id: CampaignId,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<Answer, JobError> {
    let (info, steps) = answering(store.get(id)?, store)?;
    with_listener(caller, events, |caller, events| (steps.resume)(&info, caller, store, events))
}

/// Reads the answer of a campaign, as far as it is known. Measures nothing.
///
/// # Errors
/// No such campaign; it was stored in another form than this version's.
pub fn answer(id: CampaignId, caller: &Caller, store: &Store) -> Result<Answer, JobError> {
    let (info, steps) = answering(store.get(id)?, store)?;
    (steps.answer)(&info, caller, store)
}

/// The answer of a campaign in brief, from its conclusion. `None`: it has no answer yet, or is a
/// part without one.
pub fn summary(info: &CampaignInfo) -> Option<Summary> {
    (Steps::of(info.new.kind)?.summary)(info.conclusion.as_ref()?)
}

/// The campaign that answers: for a part without an answer, its parent.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Listening, Silent, stopping_at};
    use crate::job::run;
    use crate::placement_request::{PlacementRequest, simulated};
    use crate::simulation::SimulatedProcessor;
    use crate::simulation::SimulationRequest;
    use crate::stored_campaign::empty_store as store;
    use crate::subject::Subject;
    use crate::threads::{HostProgram, ThreadsProgram, ThreadsQuestion};
    use pinwise_campaign::{CampaignState, NewCampaign, StoreError};
    use pinwise_placement::{Budget, Plan, SelectionQuestion};
    use pinwise_topology::Fingerprint;
    use std::io;
    use std::sync::atomic::Ordering;

    fn request() -> PlaceRequest {
        let model = SimulatedProcessor::built_in("ultrasparc-t2");
        PlaceRequest { request: simulated(model, Budget::Measurements(60)), plan: None }
    }

    #[test]
    fn a_campaign_is_locked_from_its_begin_until_its_conclusion_is_stored() {
        let (_folder, mut store) = store();
        let other = Store::open(store.path()).unwrap();
        let mut looked = 0;
        let mut events = Listening(|event: Event<'_>| {
            if matches!(event, Event::Begun(_) | Event::MeasuringEnded) {
                looked += 1;
                assert!(matches!(other.lock(CampaignId(1)), Err(StoreError::Running { .. })));
            }
            Ok(())
        });
        let answer = run(request(), &Caller::default(), &mut store, &mut events).unwrap();
        assert_eq!((looked, answer.campaign.state), (2, CampaignState::Finished));
        other.lock(CampaignId(1)).unwrap();
    }

    #[test]
    fn the_program_of_a_campaign_that_somebody_else_runs_is_not_opened() {
        let (_folder, mut store) = store();
        let (new, _) = request().prepare(&Caller::default(), &store, &mut Silent).unwrap();
        // There is no such program: to open it would be the error.
        let subject = Subject::Rerun(vec!["/none".into()]);
        let question =
            serde_json::to_value(PlacementRequest { subject, ..request().request }).unwrap();
        let id = store.create(&NewCampaign { question, ..new }).unwrap();
        let other = Store::open(store.path()).unwrap();
        let _lock = other.lock(id).unwrap();
        let error = resume(id, &Caller::default(), &mut store, &mut Silent).unwrap_err();
        assert!(matches!(error, JobError::Store(StoreError::Running { .. })), "{error}");
    }

    #[test]
    fn a_listener_who_leaves_ends_the_job_and_what_was_measured_stays() {
        for (leaves_after, asked) in [(0, false), (3, false), (3, true)] {
            let (_folder, mut store) = store();
            let caller = Caller::default();
            let mut left = leaves_after;
            let mut events = Listening(|event: Event<'_>| {
                left -= i32::from(matches!(event, Event::Measured(_)));
                if left > 0 {
                    return Ok(());
                }
                // Somebody may ask to stop at the same moment.
                caller.interrupt.flag().store(asked, Ordering::Relaxed);
                Err(io::ErrorKind::BrokenPipe.into())
            });
            let error = run(request(), &caller, &mut store, &mut events).unwrap_err();
            assert!(matches!(error, JobError::Output(_)), "{error}");
            assert_eq!(caller.interrupt.came(), asked, "the caller's own");
            let campaigns = store.list().unwrap().campaigns;
            let ended: Vec<_> = campaigns.iter().map(|info| (info.state, info.records)).collect();
            let expected = [(CampaignState::Stopped, 3)];
            assert_eq!(ended, expected[..usize::from(leaves_after > 0)]);
            let Some(stopped) = campaigns.first() else { continue };
            // Resumed, it is open again before anything is measured.
            let other = Store::open(store.path()).unwrap();
            let mut open = 0;
            let mut events = Listening(|event: Event<'_>| {
                if let Event::Begun(info) = event {
                    open += i32::from(other.get(info.id).unwrap().state == CampaignState::Open);
                }
                Ok(())
            });
            resume(stopped.id, &Caller::default(), &mut store, &mut events).unwrap();
            assert_eq!(open, 1);
        }
    }

    #[test]
    fn a_campaign_whose_process_has_ended_names_the_search_to_begin_instead() {
        let (_folder, mut store) = store();
        let (new, _) = request().prepare(&Caller::default(), &store, &mut Silent).unwrap();
        let gone = i32::MAX;
        let place = PlacementRequest { subject: Subject::Pids(vec![gone]), ..request().request };
        let tree = PlacementRequest { subject: Subject::Tree(gone), ..request().request };
        let program = ThreadsProgram::Here(HostProgram {
            pid: Some(gone),
            set: Some("cpuset:".parse().unwrap()),
            ..HostProgram::default()
        });
        let threads = ThreadsRequest::new(program);
        let tune = TuneRequest { threads: threads.clone(), plan: None, memory: None };
        let here = ThreadsProgram::Here(HostProgram {
            command: ["true", "{n}"].map(str::to_owned).to_vec(),
            ..HostProgram::default()
        });
        let (question, _) = ThreadsQuestion::of(ThreadsRequest::new(here)).unwrap();
        let threads = ThreadsQuestion { request: threads, ..question };
        let json = |question: Result<Value, _>| question.unwrap();
        for (kind, option, question) in [
            (Kind::Place, "--pid", json(serde_json::to_value(place))),
            (Kind::Place, "--tree", json(serde_json::to_value(tree))),
            (Kind::Threads, "--pid", json(serde_json::to_value(threads))),
            (Kind::Tune, "--pid", json(serde_json::to_value(tune))),
        ] {
            let typed = format!("pinwise x --pid={gone} --budget {gone} {option} {gone}");
            let command = typed.split(' ').map(str::to_owned).collect();
            let id = store.create(&NewCampaign { kind, question, command, ..new.clone() }).unwrap();
            let error = resume(id, &Caller::default(), &mut store, &mut Silent).unwrap_err();
            assert!(matches!(error, JobError::Usage(_)), "{error}");
            let begins = format!("campaign {}: its process {gone} has ended, ", id.0);
            let ends =
                format!("then a new search: pinwise x --pid=PID --budget {gone} {option} PID");
            let error = error.to_string();
            assert!(error.starts_with(&begins) && error.ends_with(&ends), "{error}");
        }
    }

    /// The campaigns in the store after `asked` was stopped at the start of a search, before it
    /// measured.
    fn left_at_search<J: Job>(asked: J, number: usize) -> Vec<(Kind, CampaignState, bool)>
    where
        J::Answer: std::fmt::Debug,
    {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, number, |event| matches!(event, Event::Search { .. }));
        let error = run(asked, &caller, &mut store, &mut events).unwrap_err();
        assert!(matches!(error, JobError::Interrupted(_)), "{error}");
        let campaigns = store.list().unwrap().campaigns;
        campaigns.iter().map(|info| (info.new.kind, info.state, info.records > 0)).collect()
    }

    /// One program of two is chosen.
    fn selection() -> SelectRequest {
        let Subject::Simulated(simulation) = request().request.subject else { panic!() };
        let others = vec![("intmul".to_owned(), 1)];
        SelectRequest {
            question: SelectionQuestion { choose: 1, budget: 50, confidence: 0.95, seed: 1 },
            subject: Subject::Simulated(SimulationRequest { others, ..simulation }),
            alone: Vec::new(),
            cpus: Some("0-7".into()),
            name: None,
        }
    }

    #[test]
    fn a_search_inside_another_campaign_that_cannot_begin_leaves_no_campaign() {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        let (new, _) = selection().prepare(&caller, &store, &mut Silent).unwrap();
        // The model does not have this context.
        let nowhere = SelectRequest { cpus: Some("900".into()), ..selection() };
        let question = serde_json::to_value(nowhere).unwrap();
        let id = store.create(&NewCampaign { question, ..new }).unwrap();
        let error = resume(id, &caller, &mut store, &mut Silent).unwrap_err();
        assert!(!matches!(error, JobError::Interrupted(_)), "{error}");
        assert_eq!(store.list().unwrap().campaigns.len(), 0);
    }

    #[test]
    fn a_search_inside_another_campaign_that_measured_nothing_leaves_no_campaign() {
        let select = selection();
        let compare =
            CompareRequest { draws: 2, rounds: 5, ..CompareRequest::new(request().request) };
        assert_eq!(left_at_search(select.clone(), 1), []);
        assert_eq!(left_at_search(compare.clone(), 1), []);
        // The measurements of the first search stay, and so does the campaign that it belongs to.
        let (stopped, ended) = (CampaignState::Stopped, CampaignState::Finished);
        let left = |kind| [(kind, stopped, false), (Kind::Place, ended, true)];
        assert_eq!(left_at_search(select, 2), left(Kind::Select));
        assert_eq!(left_at_search(compare, 2), left(Kind::Compare));
    }

    #[test]
    fn no_limit_is_a_budget() {
        let (_folder, store) = store();
        let mut asked = request();
        asked.request.question.budget = Budget::Time(std::time::Duration::MAX);
        asked.prepare(&Caller::default(), &store, &mut Silent).unwrap();
    }

    #[test]
    fn a_plan_that_is_gone_is_written_again_where_it_was_asked_for() {
        let (folder, mut store) = store();
        let caller = Caller::default();
        let wanted = folder.path().join("mine.toml");
        for plan in [None, Some(wanted)] {
            let asked = PlaceRequest { plan, ..request() };
            let answer = run(asked, &caller, &mut store, &mut Silent).unwrap();
            let path = answer.plan.unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let again = resume(answer.campaign.id, &caller, &mut store, &mut Silent).unwrap();
            let Answer::Place(again) = again else { panic!("{again:?}") };
            assert_eq!(again.plan.as_ref(), Some(&path));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_plan_that_cannot_be_written_is_refused_at_the_start() {
        let (folder, store) = store();
        let plan = Some(folder.path().join("none/mine.toml"));
        let threads = ThreadsRequest::new(ThreadsProgram::Here(HostProgram {
            command: ["true", "{n}"].map(str::to_owned).to_vec(),
            ..HostProgram::default()
        }));
        let caller = Caller::default();
        let place = PlaceRequest { plan: plan.clone(), ..request() };
        let tune = TuneRequest { threads, plan, memory: None };
        for error in [
            place.prepare(&caller, &store, &mut Silent).err().unwrap(),
            tune.prepare(&caller, &store, &mut Silent).err().unwrap(),
        ] {
            let JobError::Usage(reason) = error else { panic!("{error}") };
            assert!(reason.contains("none/mine.toml: its folder does not exist"), "{reason}");
        }
    }

    #[test]
    fn an_answer_stands_though_its_plan_can_no_longer_be_written() {
        let (folder, mut store) = store();
        let plans = folder.path().join("mine");
        std::fs::create_dir(&plans).unwrap();
        let mut events = Listening(|event: Event<'_>| match event {
            Event::MeasuringEnded => std::fs::remove_dir(&plans),
            _ => Ok(()),
        });
        let asked = PlaceRequest { plan: Some(plans.join("1.toml")), ..request() };
        let answer = run(asked, &Caller::default(), &mut store, &mut events).unwrap();
        let unwritten = answer.unwritten.unwrap();
        assert!(unwritten.to_string().contains("mine/1.toml"), "{unwritten}");
        assert_eq!((answer.plan, answer.campaign.state), (None, CampaignState::Finished));
        assert!(answer.outcome.best.is_some());
    }

    #[test]
    fn what_a_campaign_is_stands_in_the_store_and_is_not_guessed_from_its_question() {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        let (new, _) = request().prepare(&caller, &store, &mut Silent).unwrap();
        for kind in [Kind::Compare, Kind::Select, Kind::Tune] {
            // A question that another version wrote: as a placement it could be read, and run.
            let id = store.create(&NewCampaign { kind, ..new.clone() }).unwrap();
            for error in [
                resume(id, &caller, &mut store, &mut Silent).unwrap_err(),
                answer(id, &caller, &store).unwrap_err(),
            ] {
                let error = error.to_string();
                assert!(error.contains("another version of pinwise wrote its question"), "{error}");
            }
            assert_eq!(store.get(id).unwrap().records, 0);
        }
    }

    #[test]
    fn a_plan_that_is_written_again_does_not_claim_the_kernel_of_today() {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        let CampaignInfo { new, conclusion, .. } =
            run(request(), &caller, &mut store, &mut Silent).unwrap().campaign;
        // The subject of a program on this machine.
        let subject = Subject::Rerun(vec!["/none".into()]);
        let question =
            serde_json::to_value(PlacementRequest { subject, ..request().request }).unwrap();
        let id = store.create(&NewCampaign { question, ..new.clone() }).unwrap();
        store.set_state(id, CampaignState::Finished, conclusion.as_ref()).unwrap();
        let Answer::Place(answer) = resume(id, &caller, &mut store, &mut Silent).unwrap() else {
            panic!("it is a placement")
        };
        let plan = std::fs::read_to_string(answer.plan.unwrap()).unwrap();
        let fingerprint = Plan::parse(&plan).unwrap().machine;
        assert_eq!(fingerprint, Fingerprint::of(&new.machine));
    }
}
