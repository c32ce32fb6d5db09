//! The CPUs on which a thread may run.

use crate::capabilities;
use crate::control_group::cpuset_of;
use crate::process::user_of;
use crate::sys;
use crate::thread::{Pid, Tid};
use pinwise_measure::ProgramNote;
use pinwise_topology::CpuSet;
use rustix::process::geteuid;
use serde::{Serialize, Serializer};
use std::fs;
use std::io;

/// Why an affinity could not be read or changed. As a value it leaves out the thread and the CPUs,
/// which belong to the request.
#[derive(Debug, thiserror::Error, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AffinityError {
    /// The thread has ended: data, not a failure.
    #[error("thread {0} has ended")]
    Gone(#[serde(skip)] Tid),
    /// None of the CPUs is left after the cpuset of the thread's cgroup, or they are offline.
    #[error(
        "thread {tid} may not run on CPU {cpus}: its cgroup's cpuset excludes it, or it is \
         offline; widen cpuset.cpus, or leave that CPU out"
    )]
    Excluded {
        /// The thread.
        #[serde(skip)]
        tid: Tid,
        /// The CPUs asked for.
        #[serde(skip)]
        cpus: CpuSet,
    },
    /// Another user's thread.
    #[error(
        "not permitted to move thread {tid}{}: run pinwise as that user, {}",
        .user.map(|user| format!(" of user {user}")).unwrap_or_default(), with_sys_nice()
    )]
    NotPermitted {
        /// The thread.
        #[serde(skip)]
        tid: Tid,
        /// Its user, if known.
        user: Option<u32>,
    },
    /// The thread has capabilities that this process lacks, and this process lacks CAP_SYS_NICE.
    #[error(
        "not permitted to move thread {tid}, which has capabilities that pinwise lacks: run \
         pinwise with them, {}",
        with_sys_nice()
    )]
    MoreCapable {
        /// The thread.
        #[serde(skip)]
        tid: Tid,
    },
    /// pinwise may move the thread, and yet the kernel refuses.
    #[error(
        "a seccomp filter, a security module or a user namespace forbids to move thread {tid}: \
         allow sched_setaffinity there, or run pinwise outside of that container"
    )]
    Forbidden {
        /// The thread.
        #[serde(skip)]
        tid: Tid,
    },
    /// Anything else.
    #[error("cannot set the affinity of thread {tid}: {cause}")]
    #[serde(rename = "other")]
    System {
        /// The thread.
        #[serde(skip)]
        tid: Tid,
        /// The kernel's error.
        #[serde(rename = "error", serialize_with = "text")]
        cause: io::Error,
    },
}

fn text<S: Serializer>(cause: &io::Error, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cause)
}

impl AffinityError {
    /// Whether `other` is the same error, of this thread or of another one.
    pub fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Gone(_), Self::Gone(_))
            | (Self::Forbidden { .. }, Self::Forbidden { .. })
            | (Self::MoreCapable { .. }, Self::MoreCapable { .. }) => true,
            (Self::Excluded { cpus, .. }, Self::Excluded { cpus: others, .. }) => cpus == others,
            (Self::NotPermitted { user, .. }, Self::NotPermitted { user: other, .. }) => {
                user == other
            }
            (Self::System { cause, .. }, Self::System { cause: other, .. }) => {
                cause.raw_os_error() == other.raw_os_error()
            }
            _ => false,
        }
    }
}

/// The CPUs on which `tid` may run now: none that is offline.
pub fn get(tid: Tid) -> Result<CpuSet, AffinityError> {
    sys::affinity(tid.0).map_err(|error| named(tid, &CpuSet::new(), error))
}

/// The CPUs that `tid` was given, those that are offline included: what to put back.
pub fn own(tid: Tid) -> Result<CpuSet, AffinityError> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    given(&status).map_or_else(|| get(tid), Ok)
}

/// The CPUs that the text of `/proc/TID/status` names.
fn given(status: &str) -> Option<CpuSet> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuSet::parse_list(list.trim()).ok()
}

