//! More threads than files may be open. A test of its own: the limit is that of the process.

use pinwise_counters::{CountSource, SoftwareSource};
use pinwise_linux::{Pid, ThreadId, Tid, thread::Stat};
use pinwise_measure::CounterEvent;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::sync::mpsc::channel;

#[test]
fn threads_that_take_too_many_files_are_counted_from_proc() {
    const THREADS: usize = 30;
    let pid = Pid(std::process::id() as i32);
    let start = |_| {
        let (wake, sleep) = channel::<()>();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            tell.send(Tid(rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
            let _ = sleep.recv();
        });
        let tid = told.recv().unwrap();
        (wake, ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start })
    };
    let (_wake, threads): (Vec<_>, Vec<_>) = (0..THREADS).map(start).unzip();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let few = (open + 2 * THREADS) as u64;
    setrlimit(
        Resource::Nofile,
        rustix::process::Rlimit { current: Some(few), ..getrlimit(Resource::Nofile) },
    )
    .unwrap();
    let mut source = SoftwareSource::open();
    assert!(source.read(&threads).iter().all(|one| matches!(one, Ok(None))));
    assert!(matches!(source, SoftwareSource::Proc(_)), "{source:?}");
    let counts: Vec<_> = source.read(&threads).into_iter().map(Result::unwrap).collect();
    let switches = |counts: &Option<_>| -> Option<f64> {
        counts.as_ref().and_then(|counts: &pinwise_measure::EventCounts| {
            counts.get(CounterEvent::ContextSwitches)
        })
    };
    assert!(counts.iter().all(|counts| switches(counts).is_some()), "{counts:?}");
}
