//! Reads `perf.data`, as files of `perf record` and `perf inject` or from a pipe.
//!
//! A file has a header, the attributes of each event, and then records: samples, and what happened
//! to processes. In a pipe the attributes are records, too. The layout is that of the kernel's
//! `include/uapi/linux/perf_event.h` and of perf's `Documentation/perf.data-file-format.txt`. It
//! has only grown since perf 3: what follows the branch stack in a sample is not read.
//!
//! perf writes the records of each processor in a batch, so time jumps back within a *round*. No
//! record after the end of a round is older than the newest of the round before it. Records wait
//! for that, so that a mapping is known before the first sample in it. The input is read once, from
//! front to back. The reader does not trust a stated length before it has the bytes.
//!
//! The crate `linux-perf-data` reads such files, too. It passes over branch stacks, panics on a
//! build id that is too long, and reserves whatever length a header states. So it is not used.

mod compressed;
#[cfg(test)]
mod fixture;
mod record_queue;
#[cfg(test)]
mod tests;

use super::{BranchInputError, finished};
use crate::samples::{BranchRecording, Dropped, SampleSums, StackEntry};
use compressed::CompressedStream;
use record_queue::{RecordQueue, WaitingRecord};
use std::collections::HashMap;
use std::io::{self, Read};

/// Attributes, ids and whatever lies before the records.
const LARGEST_PREFACE: u64 = 64 << 20;

/// A guest's addresses are not those of the process that runs it: no process has this number.
const GUEST: i32 = i32::MIN;

// Kinds of records.
const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const HEADER_ATTR: u32 = 64;
const TRACING_DATA: u32 = 66;
const HEADER_BUILD_ID: u32 = 67;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

// Parts of a sample.
const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const BRANCH_STACK: u64 = 1 << 11;
const IDENTIFIER: u64 = 1 << 16;

// Which branches are recorded.
const ANY_BRANCH: u64 = 1 << 3;
const SOME_KINDS: u64 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 12 | 1 << 13;
const BY_TRANSACTION: u64 = 1 << 8 | 1 << 9;
const CALL_STACK: u64 = 1 << 11;
const HARDWARE_INDEX: u64 = 1 << 17;

/// What a file says that it has behind its records, by bit. There is a section for each.
const BUILD_IDS: u64 = 1 << 2;

/// Reads a recording. Memory grows with distinct fragments, not with samples.
///
/// # Errors
/// If it is no recording, has no branch records, or cannot be read to its end.
pub fn read_perf_data(input: impl Read) -> Result<BranchRecording, BranchInputError> {
    let mut reader = PerfDataReader {
        bytes: CountedBytes { inner: input, at: 0 },
        events: RecordedEvents::default(),
        queue: RecordQueue::default(),
        sums: SampleSums::default(),
        has_trace: false,
        stream: None,
    };
    let (end, features) = reader.header()?;
    reader.records(end)?;
    if end.is_some() {
        reader.build_ids(features)?;
    }
    let has_trace = reader.has_trace;
    match finished(reader.sums) {
        Err(BranchInputError::NoBranchRecords) if has_trace => Err(BranchInputError::NotDecoded),
        result => result,
    }
}

/// How the samples of an event are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventLayout {
    parts: u64,
    read_format: u64,
    branch_kinds: u64,
    /// Its samples come after a number of branches, not of instructions or cycles.
    counts_branches: bool,
    /// Other records end with the time and more.
    records_have_time: bool,
}

impl EventLayout {
    /// From a `perf_event_attr`. Older perfs write a shorter one.
    fn of(attributes: &[u8]) -> Option<Self> {
        let at = |offset: usize| Some(Fields(attributes.get(offset..)?).u64());
        Some(Self {
            parts: at(24)??,
            read_format: at(32)??,
            branch_kinds: at(72).flatten().unwrap_or(0),
            counts_branches: counts_branches(at(0)?? as u32, at(8)??),
            records_have_time: at(40)?? & 1 << 18 != 0,
        })
    }

    fn has(&self, part: u64) -> bool {
        self.parts & part != 0
    }

    /// The bytes of those of these parts that are there, each of eight bytes.
    fn size_of(&self, parts: u64) -> usize {
        8 * (self.parts & parts).count_ones() as usize
    }

