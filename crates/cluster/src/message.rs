//! The protocol between the coordinator, which keeps the store, and a worker on a node.
//!
//! A *frame* is four bytes of length, most significant first, and so many bytes of JSON. The JSON
//! ends with a line feed: Slurm holds back what follows the last one. A length beyond [`MOST`] is
//! refused before any memory is taken for it. So is JSON that is no message.
//!
//! The worker speaks first. Its [`FromWorker::Hello`] names its protocol and its version, and the
//! coordinator sends nothing to another one. Everything else answers the coordinator.

use pinwise_measure::{Disturbances, Effort, MeasureError, Measurement, Setting, Unit, Workload};
use pinwise_topology::{Fingerprint, Machine};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, Read, Write};

/// The protocol that this version speaks.
pub const PROTOCOL: u32 = 2;

/// The longest JSON of a frame, in bytes: 64 MiB.
pub const MOST: u32 = 64 << 20;

/// From the coordinator to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToWorker {
    /// Opens what is measured. It comes first, and later in the place of what is open.
    Open {
        /// The request, as the program that uses this crate defines it.
        request: Value,
    },
    /// Measures trials, one after the other. Numbers and tickets count up from the first.
    Measure {
        /// By which the result is known ([`crate::Dispatch`]).
        ticket: u64,
        /// Of a model, the number in the campaign ([`pinwise_measure::Testbed::seek`]).
        number: u64,
        /// The trials.
        trials: Vec<(Setting, Effort)>,
    },
    /// Asks for [`FromWorker::Pong`], also while something is measured.
    Ping,
    /// Ends the worker. It breaks off what it measures. So does the end of the connection.
    Bye,
}

/// From a worker to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FromWorker {
    /// The first message.
    Hello {
        /// Its [`PROTOCOL`].
        protocol: u32,
        /// The version of pinwise.
        version: String,
        /// What the node calls itself.
        host: String,
    },
    /// What was asked for is open.
    Opened(Box<Opened>),
    /// It cannot be opened.
    Refused {
        /// Why, on one line.
        error: String,
    },
    /// A result.
    Measured {
        /// Which trial's.
        ticket: u64,
        /// The measurement, or why there is none.
        outcome: Result<Measurement, MeasureError>,
        /// What has disturbed this worker's measurements so far.
        disturbances: Box<Disturbances>,
    },
    /// It is there.
    Pong,
}

/// An open request, as a worker sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The machine that assignments refer to.
    pub machine: Machine,
    /// The conditions on the node.
    pub fingerprint: Fingerprint,
    /// The threads to place.
    pub workload: Workload,
    /// What performance is counted in.
    pub unit: Unit,
    /// How many trials it takes at once where time is virtual; `None` where time is real.
    pub width: Option<usize>,
    /// What else the program that uses this crate wants to know.
    pub facts: Value,
}

/// Why bytes are no message, or why there are no more.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side has closed the connection between two frames.
    #[error("the connection was closed")]
    Closed,
    /// It was cut within a frame.
    #[error("the connection was cut within a message")]
    Cut,
    /// A message is too long.
    #[error("a message of {0} bytes, more than {MOST}")]
    TooLong(u32),
    /// A message is too long to be sent.
    #[error("a message of {0} bytes is more than {MOST}")]
    Unsendable(u32),
    /// It is no message of this protocol.
    #[error("no message of this protocol: {0}")]
    Malformed(serde_json::Error),
    /// It cannot be read or written.
    #[error("{0}")]
    Failed(io::Error),
}

/// Reads the next message. Takes memory only as bytes arrive.
///
/// # Errors
/// See [`FrameError`].
pub fn read_frame<T: DeserializeOwned>(input: &mut impl Read) -> Result<T, FrameError> {
    let mut length = [0; 4];
    let mut filled = 0;
    while filled < length.len() {
        match input.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(FrameError::Cut),
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Failed(error)),
        }
    }
    let length = u32::from_be_bytes(length);
    if length > MOST {
        return Err(FrameError::TooLong(length));
    }
    let mut text = Vec::new();
    let read = input.take(u64::from(length)).read_to_end(&mut text).map_err(FrameError::Failed)?;
    if read < length as usize {
        return Err(FrameError::Cut);
    }
    serde_json::from_slice(&text).map_err(FrameError::Malformed)
}

/// Writes a message.
///
/// # Errors
/// It is too long, or the other side does not read any more.
pub fn write_frame(output: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message).map_err(FrameError::Malformed)?;
    frame.push(b'\n');
    let length = u32::try_from(frame.len() - 4).unwrap_or(u32::MAX);
    if length > MOST {
        return Err(FrameError::Unsendable(length));
    }
    frame[..4].copy_from_slice(&length.to_be_bytes());
    output.write_all(&frame).and_then(|()| output.flush()).map_err(FrameError::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Assignment;
    use proptest::prelude::*;
    use std::time::Duration;

    fn read(bytes: &[u8]) -> Result<ToWorker, FrameError> {
        read_frame(&mut &bytes[..])
    }

    #[test]
    fn a_frame_is_refused_by_what_is_wrong_with_it() {
        let mut whole = Vec::new();
        write_frame(&mut whole, &ToWorker::Ping).unwrap();
        assert_eq!(whole.last(), Some(&b'\n'), "Slurm passes whole lines on");
        assert_eq!(read(&whole).unwrap(), ToWorker::Ping);
        assert!(matches!(read(&[]), Err(FrameError::Closed)));
        for end in 1..whole.len() {
            assert!(matches!(read(&whole[..end]), Err(FrameError::Cut)), "{end}");
        }
        let long = (MOST + 1).to_be_bytes();
        assert!(matches!(read(&long), Err(FrameError::TooLong(_))));
        assert!(matches!(read(b"\0\0\0\x02{}"), Err(FrameError::Malformed(_))));
    }

    proptest! {
        /// Bit for bit, also what is near the ends of the numbers.
        #[test]
        fn a_measurement_arrives_as_it_was_sent(
            performance in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL,
            nanos in any::<u64>(),
            leaves in proptest::collection::vec(any::<u32>(), 0..9),
        ) {
            let sent = FromWorker::Measured {
                ticket: nanos,
                outcome: Ok(Measurement::new(performance, Duration::from_nanos(nanos))),
                disturbances: Box::default(),
            };
            let setting = Setting::Pinned(Assignment::new(leaves));
            let asked = ToWorker::Measure {
                ticket: 1,
                number: nanos,
                trials: vec![(setting, Effort { windows: performance })],
            };
            let mut bytes = Vec::new();
            write_frame(&mut bytes, &sent).unwrap();
            write_frame(&mut bytes, &asked).unwrap();
            let mut input = &bytes[..];
            prop_assert_eq!(read_frame::<FromWorker>(&mut input).unwrap(), sent);
            prop_assert_eq!(read_frame::<ToWorker>(&mut input).unwrap(), asked);
        }
    }
}
