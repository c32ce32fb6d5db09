//! A machine from the files of `/sys` and `/proc`.
//!
//! Sources, in the kernel's documentation: `ABI/stable/sysfs-devices-system-cpu`,
//! `ABI/testing/sysfs-devices-system-cpu`, `ABI/stable/sysfs-devices-node`,
//! `admin-guide/cputopology.rst`. Siblings are taken from the kernel's sets, not from its numbers.
//! Numbers repeat (s390 cores), have holes, or are -1 (virtual machines), sets do not.
//!
//! Old kernels and odd firmware leave files out. The machine then lacks the same. No cache
//! directory gives no caches, no package file no packages, no topology at all cores of one context.
//! If a file is present and malformed, the error names it.

mod exclusive;
mod limits;

pub use exclusive::is_exclusive;

use crate::core_kinds;
use crate::nesting::{ReportedDomain, check_number, nest};
use crate::snapshot::CPU;
use crate::{
    Cache, CacheKind, CpuId, CpuSet, Distances, DomainKind, Machine, MachineError, MachineNote,
    NumaNode, Snapshot,
};
use std::collections::HashSet;

const NODE: &str = "sys/devices/system/node";

impl Machine {
    /// Reads a machine. Errors name the file: no CPU at all, or a file that holds no CPU set where
    /// one belongs.
    pub fn from_snapshot(snapshot: &Snapshot) -> Result<Self, MachineError> {
        let (online, offline) = processors(snapshot)?;
        check_number(&online)?;
        let (mut found, modules) = siblings(snapshot, &online)?;
        let caches = caches(snapshot, &online, &modules, &mut found)?;
        let (mut numa, distances, mut notes) = numa(snapshot, &online)?;
        if numa.len() > 1 || snapshot.numbered(NODE, "node").len() == 1 {
            let domain = |node: &NumaNode| ReportedDomain {
                kind: DomainKind::Numa,
                os_index: Some(node.os_index),
                cpus: node.cpus.clone(),
            };
            found.extend(numa.iter().map(domain));
        }
        let limits = limits::read(snapshot)?;
        if let Some(memory) = &limits.memory {
            numa.iter_mut().for_each(|node| node.allowed = memory.contains(CpuId(node.os_index)));
        }
        let (root, crossings) = nest(&online, found)?;
        notes.extend(crossings);
        let mut machine = Self::from_tree(name(snapshot), root);
        machine.set_kinds(core_kinds::read(snapshot, &online));
        machine.caches = caches;
        machine.numa = numa;
        machine.distances = distances;
        machine.offline = offline;
        // Without it, some kernels say `(null)`.
        let set_at_boot = |name: &str| {
            let list = snapshot.text(&format!("{CPU}/{name}")).unwrap_or_default().trim();
            CpuSet::parse_list(list).unwrap_or_default()
        };
        machine.isolated = set_at_boot("isolated");
        machine.nohz_full = set_at_boot("nohz_full");
        machine.allowed =
            limits.cpus.map_or_else(|| online.clone(), |cpus| cpus.intersection(&online));
        machine.exclusive = exclusive::read(snapshot)?;
        machine.notes = notes;
        Ok(machine)
    }
}

/// The online contexts, and those that are present but offline.
fn processors(snapshot: &Snapshot) -> Result<(CpuSet, CpuSet), MachineError> {
    let directories: CpuSet = snapshot.numbered(CPU, "cpu").into_iter().map(CpuId).collect();
    let with_topology = |cpu: &CpuId| {
        let directory = format!("{CPU}/cpu{}/topology", cpu.0);
        snapshot.has_directory(&directory)
    };
    let mut online = snapshot.list(&format!("{CPU}/online"))?.unwrap_or_else(|| {
        // Before 2.6.26 there is no list; a CPU without topology was offline.
        let known: CpuSet = directories.iter().filter(with_topology).collect();
        if known.is_empty() { directories.clone() } else { known }
    });
    for cpu in directories.iter() {
        if snapshot.number::<u32>(&format!("{CPU}/cpu{}/online", cpu.0)) == Some(0) {
            online.remove(cpu);
        }
    }
    if online.is_empty() {
        online = cpuinfo(snapshot, "processor").filter_map(|(cpu, _)| cpu).collect();
    }
    if online.is_empty() {
        return Err(MachineError::malformed(
            CPU,
            "no online CPU is described here; expected a recorded root with \
             sys/devices/system/cpu/online or cpu0, cpu1, ...",
        ));
    }
    let present = snapshot.list(&format!("{CPU}/present"))?;
    let offline = present.unwrap_or_default().union(&directories).difference(&online);
    Ok((online, offline))
}

