//! Minutes of a scheduler with two run queues, on a core with two contexts.
//!
//! **Terms.** A *slice* is how long a task runs before the next one of its queue. A queue has
//! *active* tasks and those that had their slice. When no active one is left, all become active
//! again (Linux 2.6.5, `kernel/sched.c`).
//!
//! **Problem.** The core model needs a second for a millisecond of the core. A study needs days.
//!
//! **Method.** Between two events, a phase runs beside a phase, at the rates of [`PhaseRates`]. An
//! event is the end of a slice or a phase, a tick, or a look of the load balancer. A task that
//! begins a slice first loses what a cold cache costs. Contexts share all caches, so a move between
//! them costs no more than that.
//!
//! **Limits.** A phase is in its steady state at once. Tasks never wait, and none ends.

use crate::phase_rates::PhaseRates;
use pinwise_coscheduling::{
    CoscheduleObjective, CoscheduleRule, Coscheduler, Matchings, MissGroups, PublishedRule,
    QueuedTask, TaskInterval,
};
use pinwise_measure::{CounterEvent, EventCounts, ObservedThread};
use pinwise_smt::{CounterValues, PhasedProgram};
use pinwise_topology::Random;
use std::collections::{BTreeMap, VecDeque};

/// A slice, and the time between two looks of a co-scheduler in user space, in seconds (published).
pub const SLICE: f64 = 0.1;
/// A slice is up to this much longer: interrupts (free).
const JITTER: f64 = 0.002;
/// Time between two looks of the load balancer (Linux 2.6.5, of a busy CPU).
const BALANCED: f64 = 0.2;
/// Counts of a slice differ by this much, as a standard deviation (free).
const NOISE: f64 = 0.02;

/// Who decides what runs where.
#[derive(Clone, Debug)]
pub enum SchedulerPolicy {
    /// Linux alone.
    Base,
    /// The published rule in the kernel: it picks the next task, and keeps tasks to a context.
    PublishedKernel(PublishedRule),
    /// Pinwise's co-scheduler, which only sets affinities.
    Affinity(CoscheduleRule, CoscheduleObjective),
    /// A split that stays: which tasks are on the second context.
    Fixed(Vec<bool>),
    /// For comparison only, in the kernel. All tasks are matched by the true speeds of their
    /// phases, before each has its slice. Both of a pair begin at once.
    MatchedPairs,
}

/// What came out of a run.
#[derive(Clone, Debug, Default)]
pub struct SetRun {
    /// By task: micro-operations.
    pub micro_ops: Vec<f64>,
    /// By task: the work it did, in seconds that it takes alone.
    pub progress: Vec<f64>,
    /// By task: seconds on a context.
    pub ran: Vec<f64>,
    /// Tasks that changed their context.
    pub moves: u32,
    /// By task: instructions per cycle and L2 misses per cycle of each slice.
    pub slices: Vec<Vec<[f64; 2]>>,
    /// Mean number of tasks that the published groups keep.
    pub kept: f64,
}

/// Programs on a core.
#[derive(Clone, Copy, Debug)]
pub struct SmtStudy<'a> {
    /// All programs.
    pub programs: &'a [PhasedProgram],
    /// What their phases do.
    pub rates: &'a PhaseRates,
    /// Cycles per second.
    pub hertz: f64,
    /// The length of a run, in seconds.
    pub seconds: f64,
}

#[derive(Debug)]
struct SimulatedTask {
    program: usize,
    phase: usize,
    /// Seconds alone until its phase ends.
    phase_left: f64,
    /// Seconds until its caches are warm.
    cold: f64,
    /// Seconds of its slice that are left.
    slice: f64,
    context: usize,
    passed_over: u32,
    /// Events since it was dispatched, and since the last tick.
    slice_events: TaskEvents,
    tick_events: TaskEvents,
    /// Of its last slice, as the kernel reads them.
    counts: Option<EventCounts>,
}

/// Events as numbers that are not whole.
#[derive(Clone, Copy, Debug, Default)]
struct TaskEvents {
    seconds: f64,
    /// As in [`COUNTED`].
    events: [f64; 6],
}

const COUNTED: [CounterEvent; 6] = [
    CounterEvent::Instructions,
    CounterEvent::Branches,
    CounterEvent::FrontEndMisses,
    CounterEvent::L2Misses,
    CounterEvent::FpOperations,
    CounterEvent::L1DataMisses,
];

impl TaskEvents {
    fn add(&mut self, seconds: f64, events: [f64; 6]) {
        self.seconds += seconds;
        self.events.iter_mut().zip(events).for_each(|(all, new)| *all += new);
    }

