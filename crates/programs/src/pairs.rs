//! [`PairsTestbed`]: programs that run to their end, alone or beside another one.
//!
//! Two programs run on one context each, with everything that they start. The one that ends is
//! started again at once, until both have enough runs by the rule of FAME. So each run is
//! accompanied from its begin to its end. What then still runs is ended, and does not count.
//!
//! *Counters.* While a program runs alone, its threads and those of its children are counted, ten
//! times a second. Threads that live for less than that may be missed. Counts per cycle need no
//! more than a fair sample.

use pinwise_counters::{CountError, CountSource, QuantumSeries, RunCounts};
use pinwise_figures::duration;
use pinwise_linux::{
    Exit, Guardian, GuardianEntry, Launch, LaunchedProgram, Output, RealtimeClass, TargetError,
    ThreadId, affinity, common_contexts, process::family_threads, thread::Tid,
};
use pinwise_measure::{
    AccompaniedRuns, Detail, Effort, EventCounts, Fame, Interrupt, MeasureError, Measurement,
    Retry, Setting, Testbed, Thread, Unit, Workload,
};
use pinwise_topology::{CpuSet, Machine};
use std::io;
use std::time::{Duration, Instant};

/// The longest sleep, so that a Ctrl-C is noticed.
const NAP: Duration = Duration::from_millis(20);
/// The time between two readings of counters.
const QUANTUM: Duration = Duration::from_millis(100);
/// Restarting a program takes some milliseconds, in which the other one is alone. This time must be
/// a small part of a run.
const BRIEF: Duration = Duration::from_millis(100);

/// Programs that run to their end, as a testbed. It measures a [`Setting::Profile`] of one or two.
pub struct PairsTestbed {
    programs: Vec<Launch>,
    names: Vec<String>,
    limit: Duration,
    /// What one measurement has of the budget; `None`: as long as it needs.
    share: Option<Duration>,
    cancelled: Interrupt,
    guardian: Guardian,
    machine: Machine,
    leaves: Vec<CpuSet>,
    workload: Workload,
    unit: Unit,
    counts: Option<Box<dyn CountSource>>,
    /// What they saw of each program alone.
    series: Vec<QuantumSeries<()>>,
}

/// A program on one side.
struct PairSide {
    name: String,
    launch: Launch,
    running: LaunchedProgram,
    exit: Exit,
    seconds: Vec<f64>,
    instance: usize,
    /// The threads that were counted last, and when.
    counted: (Vec<ThreadId>, Instant),
    counts: RunCounts,
    /// Why a thread could not be counted, the first time.
    uncounted: Option<CountError>,
}

impl PairsTestbed {
    /// When a program has enough runs. Each is a new process, so that only caches and files warm
    /// up: few runs do.
    pub const FAME: Fame = Fame { maiv: 0.05, least: 2, most: 8 };

    /// Of programs with short names. A run longer than `limit` fails. To raise `cancelled` ends any
    /// run within 20 ms.
    ///
    /// # Errors
    /// pinwise may use no context, or its guardian cannot be started.
    pub fn new(
        programs: Vec<(String, Launch)>,
        machine: &Machine,
        limit: Duration,
        cancelled: Interrupt,
    ) -> Result<Self, TargetError> {
        let mask = affinity::get(Tid(0))?;
        let (machine, leaves) = common_contexts(machine, "pinwise", &mask)?;
        let (names, programs): (Vec<String>, Vec<Launch>) = programs.into_iter().unzip();
        let thread = |(instance, name): (usize, &String)| Thread::new(name, name, instance);
        let threads = names.iter().enumerate().map(thread).collect();
        Ok(Self {
            series: vec![QuantumSeries::default(); names.len()],
            programs,
            workload: Workload { name: names.join(", "), threads },
            names,
            limit,
            share: None,
            cancelled,
            guardian: Guardian::start()?,
            machine,
            leaves,
            unit: Unit::cost("s"),
            counts: None,
        })
    }

    /// Programs alone are counted by this from now on.
    pub fn count(&mut self, counts: Box<dyn CountSource>) {
        self.counts = Some(counts);
    }

