//! What co-scheduling shows, in the sentences and tables that the terminal and the page share.

use crate::counter_quality::counter_sentences;
use crate::figures::{self, percent};
use pinwise_coscheduling::{
    CoschedCost, CoschedOutcome, CoschedQuestion, CoschedVerdict, CoscheduleObjective,
    CoscheduleRule, FLOOR, ProgramOutcome, SPLITS,
};
use pinwise_measure::ThreadMoves;
use pinwise_placement::Gain;
use pinwise_topology::DomainKind;
use std::time::Duration;

/// An outcome with its question.
#[derive(Clone, Copy, Debug)]
pub struct CoschedFindings<'a> {
    /// The outcome.
    pub outcome: &'a CoschedOutcome,
    /// The question.
    pub question: &'a CoschedQuestion,
    /// The level whose contexts are siblings.
    pub level: DomainKind,
}

/// What pinwise does if no gain is shown.
const STOPPED: &str = "pinwise stopped moving them.";

impl CoschedFindings<'_> {
    /// Whether moving threads helps: the first line of the answer.
    pub fn verdict(&self) -> String {
        let gain = self.outcome.gain.map(|gain| self.with_interval(&gain));
        let gain = gain.map_or(String::new(), |gain| format!(": {gain}"));
        match self.outcome.verdict {
            CoschedVerdict::Helps => format!("Moving threads between siblings helps{gain}."),
            CoschedVerdict::NoGain => {
                format!("Moving threads gains nothing here{gain}. {STOPPED}")
            }
            CoschedVerdict::NoLonger => {
                format!("Moving threads no longer helps{gain}. {STOPPED}")
            }
            CoschedVerdict::Unfair => format!(
                "Moving threads takes too much from {}{gain}. {STOPPED}",
                self.outcome.losers.join(", ")
            ),
            CoschedVerdict::Undecided => format!("Undecided whether moving threads helps{gain}."),
        }
    }

    /// What the verdict rests on, and what it cost to find out.
    pub fn sentences(&self) -> Vec<String> {
        let CoschedOutcome { verdict, rounds, tried, moves, cost, .. } = self.outcome;
        let mut sentences = vec![format!(
            "{}, each with an unpinned period and a period of moves, compare {}.",
            figures::counted(*rounds, "round"),
            self.compared()
        )];
        match &self.question.rule {
            CoscheduleRule::Seen => {}
            CoscheduleRule::Published(_) => sentences.push(
                "The published value of each two threads decides which of them share a core. It \
                 knows no objective."
                    .to_owned(),
            ),
            CoscheduleRule::Predicted(model) => sentences.push(format!(
                "A model of {} decides which threads share a core. It was fitted to programs \
                 alone, and threads run beside others here.",
                figures::counted(model.programs.len() as u64, "program")
            )),
        }
        if !self.question.counted {
            sentences.push(match moves {
                Some(ThreadMoves::Dealt(_)) => format!(
                    "Nothing is counted, so {tried} random splits were tried first, and the best \
                     one was judged by fresh rounds. That took {} of the time.",
                    percent(self.searching())
                ),
                _ => format!(
                    "Nothing is counted, so random splits are tried first: {tried} of {SPLITS} \
                     so far."
                ),
            });
        }
        sentences.extend(self.outcome.counters.iter().flat_map(counter_sentences));
        if *verdict == CoschedVerdict::Undecided && self.question.budget.is_some() {
            sentences.push("Measure longer to decide: give a larger --budget.".to_owned());
        }
        if *verdict == CoschedVerdict::Unfair {
            sentences.push(format!(
                "With --objective both, each program keeps {} of its unpinned progress. Use \
                 --objective throughput if only the sum counts.",
                percent(FLOOR)
            ));
        }
        sentences.push(format!(
            "pinwise took {} of the machine's CPU time. A quantum took {} on average, with {} in \
             all. Meanwhile {} began and {} ended.",
            percent(cost.share),
            figures::duration(Duration::from_secs_f64(cost.quantum)),
            figures::counted(cost.moves, "move"),
            figures::counted(cost.begun, "thread"),
            figures::count(cost.ended)
        ));
        if cost.quantum > 1.5 * self.question.quantum.as_secs_f64() && cost.quantum > 0.0 {
            sentences.push(format!(
                "Quanta were longer than the {} asked for, because they cost too much.",
                figures::duration(self.question.quantum)
            ));
        }
        sentences
    }

    /// What is compared.
    fn compared(&self) -> &'static str {
        match (self.question.counted, self.question.objective) {
            (false, _) => "the metric",
            (true, CoscheduleObjective::Fairness) => "the progress of the slowest program",
            (true, _) => "the sum of the programs' progress",
        }
    }

    /// The share of rounds that tried splits.
    fn searching(&self) -> f64 {
        let CoschedOutcome { tried, rounds, .. } = self.outcome;
        *tried as f64 / (tried + rounds).max(1) as f64
    }

    fn with_interval(&self, gain: &Gain) -> String {
        let confidence = percent(self.question.confidence);
        match ends(gain) {
            Some(ends) => {
                format!("{} ({confidence} interval {ends})", figures::change(gain.mean))
            }
            None => figures::change(gain.mean),
        }
    }

    /// The head of [`Self::program_row`].
    pub fn program_head(&self) -> [&'static str; 6] {
        let made = if self.question.counted { "instructions" } else { "CPU time" };
        ["program", "processes", made, "interval", "of alone, unpinned", "of alone, moved"]
    }

    /// A program in a table.
    pub fn program_row(&self, program: &ProgramOutcome) -> [String; 6] {
        let share = |share: Option<f64>| share.map_or("?".to_owned(), percent);
        [
            program.name.clone(),
            figures::count(program.processes),
            program.gain.map_or(String::new(), |gain| figures::change(gain.mean)),
            program.gain.as_ref().and_then(ends).unwrap_or_default(),
            share(program.alone_as_found),
            share(program.alone_moved),
        ]
    }

    /// What the table cannot say.
    pub fn table_note(&self) -> Option<&'static str> {
        let unknown = self.outcome.programs.iter().any(|program| program.alone_moved.is_none());
        match (self.question.counted, unknown) {
            (false, _) => Some(
                "The speed of each program as a share of its speed alone is unknown: this takes \
                 hardware counters.",
            ),
            (true, true) => Some("?: the program did not run in a period with idle siblings."),
            (true, false) => None,
        }
    }
}

