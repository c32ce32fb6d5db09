//! The notes on the description of a machine as text.

use crate::note::tagged;
use pinwise_topology::MachineNote;
use serde_json::Value;

/// A note as text that begins small and has no full stop.
pub fn machine_note(note: &MachineNote) -> String {
    match note {
        MachineNote::Crossing { domains, left_out, cpus, kept, kept_cpus } => {
            let (left_out, kept) = (left_out.name(), kept.name());
            format!(
                "{domains} {left_out} left out of the tree for crossing {kept}: {left_out} of \
                 CPUs {cpus}, {kept} of CPUs {kept_cpus}"
            )
        }
        MachineNote::DistancesIncomplete => {
            "NUMA distances left out: the rows do not have one number per node".to_owned()
        }
        MachineNote::DistancesForeign => {
            "NUMA distances left out: they are not between the nodes of this topology".to_owned()
        }
        MachineNote::Text { text } => text.clone(),
    }
}

/// Notes, each with its kind, values and text.
pub fn tagged_machine_notes(notes: &[MachineNote]) -> Vec<Value> {
    notes.iter().map(|note| tagged(note, machine_note(note))).collect()
}
