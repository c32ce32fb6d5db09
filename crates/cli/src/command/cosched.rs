//! `pinwise cosched`: moves threads of running programs between siblings while that helps.

mod document;
mod text;

use super::pairs::read_model;
use super::place::{confidence, short, time};
use crate::events;
use crate::number_argument::{self, whole};
use crate::output::{self, Usage};
use crate::reading_arguments::ReadingArguments;
use crate::store::StoreArguments;
use anyhow::Context;
use clap::{ArgGroup, Args, ValueEnum};
use document::CoschedJson;
use pinwise_coscheduling::{
    CoschedQuestion, CoschedVerdict, CoscheduleObjective, CoscheduleRule, PublishedRule,
};
use pinwise_jobs::{CoschedAnswer, CoschedRequest, JobError, ReadingOptions, Subject};
use pinwise_linux::Pid;
use pinwise_placement::PlacementQuestion;
use pinwise_present::{Files, HandOver};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The quanta that a dry run shows.
const PREVIEWED: usize = 5;

/// Move threads of running programs between SMT siblings while that helps
///
/// In each quantum pinwise reads the time and the counters of each thread. It decides which threads
/// share a core, and moves threads by affinity, within their own masks. Periods with and without
/// moves alternate, with random lengths. If moving shows no significant gain, pinwise stops moving
/// and says so. cosched runs until the programs end, the budget is used up, or Ctrl-C. Every thread
/// then gets its own mask back. Without hardware counters cosched needs a metric of all programs
/// together. It then tries random splits, and uses the best one.
#[derive(Args)]
#[command(
    group = ArgGroup::new("programs").args(["pid", "tree", "cgroup"]).required(true),
    after_help = "Examples:
  pinwise cosched --pid 4242 --pid 4243
  pinwise cosched --cgroup /sys/fs/cgroup/batch --budget 30m
  pinwise cosched --tree 4242 --metric 'file:progress:done=([0-9]+)'
  pinwise cosched --tree 4242 --dry-run"
)]
pub(crate) struct Cosched {
    /// Use a running process. Repeat --pid for each
    #[arg(long, value_name = "PID", value_parser = number_argument::pid)]
    pid: Vec<Pid>,
    /// Use a running process and all its descendants
    #[arg(long, value_name = "PID", value_parser = number_argument::pid)]
    tree: Option<Pid>,
    /// Use all processes of the cgroup in this directory
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Choose what to improve
    #[arg(long, value_enum, default_value_t = CoscheduleObjectiveArgument::Both)]
    objective: CoscheduleObjectiveArgument,
    /// Tell good neighbours from bad ones by this rule
    #[arg(
        long,
        value_enum,
        value_name = "RULE",
        default_value_t = CoscheduleRuleArgument::Seen,
        conflicts_with = "metric"
    )]
    rule: CoscheduleRuleArgument,
    /// Use this model, which `pairs --save-model` wrote
    #[arg(long, value_name = "FILE", required_if_eq("rule", "model"))]
    model: Option<PathBuf>,
    /// Set a weight of --rule published, as in l2_misses=4,front_end_misses=1,fp=1,branches=2
    #[arg(long, value_name = "EVENT=N", value_delimiter = ',', value_parser = weight)]
    weight: Vec<(WeighedEvent, f64)>,
    /// Print the moves of some quanta, and move nothing
    #[arg(long)]
    dry_run: bool,
    /// Judge by this metric of all programs together; place --help lists them [default: counters]
    #[arg(long, value_name = "METRIC", help_heading = "Metric")]
    metric: Option<String>,
    #[command(flatten, next_help_heading = "Metric")]
    reading: ReadingArguments,
    /// Look at the threads this often
    #[arg(
        long,
        value_name = "TIME",
        default_value = short(CoschedQuestion::QUANTUM),
        value_parser = time,
        help_heading = "Target"
    )]
    quantum: Duration,
    /// Treat contexts that share this level as siblings, as `topo` names it [default: closest]
    #[arg(long, value_name = "LEVEL", help_heading = "Target")]
    level: Option<String>,
    /// Use only these contexts, as in 0-3,8
    #[arg(long, value_name = "LIST", help_heading = "Target")]
    cpus: Option<String>,
    /// End after this time [default: when the programs end]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Target")]
    budget: Option<Duration>,
    /// Set the confidence of the verdict
    #[arg(
        long,
        value_name = "P",
        default_value = PlacementQuestion::CONFIDENCE.to_string(),
        value_parser = confidence,
        help_heading = "Target"
    )]
    confidence: f64,
    /// Set the seed of random choices
    #[arg(
        long,
        default_value_t = PlacementQuestion::SEED,
        value_parser = whole::<u64>(0..=u64::MAX),
        help_heading = "Target"
    )]
    seed: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: StoreArguments,
    /// If moving helps, print the last split in this format
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        conflicts_with_all = ["json", "dry_run"],
        help_heading = "Output"
    )]
    hand_over: Option<HandOverArgument>,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// The values of `--hand-over`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HandOverArgument {
    /// Shell commands that make control groups with cpusets
    Cpuset,
    /// A configuration file of scx_layered
    #[value(name = "scx_layered")]
    ScxLayered,
}

