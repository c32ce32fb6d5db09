//! A placement drawn on the machine, as text.
//!
//! ```text
//! Package 0
//!   Core 0  0 [ipfwd0-R]  1 [ipfwd0-P]
//!   Core 1  2 [ipfwd0-T]  3 [ ]
//! 7 x Package: free (4-31)
//! ```
//!
//! A row is a domain whose contexts have nothing smaller in common. Each context has its number
//! and, in brackets, its threads. Free contexts in a row and free domains side by side are drawn
//! once. Plain ASCII, no colour.

use crate::machine_outline::{Outline, runs};
use crate::printable::one_line;
use pinwise_topology::{Assignment, CpuId, CpuSet, Machine};
use std::collections::BTreeMap;

/// Draws `assignment` of the threads `names` to the contexts `tree_leaves` of `machine`, `width`
/// columns wide where names allow it. Every line ends in a newline.
pub fn draw_assignment(
    machine: &Machine,
    tree_leaves: &[CpuId],
    names: &[String],
    assignment: &Assignment,
    width: usize,
) -> String {
    let within: CpuSet = tree_leaves.iter().copied().collect();
    let Some(outline) = Outline::of(machine, &within) else { return "no context\n".into() };
    let mut threads: BTreeMap<CpuId, Vec<&str>> = BTreeMap::new();
    for thread in 0..assignment.threads() {
        if let Some(&cpu) = tree_leaves.get(assignment.leaf(thread)) {
            threads.entry(cpu).or_default().push(names.get(thread).map_or("?", String::as_str));
        }
    }
    let mut drawing = Drawing { threads, width, text: String::new() };
    drawing.domains(std::slice::from_ref(&outline), 0);
    drawing.text
}

struct Drawing<'a> {
    threads: BTreeMap<CpuId, Vec<&'a str>>,
    width: usize,
    text: String,
}

impl Drawing<'_> {
    /// Draws neighbours: free ones together, rows with their labels aligned.
    fn domains(&mut self, neighbours: &[Outline], indent: usize) {
        let busy = |node: &Outline| node.cpus.iter().any(|cpu| self.threads.contains_key(&cpu));
        let is_row = |node: &Outline| node.children.iter().all(|child| child.context().is_some());
        let labels = neighbours
            .iter()
            .filter(|node| busy(node) && is_row(node))
            .map(|node| label(node).len());
        let column = labels.filter(|&length| length <= 16).max().unwrap_or(0);
        // Free domains of one name may differ inside; nobody is looking for the difference here.
        let together = |a: &Outline, b: &Outline| !busy(a) && !busy(b) && kind(a) == kind(b);
        let groups: Vec<(bool, &[Outline])> =
            runs(neighbours, together).into_iter().map(|run| (busy(&run[0]), run)).collect();
        for (busy, run) in groups {
            let first = &run[0];
            if !busy {
                let cpus = run.iter().fold(CpuSet::new(), |all, node| all.union(&node.cpus));
                let what = if run.len() > 1 {
                    format!("{} x {}", run.len(), kind(first))
                } else {
                    label(first)
                };
                self.line(indent, &format!("{what}: free ({cpus})"));
            } else if is_row(first) {
                self.row(first, indent, column);
            } else {
                let (label, inner) = (label(first), indent + 2);
                let inner = if label.is_empty() { indent } else { inner };
                self.line(indent, &label);
                self.domains(&first.children, inner);
            }
        }
    }

    /// A domain and its contexts on one line, or on several below it.
    fn row(&mut self, node: &Outline, indent: usize, column: usize) {
        let label = label(node);
        let lone = [node.clone()];
        let contexts = if node.children.is_empty() { &lone[..] } else { &node.children[..] };
        let free =
            |node: &Outline| node.context().is_none_or(|cpu| !self.threads.contains_key(&cpu));
        let cells: Vec<String> = runs(contexts, |a, b| free(a) && free(b))
            .into_iter()
            .map(|run| {
                let cpus: CpuSet = run.iter().flat_map(|node| node.cpus.iter()).collect();
                let names = run[0].context().and_then(|cpu| self.threads.get(&cpu));
                names.map_or_else(
                    || format!("{cpus} [ ]"),
                    |names| format!("{cpus} [{}]", counted(names)),
                )
            })
            .collect();
        let beside = !label.is_empty() && label.len() <= column;
        if !beside {
            self.line(indent, &label);
        }
        let hanging = if beside {
            indent + column + 2
        } else {
            indent + if label.is_empty() { 0 } else { 2 }
        };
        let mut line =
            if beside { format!("{:indent$}{label:column$}  ", "") } else { " ".repeat(hanging) };
        for cell in cells {
            if line.len() > hanging && line.len() + cell.len() > self.width {
                self.line(0, line.trim_end());
                line = " ".repeat(hanging);
            }
            // A context with more threads than fit on a line goes on below, between words.
            for word in cell.split_inclusive(' ') {
                if line.len() > hanging && line.len() + word.trim_end().len() > self.width {
                    self.line(0, line.trim_end());
                    line = " ".repeat(hanging + 2);
                }
                line += word;
            }
            line += "  ";
        }
        self.line(0, line.trim_end());
    }

    fn line(&mut self, indent: usize, text: &str) {
        if !text.trim().is_empty() {
            self.text += &format!("{:indent$}{text}\n", "");
        }
    }
}

