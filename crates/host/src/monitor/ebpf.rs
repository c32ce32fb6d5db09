//! Watching by a program in the kernel that keeps the accounts ([`Layer::Ebpf`]).
//!
//! `bpf/monitor.bpf.c` runs at every context switch, wake-up, fork and exec of the machine and updates one account per watched thread;
//! nothing is sent, so nothing can overflow but the number of threads. Attaching waits for all CPUs, which takes a tenth of a second and
//! more beside busy ones: it is attached by the first window and stays so. A window is what was added to the accounts in it. The account
//! of a living thread is thrown away only while it is detached, because the kernel gives the room of one to the next at once, whoever
//! still writes to it; nobody writes to that of a thread that has ended.
//!
//! Processes are told to the kernel's side by their numbers; what they fork it adds itself. A thread that was there before has no
//! past: what it does is told by the first thing that happens to it, or, where nothing has yet, by `/proc`.
//!
//! Looks only add to the accounts of threads that the kernel's side cannot know of. A thread may end, and its number may be another's, between a
//! look and what is done about it: an account is taken away or begun anew only where it is known to be of another life.
//!
//! [`Layer::Ebpf`]: super::Layer::Ebpf

mod account;
mod obstacle;

use super::activity::ThreadActivity;
use super::layer::Unavailable;
use super::ledger::Doing;
use super::overhead::{Overhead, machine_switches, now};
use super::source::Source;
use super::{COUNT, calibration};
use crate::roster::Roster;
use crate::thread::{Account as Schedstat, Pid, Stat, ThreadId, Tid};
use account::{Account, State, Words};
use aya::maps::{Array, HashMap as Map, MapData};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, EbpfError, EbpfLoader};
use obstacle::{obstacle, refused, told};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// Built from `bpf/monitor.bpf.c` by `bpf/build.sh`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/monitor.bpf.o"));
/// Its programs, and the tracepoints they belong to; new threads are caught before anything is said about old ones.
const PROGRAMS: [(&str, &str); 5] = [
    ("forked", "sched_process_fork"),
    ("replaced", "sched_process_exec"),
    ("ends", "sched_process_exit"),
    ("woken", "sched_wakeup"),
    ("switched", "sched_switch"),
];
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
    /// The accounts there were when the window began.
    earlier: HashMap<u32, Earlier>,
    switches: u64,
    per_switch: Duration,
    /// What the kernel's side had missed when the window began.
    missed_before: u64,
    /// Threads of this window that have no account, or one that cannot be read.
    lost: u64,
}

/// An account at the beginning of a window.
struct Earlier {
    account: Account,
    /// What the thread did.
    state: State,
    at: u64,
    /// It is of a process that is watched in this window.
    member: bool,
}

