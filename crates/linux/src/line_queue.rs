//! A queue of lines. One thread reads them from a pipe or a file, and a meter takes them out.

use crate::stream::OutputLine;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// The most lines that wait.
const LINES: usize = 65_536;
/// The most bytes that wait: a program may print long lines without pause.
const BYTES: usize = 4 << 20;

/// The two ends of a queue. If too much waits, the newest lines are dropped rather than memory
/// filled.
pub fn line_queue() -> (LineSender, LineReceiver) {
    let (sender, receiver) = sync_channel(LINES);
    let waiting = Arc::new(AtomicUsize::new(0));
    let lines = LineReceiver { lines: receiver, waiting: Arc::clone(&waiting) };
    (LineSender { lines: sender, waiting }, lines)
}

/// The end of a queue that lines are put into.
#[derive(Debug)]
pub struct LineSender {
    lines: SyncSender<OutputLine>,
    /// Bytes that wait. The receiver holds the other reference.
    waiting: Arc<AtomicUsize>,
}

impl LineSender {
    /// Adds a line, or drops it if too much waits. Returns whether anybody listens.
    pub fn send(&self, line: OutputLine) -> bool {
        let length = line.text.len();
        // Before the line is there, lest the receiver subtract it first.
        let before = self.waiting.fetch_add(length, Ordering::Relaxed);
        if before + length > BYTES || self.lines.try_send(line).is_err() {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
        }
        Arc::strong_count(&self.waiting) > 1
    }
}

/// The end of a queue that lines are taken out of.
#[derive(Debug)]
pub struct LineReceiver {
    lines: Receiver<OutputLine>,
    waiting: Arc<AtomicUsize>,
}

impl LineReceiver {
    /// The next line. Waits for it at most this long.
    ///
    /// # Errors
    /// No line came in time, or none can come any more.
    pub fn recv_timeout(&self, limit: Duration) -> Result<OutputLine, RecvTimeoutError> {
        let line = self.lines.recv_timeout(limit)?;
        self.waiting.fetch_sub(line.text.len(), Ordering::Relaxed);
        Ok(line)
    }

    /// The lines that are there.
    pub fn try_iter(&self) -> impl Iterator<Item = OutputLine> {
        std::iter::from_fn(|| self.recv_timeout(Duration::ZERO).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn line(length: usize) -> OutputLine {
        OutputLine { at: Instant::now(), late: Duration::ZERO, text: "x".repeat(length) }
    }

    #[test]
    fn what_waits_is_limited_in_bytes_and_lines_and_there_is_room_again_afterwards() {
        let (sender, receiver) = line_queue();
        for (length, most) in [(BYTES / 4, 4), (0, LINES)] {
            for _ in 0..2 {
                (0..most + 3).for_each(|_| assert!(sender.send(line(length))));
                assert_eq!(receiver.try_iter().count(), most);
            }
        }
        drop(receiver);
        assert!(!sender.send(line(1)));
        assert!(!sender.send(line(BYTES + 1)), "also a line that is dropped");
    }
}
