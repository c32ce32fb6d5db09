//! The description of a processor: the resources shared on each level, their latencies and their
//! arbitration.
//!
//! Three levels, as in V. Čakarević et al., MICRO 2009. Strands share a *pipe*, pipes share a
//! *core*, cores share the *chip*. The table of a resource says which level shares it. The engine
//! knows a processor only by its description: `models/ultrasparc-t2.toml` is the first. All times
//! are cycles, all line sizes bytes.

mod check;
mod machine;

use serde::{Deserialize, Serialize};

/// A processor as its description says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Processor {
    /// The name of the model.
    pub name: String,
    /// Clock frequency in MHz.
    #[serde(rename = "clock_mhz")]
    pub clock_mhz: u32,
    /// What the strands of a pipe share.
    pub intra_pipe: IntraPipe,
    /// What the pipes of a core share.
    pub intra_core: IntraCore,
    /// What the cores share.
    pub inter_core: InterCore,
}

/// What the strands of a pipe share: instruction fetch and integer execution.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IntraPipe {
    /// Strands per pipe, 1 to 8.
    pub strands: u32,
    /// The strand that fetches when several can.
    pub fetch: Fetch,
    /// Integer execution.
    pub integer: Integer,
}

/// Instruction fetch of a pipe.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fetch {
    /// Instructions fetched per cycle. Only 1 is simulated.
    pub width: u32,
    /// Which of the ready strands fetches.
    pub policy: FetchPolicy,
    /// Which of them first in the cycle after a load.
    pub after_load: AfterLoad,
}

/// Which of the ready strands of a pipe fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FetchPolicy {
    /// The one whose last fetch is longest ago.
    LeastRecentlyFetched,
}

/// Which of the ready strands of a pipe go first in the cycle after a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterLoad {
    /// Those without a load.
    LoadsYield,
    /// None: as in any other cycle.
    Alike,
}

/// Integer execution of a pipe.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Integer {
    /// Cycles until the strand can fetch again after an arithmetic or logical instruction. Only 1
    /// is simulated.
    pub latency: u32,
    /// The same after a taken branch.
    pub taken_branch: u32,
}

/// What the pipes of a core share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IntraCore {
    /// Pipes per core, 1 to 4.
    pub pipes: u32,
    /// The pipelined floating-point unit.
    pub fpx: Fpx,
    /// The divide unit.
    pub fpd: Fpd,
    /// The load/store unit.
    pub lsu: Lsu,
    /// The first-level data cache.
    pub l1d: L1Data,
    /// The first-level instruction cache: part of the machine, not simulated.
    pub l1i: L1Instruction,
}

/// The pipelined unit for multiplication and floating-point addition: one operation enters per
/// cycle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fpx {
    /// Latency of an integer multiplication.
    pub multiply: u32,
    /// Latency of a floating-point addition or multiplication.
    pub fp_add: u32,
    /// Which pipe goes first.
    pub arbitration: Arbitration,
}

/// Which pipe goes first if several want a unit in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The one whose strand's last fetch is longest ago; between equals, the one that used the unit
    /// last yields.
    OldestFirst,
    /// The one that used the unit last yields.
    LastUserYields,
}

/// The divide unit: one operation at a time, first in first out within a pipe, the pipes taking
/// turns.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fpd {
    /// Latency of a floating-point division.
    pub fp_divide: u32,
    /// Shortest and longest latency of an integer division.
    pub divide: [u32; 2],
    /// By how many cycles a division of another pipe overlaps the end of the one before.
    pub handover: u32,
}

/// The load/store unit: one load or store per cycle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lsu {
    /// Which pipe goes first.
    pub arbitration: Arbitration,
    /// Posted stores a strand may have under way. Only 1 is simulated.
    pub store_buffer: u32,
    /// Cycles for which a line from the second level takes the cache's port.
    pub fill: u32,
    /// Cycles for which a fill lets loads pass before it forces its way.
    pub fill_patience: u32,
}

