//! The answer of `pinwise threads`, as `--json` prints it; docs/reference/json.md describes the
//! fields.

use pinwise_campaign::CampaignId;
use pinwise_jobs::{
    ComparedNumbers, Confirmation, LastComparison, LastComparisonQuestion, ShownProbe,
    ThreadsAnswer, ThreadsOutcome, WatchSummary,
};
use pinwise_linux::{Pid, Tid};
use pinwise_measure::{Measure, MemoryPolicy, RoleTime, Unit};
use pinwise_monitor::{ThreadActivity, Unavailable};
use pinwise_placement::{Estimate, Gain, LastComparisonVerdict, Way};
use pinwise_present::{Files, Unfinished, set_aside_text, tagged_threads_notes, texts};
use pinwise_programs::HalfDifference;
use pinwise_threads::{
    FoundNumber, NumberAdvice, PhaseChange, PublishedQuestion, SearchMethod, ThreadRange,
    Thresholds,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The answer of a search.
#[derive(Serialize)]
pub(crate) struct ThreadsJson {
    /// Where the probes are stored.
    pub(super) campaign: Option<CampaignId>,
    /// How far the campaign is, if it has not ended.
    pub(super) unfinished: Option<Unfinished>,
    /// Where the program's memory was, on a machine with several nodes of memory.
    pub(super) memory: Option<MemoryPolicy>,
    /// What was probed.
    pub(crate) program: String,
    /// On what: `host`, or a model.
    pub(crate) machine: String,
    pub(super) simulated: bool,
    pub(crate) contexts: u32,
    pub(super) method: &'static str,
    /// What fresh windows decided, undecided if there are none. `None`: there was nothing to
    /// compare, or the method announces its own answer.
    pub(super) verdict: Option<VerdictRow>,
    /// What the program should be started with.
    pub(crate) parameter: u32,
    /// The threads that makes.
    pub(crate) threads: u32,
    /// The answer, in a sentence or two.
    #[serde(skip)]
    pub(crate) answer: String,
    /// What the probes show, in a sentence that begins small.
    #[serde(skip)]
    pub(crate) unconfirmed: String,
    /// What the probes show; of the published search, and of a sweep of one round, nothing is
    /// known.
    pub(super) estimate: Option<NumberAdvice>,
    /// Why the search ended: one reason, as a list like that of other searches.
    pub(super) stopped_because: Vec<Value>,
    pub(crate) search_seconds: f64,
    pub(super) probes: Vec<ProbeRow>,
    /// Stored measurements that are no such probes.
    pub(super) set_aside: usize,
    /// Why they are none.
    #[serde(skip)]
    pub(super) aside: String,
    /// What `probes[].performance` is counted in.
    pub(super) unit: Option<Unit>,
    pub(super) span: SpanRow,
    pub(super) probe_seconds: f64,
    /// The thresholds of the published search.
    pub(super) thresholds: Option<Thresholds>,
    pub(super) monitor: Option<MonitorRow>,
    /// Share of the contexts' time that other programs took during the probes, if it is worth a
    /// word.
    pub(super) others: Option<f64>,
    /// The program came into another phase between two probes.
    pub(super) shift: Option<PhaseChange>,
    pub(crate) notes: Vec<Value>,
    /// Against the full sweep, if one is known.
    pub(super) loss: Option<f64>,
}

/// What fresh windows decided.
#[derive(Serialize)]
pub(super) struct VerdictRow {
    pub(super) kind: LastComparisonVerdict,
    pub(super) text: String,
    /// The number that was compared with the program's own.
    n: u32,
    /// The program's own.
    default: Option<u32>,
    /// The gain of that number over the program's own, with its interval.
    gain: Option<Gain>,
    confidence: f64,
    /// Fresh windows of each number.
    pub(super) rounds: usize,
    /// What they show of each number.
    ways: Vec<Value>,
    /// Share of the contexts' time that other programs took meanwhile, if it is worth a word.
    others: Option<f64>,
}

impl VerdictRow {
    fn of(shown: &Confirmation) -> Self {
        let Confirmation { compared, comparison, choice, .. } = shown;
        let rounds = &comparison.rounds;
        Self {
            kind: *choice,
            text: shown.verdict().text(),
            n: compared.n,
            default: compared.default,
            gain: rounds.gain(Way::Number, Way::Default),
            confidence: rounds.confidence(),
            rounds: rounds.count(),
            ways: ways(comparison, compared),
            others: comparison.others(),
        }
    }

    /// Of a search whose number was compared with none.
    fn uncompared(n: u32, text: String) -> Self {
        let (gain, default, ways, others) = (None, None, Vec::new(), None);
        let (kind, confidence) = (LastComparisonVerdict::Undecided, Confirmation::CONFIDENCE);
        Self { kind, text, n, default, gain, confidence, rounds: 0, ways, others }
    }
}

/// The ways of a last comparison: the mean of each, and its number.
pub(crate) fn ways(shown: &LastComparison, compared: &LastComparisonQuestion) -> Vec<Value> {
    let LastComparison { rounds, unit, .. } = shown;
    let way = |&way: &Way| {
        let estimate = rounds.estimate(way);
        let mut row = estimate.map_or_else(|| json!({}), |estimate| performance(&estimate, unit));
        row["way"] = json!(way);
        row["parameter"] = json!(compared.number(way));
        row
    };
    rounds.ways().iter().map(way).collect()
}

/// The mean of several windows, with its interval.
pub(crate) fn performance(estimate: &Estimate, unit: &Unit) -> Value {
    let [low, high] = unit.interval(estimate.low, estimate.high);
    json!({"performance": unit.quantity(estimate.mean), "low": low, "high": high, "n": estimate.n})
}

#[derive(Serialize)]
pub(super) struct SpanRow {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) step: u32,
}

