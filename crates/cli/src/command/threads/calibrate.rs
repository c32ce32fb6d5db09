//! `pinwise threads calibrate`: what counts as high, from example programs.

use super::text::{share, table};
use crate::command::place::{short, time};
use crate::events;
use crate::machine::MachineArgument;
use crate::number_argument::whole;
use crate::output::{self, Usage};
use crate::store::StoreArguments;
use clap::Args;
use pinwise_campaign::CampaignId;
use pinwise_jobs::{CalibrationAnswer, CalibrationExamples, CalibrationRequest, ThreadsRequest};
use pinwise_measure::SchedulingProfile;
use pinwise_present::figures;
use pinwise_present::{Files, LabelledLines, Unfinished, calibration_verdict, one_line};
use pinwise_threads::{Example, ProfilesByNumber, Thresholds};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Calibrate the thresholds of the published search from example programs
///
/// calibrate probes each example with growing numbers of threads. A threshold is where the quantity
/// that the example shows begins to rise fast. The paper used fluidanimate, facesim and
/// blackscholes on small inputs. The thresholds go to stdout, as a file for --thresholds.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise threads calibrate --locks './a {n}' --switches './b {n}' --parallelism './c {n}' > my.toml
  pinwise threads calibrate --machine opteron-24 > opteron.toml")]
pub(crate) struct Calibrate {
    /// Run this shell command. Its threads wait for locks and migrate more as their number grows
    #[arg(long, value_name = "COMMAND")]
    locks: Option<String>,
    /// Run this shell command. Its threads switch voluntarily
    #[arg(long, value_name = "COMMAND")]
    switches: Option<String>,
    /// Run this shell command. Its parallelism ends early
    #[arg(long, value_name = "COMMAND")]
    parallelism: Option<String>,
    /// Try at most N threads [default: three times the contexts, as in the paper]
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    /// Give the --step of the searches that will use the thresholds [default: a third of the
    /// contexts, at least 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1024))]
    step: Option<u32>,
    /// Probe each number N times. The mean counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=100))]
    rounds: u32,
    /// Watch the threads for this long in a probe
    #[arg(
        long,
        alias = "probe",
        value_name = "TIME",
        default_value = short(ThreadsRequest::PROBE),
        value_parser = time
    )]
    window: Duration,
    #[command(flatten)]
    machine: MachineArgument,
    #[command(flatten)]
    store: StoreArguments,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The JSON document.
#[derive(Serialize)]
struct CalibrationJson<'a> {
    campaign: CampaignId,
    unfinished: Option<Unfinished>,
    machine: &'a str,
    contexts: u32,
    step: u32,
    thresholds: Option<Thresholds>,
    examples: Vec<ExampleRow<'a>>,
}

/// An example, as far as it was probed.
#[derive(Serialize)]
struct ExampleRow<'a> {
    #[serde(rename = "for")]
    shows: Example,
    program: &'a str,
    probes: Vec<NumberRow>,
}

/// What an example showed with a number of threads: the mean of its rounds.
#[derive(Serialize)]
struct NumberRow {
    threads: u32,
    lock: f64,
    vcx_rate: f64,
    migr_rate: f64,
    cpu_util: f64,
}

impl NumberRow {
    fn new(&(threads, profile): &(u32, SchedulingProfile)) -> Self {
        let SchedulingProfile { lock, vcx_rate, migr_rate, cpu_util } = profile;
        Self { threads, lock: lock / 100.0, vcx_rate, migr_rate, cpu_util: cpu_util / 100.0 }
    }
}

