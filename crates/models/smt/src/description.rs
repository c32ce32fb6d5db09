//! The description of a core.

use pinwise_measure::{MeasureError, Retry};
use pinwise_topology::Machine;
use serde::Deserialize;

/// A core with two contexts. All of its numbers come from a TOML file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtCore {
    /// Its name.
    pub name: String,
    /// Cycles per nanosecond.
    pub clock_ghz: f64,
    pub(crate) front_end: FrontEnd,
    pub(crate) window: ReorderWindow,
    pub(crate) units: ExecutionUnits,
    pub(crate) l1: CacheLevel,
    pub(crate) l2: CacheLevel,
    pub(crate) memory: MemoryBus,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrontEnd {
    pub(crate) width: u64,
    pub(crate) trace_micro_ops: u32,
    pub(crate) trace_ways: u32,
    pub(crate) line_micro_ops: u32,
    pub(crate) build_micro_ops: u64,
    pub(crate) bytes_per_micro_op: u32,
    pub(crate) mispredict_cycles: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReorderWindow {
    pub(crate) micro_ops: usize,
    pub(crate) loads: usize,
    pub(crate) stores: usize,
    pub(crate) retire: u8,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutionUnits {
    pub(crate) integer: u8,
    pub(crate) integer_cycles: u64,
    pub(crate) fp: u8,
    pub(crate) fp_cycles: u64,
    pub(crate) load: u8,
    pub(crate) store: u8,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheLevel {
    pub(crate) bytes: u32,
    pub(crate) ways: u32,
    pub(crate) cycles: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryBus {
    pub(crate) line_bytes: u32,
    pub(crate) nanoseconds: f64,
    pub(crate) gigabytes_per_second: f64,
    pub(crate) outstanding: usize,
    pub(crate) prefetched_lines: u32,
}

/// Why a description of a core or of programs is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmtError {
    /// The text is no TOML, or a key is missing, unknown or of the wrong type.
    #[error("description of an SMT core or its programs: {0}")]
    Syntax(String),
    /// A value that cannot be.
    #[error("description of {of}: {key} cannot be {value}: {reason}")]
    Value {
        /// The core or the program.
        of: String,
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it has to be.
        reason: &'static str,
    },
}

impl SmtCore {
    /// The core of the paper on hardware monitoring (section 5).
    pub fn northwood() -> Self {
        let text = include_str!("../models/pentium4-northwood.toml");
        Self::parse(text).expect("a test reads it")
    }

    /// A core from TOML.
    ///
    /// # Errors
    /// The text is no description, or the core cannot be.
    pub fn parse(text: &str) -> Result<Self, SmtError> {
        let core: Self =
            toml::from_str(text).map_err(|error| SmtError::Syntax(error.to_string()))?;
        core.check()?;
        Ok(core)
    }

    /// A machine of this core: two contexts.
    pub(crate) fn machine(&self) -> Result<Machine, MeasureError> {
        let machine = Machine::from_shape("core:1 pu:2")
            .map_err(|error| MeasureError::new(Retry::Never, error.to_string()))?;
        Ok(Machine { name: self.name.clone(), ..machine })
    }

    fn check(&self) -> Result<(), SmtError> {
        let refuse = |key, value: &dyn ToString, reason| {
            Err(SmtError::Value { of: self.name.clone(), key, value: value.to_string(), reason })
        };
        let numbers: [(&'static str, u64); 11] = [
            ("front_end.width", self.front_end.width),
            ("front_end.line_micro_ops", self.front_end.line_micro_ops.into()),
            ("front_end.build_micro_ops", self.front_end.build_micro_ops),
            ("window.micro_ops", self.window.micro_ops as u64 / 2),
            ("window.loads", self.window.loads as u64 / 2),
            ("window.stores", self.window.stores as u64 / 2),
            ("window.retire", self.window.retire.into()),
            ("units.integer", self.units.integer.into()),
            ("units.fp", self.units.fp.into()),
            ("units.load", self.units.load.min(self.units.store).into()),
            ("memory.outstanding", self.memory.outstanding as u64),
        ];
        for (key, number) in numbers {
            if number == 0 || number > 1 << 16 {
                return refuse(key, &number, "1 to 65,536, and 2 or more if it is divided");
            }
        }
        let power = "a power of two and at least as large as what it is divided into";
        let trace_lines = self.front_end.trace_micro_ops / self.front_end.line_micro_ops;
        let caches = [
            ("front_end.trace_micro_ops", trace_lines, self.front_end.trace_ways, 1),
            ("l1.bytes", self.l1.bytes, self.l1.ways, self.memory.line_bytes),
            ("l2.bytes", self.l2.bytes, self.l2.ways, self.memory.line_bytes),
        ];
        for (key, size, ways, line) in caches {
            let sizes = [size, ways, line];
            let divides = u64::from(ways) * u64::from(line) <= u64::from(size);
            if !divides || !sizes.into_iter().all(u32::is_power_of_two) || ways > 32 {
                return refuse(key, &size, power);
            }
        }
        let times = [
            ("clock_ghz", self.clock_ghz),
            ("memory.nanoseconds", self.memory.nanoseconds),
            ("memory.gigabytes_per_second", self.memory.gigabytes_per_second),
        ];
        for (key, number) in times {
            if !(number > 0.0 && number <= 1e4) {
                return refuse(key, &number, "above 0, and at most 10,000");
            }
        }
        Ok(())
    }

    /// Lines of the trace cache.
    pub(crate) fn trace_lines(&self) -> u32 {
        self.front_end.trace_micro_ops / self.front_end.line_micro_ops
    }

    /// Cycles until a line of memory is there.
    pub(crate) fn memory_cycles(&self) -> u64 {
        (self.memory.nanoseconds * self.clock_ghz).round() as u64
    }

    /// Cycles in which a line is on the bus.
    pub(crate) fn bus_cycles(&self) -> u64 {
        let bytes_per_cycle = self.memory.gigabytes_per_second / self.clock_ghz;
        (f64::from(self.memory.line_bytes) / bytes_per_cycle).round().max(1.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_of_the_paper_has_its_documented_numbers() {
        let core = SmtCore::northwood();
        assert_eq!((core.window.micro_ops, core.trace_lines()), (126, 2048));
        assert_eq!((core.memory_cycles(), core.bus_cycles()), (304, 39));
    }

    #[test]
    fn a_core_that_cannot_be_is_refused_by_key() {
        let text = include_str!("../models/pentium4-northwood.toml");
        for (from, to, key) in [
            ("bytes = 8192", "bytes = 8191", "l1.bytes"),
            ("trace_ways = 8", "trace_ways = 4096", "front_end.trace_micro_ops"),
            ("stores = 24", "stores = 1", "window.stores"),
            ("width = 3", "width = 0", "front_end.width"),
            ("line_micro_ops = 6", "line_micro_ops = 0", "front_end.line_micro_ops"),
            ("nanoseconds = 120", "nanoseconds = 0", "memory.nanoseconds"),
        ] {
            let error = SmtCore::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(matches!(error, SmtError::Value { key: of, .. } if of == key), "{error}");
        }
        let unknown = SmtCore::parse(&format!("{text}\nspeed = 1\n")).unwrap_err();
        assert!(matches!(unknown, SmtError::Syntax(_)), "{unknown}");
    }
}