    /// As counters show them, and then forgotten. `None`: it did not run.
    fn read(&mut self, hertz: f64, random: &mut Random) -> Option<EventCounts> {
        let TaskEvents { seconds, events } = std::mem::take(self);
        if seconds <= 0.0 {
            return None;
        }
        let noisy = |event: f64| event * (1.0 + NOISE * random.normal()).max(0.0);
        let counts = COUNTED.into_iter().zip(events.map(noisy));
        let mut counts: BTreeMap<CounterEvent, f64> = counts.collect();
        counts.insert(CounterEvent::Cycles, seconds * hertz);
        Some(EventCounts { seconds, counts, counted: 1.0 })
    }
}

fn event_array(values: CounterValues) -> [f64; 6] {
    let CounterValues { micro_ops, branches, trace_misses, l2_misses, fp, .. } = values;
    [micro_ops, branches, trace_misses, l2_misses, fp, values.l1_misses].map(|count| count as f64)
}

/// A run queue of a context.
#[derive(Debug, Default)]
struct ContextQueue {
    running: Option<usize>,
    active: VecDeque<usize>,
    expired: VecDeque<usize>,
}

impl ContextQueue {
    fn len(&self) -> usize {
        self.active.len() + self.expired.len() + usize::from(self.running.is_some())
    }
}

impl<'a> SmtStudy<'a> {
    /// Runs a set of programs, each as one task.
    pub fn run(&self, set: &[usize], policy: &SchedulerPolicy, seed: u64) -> SetRun {
        SchedulerRun::new(self, set, policy, seed).run()
    }

    /// How fast a phase is beside another one, as a share of its speed alone.
    pub fn speed(&self, phase: usize, beside: usize) -> f64 {
        let alone = self.rates.events(phase, None).per_cycle();
        self.rates.events(phase, Some(beside)).per_cycle() / alone
    }

    /// How fast a program is beside another one, over all phases in proportion to their lengths.
    pub fn mean_speed(&self, program: usize, beside: usize) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (one, phase) in self.programs[program].phases.iter().enumerate() {
            for (two, other) in self.programs[beside].phases.iter().enumerate() {
                let phases = [self.rates.phase(program, one), self.rates.phase(beside, two)];
                let length = phase.seconds * other.seconds;
                sum += length * self.speed(phases[0], phases[1]);
                weight += length;
            }
        }
        sum / weight
    }

    /// What counters see of a program alone, over its phases in proportion to their lengths.
    pub fn mean_counts(&self, program: usize) -> EventCounts {
        let mut counts: BTreeMap<CounterEvent, f64> = BTreeMap::new();
        for (number, phase) in self.programs[program].phases.iter().enumerate() {
            let values = self.rates.events(self.rates.phase(program, number), None);
            *counts.entry(CounterEvent::Cycles).or_default() +=
                phase.seconds * values.cycles as f64;
            for (event, count) in COUNTED.into_iter().zip(event_array(values)) {
                *counts.entry(event).or_default() += phase.seconds * count;
            }
        }
        EventCounts { seconds: 1.0, counts, counted: 1.0 }
    }

    /// The split of eight or fewer programs into halves with the largest sum of mean speeds.
    pub fn best_split(&self, set: &[usize]) -> Vec<bool> {
        let speed = |one: usize, other: usize| self.mean_speed(set[one], set[other]);
        let halves =
            (0..1u32 << set.len()).filter(|half| half.count_ones() as usize * 2 == set.len());
        let side = |half: u32, one: usize| half >> one & 1 == 1;
        let score = |half: u32| -> f64 {
            let pairs = (0..set.len()).flat_map(|one| (0..set.len()).map(move |two| (one, two)));
            let meet = pairs.filter(|&(one, two)| side(half, one) != side(half, two));
            meet.map(|(one, two)| speed(one, two)).sum()
        };
        let best = halves.max_by(|&one, &two| score(one).total_cmp(&score(two)));
        (0..set.len()).map(|one| side(best.expect("a set"), one)).collect()
    }
}

/// The state of a run.
struct SchedulerRun<'a> {
    study: &'a SmtStudy<'a>,
    policy: SchedulerPolicy,
    tasks: Vec<SimulatedTask>,
    queues: [ContextQueue; 2],
    coscheduler: Option<Coscheduler>,
    groups: MissGroups,
    /// Pairs whose turn is to come.
    pairs: Vec<(usize, usize)>,
    /// Phases are the same for all policies, noise of slices and counts is of the run.
    phase_random: Vec<Random>,
    random: Random,
    made: SetRun,
    kept: (f64, f64),
}

