//! This machine, or one recorded earlier, as a [`Snapshot`].
//!
//! [`capture`] copies the files that describe a machine and nothing else: no serial numbers, no
//! command lines, no process names. Long files are cut to the lines that matter. `/proc/cpuinfo`
//! keeps identities, `/proc/mounts` cpusets, and `/proc/self/status` what the process may use. So
//! two captures of one machine are equal byte by byte.
//!
//! The affinity mask comes from `/proc/self/status`. It is exact and of any length, and a recording
//! states what its recorder was allowed to use.
//!
//! Links are followed only if they lead back into the root. A recording from a stranger must not
//! read other files.

use pinwise_topology::{Machine, MachineError, Snapshot, SnapshotFiles, component, is_exclusive};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Larger than any file that describes a machine (`/proc/cpuinfo` of 4,096 CPUs is 6 MB).
const LARGEST_FILE: u64 = 16 << 20;

/// More control groups are not looked at.
const MOST_GROUPS: usize = 10_000;

/// Why a machine could not be captured or recorded.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The root cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The recording cannot be written.
    #[error("{path}: cannot be written ({error}): name a new directory where you may \
        write", path = path.display())]
    Unwritten {
        /// The directory or file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The recording's directory has something in it.
    #[error("{path}: not empty, and a recording overwrites nothing: name a new \
        directory", path = .0.display())]
    Occupied(PathBuf),
    /// The files describe no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// This machine, as the calling process may use it: captured from `/sys` and `/proc`.
pub fn this_machine() -> Result<Machine, CaptureError> {
    Ok(Machine::from_snapshot(&capture(Path::new("/"))?)?)
}

/// Copies the files that describe a machine from below `root` (`/` for the running machine). A file
/// that is absent or unreadable is left out.
///
/// # Errors
/// The root is not a directory.
pub fn capture(root: &Path) -> Result<Snapshot, CaptureError> {
    let io = |error| CaptureError::Io { path: root.to_owned(), error };
    let root = Root(root.canonicalize().map_err(io)?);
    std::fs::read_dir(&root.0).map_err(io)?;
    let mut snapshot = Snapshot::default();
    for files in SnapshotFiles::ALL {
        for directory in root.directories(files.directory) {
            for alternatives in files.names {
                let read =
                    |name| Some((format!("{directory}/{name}"), root.read(&directory, name)?));
                if let Some((path, bytes)) = alternatives.split('|').find_map(read) {
                    let bytes = tidy(&path, bytes);
                    snapshot.insert(&path, bytes)?;
                }
            }
        }
    }
    let mounts = snapshot.text("proc/mounts").unwrap_or_default().to_owned();
    for mount in mounts.lines().filter_map(|line| line.split_whitespace().nth(1)) {
        root.add(&mut snapshot, &format!("{}/cgroup.controllers", mount.trim_start_matches('/')))?;
    }
    for path in snapshot.cpuset_files().concat() {
        root.add(&mut snapshot, &path)?;
    }
    if let Some((mount, [own, list])) = snapshot.cpuset_tree() {
        for group in root.groups(&mount, own) {
            if let Some(text) = root.read(&group, own)
                && std::str::from_utf8(&text).is_ok_and(is_exclusive)
            {
                snapshot.insert(&format!("{group}/{own}"), text)?;
                root.add(&mut snapshot, &format!("{group}/{list}"))?;
            }
        }
    }
    Ok(snapshot)
}

/// Writes a snapshot below `directory`, which is created, or must be empty. Returns the number of
/// files written.
pub fn write_recording(snapshot: &Snapshot, directory: &Path) -> Result<usize, CaptureError> {
    let fail = |path: &Path, error| CaptureError::Unwritten { path: path.to_owned(), error };
    std::fs::create_dir_all(directory).map_err(|error| fail(directory, error))?;
    if std::fs::read_dir(directory).map_err(|error| fail(directory, error))?.next().is_some() {
        return Err(CaptureError::Occupied(directory.to_owned()));
    }
    for (path, bytes) in snapshot.files() {
        let path = directory.join(path);
        // A snapshot's paths have a name and stay below the root.
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent).map_err(|error| fail(parent, error))?;
        std::fs::write(&path, bytes).map_err(|error| fail(&path, error))?;
    }
    Ok(snapshot.files().count())
}

/// A directory; nothing outside it is read.
struct Root(PathBuf);