/// `Package 0 + L3 0`: the domains people know by number. The machine itself, caches beside a core
/// and single contexts need no mention.
fn label(node: &Outline) -> String {
    let told = node
        .chain
        .iter()
        .filter(|entry| !matches!(entry.name.as_str(), "Machine" | "PU" | "L1" | "L1d" | "L1i"));
    let parts: Vec<String> = told
        .map(|entry| format!("{} {}", entry.name, entry.os_index.unwrap_or(entry.logical)))
        .collect();
    // A core's private caches go without saying.
    match parts.iter().position(|part| part.starts_with("Core ")) {
        Some(core) => parts[core].clone(),
        None => parts.join(" + "),
    }
}

/// The label's first word.
fn kind(node: &Outline) -> String {
    label(node).split(' ').next().unwrap_or_default().into()
}

/// Threads of one name are counted: `pigz x6`.
fn counted(names: &[&str]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let text = |(name, count): (&str, usize)| {
        let name = one_line(name);
        if count == 1 { name.into_owned() } else { format!("{name} x{count}") }
    };
    counts.into_iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(machine: &Machine, names: &[&str], leaves: &[u32], width: usize) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let tree_leaves: Vec<CpuId> = machine.contexts.iter().map(|context| context.cpu).collect();
        draw_assignment(machine, &tree_leaves, &names, &Assignment::new(leaves.to_vec()), width)
    }

    #[test]
    fn a_pipeline_on_the_t2_leaves_free_cores_in_one_line() {
        let machine = Machine::model("ultrasparc-t2").unwrap();
        let expected = "\
Package 0 + L2 0
  Core 0
    Pipe 0  0 [ipfwd0-R]  1-3 [ ]
    Pipe 1  4 [ipfwd0-P ipfwd0-T]  5-7 [ ]
  6 x Core: free (8-55)
  Core 7
    Pipe 14: free (56-59)
    Pipe 15  60,61 [ ]  62 [ipfwd1-R]  63 [ ]
";
        let names = ["ipfwd0-R", "ipfwd0-P", "ipfwd0-T", "ipfwd1-R"];
        assert_eq!(draw(&machine, &names, &[0, 4, 4, 62], 60), expected);
    }

    #[test]
    fn two_cores_are_one_row() {
        let machine = Machine::from_shape("2").unwrap();
        assert_eq!(
            draw(&machine, &["redis", "io_thd_1"], &[0, 1], 60),
            "0 [redis]  1 [io_thd_1]\n"
        );
        assert_eq!(draw(&machine, &["pigz"; 6], &[1; 6], 60), "0 [ ]  1 [pigz x6]\n");
    }

    #[test]
    fn rows_are_aligned_and_wrapped_at_the_width() {
        let machine = Machine::from_shape("2x2x2").unwrap();
        let names =
            ["alpha-worker", "beta-worker", "gamma-worker", "delta-worker", "epsilon-worker"];
        let expected = "\
Package 0
  Core 0  0 [alpha-worker beta-worker]
          1 [gamma-worker delta-worker
            epsilon-worker]
  Core 1: free (2,3)
Package 1: free (4-7)
";
        assert_eq!(draw(&machine, &names, &[0, 0, 1, 1, 1], 40), expected);
        assert!(draw(&machine, &names, &[0, 0, 1, 1, 1], 40).lines().all(|line| line.len() <= 40));
    }

    #[test]
    fn a_machine_of_256_contexts_fits_on_a_screen() {
        let machine = Machine::from_shape("package:2 l3:16 core:4 pu:2").unwrap();
        let names: Vec<String> = (0..12).map(|thread| format!("worker-{thread}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let leaves: Vec<u32> = (0..12).map(|thread| thread * 2).collect();
        let drawing = draw(&machine, &names, &leaves, 60);
        let expected = "\
Package 0
  L3 0
    Core 0  0 [worker-0]  1 [ ]
    Core 1  2 [worker-1]  3 [ ]
    Core 2  4 [worker-2]  5 [ ]
    Core 3  6 [worker-3]  7 [ ]
  L3 1
    Core 4  8 [worker-4]  9 [ ]
    Core 5  10 [worker-5]  11 [ ]
    Core 6  12 [worker-6]  13 [ ]
    Core 7  14 [worker-7]  15 [ ]
  L3 2
    Core 8   16 [worker-8]  17 [ ]
    Core 9   18 [worker-9]  19 [ ]
    Core 10  20 [worker-10]  21 [ ]
    Core 11  22 [worker-11]  23 [ ]
  13 x L3: free (24-127)
Package 1: free (128-255)
";
        assert_eq!(drawing, expected);
    }

    #[test]
    fn contexts_that_are_no_leaves_are_not_drawn() {
        let machine = Machine::from_shape("2x2").unwrap();
        let leaves = [CpuId(2), CpuId(3)];
        let drawing =
            draw_assignment(&machine, &leaves, &["a".into()], &Assignment::new(vec![1]), 60);
        assert_eq!(drawing, "Core 1  2 [ ]  3 [a]\n");
    }
}
