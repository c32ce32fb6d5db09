//! MCTOP's descriptions of machines (`.mct` files).
//!
//! ```text
//! #lpdxeon2680 #HWCs 40 #Nodes 2 SMT 1   name, contexts, NUMA nodes, several contexts per core?
//! 0    1    112                          from, to, cycles; a line for each pair and direction
//! #Mem_latencies 2                       then: context, node, cycles; 0 if not measured
//! #Cache_levels 4                        level, cycles, KiB declared, KiB measured
//! ```
//!
//! Each value in a file is the median of its cluster. The reader ignores bandwidths and power,
//! which follow. A section may begin in the middle of a line. In some files the section before
//! lacks its last newline.

use super::{
    LatencyClass, LatencyError, LatencyLevel, LatencyLevels, LatencyMatrix, LatencyUnit,
    MOST_CONTEXTS,
};
use crate::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What an `.mct` file says of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MctFile {
    /// The machine's name.
    pub name: String,
    /// How many NUMA nodes it has.
    pub nodes: usize,
    /// Whether its cores have several contexts.
    pub smt: bool,
    /// Latencies between contexts, in cycles.
    pub matrix: LatencyMatrix,
    /// Cycles from a context to the memory of each node, of the contexts that were measured (one
    /// of each node).
    pub memory: BTreeMap<CpuId, BTreeMap<usize, f64>>,
    /// Its data caches, nearest first.
    pub caches: Vec<MctCache>,
}

/// A data cache as MCTOP measured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MctCache {
    /// 1 for the level next to the core.
    pub level: u8,
    /// Load latency in cycles.
    pub cycles: u32,
    /// Capacity in KiB as the operating system reports it.
    pub declared_kib: u32,
    /// Capacity in KiB as latencies show it.
    pub measured_kib: u32,
}

/// Something the head of a file declares, and what the latencies imply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderCheck {
    /// What: `SMT`, `NUMA nodes`, `local memory`.
    pub what: String,
    /// What the file declares.
    pub declared: String,
    /// What its latencies imply.
    pub implied: String,
    /// Whether that is the same.
    pub agrees: bool,
}

/// Which part of the file a line is in.
#[derive(Clone, Copy)]
enum Section {
    Latencies,
    Memory,
    Caches,
    Other,
}

impl MctFile {
    /// Reads a description. Error: an invalid line, or what is missing. A latency is needed for
    /// each two contexts and direction. Each further section needs as many lines as its head
    /// declares.
    pub fn parse(text: &str) -> Result<Self, LatencyError> {
        let first = text.lines().next().unwrap_or_default();
        let head = Head::parse(first).map_err(|reason| LatencyError::Line { line: 1, reason })?;
        let mut cells = vec![None; head.contexts * head.contexts];
        let mut memory: BTreeMap<CpuId, BTreeMap<usize, f64>> = BTreeMap::new();
        let mut caches = Vec::new();
        // Lines of the sections that are there: how many they should have, and how many they have.
        let (mut memory_lines, mut cache_lines) = ((0, 0), (0, 0));
        let mut section = Section::Latencies;
        for (number, line) in (2..).zip(text.lines().skip(1)) {
            let (data, begins) = match line.split_once('#') {
                Some((data, begins)) => (data.trim(), Some(begins)),
                None => (line.trim(), None),
            };
            if !data.is_empty() {
                match section {
                    Section::Memory => memory_lines.1 += 1,
                    Section::Caches => cache_lines.1 += 1,
                    Section::Latencies | Section::Other => {}
                }
                match section {
                    Section::Latencies => head.latency(data, &mut cells),
                    Section::Memory => head.memory(data, &mut memory),
                    Section::Caches => cache(data).map(|cache| caches.extend(cache)),
                    Section::Other => Ok(()),
                }
                .map_err(|reason| LatencyError::Line { line: number, reason })?;
            }
            if let Some(begins) = begins {
                let mut words = begins.split_whitespace();
                let name = words.next().unwrap_or_default();
                let mut declared = || {
                    let count = words.next().and_then(|count| count.parse::<usize>().ok());
                    let count = count.filter(|&count| count <= MOST_CONTEXTS);
                    let reason =
                        format!("#{name}: expected how many there are, at most {MOST_CONTEXTS}");
                    count.ok_or(LatencyError::Line { line: number, reason })
                };
                section = match name {
                    "Mem_latencies" => {
                        memory_lines.0 = head.contexts * declared()?;
                        Section::Memory
                    }
                    "Cache_levels" => {
                        cache_lines.0 = declared()?;
                        Section::Caches
                    }
                    _ => Section::Other,
                };
            }
        }
        head.whole(&cells)?;
        complete("lines of memory latencies".into(), memory_lines.0, memory_lines.1)?;
        complete("lines of cache levels".into(), cache_lines.0, cache_lines.1)?;
        // Contexts are below MOST_CONTEXTS.
        let contexts = (0..head.contexts).map(|context| CpuId(context as u32)).collect();
        let matrix = LatencyMatrix::new(contexts, LatencyUnit::Cycles, cells)?;
        Ok(Self { name: head.name, nodes: head.nodes, smt: head.smt, matrix, memory, caches })
    }

