//! The answer of a search for number and placement, in words. It has the result of the last
//! comparison, why the plan does not pin, and the notes.

use crate::figures;
use crate::gain::{changed, decided_by};
use crate::note::note;
use crate::other_load::busy;
use crate::reason::{unmeasured, unmeasured_remedy};
use crate::shell::quoted;
use crate::threads::{is_set, listed};
use crate::unfinished::no_answer_yet;
use crate::verdict::NextStep;
use pinwise_campaign::{CampaignInfo, CampaignState};
use pinwise_measure::MemoryPolicy;
use pinwise_placement::{
    ComparedRounds, Gain, LastComparisonNote, LastComparisonVerdict, Outcome, TunePart, Unmeasured,
    Way,
};
use pinwise_topology::Policy;
use std::path::Path;
use std::time::Duration;

/// The last comparison, and its conclusion.
#[derive(Clone, Debug)]
pub struct TuneVerdict<'a> {
    /// The ways against each other.
    pub rounds: &'a ComparedRounds,
    /// What follows.
    pub choice: LastComparisonVerdict,
    /// A gain of this share of the default is none.
    pub within: f64,
    /// The budget of the whole search.
    pub budget: Duration,
    /// The number that was found.
    pub n: u32,
    /// The number that the program uses on its own; `None`: unknown, its variable is unset.
    pub default: Option<u32>,
    /// Why there is no placement that could take part.
    pub unplaced: Option<NoPlacement<'a>>,
    /// Share of the contexts' time that others took meanwhile, if it is notable.
    pub others: Option<f64>,
    /// Why the comparison ended before its time, if it did.
    pub cut_short: Option<&'a Unmeasured>,
}

/// Why there is no placement of a number that could be compared.
#[derive(Clone, Copy, Debug)]
pub enum NoPlacement<'a> {
    /// It was not searched for.
    Unsearched(&'a Unmeasured),
    /// Its search announced no assignment.
    Unannounced(&'a Outcome),
}

impl NoPlacement<'_> {
    fn text(self) -> String {
        match self {
            Self::Unsearched(why) => unmeasured(why),
            Self::Unannounced(outcome) => unannounced(outcome),
        }
    }
}

/// Why a search announced no assignment.
fn unannounced(outcome: &Outcome) -> String {
    let (cost, failure) = (&outcome.cost, &outcome.failure);
    match failure {
        Some(failure) if cost.classes == 0 => {
            format!("no assignment could be measured; the last failure: {}", unmeasured(failure))
        }
        _ => format!(
            "its search was too short ({} in {})",
            figures::counted(cost.measurements, "measurement"),
            figures::duration(cost.time)
        ),
    }
}