/// `+1.2 % to +4.0 %`; `None` if nothing bounds one end.
fn ends(gain: &Gain) -> Option<String> {
    let bounded = gain.low.is_finite() && gain.high.is_finite();
    bounded.then(|| format!("{} to {}", figures::change(gain.low), figures::change(gain.high)))
}

/// Where threads were moved, and for how long.
pub fn coscheduled_over(level: DomainKind, cost: &CoschedCost, periods: u64) -> String {
    format!(
        "Siblings are contexts that share one {}. {} of {} in all.",
        level.name(),
        figures::counted(periods, "period"),
        figures::duration(Duration::from_secs_f64(cost.seconds))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_text(verdict: CoschedVerdict, counted: bool) -> String {
        let question = CoschedQuestion {
            objective: CoscheduleObjective::Both,
            counted,
            rule: CoscheduleRule::Seen,
            quantum: CoschedQuestion::QUANTUM,
            budget: Some(Duration::from_secs(60)),
            confidence: 0.95,
            seed: 1,
        };
        let mut outcome = CoschedOutcome::of(&[], &question, 2);
        (outcome.verdict, outcome.rounds, outcome.tried) = (verdict, 10, 8);
        outcome.gain = Some(Gain { mean: 0.05, low: 0.01, high: 0.1 });
        outcome.losers = vec!["xz".into()];
        outcome.moves = Some(if counted { ThreadMoves::Counted } else { ThreadMoves::Dealt(3) });
        (outcome.cost.share, outcome.cost.quantum) = (0.004, 0.3);
        let (outcome, question) = (&outcome, &question);
        let findings = CoschedFindings { outcome, question, level: DomainKind::Core };
        [vec![findings.verdict()], findings.sentences()].concat().join(" ")
    }

    #[test]
    fn each_verdict_says_what_became_of_the_moves_and_what_it_rests_on() {
        let gain = "+5.0 % (95 % interval +1.0 % to +10.0 %)";
        let helps = findings_text(CoschedVerdict::Helps, true);
        assert!(helps.starts_with(&format!("Moving threads between siblings helps: {gain}. ")));
        assert!(helps.contains("10 rounds, each with") && helps.contains("sum of the programs'"));
        assert!(helps.contains("took 0.40 % of the machine's CPU time"), "{helps}");
        assert!(helps.contains("longer than the 100 ms asked for"), "{helps}");
        let off = findings_text(CoschedVerdict::NoGain, false);
        assert!(
            off.starts_with(&format!("Moving threads gains nothing here: {gain}. {STOPPED}")),
            "{off}"
        );
        assert!(
            off.contains("8 random splits were tried first") && off.contains("44.4 %"),
            "{off}"
        );
        let unfair = findings_text(CoschedVerdict::Unfair, true);
        assert!(unfair.contains("too much from xz: +5.0 %") && unfair.contains("keeps 90 %"));
        let undecided = findings_text(CoschedVerdict::Undecided, true);
        assert!(undecided.contains("give a larger --budget"), "{undecided}");
    }
}
