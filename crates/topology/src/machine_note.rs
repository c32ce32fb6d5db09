//! Contradictions in the description of a machine, and the parts left out because of them. The
//! crate `present` makes the text.

use crate::{CpuSet, DomainKind};
use serde::{Deserialize, Deserializer, Serialize};

/// Something that was left out of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MachineNote {
    /// Domains of a kind are not in the tree. Each crosses a domain of a kind that is trusted more.
    Crossing {
        /// Domains that are left out.
        domains: usize,
        /// Their kind.
        left_out: DomainKind,
        /// The contexts of the first of them.
        cpus: CpuSet,
        /// The kind of domains that they cross.
        kept: DomainKind,
        /// The contexts of the domain that the first one crosses.
        kept_cpus: CpuSet,
    },
    /// NUMA distances are left out, because their rows do not have one number per node.
    DistancesIncomplete,
    /// NUMA distances are left out, because they are not between the nodes of this topology.
    DistancesForeign,
    /// A sentence without a full stop, from a store that was written before notes had kinds.
    Text {
        /// The sentence.
        text: String,
    },
}

/// Reads notes, or the texts that stood for them in earlier versions.
pub(crate) fn notes<'de, D>(deserializer: D) -> Result<Vec<MachineNote>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredNote {
        Text(String),
        Note(MachineNote),
    }
    let stored = Vec::<StoredNote>::deserialize(deserializer)?.into_iter();
    Ok(stored
        .map(|stored| match stored {
            StoredNote::Text(text) => MachineNote::Text { text },
            StoredNote::Note(note) => note,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use serde_json::json;

    #[test]
    fn notes_carry_their_kind_and_those_of_earlier_versions_are_text() {
        let mut machine = serde_json::to_value(Machine::from_shape("2x2").unwrap()).unwrap();
        machine["notes"] = json!([
            "1 L3 left out of the tree",
            { "kind": "distances_incomplete" },
            {
                "kind": "crossing", "domains": 2, "left_out": "l3", "cpus": "2-5",
                "kept": "package", "kept_cpus": "0-2"
            },
        ]);
        let read: Machine = serde_json::from_value(machine.clone()).unwrap();
        let crossing = MachineNote::Crossing {
            domains: 2,
            left_out: DomainKind::L3,
            cpus: "2-5".parse().unwrap(),
            kept: DomainKind::Package,
            kept_cpus: "0-2".parse().unwrap(),
        };
        let text = MachineNote::Text { text: "1 L3 left out of the tree".into() };
        assert_eq!(read.notes, [text, MachineNote::DistancesIncomplete, crossing]);
        machine["notes"][0] = json!({ "kind": "text", "text": "1 L3 left out of the tree" });
        assert_eq!(serde_json::to_value(&read).unwrap(), machine);
    }
}
