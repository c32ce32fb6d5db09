//! The model as something that can be probed.

use crate::accounting::Accounts;
use crate::kernel::Stuck;
use crate::other_programs::OtherPrograms;
use crate::platform::Platform;
use crate::program::{FittedCosts, ModelProgram};
use crate::simulation::Simulation;
use crate::time::Nanos;
use pinwise_measure::{
    Effort, Interrupt, Measure, MeasureError, Measurement, OtherLoad, Probe, Probed, Progress,
    Retry, RoleTime, SchedulingProfile, Setting, Testbed, ThreadCount, Time, Unit, Workload,
    mark_critical,
};
use pinwise_topology::{Machine, Random};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a probe waits before it looks. By then threads are created and pipelines are full. The
/// paper's probes begin "beyond the initial input reading phase of each application". Its length is
/// part of a description and of a probe's cost. Beside other programs, threads begin anywhere in
/// their class. They too have about their lasting shares by then.
const SETTLE: Nanos = Nanos(1_000_000_000);

/// Tells the seed of other programs from that of a run.
const OTHERS: u64 = 0x6f74_6865_7273;

/// Whether to go on is asked this often.
const SLICE: Nanos = Nanos(20_000_000);
/// Parts of a window, whose differences give the error of its progress.
const PARTS: u64 = 5;

/// Probes a modelled program: each probe restarts it with another seed.
#[derive(Clone, Debug)]
pub struct ModelProber {
    platform: Platform,
    program: ModelProgram,
    workload: Workload,
    unit: Unit,
    seed: u64,
    /// The ordinary length of a probe.
    window: Duration,
    /// What else runs on the machine.
    others: Vec<OtherPrograms>,
    /// How often each parameter was probed.
    probed: BTreeMap<u32, u64>,
    /// What all probes cost so far: the time of the search.
    time: Duration,
    cancelled: Interrupt,
}

impl ModelProber {
    /// Probes of `program` on `platform`, repeatable by `seed`.
    pub fn new(platform: Platform, program: ModelProgram, seed: u64) -> Self {
        let workload = Workload::new(&program.name, &[]);
        Self {
            platform,
            program,
            workload,
            // Work per second, in seconds of work.
            unit: Unit::rate("s/s"),
            seed,
            window: Duration::from_millis(100),
            others: Vec::new(),
            probed: BTreeMap::new(),
            time: Duration::ZERO,
            cancelled: Interrupt::default(),
        }
    }

    /// With another ordinary length of a probe than 100 ms.
    #[must_use]
    pub fn watching_for(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// Beside other programs. A probe has the bursts that are under way when it begins. The time
    /// that all probes before it cost decides. The program has run for long, as the others have.
    #[must_use]
    pub fn beside(self, others: Vec<OtherPrograms>) -> Self {
        Self { others, ..self }
    }

    /// Goes on after probes with these parameters and costs. The next probes have other random
    /// numbers.
    #[must_use]
    pub fn after(mut self, probes: impl IntoIterator<Item = (u32, Duration)>) -> Self {
        self.go_on_after(probes);
        self
    }

    /// As [`Self::after`].
    pub fn go_on_after(&mut self, probes: impl IntoIterator<Item = (u32, Duration)>) {
        for (parameter, cost) in probes {
            *self.probed.entry(parameter).or_default() += 1;
            self.time += cost;
        }
    }

    /// Raising `cancelled` ends a probe within a slice of the model's time.
    #[must_use]
    pub fn cancelled_by(self, cancelled: Interrupt) -> Self {
        Self { cancelled, ..self }
    }

    /// Lets the model go on from one moment to another, unless it is cancelled.
    fn advance(
        &self,
        simulation: &mut Simulation<'_>,
        from: Nanos,
        to: Nanos,
    ) -> Result<(), MeasureError> {
        let stuck = |stuck: Stuck| MeasureError::new(Retry::Other, stuck.to_string());
        let mut time = from;
        while time < to {
            if self.cancelled.came() {
                return Err(MeasureError::interrupted());
            }
            time = Nanos(time.0 + SLICE.0).min(to);
            simulation.advance(time).map_err(stuck)?;
        }
        Ok(())
    }
}

impl ModelProber {
    /// Starts the program with `parameter`, lets it settle, and watches it for `window`.
    pub fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probed, MeasureError> {
        let again = self.probed.entry(parameter).or_default();
        let seed = self.seed ^ u64::from(parameter) << 32 ^ *again << 48;
        *again += 1;
        let refused = |error: String| MeasureError::new(Retry::Other, error);
        let mut simulation = Simulation::endless(&self.platform, &self.program, parameter, seed)
            .map_err(|error| refused(error.to_string()))?;
        let fitted = &self.program.fitted;
        let initialization = Duration::from_secs_f64(fitted.initialization_s);
        if !self.others.is_empty() {
            let began = Nanos::from_seconds((self.time + initialization).as_secs_f64());
            simulation = simulation.beside(&self.others, began, self.seed ^ OTHERS).under_way();
        }
        let shown = ShownWork::of(fitted, seed);
        // As on a real machine, a probe begins once all threads are there.
        let threads = self.program.threads(parameter);
        let created = Nanos::from_millis(fitted.create_ms * f64::from(threads));
        let start = SETTLE + created;
        self.advance(&mut simulation, Nanos(0), start)?;
        let before = simulation.accounts();
        let part = Nanos::from_seconds(window.as_secs_f64() / PARTS as f64);
        let mut done = vec![shown.by(before.total().work)];
        for number in 0..PARTS {
            let begin = start + Nanos(part.0 * number);
            self.advance(&mut simulation, begin, begin + part)?;
            done.push(shown.by(simulation.accounts().total().work));
        }
        let rates: Vec<f64> =
            done.windows(2).map(|ends| (ends[1] - ends[0]).seconds() / part.seconds()).collect();
        let accounts = simulation.accounts().since(&before);
        let probe = Probe {
            parameter,
            threads,
            profile: profile(&accounts, self.platform.contexts()),
            progress: progress(&rates),
            cost: initialization + Duration::from_secs_f64((created + accounts.at).seconds()),
        };
        self.time += probe.cost;
        let of = accounts.at.seconds() * self.platform.contexts() as f64;
        let others = Some(OtherLoad::new(accounts.others.seconds(), of));
        let (unit, roles) = (self.unit.clone(), roles(&accounts));
        Ok(Probed { probe, unit, watts: None, roles, others, unwatched: None, below_floor: false })
    }
}

/// What a run shows of its work.
struct ShownWork {
    /// The speed of the run, as a share of the others'.
    speed: f64,
    /// Work from one report of progress to the next.
    every: Nanos,
    /// Work before the first report that is missing from `every`.
    before: Nanos,
}

impl ShownWork {
    fn of(fitted: &FittedCosts, seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let is_slow = random.unit() < fitted.slow_runs;
        let every = Nanos::from_seconds(fitted.report_every_s);
        Self {
            speed: if is_slow { fitted.slow_speed } else { 1.0 },
            every,
            before: Nanos((every.0 as f64 * random.unit()) as u64),
        }
    }

