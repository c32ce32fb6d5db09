//! Profiling: which experiments to make, and what follows from those that were made.
//!
//! **As published** (blackbox-scheduler.txt, section 3.1.1) every entry of the base time tables and
//! of the slowdown table is measured.
//!
//! **Reduced**, the base tables are measured, and a part of the slowdown table that is chosen on
//! the way:
//!
//! 1. A *frame*: each kind of thread with one other thread, and with as many as fit. The others are
//!    of each kind at each level.
//! 2. *Batches*. The known entries forecast every other entry ([`forecast`]). Most of a batch are
//!    the entries that the best assignments read if every entry is at its optimistic end. The
//!    others are read by assignments drawn where good ones are expected. An entry is left out if it
//!    decides nothing, because another thread of the instance certainly keeps less.
//! 3. The *check*. Every entry of a batch was forecast before it was measured. The errors of these
//!    forecasts, in the deviations they stated, stretch the stated intervals. The randomly drawn
//!    entries show how often intervals held.
//! 4. The *end* comes when two things hold. The best assignment is predicted from measured entries
//!    alone (or nearly so). No assignment would be predicted better by more than asked for. That
//!    holds even with every other entry at the upper end of its interval. It also comes when the
//!    allowed experiments are used up.
//!
//! A forecast never replaces a measurement.
//!
//! A base table too large to be listed is sampled either way ([`base_profile`]).

mod base_profile;
mod batch;
mod check;
mod error;
mod forecast;
mod site;

use crate::tables::experiment;
use crate::{
    BaseSpace, BlackBox, Build, CoreLocal, Experiment, Layouts, PlacedInstance, SlowdownTable,
    ThreadKinds,
};
use base_profile::{BaseProfile, HIGH, LOW, ROUNDS};
pub use check::Checked;
use check::Checks;
pub use error::ProfilingError;
use forecast::{DEVIATIONS, Forecast};
use pinwise_topology::{Assignment, Random, SharingTree, Space};
use serde::{Deserialize, Serialize};
use site::Sites;
use std::collections::BTreeMap;

/// More entries than this are not measured unless all are. From there on, forecasts cost more than
/// they save.
const MOST_REDUCED: usize = 800;

/// A table with no more entries than this is measured. Forecasts from fewer entries are not worth
/// it.
const LEAST_REDUCED: usize = 20;

/// Most entries of a slowdown table that are enumerated. A table of eight roles on the UltraSPARC
/// T2 has 653,400.
const MOST_ENTRIES: usize = 1 << 20;

/// What the instances of a workload do alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solo {
    /// The sum over them of the best that each did; 0 before any was measured.
    pub sum: f64,
    /// Relative standard deviation of one measurement.
    pub noise: f64,
    /// Degrees of freedom of that: 0 if nothing says how measurements scatter.
    pub degrees: f64,
}

/// One entry of a table to be measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableEntry {
    /// The base performance of an application in an assignment, as [`BaseSpace::experiments`] gives
    /// it.
    Base(usize, Assignment),
    /// What a kind of threads keeps with a layout around.
    Slowdown(usize, usize),
}

/// A profile in the making.
#[derive(Clone, Debug)]
pub struct Profiling {
    thread_kinds: ThreadKinds,
    local: CoreLocal,
    layouts: Layouts,
    /// By application.
    bases: Vec<BaseProfile>,
    sites: Sites,
    /// By site. An entry that cannot be measured is known to keep nothing.
    measured: Vec<Option<f64>>,
    /// Performance alone, by kind and build of domains.
    alone: Vec<Vec<Option<f64>>>,
    /// Relative standard deviation of one measurement, as large as it may well be:
    /// [`Profiling::noise`].
    noise: f64,
    /// Slowdown entries that may be measured.
    most: usize,
    asked: usize,
    stage: ProfilingStage,
    /// By site, after the last batch.
    forecasts: Vec<Forecast>,
    /// What was asked last and not learned yet, and whether it was drawn.
    forecast: BTreeMap<usize, bool>,
    checks: Checks,
    ended: Option<ProfilingEnd>,
    /// The most, as a share, by which another assignment may be predicted better.
    within: f64,
}

