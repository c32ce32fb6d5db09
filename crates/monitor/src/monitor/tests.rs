//! Tests of [`Monitor`].

use super::*;
use crate::ThreadActivity;
use crate::counters::Counters;
use crate::layer_reader::LOOK;
use crate::thread_watch::{Doing, ThreadWatch};
use pinwise_linux::thread::{Pid, SchedulerTimes, StartTime, Stat, Tid};
use pinwise_topology::CpuId;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{Builder, JoinHandle, sleep};

fn id() -> ThreadId {
    ThreadId { pid: Pid(1), tid: Tid(1), start: StartTime(1) }
}

fn stat() -> Stat {
    let (start, cpu) = (StartTime(1), Some(CpuId(1)));
    Stat { comm: "x".into(), state: 'S', parent: Pid(1), group: 1, faults: 0, ticks: 0, start, cpu }
}

/// Of a thread that slept for the time that it did not run.
pub(crate) fn thread(elapsed: Duration, ran: Duration) -> ThreadActivity {
    let mut watch = ThreadWatch::new(Duration::ZERO, Counters::default());
    watch.count(
        elapsed,
        Counters {
            account: SchedulerTimes { ran, ..SchedulerTimes::default() },
            ..Counters::default()
        },
    );
    let slept = elapsed.saturating_sub(ran);
    ThreadActivity { elapsed, ran, slept, ..watch.activity(id(), stat()) }
}

pub(crate) fn activity(elapsed: Duration, threads: Vec<ThreadActivity>) -> Activity {
    Activity {
        layer: Layer::Proc,
        elapsed,
        threads,
        stretched: None,
        lost: 0,
        overhead: Overhead::default(),
    }
}

