//! A search as it goes on: what each probe showed is kept, and told on a terminal.

use super::arguments::Method;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinwise_measure::{MeasureError, Part, Probe, Prober, Progress, Retry};
use pinwise_threads::{Objective, ThreadRange, Thresholds};
use std::time::Duration;

/// What is searched, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) method: Method,
    pub(super) span: ThreadRange,
    /// What keeps the search from more threads than that, where they may be faster.
    pub(super) bound: Option<&'static str>,
    pub(super) thresholds: Thresholds,
    pub(super) window: Duration,
    /// A survey's probes are whole runs.
    pub(super) whole_runs: bool,
    /// The run consists of so many equal pieces.
    pub(super) pieces: Option<u32>,
    /// How often a sweep tries each number.
    pub(super) rounds: u32,
    /// Share of the best speed that fewer threads may cost.
    pub(super) tolerance: f64,
    /// What is to be great.
    pub(super) objective: Objective,
    /// What all probes of a survey may take.
    pub(super) budget: Duration,
    /// What a run has to get done, of which they may take a share; in units of progress times a
    /// second.
    pub(super) work: Option<f64>,
    /// All probes are of one run of the program.
    pub(super) goes_on: bool,
    /// The threads that probes see tell whether the program makes more for a greater number: it is
    /// started anew with each.
    pub(super) counted: bool,
}

/// A prober that is watched, and whose progress is what is to be great.
pub(super) struct Observed<P> {
    pub(super) inner: P,
    /// Every probe that was made, and how its roles spent it.
    pub(super) probes: Vec<(Probe, Vec<Part>)>,
    objective: Objective,
    bar: ProgressBar,
}

impl<P: Prober> Observed<P> {
    pub(super) fn new(inner: P, objective: Objective) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("[{elapsed_precise}] {msg}") {
            bar.set_style(style);
        }
        Self { inner, probes: Vec::new(), objective, bar }
    }

    /// Progress as what is to be great.
    fn valued(&self, progress: Progress) -> Result<Progress, MeasureError> {
        let unknown = || MeasureError::new(Retry::Never, "the power of the processor is not known");
        let rate = self.objective.value(progress.rate, self.inner.watts()).ok_or_else(unknown)?;
        let error = progress.error.map(|error| self.objective.error(error / progress.rate) * rate);
        Ok(Progress { rate, error, ..progress })
    }

    /// Takes the line away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl<P: Prober> Prober for Observed<P> {
    fn contexts(&self) -> u32 {
        self.inner.contexts()
    }

    fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
        self.bar.set_message(format!("probe {}: n = {parameter}", self.probes.len() + 1));
        let probe = self.inner.probe(parameter, window)?;
        let progress = probe.progress.map(|progress| self.valued(progress)).transpose()?;
        let probe = Probe { progress, ..probe };
        self.probes.push((probe, self.inner.parts()));
        Ok(probe)
    }

    fn parts(&self) -> Vec<Part> {
        self.inner.parts()
    }
}
