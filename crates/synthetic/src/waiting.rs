//! Programs whose threads wait for each other, to watch.
//!
//! Each runs until it is killed and counts what it does. Part of the sleep of `locks` and `queue`
//! is no wait for a thread. So a test detects a monitor that calls every sleep a lock, or none.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Their names, and what they do.
pub const KINDS: [(&str, &str); 4] = [
    (
        "locks",
        "8 threads, one lock held for 50 us; outside it 100 us of work, at times a sleep of 2 ms",
    ),
    (
        "queue",
        "2 producers, 4 consumers, a queue of 16, 30 us of work an item; producers sleep at times",
    ),
    ("barrier", "4 threads that meet every 300 us or so, one of them later than the others"),
    ("tokens", "4 pairs of threads that hand a token to each other without pause"),
];

/// Starts the threads; they count into the counter.
pub fn start(kind: &str) -> Option<Arc<AtomicU64>> {
    let count = Arc::new(AtomicU64::new(0));
    match kind {
        "locks" => locks(&count),
        "queue" => queue(&count),
        "barrier" => barrier(&count),
        "tokens" => tokens(&count),
        _ => return None,
    }
    Some(count)
}

/// Computes for about `microseconds`. The amount of work is fixed, on any context at any speed.
fn work(microseconds: u64) {
    let mut value = 0x9e37_79b9_7f4a_7c15_u64;
    // A multiplication that waits for the one before takes 3 to 4 cycles; with the rest about 2 ns.
    for _ in 0..microseconds * 500 {
        value = black_box(value.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(17));
    }
}

fn locks(count: &Arc<AtomicU64>) {
    let lock = Arc::new(Mutex::new(0u64));
    for thread in 0..8u64 {
        let (lock, count) = (lock.clone(), count.clone());
        spawn(move || {
            for round in thread.. {
                work(100);
                if round % 8 == 0 {
                    sleep(Duration::from_millis(2));
                }
                let mut value = lock.lock().unwrap();
                work(50);
                *value += 1;
                drop(value);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

fn queue(count: &Arc<AtomicU64>) {
    let state = Arc::new((Mutex::new(0usize), Condvar::new(), Condvar::new()));
    for producer in 0..2u64 {
        let state = state.clone();
        spawn(move || {
            let (items, filled, freed) = &*state;
            for round in producer.. {
                work(30);
                if round % 64 == 0 {
                    sleep(Duration::from_millis(3));
                }
                let mut items =
                    freed.wait_while(items.lock().unwrap(), |items| *items >= 16).unwrap();
                *items += 1;
                drop(items);
                filled.notify_one();
            }
        });
    }
    for _ in 0..4 {
        let (state, count) = (state.clone(), count.clone());
        spawn(move || {
            let (items, filled, freed) = &*state;
            loop {
                let mut items =
                    filled.wait_while(items.lock().unwrap(), |items| *items == 0).unwrap();
                *items -= 1;
                drop(items);
                freed.notify_one();
                work(30);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

fn barrier(count: &Arc<AtomicU64>) {
    let meeting = Arc::new(Barrier::new(4));
    for thread in 0..4u64 {
        let (meeting, count) = (meeting.clone(), count.clone());
        spawn(move || {
            for round in 0u64.. {
                work(if round % 4 == thread { 300 } else { 100 });
                if meeting.wait().is_leader() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
}

fn tokens(count: &Arc<AtomicU64>) {
    for _ in 0..4 {
        let token = Arc::new((Mutex::new(false), Condvar::new()));
        for side in [false, true] {
            let (token, count) = (token.clone(), count.clone());
            spawn(move || {
                let (turn, moved) = &*token;
                loop {
                    let mut turn =
                        moved.wait_while(turn.lock().unwrap(), |turn| *turn != side).unwrap();
                    *turn = !side;
                    drop(turn);
                    moved.notify_one();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }
}
