//! Workloads whose best possible performance is known, or as good as known.

use crate::frozen::Frozen;
use pinwise_prediction::{Predictor, draw};
use pinwise_simulator::program::Pipeline;
use pinwise_simulator::{Processor, SimulatedTestbed, Window};
use pinwise_testbed::{
    Contention, Crowding, Demand, Disturbance, Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit,
    Workload,
};
use pinwise_topology::{Alike, Assignment, Machine, PerContext, Random, SharingTree, Space};

/// One workload.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) group: Group,
    pub(crate) noise: f64,
    subject: Subject,
    pub(crate) tree: SharingTree,
    pub(crate) space: Space,
    pub(crate) optimum: f64,
    /// How the optimum is known.
    pub(crate) known: String,
}

/// Which workloads are reported together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// On paper; looked at while constants were chosen.
    Seen,
    /// On paper, of a structure that nobody had looked at when constants were chosen.
    HeldOut,
    /// With a needle for its optimum.
    Needle,
    /// Programs on the simulated processor.
    Simulated,
}

impl Group {
    pub(crate) const ALL: [Self; 4] = [Self::Seen, Self::HeldOut, Self::Needle, Self::Simulated];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::HeldOut => "held out",
            Self::Needle => "needle",
            Self::Simulated => "simulated",
        }
    }
}

enum Subject {
    Paper { demand: Demand, crowding: Crowding, instances: usize },
    Simulated(Frozen),
}

/// A workload to measure, whose truth can be asked for.
pub(crate) enum Bed {
    Paper(Box<Contention>),
    Simulated(Frozen),
}

impl Bed {
    /// What an assignment does, without noise; 0 where it cannot run.
    pub(crate) fn truth(&self, leaves: &[u32]) -> f64 {
        match self {
            Self::Paper(bed) => bed.truth(leaves),
            Self::Simulated(bed) => {
                bed.truth(&Setting::Pinned(Assignment::new(leaves.to_vec())), 0).unwrap_or_default()
            }
        }
    }
}

/// Without disturbance, as if it were a prediction: what annealing goes by.
struct Truth(Contention);

impl Predictor for Truth {
    fn predict(&self, leaves: &[u32]) -> f64 {
        self.0.truth(leaves)
    }
}

const ROLES: [&str; 3] = ["R", "P", "T"];
/// Workloads on paper whose threads burden each other by a sum; whose threads do so otherwise; and those held out, otherwise again.
const SUMS: usize = 28;
const SEEN: usize = 42;
const HELD_OUT: usize = 21;
/// Seeds of the workloads held out, used for nothing else.
const UNUSED: u64 = 2042;
pub(crate) const NOISES: [f64; 3] = [0.0, 0.002, 0.01];
/// Annealings of a workload that cannot be enumerated.
const RESTARTS: u64 = 6;
const STEPS: usize = 150_000;
/// Spaces up to this size are enumerated.
const ENUMERABLE: u32 = 10_000;

/// Workloads on paper: demands drawn from fixed seeds, noise 0, 0.2 and 1 % in turn. Most have 24 threads on an 8x2x4 processor, every
/// seventh 6 and every seventh 12; number 9 has a needle for its optimum and number 20 a capped link. From [`SUMS`] on threads crowd
/// each other otherwise, from [`SEEN`] on in ways that were not looked at before.
pub(crate) fn on_paper() -> Vec<Case> {
    let numbers: Vec<usize> = (0..SEEN + HELD_OUT).collect();
    crate::each(&numbers, |number| Case::on_paper(*number))
}

/// Which of the simulated workloads has a capped link, and which a needle for its optimum.
const CAPPED: usize = 12;
const NEEDLE: usize = 20;

/// Programs on the simulated UltraSPARC T2: each of the twelve in two instances, some in four and eight, and mixes, each program with its
/// instances. Noise 0, 0.2 and 1 % in turn, on top of the simulation's own chance.
pub(crate) fn simulated() -> Vec<Case> {
    const MIXES: [&[(Pipeline, usize)]; 12] = [
        &[(Pipeline::Hash1L1, 2)],
        &[(Pipeline::HashNL1, 1), (Pipeline::IntMul, 1)],
        &[(Pipeline::Hash1L2, 4)],
        &[(Pipeline::HashNMem, 4)],
        &[(Pipeline::Stateful, 4)],
        &[(Pipeline::AhoCorasick, 4)],
        &[(Pipeline::Hash1L1, 2), (Pipeline::IntMul, 2)],
        &[(Pipeline::HashNL2, 2), (Pipeline::IntAdd, 2)],
        &[(Pipeline::Hash1Mem, 4)],
        &[(Pipeline::Hash1L1, 4), (Pipeline::IntMul, 4)],
        &[(Pipeline::PacketAnalyzer, 8)],
        &[(Pipeline::AhoCorasick, 8)],
    ];
    let pairs = Pipeline::ALL.into_iter().map(|program| vec![(program, 2)]);
    let numbered: Vec<(usize, Vec<(Pipeline, usize)>)> = pairs.chain(MIXES.map(<[_]>::to_vec)).enumerate().collect();
    crate::each(&numbered, |(number, mix)| Case::simulated(*number, mix))
}

