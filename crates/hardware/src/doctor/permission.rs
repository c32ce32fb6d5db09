//! What the kernel permits this process to do.

use super::{Check, read};
use pinwise_linux::{
    RealtimeClass,
    capabilities::{effective, holds, permit_bpf},
    sys,
};
use pinwise_monitor::{Layer, Unavailable, best_layer};
use pinwise_topology::CpuSet;
use std::io;
use std::path::{Path, PathBuf};

/// Gives pinwise a capability without making it run as root.
fn setcap(capabilities: &str) -> String {
    format!("sudo setcap {capabilities}+ep \"$(command -v pinwise)\"")
}

/// The result of an attempt on a short-lived thread, or why the thread could not be started.
fn on_a_thread<T: Send + 'static>(
    attempt: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::Builder::new().name("doctor".into()).spawn(attempt)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread died")))
}

/// Whether a thread can be confined to one of the CPUs it may use.
pub(super) fn affinity() -> Check {
    const NAME: &str = "setting affinity";
    let attempt = || {
        let before = sys::affinity(0)?;
        let one: CpuSet = before.first().into_iter().collect();
        sys::set_affinity(0, &one)?;
        sys::set_affinity(0, &before)
    };
    match on_a_thread(attempt) {
        Ok(()) => Check::ok(NAME, "a thread of this process was moved and put back"),
        Err(error) => Check::missing(
            NAME,
            format!("sched_setaffinity: {error}"),
            "nothing can be placed without it: allow the system call in the container's seccomp \
             profile",
        ),
    }
}

/// Whether the measuring thread may have the lowest real-time class.
pub(super) fn fifo() -> Check {
    let attempt = on_a_thread(|| RealtimeClass::raise().map(drop));
    judge_fifo(&attempt, read("/proc/self/limits").as_deref().and_then(rtprio))
}

fn judge_fifo(attempt: &io::Result<()>, rtprio: Option<u64>) -> Check {
    const NAME: &str = "SCHED_FIFO";
    let limit = rtprio.map_or("unknown".to_owned(), |limit| limit.to_string());
    match attempt {
        Ok(()) => Check::ok(NAME, "the measuring thread wakes on time next to busy threads"),
        Err(error) => Check::missing(
            NAME,
            format!(
                "{error} (limit on real-time priority: {limit}): the measuring thread wakes up to \
                 15 ms late next to busy threads"
            ),
            format!(
                "{}, or 'USER - rtprio 1' in /etc/security/limits.conf; in a cgroup of version 1 \
                 also cpu.rt_runtime_us",
                setcap("cap_sys_nice")
            ),
        ),
    }
}

/// The soft limit on real-time priority in `/proc/self/limits`.
fn rtprio(limits: &str) -> Option<u64> {
    limits.lines().find_map(|line| {
        line.strip_prefix("Max realtime priority")?.split_whitespace().next()?.parse().ok()
    })
}

/// Capabilities pinwise can use: their numbers (capabilities(7)), and what for.
const CAPABILITIES: [(&str, u32, &str); 4] = [
    ("cap_sys_nice", 23, "move threads of other users, SCHED_FIFO"),
    ("cap_sys_ptrace", 19, "read /proc/PID/io of other users"),
    ("cap_perfmon", 38, "count events of the whole system"),
    ("cap_bpf", 39, "exact scheduling times"),
];

/// Which of the capabilities pinwise can use are in effect.
pub(super) fn capabilities() -> Check {
    judge_capabilities(effective())
}

fn judge_capabilities(effective: u64) -> Check {
    const NAME: &str = "capabilities";
    let (held, lacking): (Vec<_>, Vec<_>) =
        CAPABILITIES.into_iter().partition(|&(_, capability, _)| holds(effective, capability));
    let names = |list: &[(&'static str, u32, &'static str)], separator: &str| {
        list.iter().map(|(name, _, _)| *name).collect::<Vec<_>>().join(separator)
    };
    if lacking.is_empty() {
        return Check::ok(NAME, names(&held, ", "));
    }
    let uses: Vec<String> =
        lacking.iter().map(|(name, _, what)| format!("{name} ({what})")).collect();
    Check::missing(
        NAME,
        format!("without {}; your own programs need none of them", uses.join(", ")),
        setcap(&names(&lacking, ",")),
    )
}

/// Whether the processor's cycles can be counted.
pub(super) fn hardware_counters() -> Check {
    let paranoid = read("/proc/sys/kernel/perf_event_paranoid");
    judge_counters(
        "hardware counters",
        sys::try_event(sys::CountedEvent::Cycles),
        paranoid.as_deref(),
    )
}

