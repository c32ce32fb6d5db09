//! `pinwise pairs`: which programs to run beside each other.

mod document;
mod text;

use super::place::{WindowArguments, budget, confidence, short, time};
use crate::events;
use crate::machine::Simulated;
use crate::node_arguments::OutlookArguments;
use crate::number_argument::whole;
use crate::output::{self, Usage, read_input};
use crate::store::StoreArguments;
use anyhow::Context as _;
use clap::{ArgGroup, Args};
use document::PairsJson;
use pinwise_coscheduling::{CounterModel, Lengths, PairsQuestion, RecordedProgram};
use pinwise_jobs::{
    PairedPrograms, PairsAnswer, PairsRequest, PlacementRequest, SimulationRequest, SmtSimulation,
};
use pinwise_placement::{Budget, PlacementQuestion};
use pinwise_present::{Files, quoted};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find which programs to run beside each other
///
/// pinwise runs each program alone, and then each pair on two contexts that share a level. These
/// are SMT siblings, if there are any. It repeats the pairs that may change the answer. The answer
/// is the pairing of all programs with the largest weighted speed-up. The weighted speed-up of a
/// pair is the sum of both speeds, each divided by the speed alone. Each program must end. pinwise
/// starts it again while the other one runs. Two copies of one program run together, too. The
/// output goes to /dev/null.
#[derive(Args)]
#[command(
    override_usage = "pinwise pairs [OPTIONS] -- <CMD> -- <CMD>…",
    mut_arg("cycles", |argument| argument.requires("machine")),
    mut_arg("starts", |argument| argument.requires("machine")),
    group = ArgGroup::new("programs").args(["command", "file", "workload"]).multiple(false),
    after_help = "Examples:
  pinwise pairs -- 'xz -k -c big.file' -- 'gzip -c big.file' -- ./solver input
  pinwise pairs --file commands --budget 1h
  pinwise pairs --machine ultrasparc-t2 --workload intadd --workload hash1_L1 --workload hash1_Mem
  pinwise pairs --machine pentium4-northwood --workload 164.gzip --workload 179.art"
)]
pub(crate) struct Pairs {
    /// The programs with their arguments, each after its own --
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    /// Read the programs from FILE, one per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Use a built-in program of a simulated processor. Repeat --workload for each
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// Use this simulated processor: ultrasparc-t2, pentium4-northwood, or a file NAME.toml
    #[arg(long, value_name = "MODEL")]
    machine: Option<String>,
    #[command(flatten)]
    windows: WindowArguments,
    /// Let two programs share this level, as `topo` names it [default: the closest]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Use only these contexts, as in 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Spend N measurements, or a time such as 5m [default: 10m, 1000 on models]
    #[arg(long, value_name = "N|TIME", value_parser = budget)]
    budget: Option<Budget>,
    /// Fail if a run takes longer
    #[arg(
        long,
        value_name = "TIME",
        default_value = short(PlacementRequest::LIMIT),
        value_parser = time
    )]
    limit: Duration,
    /// Set the confidence of the pairing and of intervals
    #[arg(
        long,
        value_name = "P",
        default_value = PlacementQuestion::CONFIDENCE.to_string(),
        value_parser = confidence
    )]
    confidence: f64,
    /// Set the seed of random choices
    #[arg(
        long,
        default_value_t = PlacementQuestion::SEED,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    seed: u64,
    /// Predict pairs with the model in FILE, and measure only those that may change the answer
    #[arg(long, value_name = "FILE")]
    predict: Option<PathBuf>,
    /// Use recorded counts of a program alone, from `perf stat -x, -I 100`. Repeat it for each
    #[arg(long, value_name = "PROGRAM=FILE")]
    counts: Vec<String>,
    /// Write a model of the measured pairs to FILE, for --predict
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save_model: Option<PathBuf>,
    #[command(flatten)]
    nodes: OutlookArguments,
    #[command(flatten, next_help_heading = "Output")]
    store: StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Pairs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let (Some(file), Some(_)) = (&self.save_model, &self.predict) {
            return Err(Usage(format!(
                "--save-model {} needs measured pairs: leave --predict out",
                file.display()
            ))
            .into());
        }
        let request = self.request()?;
        if self.nodes.only_looks_ahead(self.json, || Ok(request.question.budget))? {
            return Ok(());
        }
        if let Some(file) = &self.save_model {
            request.check_saves_model()?;
            output::check(file)?;
        }
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let answer = events::run(request, &caller, &mut store, self.json)?;
        print_answer(&answer, self.store.named(), self.json)?;
        match &self.save_model {
            Some(file) => output::write(file, answer.counter_model(&store)?.text().as_bytes()),
            None => Ok(()),
        }
    }

    fn request(&self) -> anyhow::Result<PairsRequest> {
        if let Some(machine) = self.machine.as_ref().filter(|_| self.workload.is_empty()) {
            return Err(Usage(format!(
                "--machine {machine} runs built-in programs only: give each with --workload NAME"
            ))
            .into());
        }
        let (programs, lengths, usual) = if self.workload.is_empty() {
            let commands = match &self.file {
                Some(file) => {
                    read_commands(file).with_context(|| format!("--file {}", file.display()))?
                }
                None => commands(&self.command)?,
            };
            let usual = Budget::Time(Duration::from_secs(600));
            (PairedPrograms::Commands { commands, limit: self.limit }, Lengths::Own, usual)
        } else {
            let simulation = if self.machine.as_deref() == Some(SmtSimulation::CORE) {
                PairedPrograms::SmtCore(self.windows.of_smt_core(self.workload.clone()))
            } else {
                PairedPrograms::Simulated(self.simulation()?)
            };
            (simulation, Lengths::Equal, PairsQuestion::default().budget)
        };
        let model = match &self.predict {
            Some(file) => {
                Some(read_model(file).with_context(|| format!("--predict {}", file.display()))?)
            }
            None => None,
        };
        let mut recorded = Vec::new();
        for given in &self.counts {
            let (name, file) = given.split_once('=').ok_or_else(|| {
                Usage(format!("--counts {given}: give PROGRAM=FILE, as in --counts xz=xz.csv"))
            })?;
            let one = programs.recorded(name, Path::new(file))?;
            if recorded.iter().any(|other: &RecordedProgram| other.program == one.program) {
                return Err(Usage(format!("--counts {given}: {name} has counts already")).into());
            }
            recorded.push(one);
        }
        Ok(PairsRequest {
            saves_model: self.save_model.is_some(),
            question: PairsQuestion {
                budget: self.budget.unwrap_or(usual),
                confidence: self.confidence,
                seed: self.seed,
                lengths,
                model,
                recorded,
            },
            programs,
            level: self.level.clone(),
            cpus: self.cpus.clone(),
            on: self.nodes.nodes()?,
        })
    }

    fn simulation(&self) -> Result<SimulationRequest, Usage> {
        let machine = self.machine.as_ref().ok_or_else(|| {
            Usage(
                "built-in programs do not end on this machine: add --machine ultrasparc-t2, or \
                 give commands, as in -- 'xz -k -c a' -- 'gzip -c b'"
                    .into(),
            )
        })?;
        if let Some(counted) = self.workload.iter().find(|name| name.contains([':', '+'])) {
            return Err(Usage(format!(
                "--workload {counted}: give each program with its own --workload, without a number"
            )));
        }
        let one_each: Vec<String> = self.workload.iter().map(|name| format!("{name}:1")).collect();
        self.windows.of(&Simulated::named(machine, "pairs")?, &one_each.join("+"))
    }
}

