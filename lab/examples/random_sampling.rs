//! The study of "Optimal task assignment in multithreaded processors: a statistical approach"
//! (ASPLOS 2012, section 5), and the default strategy on the same programs: the tables of
//! docs/lab/random-sampling.md.
//!
//! `cargo run --release -p pinwise-lab --example random_sampling -- DIR [PROGRAM…]` draws 5,000
//! assignments of 24 threads of five programs on the simulated UltraSPARC T2. These are some 40,000
//! measurements, with the campaigns of the default strategy. DIR stores what was measured. The rows
//! of a program come as soon as they are known, then all tables. Seeds are fixed: the same text
//! comes out again.

use pinwise_evt::{Method, Options, Sample, estimate};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_placement::{Budget, PlacementQuestion, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_topology::{Alike, Assignment, PerContext, Random, SharingTree, Space};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const INSTANCES: usize = 8;
const THREADS: usize = 24;
/// The samples of figures 10 to 12.
const SAMPLES: [usize; 3] = [1000, 2000, 5000];
/// Draws measured before they are stored.
const CHUNK: usize = 250;
/// First look and step of the published iteration (section 5.3).
const FIRST: usize = 1000;
const STEP: usize = 100;
/// Losses that a customer accepts (figure 14).
const ACCEPTED: [f64; 3] = [0.025, 0.05, 0.1];
const CONFIDENCE: f64 = 0.95;
/// Campaigns of the default strategy, and measurements of each. A longer one looks for the best.
const CAMPAIGNS: u64 = 3;
const BUDGET: u64 = 600;
const LONG: u64 = 1000;
/// How many of the best draws are judged, and in how many windows.
const JUDGED: usize = 8;
const JUDGING: f64 = 16.0;

/// A program of the paper, and what the paper prints of it.
struct Program {
    here: PacketProgram,
    paper: &'static str,
    /// Most that the best of 5,000 is above the best of 1,000, in percent (section 5.1).
    gain: f64,
    /// Upper end of the possible improvement after 1,000 draws, in percent (section 5.2).
    improvement: f64,
    /// Draws for a loss of 2.5 %, where the paper prints them (section 5.3).
    draws: Option<usize>,
}

const PROGRAMS: [Program; 5] = [
    Program {
        here: PacketProgram::Hash1L1,
        paper: "IPFwd-L1",
        gain: 0.25,
        improvement: 9.0,
        draws: Some(2200),
    },
    Program {
        here: PacketProgram::Hash1Mem,
        paper: "IPFwd-Mem",
        gain: 0.6,
        improvement: 16.0,
        draws: Some(4500),
    },
    Program {
        here: PacketProgram::PacketAnalyzer,
        paper: "Packet analyzer",
        gain: 0.25,
        improvement: 19.0,
        draws: None,
    },
    Program {
        here: PacketProgram::AhoCorasick,
        paper: "Aho-Corasick",
        gain: 0.25,
        improvement: 7.0,
        draws: None,
    },
    Program {
        here: PacketProgram::Stateful,
        paper: "Stateful",
        gain: 0.25,
        improvement: 23.0,
        draws: None,
    },
];

/// A sample of some first draws and what the published method says of it.
#[derive(Serialize, Deserialize)]
struct Look {
    draws: usize,
    /// The best as measured, and in windows that were not chosen for their results.
    best: f64,
    judged: f64,
    /// Estimated optimum and the upper end of its interval; the end may be infinite.
    point: Option<f64>,
    upper: Option<f64>,
}

/// A campaign of the default strategy.
#[derive(Serialize, Deserialize)]
struct Campaign {
    measurements: u64,
    /// The gap that it claims, by the upper end.
    claimed: Option<f64>,
    /// What the announced assignment does, judged.
    judged: f64,
}

#[derive(Serialize, Deserialize)]
struct Found {
    samples: Vec<Look>,
    /// Where the iteration ends, for each of [`ACCEPTED`]; `None`: not within all draws.
    stops: Vec<Option<Look>>,
    campaigns: Vec<Campaign>,
    /// The best known, judged.
    known: f64,
    /// The best of all draws, judged.
    known_of_draws: f64,
}

struct Study {
    processor: Processor,
    tree: SharingTree,
    space: Space,
    folder: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: random_sampling DIR [PROGRAM…]")?);
    fs::create_dir_all(&folder)?;
    let named: Vec<String> = arguments.collect();
    let processor = Processor::model("ultrasparc-t2")?;
    let tree = SharingTree::new(&processor.machine(), Alike::ByStructure);
    let space = Space::new(tree.clone(), THREADS, PerContext::AtMost(1))?;
    let study = Study { processor, tree, space, folder };
    let mut all: Vec<(&Program, Found)> = Vec::new();
    let chosen = |program: &&Program| {
        named.is_empty() || named.iter().any(|name| name == program.here.name())
    };
    for program in PROGRAMS.iter().filter(chosen) {
        let path = study.folder.join(format!("{}.json", program.here.name()));
        let found = if path.exists() {
            serde_json::from_str(&fs::read_to_string(&path)?)?
        } else {
            let found = study.found(program.here)?;
            fs::write(&path, serde_json::to_string(&found)?)?;
            found
        };
        for look in &found.samples {
            eprintln!("{}", row(&sample_cells(program, look, &found)));
        }
        all.push((program, found));
    }
    print_tables(&all);
    Ok(())
}

impl Study {
    fn testbed(
        &self,
        program: PacketProgram,
        seed: u64,
    ) -> Result<SimulatedTestbed, Box<dyn Error>> {
        let programs = vec![program; INSTANCES];
        let window = SimulatedWindow::of(&programs);
        let (processor, machine) = (self.processor.clone(), self.processor.machine());
        Ok(SimulatedTestbed::new(processor, machine, programs, window, seed)?)
    }

    fn found(&self, program: PacketProgram) -> Result<Found, Box<dyn Error>> {
        let most = SAMPLES[SAMPLES.len() - 1];
        let draws = self.draws(program, most)?;
        let best_of = |draws: &[(Assignment, f64)]| -> usize {
            let values = draws.iter().enumerate();
            values.max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map_or(0, |(index, _)| index)
        };
        let look = |count: usize| {
            let performances: Vec<f64> = draws[..count].iter().map(|draw| draw.1).collect();
            let options =
                Options { method: Method::Profile, confidence: CONFIDENCE, ..Options::default() };
            let bound = estimate(&Sample::new(performances), &options).ok();
            let best = draws[best_of(&draws[..count])].1;
            let (point, upper) =
                (bound.as_ref().map(|it| it.upb), bound.and_then(|it| it.upb_high));
            Look { draws: count, best, judged: f64::NAN, point, upper }
        };
        let looks: Vec<usize> = (FIRST..=most).step_by(STEP).collect();
        let looks = pinwise_lab::parallel::each(&looks, |count| look(*count));
        let ends = |accepted: f64| {
            looks.iter().find(|it| it.point.is_some_and(|point| 1.0 - it.best / point <= accepted))
        };
        let again = |it: &Look| Look { judged: f64::NAN, ..*it };
        let mut samples: Vec<Look> =
            looks.iter().filter(|it| SAMPLES.contains(&it.draws)).map(again).collect();
        let mut stops: Vec<Option<Look>> =
            ACCEPTED.iter().map(|accepted| ends(*accepted).map(again)).collect();

        let seeds: Vec<u64> = (1..=CAMPAIGNS + 1).collect();
        let campaigns = pinwise_lab::parallel::each(&seeds, |&seed| {
            let long = seed > CAMPAIGNS;
            let (budget, within) = if long { (LONG, 1e-9) } else { (BUDGET, ACCEPTED[0]) };
            self.campaign(program, seed, budget, within).map_err(|error| error.to_string())
        });
        let campaigns = campaigns.into_iter().collect::<Result<Vec<_>, String>>()?;

        // All in windows that were not chosen for their results.
        let mut order: Vec<usize> = (0..draws.len()).collect();
        order.sort_by(|a, b| draws[*b].1.total_cmp(&draws[*a].1));
        let of_looks = samples.iter().chain(stops.iter().flatten());
        let chosen: Vec<usize> = of_looks.map(|it| best_of(&draws[..it.draws])).collect();
        let leading = order.into_iter().take(JUDGED).chain(chosen.iter().copied());
        let of_draws: Vec<&Assignment> = leading.map(|index| &draws[index].0).collect();
        let of_campaigns = campaigns.iter().map(|(_, _, assignment)| assignment);
        let settings: Vec<_> = of_draws
            .iter()
            .copied()
            .chain(of_campaigns)
            .map(|it| (Setting::Pinned(it.clone()), Effort { windows: JUDGING }))
            .collect();
        let judged = self.testbed(program, 3)?.measure_all(&settings);
        let judged: Vec<f64> = judged
            .into_iter()
            .map(|measured| measured.map(|measured| measured.performance))
            .collect::<Result<_, _>>()?;
        let highest = |values: &[f64]| values.iter().copied().fold(f64::MIN, f64::max);
        let of_looks = samples.iter_mut().chain(stops.iter_mut().flatten());
        of_looks.zip(&judged[JUDGED..]).for_each(|(look, judged)| look.judged = *judged);
        let of_campaigns = &judged[of_draws.len()..];
        let told = campaigns.iter().zip(of_campaigns).take(CAMPAIGNS as usize);
        Ok(Found {
            samples,
            stops,
            campaigns: told
                .map(|((measurements, claimed, _), judged)| Campaign {
                    measurements: *measurements,
                    claimed: *claimed,
                    judged: *judged,
                })
                .collect(),
            known: highest(&judged),
            known_of_draws: highest(&judged[..of_draws.len()]),
        })
    }

    /// Random assignments and one window of each, in the order in which they were drawn.
    fn draws(
        &self,
        program: PacketProgram,
        most: usize,
    ) -> Result<Vec<(Assignment, f64)>, Box<dyn Error>> {
        let mut random = Random::new(13);
        let drawn: Vec<Assignment> = (0..most).map(|_| self.space.sample(&mut random)).collect();
        let path = self.folder.join(format!("{}.draws", program.name()));
        let mut values = stored(&path)?;
        values.truncate(values.len() / CHUNK * CHUNK);
        let mut testbed = self.testbed(program, 60)?;
        let mut file = fs::File::create(&path)?;
        values.iter().try_for_each(|value| writeln!(file, "{value}"))?;
        while values.len() < most {
            testbed.seek(values.len() as u64);
            let next = &drawn[values.len()..(values.len() + CHUNK).min(most)];
            let trials: Vec<_> =
                next.iter().map(|it| (Setting::Pinned(it.clone()), Effort::default())).collect();
            for measured in testbed.measure_all(&trials) {
                let value = measured?.performance;
                writeln!(file, "{value}")?;
                values.push(value);
            }
            eprintln!("{}: {} of {most} draws", program.name(), values.len());
        }
        Ok(drawn.into_iter().zip(values).collect())
    }

    /// Measurements, the gap claimed, and the assignment announced.
    fn campaign(
        &self,
        program: PacketProgram,
        seed: u64,
        budget: u64,
        within: f64,
    ) -> Result<(u64, Option<f64>, Assignment), Box<dyn Error>> {
        let mut testbed = self.testbed(program, 100 + seed)?;
        let question = PlacementQuestion {
            within,
            seed,
            per_context: Some(1),
            ..PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(budget))
        };
        let outcome = pinwise_lab::searched(question, &self.tree, &mut testbed)?;
        let best = outcome.best.ok_or("the default announced nothing")?;
        eprintln!("{}: the default with seed {seed} is done", program.name());
        Ok((outcome.cost.measurements, outcome.bound.gap_high, best.assignment))
    }
}

