//! The result of a characterization: measurements with intervals, noise and warnings, as JSON.

use crate::round_plan::{PlannedExperiment, RoundPlan};
use crate::statistics::{estimate, quantile, variance};
use crate::{Arranged, Findings, Isolated, Reference, Slowdown};
use pinwise_measure::{Bench, Fame, Microbenchmark, Pace, PaceUnit, WorkingSets, values_or_text};
use pinwise_topology::Fingerprint;
use serde::{Deserialize, Serialize};

/// The version of this document.
const VERSION: u32 = 1;
/// Two identical runs may differ by this much (95 % of pairs) before the machine counts as noisy.
const NOISY: f64 = 0.10;
/// Programs should have their contexts for at least this part of the time.
const BUSY: f64 = 0.95;

/// How a characterization is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// When a set of programs has run long enough.
    pub fame: Fame,
    /// How often everything is measured; intervals need two.
    pub rounds: usize,
    /// The seed of orders, offsets and memory.
    pub seed: u64,
}

/// A characterized machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Characterization {
    /// 1: this form of the document.
    pub version: u32,
    /// The machine's name.
    pub machine: String,
    /// Which machine, and under which conditions, these figures hold for.
    pub fingerprint: Fingerprint,
    /// What times per operation are counted in.
    pub unit: PaceUnit,
    /// How it was measured.
    pub conditions: Conditions,
    /// Measured sizes of the caches. `None` on models, whose caches are as described.
    #[serde(default)]
    pub working_sets: Option<WorkingSets>,
    /// The benchmarks that took part.
    pub benchmarks: Vec<Microbenchmark>,
    /// Where references sat, with the levels around them and those that are absent.
    pub references: Vec<Reference>,
    /// Each benchmark alone, at each reference.
    pub isolation: Vec<Isolated>,
    /// Each reference with each stressor, packed.
    pub slowdowns: Vec<Slowdown>,
    /// The same number of remote stressors packed and spread.
    pub arrangements: Vec<Arranged>,
    /// How much identical runs differ.
    pub noise: Noise,
    /// What follows.
    pub findings: Findings,
    /// What to know before trusting the figures.
    #[serde(deserialize_with = "values_or_text")]
    pub warnings: Vec<Warning>,
}

/// How much two runs that should give the same differ: every pair of runs alone in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The median difference, relative.
    pub median: Option<f64>,
    /// What 95 % of pairs stay within.
    pub most: Option<f64>,
    /// How many pairs.
    pub pairs: usize,
    /// The part of the time that programs really had their contexts, averaged over all runs.
    pub share: f64,
    /// Sets of programs that did not become steady, and all that were run.
    pub unsteady: (usize, usize),
}

/// All paces of one experiment: `[round][run][program]`.
pub(crate) type Runs = Vec<Vec<Vec<Pace>>>;

