//! The layer of a program in the kernel that keeps the accounts ([`Layer::Ebpf`]).
//!
//! `bpf/monitor.bpf.c` runs at every context switch, wake-up, fork and exec of the machine. It
//! updates one account per watched thread. Nothing is sent, so only the number of threads can
//! overflow. Attaching it waits for all CPUs, which takes a tenth of a second and more next to busy
//! threads. So the first window attaches it, and it stays attached. The result of a window is the
//! growth of the accounts.
//!
//! The account of a living thread is deleted only while the program is detached. The kernel gives
//! its room to another thread at once, even if somebody still writes to it. Nobody writes to the
//! account of a thread that has ended.
//!
//! pinwise passes process numbers to the kernel's side, which adds the processes that they fork. A
//! thread that existed before has no past. The first thing that happens to it shows what it does.
//! Until then `/proc` does.
//!
//! Looks add only the accounts of threads that the kernel's side cannot know of. Between a look and
//! the action on it, a thread may end and its number may become another's. So an account is deleted
//! or begun again only if it certainly belongs to another life.
//!
//! [`Layer::Ebpf`]: super::Layer::Ebpf

mod account;
mod kernel;
mod obstacle;

use crate::activity::ThreadActivity;
use crate::layer::Unavailable;
use crate::layer_reader::COUNT;
use crate::layer_reader::LayerReader;
use crate::overhead::{Overhead, machine_switches, now};
use crate::switch_cost;
use crate::thread_watch::Doing;
use account::{AccountState, KernelAccount};
use aya::Btf;
use kernel::KernelSide;
use obstacle::{obstacle, refused};
use pinwise_linux::{
    Roster,
    thread::{Pid, SchedulerTimes as Schedstat, Stat, ThreadId, Tid},
};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::time::Duration;

/// The program in the kernel and its accounts.
pub(super) struct Ebpf {
    kernel: KernelSide,
    /// Threads that looks found in this window, with what the scheduler had accounted to them.
    found: HashMap<ThreadId, Duration>,
    /// The accounts there were when the window began.
    earlier: HashMap<u32, Earlier>,
    /// The start of a following window. It has the accounts as read at the end, and the threads
    /// that they cover.
    next: HashMap<u32, Earlier>,
    ended: Vec<u32>,
    /// The machine's switches at the last reading, and those of the window.
    machine: u64,
    switches: u64,
    per_switch: Duration,
    /// What the kernel's side had missed when the window began.
    missed_before: u64,
    /// Threads of this window that have no account, or one that cannot be read.
    lost: u64,
}

/// An account at the beginning of a window.
struct Earlier {
    account: KernelAccount,
    /// What the thread did.
    state: AccountState,
    at: u64,
    /// It is of a process that is watched in this window.
    member: bool,
}

/// `BPF_NOEXIST` (bpf(2)).
const ONLY_NEW: u64 = 1;
/// The number of unneeded accounts above which it is worth detaching.
const MANY: usize = 2048;

impl Ebpf {
    /// Loads the program, and attaches it for a moment to measure its cost.
    pub(super) fn open() -> Result<Self, Unavailable> {
        if let Some(obstacle) = obstacle() {
            return Err(obstacle);
        }
        let btf = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        let kernel = KernelSide::load(&btf).map_err(|error| refused(&error))?;
        let (found, earlier, next, ended) =
            (HashMap::new(), HashMap::new(), HashMap::new(), Vec::new());
        let (machine, switches, per_switch, missed_before, lost) = (0, 0, Duration::ZERO, 0, 0);
        let mut ebpf = Self {
            kernel,
            found,
            earlier,
            next,
            ended,
            machine,
            switches,
            per_switch,
            missed_before,
            lost,
        };
        let cost = switch_cost::per_switch(&mut |work| {
            if work { ebpf.watch_own() } else { ebpf.kernel.stop() }
        });
        ebpf.per_switch = cost.map_err(|error| refused(&error))?;
        Ok(ebpf)
    }

    /// Watches the calling thread and those that it creates.
    fn watch_own(&mut self) -> io::Result<()> {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let tid = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        self.kernel.clear()?;
        self.kernel.name(&HashSet::from([pid.0.unsigned_abs()]))?;
        self.kernel.start()?;
        self.find(ThreadId { pid, tid, start: Stat::read(pid, tid)?.start });
        Ok(())
    }

