//! Every assignment of two instances of the nine IPFwd variants. Prints what the worst, a random
//! and a balanced one lose.

use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_topology::{Alike, Assignment, DomainKind, PerContext, SharingTree, Space};
use std::error::Error;
use std::fmt::Write;

/// Two instances of three threads: as many as the papers measured in every assignment.
const INSTANCES: usize = 2;
/// The nine variants come first in [`PacketProgram::ALL`].
const VARIANTS: usize = 9;
/// Windows per assignment. Noise would flatter the best and the worst of this many single ones.
const REPEATS: usize = 2;
const WINDOW: SimulatedWindow = SimulatedWindow { cycles: 300_000, starts: 1 };

/// What the assignments of one program do.
struct Figures {
    program: PacketProgram,
    /// Packets/s.
    best: f64,
    /// How much less than the best, as a share of it.
    worst: f64,
    /// The same in the mean of threads on contexts drawn by chance.
    naive: f64,
    /// The same among balanced ones: their best, their mean if drawn by chance, their worst.
    balanced: [f64; 3],
    /// Standard deviation of one window, as a share.
    repeats: f64,
}

pub(crate) fn section() -> Result<String, Box<dyn Error>> {
    let processor = Processor::model("ultrasparc-t2")?;
    let machine = processor.machine();
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let space = Space::new(tree.clone(), 3 * INSTANCES, PerContext::AtMost(1))?;
    let assignments: Vec<Assignment> = space.classes().collect();
    // Random placement of threads gives an assignment in proportion to the ways to make it.
    let ways = |assignment: &Assignment| space.class_size(assignment).to_string().parse::<f64>();
    let ways: Vec<f64> = assignments.iter().map(ways).collect::<Result<_, _>>()?;
    let balanced: Vec<bool> =
        assignments.iter().map(|assignment| is_balanced(&tree, assignment)).collect();
    let mut text = format!(
        "## Packet pipelines on the whole processor\n\nTwo instances of each variant of IPFwd, six \
         threads, ran in each of their {} \
         different\nassignments. Each had {REPEATS} windows of {} cycles from \
         different starts.\n\n- *Loss*: how much less than the best.\n- *Naive*: each thread on a \
         random context, so an assignment counts as often as there are ways to\nmake it.\n- \
         *Balanced*: thread counts differ by at most one between used cores, and between the \
         pipes of a\n\x20 core. There are {} such assignments. Their mean counts as for \
         *naive*.\n- *Repeats*: the standard deviation of one window, from the {REPEATS} of every \
         assignment.\n\n| program | best, M packets/s | worst: loss | naive, mean: loss | \
         balanced, best: loss | balanced, mean: loss | balanced, worst: loss | repeats \
         |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
        assignments.len(),
        WINDOW.cycles,
        balanced.iter().filter(|balanced| **balanced).count()
    );
    let trials: Vec<_> = assignments
        .iter()
        .flat_map(|assignment| {
            vec![(Setting::Pinned(assignment.clone()), Effort::default()); REPEATS]
        })
        .collect();
    let mut all = Vec::new();
    for &program in &PacketProgram::ALL[..VARIANTS] {
        let mut testbed = SimulatedTestbed::new(
            processor.clone(),
            machine.clone(),
            vec![program; INSTANCES],
            WINDOW,
            1,
        )?;
        let measured = testbed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
        let windows: Vec<f64> = measured.iter().map(|window| window.performance).collect();
        let figures = figures(program, &windows, &ways, &balanced);
        let [best, mean, worst] = figures.balanced;
        let shown = [figures.worst, figures.naive, best, mean, worst].map(percent).join(" | ");
        let repeats = 100.0 * figures.repeats;
        writeln!(
            text,
            "| {} | {:.3} | {shown} | {repeats:.2} % |",
            program.name(),
            figures.best / 1e6
        )?;
        all.push(figures);
    }
    Ok(text + &comparison(&all))
}

/// From the [`REPEATS`] windows of every assignment, the ways to make each, and whether it is
/// balanced.
fn figures(program: PacketProgram, windows: &[f64], ways: &[f64], balanced: &[bool]) -> Figures {
    let repeats: Vec<&[f64]> = windows.chunks(REPEATS).collect();
    let performances: Vec<f64> =
        repeats.iter().map(|windows| mean(windows.iter().map(|window| (1.0, *window)))).collect();
    let variances = repeats.iter().zip(&performances).map(|(windows, mean)| {
        let squares: f64 = windows.iter().map(|window| (window / mean - 1.0).powi(2)).sum();
        (1.0, squares / (REPEATS - 1) as f64)
    });
    let best = performances.iter().copied().fold(f64::MIN, f64::max);
    let losses: Vec<(f64, f64)> = ways
        .iter()
        .zip(&performances)
        .map(|(ways, performance)| (*ways, 1.0 - performance / best))
        .collect();
    let even: Vec<(f64, f64)> = losses
        .iter()
        .zip(balanced)
        .filter(|(_, even)| **even)
        .map(|(weighted, _)| *weighted)
        .collect();
    let worst = |losses: &[(f64, f64)]| losses.iter().map(|(_, loss)| *loss).fold(0.0, f64::max);
    let least = even.iter().map(|(_, loss)| *loss).fold(1.0, f64::min);
    Figures {
        program,
        best,
        worst: worst(&losses),
        naive: mean(losses.iter().copied()),
        balanced: [least, mean(even.iter().copied()), worst(&even)],
        repeats: mean(variances).sqrt(),
    }
}

