//! Programs as streams of micro-operations.

use crate::SmtError;
use serde::Deserialize;

/// A program: a stream of micro-operations whose statistics do not change.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamProgram {
    /// Its name.
    pub name: String,
    /// Share of the micro-operations that load, 0 to 1. What is left of all shares is integer work.
    pub load: f64,
    /// Share that stores.
    pub store: f64,
    /// Share that branches.
    pub branch: f64,
    /// Share that is floating point work.
    pub fp: f64,
    /// Share of the branches that are mispredicted.
    pub mispredicted: f64,
    /// Mean distance to the micro-operation whose result one needs, at least 1.
    pub dependency: f64,
    /// Micro-operations of the code.
    pub code: u32,
    /// Micro-operations at its beginning that run most often.
    pub hot_code: u32,
    /// Share of the loops that begin there. Others begin anywhere.
    pub hot: f64,
    /// Micro-operations of a loop.
    pub loop_code: u32,
    /// Mean passes of a loop before the next one begins.
    pub passes: f64,
    /// What loads and stores access; the shares add up to 1.
    pub data: Vec<DataSet>,
}

/// Data that a program accesses in one way.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    /// Its size.
    pub kib: u32,
    /// Share of the accesses.
    pub share: f64,
    /// The order of accesses.
    pub pattern: AccessPattern,
}

/// The order in which data are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessPattern {
    /// Anywhere, and independent.
    Random,
    /// Anywhere. A load gives the address of the next one.
    Chain,
    /// Eight bytes after the access before.
    Stream,
}

/// A file with programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    program: Vec<StreamProgram>,
}

/// More data or code than this is refused: an address has 32 bits of lines for all.
const MOST_KIB: u32 = 1 << 20;

impl StreamProgram {
    /// 24 programs that stand for those of SPEC CPU2000, by class. See `models/spec2000.toml`.
    pub fn spec2000() -> Vec<Self> {
        Self::parse(include_str!("../models/spec2000.toml")).expect("a test reads it")
    }

    /// Programs from TOML.
    ///
    /// # Errors
    /// The text is no description, or a program cannot be.
    pub fn parse(text: &str) -> Result<Vec<Self>, SmtError> {
        let programs: Programs =
            toml::from_str(text).map_err(|error| SmtError::Syntax(error.to_string()))?;
        programs.program.iter().try_for_each(Self::check)?;
        Ok(programs.program)
    }

    pub(crate) fn check(&self) -> Result<(), SmtError> {
        let refuse = |key, value: f64, reason| {
            Err(SmtError::Value { of: self.name.clone(), key, value: value.to_string(), reason })
        };
        let Self { load, store, branch, fp, mispredicted, hot, .. } = *self;
        let shares = [load, store, branch, fp, mispredicted, hot];
        let work: f64 = shares[..4].iter().sum();
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) || work > 1.0 {
            return refuse("load + store + branch + fp", work, "shares, together at most 1");
        }
        let data: f64 = self.data.iter().map(|data| data.share).sum();
        let is_whole = (data - 1.0).abs() <= 1e-6;
        if !is_whole || self.data.iter().any(|data| data.share < 0.0) {
            return refuse("data.share", data, "shares that add up to 1");
        }
        let sizes = self.data.iter().map(|data| data.kib);
        if let Some(kib) = sizes.chain([self.code]).find(|size| !(1..MOST_KIB).contains(size)) {
            return refuse("data.kib or code", kib.into(), "1 to 1,048,575");
        }
        for (key, part) in [("loop_code", self.loop_code), ("hot_code", self.hot_code)] {
            if !(1..=self.code).contains(&part) {
                return refuse(key, part.into(), "1 to the code");
            }
        }
        for (key, value) in [("dependency", self.dependency), ("passes", self.passes)] {
            if !(1.0..=1e6).contains(&value) {
                return refuse(key, value, "1 to 1,000,000");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_24_programs_with_different_names() {
        let programs = StreamProgram::spec2000();
        let names: std::collections::BTreeSet<&str> =
            programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!((programs.len(), names.len()), (24, 24));
    }

    #[test]
    fn a_program_that_cannot_be_is_refused_by_key() {
        let text = "[[program]]\nname = 'p'\nload = 0.2\n\
            store = 0.1\nbranch = 0.1\nfp = 0.0\nmispredicted = 0.01\ndependency = 3.0\n\
            code = 100\nhot_code = 60\nhot = 0.5\nloop_code = 50\npasses = 10.0\n\
            data = [{ kib = 4, share = 1.0, pattern = 'random' }]\n";
        assert_eq!(StreamProgram::parse(text).unwrap().len(), 1);
        for (from, to) in [
            ("load = 0.2", "load = 0.9"),
            ("share = 1.0", "share = 0.5"),
            ("share = 1.0", "share = nan"),
            ("kib = 4", "kib = 0"),
            ("loop_code = 50", "loop_code = 101"),
            ("hot_code = 60", "hot_code = 0"),
            ("hot = 0.5", "hot = 1.5"),
            ("dependency = 3.0", "dependency = nan"),
            ("passes = 10.0", "passes = 0.5"),
        ] {
            let error = StreamProgram::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(matches!(error, SmtError::Value { .. }), "{to}: {error}");
        }
    }
}