    /// Holds the head of the file against the levels that its latencies imply. A missing SMT is not
    /// checked: latencies alone do not separate siblings from cores that share a cache.
    pub fn check(&self, levels: &LatencyLevels) -> Vec<HeaderCheck> {
        let n = self.matrix.contexts().len();
        let check = |what: &str, declared: String, implied: String, agrees| {
            let what = what.into();
            HeaderCheck { what, declared, implied, agrees }
        };
        let mut checks = Vec::new();
        if self.smt {
            let inner = &levels.levels[0];
            // Siblings are nearer than anything else: their level lies below that of the nodes.
            let siblings = matches!(inner.size(), Some(2 | 4 | 8))
                && (inner.groups.len() > self.nodes || n == 2);
            checks.push(check("SMT", "yes".into(), described(inner), siblings));
        }
        let nodes = levels.levels.iter().find(|level| level.groups.len() == self.nodes);
        let implied = nodes.map_or(format!("no level of {} groups", self.nodes), described);
        checks.push(check("NUMA nodes", self.nodes.to_string(), implied, nodes.is_some()));
        if let Some(nodes) = nodes.filter(|_| self.nodes > 1 && !self.memory.is_empty()) {
            let nearest = self.nearest();
            let groups: BTreeSet<Option<usize>> =
                nearest.keys().map(|&cpu| group_of(&nodes.groups, cpu)).collect();
            let reached: BTreeSet<usize> = nearest.values().copied().collect();
            let agrees = reached.len() == self.nodes
                && groups.len() == self.nodes
                && nearest.len() == self.nodes;
            let implied = format!(
                "contexts {} are nearest to nodes {}, in {} of these groups",
                nearest.keys().copied().collect::<CpuSet>(),
                list(nearest.values()),
                groups.len()
            );
            checks.push(check("local memory", format!("{} nodes", self.nodes), implied, agrees));
        }
        checks
    }

    /// The node whose memory is nearest, of each context that was measured.
    fn nearest(&self) -> BTreeMap<CpuId, usize> {
        let nearest = |nodes: &BTreeMap<usize, f64>| {
            nodes.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(&node, _)| node)
        };
        self.memory.iter().filter_map(|(&cpu, nodes)| Some((cpu, nearest(nodes)?))).collect()
    }
}

/// An error where fewer are there than there should be.
fn complete(what: String, expected: usize, found: usize) -> Result<(), LatencyError> {
    if found < expected { Err(LatencyError::Incomplete { what, expected, found }) } else { Ok(()) }
}

fn group_of(groups: &[CpuSet], cpu: CpuId) -> Option<usize> {
    groups.iter().position(|group| group.contains(cpu))
}

