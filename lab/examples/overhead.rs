//! What watching costs a program whose threads wait for each other: `lab/bench/monitor.sh`.
//!
//! A program runs all the time. It reports what it has done so far and the CPU time that took.
//! Windows watched in one of the ways alternate in random order with two unwatched ones. A window
//! is compared with the unwatched ones of its round, so slow changes of the machine do not matter.
//! Two figures come out:
//!
//! - *slowdown*: how much less it does in a second. It includes everything, and varies with the
//!   luck of scheduling.
//! - *CPU time*: how much more CPU time a unit of work takes, including the watching thread. For a
//!   program that keeps all contexts busy that is its loss. It varies less.
//!
//! Both are medians of ratios with Wilcoxon's interval. A window in which other programs were busy
//! counts as one outlier, however far off. *cost* is what the monitor reports, as a share of the
//! program's CPU time. *chosen* is what `pinwise threads` does. It takes the best allowed layer
//! that was not given up in an earlier window or warm-up.
//!
//! ```text
//! overhead [--window MS] [--rounds N] [KIND...] [WAY...]    the table
//! overhead --program KIND                                   one of the programs
//! ```

use pinwise_linux::{Pid, Scope};
use pinwise_monitor::{Activity, Layer, LayerChoice, Monitor};
use pinwise_synthetic::waiting::{self, KINDS};
use rustix::thread::ClockId;
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

/// What a program has done since it began: units of work, seconds, seconds of CPU time.
struct Done {
    count: f64,
    at: f64,
    cpu: f64,
}

