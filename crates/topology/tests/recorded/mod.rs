//! The recorded machines of hwloc's test suite, and what its authors expect of each.
//!
//! A `.test` file names a tar of `/sys` and `/proc`, the expected text (`.console`) or XML, and
//! hwloc's options. Both forms of expectation are read here line by line, sharing no code with the
//! readers under test.
//!
//! Options and their meaning for a [`Machine`], which always describes all online contexts and
//! knows which of them are allowed. Without `--disallowed`, hwloc shows only the allowed part, so
//! the test cuts the machine to it before comparing. With it, the test compares the whole machine.
//! `--no-icaches` leaves instruction caches out of the expectation.

mod hostile;

use pinwise_topology::{CacheKind, CpuId, CpuSet, DomainKind, Machine};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One thing that exists, as both sides can tell it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    /// `PU`, `Core`, `Package`, `L2`, `L1d`, `L1i`, `NUMA`, `Cluster`, `Group`, …
    pub(crate) kind: String,
    pub(crate) cpus: CpuSet,
    /// The node's number, for NUMA nodes: two may have the same contexts.
    pub(crate) number: Option<u32>,
    /// Bytes, for caches.
    pub(crate) size: Option<u64>,
}

/// What hwloc's authors expect of a recorded machine.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) items: Vec<Item>,
    pub(crate) distances: Vec<Vec<u32>>,
    pub(crate) kinds: BTreeSet<CpuSet>,
    /// Contexts that exist but are not in the topology.
    pub(crate) absent: CpuSet,
    /// Contexts in the topology that are not allowed.
    pub(crate) disallowed: CpuSet,
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) archive: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) options: String,
}

/// Every `.test` file of the folder.
pub(crate) fn cases(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "test") {
            let text = std::fs::read_to_string(&path).unwrap();
            let value = |key: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(key))
                    .map(|value| value.trim().to_owned())
            };
            cases.push(Case {
                name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                archive: folder.join(value("source:").unwrap()),
                target: folder.join(value("target:").unwrap()),
                options: value("options:").unwrap_or_default(),
            });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!cases.is_empty(), "no .test file in {}", folder.display());
    cases
}

impl Case {
    pub(crate) fn expected(&self) -> Expected {
        let text = std::fs::read_to_string(&self.target).unwrap();
        let mut expected =
            if self.target.extension().unwrap() == "xml" { xml(&text) } else { console(&text) };
        // A package whose contexts are all disallowed stays in hwloc's text for its memory; here it
        // has no contexts.
        expected.items.retain(|item| item.kind == "NUMA" || !item.cpus.is_empty());
        expected.items.sort();
        expected
    }

    /// Whether disallowed contexts are part of the expectation.
    pub(crate) fn whole(&self) -> bool {
        self.options.contains("--disallowed")
    }

    pub(crate) fn instruction_caches(&self) -> bool {
        !self.options.contains("--no-icaches")
    }
}

/// The same of a machine: cut to what is allowed unless `whole`.
pub(crate) fn items(machine: &Machine, whole: bool, instruction_caches: bool) -> Vec<Item> {
    let within = if whole { machine.online() } else { &machine.allowed };
    let mut items = Vec::new();
    for domain in machine.root.walk() {
        let kind = match domain.kind {
            DomainKind::Pu => "PU",
            DomainKind::Core => "Core",
            DomainKind::Die => "Die",
            DomainKind::Package => "Package",
            DomainKind::Cluster => "Cluster",
            DomainKind::Group => "Group",
            _ => continue,
        };
        items.push(Item { kind: kind.into(), cpus: domain.cpus.clone(), number: None, size: None });
    }
    for cache in &machine.caches {
        let kind = match (cache.level, cache.kind) {
            (1, CacheKind::Data) => "L1d".into(),
            (1, CacheKind::Instruction) => "L1i".into(),
            (level, _) => format!("L{level}"),
        };
        if instruction_caches || cache.kind != CacheKind::Instruction {
            items.push(Item { kind, cpus: cache.cpus.clone(), number: None, size: cache.size });
        }
    }
    for node in machine.numa.iter().filter(|node| whole || node.allowed) {
        let number = Some(node.os_index);
        items.push(Item {
            kind: "NUMA".into(),
            cpus: node.cpus.clone(),
            number,
            size: node.memory,
        });
    }
    items.iter_mut().for_each(|item| item.cpus = item.cpus.intersection(within));
    items.retain(|item| item.kind == "NUMA" || !item.cpus.is_empty());
    items.sort();
    items
}