fn stored(path: &Path) -> Result<Vec<f64>, Box<dyn Error>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    Ok(fs::read_to_string(path)?.lines().map(str::parse).collect::<Result<_, _>>()?)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Of a sample: the estimate, and what is true.
fn sample_cells(program: &Program, look: &Look, found: &Found) -> Vec<String> {
    let above = |bound: f64| percent(bound / look.best - 1.0);
    let holds = look.upper.map_or("-".into(), |upper| yes(upper >= found.known));
    let paper = match look.draws {
        1000 => format!("{} %", program.improvement),
        2000 => "< 5 %".to_owned(),
        _ => "<= 2.4 %".to_owned(),
    };
    vec![
        program.here.name().to_owned(),
        look.draws.to_string(),
        look.point.map_or("none".into(), above),
        look.upper.map_or("infinite".into(), above),
        paper,
        percent(found.known / look.judged - 1.0),
        holds,
    ]
}

fn print_tables(all: &[(&Program, Found)]) {
    println!(
        "### The best of a sample (figure 10)\n\n*Agrees*: the gain is not above the paper's.\n"
    );
    println!(
        "| program | paper's name | best of 1,000, M packets/s | of 2,000 | of 5,000 | from 1,000 \
         to 5,000 | paper | agrees | best known | the best of 5,000 loses |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|---|--:|--:|");
    for (program, found) in all {
        let best: Vec<f64> = found.samples.iter().map(|look| look.best).collect();
        let gain = best[2] / best[0] - 1.0;
        let mut cells = vec![program.here.name().to_owned(), program.paper.to_owned()];
        cells.extend(best.iter().map(|best| format!("{:.3}", best / 1e6)));
        cells.extend([
            percent(gain),
            format!("<= {} %", program.gain),
            yes(100.0 * gain <= program.gain),
            format!("{:.3}", found.known / 1e6),
            percent(1.0 - found.samples[2].judged / found.known),
        ]);
        println!("{}", row(&cells));
    }
    println!("\n### Estimated optimum and possible improvement (figures 11 and 12)\n");
    println!(
        "| program | draws | point estimate above the best | upper end above it | paper, upper end \
         | true improvement | upper end holds |"
    );
    println!("|---|--:|--:|--:|--:|--:|---|");
    for (program, found) in all {
        for look in &found.samples {
            println!("{}", row(&sample_cells(program, look, found)));
        }
    }
    println!("\n### Draws that a claim needs (figure 14)\n");
    println!("| program | claim: loss below | draws | paper | true loss then | claim is true |");
    println!("|---|--:|--:|--:|--:|---|");
    for (program, found) in all {
        for (accepted, stop) in ACCEPTED.iter().zip(&found.stops) {
            let paper = match (*accepted, program.draws) {
                (accepted, Some(draws)) if accepted == ACCEPTED[0] => draws.to_string(),
                (accepted, None) if accepted == ACCEPTED[0] => "2200 to 4500".to_owned(),
                (accepted, _) if accepted == ACCEPTED[2] => "< 1300".to_owned(),
                _ => "not printed".to_owned(),
            };
            let [draws, loss, holds] = match stop {
                Some(stop) => {
                    let loss = 1.0 - stop.judged / found.known;
                    [stop.draws.to_string(), percent(loss), yes(loss <= *accepted)]
                }
                None => ["> 5000".to_owned(), "-".to_owned(), "-".to_owned()],
            };
            println!(
                "| {} | {} % | {draws} | {paper} | {loss} | {holds} |",
                program.here.name(),
                100.0 * accepted
            );
        }
    }
    println!("\n### The default strategy on the same programs\n");
    println!("| program | measurements | claim: loss at most | true loss | claim is true |");
    println!("|---|--:|--:|--:|---|");
    for (program, found) in all {
        for campaign in &found.campaigns {
            let loss = 1.0 - campaign.judged / found.known;
            println!(
                "| {} | {} | {} | {} | {} |",
                program.here.name(),
                campaign.measurements,
                campaign.claimed.map_or("none".into(), percent),
                percent(loss),
                campaign.claimed.map_or("-".into(), |claimed| yes(loss <= claimed)),
            );
        }
    }
    println!("\n*The best of all draws* loses, against the best known:\n");
    for (program, found) in all {
        let loss = 1.0 - found.known_of_draws / found.known;
        println!("- {}: {}", program.here.name(), percent(loss));
    }
}
