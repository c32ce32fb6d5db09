//! The sentences about a search for a number of threads.

use crate::gain::{against, changed, decided_by, gain_text, raise_budget};
use crate::other_load::busy;
use crate::printable::one_line;
use crate::reason::unmeasured_remedy;
use crate::verdict::SIMULATED;
use crate::{figures, note, tagged};
use pinwise_measure::{RoleTime, Unit};
use pinwise_placement::{Budget, ComparedRounds, LastComparisonVerdict, Unmeasured, Way};
use pinwise_threads::{
    NumberAdvice, NumberSearchEnd, PROBE_SHARE, PhaseChange, SetAside, Sign, ThreadsNote,
};
use serde_json::Value;
use std::time::Duration;

/// Which searches the thresholds of a calibration are for. `found`: there are thresholds.
pub fn calibration_verdict(step: u32, contexts: u32, found: bool) -> String {
    let searches = format!("for steps of {step} threads on {contexts} contexts");
    match found {
        true => format!("The thresholds are {searches}."),
        false => format!("There are no thresholds {searches} yet."),
    }
}

/// A note, as a sentence that begins small and has no full stop.
pub fn threads_note(about: &ThreadsNote) -> String {
    match about {
        ThreadsNote::Quota { group, granted, contexts, allowed } => format!(
            "its cgroup ({group}) grants {granted:.1} of {contexts} contexts: give n, or it may \
             start {allowed} threads"
        ),
        ThreadsNote::Affinity { allowed, contexts, cpus } => format!(
            "it may run on {allowed} of {contexts} contexts (CPU {cpus}): give n, or it may start \
             too many threads"
        ),
        ThreadsNote::ShortRuns { run_seconds, pieces } => {
            let run = run_seconds.and_then(|run| Duration::try_from_secs_f64(run).ok());
            let why = run.map_or_else(
                || "the program ended by itself within a probe".to_owned(),
                |run| format!("the first run took {}", figures::duration(run)),
            );
            let divide =
                pieces.map_or_else(String::new, |pieces| format!("; --pieces {pieces} is ignored"));
            format!("{why}: whole runs are measured{divide}")
        }
        ThreadsNote::CutOff { n, asked: true } => {
            format!("n = {n}, the most that --max allows, did best in the probes: raise it")
        }
        ThreadsNote::CutOff { n, asked: false } => {
            format!(
                "n = {n}, the most that was tried, did best in the probes: try a larger --max N"
            )
        }
        ThreadsNote::Capped { threads, numbers, pooled, follows } => {
            capped(*threads, numbers, *pooled, *follows)
        }
        ThreadsNote::Translated { counts_n, n, threads } => {
            let from = |[from, to]: [u32; 2]| {
                if from == to { from.to_string() } else { format!("{from} to {to}") }
            };
            let counted = if *counts_n { "n" } else { "threads" };
            format!(
                "--min, --max and --step count {counted}: n = {} is searched, which makes {} \
                 threads",
                from(*n),
                from(*threads)
            )
        }
        ThreadsNote::Shifted(shift) => shifted(shift),
        ThreadsNote::Unchecked { reason } => {
            format!("the check for a change of phase failed ({reason}): repeat the search")
        }
        ThreadsNote::Jumped(jump) => jump.to_string(),
        ThreadsNote::Text { text } => text.clone(),
        ThreadsNote::Drifting { numbers } => format!(
            "it changed phase within probes of n = {}: use a longer --window",
            listed(numbers)
        ),
        ThreadsNote::SingleRuns => {
            "a probe of a single run has no standard error (-): use a longer --window".into()
        }
        ThreadsNote::FixedTime { seconds, .. } => format!(
            "every run took {seconds:.3} s: if runs have a fixed time, use --per-run with --metric"
        ),
        ThreadsNote::HardlyComputes { seconds } => {
            let run = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
            format!(
                "each run ended within {} and hardly computed: check what it did, and where",
                figures::duration(run)
            )
        }
        ThreadsNote::CpuTimeOnly => {
            "progress is CPU time only, which also counts useless work: use \
            --metric or --per-run"
                .into()
        }
        ThreadsNote::Busy { share } => busy(*share, "probes"),
        ThreadsNote::Watching { share } => format!(
            "watching took {} of the program's CPU time, which may bias n: use a longer --window",
            figures::percent(*share)
        ),
        ThreadsNote::WatchedOtherwise { probes, of, by, later } => {
            let were = if *probes == 1 { "was" } else { "were" };
            format!(
                "{probes} of {of} probes {were} watched by {by}, later ones by {later}; this may \
                 bias n: repeat"
            )
        }
        ThreadsNote::Pieces { pieces } => format!(
            "its description has {pieces} equal pieces per run: --pieces {pieces} is in force"
        ),
        ThreadsNote::SharedCores => {
            "the model treats each context as a core: check with pinwise threads -- CMD".into()
        }
        ThreadsNote::Simulated => SIMULATED.into(),
        ThreadsNote::Set { n } => is_set(*n),
        ThreadsNote::NotSet { n, command } => {
            format!("no fresh windows confirm n = {n}, so it is not set; set it with: {command}")
        }
        ThreadsNote::DefaultAboveMax { default, max } => format!(
            "its own n ({default}, a guess) is above the most to try ({max}) and was not \
             compared: raise --max"
        ),
        ThreadsNote::LimitsRestored => "the limits of the process are restored".into(),
        ThreadsNote::Program(met @ pinwise_measure::ProgramNote::MaybeTotal) => {
            format!("in a probe {}", note(met))
        }
        ThreadsNote::Program(met) => note(met),
    }
}

