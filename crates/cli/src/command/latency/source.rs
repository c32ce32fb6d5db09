//! `--from`: latencies that were measured before, or by others.

use super::{LatencyJson, Pair};
use crate::output::{Usage, no_input};
use anyhow::Context as _;
use pinwise_present::Unfinished;
use pinwise_topology::{LatencyError, LatencyLevels, LatencyMatrix, MctFile};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A matrix of 2,048 contexts as JSON is smaller.
const LARGEST_FILE: u64 = 128 << 20;

/// A file, by what is in it.
pub(super) enum Source {
    Mct(MctFile),
    /// The name of the file, and what it holds.
    Csv(String, LatencyMatrix),
    /// What is kept of an earlier document; the rest follows from it.
    Json {
        campaign: Option<i64>,
        unfinished: Option<Unfinished>,
        name: String,
        matrix: LatencyMatrix,
        pairs: Vec<Pair>,
        tsc_ghz: Option<f64>,
        seconds: Option<f64>,
        warnings: Vec<Value>,
    },
}

impl Source {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let what = || path.display().to_string();
        let mut text = String::new();
        let read =
            File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_string(&mut text));
        read.map_err(no_input).with_context(what)?;
        let name =
            path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::parse(name, &text)
            .map_err(|reason| Usage(format!("{}: {reason}", path.display())).into())
    }

    fn parse(name: String, text: &str) -> Result<Self, String> {
        let told = |error: LatencyError| error.to_string();
        match text.trim_start().chars().next() {
            Some('#') => Ok(Self::Mct(MctFile::parse(text).map_err(told)?)),
            Some('{') => {
                let document: LatencyJson = serde_json::from_str(text).map_err(|error| {
                    format!("{error}; expected what 'pinwise latency --json' prints")
                })?;
                let matrix = document.latencies().map_err(told)?;
                let LatencyJson {
                    campaign,
                    unfinished,
                    name,
                    pairs,
                    tsc_ghz,
                    seconds,
                    warnings,
                    ..
                } = document;
                Ok(Self::Json {
                    campaign,
                    unfinished,
                    name,
                    matrix,
                    pairs,
                    tsc_ghz,
                    seconds,
                    warnings,
                })
            }
            _ => Ok(Self::Csv(name, LatencyMatrix::from_csv(text).map_err(told)?)),
        }
    }

    /// What it says, and what follows from it.
    pub(super) fn document(self) -> LatencyJson {
        match self {
            Self::Mct(file) => {
                let header = file.check(&LatencyLevels::of(&file.matrix));
                let mut document = LatencyJson::new(file.name, &file.matrix);
                document.agrees = Some(header.iter().all(|check| check.agrees));
                document.header = header;
                document
            }
            Self::Csv(name, matrix) => LatencyJson::new(name, &matrix),
            Self::Json {
                campaign,
                unfinished,
                name,
                matrix,
                pairs,
                tsc_ghz,
                seconds,
                warnings,
            } => LatencyJson {
                campaign,
                unfinished,
                pairs,
                tsc_ghz,
                seconds,
                warnings,
                ..LatencyJson::new(name, &matrix)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_back_as_it_was_written() {
        let csv = ",,,\n8.1,,,\n50.2,51.3,,\n49.8,50.1,8.3,\n";
        let written = Source::parse("box".into(), csv).unwrap().document();
        let json = serde_json::to_string(&written).unwrap();
        let read = Source::parse("copy".into(), &json).unwrap().document();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
        assert_eq!(read.name, "box");
    }

    #[test]
    fn files_that_are_none_say_what_was_expected() {
        let refuse = |text: &str| Source::parse("x".into(), text).map(|_| ()).unwrap_err();
        assert!(
            refuse("{}").contains("missing field `name`")
                && refuse("{}").contains("pinwise latency --json")
        );
        let short = r#"{"name":"x","unit":"ns","contexts":[0,1],"matrix":[[null]]}"#;
        assert!(refuse(short).contains("1 values for 2 contexts; expected 4"));
        assert!(refuse("#name").contains("line 1: expected '#NAME #HWCs"));
        assert!(refuse("Dear reader").contains("line 1: 'Dear reader': expected nanoseconds"));
        assert!(refuse("").contains("0 contexts"));
    }
}
