//! Writes recordings for tests, as perf and the kernel lay them out.

use super::*;

/// Any taken branch, in user mode.
pub(super) const ANY_OF_USER: u64 = ANY_BRANCH | 1;

/// An entry of a branch stack, predicted rightly, after three cycles.
pub(super) fn entry(from: u64, to: u64) -> (u64, u64, u64) {
    (from, to, 1 << 1 | 3 << 4)
}

/// An event and the ids of its counters.
pub(super) struct RecordedEvent {
    pub(super) parts: u64,
    pub(super) read_format: u64,
    pub(super) branch_kinds: u64,
    pub(super) ids: Vec<u64>,
    /// What is counted: the kind of the unit, and the number of the event there.
    pub(super) counted: (u32, u64),
}

impl RecordedEvent {
    /// What `perf record -b` asks for.
    pub(super) fn branches() -> Self {
        let parts = IP | TID | TIME | BRANCH_STACK;
        Self { parts, read_format: 0, branch_kinds: ANY_OF_USER, ids: vec![], counted: (0, 1) }
    }

    /// An event with one counter.
    pub(super) fn with_id(parts: u64, branch_kinds: u64, id: u64) -> Self {
        Self { parts, branch_kinds, ids: vec![id], ..Self::branches() }
    }

    fn attributes(&self, size: usize) -> Vec<u8> {
        let mut attributes = vec![0; size];
        let mut put = |at: usize, value: u64| {
            if let Some(field) = attributes.get_mut(at..at + 8) {
                field.copy_from_slice(&value.to_le_bytes());
            }
        };
        put(0, (size as u64) << 32 | u64::from(self.counted.0));
        put(8, self.counted.1);
        put(16, 500_000);
        put(24, self.parts);
        put(32, self.read_format);
        put(40, 1 << 18);
        put(72, self.branch_kinds);
        attributes
    }
}

/// A recording in the making.
pub(super) struct PerfDataWriter {
    pub(super) events: Vec<RecordedEvent>,
    pub(super) records: Vec<u8>,
    /// Time passes with each record, in nanoseconds.
    pub(super) now: u64,
    /// The size of an event's attributes. It tells versions of perf apart.
    pub(super) attribute_size: usize,
}

/// What perf 6.1 writes.
pub(super) const ATTRIBUTE_SIZE: usize = 128;

impl PerfDataWriter {
    pub(super) fn new() -> Self {
        Self::of([RecordedEvent::branches()])
    }

    pub(super) fn of(events: impl Into<Vec<RecordedEvent>>) -> Self {
        Self {
            events: events.into(),
            records: Vec::new(),
            now: 1_000_000,
            attribute_size: ATTRIBUTE_SIZE,
        }
    }

    /// A program at 0x400000 in process 7, its text being the first 64 KiB of its file.
    pub(super) fn of_program() -> Self {
        let mut file = Self::new();
        file.map(7, 0x40_0000, 0x1_0000, 0, "/bin/program");
        file
    }

