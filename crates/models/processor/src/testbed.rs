//! A simulated processor as something to measure assignments on.
//!
//! **A measurement** runs the packet pipelines from a random start. Each thread begins within the
//! first 4,096 cycles and draws its jitter from its own seed. A quarter of the window passes
//! unmeasured. Then packets of each instance are counted from the last one before the window to the
//! last one in it. Both have even numbers if possible. Draws come in pairs that compensate for each
//! other, so pairs of packets differ much less than packets. Performance is packets per second of
//! virtual time, all instances together. Each of several *starts* has its own window, and the mean
//! counts. Most assignments give the same from every start. In some, threads that share a pipe or
//! the divide unit fall into one of several rhythms. They keep it for hundreds of packets. A longer
//! window adds little there. So more starts are added, up to [`MOST_STARTS`], until their mean is
//! known to within [`CERTAIN`]. A single start has nothing to differ from.
//!
//! All chance comes from the testbed's seed and the number of the measurement in its campaign. A
//! campaign repeats bit for bit, and measuring the same assignment again gives another start, as on
//! a real machine.
//!
//! **A profile** is measured the same way, with only copies of its instances on the chip. The
//! packets of the first one count.
//!
//! **Ready instances.** Where only some of the instances run at a time
//! ([`SimulatedTestbed::of_ready`]), only the instances of a profile run. Their performance is the
//! weighted speedup: the sum of packets per second, each divided by that of the instance alone.
//!
//! **Beside each other.** Where programs are compared in pairs ([`SimulatedTestbed::of_pairs`]),
//! only profiles are measured. They also tell what a packet of each instance takes
//! ([`AccompaniedRuns`]).
//!
//! **Unpinned.** There is no operating system in the model. Its default is what the studies compare
//! with (BlackBox scheduler, section 4.4): a *balanced* placement. It spreads the threads evenly
//! over cores and, within a core, over pipes. The load balancers of Linux and Solaris do the same.
//! Chance decides which threads end up together. Each measurement draws another one.

mod window;

pub use window::SimulatedWindow;

use crate::parallel;
use crate::program::{PacketPipeline, PacketProgram};
use crate::{ClockMode, PlacedThread, PlacementError, Processor, StrandCounters, UnplacedJob};
use pinwise_measure::{
    AccompaniedRuns, Detail, Effort, MeasureError, Measurement, PinnedInstance, Retry, Setting,
    Testbed, Time, Unit, Workload,
};
use pinwise_topology::{Alike, CpuId, Machine, Random, SharingTree, balanced};
use std::borrow::Cow;
use std::time::Duration;

/// The relative standard error of a mean of starts from which no more starts are needed.
const CERTAIN: f64 = 0.003;
/// The most starts of a measurement, unless more were asked for. Starts that never agree would take
/// a hundred.
const MOST_STARTS: u32 = 16;

/// Threads begin within this many cycles.
const LATEST_START: u64 = 4096;

/// Packet pipelines on a simulated processor.
#[derive(Clone, Debug)]
pub struct SimulatedTestbed {
    processor: Processor,
    machine: Machine,
    tree: SharingTree,
    programs: Vec<PacketPipeline>,
    workload: Workload,
    unit: Unit,
    unplaced: UnplacedJob,
    profile: ProfileKind,
    window: SimulatedWindow,
    seed: u64,
    /// The number of the next measurement.
    number: u64,
    /// How many simulations run at once.
    at_once: usize,
}

/// What the performance of a profile is.
#[derive(Clone, Debug)]
enum ProfileKind {
    /// That of its first instance.
    First,
    /// The weighted speedup over what each instance does alone, in packets/s.
    Weighted(Vec<f64>),
    /// That of all its instances, and the times of each as a detail.
    Each,
}

impl SimulatedTestbed {
    /// One instance of each of `programs` on `processor`. It may run on the allowed contexts of
    /// `machine`, which has the contexts of [`Processor::machine`]. Error: there are more threads
    /// than contexts.
    pub fn new(
        processor: Processor,
        machine: Machine,
        programs: Vec<impl Into<PacketPipeline>>,
        window: SimulatedWindow,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let programs: Vec<PacketPipeline> = programs.into_iter().map(Into::into).collect();
        let contexts = machine.allowed.len();
        let threads = PacketProgram::workload(&programs).threads.len();
        if threads > contexts {
            let instead = match contexts * programs.len() / threads {
                0 => "ask for fewer processing threads".to_owned(),
                fit => format!("ask for at most {fit} instances"),
            };
            return Err(MeasureError::new(
                Retry::Never,
                format!(
                    "{threads} threads do not fit on the {contexts} contexts of {}: a simulated \
                     context runs one thread; {instead}",
                    processor.name
                ),
            ));
        }
        Self::of(processor, machine, programs, ProfileKind::First, window, seed)
    }

    /// Instances of `programs` beside each other. Only a [`Setting::Profile`] can be measured. All
    /// together they need not fit.
    pub fn of_pairs(
        processor: Processor,
        machine: Machine,
        programs: Vec<impl Into<PacketPipeline>>,
        window: SimulatedWindow,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        Self::of(processor, machine, programs, ProfileKind::Each, window, seed)
    }

