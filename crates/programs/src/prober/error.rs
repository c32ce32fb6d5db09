//! [`ProbeError`]: why a probe failed.

use pinwise_figures::{counted, duration};
use pinwise_linux::TargetError;
use pinwise_measure::{MeasureError, Retry};
use pinwise_metric::MetricError;
use pinwise_monitor::PowerError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no probe. One line: what failed, on what, why, what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It cannot be started, has ended, or cannot be looked at.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// No number of its metric comes.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// The processor's power cannot be read.
    #[error(transparent)]
    Power(#[from] PowerError),
    /// It ended successfully before it had been watched for long enough.
    #[error(
        "{name} with n = {n} ended by itself after {ran}, before the end of a probe: measure whole \
         runs (--per-run)",
        ran = duration(*ran)
    )]
    Short {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// How long it ran.
        ran: Duration,
    },
    /// It has a single thread where there should be more.
    #[error(
        "{name} never started workers: it has one thread {waited} after its start with n = {n}. \
         Put {{n}} where it takes their number. If it starts slowly, raise --limit, or name its \
         last line with --after REGEX",
        waited = duration(*waited)
    )]
    NoWorkers {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// How long was waited.
        waited: Duration,
    },
    /// Its threads exist and do nothing.
    #[error(
        "none of the {threads} threads of {name} runs, {waited} after its start with n = {n}: put \
         it under load, or raise --limit",
        waited = duration(*waited)
    )]
    Idle {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// Threads there are.
        threads: u32,
        /// How long was waited.
        waited: Duration,
    },
    /// The line that ends its initialization did not come.
    #[error(
        "no line of {name} matched --after '{pattern}' within {waited} of its start with n = \
         {n}{last}",
        waited = duration(*waited)
    )]
    NeverSaid {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// The pattern of the line that did not come.
        pattern: String,
        /// The time that pinwise waited.
        waited: Duration,
        /// `; its last line was: …`
        last: String,
    },
    /// The number of threads is the same with every parameter.
    #[error(
        "the threads of {name} do not follow n: {threads} with n = {one} and with n = {other}. Put \
         {{n}} where it takes their number, use a larger input, or add --metric if n is something \
         else"
    )]
    SameThreads {
        /// The program's name.
        name: String,
        /// The number of threads, the same every time.
        threads: u32,
        /// One parameter.
        one: u32,
        /// Another.
        other: u32,
    },
    /// The kernel stopped it because it is not in the foreground.
    #[error(
        "{name} needs a terminal: it was stopped{signal} when it used that of pinwise. Give it \
         input with < FILE in sh -c, or start it so that it asks for nothing"
    )]
    Terminal {
        /// The program's name.
        name: String,
        /// ` by SIGTTIN`
        signal: String,
    },
    /// It fills the disk.
    #[error(
        "{name} wrote {written} in a probe with n = {n}; the limit is {limit}. Send its output to \
         /dev/null, remove a file after each probe with --remove, or raise --most-written"
    )]
    Wrote {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// The bytes that it wrote, as people read them.
        written: String,
        /// The bytes that it may write.
        limit: String,
    },
    /// Its number could not be changed while it runs.
    #[error("--set with n = {n} failed: {why}")]
    Set {
        /// The parameter.
        n: u32,
        /// The message of the command.
        why: String,
        /// It was stopped while it ran. Which number the program has is not known.
        stopped: bool,
    },
    /// The floor is a share of a speed that the program does not have.
    #[error(
        "--floor has no reference: {name} did no work before the search; put it under load, use a \
         longer --window, or leave out --floor"
    )]
    NoOwnRate {
        /// The program's name.
        name: String,
    },
    /// A whole run takes too long.
    #[error(
        "{name} with n = {n} ran longer than {limit} and was ended: raise --limit, or measure a \
         window without --per-run",
        limit = duration(*limit)
    )]
    Long {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// The limit.
        limit: Duration,
    },
    /// The time for all probes is over.
    #[error(
        "the time of --budget ended before a probe of {name} with n = {n} ({had}, {ran} after its \
         start): raise --budget{doubt}",
        ran = duration(*ran),
        had = counted(u64::from(*threads), "thread"),
        doubt = if *threads > 1 { "" } else {
            ", or put {n} where the program takes its number of threads"
        }
    )]
    Expired {
        /// The program's name.
        name: String,
        /// Its parameter.
        n: u32,
        /// Threads it had.
        threads: u32,
        /// How long it had run.
        ran: Duration,
    },
    /// The time for all probes ended the wait for its metric.
    #[error("{0} (the time of --budget ended the wait: raise it if more would have come)")]
    Unmetered(MetricError),
    /// A file it leaves behind stays.
    #[error("cannot remove {} after a probe: {cause}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

impl ProbeError {
    /// This error as a failure of the prober: another try with the same program does not help.
    pub(crate) fn as_measure_error(&self) -> MeasureError {
        match self {
            Self::Target(TargetError::Measure(error)) => error.clone(),
            Self::Metric(MetricError::Interrupted) => MeasureError::interrupted(),
            Self::Expired { .. } | Self::Unmetered(_) => {
                MeasureError { expired: true, ..MeasureError::new(Retry::Never, self.to_string()) }
            }
            error => MeasureError::new(Retry::Never, error.to_string()),
        }
    }
}

impl From<MeasureError> for ProbeError {
    fn from(error: MeasureError) -> Self {
        Self::Target(error.into())
    }
}
