//! The entries of a slowdown table that can be measured, numbered, with what is around the thread
//! of each.

use crate::tables::experiment;
use crate::{CoreLocal, Layouts, ThreadKinds};
use std::collections::{BTreeMap, HashMap};

/// A kind of threads with a layout around.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) kind: usize,
    pub(super) layout: usize,
    /// Of the domain.
    pub(super) build: usize,
    /// The threads of the layout by level, innermost first, and within by kind.
    pub(super) counts: Vec<f64>,
}

/// All of them: those that the workload has threads for and that fit on the machine.
#[derive(Clone, Debug)]
pub(super) struct Sites {
    all: Vec<Site>,
    /// The index of kind and layout.
    number: HashMap<(usize, usize), usize>,
    /// Of threads.
    kinds: usize,
}

impl Sites {
    /// Keeps the `entries`, kinds with layouts, that fit.
    pub(super) fn new(
        thread_kinds: &ThreadKinds,
        local: &CoreLocal,
        layouts: &Layouts,
        entries: Vec<(usize, usize)>,
    ) -> Self {
        let fits = |(kind, layout): &(usize, usize)| {
            experiment::stress(thread_kinds, local, layouts, *kind, *layout).is_some()
        };
        let site = |(kind, layout): (usize, usize)| {
            let build = layouts.build(layout);
            Site {
                kind,
                layout,
                build,
                counts: counts(local.builds()[build].arities(), layouts, layout),
            }
        };
        let all: Vec<Site> = entries.into_iter().filter(fits).map(site).collect();
        let number = all
            .iter()
            .enumerate()
            .map(|(number, site)| ((site.kind, site.layout), number))
            .collect();
        Self { all, number, kinds: thread_kinds.kinds().len() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.all.iter()
    }

    pub(super) fn at(&self, number: usize) -> &Site {
        &self.all[number]
    }

    pub(super) fn number(&self, kind: usize, layout: usize) -> Option<usize> {
        self.number.get(&(kind, layout)).copied()
    }

    /// The level of each of the [`Site::counts`] of a site.
    pub(super) fn levels(&self, site: &Site) -> Vec<usize> {
        (0..site.counts.len()).map(|count| count / self.kinds).collect()
    }

    /// One co-runner, and as many as fit, of each kind at each level alone.
    pub(super) fn frame(&self) -> Vec<usize> {
        let mut most: BTreeMap<(usize, usize, usize), (f64, usize)> = BTreeMap::new();
        let mut frame = Vec::new();
        for (number, site) in self.all.iter().enumerate() {
            let mut there = site.counts.iter().enumerate().filter(|(_, count)| **count > 0.0);
            let (Some((count, held)), None) = (there.next(), there.next()) else { continue };
            if *held == 1.0 {
                frame.push(number);
            }
            let corner = most.entry((site.kind, site.build, count)).or_insert((*held, number));
            if *held > corner.0 {
                *corner = (*held, number);
            }
        }
        frame.extend(most.into_values().filter(|(held, _)| *held > 1.0).map(|(_, number)| number));
        frame
    }

    /// Whether `more` holds for every kind at least as many threads as `less`, up to every level. A
    /// nearer thread slows down more.
    pub(super) fn burdens(&self, less: &[f64], more: &[f64]) -> bool {
        (0..self.kinds).all(|kind| {
            let (mut fewer, mut total) = (0.0, 0.0);
            (kind..less.len()).step_by(self.kinds).all(|count| {
                fewer += less[count];
                total += more[count];
                fewer <= total
            })
        })
    }
}

/// The threads of a layout by level, innermost first, and kind.
fn counts(arities: &[usize], layouts: &Layouts, layout: usize) -> Vec<f64> {
    let kinds = layouts.kinds();
    let mut counts = vec![0.0; kinds * arities.len()];
    for (slot, held) in
        layouts.example(layout).into_iter().enumerate().filter(|(_, held)| *held > 0)
    {
        let mut width = 1;
        for (level, arity) in arities.iter().rev().enumerate() {
            width *= arity;
            if slot < width {
                counts[level * kinds + held - 1] += 1.0;
                break;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use pinwise_topology::{Alike, DomainKind, Machine, SharingTree};

    #[test]
    fn company_nearer_and_more_of_it_burdens_more() {
        let tree = SharingTree::new(&Machine::from_shape("2x2x4").unwrap(), Alike::ByStructure);
        let (thread_kinds, local) = (
            ThreadKinds::new(&workload("RP RP")),
            CoreLocal::new(&tree, DomainKind::Package, 1).unwrap(),
        );
        let layouts = Layouts::new(&local, thread_kinds.kinds().len()).unwrap();
        let sites = Sites::new(
            &thread_kinds,
            &local,
            &layouts,
            experiment::reachable(&thread_kinds, &layouts),
        );
        // By level, innermost first: R and P near, then R and P farther.
        assert!(sites.burdens(&[1.0, 0.0, 0.0, 1.0], &[1.0, 1.0, 0.0, 0.0]));
        assert!(!sites.burdens(&[1.0, 1.0, 0.0, 0.0], &[1.0, 0.0, 0.0, 1.0]));
        assert!(!sites.burdens(&[0.0, 0.0, 1.0, 0.0], &[0.0, 0.0, 0.0, 2.0]), "of another kind");
    }
}
