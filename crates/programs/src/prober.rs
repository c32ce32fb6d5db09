//! A [`Testbed`] for numbers of threads. It starts a program for a moment with one number, watches
//! it, and ends it.
//!
//! *One probe.* pinwise starts the program with its parameter ([`CommandTemplate`]). It waits for
//! the end of the initialization, however long that takes. Initialization ends when as many threads
//! exist as the parameter promises and some of them work. Or it ends when a line of output says so.
//! The program gets a moment to warm up. Then a [`Monitor`](pinwise_monitor::Monitor) watches its
//! threads for the window. At the end pinwise ends the program with everything it started.
//!
//! *Progress*, best first:
//! - the user's metric, read over the same window, or the last value of a whole run;
//! - the time of a whole run, if the program ends soon;
//! - instructions, if the processor's counters may be read;
//! - the CPU time of its threads. It shows how many contexts the program keeps busy, but not with
//!   what.
//!
//! *Failures* are one line each ([`ProbeError`]). The program may never create its workers, or its
//! threads may not follow the parameter. It may die, wait for a terminal, or fill the disk.
//!
//! *Limit.* With one thread there are no workers to wait for. A program that reads its input in
//! silence then counts as working, unless its output shows when it has begun.
//!
//! *Files.* `command_template`, `number_setter`: how a program gets its number. `own_parameter`:
//! the number that it uses on its own. `program_run`: one run, when its work begins and how it is
//! watched. `observation`, `observation_halves`, `role_grouping`: what is observed. `options`,
//! `details`, `error`: what goes in and comes out.

mod command_template;
mod details;
mod error;
mod number_setter;
mod observation;
mod observation_halves;
mod options;
mod own_parameter;
mod program_run;
mod role_grouping;

pub use command_template::{CommandTemplate, CommandTemplateError};
pub use details::ProbeDetails;
pub use error::ProbeError;
pub use number_setter::{NumberSetter, NumberSetterError};
pub use observation_halves::HalfDifference;
pub use options::{ProbeOptions, ProbedProgram, ProgressSource, ThreadsForN};
pub use own_parameter::OwnParameter;

use observation::{Observation, Run};
use pinwise_linux::{
    Guardian, GuardianEntry, RealtimeClass, TargetError,
    thread::{Pid, Stat},
};
use pinwise_measure::{
    Effort, Interrupt, MeasureError, Measurement, Probe, Probed, ProgramNote, Retry, Setting,
    Testbed, ThreadCount, Unit, Workload,
};
use pinwise_monitor::{LayerChoice, OtherLoadMeter, OtherLoadWatch, Power, Unavailable};
use pinwise_topology::Machine;
use program_run::{Change, Limits, ProgramRun};
use std::time::{Duration, Instant};

/// Probes a program with one parameter after another.
pub struct LinuxProber {
    machine: Machine,
    /// Its name. How many threads it has is what is asked.
    workload: Workload,
    subject: ProbedProgram,
    /// The run that all probes share, if the parameter is changed while it runs.
    live: Option<ProgramRun>,
    /// The threads it had before it was given its first parameter.
    begun: Option<u32>,
    /// The process ran already and has been given a parameter, by this or an earlier prober.
    altered: bool,
    own: OwnParameter,
    /// The parameters it was given, and the threads it had with each.
    settled: Vec<(u32, u32)>,
    /// How often it was given one.
    settings: u64,
    /// The guardian gives the process its own parameter back if pinwise ends now.
    is_changed: bool,
    /// Its rate with its own number, if there is a floor.
    own_rate: Option<f64>,
    options: ProbeOptions,
    cancelled: Interrupt,
    guardian: Guardian,
    layer_choice: LayerChoice,
    seen: Vec<ProbeDetails>,
    /// `None` if its own CPUs are unknown.
    other_load: Option<OtherLoadMeter>,
    unit: Unit,
    error: Option<ProbeError>,
}

