//! The source line of an address, from the line tables of DWARF (DWARF 5, section 6.2).
//!
//! A line table is a program. Run, it gives rows: from this address on, the code is of that line.
//! A row that ends a sequence says that no code follows. Rows of other functions than the wanted
//! ones are not kept. So memory is bounded by these functions' code and by the file. A hostile file
//! has tables that overlap, or names without end. It is read until it exceeds a limit.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use gimli::{
    Dwarf, DwarfSections, EndianSlice, LineProgramHeader, LittleEndian, Section as _, SectionId,
    Unit,
};
use object::Object;
use object::read::elf::ElfFile64;

use crate::binary::Function;
use crate::compressed_section::{most_uncompressed, uncompressed};

type Bytes<'data> = EndianSlice<'data, LittleEndian>;

/// More rows than wanted functions have, unless a file is hostile.
const MOST_ROWS: usize = 1 << 22;
/// The names of all source files have fewer bytes, unless the binary is hostile.
const MOST_TEXT: usize = 1 << 26;
/// Linux refuses a longer path.
const LONGEST_NAME: usize = 4096;

/// Lines of one source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSpan<'lines> {
    /// The path of the file, as the compiler saw it.
    pub file: &'lines str,
    /// The first line, from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

impl SourceSpan<'_> {
    /// `12` or `12-14`
    pub fn lines(&self) -> String {
        match self.first == self.last {
            true => self.first.to_string(),
            false => format!("{}-{}", self.first, self.last),
        }
    }
}

/// From an address on, code is of this line. Line 0: of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineRow {
    address: u64,
    line: u32,
    file: u32,
}

/// The source lines of some functions. There are none if the binary was built without `-g`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLines {
    files: Vec<String>,
    rows: Vec<LineRow>,
}

impl SourceLines {
    /// Reads those of `functions` from an ELF file: the binary, or its separate file of debugging
    /// information. `functions` are in the order of their addresses. Damaged parts are left out.
    pub fn new(elf: &[u8], functions: &[Function]) -> Self {
        let mut reader = LinesReader { left: usize::MAX, ..LinesReader::default() };
        let _ = reader.read(elf, functions);
        let mut lines = reader.lines;
        // Of rows of one address the last one counts. A sequence may begin where another ends.
        lines.rows.sort_by_key(|row| (row.address, row.line != 0));
        lines.rows.dedup_by(|later, kept| {
            let is_same = later.address == kept.address;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        lines
    }

    /// Whether no line of any function is known.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines of code from `start` up to `end`: those of the file of its first instruction.
    pub fn of(&self, start: u64, end: u64) -> Option<SourceSpan<'_>> {
        let first = self.rows.partition_point(|row| row.address <= start).checked_sub(1)?;
        let rows = self.rows[first..].iter().take_while(|row| row.address < end.max(start + 1));
        let mut rows = rows.filter(|row| row.line > 0);
        let LineRow { file, line, .. } = *rows.next()?;
        let (first, last) = rows
            .filter(|row| row.file == file)
            .fold((line, line), |(low, high), row| (low.min(row.line), high.max(row.line)));
        Some(SourceSpan { file: &self.files[file as usize], first, last })
    }
}

/// The lines as far as they were read.
#[derive(Default)]
struct LinesReader {
    lines: SourceLines,
    numbers: HashMap<String, u32>,
    /// Of the names of all files.
    text: usize,
    /// Where the programs begin that ran. Several units may share one.
    run: HashSet<usize>,
    /// Rows that may still be run. Each takes a byte of the line tables.
    left: usize,
}

impl LinesReader {
    fn read(&mut self, elf: &[u8], functions: &[Function]) -> gimli::Result<()> {
        let Ok(file) = ElfFile64::<object::Endianness>::parse(elf) else { return Ok(()) };
        let mut left = most_uncompressed(elf);
        let sections = DwarfSections::load(|id| -> gimli::Result<Cow<'_, [u8]>> {
            use SectionId as Id;
            // Others are large, and have no lines.
            let has_lines = matches!(
                id,
                Id::DebugAbbrev
                    | Id::DebugAddr
                    | Id::DebugInfo
                    | Id::DebugLine
                    | Id::DebugLineStr
                    | Id::DebugStr
                    | Id::DebugStrOffsets
            );
            let section = file.section_by_name(id.name()).filter(|_| has_lines);
            Ok(section.and_then(|it| uncompressed(&it, &mut left)).unwrap_or_default())
        })?;
        let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        self.left = self.left.min(dwarf.debug_line.reader().len());
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let Ok(unit) = dwarf.unit(header) else { continue };
            // The rows of a damaged program up to the damage are good.
            let _ = self.read_unit(&dwarf, &unit, functions);
        }
        Ok(())
    }

    fn read_unit(
        &mut self,
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
        functions: &[Function],
    ) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        if !self.run.insert(program.header().offset().0) {
            return Ok(());
        }
        let mut known: HashMap<u64, u32> = HashMap::new();
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row()? {
            let Some(left) = self.left.checked_sub(1) else { break };
            self.left = left;
            let address = row.address();
            let after = functions.partition_point(|function| function.start <= address);
            let is_wanted = after.checked_sub(1).is_some_and(|it| address <= functions[it].end);
            if !is_wanted {
                continue;
            }
            let line = row.line().filter(|_| !row.end_sequence());
            let line = line.map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            let file = match known.get(&row.file_index()) {
                Some(file) => *file,
                None => {
                    let path = path_of(dwarf, unit, header, row.file_index()).unwrap_or_default();
                    let file = self.number_of(path);
                    known.insert(row.file_index(), file);
                    file
                }
            };
            if self.lines.rows.len() == MOST_ROWS || self.text > MOST_TEXT {
                self.left = 0;
                break;
            }
            self.lines.rows.push(LineRow { address, line, file });
        }
        Ok(())
    }

    fn number_of(&mut self, path: String) -> u32 {
        let next = self.lines.files.len() as u32;
        *self.numbers.entry(path).or_insert_with_key(|path| {
            self.text += path.len();
            self.lines.files.push(path.clone());
            next
        })
    }
}

