//! The programs by name.

use crate::Error;
use crate::traffic::Traffic;
use std::fmt;

/// One of the twelve packet programs: what its P threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltInProgram {
    /// `hash1_L1`: IP forwarding, one lookup in a table of 4 KiB.
    Hash1L1,
    /// `hash1_L2`: one lookup in 512 KiB.
    Hash1L2,
    /// `hash1_Mem`: one lookup in 64 MiB.
    Hash1Mem,
    /// `hashN_L1`: three dependent lookups in 4 KiB.
    HashNL1,
    /// `hashN_L2`: three dependent lookups in 512 KiB.
    HashNL2,
    /// `hashN_Mem`: three dependent lookups in 64 MiB.
    HashNMem,
    /// `intadd`: `hash1_L1` and 480 integer additions.
    IntAdd,
    /// `intmul`: `hash1_L1` and 80 integer multiplications.
    IntMul,
    /// `intdiv`: `hash1_L1` and 26 integer divisions.
    IntDiv,
    /// `packet-analyzer`: decodes and logs the headers.
    PacketAnalyzer,
    /// `aho-corasick`: searches the payload for keywords.
    AhoCorasick,
    /// `stateful`: keeps a record of every flow.
    Stateful,
}

impl BuiltInProgram {
    /// All programs, in the order of the papers.
    pub const ALL: [Self; 12] = [
        Self::Hash1L1,
        Self::Hash1L2,
        Self::Hash1Mem,
        Self::HashNL1,
        Self::HashNL2,
        Self::HashNMem,
        Self::IntAdd,
        Self::IntMul,
        Self::IntDiv,
        Self::PacketAnalyzer,
        Self::AhoCorasick,
        Self::Stateful,
    ];

    /// The name users type, which is that of the papers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash1L1 => "hash1_L1",
            Self::Hash1L2 => "hash1_L2",
            Self::Hash1Mem => "hash1_Mem",
            Self::HashNL1 => "hashN_L1",
            Self::HashNL2 => "hashN_L2",
            Self::HashNMem => "hashN_Mem",
            Self::IntAdd => "intadd",
            Self::IntMul => "intmul",
            Self::IntDiv => "intdiv",
            Self::PacketAnalyzer => "packet-analyzer",
            Self::AhoCorasick => "aho-corasick",
            Self::Stateful => "stateful",
        }
    }

    /// What a P thread does, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Hash1L1 | Self::Hash1L2 | Self::Hash1Mem => {
                "IP forwarding, one table lookup a packet"
            }
            Self::HashNL1 | Self::HashNL2 | Self::HashNMem => {
                "IP forwarding, three dependent lookups a packet"
            }
            Self::IntAdd => "IP forwarding and 480 integer additions a packet",
            Self::IntMul => "IP forwarding and 80 integer multiplications a packet",
            Self::IntDiv => "IP forwarding and 26 integer divisions a packet",
            Self::PacketAnalyzer => "decodes the headers and logs them",
            Self::AhoCorasick => "searches the payload for keywords of attacks",
            Self::Stateful => "keeps a record of every flow, open or closed",
        }
    }

    /// What a P thread's work touches besides the packets.
    pub fn working_set(self) -> &'static str {
        match self {
            Self::Hash1L1 | Self::HashNL1 | Self::IntAdd | Self::IntMul | Self::IntDiv => {
                "table of 4 KiB"
            }
            Self::Hash1L2 | Self::HashNL2 => "table of 512 KiB",
            Self::Hash1Mem | Self::HashNMem => "table of 64 MiB",
            Self::PacketAnalyzer => "log of the last 4,096 packets",
            Self::AhoCorasick => "automaton of over 100 keywords",
            Self::Stateful => "table of 65,536 flows",
        }
    }

    /// What its instances' threads are named after: `ipfwd0-R` is the receiver of the first
    /// instance.
    pub fn stem(self) -> &'static str {
        match self {
            Self::PacketAnalyzer => "analyzer",
            Self::AhoCorasick => "aho",
            Self::Stateful => "flow",
            _ => "ipfwd",
        }
    }

    /// The packets it receives without a capture. IP forwarding: 1,024 frames of 256 flows to ever
    /// new destinations. The stateful program: 16,384 frames of 4,096 flows. The others: 2,048
    /// frames of 512 flows.
    pub fn traffic(self, seed: u64) -> Traffic {
        match self {
            Self::Stateful => Traffic::generate(seed, 4096, 16384),
            Self::PacketAnalyzer | Self::AhoCorasick => Traffic::generate(seed, 512, 2048),
            _ => Traffic::generate(seed, 256, 1024).with_spread_destinations(),
        }
    }
}

