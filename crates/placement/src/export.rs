//! Plans in the pinning syntax of other tools.
//!
//! Few tools can say all that a plan says. Those that pin whole processes get the union of the
//! threads' CPUs; those that pin a list of CPUs in the order of thread creation cannot leave a
//! thread out. Every format says in a note what it had to leave out, and refuses where the result
//! would be another placement under the same name.

mod dpdk;
mod instances;
mod json;
mod likwid;
mod openmp;
mod process;
mod script;
mod scx_layered;
mod suricata;
mod vpp;

use crate::{Plan, PlannedThread};
use pinwise_topology::{CpuId, CpuSet};

/// A pinning syntax.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// As users type it.
    pub name: &'static str,
    /// What is written and how to use it.
    pub about: &'static str,
    write: fn(&Plan) -> Result<Export, String>,
}

/// A plan in another syntax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The text, ending in a newline.
    pub text: String,
    /// What the syntax could not say, and what it relies on.
    pub notes: Vec<String>,
}

/// Why a plan cannot be said in a syntax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} cannot express this plan: {reason}")]
pub struct ExportError {
    /// The format's name.
    pub format: &'static str,
    /// What it lacks, and what to use instead.
    pub reason: String,
}

/// Every format, in the order of help.
pub const FORMATS: &[Format] = &[
    Format {
        name: "script",
        about: "shell script: taskset for every thread of a running PID",
        write: script::script,
    },
    Format {
        name: "json",
        about: "threads with their CPUs as list, mask and hwloc cpuset",
        write: json::json,
    },
    Format {
        name: "cpulist",
        about: "the CPUs of all threads, as 0,3,7-11",
        write: process::cpulist,
    },
    Format {
        name: "mask",
        about: "the CPUs of all threads, as taskset's mask 0x5",
        write: process::mask,
    },
    Format {
        name: "hwloc",
        about: "the CPUs of all threads, as hwloc's cpuset",
        write: process::hwloc,
    },
    Format {
        name: "taskset",
        about: "taskset -c LIST, to put before the command",
        write: process::taskset,
    },
    Format {
        name: "numactl",
        about: "numactl --physcpubind=LIST, to put before the command",
        write: process::numactl,
    },
    Format {
        name: "systemd",
        about: "a drop-in for a unit: CPUAffinity=",
        write: process::systemd,
    },
    Format {
        name: "systemd_cpuset",
        about: "a drop-in for a unit: AllowedCPUs=, which no thread of it can leave",
        write: process::systemd_cpuset,
    },
    Format { name: "cgroup", about: "cpuset.cpus of a cgroup (version 2)", write: process::cgroup },
    Format { name: "gamemode", about: "gamemode.ini: pin_cores=", write: process::gamemode },
    Format {
        name: "openmp",
        about: "OMP_PLACES, OMP_PROC_BIND, OMP_NUM_THREADS for a shell",
        write: openmp::openmp,
    },
    Format { name: "gomp", about: "GOMP_CPU_AFFINITY (GCC's libgomp)", write: openmp::gomp },
    Format { name: "kmp", about: "KMP_AFFINITY (LLVM's and Intel's libomp)", write: openmp::kmp },
    Format {
        name: "likwid",
        about: "likwid-pin -c LIST, to put before the command",
        write: likwid::likwid,
    },
    Format { name: "dpdk", about: "--lcores of a DPDK program", write: dpdk::dpdk },
    Format { name: "vpp", about: "the cpu section of VPP's startup.conf", write: vpp::vpp },
    Format {
        name: "suricata",
        about: "the threading section of suricata.yaml",
        write: suricata::suricata,
    },
    Format {
        name: "slurm",
        about: "srun --cpu-bind=mask_cpu, one task per instance",
        write: instances::slurm,
    },
    Format {
        name: "rankfile",
        about: "a rankfile of Open MPI 4, one rank per instance",
        write: instances::rankfile,
    },
    Format {
        name: "scx_layered",
        about: "a layer of the scx_layered scheduler",
        write: scx_layered::scx_layered,
    },
];

impl Format {
    /// The format called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Says `plan` in this syntax.
    pub fn export(&self, plan: &Plan) -> Result<Export, ExportError> {
        let refused = |reason| ExportError { format: self.name, reason };
        let number = plan.number.as_ref().map(|number| number.n);
        if plan.threads.is_empty() {
            let n = number.unwrap_or_default();
            return Err(refused(format!(
                "it leaves the threads to the operating system; start the program with n = {n}"
            )));
        }
        let mut export = (self.write)(plan).map_err(refused)?;
        export
            .notes
            .extend(number.map(|n| format!("this holds for n = {n}: start the program with it")));
        Ok(export)
    }
}

/// The one CPU of a thread; the reason to refuse where it may run on several.
fn only_cpu(thread: &PlannedThread) -> Result<CpuId, String> {
    match thread.cpus.first() {
        Some(cpu) if thread.cpus.len() == 1 => Ok(cpu),
        _ => Err(format!(
            "thread '{}' may run on several CPUs ({}); use script",
            thread.name, thread.cpus
        )),
    }
}

/// The CPU of every thread, in order.
fn cpus_in_order(plan: &Plan) -> Result<Vec<u32>, String> {
    plan.threads.iter().map(|thread| only_cpu(thread).map(|cpu| cpu.0)).collect()
}

fn joined<T: ToString>(items: &[T], separator: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(separator)
}

/// The number at the end of a thread's name after `prefix`: 2 for `vpp_wk_2`.
fn number_after(name: &str, prefix: &str) -> Option<usize> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// A note that names threads a syntax has no words for.
fn left_out(threads: &[&PlannedThread], why: &str) -> Option<String> {
    let names: Vec<&str> = threads.iter().map(|thread| thread.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("left out, {why}: {}", names.join(" ")))
}

fn union<'a>(threads: impl IntoIterator<Item = &'a PlannedThread>) -> CpuSet {
    threads.into_iter().flat_map(|thread| thread.cpus.iter()).collect()
}

#[cfg(test)]
mod tests;
