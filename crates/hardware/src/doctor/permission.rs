//! What the kernel permits this process to do.

use super::{Capability, CountedEvents, Finding, read};
use pinwise_linux::{
    RealtimeClass,
    capabilities::{effective, holds, permit_bpf},
    sys,
};
use pinwise_measure::CounterEvent;
use pinwise_monitor::best_layer;
use pinwise_topology::CpuSet;
use std::io;
use std::path::{Path, PathBuf};

/// The result of an attempt on a short-lived thread, or why the thread could not be started.
fn on_a_thread<T: Send + 'static>(
    attempt: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::Builder::new().name("doctor".into()).spawn(attempt)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread died")))
}

/// Whether a thread can be confined to one of the CPUs it may use.
pub(super) fn affinity() -> Finding {
    let attempt = || {
        let before = sys::affinity(0)?;
        let one: CpuSet = before.first().into_iter().collect();
        sys::set_affinity(0, &one)?;
        sys::set_affinity(0, &before)
    };
    match on_a_thread(attempt) {
        Ok(()) => Finding::AffinitySettable,
        Err(error) => Finding::AffinityRefused { error: error.to_string() },
    }
}

/// Whether the measuring thread may have the lowest real-time class.
pub(super) fn fifo() -> Finding {
    match on_a_thread(|| RealtimeClass::raise().map(drop)) {
        Ok(()) => Finding::FifoPermitted,
        Err(error) => Finding::FifoRefused {
            error: error.to_string(),
            limit: read("/proc/self/limits").as_deref().and_then(rtprio),
        },
    }
}

/// The soft limit on real-time priority in `/proc/self/limits`.
fn rtprio(limits: &str) -> Option<u64> {
    limits.lines().find_map(|line| {
        line.strip_prefix("Max realtime priority")?.split_whitespace().next()?.parse().ok()
    })
}

/// Which of the capabilities pinwise can use are in effect.
pub(super) fn capabilities() -> Finding {
    judge_capabilities(effective())
}

fn judge_capabilities(effective: u64) -> Finding {
    let (held, lacking) =
        Capability::ALL.into_iter().partition(|one| holds(effective, one.number()));
    Finding::Capabilities { held, lacking }
}

/// Whether such events can be counted, or branches recorded.
pub(crate) fn events(events: CountedEvents) -> Finding {
    let attempt = match events {
        CountedEvents::Hardware => sys::try_event(CounterEvent::Cycles),
        CountedEvents::Software => sys::try_event(CounterEvent::TaskClock),
        CountedEvents::BranchRecords => sys::try_branch_record(),
    };
    judge_events(events, attempt, read("/proc/sys/kernel/perf_event_paranoid"))
}

fn judge_events(
    events: CountedEvents,
    attempt: io::Result<()>,
    paranoid: Option<String>,
) -> Finding {
    let Err(error) = attempt else { return Finding::EventsCountable { events, paranoid } };
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => Finding::EventsAbsent { events },
        Some(libc::EPERM) if sys::permits_user_events(paranoid.as_deref()) => {
            Finding::EventsNotInKernel { events }
        }
        Some(libc::EACCES | libc::EPERM) => Finding::EventsNotPermitted { events, paranoid },
        Some(libc::ENOSYS) => Finding::EventsNotInKernel { events },
        _ => Finding::EventsFailed { events, error: error.to_string() },
    }
}

/// Whether trace events can be found and read.
pub(super) fn tracefs() -> Finding {
    let mounted = read("/proc/self/mounts").as_deref().and_then(tracefs_in);
    let Some(at) = mounted else { return Finding::TracefsNotMounted };
    let readable = std::fs::metadata(at.join("events/sched/sched_switch/id")).map(drop);
    judge_tracefs(at, readable)
}

/// Where tracefs is mounted, according to `/proc/self/mounts`.
fn tracefs_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let at = fields.next()?;
        (fields.next()? == "tracefs").then(|| PathBuf::from(at))
    })
}

