//! A search as the strategy of a campaign: what is probed next, and the answer, both from the
//! records.
//!
//! [`NumberSearch`] is the question. [`Searcher`] proposes one probe after another. The campaign
//! measures and records it. [`NumberSearch::answer`] computes the answer from the question and the
//! records alone. So a campaign that was killed goes on as it would have. Its answer needs no
//! program.
//!
//! **Stages.** What a probe measures may change during a search, because only probes show what the
//! program is like ([`ProbeStage`]). A program that ends soon is measured by whole runs. The
//! testbed of a campaign is opened for one stage; the strategy stops where the next one begins.
//!
//! **Empty probes.** A probe of a survey in which nothing got done is repeated, longer, three times
//! at most. It is a record like any other, and no attempt.
//!
//! **Closing probe.** Where all probes are of one run of the program, the first number is probed
//! once more at the end. The two probes show whether the program came into another phase meanwhile
//! ([`PhaseChange`]).

use crate::{
    Advice, Ended, Next, Objective, PhaseChange, Reason, Reinforcer, ReinforcerChoice,
    SpeedQuestion, SpeedSample, SpeedSearch, SpeedSearchStep, Sweep, Swept, ThreadRange,
    Thresholds,
};
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial};
use pinwise_measure::{
    Effort, Measure, MeasureError, Measurement, Probe, Probed, Progress, Retry, Setting,
    ThreadCount,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A program that ends within this time is measured by whole runs.
const SHORT: Duration = Duration::from_secs(5);
/// And where the time has room for so many of its runs.
const FEWEST_RUNS: u32 = 6;
/// A probe in which nothing got done is repeated so often, each time this many times longer.
const REPEATS: u32 = 3;
const LONGER: f64 = 4.0;
/// A probe has several runs if the time has room for some such probes.
const SEVERAL_RUNS: f64 = 3.0;
const SOME_PROBES: f64 = 10.0;

/// What is searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberSearch {
    /// How.
    pub method: Method,
    /// The ordinary length of a probe, which is one window of an [`Effort`].
    pub window: Duration,
    /// What is maximised.
    pub objective: Objective,
    /// When a probe is a whole run.
    pub runs: Runs,
    /// All probes are of one run of the program. At the end the first number is probed again.
    pub goes_on: bool,
}

/// How the number is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// By how fast the program gets on ([`SpeedSearch`]).
    Survey(SpeedQuestion),
    /// The published search ([`Reinforcer`]).
    Reinforcer(Published),
    /// Every number.
    Sweep(Sweep),
}

/// What the published search is asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The numbers.
    pub span: ThreadRange,
    /// Contexts the program may use (NumCores).
    pub contexts: u32,
    /// What counts as high.
    pub thresholds: Thresholds,
}

/// When a probe is a whole run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// Never: a metric is read while the program runs, or the program goes on.
    Never,
    /// Where the program ends soon.
    WhereShort,
    /// Always.
    Always,
}

/// What probes measure. The stages of a search follow each other in this order; a search need not
/// have all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeStage {
    /// One whole run, which shows how long runs take.
    #[serde(rename = "trial")]
    Timing,
    /// Moments of a run.
    Moments,
    /// Whole runs.
    Runs,
}

/// One probe of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// T: what the search asked for.
    pub asked: u32,
    /// What came of it. Its progress is the value that is maximised.
    pub probe: Probe,
}

/// What a search found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundNumber {
    /// The number that was chosen, as the search counts threads.
    pub chosen: u32,
    /// The parameter it stands for.
    pub parameter: u32,
    /// The threads that makes.
    pub threads: u32,
    /// How sure that is, in numbers as the search counts them. `None`: the published search and a
    /// sweep of a single round do not show.
    pub advice: Option<Advice>,
    /// Why the search ended.
    pub stopped: Stopped,
    /// Share of the best speed that the choice loses, where every number was tried.
    pub loss: Option<f64>,
    /// All probes of the last stage, in order, the closing probe included.
    pub attempts: Vec<Attempt>,
    /// The program came into another phase between two of them.
    pub phase_change: Option<PhaseChange>,
    /// Why the closing probe failed, where it did.
    pub unchecked: Option<String>,
}

