//! [`SearchState`]: a search for a number after some records. What is probed next, and the answer,
//! follow from it.

use super::probe_judge::{ProbeDoubt, ProbeJudge, error_of_starved};
use super::{
    FoundNumber, NumberQuestion, NumberSearchEnd, NumberSearchError, ProbeStage, PublishedQuestion,
    SearchMethod, SearchPosition, Unfound, WholeRuns,
};
use crate::{
    Attempt, Jump, NumberAdvice, PhaseChange, Reinforcer, ReinforcerChoice, ReinforcerStep,
    SetAside, SpeedQuestion, SpeedSample, SpeedSearch, SpeedSearchEnd, SpeedSearchError,
    SpeedSearchStep, SweepResult,
};
use pinwise_campaign::{Purpose, Record, Step, Trial, TrialRounds};
use pinwise_measure::{
    Effort, Measure, MeasureError, Measurement, Probe, Probed, Retry, Setting, ThreadCount,
};
use std::time::Duration;

/// A probe has several runs if the time has room for some such probes.
const SEVERAL_RUNS: f64 = 3.0;
const SOME_PROBES: f64 = 10.0;

/// A search after some records.
pub(super) struct SearchState<'a> {
    search: &'a NumberQuestion,
    convert: &'a dyn Fn(u32) -> u32,
    pub(super) progressed: SearchPosition,
    /// Records so far.
    records: usize,
    /// Runs show only how long they took.
    timed: bool,
    state: MethodState,
    attempts: Vec<Attempt>,
    /// The index of the record of each attempt.
    attempted: Vec<usize>,
    /// The other records, without those of earlier stages.
    set_aside: SetAside,
    judge: ProbeJudge,
    /// The choice, once there is one.
    chosen: Option<ChosenNumber>,
    closing: Closing,
    /// Why no answer can come of it.
    failed: Option<NumberSearchError>,
    /// Why the last try failed. Another try may succeed.
    tried: Option<MeasureError>,
}

/// How far the search of a [`SearchMethod`] has come.
enum MethodState {
    Survey(Box<SpeedSearch>),
    Reinforcer(Reinforcer),
    Sweep,
}

struct ChosenNumber {
    number: u32,
    advice: Option<NumberAdvice>,
    stopped: NumberSearchEnd,
    loss: Option<f64>,
}

/// State of the closing probe, which repeats the first number.
enum Closing {
    /// There is none, or it was made.
    Done,
    Wanted,
    Failed(NumberSearchError),
}

fn probe(parameter: u32, windows: f64) -> Trial {
    Trial {
        setting: Setting::Threads(ThreadCount::unpinned(Some(parameter))),
        purpose: Purpose::Other,
        effort: Effort { windows },
    }
}

impl<'a> SearchState<'a> {
    pub(super) fn new(search: &'a NumberQuestion, convert: &'a dyn Fn(u32) -> u32) -> Self {
        let stage = match (&search.method, search.runs) {
            (SearchMethod::Survey(_), WholeRuns::WhereShort | WholeRuns::Always) => {
                ProbeStage::Timing
            }
            (_, WholeRuns::Never | WholeRuns::WhereShort) => ProbeStage::Moments,
            (_, WholeRuns::Always) => ProbeStage::Runs,
        };
        let progressed =
            SearchPosition { stage, first: 0, run: None, short: false, window: search.window };
        let mut state = Self {
            search,
            convert,
            progressed,
            records: 0,
            timed: true,
            state: MethodState::Sweep,
            attempts: Vec::new(),
            attempted: Vec::new(),
            set_aside: SetAside::default(),
            judge: ProbeJudge::new(search.doubts_on),
            chosen: None,
            closing: if search.goes_on { Closing::Wanted } else { Closing::Done },
            failed: None,
            tried: None,
        };
        state.begin(stage, Duration::ZERO);
        state
    }