/// What the topology directories say of each kind of domain: its set's files, its number's file.
const SIBLINGS: &[(DomainKind, &[&str], &str)] = &[
    (
        DomainKind::Core,
        &["core_cpus_list", "core_cpus", "thread_siblings_list", "thread_siblings"],
        "core_id",
    ),
    (DomainKind::Cluster, &["cluster_cpus_list", "cluster_cpus"], "cluster_id"),
    (DomainKind::Die, &["die_cpus_list", "die_cpus"], "die_id"),
    (
        DomainKind::Package,
        &["package_cpus_list", "package_cpus", "core_siblings_list", "core_siblings"],
        "physical_package_id",
    ),
    (DomainKind::Group, &["book_siblings_list", "book_siblings"], "book_id"),
    (DomainKind::Group, &["drawer_siblings_list", "drawer_siblings"], "drawer_id"),
];

/// The domains of the topology directories, and AMD's modules.
///
/// A module (family 15h) is two cores that share four things. They are a front end, first-level
/// instruction cache, second-level cache and floating point unit. The kernel calls them thread
/// siblings, yet numbers the cores: siblings of different `core_id` are a module, not a core.
fn siblings(
    snapshot: &Snapshot,
    online: &CpuSet,
) -> Result<(Vec<ReportedDomain>, Vec<CpuSet>), MachineError> {
    let mut found = Vec::new();
    let mut modules = Vec::new();
    let mut seen = HashSet::new();
    for cpu in online.iter() {
        let directory = format!("{CPU}/cpu{}/topology", cpu.0);
        for &(kind, sets, number) in SIBLINGS {
            let mut cpus = match snapshot.cpus(&directory, sets)? {
                Some(cpus) => cpus.intersection(online),
                None if kind == DomainKind::Core => CpuSet::new(),
                None => continue,
            };
            cpus.insert(cpu);
            let os_index: Option<u32> = snapshot.number(&format!("{directory}/{number}"));
            if let (DomainKind::Core, Some(core)) = (kind, os_index) {
                let same = |cpu: &CpuId| {
                    snapshot.number(&format!("{CPU}/cpu{}/topology/{number}", cpu.0)) == Some(core)
                };
                let own: CpuSet = cpus.iter().filter(same).collect();
                if own != cpus && !modules.contains(&cpus) {
                    modules.push(cpus);
                }
                cpus = own;
            }
            if seen.insert((kind, cpus.clone())) {
                found.push(ReportedDomain { kind, os_index, cpus });
            }
        }
    }
    if !online.iter().any(|cpu| snapshot.has_directory(&format!("{CPU}/cpu{}/topology", cpu.0))) {
        // No topology in /sys at all: /proc/cpuinfo has it on x86.
        found = from_cpuinfo(snapshot, online);
    }
    Ok((found, modules))
}

/// Packages and cores by the numbers in `/proc/cpuinfo`. A context without one is a separate core.
fn from_cpuinfo(snapshot: &Snapshot, online: &CpuSet) -> Vec<ReportedDomain> {
    let numbers = |key| -> std::collections::BTreeMap<CpuId, u32> {
        cpuinfo(snapshot, key)
            .filter_map(|(cpu, value)| Some((cpu?, value.parse().ok()?)))
            .collect()
    };
    let (packages, cores) = (numbers("physical id"), numbers("core id"));
    let mut domains = std::collections::BTreeMap::<_, CpuSet>::new();
    for cpu in online.iter() {
        let package = packages.get(&cpu);
        if let Some(&package) = package {
            domains.entry((DomainKind::Package, package, package)).or_default().insert(cpu);
        }
        let core = match (package, cores.get(&cpu)) {
            (Some(&package), Some(&core)) => (DomainKind::Core, package, core),
            _ => (DomainKind::Core, u32::MAX, cpu.0),
        };
        domains.entry(core).or_default().insert(cpu);
    }
    domains
        .into_iter()
        .map(|((kind, _, number), cpus)| ReportedDomain { kind, os_index: Some(number), cpus })
        .collect()
}

