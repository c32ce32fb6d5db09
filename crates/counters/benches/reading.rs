//! What one reading of 100 threads costs, by each source that this machine permits.
//!
//! `cargo bench -p pinwise-counters`

use divan::Bencher;
use pinwise_counters::{CountSource, PerfSource, ProcCounts, SoftwareSource};
use pinwise_linux::{Pid, ThreadId, Tid, thread::Stat};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

const THREADS: usize = 100;

fn main() {
    divan::main();
}

/// Threads that sleep until this is dropped.
struct Sleepers(Vec<(Sender<()>, JoinHandle<()>)>);

impl Sleepers {
    fn start() -> (Self, Vec<ThreadId>) {
        let pid = Pid(std::process::id() as i32);
        let start = |_| {
            let (wake, sleep) = channel::<()>();
            let (tell, told) = channel();
            let thread = std::thread::spawn(move || {
                tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
                let _ = sleep.recv();
            });
            let tid = Tid(told.recv().unwrap());
            let start = Stat::read(pid, tid).unwrap().start;
            ((wake, thread), ThreadId { pid, tid, start })
        };
        let (sleepers, threads) = (0..THREADS).map(start).unzip();
        (Self(sleepers), threads)
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for (wake, thread) in self.0.drain(..) {
            drop(wake);
            let _ = thread.join();
        }
    }
}

fn read(bencher: Bencher, source: &mut dyn CountSource) {
    let (_sleepers, threads) = Sleepers::start();
    source.read(&threads);
    let all = |source: &mut dyn CountSource| source.read(&threads).iter().all(Result::is_ok);
    bencher.bench_local(|| assert!(all(source)));
}

#[divan::bench]
fn software_events(bencher: Bencher) {
    read(bencher, &mut SoftwareSource::open());
}

#[divan::bench]
fn proc_files(bencher: Bencher) {
    read(bencher, &mut SoftwareSource::Proc(ProcCounts::default()));
}

#[divan::bench]
fn hardware_counters(bencher: Bencher) {
    match PerfSource::open() {
        Ok(mut source) => read(bencher, &mut source),
        Err(error) => eprintln!("{error}"),
    }
}
