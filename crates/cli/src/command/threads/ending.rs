//! Why a search ended, and what its answer rests on.

use super::observed::Conditions;
use pinwise_present::figures;
use pinwise_threads::{Advice, Ended, Reason, SHARE, SpeedFound};

/// Why a survey ended, in a word and in a line, with what the answer rests on.
pub(super) fn ended(found: &SpeedFound, conditions: &Conditions) -> (&'static str, String) {
    let (advice, n) = (&found.advice, found.parameter);
    let told = |why: &str| format!("{why}; {}", rests_on(advice, n));
    match (advice.ended, found.broken_off) {
        (Ended::Settled, _) if advice.probes == 1 => {
            ("SETTLED", format!("there is no other number than n = {n} to choose"))
        }
        (Ended::Settled, _) => {
            let loss = figures::percent(advice.loss);
            let why = format!(
                "n = {n} is expected to lose {loss} of the best speed, which another probe would hardly change"
            );
            ("SETTLED", told(&why))
        }
        (Ended::Probes | Ended::AllTried, _) => {
            ("PROBES", "enough probes; --budget and --within decide how sure the answer is".into())
        }
        (Ended::Time, None) => match conditions.work {
            None => ("TIME", told("what is left of --budget is too short for another probe")),
            Some(_) => {
                let share = figures::percent(SHARE);
                let why =
                    format!("what is left of {share} of the run is too short for another probe");
                ("TIME", format!("{}; --budget may allow more", told(&why)))
            }
        },
        (Ended::Time, Some(broken)) => (
            "TIME",
            told(&format!(
                "the time of --budget is used up: the probe with n = {broken} was broken off"
            )),
        ),
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
            "n = {n} was probed once, of {all}: how far that reading is off is not known from another"
        ),
        readings => format!("n = {n} was probed {readings} times, of {all}"),
    }
}

/// Why the published search ended, in a word and in a line; `last` is the parameter it tried last.
pub(super) fn stopped(reason: Reason, last: u32) -> (&'static str, String) {
    let waiting = "waiting for each other was high";
    match reason {
        Reason::CpuUtil => {
            ("CPU_UTIL", format!("CPU_UTIL: n = {last} kept hardly more contexts busy"))
        }
        Reason::Lock => ("LOCK", format!("LOCK: with n = {last} {waiting} and rose fast")),
        Reason::VcxRate => {
            ("VCX_RATE", format!("VCX_RATE: with n = {last} {waiting}, and switches rose fast"))
        }
        Reason::MigrRate => {
            ("MIGR_RATE", format!("MIGR_RATE: with n = {last} {waiting}, and migrations rose fast"))
        }
        Reason::MostThreads => ("MOST_THREADS", format!("--max: n = {last} was the last to try")),
    }
}
