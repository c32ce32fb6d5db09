//! A program running on a platform, and what can be seen of it.

use crate::accounting::Accounts;
use crate::kernel::{Kernel, Stuck};
use crate::other_programs::OtherPrograms;
use crate::platform::Platform;
use crate::program::{ModelProgram, ModelProgramError};
use crate::time::Nanos;

/// A run of a program, from the moment its main thread begins to create the others.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    kernel: Kernel<'a>,
}

/// Why there is no speed-up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// No such program.
    #[error(transparent)]
    Program(#[from] ModelProgramError),
    /// It does not end.
    #[error("program '{program}' with parameter {n}: {stuck}")]
    Stuck {
        /// Which.
        program: String,
        /// Its parameter.
        n: u32,
        /// Why.
        stuck: Stuck,
    },
}

impl<'a> Simulation<'a> {
    /// A run with parameter `n`; the same `seed` repeats it event by event. Error: `n` out of
    /// range.
    pub fn new(
        platform: &'a Platform,
        program: &ModelProgram,
        n: u32,
        seed: u64,
    ) -> Result<Self, ModelProgramError> {
        Ok(Self { kernel: Kernel::new(platform, program.parts(n, false)?, seed) })
    }

    /// The same of a program that has no end: to be watched for a while.
    pub fn endless(
        platform: &'a Platform,
        program: &ModelProgram,
        n: u32,
        seed: u64,
    ) -> Result<Self, ModelProgramError> {
        Ok(Self { kernel: Kernel::new(platform, program.parts(n, true)?, seed) })
    }

    /// The same beside other programs. Their clock stands at `began` when the run begins. `seed` is
    /// that of their habits: with the same one, two runs meet the same bursts.
    #[must_use]
    pub fn beside(self, others: &[OtherPrograms], began: Nanos, seed: u64) -> Self {
        Self { kernel: self.kernel.beside(others, began, seed) }
    }

    /// The same of a program that has run for long: its threads stand anywhere in their scheduling
    /// class. A new program has the highest priority at first.
    #[must_use]
    pub fn under_way(self) -> Self {
        Self { kernel: self.kernel.under_way() }
    }

    /// Goes on until `until` (counted from the start), or until the program has ended, whichever
    /// comes first. Error: a deadlock.
    pub fn advance(&mut self, until: Nanos) -> Result<(), Stuck> {
        self.kernel.advance(until)
    }

    /// The program has ended.
    pub fn finished(&self) -> bool {
        self.kernel.finished()
    }

    /// What has happened so far.
    pub fn accounts(&self) -> Accounts {
        self.kernel.accounts()
    }
}

/// A whole run with parameter `n`. Errors: `n` out of range, a deadlock.
pub fn run(
    platform: &Platform,
    program: &ModelProgram,
    n: u32,
    seed: u64,
) -> Result<Accounts, RunError> {
    let mut simulation = Simulation::new(platform, program, n, seed)?;
    let stuck = |stuck| RunError::Stuck { program: program.name.clone(), n, stuck };
    simulation.advance(Nanos::NEVER).map_err(stuck)?;
    Ok(simulation.accounts())
}

/// How many times faster than the sequential program a whole run with parameter `n` is. Errors: as
/// [`run`].
pub fn speedup(
    platform: &Platform,
    program: &ModelProgram,
    n: u32,
    seed: u64,
) -> Result<f64, RunError> {
    Ok(program.sequential().seconds() / run(platform, program, n, seed)?.at.seconds())
}
