//! Where the bytes of a binary's file lie in memory, as the file states it.
//!
//! A recording resolves to file offsets. Symbols, disassembly and BOLT speak of virtual addresses.
//! The loadable segments (`PT_LOAD`) relate the two. Linkers often shift segments, so an offset is
//! no address, even if the program is not position-independent.

use object::{Object, ObjectSegment};

/// Loadable bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

/// The loadable segments of a binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

/// The file is no ELF file that can be read.
#[derive(Debug, thiserror::Error)]
#[error("no ELF file: {0}")]
pub struct NotElf(#[from] object::Error);

impl Segments {
    /// The segments of an ELF file.
    ///
    /// # Errors
    /// If it is none, or its headers are damaged.
    pub fn of_elf(file: &[u8]) -> Result<Self, NotElf> {
        let file = object::File::parse(file)?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            Segment { offset, address: segment.address(), size }
        });
        Ok(Self(segments.collect()))
    }

    /// The virtual address of a byte of the file. `None`, if it is not loaded.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let distance = offset.checked_sub(segment.offset).filter(|n| *n < segment.size)?;
            segment.address.checked_add(distance)
        })
    }

    /// The offset in the file of a virtual address. `None`, if the file has no byte for it.
    #[must_use]
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let distance = address.checked_sub(segment.address).filter(|n| *n < segment.size)?;
            segment.offset.checked_add(distance)
        })
    }
}

#[cfg(test)]
impl Segments {
    /// With the offset, address and size of each.
    pub(crate) fn of(segments: impl IntoIterator<Item = (u64, u64, u64)>) -> Self {
        let segment = |(offset, address, size)| Segment { offset, address, size };
        Self(segments.into_iter().map(segment).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_addresses_of_shifted_segments() {
        // As LLD links: the text segment lies a page further than its offset says.
        let segments = Segments::of([(0, 0x20_0000, 0x600), (0x600, 0x20_1600, 0x400)]);
        assert_eq!(segments.address_of(0x5ff), Some(0x20_05ff));
        assert_eq!(segments.address_of(0x600), Some(0x20_1600));
        assert_eq!(segments.address_of(0xa00), None);
        assert_eq!(segments.offset_of(0x20_1601), Some(0x601));
        assert_eq!(segments.offset_of(0x20_0600), None);
    }

    #[test]
    fn this_test_has_segments_in_which_its_code_lies() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let segments = Segments::of_elf(&file).unwrap();
        let entry = object::File::parse(&*file).unwrap().entry();
        let offset = segments.offset_of(entry).unwrap();
        assert_eq!(segments.address_of(offset), Some(entry));
        assert!(Segments::of_elf(b"no ELF").is_err());
    }
}