/// Gives the running process `pid` the parameter `n` by `command`. It waits until the number of its
/// threads stays the same.
pub fn set_number(pid: Pid, command: &str, n: u32) -> Result<(), ProbeError> {
    let limits = Limits { most_written: None, until: None, cancelled: Interrupt::default() };
    let mut guardian = Guardian::start().map_err(pinwise_linux::TargetError::from)?;
    ProgramRun::attach(pid, limits)?
        .set(&NumberSetter::Command(command.into()), n, &mut guardian, "")
        .map(drop)
}

impl LinuxProber {
    /// A prober of a program on `machine`, which is this one. Raising `cancelled` ends any probe
    /// within 20 ms.
    pub fn new(
        machine: Machine,
        subject: ProbedProgram,
        options: ProbeOptions,
        cancelled: Interrupt,
    ) -> Result<Self, ProbeError> {
        let guardian = Guardian::start().map_err(pinwise_linux::TargetError::from)?;
        let name = match &subject {
            ProbedProgram::Anew(template) | ProbedProgram::Launched(template, _) => template.name(),
            ProbedProgram::Running(pid, _) => format!("process {pid}"),
        };
        let unlisted =
            |cause| pinwise_linux::TargetError::Proc { name: "no process".into(), cause };
        let layer_choice = LayerChoice::new().map_err(unlisted)?;
        let (live, begun, altered) = (None, None, false);
        let (settled, settings, is_changed) = (Vec::new(), 0, false);
        let cpus = machine.allowed.len() as u32;
        let own = OwnParameter { known: None, guess: cpus, most: cpus };
        let (other_load, unit, error) = (OtherLoadMeter::here().ok(), Unit::rate("1/s"), None);
        Ok(Self {
            machine,
            workload: Workload::new(name, &[]),
            layer_choice,
            subject,
            live,
            begun,
            altered,
            own,
            settled,
            settings,
            is_changed,
            own_rate: None,
            options,
            cancelled,
            guardian,
            seen: Vec::new(),
            other_load,
            unit,
            error,
        })
    }

    /// Uses the choice of layer of other probes of the same program.
    #[must_use]
    pub fn watched_by(mut self, layer_choice: LayerChoice) -> Self {
        self.layer_choice = layer_choice;
        self
    }

    /// Goes on after probes of the same program that showed this.
    #[must_use]
    pub fn after(mut self, seen: Vec<ProbeDetails>) -> Self {
        let settled = |seen: &ProbeDetails| Some((seen.parameter, seen.settled?));
        self.settled = seen.iter().filter_map(settled).collect();
        self.seen = seen;
        self
    }

    /// Goes on after an earlier prober of the same program. The program began with `begun` threads,
    /// if that is known. A process that runs already has another parameter by now.
    #[must_use]
    pub fn resumed(mut self, begun: Option<u32>) -> Self {
        self.begun = begun;
        self.altered = matches!(self.subject, ProbedProgram::Running(..));
        self
    }

    /// The parameter that the program uses on its own, as far as it is known. A process that runs
    /// already goes back to it.
    #[must_use]
    pub fn with_own(mut self, own: OwnParameter) -> Self {
        self.own = own;
        self
    }

    /// Ends no probe by time from here on. The next search has a separate budget.
    pub fn without_deadline(&mut self) {
        self.options.until = None;
        if let Some(session) = &mut self.live {
            session.limits.until = None;
        }
    }

    /// How the program is watched by now.
    pub fn layer_choice(&self) -> &LayerChoice {
        &self.layer_choice
    }

    /// The details of the probes, in their order.
    pub fn probes(&self) -> &[ProbeDetails] {
        &self.seen
    }

    /// Better layers than the one in use, and why they cannot be used or were given up.
    pub fn refused(&self) -> &[Unavailable] {
        self.layer_choice.refused()
    }

    /// Why the last probe failed, beyond what its [`MeasureError`] says.
    pub fn error(&self) -> Option<&ProbeError> {
        self.error.as_ref()
    }