/// Which line of a set is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// A binary tree of bits per set, each pointing away from the half that was used last.
    TreePlru,
    /// A used bit per line. The victim is the first line not used, counted from a rotor that a
    /// bank's sets share.
    NotRecentlyUsed,
}

/// The first-level data cache of a core: write-through, no allocation on stores.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L1Data {
    /// Capacity in KiB.
    pub size_kib: u32,
    /// Lines per set.
    pub ways: u32,
    /// Line size in bytes.
    pub line: u32,
    /// Which line is replaced.
    pub policy: CachePolicy,
    /// Cycles from a load that hits to the strand's next instruction.
    pub latency: u32,
}

/// The first-level instruction cache of a core.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L1Instruction {
    /// Capacity in KiB.
    pub size_kib: u32,
    /// Lines per set.
    pub ways: u32,
    /// Line size in bytes.
    pub line: u32,
}

/// What the cores share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterCore {
    /// Cores, 1 to 32.
    pub cores: u32,
    /// The second-level cache.
    pub l2: L2,
    /// Main memory.
    pub memory: MainMemory,
}

/// The second-level cache: banks that work independently, consecutive lines in consecutive banks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L2 {
    /// Capacity of all banks in KiB.
    pub size_kib: u32,
    /// Lines per set.
    pub ways: u32,
    /// Line size in bytes.
    pub line: u32,
    /// Which line is replaced.
    pub policy: CachePolicy,
    /// Number of banks.
    pub banks: u32,
    /// Cycles from a load that misses the first level and hits here to the strand's next
    /// instruction.
    pub latency: u32,
    /// Cycles for which an access occupies its bank.
    pub busy: u32,
}

/// Main memory behind controllers. Each serves as many neighbouring banks of the second-level
/// cache.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MainMemory {
    /// Number of controllers.
    pub controllers: u32,
    /// Cycles from a load that misses both caches to the strand's next instruction.
    pub latency: u32,
    /// Cycles for which a line occupies its controller.
    pub busy: u32,
    /// Extra cycles for a line that lies in another row than the line before.
    pub row_conflict: u32,
    /// Size of a row in KiB.
    pub row_kib: u32,
}

/// Why a description is no processor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessorError {
    /// No built-in model has this name.
    #[error("processor '{name}': no such model; built in: {}", Processor::MODELS.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The text is no TOML, or a key is missing, unknown or of the wrong type.
    #[error("description of a processor: {0}")]
    Syntax(String),
    /// A value that cannot be.
    #[error("description of {processor}: {key} is {value}: {reason}")]
    Value {
        /// The name in the description.
        processor: String,
        /// The key, with its tables.
        key: &'static str,
        /// What it says.
        value: u64,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// A name that cannot be shown.
    #[error(
        "description of a processor: name is not 1 to {most} characters without control characters"
    )]
    Name {
        /// How many characters it may have.
        most: usize,
    },
}

const ULTRASPARC_T2: &str = include_str!("../models/ultrasparc-t2.toml");

impl Processor {
    /// The names [`Processor::model`] knows; each is also a [`pinwise_topology::Machine::model`].
    pub const MODELS: &[&str] = &["ultrasparc-t2"];

    /// A built-in model. Error: a name not in [`Processor::MODELS`].
    pub fn model(name: &str) -> Result<Self, ProcessorError> {
        Self::parse(Self::description(name)?)
    }