impl TuneVerdict<'_> {
    /// What pinning is compared with: the same number unpinned.
    pub fn rival(&self) -> Way {
        let takes_part = self.rounds.ways().contains(&Way::Number);
        if takes_part && self.default != Some(self.n) { Way::Number } else { Way::Default }
    }

    /// The answer and its caveats, in one text.
    pub fn text(&self) -> String {
        [vec![self.answer()], self.caveats()].concat().join(" ")
    }

    /// What to do, in a sentence or two.
    pub fn answer(&self) -> String {
        let (n, rounds) = (self.n, self.rounds);
        let over = |way, other| self.gain(way, other).unwrap_or_default();
        let number = over(Way::Number, Way::Default);
        match self.choice {
            LastComparisonVerdict::Default => {
                "Keep the default: nothing compared is better.".to_owned()
            }
            LastComparisonVerdict::Undecided => {
                let why = match rounds.gain(Way::Placed, Way::Default) {
                    _ if rounds.ways().len() < 2 => {
                        "nothing was compared with the default".to_owned()
                    }
                    _ if changed(self.cut_short).is_some() => {
                        "the load of the program changed".to_owned()
                    }
                    // Then neither is known to be worth it alone.
                    Some(both) if both.low > 0.0 => format!(
                        "n = {n}, pinned, is {} over the default. Neither change is significant \
                         by itself",
                        over(Way::Placed, Way::Default)
                    ),
                    // A gain needs two rounds.
                    _ if self.open_ways().all(|way| rounds.gain(way, Way::Default).is_none()) => {
                        format!("too few fresh windows compare {} with the default", self.open())
                    }
                    _ => format!(
                        "the intervals are too wide to rank {} against the default",
                        self.open()
                    ),
                };
                let decided = changed(self.cut_short)
                    .unwrap_or_else(|| decided_by(rounds, self.within, self.budget, self.others));
                format!("Undecided: {why}. {decided}")
            }
            LastComparisonVerdict::Number => format!("Use n = {n}: {number} over the default."),
            LastComparisonVerdict::Fewer => {
                format!("Use n = {n}: fewer threads, {number} against the default.")
            }
            LastComparisonVerdict::Placed => {
                let alone = match self.rival() {
                    Way::Default => String::new(),
                    rival => format!(" It is {} over n = {n}, unpinned.", over(Way::Placed, rival)),
                };
                format!(
                    "Use n = {n}, pinned: {} over the default.{alone}",
                    over(Way::Placed, Way::Default)
                )
            }
        }
    }

    /// What qualifies the answer: what the number does alone, and why the plan does not pin.
    pub fn caveats(&self) -> Vec<String> {
        let against = self.against(Way::Number, Way::Default, "the default");
        let alone = match (self.choice, against) {
            // The answer has it.
            (LastComparisonVerdict::Number | LastComparisonVerdict::Fewer, _)
            | (LastComparisonVerdict::Placed, Some(_)) => None,
            (_, Some(against)) => Some(format!("n = {} is {against}.", self.n)),
            (_, None) => self.same_as_default(),
        };
        let unpinned =
            (self.choice != LastComparisonVerdict::Placed).then(|| self.without_pinning());
        alone.into_iter().chain(unpinned).collect()
    }

    /// Why the number alone was not compared with the default.
    fn same_as_default(&self) -> Option<String> {
        let n = self.n;
        match self.default {
            Some(default) if default == n => Some(format!("n = {n} is the default.")),
            Some(_) if self.rival() == Way::Default => {
                Some(format!("n = {n} makes the same threads as the default."))
            }
            _ => None,
        }
    }

    /// The ways that may be better than the default, or not: `n = 3 unpinned or n = 3 pinned`
    fn open(&self) -> String {
        let open = self.open_ways().map(|way| self.name(way).replace(',', ""));
        open.collect::<Vec<_>>().join(" or ")
    }

    fn open_ways(&self) -> impl Iterator<Item = Way> {
        let ways = self.rounds.ways().iter().copied().filter(|&way| way != Way::Default);
        ways.filter(|&way| self.rounds.is_open(way, self.within))
    }

    /// Why the threads are left to the operating system.
    fn without_pinning(&self) -> String {
        if let Some(why) = &self.unplaced {
            return format!("No placement was compared: {}.", why.text());
        }
        let Some(gain) = self.rounds.gain(Way::Placed, self.rival()) else {
            return "Pinning was not compared: fewer than two rounds have a pinned and an \
                unpinned window of the number."
                .to_owned();
        };
        let why = match self.against(Way::Placed, Way::Default, "the default") {
            _ if gain.high < 0.0 => String::new(),
            _ if gain.low <= 0.0 => ". That is not significant".to_owned(),
            Some(whole) if self.rival() != Way::Default => format!(". It is {whole}"),
            _ => String::new(),
        };
        let same = self.against(Way::Placed, self.rival(), "unpinned").unwrap_or_default();
        format!("The plan does not pin: n = {}, pinned, is {same}{why}.", self.n)
    }

    /// `+12.0 % (95 % interval +8.0 % to +16.0 %, 9 rounds)`.
    fn gain(&self, way: Way, other: Way) -> Option<String> {
        let Gain { mean, low, high } = self.rounds.gain(way, other)?;
        let [mean, low, high] = [mean, low, high].map(figures::change);
        let rounds = figures::counted(self.rounds.common_rounds(way, other) as u64, "round");
        let confidence = figures::percent(self.rounds.confidence());
        Some(format!("{mean} ({confidence} interval {low} to {high}, {rounds})"))
    }

    /// A gain over `other`, whose name is given, or the loss against it.
    fn against(&self, way: Way, other: Way, name: &str) -> Option<String> {
        let text = self.gain(way, other)?;
        Some(match self.rounds.gain(way, other)? {
            Gain { high, .. } if high < 0.0 => format!("slower than {name}, {text}"),
            Gain { mean, .. } if mean < 0.0 => format!("{text} against {name}"),
            _ => format!("{text} over {name}"),
        })
    }

    /// `n = 2, pinned`
    pub fn name(&self, way: Way) -> String {
        let number = |n: u32| format!("n = {n}");
        match way {
            Way::Default => {
                let n = self.default.map_or("its own number of threads".to_owned(), number);
                format!("default: {n}, unpinned")
            }
            Way::Number => format!("{}, unpinned", number(self.n)),
            Way::Placed => format!("{}, pinned", number(self.n)),
        }
    }
}

