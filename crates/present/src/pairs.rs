//! What pairs of programs show, in the sentences and tables that the terminal and the page share.

use crate::counter_quality::counter_sentences;
use crate::figures::{self, Scale, percent};
use crate::note::sentence;
use pinwise_coscheduling::{
    CounterModel, PairMargin, PairOutcome, Pairing, PairsOutcome, PairsSearch, PairsVerdict,
    ProgramGroup, ProgramGroups, Resampled, SoloOutcome,
};
use pinwise_measure::{CounterQuality, Unit};
use pinwise_topology::{CpuSet, DomainKind};

/// An outcome with the names of its programs.
#[derive(Clone, Copy, Debug)]
pub struct PairsFindings<'a> {
    /// The outcome.
    pub outcome: &'a PairsOutcome,
    /// A short name of each program.
    pub names: &'a [String],
    /// The whole command of each.
    pub commands: &'a [String],
    /// The confidence of the pairing and of every interval.
    pub confidence: f64,
    /// Whether other programs took part of the machine, and a pair fills it.
    pub busy: bool,
    /// Whether the campaign has not ended.
    pub unfinished: bool,
    /// What predicted the pairs that were not measured.
    pub model: Option<&'a CounterModel>,
    /// The most programs that share the level.
    pub width: usize,
}

/// Pairs that a sentence names at most.
const MOST_APART: usize = 3;

