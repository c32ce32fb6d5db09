//! Metis tables: how long MapReduce programs run, by placement policy and number of threads, as
//! MCTOP's authors measured them.
//!
//! The benchmark suite Metis on three machines, in the two forms in which `LPD-EPFL/mctop`
//! publishes its results. The first is a table for each program: policies in rows, numbers of
//! threads in columns. Each cell has time in ms, power in W and energy in J. The second is repeats
//! of single cells:
//!
//! ```text
//! ./bin/lpdquad/kmeans -- 10 16 5000000 40 --
//! Alloc policy              12                     24
//! MCTOP_ALLOC_SEQUENTIAL    1899  302.00 573.49    1587  326.30 517.84
//!
//! kmeans 10 16 5000000 40
//! MCTOP_ALLOC_SEQUENTIAL   40
//! Time  911      897
//! Pow   182.328  185.721
//! Ene   166.100  166.592
//! ```
//!
//! Tables of ratios (`-- VS. seq`) follow from the others and are passed over.
//!
//! **Robust reading.** Energy is time times power, to the digits printed. A run that says otherwise
//! by more than 1 % is impossible. It is left out and named. A table of another machine holds a
//! time of 199,768,580 ms.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The programs of one file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MetisTable {
    /// In the order of the file; one name may occur with several arguments.
    pub programs: Vec<MetisProgram>,
    /// Runs that were left out.
    pub left_out: Vec<ImpossibleRun>,
}

/// One program with its arguments.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MetisProgram {
    /// `kmeans`
    pub name: String,
    /// `10 16 5000000 40`
    pub arguments: String,
    /// The machine, if the file says it (`lpdquad`).
    pub machine: Option<String>,
    /// Runs by policy (`SEQUENTIAL`, `MIN_LAT_CORES`, `NONE` for the operating system's own
    /// placement, …) and number of threads. A cell whose runs were all impossible is empty.
    pub cells: BTreeMap<(String, u32), Vec<MetisRun>>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetisRun {
    /// Wall-clock time in seconds, above 0.
    pub seconds: f64,
    /// Average power in watts.
    pub watts: f64,
    /// Energy in joules.
    pub joules: f64,
}

/// A run whose figures contradict each other.
#[derive(Clone, Debug, PartialEq)]
pub struct ImpossibleRun {
    /// The line of its energy, from 1.
    pub line: usize,
    /// The run as the file has it.
    pub run: MetisRun,
}

/// A line that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Metis table, line {line}: {reason}")]
pub struct MetisError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// How far energy may be from time times power.
const CONSISTENT: f64 = 0.01;

impl MetisTable {
    /// Reads a file of either form. Error: the line that does not fit.
    pub fn parse(text: &str) -> Result<Self, MetisError> {
        let mut reader = Reader::default();
        for (line, text) in (1..).zip(text.lines()) {
            reader.line(line, text.trim()).map_err(|reason| MetisError { line, reason })?;
        }
        // Any text has lines that could be titles.
        if reader.table.programs.iter().all(|program| program.cells.is_empty()) {
            return Err(MetisError {
                line: text.lines().count().max(1),
                reason: "no runs up to here".into(),
            });
        }
        Ok(reader.table)
    }
}

impl MetisProgram {
    /// The numbers of threads that `policy` was measured with, ascending.
    #[cfg(test)]
    fn numbers(&self, policy: &str) -> Vec<u32> {
        let cells = self.cells.iter().filter(|((of, _), runs)| of == policy && !runs.is_empty());
        cells.map(|((_, threads), _)| *threads).collect()
    }

    /// The median time in seconds (the lower of two) with a policy and a number of threads. `None`
    /// if there is no run.
    pub fn seconds(&self, policy: &str, threads: u32) -> Option<f64> {
        median(self.cells.get(&(policy.to_owned(), threads))?)
    }