/// Whether the kernel's own events (time on CPU, switches) can be counted.
pub(super) fn software_events() -> Check {
    let paranoid = read("/proc/sys/kernel/perf_event_paranoid");
    judge_counters(
        "software events",
        sys::try_event(sys::CountedEvent::TaskClock),
        paranoid.as_deref(),
    )
}

fn judge_counters(name: &'static str, attempt: io::Result<()>, paranoid: Option<&str>) -> Check {
    let Err(error) = attempt else {
        let level = paranoid
            .map(|level| format!(" (kernel.perf_event_paranoid = {level})"))
            .unwrap_or_default();
        return Check::ok(name, format!("can be counted{level}"));
    };
    let level = paranoid.unwrap_or("unknown");
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => Check::missing(
            name,
            "this processor shows no counters (ENOENT): usual in virtual machines",
            "give the virtual machine a PMU (QEMU: -cpu host,pmu=on), or use real hardware; \
             placing needs none",
        ),
        Some(libc::EACCES | libc::EPERM) => Check::missing(
            name,
            format!("not permitted (kernel.perf_event_paranoid = {level})"),
            format!("sudo sysctl kernel.perf_event_paranoid=1, or {}", setcap("cap_perfmon")),
        ),
        Some(libc::ENOSYS) => Check::missing(
            name,
            "no perf_event_open in this kernel or container",
            "use a kernel with CONFIG_PERF_EVENTS, or allow the system call in the container's \
             seccomp profile",
        ),
        _ => Check::missing(
            name,
            format!("perf_event_open: {error}"),
            "see perf_event_open(2); placing needs none",
        ),
    }
}

/// Whether trace events can be found and read.
pub(super) fn tracefs() -> Check {
    let mounted = read("/proc/self/mounts").as_deref().and_then(tracefs_in);
    let readable = mounted
        .as_deref()
        .map(|at| std::fs::metadata(at.join("events/sched/sched_switch/id")).map(drop));
    judge_tracefs(mounted.as_deref(), readable)
}

/// Where tracefs is mounted, according to `/proc/self/mounts`.
fn tracefs_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let at = fields.next()?;
        (fields.next()? == "tracefs").then(|| PathBuf::from(at))
    })
}

fn judge_tracefs(mounted: Option<&Path>, readable: Option<io::Result<()>>) -> Check {
    const NAME: &str = "trace events";
    match (mounted, readable) {
        (None, _) => Check::missing(
            NAME,
            "tracefs is not mounted",
            "sudo mount -t tracefs nodev /sys/kernel/tracing",
        ),
        (Some(at), Some(Err(error))) if error.kind() == io::ErrorKind::PermissionDenied => {
            Check::missing(
                NAME,
                format!("{} is readable by root only", at.display()),
                format!("sudo mount -o remount,mode=755 {}", at.display()),
            )
        }
        (Some(at), Some(Err(error))) => Check::missing(
            NAME,
            format!("{}: no scheduler events ({error})", at.display()),
            "use a kernel with CONFIG_EVENT_TRACING; placing needs none",
        ),
        (Some(at), _) => Check::ok(NAME, format!("tracefs at {}", at.display())),
    }
}

/// Whether eBPF programs that know the kernel's types can be loaded.
pub(super) fn bpf() -> Check {
    let disabled = read("/proc/sys/kernel/unprivileged_bpf_disabled");
    judge_bpf(effective(), Path::new("/sys/kernel/btf/vmlinux").exists(), disabled.as_deref())
}

fn judge_bpf(effective: u64, btf: bool, unprivileged_disabled: Option<&str>) -> Check {
    const NAME: &str = "eBPF";
    match (unprivileged_disabled, btf, permit_bpf(effective)) {
        (None, ..) => Check::missing(
            NAME,
            "not in this kernel",
            "use a kernel with CONFIG_BPF_SYSCALL; placing needs none",
        ),
        (_, false, _) => Check::missing(
            NAME,
            "no type information (/sys/kernel/btf/vmlinux)",
            "use a kernel with CONFIG_DEBUG_INFO_BTF; placing needs none",
        ),
        (_, true, false) => Check::missing(
            NAME,
            "type information is there, permission is not",
            setcap("cap_bpf,cap_perfmon"),
        ),
        (_, true, true) => Check::ok(NAME, "permitted, with type information"),
    }
}

/// How the threads of a program can be watched; tries it.
pub(super) fn monitor() -> Check {
    let (layer, refused) = best_layer();
    judge_monitor(layer, &refused)
}

