//! How the speed of a program may change with its number of threads. A search allows these laws
//! before it has probed.
//!
//! The source of the Universal Scalability Law is N. J. Gunther, "Guerrilla Capacity Planning",
//! Springer 2007, chapter 4. X(n) is the speed with n threads, divided by the speed with one:
//!
//! ```text
//! X(n) = n / (1 + σ (n - 1) + κ n (n - 1))
//! ```
//!
//! σ is the share of the work that threads queue for: a serial part, a lock, a saturated memory.
//! The cost for each pair of threads to keep in step is κ. With κ above 0 the speed is greatest at
//! √((1 - σ) / κ) threads and falls from there.
//!
//! The law ignores the number of contexts. Threads beyond it take turns: the speed then stays, or
//! declines with the switches and migrations. So a law here follows Gunther's up to a *knee*, and a
//! power of n from there. The knee is most often the number of contexts. It can come earlier, if
//! memory or a stage of a pipeline is used up. It can come later, if threads sleep most of the
//! time.
//!
//! More threads than contexts may also be a little faster. Smaller shares of the work even out. A
//! context whose thread waits has another one (C. Iancu, S. Hofmeyr, F. Blagojević, Y. Zheng,
//! "Oversubscription on multicore processors", IPDPS 2010). If threads wait for each other, turns
//! have to be even. Then 36 threads on 24 contexts take as many turns as 48.

/// One possible law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// σ, within 0 and 1.
    pub sigma: f64,
    /// κ, at least 0.
    pub kappa: f64,
    /// The number of threads from which more of them only take turns.
    pub knee: f64,
    /// Speed falls as n to the power of minus this beyond the knee; below 0 it rises.
    pub decline: f64,
    /// How much uneven turns matter beyond the knee, from 0 to 1. The speed has the factor (t /
    /// ⌈t⌉) to this power. Here t is the number of threads over the knee.
    pub uneven: f64,
}

/// σ of the possible laws.
const SIGMAS: [f64; 10] = [0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6];
/// The positions of the maximum of Gunther's law, in contexts, at one thread at the least; κ
/// follows.
const PEAKS: [f64; 10] = [f64::INFINITY, 5.0, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.2];
/// The positions of the knee, in contexts, and how likely each is.
const KNEES: [(f64, f64); 6] =
    [(0.25, 0.1), (0.5, 0.1), (1.0, 0.5), (1.6, 0.1), (2.6, 0.1), (f64::INFINITY, 0.1)];
/// The prior for uneven turns above the number of contexts. They matter if threads divide the work
/// and wait for the last one.
const UNEVEN: [(f64, f64); 3] = [(0.0, 0.2), (0.15, 0.4), (0.5, 0.4)];
/// How the speed declines beyond the knee, and how likely that is.
const DECLINES: [(f64, f64); 5] = [(-0.05, 0.15), (0.0, 0.4), (0.08, 0.2), (0.3, 0.15), (1.0, 0.1)];

impl Law {
    /// The speed with `n` threads (at least 1) as a multiple of that with one.
    pub fn speedup(&self, n: f64) -> f64 {
        let m = n.min(self.knee);
        let usl = m / (1.0 + self.sigma * (m - 1.0) + self.kappa * m * (m - 1.0));
        if n <= self.knee {
            return usl;
        }
        let turns = n / self.knee;
        usl * turns.powf(-self.decline) * (turns / turns.ceil()).powf(self.uneven)
    }

    /// The laws believed possible on `contexts` contexts before anything was probed, each with its
    /// probability.
    pub fn family(contexts: u32) -> Vec<(Self, f64)> {
        let contexts = f64::from(contexts.max(1));
        let mut laws = Vec::new();
        for (knee, knee_weight) in KNEES {
            for (decline, decline_weight) in DECLINES {
                for (uneven, uneven_weight) in UNEVEN {
                    // Without a knee there is nothing to decline from, and turns are taken at
                    // contexts.
                    let weight =
                        match (knee == 1.0, knee.is_finite(), decline == 0.0, uneven == 0.0) {
                            (true, ..) => knee_weight * decline_weight * uneven_weight,
                            (_, true, _, true) => knee_weight * decline_weight,
                            (_, false, true, true) => knee_weight,
                            _ => continue,
                        };
                    for (sigma, peak) in
                        SIGMAS.into_iter().flat_map(|sigma| PEAKS.map(|peak| (sigma, peak)))
                    {
                        let most = (peak * contexts).max(1.0);
                        let kappa =
                            if most.is_finite() { (1.0 - sigma) / most.powi(2) } else { 0.0 };
                        let law = Self {
                            sigma,
                            kappa,
                            knee: (knee * contexts).max(1.0),
                            decline,
                            uneven,
                        };
                        laws.push((law, weight / (SIGMAS.len() * PEAKS.len()) as f64));
                    }
                }
            }
        }
        laws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_knee_it_is_gunthers() {
        let law = Law { sigma: 0.05, kappa: 0.001, knee: f64::INFINITY, decline: 0.0, uneven: 0.0 };
        assert_eq!(law.speedup(1.0), 1.0);
        assert!((law.speedup(16.0) - 16.0 / (1.0 + 0.75 + 0.24)).abs() < 1e-12);
        // Greatest at √((1 - σ) / κ) = 30.8 threads.
        let best = (1..=64)
            .max_by(|&a, &b| law.speedup(f64::from(a)).total_cmp(&law.speedup(f64::from(b))));
        assert_eq!(best, Some(31));
    }

    #[test]
    fn beyond_the_knee_it_stays_declines_or_takes_whole_turns() {
        let stays = Law { sigma: 0.0, kappa: 0.0, knee: 24.0, decline: 0.0, uneven: 0.0 };
        assert_eq!([12.0, 24.0, 48.0].map(|n| stays.speedup(n)), [12.0, 24.0, 24.0]);
        let declines = Law { decline: 1.0, ..stays };
        assert_eq!([24.0, 48.0].map(|n| declines.speedup(n)), [24.0, 12.0]);
        // 36 threads on 24 contexts need two turns as 48 do.
        let uneven = Law { uneven: 1.0, ..stays };
        assert_eq!([24.0, 36.0, 48.0].map(|n| uneven.speedup(n)), [24.0, 18.0, 24.0]);
    }

    /// A maximum at a part of a thread would make two threads seven times slower than one. It would
    /// outweigh everything on two contexts.
    #[test]
    fn before_any_probe_as_many_threads_as_contexts_are_believed_fastest_on_few_contexts() {
        for contexts in 2..5 {
            let family = Law::family(contexts);
            let gain = |n: u32| {
                family
                    .iter()
                    .map(|(law, weight)| weight * law.speedup(f64::from(n)).ln())
                    .sum::<f64>()
            };
            let best = (1..=2 * contexts).max_by(|&a, &b| gain(a).total_cmp(&gain(b)));
            assert_eq!(best, Some(contexts));
            assert!(
                family.iter().all(|(law, _)| law.speedup(f64::from(contexts)) >= 0.2),
                "{contexts}"
            );
        }
    }

    #[test]
    fn probabilities_of_the_family_add_up_to_one() {
        for contexts in [1, 2, 24, 256] {
            let family = Law::family(contexts);
            assert!((family.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(
                family.iter().all(|(law, _)| law.speedup(f64::from(contexts) * 3.0).is_finite())
            );
        }
    }
}
