//! `pinwise report characterization`: the stored characterization of a machine.

use crate::machine::Simulated;
use crate::output::{self, Usage};
use crate::page_file::free;
use crate::store::StoreArguments;
use clap::Args;
use pinwise_characterization::StoredCharacterization;
use pinwise_present::figures::{counted, date};
use pinwise_present::{Files, quoted};
use pinwise_report::{characterization_mark, characterization_page};
use pinwise_topology::Fingerprint;
use serde::Serialize;
use std::path::PathBuf;

/// Write the result of characterize as one HTML page, with a heat map for each sharing level
///
/// The page shows the latest complete characterization of a machine in the store. If there is none,
/// it shows the latest excerpt (some benchmarks, some stressors, or a busy machine) and says so.
/// `pinwise characterize --html` writes the same page while it measures.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise report characterization --html page.html            of this machine
  pinwise report characterization --machine ultrasparc-t2     of a model")]
pub(super) struct OfMachine {
    /// Show host, a model, or the processor that a file NAME.toml describes
    #[arg(long, value_name = "MACHINE", default_value = "host", value_parser = Simulated)]
    machine: String,
    #[command(flatten)]
    store: StoreArguments,
    /// Write to FILE [default: pinwise-characterization.html in this directory, or
    /// pinwise-characterization-2.html if that belongs to another machine]
    #[arg(short, long, visible_alias = "html", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Serialize)]
struct MachineReportJson {
    /// The number of the characterization, as `pinwise characterize --json` has it.
    id: i64,
    machine: String,
    /// When it was kept, seconds since the Unix epoch.
    kept: i64,
    excerpt: bool,
    file: PathBuf,
    bytes: usize,
}

impl OfMachine {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let fingerprint = match self.machine.as_str() {
            "host" => Fingerprint::of(&pinwise_linux::this_machine()?),
            name => Fingerprint::of(
                &Simulated::named(name, "report characterization")?.processor()?.machine(),
            ),
        };
        let store = self.store.open_existing()?;
        let kept = store
            .map(|store| StoredCharacterization::latest(&store, &fingerprint))
            .transpose()?
            .flatten();
        let kept = kept.ok_or_else(|| self.nothing(&fingerprint))?;
        let page = characterization_page(&kept)?;
        let mark = characterization_mark(&fingerprint);
        let usual = || free("pinwise-characterization", &mark);
        let file = output::write_page(self.output, usual, &page)?;
        let (found, excerpt) = (kept.characterization, kept.excerpt.is_some());
        if self.json {
            let (id, kept, bytes) = (kept.id, kept.at, page.len());
            return output::print_json(&MachineReportJson {
                id,
                machine: found.machine,
                kept,
                excerpt,
                file,
                bytes,
            });
        }
        output::print(&format!(
            "{}: {}, {}{} with {}, {} kB\n",
            file.display(),
            found.machine,
            if excerpt { "an excerpt of " } else { "characterized " },
            date(kept.at),
            counted(found.slowdowns.len() as u64, "slowdown"),
            page.len() / 1000
        ))
    }

    /// The error that there is nothing to write, with the command that changes this.
    fn nothing(&self, fingerprint: &Fingerprint) -> anyhow::Error {
        let path = match self.store.path() {
            Ok(path) => path,
            Err(error) => return error,
        };
        let machine = if self.machine == "host" {
            String::new()
        } else {
            format!(" --machine {}", quoted(&self.machine))
        };
        let flag = Files::of_store(self.store.named()).flag();
        Usage(format!(
            "{} has no characterization of {} that this version can read; run pinwise \
             characterize{machine}{flag}",
            path.display(),
            fingerprint.model
        ))
        .into()
    }
}
