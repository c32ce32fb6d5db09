//! The watcher of one program.

use crate::activity::Activity;
#[cfg(feature = "bpf")]
use crate::ebpf;
use crate::layer::{Layer, Unavailable};
use crate::layer_reader::{COUNT, LayerReader};
use crate::look_rate::LookRate;
use crate::overhead::{self, Overhead};
use crate::perf;
use crate::proc_layer::ProcLayer;
use pinwise_linux::{RealtimeClass, Roster, Scope, thread::ThreadId};
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A window may begin soon after the reading of another one. Then it begins where that one ended,
/// with its last reading as the first.
const FOLLOWS: Duration = Duration::from_millis(1);
/// The time between two looks is reported if it is longer than wanted by this factor.
const NOTABLE: f64 = 1.1;

/// A program that cannot be watched.
#[derive(Debug, Error)]
pub enum MonitorError {
    /// The layer that was asked for cannot be used here.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The program's processes cannot be listed.
    #[error("cannot list the program's threads: {0}")]
    Threads(#[from] io::Error),
}

/// Watches the threads of a program.
#[derive(Debug)]
pub struct Monitor {
    layer: Layer,
    refused: Vec<Unavailable>,
    roster: Roster,
    reader: Box<dyn LayerReader>,
    look_rate: LookRate,
    /// The end of the last window, and when its reading ended, which takes a while for many
    /// threads. `None` if something came after it.
    ended: Option<(Instant, Instant)>,
    /// When new processes were looked for last.
    listed: Instant,
    /// A window ended in an error: what the reader has begun may still be at work.
    failed: bool,
}

impl Monitor {
    /// Watches the processes in `scope` and those they create, by the best permitted layer.
    /// [`Monitor::refused`] says why it is not a better one.
    pub fn best(scope: Scope) -> io::Result<Self> {
        let (layer, reader, refused) = choose();
        Self::new(scope, layer, reader, refused)
    }

    /// Watches by this layer.
    pub fn with(scope: Scope, layer: Layer) -> Result<Self, MonitorError> {
        Ok(Self::new(scope, layer, open(layer)?, Vec::new())?)
    }

    fn new(
        scope: Scope,
        layer: Layer,
        reader: Box<dyn LayerReader>,
        refused: Vec<Unavailable>,
    ) -> io::Result<Self> {
        Ok(Self {
            layer,
            refused,
            roster: Roster::new(scope)?,
            reader,
            look_rate: LookRate::default(),
            ended: None,
            listed: Instant::now(),
            failed: false,
        })
    }

    /// How the program is watched.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Better layers that were tried and cannot be used, the best one first.
    pub fn refused(&self) -> &[Unavailable] {
        &self.refused
    }

    /// Whether any thread is left.
    pub fn alive(&self) -> bool {
        !self.roster.members().is_empty()
    }

    /// The time between two looks, by the cost of the looks so far.
    pub fn pace(&self) -> Duration {
        let wanted = self.reader.pace();
        if self.reader.stretches() { self.look_rate.pace(wanted) } else { wanted }
    }

    /// Removes from the kernel what stays there between windows and monitors. It stays because
    /// attaching takes a while. The next window puts it back.
    pub fn rest(&mut self) -> io::Result<()> {
        self.ended = None;
        self.reader.rest()
    }

    /// Watches for `window`, or until `cancelled` says so or no thread is left. `pause` sleeps. If
    /// the window before ended just now, this one begins there. Nothing between them is missed, and
    /// nothing is read twice.
    pub fn watch(
        &mut self,
        window: Duration,
        pause: &dyn Fn(Duration),
        cancelled: &dyn Fn() -> bool,
    ) -> io::Result<Activity> {
        let seen = self.look_on(window, pause, cancelled);
        self.failed |= seen.is_err();
        seen
    }

