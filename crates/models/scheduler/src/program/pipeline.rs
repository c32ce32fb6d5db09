//! Pipelines as threads: each stage takes from the queue before it, works, puts into the queue
//! behind it.

use super::{FittedCosts, Pipeline, Stage};
use crate::kernel::Parts;
use crate::thread::{Action, Body, Span};
use crate::time::Nanos;

pub(super) fn parts(shape: &Pipeline, fitted: &FittedCosts, n: u32, endless: bool) -> Parts {
    let Pipeline { stages, items, capacity } = shape;
    let many = |stage: &Stage| stage.threads(n) as usize;
    // The main thread only creates the others and waits for their end. Waiting for it does not show
    // in any other's account.
    let main = Body { role: "main".to_owned(), script: [].into(), rounds: 1, output: None };
    let mut bodies = vec![main];
    let mut queues = Vec::new();
    for (index, (stage, work)) in stages.iter().zip(&fitted.stage_ms).enumerate() {
        let last = index + 1 == stages.len();
        let mut script = Vec::new();
        if index > 0 {
            script.push(Action::Pop(index - 1));
        }
        script.push(Action::Compute(Span { mean: work * 1e6, spread: fitted.spread }));
        if !last {
            script.push(Action::Push(index));
            queues.push((*capacity as usize, many(stage)));
        }
        // The items are the first stage's to make; the others go on until there are none.
        let rounds = if index == 0 && !endless { u64::from(*items) } else { u64::MAX };
        let output = (!last).then_some(index);
        let body = Body { role: stage.name.clone(), script: script.into(), rounds, output };
        bodies.extend(std::iter::repeat_n(body, many(stage)));
    }
    Parts {
        bodies,
        mutexes: 0,
        barriers: Vec::new(),
        queues,
        memory: fitted.memory,
        working_set: fitted.working_set_kib,
        create: Nanos::from_millis(fitted.create_ms),
    }
}
