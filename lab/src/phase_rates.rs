//! What phases of two programs do beside each other on a core, computed once.
//!
//! A phase is one of [`PhasedProgram::phases`]. All phases of all programs are numbered. Each runs
//! alone, from cold caches and from warm ones, and beside each phase of each other program. What
//! came out is kept in a file, so a study that is repeated begins at once. A file of other
//! descriptions or other cycles is not used.

use crate::parallel::each;
use pinwise_smt::{CounterValues, PhasedProgram, SmtCore, StreamProgram, events};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

const SEED: u64 = 1;

/// Events of every phase, alone and beside another.
#[derive(Debug)]
pub struct PhaseRates {
    /// The number of each program's first phase.
    firsts: Vec<usize>,
    alone: Vec<CounterValues>,
    /// Cycles that a phase loses until its data and code are in the caches.
    cold_cycles: Vec<f64>,
    /// By two phases: what the first does beside the second. `None` within one program.
    beside: Vec<Vec<Option<CounterValues>>>,
}

impl PhaseRates {
    /// Those of these programs: in the second number of `cycles`, after the first in which caches
    /// fill. They are read from `file`, and what is missing is computed and added.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn of(
        core: &SmtCore,
        programs: &[PhasedProgram],
        cycles: (u64, u64),
        file: &Path,
    ) -> io::Result<Self> {
        let mut firsts = vec![0];
        for program in programs {
            firsts.push(firsts[firsts.len() - 1] + program.phases.len());
        }
        let streams: Vec<&StreamProgram> =
            programs.iter().flat_map(|one| one.phases.iter().map(|phase| &phase.stream)).collect();
        let program_of = |phase: usize| firsts.iter().rposition(|&first| first <= phase);
        let mut wanted: Vec<Vec<usize>> = (0..streams.len()).map(|one| vec![one]).collect();
        for one in 0..streams.len() {
            let others = (one + 1..streams.len()).filter(|&two| program_of(one) != program_of(two));
            wanted.extend(others.map(|two| vec![one, two]));
        }
        let head = format!("{:x} {cycles:?} {SEED}", digest(&format!("{core:?}{streams:?}")));
        let mut known = read(file, &head)?;
        let missing: Vec<Vec<usize>> =
            wanted.iter().filter(|phases| !known.contains_key(*phases)).cloned().collect();
        if !missing.is_empty() {
            if known.is_empty() {
                fs::write(file, format!("{head}\n"))?;
            }
            let mut append = fs::OpenOptions::new().append(true).open(file)?;
            append.write_all(b"\n")?;
            let append = Mutex::new(append);
            let made = each(&missing, |phases| {
                let run: Vec<&StreamProgram> = phases.iter().map(|&phase| streams[phase]).collect();
                let mut values = events(core, &run, SEED, cycles.0, cycles.1);
                if let [alone] = run[..] {
                    values.extend(events(core, &[alone], SEED, 0, cycles.0));
                }
                let line = write_line(phases, &values);
                append.lock().expect("no other panics").write_all(line.as_bytes())?;
                Ok((phases.clone(), values))
            });
            for one in made {
                let (phases, values) = one.map_err(|error: io::Error| error)?;
                known.insert(phases, values);
            }
        }
        let phases = 0..streams.len();
        let beside = |one: usize, two: usize| {
            let values = known.get(&vec![one.min(two), one.max(two)])?;
            Some(values[usize::from(one > two)])
        };
        let cold = |one: usize| {
            let [warm, cold] = [0, 1].map(|part| known[&vec![one]][part]);
            (cold.cycles as f64 - cold.micro_ops as f64 / warm.per_cycle()).max(0.0)
        };
        Ok(Self {
            alone: phases.clone().map(|one| known[&vec![one]][0]).collect(),
            cold_cycles: phases.clone().map(cold).collect(),
            beside: phases
                .clone()
                .map(|one| phases.clone().map(|two| beside(one, two)).collect())
                .collect(),
            firsts,
        })
    }

    /// The number of a program's phase.
    pub fn phase(&self, program: usize, phase: usize) -> usize {
        self.firsts[program] + phase
    }

    /// Cycles that a phase loses, alone, until its data and code are in the caches.
    pub fn cold_cycles(&self, phase: usize) -> f64 {
        self.cold_cycles[phase]
    }

    /// Events of a phase, beside another one or alone.
    ///
    /// # Panics
    /// Both are of one program.
    pub fn events(&self, phase: usize, beside: Option<usize>) -> CounterValues {
        match beside {
            None => self.alone[phase],
            Some(other) => self.beside[phase][other].expect("phases of two programs"),
        }
    }
}

/// FNV-1a: tells descriptions apart.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The phases, eight numbers for each, and a point that shows that the line is whole.
fn write_line(phases: &[usize], values: &[CounterValues]) -> String {
    let mut numbers = values.iter().flat_map(|one| {
        let CounterValues { cycles, micro_ops, branches, mispredicted, .. } = *one;
        let misses = [one.trace_misses, one.l1_misses, one.l2_misses];
        [cycles, micro_ops, branches, mispredicted, misses[0], misses[1], misses[2], one.fp]
    });
    let words = |all: &mut dyn Iterator<Item = u64>| {
        all.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    };
    let phases = words(&mut phases.iter().map(|&phase| phase as u64));
    format!("{phases} : {} .\n", words(&mut numbers))
}

fn read(file: &Path, head: &str) -> io::Result<HashMap<Vec<usize>, Vec<CounterValues>>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let mut lines = text.lines();
    if lines.next() != Some(head) {
        return Ok(HashMap::new());
    }
    Ok(lines.filter_map(read_line).collect())
}

fn read_line(line: &str) -> Option<(Vec<usize>, Vec<CounterValues>)> {
    let (phases, numbers) = line.strip_suffix(" .")?.split_once(" : ")?;
    let phases = phases.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let numbers: Vec<u64> =
        numbers.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let values = numbers.chunks_exact(8).map(|of| CounterValues {
        cycles: of[0],
        micro_ops: of[1],
        branches: of[2],
        mispredicted: of[3],
        trace_misses: of[4],
        l1_misses: of[5],
        l2_misses: of[6],
        fp: of[7],
    });
    Some((phases, values.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLES: (u64, u64) = (20_000, 20_000);

    #[test]
    fn rates_are_read_again_as_they_were_computed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rates");
        let core = SmtCore::northwood();
        let programs = &PhasedProgram::spec2000()[6..8];
        let made = PhaseRates::of(&core, programs, CYCLES, &file).unwrap();
        let length = fs::metadata(&file).unwrap().len();
        let again = PhaseRates::of(&core, programs, CYCLES, &file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().len(), length);
        assert_eq!(format!("{made:?}"), format!("{again:?}"));
        let (one, two) = (made.phase(0, 1), made.phase(1, 0));
        let streams = [&programs[0].phases[1].stream, &programs[1].phases[0].stream];
        let direct = events(&core, &streams, SEED, CYCLES.0, CYCLES.1);
        assert_eq!([made.events(one, Some(two)), made.events(two, Some(one))], direct[..]);
        assert_eq!(
            made.events(one, None),
            events(&core, &streams[..1], SEED, CYCLES.0, CYCLES.1)[0]
        );
        // A line that was cut off is computed again, and another core's file is not used.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, &text[..text.len() - 9]).unwrap();
        let mended = PhaseRates::of(&core, programs, CYCLES, &file).unwrap();
        assert_eq!(format!("{made:?}"), format!("{mended:?}"));
        assert!(read(&file, "another").unwrap().is_empty());
    }
}
