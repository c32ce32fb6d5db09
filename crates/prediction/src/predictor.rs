//! What every predictor can do.

/// Tells the performance of an assignment without measuring it.
pub trait Predictor {
    /// The predicted performance, higher is better, of thread i on leaf `leaves[i]`; finite.
    fn predict(&self, leaves: &[u32]) -> f64;

    /// A walk that begins there. A predictor that can predict a neighbour for less than a whole
    /// prediction does so here.
    fn walk<'a>(&'a self, _leaves: &[u32]) -> Box<dyn PredictedWalk + 'a> {
        Box::new(Anew { predictor: self })
    }
}

/// A thread goes elsewhere, or two change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The thread that goes from leaf `from` to leaf `to`.
    pub thread: usize,
    /// The one that goes the other way, if any.
    pub other: Option<usize>,
    /// Where the first was.
    pub from: u32,
    /// Where it is now.
    pub to: u32,
}

/// Predictions along a walk from assignment to assignment.
pub trait PredictedWalk {
    /// [`Predictor::predict`] of `leaves`, to the last bit; these differ by `change` from those
    /// before.
    fn step(&mut self, leaves: &[u32], change: Change) -> f64;

    /// Takes the last step back, once.
    fn back(&mut self);
}

/// Predicts everything again.
struct Anew<'a, P: ?Sized> {
    predictor: &'a P,
}

impl<P: Predictor + ?Sized> PredictedWalk for Anew<'_, P> {
    fn step(&mut self, leaves: &[u32], _: Change) -> f64 {
        self.predictor.predict(leaves)
    }

    fn back(&mut self) {}
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pinwise_topology::{Random, Space};

    /// Makes random steps, and takes some back. Each prediction must be that of the assignment.
    pub(crate) fn walks_as_it_predicts(
        predictor: &dyn Predictor,
        space: &Space,
        random: &mut Random,
    ) {
        let (threads, contexts) = (space.threads(), space.tree().leaves().len());
        let mut leaves = space.sample(random).leaves().to_vec();
        let mut walk = predictor.walk(&leaves);
        for _ in 0..2000 {
            let thread = random.below(threads as u64) as usize;
            let (from, to) = (leaves[thread], random.below(contexts as u64) as u32);
            let other = (random.below(2) == 0)
                .then(|| leaves.iter().position(|leaf| *leaf == to))
                .flatten()
                .filter(|other| *other != thread);
            let before = leaves.clone();
            leaves[thread] = to;
            other.into_iter().for_each(|other| leaves[other] = from);
            let predicted = walk.step(&leaves, Change { thread, other, from, to });
            assert_eq!(predicted.to_bits(), predictor.predict(&leaves).to_bits());
            if random.below(2) == 0 {
                walk.back();
                leaves = before;
            }
        }
    }
}
