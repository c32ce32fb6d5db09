//! Plans in the pinning syntax of other tools.
//!
//! Few tools can express a whole plan. Formats that pin whole processes get the union of the
//! threads' CPUs. Formats that pin a list of CPUs in the order of thread creation cannot leave a
//! thread out. Every format says in a note what it had to leave out. It refuses if the tool would
//! not place the threads as the plan says.

mod dpdk;
mod json;
mod launchers;
mod likwid;
mod note;
mod openmp;
mod script;
mod scx_layered;
mod suricata;
mod vpp;
mod whole_process;

pub use note::{ExportNote, LeftOutBy};

use crate::{Plan, PlannedThread};
use pinwise_topology::{CpuId, CpuSet};

/// A pinning syntax.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name that users type.
    pub name: &'static str,
    /// A description: what is written and how to use it.
    pub about: &'static str,
    write: fn(&Plan) -> Result<Export, String>,
}

/// A plan in another syntax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The text, ending in a newline.
    pub text: String,
    /// Notes on what the syntax could not say, and what it relies on.
    pub notes: Vec<ExportNote>,
}

/// Why a plan cannot be said in a syntax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} cannot express this plan: {reason}")]
pub struct ExportError {
    /// The format's name.
    pub format: &'static str,
    /// The reason: what the syntax lacks, and what to use instead.
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
        write: whole_process::cpulist,
    },
    Format {
        name: "mask",
        about: "the CPUs of all threads, as taskset's mask 0x5",
        write: whole_process::mask,
    },
    Format {
        name: "hwloc",
        about: "the CPUs of all threads, as hwloc's cpuset",
        write: whole_process::hwloc,
    },
    Format {
        name: "taskset",
        about: "taskset -c LIST, to put before the command",
        write: whole_process::taskset,
    },
    Format {
        name: "numactl",
        about: "numactl --physcpubind=LIST and memory, before the command",
        write: whole_process::numactl,
    },
    Format {
        name: "systemd",
        about: "a drop-in for a unit: CPUAffinity=, NUMAPolicy=",
        write: whole_process::systemd,
    },
    Format {
        name: "systemd_cpuset",
        about: "a drop-in for a unit: AllowedCPUs=, which no thread of it can leave",
        write: whole_process::systemd_cpuset,
    },
    Format {
        name: "cgroup",
        about: "cpuset.cpus of a cgroup (version 2)",
        write: whole_process::cgroup,
    },
    Format { name: "gamemode", about: "gamemode.ini: pin_cores=", write: whole_process::gamemode },
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
        write: launchers::slurm,
    },
    Format {
        name: "rankfile",
        about: "a rankfile of Open MPI 4, one rank per instance",
        write: launchers::rankfile,
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
        let left_out =
            plan.memory.as_ref().filter(|_| !whole_process::SAY_MEMORY.contains(&self.name));
        let policy = left_out.map(|memory| memory.policy);
        export.notes.extend(policy.map(|policy| ExportNote::MemoryLeftOut { policy }));
        export.notes.extend(number.map(|n| ExportNote::ForNumber { n }));
        Ok(export)
    }
}

/// The one CPU of a thread; the reason to refuse if it may run on several.
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

/// Refuses a plan that lacks a thread created before one of its threads. `tool` pins threads in the
/// order of creation.
fn check_order(plan: &Plan, tool: &str) -> Result<(), String> {
    let refused = |missing| {
        format!(
            "{tool} pins in order of creation, and the plan has no '{missing}': later threads \
             would get its CPUs; use script, or pinwise run"
        )
    };
    missing(plan).map_or(Ok(()), |missing| Err(refused(missing)))
}

/// The first thread that the plan lacks although it was created before a thread of the plan. Names
/// show the order: with `pigz#0` and `pigz#2`, it is `pigz#1`.
fn missing(plan: &Plan) -> Option<String> {
    let has = |name: &str| plan.threads.iter().any(|thread| thread.name == name);
    plan.threads.iter().find_map(|thread| {
        let (comm, suffix) = thread.name.rsplit_once('#')?;
        let order: usize = suffix.parse().ok()?;
        if order.to_string() != suffix {
            // Suricata itself calls a thread `W#01`.
            return None;
        }
        (0..order).map(|earlier| format!("{comm}#{earlier}")).find(|earlier| !has(earlier))
    })
}

fn joined<T: ToString>(items: &[T], separator: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(separator)
}

/// The number at the end of a thread's name after `prefix`: 2 for `vpp_wk_2`.
fn number_after(name: &str, prefix: &str) -> Option<usize> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// A note that names threads a syntax has no words for.
fn left_out(threads: &[&PlannedThread], by: LeftOutBy) -> Option<ExportNote> {
    let threads: Vec<String> = threads.iter().map(|thread| thread.name.clone()).collect();
    (!threads.is_empty()).then_some(ExportNote::LeftOut { by, threads })
}

fn union<'a>(threads: impl IntoIterator<Item = &'a PlannedThread>) -> CpuSet {
    threads.into_iter().flat_map(|thread| thread.cpus.iter()).collect()
}

#[cfg(test)]
mod tests;
