//! Which thread to keep to which context, quantum after quantum.
//!
//! **Terms.** *Siblings* are contexts that share a core, or another level that was chosen. A
//! *quantum* is the time between two decisions. A *split* says which thread is kept to which
//! context. *Alone* is without a thread on a sibling.
//!
//! **Problem.** Threads of one context never run at once. Threads on siblings do. A program that
//! only sets affinities cannot say when a thread runs. So it decides by the split: bad neighbours
//! share a context, and good ones are on siblings.
//!
//! **Method.** A [`CoscheduleRule`] says how fast threads are on one core. `split.rs` has the best
//! split for that. The split changes only if another one is better by a margin.
//!
//! **Limits.** Which threads of two siblings meet, and how often, is the scheduler's choice.

mod experience;
mod published;
mod split;

pub use published::{MissGroups, PublishedRule, PublishedWeights, QueuedTask, TaskInterval};

use crate::counter_model::{CounterModel, CounterModelError};
use experience::Experience;
use pinwise_measure::{CounterEvent, EventCounts, ObservedThread};
use serde::{Deserialize, Serialize};
use split::{SeatedThread, SplitProblem};
use std::collections::BTreeMap;
use thiserror::Error;

/// How the co-scheduler tells good neighbours from bad ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoscheduleRule {
    /// By how fast the threads of each program were seen to run beside those of each other one. It
    /// needs instructions and cycles, or instructions and the task clock.
    #[default]
    Seen,
    /// By the published value of two threads, with the published groups. It has no speeds, so the
    /// objective changes nothing.
    Published(PublishedRule),
    /// By a model that was fitted to pairs. Counts beside others stand for counts alone, which it
    /// was fitted to.
    #[serde(rename = "model")]
    Predicted(Box<CounterModel>),
}

/// Why a rule cannot decide on a machine.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CoscheduleRuleError {
    /// The model is of another CPU, or needs an event that is not counted.
    #[error(transparent)]
    Model(#[from] CounterModelError),
    /// Every weight is 0.
    #[error("every weight is 0, so all pairs would be equal: give one with --weight EVENT=NUMBER")]
    NoWeight,
    /// Every published value would be 0.
    #[error(
        "the published value needs cycles and an event that it weighs, and this processor counts \
         too few of them for pinwise: use --rule seen, or see pinwise doctor"
    )]
    NothingToWeigh,
    /// The model needs an event.
    #[error(
        "this processor does not count {event:?} for pinwise, and the model needs it: use --rule \
         seen, or see pinwise doctor"
    )]
    NotCounted {
        /// The event.
        event: CounterEvent,
    },
}

impl CoscheduleRule {
    /// Its name, as `--rule` takes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Published(_) => "published",
            Self::Predicted(_) => "model",
        }
    }

    /// Refuses a rule that cannot decide on a CPU model `cpu` by these events. Returns the events
    /// that it goes without.
    ///
    /// # Errors
    /// The model is of another CPU, or an event that the rule needs is not counted.
    pub fn check(
        &self,
        cpu: &str,
        events: &[CounterEvent],
    ) -> Result<Vec<CounterEvent>, CoscheduleRuleError> {
        let is_missing = |event: &CounterEvent| !events.contains(event);
        match self {
            Self::Seen => Ok(Vec::new()),
            Self::Published(rule) => {
                let weighed = rule.weights.events();
                if weighed.is_empty() {
                    return Err(CoscheduleRuleError::NoWeight);
                }
                let missing: Vec<CounterEvent> =
                    weighed.iter().copied().filter(is_missing).collect();
                if is_missing(&CounterEvent::Cycles) || missing.len() == weighed.len() {
                    return Err(CoscheduleRuleError::NothingToWeigh);
                }
                Ok(missing)
            }
            Self::Predicted(model) => {
                model.check_cpu(cpu)?;
                let mut needed = [CounterEvent::Cycles].into_iter().chain(model.events());
                match needed.find(is_missing) {
                    Some(event) => Err(CoscheduleRuleError::NotCounted { event }),
                    None => Ok(Vec::new()),
                }
            }
        }
    }
}

