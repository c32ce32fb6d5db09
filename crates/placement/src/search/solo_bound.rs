//! The bound from instances alone. It rests on no predictor and no tail.
//!
//! If co-runners never make an instance faster, a sum bounds every assignment of the workload. It
//! is the sum over its instances of the best that each does alone. An application has few
//! assignments alone (three threads on an 8x2x4 machine have 11). So the bound costs a few dozen
//! measurements, whatever the size of the space. It is tight if the best assignment suffers little
//! from contention.
//!
//! Every assignment of one instance of each application is measured [`WINDOWS`] times. If noise
//! matters, those that may be the best get [`AGAIN`] more. For each application, the upper end
//! takes the highest upper end of any of its assignments. The truly best one is among them, so no
//! correction for several is needed. It spends half of the error that the confidence allows. The
//! other half remains for the second bound ([`Alone::beside`]). The lower of the two is claimed.

use crate::StopReason;
use crate::search::history::History;
use crate::search::proposer::{Next, Proposer, View, trial};
use crate::statistics::{mean, squares, t_quantile};
use crate::{Budget, PlacementQuestion};
use num_bigint::BigUint;
use pinwise_campaign::Purpose;
use pinwise_measure::{Setting, Workload};
use pinwise_prediction::{BaseSpace, Experiment, PlacedInstance, ThreadKinds};
use pinwise_topology::{PerContext, Space};

/// Windows of each assignment.
const WINDOWS: usize = 2;
/// Further windows of those that may be the best.
const AGAIN: usize = 4;
/// Relative noise of a window up to which there are none.
const QUIET: f64 = 0.002;
/// More experiments than this are not made: a tenth of a usual budget.
const MOST: usize = 60;

/// The experiments, by application.
#[derive(Clone, Debug)]
pub(crate) struct SoloBound {
    applications: Vec<Application>,
    rounds: usize,
}

#[derive(Clone, Debug)]
struct Application {
    /// How many instances of it the workload has.
    instances: usize,
    settings: Vec<Setting>,
}

/// The bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alone {
    /// The sum of the best means.
    pub(crate) sum: f64,
    /// Its upper end.
    pub(crate) high: f64,
    /// Experiments it rests on.
    pub(crate) n: usize,
}

impl Alone {
    /// The confidence that another bound needs if this one exists. Then the lower of the two has
    /// `confidence`.
    pub(crate) fn beside(alone: Option<Self>, confidence: f64) -> f64 {
        if alone.is_some() { (1.0 + confidence) / 2.0 } else { confidence }
    }

    /// The same where the slowest of several nodes may have measured the best.
    pub(crate) fn widened(self, question: &PlacementQuestion) -> Self {
        Self { high: self.high * (1.0 + question.abilities.node_spread), ..self }
    }
}

impl SoloBound {
    /// `None` if instances cannot run alone, or if there is one only. Also if threads keep to some
    /// contexts, or if an instance has too many assignments.
    pub(crate) fn new(
        question: &PlacementQuestion,
        workload: &Workload,
        space: &Space,
    ) -> Option<Self> {
        let thread_kinds = ThreadKinds::new(workload);
        let profiled = question.abilities.profiles && !space.is_masked();
        if !profiled || thread_kinds.instances().len() < 2 {
            return None;
        }
        let mut applications = Vec::new();
        for application in 0..thread_kinds.applications() {
            let per_context = match space.per_context() {
                PerContext::AtMost(most) => most,
                PerContext::Any => thread_kinds.roster(application).len(),
            };
            let base =
                BaseSpace::new(space.tree(), &thread_kinds, application, per_context).ok()?;
            if base.count() > BigUint::from(10 * MOST) {
                return None;
            }
            let alone = |leaves: &[u32]| Experiment {
                instances: vec![PlacedInstance { application, leaves: leaves.to_vec() }],
            };
            applications.push(Application {
                instances: thread_kinds
                    .instances()
                    .iter()
                    .filter(|instance| instance.application == application)
                    .count(),
                settings: base
                    .experiments()
                    .map(|class| alone(class.leaves()).setting(&thread_kinds))
                    .collect(),
            });
        }
        let solo = Self { applications, rounds: 0 };
        (solo.experiments() <= MOST).then_some(solo)
    }

    fn experiments(&self) -> usize {
        self.settings().count()
    }

    fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.applications.iter().flat_map(|application| &application.settings)
    }

    /// The expected cost in trials, each a share `trial` of the budget. If instances must be
    /// started for a measurement, every repeat counts.
    pub(crate) fn cost(&self, question: &PlacementQuestion, trial: f64) -> f64 {
        let experiments = self.experiments() as f64;
        match (question.abilities.restart, question.budget) {
            (Some(restart), Budget::Time(whole)) => {
                let each = restart.as_secs_f64() / whole.as_secs_f64() / trial;
                (WINDOWS + AGAIN) as f64 * experiments * each
            }
            _ => WINDOWS as f64 * experiments,
        }
    }

    /// The bound on the whole from what was measured. `None` before everything was measured
    /// [`WINDOWS`] times, and if something could not be measured.
    pub(crate) fn alone(&self, history: &History, confidence: f64) -> Option<Alone> {
        let mut bound = Alone { sum: 0.0, high: 0.0, n: self.experiments() };
        for application in &self.applications {
            let (mut best, mut high) = (0.0f64, 0.0f64);
            for setting in &application.settings {
                let windows = history.alone(setting).filter(|windows| windows.len() >= WINDOWS)?;
                best = best.max(mean(windows));
                high = high.max(self.end(history, windows, confidence));
            }
            bound.sum += application.instances as f64 * best;
            bound.high += application.instances as f64 * high;
        }
        Some(bound)
    }

    /// The upper end of the mean of some windows.
    fn end(&self, history: &History, windows: &[f64], confidence: f64) -> f64 {
        let (noise, degrees) = self.noise(history);
        let quantile = if noise > 0.0 { t_quantile(confidence, degrees) } else { 0.0 };
        mean(windows) * (1.0 + quantile * noise / (windows.len() as f64).sqrt())
    }

    /// The standard deviation of one window relative to its mean, pooled, and its degrees of
    /// freedom.
    fn noise(&self, history: &History) -> (f64, f64) {
        let pairs = self
            .settings()
            .filter_map(|setting| history.alone(setting))
            .filter(|windows| windows.len() > 1);
        let (sum, degrees) = pairs.fold((0.0, 0.0), |(sum, degrees), windows| {
            (sum + squares(windows) / mean(windows).powi(2), degrees + (windows.len() - 1) as f64)
        });
        if degrees > 0.0 && sum.is_finite() {
            ((sum / degrees).sqrt(), degrees)
        } else {
            (0.0, 0.0)
        }
    }

    /// The assignments whose intervals reach the best of their application.
    fn contenders(&self, history: &History, confidence: f64) -> Vec<&Setting> {
        let mut contenders = Vec::new();
        for application in &self.applications {
            let known = || {
                application
                    .settings
                    .iter()
                    .filter_map(|setting| Some((setting, history.alone(setting)?)))
            };
            let best = known().map(|(_, windows)| mean(windows)).fold(0.0, f64::max);
            let reaches = |windows: &[f64]| {
                let end = self.end(history, windows, confidence);
                end >= best - (end - mean(windows))
            };
            contenders.extend(
                known().filter(|(_, windows)| reaches(windows)).map(|(setting, _)| setting),
            );
        }
        contenders
    }
}

impl Proposer for SoloBound {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        let alone = |setting: &Setting| trial(setting.clone(), Purpose::Profile);
        self.rounds += 1;
        let noisy = self.noise(view.history).0 > QUIET;
        match self.rounds {
            1 => {
                let all: Vec<_> = self.settings().map(alone).collect();
                Next::Profile(std::iter::repeat_n(all, WINDOWS).flatten().collect())
            }
            2 if noisy => {
                let again: Vec<_> = self
                    .contenders(view.history, view.question.confidence)
                    .into_iter()
                    .map(alone)
                    .collect();
                Next::Profile(std::iter::repeat_n(again, AGAIN).flatten().collect())
            }
            _ => Next::Done(StopReason::MeasuredAlone),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Budget, StrategyName, TestbedAbilities};
    use pinwise_campaign::Record;
    use pinwise_measure::{MeasureError, Measurement, Retry, Thread};
    use pinwise_topology::{Alike, Machine, SharingTree};
    use std::time::Duration;

    pub(crate) fn question() -> PlacementQuestion {
        able(None, Budget::Measurements(600))
    }

    /// On a testbed that measures instances alone. It starts them for that if `restart` says how
    /// long that takes.
    fn able(restart: Option<Duration>, budget: Budget) -> PlacementQuestion {
        let abilities = TestbedAbilities { profiles: true, restart, ..Default::default() };
        PlacementQuestion { abilities, ..PlacementQuestion::new(StrategyName::Auto, budget) }
    }

    /// Instances of two threads each; those marked have another second role.
    pub(crate) fn workload(instances: &[bool]) -> Workload {
        let thread = |index: usize| {
            let other = index % 2 == 1 && instances[index / 2];
            Thread::new(
                format!("t{index}"),
                ["a", "b", "c"][index % 2 + usize::from(other)],
                index / 2,
            )
        };
        Workload { name: "made up".into(), threads: (0..2 * instances.len()).map(thread).collect() }
    }

    pub(crate) fn space(threads: usize) -> Space {
        let tree = SharingTree::new(&Machine::from_shape("4x2").unwrap(), Alike::ByStructure);
        Space::new(tree, threads, PerContext::AtMost(1)).unwrap()
    }

