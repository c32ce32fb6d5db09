//! Hill climbing on the machine itself.
//!
//! From a good start, try small changes in random order and take the first that helps. A change
//! moves one thread to another context, or swaps two threads or two roles. A change that looks
//! better may only look so. Unless it is better by far more than the noise, it is *challenged*:
//! measured again, alternating with the incumbent. It stays only if these new windows agree. If no
//! change helps, climb again from the next best start.
//!
//! A start was chosen because its windows were good. So they overstate it, and nothing would look
//! better. If there is noise, the incumbent is therefore measured again before the first
//! comparison.

use crate::StopReason;
use crate::search::history::History;
use crate::search::proposer::{Next, Proposer, View, pinned};
use crate::statistics::mean;
use pinwise_campaign::{Purpose, Trial};
use pinwise_measure::Workload;
use pinwise_topology::{Assignment, Space};
use std::collections::{BTreeMap, BTreeSet};

/// Windows of each in a challenge.
const CHALLENGE: usize = 3;
/// Differences beyond this many standard errors need no challenge.
const CLEAR: f64 = 4.0;
/// Relative noise up to which windows repeat exactly but for rounding: a simulated processor.
const ROUNDING: f64 = 1e-9;
/// Climbs in a row that find nothing better, after which to stop.
const FRUITLESS: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Move {
    Thread { thread: usize, leaf: u32 },
    Swap(usize, usize),
    Roles(usize, usize),
}

#[derive(Clone, Debug)]
struct Ascent {
    incumbent: Assignment,
    /// The first of its windows that was not the reason to choose it.
    fresh_from: usize,
    /// Changes of the incumbent not yet tried, in random order.
    moves: Vec<Move>,
    /// The assignments to which they led so far.
    tried: BTreeSet<Assignment>,
    candidate: Option<Assignment>,
    challenged: bool,
}

#[derive(Debug)]
pub(crate) struct Climb {
    /// The threads of each role, in order.
    roles: Vec<Vec<usize>>,
    started: BTreeSet<Assignment>,
    ascent: Option<Ascent>,
    /// The highest summit so far.
    summit: Option<Assignment>,
    fruitless: usize,
}

impl Climb {
    pub(crate) fn new(workload: &Workload) -> Self {
        let mut roles: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, thread) in workload.threads.iter().enumerate() {
            roles.entry(&thread.role).or_default().push(index);
        }
        Self {
            roles: roles.into_values().collect(),
            started: BTreeSet::new(),
            ascent: None,
            summit: None,
            fruitless: 0,
        }
    }

    /// Climbs on from `incumbent`. Its last `fresh` windows were not the reason to choose it.
    fn begin(&mut self, incumbent: Assignment, fresh: usize, view: &mut View<'_>) {
        let mut moves = moves(&incumbent, view.space, &self.roles);
        view.random.shuffle(&mut moves);
        self.started.insert(incumbent.clone());
        let windows = view.history.class(&incumbent).map_or(0, |class| class.windows.len());
        let noisy = view.history.noise().is_some_and(|noise| noise > ROUNDING);
        let fresh_from = if noisy { windows - fresh.min(windows) } else { 0 };
        let tried = BTreeSet::new();
        self.ascent = Some(Ascent {
            incumbent,
            fresh_from,
            moves,
            tried,
            candidate: None,
            challenged: false,
        });
    }

    /// Takes note of a finished climb, and begins the next; why not, if there is none.
    fn restart(&mut self, view: &mut View<'_>) -> Result<(), StopReason> {
        if let Some(ascent) = self.ascent.take() {
            let height = |assignment: &Assignment| {
                view.history.mean(assignment).unwrap_or(f64::NEG_INFINITY)
            };
            match &self.summit {
                Some(summit) if height(&ascent.incumbent) <= height(summit) => self.fruitless += 1,
                _ => {
                    self.fruitless = 0;
                    self.summit = Some(ascent.incumbent);
                }
            }
        }
        let climbs = self.started.len();
        if self.fruitless >= FRUITLESS {
            return Err(StopReason::Fruitless { climbs: FRUITLESS as u64 });
        }
        let start = view
            .history
            .ranking()
            .into_iter()
            .map(|(assignment, _)| assignment)
            .find(|assignment| {
                !self.started.contains(assignment)
                    && view.history.class(assignment).is_some_and(|class| class.was_drawn())
            })
            .cloned();
        match start {
            Some(start) => {
                self.begin(start, 0, view);
                Ok(())
            }
            None => Err(StopReason::NoStartLeft { climbs: climbs as u64 }),
        }
    }
}

impl Ascent {
    /// How many windows the incumbent needs before anything is compared with it.
    fn windows_missing(&self, history: &History) -> usize {
        match history.class(&self.incumbent) {
            Some(class) if !class.failed && self.fresh_from > 0 => {
                CHALLENGE.saturating_sub(class.windows.len() - self.fresh_from)
            }
            _ => 0,
        }
    }

    /// Whether the candidate just measured replaces the incumbent; `None` asks for a challenge.
    fn verdict(&self, candidate: &Assignment, view: &View<'_>) -> Option<bool> {
        let windows = |assignment: &Assignment| match view.history.class(assignment) {
            Some(class) if !class.failed => class.windows.clone(),
            _ => Vec::new(),
        };
        let (new, mut old) = (windows(candidate), windows(&self.incumbent));
        old.drain(..self.fresh_from.min(old.len()));
        if new.is_empty() || old.is_empty() {
            return Some(!new.is_empty());
        }
        let last = |windows: &[f64]| windows[windows.len().saturating_sub(CHALLENGE)..].to_vec();
        let (new, old) = if self.challenged { (last(&new), last(&old)) } else { (new, old) };
        let difference = mean(&new) - mean(&old);
        let noise = view.history.noise().unwrap_or(0.0) * mean(&old).abs();
        let error = noise * (1.0 / new.len() as f64 + 1.0 / old.len() as f64).sqrt();
        if self.challenged {
            Some(difference > error)
        } else if difference <= 0.0 {
            Some(false)
        } else if difference > CLEAR * error {
            Some(true)
        } else {
            None
        }
    }

