//! What is typed after `pinwise place`, and what it means.

use super::simulation::SimulationArguments;
use crate::output::Usage;
use crate::request::{Reading, Request, Subject};
use clap::{ArgGroup, Args, ValueEnum};
use pinwise_evt::Method;
use pinwise_placement::{Budget, Question, StrategyName};
use pinwise_topology::Alike;
use pinwise_workloads::Workload;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Find where each thread of a program should run, and how good that is.
///
/// Without arguments it places the built-in packet pipelines on this machine, in under a minute. The program's own
/// affinities are put back on every way out. With --machine ultrasparc-t2 the built-in programs run on a cycle-level model of
/// that processor instead, in virtual time; the same command gives the same result on every machine.
#[derive(Args)]
#[command(after_help = "Metrics:
  stdout:REGEX  stderr:REGEX  file:PATH:REGEX  cmd:COMMAND (with --pick)  prom:URL#SERIES
  netdev:IFACE:FIELD  io:rchar|wchar  dpdk:PREFIX  runtime

Examples:
  A program that is started once and re-pinned while it runs; its throughput is on its stdout:
    pinwise place --metric 'stdout:Tx-pps: +(\\d+)' -- dpdk-testpmd …
  A service that already runs; a command tells a growing counter:
    pinwise place --pid 4242 --metric 'cmd:redis-cli info stats' \\
      --pick 'total_commands_processed:(\\d+)'
  A program that runs to completion, started anew for each measurement:
    pinwise place --metric runtime -- pigz -p 6 -k -c big.file
  Only the worker threads of a service, but not the one that logs:
    pinwise place --pid 4242 --metric io:wchar --include worker --exclude log
  A built-in workload, two instances, at most 20 seconds:
    pinwise place --workload stateful:2 --budget 20s
  The same on a simulated processor:
    pinwise place --machine ultrasparc-t2 --workload stateful:2")]
#[command(group = ArgGroup::new("subject").args(["command", "workload", "pid", "tree", "cgroup"]).multiple(false))]
pub(crate) struct Place {
    /// The program and its arguments; its standard input is empty (/dev/null).
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    /// A program that ships with pinwise, with its number of instances (default 2); pinwise workload --list names them.
    #[arg(long, value_name = "NAME[:INSTANCES]")]
    workload: Option<String>,
    /// A running process; may be repeated.
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// A running process and all its descendants.
    #[arg(long, value_name = "PID")]
    tree: Option<i32>,
    /// All processes of a cgroup (its directory).
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,

    /// What performance is; runtime for a command when not given.
    #[arg(long, value_name = "METRIC", help_heading = "Metric")]
    metric: Option<String>,
    /// The number in what the metric delivers: a regular expression with one group.
    #[arg(long, value_name = "REGEX", help_heading = "Metric")]
    pick: Option<String>,
    /// The number is a growing counter: performance is its rate (otherwise found out).
    #[arg(long, conflicts_with = "gauge", help_heading = "Metric")]
    counter: bool,
    /// The number is a plain value: performance is its mean (otherwise found out).
    #[arg(long, help_heading = "Metric")]
    gauge: bool,
    /// Lower is better (latency, seconds, misses).
    #[arg(long, help_heading = "Metric")]
    lower_is_better: bool,
    /// What to call the unit.
    #[arg(long, help_heading = "Metric")]
    unit: Option<String>,
    /// Start the program anew for each measurement and take the metric's last value of the run.
    #[arg(long, requires = "command", help_heading = "Metric")]
    per_run: bool,