fn counters(ran_ms: u64, waited_ms: u64) -> Counters {
    let account = SchedulerTimes {
        ran: Duration::from_millis(ran_ms),
        waited: Duration::from_millis(waited_ms),
        slices: 1,
    };
    Counters { account, voluntary: 2 * ran_ms, involuntary: ran_ms, migrations: Some(ran_ms / 10) }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn what_a_thread_does_is_read_from_its_system_call() {
    let futex = format!("{} 0x7ffd 0x80 0x0 0x0 0x0 0x0 0x7ffc 0x7f41\n", libc::SYS_futex);
    assert_eq!(Doing::parse(futex.as_bytes()), Doing::Locked);
    assert_eq!(Doing::parse(b"449 0x1\n"), Doing::Locked);
    assert_eq!(Doing::parse(b"running\n"), Doing::Runnable);
    assert_eq!(Doing::parse(b"-1 0x7ffc 0x7f41\n"), Doing::Asleep);
    assert_eq!(Doing::parse(b"2020 0x0"), Doing::Asleep, "the whole number counts");
    assert_eq!(Doing::parse(b""), Doing::Asleep);
}

#[test]
fn looks_split_the_sleep_that_is_known_exactly() {
    let mut watch = ThreadWatch::new(ms(5), counters(100, 10));
    for doing in [Doing::Locked, Doing::Runnable, Doing::Locked, Doing::Locked, Doing::Asleep] {
        watch.see(doing);
    }
    watch.count(ms(105), counters(150, 20));
    let activity = watch.activity(id(), stat());
    assert_eq!(
        (activity.elapsed, activity.ran, activity.waited, activity.slept),
        (ms(100), ms(50), ms(10), ms(40))
    );
    assert_eq!((activity.locked, activity.looks), (Some(ms(30)), 5));
    assert_eq!((activity.voluntary, activity.involuntary, activity.migrations), (100, 50, Some(5)));
}

/// Periods that are a multiple of the time between two looks, and others. The looks are as good as
/// random ones. A share p of n looks has a relative standard deviation of sqrt((1 - p) / (p n)).
#[test]
fn looks_show_the_time_at_locks_of_a_thread_that_repeats_itself() {
    for [ran, locked, asleep] in
        [[100, 150, 40], [3_000, 5_000, 2_000], [1_000, 1_000, 8_000], [2_000, 33_000, 5_000]]
    {
        let period = ran + locked + asleep;
        let doing = |at: Duration| match at.as_micros() as u64 % period {
            phase if phase < ran => Doing::Runnable,
            phase if phase < ran + locked => Doing::Locked,
            _ => Doing::Asleep,
        };
        let (mut watch, mut at) = (ThreadWatch::new(ms(0), Counters::default()), ms(0));
        for number in 0..5000 {
            at += unsteady(LOOK, number);
            watch.see(doing(at));
        }
        let share = |part: u64| at.mul_f64(part as f64 / period as f64);
        let account = SchedulerTimes { ran: share(ran), ..SchedulerTimes::default() };
        watch.count(at, Counters { account, ..Counters::default() });
        let seen = watch.activity(id(), stat()).locked.unwrap();
        let off = seen.div_duration_f64(share(locked)) - 1.0;
        let (p, n) =
            (locked as f64 / (locked + asleep) as f64, 5000.0 * (1.0 - ran as f64 / period as f64));
        let deviation = ((1.0 - p) / (p * n)).sqrt();
        assert!(off.abs() < 4.0 * deviation, "{locked} of {period} us: {off}, {deviation}");
    }
}

#[test]
fn a_thread_that_never_ran_waits_at_no_lock() {
    let sleeper = |ran| {
        let mut watch = ThreadWatch::new(ms(0), counters(0, 0));
        watch.see(Doing::Locked);
        watch.count(ms(128), counters(ran, 0));
        watch.activity(id(), stat())
    };
    let idle = sleeper(0);
    assert_eq!(idle.locked, Some(ms(128)), "the layer says where it sleeps");
    assert_eq!(activity(ms(128), vec![idle.clone()]).lock(), Some(0.0));
    let both = activity(ms(128), vec![idle, sleeper(64)]);
    assert_eq!(both.lock(), Some(0.25), "64 ms of 256 ms");
}

#[test]
fn locks_that_may_not_be_seen_are_not_called_zero() {
    let unseen = ThreadWatch::new(ms(0), counters(0, 0)).activity(id(), stat());
    assert_eq!(unseen.locked, None);
    assert_eq!(activity(ms(10), vec![unseen.clone()]).lock(), None);
    let mut busy = ThreadWatch::new(ms(0), counters(0, 0));
    busy.see(Doing::Runnable);
    busy.count(ms(10), counters(10, 0));
    let busy = busy.activity(id(), stat());
    assert_eq!(busy.locked, Some(ms(0)));
    assert_eq!(activity(ms(10), vec![unseen, busy]).lock(), Some(0.0));
}

#[test]
fn accounts_that_are_stale_do_not_make_more_time_than_there_was() {
    let mut watch = ThreadWatch::new(ms(0), counters(0, 0));
    watch.count(ms(10), counters(14, 9));
    let activity = watch.activity(id(), stat());
    assert_eq!((activity.ran, activity.waited, activity.slept), (ms(10), ms(0), ms(0)));
}

#[test]
fn rates_and_shares_are_those_of_all_threads() {
    let thread = |ran: u64| {
        let mut watch = ThreadWatch::new(ms(0), counters(0, 0));
        watch.see(Doing::Locked);
        watch.count(ms(100), counters(ran, 0));
        watch.activity(id(), stat())
    };
    let mut activity = activity(ms(100), vec![thread(80), thread(40)]);
    assert_eq!(activity.overhead_share(), Some(0.0));
    assert!((activity.lock().unwrap() - 0.4).abs() < 1e-9);
    assert!((activity.utilization(2) - 0.6).abs() < 1e-9);
    assert!((activity.voluntary_rate() - 2400.0).abs() < 1e-6);
    assert!((activity.involuntary_rate() - 1200.0).abs() < 1e-6);
    assert!((activity.migration_rate().unwrap() - 120.0).abs() < 1e-6);
    activity.threads[0].migrations = None;
    assert_eq!(activity.migration_rate(), None);
}

/// A thread of this process with a given name, which ends when its channel closes.
fn start(
    name: &str,
    work: impl FnOnce(Receiver<()>) + Send + 'static,
) -> (Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = channel();
    (stop, Builder::new().name(name.to_owned()).spawn(move || work(stopped)).unwrap())
}

#[test]
fn threads_that_compute_wait_for_each_other_and_sleep_are_told_apart() {
    let ready = Arc::new(Barrier::new(4));
    let [first, second] = [(); 2].map(|()| Arc::new(Mutex::new(())));
    let (held, held_second) = (Cell::new(Some(first.lock().unwrap())), second.lock().unwrap());
    let (passes, passed) = channel();
    let computes = start("mon-computes", {
        let ready = ready.clone();
        move |stopped| {
            ready.wait();
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {}
        }
    });
    let locked = start("mon-locked", {
        let (ready, first, second) = (ready.clone(), first.clone(), second.clone());
        move |_| {
            ready.wait();
            drop(first.lock());
            passes.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
            drop(second.lock());
        }
    });
    let sleeps = start("mon-sleeps", {
        let ready = ready.clone();
        move |stopped| {
            ready.wait();
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                sleep(Duration::from_millis(1));
            }
        }
    });
    ready.wait();
    let own = Pid(rustix::process::getpid().as_raw_nonzero().get());
    let mut monitor = Monitor::with(Scope::Processes(vec![own]), Layer::Proc).unwrap();
    // The first pause is after the first look. It lasts until the thread waits for the second lock.
    let pause = |time| {
        if held.take().is_some() {
            let call = format!("/proc/self/task/{}/syscall", passed.recv().unwrap());
            while Doing::parse(&std::fs::read(&call).unwrap()) != Doing::Locked {
                sleep(ms(1));
            }
        }
        sleep(time);
    };
    let activity = monitor.watch(ms(300), &pause, &|| false).unwrap();
    drop(held_second);
    for (stop, thread) in [computes, locked, sleeps] {
        drop(stop);
        thread.join().unwrap();
    }
    let named = |name: &str| activity.threads.iter().find(|thread| thread.comm == name).unwrap();
    for thread in &activity.threads {
        assert_eq!(thread.ran + thread.waited + thread.slept, thread.elapsed);
    }
    let (computes, locked, sleeps) =
        (named("mon-computes"), named("mon-locked"), named("mon-sleeps"));
    assert!(computes.ran > Duration::ZERO && computes.looks > 0);
    // It sleeps at locks only.
    assert_eq!(locked.locked, Some(locked.slept), "{locked:?}");
    assert!(locked.ran > Duration::ZERO && locked.slept > Duration::ZERO, "{locked:?}");
    assert_eq!(sleeps.locked, Some(Duration::ZERO), "{sleeps:?}");
    assert!(sleeps.voluntary > 0, "{sleeps:?}");
    assert!(activity.lock().unwrap() > 0.0 && activity.elapsed >= ms(300));
}

