//! The paths of a program in words: what holds most of the flow, and how far a recording tells.

use crate::figures::{count, counted, percent};
use crate::one_line;
use pinwise_paths::{
    Dropped, HOT, PathBlock, ProfiledBinary, ProfiledPath, RecordedProfile, RecordingTotals,
    UnreadReason,
};
use std::fmt::Write as _;

/// What a recorded binary is called: the last part of its path.
pub fn recorded_name(path: &str) -> &str {
    match path.rsplit('/').next() {
        Some("") | None => "the binary",
        Some(name) => name,
    }
}

/// The answer in three lines: the flow of the hot paths, the hottest of them, and the coverage. A
/// fourth one says if it is a guess.
/// Without an answer, one line gives the reason.
pub fn paths_verdict(profile: &RecordedProfile) -> Vec<String> {
    let hot = profile.hot();
    let names: Vec<&str> =
        profile.binaries.iter().map(|binary| recorded_name(&binary.file)).collect();
    let Some(first) = profile.paths.first() else {
        let reason = profile.unread.first().map_or_else(
            || match &names[..] {
                [] => "no sampled branch lies in a binary".to_owned(),
                [first, ..] => format!(
                    "no two branches of {first} follow each other: record several for each sample"
                ),
            },
            |unread| match unread.reason {
                UnreadReason::Unnamed => unread.reason.to_string(),
                _ => format!("{}: {}", recorded_name(&unread.name), unread.reason),
            },
        );
        return vec![format!("no paths are known: {reason}")];
    };
    let flow: f64 = hot.iter().map(|path| path.share).sum();
    let of = match &names[..] {
        [one] => (*one).to_owned(),
        [one, others @ ..] => {
            let binaries = if others.len() == 1 { "binary" } else { "binaries" };
            format!("{one} and {} other {binaries}", others.len())
        }
        [] => String::new(),
    };
    let plural = if hot.len() == 1 { "path holds" } else { "paths hold" };
    let binary = &profile.binaries[first.binary];
    let blocks = binary.blocks_of(&first.path);
    let place = blocks.first().map_or_else(String::new, |block| match block.source {
        Some(_) => block_text(block, 0),
        None => format!("0x{:x}", block.start),
    });
    let apart = if first.group.is_some() { ", not told apart from others" } else { "" };
    let mut lines = vec![
        format!(
            "{} hot {plural} {} of the flow of {of}",
            count(hot.len() as u64),
            percent(flow.min(1.0))
        ),
        format!(
            "hottest: {} at {place}, {} of the flow{}{apart}",
            binary.function_name(&first.path),
            percent(first.share),
            share_interval(first)
                .map_or_else(String::new, |interval| format!(" (90 % interval {interval})")),
        ),
        format!(
            "coverage: paths explain {} of what was seen of {}",
            percent(profile.coverage),
            match names.len() {
                1 => "it".to_owned(),
                _ => "these binaries".to_owned(),
            }
        ),
    ];
    if !profile.totals.has_sequences() {
        lines.push(
            "the recording has single branches: how they follow each other is a guess; for \
             intervals, give perf.data with several for each sample"
                .to_owned(),
        );
    }
    lines
}

/// `33.0 to 36.1 %`
pub fn share_interval(path: &ProfiledPath) -> Option<String> {
    let (low, high) = path.interval?;
    Some(format!("{} to {}", percent(low).trim_end_matches(" %"), percent(high)))
}

/// `sort.c:12-14`. Without source lines, the offset in the block's function, which starts there.
pub fn block_text(block: &PathBlock<'_>, function_start: u64) -> String {
    match block.source {
        Some(source) => format!("{}:{}", recorded_name(source.file), source.lines()),
        None => format!("+0x{:x}", block.start.wrapping_sub(function_start)),
    }
}

/// The blocks of a path, at most `most` of them: `sort.c:12 14-15 20, back to 12`. A file is named
/// once; blocks without lines have their offset in the function.
pub fn path_text<'p>(binary: &'p ProfiledBinary, path: &ProfiledPath, most: usize) -> String {
    let blocks = binary.blocks_of(&path.path);
    let start = binary.function_start(path.path.function);
    let mut file = None;
    let mut shown = |block: &PathBlock<'p>| match block.source {
        Some(source) if file == Some(source.file) => source.lines(),
        source => {
            file = source.map(|source| source.file);
            block_text(block, start)
        }
    };
    let mut words: Vec<String> = Vec::new();
    // Of a long path, the beginning and the end.
    let (head, tail) = match blocks.len() > most.max(2) {
        true => (most.max(2) / 2, blocks.len() - (most.max(2) - most.max(2) / 2)),
        false => (blocks.len(), blocks.len()),
    };
    words.extend(blocks[..head].iter().map(&mut shown));
    if tail > head {
        words.push(format!("… {} more …", tail - head));
    }
    words.extend(blocks[tail..].iter().map(&mut shown));
    // Neighbouring blocks often share a line.
    words.dedup();
    let back = binary.back_to(&path.path).map(|head| format!(", back to {}", shown(&head)));
    words.join(" ") + &back.unwrap_or_default()
}

