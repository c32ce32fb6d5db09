//! The files of `/sys` and `/proc` that describe a machine, as a value.
//!
//! Live and recorded machines share one path. The files are first gathered here, from the running
//! kernel, a directory or a tar archive. A [`crate::Machine`] is then read from them alone.
//!
//! Archives come from strangers. Only the files named in [`SnapshotFiles::ALL`] are stored. Links
//! are not followed, a path with `..` is refused, and what an archive unpacks to is bounded.

use crate::{CpuSet, MachineError};
use std::collections::BTreeMap;
use std::io::Read;

/// The directory of the CPUs' files.
pub(crate) const CPU: &str = "sys/devices/system/cpu";

/// Some files of one directory, or of several that are named alike.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotFiles {
    /// The directory relative to the root; in a component, `#` stands for digits and `*` for
    /// anything.
    pub directory: &'static str,
    /// Names; of `a|b` the first that exists is enough.
    pub names: &'static [&'static str],
}

impl SnapshotFiles {
    /// Every file a machine is read from. A few more show a person what the machine was doing
    /// (kernel, governor, SMT control). The limits of cpusets stand elsewhere: see
    /// [`Snapshot::cpuset_files`].
    pub const ALL: &[Self] = &[
        Self { directory: "proc", names: &["cpuinfo", "meminfo", "mounts"] },
        Self { directory: "proc/self", names: &["cgroup", "cpuset", "status"] },
        Self { directory: "proc/sys/kernel", names: &["osrelease"] },
        Self { directory: "sys/class/dmi/id", names: &["product_name"] },
        Self { directory: "sys/firmware/devicetree/base", names: &["model"] },
        Self { directory: "sys/devices/*", names: &["cpus"] },
        Self {
            directory: "sys/devices/system/cpu",
            names: &["online", "offline", "possible", "present", "isolated", "nohz_full"],
        },
        Self { directory: "sys/devices/system/cpu/smt", names: &["active", "control"] },
        Self { directory: "sys/devices/system/cpu/cpu#", names: &["online", "cpu_capacity"] },
        Self {
            directory: "sys/devices/system/cpu/cpu#/acpi_cppc",
            names: &["highest_perf", "nominal_perf"],
        },
        Self {
            directory: "sys/devices/system/cpu/cpu#/topology",
            names: &[
                "core_id",
                "cluster_id",
                "die_id",
                "physical_package_id",
                "book_id",
                "drawer_id",
                "core_cpus_list|core_cpus|thread_siblings_list|thread_siblings",
                "cluster_cpus_list|cluster_cpus",
                "die_cpus_list|die_cpus",
                "package_cpus_list|package_cpus|core_siblings_list|core_siblings",
                "book_siblings_list|book_siblings",
                "drawer_siblings_list|drawer_siblings",
            ],
        },
        Self {
            directory: "sys/devices/system/cpu/cpu#/cache/index#",
            names: &[
                "level",
                "type",
                "id",
                "size",
                "coherency_line_size",
                "ways_of_associativity",
                "shared_cpu_list|shared_cpu_map",
            ],
        },
        Self {
            directory: "sys/devices/system/cpu/cpu#/cpufreq",
            names: &["base_frequency", "cpuinfo_max_freq", "scaling_governor"],
        },
        Self {
            directory: "sys/devices/system/cpu/cpufreq/policy#",
            names: &["related_cpus", "base_frequency", "cpuinfo_max_freq", "scaling_governor"],
        },
        Self {
            directory: "sys/devices/system/node/node#",
            names: &["cpulist|cpumap", "distance", "meminfo"],
        },
    ];

    fn has(&self, directory: &str, name: &str) -> bool {
        let mut components = directory.split('/');
        let alike = self
            .directory
            .split('/')
            .all(|pattern| components.next().is_some_and(|c| component(pattern, c)));
        alike
            && components.next().is_none()
            && self.names.iter().any(|names| names.split('|').any(|n| n == name))
    }
}

/// Whether a path component fits a pattern of [`SnapshotFiles`].
pub fn component(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('#') {
        Some(stem) => text.strip_prefix(stem).is_some_and(|digits| {
            !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit())
        }),
        None => pattern == "*" || pattern == text,
    }
}

/// Names of the files that hold a cpuset's limits, in any place where the cpuset is mounted.
const LIMITS: &[&str] = &[
    "cgroup.controllers",
    "cpuset.cpus.effective",
    "cpuset.mems.effective",
    "cpuset.effective_cpus",
    "cpuset.effective_mems",
    "cpuset.cpus",
    "cpuset.mems",
    "cpuset.cpus.partition",
    "cpuset.cpu_exclusive",
    "cpus",
    "mems",
    "cpu_exclusive",
];

