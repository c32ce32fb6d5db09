//! Reads what `perf script -F ip,brstack` prints.
//!
//! An entry is `0xFROM/0xTO/P/X/A/CYCLES/KIND/SPECULATION`: predicted (`P`) or not (`M`), in a
//! transaction (`X`), aborted (`A`). `-` means unknown. Entries of perf 3 end after `A`, those of
//! perf 4 and 5 after the cycles. Those of perf 6.1 have an empty kind, those of perf 6.8 all
//! fields. `N` after the prediction is a branch that was not taken. With the field `dso` a name in
//! parentheses follows each address.
//!
//! The text has the addresses of the running process. Print the mappings with it, and it does for
//! position-independent programs, too:
//!
//! ```sh
//! perf script -F pid,ip,brstack --show-mmap-events --show-task-events
//! ```
//!
//! Without mappings or processes the addresses are taken as those of one binary. Whatever else perf
//! prints is skipped: a command, a time, a call chain, symbols.

use super::lines::{NumberedLines, hexadecimal};
use super::{BranchInputError, finished};
use crate::samples::{BranchRecording, Dropped, SampleSums, StackEntry};
use std::io::BufRead;

/// perf right-aligns the address of a sample in this many columns.
const ADDRESS_COLUMNS: usize = 16;

/// Reads the text. Memory grows with distinct fragments, not with lines.
///
/// # Errors
/// If there is no branch stack in it, or one cannot be read.
pub fn read_brstack_text(input: impl BufRead) -> Result<BranchRecording, BranchInputError> {
    let mut lines = NumberedLines::new(input);
    let mut sums = SampleSums::default();
    // A call chain stands between the process of a sample and its branch stack.
    let mut process = None;
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
        process = start.process.or(process);
        if stack.is_empty() {
            continue;
        }
        if !has_begun && (sums.spaces.is_empty() || process.is_none()) {
            sums.take_addresses_as_they_are();
        }
        has_begun = true;
        sums.add(process.unwrap_or_default(), start.address, &stack);
    }
    match finished(sums) {
        Err(BranchInputError::NoBranchRecords) => Err(BranchInputError::NoBranchesInText),
        result => result,
    }
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

/// The words of a line. Spaces before and in parentheses, with the name of a file, part none.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let mut following = text.chars().skip(1);
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let next = following.next();
        c == ' ' && depth == 0 && next != Some('(')
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
    let rest = match rest.trim_start_matches(' ').strip_prefix('(') {
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
        let TextMapping { process, start, length, offset, build_id, path } = mapping;
        sums.spaces.map(process, start, length, offset, path)?;
        if path.starts_with('/') {
            build_id.iter().for_each(|id| sums.note_build_id(path, id));
        }
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
/// what follows it are missing, and `x` stands for the protection. perf 5.12 and later may have
/// `<BUILD ID>` in the place of the device.
struct TextMapping<'a> {
    process: i32,
    start: u64,
    length: u64,
    offset: u64,
    build_id: Option<Vec<u8>>,
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
        let mut words = place.trim_start_matches([' ', '@']).split(' ');
        let offset = words.next()?;
        let id = words.next().and_then(|word| word.strip_prefix('<')?.strip_suffix('>'));
        protection.contains('x').then_some(())?;
        Some(Self {
            process,
            start: hexadecimal(start)?,
            length: hexadecimal(length)?,
            offset: hexadecimal(offset)?,
            build_id: id.and_then(bytes),
            path,
        })
    }
}