/// Every cache; those of the second level and outward that hold data become domains too.
fn caches(
    snapshot: &Snapshot,
    online: &CpuSet,
    modules: &[CpuSet],
    found: &mut Vec<ReportedDomain>,
) -> Result<Vec<Cache>, MachineError> {
    let mut caches = Vec::new();
    let mut seen = HashSet::new();
    for cpu in online.iter() {
        let directory = format!("{CPU}/cpu{}/cache", cpu.0);
        for index in snapshot.numbered(&directory, "index") {
            let directory = format!("{directory}/index{index}");
            let Some(level) = snapshot.number::<u8>(&format!("{directory}/level")) else {
                continue;
            };
            let kind = match snapshot.text(&format!("{directory}/type")) {
                Some("Data") => CacheKind::Data,
                Some("Instruction") => CacheKind::Instruction,
                _ => CacheKind::Unified,
            };
            let shared = snapshot
                .cpus(&directory, &["shared_cpu_list", "shared_cpu_map"])?
                .unwrap_or_default();
            let mut cpus = shared.intersection(online);
            cpus.insert(cpu);
            if matches!((level, kind), (1, CacheKind::Instruction) | (2, _)) {
                // Old kernels report what a module's cores share once per core.
                let module = modules.iter().find(|module| cpus.is_subset(module));
                cpus = module.cloned().unwrap_or(cpus);
            }
            if !seen.insert((level, kind, cpus.clone())) {
                continue;
            }
            let domain = match level {
                2 => Some(DomainKind::L2),
                3 => Some(DomainKind::L3),
                4 => Some(DomainKind::L4),
                _ => None,
            };
            if let (Some(kind), true) = (domain, kind != CacheKind::Instruction) {
                let os_index = snapshot.number(&format!("{directory}/id"));
                found.push(ReportedDomain { kind, os_index, cpus: cpus.clone() });
            }
            let known = |name: &str| {
                snapshot.number(&format!("{directory}/{name}")).filter(|&number: &u32| number > 0)
            };
            caches.push(Cache {
                level,
                kind,
                size: snapshot.text(&format!("{directory}/size")).and_then(size),
                line: known("coherency_line_size"),
                ways: known("ways_of_associativity"),
                cpus,
            });
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    Ok(caches)
}

/// `32K` in bytes; a cache of no size has an unknown one.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

type Numa = (Vec<NumaNode>, Option<Distances>, Vec<MachineNote>);

fn numa(snapshot: &Snapshot, online: &CpuSet) -> Result<Numa, MachineError> {
    let numbers = snapshot.numbered(NODE, "node");
    let mut notes = Vec::new();
    if numbers.is_empty() {
        let memory = snapshot.text("proc/meminfo").and_then(total_memory);
        return Ok((
            vec![NumaNode { os_index: 0, cpus: online.clone(), memory, allowed: true }],
            None,
            notes,
        ));
    }
    let mut nodes = Vec::new();
    let mut rows = Vec::new();
    for &os_index in &numbers {
        let directory = format!("{NODE}/node{os_index}");
        let cpus = snapshot
            .cpus(&directory, &["cpulist", "cpumap"])?
            .unwrap_or_default()
            .intersection(online);
        let memory = snapshot.text(&format!("{directory}/meminfo")).and_then(total_memory);
        nodes.push(NumaNode { os_index, cpus, memory, allowed: true });
        let row = snapshot.text(&format!("{directory}/distance")).unwrap_or_default();
        rows.push(
            row.split_whitespace()
                .map(str::parse)
                .collect::<Result<Vec<u32>, _>>()
                .unwrap_or_default(),
        );
    }
    if let [only] = &mut nodes[..] {
        // Memory that was plugged in later may be missing from the node's own file.
        only.memory = only.memory.max(snapshot.text("proc/meminfo").and_then(total_memory));
    }
    let complete = rows.iter().all(|row| row.len() == numbers.len());
    if !complete && rows.iter().any(|row| !row.is_empty()) {
        notes.push(MachineNote::DistancesIncomplete);
    }
    Ok((nodes, complete.then_some(Distances(rows)), notes))
}

/// `MemTotal` in bytes, of `/proc/meminfo` or of a node's.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    let kilobytes: u64 =
        line.split("MemTotal:").nth(1)?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The values of one key of `/proc/cpuinfo`, with the processor they belong to where they belong to
/// one.
fn cpuinfo<'a>(
    snapshot: &'a Snapshot,
    key: &'a str,
) -> impl Iterator<Item = (Option<CpuId>, &'a str)> {
    let mut processor = None;
    let lines = snapshot.text("proc/cpuinfo").unwrap_or_default().lines();
    lines.filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        if name.trim() == "processor" {
            processor = value.trim().parse().ok().filter(|&cpu| cpu <= 65_535).map(CpuId);
        }
        (name.trim() == key).then_some((processor, value.trim()))
    })
}

