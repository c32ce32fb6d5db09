//! Workloads on paper that no published method describes. They have instances with two threads of
//! one role, more threads than contexts, or cores of two kinds.

use crate::saved_results::SavedResults;
use crate::workloads::{Case, Group, NOISES};
use pinwise_lab::Bed;
use pinwise_lab::on_paper::{self, space};
use pinwise_synthetic::{Contention, Disturbance};
use pinwise_topology::{Alike, CoreKind, CpuId, CpuSet, Machine, PerContext, Random, SharingTree};

/// Seeds of their demands, used for nothing else.
const SEEDS: u64 = 3000;
/// Seeds of those held out.
const HELD_OUT: u64 = 7100;

const PIPELINE: &[&str] = &["R", "P", "T"];
const TWO_WORKERS: &[&str] = &["R", "W", "W", "T"];

/// Three workloads of each sort, one with each amount of noise. Those held out were drawn when the
/// search for such workloads was done.
pub(crate) fn beyond(saved: &SavedResults) -> Vec<Case> {
    let numbers: Vec<usize> = (0..15).collect();
    pinwise_lab::parallel::each(&numbers, |number| case(*number, saved))
}

fn case(number: usize, saved: &SavedResults) -> Case {
    let shape = |shape: &str| Machine::from_shape(shape).expect("a valid shape");
    let (group, machine, roles, instances) = match number {
        0..3 => (Group::Workers, shape("8x2x4"), TWO_WORKERS, [6, 4, 2][number]),
        3 => (Group::Crowded, shape("2x2x4"), PIPELINE, 8),
        4 => (Group::Crowded, shape("2x2x2"), PIPELINE, 4),
        5 => (Group::Crowded, shape("2x2"), PIPELINE, 2),
        6..9 => (Group::Hybrid, hybrid(6), PIPELINE, [6, 4, 2][number % 3]),
        9 => (Group::CrowdedHeldOut, shape("2x3x4"), PIPELINE, 10),
        10 => (Group::CrowdedHeldOut, shape("3x2x2"), PIPELINE, 6),
        11 => (Group::CrowdedHeldOut, shape("3x2"), PIPELINE, 3),
        _ => (Group::HybridHeldOut, hybrid(3), PIPELINE, [5, 4, 3][number % 3]),
    };
    let is_hybrid = matches!(group, Group::Hybrid | Group::HybridHeldOut);
    let held_out = matches!(group, Group::CrowdedHeldOut | Group::HybridHeldOut);
    let seeds = if held_out { HELD_OUT } else { SEEDS };
    let mut random = Random::new(seeds + number as u64);
    let levels = SharingTree::new(&machine, Alike::ByStructure).around(0).len();
    let mut demand = on_paper::demand(3, &mut random);
    // The last is that of the whole machine.
    demand.burden.drain(1..4 - levels);
    demand.near = levels - 2;
    let slow = 0.5 + (0.8 - 0.5) * random.unit();
    let (threads, contexts) = (roles.len() * instances, machine.allowed.len());
    let speeds: &[f64] = if is_hybrid { &[1.0, slow] } else { &[1.0] };
    let bed = Contention::new(machine, instances, roles, demand, Disturbance::default())
        .with_speeds(speeds);
    let per_context = if threads > contexts { PerContext::Any } else { PerContext::AtMost(1) };
    let space = space(&bed, per_context);
    let key = format!("beyond-{number}");
    let (optimum, known) = saved.get(&format!("{key}-optimum"), || on_paper::best(&bed, &space));
    Case {
        key,
        name: format!("{threads} threads on {contexts} contexts, {}", group.name()),
        group,
        // Not with the size, which goes down in each sort.
        noise: NOISES[(number + number / 3) % 3],
        bed: Bed::Paper(Box::new(bed)),
        tree: space.tree().clone(),
        space,
        optimum,
        known,
    }
}

/// `fast` fast cores of two contexts, and slow ones of one. There are eight caches. A fast core has
/// one alone. Four slow cores share one.
fn hybrid(fast: u32) -> Machine {
    let mut machine = Machine::from_shape("l2:8 pu:4").expect("a valid shape");
    let is_slow = |cpu: u32| cpu >= 4 * fast;
    let cpus = |slow: bool| -> CpuSet {
        (0..32).filter(|cpu| is_slow(*cpu) == slow && (slow || cpu % 4 < 2)).map(CpuId).collect()
    };
    let kind =
        |name: &str, slow| CoreKind { name: name.to_owned(), cpus: cpus(slow), capacity: None };
    machine.kinds = vec![kind("performance", false), kind("efficiency", true)];
    machine
        .contexts
        .iter_mut()
        .for_each(|context| context.kind = usize::from(is_slow(context.cpu.0)));
    machine.allowed = cpus(false).union(&cpus(true));
    machine
}
