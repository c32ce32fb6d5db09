//! What the checks of a machine found and what to do, as text.

use crate::figures::counted;
use crate::one_line;
use pinwise_hardware::doctor::{
    Capability, CountedEvents, Finding, NamedEvent, UncountedEvent, UncountedReason,
};
use pinwise_measure::CounterEvent;
use pinwise_topology::{CpuSet, ExclusiveCpus};

/// What a check found, without a full stop.
pub fn finding(finding: &Finding) -> String {
    use Finding as Is;
    match finding {
        Is::AffinitySettable => "a thread of this process was moved and put back".into(),
        Is::AffinityRefused { error } => format!("sched_setaffinity: {error}"),
        Is::FifoPermitted => "the measuring thread wakes on time next to busy threads".into(),
        Is::FifoRefused { error, limit } => {
            let limit = limit.map_or("unknown".to_owned(), |limit| limit.to_string());
            format!(
                "{error} (limit on real-time priority: {limit}): the measuring thread wakes up to \
                 15 ms late next to busy threads"
            )
        }
        Is::Capabilities { held, lacking } if lacking.is_empty() => names(held, ", "),
        Is::Capabilities { lacking, .. } => {
            let uses: Vec<String> = lacking
                .iter()
                .map(|&one| format!("{} ({})", capability(one), use_of(one)))
                .collect();
            format!("without {}; your own programs need none of them", uses.join(", "))
        }
        Is::EventsCountable { events, paranoid } => {
            let done = match events {
                CountedEvents::BranchRecords => "can be read",
                CountedEvents::Hardware | CountedEvents::Software => "can be counted",
            };
            let level = paranoid.iter();
            let level = level.map(|level| format!(" (kernel.perf_event_paranoid = {level})"));
            done.to_owned() + &level.collect::<String>()
        }
        Is::EventsAbsent { events: CountedEvents::BranchRecords } => {
            "this processor shows none: usual in virtual machines; only `paths record` needs them"
                .into()
        }
        Is::EventsAbsent { .. } => {
            "this processor shows no counters (ENOENT): usual in virtual machines".into()
        }
        Is::EventsNotPermitted { paranoid, .. } => format!(
            "not permitted (kernel.perf_event_paranoid = {})",
            paranoid.as_deref().unwrap_or("unknown")
        ),
        Is::EventsNotInKernel { .. } => "no perf_event_open in this kernel or container".into(),
        Is::EventsFailed { error, .. } => format!("perf_event_open: {error}"),
        Is::Counters { hardware, with_kernel, error: _, software, uncounted } => {
            counters(hardware, *with_kernel, software, uncounted)
        }
        Is::TraceEvents { tracefs } => format!("tracefs at {}", tracefs.display()),
        Is::TracefsNotMounted => "tracefs is not mounted".into(),
        Is::TracefsNotReadable { tracefs } => {
            format!("{} is readable by root only", tracefs.display())
        }
        Is::TraceEventsAbsent { tracefs, error } => {
            format!("{}: no scheduler events ({error})", tracefs.display())
        }
        Is::EbpfPermitted => "permitted, with type information".into(),
        Is::EbpfNotInKernel => "not in this kernel".into(),
        Is::EbpfWithoutTypes => "no type information (/sys/kernel/btf/vmlinux)".into(),
        Is::EbpfNotPermitted => "type information is there, permission is not".into(),
        Is::Monitor { layer, refused } => {
            let refused: String =
                refused.iter().map(|one| format!("; no {}: {}", one.layer, one.reason())).collect();
            format!("{layer}: {}{refused}", layer.gives())
        }
        Is::ContextsAllowed { online, nohz_full, exclusive } => {
            let all = format!("all {} that are online ({online})", online.len());
            all + &named(nohz_full, "nohz_full") + &of_groups(exclusive)
        }
        Is::ContextsBarred { online, allowed, isolated, nohz_full, exclusive } => {
            let share = format!("{} of {} online ({allowed})", allowed.len(), online.len());
            let barred = online.difference(allowed).difference(isolated);
            share
                + &named(isolated, "isolated (isolcpus=)")
                + &named(&barred, "barred")
                + &named(nohz_full, "nohz_full")
                + &of_groups(exclusive)
        }
        Is::NoneOffline | Is::NoQuota => "none".into(),
        Is::ContextsOffline { offline } => format!("{} ({offline})", offline.len()),
        Is::Smt { contexts_per_core } => {
            format!("active, up to {contexts_per_core} contexts per core")
        }
        Is::SmtOff => "switched off: one context per core".into(),
        Is::SmtOffAtBoot => "switched off at boot (nosmt): one context per core".into(),
        Is::NoSmt => "not present: one context per core".into(),
        Is::NoGovernor { virtual_machine: true } => {
            "none here; a virtual machine: the host decides".into()
        }
        Is::NoGovernor { virtual_machine: false } => "none here; the firmware decides".into(),
        Is::Governors { contexts } => {
            let list: Vec<String> =
                contexts.iter().map(|(name, count)| format!("{name} on {count} CPUs")).collect();
            let delay =
                if finding.is_ok() { "" } else { ": the frequency follows the load, with delay" };
            format!("{}{delay}", list.join(", "))
        }
        Is::Turbo { on: Some(true) } => {
            "on: fewer busy cores run faster, and this affects every measurement".into()
        }
        Is::Turbo { on: Some(false) } | Is::NumaBalancingOff => "off".into(),
        Is::Turbo { on: None } | Is::StealTimeUnknown => "not visible from here".into(),
        Is::OneNode => "one node: nothing to balance".into(),
        Is::NumaBalancing { nodes } => format!(
            "on, {nodes} nodes: for seconds after each change, the kernel moves memory to follow \
             threads"
        ),
        Is::Quota { cpus, directory } => {
            format!("{cpus:.2} CPUs ({directory}): the kernel stops programs that have used it up")
        }
        Is::HugePages { transparent, reserved } => format!(
            "transparent: {}; reserved: {}",
            transparent.as_deref().unwrap_or("not available"),
            reserved.map_or("unknown".into(), |pages| pages.to_string())
        ),
        Is::Clock { source, nanoseconds, .. } => {
            let source = source.as_ref().map(|source| format!("{source}, ")).unwrap_or_default();
            let slow = if finding.is_ok() { "" } else { ": slow" };
            format!("{source}{nanoseconds} ns a reading{slow}")
        }
        Is::Load { minute, others, contexts } => format!(
            "{minute:.2} runnable threads over the last minute, {} now, {}",
            counted(*others as u64, "other"),
            counted(*contexts as u64, "context")
        ),
        Is::LoadUnknown => "unknown: /proc/loadavg cannot be read".into(),
        Is::StealTime { stolen, ticks } => {
            let percent = 100.0 * *stolen as f64 / (*ticks).max(1) as f64;
            let others = if finding.is_ok() {
                ""
            } else {
                ": the hypervisor runs other guests on these CPUs"
            };
            format!("{percent:.1} % while this ran ({stolen} of {ticks} ticks){others}")
        }
        Is::Repeatability { milliseconds, iqr, longest, repetitions, contexts, apart } => {
            let medians = match contexts {
                1 => String::new(),
                _ => format!(", whose medians differ by {apart:.1} %"),
            };
            format!(
                "the same {milliseconds:.2} ms of work: IQR {iqr:.2} %, longest +{longest:.0} % \
                 ({repetitions} repetitions on {}{medians})",
                counted(*contexts as u64, "context")
            )
        }
        Is::NotRepeated => "not measured: no repetition ended in time".into(),
        Is::NotRepeatable { cpu, error } => {
            format!("not measured: no thread could be put on CPU {cpu}: {error}")
        }
    }
}