    fn look_on(
        &mut self,
        window: Duration,
        pause: &dyn Fn(Duration),
        cancelled: &dyn Fn() -> bool,
    ) -> io::Result<Activity> {
        // Without the realtime class, looks are late next to busy threads. They are still useful.
        let _punctual = RealtimeClass::raise();
        let spent = overhead::own_time();
        let follows = match self.ended.take() {
            Some((ended, left))
                if left.elapsed() < FOLLOWS && self.reader.follow(&self.roster)? =>
            {
                Some(ended)
            }
            _ => None,
        };
        let begin = if let Some(ended) = follows {
            ended
        } else {
            self.roster.refresh_if_born()?;
            self.reader.begin(&self.roster)?;
            self.listed = Instant::now();
            self.listed
        };
        let mut ran = (begin, self.roster.cpu_time());
        let mut paid = overhead::own_time();
        self.look_rate.charge(paid.saturating_sub(spent));
        let (mut counted, mut gone) =
            (if follows.is_some() { COUNT } else { Duration::ZERO }, false);
        let (mut apart, mut end) = (Duration::ZERO, begin);
        for number in 0u32.. {
            if number > 0 {
                gone |= self.reader.glimpse();
            }
            let (now, looking) = (Instant::now(), number > 0 || follows.is_none());
            let at = now - begin;
            let last = at >= window || cancelled() || !self.alive();
            // Early in its life a program is counted more often. What a thread does after the last
            // reading is lost with it.
            let early = follows.is_none() && self.look_rate.looks().is_power_of_two();
            let counting = last || at >= counted || early;
            if counting {
                counted = at + COUNT;
            }
            // A process that is found at the end has nothing to report.
            if now >= self.listed + COUNT && !last {
                self.listed = now;
                self.roster.refresh_if_born()?;
            } else if gone {
                self.roster.refresh_threads();
            } else if number > 0 {
                self.roster.refresh_threads_if_changed();
            }
            if looking {
                gone = self.reader.look(&self.roster, at, counting)?;
                if counting {
                    ran = self.earn(ran);
                }
                // To sleep and to wake up is part of it.
                let before = std::mem::replace(&mut paid, overhead::own_time());
                self.look_rate.take(paid.saturating_sub(before));
            }
            if last {
                (apart, end) = (at / number.max(1), now);
                break;
            }
            pause(unsteady(self.pace(), number).min(window.saturating_sub(at)));
        }
        let elapsed = end - begin;
        let mut threads = self.reader.end(&self.roster)?;
        let order: HashMap<ThreadId, usize> =
            self.roster.threads().enumerate().map(|(index, (_, id))| (id, index)).collect();
        threads.sort_by_key(|thread| order.get(&thread.id).copied().unwrap_or(usize::MAX));
        self.look_rate.charge(overhead::own_time().saturating_sub(paid));
        self.ended = Some((end, Instant::now()));
        let mut overhead = Overhead {
            watching: overhead::own_time().saturating_sub(spent),
            ..Overhead::default()
        };
        self.reader.charge(&mut overhead);
        // This leaves out looks that are late for another reason. It also leaves out a layer that
        // is exact without looks.
        let notable = self.reader.pace().mul_f64(NOTABLE);
        let stretched =
            (self.layer != Layer::Ebpf && self.pace().min(apart) > notable).then_some(apart);
        Ok(Activity {
            layer: self.layer,
            elapsed,
            threads,
            stretched,
            lost: self.reader.lost(),
            overhead,
        })
    }

    /// Tells the look rate the CPU time that the program has used since a moment. Returns the
    /// same for now.
    fn earn(&mut self, (then, before): (Instant, Duration)) -> (Instant, Duration) {
        let (now, ran) = (Instant::now(), self.roster.cpu_time());
        // The CPU time of processes that have ended meanwhile is lost.
        self.look_rate.earn(ran.saturating_sub(before), now - then);
        (now, ran)
    }
}

/// The pause after a look. It is 0.5 to 1.5 times `pace`, spread evenly (multiples of the golden
/// ratio, modulo 1). So looks do not keep step with a periodic program.
fn unsteady(pace: Duration, number: u32) -> Duration {
    const GOLDEN: u32 = 0x9e37_79b9;
    pace.mul_f64(0.5 + f64::from(number.wrapping_mul(GOLDEN)) / f64::from(u32::MAX))
}

/// The best permitted layer, and why it is not a better one.
pub fn best_layer() -> (Layer, Vec<Unavailable>) {
    let (layer, reader, refused) = choose();
    put_away(layer, reader);
    (layer, refused)
}

fn choose() -> (Layer, Box<dyn LayerReader>, Vec<Unavailable>) {
    let mut refused = Vec::new();
    for layer in [Layer::Ebpf, Layer::Perf] {
        match open(layer) {
            Ok(reader) => return (layer, reader, refused),
            Err(unavailable) => refused.push(unavailable),
        }
    }
    (Layer::Proc, Box::new(ProcLayer::new()), refused)
}

/// Prepared layers of monitors that are gone. The next monitors use them again, so a layer is
/// prepared once.
static SPARE: Mutex<Vec<(Layer, Box<dyn LayerReader>)>> = Mutex::new(Vec::new());

/// Prepares a layer.
fn open(layer: Layer) -> Result<Box<dyn LayerReader>, Unavailable> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(index) = spare.iter().position(|(kept, _)| *kept == layer) {
        return Ok(spare.swap_remove(index).1);
    }
    drop(spare);
    match layer {
        Layer::Proc => Ok(Box::new(ProcLayer::new())),
        Layer::Perf => Ok(Box::new(perf::Perf::open()?)),
        #[cfg(feature = "bpf")]
        Layer::Ebpf => Ok(Box::new(ebpf::Ebpf::open()?)),
        #[cfg(not(feature = "bpf"))]
        Layer::Ebpf => Err(Unavailable { layer, obstacle: crate::layer::Obstacle::NotInBuild }),
    }
}

fn put_away(layer: Layer, reader: Box<dyn LayerReader>) {
    if layer != Layer::Proc {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).push((layer, reader));
    }
}

/// Takes a layer out of the kernel that no monitor uses now.
pub(crate) fn rest(layer: Layer) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    // A layer that cannot be put to rest is closed.
    spare.retain_mut(|(kept, reader)| *kept != layer || reader.rest().is_ok());
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let reader = std::mem::replace(&mut self.reader, Box::new(ProcLayer::new()));
        if !self.failed {
            put_away(self.layer, reader);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
