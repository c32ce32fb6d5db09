//! The best split of threads over contexts, for given values of pairs.
//!
//! **Terms.** A *seat* is the place of a context in a list. The *load* of a seat is the sum of what
//! its threads would run. A *share* is a thread's part of the time of its seat.
//!
//! **Problem.** Two threads on sibling seats meet in the product of their shares: the scheduler
//! lets them meet at random. So a thread's speed is its share, times the mean of its speeds beside
//! the threads of its sibling. Loads stay balanced, so no thread gains time at the cost of others.
//!
//! **Method.** With no more threads than seats, and two seats a core, the best is a perfect
//! matching ([`Matchings`]). Otherwise two threads change places, or one moves, as long as that
//! improves the split. The same is tried from a few other starts. This is a local search, which may
//! miss the best. A new split must be better by a margin: counts are noisy, and a move costs a cold
//! cache.

use crate::coscheduler::CoscheduleObjective;
use crate::matching::Matchings;
use pinwise_topology::Random;

/// The share of its fair speed that a thread keeps, with [`CoscheduleObjective::Both`].
pub(super) const FLOOR: f64 = 0.9;
/// What a speed below the floor costs, in speeds. Above the number of threads that may gain by it.
const BELOW_FLOOR: f64 = 10.0;
/// The exponent at which the sum of powers is about its largest.
const POWER: i32 = -8;
/// A swap or move may raise the larger of two loads by this much.
const LOAD_SLACK: f64 = 0.1;
/// A move for balance lowers the larger of two loads by at least this.
const LOAD_GAIN: f64 = 0.2;
/// Other begins of the local search, and the most threads with which it has them.
const BEGINS: (usize, usize) = (6, 24);
/// The most seats that are matched exactly.
const MATCHED: usize = 16;

/// A thread to seat.
#[derive(Clone, Debug)]
pub(super) struct SeatedThread {
    /// The share of the time in which it runs or waits, 0 to 1.
    pub(super) busy: f64,
    /// By seat whether it may be there; at least one.
    pub(super) allowed: Vec<bool>,
    /// Where it is.
    pub(super) seat: Option<usize>,
}

/// Threads, seats, and the objective.
#[derive(Clone, Debug)]
pub(super) struct SplitProblem {
    /// The core of each seat.
    pub(super) cores: Vec<usize>,
    pub(super) threads: Vec<SeatedThread>,
    /// By two threads: the speed of the first beside the second. 1 is its speed alone.
    pub(super) speeds: Vec<Vec<f64>>,
    pub(super) objective: CoscheduleObjective,
    /// By two threads: how long they ran beside each other in the split as it is. Empty: not known,
    /// or not long enough.
    pub(super) met: Vec<Vec<f64>>,
    /// How much better another split has to be, as a share. Infinite: none is looked for.
    pub(super) margin: f64,
}

/// A change of the seat of a thread.
#[derive(Clone, Copy, Debug)]
enum SeatChange {
    /// With this thread.
    Swap(usize),
    /// To this seat.
    Move(usize),
}

impl SeatChange {
    fn apply(self, seats: &mut [usize], one: usize) {
        match self {
            Self::Swap(two) => seats.swap(one, two),
            Self::Move(to) => seats[one] = to,
        }
    }
}

impl SplitProblem {
    /// The seat of each thread.
    pub(super) fn seats(&self) -> Vec<usize> {
        let fair = self.fair();
        let now = self.balanced(&fair);
        if self.margin.is_infinite() {
            return now;
        }
        let mut best = match self.matched(&fair, &now) {
            Some(matched) => matched,
            None => self.searched(&fair, &now),
        };
        self.name_alike(&mut best, &now);
        let stays = self.threads.iter().zip(&now).all(|(thread, &seat)| thread.seat == Some(seat));
        let is = if stays { self.score_as_met(&now, &fair) } else { self.score(&now, &fair) };
        let needed = is + self.margin * is.abs().max(f64::MIN_POSITIVE);
        if best == now && self.score(&now, &fair) > needed {
            // Those meet that should not. After any swap others meet.
            best = self.best_swap(&now, &fair);
        }
        if self.score(&best, &fair) > needed { best } else { now }
    }