    /// Counts what the threads of a program did since the last time. Threads that have ended since
    /// then have their last counts.
    fn read_counts(&mut self, side: &mut PairSide) {
        let Some(source) = &mut self.counts else { return };
        let living = family_threads(&[side.running.pid()]);
        let mut threads = living.clone();
        threads.extend(side.counted.0.iter().filter(|&thread| !living.contains(thread)));
        let mut read: Vec<EventCounts> = Vec::new();
        for counts in source.read(&threads) {
            match counts {
                Ok(counts) => read.extend(counts),
                // A thread that cannot be read takes no count from the others.
                Err(error) => {
                    side.uncounted.get_or_insert(error);
                }
            }
        }
        side.counted = (living, Instant::now());
        let quantum = side.counts.take(&read, &source.events());
        // What is read at the end of a run is shorter.
        let whole = |counts: &EventCounts| counts.seconds >= QUANTUM.as_secs_f64() / 2.0;
        if let Some(quantum) = quantum.filter(whole) {
            self.series[side.instance].take((), &quantum);
        }
    }

    /// After this time a measurement ends with the fewest runs.
    pub fn share_out(&mut self, share: Duration) {
        self.share = Some(share);
    }

    /// Whether a program has enough runs, in a measurement that took its share or did not.
    fn enough(seconds: &[f64], spent: bool) -> bool {
        Self::FAME.over(seconds) || spent && seconds.len() >= Self::FAME.least
    }

    /// Starts a program on the contexts of its side.
    fn start(
        &mut self,
        name: &str,
        launch: &Launch,
    ) -> Result<(LaunchedProgram, Exit), TargetError> {
        let failed = |cause| TargetError::Proc { name: name.to_owned(), cause };
        let mut running = launch.start(&mut self.guardian)?;
        match running.streams().and_then(|_| running.exit()) {
            Ok(exit) => Ok((running, exit)),
            Err(cause) => {
                self.finish(name, running)?;
                Err(failed(cause))
            }
        }
    }

    /// Ends what is left of a program, and gives its number up.
    fn finish(&mut self, name: &str, mut running: LaunchedProgram) -> Result<(), TargetError> {
        running.end();
        // From here on its number may mean another process.
        let told = self.guardian.enter(&[GuardianEntry::Ended { pid: running.pid() }]);
        let waited = running.wait();
        told?;
        waited.map(drop).map_err(|cause| TargetError::Launch { program: name.to_owned(), cause })
    }

    fn begin(&mut self, setting: &Setting) -> Result<Vec<PairSide>, MeasureError> {
        let unsupported = || MeasureError::unsupported(&self.workload.name, setting);
        let Setting::Profile(parts) = setting else { return Err(unsupported()) };
        let mut planned = Vec::new();
        for part in parts {
            let launch = self.programs.get(part.instance).ok_or_else(unsupported)?;
            let leaves = part.leaves.iter().map(|&leaf| self.leaves.get(leaf as usize));
            let cpus = leaves.collect::<Option<Vec<_>>>().ok_or_else(unsupported)?;
            let cpus = cpus.into_iter().flat_map(CpuSet::iter).collect();
            let launch = Launch { cpus: Some(cpus), stdout: Output::Null, ..launch.clone() };
            planned.push((part.instance, launch));
        }
        let mut sides: Vec<PairSide> = Vec::new();
        for (instance, launch) in planned {
            let name = self.names[instance].clone();
            match self.start(&name, &launch) {
                Ok((running, exit)) => sides.push(PairSide {
                    name,
                    launch,
                    running,
                    exit,
                    seconds: Vec::new(),
                    instance,
                    counted: (Vec::new(), Instant::now()),
                    counts: RunCounts::default(),
                    uncounted: None,
                }),
                Err(error) => {
                    self.end(sides)?;
                    return Err(error.into());
                }
            }
        }
        Ok(sides)
    }

    /// Ends all that runs.
    fn end(&mut self, sides: Vec<PairSide>) -> Result<Vec<Vec<f64>>, TargetError> {
        let mut done = Ok(());
        let mut seconds = Vec::new();
        for side in sides {
            done = done.and(self.finish(&side.name, side.running));
            seconds.push(side.seconds);
        }
        done.map(|()| seconds)
    }

