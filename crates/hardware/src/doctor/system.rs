//! How the system is configured, as far as it makes measurements differ that should be equal.

use super::{Finding, read};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

const CPUS: &str = "/sys/devices/system/cpu";

/// Which frequency governors are in force.
pub(super) fn governor() -> Finding {
    let mut governors: BTreeMap<String, usize> = BTreeMap::new();
    for entry in fs::read_dir(CPUS).into_iter().flatten().flatten() {
        if let Some(governor) = read(entry.path().join("cpufreq/scaling_governor")) {
            *governors.entry(governor).or_default() += 1;
        }
    }
    if governors.is_empty() {
        return Finding::NoGovernor { virtual_machine: hypervisor() };
    }
    Finding::Governors { contexts: governors }
}

/// Whether the processor says that it is a virtual one (x86 shows it among its flags).
fn hypervisor() -> bool {
    let Ok(info) = fs::read_to_string("/proc/cpuinfo") else { return false };
    virtual_processor(&info)
}

fn virtual_processor(cpuinfo: &str) -> bool {
    cpuinfo.lines().any(|line| {
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    })
}

/// Whether the frequency may rise while few cores are busy.
pub(super) fn turbo() -> Finding {
    let no_turbo = read(format!("{CPUS}/intel_pstate/no_turbo"));
    let boost = read(format!("{CPUS}/cpufreq/boost"));
    judge_turbo(no_turbo.as_deref(), boost.as_deref())
}

fn judge_turbo(no_turbo: Option<&str>, boost: Option<&str>) -> Finding {
    let on = match (no_turbo, boost) {
        (Some(no_turbo), _) => Some(no_turbo == "0"),
        (None, boost) => boost.map(|boost| boost == "1"),
    };
    Finding::Turbo { on }
}

/// Whether the kernel moves memory and threads between NUMA nodes automatically.
pub(super) fn numa_balancing(nodes: usize) -> Finding {
    judge_numa_balancing(nodes, read("/proc/sys/kernel/numa_balancing").as_deref())
}

fn judge_numa_balancing(nodes: usize, setting: Option<&str>) -> Finding {
    match (nodes, setting) {
        (0 | 1, _) => Finding::OneNode,
        (_, None | Some("0")) => Finding::NumaBalancingOff,
        _ => Finding::NumaBalancing { nodes },
    }
}

/// Whether a cgroup limits how much CPU time this process gets.
pub(super) fn quota() -> Finding {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let mounts = read("/proc/self/mounts").unwrap_or_default();
    cpu_groups(&groups, &mounts)
        .iter()
        .flat_map(|group| {
            // A limit binds everything below it; parents are visited up to the mount.
            Path::new(&group.path)
                .ancestors()
                .map(move |path| format!("{}{}", group.mount, path.display()))
        })
        .filter_map(|directory| quota_of(&directory).map(|quota| (quota, directory)))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(Finding::NoQuota, |(cpus, directory)| Finding::Quota { cpus, directory })
}

/// A cgroup that can limit CPU time.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    mount: String,
    path: String,
}

/// The groups of `/proc/self/cgroup` that control CPU time, with where `/proc/self/mounts` says
/// their hierarchy is.
fn cpu_groups(groups: &str, mounts: &str) -> Vec<Group> {
    let mount = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, at, kind, options, ..] = fields[..] else { return None };
            wanted(kind, options).then(|| at.to_owned())
        })
    };
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let mount = if controllers.is_empty() {
                mount(&|kind, _| kind == "cgroup2")
            } else if controllers.split(',').any(|name| name == "cpu") {
                mount(&|kind, options| {
                    kind == "cgroup" && options.split(',').any(|option| option == "cpu")
                })
            } else {
                None
            };
            Some(Group { mount: mount?, path: path.to_owned() })
        })
        .collect()
}

