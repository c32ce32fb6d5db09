//! How many threads of an instance process packets.

use super::PacketProgram;
use std::fmt;

/// A packet program with one processing thread or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketPipeline {
    /// What the processing threads do.
    pub program: PacketProgram,
    /// How many they are, at least 1.
    pub processors: usize,
}

impl PacketPipeline {
    /// The most processing threads. A larger number is a mistake, and would fill the memory.
    pub const MOST_PROCESSORS: usize = 1024;

    /// The pipeline of this name: that of its program, and `/4` for four processing threads. `None`
    /// if there is no such program, or for no thread or more than the most.
    pub fn named(name: &str) -> Option<Self> {
        let (program, processors) = name.split_once('/').unwrap_or((name, "1"));
        let processors = processors.parse().ok()?;
        if !(1..=Self::MOST_PROCESSORS).contains(&processors) {
            return None;
        }
        Some(Self { program: PacketProgram::named(program)?, processors })
    }

    /// Name within the instance, and role, of each thread: R, every P, T.
    pub(super) fn threads(self) -> Vec<(String, &'static str)> {
        let processor = |number: usize| {
            (if self.processors > 1 { format!("P{number}") } else { "P".into() }, "P")
        };
        let processors = (0..self.processors).map(processor);
        std::iter::once(("R".into(), "R")).chain(processors).chain([("T".into(), "T")]).collect()
    }
}

impl From<PacketProgram> for PacketPipeline {
    fn from(program: PacketProgram) -> Self {
        Self { program, processors: 1 }
    }
}

impl fmt::Display for PacketPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processors {
            1 => f.write_str(self.program.name()),
            processors => write!(f, "{}/{processors}", self.program.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in ["aho-corasick", "aho-corasick/4", "hash1_L1/12"] {
            assert_eq!(PacketPipeline::named(name).unwrap().to_string(), name);
        }
        for name in ["aho-corasick/0", "aho-corasick/", "aho/2", "aho-corasick/2/2", "intadd/1025"]
        {
            assert_eq!(PacketPipeline::named(name), None, "{name}");
        }
    }
}
