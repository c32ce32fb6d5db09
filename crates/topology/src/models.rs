//! Built-in models: processors of the literature, described by hand.

use crate::{Cache, CacheKind, CpuId, CpuSet, Domain, DomainKind, Machine, MachineError, shape};

impl Machine {
    /// The names [`Machine::model`] knows.
    pub const MODELS: &[&str] = &["ultrasparc-t2", "opteron-24"];

    /// A built-in model. Error: a name not in [`Machine::MODELS`].
    pub fn model(name: &str) -> Result<Self, MachineError> {
        match name {
            "ultrasparc-t2" => Ok(ultrasparc_t2()),
            "opteron-24" => Ok(opteron_24()),
            _ => Err(MachineError::malformed(
                format!("model '{name}'"),
                format!("unknown; built in: {}", Self::MODELS.join(", ")),
            )),
        }
    }
}

/// Sun UltraSPARC T2: 8 cores of 2 pipes of 4 strands. The strands of a pipe share its instruction
/// fetch and integer unit. Those of a core share its load/store unit, floating point unit and
/// first-level caches. All share the second-level cache of 4 MB. Sources: OpenSPARC T2 Core
/// Microarchitecture Specification, 2007; V. Čakarević et al., MICRO 2009, section 2.
fn ultrasparc_t2() -> Machine {
    let levels = [(DomainKind::Core, 8), (DomainKind::Pipe, 2), (DomainKind::Pu, 4)];
    let mut next = 0;
    let cores = shape::build(&levels, &mut [0; 3], &mut next);
    let all: CpuSet = (0..next).map(CpuId).collect();
    let inside = |kind, children| Domain { kind, os_index: Some(0), cpus: all.clone(), children };
    let package = inside(DomainKind::Package, vec![inside(DomainKind::L2, cores)]);
    let root = Domain {
        kind: DomainKind::Machine,
        os_index: None,
        cpus: all.clone(),
        children: vec![package],
    };
    let mut machine = Machine::synthetic("ultrasparc-t2".into(), root);
    let cache = |level, kind, size, line, ways, cpus: &CpuSet| Cache {
        level,
        kind,
        size: Some(size),
        line: Some(line),
        ways: Some(ways),
        cpus: cpus.clone(),
    };
    let mut caches = vec![cache(2, CacheKind::Unified, 4 << 20, 64, 16, &all)];
    for core in machine.domains(DomainKind::Core) {
        caches.push(cache(1, CacheKind::Data, 8 << 10, 16, 4, &core.cpus));
        caches.push(cache(1, CacheKind::Instruction, 16 << 10, 32, 8, &core.cpus));
    }
    machine.caches = caches;
    machine.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    machine
}

/// Dell PowerEdge R905 with four AMD Opteron 8431: 24 cores of one context. First and second level
/// are private to a core, the third is shared by the six of a package (K. K. Pusukuri et al.,
/// "Thread Reinforcer", IISWC 2011, Table I), each with its own memory.
fn opteron_24() -> Machine {
    let levels = [
        (DomainKind::Package, 4),
        (DomainKind::Numa, 1),
        (DomainKind::L3, 1),
        (DomainKind::Core, 6),
        (DomainKind::Pu, 1),
    ];
    let mut next = 0;
    let packages = shape::build(&levels, &mut [0; 5], &mut next);
    let cpus: CpuSet = (0..next).map(CpuId).collect();
    let root = Domain { kind: DomainKind::Machine, os_index: None, cpus, children: packages };
    let mut machine = Machine::synthetic("opteron-24".into(), root);
    let cache = |level, kind, size, ways, cpus: &CpuSet| Cache {
        level,
        kind,
        size: Some(size),
        line: Some(64),
        ways: Some(ways),
        cpus: cpus.clone(),
    };
    let mut caches = Vec::new();
    for core in machine.domains(DomainKind::Core) {
        caches.push(cache(1, CacheKind::Data, 64 << 10, 2, &core.cpus));
        caches.push(cache(1, CacheKind::Instruction, 64 << 10, 2, &core.cpus));
        caches.push(cache(2, CacheKind::Unified, 512 << 10, 16, &core.cpus));
    }
    for package in machine.domains(DomainKind::Package) {
        caches.push(cache(3, CacheKind::Unified, 6 << 20, 48, &package.cpus));
    }
    machine.caches = caches;
    machine.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t2_has_64_strands_in_8_cores_of_2_pipes() {
        let machine = Machine::model("ultrasparc-t2").unwrap();
        assert_eq!(machine.contexts.len(), 64);
        assert_eq!(machine.domains(DomainKind::Core).count(), 8);
        assert_eq!(machine.domains(DomainKind::Pipe).count(), 16);
        assert_eq!(machine.data_caches(1).count(), 8);
        // 8 banks x 512 sets x 16 ways x 64 bytes
        assert_eq!(machine.data_caches(2).next().unwrap().size, Some(8 * 512 * 16 * 64));
    }

    #[test]
    fn the_opteron_has_24_cores_in_4_packages_with_a_cache_each() {
        let machine = Machine::model("opteron-24").unwrap();
        assert_eq!(machine.contexts.len(), 24);
        assert_eq!(machine.domains(DomainKind::Core).count(), 24);
        assert_eq!((machine.data_caches(3).count(), machine.numa.len()), (4, 4));
        assert!(machine.data_caches(3).all(|cache| cache.cpus.iter().count() == 6));
    }

    #[test]
    fn every_listed_model_exists_and_others_do_not() {
        assert!(Machine::MODELS.iter().all(|name| Machine::model(name).is_ok()));
        assert!(Machine::model("pdp-11").unwrap_err().to_string().contains("ultrasparc-t2"));
    }
}
