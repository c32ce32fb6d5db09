//! The program with any number of threads, as something that placements are tried on.

use crate::command::threads::{Asked, Files};
use crate::output::{Interrupted, Usage};
use pinwise_jobs::{Bed, Caller, Interruption, JobError, Request, Subject, usable};
use pinwise_linux::{Pid, process};
use pinwise_measure::Effort;
use pinwise_placement::Budget;
use pinwise_programs::{LinuxProber, ProbeError, Recipe};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A program that goes on running is watched for so many windows at a time: it is started, or told
/// its number, anew for few.
const WINDOWS: f64 = 4.0;

/// The program of a search.
pub(super) struct Crew<'a> {
    asked: &'a Asked,
    files: &'a Files,
    /// How it is started; `None` for a process that runs already.
    recipe: Option<Recipe>,
    /// Holds a program that goes on while its number changes.
    prober: LinuxProber,
    /// n where nobody decides; `None`: its variable is not set.
    pub(super) default: Option<u32>,
    /// What to know about that.
    pub(super) note: Option<String>,
    /// CPUs it may run on.
    cpus: u32,
    caller: &'a Caller,
}

impl<'a> Crew<'a> {
    /// `prober` is the one that found the number; `default` what the user says of the program's
    /// own.
    pub(super) fn new(
        asked: &'a Asked,
        files: &'a Files,
        prober: LinuxProber,
        default: Option<u32>,
        caller: &'a Caller,
    ) -> anyhow::Result<Self> {
        let recipe = asked.recipe()?;
        // A program that counts CPUs sees its affinity, and no quota.
        let cpus = usable(&pinwise_linux::machine()?, asked.process().map(Pid))
            .map_err(|error| Usage(error.to_string()))?
            .allowed;
        let by_variable =
            !asked.is_set() && recipe.as_ref().is_some_and(|recipe| !recipe.in_words());
        let begun = prober.begun_with().filter(|_| asked.is_set());
        let own = begun
            .and_then(|threads| Some((threads, parameter_of(threads, prober.settled_with())?)));
        let (default, note) = match (
            default.map(|default| (default, None)).or_else(|| own.map(inferred)),
            begun,
        ) {
            (Some((default, note)), _) => (Some(default), note),
            (None, _) if by_variable => (None, None),
            (None, begun) => {
                let why = begun.map_or(String::new(), |threads| {
                    format!("its {threads} threads do not tell which n it began with: ")
                });
                let taken = "as many as CPUs it may run on, is taken for the default; --default N says otherwise";
                (Some(cpus), Some(format!("{why}n = {cpus}, {taken}")))
            }
        };
        Ok(Self { asked, files, recipe, prober, default, note, cpus, caller })
    }

    /// As the user would call it.
    pub(super) fn name(&self) -> String {
        let process = || self.asked.process().map_or_else(String::new, |pid| pid.to_string());
        self.recipe.as_ref().map_or_else(process, Recipe::name)
    }

    /// As typed, with the place of the number.
    pub(super) fn command(&self) -> Option<String> {
        self.recipe.as_ref().filter(|_| !self.asked.is_set()).map(|_| self.asked.typed())
    }

    /// The number of threads by default, as far as can be told.
    pub(super) fn default_count(&self) -> u32 {
        self.default.unwrap_or(self.cpus)
    }

    /// The environment variables that give it `n`.
    pub(super) fn environment(&self, n: u32) -> BTreeMap<String, String> {
        self.recipe.as_ref().map(|recipe| recipe.environment(n)).unwrap_or_default()
    }

    /// The command that gives it `n` while it runs.
    pub(super) fn set_command(&self, n: u32) -> Option<String> {
        self.asked.set_command(n)
    }

    /// The request to place it with `n` within `time`.
    pub(super) fn request(&mut self, n: u32, time: Duration) -> anyhow::Result<Request> {
        self.request_of(Some(n), time)
    }