/// In place of a verdict, if there is none.
pub fn no_tune_verdict(info: &CampaignInfo) -> String {
    let why = match info.state {
        CampaignState::Finished => "No answer: too few fresh windows were measured to decide.",
        _ => no_answer_yet(info),
    };
    format!("{why} There is no plan.")
}

/// What to do with the plan of such a search. `command` is the program's command line, if the
/// program is started with the number. `named`: variables of the plan that `run` needs by `--env`.
pub fn tune_next(plan: &Path, command: Option<&str>, named: &[String]) -> NextStep {
    let plan = quoted(&plan.to_string_lossy());
    let named: String = named.iter().map(|name| format!(" --env {}", quoted(name))).collect();
    match command {
        Some(command) => NextStep {
            what: "start the program as the plan says",
            command: format!("pinwise run{named} {plan} -- {command}"),
        },
        None => NextStep {
            what: "give a running process the number, and pin it, as the plan says",
            command: format!("pinwise apply {plan} --set --pid PID"),
        },
    }
}

/// `compact`, `unpinned`
pub fn policy_name(policy: Option<Policy>) -> &'static str {
    policy.map_or("unpinned", Policy::name)
}

/// A policy, and that of memory unless it is left alone: `compact, memory interleave`.
pub fn placed_by(policy: Option<Policy>, memory: MemoryPolicy) -> String {
    match memory {
        MemoryPolicy::Leave => policy_name(policy).to_owned(),
        moved => format!("{}, memory {}", policy_name(policy), moved.name()),
    }
}

/// A part in a few words: `placement of n = 4, round 2`.
pub fn tune_part(part: TunePart) -> String {
    match part {
        TunePart::Threads => "number of threads".to_owned(),
        TunePart::Policies => "policies of placement".to_owned(),
        TunePart::Place { n, round } => format!("placement of n = {n}, round {round}"),
        TunePart::LastComparison => "last comparison".to_owned(),
    }
}