    /// Where a sample has the id of its event.
    fn id_at(&self) -> Option<usize> {
        if self.has(IDENTIFIER) {
            return Some(0);
        }
        self.has(ID).then(|| self.size_of(IP | TID | TIME | ADDR))
    }

    /// When a record was made. Records without a time are taken in the order of the file.
    fn time(&self, kind: u32, body: &[u8]) -> Option<u64> {
        let at = match kind {
            _ if !self.has(TIME) => None,
            SAMPLE => Some(self.size_of(IDENTIFIER | IP | TID)),
            _ if self.records_have_time => {
                body.len().checked_sub(self.size_of(TIME | ID | STREAM_ID | CPU | IDENTIFIER))
            }
            _ => None,
        };
        Fields(body.get(at?..)?).u64().filter(|time| !matches!(*time, 0 | u64::MAX))
    }

    /// Whether consecutive branches follow each other in a stack. `perf inject` states no kinds.
    fn records_all_branches(&self) -> bool {
        let kinds = self.branch_kinds;
        kinds & (CALL_STACK | BY_TRANSACTION) == 0
            && (kinds & ANY_BRANCH != 0 || kinds & SOME_KINDS == 0)
    }
}

/// The events of a recording.
#[derive(Debug, Default)]
struct RecordedEvents {
    layouts: Vec<EventLayout>,
    by_id: HashMap<u64, usize>,
    /// Not all are laid out as the first one is.
    differ: bool,
    /// Their ids are not all at the same place, or there are none.
    have_no_ids: bool,
}

impl RecordedEvents {
    fn add(&mut self, layout: EventLayout, ids: &[u8]) {
        let mut fields = Fields(ids);
        while let Some(id) = fields.u64() {
            self.by_id.insert(id, self.layouts.len());
        }
        let first = *self.layouts.first().unwrap_or(&layout);
        self.differ |= layout != first;
        self.have_no_ids |= layout.id_at().is_none() || layout.id_at() != first.id_at();
        self.layouts.push(layout);
    }

    /// When a record was made. perf gives the same fields to records of all events.
    fn time(&self, kind: u32, body: &[u8]) -> Option<u64> {
        self.layouts.first()?.time(kind, body)
    }

    /// The layout of a sample, unless its event is unknown.
    fn of(&self, sample: &[u8]) -> Result<Option<&EventLayout>, BranchInputError> {
        let Some(first) = self.layouts.first().filter(|_| self.differ) else {
            return Ok(self.layouts.first());
        };
        if self.have_no_ids {
            return Err(BranchInputError::MixedEvents);
        }
        let id = first.id_at().and_then(|at| Fields(sample.get(at..)?).u64());
        Ok(id.and_then(|id| self.layouts.get(*self.by_id.get(&id)?)))
    }
}

/// What a sample says of use.
struct PerfSample {
    process: i32,
    address: Option<u64>,
    stack: Vec<StackEntry>,
}

impl PerfSample {
    /// `None`, if it is cut off or contradicts itself.
    fn parse(layout: &EventLayout, body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let part = |fields: &mut Fields, part| match layout.has(part) {
            true => fields.u64().map(Some),
            false => Some(None),
        };
        part(&mut fields, IDENTIFIER)?;
        let address = part(&mut fields, IP)?;
        let ids = part(&mut fields, TID)?;
        for skipped in [TIME, ADDR, ID, STREAM_ID, CPU, PERIOD] {
            part(&mut fields, skipped)?;
        }
        if layout.has(READ) {
            fields.skip_counts(layout.read_format)?;
        }
        if layout.has(CALLCHAIN) {
            let length = fields.u64()?;
            fields.skip(length.checked_mul(8)?)?;
        }
        if layout.has(RAW) {
            let size = fields.u32()?;
            fields.skip(size.into())?;
        }
        let length = fields.u64()?;
        if layout.branch_kinds & HARDWARE_INDEX != 0 {
            fields.u64()?;
        }
        let entries = fields.0.get(..usize::try_from(length.checked_mul(24)?).ok()?)?;
        let stack = entries.chunks_exact(24).filter_map(|entry| {
            let mut fields = Fields(entry);
            Some(stack_entry(fields.u64()?, fields.u64()?, fields.u64()?))
        });
        // The process is the lower half.
        let process = ids.unwrap_or_default() as u32 as i32;
        Some(Self { process, address, stack: stack.collect() })
    }
}

