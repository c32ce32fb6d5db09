//! Deals threads over contexts, so that each context has as much to do.

use pinwise_measure::ObservedThread;
use pinwise_topology::Random;

/// A thread that ran or waited for less of the time has no place.
pub(super) const HARDLY_BUSY: f64 = pinwise_measure::LeftAlone::HARDLY_RUNS;

/// A move must lower the load of the busiest context by at least this share of a CPU.
const WORTH_A_MOVE: f64 = 0.5;

/// The threads that have to be moved, and the context of each.
///
/// A busy thread without a context gets the least loaded one of `contexts` that it may use. Equal
/// ones are chosen at random, and so is the order. Threads with the fewest choices come first, as
/// others would take these. A thread with a context keeps it, unless contexts have become unequal
/// since threads ended.
pub(super) fn deal(
    threads: &[ObservedThread],
    contexts: &[usize],
    random: &mut Random,
) -> Vec<(u64, usize)> {
    let mut contexts = contexts.to_vec();
    random.shuffle(&mut contexts);
    let seat = |context: usize| contexts.iter().position(|&one| one == context);
    let mut load = vec![0.0; contexts.len()];
    let mut places: Vec<(&ObservedThread, usize)> = Vec::new();
    let mut new: Vec<(&ObservedThread, Vec<usize>)> = Vec::new();
    let threads: Vec<ObservedThread> = threads
        .iter()
        .filter(|thread| thread.busy >= HARDLY_BUSY)
        .map(|thread| ObservedThread { busy: rounded(thread.busy), ..thread.clone() })
        .collect();
    for thread in &threads {
        let choices: Vec<usize> =
            thread.allowed.iter().filter_map(|&context| seat(context)).collect();
        match thread.context.and_then(seat) {
            Some(at) => {
                load[at] += thread.busy;
                places.push((thread, at));
            }
            None if choices.is_empty() => {}
            None => new.push((thread, choices)),
        }
    }
    random.shuffle(&mut new);
    new.sort_by_key(|(_, choices)| choices.len());
    for (thread, mut choices) in new {
        choices.sort_unstable();
        let least = choices.into_iter().min_by(|&one, &other| load[one].total_cmp(&load[other]));
        let Some(at) = least else { continue };
        load[at] += thread.busy;
        places.push((thread, at));
    }
    while let Some((place, to)) = better_place(&places, &load, &seat) {
        let (thread, from) = places[place];
        load[from] -= thread.busy;
        load[to] += thread.busy;
        places[place].1 = to;
    }
    let moved = places.into_iter().map(|(thread, at)| (thread, contexts[at]));
    moved
        .filter(|(thread, context)| thread.context != Some(*context))
        .map(|(thread, context)| (thread.id, context))
        .collect()
}

/// A share of a CPU to quarters, at least one. So a split by one seed is the same in each period,
/// though threads are not exactly as busy.
fn rounded(busy: f64) -> f64 {
    (busy * 4.0).round().max(1.0) / 4.0
}

/// A thread of the busiest context, by its number in `places`, and the idlest context that it may
/// use. `None` if no move lowers the load of the busiest context enough.
fn better_place(
    places: &[(&ObservedThread, usize)],
    load: &[f64],
    seat: &impl Fn(usize) -> Option<usize>,
) -> Option<(usize, usize)> {
    let from = (0..load.len()).max_by(|&one, &other| load[one].total_cmp(&load[other]))?;
    let on_it = places.iter().enumerate().filter(|(_, (_, at))| *at == from);
    let moves = on_it.filter_map(|(place, (thread, _))| {
        let to = thread
            .allowed
            .iter()
            .filter_map(|&context| seat(context))
            .min_by(|&one, &other| load[one].total_cmp(&load[other]))?;
        let after = f64::max(load[from] - thread.busy, load[to] + thread.busy);
        (after <= load[from] - WORTH_A_MOVE).then_some((place, to, after))
    });
    let best = moves.min_by(|one, other| one.2.total_cmp(&other.2))?;
    Some((best.0, best.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u64, allowed: &[usize], context: Option<usize>) -> ObservedThread {
        let allowed = allowed.to_vec();
        ObservedThread { id, program: 0, allowed, context, busy: 1.0, counts: None }
    }

    fn loads(threads: &[ObservedThread], moves: &[(u64, usize)]) -> Vec<usize> {
        let mut loads = vec![0; 8];
        for thread in threads {
            let moved = moves.iter().find(|(id, _)| *id == thread.id).map(|(_, to)| *to);
            let Some(at) = moved.or(thread.context) else { continue };
            assert!(thread.allowed.contains(&at), "thread {} on {at}", thread.id);
            loads[at] += 1;
        }
        loads
    }

    #[test]
    fn contexts_get_equally_many_threads_within_each_mask_in_another_order_by_each_seed() {
        let all = [0, 1, 2, 3];
        let threads: Vec<ObservedThread> =
            (0..8).map(|id| thread(id, if id < 2 { &all[..1] } else { &all }, None)).collect();
        let of = |seed| deal(&threads, &all, &mut Random::new(seed));
        for seed in 0..20 {
            assert_eq!(loads(&threads, &of(seed))[..4], [2, 2, 2, 2]);
        }
        assert_eq!(of(3), of(3));
        assert!((0..20).any(|seed| of(seed) != of(3)));
    }

    #[test]
    fn a_new_thread_goes_where_least_is_to_do_and_the_others_stay() {
        let all = [0, 1];
        let threads =
            [thread(1, &all, Some(0)), thread(2, &all, Some(1)), thread(3, &all, Some(1))];
        let four = [&threads[..], &[thread(4, &all, None)]].concat();
        assert_eq!(deal(&four, &all, &mut Random::new(1)), [(4, 0)]);
    }

    #[test]
    fn when_threads_have_ended_the_rest_spreads_again() {
        let all = [0, 1];
        let threads = [thread(1, &all, Some(0)), thread(2, &all, Some(0))];
        let moves = deal(&threads, &all, &mut Random::new(1));
        assert_eq!(loads(&threads, &moves)[..2], [1, 1]);
        let bound = [thread(1, &[0], Some(0)), thread(2, &[0], Some(0))];
        assert_eq!(deal(&bound, &all, &mut Random::new(1)), []);
    }

    #[test]
    fn idle_threads_and_those_that_may_use_none_of_the_contexts_are_left_alone() {
        let idle = ObservedThread { busy: 0.001, ..thread(1, &[0, 1], None) };
        assert_eq!(deal(&[idle, thread(2, &[7], None)], &[0, 1], &mut Random::new(1)), []);
    }
}
