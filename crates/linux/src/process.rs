//! Processes: their threads, their children, their cgroups.

use crate::sys;
use crate::thread::{Pid, Stat, ThreadId, Tid, gone};
use pinwise_topology::CpuSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The threads of a process in the order of their creation. The kernel lists them in this order,
/// whatever their numbers.
pub fn threads(pid: Pid) -> io::Result<Vec<Tid>> {
    Ok(numbers(Path::new(&format!("/proc/{pid}/task")))?.into_iter().map(Tid).collect())
}

/// The CPUs on which its first thread may run, by its affinity mask and its cpuset.
pub fn allowed(pid: Pid) -> io::Result<CpuSet> {
    sys::affinity(pid.0)
}

/// The CPUs on which any of its threads may run.
pub fn allowed_to_any(pid: Pid) -> io::Result<CpuSet> {
    let masks = threads(pid)?.into_iter().filter_map(|tid| sys::affinity(tid.0).ok());
    Ok(masks.fold(CpuSet::new(), |all, one| all.union(&one)))
}

/// The NUMA nodes from which a process may take memory, by its cpuset.
pub(crate) fn memory_nodes(pid: Pid) -> Option<CpuSet> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    CpuSet::parse_list(list.trim()).ok()
}

/// The threads of these processes and of their descendants.
pub fn family_threads(pids: &[Pid]) -> Vec<ThreadId> {
    let family = [pids.to_vec(), descendants(pids, &all().unwrap_or_default())].concat();
    let living =
        |pid: Pid, tid: Tid| Some(ThreadId { pid, tid, start: Stat::read(pid, tid).ok()?.start });
    family
        .into_iter()
        .flat_map(|pid| {
            let tids = threads(pid).unwrap_or_default();
            tids.into_iter().filter_map(move |tid| living(pid, tid))
        })
        .collect()
}

/// Every process.
pub fn all() -> io::Result<Vec<Pid>> {
    Ok(numbers(Path::new("/proc"))?.into_iter().map(Pid).collect())
}

/// The processes of `candidates` that descend from one of `ancestors`, parents before children.
/// Processes that end meanwhile are left out.
pub fn descendants(ancestors: &[Pid], candidates: &[Pid]) -> Vec<Pid> {
    let mut family: Vec<Pid> = ancestors.to_vec();
    let parents: Vec<(Pid, Pid)> = candidates
        .iter()
        .filter(|pid| !ancestors.contains(pid))
        .filter_map(|&pid| Some((pid, Stat::read(pid, pid.main()).ok()?.parent)))
        .collect();
    let mut from = 0;
    while from < family.len() {
        let next: Vec<Pid> = parents
            .iter()
            .filter(|(_, parent)| *parent == family[from])
            .map(|(child, _)| *child)
            .collect();
        family.extend(next);
        from += 1;
    }
    family.split_off(ancestors.len())
}

/// The processes of a cgroup and of the cgroups below it. `cgroup` is a directory, or a path as in
/// `/proc/PID/cgroup`, which is looked up below the usual mount points. A process with a thread in
/// a threaded cgroup (v2) counts as a whole.
pub fn in_cgroup(cgroup: &Path) -> io::Result<Vec<Pid>> {
    let directory = cgroup_directory(cgroup)?;
    let mut pids = Vec::new();
    let mut pending = vec![directory];
    while let Some(directory) = pending.pop() {
        match fs::read_to_string(directory.join("cgroup.procs")) {
            Ok(text) => pids.extend(text.lines().filter_map(|line| line.parse().ok()).map(Pid)),
            // A threaded cgroup refuses with EOPNOTSUPP.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                let text = fs::read_to_string(directory.join("cgroup.threads"))?;
                pids.extend(
                    text.lines()
                        .filter_map(|line| line.parse().ok())
                        .filter_map(|tid| process_of(Tid(tid))),
                );
            }
            Err(error) => return Err(error),
        }
        for entry in fs::read_dir(&directory)?.filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// Where a cgroup's files are.
fn cgroup_directory(cgroup: &Path) -> io::Result<PathBuf> {
    let below = cgroup.strip_prefix("/").unwrap_or(cgroup);
    let mounts =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/cpu"];
    let candidates = std::iter::once(cgroup.to_path_buf())
        .chain(mounts.iter().map(|mount| Path::new(mount).join(below)));
    candidates.into_iter().find(|path| path.join("cgroup.procs").exists()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "no such directory with a cgroup.procs file, nor below /sys/fs/cgroup",
        )
    })
}

