//! Watching by a program in the kernel that keeps the accounts ([`Layer::Ebpf`]).
//!
//! `bpf/monitor.bpf.c` runs at every context switch, wake-up and fork of the machine and updates one account per watched thread;
//! nothing is sent, so nothing can overflow but the number of threads. Attaching waits for all CPUs, which takes a tenth of a second and
//! more beside busy ones: it is attached by the first window and stays so. A window is what was added to the accounts in it. The account
//! of a living thread is thrown away only while it is detached, because the kernel gives the room of one to the next at once, whoever
//! still writes to it; nobody writes to that of a thread that has ended.
//!
//! Processes are told to the kernel's side by their numbers; what they fork it adds itself. A thread that was there before has no
//! past: what it does is told by the first thing that happens to it, or, where nothing has yet, by `/proc`.

mod account;

use super::activity::ThreadActivity;
use super::layer::{Layer, Unavailable};
use super::ledger::Doing;
use super::overhead::{Overhead, machine_switches, now};
use super::source::Source;
use super::{COUNT, calibration};
use crate::doctor::permission;
use crate::roster::Roster;
use crate::thread::{Account as Schedstat, Pid, Stat, ThreadId, Tid};
use account::{Account, State, Words};
use aya::maps::{Array, HashMap as Map, MapData};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, EbpfError, EbpfLoader};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Built from `bpf/monitor.bpf.c` by `bpf/build.sh`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/monitor.bpf.o"));
/// Its programs, and the tracepoints they belong to; new threads are caught before anything is said about old ones.
const PROGRAMS: [(&str, &str); 3] =
    [("forked", "sched_process_fork"), ("woken", "sched_wakeup"), ("switched", "sched_switch")];
/// `BPF_NOEXIST` (bpf(2)).
const ONLY_NEW: u64 = 1;

/// The program in the kernel and its accounts.
pub(super) struct Ebpf {
    bpf: aya::Ebpf,
    threads: Map<MapData, u32, Words>,
    processes: Map<MapData, u32, u32>,
    missed: Array<MapData, u64>,
    attached: Vec<(&'static str, BtfTracePointLinkId)>,
    /// Threads that were found by looking in this window, with what the scheduler had accounted to them.
    found: HashMap<ThreadId, Duration>,
    /// The accounts there were when the window began; `None`: of threads that are not watched any more.
    earlier: HashMap<u32, Option<Earlier>>,
    switches: u64,
    per_switch: Duration,
    lost: u64,
}

/// An account at the beginning of a window.
struct Earlier {
    account: Account,
    /// What the thread did.
    state: State,
    at: u64,
}

/// More accounts of threads that are not watched any more than this are worth detaching.
const MANY: usize = 2048;

impl Ebpf {
    /// Loads the program; attaches it for a moment to measure what it costs.
    pub(super) fn open() -> Result<Self, Unavailable> {
        if let Some(obstacle) = obstacle() {
            return Err(obstacle);
        }
        let btf = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        let mut ebpf = Self::load(&btf).map_err(|error| refused(&error))?;
        let cost = calibration::per_switch(&mut |work| if work { ebpf.watch_own() } else { ebpf.stop() });
        ebpf.per_switch = cost.map_err(|error| refused(&error))?;
        Ok(ebpf)
    }

    fn load(btf: &Btf) -> Result<Self, EbpfError> {
        let mut bpf = EbpfLoader::new().btf(Some(btf)).load(OBJECT)?;
        for (name, tracepoint) in PROGRAMS {
            program(&mut bpf, name)?.load(tracepoint, btf)?;
        }
        // The object is a part of this program and has these maps.
        let mut map = |name: &str| bpf.take_map(name).ok_or(aya::maps::MapError::InvalidName { name: name.into() });
        let (threads, processes) = (Map::try_from(map("threads")?)?, Map::try_from(map("processes")?)?);
        let missed = Array::try_from(map("lost")?)?;
        let (attached, found, earlier) = (Vec::new(), HashMap::new(), HashMap::new());
        let (switches, per_switch, lost) = (0, Duration::ZERO, 0);
        Ok(Self { bpf, threads, processes, missed, attached, found, earlier, switches, per_switch, lost })
    }

    /// Forgets every account; only while detached.
    fn clear(&mut self) -> io::Result<()> {
        for tid in self.tids()? {
            // Gone already is as good.
            let _ = self.threads.remove(&tid);
        }
        Ok(())
    }

    /// Of which threads there are accounts.
    fn tids(&self) -> io::Result<Vec<u32>> {
        self.threads.keys().collect::<Result<_, _>>().map_err(io::Error::other)
    }