/// The commands between each two `--`. A single word with spaces is a command line.
fn commands(words: &[String]) -> Result<Vec<Vec<String>>, Usage> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let parsed = |words: &[String]| match words {
        [line] if line.contains(char::is_whitespace) => command(line),
        [] => Err(Usage("nothing stands between two --: put a program there".into())),
        words => Ok(words.to_vec()),
    };
    words.split(|word| word == "--").map(parsed).collect()
}

/// Words that a shell acts on, and a program gets as they are.
const OF_SHELL: [&str; 4] = ["|", ">", "&&", ";"];

/// The words of a line, unless it was written for a shell. What is quoted is meant as it is.
fn without_shell(line: &str, words: Vec<String>) -> Result<Vec<String>, Usage> {
    let is_bare = |word: &str| line.split_whitespace().any(|raw| raw == word);
    match words.iter().find(|word| OF_SHELL.contains(&word.as_str()) && is_bare(word)) {
        Some(word) => Err(Usage(format!(
            "no shell runs {}, so that '{word}' would go to the program: use sh -c {}",
            quoted(line),
            quoted(line)
        ))),
        None => Ok(words),
    }
}

/// The words of a command line.
fn command(line: &str) -> Result<Vec<String>, Usage> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    let missing = || Usage(format!("'{line}' is no command: is a quotation mark missing?"));
    without_shell(line, words.ok_or_else(missing)?)
}

/// The commands of a file, one a line. Blank lines and those that begin with # are left out.
fn read_commands(file: &Path) -> anyhow::Result<Vec<Vec<String>>> {
    let text =
        String::from_utf8(read_input(file)?).map_err(|_| Usage("it is not a text file".into()))?;
    let lines = text.lines().map(str::trim);
    let commands = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(command);
    Ok(commands.collect::<Result<_, _>>()?)
}

/// The model in a file that `--save-model` wrote.
pub(super) fn read_model(file: &Path) -> anyhow::Result<CounterModel> {
    let text =
        String::from_utf8(read_input(file)?).map_err(|_| Usage("it is not a text file".into()))?;
    Ok(CounterModel::parse(&text).map_err(|error| Usage(error.to_string()))?)
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &PairsAnswer, named: Option<&Path>) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(PairsJson::new(answer, Files::of_store(named)))?)
}

/// Prints what the records of pairs show.
pub(crate) fn print_answer(
    answer: &PairsAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let files = Files::of_store(named);
    if json {
        return output::print_json(&PairsJson::new(answer, files));
    }
    output::print(&text::text(answer, files, output::width()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_a_shell_is_refused_with_the_line_that_runs_one() {
        for line in ["sleep 0.3 | cat", "a > b", "a && b", "a ; b"] {
            let Usage(error) = command(line).unwrap_err();
            assert!(error.ends_with(&format!("use sh -c '{line}'")), "{error}");
        }
        for line in ["sh -c 'sleep 0.3 | cat'", "grep 'a|b' f", "cut -d '|' f"] {
            assert!(command(line).is_ok(), "{line}");
        }
    }
}