    /// Begins the account of a thread that a look found. The kernel's side may have begun it at its
    /// creation, or an earlier window. Returns `false` if there is no room for it.
    fn find(&mut self, id: ThreadId) -> bool {
        let (tid, now) = (id.tid.0.unsigned_abs(), now());
        let ran = Schedstat::read(id.pid, id.tid).map_or(Duration::ZERO, |account| account.ran);
        self.found.insert(id, ran);
        let known = self.kernel.account(tid);
        // This thread may have ended since the look. Then that is its own account. Otherwise it
        // belongs to an earlier thread with this number, and nobody writes to it.
        let of_another = known
            .as_ref()
            .is_some_and(|known| known.state() == AccountState::Ended && known.id() != id);
        let begin = if of_another { 0 } else { ONLY_NEW };
        let begun = self
            .kernel
            .threads
            .insert(tid, KernelAccount::begin(id, now, ran).words(), begin)
            .is_ok();
        // It counted as one that is not watched any more. Its process was not listed yet when the
        // window began.
        if let (Some(earlier), Some(account)) = (self.earlier.get_mut(&tid), &known)
            && !earlier.member
            && earlier.account.begun() == account.begun()
        {
            *earlier =
                Earlier { account: account.clone(), state: account.state(), at: now, member: true };
        }
        begun || known.is_some() || self.kernel.threads.get(&tid, 0).is_ok()
    }

    /// Notes the accounts of a window that begins, and forgets those of threads that have ended.
    fn look_back(&mut self, roster: &Roster, members: &HashSet<u32>) -> io::Result<()> {
        let alive: HashMap<Tid, ThreadId> = roster.threads().map(|(_, id)| (id.tid, id)).collect();
        for tid in self.kernel.tids()? {
            let Some(account) = self.kernel.account(tid) else { continue };
            let id = alive.get(&Tid(tid as i32)).copied().unwrap_or_else(|| account.id());
            if account.state() == AccountState::Ended {
                let _ = self.kernel.threads.remove(&tid);
            } else {
                let at = now();
                let member = members.contains(&id.pid.0.unsigned_abs());
                let state = match account.state() {
                    AccountState::Unknown if member => self.steady(id, Duration::ZERO),
                    state => state,
                };
                self.earlier.insert(tid, Earlier { account, state, at, member });
            }
        }
        if self.earlier.values().filter(|earlier| !earlier.member).count() > MANY {
            self.kernel.stop()?;
            self.kernel.clear()?;
            self.earlier.clear();
            self.kernel.start()?;
        }
        Ok(())
    }

    /// The activity of a thread to which nothing happened in the window.
    fn steady(&self, id: ThreadId, spent: Duration) -> AccountState {
        let text =
            std::fs::read(format!("/proc/{}/task/{}/syscall", id.pid, id.tid)).unwrap_or_default();
        match Doing::parse(&text) {
            Doing::Locked => AccountState::Locked,
            Doing::Asleep => AccountState::Asleep,
            Doing::Runnable => {
                let before = self.found.get(&id).copied().unwrap_or_default();
                let ran =
                    Schedstat::read(id.pid, id.tid).map_or(Duration::ZERO, |account| account.ran);
                if ran.saturating_sub(before) > spent / 2 {
                    AccountState::Running
                } else {
                    AccountState::Waiting
                }
            }
        }
    }
}

impl LayerReader for Ebpf {
    fn pace(&self) -> Duration {
        COUNT
    }

    fn begin(&mut self, roster: &Roster) -> io::Result<()> {
        let members = pids(roster);
        (self.found, self.earlier, self.next, self.ended) = Default::default();
        if !self.kernel.attached() {
            self.kernel.clear()?;
            self.kernel.name(&members)?;
            self.kernel.start()?;
        } else {
            self.kernel.name(&members)?;
            self.look_back(roster, &members)?;
        }
        (self.missed_before, self.lost) = (self.kernel.missed()?, 0);
        // Attaching may take long on a crowded machine; it is not part of the window.
        self.machine = machine_switches();
        Ok(())
    }

    fn follow(&mut self, _: &Roster) -> io::Result<bool> {
        self.earlier = std::mem::take(&mut self.next);
        for tid in std::mem::take(&mut self.ended) {
            // The number may be that of another thread by now.
            if self
                .kernel
                .account(tid)
                .is_some_and(|account| account.state() == AccountState::Ended)
            {
                let _ = self.kernel.threads.remove(&tid);
            }
        }
        // For a thread without events, `/proc` will show the CPU time that it uses from now on.
        for earlier in
            self.earlier.values().filter(|earlier| earlier.account.state() == AccountState::Unknown)
        {
            let id = earlier.account.id();
            if let Some(ran) = self.found.get_mut(&id) {
                *ran = Schedstat::read(id.pid, id.tid).map_or(*ran, |account| account.ran);
            }
        }
        (self.missed_before, self.lost) = (self.kernel.missed()?, 0);
        Ok(true)
    }

