//! Who probably changed the affinity of a thread, if it was not pinwise.

use crate::control_group::cpuset_of;
use crate::process;
use crate::thread::{Pid, Stat};
use pinwise_measure::Pinner;
use pinwise_topology::CpuSet;

/// Services that set the affinities of other programs' threads. `irqbalance` moves interrupts only.
const SERVICES: [&str; 4] = ["numad", "tuned", "cgrulesengd", "gamemoded"];

/// What probably moved threads of the process `pid`, whose cpuset was `before`. A change of the
/// cpuset explains most.
pub fn likely_pinner(pid: Pid, before: &CpuSet) -> Pinner {
    if cpuset_of(pid) != *before {
        return Pinner::Cpuset;
    }
    let running = process::all().unwrap_or_default().into_iter();
    let names = running.filter_map(|pid| Some((Stat::read(pid, pid.main()).ok()?.comm, pid.0)));
    service(names)
}

/// The first service among these programs.
fn service(mut names: impl Iterator<Item = (String, i32)>) -> Pinner {
    let found = names.find(|(name, _)| SERVICES.contains(&name.as_str()));
    found.map_or(Pinner::Unknown, |(name, pid)| Pinner::Program { name, pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_pins_is_named_unless_the_cpuset_changed() {
        let names = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| name.to_string()).zip(70..).collect();
            service(names.into_iter())
        };
        assert_eq!(names(&["irqbalance", "redis-server"]), Pinner::Unknown);
        let numad = Pinner::Program { name: "numad".into(), pid: 71 };
        assert_eq!(names(&["irqbalance", "numad"]), numad);
        let this = Pid(std::process::id() as i32);
        assert_eq!(likely_pinner(this, &CpuSet::new()), Pinner::Cpuset);
        assert_ne!(likely_pinner(this, &cpuset_of(this)), Pinner::Cpuset);
    }
}
