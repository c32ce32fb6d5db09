//! Programs for the end-to-end tests, played by the test binary itself, and what the tests share.
//!
//! The test binary starts itself with the name of one test as its argument. Then libtest runs only
//! that test. So it becomes the guardian (`__guardian`, the argument pinwise uses) or a program
//! under test (`__program`). Each program ends after five minutes at the latest.

use pinwise_linux::{Pid, Tid, affinity, process};
use pinwise_measure::{MeasureError, Measurement, Unit};
use pinwise_metric::Meter;
use pinwise_topology::{CpuSet, Machine};
use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Every program ends by then, whatever happens to its test.
pub(crate) const LIFE: Duration = Duration::from_secs(300);
/// Says which program to be.
pub(crate) const PROGRAM: &str = "PINWISE_TEST_PROGRAM";

/// The command and its arguments that play program `name`.
pub(crate) fn arguments() -> [&'static str; 4] {
    ["__program", "--exact", "--nocapture", "--test-threads=1"]
}

/// What a program of these tests prints if the kernel says that it is an old one. `None`: this
/// machine lacks `setarch`, and it was said.
pub(crate) fn on_old_kernel(program: &str) -> Option<String> {
    let mut command = Command::new("setarch");
    command.arg("--uname-2.6").arg(std::env::current_exe().unwrap()).args(arguments());
    match command.env(PROGRAM, program).output() {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            pinwise_synthetic::lacking("setarch");
            None
        }
    }
}

/// Spins on `name` until `end`.
pub(crate) fn spin(name: &str, life: Duration) -> thread::JoinHandle<()> {
    let end = Instant::now() + life;
    let spinner = move || {
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    };
    thread::Builder::new().name(name.into()).spawn(spinner).unwrap()
}

/// Threads `spin-0`, `spin-1`, … that use all they get. Prints a line when all have been started.
pub(crate) fn spinners(count: usize) {
    let threads: Vec<_> = (0..count).map(|index| spin(&format!("spin-{index}"), LIFE)).collect();
    println!("\nspinning");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A thread that spins, beside a child.
pub(crate) fn parent(child: Program) {
    spinners(1);
    drop(child);
}

/// A thread that spins. It ends with process `parent`, however that ends.
pub(crate) fn child(parent: i32) {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    if rustix::process::getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent) {
        spinners(1);
    }
}

/// Two threads. The second one ends when there is a file `0` in `folder`, and is created again. The
/// new one ends with a file `1`, the next with a file `2`.
pub(crate) fn respawner(folder: &Path) {
    let steady = spin("steady", LIFE);
    let end = Instant::now() + LIFE;
    for life in 0u32.. {
        let over = folder.join(life.to_string());
        let work = move || {
            while !over.exists() && Instant::now() < end {
                let next = Instant::now() + Duration::from_millis(1);
                while Instant::now() < next {
                    std::hint::spin_loop();
                }
            }
        };
        thread::Builder::new().name("worker".into()).spawn(work).unwrap().join().unwrap();
        if Instant::now() > end {
            break;
        }
    }
    steady.join().unwrap();
}

/// A thread that creates a short one every few ms, as servers with a thread per request do. The
/// last forty of them live.
pub(crate) fn breeder() {
    let end = Instant::now() + LIFE;
    let breed = move || {
        let mut lives = VecDeque::new();
        while Instant::now() < end {
            let (life, over) = channel::<()>();
            let child = thread::Builder::new().name("short".into()).spawn(move || over.recv());
            drop(child);
            lives.push_back(life);
            if lives.len() > 40 {
                lives.pop_front();
            }
            let next = Instant::now() + Duration::from_millis(10);
            while Instant::now() < next {
                std::hint::spin_loop();
            }
        }
    };
    thread::Builder::new().name("breeder".into()).spawn(breed).unwrap().join().unwrap();
}

/// CPU time that this thread has had.
fn own_time() -> Duration {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(counts.split(' ').next().unwrap().parse().unwrap())
}

/// Works until this thread has had 0.6 s of CPU time. On a busy machine that takes longer. So the
/// start is always a small share of a run.
fn work() {
    while own_time() < Duration::from_millis(600) {
        let next = Instant::now() + Duration::from_millis(1);
        while Instant::now() < next {
            std::hint::spin_loop();
        }
    }
}

