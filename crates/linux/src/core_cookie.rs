//! Core-scheduling cookies: which processes may run at once on the siblings of a core.
//!
//! **Terms.** A *cookie* is a value that the kernel gives to threads. Two threads with different
//! cookies never run at once on contexts of one core. Threads without a cookie count as one group
//! (`Documentation/admin-guide/hw-vuln/core-scheduling.rst` of Linux, since 5.14).
//!
//! **Problem.** A cookie cannot be set: it is created anew for a thread, or taken from one thread
//! and given to another. None of the operations of prctl(2) is called clearing.
//!
//! **Method.** A thread without a cookie that gives its own to another one clears it there. So each
//! thread of pinwise that handles cookies ends afterwards, and the guardian never has one.
//!
//! **Limits.** What a process starts inherits its cookie, and keeps it if the process ends first. A
//! process that had a cookie is refused: it could not get that one back.

use crate::process;
use crate::sys::{self, CookieScope};
use crate::thread::{Pid, gone};
use std::io;
use std::thread;

/// Why cookies cannot be used. One line: what failed, on what, why, what to do.
#[derive(Debug, thiserror::Error)]
pub enum CookieError {
    /// No core has two contexts that are online.
    #[error(
        "core-scheduling cookies need SMT, and no core here has two contexts: leave --cookies out"
    )]
    NoSmt,
    /// The kernel has no cookies.
    #[error(
        "this kernel has no core-scheduling cookies: use Linux 5.14 or newer with \
         CONFIG_SCHED_CORE, or leave --cookies out"
    )]
    NotInKernel,
    /// The process belongs to another user.
    #[error(
        "not permitted to give process {0} a cookie: run pinwise as its user, or sudo setcap \
         cap_sys_ptrace+ep \"$(command -v pinwise)\""
    )]
    NotPermitted(Pid),
    /// It has a cookie, which pinwise could not give back.
    #[error(
        "process {0} has a core-scheduling cookie of its own, which could not be given back: \
         leave it out, or leave --cookies out"
    )]
    HasOne(Pid),
    /// Anything else.
    #[error("cannot give process {pid} a core-scheduling cookie: {cause}: see prctl(2)")]
    System {
        /// The process.
        pid: Pid,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// The error of a process that still lives.
fn named(pid: Pid, cause: io::Error) -> Result<(), CookieError> {
    Err(match cause.raw_os_error() {
        _ if gone(&cause) => return Ok(()),
        Some(libc::ENODEV) => CookieError::NoSmt,
        Some(libc::EINVAL) => CookieError::NotInKernel,
        Some(libc::EPERM) => CookieError::NotPermitted(pid),
        _ => CookieError::System { pid, cause },
    })
}

/// Checks that a process has no cookie, and that the kernel knows them.
///
/// # Errors
/// [`CookieError`]; none for a process that has ended.
pub(crate) fn check_free(pid: Pid) -> Result<(), CookieError> {
    match sys::core_cookie(pid.0) {
        Ok(0) => Ok(()),
        Ok(_) => Err(CookieError::HasOne(pid)),
        Err(cause) => named(pid, cause),
    }
}

/// Gives all threads of these processes one new cookie. Those that have ended are passed over.
///
/// # Errors
/// [`CookieError`]: some of the processes may have it.
pub(crate) fn share_one(pids: &[Pid]) -> Result<(), CookieError> {
    let pids = pids.to_vec();
    // That thread gets the cookie, too, and takes it with it.
    let shared = thread::spawn(move || {
        let mut has_it = false;
        for pid in pids {
            let given = match has_it {
                true => sys::share_core_cookie(pid.0, CookieScope::Process),
                false => sys::create_core_cookie(pid.0, CookieScope::Process)
                    .and_then(|()| sys::take_core_cookie(pid.0)),
            };
            match given {
                Ok(()) => has_it = true,
                Err(cause) => named(pid, cause)?,
            }
        }
        Ok(())
    });
    shared.join().unwrap_or(Ok(()))
}

/// Takes the cookie from all threads of a process. The calling thread must not have one.
pub(crate) fn clear(pid: Pid) -> Result<(), CookieError> {
    sys::share_core_cookie(pid.0, CookieScope::Process).or_else(|cause| named(pid, cause))
}

/// Takes the cookies from processes and from what they have started.
pub(crate) fn clear_with_descendants(pids: &[Pid]) -> Vec<(Pid, Result<(), CookieError>)> {
    let everything = process::all().unwrap_or_default();
    let clear_all = |&pid: &Pid| {
        let below = process::descendants(&[pid], &everything);
        // All of them, also after an error.
        let done: Vec<_> = std::iter::once(pid).chain(below).map(clear).collect();
        (pid, done.into_iter().collect())
    };
    pids.iter().map(clear_all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use std::process::Command;

    fn sleeping() -> (Killed, Pid) {
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        (child, pid)
    }

    #[test]
    fn processes_share_a_cookie_and_lose_it_again() {
        let ((_one, a), (_other, b)) = (sleeping(), sleeping());
        let cookie = |pid: Pid| sys::core_cookie(pid.0).unwrap();
        match share_one(&[a, b]) {
            Err(error @ (CookieError::NoSmt | CookieError::NotInKernel)) => {
                return pinwise_synthetic::not_judged(error.to_string());
            }
            shared => shared.unwrap(),
        }
        assert!(cookie(a) != 0 && cookie(a) == cookie(b));
        assert_eq!(sys::core_cookie(0).unwrap(), 0, "the caller has none");
        assert!(matches!(check_free(a), Err(CookieError::HasOne(_))));
        clear(a).unwrap();
        assert!(cookie(a) == 0 && cookie(b) != 0);
        assert!(clear_with_descendants(&[b]).iter().all(|(_, done)| done.is_ok()));
        assert_eq!(cookie(b), 0);
    }

    #[test]
    fn each_error_of_the_kernel_names_its_remedy() {
        let of = |code| named(Pid(7), io::Error::from_raw_os_error(code));
        assert!(of(libc::ESRCH).is_ok(), "it has ended");
        for (code, remedy) in [
            (libc::ENODEV, "leave --cookies out"),
            (libc::EINVAL, "CONFIG_SCHED_CORE"),
            (libc::EPERM, "cap_sys_ptrace"),
            (libc::ENOMEM, "prctl(2)"),
        ] {
            assert!(of(code).unwrap_err().to_string().contains(remedy), "{code}");
        }
    }
}
