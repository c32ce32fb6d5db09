//! A processor on paper: a formula says how much threads slow each other down.
//!
//! A made-up machine whose every performance is known, for judging strategies. It is fast enough to
//! anneal over. No real processor is like it in detail, but it has the properties that make
//! placement hard. Threads slow each other down at every level they share. Partners gain from one
//! core-local domain. A link may saturate. And one arrangement may be better than its neighbours
//! suggest.
//!
//! Terms: n threads take turns on a context of speed v. The demand of role r at level l is d(l, r).
//! D sums the demands of the other threads in a thread's domain of level l. The time of a thread
//! per packet is
//!
//! ```text
//! t(r) · n / v · product over l of (1 + D)
//!              · (1 + distance · partners elsewhere)
//!              · (1 + latency · share of its memory that is remote)
//! ```
//!
//! An instance is as fast as its slowest thread. The machine does the sum over instances of 1 / the
//! largest time of their threads, at most `cap`.

mod crowding;
mod remote_memory;

pub use crowding::Crowding;
pub use remote_memory::RemoteMemory;

use crate::replay::{Disturbance, WINDOW};
use pinwise_measure::{Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit, Workload};
use pinwise_topology::{Alike, CpuId, Machine, SharingTree};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a workload demands of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Time per packet of a thread alone, by role; in units of time, above 0.
    pub time: Vec<f64>,
    /// The share by which a thread slows each other one in a domain. It is by level, the innermost
    /// domain of several contexts first and the whole machine last, and by role. Levels beyond
    /// those given are not contended for.
    pub burden: Vec<Vec<f64>>,
    /// The share by which a thread is slower for each neighbour in its pipeline on another core.
    /// Neighbours are the threads of the roles next to its own.
    pub distance: f64,
    /// The level, counted like those of `burden`, within which neighbours count as near.
    pub near: usize,
    /// Packets per unit of time that the machine passes at most.
    pub cap: Option<f64>,
    /// What everything is multiplied by where every instance has a domain of level `near` to
    /// itself.
    pub needle: Option<f64>,
}

/// A workload of alike instances on a machine that behaves as [`Demand`] says.
#[derive(Clone, Debug)]
pub struct Contention {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    demand: Demand,
    crowding: Crowding,
    /// For each thread of an instance, the number of its role.
    stages: Vec<usize>,
    /// `domains[level][leaf]`: which domain of the level holds the leaf.
    domains: Vec<Vec<usize>>,
    /// By leaf.
    speeds: Vec<f64>,
    /// By leaf: the node, as an index into [`Machine::numa`].
    nodes: Vec<usize>,
    memory: Option<RemoteMemory>,
    disturbance: Disturbance,
    /// What starting and measuring an instance is said to take.
    restart: Option<Duration>,
    number: u64,
}

impl Contention {
    /// `instances` instances with one thread for each of `roles` on `machine`. All domains of a
    /// level of the machine have one depth. A role that comes again is that of another thread that
    /// does the same. Roles are counted in the order in which they first come.
    ///
    /// # Panics
    /// If a demand has not one figure per role, or `near` is no level of the machine.
    pub fn new(
        machine: Machine,
        instances: usize,
        roles: &[&str],
        demand: Demand,
        disturbance: Disturbance,
    ) -> Self {
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let leaves = tree.leaves().len() as u32;
        let levels = tree.around(0).len();
        // Its first leaf identifies a domain.
        let domain = |level: usize, leaf: u32| {
            tree.around(leaf).get(level).map_or(0, |(_, range)| range.start as usize)
        };
        let domains: Vec<Vec<usize>> = (0..levels)
            .map(|level| (0..leaves).map(|leaf| domain(level, leaf)).collect())
            .collect();
        let mut names: Vec<&str> = Vec::new();
        let mut stages = Vec::with_capacity(roles.len());
        for role in roles {
            let known = names.iter().position(|name| name == role);
            stages.push(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(role);
            }
        }
        let of_role = |figures: &Vec<f64>| figures.len() == names.len();
        assert!(of_role(&demand.time) && demand.burden.iter().all(of_role), "one figure per role");
        assert!(demand.near < levels, "the machine has {levels} levels");
        let nodes =
            tree.leaves().iter().map(|&cpu| remote_memory::node_of(&machine, cpu)).collect();
        Self {
            nodes,
            memory: None,
            machine,
            workload: Workload::new("contention", &vec![roles; instances]),
            unit: Unit::rate("packets/s"),
            stages,
            crowding: Crowding::Sum,
            demand,
            domains,
            speeds: vec![1.0; leaves as usize],
            disturbance,
            restart: None,
            number: 0,
        }
    }

