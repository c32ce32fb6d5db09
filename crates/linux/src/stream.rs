//! The output of a launched program.
//!
//! A thread per pipe reads to the end, so the program never blocks on a full pipe. It stores the
//! last lines for messages. It hands every line with the time it was read to the holder of the
//! receiver. A dropped receiver costs nothing: the thread goes on reading.

use crate::line_queue::{LineReceiver, line_queue};
use crate::run_delay::RunDelay;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// One line of output, and when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// When the line was read.
    pub at: Instant,
    /// How long before `at` the reader was kept from running. The line may have been there for that
    /// long.
    pub late: Duration,
    /// The line without its end, cut after 64 KiB. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// The lines of a launched program, for a meter to read; `None` if the stream is not piped.
#[derive(Debug, Default)]
pub struct Streams {
    /// Its standard output.
    pub stdout: Option<LineReceiver>,
    /// Its standard error.
    pub stderr: Option<LineReceiver>,
}

/// The last lines of a stream, kept for error messages.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<(Mutex<Last>, Condvar)>);

#[derive(Debug, Default)]
struct Last {
    lines: VecDeque<String>,
    ended: bool,
}

/// Characters of a line that are quoted in a message.
const QUOTED: usize = 100;
/// Enough for a message; a program's usage text is not repeated in full.
const KEPT: usize = 5;
/// A line longer than this is cut: a program may print gigabytes without a newline.
const LONGEST: u64 = 64 * 1024;
/// How long to wait for the end of a stream. A program that has ended may still have output in the
/// pipe. A child of it may hold the pipe open for ever.
const DRAINING: Duration = Duration::from_millis(500);

impl Tail {
    /// The last line that is not blank, ready to quote in a message. Waits until the stream has
    /// ended, at most half a second.
    pub fn last(&self) -> Option<String> {
        self.wait();
        self.now()
    }

    /// The last line so far that is not blank, ready to quote in a message.
    pub fn now(&self) -> Option<String> {
        let last = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.lines.iter().rev().find(|line| !line.trim().is_empty()).map(|line| quotable(line))
    }

    /// Waits until everything the stream had has been read, at most half a second.
    pub fn wait(&self) {
        let last = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ended = self.0.1.wait_timeout_while(last, DRAINING, |last| !last.ended);
    }

    fn change(&self, change: impl FnOnce(&mut Last)) {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_all();
    }
}

/// A line of a program, ready to quote in a message. Control characters are written out, and a long
/// line is cut. It quotes no binary output.
pub fn quotable(line: &str) -> String {
    let binary = |character: &char| *character == char::REPLACEMENT_CHARACTER;
    // A letter of another encoding is one now and then.
    if line.chars().filter(binary).count() * 5 > line.chars().count() {
        return "[binary, not text]".into();
    }
    let (mut quoted, mut width) = (String::new(), 0);
    for character in line.trim().chars() {
        let before = quoted.len();
        match character.is_control() {
            true => quoted.extend(character.escape_default()),
            false => quoted.push(character),
        }
        width += quoted[before..].chars().count();
        if width > QUOTED {
            quoted.truncate(before);
            quoted.push('…');
            break;
        }
    }
    quoted
}

/// Reads `pipe` to its end on its own thread and passes every line to `take`.
pub fn each_line(
    pipe: impl Read + Send + 'static,
    take: impl FnMut(OutputLine) + Send + 'static,
) -> io::Result<Tail> {
    let tail = Tail::default();
    let kept = tail.clone();
    thread::Builder::new().name("reader".into()).spawn(move || {
        let delay = RunDelay::of_this_thread();
        let pipe = Delayed { pipe, delay, late: Duration::ZERO };
        read(BufReader::new(pipe), take, &kept);
        kept.change(|last| last.ended = true);
    })?;
    Ok(tail)
}

/// Does the same as [`each_line`], and sends the lines to a receiver.
pub fn follow(pipe: impl Read + Send + 'static) -> io::Result<(LineReceiver, Tail)> {
    let (sender, receiver) = line_queue();
    // Also if nobody listens any more: the program must not block.
    let tail = each_line(pipe, move |line| _ = sender.send(line))?;
    Ok((receiver, tail))
}

/// A pipe, and how late its last bytes were read.
struct Delayed<R> {
    pipe: R,
    delay: RunDelay,
    late: Duration,
}

impl<R: Read> Read for Delayed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.pipe.read(buffer);
        self.late = self.delay.since_last();
        read
    }
}

fn read(mut pipe: BufReader<Delayed<impl Read>>, mut take: impl FnMut(OutputLine), tail: &Tail) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        // A read error on a pipe we own means that it is gone; nobody needs to know.
        match pipe.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let (at, late) = (Instant::now(), pipe.get_ref().late);
        let text =
            String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(&bytes)).into_owned();
        tail.change(|last| {
            if last.lines.len() == KEPT {
                last.lines.pop_front();
            }
            last.lines.push_back(text.clone());
        });
        take(OutputLine { at, late, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_arrives_and_the_last_ones_are_kept() {
        let text: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let (lines, tail) = follow(io::Cursor::new(format!("{text}\n"))).unwrap();
        assert_eq!(tail.last().as_deref(), Some("line 19"), "blank lines say nothing");
        let lines: Vec<String> = lines.try_iter().map(|line| line.text).collect();
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[19], "line 19");
    }

    #[test]
    fn what_is_quoted_does_not_steer_the_terminal() {
        let (_lines, tail) = follow(&b"\x1b[31mfatal\x1b[0m\x07: \xff\n"[..]).unwrap();
        assert_eq!(tail.last().as_deref(), Some("\\u{1b}[31mfatal\\u{1b}[0m\\u{7}: \u{fffd}"));
        let long = quotable(&"ä".repeat(1000));
        assert!(long.chars().count() == QUOTED + 1 && long.ends_with("ä…"), "{long}");
        assert!(quotable(&"\x1b".repeat(1000)).len() <= QUOTED + "…".len());
        let (_lines, tail) = follow(&b"\x1f\x8b\xff\xfe\xc3\n"[..]).unwrap();
        assert_eq!(tail.last().as_deref(), Some("[binary, not text]"));
        let latin = "s\u{fffd}n fil \u{fffd}r l\u{fffd}st och kan inte l\u{fffd}sas";
        assert_eq!(quotable(latin), latin, "some letters are of another encoding");
    }

    #[test]
    fn a_line_without_end_is_cut_and_a_dropped_receiver_does_not_stop_the_reading() {
        let (lines, tail) =
            follow(io::repeat(b'x').take(3 * LONGEST).chain(&b"\nlast\n"[..])).unwrap();
        let first = lines.recv_timeout(DRAINING * 100).unwrap();
        assert_eq!(first.text.len(), LONGEST as usize);
        drop(lines);
        assert_eq!(tail.last().as_deref(), Some("last"));
    }
}
