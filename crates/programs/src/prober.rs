//! A [`Testbed`] for numbers of threads: it watches a program with one number after another.
//! [`StartedAnew`] starts it for each. [`KeptRunning`] changes the number while it runs.
//!
//! *One probe.* pinwise starts the program with its parameter ([`CommandTemplate`]). It waits for
//! the end of the initialization, however long that takes. Initialization ends when as many threads
//! exist as the parameter promises and some of them work. Or it ends when a line of output says so.
//! The program gets a moment to warm up. Then a [`Monitor`](pinwise_monitor::Monitor) watches its
//! threads for the window. At the end pinwise ends the program with everything it started. A
//! program that keeps running begins once, and each probe only changes its number.
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
//! *Files.* `started_anew`, `kept_running`: the two kinds of program. `command_template`,
//! `number_setter`: how a program gets its number. `own_parameter`: the number that it uses on its
//! own. `program_run`: one run, when its work begins and how it is watched. `observation`,
//! `observation_halves`, `role_grouping`: what is observed. `options`, `details`, `error`: what
//! goes in and comes out.

mod command_template;
mod details;
mod error;
mod kept_running;
mod number_setter;
mod observation;
mod observation_halves;
mod options;
mod own_parameter;
mod program_run;
mod role_grouping;
mod started_anew;

pub use command_template::{CommandTemplate, CommandTemplateError};
pub use details::ProbeDetails;
pub use error::ProbeError;
pub use kept_running::set_number;
pub use number_setter::{NumberSetter, NumberSetterError};
pub use observation_halves::HalfDifference;
pub use options::{ProbeOptions, ProbedProgram, ProgressSource, ThreadsForN};
pub use own_parameter::OwnParameter;

use kept_running::{KeptRunning, RunningProgram};
use observation::Observation;
pub use observation::START_TIME;
use pinwise_linux::{Guardian, RealtimeClass, TargetError, thread::Pid};
use pinwise_measure::{
    Effort, Interrupt, MeasureError, Measurement, Probe, Probed, Retry, Setting, Testbed,
    ThreadCount, Unit, Workload,
};
use pinwise_monitor::{LayerChoice, OtherLoadMeter, Power, Unavailable};
use pinwise_topology::Machine;
use program_run::RunLimits;
use started_anew::StartedAnew;
use std::time::{Duration, Instant};

/// Probes a program with one parameter after another.
pub struct LinuxProber {
    machine: Machine,
    /// Its name. The number of its threads is the question.
    workload: Workload,
    program: ProgramKind,
    probing: Probing,
    seen: Vec<ProbeDetails>,
    unit: Unit,
    error: Option<ProbeError>,
}

/// The two kinds of program that can be probed.
enum ProgramKind {
    Anew(StartedAnew),
    Running(Box<KeptRunning>),
}

/// What probes of both kinds need.
struct Probing {
    options: ProbeOptions,
    cancelled: Interrupt,
    guardian: Guardian,
    layer_choice: LayerChoice,
}

