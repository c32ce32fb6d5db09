//! The loop of a worker: it opens a request and measures what the coordinator sends.
//!
//! A thread reads, so that the worker answers a ping while it opens and measures. Where the
//! connection ends, for whatever reason, that thread asks the measurement to stop. Then the testbed
//! is dropped, which puts everything back, and the worker ends. A host without power ends no
//! connection. So a worker also ends if nothing comes for [`ABANDONED`]: a coordinator that runs
//! sends a ping every few seconds.

use crate::message::{FrameError, FromWorker, Opened, PROTOCOL, ToWorker, read_frame, write_frame};
use crate::watch::Watch;
use pinwise_measure::{Interrupt, MeasureError, Measurement, Retry, Testbed, Time};
use pinwise_topology::Fingerprint;
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A worker that hears nothing for so long ends. A coordinator that is stopped with Ctrl-Z sends
/// nothing: for this long its workers wait.
pub const ABANDONED: Duration = Duration::from_secs(600);

/// How often a worker without work looks whether it was asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A connection with a coordinator that has asked to open something.
pub struct Session {
    orders: Receiver<ToWorker>,
    output: SharedOutput,
    interrupt: Interrupt,
    /// What shall be opened next.
    request: Option<Value>,
}

type SharedOutput = Arc<Mutex<Box<dyn Write + Send>>>;

fn say(output: &SharedOutput, message: &FromWorker) -> Result<(), FrameError> {
    write_frame(&mut *output.lock().unwrap_or_else(PoisonError::into_inner), message)
}

/// Serves one coordinator. `open` opens its request, and then calls [`Session::measure`] or
/// [`Session::refuse`]. `interrupt` is the worker's: signals ask by it, and so do the end of the
/// connection and a silence of `patience` ([`ABANDONED`]).
///
/// # Errors
/// The coordinator cannot be heard or answered any more. That it has gone is no error.
pub fn serve(
    mut input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    version: &str,
    host: &str,
    (interrupt, patience): (&Interrupt, Duration),
    mut open: impl FnMut(Value, &mut Session) -> Result<(), FrameError>,
) -> Result<(), FrameError> {
    let output: SharedOutput = Arc::new(Mutex::new(Box::new(output)));
    let (version, host) = (version.to_owned(), host.to_owned());
    say(&output, &FromWorker::Hello { protocol: PROTOCOL, version, host })?;
    let (sender, orders) = channel();
    let mut watch = Watch::new(patience, Instant::now());
    watch.hear(COORDINATOR, Instant::now());
    let watch = Arc::new(Mutex::new(watch));
    let (heard, answers, stop) = (Arc::clone(&watch), Arc::clone(&output), interrupt.clone());
    std::thread::spawn(move || {
        loop {
            let order = read_frame(&mut input);
            let mut watch = heard.lock().unwrap_or_else(PoisonError::into_inner);
            watch.hear(COORDINATOR, Instant::now());
            drop(watch);
            let order = match order {
                Ok(ToWorker::Ping) if say(&answers, &FromWorker::Pong).is_ok() => continue,
                Ok(ToWorker::Ping | ToWorker::Bye) | Err(_) => break,
                Ok(order) => order,
            };
            if sender.send(order).is_err() {
                break;
            }
        }
        stop.flag().store(true, Ordering::Relaxed);
    });
    let stop = interrupt.clone();
    std::thread::spawn(move || {
        while !stop.came() {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            if !watch.silent(Instant::now()).is_empty() {
                stop.flag().store(true, Ordering::Relaxed);
            }
            drop(watch);
            std::thread::sleep(LOOK_EVERY);
        }
    });
    let mut session = Session { orders, output, interrupt: interrupt.clone(), request: None };
    if let Some(ToWorker::Open { request }) = session.next() {
        session.request = Some(request);
    }
    while let Some(request) = session.request.take() {
        open(request, &mut session)?;
    }
    Ok(())
}

/// The one that a worker watches.
const COORDINATOR: usize = 0;

