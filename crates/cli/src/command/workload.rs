//! `pinwise workload`: runs a program that ships with pinwise, as an ordinary program that others
//! can place.

use crate::number_argument::whole;
use crate::output::{Usage, print, print_json};
use clap::Args;
use pinwise_present::did_you_mean;
use pinwise_workloads::{
    BuiltInProgram, BuiltInWorkload as Instances, Capture, Error, FinalCounts, RunningWorkload,
    Traffic,
};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Run a built-in multithreaded packet-processing program
///
/// Use it to try placements: workload pins nothing itself. Each instance is a pipeline of three
/// threads, as in `ipfwd0-R`, `ipfwd0-P`, `ipfwd0-T`. It receives packets from memory as fast as it
/// can. workload prints how many packets have passed since the start, and their rate since the last
/// line.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise workload --list
  pinwise workload hash1_L1:2
  pinwise workload intadd:2+intmul:2
  pinwise workload aho-corasick --instances 2 --pcap trace.pcap --seconds 10
  pinwise workload intadd --packets 5000000 --json")]
pub(crate) struct Workload {
    /// The program: NAME or NAME:INSTANCES, several joined by `+`. --list shows the names
    #[arg(required_unless_present = "list")]
    name: Option<String>,

    /// Run N independent instances of three threads each [default: 1]
    #[arg(long, value_name = "N")]
    instances: Option<usize>,

    /// Receive the packets of this pcap or pcapng file over and over. By default they are generated
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Generate packets and tables from this seed. The same seed gives the same packets
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// End after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// End when every instance has processed this many packets
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    packets: Option<u64>,

    /// Print the count this often: a number with `ms` or `s`
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// List the programs
    #[arg(long)]
    list: bool,

    /// Print one JSON document at the end. It needs --seconds, --packets or --list
    #[arg(long)]
    json: bool,
}

/// A program, as `--list --json` prints it.
#[derive(Serialize)]
struct ListedProgramJson {
    name: &'static str,
    description: &'static str,
    working_set: &'static str,
    threads: [String; 3],
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct WorkloadJson {
    workload: String,
    seed: u64,
    pcap: Option<PathBuf>,
    seconds: f64,
    packets: u64,
    packets_per_second: f64,
    instances: Vec<InstanceJson>,
}

#[derive(Serialize)]
struct InstanceJson {
    name: String,
    packets: u64,
    bytes: u64,
    dropped: u64,
    findings: serde_json::Map<String, serde_json::Value>,
}

impl Workload {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.list {
            return list(self.json);
        }
        if self.json && self.seconds.is_none() && self.packets.is_none() {
            return Err(Usage(
                "--json prints at the end of the workload; set it with --seconds or --packets"
                    .into(),
            )
            .into());
        }
        let workload = self.workload()?;
        let running = workload.start(self.traffic()?, self.seed, self.packets)?;
        let seconds = self.report(&running)?;
        let summaries = running.stop()?;
        if self.json {
            print_json(&self.document(workload.to_string(), seconds, summaries))
        } else {
            print_end(seconds, &summaries)
        }
    }

    fn workload(&self) -> anyhow::Result<Instances> {
        let name = self.name.as_deref().unwrap_or_default();
        let named = Instances::parse(name).map_err(usage)?;
        match self.instances {
            Some(instances) if !name.contains([':', '+']) => {
                Instances::parse(&format!("{name}:{instances}")).map_err(usage)
            }
            Some(instances) if instances != named.programs().len() => Err(Usage(format!(
                "`{name}` and --instances {instances} contradict each other; give one of them"
            ))
            .into()),
            _ => Ok(named),
        }
    }

    /// The capture, if one is given.
    fn traffic(&self) -> anyhow::Result<Option<Arc<Traffic>>> {
        let Some(path) = &self.pcap else { return Ok(None) };
        let capture = Capture::open(path).map_err(|error| Usage(error.to_string()))?;
        if capture.left_out > 0 {
            crate::output::aside(&format!(
                "pinwise: {} of {} frames of {} are ignored: longer than 16 KiB, or beyond the \
                 first 256 MiB",
                capture.left_out,
                capture.left_out + capture.traffic.frames() as u64,
                path.display()
            ));
        }
        Ok(Some(Arc::new(capture.traffic)))
    }