/// What to do about a finding, with the command, sysctl or capability. `None` if it is in order.
pub fn finding_remedy(finding: &Finding) -> Option<String> {
    use Finding as Is;
    if finding.is_ok() {
        return None;
    }
    let text = match finding {
        Is::AffinityRefused { .. } => {
            "nothing can be placed without it: allow the system call in the container's seccomp \
             profile"
        }
        Is::FifoRefused { .. } => {
            return Some(format!(
                "{}, or 'USER - rtprio 1' in /etc/security/limits.conf; in a cgroup of version 1 \
                 also cpu.rt_runtime_us",
                setcap(&[Capability::CapSysNice])
            ));
        }
        Is::Capabilities { lacking, .. } => return Some(setcap(lacking)),
        Is::EventsAbsent { events: CountedEvents::BranchRecords } => {
            "record on real hardware: Intel (LBR), AMD from Zen 3 on, Arm with BRBE; then read the \
             recording here"
        }
        Is::EventsAbsent { .. } => {
            "give the virtual machine a PMU (QEMU: -cpu host,pmu=on), or use real hardware; \
             placing needs none"
        }
        Is::EventsNotPermitted { .. } => return Some(permit_events()),
        Is::EventsNotInKernel { .. } => {
            "use a kernel with CONFIG_PERF_EVENTS, or allow the system call in the container's \
             seccomp profile"
        }
        Is::EventsFailed { .. } => "see perf_event_open(2); placing needs none",
        Is::Counters { error: Some(error), .. } => error,
        Is::Counters { uncounted, .. } => {
            let in_proc = |one: &UncountedEvent| one.reason == UncountedReason::NotInProc;
            return Some(match uncounted.iter().any(in_proc) {
                true => permit_events(),
                false => "use a kernel that counts on every kind of core (Intel: from Linux 5.13 \
                          on, Arm: 6.6)"
                    .into(),
            });
        }
        Is::TracefsNotMounted => "sudo mount -t tracefs nodev /sys/kernel/tracing",
        Is::TracefsNotReadable { tracefs } => {
            return Some(format!("sudo mount -o remount,mode=755 {}", tracefs.display()));
        }
        Is::TraceEventsAbsent { .. } => {
            "use a kernel with CONFIG_EVENT_TRACING; placing needs none"
        }
        Is::EbpfNotInKernel => "use a kernel with CONFIG_BPF_SYSCALL; placing needs none",
        Is::EbpfWithoutTypes => "use a kernel with CONFIG_DEBUG_INFO_BTF; placing needs none",
        Is::EbpfNotPermitted => {
            return Some(setcap(&[Capability::CapBpf, Capability::CapPerfmon]));
        }
        Is::Monitor { refused, .. } => {
            return refused.first().map(|better| better.remedy().to_owned());
        }
        Is::ContextsBarred { online, allowed, isolated, exclusive, .. } => {
            let mut remedies = Vec::new();
            let barred = online.difference(allowed).difference(isolated);
            let (mut others, mut groups) = (barred.clone(), Vec::new());
            for owner in exclusive.iter().filter(|owner| !owner.cpus.is_disjoint(&barred)) {
                others = others.difference(&owner.cpus);
                groups.push(one_line(&owner.group).into_owned());
            }
            if !isolated.is_empty() {
                remedies.push(format!(
                    "start programs for the isolated ones there (taskset -c {isolated} COMMAND), \
                     or boot without isolcpus="
                ));
            }
            if !groups.is_empty() {
                remedies.push(format!(
                    "start programs for the exclusive ones in their cgroup ({})",
                    groups.join(", ")
                ));
            }
            if !others.is_empty() {
                remedies.push(
                    "widen cpuset.cpus of the cgroup (systemd: AllowedCPUs=), or start pinwise \
                     without taskset"
                        .into(),
                );
            }
            return Some(remedies.join("; "));
        }
        Is::ContextsOffline { offline } => {
            return offline.first().map(|first| {
                format!(
                    "to use them, for each: echo 1 | sudo tee /sys/devices/system/cpu/cpu{}/online",
                    first.0
                )
            });
        }
        Is::SmtOff => "to use siblings: echo on | sudo tee /sys/devices/system/cpu/smt/control",
        Is::Governors { .. } => "sudo cpupower frequency-set -g performance",
        Is::NumaBalancing { .. } => "sudo sysctl kernel.numa_balancing=0 while measuring",
        Is::Quota { .. } => {
            "raise cpu.max (systemd: CPUQuota=, containers: --cpus) while measuring"
        }
        Is::Clock { tsc: true, .. } => {
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        }
        Is::Clock { tsc: false, .. } => {
            "see dmesg for why the kernel found the processor's clock (tsc) unstable; use longer \
             windows"
        }
        Is::Load { .. } => {
            "stop other programs or move them; the program to place may run; list \
             them: ps -eo pid,pcpu,comm --sort=-pcpu | head"
        }
        Is::StealTime { .. } => "use a machine with dedicated CPUs, or measure at quieter times",
        Is::Repeatability { .. } => {
            "stop other programs, fix the frequency (see 'frequency governor'), or raise --budget: \
             noisy measurements are worth less"
        }
        Is::NotRepeated => "stop other programs and try again",
        Is::NotRepeatable { .. } => "see 'setting affinity'",
        // In order.
        Is::AffinitySettable
        | Is::FifoPermitted
        | Is::EventsCountable { .. }
        | Is::TraceEvents { .. }
        | Is::EbpfPermitted
        | Is::ContextsAllowed { .. }
        | Is::NoneOffline
        | Is::Smt { .. }
        | Is::SmtOffAtBoot
        | Is::NoSmt
        | Is::NoGovernor { .. }
        | Is::Turbo { .. }
        | Is::OneNode
        | Is::NumaBalancingOff
        | Is::NoQuota
        | Is::HugePages { .. }
        | Is::LoadUnknown
        | Is::StealTimeUnknown => return None,
    };
    Some(text.to_owned())
}

