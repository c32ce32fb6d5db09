//! [`KeptRunning`]: a program that goes on running while its number changes.

use super::observation::Observation;
use super::own_parameter;
use super::program_run::{self, NumberChange, ProgramRun, RunLimits};
use super::{
    CommandTemplate, NumberSetter, OwnParameter, ProbeError, ProbeOptions, Probing, powered,
};
use pinwise_linux::{
    Guardian, GuardianEntry, TargetError,
    thread::{Pid, Stat},
};
use pinwise_measure::{Interrupt, ProgramNote};
use pinwise_monitor::OtherLoadWatch;
use pinwise_topology::{CpuSet, Machine};
use std::time::Duration;

/// A program that goes on running while its number changes.
pub(super) struct KeptRunning {
    program: RunningProgram,
    set: NumberSetter,
    /// The CPUs that it may use.
    cpus: CpuSet,
    /// The CPUs of the machine that are offline.
    offline: CpuSet,
    /// A note if those of the process do not come back with its limits.
    forgotten: Option<ProgramNote>,
    /// The run that all probes share.
    live: Option<ProgramRun>,
    /// The threads it had before it was given its first parameter.
    pub(super) begun: Option<u32>,
    /// The process ran already and has been given a parameter, by this or an earlier prober.
    altered: bool,
    pub(super) own: OwnParameter,
    /// The parameters it was given, and the threads it had with each.
    pub(super) settled: Vec<(u32, u32)>,
    /// How often it was given one.
    settings: u64,
    /// The guardian gives the process its own parameter back if pinwise ends now.
    pub(super) is_changed: bool,
    /// Its rate with its own number, if there is a floor.
    own_rate: Option<f64>,
}

/// The program that goes on running.
pub(super) enum RunningProgram {
    /// pinwise starts it once.
    Launched(CommandTemplate),
    /// It runs already.
    Process(Pid),
}

/// Gives the running process `pid` the parameter `n` by `command`. It waits until the number of its
/// threads stays the same.
pub fn set_number(pid: Pid, command: &str, n: u32) -> Result<(), ProbeError> {
    let limits = RunLimits { most_written: None, until: None, cancelled: Interrupt::default() };
    let mut guardian = Guardian::start().map_err(TargetError::from)?;
    ProgramRun::attach(pid, limits)?
        .set(&NumberSetter::Command(command.into()), n, &mut guardian, "")
        .map(drop)
}

impl KeptRunning {
    pub(super) fn new(program: RunningProgram, set: NumberSetter, machine: &Machine) -> Self {
        let (cpus, offline) = (machine.allowed.clone(), machine.offline.clone());
        let count = cpus.len() as u32;
        Self {
            program,
            set,
            cpus,
            offline,
            forgotten: None,
            live: None,
            begun: None,
            altered: false,
            own: OwnParameter { known: None, guess: count, most: count },
            settled: Vec::new(),
            settings: 0,
            is_changed: false,
            own_rate: None,
        }
    }

    /// Goes on after an earlier prober, see [`LinuxProber::resumed`](super::LinuxProber::resumed).
    pub(super) fn resume(&mut self, begun: Option<u32>) {
        self.begun = begun;
        self.altered = matches!(self.program, RunningProgram::Process(_));
    }

