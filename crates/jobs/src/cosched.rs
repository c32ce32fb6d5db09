//! The job that moves threads of running programs between siblings, and judges whether that helps.

use crate::campaign_run::{conclude, disturbances, measure};
use crate::error::{Failure, JobError, Kept, Remedy};
use crate::events::{Events, note};
use crate::job::{Caller, Job};
use crate::leftovers::put_back_leftovers;
use crate::open_subject::{
    OpenSubject, ProgressMeans, coschedule_error, counters, open_running, shared_contexts,
};
use crate::placement_request::ReadingOptions;
use crate::resume_check::{check_machine, check_processes};
use crate::stored_campaign;
use crate::subject::Subject;
use pinwise_campaign::{CampaignInfo, Ending, Kind, NewCampaign, Record, Store};
use pinwise_coscheduling::{CoschedOutcome, CoschedQuestion, CoschedSearch};
use pinwise_linux::ThreadId;
use pinwise_measure::{CounterQuality, ProgramNote, Testbed, ThreadMoves};
use pinwise_metric::MetricSpec;
use pinwise_placement::Budget;
use pinwise_present::figures::duration;
use pinwise_present::{CoschedFindings, Files, Planned, Summary, Unfinished};
use pinwise_programs::CoscheduledTestbed;
use pinwise_topology::{Alike, DomainKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Whether it helps to move threads of running programs: the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoschedRequest {
    /// The question. Whether instructions are counted follows from [`Self::metric`].
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub question: CoschedQuestion,
    /// The programs, which run.
    pub subject: Subject,
    /// The metric of all programs together. `None`: instructions are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// How the metric is read.
    pub reading: ReadingOptions,
    /// The name of the level whose contexts are siblings; the closest by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Only these contexts, as a CPU list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

/// What is stored of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CoschedConclusion {
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    outcome: CoschedOutcome,
    notes: Vec<ProgramNote>,
}

/// The answer of `cosched`: whether moving threads helps, so far.
#[derive(Clone, Debug)]
pub struct CoschedAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question.
    pub request: CoschedRequest,
    /// The level whose contexts are siblings.
    pub level: DomainKind,
    /// The outcome so far.
    pub outcome: CoschedOutcome,
    /// Notes on what disturbed the periods.
    pub notes: Vec<ProgramNote>,
}

/// What shows the progress of programs without counters.
const METRIC_INSTEAD: &str = "or give --metric, which shows the progress of the programs";

/// A time that no co-scheduled program runs for.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl CoschedAnswer {
    /// How far the campaign is; `None` if it has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let most = Planned::from(self.request.budget());
        Unfinished::of(&self.campaign, self.campaign.records, most, "period", files)
    }

    /// What follows from the outcome, in words.
    pub fn findings(&self) -> CoschedFindings<'_> {
        CoschedFindings {
            outcome: &self.outcome,
            question: &self.request.question,
            level: self.level,
        }
    }

    fn new(
        campaign: CampaignInfo,
        request: CoschedRequest,
        conclusion: CoschedConclusion,
    ) -> Result<Self, JobError> {
        let (level, _) = shared_contexts(&campaign.new.machine, request.level.as_deref())?;
        let CoschedConclusion { outcome, notes } = conclusion;
        Ok(Self { campaign, request, level, outcome, notes })
    }
}

/// A request, with its programs.
pub struct PreparedCosched {
    request: CoschedRequest,
    testbed: CoscheduledTestbed,
}

impl CoschedRequest {
    fn budget(&self) -> Budget {
        Budget::Time(self.question.budget.unwrap_or(ENDLESS))
    }

    fn means(&self) -> Result<ProgressMeans, JobError> {
        Ok(match &self.metric {
            Some(metric) => {
                let metric: MetricSpec = metric.parse().map_err(JobError::usage)?;
                ProgressMeans::Metric(metric)
            }
            None => ProgressMeans::Counts(counters(METRIC_INSTEAD)?),
        })
    }

    fn open(self, caller: &Caller) -> Result<PreparedCosched, JobError> {
        let testbed = open_running(&self, || self.means(), &caller.interrupt)?;
        Ok(PreparedCosched { request: self, testbed })
    }

    /// Refuses a budget that is over before the first verdict.
    fn check_budget(&self) -> Result<(), JobError> {
        let [least, usual] = self.question.first_verdict();
        match self.question.budget {
            Some(budget) if budget < least => Err(JobError::Usage(format!(
                "--budget {}: the first verdict takes about {} with --quantum {}: give twice that, \
                 or a shorter --quantum",
                duration(budget),
                duration(usual),
                duration(self.question.quantum)
            ))),
            _ => Ok(()),
        }
    }

