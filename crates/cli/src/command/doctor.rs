//! `pinwise doctor`.

use crate::output;
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use pinwise_hardware::doctor::{Check, examine};
use pinwise_present::one_line;
use serde::Serialize;

/// Say what this machine allows and what is missing, with the remedy for each lack.
///
/// Everything is tried, not guessed: events are opened, a thread is moved and put back, a fixed
/// piece of work is repeated for a second. Nothing is changed. The exit code is 0 whatever is
/// missing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  pinwise doctor
  pinwise doctor --json | jq '.checks[] | select(.ok | not) | .remedy'")]
pub(crate) struct Doctor {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    checks: Vec<Check>,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let machine = pinwise_linux::machine()?;
        // Nothing is changed that would have to be put back: Ctrl-C simply ends the process.
        let checks = examine(&machine, &|| false).unwrap_or_default();
        if self.json {
            return output::print_json(&Document { checks });
        }
        // A terminal fits what its 16 bits can tell.
        let columns = output::width().clamp(40, usize::from(u16::MAX)) as u16;
        output::print(&text(&one_line(&machine.name), &checks, columns))
    }
}

/// The checks as an aligned list, at most `columns` wide; each remedy below what it remedies.
fn text(machine: &str, checks: &[Check], columns: u16) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(columns);
    for check in checks {
        let detail = match &check.remedy {
            Some(remedy) => format!("{}\n-> {remedy}", check.detail),
            None => check.detail.clone(),
        };
        table.add_row([if check.ok { "ok" } else { "missing" }, check.name, &detail]);
    }
    let missing = checks.iter().filter(|check| !check.ok).count();
    format!(
        "{machine}\n\n{}\n\n{missing} of {} checks found something missing or harmful\n",
        table.trim_fmt(),
        checks.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_aligned_and_fits_eighty_columns() {
        let check = |name, ok, detail: &str, remedy: Option<&str>| Check {
            name,
            ok,
            detail: detail.into(),
            remedy: remedy.map(str::to_owned),
        };
        let checks = [
            check(
                "setting affinity",
                true,
                "a thread of this process was moved and put back",
                None,
            ),
            check(
                "hardware counters",
                false,
                "this processor shows no counters (ENOENT): usual in virtual machines",
                Some(
                    "give the virtual machine a PMU (QEMU: -cpu host,pmu=on), or use real hardware; placing needs none",
                ),
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

1 of 2 checks found something missing or harmful
";
        assert_eq!(text("A machine", &checks, 80), expected);
    }
}
