//! Simulations that do not depend on each other, on several threads of the host.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads this process may run at once; at least 1.
pub(crate) fn host_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The result of `run` for each of `items`, in their order, with up to `threads` at once.
pub(crate) fn map<I: Sync, R: Send>(
    items: &[I],
    threads: usize,
    run: impl Fn(&I) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        items.get(number).map(|item| (number, run(item)))
    };
    let work = || std::iter::from_fn(take).collect::<Vec<_>>();
    let mut results = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(work)).collect();
        let mut results = work();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn results_are_in_order_and_each_item_runs_once() {
        for threads in [0, 1, 2, 5, 100] {
            for count in [0, 1, 7] {
                let items: Vec<usize> = (0..count).collect();
                let squares: Vec<usize> = items.iter().map(|n| n * n).collect();
                let ran = Mutex::new(HashSet::new());
                let square = |n: &usize| {
                    ran.lock().unwrap().insert(thread::current().id());
                    n * n
                };
                assert_eq!(map(&items, threads, square), squares, "{count} on {threads}");
                assert!(ran.into_inner().unwrap().len() <= threads.max(1));
            }
        }
    }

    #[test]
    fn as_many_run_at_once_as_allowed() {
        // Three items that wait for each other end only if all run at once.
        let barrier = Barrier::new(3);
        let meet = |_: &u8| {
            barrier.wait();
            thread::current().id()
        };
        assert_eq!(map(&[0, 1, 2], 3, meet).into_iter().collect::<HashSet<_>>().len(), 3);
    }
}
