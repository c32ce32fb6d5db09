//! The machine a processor is to the rest of pinwise: its tree of sharing domains and its caches.

use super::Processor;
use pinwise_topology::{Cache, CacheKind, CpuSet, DomainKind, Machine, digest};

impl Processor {
    /// What tells it from any other processor, also from one of the same name: the name of a built-in model, else the name and a digest of all that
    /// is described.
    pub fn identity(&self) -> String {
        if Self::model(&self.name).as_ref() == Ok(self) {
            return self.name.clone();
        }
        format!("{} ({})", self.name, &digest(&format!("{self:?}"))[..8])
    }

    /// The tree of contexts and caches, under the name of [`Processor::identity`]. Context number *i* is strand *i* in tree order, for the simulator too.
    pub fn machine(&self) -> Machine {
        let shape = format!(
            "package:1 l2:1 core:{} pipe:{} pu:{}",
            self.inter_core.cores, self.intra_core.pipes, self.intra_pipe.strands
        );
        // `check` allows at most 32 cores of 4 pipes of 8 strands: always a valid shape.
        let mut machine = Machine::from_shape(&shape).expect("a checked processor has a valid shape");
        machine.name = self.identity();
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
    fn two_descriptions_of_one_name_are_two_machines() {
        let built_in = Processor::model("ultrasparc-t2").unwrap();
        let text = Processor::description("ultrasparc-t2").unwrap();
        let commented = Processor::parse(&format!("# mine\n{text}")).unwrap();
        assert_eq!(commented.machine(), built_in.machine(), "what is described is the same");
        let slower = |cycles: &str| Processor::parse(&text.replacen("latency = 195", cycles, 1)).unwrap().machine();
        let (one, two) = (slower("latency = 196"), slower("latency = 197"));
        assert!(one.name.starts_with("ultrasparc-t2 (") && one.name != two.name, "{} {}", one.name, two.name);
        assert_eq!(one.name, slower("latency = 196").name);
    }

    #[test]
    fn the_machine_is_the_model_that_needs_no_simulator() {
        for name in Processor::MODELS {
            assert_eq!(Processor::model(name).unwrap().machine(), Machine::model(name).unwrap());
        }
    }
}