/// The columns of [`hot_path_rows`].
pub const HOT_PATH_COLUMNS: [&str; 5] = ["flow", "90 % interval", "count", "function", "blocks"];

/// A table of paths, `blocks` of each. In front of the paths of a group stands what is known of all
/// of them.
pub fn hot_path_rows(
    profile: &RecordedProfile,
    paths: &[&ProfiledPath],
    blocks: usize,
) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    let mut before = None;
    for path in paths {
        let binary = &profile.binaries[path.binary];
        let function = binary.function_name(&path.path);
        if path.group.is_some() && path.group != before {
            let members = profile.paths.iter().filter(|other| other.group == path.group);
            let (share, times) =
                members.fold((0.0, 0.0), |sum, it| (sum.0 + it.share, sum.1 + it.count));
            let known = "a group, known together:";
            let times = count(times.round() as u64);
            rows.push([percent(share), String::new(), times, function.into(), known.into()]);
        }
        before = path.group;
        let indent = if path.group.is_some() { "- " } else { "" };
        rows.push([
            percent(path.share),
            share_interval(path).unwrap_or_default(),
            count(path.count.round() as u64),
            format!("{indent}{function}"),
            format!("{indent}{}", path_text(binary, path, blocks)),
        ]);
    }
    rows
}

/// How many hot paths a list of the first `top` leaves out, and how to see them.
pub fn more_hot_paths(hot: usize, top: usize) -> Option<String> {
    let more = hot.checked_sub(top).filter(|more| *more > 0)?;
    let them = if more == 1 { "it" } else { "them" };
    Some(format!("{}: see {them} with --top or --json", counted(more as u64, "more hot path")))
}

/// The paths that are marked in the code of a function.
const MARKED: usize = 5;

/// The code of a function. Letters mark its hottest paths, A first, `blocks` of each named.
pub fn annotated_code(
    profile: &RecordedProfile,
    binary: usize,
    function: u32,
    blocks: usize,
) -> String {
    let of = &profile.binaries[binary];
    let paths = profile.paths.iter();
    let marked: Vec<&ProfiledPath> = paths
        .filter(|path| path.binary == binary && path.path.function == function)
        .take(MARKED)
        .collect();
    let mut text = String::new();
    let letters = || ('A'..='Z').zip(&marked);
    for (letter, path) in letters() {
        let blocks = path_text(of, path, blocks);
        let _ = writeln!(text, "  {letter} {:>8}  {}", percent(path.share), one_line(&blocks));
    }
    let (blocks, start) = (of.blocks(function), of.function_start(function));
    let mut before = None;
    for line in profile.annotated(binary, function) {
        if before != Some(line.block) {
            before = Some(line.block);
            let block = &blocks[line.block as usize];
            let through: String = letters()
                .map(|(letter, path)| match path.path.blocks().contains(&line.block) {
                    true => letter,
                    false => '.',
                })
                .collect();
            let share = percent(line.share);
            let block = block_text(block, start);
            let _ = writeln!(text, "{share:>9}  {through:MARKED$}  {}", one_line(&block));
        }
        let _ = writeln!(text, "{:>30x}  {}", line.address, line.text);
    }
    text
}

/// Why entries of branch records were dropped.
fn dropped_reason(reason: Dropped) -> &'static str {
    match reason {
        Dropped::RepeatedTop => "repeated newest entry",
        Dropped::Aborted => "aborted transaction",
        Dropped::WrongPath => "wrong speculation",
        Dropped::NotTaken => "branch not taken",
        Dropped::ImplausibleRun => "impossible run between branches",
    }
}

/// Where branches lead to, the most frequent binaries first. `into`: those into each binary.
fn destinations(totals: &RecordingTotals, mut into: Vec<(String, u64)>) -> String {
    const MOST: usize = 5;
    into.retain(|(_, branches)| *branches > 0);
    into.sort_by_key(|(_, branches)| std::cmp::Reverse(*branches));
    let known = into.iter().map(|(_, branches)| *branches);
    let known = known.chain([totals.into_kernel, totals.into_unknown]).sum::<u64>();
    // Of BOLT's text, ranges count among the branches of a binary.
    let all = totals.branches.max(known);
    if into.len() > MOST {
        let rest = into.split_off(MOST);
        let branches = rest.iter().map(|(_, branches)| *branches).sum();
        into.push((counted(rest.len() as u64, "other binary"), branches));
    }
    into.push(("kernel".to_owned(), totals.into_kernel));
    into.push(("unresolved".to_owned(), totals.into_unknown));
    // Text without mappings has libraries at addresses of the process. Dropped entries are few.
    let others = all - known;
    if others * 100 > all {
        into.push(("other code".to_owned(), others));
    }
    let share = |branches: u64| percent(branches as f64 / (all as f64).max(1.0));
    let words = into.iter().map(|(name, branches)| format!("{name} {}", share(*branches)));
    words.collect::<Vec<_>>().join(", ")
}