    /// The score of the split as it is, by who really ran beside whom. The scheduler may let the
    /// same threads meet again and again.
    fn score_as_met(&self, seats: &[usize], fair: &[f64]) -> f64 {
        if self.met.is_empty() {
            return self.score(seats, fair);
        }
        let loads = self.loads(seats);
        let of = |one: usize| {
            let share = self.threads[one].busy / loads[seats[one]].max(1.0);
            let met: f64 = self.met[one].iter().sum();
            let beside = self.met[one].iter().zip(&self.speeds[one]);
            let lost: f64 = beside.map(|(met, speed)| met * (1.0 - speed)).sum();
            share * self.worth(1.0 - lost / met.max(1.0), fair[one])
        };
        (0..seats.len()).map(of).sum()
    }

    /// The best split that differs from this one by a swap.
    fn best_swap(&self, now: &[usize], fair: &[f64]) -> Vec<usize> {
        let loads = self.loads(now);
        let mut best = (f64::NEG_INFINITY, now.to_vec());
        for one in 0..now.len() {
            for two in one + 1..now.len() {
                if self.may_swap(now, &loads, one, two) {
                    let mut other = now.to_vec();
                    other.swap(one, two);
                    let score = self.score(&other, fair);
                    if score > best.0 {
                        best = (score, other);
                    }
                }
            }
        }
        best.1
    }

    /// The speed of each thread on its share, if every other one is beside it equally often.
    fn fair(&self) -> Vec<f64> {
        let load: f64 = self.threads.iter().map(|thread| thread.busy).sum();
        let occupied = (load / self.cores.len() as f64).min(1.0);
        let of = |one: usize| {
            let (mut sum, mut weight) = (0.0, 0.0);
            for (other, thread) in self.threads.iter().enumerate().filter(|&(two, _)| two != one) {
                sum += thread.busy * self.speeds[one][other];
                weight += thread.busy;
            }
            let mean = if weight > 0.0 { sum / weight } else { 1.0 };
            1.0 - occupied * (1.0 - mean)
        };
        (0..self.threads.len()).map(of).collect()
    }

    /// What a speed on a thread's share is worth.
    fn worth(&self, speed: f64, fair: f64) -> f64 {
        match self.objective {
            CoscheduleObjective::Throughput => speed,
            CoscheduleObjective::Fairness => -speed.max(0.01).powi(POWER),
            CoscheduleObjective::Both => speed - BELOW_FLOOR * (FLOOR * fair - speed).max(0.0),
        }
    }

    fn loads(&self, seats: &[usize]) -> Vec<f64> {
        let mut loads = vec![0.0; self.cores.len()];
        for (thread, &seat) in self.threads.iter().zip(seats) {
            loads[seat] += thread.busy;
        }
        loads
    }

    /// What the threads of these cores are worth together.
    fn score_of(&self, seats: &[usize], fair: &[f64], cores: [usize; 2]) -> f64 {
        let here: Vec<usize> = (0..self.threads.len())
            .filter(|&thread| cores.contains(&self.cores[seats[thread]]))
            .collect();
        let mut load = vec![0.0; self.cores.len()];
        here.iter().for_each(|&thread| load[seats[thread]] += self.threads[thread].busy);
        let share = |thread: usize| self.threads[thread].busy / load[seats[thread]].max(1.0);
        let here: Vec<(usize, f64)> = here.iter().map(|&thread| (thread, share(thread))).collect();
        let siblings = |seat: usize| {
            let all = 0..self.cores.len();
            all.filter(move |&other| other != seat && self.cores[other] == self.cores[seat])
        };
        let mut sum = 0.0;
        for &(one, share) in &here {
            let lost = |sibling: usize| -> f64 {
                let there = here.iter().filter(|(other, _)| seats[*other] == sibling);
                there.map(|(other, share)| share * (1.0 - self.speeds[one][*other])).sum()
            };
            let speed: f64 = siblings(seats[one]).map(|sibling| 1.0 - lost(sibling)).product();
            sum += share * self.worth(speed, fair[one]);
        }
        sum
    }

    fn score(&self, seats: &[usize], fair: &[f64]) -> f64 {
        let cores = self.cores.iter().max().map_or(0, |last| last + 1);
        (0..cores).map(|core| self.score_of(seats, fair, [core; 2])).sum()
    }