#[test]
fn a_program_that_has_ended_ends_the_watch() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let mut monitor = Monitor::best(Scope::Trees(vec![Pid(child.id() as i32)])).unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    let activity = monitor.watch(Duration::from_secs(600), &sleep, &|| false).unwrap();
    assert!(!monitor.alive() && began.elapsed() < Duration::from_secs(300), "{activity:?}");
}

/// A layer whose looks fail. It keeps what it has begun as long as it lives.
#[derive(Debug)]
struct Failing {
    _begun: Arc<()>,
}

impl LayerReader for Failing {
    fn pace(&self) -> Duration {
        LOOK
    }

    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        Ok(())
    }

    fn look(&mut self, _: &Roster, _: Duration, _: bool) -> io::Result<bool> {
        Err(io::Error::other("no"))
    }

    fn end(&mut self, _: &Roster) -> io::Result<Vec<ThreadActivity>> {
        Ok(Vec::new())
    }
}

#[test]
fn a_layer_that_failed_within_a_window_is_not_kept_for_others() {
    let begun = Arc::new(());
    let reader = Box::new(Failing { _begun: Arc::clone(&begun) });
    let own = Scope::Processes(vec![Pid(rustix::process::getpid().as_raw_nonzero().get())]);
    let mut monitor = Monitor::new(own, Layer::Perf, reader, Vec::new()).unwrap();
    assert!(monitor.watch(ms(1), &sleep, &|| false).is_err());
    drop(monitor);
    assert_eq!(
        Arc::strong_count(&begun),
        1,
        "it goes with the monitor, and what it has begun with it"
    );
}