/// Bytes of two digits each, at most as many as a build id has.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    const LONGEST_BUILD_ID: usize = 20;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let fits = rest.is_empty() && (1..=LONGEST_BUILD_ID).contains(&pairs.len());
    // A number may have a sign.
    if fits && digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        pairs.iter().map(byte).collect()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragments::{Branch, Fragments};

    fn fragments(text: &str, binary: &str) -> Fragments {
        let recording = read_brstack_text(text.as_bytes()).unwrap();
        recording.binaries[binary].fragments.clone()
    }

    fn of(expected: &[(u64, u64)], times: u64) -> Fragments {
        let branch = |(from, to): &(u64, u64)| Branch { from: *from, to: *to };
        let mut fragments = Fragments::default();
        fragments.add(&expected.iter().map(branch).collect::<Vec<_>>(), times);
        fragments
    }

    #[test]
    fn entries_of_perf_3_to_6() {
        for entries in [
            " 0x401040/0x401010/P/-/- 0x401020/0x401030/M/-/-",
            "  0x401040/0x401010/P/-/-/0  0x401020/0x401030/M/X/-/12 ",
            " 0x401040/0x401010/P/-/-/0/  0x401020/0x401030/M/-/-/65535/ ",
            " 0x401040/0x401010/-/-/-/0/COND/-  0x401020/0x401030/M/-/-/1/RET/SPEC_CORRECT_PATH",
            " 0x401040(/bin/a b)/0x401010(/bin/a b)/P/-/-/0/  0x401020(x)/0x401030(x)/M/-/-/0/",
            " 0x401040 (/a b+0x1040)/0x401010 (/a b+0x1010)/P/-/-/0/CALL/- \
             0x401020 (x)/0x401030 (x)/M/-/-/0/-/-",
        ] {
            for start in ["          401015", "prog 17/18 [001]  7.25:  12 cycles:u:  401015"] {
                let recording = read_brstack_text(format!("{start}{entries}\n").as_bytes());
                let seen = recording.unwrap().binaries.remove("").unwrap();
                let expected = of(&[(0x40_1020, 0x40_1030), (0x40_1040, 0x40_1010)], 1);
                assert_eq!(seen.fragments, expected, "{entries}");
                let mispredicted = Branch { from: 0x40_1020, to: 0x40_1030 };
                assert_eq!(seen.mispredicted, [(mispredicted, 1)].into(), "{entries}");
                assert_eq!(seen.sampled, [(0x40_1015, 1)].into(), "{start}{entries}");
            }
        }
    }

    #[test]
    fn aborted_wrong_and_not_taken_branches_are_told() {
        let text = "          401015  0x401040/0x401010/P/-/-/0/COND/SPEC_WRONG_PATH  \
                    0x401030/0x401011/PN/-/-/0/COND/-  0x401020/0x401012/-/-/A/0/-/-\n";
        let totals = read_brstack_text(text.as_bytes()).unwrap().totals;
        let all = [Dropped::Aborted, Dropped::WrongPath, Dropped::NotTaken];
        assert_eq!(totals.dropped, all.map(|why| (why, 1)).into());
    }

    #[test]
    fn mappings_and_processes_in_the_text_are_followed() {
        let text = "
7 PERF_RECORD_MMAP2 7/7: [0x555555555000(0x1000) @ 0x1000 fe:01 123 0]: r-xp /bin/a program
7 PERF_RECORD_MMAP2 7/7: [0x555555557000(0x1000) @ 0x3000 <8d2f>]: r--p /bin/data
7      555555555012  0x555555555020/0x555555555010/P/-/-/0/
7 PERF_RECORD_FORK(8:8):(7:7)
8      555555555012  0x555555555020/0x555555555010/P/-/-/0/
8 PERF_RECORD_COMM exec: an: odd name:8/8
8      555555555012  0x555555555020/0x555555555010/P/-/-/0/
8 PERF_RECORD_MMAP 8/8: [0x555555555000(0x1000) @ 0]: x /bin/other
7 PERF_RECORD_EXIT(7:7):(1:1)
8      555555555012  0x555555555020/0x555555555010/P/-/-/0/
";
        assert_eq!(fragments(text, "/bin/a program"), of(&[(0x1020, 0x1010)], 2));
        assert_eq!(fragments(text, "/bin/other"), of(&[(0x20, 0x10)], 1));
    }

    #[test]
    fn a_mapping_may_have_the_build_id_of_its_file() {
        let build_ids = |id: &str| {
            let text = format!(
                "app 7 PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0 <{id}>]: r-xp /bin/program\n\
                 7 400018 0x400010/0x400018/P/-/-/0\n"
            );
            let recording = read_brstack_text(text.as_bytes()).unwrap();
            recording.binaries["/bin/program"].build_ids.clone()
        };
        assert_eq!(build_ids("00ab12"), [[0, 0xab, 0x12].into()].into());
        for none in ["", "a", "0x", "+1", "é1", &"ab".repeat(21)] {
            assert_eq!(build_ids(none), [].into(), "{none}");
        }
    }

    #[test]
    fn the_process_is_known_behind_a_call_chain() {
        let text = "
    7 PERF_RECORD_MMAP 7/7: [0x400000(0x1000) @ 0]: x /bin/program
    7 \n\t          401136 main (/bin/program)\n\t    7f0000001234 __libc_start_main (/lib/libc.so)
 0x400020/0x400010/P/-/-/0/
";
        assert_eq!(fragments(text, "/bin/program"), of(&[(0x20, 0x10)], 1));
    }

    #[test]
    fn what_is_no_branch_stack_is_an_error() {
        let error = |text: &str| read_brstack_text(text.as_bytes()).unwrap_err();
        let none = "    401015\n    401016\n";
        assert!(matches!(error(none), BranchInputError::NoBranchesInText));
        // `-F brstacksym`.
        let symbols = "    401015  main+0x20/main+0x10/P/-/-/0\n";
        assert!(matches!(error(symbols), BranchInputError::NoBranchesInText));
        for cut in ["0x401020/", "0x401020/0x401010", "0x401020/0x401010/P/-", "0x1/0x2/?/-/-"] {
            let text = format!("\n          401015 0x401020/0x401010/P/-/-/0 {cut}\n");
            assert!(matches!(error(&text), BranchInputError::BadLine { line: 2 }), "{cut}");
        }
    }
}