/// Two threads, `w-0` and `w-1`, that work for 0.6 s each. It prints the CPUs that they are
/// confined to as one number. That is ten times the first plus the second, or 99 if they are not
/// confined. `busy` more threads work beside them.
pub(crate) fn workers(busy: usize) {
    let work_and_tell = move || {
        work();
        let mask = affinity::get(Tid(0)).unwrap();
        if mask.len() == 1 { mask.first().unwrap().0 } else { 9 }
    };
    let named = |name: &str| thread::Builder::new().name(name.into());
    let others: Vec<_> = (0..busy).map(|_| named("extra").spawn(work).unwrap()).collect();
    let threads = ["w-0", "w-1"].map(|name| named(name).spawn(work_and_tell).unwrap());
    let [first, second] = threads.map(|thread| thread.join().unwrap());
    others.into_iter().for_each(|thread| thread.join().unwrap());
    println!("\nconfined to {}", 10 * first + second);
}

/// Two threads as those of [`workers`]. The first gives itself all CPUs again and again.
pub(crate) fn wanderer() {
    let all = affinity::get(Tid(0)).unwrap();
    let wander = move || {
        while own_time() < Duration::from_millis(600) {
            affinity::set(Tid(0), &all).unwrap();
        }
    };
    let named = |name: &str| thread::Builder::new().name(name.into());
    let threads = [named("w-0").spawn(wander).unwrap(), named("w-1").spawn(work).unwrap()];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Prints far more than a pipe holds, then a result.
pub(crate) fn flood() {
    let line = "x".repeat(1000);
    let mut stdout = std::io::stdout().lock();
    for number in 0..50_000 {
        writeln!(stdout, "result {number} {line}").unwrap();
    }
    writeln!(stdout, "result 7").unwrap();
}

/// A started program that is ended with its test.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn start(name: &str) -> Self {
        let mut command = Command::new("/proc/self/exe");
        command.args(arguments()).env(PROGRAM, name);
        Self(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.0.id() as i32)
    }

    /// Its threads of that name, once there are `count`. The thread that has started them sleeps,
    /// unless it has that name too. On a busy machine it may else wait for a CPU as if it worked.
    pub(crate) fn threads(&self, comm: &str, count: usize) -> Vec<Tid> {
        let found = threads_of(self.pid(), comm, count);
        if !comm.is_empty() {
            self.sleeps();
        }
        found
    }

    /// Waits until its first thread sleeps, and the one that plays a program.
    pub(crate) fn sleeps(&self) {
        until("its first threads to sleep", || {
            let mut first = threads_of(self.pid(), "__program", 0);
            first.push(self.pid().main());
            first.into_iter().all(|tid| state(tid) == Some('S'))
        });
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The state in `/proc`, which is the first word after the name. A name may have any characters.
pub(crate) fn state(tid: Tid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The threads of a process whose name begins with `comm`, once there are `count`.
pub(crate) fn threads_of(pid: Pid, comm: &str, count: usize) -> Vec<Tid> {
    let mut found = Vec::new();
    until(&format!("{count} threads {comm} of {pid}"), || {
        let listed = process::threads(pid).unwrap_or_default();
        let is_it = |tid: &Tid| {
            let name =
                std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
            name.starts_with(comm)
        };
        found = listed.into_iter().filter(is_it).collect();
        found.len() >= count
    });
    found
}

/// Waits until `condition` holds; fails after two minutes. A busy machine reaches it later.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "not within two minutes: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The masks of threads.
pub(crate) fn masks(threads: &[Tid]) -> Vec<CpuSet> {
    threads.iter().map(|&tid| affinity::get(tid).unwrap()).collect()
}

/// This machine as far as the tests need it: the CPUs this process may use.
pub(crate) fn machine() -> Machine {
    let own = affinity::get(Tid(0)).unwrap();
    let highest = own.iter().last().unwrap().0;
    let mut machine = Machine::from_shape(&format!("{}", highest + 1)).unwrap();
    machine.allowed = own;
    machine
}

/// Whether the tests have enough CPUs. One is too few to see a pin. Then it says so.
pub(crate) fn enough_cpus() -> bool {
    let enough = affinity::get(Tid(0)).unwrap().len() > 1;
    if !enough {
        pinwise_synthetic::lacking("a second CPU");
    }
    enough
}

/// A meter that waits as asked and answers what `read` says.
pub(crate) struct Reading<F>(F, Unit);

pub(crate) fn reading<F: FnMut() -> f64 + Send>(read: F) -> Box<Reading<F>> {
    Box::new(Reading(read, Unit::rate("things/s")))
}

impl<F: FnMut() -> f64 + Send> Meter for Reading<F> {
    fn unit(&self) -> &Unit {
        &self.1
    }

    fn measure(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Measurement, MeasureError> {
        let end = Instant::now() + settle + window;
        while Instant::now() < end {
            if cancelled() {
                return Err(MeasureError::interrupted());
            }
            thread::sleep(
                Duration::from_millis(5).min(end.saturating_duration_since(Instant::now())),
            );
        }
        Ok(Measurement::new((self.0)(), window))
    }
}
