//! `pinwise paths`: which paths a program takes, from sampled branch records.

mod document;
mod record;
mod text;

use crate::output::{self, Usage};
use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use document::PathsJson;
use pinwise_jobs::{PathsError, PathsRequest, profile_paths};
use pinwise_paths::{
    Addressing, PathMethod, RecordedProfile, autofdo_text, folded_text, preaggregated_text,
};
use pinwise_present::recorded_name;
use pinwise_report::paths_page;
use record::PathsRecord;
use std::path::PathBuf;

/// Paths that the terminal and the page show.
const TOP: usize = 20;

/// Find the hot paths of a program from a recording of its branches
///
/// A path leads through one function. It begins at the entry or a loop head. It ends at the exit or
/// with a loop iteration. The recording has the processor's branch records. FILE is perf.data, the
/// text of `perf script -F ip,brstack`, or BOLT's pre-aggregated text. The control-flow graph comes
/// from the binary, an ELF file of x86-64 or AArch64. docs/guide/paths.md explains recording,
/// groups and limits.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  pinwise paths record -- ./app                     writes perf.data
  pinwise paths perf.data                           the hot paths
  pinwise paths perf.data --binary ./app            of one binary, which is here
  pinwise paths perf.data --annotate                with the code of the hottest functions
  pinwise paths perf.data --to folded > app.folded  for a flame graph
  perf script --show-mmap-events -F pid,ip,brstack | pinwise paths -"
)]
pub(crate) struct Paths {
    #[command(subcommand)]
    record: Option<PathsCommand>,
    /// The recording. `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Read this binary only, from FILE. Repeat for several [default: all that the recording names]
    #[arg(long = "binary", value_name = "FILE")]
    binaries: Vec<PathBuf>,
    /// Choose how samples become paths
    #[arg(long, value_name = "METHOD", default_value = "likelihood", value_parser = methods())]
    method: PathMethod,
    /// Show N paths [default: 20; all in JSON and with `--to folded`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Also print the code of the three hottest functions, with the share of each block
    #[arg(long, conflicts_with_all = ["to", "json"])]
    annotate: bool,
    /// Also write a page with the graphs of the hottest functions to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    html: Option<PathBuf>,
    /// Print nothing but a file for another tool
    #[arg(long, value_name = "FORMAT", value_parser = formats(), conflicts_with = "json")]
    to: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Commands of `paths` that read no recording.
#[derive(Subcommand)]
enum PathsCommand {
    Record(PathsRecord),
}

fn methods() -> impl TypedValueParser<Value = PathMethod> {
    let likelihood = "the counts under which the samples are most likely";
    let expand = "the published method: it adds only blocks without an alternative";
    PossibleValuesParser::new([
        PossibleValue::new("likelihood").help(likelihood),
        PossibleValue::new("expand").help(expand),
    ])
    .map(|name| match name.as_str() {
        "expand" => PathMethod::Expand,
        _ => PathMethod::Likelihood,
    })
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("bolt").help("pre-aggregated text: perf2bolt -pa -p"),
        PossibleValue::new("autofdo").help("create_llvm_prof --profiler=text --profile"),
        PossibleValue::new("folded").help("stacks of paths: flamegraph.pl and the like"),
    ])
}

impl Paths {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(PathsCommand::Record(record)) = self.record {
            return record.run();
        }
        if let (Some(_), Some(format @ ("bolt" | "autofdo"))) = (self.top, self.to.as_deref()) {
            let why = format!("--to {format} writes branches, not paths: leave out --top");
            return Err(Usage(why).into());
        }
        if let Some(page) = &self.html {
            output::check(page)?;
        }
        // Without a subcommand clap requires it.
        let file = self.file.context("the recording is missing")?;
        let request = PathsRequest {
            recording: file.clone(),
            binaries: self.binaries.clone(),
            method: self.method,
        };
        let profile = profile_paths(&request).map_err(refused)?;
        let top = self.top.map(|top| top as usize);
        if let Some(format) = &self.to {
            return output::print_data(&exported(&profile, format, top)?);
        }
        let shown = file.display().to_string();
        if self.json {
            let shown = shown.clone();
            output::print_json(&PathsJson::new(shown, self.method, &profile, top))?;
        } else {
            let text = text::text(&profile, top.unwrap_or(TOP), self.annotate, output::width());
            output::print(&text)?;
        }
        match &self.html {
            Some(page) => {
                let html = paths_page(&shown, &profile, top.unwrap_or(TOP))?;
                output::write_page_after_answer(page, &html)
            }
            None => Ok(()),
        }
    }
}

/// The exit code of what went wrong: a wrong or missing file is bad usage.
fn refused(error: PathsError) -> anyhow::Error {
    match error {
        PathsError::Open { file, source } => {
            output::no_input(source).context(format!("cannot read {}", file.display()))
        }
        error => Usage(error.to_string()).into(),
    }
}

/// The text for another tool. It has one binary: the one with the most branches.
fn exported(profile: &RecordedProfile, format: &str, top: Option<usize>) -> anyhow::Result<String> {
    let read = profile.binaries.first();
    let unread = profile.unread.first();
    if format == "folded" {
        return match read {
            Some(_) => Ok(folded_text(profile.stacks().take(top.unwrap_or(usize::MAX)))),
            None => Err(Usage(pinwise_present::paths_verdict(profile).join("; ")).into()),
        };
    }
    if let Some(first) = read
        && profile.binaries.len() > 1
    {
        let name = recorded_name(&first.file);
        output::aside(&format!("note: only of {name}; choose another with --binary"));
    }
    match (format, read, unread) {
        ("bolt", Some(binary), _) => Ok(binary.preaggregated()),
        ("bolt", None, Some(unread)) if unread.seen.addressing == Default::default() => {
            output::aside("note: no binary is known: entries of functions are not marked");
            Ok(preaggregated_text(&unread.seen, |_| None))
        }
        ("bolt", None, _) => {
            let why = pinwise_present::paths_verdict(profile).join("; ");
            Err(Usage(format!("BOLT needs addresses of the binary: {why}")).into())
        }
        (_, Some(binary), _) => Ok(autofdo_text(&binary.at_file_offsets())),
        (_, None, Some(unread)) if unread.seen.addressing == Addressing::FileOffsets => {
            Ok(autofdo_text(&unread.seen))
        }
        (_, None, Some(_)) => {
            Err(Usage("AutoFDO needs offsets in the file: name the program with --binary".into())
                .into())
        }
        (_, None, None) => Err(Usage("no sampled branch lies in a binary".into()).into()),
    }
}
