//! `pinwise characterize`: what programs on shared hardware do to each other.

mod text;

use crate::machine::Simulated;
use crate::name::did_you_mean;
use crate::number::whole;
use crate::output::{self, Interrupted, Usage};
use crate::store::StoreArguments;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinwise_characterization::{
    Characterization, Conditions, Plan, PlanError, Reference, estimate, execute,
};
use pinwise_hardware::HostBench;
use pinwise_measure::{Bench, Fame, MeasureError};
use pinwise_present::figures;
use pinwise_processor::ModelBench;
use pinwise_topology::Fingerprint;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Stressors on other cores, unless fewer or more are asked for: what comes of many is seen by
/// then.
const STRESSORS: u16 = 8;

/// Measure what programs on shared hardware do to each other, level by level
///
/// Microbenchmarks, each of which stresses one resource, run alone and then beside others at every
/// sharing level the machine has, in growing number, each until its accumulated rate is within the
/// MAIV of the steady one (FAME). The result is the slowdown tables, the critical resources, who is
/// sensitive, whom to run beside whom, and whether other cores matter. It is kept with the
/// machine's fingerprint. docs/method/characterization.md explains the method.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise characterize                                    this machine
  pinwise characterize --machine ultrasparc-t2            a model, simulated cycle by cycle
  pinwise characterize --benchmarks intadd,mem --rounds 2 some of it, to look at
  pinwise characterize --html page.html                   with a page of heat maps")]
pub(crate) struct Characterize {
    /// Where the benchmarks run: host, or a processor that is simulated, a built-in one or what a
    /// TOML file describes (a path with a / or NAME.toml)
    #[arg(long, value_name = "MACHINE", default_value = "host", value_parser = Simulated)]
    machine: String,
    /// Only these benchmarks, with commas between them [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    benchmarks: Vec<String>,
    /// At most N stressors on other cores
    #[arg(long, value_name = "N", default_value_t = STRESSORS, value_parser = whole::<u16>(1..=1024))]
    stressors: u16,
    /// How often everything is measured; intervals need 2 [default: 3 on this machine, 1 on a
    /// model]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=100))]
    rounds: Option<u16>,
    /// Largest difference between the accumulated and the steady rate
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = maiv)]
    maiv: f64,
    /// The seed of orders, start offsets and memory
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    store: StoreArguments,
    /// Write a page with the slowdowns as heat maps to FILE as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn maiv(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("expected a percentage between 0 and 100, such as 1%".into()),
    }
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    characterization: &'a Characterization,
    /// How long it took in all, what a core gets of its caches included.
    seconds: f64,
    /// The file it is kept in.
    store: PathBuf,
    /// Its number there.
    id: i64,
    /// Why nothing is decided by it, if so.
    excerpt: Option<String>,
}

