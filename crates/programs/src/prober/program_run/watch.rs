//! Watches a run: one window with its progress, or from start to end.

use super::transient::{AfterChange, after_change, until_steady};
use super::{NumberChange, ProgramRun, threads_of};
use crate::prober::observation::Observation;
use crate::prober::observation_halves::join;
use crate::prober::{ProbeError, ProgressSource};
use crate::run_metric::RunMetric;
use pinwise_linux::{Scope, process};
use pinwise_measure::{Measure, MeasureError, Measurement, ProgramNote, Progress, Unit};
use pinwise_metric::{
    Metric, MetricError, MetricOptions, MetricSpec,
    reading::{RateError, Reading, ReadingSummary, apart, rate},
};
use pinwise_monitor::{Activity, Layer, LayerChoice, Monitor, OtherLoadWatch};
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The most parts of a window in which instructions are counted. The parts give the error of the
/// count.
const PARTS: u32 = 8;
/// A whole run is watched in stretches of at most this many looks.
const LOOKS: u32 = 10;
/// The first stretch of a whole run, if nothing bounds the cost of the layer. Each later stretch is
/// twice as long, so that an expensive layer is dropped early.
const FIRST_STRETCH: Duration = Duration::from_millis(20);
/// How long a program may take to end after it closed its output.
const ENDING: Duration = Duration::from_millis(300);
/// A fifth of the window passes before it, and at least this.
const LEAST_WARM_UP: Duration = Duration::from_millis(10);

impl ProgramRun {
    /// Warms up, then watches for `window`. After a `change`, it watches until progress is steady.
    pub(in crate::prober) fn window(
        &mut self,
        window: Duration,
        change: Option<NumberChange>,
        source: &ProgressSource,
        layer_choice: &mut LayerChoice,
    ) -> Result<Observation, ProbeError> {
        self.most_threads.set(0);
        match source {
            ProgressSource::Metric(spec, options) => {
                self.metered(window, change, (spec, options), layer_choice)
            }
            ProgressSource::Counters | ProgressSource::Runs(_) => {
                self.counted(window, change.is_some(), layer_choice)
            }
        }
    }

    fn counted(
        &mut self,
        window: Duration,
        changed: bool,
        layer_choice: &mut LayerChoice,
    ) -> Result<Observation, ProbeError> {
        let mut monitor = self.warmed(window, layer_choice)?;
        let initialization = self.begin.elapsed();
        let (counted, begin) = (RefCell::new(Vec::new()), Instant::now());
        let count = || {
            let reading = self
                .executed()
                .map(|value| Reading { value, seconds: begin.elapsed().as_secs_f64() });
            counted.borrow_mut().extend(reading);
            false
        };
        let executed = |from: usize| {
            let parts = apart(&counted.borrow()[from..], (window / PARTS).as_secs_f64());
            // A counter that counts nothing counts another kind of core, or was refused.
            rate(&parts).ok().filter(|summary| summary.value > 0.0)
        };
        let mut half = || {
            let from = counted.borrow().len();
            let seen = self.watch(&mut monitor, window / 2, &count)?;
            count();
            let duration = seen.elapsed;
            let ran = seen.ran().as_secs_f64() / duration.as_secs_f64().max(1e-9);
            let (performance, error) =
                executed(from).map_or((ran, None), |counted| (counted.value, counted.error()));
            let measured = Measurement { performance, duration, spread: None, detail: None };
            Ok::<_, ProbeError>(((measured, error), (from, seen)))
        };
        let ([(_, (from, one)), (_, (_, other))], steady) =
            if changed { until_steady(half)? } else { ([half()?, half()?], true) };
        let (summary, measure, unit) = match executed(from) {
            Some(summary) => (summary, Measure::Instructions, "instructions/s"),
            None => (
                cpu_time(&one, &other).map_err(MeasureError::from)?,
                Measure::CpuTime,
                "s of CPU/s",
            ),
        };
        let progress = Progress { rate: summary.value, error: summary.error(), measure };
        let unsteady = (!steady).then_some(ProgramNote::NotSteady { n: self.parameter });
        Ok(Observation {
            notes: self.uncounted.iter().cloned().chain(unsteady).collect(),
            ..self.window_of((one, Some(other)), initialization, (progress, Unit::rate(unit)))
        })
    }