    /// The description of a built-in model, as [`Processor::parse`] reads it. Error: a name not in
    /// [`Processor::MODELS`].
    pub fn description(name: &str) -> Result<&'static str, ProcessorError> {
        match name {
            "ultrasparc-t2" => Ok(ULTRASPARC_T2),
            _ => Err(ProcessorError::Unknown { name: name.into() }),
        }
    }

    /// Whether an array of this many bytes does not fit a core's first level.
    pub(crate) fn beyond_first_level(&self, array: u64) -> bool {
        array > u64::from(self.intra_core.l1d.size_kib) << 10
    }

    /// Whether arrays of this many bytes each, of programs on one core, do not fit its first level
    /// together. One of them alone would fit.
    pub(crate) fn first_level_contested(&self, arrays: &[u64]) -> bool {
        self.beyond_first_level(arrays.iter().sum())
            && arrays.iter().any(|&array| array > 0 && !self.beyond_first_level(array))
    }

    /// The processor that a TOML text describes. Errors name the line and the key.
    pub fn parse(text: &str) -> Result<Self, ProcessorError> {
        let processor: Self =
            toml::from_str(text).map_err(|error| ProcessorError::Syntax(one_line(text, &error)))?;
        processor.check()?;
        Ok(processor)
    }

    /// Hardware contexts of the chip.
    pub fn contexts(&self) -> usize {
        (self.inter_core.cores * self.intra_core.pipes * self.intra_pipe.strands) as usize
    }

    /// Contexts per core.
    pub fn contexts_per_core(&self) -> usize {
        (self.intra_core.pipes * self.intra_pipe.strands) as usize
    }
}

/// The parser's message with the line in place of its drawing, which takes several.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', " ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_model_is_valid_and_others_are_refused() {
        for name in Processor::MODELS {
            assert_eq!(Processor::model(name).unwrap().name, *name);
        }
        assert!(Processor::model("pdp-11").unwrap_err().to_string().contains("ultrasparc-t2"));
    }

    #[test]
    fn the_t2_is_described_as_in_the_paper() {
        let t2 = Processor::model("ultrasparc-t2").unwrap();
        assert_eq!((t2.contexts(), t2.contexts_per_core()), (64, 8));
        assert_eq!((t2.intra_core.l1d.size_kib, t2.intra_core.l1d.latency), (8, 2));
        assert_eq!(
            (t2.inter_core.l2.size_kib, t2.inter_core.l2.ways, t2.inter_core.l2.banks),
            (4096, 16, 8)
        );
        assert_eq!((t2.intra_core.fpd.fp_divide, t2.intra_core.fpd.divide), (33, [12, 41]));
    }

    #[test]
    fn errors_name_the_key() {
        let broken = |from: &str, to: &str| {
            assert!(ULTRASPARC_T2.contains(from), "{from}");
            let error =
                Processor::parse(&ULTRASPARC_T2.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
            error
        };
        let missing = broken("handover = 2", "");
        assert!(missing.contains("handover") && missing.contains("line "), "{missing}");
        let line = ULTRASPARC_T2.lines().position(|line| line.starts_with("handover")).unwrap() + 2;
        let unknown = broken("handover = 2", "handover = 2\nhangover = 2");
        assert!(
            unknown.contains("hangover") && unknown.contains(&format!("line {line}: ")),
            "{unknown}"
        );
        assert!(broken("\"tree-plru\"", "\"random\"").contains("random"));
        assert!(
            broken("strands = 4", "strands = 0")
                .ends_with("intra-pipe.strands is 0: expected 1 to 8, given the values around it")
        );
        assert!(
            broken("name = \"ultrasparc-t2\"", "name = \"\"")
                .contains("name is not 1 to 40 characters")
        );
        assert!(broken("size-kib = 16", "size-kib = 0").contains("intra-core.l1i.size-kib"));
        assert!(broken("width = 1", "width = 2").contains("intra-pipe.fetch.width"));
        assert!(broken("banks = 8", "banks = 7").contains("inter-core.l2.banks"));
        assert!(broken("line = 16", "line = 128").contains("intra-core.l1d.line"));
        assert!(broken("latency = 195", "latency = 21").contains("inter-core.memory.latency"));
        assert!(broken("divide = [12, 41]", "divide = [41, 12]").contains("intra-core.fpd.divide"));
    }
}
