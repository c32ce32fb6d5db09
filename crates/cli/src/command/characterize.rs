//! `pinwise characterize`: what programs on shared hardware do to each other.

mod document;
mod text;

use crate::events;
use crate::machine::Simulated;
use crate::node_arguments::OutlookArguments;
use crate::number_argument::whole;
use crate::output::{self, Usage};
use crate::store::StoreArguments;
use clap::Args;
use document::{CharacterizationJson, SoFar};
use pinwise_campaign::Store;
use pinwise_characterization::{Conditions, StoredCharacterization};
use pinwise_jobs::{CharacterizeAnswer, CharacterizeRequest, DEFAULT_STRESSORS};
use pinwise_measure::Fame;
use pinwise_placement::Budget;
use pinwise_present::{Files, excerpt_reason, figures};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Measure how programs slow each other down at each sharing level
///
/// Each microbenchmark stresses one resource. It runs alone, then next to growing numbers of others
/// at each sharing level. A run ends when its accumulated rate is within the MAIV of its steady
/// rate (FAME). The result names the slowdowns, the critical resources, sensitive programs and good
/// co-runners. It also says whether other cores matter. The store keeps it for the machine's
/// fingerprint. docs/method/characterization.md explains how.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise characterize                                    this machine
  pinwise characterize --machine ultrasparc-t2            a model, simulated cycle by cycle
  pinwise characterize --benchmarks intadd,mem --rounds 2 a part of it, for a first look
  pinwise characterize --html page.html                   with a page of heat maps")]
pub(crate) struct Characterize {
    /// Characterize host, a model, or the processor that a file NAME.toml describes
    #[arg(long, value_name = "MACHINE", default_value = "host", value_parser = Simulated)]
    machine: String,
    /// Run only these benchmarks, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    benchmarks: Vec<String>,
    /// Use at most N stressors on other cores
    #[arg(
        long,
        value_name = "N",
        default_value_t = DEFAULT_STRESSORS as u16,
        value_parser = whole::<u16>(1..=1024)
    )]
    stressors: u16,
    /// Measure everything N times. Intervals need 2 [default: 3 on this machine, 1 on a model]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=100))]
    rounds: Option<u16>,
    /// Allow this difference between the accumulated and the steady rate
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = maiv)]
    maiv: f64,
    /// Set the seed of orders, start offsets and memory
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    nodes: OutlookArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Also write a page with heat maps of the slowdowns to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Characterize {
    fn request(&self) -> Result<CharacterizeRequest, Usage> {
        let model = match self.machine.as_str() {
            "host" => None,
            name => Some(Simulated::named(name, "characterize")?),
        };
        let default = if model.is_none() { 3 } else { 1 };
        Ok(CharacterizeRequest {
            model,
            benchmarks: self.benchmarks.clone(),
            stressors: usize::from(self.stressors),
            conditions: Conditions {
                fame: Fame { maiv: self.maiv, ..Fame::default() },
                rounds: self.rounds.map_or(default, usize::from),
                seed: self.seed,
            },
            on: self.nodes.nodes()?,
        })
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let request = self.request()?;
        if let Some(file) = &self.html {
            output::check(file)?;
        }
        let caller = events::caller(self.store.named())?;
        let runs = || Ok(Budget::Measurements(request.runs(&caller).map_err(events::failed)?));
        if self.nodes.only_looks_ahead(self.json, runs)? {
            return Ok(());
        }
        // A store that cannot be used is found out before, not after.
        let mut store = self.store.open()?;
        let answer = events::run(request, &caller, &mut store, self.json)?;
        print_answer(&store, &answer, self.store.named(), Some(begin.elapsed()), self.json)?;
        let (Some(file), Some(kept)) = (&self.html, &answer.kept) else { return Ok(()) };
        output::write_page_after_answer(file, &pinwise_report::characterization_page(kept)?)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(
    store: &Store,
    answer: &CharacterizeAnswer,
    named: Option<&Path>,
) -> serde_json::Result<Value> {
    match &answer.kept {
        Some(kept) => serde_json::to_value(finished(store, answer, kept)),
        None => serde_json::to_value(so_far(store, answer, named)),
    }
}

fn finished<'a>(
    store: &'a Store,
    answer: &'a CharacterizeAnswer,
    kept: &'a StoredCharacterization,
) -> CharacterizationJson<'a> {
    let (id, seconds) = (answer.campaign.id.0, answer.time.as_secs_f64());
    CharacterizationJson::new(id, kept, answer.excerpt.as_ref(), seconds, store.path())
}

fn so_far<'a>(store: &'a Store, answer: &'a CharacterizeAnswer, named: Option<&Path>) -> SoFar<'a> {
    let campaign = &answer.campaign;
    SoFar {
        campaign: campaign.id.0,
        machine: &campaign.new.machine.name,
        unit: &campaign.new.unit.name,
        unfinished: answer.unfinished(Files::of_store(named)),
        runs: &answer.so_far,
        seconds: answer.time.as_secs_f64(),
        store: store.path(),
    }
}

/// Prints what a campaign found, or its runs so far; `took` where it was measured just now. `named`
/// is the store, where commands have to name it.
pub(crate) fn print_answer(
    store: &Store,
    answer: &CharacterizeAnswer,
    named: Option<&Path>,
    took: Option<Duration>,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        match &answer.kept {
            Some(kept) => output::print_json(&finished(store, answer, kept))?,
            None => output::print_json(&so_far(store, answer, named))?,
        }
        caution(answer);
        return Ok(());
    }
    let Some(kept) = &answer.kept else {
        return output::print(&text::so_far(&so_far(store, answer, named)));
    };
    if let Some(took) = took {
        let path: &Path = store.path();
        output::aside(&format!("took {}, stored in {}", figures::duration(took), path.display()));
    }
    output::print(&text::text(&kept.characterization, output::width()))?;
    caution(answer);
    Ok(())
}

/// Says why nothing is decided by the answer, if so, and what to do.
fn caution(answer: &CharacterizeAnswer) {
    let excerpt = answer.excerpt.as_ref().filter(|_| answer.kept.is_some());
    if let Some(excerpt) = excerpt {
        output::aside(&format!("note: place does not decide by it: {}", excerpt_reason(excerpt)));
    }
}

fn maiv(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("expected a percentage between 0 and 100, such as 1%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maiv_is_a_percentage() {
        assert_eq!(maiv("1%"), Ok(0.01));
        assert_eq!(maiv("2.5 %"), Ok(0.025));
        for text in ["0", "100%", "-1%", "nan", "much", ""] {
            assert!(maiv(text).is_err(), "{text}");
        }
    }
}
