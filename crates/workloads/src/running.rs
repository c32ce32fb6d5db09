//! A workload that runs: its threads, its counters, its end.

use crate::Error;
use crate::packet_work::PacketWork;
use crate::pipeline::RunningPipeline;
use crate::polling::RING;
use crate::program::{BuiltInProgram, BuiltInWorkload};
use crate::ring::ring;
use crate::traffic::Traffic;
use crate::{analyzer::Analyzer, flows::FlowTable, forwarder::Forwarder, matcher::Matcher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What an instance has done since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Packets that have been through the whole pipeline.
    pub packets: u64,
    /// Bytes of those that left.
    pub bytes: u64,
    /// Packets that did not leave. They were no valid IP packets, expired (time to live), or could
    /// not be decoded.
    pub dropped: u64,
}

/// What an instance did in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalCounts {
    /// Its name, which its threads' names begin with: `ipfwd0`.
    pub name: String,
    /// Packets and bytes.
    pub counts: Counts,
    /// What its P thread found, each with its number.
    pub findings: Vec<(&'static str, u64)>,
}

/// A running workload. Dropping it stops it.
pub struct RunningWorkload {
    instances: Vec<RunningInstance>,
    threads: Arc<RunningThreads>,
    started: Instant,
}

struct RunningInstance {
    name: String,
    pipeline: Arc<RunningPipeline>,
    receiver: JoinHandle<()>,
    processor: JoinHandle<Box<dyn PacketWork>>,
    transmitter: JoinHandle<()>,
}

/// The threads that have not ended yet, for who waits for the last of them.
#[derive(Default)]
struct RunningThreads {
    state: Mutex<ThreadsState>,
    changed: Condvar,
}

#[derive(Default)]
struct ThreadsState {
    running: usize,
    panicked: bool,
}

/// Held by a thread while it runs; notifies [`RunningThreads`] when it ends, also by a panic.
struct Presence(Arc<RunningThreads>);

impl Presence {
    fn new(threads: &Arc<RunningThreads>) -> Self {
        threads.state().running += 1;
        Self(Arc::clone(threads))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.panicked |= thread::panicking();
        self.0.changed.notify_all();
    }
}

impl RunningThreads {
    fn state(&self) -> MutexGuard<'_, ThreadsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BuiltInProgram {
    /// The state of this program's P thread before the first packet; `seed` fills its tables.
    pub fn processor(self, seed: u64) -> Box<dyn PacketWork> {
        match self {
            Self::PacketAnalyzer => Box::new(Analyzer::new()),
            Self::AhoCorasick => Box::new(Matcher::new()),
            Self::Stateful => Box::new(FlowTable::new()),
            ipfwd => Box::new(Forwarder::new(ipfwd, seed)),
        }
    }
}

impl BuiltInWorkload {
    /// Starts all instances on `traffic`, or each on [that of its
    /// program](crate::BuiltInProgram::traffic). Each ends after `limit` packets. Without a limit
    /// they run until they are stopped. `seed` makes the traffic and fills the tables.
    pub fn start(
        &self,
        traffic: Option<Arc<Traffic>>,
        seed: u64,
        limit: Option<u64>,
    ) -> Result<RunningWorkload, Error> {
        if traffic.as_ref().is_some_and(|traffic| traffic.frames() == 0) {
            return Err(Error::NoTraffic);
        }
        // Filling a large table takes a while; packets are counted from when all instances can
        // start.
        let mut ready = Vec::new();
        for (program, instances) in self.parts() {
            let traffic = traffic.clone().unwrap_or_else(|| Arc::new(program.traffic(seed)));
            ready.extend(
                (0..instances).map(|_| (program, program.processor(seed), Arc::clone(&traffic))),
            );
        }
        let mut running = RunningWorkload {
            instances: Vec::new(),
            threads: Arc::default(),
            started: Instant::now(),
        };
        for (number, (program, processor, traffic)) in ready.into_iter().enumerate() {
            let name = format!("{}{number}", program.stem());
            // An error drops `running`, which stops the instances before this one.
            let instance = RunningInstance::start(
                name,
                processor,
                &traffic,
                limit.unwrap_or(u64::MAX),
                &running.threads,
            )?;
            running.instances.push(instance);
        }
        Ok(running)
    }
}

