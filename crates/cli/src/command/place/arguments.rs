//! The arguments of `pinwise place`, and their meaning as a request.

use super::blackbox::BlackBoxArguments;
use super::search::SearchArguments;
use super::subject::SubjectArguments;
use crate::memory_argument::MemoryArgument;
use crate::node_arguments::NodeArguments;
use crate::output::Usage;
use clap::{Args, ValueEnum};
use pinwise_evt::Method;
use pinwise_jobs::PlacementRequest;
use pinwise_placement::{PlacementQuestion, StrategyName};
use std::path::PathBuf;

/// Find where each thread of a program should run, and how close that is to the best possible
///
/// Without a program, it takes built-in ones. Affinities are put back at the end.
#[derive(Args)]
#[command(
    after_help = "Examples:
  pinwise place -- pigz -p 6 -k -c big.file
  pinwise place --metric 'stdout:Tx-pps: +(\\d+)' -- dpdk-testpmd …
  pinwise place --pid 4242 --metric io:wchar",
    after_long_help = "Metrics:
  runtime                     how long a run takes; the default for commands
  stdout:REGEX, stderr:REGEX  a number in its output, by one group
  file:PATH:REGEX             a number in a file, by one group
  cmd:COMMAND                 a number that a command prints; see --pick
  prom:URL#SERIES             a Prometheus series
  netdev:IFACE:FIELD          a counter of a network interface: tx_packets
  io:rchar, io:wchar          bytes that its processes read or write
  dpdk:PREFIX[:FIELD]         a counter of DPDK, by its telemetry socket

Examples:
  pinwise place -- pigz -p 6 -k -c big.file
  pinwise place --metric 'stdout:Tx-pps: +(\\d+)' -- dpdk-testpmd …
  pinwise place --pid 4242 --metric 'cmd:redis-cli info stats' \\
    --pick 'total_commands_processed:(\\d+)'
  pinwise place --machine ultrasparc-t2 --workload stateful:2"
)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(super) subject: SubjectArguments,

    /// NUMA memory: leave, follow, interleave
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        ignore_case = true,
        hide_possible_values = true,
        default_value = "leave",
        hide_short_help = true,
        help_heading = "Target"
    )]
    memory: MemoryArgument,
    #[command(flatten, next_help_heading = "Target")]
    pub(super) nodes: NodeArguments,
    /// Scale nodes that differ. Otherwise they are set aside
    #[arg(long, requires = "on", hide_short_help = true, help_heading = "Target")]
    scale_nodes: bool,
    /// Choose how to search
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        default_value = "auto",
        help_heading = "Search",
        hide_short_help = true
    )]
    strategy: StrategyArgument,
    #[command(flatten, next_help_heading = "Search")]
    pub(super) search: SearchArguments,
    /// Use bayes or profile for the bound
    #[arg(
        long,
        alias = "method",
        value_name = "NAME",
        value_enum,
        ignore_case = true,
        hide_possible_values = true,
        default_value = "bayes",
        hide_short_help = true,
        help_heading = "Search"
    )]
    bound_method: BoundMethodArgument,
    /// Compute the bound after N draws
    #[arg(
        long,
        alias = "start",
        value_name = "N",
        default_value_t = PlacementQuestion::FIRST_LOOK,
        hide_short_help = true,
        help_heading = "Search"
    )]
    first_look: u64,
    /// Compute it again after N more [default: doubles]
    #[arg(long, alias = "step", value_name = "N", hide_short_help = true, help_heading = "Search")]
    look_every: Option<u64>,

    /// Pin the running program if pinning wins. Pins stay
    #[arg(long, help_heading = "Output")]
    pub(crate) apply: bool,
    /// Write the plan to FILE [default: next to the store]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten, next_help_heading = "Strategy blackbox")]
    pub(super) blackbox: BlackBoxArguments,
}

#[derive(Clone, Copy, ValueEnum)]
enum StrategyArgument {
    /// exhaustive if it fits, else guided
    Auto,
    /// draws until the best nears the bound
    Random,
    /// measures every assignment
    Exhaustive,
    /// climbs from the best random one
    Climb,
    /// draws, then lets a predictor choose
    Guided,
    /// profiles instances, predicts all
    Blackbox,
}

#[derive(Clone, Copy, ValueEnum)]
enum BoundMethodArgument {
    Bayes,
    Profile,
}