    fn learn(history: &mut History, setting: &Setting, performance: Option<f64>) {
        let measured = |performance| Measurement::new(performance, Duration::ZERO);
        history.learn(&Record {
            number: 0,
            trial: trial(setting.clone(), Purpose::Profile),
            outcome: performance
                .map(measured)
                .ok_or_else(|| MeasureError::new(Retry::Other, "cannot run")),
            elapsed: Duration::ZERO,
        });
    }

    /// Fills a history with the `performance` of an application on its leaves.
    pub(crate) fn filled(
        solo: &SoloBound,
        performance: impl Fn(usize, &[u32]) -> Option<f64>,
        windows: usize,
    ) -> History {
        let mut history = History::default();
        for (number, application) in solo.applications.iter().enumerate() {
            for setting in &application.settings {
                let Setting::Profile(parts) = setting else { panic!("{setting:?}") };
                (0..windows).for_each(|_| {
                    learn(&mut history, setting, performance(number, &parts[0].leaves))
                });
            }
        }
        history
    }

    #[test]
    fn the_bound_is_the_sum_of_the_best_of_each() {
        // Two threads of one instance are on one core or on two.
        let solo =
            SoloBound::new(&question(), &workload(&[false, false, true]), &space(6)).unwrap();
        assert_eq!(solo.experiments(), 4);
        let law = |application: usize, leaves: &[u32]| {
            let together = leaves[0] / 2 == leaves[1] / 2;
            Some([1.0, 5.0][application] * if together { 1.5 } else { 2.0 })
        };
        let alone = solo.alone(&filled(&solo, law, 2), 0.95).unwrap();
        assert_eq!(alone, Alone { sum: 2.0 * 2.0 + 10.0, high: 14.0, n: 4 });
        let some_fail = |application: usize, leaves: &[u32]| {
            law(application, leaves).filter(|value| *value > 2.0)
        };
        assert_eq!(solo.alone(&filled(&solo, some_fail, 2), 0.95), None);
        assert_eq!(solo.alone(&filled(&solo, law, 1), 0.95), None, "its noise is not known");
        assert_eq!(solo.alone(&History::default(), 0.95), None);
    }

    #[test]
    fn its_upper_end_is_that_of_the_noise() {
        let solo = SoloBound::new(&question(), &workload(&[false, false]), &space(4)).unwrap();
        let mut history = History::default();
        for setting in solo.settings() {
            for window in [99.0, 101.0] {
                learn(&mut history, setting, Some(window));
            }
        }
        // One window scatters by sqrt(2) %, known from two pairs; t(0.975, 2) = 4.302653; two
        // windows each.
        let alone = solo.alone(&history, 0.95).unwrap();
        assert_eq!(alone.sum, 200.0);
        // The other side of 95 % is left to another bound.
        assert_eq!((Alone::beside(Some(alone), 0.95), Alone::beside(None, 0.95)), (0.975, 0.95));
        assert!(
            (alone.high - 200.0 * (1.0 + 4.302653 * 0.02f64.powi(2).sqrt() / 2.0)).abs() < 1e-3,
            "{alone:?}"
        );
        assert_eq!(solo.contenders(&history, 0.95).len(), 2);
    }

    #[test]
    fn its_cost_is_what_starting_instances_takes() {
        let solo =
            SoloBound::new(&question(), &workload(&[false, false, true]), &space(6)).unwrap();
        // Four experiments. A trial is 50 ms of 30 s, an instance takes 1.5 s to be started and
        // measured.
        let restart = Some(Duration::from_millis(1500));
        let time = Budget::Time(Duration::from_secs(30));
        let timed = able(restart, time);
        assert!((solo.cost(&timed, 0.05 / 30.0) - 4.0 * 6.0 * 30.0).abs() < 1e-6);
        assert_eq!(solo.cost(&able(None, time), 0.05 / 30.0), 8.0);
        // If the budget counts measurements, each is one.
        assert_eq!(solo.cost(&able(restart, Budget::Measurements(600)), 1.0 / 600.0), 8.0);
    }

    #[test]
    fn it_is_not_asked_for_where_it_cannot_be_had() {
        let alone = |question: &PlacementQuestion, instances: &[bool]| {
            SoloBound::new(question, &workload(instances), &space(2 * instances.len())).is_some()
        };
        assert!(alone(&question(), &[false, false]));
        assert!(!alone(&question(), &[false]), "one instance is the whole");
        assert!(!alone(
            &PlacementQuestion { abilities: TestbedAbilities::default(), ..question() },
            &[false, false]
        ));
        let mut large = workload(&[false; 4]);
        large.threads.iter_mut().for_each(|thread| thread.instance /= 2);
        large
            .threads
            .iter_mut()
            .enumerate()
            .for_each(|(index, thread)| thread.role = index.to_string());
        let tree = SharingTree::new(&Machine::from_shape("8x2x4").unwrap(), Alike::ByStructure);
        let space = Space::new(tree, 8, PerContext::AtMost(1)).unwrap();
        assert!(
            SoloBound::new(&question(), &large, &space).is_none(),
            "2 applications with 49 assignments each are too many"
        );
    }
}