/// Says that a program which goes on running has this number now.
pub(crate) fn is_set(n: u32) -> String {
    format!("n = {n} is set now")
}

pub(crate) fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn capped(threads: u32, numbers: &[u32], pooled: bool, follows: bool) -> String {
    let all = match numbers {
        [first, .., last] if numbers.len() > 4 => format!("{first} to {last}"),
        _ => listed(numbers),
    };
    let most = figures::counted(u64::from(threads), "thread");
    let counts = match numbers.first() {
        Some(fewest) if pooled => format!(", and count as n = {fewest}"),
        _ => String::new(),
    };
    let remedy = if follows { "try --per-run" } else { "check {n}, try --per-run" };
    format!("n = {all} made at most {most} in the probes{counts}: {remedy}")
}

fn shifted(shift: &PhaseChange) -> String {
    let what = match shift.sign {
        Sign::Progress => {
            let went = if shift.change < 0.0 { "fell" } else { "rose" };
            format!("progress {went} to {} of before", figures::percent(1.0 + shift.change))
        }
        Sign::CpuUtil => format!("CPU_UTIL changed by {:+.0} points", shift.change),
        Sign::Lock => format!("LOCK changed by {:+.0} points", shift.change),
    };
    let (at, n) = (shift.at + 1, shift.parameter);
    let maybe = if shift.sure { "" } else { "maybe " };
    format!("{maybe}a new phase from probe {at} on: with n = {n} {what}; repeat to check")
}

/// Why a search for a number ended, and what its answer rests on.
#[derive(Clone, Debug)]
pub struct NumberSearchStop<'a> {
    /// Why it ended.
    pub end: NumberSearchEnd,
    /// The number that it chose.
    pub n: u32,
    /// How sure it is.
    pub advice: Option<&'a NumberAdvice>,
    /// All probes, the closing probe included.
    pub probes: usize,
    /// Those of `n`.
    pub readings: usize,
    /// Fresh windows say how good `n` is.
    pub compared: bool,
    /// Its probes may take a share of a run whose length is known.
    pub share: bool,
    /// The share of the best speed that fewer threads may cost.
    pub tolerance: f64,
}