/// What lets pinwise count events.
fn permit_events() -> String {
    let setcap = setcap(&[Capability::CapPerfmon]);
    format!("sudo sysctl kernel.perf_event_paranoid=1, or {setcap}")
}

/// Which events are counted, by whom, and which are not.
fn counters(
    hardware: &[NamedEvent],
    with_kernel: bool,
    software: &[CounterEvent],
    uncounted: &[UncountedEvent],
) -> String {
    let list = |events: &mut dyn Iterator<Item = CounterEvent>| {
        events.map(counter_event).collect::<Vec<_>>().join(", ")
    };
    let modes = if with_kernel { "with the kernel's work" } else { "user space only" };
    let of_processor = match hardware {
        [] => "none by the processor".into(),
        _ => {
            let events = list(&mut hardware.iter().map(|named| named.event));
            format!("by the processor, {modes}: {events}")
        }
    };
    let of_kernel = list(&mut software.iter().copied());
    let lacking = |one: &UncountedEvent| {
        let why = match &one.reason {
            UncountedReason::NotOnProcessor => {
                "the processor has none, or none that is known".into()
            }
            UncountedReason::NotOnCores { cores } => format!("not on {}", cores.join(", ")),
            UncountedReason::NotInProc => "not in /proc".into(),
        };
        format!("; no {} ({why})", counter_event(one.event))
    };
    let lacking: String = uncounted.iter().map(lacking).collect();
    format!("{of_processor}; by the kernel: {of_kernel}{lacking}")
}

