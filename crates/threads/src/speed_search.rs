//! The search behind `--method survey`: it fits scalability laws to a few measured speeds.
//!
//! Terms: a *candidate* is a number of threads that may be chosen. A *probe* runs the program with
//! a candidate for a moment. Its *value* is the quantity being maximised ([`crate::Objective`]):
//! work per second or per joule, for example. All probes share its unit.
//!
//! **Posterior.** The values of all candidates follow one of the laws of [`crate::Law`], with three
//! departures. One is smooth in the logarithm of n. One is rough from one n to the next. One is a
//! step where threads begin to take turns (`question.rs`). Each probe weighs the laws by how well
//! they predicted it.
//!
//! **Next probe.** A probe of a candidate has an expected rise of the best known speed per second.
//! The probe that promises most comes next (the knowledge gradient). For programs that are slow to
//! start, it also considers longer windows. The first probe has as many threads as contexts.
//!
//! **Choice.** The fewest threads that are within the tolerance of the fastest with enough
//! certainty (`decision.rs`).
//!
//! **End.** The search ends when the choice is expected to lose less than the tolerance. It also
//! ends when no probe promises anything. If time is left, it then probes, in this order:
//!
//! 1. The two numbers that compete for the choice, while the choice is open. One pair is fewer
//!    threads that may be fast enough, and the fastest. The other is a number above the contexts,
//!    and the best up to them.
//! 2. The choice, until it has two probes. Only repeats of a number show how far readings are off.
//!
//! If there is no time left for these, time has ended the search ([`SpeedSearchEnd::Time`]). It
//! also ends when the next probe would exceed the allowed number of probes or time.
//!
//! **Numbers that hurt.** A number with which the program fell below a floor is not probed again,
//! and not chosen. Its value counts for the numbers near it.
//!
//! **Same threads.** If several numbers make the largest count of threads observed, the greatest
//! candidate is probed once. If it makes no more threads either, and the speeds of all agree, they
//! count as the least of them. Greater ones are no candidates any more ([`ThreadCeiling`]).
//!
//! Limits: a short probe does not show what comes later in a run (see [`crate::PhaseChange`]). Nor
//! does it show how a fixed number of pieces divides among the threads at its end. If that number
//! is known, [`SpeedQuestion::pieces`] accounts for it.

mod decision;
mod question;

pub use question::SpeedQuestion;

use crate::advice::{NumberAdvice, SpeedSearchEnd};
use crate::equal_pieces::Evenness;
use crate::posterior::{LEAST_ERROR, Posterior, Prior, SpeedReading, common_error};
use crate::thread_ceiling::{CountedProbe, ThreadCeiling};
use decision::{DOUBTS, Decision, OpenChoice, REPEATS};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedSample {
    /// The quantity being maximised: above 0.
    pub value: f64,
    /// Its standard error, if known.
    pub error: Option<f64>,
    /// Time the probe took, with start and end.
    pub cost: Duration,
    /// Threads the program had.
    pub threads: u32,
}

/// Why there is no search, or no further step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SpeedSearchError {
    /// Nothing to choose from.
    #[error("no numbers of threads to choose from: give ascending numbers, each at least 1")]
    Candidates,
    /// A probe saw no progress.
    #[error(
        "no progress in {:.2} s with {threads} thread{}: probe longer (--window), start later \
         (--after), or choose another --metric",
        cost.as_secs_f64(),
        if *threads == 1 { "" } else { "s" }
    )]
    Idle {
        /// With how many threads.
        threads: u32,
        /// How long the probe took.
        cost: Duration,
    },
    /// Every candidate was given up.
    #[error(
        "the program fell below --floor with every number: repeat under steady load, change --min \
         or --max, or lower --floor"
    )]
    NoneLeft,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeedSearchStep {
    /// Probe with `threads` for `window`.
    Probe {
        /// A candidate.
        threads: u32,
        /// The ordinary window, or a multiple of it.
        window: Duration,
    },
    /// Done.
    Stop(NumberAdvice),
}

