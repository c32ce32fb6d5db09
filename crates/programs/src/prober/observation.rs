//! [`Observation`]: what pinwise observed of a program in one probe, as it works with it. It is not
//! stored.

use super::observation_halves::{HalfDifference, join};
use pinwise_linux::sys::ProcessUsage;
use pinwise_measure::{Measure, ProgramNote, Progress, SchedulingProfile, Unit};
use pinwise_monitor::{Activity, OtherLoad};
use std::time::Duration;

/// A watched run counts like any other if watching took less than this share.
const LITTLE: f64 = 0.01;

/// Less CPU time than this is taken to be that of starting a program: a guess.
pub const START_TIME: Duration = Duration::from_millis(5);

/// A stretch of a run that was watched.
pub(super) struct Observation {
    pub(super) activity: Activity,
    pub(super) threads: u32,
    pub(super) initialization: Duration,
    pub(super) progress: Progress,
    pub(super) unit: Unit,
    pub(super) notes: Vec<ProgramNote>,
    /// The share of the contexts that other programs took; `None` is filled in at the end.
    pub(super) others: Option<OtherLoad>,
    /// The part of `others` in whole runs that were not watched.
    pub(super) unwatched: Option<OtherLoad>,
    pub(super) disturbed: bool,
    /// The mean power of the processor, if the user asked for it.
    pub(super) watts: Option<f64>,
    pub(super) halves: Option<(Activity, Activity)>,
    /// For a whole run: what the kernel counted from its start to its end.
    pub(super) usage: Option<ProcessUsage>,
    /// The length of the whole run.
    pub(super) seconds: Option<f64>,
    /// The threads that a program which keeps running had before its first parameter.
    pub(super) begun: Option<u32>,
    /// Its threads with this parameter.
    pub(super) settled: Option<u32>,
    /// The program fell below the floor.
    pub(super) below: bool,
}

/// A whole run: how long it took, what its progress was, and what others took meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeRun {
    pub(super) seconds: f64,
    pub(super) rate: f64,
    pub(super) others: Option<OtherLoad>,
}

impl Observation {
    /// The window of one activity, or of two halves, with this progress. It was watched, and
    /// nothing more is known yet.
    pub(super) fn new(
        (one, other): (Activity, Option<Activity>),
        threads: u32,
        initialization: Duration,
        (progress, unit): (Progress, Unit),
    ) -> Self {
        let halves = other.as_ref().map(|other| (one.clone(), other.clone()));
        Self {
            activity: other.map_or_else(|| one.clone(), |other| join(one.clone(), other)),
            threads,
            initialization,
            halves,
            progress,
            unit,
            notes: Vec::new(),
            others: None,
            unwatched: None,
            disturbed: true,
            watts: None,
            usage: None,
            seconds: None,
            begun: None,
            settled: None,
            below: false,
        }
    }

    /// Uses the kernel's counts of a whole run in the profile, instead of the sampled ones. They
    /// include what ended between two looks.
    pub(super) fn of_whole_run(&mut self, usage: ProcessUsage) {
        self.usage = Some(usage);
    }

    /// The threads that were watched for about as long as any. They existed at a time, even if no
    /// look at their number saw them all.
    pub(super) fn lasting_threads(&self) -> u32 {
        let threads = &self.activity.threads;
        let longest = threads.iter().map(|thread| thread.elapsed).max().unwrap_or_default();
        threads.iter().filter(|thread| thread.elapsed * 2 >= longest).count() as u32
    }

    /// Whether most of the CPU time of a whole run belongs to threads that began and ended between
    /// looks.
    pub(super) fn missed_most(&self) -> bool {
        let (seen, all) = (self.activity.ran(), self.usage.as_ref().map(|usage| usage.cpu));
        all.is_some_and(|all| all > START_TIME && seen * 2 < all)
    }

    /// A whole run.
    pub(super) fn run(&self) -> Option<WholeRun> {
        let (rate, others) = (self.progress.rate, self.others);
        self.seconds.map(|seconds| WholeRun { seconds, rate, others })
    }

