//! `--memory`: where memory lies.

use clap::ValueEnum;
use pinwise_measure::MemoryPolicy;

/// The policies, as users type them.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum MemoryArgument {
    Leave,
    Follow,
    Interleave,
}

impl From<MemoryArgument> for MemoryPolicy {
    fn from(argument: MemoryArgument) -> Self {
        match argument {
            MemoryArgument::Leave => Self::Leave,
            MemoryArgument::Follow => Self::Follow,
            MemoryArgument::Interleave => Self::Interleave,
        }
    }
}