/// What a split shall give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoscheduleObjective {
    /// The largest sum of the speeds of all threads, each as a share of its speed alone. With
    /// [`CoscheduleRule::Seen`]: of its mean speed.
    Throughput,
    /// The largest speed of the thread that is slowed down most.
    Fairness,
    /// Throughput, but each thread keeps nine tenths of its fair speed: the mean of its speeds
    /// beside all others.
    #[default]
    Both,
}

/// How much better another split has to be, as a share.
const MARGIN: f64 = 0.01;
/// The step of smoothed counts and loads towards those of the last quantum.
const SMOOTHING: f64 = 0.2;

/// How many turns each thread has, about, before the split changes again.
const TURNS: usize = 3;
/// The factor by which the record of meetings fades in a quantum.
const MET_KEPT: f64 = 0.95;

/// Decides quantum after quantum.
#[derive(Clone, Debug)]
pub struct Coscheduler {
    contexts: Vec<usize>,
    /// The core of each context.
    cores: Vec<usize>,
    rule: CoscheduleRule,
    objective: CoscheduleObjective,
    threads: BTreeMap<u64, SmoothedThread>,
    experience: Experience,
    groups: MissGroups,
    /// By two threads: for how many quanta they ran beside each other since the last change.
    met: BTreeMap<(u64, u64), f64>,
    /// Quanta since then.
    quanta: usize,
}

/// The smoothed observations of a thread.
#[derive(Clone, Debug)]
struct SmoothedThread {
    busy: f64,
    counts: Option<EventCounts>,
}

impl Coscheduler {
    /// With these contexts: each item has siblings.
    pub fn new(
        cores: Vec<Vec<usize>>,
        rule: CoscheduleRule,
        objective: CoscheduleObjective,
    ) -> Self {
        let numbered = cores.iter().enumerate();
        Self {
            contexts: cores.concat(),
            cores: numbered.flat_map(|(core, of)| vec![core; of.len()]).collect(),
            rule,
            objective,
            threads: BTreeMap::new(),
            experience: Experience::default(),
            groups: MissGroups::default(),
            met: BTreeMap::new(),
            quanta: 0,
        }
    }

    /// The threads that shall be kept to another context than now, and to which.
    ///
    /// A new thread, or one on none of these contexts, gets one of those it may use. A thread that
    /// may use none of them is left alone. The answer follows from this and earlier observations
    /// alone.
    pub fn decide(&mut self, threads: &[ObservedThread]) -> Vec<(u64, usize)> {
        let may = |thread: &&ObservedThread| {
            thread.allowed.iter().any(|context| self.contexts.contains(context))
        };
        let threads: Vec<&ObservedThread> = threads.iter().filter(may).collect();
        if threads.is_empty() || self.contexts.is_empty() {
            return Vec::new();
        }
        self.observe(&threads);
        let kept = self.kept_contexts(&threads);
        let seated = threads.iter().zip(kept).map(|(thread, kept)| {
            let may = |context: &usize| match kept {
                Some(kept) => *context == kept,
                None => thread.allowed.contains(context),
            };
            let allowed: Vec<bool> = self.contexts.iter().map(may).collect();
            let seat = self.seat(thread).filter(|&seat| allowed[seat]);
            SeatedThread { busy: self.threads[&thread.id].busy, allowed, seat }
        });
        // Until each thread had a few turns, nothing is known of who meets whom. Then no other
        // split is looked for.
        let turns = TURNS * threads.len().div_ceil(self.contexts.len());
        let is_known = self.quanta >= turns;
        let problem = SplitProblem {
            cores: self.cores.clone(),
            threads: seated.collect(),
            speeds: self.speeds(&threads),
            objective: match self.rule {
                CoscheduleRule::Published(_) => CoscheduleObjective::Throughput,
                _ => self.objective,
            },
            met: if is_known { self.met_matrix(&threads) } else { Vec::new() },
            margin: if is_known || !matches!(self.rule, CoscheduleRule::Seen) {
                MARGIN
            } else {
                f64::INFINITY
            },
        };
        let chosen = problem.seats();
        let moved = threads
            .iter()
            .zip(chosen)
            .filter(|(thread, seat)| thread.context != Some(self.contexts[*seat]));
        let moved: Vec<(u64, usize)> =
            moved.map(|(thread, seat)| (thread.id, self.contexts[seat])).collect();
        if !moved.is_empty() {
            self.met.clear();
            self.quanta = 0;
        }
        moved
    }

