//! The program with any number of threads, as something that placements are tried on.

use crate::command::place::{self, Bed};
use crate::command::threads::Asked;
use crate::interrupt::Interrupt;
use crate::output::Usage;
use crate::request::{Request, Subject};
use pinwise_host::{LinuxProber, Recipe};
use pinwise_placement::Budget;
use std::collections::BTreeMap;
use std::time::Duration;

/// The program of a search.
pub(super) struct Crew<'a> {
    asked: &'a Asked,
    /// How it is started; `None` for a process that runs already.
    recipe: Option<Recipe>,
    /// Holds a program that goes on while its number changes.
    prober: LinuxProber,
    /// n where nobody decides; `None`: its variable is not set.
    pub(super) default: Option<u32>,
    /// CPUs it may use.
    cpus: u32,
    interrupt: &'a Interrupt,
}

impl<'a> Crew<'a> {
    /// `prober` is the one that found the number; `default` what the user says of the program's own.
    pub(super) fn new(
        asked: &'a Asked,
        prober: LinuxProber,
        default: Option<u32>,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Self> {
        let recipe = asked.recipe()?;
        let cpus = pinwise_host::machine()?.allowed.len() as u32;
        let by_variable = !asked.is_set() && recipe.as_ref().is_some_and(|recipe| !recipe.in_words());
        let default = default.or_else(|| (!by_variable).then_some(cpus));
        Ok(Self { asked, recipe, prober, default, cpus, interrupt })
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

    /// As [`Crew::request`]; without a number as nobody decides it. A program that goes on running is given the number.
    fn request_of(&mut self, n: Option<u32>, time: Duration) -> anyhow::Result<Request> {
        let subject = match (&self.recipe, self.asked.is_set()) {
            (_, true) => {
                self.prober.set(n.unwrap_or(self.cpus))?;
                let pid = self.prober.pid().ok_or_else(|| Usage("the program has ended".into()))?;
                Subject::Pids(vec![pid.0])
            }
            (Some(recipe), false) => {
                let words = recipe.words(n.unwrap_or(self.cpus));
                if self.asked.whole_run() { Subject::Rerun(words) } else { Subject::Launched(words) }
            }
            (None, false) => return Err(Usage("there is no program".into()).into()),
        };
        let environment = match (&self.recipe, n) {
            (Some(recipe), Some(n)) => recipe.environment(n),
            (Some(recipe), None) => recipe.fixed_environment(),
            (None, _) => BTreeMap::new(),
        };
        Ok(Request { environment, ..self.asked.request(subject, Budget::Time(time)) })
    }

    /// The program with `n`, ready to be measured; `known` are the threads that have places.
    pub(super) fn open(&mut self, n: Option<u32>, known: &[String]) -> anyhow::Result<Bed> {
        let mut request = self.request_of(n, Duration::ZERO)?;
        let allowed = pinwise_host::machine()?.allowed;
        request.affinities = known.iter().map(|name| (name.clone(), allowed.clone())).collect();
        place::open(&request, self.interrupt)
    }

    /// Whether every measurement starts the program anew: then several may stand ready at once.
    pub(super) fn starts_anew(&self) -> bool {
        self.asked.whole_run()
    }

    /// Gives a program that goes on running the number for good; what to tell about it.
    pub(super) fn settle(&mut self, n: u32) -> anyhow::Result<Option<String>> {
        self.prober.settle(n)?;
        Ok(self
            .asked
            .process()
            .map(|_| format!("n = {n} is set now; pinwise apply PLAN --pid PID pins as the plan says")))
    }
}