/// What people call the machine: its processor, or else its board.
fn name(snapshot: &Snapshot) -> String {
    let processor = ["model name", "cpu", "cpu model", "Hardware"].into_iter().find_map(|key| {
        cpuinfo(snapshot, key).map(|(_, value)| value).find(|value| !value.is_empty())
    });
    let board = || {
        ["sys/class/dmi/id/product_name", "sys/firmware/devicetree/base/model"]
            .into_iter()
            .find_map(|path| snapshot.text(path).filter(|text| !text.is_empty()))
    };
    let vendor = || cpuinfo(snapshot, "vendor_id").map(|(_, value)| value).next();
    let name = processor.or_else(board).or_else(vendor).unwrap_or("unknown processor");
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    fn snapshot(files: &[(&str, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (path, text) in files {
            snapshot.insert(path, text.as_bytes().to_vec()).unwrap();
        }
        snapshot
    }

    #[test]
    fn a_kernel_that_tells_nothing_but_the_cpus_gives_cores_of_one_context() {
        let machine =
            Machine::from_snapshot(&snapshot(&[("sys/devices/system/cpu/online", "0-2\n")]))
                .unwrap();
        assert_eq!(machine.domains(DomainKind::Core).count(), 3);
        assert_eq!(machine.contexts, [0, 1, 2].map(|cpu| Context { cpu: CpuId(cpu), kind: 0 }));
        assert_eq!(machine.numa[0].cpus.to_string(), "0-2");
    }

    #[test]
    fn more_cpus_than_a_machine_has_are_refused_before_the_domains_of_each_are_read() {
        let error = Machine::from_snapshot(&snapshot(&[
            ("sys/devices/system/cpu/online", "0-65535\n"),
            ("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "no list\n"),
        ]))
        .unwrap_err()
        .to_string();
        assert!(error.contains("there are 65536; a machine has at most 8192"), "{error}");
    }

    #[test]
    fn cpuinfo_alone_gives_packages_and_cores() {
        let block = |cpu, package, core| {
            format!(
                "processor : {cpu}\nphysical id : {package}\ncore id : {core}\nmodel name : Old  \
                 CPU\n\n"
            )
        };
        let text = block(0, 0, 0) + &block(1, 1, 0) + &block(2, 0, 0) + &block(3, 1, 0);
        let machine = Machine::from_snapshot(&snapshot(&[("proc/cpuinfo", &text)])).unwrap();
        let cores: Vec<String> =
            machine.domains(DomainKind::Core).map(|core| core.cpus.to_string()).collect();
        assert_eq!(cores, ["0,2", "1,3"]);
        assert_eq!(machine.domains(DomainKind::Package).count(), 2);
        assert_eq!(machine.name, "Old CPU");
    }

    #[test]
    fn isolated_and_tickless_cpus_are_those_the_kernel_was_booted_with() {
        let files = |isolated, nohz_full| {
            let cpus = ("sys/devices/system/cpu/online", "0-7\n");
            let files = [
                cpus,
                ("sys/devices/system/cpu/isolated", isolated),
                ("sys/devices/system/cpu/nohz_full", nohz_full),
            ];
            let machine = Machine::from_snapshot(&snapshot(&files)).unwrap();
            (machine.isolated.to_string(), machine.nohz_full.to_string())
        };
        assert_eq!(files("2-3\n", "2,3,6,7\n"), ("2,3".into(), "2,3,6,7".into()));
        assert_eq!(files("\n", "  (null)\n"), (String::new(), String::new()));
    }

    #[test]
    fn a_single_node_has_all_the_memory_of_the_machine() {
        let node = "sys/devices/system/node/node0";
        let machine = |own: &str| {
            let files = snapshot(&[
                ("sys/devices/system/cpu/online", "0-1\n"),
                ("proc/meminfo", "MemTotal:       24684096 kB\n"),
                (&format!("{node}/cpulist"), "0-1\n"),
                (&format!("{node}/meminfo"), own),
            ]);
            Machine::from_snapshot(&files).unwrap().numa[0].memory
        };
        assert_eq!(machine("Node 0 MemTotal:  8349912 kB\n"), Some(24_684_096 << 10));
        assert_eq!(machine("Node 0 MemTotal: 25000000 kB\n"), Some(25_000_000 << 10));
        assert_eq!(machine(""), Some(24_684_096 << 10));
    }

    #[test]
    fn errors_name_the_file() {
        let nothing = Machine::from_snapshot(&Snapshot::default()).unwrap_err().to_string();
        assert!(nothing.contains("no online CPU"), "{nothing}");
        let broken = snapshot(&[
            ("sys/devices/system/cpu/online", "0-1"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings", "zz"),
        ]);
        let broken = Machine::from_snapshot(&broken).unwrap_err().to_string();
        assert!(
            broken.starts_with("sys/devices/system/cpu/cpu1/topology/thread_siblings: "),
            "{broken}"
        );
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(size("32K"), Some(32_768));
        assert_eq!(size("8M"), Some(8 << 20));
        assert_eq!(size("512"), Some(512));
        assert_eq!((size("0K"), size("x"), size("99999999999999999999K")), (None, None, None));
    }
}