impl From<HandOverArgument> for HandOver {
    fn from(argument: HandOverArgument) -> Self {
        match argument {
            HandOverArgument::Cpuset => Self::Cpuset,
            HandOverArgument::ScxLayered => Self::ScxLayered,
        }
    }
}

/// The values of `--rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CoscheduleRuleArgument {
    /// The speed of each program's threads beside those of each other one
    Seen,
    /// The published value: threads that differ in their events run together
    Published,
    /// A model that was fitted to pairs
    Model,
}

/// An event that the published value weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum WeighedEvent {
    L2Misses,
    FrontEndMisses,
    Fp,
    Branches,
    Instructions,
}

/// An event and its weight.
fn weight(text: &str) -> Result<(WeighedEvent, f64), String> {
    let names = || {
        let all = WeighedEvent::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        all.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let known = |name: &str| {
        let event = WeighedEvent::from_str(name.trim(), true);
        event.map_err(|_| format!("there is no event '{}': use one of {}", name.trim(), names()))
    };
    let (name, weight) = text.split_once('=').ok_or_else(|| {
        format!("give an event and its weight, as in l2_misses=4. Events: {}", names())
    })?;
    let number = weight.trim().parse().ok().filter(|weight: &f64| weight.is_finite());
    let number =
        number.ok_or_else(|| format!("'{}' is no number such as 4 or 0.5", weight.trim()))?;
    Ok((known(name)?, number))
}

/// The values of `--objective`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CoscheduleObjectiveArgument {
    /// The sum of the programs' progress
    Throughput,
    /// The progress of the slowest program
    Fairness,
    /// The sum, and each program keeps 90 % of its unpinned progress
    Both,
}

impl From<CoscheduleObjectiveArgument> for CoscheduleObjective {
    fn from(argument: CoscheduleObjectiveArgument) -> Self {
        match argument {
            CoscheduleObjectiveArgument::Throughput => Self::Throughput,
            CoscheduleObjectiveArgument::Fairness => Self::Fairness,
            CoscheduleObjectiveArgument::Both => Self::Both,
        }
    }
}

/// The shortest quantum. A look at the threads takes a part of a millisecond.
const SHORTEST: Duration = Duration::from_millis(10);