impl FoundNumber {
    /// Time that the probes took.
    pub fn cost(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.probe.cost).sum()
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stopped {
    /// What the choice may still lose is small enough, and all that is to be probed twice was.
    Settled,
    /// The next probe would have been one too many.
    Probes,
    /// There was no time left for another probe.
    Time {
        /// The parameter of the probe that was broken off when the time was over.
        broken_off: Option<u32>,
    },
    /// Every number was tried as often as was asked for.
    AllTried {
        /// Numbers that were tried.
        numbers: u32,
        /// How often each.
        rounds: u32,
    },
    /// More threads kept hardly more contexts busy.
    CpuUtil {
        /// The parameter that was tried last.
        last: u32,
    },
    /// Waiting for locks was high and rose fast.
    Lock {
        /// The parameter that was tried last.
        last: u32,
    },
    /// Waiting for locks was high and voluntary switches rose fast.
    VcxRate {
        /// The parameter that was tried last.
        last: u32,
    },
    /// Waiting for locks was high and migrations rose fast.
    MigrRate {
        /// The parameter that was tried last.
        last: u32,
    },
    /// There was nothing left to try.
    MostThreads {
        /// The parameter that was tried last.
        last: u32,
    },
}

impl Stopped {
    /// In one word: `SETTLED`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Settled => "SETTLED",
            Self::Probes => "PROBES",
            Self::Time { .. } => "TIME",
            Self::AllTried { .. } => "ALL_TRIED",
            Self::CpuUtil { .. } => "CPU_UTIL",
            Self::Lock { .. } => "LOCK",
            Self::VcxRate { .. } => "VCX_RATE",
            Self::MigrRate { .. } => "MIGR_RATE",
            Self::MostThreads { .. } => "MOST_THREADS",
        }
    }

    fn published(reason: Reason, last: u32) -> Self {
        match reason {
            Reason::CpuUtil => Self::CpuUtil { last },
            Reason::Lock => Self::Lock { last },
            Reason::VcxRate => Self::VcxRate { last },
            Reason::MigrRate => Self::MigrRate { last },
            Reason::MostThreads => Self::MostThreads { last },
        }
    }
}

/// A search without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfound {
    /// The probes of its last stage, in order.
    pub attempts: Vec<Attempt>,
    /// Why no answer can come of them. `None`: the search has not ended.
    pub why: Option<String>,
}

/// What the records of a search show about how the program is probed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progressed {
    /// The stage that the search is at.
    pub stage: ProbeStage,
    /// The number of the first record of that stage.
    pub first: usize,
    /// How long a run took in the trial.
    pub run: Option<Duration>,
    /// The program ended by itself within a probe of a moment.
    pub short: bool,
    /// The length of an ordinary probe at that stage.
    pub window: Duration,
}

impl NumberSearch {
    /// The answer that the records give. `convert` is the program's Convert(): from a number of
    /// threads to its parameter.
    pub fn answer(
        &self,
        convert: &dyn Fn(u32) -> u32,
        records: &[Record],
    ) -> Result<FoundNumber, Unfound> {
        self.state(convert, records).answer()
    }

    /// Whether a measurement is no attempt, since nothing got done in it. Only a survey, which
    /// compares speeds by their ratio, repeats such a probe.
    pub fn shows_nothing(&self, measurement: &Measurement) -> bool {
        matches!(self.method, Method::Survey(_)) && measurement.performance <= 0.0
    }

    /// How far the search has come.
    pub fn progressed(&self, convert: &dyn Fn(u32) -> u32, records: &[Record]) -> Progressed {
        self.state(convert, records).progressed
    }

    /// How long a run may take at `stage`, where it may take `limit` in general. The trial of a
    /// program that need not end is broken off soon.
    pub fn limit(&self, stage: ProbeStage, limit: Duration) -> Duration {
        match (stage, &self.method) {
            (ProbeStage::Timing, Method::Survey(question)) if self.runs == Runs::WhereShort => {
                SHORT.min(question.most_time.map_or(SHORT, |most| most / FEWEST_RUNS))
            }
            _ => limit,
        }
    }