    /// Ready instances of `programs`. A [`Setting::Profile`] runs some of them. Its performance is
    /// their weighted speedup over `alone`, what each instance does alone in packets/s. All
    /// together they need not fit.
    pub fn of_ready(
        processor: Processor,
        machine: Machine,
        programs: Vec<impl Into<PacketPipeline>>,
        alone: Vec<f64>,
        window: SimulatedWindow,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        Self::of(processor, machine, programs, ProfileKind::Weighted(alone), window, seed)
    }

    fn of(
        processor: Processor,
        machine: Machine,
        programs: Vec<impl Into<PacketPipeline>>,
        profile: ProfileKind,
        window: SimulatedWindow,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let programs: Vec<PacketPipeline> = programs.into_iter().map(Into::into).collect();
        let workload = PacketProgram::workload(&programs);
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let unplaced =
            UnplacedJob::new(&processor, &PacketProgram::job(&programs)).map_err(broken)?;
        let weighted = matches!(profile, ProfileKind::Weighted(_));
        let unit = Unit::rate(if weighted { "times alone" } else { "packets/s" });
        Ok(Self {
            processor,
            machine,
            tree,
            programs,
            workload,
            unit,
            unplaced,
            profile,
            window,
            seed,
            number: 0,
            at_once: parallel::host_threads(),
        })
    }

    /// Measurement `number` of `setting`. Up to `at_once` starts run at once; this does not change
    /// the result.
    fn simulate(
        &self,
        number: u64,
        (setting, effort): &(Setting, Effort),
        at_once: usize,
    ) -> Result<Measurement, MeasureError> {
        let mut random =
            Random::new(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
        // What a packet of each thread counts.
        let whole = || vec![1.0; self.workload.threads.len()];
        let (unplaced, leaves, weights) = match setting {
            Setting::Pinned(assignment) => {
                (Cow::Borrowed(&self.unplaced), assignment.leaves().to_vec(), whole())
            }
            Setting::Unpinned => {
                let assignment = balanced(&self.tree, self.workload.threads.len(), &mut random);
                (Cow::Borrowed(&self.unplaced), assignment.leaves().to_vec(), whole())
            }
            Setting::Profile(parts) => {
                let programs =
                    parts.iter().map(|part| self.programs.get(part.instance).copied()).collect();
                let programs: Option<Vec<PacketPipeline>> = programs;
                let message = "a profile of an instance that the workload does not have";
                let job = PacketProgram::job(
                    &programs.ok_or_else(|| MeasureError::new(Retry::Other, message))?,
                );
                let unplaced = UnplacedJob::new(&self.processor, &job).map_err(broken)?;
                let leaves = parts.iter().flat_map(|part| part.leaves.iter().copied()).collect();
                let weight = |number: usize, part: &PinnedInstance| match &self.profile {
                    ProfileKind::Weighted(alone) => {
                        alone.get(part.instance).map_or(0.0, |alone| 1.0 / alone)
                    }
                    ProfileKind::Each => 1.0,
                    ProfileKind::First if number == 0 => 1.0,
                    ProfileKind::First => 0.0,
                };
                let numbered = parts.iter().enumerate();
                let weights = numbered
                    .flat_map(|(number, part)| vec![weight(number, part); part.leaves.len()]);
                (Cow::Owned(unplaced), leaves, weights.collect())
            }
            other => return Err(MeasureError::unsupported(&self.workload.name, other)),
        };
        let contexts =
            leaves.iter().map(|&leaf| self.context(leaf)).collect::<Option<Vec<usize>>>();
        let contexts = contexts
            .ok_or_else(|| MeasureError::new(Retry::Other, "a context that is not allowed"))?;
        let cycles = ((self.window.cycles as f64 * effort.windows).round() as u64).max(1);
        let least = self.window.starts.max(1) as usize;
        let mut rates: Vec<f64> = Vec::with_capacity(least);
        let mut of_threads: Vec<Vec<f64>> = Vec::with_capacity(least);
        let more = |rates: &[f64]| {
            rates.len() < least || (rates.len() < MOST_STARTS as usize && !certain(rates))
        };
        while more(&rates) {
            let wanted = least.saturating_sub(rates.len()).max(1);
            // Starts that turn out to be unnecessary ran on processors that were otherwise idle.
            let count = wanted
                .next_multiple_of(at_once)
                .min((MOST_STARTS as usize).max(least) - rates.len());
            let starts: Vec<_> = (0..count).map(|_| start(&contexts, &mut random)).collect();
            let run = |placed: &Vec<PlacedThread>| self.run(&unplaced, placed, cycles);
            for of_each in parallel::map(&starts, at_once, run) {
                let of_each = of_each.map_err(broken)?;
                if more(&rates) {
                    rates.push(
                        of_each.iter().zip(&weights).map(|(rate, weight)| rate * weight).sum(),
                    );
                    of_threads.push(of_each);
                }
            }
        }
        let (mean, spread) = mean_and_spread(&rates);
        if mean == 0.0 {
            let message = format!(
                "no instance finished two packets in {cycles} cycles; simulate more of them \
                 (--cycles)"
            );
            return Err(MeasureError::new(Retry::Never, message));
        }
        let duration = Duration::from_secs_f64(self.seconds(cycles * rates.len() as u64));
        let detail = match (setting, &self.profile) {
            (Setting::Profile(parts), ProfileKind::Each) => {
                let runs = of_each(parts, &of_threads);
                if runs.seconds.iter().flatten().any(|seconds| !seconds.is_finite()) {
                    let message = format!(
                        "an instance finished no packet in {cycles} cycles; simulate more of them \
                         (--cycles)"
                    );
                    return Err(MeasureError::new(Retry::Never, message));
                }
                Detail::of(&runs)
            }
            _ => None,
        };
        Ok(Measurement { performance: mean, duration, spread, detail })
    }

    /// Packets per second of each thread, from one start.
    fn run(
        &self,
        unplaced: &UnplacedJob,
        placed: &[PlacedThread],
        cycles: u64,
    ) -> Result<Vec<f64>, PlacementError> {
        let mut chip = unplaced.place(placed, ClockMode::Events)?;
        chip.run(LATEST_START + cycles / 4);
        let before = chip.counters();
        chip.run(cycles);
        let rate = |(before, after): (&StrandCounters, &StrandCounters)| {
            let (packets, pairs) = (after.work - before.work, after.work / 2 - before.work / 2);
            match packets {
                0 => 0.0,
                _ if before.work >= 2 && pairs > 0 => {
                    2.0 * pairs as f64 / self.seconds(after.paired_at - before.paired_at)
                }
                // No pair in the window, or none before it.
                _ => packets as f64 / self.seconds(after.worked_at - before.worked_at),
            }
        };
        Ok(before.iter().zip(&chip.counters()).map(rate).collect())
    }

    fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / (f64::from(self.processor.clock_mhz) * 1e6)
    }

