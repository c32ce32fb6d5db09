//! [`NumberSetter`]: how a running program gets its number of threads.
//!
//! A command of the user's sets the number, or a limit does.
//!
//! Some programs count their CPUs while they run, or have more threads than they need. Then the
//! number is set by the CPUs that the program may use. Or it is set by the CPU time that its
//! control group grants. The guardian stores the original limit before it is changed, and puts it
//! back however pinwise ends.

use super::command_template::PLACE;
use pinwise_linux::{
    Guardian, GuardianEntry, SETTING_LIMIT, SETTING_MARK, affinity, effective_cpus, process,
    thread::{Pid, Stat, ThreadId},
};
use pinwise_measure::ProgramNote;
use pinwise_metric::{CommandError, run};
use pinwise_topology::CpuSet;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Looks at the threads of a program that creates some without pause.
const LOOKS: usize = 20;

/// How a running program gets its parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberSetter {
    /// A command with `{n}` in it.
    Command(String),
    /// The CPUs all its threads may run on: the first n of those they could.
    Affinity,
    /// `cpuset.cpus` of a control group, by its directory: the first n of the group's CPUs.
    Cpuset(PathBuf),
    /// The CPU time of a control group, by its directory: that of n contexts.
    Quota(PathBuf),
}

/// Why a text says no way to set a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected cmd:COMMAND with {PLACE} ('cmd:echo {PLACE} > workers'), cpuset: (of the process), \
     or cpuset:DIR or quota:DIR (of a control group)"
)]
pub struct NumberSetterError;

impl FromStr for NumberSetter {
    type Err = NumberSetterError;

    fn from_str(text: &str) -> Result<Self, NumberSetterError> {
        match text.split_once(':') {
            Some(("cmd", command)) if command.contains(PLACE) => Ok(Self::Command(command.into())),
            Some(("cpuset", "")) => Ok(Self::Affinity),
            Some(("cpuset", directory)) => Ok(Self::Cpuset(directory.into())),
            Some(("quota", directory)) if !directory.is_empty() => {
                Ok(Self::Quota(directory.into()))
            }
            _ => Err(NumberSetterError),
        }
    }
}

impl NumberSetter {
    /// Whether the parameter counts contexts: then no number beyond those there are makes sense.
    pub fn counts_contexts(&self) -> bool {
        !matches!(self, Self::Command(_))
    }

    /// The command that gives a program the parameter `n`; `None` if none does.
    pub fn command(&self, n: u32) -> Option<String> {
        match self {
            Self::Command(command) => Some(filled(command, n)),
            _ => None,
        }
    }

    /// The CPUs of process `root` before any change. Its program gets the first n of them. `None`:
    /// the parameter counts no CPUs, or they are not known.
    pub fn cpus(&self, root: Pid) -> Option<CpuSet> {
        match self {
            Self::Command(_) | Self::Quota(_) => None,
            Self::Affinity => affinity::get(root.main()).ok(),
            Self::Cpuset(directory) => {
                let listed = read(&directory.join("cpuset.cpus")).ok()?;
                of_group(&listed, directory, &affinity::online().ok()?).ok()
            }
        }
    }

    /// A note on the CPUs that the program of process `root` loses when its limits are put back.
    /// Call it before any change.
    pub fn forgotten(&self, root: Pid, offline: &CpuSet) -> Option<ProgramNote> {
        match self {
            Self::Affinity => affinity::forgotten(&affinity::own(root.main()).ok()?, offline),
            _ => None,
        }
    }