    fn outcome(&self, records: &[Record], info: &CampaignInfo) -> CoschedOutcome {
        CoschedOutcome::of(records, &self.question, info.new.machine.online().len())
    }
}

impl Job for CoschedRequest {
    const KIND: Kind = Kind::Cosched;
    type Answer = CoschedAnswer;
    type Prepared = PreparedCosched;

    fn prepare(
        mut self,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedCosched), JobError> {
        self.question.counted = self.metric.is_none();
        self.check_budget()?;
        let ready = self.open(caller)?;
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine: ready.testbed.machine().clone(),
            alike: Alike::ByStructure,
            workload: ready.testbed.workload().clone(),
            unit: ready.testbed.unit().clone(),
            simulated: false,
            question: serde_json::to_value(&ready.request)?,
            seed: ready.request.question.seed,
        };
        Ok((new, ready))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<PreparedCosched, JobError> {
        let request: Self = stored_campaign::question(info)?;
        match &request.subject {
            Subject::Pids(pids) => check_processes(info, pids)?,
            Subject::Tree(root) => check_processes(info, &[*root])?,
            _ => {}
        }
        let ready = request.open(caller)?;
        check_machine(info, ready.testbed.machine())?;
        Ok(ready)
    }

    fn conduct(
        ready: PreparedCosched,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<CoschedAnswer, JobError> {
        let PreparedCosched { request, mut testbed } = ready;
        for about in testbed.notes() {
            note(events, about)?;
        }
        let known = store.records(info.id)?;
        let mut search = CoschedSearch::new(request.question.clone()).after(known.len());
        let budget = request.budget();
        if let Some(most) = request.question.budget {
            let used = known.last().map_or(Duration::ZERO, |last| last.elapsed);
            testbed.wait_until(Instant::now() + most.saturating_sub(used));
        }
        let measured = measure(store, info, budget, &mut search, &mut testbed, caller, events)?;
        let failure =
            failed_last(&measured.records).filter(|_| measured.ending == Ending::Finished);
        let ends: &dyn OpenSubject = &testbed;
        let conclusion = conclude(store, info.id, measured, ends, |records, notes| {
            let ended = programs_ended(records).then_some(ProgramNote::ProgramsEnded);
            let notes = notes.into_iter().chain(ended).collect();
            CoschedConclusion { outcome: request.outcome(records, info), notes }
        })?;
        // Gives each thread its own affinity back.
        drop(testbed);
        if let Some(reason) = failure {
            // The budget is over, so that to resume it would measure nothing.
            let kept = Some(Kept { campaign: info.id, records: store.get(info.id)?.records });
            return Err(JobError::Failed(Failure { reason, kept, remedy: Remedy::AskAgain }));
        }
        CoschedAnswer::new(store.get(info.id)?, request, conclusion)
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<CoschedAnswer, JobError> {
        let request: Self = stored_campaign::question(info)?;
        let conclusion = match stored_campaign::conclusion(info)? {
            Some(concluded) => concluded,
            None => CoschedConclusion {
                outcome: request.outcome(&store.records(info.id)?, info),
                notes: disturbances(store, [info.id])?,
            },
        };
        CoschedAnswer::new(info.clone(), request, conclusion)
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let CoschedOutcome { verdict, gain, .. } =
            CoschedConclusion::deserialize(conclusion).ok()?.outcome;
        Some(Summary::Cosched { verdict, gain: gain.map(|gain| gain.mean) })
    }
}

/// Why the last period failed, if it did. The end of the programs is no failure.
fn failed_last(records: &[Record]) -> Option<String> {
    let error = records.last()?.outcome.as_ref().err()?;
    (!error.expired).then(|| error.message.clone())
}

/// Whether the programs ended before the search did.
fn programs_ended(records: &[Record]) -> bool {
    records.last().and_then(|last| last.outcome.as_ref().err()).is_some_and(|error| error.expired)
}

/// What a co-scheduler would do in some quanta.
#[derive(Debug)]
pub struct CoschedPreview {
    /// The level whose contexts are siblings.
    pub level: DomainKind,
    /// The moves of each quantum.
    pub quanta: Vec<Vec<PreviewedMove>>,
    /// What the moves go by.
    pub basis: PreviewBasis,
    /// How far the counts can be trusted. `None`: nothing was counted.
    pub counters: Option<CounterQuality>,
    /// What would disturb a search.
    pub notes: Vec<ProgramNote>,
}

/// What previewed moves go by.
#[derive(Debug)]
pub enum PreviewBasis {
    /// Counters of each thread.
    Counted,
    /// Threads are dealt at random. In a search the metric judges each split.
    Metric,
    /// Threads are dealt at random, because nothing is counted; why.
    Uncounted(JobError),
}

impl PreviewBasis {
    fn is_counted(&self) -> bool {
        matches!(self, Self::Counted)
    }
}

/// The quanta that a preview counts in, also those whose moves it does not show.
const WATCHED: usize = 40;

/// Longer quanta are watched for this long after those that are shown.
const WATCHED_FOR: Duration = Duration::from_secs(5);

/// A move that a co-scheduler would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedMove {
    /// The thread.
    pub thread: ThreadId,
    /// The name of its program.
    pub program: String,
    /// The context to which it would be kept.
    pub context: usize,
}

/// Decides for some quanta and moves nothing.
///
/// # Errors
/// The programs cannot be used, or fewer than two run.
pub fn preview_cosched(
    request: &CoschedRequest,
    quanta: usize,
    caller: &Caller,
) -> Result<CoschedPreview, JobError> {
    put_back_leftovers();
    let (means, basis) = if request.metric.is_some() {
        (ProgressMeans::Nothing, PreviewBasis::Metric)
    } else {
        match counters(METRIC_INSTEAD) {
            Ok(counters) => (ProgressMeans::Counts(counters), PreviewBasis::Counted),
            Err(error) => (ProgressMeans::Nothing, PreviewBasis::Uncounted(error)),
        }
    };
    let mut testbed = open_running(request, || Ok(means), &caller.interrupt)?;
    let (level, _) = shared_contexts(testbed.machine(), request.level.as_deref())?;
    let moves = match basis {
        PreviewBasis::Counted => ThreadMoves::Counted,
        _ => ThreadMoves::Dealt(request.question.seed),
    };
    let mut shown = Vec::new();
    while shown.len() < quanta && !caller.interrupt.came() {
        let decided = testbed.preview(moves).map_err(coschedule_error)?;
        let of = |(thread, program, context)| PreviewedMove { thread, program, context };
        shown.push(decided.into_iter().map(of).collect());
    }
    if caller.interrupt.came() {
        return Err(JobError::nothing_measured(true));
    }
    // A few quanta do not show how well one predicts the next. Programs may end meanwhile.
    let (mut seen, begin) = (shown.len(), Instant::now());
    while basis.is_counted()
        && seen < WATCHED
        && begin.elapsed() < WATCHED_FOR
        && !caller.interrupt.came()
        && testbed.preview(moves).is_ok()
    {
        seen += 1;
    }
    let (counters, notes) = (testbed.counters(), testbed.notes());
    Ok(CoschedPreview { level, quanta: shown, basis, counters, notes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{Purpose, Trial};
    use pinwise_coscheduling::{CoscheduleObjective, CoscheduleRule};
    use pinwise_measure::{Effort, MeasureError, Measurement, Retry, Setting};

    #[test]
    fn a_budget_that_is_over_before_the_first_verdict_is_refused() {
        let check = |budget, metric: bool| {
            let question = CoschedQuestion {
                objective: CoscheduleObjective::Both,
                counted: !metric,
                rule: CoscheduleRule::Seen,
                quantum: CoschedQuestion::QUANTUM,
                budget,
                confidence: 0.95,
                seed: 1,
            };
            let request = CoschedRequest {
                question,
                subject: Subject::Pids(vec![1, 2]),
                metric: metric.then(|| "cmd:x".to_owned()),
                reading: ReadingOptions::default(),
                level: None,
                cpus: None,
            };
            request.check_budget().map_err(|error| error.to_string())
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let refused = check(seconds(5), true).unwrap_err();
        assert!(refused.starts_with("--budget 5 s: the first verdict takes about 1 min 44 s with"));
        assert_eq!(check(seconds(60), true), Ok(()));
        assert!(check(seconds(19), false).is_err());
        assert_eq!((check(seconds(20), false), check(None, true)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_metric_that_fails_at_last_is_the_reason_and_the_end_of_the_programs_is_none() {
        let period = |outcome| Record {
            number: 0,
            trial: Trial {
                setting: Setting::Unpinned,
                purpose: Purpose::Baseline,
                effort: Effort { windows: 20.0 },
            },
            outcome,
            elapsed: Duration::ZERO,
        };
        let good = || period(Ok(Measurement::new(1.0, Duration::from_secs(1))));
        let gone = || period(Err(MeasureError::new(Retry::Other, "it is gone")));
        let ended = || period(Err(MeasureError::expired("programs ended")));
        assert_eq!(failed_last(&[]), None);
        assert_eq!(failed_last(&[gone(), good()]), None);
        assert_eq!(failed_last(&[good(), gone()]).as_deref(), Some("it is gone"));
        assert_eq!(failed_last(&[gone(), ended()]), None);
        assert!(programs_ended(&[good(), ended()]));
        assert!(!programs_ended(&[ended(), good()]) && !programs_ended(&[gone()]));
    }
}