    /// By two threads how long they met; empty if none did.
    fn met_matrix(&self, threads: &[&ObservedThread]) -> Vec<Vec<f64>> {
        if self.met.is_empty() {
            return Vec::new();
        }
        let met = |one: u64, other: u64| self.met.get(&(one, other)).copied().unwrap_or(0.0);
        let row =
            |one: &ObservedThread| threads.iter().map(|other| met(one.id, other.id)).collect();
        threads.iter().map(|one| row(one)).collect()
    }

    /// Where a thread is, if it may be there.
    fn seat(&self, thread: &ObservedThread) -> Option<usize> {
        let context = thread.context.filter(|context| thread.allowed.contains(context))?;
        self.contexts.iter().position(|&one| one == context)
    }

    /// Updates the state by the observations of a quantum.
    fn observe(&mut self, threads: &[&ObservedThread]) {
        let mut before = std::mem::take(&mut self.threads);
        for thread in threads {
            let known = match before.remove(&thread.id) {
                None => SmoothedThread { busy: thread.busy, counts: thread.counts.clone() },
                Some(old) => SmoothedThread {
                    busy: old.busy + SMOOTHING * (thread.busy - old.busy),
                    counts: match (old.counts, &thread.counts) {
                        (Some(old), Some(new)) => Some(smoothed(&old, new)),
                        (old, new) => new.clone().or(old),
                    },
                },
            };
            self.threads.insert(thread.id, known);
        }
        match self.rule {
            CoscheduleRule::Seen => self.gain_experience(threads),
            CoscheduleRule::Published(rule) if rule.groups => {
                // A quantum in which a thread ran is an interval of it.
                let interval = |thread: &&ObservedThread| {
                    let counts = thread.counts.as_ref();
                    let misses = counts.and_then(|of| of.per_cycle(CounterEvent::L2Misses));
                    TaskInterval { task: thread.id, misses, ended: misses.is_some() }
                };
                self.groups.observe(&threads.iter().map(interval).collect::<Vec<_>>());
            }
            CoscheduleRule::Published(_) | CoscheduleRule::Predicted(_) => {}
        }
    }

    /// What each thread did, with the shares of those on its siblings.
    fn gain_experience(&mut self, threads: &[&ObservedThread]) {
        let ran: Vec<f64> = threads.iter().map(|thread| time_run(thread)).collect();
        let seats: Vec<Option<usize>> = threads.iter().map(|thread| self.seat(thread)).collect();
        let mut all = vec![0.0; self.contexts.len()];
        for (seat, ran) in seats.iter().zip(&ran) {
            if let Some(seat) = seat {
                all[*seat] += ran;
            }
        }
        // No context runs longer than the busiest one.
        let longest = all.iter().fold(0.0f64, |most, ran| most.max(*ran));
        for ((thread, seat), ran_here) in threads.iter().zip(&seats).zip(&ran) {
            let (Some(seat), Some(rate)) = (*seat, instruction_rate(thread)) else { continue };
            // Less than this says little.
            if *ran_here < 0.02 * longest {
                continue;
            }
            let mut beside: BTreeMap<usize, f64> = BTreeMap::new();
            for ((other, at), ran) in threads.iter().zip(&seats).zip(&ran) {
                let is_sibling =
                    at.is_some_and(|at| at != seat && self.cores[at] == self.cores[seat]);
                if is_sibling && longest > 0.0 {
                    let share = ran_here / longest * ran / longest;
                    *self.met.entry((thread.id, other.id)).or_default() += share;
                    *beside.entry(other.program).or_default() += ran / longest;
                }
            }
            let beside: Vec<(usize, f64)> = beside.into_iter().collect();
            self.experience.observe(thread.program, rate, &beside);
        }
        let mut programs: Vec<usize> = threads.iter().map(|thread| thread.program).collect();
        programs.sort_unstable();
        programs.dedup();
        self.experience.pass(&programs);
        self.met.values_mut().for_each(|met| *met *= MET_KEPT);
        self.quanta += 1;
    }

