//! What is asked about the number, for placing the program as well: `tune`.

use super::arguments::{Asked, Least};
use super::usage;
use crate::output::Usage;
use pinwise_jobs::{Reading, Request, Subject};
use pinwise_placement::{Budget, Number};
use pinwise_present::quoted;
use pinwise_programs::{Recipe, Setter};
use pinwise_threads::{Formula, standing};
use pinwise_topology::Alike;
use std::time::Duration;

impl Asked {
    /// Decides what progress is so that it can be compared between placements: a metric, or whole
    /// runs.
    pub(crate) fn for_placing(mut self) -> Result<Self, Usage> {
        match self.machine.machine.as_str() {
            "host" => {}
            "ultrasparc-t2" => {
                return Err(Usage(
                    "on the model ultrasparc-t2 programs have as many threads as their instances: pinwise place --machine ultrasparc-t2 \
                     --workload NAME:INSTANCES places these"
                        .into(),
                ));
            }
            model => {
                return Err(Usage(format!(
                    "the machine {model} is a model of a scheduler, on which threads have no fixed place: pinwise threads --machine {model} \
                     finds the number alone"
                )));
            }
        }
        if self.objective != Least::Time {
            return Err(Usage(
                "placements are compared by time: --objective is for pinwise threads".into(),
            ));
        }
        if self.set.as_ref().is_some_and(Setter::counts_contexts) {
            return Err(Usage(
                "cpuset: and quota: set how many CPUs the program may use, and a placement says which: pinwise threads for the one, pinwise \
                 place for the other"
                    .into(),
            ));
        }
        if self.metric.is_none() && self.set.is_some() {
            return Err(Usage(
                "how fast a program that goes on running is with a placement takes a metric that can be read from outside: --metric \
                 'cmd:…', prom:URL#SERIES, netdev:IFACE:FIELD, io:rchar or file:PATH:REGEX"
                    .into(),
            ));
        }
        self.whole_run |= self.metric.is_none();
        Ok(self)
    }

    /// The same with another budget.
    pub(crate) fn within(self, budget: Duration) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Share of the best speed that fewer threads may cost.
    pub(crate) fn tolerance(&self) -> f64 {
        self.within
    }

    /// The threads that the search for the number counts for `n`: a first one that waits is none,
    /// where each n makes one.
    pub(crate) fn threads(&self, n: u32) -> u32 {
        let formula = self.threads_per_n.clone().unwrap_or_else(Formula::identity);
        standing(n, |threads| formula.parameter(threads), |n| formula.threads(n)).max(1)
    }

    /// The number that makes so many threads, or as near to them as can be.
    pub(crate) fn number(&self, threads: u32) -> u32 {
        self.threads_per_n.as_ref().map_or(threads, |formula| formula.parameter(threads))
    }

    /// Each measurement is a run from start to end.
    pub(crate) fn whole_run(&self) -> bool {
        self.whole_run
    }

    /// The number is changed while the program runs.
    pub(crate) fn is_set(&self) -> bool {
        self.set.is_some()
    }

    /// The process that runs already, where it is one.
    pub(crate) fn process(&self) -> Option<i32> {
        self.pid
    }

    /// The command line of the program, as a shell takes it.
    pub(crate) fn typed(&self) -> String {
        // The place of the number needs no quotes.
        let plain = |word: &str| {
            quoted(&word.replace(Number::PLACE, "n")) == word.replace(Number::PLACE, "n")
        };
        let words =
            self.command.iter().map(|word| if plain(word) { word.clone() } else { quoted(word) });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The command that gives a running program the number `n`.
    pub(crate) fn set_command(&self, n: u32) -> Option<String> {
        match &self.set {
            Some(Setter::Command(command)) => Some(command.replace("{n}", &n.to_string())),
            _ => None,
        }
    }

    /// How the program is started; `None` for a process that runs already.
    pub(crate) fn recipe(&self) -> Result<Option<Recipe>, Usage> {
        if self.pid.is_some() {
            return Ok(None);
        }
        let (command, env) = (self.command.clone(), &self.env);
        let recipe = if self.is_set() {
            Recipe::fixed(command, env, None)
        } else {
            Recipe::new(command, env, None)
        };
        recipe.map(Some).map_err(usage)
    }

    /// The request to place `subject` with the progress that was asked for.
    pub(crate) fn request(&self, subject: Subject, budget: Budget) -> Request {
        let metric = self.metric.clone().unwrap_or_else(|| "runtime".into());
        let mut request = Request {
            reading: Reading {
                pick: self.pick.clone(),
                counter: if self.counter { Some(true) } else { self.gauge.then_some(false) },
                lower_is_better: self.lower_is_better,
                unit: self.unit.clone(),
            },
            period: self.probe,
            limit: self.limit,
            ..Request::new(subject, metric, budget)
        };
        request.question.alike = Alike::ExceptNuma;
        request
    }
}
