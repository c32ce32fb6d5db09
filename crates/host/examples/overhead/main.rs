//! What watching costs a program whose threads wait for each other: `bench/monitor.sh`.
//!
//! A program runs all the time and tells what it has done so far. Windows in which it is watched in one of the ways and windows in
//! which it is not alternate in random order; the slowdown is that of the windows of one round, so that slow changes of the machine
//! do not matter.
//!
//! ```text
//! overhead [--window MS] [--rounds N] [KIND...]      the table
//! overhead --program KIND                            one of the programs
//! ```

mod contention;

use contention::KINDS;
use pinwise_host::{Activity, Layer, Monitor, Pid, Scope};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A program that runs.
struct Program {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Program {
    fn start(kind: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--program", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (ask, answer) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        Ok(Self { child, ask, answer: BufReader::new(answer) })
    }

    /// What it has done, and when it says so, in seconds.
    fn done(&mut self) -> Result<(f64, f64)> {
        self.ask.write_all(b"\n")?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        let (count, at) = line.trim().split_once(' ').ok_or("no answer")?;
        Ok((count.parse()?, at.parse::<f64>()? * 1e-9))
    }

    fn scope(&self) -> Scope {
        Scope::Processes(vec![Pid(self.child.id() as i32)])
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Watched by a layer, or by looking that often.
#[derive(Clone, Copy)]
enum Watch {
    Layer(Layer),
    Looking(Duration),
}

impl Watch {
    fn monitor(self, scope: Scope) -> Result<Monitor> {
        Ok(match self {
            Self::Layer(layer) => Monitor::with(scope, layer)?,
            Self::Looking(pace) => Monitor::looking(scope, pace)?,
        })
    }
}

/// A way to watch.
struct Arm {
    name: &'static str,
    watch: Option<Watch>,
    /// Work per second in each round.
    rates: Vec<f64>,
    activities: Vec<Activity>,
}

fn arms(program: &Program) -> Vec<Arm> {
    let millisecond = Duration::from_millis(1);
    let ways = [
        ("not watched", None),
        ("not watched, again", None),
        ("proc, 10 ms", Some(Watch::Looking(10 * millisecond))),
        ("proc, 1 ms", Some(Watch::Looking(millisecond))),
        ("perf", Some(Watch::Layer(Layer::Perf))),
        ("ebpf", Some(Watch::Layer(Layer::Ebpf))),
    ];
    let allowed = |watch: &Option<Watch>| match watch.map(|watch| watch.monitor(program.scope())) {
        Some(Err(error)) => {
            eprintln!("left out: {error}");
            false
        }
        _ => true,
    };
    let ways = ways.into_iter().filter(|(_, watch)| allowed(watch));
    ways.map(|(name, watch)| Arm { name, watch, rates: Vec::new(), activities: Vec::new() }).collect()
}

/// Mean and half of its 95 % interval; samples of 20 and more, for which the normal quantile will do.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 1.96 * (variance / n).sqrt())
}

fn table(kind: &str, window: Duration, rounds: usize) -> Result<()> {
    let mut program = Program::start(kind)?;
    std::thread::sleep(Duration::from_millis(200));
    let mut arms = arms(&program);
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        for last in (1..order.len()).rev() {
            // xorshift64
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            order.swap(last, (seed % (last as u64 + 1)) as usize);
        }
        for index in order {
            let arm = &mut arms[index];
            // Prepared and put away outside of what is measured.
            let mut monitor = arm.watch.map(|watch| watch.monitor(program.scope())).transpose()?;
            let (before, from) = program.done()?;
            match &mut monitor {
                None => std::thread::sleep(window),
                Some(monitor) => arm.activities.push(monitor.watch(window, &std::thread::sleep, &|| false)?),
            }
            let (after, to) = program.done()?;
            arm.rates.push((after - before) / (to - from));
        }
    }
    println!("{kind}: {rounds} rounds, windows of {} ms", window.as_millis());
    println!(
        "  watched                 work/s      slowdown (95 %)   said of itself   lock   switches/s  of a switch  lost"
    );
    let unwatched = arms[0].rates.clone();
    for arm in &arms {
        let slowdown: Vec<f64> = unwatched.iter().zip(&arm.rates).map(|(off, on)| (off / on).ln()).collect();
        let ((rate, _), (slowdown, half)) = (mean(&arm.rates), mean(&slowdown));
        let percent = |log: f64| 100.0 * (log.exp() - 1.0);
        print!(
            "  {:<18} {rate:>11.0}  {:>+6.2} ({:+.2} to {:+.2})",
            arm.name,
            percent(slowdown),
            percent(slowdown - half),
            percent(slowdown + half)
        );
        if let Some(first) = arm.activities.first() {
            let of = |value: &dyn Fn(&Activity) -> f64| arm.activities.iter().map(value).sum::<f64>() / rounds as f64;
            let share = of(&|activity| activity.overhead_share().unwrap_or(0.0));
            let lock = of(&|activity| activity.lock().unwrap_or(f64::NAN));
            let switches = of(&|activity| activity.voluntary_rate() + activity.involuntary_rate());
            let lost: u64 = arm.activities.iter().map(|activity| activity.lost).sum();
            print!(
                "  {:>8.2} %  {lock:>9.4}  {switches:>9.0}  {:>7} ns  {lost}",
                100.0 * share,
                first.overhead.per_switch.as_nanos()
            );
        }
        println!();
    }
    Ok(())
}

/// Runs a program of this kind: for each line on standard input it answers with what it has counted and the time since it began,
/// in nanoseconds; ends with its input.
fn run(kind: &str) -> Result<()> {
    let began = Instant::now();
    let count = contention::start(kind).ok_or_else(|| format!("no such program: {kind}"))?;
    for line in std::io::stdin().lines() {
        line?;
        println!("{} {}", count.load(Ordering::Relaxed), began.elapsed().as_nanos());
    }
    Ok(())
}

fn main() -> Result<()> {
    let (mut window, mut rounds, mut kinds) = (100, 40, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--program" => return run(&value()?),
            "--window" => window = value()?.parse()?,
            "--rounds" => rounds = value()?.parse()?,
            kind if KINDS.iter().any(|(name, _)| *name == kind) => kinds.push(kind.to_owned()),
            other => return Err(format!("no such program: {other}").into()),
        }
    }
    if kinds.is_empty() {
        kinds = KINDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    }
    for kind in kinds {
        table(&kind, Duration::from_millis(window), rounds)?;
    }
    Ok(())
}
