//! What a check found, with its values. The crate `present` has the words.

use pinwise_counters::{NamedEvent, UncountedEvent, UncountedReason};
use pinwise_measure::CounterEvent;
use pinwise_monitor::{Layer, Unavailable};
use pinwise_topology::{CpuSet, ExclusiveCpus};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)] // The names of the values say what they are.
pub enum Finding {
    /// A thread of this process was moved and put back.
    AffinitySettable,
    AffinityRefused {
        error: String,
    },
    /// The measuring thread wakes on time next to busy threads.
    FifoPermitted,
    FifoRefused {
        error: String,
        /// On real-time priority.
        limit: Option<u64>,
    },
    /// Those that pinwise can use.
    Capabilities {
        held: Vec<Capability>,
        lacking: Vec<Capability>,
    },
    EventsCountable {
        events: CountedEvents,
        paranoid: Option<String>,
    },
    EventsAbsent {
        events: CountedEvents,
    },
    EventsNotPermitted {
        events: CountedEvents,
        paranoid: Option<String>,
    },
    EventsNotInKernel {
        events: CountedEvents,
    },
    EventsFailed {
        events: CountedEvents,
        error: String,
    },
    /// The events of a program's threads that are counted.
    Counters {
        /// By the processor; none if it has no counters, or they are not permitted.
        hardware: Vec<NamedEvent>,
        /// The processor's count what the kernel does for the program, too.
        with_kernel: bool,
        /// Why the processor's count none, and what to do, if no other finding says it.
        error: Option<String>,
        /// By the kernel.
        software: Vec<CounterEvent>,
        /// What else pinwise knows, and why it is not counted.
        uncounted: Vec<UncountedEvent>,
    },
    TraceEvents {
        tracefs: PathBuf,
    },
    TracefsNotMounted,
    TracefsNotReadable {
        tracefs: PathBuf,
    },
    TraceEventsAbsent {
        tracefs: PathBuf,
        error: String,
    },
    EbpfPermitted,
    EbpfNotInKernel,
    /// The kernel does not describe its types.
    EbpfWithoutTypes,
    EbpfNotPermitted,
    Monitor {
        layer: Layer,
        /// Better ones, the best first.
        refused: Vec<Unavailable>,
    },
    ContextsAllowed {
        online: CpuSet,
        /// Without a timer tick while one thread runs (`nohz_full=`).
        nohz_full: CpuSet,
        /// Control groups that have some for themselves.
        exclusive: Vec<ExclusiveCpus>,
    },
    ContextsBarred {
        online: CpuSet,
        allowed: CpuSet,
        /// Those of the others that the kernel isolates (`isolcpus=`).
        isolated: CpuSet,
        /// As above.
        nohz_full: CpuSet,
        /// As above.
        exclusive: Vec<ExclusiveCpus>,
    },
    /// All contexts are online.
    NoneOffline,
    ContextsOffline {
        offline: CpuSet,
    },
    Smt {
        contexts_per_core: usize,
    },
    SmtOff,
    SmtOffAtBoot,
    NoSmt,
    NoGovernor {
        virtual_machine: bool,
    },
    Governors {
        /// How many contexts each governor has.
        contexts: BTreeMap<String, usize>,
    },
    Turbo {
        /// `None` if it is not visible.
        on: Option<bool>,
    },
    OneNode,
    NumaBalancingOff,
    NumaBalancing {
        nodes: usize,
    },
    NoQuota,
    Quota {
        /// CPUs' worth of time.
        cpus: f64,
        directory: String,
    },
    HugePages {
        transparent: Option<String>,
        reserved: Option<u64>,
    },
    Clock {
        source: Option<String>,
        /// The kernel offers the processor's own clock, too.
        tsc: bool,
        /// What one reading costs.
        nanoseconds: u64,
    },
    Load {
        /// Runnable threads, on average over the last minute.
        minute: f64,
        /// Runnable now, besides pinwise.
        others: usize,
        contexts: usize,
    },
    LoadUnknown,
    StealTime {
        stolen: u64,
        ticks: u64,
    },
    StealTimeUnknown,
    Repeatability {
        /// The median time of the repeated calculation.
        milliseconds: f64,
        /// The interquartile range, in percent of the context's own median.
        iqr: f64,
        /// How much longer than the median the longest took, in percent.
        longest: f64,
        repetitions: usize,
        contexts: usize,
        /// How far the medians of the contexts are apart, in percent.
        apart: f64,
    },
    /// No repetition ended in time.
    NotRepeated,
    /// No thread could be put on this context.
    NotRepeatable {
        cpu: u32,
        error: String,
    },
}

/// Events that the kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedEvents {
    /// Of the processor, such as cycles.
    Hardware,
    /// The kernel's own, such as time on a CPU and switches.
    Software,
    /// The processor's record of its last taken branches.
    BranchRecords,
}

/// Capabilities that pinwise can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // See capabilities(7).
pub enum Capability {
    CapSysNice,
    CapSysPtrace,
    CapPerfmon,
    CapBpf,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::CapSysNice, Self::CapSysPtrace, Self::CapPerfmon, Self::CapBpf];

    /// Its number in the kernel.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::CapSysNice => 23,
            Self::CapSysPtrace => 19,
            Self::CapPerfmon => 38,
            Self::CapBpf => 39,
        }
    }
}

/// The verdict on one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// In order.
    Ok,
    /// It is there, and makes measurements worse or contexts fewer.
    Warning,
    /// pinwise can use it, and cannot here.
    Missing,
}

impl FindingState {
    /// As shown and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Missing => "missing",
        }
    }
}

/// Work that repeats to within this is steady: interquartile range in percent of the median.
const STEADY: f64 = 2.0;

