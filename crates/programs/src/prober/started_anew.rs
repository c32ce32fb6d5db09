//! [`StartedAnew`]: a program that is restarted with each number.

use super::observation::{Observation, WholeRun};
use super::program_run::{self, ProgramRun};
use super::{
    CommandTemplate, ProbeDetails, ProbeError, ProbeOptions, Probing, ProgressSource, powered,
};
use pinwise_measure::ProgramNote;
use pinwise_monitor::OtherLoadMeter;
use std::time::Duration;

/// A program that is restarted with each number. It ends with the probe.
pub(super) struct StartedAnew {
    pub(super) template: CommandTemplate,
    /// `None` if the CPUs that pinwise may use are unknown.
    pub(super) other_load: Option<OtherLoadMeter>,
}

impl StartedAnew {
    /// Starts the program with `parameter`, watches it for the window and ends it. If whole runs
    /// are measured, the power is that of all of them.
    pub(super) fn probe(
        &self,
        probing: &mut Probing,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        let whole = matches!(probing.options.progress, ProgressSource::Runs(_));
        let power = probing.options.power.clone().filter(|_| whole);
        powered(power.as_ref(), || self.observe(probing, parameter, window))
    }

    fn observe(
        &self,
        probing: &mut Probing,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        let whole = matches!(probing.options.progress, ProgressSource::Runs(_));
        let refused = probing.layer_choice.refused().len();
        let mut seen = self.run_once(probing, parameter, window, true)?;
        if whole {
            seen.threads = seen.threads.max(seen.lasting_threads());
            let promised = probing.options.threads.as_ref().map_or(parameter, |of| of(parameter));
            // No worker was seen, so their number is not known.
            if seen.threads == 1 && promised > 1 && seen.missed_most() {
                seen.threads = promised;
                seen.notes.push(ProgramNote::ThreadsMissed);
            }
        }
        if let Some(first) = seen.run().filter(|_| whole) {
            probing.layer_choice.take_in(&seen.activity);
            let given_up = probing.layer_choice.refused().len() > refused;
            let mut runs: Vec<WholeRun> = Vec::new();
            let time = |runs: &[WholeRun]| runs.iter().map(|run| run.seconds).sum::<f64>();
            // The number of runs that comes nearest to filling the window. At least one more if
            // watching cost this one too much.
            while given_up && runs.is_empty()
                || first.seconds * 1.5 + time(&runs) < window.as_secs_f64()
            {
                match self.run_once(probing, parameter, window, false) {
                    Ok(another) => runs.extend(another.run()),
                    Err(ProbeError::Expired { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
            seen.of_several_runs(&runs);
        }
        Ok(seen)
    }

    /// Starts the program, watches it for the window and ends it. If whole runs are measured, it
    /// watches it to its end (unless that is only to be timed).
    fn run_once(
        &self,
        probing: &mut Probing,
        parameter: u32,
        window: Duration,
        watched: bool,
    ) -> Result<Observation, ProbeError> {
        let mut launch = self.template.launch(parameter);
        program_run::choose_streams(&mut launch, &probing.options);
        let whole = matches!(probing.options.progress, ProgressSource::Runs(_));
        let limits = probing.limits();
        let before = self.other_load.as_ref().and_then(OtherLoadMeter::reading);
        let progress = &probing.options.progress;
        let mut session =
            ProgramRun::start(&launch, parameter, &mut probing.guardian, limits, progress)?;
        let seen = if let ProgressSource::Runs(metric) = progress {
            session.run_through(
                probing.options.limit,
                metric,
                watched.then_some(&mut probing.layer_choice),
            )
        } else {
            let mut watch = |session: &mut ProgramRun| {
                session.window(window, None, progress, &mut probing.layer_choice)
            };
            let power = probing.options.power.as_ref();
            session
                .wait_ready(parameter, &probing.options)
                .and_then(|()| powered(power, || watch(&mut session)))
        };
        // Also after a failure: nothing is left behind.
        let ended = session.end(&mut probing.guardian);
        let removed = self.remove(&probing.options, parameter);
        let mut seen = seen?;
        let usage = ended?;
        removed?;
        seen.others = self.other_load.as_ref().and_then(|meter| meter.since(before, usage.cpu));
        if whole {
            seen.of_whole_run(usage);
        }
        Ok(seen)
    }

    /// Checks whether the number of threads follows the parameter at all, by the probes so far. Not
    /// with a metric or whole runs: these show what the parameter does.
    pub(super) fn check_threads(
        &self,
        options: &ProbeOptions,
        seen: &[ProbeDetails],
    ) -> Result<(), ProbeError> {
        // n is whatever the user varies then, such as GOMAXPROCS.
        if options.progress.shows_work_done() {
            return Ok(());
        }
        let [first, .., last] = seen else { return Ok(()) };
        let promised = |n: u32| options.threads.as_ref().map(|threads| threads(n));
        let alike = seen.iter().all(|seen| seen.threads == first.threads);
        let expected = |n: u32| promised(n).unwrap_or(n);
        if !alike || expected(first.parameter) == expected(last.parameter) {
            return Ok(());
        }
        let least = seen.iter().min_by_key(|seen| seen.parameter).unwrap_or(first);
        let wanted = least
            .activity
            .threads
            .iter()
            .map(|thread| (thread.ran + thread.waited).as_secs_f64())
            .sum::<f64>();
        let wanted = wanted / least.activity.elapsed.as_secs_f64().max(1e-9);
        if !ignores_parameter(first.threads, least.parameter, promised(least.parameter), wanted) {
            return Ok(());
        }
        let (name, threads) = (self.template.name(), first.threads);
        Err(ProbeError::SameThreads { name, threads, one: first.parameter, other: last.parameter })
    }

    fn remove(&self, options: &ProbeOptions, parameter: u32) -> Result<(), ProbeError> {
        for path in &options.remove {
            let path = self.template.path(path, parameter);
            match std::fs::remove_file(&path) {
                Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ProbeError::Remove { path, cause });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A program that keeps this many contexts more than n busy does not take its number of threads
/// from n. A first thread that reads for the others has less work.
const BUSIER: f64 = 0.8;

/// Whether a program ignores n. It makes `threads` with every n that was probed, `least` and
/// greater.
///
/// The other explanation is that its input has no work for more than `least`. Then it makes at
/// least two threads and no more than `least` promises. That is `promised` if known, else n or one
/// more, the first, which waits. And it has work for no more contexts (`wanted`: those its threads
/// ran on or waited for).
fn ignores_parameter(threads: u32, least: u32, promised: Option<u32>, wanted: f64) -> bool {
    let most = promised.unwrap_or(least + 1);
    !(2..=most).contains(&threads) || promised.is_none() && wanted > f64::from(least) + BUSIER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_work_for_more_threads_is_told_from_one_that_takes_no_notice_of_n() {
        assert!(
            !ignores_parameter(2, 1, None, 1.1),
            "one worker, and a first thread that waits for it"
        );
        assert!(ignores_parameter(2, 1, None, 1.95), "both work though one was asked for");
        assert!(
            ignores_parameter(3, 1, None, 1.0) && ignores_parameter(1, 2, None, 1.0),
            "too many, or no worker at all"
        );
        assert!(!ignores_parameter(4, 8, None, 3.0), "input for four");
        assert!(ignores_parameter(24, 6, None, 20.0));
        // The threads that n makes are known. More than that are not.
        assert!(
            !ignores_parameter(2, 1, Some(2), 1.95)
                && ignores_parameter(3, 1, Some(2), 1.0)
                && ignores_parameter(2, 1, Some(1), 1.0)
        );
    }
}