    /// As [`Crew::request`]; without a number as nobody decides it. A program that goes on running
    /// is given the number.
    fn request_of(&mut self, n: Option<u32>, time: Duration) -> anyhow::Result<Request> {
        let subject = match (&self.recipe, self.asked.is_set()) {
            (_, true) => {
                let set = self.prober.set(n.unwrap_or(self.cpus));
                // Setting takes up to seconds: what ends it meanwhile ends the search, too.
                if self.caller.interrupt.came() {
                    return Err(Interrupted::amid().into());
                }
                let pid = self.prober.pid().filter(|&pid| !process::ended(pid));
                let pid = pid.ok_or_else(|| Usage(ended(set.as_ref().err())))?;
                set?;
                Subject::Pids(vec![pid.0])
            }
            (Some(recipe), false) => {
                let words = recipe.words(n.unwrap_or(self.cpus));
                if self.asked.whole_run() {
                    Subject::Rerun(words)
                } else {
                    Subject::Launched(words)
                }
            }
            (None, false) => return Err(Usage("there is no program".into()).into()),
        };
        let environment = match (&self.recipe, n) {
            (Some(recipe), Some(n)) => recipe.environment(n),
            (Some(recipe), None) => recipe.fixed_environment(),
            (None, _) => BTreeMap::new(),
        };
        let path = |path: &PathBuf| {
            let recipe = self.recipe.as_ref();
            recipe.map_or_else(|| path.clone(), |recipe| recipe.path(path, n.unwrap_or(self.cpus)))
        };
        let (output, remove) =
            (self.files.output.as_ref().map(path), self.files.remove.iter().map(path).collect());
        Ok(Request {
            environment,
            output,
            remove,
            ..self.asked.request(subject, Budget::Time(time))
        })
    }

    /// The program with `n`, ready to be measured; `known` are the threads that have places.
    pub(super) fn open(&mut self, n: Option<u32>, known: &[String]) -> anyhow::Result<Bed> {
        let mut request = self.request_of(n, Duration::ZERO)?;
        let allowed = pinwise_linux::machine()?.allowed;
        request.affinities = known.iter().map(|name| (name.clone(), allowed.clone())).collect();
        pinwise_jobs::open(&request, self.caller).map_err(|error| match error {
            JobError::Interrupted(Interruption { .. }) => Interrupted::amid().into(),
            JobError::Usage(reason) => Usage(reason).into(),
            error => error.into(),
        })
    }

    /// How long it is measured at a time, where it is started or told its number for few
    /// measurements.
    pub(super) fn effort(&self) -> Effort {
        Effort { windows: if self.starts_anew() { 1.0 } else { WINDOWS } }
    }

    /// Whether it goes on running while its number changes.
    pub(super) fn goes_on(&self) -> bool {
        self.asked.is_set()
    }

    /// The threads that the search for the number counts for `n`.
    pub(super) fn threads(&self, n: u32) -> u32 {
        self.asked.threads(n)
    }

    /// The number that makes so many threads, or as near to them as can be.
    pub(super) fn number(&self, threads: u32) -> u32 {
        self.asked.number(threads)
    }

    /// Whether every measurement starts the program anew: then several may stand ready at once.
    pub(super) fn starts_anew(&self) -> bool {
        self.asked.whole_run()
    }

    /// Gives a program that goes on running the number for good; what to tell about it.
    pub(super) fn settle(&mut self, n: u32) -> anyhow::Result<Option<String>> {
        self.prober.settle(n)?;
        Ok(self.asked.process().map(|_| {
            format!("n = {n} is set now; pinwise apply PLAN --pid PID pins as the plan says")
        }))
    }
}

/// That the program has ended, as what met it says.
fn ended(met: Option<&ProbeError>) -> String {
    met.map_or_else(|| "the program has ended".into(), ToString::to_string)
}

/// What `threads` before the search are taken to say, the number it began with, and how to say
/// otherwise.
fn inferred((threads, n): (u32, u32)) -> (u32, Option<String>) {
    let told = "each number that was tried made as many more than itself";
    let note = format!(
        "its {threads} threads before the search are taken for n = {n}, {told}; --default N says otherwise"
    );
    (n, Some(note))
}

/// The number that makes so many threads, where several were tried and all made as many more than
/// their number; `settled` are those with the threads each made. `None`: that does not tell.
fn parameter_of(threads: u32, settled: &[(u32, u32)]) -> Option<u32> {
    let more = |&(n, made): &(u32, u32)| i64::from(made) - i64::from(n);
    let first = settled.first()?;
    let tells = settled.iter().any(|one| one.0 != first.0)
        && settled.iter().all(|one| more(one) == more(first));
    u32::try_from(i64::from(threads) - more(first)).ok().filter(|&n| tells && n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_a_program_began_with_is_told_by_its_threads_or_not_at_all() {
        let workers = [(2, 3), (4, 5), (2, 3)];
        assert_eq!((parameter_of(5, &workers), parameter_of(9, &workers)), (Some(4), Some(8)));
        assert_eq!(parameter_of(1, &workers), None, "no number makes one");
        assert_eq!(parameter_of(9, &[(2, 9), (4, 9)]), None, "a pool that keeps the others asleep");
        assert_eq!(parameter_of(11, &[(1, 5), (2, 9)]), None, "several threads for each");
        assert_eq!(
            parameter_of(5, &[(2, 3), (4, 5), (8, 12)]),
            None,
            "one that made as many is chance"
        );
        assert_eq!(
            (parameter_of(3, &[(2, 3)]), parameter_of(7, &[])),
            (None, None),
            "one number is none to compare"
        );
    }
}
