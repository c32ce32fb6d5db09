//! Where each thread may be: threads keep to their own masks.
//!
//! Threads with the same leaves are a *kind*. Leaves that the same kinds may use are a *cell*: only
//! within cells are leaves alike. A thread with one leaf has no choice. So it is of no kind: it
//! takes a place on its leaf, which is a cell alone.

use super::series::{Degrees, PowerSeries};
use crate::{Assignment, CpuSet, SharingTree};
use std::collections::BTreeMap;

/// Spaces are not counted if a product of their series takes more products of numbers than this.
/// To count up to it takes some seconds at most.
const MOST_TERMS: usize = 500_000;

/// The leaves of every thread.
#[derive(Clone, Debug)]
pub(super) struct Masks {
    /// By kind whether a leaf is one of its. The first kind may use all leaves.
    pub(super) kinds: Vec<Vec<bool>>,
    /// By kind its threads, ascending.
    pub(super) threads: Vec<Vec<usize>>,
    place: Vec<MaskedThread>,
    /// By leaf the number of threads that have only this one.
    pub(super) fixed: Vec<usize>,
    /// By leaf its cell.
    pub(super) cells: Vec<usize>,
}

/// What is known about one thread.
#[derive(Clone, Copy, Debug)]
enum MaskedThread {
    /// On a leaf of this kind.
    OfKind(usize),
    /// On this leaf alone.
    On(u32),
}

impl Masks {
    /// Of threads that keep to these CPUs; `None` may use all.
    pub(super) fn new(tree: &SharingTree, cpus: &[Option<CpuSet>]) -> Self {
        let leaves = tree.leaves().len();
        let mut masks = Self {
            kinds: vec![vec![true; leaves]],
            threads: vec![Vec::new()],
            place: Vec::new(),
            fixed: vec![0; leaves],
            cells: Vec::new(),
        };
        for (thread, own) in cpus.iter().enumerate() {
            let may: Vec<bool> = tree
                .leaves()
                .iter()
                .map(|cpu| own.as_ref().is_none_or(|own| own.contains(*cpu)))
                .collect();
            let only = may.iter().position(|may| *may);
            let alone = only.filter(|_| leaves > 1 && may.iter().filter(|may| **may).count() == 1);
            masks.place.push(match alone {
                Some(leaf) => {
                    masks.fixed[leaf] += 1;
                    MaskedThread::On(leaf as u32)
                }
                None => {
                    let known = masks.kinds.iter().position(|kind| *kind == may);
                    let kind = known.unwrap_or(masks.kinds.len());
                    if known.is_none() {
                        masks.kinds.push(may);
                        masks.threads.push(Vec::new());
                    }
                    masks.threads[kind].push(thread);
                    MaskedThread::OfKind(kind)
                }
            });
        }
        let mut cells = BTreeMap::new();
        let mut cell = |leaf: usize| {
            let kinds: Vec<bool> = masks.kinds.iter().map(|kind| kind[leaf]).collect();
            let next = cells.len();
            *cells.entry((kinds, (masks.fixed[leaf] > 0).then_some(leaf))).or_insert(next)
        };
        masks.cells = (0..leaves).map(&mut cell).collect();
        masks
    }

    /// Whether every thread may use every leaf.
    pub(super) fn is_open(&self) -> bool {
        self.threads[0].len() == self.place.len()
    }

    /// Whether a thread may be on a leaf.
    pub(super) fn may(&self, thread: usize, leaf: u32) -> bool {
        match self.place[thread] {
            MaskedThread::OfKind(kind) => self.kinds[kind][leaf as usize],
            MaskedThread::On(only) => only == leaf,
        }
    }

    /// The only leaf of a thread that has no choice.
    pub(super) fn only(&self, thread: usize) -> Option<u32> {
        match self.place[thread] {
            MaskedThread::OfKind(_) => None,
            MaskedThread::On(leaf) => Some(leaf),
        }
    }

    /// The degrees of the series that count: one variable per kind.
    pub(super) fn degrees(&self) -> Degrees {
        Degrees::up_to(&self.threads.iter().map(Vec::len).collect::<Vec<_>>())
    }

    /// The series of a leaf that holds at most `most` threads.
    pub(super) fn leaf(&self, degrees: &Degrees, leaf: usize, most: usize) -> PowerSeries {
        degrees.place(most.saturating_sub(self.fixed[leaf]), |kind| self.kinds[kind][leaf])
    }

    /// Whether the threads from `next` on find places beside `held` threads on every leaf, with at
    /// most `most` on each.
    pub(super) fn leave_room(&self, held: &[usize], next: usize, most: usize) -> bool {
        let room: usize = held.iter().map(|held| most.saturating_sub(*held)).sum();
        let mut guests: Vec<Vec<usize>> = vec![Vec::new(); held.len()];
        // Threads that may be anywhere take what the others leave.
        room >= self.place.len() - next
            && (next..self.place.len())
                .filter(|&thread| !matches!(self.place[thread], MaskedThread::OfKind(0)))
                .all(|thread| {
                    let mut seen = vec![false; held.len()];
                    self.admit(thread, held, most, &mut guests, &mut seen)
                })
    }

    /// Finds a place for a thread among others, which may have to move on (an augmenting path).
    fn admit(
        &self,
        thread: usize,
        held: &[usize],
        most: usize,
        guests: &mut Vec<Vec<usize>>,
        seen: &mut Vec<bool>,
    ) -> bool {
        for leaf in 0..held.len() {
            if !self.may(thread, leaf as u32) || std::mem::replace(&mut seen[leaf], true) {
                continue;
            }
            if held[leaf] + guests[leaf].len() < most {
                guests[leaf].push(thread);
                return true;
            }
            for place in 0..guests[leaf].len() {
                if self.admit(guests[leaf][place], held, most, guests, seen) {
                    guests[leaf][place] = thread;
                    return true;
                }
            }
        }
        false
    }

    /// Whether the number of assignments can be counted soon enough.
    pub(super) fn are_few(&self) -> bool {
        few(self.threads.iter().map(Vec::len))
    }

    /// Whether every thread is on one of its leaves.
    pub(super) fn allow(&self, assignment: &Assignment) -> bool {
        let leaves = assignment.leaves();
        leaves.len() == self.place.len()
            && leaves.iter().enumerate().all(|(thread, &leaf)| self.may(thread, leaf))
    }
}

/// Whether kinds with these numbers of threads can be counted soon enough. A product of series
/// takes each split of each number.
fn few(kinds: impl Iterator<Item = usize>) -> bool {
    let terms: Vec<usize> = kinds.filter(|n| *n > 0).map(|n| (n + 1) * (n + 2) / 2).collect();
    terms.len() < 2 || terms.iter().copied().fold(1, usize::saturating_mul) <= MOST_TERMS
}

/// Whether a [`super::Space`] can be made of threads that keep to these CPUs: see
/// [`super::SpaceError::TooManyMasks`].
pub fn are_countable<'a>(masks: impl IntoIterator<Item = &'a CpuSet>) -> bool {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for mask in masks.into_iter().filter(|mask| mask.len() > 1) {
        *kinds.entry(mask.to_mask()).or_default() += 1;
    }
    few(kinds.into_values())
}