/// A note, as a sentence that begins small and has no full stop.
pub fn last_comparison_note(about: &LastComparisonNote) -> String {
    match about {
        LastComparisonNote::DefaultAssumed { n, threads } => {
            let why = threads.map_or(String::new(), |threads| {
                let threads = figures::counted(u64::from(threads), "thread");
                format!("no n fits its {threads}: ")
            });
            format!("{why}n = {n}, one for each context, is taken as the default; set --default N")
        }
        LastComparisonNote::DefaultInferred { n, threads } => format!(
            "n = {n} is taken as the default, from its {} before the search; set it with \
             --default N",
            figures::counted(u64::from(*threads), "thread")
        ),
        LastComparisonNote::NotMeasured { n, policy, error } => {
            format!(
                "n = {n}, {}, was not measured: {error}; check that and repeat",
                policy_name(*policy)
            )
        }
        LastComparisonNote::NotPlaced { n, reason } => {
            format!("n = {n} could not be placed: {}", ended(reason))
        }
        LastComparisonNote::WhilePlaced { numbers, note: met } => {
            let were = if numbers.len() == 1 { "was" } else { "were" };
            format!("while n = {} {were} placed, {}", listed(numbers), note(met))
        }
        LastComparisonNote::Busy { share } => busy(*share, "measurements"),
        LastComparisonNote::ComparisonBusy { share } => busy(*share, "last comparison"),
        LastComparisonNote::RoundsStarved { rounds, of } => {
            format!("{rounds} of {of} rounds do not count: others took CPU time from it; stop them")
        }
        LastComparisonNote::WindowsMissing { windows, error } => {
            let windows = match windows {
                0 => "windows".to_owned(),
                windows => figures::counted(*windows, "window"),
            };
            format!("missing in the last comparison: {windows} ({error}); check that and repeat")
        }
        LastComparisonNote::CutShort { rounds, reason } => {
            let rounds = figures::counted(*rounds, "round");
            format!("the last comparison ended after {rounds}: {}", ended(reason))
        }
        LastComparisonNote::FewRounds { rounds } => format!(
            "only {} of the last comparison fit the budget: raise --budget for narrower intervals",
            figures::counted(*rounds, "round")
        ),
        LastComparisonNote::Set { n, pins: false } => is_set(*n),
        LastComparisonNote::Set { n, pins: true } => {
            format!("{}; pin with: pinwise apply PLAN --pid PID", is_set(*n))
        }
        LastComparisonNote::Text { text } => text.clone(),
    }
}