    /// Every thread on a seat, with loads as equal as single moves make them.
    fn balanced(&self, fair: &[f64]) -> Vec<usize> {
        let mut loads = vec![0.0; self.cores.len()];
        let mut core_loads = loads.clone();
        let mut add = |loads: &mut Vec<f64>, seat: usize, busy: f64| {
            loads[seat] += busy;
            core_loads[self.cores[seat]] += busy;
            core_loads.clone()
        };
        let mut by_core = vec![0.0; self.cores.len()];
        for thread in &self.threads {
            if let Some(seat) = thread.seat {
                by_core = add(&mut loads, seat, thread.busy);
            }
        }
        let mut seats = Vec::new();
        for thread in &self.threads {
            let seat = thread.seat.unwrap_or_else(|| {
                let may = (0..loads.len()).filter(|&seat| thread.allowed[seat]);
                let key = |seat: usize| (loads[seat], by_core[self.cores[seat]]);
                let least =
                    may.min_by(|&one, &other| key(one).partial_cmp(&key(other)).expect("no NaN"));
                let seat = least.expect("a seat is allowed");
                by_core = add(&mut loads, seat, thread.busy);
                seat
            });
            seats.push(seat);
        }
        // Each move makes the sum of the squares of the loads smaller, so this ends.
        while let Some(better) = self.balancing_move(&seats, fair) {
            seats = better;
        }
        seats
    }

    /// The move that balances most loads best; of equal ones, the most worth.
    fn balancing_move(&self, seats: &[usize], fair: &[f64]) -> Option<Vec<usize>> {
        let loads = self.loads(seats);
        let mut best: Option<((f64, f64), Vec<usize>)> = None;
        for (one, thread) in self.threads.iter().enumerate() {
            for to in (0..loads.len()).filter(|&to| thread.allowed[to]) {
                let from = loads[seats[one]];
                let lowered = from - (loads[to] + thread.busy).max(from - thread.busy);
                if to == seats[one] || lowered < LOAD_GAIN {
                    continue;
                }
                let mut moved = seats.to_vec();
                moved[one] = to;
                let key = ((lowered * 16.0).round(), self.score(&moved, fair));
                if best.as_ref().is_none_or(|(most, _)| key > *most) {
                    best = Some((key, moved));
                }
            }
        }
        best.map(|(_, seats)| seats)
    }

    /// The best matching, under three conditions. There is a seat for each thread, each core has
    /// two, and each thread may run anywhere.
    fn matched(&self, fair: &[f64], now: &[usize]) -> Option<Vec<usize>> {
        let (threads, seats) = (self.threads.len(), self.cores.len());
        let cores = seats / 2;
        let of_core = |core| (0..seats).filter(move |&seat| self.cores[seat] == core);
        let pairs_of_seats: Vec<Vec<usize>> =
            (0..cores).map(|core| of_core(core).collect()).collect();
        if threads > seats
            || seats > MATCHED
            || pairs_of_seats.iter().any(|pair| pair.len() != 2)
            || self.threads.iter().any(|thread| thread.allowed.contains(&false))
        {
            return None;
        }
        // Seats without a thread are threads that never run.
        let worth = |one: usize, other: usize| {
            let busy = |thread: usize| self.threads.get(thread).map_or(0.0, |thread| thread.busy);
            if one >= threads {
                return 0.0;
            }
            let lost = if other < threads { 1.0 - self.speeds[one][other] } else { 0.0 };
            busy(one) * self.worth(1.0 - busy(other) * lost, fair[one])
        };
        let weights: Vec<Vec<f64>> = (0..seats)
            .map(|one| (0..seats).map(|other| worth(one, other) + worth(other, one)).collect())
            .collect();
        let mut pairs = Matchings::of(seats).best(&weights);
        let mut chosen = vec![0; threads];
        for core in pairs_of_seats {
            let stays = |pair: &(usize, usize)| {
                let is_here = |&one: &usize| now.get(one).is_some_and(|seat| core.contains(seat));
                [pair.0, pair.1].iter().filter(|&one| is_here(one)).count()
            };
            let at = (0..pairs.len()).max_by_key(|&at| stays(&pairs[at]))?;
            let pair = pairs.swap_remove(at);
            for (one, seat) in [pair.0, pair.1].into_iter().zip(core) {
                if one < threads {
                    chosen[one] = seat;
                }
            }
        }
        Some(chosen)
    }

    /// The best of what the local search comes to.
    fn searched(&self, fair: &[f64], now: &[usize]) -> Vec<usize> {
        let mut best = self.improved(now.to_vec(), fair);
        let mut most = self.score(&best, fair);
        let threads = self.threads.len();
        let begins = if threads <= BEGINS.1 { BEGINS.0 } else { 0 };
        let mut random = Random::new(threads as u64);
        for _ in 0..begins {
            let mut other = now.to_vec();
            for _ in 0..threads {
                let [one, two] = [0; 2].map(|_| random.below(threads as u64) as usize);
                if self.may_swap(&other, &self.loads(&other), one, two) {
                    other.swap(one, two);
                }
            }
            let other = self.improved(other, fair);
            let score = self.score(&other, fair);
            if score > most + 1e-9 {
                (best, most) = (other, score);
            }
        }
        best
    }

