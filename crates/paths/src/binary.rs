//! An ELF file of x86-64 or AArch64: its code, and where functions begin and end.
//!
//! A *function* is a range of addresses. Symbols name it; where there are none, the unwind table
//! `.eh_frame` bounds it. Ranges never overlap: an alias joins the function that it repeats, and an
//! inner symbol ends the outer one. So the work for a whole file is bounded by its code, whatever
//! its symbols claim.

use crate::instruction_set::InstructionSet;
use object::elf::PF_X;
use object::read::elf::ElfFile64;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolIndex, SymbolKind,
};

/// An ELF file of x86-64 or AArch64, read but not copied.
#[derive(Debug)]
pub struct Binary<'data> {
    file: ElfFile64<'data>,
    /// The separate file with its symbols, if it has none itself.
    symbols: Option<ElfFile64<'data>>,
    set: InstructionSet,
    /// All segments, and those of code: their addresses and bytes.
    segments: Vec<(u64, &'data [u8])>,
    code: Vec<(u64, &'data [u8])>,
    functions: Vec<Function>,
}

/// A range of code that other code calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// The address of its first instruction.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    symbol: Option<SymbolIndex>,
}

/// Why a file is no binary that pinwise can read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryError {
    /// It is no ELF file of 64 bits, or a damaged one.
    #[error("not a readable 64-bit ELF file: {0}")]
    NotElf(String),
    /// It is code of another processor.
    #[error("not a program for x86-64 or AArch64, the processors whose code pinwise decodes")]
    OtherProcessor,
    /// It has neither symbols nor unwind tables.
    #[error(
        "no function is known: the file has neither symbols nor an unwind table; name an \
         unstripped build with --binary"
    )]
    NoFunctions,
}

impl<'data> Binary<'data> {
    /// Reads the file whose bytes these are.
    ///
    /// # Errors
    ///
    /// The file is no ELF file for x86-64 or AArch64, or names no function.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, BinaryError> {
        Self::with_debug_file(bytes, None)
    }

    /// The same, with symbols from its separate file ([`crate::DebugFile`]), if it has none.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`]. A damaged separate file is left out.
    pub fn with_debug_file(
        bytes: &'data [u8],
        debug: Option<&'data [u8]>,
    ) -> Result<Self, BinaryError> {
        let file: ElfFile64 =
            ElfFile64::parse(bytes).map_err(|error| BinaryError::NotElf(error.to_string()))?;
        let machine = file.elf_header().e_machine.get(file.endian());
        let set = InstructionSet::of_machine(machine).filter(|_| file.is_little_endian());
        let set = set.ok_or(BinaryError::OtherProcessor)?;
        let (mut segments, mut code) = (Vec::new(), Vec::new());
        for segment in file.segments() {
            let Some(bytes) = segment.data().ok().filter(|bytes| !bytes.is_empty()) else {
                continue;
            };
            segments.push((segment.address(), bytes));
            if matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0) {
                code.push((segment.address(), bytes));
            }
        }
        segments.sort_by_key(|(address, _)| *address);
        code.sort_by_key(|(address, _)| *address);
        let separate = match file.symbols().next() {
            Some(_) => None,
            None => debug.and_then(|bytes| ElfFile64::<'data>::parse(bytes).ok()),
        };
        let named = separate.as_ref().unwrap_or(&file);
        let is_stripped = named.symbols().next().is_none();
        let symbols = if is_stripped { file.dynamic_symbols() } else { named.symbols() };
        let mut ranges: Vec<Function> = symbols
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .map(|symbol| Function {
                start: symbol.address(),
                end: symbol.address().saturating_add(symbol.size()),
                // The dynamic symbols have indices of their own: their names are not kept.
                symbol: (!is_stripped).then_some(symbol.index()),
            })
            .collect();
        if is_stripped
            && let Some(section) = file.section_by_name(".eh_frame")
            && let Ok(table) = section.data()
        {
            ranges.extend(unwind_ranges(table, section.address()));
        }
        // A stub that jumps to another library is no function, though it has an unwind entry.
        let stubs: Vec<_> = file
            .sections()
            .filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")))
            .map(|section| section.address()..section.address().saturating_add(section.size()))
            .collect();
        ranges.retain(|range| !stubs.iter().any(|stubs| stubs.contains(&range.start)));
        let functions = disjoint(ranges, &code);
        if functions.is_empty() {
            return Err(BinaryError::NoFunctions);
        }
        Ok(Self { file, symbols: separate, set, segments, code, functions })
    }

    /// The lowest address of code. Its place in memory tells where the file was loaded.
    pub fn lowest(&self) -> u64 {
        self.code.first().map_or(0, |(address, _)| *address)
    }

    /// What its linker wrote to tell it from other builds, if it did.
    pub fn build_id(&self) -> Option<&'data [u8]> {
        self.file.build_id().ok().flatten()
    }

    /// What its code is made of.
    pub fn instruction_set(&self) -> InstructionSet {
        self.set
    }

    /// All functions, by address.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The number of the function that has this address.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.functions[index].end).then_some(index)
    }

    /// The symbol of a function, if the file has one and it is text.
    pub fn name(&self, function: usize) -> Option<&'data str> {
        let symbol = self.functions.get(function)?.symbol?;
        let file = self.symbols.as_ref().unwrap_or(&self.file);
        file.symbol_by_index(symbol).ok()?.name().ok().filter(|name| !name.is_empty())
    }

    /// The code of a range that lies in one segment.
    pub(crate) fn code(&self, start: u64, end: u64) -> Option<&'data [u8]> {
        code_of(&self.code, start, end)
    }

    /// The bytes of a range that lies in one segment, of code or data.
    pub(crate) fn bytes(&self, start: u64, end: u64) -> Option<&'data [u8]> {
        code_of(&self.segments, start, end)
    }
}

