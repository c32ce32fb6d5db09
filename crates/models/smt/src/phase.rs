//! Programs whose statistics change from phase to phase.

use crate::{SmtError, StreamProgram};
use serde::Deserialize;

/// A program that goes through its phases again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct PhasedProgram {
    /// Its name.
    pub name: String,
    /// Its phases, at least one.
    pub phases: Vec<ProgramPhase>,
}

/// A part of a program's run, in which its statistics do not change.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramPhase {
    /// Its mean length, in seconds alone.
    pub seconds: f64,
    /// The program in this phase.
    pub stream: StreamProgram,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhasesFile {
    program: Vec<PhasesEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhasesEntry {
    name: String,
    phases: Vec<PhaseEntry>,
}

/// A phase as it is written: what is not as in the program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseEntry {
    seconds: f64,
    fp: Option<f64>,
    dependency: Option<f64>,
    shares: Option<Vec<f64>>,
}

impl PhasedProgram {
    /// The programs of [`StreamProgram::spec2000`], two phases each. See
    /// `models/spec2000-phases.toml`.
    pub fn spec2000() -> Vec<Self> {
        let text = include_str!("../models/spec2000-phases.toml");
        Self::parse(text, &StreamProgram::spec2000()).expect("a test reads it")
    }

    /// The phases of these programs, from TOML.
    ///
    /// # Errors
    /// The text is no description, names no such program, or a phase cannot be.
    pub fn parse(text: &str, programs: &[StreamProgram]) -> Result<Vec<Self>, SmtError> {
        let file: PhasesFile =
            toml::from_str(text).map_err(|error| SmtError::Syntax(error.to_string()))?;
        file.program.into_iter().map(|entry| entry.of(programs)).collect()
    }
}

impl PhasesEntry {
    fn of(self, programs: &[StreamProgram]) -> Result<PhasedProgram, SmtError> {
        let name = self.name;
        let refuse = |key, value: &dyn ToString, reason| SmtError::Value {
            of: name.clone(),
            key,
            value: value.to_string(),
            reason,
        };
        let Some(program) = programs.iter().find(|program| program.name == name) else {
            return Err(refuse("name", &name, "the name of a program"));
        };
        if self.phases.is_empty() {
            return Err(refuse("phases", &0, "at least one"));
        }
        let mut phases = Vec::new();
        for phase in self.phases {
            if !(0.01..=1000.0).contains(&phase.seconds) {
                return Err(refuse("seconds", &phase.seconds, "0.01 to 1000"));
            }
            let mut stream = program.clone();
            stream.fp = phase.fp.unwrap_or(stream.fp);
            stream.dependency = phase.dependency.unwrap_or(stream.dependency);
            if let Some(shares) = phase.shares {
                if shares.len() != stream.data.len() {
                    return Err(refuse("shares", &shares.len(), "as many as the program's data"));
                }
                stream.data.iter_mut().zip(shares).for_each(|(data, share)| data.share = share);
            }
            stream.check()?;
            phases.push(ProgramPhase { seconds: phase.seconds, stream });
        }
        Ok(PhasedProgram { name, phases })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_two_phases_that_differ() {
        let programs = PhasedProgram::spec2000();
        let names: Vec<String> =
            StreamProgram::spec2000().into_iter().map(|one| one.name).collect();
        assert_eq!(
            programs.iter().map(|one| &one.name).collect::<Vec<_>>(),
            Vec::from_iter(&names)
        );
        for program in programs {
            assert_eq!(program.phases.len(), 2);
            assert_ne!(program.phases[0].stream, program.phases[1].stream, "{}", program.name);
        }
    }

    #[test]
    fn phases_that_cannot_be_are_refused_by_key() {
        let programs = StreamProgram::spec2000();
        let text = "[[program]]\nname = '252.eon'\nphases = [{ seconds = 1.0, fp = 0.1, \
                    shares = [0.5, 0.5] }]\n";
        assert_eq!(PhasedProgram::parse(text, &programs).unwrap()[0].phases.len(), 1);
        for (from, to, key) in [
            ("252.eon", "252.eonn", "name"),
            ("seconds = 1.0", "seconds = nan", "seconds"),
            ("fp = 0.1", "fp = 0.9", "load + store + branch + fp"),
            ("[0.5, 0.5]", "[1.0]", "shares"),
            ("[0.5, 0.5]", "[0.5, 0.4]", "data.share"),
        ] {
            let error = PhasedProgram::parse(&text.replacen(from, to, 1), &programs).unwrap_err();
            assert!(matches!(error, SmtError::Value { key: of, .. } if of == key), "{error}");
        }
        assert!(
            PhasedProgram::parse("[[program]]\nname = '252.eon'\nphases = []\n", &programs)
                .is_err()
        );
    }
}