    /// How to look.
    #[arg(long, value_enum, default_value = "auto", help_heading = "Search")]
    strategy: Strategy,
    /// Stop once the best is within this of the best possible.
    #[arg(long, value_name = "PERCENT", default_value = "2.5%", value_parser = fraction, help_heading = "Search")]
    within: f64,
    /// Of every interval and of the bound.
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = confidence, help_heading = "Search")]
    confidence: f64,
    /// Measurements (600) or time (90s, 5m); by default 30 s for a built-in workload, 1 min for a program that is
    /// re-pinned, 5 min for one that is started anew, 4,000 measurements on a model. A time is for everything, from starting the program to the last
    /// confirming measurement, and is exceeded by one measurement at most.
    #[arg(long, value_name = "N|TIME", value_parser = budget, help_heading = "Search")]
    budget: Option<Budget>,
    /// Repeat until intervals are this narrow (half-width).
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = fraction, help_heading = "Search")]
    precision: f64,
    /// At most this many threads on one context (decided by the size of the space when not given).
    #[arg(long, value_name = "N", help_heading = "Search")]
    per_context: Option<usize>,
    /// Only these contexts.
    #[arg(long, value_name = "LIST", help_heading = "Search")]
    cpus: Option<String>,
    /// A performance that cannot be exceeded (line rate), in the metric's unit.
    #[arg(long, value_name = "VALUE", help_heading = "Search")]
    cap: Option<f64>,
    /// How the bound is estimated.
    #[arg(long, value_enum, default_value = "bayes", help_heading = "Search")]
    method: BoundMethod,
    /// First look at the bound after this many random assignments.
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = "Search")]
    start: u64,
    /// Look again after this many more; doubles when not given, which keeps the confidence honest.
    #[arg(long, value_name = "N", help_heading = "Search")]
    step: Option<u64>,
    /// Of all randomness; the same seed asks the same questions in the same order.
    #[arg(long, default_value_t = 1, help_heading = "Search")]
    seed: u64,

    /// Place only threads whose names match (of those that run; names as in the list of threads).
    #[arg(long, value_name = "REGEX", help_heading = "Target")]
    include: Option<String>,
    /// Leave alone threads whose names match, also where --include names them.
    #[arg(long, value_name = "REGEX", help_heading = "Target")]
    exclude: Option<String>,
    /// One live measurement: a fifth to settle, the rest to measure.
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = time, help_heading = "Target")]
    period: Duration,
    /// Abandon assignments that bring performance below this fraction of the unpinned baseline.
    #[arg(long, value_name = "PERCENT", value_parser = fraction, help_heading = "Target")]
    floor: Option<f64>,
    /// A program that is started anew may run this long.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, help_heading = "Target")]
    limit: Duration,
    #[command(flatten, next_help_heading = "Simulation")]
    simulation: SimulationArguments,

    /// When pinning wins, pin the running program as the plan says; the pins stay when pinwise has ended.
    #[arg(long, conflicts_with_all = ["command", "workload"], help_heading = "Target")]
    pub(crate) apply: bool,
    /// Write the plan here [default: beside the store].
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) store: crate::store::StoreArguments,
    /// Print one JSON document.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Strategy {
    /// Exhaustive where the classes are few enough for the budget, else random, then climbing.
    Auto,
    /// Random sampling with a bound, until within reach of it.
    Random,
    /// Every different assignment.
    Exhaustive,
    /// Hill climbing from the best of a random start.
    Climb,
    /// A predictor learned on the way steers the draws, and the bound comes from these: fewer measurements.
    Guided,
}

#[derive(Clone, Copy, ValueEnum)]
enum BoundMethod {
    /// Bayesian, on a fixed number of the best values.
    Bayes,
    /// The published one: profile likelihood.
    Profile,
}

/// The built-in workload when nothing is said.
const DEFAULT_WORKLOAD: &str = "hash1_L1:2";

/// What the built-in workloads print, read with the program's own clock.
const WORKLOAD_METRIC: &str = r"stdout:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)";

impl Place {
    /// The request with every default decided. `program` is this executable, which runs the built-in workloads.
    pub(crate) fn request(&self, program: &str) -> Result<Request, Usage> {
        if let Some(model) = self.simulation.model()? {
            return self.simulated(&model);
        }
        let mut reading = Reading {
            pick: self.pick.clone(),
            counter: if self.counter { Some(true) } else { self.gauge.then_some(false) },
            lower_is_better: self.lower_is_better,
            unit: self.unit.clone(),
        };
        let (subject, metric, patience) = if !self.command.is_empty() {
            let metric = self.metric.clone().unwrap_or_else(|| "runtime".into());
            if metric == "runtime" || self.per_run {
                (Subject::Rerun(self.command.clone()), metric, Duration::from_secs(300))
            } else {
                (Subject::Launched(self.command.clone()), metric, Duration::from_secs(60))
            }
        } else if let Some(subject) = self.attached() {
            let Some(metric) = self.metric.clone().filter(|metric| metric != "runtime") else {
                return Err(Usage(
                    "a running program needs a metric that can be read while it runs: --metric 'cmd:…' with --pick, \
                     prom:URL#SERIES, netdev:IFACE:FIELD, io:rchar, dpdk:PREFIX or file:PATH:REGEX"
                        .into(),
                ));
            };
            (subject, metric, Duration::from_secs(60))
        } else {
            if self.apply {
                return Err(Usage(
                    "--apply is for a program that runs already: add --pid PID, --tree PID or --cgroup DIR".into(),
                ));
            }
            if let Some(metric) = &self.metric {
                return Err(Usage(format!(
                    "--metric {metric} has no program to measure: add -- CMD, --pid PID, --tree PID or --cgroup DIR"
                )));
            }
            let workload = self.built_in().unwrap_or(DEFAULT_WORKLOAD);
            let (name, instances) = workload.split_once(':').unwrap_or((workload, "2"));
            Workload::parse(&format!("{name}:{instances}")).map_err(|error| Usage(error.to_string()))?;
            let command = [program, "workload", name, "--instances", instances, "--interval", "10ms"];
            reading.counter = Some(true);
            reading.unit.get_or_insert_with(|| "packets/s".into());
            (Subject::Launched(command.map(String::from).to_vec()), WORKLOAD_METRIC.into(), Duration::from_secs(30))
        };
        Ok(Request {
            question: self.question(Budget::Time(patience)),
            subject,
            metric,
            reading,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            affinities: BTreeMap::new(),
            cpus: self.cpus.clone(),
            period: self.period,
            floor: self.floor,
            limit: self.limit,
        })
    }