impl NumberSearchStop<'_> {
    /// The end with its kind and values. What `settled` and `all_tried` say depends on whether
    /// fresh windows compared the number.
    pub fn tagged(&self) -> Value {
        let mut tagged = tagged(&self.end, self.text());
        if matches!(self.end, NumberSearchEnd::Settled | NumberSearchEnd::AllTried { .. }) {
            tagged["compared"] = self.compared.into();
        }
        tagged
    }

    /// The end in a line.
    pub fn text(&self) -> String {
        let &Self { end, n, advice, compared, share, tolerance, .. } = self;
        let rests = |why: String| match advice {
            Some(_) => format!("{why}; {}", self.rests_on()),
            None => why,
        };
        let waiting = "waiting for each other was high";
        match end {
            NumberSearchEnd::Settled if advice.is_some_and(|advice| advice.probes == 1) => {
                format!("n = {n} is the only possible number")
            }
            NumberSearchEnd::Settled if compared => {
                rests("the probes sufficed to pick a number to compare".into())
            }
            NumberSearchEnd::Settled if advice.is_none_or(|advice| advice.loss <= 0.0) => {
                rests(format!(
                    "n = {n} is expected to be the best, and more probes would hardly \
                     change that"
                ))
            }
            NumberSearchEnd::Settled => rests(format!(
                "n = {n} is expected within {} of the best speed, and more probes would hardly \
                 change that",
                figures::percent(advice.map_or(0.0, |advice| advice.loss))
            )),
            NumberSearchEnd::Probes => {
                "the most probes were made; --budget and --within decide how sure the answer is"
                    .into()
            }
            NumberSearchEnd::Time { broken_off: Some(broken) } => {
                rests(format!("--budget ended during the probe with n = {broken}"))
            }
            NumberSearchEnd::Time { broken_off: None } if share => {
                let why = format!(
                    "the rest of {} of the run is too short for another probe",
                    figures::percent(PROBE_SHARE)
                );
                format!("{}; set --budget to allow more", rests(why))
            }
            NumberSearchEnd::Time { broken_off: None } => {
                rests("the rest of --budget is too short for another probe".into())
            }
            NumberSearchEnd::AllTried { numbers, rounds } => {
                let all = match numbers {
                    1 => "the only number was".into(),
                    numbers => format!("all {numbers} numbers were"),
                };
                let (times, unknown) = match rounds {
                    1 => ("once".into(), " (the certainty is unknown)"),
                    rounds => (format!("{rounds} times"), ""),
                };
                // What fresh windows say is the answer.
                let probes = format!(
                    "; by the probes, n = {n} has the fewest threads within {} of the \
                     best{unknown}",
                    figures::percent(tolerance)
                );
                format!("{all} tried {times}{}", if compared { "" } else { &probes })
            }
            NumberSearchEnd::CpuUtil { last } => {
                format!("CPU_UTIL hardly rose with n = {last}")
            }
            NumberSearchEnd::Lock { last } => {
                format!("LOCK: with n = {last} {waiting} and rose fast")
            }
            NumberSearchEnd::VcxRate { last } => {
                format!("VCX_RATE: with n = {last} {waiting}, and switches rose fast")
            }
            NumberSearchEnd::MigrRate { last } => {
                format!("MIGR_RATE: with n = {last} {waiting}, and migrations rose fast")
            }
            NumberSearchEnd::MostThreads { last } => {
                format!("--max: n = {last} was the last to try")
            }
        }
    }

    /// `n = 4 was probed 2 times (of 9 probes)`. A reading reports its error. Only other readings
    /// of the same number can confirm that error.
    fn rests_on(&self) -> String {
        let (n, all) = (self.n, figures::counted(self.probes as u64, "probe"));
        match self.readings {
            0 => format!("n = {n} itself was not probed ({all})"),
            1 if self.probes == 1 => format!("n = {n} was probed once, nothing else was probed"),
            1 => format!("n = {n} was probed once (of {all}), so its error is unknown"),
            readings => format!("n = {n} was probed {readings} times (of {all})"),
        }
    }
}

