//! Machines from a shape: `8x2x4`, or hwloc's synthetic form `package:2 core:4 pu:2`.
//!
//! A bare shape names no levels, so they follow from their number. Counted from the innermost, they
//! are contexts (PU), cores, packages, then groups. `8x2x4` is 8 packages of 2 cores of 4 contexts.
//! `4x2` is 4 cores of 2 contexts, and `6` is 6 cores of one context.

use crate::{CpuId, CpuSet, Domain, DomainKind, Machine, MachineError};

/// As many contexts as Linux can be configured for (NR_CPUS, x86). Each domain holds its CPUs as a
/// bitmap, so that memory and time grow with the square of the number.
pub(crate) const MOST_CONTEXTS: u64 = 8192;

/// Levels with the number of domains per parent, outermost first.
type LevelArities = Vec<(DomainKind, u32)>;

impl Machine {
    /// A machine of alike domains. `shape` is `8x2x4`, top level first; the module explains the
    /// names of its levels. Or it is a list of `level:count`, outermost first. The levels are
    /// `group package numa die l4 l3 cluster l2 core pipe pu`. CPUs are numbered in tree order.
    /// Errors: what is no number, a level out of order, no context, more than 8,192 contexts.
    pub fn from_shape(shape: &str) -> Result<Self, MachineError> {
        let levels = parse(shape.trim())
            .map_err(|reason| MachineError::malformed(format!("shape '{shape}'"), reason))?;
        let mut next = 0;
        let mut counters = vec![0; levels.len()];
        let root = Domain {
            kind: DomainKind::Machine,
            os_index: None,
            children: build(&levels, &mut counters, &mut next),
            cpus: (0..next).map(CpuId).collect(),
        };
        Ok(Self::synthetic(shape.trim().to_owned(), root))
    }

    /// A machine whose NUMA nodes are the [`DomainKind::Numa`] domains of its tree.
    pub(crate) fn synthetic(name: String, root: Domain) -> Self {
        let mut machine = Self::from_tree(name, root);
        let nodes: Vec<_> =
            machine.domains(DomainKind::Numa).map(|domain| domain.cpus.clone()).collect();
        if !nodes.is_empty() {
            let node =
                |(os_index, cpus)| crate::NumaNode { os_index, cpus, memory: None, allowed: true };
            machine.numa = (0..).zip(nodes).map(node).collect();
        }
        machine
    }
}

fn parse(shape: &str) -> Result<LevelArities, String> {
    let levels = if shape.contains(':') { named(shape)? } else { bare(shape)? };
    let contexts =
        levels.iter().try_fold(1u64, |product, &(_, count)| product.checked_mul(u64::from(count)));
    match contexts {
        Some(contexts) if contexts <= MOST_CONTEXTS => Ok(levels),
        _ => Err(format!("more than {MOST_CONTEXTS} contexts")),
    }
}

fn bare(shape: &str) -> Result<LevelArities, String> {
    let counts: Vec<u32> = shape.split('x').map(count).collect::<Result<_, _>>()?;
    let kinds = match counts.len() {
        1 => vec![DomainKind::Core],
        2 => vec![DomainKind::Core, DomainKind::Pu],
        3 => vec![DomainKind::Package, DomainKind::Core, DomainKind::Pu],
        4 => vec![DomainKind::Group, DomainKind::Package, DomainKind::Core, DomainKind::Pu],
        _ => {
            return Err(
                "more than 4 levels; name them, such as 'group:2 package:2 l3:2 core:4 pu:2'"
                    .into(),
            );
        }
    };
    let mut levels: LevelArities = kinds.into_iter().zip(counts).collect();
    if levels.len() == 1 {
        levels.push((DomainKind::Pu, 1));
    }
    Ok(levels)
}