    /// The request for a program on a simulated processor. Refused is what only makes sense for a real one.
    fn simulated(&self, model: &str) -> Result<Request, Usage> {
        let unusable = [
            (!self.command.is_empty(), "-- CMD"),
            (self.attached().is_some(), "a running program"),
            (self.metric.is_some() || self.pick.is_some(), "--metric"),
            (self.floor.is_some(), "--floor"),
            (self.include.is_some() || self.exclude.is_some(), "--include or --exclude"),
            (self.apply, "--apply"),
        ];
        if let Some((_, what)) = unusable.iter().find(|(given, _)| *given) {
            return Err(Usage(format!(
                "{what} is for a program on this machine; on the model {model} only the built-in programs run: \
                 --workload NAME:INSTANCES"
            )));
        }
        if let Some(Budget::Time(_)) = self.budget {
            return Err(Usage(format!(
                "on the model {model} time is virtual: give --budget as a number of measurements, 4000 for example"
            )));
        }
        if self.per_context.is_some_and(|most| most != 1) {
            return Err(Usage(format!("on the model {model} a context runs one thread: leave --per-context out")));
        }
        let workload = self.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD);
        let simulation = self.simulation.of(model, workload)?;
        let mut question = self.question(Budget::Measurements(4000));
        question.per_context = Some(1);
        question.alike = Alike::ByStructure;
        Ok(Request {
            question,
            subject: Subject::Simulated(simulation),
            metric: "packets of the model".into(),
            reading: Reading::default(),
            cpus: self.cpus.clone(),
            include: None,
            exclude: None,
            affinities: BTreeMap::new(),
            period: self.period,
            floor: None,
            limit: self.limit,
        })
    }

    /// The question proper; `budget` where none is given.
    fn question(&self, budget: Budget) -> Question {
        Question {
            strategy: match self.strategy {
                Strategy::Auto => StrategyName::Auto,
                Strategy::Random => StrategyName::Random,
                Strategy::Exhaustive => StrategyName::Exhaustive,
                Strategy::Climb => StrategyName::Climb,
                Strategy::Guided => StrategyName::Guided,
            },
            within: self.within,
            confidence: self.confidence,
            budget: self.budget.unwrap_or(budget),
            per_context: self.per_context,
            alike: Alike::ExceptNuma,
            start: self.start,
            step: self.step,
            method: match self.method {
                BoundMethod::Bayes => Method::Bayes,
                BoundMethod::Profile => Method::Profile,
            },
            cap: self.cap,
            precision: self.precision,
            seed: self.seed,
        }
    }

    /// The built-in workload that is meant, where no program of the user's is.
    pub(crate) fn built_in(&self) -> Option<&str> {
        let own = !self.command.is_empty() || self.attached().is_some();
        (!own).then(|| self.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD))
    }

    fn attached(&self) -> Option<Subject> {
        if !self.pid.is_empty() {
            return Some(Subject::Pids(self.pid.clone()));
        }
        self.tree.map(Subject::Tree).or_else(|| self.cgroup.clone().map(Subject::Cgroup))
    }
}

/// `2.5%` or `0.025`.
fn fraction(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    match digits.parse::<f64>().map(|value| value * factor) {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("expected a percentage such as 2.5% or a fraction between 0 and 1".into()),
    }
}

/// A probability from one half up to, not including, one.
fn confidence(text: &str) -> Result<f64, String> {
    fraction(text).ok().filter(|value| *value >= 0.5).ok_or("expected a confidence such as 0.95 or 95%".into())
}

/// `600` measurements, or a time.
fn budget(text: &str) -> Result<Budget, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("a budget of 0 measures nothing".into()),
        Ok(measurements) => Ok(Budget::Measurements(measurements)),
        Err(_) => time(text).map(Budget::Time).map_err(|_| "expected measurements (600) or a time (90s, 5m)".into()),
    }
}

