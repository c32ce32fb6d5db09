//! The sentences about a search for a number of threads.

use crate::figures;
use crate::other_load::crowded;
use pinwise_measure::OtherLoad;
use pinwise_threads::{Advice, Note, PhaseChange, SHARE, Sign, Stopped};

/// A note, as a sentence that begins small and has no full stop.
pub fn threads_note(note: &Note) -> String {
    match note {
        Note::Quota { group, granted, contexts, allowed } => format!(
            "its control group ({group}) grants the CPU time of {granted:.1} of the {contexts} \
             contexts: a program that asks the machine how many threads to start does not see \
             that, and starts {allowed} unless it is told n"
        ),
        Note::Affinity { allowed, contexts, cpus } => format!(
            "it may run on {allowed} of the {contexts} contexts (CPU {cpus}): a program that \
             counts the machine's starts too many threads unless it is told n"
        ),
        Note::ShortRuns { run, pieces } => {
            let why = run.map_or_else(
                || "the program ended by itself within a probe".to_owned(),
                |run| format!("a run takes {}", figures::duration(run)),
            );
            let divide = pieces.map_or_else(String::new, |pieces| {
                format!(
                    ", which show by themselves how its {pieces} pieces divide: --pieces is not \
                     counted on top"
                )
            });
            format!("{why}: whole runs are measured{divide}")
        }
        Note::CutOff { n, asked: true } => {
            format!("n = {n} is the most that --max allows: more may be faster, raise it to see")
        }
        Note::CutOff { n, asked: false } => format!(
            "n = {n} is the most that is tried without --max: more may be faster, --max N tries up \
             to N"
        ),
        Note::Capped { threads, numbers, pooled, follows } => {
            capped(*threads, numbers, *pooled, *follows)
        }
        Note::Translated { counts_n, n, threads } => {
            let from = |[from, to]: [u32; 2]| {
                if from == to { from.to_string() } else { format!("{from} to {to}") }
            };
            let counted = if *counts_n { "n" } else { "threads" };
            format!(
                "--min, --max and --step count {counted}: searched is n = {}, which makes {} \
                 threads",
                from(*n),
                from(*threads)
            )
        }
        Note::Shifted(shift) => shifted(shift),
        Note::Unchecked { reason } => format!(
            "whether the program came into another phase meanwhile is not known: the probe that \
             was to tell it failed: {reason}"
        ),
        Note::Seen { text } => text.clone(),
        Note::Drifting { numbers } => format!(
            "the program changed what it does within the probes with n = {}: another phase; a \
             longer --probe, or --after REGEX, shows whether the answer holds",
            listed(numbers)
        ),
        Note::SingleRuns => "the table has no standard error (-) where n was run once: a longer \
                             --probe runs it several times"
            .into(),
        Note::CpuTimeOnly => "progress is told by CPU time only: how many contexts the threads \
                              keep busy, not what for; --metric or --whole-run tell more"
            .into(),
        Note::Busy { share } => {
            let share = OtherLoad { taken: *share, of: 1.0 };
            let left = ", of which more threads get a larger share";
            crowded(&[share], "probes", left).unwrap_or_default()
        }
        Note::Watching { share } => format!(
            "watching took {} of the program's CPU time, which slows it down and not with every n \
             alike: a longer --probe is watched for less",
            figures::percent(*share)
        ),
        Note::WatchedOtherwise { probes, of, by, later } => {
            let were = if *probes == 1 { "was" } else { "were" };
            format!(
                "{probes} of {of} probes {were} watched by {by}, the later ones by {later}: what \
                 they tell of the threads differs by that, too"
            )
        }
        Note::Pieces { pieces } => format!(
            "the description says that a run has {pieces} equal pieces, and the survey counts how \
             they divide, as with --pieces {pieces}"
        ),
        Note::SharedCores => "each context counts as a core of its own, though several share one \
                              on this machine, and costs are those of the Opteron's system"
            .into(),
        Note::Simulated => "simulated: times, rates and shares are those of the model".into(),
        Note::Set { n } => format!("n = {n} is set now"),
        Note::LimitsRestored => "what the process may use is as it was".into(),
    }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn capped(threads: u32, numbers: &[u32], pooled: bool, follows: bool) -> String {
    let all = match numbers {
        [first, .., last] if numbers.len() > 4 => format!("{first} to {last}"),
        _ => listed(numbers),
    };
    let most = figures::counted(u64::from(threads), "thread");
    let counts = match numbers.first() {
        Some(fewest) if pooled => {
            format!("; these count as n = {fewest}, the fewest that make them")
        }
        _ => String::new(),
    };
    let doubt = if follows { "" } else { ", or {n} is not where it takes its number of threads" };
    format!(
        "the program makes at most {most}, the first included, whatever {{n}} is (seen with n = \
         {all}){counts}: its input has no work for more, or it allows no more{doubt}"
    )
}

fn shifted(shift: &PhaseChange) -> String {
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
            "from probe {at} on the program, or the machine under it, may have been in another \
             phase: with n = {n} {what}, and there are too few probes to tell that from chance; \
             search again to see"
        );
    }
    format!(
        "from probe {at} on the program, or the machine under it, was in another phase: with n = \
         {n} {what}; numbers that were probed before and after do not compare, and the answer may \
         hold for neither"
    )
}

