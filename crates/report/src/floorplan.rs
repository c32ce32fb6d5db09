//! The placement drawn on the machine: nested boxes, one per domain, with the threads on their
//! contexts.
//!
//! A domain whose only child has the same contexts shares a box with it (`Core 3 · CPU 7`). Three
//! or more neighbours without a thread become one box. So eight threads on 256 contexts still fit a
//! telephone.

use askama::Template;
use pinwise_measure::Thread;
use pinwise_present::figures;
use pinwise_topology::{Assignment, CacheKind, CpuId, Domain, DomainKind, Machine};

/// One thread where it runs.
#[derive(Clone, Debug)]
pub(crate) struct ThreadMark {
    pub(crate) name: String,
    pub(crate) role: String,
    /// Which of the page's role colours.
    pub(crate) hue: usize,
}

/// A box of the drawing.
#[derive(Template)]
#[template(path = "floorplan.html")]
pub(crate) struct Block {
    pub(crate) label: String,
    /// Nested deepest: holds threads, no further boxes.
    pub(crate) context: bool,
    /// No thread within.
    pub(crate) idle: bool,
    pub(crate) marks: Vec<ThreadMark>,
    pub(crate) blocks: Vec<Block>,
}

/// Names of roles in order of first appearance; the index is the colour.
pub(crate) fn roles(threads: &[Thread]) -> Vec<String> {
    let mut roles: Vec<String> = Vec::new();
    for thread in threads {
        if !roles.contains(&thread.role) {
            roles.push(thread.role.clone());
        }
    }
    roles
}

/// The machine with `assignment`'s threads on it; `leaves` maps leaf indices to contexts.
pub(crate) fn draw(
    machine: &Machine,
    leaves: &[CpuId],
    threads: &[Thread],
    assignment: &Assignment,
) -> Block {
    let roles = roles(threads);
    let on = |cpu: CpuId| -> Vec<ThreadMark> {
        let here = threads.iter().enumerate().filter(|(index, _)| {
            assignment.leaves().get(*index).and_then(|&leaf| leaves.get(leaf as usize))
                == Some(&cpu)
        });
        here.map(|(_, thread)| ThreadMark {
            name: thread.name.clone(),
            role: thread.role.clone(),
            hue: roles.iter().position(|role| *role == thread.role).unwrap_or(0) % HUES,
        })
        .collect()
    };
    domain(machine, &machine.root, String::new(), &on)
}

/// How many role colours the style sheet has.
const HUES: usize = 6;

fn domain(
    machine: &Machine,
    domain: &Domain,
    outer: String,
    on: &dyn Fn(CpuId) -> Vec<ThreadMark>,
) -> Block {
    let own = label(machine, domain);
    let label = if outer.is_empty() { own } else { format!("{outer} · {own}") };
    if let [only] = domain.children.as_slice()
        && only.cpus == domain.cpus
    {
        return self::domain(machine, only, label, on);
    }
    let blocks: Vec<Block> = domain
        .children
        .iter()
        .map(|child| self::domain(machine, child, String::new(), on))
        .collect();
    let context = blocks.is_empty();
    let marks: Vec<ThreadMark> =
        if context { domain.cpus.iter().flat_map(on).collect() } else { Vec::new() };
    let idle = marks.is_empty() && blocks.iter().all(|inner| inner.idle);
    let closed = context && domain.cpus.iter().all(|cpu| !machine.allowed.contains(cpu));
    let label = if closed { format!("{label}, not allowed") } else { label };
    Block { label, context, idle, marks, blocks: merge_idle(blocks) }
}

/// Runs of three or more idle boxes as one.
fn merge_idle(blocks: Vec<Block>) -> Vec<Block> {
    let mut merged: Vec<Block> = Vec::new();
    let mut run: Vec<Block> = Vec::new();
    for next in blocks {
        if next.idle {
            run.push(next);
            continue;
        }
        close_run(&mut run, &mut merged);
        merged.push(next);
    }
    close_run(&mut run, &mut merged);
    merged
}

fn close_run(run: &mut Vec<Block>, merged: &mut Vec<Block>) {
    if let [first, _, .., last] = run.as_slice() {
        let label = format!("{} to {}: no threads", first.label, last.label);
        *run = vec![Block {
            label,
            context: false,
            idle: true,
            marks: Vec::new(),
            blocks: Vec::new(),
        }];
    }
    merged.append(run);
}

/// `Package 0`, `L3 32 MiB`, `Core 3`, `CPU 7`.
fn label(machine: &Machine, domain: &Domain) -> String {
    let cache = |level: u8| {
        let found = machine.caches.iter().find(|cache| {
            cache.level == level
                && cache.kind != CacheKind::Instruction
                && cache.cpus == domain.cpus
        });
        match found.and_then(|cache| cache.size) {
            Some(size) => format!("L{level} {}", figures::bytes(size)),
            None => format!("L{level}"),
        }
    };
    let name = match domain.kind {
        DomainKind::Machine => return "Machine".to_owned(),
        DomainKind::L4 => return cache(4),
        DomainKind::L3 => return cache(3),
        DomainKind::L2 => return cache(2),
        DomainKind::Group => "Group",
        DomainKind::Package => "Package",
        DomainKind::Numa => "NUMA node",
        DomainKind::Die => "Die",
        DomainKind::Cluster => "Cluster",
        DomainKind::Core => "Core",
        DomainKind::Pipe => "Pipe",
        DomainKind::Pu => "CPU",
    };
    let number = match domain.kind {
        DomainKind::Pu => domain.cpus.first().map(|cpu| cpu.0).or(domain.os_index),
        _ => domain.os_index,
    };
    let label = number.map_or_else(|| name.to_owned(), |number| format!("{name} {number}"));
    // On a hybrid machine a core is of a kind.
    let kind = machine.kinds.iter().find(|kind| domain.cpus.is_subset(&kind.cpus));
    match kind.filter(|_| domain.kind == DomainKind::Core && machine.kinds.len() > 1) {
        Some(kind) => format!("{label} ({})", kind.name),
        None => label,
    }
}

/// Where `cpu` is, outermost first: `Package 0 · Core 3`.
pub(crate) fn path(machine: &Machine, cpu: CpuId) -> String {
    let mut parts = Vec::new();
    let mut here = &machine.root;
    while let Some(inner) = here.children.iter().find(|child| child.cpus.contains(cpu)) {
        if inner.kind == DomainKind::Pu {
            break;
        }
        // Only what distinguishes: a domain that is its parent's only child says nothing about
        // where.
        if here.children.len() > 1 {
            parts.push(label(machine, inner));
        }
        here = inner;
    }
    parts.join(" · ")
}
