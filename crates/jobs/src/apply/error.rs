//! Why a plan cannot be used.

use pinwise_linux::{
    CaptureError, MemoryError, Pid, PlanPinnerError, TargetError, why_not_started,
};
use pinwise_placement::{Plan, PlanDifference, PlannedNumber};
use pinwise_present::figures::counted;
use pinwise_present::{named_threads, plan_difference};
use pinwise_programs::ProbeError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a plan cannot be used, or is not in place.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// There is no such process, or another pinwise changes it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// This machine cannot be read.
    #[error(transparent)]
    Machine(#[from] CaptureError),
    /// The plan is for another machine.
    #[error("the plan does not fit: {}; run `pinwise place` again, or use --force if you know \
        that it fits", .0.iter().map(plan_difference).collect::<Vec<_>>().join("; "))]
    Misfit(Vec<PlanDifference>),
    /// The plan's number of threads cannot be set.
    #[error(transparent)]
    Number(#[from] ProbeError),
    /// The command has a place for a number, and the plan has none.
    #[error(
        "{}: the plan has no number of threads: write the number instead, or use a plan of \
        `pinwise tune`",
        PlannedNumber::PLACE
    )]
    NoNumber,
    /// The plan sets environment variables that say more than its number.
    #[error(
        "the plan sets {}, which can make a program run other code; if you trust the plan, add {}",
        .0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" and "),
        .0.iter().map(|(name, _)| format!("--env {name}")).collect::<Vec<_>>().join(" ")
    )]
    Environment(Vec<(String, String)>),
    /// The caller allowed an environment variable that the plan does not set.
    #[error("--env {0}: the plan does not set a variable of this name")]
    NoVariable(String),
    /// There is no program to start.
    #[error("no command")]
    NoCommand,
    /// The program cannot be started.
    #[error("cannot start {program}: {}", why_not_started(program, cause))]
    Start {
        /// The program.
        program: String,
        /// Why not.
        cause: io::Error,
    },
    /// The affinities to restore cannot be stored or read.
    #[error("{}: cannot use this folder for the affinities to restore: {cause}; XDG_DATA_HOME \
        must name a folder you may write to, with free space", folder.display())]
    Notes {
        /// The folder of the notes.
        folder: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The threads of the program cannot be read.
    #[error("cannot read the program's threads: {0}")]
    Threads(io::Error),
    /// The program that was started cannot be waited for.
    #[error("cannot wait for the program: {0}")]
    Wait(io::Error),
    /// No affinity is noted.
    #[error(
        "process {0} has nothing to undo: no plan applied, already undone, new threads, or a \
        plan of another user"
    )]
    NothingToUndo(Pid),
    /// The memory of the program cannot be where the plan wants it.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Threads of the plan are missing or refused.
    #[error(transparent)]
    Unplaced(#[from] Unplaced),
    /// The receiver of the events cannot take them.
    #[error(transparent)]
    Output(io::Error),
}

impl From<PlanPinnerError> for ApplyError {
    fn from(error: PlanPinnerError) -> Self {
        match error {
            PlanPinnerError::Threads(cause) => Self::Threads(cause),
            PlanPinnerError::Notes { folder, cause } => Self::Notes { folder, cause },
        }
    }
}

impl ApplyError {
    /// Whether the caller named something that does not exist.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Target(TargetError::NoProcess(_))
            | Self::NoNumber
            | Self::Environment(_)
            | Self::NoVariable(_) => true,
            Self::Start { cause, .. } => cause.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// Threads of a plan that are not in their place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} of {} of the plan are not pinned: {}",
    self.count(),
    counted(*.threads as u64, "thread"),
    self.why()
)]
pub struct Unplaced {
    /// How many were refused.
    pub refused: usize,
    /// Those that the program does not have.
    pub missing: Option<MissingThreads>,
    /// How many threads the plan has.
    pub threads: usize,
}

impl Unplaced {
    /// An error where threads are missing or refused.
    pub(super) fn check(
        refused: usize,
        missing: Option<MissingThreads>,
        threads: usize,
    ) -> Result<(), ApplyError> {
        if refused == 0 && missing.is_none() {
            return Ok(());
        }
        Err(Self { refused, missing, threads }.into())
    }

    fn count(&self) -> usize {
        self.refused + self.missing.as_ref().map_or(0, |missing| missing.names.len())
    }

    fn why(&self) -> String {
        match (&self.missing, self.refused) {
            (None, refused) => format!("{refused} refused"),
            (Some(missing), 0) => missing.to_string(),
            (Some(missing), refused) => format!("{refused} refused, and {missing}"),
        }
    }
}

/// Threads of a plan that the program does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingThreads {
    /// Their names, at least one.
    pub names: Vec<String>,
    /// The program of the plan.
    pub program: String,
}

impl MissingThreads {
    pub(super) fn new<'n>(plan: &Plan, names: impl IntoIterator<Item = &'n str>) -> Option<Self> {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        (!names.is_empty()).then(|| Self { names, program: plan.program.clone() })
    }
}

impl fmt::Display for MissingThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the process has no {}; the plan is for {}. Check the program and its number of \
             threads with ps -T -p PID",
            named_threads(&self.names),
            self.program
        )
    }
}
