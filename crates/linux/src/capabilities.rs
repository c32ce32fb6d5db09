//! The capabilities of this process, by their numbers in capabilities(7).

use crate::thread::Tid;
use rustix::process::{geteuid, getuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    no_new_privs, set_capabilities,
};

/// CAP_SYS_NICE.
pub(crate) const SYS_NICE: u32 = 23;
/// CAP_SYS_ADMIN.
const SYS_ADMIN: u32 = 21;
/// CAP_PERFMON.
const PERFMON: u32 = 38;
/// CAP_BPF.
const BPF: u32 = 39;

/// The effective set, one bit per capability; 0 if the kernel does not tell it.
pub fn effective() -> u64 {
    capabilities(None).map_or(0, |own| own.effective.bits())
}

/// Whether a set holds a capability.
pub fn holds(set: u64, capability: u32) -> bool {
    set >> capability & 1 == 1
}

/// Whether a thread has capabilities that this process lacks. Then only CAP_SYS_NICE permits to
/// move it: cap_task_setscheduler in the kernel's security/commoncap.c.
pub(crate) fn exceeded_by(tid: Tid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let theirs = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    let theirs = theirs.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let own = capabilities(None).map_or(0, |own| own.permitted.bits());
    theirs.is_some_and(|theirs| theirs & !own != 0)
}

/// Whether a set permits loading programs that watch the kernel: CAP_SYS_ADMIN, or CAP_PERFMON and
/// CAP_BPF.
pub fn permit_bpf(set: u64) -> bool {
    holds(set, SYS_ADMIN) || (holds(set, PERFMON) && holds(set, BPF))
}

/// What pinwise may need for a process of anybody.
const NEEDED: CapabilitySet = CapabilitySet::SYS_NICE // Affinities, priorities, memory.
    .union(CapabilitySet::SYS_PTRACE) // Files of a process in /proc.
    .union(CapabilitySet::KILL) // To end what pinwise started.
    .union(CapabilitySet::DAC_OVERRIDE) // Files of other users: control groups, metrics.
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER) // To keep files private.
    .union(CapabilitySet::BPF) // To watch threads.
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::IPC_LOCK) // Buffers of counters, huge pages.
    .union(CapabilitySet::SYS_RESOURCE); // Limits of the program it starts.

/// Gives up what pinwise never needs: this thread, and those that it makes later, can no longer do
/// that. To be called before there are other threads.
///
/// Only root gives up anything. A program that root starts gets all capabilities again, so it runs
/// as without pinwise. Nothing is given up where that does not hold (see `kept`).
pub fn give_up_unneeded() {
    let root = getuid().is_root() && geteuid().is_root();
    let regained = matches!(no_new_privs(), Ok(false))
        && capabilities_secure_bits()
            .is_ok_and(|bits| !bits.contains(CapabilitiesSecureBits::NO_ROOT));
    if let (true, true, Ok(own)) = (root, regained, capabilities(None)) {
        // If it fails, everything is as it was.
        let _ = set_capabilities(None, kept(own));
    }
}

/// What remains of the sets of root.
///
/// - Without CAP_SYS_PTRACE all remains. The kernel then shows the files of a process only to who
///   has at least its capabilities.
/// - Without CAP_SYS_NICE all remains, too. The kernel then lets only such a process move threads.
/// - CAP_SYS_ADMIN remains unless the two others that watch threads are there (Linux 5.8).
fn kept(own: CapabilitySets) -> CapabilitySets {
    let CapabilitySets { permitted, effective, inheritable } = own;
    if !effective.contains(CapabilitySet::SYS_PTRACE.union(CapabilitySet::SYS_NICE)) {
        return own;
    }
    let watching = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
    let needed = match effective.contains(watching) {
        true => NEEDED,
        false => NEEDED.union(CapabilitySet::SYS_ADMIN),
    };
    CapabilitySets {
        permitted: permitted.intersection(needed),
        effective: effective.intersection(needed),
        inheritable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_keeps_what_pinwise_needs_and_all_where_the_kernel_compares_sets() {
        let sets = |set: CapabilitySet| CapabilitySets {
            permitted: set,
            effective: set,
            inheritable: CapabilitySet::empty(),
        };
        let all = CapabilitySet::from_bits_truncate((1 << 41) - 1);
        let kept_of = |set| kept(sets(set)).permitted;
        assert_eq!(kept_of(all), NEEDED);
        assert_eq!(kept(sets(all)).effective, NEEDED);
        let before_5_8 = all.difference(CapabilitySet::BPF.union(CapabilitySet::PERFMON));
        assert!(kept_of(before_5_8).contains(CapabilitySet::SYS_ADMIN));
        assert!(!kept_of(before_5_8).contains(CapabilitySet::SYS_MODULE));
        for lacking in [CapabilitySet::SYS_PTRACE, CapabilitySet::SYS_NICE] {
            let of_a_container = all.difference(lacking);
            assert_eq!(kept_of(of_a_container), of_a_container);
        }
    }

    #[test]
    fn capabilities_are_read_by_number() {
        let effective = (CapabilitySet::SYS_NICE | CapabilitySet::PERFMON).bits();
        assert!(holds(effective, 23) && holds(effective, 38) && !holds(effective, 39));
    }
}