    /// The next different assignment that a change leads to.
    fn propose(&mut self, space: &Space, roles: &[Vec<usize>]) -> Option<Assignment> {
        while let Some(change) = self.moves.pop() {
            let changed = space.canonical(&apply(&self.incumbent, change, roles));
            if changed != self.incumbent && self.tried.insert(changed.clone()) {
                return Some(changed);
            }
        }
        None
    }
}

impl Proposer for Climb {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        loop {
            let Some(ascent) = &mut self.ascent else {
                match self.restart(view) {
                    Ok(()) => continue,
                    Err(why) => return Next::Done(why),
                }
            };
            let missing = ascent.windows_missing(view.history);
            if missing > 0 {
                return Next::Sequence(vec![pinned(&ascent.incumbent, Purpose::Climb); missing]);
            }
            if let Some(candidate) = ascent.candidate.clone() {
                match ascent.verdict(&candidate, view) {
                    Some(true) => {
                        let fresh = if ascent.challenged { CHALLENGE } else { 0 };
                        self.begin(candidate, fresh, view);
                        continue;
                    }
                    Some(false) => ascent.candidate = None,
                    None => {
                        ascent.challenged = true;
                        let pair = [&ascent.incumbent, &candidate]
                            .map(|assignment| pinned(assignment, Purpose::Climb));
                        return Next::Sequence((0..CHALLENGE).flat_map(|_| pair.clone()).collect());
                    }
                }
            }
            match ascent.propose(view.space, &self.roles) {
                Some(candidate) => {
                    ascent.challenged = false;
                    ascent.candidate = Some(candidate.clone());
                    // Seen before: what is known decides, or a challenge.
                    if view.history.class(&candidate).is_none() {
                        return Next::Sequence(vec![pinned(&candidate, Purpose::Climb)]);
                    }
                }
                None => {
                    if let Err(why) = self.restart(view) {
                        return Next::Done(why);
                    }
                }
            }
        }
    }

    /// Most changes do not help: the next ones that nothing is known of yet. One that helps makes
    /// the work after it useless. So such measurements take a quarter of the room at most.
    fn foresee(&self, space: &Space, history: &History, most: usize) -> Vec<Trial> {
        let Some(mut ascent) = self.ascent.clone() else { return Vec::new() };
        let changes = std::iter::from_fn(|| ascent.propose(space, &self.roles));
        let unknown = changes.filter(|changed| history.class(changed).is_none());
        unknown.take(most.div_ceil(4)).map(|changed| pinned(&changed, Purpose::Climb)).collect()
    }
}

fn moves(from: &Assignment, space: &Space, roles: &[Vec<usize>]) -> Vec<Move> {
    let (threads, leaves) = (from.threads(), space.tree().leaves().len());
    let mut moves = Vec::new();
    for thread in 0..threads {
        for leaf in (0..leaves).filter(|&leaf| leaf != from.leaf(thread)) {
            moves.push(Move::Thread { thread, leaf: leaf as u32 });
        }
        moves.extend((thread + 1..threads).map(|other| Move::Swap(thread, other)));
    }
    for (a, first) in roles.iter().enumerate() {
        // Swapping two single threads is a swap of threads already.
        let alike =
            (a + 1..roles.len()).filter(|&b| roles[b].len() == first.len() && first.len() > 1);
        moves.extend(alike.map(|b| Move::Roles(a, b)));
    }
    // A swap leaves as many threads on each context. With thousands of threads there are millions.
    let swaps_fit = space.allows(from);
    moves.retain(|&change| match change {
        Move::Swap(a, b) if swaps_fit => {
            space.may(a, from.leaf(b) as u32) && space.may(b, from.leaf(a) as u32)
        }
        _ => space.allows(&apply(from, change, roles)),
    });
    moves
}

fn apply(from: &Assignment, change: Move, roles: &[Vec<usize>]) -> Assignment {
    let mut leaves = from.leaves().to_vec();
    match change {
        Move::Thread { thread, leaf } => leaves[thread] = leaf,
        Move::Swap(a, b) => leaves.swap(a, b),
        Move::Roles(a, b) => {
            for (&first, &second) in roles[a].iter().zip(&roles[b]) {
                leaves.swap(first, second);
            }
        }
    }
    Assignment::new(leaves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{Alike, CpuSet, Machine, PerContext, SharingTree};

    #[test]
    fn every_move_stays_in_the_space() {
        let machine = Machine::from_shape("1x2x2").unwrap();
        let tree = SharingTree::new(&machine, Alike::default());
        let keeps = CpuSet::parse_list("0,1").unwrap();
        let masks = [Some(keeps), None, None];
        let space = Space::masked(tree, &masks, PerContext::AtMost(1)).unwrap();
        let from = Assignment::new(vec![0, 1, 2]);
        let moves = moves(&from, &space, &[vec![0], vec![1, 2]]);
        assert!(moves.iter().all(|&change| space.allows(&apply(&from, change, &[]))));
        let swaps = moves.iter().filter(|change| matches!(change, Move::Swap(..)));
        // The first thread may not take the place of the third.
        assert_eq!(swaps.count(), 2);
        // The other two may go to the free context.
        assert_eq!(moves.len(), 4);
    }
}