impl Cosched {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let request = self.request()?;
        let caller = events::caller(self.store.named())?;
        let (named, json) = (self.store.named(), self.json);
        if self.dry_run {
            let preview = pinwise_jobs::preview_cosched(&request, PREVIEWED, &caller);
            let preview = match preview {
                Ok(preview) => preview,
                Err(error) => {
                    let store = self.store.open()?;
                    return Err(events::explained(error, &caller, &store));
                }
            };
            return match json {
                true => output::print_json(&document::PreviewJson::new(&preview)),
                false => output::print(&text::preview(&preview, output::width())),
            };
        }
        let mut store = self.store.open()?;
        let print = |answer: &CoschedAnswer| {
            print_answer(answer, named, json)?;
            let helps = answer.outcome.verdict == CoschedVerdict::Helps;
            let Some(hand_over) = self.hand_over.filter(|_| helps) else { return Ok(()) };
            let text = HandOver::from(hand_over).text(&answer.outcome.programs);
            output::print(&format!("\n{text}"))
        };
        let leave = |answer: &CoschedAnswer, _: &JobError, _: &_| print(answer);
        let answer = events::run_or_leave(request, &caller, &mut store, json, leave)?;
        print(&answer)
    }

    fn rule(&self) -> anyhow::Result<CoscheduleRule> {
        if self.rule != CoscheduleRuleArgument::Published && !self.weight.is_empty() {
            return Err(Usage("--weight is of the published value: add --rule published".into()))?;
        }
        Ok(match (self.rule, &self.model) {
            (CoscheduleRuleArgument::Model, Some(file)) => {
                let model = read_model(file);
                let model = model.with_context(|| format!("--model {}", file.display()))?;
                CoscheduleRule::Predicted(Box::new(model))
            }
            (_, Some(file)) => {
                return Err(Usage(format!(
                    "--model {} is of no use to this rule: add --rule model",
                    file.display()
                )))?;
            }
            (CoscheduleRuleArgument::Published, None) => {
                let mut rule = PublishedRule::default();
                for &(event, weight) in &self.weight {
                    *match event {
                        WeighedEvent::L2Misses => &mut rule.weights.l2_misses,
                        WeighedEvent::FrontEndMisses => &mut rule.weights.front_end_misses,
                        WeighedEvent::Fp => &mut rule.weights.fp,
                        WeighedEvent::Branches => &mut rule.weights.branches,
                        WeighedEvent::Instructions => &mut rule.weights.instructions,
                    } = weight;
                }
                CoscheduleRule::Published(rule)
            }
            _ => CoscheduleRule::Seen,
        })
    }

    fn request(&self) -> anyhow::Result<CoschedRequest> {
        if self.quantum < SHORTEST {
            return Err(Usage(format!(
                "--quantum {}: looking at the threads that often costs too much; use {} or more",
                short(self.quantum),
                short(SHORTEST)
            ))
            .into());
        }
        let ReadingArguments { pick, counter, gauge, .. } = &self.reading;
        if self.metric.is_none() && (pick.is_some() || *counter || *gauge) {
            return Err(Usage("--pick, --counter and --gauge need --metric".into()).into());
        }
        let rule = self.rule()?;
        let subject = match (&self.tree, &self.cgroup) {
            (Some(pid), _) => Subject::Tree(pid.0),
            (None, Some(path)) => Subject::Cgroup(path.clone()),
            (None, None) => Subject::Pids(self.pid.iter().map(|pid| pid.0).collect()),
        };
        Ok(CoschedRequest {
            question: CoschedQuestion {
                objective: self.objective.into(),
                counted: self.metric.is_none(),
                rule,
                quantum: self.quantum,
                budget: self.budget,
                confidence: self.confidence,
                seed: self.seed,
            },
            subject,
            metric: self.metric.clone(),
            reading: self.reading.reading(ReadingOptions::default()),
            level: self.level.clone(),
            cpus: self.cpus.clone(),
        })
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &CoschedAnswer, named: Option<&Path>) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(CoschedJson::new(answer, Files::of_store(named)))?)
}

/// Prints whether moving threads helps, so far.
pub(crate) fn print_answer(
    answer: &CoschedAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let files = Files::of_store(named);
    if json {
        return output::print_json(&CoschedJson::new(answer, files));
    }
    output::print(&text::text(answer, files, output::width()))
}