fn judge_monitor(layer: Layer, refused: &[Unavailable]) -> Check {
    const NAME: &str = "monitor";
    let detail = format!("{layer}: {}", layer.gives());
    let Some(better) = refused.first() else { return Check::ok(NAME, detail) };
    let reasons: Vec<String> =
        refused.iter().map(|refused| format!("{}: {}", refused.layer, refused.reason)).collect();
    Check::missing(NAME, format!("{detail}; no {}", reasons.join("; no ")), better.remedy.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_monitor::Obstacle;

    fn errno(number: i32) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(number))
    }

    fn remedy(check: &Check) -> &str {
        check.remedy.as_deref().unwrap()
    }

    #[test]
    fn each_refusal_of_counters_has_its_remedy() {
        assert!(judge_counters("c", Ok(()), Some("2")).is_ok());
        let none = judge_counters("c", errno(libc::ENOENT), Some("2"));
        assert!(!none.is_ok() && remedy(&none).contains("pmu=on"));
        let refused = judge_counters("c", errno(libc::EACCES), Some("4"));
        assert!(
            refused.detail.contains("= 4")
                && remedy(&refused).contains("sysctl kernel.perf_event_paranoid=1")
        );
        assert!(remedy(&judge_counters("c", errno(libc::ENOSYS), None)).contains("seccomp"));
        assert!(judge_counters("c", errno(libc::EMFILE), None).detail.contains("perf_event_open"));
    }

    #[test]
    fn the_remedy_names_the_capabilities_that_are_lacking() {
        let check = judge_capabilities(1 << 23 | 1 << 38);
        assert!(
            !check.is_ok() && remedy(&check).contains("setcap cap_sys_ptrace,cap_bpf+ep"),
            "{check:?}"
        );
        assert!(judge_capabilities(u64::MAX).is_ok());
    }

    #[test]
    fn tracefs_is_found_wherever_it_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\nnodev /sys/kernel/tracing tracefs rw,nosuid 0 0\n";
        assert_eq!(tracefs_in(mounts), Some("/sys/kernel/tracing".into()));
        assert_eq!(tracefs_in("proc /proc proc rw 0 0\n"), None);
        let at = Some(Path::new("/sys/kernel/tracing"));
        assert!(judge_tracefs(at, Some(Ok(()))).is_ok());
        assert!(remedy(&judge_tracefs(None, None)).contains("mount -t tracefs"));
        assert!(remedy(&judge_tracefs(at, Some(errno(libc::EACCES)))).contains("remount"));
    }

    #[test]
    fn bpf_needs_permission_and_types() {
        let (perfmon, bpf, admin) = (1 << 38, 1u64 << 39, 1 << 21);
        assert!(judge_bpf(perfmon | bpf, true, Some("2")).is_ok());
        assert!(judge_bpf(admin, true, Some("2")).is_ok());
        assert!(!judge_bpf(perfmon, true, Some("2")).is_ok());
        assert!(!judge_bpf(admin, false, Some("2")).is_ok());
        assert!(!judge_bpf(admin, true, None).is_ok());
    }

    #[test]
    fn the_monitor_in_use_is_told_and_why_it_is_no_better_one() {
        let best = judge_monitor(Layer::Ebpf, &[]);
        assert!(best.is_ok() && best.detail.starts_with("ebpf: "));
        let refused = |layer| Unavailable {
            layer,
            kind: Obstacle::NotPermitted,
            reason: "not permitted".into(),
            remedy: format!("allow {layer}"),
        };
        let check = judge_monitor(Layer::Proc, &[refused(Layer::Ebpf), refused(Layer::Perf)]);
        assert!(
            check.detail.ends_with("; no ebpf: not permitted; no perf: not permitted"),
            "{check:?}"
        );
        assert_eq!(remedy(&check), "allow ebpf");
    }

    #[test]
    fn a_refused_class_shows_the_limit() {
        let limits = concat!(
            "Limit                     Soft Limit           Hard Limit           Units     \n",
            "Max realtime priority     0                    0                    \n",
        );
        assert_eq!(rtprio(limits), Some(0));
        let check = judge_fifo(&errno(libc::EPERM), Some(0));
        assert!(
            check.detail.contains("real-time priority: 0")
                && remedy(&check).contains("cap_sys_nice"),
            "{check:?}"
        );
    }

    #[test]
    fn a_thread_of_this_process_can_be_moved() {
        assert!(affinity().is_ok());
    }
}