    fn try_probe(&mut self, parameter: u32, window: Duration) -> Result<Probed, ProbeError> {
        let begin = Instant::now();
        let _punctual = RealtimeClass::raise();
        let power = self.options.power.clone();
        let seen = match self.subject.clone() {
            ProbedProgram::Anew(template)
                if matches!(self.options.progress, ProgressSource::Runs(_)) =>
            {
                powered(power.as_ref(), || self.probe_anew(&template, parameter, window))?
            }
            ProbedProgram::Anew(template) => self.probe_anew(&template, parameter, window)?,
            ProbedProgram::Launched(_, set) | ProbedProgram::Running(_, set) => {
                self.probe_live(&set, parameter, window)?
            }
        };
        let probe = Probe {
            parameter,
            threads: seen.threads,
            profile: seen.profile(self.options.contexts),
            progress: seen.progress,
            cost: begin.elapsed(),
        };
        let (unit, watts, others) = (seen.unit.clone(), seen.watts, seen.others);
        let (roles, below_floor) = (role_grouping::roles(&seen.activity), seen.below);
        self.take_in(seen, parameter)?;
        Ok(Probed { probe, unit, watts, roles, others, below_floor })
    }

    fn limits(&self) -> Limits {
        let (most_written, until) = (self.options.most_written, self.options.until);
        Limits { most_written, until, cancelled: self.cancelled.clone() }
    }