fn list<'a>(numbers: impl Iterator<Item = &'a usize>) -> String {
    numbers.map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// `4 groups of 24 contexts at 135 cycles`
fn described(level: &LatencyLevel) -> String {
    let size = level.size().map_or("unequal numbers of".into(), |size| size.to_string());
    let groups = match level.groups.len() {
        1 => "1 group".into(),
        groups => format!("{groups} groups"),
    };
    let latency = level
        .latency
        .map(|LatencyClass { median, .. }| format!(" at {median:.0} cycles"))
        .unwrap_or_default();
    format!("{groups} of {size} contexts{latency}")
}

/// `Cache_level 3   Latency 41     SizeOS 25600 SizeEst 22528`; level 0 is the instruction cache,
/// which is left out.
fn cache(line: &str) -> Result<Option<MctCache>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &["Cache_level", level, "Latency", cycles, "SizeOS", declared, "SizeEst", measured] =
        words.as_slice()
    else {
        return Err("expected 'Cache_level N Latency N SizeOS N SizeEst N'".into());
    };
    let number =
        |word: &str| word.parse::<u32>().map_err(|_| format!("'{word}': expected a number"));
    let level = level.parse::<u8>().map_err(|_| format!("'{level}': expected a cache level"))?;
    let cache = MctCache {
        level,
        cycles: number(cycles)?,
        declared_kib: number(declared)?,
        measured_kib: number(measured)?,
    };
    Ok((level > 0).then_some(cache))
}

/// The first line, which declares what follows.
struct Head {
    name: String,
    contexts: usize,
    nodes: usize,
    smt: bool,
}

impl Head {
    fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, "#HWCs", contexts, "#Nodes", nodes, "SMT", smt] = words.as_slice() else {
            return Err(
                "expected '#NAME #HWCs N #Nodes N SMT 0|1', the head of an .mct file".into()
            );
        };
        let name = name
            .strip_prefix('#')
            .filter(|name| !name.is_empty())
            .ok_or("expected '#NAME' first")?;
        let contexts = contexts.parse().ok().filter(|number| (2..=MOST_CONTEXTS).contains(number));
        let contexts = contexts.ok_or(format!("#HWCs: expected 2 to {MOST_CONTEXTS}"))?;
        let nodes = nodes.parse().ok().filter(|number| (1..=contexts).contains(number));
        let nodes = nodes.ok_or(format!("#Nodes: expected 1 to {contexts}"))?;
        let smt = match smt {
            "0" => false,
            "1" => true,
            _ => return Err(format!("SMT {smt}: expected 0 or 1")),
        };
        Ok(Self { name: name.into(), contexts, nodes, smt })
    }

    fn latency(&self, line: &str, cells: &mut [Option<f64>]) -> Result<(), String> {
        let (from, to, value) = triple(line, self.contexts, self.contexts)?;
        if cells[from * self.contexts + to].replace(value).is_some() {
            return Err(format!("the latency from {from} to {to} appears twice"));
        }
        Ok(())
    }

    /// Whether each context has its latency to each other.
    fn whole(&self, cells: &[Option<f64>]) -> Result<(), LatencyError> {
        let n = self.contexts;
        let between = || (0..n * n).filter(|cell| cell / n != cell % n);
        let missing = between().find(|&cell| cells[cell].is_none());
        let first = missing.map_or(String::new(), |cell| {
            format!(" (first missing: {} to {})", cell / n, cell % n)
        });
        let found = between().filter(|&cell| cells[cell].is_some()).count();
        complete(format!("latencies between contexts{first}"), n * (n - 1), found)
    }

    fn memory(
        &self,
        line: &str,
        memory: &mut BTreeMap<CpuId, BTreeMap<usize, f64>>,
    ) -> Result<(), String> {
        let (context, node, value) = triple(line, self.contexts, self.nodes)?;
        if value > 0.0 {
            // Contexts are below MOST_CONTEXTS.
            memory.entry(CpuId(context as u32)).or_default().insert(node, value);
        }
        Ok(())
    }
}

