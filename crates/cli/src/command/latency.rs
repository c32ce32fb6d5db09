//! `pinwise latency`: how far the contexts of a machine are apart, and the levels that follow from
//! it.

mod map;
mod source;
mod text;

use crate::events;
use crate::machine::MachineArgument;
use crate::output::{self, Usage};
use clap::Args;
use pinwise_hardware::{Latencies, LatencyRunError, Quantiles};
use pinwise_jobs::{LatencyAnswer, LatencyRequest};
use pinwise_present::{
    Files, LatencyFindings, Unfinished, figures, latency_warning, tagged, texts,
};
use pinwise_topology::{
    CpuId, CpuSet, DeclaredGroups, Difference, DomainKind, HeaderCheck, LatencyClass,
    LatencyComparison, LatencyLevels, LatencyMatrix, LatencyUnit, Machine, Oddity,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use source::Source;
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

/// The JSON document. What a file may lack has a default: [`Source`] reads it back.
#[derive(Serialize, Deserialize)]
struct LatencyJson {
    /// The campaign that measured them.
    #[serde(default)]
    campaign: Option<i64>,
    /// How far the campaign is, if it has not ended. Nothing is compared before.
    #[serde(default)]
    unfinished: Option<Unfinished>,
    /// Whose latencies they are.
    name: String,
    unit: LatencyUnit,
    contexts: Vec<CpuId>,
    /// Row by row, the writer first.
    matrix: Vec<Vec<Option<f64>>>,
    #[serde(default)]
    levels: Vec<ImpliedLevel>,
    /// Whether all of them are declared; `None` where nothing declares any.
    #[serde(default)]
    agrees: Option<bool>,
    #[serde(default)]
    unseen: Vec<DeclaredGroups>,
    #[serde(default)]
    unknown: CpuSet,
    #[serde(default)]
    unmeasured: CpuSet,
    #[serde(default)]
    header: Vec<HeaderCheck>,
    #[serde(default)]
    oddities: Vec<Oddity>,
    #[serde(default)]
    pairs: Vec<Pair>,
    #[serde(default)]
    tsc_ghz: Option<f64>,
    #[serde(default)]
    seconds: Option<f64>,
    /// Reasons for doubt, each with its kind, its values and its text.
    #[serde(default)]
    warnings: Vec<Value>,
}

/// An implied level, and what declares it.
#[derive(Serialize, Deserialize)]
struct ImpliedLevel {
    groups: Vec<CpuSet>,
    /// Contexts in each group, where that is the same in all.
    size: Option<usize>,
    latency: Option<LatencyClass>,
    classes: Vec<LatencyClass>,
    contradictions: Vec<(CpuId, CpuId, f64)>,
    declared: Vec<DomainKind>,
    difference: Option<Difference>,
}

/// One direction of a pair, as it was measured: nanoseconds one way.
#[derive(Clone, Serialize, Deserialize)]
struct Pair {
    from: CpuId,
    to: CpuId,
    #[serde(flatten)]
    latency: Quantiles,
    /// Middle half of the batches, each relative to the median of its line.
    spread: f64,
    batches: usize,
    /// Median of each line that was tried, ascending.
    lines: Vec<f64>,
    /// Share of the time that a thread waited for its CPU.
    waited: f64,
}

impl Latency {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let declared = self.declared()?;
        if let Some(file) = &self.html {
            output::check(file)?;
        }
        let document = match &self.from {
            Some(path) => Source::read(path)?.document(),
            None => self.measure(declared.as_ref())?,
        };
        let shown = Shown::new(document, declared.as_ref())?;
        shown.print(self.json)?;
        match &self.html {
            Some(file) => output::write(file, shown.page()?.as_bytes()),
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
    /// machine: what was measured here would be held against levels that it does not have.
    fn measure(&self, declared: Option<&Machine>) -> anyhow::Result<LatencyJson> {
        let host = pinwise_linux::this_machine()?;
        if let (Some(name), Some(other)) = (&self.machine, declared)
            && other.online() != host.online()
        {
            return Err(Usage(format!(
                "--machine {name} has contexts {}, this machine {}: pinwise can only measure \
                 this machine; read latencies of {name} with --from FILE",
                other.online(),
                host.online()
            ))
            .into());
        }
        let contexts = match &self.cpus {
            None => host.allowed.clone(),
            Some(list) => {
                let asked =
                    CpuSet::parse_list(list).map_err(|error| Usage(format!("--cpus: {error}")))?;
                let missing = asked.difference(&host.allowed);
                if !missing.is_empty() {
                    let message = format!(
                        "--cpus {list}: not allowed here: {missing}; allowed are {}",
                        host.allowed
                    );
                    return Err(Usage(message).into());
                }
                asked
            }
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
        LatencyJson::measured(host.name, &answer, Files::default())
    }
}

/// Latencies, with what follows from them.
struct Shown {
    document: LatencyJson,
    matrix: LatencyMatrix,
    levels: LatencyLevels,
    /// With the levels that a machine declares.
    comparison: Option<LatencyComparison>,
}

impl Shown {
    fn new(mut document: LatencyJson, declared: Option<&Machine>) -> anyhow::Result<Self> {
        let matrix = document.latencies()?;
        let levels = LatencyLevels::of(&matrix);
        let compare = |machine| LatencyComparison::new(&matrix, &levels, machine);
        // A matrix with holes implies other levels than the whole one.
        let declared = declared.filter(|_| document.unfinished.is_none());
        let comparison = declared.map(compare);
        if let Some(comparison) = &comparison {
            document.compare(comparison);
        }
        Ok(Self { document, matrix, levels, comparison })
    }

    /// What is said of it in sentences.
    fn said(&self) -> LatencyFindings<'_> {
        LatencyFindings {
            unit: self.document.unit,
            unfinished: self.document.unfinished.as_ref(),
            levels: &self.levels,
            agrees: self.document.agrees,
            header: &self.document.header,
            comparison: self.comparison.as_ref(),
        }
    }

    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::print_json(&self.document);
        }
        let colour = std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        output::print_exact(&text::text(&self.document, &self.said(), output::width(), colour))
    }

    fn page(&self) -> anyhow::Result<String> {
        let (name, warnings) = (&self.document.name, texts(&self.document.warnings));
        Ok(pinwise_report::latency_page(name, &self.matrix, &self.said(), &warnings)?)
    }
}

