//! The answer of a search for a number, alone or with a placement, and its notes.

use crate::figures;
use crate::note::{sentence, tagged};
use crate::number_advice::advice_text;
use crate::threads::{NothingCompared, NumberVerdict, threads_note};
use crate::tune::last_comparison_note;
use crate::unfinished::no_answer_yet;
use pinwise_campaign::CampaignInfo;
use pinwise_measure::ProgramNote;
use pinwise_placement::LastComparisonNote;
use pinwise_threads::{NumberAdvice, NumberSearchError, ThreadsNote};
use serde_json::Value;

/// What a search for a number answers.
#[derive(Clone, Debug)]
pub enum NumberAnswer<'a> {
    /// What fresh windows decide.
    Decided(NumberVerdict<'a>),
    /// Fresh windows should have compared something, and did not.
    NothingCompared(NothingCompared),
    /// There is no other number to compare with on fresh windows.
    OnlyNumber {
        /// The number.
        n: u32,
        /// The threads that it makes.
        threads: u32,
        /// Other numbers that fell below the floor.
        below_floor: usize,
    },
    /// The search takes no fresh windows. If anything confirms its number, something else does.
    Unconfirmed(NumberEstimate),
}

impl NumberAnswer<'_> {
    /// The answer in a sentence or two.
    pub fn text(&self) -> String {
        match self {
            Self::Decided(verdict) => verdict.text(),
            Self::NothingCompared(nothing) => nothing.text(),
            Self::OnlyNumber { n, threads, below_floor } => {
                let threads = figures::counted(u64::from(*threads), "thread");
                match below_floor {
                    0 => format!("n = {n} ({threads}) is the only possible number."),
                    1 => format!("Keep n = {n} ({threads}): the other number fell below --floor."),
                    all => format!(
                        "Keep n = {n} ({threads}): all {all} other numbers fell below --floor."
                    ),
                }
            }
            Self::Unconfirmed(estimate) => sentence(&estimate.unconfirmed()),
        }
    }
}

/// The answer of the probes: the number, and how sure it is.
#[derive(Clone, Debug)]
pub struct NumberEstimate {
    /// The number.
    pub n: u32,
    /// The threads that it makes.
    pub threads: u32,
    /// How sure it is; `None`: the search does not say.
    pub advice: Option<NumberAdvice>,
}

impl NumberEstimate {
    /// The estimate in a line.
    pub fn text(&self) -> String {
        let threads = || figures::counted(u64::from(self.threads), "thread");
        let advice = self.advice.as_ref();
        advice.map_or_else(|| format!("n = {} ({})", self.n, threads()), advice_text)
    }

    /// The estimate where fresh windows may decide otherwise. Its intervals hold only if the probes
    /// were like later windows. It begins small and has no full stop.
    pub fn unconfirmed(&self) -> String {
        format!("by the probes, not confirmed: {}", self.text())
    }
}

/// In place of the answer of a search that has none. `why`: the search can have none.
pub fn no_number(info: &CampaignInfo, why: Option<&NumberSearchError>) -> String {
    why.map_or_else(|| no_answer_yet(info).to_owned(), |why| format!("No answer: {why}."))
}

fn of_search(note: &ThreadsNote) -> Value {
    tagged(note, sentence(&threads_note(note)))
}

fn of_comparison(note: &LastComparisonNote) -> Value {
    tagged(note, sentence(&last_comparison_note(note)))
}

/// Notes on a search for a number, then those on its fresh windows, each with its kind and values.
/// One note says that the machine was busy: the one about the windows that decide.
pub fn tagged_threads_notes(search: &[ThreadsNote], fresh: &[LastComparisonNote]) -> Vec<Value> {
    let is_busy = |note: &LastComparisonNote| {
        matches!(note, LastComparisonNote::Busy { .. } | LastComparisonNote::ComparisonBusy { .. })
    };
    let busy = fresh.iter().any(is_busy);
    let search = search.iter().filter(|note| !(busy && matches!(note, ThreadsNote::Busy { .. })));
    search.map(of_search).chain(fresh.iter().map(of_comparison)).collect()
}

/// Notes on the search for the number, then the rest, each with its kind and values. One note says
/// for all stages that the machine was busy, with the largest share.
pub fn tagged_tune_notes(number: &[ThreadsNote], rest: &[LastComparisonNote]) -> Vec<Value> {
    let busy_there = |note: &ThreadsNote| match note {
        ThreadsNote::Busy { share } => Some(*share),
        _ => None,
    };
    let busy_here = |note: &LastComparisonNote| match note {
        LastComparisonNote::Busy { share }
        | LastComparisonNote::ComparisonBusy { share }
        | LastComparisonNote::WhilePlaced { note: ProgramNote::Busy { share }, .. } => Some(*share),
        _ => None,
    };
    let shares = number.iter().filter_map(busy_there).chain(rest.iter().filter_map(busy_here));
    let busy = shares.reduce(f64::max).map(|share| LastComparisonNote::Busy { share });
    let number = number.iter().filter(|note| busy_there(note).is_none());
    let rest = rest.iter().filter(|note| busy_here(note).is_none());
    busy.iter()
        .map(of_comparison)
        .chain(number.map(of_search))
        .chain(rest.map(of_comparison))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_advice_the_estimate_is_the_number_and_its_threads() {
        let estimate = NumberEstimate { n: 4, threads: 5, advice: None };
        assert_eq!(estimate.text(), "n = 4 (5 threads)");
        let text = NumberAnswer::Unconfirmed(estimate.clone()).text();
        assert_eq!(text, "By the probes, not confirmed: n = 4 (5 threads).");
    }

    #[test]
    fn a_number_without_another_one_is_an_answer_and_not_an_interval() {
        let text = |below_floor| NumberAnswer::OnlyNumber { n: 2, threads: 3, below_floor }.text();
        assert_eq!(text(0), "n = 2 (3 threads) is the only possible number.");
        assert_eq!(text(1), "Keep n = 2 (3 threads): the other number fell below --floor.");
        assert_eq!(text(2), "Keep n = 2 (3 threads): all 2 other numbers fell below --floor.");
    }

    #[test]
    fn one_note_says_for_all_stages_that_the_machine_was_busy() {
        let there = [ThreadsNote::Busy { share: 0.2 }, ThreadsNote::SingleRuns];
        let here = [
            LastComparisonNote::ComparisonBusy { share: 0.5 },
            LastComparisonNote::FewRounds { rounds: 1 },
            LastComparisonNote::WhilePlaced {
                numbers: vec![4],
                note: ProgramNote::Busy { share: 0.3 },
            },
        ];
        let kinds = |notes: Vec<Value>| -> Vec<(Value, Value)> {
            notes.iter().map(|note| (note["kind"].clone(), note["share"].clone())).collect()
        };
        let none = Value::Null;
        let of = |kind: &str| (Value::from(kind), none.clone());
        let busy = ("busy".into(), 0.5.into());
        let together = kinds(tagged_tune_notes(&there, &here));
        assert_eq!(together, [busy, of("single_runs"), of("few_rounds")]);
        let apart = kinds(tagged_threads_notes(&there, &here));
        assert_eq!(apart[..2], [of("single_runs"), ("comparison_busy".into(), 0.5.into())]);
    }
}