/// `from to value`, the first two below `rows` and `columns`.
fn triple(line: &str, rows: usize, columns: usize) -> Result<(usize, usize, f64), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[from, to, value] = words.as_slice() else {
        return Err(format!("{} values; expected 3: from, to, cycles", words.len()));
    };
    let index = |word: &str, bound: usize| {
        word.parse()
            .ok()
            .filter(|&index: &usize| index < bound)
            .ok_or(format!("'{word}': expected a number below {bound}"))
    };
    let cycles = value.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
    Ok((
        index(from, rows)?,
        index(to, columns)?,
        cycles.ok_or(format!("'{value}': expected a number of cycles"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of two cores of two contexts, numbered as Linux does: siblings are 4 apart.
    fn file() -> String {
        let mut text = "#made_up #HWCs 8 #Nodes 2 SMT 1\n".to_owned();
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
            let cycles = match (a, b) {
                _ if a == b => 0,
                _ if a % 4 == b % 4 => 30,
                _ if a % 4 / 2 == b % 4 / 2 => 110,
                _ => 300,
            };
            text += &format!("{a:<4} {b:<4} {cycles}\n");
        }
        text += "#Mem_latencies 2\n0    0    260\n0    1    500\n1    0    0\n1    1    0\n\
                 2    0    510\n2    1    255\n";
        for (context, node) in (3..8).flat_map(|context| [(context, 0), (context, 1)]) {
            text += &format!("{context:<4} {node:<4} 0\n");
        }
        text += "#Mem_bw-READ 2\nanything\n";
        text += "#Cache_levels 2\nCache_level 0   Latency 0      SizeOS 32    SizeEst 32   \n";
        text + "Cache_level 1   Latency 4      SizeOS 32    SizeEst 30\
                #Power_measurements 6\nPower_sockt_0_idle  1.8\n"
    }

    #[test]
    fn a_description_is_read_whole() {
        let file = MctFile::parse(&file()).unwrap();
        assert_eq!((file.name.as_str(), file.nodes, file.smt), ("made_up", 2, true));
        assert_eq!(file.matrix.unit(), LatencyUnit::Cycles);
        assert_eq!(
            [file.matrix.get(1, 5), file.matrix.get(5, 2), file.matrix.get(3, 3)],
            [Some(30.0), Some(300.0), None]
        );
        assert_eq!(file.memory[&CpuId(2)], BTreeMap::from([(0, 510.0), (1, 255.0)]));
        assert_eq!(file.memory.len(), 2, "0 is not measured");
        assert_eq!(
            file.caches,
            [MctCache { level: 1, cycles: 4, declared_kib: 32, measured_kib: 30 }]
        );
    }

    #[test]
    fn its_head_agrees_with_its_latencies() {
        let file = MctFile::parse(&file()).unwrap();
        let checks = file.check(&LatencyLevels::of(&file.matrix));
        let texts: Vec<String> = checks
            .iter()
            .map(|check| format!("{}: {} / {}", check.what, check.declared, check.implied))
            .collect();
        assert_eq!(
            texts,
            [
                "SMT: yes / 4 groups of 2 contexts at 30 cycles",
                "NUMA nodes: 2 / 2 groups of 4 contexts at 110 cycles",
                "local memory: 2 nodes / contexts 0,2 are nearest to nodes 0, 1, in 2 of these \
                 groups"
            ]
        );
        assert!(checks.iter().all(|check| check.agrees));
    }

    #[test]
    fn a_head_that_is_wrong_is_found_out() {
        let disagrees = |text: String| -> Vec<String> {
            let file = MctFile::parse(&text).unwrap();
            let checks = file.check(&LatencyLevels::of(&file.matrix));
            checks.into_iter().filter(|check| !check.agrees).map(|check| check.what).collect()
        };
        assert_eq!(disagrees(file().replace("#Nodes 2", "#Nodes 3")), ["NUMA nodes"]);
        assert_eq!(
            disagrees(file().replace("260", "510").replace("\n0    1    500", "\n0    1    255")),
            ["local memory"]
        );
        let flat = file()
            .lines()
            .map(|line| {
                line.strip_suffix(" 30").map_or(line.into(), |pair| format!("{pair} 110\n"))
            })
            .collect::<Vec<String>>();
        assert_eq!(disagrees(flat.join("\n")), ["SMT"]);
    }

    #[test]
    fn a_file_that_was_cut_short_is_refused() {
        let whole = file();
        let refuse = |text: &str| MctFile::parse(text).unwrap_err().to_string();
        let lines = |count: usize| whole.lines().take(count).collect::<Vec<_>>().join("\n");
        let ends = ": it was cut short, get the whole file";
        assert_eq!(
            refuse(&lines(1)),
            format!(
                "the file has 0 of 56 latencies between contexts (first missing: 0 to 1){ends}"
            )
        );
        assert_eq!(
            refuse(&lines(1 + 20)),
            format!(
                "the file has 17 of 56 latencies between contexts (first missing: 2 to 4){ends}"
            )
        );
        assert_eq!(
            refuse(&lines(1 + 64 + 1 + 3)),
            format!("the file has 3 of 16 lines of memory latencies{ends}")
        );
        let begun = whole.find("Cache_level 1").unwrap();
        assert_eq!(
            refuse(&whole[..begun]),
            format!("the file has 1 of 2 lines of cache levels{ends}")
        );
        assert!(
            MctFile::parse(&lines(1 + 64)).is_ok(),
            "a section that is not there is not cut short"
        );
        assert_eq!(
            refuse(&whole.replace("#Cache_levels 2", "#Cache_levels")),
            "line 85: #Cache_levels: expected how many there are, at most 2048"
        );
        // A file cut at any place is refused, or is as large as declared.
        for end in 0..whole.len() {
            if let Ok(cut) = MctFile::parse(&whole[..end]) {
                let n = cut.matrix.contexts().len();
                assert!((0..n * n).all(
                    |cell| cell / n == cell % n || cut.matrix.get(cell / n, cell % n).is_some()
                ));
            }
        }
    }

    #[test]
    fn errors_name_the_line() {
        let refuse = |text: &str| MctFile::parse(text).unwrap_err().to_string();
        assert_eq!(
            refuse(""),
            "line 1: expected '#NAME #HWCs N #Nodes N SMT 0|1', the head of an .mct file"
        );
        assert_eq!(refuse("#m #HWCs 1 #Nodes 1 SMT 0"), "line 1: #HWCs: expected 2 to 2048");
        assert_eq!(refuse("#m #HWCs 4 #Nodes 5 SMT 0"), "line 1: #Nodes: expected 1 to 4");
        assert_eq!(refuse("#m #HWCs 4 #Nodes 1 SMT yes"), "line 1: SMT yes: expected 0 or 1");
        let body = |lines: &str| refuse(&format!("#m #HWCs 2 #Nodes 1 SMT 0\n0 1 80\n{lines}"));
        assert_eq!(body("1 2 80"), "line 3: '2': expected a number below 2");
        assert_eq!(body("1 0"), "line 3: 2 values; expected 3: from, to, cycles");
        assert_eq!(body("1 0 -8"), "line 3: '-8': expected a number of cycles");
        assert_eq!(body("1 0 inf"), "line 3: 'inf': expected a number of cycles");
        assert_eq!(body("\n0 1 80"), "line 4: the latency from 0 to 1 appears twice");
        assert_eq!(body("#Mem_latencies 1\n0 1 5"), "line 4: '1': expected a number below 1");
        assert_eq!(
            body("#Cache_levels 1\nL1 32"),
            "line 4: expected 'Cache_level N Latency N SizeOS N SizeEst N'"
        );
    }
}