    fn state<'a>(&'a self, convert: &'a dyn Fn(u32) -> u32, records: &[Record]) -> State<'a> {
        let mut state = State::new(self, convert);
        records.iter().for_each(|record| state.take(record));
        state
    }

    /// What is maximised, of a probe. Error: the objective needs the power of the processor, which
    /// is not known.
    pub fn value(&self, probed: &Probed) -> Result<f64, MeasureError> {
        self.valued(probed).map(|progress| progress.rate)
    }

    /// Progress as the value that is maximised.
    fn valued(&self, probed: &Probed) -> Result<Progress, MeasureError> {
        let progress = probed.probe.progress;
        let unknown = || MeasureError::new(Retry::Never, "the power of the processor is not known");
        let rate = self.objective.value(progress.rate, probed.watts).ok_or_else(unknown)?;
        let error = progress.error.map(|error| self.objective.error(error / progress.rate) * rate);
        Ok(Progress { rate, error, ..progress })
    }
}

/// Proposes the probes of a search.
pub struct Searcher<'a> {
    state: State<'a>,
    /// The records that the state knows.
    taken: usize,
    /// The stage that the testbed is opened for.
    stage: ProbeStage,
}

impl<'a> Searcher<'a> {
    /// The strategy of a campaign that has these records by now. Its testbed is to be opened for
    /// the stage that [`Searcher::stage`] says. `convert` is the program's Convert().
    pub fn new(
        search: &'a NumberSearch,
        convert: &'a dyn Fn(u32) -> u32,
        records: &[Record],
    ) -> Self {
        let stage = search.progressed(convert, records).stage;
        Self { state: State::new(search, convert), taken: 0, stage }
    }

    /// The stage that the testbed has to be opened for.
    pub fn stage(&self) -> ProbeStage {
        self.stage
    }

    /// The strategy stopped because the next stage begins: open the testbed for that one, and go
    /// on with a new searcher.
    pub fn is_next_stage(&self) -> bool {
        self.state.progressed.stage > self.stage
    }
}

impl Strategy for Searcher<'_> {
    fn step(&mut self, history: &[Record]) -> Step {
        history[self.taken..].iter().for_each(|record| self.state.take(record));
        self.taken = history.len();
        if self.is_next_stage() {
            return Step::Stop;
        }
        self.state.next()
    }
}

/// A search after some records.
struct State<'a> {
    search: &'a NumberSearch,
    convert: &'a dyn Fn(u32) -> u32,
    progressed: Progressed,
    /// Records so far.
    records: usize,
    /// What runs show is how long they took.
    timed: bool,
    state: MethodState,
    attempts: Vec<Attempt>,
    /// The choice, once there is one.
    chosen: Option<Chosen>,
    closing: Closing,
    /// Why no answer can come of it.
    failed: Option<String>,
    /// Why the last try failed, which another one may mend.
    tried: Option<String>,
    /// Probes since the last attempt in which nothing got done, and what they took.
    idle: (u32, Duration),
}

/// How far the search of a [`Method`] has come.
enum MethodState {
    Survey(Box<SpeedSearch>),
    Reinforcer(Reinforcer),
    Sweep,
}

struct Chosen {
    number: u32,
    advice: Option<Advice>,
    stopped: Stopped,
    loss: Option<f64>,
}

/// The probe that holds the first number against itself.
enum Closing {
    /// There is none, or it was made.
    Done,
    Wanted,
    Failed(String),
}

fn probe(parameter: u32, windows: f64) -> Step {
    Step::Measure(Trial {
        setting: Setting::Threads(ThreadCount { n: Some(parameter), placed: None }),
        purpose: Purpose::Probe,
        effort: Effort { windows },
    })
}

impl<'a> State<'a> {
    fn new(search: &'a NumberSearch, convert: &'a dyn Fn(u32) -> u32) -> Self {
        let stage = match (&search.method, search.runs) {
            (Method::Survey(_), Runs::WhereShort | Runs::Always) => ProbeStage::Timing,
            (_, Runs::Never | Runs::WhereShort) => ProbeStage::Moments,
            (_, Runs::Always) => ProbeStage::Runs,
        };
        let progressed =
            Progressed { stage, first: 0, run: None, short: false, window: search.window };
        let mut state = Self {
            search,
            convert,
            progressed,
            records: 0,
            timed: true,
            state: MethodState::Sweep,
            attempts: Vec::new(),
            chosen: None,
            closing: if search.goes_on { Closing::Wanted } else { Closing::Done },
            failed: None,
            tried: None,
            idle: (0, Duration::ZERO),
        };
        state.begin(stage, Duration::ZERO);
        state
    }