/// An entry from the kernel's `struct perf_branch_entry`. Which fields it fills depends on the
/// processor and on its own version; cycles, kinds and privilege are not used.
fn stack_entry(from: u64, to: u64, flags: u64) -> StackEntry {
    const MISPREDICTED: u64 = 1;
    const ABORT: u64 = 1 << 3;
    const SPECULATION: u64 = 0b11 << 24;
    const WRONG_PATH: u64 = 0b01 << 24;
    let flaw = match () {
        () if flags & ABORT != 0 => Some(Dropped::Aborted),
        () if flags & SPECULATION == WRONG_PATH => Some(Dropped::WrongPath),
        () => None,
    };
    StackEntry { from, to, is_mispredicted: flags & MISPREDICTED != 0, flaw }
}

struct PerfDataReader<R> {
    bytes: CountedBytes<R>,
    events: RecordedEvents,
    queue: RecordQueue,
    sums: SampleSums,
    /// There is a trace of the processor, from which perf can make branch stacks.
    has_trace: bool,
    /// What `perf record -z` compressed.
    stream: Option<CompressedStream>,
}

impl<R: Read> PerfDataReader<R> {
    /// Reads up to the first record. Gives the position at which they end, if it is stated, and
    /// which sections follow.
    fn header(&mut self) -> Result<(Option<u64>, u64), BranchInputError> {
        let mut magic = [0; 16];
        let read = self.bytes.read_up_to(&mut magic)?;
        match magic.get(..8) {
            _ if read < magic.len() => return Err(BranchInputError::NotBranches),
            Some(b"PERFILE2") => {}
            Some(b"2ELIFREP") => return Err(BranchInputError::BigEndian),
            _ => return Err(BranchInputError::NotBranches),
        }
        let header_size = Fields(&magic[8..]).u64();
        if header_size == Some(16) {
            return Ok((None, 0));
        }
        let mut header = [0; 88];
        self.bytes.read_exact(&mut header)?;
        let mut fields = Fields(&header);
        let mut next = || fields.u64().unwrap_or_default();
        let (attribute_size, attributes_at, attributes_size) = (next(), next(), next());
        let (data_at, data_size) = (next(), next());
        let (_event_types_at, _event_types_size, features) = (next(), next(), next());
        let damaged = BranchInputError::Damaged { at: 16 };
        let Some(rest) = data_at.checked_sub(self.bytes.at).filter(|n| *n <= LARGEST_PREFACE)
        else {
            return Err(damaged);
        };
        // With positions as in the file.
        let mut preface = vec![0; 104];
        (&mut self.bytes).take(rest).read_to_end(&mut preface)?;
        if preface.len() as u64 != data_at {
            return Err(self.bytes.ended());
        }
        self.attributes(&preface, attribute_size, attributes_at, attributes_size).ok_or(damaged)?;
        // Zero: perf was killed before it could say.
        Ok(((data_size != 0).then(|| data_at.saturating_add(data_size)), features))
    }

    fn attributes(&mut self, preface: &[u8], size: u64, at: u64, all: u64) -> Option<()> {
        let section = |at: u64, size: u64| {
            let at = usize::try_from(at).ok()?;
            preface.get(at..at.checked_add(usize::try_from(size).ok()?)?)
        };
        let size = usize::try_from(size).ok().filter(|size| *size > 16)?;
        let mut room_for_ids = preface.len();
        for entry in section(at, all)?.chunks_exact(size) {
            let (attributes, ids) = entry.split_at(entry.len() - 16);
            let mut fields = Fields(ids);
            let ids = section(fields.u64()?, fields.u64()?)?;
            // Events do not share ids: else each of many could claim all bytes.
            room_for_ids = room_for_ids.checked_sub(ids.len())?;
            self.events.add(EventLayout::of(attributes)?, ids);
        }
        Some(())
    }

