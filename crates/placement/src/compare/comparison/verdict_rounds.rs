//! Judges a way of placing, and its claim, by the rounds of a verdict.

use super::{ClaimVerdict, JudgedClaim, Loss, WayStanding};
use crate::Estimate;
use crate::compare::strategy::{Round, WindowOwner};
use crate::compare::ways::{BoundClaim, ComparedWays};
use crate::statistics::{estimate, mean, ratio};
use pinwise_measure::Setting;

/// The rounds of a verdict, and how their losses are read.
pub(super) struct VerdictRounds<'a> {
    pub(super) rounds: &'a [Round],
    pub(super) best: WindowOwner,
    pub(super) ways: &'a ComparedWays,
    /// How many losses are read together.
    pub(super) losses: usize,
}

impl VerdictRounds<'_> {
    pub(super) fn row(&self, seat: &WindowOwner) -> Option<(Estimate, Loss, WayStanding)> {
        let windows: Vec<f64> =
            self.rounds.iter().filter_map(|round| round.get(seat)).flatten().copied().collect();
        let performance = estimate(&windows, self.ways.confidence)?;
        if *seat == self.best {
            return Some((
                performance,
                Loss { estimate: 0.0, low: 0.0, high: 0.0 },
                WayStanding::Best,
            ));
        }
        let loss = self.loss(seat, &self.best, self.losses)?;
        let standing = match loss {
            Loss { low, .. } if low > 0.0 => WayStanding::Worse,
            Loss { high, .. } if high < 0.0 => WayStanding::Better,
            _ => WayStanding::Tied,
        };
        Some((performance, loss, standing))
    }

    /// The loss of one way against another, if `losses` are read together; `None` if no round has
    /// both.
    fn loss(&self, seat: &WindowOwner, against: &WindowOwner, losses: usize) -> Option<Loss> {
        let pair = |round: &Round| Some((mean(round.get(seat)?), mean(round.get(against)?)));
        let pairs: Vec<(f64, f64)> = self.rounds.iter().filter_map(pair).collect();
        let together = 1.0 - (1.0 - self.ways.confidence) / losses as f64;
        match ratio(&pairs, 0.0, together) {
            Some(ratio) => Some(Loss {
                estimate: 1.0 - ratio.value,
                low: 1.0 - ratio.high,
                high: 1.0 - ratio.low,
            }),
            None => {
                pairs.first()?;
                let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
                let (own, other) = (sum(|pair| pair.0), sum(|pair| pair.1));
                // Against what got nothing done there is no share.
                let estimate = match other > 0.0 {
                    true => 1.0 - own / other,
                    false if own > 0.0 => f64::NEG_INFINITY,
                    false => 0.0,
                };
                Some(Loss { estimate, low: f64::NEG_INFINITY, high: 1.0 })
            }
        }
    }

    /// The loss of a way with a claim against any assignment that was measured with it: see
    /// [`JudgedClaim::loss`].
    pub(super) fn most(&self, seat: &WindowOwner) -> Loss {
        let all: std::collections::BTreeSet<&WindowOwner> =
            self.rounds.iter().flat_map(Round::keys).collect();
        let is_other = |other: &&WindowOwner| {
            matches!(other, WindowOwner::Of(Setting::Pinned(_))) && *other != seat
        };
        let others: Vec<&WindowOwner> = all.into_iter().filter(is_other).collect();
        let claims =
            self.ways.contenders.iter().filter(|contender| contender.claim.is_some()).count();
        let losses = (claims * others.len()).max(1);
        let itself = Loss { estimate: 0.0, low: 0.0, high: 0.0 };
        // Without a common round the loss may be anything.
        let unknown = Loss { estimate: 0.0, low: f64::NEG_INFINITY, high: 1.0 };
        let beside =
            others.into_iter().map(|other| self.loss(seat, other, losses).unwrap_or(unknown));
        beside.fold(itself, |most, loss| Loss {
            estimate: most.estimate.max(loss.estimate),
            low: most.low.max(loss.low),
            high: most.high.max(loss.high),
        })
    }
}

/// Judges `claim` by the largest loss of its way in the fresh windows.
pub(super) fn judged(claim: BoundClaim, loss: Loss, within: f64) -> JudgedClaim {
    let verdict = match claim.gap {
        gap if loss.high <= gap => ClaimVerdict::Holds,
        gap if loss.low > gap => ClaimVerdict::False,
        _ => ClaimVerdict::Open,
    };
    JudgedClaim { claim, certified: claim.gap <= within && !claim.estimated, verdict, loss }
}