    /// Reads the limit that will change, if it is one of a control group.
    ///
    /// # Errors
    /// Why it cannot be read, for the user.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Command(_) | Self::Affinity => Ok(()),
            Self::Cpuset(group) => read(&group.join("cpuset.cpus")).map(drop),
            Self::Quota(group) => read(&quota_file(group)).map(drop),
        }
    }

    /// Gives the program of process `root` the parameter `n`. A command may take [`SETTING_LIMIT`];
    /// it has `mark` in its environment. Error: why not, for the user.
    pub(crate) fn set(
        &self,
        root: Pid,
        n: u32,
        guardian: &mut Guardian,
        mark: &str,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), CommandError> {
        match self {
            Self::Command(command) => {
                run(&filled(command, n), (SETTING_MARK, mark), SETTING_LIMIT, cancelled)
            }
            _ => Ok(self.limit(root, n, guardian)?),
        }
    }

    /// Sets a limit. A command sets none.
    fn limit(&self, root: Pid, n: u32, guardian: &mut Guardian) -> Result<(), String> {
        match self {
            Self::Command(_) => Ok(()),
            Self::Affinity => confine(root, n, guardian),
            Self::Cpuset(directory) => {
                let file = directory.join("cpuset.cpus");
                let before = original(&file, guardian)?;
                let online = affinity::online().map_err(|error| error.to_string())?;
                write(&file, &first(&of_group(&before, directory, &online)?, n)?.to_string())
            }
            Self::Quota(directory) => {
                let file = quota_file(directory);
                if file.ends_with(CPU_MAX) {
                    let before = original(&file, guardian)?;
                    let period =
                        before.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
                    let period = period.unwrap_or(PERIOD);
                    return write(&file, &format!("{} {period}", u64::from(n) * period));
                }
                original(&file, guardian)?;
                let period =
                    read(&directory.join("cpu.cfs_period_us"))?.trim().parse().unwrap_or(PERIOD);
                write(&file, &(u64::from(n) * period).to_string())
            }
        }
    }
}

/// A command with the parameter in its place.
fn filled(command: &str, n: u32) -> String {
    command.replace(PLACE, &n.to_string())
}

/// The quota of a control group of version 2.
const CPU_MAX: &str = "cpu.max";

/// The quota of a control group, of whichever version it is.
fn quota_file(group: &Path) -> PathBuf {
    let own = group.join(CPU_MAX);
    if own.exists() { own } else { group.join("cpu.cfs_quota_us") }
}

/// The kernel's ordinary period of a quota, in microseconds.
const PERIOD: u64 = 100_000;

/// The first `n` of `all`.
fn first(all: &CpuSet, n: u32) -> Result<CpuSet, String> {
    match all.len() {
        many if many < n as usize => Err(format!("there are {many} CPUs ({all})")),
        _ => Ok(all.iter().take(n as usize).collect()),
    }
}