    /// How many new threads and processes have found no room so far.
    fn missed(&self) -> io::Result<u64> {
        self.missed.get(&0, 0).map_err(io::Error::other)
    }

    fn start(&mut self) -> io::Result<()> {
        for (name, _) in PROGRAMS {
            let link = program(&mut self.bpf, name).and_then(BtfTracePoint::attach);
            self.attached.push((name, link.map_err(|error| io::Error::other(told(&error)))?));
        }
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        for (name, link) in self.attached.drain(..) {
            let done = program(&mut self.bpf, name).and_then(|program| program.detach(link));
            done.map_err(|error| io::Error::other(told(&error)))?;
        }
        Ok(())
    }

    /// Watches the calling thread and those that it creates.
    fn watch_own(&mut self) -> io::Result<()> {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let tid = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        self.clear()?;
        self.name(&HashSet::from([pid.0.unsigned_abs()]))?;
        self.start()?;
        self.find(ThreadId { pid, tid, start: Stat::read(pid, tid)?.start });
        Ok(())
    }

    /// Has the kernel's side watch what these processes fork, and no others: what they have forked is among them by now.
    fn name(&mut self, pids: &HashSet<u32>) -> io::Result<()> {
        let named: HashSet<u32> = self.processes.keys().collect::<Result<_, _>>().map_err(io::Error::other)?;
        // Where there is no room new threads are found by looking.
        pids.difference(&named).for_each(|pid| drop(self.processes.insert(pid, 0, 0)));
        named.difference(pids).for_each(|pid| drop(self.processes.remove(pid)));
        Ok(())
    }

    /// Takes up a thread that was found by looking: begins its account, unless the kernel's side has begun it at its creation or an earlier
    /// window did.
    fn find(&mut self, id: ThreadId) {
        let (tid, now) = (id.tid.0.unsigned_abs(), now());
        let ran = Schedstat::read(id.pid, id.tid).map_or(Duration::ZERO, |account| account.ran);
        self.found.insert(id, ran);
        let known = self.account(tid);
        // A number may have been that of a thread that has ended.
        let begin = if known.as_ref().is_some_and(|known| known.state() == State::Ended) { 0 } else { ONLY_NEW };
        // Where there is no room for it, it is not seen.
        let _ = self.threads.insert(tid, Account::begin(id, now).words(), begin);
        // It was taken for one that is not watched any more: its process was not listed yet when the window began.
        if let (Some(earlier @ None), Some(account)) = (self.earlier.get_mut(&tid), known) {
            let state = account.state();
            *earlier = Some(Earlier { account, state, at: now });
        }
    }

    /// An account that adds up: what is written at the moment is read again.
    fn account(&self, tid: u32) -> Option<Account> {
        (0..100).find_map(|_| Account::parse(self.threads.get(&tid, 0).ok()?))
    }

    /// Notes the accounts of a window that begins, and forgets those of threads that have ended.
    fn look_back(&mut self, roster: &Roster, members: &HashSet<u32>) -> io::Result<()> {
        let alive: HashMap<Tid, ThreadId> = roster.threads().map(|(_, id)| (id.tid, id)).collect();
        let mut strangers = 0;
        for tid in self.tids()? {
            let Some(account) = self.account(tid) else { continue };
            let id = alive.get(&Tid(tid as i32)).copied().unwrap_or_else(|| account.id());
            if account.state() == State::Ended {
                let _ = self.threads.remove(&tid);
            } else if members.contains(&id.pid.0.unsigned_abs()) {
                let at = now();
                let state = match account.state() {
                    State::Unknown => self.steady(id, Duration::ZERO),
                    state => state,
                };
                self.earlier.insert(tid, Some(Earlier { account, state, at }));
            } else {
                strangers += 1;
                self.earlier.insert(tid, None);
            }
        }
        if strangers > MANY {
            self.stop()?;
            self.clear()?;
            self.earlier.clear();
            self.start()?;
        }
        Ok(())
    }

    /// What a thread did to which nothing happened in the window.
    fn steady(&self, id: ThreadId, spent: Duration) -> State {
        let text = std::fs::read(format!("/proc/{}/task/{}/syscall", id.pid, id.tid)).unwrap_or_default();
        match Doing::parse(&text) {
            Doing::Locked => State::Locked,
            Doing::Asleep => State::Asleep,
            Doing::Runnable => {
                let before = self.found.get(&id).copied().unwrap_or_default();
                let ran = Schedstat::read(id.pid, id.tid).map_or(Duration::ZERO, |account| account.ran);
                if ran.saturating_sub(before) > spent / 2 { State::Running } else { State::Waiting }
            }
        }
    }
}

impl Source for Ebpf {
    fn pace(&self) -> Duration {
        COUNT
    }