impl Place {
    /// The request with every default decided.
    pub(crate) fn request(&self) -> Result<PlacementRequest, Usage> {
        if self.apply && self.subject.attached().is_none() {
            return Err(Usage(
                "--apply needs a running program: add --pid PID, --tree PID or --cgroup DIR".into(),
            ));
        }
        if !matches!(self.strategy, StrategyArgument::Blackbox) {
            self.blackbox.refuse(self.nodes.nodes()?.is_some())?;
        }
        let strategy = match self.strategy {
            StrategyArgument::Auto => StrategyName::Auto,
            StrategyArgument::Random => StrategyName::Random,
            StrategyArgument::Exhaustive => StrategyName::Exhaustive,
            StrategyArgument::Climb => StrategyName::Climb,
            StrategyArgument::Guided => StrategyName::Guided,
            StrategyArgument::Blackbox => StrategyName::Blackbox,
        };
        let mut request = self.subject.request("place", &self.search)?.with_strategy(strategy);
        request.memory = self.memory.into();
        request.on = self.nodes.nodes()?;
        request.scale_nodes = self.scale_nodes;
        request.question = PlacementQuestion {
            budget: self.search.budget.unwrap_or(request.question.budget),
            start: self.first_look,
            step: self.look_every,
            method: match self.bound_method {
                BoundMethodArgument::Bayes => Method::Bayes,
                BoundMethodArgument::Profile => Method::Profile,
            },
            profile: self.blackbox.profile(),
            ..request.question
        };
        Ok(request)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;
    use pinwise_jobs::{DEFAULT_WORKLOAD, SimulatedProcessor, SimulationRequest, Subject};
    use pinwise_measure::MemoryPolicy;
    use pinwise_placement::Budget;
    use pinwise_workloads::BuiltInWorkload;
    use std::time::Duration;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        place: Place,
    }

    /// What `place WORDS` asks.
    pub(in crate::command::place) fn request(words: &[&str]) -> Result<PlacementRequest, String> {
        let line = CommandLine::try_parse_from([&["place"], words].concat())
            .map_err(|error| error.to_string())?;
        line.place.request().map_err(|error| error.to_string())
    }

    #[test]
    fn the_options_of_the_version_before_are_still_read() {
        let words = |old: bool| {
            let names = [
                ["--window", "--period"],
                ["--bound-method", "--method"],
                ["--first-look", "--start"],
                ["--look-every", "--step"],
                ["--blackbox-share", "--profile"],
            ];
            let values = ["70ms", "profile", "300", "100", "20%"];
            let named = names.map(|names| names[usize::from(old)]);
            let options = named.iter().zip(values).flat_map(|(name, value)| [*name, value]);
            let rest = ["--strategy", "blackbox", "--workload", "hash1_L1:2"];
            request(&options.chain(rest).collect::<Vec<_>>())
        };
        assert!(words(false).is_ok());
        assert_eq!(words(true), words(false));
    }

    #[test]
    fn a_request_that_the_library_makes_alone_is_what_the_command_asks() {
        let words = |typed: &[&str]| typed.iter().map(|word| (*word).to_owned()).collect();
        let workload = |named: &str| BuiltInWorkload::parse(named).unwrap();
        let command: Vec<String> = words(&["pigz", "-k", "f"]);
        let metric = r"stdout:(\d+) items";
        let model = SimulatedProcessor::built_in("ultrasparc-t2");
        let on_model = || SimulationRequest::parse(model.clone(), "hash1_Mem:8+intadd:2").unwrap();
        let built_in = || PlacementRequest::built_in(&workload(DEFAULT_WORKLOAD));
        for (typed, asked) in [
            (&["--", "pigz", "-k", "f"][..], PlacementRequest::command(command.clone(), None)),
            (
                &["--metric", metric, "--", "pigz", "-k", "f"],
                PlacementRequest::command(command.clone(), Some(metric.into())),
            ),
            (
                &["--metric", metric, "--per-run", "--", "pigz", "-k", "f"],
                PlacementRequest::new(Subject::Rerun(command), metric),
            ),
            (
                &["--pid", "1", "--metric", "io:rchar"],
                PlacementRequest::new(Subject::Pids(vec![1]), "io:rchar"),
            ),
            (
                &["--cgroup", "/sys/fs/cgroup/a", "--metric", "io:rchar"],
                PlacementRequest::new(Subject::Cgroup("/sys/fs/cgroup/a".into()), "io:rchar"),
            ),
            (&[], built_in()),
            (&["--strategy", "blackbox"], built_in().with_strategy(StrategyName::Blackbox)),
            (
                &["--machine", "ultrasparc-t2", "--workload", "hash1_Mem:8+intadd:2"],
                PlacementRequest::simulated(on_model()),
            ),
            (
                &[
                    "--machine",
                    "ultrasparc-t2",
                    "--workload",
                    "hash1_Mem:8+intadd:2",
                    "--strategy",
                    "blackbox",
                ],
                PlacementRequest::simulated(on_model()).with_strategy(StrategyName::Blackbox),
            ),
        ] {
            assert_eq!(request(typed).unwrap(), asked, "{typed:?}");
        }
    }