impl Characterization {
    /// Reads back what was serialized to JSON. `None` if it has the form of another version.
    ///
    /// # Errors
    /// No JSON, or not that of a characterization.
    pub fn from_json(text: &str) -> Result<Option<Self>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Form {
            version: u32,
        }
        let form: Form = serde_json::from_str(text)?;
        if form.version == VERSION { serde_json::from_str(text).map(Some) } else { Ok(None) }
    }

    /// From what every experiment of `plan` gave, in the plan's order. Every experiment has at
    /// least one run in each round.
    pub(crate) fn new(
        bench: &dyn Bench,
        plan: &RoundPlan,
        conditions: Conditions,
        fingerprint: Fingerprint,
        runs: &[Runs],
    ) -> Self {
        let name = |benchmark: usize| bench.benchmarks()[benchmark].name.clone();
        let alone = |reference: usize, benchmark: usize| {
            plan.experiments.iter().position(|experiment| {
                (experiment.reference, experiment.benchmark, experiment.stressor)
                    == (reference, benchmark, None)
            })
        };
        // The slowdown in each round. It is against the pauses of the stressors, or the runs alone
        // of the same round. So slow drift cancels.
        let ratios = |index: usize| -> Vec<f64> {
            let PlannedExperiment { reference, benchmark, .. } = plan.experiments[index];
            let Some(base) = alone(reference, benchmark) else { return Vec::new() };
            runs[index]
                .iter()
                .zip(&runs[base])
                .map(|(beside, alone)| slowdown(beside, alone))
                .collect()
        };
        let all: Vec<Vec<f64>> = (0..plan.experiments.len()).map(ratios).collect();
        // The variance that sets with this benchmark as the reference have in common.
        let common = |benchmark: usize| {
            let same = plan.experiments.iter().zip(&all).filter(|(experiment, _)| {
                experiment.benchmark == benchmark && experiment.stressor.is_some()
            });
            let variances: Vec<f64> = same.filter_map(|(_, ratios)| variance(ratios)).collect();
            // The median: a few bistable sets say nothing about the others.
            quantile(&variances, 0.5).unwrap_or(0.0)
        };
        let kind = |experiment: &PlannedExperiment| {
            plan.references[experiment.reference].core_kind.clone()
        };
        let repetitions = |index: usize| -> usize {
            runs[index]
                .iter()
                .flatten()
                .filter_map(|run| run.first())
                .map(|pace| pace.repetitions)
                .sum()
        };
        let mut isolation = Vec::new();
        let mut slowdowns = Vec::new();
        let mut arrangements = Vec::new();
        for (index, experiment) in plan.experiments.iter().enumerate() {
            let core_kind = kind(experiment);
            let Some(stressor) = experiment.stressor else {
                let times: Vec<f64> = runs[index].iter().map(|round| time(round)).collect();
                let estimate = estimate(&times, variance(&times).unwrap_or(0.0));
                let cycles = bench.unit() == PaceUnit::Cycles;
                isolation.push(Isolated {
                    benchmark: name(experiment.benchmark),
                    core_kind,
                    cpi: cycles.then_some(estimate.mean),
                    ns: (!cycles).then_some(estimate.mean),
                    low: estimate.low,
                    high: estimate.high,
                    runs: runs[index].iter().map(Vec::len).sum(),
                    repetitions: repetitions(index),
                });
                continue;
            };
            let ratios = &all[index];
            if experiment.spread {
                let same = |other: &&usize| {
                    let packed = &plan.experiments[**other];
                    !packed.spread
                        && (
                            packed.reference,
                            packed.benchmark,
                            packed.stressor,
                            packed.count,
                            &packed.place,
                        ) == (
                            experiment.reference,
                            experiment.benchmark,
                            Some(stressor),
                            experiment.count,
                            &experiment.place,
                        )
                };
                let indices: Vec<usize> = (0..plan.experiments.len()).collect();
                let Some(&packed) = indices.iter().find(same) else { continue };
                let both: Vec<f64> = ratios
                    .iter()
                    .zip(&all[packed])
                    .map(|(spread, packed)| spread / packed)
                    .collect();
                // Both runs vary, so the ratio does twice as much.
                let ratio = estimate(&both, 2.0 * common(experiment.benchmark));
                arrangements.push(Arranged {
                    reference: name(experiment.benchmark),
                    stressor: name(stressor),
                    count: experiment.count,
                    place: experiment.place.clone(),
                    core_kind,
                    packed: estimate(&all[packed], 0.0).mean,
                    spread: estimate(ratios, 0.0).mean,
                    ratio: ratio.mean,
                    low: ratio.low,
                    high: ratio.high,
                });
                continue;
            }
            let estimate = estimate(ratios, common(experiment.benchmark));
            slowdowns.push(Slowdown {
                reference: name(experiment.benchmark),
                stressor: name(stressor),
                count: experiment.count,
                place: experiment.place.clone(),
                core_kind,
                slowdown: estimate.mean,
                low: estimate.low,
                high: estimate.high,
                rounds: ratios.clone(),
                repetitions: repetitions(index),
                steady: runs[index].iter().flatten().flatten().all(|pace| pace.steady),
            });
        }
        let noise = Noise::new(plan, runs);
        let benchmarks: Vec<Microbenchmark> = plan
            .benchmarks
            .iter()
            .map(|&benchmark| bench.benchmarks()[benchmark].clone())
            .collect();
        let findings = Findings::new(
            bench.machine(),
            &plan.references,
            &benchmarks,
            &slowdowns,
            &arrangements,
        );
        Self {
            version: VERSION,
            machine: bench.machine().name.clone(),
            fingerprint,
            unit: bench.unit(),
            conditions,
            working_sets: bench.working_sets().cloned(),
            benchmarks,
            references: plan.references.clone(),
            isolation,
            slowdowns,
            arrangements,
            warnings: noise.warnings(),
            noise,
            findings,
        }
    }
}