/// Why a search that chose `n` ended, and what its answer rests on. `share`: its probes may take a
/// share of a run whose length is known. `tolerance`: the share of the best speed that fewer
/// threads may cost.
pub fn stopped(
    stopped: Stopped,
    n: u32,
    advice: Option<&Advice>,
    share: bool,
    tolerance: f64,
) -> String {
    let rests = |why: String| match advice {
        Some(advice) => format!("{why}; {}", rests_on(advice, n)),
        None => why,
    };
    let waiting = "waiting for each other was high";
    match stopped {
        Stopped::Settled if advice.is_some_and(|advice| advice.probes == 1) => {
            format!("there is no other number than n = {n} to choose")
        }
        Stopped::Settled => rests(format!(
            "n = {n} is expected to lose {} of the best speed, which another probe would hardly \
             change",
            figures::percent(advice.map_or(0.0, |advice| advice.loss))
        )),
        Stopped::Probes => {
            "enough probes; --budget and --within decide how sure the answer is".into()
        }
        Stopped::Time { broken_off: Some(broken) } => rests(format!(
            "the time of --budget is used up: the probe with n = {broken} was broken off"
        )),
        Stopped::Time { broken_off: None } if share => {
            let why = format!(
                "what is left of {} of the run is too short for another probe",
                figures::percent(SHARE)
            );
            format!("{}; --budget may allow more", rests(why))
        }
        Stopped::Time { broken_off: None } => {
            rests("what is left of --budget is too short for another probe".into())
        }
        Stopped::AllTried { numbers, rounds } => {
            let times = match rounds {
                1 => "once each, which does not tell how sure the answer is".into(),
                rounds => format!("{rounds} times each"),
            };
            format!(
                "{numbers} numbers were tried, {times}; the fewest threads within {} of the best",
                figures::percent(tolerance)
            )
        }
        Stopped::CpuUtil { last } => {
            format!("CPU_UTIL: n = {last} kept hardly more contexts busy")
        }
        Stopped::Lock { last } => format!("LOCK: with n = {last} {waiting} and rose fast"),
        Stopped::VcxRate { last } => {
            format!("VCX_RATE: with n = {last} {waiting}, and switches rose fast")
        }
        Stopped::MigrRate { last } => {
            format!("MIGR_RATE: with n = {last} {waiting}, and migrations rose fast")
        }
        Stopped::MostThreads { last } => format!("--max: n = {last} was the last to try"),
    }
}

/// `n = 4 was probed 2 times of 9`: a reading says itself how far it is off, and is believed only
/// as far as others of the same number bear it out.
fn rests_on(advice: &Advice, n: u32) -> String {
    let all = figures::counted(advice.probes as u64, "probe");
    match advice.readings {
        0 => format!("n = {n} itself was not among the {all}"),
        1 if advice.probes == 1 => format!("n = {n} was probed once, and nothing else was"),
        1 => format!(
            "n = {n} was probed once, of {all}: how far that reading is off is not known from \
             another"
        ),
        readings => format!("n = {n} was probed {readings} times, of {all}"),
    }
}
