//! Why a target cannot be used.

use crate::affinity::AffinityError;
use crate::guardian::GuardianError;
use crate::memory::MemoryError;
use crate::process_lock::ProcessLockedError;
use crate::thread::Pid;
use pinwise_figures::duration;
use pinwise_measure::{MeasureError, Retry};
use pinwise_topology::CpuSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a target cannot be used. One line: what failed, on what, why, what to do.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The program could not be started.
    #[error("cannot start {program}: {}", why_not_started(program, cause))]
    Launch {
        /// The program that was to be started.
        program: String,
        /// Why not.
        cause: io::Error,
    },
    /// A file that the program is to read or write cannot be opened.
    #[error("cannot open {} for the program: {cause}: name another file, or make its folder",
        path.display())]
    Unopened {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// A process to attach to does not exist.
    #[error("there is no process {0}: it ended, or the number is wrong (pgrep NAME finds it)")]
    NoProcess(Pid),
    /// Another pinwise measures or pins it.
    #[error(transparent)]
    Held(#[from] ProcessLockedError),
    /// The cgroup cannot be read.
    #[error("cannot read cgroup {}: {cause}", path.display())]
    Cgroup {
        /// The path that the user gave.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Nothing to attach to.
    #[error("{0} has no process")]
    Empty(String),
    /// The program ended.
    #[error("{name} ended{how}{last}")]
    Ended {
        /// The program's name.
        name: String,
        /// ` (exit status: 1) 0.2 s after its start`, or what is known about an attached one.
        how: String,
        /// `; its last line was: …`, if there is one, and what to do if it ended as it
        /// should.
        last: String,
    },
    /// No thread runs.
    #[error(
        "each thread of {name} used less than 1 % of a CPU for {}: {}",
        duration(*.waited),
        under_load(*.children)
    )]
    Idle {
        /// The program's name.
        name: String,
        /// How long was waited.
        waited: Duration,
        /// The processes that it has started and that were not watched.
        children: usize,
    },
    /// A program that is restarted ends before any of its threads has run long enough to be
    /// placed.
    #[error(
        "{name} ends {} after its start and hardly computes: nothing to place; give it more work \
         (a larger input, more repetitions)",
        duration(*.after)
    )]
    Brief {
        /// The program's name.
        name: String,
        /// How long a run took.
        after: Duration,
    },
    /// The user's thread filter leaves none of the threads that run.
    #[error(
        "--include and --exclude leave no thread of {name} to place; those that run are {running}"
    )]
    NoneChosen {
        /// The program's name.
        name: String,
        /// Their names.
        running: String,
    },
    /// None of the threads of the campaign appears.
    #[error(
        "{name} ran without the threads that were placed before ({known}); those that run are \
         {running}: begin a new search"
    )]
    NoneKnown {
        /// The program's name.
        name: String,
        /// The names of the campaign's threads.
        known: String,
        /// The names of those that run.
        running: String,
    },
    /// The set of running threads keeps changing.
    #[error(
        "the busy threads of {name} did not stay the same for {} within {}: use --metric \
         runtime, or wait until it has started up",
        duration(*.window),
        duration(*.waited)
    )]
    Unsteady {
        /// The program's name.
        name: String,
        /// How long they should have.
        window: Duration,
        /// How long was waited.
        waited: Duration,
    },
    /// None of the CPUs it may use is one that pinwise may use.
    #[error("{name} may run on CPU {theirs}, pinwise on CPU {ours}: no CPU is common to both")]
    NoCpu {
        /// The program's name.
        name: String,
        /// Its CPUs.
        theirs: CpuSet,
        /// Ours.
        ours: CpuSet,
    },
    /// Its memory cannot be where it is wanted.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// An affinity was refused.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// No guardian, no pinning.
    #[error(transparent)]
    Guardian(#[from] GuardianError),
    /// `/proc` could not be read.
    #[error("cannot read the threads of {name}: {cause}")]
    Proc {
        /// The program's name.
        name: String,
        /// Why not.
        cause: io::Error,
    },
    /// A first measurement failed, or the user asked to stop.
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

impl From<TargetError> for MeasureError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Measure(error) => error,
            TargetError::Affinity(AffinityError::Excluded { .. }) => {
                Self::new(Retry::Other, error.to_string())
            }
            error => Self::new(Retry::Never, error.to_string()),
        }
    }
}

/// What to do about threads that do not run.
fn under_load(children: usize) -> String {
    match children {
        0 => "put it under load, then try again".into(),
        1 => "put it under load, or add its child process with --tree PID".into(),
        many => format!("put it under load, or add its {many} child processes with --tree PID"),
    }
}

/// Whether a name looks like one of a folder in PATH with its arguments.
fn is_command(program: &str) -> bool {
    program.split_once(' ').is_some_and(|(first, _)| !first.contains('/'))
}

/// Why a program could not be started, and what to do.
pub fn why_not_started(program: &str, cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound if is_command(program) => {
            "no program has this name; leave the quotes out, or use -- sh -c 'COMMAND'".into()
        }
        io::ErrorKind::NotFound => {
            "there is no such program; give its path, or add its folder to PATH".into()
        }
        io::ErrorKind::PermissionDenied => {
            "permission denied: is it a program, and executable (chmod +x)?".into()
        }
        _ => cause.to_string(),
    }
}
