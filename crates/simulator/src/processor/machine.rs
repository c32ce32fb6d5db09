//! The machine a processor is to the rest of pinwise: its tree of sharing domains and its caches.

use super::Processor;
use pinwise_topology::{Cache, CacheKind, CpuSet, DomainKind, Machine};

impl Processor {
    /// The tree of contexts and caches. Context number *i* is strand *i* in tree order, for the simulator too.
    pub fn machine(&self) -> Machine {
        let shape = format!(
            "package:1 l2:1 core:{} pipe:{} pu:{}",
            self.inter_core.cores, self.intra_core.pipes, self.intra_pipe.strands
        );
        // `check` allows at most 32 cores of 4 pipes of 8 strands: always a valid shape.
        let mut machine = Machine::from_shape(&shape).expect("a checked processor has a valid shape");
        machine.name.clone_from(&self.name);
        let cache = |level, kind, size_kib: u32, line, ways, cpus: &CpuSet| Cache {
            level,
            kind,
            size: Some(u64::from(size_kib) << 10),
            line: Some(line),
            ways: Some(ways),
            cpus: cpus.clone(),
        };
        let (l1d, l1i, l2) = (&self.intra_core.l1d, &self.intra_core.l1i, &self.inter_core.l2);
        let mut caches = vec![cache(2, CacheKind::Unified, l2.size_kib, l2.line, l2.ways, machine.online())];
        for core in machine.domains(DomainKind::Core) {
            caches.push(cache(1, CacheKind::Data, l1d.size_kib, l1d.line, l1d.ways, &core.cpus));
            caches.push(cache(1, CacheKind::Instruction, l1i.size_kib, l1i.line, l1i.ways, &core.cpus));
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        machine.caches = caches;
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_the_model_that_needs_no_simulator() {
        for name in Processor::MODELS {
            assert_eq!(Processor::model(name).unwrap().machine(), Machine::model(name).unwrap());
        }
    }
}