/// A layer that notes what it is asked to do.
#[derive(Debug)]
struct Noting(Arc<Mutex<Vec<&'static str>>>);

impl Noting {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

impl LayerReader for Noting {
    fn pace(&self) -> Duration {
        LOOK
    }

    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        self.note("begin");
        Ok(())
    }

    fn follow(&mut self, _: &Roster) -> io::Result<bool> {
        self.note("follow");
        Ok(true)
    }

    fn glimpse(&mut self) -> bool {
        self.note("glimpse");
        false
    }

    fn look(&mut self, _: &Roster, _: Duration, _: bool) -> io::Result<bool> {
        self.note("look");
        Ok(false)
    }

    fn end(&mut self, _: &Roster) -> io::Result<Vec<ThreadActivity>> {
        self.note("end");
        Ok(Vec::new())
    }
}

/// A layer each of whose windows takes 5 ms to read out. It can or cannot go on where one has
/// ended.
#[derive(Debug)]
struct Slow {
    follows: bool,
    asked: Arc<Mutex<u32>>,
}

impl LayerReader for Slow {
    fn pace(&self) -> Duration {
        LOOK
    }

    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        Ok(())
    }

    fn follow(&mut self, _: &Roster) -> io::Result<bool> {
        *self.asked.lock().unwrap() += 1;
        Ok(self.follows)
    }

    fn look(&mut self, _: &Roster, _: Duration, _: bool) -> io::Result<bool> {
        Ok(false)
    }

    fn end(&mut self, _: &Roster) -> io::Result<Vec<ThreadActivity>> {
        sleep(ms(5));
        Ok(Vec::new())
    }
}

#[test]
fn what_it_takes_to_read_a_window_out_does_not_part_it_from_the_next() {
    for follows in [true, false] {
        let asked = Arc::new(Mutex::new(0));
        let reader = Box::new(Slow { follows, asked: Arc::clone(&asked) });
        let own = Scope::Processes(vec![Pid(rustix::process::getpid().as_raw_nonzero().get())]);
        let mut monitor = Monitor::new(own, Layer::Proc, reader, Vec::new()).unwrap();
        // A busy machine may come between two of them; not between all.
        let windows = (0..20).map(|_| monitor.watch(Duration::ZERO, &sleep, &|| false).unwrap());
        let longest = windows.map(|seen| seen.elapsed).find(|elapsed| *elapsed >= ms(5));
        assert!(*asked.lock().unwrap() > 0, "a window may follow");
        assert!(!follows || longest.is_some(), "and begins where the one before has ended");
        monitor.failed = true;
    }
}