/// What fresh windows show of the number that a search found, and what follows.
#[derive(Clone, Debug)]
pub struct NumberVerdict<'a> {
    /// The number against the program's own.
    pub rounds: &'a ComparedRounds,
    /// What follows.
    pub choice: LastComparisonVerdict,
    /// The number that was compared.
    pub n: u32,
    /// The number that the program uses on its own.
    pub default: u32,
    /// The tolerance.
    pub within: f64,
    /// The budget of the whole search.
    pub budget: Duration,
    /// Share of the contexts' time that others took meanwhile, if it is notable.
    pub others: Option<f64>,
    /// Why the comparison ended before its time, if it did.
    pub cut_short: Option<&'a Unmeasured>,
}

impl NumberVerdict<'_> {
    /// The failure that prevents a gain. More time would not help.
    pub fn failed(&self) -> Option<&Unmeasured> {
        let lasting = |why: &&Unmeasured| {
            !matches!(why, Unmeasured::NoTime | Unmeasured::Interrupted | Unmeasured::Text { .. })
        };
        let failed = self.cut_short.filter(lasting);
        failed.filter(|_| self.rounds.gain(Way::Number, Way::Default).is_none())
    }

    /// What would decide it.
    fn decided_by(&self) -> String {
        if self.cut_short == Some(&Unmeasured::Interrupted) {
            return format!("To decide it, {RESUME}.");
        }
        changed(self.cut_short)
            .unwrap_or_else(|| decided_by(self.rounds, self.within, self.budget, self.others))
    }

    /// `n = 4`, or the default with its number.
    pub fn name(&self, way: Way) -> String {
        match way {
            Way::Default => format!("default: n = {}", self.default),
            Way::Number | Way::Placed => format!("n = {}", self.n),
        }
    }

    /// The answer in a sentence or two.
    pub fn text(&self) -> String {
        let Self { rounds, choice, n, default, .. } = self;
        let gain = rounds.gain(Way::Number, Way::Default);
        let basis = format!(
            "This rests on {} of fresh windows ({} confidence).",
            figures::counted(rounds.count() as u64, "round"),
            figures::percent(rounds.confidence())
        );
        let default = format!("the default, n = {default}");
        if let Some(why) = self.failed() {
            return format!(
                "Undecided: n = {n} was not compared with {default}. The reason: {}.",
                unmeasured_remedy(why)
            );
        }
        let Some(gain) = gain else {
            return format!(
                "Undecided: too few fresh windows compare n = {n} with {default}. {}",
                self.decided_by()
            );
        };
        match choice {
            LastComparisonVerdict::Number | LastComparisonVerdict::Placed => {
                format!("Use n = {n}: {}. {basis}", against(gain, &default))
            }
            LastComparisonVerdict::Fewer => format!(
                "Use n = {n}: fewer threads, {} against {default}. {basis}",
                gain_text(gain)
            ),
            LastComparisonVerdict::Default => {
                format!("Keep {default}: n = {n} is {}. {basis}", against(gain, "it"))
            }
            LastComparisonVerdict::Undecided => format!(
                "Undecided: n = {n} is {} against {default}. {basis} {}",
                gain_text(gain),
                self.decided_by()
            ),
        }
    }
}

/// What decides a search that was interrupted.
const RESUME: &str = "resume the search";

/// Why a search announces no number: no fresh windows compared the one that it found.
#[derive(Clone, Debug)]
pub struct NothingCompared {
    /// The number that was found.
    pub n: u32,
    /// The default, if it is above the most that may be tried.
    pub above_max: Option<u32>,
    /// The seconds of each whole run, if these take a fixed time.
    pub fixed_time: Option<f64>,
    /// Different numbers that were probed.
    pub numbers: usize,
    /// Measurements that are no probes.
    pub set_aside: SetAside,
    /// Share of the contexts' time that others took meanwhile, if it is notable.
    pub others: Option<f64>,
    /// The budget of the whole search.
    pub budget: Duration,
    /// The search has not come to its end.
    pub unfinished: bool,
}

