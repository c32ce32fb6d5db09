//! [`SimulationRequest`]: the programs of a simulation, and the processor they run on.
//! [`SmtSimulation`]: those of a core of two contexts.

use crate::error::JobError;
use pinwise_present::did_you_mean;
use pinwise_processor::program::PacketPipeline;
use pinwise_processor::{Processor, SimulatedWindow};
use pinwise_smt::{SmtCore, SmtTestbed, StreamProgram};
use pinwise_workloads::{BuiltInWorkload, Error as WorkloadError};
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

/// Programs on a simulated core of two contexts, whose counters are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmtSimulation {
    /// The name of the core.
    pub core: String,
    /// The name of each program.
    pub programs: Vec<String>,
    /// Cycles of a measurement that count.
    pub cycles: u64,
    /// Starts of a measurement.
    pub starts: u32,
}

impl SmtSimulation {
    /// The core that is built in.
    pub const CORE: &'static str = "pentium4-northwood";

    /// Programs on the built-in core, measured for as long as is usual.
    pub fn new(programs: Vec<String>) -> Self {
        let (cycles, starts) = (SmtTestbed::CYCLES, SmtTestbed::STARTS);
        Self { core: Self::CORE.to_owned(), programs, cycles, starts }
    }

    /// The core and its programs.
    ///
    /// # Errors
    /// There is no such core or program.
    pub(crate) fn parts(&self) -> Result<(SmtCore, Vec<StreamProgram>), JobError> {
        let core = SmtCore::northwood();
        if core.name != self.core {
            let message = format!("there is no model '{}' of a core: use {}", self.core, core.name);
            return Err(JobError::Usage(message));
        }
        let known = StreamProgram::spec2000();
        let names = || known.iter().map(|program| program.name.as_str());
        let of = |name: &String| {
            known.iter().find(|program| program.name == *name).cloned().ok_or_else(|| {
                JobError::Usage(format!(
                    "{} has no program '{name}': use {}{}",
                    self.core,
                    names().collect::<Vec<_>>().join(", "),
                    did_you_mean(name, names())
                ))
            })
        };
        Ok((core, self.programs.iter().map(of).collect::<Result<_, _>>()?))
    }
}

/// A request for a simulation: the programs, and how long they run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulationRequest {
    /// The processor.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub model: SimulatedProcessor,
    /// The packet program, as [`PacketPipeline::named`] reads it.
    pub program: String,
    /// Its instances.
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
    /// The programs that `text` names on `model`, measured for as long as is usual for them. It
    /// reads `NAME` or `NAME:INSTANCES`, several joined by `+`; without a number, one instance.
    /// `NAME/4` is a program with four processing threads.
    ///
    /// # Errors
    /// There is no such program or number of instances.
    pub fn parse(model: SimulatedProcessor, text: &str) -> Result<Self, WorkloadError> {
        let mut plain = Vec::new();
        let mut programs: Vec<(String, usize)> = Vec::new();
        for part in text.split('+') {
            let (name, count) = part.split_once(':').unwrap_or((part, "1"));
            let pipeline = PacketPipeline::named(name)
                .ok_or_else(|| WorkloadError::UnknownProgram { name: name.to_owned() })?;
            plain.push(format!("{}:{count}", pipeline.program.name()));
            let count = BuiltInWorkload::parse(&plain[plain.len() - 1])?.programs().len();
            match programs.last_mut().filter(|(last, _)| last == name) {
                Some((_, instances)) => *instances += count,
                None => programs.push((name.to_owned(), count)),
            }
        }
        // All together may be too many.
        BuiltInWorkload::parse(&plain.join("+"))?;
        let (program, instances) = programs.remove(0);
        let usual = Self { model, program, instances, cycles: 0, starts: 0, others: programs };
        let SimulatedWindow { cycles, starts } = SimulatedWindow::of(&usual.known_programs());
        Ok(Self { cycles, starts, ..usual })
    }

    /// The programs with their instances, as typed: `hash1_Mem:8`.
    pub(crate) fn workload(&self) -> String {
        let counted = |(name, count): (&String, usize)| format!("{name}:{count}");
        self.counts().map(counted).collect::<Vec<_>>().join("+")
    }

    /// The program of every instance; `None` if there is no such program.
    pub fn programs(&self) -> Option<Vec<PacketPipeline>> {
        let all = self.instances().collect::<Option<Vec<_>>>();
        all.map(|programs| programs.concat())
    }

    /// The programs of all instances that the model knows.
    fn known_programs(&self) -> Vec<PacketPipeline> {
        self.instances().flatten().flatten().collect()
    }

    fn instances(&self) -> impl Iterator<Item = Option<Vec<PacketPipeline>>> {
        self.counts().map(|(name, count)| Some(vec![PacketPipeline::named(name)?; count]))
    }

    fn counts(&self) -> impl Iterator<Item = (&String, usize)> {
        let others = self.others.iter().map(|(name, instances)| (name, *instances));
        std::iter::once((&self.program, self.instances)).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_shown_as_it_was_read_and_what_makes_no_sense_is_refused() {
        let model = SimulatedProcessor::built_in("ultrasparc-t2");
        let read = |text: &str| SimulationRequest::parse(model.clone(), text);
        for (text, shown, instances) in [
            ("intadd", "intadd:1", 1),
            ("aho-corasick/4:2+aho-corasick:1", "aho-corasick/4:2+aho-corasick:1", 3),
            ("intadd/2:1+intadd/2:2", "intadd/2:3", 3),
        ] {
            let request = read(text).unwrap();
            assert_eq!(request.workload(), shown);
            assert_eq!(request.programs().unwrap().len(), instances);
        }
        for text in ["", "aho", "intadd/0:1", "intadd:0", "intadd:x", "intadd:100+intmul:100"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