impl RunningInstance {
    fn start(
        name: String,
        mut processor: Box<dyn PacketWork>,
        traffic: &Arc<Traffic>,
        limit: u64,
        threads: &Arc<RunningThreads>,
    ) -> Result<Self, Error> {
        let pipeline = Arc::new(RunningPipeline::new(traffic.longest(), limit));
        let (to_p, from_r) = ring(RING);
        let (to_t, from_p) = ring(RING);
        // Where the system refuses a thread, those already started see this and end.
        let refused = |_: &Error| pipeline.stop();

        let (shared, traffic) = (Arc::clone(&pipeline), Arc::clone(traffic));
        let receiver = spawn(format!("{name}-R"), threads, move || shared.receive(&traffic, to_p))
            .inspect_err(refused)?;
        let shared = Arc::clone(&pipeline);
        let process = move || {
            shared.process(&mut *processor, from_r, to_t);
            processor
        };
        let processor = spawn(format!("{name}-P"), threads, process).inspect_err(refused)?;
        let shared = Arc::clone(&pipeline);
        let transmitter = spawn(format!("{name}-T"), threads, move || shared.transmit(from_p))
            .inspect_err(refused)?;
        Ok(Self { name, pipeline, receiver, processor, transmitter })
    }

    fn counts(&self) -> Counts {
        let counters = &self.pipeline.counters;
        Counts {
            packets: counters.packets.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            dropped: counters.dropped.load(Ordering::Relaxed),
        }
    }
}

fn spawn<T: Send + 'static>(
    name: String,
    threads: &Arc<RunningThreads>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    let presence = Presence::new(threads);
    let thread = thread::Builder::new().name(name.clone()).spawn(move || {
        let _presence = presence;
        work()
    });
    thread.map_err(|source| Error::Spawn { thread: name, source })
}

impl RunningWorkload {
    /// Time since the threads were started.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Packets of all instances that have been through their pipelines so far.
    pub fn packets(&self) -> u64 {
        self.instances.iter().map(|instance| instance.counts().packets).sum()
    }

    /// Sleeps until all instances have reached their limit, or one has failed: true; or until
    /// `timeout` is over: false.
    pub fn wait(&self, timeout: Duration) -> bool {
        let running = |state: &mut ThreadsState| state.running > 0 && !state.panicked;
        let (state, _) = self
            .threads
            .changed
            .wait_timeout_while(self.threads.state(), timeout, running)
            .unwrap_or_else(PoisonError::into_inner);
        state.running == 0 || state.panicked
    }

