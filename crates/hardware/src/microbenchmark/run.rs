//! One set of programs on its contexts, each on a separate thread.
//!
//! The first program, the *reference*, never stops. The others pause one after the other. A
//! slowdown compares the reference's time next to them with its time in their pauses. Both use the
//! same memory and are tens of milliseconds apart. So frequency, neighbours on the same server and
//! page placement are the same. Runs that are seconds apart would take changes of these for
//! slowdowns.
//!
//! Phases alternate as together, alone, alone, together, …, so that a drift cancels too. The middle
//! half of the ratios of all pairs counts. A short disturbance by a neighbour falls into one pair
//! and is left out.
//!
//! After a change of phase, nothing counts until the caches have settled. That takes almost no time
//! for a working set in the second level. For a last-level cache it takes a few times the age of
//! the oldest line.

use super::cpu_time::timed;
use super::kernel;
use super::loaded_program::{BenchmarkProgram, LoadedProgram};
use pinwise_measure::{Fame, Interrupt, MeasureError, Pace, Retry};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Phases and settling for a reference that stays within its second level.
const NEAR: TurnPlan = TurnPlan { pairs: 4, settling: Duration::from_millis(8) };
/// For a reference that does not.
const FAR: TurnPlan = TurnPlan { pairs: 6, settling: Duration::from_millis(32) };
/// Repetitions in a phase.
const PHASE: usize = 6;
/// Most repetitions if a stressor takes long for one. On a busy machine it may not have its context
/// at all meanwhile.
const LONGEST_PHASE: usize = 15;
/// Most pairs of phases if a program does not become steady. Neighbours on the same server change
/// what it gets.
const MOST_PAIRS: usize = 12;
/// A set of programs that takes longer than this shares the machine with others.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a program that pauses looks whether it is to go on.
const LOOK: Duration = Duration::from_micros(200);

/// How a reference and its stressors take turns.
#[derive(Clone, Copy, Debug)]
struct TurnPlan {
    /// Phases together, and as many alone, at least.
    pairs: usize,
    /// What does not count after a change.
    settling: Duration,
}

impl TurnPlan {
    fn of(program: BenchmarkProgram) -> Self {
        if program.far { FAR } else { NEAR }
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// The mean of the middle half of `values`, at least one value.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let out = values.len() / 4;
    mean(&values[out..values.len() - out])
}

/// What stressors are to do.
mod state {
    /// Run; nothing counts yet.
    pub(super) const SETTLE: u8 = 0;
    /// Run, and count.
    pub(super) const TOGETHER: u8 = 1;
    /// Pause.
    pub(super) const ALONE: u8 = 2;
    /// End.
    pub(super) const OVER: u8 = 3;
}

/// What the threads of one run know of each other.
pub(super) struct BenchmarkRun<'a> {
    cancelled: &'a Interrupt,
    programs: usize,
    began: Instant,
    /// Threads that have their memory.
    prepared: AtomicUsize,
    /// Threads that know how much of it to use: one after the other, while the machine is
    /// otherwise quiet.
    fitted: AtomicUsize,
    /// Threads that are about to run.
    ready: AtomicUsize,
    state: AtomicU8,
    /// Repetitions of stressors in this phase.
    counted: AtomicUsize,
    /// Stressors that made enough repetitions.
    done: AtomicUsize,
    /// One of the threads cannot go on.
    failed: AtomicBool,
    /// Why the first of them could not.
    error: Mutex<Option<MeasureError>>,
}

/// Times per operation of some repetitions, and how much of the time the program had its context.
#[derive(Default)]
struct RepetitionTimes {
    times: Vec<f64>,
    had: Duration,
    passed: Duration,
}