impl Session {
    /// The next order; `None` once the worker shall end.
    fn next(&self) -> Option<ToWorker> {
        loop {
            match self.orders.recv_timeout(LOOK_EVERY) {
                _ if self.interrupt.came() => return None,
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Says why the request cannot be opened.
    ///
    /// # Errors
    /// The coordinator cannot be told.
    pub fn refuse(&mut self, error: &impl ToString) -> Result<(), FrameError> {
        say(&self.output, &FromWorker::Refused { error: error.to_string() })
    }

    /// Measures on `testbed` what the coordinator asks, until it has gone or wants something else
    /// opened.
    ///
    /// # Errors
    /// The coordinator cannot be told a result.
    pub fn measure(
        &mut self,
        testbed: &mut dyn Testbed,
        fingerprint: Fingerprint,
        facts: Value,
    ) -> Result<(), FrameError> {
        let width = match testbed.time() {
            Time::Real => None,
            Time::Virtual { width } => Some(width),
        };
        let opened = Opened {
            machine: testbed.machine().clone(),
            fingerprint,
            workload: testbed.workload().clone(),
            unit: testbed.unit().clone(),
            width,
            facts,
        };
        say(&self.output, &FromWorker::Opened(Box::new(opened)))?;
        while let Some(order) = self.next() {
            let (ticket, number, trials) = match order {
                ToWorker::Measure { ticket, number, trials } => (ticket, number, trials),
                ToWorker::Open { request } => {
                    self.request = Some(request);
                    break;
                }
                ToWorker::Ping | ToWorker::Bye => continue,
            };
            testbed.seek(number);
            // Each result is told when it comes, so that a death costs one. In virtual time all
            // are measured at once.
            let share = if width.is_some() { trials.len().max(1) } else { 1 };
            for (tickets, trials) in (ticket..).step_by(share).zip(trials.chunks(share)) {
                let mut outcomes = testbed.measure_all(trials).into_iter();
                for ticket in (tickets..).take(trials.len()) {
                    let outcome = outcomes.next().unwrap_or_else(missing);
                    // JSON has no infinite numbers.
                    let outcome = outcome.and_then(Measurement::in_range);
                    let disturbances = Box::new(testbed.disturbances());
                    say(&self.output, &FromWorker::Measured { ticket, outcome, disturbances })?;
                }
                if self.interrupt.came() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn missing() -> Result<Measurement, MeasureError> {
    Err(MeasureError::new(Retry::Never, "the testbed gave fewer outcomes than it was asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::{Effort, Setting, Unit, Workload};
    use pinwise_topology::Machine;
    use std::io::pipe;

    /// Its performance is the number of the measurement; one is infinite.
    struct Counting {
        machine: Machine,
        workload: Workload,
        unit: Unit,
        number: u64,
    }

    impl Testbed for Counting {
        fn machine(&self) -> &Machine {
            &self.machine
        }
        fn workload(&self) -> &Workload {
            &self.workload
        }
        fn unit(&self) -> &Unit {
            &self.unit
        }
        fn seek(&mut self, number: u64) {
            self.number = number;
        }
        fn measure(&mut self, _: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
            self.number += 1;
            let performance = match self.number {
                1 => f64::INFINITY,
                number => number as f64,
            };
            Ok(Measurement::new(performance, Duration::ZERO))
        }
    }

    #[test]
    fn a_worker_measures_by_number_and_ends_with_the_connection() {
        let (orders, mut to_worker) = pipe().unwrap();
        let (mut from_worker, answers) = pipe().unwrap();
        let interrupt = Interrupt::default();
        let asked = interrupt.clone();
        let worker = std::thread::spawn(move || {
            serve(orders, answers, "1", "here", (&interrupt, ABANDONED), |request, session| {
                let number = request.as_u64().unwrap();
                let machine = Machine::from_shape("2").unwrap();
                let fingerprint = Fingerprint::of(&machine);
                let (workload, unit) = (Workload::new("a", &[&["r"]]), Unit::rate("1/s"));
                let mut testbed = Counting { machine, workload, unit, number };
                session.measure(&mut testbed, fingerprint, Value::Null)
            })
        });
        let mut heard = || read_frame::<FromWorker>(&mut from_worker).unwrap();
        assert!(matches!(heard(), FromWorker::Hello { protocol: PROTOCOL, .. }));
        let mut send = |order: &ToWorker| write_frame(&mut to_worker, order).unwrap();
        send(&ToWorker::Open { request: 0.into() });
        assert!(matches!(heard(), FromWorker::Opened(opened) if opened.width.is_none()));
        let trials = vec![(Setting::Unpinned, Effort::default()); 2];
        send(&ToWorker::Measure { ticket: 7, number: 4, trials: trials.clone() });
        let mut result = || match heard() {
            FromWorker::Measured { ticket, outcome, .. } => {
                (ticket, outcome.map(|measured| measured.performance).ok())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!([result(), result()], [(7, Some(5.0)), (8, Some(6.0))]);
        send(&ToWorker::Measure { ticket: 9, number: 0, trials });
        assert_eq!([result(), result()], [(9, None), (10, Some(2.0))], "infinite is no number");
        send(&ToWorker::Ping);
        assert_eq!(heard(), FromWorker::Pong);
        // Something else is opened in its place.
        send(&ToWorker::Open { request: 7.into() });
        assert!(matches!(heard(), FromWorker::Opened(_)));
        drop(to_worker);
        worker.join().unwrap().unwrap();
        assert!(asked.came(), "what is measured is broken off");
    }

    #[test]
    fn a_worker_whose_coordinator_is_silent_ends() {
        let (orders, to_worker) = pipe().unwrap();
        let (_from_worker, answers) = pipe().unwrap();
        let interrupt = Interrupt::default();
        let waits = (&interrupt, Duration::ZERO);
        serve(orders, answers, "1", "here", waits, |_, _| panic!("nothing was asked")).unwrap();
        assert!(interrupt.came(), "what is measured is broken off");
        drop(to_worker);
    }
}