/// What an archive may unpack to, kept or not; a recorded machine of 4,096 CPUs needs a fifth of
/// it.
const MOST_UNPACKED: u64 = 256 << 20;
/// The largest file kept; `/proc/cpuinfo` of 4,096 CPUs is 6 MB.
const LARGEST_FILE: u64 = 16 << 20;

/// Paths relative to the root (`sys/devices/system/cpu/cpu0/topology/core_id`) and their contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    files: BTreeMap<String, Vec<u8>>,
}

impl Snapshot {
    /// Adds a file, replacing one of the same path. Error: a path that is empty or leads out of the
    /// root.
    pub fn insert(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), MachineError> {
        let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.is_empty() || parts.contains(&"..") {
            return Err(MachineError::malformed(
                format!("file '{path}'"),
                "the path leads out of the recording",
            ));
        }
        self.files.insert(parts.join("/"), bytes);
        Ok(())
    }

    /// The files and their contents, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Unpacks a tar archive, plain or bzip2. A single directory around everything is taken off.
    /// Errors: no archive, truncated, too large, a path that leads out of it, nothing in it
    /// that describes a machine.
    pub fn from_tar(archive: &[u8]) -> Result<Self, MachineError> {
        if archive.starts_with(b"\x1f\x8b")
            || archive.starts_with(b"\xfd7zXZ")
            || archive.starts_with(b"\x28\xb5\x2f\xfd")
        {
            return Err(MachineError::malformed(
                "tar archive",
                "compressed in a way pinwise does not read; unpack it, or compress it with bzip2",
            ));
        }
        if archive.starts_with(b"BZh") {
            Self::unpack(bzip2::read::MultiBzDecoder::new(archive))
        } else {
            Self::unpack(archive)
        }
    }