impl<'a> BenchmarkRun<'a> {
    pub(super) fn new(programs: usize, cancelled: &'a Interrupt) -> Self {
        Self {
            cancelled,
            programs,
            began: Instant::now(),
            prepared: AtomicUsize::new(0),
            fitted: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            state: AtomicU8::new(state::SETTLE),
            counted: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    /// Ends the run because of `error`. The others then end with errors of their own, which say
    /// less.
    pub(super) fn fail(&self, error: &MeasureError) {
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert_with(|| error.clone());
        }
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Why it ended, if not properly.
    pub(super) fn error(self) -> Option<MeasureError> {
        self.error.into_inner().ok().flatten()
    }

    fn check(&self) -> Result<(), MeasureError> {
        if self.cancelled.came() {
            return Err(MeasureError::interrupted());
        }
        if self.failed.load(Ordering::Relaxed) || self.began.elapsed() > PATIENCE {
            let message =
                format!("the set of programs did not end within {} s", PATIENCE.as_secs());
            return Err(MeasureError::new(Retry::Same, message));
        }
        Ok(())
    }

    fn wait(&self, until: impl Fn() -> bool) -> Result<(), MeasureError> {
        while !until() {
            self.check()?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn wait_for(&self, counter: &AtomicUsize, value: usize) -> Result<(), MeasureError> {
        self.wait(|| counter.load(Ordering::Relaxed) >= value)
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    /// Everything that the thread of seat `index` does once it is where it belongs and has its
    /// memory.
    pub(super) fn work(
        &self,
        index: usize,
        program: BenchmarkProgram,
        mut load: LoadedProgram,
        fame: &Fame,
    ) -> Result<Pace, MeasureError> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        self.wait_for(&self.prepared, self.programs)?;
        self.wait_for(&self.fitted, index)?;
        load.fit();
        self.fitted.fetch_add(1, Ordering::Relaxed);
        self.wait_for(&self.fitted, self.programs)?;
        load.warm_up();
        let passes = load.calibrate();
        self.ready.fetch_add(1, Ordering::Relaxed);
        let operations = passes * kernel::operations(program.kind);
        let mut repeat = Repeat { run: self, load, passes, operations };
        // Nobody stands still until all are ready: a stressor's calibration sees the others, as its
        // repetitions will.
        while self.ready.load(Ordering::Relaxed) < self.programs {
            repeat.once()?;
        }
        match (index, self.programs) {
            (0, 1) => repeat.alone(TurnPlan::of(program), fame),
            (0, _) => repeat.lead(TurnPlan::of(program), fame),
            _ => repeat.follow(fame),
        }
    }
}

/// A program that is repeated in its run.
struct Repeat<'a> {
    run: &'a BenchmarkRun<'a>,
    load: LoadedProgram,
    passes: u64,
    /// Of a repetition.
    operations: u64,
}

impl Repeat<'_> {
    /// One repetition: the CPU time it took, and the time that passed.
    fn once(&mut self) -> Result<(Duration, Duration), MeasureError> {
        self.run.check()?;
        let began = Instant::now();
        let time = timed(|| self.load.run(self.passes));
        Ok((time, began.elapsed()))
    }

    fn counted(&mut self, series: &mut RepetitionTimes) -> Result<(), MeasureError> {
        let repetition = self.once()?;
        self.add(series, repetition);
        Ok(())
    }

    fn add(&self, series: &mut RepetitionTimes, (time, passed): (Duration, Duration)) {
        series.times.push(time.as_nanos() as f64 / self.operations as f64);
        series.had += time;
        series.passed += passed;
    }

    fn settle(&mut self, settling: Duration) -> Result<(), MeasureError> {
        let began = Instant::now();
        while began.elapsed() < settling {
            self.once()?;
        }
        Ok(())
    }

    /// A reference without stressors.
    fn alone(&mut self, turns: TurnPlan, fame: &Fame) -> Result<Pace, MeasureError> {
        self.settle(turns.settling)?;
        let mut series = RepetitionTimes::default();
        while !fame.over(&series.times) {
            self.counted(&mut series)?;
        }
        self.pace(&series, fame)
    }

    /// A reference with stressors: it decides on the phases.
    fn lead(&mut self, turns: TurnPlan, fame: &Fame) -> Result<Pace, MeasureError> {
        let (mut together, mut alone) = (RepetitionTimes::default(), RepetitionTimes::default());
        // Of each pair of phases, the logarithm of the time together over that alone.
        let mut ratios = Vec::new();
        let mut steady = false;
        let stressors = self.run.programs - 1;
        for pair in 0..MOST_PAIRS {
            let order = [state::TOGETHER, state::ALONE];
            let order = if pair % 2 == 0 { order } else { [order[1], order[0]] };
            let before = [&together, &alone].map(|series| series.times.len());
            for phase in order {
                self.run.counted.store(0, Ordering::Relaxed);
                if self.run.state() != phase {
                    let settling = if phase == state::ALONE { phase } else { state::SETTLE };
                    self.run.state.store(settling, Ordering::Relaxed);
                    self.settle(turns.settling)?;
                    self.run.state.store(phase, Ordering::Relaxed);
                }
                let series = if phase == state::ALONE { &mut alone } else { &mut together };
                for made in 0..LONGEST_PHASE {
                    let waits = phase == state::TOGETHER
                        && self.run.counted.load(Ordering::Relaxed) < stressors;
                    if made >= PHASE && !waits {
                        break;
                    }
                    self.counted(series)?;
                }
            }
            ratios
                .push((mean(&together.times[before[0]..]) / mean(&alone.times[before[1]..])).ln());
            let all = self.run.done.load(Ordering::Relaxed) == stressors;
            steady |= fame.enough(&together.times);
            if pair + 1 >= turns.pairs && steady && all {
                break;
            }
        }
        self.run.state.store(state::OVER, Ordering::Relaxed);
        let pace = self.pace(&together, fame)?;
        Ok(Pace { alone: Some(pace.time / middle(ratios).exp()), steady, ..pace })
    }

    /// A stressor.
    fn follow(&mut self, fame: &Fame) -> Result<Pace, MeasureError> {
        let mut series = RepetitionTimes::default();
        // What did not fall into a phase as a whole. It is better than nothing on a busy machine,
        // where that may be all.
        let mut rest = RepetitionTimes::default();
        let (mut done, mut steady) = (false, false);
        loop {
            let before = self.run.state();
            match before {
                state::OVER if series.times.is_empty() => {
                    return self.pace(&rest, fame).map(|pace| Pace { steady: false, ..pace });
                }
                // Once steady, it only went on because others were not.
                state::OVER => return self.pace(&series, fame).map(|pace| Pace { steady, ..pace }),
                state::ALONE => self.run.wait(|| self.run.state() != state::ALONE)?,
                _ => {
                    let repetition = self.once()?;
                    if before == state::TOGETHER && self.run.state() == before {
                        self.add(&mut series, repetition);
                        self.run.counted.fetch_add(1, Ordering::Relaxed);
                    } else if series.times.is_empty() {
                        self.add(&mut rest, repetition);
                    }
                }
            }
            steady |= fame.enough(&series.times);
            if !done && fame.over(&series.times) {
                done = true;
                self.run.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn pace(&self, series: &RepetitionTimes, fame: &Fame) -> Result<Pace, MeasureError> {
        let share = (series.had.as_secs_f64() / series.passed.as_secs_f64().max(1e-9)).min(1.0);
        Pace::new(&series.times, self.operations, fame)
            .map(|pace| Pace { share, ..pace })
            .ok_or_else(|| {
                MeasureError::new(
                    Retry::Same,
                    "a stressor finished no repetition while it was measured: this machine is busy",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_pair_counts_for_nothing_and_a_small_number_counts_whole() {
        assert_eq!(middle(vec![1.0, 9.0, 1.2, 1.1]), 1.15);
        assert_eq!(middle(vec![1.0, 2.0, 4.5]), 2.5);
        assert_eq!(middle(vec![3.0]), 3.0);
    }
}