    fn may_swap(&self, seats: &[usize], loads: &[f64], one: usize, two: usize) -> bool {
        let [first, second] = [&self.threads[one], &self.threads[two]];
        let [from, to] = [seats[one], seats[two]];
        if from == to || !first.allowed[to] || !second.allowed[from] {
            return false;
        }
        let more = first.busy - second.busy;
        (loads[from] - more).max(loads[to] + more) <= loads[from].max(loads[to]) + LOAD_SLACK
    }

    /// Swaps and moves, as long as they make the split better.
    fn improved(&self, mut seats: Vec<usize>, fair: &[f64]) -> Vec<usize> {
        let threads = self.threads.len();
        // The score rises with each change, so this ends; the bound is for rounding.
        for _ in 0..4 * threads {
            let before = seats.clone();
            for one in 0..threads {
                let mut best = (1e-9, None);
                for change in self.changes(&seats, one) {
                    let gain = self.gain(&mut seats, fair, one, change);
                    if gain > best.0 {
                        best = (gain, Some(change));
                    }
                }
                if let Some(change) = best.1 {
                    change.apply(&mut seats, one);
                }
            }
            if seats == before {
                break;
            }
        }
        seats
    }

    /// What a thread may do without less balance.
    fn changes(&self, seats: &[usize], one: usize) -> Vec<SeatChange> {
        let loads = self.loads(seats);
        let thread = &self.threads[one];
        let swaps = (one + 1..self.threads.len())
            .filter(|&two| self.may_swap(seats, &loads, one, two))
            .map(SeatChange::Swap);
        let fits = |&to: &usize| {
            let load = loads[to] + thread.busy;
            to != seats[one] && thread.allowed[to] && load <= loads[seats[one]] + LOAD_SLACK
        };
        swaps.chain((0..loads.len()).filter(fits).map(SeatChange::Move)).collect()
    }

    /// How much more the cores that a change concerns are worth after it.
    fn gain(&self, seats: &mut [usize], fair: &[f64], one: usize, change: SeatChange) -> f64 {
        let to = match change {
            SeatChange::Swap(two) => seats[two],
            SeatChange::Move(to) => to,
        };
        let cores = [self.cores[seats[one]], self.cores[to]];
        let before = self.score_of(seats, fair, cores);
        let from = seats[one];
        change.apply(seats, one);
        let after = self.score_of(seats, fair, cores);
        let back = match change {
            SeatChange::Swap(_) => change,
            SeatChange::Move(_) => SeatChange::Move(from),
        };
        back.apply(seats, one);
        after - before
    }