    /// Sets the mean of this run and of further ones that were not watched, with its standard
    /// error. The profile stays that of this run. Its time does not count if watching took much of
    /// it and there are other runs. The load of others is that of all runs.
    pub(super) fn of_several_runs(&mut self, others: &[WholeRun]) {
        let much = self.activity.overhead_share().is_some_and(|share| share > LITTLE);
        self.disturbed = much && others.is_empty();
        let own = self.run().filter(|_| !much || others.is_empty());
        let runs: Vec<WholeRun> = own.into_iter().chain(others.iter().copied()).collect();
        self.progress = mean_progress(self.progress.measure, &runs);
        self.unwatched = others.iter().filter_map(|run| run.others).reduce(OtherLoad::with);
        self.others = self.others.into_iter().chain(self.unwatched).reduce(OtherLoad::with);
    }

    /// How the second half differs from the first.
    pub(super) fn drift(&self, contexts: u32) -> Option<HalfDifference> {
        self.halves.as_ref().and_then(|(one, other)| HalfDifference::between(one, other, contexts))
    }

    /// The profile on `contexts`.
    pub(super) fn profile(&self, contexts: u32) -> SchedulingProfile {
        let seen = &self.activity;
        let mut profile = SchedulingProfile {
            lock: seen.lock().unwrap_or(0.0) * 100.0,
            vcx_rate: seen.voluntary_rate(),
            migr_rate: seen.migration_rate().unwrap_or(0.0),
            cpu_util: seen.utilization(contexts as usize) * 100.0,
        };
        if let Some((usage, seconds)) = self.usage.zip(self.seconds) {
            profile.vcx_rate = usage.voluntary as f64 / seconds;
            profile.cpu_util =
                (usage.cpu.as_secs_f64() / (seconds * f64::from(contexts))).min(1.0) * 100.0;
        }
        profile
    }
}

/// The progress of one or more runs, with the standard error of several.
fn mean_progress(measure: Measure, runs: &[WholeRun]) -> Progress {
    // For timed runs, the mean is that of their times.
    let value = |run: &WholeRun| if measure == Measure::Runs { run.seconds } else { run.rate };
    let n = runs.len() as f64;
    let mean = runs.iter().map(value).sum::<f64>() / n;
    let squares: f64 = runs.iter().map(|run| (value(run) - mean).powi(2)).sum();
    let error = (runs.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
    let (rate, error) = match measure {
        Measure::Runs => (1.0 / mean, error.map(|error| error / (mean * mean))),
        _ => (mean, error),
    };
    Progress { rate, error, measure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_in_a_run_that_nobody_watched_counts() {
        let burst = OtherLoad { pressure: Some(0.9), ..OtherLoad::new(2.0, 4.0) };
        let progress = Progress { rate: 1.0, error: None, measure: Measure::Runs };
        let ran = (Activity::none(Duration::from_secs(1)), None);
        let mut seen = Observation::new(ran, 2, Duration::ZERO, (progress, Unit::cost("s")));
        (seen.seconds, seen.others) = (Some(1.0), Some(OtherLoad::new(0.0, 4.0)));
        let further = |others| WholeRun { seconds: 2.0, rate: 0.5, others };
        seen.of_several_runs(&[further(Some(burst)), further(None)]);
        assert_eq!(seen.unwatched, Some(burst));
        assert_eq!(seen.others, Some(OtherLoad::new(2.0, 8.0)), "no pressure is known of one");
    }

    #[test]
    fn runs_have_the_standard_error_of_their_mean_also_where_they_print_zero() {
        let of = |measure, runs: &[(f64, f64)]| {
            let runs: Vec<WholeRun> = runs
                .iter()
                .map(|&(seconds, rate)| WholeRun { seconds, rate, others: None })
                .collect();
            let Progress { rate, error, .. } = mean_progress(measure, &runs);
            (rate, error)
        };
        assert_eq!(of(Measure::Metric, &[(1.0, 0.0), (1.0, 0.0)]), (0.0, Some(0.0)));
        assert_eq!(of(Measure::Metric, &[(1.0, 3.0), (1.0, 5.0)]), (4.0, Some(1.0)));
        // Their mean is 4 s with a standard error of 1 s.
        assert_eq!(of(Measure::Runs, &[(3.0, 0.0), (5.0, 0.0)]), (0.25, Some(0.0625)));
        assert_eq!(of(Measure::Runs, &[(4.0, 0.0)]), (0.25, None));
    }
}