/// An event that is counted, as people call it.
pub fn counter_event(event: CounterEvent) -> &'static str {
    match event {
        CounterEvent::Cycles => "cycles",
        CounterEvent::Instructions => "instructions",
        CounterEvent::Branches => "branches",
        CounterEvent::BranchMisses => "branch misses",
        CounterEvent::FrontEndMisses => "front-end misses",
        CounterEvent::L1DataMisses => "L1 data misses",
        CounterEvent::L2Misses => "L2 misses",
        CounterEvent::LlcMisses => "LLC misses",
        CounterEvent::FpOperations => "FP operations",
        CounterEvent::TaskClock => "time on a CPU",
        CounterEvent::ContextSwitches => "context switches",
        CounterEvent::Migrations => "migrations",
        CounterEvent::PageFaults => "page faults",
    }
}

/// `; name: cpus`, or nothing where there are none.
/// `; only for the cgroup /a: 2,3`.
fn of_groups(exclusive: &[ExclusiveCpus]) -> String {
    let of_group = |ExclusiveCpus { group, cpus }: &ExclusiveCpus| {
        named(cpus, &format!("only for the cgroup {}", one_line(group)))
    };
    exclusive.iter().map(of_group).collect()
}

fn named(cpus: &CpuSet, name: &str) -> String {
    if cpus.is_empty() { String::new() } else { format!("; {name}: {cpus}") }
}

/// Gives pinwise capabilities without making it run as root.
fn setcap(capabilities: &[Capability]) -> String {
    format!("sudo setcap {}+ep \"$(command -v pinwise)\"", names(capabilities, ","))
}

fn names(capabilities: &[Capability], separator: &str) -> String {
    capabilities.iter().map(|&one| capability(one)).collect::<Vec<_>>().join(separator)
}

fn capability(capability: Capability) -> &'static str {
    match capability {
        Capability::CapSysNice => "cap_sys_nice",
        Capability::CapSysPtrace => "cap_sys_ptrace",
        Capability::CapPerfmon => "cap_perfmon",
        Capability::CapBpf => "cap_bpf",
    }
}

