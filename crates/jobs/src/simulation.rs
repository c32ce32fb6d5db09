//! [`SimulationRequest`]: the programs of a simulation, and the processor they run on.

use crate::error::JobError;
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedWindow};
use pinwise_workloads::BuiltInWorkload;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};

/// How the name of a file ends that describes a processor.
pub const DESCRIPTION_EXTENSION: &str = ".toml";
/// The largest description that is read.
const LARGEST_DESCRIPTION: u64 = 1 << 20;

/// A simulated processor: a built-in model, or what a file describes. It is stored with each
/// request. So a campaign does not change if the file changes or disappears.
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

/// A request for a simulation: the programs, and how long they run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulationRequest {
    /// The processor.
    #[serde(flatten)]
    pub model: SimulatedProcessor,
    /// The packet program.
    pub program: String,
    /// Its instances, three threads each.
    pub instances: usize,
    /// Cycles of a measurement in which packets are counted.
    pub cycles: u64,
    /// Start offsets that a measurement averages over.
    pub starts: u32,
    /// Programs that run beside, with their instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(String, usize)>,
}

impl SimulationRequest {
    /// The programs of a workload on `model`, measured for as long as is usual for them.
    pub fn new(model: SimulatedProcessor, workload: &BuiltInWorkload) -> Self {
        let parts = workload.parts().into_iter();
        let mut programs: Vec<(String, usize)> =
            parts.map(|(program, count)| (program.name().to_owned(), count)).collect();
        let (program, instances) = programs.remove(0);
        let usual = Self { model, program, instances, cycles: 0, starts: 0, others: programs };
        // A name that the model does not know is refused when the model is opened.
        let SimulatedWindow { cycles, starts } = SimulatedWindow::of(&usual.known_programs());
        Self { cycles, starts, ..usual }
    }

    /// The programs with their instances, as typed: `hash1_Mem:8`.
    pub(crate) fn workload(&self) -> String {
        let counted = |(name, count): (&String, usize)| format!("{name}:{count}");
        self.counts().map(counted).collect::<Vec<_>>().join("+")
    }

    /// The program of every instance; `None` if there is no such program.
    pub fn programs(&self) -> Option<Vec<PacketProgram>> {
        let all = self.instances().collect::<Option<Vec<_>>>();
        all.map(|programs| programs.concat())
    }

    /// The programs of all instances that the model knows.
    fn known_programs(&self) -> Vec<PacketProgram> {
        self.instances().flatten().flatten().collect()
    }

    fn instances(&self) -> impl Iterator<Item = Option<Vec<PacketProgram>>> {
        self.counts().map(|(name, count)| Some(vec![PacketProgram::named(name)?; count]))
    }

    fn counts(&self) -> impl Iterator<Item = (&String, usize)> {
        let others = self.others.iter().map(|(name, instances)| (name, *instances));
        std::iter::once((&self.program, self.instances)).chain(others)
    }
}