    /// Prints the count at each interval until the end, and returns the seconds until then. Between
    /// two lines this thread sleeps; ticks that the system made it miss are skipped, not caught
    /// up with.
    fn report(&self, running: &RunningWorkload) -> anyhow::Result<f64> {
        let mut before = (0, 0.0);
        let mut tick = self.interval;
        loop {
            let now = running.elapsed();
            let left = self.seconds.map(|end| end.saturating_sub(now));
            let until_tick = if self.json { Duration::MAX } else { tick.saturating_sub(now) };
            // Long enough to be for ever, short enough for the system's clock.
            let sleep =
                until_tick.min(left.unwrap_or(Duration::MAX)).min(Duration::from_secs(3600));
            let finished = running.wait(sleep);
            let (packets, seconds) = (running.packets(), running.elapsed().as_secs_f64());
            if finished || self.seconds.is_some_and(|end| running.elapsed() >= end) {
                return Ok(seconds);
            }
            if !self.json && running.elapsed() >= tick {
                let rate = (packets - before.0) as f64 / (seconds - before.1);
                print(&format!("packets={packets} seconds={seconds:.6} packets/s={rate:.0}\n"))?;
                before = (packets, seconds);
                while tick <= running.elapsed() {
                    tick += self.interval;
                }
            }
        }
    }

    fn document(
        &self,
        workload: String,
        seconds: f64,
        summaries: Vec<FinalCounts>,
    ) -> WorkloadJson {
        let packets = summaries.iter().map(|instance| instance.counts.packets).sum();
        let instances = summaries.into_iter().map(|instance| InstanceJson {
            name: instance.name,
            packets: instance.counts.packets,
            bytes: instance.counts.bytes,
            dropped: instance.counts.dropped,
            findings: instance
                .findings
                .into_iter()
                .map(|(what, count)| (what.to_owned(), count.into()))
                .collect(),
        });
        WorkloadJson {
            workload,
            seed: self.seed,
            pcap: self.pcap.clone(),
            seconds,
            packets,
            packets_per_second: packets as f64 / seconds,
            instances: instances.collect(),
        }
    }
}

/// The last count, over the whole time, and what each instance did.
fn print_end(seconds: f64, summaries: &[FinalCounts]) -> anyhow::Result<()> {
    let packets: u64 = summaries.iter().map(|instance| instance.counts.packets).sum();
    let mut text = format!(
        "packets={packets} seconds={seconds:.6} packets/s={:.0}\n",
        packets as f64 / seconds
    );
    for FinalCounts { name, counts, findings } in summaries {
        let rate = counts.packets as f64 / seconds;
        let gigabits = counts.bytes as f64 * 8.0 / seconds / 1e9;
        text += &format!(
            "{name}: {rate:.0} packets/s, {gigabits:.2} Gbit/s, {} dropped",
            counts.dropped
        );
        for (what, count) in findings {
            text += &format!(", {count} {}", what.replace('_', " "));
        }
        text.push('\n');
    }
    print(&text)
}

fn list(json: bool) -> anyhow::Result<()> {
    if json {
        let listed = BuiltInProgram::ALL.map(|program| ListedProgramJson {
            name: program.name(),
            description: program.description(),
            working_set: program.working_set(),
            threads: ["R", "P", "T"].map(|stage| format!("{}0-{stage}", program.stem())),
        });
        return print_json(&listed);
    }
    let lines = BuiltInProgram::ALL.map(|program| {
        let (description, working_set) = (program.description(), program.working_set());
        format!(
            "{program:<16} {}N-R -P -T  {description}; {working_set}\n",
            format_args!("{:>8}", program.stem())
        )
    });
    print(&lines.concat())
}

/// What the library refuses of the command line is a usage error.
fn usage(error: Error) -> anyhow::Error {
    no_workload(&error).into()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be a time above 0".to_owned()),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let number: f64 =
        number.parse().map_err(|_| "expected a time such as 10ms or 1s".to_owned())?;
    match Duration::try_from_secs_f64(number * unit) {
        Ok(interval) if interval >= Duration::from_millis(1) => Ok(interval),
        _ => Err("must be at least 1ms".to_owned()),
    }
}

/// A workload that does not run, with the name that may have been meant.
pub(crate) fn no_workload(error: &Error) -> Usage {
    let similar = match error {
        Error::UnknownProgram { name } => {
            did_you_mean(name, BuiltInProgram::ALL.map(BuiltInProgram::name))
        }
        _ => String::new(),
    };
    Usage(format!("{error}{similar}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_unit() {
        assert_eq!(interval("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        for text in ["", "ms", "0", "-1s", "0.5ms", "nan", "inf", "1e300s", "1m"] {
            assert!(interval(text).is_err(), "{text}");
        }
        for text in ["", "0", "-1", "nan", "inf", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