    #[test]
    fn memory_is_left_where_it_is_unless_asked() {
        let asked = |words: &[&str]| request(words).unwrap().memory;
        assert_eq!(asked(&["--", "pigz"]), MemoryPolicy::Leave);
        assert_eq!(asked(&["--memory", "follow", "--", "pigz"]), MemoryPolicy::Follow);
        assert_eq!(asked(&["--memory", "Interleave", "--", "pigz"]), MemoryPolicy::Interleave);
        assert!(request(&["--memory", "lead", "--", "pigz"]).is_err());
    }

    #[test]
    fn nothing_means_the_built_in_pipelines() {
        let asked = request(&[]).unwrap();
        assert_eq!(asked.subject, Subject::BuiltIn("hash1_L1:2".into()));
        assert_eq!(asked.question.budget, Budget::Time(Duration::from_secs(30)));
    }

    #[test]
    fn built_in_programs_run_side_by_side_here_too() {
        let asked = request(&["--workload", "intadd:3+intmul"]).unwrap();
        assert_eq!(asked.subject, Subject::BuiltIn("intadd:3+intmul:2".into()));
    }

    #[test]
    fn profiling_on_this_machine_has_more_time() {
        let budget = |words: &[&str]| request(words).unwrap().question.budget;
        assert_eq!(budget(&["--strategy", "blackbox"]), Budget::Time(Duration::from_secs(300)));
        assert_eq!(
            budget(&["--strategy", "blackbox", "--budget", "40s"]),
            Budget::Time(Duration::from_secs(40))
        );
        let model = ["--strategy", "blackbox", "--machine", "ultrasparc-t2"];
        assert_eq!(budget(&model), Budget::Measurements(4000));
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
        assert!(request(&["--pid", "99999999"]).unwrap_err().contains("process 99999999"));
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
        let here = request(&["--machine", "host"]).unwrap().subject;
        assert!(matches!(here, Subject::BuiltIn(_)), "{here:?}");
        for (words, says) in [
            (&["--", "true"][..], "only built-in programs"),
            (&["--pid", "1"], "only built-in programs"),
            (&["--metric", "runtime"], "only built-in programs"),
            (&["--budget", "5m"], "time is virtual"),
            (&["--per-context", "2"], "one thread"),
            (&["--workload", "hash2"], "no workload `hash2`"),
        ] {
            let error = model(words).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{words:?}: {error}");
        }
        for workload in ["hash2", "hash1_L1:0"] {
            let here = request(&["--workload", workload]).unwrap_err();
            assert_eq!(
                here,
                model(&["--workload", workload]).unwrap_err(),
                "refused alike, before anything starts"
            );
        }
        let error = request(&["--machine", "8x2x4"]).unwrap_err();
        assert!(error.contains("ultrasparc-t2") && error.contains("host"), "{error}");
        assert!(request(&["--cycles", "1000"]).unwrap_err().contains("--machine"));
    }

    #[test]
    fn a_request_survives_the_store_and_is_readable_as_its_question() {
        let asked = request(&["--budget", "7", "--cap", "4", "--", "true"]).unwrap();
        let document = serde_json::to_value(&asked).unwrap();
        assert_eq!(serde_json::from_value::<PlacementRequest>(document.clone()).unwrap(), asked);
        assert_eq!(serde_json::from_value::<PlacementQuestion>(document).unwrap(), asked.question);
    }
}