    /// The process that all probes share, after the first one.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.live.as_ref().map(|session| session.root)
    }

    pub(super) fn without_deadline(&mut self) {
        if let Some(session) = &mut self.live {
            session.limits.until = None;
        }
    }

    /// Gives the program `parameter` and watches it for the window.
    pub(super) fn probe(
        &mut self,
        probing: &mut Probing,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        let (mut session, is_new) = match self.live.take() {
            Some(session) => (session, false),
            None => (self.open(probing, parameter)?, true),
        };
        if is_new && let RunningProgram::Process(pid) = self.program {
            self.forgotten = self.set.forgotten(pid, &self.offline);
        }
        let seen = self.probe_session(probing, &mut session, is_new, parameter, window);
        self.live = Some(session);
        seen
    }

    /// Attaches to the process, or launches the program.
    fn open(&self, probing: &mut Probing, parameter: u32) -> Result<ProgramRun, ProbeError> {
        let limits = probing.limits();
        match &self.program {
            RunningProgram::Process(pid) => ProgramRun::attach(*pid, limits),
            RunningProgram::Launched(template) => {
                let mut launch = template.launch(parameter);
                program_run::choose_streams(&mut launch, &probing.options);
                let progress = &probing.options.progress;
                ProgramRun::start(&launch, parameter, &mut probing.guardian, limits, progress)
            }
        }
    }

    fn probe_session(
        &mut self,
        probing: &mut Probing,
        session: &mut ProgramRun,
        is_new: bool,
        parameter: u32,
        window: Duration,
    ) -> Result<Observation, ProbeError> {
        if is_new && session.running.is_some() {
            // Whatever number of threads it begins with.
            let anyway = ProbeOptions {
                threads: Some(Box::new(|_| 1)),
                after: probing.options.after.clone(),
                limit: probing.options.limit,
                ..ProbeOptions::default()
            };
            session.wait_ready(parameter, &anyway)?;
        }
        if self.begun.is_none() && !self.altered {
            self.begun = Some(session.settled_threads()?);
        }
        let least = self.least(probing, session, window)?;
        let settled = self.change(probing, session, parameter)?;
        let change = Some(NumberChange { least, cpus: self.cpus.clone() });
        let others = OtherLoadWatch::begin(&self.cpus, &[session.root]);
        let seen = powered(probing.options.power.as_ref(), || {
            session.window(window, change, &probing.options.progress, &mut probing.layer_choice)
        });
        let held_back = match &seen {
            Ok(seen) => seen.below,
            // Nobody knows when the next probe comes. A command would be stopped at once if the
            // search is to stop; its end gives the number back.
            Err(_) => least.is_some() && session.check().is_ok(),
        };
        if held_back {
            let returned = self.change(probing, session, self.own_parameter());
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
        let kept = probing.guardian.note();
        let notes = self.forgotten.iter().chain(&seen.notes).cloned().chain(kept).collect();
        Ok(Observation { begun: self.begun, settled: Some(settled), others, notes, ..seen })
    }

    /// The least rate that a number may have, if there is a floor. The rate of the program with its
    /// own number is measured first, until it is steady.
    fn least(
        &mut self,
        probing: &mut Probing,
        session: &mut ProgramRun,
        window: Duration,
    ) -> Result<Option<f64>, ProbeError> {
        let Some(floor) = probing.options.floor else { return Ok(None) };
        let own = match self.own_rate {
            Some(own) => own,
            None => {
                if self.altered {
                    self.change(probing, session, self.own_parameter())?;
                }
                let change = Some(NumberChange { least: None, cpus: self.cpus.clone() });
                let progress = &probing.options.progress;
                let seen =
                    session.window(window * 2, change, progress, &mut probing.layer_choice)?;
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
        probing: &mut Probing,
        session: &mut ProgramRun,
        parameter: u32,
    ) -> Result<u32, ProbeError> {
        self.altered = matches!(self.program, RunningProgram::Process(_));
        self.settings += 1;
        let mark = format!("{}-{}", std::process::id(), self.settings);
        self.enter(&mut probing.guardian, Some(self.own_parameter()), Some(mark.clone()))?;
        let settled = session.set(&self.set, parameter, &mut probing.guardian, &mark);
        self.settled.extend(settled.as_ref().ok().map(|&threads| (parameter, threads)));
        let entered = self.enter(&mut probing.guardian, Some(self.own_parameter()), None);
        let settled = settled?;
        entered?;
        Ok(settled)
    }

    pub(super) fn began_with_parameter(&self) -> Option<(u32, bool)> {
        own_parameter::infer(self.begun?, &self.settled)
    }

    pub(super) fn own_parameter(&self) -> u32 {
        self.own.decide(self.began_with_parameter())
    }

    pub(super) fn know_own(&mut self, guardian: &mut Guardian, parameter: u32) {
        self.own.known = Some(parameter);
        if self.is_changed {
            // A process that has ended needs nothing, and the next change enters it again.
            let _ = self.enter(guardian, Some(parameter), None);
        }
    }

    /// Enters what the guardian does with a process that runs already, should pinwise end. `None`:
    /// the process keeps what it has. A command with the mark `setting` may run at that moment.
    fn enter(
        &mut self,
        guardian: &mut Guardian,
        parameter: Option<u32>,
        setting: Option<String>,
    ) -> Result<(), ProbeError> {
        let (RunningProgram::Process(pid), set @ NumberSetter::Command(_)) =
            (&self.program, &self.set)
        else {
            return Ok(());
        };
        let start = Stat::read(*pid, pid.main());
        let start = start.map_err(|_| TargetError::NoProcess(*pid))?.start;
        let command = parameter.and_then(|parameter| set.command(parameter));
        // Without a current folder, only commands with whole paths can work.
        let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let entry = GuardianEntry::Command { pid: *pid, start, command, folder, setting };
        guardian.enter(&[entry]).map_err(TargetError::from)?;
        self.is_changed = parameter.is_some();
        Ok(())
    }

    pub(super) fn set(&mut self, probing: &mut Probing, parameter: u32) -> Result<(), ProbeError> {
        let Some(mut session) = self.live.take() else { return Ok(()) };
        session.limits.until = None;
        let settled = self.change(probing, &mut session, parameter);
        self.live = Some(session);
        settled.map(drop)
    }

    pub(super) fn settle(
        &mut self,
        probing: &mut Probing,
        parameter: u32,
    ) -> Result<bool, ProbeError> {
        if let Some(session) = &mut self.live {
            session.limits.cancelled = Interrupt::default();
        }
        let (RunningProgram::Process(pid), NumberSetter::Command(command)) =
            (&self.program, &self.set)
        else {
            return Ok(false);
        };
        if self.live.is_some() {
            self.set(probing, parameter)?;
            self.enter(&mut probing.guardian, None, None)?;
        } else {
            // Probed in an earlier session, or by a prober that is gone.
            set_number(*pid, command, parameter)?;
        }
        Ok(true)
    }

    pub(super) fn end(&mut self, guardian: &mut Guardian) {
        if let Some(session) = self.live.take() {
            // The error does not matter: the guardian ends what is left.
            let _ = session.end(guardian);
        }
    }
}