impl Case {
    fn on_paper(number: usize) -> Self {
        let seed = match number {
            ..SUMS => 1000 + number as u64,
            SUMS..SEEN => 1042 + (number - SUMS) as u64,
            _ => UNUSED + (number - SEEN) as u64,
        };
        let mut random = Random::new(seed);
        let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
        let mut each = |low: f64, high: f64| (0..3).map(|_| between(low, high)).collect::<Vec<f64>>();
        let time = each(0.6, 1.6);
        let burden = vec![each(0.05, 0.4), each(0.0, 0.15), each(0.0, 0.006)];
        let distance = each(0.0, 0.12)[0];
        let instances = match number % 7 {
            3 => 2,
            5 => 4,
            _ => 8,
        };
        let mut demand = Demand { time, burden, distance, near: 1, cap: None, needle: None };
        let machine = Machine::from_shape("8x2x4").expect("a valid shape");
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let space = Space::new(tree.clone(), 3 * instances, PerContext::AtMost(1)).expect("they fit");
        let mut name = format!("{} threads", 3 * instances);
        let (mut group, mut crowding) = (Group::Seen, Crowding::Sum);
        match number {
            9 => {
                demand.needle = Some(1.12);
                group = Group::Needle;
                name.push_str(", needle");
            }
            20 => {
                let free = best_on_paper(&demand, crowding, instances, &space).0;
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
                name.push_str(", queueing");
            }
            _ => {
                (group, crowding) = (Group::HeldOut, Crowding::Greatest { rest: each(0.0, 0.3)[0] });
                name.push_str(", the greatest counts");
            }
        }
        let (optimum, known) = best_on_paper(&demand, crowding, instances, &space);
        let subject = Subject::Paper { demand, crowding, instances };
        Self { name, group, noise: NOISES[number / 3 % 3], subject, tree, space, optimum, known }
    }

    fn simulated(number: usize, mix: &[(Pipeline, usize)]) -> Self {
        let programs: Vec<Pipeline> =
            mix.iter().flat_map(|(program, instances)| std::iter::repeat_n(*program, *instances)).collect();
        let processor = Processor::model("ultrasparc-t2").expect("it is built in");
        let (machine, window) = (processor.machine(), Window::of(&programs));
        let bed = SimulatedTestbed::new(processor, machine, programs, window, 1).expect("it fits");
        let tree = SharingTree::new(bed.machine(), Alike::ByStructure);
        let space =
            Space::new(tree.clone(), bed.workload().threads.len(), PerContext::AtMost(1)).expect("there is room");
        let name: Vec<String> =
            mix.iter().map(|(program, instances)| format!("{}:{instances}", program.name())).collect();
        let (mut name, mut known) = (name.join("+"), String::new());
        let mut group = Group::Simulated;
        let mut frozen = Frozen::new(bed);
        let simulate = |frozen: &Frozen, class| frozen.truth(&Setting::Pinned(class), 0).expect("all can be simulated");
        if number == NEEDLE {
            (group, known) = (Group::Needle, "every instance on a core of its own".to_owned());
            name.push_str(", needle");
            frozen = frozen.with_needle(1.12);
            for class in alike_on_cores(mix.iter().map(|(_, instances)| instances).sum()) {
                simulate(&frozen, space.canonical(&class));
            }
        }
        if space.count() <= ENUMERABLE.into() {
            // All are simulated now, and known from then on.
            space.classes().for_each(|class| {
                simulate(&frozen, class);
            });
            known.push_str("enumerated");
        }
        if number == CAPPED {
            name.push_str(", capped link");
            frozen = frozen.capped(0.9);
        }
        Self {
            name,
            group,
            noise: NOISES[number % 3],
            optimum: frozen.best().0,
            subject: Subject::Simulated(frozen),
            tree,
            space,
            known,
        }
    }

    /// The testbed; `seed` is of its noise.
    pub(crate) fn testbed(&self, seed: u64) -> Bed {
        self.disturbed(Disturbance { noise: self.noise, seed, ..Disturbance::default() })
    }