    fn begin(&mut self, roster: &Roster) -> io::Result<()> {
        let members = pids(roster);
        (self.found, self.earlier) = (HashMap::new(), HashMap::new());
        if self.attached.is_empty() {
            self.clear()?;
            self.name(&members)?;
            self.start()?;
        } else {
            self.name(&members)?;
            self.look_back(roster, &members)?;
        }
        self.lost = self.missed()?;
        // Attaching may take long on a crowded machine; it is not part of the window.
        self.switches = machine_switches();
        Ok(())
    }

    fn look(&mut self, roster: &Roster, _: Duration, counting: bool) -> io::Result<()> {
        if counting {
            self.name(&pids(roster))?;
            for (_, id) in roster.threads() {
                if !self.found.contains_key(&id) {
                    self.find(id);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, roster: &Roster) -> io::Result<Vec<ThreadActivity>> {
        let end = now();
        self.switches = machine_switches().saturating_sub(self.switches);
        self.lost = self.missed()?.saturating_sub(self.lost);
        let alive: HashMap<Tid, ThreadId> = roster.threads().map(|(_, id)| (id.tid, id)).collect();
        let mut threads = Vec::new();
        for tid in self.tids()? {
            let Some(mut account) = self.account(tid) else { continue };
            match self.earlier.get(&tid) {
                Some(None) => continue,
                // The number may be that of another thread by now.
                Some(Some(Earlier { account: earlier, state, at })) if earlier.begun() == account.begun() => {
                    account = account.added(earlier, *state, *at);
                }
                _ => {}
            }
            // A number is that of a thread only.
            let id = alive.get(&Tid(tid as i32)).copied().unwrap_or_else(|| account.id());
            let stat = Stat::read(id.pid, id.tid).ok().filter(|stat| stat.start == id.start);
            let state = match account.state() {
                // It ended before the program was attached.
                State::Unknown if stat.is_none() => continue,
                State::Unknown => self.steady(id, Duration::from_nanos(end.saturating_sub(account.begun()))),
                state => state,
            };
            threads.push(account.activity(id, stat.map(|stat| stat.comm), state, end));
        }
        Ok(threads)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.stop()
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn charge(&self, overhead: &mut Overhead) {
        overhead.charge(self.switches, self.per_switch);
    }
}

impl fmt::Debug for Ebpf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ebpf").field("per_switch", &self.per_switch).field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// The processes that are watched.
fn pids(roster: &Roster) -> HashSet<u32> {
    roster.members().iter().map(|member| member.pid.0.unsigned_abs()).collect()
}

fn program<'a>(bpf: &'a mut aya::Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, ProgramError> {
    bpf.program_mut(name).ok_or_else(|| ProgramError::InvalidName { name: name.into() })?.try_into()
}

/// What is known to stand in the way before anything is tried, which takes a tenth of a second.
fn obstacle() -> Option<Unavailable> {
    /// The kernel gives the first PID namespace this number (`PROC_PID_INIT_INO`).
    const FIRST: &str = "pid:[4026531836]";
    let obstacle = |reason, remedy| Some(Unavailable::new(Layer::Ebpf, reason, remedy));
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return obstacle("not on this architecture", "x86-64 and AArch64 have it");
    }
    if !permission::may_use_bpf() {
        return Some(not_permitted());
    }
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return obstacle("no type information (/sys/kernel/btf/vmlinux)", "use a kernel with CONFIG_DEBUG_INFO_BTF");
    }
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace.as_os_str() != FIRST {
        return obstacle(
            "the kernel's thread numbers are others than those in this PID namespace",
            "run pinwise outside of the container, or with --pid=host",
        );
    }
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return obstacle("the kernel is locked down", "boot with lockdown=integrity or without");
    }
    None
}

fn not_permitted() -> Unavailable {
    Unavailable::new(Layer::Ebpf, "not permitted", "sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v pinwise)\"")
}

/// Why it cannot be, by the kernel's answer.
fn refused(error: &(impl Error + 'static)) -> Unavailable {
    let first: &(dyn Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |&error| error.source());
    let denied = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
    if causes.any(|error| error.downcast_ref::<io::Error>().is_some_and(denied)) {
        return not_permitted();
    }
    Unavailable::new(Layer::Ebpf, told(error), "use Linux 5.15 or later, with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT")
}

/// What happened with all its causes, the first line of each.
fn told(error: &(impl Error + 'static)) -> String {
    let first: &(dyn Error + 'static) = error;
    let first_line = |text: String| text.lines().next().unwrap_or_default().trim().to_owned();
    let mut lines: Vec<String> = std::iter::successors(Some(first), |&error| error.source())
        .map(|error| first_line(error.to_string()))
        .collect();
    lines.dedup();
    lines.join(": ")
}
