//! What `threads` compares at its end: the number found and the default, on fresh windows.
//!
//! *Problem.* A search chose a number because its probes were good. So these probes overstate it,
//! most of all on a busy machine.
//!
//! *Method.* It measures the number that was found and the default again, once a round each, in
//! random order. These windows choose nothing. Only the ratio within rounds counts. It is the last
//! comparison of a search for number and placement ([`crate::last_comparison`]), of two ways. It
//! ends once the gain is known to half of the tolerance or to a quarter of itself. At the latest it
//! ends with the budget. Beside other programs it does not end early: its first rounds may all fall
//! into one burst of theirs. It also ends if the progress of a program that goes on running jumps.
//!
//! *Limits.* It does not see bursts or pauses of others that are longer than itself. It says
//! nothing about a third number. If the search found the program's own number, that one is compared
//! with the fastest other one that was probed. If no other one was probed, it is compared with one
//! that was not.

use super::program_opening::usable_contexts;
use super::request::{ThreadsMethod, ThreadsProgram, ThreadsQuestion, ThreadsRequest};
use super::{ProgramProber, ShownProbe, ThreadsOutcome};
use crate::campaign_run::part_left_open;
use crate::default_number::DefaultNumber;
use crate::error::JobError;
use crate::events::Events;
use crate::job::Caller;
use crate::last_comparison::{
    CONFIDENCE, ComparedNumbers, Comparing, GOOD_ROUNDS, LastComparison, LastComparisonQuestion,
    MOST_WINDOWS, Seen,
};
use crate::stored_campaign::{self, part_for};
use pinwise_campaign::{CampaignInfo, Kind, NewCampaign, Parent, Record, Store};
use pinwise_linux::Pid;
use pinwise_measure::{Measure, Measurement, MemoryPolicy, Probed, Setting, Testbed, ThreadCount};
use pinwise_placement::{
    ComparedRounds, LastComparisonNote, LastComparisonVerdict, TunePart, Unmeasured, Way,
};
use pinwise_present::NumberVerdict;
use pinwise_threads::{FoundNumber, Jump, ThreadsNote};
use std::time::Duration;

/// The assumed length of a measurement, in its windows: the program starts first, or settles. This
/// is a guess, not a measurement. If it is wrong, the comparison has more or fewer rounds.
const MEASUREMENT: f64 = 1.5;

/// The result of the fresh windows of the number that was found.
#[derive(Clone, Debug)]
pub struct Confirmation {
    /// The question.
    pub compared: LastComparisonQuestion,
    /// The result.
    pub comparison: LastComparison,
    /// The verdict.
    pub choice: LastComparisonVerdict,
    /// The tolerance.
    within: f64,
    /// The budget of the whole search.
    budget: Duration,
}

impl Confirmation {
    /// The confidence of its interval.
    pub const CONFIDENCE: f64 = CONFIDENCE;

    /// The number to run the program with. It is the one that was found, if that is better, or as
    /// good and smaller. Otherwise it is the program's own.
    pub fn announced(&self) -> u32 {
        let LastComparisonQuestion { n, default, .. } = self.compared;
        if self.choice.way() == Way::Default { default.unwrap_or(n) } else { n }
    }

    /// Whether a note of the search advises more than `n`, and fresh windows keep another number.
    pub(super) fn refutes(&self, note: &ThreadsNote) -> bool {
        is_refuted(note, self.choice, self.announced())
    }

    /// The verdict, as `present` takes it.
    pub fn verdict(&self) -> NumberVerdict<'_> {
        let Self { compared, comparison, choice, within, budget } = self;
        NumberVerdict {
            within: *within,
            budget: *budget,
            rounds: &comparison.rounds,
            choice: *choice,
            n: compared.n,
            default: compared.default.unwrap_or(compared.n),
            others: comparison.others(),
            cut_short: comparison.cut_short.as_ref(),
        }
    }

    /// Notes on the comparison.
    pub fn notes(&self) -> Vec<LastComparisonNote> {
        let notes = self.comparison.notes(self.choice).into_iter();
        // The verdict already says why there is no gain.
        let said = |note: &LastComparisonNote| match note {
            LastComparisonNote::CutShort { reason: Unmeasured::Jumped { .. }, .. } => true,
            LastComparisonNote::CutShort { reason, .. } => self.verdict().failed() == Some(reason),
            _ => false,
        };
        let notes = notes.filter(|note| !said(note));
        self.compared.default_known.iter().cloned().chain(notes).collect()
    }

    /// What fresh windows show of the two numbers; `None`: too little.
    pub fn compared_numbers(&self) -> Option<ComparedNumbers> {
        self.comparison.numbers(&self.compared, self.announced())
    }

    fn of(
        compared: LastComparisonQuestion,
        comparison: LastComparison,
        request: &ThreadsRequest,
    ) -> Self {
        let fewer = compared.default.is_some_and(|default| default > compared.n);
        let (within, budget) = (request.within, request.time());
        let choice = comparison.choice(fewer, within);
        Self { compared, comparison, choice, within, budget }
    }
}