    /// As if instances were started to be measured by themselves, which takes so long.
    pub fn starting_instances(self, restart: Duration) -> Self {
        Self { restart: Some(restart), ..self }
    }

    /// Where threads crowd each other in another way.
    pub fn crowded(self, crowding: Crowding) -> Self {
        Self { crowding, ..self }
    }

    /// Where a context is as fast as its kind of core: `speeds`, above 0, of [`Machine::kinds`].
    /// They are all 1 otherwise.
    ///
    /// # Panics
    /// If a kind has none, or one that is not above 0.
    pub fn with_speeds(self, speeds: &[f64]) -> Self {
        assert!(speeds.iter().all(|&speed| speed > 0.0), "a context of speed 0 gets nowhere");
        let context =
            |cpu: &CpuId| self.machine.contexts.iter().find(|context| context.cpu == *cpu);
        let speed = |cpu: &CpuId| context(cpu).map_or(1.0, |context| speeds[context.kind]);
        let tree = SharingTree::new(&self.machine, Alike::ByStructure);
        Self { speeds: tree.leaves().iter().map(speed).collect(), ..self }
    }

    /// Where threads read memory that may be on other nodes.
    pub fn with_memory(self, memory: RemoteMemory) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Where measurements are disturbed otherwise.
    pub fn disturbed(self, disturbance: Disturbance) -> Self {
        Self { disturbance, ..self }
    }

    /// What the threads on these leaves do, without disturbance.
    ///
    /// # Panics
    /// If there are fewer leaves than threads, or one does not exist.
    pub fn truth(&self, leaves: &[u32]) -> f64 {
        let home = |thread: usize| self.domains[self.demand.near][leaves[thread] as usize];
        let mut sum: f64 = self.rates(&leaves[..self.workload.threads.len()]).iter().sum();
        if let Some(factor) = self.demand.needle
            && self.every_instance_is_by_itself(&home)
        {
            sum *= factor;
        }
        self.demand.cap.map_or(sum, |cap| sum.min(cap))
    }

    /// The rate of each instance if only instances with leaves here run. It has no cap, needle or
    /// disturbance.
    ///
    /// # Panics
    /// If a leaf does not exist.
    pub fn rates(&self, leaves: &[u32]) -> Vec<f64> {
        let Demand { time, burden, distance, near, .. } = &self.demand;
        let contexts = self.speeds.len();
        let (members, roles) = (self.stages.len(), time.len());
        // Threads by level, domain and role, and those of each context.
        let levels = burden.len().min(self.domains.len());
        let mut held = vec![0.0; levels * contexts * roles];
        let mut turns = vec![0.0; contexts];
        let place = |level: usize, leaf: u32| {
            (level * contexts + self.domains[level][leaf as usize]) * roles
        };
        for (thread, leaf) in leaves.iter().enumerate() {
            let role = self.stages[thread % members];
            (0..levels).for_each(|level| held[place(level, *leaf) + role] += 1.0);
            turns[*leaf as usize] += 1.0;
        }
        let home = |thread: usize| self.domains[*near][leaves[thread] as usize];
        let rate = |instance: usize| {
            let first = instance * members;
            let mut slowest = 0.0f64;
            let of = |member: usize| self.nodes[leaves[first + member] as usize];
            let used: BTreeSet<usize> = (0..members).map(of).collect();
            for (member, role) in self.stages.iter().enumerate() {
                let (thread, leaf) = (first + member, leaves[first + member]);
                let mut needs = time[*role] * turns[leaf as usize] / self.speeds[leaf as usize];
                for (level, burden) in burden.iter().enumerate().take(levels) {
                    let crowding = if level == 0 { self.crowding } else { Crowding::Sum };
                    needs *= crowding.factor(burden, &held[place(level, leaf)..][..roles], *role);
                }
                let neighbours =
                    (0..members).filter(|other| self.stages[*other].abs_diff(*role) == 1);
                let elsewhere =
                    neighbours.filter(|other| home(first + other) != home(thread)).count();
                needs *= 1.0 + distance * elsewhere as f64;
                if let Some(memory) = &self.memory {
                    needs *= memory.factor(of(member), &used, self.machine.numa.len());
                }
                slowest = slowest.max(needs);
            }
            1.0 / slowest
        };
        (0..leaves.len() / members).map(rate).collect()
    }