impl Program {
    fn start(kind: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--program", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (ask, answer) =
            (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        Ok(Self { child, ask, answer: BufReader::new(answer) })
    }

    fn done(&mut self) -> Result<Done> {
        self.ask.write_all(b"\n")?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        let numbers: Vec<f64> =
            line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        let [count, at, cpu] = numbers[..] else { return Err("no answer".into()) };
        Ok(Done { count, at: at * 1e-9, cpu: cpu * 1e-9 })
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

/// Runs a program of this kind. For each line on standard input it prints its count, its elapsed
/// time and its CPU time, in nanoseconds. It ends with its input.
fn run(kind: &str) -> Result<()> {
    let began = Instant::now();
    let count = waiting::start(kind).ok_or_else(|| format!("no such program: {kind}"))?;
    for line in std::io::stdin().lines() {
        line?;
        let cpu = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec;
        println!("{} {} {cpu}", count.load(Ordering::Relaxed), began.elapsed().as_nanos());
    }
    Ok(())
}

/// Watched by a layer, or by the best one that does not cost too much.
#[derive(Clone, Copy)]
enum Watch {
    Layer(Layer),
    Chosen,
}

impl Watch {
    /// One that is at work: prepared outside of what is measured.
    fn monitor(self, scope: Scope, layer_choice: &mut LayerChoice) -> Result<Monitor> {
        loop {
            let mut monitor = match self {
                Self::Layer(layer) => Monitor::with(scope.clone(), layer)?,
                Self::Chosen => layer_choice.monitor(scope.clone())?,
            };
            let seen = monitor.watch(WARM_UP, &std::thread::sleep, &|| false)?;
            if matches!(self, Self::Layer(_)) || !layer_choice.foresee(&seen) {
                return Ok(monitor);
            }
            monitor.rest()?;
        }
    }
}

/// As `pinwise threads` has a program warm up for a window of 100 ms.
const WARM_UP: Duration = Duration::from_millis(20);
/// A program that only switches takes a tenth of the rounds, because watching it costs much.
const EXTREME: &str = "tokens";

/// A way to watch, and the windows in which it was used.
struct Arm {
    name: &'static str,
    watch: Option<Watch>,
    windows: Vec<WatchedWindow>,
    activities: Vec<Activity>,
}

struct WatchedWindow {
    /// Units of work per second.
    rate: f64,
    /// Seconds of CPU time per unit of work, the program's and that of watching it.
    cost: f64,
}

/// The ways to watch, by name.
const WAYS: [(&str, Watch); 4] = [
    ("proc", Watch::Layer(Layer::Proc)),
    ("perf", Watch::Layer(Layer::Perf)),
    ("ebpf", Watch::Layer(Layer::Ebpf)),
    ("chosen", Watch::Chosen),
];

/// Those that were `wanted` and are allowed, after two without.
fn arms(program: &Program, wanted: &[&str]) -> Vec<Arm> {
    let wanted = WAYS.into_iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
    let ways = [("not watched", None), ("not watched, again", None)];
    let ways = ways.into_iter().chain(wanted.map(|(name, watch)| (name, Some(watch))));
    let allowed = |watch: &Option<Watch>| {
        let Some(Watch::Layer(layer)) = *watch else { return true };
        let refused = Monitor::with(program.scope(), layer).err();
        refused.inspect(|error| eprintln!("left out: {error}")).is_none()
    };
    let ways = ways.filter(|(_, watch)| allowed(watch));
    ways.map(|(name, watch)| Arm { name, watch, windows: Vec::new(), activities: Vec::new() })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Where values lie, with its 95 % interval. The location is the median of all means of two (J. L.
/// Hodges, E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34, 1963).
/// Wilcoxon's signed ranks give the means at its ends. Their sum is nearly normal from 10 values
/// on.
fn location(values: &[f64]) -> [f64; 3] {
    let pairs = |(index, &one): (usize, &f64)| {
        values[index..].iter().map(move |&other| f64::midpoint(one, other))
    };
    let mut means: Vec<f64> = values.iter().enumerate().flat_map(pairs).collect();
    means.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let aside = n * (n + 1.0) / 4.0 - 1.96 * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let (aside, last) = (aside.max(0.0) as usize, means.len() - 1);
    [
        f64::midpoint(means[last / 2], means[last.div_ceil(2)]),
        means[aside.min(last)],
        means[last - aside.min(last)],
    ]
}

/// The ratios that have these logarithms, less one, in percent with their 95 % interval.
fn percent(logarithms: &[f64]) -> String {
    let [middle, low, high] = location(logarithms).map(|logarithm| 100.0 * logarithm.exp_m1());
    format!("{middle:+.2} ({low:+.2} to {high:+.2})")
}

fn measure(kind: &str, ways: &[&str], window: Duration, rounds: usize) -> Result<Vec<Arm>> {
    let mut program = Program::start(kind)?;
    std::thread::sleep(Duration::from_millis(200));
    let mut arms = arms(&program, ways);
    let mut layer_choice = LayerChoice::new()?;
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
            let mut monitor = arm
                .watch
                .map(|watch| watch.monitor(program.scope(), &mut layer_choice))
                .transpose()?;
            let before = program.done()?;
            let mut watching = 0.0;
            match &mut monitor {
                None => std::thread::sleep(window),
                Some(monitor) => {
                    let activity = monitor.watch(window, &std::thread::sleep, &|| false)?;
                    watching = activity.overhead.watching.as_secs_f64();
                    arm.activities.push(activity);
                }
            }
            let after = program.done()?;
            if let Some(monitor) = &mut monitor {
                monitor.rest()?;
            }
            if matches!(arm.watch, Some(Watch::Chosen))
                && arm.activities.last().is_some_and(|seen| layer_choice.take_in(seen))
            {
                println!("  given up in round {}", arm.windows.len() + 1);
            }
            let count = after.count - before.count;
            arm.windows.push(WatchedWindow {
                rate: count / (after.at - before.at),
                cost: (after.cpu - before.cpu + watching) / count,
            });
        }
    }
    for given_up in layer_choice.refused() {
        println!("  chosen: not {given_up}");
    }
    Ok(arms)
}

fn print(arms: &[Arm]) {
    println!(
        "  watched              work/s  slowdown, % (95 %)       CPU time, % (95 %)       \
         cost, %   LOCK  switches/s  ns each  lost"
    );
    for (index, arm) in arms.iter().enumerate() {
        // The unwatched ones are compared with each other, the watched ones with both.
        let others = match index {
            0 => [&arms[1].windows; 2],
            1 => [&arms[0].windows; 2],
            _ => [&arms[0].windows, &arms[1].windows],
        };
        let logs = |of: &dyn Fn(&WatchedWindow) -> f64| -> Vec<f64> {
            let off =
                |round: usize| (of(&others[0][round]).ln() + of(&others[1][round]).ln()) / 2.0;
            arm.windows.iter().enumerate().map(|(round, on)| of(on).ln() - off(round)).collect()
        };
        let slowdown: Vec<f64> = logs(&|window| window.rate).into_iter().map(|log| -log).collect();
        let rate = mean(&arm.windows.iter().map(|window| window.rate).collect::<Vec<f64>>());
        let cost = percent(&logs(&|window| window.cost));
        print!("  {:<18} {rate:>8.0}  {:<24} {cost:<24}", arm.name, percent(&slowdown));
        if let Some(first) = arm.activities.first() {
            let of = |value: &dyn Fn(&Activity) -> f64| {
                mean(&arm.activities.iter().map(value).collect::<Vec<f64>>())
            };
            let cost = 100.0 * of(&|activity| activity.overhead_share().unwrap_or(0.0));
            let lock = of(&|activity| activity.lock().unwrap_or(f64::NAN));
            let switches = of(&|activity| activity.voluntary_rate() + activity.involuntary_rate());
            let lost: u64 = arm.activities.iter().map(|activity| activity.lost).sum();
            let each = first.overhead.per_switch.as_nanos();
            print!(" {cost:>7.2}  {lock:>5.3}  {switches:>10.0}  {each:>7}  {lost}");
        }
        println!();
    }
}

fn main() -> Result<()> {
    let (mut window, mut rounds, mut kinds, mut ways) = (200, 50, Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--program" => return run(&value()?),
            "--window" => window = value()?.parse()?,
            "--rounds" => rounds = value()?.parse()?,
            kind if KINDS.iter().any(|(name, _)| *name == kind) => kinds.push(kind.to_owned()),
            way if let Some((name, _)) = WAYS.iter().find(|(name, _)| *name == way) => {
                ways.push(*name)
            }
            other => return Err(format!("neither a program nor a way to watch: {other}").into()),
        }
    }
    for (kind, what) in KINDS {
        if kinds.is_empty() || kinds.iter().any(|wanted| wanted == kind) {
            let rounds = if kind == EXTREME { (rounds / 10).max(2) } else { rounds };
            println!("{kind}: {what}; {rounds} rounds, windows of {window} ms");
            print(&measure(kind, &ways, Duration::from_millis(window), rounds)?);
        }
    }
    Ok(())
}