    /// Begins a stage after `spent`.
    fn begin(&mut self, stage: ProbeStage, spent: Duration) {
        self.attempts.clear();
        (self.progressed.stage, self.progressed.first) = (stage, self.records);
        let state = match &self.search.method {
            Method::Survey(question) => SpeedSearch::new(SpeedQuestion {
                window: self.progressed.window,
                most_time: question.most_time.map(|most| most.saturating_sub(spent)),
                whole_runs: stage == ProbeStage::Runs && self.timed,
                ..question.clone()
            })
            .map(|surveyor| MethodState::Survey(Box::new(surveyor)))
            .map_err(|error| error.to_string()),
            Method::Reinforcer(Published { span, contexts, thresholds }) => {
                Reinforcer::new(*span, *contexts, *thresholds)
                    .map(MethodState::Reinforcer)
                    .map_err(|error| error.to_string())
            }
            Method::Sweep(sweep) if sweep.candidates.is_empty() => {
                Err("there are no numbers of threads to try".into())
            }
            Method::Sweep(_) => Ok(MethodState::Sweep),
        };
        match state {
            Ok(state) => self.state = state,
            Err(reason) => self.failed = Some(reason),
        }
        self.look_for_end();
    }

    fn take(&mut self, record: &Record) {
        self.records += 1;
        self.tried = None;
        match &record.outcome {
            Err(error) if error.retry == Retry::Same => self.tried = Some(error.message.clone()),
            outcome if self.chosen.is_some() => self.close(outcome.as_ref()),
            outcome if self.progressed.stage == ProbeStage::Timing => {
                self.learn_length(outcome.as_ref(), record.elapsed);
            }
            Ok(measurement) if self.is_repeated(measurement) => {}
            Ok(measurement) => {
                if let Err(reason) = self.observe(measurement) {
                    self.failed = Some(reason.to_string());
                }
            }
            Err(error) if error.expired => self.expire(error),
            // What another way to measure mends: the program ended by itself.
            Err(_)
                if self.progressed.stage == ProbeStage::Moments
                    && self.search.runs == Runs::WhereShort =>
            {
                self.progressed.short = true;
                self.begin(ProbeStage::Runs, record.elapsed);
            }
            Err(error) => self.failed = Some(error.message.clone()),
        }
    }

    /// Takes the trial, which shows whether whole runs are worth it: where some fit into the time.
    fn learn_length(&mut self, outcome: Result<&Measurement, &MeasureError>, spent: Duration) {
        let probed = match outcome.map(Probed::of) {
            Ok(Ok(probed)) => probed,
            Err(error) if !error.expired && self.search.runs == Runs::WhereShort => {
                return self.begin(ProbeStage::Moments, spent);
            }
            Ok(Err(error)) => return self.failed = Some(error.message),
            Err(error) => return self.failed = Some(error.message.clone()),
        };
        let Probe { progress, cost, .. } = probed.probe;
        self.timed = progress.measure == Measure::Runs;
        // A number that a run prints does not show how long the run took.
        let seconds = if self.timed { 1.0 / progress.rate } else { cost.as_secs_f64() };
        let Ok(run) = Duration::try_from_secs_f64(seconds) else {
            return self.failed = Some("a run took no time".into());
        };
        let most_time = match &self.search.method {
            Method::Survey(question) => question.most_time,
            _ => None,
        };
        // A single run does not show how far it may be off; several do, where the time allows.
        let affordable =
            most_time.map_or(f64::INFINITY, |most| most.as_secs_f64() / (seconds * SOME_PROBES));
        let several = run.mul_f64(affordable.floor().clamp(1.0, SEVERAL_RUNS));
        self.progressed.run = Some(run);
        self.progressed.window = self.search.window.max(several);
        self.begin(ProbeStage::Runs, spent);
    }