/// What pinwise needs it for.
fn use_of(capability: Capability) -> &'static str {
    match capability {
        Capability::CapSysNice => "move threads of other users, SCHED_FIFO",
        Capability::CapSysPtrace => "read /proc/PID/io of other users",
        Capability::CapPerfmon => "count events of the whole system",
        Capability::CapBpf => "exact scheduling times",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_line::every;
    use pinwise_hardware::doctor::{FindingState, Layer};
    use pinwise_topology::CpuSet;

    fn findings() -> Vec<Finding> {
        let set = |list| CpuSet::parse_list(list).unwrap();
        let error = || "Operation not permitted".to_owned();
        let (events, level) = (CountedEvents::Hardware, || Some("2".to_owned()));
        let cycles =
            || NamedEvent { event: CounterEvent::Cycles, names: vec!["cpu-cycles".into()] };
        let none_named = Vec::<NamedEvent>::new;
        let lacks = |event, reason| vec![UncountedEvent { event, reason }];
        let on_atom = || UncountedReason::NotOnCores { cores: vec!["cpu_atom".into()] };
        let no_fp = || lacks(CounterEvent::FpOperations, on_atom());
        let no_branches = || lacks(CounterEvent::Branches, on_atom());
        let no_migrations = || lacks(CounterEvent::Migrations, UncountedReason::NotInProc);
        let [all, none] = [|| Capability::ALL.to_vec(), Vec::new];
        every!(Finding:
            AffinitySettable {}
            AffinityRefused { error: error() }
            FifoPermitted {}
            FifoRefused { error: error(), limit: Some(0) }
            Capabilities { held: all(), lacking: none() }
            Capabilities { held: none(), lacking: all() }
            EventsCountable { events, paranoid: level() }
            EventsAbsent { events }
            EventsNotPermitted { events, paranoid: level() }
            EventsNotInKernel { events }
            EventsFailed { events, error: error() }
            Counters {
                hardware: vec![cycles()], with_kernel: false, error: None,
                software: vec![CounterEvent::TaskClock], uncounted: no_fp()
            }
            Counters {
                hardware: none_named(), with_kernel: false, error: Some(error()),
                software: vec![CounterEvent::TaskClock], uncounted: Vec::new()
            }
            Counters {
                hardware: vec![cycles()], with_kernel: true, error: None,
                software: vec![CounterEvent::TaskClock], uncounted: no_migrations()
            }
            Counters {
                hardware: vec![cycles()], with_kernel: true, error: None,
                software: vec![CounterEvent::TaskClock], uncounted: no_branches()
            }
            TraceEvents { tracefs: "/sys/kernel/tracing".into() }
            TracefsNotMounted {}
            TracefsNotReadable { tracefs: "/sys/kernel/tracing".into() }
            TraceEventsAbsent { tracefs: "/sys/kernel/tracing".into(), error: error() }
            EbpfPermitted {}
            EbpfNotInKernel {}
            EbpfWithoutTypes {}
            EbpfNotPermitted {}
            Monitor { layer: Layer::Ebpf, refused: Vec::new() }
            ContextsAllowed { online: set("0-7"), nohz_full: set(""), exclusive: Vec::new() }
            ContextsBarred {
                online: set("0-7"), allowed: set("0-3"), isolated: set("6,7"),
                nohz_full: set("7"), exclusive: Vec::new()
            }
            NoneOffline {}
            ContextsOffline { offline: set("8,9") }
            Smt { contexts_per_core: 2 }
            SmtOff {}
            SmtOffAtBoot {}
            NoSmt {}
            NoGovernor { virtual_machine: true }
            NoGovernor { virtual_machine: false }
            Governors { contexts: [("performance".into(), 8)].into() }
            Governors { contexts: [("performance".into(), 4), ("powersave".into(), 4)].into() }
            Turbo { on: Some(true) }
            Turbo { on: Some(false) }
            Turbo { on: None }
            OneNode {}
            NumaBalancingOff {}
            NumaBalancing { nodes: 2 }
            NoQuota {}
            Quota { cpus: 1.5, directory: "/sys/fs/cgroup/x".into() }
            HugePages { transparent: Some("madvise".into()), reserved: None }
            Clock { source: Some("tsc".into()), tsc: true, nanoseconds: 25 }
            Clock { source: Some("hpet".into()), tsc: true, nanoseconds: 1500 }
            Clock { source: Some("hpet".into()), tsc: false, nanoseconds: 1500 }
            Load { minute: 3.5, others: 4, contexts: 8 }
            LoadUnknown {}
            StealTime { stolen: 1, ticks: 200 }
            StealTime { stolen: 20, ticks: 200 }
            StealTimeUnknown {}
            Repeatability {
                milliseconds: 0.5, iqr: 0.3, longest: 400.0, repetitions: 100, contexts: 2,
                apart: 100.0
            }
            NotRepeated {}
            NotRepeatable { cpu: 3, error: error() }
        )
    }

    #[test]
    fn every_lack_has_a_remedy_and_what_is_in_order_has_none() {
        for one in findings() {
            let (text, remedy) = (finding(&one), finding_remedy(&one));
            assert_eq!(one.state() == FindingState::Ok, remedy.is_none(), "{one:?}: {remedy:?}");
            assert!(!text.is_empty() && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn values_stand_in_the_text() {
        let (events, paranoid) = (CountedEvents::Software, Some("4".to_owned()));
        let texts = |one: &Finding| (finding(one), finding_remedy(one).unwrap_or_default());
        for (one, found, remedy) in [
            (
                Finding::EventsNotPermitted { events, paranoid },
                "not permitted (kernel.perf_event_paranoid = 4)",
                "sudo sysctl kernel.perf_event_paranoid=1, or sudo setcap cap_perfmon+ep \
                 \"$(command -v pinwise)\"",
            ),
            (
                Finding::Capabilities {
                    held: vec![Capability::CapSysNice, Capability::CapPerfmon],
                    lacking: vec![Capability::CapSysPtrace, Capability::CapBpf],
                },
                "without cap_sys_ptrace (read /proc/PID/io of other users), cap_bpf (exact \
                 scheduling times); your own programs need none of them",
                "sudo setcap cap_sys_ptrace,cap_bpf+ep \"$(command -v pinwise)\"",
            ),
            (
                Finding::ContextsBarred {
                    online: CpuSet::parse_list("0-7").unwrap(),
                    allowed: CpuSet::parse_list("0-3").unwrap(),
                    isolated: CpuSet::parse_list("6,7").unwrap(),
                    nohz_full: CpuSet::parse_list("7").unwrap(),
                    exclusive: Vec::new(),
                },
                "4 of 8 online (0-3); isolated (isolcpus=): 6,7; barred: 4,5; nohz_full: 7",
                "start programs for the isolated ones there (taskset -c 6,7 COMMAND), or boot \
                 without isolcpus=; widen cpuset.cpus of the cgroup (systemd: AllowedCPUs=), or \
                 start pinwise without taskset",
            ),
            (
                Finding::ContextsBarred {
                    online: CpuSet::parse_list("0-3").unwrap(),
                    allowed: CpuSet::parse_list("0,1").unwrap(),
                    isolated: CpuSet::new(),
                    nohz_full: CpuSet::new(),
                    exclusive: vec![ExclusiveCpus {
                        group: "/app.slice".into(),
                        cpus: CpuSet::parse_list("2,3").unwrap(),
                    }],
                },
                "2 of 4 online (0,1); barred: 2,3; only for the cgroup /app.slice: 2,3",
                "start programs for the exclusive ones in their cgroup (/app.slice)",
            ),
            (
                Finding::Load { minute: 0.25, others: 1, contexts: 2 },
                "0.25 runnable threads over the last minute, 1 other now, 2 contexts",
                "",
            ),
            (
                Finding::StealTime { stolen: 1, ticks: 200 },
                "0.5 % while this ran (1 of 200 ticks)",
                "",
            ),
            (
                Finding::Repeatability {
                    milliseconds: 0.5,
                    iqr: 0.0,
                    longest: 400.0,
                    repetitions: 100,
                    contexts: 2,
                    apart: 100.0,
                },
                "the same 0.50 ms of work: IQR 0.00 %, longest +400 % (100 repetitions on 2 \
                 contexts, whose medians differ by 100.0 %)",
                "",
            ),
        ] {
            assert_eq!(texts(&one), (found.to_owned(), remedy.to_owned()));
        }
    }
}