fn judge_tracefs(tracefs: PathBuf, readable: io::Result<()>) -> Finding {
    match readable {
        Ok(()) => Finding::TraceEvents { tracefs },
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Finding::TracefsNotReadable { tracefs }
        }
        Err(error) => Finding::TraceEventsAbsent { tracefs, error: error.to_string() },
    }
}

/// Whether eBPF programs that know the kernel's types can be loaded.
pub(super) fn bpf() -> Finding {
    let in_kernel = read("/proc/sys/kernel/unprivileged_bpf_disabled").is_some();
    judge_bpf(effective(), Path::new("/sys/kernel/btf/vmlinux").exists(), in_kernel)
}

fn judge_bpf(effective: u64, btf: bool, in_kernel: bool) -> Finding {
    match (in_kernel, btf, permit_bpf(effective)) {
        (false, ..) => Finding::EbpfNotInKernel,
        (_, false, _) => Finding::EbpfWithoutTypes,
        (_, true, false) => Finding::EbpfNotPermitted,
        (_, true, true) => Finding::EbpfPermitted,
    }
}

/// How the threads of a program can be watched; tries it.
pub(super) fn monitor() -> Finding {
    let (layer, refused) = best_layer();
    Finding::Monitor { layer, refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errno(number: i32) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(number))
    }

    #[test]
    fn each_refusal_of_counters_has_its_own_finding() {
        let events = CountedEvents::Hardware;
        let judge = |attempt| judge_events(events, attempt, Some("2".into()));
        assert!(judge(Ok(())).is_ok());
        assert_eq!(judge(errno(libc::ENOENT)), Finding::EventsAbsent { events });
        let paranoid = Some("2".into());
        assert_eq!(judge(errno(libc::EACCES)), Finding::EventsNotPermitted { events, paranoid });
        assert_eq!(judge(errno(libc::ENOSYS)), Finding::EventsNotInKernel { events });
        // The setting would permit it: a filter of the container does not.
        assert_eq!(judge(errno(libc::EPERM)), Finding::EventsNotInKernel { events });
        assert!(matches!(judge(errno(libc::EMFILE)), Finding::EventsFailed { .. }));
    }

    #[test]
    fn capabilities_are_held_or_lacking() {
        let (held, lacking) = (
            vec![Capability::CapSysNice, Capability::CapPerfmon],
            vec![Capability::CapSysPtrace, Capability::CapBpf],
        );
        let found = judge_capabilities(1 << 23 | 1 << 38);
        assert!(!found.is_ok() && found == Finding::Capabilities { held, lacking }, "{found:?}");
        assert!(judge_capabilities(u64::MAX).is_ok());
    }

    #[test]
    fn tracefs_is_found_wherever_it_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\nnodev /sys/kernel/tracing tracefs rw,nosuid 0 0\n";
        let tracefs = PathBuf::from("/sys/kernel/tracing");
        assert_eq!(tracefs_in(mounts), Some(tracefs.clone()));
        assert_eq!(tracefs_in("proc /proc proc rw 0 0\n"), None);
        assert!(judge_tracefs(tracefs.clone(), Ok(())).is_ok());
        let refused = judge_tracefs(tracefs.clone(), errno(libc::EACCES));
        assert_eq!(refused, Finding::TracefsNotReadable { tracefs });
    }

    #[test]
    fn bpf_needs_permission_and_types() {
        let (perfmon, bpf, admin) = (1 << 38, 1u64 << 39, 1 << 21);
        assert!(judge_bpf(perfmon | bpf, true, true).is_ok());
        assert!(judge_bpf(admin, true, true).is_ok());
        assert!(!judge_bpf(perfmon, true, true).is_ok());
        assert!(!judge_bpf(admin, false, true).is_ok());
        assert!(!judge_bpf(admin, true, false).is_ok());
    }

    #[test]
    fn the_limit_on_real_time_priority_is_read() {
        let limits = concat!(
            "Limit                     Soft Limit           Hard Limit           Units     \n",
            "Max realtime priority     0                    0                    \n",
        );
        assert_eq!(rtprio(limits), Some(0));
    }

    #[test]
    fn a_thread_of_this_process_can_be_moved() {
        assert!(affinity().is_ok());
    }
}
