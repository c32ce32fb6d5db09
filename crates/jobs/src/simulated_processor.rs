//! A simulated processor: a built-in name or a description file.

use crate::error::JobError;
use pinwise_processor::Processor;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};

/// How the name of a file ends that describes a processor.
pub const DESCRIPTION_EXTENSION: &str = ".toml";
/// The largest description that is read.
const LARGEST_DESCRIPTION: u64 = 1 << 20;

/// A simulated processor: a built-in model, or what a file describes. Kept with whatever is asked
/// of it, so that a file that is changed or gone changes no campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedProcessor {
    /// The word that the user typed: the name of a built-in processor, or the file.
    #[serde(rename = "model")]
    pub name: String,
    /// The text of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl SimulatedProcessor {
    /// The built-in model of this name.
    pub fn built_in(name: &str) -> Self {
        Self { name: name.to_owned(), description: None }
    }

    /// Reads the processor that a file describes. The error names the file, and the line or key.
    pub fn read(path: &str) -> Result<Self, JobError> {
        let mut read = Vec::new();
        File::open(path)
            .and_then(|file| file.take(LARGEST_DESCRIPTION).read_to_end(&mut read))
            .map_err(|error| JobError::Usage(format!("{path}: {}", unreadable(&error))))?;
        Self::described(path, read)
    }

    /// The processor that the contents of a file describe.
    pub fn described(path: &str, contents: Vec<u8>) -> Result<Self, JobError> {
        let text = String::from_utf8(contents)
            .map_err(|_| JobError::Usage(format!("{path}: it is not a text file")))?;
        let model = Self { name: path.to_owned(), description: Some(text) };
        model.processor()?;
        Ok(model)
    }

    /// The processor.
    pub fn processor(&self) -> Result<Processor, JobError> {
        match &self.description {
            None => {
                Processor::model(&self.name).map_err(|error| JobError::Usage(error.to_string()))
            }
            Some(text) => Processor::parse(text)
                .map_err(|error| JobError::Usage(format!("{}: {error}", self.name))),
        }
    }
}

/// Why a file cannot be read.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => error.to_string(),
    }
}
