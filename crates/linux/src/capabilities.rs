//! The capabilities of this process, by their numbers in capabilities(7).

use std::fs;

/// CAP_SYS_ADMIN.
const SYS_ADMIN: u32 = 21;
/// CAP_PERFMON.
const PERFMON: u32 = 38;
/// CAP_BPF.
const BPF: u32 = 39;

/// The effective set (`CapEff` in `/proc/self/status`), one bit per capability; 0 if the file is
/// not readable.
pub fn effective() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|text| effective_in(&text)).unwrap_or(0)
}

fn effective_in(status: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
}

/// Whether a set holds a capability.
pub fn holds(set: u64, capability: u32) -> bool {
    set >> capability & 1 == 1
}

/// Whether a set permits loading programs that watch the kernel: CAP_SYS_ADMIN, or CAP_PERFMON and
/// CAP_BPF.
pub fn permit_bpf(set: u64) -> bool {
    holds(set, SYS_ADMIN) || (holds(set, PERFMON) && holds(set, BPF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_by_number() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\n\
                      CapEff:\t0000004000800000\nCapBnd:\t000001ffffffffff\n";
        let effective = effective_in(status).unwrap();
        assert!(holds(effective, 23) && holds(effective, 38) && !holds(effective, 39));
    }
}