/// The share that a search may take of a run whose length is known. It is the most that the
/// published search took of a parallel run: 0.9 s of swaptions' 21.3 s (K. K. Pusukuri, R. Gupta,
/// L. N. Bhuyan, IISWC 2011, Tables IX and XII).
pub const PROBE_SHARE: f64 = 0.042;
/// The part of that share that probes take. The length of the run is only known to some percent.
const FORECAST: f64 = 0.97;
/// Windows that a probe may have, as multiples of the ordinary one.
const WINDOWS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Relative standard error of a value over the ordinary window if nothing is known of it.
const UNKNOWN_ERROR: f64 = 0.02;
/// A choice that is expected to lose less than this share of the tolerance is settled.
const SETTLED: f64 = 0.5;
/// A probe that is expected to gain less than this share of the tolerance is not made.
const WORTHLESS: f64 = 0.1;

/// The search: a pure function of its observations.
#[derive(Clone, Debug)]
pub struct SpeedSearch {
    /// With the candidates that are left.
    question: SpeedQuestion,
    /// All candidates that were asked for.
    all: Vec<u32>,
    prior: Prior,
    /// The share of the speed that is left after the uneven end of a run, for each candidate.
    ends: Vec<Evenness>,
    samples: Vec<(usize, Duration, SpeedSample)>,
    /// Each probe, with the threads that its candidate was seen to make, if these are counted.
    made: Vec<CountedProbe>,
    /// Candidates that are neither probed again nor chosen. For one without a sample, also the cost
    /// of its probe.
    given_up: Vec<(u32, Duration)>,
    next: SpeedSearchStep,
}

impl SpeedSearch {
    /// A search that has seen nothing yet. Error: no candidates, or candidates that are not
    /// ascending from 1 or more.
    pub fn new(question: SpeedQuestion) -> Result<Self, SpeedSearchError> {
        let ascending = question.candidates.windows(2).all(|pair| pair[0] < pair[1]);
        if question.candidates.first().is_none_or(|&first| first == 0) || !ascending {
            return Err(SpeedSearchError::Candidates);
        }
        let near =
            |&&threads: &&u32| (threads <= question.contexts, threads.abs_diff(question.contexts));
        let first =
            question.candidates.iter().min_by_key(|threads| (!near(threads).0, near(threads).1));
        let next =
            SpeedSearchStep::Probe { threads: *first.unwrap_or(&1), window: question.window };
        Ok(Self {
            prior: question.prior(),
            ends: question.ends(),
            all: question.candidates.clone(),
            question,
            samples: Vec::new(),
            made: Vec::new(),
            given_up: Vec::new(),
            next,
        })
    }

    /// The next step; the same until the next observation.
    pub fn next(&self) -> &SpeedSearchStep {
        &self.next
    }

    /// Takes the result of the probe that was asked for. After the end, nothing changes any more.
    /// Error: a value that is not above 0.
    pub fn observe(&mut self, sample: SpeedSample) -> Result<&SpeedSearchStep, SpeedSearchError> {
        let SpeedSearchStep::Probe { threads, window } = self.next else { return Ok(&self.next) };
        if !is_speed(sample.value) {
            return Err(SpeedSearchError::Idle { threads, cost: sample.cost });
        }
        self.take(threads, window, sample);
        self.next = self.decide();
        Ok(&self.next)
    }

    /// Takes a probe that hurt the program: its number is neither probed again nor chosen. The
    /// value may be 0. Error: no candidate is left.
    pub fn give_up(&mut self, sample: SpeedSample) -> Result<&SpeedSearchStep, SpeedSearchError> {
        let SpeedSearchStep::Probe { threads, window } = self.next else { return Ok(&self.next) };
        let known = is_speed(sample.value);
        self.given_up.push((threads, if known { Duration::ZERO } else { sample.cost }));
        if known {
            self.take(threads, window, sample);
        }
        if self.left().next().is_none() {
            return Err(SpeedSearchError::NoneLeft);
        }
        self.next = self.decide();
        Ok(&self.next)
    }

