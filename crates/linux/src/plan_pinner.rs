//! Pins a program's threads by name while they come and go.
//!
//! Names are those of [`crate::thread_names`]: comm and order of creation. Both settle only while a
//! program starts. A new thread carries the comm of its creator until it gives itself one. `pigz`
//! becomes `pigz#0` when the second appears. So it computes the names again whenever a thread or a
//! comm has changed. It moves a thread whose name has another place.
//!
//! A new thread inherits the affinity of its creator. A thread that no plan names may appear with
//! the CPUs of a pinned one. It gets what its creator had, as it would have without pinwise. The
//! rule is in the module `guardian::touched`.
//!
//! *Limit.* Between two looks a new thread runs where its creator is pinned. Looks are 1 ms apart
//! while threads appear, then up to 20 ms.

use crate::affinity::{self, AffinityError};
use crate::guardian::of_heir;
use crate::realtime::share_with_others;
use crate::roster::{Changes, Roster, Scope};
use crate::thread::{Pid, Stat, ThreadId, Tid};
use crate::thread_names::{self, UnnamedThread};
use crate::undo_notes::UndoNotes;
use pinwise_measure::Thread;
use pinwise_topology::CpuSet;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time between looks while something changes.
const SHORTEST: Duration = Duration::from_millis(1);
/// The time between looks when nothing has changed for long, and between searches for new
/// processes.
const LONGEST: Duration = Duration::from_millis(20);
/// A thread of age t is asked for its comm again after t/8, and after this time at the latest.
const RENAMED: Duration = Duration::from_millis(250);

/// Whether threads that have ended count when others of their comm are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedThreads {
    /// They count. Every run of a program that is watched from its start then has the same names,
    /// however its threads end.
    Count,
    /// They do not count. In a program that already runs, a worker that is created again then has
    /// the name of the one before.
    Forgotten,
}

/// Threads to pin, by name, in a program that runs.
#[derive(Debug)]
pub struct PlanPinner {
    roster: Roster,
    wanted: Vec<(String, CpuSet)>,
    ended: EndedThreads,
    notes: Option<UndoNotes>,
    /// In the order of creation.
    seen: Vec<PinnerThread>,
    /// The places in `seen` of those that have not ended, ascending.
    living: Vec<usize>,
    /// The places in `seen` of those that have ended, ascending, by comm.
    ended_of: HashMap<String, Vec<usize>>,
    /// The wanted names for which there was a thread, with what the threads of each process had
    /// before.
    found: HashMap<usize, HashMap<Pid, CpuSet>>,
    interval: Duration,
    looked_for_processes: Instant,
    /// How many threads were ordered, in all looks.
    #[cfg(test)]
    ordered: usize,
}

/// A thread of the program.
#[derive(Debug)]
pub struct PinnerThread {
    /// The thread.
    pub id: ThreadId,
    /// Its name as the kernel has it.
    pub comm: String,
    process: usize,
    /// Whether it appeared since the last call of `pin_new`.
    new: bool,
    since: Instant,
    /// When its comm was read last.
    asked: Instant,
    /// Which of the wanted names it has.
    wanted: Option<usize>,
    /// The wanted name whose CPUs it has, or was refused.
    place: Option<usize>,
    /// Whether it was refused there.
    refused: bool,
    /// What it had before its first pin.
    own: Option<CpuSet>,
}

/// A thread that was found and pinned, or refused.
#[derive(Debug)]
pub struct Pinned {
    /// Its name in the plan.
    pub name: String,
    /// The thread.
    pub tid: Tid,
    /// Where it is to run.
    pub cpus: CpuSet,
    /// Why it is not there.
    pub result: Result<(), AffinityError>,
}