    /// Exchanges seats of one core if more threads then stay where they are.
    fn name_alike(&self, seats: &mut [usize], now: &[usize]) {
        for one in 0..self.cores.len() {
            for two in (one + 1..self.cores.len()).filter(|&two| self.cores[two] == self.cores[one])
            {
                let other = |seat| match seat {
                    seat if seat == one => two,
                    seat if seat == two => one,
                    seat => seat,
                };
                let stay = |of: &dyn Fn(usize) -> usize| {
                    seats.iter().zip(now).filter(|&(&seat, &now)| of(seat) == now).count()
                };
                let mut threads = self.threads.iter().zip(&*seats);
                let may = threads.all(|(thread, &seat)| thread.allowed[other(seat)]);
                if may && stay(&other) > stay(&|seat| seat) {
                    seats.iter_mut().for_each(|seat| *seat = other(*seat));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTIVES: [CoscheduleObjective; 3] =
        [CoscheduleObjective::Throughput, CoscheduleObjective::Fairness, CoscheduleObjective::Both];

    /// Threads that are always busy, on random seats, with random speeds.
    fn random_problem(threads: usize, cores: &[usize], random: &mut Random) -> SplitProblem {
        let seats = cores.len();
        let thread = |number: usize| SeatedThread {
            busy: 1.0,
            allowed: vec![true; seats],
            seat: Some(number % seats),
        };
        let speeds = (0..threads)
            .map(|_| (0..threads).map(|_| 0.4 + 0.6 * random.unit()).collect())
            .collect();
        SplitProblem {
            cores: cores.to_vec(),
            threads: (0..threads).map(thread).collect(),
            speeds,
            met: Vec::new(),
            objective: CoscheduleObjective::Throughput,
            margin: 0.0,
        }
    }

    /// The largest score of all splits whose loads differ by one thread at most.
    fn by_force(problem: &SplitProblem) -> f64 {
        let (threads, seats) = (problem.threads.len(), problem.cores.len());
        let fair = problem.fair();
        let mut best = f64::NEG_INFINITY;
        for number in 0..seats.pow(threads as u32) {
            let split: Vec<usize> =
                (0..threads).map(|one| number / seats.pow(one as u32) % seats).collect();
            let loads = problem.loads(&split);
            let most = loads.iter().fold(0.0f64, |most, load| most.max(*load));
            if loads.iter().all(|load| most - load <= 1.0) {
                best = best.max(problem.score(&split, &fair));
            }
        }
        best
    }

    #[test]
    fn up_to_eight_threads_are_split_as_well_as_by_trying_all() {
        let mut random = Random::new(3);
        for (threads, cores) in
            [(3, vec![0, 0]), (6, vec![0, 0]), (8, vec![0, 0]), (6, vec![0, 0, 1, 1])]
        {
            for _ in 0..12 {
                for objective in OBJECTIVES {
                    let problem =
                        SplitProblem { objective, ..random_problem(threads, &cores, &mut random) };
                    let score = problem.score(&problem.seats(), &problem.fair());
                    let best = by_force(&problem);
                    assert!(score >= best - 1e-9, "{threads} {objective:?}: {score} of {best}");
                }
            }
        }
    }

    #[test]
    fn as_many_threads_as_seats_are_matched_as_well_as_by_trying_all() {
        let mut random = Random::new(4);
        let cores = [0, 0, 1, 1, 2, 2];
        for threads in 1..=6 {
            for objective in OBJECTIVES {
                let problem =
                    SplitProblem { objective, ..random_problem(threads, &cores, &mut random) };
                let now = problem.balanced(&problem.fair());
                assert!(problem.matched(&problem.fair(), &now).is_some());
                let score = problem.score(&problem.seats(), &problem.fair());
                assert!(score >= by_force(&problem) - 1e-9, "{threads} {objective:?}");
            }
        }
    }

    #[test]
    fn bad_neighbours_share_a_context() {
        let mut problem = random_problem(4, &[0, 0], &mut Random::new(1));
        let bad = [0, 1];
        let speed =
            |one: usize, other| if bad.contains(&one) && bad.contains(&other) { 0.4 } else { 0.9 };
        problem.speeds =
            (0..4).map(|one| (0..4).map(|other| speed(one, other)).collect()).collect();
        let seats = problem.seats();
        assert!(seats[0] == seats[1] && seats[2] == seats[3] && seats[0] != seats[2], "{seats:?}");
    }

    #[test]
    fn the_floor_is_kept_where_the_sum_alone_would_break_it() {
        // The first suffers beside the last two, and the sum is largest there.
        let mut problem = random_problem(4, &[0, 0], &mut Random::new(1));
        problem.speeds = vec![
            vec![1.0, 0.5, 0.3, 0.3],
            vec![0.32, 1.0, 0.6, 0.6],
            vec![0.8, 0.7, 1.0, 0.7],
            vec![0.8, 0.7, 0.7, 1.0],
        ];
        let fair = problem.fair()[0];
        let mut first = |objective| {
            problem.objective = objective;
            let seats = problem.seats();
            let beside = (1..4).filter(|&other| seats[other] != seats[0]);
            let speeds: Vec<f64> = beside.map(|other| problem.speeds[0][other]).collect();
            speeds.iter().sum::<f64>() / speeds.len() as f64
        };
        assert!(first(CoscheduleObjective::Throughput) < FLOOR * fair);
        assert!(first(CoscheduleObjective::Both) >= FLOOR * fair);
    }

    #[test]
    fn masks_are_kept_and_the_split_comes_to_rest() {
        let mut random = Random::new(9);
        for _ in 0..50 {
            let threads = 3 + random.below(9) as usize;
            let mut problem = random_problem(threads, &[0, 0, 1, 1], &mut random);
            problem.margin = 0.01;
            for thread in &mut problem.threads {
                thread.busy = 0.1 + 0.9 * random.unit();
                thread.allowed = (0..4).map(|_| random.below(3) > 0).collect();
                let first = random.below(4) as usize;
                thread.allowed[first] = true;
                thread.seat = (random.below(2) > 0).then_some(first);
            }
            let mut last = Vec::new();
            // Each change has to gain the margin, so they end.
            for _ in 0..6 {
                let seats = problem.seats();
                for (thread, &seat) in problem.threads.iter_mut().zip(&seats) {
                    assert!(thread.allowed[seat]);
                    thread.seat = Some(seat);
                }
                last = seats;
            }
            assert_eq!(problem.seats(), last);
        }
    }
}
