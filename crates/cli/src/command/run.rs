//! `pinwise run`: starts a program with the number of threads of a plan. It pins the program's
//! threads as they appear.

use crate::output::Usage;
use crate::plan::{self, PlanArgument};
use anyhow::Context as _;
use clap::Args;
use pinwise_linux::{EndedThreads, Pid, PlanPinner, ProcessLock, Scope};
use pinwise_placement::{Plan, PlannedNumber};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Start a program with its threads pinned by a plan
///
/// Threads are found by name and pinned within milliseconds of their creation. The plan's number of
/// threads, if it has one, replaces {n} in the arguments. run also sets the plan's environment
/// variables. run prints only warnings. Its exit code is the program's, or 128 + N if signal N
/// ended it.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise run plan.toml -- pigz -p 6 -k -c big.file > big.file.gz
  pinwise run tuned.toml -- pigz -p {n} -k -c big.file > big.file.gz")]
pub(crate) struct Run {
    #[command(flatten)]
    plan: PlanArgument,
    /// Use the plan although it is for another machine. Differences become warnings
    #[arg(long)]
    force: bool,
    /// The program and its arguments. {n} becomes the plan's number of threads
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let plan = self.plan.load()?;
        self.check_number(&plan)?;
        plan::check(&plan, &pinwise_linux::this_machine()?, self.force)?;
        // The program decides what a signal means, and we end with it.
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(number, signal.clone(), number as usize)?;
        }
        let (program, arguments) = self.command.split_first().context("no command")?;
        let mut child = Command::new(program)
            .args(arguments.iter().map(|word| filled(word, plan.number.as_ref())))
            .envs(plan.number.iter().flat_map(|number| &number.environment))
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Usage("there is no such program".into()).into(),
                _ => anyhow::Error::from(error),
            })
            .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        let pid = Pid(child.id() as i32);
        // A program that was just started is nobody else's.
        let _lock = ProcessLock::of(&[pid]).unwrap_or_default();
        let mut pinner =
            PlanPinner::new(Scope::Trees(vec![pid]), plan::wanted(&plan), EndedThreads::Forgotten)
                .with_context(|| format!("cannot read the threads of process {pid}"))?;
        let status = follow(&mut child, &mut pinner, &signal)?;
        let missing = pinner.missing();
        if !missing.is_empty() {
            crate::output::aside(&format!(
                "warning: {} never appeared: it lived only a few ms, or this is not the program \
                 of the plan ({})",
                plan::named(&missing),
                plan.program
            ));
        }
        if let Some(signal) = status.signal() {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            let program = program.to_string_lossy();
            crate::output::aside(&format!("warning: {program} was ended by {name} ({signal})"));
        }
        // The program's exit code is ours; everything has been printed.
        std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// Refuses a command that asks for a number where the plan has none.
    fn check_number(&self, plan: &Plan) -> Result<(), Usage> {
        let place = PlannedNumber::PLACE;
        let asks = |word: &OsString| word.to_str().is_some_and(|word| word.contains(place));
        let asks = self.command.iter().any(asks);
        if let Some(number) = &plan.number {
            let n = number.n.to_string();
            let typed = |word: &OsString| word.to_str().is_some_and(|word| word.contains(&n));
            let given = asks || !number.environment.is_empty() || number.set.is_some();
            if !given && !self.command.iter().any(typed) {
                crate::output::aside(&format!(
                    "warning: the plan's n = {n} is not used: write {place} where CMD takes it"
                ));
            }
            return Ok(());
        }
        if !asks {
            return Ok(());
        }
        Err(Usage(format!(
            "{place}: the plan has no number of threads: write the number instead, or use a plan \
             of `pinwise tune`"
        )))
    }
}

/// A word of the command with the plan's number in its place.
fn filled(word: &OsStr, number: Option<&PlannedNumber>) -> OsString {
    let text = number.and_then(|number| Some(number.fill(word.to_str()?).into()));
    text.unwrap_or_else(|| word.to_owned())
}

/// Pins threads until the program ends.
fn follow(
    child: &mut Child,
    pinner: &mut PlanPinner,
    signal: &AtomicUsize,
) -> anyhow::Result<ExitStatus> {
    loop {
        for thread in pinner.look().context("cannot read the program's threads")? {
            if let Err(error) = thread.result {
                crate::output::aside(&format!("warning: {}: {error}", thread.name));
            }
        }
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(status);
        }
        let number = signal.swap(0, Ordering::Relaxed) as i32;
        let passed_on = match number {
            SIGTERM => Some(Signal::TERM),
            SIGHUP => Some(Signal::HUP),
            SIGINT if !in_foreground() => Some(Signal::INT),
            _ => None,
        };
        if let Some(signal) = passed_on {
            // It may have ended just now.
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(child), signal);
        }
        std::thread::sleep(pinner.interval());
    }
}

/// Whether a terminal's Ctrl-C reaches us and the program, which is in our process group. To the
/// program, twice may mean more than once.
fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}