    /// Gives the first sample this error: it was found to be doubtful only later.
    pub fn doubt_first(&mut self, error: f64) {
        if let Some((.., first)) = self.samples.first_mut() {
            first.error = Some(error);
            if let Some(made) = self.made.first_mut() {
                made.error = Some(error);
            }
            self.pool();
            self.next = self.decide();
        }
    }

    /// The candidates that may be probed and chosen.
    fn left(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.question.candidates.len()).filter(|&place| !self.is_given_up(place))
    }

    fn is_given_up(&self, place: usize) -> bool {
        let candidate = self.question.candidates[place];
        self.given_up.iter().any(|(threads, _)| *threads == candidate)
    }

    fn take(&mut self, threads: u32, window: Duration, sample: SpeedSample) {
        let place = self
            .question
            .candidates
            .iter()
            .position(|&candidate| candidate == threads)
            .unwrap_or(0);
        self.samples.push((place, window, sample));
        if self.question.counted {
            let SpeedSample { value: speed, error, threads: made, .. } = sample;
            self.made.push(CountedProbe { number: threads, threads: made, speed, error });
        }
        self.pool();
    }

    /// Merges the largest candidates that make equally many threads into the smallest of them. The
    /// others cannot be chosen, and their readings are readings of it. A later probe may undo this.
    fn pool(&mut self) {
        let all = &self.all;
        let cap = ThreadCeiling::of(self.made.iter().copied())
            .filter(|cap| all.last().is_some_and(|&last| cap.reaches(last)));
        let kept =
            cap.map_or(all.len(), |cap| all.partition_point(|&threads| threads <= cap.fewest()));
        if kept == self.question.candidates.len() {
            return;
        }
        self.question.candidates = all[..kept].to_vec();
        for ((place, ..), made) in self.samples.iter_mut().zip(&self.made) {
            *place = all.partition_point(|candidate| *candidate < made.number).min(kept - 1);
        }
        (self.prior, self.ends) = (self.question.prior(), self.question.ends());
    }

    fn greatest(&self) -> u32 {
        self.question.candidates.last().copied().unwrap_or(1)
    }

    /// The advice from the observations so far, when the time is over. `None` before the first
    /// observation.
    pub fn expired(&self) -> Option<NumberAdvice> {
        (!self.samples.is_empty())
            .then(|| self.advice(&self.decision(&self.posterior()), SpeedSearchEnd::Time))
    }

    /// The posterior of the speeds over whole runs, from the probes. Numbers that were given up
    /// have none.
    fn posterior(&self) -> Posterior {
        let factor = |(place, end): (usize, &Evenness)| {
            if self.is_given_up(place) { f64::NEG_INFINITY } else { end.mean() }
        };
        let factors: Vec<f64> = self.ends.iter().enumerate().map(factor).collect();
        Posterior::new(&self.prior, &self.readings()).shifted(&factors)
    }

    /// The decision from `posterior`. It adds an uncertainty that no probe can reduce. At the end
    /// of a run, threads take turns in one of two ways.
    fn decision(&self, posterior: &Posterior) -> Decision {
        let ends: Vec<f64> = self.ends.iter().map(Evenness::deviation).collect();
        Decision::new(&self.question, posterior, &ends, |place| self.times(place))
    }

    fn advice(&self, decision: &Decision, ended: SpeedSearchEnd) -> NumberAdvice {
        let left: Vec<usize> = self.left().collect();
        let candidates: Vec<u32> =
            left.iter().map(|&place| self.question.candidates[place]).collect();
        let of_left = |draw: &Vec<f64>| left.iter().map(|&place| draw[place]).collect();
        let draws: Vec<Vec<f64>> = decision.draws.iter().map(of_left).collect();
        let choice = left.iter().position(|&place| place == decision.choice).unwrap_or(0);
        let probed: Vec<usize> =
            (0..left.len()).filter(|&index| self.times(left[index]) > 0).collect();
        let tolerance = self.question.tolerance;
        let drawn = NumberAdvice::drawn(&candidates, &draws, choice, &probed, tolerance);
        let readings = self.times(decision.choice);
        NumberAdvice {
            probed: readings > 0,
            ended,
            probes: self.samples.len(),
            numbers: probed.len(),
            readings,
            ..drawn
        }
    }

    fn decide(&self) -> SpeedSearchStep {
        let posterior = self.posterior();
        let decision = self.decision(&posterior);
        let stop = |ended| SpeedSearchStep::Stop(self.advice(&decision, ended));
        let mut left = self.left();
        if let (Some(only), None) = (left.next(), left.next())
            && self.times(only) > 0
        {
            return stop(SpeedSearchEnd::Settled);
        }
        if self.samples.len() >= self.question.most_probes {
            return stop(SpeedSearchEnd::Probes);
        }
        let left = self.most_time(&posterior).map(|most| most.saturating_sub(self.spent()));
        let start = self.start();
        let cost = |place: usize, window: Duration| {
            start + self.question.takes(posterior.mean[place].exp(), window)
        };
        let affordable =
            |place: usize, window: Duration| left.is_none_or(|left| cost(place, window) <= left);
        let last = self.question.candidates.len() - 1;
        if self.capped_below_greatest() && affordable(last, self.question.window) {
            return SpeedSearchStep::Probe {
                threads: self.greatest(),
                window: self.question.window,
            };
        }
        let settle = || match self.confirm(&decision, affordable) {
            Some(probe) => probe,
            // Single readings may have settled it. With more time, the search would repeat them.
            None if self.confirm(&decision, |_, _| true).is_some() => stop(SpeedSearchEnd::Time),
            None => stop(SpeedSearchEnd::Settled),
        };
        if self.samples.len() > 1 && decision.loss < self.question.tolerance * SETTLED {
            return settle();
        }
        let error = self.common_error();
        let mut best: Option<(f64, usize, Duration)> = None;
        let mut most_worth: f64 = 0.0;
        for place in self.left() {
            for window in WINDOWS.map(|times| self.question.window.mul_f64(times)) {
                if !affordable(place, window) {
                    continue;
                }
                let longer = window.as_secs_f64() / self.question.window.as_secs_f64().max(1e-9);
                let worth = posterior.worth(place, error / longer.sqrt());
                most_worth = most_worth.max(worth);
                let rate = worth / cost(place, window).as_secs_f64().max(1e-9);
                if best.is_none_or(|(most, ..)| rate > most) {
                    best = Some((rate, place, window));
                }
            }
        }
        match best {
            Some(_)
                if self.samples.len() > 2 && most_worth < self.question.tolerance * WORTHLESS =>
            {
                settle()
            }
            Some((_, place, window)) => {
                SpeedSearchStep::Probe { threads: self.question.candidates[place], window }
            }
            None => stop(SpeedSearchEnd::Time),
        }
    }

    /// Whether several candidates made the same largest count of threads, and the greatest
    /// candidate was not probed yet. It would show whether there are more.
    fn capped_below_greatest(&self) -> bool {
        ThreadCeiling::of(self.made.iter().copied())
            .is_some_and(|cap| !cap.reaches(self.greatest()))
    }

    /// If greater candidates were pooled with the greatest one left, gives the next candidate to
    /// probe. That shows whether a smaller one makes all the threads too.
    fn fewer(&self) -> Option<usize> {
        let last = self.question.candidates.len() - 1;
        ThreadCeiling::of(self.made.iter().copied())
            .filter(|cap| cap.fewest() == self.greatest())?;
        let below =
            self.samples.iter().map(|(place, ..)| *place).filter(|&place| place < last).max();
        match below {
            Some(below) => (below + 1 < last).then_some((below + last) / 2),
            None => (last > 0).then_some(0),
        }
    }

    /// The next probe after the search has found what is fast. In this order:
    ///
    /// 1. Fewer threads that may make as many, if the choice is the largest possible number.
    /// 2. The two candidates that compete for the choice. They alternate, so that changes of the
    ///    machine affect both.
    /// 3. Fewer threads that may be fast enough.
    /// 4. The choice, twice. Only repeats show how far readings are off.
    /// 5. The least and the greatest number. The answer claims nothing of numbers beyond those that
    ///    were probed.
    fn confirm(
        &self,
        decision: &Decision,
        affordable: impl Fn(usize, Duration) -> bool,
    ) -> Option<SpeedSearchStep> {
        let contest = decision.contest.map(|OpenChoice { few, fast, most }| {
            let behind = if self.times(fast) < self.times(few) { fast } else { few };
            (behind, most)
        });
        let doubtful = (decision.fewest < decision.choice).then_some((decision.fewest, DOUBTS));
        let last = self.question.candidates.len() - 1;
        let fewer = self.fewer().filter(|_| decision.choice == last).map(|place| (place, 1));
        let greatest = self.question.probes_greatest.then_some((last, 1));
        let wanted = fewer
            .into_iter()
            .chain(contest)
            .chain(doubtful)
            .chain([(decision.choice, REPEATS), (0, 1)])
            .chain(greatest);
        let window = self.question.window;
        let lacking = |&(place, most): &(usize, usize)| {
            self.times(place) < most && !self.is_given_up(place) && affordable(place, window)
        };
        let (place, _) = wanted.into_iter().find(lacking)?;
        Some(SpeedSearchStep::Probe { threads: self.question.candidates[place], window })
    }

    /// How often this candidate was probed.
    fn times(&self, place: usize) -> usize {
        self.samples.iter().filter(|(probed, ..)| *probed == place).count()
    }

    /// The time for all probes, by the current estimate. It leaves out the uneven end of a run,
    /// which makes the run longer.
    fn most_time(&self, posterior: &Posterior) -> Option<Duration> {
        let moments = posterior.mean.iter().zip(&self.ends).map(|(mean, end)| mean - end.mean());
        let fastest = moments.fold(f64::MIN, f64::max).exp();
        let share = |work: f64| {
            Duration::try_from_secs_f64(work / fastest * PROBE_SHARE * FORECAST)
                .unwrap_or(Duration::MAX)
        };
        self.question.most_time.into_iter().chain(self.question.work.map(share)).min()
    }

    /// Time of all probes so far.
    fn spent(&self) -> Duration {
        let sampled: Duration = self.samples.iter().map(|(.., sample)| sample.cost).sum();
        sampled + self.given_up.iter().map(|(_, cost)| *cost).sum::<Duration>()
    }

    /// The longest time so far that a probe took in addition to its window.
    fn start(&self) -> Duration {
        let extra = |(_, window, sample): &(usize, Duration, SpeedSample)| {
            sample.cost.saturating_sub(self.question.takes(sample.value, *window))
        };
        self.samples.iter().map(extra).max().unwrap_or_default()
    }

    /// Relative standard error of a value over the ordinary window: the median of those
    /// that samples report.
    fn common_error(&self) -> f64 {
        common_error(self.samples.iter().filter_map(|sample| self.own_error(sample)), UNKNOWN_ERROR)
    }

    /// Relative standard error that a sample reports, converted to the ordinary window.
    fn own_error(&self, (_, window, sample): &(usize, Duration, SpeedSample)) -> Option<f64> {
        let longer = window.as_secs_f64() / self.question.window.as_secs_f64().max(1e-9);
        sample
            .error
            .filter(|error| error.is_finite())
            .map(|error| error / sample.value * longer.sqrt())
    }

    /// The samples as the posterior takes them. The error that a sample reports is inexact: it
    /// comes from a handful of parts. So half of its variance is that of all samples.
    fn readings(&self) -> Vec<SpeedReading> {
        let common = self.common_error();
        let reading = |sample: &(usize, Duration, SpeedSample)| {
            let longer = sample.1.as_secs_f64() / self.question.window.as_secs_f64().max(1e-9);
            let own = self.own_error(sample).unwrap_or(common);
            let error =
                ((own * own + common * common) / 2.0 / longer.max(1e-9)).sqrt().max(LEAST_ERROR);
            SpeedReading { place: sample.0, value: sample.2.value.ln(), error }
        };
        self.samples.iter().map(reading).collect()
    }
}

fn is_speed(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

#[cfg(test)]
mod tests;