/// One probe.
#[derive(Serialize)]
pub(crate) struct ProbeRow {
    pub(super) parameter: u32,
    pub(super) threads: u32,
    pub(super) lock: f64,
    pub(super) vcx_rate: f64,
    pub(super) migr_rate: f64,
    pub(super) cpu_util: f64,
    pub(super) performance: Option<f64>,
    /// Its standard error.
    pub(super) error: Option<f64>,
    pub(super) measure: Option<Measure>,
    pub(super) seconds: f64,
    pub(super) roles: Vec<RoleTime>,
    /// On this machine only.
    #[serde(flatten)]
    pub(super) seen: Option<SeenRow>,
}

/// What only a real probe has.
#[derive(Serialize)]
pub(super) struct SeenRow {
    pub(super) initialization_seconds: f64,
    pub(super) drift: Option<HalfDifference>,
    /// The power of the processor, if it was asked for.
    pub(super) watts: Option<f64>,
    /// Each thread that was seen in the window.
    pub(super) individuals: Vec<ThreadRow>,
}

/// One thread: shares of the time it was watched, as a role has them, and events per second of it.
#[derive(Serialize)]
pub(super) struct ThreadRow {
    pid: Pid,
    tid: Tid,
    name: String,
    ran: f64,
    waited: f64,
    /// `None`: may not be seen, and is part of `slept`.
    locked: Option<f64>,
    slept: f64,
    voluntary_rate: f64,
    involuntary_rate: f64,
    migration_rate: Option<f64>,
}

impl From<&ThreadActivity> for ThreadRow {
    fn from(thread: &ThreadActivity) -> Self {
        let elapsed = thread.elapsed.as_secs_f64();
        let per_second = |amount: f64| if elapsed > 0.0 { amount / elapsed } else { 0.0 };
        let share = |time: Duration| per_second(time.as_secs_f64());
        Self {
            pid: thread.id.pid,
            tid: thread.id.tid,
            name: thread.comm.clone(),
            ran: share(thread.ran),
            waited: share(thread.waited),
            locked: thread.locked.map(share),
            slept: share(thread.slept.saturating_sub(thread.locked.unwrap_or_default())),
            voluntary_rate: per_second(thread.voluntary as f64),
            involuntary_rate: per_second(thread.involuntary as f64),
            migration_rate: thread.migrations.map(|migrations| per_second(migrations as f64)),
        }
    }
}