/// Confines every thread of the program to `n` CPUs, also threads that it creates meanwhile. They
/// are the first `n` online CPUs of those that its first thread had.
fn confine(root: Pid, n: u32, guardian: &mut Guardian) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let (mask, mut confined) = match guardian.confined(root) {
        Some(mask) => (mask, None),
        None => {
            let mask = affinity::own(root.main()).map_err(|error| told(&error))?;
            let start = Stat::read(root, root.main()).map_err(|error| told(&error))?.start;
            let confined = GuardianEntry::Confined { pid: root, start, mask: mask.clone() };
            (mask, Some(confined))
        }
    };
    let online = affinity::online().map_err(|error| told(&error))?;
    let cpus = first(&mask.intersection(&online), n)?;
    for _ in 0..LOOKS {
        let threads = process::family_threads(&[root]);
        guardian.enter_pins(&threads, &cpus, confined.take()).map_err(|error| told(&error))?;
        let mut changed = false;
        for ThreadId { tid, .. } in threads {
            if affinity::own(tid).is_ok_and(|now| now != cpus) {
                match affinity::set(tid, &cpus) {
                    Ok(()) => changed = true,
                    Err(affinity::AffinityError::Gone(_)) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

/// Reads a file of a control group. Its text is entered with the guardian before the first change.
fn original(file: &Path, guardian: &mut Guardian) -> Result<String, String> {
    if let Some(text) = guardian.file(file) {
        return Ok(text);
    }
    let text = read(file)?;
    guardian
        .enter(&[GuardianEntry::File { path: file.to_owned(), text: text.clone() }])
        .map_err(|error| error.to_string())?;
    Ok(text)
}

/// The CPUs of a control group whose `cpuset.cpus` had this text before any change. They are the
/// listed ones that are online and that its parent has. If there are none, it inherits all that its
/// parent has. The group itself has what was written last.
fn of_group(listed: &str, directory: &Path, online: &CpuSet) -> Result<CpuSet, String> {
    let listed = CpuSet::parse_list(listed.trim()).unwrap_or_default();
    if let Some(parent) = effective_cpus(&directory.join("..")).filter(|_| !is_partition(directory))
    {
        let both = listed.intersection(&parent);
        return Ok(if both.is_empty() { parent } else { both });
    }
    // In a container the parent may be out of sight.
    let listed = listed.intersection(online);
    let inherited = if listed.is_empty() { effective_cpus(directory) } else { Some(listed) };
    inherited.ok_or_else(|| format!("{}: it does not say which CPUs it has", directory.display()))
}

/// Whether a control group has CPUs for itself. Its parent then no longer has them. A partition
/// that is `root invalid` shares the CPUs of its parent.
fn is_partition(directory: &Path) -> bool {
    let kind = fs::read_to_string(directory.join("cpuset.cpus.partition")).unwrap_or_default();
    ["root", "isolated"].contains(&kind.trim())
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| named(file, &error))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| named(file, &error))
}

fn named(file: &Path, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "; is that a control group whose controller is on (cgroup.subtree_control)?"
        }
        io::ErrorKind::PermissionDenied => {
            "; run pinwise as root, or ask for the group to be delegated to you"
        }
        _ => "",
    };
    format!("{}: {error}{hint}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_decides_the_kind_of_setter() {
        let parsed = |text: &str| text.parse::<NumberSetter>();
        assert_eq!(
            parsed("cmd:echo {n} > a:b"),
            Ok(NumberSetter::Command("echo {n} > a:b".into()))
        );
        assert_eq!(parsed("cpuset:"), Ok(NumberSetter::Affinity));
        assert_eq!(
            parsed("cpuset:/sys/fs/cgroup/a"),
            Ok(NumberSetter::Cpuset("/sys/fs/cgroup/a".into()))
        );
        assert_eq!(
            parsed("quota:/sys/fs/cgroup/a"),
            Ok(NumberSetter::Quota("/sys/fs/cgroup/a".into()))
        );
        for text in ["cmd:echo 4", "quota:", "cpuset", "{n}", ""] {
            assert_eq!(parsed(text), Err(NumberSetterError), "{text}");
        }
    }

    #[test]
    fn a_group_has_what_its_parent_has_whatever_was_written_last() {
        let folder = tempfile::tempdir().unwrap();
        let online = CpuSet::parse_list("0-4,7-9").unwrap();
        for (version, name) in [("2", "cpuset.cpus.effective"), ("1", "cpuset.effective_cpus")] {
            let parent = folder.path().join(version);
            let group = parent.join("group");
            fs::create_dir_all(&group).unwrap();
            // The first CPU of the group was written by an earlier step.
            fs::write(group.join(name), "4\n").unwrap();
            let of = |listed| of_group(listed, &group, &online).unwrap().to_string();
            assert_eq!((of("\n"), of("4-7\n")), ("4".into(), "4,7".into()), "no parent in sight");
            fs::write(parent.join(name), "2-4,7-9\n").unwrap();
            assert_eq!((of("\n"), of("4-7\n")), ("2-4,7-9".into(), "4,7".into()));
            assert_eq!(of("5-6\n"), "2-4,7-9");
        }
        assert!(of_group("\n", folder.path(), &online).is_err());
    }

    #[test]
    fn a_partition_has_what_it_took_from_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("group");
        fs::create_dir(&group).unwrap();
        fs::write(folder.path().join("cpuset.cpus.effective"), "0-3\n").unwrap();
        let online = CpuSet::parse_list("0-6").unwrap();
        for (kind, has) in [
            ("root", "4-6"),
            ("isolated", "4-6"),
            ("member", "0-3"),
            ("root invalid (Parent is not a partition root)", "0-3"),
        ] {
            fs::write(group.join("cpuset.cpus.partition"), format!("{kind}\n")).unwrap();
            assert_eq!(of_group("4-7\n", &group, &online).unwrap().to_string(), has, "{kind}");
        }
    }

    #[test]
    fn the_first_so_many_of_what_there_is() {
        let all = CpuSet::parse_list("2-4,9").unwrap();
        assert_eq!(first(&all, 3).unwrap().to_string(), "2-4");
        assert_eq!(first(&all, 5).unwrap_err(), "there are 4 CPUs (2-4,9)");
    }
}
