//! `pinwise topo`: the machine and its sharing levels, as a tree.

use crate::machine::LookedAt;
use crate::output::{self, Usage};
use clap::Args;
use pinwise_present::{
    Entry, LabelledLines, Outline, figures, machine_note, one_line, runs, tagged_machine_notes,
};
use pinwise_processor::Processor;
use pinwise_topology::{Alike, CpuId, CpuSet, DomainKind, ExclusiveCpus, Machine, SharingTree};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Show a machine as a tree of what its hardware contexts share
///
/// Domains with the same contexts share a line. Alike neighbours are drawn once, as in "8 x
/// Package". The line has the numbers of all of them, and the lines below it show the first. L#
/// counts in tree order. P# is the kernel's number.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pinwise topo                              this machine\n  \
    pinwise topo --machine 8x2x4              8 packages of 2 cores of 4 contexts\n  \
    pinwise topo --machine box.tar.bz2 --json a recorded machine, as JSON\n  \
    pinwise topo --record box                 record this machine, to send it to someone\n  \
    pinwise topo ultrasparc-t2 --description  the description of a simulated processor")]
pub(crate) struct Topo {
    #[command(flatten)]
    machine: LookedAt,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Record the files that describe the machine in DIR. DIR must be new or empty
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Print the TOML description of a simulated processor, to change and pass to --machine
    #[arg(long, conflicts_with_all = ["json", "record"])]
    description: bool,
}

impl Topo {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let asked = self.machine.argument();
        if self.description {
            let name = &asked.machine;
            let simulated = Processor::MODELS.join(", ");
            let none =
                |_| Usage(format!("--description: '{name}' is not a simulated model: {simulated}"));
            return output::print(Processor::description(name).map_err(none)?);
        }
        let machine = asked.load()?;
        let recorded = match &self.record {
            Some(directory) => {
                Some((directory, pinwise_linux::write_recording(&asked.snapshot()?, directory)?))
            }
            None => None,
        };
        if self.json {
            output::print_json(&TopologyJson::new(&machine))?;
        } else {
            output::print(&text(&machine, output::width().max(40)))?;
        }
        if let Some((directory, files)) = recorded {
            let directory = directory.display();
            output::aside(&format!(
                "recorded {files} files in {directory}: no serial numbers, no process names, no \
                 command lines"
            ));
            output::aside(&format!("to send it, run: tar -cjf {directory}.tar.bz2 {directory}"));
        }
        Ok(())
    }
}

/// The JSON document.
#[derive(Serialize)]
struct TopologyJson<'a> {
    name: &'a str,
    contexts: usize,
    counts: DomainCounts,
    levels: Vec<LevelJson>,
    machine: &'a Machine,
    /// The notes of the machine, with their text.
    notes: Vec<Value>,
}

/// How many of each there are, online.
#[derive(Serialize)]
struct DomainCounts {
    pu: usize,
    core: usize,
    package: usize,
    numa: usize,
    l1d: usize,
    l2: usize,
    l3: usize,
}

/// A sharing level of the allowed contexts. It has how many domains a parent has, if that is the
/// same everywhere.
#[derive(Serialize)]
struct LevelJson {
    name: DomainKind,
    arity: Option<usize>,
}

impl<'a> TopologyJson<'a> {
    fn new(machine: &'a Machine) -> Self {
        let counts = DomainCounts {
            pu: machine.contexts.len(),
            core: machine.domains(DomainKind::Core).count(),
            package: machine.domains(DomainKind::Package).count(),
            numa: machine.numa.len(),
            l1d: machine.data_caches(1).count(),
            l2: machine.data_caches(2).count(),
            l3: machine.data_caches(3).count(),
        };
        let levels = levels(machine);
        let notes = tagged_machine_notes(&machine.notes);
        let (name, contexts) = (machine.name.as_str(), machine.contexts.len());
        Self { name, contexts, counts, levels, machine, notes }
    }
}

fn levels(machine: &Machine) -> Vec<LevelJson> {
    let levels = SharingTree::new(machine, Alike::ByStructure).levels();
    levels.into_iter().map(|(name, arity)| LevelJson { name, arity }).collect()
}