    fn look(&mut self, roster: &Roster, _: Duration, counting: bool) -> io::Result<bool> {
        if counting {
            self.kernel.name(&pids(roster))?;
            // The first look finds older threads. The kernel's side counts new threads that have no
            // room.
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
        let before = std::mem::replace(&mut self.machine, machine_switches());
        self.switches = self.machine.saturating_sub(before);
        self.lost += self.kernel.missed()?.saturating_sub(self.missed_before);
        let alive: HashMap<Tid, ThreadId> = roster.threads().map(|(_, id)| (id.tid, id)).collect();
        let mut threads = Vec::new();
        for tid in self.kernel.tids()? {
            let Some(read) = self.kernel.account(tid) else {
                self.lost += 1;
                // A window that follows has this one's part of it, too.
                self.next.extend(self.earlier.remove(&tid).map(|earlier| (tid, earlier)));
                continue;
            };
            // A number is that of a thread only.
            let id = alive.get(&Tid(tid as i32)).copied().unwrap_or_else(|| read.id());
            let stat = Stat::read(id.pid, id.tid).ok().filter(|stat| stat.start == id.start);
            // The thread has gone from /proc. So its account has its name now, whatever was read
            // before.
            let account =
                if stat.is_none() { self.kernel.account(tid).unwrap_or(read) } else { read };
            let whole = account.clone();
            let account = match self.earlier.get(&tid) {
                // The number may be that of another thread by now.
                Some(earlier) if earlier.account.begun() == account.begun() => {
                    if !earlier.member {
                        let state = whole.state();
                        self.next
                            .insert(tid, Earlier { account: whole, state, at: end, member: false });
                        continue;
                    }
                    account.added(&earlier.account, earlier.state, earlier.at)
                }
                _ => account,
            };
            let state = match account.state() {
                // It ended before the program was attached.
                AccountState::Unknown if stat.is_none() => continue,
                AccountState::Unknown => {
                    self.steady(id, Duration::from_nanos(end.saturating_sub(account.begun())))
                }
                state => state,
            };
            if state == AccountState::Ended {
                self.ended.push(tid);
            } else {
                self.next.insert(tid, Earlier { account: whole, state, at: end, member: true });
            }
            threads.push(account.activity(id, stat.map(|stat| stat.comm), state, end));
        }
        Ok(threads)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.kernel.stop()
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
        f.debug_struct("Ebpf")
            .field("per_switch", &self.per_switch)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

/// The processes that are watched.
fn pids(roster: &Roster) -> HashSet<u32> {
    roster.members().iter().map(|member| member.pid.0.unsigned_abs()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::Scope;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    fn own(tid: Option<Tid>) -> ThreadId {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let tid = tid.unwrap_or(Tid(rustix::thread::gettid().as_raw_nonzero().get()));
        ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start }
    }

    #[test]
    fn a_thread_that_ends_after_a_look_at_it_keeps_its_account() {
        let mut ebpf = match Ebpf::open() {
            Ok(ebpf) => ebpf,
            Err(reason) => return pinwise_synthetic::not_judged(reason),
        };
        let roster = Roster::new(Scope::Processes(vec![own(None).pid])).unwrap();
        ebpf.begin(&roster).unwrap();
        let brief = std::thread::Builder::new()
            .name("ebpf-brief".into())
            .spawn(|| own(None))
            .unwrap()
            .join()
            .unwrap();
        // Joined is not yet switched out for the last time.
        let ended = |ebpf: &Ebpf| {
            ebpf.kernel
                .account(brief.tid.0.unsigned_abs())
                .is_some_and(|account| account.state() == AccountState::Ended)
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
            Err(reason) => return pinwise_synthetic::not_judged(reason),
        };
        // A separate process, whose threads nobody else starts. It goes on with each line that it
        // reads.
        let mut shell = Command::new("sh")
            .args(["-c", "read a; (read b); :"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = shell.stdin.take().unwrap();
        let roster = Roster::new(Scope::Processes(vec![Pid(shell.id() as i32)])).unwrap();
        ebpf.begin(&roster).unwrap();
        let mut filled = 0u32;
        // Numbers that no thread has.
        while ebpf.kernel.threads.insert(u32::MAX - filled, [0; account::WORDS], 0).is_ok() {
            filled += 1;
        }
        assert!(filled > 0 && roster.threads().count() == 1);
        lines.write_all(b"\n").unwrap();
        let begin = Instant::now();
        while ebpf.kernel.missed().unwrap() == ebpf.missed_before
            && begin.elapsed() < Duration::from_secs(20)
        {
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