/// How the threads were watched.
#[derive(Serialize)]
pub(super) struct MonitorRow {
    pub(super) layer: &'static str,
    pub(super) gives: &'static str,
    pub(super) lacks: &'static str,
    /// Better ones, and why they cannot be used.
    pub(super) refused: Vec<RefusedRow>,
    /// CPU time of watching relative to the program's own, over the probes by that layer.
    pub(super) overhead: Option<f64>,
    /// From one look at the threads to the next, in seconds, the longest of all probes. Given if
    /// looks cost too much to make them every 10 ms.
    pub(super) stretched: Option<f64>,
    /// Records that were dropped.
    pub(super) lost: u64,
}

/// A way to watch that cannot be used.
#[derive(Serialize)]
pub(super) struct RefusedRow {
    #[serde(flatten)]
    pub(super) values: Unavailable,
    /// Why, in words.
    pub(super) reason: String,
    /// What to do about it.
    pub(super) remedy: &'static str,
}

impl MonitorRow {
    fn of(watched: &WatchSummary<'_>) -> Self {
        let WatchSummary { layer, refused, overhead, stretched, lost } = watched;
        let refused = refused.iter().map(|better| RefusedRow {
            reason: better.reason(),
            remedy: better.remedy(),
            values: better.clone(),
        });
        Self {
            layer: layer.name(),
            gives: layer.gives(),
            lacks: layer.lacks(),
            refused: refused.collect(),
            overhead: *overhead,
            stretched: stretched.map(|pace| pace.as_secs_f64()),
            lost: *lost,
        }
    }
}

/// The document of a search without an answer: it failed, or was interrupted.
#[derive(Serialize)]
pub(crate) struct UnfinishedThreadsJson {
    pub(super) campaign: CampaignId,
    unfinished: Option<Unfinished>,
    pub(super) program: String,
    pub(super) machine: String,
    pub(super) contexts: u32,
    pub(super) method: &'static str,
    pub(super) probes: Vec<ProbeRow>,
    pub(super) unit: Option<Unit>,
    /// Why there is no answer.
    pub(super) error: String,
}

impl UnfinishedThreadsJson {
    /// Of a search that ended because of `error`.
    pub(super) fn new(answer: &ThreadsAnswer, error: String, files: Files<'_>) -> Self {
        let outcome = &answer.outcome;
        let request = &outcome.question.request;
        Self {
            campaign: answer.campaign.id,
            unfinished: answer.unfinished(files),
            program: request.name(),
            machine: request.machine().into(),
            contexts: outcome.question.contexts,
            method: request.method.name(),
            probes: rows(&outcome.probes),
            unit: outcome.unit.clone(),
            error,
        }
    }
}

/// The rows of a search's probes.
pub(crate) fn rows(probes: &[ShownProbe]) -> Vec<ProbeRow> {
    let row = |ShownProbe { probe, roles, seen }: &ShownProbe| ProbeRow {
        parameter: probe.parameter,
        threads: probe.threads,
        lock: probe.profile.lock / 100.0,
        vcx_rate: probe.profile.vcx_rate,
        migr_rate: probe.profile.migr_rate,
        cpu_util: probe.profile.cpu_util / 100.0,
        performance: Some(probe.progress.rate),
        error: probe.progress.error,
        measure: Some(probe.progress.measure),
        seconds: probe.cost.as_secs_f64(),
        roles: roles.clone(),
        seen: seen.as_ref().map(|seen| SeenRow {
            initialization_seconds: seen.initialization.as_secs_f64(),
            drift: seen.drift,
            watts: seen.watts,
            individuals: seen.activity.threads.iter().map(ThreadRow::from).collect(),
        }),
    };
    probes.iter().map(row).collect()
}

impl ThreadsJson {
    /// Why the search ended, in a line.
    pub(crate) fn why(&self) -> String {
        texts(&self.stopped_because).concat()
    }

