//! The nine variants of IPFwd: every assignment of two instances, and what is lost by the worst, a random and a balanced one.

use pinwise_simulator::program::Pipeline;
use pinwise_simulator::{Processor, SimulatedTestbed, Window};
use pinwise_testbed::{Effort, Setting, Testbed};
use pinwise_topology::{Alike, Assignment, DomainKind, PerContext, SharingTree, Space};
use std::error::Error;
use std::fmt::Write;

/// Two instances of three threads: as many as the papers measured in every assignment.
const INSTANCES: usize = 2;
/// The nine variants come first in [`Pipeline::ALL`].
const VARIANTS: usize = 9;
/// Windows per assignment. The best and the worst of so many single ones would be flattered by their noise.
const REPEATS: usize = 2;
const WINDOW: Window = Window { cycles: 300_000, starts: 1 };

pub(crate) fn section() -> Result<String, Box<dyn Error>> {
    let processor = Processor::model("ultrasparc-t2")?;
    let machine = processor.machine();
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let space = Space::new(tree.clone(), 3 * INSTANCES, PerContext::AtMost(1))?;
    let assignments: Vec<Assignment> = space.classes().collect();
    let balanced: Vec<bool> = assignments.iter().map(|assignment| is_balanced(&tree, assignment)).collect();
    let mut text = format!(
        "## Packet pipelines\n\n\
         Two instances of each variant of IPFwd, six threads, in each of their {} different assignments; {REPEATS} windows of {} cycles \
         each, from different starts. *Loss*: how much less than the best. *Balanced*: the numbers of threads in the cores that \
         are used differ by at most one, and so do those in the pipes of a core ({} assignments). Means are over different \
         assignments, each once. *Repeats*: standard deviation of one window, from the {REPEATS} of every assignment.\n\n\
         | program | best, M packets/s | worst: loss | mean: loss | balanced, best: loss | balanced, mean: loss | balanced, worst: loss | repeats |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
        assignments.len(),
        WINDOW.cycles,
        balanced.iter().filter(|balanced| **balanced).count()
    );
    let trials: Vec<_> = assignments
        .iter()
        .flat_map(|assignment| vec![(Setting::Pinned(assignment.clone()), Effort::default()); REPEATS])
        .collect();
    let mut all = Vec::new();
    for pipeline in &Pipeline::ALL[..VARIANTS] {
        let mut testbed =
            SimulatedTestbed::new(processor.clone(), machine.clone(), vec![*pipeline; INSTANCES], WINDOW, 1)?;
        let measured = testbed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
        let repeats: Vec<&[_]> = measured.chunks(REPEATS).collect();
        let performances: Vec<f64> =
            repeats.iter().map(|windows| mean(windows.iter().map(|window| window.performance))).collect();
        // Of two values the variance is half the square of their difference; relative to their mean.
        let variances = repeats.iter().zip(&performances).map(|(windows, mean)| {
            let squares: f64 = windows.iter().map(|window| (window.performance / mean - 1.0).powi(2)).sum();
            squares / (REPEATS - 1) as f64
        });
        let best = performances.iter().copied().fold(f64::MIN, f64::max);
        let losses: Vec<f64> = performances.iter().map(|performance| 1.0 - performance / best).collect();
        let even: Vec<f64> = losses.iter().zip(&balanced).filter(|(_, even)| **even).map(|(loss, _)| *loss).collect();
        let worst = |losses: &[f64]| losses.iter().copied().fold(0.0, f64::max);
        let least = even.iter().copied().fold(1.0, f64::min);
        let figures = [worst(&losses), mean(losses.iter().copied()), least, mean(even.iter().copied()), worst(&even)];
        let shown = figures.map(percent).join(" | ");
        writeln!(
            text,
            "| {} | {:.3} | {shown} | {:.2} % |",
            pipeline.name(),
            best / 1e6,
            100.0 * mean(variances).sqrt()
        )?;
        all.push(figures);
    }
    let range = |figure: usize| {
        let of_all = || all.iter().map(|figures| figures[figure]);
        format!("{} to {}", percent(of_all().fold(1.0, f64::min)), percent(of_all().fold(0.0, f64::max)))
    };
    let (worst, mean, balanced, worst_balanced) = (range(0), range(1), range(3), range(4));
    write!(
        text,
        "\nThe papers give no table of these, but ranges over their programs:\n\n\
             | figure | papers | the nine variants here | source |\n|---|---|---|---|\n\
             | worst, two to four instances of IPFwd (L1, L2, Mem) | 48 to 55 % | {worst} | MICRO 2009, figure 6(a) |\n\
             | worst, two instances | 58 % | {worst} | optimal assignment (ASPLOS 2012), section 2 |\n\
             | worst, nine variants | up to 55 % (intadd) | {worst} | BlackBox, section 5.1 |\n\
             | mean of all | 5 to 15 % | {mean} | BlackBox, section 5.1 |\n\
             | balanced, mean | 3 to 9 % | {balanced} | BlackBox, section 5.1 |\n\
             | balanced, worst | up to 45 % (intadd) | {worst_balanced} | BlackBox, section 5.1 |\n\n"
    )?;
    text += "So placement matters more here than the papers say: the means are above their ranges for every variant, the worst for those with little memory traffic. The \
             programs are rebuilt from what is said of them ([SIMULATOR.md](SIMULATOR.md)), and the papers do not say whether an average counts each different \
             assignment once, as here. No inferred number was chosen to bring these together.\n\n\
             No throughput of six threads is printed; the absolute difference of best and worst for two instances of IPFwd \
             is about 0.65 M packets/s (MICRO 2009, figure 6(b)).\n";
    Ok(text)
}

/// Whether the cores in use hold equal numbers of threads, and the pipes of each core do, to within one.
fn is_balanced(tree: &SharingTree, assignment: &Assignment) -> bool {
    let leaves = tree.leaves().len() as u32;
    let loads = |kind: DomainKind, of: Option<u32>| {
        let mut loads: Vec<(u32, usize)> = (0..leaves)
            .filter(|&leaf| of.is_none_or(|core| core_of(tree, leaf) == core))
            .flat_map(|leaf| tree.around(leaf))
            .filter(|(found, _)| *found == kind)
            .map(|(_, domain)| {
                let held = assignment.leaves().iter().filter(|leaf| domain.contains(leaf)).count();
                (domain.start, held)
            })
            .collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    };
    let even = |loads: &[(u32, usize)]| {
        let held = || loads.iter().map(|(_, held)| *held);
        held().max().unwrap_or(0) - held().min().unwrap_or(0) <= 1
    };
    let used: Vec<(u32, usize)> = loads(DomainKind::Core, None).into_iter().filter(|(_, held)| *held > 0).collect();
    even(&used) && used.iter().all(|&(core, _)| even(&loads(DomainKind::Pipe, Some(core))))
}

/// The first leaf of the core around a leaf.
fn core_of(tree: &SharingTree, leaf: u32) -> u32 {
    tree.around(leaf).into_iter().find(|(kind, _)| *kind == DomainKind::Core).map_or(leaf, |(_, domain)| domain.start)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / f64::from(count.max(1))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