/// Why a part ended, and what to do, in a few words.
fn ended(reason: &Unmeasured) -> String {
    match reason {
        Unmeasured::Jumped { .. } => "its load changed; search again when it is steady".to_owned(),
        reason => unmeasured_remedy(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_a_search_have_kind_values_and_text() {
        let busy = pinwise_measure::ProgramNote::Busy { share: 0.5 };
        let about = LastComparisonNote::WhilePlaced { numbers: vec![2, 4], note: busy };
        let text = last_comparison_note(&about);
        assert!(text.starts_with("while n = 2, 4 were placed, the machine was busy"), "{text}");
        let nested = serde_json::json!({ "kind": "busy", "share": 0.5 });
        let whole = serde_json::json!({
            "kind": "while_placed", "numbers": [2, 4], "note": nested, "text": text,
        });
        assert_eq!(crate::tagged(&about, text), whole);
        let few = last_comparison_note(&LastComparisonNote::FewRounds { rounds: 1 });
        assert!(few.starts_with("only 1 round of the last"), "{few}");
    }

    /// Six rounds of the ways with these speeds, each a little off.
    fn rounds(speeds: &[(Way, f64)]) -> ComparedRounds {
        let mut rounds = ComparedRounds::new(speeds.iter().map(|(way, _)| *way).collect(), 0.95);
        for round in 0..6 {
            let off = |place: usize| 1.0 + 0.001 * f64::from((round + place as i32 * 2) % 3);
            rounds.take(
                speeds
                    .iter()
                    .enumerate()
                    .map(|(place, (_, speed))| Some(speed * off(place)))
                    .collect(),
            );
        }
        rounds
    }

    fn told(speeds: &[(Way, f64)], default: Option<u32>, unplaced: Option<&Unmeasured>) -> String {
        let rounds = rounds(speeds);
        let choice = rounds.choice(false, 0.01);
        TuneVerdict {
            rounds: &rounds,
            choice,
            within: 0.01,
            budget: Duration::from_secs(60),
            n: 3,
            default,
            unplaced: unplaced.map(NoPlacement::Unsearched),
            others: None,
            cut_short: None,
        }
        .text()
    }

    #[test]
    fn the_reason_against_pinning_is_shown() {
        use Way::{Default, Number, Placed};
        let same = told(&[(Default, 1.0), (Placed, 1.0)], Some(3), None);
        assert!(same.contains("n = 3 is the default. The plan does not pin: "), "{same}");
        assert!(same.ends_with("over unpinned. That is not significant."), "{same}");
        let slower = told(&[(Default, 1.0), (Number, 1.5), (Placed, 1.2)], Some(2), None);
        assert!(
            slower.starts_with("Use n = 3: ")
                && slower.contains("does not pin: n = 3, pinned, is slower than unpinned, -"),
            "{slower}"
        );
        let less = told(&[(Default, 1.0), (Number, 0.8), (Placed, 0.9)], Some(2), None);
        assert!(less.contains(" n = 3 is slower than the default, -"), "{less}");
        assert!(less.contains("unpinned. It is slower than the default, -"), "{less}");
        let alike = told(&[(Default, 1.0), (Placed, 1.0)], Some(4), None);
        assert!(
            alike.contains(" n = 3 makes the same threads as the default. The plan "),
            "{alike}"
        );
        let fast = Unmeasured::Failed { error: "they come and go too fast".into() };
        let none = told(&[(Default, 1.0), (Number, 1.5)], None, Some(&fast));
        assert!(none.ends_with("No placement was compared: they come and go too fast."), "{none}");
        let alone = told(&[(Default, 1.0)], Some(3), Some(&Unmeasured::NoTime));
        assert!(
            alone.starts_with(
                "Undecided: nothing was compared with the default. To decide it, raise --budget to \
                 2m. n = 3 is the default. No placement was compared: "
            ),
            "the answer comes before its caveats: {alone}"
        );
        let unmeasured = told(&[(Default, 1.0), (Number, 1.5)], None, None);
        assert!(unmeasured.contains("Pinning was not compared"), "{unmeasured}");
    }

    #[test]
    fn a_gain_of_number_and_pinning_together_is_shown() {
        use Way::{Default, Number, Placed};
        // Each a little faster than the one before, and not beyond its interval; both together are.
        let mut rounds = ComparedRounds::new(vec![Default, Number, Placed], 0.95);
        for round in 0..6 {
            let off = 0.12 * f64::from(round % 2);
            rounds.take(vec![Some(1.0), Some(1.01 + off), Some(1.10)]);
        }
        let choice = rounds.choice(false, 0.01);
        let (low, both) =
            (rounds.gain(Number, Default).unwrap().low, rounds.gain(Placed, Default).unwrap().low);
        assert!(
            choice == LastComparisonVerdict::Undecided && low <= 0.0 && both > 0.0,
            "{choice:?} {low} {both}"
        );
        let compared = TuneVerdict {
            rounds: &rounds,
            choice,
            within: 0.01,
            budget: Duration::from_secs(60),
            n: 3,
            default: Some(2),
            unplaced: None,
            others: None,
            cut_short: None,
        };
        let told = compared.text();
        assert!(told.starts_with("Undecided: n = 3, pinned, is +10.0 % "), "{told}");
        assert!(
            told.contains("Neither change is significant by itself") && !told.contains("too wide"),
            "{told}"
        );

        let mut once = ComparedRounds::new(vec![Default, Number], 0.95);
        once.take(vec![Some(1.0), Some(2.0)]);
        let told =
            TuneVerdict { rounds: &once, choice: once.choice(false, 0.01), ..compared }.text();
        assert!(
            told.starts_with("Undecided: too few fresh windows compare n = 3 unpinned with the "),
            "no interval that could be too wide: {told}"
        );
    }

    #[test]
    fn what_others_took_is_a_caveat_and_no_part_of_the_verdict() {
        use Way::{Default, Number, Placed};
        let of = |speeds: &[f64]| {
            let rounds = rounds(
                &[Default, Number, Placed]
                    .into_iter()
                    .zip(speeds.iter().copied())
                    .collect::<Vec<_>>(),
            );
            let choice = rounds.choice(true, 0.01);
            TuneVerdict {
                rounds: &rounds,
                choice,
                within: 0.01,
                budget: Duration::from_secs(60),
                n: 3,
                default: None,
                unplaced: None,
                others: Some(0.89),
                cut_short: None,
            }
            .text()
        };
        for speeds in [[1.0, 1.5, 2.0], [1.0, 1.5, 1.2], [1.0, 1.0, 0.9], [1.0, 0.8, 0.7]] {
            let told = of(&speeds);
            assert!(!told.contains("89 %"), "{told}");
        }
    }
}