#[test]
fn what_threads_do_is_read_before_all_else_and_a_window_that_follows_has_no_first_look() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let own = Scope::Processes(vec![Pid(rustix::process::getpid().as_raw_nonzero().get())]);
    let reader = Box::new(Noting(Arc::clone(&notes)));
    let mut monitor = Monitor::new(own, Layer::Proc, reader, Vec::new()).unwrap();
    let check = || notes.lock().unwrap().push("check");
    let stop_at_second = || {
        check();
        notes.lock().unwrap().iter().filter(|note| **note == "check").count() == 2
    };
    monitor.watch(Duration::from_secs(3600), &|_| {}, &stop_at_second).unwrap();
    let window = ["check", "look", "glimpse", "check", "look", "end"];
    assert_eq!(std::mem::take(&mut *notes.lock().unwrap()), [&["begin"][..], &window].concat());
    // However long this thread had to wait for its CPU.
    monitor.ended = Some((Instant::now(), Instant::now() + Duration::from_secs(60)));
    monitor.watch(Duration::from_secs(3600), &|_| {}, &stop_at_second).unwrap();
    let following = ["follow", "check", "glimpse", "check", "look", "end"];
    assert_eq!(std::mem::take(&mut *notes.lock().unwrap()), following);
    // After a rest nothing is known of what was between.
    monitor.ended = Some((Instant::now(), Instant::now() + Duration::from_secs(60)));
    monitor.rest().unwrap();
    monitor.watch(Duration::ZERO, &|_| {}, &|| false).unwrap();
    assert_eq!(*notes.lock().unwrap(), ["begin", "look", "end"]);
    monitor.failed = true;
}

/// A layer each of whose looks takes 2 ms of CPU time.
#[derive(Debug)]
struct Dear {
    stretches: bool,
}

impl LayerReader for Dear {
    fn pace(&self) -> Duration {
        LOOK
    }

    fn stretches(&self) -> bool {
        self.stretches
    }

    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        Ok(())
    }

    fn look(&mut self, _: &Roster, _: Duration, _: bool) -> io::Result<bool> {
        let begin = overhead::own_time();
        while overhead::own_time() < begin + ms(2) {}
        Ok(false)
    }

    fn end(&mut self, _: &Roster) -> io::Result<Vec<ThreadActivity>> {
        Ok(Vec::new())
    }
}

/// A program that ends with the test, whatever becomes of it.
struct Sleeping(std::process::Child);

impl Drop for Sleeping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn expensive_looks_become_rarer_where_they_may_and_a_note_says_so() {
    // Of a program that uses no CPU time looks may take a hundredth of one CPU.
    let program = Sleeping(std::process::Command::new("sleep").arg("600").spawn().unwrap());
    for stretches in [true, false] {
        let program = Scope::Processes(vec![Pid(program.0.id() as i32)]);
        let mut monitor =
            Monitor::new(program, Layer::Proc, Box::new(Dear { stretches }), Vec::new()).unwrap();
        let pauses = std::cell::RefCell::new(Vec::new());
        let enough = || pauses.borrow().len() >= 4;
        let seen = monitor
            .watch(Duration::from_secs(3600), &|time| pauses.borrow_mut().push(time), &enough)
            .unwrap();
        // The first look begins the window; what it takes says nothing about those that follow.
        let (first, later) = (pauses.borrow()[0], pauses.borrow()[1..].to_vec());
        assert!(first <= LOOK.mul_f64(1.5));
        if stretches {
            assert!(later.iter().all(|&pause| pause >= ms(100)), "{later:?}");
            assert!(monitor.pace() >= ms(200));
            // The next window of the same program does the same. It counts its first look and its
            // last.
            let looks = std::cell::Cell::new(0);
            let twice = || looks.replace(looks.get() + 1) == 1;
            let window =
                monitor.watch(Duration::from_secs(3600), &|_| sleep(ms(30)), &twice).unwrap();
            assert!(window.stretched.unwrap() >= ms(30) && monitor.pace() >= ms(200), "{window:?}");
        } else {
            assert!(
                later.iter().all(|&pause| pause <= LOOK.mul_f64(1.5)) && seen.stretched.is_none(),
                "{later:?}"
            );
        }
        // It has prepared nothing that others could use.
        monitor.failed = true;
    }
}