/// More accounts of threads that are not watched any more than this are worth detaching.
const MANY: usize = 2048;
/// An account is half written for some nanoseconds, unless a hypervisor takes the CPU away just then.
const PATIENCE: Duration = Duration::from_millis(20);

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
        let (switches, per_switch, missed_before, lost) = (0, Duration::ZERO, 0, 0);
        Ok(Self {
            bpf,
            threads,
            processes,
            missed,
            attached,
            found,
            earlier,
            switches,
            per_switch,
            missed_before,
            lost,
        })
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
    /// window did. `false`: there is no room for it.
    fn find(&mut self, id: ThreadId) -> bool {
        let (tid, now) = (id.tid.0.unsigned_abs(), now());
        let ran = Schedstat::read(id.pid, id.tid).map_or(Duration::ZERO, |account| account.ran);
        self.found.insert(id, ran);
        let known = self.account(tid);
        // This thread may have ended since it was looked at: then that is its own account. Where it is that of one which had its number
        // before, nobody writes to it any more.
        let of_another = known.as_ref().is_some_and(|known| known.state() == State::Ended && known.id() != id);
        let begin = if of_another { 0 } else { ONLY_NEW };
        let begun = self.threads.insert(tid, Account::begin(id, now, ran).words(), begin).is_ok();
        // It was taken for one that is not watched any more: its process was not listed yet when the window began.
        if let (Some(earlier), Some(account)) = (self.earlier.get_mut(&tid), &known)
            && !earlier.member
            && earlier.account.begun() == account.begun()
        {
            *earlier = Earlier { account: account.clone(), state: account.state(), at: now, member: true };
        }
        begun || known.is_some() || self.threads.get(&tid, 0).is_ok()
    }

    /// An account that adds up: what is written at the moment is read again. `None`: there is none, or it is never whole.
    fn account(&self, tid: u32) -> Option<Account> {
        let begin = Instant::now();
        loop {
            let account = Account::parse(self.threads.get(&tid, 0).ok()?);
            if account.is_some() || begin.elapsed() > PATIENCE {
                return account;
            }
        }
    }

    /// Notes the accounts of a window that begins, and forgets those of threads that have ended.
    fn look_back(&mut self, roster: &Roster, members: &HashSet<u32>) -> io::Result<()> {
        let alive: HashMap<Tid, ThreadId> = roster.threads().map(|(_, id)| (id.tid, id)).collect();
        for tid in self.tids()? {
            let Some(account) = self.account(tid) else { continue };
            let id = alive.get(&Tid(tid as i32)).copied().unwrap_or_else(|| account.id());
            if account.state() == State::Ended {
                let _ = self.threads.remove(&tid);
            } else {
                let at = now();
                let member = members.contains(&id.pid.0.unsigned_abs());
                let state = match account.state() {
                    State::Unknown if member => self.steady(id, Duration::ZERO),
                    state => state,
                };
                self.earlier.insert(tid, Earlier { account, state, at, member });
            }
        }
        if self.earlier.values().filter(|earlier| !earlier.member).count() > MANY {
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
        (self.missed_before, self.lost) = (self.missed()?, 0);
        // Attaching may take long on a crowded machine; it is not part of the window.
        self.switches = machine_switches();
        Ok(())
    }

    fn look(&mut self, roster: &Roster, _: Duration, counting: bool) -> io::Result<bool> {
        if counting {
            self.name(&pids(roster))?;
            // The first look finds those that were there before; the kernel's side counts new ones that have no room.
            let first = self.found.is_empty();
            for (_, id) in roster.threads() {
                if !self.found.contains_key(&id) && !self.find(id) && first {
                    self.lost += 1;
                }
            }
        }
        Ok(false)
    }

    fn end(&mut self, roster: &Roster) -> io::Result<Vec<ThreadActivity>> {
        let end = now();
        self.switches = machine_switches().saturating_sub(self.switches);
        self.lost += self.missed()?.saturating_sub(self.missed_before);
        let alive: HashMap<Tid, ThreadId> = roster.threads().map(|(_, id)| (id.tid, id)).collect();
        let mut threads = Vec::new();
        for tid in self.tids()? {
            let Some(read) = self.account(tid) else {
                self.lost += 1;
                continue;
            };
            // A number is that of a thread only.
            let id = alive.get(&Tid(tid as i32)).copied().unwrap_or_else(|| read.id());
            let stat = Stat::read(id.pid, id.tid).ok().filter(|stat| stat.start == id.start);
            // Gone from /proc by now: its name is in its account by now, whatever was read of it before.
            let account = if stat.is_none() { self.account(tid).unwrap_or(read) } else { read };
            let account = match self.earlier.get(&tid) {
                // The number may be that of another thread by now.
                Some(earlier) if earlier.account.begun() == account.begun() => {
                    if !earlier.member {
                        continue;
                    }
                    account.added(&earlier.account, earlier.state, earlier.at)
                }
                _ => account,
            };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::Scope;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn own(tid: Option<Tid>) -> ThreadId {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let tid = tid.unwrap_or(Tid(rustix::thread::gettid().as_raw_nonzero().get()));
        ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start }
    }

    #[test]
    fn a_thread_that_ends_after_a_look_at_it_keeps_its_account() {
        let mut ebpf = match Ebpf::open() {
            Ok(ebpf) => ebpf,
            Err(reason) => return println!("left out: {reason}"),
        };
        let roster = Roster::new(Scope::Processes(vec![own(None).pid])).unwrap();
        ebpf.begin(&roster).unwrap();
        let brief = std::thread::Builder::new().name("ebpf-brief".into()).spawn(|| own(None)).unwrap().join().unwrap();
        // Joined is not yet switched out for the last time.
        let ended = |ebpf: &Ebpf| {
            ebpf.account(brief.tid.0.unsigned_abs()).is_some_and(|account| account.state() == State::Ended)
        };
        let begin = Instant::now();
        while !ended(&ebpf) && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(ebpf.find(brief), "it has an account");
        let seen = ebpf.end(&roster).unwrap();
        let thread = seen.iter().find(|thread| thread.id == brief).unwrap();
        assert!(thread.comm == "ebpf-brief" && thread.ran > Duration::ZERO, "{thread:?}");
        assert_eq!(ebpf.lost(), 0);
    }

    #[test]
    fn threads_without_room_are_counted_whether_they_were_there_before_or_came() {
        let mut ebpf = match Ebpf::open() {
            Ok(ebpf) => ebpf,
            Err(reason) => return println!("left out: {reason}"),
        };
        // A process of its own, whose threads nobody else begins: each line it reads has it go on.
        let mut shell = Command::new("sh").args(["-c", "read a; (read b); :"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut lines = shell.stdin.take().unwrap();
        let roster = Roster::new(Scope::Processes(vec![Pid(shell.id() as i32)])).unwrap();
        ebpf.begin(&roster).unwrap();
        let mut filled = 0u32;
        // Numbers that no thread has.
        while ebpf.threads.insert(u32::MAX - filled, [0; account::WORDS], 0).is_ok() {
            filled += 1;
        }
        assert!(filled > 0 && roster.threads().count() == 1);
        lines.write_all(b"\n").unwrap();
        let begin = Instant::now();
        while ebpf.missed().unwrap() == ebpf.missed_before && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        ebpf.look(&roster, Duration::ZERO, true).unwrap();
        let seen = ebpf.end(&roster).unwrap();
        drop(lines);
        shell.wait().unwrap();
        assert!(seen.is_empty(), "{seen:?}");
        assert_eq!(ebpf.lost(), 2, "one was there and one came");
    }
}