    fn probe_anew(
        &mut self,
        template: &CommandTemplate,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        let whole = matches!(self.options.progress, ProgressSource::Runs(_));
        let refused = self.layer_choice.refused().len();
        let mut seen = self.run_once(template, parameter, window, true)?;
        if whole {
            seen.threads = seen.threads.max(seen.lasting_threads());
            let promised = self.options.threads.as_ref().map_or(parameter, |of| of(parameter));
            // No worker was seen, so their number is not known.
            if seen.threads == 1 && promised > 1 && seen.missed_most() {
                seen.threads = promised;
                seen.notes.push(ProgramNote::ThreadsMissed);
            }
        }
        if let Some(first) = seen.run().filter(|_| whole) {
            self.layer_choice.take_in(&seen.activity);
            let given_up = self.layer_choice.refused().len() > refused;
            let mut runs: Vec<Run> = Vec::new();
            let time = |runs: &[Run]| runs.iter().map(|run| run.seconds).sum::<f64>();
            // The number of runs that comes nearest to filling the window. At least one more if
            // watching cost this one too much.
            while given_up && runs.is_empty()
                || first.seconds * 1.5 + time(&runs) < window.as_secs_f64()
            {
                match self.run_once(template, parameter, window, false) {
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
        &mut self,
        template: &CommandTemplate,
        parameter: u32,
        window: Duration,
        watched: bool,
    ) -> Result<Observation, ProbeError> {
        let mut launch = template.launch(parameter);
        program_run::choose_streams(&mut launch, &self.options);
        let whole = matches!(self.options.progress, ProgressSource::Runs(_));
        let limits = self.limits();
        let before = self.other_load.as_ref().and_then(OtherLoadMeter::reading);
        let progress = &self.options.progress;
        let mut session =
            ProgramRun::start(&launch, parameter, &mut self.guardian, limits, progress)?;
        let seen = if let ProgressSource::Runs(metric) = progress {
            session.run_through(
                self.options.limit,
                metric,
                watched.then_some(&mut self.layer_choice),
            )
        } else {
            let mut watch = |session: &mut ProgramRun| {
                session.window(window, None, progress, &mut self.layer_choice)
            };
            let power = self.options.power.as_ref();
            session
                .wait_ready(parameter, &self.options)
                .and_then(|()| powered(power, || watch(&mut session)))
        };
        // Also after a failure: nothing is left behind.
        let ended = session.end(&mut self.guardian);
        let removed = self.remove(template, parameter);
        let mut seen = seen?;
        let usage = ended?;
        removed?;
        seen.others = self.other_load.as_ref().and_then(|meter| meter.since(before, usage.cpu));
        if whole {
            seen.of_whole_run(usage);
        }
        Ok(seen)
    }

    fn probe_live(
        &mut self,
        set: &NumberSetter,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        let (mut session, is_new) = match self.live.take() {
            Some(session) => (session, false),
            None => (self.open(parameter)?, true),
        };
        let seen = self.probe_session(&mut session, is_new, set, parameter, window);
        self.live = Some(session);
        seen
    }

    /// Attaches to the process, or launches the program.
    fn open(&mut self, parameter: u32) -> Result<ProgramRun, ProbeError> {
        let limits = self.limits();
        match &self.subject {
            ProbedProgram::Running(pid, _) => ProgramRun::attach(*pid, limits),
            ProbedProgram::Launched(template, _) | ProbedProgram::Anew(template) => {
                let mut launch = template.launch(parameter);
                program_run::choose_streams(&mut launch, &self.options);
                let progress = &self.options.progress;
                ProgramRun::start(&launch, parameter, &mut self.guardian, limits, progress)
            }
        }
    }

    fn probe_session(
        &mut self,
        session: &mut ProgramRun,
        is_new: bool,
        set: &NumberSetter,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        if is_new && session.running.is_some() {
            // Whatever number of threads it begins with.
            let anyway = ProbeOptions {
                threads: Some(Box::new(|_| 1)),
                after: self.options.after.clone(),
                limit: self.options.limit,
                ..ProbeOptions::default()
            };
            session.wait_ready(parameter, &anyway)?;
        }
        if self.begun.is_none() && !self.altered {
            self.begun = Some(session.settled_threads()?);
        }
        let least = self.least(session, set, window)?;
        let settled = self.change(session, set, parameter)?;
        let change = Some(Change { least, cpus: self.machine.allowed.clone() });
        let others = OtherLoadWatch::begin(&self.machine.allowed, &[session.root]);
        let seen = powered(self.options.power.as_ref(), || {
            session.window(window, change, &self.options.progress, &mut self.layer_choice)
        });
        let held_back = match &seen {
            Ok(seen) => seen.below,
            // Nobody knows when the next probe comes. A command would be stopped at once if the
            // search is to stop; its end gives the number back.
            Err(_) => least.is_some() && session.check().is_ok(),
        };
        if held_back {
            let returned = self.change(session, set, self.own_parameter().0);
            // The program gets as long to recover as it was held back.
            session.pause(window);
            if seen.is_ok() {
                returned?;
            }
        }
        let seen = seen?;
        // A metric knows which part of the time counts.
        let others =
            seen.others.or_else(|| others.and_then(|others| others.so_far(&[session.root])));
        Ok(Observation { begun: self.begun, settled: Some(settled), others, ..seen })
    }

    /// The least rate that a number may have, if there is a floor. The rate of the program with its
    /// own number is measured first, until it is steady.
    fn least(
        &mut self,
        session: &mut ProgramRun,
        set: &NumberSetter,
        window: Duration,
    ) -> Result<Option<f64>, ProbeError> {
        let Some(floor) = self.options.floor else { return Ok(None) };
        let own = match self.own_rate {
            Some(own) => own,
            None => {
                if self.altered {
                    self.change(session, set, self.own_parameter().0)?;
                }
                let change = Some(Change { least: None, cpus: self.machine.allowed.clone() });
                let progress = &self.options.progress;
                let seen = session.window(window * 2, change, progress, &mut self.layer_choice)?;
                if seen.progress.rate <= 0.0 {
                    return Err(ProbeError::NoOwnRate { name: session.name.clone() });
                }
                *self.own_rate.insert(seen.progress.rate)
            }
        };
        Ok(Some(floor * own))
    }

    /// Gives the process a parameter; the threads that it then has.
    fn change(
        &mut self,
        session: &mut ProgramRun,
        set: &NumberSetter,
        parameter: u32,
    ) -> Result<u32, ProbeError> {
        self.altered = matches!(self.subject, ProbedProgram::Running(..));
        self.settings += 1;
        let mark = format!("{}-{}", std::process::id(), self.settings);
        let was_changed = self.is_changed;
        self.enter(Some(self.own_parameter().0), Some(mark.clone()))?;
        let settled = session.set(set, parameter, &mut self.guardian, &mark);
        self.settled.extend(settled.as_ref().ok().map(|&threads| (parameter, threads)));
        let (own, guess) = self.own_parameter();
        // A first command that failed has changed nothing. A guess might.
        let refused = matches!(settled, Err(ProbeError::Set { stopped: false, .. }));
        let unchanged = !was_changed && refused;
        let entered = self.enter(Some(own).filter(|_| !(unchanged && guess)), None);
        let settled = settled?;
        entered?;
        Ok(settled)
    }

    /// The process that all probes share, if there is one.
    pub fn pid(&self) -> Option<Pid> {
        self.live.as_ref().map(|session| session.root)
    }

    /// The threads it had before it was given a parameter. `None` before the first probe, or if
    /// that is not known.
    pub fn begun_with(&self) -> Option<u32> {
        self.begun
    }

    /// The parameter that the process began with, as its threads show; and whether they show it
    /// for sure. What is sure stays so.
    pub fn began_with_parameter(&self) -> Option<(u32, bool)> {
        own_parameter::infer(self.begun?, &self.settled)
    }

    /// The parameter that the program uses without pinwise, and whether that is a guess.
    pub fn own_parameter(&self) -> (u32, bool) {
        self.own.decide(self.began_with_parameter())
    }

    /// Takes this parameter for the program's own from here on: it was decided, and is no guess.
    pub fn know_own(&mut self, parameter: u32) {
        self.own.known = Some(parameter);
        if self.is_changed {
            // A process that has ended needs nothing, and the next change enters it again.
            let _ = self.enter(Some(parameter), None);
        }
    }

    /// Whether a command has changed the parameter of a process that runs already. Then the process
    /// gets its own back if pinwise ends before [`Self::settle`].
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Enters what the guardian does with a process that runs already, should pinwise end. `None`:
    /// the process keeps what it has. A command with the mark `setting` may run at that moment.
    fn enter(&mut self, parameter: Option<u32>, setting: Option<String>) -> Result<(), ProbeError> {
        let ProbedProgram::Running(pid, set @ NumberSetter::Command(_)) = &self.subject else {
            return Ok(());
        };
        let start = Stat::read(*pid, pid.main());
        let start = start.map_err(|_| TargetError::NoProcess(*pid))?.start;
        let command = parameter.and_then(|parameter| set.command(parameter));
        // Without a current folder, only commands with whole paths can work.
        let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let entry = GuardianEntry::Command { pid: *pid, start, command, folder, setting };
        self.guardian.enter(&[entry]).map_err(TargetError::from)?;
        self.is_changed = parameter.is_some();
        Ok(())
    }

    /// Gives that process another parameter.
    pub fn set(&mut self, parameter: u32) -> Result<(), ProbeError> {
        let (ProbedProgram::Running(_, set) | ProbedProgram::Launched(_, set)) =
            self.subject.clone()
        else {
            return Ok(());
        };
        let Some(mut session) = self.live.take() else { return Ok(()) };
        session.limits.until = None;
        let settled = self.change(&mut session, &set, parameter);
        self.live = Some(session);
        settled.map(drop)
    }

    /// Gives a program that goes on running its parameter for good, if a command sets it. Limits
    /// are put back at the end. Works also after `cancelled` was raised. Returns whether a command
    /// did it.
    pub fn settle(&mut self, parameter: u32) -> Result<bool, ProbeError> {
        if let Some(session) = &mut self.live {
            session.limits.cancelled = Interrupt::default();
        }
        match (&self.subject, &self.live) {
            // Probed in an earlier session, or by a prober that is gone.
            (ProbedProgram::Running(pid, NumberSetter::Command(command)), None) => {
                set_number(*pid, command, parameter)?;
            }
            (ProbedProgram::Running(_, NumberSetter::Command(_)), Some(_)) => {
                self.set(parameter)?;
                self.enter(None, None)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_in(&mut self, seen: Observation, parameter: u32) -> Result<(), ProbeError> {
        self.unit = seen.unit.clone();
        self.layer_choice.take_in(&seen.activity);
        self.seen.push(ProbeDetails::of(
            seen,
            parameter,
            self.options.contexts,
            self.layer_choice.refused(),
        ));
        self.check_threads()
    }

    /// Checks whether the number of threads follows the parameter at all, by the probes so far. Not
    /// with a metric or whole runs: these show what the parameter does.
    fn check_threads(&self) -> Result<(), ProbeError> {
        // n is whatever the user varies then, such as GOMAXPROCS.
        if self.options.progress.shows_work_done() {
            return Ok(());
        }
        // A pool that is set to fewer threads may keep the others asleep.
        let ProbedProgram::Anew(template) = &self.subject else { return Ok(()) };
        let [first, .., last] = self.seen.as_slice() else { return Ok(()) };
        let promised = |n: u32| self.options.threads.as_ref().map(|threads| threads(n));
        let alike = self.seen.iter().all(|seen| seen.threads == first.threads);
        let expected = |n: u32| promised(n).unwrap_or(n);
        if !alike || expected(first.parameter) == expected(last.parameter) {
            return Ok(());
        }
        let least = self.seen.iter().min_by_key(|seen| seen.parameter).unwrap_or(first);
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
        let (name, threads) = (template.name(), first.threads);
        Err(ProbeError::SameThreads { name, threads, one: first.parameter, other: last.parameter })
    }

    fn remove(&self, template: &CommandTemplate, parameter: u32) -> Result<(), ProbeError> {
        for path in &self.options.remove {
            let path = template.path(path, parameter);
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

/// The result of `watch`, and the power during it.
fn powered(
    power: Option<&Power>,
    watch: impl FnOnce() -> Result<Observation, ProbeError>,
) -> Result<Observation, ProbeError> {
    let Some(power) = power else { return watch() };
    let (from, begin) = (power.read()?, Instant::now());
    let mut seen = watch()?;
    let joules = power.joules(&from, &power.read()?);
    seen.watts = Some(joules / begin.elapsed().as_secs_f64());
    Ok(seen)
}

impl Drop for LinuxProber {
    fn drop(&mut self) {
        if let Some(session) = self.live.take() {
            // The error does not matter: the guardian ends what is left.
            let _ = session.end(&mut self.guardian);
        }
    }
}

impl LinuxProber {
    /// Starts the program with `parameter`, or sets it, waits until it works, and watches it for
    /// `window`. It ends the program if it was started for this probe. A window of nothing stands
    /// for one whole run if whole runs are measured.
    ///
    /// Errors: [`Retry::Other`] if other means would do. The program ended before pinwise ended it,
    /// and whole runs can be measured instead. Or the one run took longer than its limit.
    pub fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probed, MeasureError> {
        if self.cancelled.came() {
            return Err(MeasureError::interrupted());
        }
        self.try_probe(parameter, window).map_err(|error| {
            let mends = match &error {
                ProbeError::Short { .. } => {
                    matches!(self.subject, ProbedProgram::Anew(_))
                        && !matches!(self.options.progress, ProgressSource::Metric(..))
                }
                ProbeError::Long { .. } => window.is_zero(),
                _ => false,
            };
            let told = error.as_measure_error();
            self.error = Some(error);
            if mends { MeasureError { retry: Retry::Other, ..told } } else { told }
        })
    }
}

impl Testbed for LinuxProber {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    /// `1/s` before the first probe.
    fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Only [`Setting::Threads`], unpinned. The detail is a [`Probed`] with a [`ProbeDetails`] next
    /// to it.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let Setting::Threads(ThreadCount { n: Some(parameter), placed: None }) = *setting else {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        };
        let window = self.options.window.mul_f64(effort.windows);
        let probed = self.probe(parameter, window)?;
        Ok(probed.measurement(window, self.seen.last()))
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
