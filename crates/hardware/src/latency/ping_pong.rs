//! Two threads that pass one cache line back and forth.
//!
//! The line holds a count. The leader adds 1 to an even count, the follower adds 1 to an odd one.
//! To end a line, the leader writes [`END`] there. The leader touches each line before the follower
//! may. A counter elsewhere says how many lines are open.
//!
//! Neither thread can be left spinning. While it waits, the leader looks at the deadline and the
//! flags, and ends the line. A thread that cannot start stops the other.

use super::page::Page;
use super::{BATCH, BATCHES, LINES, LONGEST_WARM_UP, WARM_UP};
use pinwise_measure::Interrupt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Nobody counts that far.
const END: u64 = u64::MAX;
/// Tries before a thread looks whether it is to go on; some 50 us.
const PATIENCE: u32 = 4096;
/// Round trips of a batch while their length is not known yet.
const FIRST_TRIPS: u32 = 64;
/// Batches agree that are this near, relative to the shorter.
const AGREE: f64 = 0.03;

/// What the two threads say to each other, away from the line.
#[derive(Debug)]
pub(super) struct Signals<'a> {
    open: AtomicUsize,
    stop: AtomicBool,
    cancelled: &'a Interrupt,
    deadline: Instant,
}

impl<'a> Signals<'a> {
    pub(super) fn new(cancelled: &'a Interrupt, deadline: Instant) -> Self {
        Self { open: AtomicUsize::new(0), stop: AtomicBool::new(false), cancelled, deadline }
    }

    /// Ends the game.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the user asked to stop.
    pub(super) fn cancelled(&self) -> bool {
        self.cancelled.came()
    }

    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancelled() || Instant::now() >= self.deadline
    }
}

/// The lines to play on. One is to warm up, then come some of each page, spread, and not the same
/// of every page.
pub(super) fn lines(pages: &[Page]) -> Vec<&AtomicU64> {
    let measured = pages.iter().enumerate().skip(1);
    let spread = |number: usize| {
        (0..LINES).map(move |line| (line * Page::LINES / LINES + number) % Page::LINES)
    };
    let measured = measured.flat_map(|(number, page)| spread(number).map(|line| page.line(line)));
    pages.first().map(|page| page.line(0)).into_iter().chain(measured).collect()
}

/// The thread that begins and takes the time.
pub(super) struct Leader<'a> {
    signals: &'a Signals<'a>,
    opened: usize,
}

impl<'a> Leader<'a> {
    pub(super) fn new(signals: &'a Signals<'a>) -> Self {
        Self { signals, opened: 0 }
    }

    /// Warms up on the first line, then measures on each other; nanoseconds one way for each batch.
    pub(super) fn lead(mut self, lines: &[&AtomicU64]) -> Vec<Vec<f64>> {
        let Some((first, rest)) = lines.split_first() else { return Vec::new() };
        let batch = self.play(first, warm_up);
        let trips = batch.flatten().map(trips_for);
        let mut results = Vec::new();
        for line in rest {
            let batches = trips.and_then(|trips| {
                self.play(line, |line| {
                    // The first batch brings the page and the translations.
                    line.batch(trips)?;
                    Some((0..BATCHES).map_while(|_| line.batch(trips)).collect())
                })
            });
            results.extend(batches.flatten().filter(|batches: &Vec<f64>| !batches.is_empty()));
        }
        // Lines that were never opened hold the follower up.
        self.signals.stop();
        results
    }

    /// Opens a line, plays on it, ends it. `None` if the game is over.
    fn play<T>(
        &mut self,
        line: &AtomicU64,
        play: impl FnOnce(&mut LineInPlay<'_>) -> T,
    ) -> Option<T> {
        if self.signals.over() {
            return None;
        }
        line.store(0, Ordering::Relaxed);
        self.opened += 1;
        self.signals.open.store(self.opened, Ordering::Release);
        let result = play(&mut LineInPlay { line, next: 0, signals: self.signals });
        line.store(END, Ordering::Relaxed);
        Some(result)
    }
}

/// A line in play, on the leader's side.
struct LineInPlay<'a> {
    line: &'a AtomicU64,
    next: u64,
    signals: &'a Signals<'a>,
}

impl LineInPlay<'_> {
    /// Nanoseconds one way, from `trips` round trips; `None` if the game is over.
    fn batch(&mut self, trips: u32) -> Option<f64> {
        let begin = Instant::now();
        for _ in 0..trips {
            let mut tries = 0;
            while self
                .line
                .compare_exchange(self.next, self.next + 1, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
            {
                tries += 1;
                if tries == PATIENCE {
                    tries = 0;
                    if self.signals.over() {
                        return None;
                    }
                }
            }
            self.next += 2;
        }
        Some(begin.elapsed().as_nanos() as f64 / f64::from(trips) / 2.0)
    }
}

/// Plays until both processors are awake and steady; nanoseconds one way.
fn warm_up(line: &mut LineInPlay<'_>) -> Option<f64> {
    let begin = Instant::now();
    let mut last = Vec::new();
    let mut trips = FIRST_TRIPS;
    loop {
        let batch = line.batch(trips)?;
        trips = trips_for(batch);
        last.push(batch);
        let recent = &last[last.len().saturating_sub(4)..];
        let (low, high) = recent
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
        let steady = recent.len() == 4 && high <= low * (1.0 + AGREE);
        if begin.elapsed() >= if steady { WARM_UP } else { LONGEST_WARM_UP } {
            // The shortest: a batch that was interrupted must not decide how many trips fit into
            // one.
            return Some(low);
        }
    }
}

/// Round trips that take about [`BATCH`], of `latency` nanoseconds one way.
fn trips_for(latency: f64) -> u32 {
    (BATCH.as_nanos() as f64 / (2.0 * latency.max(1.0))).clamp(16.0, 20_000.0) as u32
}

/// The thread that answers.
pub(super) struct Follower<'a> {
    signals: &'a Signals<'a>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(signals: &'a Signals<'a>) -> Self {
        Self { signals }
    }

    /// Answers on each line until it ends.
    pub(super) fn follow(self, lines: &[&AtomicU64]) {
        for (before, line) in lines.iter().enumerate() {
            let mut tries = 0;
            while self.signals.open.load(Ordering::Acquire) <= before {
                tries += 1;
                if tries == PATIENCE {
                    tries = 0;
                    if self.signals.over() {
                        return;
                    }
                }
            }
            answer(line);
        }
    }
}

/// The leader always ends a line that it opened.
fn answer(line: &AtomicU64) {
    let mut next = 1;
    loop {
        match line.compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => next += 2,
            Err(END) => return,
            Err(_) => {}
        }
    }
}
