//! The base time table of one application in the making.
//!
//! A table that can be listed is measured as a whole. Of any other, [`DRAWN`] assignments are drawn
//! by chance. From these a model of an instance alone is learned ([`Learned`]). Later rounds add
//! what the assignments that are then predicted best read ([`BaseProfile::propose`]).

use crate::tables::base::SAMPLED;
use crate::tables::profiling::forecast::DEVIATIONS;
use crate::{BaseSpace, BaseTable, Colocation, Learned, Predictor, ThreadKinds};
use pinwise_topology::{Assignment, Random, SharingTree, SpaceError};
use std::collections::BTreeMap;

/// Drawn before anything is known.
const DRAWN: usize = 200;
/// Rounds after that, and the most that each measures.
pub(super) const ROUNDS: usize = 4;
const PROPOSED: usize = (SAMPLED - DRAWN) / ROUNDS;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct BaseProfile {
    space: BaseSpace,
    /// How many experiments there are at most.
    pub(super) experiments: usize,
    values: BTreeMap<Assignment, f64>,
    /// `None` if every assignment is measured.
    colocation: Option<Colocation>,
    learned: Option<Learned>,
    /// What was proposed and not measured yet, and how far forecasts of others were off.
    proposed: BTreeMap<Assignment, f64>,
    errors: Vec<f64>,
}

impl BaseProfile {
    /// Nothing measured yet.
    ///
    /// # Errors
    /// An instance that does not fit.
    pub(super) fn new(
        tree: &SharingTree,
        thread_kinds: &ThreadKinds,
        application: usize,
        per_context: usize,
    ) -> Result<Self, SpaceError> {
        let space = BaseSpace::new(tree, thread_kinds, application, per_context)?;
        let model = || Colocation::new(&thread_kinds.alone(application), tree);
        Ok(Self {
            experiments: space.experiment_count(),
            colocation: (!space.is_listed()).then(model),
            space,
            values: BTreeMap::new(),
            learned: None,
            proposed: BTreeMap::new(),
            errors: Vec::new(),
        })
    }

    pub(super) fn space(&self) -> &BaseSpace {
        &self.space
    }

    /// What was measured.
    pub(super) fn values(&self) -> &BTreeMap<Assignment, f64> {
        &self.values
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.colocation.is_some()
    }

    /// What to measure first: all, or a part that is drawn.
    pub(super) fn first(&self, random: &mut Random) -> Vec<Assignment> {
        if !self.is_sampled() {
            return self.space.experiments().collect();
        }
        let mut drawn = Vec::with_capacity(DRAWN);
        // Threads of one kind may have few different assignments. Then drawing ends all the same.
        for _ in 0..4 * DRAWN {
            let one = self.space.draw(random);
            if drawn.len() < DRAWN && !drawn.contains(&one) {
                drawn.push(one);
            }
        }
        drawn
    }

    /// Of what the best predicted assignments read, the first that were not measured.
    pub(super) fn propose(&mut self, read: impl Iterator<Item = Assignment>) -> Vec<Assignment> {
        let mut chosen = Vec::new();
        for placed in read {
            let name = self.space.name(&placed);
            let unknown = !self.values.contains_key(&name) && !chosen.contains(&name);
            if self.is_sampled() && unknown && chosen.len() < PROPOSED {
                chosen.push(name);
            }
        }
        if let Some(learned) = &self.learned {
            let forecast = |name: &Assignment| (name.clone(), learned.predict(name.leaves()));
            self.proposed = chosen.iter().map(forecast).collect();
        }
        chosen
    }

    /// Enters what an assignment did.
    pub(super) fn enter(&mut self, name: &Assignment, performance: f64) {
        if let Some(forecast) = self.proposed.remove(name).filter(|_| performance > 0.0) {
            self.errors.push(forecast / performance - 1.0);
        }
        self.values.insert(name.clone(), performance);
    }

    /// Learns from all that was measured, if this is a sample.
    pub(super) fn learn(&mut self) {
        let measured = self.values.iter().map(|(name, value)| (name.leaves(), *value));
        self.learned = self.colocation.as_ref().and_then(|colocation| colocation.learn(measured));
    }

    /// The table. Forecasts are `deviations` of their errors above the middle.
    pub(super) fn table(&self, deviations: f64) -> BaseTable {
        let table = BaseTable::of(self.space.clone(), self.values.clone());
        let Some(learned) = &self.learned else { return table };
        let factor = (1.0 + deviations * self.error(learned)).max(0.0);
        table.forecast(learned.clone(), factor)
    }

    /// Relative standard deviation of a forecast. It is that of left-out measurements or of what
    /// was proposed, whichever is larger.
    fn error(&self, learned: &Learned) -> f64 {
        let squares: f64 = self.errors.iter().map(|error| error * error).sum();
        learned.error().max((squares / self.errors.len().max(1) as f64).sqrt())
    }
}

/// Deviations that make the end of an interval.
pub(super) const LOW: f64 = -DEVIATIONS;
pub(super) const HIGH: f64 = DEVIATIONS;
