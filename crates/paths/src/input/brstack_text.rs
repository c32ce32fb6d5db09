//! Reads what `perf script -F ip,brstack` prints.
//!
//! An entry is `0xFROM/0xTO/P/X/A/CYCLES/KIND/SPECULATION`: predicted (`P`) or not (`M`), in a
//! transaction (`X`), aborted (`A`). `-` stands for what is not known. perf 3 ends after `A`, perf
//! 4 and 5 after the cycles, 6.1 has the kind and leaves it empty, 6.8 has all. `N` after the
//! prediction is a branch that was not taken. With `-F +dso` the name follows each address in
//! parentheses.
//!
//! The text has the addresses of the running process. Print the mappings with it, and it does for
//! position-independent programs, too:
//!
//! ```sh
//! perf script -F pid,ip,brstack --show-mmap-events --show-task-events
//! ```
//!
//! Without mappings the addresses are taken as those of one binary. Whatever else perf prints is
//! skipped: a command, a time, a call chain, symbols.

use super::lines::{Lines, hexadecimal};
use super::{BranchInputError, finished};
use crate::samples::{BranchRecording, Dropped, SampleSums, StackEntry};
use std::io::BufRead;

/// perf right-aligns the address of a sample in so many columns.
const ADDRESS_COLUMNS: usize = 16;

/// Reads the text. Memory grows with distinct fragments, not with lines.
///
/// # Errors
/// If there is no branch stack in it, or one cannot be read.
pub fn read_brstack_text(input: impl BufRead) -> Result<BranchRecording, BranchInputError> {
    let mut lines = Lines::new(input);
    let mut sums = SampleSums::default();
    // A call chain stands between the process of a sample and its branch stack.
    let mut process = 0;
    let mut has_begun = false;
    let mut stack = Vec::new();
    while let Some(line) = lines.next()? {
        if let Some((_, event)) = line.split_once("PERF_RECORD_") {
            take_event(&mut sums, event)?;
            continue;
        }
        stack.clear();
        let start = if line.starts_with("0x") { Some(0) } else { line.find(" 0x") };
        let (before, entries) = line.split_at(start.unwrap_or(line.len()));
        for word in words(entries) {
            match entry(word) {
                Some(entry) => stack.push(entry),
                None if word.starts_with("0x") && word.contains('/') => return Err(lines.bad()),
                // What follows the stack.
                None => break,
            }
        }
        let start = SampleStart::parse(before);
        process = start.process.unwrap_or(process);
        if stack.is_empty() {
            continue;
        }
        if !has_begun && sums.spaces.is_empty() {
            sums.take_addresses_as_they_are();
        }
        has_begun = true;
        sums.add(process, start.address, &stack);
    }
    finished(sums)
}

/// What stands before a branch stack.
struct SampleStart {
    process: Option<i32>,
    address: Option<u64>,
}

impl SampleStart {
    fn parse(text: &str) -> Self {
        // A line of a call chain.
        if text.starts_with('\t') {
            return Self { process: None, address: None };
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let has_address = text.trim_end().len() >= ADDRESS_COLUMNS;
        let (address, before) = match words.split_last() {
            Some((last, before)) if has_address && hexadecimal(last).is_some() => {
                (hexadecimal(last), before)
            }
            _ => (None, &words[..]),
        };
        // 17, or 17/18 with the thread.
        let process = |word: &&str| word.split('/').next()?.parse().ok();
        Self { process: before.iter().find_map(process), address }
    }
}

/// The words of a line. Spaces in parentheses, the names of files, do not part them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ' ' && depth == 0
    })
    .filter(|word| !word.is_empty())
}

/// An entry of a branch stack.
fn entry(word: &str) -> Option<StackEntry> {
    let (from, rest) = address(word)?;
    let (to, rest) = address(rest.strip_prefix('/')?)?;
    let mut flags = rest.strip_prefix('/')?.split('/');
    let prediction = flags.next()?;
    let (_transaction, abort) = (flags.next()?, flags.next()?);
    let (_cycles, _kind, speculation) = (flags.next(), flags.next(), flags.next());
    let is_known = |flag: &str, letter| flag == "-" || flag == letter;
    let is_prediction = matches!(prediction, "P" | "M" | "-" | "PN" | "MN" | "N" | "-N");
    if !is_prediction || !is_known(abort, "A") {
        return None;
    }
    let flaw = match () {
        () if abort == "A" => Some(Dropped::Aborted),
        () if speculation == Some("SPEC_WRONG_PATH") => Some(Dropped::WrongPath),
        () if prediction.ends_with('N') => Some(Dropped::NotTaken),
        () => None,
    };
    Some(StackEntry { from, to, is_mispredicted: prediction.starts_with('M'), flaw })
}

/// An address, and what follows it and the name in parentheses.
fn address(text: &str) -> Option<(u64, &str)> {
    let digits = text.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let rest = match rest.strip_prefix('(') {
        Some(name) => &name[name.find(")/")? + 1..],
        None => rest,
    };
    Some((hexadecimal(digits)?, rest))
}

/// A record of a mapping or a process. The text follows `PERF_RECORD_`.
fn take_event(sums: &mut SampleSums, event: &str) -> Result<(), BranchInputError> {
    let pair = |text: &str| {
        let (first, rest) = text.split_once(['/', ':'])?;
        let second = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((first.parse::<i32>().ok()?, second.parse::<i32>().ok()?))
    };
    if let Some(mapping) = TextMapping::parse(event) {
        let TextMapping { process, start, length, offset, path } = mapping;
        sums.spaces.map(process, start, length, offset, path)?;
    } else if let Some(command) = event.strip_prefix("COMM exec: ") {
        // Its name may have colons.
        if let Some((process, _)) = command.rsplit_once(':').and_then(|(_, ids)| pair(ids)) {
            sums.spaces.execute(process);
        }
    } else if let Some((child, parent)) = event
        .strip_prefix("FORK(")
        .and_then(|tasks| tasks.split_once("):("))
        .and_then(|(child, parent)| Some((pair(child)?, pair(parent)?)))
    {
        sums.spaces.fork(parent.0, child.0);
    } else if let Some((process, thread)) = event.strip_prefix("EXIT(").and_then(pair)
        && process == thread
    {
        sums.spaces.exit(process);
    }
    Ok(())
}

/// `MMAP2 7/7: [0x400000(0x1000) @ 0 fe:01 1234 5]: r-xp /bin/program`. For `MMAP` the device and
/// what follows it are missing, and `x` stands for the protection.
struct TextMapping<'a> {
    process: i32,
    start: u64,
    length: u64,
    offset: u64,
    path: &'a str,
}

impl<'a> TextMapping<'a> {
    /// `None`, if it is of data, of the kernel, or none at all.
    fn parse(event: &'a str) -> Option<Self> {
        let of = event.strip_prefix("MMAP2 ").or_else(|| event.strip_prefix("MMAP "))?;
        let (ids, rest) = of.split_once(": [")?;
        let (place, rest) = rest.split_once("]: ")?;
        let (protection, path) = rest.split_once(' ')?;
        let process = ids.split('/').next()?.parse().ok().filter(|process| *process >= 0)?;
        let (start, place) = place.split_once('(')?;
        let (length, place) = place.split_once(')')?;
        let offset = place.trim_start_matches([' ', '@']).split(' ').next()?;
        protection.contains('x').then_some(())?;
        Some(Self {
            process,
            start: hexadecimal(start)?,
            length: hexadecimal(length)?,
            offset: hexadecimal(offset)?,
            path,
        })
    }
}
