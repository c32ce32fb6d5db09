//! How good is the best so far after 30 to 600 measurements? `place` has several budgets. Other
//! methods to search stand beside it.
//!
//! `cargo run --release -p pinwise-lab --example anytime` prints the tables of docs/lab/anytime.md
//! in Markdown. `--quick` takes a quarter of the workloads on paper. Name sets of workloads
//! (`screen`, `confirm`, `held-out`, `simulated`) or searches (`place`, `random`, `climb`, …) to
//! run only these. Seeds are fixed, so a second run prints the same text.

mod peers;

use pinwise_campaign::{Record, Step, Strategy};
use pinwise_lab::on_nodes::{each, run};
use pinwise_lab::on_paper;
use pinwise_lab::parallel;
use pinwise_lab::rate::of_which;
use pinwise_lab::{Bed, Frozen};
use pinwise_measure::{Setting, Testbed};
use pinwise_placement::{Budget, Outcome, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_synthetic::{Contention, Crowding, Disturbance};
use pinwise_topology::{Assignment, Machine, PerContext, Random, Space};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// When the best so far is judged.
const CHECKPOINTS: [usize; 6] = [30, 60, 100, 150, 300, 600];
/// Budgets of `place`.
const BUDGETS: [usize; 4] = [60, 150, 300, 600];
/// Relative noise of a window.
const NOISE: f64 = 0.002;
/// Workloads of known structure; the first half is for choosing constants.
const KNOWN: usize = 40;
/// Workloads of other structure. No constant is chosen by them.
const HELD_OUT: usize = 12;
/// Packet programs on the simulated UltraSPARC T2, eight instances of three threads each. They
/// differ in what they share: units of a core, the first or the second cache, memory, or little.
const SIMULATED: [PacketProgram; 6] = [
    PacketProgram::IntAdd,
    PacketProgram::IntMul,
    PacketProgram::Hash1L1,
    PacketProgram::Hash1L2,
    PacketProgram::HashNMem,
    PacketProgram::AhoCorasick,
];
/// Of `--quick`: every so manieth workload on paper.
const QUICK: usize = 4;
const SETS: [&str; 4] = ["screen", "confirm", "held-out", "simulated"];
/// All sets but the last.
const ON_PAPER: &str = "on paper";
const PLACE: &str = "place";

/// A workload, and the best that is known of it.
struct KnownCase {
    set: &'static str,
    bed: Bed,
    space: Space,
    optimum: f64,
    seed: u64,
}

/// What one search came to on one workload. What it found is given by its true performance.
#[derive(serde::Serialize, serde::Deserialize)]
struct Curve {
    /// The best so far at each of [`CHECKPOINTS`] up to its budget.
    best: Vec<f64>,
    /// The most that anything it measured does.
    most: f64,
    /// The upper end of the bound, and the gap that is claimed.
    claim: Option<(f64, f64)>,
}

fn main() -> ExitCode {
    run(study)
}

fn study(named: Vec<String>) -> ExitCode {
    let searches: Vec<&str> = [PLACE].into_iter().chain(peers::ALL.map(|peer| peer.0)).collect();
    let is_known = |name: &String| {
        name == "--quick" || SETS.iter().chain(&searches).any(|known| known == name)
    };
    if !named.iter().all(is_known) {
        eprintln!("usage: anytime [--quick] [{}|{}]…", SETS.join("|"), searches.join("|"));
        return ExitCode::from(2);
    }
    let is_named = |name: &str| named.iter().any(|named| named == name);
    let is_chosen =
        |name: &str, among: &[&str]| is_named(name) || !among.iter().any(|among| is_named(among));
    let on_paper = KNOWN + HELD_OUT;
    let mut numbers: Vec<usize> = (0..on_paper + SIMULATED.len()).collect();
    if is_named("--quick") {
        numbers.retain(|number| *number < on_paper && number % QUICK == number / QUICK % QUICK);
    }
    numbers.retain(|number| is_chosen(set(*number), &SETS));
    let mut cases = parallel::each(&numbers, |number| KnownCase::new(*number));
    let mut columns: Vec<(String, usize, Vec<Curve>)> = Vec::new();
    for (name, peer) in peers::ALL.iter().filter(|(name, _)| is_chosen(name, &searches)) {
        let budget = CHECKPOINTS[CHECKPOINTS.len() - 1];
        columns.push(((*name).to_owned(), budget, each(&cases, |case| case.peer(*peer, budget))));
    }
    for budget in BUDGETS.iter().filter(|_| is_chosen(PLACE, &searches)) {
        let name = format!("{PLACE}, budget {budget}");
        columns.push((name, *budget, each(&cases, |case| case.place(*budget))));
        eprintln!("{PLACE}: done with budget {budget}");
    }
    for (number, case) in cases.iter_mut().enumerate() {
        let most = columns.iter().map(|(_, _, curves)| curves[number].most);
        case.optimum = most.fold(case.optimum, f64::max);
    }
    for set in SETS.into_iter().chain([ON_PAPER]) {
        let is_in = |case: &KnownCase| {
            case.set == set || set == ON_PAPER && matches!(case.bed, Bed::Paper(_))
        };
        let belongs: Vec<usize> =
            (0..cases.len()).filter(|number| is_in(&cases[*number])).collect();
        if !belongs.is_empty() {
            print(set, &cases, &belongs, &columns);
        }
    }
    ExitCode::SUCCESS
}

fn set(number: usize) -> &'static str {
    if number < KNOWN + HELD_OUT { SETS[number / (KNOWN / 2)] } else { SETS[3] }
}

