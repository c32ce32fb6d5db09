//! How the terminal shows what happens while a job runs, and how it ended. All of it goes to
//! stderr: stdout begins with the answer.

use crate::output::{self, Interrupted, Stdout, Usage};
use crate::own_stores;
use crate::placement_header::placement_header;
use crate::progress::ProgressLine;
use anyhow::Context as _;
use pinwise_campaign::{Kind, Store, StoreError};
use pinwise_jobs::{
    Caller, Event, Events, Failure, Interrupt, Interruption, Job, JobError, Kept, Remedy,
};
use pinwise_measure::Retry;
use pinwise_present::{Files, notice, shell};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::Path;

/// Listens to SIGINT, SIGTERM and SIGHUP from now on.
pub(crate) fn listen() -> io::Result<Interrupt> {
    let interrupt = Interrupt::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, interrupt.flag())?;
    }
    Ok(interrupt)
}

/// The caller: this command line. `named` is the store, where it is named.
pub(crate) fn caller(named: Option<&Path>) -> anyhow::Result<Caller> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(Caller {
        command: std::env::args().collect(),
        program: Some(program),
        store: named.map(Path::to_owned),
        interrupt: listen()?,
    })
}

/// Answers a question, and shows what happens meanwhile.
pub(crate) fn run<J: Job>(
    job: J,
    caller: &Caller,
    store: &mut Store,
    json: bool,
) -> anyhow::Result<J::Answer> {
    pinwise_jobs::run(job, caller, store, &mut Terminal::new(json))
        .map_err(|error| explained(error, caller, store))
}

/// Like [`run`]. After an error, `leave` first shows what the campaign has until then.
pub(crate) fn run_or_leave<J: Job>(
    job: J,
    caller: &Caller,
    store: &mut Store,
    json: bool,
    leave: impl FnOnce(&J::Answer, &JobError, &Store) -> anyhow::Result<()>,
) -> anyhow::Result<J::Answer> {
    let error = match pinwise_jobs::run(job, caller, store, &mut Terminal::new(json)) {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    if let Some(answer) = left::<J>(&error, caller, store) {
        leave(&answer, &error, store)?;
    }
    Err(explained(error, caller, store))
}

/// What a job that ended in `error` left in the store, where that is something that can be read.
fn left<J: Job>(error: &JobError, caller: &Caller, store: &Store) -> Option<J::Answer> {
    let kept = match error {
        JobError::Interrupted(Interruption { kept, .. })
        | JobError::Failed(Failure { kept, .. }) => (*kept)?,
        _ => return None,
    };
    let info = store.get(kept.campaign).map_err(JobError::from);
    match info.and_then(|info| J::answer(&info, caller, store)) {
        Ok(answer) => Some(answer),
        Err(unread) => {
            // What ended the job is said all the same.
            output::aside(&format!("note: what was measured cannot be shown: {unread}"));
            None
        }
    }
}

/// Shows events on stderr; progress only where that is a terminal.
pub(crate) struct Terminal {
    /// The one document on stdout is the answer.
    json: bool,
    progress: Option<ProgressLine>,
}

impl Terminal {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, progress: None }
    }
}

impl Events for Terminal {
    fn take(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            // Only place and compare show their threads before the answer.
            Event::Begun(info) => {
                let places = matches!(info.new.kind, Kind::Place | Kind::Compare);
                if places && !self.json {
                    placement_header(info).lines().for_each(output::aside);
                }
            }
            Event::Search { number, of, name } => {
                output::aside(&format!("search {number} of {of}: {name}"));
            }
            Event::Comparison => output::aside("comparing on fresh windows"),
            Event::Measuring { budget, unit } => {
                self.progress = Some(ProgressLine::new(budget, unit.clone()));
            }
            Event::Measured(record) => {
                if let Some(progress) = &mut self.progress {
                    progress.observe(record);
                }
                if let Err(error) = &record.outcome
                    && error.retry == Retry::Later
                {
                    output::aside(&format!("note: {error}"));
                }
            }
            Event::MeasuringEnded => {
                if let Some(progress) = self.progress.take() {
                    progress.finish();
                }
            }
            Event::Outlook(about) => output::aside(&notice(about)),
            Event::Note(about) => output::aside(&format!("note: {}", notice(about))),
        }
        Ok(())
    }
}

impl Drop for Terminal {
    /// Takes the line away that shows the progress.
    fn drop(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
    }
}

/// What ended a job, with the exit code it deserves and what to do next.
pub(crate) fn explained(error: JobError, caller: &Caller, store: &Store) -> anyhow::Error {
    own_stores::note_rescued(store);
    let files = Files::of_store(caller.store.as_deref());
    let resume = |kept: Kept| files.resume(kept.campaign);
    match error {
        JobError::Interrupted(interruption @ Interruption { kept: Some(kept), .. }) => {
            Interrupted(format!("{interruption}; continue with: {}", resume(kept))).into()
        }
        JobError::Failed(Failure { reason, kept: Some(kept), remedy }) => {
            let next = match remedy {
                Remedy::AsCounter => {
                    let command = store.get(kept.campaign).map(|info| info.new.command);
                    format!("with --counter: {}", again(command.unwrap_or_default()))
                }
                Remedy::AskAgain | Remedy::RaiseBudget => {
                    let flag = Files::of_store(caller.store.as_deref()).flag();
                    format!(
                        "see what is stored with: pinwise campaign show {}{flag}",
                        kept.campaign.0
                    )
                }
                Remedy::Resume => format!("once the cause is gone: {}", resume(kept)),
            };
            anyhow::anyhow!("{reason} ({kept}; {next})")
        }
        error => failed(error),
    }
}

/// The error of work that ended before anything was stored, with its exit code.
pub(crate) fn failed(error: JobError) -> anyhow::Error {
    match error {
        JobError::Usage(reason) => Usage(reason).into(),
        JobError::Interrupted(interruption) => Interrupted(interruption.to_string()).into(),
        JobError::Failed(failure) => anyhow::anyhow!("{failure}"),
        JobError::Output(error) => Stdout(error).into(),
        JobError::Store(unknown @ StoreError::NoCampaign { .. }) => {
            Usage(unknown.to_string()).into()
        }
        JobError::Store(error) => error.into(),
    }
}

/// What to type if the metric was a total. A campaign that was begun without --counter cannot go on
/// with it.
fn again(mut words: Vec<String>) -> String {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, "--counter".to_owned());
    shell(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_was_a_total_is_answered_with_the_command_that_measures_its_rate() {
        for (command, meant) in [
            (
                &["pinwise", "place", "--metric", "stdout:(.*) ops/s", "--", "a", "--", "b"][..],
                "'stdout:(.*) ops/s' --counter -- a -- b",
            ),
            (&["pinwise", "place", "--pid", "7"], "--pid 7 --counter"),
        ] {
            let text = again(command.iter().map(ToString::to_string).collect());
            assert!(text.starts_with("pinwise place --") && text.ends_with(meant), "{text}");
        }
    }
}