    /// Begins a stage after `spent`.
    fn begin(&mut self, stage: ProbeStage, spent: Duration) {
        self.attempts.clear();
        self.attempted.clear();
        self.judge.begin();
        (self.progressed.stage, self.progressed.first) = (stage, self.records);
        let state = match &self.search.method {
            SearchMethod::Survey(question) => SpeedSearch::new(SpeedQuestion {
                window: self.progressed.window,
                most_time: question.most_time.map(|most| most.saturating_sub(spent)),
                whole_runs: stage == ProbeStage::Runs && self.timed,
                // A whole run shows what a number does, however many threads it makes.
                counted: question.counted && stage != ProbeStage::Runs,
                ..question.clone()
            })
            .map(|surveyor| MethodState::Survey(Box::new(surveyor)))
            .map_err(NumberSearchError::from),
            SearchMethod::Reinforcer(PublishedQuestion { range, contexts, thresholds }) => {
                Reinforcer::new(*range, *contexts, *thresholds)
                    .map(MethodState::Reinforcer)
                    .map_err(NumberSearchError::from)
            }
            SearchMethod::Sweep(sweep) if sweep.candidates.is_empty() => {
                Err(NumberSearchError::NoNumbers)
            }
            SearchMethod::Sweep(_) => Ok(MethodState::Sweep),
        };
        match state {
            Ok(state) => self.state = state,
            Err(reason) => self.failed = Some(reason),
        }
        self.look_for_end();
    }

    pub(super) fn take(&mut self, record: &Record) {
        self.records += 1;
        self.tried = None;
        let before = self.progressed.stage;
        match &record.outcome {
            Err(error) if error.retry == Retry::Same => self.tried = Some(error.clone()),
            outcome if self.chosen.is_some() => self.close(outcome.as_ref()),
            outcome if self.progressed.stage == ProbeStage::Timing => {
                self.learn_length(outcome.as_ref(), record.elapsed);
            }
            Ok(measurement) => {
                let asked = self.asks().map(|(asked, _)| asked);
                let doubt = self.doubt(measurement, asked);
                match doubt.filter(|_| self.judge.repeats()) {
                    Some(doubt) => self.repeat(measurement, doubt),
                    None => {
                        let observed = self.observe(measurement, doubt);
                        self.failed = observed.err();
                    }
                }
            }
            Err(error) if error.expired => self.expire(error),
            // Another way to measure helps here: the program ended too soon.
            Err(_)
                if self.progressed.stage == ProbeStage::Moments
                    && self.search.runs == WholeRuns::WhereShort =>
            {
                self.progressed.short = true;
                self.begin(ProbeStage::Runs, record.elapsed);
            }
            Err(error) => self.failed = Some(error.clone().into()),
        }
        // A stage that ends with a failure makes all of its records earlier ones.
        if let Err(error) = &record.outcome
            && self.progressed.stage == before
        {
            match error.expired {
                true => self.set_aside.cut_short += 1,
                false => self.set_aside.failed += 1,
            }
        }
    }

    /// Takes the timing run. It shows whether whole runs are worth it: if some fit into the time.
    fn learn_length(&mut self, outcome: Result<&Measurement, &MeasureError>, spent: Duration) {
        let probed = match outcome.map(Probed::of) {
            Ok(Ok(probed)) => probed,
            Err(error) if !error.expired && self.search.runs == WholeRuns::WhereShort => {
                return self.begin(ProbeStage::Moments, spent);
            }
            Ok(Err(error)) => return self.failed = Some(error.into()),
            Err(error) => return self.failed = Some(error.clone().into()),
        };
        let Probe { progress, cost, .. } = probed.probe;
        self.timed = progress.measure == Measure::Runs;
        // A number that a run prints does not show how long the run took.
        let seconds = if self.timed { 1.0 / progress.rate } else { cost.as_secs_f64() };
        let Ok(run) = Duration::try_from_secs_f64(seconds) else {
            return self.failed = Some(NumberSearchError::NoTime);
        };
        let most_time = match &self.search.method {
            SearchMethod::Survey(question) => question.most_time,
            _ => None,
        };
        // A single run does not show how far it may be off; several do, if the time allows.
        let affordable =
            most_time.map_or(f64::INFINITY, |most| most.as_secs_f64() / (seconds * SOME_PROBES));
        let several = run.mul_f64(affordable.floor().clamp(1.0, SEVERAL_RUNS));
        self.progressed.run = Some(run);
        self.progressed.window = self.search.window.max(several);
        self.begin(ProbeStage::Runs, spent);
    }