fn code_of<'data>(code: &[(u64, &'data [u8])], start: u64, end: u64) -> Option<&'data [u8]> {
    let (address, bytes) = code[..code.partition_point(|(address, _)| *address <= start)].last()?;
    let from = usize::try_from(start - address).ok()?;
    bytes.get(from..usize::try_from(end.checked_sub(*address)?).ok()?)
}

/// The functions of ranges that may overlap, repeat or lead out of the code.
fn disjoint(mut ranges: Vec<Function>, code: &[(u64, &[u8])]) -> Vec<Function> {
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    ranges.dedup_by_key(|range| range.start);
    let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    let mut functions = Vec::new();
    for (range, next) in ranges.iter().zip(ends) {
        let known = code[..code.partition_point(|(address, _)| *address <= range.start)].last();
        let Some((address, bytes)) = known else { continue };
        let segment_end = address.saturating_add(bytes.len() as u64);
        // A symbol of assembly code often has no size: it lasts until the next one.
        let claimed = if range.end == range.start { next } else { range.end };
        let end = claimed.min(next).min(segment_end);
        if range.start < end {
            functions.push(Function { end, ..*range });
        }
    }
    functions
}

/// The ranges of an `.eh_frame` section at an address (System V ABI for x86-64, section 4.2.4).
/// Pointers are as GNU tools and LLVM write them: 4 bytes, relative to their own place.
fn unwind_ranges(table: &[u8], address: u64) -> Vec<Function> {
    const RELATIVE_SIGNED_4: u8 = 0x1b;
    let word =
        |at: usize| Some(u32::from_le_bytes(table.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let mut ranges = Vec::new();
    let mut at = 0;
    while let (Some(length @ 1..0xffff_fff0), Some(id)) = (word(at), word(at + 4)) {
        let next = at + 4 + length as usize;
        if id != 0
            && let Some(parent) = (at + 4).checked_sub(id as usize)
            && pointer_encoding(table, parent) == Some(RELATIVE_SIGNED_4)
            && let (Some(begin), Some(size)) = (word(at + 8), word(at + 12))
        {
            let here = address.wrapping_add(at as u64 + 8);
            let start = here.wrapping_add(begin as i32 as u64);
            let end = start.saturating_add(u64::from(size));
            ranges.push(Function { start, end, symbol: None });
        }
        at = next;
    }
    ranges
}

/// How the common entry at `at` says that its ranges are written.
fn pointer_encoding(table: &[u8], at: usize) -> Option<u8> {
    let mut rest = table.get(at.checked_add(9)?..)?;
    // The longest augmentation in use is `zPLRSB`.
    let end = rest.iter().take(16).position(|&byte| byte == 0)?;
    let augmentation = &rest[..end];
    rest = rest.get(end + 1..)?;
    let mut skip_number = || {
        let end = rest.iter().take(10).position(|byte| byte & 0x80 == 0)?;
        rest = rest.get(end + 1..)?;
        Some(())
    };
    // Code alignment, data alignment, return register, and the length of what follows.
    (0..4).try_for_each(|_| skip_number())?;
    let mut letters = augmentation.strip_prefix(b"z")?.iter();
    loop {
        match letters.next()? {
            b'R' => return rest.first().copied(),
            b'L' => rest = rest.get(1..)?,
            // An encoding and a pointer of it: 4 bytes, or 8 for absolute ones.
            b'P' => rest = rest.get(if rest.first()? & 0xf == 0 { 9 } else { 5 }..)?,
            b'S' | b'B' => {}
            _ => return None,
        }
    }
}
