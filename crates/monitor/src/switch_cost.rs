//! The measured cost that a layer adds to a context switch.
//!
//! Two threads on one CPU hand a token to each other. Each handover is one wake-up and one switch
//! between watched threads, which is the most expensive case. Turns with the layer on and off
//! alternate. Each turn has many rounds, because switching the layer on may take a hundred times as
//! long as a round. It compares the CPU time of the cheapest round of each kind. Other programs do
//! not use up CPU time, and a disturbance only makes a round more expensive.
//!
//! A layer that seems to cost nothing was measured in disturbed rounds. So turns go on until it
//! costs something. A layer that still costs nothing is refused. pinwise could not give it up
//! later, since its cost is not known.

use crate::overhead::own_time;
use pinwise_linux::{RealtimeClass, sys};
use pinwise_topology::CpuSet;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

/// Turns of each kind, fewer where they take longer than [`PATIENCE`].
const TURNS: usize = 5;
/// Turns of each kind until a layer costs something, fewer where they take longer than
/// [`LAST_PATIENCE`].
const MOST_TURNS: usize = 50;
/// Rounds of a turn.
const ROUNDS: usize = 20;
/// Handovers in each direction in a round: 0.1 ms, short enough that most rounds are not disturbed.
const HANDOVERS: u32 = 40;
/// Next to busy threads an ordinary thread waits for each of its turns.
const PATIENCE: Duration = Duration::from_millis(300);
const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// CPU time that a layer adds to a switch with its wake-up. `work` makes the layer watch the
/// calling thread and those it creates, or stop.
pub(super) fn per_switch(
    work: &mut (dyn FnMut(bool) -> io::Result<()> + Send),
) -> io::Result<Duration> {
    // A separate thread, because it goes to one CPU and stays there.
    scope(|scope| {
        let calibration =
            Builder::new().name("monitor-ping".into()).spawn_scoped(scope, || on_one_cpu(work))?;
        calibration.join().unwrap_or_else(|_| Err(io::Error::other("a thread died")))
    })
}

fn on_one_cpu(work: &mut dyn FnMut(bool) -> io::Result<()>) -> io::Result<Duration> {
    let one: CpuSet = sys::affinity(0)?.first().into_iter().collect();
    sys::set_affinity(0, &one)?;
    let begin = Instant::now();
    let difference = alternate(work, &mut rounds, &mut || begin.elapsed())?;
    Ok(difference / (2 * HANDOVERS))
}

/// What the layer adds to a round: the difference of the cheapest rounds of each kind. `round`
/// measures the cheapest round of a turn. `elapsed` is the time since the start.
fn alternate(
    work: &mut dyn FnMut(bool) -> io::Result<()>,
    round: &mut dyn FnMut() -> io::Result<Duration>,
    elapsed: &mut dyn FnMut() -> Duration,
) -> io::Result<Duration> {
    let mut cheapest = [Duration::MAX; 2];
    for turn in 0..MOST_TURNS {
        let difference = cheapest[1].saturating_sub(cheapest[0]);
        if !difference.is_zero() && (turn >= TURNS || elapsed() > PATIENCE) {
            return Ok(difference);
        }
        if elapsed() > LAST_PATIENCE {
            break;
        }
        cheapest[0] = cheapest[0].min(round()?);
        work(true)?;
        let watched = round();
        work(false)?;
        cheapest[1] = cheapest[1].min(watched?);
    }
    Err(io::Error::other("other programs hide what a context switch costs with it"))
}

/// The cheapest round of a turn.
fn rounds() -> io::Result<Duration> {
    (0..ROUNDS).try_fold(Duration::MAX, |cheapest, _| Ok(cheapest.min(handovers()?)))
}

/// Whose turn it is: the first thread's or the other's.
#[derive(Default)]
struct Token {
    other: Mutex<bool>,
    moved: Condvar,
}

impl Token {
    /// Waits for the token, and gives it away.
    fn pass(&self, other: bool) {
        // A bool is never half written.
        let turn = self.other.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn = self
            .moved
            .wait_while(turn, |turn| *turn != other)
            .unwrap_or_else(PoisonError::into_inner);
        *turn = !other;
        drop(turn);
        self.moved.notify_one();
    }
}

/// CPU time of two threads that hand a token to each other.
fn handovers() -> io::Result<Duration> {
    let token = Token::default();
    let side = |other: bool| {
        // Where it is allowed other programs do not come between.
        let _punctual = RealtimeClass::raise();
        token.pass(other);
        let before = own_time();
        (0..HANDOVERS).for_each(|_| token.pass(other));
        own_time().saturating_sub(before)
    };
    scope(|scope| {
        let partner =
            Builder::new().name("monitor-pong".into()).spawn_scoped(scope, || side(true))?;
        let own = side(false);
        let others = partner.join().map_err(|_| io::Error::other("a thread died"))?;
        Ok(own + others)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// What `alternate` says of a layer. The cheapest round of each turn takes `watched` with it,
    /// and `alone` without it, in ns. A turn takes `turn`. The second is how many turns there were.
    fn adds(alone: &[u64], watched: &[u64], turn: Duration) -> (Result<u64, String>, usize) {
        let (on, turns) = (Cell::new(false), Cell::new(0));
        let mut work = |work: bool| {
            assert_ne!(on.replace(work), work);
            turns.set(turns.get() + usize::from(work));
            Ok(())
        };
        // A turn is counted when the layer is turned on.
        let mut round = || {
            let (of, turn) =
                if on.get() { (watched, turns.get() - 1) } else { (alone, turns.get()) };
            Ok(Duration::from_nanos(of[turn.min(of.len() - 1)]))
        };
        let mut elapsed = || turn * turns.get() as u32;
        let adds = alternate(&mut work, &mut round, &mut elapsed);
        assert!(!on.get(), "it stays on");
        (adds.map(|adds| adds.as_nanos() as u64).map_err(|error| error.to_string()), turns.get())
    }

    #[test]
    fn disturbed_rounds_do_not_count() {
        let quick = Duration::from_millis(5);
        assert_eq!(adds(&[700, 100, 900], &[500, 400, 150, 800], quick), (Ok(50), TURNS));
        assert_eq!(adds(&[100], &[150], 2 * PATIENCE), (Ok(50), 1));
    }

    #[test]
    fn turns_go_on_until_the_layer_costs_something_and_it_is_refused_if_it_never_does() {
        let hidden = [900, 900, 900, 900, 900, 900, 100];
        assert_eq!(adds(&hidden, &[150], PATIENCE / 100), (Ok(50), 7));
        assert_eq!(adds(&hidden, &[150], PATIENCE), (Ok(50), 7));
        for (turn, turns) in [(PATIENCE / 100, MOST_TURNS), (LAST_PATIENCE / 2, 3)] {
            let (refused, taken) = adds(&[100], &[90], turn);
            assert_eq!(taken, turns);
            assert!(refused.unwrap_err().contains("other programs hide"));
        }
    }

    #[test]
    fn a_layer_that_fails_ends_the_calibration() {
        let error = per_switch(&mut |work| if work { Err(io::Error::other("no")) } else { Ok(()) })
            .unwrap_err();
        assert_eq!(error.to_string(), "no");
    }
}
