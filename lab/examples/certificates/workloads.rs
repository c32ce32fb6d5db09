//! Workloads whose best possible performance is known, or as good as known.

use crate::saved_results::SavedResults;
use pinwise_lab::on_paper::{self, ENUMERABLE, ENUMERATED, space};
use pinwise_lab::{Bed, Frozen};
use pinwise_measure::Setting;
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_synthetic::{Contention, Crowding, Demand, Disturbance};
use pinwise_topology::{Alike, Assignment, Machine, PerContext, Random, SharingTree, Space};

/// One workload.
pub(crate) struct Case {
    /// What its results are saved under.
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) group: Group,
    pub(crate) noise: f64,
    pub(crate) bed: Bed,
    pub(crate) tree: SharingTree,
    pub(crate) space: Space,
    pub(crate) optimum: f64,
    /// How the optimum is known.
    pub(crate) known: String,
}

/// Which workloads are reported together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// On paper; constants were chosen with these.
    ProbeDetails,
    /// On paper, of a structure for which the predictor has no term.
    HeldOut,
    /// With a needle for its optimum.
    Needle,
    /// Programs on the simulated processor.
    Simulated,
    /// On paper, with two threads of one role in an instance.
    Workers,
    /// On paper, with more threads than contexts.
    Crowded,
    /// The same, of other sizes than those that the search was made with.
    CrowdedHeldOut,
    /// On paper, on cores of two kinds.
    Hybrid,
    /// The same, on other cores.
    HybridHeldOut,
}

impl Group {
    pub(crate) const ALL: [Self; 9] = [
        Self::ProbeDetails,
        Self::HeldOut,
        Self::Needle,
        Self::Simulated,
        Self::Workers,
        Self::Crowded,
        Self::CrowdedHeldOut,
        Self::Hybrid,
        Self::HybridHeldOut,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ProbeDetails => "seen",
            Self::HeldOut => "held out",
            Self::Needle => "needle",
            Self::Simulated => "simulated",
            Self::Workers => "two workers each",
            Self::Crowded => "more threads than contexts",
            Self::CrowdedHeldOut => "more threads than contexts, held out",
            Self::Hybrid => "unlike cores",
            Self::HybridHeldOut => "unlike cores, held out",
        }
    }
}

const ROLES: [&str; 3] = ["R", "P", "T"];
/// Workloads on paper whose threads slow each other down by a sum.
const SUMS: usize = 28;
/// These, and those whose threads slow each other down otherwise.
const SEEN: usize = 42;
/// Workloads held out, whose threads do so otherwise again.
const HELD_OUT: usize = 21;
/// Seeds of the workloads held out, used for nothing else.
const UNUSED: u64 = 2042;
pub(crate) const NOISES: [f64; 3] = [0.0, 0.002, 0.01];
/// Workloads on paper: demands drawn from fixed seeds, with noise alternating between 0, 0.2 and 1
/// %. Most have 24 threads on an 8x2x4 processor, every seventh 6 and every seventh 12. Number 9
/// has a needle for its optimum and number 20 a capped link. From [`SUMS`] on threads crowd each
/// other otherwise, from [`SEEN`] on in ways that the predictor has no term for.
pub(crate) fn on_paper(saved: &SavedResults) -> Vec<Case> {
    let numbers: Vec<usize> = (0..SEEN + HELD_OUT).collect();
    pinwise_lab::parallel::each(&numbers, |number| Case::on_paper(*number, saved))
}

/// Which of the simulated workloads has a capped link, and which a needle for its optimum.
const CAPPED: usize = 12;
const NEEDLE: usize = 20;
/// How the best with a needle is known.
const APART: &str = "every instance on a core of its own";