/// Confines `tid` to `cpus`. Takes 1-5 us. A running thread has moved when this returns. A sleeping
/// thread moves when it wakes.
pub fn set(tid: Tid, cpus: &CpuSet) -> Result<(), AffinityError> {
    sys::set_affinity(tid.0, cpus).map_err(|error| named(tid, cpus, error))
}

/// Whether the kernel lets this process set the affinity of `tid`. It asks with no CPU at all. The
/// kernel checks permission first, then refuses that as invalid. So nothing changes.
pub fn may_set(tid: Tid) -> Result<(), AffinityError> {
    match set(tid, &CpuSet::new()) {
        Ok(()) | Err(AffinityError::Excluded { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// While this value lives, the calling thread runs on some CPUs only. What it starts begins there
/// and stays.
#[derive(Debug)]
pub(crate) struct CallerOnCpus {
    before: CpuSet,
}

impl CallerOnCpus {
    pub(crate) fn move_to(cpus: &CpuSet) -> Result<Self, AffinityError> {
        let before = get(Tid(0))?;
        set(Tid(0), cpus)?;
        Ok(Self { before })
    }
}

impl Drop for CallerOnCpus {
    fn drop(&mut self) {
        // Refused only if none of these CPUs is left. Then the kernel has chosen others.
        let _ = set(Tid(0), &self.before);
    }
}

/// Gives a thread of the process `pid` back what it had. Its cpuset may have none of these CPUs
/// now. Then the thread also gets the CPUs of the cpuset. The kernel refuses fewer CPUs than these.
/// It would also keep the pin until the cpuset has its CPUs again.
pub(crate) fn give_back(pid: Pid, tid: Tid, own: &CpuSet) -> Result<(), AffinityError> {
    match set(tid, own) {
        Err(AffinityError::Excluded { .. }) if !own.is_empty() => {
            set(tid, &own.union(&cpuset_of(pid)))
        }
        done => done,
    }
}

/// The CPUs that run threads now.
pub fn online() -> io::Result<CpuSet> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// A note on the CPUs of `own` that are offline and that this kernel does not take back. Since 6.2
/// Linux keeps what a thread asked for. `None`: there are no such CPUs.
pub fn forgotten(own: &CpuSet, offline: &CpuSet) -> Option<ProgramNote> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let cpus = forgotten_by(&release, own, offline);
    (!cpus.is_empty()).then(|| ProgramNote::OfflineForgotten { cpus: cpus.to_string() })
}

fn forgotten_by(release: &str, own: &CpuSet, offline: &CpuSet) -> CpuSet {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < (6, 2) => own.intersection(offline),
        _ => CpuSet::new(),
    }
}

fn named(tid: Tid, cpus: &CpuSet, cause: io::Error) -> AffinityError {
    match cause.raw_os_error() {
        Some(libc::ESRCH) => AffinityError::Gone(tid),
        Some(libc::EINVAL) => AffinityError::Excluded { tid, cpus: cpus.clone() },
        Some(libc::EPERM) => match user_of(tid) {
            _ if holds_sys_nice() => AffinityError::Forbidden { tid },
            user if user != Some(geteuid().as_raw()) => AffinityError::NotPermitted { tid, user },
            _ if capabilities::exceeded_by(tid) => AffinityError::MoreCapable { tid },
            _ => AffinityError::Forbidden { tid },
        },
        _ => AffinityError::System { tid, cause },
    }
}

/// Whether this process may move all threads: sched_setaffinity(2), errors.
fn holds_sys_nice() -> bool {
    capabilities::holds(capabilities::effective(), capabilities::SYS_NICE)
}

/// How pinwise gets CAP_SYS_NICE.
fn with_sys_nice() -> &'static str {
    match geteuid().is_root() {
        true => "or with CAP_SYS_NICE (docker run --cap-add SYS_NICE)",
        false => "as root, or after sudo setcap cap_sys_nice+ep \"$(command -v pinwise)\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use pinwise_topology::CpuId;
    use std::process::Command;

    #[test]
    fn one_reason_for_several_threads_is_recognized() {
        let not_permitted = |tid, user| AffinityError::NotPermitted { tid: Tid(tid), user };
        assert!(not_permitted(1, Some(1000)).is_alike(&not_permitted(2, Some(1000))));
        assert!(!not_permitted(1, Some(1000)).is_alike(&not_permitted(1, Some(1001))));
        let excluded = |tid, cpu| {
            named(
                Tid(tid),
                &CpuSet::from_iter([CpuId(cpu)]),
                io::Error::from_raw_os_error(libc::EINVAL),
            )
        };
        assert!(excluded(1, 3).is_alike(&excluded(2, 3)));
        assert!(!excluded(1, 3).is_alike(&excluded(1, 4)));
        assert!(!excluded(1, 3).is_alike(&AffinityError::Gone(Tid(1))));
    }

    /// The kernel's own answer leaves out what is offline. A thread that got that back would keep
    /// off these CPUs for good.
    #[test]
    fn a_thread_was_also_given_cpus_that_are_offline() {
        let status =
            "Name:\tspin\nCpus_allowed:\tff\nCpus_allowed_list:\t0,2-4,7\nMems_allowed:\t1\n";
        assert_eq!(given(status), CpuSet::parse_list("0,2-4,7").ok());
        assert_eq!(given("Name:\tspin\n"), None);
        let this = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        assert!(get(this).unwrap().is_subset(&own(this).unwrap()));
        assert!(matches!(own(Tid(i32::MAX)), Err(AffinityError::Gone(_))));
    }

    #[test]
    fn kernels_before_6_2_forget_what_is_offline() {
        let [own, offline] = ["0-3", "3-7"].map(|list| CpuSet::parse_list(list).unwrap());
        for (release, lost) in [
            ("6.1.0-28-amd64", "3"),
            ("5.15.167.4-microsoft", "3"),
            ("6.2.0", ""),
            ("6.12.117+deb13", ""),
            ("7.0", ""),
            ("unknown", ""),
        ] {
            assert_eq!(forgotten_by(release, &own, &offline).to_string(), lost, "{release}");
        }
    }

    #[test]
    fn what_the_cpuset_lacks_is_given_back_with_what_it_has() {
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let all = get(pid.main()).unwrap();
        set(pid.main(), &all.first().into_iter().collect()).unwrap();
        // As if its cpuset had moved away from these CPUs.
        let elsewhere: CpuSet = [CpuId(8191)].into_iter().collect();
        give_back(pid, pid.main(), &elsewhere).unwrap();
        assert_eq!(get(pid.main()).unwrap(), all);
    }

    #[test]
    fn to_ask_for_permission_changes_nothing() {
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let thread = Pid(child.0.id() as i32).main();
        let before = own(thread).unwrap();
        may_set(thread).unwrap();
        assert_eq!(own(thread).unwrap(), before);
        assert!(matches!(may_set(Tid(i32::MAX)), Err(AffinityError::Gone(_))));
    }

    #[test]
    fn refusals_are_named() {
        assert!(matches!(get(Tid(i32::MAX)), Err(AffinityError::Gone(_))));
        let this = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        let none: CpuSet = [CpuId(8191)].into_iter().collect();
        let error = set(this, &none).unwrap_err();
        assert!(matches!(error, AffinityError::Excluded { .. }));
        assert!(error.to_string().contains("CPU 8191: its cgroup's cpuset excludes it"));
    }

    #[test]
    fn a_refusal_is_a_kind_with_values() {
        // Of this thread: whoever runs the test may move it.
        let this = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        let json = |error| serde_json::to_value::<AffinityError>(error).unwrap();
        let of = |code| json(named(this, &CpuSet::new(), io::Error::from_raw_os_error(code)));
        assert_eq!(of(libc::ESRCH), serde_json::json!({ "kind": "gone" }));
        assert_eq!(of(libc::EINVAL), serde_json::json!({ "kind": "excluded" }));
        assert_eq!(of(libc::EPERM), serde_json::json!({ "kind": "forbidden" }));
        let not_permitted = serde_json::json!({ "kind": "not_permitted", "user": 1000 });
        assert_eq!(
            json(AffinityError::NotPermitted { tid: this, user: Some(1000) }),
            not_permitted
        );
        let error = io::Error::from_raw_os_error(libc::EFAULT).to_string();
        let other = serde_json::json!({ "kind": "other", "error": error });
        assert_eq!(of(libc::EFAULT), other);
    }
}
