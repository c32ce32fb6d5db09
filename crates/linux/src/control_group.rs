//! The control groups of a process, and the CPUs that they leave it.

use crate::affinity;
use crate::thread::Pid;
use pinwise_topology::CpuSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories of the groups that may limit what `controller` controls, for the process that is
/// called `process` in `/proc`. They are listed by hierarchy, each from the process's own group up.
/// All files are below `root`.
pub(crate) fn control_groups(
    root: &Path,
    process: &str,
    controller: &str,
) -> Option<Vec<Vec<PathBuf>>> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let (mounts, groups) = (read("proc/mounts")?, read(&format!("proc/{process}/cgroup"))?);
    let hierarchy = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (mount, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let path = group_path(&groups, controller, kind, options)?;
        let mount = root.join(mount.trim_start_matches('/'));
        // A container sees its group at the mount itself, where the path leads nowhere.
        let own = mount.join(path.trim_start_matches('/'));
        let up = own.ancestors().take_while(|directory| directory.starts_with(&mount));
        Some(up.map(Path::to_owned).collect())
    };
    Some(mounts.lines().filter_map(hierarchy).collect())
}

/// The path of a process's group in a hierarchy that may have this controller.
fn group_path<'a>(groups: &'a str, controller: &str, kind: &str, options: &str) -> Option<&'a str> {
    let mut lines = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let has_it = |list: &str| list.split(',').any(|name| name == controller);
    match kind {
        "cgroup2" => lines.find(|(number, names, _)| *number == "0" && names.is_empty()),
        "cgroup" if has_it(options) => lines.find(|(_, names, _)| has_it(names)),
        _ => None,
    }
    .map(|(_, _, path)| path)
}

/// The CPUs that a control group has: version 2, then version 1. `None`: it does not say so.
pub fn effective_cpus(directory: &Path) -> Option<CpuSet> {
    let names = ["cpuset.cpus.effective", "cpuset.effective_cpus"];
    let text = names.iter().find_map(|name| fs::read_to_string(directory.join(name)).ok())?;
    CpuSet::parse_list(text.trim()).ok()
}

/// The online CPUs that its cpuset leaves a process. Without a cpuset, all online ones.
pub fn cpuset_of(pid: Pid) -> CpuSet {
    cpuset_under(Path::new("/"), &pid.to_string())
        .or_else(|| affinity::online().ok())
        .unwrap_or_default()
}

/// The nearest group that says which CPUs it has counts.
fn cpuset_under(root: &Path, process: &str) -> Option<CpuSet> {
    let groups = control_groups(root, process, "cpuset")?;
    groups.iter().flatten().find_map(|directory| effective_cpus(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_group_that_has_cpus_counts_in_either_version() {
        for (mount, group, file) in [
            ("cgroup /c cgroup2 rw", "0::/a/b", "c/a/cpuset.cpus.effective"),
            ("cgroup /c cgroup rw,cpuset", "5:cpuset:/a/b", "c/a/cpuset.effective_cpus"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/mounts", &format!("{mount} 0 0\n"));
            write("proc/7/cgroup", &format!("{group}\n"));
            assert_eq!(cpuset_under(root.path(), "7"), None);
            write(&file.replace("/a/", "/"), "0-7\n");
            write(file, "2-3\n");
            assert_eq!(cpuset_under(root.path(), "7"), CpuSet::parse_list("2-3").ok());
        }
    }
}
