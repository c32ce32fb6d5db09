//! Decides which thread runs where: wake-up placement, preemption, time slices, balancing, taking
//! work away.
//!
//! The rules are those of the OpenSolaris dispatcher. A thread that wakes is queued at its last
//! context, if it ran there within the last 30 ms. Otherwise it goes to the context that runs the
//! least important thread, its own package first. The queue there may be longer than that of the
//! next context in the ring of its package. Then the thread goes to the next. From priority 16 on,
//! the difference must exceed two. A higher priority preempts at once. The preempted thread goes to
//! the front of its queue, a thread whose slice ended to the back. An idle context takes the most
//! important thread that has waited 100 µs elsewhere, from its own package first. A bound thread
//! stays where it is.

use super::{Burst, Kernel, Nanos, Owner, Phase, State, ThreadIndex, Timer, Wait, timesharing};
use std::cmp::Reverse;

/// From this priority on run queues may differ by [`SLACK`].
const LOOSE: u8 = 16;
const SLACK: usize = 2;

impl Kernel<'_> {
    /// Makes a sleeping or new thread ready.
    pub(super) fn wake(&mut self, id: ThreadIndex) {
        let now = self.now;
        let thread = &mut self.threads[id];
        thread.charge_waiting(now);
        if matches!(thread.state, State::Waiting(Wait::Lock | Wait::Join)) {
            self.stopped -= 1;
        }
        if timesharing::waited_too_long(thread.priority, thread.looks) {
            thread.priority = timesharing::lifted(thread.priority);
            thread.looks = 0;
            thread.slice = timesharing::slice(thread.priority);
        }
        let context = self.choose(id);
        self.enqueue(id, context);
    }

    /// Queues `id`, which is on no queue and no context, at the back of its priority.
    fn enqueue(&mut self, id: ThreadIndex, context: usize) {
        let now = self.now;
        let thread = &mut self.threads[id];
        let priority = thread.priority;
        (thread.state, thread.since, thread.queued) = (State::Queued, now, now);
        self.contexts[context].queue.push_back(id, priority);
        match self.contexts[context].running {
            None => self.dispatch(context),
            Some(running) => {
                if self.threads[running].priority < priority {
                    self.to_preempt.push(context);
                }
                self.offer(context);
            }
        }
    }

    /// Where a thread that becomes ready is queued.
    fn choose(&self, id: ThreadIndex) -> usize {
        if self.is_bound(id) {
            return id % self.contexts.len();
        }
        let thread = &self.threads[id];
        let warm = thread.last.filter(|_| self.now - thread.last_ran <= self.platform.costs.warmth);
        let chosen = warm.unwrap_or_else(|| self.least_important(id));
        let slack = if thread.priority >= LOOSE { SLACK } else { 0 };
        let next = self.platform.neighbour(chosen);
        let length = |context: usize| self.contexts[context].queue.len_at(thread.priority);
        if length(chosen).saturating_sub(slack) > length(next) { next } else { chosen }
    }

    /// Whether `id` may run on one context only.
    fn is_bound(&self, id: ThreadIndex) -> bool {
        self.platform.bound && self.threads[id].owner == Owner::Program
    }

    /// The context on which `id` would run at once, at home if possible. It runs the least
    /// important thread, or none. If there is none, the best at home. Among equals, the context
    /// that `id` ran on last, then the first from its own place on.
    fn least_important(&self, id: ThreadIndex) -> usize {
        let thread = &self.threads[id];
        let packages = self.platform.packages();
        let mut at_home = None;
        for distance in 0..packages.len() {
            let members = &packages[(thread.home + distance) % packages.len()];
            let start = id / packages.len() % members.len();
            let best = (0..members.len())
                .map(|place| members[(start + place) % members.len()])
                .min_by_key(|&context| (self.importance(context), Some(context) != thread.last));
            let Some(best) = best else { continue };
            if self.importance(best).is_none_or(|importance| importance < thread.priority) {
                return best;
            }
            at_home.get_or_insert(best);
        }
        at_home.unwrap_or(0)
    }

    /// The highest priority that runs or waits at `context`; `None` if it is idle.
    fn importance(&self, context: usize) -> Option<u8> {
        let place = &self.contexts[context];
        place.running.map(|thread| self.threads[thread].priority).max(place.queue.top())
    }

    /// Gives the idle `context` the next thread, from its own queue or from another's.
    pub(super) fn dispatch(&mut self, context: usize) {
        let next = self.contexts[context].queue.pop().or_else(|| self.steal(context));
        let Some(id) = next else {
            let place = &mut self.contexts[context];
            (place.idle, place.burst_end, place.slice_end) = (true, Nanos::NEVER, Nanos::NEVER);
            return;
        };
        let costs = self.platform.costs;
        let now = self.now;
        let thread = &mut self.threads[id];
        thread.charge_waiting(now);
        thread.state = State::Running(context);
        thread.overhead += costs.switch.0 as f64;
        if std::mem::take(&mut self.contexts[context].idle) {
            thread.overhead += costs.idle_exit.0 as f64;
        }
        if let Some(last) = thread.last.filter(|&last| last != context) {
            thread.account.migrations += 1;
            thread.refill = self.platform.refill(
                last,
                context,
                if thread.owner == Owner::Program { self.working_set } else { 0.0 },
            );
        }
        thread.last = Some(context);
        let slice = thread.slice;
        let place = &mut self.contexts[context];
        place.running = Some(id);
        place.since = now;
        place.slice_end = now + slice;
        self.foresee(context);
    }

    /// Takes the running thread off `context`; its account and its slice are up to date after this.
    pub(super) fn take_off(&mut self, context: usize) -> Option<ThreadIndex> {
        self.settle(context);
        let place = &mut self.contexts[context];
        let id = place.running.take()?;
        let thread = &mut self.threads[id];
        thread.slice = place.slice_end - self.now;
        thread.last_ran = self.now;
        thread.since = self.now;
        Some(id)
    }

    /// The burst of a thread of another program begins or ends.
    pub(super) fn turn(&mut self, id: ThreadIndex) {
        let (now, place) = (self.now, id + self.others.len() - self.threads.len());
        let clock = &mut self.others[place];
        if clock.until <= self.began + now {
            clock.turn();
        }
        let next = clock.until - self.began;
        if clock.until < Nanos::NEVER {
            self.timer(next, Timer::Turn(id));
        }
        match self.threads[id].state {
            State::Running(context) => self.block(context, Wait::Sleep),
            State::Queued => {
                for context in &mut self.contexts {
                    context.queue.remove(id);
                }
                let thread = &mut self.threads[id];
                thread.charge_waiting(now);
                thread.state = State::Waiting(Wait::Sleep);
            }
            State::New | State::Waiting(_) | State::Done => self.wake(id),
        }
    }

    /// The running thread of `context` waits for something; the next one runs.
    pub(super) fn block(&mut self, context: usize, why: Wait) {
        if let Some(id) = self.take_off(context) {
            let thread = &mut self.threads[id];
            thread.state = State::Waiting(why);
            thread.account.voluntary += 1;
            if why != Wait::Sleep {
                self.stopped += 1;
            }
            self.dispatch(context);
        }
    }

    /// A thread of higher priority waits at `context`, unless another context has taken it
    /// meanwhile.
    pub(super) fn preempt(&mut self, context: usize) {
        let Some(running) = self.contexts[context].running else { return };
        let priority = self.threads[running].priority;
        if self.contexts[context].queue.top().is_some_and(|top| top > priority) {
            self.put_back(context);
        }
    }

    /// The slice of the running thread of `context` has ended.
    pub(super) fn end_slice(&mut self, context: usize) {
        let Some(running) = self.contexts[context].running else { return };
        let thread = &mut self.threads[running];
        if thread.owner != Owner::System {
            thread.priority = timesharing::expired(thread.priority);
        }
        thread.looks = 0;
        let (priority, slice) = (thread.priority, timesharing::slice(thread.priority));
        self.contexts[context].slice_end = self.now + slice;
        if self.contexts[context].queue.top().is_some_and(|top| top >= priority) {
            self.put_back(context);
        }
    }

    /// The running thread of `context` has to make room. It goes to the front of the queue if some
    /// of its slice is left. Else it goes to the back of the queue here or next door.
    fn put_back(&mut self, context: usize) {
        let Some(id) = self.take_off(context) else { return };
        self.give_up_spinning(id);
        let thread = &mut self.threads[id];
        thread.account.involuntary += 1;
        let fresh = thread.slice == timesharing::slice(thread.priority);
        if fresh {
            // Its successor leaves the queue after it has come in, as in the original: that is what
            // makes threads wander.
            let target = self.choose(id);
            if target == context {
                self.wait_here(id, context, false);
                self.dispatch(context);
            } else {
                self.dispatch(context);
                self.enqueue(id, target);
            }
        } else {
            self.wait_here(id, context, true);
            self.dispatch(context);
        }
    }

    fn wait_here(&mut self, id: ThreadIndex, context: usize, front: bool) {
        let thread = &mut self.threads[id];
        (thread.state, thread.queued) = (State::Queued, self.now);
        let priority = thread.priority;
        let queue = &mut self.contexts[context].queue;
        if front {
            queue.push_front(id, priority)
        } else {
            queue.push_back(id, priority)
        }
        self.offer(context);
    }

    /// A thread was queued at `context`: if another is idle, it may come for it.
    fn offer(&mut self, context: usize) {
        let mut others = self.contexts.iter().enumerate().filter(|&(other, _)| other != context);
        if others.any(|(_, other)| other.running.is_none()) {
            self.look_for_work(self.now + self.platform.costs.nosteal);
        }
    }

    /// A thread off its context cannot see that a mutex is released. It tries again when it is
    /// back.
    fn give_up_spinning(&mut self, id: ThreadIndex) {
        if let Phase::Spin(mutex) = self.threads[id].phase {
            self.mutexes[mutex].stop_spinning(id);
            self.threads[id].phase = Phase::Retry(mutex);
            self.threads[id].set_burst(Burst::User, 0.0);
        }
    }

    /// A thread for an idle context from the queue of another, if one has waited long enough there.
    /// Otherwise, if some wait, another look is due when the first of them has waited long enough.
    fn steal(&mut self, context: usize) -> Option<ThreadIndex> {
        let nosteal = self.platform.costs.nosteal;
        let home = self.platform.package(context);
        let mut best: Option<(bool, u8, Reverse<Nanos>, ThreadIndex, usize)> = None;
        let mut soonest = Nanos::NEVER;
        for (other, place) in
            self.contexts.iter().enumerate().filter(|&(other, _)| other != context)
        {
            for (priority, id) in place.queue.iter().filter(|&(_, id)| !self.is_bound(id)) {
                let since = self.threads[id].queued;
                if since + nosteal > self.now {
                    soonest = soonest.min(since + nosteal);
                    continue;
                }
                let rank =
                    (self.platform.package(other) == home, priority, Reverse(since), id, other);
                if best.is_none_or(|best| (rank.0, rank.1, rank.2) > (best.0, best.1, best.2)) {
                    best = Some(rank);
                }
            }
        }
        match best {
            Some((.., id, from)) => {
                self.contexts[from].queue.remove(id);
                Some(id)
            }
            None => {
                if soonest < Nanos::NEVER {
                    self.look_for_work(soonest);
                }
                None
            }
        }
    }

    /// Idle contexts look for work at `at`, or earlier if that is due already.
    fn look_for_work(&mut self, at: Nanos) {
        if at < self.steal_due {
            self.steal_due = at;
            self.timer(at, Timer::Steal);
        }
    }

    /// Every idle context looks for work.
    pub(super) fn steal_everywhere(&mut self) {
        if self.now < self.steal_due {
            return;
        }
        self.steal_due = Nanos::NEVER;
        for context in 0..self.contexts.len() {
            if self.contexts[context].running.is_none() {
                self.dispatch(context);
            }
        }
    }

    /// Once a second: who waits in a queue too long is lifted.
    pub(super) fn look(&mut self) {
        for id in 0..self.threads.len() {
            let thread = &mut self.threads[id];
            thread.looks += 1;
            if thread.state == State::Queued
                && timesharing::waited_too_long(thread.priority, thread.looks)
            {
                thread.priority = timesharing::lifted(thread.priority);
                thread.looks = 0;
                thread.slice = timesharing::slice(thread.priority);
                let priority = thread.priority;
                if let Some(context) = self
                    .contexts
                    .iter()
                    .position(|place| place.queue.iter().any(|(_, other)| other == id))
                {
                    self.contexts[context].queue.remove(id);
                    self.contexts[context].queue.push_back(id, priority);
                    self.to_preempt.push(context);
                }
            }
        }
        self.timer(self.now + timesharing::LOOK, Timer::Look);
    }
}