impl Characterize {
    fn plan(&self, bench: &dyn Bench) -> Result<Plan, Usage> {
        Plan::new(
            bench.machine(),
            bench.benchmarks(),
            &self.benchmarks,
            usize::from(self.stressors),
        )
        .map_err(|error| {
            let known = bench.benchmarks().iter().map(|benchmark| benchmark.name.as_str());
            match &error {
                PlanError::Unknown { name, .. } => {
                    Usage(format!("{error}{}", did_you_mean(name, known)))
                }
                PlanError::NoContexts => Usage(error.to_string()),
            }
        })
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let interrupt = crate::events::listen()?;
        let begin = Instant::now();
        let (bench, fingerprint): (Box<dyn Bench>, Fingerprint) = match self.machine.as_str() {
            "host" => {
                let machine = pinwise_linux::machine()?;
                let fingerprint = pinwise_linux::fingerprint(&machine);
                let mut bench = HostBench::new(machine, interrupt.flag())?;
                // A misspelt name is told before anything is measured.
                self.plan(&bench)?;
                output::aside("looking at what a core gets of its caches");
                bench.look_at_caches().map_err(stopped)?;
                (Box::new(bench), fingerprint)
            }
            name => {
                let model = Simulated::named(name, "characterize")?;
                let bench = ModelBench::new(model.processor()?, interrupt.flag());
                let fingerprint = Fingerprint::of(bench.machine());
                (Box::new(bench), fingerprint)
            }
        };
        let plan = self.plan(&*bench)?;
        // A store that cannot be used is found out before, not after.
        let mut store = self.store.open()?;
        let default = if self.machine == "host" { 3 } else { 1 };
        let conditions = Conditions {
            fame: Fame { maiv: self.maiv, ..Fame::default() },
            rounds: self.rounds.map_or(default, usize::from),
            seed: self.seed,
        };
        announce(&*bench, &plan, &conditions)?;
        let characterization = measure(&*bench, &plan, conditions, fingerprint).map_err(stopped)?;
        let seconds = begin.elapsed().as_secs_f64();
        let excerpt = self.excerpt(&plan, &*bench, &characterization);
        let kept = store.keep_characterization(characterization, excerpt.is_none())?;
        if let Some(why) = &excerpt {
            output::aside(&format!("place does not go by it: {why}"));
        }
        if let Some(file) = &self.html {
            let page = pinwise_report::characterization_page(&kept)?;
            output::write(file, page.as_bytes())?;
        }
        if self.json {
            let store = store.path().to_owned();
            let (id, characterization) = (kept.id, &kept.characterization);
            return output::print_json(&Document { characterization, seconds, store, id, excerpt });
        }
        output::aside(&format!(
            "took {}, kept in {}",
            figures::duration(Duration::from_secs_f64(seconds)),
            store.path().display()
        ));
        output::print(&text::text(&kept.characterization))
    }

    /// Why nothing is to be decided by what was found, if so.
    fn excerpt(&self, plan: &Plan, bench: &dyn Bench, found: &Characterization) -> Option<String> {
        if plan.benchmarks.len() < bench.benchmarks().len() {
            return Some("only some of the benchmarks took part".into());
        }
        if self.stressors < STRESSORS {
            return Some(format!("fewer than {STRESSORS} stressors ran on other cores"));
        }
        let share = || figures::percent(found.noise.share);
        found
            .noise
            .busy()
            .then(|| format!("programs had their contexts for {} of the time", share()))
    }
}

/// Why it was not measured.
fn stopped(error: MeasureError) -> anyhow::Error {
    if error.interrupted {
        return Interrupted("interrupted: nothing was changed, nothing was kept".into()).into();
    }
    error.into()
}

/// Says what there is to do, what is absent, and how long it takes.
fn announce(bench: &dyn Bench, plan: &Plan, conditions: &Conditions) -> anyhow::Result<()> {
    let runs = plan.runs(conditions.rounds);
    let names: Vec<&str> = plan
        .references
        .iter()
        .flat_map(|reference: &Reference| &reference.levels)
        .map(|level| level.name.as_str())
        .collect();
    let levels = if names.is_empty() {
        "no sharing level".to_owned()
    } else {
        format!("levels {}", names.join(", "))
    };
    let sets = plan.experiments.len();
    output::aside(&format!(
        "{}: {levels}; {} benchmarks, {sets} sets of programs, {runs} runs in {} round{}",
        bench.machine().name,
        plan.benchmarks.len(),
        conditions.rounds,
        if conditions.rounds == 1 { "" } else { "s" }
    ));
    let all = estimate(bench, plan, conditions).map_err(stopped)?;
    output::aside(&format!(
        "about {}; it is kept when it is complete: Ctrl-C keeps nothing of it",
        figures::duration(all)
    ));
    Ok(())
}

fn measure(
    bench: &dyn Bench,
    plan: &Plan,
    conditions: Conditions,
    fingerprint: Fingerprint,
) -> Result<Characterization, pinwise_measure::MeasureError> {
    let runs = plan.runs(conditions.rounds) as u64;
    // Redrawn at most four times a second: drawing costs time on the machine under test.
    let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::stderr_with_hz(4));
    if let Ok(style) =
        ProgressStyle::with_template("[{elapsed_precise}] {bar:24} {pos} of {len} runs, {eta} left")
    {
        bar.set_style(style);
    }
    let result =
        execute(bench, plan, conditions, fingerprint, &|step| bar.set_position(step.done as u64));
    bar.finish_and_clear();
    result
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