impl NothingCompared {
    /// The answer in a few sentences.
    pub fn text(&self) -> String {
        let Self { n, above_max, fixed_time, numbers, set_aside, others, budget, unfinished } =
            self;
        if let Some(seconds) = fixed_time {
            return format!(
                "Undecided: every run took {seconds:.2} s whatever n. To decide it, use --per-run \
                 with --metric."
            );
        }
        if let Some(default) = above_max {
            return format!(
                "Undecided: n = {n} was not compared with the default, n = {default}. To decide \
                 it, raise --max to {default}."
            );
        }
        let why = match numbers {
            1 => format!("n = {n} was the only number probed"),
            _ => format!("n = {n} was compared with no other number on fresh windows"),
        };
        let aside = match set_aside.total() {
            0 => String::new(),
            _ => format!(" Set aside: {}.", set_aside_text(*set_aside)),
        };
        let to = match unfinished {
            true => RESUME.into(),
            false => raise_budget(Budget::Time(*budget), 2.0, 2.0, others.is_some()),
        };
        format!("Undecided: {why}.{aside} To decide it, {to}.")
    }
}

/// Why measurements were set aside: `2 starved by others, 1 failed`.
pub fn set_aside_text(set_aside: SetAside) -> String {
    let SetAside { failed, cut_short, idle, starved, jumped, earlier } = set_aside;
    let kinds = [
        (starved, "starved by others"),
        (idle, "without progress"),
        (failed, "failed"),
        (cut_short, "cut short by --budget"),
        (jumped, "of another load"),
        (earlier, "before whole runs were measured"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    kinds.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// What an answer of more threads than contexts leaves open. It names the probed numbers of fewer
/// threads that may do as well, ascending.
pub fn fewer_threads(n: u32, open: &[u32], contexts: u32) -> Option<String> {
    let why = "the probes do not distinguish them";
    let fewest = open.first().filter(|_| contexts < n);
    fewest.map(|fewest| {
        format!("fewer threads, down to n = {fewest}, may do as well: {why} from n = {n}")
    })
}

/// What performances in a unit are: the head of their column.
pub fn performance_name(unit: &Unit) -> &'static str {
    match (unit.reciprocal, unit.name.as_str()) {
        (false, _) => "progress",
        (true, "s" | "ms" | "us" | "ns" | "min") => "time",
        (true, _) => "cost",
    }
}

/// The roles that the program waits for.
pub fn critical_roles(roles: &[RoleTime]) -> String {
    let wanted = |role: &RoleTime| figures::percent((role.ran + role.waited).min(1.0));
    let critical = roles.iter().filter(|role| role.critical);
    let names: Vec<String> =
        critical.map(|role| format!("{} ({})", one_line(&role.role), wanted(role))).collect();
    if names.is_empty() {
        return "unknown: no thread was seen while it ran; a longer --window may show it".into();
    }
    format!("{}: share of the time that they had work", names.join(", "))
}

/// What [`role_cells`] are.
pub const ROLE_COLUMNS: [&str; 10] = [
    "role",
    "threads",
    "runs",
    "waits for CPU",
    "for others",
    "sleeps",
    "voluntary",
    "involuntary",
    "migrates",
    "",
];

/// How the threads of a role spent their time, as cells of a table.
pub fn role_cells(role: &RoleTime) -> [String; 10] {
    [
        one_line(&role.role).into_owned(),
        role.threads.to_string(),
        figures::percent(role.ran),
        figures::percent(role.waited),
        role.locked.map_or("-".into(), figures::percent),
        figures::percent(role.slept),
        figures::event_rate(role.voluntary_rate),
        figures::event_rate(role.involuntary_rate),
        role.migration_rate.map_or("-".into(), figures::event_rate),
        if role.critical { "critical".into() } else { String::new() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_threads::{Interval, SpeedSearchEnd};

    /// Six rounds, each a little off.
    fn rounds(default: f64, number: f64, off: f64) -> ComparedRounds {
        let mut rounds = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
        for round in 0..6 {
            let off = |place: i32| 1.0 + off * f64::from((round + place) % 3);
            rounds.take(vec![Some(default * off(0)), Some(number * off(2))]);
        }
        rounds
    }

    #[test]
    fn the_verdict_on_a_number_says_what_to_do_against_what_and_how_sure() {
        let told = |rounds: &ComparedRounds, fewer, others| {
            let choice = rounds.choice(fewer, 0.01);
            let [n, default] = if fewer { [2, 4] } else { [4, 2] };
            let (budget, within) = (Duration::from_secs(60), 0.01);
            let cut_short = None;
            NumberVerdict { rounds, choice, n, default, within, budget, others, cut_short }.text()
        };
        let none = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
        let failed = NumberVerdict {
            rounds: &none,
            choice: none.choice(false, 0.01),
            n: 4,
            default: 2,
            within: 0.01,
            budget: Duration::from_secs(60),
            others: None,
            cut_short: Some(&Unmeasured::Jumped { n: 4, times: 20.0 }),
        };
        let text = failed.text();
        assert!(text.ends_with("its earlier one: search again when its load is steady."), "{text}");
        assert!(text.starts_with("Undecided: n = 4") && !text.contains("--budget"), "{text}");
        let twice = rounds(1.0, 2.0, 0.001);
        let choice = LastComparisonVerdict::Undecided;
        let text = NumberVerdict { rounds: &twice, choice, ..failed }.text();
        assert!(text.starts_with("Undecided: n = 4 is +100.0 %"), "{text}");
        assert!(text.ends_with("search again when its load is steady."), "{text}");
        assert!(!text.contains("--budget"), "{text}");
        let text = told(&twice, false, None);
        assert!(text.starts_with("Use n = 4: +100.0 % (interval +"), "{text}");
        let basis = "This rests on 6 rounds of fresh windows (95 % confidence).";
        assert!(text.contains(" over the default, n = 2. ") && text.ends_with(basis));
        let text = told(&rounds(1.0, 1.0, 0.0), true, None);
        assert!(text.starts_with("Use n = 2: fewer threads, 0.0 % ("), "{text}");
        assert!(text.contains(" against the default, n = 4. "), "{text}");
        let text = told(&rounds(1.0, 0.5, 0.001), false, None);
        assert!(
            text.starts_with("Keep the default, n = 2: n = 4 is slower than it, -50"),
            "{text}"
        );
        let text = told(&rounds(1.0, 1.0, 0.5), false, Some(0.4));
        assert!(text.starts_with("Undecided: n = 4 is ") && !text.contains("others"), "{text}");
        // An eighth of the interval may do: even sixteen times the rounds may be too few.
        let more = "To decide it, raise --budget to 16m or more on a quieter machine: 6 rounds";
        assert!(text.contains(more), "{text}");
        let nothing = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
        let text = told(&nothing, false, None);
        assert!(text.starts_with("Undecided: too few fresh windows compare n = 4"), "{text}");
    }

    #[test]
    fn the_end_of_a_search_counts_all_probes_that_its_table_shows() {
        let end = NumberSearchEnd::Time { broken_off: None };
        let told = |probes, readings| {
            let (n, share, tolerance) = (2, false, 0.01);
            let advice = Some(NumberAdvice { probes: 3, readings: 2, ..advice() });
            let advice = advice.as_ref();
            NumberSearchStop { end, n, advice, probes, readings, compared: true, share, tolerance }
                .text()
        };
        let text = told(4, 3);
        assert!(text.ends_with("another probe; n = 2 was probed 3 times (of 4 probes)"), "{text}");
        assert!(told(4, 0).ends_with("n = 2 itself was not probed (4 probes)"));
    }

    #[test]
    fn only_probes_show_how_many_threads_a_program_makes() {
        let (threads, numbers) = (4, vec![3, 4]);
        let note = ThreadsNote::Capped { threads, numbers, pooled: true, follows: true };
        let told =
            "n = 3, 4 made at most 4 threads in the probes, and count as n = 3: try --per-run";
        assert_eq!(threads_note(&note), told);
    }

    #[test]
    fn a_sweep_says_what_it_tried_and_leaves_the_answer_to_fresh_windows() {
        let told = |numbers, rounds, compared| {
            let end = NumberSearchEnd::AllTried { numbers, rounds };
            let (n, probes, readings, share, tolerance) = (3, 24, 3, false, 0.01);
            let advice = None;
            let end =
                NumberSearchStop { end, n, advice, probes, readings, compared, share, tolerance };
            assert_eq!(end.tagged()["compared"], compared);
            end.text()
        };
        assert_eq!(told(8, 3, true), "all 8 numbers were tried 3 times");
        let probes = "; by the probes, n = 3 has the fewest threads within 1.0 % of the best";
        assert_eq!(told(8, 3, false), format!("all 8 numbers were tried 3 times{probes}"));
        let once = format!("the only number was tried once{probes} (the certainty is unknown)");
        assert_eq!(told(1, 1, false), once);
    }

    fn advice() -> NumberAdvice {
        let one = Interval { value: 1.0, low: 1.0, high: 1.0 };
        NumberAdvice {
            threads: 2,
            between: (2, 2),
            open: Vec::new(),
            value: one,
            gain: one,
            reference: Some(1),
            reference_threads: 1,
            probed: true,
            loss: 0.0,
            more: None,
            ended: SpeedSearchEnd::Time,
            probes: 1,
            numbers: 1,
            readings: 1,
        }
    }

    #[test]
    fn where_nothing_was_compared_it_says_why_and_what_would_decide_it() {
        let alone = NothingCompared {
            n: 2,
            above_max: None,
            fixed_time: None,
            numbers: 1,
            set_aside: SetAside { starved: 3, failed: 1, cut_short: 1, ..SetAside::default() },
            others: Some(0.8),
            budget: Duration::from_secs(30),
            unfinished: false,
        };
        let text = "Undecided: n = 2 was the only number probed. Set aside: 3 starved by others, 1 \
            failed, 1 cut short by --budget. To decide it, raise --budget to 1m on a quieter \
            machine.";
        assert_eq!(alone.text(), text);
        let cut = NothingCompared {
            numbers: 2,
            others: None,
            set_aside: SetAside::default(),
            ..alone.clone()
        };
        let text = "Undecided: n = 2 was compared with no other number on fresh windows. To \
            decide it, raise --budget to 1m.";
        assert_eq!(cut.text(), text);
        let text = NothingCompared { unfinished: true, ..cut }.text();
        assert!(text.ends_with("on fresh windows. To decide it, resume the search."), "{text}");
        let text = NothingCompared { fixed_time: Some(1.0032), ..alone.clone() }.text();
        let told = "Undecided: every run took 1.00 s whatever n. To decide it, use --per-run with \
            --metric.";
        assert_eq!(text, told);
        let text = NothingCompared { above_max: Some(4), ..alone }.text();
        assert!(text.ends_with("the default, n = 4. To decide it, raise --max to 4."), "{text}");
    }

    #[test]
    fn more_threads_than_contexts_get_a_note_if_fewer_may_do() {
        let told = "fewer threads, down to n = 8, may do as well: the probes do not distinguish \
            them from n = 72";
        assert_eq!(fewer_threads(72, &[8, 48], 24).as_deref(), Some(told));
        assert!(fewer_threads(48, &[25], 24).is_some(), "more than the contexts, and still fewer");
        assert_eq!(fewer_threads(48, &[], 24), None);
        assert_eq!(fewer_threads(24, &[8], 24), None, "no more than the contexts");
    }
}