    /// Ends all threads, and says what each instance did.
    pub fn stop(mut self) -> Result<Vec<FinalCounts>, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<Vec<FinalCounts>, Error> {
        for instance in &self.instances {
            instance.pipeline.stop();
        }
        let ended = self.instances.drain(..).map(|instance| {
            let counts = instance.counts();
            let RunningInstance { name, receiver, processor, transmitter, .. } = instance;
            let panicked = |thread: &str| Error::Panicked { thread: format!("{name}-{thread}") };
            receiver.join().map_err(|_| panicked("R"))?;
            transmitter.join().map_err(|_| panicked("T"))?;
            let findings = processor.join().map_err(|_| panicked("P"))?.findings();
            Ok(FinalCounts { counts, findings, name })
        });
        // All are joined before the first failure is reported.
        ended.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Drop for RunningWorkload {
    fn drop(&mut self) {
        // The thread that panicked has printed its error. No caller is left to return it to.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BuiltInProgram;
    use crate::frame::Layout;
    use std::fs;

    #[test]
    fn threads_are_named_after_program_instance_and_stage() {
        let running = BuiltInWorkload::parse("aho-corasick:2").unwrap();
        let running = running.start(Some(Arc::new(Traffic::generate(1, 4, 16))), 1, None).unwrap();
        let mut names: Vec<String> = Vec::new();
        // A thread names itself when it first runs.
        while names.len() < 6 {
            names = fs::read_dir("/proc/self/task")
                .unwrap()
                .filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok())
                .map(|name| name.trim().to_owned())
                .filter(|name| name.starts_with("aho") && name.len() == 6)
                .collect();
        }
        names.sort();
        assert_eq!(names, ["aho0-P", "aho0-R", "aho0-T", "aho1-P", "aho1-R", "aho1-T"]);
        assert!(!running.wait(Duration::from_millis(1)), "without a limit it goes on");
        assert_eq!(
            running.stop().unwrap().iter().map(|summary| &*summary.name).collect::<Vec<_>>(),
            ["aho0", "aho1"]
        );
    }

    #[test]
    fn programs_side_by_side_have_packets_and_threads_of_their_own() {
        let running =
            BuiltInWorkload::parse("intadd+stateful:2").unwrap().start(None, 3, Some(500)).unwrap();
        assert!(running.wait(Duration::from_secs(60)));
        let summaries = running.stop().unwrap();
        assert_eq!(
            summaries.iter().map(|summary| &*summary.name).collect::<Vec<_>>(),
            ["ipfwd0", "flow1", "flow2"]
        );
        let alone = BuiltInWorkload::parse("stateful").unwrap().start(None, 3, Some(500)).unwrap();
        assert!(alone.wait(Duration::from_secs(60)));
        let alone = alone.stop().unwrap().remove(0);
        assert!(
            summaries[1..]
                .iter()
                .all(|one| one.counts == alone.counts && one.findings == alone.findings)
        );
        assert_ne!(summaries[0].counts, alone.counts, "its own packets");
    }

    /// What three threads find on a stream of packets is what one loop finds.
    #[test]
    fn every_program_finds_through_its_threads_what_it_finds_alone() {
        for program in BuiltInProgram::ALL {
            if matches!(program, BuiltInProgram::Hash1Mem | BuiltInProgram::HashNMem) {
                continue; // 64 MiB take a second to fill in a debug build.
            }
            let (traffic, packets) = (Arc::new(Traffic::generate(6, 128, 700)), 3000);
            let workload = BuiltInWorkload::new(vec![program; 2]).unwrap();
            let running = workload.start(Some(Arc::clone(&traffic)), 9, Some(packets)).unwrap();
            assert!(running.wait(Duration::from_secs(60)), "{program} ends by itself");
            let mut alone = program.processor(9);
            let mut bytes = 0;
            for n in 0..packets {
                alone.process(traffic.frame(n), &Layout::of(traffic.frame(n)).unwrap());
                bytes += traffic.frame(n).len() as u64;
            }
            for summary in running.stop().unwrap() {
                assert_eq!(summary.counts, Counts { packets, bytes, dropped: 0 }, "{program}");
                assert_eq!(summary.findings, alone.findings(), "{program}");
            }
        }
    }

    #[test]
    fn a_panic_in_one_thread_ends_the_wait_and_is_named() {
        struct Faulty;
        impl PacketWork for Faulty {
            fn process(&mut self, _: &[u8], _: &Layout) -> crate::PacketAction {
                panic!("on purpose")
            }
            fn findings(&self) -> Vec<(&'static str, u64)> {
                Vec::new()
            }
        }
        let threads = Arc::default();
        let traffic = Arc::new(Traffic::generate(1, 4, 16));
        let instance =
            RunningInstance::start("bad0".into(), Box::new(Faulty), &traffic, u64::MAX, &threads)
                .unwrap();
        let running =
            RunningWorkload { instances: vec![instance], threads, started: Instant::now() };
        assert!(running.wait(Duration::from_secs(60)));
        assert_eq!(
            running.stop().unwrap_err().to_string(),
            "thread bad0-P panicked: a bug in pinwise, see its message above"
        );
    }

    #[test]
    fn a_pool_without_frames_is_refused() {
        let workload = BuiltInWorkload::parse("intadd").unwrap();
        assert!(matches!(workload.start(Some(Arc::default()), 1, None), Err(Error::NoTraffic)));
    }
}