impl Probing {
    fn limits(&self) -> RunLimits {
        let (most_written, until) = (self.options.most_written, self.options.until);
        RunLimits { most_written, until, cancelled: self.cancelled.clone() }
    }
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
        let guardian = Guardian::start().map_err(TargetError::from)?;
        let name = match &subject {
            ProbedProgram::Anew(template) | ProbedProgram::Launched(template, _) => template.name(),
            ProbedProgram::Running(pid, _) => format!("process {pid}"),
        };
        let unlisted = |cause| TargetError::Proc { name: "no process".into(), cause };
        let layer_choice = LayerChoice::new().map_err(unlisted)?;
        let running =
            |program, set| ProgramKind::Running(KeptRunning::new(program, set, &machine).into());
        let program = match subject {
            ProbedProgram::Anew(template) => {
                let other_load = OtherLoadMeter::here().ok();
                ProgramKind::Anew(StartedAnew { template, other_load })
            }
            ProbedProgram::Launched(template, set) => {
                running(RunningProgram::Launched(template), set)
            }
            ProbedProgram::Running(pid, set) => running(RunningProgram::Process(pid), set),
        };
        Ok(Self {
            machine,
            workload: Workload::new(name, &[]),
            program,
            probing: Probing { options, cancelled, guardian, layer_choice },
            seen: Vec::new(),
            unit: Unit::rate("1/s"),
            error: None,
        })
    }

    fn running(&self) -> Option<&KeptRunning> {
        match &self.program {
            ProgramKind::Anew(_) => None,
            ProgramKind::Running(running) => Some(running),
        }
    }

    fn running_mut(&mut self) -> Option<&mut KeptRunning> {
        match &mut self.program {
            ProgramKind::Anew(_) => None,
            ProgramKind::Running(running) => Some(running),
        }
    }

    /// Uses the choice of layer of other probes of the same program.
    #[must_use]
    pub fn watched_by(mut self, layer_choice: LayerChoice) -> Self {
        self.probing.layer_choice = layer_choice;
        self
    }

    /// Goes on after probes of the same program that showed this.
    #[must_use]
    pub fn after(mut self, seen: Vec<ProbeDetails>) -> Self {
        let settled = |seen: &ProbeDetails| Some((seen.parameter, seen.settled?));
        if let Some(running) = self.running_mut() {
            running.settled = seen.iter().filter_map(settled).collect();
        }
        self.seen = seen;
        self
    }

    /// Goes on after an earlier prober of the same program. The program began with `begun` threads,
    /// if that is known. A process that runs already has another parameter by now.
    #[must_use]
    pub fn resumed(mut self, begun: Option<u32>) -> Self {
        if let Some(running) = self.running_mut() {
            running.resume(begun);
        }
        self
    }

    /// The parameter that the program uses on its own, as far as it is known. A process that runs
    /// already goes back to it.
    #[must_use]
    pub fn with_own(mut self, own: OwnParameter) -> Self {
        if let Some(running) = self.running_mut() {
            running.own = own;
        }
        self
    }

    /// Ends no probe by time from here on. The next search has a separate budget.
    pub fn without_deadline(&mut self) {
        self.probing.options.until = None;
        if let Some(running) = self.running_mut() {
            running.without_deadline();
        }
    }

    /// How the program is watched by now.
    pub fn layer_choice(&self) -> &LayerChoice {
        &self.probing.layer_choice
    }

    /// The details of the probes, in their order.
    pub fn probes(&self) -> &[ProbeDetails] {
        &self.seen
    }

    /// Better layers than the one in use, and why they cannot be used or were given up.
    pub fn refused(&self) -> &[Unavailable] {
        self.probing.layer_choice.refused()
    }

    /// Why the last probe failed, beyond what its [`MeasureError`] says.
    pub fn error(&self) -> Option<&ProbeError> {
        self.error.as_ref()
    }

    fn try_probe(&mut self, parameter: u32, window: Duration) -> Result<Probed, ProbeError> {
        let begin = Instant::now();
        let _punctual = RealtimeClass::raise();
        let seen = match &mut self.program {
            ProgramKind::Anew(program) => program.probe(&mut self.probing, parameter, window)?,
            ProgramKind::Running(program) => program.probe(&mut self.probing, parameter, window)?,
        };
        let probe = Probe {
            parameter,
            threads: seen.threads,
            profile: seen.profile(self.probing.options.contexts),
            progress: seen.progress,
            cost: begin.elapsed(),
        };
        let (unit, watts, others) = (seen.unit.clone(), seen.watts, seen.others);
        let (roles, unwatched) = (role_grouping::roles(&seen.activity), seen.unwatched);
        let below_floor = seen.below;
        self.take_in(seen, parameter)?;
        Ok(Probed { probe, unit, watts, roles, others, unwatched, below_floor })
    }

    /// The process that all probes share, if there is one.
    pub fn pid(&self) -> Option<Pid> {
        self.running()?.pid()
    }

    /// The threads it had before it was given a parameter. `None` before the first probe, or if
    /// that is not known.
    pub fn begun_with(&self) -> Option<u32> {
        self.running()?.begun
    }

    /// The parameter that the process began with, as its threads show, and whether that is certain.
    /// A certain one does not change any more.
    pub fn began_with_parameter(&self) -> Option<(u32, bool)> {
        self.running()?.began_with_parameter()
    }

    /// The parameter that the program uses without pinwise, if need be a guess. `None`: it is
    /// restarted with each.
    pub fn own_parameter(&self) -> Option<u32> {
        Some(self.running()?.own_parameter())
    }

    /// From here on this parameter counts as the program's own. It was decided, and is no guess.
    pub fn know_own(&mut self, parameter: u32) {
        if let ProgramKind::Running(running) = &mut self.program {
            running.know_own(&mut self.probing.guardian, parameter);
        }
    }

    /// Whether a command has changed the parameter of a process that runs already. Then the process
    /// gets its own back if pinwise ends before [`Self::settle`].
    pub fn is_changed(&self) -> bool {
        self.running().is_some_and(|running| running.is_changed)
    }

    /// Gives that process another parameter.
    pub fn set(&mut self, parameter: u32) -> Result<(), ProbeError> {
        match &mut self.program {
            ProgramKind::Anew(_) => Ok(()),
            ProgramKind::Running(running) => running.set(&mut self.probing, parameter),
        }
    }

    /// Gives a program that goes on running its parameter for good, if a command sets it. Limits
    /// are put back at the end. Works also after `cancelled` was raised. Returns whether a command
    /// did it.
    pub fn settle(&mut self, parameter: u32) -> Result<bool, ProbeError> {
        match &mut self.program {
            ProgramKind::Anew(_) => Ok(false),
            ProgramKind::Running(running) => running.settle(&mut self.probing, parameter),
        }
    }

    fn take_in(&mut self, seen: Observation, parameter: u32) -> Result<(), ProbeError> {
        self.unit = seen.unit.clone();
        let Probing { options, layer_choice, .. } = &mut self.probing;
        layer_choice.take_in(&seen.activity);
        let refused = layer_choice.refused();
        self.seen.push(ProbeDetails::of(seen, parameter, options.contexts, refused));
        match &self.program {
            ProgramKind::Anew(program) => program.check_threads(options, &self.seen),
            // A pool that is set to fewer threads may keep the others asleep.
            ProgramKind::Running(_) => Ok(()),
        }
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
        if let ProgramKind::Running(running) = &mut self.program {
            running.end(&mut self.probing.guardian);
        }
    }
}

impl LinuxProber {
    /// Starts the program with `parameter`, or sets it, waits until it works, and watches it for
    /// `window`. It ends the program if it was started for this probe. If whole runs are measured,
    /// a window of zero stands for one whole run.
    ///
    /// Errors: [`Retry::Other`] if another way to measure would work. The program ended before
    /// pinwise ended it, and whole runs can be measured instead. Or the one run took longer than
    /// its limit.
    pub fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probed, MeasureError> {
        if self.probing.cancelled.came() {
            return Err(MeasureError::interrupted());
        }
        self.try_probe(parameter, window).map_err(|error| {
            let mends = match &error {
                ProbeError::Short { .. } => {
                    matches!(self.program, ProgramKind::Anew(_))
                        && !matches!(self.probing.options.progress, ProgressSource::Metric(..))
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
        let Setting::Threads(ThreadCount { n: Some(parameter), placed: None, .. }) = *setting
        else {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        };
        let window = self.probing.options.window.mul_f64(effort.windows);
        let probed = self.probe(parameter, window)?;
        Ok(probed.measurement(window, self.seen.last()))
    }
}
