//! On which NUMA nodes the memory of processes lies, and how it is moved.
//!
//! `migrate_pages(2)` moves the memory of a whole process, and has moved it when it returns.
//! It moves all pages of one node to one other node, and can never divide them. So memory is only
//! moved to one node. Without CAP_SYS_NICE it moves only what no other process maps. What others
//! have read of a file does not count. Nodes without contexts are left as they are: who puts memory
//! there wants it there.

use crate::process;
use crate::sys;
use crate::thread::Pid;
use pinwise_figures::percent;
use pinwise_measure::{MemoryPolicy, NodePages};
use pinwise_topology::{CpuSet, Machine};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::thread;

/// Why memory cannot be seen or moved.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MemoryError {
    /// The process has ended.
    #[error("process {0} has ended")]
    Gone(Pid),
    /// The kernel knows no NUMA nodes.
    #[error("this kernel moves no memory between nodes: use --memory leave")]
    NoNuma,
    /// Another user's process, or a node that its cpuset excludes.
    #[error(
        "not permitted to move the memory of process {0}: give pinwise CAP_SYS_NICE and \
         CAP_SYS_PTRACE, or use --memory leave"
    )]
    NotPermitted(Pid),
    /// A seccomp filter, such as that of a container, forbids set_mempolicy(2).
    #[error("not permitted to set the memory policy of a program: give pinwise CAP_SYS_NICE")]
    NoPolicy,
    /// Pages of several nodes that were together on one node cannot be told apart.
    #[error(
        "the memory of process {pid} is on several nodes ({}), so it cannot be put back: use \
         --memory leave",
        shares(.lies)
    )]
    Scattered {
        /// The process.
        pid: Pid,
        /// Where its memory lies.
        lies: NodePages,
    },
    /// The nodes have no memory that is free, or none that pinwise may use.
    #[error("no memory on node {}: choose other CPUs, or use --memory leave", list(.0))]
    NoMemory(BTreeSet<u32>),
    /// Memory is only spread from the start of a program.
    #[error("the memory of a running program is not interleaved: use pinwise run PLAN -- CMD")]
    OnlyAtStart,
    /// Anything else.
    #[error("cannot move the memory of process {pid}: {cause}")]
    System {
        /// The process.
        pid: Pid,
        /// The kernel's error.
        cause: Arc<io::Error>,
    },
}

fn list(nodes: &BTreeSet<u32>) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn shares(lies: &NodePages) -> String {
    let total = lies.total() as f64;
    let share = |(node, pages)| format!("{} on node {node}", percent(pages as f64 / total));
    lies.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn named(pid: Pid, to: &BTreeSet<u32>, cause: io::Error) -> MemoryError {
    match cause.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => MemoryError::Gone(pid),
        Some(libc::ENOSYS) => MemoryError::NoNuma,
        Some(libc::EPERM | libc::EACCES) => MemoryError::NotPermitted(pid),
        Some(libc::ENOMEM | libc::EINVAL) => MemoryError::NoMemory(to.clone()),
        _ => MemoryError::System { pid, cause: Arc::new(cause) },
    }
}

/// Where the pages of a process lie.
///
/// # Errors
/// The kernel knows no nodes, or does not tell.
pub fn pages(pid: Pid) -> Result<NodePages, MemoryError> {
    match fs::read(format!("/proc/{pid}/numa_maps")) {
        // Names of files may be no text.
        Ok(text) => Ok(numa_maps(&String::from_utf8_lossy(&text), page_kilobytes())),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && fs::exists(format!("/proc/{pid}/maps")).unwrap_or_default() =>
        {
            Err(MemoryError::NoNuma)
        }
        Err(error) => Err(named(pid, &BTreeSet::new(), error)),
    }
}

fn page_kilobytes() -> u64 {
    (rustix::param::page_size() as u64 / 1024).max(1)
}