    fn every_instance_is_by_itself(&self, home: &dyn Fn(usize) -> usize) -> bool {
        let (threads, members) = (0..self.workload.threads.len(), self.stages.len());
        threads
            .clone()
            .all(|a| threads.clone().all(|b| (home(a) == home(b)) == (a / members == b / members)))
    }

    /// As a balancing scheduler might leave the threads: in order over the contexts, round robin.
    fn balanced(&self) -> Vec<u32> {
        let (contexts, threads) = (self.speeds.len(), self.workload.threads.len());
        (0..threads).map(|thread| (thread * contexts / threads.max(1) % contexts) as u32).collect()
    }
}

impl Testbed for Contention {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let number = self.number;
        self.number += 1;
        let truth = match setting {
            Setting::Unpinned => {
                let memory = self.memory.map(RemoteMemory::unpinned);
                Self { memory, ..self.clone() }.truth(&self.balanced())
            }
            Setting::Pinned(assignment) => self.truth(assignment.leaves()),
            Setting::Profile(parts) => {
                let leaves: Vec<u32> =
                    parts.iter().flat_map(|part| part.leaves.iter().copied()).collect();
                self.rates(&leaves).first().copied().unwrap_or(0.0)
            }
            other => return Err(MeasureError::unsupported(&self.workload.name, other)),
        };
        let mut random = self.disturbance.chance(number)?;
        let performance = self.disturbance.disturbed(truth, number, effort, &mut random);
        Ok(Measurement::new(performance, WINDOW))
    }

    fn profiles(&self) -> bool {
        true
    }

    fn restart(&self) -> Option<Duration> {
        self.restart
    }

    fn time(&self) -> Time {
        Time::Virtual { width: 1 }
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::PinnedInstance;
    use pinwise_topology::{CoreKind, PerContext, Random, Space};

    fn demand() -> Demand {
        Demand {
            time: vec![1.0, 2.0],
            burden: vec![vec![0.5, 0.25], vec![0.1, 0.0]],
            distance: 0.1,
            near: 0,
            cap: None,
            needle: None,
        }
    }

    fn contention(demand: Demand) -> Contention {
        let machine = Machine::from_shape("2x2x2").unwrap();
        Contention::new(machine, 2, &["R", "P"], demand, Disturbance::default())
    }

    #[test]
    fn performance_is_what_the_formula_gives_by_hand() {
        let alike = contention(demand());
        // Instance 0 on core 0, instance 1 on core 1, of one package. R: 1 · (1 + .25) · (1 +
        // .1 + 0) = 1.375. P: 2 · 1.5 · 1.2 = 3.6.
        assert!((alike.truth(&[0, 1, 2, 3]) - 2.0 / 3.6).abs() < 1e-12);
        // All are on cores of their own, two per package, instances apart. R: 1 · (1 + 0) · 1.1, P:
        // 2 · (1 + .1) · 1.1 = 2.42.
        assert!((alike.truth(&[0, 2, 4, 6]) - 2.0 / 2.42).abs() < 1e-12);
    }

    #[test]
    fn other_crowding_is_what_its_formula_gives_by_hand() {
        // As above on cores apart, R with P. The demand of P, .25, fits. That of R is .2 too much,
        // which costs P .4.
        let full = contention(demand()).crowded(Crowding::Full { free: 0.3 });
        assert!((full.truth(&[0, 1, 2, 3]) - 2.0 / (2.0 * 1.4 * 1.2)).abs() < 1e-12);
        // Three others of three threads are on a core of four. Around the P of instance 0 there are
        // R, R and P, so two unlike pairs.
        let machine = Machine::from_shape("2x4").unwrap();
        let clash = Contention::new(machine, 2, &["R", "P"], demand(), Disturbance::default());
        let clash = clash.crowded(Crowding::Clash { clash: 0.1 });
        let slow = |others: f64, pairs: f64, machine: f64| {
            2.0 * (1.0 + others + 0.1 * pairs) * (1.0 + machine)
        };
        assert!((clash.truth(&[0, 1, 2, 3]) - 2.0 / slow(1.25, 2.0, 0.2)).abs() < 1e-12);
        // The demands around that P are .5, .5 and .25.
        let crowded = |crowding: Crowding| clash.clone().crowded(crowding).truth(&[0, 1, 2, 3]);
        let queue = crowded(Crowding::Queue { full: 2.0 });
        assert!((queue - 2.0 / slow(1.25 / (1.0 - 1.25 / 2.0), 0.0, 0.2)).abs() < 1e-12);
        let greatest = crowded(Crowding::Greatest { rest: 0.2 });
        assert!((greatest - 2.0 / slow(0.5 + 0.2 * 0.75, 0.0, 0.2)).abs() < 1e-12);
    }

    #[test]
    fn a_profile_is_of_the_first_part_alone() {
        let mut alike = contention(demand());
        let part = |leaves: [u32; 2]| PinnedInstance { instance: 0, leaves: leaves.to_vec() };
        let mut profile = |parts: Vec<PinnedInstance>| {
            alike.measure(&Setting::Profile(parts), Effort::default()).unwrap().performance
        };
        // Alone on one core: R 1 · (1 + .25), P 2 · 1.5 = 3. With the R of two others, P has 2 · (1
        // + .5 + 1) · 1.2. The levels above are free of what R does: .1 each, of the machine. By
        // hand with own R too.
        assert!((profile(vec![part([0, 1])]) - 1.0 / (2.0 * 1.5 * 1.1)).abs() < 1e-12);
        let crowded = profile(vec![part([0, 1]), part([2, 4]), part([3, 6])]);
        assert!((crowded - 1.0 / (2.0 * 1.5 * 1.3)).abs() < 1e-12, "{crowded}");
    }

    #[test]
    fn a_cap_and_a_needle_change_what_they_say() {
        let capped = contention(Demand { cap: Some(0.5), ..demand() });
        assert_eq!(capped.truth(&[0, 2, 4, 6]), 0.5);
        let needle = contention(Demand { needle: Some(2.0), ..demand() });
        assert!(
            (needle.truth(&[0, 1, 4, 5]) / contention(demand()).truth(&[0, 1, 4, 5]) - 2.0).abs()
                < 1e-12
        );
        assert_eq!(needle.truth(&[0, 2, 4, 5]), contention(demand()).truth(&[0, 2, 4, 5]));
    }

    #[test]
    fn two_threads_of_one_role_are_interchangeable_and_both_near_their_neighbours() {
        let machine = Machine::from_shape("2x2x2").unwrap();
        let time = vec![1.0, 2.0, 1.0];
        let burden = vec![vec![0.0, 0.5, 0.0]];
        let demand = Demand { time, burden, near: 1, ..demand() };
        let workers =
            Contention::new(machine, 1, &["R", "W", "W", "T"], demand, Disturbance::default());
        // A worker in the package of the others. The other worker on its core slows it: 2 · 1.5.
        // Then R, W and T are on the other package. The lone worker has both neighbours far, 2 ·
        // 1.2, and R and T have one far.
        assert!((workers.truth(&[0, 2, 3, 1]) - 1.0 / (2.0 * 1.5)).abs() < 1e-12);
        assert!((workers.truth(&[4, 0, 6, 5]) - 1.0 / (2.0 * 1.2)).abs() < 1e-12);
        let mut random = Random::new(4);
        for _ in 0..100 {
            let mut leaves: Vec<u32> = (0..4).map(|_| random.below(8) as u32).collect();
            let before = workers.truth(&leaves);
            leaves.swap(1, 2);
            assert_eq!(workers.truth(&leaves), before, "{leaves:?}");
        }
    }

    #[test]
    fn threads_of_one_context_take_turns() {
        let alike = contention(demand());
        // Each instance has a core. R and P of instance 0 share a context, so P has half of it.
        assert!(
            (alike.rates(&[0, 0, 2, 3])[0] - alike.rates(&[0, 1, 2, 3])[0] / 2.0).abs() < 1e-12
        );
        assert_eq!(alike.rates(&[0, 0, 2, 3])[1], alike.rates(&[0, 1, 2, 3])[1]);
    }

    #[test]
    fn a_context_is_as_fast_as_its_kind_of_core() {
        let mut machine = Machine::from_shape("2x2x2").unwrap();
        let cpus = |from: u32| (from..from + 4).map(CpuId).collect();
        let kind =
            |name: &str, from| CoreKind { name: name.to_owned(), cpus: cpus(from), capacity: None };
        machine.kinds = vec![kind("performance", 4), kind("efficiency", 0)];
        machine
            .contexts
            .iter_mut()
            .for_each(|context| context.kind = usize::from(context.cpu.0 < 4));
        let plain = Contention::new(machine, 2, &["R", "P"], demand(), Disturbance::default());
        let hybrid = plain.clone().with_speeds(&[1.0, 0.5]);
        let mut random = Random::new(5);
        for _ in 0..100 {
            let slow: Vec<u32> = (0..4).map(|_| random.below(4) as u32).collect();
            let fast: Vec<u32> = slow.iter().map(|leaf| leaf + 4).collect();
            assert_eq!(hybrid.truth(&fast), plain.truth(&fast));
            assert!((hybrid.truth(&slow) - plain.truth(&slow) / 2.0).abs() < 1e-12, "{slow:?}");
            // No faster for a slower thread.
            let mixed: Vec<u32> = (0..4).map(|_| random.below(8) as u32).collect();
            let share = hybrid.truth(&mixed) / plain.truth(&mixed);
            assert!((0.5 - 1e-12..=1.0).contains(&share), "{mixed:?}");
        }
        // They are unlike for the space of assignments too.
        let tree = SharingTree::new(hybrid.machine(), Alike::ByStructure);
        assert_eq!(Space::new(tree, 1, PerContext::AtMost(1)).unwrap().count(), 2u32.into());
    }

    #[test]
    fn remote_memory_slows_by_its_share() {
        use pinwise_measure::MemoryPolicy;
        let machine = Machine::from_shape("numa:4 core:2").unwrap();
        let bed = Contention::new(machine, 1, &["R", "P"], demand(), Disturbance::default());
        let slower = |policy, leaves: &[u32]| {
            let memory = RemoteMemory { policy, home: 1, latency: 0.8 };
            bed.truth(leaves) / bed.clone().with_memory(memory).truth(leaves) - 1.0
        };
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-12, "{value}");
        near(slower(MemoryPolicy::Leave, &[2, 3]), 0.0);
        near(slower(MemoryPolicy::Leave, &[4, 5]), 0.8);
        near(slower(MemoryPolicy::Follow, &[4, 5]), 0.0);
        // P, the slower one, is at home. So is memory that cannot follow both.
        near(slower(MemoryPolicy::Leave, &[0, 2]), 0.0);
        near(slower(MemoryPolicy::Follow, &[0, 2]), 0.0);
        near(slower(MemoryPolicy::Interleave, &[2, 3]), 0.6);
        let memory = RemoteMemory { policy: MemoryPolicy::Follow, home: 1, latency: 0.8 };
        let mut follows = bed.clone().with_memory(memory);
        let unpinned = follows.measure(&Setting::Unpinned, Effort::default()).unwrap().performance;
        near(bed.truth(&bed.balanced()) / unpinned - 1.0, 0.8);
    }

    #[test]
    fn a_measurement_depends_on_its_number_and_seed_alone() {
        let disturbance = Disturbance { noise: 0.01, seed: 3, ..Disturbance::default() };
        let machine = Machine::from_shape("2x2x2").unwrap();
        let mut noisy = Contention::new(machine, 2, &["R", "P"], demand(), disturbance);
        let first = noisy.measure(&Setting::Unpinned, Effort::default()).unwrap();
        let second = noisy.measure(&Setting::Unpinned, Effort::default()).unwrap();
        assert_ne!(first, second);
        noisy.seek(0);
        assert_eq!(noisy.measure(&Setting::Unpinned, Effort::default()), Ok(first));
    }
}