/// The process a thread belongs to.
fn process_of(tid: Tid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The real user a thread runs as.
pub(crate) fn user_of(tid: Tid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The program file of a process; `None` if the process ended or the file is not readable.
pub(crate) fn program_of(pid: Pid) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // The file may be replaced while it runs, by an update; that is no other program.
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(before) => Some(before.into()),
        None => Some(path),
    }
}

/// Whether a process has ended. A zombie has: only its exit status is left.
pub fn ended(pid: Pid) -> bool {
    match Stat::read(pid, pid.main()) {
        // The first thread may end before the others: then it is a zombie too, although other
        // threads live.
        Ok(stat) => stat.dead() && is_alone(threads(pid).map(|threads| threads.len())),
        Err(error) => gone(&error),
    }
}

/// Whether a process whose first thread is a zombie has no other thread, by the list of its
/// threads. If the list cannot be read, because too many files are open, the process counts as
/// alive. The next look finds out.
fn is_alone(threads: io::Result<usize>) -> bool {
    match threads {
        Ok(threads) => threads <= 1,
        Err(error) => gone(&error),
    }
}

/// The numeric names in a directory of `/proc`, in its order.
fn numbers(directory: &Path) -> io::Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        match entry {
            Ok(entry) => {
                numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()))
            }
            // The process ended while its directory was read.
            Err(error) if gone(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn this() -> Pid {
        Pid(rustix::process::getpid().as_raw_nonzero().get())
    }

    #[test]
    fn a_list_of_threads_that_cannot_be_read_is_no_end_of_a_process() {
        let failed = |number| is_alone(Err(io::Error::from_raw_os_error(number)));
        assert!(is_alone(Ok(1)) && is_alone(Ok(0)) && !is_alone(Ok(2)));
        assert!(failed(libc::ESRCH) && failed(libc::ENOENT));
        assert!(!failed(libc::EMFILE) && !failed(libc::ENFILE) && !failed(libc::EACCES));
    }

    #[test]
    fn threads_are_listed_in_the_order_of_creation() {
        let ready = std::sync::Barrier::new(6);
        std::thread::scope(|scope| {
            let created: Vec<Tid> = (0..5)
                .map(|_| {
                    let (sender, receiver) = std::sync::mpsc::channel();
                    scope.spawn(|| {
                        let sender = sender;
                        sender.send(Tid(rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
                        ready.wait();
                    });
                    receiver.recv().unwrap()
                })
                .collect();
            let listed = threads(this()).unwrap();
            assert_eq!(listed[0], this().main());
            assert_eq!(
                listed.into_iter().filter(|tid| created.contains(tid)).collect::<Vec<_>>(),
                created
            );
            ready.wait();
        });
    }

    #[test]
    fn a_child_descends_from_this_process_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid(child.id() as i32);
        assert!(descendants(&[this()], &all().unwrap()).contains(&pid));
        assert!(!descendants(&[pid], &all().unwrap()).contains(&this()));
        assert!(!ended(pid));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(ended(pid));
    }

    #[test]
    fn a_cgroup_is_found_by_directory_and_lists_its_processes() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("cgroup.procs"), "12\n3\n").unwrap();
        fs::write(directory.path().join("inner/cgroup.procs"), "7\n").unwrap();
        assert_eq!(in_cgroup(directory.path()).unwrap(), [Pid(3), Pid(7), Pid(12)]);
        assert!(in_cgroup(Path::new("/no/such/cgroup")).is_err());
    }
}
