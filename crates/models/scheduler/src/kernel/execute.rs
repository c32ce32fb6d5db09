//! What a running thread does next, step by step of its script.

use super::{Action, Burst, Kernel, Nanos, Phase, State, ThreadIndex, Timer, Wait};
use crate::synchronization::{Heir, Taken};

/// What a thread does after a phase.
enum AfterStep {
    /// Goes on at once.
    On,
    /// Computes the burst that was set.
    Burst,
    /// Waits.
    Wait(Wait),
    /// Ends.
    End,
}

impl Kernel<'_> {
    /// The burst of the running thread of `context` is done. It goes on until the next burst
    /// begins, or the thread leaves.
    pub(super) fn proceed(&mut self, context: usize) {
        let Some(id) = self.contexts[context].running else { return };
        loop {
            match self.phase(id) {
                AfterStep::On => {}
                AfterStep::Burst => return self.foresee(context),
                AfterStep::Wait(why) => return self.block(context, why),
                AfterStep::End => {
                    self.take_off(context);
                    self.threads[id].state = State::Done;
                    self.live -= 1;
                    return self.dispatch(context);
                }
            }
        }
    }

    fn phase(&mut self, id: ThreadIndex) -> AfterStep {
        match self.threads[id].phase {
            Phase::Begin => self.begin(id),
            Phase::Reach(mutex) => self.reach(id, mutex),
            Phase::Spin(mutex) => {
                self.mutexes[mutex].stop_spinning(id);
                self.mutexes[mutex].sleep(id, false);
                self.wait_as(id, Phase::Retry(mutex))
            }
            Phase::Retry(mutex) => {
                if self.mutexes[mutex].try_lock(id) {
                    return self.hold(id, mutex);
                }
                self.mutexes[mutex].sleep(id, true);
                self.wait_as(id, Phase::Retry(mutex))
            }
            Phase::Arrive(barrier) => self.arrive(id, barrier),
            Phase::SpinAt(barrier) => {
                self.barriers[barrier].spinners.retain(|&spinner| spinner != id);
                self.barriers[barrier].opened.wait(id);
                self.wait_at_barrier(id)
            }
            Phase::Take(queue) => self.take(id, queue),
            Phase::Put(queue) => self.put(id, queue),
            Phase::Wake => self.wake_next(id),
        }
    }

    fn wait_as(&mut self, id: ThreadIndex, phase: Phase) -> AfterStep {
        let thread = &mut self.threads[id];
        thread.phase = phase;
        thread.set_burst(Burst::User, 0.0);
        AfterStep::Wait(Wait::Lock)
    }

    /// Asleep until the barrier opens. The thread that opens it only has to wake this one.
    fn wait_at_barrier(&mut self, id: ThreadIndex) -> AfterStep {
        let thread = &mut self.threads[id];
        let join = matches!(thread.body.script[thread.step], Action::Barrier { join: true, .. });
        thread.step += 1;
        self.wait_as(id, Phase::Begin);
        AfterStep::Wait(if join { Wait::Join } else { Wait::Lock })
    }

    /// Begins the step the thread stands at.
    fn begin(&mut self, id: ThreadIndex) -> AfterStep {
        let lock = self.platform.costs.lock.0 as f64;
        let thread = &mut self.threads[id];
        if thread.leaving {
            return AfterStep::End;
        }
        if thread.step == thread.body.script.len() {
            thread.rounds -= 1;
            thread.step = 0;
            if thread.rounds == 0 {
                return self.leave(id);
            }
        }
        let step = thread.body.script[thread.step];
        match step {
            Action::Compute(span) => {
                thread.step += 1;
                let work = span.draw(&mut self.random);
                thread.set_burst(Burst::Work, work);
                return AfterStep::Burst;
            }
            Action::Sleep { span, chance } => {
                thread.step += 1;
                if chance < 1.0 && self.random.unit() >= chance {
                    return AfterStep::On;
                }
                thread.set_burst(Burst::User, 0.0);
                let until = self.now + Nanos(span.draw(&mut self.random) as u64);
                self.timer(until, Timer::Wake(id));
                return AfterStep::Wait(Wait::Sleep);
            }
            Action::Unlock => {
                thread.step += 1;
                return self.unlock(id);
            }
            Action::Lock { first, count } => {
                let mutex = first + self.random.below(count as u64) as usize;
                self.threads[id].phase = Phase::Reach(mutex);
            }
            Action::Barrier { barrier, .. } => thread.phase = Phase::Arrive(barrier),
            Action::Pop(queue) => thread.phase = Phase::Take(queue),
            Action::Push(queue) => thread.phase = Phase::Put(queue),
        }
        self.threads[id].set_burst(Burst::User, lock);
        AfterStep::Burst
    }

    fn reach(&mut self, id: ThreadIndex, mutex: usize) -> AfterStep {
        if self.mutexes[mutex].try_lock(id) {
            return self.hold(id, mutex);
        }
        self.mutexes[mutex].spin(id);
        self.threads[id].phase = Phase::Spin(mutex);
        self.threads[id].set_burst(Burst::Spin, self.platform.costs.spin.0 as f64);
        AfterStep::Burst
    }

    fn hold(&mut self, id: ThreadIndex, mutex: usize) -> AfterStep {
        let thread = &mut self.threads[id];
        thread.held = Some(mutex);
        thread.step += 1;
        thread.phase = Phase::Begin;
        AfterStep::On
    }

    fn unlock(&mut self, id: ThreadIndex) -> AfterStep {
        let Some(mutex) = self.threads[id].held.take() else { return AfterStep::On };
        match self.mutexes[mutex].unlock() {
            Heir::Nobody => {}
            Heir::Spinner(spinner, others) => {
                self.hold(spinner, mutex);
                self.release(spinner, others + 1);
            }
            Heir::Sleeper(sleeper) => {
                self.threads[id].to_wake.push_back(sleeper);
                return self.wake_all(id);
            }
        }
        AfterStep::On
    }

    /// A spinning thread sees what it waited for, after the cache line has come past `contenders`.
    fn release(&mut self, id: ThreadIndex, contenders: usize) {
        let state = self.threads[id].state;
        if let State::Running(context) = state {
            self.settle(context);
        }
        let transfer = self.platform.costs.transfer.0 as f64 * contenders as f64;
        self.threads[id].set_burst(Burst::User, transfer);
        if let State::Running(context) = state {
            self.foresee(context);
        }
    }

    fn arrive(&mut self, id: ThreadIndex, barrier: usize) -> AfterStep {
        if self.barriers[barrier].arrive() {
            self.threads[id].step += 1;
            for spinner in std::mem::take(&mut self.barriers[barrier].spinners) {
                self.threads[spinner].step += 1;
                self.threads[spinner].phase = Phase::Begin;
                self.release(spinner, 1);
            }
            self.threads[id].to_wake = self.barriers[barrier].opened.notify_all();
            return self.wake_all(id);
        }
        let spin = self.platform.costs.barrier_spin;
        if spin == Nanos(0) {
            self.barriers[barrier].opened.wait(id);
            return self.wait_at_barrier(id);
        }
        self.barriers[barrier].spinners.push(id);
        self.threads[id].phase = Phase::SpinAt(barrier);
        self.threads[id].set_burst(Burst::Spin, spin.0 as f64);
        AfterStep::Burst
    }

    fn take(&mut self, id: ThreadIndex, queue: usize) -> AfterStep {
        match self.queues[queue].take() {
            Taken::Item => {
                let producer = self.queues[queue].not_full.notify_one();
                self.pass(id, producer)
            }
            Taken::End => self.leave(id),
            Taken::Nothing => {
                self.queues[queue].not_empty.wait(id);
                self.wait_as(id, Phase::Take(queue))
            }
        }
    }

    fn put(&mut self, id: ThreadIndex, queue: usize) -> AfterStep {
        if self.queues[queue].put() {
            let consumer = self.queues[queue].not_empty.notify_one();
            return self.pass(id, consumer);
        }
        self.queues[queue].not_full.wait(id);
        self.wait_as(id, Phase::Put(queue))
    }

    /// The step at a queue is done; `other` can go on now.
    fn pass(&mut self, id: ThreadIndex, other: Option<ThreadIndex>) -> AfterStep {
        let thread = &mut self.threads[id];
        thread.step += 1;
        thread.to_wake.extend(other);
        self.wake_all(id)
    }

    /// The thread has done its rounds. Threads that wait for its items are notified.
    fn leave(&mut self, id: ThreadIndex) -> AfterStep {
        self.threads[id].leaving = true;
        if let Some(queue) = self.threads[id].body.output
            && self.queues[queue].leave()
        {
            self.threads[id].to_wake = self.queues[queue].not_empty.notify_all();
        }
        self.wake_all(id)
    }

    /// Begins to wake the threads of its list. Each wake-up costs it time.
    fn wake_all(&mut self, id: ThreadIndex) -> AfterStep {
        let thread = &mut self.threads[id];
        if thread.to_wake.is_empty() {
            thread.phase = Phase::Begin;
            return AfterStep::On;
        }
        thread.phase = Phase::Wake;
        thread.set_burst(Burst::System, self.platform.costs.wake.0 as f64);
        AfterStep::Burst
    }

    fn wake_next(&mut self, id: ThreadIndex) -> AfterStep {
        if let Some(sleeper) = self.threads[id].to_wake.pop_front() {
            self.wake(sleeper);
        }
        self.wake_all(id)
    }
}