/// Reads the text of `/proc/PID/numa_maps`. Each line is an area: its address, its policy, and
/// words such as `file=/lib/x`, `anon=3`, `N0=2` and `kernelpagesize_kB=4`. `page` is the size of
/// an ordinary page in kB.
///
/// A mapped file is left out under two conditions. Another process, also a child, maps one of its
/// pages (`mapmax=`), and nobody has written to it (`anon=`, `dirty=`). Such pages lie where the
/// first program read them, as those of libc.
pub fn numa_maps(text: &str, page: u64) -> NodePages {
    let mut all = NodePages::default();
    for area in text.lines() {
        let words = || area.split_ascii_whitespace().skip(2);
        let has = |prefix: &str| words().any(|word| word.starts_with(prefix));
        if has("file=") && has("mapmax=") && !has("anon=") && !has("dirty=") {
            continue;
        }
        let size = words().find_map(|word| word.strip_prefix("kernelpagesize_kB=")?.parse().ok());
        let each = size.unwrap_or(page) / page.max(1);
        for word in words() {
            let node = || {
                let (node, count) = word.strip_prefix('N')?.split_once('=')?;
                Some((node.parse::<u32>().ok()?, count.parse::<u64>().ok()?))
            };
            if let Some((node, count)) = node() {
                all.add(node, count.saturating_mul(each));
            }
        }
    }
    all
}

/// The pages of a process that can be moved: those on nodes with contexts.
///
/// # Errors
/// As [`pages`].
pub fn movable_pages(pid: Pid, machine: &Machine) -> Result<NodePages, MemoryError> {
    Ok(pages(pid)?.on(&with_contexts(machine)))
}

/// Moves the memory of a process to one node. Pages that are in use at that moment stay.
///
/// # Errors
/// It is not permitted, or the node has no memory.
pub fn move_to(pid: Pid, node: u32, machine: &Machine) -> Result<(), MemoryError> {
    let (from, to) = (others(node, machine), [node].into());
    if !from.is_empty() {
        sys::migrate_pages(pid.0, &from, &to).map_err(|cause| named(pid, &to, cause))?;
    }
    Ok(())
}

/// Whether [`move_to`] would move pages of a process.
///
/// # Errors
/// As [`pages`].
pub fn would_move(pid: Pid, node: u32, machine: &Machine) -> Result<bool, MemoryError> {
    let from = others(node, machine);
    Ok(!from.is_empty() && pages(pid)?.on(&from).total() > 0)
}

/// The nodes from which [`move_to`] moves memory to `node`.
pub(crate) fn others(node: u32, machine: &Machine) -> BTreeSet<u32> {
    let mut others = with_contexts(machine);
    others.remove(&node);
    others
}

fn with_contexts(machine: &Machine) -> BTreeSet<u32> {
    let nodes = machine.numa.iter().filter(|node| !node.cpus.is_empty());
    nodes.map(|node| node.os_index).collect()
}

/// The node to which the memory of each process follows its threads. `None`: they run next to
/// several nodes, or to none.
pub fn followed<'a>(
    threads: impl IntoIterator<Item = (Pid, &'a CpuSet)>,
    machine: &Machine,
) -> BTreeMap<Pid, Option<u32>> {
    let mut nodes: BTreeMap<Pid, BTreeSet<u32>> = BTreeMap::new();
    for (pid, its) in threads {
        nodes.entry(pid).or_default().extend(machine.nearest_memory(its));
    }
    let only = |nodes: BTreeSet<u32>| nodes.first().copied().filter(|_| nodes.len() == 1);
    nodes.into_iter().map(|(pid, nodes)| (pid, only(nodes))).collect()
}

/// The machine as far as a process may use its memory.
pub fn machine_of(pid: Pid, machine: Machine) -> Machine {
    match process::memory_nodes(pid) {
        Some(nodes) => machine.with_memory_on(&nodes),
        None => machine,
    }
}

/// Where the pages of processes lie. One that has ended is left out.
///
/// # Errors
/// As [`pages`].
pub fn pages_of(pids: &[Pid], machine: &Machine) -> Result<NodePages, MemoryError> {
    let nodes = machine.memory_nodes();
    let only = nodes.first().filter(|_| nodes.len() == 1);
    together(pids.iter().map(|&pid| match only {
        Some(&node) => Ok([(node, resident(pid)?)].into_iter().collect()),
        None => pages(pid),
    }))
}

