//! Machines with PMUs, as their kernels describe them: for tests.

use pinwise_topology::Snapshot;

fn snapshot(cpuinfo: &str, files: &[(&str, &str)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.insert("proc/cpuinfo", cpuinfo.as_bytes().to_vec()).unwrap();
    for (path, text) in files {
        let path = format!("sys/bus/event_source/devices/{path}");
        snapshot.insert(&path, format!("{text}\n").into_bytes()).unwrap();
    }
    snapshot
}

fn x86(vendor: &str, family: u32, model: u32) -> String {
    format!("processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n")
}

/// Intel's Alder Lake (Core i9-12900K): performance and efficiency cores.
pub(crate) fn alder_lake() -> Snapshot {
    snapshot(
        &x86("GenuineIntel", 6, 0x97),
        &[
            ("breakpoint/type", "5"),
            ("cpu_atom/cpus", "16-23"),
            ("cpu_atom/events/branch-instructions", "event=0xc4"),
            ("cpu_atom/events/cpu-cycles", "event=0x3c"),
            ("cpu_atom/events/instructions", "event=0xc0"),
            ("cpu_atom/format/event", "config:0-7"),
            ("cpu_atom/format/umask", "config:8-15"),
            ("cpu_atom/type", "10"),
            ("cpu_core/cpus", "0-15"),
            ("cpu_core/events/branch-instructions", "event=0xc4"),
            ("cpu_core/events/cpu-cycles", "event=0x3c"),
            ("cpu_core/events/instructions", "event=0xc0"),
            ("cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
            ("cpu_core/format/edge", "config:18"),
            ("cpu_core/format/event", "config:0-7"),
            ("cpu_core/format/frontend", "config1:0-23"),
            ("cpu_core/format/ldlat", "config1:0-15"),
            ("cpu_core/format/umask", "config:8-15"),
            ("cpu_core/type", "4"),
            ("software/type", "1"),
            ("uncore_imc_0/cpumask", "0"),
            ("uncore_imc_0/format/event", "config:0-7"),
            ("uncore_imc_0/type", "23"),
        ],
    )
}

/// AMD's Zen 4 (EPYC 9004).
pub(crate) fn zen4() -> Snapshot {
    snapshot(
        &x86("AuthenticAMD", 25, 17),
        &[
            ("amd_l3/cpumask", "0,8"),
            ("amd_l3/format/event", "config:0-7"),
            ("amd_l3/type", "12"),
            ("cpu/events/branch-instructions", "event=0xc2"),
            ("cpu/events/cpu-cycles", "event=0x76"),
            ("cpu/events/instructions", "event=0xc0"),
            ("cpu/format/event", "config:0-7,32-35"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/type", "4"),
            ("software/type", "1"),
        ],
    )
}

/// Arm's big.LITTLE: Cortex-A53 and Cortex-A72 (RK3399).
pub(crate) fn big_little() -> Snapshot {
    let common = |pmu: &str| {
        [
            ("br_retired", "event=0x0021"),
            ("cpu_cycles", "event=0x0011"),
            ("inst_retired", "event=0x0008"),
            ("l1i_cache_refill", "event=0x0001"),
            ("l2d_cache_refill", "event=0x0017"),
        ]
        .map(|(name, terms)| (format!("{pmu}/events/{name}"), terms.to_owned()))
    };
    let pmus = [("armv8_cortex_a53", "0-3", "8"), ("armv8_cortex_a72", "4-5", "9")];
    let files: Vec<(String, String)> = pmus
        .into_iter()
        .flat_map(|(pmu, cpus, number)| {
            let own = [("cpus", cpus), ("format/event", "config:0-15"), ("type", number)]
                .map(|(file, text)| (format!("{pmu}/{file}"), text.to_owned()));
            // The A53's has no counter of retired branches.
            let lacking = format!("{}/events/br_retired", pmus[0].0);
            own.into_iter().chain(common(pmu)).filter(move |(path, _)| *path != lacking)
        })
        .collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    snapshot("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n", &files)
}

/// A virtual machine without a PMU, on Ice Lake.
pub(crate) fn without_pmu() -> Snapshot {
    let devices = [("msr/type", "9"), ("software/type", "1"), ("tracepoint/type", "2")];
    snapshot(&x86("GenuineIntel", 6, 0x6a), &devices)
}