/// `50ms`, `1.5s`, `5m`, `2h`.
fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time with its unit: 50ms, 2s, 5m".into()),
    };
    match digits.trim().parse::<f64>().map(|value| value * seconds) {
        Ok(value) if value > 0.0 && value < 1e7 => Ok(Duration::from_secs_f64(value)),
        _ => Err("expected a positive time: 50ms, 2s, 5m".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use pinwise_report::is_simulated;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        place: Place,
    }

    fn request(words: &[&str]) -> Result<Request, String> {
        let line = Line::try_parse_from([&["place"], words].concat()).map_err(|error| error.to_string())?;
        line.place.request("/bin/pinwise").map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_means_the_built_in_pipelines() {
        let asked = request(&[]).unwrap();
        let Subject::Launched(command) = asked.subject else { panic!("{:?}", asked.subject) };
        assert_eq!(command[..5], ["/bin/pinwise", "workload", "hash1_L1", "--instances", "2"]);
        assert_eq!(asked.question.budget, Budget::Time(Duration::from_secs(30)));
    }

    #[test]
    fn a_command_alone_is_measured_by_its_runtime() {
        let asked = request(&["--", "pigz", "-k", "f"]).unwrap();
        assert_eq!(asked.subject, Subject::Rerun(vec!["pigz".into(), "-k".into(), "f".into()]));
        assert_eq!(asked.metric, "runtime");
    }

    #[test]
    fn a_running_program_needs_a_metric() {
        assert!(request(&["--pid", "1"]).unwrap_err().contains("--pick"));
        let asked = request(&["--pid", "1", "--pid", "2", "--metric", "io:rchar"]).unwrap();
        assert_eq!(asked.subject, Subject::Pids(vec![1, 2]));
    }

    #[test]
    fn one_program_at_a_time() {
        assert!(request(&["--pid", "1", "--workload", "hash1_L1"]).is_err());
        assert!(request(&["--metric", "io:rchar"]).unwrap_err().contains("no program"));
    }

    #[test]
    fn only_what_runs_already_can_stay_pinned() {
        assert!(request(&["--apply", "--pid", "1", "--metric", "io:rchar"]).is_ok());
        assert!(request(&["--apply"]).unwrap_err().contains("--pid"));
        assert!(request(&["--apply", "--", "pigz", "f"]).is_err());
        assert!(request(&["--apply", "--workload", "hash1_L1"]).is_err());
    }

    #[test]
    fn a_model_runs_the_built_in_programs_and_nothing_else() {
        let model = |words: &[&str]| request(&[&["--machine", "ultrasparc-t2"], words].concat());
        let asked = model(&["--workload", "hash1_Mem:8"]).unwrap();
        let Subject::Simulated(simulation) = &asked.subject else { panic!("{:?}", asked.subject) };
        assert_eq!((simulation.program.as_str(), simulation.instances), ("hash1_Mem", 8));
        assert_eq!(asked.question.budget, Budget::Measurements(4000));
        assert!(is_simulated(&serde_json::to_value(&asked).unwrap()));
        assert!(!is_simulated(&serde_json::to_value(request(&["--machine", "host"]).unwrap()).unwrap()));
        for (words, says) in [
            (&["--", "true"][..], "only the built-in programs"),
            (&["--pid", "1"], "only the built-in programs"),
            (&["--metric", "runtime"], "only the built-in programs"),
            (&["--budget", "5m"], "time is virtual"),
            (&["--per-context", "2"], "one thread"),
            (&["--workload", "hash2"], "no workload `hash2`"),
        ] {
            let error = model(words).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{words:?}: {error}");
        }
        for workload in ["hash2", "hash1_L1:0"] {
            let here = request(&["--workload", workload]).unwrap_err();
            assert_eq!(here, model(&["--workload", workload]).unwrap_err(), "refused alike, before anything starts");
        }
        let error = request(&["--machine", "8x2x4"]).unwrap_err();
        assert!(error.contains("ultrasparc-t2") && error.contains("host"), "{error}");
        assert!(request(&["--cycles", "1000"]).unwrap_err().contains("--machine"));
    }

    #[test]
    fn budgets_times_and_fractions_are_read_with_their_units() {
        assert_eq!(budget("600"), Ok(Budget::Measurements(600)));
        assert_eq!(budget("5m"), Ok(Budget::Time(Duration::from_secs(300))));
        assert!(budget("0").is_err() && budget("soon").is_err() && budget("-3s").is_err());
        assert_eq!(fraction("2.5%"), Ok(0.025));
        assert!(fraction("250%").is_err() && fraction("NaN").is_err() && confidence("0.3").is_err());
        assert_eq!(time("50ms"), Ok(Duration::from_millis(50)));
        assert!(time("50").is_err() && time("infs").is_err());
    }

    #[test]
    fn a_request_survives_the_store_and_is_readable_as_its_question() {
        let asked = request(&["--budget", "7", "--", "true"]).unwrap();
        let document = serde_json::to_value(&asked).unwrap();
        assert_eq!(serde_json::from_value::<Request>(document.clone()).unwrap(), asked);
        assert_eq!(serde_json::from_value::<Question>(document).unwrap(), asked.question);
    }
}