    /// The metric measures on a separate thread for as long as it needs. The threads are watched
    /// meanwhile.
    fn metered(
        &mut self,
        window: Duration,
        change: Option<NumberChange>,
        (spec, options): (&MetricSpec, &MetricOptions),
        layer_choice: &mut LayerChoice,
    ) -> Result<Observation, ProbeError> {
        let mut metric = self.metric(spec, options)?;
        let shortest = metric.shortest_window;
        let window = window.max(shortest);
        let mut monitor = self.warmed(window, layer_choice)?;
        let unit = metric.meter.unit().clone();
        let (least, cpus) = change.map_or((None, None), |change| (change.least, Some(change.cpus)));
        let (stop, done, made) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
        let (measured, watched) = std::thread::scope(|scope| {
            let measuring = scope.spawn(|| {
                let stopped = || stop.load(Ordering::Relaxed);
                let mut before = warm_up(window);
                let mut stretch = |length: Duration| {
                    let settle = std::mem::take(&mut before);
                    let measured = metric.meter.measure(settle, length, &stopped)?;
                    made.fetch_add(1, Ordering::Relaxed);
                    Ok((measured, metric.meter.error()))
                };
                let measured = match cpus {
                    None => stretch(window).map(|(measured, error)| AfterChange {
                        rate: measured.performance,
                        error,
                        steady: true,
                        below: false,
                    }),
                    Some(_) => after_change(least, || stretch((window / 2).max(shortest))),
                };
                done.store(true, Ordering::Relaxed);
                measured
            });
            // A panic of the metric leaves `done` false.
            let is_done = || done.load(Ordering::Relaxed) || measuring.is_finished();
            // The metric, which is not read before that, warms up equally long.
            let watched = self.watch(&mut monitor, warm_up(window), &is_done).and_then(|_| {
                let initialization = self.begin.elapsed();
                let mut parts = Vec::new();
                // This lasts until the metric is complete or has given up, or the probe has to end.
                while parts.is_empty() || !is_done() {
                    let others =
                        cpus.as_ref().map(|cpus| OtherLoadWatch::begin(cpus, &[self.root]));
                    let before = made.load(Ordering::Relaxed);
                    let over = || is_done() || made.load(Ordering::Relaxed) != before;
                    let first = cpus.is_none() && parts.is_empty();
                    let length = if first { window / 2 } else { Duration::MAX };
                    let mut part = self.watch(&mut monitor, length, &over)?;
                    if parts.is_empty() && is_done() && part.elapsed < window / 4 {
                        // On a busy machine this begins when the metric is done. So short a part
                        // shows nothing. What ends the program now does not matter.
                        part = self.watch_to_its_end(&mut monitor, window / 2, &|| false)?.0;
                    }
                    parts.push((part, others.flatten()));
                }
                Ok((initialization, parts))
            });
            stop.store(watched.is_err(), Ordering::Relaxed);
            (measuring.join(), watched)
        });
        let (initialization, mut parts) = watched?;
        let measured = measured
            .map_err(|_| io::Error::other("the metric's thread failed"))
            .map_err(|e| self.unreadable(e))?;
        if measured.is_err() {
            self.pause(ENDING);
            self.check()?;
        }
        let AfterChange { rate, error, steady, below } = measured?;
        let progress = Progress { rate, error, measure: Measure::Metric };
        let mut notes = metric.notes.clone();
        notes.extend((!steady).then_some(ProgramNote::NotSteady { n: self.parameter }));
        notes.extend(below.then_some(ProgramNote::BelowFloor { n: self.parameter }));
        notes.extend(
            metric
                .meter
                .counter_detection()
                .filter(|detection| detection.is_doubtful())
                .map(|_| ProgramNote::MaybeTotal),
        );
        self.metric = Some(metric);
        if cpus.is_some() {
            // One a stretch, and perhaps one after the last. The transient does not count.
            parts.truncate(made.into_inner());
            parts.drain(..parts.len().saturating_sub(2));
        }
        let others = parts.first().and_then(|(_, others)| others.as_ref()?.so_far(&[self.root]));
        let mut halves = parts.into_iter().map(|(part, _)| part);
        let one = halves.next().unwrap_or_else(|| Activity::none(Duration::ZERO));
        let window = self.window_of((one, halves.next()), initialization, (progress, unit));
        Ok(Observation { notes, below, others, ..window })
    }