    /// Reads the build ids of all files, which perf notes when the recording ends. Their section
    /// lies behind the records and the places of all sections.
    fn build_ids(&mut self, features: u64) -> Result<(), BranchInputError> {
        if features & BUILD_IDS == 0 {
            return Ok(());
        }
        let sections_before = (features & (BUILD_IDS - 1)).count_ones();
        self.bytes.skip(16 * u64::from(sections_before))?;
        let mut section = [0; 16];
        self.bytes.read_exact(&mut section)?;
        let mut fields = Fields(&section);
        let (at, size) = (fields.u64().unwrap_or_default(), fields.u64().unwrap_or_default());
        let damaged = BranchInputError::Damaged { at: self.bytes.at };
        self.bytes.skip(at.checked_sub(self.bytes.at).ok_or(damaged)?)?;
        let mut body = Vec::new();
        while self.bytes.at < at.saturating_add(size) {
            let (_, misc) = self.record(&mut body)?.ok_or_else(|| self.bytes.ended())?;
            self.build_id(misc, &body);
        }
        Ok(())
    }

    /// Notes the build id of a file. perf 3 to 5 do not state its length.
    fn build_id(&mut self, misc: u16, body: &[u8]) {
        const STATES_LENGTH: u16 = 1 << 15;
        let id_and_path = body.split_at_checked(4).and_then(|(_process, rest)| {
            let (id, path) = rest.split_first_chunk::<24>()?;
            let length = if misc & STATES_LENGTH == 0 { 20 } else { usize::from(id[20]) };
            Some((id[..20].get(..length)?, until_zero(path)))
        });
        if let Some((id, path)) = id_and_path
            && !is_guests(misc)
            && path.starts_with('/')
        {
            self.sums.note_build_id(&path, id);
        }
    }

    /// Reads a record. Gives its kind and what else its header says. `None` at the file's end.
    fn record(&mut self, body: &mut Vec<u8>) -> Result<Option<(u32, u16)>, BranchInputError> {
        let at = self.bytes.at;
        let mut header = [0; 8];
        match self.bytes.read_up_to(&mut header)? {
            0 => return Ok(None),
            8 => {}
            _ => return Err(self.bytes.ended()),
        }
        let mut fields = Fields(&header);
        let kind = fields.u32().unwrap_or_default();
        let (misc, size) = fields.u16_pair().unwrap_or_default();
        let length = usize::from(size).checked_sub(header.len());
        body.resize(length.ok_or(BranchInputError::Damaged { at })?, 0);
        self.bytes.read_exact(body)?;
        Ok(Some((kind, misc)))
    }

    /// Reads all records.
    fn records(&mut self, end: Option<u64>) -> Result<(), BranchInputError> {
        let mut body = Vec::new();
        while end.is_none_or(|end| self.bytes.at < end) {
            let damaged = BranchInputError::Damaged { at: self.bytes.at };
            let Some((kind, misc)) = self.record(&mut body)? else {
                match end {
                    None => break,
                    Some(_) => return Err(self.bytes.ended()),
                }
            };
            match kind {
                TRACING_DATA => {
                    let size = Fields(&body).u32().ok_or(damaged)?;
                    self.bytes.skip(size.into())?;
                }
                AUXTRACE => {
                    self.has_trace = true;
                    let size = Fields(&body).u64().ok_or(damaged)?;
                    self.bytes.skip(size)?;
                }
                COMPRESSED => self.compressed(&body)?,
                // The size of its content, which is padded.
                COMPRESSED2 => {
                    let mut fields = Fields(&body);
                    let size = fields.u64().and_then(|size| usize::try_from(size).ok());
                    let piece = size.and_then(|size| fields.0.get(..size)).ok_or(damaged)?;
                    self.compressed(piece)?;
                }
                _ => self.record_of(kind, misc, &body)?,
            }
        }
        if let Some(stream) = self.stream.take() {
            let at = self.bytes.at;
            stream.finish(at, &mut |kind, misc, body| self.uncompressed(kind, misc, body, at))?;
        }
        let rest = self.queue.finish();
        self.take(&rest)
    }