/// How many pages processes have, wherever they lie. One that has ended has none.
pub fn page_count(pids: &[Pid]) -> u64 {
    pids.iter().filter_map(|&pid| resident(pid).ok()).fold(0, u64::saturating_add)
}

/// All pages of a process. The kernel counts them. To look at each page would keep the process
/// waiting.
fn resident(pid: Pid) -> Result<u64, MemoryError> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm"));
    let text = text.map_err(|cause| named(pid, &BTreeSet::new(), cause))?;
    Ok(text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0))
}

fn together(
    each: impl Iterator<Item = Result<NodePages, MemoryError>>,
) -> Result<NodePages, MemoryError> {
    let mut all = NodePages::default();
    for pages in each {
        match pages {
            Ok(pages) => pages.iter().for_each(|(node, count)| all.add(node, count)),
            Err(MemoryError::Gone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Where the memory of a program lies that is started. What it starts inherits this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialMemory {
    /// Page by page, round robin over these nodes.
    Interleaved(BTreeSet<u32>),
    /// On this node while it has room.
    Preferred(u32),
}

impl InitialMemory {
    /// What a policy means for a program whose threads run next to `nodes`. `None`: a page lies
    /// next to the thread that touches it first.
    pub fn of(policy: MemoryPolicy, nodes: &BTreeSet<u32>) -> Option<Self> {
        match (policy, nodes.first()) {
            (MemoryPolicy::Interleave, Some(_)) => Some(Self::Interleaved(nodes.clone())),
            (MemoryPolicy::Follow, Some(&node)) if nodes.len() == 1 => Some(Self::Preferred(node)),
            _ => None,
        }
    }

    /// Has `command` start with it.
    ///
    /// # Errors
    /// The kernel refuses it. If the start itself failed, it could not give this reason.
    pub fn apply(&self, command: &mut Command) -> Result<(), MemoryError> {
        let (mode, nodes) = match self {
            Self::Interleaved(nodes) => (sys::MemoryMode::Interleave, nodes.clone()),
            Self::Preferred(node) => (sys::MemoryMode::Preferred, [*node].into()),
        };
        // A thread that ends at once has its own policy.
        let tried = thread::scope(|scope| scope.spawn(|| sys::set_memory(mode, &nodes)).join());
        tried.unwrap_or(Ok(())).map_err(|cause| not_set(&nodes, cause))?;
        sys::start_with_memory(command, mode, &nodes);
        Ok(())
    }
}

/// Why a program does not start with its memory on `nodes`.
fn not_set(nodes: &BTreeSet<u32>, cause: io::Error) -> MemoryError {
    let own = Pid(std::process::id() as i32);
    match named(own, nodes, cause) {
        MemoryError::NotPermitted(_) => MemoryError::NoPolicy,
        error => error,
    }
}

/// What automatic NUMA balancing has counted, for all programs. It takes the access to some pages
/// away, and so sees which CPU uses each of them next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancingCounts {
    /// Pages that it moved to another node.
    pub moved: u64,
    /// Accesses that it saw.
    pub seen: u64,
    /// Those from a CPU of the page's node.
    pub local: u64,
}

impl BalancingCounts {
    /// Fewer accesses than this say nothing of a program.
    const ENOUGH: u64 = 1000;

    /// What was counted since. `None`: a count went back.
    pub fn since(self, before: Self) -> Option<Self> {
        Some(Self {
            moved: self.moved.checked_sub(before.moved)?,
            seen: self.seen.checked_sub(before.seen)?,
            local: self.local.checked_sub(before.local)?,
        })
    }

    /// The share of the accesses that was local, 0 to 1, if enough were seen. The kernel does not
    /// read both counts at one moment.
    pub fn local_share(self) -> Option<f64> {
        (self.seen >= Self::ENOUGH).then(|| (self.local as f64 / self.seen as f64).min(1.0))
    }
}

/// What automatic NUMA balancing has counted since the machine started. `None`: it is off.
pub fn numa_balancing() -> Option<BalancingCounts> {
    let on = fs::read_to_string("/proc/sys/kernel/numa_balancing").ok()?;
    if on.trim() == "0" {
        return None;
    }
    balancing_counts(&fs::read_to_string("/proc/vmstat").ok()?)
}

fn balancing_counts(vmstat: &str) -> Option<BalancingCounts> {
    let count = |name: &str| {
        let words = vmstat.lines().filter_map(|line| line.split_once(' '));
        words.filter(|word| word.0 == name).find_map(|word| word.1.trim().parse().ok())
    };
    Some(BalancingCounts {
        moved: count("numa_pages_migrated")?,
        seen: count("numa_hint_faults")?,
        local: count("numa_hint_faults_local")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_are_counted_by_node_in_ordinary_pages() {
        let text = "\
            5597fc131000 default file=/usr/bin/N9=7 mapped=2 N0=2 kernelpagesize_kB=4\n\
            7f1380000000 interleave:0-1 anon=5 dirty=5 N0=2 N1=3 kernelpagesize_kB=4\n\
            7f2000000000 default file=/dev/hugepages/x huge dirty=2 N1=2 kernelpagesize_kB=2048\n\
            7ffdc223e000 default stack\n\
            N7=1\n";
        assert_eq!(numa_maps(text, 4), [(0, 4), (1, 1027)].into_iter().collect());
    }

    #[test]
    fn a_file_that_others_have_read_is_no_memory_of_the_program() {
        let text = "\
            7f0000000000 default file=/lib/libc.so.6 mapped=300 mapmax=40 N0=300\n\
            7f0000100000 default file=/lib/libc.so.6 anon=2 dirty=2 mapmax=2 N1=2\n\
            7f0000200000 default file=/dev/shm/x dirty=5 mapmax=3 N1=5\n\
            7f0000300000 default heap anon=9 mapmax=2 N1=9\n\
            7f0000400000 default file=/usr/bin/own mapped=4 N1=4\n";
        assert_eq!(numa_maps(text, 4), [(1, 20)].into_iter().collect());
    }

    proptest! {
        #[test]
        fn what_the_kernel_writes_is_read_back_and_nothing_panics(
            areas in proptest::collection::vec(
                (proptest::collection::btree_map(0u32..9, 1u64..1 << 30, 0..4), 0u32..3), 0..9),
            noise in ".{0,80}",
        ) {
            let mut wanted = NodePages::default();
            let mut text = String::new();
            for (nodes, huge) in areas {
                text.push_str("7f00 default anon=1");
                for (node, count) in nodes {
                    text.push_str(&format!(" N{node}={count}"));
                    wanted.add(node, count << huge);
                }
                text.push_str(&format!(" kernelpagesize_kB={}\n", 4 << huge));
            }
            prop_assert_eq!(numa_maps(&text, 4), wanted);
            numa_maps(&noise, 4);
        }
    }

    #[test]
    fn memory_follows_to_one_node_or_stays() {
        let mut machine = Machine::from_shape("numa:3 core:2").unwrap();
        let [first, last, both] = ["0-1", "4", "1-2"].map(|list| CpuSet::parse_list(list).unwrap());
        let threads = [(7, &first), (7, &first), (8, &first), (8, &last), (9, &both), (10, &last)];
        let node = |machine: &Machine| -> Vec<(i32, Option<u32>)> {
            let threads = threads.map(|(pid, cpus)| (Pid(pid), cpus));
            followed(threads, machine).into_iter().map(|(pid, node)| (pid.0, node)).collect()
        };
        assert_eq!(node(&machine), [(7, Some(0)), (8, None), (9, None), (10, Some(2))]);
        machine.numa[2].cpus = CpuSet::new();
        assert_eq!(with_contexts(&machine), [0, 1].into());
        assert_eq!(node(&machine), [(7, Some(0)), (8, Some(0)), (9, None), (10, None)]);
    }

    #[test]
    fn a_policy_says_where_a_program_that_starts_has_its_memory() {
        let of =
            |policy, nodes: &[u32]| InitialMemory::of(policy, &nodes.iter().copied().collect());
        assert_eq!(of(MemoryPolicy::Leave, &[0]), None);
        assert_eq!(of(MemoryPolicy::Follow, &[1]), Some(InitialMemory::Preferred(1)));
        assert_eq!(of(MemoryPolicy::Follow, &[0, 1]), None);
        let both = Some(InitialMemory::Interleaved([0, 1].into()));
        assert_eq!(of(MemoryPolicy::Interleave, &[0, 1]), both);
        assert_eq!(of(MemoryPolicy::Interleave, &[]), None);
    }

    #[test]
    fn a_started_program_has_the_policy_and_so_has_what_it_starts() {
        // Without nodes the kernel has no such file.
        let Ok(_) = pages(Pid(rustix::process::getpid().as_raw_nonzero().get())) else {
            return pinwise_synthetic::not_judged("this kernel shows no nodes");
        };
        let run = |memory: InitialMemory| {
            let mut command = Command::new("sh");
            command.args(["-c", "cat /proc/self/numa_maps; true"]);
            memory.apply(&mut command).unwrap();
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert!(run(InitialMemory::Interleaved([0].into())).contains(" interleave:0 "));
        assert!(run(InitialMemory::Preferred(0)).contains(" prefer:0 "));
        let nowhere = InitialMemory::Preferred(4000).apply(&mut Command::new("sh")).unwrap_err();
        assert!(nowhere.to_string().starts_with("no memory on node 4000: "), "{nowhere}");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let of = |code| named(Pid(7), &[2].into(), io::Error::from_raw_os_error(code));
        assert!(matches!(of(libc::ESRCH), MemoryError::Gone(Pid(7))));
        assert!(matches!(of(libc::ENOSYS), MemoryError::NoNuma));
        assert!(matches!(of(libc::EPERM), MemoryError::NotPermitted(Pid(7))));
        assert!(of(libc::EINVAL).to_string().starts_with("no memory on node 2: choose"));
        let refused = not_set(&[0].into(), io::Error::from_raw_os_error(libc::EPERM)).to_string();
        assert!(refused.contains("memory policy") && refused.ends_with("CAP_SYS_NICE"));
        let lies = [(0, 60), (1, 40)].into_iter().collect();
        let scattered = MemoryError::Scattered { pid: Pid(7), lies }.to_string();
        assert!(scattered.contains(" 7 is on several nodes (60 % on node 0, 40 % on node 1),"));
        let unknown = pages(Pid(i32::MAX >> 4)).unwrap_err();
        assert!(matches!(unknown, MemoryError::Gone(_)), "{unknown}");
    }

    #[test]
    fn on_one_node_all_resident_pages_lie_there() {
        let mut machine = Machine::from_shape("2x2").unwrap();
        machine.numa[0].os_index = 3;
        let own = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let held = pages_of(&[own, Pid(i32::MAX >> 4)], &machine).unwrap();
        assert_eq!((held.home(), held.total() > 100), ([3].into(), true), "{held:?}");
    }

    #[test]
    fn the_kernel_counts_what_it_balanced() {
        let text = "numa_hint_faults 4000\nnuma_hint_faults_local 3000\n\
            numa_pages_migrated 39042\npgmigrate_success 7\n";
        let counts = balancing_counts(text).unwrap();
        assert_eq!(counts, BalancingCounts { moved: 39_042, seen: 4000, local: 3000 });
        assert_eq!(balancing_counts("numa_hit 3\n"), None);
        assert_eq!(counts.local_share(), Some(0.75));
        assert_eq!(counts.since(counts).unwrap().local_share(), None, "too few");
        let later = BalancingCounts { seen: 4001, ..counts };
        assert_eq!(later.since(counts).map(|since| since.seen), Some(1));
        assert_eq!(counts.since(later), None);
    }
}
