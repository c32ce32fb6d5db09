//! Which control groups have CPUs for themselves.

use super::limits::Version;
use crate::snapshot::parse_list;
use crate::{ExclusiveCpus, MachineError, Snapshot};

impl Snapshot {
    /// Where control groups with cpusets are, and the names of two files there. The first says
    /// whether the group's CPUs are its own, the second names them. `None` without cpusets.
    pub fn cpuset_tree(&self) -> Option<(String, [&'static str; 2])> {
        let (mount, version) = self.cpuset_mount(self.text("proc/mounts")?)?;
        let names = match version {
            Version::Two => ["cpuset.cpus.partition", "cpuset.cpus.effective"],
            Version::One => ["cpuset.cpu_exclusive", "cpuset.cpus"],
            Version::Zero => ["cpu_exclusive", "cpus"],
        };
        Some((mount.trim_start_matches('/').to_owned(), names))
    }
}

/// Whether such a file says that the CPUs are the group's own. A partition that Linux could not
/// make is `root invalid (…)`.
pub fn is_exclusive(text: &str) -> bool {
    ["root", "isolated", "1"].contains(&text.trim())
}

/// The groups, by name. The root group has what nobody else has.
///
/// # Errors
/// A list of CPUs is none.
pub(super) fn read(snapshot: &Snapshot) -> Result<Vec<ExclusiveCpus>, MachineError> {
    let Some((mount, [own, list])) = snapshot.cpuset_tree() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (path, text) in snapshot.files() {
        let group = || path.strip_prefix(&mount)?.strip_suffix(own)?.strip_suffix('/');
        let exclusive = std::str::from_utf8(text).is_ok_and(is_exclusive);
        let Some(group) = group().filter(|group| exclusive && !group.is_empty()) else { continue };
        let path = format!("{mount}{group}/{list}");
        let Some(text) = snapshot.text(&path) else { continue };
        let cpus = parse_list(text).map_err(|reason| MachineError::malformed(path, reason))?;
        if !cpus.is_empty() {
            found.push(ExclusiveCpus { group: group.to_owned(), cpus });
        }
    }
    // In version 1, a group can have CPUs for itself only if the one above it has them, too.
    let holds = |outer: &ExclusiveCpus, inner: &ExclusiveCpus| {
        let below = inner.group.strip_prefix(&outer.group);
        below.is_some_and(|below| below.starts_with('/')) && !inner.cpus.is_disjoint(&outer.cpus)
    };
    let outer: Vec<bool> =
        found.iter().map(|one| found.iter().any(|other| holds(one, other))).collect();
    let mut outer = outer.into_iter();
    found.retain(|_| outer.next() == Some(false));
    found.sort_by(|one, other| one.group.cmp(&other.group));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut snapshot = Snapshot::default();
        for (path, text) in files {
            snapshot.insert(path, text.as_bytes().to_vec()).unwrap();
        }
        let found = read(&snapshot).unwrap();
        found.into_iter().map(|found| (found.group, found.cpus.to_string())).collect()
    }

    #[test]
    fn partitions_of_version_two_are_named_and_invalid_ones_are_not() {
        let two = [
            ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0"),
            ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io"),
            ("sys/fs/cgroup/a/cpuset.cpus.partition", "root\n"),
            ("sys/fs/cgroup/a/cpuset.cpus.effective", "2-3\n"),
            ("sys/fs/cgroup/a/b/cpuset.cpus.partition", "isolated\n"),
            ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "4\n"),
            ("sys/fs/cgroup/c/cpuset.cpus.partition", "member\n"),
            ("sys/fs/cgroup/c/cpuset.cpus.effective", "0-1\n"),
            ("sys/fs/cgroup/d/cpuset.cpus.partition", "root invalid (Cpu list empty)\n"),
            ("sys/fs/cgroup/d/cpuset.cpus.effective", "0-1\n"),
        ];
        let expected = [("/a".to_owned(), "2,3".to_owned()), ("/a/b".into(), "4".into())];
        assert_eq!(groups(&two), expected);
    }

    #[test]
    fn groups_of_version_one_are_the_innermost_and_the_root_is_none() {
        let one = [
            ("proc/mounts", "x /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0"),
            ("sys/fs/cgroup/cpuset/cpuset.cpu_exclusive", "1\n"),
            ("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n"),
            ("sys/fs/cgroup/cpuset/job/cpuset.cpu_exclusive", "1\n"),
            ("sys/fs/cgroup/cpuset/job/cpuset.cpus", "2\n"),
            ("sys/fs/cgroup/cpuset/all/cpuset.cpu_exclusive", "1\n"),
            ("sys/fs/cgroup/cpuset/all/cpuset.cpus", "0-1\n"),
            ("sys/fs/cgroup/cpuset/all/one/cpuset.cpu_exclusive", "1\n"),
            ("sys/fs/cgroup/cpuset/all/one/cpuset.cpus", "1\n"),
            ("sys/fs/cgroup/cpuset/other/cpuset.cpu_exclusive", "0\n"),
            ("sys/fs/cgroup/cpuset/other/cpuset.cpus", "3\n"),
        ];
        let expected = [("/all/one".to_owned(), "1".to_owned()), ("/job".into(), "2".into())];
        assert_eq!(groups(&one), expected);
    }
}