    /// Until each side has enough runs.
    fn follow(&mut self, sides: &mut [PairSide]) -> Result<(), TargetError> {
        let poll = |side: &PairSide, done: io::Result<bool>| {
            done.map_err(|cause| TargetError::Proc { name: side.name.clone(), cause })
        };
        let begin = Instant::now();
        let counts_alone = self.counts.is_some() && sides.len() == 1;
        if counts_alone {
            self.read_counts(&mut sides[0]);
        }
        loop {
            if counts_alone && sides[0].counted.1.elapsed() >= QUANTUM {
                self.read_counts(&mut sides[0]);
            }
            let spent = self.share.is_some_and(|share| begin.elapsed() >= share);
            if sides.iter().all(|side| Self::enough(&side.seconds, spent)) {
                return Ok(());
            }
            if self.cancelled.came() {
                return Err(MeasureError::interrupted().into());
            }
            if let Some(side) = sides.iter().find(|side| side.running.begin.elapsed() > self.limit)
            {
                let (name, limit) = (&side.name, duration(self.limit));
                let message = format!(
                    "{name} ran longer than the limit of {limit} and was ended: a program must \
                     end; raise --limit, or give it less work"
                );
                return Err(MeasureError::new(Retry::Never, message).into());
            }
            let exits: Vec<&Exit> = sides.iter().map(|side| &side.exit).collect();
            if !poll(&sides[0], Exit::any_within(&exits, NAP))? {
                continue;
            }
            // All are asked before any is started again, which takes a while.
            let mut ended = Vec::new();
            for (number, side) in sides.iter().enumerate() {
                if poll(side, side.exit.within(Duration::ZERO))? {
                    ended.push((number, side.running.begin.elapsed()));
                }
            }
            for (number, took) in ended {
                if counts_alone {
                    self.read_counts(&mut sides[number]);
                }
                self.again(&mut sides[number], took)?;
                if counts_alone {
                    self.read_counts(&mut sides[number]);
                }
            }
        }
    }

    /// Counts a run that has ended, and begins the next one. Only then it looks after what the
    /// ended one left: the other program is not alone meanwhile.
    fn again(&mut self, side: &mut PairSide, took: Duration) -> Result<(), TargetError> {
        if let Some(status) = side.running.status().filter(|status| !status.success()) {
            return Err(side.running.ended(&side.name, status));
        }
        if took < BRIEF {
            let message = format!(
                "{} ends {} after its start, too soon to run beside another program: give it more \
                 work (a larger input, more repetitions)",
                side.name,
                duration(took)
            );
            return Err(MeasureError::new(Retry::Never, message).into());
        }
        side.seconds.push(took.as_secs_f64());
        let (running, exit) = self.start(&side.name, &side.launch)?;
        side.exit = exit;
        self.finish(&side.name, std::mem::replace(&mut side.running, running))
    }
}

impl Testbed for PairsTestbed {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The performance is that of the first program.
    fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        let _punctual = RealtimeClass::raise();
        let begin = Instant::now();
        let mut sides = self.begin(setting)?;
        let done = self.follow(&mut sides);
        let (mut alone, mut uncounted) = (None, None);
        if let [side] = &mut sides[..] {
            alone = side.counts.total().cloned().map(|counts| (side.instance, counts));
            uncounted = side.uncounted.take().map(|error| (side.name.clone(), error));
        }
        let ended = self.end(sides);
        done?;
        let seconds = ended?;
        if let (None, Some((name, error))) = (&alone, uncounted) {
            let message = format!("nothing of {name} could be counted: {error}");
            return Err(MeasureError::new(Retry::Never, message));
        }
        let first = seconds.first().map(|runs| runs.iter().sum::<f64>() / runs.len() as f64);
        let performance = first.map_or(0.0, |mean| 1.0 / mean);
        let measured = Measurement::new(performance, begin.elapsed());
        let mut runs = AccompaniedRuns { seconds, ..AccompaniedRuns::default() };
        if let Some((instance, counts)) = alone {
            runs.counts.push(counts);
            runs.counters.extend(self.series[instance].quality());
        }
        Ok(Measurement { detail: Detail::of(&runs), ..measured })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_that_took_its_share_of_the_budget_ends_with_the_fewest_runs() {
        let uneven = [1.0, 2.0, 4.0];
        for (runs, of_fame, spent) in [(1, false, false), (2, false, true), (3, false, true)] {
            assert_eq!(PairsTestbed::enough(&uneven[..runs], false), of_fame);
            assert_eq!(PairsTestbed::enough(&uneven[..runs], true), spent);
        }
    }
}