/// Programs on the simulated UltraSPARC T2: each of the twelve in two instances, some in four and
/// eight, and mixes. Noise alternates between 0, 0.2 and 1 %, on top of the simulation's chance.
pub(crate) fn simulated(saved: &SavedResults) -> Vec<Case> {
    const MIXES: [&[(PacketProgram, usize)]; 12] = [
        &[(PacketProgram::Hash1L1, 2)],
        &[(PacketProgram::HashNL1, 1), (PacketProgram::IntMul, 1)],
        &[(PacketProgram::Hash1L2, 4)],
        &[(PacketProgram::HashNMem, 4)],
        &[(PacketProgram::Stateful, 4)],
        &[(PacketProgram::AhoCorasick, 4)],
        &[(PacketProgram::Hash1L1, 2), (PacketProgram::IntMul, 2)],
        &[(PacketProgram::HashNL2, 2), (PacketProgram::IntAdd, 2)],
        &[(PacketProgram::Hash1Mem, 4)],
        &[(PacketProgram::Hash1L1, 4), (PacketProgram::IntMul, 4)],
        &[(PacketProgram::PacketAnalyzer, 8)],
        &[(PacketProgram::AhoCorasick, 8)],
    ];
    let pairs = PacketProgram::ALL.into_iter().map(|program| vec![(program, 2)]);
    let numbered: Vec<(usize, Vec<(PacketProgram, usize)>)> =
        pairs.chain(MIXES.map(<[_]>::to_vec)).enumerate().collect();
    pinwise_lab::parallel::each(&numbered, |(number, mix)| Case::simulated(*number, mix, saved))
}

impl Case {
    fn on_paper(number: usize, saved: &SavedResults) -> Self {
        let seed = match number {
            ..SUMS => 1000 + number as u64,
            SUMS..SEEN => 1042 + (number - SUMS) as u64,
            _ => UNUSED + (number - SEEN) as u64,
        };
        let mut random = Random::new(seed);
        let mut demand = on_paper::demand(ROLES.len(), &mut random);
        let instances = match number % 7 {
            3 => 2,
            5 => 4,
            _ => 8,
        };
        let mut each = |low: f64, high: f64| ROLES.map(|_| low + (high - low) * random.unit());
        let machine = Machine::from_shape("8x2x4").expect("a valid shape");
        let bed = |demand: &Demand| {
            Contention::new(
                machine.clone(),
                instances,
                &ROLES,
                demand.clone(),
                Disturbance::default(),
            )
        };
        let space = space(&bed(&demand), PerContext::AtMost(1));
        let (key, mut name) = (format!("paper-{number}"), format!("{} threads", 3 * instances));
        let (mut group, mut crowding) = (Group::ProbeDetails, Crowding::Sum);
        match number {
            9 => {
                demand.needle = Some(1.12);
                group = Group::Needle;
                name.push_str(", needle");
            }
            20 => {
                let free: f64 =
                    saved.get(&format!("{key}-free"), || on_paper::best(&bed(&demand), &space).0);
                demand.cap = Some(0.9 * free);
                name.push_str(", capped link");
            }
            ..SUMS => {}
            SUMS..SEEN if number.is_multiple_of(2) => {
                crowding = Crowding::Full { free: each(0.05, 0.5)[0] };
                name.push_str(", felt when full");
            }
            SUMS..SEEN => {
                crowding = Crowding::Clash { clash: each(0.05, 0.3)[0] };
                name.push_str(", worse together");
            }
            _ if number.is_multiple_of(2) => {
                (group, crowding) = (Group::HeldOut, Crowding::Queue { full: each(0.8, 2.0)[0] });
                name.push_str(", queueing, held out");
            }
            _ => {
                (group, crowding) =
                    (Group::HeldOut, Crowding::Greatest { rest: each(0.0, 0.3)[0] });
                name.push_str(", the greatest counts, held out");
            }
        }
        let bed = bed(&demand).crowded(crowding);
        let (optimum, known) = saved.get(&format!("{key}-optimum"), || {
            let (best, known) = on_paper::best(&bed, &space);
            if group != Group::Needle {
                return (best, known);
            }
            let needle = needle(&bed, instances);
            (best.max(needle), format!("{APART}, {:+.1} %", 100.0 * (needle / best - 1.0)))
        });
        let (noise, tree) = (NOISES[number / 3 % 3], space.tree().clone());
        Self {
            key,
            name,
            group,
            noise,
            bed: Bed::Paper(Box::new(bed)),
            tree,
            space,
            optimum,
            known,
        }
    }