    /// Passes over a probe of a survey in which nothing got done, if it is repeated: the program
    /// may have been between two pieces of its work.
    fn is_repeated(&mut self, measurement: &Measurement) -> bool {
        let (probes, time) = self.idle;
        if !self.search.shows_nothing(measurement) || probes == REPEATS {
            return false;
        }
        let cost = Probed::of(measurement).map_or(Duration::ZERO, |probed| probed.probe.cost);
        self.idle = (probes + 1, time + cost);
        true
    }

    fn observe(&mut self, measurement: &Measurement) -> Result<(), MeasureError> {
        let Some((asked, _)) = self.asks() else { return Ok(()) };
        let attempt = self.attempt(asked, measurement)?;
        self.attempts.push(attempt);
        let (_, idle) = std::mem::take(&mut self.idle);
        let Probe { profile, progress, cost, threads, .. } = attempt.probe;
        let cost = cost + idle;
        match &mut self.state {
            MethodState::Survey(surveyor) => {
                let sample =
                    SpeedSample { value: progress.rate, error: progress.error, cost, threads };
                let never = |error: crate::SpeedSearchError| {
                    MeasureError::new(Retry::Never, error.to_string())
                };
                surveyor.observe(sample).map_err(never)?;
            }
            MethodState::Reinforcer(reinforcer) => {
                reinforcer.observe(profile);
            }
            MethodState::Sweep => {}
        }
        self.look_for_end();
        Ok(())
    }

    /// A probe with what it is worth. Error: it measures speed by something else than those before,
    /// such as CPU time because instructions could not be read this time. Such speeds do not
    /// compare.
    fn attempt(&self, asked: u32, measurement: &Measurement) -> Result<Attempt, MeasureError> {
        let probed = Probed::of(measurement)?;
        let probe = Probe { progress: self.search.valued(&probed)?, ..probed.probe };
        let own = probe.progress.measure;
        // The published search compares no speeds.
        let compared = !matches!(self.state, MethodState::Reinforcer(_));
        match self.attempts.first().map(|first| first.probe.progress.measure) {
            Some(first) if compared && first != own => Err(MeasureError::new(
                Retry::Never,
                format!(
                    "with {} threads its speed was measured by {own}, before by {first}, and these \
                     do not compare: run the search again, or name a --metric",
                    probe.threads
                ),
            )),
            _ => Ok(Attempt { asked, probe }),
        }
    }

    /// What the search asks for: a number, and for how long it is watched. `None` after its end.
    fn asks(&self) -> Option<(u32, Duration)> {
        let window = self.progressed.window;
        match (&self.state, &self.search.method) {
            (MethodState::Survey(surveyor), _) => match surveyor.next() {
                SpeedSearchStep::Probe { threads, window } => Some((*threads, *window)),
                SpeedSearchStep::Stop(_) => None,
            },
            (MethodState::Reinforcer(reinforcer), _) => match reinforcer.next() {
                Next::Try(asked) => Some((asked, window)),
                Next::Stop(_) => None,
            },
            (MethodState::Sweep, Method::Sweep(sweep)) => {
                sweep.next(self.attempts.len()).map(|asked| (asked, window))
            }
            (MethodState::Sweep, _) => None,
        }
    }

    /// Notes the choice, once the search has ended.
    fn look_for_end(&mut self) {
        let convert = self.convert;
        let last = self.attempts.last().copied();
        let parameter = last.map_or(0, |last| last.probe.parameter);
        self.chosen = match (&mut self.state, &self.search.method) {
            (MethodState::Survey(surveyor), _) => match surveyor.next() {
                SpeedSearchStep::Probe { .. } => None,
                SpeedSearchStep::Stop(advice) => Some(Chosen::by_survey(advice.clone(), None)),
            },
            (MethodState::Reinforcer(search), _) => loop {
                match search.next() {
                    // A probe of the same program once more would show no parallelism.
                    Next::Try(asked)
                        if last.is_some_and(|last| convert(last.asked) == convert(asked)) =>
                    {
                        search.pass();
                    }
                    Next::Try(_) => break None,
                    Next::Stop(ReinforcerChoice { threads, reason }) => {
                        let stopped = Stopped::published(reason, parameter);
                        let (advice, loss) = (None, None);
                        break Some(Chosen { number: threads, advice, stopped, loss });
                    }
                }
            },
            (MethodState::Sweep, Method::Sweep(sweep)) => {
                sweep.swept(&self.attempts).map(|swept| {
                    let loss = swept.loss(swept.threads);
                    let Swept { threads: number, advice, .. } = swept;
                    let (numbers, rounds) = (sweep.candidates.len() as u32, sweep.rounds);
                    let stopped = Stopped::AllTried { numbers, rounds };
                    Chosen { number, advice, stopped, loss }
                })
            }
            (MethodState::Sweep, _) => None,
        };
    }