/// Why profiling ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfilingEnd {
    /// Every entry of the tables was measured.
    EveryEntry,
    /// Every entry that good assignments read was measured.
    GoodEntries,
    /// Measuring every entry would change little.
    Settled {
        /// At the end, an assignment would be predicted better by at most this share.
        gap: f64,
    },
    /// All allowed experiments were made.
    Allowed {
        /// How many.
        experiments: usize,
    },
    /// There are no others to make.
    AllMade,
    /// Measuring ended first.
    Unended,
    /// Text: from a store that was written before reasons had kinds.
    Text {
        /// The sentence.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(ProfilingEnd);

#[derive(Clone, Copy, Debug, PartialEq)]
enum ProfilingStage {
    Begin,
    Frame,
    Batches,
    /// With this many rounds of proposals for base tables done.
    Bases(usize),
    End,
}

impl Profiling {
    /// The profile of `thread_kinds` on `tree`, within the domains of `local`. It makes at most a
    /// `share` of its experiments; with 1 all of them, as published. It makes fewer if no
    /// assignment would be predicted better by more than `within`.
    ///
    /// # Errors
    /// An instance that does not fit the machine. Too many layouts of threads within a domain.
    pub fn new(
        tree: &SharingTree,
        thread_kinds: ThreadKinds,
        local: CoreLocal,
        share: f64,
        within: f64,
    ) -> Result<Self, ProfilingError> {
        let (kinds, level) = (thread_kinds.kinds().len(), local.level());
        let slots = local.builds().iter().map(Build::slots).max().unwrap_or_default();
        let base =
            |application| BaseProfile::new(tree, &thread_kinds, application, local.per_context());
        let bases = (0..thread_kinds.applications()).map(base).collect::<Result<Vec<_>, _>>()?;
        let layouts = Layouts::new(&local, kinds);
        let too_many = ProfilingError::TooManyLayouts { kinds, slots, level };
        let layouts = layouts.ok_or(too_many.clone())?;
        let entries = experiment::reachable(&thread_kinds, &layouts);
        if entries.len() > MOST_ENTRIES {
            return Err(too_many);
        }
        let sites = Sites::new(&thread_kinds, &local, &layouts, entries);
        let all = Self {
            measured: vec![None; sites.len()],
            alone: vec![vec![None; local.builds().len()]; kinds],
            noise: 0.0,
            forecasts: vec![Forecast::UNKNOWN; sites.len()],
            thread_kinds,
            local,
            layouts,
            bases,
            sites,
            most: usize::MAX,
            asked: 0,
            stage: ProfilingStage::Begin,
            forecast: BTreeMap::new(),
            checks: Checks::default(),
            ended: None,
            within,
        };
        Ok(all.reduced(share))
    }

    /// The same profile before its first experiment, with at most a `share` of its experiments.
    #[must_use]
    pub fn reduced(self, share: f64) -> Self {
        if share >= 1.0 {
            return self;
        }
        let base = self.whole_base_experiments() as f64;
        Self { most: self.most.min(Self::allowed(share, base, self.sites.len())), ..self }
    }

    /// How many of `entries` of a slowdown table may be measured. With all `base` experiments of
    /// the base tables they are at most `share` of both. Base tables that are sampled do not count:
    /// a sample is a small share of its table. It is always at least 20, even if the base
    /// tables alone exceed the share. It is at most 800 unless all are measured.
    pub fn allowed(share: f64, base: f64, entries: usize) -> usize {
        // Below 0 if the base tables are more; as a count that is none.
        let room = share * (base + entries as f64) - base;
        let allowed = if share >= 1.0 { entries } else { (room as usize).min(MOST_REDUCED) };
        allowed.max(LEAST_REDUCED).min(entries)
    }

    /// Entries of the slowdown table there are, and how many were asked for.
    pub fn slowdown_entries(&self) -> (usize, usize) {
        (self.sites.len(), self.asked)
    }

    /// Kind and layout of every entry of the slowdown table, in the order of these.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sites.iter().map(|site| (site.kind, site.layout))
    }

    /// Entries of the slowdown table that were measured.
    pub fn slowdown_measured(&self) -> usize {
        self.measured.iter().flatten().count()
    }

    /// Entries of it that are measured at most.
    pub fn most(&self) -> usize {
        self.most.min(self.sites.len())
    }

    /// Experiments that fill the base time tables: at most, if one is sampled.
    pub fn base_experiments(&self) -> usize {
        self.bases.iter().map(|base| base.experiments).sum()
    }

    /// Experiments of the base time tables that are measured whole.
    pub fn whole_base_experiments(&self) -> usize {
        let whole = self.bases.iter().filter(|base| !base.is_sampled());
        whole.map(|base| base.experiments).sum()
    }

    /// The assignments of the applications whose base time tables are sampled.
    pub fn sampled(&self) -> impl Iterator<Item = &BaseSpace> {
        self.bases.iter().filter(|base| base.is_sampled()).map(BaseProfile::space)
    }

    /// Entries of the base time tables that were measured.
    pub fn base_measured(&self) -> usize {
        self.bases.iter().map(|base| base.values().len()).sum()
    }

    /// What the instances do alone. It takes the best of several measurements, so it is rather too
    /// high. That is the safe side of a bound. There is no bound if a table is sampled.
    pub fn solo(&self) -> Solo {
        let best = |application: usize| {
            self.bases[application].values().values().copied().fold(0.0, f64::max)
        };
        let (noise, degrees) = self.scatter();
        Solo {
            sum: self
                .thread_kinds
                .instances()
                .iter()
                .map(|instance| best(instance.application))
                .sum(),
            noise,
            degrees,
        }
    }

    /// How good forecasts were; nothing if everything was measured.
    pub fn checked(&self) -> Checked {
        self.checks.checked()
    }

    /// Why profiling ended; `None` before.
    pub fn ended(&self) -> Option<&ProfilingEnd> {
        self.ended.as_ref()
    }

    /// The experiment that fills an entry.
    pub fn experiment(&self, entry: &TableEntry) -> Option<Experiment> {
        match entry {
            TableEntry::Base(application, assignment) => {
                let placed = PlacedInstance {
                    application: *application,
                    leaves: assignment.leaves().to_vec(),
                };
                Some(Experiment { instances: vec![placed] })
            }
            TableEntry::Slowdown(kind, layout) => {
                experiment::stress(&self.thread_kinds, &self.local, &self.layouts, *kind, *layout)
            }
        }
    }

    /// Enters what an experiment gave; `None` if it cannot be made.
    pub fn learn(&mut self, entry: &TableEntry, performance: Option<f64>) {
        match entry {
            TableEntry::Base(application, assignment) => {
                self.bases[*application].enter(assignment, performance.unwrap_or(0.0));
            }
            TableEntry::Slowdown(kind, layout) => {
                let alone = &mut self.alone[*kind][self.layouts.build(*layout)];
                if self.layouts.is_alone(*layout) {
                    *alone = performance;
                }
                let share = performance.zip(*alone).map_or(0.0, |(with, alone)| with / alone);
                let Some(site) = self.sites.number(*kind, *layout) else { return };
                self.measured[site] = Some(share);
                if let Some(drawn) = self.forecast.remove(&site).filter(|_| share > 0.0) {
                    self.checks.enter(&self.forecasts[site], share, self.noise, drawn);
                }
            }
        }
    }

    /// What to measure next: entries that can be measured in any order; nothing once profiling has
    /// ended. What was asked for before has been learned by then.
    pub fn next(&mut self, space: &Space, random: &mut Random) -> Vec<TableEntry> {
        loop {
            match self.stage {
                ProfilingStage::Begin => {
                    // Beside nobody first: what all shares are shares of.
                    self.stage = ProfilingStage::Frame;
                    let mut bases = Vec::new();
                    for (application, base) in self.bases.iter().enumerate() {
                        let first = base.first(random).into_iter();
                        bases.extend(first.map(|name| TableEntry::Base(application, name)));
                    }
                    let alone = (0..self.sites.len())
                        .filter(|site| self.layouts.is_alone(self.sites.at(*site).layout))
                        .collect();
                    return [bases, self.ask(alone)].concat();
                }
                ProfilingStage::Frame if self.most == usize::MAX => {
                    self.end(ProfilingEnd::EveryEntry);
                    let rest: Vec<usize> = (0..self.sites.len())
                        .filter(|site| self.measured[*site].is_none())
                        .collect();
                    if !rest.is_empty() {
                        return self.ask(rest);
                    }
                }
                ProfilingStage::Frame => {
                    self.stage = ProfilingStage::Batches;
                    let mut frame = self.sites.frame();
                    // A frame larger than half of what is allowed leaves too little to choose.
                    random.shuffle(&mut frame);
                    let left = self.most.saturating_sub(self.asked);
                    let rest = frame.split_off(left.div_ceil(2).min(frame.len()));
                    // But where a kind of threads has no co-runners in a build of domains, nothing
                    // can be forecast there.
                    for site in rest {
                        let of =
                            |site: &usize| (self.sites.at(*site).kind, self.sites.at(*site).build);
                        if frame.len() < left && !frame.iter().any(|other| of(other) == of(&site)) {
                            frame.push(site);
                        }
                    }
                    return self.ask(frame);
                }
                ProfilingStage::Batches => {
                    self.noise = self.noise();
                    self.bases.iter_mut().for_each(BaseProfile::learn);
                    self.forecasts = forecast::forecast(
                        &self.sites,
                        &self.measured,
                        self.noise,
                        self.checks.stretch(),
                    );
                    let left = self.most.saturating_sub(self.asked);
                    if left == 0 {
                        self.end(ProfilingEnd::Allowed { experiments: self.asked });
                        continue;
                    }
                    let (batch, drawn) = self.batch(space, random, left);
                    if let Some(why) = self.enough(space, random, batch.len()) {
                        self.end(why);
                        continue;
                    }
                    self.forecast =
                        batch.iter().map(|site| (*site, drawn.contains(site))).collect();
                    return self.ask(batch);
                }
                ProfilingStage::Bases(rounds) => {
                    self.bases.iter_mut().for_each(BaseProfile::learn);
                    let proposed = if rounds < ROUNDS && self.sampled().next().is_some() {
                        self.propose(space, random)
                    } else {
                        Vec::new()
                    };
                    if proposed.is_empty() {
                        self.stage = ProfilingStage::End;
                    } else {
                        self.stage = ProfilingStage::Bases(rounds + 1);
                    }
                    return proposed;
                }
                ProfilingStage::End => return Vec::new(),
            }
        }
    }

    /// The predictor, with forecasts for what was not measured.
    pub fn blackbox(&self) -> BlackBox {
        self.blackbox_of(0.0, |forecast| forecast.share)
    }

    /// Predictors of the ends of intervals. If every entry were measured, the predictions would lie
    /// between them. Each entry that was not counts at 95 % confidence.
    pub fn ends(&self) -> [BlackBox; 2] {
        [
            self.blackbox_of(LOW, |forecast| forecast.low),
            self.blackbox_of(HIGH, |forecast| forecast.high),
        ]
    }

    /// Forecasts of the base tables are `deviations` of their errors above the middle.
    fn blackbox_of(&self, deviations: f64, of: impl Fn(&Forecast) -> f64) -> BlackBox {
        let mut slowdown = SlowdownTable::of(self.layouts.clone());
        for (number, site) in self.sites.iter().enumerate() {
            slowdown.set(site.kind, site.layout, of(&self.forecast(number)));
        }
        let bases = self.bases.iter().map(|base| base.table(deviations)).collect();
        BlackBox::new(self.thread_kinds.clone(), self.local.clone(), bases, slowdown)
    }

    /// The entries of sampled base tables that the best assignments read. First come assignments
    /// that are best if every forecast of a base table is too low by its error.
    fn propose(&mut self, space: &Space, random: &mut Random) -> Vec<TableEntry> {
        let mut best = self.best(&self.blackbox_of(1.0, |known| known.share), space, random);
        best.extend(self.best(&self.blackbox(), space, random));
        let mut proposed = Vec::new();
        for (application, base) in self.bases.iter_mut().enumerate() {
            let read = best.iter().flat_map(|assignment| {
                let own = self.thread_kinds.instances().iter();
                own.filter(|instance| instance.application == application).map(|instance| {
                    let leaves = instance.threads.iter().map(|thread| assignment.leaves()[*thread]);
                    Assignment::new(leaves.collect())
                })
            });
            let names = base.propose(read).into_iter();
            proposed.extend(names.map(|name| TableEntry::Base(application, name)));
        }
        proposed
    }

    fn end(&mut self, why: ProfilingEnd) {
        self.stage = ProfilingStage::Bases(0);
        self.ended = Some(why);
    }

    fn ask(&mut self, sites: Vec<usize>) -> Vec<TableEntry> {
        self.asked += sites.len();
        let sites = sites.into_iter().map(|site| self.sites.at(site));
        sites.map(|site| TableEntry::Slowdown(site.kind, site.layout)).collect()
    }

    /// Relative standard deviation of one measurement, and its degrees of freedom. It comes from
    /// experiments that measure the same: an instance with each thread alone in a domain. One is
    /// for the base table, and one for each kind without neighbours, on the same kinds of cores.
    fn scatter(&self) -> (f64, f64) {
        let (mut squares, mut degrees) = (0.0, 0.0f64);
        for (application, base) in self.bases.iter().enumerate() {
            let mut same: BTreeMap<Assignment, Vec<f64>> = BTreeMap::new();
            for (kind, alone) in self.alone.iter().enumerate() {
                if self.thread_kinds.kinds()[kind].application != application {
                    continue;
                }
                for (build, value) in alone.iter().enumerate() {
                    let Some(value) = *value else { continue };
                    let entry = TableEntry::Slowdown(kind, self.layouts.of(build).start);
                    let Some(spread) = self.experiment(&entry) else { continue };
                    let name =
                        base.space().name(&Assignment::new(spread.instances[0].leaves.clone()));
                    same.entry(name).or_default().push(value);
                }
            }
            for (name, mut values) in same {
                values.extend(base.values().get(&name));
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                squares += values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>();
                degrees += (values.len() - 1) as f64;
            }
        }
        ((squares / degrees.max(1.0)).sqrt(), degrees)
    }

    fn noise(&self) -> f64 {
        let (scatter, degrees) = self.scatter();
        // From few, it may well be larger: the t-quantile over the normal one (Abramowitz and
        // Stegun, 26.7.5).
        let (z, degrees) = (DEVIATIONS, degrees.max(1.0));
        let wide = 1.0
            + (z.powi(2) + 1.0) / (4.0 * degrees)
            + (5.0 * z.powi(4) + 16.0 * z.powi(2) + 3.0) / (96.0 * degrees.powi(2));
        wide * scatter
    }

    /// What the tables say of an entry, measured or not.
    fn forecast(&self, number: usize) -> Forecast {
        self.measured[number].map_or(self.forecasts[number], Forecast::exact)
    }
}

#[cfg(test)]
mod tests;
