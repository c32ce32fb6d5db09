//! `pinwise doctor`.

use crate::output;
use clap::Args;
use comfy_table::{Table, presets};
use pinwise_hardware::doctor::{Check, State, examine};
use pinwise_present::{figures, one_line};
use serde::Serialize;

/// Check what this machine allows, and say what to do
///
/// doctor tries everything and guesses nothing. It opens events, moves a thread and puts it back,
/// and repeats a fixed piece of work for a second. It changes nothing. The exit code is always 0.
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

/// A check as JSON has it.
#[derive(Serialize)]
struct CheckJson {
    name: &'static str,
    ok: bool,
    state: State,
    detail: String,
    remedy: Option<String>,
}

impl From<Check> for CheckJson {
    fn from(check: Check) -> Self {
        let ok = check.is_ok();
        let Check { name, state, detail, remedy } = check;
        Self { name, ok, state, detail, remedy }
    }
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let machine = pinwise_linux::this_machine()?;
        // Nothing is changed that would have to be put back: Ctrl-C simply ends the process.
        let checks = examine(&machine, &|| false).unwrap_or_default();
        if self.json {
            let checks = checks.into_iter().map(CheckJson::from).collect();
            return output::print_json(&DoctorJson { checks });
        }
        output::print(&text(&one_line(&machine.name), &checks, output::width()))
    }
}

/// The checks as an aligned list, at most `columns` wide; each remedy below what it remedies.
fn text(machine: &str, checks: &[Check], columns: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for check in checks {
        let detail = match &check.remedy {
            Some(remedy) => format!("{}\n-> {remedy}", check.detail),
            None => check.detail.clone(),
        };
        table.add_row([check.state.name(), check.name, &detail]);
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (warnings, missing) = (count(State::Warning), count(State::Missing));
    format!(
        "{machine}\n\n{}\n{} checks: {} ok, {} and {missing} missing\n",
        output::fitted(table, columns, &[]),
        checks.len(),
        count(State::Ok),
        figures::counted(warnings as u64, "warning"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_aligned_and_fits_eighty_columns() {
        let check = |name, state, detail: &str, remedy: Option<&str>| Check {
            name,
            state,
            detail: detail.into(),
            remedy: remedy.map(str::to_owned),
        };
        let checks = [
            check(
                "setting affinity",
                State::Ok,
                "a thread of this process was moved and put back",
                None,
            ),
            check(
                "hardware counters",
                State::Missing,
                "this processor shows no counters (ENOENT): usual in virtual machines",
                Some(
                    "give the virtual machine a PMU (QEMU: -cpu host,pmu=on), or use real \
                     hardware; placing needs none",
                ),
            ),
            check(
                "load",
                State::Warning,
                "2.84 runnable threads over the last minute",
                Some("stop other programs"),
            ),
        ];
        let expected = "\
A machine

 ok       setting affinity   a thread of this process was moved and put back
 missing  hardware counters  this processor shows no counters (ENOENT): usual
                             in virtual machines
                             -> give the virtual machine a PMU (QEMU: -cpu
                             host,pmu=on), or use real hardware; placing needs
                             none
 warning  load               2.84 runnable threads over the last minute
                             -> stop other programs

3 checks: 1 ok, 1 warning and 1 missing
";
        assert_eq!(text("A machine", &checks, 80), expected);
    }
}
