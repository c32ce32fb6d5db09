//! Two programs on a simulated core as something to measure pairs on.
//!
//! **A measurement** runs one program or two from several *starts*. Each start draws its own stream
//! of micro-operations. Half of the window passes before anything counts: caches fill. A run is a
//! million micro-operations; its time follows from the rate of the window.
//!
//! All chance comes from the testbed's seed and the number of the measurement in its campaign.

use crate::{CounterValues, SmtCore, StreamProgram, events};
use pinwise_measure::{
    AccompaniedRuns, CounterEvent, Detail, Effort, EventCounts, MeasureError, Measurement, Retry,
    Setting, Testbed, Time, Unit, Workload,
};
use pinwise_topology::{Machine, Random};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// Micro-operations of a run.
const RUN: f64 = 1e6;

/// Programs on a simulated core.
#[derive(Clone, Debug)]
pub struct SmtTestbed {
    core: SmtCore,
    machine: Machine,
    programs: Vec<StreamProgram>,
    workload: Workload,
    unit: Unit,
    cycles: u64,
    starts: u32,
    seed: u64,
    /// The number of the next measurement.
    number: u64,
}

impl SmtTestbed {
    /// Cycles of a window that count, where nobody says.
    pub const CYCLES: u64 = 2_000_000;
    /// Starts of a measurement, where nobody says. Two show how runs vary.
    pub const STARTS: u32 = 2;

    /// Programs on this core.
    ///
    /// # Errors
    /// The core has no two contexts as a machine.
    pub fn new(
        core: SmtCore,
        programs: Vec<StreamProgram>,
        (cycles, starts): (u64, u32),
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let name: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        let roles: Vec<[&str; 1]> = name.iter().map(|name| [*name]).collect();
        let instances: Vec<&[&str]> = roles.iter().map(|roles| &roles[..]).collect();
        let workload = Workload::new(name.join(", "), &instances);
        let machine = core.machine()?;
        let unit = Unit::rate("micro-operations/s");
        Ok(Self { core, machine, programs, workload, unit, cycles, starts, seed, number: 0 })
    }

    /// What each program does, from each start.
    fn simulate(&self, programs: &[&StreamProgram], number: u64) -> Vec<Vec<CounterValues>> {
        let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
        let mut random = Random::new(seed);
        let seeds: Vec<u64> = (0..self.starts.max(1)).map(|_| random.bits()).collect();
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let start = |seed: u64| events(&self.core, programs, seed, self.cycles / 2, self.cycles);
        let some = seeds.chunks(at_once).flat_map(|seeds| {
            thread::scope(|scope| {
                let running: Vec<_> =
                    seeds.iter().map(|&seed| scope.spawn(move || start(seed))).collect();
                let end = |running: thread::ScopedJoinHandle<'_, Vec<CounterValues>>| {
                    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                running.into_iter().map(end).collect::<Vec<_>>()
            })
        });
        some.collect()
    }
}

impl CounterValues {
    /// As a counter's user sees them. `seconds`: the time of a cycle.
    pub fn counts(&self, seconds: f64) -> EventCounts {
        let counts = [
            (CounterEvent::Cycles, self.cycles),
            (CounterEvent::Instructions, self.micro_ops),
            (CounterEvent::Branches, self.branches),
            (CounterEvent::BranchMisses, self.mispredicted),
            (CounterEvent::FrontEndMisses, self.trace_misses),
            (CounterEvent::L1DataMisses, self.l1_misses),
            (CounterEvent::L2Misses, self.l2_misses),
            (CounterEvent::FpOperations, self.fp),
        ];
        EventCounts {
            seconds: self.cycles as f64 * seconds,
            counts: counts.map(|(event, count)| (event, count as f64)).into(),
            counted: 1.0,
        }
    }

    fn and(self, more: Self) -> Self {
        Self {
            cycles: self.cycles + more.cycles,
            micro_ops: self.micro_ops + more.micro_ops,
            branches: self.branches + more.branches,
            mispredicted: self.mispredicted + more.mispredicted,
            trace_misses: self.trace_misses + more.trace_misses,
            l1_misses: self.l1_misses + more.l1_misses,
            l2_misses: self.l2_misses + more.l2_misses,
            fp: self.fp + more.fp,
        }
    }
}