/// The confirmation that a campaign has stored, as far as it came. `cut_short`: why it ended before
/// its time, if it did.
pub(super) fn confirmed(
    info: &CampaignInfo,
    question: &ThreadsQuestion,
    cut_short: Option<Unmeasured>,
    store: &Store,
) -> Result<Option<Confirmation>, JobError> {
    let Some(part) =
        stored_campaign::part(store, &Parent::new(info.id, &TunePart::LastComparison))?
    else {
        return Ok(None);
    };
    let compared: LastComparisonQuestion = stored_campaign::question(&part)?;
    let records = store.records(part.id)?;
    let comparison = compared.comparison(&records, &|measured| seen(question, measured), cut_short);
    Ok(Some(Confirmation::of(compared, comparison, &question.request)))
}

/// A search that found a number.
pub(super) struct Confirming<'a> {
    pub(super) info: &'a CampaignInfo,
    pub(super) question: &'a ThreadsQuestion,
    pub(super) outcome: &'a ThreadsOutcome,
    pub(super) found: &'a FoundNumber,
}

/// What the last comparison gave.
pub(super) struct Confirmed {
    /// The result; `None`: nothing was compared.
    pub(super) shown: Option<Confirmation>,
    /// Why nothing was compared, if the user needs to know.
    pub(super) note: Option<ThreadsNote>,
    /// Nothing was compared, though there are other numbers.
    pub(super) uncompared: bool,
}

/// The numbers that are compared.
enum Contenders {
    /// The number that was found, and another one.
    Two(LastComparisonQuestion),
    /// The program's own number is above the user's limit.
    AboveMax(ThreadsNote),
    /// There are other numbers, but no probe of them, and none may be compared.
    NoneProbed,
    /// Runs take a fixed time, which is no speed.
    FixedTime,
    /// There is no other number.
    NoOther,
}

