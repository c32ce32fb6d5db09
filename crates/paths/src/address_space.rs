//! Which binary an address of a process lies in, and where in its file.
//!
//! A recording has the addresses of the running process. Position-independent programs, address
//! space randomisation and `dlopen` put the same code at other addresses each time. The kernel's
//! records of mappings tell where. A file offset does not change from run to run, so that is what
//! an address is resolved to.

use crate::fragments::ELSEWHERE;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

/// More mappings than any recording of use has. What a hostile file makes pinwise keep ends here.
const MOST_MAPPINGS: usize = 1 << 20;

/// Copies of mappings that are made for forked processes. Most forked processes run another program
/// before they map a file, and need none.
const MOST_COPIES: usize = 1 << 23;

/// On x86-64 and AArch64 the kernel has the upper half of the addresses.
const KERNEL_STARTS: u64 = 1 << 63;

/// A binary among those seen, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BinaryNumber(pub(crate) usize);

/// What an address points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// A place in a file, as an offset in bytes.
    InBinary(BinaryNumber, u64),
    /// Code of the kernel.
    Kernel,
    /// No mapping of a file is known there: code made at run time, or a mapping that was missed.
    Unknown,
    /// Zero: the processor did not record this end of a branch.
    Unrecorded,
}

/// A part of a file that lies in memory.
#[derive(Debug, Clone, Copy)]
struct MappedFile {
    /// The first address after it.
    end: u64,
    /// The offset in the file of its first byte.
    offset: u64,
    /// `None`: what lies here is no file.
    binary: Option<BinaryNumber>,
}

/// By the first address. A forked process shares its parent's until one of them maps a file.
type Mappings = Rc<BTreeMap<u64, MappedFile>>;

/// Too many mappings to be true.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyMappings;

/// The address spaces of all processes of a recording, as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct AddressSpaces {
    paths: Vec<Box<str>>,
    numbers: HashMap<Box<str>, BinaryNumber>,
    processes: HashMap<i32, Mappings>,
    /// Their leaders have ended. Other threads of theirs may run on, so they go only for want of
    /// room, the first one first.
    exited: VecDeque<i32>,
    mappings: usize,
    /// How many mappings were copied, ever.
    copies: usize,
}

impl AddressSpaces {
    /// The binary with this path. It gets a number if it has none.
    pub(crate) fn binary(&mut self, path: &str) -> BinaryNumber {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = BinaryNumber(self.paths.len());
        self.paths.push(path.into());
        self.numbers.insert(path.into(), number);
        number
    }

    /// The paths of all binaries, in the order of their numbers.
    pub(crate) fn into_paths(self) -> Vec<Box<str>> {
        self.paths
    }

    /// Whether no mapping was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// A process maps a part of a file. What lay there before is gone.
    pub(crate) fn map(
        &mut self,
        process: i32,
        start: u64,
        length: u64,
        offset: u64,
        path: &str,
    ) -> Result<(), TooManyMappings> {
        let end = start.saturating_add(length);
        if start >= KERNEL_STARTS || start == end {
            return Ok(());
        }
        // [vdso], [heap], //anon and the like, and memory without a name.
        let is_file = path.starts_with('/') && !path.starts_with("//");
        let binary = is_file.then(|| self.binary(path));
        let shared = self.processes.entry(process).or_default();
        let added = if Rc::strong_count(shared) > 1 { shared.len() } else { 0 };
        self.copies += added;
        if self.copies > MOST_COPIES {
            return Err(TooManyMappings);
        }
        let mappings = Rc::make_mut(shared);
        let before = mappings.len();
        clear(mappings, start, end);
        mappings.insert(start, MappedFile { end, offset, binary });
        self.mappings = self.mappings + added + mappings.len() - before;
        while self.mappings > MOST_MAPPINGS {
            let gone = self.exited.pop_front().ok_or(TooManyMappings)?;
            self.forget(gone);
        }
        Ok(())
    }

    /// A process starts as a copy of another.
    pub(crate) fn fork(&mut self, parent: i32, child: i32) {
        if parent == child {
            return;
        }
        self.forget(child);
        if let Some(mappings) = self.processes.get(&parent).cloned() {
            self.processes.insert(child, mappings);
        }
    }

    /// A process runs another program: its mappings are gone.
    pub(crate) fn execute(&mut self, process: i32) {
        self.forget(process);
    }

    /// The leader of a process ended.
    pub(crate) fn exit(&mut self, process: i32) {
        if self.processes.contains_key(&process) {
            self.exited.push_back(process);
        }
    }

    fn forget(&mut self, process: i32) {
        if let Some(mappings) = self.processes.remove(&process)
            && let Ok(last) = Rc::try_unwrap(mappings)
        {
            self.mappings -= last.len();
        }
    }

    /// Where an address of a process lies.
    pub(crate) fn resolve(&self, process: i32, address: u64) -> Whereabouts {
        match address {
            0 => return Whereabouts::Unrecorded,
            KERNEL_STARTS.. => return Whereabouts::Kernel,
            _ => {}
        }
        let below = |mappings: &Mappings| {
            mappings.range(..=address).next_back().map(|(start, file)| (*start, *file))
        };
        match self.processes.get(&process).and_then(below) {
            Some((start, MappedFile { end, offset, binary: Some(binary) })) if address < end => {
                let offset = (address - start).checked_add(offset).filter(|at| *at != ELSEWHERE);
                offset.map_or(Whereabouts::Unknown, |at| Whereabouts::InBinary(binary, at))
            }
            _ => Whereabouts::Unknown,
        }
    }
}