impl Root {
    /// The directories that fit a pattern of [`SnapshotFiles`], relative to the root.
    fn directories(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in pattern.split('/') {
            let join = |parent: &str, name: &str| {
                if parent.is_empty() { name.into() } else { format!("{parent}/{name}") }
            };
            let mut inner = Vec::new();
            for parent in &found {
                if part.contains(['#', '*']) {
                    let Ok(entries) = std::fs::read_dir(self.0.join(parent)) else { continue };
                    let directories = entries
                        .flatten()
                        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                    let names =
                        directories.filter_map(|entry| entry.file_name().into_string().ok());
                    inner.extend(
                        names.filter(|name| component(part, name)).map(|name| join(parent, &name)),
                    );
                } else {
                    let path = join(parent, part);
                    inner.extend(
                        self.resolve(&path).is_some_and(|path| path.is_dir()).then_some(path),
                    );
                }
            }
            found = inner;
        }
        found.sort();
        found
    }

    /// The control groups below `mount` that have a file of this name. Others have no cpuset, nor
    /// has any group below them.
    fn groups(&self, mount: &str, name: &str) -> Vec<String> {
        let mut found = vec![mount.to_owned()];
        let mut next = 0;
        while next < found.len().min(MOST_GROUPS) {
            let parent = found[next].clone();
            next += 1;
            let Ok(entries) = std::fs::read_dir(self.0.join(&parent)) else { continue };
            let directories = entries.flatten().filter(|entry| {
                entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && entry.path().join(name).exists()
            });
            let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
            found.extend(names.map(|name| format!("{parent}/{name}")));
        }
        found.sort();
        found
    }

    /// The real path of `path` if it exists and is no link out of the root. Below `sys` links
    /// are not followed at all: they lead to directories that are read under their own names.
    fn resolve(&self, path: &str) -> Option<PathBuf> {
        let full = self.0.join(path);
        if !std::fs::symlink_metadata(&full).ok()?.is_symlink() {
            return Some(full);
        }
        let real = full.canonicalize().ok()?;
        (!path.starts_with("sys/") && real.starts_with(&self.0)).then_some(real)
    }

    fn add(&self, snapshot: &mut Snapshot, path: &str) -> Result<(), MachineError> {
        let Some((directory, name)) = path.rsplit_once('/') else { return Ok(()) };
        match self.read(directory, name) {
            Some(bytes) => snapshot.insert(path, bytes),
            None => Ok(()),
        }
    }

    /// The contents of a regular file; `None` if there are none to read.
    fn read(&self, directory: &str, name: &str) -> Option<Vec<u8>> {
        let path = format!("{directory}/{name}");
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        // The last component is checked by the open itself if it may not be a link.
        let link = if path.starts_with("sys/") { OFlags::NOFOLLOW } else { OFlags::empty() };
        let full = if link.is_empty() { self.inside(&path)? } else { self.0.join(&path) };
        // Without waiting for the other end of what turns out to be a pipe.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | link;
        let file = File::from(rustix::fs::open(&full, flags, Mode::empty()).ok()?);
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The real path of `path`, if it lies in the root.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let real = self.0.join(path).canonicalize().ok()?;
        real.starts_with(&self.0).then_some(real)
    }
}

/// Keys of `/proc/cpuinfo` that identify processors; the rest (flags, current frequencies) is long
/// or never the same.
const IDENTITY: &[&str] = &[
    "processor",
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "physical id",
    "core id",
    "cpu",
    "cpu model",
    "revision",
    "platform",
    "machine",
    "Hardware",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
];