    fn simulated(number: usize, mix: &[(PacketProgram, usize)], saved: &SavedResults) -> Self {
        let programs: Vec<PacketProgram> = mix
            .iter()
            .flat_map(|(program, instances)| std::iter::repeat_n(*program, *instances))
            .collect();
        let processor = Processor::model("ultrasparc-t2").expect("it is built in");
        let (machine, window) = (processor.machine(), SimulatedWindow::of(&programs));
        let bed = SimulatedTestbed::new(processor, machine, programs, window, 1).expect("it fits");
        let space = space(&bed, PerContext::AtMost(1));
        let name: Vec<String> = mix
            .iter()
            .map(|(program, instances)| format!("{}:{instances}", program.name()))
            .collect();
        let (key, mut name) = (format!("simulated-{number}"), name.join("+"));
        let mut group = Group::Simulated;
        let mut frozen = Frozen::new(bed);
        if number == NEEDLE {
            group = Group::Needle;
            name.push_str(", needle");
            frozen = frozen.with_needle(1.12);
        }
        let (mut optimum, known): (f64, String) = saved.get(&format!("{key}-optimum"), || {
            let truth =
                |class| frozen.truth(&Setting::Pinned(class), 0).expect("all can be simulated");
            if space.count() <= ENUMERABLE.into() {
                return (space.classes().map(truth).fold(0.0, f64::max), ENUMERATED.to_owned());
            }
            let apart = alike_on_cores(mix.iter().map(|(_, instances)| instances).sum());
            let apart = apart
                .filter(|_| group == Group::Needle)
                .map(|class| truth(space.canonical(&class)));
            (apart.fold(0.0, f64::max), APART.to_owned())
        });
        if number == CAPPED {
            name.push_str(", capped link");
            frozen = frozen.capped(0.9 * optimum);
            optimum *= 0.9;
        }
        let (noise, tree) = (NOISES[number % 3], space.tree().clone());
        Self { key, name, group, noise, bed: Bed::Simulated(frozen), tree, space, optimum, known }
    }

    /// The testbed; `seed` is of its noise.
    pub(crate) fn testbed(&self, seed: u64) -> Bed {
        self.bed.disturbed(Disturbance { noise: self.noise, seed, ..Disturbance::default() })
    }

    /// Without noise.
    pub(crate) fn quiet(&self) -> Bed {
        self.bed.disturbed(Disturbance::default())
    }

    /// Takes for the optimum the `most` that any campaign found, where that is more.
    pub(crate) fn settle(&mut self, most: f64) {
        if most > self.optimum * (1.0 + 1e-9) {
            self.known = match 100.0 * (most / self.optimum - 1.0) {
                by if by.is_finite() => {
                    format!("found by a campaign, {by:.2} % above {}", self.known)
                }
                _ => "the best of all campaigns".to_owned(),
            };
            self.optimum = most;
        }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.bed, Bed::Simulated(_))
    }

    /// Whether the best is known without searching.
    pub(crate) fn is_enumerated(&self) -> bool {
        self.known == ENUMERATED
    }
}

/// The best of the assignments in which all instances have a core each, and are alike.
fn needle(bed: &Contention, instances: usize) -> f64 {
    alike_on_cores(instances).map(|class| bed.truth(class.leaves())).fold(0.0, f64::max)
}

/// The assignments in which all instances have a core each, of an 8x2x4 machine, and are alike.
fn alike_on_cores(instances: usize) -> impl Iterator<Item = Assignment> {
    let within =
        SharingTree::new(&Machine::from_shape("2x4").expect("a valid shape"), Alike::ByStructure);
    let core = Space::new(within, 3, PerContext::AtMost(1)).expect("3 threads on 8 contexts");
    let everywhere = move |class: Assignment| {
        let on = |instance: u32| {
            class.leaves().iter().map(move |leaf| instance * 8 + leaf).collect::<Vec<_>>()
        };
        Assignment::new((0..instances as u32).flat_map(on).collect())
    };
    core.classes().map(everywhere).collect::<Vec<_>>().into_iter()
}
