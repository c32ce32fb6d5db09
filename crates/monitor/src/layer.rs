//! The three ways to watch a program: what each gives and lacks, and why one cannot be used.

use serde::{Deserialize, Deserializer, Serialize};
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
///
/// Its values are stored and shown in JSON. The words are made from them when they are read.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[error("{layer}: {}: {}", self.reason(), self.remedy())]
pub struct Unavailable {
    /// Which.
    pub layer: Layer,
    /// Why.
    #[serde(flatten, deserialize_with = "values_or_reason")]
    pub obstacle: Obstacle,
}

/// Why a layer cannot be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// pinwise may not: a capability or a setting of the kernel is missing.
    NotPermitted,
    /// This build of pinwise does not have it.
    NotInBuild,
    /// pinwise does not have it on this architecture.
    NotOnArchitecture,
    /// This kernel does not have it.
    NotInKernel,
    /// pinwise runs in a private PID namespace.
    PidNamespace,
    /// The kernel is locked down.
    LockedDown,
    /// It took too much CPU time.
    TooCostly {
        /// The share that it took.
        share: f64,
        /// The share that it may take.
        limit: f64,
        /// What these are shares of.
        of: CostBase,
    },
    /// Another error, in the kernel's words, or a reason that was stored as text.
    Other {
        /// The words.
        error: String,
    },
}

/// The time that the cost of a layer is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBase {
    /// The CPU time of the program.
    Program,
    /// Half of one CPU, for a program that uses less.
    HalfCpu,
}

/// Reads a stored reason. Older versions stored some reasons as text alone.
fn values_or_reason<'de, D: Deserializer<'de>>(stored: D) -> Result<Obstacle, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredObstacle {
        Values(Obstacle),
        Text { reason: String },
    }
    Ok(match StoredObstacle::deserialize(stored)? {
        StoredObstacle::Values(obstacle) => obstacle,
        StoredObstacle::Text { reason } => Obstacle::Other { error: reason },
    })
}

impl Unavailable {
    /// Why it cannot be used, in words.
    pub fn reason(&self) -> String {
        let text = match (&self.obstacle, self.layer) {
            (Obstacle::NotPermitted, _) => "not permitted",
            (Obstacle::NotInBuild, _) => "not in this build of pinwise",
            (Obstacle::NotOnArchitecture, _) => "not on this architecture",
            (Obstacle::NotInKernel, Layer::Ebpf) => "no type information (/sys/kernel/btf/vmlinux)",
            (Obstacle::NotInKernel, _) => "no perf_event_open in this kernel or container",
            (Obstacle::PidNamespace, _) => {
                "the kernel's thread numbers differ from those in this PID namespace"
            }
            (Obstacle::LockedDown, _) => "the kernel is locked down",
            (Obstacle::TooCostly { share, limit, of }, _) => {
                let of = match of {
                    CostBase::Program => "the program's CPU time",
                    CostBase::HalfCpu => "half a CPU",
                };
                return format!(
                    "took {:.2} % of {of}, limit {:.1} %",
                    100.0 * share,
                    100.0 * limit
                );
            }
            (Obstacle::Other { error }, _) => error,
        };
        text.to_owned()
    }

    /// What to do about it, in words.
    pub fn remedy(&self) -> &'static str {
        match (&self.obstacle, self.layer) {
            (Obstacle::NotPermitted, Layer::Ebpf) => {
                "sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v pinwise)\""
            }
            (Obstacle::NotPermitted, _) => {
                "sudo setcap cap_perfmon+ep \"$(command -v pinwise)\", or sysctl \
                 kernel.perf_event_paranoid=0"
            }
            (Obstacle::NotInBuild, _) => "cargo build --features bpf",
            (Obstacle::NotOnArchitecture, _) => "x86-64 and AArch64 have it",
            (Obstacle::NotInKernel, Layer::Ebpf) => "use a kernel with CONFIG_DEBUG_INFO_BTF",
            (Obstacle::NotInKernel, _) => {
                "use a kernel with CONFIG_PERF_EVENTS, or allow the system call in the \
                 container's seccomp profile"
            }
            (Obstacle::PidNamespace, _) => "run pinwise outside the container, or with --pid=host",
            (Obstacle::LockedDown, _) => "boot with lockdown=integrity or without",
            (Obstacle::TooCostly { .. }, _) => {
                "/proc is used instead, which costs context switches nothing"
            }
            (Obstacle::Other { .. }, Layer::Ebpf) => {
                "use Linux 5.15 or later, with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT"
            }
            (Obstacle::Other { .. }, _) => "see perf_event_open(2)",
        }
    }
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

    #[test]
    fn reasons_are_stored_as_values_and_those_stored_as_text_are_read() {
        let costly = Unavailable {
            layer: Layer::Ebpf,
            obstacle: Obstacle::TooCostly { share: 0.0315, limit: 0.012, of: CostBase::Program },
        };
        let stored = serde_json::to_string(&costly).unwrap();
        assert_eq!(
            stored,
            r#"{"layer":"ebpf","kind":"too_costly","share":0.0315,"limit":0.012,"of":"program"}"#
        );
        assert_eq!(serde_json::from_str::<Unavailable>(&stored).unwrap(), costly);
        let told = "took 3.15 % of the program's CPU time, limit 1.2 %";
        for (kind, expected) in [
            (r#""kind":"not_permitted","#, Obstacle::NotPermitted),
            (r#""kind":"too_costly","#, Obstacle::Other { error: told.to_owned() }),
            (r#""kind":"other","#, Obstacle::Other { error: told.to_owned() }),
            ("", Obstacle::Other { error: told.to_owned() }),
        ] {
            let text = format!(r#"{{"layer":"perf",{kind}"reason":"{told}","remedy":"look"}}"#);
            assert_eq!(serde_json::from_str::<Unavailable>(&text).unwrap().obstacle, expected);
        }
    }
}