/// Removes what lies in `start..end`. Parts outside of it stay.
fn clear(mappings: &mut BTreeMap<u64, MappedFile>, start: u64, end: u64) {
    let first = mappings.range(..start).next_back().filter(|(_, file)| file.end > start);
    let from = first.map_or(start, |(before, _)| *before);
    let overlapped: Vec<u64> = mappings.range(from..end).map(|(start, _)| *start).collect();
    for at in overlapped {
        let Some(file) = mappings.remove(&at) else { continue };
        if at < start {
            mappings.insert(at, MappedFile { end: start, ..file });
        }
        if file.end > end {
            let offset = file.offset.saturating_add(end - at);
            mappings.insert(end, MappedFile { offset, ..file });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Whereabouts::{InBinary, Kernel, Unknown};

    fn spaces(mappings: &[(i32, u64, u64, u64, &str)]) -> AddressSpaces {
        let mut spaces = AddressSpaces::default();
        for (process, start, length, offset, path) in mappings {
            spaces.map(*process, *start, *length, *offset, path).unwrap();
        }
        spaces
    }

    #[test]
    fn the_same_code_at_two_addresses_is_one_place() {
        let spaces = spaces(&[
            (1, 0x5555_0000_1000, 0x2000, 0x1000, "/bin/a"),
            (2, 0x5611_0000_1000, 0x2000, 0x1000, "/bin/a"),
        ]);
        let place = spaces.resolve(1, 0x5555_0000_1234);
        assert_eq!(place, InBinary(BinaryNumber(0), 0x1234));
        assert_eq!(spaces.resolve(2, 0x5611_0000_1234), place);
        assert_eq!(spaces.resolve(2, 0x5555_0000_1234), Unknown);
        assert_eq!(spaces.resolve(3, 0x5555_0000_1234), Unknown);
        assert_eq!(spaces.resolve(1, 0x5555_0000_3000), Unknown, "the first byte after it");
        assert_eq!(spaces.resolve(1, 0xffff_ffff_8000_0000), Kernel);
    }

    #[test]
    fn a_later_mapping_covers_an_earlier_one() {
        let spaces = spaces(&[
            (1, 0x1000, 0x4000, 0, "/bin/a"),
            (1, 0x2000, 0x1000, 0x7000, "/lib/b"),
            (1, 0x4800, 0x1000, 0, "//anon"),
        ]);
        assert_eq!(spaces.resolve(1, 0x1fff), InBinary(BinaryNumber(0), 0xfff));
        assert_eq!(spaces.resolve(1, 0x2010), InBinary(BinaryNumber(1), 0x7010));
        assert_eq!(spaces.resolve(1, 0x3010), InBinary(BinaryNumber(0), 0x2010));
        assert_eq!(spaces.resolve(1, 0x4810), Unknown);
    }

    #[test]
    fn a_fork_has_its_parents_mappings_and_then_its_own() {
        let mut spaces = spaces(&[(1, 0x1000, 0x1000, 0, "/bin/a")]);
        spaces.fork(1, 2);
        spaces.map(2, 0x9000, 0x1000, 0, "/lib/b").unwrap();
        assert_eq!(spaces.resolve(2, 0x1008), InBinary(BinaryNumber(0), 8));
        assert_eq!(spaces.resolve(1, 0x9008), Unknown);
        spaces.execute(2);
        assert_eq!(spaces.resolve(2, 0x1008), Unknown);
        assert_eq!(spaces.resolve(1, 0x1008), InBinary(BinaryNumber(0), 8));
        spaces.exit(1);
        assert_eq!(spaces.resolve(1, 0x1008), InBinary(BinaryNumber(0), 8), "threads run on");
        assert_eq!(spaces.mappings, 1);
    }

    #[test]
    fn forks_that_copy_mappings_and_drop_them_run_into_a_limit() {
        let mut spaces = AddressSpaces::default();
        for page in 0..1 << 16 {
            spaces.map(0, page << 12, 0x1000, 0, "/bin/a").unwrap();
        }
        let copies = (1..).take_while(|_| {
            spaces.fork(0, 1);
            spaces.map(1, 0, 0x1000, 0, "/bin/b").is_ok()
        });
        assert_eq!(copies.count(), 1 << 7);
    }

    #[test]
    fn forks_that_each_map_a_file_run_into_a_limit() {
        let mut spaces = AddressSpaces::default();
        for page in 0..4096 {
            spaces.map(0, page << 12, 0x1000, 0, "/bin/a").unwrap();
        }
        let fork_and_map = |spaces: &mut AddressSpaces, child| {
            spaces.fork(0, child);
            spaces.map(child, 0, 0x1000, 0, "/bin/b")
        };
        let refused = (1..).find(|child| fork_and_map(&mut spaces, *child).is_err()).unwrap();
        assert_eq!(refused, 256);
        // Exited processes make room.
        spaces.exit(7);
        spaces.exit(8);
        assert_eq!(fork_and_map(&mut spaces, 1000), Ok(()));
        assert_eq!(spaces.resolve(7, 8), Unknown);
        assert_eq!(spaces.resolve(9, 8), InBinary(BinaryNumber(1), 8));
    }
}