    /// By thread the context for high misses, if the published groups keep it there: the first
    /// context of its core.
    fn kept_contexts(&self, threads: &[&ObservedThread]) -> Vec<Option<usize>> {
        let kept = |thread: &&ObservedThread| {
            let seat = self.seat(thread).filter(|_| self.groups.is_kept(thread.id))?;
            let first = self.cores.iter().position(|&core| core == self.cores[seat])?;
            Some(self.contexts[first]).filter(|context| thread.allowed.contains(context))
        };
        threads.iter().map(kept).collect()
    }

    /// By two threads: how fast the first is beside the second.
    fn speeds(&self, threads: &[&ObservedThread]) -> Vec<Vec<f64>> {
        let mut speeds = vec![vec![1.0; threads.len()]; threads.len()];
        for one in 0..threads.len() {
            for other in one + 1..threads.len() {
                let pair = [threads[one], threads[other]];
                let [first, second] = self.pair_speeds(pair);
                (speeds[one][other], speeds[other][one]) = (first, second);
            }
        }
        speeds
    }

    fn pair_speeds(&self, pair: [&ObservedThread; 2]) -> [f64; 2] {
        let counts = pair.map(|thread| self.threads[&thread.id].counts.as_ref());
        match (&self.rule, counts) {
            (CoscheduleRule::Seen, _) => {
                let [one, other] = pair.map(|thread| thread.program);
                [self.experience.speed(one, other), self.experience.speed(other, one)]
            }
            (CoscheduleRule::Published(rule), [Some(one), Some(other)]) => {
                [1.0 + rule.value([one, other]) / 2.0; 2]
            }
            (CoscheduleRule::Predicted(model), [Some(one), Some(other)]) => {
                let counts = [one, other].map(|counts| (String::new(), counts.clone()));
                model.predict(counts.each_ref()).map_or([1.0; 2], |pair| pair.kept)
            }
            _ => [1.0; 2],
        }
    }
}

/// How long a thread ran, in cycles or nanoseconds; the same for all, if all are counted alike.
fn time_run(thread: &ObservedThread) -> f64 {
    let counts = thread.counts.as_ref();
    let time = counts
        .and_then(|of| of.get(CounterEvent::Cycles).or_else(|| of.get(CounterEvent::TaskClock)));
    time.unwrap_or(0.0)
}