impl<'a> SchedulerRun<'a> {
    fn new(study: &'a SmtStudy<'a>, set: &[usize], policy: &SchedulerPolicy, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut order: Vec<usize> = (0..set.len()).collect();
        random.shuffle(&mut order);
        let mut queues: [ContextQueue; 2] = Default::default();
        let mut contexts = vec![0; set.len()];
        for (place, &task) in order.iter().enumerate() {
            let context = match policy {
                SchedulerPolicy::Fixed(second) => usize::from(second[task]),
                _ => place % 2,
            };
            queues[context].active.push_back(task);
            contexts[task] = context;
        }
        let mut phase_random: Vec<Random> =
            (0..set.len()).map(|_| Random::new(random.bits())).collect();
        let begin = |(task, &program): (usize, &usize)| SimulatedTask {
            program,
            phase: 0,
            phase_left: study.phase_seconds(program, 0, &mut phase_random[task]),
            cold: 0.0,
            slice: 0.0,
            context: contexts[task],
            passed_over: 0,
            slice_events: TaskEvents::default(),
            tick_events: TaskEvents::default(),
            counts: None,
        };
        let tasks: Vec<SimulatedTask> = set.iter().enumerate().map(begin).collect();
        let zeros = || vec![0.0; set.len()];
        let made = SetRun {
            micro_ops: zeros(),
            progress: zeros(),
            ran: zeros(),
            slices: vec![Vec::new(); set.len()],
            ..SetRun::default()
        };
        let coscheduler = match policy {
            SchedulerPolicy::Affinity(rule, objective) => {
                Some(Coscheduler::new(vec![vec![0, 1]], rule.clone(), *objective))
            }
            _ => None,
        };
        Self {
            study,
            policy: policy.clone(),
            tasks,
            queues,
            coscheduler,
            groups: MissGroups::default(),
            pairs: Vec::new(),
            phase_random,
            random,
            made,
            kept: (0.0, 0.0),
        }
    }

    fn run(mut self) -> SetRun {
        let (mut now, mut tick, mut balance) = (0.0, SLICE, BALANCED);
        while now < self.study.seconds - 1e-9 {
            self.dispatch();
            let mut until = (tick - now).min(balance - now).min(self.study.seconds - now);
            for context in [0, 1] {
                if let Some(task) = self.queues[context].running {
                    until =
                        until.min(self.tasks[task].slice).min(self.until_warm_or_phase(context));
                }
            }
            let until = until.max(1e-7);
            self.advance(until);
            now += until;
            for context in [0, 1] {
                let over = |&task: &usize| self.tasks[task].slice <= 1e-9;
                if let Some(task) = self.queues[context].running.filter(over) {
                    self.end_slice(context, task);
                }
            }
            if now >= tick - 1e-9 {
                tick += SLICE;
                self.look();
            }
            if now >= balance - 1e-9 {
                balance += BALANCED;
                self.balance();
            }
        }
        self.made.kept = self.kept.0 / self.kept.1.max(1.0);
        self.made
    }

    fn phase_of(&self, task: usize) -> usize {
        self.study.rates.phase(self.tasks[task].program, self.tasks[task].phase)
    }

    /// The phase on a context, if its caches are warm or cold.
    fn phase_on(&self, context: usize) -> Option<usize> {
        self.queues[context].running.map(|task| self.phase_of(task))
    }

    /// Speed of the task on a context, as a share of its speed alone.
    fn speed_on(&self, context: usize) -> f64 {
        match (self.phase_on(context), self.phase_on(1 - context)) {
            (Some(one), Some(other)) => self.study.speed(one, other),
            _ => 1.0,
        }
    }

    fn until_warm_or_phase(&self, context: usize) -> f64 {
        let Some(task) = self.queues[context].running else { return f64::INFINITY };
        let task = &self.tasks[task];
        if task.cold > 0.0 { task.cold } else { task.phase_left / self.speed_on(context) }
    }

    /// Lets both contexts run.
    fn advance(&mut self, seconds: f64) {
        let now = [0, 1].map(|context| (self.phase_on(context), self.speed_on(context)));
        for context in [0, 1] {
            let (Some(task), (Some(phase), speed)) = (self.queues[context].running, now[context])
            else {
                continue;
            };
            let values = self.study.rates.events(phase, now[1 - context].0);
            let one = &mut self.tasks[task];
            one.slice -= seconds;
            self.made.ran[task] += seconds;
            let is_cold = one.cold > 0.0;
            one.cold = (one.cold - seconds).max(0.0);
            let per_second = self.study.hertz / values.cycles as f64;
            let works = if is_cold { 0.0 } else { per_second * seconds };
            let events = event_array(values).map(|count| count * works);
            one.slice_events.add(seconds, events);
            one.tick_events.add(seconds, events);
            self.made.micro_ops[task] += events[0];
            if is_cold {
                continue;
            }
            self.made.progress[task] += seconds * speed;
            one.phase_left -= seconds * speed;
            if one.phase_left <= 1e-9 {
                one.phase = (one.phase + 1) % self.study.programs[one.program].phases.len();
                let random = &mut self.phase_random[task];
                one.phase_left = self.study.phase_seconds(one.program, one.phase, random);
            }
        }
    }

