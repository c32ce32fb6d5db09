//! The machine a processor is to the rest of pinwise: its tree of sharing domains and its caches.

use super::Processor;
use pinwise_topology::{Cache, CacheKind, CpuSet, DomainKind, Machine, digest};

impl Processor {
    /// What distinguishes it from every other processor, also from one of the same name. It is the
    /// name of a built-in model, else the name and a digest of the description. It is kept in
    /// stores and plans: of the same description it stays the same.
    pub fn identity(&self) -> String {
        if Self::model(&self.name).as_ref() == Ok(self) {
            return self.name.clone();
        }
        format!("{} ({})", self.name, &digest(&self.described())[..8])
    }

    /// Every value by its key in a description, a line each in the order of keys. The order,
    /// notation and comments of the file do not matter.
    fn described(&self) -> String {
        fn lines(key: &str, value: &toml::Value, into: &mut Vec<String>) {
            match value {
                toml::Value::Table(table) => {
                    let dot = if key.is_empty() { "" } else { "." };
                    table
                        .iter()
                        .for_each(|(name, value)| lines(&format!("{key}{dot}{name}"), value, into));
                }
                value => into.push(format!("{key} = {value}\n")),
            }
        }
        // Numbers, names and tables of these: TOML has all of them.
        let value =
            toml::Value::try_from(self).unwrap_or_else(|_| toml::Value::String(self.name.clone()));
        let mut all = Vec::new();
        lines("", &value, &mut all);
        all.sort_unstable();
        all.concat()
    }

    /// The tree of contexts and caches, under the name of [`Processor::identity`]. Context number
    /// *i* is strand *i* in tree order, for the simulator too.
    pub fn machine(&self) -> Machine {
        let shape = format!(
            "package:1 l2:1 core:{} pipe:{} pu:{}",
            self.inter_core.cores, self.intra_core.pipes, self.intra_pipe.strands
        );
        // `check` allows at most 32 cores of 4 pipes of 8 strands: always a valid shape.
        let mut machine =
            Machine::from_shape(&shape).expect("a checked processor has a valid shape");
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
        let mut caches =
            vec![cache(2, CacheKind::Unified, l2.size_kib, l2.line, l2.ways, machine.online())];
        for core in machine.domains(DomainKind::Core) {
            caches.push(cache(1, CacheKind::Data, l1d.size_kib, l1d.line, l1d.ways, &core.cpus));
            caches.push(cache(
                1,
                CacheKind::Instruction,
                l1i.size_kib,
                l1i.line,
                l1i.ways,
                &core.cpus,
            ));
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        machine.caches = caches;
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores and plans hold it: another digest of the same description would make strangers of
    /// them. Where a field is added, one is added here.
    #[test]
    fn the_identity_of_a_description_stays() {
        let text = Processor::description("ultrasparc-t2").unwrap();
        let mine = Processor::parse(&text.replacen("latency = 195", "latency = 196", 1)).unwrap();
        assert_eq!(mine.identity(), "ultrasparc-t2 (d55ca0f6)");
        let described = mine.described();
        assert_eq!(described.lines().count(), 40, "{described}");
        assert!(
            described.lines().any(|line| line == "inter-core.memory.latency = 196"),
            "{described}"
        );
        assert!(described.lines().is_sorted(), "{described}");
    }

    #[test]
    fn two_descriptions_of_one_name_are_two_machines() {
        let built_in = Processor::model("ultrasparc-t2").unwrap();
        let text = Processor::description("ultrasparc-t2").unwrap();
        let commented = Processor::parse(&format!("# mine\n{text}")).unwrap();
        assert_eq!(commented.machine(), built_in.machine(), "what is described is the same");
        let slower = |cycles: &str| {
            Processor::parse(&text.replacen("latency = 195", cycles, 1)).unwrap().machine()
        };
        let (one, two) = (slower("latency = 196"), slower("latency = 197"));
        assert!(
            one.name.starts_with("ultrasparc-t2 (") && one.name != two.name,
            "{} {}",
            one.name,
            two.name
        );
        assert_eq!(one.name, slower("latency = 196").name);
    }

    #[test]
    fn the_machine_is_the_model_that_needs_no_simulator() {
        for name in Processor::MODELS {
            assert_eq!(Processor::model(name).unwrap().machine(), Machine::model(name).unwrap());
        }
    }
}
