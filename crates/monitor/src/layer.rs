//! The three ways to watch a program: what each gives and lacks, and why one cannot be used.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How a program is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Files of `/proc`, looked at again and again.
    Proc,
    /// The kernel's records of context switches (perf_event_open(2)).
    Perf,
    /// A program in the kernel that keeps the accounts (bpf(2)).
    Ebpf,
}

impl Layer {
    /// All of them, the one that needs least first.
    pub const ALL: [Self; 3] = [Self::Proc, Self::Perf, Self::Ebpf];

    /// Its name, as in output and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proc => "proc",
            Self::Perf => "perf",
            Self::Ebpf => "ebpf",
        }
    }

    /// What it shows.
    pub fn gives(self) -> &'static str {
        match self {
            Self::Proc => {
                "time on and waiting for a CPU, context switches, migrations; time at locks sampled"
            }
            Self::Perf => {
                "time on a CPU, context switches and migrations of every interval; time at locks \
                 sampled"
            }
            Self::Ebpf => {
                "time on a CPU, waiting for one, at locks and asleep, context switches, \
                 migrations: exact, of every thread"
            }
        }
    }

    /// What it does not show.
    pub fn lacks(self) -> &'static str {
        match self {
            Self::Proc => {
                "threads that live for less than 10 ms; what runs now is accounted up to 8 ms late"
            }
            Self::Perf => "how much of the time off a CPU was at locks is known only from looks",
            Self::Ebpf => {
                "locks that spin before they sleep show as computing; 32-bit programs show no locks"
            }
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layer {
    type Err = UnknownLayer;

    fn from_str(text: &str) -> Result<Self, UnknownLayer> {
        Self::ALL
            .into_iter()
            .find(|layer| layer.name() == text)
            .ok_or_else(|| UnknownLayer(text.to_owned()))
    }
}

/// A name that is none of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no monitor '{0}': proc, perf or ebpf")]
pub struct UnknownLayer(String);

/// A layer that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{layer}: {reason}: {remedy}")]
pub struct Unavailable {
    /// Which.
    pub layer: Layer,
    /// Why, for programs.
    #[serde(default)]
    pub kind: Obstacle,
    /// Why, in words.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

impl Unavailable {
    pub(super) fn new(
        layer: Layer,
        kind: Obstacle,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { layer, kind, reason: reason.into(), remedy: remedy.into() }
    }
}

/// Why a layer cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// pinwise may not: a capability or a setting of the kernel is missing.
    NotPermitted,
    /// This build of pinwise does not have it, or not on this architecture.
    NotInBuild,
    /// This kernel does not have it.
    NotInKernel,
    /// pinwise runs in a private PID namespace.
    PidNamespace,
    /// The kernel is locked down.
    LockedDown,
    /// It took too much of the program's CPU time.
    TooCostly,
    /// Another error, which the words name, or a probe that was stored before there were kinds.
    #[default]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_found_by_its_name_alone() {
        for layer in Layer::ALL {
            assert_eq!(layer.to_string().parse(), Ok(layer));
        }
        assert_eq!(
            "L1".parse::<Layer>().unwrap_err().to_string(),
            "there is no monitor 'L1': proc, perf or ebpf"
        );
    }
}
