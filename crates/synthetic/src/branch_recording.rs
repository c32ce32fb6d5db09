//! A recording of branches, as `perf record -b -o -` writes it to a pipe.

use std::io::{self, Write};

/// Samples of a round: perf empties the buffers of all processors that often.
const ROUND: u64 = 1_000;
/// The process and its thread.
const PROCESS: u64 = 7 << 32 | 7;
/// `IP`, `TID`, `TIME` and `BRANCH_STACK` of the kernel's `perf_event_attr`.
const PARTS: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 11;
/// Any taken branch, in user mode.
const BRANCH_KINDS: u64 = 1 << 3 | 1;
/// Records of mappings end with the process and the time, too.
const TIME_OF_ALL: u64 = 1 << 18;

/// Writes the recording of one process that runs one binary.
#[derive(Debug)]
pub struct BranchRecordingWriter<W> {
    inner: W,
    samples: u64,
}

impl<W: Write> BranchRecordingWriter<W> {
    /// Begins with the event and the mapping of the binary's code: its address, its length, and
    /// where it is in the file.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn new(inner: W, binary: &str, [start, length, at]: [u64; 3]) -> io::Result<Self> {
        let mut writer = Self { inner, samples: 0 };
        writer.inner.write_all(b"PERFILE2")?;
        writer.numbers(&[16])?;
        let mut attributes = [0; 16];
        attributes[0] = 128 << 32;
        // Instructions, each 500,000.
        attributes[1] = 1;
        attributes[2] = 500_000;
        attributes[3] = PARTS;
        attributes[5] = TIME_OF_ALL;
        attributes[9] = BRANCH_KINDS;
        writer.header(64, 0, 128)?;
        writer.numbers(&attributes)?;
        let mut path = binary.as_bytes().to_vec();
        path.resize((path.len() + 1).next_multiple_of(8), 0);
        writer.header(10, 2, 9 * 8 + path.len() as u64 + 8)?;
        // Behind the place are device, inode and its generation, then r-xp.
        writer.numbers(&[PROCESS, start, length, at, 0, 0, 0, 2 << 32 | 5])?;
        writer.inner.write_all(&path)?;
        writer.numbers(&[PROCESS, 1])?;
        Ok(writer)
    }

    /// Adds a sample: sources and destinations of its branches, the newest one first.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn sample(&mut self, branches: &[(u64, u64)]) -> io::Result<()> {
        const PREDICTED: u64 = 1 << 1;
        let at = branches.first().map_or(0, |newest| newest.1);
        self.samples += 1;
        self.header(9, 2, 4 * 8 + 24 * branches.len() as u64)?;
        self.numbers(&[at, PROCESS, 1 + self.samples, branches.len() as u64])?;
        branches.iter().try_for_each(|&(from, to)| self.numbers(&[from, to, PREDICTED]))?;
        if self.samples.is_multiple_of(ROUND) {
            self.header(68, 0, 0)?;
        }
        Ok(())
    }

    /// Where it writes to.
    pub fn inner(&mut self) -> &mut W {
        &mut self.inner
    }

    fn header(&mut self, kind: u64, misc: u64, body: u64) -> io::Result<()> {
        self.numbers(&[kind | misc << 32 | (8 + body) << 48])
    }

    fn numbers(&mut self, numbers: &[u64]) -> io::Result<()> {
        numbers.iter().try_for_each(|number| self.inner.write_all(&number.to_le_bytes()))
    }
}