    fn end_slice(&mut self, context: usize, task: usize) {
        self.queues[context].running = None;
        self.queues[context].expired.push_back(task);
        let one = &mut self.tasks[task];
        let [ipc, l2m] = [0, 3].map(|event| {
            one.slice_events.events[event] / (one.slice_events.seconds * self.study.hertz)
        });
        self.made.slices[task].push([ipc, l2m]);
        one.counts = one.slice_events.read(self.study.hertz, &mut self.random);
        one.passed_over = 0;
        if let SchedulerPolicy::PublishedKernel(rule) = self.policy
            && rule.groups
        {
            self.group(task);
        }
    }

    /// Gives each idle context its next task.
    fn dispatch(&mut self) {
        if matches!(self.policy, SchedulerPolicy::MatchedPairs) {
            self.dispatch_pair();
            return;
        }
        if self.queues.iter().any(|queue| queue.len() == 0) {
            // An idle CPU looks at once.
            self.balance();
        }
        for context in [0, 1] {
            let beside = self.queues[1 - context].running;
            let queue = &mut self.queues[context];
            if queue.running.is_some() {
                continue;
            }
            if queue.active.is_empty() {
                std::mem::swap(&mut queue.active, &mut queue.expired);
            }
            let at = match self.policy {
                SchedulerPolicy::PublishedKernel(rule) => {
                    let task = |&task: &usize| QueuedTask {
                        counts: self.tasks[task].counts.as_ref(),
                        passed_over: self.tasks[task].passed_over,
                    };
                    let tasks: Vec<QueuedTask<'_>> = queue.active.iter().map(task).collect();
                    let beside = beside.and_then(|task| self.tasks[task].counts.as_ref());
                    rule.next(beside, &tasks)
                }
                _ => (!queue.active.is_empty()).then_some(0),
            };
            let Some(at) = at else { continue };
            for &passed in queue.active.iter().take(at) {
                self.tasks[passed].passed_over += 1;
            }
            let task = queue.active.remove(at).expect("it is in the queue");
            let longer = JITTER * self.random.unit();
            self.begin_slice(context, task, SLICE + longer);
        }
    }

    fn begin_slice(&mut self, context: usize, task: usize, slice: f64) {
        self.queues[context].running = Some(task);
        let cold = self.study.rates.cold_cycles(self.phase_of(task)) / self.study.hertz;
        let one = &mut self.tasks[task];
        (one.slice, one.context, one.cold) = (slice, context, cold);
    }

    fn dispatch_pair(&mut self) {
        if self.queues.iter().any(|queue| queue.running.is_some()) {
            return;
        }
        if self.pairs.is_empty() {
            let phases: Vec<usize> =
                (0..self.tasks.len()).map(|task| self.phase_of(task)).collect();
            let weight = |one: usize, other: usize| {
                if one == other { 0.0 } else { self.study.speed(phases[one], phases[other]) }
            };
            let both = |one, other| weight(one, other) + weight(other, one);
            let tasks = 0..self.tasks.len();
            let weights: Vec<Vec<f64>> = tasks
                .clone()
                .map(|one| tasks.clone().map(|two| both(one, two)).collect())
                .collect();
            self.pairs = Matchings::of(self.tasks.len()).best(&weights);
        }
        let (one, other) = self.pairs.pop().expect("tasks are even");
        let slice = SLICE + JITTER * self.random.unit();
        self.begin_slice(0, one, slice);
        self.begin_slice(1, other, slice);
    }

    /// What a co-scheduler in user space sees and does.
    fn look(&mut self) {
        let Some(coscheduler) = &mut self.coscheduler else { return };
        let (hertz, random) = (self.study.hertz, &mut self.random);
        let tasks = self.tasks.iter_mut().enumerate();
        let observed = tasks.map(|(task, one)| ObservedThread {
            id: task as u64,
            program: task,
            allowed: vec![0, 1],
            context: Some(one.context),
            busy: 1.0,
            counts: one.tick_events.read(hertz, random),
        });
        let observed: Vec<ObservedThread> = observed.collect();
        for (task, context) in coscheduler.decide(&observed) {
            self.move_task(task as usize, context);
        }
    }