fn text(machine: &Machine, width: usize) -> String {
    let counts = TopologyJson::new(machine).counts;
    let parts = [
        (counts.pu, "context"),
        (counts.core, "core"),
        (counts.package, "package"),
        (counts.numa, "NUMA node"),
    ];
    let mut parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|&(count, what)| figures::counted(count as u64, what))
        .collect();
    // Several nodes have a table.
    if let [only] = machine.numa.as_slice()
        && let Some(memory) = only.memory
    {
        parts.push(format!("{} of memory", figures::bytes(memory)));
    }
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 2, &format!("{}: {}", one_line(&machine.name), parts.join(", ")));
    let levels: Vec<String> = levels(machine)
        .into_iter()
        .map(|level| {
            format!(
                "{} x {}",
                level.arity.map_or("?".into(), |arity| arity.to_string()),
                level.name.name()
            )
        })
        .collect();
    if !levels.is_empty() {
        let levels = levels.join(", ");
        sheet.paragraph("", 2, &format!("sharing levels, outermost first: {levels}"));
    }
    sheet.text.push('\n');
    if let Some(outline) = Outline::of(machine, machine.online()) {
        tree(&mut sheet.text, machine, std::slice::from_ref(&outline), 0, width);
    }
    numa(&mut sheet.text, machine, width);
    kinds(&mut sheet, machine);
    let mut paragraph = |words: &str| {
        sheet.text.push('\n');
        sheet.paragraph("", 2, words);
    };
    let hidden = machine.online().difference(&machine.allowed);
    if !machine.offline.is_empty() {
        paragraph(&format!("offline: CPU {}", machine.offline));
    }
    let barred = hidden.difference(&machine.isolated);
    for (cpus, what) in [
        (&machine.isolated, "isolated (isolcpus=, or an isolated cpuset)"),
        (&machine.nohz_full, "without a timer tick (nohz_full=)"),
        (&barred, "not allowed by the cpuset or the affinity mask"),
    ] {
        if !cpus.is_empty() {
            paragraph(&format!("{what}: CPUs {cpus}"));
        }
    }
    for ExclusiveCpus { group, cpus } in &machine.exclusive {
        paragraph(&format!("only for the cgroup {}: CPUs {cpus}", one_line(group)));
    }
    for note in &machine.notes {
        paragraph(&format!("note: {}", machine_note(note)));
    }
    sheet.text
}

/// One line for each run of alike neighbours, then what is inside the first of them.
fn tree(text: &mut String, machine: &Machine, neighbours: &[Outline], indent: usize, width: usize) {
    let open = |node: &Outline| node.cpus.is_subset(&machine.allowed);
    let shut = |node: &Outline| node.cpus.is_disjoint(&machine.allowed);
    // A domain with only some contexts allowed is drawn separately.
    let alike = |a: &Outline, b: &Outline| a.alike(b) && (open(a) && open(b) || shut(a) && shut(b));
    for run in runs(neighbours, alike) {
        let entries: Vec<String> = (0..run[0].chain.len())
            .map(|position| {
                entry(&run.iter().map(|node| &node.chain[position]).collect::<Vec<_>>())
            })
            .collect();
        let times = if run.len() > 1 { format!("{} x ", run.len()) } else { String::new() };
        let mark = if run[0].children.is_empty() && shut(&run[0]) { " (not allowed)" } else { "" };
        wrap(text, &format!("{times}{}{mark}", entries.join(" + ")), indent, width);
        tree(text, machine, &run[0].children, indent + 2, width);
    }
}

/// Breaks a line of the tree between domains where it is too wide.
fn wrap(text: &mut String, line: &str, indent: usize, width: usize) {
    let mut column = indent;
    text.push_str(&" ".repeat(indent));
    for (index, part) in line.split(" + ").enumerate() {
        if index > 0 && column + 3 + part.len() > width {
            let _ = write!(text, "\n{:1$}+ ", "", indent + 4);
            column = indent + 6;
        } else if index > 0 {
            text.push_str(" + ");
            column += 3;
        }
        text.push_str(part);
        column += part.len();
    }
    text.push('\n');
}

/// `L2 L#0-5 (1280 KiB)`: one domain of each of some alike nodes.
fn entry(alike: &[&Entry]) -> String {
    let first = alike[0];
    if first.name == "Machine" {
        return first.name.clone();
    }
    let list = |numbers: Vec<u32>| numbers.into_iter().map(CpuId).collect::<CpuSet>().to_string();
    let logical = list(alike.iter().map(|entry| entry.logical).collect());
    let mut text = format!("{} L#{logical}", first.name);
    let known: Option<Vec<u32>> =
        alike.iter().map(|entry| entry.os_index.filter(|&number| number <= 65_535)).collect();
    if let Some(numbers) = known {
        let _ = write!(text, " P#{}", list(numbers));
    }
    if let Some(size) = first.size {
        let _ = write!(text, " ({})", figures::bytes(size));
    }
    if let Some(kind) = &first.core_kind {
        let _ = write!(text, " ({})", one_line(kind));
    }
    text
}