    fn by(&self, work: Nanos) -> Nanos {
        let work = match self.speed {
            1.0 => work,
            speed => Nanos((work.0 as f64 * speed) as u64),
        };
        match self.every {
            Nanos(0) => work,
            Nanos(every) => Nanos((work + self.before).0 / every * every),
        }
    }
}

impl Testbed for ModelProber {
    fn machine(&self) -> &Machine {
        self.platform.machine()
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Only [`Setting::Threads`], unpinned.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let Setting::Threads(ThreadCount { n: Some(parameter), placed: None, .. }) = *setting
        else {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        };
        let window = self.window.mul_f64(effort.windows);
        Ok(self.probe(parameter, window)?.measurement(window, None::<&()>))
    }

    fn time(&self) -> Time {
        Time::Virtual { width: 1 }
    }
}

/// The roles of a window, in the order in which the program creates them.
fn roles(window: &Accounts) -> Vec<RoleTime> {
    let mut names: Vec<&str> = Vec::new();
    for thread in &window.threads {
        if !names.contains(&thread.role.as_str()) {
            names.push(&thread.role);
        }
    }
    let time_of = |role: &str| {
        let account = window.role(role);
        let threads = window.threads.iter().filter(|thread| thread.role == role).count();
        let elapsed = account.elapsed().seconds();
        let share = |time: Nanos| if elapsed > 0.0 { time.seconds() / elapsed } else { 0.0 };
        let rate = |count: u64| if elapsed > 0.0 { count as f64 / elapsed } else { 0.0 };
        RoleTime {
            role: role.to_owned(),
            threads: threads as u32,
            ran: share(account.busy()),
            waited: share(account.latency),
            locked: Some(share(account.lock)),
            slept: share(account.sleep),
            voluntary_rate: rate(account.voluntary),
            involuntary_rate: rate(account.involuntary),
            migration_rate: Some(rate(account.migrations)),
            critical: false,
        }
    };
    let mut roles: Vec<RoleTime> = names.into_iter().map(time_of).collect();
    mark_critical(&mut roles);
    roles
}

/// Mean of the rates in the parts of a window, and its standard error as if these were independent.
fn progress(rates: &[f64]) -> Progress {
    let count = rates.len() as f64;
    let rate = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|part| (part - rate).powi(2)).sum::<f64>() / (count - 1.0);
    Progress { rate, error: Some((variance / count).sqrt()), measure: Measure::Metric }
}

/// What the operating system's tools would have shown for a window.
pub fn profile(window: &Accounts, contexts: usize) -> SchedulingProfile {
    let total = window.total();
    let seconds = window.at.seconds();
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let percent =
        |part: Nanos, whole: f64| if whole > 0.0 { part.seconds() / whole * 100.0 } else { 0.0 };
    SchedulingProfile {
        lock: percent(total.lock, total.elapsed().seconds()),
        vcx_rate: per_second(total.voluntary),
        migr_rate: per_second(total.migrations),
        cpu_util: percent(window.busy, seconds * contexts as f64),
    }
}