    /// Takes the metric up, or the one that was taken up before. If the time is over first, the
    /// metric reports what it lacked.
    fn metric(&mut self, spec: &MetricSpec, options: &MetricOptions) -> Result<Metric, ProbeError> {
        if let Some(metric) = self.metric.take() {
            return Ok(metric);
        }
        let root = self.root;
        let pids = Box::new(move || {
            [vec![root], process::descendants(&[root], &process::all().unwrap_or_default())]
                .concat()
        });
        let mut streams = std::mem::take(&mut self.streams);
        let until = [self.limits.until, options.until].into_iter().flatten().min();
        let options = MetricOptions { until, ..options.clone() };
        let cancelled = || !matches!(self.check(), Ok(()) | Err(ProbeError::Expired { .. }));
        let opened = spec.open(&options, &mut streams, pids, &cancelled);
        if matches!(opened, Err(MetricError::Closed { .. })) {
            self.pause(ENDING);
        }
        // If the program ended, the metric has no number because of that.
        match (self.check(), opened) {
            (Err(ProbeError::Expired { .. }), Err(error)) => Err(ProbeError::Unmetered(error)),
            (checked, opened) => checked.and(opened.map_err(ProbeError::from)),
        }
    }

    /// Watches from the start to the end, or only waits for the end. It has to come within `limit`.
    pub(in crate::prober) fn run_through(
        &mut self,
        limit: Duration,
        metric: &RunMetric,
        mut layer_choice: Option<&mut LayerChoice>,
    ) -> Result<Observation, ProbeError> {
        let mut monitor =
            layer_choice.as_deref().map(|layer_choice| self.monitor(layer_choice)).transpose()?;
        // A prober that only waits counts threads between slices.
        let mut slice = Duration::from_millis(10);
        let mut stretch = FIRST_STRETCH;
        let mut all: Option<Activity> = None;
        loop {
            let left = limit.saturating_sub(self.begin.elapsed());
            let (seen, ended) = match &mut monitor {
                Some(monitor) => {
                    let most = monitor.pace() * LOOKS;
                    let slice =
                        if monitor.layer() == Layer::Proc { most } else { stretch.min(most) };
                    stretch = (stretch * 2).min(most);
                    let (seen, ended) =
                        self.watch_to_its_end(monitor, slice.min(left), &|| false)?;
                    (Some(seen), ended)
                }
                None => {
                    self.pause(slice);
                    (None, self.check().err())
                }
            };
            let elapsed = self.begin.elapsed();
            all = match (all, seen) {
                (Some(before), Some(seen)) => Some(join(before, seen)),
                (before, seen) => before.or(seen),
            };
            // The cost of beginning does not show the cost of going on. The run as a whole is
            // judged at its end.
            if let (Some(all), Some(layer_choice), Some(watching)) =
                (&all, &mut layer_choice, &mut monitor)
                && layer_choice.foresee(all)
            {
                watching.rest().map_err(|cause| self.unreadable(cause))?;
                if ended.is_none() {
                    *watching = self.monitor(layer_choice)?;
                }
            }
            match ended {
                None => {}
                Some(ProbeError::Short { ran, .. }) => {
                    let mut activity = all.unwrap_or_else(|| Activity::none(ran));
                    // Nothing is known of a thread that was read once.
                    activity.threads.retain(|thread| !thread.elapsed.is_zero());
                    let seconds = ran.as_secs_f64();
                    let shown = match &self.running {
                        Some(running) => metric.of_run(&self.name, running, &self.output)?,
                        None => None,
                    };
                    let (rate, measure, unit) = match shown {
                        Some((rate, unit)) => (rate, Measure::Metric, unit),
                        None => (1.0 / seconds, Measure::Runs, Unit::cost("s")),
                    };
                    let run = (Progress { rate, error: None, measure }, unit);
                    let window = self.window_of((activity, None), Duration::ZERO, run);
                    return Ok(Observation { seconds: Some(seconds), ..window });
                }
                Some(error) => return Err(error),
            }
            if elapsed >= limit {
                return Err(ProbeError::Long { name: self.name.clone(), n: self.parameter, limit });
            }
            slice = (slice * 2).min(Duration::from_millis(100));
        }
    }