/// What the papers print for six threads, and the same programs here.
fn comparison(all: &[Figures]) -> String {
    use PacketProgram::{IntAdd, IntMul};
    let nine = &PacketProgram::ALL[..VARIANTS];
    type FigureOf = fn(&Figures) -> f64;
    let best: FigureOf = |figures| figures.best / 1e6;
    let worst: FigureOf = |figures| figures.worst;
    let naive: FigureOf = |figures| figures.naive;
    let balanced: FigureOf = |figures| figures.balanced[1];
    let uneven: FigureOf = |figures| figures.balanced[2];
    let rows: [(&str, &str, &[PacketProgram], FigureOf, &str); 12] = [
        (
            "best, M packets/s",
            "1.7 (one program, not named)",
            nine,
            best,
            "ASPLOS 2012, section 3.2",
        ),
        ("worst", "58 % (the same)", nine, worst, "ASPLOS 2012, section 3.2"),
        ("best, M packets/s", "1.69, derived", &[IntAdd], best, "ASPLOS 2012, section 2"),
        ("best, M packets/s", "1.76, derived", &[IntMul], best, "ASPLOS 2012, section 2"),
        ("naive, mean", "18 %, derived", &[IntAdd], naive, "ASPLOS 2012, section 2"),
        ("naive, mean", "7 %, derived", &[IntMul], naive, "ASPLOS 2012, section 2"),
        ("balanced, mean", "12 %", &[IntAdd], balanced, "ASPLOS 2012, section 2"),
        ("balanced, mean", "5 %", &[IntMul], balanced, "ASPLOS 2012, section 2"),
        ("naive, mean", "5 to 15 %", nine, naive, "BlackBox, section 5.1"),
        ("naive, worst", "up to 55 % (intadd)", nine, worst, "BlackBox, section 5.1"),
        ("balanced, mean", "3 to 9 %", nine, balanced, "BlackBox, section 5.1"),
        ("balanced, worst", "up to 45 % (intadd)", nine, uneven, "BlackBox, section 5.1"),
    ];
    let mut text =
        "\nThe papers print no table of these, only figures of single programs and ranges:\n\n\
         | two instances | papers | of | here | source |\n|---|---|---|---|---|\n"
            .to_owned();
    for (figure, papers, programs, value, source) in rows {
        let of = match programs {
            [one] => one.name(),
            _ => "the nine variants",
        };
        let values = || all.iter().filter(|figures| programs.contains(&figures.program)).map(value);
        let show =
            |value: f64| if papers.contains('%') { percent(value) } else { format!("{value:.2}") };
        let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        let here = if programs.len() == 1 {
            show(least)
        } else {
            format!("{} to {}", show(least), show(most))
        };
        text += &format!("| {figure} | {papers} | {of} | {here} | {source} |\n");
    }
    text + "\n*Derived*: the papers print the differences between naive, Linux-like and optimal, \
        in packets/s and\nin percent. Gains are over naive. They do not say \
        which evenly spread\nassignments count as balanced or Linux-like with six threads on eight \
        cores. Here an assignment\ncounts if it shares the used cores evenly, even with all \
        threads in one. The programs are rebuilt\nfrom the papers' descriptions \
        ([simulator.md](simulator.md)).\n"
}

/// Whether the cores in use hold equal numbers of threads, and the pipes of each core do, to within
/// one.
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
    let used: Vec<(u32, usize)> =
        loads(DomainKind::Core, None).into_iter().filter(|(_, held)| *held > 0).collect();
    even(&used) && used.iter().all(|&(core, _)| even(&loads(DomainKind::Pipe, Some(core))))
}

/// The first leaf of the core around a leaf.
fn core_of(tree: &SharingTree, leaf: u32) -> u32 {
    tree.around(leaf)
        .into_iter()
        .find(|(kind, _)| *kind == DomainKind::Core)
        .map_or(leaf, |(_, domain)| domain.start)
}

/// The mean of values, each with its weight.
fn mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (weights, sum) = values.fold((0.0, 0.0), |(weights, sum), (weight, value)| {
        (weights + weight, sum + weight * value)
    });
    sum / weights
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
