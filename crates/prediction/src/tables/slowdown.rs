//! The slowdown table: the share of its performance that an instance keeps when one of its threads
//! has co-runners.
//!
//! blackbox-scheduler.txt, section 3.1.1, "Collision in shared hardware resources". A target thread
//! runs in a core-local domain with every layout of stressing threads around it. The rest of its
//! instance runs elsewhere, and the instance is measured. This table holds the reciprocal of the
//! paper's slowdown: performance with the layout / performance alone. The smallest share of several
//! threads is their largest slowdown, and a prediction multiplies where it would divide.

use crate::tables::experiment::{Experiment, reachable, stress};
use crate::{CoreLocal, Layouts, ThreadKinds};

/// What share of its performance an instance keeps, by the kind of the thread concerned and the
/// layout around it.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowdownTable {
    layouts: Layouts,
    /// `shares[kind * layouts.count() + layout]`; NaN for what was not measured.
    shares: Vec<f64>,
}

impl SlowdownTable {
    /// An empty table; `None` if it would have more than 2^26 layouts.
    pub fn new(thread_kinds: &ThreadKinds, local: &CoreLocal) -> Option<Self> {
        let layouts = Layouts::new(local, thread_kinds.kinds().len())?;
        let shares = vec![f64::NAN; layouts.count().checked_mul(layouts.kinds())?];
        Some(Self { layouts, shares })
    }

    /// An empty table of these layouts, few enough to have been numbered.
    pub(crate) fn of(layouts: Layouts) -> Self {
        let shares = vec![f64::NAN; layouts.count() * layouts.kinds()];
        Self { layouts, shares }
    }

    /// A table for the layouts that the workload has threads for. `performance` of the watched
    /// instance in each experiment fills it (higher is better). A layout whose experiment does not
    /// fit on the machine stays empty.
    ///
    /// # Errors
    /// The first that `performance` gives.
    pub fn fill<E>(
        &mut self,
        thread_kinds: &ThreadKinds,
        local: &CoreLocal,
        mut performance: impl FnMut(&Experiment) -> Result<f64, E>,
    ) -> Result<(), E> {
        let mut alone = f64::NAN;
        // By kind, and the layouts of each build begin with the thread alone.
        for (kind, layout) in reachable(thread_kinds, &self.layouts) {
            let Some(experiment) = stress(thread_kinds, local, &self.layouts, kind, layout) else {
                continue;
            };
            let measured = performance(&experiment)?;
            if self.layouts.is_alone(layout) {
                alone = measured;
            }
            self.set(kind, layout, measured / alone);
        }
        Ok(())
    }

    /// Enters what share of its performance alone an instance keeps while its thread of `kind` has
    /// `layout` around it.
    ///
    /// # Panics
    /// If there is no such kind or layout.
    pub fn set(&mut self, kind: usize, layout: usize, share: f64) {
        assert!(layout < self.layouts.count(), "layout {layout} does not exist");
        self.shares[kind * self.layouts.count() + layout] = share;
    }

    /// The share kept; `None` if that was not measured.
    ///
    /// # Panics
    /// If there is no such kind or layout.
    pub fn share(&self, kind: usize, layout: usize) -> Option<f64> {
        assert!(layout < self.layouts.count(), "layout {layout} does not exist");
        Some(self.shares[kind * self.layouts.count() + layout]).filter(|share| !share.is_nan())
    }

    /// The most that is kept for a kind of threads in any layout; minus infinity if nothing is
    /// known.
    pub(crate) fn best(&self, kind: usize) -> f64 {
        let shares =
            self.shares.iter().skip(kind * self.layouts.count()).take(self.layouts.count());
        shares.copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Layout and share of every slot of a domain of this build. `held` has for each 0, or 1 + the
    /// kind of the thread on it. NaN for what was not measured, and on empty slots.
    ///
    /// # Panics
    /// If there is no such build or kind, or `held` is not as long as it has slots.
    pub(crate) fn shares_within(&self, build: usize, held: &[u8]) -> Vec<(usize, f64)> {
        let held: Vec<usize> = held.iter().copied().map(usize::from).collect();
        let mut around = vec![0; held.len()];
        self.layouts.around(build, &held, &mut around);
        let share = |(held, layout): (&usize, usize)| {
            let known = held.checked_sub(1).and_then(|kind| self.share(kind, layout));
            (layout, known.unwrap_or(f64::NAN))
        };
        held.iter().zip(around).map(share).collect()
    }

    /// How layouts are numbered.
    pub fn layouts(&self) -> &Layouts {
        &self.layouts
    }
}