    fn unpack(reader: impl Read) -> Result<Self, MachineError> {
        let fail = |reason: String| MachineError::malformed("tar archive", reason);
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => fail("ends too early".into()),
            _ => fail("damaged, or neither plain tar nor bzip2".into()),
        };
        let mut archive = tar::Archive::new(reader.take(MOST_UNPACKED));
        let mut all: Vec<(Vec<String>, Vec<u8>)> = Vec::new();
        for entry in archive.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let parts: Vec<String> =
                path.split('/').filter(|part| !matches!(*part, "" | ".")).map(Into::into).collect();
            if parts.iter().any(|part| part == "..") {
                return Err(fail(format!("entry '{path}' leads out of the archive")));
            }
            if !wanted(&parts) && !wanted(parts.get(1..).unwrap_or_default()) {
                continue;
            }
            if entry.size() > LARGEST_FILE {
                return Err(fail(format!(
                    "entry '{path}' is larger than {} MiB",
                    LARGEST_FILE >> 20
                )));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(unreadable)?;
            all.push((parts, bytes));
        }
        let outer = all.first().and_then(|(parts, _)| parts.first()).cloned();
        let outer = outer.filter(|name| !matches!(name.as_str(), "sys" | "proc" | "dev"));
        let wrapped =
            outer.is_some() && all.iter().all(|(parts, _)| parts.first() == outer.as_ref());
        let mut files = BTreeMap::new();
        for (parts, bytes) in all {
            let parts = if wrapped { &parts[1..] } else { &parts[..] };
            if wanted(parts) {
                files.insert(parts.join("/"), bytes);
            }
        }
        if files.is_empty() {
            return Err(fail("holds no sys/devices/system/cpu; is it a recorded machine?".into()));
        }
        Ok(Self { files })
    }

    /// The text of a file without the white space around it; `None` if it is absent or no UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?)
            .ok()
            .map(|text| text.trim_matches(|c: char| c.is_whitespace() || c == '\0'))
    }

    /// The number in a file.
    pub(crate) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The CPU list in a file, if it exists.
    pub(crate) fn list(&self, path: &str) -> Result<Option<CpuSet>, MachineError> {
        let set = self.text(path).map(parse_list).transpose();
        set.map_err(|reason| MachineError::malformed(path, reason))
    }

    /// The set in the first of these files of `directory` that exists. It is a list if the name
    /// ends in `list`, else a mask. Error: the file holds neither.
    pub(crate) fn cpus(
        &self,
        directory: &str,
        names: &[&str],
    ) -> Result<Option<CpuSet>, MachineError> {
        for name in names {
            let path = format!("{directory}/{name}");
            let Some(text) = self.text(&path) else { continue };
            let mask = |text| CpuSet::parse_mask(text).map_err(|error| error.to_string());
            let set = if name.ends_with("list") { parse_list(text) } else { mask(text) };
            return set.map(Some).map_err(|reason| MachineError::malformed(path, reason));
        }
        Ok(None)
    }

    /// Whether any file lies in `directory`.
    pub(crate) fn has_directory(&self, directory: &str) -> bool {
        let prefix = format!("{directory}/");
        self.files.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix))
    }

    /// The numbers `n` of the entries `<stem><n>` of `directory`, ascending.
    pub(crate) fn numbered(&self, directory: &str, stem: &str) -> Vec<u32> {
        let prefix = format!("{directory}/{stem}");
        let files =
            self.files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let mut numbers: Vec<u32> = files
            .filter_map(|(path, _)| {
                let rest = &path[prefix.len()..];
                let digits = &rest[..rest.find('/')?];
                component("#", digits).then(|| digits.parse().ok())?
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// A CPU list. Every other one of 4,096 CPUs takes 10 KB. Much longer texts are refused, as a few
/// bytes of ranges cost thousands of steps.
pub(crate) fn parse_list(text: &str) -> Result<CpuSet, String> {
    if text.len() > 16_384 {
        return Err("longer than any CPU list of the kernel".into());
    }
    CpuSet::parse_list(text).map_err(|error| error.to_string())
}

/// Whether a file describes a machine or its limits.
fn wanted(parts: &[impl AsRef<str>]) -> bool {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    let Some((name, directory)) = parts.split_last() else { return false };
    let in_cpuset = LIMITS.contains(name) && !directory.starts_with(&["sys", "devices"]);
    in_cpuset || SnapshotFiles::ALL.iter().any(|files| files.has(&directory.join("/"), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            // Written by hand: the builder refuses `..`, a hostile archive does not.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn an_archive_may_have_one_directory_around_everything() {
        let bare = tar(&[("sys/devices/system/cpu/online", b"0-3\n"), ("proc/cpuinfo", b"x")]);
        let wrapped =
            tar(&[("./box/sys/devices/system/cpu/online", b"0-3\n"), ("box/proc/cpuinfo", b"x")]);
        let snapshot = Snapshot::from_tar(&bare).unwrap();
        assert_eq!(snapshot.text("sys/devices/system/cpu/online"), Some("0-3"));
        assert_eq!(snapshot, Snapshot::from_tar(&wrapped).unwrap());
    }

    #[test]
    fn what_does_not_describe_a_machine_is_not_kept() {
        let archive = tar(&[
            ("proc/cpuinfo", b"x"),
            ("etc/shadow", b"secret"),
            ("sys/devices/system/cpu/cpuX/online", b"1"),
        ]);
        let snapshot = Snapshot::from_tar(&archive).unwrap();
        assert_eq!(snapshot.files().map(|(path, _)| path).collect::<Vec<_>>(), ["proc/cpuinfo"]);
    }

    #[test]
    fn hostile_and_foreign_archives_are_refused_with_a_reason() {
        let reason = |archive: &[u8]| Snapshot::from_tar(archive).unwrap_err().to_string();
        assert!(reason(&tar(&[("../proc/cpuinfo", b"x")])).contains("leads out"));
        assert!(reason(&tar(&[("etc/passwd", b"x")])).contains("sys/devices/system/cpu"));
        assert!(reason(b"\x1f\x8bxxxx").contains("unpack it"));
        assert!(Snapshot::from_tar(b"BZh9 no").is_err());
        assert!(Snapshot::from_tar(&[7; 2000]).is_err());
        let mut huge = tar(&[("proc/cpuinfo", b"x")]);
        huge[124..136].copy_from_slice(b"77777777777\0");
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes().copy_from_slice(&huge[..512]);
        header.set_cksum();
        huge[..512].copy_from_slice(header.as_bytes());
        assert!(reason(&huge).contains("larger than"));
    }

    #[test]
    fn paths_out_of_the_root_are_refused() {
        let mut snapshot = Snapshot::default();
        assert!(snapshot.insert("a/../../b", vec![]).is_err());
        assert!(snapshot.insert("/", vec![]).is_err());
        snapshot.insert("/proc//./cpuinfo", vec![]).unwrap();
        assert_eq!(snapshot.files().next().unwrap().0, "proc/cpuinfo");
    }

    #[test]
    fn numbered_entries_are_found_in_order() {
        let mut snapshot = Snapshot::default();
        for path in ["c/cpu10/online", "c/cpu9/x/y", "c/cpufreq/z", "c/cpu9/z", "c/cpuidle"] {
            snapshot.insert(path, vec![]).unwrap();
        }
        assert_eq!(snapshot.numbered("c", "cpu"), [9, 10]);
    }
}
