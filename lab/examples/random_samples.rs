//! The study of the statistical approach (P. Radojković et al., ASPLOS 2012, section 5) on the
//! simulated UltraSPARC T2: five programs, eight instances, 24 threads, up to 5,000 random
//! assignments. It prints the tables of docs/lab/random-samples.md.
//!
//!     cargo run --release -p pinwise-lab --example random_samples -- ../shared/published [PROGRAM…]
//!
//! The paper could not know the optimum. Here the best known assignment is the best of two searches
//! by the default strategy and of all samples. So each claim of the published estimate is judged.

use pinwise_campaign::MemoryJournal;
use pinwise_evt::{BoundEstimate, Method, Options, Sample, estimate};
use pinwise_jobs::{Interrupt, place_on};
use pinwise_measure::{Effort, Measurement, Setting, Testbed};
use pinwise_placement::{Budget, Outcome, PlacementQuestion, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_topology::{Alike, Assignment, PerContext, Random, SharingTree, Space};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::PathBuf;

/// The paper's five programs and their names there.
const PROGRAMS: [(PacketProgram, &str); 5] = [
    (PacketProgram::AhoCorasick, "Aho-Corasick"),
    (PacketProgram::Hash1L1, "IPFwd-L1"),
    (PacketProgram::Hash1Mem, "IPFwd-Mem"),
    (PacketProgram::PacketAnalyzer, "Packet-analyzer"),
    (PacketProgram::Stateful, "Stateful"),
];
const INSTANCES: usize = 8;
/// Sizes of samples in figures 10 to 12.
const SIZES: [usize; 3] = [1000, 2000, 5000];
/// Acceptable losses of figure 14.
const LOSSES: [f64; 3] = [0.10, 0.05, 0.025];
/// Windows that judge an assignment, from starts that no search saw.
const FRESH: usize = 16;
/// Measurements of each search for the best known, and their number.
const LONG: u64 = 1200;
const SEARCHES: u64 = 2;
/// Those of a search as a user runs it.
const USUAL: u64 = 600;

/// `[optimal_assignment_evt]` of headline.toml.
#[derive(Deserialize)]
struct Headline {
    initial_sample: usize,
    step_sample: usize,
    samples_needed_within_2_5_percent: [usize; 2],
    samples_needed_within_10_percent_below: usize,
    possible_improvement_upper_1000: BTreeMap<String, f64>,
    possible_improvement_upper_2000_below: f64,
    possible_improvement_upper_5000_below: f64,
    best_gain_from_1000_to_5000_below: f64,
}

#[derive(Deserialize)]
struct Published {
    optimal_assignment_evt: Headline,
}

/// What a search or a sample announces.
struct Claim {
    measurements: usize,
    /// The most that an assignment may be better, as a share of the bound.
    gap: Option<f64>,
    /// What the announced assignment loses against the best known.
    loss: f64,
}

struct Study {
    program: PacketProgram,
    /// Its name in the paper.
    name: &'static str,
    /// The best value of each size of sample, packets/s, and what its assignment truly loses.
    best: [f64; 3],
    losses: [f64; 3],
    /// The published estimate from each.
    estimates: [Option<BoundEstimate>; 3],
    /// What the best known does, packets/s.
    optimum: f64,
    /// Where the iteration ends for each acceptable loss.
    iterations: [Option<Claim>; 3],
    usual: Claim,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name the folder of published figures")?;
    let wanted: Vec<String> = arguments.collect();
    let text = std::fs::read_to_string(PathBuf::from(folder).join("headline.toml"))?;
    let paper = toml::from_str::<Published>(&text)?.optimal_assignment_evt;
    let studies = PROGRAMS
        .into_iter()
        .filter(|(program, _)| wanted.is_empty() || wanted.iter().any(|it| it == program.name()))
        .map(|(program, name)| Study::of(program, name, &paper))
        .collect::<Result<Vec<Study>, Box<dyn Error>>>()?;
    best_of_samples(&studies, &paper);
    estimates(&studies, &paper);
    iterations(&studies, &paper);
    usual(&studies);
    Ok(())
}

fn best_of_samples(studies: &[Study], paper: &Headline) {
    println!(
        "## The best of a sample (figure 10)\n\n| program | 1,000 to 5,000: gain, paper | here | \
         agrees | true loss: best of 1,000 | of 2,000 | of 5,000 \
         |\n|---|---:|---:|---|---:|---:|---:|"
    );
    let limit = paper.best_gain_from_1000_to_5000_below;
    for study in studies {
        let gain = study.best[2] / study.best[0] - 1.0;
        println!(
            "| {} | up to {} | {} | {} | {} |",
            study.program.name(),
            percent(limit),
            percent(gain),
            yes(gain <= limit),
            study.losses.map(percent).join(" | ")
        );
    }
}

fn estimates(studies: &[Study], paper: &Headline) {
    println!(
        "\n## Estimates of the optimum (figures 11 and 12)\n\n| program | assignments | paper, up \
         to | point | upper end | as small as the paper's | true | the interval holds it \
         |\n|---|---:|---:|---:|---:|---|---:|---|"
    );
    for study in studies {
        let published = [
            paper.possible_improvement_upper_1000.get(study.name).copied(),
            Some(paper.possible_improvement_upper_2000_below),
            Some(paper.possible_improvement_upper_5000_below),
        ];
        for ((size, estimate), published) in SIZES.iter().zip(&study.estimates).zip(published) {
            let published = published.unwrap_or(f64::NAN);
            let [point, high, small, held] = match estimate {
                None => ["none".to_owned(), "none".to_owned(), "no".into(), "-".into()],
                Some(estimate) => {
                    let above = |bound: f64| bound / estimate.best - 1.0;
                    let high = estimate.upb_high;
                    [
                        percent(above(estimate.upb)),
                        high.map_or("no limit".to_owned(), |high| percent(above(high))),
                        yes(high.is_some_and(|high| above(high) <= published)).into(),
                        yes(high.is_none_or(|high| study.optimum <= high)).into(),
                    ]
                }
            };
            let truth = estimate.as_ref().map_or(f64::NAN, |it| study.optimum / it.best - 1.0);
            println!(
                "| {} | {size} | {} | {point} | {high} | {small} | {} | {held} |",
                study.program.name(),
                percent(published),
                percent(truth),
            );
        }
    }
}

fn iterations(studies: &[Study], paper: &Headline) {
    let [fewest, most] = paper.samples_needed_within_2_5_percent;
    println!(
        "\n## How many assignments for a loss (figure 14)\n\nThe iteration looks after {} and \
         after each {} more. The paper needs fewer than {} for 10 %, and\n{fewest} to {most} for \
         2.5 %.\n\n| program | acceptable | assignments | as the paper | true loss | the claim is \
         true |\n|---|---:|---:|---|---:|---|",
        paper.initial_sample, paper.step_sample, paper.samples_needed_within_10_percent_below,
    );
    for study in studies {
        for (acceptable, ended) in LOSSES.into_iter().zip(&study.iterations) {
            let cells = match ended {
                None => [format!("more than {}", SIZES[2]), "-".into(), "-".into(), "-".into()],
                Some(claim) => {
                    let size = claim.measurements;
                    let alike = if acceptable == LOSSES[0] {
                        yes(size < paper.samples_needed_within_10_percent_below)
                    } else if acceptable == LOSSES[2] {
                        yes((fewest..=most).contains(&size))
                    } else {
                        "-"
                    };
                    let holds = yes(claim.loss <= acceptable);
                    [size.to_string(), alike.into(), percent(claim.loss), holds.into()]
                }
            };
            let acceptable = format!("{:.1} %", 100.0 * acceptable);
            println!("| {} | {acceptable} | {} |", study.program.name(), cells.join(" | "));
        }
    }
}

fn usual(studies: &[Study]) {
    println!(
        "\n## The default strategy on the same programs\n\nOne search of at most {USUAL} \
         measurements.\n\n| program | measurements | may be better by | true loss | the claim is \
         true |\n|---|---:|---:|---:|---|"
    );
    for study in studies {
        let Claim { measurements, gap, loss } = study.usual;
        let holds = gap.map_or("-", |gap| yes(loss <= gap));
        println!(
            "| {} | {measurements} | {} | {} | {holds} |",
            study.program.name(),
            gap.map_or("no claim".to_owned(), percent),
            percent(loss),
        );
    }
}

impl Study {
    fn of(
        program: PacketProgram,
        name: &'static str,
        paper: &Headline,
    ) -> Result<Self, Box<dyn Error>> {
        let programs = vec![program; INSTANCES];
        let window = SimulatedWindow::of(&programs);
        let processor = Processor::model("ultrasparc-t2")?;
        let machine = processor.machine();
        let testbed = |seed| {
            let (processor, machine) = (processor.clone(), machine.clone());
            SimulatedTestbed::new(processor, machine, programs.clone(), window, seed)
        };
        let (mut sampled, mut judged) = (testbed(1)?, testbed(2)?);
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let threads = sampled.workload().threads.len();
        let space = Space::new(tree, threads, PerContext::AtMost(1))?;
        let mut random = Random::new(1);
        let assignments: Vec<Assignment> =
            (0..SIZES[2]).map(|_| space.canonical(&space.sample(&mut random))).collect();
        let values = windows(&mut sampled, &assignments, 1)?;
        let best_of = |size: usize| {
            let best = (0..size).max_by(|&one, &other| values[one].total_cmp(&values[other]));
            &assignments[best.unwrap_or_default()]
        };

        let search = |budget, seed| -> Result<(Outcome, Assignment), Box<dyn Error>> {
            let question = PlacementQuestion {
                seed,
                ..PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(budget))
            };
            let (mut journal, stop) = (MemoryJournal::default(), Interrupt::default());
            let outcome = place_on(&mut testbed(10 + seed)?, question, &mut journal, &stop)?;
            let announced = outcome.best.as_ref().or(outcome.so_far.as_ref());
            let announced = announced.ok_or("a search without an assignment")?.assignment.clone();
            Ok((outcome, announced))
        };
        let mut found = Vec::new();
        for seed in 1..=SEARCHES {
            found.push(search(LONG, seed)?.1);
        }
        let (usual, announced) = search(USUAL, SEARCHES + 1)?;

        let ends: Vec<usize> =
            (paper.initial_sample..=SIZES[2]).step_by(paper.step_sample).collect();
        let mut candidates: Vec<Assignment> =
            ends.iter().map(|&size| best_of(size).clone()).chain(found).collect();
        candidates.push(announced.clone());
        candidates.sort_unstable();
        candidates.dedup();
        let fresh = windows(&mut judged, &candidates, FRESH)?;
        let optimum = fresh.iter().copied().fold(f64::MIN, f64::max);
        let known: HashMap<&Assignment, f64> = candidates.iter().zip(fresh).collect();
        let loss = |of: &Assignment| 1.0 - known.get(of).copied().unwrap_or(f64::NAN) / optimum;

        let options = Options { method: Method::Profile, ..Options::default() };
        let at =
            |size: usize| estimate(&Sample::new(values[..size].iter().copied()), &options).ok();
        let looks: Vec<Option<BoundEstimate>> = ends.iter().map(|&size| at(size)).collect();
        let iterations = LOSSES.map(|acceptable| {
            let ended = ends.iter().zip(&looks).find_map(|(&size, look)| {
                let gap = look.as_ref()?.gap.filter(|gap| *gap <= acceptable)?;
                Some((size, gap))
            });
            let claim = |(size, gap)| Claim {
                measurements: size,
                gap: Some(gap),
                loss: loss(best_of(size)),
            };
            ended.map(claim)
        });
        Ok(Self {
            program,
            name,
            best: SIZES.map(|size| values[..size].iter().copied().fold(f64::MIN, f64::max)),
            losses: SIZES.map(|size| loss(best_of(size))),
            estimates: SIZES.map(at),
            optimum,
            iterations,
            usual: Claim {
                measurements: usual.cost.measurements as usize,
                gap: usual.bound.gap_high,
                loss: loss(&announced),
            },
        })
    }
}

/// The mean of `repeats` windows of each assignment, packets/s.
fn windows(
    testbed: &mut SimulatedTestbed,
    assignments: &[Assignment],
    repeats: usize,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let pinned = |assignment: &Assignment| {
        vec![(Setting::Pinned(assignment.clone()), Effort::default()); repeats]
    };
    let trials: Vec<_> = assignments.iter().flat_map(pinned).collect();
    let measured = testbed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mean = |windows: &[Measurement]| {
        windows.iter().map(|window| window.performance).sum::<f64>() / repeats as f64
    };
    Ok(measured.chunks(repeats).map(mean).collect())
}

fn yes(agrees: bool) -> &'static str {
    if agrees { "yes" } else { "no" }
}

fn percent(share: f64) -> String {
    // Adding 0 takes the sign from what is rounded to -0.
    format!("{:.2} %", (10_000.0 * share).round() / 100.0 + 0.0)
}
