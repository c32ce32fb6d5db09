//! The properties of a machine that must stay the same for a measured placement to hold.

use crate::{CacheKind, CpuSet, DomainKind, Machine};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A machine and the conditions that decide how its contexts perform, for comparison: kept with
/// every plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// For people: `1 package, 2 cores, 1 NUMA node`.
    pub summary: String,
    /// Digest of the domains, caches, kinds of cores, NUMA nodes and distances, with the kernel's
    /// numbers.
    pub topology: String,
    /// The processor's name.
    pub model: String,
    /// The kernel's release (`uname -r`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether SMT is on (`/sys/devices/system/cpu/smt/control`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// The frequency governor, several with commas between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

impl Fingerprint {
    /// Of a machine alone, without the conditions that only a running kernel has.
    pub fn of(machine: &Machine) -> Self {
        Self {
            summary: summary(machine),
            topology: digest(&structure(machine)),
            model: machine.name.clone(),
            kernel: None,
            smt: None,
            governor: None,
        }
    }
}

fn summary(machine: &Machine) -> String {
    let count = |kind| machine.domains(kind).count();
    let word =
        |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let parts = [
        word(count(DomainKind::Package), "package"),
        word(count(DomainKind::Core), "core"),
        word(machine.contexts.len(), "context"),
        word(machine.numa.len(), "NUMA node"),
    ];
    parts.into_iter().filter(|part| !part.starts_with("0 ")).collect::<Vec<_>>().join(", ")
}

/// Everything that decides which contexts share what. What varies without a change of the machine
/// is left out: sizes of memory, capacities, and the cpuset. The kernel reserves some memory, and
/// capacities follow frequency limits.
fn structure(machine: &Machine) -> String {
    let mut text = String::new();
    let mut line = |words: &[&dyn std::fmt::Display], cpus: &CpuSet| {
        for word in words {
            // Writing to a string cannot fail.
            let _ = write!(text, "{word} ");
        }
        let _ = writeln!(text, "{cpus}");
    };
    let or_zero = |number: Option<u64>| number.unwrap_or(0);
    for domain in machine.root.walk() {
        line(&[&domain.kind.name()], &domain.cpus);
    }
    for kind in &machine.kinds {
        line(&[&"kind", &kind.name], &kind.cpus);
    }
    for cache in &machine.caches {
        let kind = match cache.kind {
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
            CacheKind::Unified => "unified",
        };
        let ways = cache.ways.unwrap_or(0);
        line(&[&"cache", &cache.level, &kind, &or_zero(cache.size), &ways], &cache.cpus);
    }
    for node in &machine.numa {
        line(&[&"node", &node.os_index], &node.cpus);
    }
    for row in machine.distances.iter().flat_map(|distances| &distances.0) {
        let row: Vec<String> = row.iter().map(u32::to_string).collect();
        line(&[&"distances", &row.join(" ")], &CpuSet::new());
    }
    text
}

/// Tells one text from another in 16 digits by 64-bit FNV-1a (Fowler, Noll, Vo; RFC 9923). It is
/// short and stable, and nobody attacks it here.
pub fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_fnv_1a() {
        // Test vectors of the reference implementation.
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("a"), "af63dc4c8601ec8c");
        assert_eq!(digest("foobar"), "85944171f73967e8");
    }

    #[test]
    fn machines_differ_by_structure_and_not_by_name_or_cpuset() {
        let of = |shape: &str| Fingerprint::of(&Machine::from_shape(shape).unwrap());
        assert_eq!(of("2x2x2").summary, "2 packages, 4 cores, 8 contexts, 1 NUMA node");
        assert_ne!(of("2x2x2").topology, of("4x1x2").topology);
        let mut machine = Machine::from_shape("2x2x2").unwrap();
        machine.name = "other".into();
        machine.allowed = CpuSet::parse_list("0,1").unwrap();
        machine.numa[0].memory = Some(1 << 30);
        assert_eq!(Fingerprint::of(&machine).topology, of("2x2x2").topology);
        machine.distances = Some(crate::Distances(vec![vec![11]]));
        assert_ne!(Fingerprint::of(&machine).topology, of("2x2x2").topology);
    }
}