    /// The policy, number of threads and median seconds of the fastest cell; of equals the one with
    /// fewer threads.
    pub fn fastest(&self) -> Option<(&str, u32, f64)> {
        let timed = self.cells.iter().filter_map(|((policy, threads), runs)| {
            Some((policy.as_str(), *threads, median(runs)?))
        });
        timed.min_by(|a, b| a.2.total_cmp(&b.2).then(a.1.cmp(&b.1)))
    }
}

fn median(runs: &[MetisRun]) -> Option<f64> {
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len().checked_sub(1)? / 2).copied()
}

/// What has been read so far, and in which part of the file.
#[derive(Default)]
struct Reader {
    table: MetisTable,
    section: Section,
}

#[derive(Default)]
enum Section {
    /// Before the first program, or behind a title whose numbers are not read.
    #[default]
    Nothing,
    /// Behind the title of a program.
    Program,
    /// In a table with these numbers of threads.
    Table(Vec<u32>),
    /// In repeats of one cell: what was read of it.
    Cell { policy: String, threads: u32, times: Option<Vec<f64>>, powers: Option<Vec<f64>> },
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((&first, rest)) = words.split_first() else { return Ok(()) };
        if let Some(policy) = first.strip_prefix("MCTOP_ALLOC_") {
            return self.policy(number, policy, rest);
        }
        match (first, rest.first()) {
            ("Time" | "Pow" | "Ene", _) => self.repeats(number, first, rest),
            ("Alloc", Some(&"policy")) => {
                if !matches!(self.section, Section::Nothing) {
                    self.section = Section::Table(
                        rest[1..].iter().map(|word| threads(word)).collect::<Result<_, _>>()?,
                    );
                }
                Ok(())
            }
            _ => {
                self.title(line);
                Ok(())
            }
        }
    }

    /// `./bin/MACHINE/NAME -- ARGUMENTS --`, or `NAME ARGUMENTS`.
    fn title(&mut self, line: &str) {
        let (path, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let arguments = arguments.trim();
        if arguments.starts_with("-- VS.") {
            self.section = Section::Nothing;
            return;
        }
        let arguments = arguments.strip_prefix("--").unwrap_or(arguments);
        let arguments = arguments.strip_suffix("--").unwrap_or(arguments).trim().to_owned();
        let mut parts = path.rsplit('/');
        let name = parts.next().unwrap_or(path).to_owned();
        let machine =
            parts.next().filter(|part| !part.is_empty() && *part != ".").map(str::to_owned);
        self.table.programs.push(MetisProgram { name, arguments, machine, cells: BTreeMap::new() });
        self.section = Section::Program;
    }

    /// A row of a table, or the head of a cell.
    fn policy(&mut self, number: usize, policy: &str, rest: &[&str]) -> Result<(), String> {
        match &self.section {
            Section::Nothing if self.table.programs.is_empty() => {
                Err("a policy before any program".into())
            }
            Section::Nothing => Ok(()),
            Section::Table(columns) => {
                let values = numbers(rest)?;
                if values.len() != 3 * columns.len() {
                    let expected = 3 * columns.len();
                    return Err(format!(
                        "{} values for {} numbers of threads; expected {expected}",
                        values.len(),
                        columns.len()
                    ));
                }
                for (threads, run) in columns.clone().into_iter().zip(values.as_chunks::<3>().0) {
                    self.add(number, policy, threads, &[*run])?;
                }
                Ok(())
            }
            Section::Program | Section::Cell { .. } => {
                let [count] = rest else {
                    return Err(format!(
                        "{} values behind a policy; expected its threads",
                        rest.len()
                    ));
                };
                self.section = Section::Cell {
                    policy: policy.into(),
                    threads: threads(count)?,
                    times: None,
                    powers: None,
                };
                Ok(())
            }
        }
    }

    fn repeats(&mut self, number: usize, what: &str, rest: &[&str]) -> Result<(), String> {
        let values = numbers(rest)?;
        let Section::Cell { policy, threads, times, powers } = &mut self.section else {
            return Err(format!("'{what}' without a policy and its threads"));
        };
        match (what, times.take(), powers.take()) {
            ("Time", None, None) => *times = Some(values),
            ("Pow", Some(before), None) => (*times, *powers) = (Some(before), Some(values)),
            ("Ene", Some(times), Some(powers))
                if times.len() == powers.len() && times.len() == values.len() =>
            {
                let runs: Vec<[f64; 3]> = times
                    .iter()
                    .zip(&powers)
                    .zip(&values)
                    .map(|((&time, &power), &energy)| [time, power, energy])
                    .collect();
                let (policy, threads) = (std::mem::take(policy), *threads);
                self.section = Section::Program;
                self.add(number, &policy, threads, &runs)?;
            }
            ("Ene", Some(_), Some(_)) => {
                return Err("times, powers and energies are not equally many".into());
            }
            _ => return Err(format!("'{what}' is out of order; expected Time, Pow, Ene")),
        }
        Ok(())
    }

    /// Keeps the runs of a cell that are possible.
    fn add(
        &mut self,
        line: usize,
        policy: &str,
        threads: u32,
        runs: &[[f64; 3]],
    ) -> Result<(), String> {
        let program = self.table.programs.last_mut().ok_or("runs before any program")?;
        let mut kept = Vec::new();
        for &[milliseconds, watts, joules] in runs {
            let run = MetisRun { seconds: milliseconds / 1000.0, watts, joules };
            let expected = run.seconds * run.watts;
            if run.seconds > 0.0 && (run.joules - expected).abs() <= CONSISTENT * expected {
                kept.push(run);
            } else {
                self.table.left_out.push(ImpossibleRun { line, run });
            }
        }
        match program.cells.insert((policy.to_owned(), threads), kept) {
            None => Ok(()),
            Some(_) => Err(format!("{policy} with {threads} threads appears twice")),
        }
    }
}