/// Why pinning ended early.
#[derive(Debug, thiserror::Error)]
pub enum PlanPinnerError {
    /// `/proc` or the cgroup cannot be read.
    #[error(transparent)]
    Threads(#[from] io::Error),
    /// An affinity that a pin replaces cannot be noted.
    #[error("{}: {cause}", folder.display())]
    Notes {
        /// The folder of the notes.
        folder: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

impl From<PlanPinnerError> for io::Error {
    fn from(error: PlanPinnerError) -> Self {
        match error {
            PlanPinnerError::Threads(cause) | PlanPinnerError::Notes { cause, .. } => cause,
        }
    }
}

impl PlanPinner {
    /// Begins to follow the threads of a program.
    ///
    /// # Errors
    /// `/proc` or the cgroup cannot be read.
    pub fn new(
        scope: Scope,
        wanted: Vec<(String, CpuSet)>,
        ended: EndedThreads,
    ) -> io::Result<Self> {
        let roster = Roster::new(scope)?;
        let mut pinner = Self {
            roster,
            wanted,
            ended,
            notes: None,
            seen: Vec::new(),
            living: Vec::new(),
            ended_of: HashMap::new(),
            found: HashMap::new(),
            interval: SHORTEST,
            looked_for_processes: Instant::now(),
            #[cfg(test)]
            ordered: 0,
        };
        let first = pinner.roster.threads().map(|(member, id)| (id, member.root)).collect();
        pinner.meet(first);
        pinner.find_wanted();
        // Whatever their affinity is now, it is not inherited from a thread that we pinned.
        pinner.seen.iter_mut().for_each(|seen| seen.new = false);
        share_with_others(1.0);
        Ok(pinner)
    }

    /// Writes the affinities that pins replace to `notes`, so that they can be put back.
    pub fn noting(self, notes: UndoNotes) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// Pins the threads that have appeared or changed their names since the last call, and returns
    /// them. Takes about 20 us if none has.
    ///
    /// # Errors
    /// `/proc` or the cgroup cannot be read, or a replaced affinity cannot be noted. A refused
    /// thread is no error; it is reported once.
    pub fn pin_new(&mut self) -> Result<Vec<Pinned>, PlanPinnerError> {
        let now = Instant::now();
        let changes = if self.interval >= LONGEST || now - self.looked_for_processes >= LONGEST {
            self.looked_for_processes = now;
            self.roster.refresh()?
        } else {
            self.roster.refresh_threads()
        };
        self.take_in(changes, now);
        self.place()
    }

    /// Forgets or counts the threads that are gone, and meets the new ones. Its time grows with the
    /// threads that live, not with those that have ended.
    fn take_in(&mut self, changes: Changes, now: Instant) {
        let gone: HashSet<ThreadId> = changes.gone.into_iter().collect();
        let seen = &self.seen;
        match self.ended {
            EndedThreads::Count => {
                let ended = self.living.extract_if(.., |index| gone.contains(&seen[*index].id));
                ended.for_each(|index| {
                    let alike = self.ended_of.entry(seen[index].comm.clone()).or_default();
                    alike.insert(alike.partition_point(|&other| other < index), index);
                });
            }
            EndedThreads::Forgotten if gone.is_empty() => {}
            EndedThreads::Forgotten => {
                self.seen.retain(|seen| !gone.contains(&seen.id));
                self.living = (0..self.seen.len()).collect();
            }
        }
        let new: Vec<(ThreadId, usize)> = changes
            .new
            .iter()
            .filter_map(|id| Some((*id, self.roster.member(id.pid)?.root)))
            .collect();
        let came_or_went = !new.is_empty() || !gone.is_empty();
        self.meet(new);
        let changed = self.ask_for_names(now) || came_or_went;
        if changed {
            self.find_wanted();
        }
        self.interval = if changed { SHORTEST } else { (self.interval * 5 / 4).min(LONGEST) };
    }

    /// The time until the next call of `pin_new`: short while threads appear.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The names for which no thread was pinned or refused so far.
    pub fn missing(&self) -> Vec<&str> {
        let missing = |(index, (name, _))| (!self.found.contains_key(&index)).then_some(name);
        self.wanted
            .iter()
            .map(|(name, cpus)| (name.as_str(), cpus))
            .enumerate()
            .filter_map(missing)
            .collect()
    }

    /// Whether each wanted name has a thread that lives and has its place, or was refused there.
    pub fn is_complete(&self) -> bool {
        let placed: HashSet<usize> = self.living().filter_map(|seen| seen.place).collect();
        placed.len() == self.wanted.len()
    }

    /// The processes of the threads that have a place, and the CPUs of that.
    pub fn places(&self) -> impl Iterator<Item = (Pid, &CpuSet)> {
        self.living().filter_map(|seen| Some((seen.id.pid, &self.wanted[seen.place?].1)))
    }

    /// The processes with threads that were refused their place.
    pub fn refused(&self) -> BTreeSet<Pid> {
        self.living().filter(|seen| seen.refused).map(|seen| seen.id.pid).collect()
    }

    /// The threads that have lost their places to another, by name, with what each has now.
    pub fn lost(&self) -> impl Iterator<Item = (&str, CpuSet)> {
        self.living().filter(|seen| !seen.refused).filter_map(|seen| {
            let (name, cpus) = &self.wanted[seen.place?];
            let now = affinity::get(seen.id.tid).ok()?;
            (now != *cpus).then_some((name.as_str(), now))
        })
    }

    /// Whether every process has ended.
    pub fn ended(&self) -> bool {
        self.roster.members().is_empty()
    }

    /// The CPUs that its threads were given, those that are offline included.
    pub fn own_cpus(&self) -> CpuSet {
        let own = self.living().filter_map(|seen| affinity::own(seen.id.tid).ok());
        own.fold(CpuSet::new(), |all, own| all.union(&own))
    }

    /// The threads that have not ended, in the order of creation.
    pub fn living(&self) -> impl Iterator<Item = &PinnerThread> {
        self.living.iter().map(|&index| &self.seen[index])
    }

    /// The threads, in the order of creation. Those that have ended are among them if they count.
    pub fn threads(&self) -> &[PinnerThread] {
        &self.seen
    }

    /// The names of the [threads](Self::threads). Takes some milliseconds for a thousand threads.
    pub fn names(&self) -> Vec<Thread> {
        let found: Vec<UnnamedThread<'_>> = self
            .seen
            .iter()
            .map(|seen| UnnamedThread { comm: &seen.comm, process: seen.process })
            .collect();
        thread_names::name(&found)
    }

    /// Finds which of the wanted names each thread has. A name depends on all threads. So names are
    /// made again only when one has come, gone or changed its comm.
    fn find_wanted(&mut self) {
        if self.wanted.is_empty() {
            return;
        }
        #[cfg(test)]
        (self.ordered += self.living.len());
        // Programs that start many processes have thousands of threads that ended. So no name is
        // made, and roles are left out.
        let wanted = self.wanted.iter().enumerate().rev();
        let index: HashMap<(&str, Option<usize>), usize> = wanted
            .flat_map(|(index, (name, _))| {
                thread_names::readings(name).map(move |reading| (reading, index))
            })
            .collect();
        let living = self.living.iter().map(|&place| (place, self.seen[place].comm.as_str()));
        let orders = thread_names::orders(living.clone(), &self.ended_of);
        let found: Vec<Option<usize>> = living
            .zip(orders)
            .map(|((_, comm), order)| index.get(&(comm, order)).copied())
            .collect();
        self.living.iter().zip(found).for_each(|(&place, wanted)| self.seen[place].wanted = wanted);
    }

    fn meet(&mut self, new: Vec<(ThreadId, usize)>) {
        let since = Instant::now();
        self.living.extend(self.seen.len()..self.seen.len() + new.len());
        self.seen.extend(new.into_iter().map(|(id, process)| {
            let comm = Stat::read(id.pid, id.tid).map(|stat| stat.comm).unwrap_or_default();
            PinnerThread {
                id,
                comm,
                process,
                new: true,
                since,
                asked: since,
                wanted: None,
                place: None,
                refused: false,
                own: None,
            }
        }));
    }

    /// Reads the comm of threads again, of young ones often. Returns whether one has changed.
    fn ask_for_names(&mut self, now: Instant) -> bool {
        let mut changed = false;
        for &index in &self.living {
            let seen = &mut self.seen[index];
            if now - seen.asked >= ((seen.asked - seen.since) / 8).min(RENAMED)
                && let Ok(stat) = Stat::read(seen.id.pid, seen.id.tid)
            {
                seen.asked = now;
                changed |= stat.comm != seen.comm;
                seen.comm = stat.comm;
            }
        }
        changed
    }

    /// As [`Self::places`], after the next call of [`Self::pin_new`].
    pub fn next_places(&self) -> impl Iterator<Item = (Pid, &CpuSet)> {
        self.living().filter_map(|seen| Some((seen.id.pid, &self.wanted[seen.wanted?].1)))
    }

    /// The pins that [`Self::pin_new`] would make on the threads that still live. Each has the CPUs
    /// it may use now. Does nothing.
    pub fn preview(&self) -> Vec<(Pinned, CpuSet)> {
        let moves = self.moves().into_iter().filter_map(|(index, wanted)| {
            let (name, cpus) = self.wanted[wanted?].clone();
            let tid = self.seen[index].id.tid;
            let (now, result) = match affinity::get(tid) {
                Ok(now) => (now, Ok(())),
                Err(AffinityError::Gone(_)) => return None,
                Err(error) => (CpuSet::new(), Err(error)),
            };
            Some((Pinned { name, tid, cpus, result }, now))
        });
        moves.collect()
    }

    /// The living threads that are not where their names say, and which wanted name each has.
    fn moves(&self) -> Vec<(usize, Option<usize>)> {
        let living = self.living.iter().map(|&index| (index, &self.seen[index]));
        let moves = living.filter_map(|(index, seen)| match seen.wanted {
            Some(_) => (seen.wanted != seen.place).then_some((index, seen.wanted)),
            None => (seen.place.is_some() || seen.new && self.inherited(seen.id.tid))
                .then_some((index, None)),
        });
        moves.collect()
    }

    /// Notes the affinities of threads before they are pinned for the first time.
    fn note(&mut self, moves: &[(usize, Option<usize>)]) -> Result<(), PlanPinnerError> {
        let Some(notes) = &self.notes else { return Ok(()) };
        type Masks = Vec<(ThreadId, CpuSet)>;
        let mut of: BTreeMap<Pid, (Masks, Masks)> = BTreeMap::new();
        for &(index, wanted) in moves {
            let PinnerThread { id, place, .. } = self.seen[index];
            // One that is gone will not be pinned.
            let (Some(wanted), Ok(own)) = (wanted, affinity::own(id.tid)) else { continue };
            let (replaced, pins) = of.entry(id.pid).or_default();
            pins.push((id, self.wanted[wanted].1.clone()));
            if place.is_none() {
                replaced.push((id, own));
            }
        }
        for (pid, (replaced, pins)) in of {
            if let Some(member) = self.roster.member(pid) {
                let cannot = |cause| PlanPinnerError::Notes { folder: notes.folder.clone(), cause };
                notes.note(member, &replaced, &pins).map_err(cannot)?;
            }
        }
        Ok(())
    }

    fn place(&mut self) -> Result<Vec<Pinned>, PlanPinnerError> {
        let moves = self.moves();
        self.note(&moves)?;
        let mut news = Vec::new();
        for (index, wanted) in moves {
            let id = self.seen[index].id;
            match wanted {
                Some(wanted) => {
                    let (name, cpus) = self.wanted[wanted].clone();
                    if self.seen[index].place.is_none() {
                        self.seen[index].own = self.own(&self.seen[index]);
                    }
                    let result = affinity::set(id.tid, &cpus);
                    if matches!(result, Err(AffinityError::Gone(_))) {
                        continue;
                    }
                    let before = self.found.entry(wanted).or_default().entry(id.pid).or_default();
                    if let Some(own) = &self.seen[index].own {
                        *before = before.union(own);
                    }
                    self.seen[index].refused = result.is_err();
                    news.push(Pinned { name, tid: id.tid, cpus, result });
                }
                None => {
                    self.seen[index].refused = false;
                    let seen = &self.seen[index];
                    if let Some(own) = seen.own.clone().or_else(|| self.own(seen)) {
                        // It has ended, or its process may not be touched: then it was not pinned
                        // by us either.
                        let _ = affinity::set(id.tid, &own);
                    }
                }
            }
            self.seen[index].place = wanted;
        }
        self.living.iter().for_each(|&index| self.seen[index].new = false);
        Ok(news)
    }

    /// Whether a thread has exactly the CPUs to which one was pinned. That one may have ended.
    fn inherited(&self, tid: Tid) -> bool {
        affinity::own(tid)
            .is_ok_and(|own| self.found.keys().any(|&used| self.wanted[used].1 == own))
    }

    /// What a thread has that was not pinned yet, or what its creator had if it inherited a pin.
    fn own(&self, thread: &PinnerThread) -> Option<CpuSet> {
        let now = affinity::own(thread.id.tid).ok()?;
        if !thread.new {
            return Some(now);
        }
        let used = self.found.iter().filter(|(used, _)| self.wanted[**used].1 == now);
        let creators = used.flat_map(|(_, before)| before).map(|(&pid, own)| (pid, own));
        let others = self.living().filter(|seen| !seen.new && seen.place.is_none());
        let others =
            others.filter_map(|seen| Some((seen.id.pid, affinity::own(seen.id.tid).ok()?)));
        of_heir(thread.id.pid, &now, creators, others).or(Some(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use crate::thread::StartTime;
    use std::process::{Command, Stdio};

    /// A shell that waits for a line.
    fn program() -> (Killed, Pid) {
        let mut command = Command::new("sh");
        let child = command
            .args(["-c", "echo started; read -r line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let pid = Pid(child.id() as i32);
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(child.stdout.take().unwrap()),
            &mut line,
        )
        .unwrap();
        (Killed(child), pid)
    }

    #[test]
    fn threads_are_pinned_by_name_and_those_not_found_are_known() {
        let (_child, pid) = program();
        let mine = affinity::get(pid.main()).unwrap();
        let one: CpuSet = mine.first().into_iter().collect();
        let wanted = vec![("sh".to_owned(), one.clone()), ("nobody".to_owned(), one.clone())];
        let mut pinner =
            PlanPinner::new(Scope::Trees(vec![pid]), wanted, EndedThreads::Forgotten).unwrap();
        let news = pinner.pin_new().unwrap();
        assert_eq!(news.len(), 1);
        assert_eq!((news[0].name.as_str(), news[0].tid), ("sh", pid.main()));
        assert!(news[0].result.is_ok());
        assert_eq!(affinity::get(pid.main()).unwrap(), one);
        assert_eq!(pinner.missing(), ["nobody"]);
        assert!(pinner.pin_new().unwrap().is_empty(), "nothing new, nothing done");
        assert!(!pinner.ended());
    }

    /// It has a name that no plan has, from now on.
    #[test]
    fn a_thread_that_is_renamed_gets_its_own_affinity_back() {
        let mut command = Command::new("sh");
        let child = command.args(["-c", "read -r line; exec sleep 60"]).stdin(Stdio::piped());
        let mut child = Killed(child.spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let cpus: Vec<CpuSet> = affinity::get(pid.main())
            .unwrap()
            .iter()
            .map(|cpu| [cpu].into_iter().collect())
            .collect();
        let [one, other, ..] = &cpus[..] else { return };
        let wanted = vec![("sh".to_owned(), one.clone())];
        let mut pinner =
            PlanPinner::new(Scope::Trees(vec![pid]), wanted, EndedThreads::Forgotten).unwrap();
        // The program confines itself after it was first seen.
        affinity::set(pid.main(), other).unwrap();
        assert_eq!(pinner.pin_new().unwrap().len(), 1);
        assert_eq!(affinity::get(pid.main()).unwrap(), *one);
        std::io::Write::write_all(&mut child.0.stdin.take().unwrap(), b"go\n").unwrap();
        // The shell becomes another program when it gets to it; bounded by 10 s.
        for _ in 0..1000 {
            pinner.pin_new().unwrap();
            if affinity::get(pid.main()).unwrap() == *other {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("it keeps the pin");
    }

    #[test]
    fn a_look_that_finds_nothing_new_makes_no_names_and_lists_no_threads_anew() {
        let (_child, pid) = program();
        let mine = affinity::get(pid.main()).unwrap();
        let wanted = vec![("nobody".to_owned(), mine)];
        for ended in [EndedThreads::Count, EndedThreads::Forgotten] {
            let scope = Scope::Trees(vec![pid]);
            let mut pinner = PlanPinner::new(scope, wanted.clone(), ended).unwrap();
            let list = pinner.living.as_ptr();
            for _ in 0..20 {
                pinner.pin_new().unwrap();
                assert_eq!(pinner.living.as_ptr(), list, "the list is the same");
            }
            assert_eq!(pinner.ordered, 1, "the program has one thread all the time");
        }
    }

    #[test]
    fn a_look_orders_the_living_threads_and_counts_the_ended_ones() {
        let (_child, pid) = program();
        let mine = affinity::get(pid.main()).unwrap();
        // Threads that cannot be read have no comm.
        let wanted = vec![("#999".to_owned(), mine)];
        let looks = |ended| {
            let scope = Scope::Trees(vec![pid]);
            let mut pinner = PlanPinner::new(scope, wanted.clone(), ended).unwrap();
            let thread = |n| ThreadId { pid, tid: Tid(i32::MAX), start: StartTime(n) };
            for n in 1..=1000 {
                let changes = Changes { new: vec![thread(n)], gone: vec![thread(n - 1)] };
                pinner.take_in(changes, Instant::now());
            }
            let last = pinner.living().last().unwrap().wanted;
            (pinner.ordered, pinner.living().count(), pinner.threads().len(), last)
        };
        let ordered = 1 + 2 * 1000;
        assert_eq!(looks(EndedThreads::Count), (ordered, 2, 1001, Some(0)));
        assert_eq!(looks(EndedThreads::Forgotten), (ordered, 2, 2, None));
    }

    #[test]
    fn a_refused_thread_is_reported_once() {
        let (_child, pid) = program();
        let none: CpuSet = [pinwise_topology::CpuId(8191)].into_iter().collect();
        let mut pinner = PlanPinner::new(
            Scope::Trees(vec![pid]),
            vec![("sh".to_owned(), none)],
            EndedThreads::Forgotten,
        )
        .unwrap();
        let news = pinner.pin_new().unwrap();
        assert!(matches!(news[0].result, Err(AffinityError::Excluded { .. })));
        assert!(pinner.pin_new().unwrap().is_empty());
    }

    #[test]
    fn a_child_does_not_inherit_the_pin_of_its_parent() {
        let mut command = Command::new("sh");
        let child = command
            .args(["-c", "read -r line; sleep 10 & wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut child = Killed(child.spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let mine = affinity::get(pid.main()).unwrap();
        let one: CpuSet = mine.first().into_iter().collect();
        let mut pinner = PlanPinner::new(
            Scope::Trees(vec![pid]),
            vec![("sh".to_owned(), one)],
            EndedThreads::Forgotten,
        )
        .unwrap();
        assert_eq!(pinner.pin_new().unwrap().len(), 1);
        std::io::Write::write_all(&mut child.0.stdin.take().unwrap(), b"go\n").unwrap();
        // The child appears when the shell gets to it; bounded by 10 s.
        for _ in 0..1000 {
            pinner.pin_new().unwrap();
            if let Some(born) = pinner.roster.members().iter().find(|member| member.pid != pid) {
                assert_eq!(affinity::get(born.pid.main()).unwrap(), mine);
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("no child");
    }

    #[test]
    fn a_thread_that_ended_after_it_was_seen_is_in_no_preview() {
        let (child, pid) = program();
        let wanted = vec![("sh".to_owned(), affinity::get(pid.main()).unwrap())];
        let pinner =
            PlanPinner::new(Scope::Trees(vec![pid]), wanted, EndedThreads::Forgotten).unwrap();
        assert_eq!(pinner.preview().len(), 1);
        drop(child);
        assert!(pinner.preview().is_empty());
    }

    #[test]
    fn a_program_that_ended_has_no_processes() {
        let (child, pid) = program();
        let mut pinner =
            PlanPinner::new(Scope::Trees(vec![pid]), Vec::new(), EndedThreads::Forgotten).unwrap();
        drop(child);
        // A process that was killed may take a moment to go; bounded by 10 s.
        for _ in 0..1000 {
            pinner.pin_new().unwrap();
            if pinner.ended() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("still there");
    }
}
