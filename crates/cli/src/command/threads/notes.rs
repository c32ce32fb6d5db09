//! What to know about the answer of a search.

use super::Answer;
use super::arguments::Method;
use super::observed::Conditions;
use pinwise_present::figures;
use pinwise_threads::{PhaseChange, Sign, ThreadCeiling, standing};

/// What to know about an answer that is the largest n of several, `most`, and might be larger.
pub(super) fn cut_off(
    parameter: u32,
    most: Option<u32>,
    conditions: &Conditions,
) -> Option<String> {
    let bound = conditions.bound.filter(|_| most == Some(parameter))?;
    Some(format!("n = {parameter} is the most that {bound}"))
}

/// What to know where the program makes no more threads from some number on. Of a survey that is
/// believed where the greatest number showed it.
pub(super) fn capped(
    answer: &Answer,
    conditions: &Conditions,
    convert: impl Fn(u32) -> u32,
    threads: impl Fn(u32) -> u32,
) -> Option<String> {
    let seen = answer.attempts.iter().map(|attempt| (attempt.asked, attempt.probe.threads));
    let ThreadCeiling { threads: most, numbers, follows } =
        ThreadCeiling::seen(seen).filter(|_| conditions.counted)?;
    let numbers: Vec<u32> = numbers.into_iter().map(&convert).collect();
    let candidates = conditions.span.candidates(&convert, &threads);
    let greatest = candidates.last().map_or(0, |&last| convert(last));
    if conditions.method == Method::Survey && numbers.last() < Some(&greatest) {
        return None;
    }
    let fewest = numbers[0];
    let all = match &numbers[..] {
        [first, .., last] if numbers.len() > 4 => format!("{first} to {last}"),
        _ => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let thread = figures::counted(u64::from(most), "thread");
    let counts = match conditions.method {
        Method::Reinforcer => String::new(),
        Method::Survey | Method::Sweep => {
            format!("; these count as n = {fewest}, the fewest that make them")
        }
    };
    let doubt = if follows { "" } else { ", or {n} is not where it takes its number of threads" };
    Some(format!(
        "the program makes at most {thread}, the first included, whatever {{n}} is (seen with n = {all}){counts}: its input has no work for more, or it allows \
         no more{doubt}"
    ))
}

/// What `--min`, `--max` and `--step` mean for a program whose threads are not n.
pub(super) fn translated(
    conditions: &Conditions,
    convert: impl Fn(u32) -> u32,
    threads: impl Fn(u32) -> u32,
) -> Option<String> {
    let span = conditions.span;
    let (first, last) = match conditions.method {
        Method::Reinforcer => (convert(span.min), convert(span.max)),
        Method::Survey | Method::Sweep => {
            let candidates = span.candidates(&convert, &threads);
            (convert(*candidates.first()?), convert(*candidates.last()?))
        }
    };
    let made = [first, last].map(&threads);
    let from =
        |from: u32, to: u32| if from == to { from.to_string() } else { format!("{from} to {to}") };
    let counted = if standing(last, convert, threads) == last { "n" } else { "threads" };
    (made != [first, last]).then(|| {
        format!(
            "--min, --max and --step count {counted}: searched is n = {}, which makes {} threads",
            from(first, last),
            from(made[0], made[1])
        )
    })
}

/// What to know where the program came into another phase.
pub(super) fn shifted(shift: &PhaseChange) -> String {
    let what = match shift.sign {
        Sign::Progress => {
            format!("its progress was {} of what it was", figures::percent(1.0 + shift.change))
        }
        Sign::CpuUtil => format!("CPU_UTIL was {:+.0} points off", shift.change),
        Sign::Lock => format!("LOCK was {:+.0} points off", shift.change),
    };
    let (at, n) = (shift.at + 1, shift.parameter);
    if !shift.sure {
        return format!(
            "from probe {at} on the program, or the machine under it, may have been in another phase: with n = {n} {what}, and there are too few \
             probes to tell that from chance; search again to see"
        );
    }
    format!(
        "from probe {at} on the program, or the machine under it, was in another phase: with n = {n} {what}; numbers that were probed before \
         and after do not compare, and the answer may hold for neither"
    )
}