impl Finding {
    /// What the check is about, in two or three words. A name has one finding in each examination.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AffinitySettable | Self::AffinityRefused { .. } => "setting affinity",
            Self::FifoPermitted | Self::FifoRefused { .. } => "SCHED_FIFO",
            Self::Capabilities { .. } => "capabilities",
            Self::EventsCountable { events, .. }
            | Self::EventsAbsent { events }
            | Self::EventsNotPermitted { events, .. }
            | Self::EventsNotInKernel { events }
            | Self::EventsFailed { events, .. } => match events {
                CountedEvents::Hardware => "hardware counters",
                CountedEvents::Software => "software events",
                CountedEvents::BranchRecords => "branch records",
            },
            Self::Counters { .. } => "counters",
            Self::TraceEvents { .. }
            | Self::TracefsNotMounted
            | Self::TracefsNotReadable { .. }
            | Self::TraceEventsAbsent { .. } => "trace events",
            Self::EbpfPermitted
            | Self::EbpfNotInKernel
            | Self::EbpfWithoutTypes
            | Self::EbpfNotPermitted => "eBPF",
            Self::Monitor { .. } => "monitor",
            Self::ContextsAllowed { .. } | Self::ContextsBarred { .. } => "allowed contexts",
            Self::NoneOffline | Self::ContextsOffline { .. } => "offline contexts",
            Self::Smt { .. } | Self::SmtOff | Self::SmtOffAtBoot | Self::NoSmt => "SMT",
            Self::NoGovernor { .. } | Self::Governors { .. } => "frequency governor",
            Self::Turbo { .. } => "turbo",
            Self::OneNode | Self::NumaBalancingOff | Self::NumaBalancing { .. } => "NUMA balancing",
            Self::NoQuota | Self::Quota { .. } => "CPU quota",
            Self::HugePages { .. } => "huge pages",
            Self::Clock { .. } => "clock source",
            Self::Load { .. } | Self::LoadUnknown => "load",
            Self::StealTime { .. } | Self::StealTimeUnknown => "steal time",
            Self::Repeatability { .. } | Self::NotRepeated | Self::NotRepeatable { .. } => {
                "repeatability"
            }
        }
    }

    /// The verdict.
    pub fn state(&self) -> FindingState {
        let unless = |is_ok: bool, otherwise| if is_ok { FindingState::Ok } else { otherwise };
        match self {
            Self::AffinitySettable
            | Self::FifoPermitted
            | Self::EventsCountable { .. }
            | Self::TraceEvents { .. }
            | Self::EbpfPermitted
            | Self::ContextsAllowed { .. }
            | Self::NoneOffline
            | Self::Smt { .. }
            | Self::SmtOffAtBoot
            | Self::NoSmt
            | Self::NoGovernor { .. }
            | Self::Turbo { .. }
            | Self::OneNode
            | Self::NumaBalancingOff
            | Self::NoQuota
            | Self::HugePages { .. }
            | Self::LoadUnknown
            | Self::StealTimeUnknown => FindingState::Ok,
            Self::AffinityRefused { .. }
            | Self::FifoRefused { .. }
            | Self::EventsAbsent { .. }
            | Self::EventsNotPermitted { .. }
            | Self::EventsNotInKernel { .. }
            | Self::EventsFailed { .. }
            | Self::TracefsNotMounted
            | Self::TracefsNotReadable { .. }
            | Self::TraceEventsAbsent { .. }
            | Self::EbpfNotInKernel
            | Self::EbpfWithoutTypes
            | Self::EbpfNotPermitted
            | Self::NotRepeated
            | Self::NotRepeatable { .. } => FindingState::Missing,
            Self::ContextsBarred { .. }
            | Self::ContextsOffline { .. }
            | Self::SmtOff
            | Self::NumaBalancing { .. }
            | Self::Quota { .. } => FindingState::Warning,
            Self::Capabilities { lacking, .. } => unless(lacking.is_empty(), FindingState::Missing),
            Self::Counters { error, uncounted, .. } => {
                unless(error.is_none() && !uncounted.iter().any(is_mendable), FindingState::Missing)
            }
            Self::Monitor { refused, .. } => unless(refused.is_empty(), FindingState::Missing),
            Self::Governors { contexts } => {
                unless(contexts.keys().all(|name| name == "performance"), FindingState::Warning)
            }
            Self::Clock { source, .. } => {
                unless(!is_slow(source.as_deref()), FindingState::Warning)
            }
            Self::Load { minute, contexts, .. } => {
                unless(*minute <= 0.25 * *contexts as f64, FindingState::Warning)
            }
            Self::StealTime { stolen, ticks } => {
                unless((100 * stolen) < (*ticks).max(1), FindingState::Warning)
            }
            Self::Repeatability { iqr, .. } => unless(*iqr <= STEADY, FindingState::Warning),
        }
    }

    /// Nothing is to be done.
    pub fn is_ok(&self) -> bool {
        self.state() == FindingState::Ok
    }
}

/// Whether another kernel or a permission would make it counted. Every core counts cycles,
/// instructions and branches: it is the kernel that does not. Other events are not on every core.
fn is_mendable(uncounted: &UncountedEvent) -> bool {
    let on_every_core = matches!(
        uncounted.event,
        CounterEvent::Cycles | CounterEvent::Instructions | CounterEvent::Branches
    );
    on_every_core || uncounted.reason == UncountedReason::NotInProc
}

/// Whether each reading of this clock needs a system call or a slow device register.
fn is_slow(clock: Option<&str>) -> bool {
    matches!(clock, Some("hpet" | "acpi_pm" | "jiffies" | "pit"))
}
