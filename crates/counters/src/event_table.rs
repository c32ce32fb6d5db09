//! The event of each processor that a [`CounterEvent`] stands for.
//!
//! **Problem.** Cycles, instructions and branches have one meaning on every processor. The generic
//! cache events of perf_event_open(2) do not. `cache-misses` counts misses of the last level on
//! Intel, the second on AMD and the first on Arm. Misses of the micro-op cache and floating point
//! operations have no generic event.
//!
//! **Method.** A table has the events that stay the same over generations. Each entry has its name
//! in perf's own event files (`tools/perf/pmu-events/arch` in the sources of Linux). These files
//! follow the manuals of Intel, AMD and Arm. An event has several encodings if processors differ.
//! The first one that the kernel accepts is used.
//!
//! **Limits.** Compare counts of one design only. `FrontEndMisses` are those of the micro-op cache
//! where they are counted, else of the instruction cache or its TLB. `L2Misses` hold prefetches
//! into the L2 on Intel, and none on AMD. `FpOperations` are instructions on Intel, where a vector
//! counts once and a fused multiply-add twice. They are operations on AMD. On Arm they include
//! speculative ones. On AMD `LlcMisses` are the fills of the data cache from memory. The L3 there
//! only counts for all its cores together. Arm's kernel refuses no number: `vfp_spec` stays 0 on
//! cores without it.

use pinwise_measure::CounterEvent;
use pinwise_topology::Snapshot;

/// Cores for which the same entries of the table hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreDesign {
    /// Sandy Bridge and Ivy Bridge.
    SandyBridge,
    Haswell,
    Broadwell,
    /// Also Cascade Lake and Comet Lake.
    Skylake,
    /// Also Tiger Lake and Rocket Lake.
    IceLake,
    /// The performance cores of Alder Lake and Raptor Lake; Sapphire Rapids and Emerald Rapids.
    GoldenCove,
    /// The efficiency cores of Alder Lake and Raptor Lake.
    Gracemont,
    /// Any other processor of Intel.
    OtherIntel,
    /// Zen 1, also Hygon's.
    Zen1,
    Zen2,
    Zen3,
    Zen4,
    Zen5,
    /// Arm with PMUv3.
    Arm,
    /// Any other.
    Other,
}

impl CoreDesign {
    const ALL: [Self; 15] = [
        Self::SandyBridge,
        Self::Haswell,
        Self::Broadwell,
        Self::Skylake,
        Self::IceLake,
        Self::GoldenCove,
        Self::Gracemont,
        Self::OtherIntel,
        Self::Zen1,
        Self::Zen2,
        Self::Zen3,
        Self::Zen4,
        Self::Zen5,
        Self::Arm,
        Self::Other,
    ];

    /// The design of the cores of a PMU, by `/proc/cpuinfo` and the PMU's name.
    pub(crate) fn of(snapshot: &Snapshot, pmu: &str) -> Self {
        let cpuinfo = snapshot.text("proc/cpuinfo").unwrap_or_default();
        // All processors of a machine are of one model, hybrid or not.
        let field = |name: &str| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim())
            })
        };
        let number = |name| field(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        let (family, model) = (number("cpu family"), number("model"));
        match field("vendor_id") {
            Some("GenuineIntel") if family == 6 => Self::of_intel(model, pmu),
            Some("GenuineIntel") => Self::OtherIntel,
            Some("AuthenticAMD" | "HygonGenuine") => Self::of_amd(family, model),
            _ if pmu.starts_with("armv8") || pmu.starts_with("armv9") => Self::Arm,
            _ => Self::Other,
        }
    }

    /// By the models of perf's `mapfile.csv`.
    fn of_intel(model: u32, pmu: &str) -> Self {
        match model {
            0x2a | 0x2d | 0x3a | 0x3e => Self::SandyBridge,
            0x3c | 0x3f | 0x45 | 0x46 => Self::Haswell,
            0x3d | 0x47 | 0x4f | 0x56 => Self::Broadwell,
            0x4e | 0x55 | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => Self::Skylake,
            0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7 => Self::IceLake,
            0x97 | 0x9a | 0xb7 | 0xba | 0xbf if pmu == "cpu_atom" => Self::Gracemont,
            0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0x8f | 0xcf => Self::GoldenCove,
            0xbe => Self::Gracemont,
            _ => Self::OtherIntel,
        }
    }

    /// By the families and models of perf's `mapfile.csv`.
    fn of_amd(family: u32, model: u32) -> Self {
        match (family, model) {
            (0x17, 0..0x30) | (0x18, _) => Self::Zen1,
            (0x17, _) => Self::Zen2,
            (0x19, 0..0x10 | 0x20..0x30 | 0x40..0x60) => Self::Zen3,
            (0x19, _) => Self::Zen4,
            (0x1a, _) => Self::Zen5,
            _ => Self::Other,
        }
    }
}

