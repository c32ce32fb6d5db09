//! Which contexts there are to place threads on.

use super::Check;
use pinwise_topology::{DomainKind, Machine};

/// Whether this process may use every online context.
pub(super) fn allowed(machine: &Machine) -> Check {
    const NAME: &str = "allowed contexts";
    let online = machine.online();
    let barred = online.difference(&machine.allowed);
    let tickless = match &machine.nohz_full {
        none if none.is_empty() => String::new(),
        cpus => format!("; nohz_full: {cpus}"),
    };
    if barred.is_empty() {
        let all = online.len();
        return Check::ok(NAME, format!("all {all} that are online ({online}){tickless}"));
    }
    let mut detail =
        format!("{} of {} online ({})", machine.allowed.len(), online.len(), machine.allowed);
    let isolated = barred.intersection(&machine.isolated);
    let barred = barred.difference(&isolated);
    let mut remedies = Vec::new();
    if !isolated.is_empty() {
        detail.push_str(&format!("; isolated (isolcpus=): {isolated}"));
        remedies.push(format!(
            "start programs for the isolated ones there (taskset -c {isolated} COMMAND), or boot \
             without isolcpus="
        ));
    }
    if !barred.is_empty() {
        detail.push_str(&format!("; barred: {barred}"));
        remedies.push(
            "widen cpuset.cpus of the cgroup (systemd: AllowedCPUs=), or start pinwise without \
             taskset"
                .into(),
        );
    }
    Check::warning(NAME, detail + &tickless, remedies.join("; "))
}

/// Whether contexts are offline.
pub(super) fn offline(machine: &Machine) -> Check {
    const NAME: &str = "offline contexts";
    let Some(first) = machine.offline.first() else { return Check::ok(NAME, "none") };
    Check::warning(
        NAME,
        format!("{} ({})", machine.offline.len(), machine.offline),
        format!(
            "echo 1 | sudo tee /sys/devices/system/cpu/cpu{}/online (and so on), if they are to be \
             used",
            first.0
        ),
    )
}

/// How many contexts share a core, and whether the kernel has SMT switched on.
pub(super) fn smt(machine: &Machine) -> Check {
    let control = super::read("/sys/devices/system/cpu/smt/control");
    judge_smt(contexts_per_core(machine), control.as_deref())
}

fn judge_smt(per_core: usize, control: Option<&str>) -> Check {
    const NAME: &str = "SMT";
    match (per_core, control) {
        (2.., _) => Check::ok(NAME, format!("active, up to {per_core} contexts per core")),
        (_, Some("off")) => Check::warning(
            NAME,
            "switched off: one context per core",
            "echo on | sudo tee /sys/devices/system/cpu/smt/control, if siblings are to be used",
        ),
        (_, Some("forceoff")) => {
            Check::ok(NAME, "switched off at boot (nosmt): one context per core")
        }
        _ => Check::ok(NAME, "not present: one context per core"),
    }
}

/// The most contexts that any core has.
fn contexts_per_core(machine: &Machine) -> usize {
    machine.domains(DomainKind::Core).map(|core| core.cpus.len()).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::CpuSet;

    fn shape(text: &str) -> Machine {
        Machine::from_shape(text).unwrap()
    }

    #[test]
    fn a_machine_of_which_all_may_be_used_lacks_nothing() {
        let machine = shape("2x2x2");
        assert_eq!(allowed(&machine), Check::ok("allowed contexts", "all 8 that are online (0-7)"));
        assert_eq!(offline(&machine), Check::ok("offline contexts", "none"));
        assert_eq!(contexts_per_core(&machine), 2);
    }

    #[test]
    fn barred_and_offline_contexts_are_named() {
        let mut machine = shape("2x2x2");
        machine.allowed = CpuSet::parse_list("0-3").unwrap();
        machine.offline = CpuSet::parse_list("8,9").unwrap();
        let check = allowed(&machine);
        assert!(!check.is_ok() && check.detail == "4 of 8 online (0-3); barred: 4-7", "{check:?}");
        machine.isolated = CpuSet::parse_list("6,7").unwrap();
        machine.nohz_full = CpuSet::parse_list("7").unwrap();
        let check = allowed(&machine);
        assert_eq!(
            check.detail,
            "4 of 8 online (0-3); isolated (isolcpus=): 6,7; barred: 4,5; nohz_full: 7"
        );
        machine.isolated = CpuSet::parse_list("4-7").unwrap();
        let remedy = allowed(&machine).remedy.unwrap();
        assert!(remedy.contains("isolcpus=") && !remedy.contains("cpuset.cpus"), "{remedy}");
        let check = offline(&machine);
        assert!(
            !check.is_ok()
                && check.remedy.as_deref().is_some_and(|remedy| remedy.contains("cpu8/online")),
            "{check:?}"
        );
    }

    #[test]
    fn smt_that_is_switched_off_can_be_switched_on() {
        assert!(judge_smt(2, Some("on")).is_ok());
        assert!(judge_smt(1, Some("notsupported")).is_ok());
        assert!(judge_smt(1, None).is_ok());
        assert!(!judge_smt(1, Some("off")).is_ok());
    }
}