/// The time per operation of the first program, averaged over the runs of one round.
fn time(runs: &[Vec<Pace>]) -> f64 {
    let times: Vec<f64> = runs.iter().filter_map(|run| run.first()).map(|pace| pace.time).collect();
    times.iter().sum::<f64>() / times.len() as f64
}

/// How much longer operations of the first program take in runs with others than in the others'
/// pauses. If these make no pauses, the runs `alone` of the same round count.
fn slowdown(beside: &[Vec<Pace>], alone: &[Vec<Pace>]) -> f64 {
    let ratio = |run: &Vec<Pace>| run.first().and_then(|pace| Some((pace.time / pace.alone?).ln()));
    match beside.iter().map(ratio).collect::<Option<Vec<f64>>>() {
        Some(ratios) if !ratios.is_empty() => {
            (ratios.iter().sum::<f64>() / ratios.len() as f64).exp()
        }
        _ => time(beside) / time(alone),
    }
}

impl Noise {
    fn new(plan: &RoundPlan, runs: &[Runs]) -> Self {
        let mut differences = Vec::new();
        let alone = plan
            .experiments
            .iter()
            .zip(runs)
            .filter(|(experiment, _)| experiment.stressor.is_none());
        for round in alone.flat_map(|(_, rounds)| rounds) {
            let times: Vec<f64> =
                round.iter().filter_map(|run| run.first()).map(|pace| pace.time).collect();
            for (later, &one) in times.iter().enumerate() {
                differences.extend(times[..later].iter().map(|&other| (one / other).ln().abs()));
            }
        }
        let paces: Vec<&Pace> = runs.iter().flatten().flatten().flatten().collect();
        let sets: Vec<&Vec<Pace>> = runs.iter().flatten().flatten().collect();
        Self {
            median: quantile(&differences, 0.5),
            most: quantile(&differences, 0.95),
            pairs: differences.len(),
            share: paces.iter().map(|pace| pace.share).sum::<f64>() / paces.len().max(1) as f64,
            unsteady: (
                sets.iter().filter(|set| set.iter().any(|pace| !pace.steady)).count(),
                sets.len(),
            ),
        }
    }

    /// Whether other programs took CPU time, so that the benchmarks of a set ran together too
    /// briefly.
    pub fn busy(&self) -> bool {
        self.share < BUSY
    }

    fn warnings(&self) -> Vec<Warning> {
        let (sets, of) = self.unsteady;
        let noisy = self.most.filter(|&most| most > NOISY);
        [
            self.busy().then_some(Warning::Busy { share: self.share }),
            noisy.map(|most| Warning::Noisy { most, pairs: self.pairs }),
            (sets * 20 > of).then_some(Warning::Unsteady { sets, of }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A reason to doubt a characterization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// Other programs had the contexts.
    Busy {
        /// Share of the time that the benchmarks had them.
        share: f64,
    },
    /// Identical runs differ.
    Noisy {
        /// 95 % of the pairs differ by at most this share.
        most: f64,
        /// Pairs of identical runs.
        pairs: usize,
    },
    /// Sets of programs did not become steady.
    Unsteady {
        /// How many.
        sets: usize,
        /// All sets.
        of: usize,
    },
    /// Text: from a document that was written before warnings had kinds.
    Text {
        /// The text.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(Warning);