    /// The context of a leaf of the tree.
    fn context(&self, leaf: u32) -> Option<usize> {
        let CpuId(context) = *self.tree.leaves().get(leaf as usize)?;
        Some(context as usize)
    }
}

/// The seconds of a packet of each instance, from each start: `rates` are those of its threads.
fn of_each(parts: &[PinnedInstance], rates: &[Vec<f64>]) -> AccompaniedRuns {
    let mut next = 0;
    let mut threads = parts.iter().map(|part| {
        next += part.leaves.len();
        next - part.leaves.len()..next
    });
    let seconds = |own: std::ops::Range<usize>| {
        rates.iter().map(|rates| 1.0 / rates[own.clone()].iter().sum::<f64>()).collect()
    };
    AccompaniedRuns { seconds: threads.by_ref().map(seconds).collect(), ..Default::default() }
}

/// A start drawn by chance.
fn start(contexts: &[usize], random: &mut Random) -> Vec<PlacedThread> {
    let place = |&context: &usize| PlacedThread {
        context,
        start: random.below(LATEST_START),
        seed: random.bits(),
    };
    contexts.iter().map(place).collect()
}

/// Mean, and standard deviation of two rates or more.
fn mean_and_spread(rates: &[f64]) -> (f64, Option<f64>) {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (mean, (rates.len() > 1).then(|| (squares / (rates.len() - 1) as f64).sqrt()))
}

/// Whether more rates would hardly move the mean, as far as can be seen.
fn certain(rates: &[f64]) -> bool {
    let (mean, spread) = mean_and_spread(rates);
    spread.is_none_or(|spread| spread <= CERTAIN * mean * (rates.len() as f64).sqrt())
}

fn broken(error: PlacementError) -> MeasureError {
    MeasureError::new(Retry::Other, error.to_string())
}

impl SimulatedTestbed {
    /// How long a measurement takes at least, by the model's own clock. A quarter of a window
    /// passes before packets are counted.
    pub fn each(&self) -> Duration {
        let SimulatedWindow { cycles, starts } = self.window;
        Duration::from_secs_f64(1.25 * self.seconds(cycles) * f64::from(starts))
    }
}

impl Testbed for SimulatedTestbed {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let number = self.number;
        self.number += 1;
        self.simulate(number, &(setting.clone(), effort), self.at_once)
    }

    fn profiles(&self) -> bool {
        true
    }

    fn time(&self) -> Time {
        // Measurements take three to sixteen starts. With eight per processor, few processors idle
        // while the last one ends.
        Time::Virtual { width: 8 * self.at_once }
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        let first = self.number;
        self.number += trials.len() as u64;
        let numbered: Vec<_> = (first..).zip(trials).collect();
        let each = (self.at_once / trials.len().max(1)).max(1);
        parallel::map(&numbered, self.at_once, |&(number, trial)| {
            self.simulate(number, trial, each)
        })
    }
}

#[cfg(test)]
mod tests;