    /// The time was over before a probe was.
    fn expire(&mut self, error: &MeasureError) {
        let broken_off = self.asks().map(|(asked, _)| (self.convert)(asked));
        let advice = match &self.state {
            MethodState::Survey(surveyor) => surveyor.expired(),
            _ => None,
        };
        match advice {
            Some(advice) => {
                self.chosen = Some(Chosen::by_survey(advice, broken_off));
                // There is no time for another probe either.
                self.closing = Closing::Done;
            }
            None => self.failed = Some(error.message.clone()),
        }
    }

    /// Takes the closing probe.
    fn close(&mut self, outcome: Result<&Measurement, &MeasureError>) {
        let first = self.attempts.first().map_or(0, |first| first.asked);
        let attempt = match outcome {
            Ok(measurement) => self.attempt(first, measurement),
            Err(error) => Err(error.clone()),
        };
        self.closing = Closing::Done;
        match attempt {
            Ok(attempt) => self.attempts.push(attempt),
            // There is an answer, and only no time to hold it against anything.
            Err(error) if error.expired => {}
            Err(error) => self.closing = Closing::Failed(error.message),
        }
    }

    fn next(&self) -> Step {
        if let Some(reason) = &self.failed {
            return Step::Fail(reason.clone());
        }
        let base = self.search.window.as_secs_f64().max(1e-9);
        match (&self.chosen, &self.closing, &self.tried) {
            (Some(_), Closing::Wanted, None) => {
                let parameter = self.attempts.first().map_or(1, |first| first.probe.parameter);
                let windows = self.progressed.window.as_secs_f64() / base;
                return probe(parameter, windows);
            }
            (Some(_), ..) => return Step::Stop,
            (None, _, Some(reason)) => return Step::Fail(reason.clone()),
            (None, _, None) => {}
        }
        match self.asks() {
            Some((asked, window)) => {
                let timing = self.progressed.stage == ProbeStage::Timing;
                let longer = LONGER.powi(self.idle.0.cast_signed());
                let windows = if timing { 0.0 } else { window.as_secs_f64() / base * longer };
                probe((self.convert)(asked), windows)
            }
            None => Step::Fail("the search ended without a choice".into()),
        }
    }

    fn answer(self) -> Result<FoundNumber, Unfound> {
        let (attempts, why) = (self.attempts, self.failed.or(self.tried));
        let Some(Chosen { number, advice, stopped, loss }) = self.chosen else {
            return Err(Unfound { attempts, why });
        };
        let seen = attempts.iter().find(|attempt| attempt.asked == number);
        Ok(FoundNumber {
            chosen: number,
            parameter: (self.convert)(number),
            threads: seen.map_or(number, |attempt| attempt.probe.threads),
            advice,
            stopped,
            loss,
            phase_change: PhaseChange::of(&attempts),
            attempts,
            unchecked: match self.closing {
                Closing::Failed(why) => Some(why),
                Closing::Done | Closing::Wanted => why,
            },
        })
    }
}

impl Chosen {
    fn by_survey(advice: Advice, broken_off: Option<u32>) -> Self {
        let stopped = match advice.ended {
            Ended::Settled => Stopped::Settled,
            Ended::Probes | Ended::AllTried => Stopped::Probes,
            Ended::Time => Stopped::Time { broken_off },
        };
        Self { number: advice.threads, advice: Some(advice), stopped, loss: None }
    }
}

#[cfg(test)]
mod tests;