fn quota_of(directory: &str) -> Option<f64> {
    if let Some(text) = read(format!("{directory}/cpu.max")) {
        return quota_v2(&text);
    }
    let number = |file: &str| read(format!("{directory}/{file}"))?.parse::<f64>().ok();
    quota_v1(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

/// CPUs' worth of time in `cpu.max` (`max 100000`, `150000 100000`).
fn quota_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
}

/// CPUs' worth of time in version 1, where -1 is no limit.
fn quota_v1(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// How memory is backed by large pages.
pub(super) fn huge_pages() -> Finding {
    let transparent = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let memory = read("/proc/meminfo").unwrap_or_default();
    Finding::HugePages {
        transparent: transparent.as_deref().and_then(chosen).map(str::to_owned),
        reserved: reserved(&memory),
    }
}

/// The word in brackets of `always [madvise] never`.
fn chosen(options: &str) -> Option<&str> {
    Some(options.split_once('[')?.1.split_once(']')?.0)
}

fn reserved(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Total:")?.trim().parse().ok())
}

/// Which clock windows are timed with, and what reading it costs.
pub(super) fn clock() -> Finding {
    const READINGS: u32 = 10_000;
    let begin = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    let cost = begin.elapsed() / READINGS;
    let directory = format!("{CPUS}/../clocksource/clocksource0");
    let available = read(format!("{directory}/available_clocksource")).unwrap_or_default();
    Finding::Clock {
        source: read(format!("{directory}/current_clocksource")),
        tsc: available.split_whitespace().any(|name| name == "tsc"),
        nanoseconds: u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// Whether other programs are running.
pub(super) fn load(contexts: usize) -> Finding {
    match read("/proc/loadavg").as_deref().and_then(parse_load) {
        // One of the runnable ones is this.
        Some((minute, runnable)) => {
            Finding::Load { minute, others: runnable.saturating_sub(1), contexts }
        }
        None => Finding::LoadUnknown,
    }
}

/// The average number of runnable threads over the last minute, and how many are runnable now.
fn parse_load(loadavg: &str) -> Option<(f64, usize)> {
    let mut fields = loadavg.split_whitespace();
    let minute = fields.next()?.parse().ok()?;
    let runnable = fields.nth(2)?.split_once('/')?.0.parse().ok()?;
    Some((minute, runnable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_governor_other_than_performance_is_to_be_changed() {
        let governors = |list: &[(&str, usize)]| Finding::Governors {
            contexts: list.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
        };
        assert!(governors(&[("performance", 8)]).is_ok());
        assert!(!governors(&[("performance", 4), ("powersave", 4)]).is_ok());
        assert!(virtual_processor("processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n"));
        assert!(!virtual_processor("flags\t\t: fpu vme\n"));
    }

    #[test]
    fn turbo_is_read_in_both_drivers() {
        let on = |no_turbo, boost| {
            let Finding::Turbo { on } = judge_turbo(no_turbo, boost) else { panic!() };
            on
        };
        assert_eq!(on(Some("0"), None), Some(true));
        assert_eq!(on(Some("1"), Some("1")), Some(false));
        assert_eq!(on(None, Some("1")), Some(true));
        assert_eq!(on(None, None), None);
    }

    #[test]
    fn numa_balancing_matters_with_two_nodes() {
        assert!(judge_numa_balancing(1, Some("1")).is_ok());
        assert!(judge_numa_balancing(2, Some("0")).is_ok());
        assert!(!judge_numa_balancing(2, Some("1")).is_ok());
        assert!(!judge_numa_balancing(2, Some("2")).is_ok());
    }

    #[test]
    fn quotas_are_read_in_both_versions_of_cgroups() {
        assert_eq!(quota_v2("max 100000"), None);
        assert_eq!(quota_v2("150000 100000"), Some(1.5));
        assert_eq!(quota_v1(-1.0, 100_000.0), None);
        assert_eq!(quota_v1(50_000.0, 100_000.0), Some(0.5));
    }

    #[test]
    fn the_groups_that_limit_cpu_time_are_found_under_their_mounts() {
        let groups = "4:memory:/a\n2:cpu,cpuacct:/b\n0::/user.slice/c\n";
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup \
            rw,cpu,cpuacct 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let expected = [
            Group { mount: "/sys/fs/cgroup/cpu,cpuacct".into(), path: "/b".into() },
            Group { mount: "/sys/fs/cgroup/unified".into(), path: "/user.slice/c".into() },
        ];
        assert_eq!(cpu_groups(groups, mounts), expected);
        assert_eq!(cpu_groups(groups, ""), []);
    }

    #[test]
    fn slow_clocks_are_to_be_changed() {
        let clock = |source: Option<&str>| Finding::Clock {
            source: source.map(str::to_owned),
            tsc: true,
            nanoseconds: 25,
        };
        assert!(clock(Some("tsc")).is_ok() && clock(Some("kvm-clock")).is_ok());
        assert!(clock(None).is_ok());
        assert_eq!(clock(Some("hpet")).state(), State::Warning);
    }

    #[test]
    fn load_counts_against_the_contexts() {
        assert_eq!(parse_load("0.20 0.18 0.12 1/80 11206"), Some((0.2, 1)));
        assert_eq!(parse_load("x"), None);
        let state = |minute, contexts| Finding::Load { minute, others: 0, contexts }.state();
        assert_eq!(state(0.2, 2), State::Ok);
        assert_eq!(state(3.5, 8), State::Warning);
    }

    #[test]
    fn the_chosen_kind_of_huge_pages_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("never"), None);
        assert_eq!(reserved("MemTotal: 5 kB\nHugePages_Total:      12\n"), Some(12));
    }
}