    fn monitor(&self, layer_choice: &LayerChoice) -> Result<Monitor, ProbeError> {
        layer_choice.monitor(Scope::Trees(vec![self.root])).map_err(|cause| self.unreadable(cause))
    }

    /// A monitor that is at work once the program has warmed up for its window. Files are open,
    /// layers attached, and what context switches cost is known.
    fn warmed(
        &self,
        window: Duration,
        layer_choice: &mut LayerChoice,
    ) -> Result<Monitor, ProbeError> {
        loop {
            let mut monitor = self.monitor(layer_choice)?;
            let seen = self.watch(&mut monitor, warm_up(window), &|| false)?;
            if !layer_choice.foresee(&seen) {
                return Ok(monitor);
            }
            monitor.rest().map_err(|cause| self.unreadable(cause))?;
        }
    }

    /// Watches for `window`, or until `done`.
    fn watch(
        &self,
        monitor: &mut Monitor,
        window: Duration,
        done: &dyn Fn() -> bool,
    ) -> Result<Activity, ProbeError> {
        match self.watch_to_its_end(monitor, window, done)? {
            (_, Some(error)) => Err(error),
            (seen, None) => Ok(seen),
        }
    }

    /// The same, with what was seen before the probe could not go on.
    fn watch_to_its_end(
        &self,
        monitor: &mut Monitor,
        window: Duration,
        done: &dyn Fn() -> bool,
    ) -> Result<(Activity, Option<ProbeError>), ProbeError> {
        let failed = RefCell::new(None);
        let stop = || {
            let checked = self.check();
            let stop = done() || checked.is_err();
            failed.replace(checked.err());
            stop
        };
        let seen = monitor
            .watch(window, &|time| self.pause(time), &stop)
            .map_err(|cause| self.unreadable(cause))?;
        Ok((seen, failed.into_inner()))
    }

    fn window_of(
        &self,
        halves: (Activity, Option<Activity>),
        initialization: Duration,
        progress: (Progress, Unit),
    ) -> Observation {
        // Processes that were started since the family was last looked up count as well.
        let most = self.most_threads.get().max(threads_of(&self.processes()));
        Observation::new(halves, most, initialization, progress)
    }

    fn executed(&self) -> Option<f64> {
        self.instructions.as_ref()?.read().ok().map(|count| count as f64)
    }
}

/// The CPU time that threads had per second, over two stretches that follow each other.
fn cpu_time(one: &Activity, other: &Activity) -> Result<ReadingSummary, RateError> {
    let start = Reading { value: 0.0, seconds: 0.0 };
    let after = |before: Reading, stretch: &Activity| Reading {
        value: before.value + stretch.ran().as_secs_f64(),
        seconds: before.seconds + stretch.elapsed.as_secs_f64(),
    };
    let half = after(start, one);
    rate(&[start, half, after(half, other)])
}

fn warm_up(window: Duration) -> Duration {
    (window / 5).max(LEAST_WARM_UP)
}