/// The path of a file of a line table.
fn path_of(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    header: &LineProgramHeader<Bytes>,
    index: u64,
) -> Option<String> {
    let file = header.file(index)?;
    let name = |bytes: Bytes| {
        (bytes.len() <= LONGEST_NAME).then(|| String::from_utf8_lossy(bytes.slice()).into_owned())
    };
    let text = |value| name(dwarf.attr_string(unit, value).ok()?);
    let compiled_in = unit.comp_dir.and_then(name);
    let folder = file.directory(header).and_then(text).unwrap_or_default();
    let path =
        Path::new(&compiled_in.unwrap_or_default()).join(folder).join(text(file.path_name())?);
    Some(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::Binary;

    /// Each line of a function as a compiler and an assembler wrote them.
    #[test]
    fn lines_of_dwarf_4_and_5_are_those_of_the_source() {
        let dwarf_4 = include_bytes!("../../../fuzz/seeds/source_lines/dwarf_4");
        let dwarf_5 = include_bytes!("../../../fuzz/seeds/source_lines/assembly");
        let aarch64 = include_bytes!("../../../fuzz/seeds/path_graph/aarch64");
        for (bytes, file, from, to, begin) in [
            (&dwarf_4[..], "/src/pc_small.c", 1, 5, 2),
            (&dwarf_5[..], "/src/app.s", 17, 30, 17),
            (&aarch64[..], "/src/arm.s", 17, 29, 17),
        ] {
            let binary = Binary::parse(bytes).unwrap();
            let named = |&it: &usize| binary.name(it) == Some("work");
            let number = (0..binary.functions().len()).find(named).unwrap();
            let function = binary.functions()[number];
            let lines = SourceLines::new(bytes, &[function]);
            let span = SourceSpan { file, first: from, last: to };
            assert_eq!(lines.of(function.start, function.end), Some(span));
            let first = lines.of(function.start, function.start + 1).unwrap();
            assert_eq!((first.first, first.last), (begin, begin));
            assert_eq!(SourceLines::new(&bytes[..bytes.len() / 2], &[function]).rows, []);
        }
    }

    #[test]
    fn compressed_sections_have_the_lines_of_the_source() {
        for bytes in [
            &include_bytes!("../../../fuzz/seeds/source_lines/zlib")[..],
            include_bytes!("../../../fuzz/seeds/source_lines/zstandard"),
        ] {
            let binary = Binary::parse(bytes).unwrap();
            let named = |&it: &usize| binary.name(it) == Some("work");
            let number = (0..binary.functions().len()).find(named).unwrap();
            let function = binary.functions()[number];
            let lines = SourceLines::new(bytes, &[function]);
            let span = SourceSpan { file: "/src/pc_small.c", first: 4, last: 8 };
            assert_eq!(lines.of(function.start, function.end), Some(span));
            // A size that the section states and does not have: lines are left out.
            let file = ElfFile64::<object::Endianness>::parse(bytes).unwrap();
            let (offset, _) =
                object::ObjectSection::file_range(&file.section_by_name(".debug_line").unwrap())
                    .unwrap();
            for stated in [1_u64, 1 << 20, u64::MAX] {
                let mut hostile = bytes.to_vec();
                hostile[offset as usize + 8..][..8].copy_from_slice(&stated.to_le_bytes());
                assert!(SourceLines::new(&hostile, &[function]).is_empty(), "{stated}");
            }
        }
    }

    #[test]
    fn tables_that_units_share_are_read_once_and_none_beyond_the_file() {
        let bytes = include_bytes!("../../../fuzz/seeds/source_lines/dwarf_4");
        let binary = Binary::parse(bytes).unwrap();
        let rows = |left, times| {
            let mut reader = LinesReader { left, ..LinesReader::default() };
            (0..times).for_each(|_| reader.read(bytes, binary.functions()).unwrap());
            reader.lines.rows.len()
        };
        assert!(rows(bytes.len(), 1) > 2);
        assert_eq!(rows(bytes.len(), 2), rows(bytes.len(), 1));
        assert_eq!(rows(2, 1), 2);
    }

    #[test]
    fn rows_of_a_gap_have_no_line_and_the_first_file_counts() {
        let row = |address, line, file| LineRow { address, line, file };
        let lines = SourceLines {
            files: vec!["a.c".into(), "b.h".into()],
            rows: vec![row(16, 5, 0), row(20, 9, 1), row(24, 7, 0), row(32, 0, 0), row(48, 3, 0)],
        };
        let span = |first, last| Some(SourceSpan { file: "a.c", first, last });
        assert_eq!(lines.of(16, 32), span(5, 7));
        assert_eq!(lines.of(18, 19), span(5, 5));
        assert_eq!(lines.of(33, 40), None);
        assert_eq!(lines.of(0, 8), None);
        assert_eq!(lines.of(20, 22), Some(SourceSpan { file: "b.h", first: 9, last: 9 }));
    }
}