    /// Of a search that found something.
    pub(crate) fn new(
        outcome: &ThreadsOutcome,
        found: &FoundNumber,
        confirmation: Option<&Confirmation>,
        campaign: Option<CampaignId>,
    ) -> Self {
        let question = &outcome.question;
        let request = &question.request;
        let ThreadRange { min, max, step } = question.range;
        let parameter = outcome.number(confirmation).unwrap_or(found.parameter);
        // What fresh windows announce may have had no probe.
        let threads =
            outcome.threads_of(parameter).or_else(|| question.threads_with(parameter).ok());
        let thresholds = match &question.search.method {
            SearchMethod::Reinforcer(PublishedQuestion { thresholds, .. }) => Some(*thresholds),
            SearchMethod::Survey(_) | SearchMethod::Sweep(_) => None,
        };
        let answer = outcome.answer(found, confirmation, None).text();
        let fresh = confirmation.map_or_else(Vec::new, Confirmation::notes);
        let verdict = match confirmation {
            Some(shown) => Some(VerdictRow::of(shown)),
            None if outcome.uncompared => {
                Some(VerdictRow::uncompared(found.parameter, answer.clone()))
            }
            None => None,
        };
        Self {
            campaign,
            unfinished: None,
            memory: None,
            program: request.name(),
            simulated: request.machine() != "host",
            machine: request.machine().into(),
            contexts: question.contexts,
            method: request.method.name(),
            verdict,
            answer,
            parameter,
            threads: threads.unwrap_or(found.threads),
            unconfirmed: String::new(),
            estimate: None,
            stopped_because: Vec::new(),
            search_seconds: outcome.time.as_secs_f64(),
            probes: rows(&outcome.probes),
            set_aside: outcome.set_aside.total(),
            aside: set_aside_text(outcome.set_aside),
            unit: outcome.unit.clone(),
            span: SpanRow { min, max, step },
            probe_seconds: outcome.window.as_secs_f64(),
            thresholds,
            monitor: outcome.watched().as_ref().map(MonitorRow::of),
            others: outcome.others,
            shift: found.phase_change,
            notes: tagged_threads_notes(&outcome.notes, &fresh),
            loss: found.loss,
        }
        .estimated(outcome, found, confirmation.and_then(Confirmation::compared_numbers))
    }

    /// With the estimate of the probes, and what fresh windows `compared` from there.
    pub(crate) fn estimated(
        self,
        outcome: &ThreadsOutcome,
        found: &FoundNumber,
        compared: Option<ComparedNumbers>,
    ) -> Self {
        let stopped = outcome.stopped(found, compared.is_some()).tagged();
        Self {
            unconfirmed: outcome.estimate(found, compared).unconfirmed(),
            estimate: outcome.advice(found, compared),
            stopped_because: vec![stopped],
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::{StartTime, ThreadId};

    fn thread(elapsed: u64, locked: Option<u64>) -> ThreadActivity {
        let part = |share: u64| Duration::from_millis(elapsed * share / 10);
        ThreadActivity {
            id: ThreadId { pid: Pid(7), tid: Tid(9), start: StartTime(0) },
            comm: "worker".into(),
            elapsed: Duration::from_millis(elapsed),
            ran: part(4),
            waited: part(1),
            slept: part(5),
            locked: locked.map(part),
            looks: 0,
            voluntary: 30,
            involuntary: 20,
            migrations: None,
            cpu: None,
        }
    }

    #[test]
    fn a_thread_s_time_is_divided_without_counting_locks_twice() {
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
        let seen = ThreadRow::from(&thread(200, Some(2)));
        near(seen.ran + seen.waited + seen.slept + seen.locked.unwrap(), 1.0);
        near(seen.slept, 0.3);
        near(seen.voluntary_rate, 150.0);
        near(seen.involuntary_rate, 100.0);
        let unseen = ThreadRow::from(&thread(200, None));
        assert_eq!((unseen.locked, unseen.migration_rate), (None, None));
        near(unseen.slept, 0.5);
    }

    #[test]
    fn a_thread_that_was_not_watched_has_no_shares() {
        let seen = ThreadRow::from(&thread(0, Some(0)));
        assert_eq!((seen.ran, seen.locked, seen.voluntary_rate), (0.0, Some(0.0), 0.0));
    }
}