/// Instructions for each unit of [`time_run`].
fn instruction_rate(thread: &ObservedThread) -> Option<f64> {
    let instructions = thread.counts.as_ref()?.get(CounterEvent::Instructions)?;
    Some(instructions / time_run(thread)).filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// Counts between old and new ones. An event that only one has is as there.
fn smoothed(old: &EventCounts, new: &EventCounts) -> EventCounts {
    let mut counts = old.counts.clone();
    for (event, &count) in &new.counts {
        let before = counts.entry(*event).or_insert(count);
        *before += SMOOTHING * (count - *before);
    }
    EventCounts { seconds: new.seconds, counts, counted: new.counted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_model::TrainingPair;
    use pinwise_topology::Random;

    /// Fitted where two programs with many L2 misses harm each other.
    fn model() -> CounterModel {
        let many = |program: usize| program.is_multiple_of(2);
        let programs: Vec<(String, EventCounts)> = (0..10)
            .map(|one| (one.to_string(), counts(one, 1.0, if many(one) { 0.05 } else { 0.001 })))
            .collect();
        let keeps = |one, other| if many(one) && many(other) { 0.5 } else { 0.9 };
        let pairs = TrainingPair::all(10, keeps);
        CounterModel::fit("cpu", &[CounterEvent::L2Misses], &programs, &pairs).unwrap()
    }

    fn thread(id: usize, context: Option<usize>, counts: Option<EventCounts>) -> ObservedThread {
        let allowed = vec![0, 1, 2, 3];
        ObservedThread { id: id as u64, program: id, allowed, context, busy: 1.0, counts }
    }

    fn counts(id: usize, rate: f64, misses: f64) -> EventCounts {
        let counts = [
            (CounterEvent::Cycles, 1e6),
            (CounterEvent::Instructions, 1e6 * rate),
            (CounterEvent::L2Misses, 1e6 * misses),
            (CounterEvent::Branches, id as f64),
        ];
        EventCounts { seconds: 0.1, counts: BTreeMap::from(counts), counted: 1.0 }
    }

    /// Lets threads take turns on two contexts of a core for some quanta. In each, one of each
    /// context runs. Returns where they are, and how many moves there were in the last half.
    fn take_turns(
        scheduler: &mut Coscheduler,
        threads: usize,
        quanta: usize,
        mut rate: impl FnMut(usize, usize) -> f64,
    ) -> (Vec<usize>, usize) {
        let mut queues: [Vec<usize>; 2] =
            [0, 1].map(|side| (0..threads).filter(|one| one % 2 == side).collect());
        let mut late_moves = 0;
        for quantum in 0..quanta {
            // Queues turn at different paces, so all of both sides meet.
            let running = [queues[0][0], queues[1][0]];
            queues[0].rotate_left(1);
            queues[1].rotate_left(if quantum % threads == 0 { 2 } else { 1 });
            let side = |one: usize| usize::from(queues[1].contains(&one));
            let observed: Vec<ObservedThread> = (0..threads)
                .map(|one| {
                    let beside = running[1 - side(one)];
                    let ran = running.contains(&one).then(|| counts(one, rate(one, beside), 0.0));
                    thread(one, Some(side(one)), ran)
                })
                .collect();
            let moves = scheduler.decide(&observed);
            if quantum >= quanta / 2 {
                late_moves += moves.len();
            }
            for (id, context) in moves {
                queues[1 - context].retain(|&one| one as u64 != id);
                queues[context].push(id as usize);
            }
        }
        ((0..threads).map(|one| usize::from(queues[1].contains(&one))).collect(), late_moves)
    }

    fn seen(objective: CoscheduleObjective) -> Coscheduler {
        Coscheduler::new(vec![vec![0, 1]], CoscheduleRule::Seen, objective)
    }

    #[test]
    fn threads_that_harm_each_other_come_to_share_a_context() {
        let is_bad = |one: usize| one < 4;
        for objective in [CoscheduleObjective::Throughput, CoscheduleObjective::Both] {
            let rate = |one: usize, other| if is_bad(one) && is_bad(other) { 0.5 } else { 0.8 };
            let (split, late) = take_turns(&mut seen(objective), 8, 1000, rate);
            let bad: Vec<usize> = split[..4].to_vec();
            assert!(bad.iter().all(|&side| side == bad[0]), "{objective:?}: {split:?}");
            assert_eq!(split.iter().filter(|&&side| side == bad[0]).count(), 4);
            assert!(late <= 8, "{late} moves");
        }
    }

    #[test]
    fn noise_moves_few_threads() {
        let mut random = Random::new(6);
        let noisy = move |_, _| 0.8 + 0.1 * (random.unit() - 0.5);
        let (_, late) = take_turns(&mut seen(CoscheduleObjective::Both), 8, 2000, noisy);
        // Two for each change, of 1000 quanta.
        assert!(late <= 20, "{late} moves");
    }

    #[test]
    fn equal_observations_have_equal_answers() {
        let run = || {
            let mut random = Random::new(8);
            let rate = move |one: usize, other: usize| {
                0.3 + 0.1 * ((one * other) % 5) as f64 + 0.05 * random.unit()
            };
            take_turns(&mut seen(CoscheduleObjective::Both), 6, 300, rate)
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn as_many_threads_as_contexts_are_paired_by_the_model() {
        let mut scheduler = Coscheduler::new(
            vec![vec![0, 2], vec![1, 3]],
            CoscheduleRule::Predicted(Box::new(model())),
            CoscheduleObjective::Throughput,
        );
        // 0 and 1 are on one core, and should not be.
        let seats = [0, 2, 1, 3];
        let misses = [0.05, 0.05, 0.001, 0.001];
        let mut threads: Vec<ObservedThread> = (0..4)
            .map(|one| thread(one, Some(seats[one]), Some(counts(one, 1.0, misses[one]))))
            .collect();
        let moves = scheduler.decide(&threads);
        assert!(moves.len() <= 2, "no more than one of each core: {moves:?}");
        for (id, context) in moves {
            threads[id as usize].context = Some(context);
        }
        let core = |one: usize| threads[one].context.unwrap() % 2;
        assert!(core(0) != core(1) && core(2) != core(3));
        assert_eq!(scheduler.decide(&threads), []);
    }

    #[test]
    fn a_rule_without_what_it_needs_is_refused_and_says_what_it_goes_without() {
        use CounterEvent::{Branches, Cycles, FrontEndMisses, Instructions, L2Misses};
        let check = |rule: CoscheduleRule, cpu, events: &[CounterEvent]| {
            rule.check(cpu, events).map_err(|error| error.to_string())
        };
        assert_eq!(check(CoscheduleRule::Seen, "cpu", &[Instructions]), Ok(Vec::new()));
        let published = || CoscheduleRule::Published(PublishedRule::default());
        let without = check(published(), "cpu", &[Cycles, L2Misses, Branches]);
        assert_eq!(without, Ok(vec![FrontEndMisses, CounterEvent::FpOperations]));
        for events in [&[Cycles, Instructions][..], &[L2Misses, Branches]] {
            let error = check(published(), "cpu", events).unwrap_err();
            assert!(error.contains("needs cycles and an event") && error.contains("--rule seen"));
        }
        let mut nothing = PublishedRule::default();
        let weights = &mut nothing.weights;
        (weights.l2_misses, weights.front_end_misses) = (0.0, 0.0);
        (weights.fp, weights.branches, weights.instructions) = (0.0, 0.0, 0.0);
        let error = check(CoscheduleRule::Published(nothing), "cpu", &[Cycles]).unwrap_err();
        assert!(error.contains("every weight is 0"), "{error}");
        let predicted = || CoscheduleRule::Predicted(Box::new(model()));
        assert_eq!(check(predicted(), "cpu", &[Cycles, L2Misses]), Ok(Vec::new()));
        let error = check(predicted(), "cpu", &[Cycles]).unwrap_err();
        assert!(error.contains("does not count L2Misses"), "{error}");
        let error = check(predicted(), "mine", &[Cycles, L2Misses]).unwrap_err();
        assert!(error.contains("the model is of cpu"), "{error}");
    }

    #[test]
    fn a_rule_is_stored_with_its_parameters() {
        for rule in [
            CoscheduleRule::Seen,
            CoscheduleRule::Published(PublishedRule::default()),
            CoscheduleRule::Predicted(Box::new(model())),
        ] {
            let stored = serde_json::to_value(&rule).unwrap();
            assert_eq!(serde_json::from_value::<CoscheduleRule>(stored).unwrap(), rule);
        }
    }

    #[test]
    fn the_published_groups_come_to_the_first_context() {
        let rule = CoscheduleRule::Published(PublishedRule::default());
        let mut scheduler =
            Coscheduler::new(vec![vec![0, 1]], rule, CoscheduleObjective::Throughput);
        let mut contexts = [0, 1, 0, 1];
        for _ in 0..4 {
            let threads: Vec<ObservedThread> = (0..4)
                .map(|one| {
                    let misses = if one < 2 { 0.05 } else { 0.001 };
                    thread(one, Some(contexts[one]), Some(counts(one, 1.0, misses)))
                })
                .collect();
            for (id, context) in scheduler.decide(&threads) {
                contexts[id as usize] = context;
            }
        }
        assert_eq!(contexts, [0, 0, 1, 1]);
    }

    #[test]
    fn new_threads_are_spread_over_the_contexts_they_may_use() {
        let mut scheduler = Coscheduler::new(
            vec![vec![0, 2], vec![1, 3]],
            CoscheduleRule::Seen,
            CoscheduleObjective::Both,
        );
        let mut threads: Vec<ObservedThread> = (1..=4).map(|id| thread(id, None, None)).collect();
        threads[0].allowed = vec![0];
        threads[3].allowed = vec![7];
        let moves = scheduler.decide(&threads);
        assert_eq!(moves, [(1, 0), (2, 1), (3, 2)]);
        assert_eq!(scheduler.decide(&threads), moves);
        assert_eq!(scheduler.decide(&[]), []);
    }
}