impl PairsFindings<'_> {
    /// Who runs beside whom, in one sentence or two: the first line of the answer.
    pub fn verdict(&self) -> String {
        let PairsOutcome { verdict, pairing, pairs, .. } = self.outcome;
        match (verdict, pairing) {
            (PairsVerdict::Alone, _) if self.busy => {
                "Under this load no two programs gain: repeat when quiet before you separate them."
                    .to_owned()
            }
            (PairsVerdict::Alone, _) => {
                "Run each program alone: no two gain beside each other.".to_owned()
            }
            (PairsVerdict::Undecided, Some(best)) => {
                let (best, rival) = (self.pairing(best), self.outcome.rival.as_ref());
                let rival =
                    rival.map(|rival| format!(" This may be better: {}.", self.pairing(rival)));
                format!("Undecided. Best so far: {best}.{}", rival.unwrap_or_default())
            }
            (PairsVerdict::Paired, Some(best)) => sentence(&self.pairing(best)),
            _ => {
                let programs = self.names.len();
                let of = programs * (programs.max(1) - 1) / 2;
                let apart = |pair: &&PairOutcome| pair.programs[0] != pair.programs[1];
                let made = pairs.iter().filter(apart).count();
                format!(
                    "No pairing yet: {made} of {of} pairs are known. A pair needs runs of both \
                     programs alone, too."
                )
            }
        }
    }

    /// What the pairing gains, what would decide it, and what else there is to say.
    pub fn sentences(&self) -> Vec<String> {
        let outcome = self.outcome;
        let mut sentences = Vec::new();
        let confident = format!("({} confidence)", percent(self.confidence));
        if let Some(gain) = outcome.gain {
            let paired = outcome.pairing.as_ref().is_some_and(|best| !best.pairs.is_empty());
            let over = format!(
                "{} over a random pairing{}{}.",
                figures::change(gain.value),
                self.interval(&gain, figures::change),
                // Programs alone have no runs at the end.
                if paired { ", from fresh runs" } else { "" }
            );
            let begin = match outcome.verdict {
                PairsVerdict::Undecided => "The best so far is",
                PairsVerdict::Paired if !gain.is_above(0.0) => "It hardly matters:",
                _ => "That is",
            };
            sentences.push(format!("{begin} {over}"));
        } else if self.names.len() > 2 && outcome.per_slot.is_none() && outcome.pairing.is_some() {
            // Two programs have one pairing, which gains nothing over itself.
            let more = if self.unfinished { "" } else { ": give a larger --budget" };
            sentences.push(format!("No fresh runs show its gain{more}."));
        }
        match outcome.verdict {
            PairsVerdict::Paired | PairsVerdict::Alone => {
                sentences.push(format!("No other pairing is better by 1 % or more {confident}."));
            }
            // To resume it measures more.
            PairsVerdict::Undecided | PairsVerdict::Incomplete if self.unfinished => {}
            PairsVerdict::Incomplete if outcome.measurements > 0 => {
                let programs = self.names.len();
                let all = PairsSearch::least(programs) + PairsSearch::fresh(programs);
                let times = all.div_ceil(outcome.measurements).max(2);
                sentences.push(format!("Give a --budget about {times} times as large."));
            }
            PairsVerdict::Undecided | PairsVerdict::Incomplete => {
                sentences.push("Measure more to decide: give a larger --budget.".to_owned());
            }
        }
        if let (Some(model), Some(saved)) = (self.model, self.saved()) {
            let (programs, margin) = (self.names.len(), model.margin(self.confidence));
            let pairs = figures::counted((programs * (programs.max(1) - 1) / 2) as u64, "pair");
            sentences.push(format!(
                "{saved} of {pairs} saved: a model of {} programs predicts them from runs alone, \
                 each to within {} ({}).",
                model.programs.len(),
                ratio(margin.value()),
                match margin {
                    PairMargin::Confident(_) => percent(self.confidence),
                    PairMargin::LargestError(_) => {
                        format!("the largest error of {} programs", model.programs.len())
                    }
                },
            ));
        }
        if self.busy {
            sentences.push(
                "Other programs ran meanwhile. Two programs fill the machine, so pairs look worse \
                 than they are. Repeat when quiet."
                    .to_owned(),
            );
        }
        for &program in &outcome.apart {
            let name = &self.names[program];
            let so = if self.busy { ", under this load" } else { ": run it alone" };
            sentences.push(format!("{name} loses beside every other program{so}."));
        }
        sentences.extend(self.kept_apart());
        sentences.extend(self.in_groups());
        if let [best, .., worst] = &outcome.neighbours[..]
            && self.names.len() > 2
        {
            sentences.push(format!(
                "Best neighbour: {}; the others keep {} of their speed beside it. Worst: {}, {}.",
                self.names[best.program],
                percent(best.leaves.value),
                self.names[worst.program],
                percent(worst.leaves.value)
            ));
        }
        let counters = CounterQuality::mean(outcome.counters.iter().flatten());
        sentences.extend(counters.iter().flat_map(counter_sentences));
        sentences
    }

    /// The groups of a level that more than two programs share; `None` before each pair is known.
    pub fn groups(&self) -> Option<ProgramGroups> {
        ProgramGroups::of(self.outcome, self.width)
    }

    /// The same in words.
    fn in_groups(&self) -> Option<String> {
        let groups = self.groups()?;
        let named = |group: &ProgramGroup| {
            let names: Vec<&str> =
                group.programs.iter().map(|&program| self.names[program].as_str()).collect();
            format!("{} ({})", names.join(" + "), ratio(group.weighted_speedup))
        };
        let named: Vec<String> = groups.groups.iter().map(named).collect();
        Some(format!(
            "Up to {} programs share the level. In such groups: {}. This is an estimate from \
             pairs: measure the groups before you rely on it.",
            groups.width,
            named.join(", ")
        ))
    }

    /// The pairs that lose beyond their intervals, the worst first, unless another sentence names
    /// their programs.
    fn kept_apart(&self) -> Option<String> {
        let outcome = self.outcome;
        if self.names.len() < 3 || outcome.verdict == PairsVerdict::Alone {
            return None;
        }
        let loses = |pair: &&PairOutcome| {
            pair.programs[0] != pair.programs[1]
                && pair.weighted_speedup.is_below(1.0)
                && !pair.programs.iter().any(|program| outcome.apart.contains(program))
        };
        let losing: Vec<&PairOutcome> = self.best_first().into_iter().rev().filter(loses).collect();
        let named = |pair: &&PairOutcome| {
            let [one, other] = pair.programs.map(|program| &self.names[program]);
            format!("{one} and {other} ({})", ratio(pair.weighted_speedup.value))
        };
        let first: Vec<String> = losing.iter().take(MOST_APART).map(named).collect();
        let more = match losing.len().saturating_sub(MOST_APART) {
            0 => String::new(),
            more => format!(" and {}", figures::counted(more as u64, "other pair")),
        };
        let list = first.join(", ");
        (!first.is_empty()).then(|| match self.busy {
            true => format!("Under this load, these lose beside each other: {list}{more}."),
            false => format!("Keep these apart: {list}{more}. Each pair takes longer together."),
        })
    }

    /// `run a beside b, c beside d; run e alone`
    pub fn pairing(&self, pairing: &Pairing) -> String {
        let name = |program: &usize| self.names[*program].as_str();
        let pairs = pairing.pairs.iter();
        let pairs: Vec<String> =
            pairs.map(|[one, other]| format!("{} beside {}", name(one), name(other))).collect();
        let alone: Vec<&str> = pairing.alone.iter().map(name).collect();
        let mut parts = Vec::new();
        if !pairs.is_empty() {
            parts.push(format!("run {}", pairs.join(", ")));
        }
        if !alone.is_empty() {
            parts.push(format!("run {} alone", alone.join(", ")));
        }
        parts.join("; ")
    }

    /// ` (95 % interval 1.2 to 1.4)`; empty without one.
    fn interval(&self, number: &Resampled, show: impl Fn(f64) -> String) -> String {
        let (Some(low), Some(high)) = (number.low, number.high) else { return String::new() };
        format!(" ({} interval {} to {})", percent(self.confidence), show(low), show(high))
    }

    /// The head of [`Self::pair_row`].
    pub const PAIR_HEAD: [&'static str; 7] =
        ["pair", "weighted speed-up", "interval", "speed-up", "interval", "unfairness", "runs"];

    /// A pair in a table.
    pub fn pair_row(&self, pair: &PairOutcome) -> [String; 7] {
        let [one, other] = pair.programs;
        // The model's error is known of the weighted speed-up alone.
        let speedup = if pair.is_predicted() { String::new() } else { ends(&pair.speedup, ratio) };
        [
            format!("{} beside {}", self.names[one], self.names[other]),
            ratio(pair.weighted_speedup.value),
            ends(&pair.weighted_speedup, ratio),
            ratio(pair.speedup.value),
            speedup,
            ratio(pair.unfairness.value),
            match pair.is_predicted() {
                true => "predicted".to_owned(),
                // All runs of a program beside itself count for both.
                false if one == other => pair.runs[0].to_string(),
                false => format!("{} + {}", pair.runs[0], pair.runs[1]),
            },
        ]
    }

    /// All pairs, the best first.
    pub fn best_first(&self) -> Vec<&PairOutcome> {
        let mut pairs: Vec<&PairOutcome> = self.outcome.pairs.iter().collect();
        pairs.sort_by(|one, other| {
            other.weighted_speedup.value.total_cmp(&one.weighted_speedup.value)
        });
        pairs
    }

    /// The head of [`Self::program_row`].
    pub const PROGRAM_HEAD: [&'static str; 6] =
        ["", "program", "a run alone", "interval", "runs", "leaves others"];

    /// A program in a table, with its number.
    pub fn program_row(&self, program: usize) -> [String; 6] {
        let alone = self.outcome.alone[program];
        let seconds = |seconds: f64| 1.0 / seconds;
        let scale =
            |alone: &SoloOutcome| Scale::new(&Unit::cost("s"), seconds(alone.seconds.value));
        let own = |neighbour: &&pinwise_coscheduling::Neighbour| neighbour.program == program;
        let leaves = self.outcome.neighbours.iter().find(own);
        [
            (program + 1).to_string(),
            self.names[program].clone(),
            alone.map_or(String::new(), |alone| scale(&alone).show(seconds(alone.seconds.value))),
            alone.map_or(String::new(), |alone| {
                let scale = scale(&alone);
                match (alone.seconds.low, alone.seconds.high) {
                    (Some(low), Some(high)) => scale.ends(seconds(high), seconds(low)),
                    _ => String::new(),
                }
            }),
            alone.map_or(0, |alone| alone.runs).to_string(),
            leaves.map_or(String::new(), |leaves| percent(leaves.leaves.value)),
        ]
    }

    /// What each program is, by its number, where its name does not say it.
    pub fn legend(&self) -> Vec<String> {
        let named = self.names.iter().zip(self.commands).enumerate();
        let named = named.filter(|(_, (name, command))| name.split('#').next() != Some(command));
        named.map(|(number, (name, command))| format!("{} {name}: {command}", number + 1)).collect()
    }

    /// The weighted speed-up of two programs; `None` if it is not known.
    pub fn weighted_speedup(&self, one: usize, other: usize) -> Option<f64> {
        Some(self.pair(one, other)?.weighted_speedup.value)
    }

    /// The same in a table: `1.14`, or `~1.14` if it is predicted.
    pub fn cell(&self, one: usize, other: usize) -> Option<String> {
        let pair = self.pair(one, other)?;
        let mark = if pair.is_predicted() { "~" } else { "" };
        Some(format!("{mark}{}", ratio(pair.weighted_speedup.value)))
    }

    fn pair(&self, one: usize, other: usize) -> Option<&PairOutcome> {
        let programs = [one.min(other), one.max(other)];
        self.outcome.pairs.iter().find(|pair| pair.programs == programs)
    }

    /// How many pairs of two programs were not measured, because a model predicts them; `None`
    /// without a model.
    pub fn saved(&self) -> Option<usize> {
        let saved =
            |pair: &&PairOutcome| pair.is_predicted() && pair.programs[0] != pair.programs[1];
        self.model.map(|_| self.outcome.pairs.iter().filter(saved).count())
    }
}

/// Where two programs ran, and how often.
pub fn pairs_ran(level: DomainKind, contexts: &[CpuSet; 2], measurements: u64) -> String {
    let ([one, other], level) = (contexts, level.name());
    let were = if measurements == 1 { "was" } else { "were" };
    format!(
        "Two programs share one {level}: one ran on context {one}, the other on {other}. {} \
         {were} made.",
        figures::counted(measurements, "measurement")
    )
}

/// `1.42`
pub fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

fn ends(number: &Resampled, show: impl Fn(f64) -> String) -> String {
    match (number.low, number.high) {
        (Some(low), Some(high)) => format!("{} to {}", show(low), show(high)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_coscheduling::PairsQuestion;
    use pinwise_coscheduling::PairsVerdict::{Alone, Incomplete, Paired, Undecided};

    /// Findings of a finished campaign on a quiet machine, whose programs share cores by two.
    fn findings<'a>(outcome: &'a PairsOutcome, names: &'a [String]) -> PairsFindings<'a> {
        PairsFindings {
            outcome,
            names,
            commands: names,
            confidence: 0.95,
            busy: false,
            unfinished: false,
            model: None,
            width: 2,
        }
    }

    #[test]
    fn a_budget_that_did_not_reach_every_pair_is_told_how_much_larger_it_should_be() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let mut outcome = PairsOutcome::of(&[], 3, &PairsQuestion::default());
        outcome.measurements = 4;
        let advice = findings(&outcome, &names).sentences().join(" ");
        // 3 programs alone twice, 6 pairs, and 9 fresh measurements.
        assert_eq!(advice, "Give a --budget about 6 times as large.");
    }

    #[test]
    fn each_verdict_says_what_to_do() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let gain = |low| Some(Resampled { value: 0.05, low: Some(low), high: Some(0.1) });
        let pairing = |one, other, alone| Pairing { pairs: vec![[one, other]], alone: vec![alone] };
        let said = |verdict, gain| {
            let mut outcome = PairsOutcome::of(&[], 3, &PairsQuestion::default());
            outcome.verdict = verdict;
            outcome.gain = gain;
            outcome.pairing = match verdict {
                Incomplete => None,
                Alone => Some(Pairing { pairs: vec![], alone: vec![0, 1, 2] }),
                Paired | Undecided => Some(pairing(0, 2, 1)),
            };
            outcome.rival = (verdict == Undecided).then(|| pairing(0, 1, 2));
            let findings = findings(&outcome, &names);
            [vec![findings.verdict()], findings.sentences()].concat().join(" ")
        };
        let over = "over a random pairing (95 % interval";
        let sure = "No other pairing is better by 1 % or more (95 % confidence).";
        let more = "Measure more to decide: give a larger --budget.";
        for (verdict, gain, text) in [
            (
                Paired,
                gain(0.01),
                format!(
                    "Run a beside c; run b alone. That is +5.0 % {over} +1.0 % to +10.0 %), from \
                     fresh runs. {sure}"
                ),
            ),
            (
                Paired,
                gain(-0.01),
                format!(
                    "Run a beside c; run b alone. It hardly matters: +5.0 % {over} -1.0 % to \
                     +10.0 %), from fresh runs. {sure}"
                ),
            ),
            (
                Undecided,
                None,
                format!(
                    "Undecided. Best so far: run a beside c; run b alone. This may be better: run \
                     a beside b; run c alone. No fresh runs show its gain: give a larger \
                     --budget. {more}"
                ),
            ),
            (
                Alone,
                gain(0.01),
                format!(
                    "Run each program alone: no two gain beside each other. That is +5.0 % {over} \
                     +1.0 % to +10.0 %). {sure}"
                ),
            ),
            (
                Undecided,
                gain(0.01),
                format!(
                    "Undecided. Best so far: run a beside c; run b alone. This may be better: run \
                     a beside b; run c alone. The best so far is +5.0 % {over} +1.0 % to +10.0 %), \
                     from fresh runs. {more}"
                ),
            ),
            (
                Incomplete,
                None,
                format!(
                    "No pairing yet: 0 of 3 pairs are known. A pair needs runs of both programs \
                     alone, too. {more}"
                ),
            ),
        ] {
            assert_eq!(said(verdict, gain), text);
        }
    }

    #[test]
    fn a_load_an_unfinished_campaign_and_two_programs_change_what_is_said() {
        let said = |programs: usize, verdict, busy, unfinished| {
            let names: Vec<String> =
                ["a", "b", "c"][..programs].iter().map(|&name| name.into()).collect();
            let mut outcome = PairsOutcome::of(&[], programs, &PairsQuestion::default());
            (outcome.verdict, outcome.apart) = (verdict, vec![0]);
            outcome.pairing = (verdict != Incomplete)
                .then(|| Pairing { pairs: vec![], alone: (0..programs).collect() });
            let findings = PairsFindings { busy, unfinished, ..findings(&outcome, &names) };
            [vec![findings.verdict()], findings.sentences()].concat().join(" ")
        };
        let quiet = said(3, Alone, false, false);
        assert!(quiet.starts_with("Run each program alone") && quiet.contains(": run it alone"));
        assert!(quiet.contains("No fresh runs show its gain: give a larger --budget."));
        let busy = said(3, Alone, true, false);
        assert!(busy.starts_with("Under this load no two programs gain: repeat when quiet"));
        assert!(busy.contains("a loses beside every other program, under this load."), "{busy}");
        let two = said(2, Alone, false, false);
        assert!(!two.contains("fresh runs") && !two.contains("--budget"), "{two}");
        assert!(said(3, Incomplete, false, false).contains("--budget"));
        assert!(!said(3, Incomplete, false, true).contains("--budget"));
    }

    #[test]
    fn predicted_pairs_are_marked_and_those_that_were_saved_are_counted() {
        let seed = include_str!("../../../fuzz/seeds/counter_model/sixteen.json");
        let model = CounterModel::parse(seed).unwrap();
        let names = ["a", "b", "c"].map(str::to_owned);
        let number = Resampled { value: 1.14, low: Some(1.0), high: Some(1.2) };
        let pair = |programs, runs| PairOutcome {
            programs,
            weighted_speedup: number,
            speedup: number,
            unfairness: number,
            slowdowns: [number; 2],
            runs,
        };
        let mut outcome = PairsOutcome::of(&[], 3, &PairsQuestion::default());
        outcome.pairs = vec![pair([0, 0], [0, 0]), pair([0, 1], [2, 2]), pair([0, 2], [0, 0])];
        let findings = PairsFindings { model: Some(&model), ..findings(&outcome, &names) };
        assert_eq!(findings.groups(), None, "two share the level");
        assert_eq!(PairsFindings { width: 4, ..findings }.groups(), None, "a pair is unknown");
        let cells = [1, 2].map(|other| findings.cell(0, other).unwrap());
        assert_eq!(cells, ["1.14", "~1.14"]);
        let row = |pair| findings.pair_row(&outcome.pairs[pair]);
        assert_eq!((row(2)[4].as_str(), row(2)[6].as_str()), ("", "predicted"));
        assert_eq!((row(1)[4].as_str(), row(1)[6].as_str()), ("1.00 to 1.20", "2 + 2"));
        let said = findings.sentences().join(" ");
        let expected = "1 of 3 pairs saved: a model of 16 programs predicts them from runs alone, \
                        each to within 0.74 (the largest error of 16 programs).";
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn pairs_that_lose_are_named_unless_their_program_is() {
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let pair = |programs, value: f64| {
            let number = Resampled { value, low: Some(value - 0.05), high: Some(value + 0.05) };
            PairOutcome {
                programs,
                weighted_speedup: number,
                speedup: number,
                unfairness: number,
                slowdowns: [number; 2],
                runs: [2, 2],
            }
        };
        let said = |pairs: Vec<PairOutcome>, busy| {
            let mut outcome = PairsOutcome::of(&[], 5, &PairsQuestion::default());
            (outcome.pairs, outcome.apart) = (pairs, vec![4]);
            let findings = PairsFindings { busy, ..findings(&outcome, &names) };
            findings.kept_apart()
        };
        let two = vec![
            pair([0, 0], 0.5),
            pair([0, 1], 0.9),
            pair([1, 2], 0.7),
            pair([2, 3], 0.96),
            pair([0, 4], 0.6),
        ];
        let list = "b and c (0.70), a and b (0.90).";
        let apart = format!("Keep these apart: {list} Each pair takes longer together.");
        assert_eq!(said(two.clone(), false), Some(apart));
        let busy = format!("Under this load, these lose beside each other: {list}");
        assert_eq!(said(two.clone(), true), Some(busy));
        let four = [two, vec![pair([0, 2], 0.8), pair([1, 3], 0.85)]].concat();
        assert!(said(four, true).unwrap().ends_with(", b and d (0.85) and 1 other pair."));
        assert_eq!(said(vec![pair([0, 1], 0.96)], false), None);
    }

    #[test]
    fn groups_of_wider_cores_are_an_estimate() {
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let number = |value| Resampled { value, low: None, high: None };
        let mut outcome = PairsOutcome::of(&[], 5, &PairsQuestion::default());
        let pairs = (0..5).flat_map(|one| (one + 1..5).map(move |other| [one, other]));
        outcome.pairs = pairs
            .map(|programs| {
                // The first two harm each other.
                let slowdown = if programs == [0, 1] { 4.0 } else { 1.25 };
                PairOutcome {
                    programs,
                    weighted_speedup: number(2.0 / slowdown),
                    speedup: number(1.0),
                    unfairness: number(1.0),
                    slowdowns: [number(slowdown); 2],
                    runs: [2, 2],
                }
            })
            .collect();
        let said = |width| {
            let findings = PairsFindings { width, ..findings(&outcome, &names) };
            findings.sentences().join(" ")
        };
        assert!(!said(2).contains("In such groups"));
        let four = said(4);
        assert!(four.contains("Up to 4 programs share the level. In such groups: "), "{four}");
        // Three keep 0.8 x 0.8 each, two 0.8.
        assert!(four.contains("(1.92)") && four.contains("(1.60)"), "{four}");
        assert!(four.contains("This is an estimate from pairs"), "{four}");
        assert!(!four.contains("a + b"), "{four}");
    }
}