/// hwloc's names of what is compared. Plain groups are left out: hwloc makes them up from
/// distances.
fn kind(hwloc: &str) -> Option<&'static str> {
    Some(match hwloc {
        "PU" => "PU",
        "Core" => "Core",
        "Die" => "Die",
        "Package" => "Package",
        "NUMANode" => "NUMA",
        "L1dCache" | "L1Cache" => "L1d",
        "L1iCache" => "L1i",
        "L2Cache" => "L2",
        "L3Cache" => "L3",
        "L4Cache" => "L4",
        _ if hwloc.ends_with("(Cluster)") => "Cluster",
        _ if hwloc.ends_with("(Book)") || hwloc.ends_with("(Drawer)") => "Group",
        _ => return None,
    })
}

/// The text of `lstopo -v`: one object a line, nested by two spaces. An object's contexts are those
/// of the PUs below it. A NUMA node's contexts are those of the object it is attached to.
fn console(text: &str) -> Expected {
    struct Line<'a> {
        depth: usize,
        hwloc: &'a str,
        rest: &'a str,
    }
    let objects: Vec<Line> = text
        .lines()
        .take_while(|line| !line.starts_with("depth 0"))
        .map(|line| {
            let content = line.trim_start();
            let (hwloc, rest) = content.split_once(' ').unwrap_or((content, ""));
            Line { depth: (line.len() - content.len()) / 2, hwloc, rest }
        })
        .collect();
    let number = |rest: &str| -> Option<u32> {
        let digits = rest.split("P#").nth(1)?;
        digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
    };
    let below = |index: usize| -> CpuSet {
        let depth = objects[index].depth;
        let inner = objects[index + 1..].iter().take_while(|line| line.depth > depth);
        let own = objects[index..=index].iter().chain(inner).filter(|line| line.hwloc == "PU");
        own.map(|line| CpuId(number(line.rest).unwrap())).collect()
    };
    let mut expected = Expected::default();
    for (index, line) in objects.iter().enumerate() {
        let Some(kind) = kind(line.hwloc) else { continue };
        let (cpus, number, size) = if kind == "NUMA" {
            let parent = (0..index).rev().find(|&above| objects[above].depth < line.depth).unwrap();
            // Memory is rounded in the text; it is compared on the XML cases only.
            (below(parent), number(line.rest), None)
        } else {
            (
                below(index),
                None,
                line.rest
                    .split("size=")
                    .nth(1)
                    .and_then(|text| bytes(text.split([' ', ')']).next()?)),
            )
        };
        expected.items.push(Item { kind: kind.into(), cpus, number, size });
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("Relative latency matrix") {
            lines.next();
            while let Some(row) = lines.next_if(|row| {
                row.trim_start().starts_with(|c: char| c.is_ascii_digit()) && row.starts_with("  ")
            }) {
                expected.distances.push(
                    row.split_whitespace().skip(1).map(|cell| cell.parse().unwrap()).collect(),
                );
            }
        } else if line.starts_with("CPU kind #") {
            expected
                .kinds
                .insert(CpuSet::parse_mask(line.split("cpuset ").nth(1).unwrap()).unwrap());
        } else if let Some((_, mask)) = line.split_once("processors not represented in topology: ")
        {
            expected.absent = CpuSet::parse_mask(mask).unwrap();
        } else if let Some((_, mask)) = line.split_once("processors represented but not allowed: ")
        {
            expected.disallowed = CpuSet::parse_mask(mask).unwrap();
        }
    }
    expected
}

/// `16KiB`, `24MiB` in bytes.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = match &text[digits.len()..] {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

/// hwloc's XML: one element a line.
fn xml(text: &str) -> Expected {
    let attribute = |line: &str, name: &str| -> Option<String> {
        let value = line.split(&format!(" {name}=\"")).nth(1)?;
        value.split('"').next().map(Into::into)
    };
    let mask = |line: &str, name| CpuSet::parse_mask(&attribute(line, name).unwrap()).unwrap();
    let mut expected = Expected::default();
    let mut values: Vec<u32> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("<object type=\"Machine\"") {
            expected.absent = mask(line, "complete_cpuset").difference(&mask(line, "cpuset"));
        }
        if line.starts_with("<object") {
            let hwloc = attribute(line, "type").unwrap();
            let Some(kind) = kind(&hwloc) else { continue };
            let number =
                (kind == "NUMA").then(|| attribute(line, "os_index").unwrap().parse().unwrap());
            let size = attribute(line, "cache_size").or(attribute(line, "local_memory"));
            let size = size.map(|size| size.parse().unwrap());
            expected.items.push(Item {
                kind: kind.into(),
                cpus: mask(line, "cpuset"),
                number,
                size,
            });
        } else if line.starts_with("<u64values") {
            let inner = line.split(['>', '<']).nth(2).unwrap();
            values.extend(inner.split_whitespace().map(|value| value.parse::<u32>().unwrap()));
        } else if line.starts_with("<cpukind") {
            expected.kinds.insert(mask(line, "cpuset"));
        }
    }
    let nodes = (values.len() as f64).sqrt() as usize;
    expected.distances = values.chunks(nodes.max(1)).map(<[u32]>::to_vec).collect();
    expected
}