    /// Takes a piece of what `perf record -z` compressed.
    fn compressed(&mut self, piece: &[u8]) -> Result<(), BranchInputError> {
        let at = self.bytes.at;
        let mut stream = self.stream.take().unwrap_or_else(CompressedStream::new);
        stream.push(piece, at, &mut |kind, misc, body| self.uncompressed(kind, misc, body, at))?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Takes a record that was compressed: of the kernel, which writes no other kinds.
    fn uncompressed(
        &mut self,
        kind: u32,
        misc: u16,
        body: &[u8],
        at: u64,
    ) -> Result<(), BranchInputError> {
        match kind {
            HEADER_ATTR.. => Err(BranchInputError::Damaged { at }),
            _ => self.record_of(kind, misc, body),
        }
    }

    /// Takes a record without bytes behind it.
    fn record_of(&mut self, kind: u32, misc: u16, body: &[u8]) -> Result<(), BranchInputError> {
        let mut due = Vec::new();
        match kind {
            HEADER_ATTR => {
                let damaged = BranchInputError::Damaged { at: self.bytes.at };
                self.header_attr(body).ok_or(damaged)?;
            }
            HEADER_BUILD_ID => self.build_id(misc, body),
            // A decoder gives its records late, after the end of their round.
            FINISHED_ROUND if self.stream.is_some() => {}
            FINISHED_ROUND => due = self.queue.finish_round(),
            MMAP | MMAP2 | COMM | FORK | EXIT | SAMPLE | LOST | LOST_SAMPLES => {
                let time = self.events.time(kind, body);
                let record = WaitingRecord::new(time, kind, misc, body);
                match time {
                    Some(_) => due = self.queue.push(record),
                    None => due.push(record),
                }
            }
            _ => {}
        }
        self.take(&due)
    }

    /// Takes records whose turn has come.
    fn take(&mut self, records: &[WaitingRecord]) -> Result<(), BranchInputError> {
        records.iter().try_for_each(|record| take(&mut self.sums, &self.events, record))
    }

    /// An event of a pipe, or one that `perf inject` made: attributes, then ids.
    fn header_attr(&mut self, body: &[u8]) -> Option<()> {
        let size = usize::try_from(Fields(body.get(4..)?).u32()?).ok()?;
        let ids = body.get(size..)?;
        self.events.add(EventLayout::of(&body[..size])?, ids);
        Some(())
    }
}

/// Takes a record whose turn has come.
fn take(
    sums: &mut SampleSums,
    events: &RecordedEvents,
    record: &WaitingRecord,
) -> Result<(), BranchInputError> {
    let mut fields = Fields(&record.body);
    match record.kind {
        SAMPLE => take_sample(sums, events, record)?,
        MMAP | MMAP2 => {
            if let Some(mapping) = PerfMapping::parse(record) {
                let PerfMapping { process, start, length, offset, build_id, path } = mapping;
                sums.spaces.map(process, start, length, offset, &path)?;
                if path.starts_with('/') {
                    build_id.iter().for_each(|id| sums.note_build_id(&path, id));
                }
            }
        }
        COMM => {
            const BY_EXEC: u16 = 1 << 13;
            if record.misc & BY_EXEC != 0
                && let Some(process) = fields.i32()
            {
                sums.spaces.execute(process);
            }
        }
        FORK | EXIT => {
            // It ran before the recording: its own mappings are recorded.
            const RAN_BEFORE: u16 = 1 << 13;
            let mut next = || fields.i32();
            if let (Some(process), Some(parent), Some(thread)) = (next(), next(), next()) {
                match record.kind {
                    FORK if record.misc & RAN_BEFORE != 0 && process == thread => {
                        sums.spaces.execute(process);
                    }
                    FORK => sums.spaces.fork(parent, process),
                    _ if process == thread => sums.spaces.exit(process),
                    _ => {}
                }
            }
        }
        _ => {
            if record.kind == LOST {
                fields.u64();
            }
            let lost = fields.u64().unwrap_or_default();
            sums.totals.lost_samples = sums.totals.lost_samples.saturating_add(lost);
        }
    }
    Ok(())
}

fn take_sample(
    sums: &mut SampleSums,
    events: &RecordedEvents,
    record: &WaitingRecord,
) -> Result<(), BranchInputError> {
    let Some(layout) = events.of(&record.body)? else {
        sums.totals.unreadable_samples += 1;
        return Ok(());
    };
    if !layout.has(BRANCH_STACK) {
        return Ok(());
    }
    if !layout.records_all_branches() {
        sums.totals.filtered_samples += 1;
        return Ok(());
    }
    match PerfSample::parse(layout, &record.body) {
        Some(sample) => {
            let process = if is_guests(record.misc) { GUEST } else { sample.process };
            let counts = layout.counts_branches && !sample.stack.is_empty();
            sums.totals.by_branches += u64::from(counts);
            sums.add(process, sample.address, &sample.stack);
        }
        None => sums.totals.unreadable_samples += 1,
    }
    Ok(())
}

/// Whether an event counts branches: the kernel's own event of that name, or the processor's. Intel
/// and AMD have the number 0xc4 for retired branches. Most branches are taken, so all of them stand
/// for taken ones.
fn counts_branches(of: u32, config: u64) -> bool {
    const HARDWARE: u32 = 0;
    const BRANCH_INSTRUCTIONS: u64 = 4;
    const RETIRED_BRANCHES: u64 = 0xc4;
    /// Kinds of events from here on are monitoring units, such as one kind of core.
    const OWN_UNIT: u32 = 6;
    match of {
        // A hybrid processor has the kind of its core above.
        HARDWARE => config & 0xffff_ffff == BRANCH_INSTRUCTIONS,
        4 | OWN_UNIT.. => config & 0xff == RETIRED_BRANCHES,
        _ => false,
    }
}

/// Whether a guest's kernel or one of its processes ran.
fn is_guests(misc: u16) -> bool {
    matches!(misc & 7, 4 | 5)
}

fn until_zero(text: &[u8]) -> String {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// A process maps a part of a file as code.
struct PerfMapping {
    process: i32,
    start: u64,
    length: u64,
    offset: u64,
    build_id: Option<Box<[u8]>>,
    path: String,
}

impl PerfMapping {
    /// `None`, if it is of data, of the kernel, or cut off.
    fn parse(record: &WaitingRecord) -> Option<Self> {
        const OF_DATA: u16 = 1 << 13;
        const EXECUTABLE: u32 = 4;
        /// In the place of device and inode.
        const HAS_BUILD_ID: u16 = 1 << 14;
        let mut fields = Fields(&record.body);
        let (process, _thread) = (fields.i32()?, fields.i32()?);
        let (start, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let mut is_code = record.misc & OF_DATA == 0;
        let mut build_id = None;
        if record.kind == MMAP2 {
            let device_or_id: [u8; 24] = fields.take()?;
            if record.misc & HAS_BUILD_ID != 0 {
                build_id = device_or_id[4..].get(..device_or_id[0].into()).map(Box::from);
            }
            let protection = fields.u32()?;
            fields.u32()?;
            is_code &= protection == 0 || protection & EXECUTABLE != 0;
        }
        let path = until_zero(fields.0);
        (is_code && process >= 0).then_some(Self { process, start, length, offset, build_id, path })
    }
}

/// Little-endian fields, from the first on. `None` where there are no more bytes.
#[derive(Debug, Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn u16_pair(&mut self) -> Option<(u16, u16)> {
        Some((u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?)))
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Skips what `PERF_SAMPLE_READ` adds.
    fn skip_counts(&mut self, format: u64) -> Option<()> {
        const TIMES: u64 = 0b11;
        const IDS_AND_LOST: u64 = 1 << 2 | 1 << 4;
        const GROUP: u64 = 1 << 3;
        let times = u64::from((format & TIMES).count_ones());
        let per_count = 1 + u64::from((format & IDS_AND_LOST).count_ones());
        let counts = if format & GROUP != 0 { self.u64()? } else { 1 };
        self.skip(counts.checked_mul(per_count)?.checked_add(times)?.checked_mul(8)?)
    }
}

/// Bytes, with the position in the file.
struct CountedBytes<R> {
    inner: R,
    at: u64,
}

impl<R: Read> Read for CountedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Read> CountedBytes<R> {
    /// Fills the buffer, or reads to the end of the file.
    fn read_up_to(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), BranchInputError> {
        match self.read_up_to(buffer)? {
            read if read == buffer.len() => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<(), BranchInputError> {
        match io::copy(&mut self.take(bytes), &mut io::sink())? {
            skipped if skipped == bytes => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// The file ends here, too early.
    fn ended(&self) -> BranchInputError {
        BranchInputError::Damaged { at: self.at }
    }
}
