//! `--from`: latencies that were measured before, or by others.

use super::document::LatencyJson;
use crate::output::{Usage, no_input};
use anyhow::Context as _;
use pinwise_present::LatencyFindings;
use pinwise_topology::{LatencyError, LatencyLevels, LatencyMatrix, Machine, MctFile};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A matrix of 2,048 contexts as JSON is smaller.
const LARGEST_FILE: u64 = 128 << 20;

/// A file, by what is in it.
pub(super) enum LatencyFile {
    Mct(MctFile),
    /// The name of the file, and what it holds.
    Csv(String, LatencyMatrix),
    /// An earlier document, and its matrix. Its levels follow from the matrix again.
    Json(Box<LatencyJson>, LatencyMatrix),
}

impl LatencyFile {
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
                Ok(Self::Json(Box::new(document), matrix))
            }
            _ => Ok(Self::Csv(name, LatencyMatrix::from_csv(text).map_err(told)?)),
        }
    }

    /// What it says, and what follows from it, compared with what `declared` declares.
    pub(super) fn document(self, declared: Option<&Machine>) -> (LatencyJson, LatencyFindings) {
        match self {
            Self::Mct(file) => {
                let header = file.check(&LatencyLevels::of(&file.matrix));
                let findings =
                    LatencyFindings { header, ..LatencyFindings::new(file.matrix, None, declared) };
                (LatencyJson::new(file.name, &findings), findings)
            }
            Self::Csv(name, matrix) => {
                let findings = LatencyFindings::new(matrix, None, declared);
                (LatencyJson::new(name, &findings), findings)
            }
            Self::Json(read, matrix) => {
                let LatencyJson {
                    campaign,
                    unfinished,
                    name,
                    pairs,
                    tsc_ghz,
                    seconds,
                    warnings,
                    ..
                } = *read;
                let findings = LatencyFindings::new(matrix, unfinished, declared);
                let new = LatencyJson::new(name, &findings);
                (LatencyJson { campaign, pairs, tsc_ghz, seconds, warnings, ..new }, findings)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_back_as_it_was_written() {
        let csv = ",,,\n8.1,,,\n50.2,51.3,,\n49.8,50.1,8.3,\n";
        let written = LatencyFile::parse("box".into(), csv).unwrap().document(None).0;
        let json = serde_json::to_string(&written).unwrap();
        let read = LatencyFile::parse("copy".into(), &json).unwrap().document(None).0;
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
        assert_eq!(read.name, "box");
    }

    #[test]
    fn files_that_are_none_say_what_was_expected() {
        let refuse = |text: &str| LatencyFile::parse("x".into(), text).map(|_| ()).unwrap_err();
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
