//! A model of 24 threads on an 8x2x4 processor like the paper's (cores, pipelines per core, strands
//! per pipeline). It runs 8 instances of a receiver, a worker and a sender. It stands for no real
//! processor. It has what makes real populations hard: a sum of minima, contention on two levels,
//! and partners that belong together.

use crate::random::Random;

const CORES: usize = 8;
const PIPES: usize = 2 * CORES;
const CONTEXTS: usize = 4 * PIPES;
const INSTANCES: usize = 8;
const THREADS: usize = 3 * INSTANCES;

/// A workload on the model, per role: receiver, worker, sender.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    /// Time per packet alone.
    pub(crate) time: [f64; 3],
    /// Slowdown that a thread of the role causes in its pipeline.
    pub(crate) issue: [f64; 3],
    /// Slowdown that it causes in its core.
    pub(crate) cache: [f64; 3],
    /// Slowdown of a thread for each partner on another core.
    pub(crate) distance: f64,
}

/// The context of each thread; thread t is role t % 3 of instance t / 3.
type Placement = [usize; CONTEXTS];

impl Model {
    /// Packets per unit of time of all instances. The first 24 entries are the contexts of the
    /// threads.
    fn performance(&self, placement: &Placement) -> f64 {
        let (mut issue, mut cache) = ([0.0; PIPES], [0.0; CORES]);
        for (thread, context) in placement[..THREADS].iter().enumerate() {
            issue[context / 4] += self.issue[thread % 3];
            cache[context / 8] += self.cache[thread % 3];
        }
        let core = |thread: usize| placement[thread] / 8;
        (0..INSTANCES)
            .map(|instance| {
                let worker = 3 * instance + 1;
                let rate = |role: usize| {
                    let thread = 3 * instance + role;
                    let far = match role {
                        1 => {
                            usize::from(core(worker) != core(worker - 1))
                                + usize::from(core(worker) != core(worker + 1))
                        }
                        _ => usize::from(core(thread) != core(worker)),
                    };
                    let pipe = 1.0 + issue[placement[thread] / 4] - self.issue[role];
                    let shared = 1.0 + cache[core(thread)] - self.cache[role];
                    1.0 / (self.time[role] * pipe * shared * (1.0 + self.distance * far as f64))
                };
                rate(0).min(rate(1)).min(rate(2))
            })
            .sum()
    }

    /// The performance of a placement drawn with equal chance (the first 24 of a partial shuffle).
    pub(crate) fn draw(&self, random: &mut Random) -> f64 {
        self.performance(&shuffled(random))
    }

    /// The best of several annealings, and how many of them reached it.
    pub(crate) fn optimum(&self, random: &mut Random) -> (f64, usize) {
        const RESTARTS: usize = 12;
        let ends: Vec<f64> = (0..RESTARTS).map(|_| self.anneal(random)).collect();
        let best = ends.iter().copied().fold(0.0, f64::max);
        (best, ends.iter().filter(|&&end| end > best * (1.0 - 1e-9)).count())
    }

    fn anneal(&self, random: &mut Random) -> f64 {
        const STEPS: usize = 150_000;
        let mut placement = shuffled(random);
        let mut now = self.performance(&placement);
        let mut best = now;
        for step in 0..STEPS {
            let temperature = 0.1 * (1e-4f64).powf(step as f64 / STEPS as f64);
            let (a, b) = (random.below(THREADS), random.below(CONTEXTS));
            placement.swap(a, b);
            let next = self.performance(&placement);
            if next >= now || random.unit() < ((next - now) / temperature).exp() {
                now = next;
                best = best.max(now);
            } else {
                placement.swap(a, b);
            }
        }
        best
    }
}

fn shuffled(random: &mut Random) -> Placement {
    let mut placement = std::array::from_fn(|context| context);
    for i in 0..THREADS {
        placement.swap(i, i + random.below(CONTEXTS - i));
    }
    placement
}