fn unfinished(answer: &LatencyAnswer, files: Files<'_>) -> Option<Unfinished> {
    let (made, all) = (answer.latencies.directions.len() as u64, answer.planned);
    Unfinished::of(&answer.campaign, made, all, "directions are measured", files)
}

fn of_campaign(answer: &LatencyAnswer, files: Files<'_>) -> anyhow::Result<Shown> {
    let machine = &answer.campaign.new.machine;
    if answer.latencies.contexts.len() < 2 {
        let far = unfinished(answer, files).map_or(String::new(), |far| format!(". {}", far.text));
        anyhow::bail!("campaign {} has no latency yet{far}", answer.campaign.id.0);
    }
    Shown::new(LatencyJson::measured(machine.name.clone(), answer, files)?, Some(machine))
}

/// Prints what a campaign measured. `named` is the store, where commands have to name it.
pub(crate) fn tell(answer: &LatencyAnswer, named: Option<&Path>, json: bool) -> anyhow::Result<()> {
    of_campaign(answer, Files::of_store(named))?.print(json)
}

/// The page of what a campaign measured.
pub(crate) fn page(answer: &LatencyAnswer, files: Files<'_>) -> anyhow::Result<String> {
    of_campaign(answer, files)?.page()
}

impl LatencyJson {
    /// What `matrix` says; nothing measured, nothing declared.
    fn new(name: String, matrix: &LatencyMatrix) -> Self {
        let n = matrix.contexts().len();
        let found = LatencyLevels::of(matrix);
        let levels = found.levels.into_iter().map(|level| ImpliedLevel {
            size: level.size(),
            groups: level.groups,
            latency: level.latency,
            classes: level.classes,
            contradictions: level.contradictions,
            declared: Vec::new(),
            difference: None,
        });
        Self {
            campaign: None,
            unfinished: None,
            name,
            unit: matrix.unit(),
            contexts: matrix.contexts().to_vec(),
            matrix: (0..n).map(|from| (0..n).map(|to| matrix.get(from, to)).collect()).collect(),
            levels: levels.collect(),
            agrees: None,
            unseen: Vec::new(),
            unknown: CpuSet::new(),
            unmeasured: CpuSet::new(),
            header: Vec::new(),
            oddities: found.oddities,
            pairs: Vec::new(),
            tsc_ghz: None,
            seconds: None,
            warnings: Vec::new(),
        }
    }

    /// What was measured on a machine.
    fn measured(name: String, answer: &LatencyAnswer, files: Files<'_>) -> anyhow::Result<Self> {
        let latencies = &answer.latencies;
        let mut document = Self::new(name, &latencies.matrix()?);
        document.campaign = Some(answer.campaign.id.0);
        document.unfinished = unfinished(answer, files);
        document.tsc_ghz = latencies.tsc_ghz;
        document.seconds = Some(latencies.elapsed.as_secs_f64());
        let pairs = latencies.directions.iter().filter_map(|direction| {
            Some(Pair {
                from: direction.from,
                to: direction.to,
                latency: direction.quantiles()?,
                spread: direction.spread()?,
                batches: direction.batches(),
                lines: direction.line_medians(),
                waited: direction.waited,
            })
        });
        document.pairs = pairs.collect();
        let warnings = latencies.warnings();
        document.warnings = warnings.iter().map(|one| tagged(one, latency_warning(one))).collect();
        Ok(document)
    }

    /// The matrix it holds.
    fn latencies(&self) -> Result<LatencyMatrix, pinwise_topology::LatencyError> {
        LatencyMatrix::new(self.contexts.clone(), self.unit, self.matrix.concat())
    }

    /// Holds the levels against declared ones.
    fn compare(&mut self, comparison: &LatencyComparison) {
        self.agrees = Some(comparison.agrees() && self.header.iter().all(|check| check.agrees));
        let LatencyComparison { levels, unseen, unknown, unmeasured } = comparison.clone();
        for (level, counterpart) in self.levels.iter_mut().zip(levels) {
            (level.declared, level.difference) = (counterpart.declared, counterpart.difference);
        }
        (self.unseen, self.unknown, self.unmeasured) = (unseen, unknown, unmeasured);
    }
}