/// A line per node: its number, memory, contexts, and distances where they fit.
fn numa(text: &mut String, machine: &Machine, width: usize) {
    if machine.numa.len() < 2 {
        return;
    }
    let distances = machine.distances.as_ref().map(|distances| &distances.0);
    let rows: Vec<[String; 3]> = machine
        .numa
        .iter()
        .map(|node| {
            let memory = node.memory.map_or("?".into(), figures::bytes);
            let cpus = if node.cpus.is_empty() { "none".into() } else { node.cpus.to_string() };
            let cpus = if node.allowed { cpus } else { format!("{cpus} (memory not allowed)") };
            [node.os_index.to_string(), memory, cpus]
        })
        .collect();
    let widest = |column: usize, title: &str| {
        rows.iter().map(|row| row[column].len()).max().unwrap_or(0).max(title.len())
    };
    let widths = [widest(0, "node"), widest(1, "memory"), widest(2, "CPUs")];
    let fits = widths.iter().sum::<usize>() + 8 + 4 * rows.len() <= width;
    let title = match distances {
        Some(_) if fits => "\nNUMA nodes, and distances to each (10 is local)\n",
        Some(_) => "\nNUMA nodes (--json has the distances)\n",
        None => "\nNUMA nodes\n",
    };
    let distances = distances.filter(|_| fits);
    text.push_str(title);
    let mut line = |cells: [&str; 3], distances: String| {
        let [a, b, c] = widths;
        let row = format!("  {:>a$}  {:>b$}  {:<c$}  {distances}", cells[0], cells[1], cells[2]);
        let _ = writeln!(text, "{}", row.trim_end());
    };
    let cells =
        |numbers: &[u32]| numbers.iter().map(|number| format!("{number:>4}")).collect::<String>();
    let numbers: Vec<u32> = machine.numa.iter().map(|node| node.os_index).collect();
    line(
        ["node", "memory", "CPUs"],
        if distances.is_some() { cells(&numbers) } else { String::new() },
    );
    for (index, row) in rows.iter().enumerate() {
        let distances = distances.map_or(String::new(), |rows| cells(&rows[index]));
        line([&row[0], &row[1], &row[2]], distances);
    }
}

fn kinds(sheet: &mut LabelledLines, machine: &Machine) {
    if machine.kinds.len() < 2 {
        return;
    }
    sheet.text.push_str("\nkinds of cores, most capable first\n");
    for kind in &machine.kinds {
        // Capacities are at most some thousands, frequencies in kHz hundreds of thousands.
        let capacity = match kind.capacity {
            Some(khz) if khz >= 100_000 => format!(", up to {:.1} GHz", khz as f64 / 1e6),
            Some(capacity) => format!(", capacity {capacity} of 1024"),
            None => String::new(),
        };
        sheet.paragraph("  ", 4, &format!("{}: CPUs {}{capacity}", kind.name, kind.cpus));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{CoreKind, Distances};

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut machine = Machine::from_shape("package:2 numa:4 l3:4 core:2 pu:2").unwrap();
        machine.name = "a processor with a long name ".repeat(3);
        machine.distances = Some(Distances(vec![vec![10; 8]; 8]));
        let drawn = [50, 60, 100].map(|width| {
            let text = text(&machine, width);
            let wide = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(wide, None, "{text}");
            text.contains("distances to each")
        });
        assert_eq!(drawn, [false, true, true]);
    }

    #[test]
    fn cpus_that_the_scheduler_leaves_alone_are_named_as_such() {
        let set = |list: &str| CpuSet::parse_list(list).unwrap();
        let mut machine = Machine::from_shape("core:4 pu:2").unwrap();
        (machine.isolated, machine.nohz_full) = (set("2,3"), set("2-5"));
        machine.allowed = set("0,1,4-7");
        let told = text(&machine, 100);
        assert!(
            told.contains("\nisolated (isolcpus=, or an isolated cpuset): CPUs 2,3\n"),
            "{told}"
        );
        assert!(told.contains("\nwithout a timer tick (nohz_full=): CPUs 2-5\n"), "{told}");
        assert!(!told.contains("not allowed by the cpuset"), "{told}");
        machine.allowed = set("4-7");
        let told = text(&machine, 100);
        assert!(told.contains("\nnot allowed by the cpuset or the affinity mask: CPUs 0,1\n"));
    }

    /// A kind of core that has this name. The first has both CPUs.
    fn kind_named(name: &str) -> CoreKind {
        let cpus = if name == "y" { CpuSet::new() } else { "0,1".parse().unwrap() };
        CoreKind { name: name.into(), cpus, capacity: None }
    }

    #[test]
    fn the_name_of_a_machine_controls_no_terminal() {
        let mut machine = Machine::from_shape("core:2").unwrap();
        machine.name = "\u{1b}]0;owned\u{7}\nPin: forged".into();
        machine.kinds = ["x\nPin: forged", "y"].map(kind_named).to_vec();
        let told = pinwise_present::printable(&text(&machine, 100)).into_owned();
        assert!(told.contains(r"(x\nPin: forged)"), "{told}");
        assert!(!told.chars().any(|c| c.is_control() && c != '\n'), "{told:?}");
        assert!(told.lines().all(|line| !line.starts_with("Pin:")), "{told}");
    }
}
