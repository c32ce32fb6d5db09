//! Which contexts there are to place threads on.

use super::Finding;
use pinwise_topology::{DomainKind, Machine};

/// Whether this process may use every online context.
pub(super) fn allowed(machine: &Machine) -> Finding {
    let (online, allowed) = (machine.online().clone(), machine.allowed.clone());
    let (nohz_full, exclusive) = (machine.nohz_full.clone(), machine.exclusive.clone());
    let barred = online.difference(&allowed);
    if barred.is_empty() {
        return Finding::ContextsAllowed { online, nohz_full, exclusive };
    }
    let isolated = barred.intersection(&machine.isolated);
    Finding::ContextsBarred { online, allowed, isolated, nohz_full, exclusive }
}

/// Whether contexts are offline.
pub(super) fn offline(machine: &Machine) -> Finding {
    match machine.offline.is_empty() {
        true => Finding::NoneOffline,
        false => Finding::ContextsOffline { offline: machine.offline.clone() },
    }
}

/// How many contexts share a core, and whether the kernel has SMT switched on.
pub(super) fn smt(machine: &Machine) -> Finding {
    let control = super::read("/sys/devices/system/cpu/smt/control");
    judge_smt(contexts_per_core(machine), control.as_deref())
}

fn judge_smt(contexts_per_core: usize, control: Option<&str>) -> Finding {
    match (contexts_per_core, control) {
        (2.., _) => Finding::Smt { contexts_per_core },
        (_, Some("off")) => Finding::SmtOff,
        (_, Some("forceoff")) => Finding::SmtOffAtBoot,
        _ => Finding::NoSmt,
    }
}

/// The most contexts that any core has.
fn contexts_per_core(machine: &Machine) -> usize {
    machine.domains(DomainKind::Core).map(|core| core.cpus.len()).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{CpuSet, ExclusiveCpus};

    fn shape(text: &str) -> Machine {
        Machine::from_shape(text).unwrap()
    }

    #[test]
    fn a_machine_of_which_all_may_be_used_lacks_nothing() {
        let machine = shape("2x2x2");
        assert!(matches!(allowed(&machine), Finding::ContextsAllowed { .. }));
        assert_eq!(offline(&machine), Finding::NoneOffline);
        assert_eq!(contexts_per_core(&machine), 2);
    }

    #[test]
    fn barred_and_offline_contexts_are_named() {
        let set = |list| CpuSet::parse_list(list).unwrap();
        let mut machine = shape("2x2x2");
        machine.allowed = set("0-3");
        machine.offline = set("8,9");
        machine.isolated = set("2,6,7");
        machine.nohz_full = set("7");
        machine.exclusive = vec![ExclusiveCpus { group: "/a".into(), cpus: set("4,5") }];
        let barred = Finding::ContextsBarred {
            online: set("0-7"),
            allowed: set("0-3"),
            isolated: set("6,7"),
            nohz_full: set("7"),
            exclusive: machine.exclusive.clone(),
        };
        assert_eq!(allowed(&machine), barred);
        let finding = offline(&machine);
        assert_eq!(finding, Finding::ContextsOffline { offline: set("8,9") });
        assert!(!barred.is_ok() && !finding.is_ok());
    }

    #[test]
    fn smt_that_is_switched_off_can_be_switched_on() {
        assert!(judge_smt(2, Some("on")).is_ok());
        assert!(judge_smt(1, Some("notsupported")).is_ok());
        assert!(judge_smt(1, None).is_ok());
        assert_eq!(judge_smt(1, Some("off")), Finding::SmtOff);
        assert_eq!(judge_smt(1, Some("forceoff")), Finding::SmtOffAtBoot);
        assert!(!Finding::SmtOff.is_ok());
    }
}