/// Measures the number that was found and the program's own number on fresh windows. Goes on from
/// the stored ones.
pub(super) fn confirm(
    confirming: &Confirming<'_>,
    program: &mut ProgramProber,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<Confirmed, JobError> {
    let &Confirming { info, question, found, .. } = confirming;
    let step = TunePart::LastComparison;
    let part = match stored_campaign::part(store, &Parent::new(info.id, &step))? {
        Some(part) => part,
        None => {
            let records = store.records(info.id)?;
            let contenders = contenders(confirming, &records, program)?;
            let Contenders::Two(compared) = contenders else {
                let uncompared = !matches!(contenders, Contenders::NoOther);
                let note = match contenders {
                    Contenders::AboveMax(note) => Some(note),
                    _ => found.jumped().map(ThreadsNote::Jumped),
                };
                return Ok(Confirmed { shown: None, note, uncompared });
            };
            let compared = serde_json::to_value(&compared)?;
            part_for(store, info, &step, |new| {
                Ok(NewCampaign { kind: Kind::LastComparison, question: compared, ..new })
            })?
        }
    };
    let compared: LastComparisonQuestion = stored_campaign::question(&part)?;
    let read = |measured: &Measurement| seen(question, measured);
    // What is found is not announced before this comparison, however short it is.
    let comparing = Comparing { part: &part, question: &compared, read: &read, fewest: 0 };
    let comparison = match (comparing.ended(store)?, found.jumped()) {
        (Some(comparison), _) => comparison,
        // Windows under another load would compare nothing, and nothing may follow from the probes.
        (None, Some(Jump { n, times })) => {
            part_left_open(store, part.id)?;
            let cut_short = Unmeasured::Jumped { n, times };
            compared.comparison(&store.records(part.id)?, &read, Some(cut_short))
        }
        (None, None) => {
            let earlier = store.records(part.id)?;
            let testbed: &mut dyn Testbed = match program {
                ProgramProber::Here(prober) => {
                    // Whatever ends the search now, the program gets the number that was decided.
                    if let Some(own) = compared.default_number().sure() {
                        prober.know_own(own);
                    }
                    prober.without_deadline();
                    &mut **prober
                }
                ProgramProber::Modelled(prober) => {
                    prober.go_on_after(earlier.iter().filter_map(super::probed));
                    &mut **prober
                }
                ProgramProber::OnNodes(nodes) => {
                    nodes.begin_last(question, store.records(info.id)?, &earlier, events)?;
                    &mut **nodes
                }
            };
            comparing.measure(testbed, caller, store, events)?
        }
    };
    let shown = Some(Confirmation::of(compared, comparison, &question.request));
    Ok(Confirmed { shown, note: None, uncompared: false })
}

/// Decides what is compared.
fn contenders(
    confirming: &Confirming<'_>,
    records: &[Record],
    program: &ProgramProber,
) -> Result<Contenders, JobError> {
    let &Confirming { question, outcome, found, .. } = confirming;
    if outcome.fixed_time().is_some() {
        return Ok(Contenders::FixedTime);
    }
    let own = default(question, program)?;
    let most = question.counting()?.parameter(question.range.max);
    // A number above the user's limit is tried only if it is the program's default.
    if let Some(default) = own.n.filter(|&n| own.is_guess() && n > most)
        && question.request.max.is_some()
    {
        return Ok(Contenders::AboveMax(ThreadsNote::DefaultAboveMax { default, max: most }));
    }
    // What hurts the program is not tried again.
    let probes = found.attempts.iter().map(|attempt| &attempt.probe);
    let probes = probes.filter(|probe| !found.gave_up(probe.parameter));
    let rates: Vec<(u32, f64)> =
        probes.map(|probe| (probe.parameter, probe.progress.rate)).collect();
    let mut numbers = question.numbers()?;
    numbers.retain(|&n| !found.gave_up(n));
    let Some(n) = own.rival(found.parameter, &rates, &numbers, &outcome.notes) else {
        return Ok(Contenders::NoOther);
    };
    let timed = |shown: &ShownProbe| shown.probe.progress.measure == Measure::Runs;
    let whole = question.request.per_run || outcome.probes.iter().any(timed);
    // The time of a sweep follows from its numbers, so the comparison has the budget for itself.
    let spent = match question.request.method {
        ThreadsMethod::Survey => outcome.time,
        ThreadsMethod::Sweep | ThreadsMethod::Reinforcer => Duration::ZERO,
    };
    let time = question.request.time().saturating_sub(spent);
    // An unprobed number is compared if two windows fit, each as long as a probe was. With a floor
    // it may hurt the program in every round.
    let unprobed = found.parameter != n && rates.iter().all(|&(probed, _)| probed != n);
    let fits = time >= found.cost() * 2 / found.attempts.len().max(1) as u32;
    if unprobed && !(fits && question.request.floor().is_none()) {
        return Ok(Contenders::NoneProbed);
    }
    let [window, base] = [outcome.window, question.search.window]
        .map(|window| window.as_secs_f64().max(f64::MIN_POSITIVE));
    // Windows are shorter if such long ones would leave too few rounds.
    let fit = time.as_secs_f64() / (2 * GOOD_ROUNDS) as f64 / (MEASUREMENT * window);
    let windows = match whole {
        true => window / base,
        false => {
            // A window in which nothing can get done would count as a speed of 0.
            let enough = [Some(n), own.n].into_iter().flatten().map(|n| enough(n, records));
            enough.fold(window / base * fit.clamp(1.0, MOST_WINDOWS), f64::max)
        }
    };
    Ok(Contenders::Two(LastComparisonQuestion {
        n,
        default: own.n,
        default_known: own.known,
        as_default: false,
        placed: None,
        memory: MemoryPolicy::Leave,
        time,
        windows,
        // So narrow that fewer threads can be shown to be within the tolerance. Beside others the
        // comparison uses its time: their load may change.
        precision: outcome.others.is_none().then_some(question.request.within / 2.0),
        looks: ComparedRounds::LOOKS,
        ranked_on: outcome.ranked_on(question.contexts),
        own_load: true,
        goes_on: question.search.goes_on,
        unplaced: Vec::new(),
    }))
}

fn is_refuted(note: &ThreadsNote, choice: LastComparisonVerdict, announced: u32) -> bool {
    let kept = choice == LastComparisonVerdict::Default;
    kept && matches!(note, ThreadsNote::CutOff { n, .. } if *n != announced)
}

/// The shortest effort of a probe of `n` that showed progress, if shorter ones showed none. 0: none
/// was empty.
fn enough(n: u32, records: &[Record]) -> f64 {
    let setting = Setting::Threads(ThreadCount::unpinned(Some(n)));
    let own = records.iter().filter(|record| record.trial.setting == setting);
    let probes = own.filter_map(|record| {
        Some((record.trial.effort.windows, record.outcome.as_ref().ok()?.performance))
    });
    let (empty, full): (Vec<_>, Vec<_>) = probes.partition(|&(_, progress)| progress <= 0.0);
    let longest = empty.iter().map(|probe| probe.0).fold(0.0, f64::max);
    let longer = full.iter().map(|probe| probe.0).filter(|windows| *windows > longest);
    if empty.is_empty() { 0.0 } else { longer.reduce(f64::min).unwrap_or(longest) }
}

/// The number that the program uses on its own.
fn default(question: &ThreadsQuestion, program: &ProgramProber) -> Result<DefaultNumber, JobError> {
    if let Some(default) = question.request.default {
        return Ok(DefaultNumber::given(default));
    }
    let ThreadsProgram::Here(here) = &question.request.program else {
        return Ok(DefaultNumber::given(question.counting()?.parameter(question.contexts)));
    };
    if question.request.grants() {
        let n = question.contexts;
        let known = Some(LastComparisonNote::DefaultAssumed { n, threads: None });
        return Ok(DefaultNumber { n: Some(n), known });
    }
    Ok(match program {
        ProgramProber::Here(prober) => {
            let cpus = usable_contexts(prober.machine(), here.pid.map(Pid))?.allowed;
            DefaultNumber::of(prober, here.set.is_some(), cpus)
        }
        ProgramProber::OnNodes(nodes) => DefaultNumber::assumed(nodes.usable()?.allowed),
        ProgramProber::Modelled(_) => DefaultNumber::assumed(question.contexts),
    })
}

fn seen(question: &ThreadsQuestion, measured: &Measurement) -> Option<Seen> {
    let probed = Probed::of(measured).ok()?;
    let value = question.search.value(&probed).ok()?;
    let lost = probed.lost(question.contexts);
    let modelled = match &question.request.program {
        ThreadsProgram::Here(_) => None,
        ThreadsProgram::Modelled(_) => Some(probed.probe.cost),
    };
    let unit = question.unit(&probed.unit);
    let (others, below_floor) = (probed.others, probed.below_floor);
    Some(Seen { value, unit, others, modelled, lost, below_floor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{Purpose, Trial};
    use pinwise_measure::Effort;

    #[test]
    fn more_than_a_number_is_no_advice_where_fresh_windows_keep_another() {
        let note = ThreadsNote::CutOff { n: 4, asked: true };
        let refuted = |choice, announced| is_refuted(&note, choice, announced);
        assert!(refuted(LastComparisonVerdict::Default, 2));
        assert!(!refuted(LastComparisonVerdict::Default, 4), "the default did best");
        assert!(!refuted(LastComparisonVerdict::Undecided, 2));
        assert!(!is_refuted(&ThreadsNote::Simulated, LastComparisonVerdict::Default, 2));
    }

    #[test]
    fn fresh_windows_are_as_long_as_probes_had_to_be() {
        let record = |&(n, windows, rate): &(u32, f64, f64)| Record {
            number: 0,
            trial: Trial {
                setting: Setting::Threads(ThreadCount::unpinned(Some(n))),
                purpose: Purpose::Other,
                effort: Effort { windows },
            },
            outcome: Ok(Measurement::new(rate, Duration::ZERO)),
            elapsed: Duration::ZERO,
        };
        let enough = |n, probes: &[(u32, f64, f64)]| {
            enough(n, &probes.iter().map(record).collect::<Vec<_>>())
        };
        let probes = [
            (4, 1.0, 0.0),
            (4, 4.0, 0.0),
            (4, 16.0, 2.0),
            (4, 64.0, 2.0),
            (2, 1.0, 0.0),
            (8, 2.0, 1.0),
        ];
        assert_eq!([4, 2, 8, 1].map(|n| enough(n, &probes)), [16.0, 1.0, 0.0, 0.0]);
    }
}
