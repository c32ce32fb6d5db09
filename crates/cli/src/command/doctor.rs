//! `pinwise doctor`: what this machine allows and lacks, with remedies.

use crate::output;
use clap::Args;
use comfy_table::{Table, presets};
use pinwise_hardware::doctor::{Finding, FindingState, examine};
use pinwise_present::{figures, finding, finding_remedy, one_line};
use serde::Serialize;

/// Check what this machine allows, and say what to do
///
/// doctor tries everything and guesses nothing. It opens events, moves a thread and puts it back,
/// and repeats the same calculation for a second. It changes nothing. The exit code is always 0.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pinwise doctor
  pinwise doctor --json | jq '.checks[] | select(.ok | not) | .remedy'")]
pub(crate) struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DoctorJson {
    checks: Vec<CheckJson>,
}

/// A check as JSON has it: the kind of the finding and its values, and these in words.
#[derive(Serialize)]
struct CheckJson {
    name: &'static str,
    ok: bool,
    state: FindingState,
    detail: String,
    remedy: Option<String>,
    #[serde(flatten)]
    finding: Finding,
}

impl From<Finding> for CheckJson {
    fn from(found: Finding) -> Self {
        Self {
            name: found.name(),
            ok: found.is_ok(),
            state: found.state(),
            detail: finding(&found),
            remedy: finding_remedy(&found),
            finding: found,
        }
    }
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let machine = pinwise_linux::this_machine()?;
        // Nothing is changed that would have to be put back: Ctrl-C simply ends the process.
        let findings = examine(&machine, &|| false).unwrap_or_default();
        if self.json {
            let checks = findings.into_iter().map(CheckJson::from).collect();
            return output::print_json(&DoctorJson { checks });
        }
        let contexts = machine.allowed.len();
        output::print(&text(&one_line(&machine.name), contexts, &findings, output::width()))
    }
}

/// Whether placing works on a machine of so many allowed `contexts`.
fn placing(contexts: usize, findings: &[Finding]) -> &'static str {
    let refused = |found: &Finding| matches!(found, Finding::AffinityRefused { .. });
    match contexts {
        _ if findings.iter().any(refused) => "placing does not work here: see setting affinity",
        1 => "placing has nothing to choose here: one context is allowed",
        _ => "placing works here",
    }
}

/// Whether placing works and how many findings are right, then all, those that are not first. The
/// list is aligned and at most `columns` wide; each remedy is below what it remedies.
fn text(machine: &str, contexts: usize, findings: &[Finding], columns: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let (right, wrong): (Vec<_>, Vec<_>) = findings.iter().partition(|found| found.is_ok());
    for found in wrong.into_iter().chain(right) {
        let mut detail = finding(found);
        detail.extend(finding_remedy(found).map(|remedy| format!("\n-> {remedy}")));
        table.add_row([found.state().name(), found.name(), &detail]);
    }
    let count = |state| findings.iter().filter(|found| found.state() == state).count();
    let (warnings, missing) = (count(FindingState::Warning), count(FindingState::Missing));
    format!(
        "{machine}\n{}\n{} checks: {} ok, {}, {missing} missing\n\n{}",
        placing(contexts, findings),
        findings.len(),
        count(FindingState::Ok),
        figures::counted(warnings as u64, "warning"),
        output::fitted(table, columns, &[]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_hardware::doctor::CountedEvents;

    #[test]
    fn the_list_is_aligned_and_fits_eighty_columns() {
        let findings = [
            Finding::AffinitySettable,
            Finding::EventsAbsent { events: CountedEvents::Hardware },
            Finding::NumaBalancing { nodes: 2 },
        ];
        let expected = "\
A machine
placing works here
3 checks: 1 ok, 1 warning, 1 missing

 missing  hardware counters  this processor shows no counters (ENOENT): usual
                             in virtual machines
                             -> give the virtual machine a PMU (QEMU: -cpu
                             host,pmu=on), or use real hardware; placing needs
                             none
 warning  NUMA balancing     on, 2 nodes: for seconds after each change, the
                             kernel moves memory to follow threads
                             -> sudo sysctl kernel.numa_balancing=0 while
                             measuring
 ok       setting affinity   a thread of this process was moved and put back
";
        assert_eq!(text("A machine", 8, &findings, 80), expected);
    }

    #[test]
    fn it_says_whether_placing_works() {
        let refused = [Finding::AffinityRefused { error: "EPERM".to_owned() }];
        assert!(placing(8, &refused).starts_with("placing does not work"));
        assert!(placing(1, &[Finding::AffinitySettable]).starts_with("placing has nothing"));
        assert_eq!(placing(2, &[Finding::AffinitySettable]), "placing works here");
    }
}