/// The totals of a recording, each with its label.
pub fn paths_totals(profile: &RecordedProfile) -> Vec<(&'static str, String)> {
    let totals = &profile.totals;
    let mut samples = count(totals.samples);
    let others = [
        (totals.empty_samples, "without branches"),
        (totals.filtered_samples, "of call stacks or one kind of branch"),
        (totals.unreadable_samples, "unreadable"),
        (totals.lost_samples, "lost"),
    ];
    for (number, what) in others.into_iter().filter(|(number, _)| *number > 0) {
        samples += &format!("; {} {what}", count(number));
    }
    let deepest = totals.depths.last_key_value().map_or(0, |(depth, _)| *depth);
    let share = |part: u64, of: u64| percent(part as f64 / (of as f64).max(1.0));
    let truncated = totals.truncated_samples();
    let mut lines = vec![("samples", samples), ("branches", count(totals.branches))];
    // BOLT's text has no samples.
    match totals.samples {
        0 => drop(lines.remove(0)),
        of => lines.push((
            "truncated",
            format!(
                "{} of samples fill the record of {}: their paths go on before it",
                share(truncated, of),
                counted(deepest as u64, "branch"),
            ),
        )),
    }
    let dropped: Vec<String> = totals
        .dropped
        .iter()
        .map(|(reason, times)| format!("{} {}", count(*times), dropped_reason(*reason)))
        .collect();
    lines.push(("dropped", if dropped.is_empty() { "none".into() } else { dropped.join(", ") }));
    let binaries = profile.binaries.iter().map(|it| (&it.file, it.branches));
    let into = binaries.chain(profile.unread.iter().map(|it| (&it.name, it.branches)));
    let into = into.map(|(name, branches)| (recorded_name(name).to_owned(), branches)).collect();
    lines.push(("lead to", destinations(totals, into)));
    let hot_groups: f64 =
        profile.paths.iter().filter(|path| path.group.is_some()).map(|path| path.share).sum();
    if hot_groups >= HOT {
        lines.push((
            "groups",
            format!(
                "{} of the flow is known by group only: no fragment tells its paths apart",
                percent(hot_groups)
            ),
        ));
    }
    if !profile.paths.is_empty() {
        lines.push(("hot", format!("a path with at least {} % of the flow", 100.0 * HOT)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_paths::{BinaryBranches, RecordingTotals, UnreadBinary};

    fn unread() -> RecordedProfile {
        let seen = BinaryBranches::default();
        let unread = UnreadBinary::new("/bin/app".into(), seen, UnreadReason::NotAskedFor);
        let totals = RecordingTotals {
            samples: 4,
            branches: 40,
            into_kernel: 10,
            dropped: [(Dropped::RepeatedTop, 3)].into(),
            depths: [(8, 1), (16, 3)].into(),
            lost_samples: 1000,
            ..RecordingTotals::default()
        };
        RecordedProfile::new(totals, Vec::new(), vec![unread])
    }

    #[test]
    fn a_recording_without_binaries_says_why_and_has_its_totals() {
        let profile = unread();
        assert_eq!(paths_verdict(&profile), ["no paths are known: app: not asked for"]);
        let totals: Vec<String> = paths_totals(&profile)
            .into_iter()
            .map(|(label, text)| format!("{label}: {text}"))
            .collect();
        assert_eq!(
            totals,
            [
                "samples: 4; 1,000 lost",
                "branches: 40",
                "truncated: 75 % of samples fill the record of 16 branches: their paths go on \
                 before it",
                "dropped: 3 repeated newest entry",
                "lead to: kernel 25 %, unresolved 0 %, other code 75 %",
            ]
        );
    }

    #[test]
    fn a_list_says_how_many_hot_paths_it_leaves_out() {
        let text = |hot, top| more_hot_paths(hot, top).unwrap_or_default();
        assert_eq!([text(0, 10), text(10, 10)], ["", ""]);
        assert_eq!(text(11, 10), "1 more hot path: see it with --top or --json");
        assert_eq!(text(1243, 9), "1,234 more hot paths: see them with --top or --json");
    }

    #[test]
    fn branches_lead_to_five_binaries_and_the_rest() {
        let totals = RecordingTotals { branches: 40, into_kernel: 29, ..Default::default() };
        let into = (0..7).map(|number| (format!("lib{number}"), number)).collect();
        // Together more than the 40 that were sampled, as with the ranges of BOLT's text.
        assert_eq!(
            destinations(&totals, into),
            "lib6 12 %, lib5 10 %, lib4 8.0 %, lib3 6.0 %, lib2 4.0 %, 1 other binary 2.0 %, \
             kernel 58 %, unresolved 0 %"
        );
    }
}
