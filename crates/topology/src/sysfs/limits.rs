//! Which contexts and which memory the recorded process may use.
//!
//! There are two sources, and either may be missing. `/proc/self/status` has the process's affinity
//! mask, already cut to its cpuset. The cpuset file system has the cpuset alone. What both allow is
//! allowed. Memory nodes are numbered like CPUs and kept in the same type of set.

use crate::snapshot::parse_list;
use crate::{CpuSet, MachineError, Snapshot};

/// What is allowed; `None` if nothing limits it or nothing is recorded.
pub(super) struct Limits {
    pub(super) cpus: Option<CpuSet>,
    pub(super) memory: Option<CpuSet>,
}

impl Snapshot {
    /// The files that hold the limits of the recorded process's cpuset. For CPUs and for memory
    /// nodes, the names to try, best first. They follow from its `/proc/self/cgroup` (or `cpuset`)
    /// and `/proc/mounts`. Empty without a cpuset.
    pub fn cpuset_files(&self) -> [Vec<String>; 2] {
        let Some((mount, version)) =
            self.text("proc/mounts").and_then(|mounts| self.cpuset_mount(mounts))
        else {
            return [Vec::new(), Vec::new()];
        };
        let directory = format!(
            "{}{}",
            mount.trim_start_matches('/'),
            self.cpuset_path(version).trim_end_matches('/')
        );
        let (cpus, memory): (&[&str], &[&str]) = match version {
            Version::Two => (&["cpuset.cpus.effective"], &["cpuset.mems.effective"]),
            Version::One => (
                &["cpuset.effective_cpus", "cpuset.cpus"],
                &["cpuset.effective_mems", "cpuset.mems"],
            ),
            Version::Zero => (&["cpus"], &["mems"]),
        };
        [cpus, memory].map(|names| names.iter().map(|name| format!("{directory}/{name}")).collect())
    }

    /// Where cpusets are mounted, and which interface that is.
    pub(super) fn cpuset_mount<'a>(&self, mounts: &'a str) -> Option<(&'a str, Version)> {
        mounts.lines().find_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (mount, kind, options) =
                (fields.next()?, fields.next()?, fields.next().unwrap_or_default());
            let has = |option| options.split(',').any(|o| o == option);
            match kind {
                "cpuset" => Some((mount, Version::Zero)),
                "cgroup" if has("cpuset") && has("noprefix") => Some((mount, Version::Zero)),
                "cgroup" if has("cpuset") => Some((mount, Version::One)),
                "cgroup2" => {
                    let controllers = self
                        .text(&format!("{}/cgroup.controllers", mount.trim_start_matches('/')))?;
                    controllers
                        .split_whitespace()
                        .any(|name| name == "cpuset")
                        .then_some((mount, Version::Two))
                }
                _ => None,
            }
        })
    }

    /// The path of the process's cpuset within the mount.
    fn cpuset_path(&self, version: Version) -> &str {
        let from_cgroup = self.text("proc/self/cgroup").and_then(|text| {
            text.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':');
                let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
                let unified = number == "0" && controllers.is_empty();
                let own = match version {
                    Version::Two => unified,
                    _ => controllers.split(',').any(|name| name == "cpuset"),
                };
                own.then_some(path)
            })
        });
        from_cgroup.or_else(|| self.text("proc/self/cpuset")).unwrap_or("/")
    }
}

/// The interface of a cpuset: the bare file system of 2.6.12, cgroup v1, cgroup v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Zero,
    One,
    Two,
}

/// Reads both sources. Error: a file of theirs that holds no list.
pub(super) fn read(snapshot: &Snapshot) -> Result<Limits, MachineError> {
    let [cpus, memory] = snapshot.cpuset_files();
    let status = |key: &str| {
        let text = snapshot.text("proc/self/status")?;
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
    };
    let both = |files: &[String], key: &str| -> Result<Option<CpuSet>, MachineError> {
        let mut allowed: Option<CpuSet> = None;
        let cpuset = files.iter().find_map(|path| Some((path.as_str(), snapshot.text(path)?)));
        let own = status(key).map(|text| ("proc/self/status", text));
        for (path, text) in cpuset.into_iter().chain(own) {
            let set = parse_list(text).map_err(|reason| MachineError::malformed(path, reason))?;
            // An empty cpuset has no limit (v1's root before it is set up, v2 without effective
            // CPUs).
            if !set.is_empty() {
                allowed =
                    Some(allowed.map_or_else(|| set.clone(), |allowed| allowed.intersection(&set)));
            }
        }
        Ok(allowed)
    };
    Ok(Limits {
        cpus: both(&cpus, "Cpus_allowed_list")?,
        memory: both(&memory, "Mems_allowed_list")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(files: &[(&str, &str)]) -> (Option<String>, Option<String>) {
        let mut snapshot = Snapshot::default();
        for (path, text) in files {
            snapshot.insert(path, text.as_bytes().to_vec()).unwrap();
        }
        let limits = read(&snapshot).unwrap();
        (limits.cpus.map(|set| set.to_string()), limits.memory.map(|set| set.to_string()))
    }

    #[test]
    fn every_generation_of_cpusets_is_read() {
        let both = (Some("0-3".to_owned()), Some("0".to_owned()));
        let bare = [
            ("proc/mounts", "none /dev/cpuset cpuset rw 0 0"),
            ("proc/self/cpuset", "/job"),
            ("dev/cpuset/job/cpus", "0-3"),
            ("dev/cpuset/job/mems", "0"),
        ];
        assert_eq!(allowed(&bare), both);
        let one = [
            (
                "proc/mounts",
                "x /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\nx /sys/fs/cgroup/cpuset cgroup rw,cpuset \
                 0 0",
            ),
            ("proc/self/cgroup", "4:memory:/other\n3:cpuset:/job\n0::/"),
            ("sys/fs/cgroup/cpuset/job/cpuset.cpus", "0-7"),
            ("sys/fs/cgroup/cpuset/job/cpuset.effective_cpus", "0-3"),
            ("sys/fs/cgroup/cpuset/job/cpuset.mems", "0"),
        ];
        assert_eq!(allowed(&one), both);
        let two = [
            ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0"),
            ("proc/self/cgroup", "0::/user.slice"),
            ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io"),
            ("sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-3"),
            ("sys/fs/cgroup/user.slice/cpuset.mems.effective", "0"),
        ];
        assert_eq!(allowed(&two), both);
    }

    #[test]
    fn the_affinity_mask_cuts_the_cpuset_further() {
        let files = [
            ("proc/mounts", "none /dev/cpuset cpuset rw 0 0"),
            ("dev/cpuset/cpus", "0-3"),
            (
                "proc/self/status",
                "Name:\tx\nCpus_allowed:\tc\nCpus_allowed_list:\t2-9\nMems_allowed_list:\t0-1\n",
            ),
        ];
        assert_eq!(allowed(&files), (Some("2,3".into()), Some("0,1".into())));
    }

    #[test]
    fn without_a_recorded_cpuset_nothing_is_limited() {
        assert_eq!(allowed(&[("proc/mounts", "none /proc proc rw 0 0")]), (None, None));
    }
}