    /// Without noise.
    pub(crate) fn quiet(&self) -> Bed {
        self.disturbed(Disturbance::default())
    }

    fn disturbed(&self, disturbance: Disturbance) -> Bed {
        match &self.subject {
            Subject::Paper { demand, crowding, instances } => {
                Bed::Paper(Box::new(bed(demand, *crowding, *instances, disturbance)))
            }
            Subject::Simulated(frozen) => Bed::Simulated(frozen.clone().disturbed(disturbance)),
        }
    }

    /// What any campaign found is no better than the optimum; where that is not known by other means, it stands in for it.
    pub(crate) fn settle(&mut self, found: f64) {
        if let Subject::Simulated(frozen) = &self.subject {
            let (best, count) = frozen.best();
            self.optimum = best;
            if !self.is_enumerated() {
                let needle = if self.known.is_empty() { String::new() } else { format!(", {}", self.known) };
                self.known = format!("best of {count} simulated{needle}");
            }
        } else if found > self.optimum * (1.0 + 1e-9) {
            let by = 100.0 * (found / self.optimum - 1.0);
            self.known = format!("found by a campaign, {by:.2} % above {}", self.known);
            self.optimum = found;
        }
    }

    /// Whether the best is known without searching.
    pub(crate) fn is_enumerated(&self) -> bool {
        self.known == "enumerated"
    }
}

fn best_on_paper(demand: &Demand, crowding: Crowding, instances: usize, space: &Space) -> (f64, String) {
    let truth = Truth(bed(demand, crowding, instances, Disturbance::default()));
    if space.count() <= ENUMERABLE.into() {
        let best = space.classes().map(|class| truth.predict(class.leaves())).fold(0.0, f64::max);
        return (best, "enumerated".to_owned());
    }
    let anneal = |seed| truth.predict(draw(&truth, space, 1e-5, STEPS, &mut Random::new(seed)).leaves());
    let ends: Vec<f64> = (0..RESTARTS).map(anneal).collect();
    let best = ends.iter().copied().fold(0.0, f64::max);
    let reached = ends.iter().filter(|end| **end > best * 0.999).count();
    if demand.needle.is_some() {
        debug_assert_eq!(truth.0.workload().threads.len(), 3 * instances);
        let needle = needle(&truth, instances);
        return (
            best.max(needle),
            format!("every instance on a core of its own, {:+.1} %", 100.0 * (needle / best - 1.0)),
        );
    }
    (best, format!("annealed, {reached} of {RESTARTS} within 0.1 %"))
}

fn bed(demand: &Demand, crowding: Crowding, instances: usize, disturbance: Disturbance) -> Contention {
    let machine = Machine::from_shape("8x2x4").expect("a valid shape");
    Contention::new(machine, instances, &ROLES, demand.clone(), disturbance).crowded(crowding)
}

/// The best of the assignments in which all instances have a core each, and are alike.
fn needle(truth: &Truth, instances: usize) -> f64 {
    alike_on_cores(instances).map(|class| truth.predict(class.leaves())).fold(0.0, f64::max)
}

/// The assignments in which all instances have a core each, of an 8x2x4 machine, and are alike.
fn alike_on_cores(instances: usize) -> impl Iterator<Item = Assignment> {
    let within = SharingTree::new(&Machine::from_shape("2x4").expect("a valid shape"), Alike::ByStructure);
    let core = Space::new(within, 3, PerContext::AtMost(1)).expect("3 threads on 8 contexts");
    let everywhere = move |class: Assignment| {
        let on = |instance: u32| class.leaves().iter().map(move |leaf| instance * 8 + leaf).collect::<Vec<_>>();
        Assignment::new((0..instances as u32).flat_map(on).collect())
    };
    core.classes().map(everywhere).collect::<Vec<_>>().into_iter()
}

impl Testbed for Bed {
    fn machine(&self) -> &Machine {
        self.inner().machine()
    }

    fn workload(&self) -> &Workload {
        self.inner().workload()
    }

    fn unit(&self) -> &Unit {
        self.inner().unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.inner_mut().measure(setting, effort)
    }

    fn profiles(&self) -> bool {
        true
    }

    fn time(&self) -> Time {
        self.inner().time()
    }

    fn seek(&mut self, number: u64) {
        self.inner_mut().seek(number);
    }
}

impl Bed {
    fn inner(&self) -> &dyn Testbed {
        match self {
            Self::Paper(bed) => bed.as_ref(),
            Self::Simulated(bed) => bed,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Testbed {
        match self {
            Self::Paper(bed) => bed.as_mut(),
            Self::Simulated(bed) => bed,
        }
    }
}