/// How an event is asked for on a PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventEncoding {
    /// By a name that the kernel lists for the PMU.
    Listed(&'static str),
    /// By its terms. The name is that of perf's event files.
    Terms(&'static str, &'static str),
    /// By the code that is the same everywhere, with perf's name of it.
    Generic(&'static str),
    /// By a code of `PERF_TYPE_HW_CACHE`, with perf's name of it.
    Cache(&'static str, u64),
}

impl EventEncoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Listed(name)
            | Self::Terms(name, _)
            | Self::Generic(name)
            | Self::Cache(name, _) => name,
        }
    }
}

/// The events of processors, in the order in which groups are filled: what belongs together first.
pub(crate) const EVENTS: [CounterEvent; 9] = [
    CounterEvent::Cycles,
    CounterEvent::Instructions,
    CounterEvent::Branches,
    CounterEvent::FrontEndMisses,
    CounterEvent::L2Misses,
    CounterEvent::LlcMisses,
    CounterEvent::FpOperations,
    CounterEvent::L1DataMisses,
    CounterEvent::BranchMisses,
];

/// The ways to count an event on cores of a design, the best first.
pub(crate) fn encodings(event: CounterEvent, design: CoreDesign) -> Vec<EventEncoding> {
    [own(event, design), common(event)].concat()
}

/// The event that one of these names means, in any case: of the table, or one of perf's aliases.
pub(crate) fn event_named(name: &str) -> Option<CounterEvent> {
    let alias = match name {
        "cycles" | "cpu-cycles" => Some(CounterEvent::Cycles),
        "branches" | "branch-instructions" => Some(CounterEvent::Branches),
        "task-clock" => Some(CounterEvent::TaskClock),
        "context-switches" | "cs" => Some(CounterEvent::ContextSwitches),
        "cpu-migrations" | "migrations" => Some(CounterEvent::Migrations),
        "page-faults" | "faults" => Some(CounterEvent::PageFaults),
        _ => None,
    };
    let in_table = || {
        let mut all = EVENTS.into_iter().flat_map(|event| {
            CoreDesign::ALL.into_iter().flat_map(move |design| {
                encodings(event, design).into_iter().map(move |encoding| (event, encoding.name()))
            })
        });
        all.find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(event, _)| event)
    };
    alias.or_else(in_table)
}

fn own(event: CounterEvent, design: CoreDesign) -> &'static [EventEncoding] {
    use CoreDesign as Of;
    use CounterEvent as Event;
    use EventEncoding::Terms;
    match (event, design) {
        // Lines that came into the L2, prefetched ones included.
        (Event::L2Misses, Of::SandyBridge) => &[Terms("L2_LINES_IN.ALL", "event=0xf1,umask=0x07")],
        (Event::L2Misses, Of::IceLake) => &[Terms("L2_LINES_IN.ALL", "event=0xf1,umask=0x1f")],
        (Event::L2Misses, Of::Haswell | Of::Broadwell | Of::Skylake | Of::GoldenCove) => {
            &[Terms("L2_RQSTS.MISS", "event=0x24,umask=0x3f")]
        }
        // What misses the L2 there asks the last level.
        (Event::L2Misses, Of::Gracemont) => {
            &[Terms("LONGEST_LAT_CACHE.REFERENCE", "event=0x2e,umask=0x4f")]
        }
        (Event::L2Misses, Of::Zen1 | Of::Zen2 | Of::Zen3 | Of::Zen4 | Of::Zen5) => {
            &[Terms("l2_cache_req_stat.ic_dc_miss_in_l2", "event=0x64,umask=0x09")]
        }
        // The decoded instruction cache is what the trace cache has become.
        (Event::FrontEndMisses, Of::Skylake | Of::IceLake | Of::GoldenCove) => {
            &[Terms("FRONTEND_RETIRED.DSB_MISS", "event=0xc6,umask=0x01,frontend=0x11")]
        }
        (Event::FrontEndMisses, Of::SandyBridge | Of::Haswell | Of::Broadwell | Of::Gracemont) => {
            &[Terms("ICACHE.MISSES", "event=0x80,umask=0x02")]
        }
        (Event::FrontEndMisses, Of::Zen1 | Of::Zen2) => &[Terms("ic_fw32_miss", "event=0x81")],
        (Event::FrontEndMisses, Of::Zen3 | Of::Zen4 | Of::Zen5) => {
            &[Terms("op_cache_hit_miss.op_cache_miss", "event=0x28f,umask=0x04")]
        }
        // An architectural event (Intel's manual, volume 3, "Pre-defined architectural events").
        (
            Event::LlcMisses,
            Of::SandyBridge
            | Of::Haswell
            | Of::Broadwell
            | Of::Skylake
            | Of::IceLake
            | Of::GoldenCove
            | Of::Gracemont
            | Of::OtherIntel,
        ) => &[Terms("LONGEST_LAT_CACHE.MISS", "event=0x2e,umask=0x41")],
        // Two events of perf's, `.ls_mabresp_lcl_dram` and `.ls_mabresp_rmt_dram`: both nodes.
        (Event::LlcMisses, Of::Zen2) => &[Terms("ls_refills_from_sys", "event=0x43,umask=0x48")],
        (Event::LlcMisses, Of::Zen3 | Of::Zen4 | Of::Zen5) => {
            &[Terms("ls_any_fills_from_sys.dram_io_all", "event=0x44,umask=0x48")]
        }
        // All its parts: scalar and vector, single and double.
        (Event::FpOperations, Of::Broadwell) => {
            &[Terms("FP_ARITH_INST_RETIRED", "event=0xc7,umask=0x3f")]
        }
        (Event::FpOperations, Of::Skylake | Of::IceLake | Of::GoldenCove) => {
            &[Terms("FP_ARITH_INST_RETIRED", "event=0xc7,umask=0xff")]
        }
        (Event::FpOperations, Of::Zen1 | Of::Zen2 | Of::Zen3) => {
            &[Terms("fp_ret_sse_avx_ops.all", "event=0x03,umask=0xff")]
        }
        (Event::FpOperations, Of::Zen4) => {
            &[Terms("fp_ret_sse_avx_ops.all", "event=0x03,umask=0x1f")]
        }
        (Event::FpOperations, Of::Zen5) => {
            &[Terms("fp_ret_sse_avx_ops.all", "event=0x03,umask=0x0f")]
        }
        (Event::FpOperations, Of::Arm) => &[Terms("vfp_spec", "event=0x75")],
        _ => &[],
    }
}

