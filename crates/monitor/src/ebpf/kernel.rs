//! The program in the kernel and what it shares with pinwise: accounts of threads, and the watched
//! processes.

use super::account::{KernelAccount, Words};
use super::obstacle::with_causes;
use aya::maps::{Array, HashMap as Map, MapData};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, EbpfError, EbpfLoader};
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

/// Built from `bpf/monitor.bpf.c` by `bpf/build.sh`.
static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/monitor.bpf.o"));
/// Its programs and their tracepoints. Attached in this order, they catch new threads before any
/// event of old ones.
const PROGRAMS: [(&str, &str); 5] = [
    ("forked", "sched_process_fork"),
    ("replaced", "sched_process_exec"),
    ("ends", "sched_process_exit"),
    ("woken", "sched_wakeup"),
    ("switched", "sched_switch"),
];

/// An account is half written for some nanoseconds. Only a hypervisor that takes the CPU away can
/// make that longer.
const PATIENCE: Duration = Duration::from_millis(20);

/// The kernel's side.
pub(super) struct KernelSide {
    bpf: aya::Ebpf,
    pub(super) threads: Map<MapData, u32, Words>,
    processes: Map<MapData, u32, u32>,
    missed: Array<MapData, u64>,
    attached: Vec<(&'static str, BtfTracePointLinkId)>,
}

impl KernelSide {
    pub(super) fn load(btf: &Btf) -> Result<Self, EbpfError> {
        let mut bpf = EbpfLoader::new().btf(Some(btf)).load(OBJECT)?;
        for (name, tracepoint) in PROGRAMS {
            program(&mut bpf, name)?.load(tracepoint, btf)?;
        }
        // The object is a part of this program and has these maps.
        let mut map = |name: &str| {
            bpf.take_map(name).ok_or(aya::maps::MapError::InvalidName { name: name.into() })
        };
        let (threads, processes) =
            (Map::try_from(map("threads")?)?, Map::try_from(map("processes")?)?);
        let missed = Array::try_from(map("lost")?)?;
        Ok(Self { bpf, threads, processes, missed, attached: Vec::new() })
    }

    /// Forgets every account; only while detached.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        for tid in self.tids()? {
            // Gone already is as good.
            let _ = self.threads.remove(&tid);
        }
        Ok(())
    }

    /// The threads that have accounts.
    pub(super) fn tids(&self) -> io::Result<Vec<u32>> {
        self.threads.keys().collect::<Result<_, _>>().map_err(io::Error::other)
    }

    /// How many new threads and processes have found no room so far.
    pub(super) fn missed(&self) -> io::Result<u64> {
        self.missed.get(&0, 0).map_err(io::Error::other)
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        for (name, _) in PROGRAMS {
            let link = program(&mut self.bpf, name).and_then(BtfTracePoint::attach);
            self.attached
                .push((name, link.map_err(|error| io::Error::other(with_causes(&error)))?));
        }
        Ok(())
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        for (name, link) in self.attached.drain(..) {
            let done = program(&mut self.bpf, name).and_then(|program| program.detach(link));
            done.map_err(|error| io::Error::other(with_causes(&error)))?;
        }
        Ok(())
    }

    /// Whether it is at work.
    pub(super) fn attached(&self) -> bool {
        !self.attached.is_empty()
    }

    /// Makes the kernel's side watch what these processes fork, and no others. What they forked
    /// before is already among them.
    pub(super) fn name(&mut self, pids: &HashSet<u32>) -> io::Result<()> {
        let named: HashSet<u32> =
            self.processes.keys().collect::<Result<_, _>>().map_err(io::Error::other)?;
        // Where there is no room new threads are found by looking.
        pids.difference(&named).for_each(|pid| drop(self.processes.insert(pid, 0, 0)));
        named.difference(pids).for_each(|pid| drop(self.processes.remove(pid)));
        Ok(())
    }

    /// A consistent account; one that is being written is read again. `None` if there is none, or
    /// it is never complete.
    pub(super) fn account(&self, tid: u32) -> Option<KernelAccount> {
        let begin = Instant::now();
        loop {
            let account = KernelAccount::parse(self.threads.get(&tid, 0).ok()?);
            if account.is_some() || begin.elapsed() > PATIENCE {
                return account;
            }
        }
    }
}

fn program<'a>(bpf: &'a mut aya::Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, ProgramError> {
    bpf.program_mut(name).ok_or_else(|| ProgramError::InvalidName { name: name.into() })?.try_into()
}