    pub(super) fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let size = u16::try_from(8 + body.len()).unwrap();
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend(size.to_le_bytes());
        self.records.extend(body);
    }

    /// A record of no sample: ends with process, time and whatever else the first event has.
    fn event_record(&mut self, kind: u32, misc: u16, process: i32, mut body: Vec<u8>) {
        self.now += 1_000;
        body.resize(body.len().next_multiple_of(8), 0);
        let parts = self.events[0].parts;
        let mut put = |part: u64, value: u64| {
            if parts & part != 0 {
                body.extend(value.to_le_bytes());
            }
        };
        put(TID, u64::from(process as u32) << 32 | u64::from(process as u32));
        put(TIME, self.now);
        put(ID, self.events[0].ids.first().copied().unwrap_or_default());
        put(STREAM_ID, 0);
        put(CPU, 0);
        put(IDENTIFIER, self.events[0].ids.first().copied().unwrap_or_default());
        self.record(kind, misc, &body);
    }

    pub(super) fn map(&mut self, process: i32, start: u64, length: u64, offset: u64, path: &str) {
        let mut body = numbers(&[process, process]);
        [start, length, offset].iter().for_each(|field| body.extend(field.to_le_bytes()));
        // Device, inode and its generation; then r-xp.
        body.extend([0; 24]);
        body.extend(numbers(&[5, 2]));
        body.extend(path.as_bytes());
        body.push(0);
        self.event_record(MMAP2, 2, process, body);
    }

    /// With the build id that the kernel found (`perf record --buildid-mmap`).
    pub(super) fn map_with_build_id(&mut self, process: i32, start: u64, path: &str, id: &[u8]) {
        let mut body = numbers(&[process, process]);
        [start, 0x1_0000, 0].iter().for_each(|field| body.extend(field.to_le_bytes()));
        let mut place = vec![id.len() as u8, 0, 0, 0];
        place.extend(id);
        place.resize(24, 0);
        body.extend(place);
        body.extend(numbers(&[5, 2]));
        body.extend(path.as_bytes());
        body.push(0);
        self.event_record(MMAP2, 2 | 1 << 14, process, body);
    }

    /// As before perf 3.16.
    pub(super) fn map_as_of_old(&mut self, process: i32, start: u64, length: u64, path: &str) {
        let mut body = numbers(&[process, process]);
        [start, length, 0].iter().for_each(|field| body.extend(field.to_le_bytes()));
        body.extend(path.as_bytes());
        body.push(0);
        self.event_record(MMAP, 2, process, body);
    }

    pub(super) fn execute(&mut self, process: i32) {
        let mut body = numbers(&[process, process]);
        body.extend(b"program\0");
        self.event_record(COMM, 1 << 13, process, body);
    }

    pub(super) fn fork(&mut self, parent: i32, child: i32) {
        let body = numbers(&[child, parent, child, parent, 0, 0]);
        self.event_record(FORK, 0, parent, body);
    }

    pub(super) fn exit(&mut self, process: i32) {
        let body = numbers(&[process, 1, process, 1, 0, 0]);
        self.event_record(EXIT, 0, process, body);
    }

    /// A sample of the first event, newest entry first.
    pub(super) fn sample(&mut self, process: i32, stack: &[(u64, u64, u64)]) {
        self.sample_of(0, 2, process, stack);
    }

    /// With three of all that comes in lists.
    pub(super) fn sample_of(
        &mut self,
        event: usize,
        misc: u16,
        process: i32,
        stack: &[(u64, u64, u64)],
    ) {
        self.now += 1_000;
        let RecordedEvent { parts, read_format, branch_kinds, ids, .. } = &self.events[event];
        let id = ids.first().copied().unwrap_or_default();
        let mut body = Vec::new();
        let mut put = |part: u64, values: &[u64]| {
            if parts & part != 0 {
                values.iter().for_each(|value| body.extend(value.to_le_bytes()));
            }
        };
        put(IDENTIFIER, &[id]);
        put(IP, &[stack.first().map_or(0, |newest| newest.1)]);
        put(TID, &[u64::from(process as u32) << 32 | u64::from(process as u32)]);
        put(TIME, &[self.now]);
        put(ADDR, &[0xadd]);
        put(ID, &[id]);
        put(STREAM_ID, &[id]);
        put(CPU, &[0]);
        put(PERIOD, &[500_000]);
        // A group of three with ids and lost, or one count with both times.
        match read_format {
            0 => {}
            0b11 => put(READ, &[9, 8, 7]),
            0b1_1100 => put(READ, &[3, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            format => panic!("the fixture knows no read format {format:b}"),
        }
        put(CALLCHAIN, &[3, u64::MAX - 511, 0x40_0123, 0x40_0456]);
        // Four bytes of size, then twelve.
        put(RAW, &[12 | 0xfeed << 32, 0xfeed_feed]);
        put(BRANCH_STACK, &[stack.len() as u64]);
        if branch_kinds & HARDWARE_INDEX != 0 {
            put(BRANCH_STACK, &[5]);
        }
        for (from, to, flags) in stack {
            put(BRANCH_STACK, &[*from, *to, *flags]);
        }
        // Counters of each branch and registers: what nobody reads.
        put(BRANCH_STACK, &[1; 5]);
        self.record(SAMPLE, misc, &body);
    }

    pub(super) fn round(&mut self) {
        self.record(FINISHED_ROUND, 0, &[]);
    }

    /// As `perf record -o FILE` leaves it.
    pub(super) fn file(&self) -> Vec<u8> {
        let attributes = |event: &RecordedEvent| event.attributes(self.attribute_size);
        let attributes: Vec<_> = self.events.iter().map(attributes).collect();
        let entry_size = attributes[0].len() + 16;
        let ids_size: usize = self.events.iter().map(|event| 8 * event.ids.len()).sum();
        let attributes_at = 104 + ids_size;
        let data_at = attributes_at + entry_size * attributes.len();
        let mut file = b"PERFILE2".to_vec();
        let sizes = [104, entry_size, attributes_at, entry_size * attributes.len()];
        let data = [data_at, self.records.len(), 0, 0];
        for field in sizes.into_iter().chain(data).chain([0; 4]) {
            file.extend((field as u64).to_le_bytes());
        }
        let ids = self.events.iter().flat_map(|event| &event.ids);
        ids.for_each(|id| file.extend(id.to_le_bytes()));
        let mut ids_at = 104_u64;
        for (event, attributes) in self.events.iter().zip(attributes) {
            file.extend(attributes);
            let ids_size = 8 * event.ids.len() as u64;
            file.extend([ids_at, ids_size].iter().flat_map(|field| field.to_le_bytes()));
            ids_at += ids_size;
        }
        file.extend(&self.records);
        file
    }

    /// The file with its build ids behind the records, as perf finds them at the end. In front of
    /// their section may be one of tracing data, which nobody reads.
    pub(super) fn file_with_build_ids(
        &self,
        build_ids: &[(u16, &str, &[u8])],
        tracing_data: bool,
    ) -> Vec<u8> {
        let mut file = self.file();
        file[72] = if tracing_data { 0b110 } else { 0b100 };
        let mut ids = Self::of([]);
        for (misc, path, id) in build_ids {
            ids.record(0, *misc, &build_id(path, id));
        }
        let mut sections = vec![ids.records];
        if tracing_data {
            sections.insert(0, vec![0xee; 8]);
        }
        let mut at = file.len() + 16 * sections.len();
        for section in &sections {
            file.extend([at, section.len()].map(|field| (field as u64).to_le_bytes()).concat());
            at += section.len();
        }
        file.extend(sections.concat());
        file
    }

    /// As `perf record -o -` writes it.
    pub(super) fn pipe(&self) -> Vec<u8> {
        let mut start = Self::of([]);
        for event in &self.events {
            let mut body = event.attributes(self.attribute_size);
            event.ids.iter().for_each(|id| body.extend(id.to_le_bytes()));
            start.record(HEADER_ATTR, 0, &body);
        }
        let mut pipe = b"PERFILE2".to_vec();
        pipe.extend(16_u64.to_le_bytes());
        pipe.extend(start.records);
        pipe.extend(&self.records);
        pipe
    }
}

/// What a record of a build id holds, of the process that stands for all.
pub(super) fn build_id(path: &str, id: &[u8]) -> Vec<u8> {
    let mut body = numbers(&[-1]);
    body.extend(id);
    body.resize(24, 0);
    body.extend([id.len() as u8, 0, 0, 0]);
    body.extend(path.as_bytes());
    body.resize((body.len() + 1).next_multiple_of(8), 0);
    body
}

fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