/// Cuts the long files to the lines that matter.
fn tidy(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let key = |line: &str| line.split(':').next().unwrap_or_default().trim().to_owned();
    let keep: &dyn Fn(&str) -> bool = match path {
        "proc/cpuinfo" => &|line| line.is_empty() || IDENTITY.contains(&key(line).as_str()),
        "proc/self/status" => {
            &|line| matches!(key(line).as_str(), "Cpus_allowed_list" | "Mems_allowed_list")
        }
        "proc/self/cgroup" => {
            &|line| line.contains(":cpuset:") || line.contains("cpuset,") || line.starts_with("0::")
        }
        "proc/mounts" => &|line| {
            matches!(line.split_whitespace().nth(2), Some("cgroup2" | "cpuset"))
                || line.contains(" cgroup ") && line.contains("cpuset")
        },
        _ if path.ends_with("meminfo") => &|line| line.contains("MemTotal:"),
        _ => return bytes,
    };
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .filter(|line| keep(line))
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn this_machine_is_captured_and_the_recording_reads_the_same() {
        let live = capture(Path::new("/")).unwrap();
        let machine = Machine::from_snapshot(&live).unwrap();
        assert!(
            machine.allowed.contains(machine.contexts[0].cpu)
                || machine.allowed.len() < machine.contexts.len()
        );
        let directory = tempfile::tempdir().unwrap();
        let files = write_recording(&live, &directory.path().join("box")).unwrap();
        assert_eq!(files, live.files().count());
        assert_eq!(capture(&directory.path().join("box")).unwrap(), live);
    }

    #[test]
    fn the_allowed_contexts_are_those_of_the_affinity_mask() {
        let machine = this_machine().unwrap();
        let leader = crate::Tid(std::process::id() as _);
        let own = crate::affinity::get(leader).unwrap();
        assert_eq!(machine.allowed, own);
    }

    #[test]
    fn a_recording_overwrites_nothing() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "mine", "precious");
        let error = write_recording(&Snapshot::default(), directory.path()).unwrap_err();
        assert!(matches!(error, CaptureError::Occupied(_)), "{error}");
    }

    #[test]
    fn links_out_of_a_recording_are_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), "secret", "1");
        write(outside.path(), "topology/core_id", "7");
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "sys/devices/system/cpu/online", "0");
        write(root.path(), "real-cpuinfo", "processor : 0\n");
        std::fs::create_dir_all(root.path().join("sys/devices/system/cpu/cpu0")).unwrap();
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        symlink(
            outside.path().join("secret"),
            root.path().join("sys/devices/system/cpu/cpu0/online"),
        )
        .unwrap();
        symlink(
            outside.path().join("topology"),
            root.path().join("sys/devices/system/cpu/cpu0/topology"),
        )
        .unwrap();
        symlink(outside.path().join("secret"), root.path().join("proc/meminfo")).unwrap();
        symlink("../real-cpuinfo", root.path().join("proc/cpuinfo")).unwrap();
        let snapshot = capture(root.path()).unwrap();
        let paths: Vec<&str> = snapshot.files().map(|(path, _)| path).collect();
        assert_eq!(paths, ["proc/cpuinfo", "sys/devices/system/cpu/online"]);
    }

    #[test]
    fn long_files_are_cut_to_what_identifies_the_machine() {
        let cpuinfo = tidy(
            "proc/cpuinfo",
            b"processor : 0\ncpu MHz : 1234.5\nmodel name : X\nflags : a b c\n\n".to_vec(),
        );
        assert_eq!(cpuinfo, b"processor : 0\nmodel name : X\n\n");
        let status = tidy("proc/self/status", b"Name:\tsecret\nCpus_allowed_list:\t0-1\n".to_vec());
        assert_eq!(status, b"Cpus_allowed_list:\t0-1\n");
        let node = tidy(
            "sys/devices/system/node/node0/meminfo",
            b"Node 0 MemTotal: 5 kB\nNode 0 MemFree: 3 kB\n".to_vec(),
        );
        assert_eq!(node, b"Node 0 MemTotal: 5 kB\n");
    }

    #[test]
    fn control_groups_with_cpus_of_their_own_are_captured_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
        write(root.path(), "sys/devices/system/cpu/online", "0-3");
        let group = |path: &str, name: &str, text: &str| {
            write(root.path(), &format!("sys/fs/cgroup/{path}{name}"), text);
        };
        group("", "cgroup.controllers", "cpuset\n");
        for (path, kind, cpus) in
            [("plain/", "member", "0-1"), ("a/", "root", "2"), ("a/b/", "isolated", "3")]
        {
            group(path, "cpuset.cpus.partition", kind);
            group(path, "cpuset.cpus.effective", cpus);
        }
        // Without a cpuset there, nobody looks further.
        group("none/below/", "cpuset.cpus.partition", "root\n");
        let machine = Machine::from_snapshot(&capture(root.path()).unwrap()).unwrap();
        let groups: Vec<&str> =
            machine.exclusive.iter().map(|exclusive| exclusive.group.as_str()).collect();
        assert_eq!(groups, ["/a", "/a/b"]);
        assert_eq!(machine.exclusive[0].cpus.to_string(), "2");
    }

    #[test]
    fn a_missing_root_is_an_error_that_names_it() {
        let error = capture(Path::new("/nonexistent/box")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/box: "), "{error}");
    }
}