impl fmt::Display for BuiltInProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Independent instances, of one program or of several, that run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltInWorkload {
    programs: Vec<BuiltInProgram>,
}

impl BuiltInWorkload {
    /// More instances than this are a typing error: 384 threads.
    pub const MOST_INSTANCES: usize = 128;

    /// One instance of each of `programs`, three threads each: 1 to
    /// [`BuiltInWorkload::MOST_INSTANCES`].
    pub fn new(programs: Vec<BuiltInProgram>) -> Result<Self, Error> {
        if (1..=Self::MOST_INSTANCES).contains(&programs.len()) {
            Ok(Self { programs })
        } else {
            Err(Error::Instances { text: programs.len().to_string() })
        }
    }

    /// Reads `NAME` or `NAME:INSTANCES`, several joined by `+`; without a number, one instance.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut programs = Vec::new();
        for part in text.split('+') {
            let (name, number) = part.split_once(':').unwrap_or((part, "1"));
            let program = BuiltInProgram::ALL.into_iter().find(|program| program.name() == name);
            let program = program.ok_or_else(|| Error::UnknownProgram { name: name.to_owned() })?;
            let instances = number
                .parse()
                .ok()
                .filter(|instances| (1..=Self::MOST_INSTANCES).contains(instances));
            let instances =
                instances.ok_or_else(|| Error::Instances { text: number.to_owned() })?;
            programs.extend(std::iter::repeat_n(program, instances));
        }
        Self::new(programs)
    }

    /// The program of every instance.
    pub fn programs(&self) -> &[BuiltInProgram] {
        &self.programs
    }

    /// The programs in their order, each with how many instances of it follow each other.
    pub fn parts(&self) -> Vec<(BuiltInProgram, usize)> {
        self.programs.chunk_by(|a, b| a == b).map(|part| (part[0], part.len())).collect()
    }
}

impl fmt::Display for BuiltInWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts =
            self.parts().into_iter().map(|(program, instances)| format!("{program}:{instances}"));
        f.write_str(&parts.collect::<Vec<_>>().join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_fits_thread_names() {
        for program in BuiltInProgram::ALL {
            let workload = BuiltInWorkload::parse(&format!("{program}:3")).unwrap();
            assert_eq!(workload.programs(), [program; 3]);
            assert_eq!(BuiltInWorkload::parse(program.name()).unwrap().programs(), [program]);
            assert!(format!("{}{}-R", program.stem(), BuiltInWorkload::MOST_INSTANCES).len() <= 15);
        }
    }

    #[test]
    fn several_programs_are_read_back_as_they_are_shown() {
        let mixed = BuiltInWorkload::parse("intadd:2+stateful+intmul:1").unwrap();
        assert_eq!(
            mixed.programs(),
            [
                BuiltInProgram::IntAdd,
                BuiltInProgram::IntAdd,
                BuiltInProgram::Stateful,
                BuiltInProgram::IntMul
            ]
        );
        assert_eq!(mixed.to_string(), "intadd:2+stateful:1+intmul:1");
        assert_eq!(BuiltInWorkload::parse(&mixed.to_string()).unwrap(), mixed);
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let message = BuiltInWorkload::parse("hash2_L1:2").unwrap_err().to_string();
        assert!(message.contains("`hash2_L1`"), "{message}");
        assert!(
            BuiltInProgram::ALL.iter().all(|program| message.contains(program.name())),
            "{message}"
        );
    }

    #[test]
    fn senseless_numbers_of_instances_are_refused() {
        for text in [
            "intadd:0",
            "intadd:129",
            "intadd:",
            "intadd:two",
            "intadd:-1",
            "intadd:2:3",
            "intadd:2+intmul:0",
            "intadd:100+intmul:29",
        ] {
            assert!(matches!(BuiltInWorkload::parse(text), Err(Error::Instances { .. })), "{text}");
        }
    }
}