    /// Takes a task from its queue to the end of the other one.
    fn move_task(&mut self, task: usize, context: usize) {
        let from = &mut self.queues[1 - context];
        let had_slice = from.expired.contains(&task);
        from.running = from.running.filter(|&running| running != task);
        from.active.retain(|&one| one != task);
        from.expired.retain(|&one| one != task);
        let to = &mut self.queues[context];
        if had_slice {
            to.expired.push_back(task)
        } else {
            to.active.push_back(task)
        }
        self.tasks[task].context = context;
        self.made.moves += 1;
    }

    /// The published groups, when the slice of a task `ended`: who is kept to context 0 goes there.
    fn group(&mut self, ended: usize) {
        let misses = |task: &SimulatedTask| task.counts.as_ref()?.per_cycle(CounterEvent::L2Misses);
        let interval = |(number, task): (usize, &SimulatedTask)| TaskInterval {
            task: number as u64,
            misses: misses(task),
            ended: number == ended,
        };
        let all: Vec<TaskInterval> = self.tasks.iter().enumerate().map(interval).collect();
        self.groups.observe(&all);
        let kept: Vec<usize> =
            (0..self.tasks.len()).filter(|&task| self.groups.is_kept(task as u64)).collect();
        self.kept = (self.kept.0 + kept.len() as f64, self.kept.1 + 1.0);
        for task in kept {
            let is_running = self.queues[1].running == Some(task);
            if self.tasks[task].context == 1 && !is_running {
                self.move_task(task, 0);
            }
        }
    }

    /// Linux's balancer. If queues differ by two or more, the longer one gives away a task that is
    /// not running. Tasks that had their slice go first.
    fn balance(&mut self) {
        if !matches!(self.policy, SchedulerPolicy::Base | SchedulerPolicy::PublishedKernel(_)) {
            return;
        }
        for context in [0, 1] {
            if self.queues[1 - context].len() < self.queues[context].len() + 2 {
                continue;
            }
            let from = &self.queues[1 - context];
            let mut movable = from.expired.iter().rev().chain(from.active.iter().rev());
            let free = movable.find(|&&task| !self.groups.is_kept(task as u64));
            if let Some(&task) = free {
                self.move_task(task, context);
            }
        }
    }
}

impl SmtStudy<'_> {
    /// A length of a phase, half to one and a half times its mean.
    fn phase_seconds(&self, program: usize, phase: usize, random: &mut Random) -> f64 {
        self.programs[program].phases[phase].seconds * (0.5 + random.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_smt::SmtCore;

    /// Runs 10 s of the first `tasks` of these programs.
    fn run(tasks: usize, policy: &SchedulerPolicy) -> SetRun {
        let folder = tempfile::tempdir().unwrap();
        let programs = &PhasedProgram::spec2000()[9..13];
        let core = SmtCore::northwood();
        let rates = PhaseRates::of(&core, programs, (50_000, 50_000), &folder.path().join("rates"))
            .unwrap();
        let hertz = core.clock_ghz * 1e9;
        let study = SmtStudy { programs, rates: &rates, hertz, seconds: 10.0 };
        study.run(&(0..tasks).collect::<Vec<_>>(), policy, 1)
    }

    #[test]
    fn a_task_alone_makes_the_progress_of_its_time_but_for_cold_caches() {
        let alone = run(1, &SchedulerPolicy::Base);
        assert!((alone.ran[0] - 10.0).abs() < 0.01);
        assert!((9.9..10.0).contains(&alone.progress[0]), "{:?}", alone.progress);
    }

    #[test]
    fn time_is_shared_equally_and_a_policy_repeats_itself() {
        let rule = CoscheduleRule::Seen;
        for policy in [
            SchedulerPolicy::Base,
            SchedulerPolicy::PublishedKernel(PublishedRule::default()),
            SchedulerPolicy::Affinity(rule, CoscheduleObjective::Both),
            SchedulerPolicy::Fixed(vec![true, false, true, false]),
            SchedulerPolicy::MatchedPairs,
        ] {
            let made = run(4, &policy);
            let all: f64 = made.ran.iter().sum();
            assert!((all - 20.0).abs() < 0.02, "both contexts run: {all}");
            for task in 0..4 {
                assert!((4.0..6.0).contains(&made.ran[task]), "{policy:?}: {:?}", made.ran);
                // Beside others it is slower than alone.
                assert!(made.progress[task] < made.ran[task]);
            }
            assert_eq!(made.micro_ops, run(4, &policy).micro_ops);
        }
    }
}
