//! Why the program cannot run in the kernel, before and after an attempt.

use crate::layer::{Layer, Obstacle, Unavailable};
use pinwise_linux::capabilities;
use std::error::Error;
use std::io;

/// Known obstacles, checked before the attempt, which takes a tenth of a second.
pub(super) fn obstacle() -> Option<Unavailable> {
    /// The kernel gives the first PID namespace this number (`PROC_PID_INIT_INO`).
    const FIRST: &str = "pid:[4026531836]";
    let obstacle = |obstacle| Some(Unavailable { layer: Layer::Ebpf, obstacle });
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return obstacle(Obstacle::NotOnArchitecture);
    }
    if !capabilities::permit_bpf(capabilities::effective()) {
        return obstacle(Obstacle::NotPermitted);
    }
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return obstacle(Obstacle::NotInKernel);
    }
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace.as_os_str() != FIRST {
        return obstacle(Obstacle::PidNamespace);
    }
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return obstacle(Obstacle::LockedDown);
    }
    None
}

/// Why it cannot be, by the kernel's answer.
pub(super) fn refused(error: &(impl Error + 'static)) -> Unavailable {
    let first: &(dyn Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |&error| error.source());
    let denied = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
    let obstacle = if causes.any(|error| error.downcast_ref::<io::Error>().is_some_and(denied)) {
        Obstacle::NotPermitted
    } else {
        Obstacle::Other { error: with_causes(error) }
    };
    Unavailable { layer: Layer::Ebpf, obstacle }
}

/// The error with all its causes, the first line of each.
pub(super) fn with_causes(error: &(impl Error + 'static)) -> String {
    let first: &(dyn Error + 'static) = error;
    let first_line = |text: String| text.lines().next().unwrap_or_default().trim().to_owned();
    let mut lines: Vec<String> = std::iter::successors(Some(first), |&error| error.source())
        .map(|error| first_line(error.to_string()))
        .collect();
    lines.dedup();
    lines.join(": ")
}