fn threads(word: &str) -> Result<u32, String> {
    word.parse()
        .ok()
        .filter(|&count| count > 0)
        .ok_or(format!("'{word}': expected a number of threads"))
}

fn numbers(words: &[&str]) -> Result<Vec<f64>, String> {
    let number = |word: &&str| {
        let number = word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or(format!("'{word}': expected a number"))
    };
    words.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "./bin/box/count -- -n 100 --\nAlloc policy   2   4\n\
        MCTOP_ALLOC_NONE        2000   50.00 100.00   199768580  60.00 72.00\n\
        MCTOP_ALLOC_SEQUENTIAL  1500   60.00 90.00    1000   80.00 80.00\n\
        ./bin/box/count -- VS. seq\nMCTOP_ALLOC_NONE  1.333  0.833  1.111  1.000  1.000  1.000\n";
    const REPEATS: &str = "count -n 100\nMCTOP_ALLOC_SEQUENTIAL   4\nTime\t1000   1100   \
        900\nPow\t80.0   80.0   80.0\nEne\t80.0   88.0   720\n\nMCTOP_ALLOC_NONE   2\nTime 10\nPow \
        5\nEne 0.05\n";

    #[test]
    fn a_table_is_read_and_its_impossible_value_left_out() {
        let table = MetisTable::parse(TABLE).unwrap();
        let [program] = table.programs.as_slice() else { panic!("{table:?}") };
        assert_eq!((program.name.as_str(), program.arguments.as_str()), ("count", "-n 100"));
        assert_eq!(program.machine.as_deref(), Some("box"));
        assert_eq!(program.seconds("NONE", 2), Some(2.0));
        assert_eq!(program.seconds("NONE", 4), None, "energy contradicts time");
        assert_eq!(table.left_out.len(), 1);
        assert_eq!((table.left_out[0].line, table.left_out[0].run.seconds), (3, 199_768.58));
        assert_eq!(program.fastest(), Some(("SEQUENTIAL", 4, 1.0)));
        assert_eq!(program.numbers("SEQUENTIAL"), [2, 4]);
        assert_eq!(program.numbers("NONE"), [2]);
    }

    #[test]
    fn repeats_are_read_and_their_median_is_that_of_the_possible_ones() {
        let table = MetisTable::parse(REPEATS).unwrap();
        let program = &table.programs[0];
        assert_eq!(
            (program.name.as_str(), program.arguments.as_str(), &program.machine),
            ("count", "-n 100", &None)
        );
        assert_eq!(program.cells[&("SEQUENTIAL".into(), 4)].len(), 2);
        assert_eq!(program.seconds("SEQUENTIAL", 4), Some(1.0));
        assert_eq!(program.fastest(), Some(("NONE", 2, 0.01)));
        assert_eq!(table.left_out.len(), 1);
    }

    #[test]
    fn errors_name_the_line() {
        let refuse = |text: &str| MetisTable::parse(text).unwrap_err().to_string();
        assert_eq!(
            refuse("MCTOP_ALLOC_NONE 4"),
            "Metis table, line 1: a policy before any program"
        );
        assert!(
            refuse("p\nAlloc policy 2 x").contains("line 2: 'x': expected a number of threads")
        );
        assert!(
            refuse("p\nAlloc policy 2\nMCTOP_ALLOC_NONE 5 5")
                .contains("2 values for 1 numbers of threads; expected 3")
        );
        assert!(
            refuse("p\nAlloc policy 2 2\nMCTOP_ALLOC_NONE 1 1 0.001 1 1 0.001")
                .contains("NONE with 2 threads appears twice")
        );
        assert!(refuse("p\nMCTOP_ALLOC_NONE").contains("0 values behind a policy"));
        assert_eq!(refuse("Dear\nreader"), "Metis table, line 2: no runs up to here");
        assert!(refuse("p\nTime 5").contains("'Time' without a policy"));
        let cell = |lines: &str| refuse(&format!("p\nMCTOP_ALLOC_NONE 2\n{lines}"));
        assert!(cell("Pow 5").contains("line 3: 'Pow' is out of order"));
        assert!(cell("Time 5\nTime 5").contains("line 4: 'Time' is out of order"));
        assert!(
            cell("Time 5 5\nPow 5\nEne 5")
                .contains("line 5: times, powers and energies are not equally many")
        );
        assert!(cell("Time -5").contains("'-5': expected a number"));
    }

    #[test]
    fn the_published_tables_are_read_whole() {
        let Some(folder) = crate::cells::folder() else { return };
        let read = |name: &str| {
            MetisTable::parse(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
        };
        // Programs, policies, numbers of threads, runs of each.
        for (name, machine, policies, threads) in [
            ("metis-lpdquad.txt", "lpdquad", 6, [12, 24, 48, 96]),
            ("metis-lpdxeon2680.txt", "lpdxeon2680", 8, [10, 20, 30, 40]),
        ] {
            let table = read(name);
            assert_eq!((table.programs.len(), table.left_out.len()), (18, 0), "{name}");
            for program in &table.programs {
                assert_eq!(program.machine.as_deref(), Some(machine));
                assert_eq!(
                    program.cells.len(),
                    policies * threads.len(),
                    "{name} {}",
                    program.name
                );
                assert!(program.cells.values().all(|runs| runs.len() == 1));
                assert_eq!(program.numbers("SEQUENTIAL"), threads);
            }
        }
        let kmeans = &read("metis-lpdquad.txt").programs[0];
        assert_eq!(kmeans.seconds("MIN_LAT_CORES", 12), Some(0.846));
        assert_eq!(kmeans.fastest(), Some(("MIN_LAT_HWCS", 24, 0.763)));
        let repeats = read("metis-final-lpdxeon2680.txt");
        assert_eq!(repeats.left_out, []);
        let cells = || repeats.programs.iter().flat_map(|program| program.cells.values());
        assert_eq!((cells().count(), cells().map(Vec::len).sum::<usize>()), (34, 374));
    }
}
