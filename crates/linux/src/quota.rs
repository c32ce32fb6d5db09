//! How much CPU time a control group grants: the limit of containers that no affinity mask shows.
//!
//! A quota of 150 ms in each period of 100 ms is worth 1.5 contexts, whichever ones. It is set for
//! a group and holds for all below it, so the smallest on the way up counts. A program that asks
//! the machine how many threads to start does not see it.

use crate::control_group::control_groups;
use crate::thread::Pid;
use std::fs;
use std::path::{Path, PathBuf};

/// A quota on CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// The contexts it is worth, above 0.
    pub contexts: f64,
    /// The control group that has it, as its directory.
    pub group: PathBuf,
}

impl Quota {
    /// The smallest quota that holds for this process; `None` if there is none.
    pub fn own() -> Option<Self> {
        Self::under(Path::new("/"), "self")
    }

    /// The smallest quota that holds for another process; `None` if none is visible from here.
    pub fn of(pid: Pid) -> Option<Self> {
        Self::under(Path::new("/"), &pid.to_string())
    }

    /// Of the process that is called `process` in `/proc`, with all files below `root`.
    fn under(root: &Path, process: &str) -> Option<Self> {
        let mut least: Option<Self> = None;
        for directory in control_groups(root, process, "cpu")?.into_iter().flatten() {
            if let Some(contexts) = granted(&directory)
                && least.as_ref().is_none_or(|least| contexts < least.contexts)
            {
                least = Some(Self { contexts, group: directory });
            }
        }
        least
    }
}

/// What one group grants: `cpu.max` of version 2, `cpu.cfs_quota_us` and `cpu.cfs_period_us` of
/// version 1.
fn granted(directory: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        None => (
            read("cpu.cfs_quota_us")?.trim().parse().ok()?,
            read("cpu.cfs_period_us")?.trim().parse().ok()?,
        ),
    };
    // -1 and `max` are no limit.
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(files: &[(&str, &str)]) -> Option<(f64, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = Quota::under(root.path(), "self")?;
        Some((found.contexts, found.group.strip_prefix(root.path()).unwrap().display().to_string()))
    }

    #[test]
    fn the_smallest_quota_on_the_way_up_counts() {
        let two = [
            ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ];
        assert_eq!(quota(&two), Some((1.5, "sys/fs/cgroup/a".into())));
        let deeper = [two.as_slice(), &[("sys/fs/cgroup/a/b/cpu.max", "20000 40000\n")]].concat();
        assert_eq!(quota(&deeper), Some((0.5, "sys/fs/cgroup/a/b".into())));
    }

    #[test]
    fn the_first_version_keeps_it_in_two_files() {
        let one = [
            ("proc/mounts", "x /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"),
            ("proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/job\n0::/\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "50000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota(&one), Some((4.0, "sys/fs/cgroup/cpu,cpuacct/job".into())));
    }

    #[test]
    fn a_container_finds_its_own_at_the_mount() {
        let files = [
            ("proc/mounts", "x /sys/fs/cgroup/cpu cgroup ro,cpu 0 0\n"),
            ("proc/self/cgroup", "2:cpu:/docker/0123\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota(&files), Some((1.0, "sys/fs/cgroup/cpu".into())));
    }

    #[test]
    fn without_a_limit_there_is_none() {
        assert_eq!(quota(&[("proc/mounts", ""), ("proc/self/cgroup", "")]), None);
        let unlimited = [
            ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ];
        assert_eq!(quota(&unlimited), None);
    }
}