impl Testbed for SmtTestbed {
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
        let Setting::Profile(parts) = setting else {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        };
        // By context; the place of each among the parts.
        let by_leaf: BTreeMap<u32, usize> = (0..)
            .zip(parts)
            .filter_map(|(place, part)| Some((*part.leaves.first()?, place)))
            .collect();
        let programs = by_leaf.values().map(|&place| self.programs.get(parts[place].instance));
        let programs: Option<Vec<&StreamProgram>> = programs.collect();
        let placed = parts.len() == by_leaf.len() && (1..=2).contains(&parts.len());
        let Some(programs) = programs.filter(|_| placed) else {
            let message = "a core has two contexts, one for each of two programs that it knows";
            return Err(MeasureError::new(Retry::Other, message));
        };
        let mut simulated = self.clone();
        simulated.cycles = ((self.cycles as f64 * effort.windows).round() as u64).max(1);
        let starts = simulated.simulate(&programs, number);
        let cycle = 1e-9 / self.core.clock_ghz;
        let mut seconds = vec![Vec::new(); parts.len()];
        let mut counts = vec![CounterValues::default(); parts.len()];
        for start in &starts {
            for (context, &place) in by_leaf.values().enumerate() {
                seconds[place].push(RUN * cycle / start[context].per_cycle());
                counts[place] = counts[place].and(start[context]);
            }
        }
        if seconds.iter().flatten().any(|seconds| !seconds.is_finite()) {
            let message = "a program did nothing in its window; simulate more (--cycles)";
            return Err(MeasureError::new(Retry::Never, message));
        }
        let rate = |counts: &CounterValues| counts.per_cycle() / cycle;
        let performance = counts.iter().map(rate).sum();
        let window = (simulated.cycles * 3 / 2) as f64 * cycle * starts.len() as f64;
        let counts = counts.iter().map(|counts| counts.counts(cycle)).collect();
        Ok(Measurement {
            detail: Detail::of(&AccompaniedRuns { seconds, counts, ..Default::default() }),
            ..Measurement::new(performance, Duration::from_secs_f64(window))
        })
    }

    fn profiles(&self) -> bool {
        true
    }

    fn time(&self) -> Time {
        Time::Virtual { width: 1 }
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::PinnedInstance;

    fn measured(testbed: &mut SmtTestbed, programs: &[(usize, u32)]) -> AccompaniedRuns {
        let part =
            |&(instance, leaf): &(usize, u32)| PinnedInstance { instance, leaves: vec![leaf] };
        let setting = Setting::Profile(programs.iter().map(part).collect());
        let measured = testbed.measure(&setting, Effort::default()).unwrap();
        measured.detail.unwrap().read().unwrap()
    }

    #[test]
    fn runs_and_counts_are_those_of_the_simulation_on_the_context_of_each() {
        let programs: Vec<StreamProgram> = StreamProgram::spec2000().into_iter().take(2).collect();
        let core = SmtCore::northwood();
        let mut testbed = SmtTestbed::new(core.clone(), programs.clone(), (40_000, 2), 1).unwrap();
        assert_eq!(testbed.machine().contexts.len(), 2);
        let alone = measured(&mut testbed, &[(0, 0)]);
        let exchanged = measured(&mut testbed, &[(0, 1), (1, 0)]);
        assert_eq!(alone.seconds[0].len(), 2);
        for (seconds, counts) in exchanged.seconds.iter().zip(&exchanged.counts) {
            let rate = counts.per_cycle(CounterEvent::Instructions).unwrap();
            let expected = 1e6 / rate / 2.53e9;
            let mean = seconds.iter().sum::<f64>() / 2.0;
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean} {expected}");
        }
        assert!(exchanged.seconds[0][0] > alone.seconds[0][0]);
        // Another measurement has other starts, the same number the same.
        let again = measured(&mut testbed, &[(0, 0)]);
        assert_ne!(again, alone);
        testbed.seek(0);
        assert_eq!(measured(&mut testbed, &[(0, 0)]), alone);
        let nothing = testbed.measure(&Setting::Unpinned, Effort::default());
        assert_eq!(nothing.unwrap_err().retry, Retry::Never);
    }
}