    /// Passes over a doubtful probe: it is made again.
    fn repeat(&mut self, measurement: &Measurement, doubt: ProbeDoubt) {
        let cost = Probed::of(measurement).map_or(Duration::ZERO, |probed| probed.probe.cost);
        match doubt {
            ProbeDoubt::Idle => self.set_aside.idle += 1,
            ProbeDoubt::Starved(_) => self.set_aside.starved += 1,
            ProbeDoubt::Jumped(_) => self.set_aside.jumped += 1,
        }
        self.judge.repeat(doubt, cost);
    }

    /// Why a probe that asked for this number is doubtful, if it is.
    fn doubt(&mut self, measurement: &Measurement, asked: Option<u32>) -> Option<ProbeDoubt> {
        let doubts = match &self.search.method {
            SearchMethod::Survey(_) => true,
            SearchMethod::Sweep(sweep) => sweep.doubts,
            // It compares no speeds.
            SearchMethod::Reinforcer(_) => false,
        };
        if !doubts {
            return None;
        }
        let value = Probed::of(measurement).and_then(|probed| self.search.value(&probed)).ok();
        // Progress of another run of the program may differ.
        let same = |attempt: &&Attempt| self.search.goes_on && Some(attempt.asked) == asked;
        let before = self.attempts.iter().filter(same);
        let before = before.map(|attempt| attempt.probe.progress.rate).collect();
        self.judge.doubt(measurement, value, before)
    }

    /// Takes a probe. It may be doubtful, and has been repeated often enough then.
    fn observe(
        &mut self,
        measurement: &Measurement,
        doubt: Option<ProbeDoubt>,
    ) -> Result<(), NumberSearchError> {
        let Some((asked, _)) = self.asks() else { return Ok(()) };
        if let Some(ProbeDoubt::Jumped(times)) = doubt {
            return Err(Jump { n: (self.convert)(asked), times }.into());
        }
        let attempt = self.attempt(asked, measurement)?;
        self.attempts.push(attempt);
        self.attempted.push(self.records - 1);
        let Probe { profile, progress, cost, threads, .. } = attempt.probe;
        let cost = cost + self.judge.taken();
        match &mut self.state {
            MethodState::Survey(surveyor) => {
                let error = ProbeDoubt::error(doubt, progress);
                let sample = SpeedSample { value: progress.rate, error, cost, threads };
                if attempt.below_floor {
                    surveyor.give_up(sample)?;
                } else {
                    surveyor.observe(sample)?;
                }
                if let (Some(more), [first, _]) =
                    (self.judge.first_was_starved(), self.attempts.as_slice())
                    && !first.below_floor
                {
                    surveyor.doubt_first(error_of_starved(more, first.probe.progress));
                }
            }
            MethodState::Reinforcer(reinforcer) => {
                reinforcer.observe(profile);
            }
            MethodState::Sweep if doubt == Some(ProbeDoubt::Idle) => {
                return Err(SpeedSearchError::Idle { threads: asked, cost }.into());
            }
            MethodState::Sweep => {}
        }
        self.look_for_end();
        Ok(())
    }