/// What is known about every processor, beside the names that its kernel may list. Those of Arm are
/// the common events of PMUv3.
fn common(event: CounterEvent) -> &'static [EventEncoding] {
    use EventEncoding::{Cache, Generic, Listed};
    match event {
        CounterEvent::Cycles => {
            &[Listed("cpu-cycles"), Listed("cpu_cycles"), Generic("cpu-cycles")]
        }
        CounterEvent::Instructions => {
            &[Listed("instructions"), Listed("inst_retired"), Generic("instructions")]
        }
        CounterEvent::Branches => {
            &[Listed("branch-instructions"), Listed("br_retired"), Generic("branch-instructions")]
        }
        CounterEvent::BranchMisses => {
            &[Listed("branch-misses"), Listed("br_mis_pred_retired"), Generic("branch-misses")]
        }
        // Bits 0 to 7 are the cache (L1D, L1I, ITLB, LL), bits 8 to 15 reads, bit 16 misses.
        CounterEvent::L1DataMisses => {
            &[Listed("l1d_cache_refill"), Cache("L1-dcache-load-misses", 1 << 16)]
        }
        CounterEvent::FrontEndMisses => &[
            Listed("l1i_cache_refill"),
            Cache("L1-icache-load-misses", 1 << 16 | 1),
            Cache("iTLB-load-misses", 1 << 16 | 4),
        ],
        CounterEvent::L2Misses => &[Listed("l2d_cache_refill")],
        CounterEvent::LlcMisses => &[
            Listed("ll_cache_miss_rd"),
            Listed("l3d_cache_refill"),
            Cache("LLC-load-misses", 1 << 16 | 2),
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn designs_are_told_apart_by_family_and_model_and_hybrid_ones_by_their_pmus() {
        let (adl, vm) = (fixture::alder_lake(), fixture::without_pmu());
        assert_eq!(CoreDesign::of(&adl, "cpu_core"), CoreDesign::GoldenCove);
        assert_eq!(CoreDesign::of(&adl, "cpu_atom"), CoreDesign::Gracemont);
        assert_eq!(CoreDesign::of(&vm, "cpu"), CoreDesign::IceLake);
        assert_eq!(CoreDesign::of(&fixture::zen4(), "cpu"), CoreDesign::Zen4);
        let arm = fixture::big_little();
        assert_eq!(CoreDesign::of(&arm, "armv8_cortex_a53"), CoreDesign::Arm);
        assert_eq!(CoreDesign::of(&Snapshot::default(), "cpu"), CoreDesign::Other);
        // Pairs of neighbours where the families of AMD's part.
        let amd = |family, model| CoreDesign::of_amd(family, model);
        assert_eq!((amd(0x17, 0x2f), amd(0x17, 0x31)), (CoreDesign::Zen1, CoreDesign::Zen2));
        assert_eq!((amd(0x19, 0x01), amd(0x19, 0x11)), (CoreDesign::Zen3, CoreDesign::Zen4));
        assert_eq!((amd(0x19, 0x50), amd(0x19, 0x61)), (CoreDesign::Zen3, CoreDesign::Zen4));
        assert_eq!((amd(0x1a, 0x02), amd(0x15, 0x02)), (CoreDesign::Zen5, CoreDesign::Other));
    }

    #[test]
    fn a_name_means_one_event() {
        for event in EVENTS {
            for design in CoreDesign::ALL {
                for encoding in encodings(event, design) {
                    // Arm's LLC and Gracemont's L2 have names of their own.
                    assert_eq!(
                        event_named(encoding.name()),
                        Some(event),
                        "{encoding:?} on {design:?}"
                    );
                }
            }
        }
        assert_eq!(event_named("L2_RQSTS.MISS"), event_named("l2_rqsts.miss"));
        assert_eq!(event_named("bus-cycles"), None);
        // The last level on Intel, the second on AMD, the first on Arm.
        assert_eq!(event_named("cache-misses"), None);
    }
}
