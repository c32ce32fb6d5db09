//! A program on this machine: how it is started or found, and how it gets its number of threads.

use crate::error::JobError;
use crate::events::{Events, note};
use crate::placement_request::ReadingOptions;
use pinwise_linux::Pid;
use pinwise_metric::{MetricOptions, MetricSpec};
use pinwise_present::Notice;
use pinwise_programs::{CommandTemplate, NumberSetter, ProbedProgram};
use pinwise_threads::ThreadsPerN;
use pinwise_topology::Machine;
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A program on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostProgram {
    /// Its command, with `{n}` where it takes its number of threads.
    pub command: Vec<String>,
    /// Environment variables that take the number, or `NAME=VALUE` with `{n}` in it.
    pub env: Vec<String>,
    /// How the number is changed while the program runs. `None`: it is restarted.
    pub set: Option<NumberSetter>,
    /// A process that runs already.
    pub pid: Option<i32>,
    /// The least speed that a number may have (0.5 for 50 %). It is a share of the speed with the
    /// program's own number. The search gives up a slower number at once. Needs `set` and a metric.
    #[serde(default)]
    pub floor: Option<f64>,
    /// How many threads it makes for n. `None`: n or a few more.
    pub threads_per_n: Option<ThreadsPerN>,
    /// The metric of its progress, as typed after `--metric`.
    pub metric: Option<String>,
    /// How the metric is read.
    pub reading: ReadingOptions,
    /// A line of its output that ends its initialization, as a regular expression.
    pub after: Option<String>,
    /// Files that are removed after each run.
    pub remove: Vec<PathBuf>,
    /// The file for its standard output. `None`: no file.
    pub output: Option<PathBuf>,
}

impl HostProgram {
    /// The program's name, as the user would call it.
    pub(crate) fn name(&self) -> String {
        self.pid.map_or_else(|| self.command.join(" "), |pid| format!("process {pid}"))
    }

    /// Refuses a limit that is not there.
    pub(crate) fn subject(&self) -> Result<ProbedProgram, JobError> {
        let limit = self.set.as_ref().map_or(Ok(()), NumberSetter::check);
        limit.map_err(|error| JobError::Usage(format!("--set: {error}")))?;
        Ok(match (&self.set, self.pid) {
            (Some(set), Some(pid)) => ProbedProgram::Running(Pid(pid), set.clone()),
            (Some(set), None) => ProbedProgram::Launched(self.template()?, set.clone()),
            (None, _) => ProbedProgram::Anew(self.template()?),
        })
    }

    /// How it is started.
    pub(crate) fn template(&self) -> Result<CommandTemplate, JobError> {
        let (command, output) = (self.command.clone(), self.output.clone());
        let template = match self.set {
            Some(_) => CommandTemplate::fixed(command, &self.env, output),
            None => CommandTemplate::new(command, &self.env, output),
        };
        template.map_err(JobError::usage)
    }