/// Prints the loss of every search at every checkpoint, and what `place` claims, on some workloads.
fn print(
    set: &str,
    cases: &[KnownCase],
    belongs: &[usize],
    columns: &[(String, usize, Vec<Curve>)],
) {
    println!("\n### {set}: {} workloads\n", belongs.len());
    println!("| search | {} |", CHECKPOINTS.map(|at| format!("after {at}")).join(" | "));
    println!("|---|{}", "---|".repeat(CHECKPOINTS.len()));
    for (name, _, curves) in columns {
        let cell = |at: usize| {
            let loss =
                |number: &usize| Some(1.0 - curves[*number].best.get(at)? / cases[*number].optimum);
            let losses: Vec<f64> = belongs.iter().filter_map(loss).collect();
            if losses.is_empty() { String::new() } else { shown(losses) }
        };
        let cells: Vec<String> = (0..CHECKPOINTS.len()).map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("\n| claims of | given | upper end, median | too low | within 5 % | false |");
    println!("|---|---|---|---|---|---|");
    for (name, _, curves) in columns.iter().filter(|(name, ..)| name.starts_with(PLACE)) {
        let claims: Vec<(f64, f64, f64)> = belongs
            .iter()
            .filter_map(|number| {
                let (upper, gap) = curves[*number].claim?;
                let (best, optimum) = (*curves[*number].best.last()?, cases[*number].optimum);
                Some((upper / optimum - 1.0, gap, 1.0 - best / optimum))
            })
            .collect();
        let mut uppers: Vec<f64> = claims.iter().map(|(upper, ..)| *upper).collect();
        uppers.sort_by(f64::total_cmp);
        let middle = uppers.get(uppers.len() / 2);
        let low = uppers.iter().filter(|upper| **upper < -1e-9).count();
        let certified: Vec<_> = claims.iter().filter(|(_, gap, _)| *gap <= 0.05).collect();
        let wrong = certified.iter().filter(|(.., loss)| *loss > 0.05).count();
        println!(
            "| {name} | {} of {} | {} | {} | {} | {} |",
            claims.len(),
            belongs.len(),
            middle.map_or("-".to_owned(), |upper| format!("{:+.1} %", 100.0 * upper)),
            of_which(low, uppers.len()),
            of_which(certified.len(), belongs.len()),
            of_which(wrong, certified.len()),
        );
    }
}

/// Median, worst, and share within 1 %.
fn shown(mut losses: Vec<f64>) -> String {
    losses.sort_by(f64::total_cmp);
    let within = losses.iter().filter(|loss| **loss <= 0.01).count();
    let (middle, count) = (losses[losses.len() / 2], losses.len());
    format!(
        "{:.2} / {:.1} / {:.0} %",
        100.0 * middle,
        100.0 * losses[count - 1],
        100.0 * within as f64 / count as f64
    )
}

impl KnownCase {
    fn new(number: usize) -> Self {
        match SIMULATED.get(number.wrapping_sub(KNOWN + HELD_OUT)) {
            Some(program) => Self::simulated(number, *program),
            None => Self::on_paper(number),
        }
    }

    fn simulated(number: usize, program: PacketProgram) -> Self {
        let processor = Processor::model("ultrasparc-t2").expect("it is built in");
        let (machine, programs) = (processor.machine(), vec![program; 8]);
        let window = SimulatedWindow::of(&programs);
        let bed = SimulatedTestbed::new(processor, machine, programs, window, 1).expect("it fits");
        let space = on_paper::space(&bed, PerContext::AtMost(1));
        let seed = 7000 + number as u64;
        let disturbance = Disturbance { noise: NOISE, seed, ..Disturbance::default() };
        let bed = Bed::Simulated(Frozen::new(bed).disturbed(disturbance));
        // The searches find out.
        Self { set: set(number), bed, space, optimum: 0.0, seed }
    }

    fn on_paper(number: usize) -> Self {
        let machine = Machine::from_shape("8x2x4").expect("a valid shape");
        let seed = if number < KNOWN { 5000 } else { 6000 } + number as u64;
        let mut random = Random::new(seed);
        // 24 threads of three roles, or other roles.
        let (roles, near): (&[&str], usize) = match number.checked_sub(KNOWN).map(|held| held % 3) {
            None => (&["R", "P", "T"], 1),
            Some(0) => (&["R", "P", "Q", "T"], 0),
            Some(1) => (&["R", "W", "W", "T"], 1),
            Some(_) => (&["P", "C"], 0),
        };
        let different = roles.iter().collect::<std::collections::BTreeSet<_>>().len();
        let mut demand = on_paper::demand(different, &mut random);
        demand.near = near;
        let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
        let crowding = match number % 5 {
            0 => Crowding::Sum,
            1 => Crowding::Full { free: between(0.05, 0.5) },
            2 => Crowding::Clash { clash: between(0.05, 0.3) },
            3 => Crowding::Queue { full: between(0.8, 2.0) },
            _ => Crowding::Greatest { rest: between(0.0, 0.3) },
        };
        let bed = Contention::new(machine, 24 / roles.len(), roles, demand, Disturbance::default())
            .crowded(crowding);
        let space = on_paper::space(&bed, PerContext::AtMost(1));
        let (optimum, _) = on_paper::best(&bed, &space);
        let disturbance = Disturbance { noise: NOISE, seed, ..Disturbance::default() };
        let bed = Bed::Paper(Box::new(bed.disturbed(disturbance)));
        Self { set: set(number), bed, space, optimum, seed }
    }

    /// What another search comes to.
    fn peer(&self, search: peers::Search, budget: usize) -> Curve {
        let mut trials = peers::Trials::new(self.bed.clone(), &self.space, budget);
        // It ends where the budget does.
        search(&mut trials, &mut Random::new(self.seed));
        self.curve(&trials.trail, budget, None)
    }

    /// What `place` comes to without options but the budget.
    fn place(&self, budget: usize) -> Curve {
        let question = PlacementQuestion {
            seed: self.seed,
            ..PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(budget as u64))
        };
        let mut bed = self.bed.clone();
        let question = question.on(&bed);
        let mut search = PlacementSearch::new(&question, self.space.tree(), bed.workload())
            .expect("the workload fits");
        let mut records: Vec<Record> = Vec::new();
        while let Step::Measure(trial) = search.step(&records) {
            let number = records.len() as u64;
            bed.seek(number);
            let outcome = bed.measure(&trial.setting, trial.effort);
            records.push(Record { number, trial, outcome, elapsed: Duration::ZERO });
        }
        let outcome: Outcome = search.outcome(bed.unit(), &records, None);
        let trail: Vec<(Option<Assignment>, f64)> = records
            .into_iter()
            .map(|record| match (record.trial.setting, record.outcome) {
                (Setting::Pinned(assignment), Ok(measured)) => {
                    (Some(assignment), measured.performance)
                }
                _ => (None, 0.0),
            })
            .collect();
        let announced = outcome.best.map(|best| best.assignment);
        let claim = outcome.bound.upb_high.zip(outcome.bound.gap_high);
        Curve { claim, ..self.curve(&trail, budget, announced) }
    }

    /// The best so far of a search that ends by announcing an assignment, or the best it saw.
    fn curve(
        &self,
        trail: &[(Option<Assignment>, f64)],
        budget: usize,
        announced: Option<Assignment>,
    ) -> Curve {
        let truth = |assignment: &Assignment| self.bed.truth(assignment.leaves());
        let at = |checkpoint: usize| match &announced {
            Some(announced) if checkpoint >= trail.len() || checkpoint >= budget => {
                truth(announced)
            }
            _ => best(&trail[..checkpoint.min(trail.len())]).map_or(0.0, truth),
        };
        let checkpoints = CHECKPOINTS.iter().filter(|checkpoint| **checkpoint <= budget);
        let tried = trail.iter().filter_map(|(assignment, _)| assignment.as_ref());
        Curve {
            best: checkpoints.map(|checkpoint| at(*checkpoint)).collect(),
            most: tried.map(truth).fold(0.0, f64::max),
            claim: None,
        }
    }
}

/// The assignment with the best mean.
fn best(trail: &[(Option<Assignment>, f64)]) -> Option<&Assignment> {
    let mut means: BTreeMap<&Assignment, (f64, f64)> = BTreeMap::new();
    for (assignment, performance) in trail {
        let Some(assignment) = assignment else { continue };
        let (sum, count) = means.entry(assignment).or_default();
        *sum += performance;
        *count += 1.0;
    }
    let best = means.into_iter().max_by(|a, b| (a.1.0 / a.1.1).total_cmp(&(b.1.0 / b.1.1)));
    best.map(|(assignment, _)| assignment)
}