fn named(shape: &str) -> Result<LevelArities, String> {
    let mut levels = LevelArities::new();
    for part in shape.split_whitespace() {
        let (name, number) =
            part.split_once(':').ok_or_else(|| format!("'{part}' is not level:count"))?;
        let kind = kind(name).ok_or_else(|| {
            format!(
                "unknown level '{name}'; known: group package numa die l4 l3 cluster l2 core \
                     pipe pu"
            )
        })?;
        if levels.iter().any(|&(other, _)| other == kind) {
            return Err(format!("level '{name}' appears twice"));
        }
        if levels
            .iter()
            .any(|&(other, _)| matches!(other, DomainKind::Core | DomainKind::Pipe) && kind < other)
        {
            return Err(format!("level '{name}' cannot be inside a core"));
        }
        if levels.iter().any(|&(other, _)| other == DomainKind::Pu) {
            return Err("'pu' must be the last level".into());
        }
        levels.push((kind, count(number)?));
    }
    if levels.last().is_some_and(|&(kind, _)| kind != DomainKind::Pu) {
        levels.push((DomainKind::Pu, 1));
    }
    Ok(levels)
}

fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a level of 0 domains".into()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!(
            "'{text}' is not a number; expected a shape such as 8x2x4 or 'package:2 core:4 pu:2'"
        )),
    }
}

fn kind(name: &str) -> Option<DomainKind> {
    Some(match name.to_ascii_lowercase().as_str() {
        "group" => DomainKind::Group,
        "package" | "pack" | "socket" => DomainKind::Package,
        "numa" | "numanode" | "node" => DomainKind::Numa,
        "die" => DomainKind::Die,
        "l4" | "l4cache" => DomainKind::L4,
        "l3" | "l3cache" => DomainKind::L3,
        "cluster" => DomainKind::Cluster,
        "l2" | "l2cache" => DomainKind::L2,
        "core" => DomainKind::Core,
        "pipe" => DomainKind::Pipe,
        "pu" => DomainKind::Pu,
        _ => return None,
    })
}

/// The domains of the first of `levels` under one parent. `counters` number each level's domains
/// over the machine.
pub(crate) fn build(
    levels: &[(DomainKind, u32)],
    counters: &mut [u32],
    next: &mut u32,
) -> Vec<Domain> {
    let Some((&(kind, count), inner)) = levels.split_first() else { return Vec::new() };
    (0..count)
        .map(|_| {
            let os_index = counters[0];
            counters[0] += 1;
            let first = *next;
            let children = build(inner, &mut counters[1..], next);
            if inner.is_empty() {
                *next += 1;
            }
            let cpus: CpuSet = (first..*next).map(CpuId).collect();
            Domain { kind, os_index: Some(os_index), cpus, children }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(machine: &Machine, kind: DomainKind) -> usize {
        machine.domains(kind).count()
    }

    #[test]
    fn a_bare_shape_names_its_levels_from_the_inside() {
        let machine = Machine::from_shape("8x2x4").unwrap();
        assert_eq!(machine.contexts.len(), 64);
        assert_eq!(count(&machine, DomainKind::Package), 8);
        assert_eq!(count(&machine, DomainKind::Core), 16);
        let machine = Machine::from_shape("6").unwrap();
        assert_eq!((count(&machine, DomainKind::Core), machine.contexts.len()), (6, 6));
        let second = Machine::from_shape("2x2").unwrap();
        assert_eq!(second.domains(DomainKind::Core).nth(1).unwrap().cpus.to_string(), "2,3");
    }

    #[test]
    fn a_named_shape_reads_as_hwloc_reads_it() {
        let machine = Machine::from_shape("package:2 numa:2 l3:1 core:4 pu:2").unwrap();
        assert_eq!(machine.contexts.len(), 32);
        assert_eq!(machine.numa.len(), 4);
        assert_eq!(machine.numa[3].cpus.to_string(), "24-31");
        let without_pu = Machine::from_shape("package:2 core:4").unwrap();
        assert_eq!(without_pu.contexts.len(), 8);
    }

    #[test]
    fn bad_shapes_say_what_is_wrong() {
        for (shape, reason) in [
            ("", "is not a number"),
            ("8x", "is not a number"),
            ("8x0x4", "0 domains"),
            ("300x300", "more than 8192"),
            ("99999999999", "is not a number"),
            ("4294967295x4294967295x4294967295", "more than 8192"),
            ("2x2x2x2x2", "name them"),
            ("chair:2 pu:2", "unknown level 'chair'"),
            ("pu:2 core:2", "must be the last"),
            ("core:2 package:2", "inside a core"),
            ("core:2 core:2", "twice"),
        ] {
            let error = Machine::from_shape(shape).unwrap_err().to_string();
            assert!(error.contains(reason), "{shape}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9x: a-z]{0,24}") {
            let _ = Machine::from_shape(&text);
        }
    }
}