    /// Refuses an output file that another program made: each start of this one empties it.
    /// `numbers`: what it may be started with. `begun`: when the campaign began, in seconds since
    /// the Unix epoch; `None`: it begins now. What was written since then is its own.
    pub(crate) fn check_output(&self, numbers: &[u32], begun: Option<i64>) -> Result<(), JobError> {
        let (Some(output), None) = (&self.output, self.pid) else { return Ok(()) };
        let template = self.template()?;
        let mut paths: Vec<PathBuf> =
            numbers.iter().map(|&number| template.path(output, number)).collect();
        paths.dedup();
        let foreign = |path: &&PathBuf| {
            let kept = |file: &Metadata| file.is_file() && file.len() > 0;
            let before = |file: Metadata| begun.is_none_or(|begun| file.mtime() < begun);
            fs::metadata(path).ok().filter(kept).is_some_and(before)
        };
        match paths.iter().find(foreign) {
            Some(path) => Err(JobError::Usage(format!(
                "{} exists, and every start of the program would empty it: remove it, or name \
                 another file with --output",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    /// The metric, if one is named, there or not.
    pub fn named_metric(&self) -> Result<Option<(MetricSpec, MetricOptions)>, JobError> {
        let ReadingOptions { pick, counter, lower_is_better, unit, .. } = &self.reading;
        let Some(metric) = &self.metric else {
            let given = [
                (pick.is_some(), "--pick"),
                (counter.is_some(), "--counter or --gauge"),
                (*lower_is_better, "--lower-is-better"),
                (unit.is_some(), "--unit"),
            ];
            return match given.iter().find(|(given, _)| *given) {
                Some((_, what)) => {
                    Err(JobError::Usage(format!("{what} needs a metric: add --metric")))
                }
                None => Ok(None),
            };
        };
        let metric: MetricSpec = metric.parse().map_err(JobError::usage)?;
        Ok(Some((metric, self.reading.metric_options()?)))
    }

    /// Says that the metric's file is not there yet, if the program that is started may create it.
    pub(crate) fn note_awaited_file(&self, events: &mut dyn Events) -> Result<(), JobError> {
        match self.named_metric()?.as_ref().and_then(|(metric, _)| metric.missing_file()) {
            Some(file) if self.pid.is_none() => {
                note(events, Notice::FileAwaited { file: file.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Says which CPUs of a running program the kernel does not put back, before any is taken away.
    pub(super) fn note_forgotten(
        &self,
        machine: &Machine,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        let forgotten = self
            .set
            .as_ref()
            .zip(self.pid)
            .and_then(|(set, pid)| set.forgotten(Pid(pid), &machine.offline));
        forgotten.map_or(Ok(()), |about| note(events, about))
    }

    /// Whether the threads that probes see show what n does. With a metric it is the metric.
    pub(super) fn counts_threads(&self) -> bool {
        self.set.is_none() && self.metric.is_none() && self.formula().follows()
    }

    pub(crate) fn formula(&self) -> ThreadsPerN {
        self.threads_per_n.clone().unwrap_or_else(ThreadsPerN::identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Listening};
    use pinwise_measure::ProgramNote;
    use std::process::Command;

    #[test]
    fn an_output_of_before_the_campaign_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let program = HostProgram {
            command: ["true", "{n}"].map(str::to_owned).to_vec(),
            output: Some(folder.path().join("out-{n}")),
            ..HostProgram::default()
        };
        let refused = |numbers: &[u32], begun| program.check_output(numbers, begun).is_err();
        fs::write(folder.path().join("out-2"), "kept").unwrap();
        fs::write(folder.path().join("out-3"), "").unwrap();
        assert!(refused(&[1, 2], None));
        assert!(!refused(&[1, 3], None), "nothing is lost");
        let written = fs::metadata(folder.path().join("out-2")).unwrap().mtime();
        assert!(!refused(&[2], Some(written)), "the campaign wrote it");
        assert!(refused(&[2], Some(written + 1)));
    }

    /// `setarch` makes the kernel say that it is an old one.
    #[test]
    fn cpus_that_an_old_kernel_does_not_put_back_are_named_before_they_are_taken_away() {
        const OLD: &str = "PINWISE_TEST_OLD_KERNEL";
        if std::env::var_os(OLD).is_none() {
            let name = std::thread::current().name().unwrap().to_owned();
            let mut old = Command::new("setarch");
            old.arg("--uname-2.6").arg(std::env::current_exe().unwrap());
            match old.args(["--exact", &name]).env(OLD, "1").output() {
                Ok(ended) => assert!(ended.status.success(), "{ended:?}"),
                Err(_) => pinwise_synthetic::lacking("setarch"),
            }
            return;
        }
        let here = pinwise_linux::this_machine().unwrap();
        let machine = Machine { offline: here.allowed.clone(), ..here };
        let told = |set: &str| {
            let (pid, set) = (Some(std::process::id() as i32), Some(set.parse().unwrap()));
            let program = HostProgram { pid, set, ..HostProgram::default() };
            let mut told = Vec::new();
            let mut events = Listening(|event: Event<'_>| {
                if let Event::Note(notice) = event {
                    told.push(notice.clone());
                }
                Ok(())
            });
            program.note_forgotten(&machine, &mut events).unwrap();
            told
        };
        let cpus = machine.offline.to_string();
        assert_eq!(told("cpuset:"), [ProgramNote::OfflineForgotten { cpus }.into()]);
        assert_eq!(told("cmd:echo {n}"), []);
    }
}
