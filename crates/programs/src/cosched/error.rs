//! Why programs cannot be co-scheduled.

use pinwise_counters::CountError;
use pinwise_linux::TargetError;
use pinwise_measure::{MeasureError, Retry};
use pinwise_topology::CpuSet;

/// Why programs cannot be co-scheduled. One line: what failed, on what, why, what to do.
#[derive(Debug, thiserror::Error)]
pub enum CoscheduleError {
    /// The programs cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is nothing to schedule beside each other.
    #[error(
        "co-scheduling takes two running programs, and {} {name}: {}; pinwise place is for the \
         threads of one program",
        match (.running, .processes) {
            (0, 0 | 1) => "no program runs in".to_owned(),
            (_, 0 | 1) => "one program runs in".to_owned(),
            (0, all) => format!("none of {all} processes runs in"),
            (_, all) => format!("one of {all} processes runs in"),
        },
        match .processes {
            0 | 1 => "name more with --pid, or put them under load",
            _ => "the others sleep or wait, so put them under load",
        }
    )]
    TooFewPrograms {
        /// What was named.
        name: String,
        /// The programs in it that run: none or one.
        running: usize,
        /// The processes in it, idle ones too.
        processes: usize,
    },
    /// Threads cannot be counted any more.
    #[error(transparent)]
    Count(#[from] CountError),
    /// No thread may use two of the contexts.
    #[error(
        "the threads of {name} may run on CPU {theirs}, and none of them on two of {contexts}, so \
         none can be moved: widen their affinities (taskset -acp {contexts} PID), or change --cpus"
    )]
    NoChoice {
        /// What was named.
        name: String,
        /// The CPUs of all its threads together.
        theirs: CpuSet,
        /// The contexts that may be used.
        contexts: CpuSet,
    },
}

impl From<CoscheduleError> for MeasureError {
    fn from(error: CoscheduleError) -> Self {
        match error {
            CoscheduleError::Target(error) => error.into(),
            error => Self::new(Retry::Never, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_programs_that_run_say_how_many_sleep() {
        let told = |running, processes| {
            let name = "sh (pid 7)".to_owned();
            CoscheduleError::TooFewPrograms { name, running, processes }.to_string()
        };
        assert!(told(0, 1).contains("and no program runs in sh (pid 7): name more with --pid"));
        let idle = told(1, 3);
        assert!(idle.contains("and one of 3 processes runs in sh (pid 7): the others sleep"));
    }
}