    /// The attempt that a probe is. Error: it has another measure of speed than the probes before
    /// it, so they cannot be compared. An example is CPU time, if instructions could not be read
    /// this time.
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
                    "the speed with n = {} was measured by {own}, before by {first}: these do not \
                     compare; run the search again, or name a --metric",
                    probe.parameter
                ),
            )),
            _ => Ok(Attempt {
                asked,
                probe,
                lost: self.search.doubts_on.and_then(|contexts| probed.lost(contexts)),
                below_floor: probed.below_floor,
            }),
        }
    }

    /// The next probe: a number, and for how long it is watched. `None` after the end of the
    /// search.
    fn asks(&self) -> Option<(u32, Duration)> {
        let window = self.progressed.window;
        match (&self.state, &self.search.method) {
            (MethodState::Survey(surveyor), _) => match surveyor.next() {
                SpeedSearchStep::Probe { threads, window } => Some((*threads, *window)),
                SpeedSearchStep::Stop(_) => None,
            },
            (MethodState::Reinforcer(reinforcer), _) => match reinforcer.next() {
                ReinforcerStep::Try(asked) => Some((asked, window)),
                ReinforcerStep::Stop(_) => None,
            },
            (MethodState::Sweep, SearchMethod::Sweep(sweep)) => {
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
                SpeedSearchStep::Stop(advice) => {
                    Some(ChosenNumber::by_survey(advice.clone(), None))
                }
            },
            (MethodState::Reinforcer(search), _) => loop {
                match search.next() {
                    // A probe of the same program once more would show no parallelism.
                    ReinforcerStep::Try(asked)
                        if last.is_some_and(|last| convert(last.asked) == convert(asked)) =>
                    {
                        search.pass();
                    }
                    ReinforcerStep::Try(_) => break None,
                    ReinforcerStep::Stop(ReinforcerChoice { threads, reason }) => {
                        let stopped = NumberSearchEnd::published(reason, parameter);
                        let (advice, loss) = (None, None);
                        break Some(ChosenNumber { number: threads, advice, stopped, loss });
                    }
                }
            },
            (MethodState::Sweep, SearchMethod::Sweep(sweep)) => {
                sweep.swept(&self.attempts).map(|swept| {
                    let loss = swept.loss(swept.threads);
                    let SweepResult { threads: number, advice, .. } = swept;
                    let (numbers, rounds) = (sweep.candidates.len() as u32, sweep.rounds);
                    let stopped = NumberSearchEnd::AllTried { numbers, rounds };
                    ChosenNumber { number, advice, stopped, loss }
                })
            }
            (MethodState::Sweep, _) => None,
        };
    }

    /// Handles a probe that the time limit cut off.
    fn expire(&mut self, error: &MeasureError) {
        let broken_off = self.asks().map(|(asked, _)| (self.convert)(asked));
        let advice = match &self.state {
            MethodState::Survey(surveyor) => surveyor.expired(),
            _ => None,
        };
        match advice {
            Some(advice) => {
                self.chosen = Some(ChosenNumber::by_survey(advice, broken_off));
                // There is no time for another probe either.
                self.closing = Closing::Done;
            }
            None => self.failed = Some(error.clone().into()),
        }
    }

    /// The attempt that the closing probe repeats. `None`: every number hurts the program.
    fn first(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| !attempt.below_floor)
    }

    /// Takes the closing probe.
    fn close(&mut self, outcome: Result<&Measurement, &MeasureError>) {
        let first = self.first().map_or(0, |first| first.asked);
        let attempt = match outcome {
            Ok(measurement) => {
                let doubt = self.doubt(measurement, Some(first));
                match doubt {
                    Some(doubt) if self.judge.repeats() => {
                        return self.repeat(measurement, doubt);
                    }
                    Some(ProbeDoubt::Jumped(times)) => {
                        let n = (self.convert)(first);
                        Err(Jump { n, times }.into())
                    }
                    _ => self.attempt(first, measurement).map_err(NumberSearchError::from),
                }
            }
            // There is an answer. There is only no time to check it.
            Err(error) if error.expired => return self.closing = Closing::Done,
            Err(error) => Err(error.clone().into()),
        };
        self.closing = match attempt {
            Ok(attempt) => {
                self.attempts.push(attempt);
                self.attempted.push(self.records - 1);
                Closing::Done
            }
            Err(why) => Closing::Failed(why),
        };
    }

    pub(super) fn next(&self) -> Step {
        if let Some(reason) = &self.failed {
            return Step::Fail(reason.to_string());
        }
        let base = self.base();
        match (&self.chosen, &self.closing, &self.tried) {
            (Some(_), Closing::Wanted, None) => {
                let Some(first) = self.first() else { return Step::Stop };
                let parameter = first.probe.parameter;
                let longer = self.judge.longer();
                let windows = self.progressed.window.as_secs_f64() / base * longer;
                return Step::Measure(probe(parameter, windows));
            }
            (Some(_), ..) => return Step::Stop,
            (None, _, Some(error)) => return Step::Fail(error.message.clone()),
            (None, _, None) => {}
        }
        match self.asks() {
            Some((asked, window)) => {
                let timing = self.progressed.stage == ProbeStage::Timing;
                let longer = self.judge.longer();
                let windows = if timing { 0.0 } else { window.as_secs_f64() / base * longer };
                Step::Measure(probe((self.convert)(asked), windows))
            }
            None => Step::Fail("the search ended without a choice".into()),
        }
    }

    /// The seconds of one window of an effort.
    fn base(&self) -> f64 {
        self.search.window.as_secs_f64().max(1e-9)
    }

    /// The probes of a sweep that follow the next one if none is doubtful, each with its round.
    /// Other searches choose by each probe.
    pub(super) fn following(&self) -> impl Iterator<Item = (usize, Trial)> + '_ {
        let sweep = match &self.search.method {
            SearchMethod::Sweep(sweep) if self.chosen.is_none() => Some(sweep),
            _ => None,
        };
        let windows = self.progressed.window.as_secs_f64() / self.base();
        sweep.into_iter().flat_map(move |sweep| {
            let following = (self.attempts.len() + 1..)
                .map_while(move |place| Some((place / sweep.candidates.len(), sweep.next(place)?)));
            following.map(move |(round, asked)| (round, probe((self.convert)(asked), windows)))
        })
    }

    /// The round of the next probe, with at most `most` that follow.
    pub(super) fn rounds(&self, most: usize) -> TrialRounds {
        let SearchMethod::Sweep(sweep) = &self.search.method else {
            return TrialRounds { continued: true, ..TrialRounds::default() };
        };
        let (own, place) = (
            self.attempts.len() / sweep.candidates.len().max(1),
            self.attempts.len() % sweep.candidates.len().max(1),
        );
        let (mut rest, mut next) = (Vec::new(), Vec::new());
        for (round, trial) in self.following().take_while(|(round, _)| *round <= own + most) {
            match round.checked_sub(own + 1) {
                None => rest.push(trial),
                Some(after) => {
                    next.resize_with(after + 1, Vec::new);
                    next[after].push(trial);
                }
            }
        }
        TrialRounds { continued: place > 0, rest, next }
    }

    pub(super) fn answer(self) -> Result<FoundNumber, Box<Unfound>> {
        let known = self.attempts.len() + self.set_aside.total();
        let set_aside = SetAside { earlier: self.records.saturating_sub(known), ..self.set_aside };
        let (attempts, why) =
            (self.attempts, self.failed.or(self.tried.map(NumberSearchError::from)));
        let Some(ChosenNumber { number, advice, stopped, loss }) = self.chosen else {
            return Err(Unfound { attempts, records: self.attempted, set_aside, why }.into());
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
            records: self.attempted,
            set_aside,
            unchecked: match self.closing {
                Closing::Failed(why) => Some(why),
                Closing::Done | Closing::Wanted => why,
            },
        })
    }
}

impl ChosenNumber {
    fn by_survey(advice: NumberAdvice, broken_off: Option<u32>) -> Self {
        let stopped = match advice.ended {
            SpeedSearchEnd::Settled => NumberSearchEnd::Settled,
            SpeedSearchEnd::Probes | SpeedSearchEnd::AllTried => NumberSearchEnd::Probes,
            SpeedSearchEnd::Time => NumberSearchEnd::Time { broken_off },
        };
        Self { number: advice.threads, advice: Some(advice), stopped, loss: None }
    }
}
