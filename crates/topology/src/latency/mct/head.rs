//! The first line of an `.mct` file, and the numbers that it tells to come.

use super::complete;
use crate::CpuId;
use crate::latency::{LatencyError, MOST_CONTEXTS};
use std::collections::BTreeMap;

/// The first line.
pub(super) struct Head {
    pub(super) name: String,
    pub(super) contexts: usize,
    pub(super) nodes: usize,
    pub(super) smt: bool,
}

impl Head {
    pub(super) fn parse(line: &str) -> Result<Self, String> {
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

    pub(super) fn latency(&self, line: &str, cells: &mut [Option<f64>]) -> Result<(), String> {
        let (from, to, value) = triple(line, self.contexts, self.contexts)?;
        if cells[from * self.contexts + to].replace(value).is_some() {
            return Err(format!("the latency from {from} to {to} appears twice"));
        }
        Ok(())
    }

    /// Whether each context has its latency to each other.
    pub(super) fn whole(&self, cells: &[Option<f64>]) -> Result<(), LatencyError> {
        let n = self.contexts;
        let between = || (0..n * n).filter(|cell| cell / n != cell % n);
        let missing = between().find(|&cell| cells[cell].is_none());
        let first = missing.map_or(String::new(), |cell| {
            format!(" (first missing: {} to {})", cell / n, cell % n)
        });
        let found = between().filter(|&cell| cells[cell].is_some()).count();
        complete(format!("latencies between contexts{first}"), n * (n - 1), found)
    }

    pub(super) fn memory(
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
