//! `pinwise export`: a plan in the syntax of other tools.

use crate::output;
use crate::plan::{self, PlanArgument};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use pinwise_placement::{FORMATS, Format};
use pinwise_present::{export_note, tagged_export_notes};
use serde::Serialize;
use serde_json::Value;

/// Convert a plan to the pinning syntax of another tool
///
/// Notes on stderr say what the syntax cannot express. A plan that it cannot express at all is
/// refused with the reason. docs/reference/exports.md says how each format was checked.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pinwise export plan.toml --to script > pin.sh         then: sh pin.sh PID\n  \
    eval \"$(pinwise export plan.toml --to openmp)\"        then run the OpenMP program\n  \
    $(pinwise export plan.toml --to taskset) pigz file    a prefix of a command\n  \
    pinwise export plan.toml --to dpdk                    --lcores of a DPDK program")]
pub(crate) struct Export {
    #[command(flatten)]
    plan: PlanArgument,
    /// Choose the format
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: String,
    /// Print one JSON document, with the notes
    #[arg(long)]
    json: bool,
}

/// The JSON document.
#[derive(Serialize)]
struct ExportJson<'a> {
    format: &'a str,
    text: &'a str,
    notes: Vec<Value>,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(
        FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about)),
    )
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let plan = self.plan.load()?;
        // The parser of --to knows the same names.
        let Some(format) = Format::find(&self.to) else {
            anyhow::bail!("unknown format {}", self.to)
        };
        let export = format.export(&plan)?;
        plan::note_lacking(&plan);
        if self.json {
            return output::print_json(&ExportJson {
                format: format.name,
                text: &export.text,
                notes: tagged_export_notes(&export.notes),
            });
        }
        for note in &export.notes {
            output::aside(&format!("note: {}", export_note(note)));
        }
        output::print_data(&export.text)
    }
}
