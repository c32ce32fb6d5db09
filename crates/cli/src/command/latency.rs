//! `pinwise latency`: how far the contexts of a machine are apart, and the levels that follow from
//! it.

mod document;
mod map;
mod source;
mod text;

use crate::events;
use crate::machine::MachineArgument;
use crate::output::{self, Usage};
use clap::Args;
use document::LatencyJson;
use pinwise_hardware::{Latencies, LatencyRunError};
use pinwise_jobs::{LatencyAnswer, LatencyRequest};
use pinwise_present::{Files, LatencyFindings, figures, texts};
use pinwise_topology::Machine;
use serde_json::Value;
use source::LatencyFile;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Measure core-to-core latency and derive the sharing levels
///
/// Two threads pass a cache line back and forth with compare-and-swap. They do so between each pair
/// of contexts, in both directions, on several lines of fresh pages. A pair takes 16 ms. A latency
/// is one way: half a round trip. The levels come from the latencies alone. latency then compares
/// them with the levels that the machine declares. docs/method/latency.md explains how.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise latency                                this machine
  pinwise latency --cpus 0-7                     some of its contexts
  pinwise latency --json > box.json              store them; --from reads them again
  pinwise latency --html box.html                a page with the heat map
  pinwise latency --from lpdquad.mct             MCTOP's description of a machine
  pinwise latency --from box.csv --machine 2x8   CSV of core-to-core-latency, against a shape")]
pub(crate) struct Latency {
    /// Read latencies from FILE and measure nothing. FILE is JSON of this command, MCTOP's .mct, or
    /// CSV of core-to-core-latency
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Measure between these contexts [default: all that are allowed]
    #[arg(long, value_name = "LIST", conflicts_with = "from")]
    cpus: Option<String>,
    /// Compare with the levels of this machine, as for `topo` [default: host; with --from, what the
    /// file declares]
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,
    /// Also write a page with the matrix as a heat map to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Latency {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let declared = self.declared()?;
        if let Some(file) = &self.html {
            output::check(file)?;
        }
        let shown = match &self.from {
            Some(path) => {
                let (document, findings) = LatencyFile::read(path)?.document(declared.as_ref());
                ShownLatency { document, findings }
            }
            None => self.measure(declared.as_ref())?,
        };
        shown.print(self.json)?;
        match &self.html {
            Some(file) => output::write_page_after_answer(file, &shown.page()?),
            None => Ok(()),
        }
    }

    /// The machine that declares levels to compare with.
    fn declared(&self) -> anyhow::Result<Option<Machine>> {
        match (&self.machine, &self.from) {
            (Some(name), _) => Ok(Some(MachineArgument { machine: name.clone() }.load()?)),
            (None, None) => Ok(Some(pinwise_linux::this_machine()?)),
            (None, Some(_)) => Ok(None),
        }
    }

    /// Measures this machine. `declared` may describe it in other words, but not be another
    /// machine. Else the measurements would be compared with levels that it does not have.
    fn measure(&self, declared: Option<&Machine>) -> anyhow::Result<ShownLatency> {
        let host = pinwise_linux::this_machine()?;
        if let (Some(name), Some(other)) = (&self.machine, declared)
            && other.online() != host.online()
        {
            return Err(Usage(format!(
                "--machine {name} has contexts {}, this machine {}: pinwise can only measure \
                 this machine; read latencies with --from FILE",
                other.online(),
                host.online()
            ))
            .into());
        }
        let contexts = match &self.cpus {
            None => host.allowed.clone(),
            Some(list) => pinwise_jobs::named_cpus(list, &host.allowed)?,
        };
        if contexts.len() < 2 {
            return Err(Usage(LatencyRunError::TooFew(contexts.len()).to_string()).into());
        }
        let (pairs, time) = Latencies::estimate(contexts.len());
        let plural = if pairs == 1 { "" } else { "s" };
        let cost = figures::duration(time);
        output::aside(&format!(
            "{} contexts, {pairs} pair{plural}, both directions: about {cost}",
            contexts.len()
        ));
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let job = LatencyRequest { contexts };
        let answer = events::run(job, &caller, &mut store, self.json)?;
        let findings = answer.findings(declared, Files::of_store(self.store.named()))?;
        Ok(ShownLatency::of(&answer, findings))
    }
}

/// Latencies, with what follows from them.
struct ShownLatency {
    document: LatencyJson,
    findings: LatencyFindings,
}

impl ShownLatency {
    fn of(answer: &LatencyAnswer, findings: LatencyFindings) -> Self {
        Self { document: LatencyJson::of(answer, &findings), findings }
    }

    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::print_json(&self.document);
        }
        let colour = std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        output::print_exact(&text::text(&self.document, &self.findings, output::width(), colour))
    }

    fn page(&self) -> anyhow::Result<String> {
        let (name, warnings) = (&self.document.name, texts(&self.document.warnings));
        Ok(pinwise_report::latency_page(name, &self.findings, &warnings)?)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &LatencyAnswer, named: Option<&Path>) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(of_campaign(answer, named)?.document)?)
}

/// Prints what a campaign measured. `named` is the store, where commands have to name it.
pub(crate) fn print_answer(
    answer: &LatencyAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    of_campaign(answer, named)?.print(json)
}

fn of_campaign(answer: &LatencyAnswer, named: Option<&Path>) -> anyhow::Result<ShownLatency> {
    let machine = &answer.campaign.new.machine;
    Ok(ShownLatency::of(answer, answer.findings(Some(machine), Files::of_store(named))?))
}