impl<'a> CalibrationJson<'a> {
    fn new(answer: &'a CalibrationAnswer, files: Files<'_>) -> Self {
        let row = |(shows, program, curve): &'a (Example, String, ProfilesByNumber)| ExampleRow {
            shows: *shows,
            program,
            probes: curve.0.iter().map(NumberRow::new).collect(),
        };
        Self {
            campaign: answer.campaign.id,
            unfinished: answer.unfinished(files),
            machine: match &answer.request.examples {
                CalibrationExamples::Commands(_) => "host",
                CalibrationExamples::Modelled { name, .. } => name,
            },
            contexts: answer.contexts,
            step: answer.step,
            thresholds: answer.thresholds,
            examples: answer.examples.iter().map(row).collect(),
        }
    }

    fn verdict(&self) -> String {
        calibration_verdict(self.step, self.contexts, self.thresholds.is_some())
    }

    /// The thresholds as a file for --thresholds.
    fn file(&self, thresholds: &Thresholds) -> anyhow::Result<String> {
        let (machine, verdict) = (one_line(self.machine), self.verdict());
        let programs: Vec<&str> = self.examples.iter().map(|example| example.program).collect();
        // A shell command may have several lines.
        let programs = one_line(&programs.join(", ")).into_owned();
        Ok(format!(
            "# {verdict}\n# They come from these examples on {machine}: {programs}.\n{}",
            toml::to_string(thresholds)?
        ))
    }

    /// That there are no thresholds yet, how far it is, and what was probed so far.
    fn probed(&self) -> String {
        let mut sheet = LabelledLines { text: String::new(), width: output::width() };
        sheet.unfinished(self.unfinished.as_ref());
        let of = |example: &ExampleRow<'_>| {
            let row = |row: &NumberRow| {
                vec![
                    row.threads.to_string(),
                    share(row.lock),
                    figures::event_rate(row.vcx_rate),
                    figures::event_rate(row.migr_rate),
                    share(row.cpu_util),
                ]
            };
            let header = vec!["threads", "LOCK", "VCX_RATE", "MIGR_RATE", "CPU_UTIL"];
            let table = table(header, example.probes.iter().map(row));
            let program = one_line(example.program);
            format!("\n{} ({program})\n{}\n", example.shows, table.trim_fmt())
        };
        let probed = self.examples.iter().filter(|example| !example.probes.is_empty());
        sheet.text.extend(probed.map(of));
        format!("{}\n{}", self.verdict(), sheet.text)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &CalibrationAnswer, named: Option<&Path>) -> serde_json::Result<Value> {
    serde_json::to_value(CalibrationJson::new(answer, Files::of_store(named)))
}

/// Prints the thresholds, or what was probed where there are none yet. `named` is the store, where
/// commands have to name it.
pub(crate) fn print_answer(
    answer: &CalibrationAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let document = CalibrationJson::new(answer, Files::of_store(named));
    let id = answer.campaign.id.0;
    match &document.thresholds {
        _ if json => output::print_json(&document)?,
        Some(thresholds) => output::print(&document.file(thresholds)?)?,
        None => output::print(&document.probed())?,
    }
    if document.thresholds.is_none() {
        output::aside(&format!("note: campaign {id} has no thresholds yet"));
    }
    Ok(())
}

impl Calibrate {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let request = CalibrationRequest {
            examples: self.examples()?,
            max: self.max,
            step: self.step,
            rounds: self.rounds,
            probe: self.window,
        };
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let answer = events::run(request, &caller, &mut store, self.json)?;
        print_answer(&answer, self.store.named(), self.json)
    }

    fn examples(&self) -> anyhow::Result<CalibrationExamples> {
        let commands = [&self.locks, &self.switches, &self.parallelism];
        if self.machine.machine == "host" {
            let [Some(locks), Some(switches), Some(parallelism)] = commands.map(Clone::clone)
            else {
                return Err(Usage(
                    "calibrate needs three examples: add --locks, --switches and --parallelism, \
                     each with {n} in it"
                        .into(),
                )
                .into());
            };
            return Ok(CalibrationExamples::Commands([locks, switches, parallelism]));
        }
        if commands.into_iter().any(Option::is_some) {
            return Err(Usage(
                "a model has the paper's examples: leave out --locks, --switches and \
                 --parallelism"
                    .into(),
            )
            .into());
        }
        let name = self.machine.machine.clone();
        Ok(CalibrationExamples::Modelled { name, machine: Box::new(self.machine.load()?) })
    }
}
