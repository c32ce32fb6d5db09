//! The measured cost that a layer adds to a context switch.
//!
//! Two threads on one CPU hand a token to each other. Each handover is one wake-up and one switch
//! between watched threads, which is the most expensive case. Turns with the layer on and off
//! alternate. Each turn has many rounds, because switching the layer on may take a hundred times as
//! long as a round. It compares the CPU time of the cheapest round of each kind. Other programs do
//! not use up CPU time, and a disturbance only makes a round more expensive.

use crate::overhead::own_time;
use pinwise_linux::{RealtimeClass, sys};
use pinwise_topology::CpuSet;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

/// Turns of each kind, fewer where they take longer than [`PATIENCE`].
const TURNS: usize = 5;
/// Rounds of a turn.
const ROUNDS: usize = 20;
/// Handovers in each direction in a round: 0.1 ms, short enough that most rounds are not disturbed.
const HANDOVERS: u32 = 40;
/// Next to busy threads an ordinary thread waits for each of its turns.
const PATIENCE: Duration = Duration::from_millis(300);

/// CPU time that a layer adds to a switch with its wake-up. `work` makes the layer watch the
/// calling thread and those it creates, or stop.
pub(super) fn per_switch(
    work: &mut (dyn FnMut(bool) -> io::Result<()> + Send),
) -> io::Result<Duration> {
    // A separate thread, because it goes to one CPU and stays there.
    scope(|scope| {
        let calibration =
            Builder::new().name("monitor-ping".into()).spawn_scoped(scope, || alternate(work))?;
        calibration.join().unwrap_or_else(|_| Err(io::Error::other("a thread died")))
    })
}

fn alternate(work: &mut dyn FnMut(bool) -> io::Result<()>) -> io::Result<Duration> {
    let one: CpuSet = sys::affinity(0)?.first().into_iter().collect();
    sys::set_affinity(0, &one)?;
    let mut cheapest = [Duration::MAX; 2];
    let begin = Instant::now();
    for turn in 0..TURNS {
        if turn > 0 && begin.elapsed() > PATIENCE {
            break;
        }
        cheapest[0] = cheapest[0].min(rounds()?);
        work(true)?;
        let watched = rounds();
        work(false)?;
        cheapest[1] = cheapest[1].min(watched?);
    }
    Ok(cheapest[1].saturating_sub(cheapest[0]) / (2 * HANDOVERS))
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

    #[test]
    fn a_layer_is_turned_off_as_often_as_on() {
        let mut on = 0;
        let cost = per_switch(&mut |work| {
            on += if work { 1 } else { -1 };
            assert!((0..=1).contains(&on));
            Ok(())
        });
        cost.unwrap();
        assert_eq!(on, 0);
    }

    #[test]
    fn a_layer_that_fails_ends_the_calibration() {
        let error = per_switch(&mut |work| if work { Err(io::Error::other("no")) } else { Ok(()) })
            .unwrap_err();
        assert_eq!(error.to_string(), "no");
    }
}
