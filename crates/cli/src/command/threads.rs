//! `pinwise threads`: how many threads a program should run.

mod arguments;
mod calibrate;
mod conditions;
mod document;
mod ending;
mod host;
mod model;
mod notes;
mod observed;
mod placing;
mod text;

pub(crate) use arguments::{Asked, Edges, Files, Threads};
pub(crate) use document::Document;
pub(crate) use host::{search as probe_host, usable};
pub(crate) use text::{probed, watched};

use crate::output::{self, Interrupted, Usage};
use arguments::{Action, Method};
use document::Remains;
use notes::{capped, cut_off, shifted, translated};
use observed::{Conditions, Observed};
use pinwise_measure::{MeasureError, Prober, Retry};
use pinwise_present::figures;
use pinwise_threads::{
    Advice, Attempt, Found, PhaseChange, Question, Reinforcer, SpeedSearch, SpeedSearchFailure,
    Sweep, drive_published, drive_speed_search, sweep,
};

impl Threads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(Action::Calibrate(calibrate)) = &self.action {
            return calibrate.run();
        }
        let interrupt = crate::events::listen()?;
        let (document, settled) = match self.asked.machine.machine.as_str() {
            "host" => {
                let (mut document, mut prober) =
                    host::search(&self.asked, &self.edges, &interrupt, self.json)?;
                let settled = host::settle(&self.asked, &mut prober, document.parameter);
                let settled = settled.map(|note| document.notes.extend(note));
                (document, settled)
            }
            _ => (model::search(&self.asked, &self.edges, &interrupt, self.json)?, Ok(())),
        };
        // The answer first: what went wrong after it does not take it away.
        if self.json {
            output::print_json(&document)?;
        } else {
            output::print(&text::result(&document, output::width()))?;
        }
        settled?;
        if document.interrupted {
            return Err(Interrupted(
                "interrupted after the answer was found, what was started has ended".into(),
            )
            .into());
        }
        Ok(())
    }
}

/// What a search found, whichever it was.
struct Answer {
    /// n, and the threads that makes.
    parameter: u32,
    threads: u32,
    attempts: Vec<Attempt>,
    /// In one word, for the document.
    stopped: String,
    /// In a line.
    why: String,
    /// Speed lost against the best of all numbers, where all were tried.
    loss: Option<f64>,
    /// How sure it is, in terms of n; of the published search nothing is known.
    advice: Option<Advice>,
    /// The program came into another phase between two of them.
    shift: Option<PhaseChange>,
    /// The user ended it before it was held against another probe.
    interrupted: bool,
    /// What to know about it.
    notes: Vec<String>,
}

/// Searches with probes of `prober`, by the method that was asked for. `convert` is the program's
/// Convert(), `threads` how many threads it makes for its parameter.
///
/// One run of the program that all probes share goes on to other phases while it is probed: it is
/// probed once more with the number it began with.
fn search<P: Prober>(
    prober: &mut Observed<P>,
    conditions: &Conditions,
    convert: impl Fn(u32) -> u32,
    threads: impl Fn(u32) -> u32,
) -> Result<Answer, MeasureError> {
    let mut answer = answer(prober, conditions, &convert, &threads)?;
    answer.notes.extend(capped(&answer, conditions, &convert, &threads));
    answer.notes.extend(translated(conditions, convert, threads));
    if let Some(&first) = answer.attempts.first().filter(|_| conditions.goes_on) {
        match prober.probe(first.probe.parameter, conditions.window) {
            Ok(probe) => answer.attempts.push(Attempt { probe, ..first }),
            // There is an answer, only nothing to hold it against.
            Err(error) if error.expired => {}
            Err(error) => {
                answer.interrupted = error.interrupted;
                answer.notes.push(format!(
                    "whether the program came into another phase meanwhile is not known: the probe that was to tell it failed: {error}"
                ));
            }
        }
    }
    answer.shift = PhaseChange::of(&answer.attempts);
    answer.notes.extend(answer.shift.as_ref().map(shifted));
    Ok(answer)
}

fn answer<P: Prober>(
    prober: &mut Observed<P>,
    conditions: &Conditions,
    convert: impl Fn(u32) -> u32,
    threads: impl Fn(u32) -> u32,
) -> Result<Answer, MeasureError> {
    let Conditions { span, thresholds, window, .. } = *conditions;
    let candidates = span.candidates(&convert, &threads);
    let most = candidates.last().filter(|_| candidates.len() > 1).map(|&last| convert(last));
    match conditions.method {
        Method::Survey => {
            let question = Question {
                tolerance: conditions.tolerance,
                most_time: Some(conditions.budget),
                work: conditions.work,
                pieces: conditions.pieces,
                whole_runs: conditions.whole_runs,
                counted: conditions.counted,
                ..Question::new(candidates, prober.contexts(), window)
            };
            let search = SpeedSearch::new(question).map_err(|error| never(&error))?;
            let found =
                drive_speed_search(search, prober, &convert).map_err(|error| match error {
                    SpeedSearchFailure::Measure(error) => error,
                    SpeedSearchFailure::Search(error) => never(&error),
                })?;
            let chosen =
                found.attempts.iter().find(|attempt| attempt.asked == found.advice.threads);
            let (stopped, why) = ending::ended(&found, conditions);
            Ok(Answer {
                parameter: found.parameter,
                threads: chosen.map_or(found.advice.threads, |attempt| attempt.probe.threads),
                stopped: stopped.into(),
                why,
                loss: None,
                shift: None,
                interrupted: false,
                notes: cut_off(found.parameter, most, conditions).into_iter().collect(),
                advice: Some(in_parameters(found.advice, &convert, &threads)),
                attempts: found.attempts,
            })
        }
        Method::Reinforcer => {
            // The span was checked when the arguments were read.
            let search = Reinforcer::new(span, prober.contexts(), thresholds)
                .map_err(|error| never(&error))?;
            let Found { choice, parameter, threads, attempts } =
                drive_published(search, prober, &convert, window)?;
            let last = attempts.last().map_or(0, |attempt| attempt.probe.parameter);
            let (stopped, why) = ending::stopped(choice.reason, last);
            let (stopped, notes) = (stopped.into(), Vec::new());
            let (loss, advice, shift, interrupted) = (None, None, None, false);
            Ok(Answer {
                parameter,
                threads,
                attempts,
                stopped,
                why,
                loss,
                advice,
                shift,
                interrupted,
                notes,
            })
        }
        Method::Sweep => {
            let Conditions { rounds, tolerance, counted, .. } = *conditions;
            let swept =
                sweep(&Sweep { candidates, rounds, window, tolerance, counted }, prober, &convert)?;
            let chosen = swept.attempts.iter().find(|attempt| attempt.asked == swept.threads);
            Ok(Answer {
                parameter: swept.parameter,
                threads: chosen.map_or(swept.threads, |attempt| attempt.probe.threads),
                stopped: "ALL_TRIED".into(),
                why: format!(
                    "{} numbers were tried, {}; the fewest threads within {} of the best",
                    swept.attempts.len() / rounds.max(1) as usize,
                    if rounds == 1 {
                        "once each, which does not tell how sure the answer is".into()
                    } else {
                        format!("{rounds} times each")
                    },
                    figures::percent(tolerance)
                ),
                loss: swept.loss(swept.threads),
                advice: swept.advice.map(|advice| in_parameters(advice, &convert, &threads)),
                shift: None,
                interrupted: false,
                notes: cut_off(swept.parameter, most, conditions).into_iter().collect(),
                attempts: swept.attempts,
            })
        }
    }
}

fn never(error: &dyn std::fmt::Display) -> MeasureError {
    MeasureError::new(Retry::Never, error.to_string())
}

/// Advice about numbers of threads as advice about the parameters they stand for.
fn in_parameters(
    advice: Advice,
    convert: impl Fn(u32) -> u32,
    threads: impl Fn(u32) -> u32,
) -> Advice {
    Advice {
        reference_threads: advice.reference.map_or(1, |reference| threads(convert(reference))),
        threads: convert(advice.threads),
        between: (convert(advice.between.0), convert(advice.between.1)),
        reference: advice.reference.map(&convert),
        more: advice.more.map(|(threads, cost)| (convert(threads), cost)),
        ..advice
    }
}

/// Prints the probes of a search that failed after some: they took their time.
fn leave(remains: &Remains, json: bool) -> anyhow::Result<()> {
    match (remains.probes.is_empty(), json) {
        (true, _) => Ok(()),
        (_, true) => output::print_json(remains),
        (_, false) => output::print(&text::remains(remains)),
    }
}

/// A failed search with the exit code it deserves.
fn told(error: MeasureError, probes: usize) -> anyhow::Error {
    if error.interrupted {
        let were = if probes == 1 { "was" } else { "were" };
        return Interrupted(format!(
            "interrupted: {} {were} made, what was started has ended",
            figures::counted(probes as u64, "probe")
        ))
        .into();
    }
    anyhow::anyhow!("{error}")
}

fn usage(error: impl std::fmt::Display) -> Usage {
    Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::{Measure, Part, Probe, Profile, Progress};
    use pinwise_threads::{Objective, ThreadRange, Thresholds};
    use std::time::Duration;

    /// A program that is as fast as it has threads, and fails after some probes.
    struct Failing {
        left: usize,
        error: MeasureError,
    }

    impl Prober for Failing {
        fn contexts(&self) -> u32 {
            4
        }

        fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
            self.left = self.left.checked_sub(1).ok_or_else(|| self.error.clone())?;
            let progress = Some(Progress {
                rate: f64::from(parameter),
                error: None,
                measure: Measure::Metric,
            });
            Ok(Probe {
                parameter,
                threads: parameter,
                profile: Profile::default(),
                progress,
                cost: window,
            })
        }

        fn parts(&self) -> Vec<Part> {
            Vec::new()
        }
    }

    #[test]
    fn an_answer_outlives_the_probe_that_was_to_check_it() {
        let conditions = Conditions {
            method: Method::Sweep,
            span: ThreadRange { min: 1, max: 3, step: 1 },
            bound: None,
            thresholds: Thresholds::scaled(1, 4),
            window: Duration::from_millis(1),
            whole_runs: false,
            pieces: None,
            rounds: 1,
            tolerance: 0.0,
            objective: Objective::Time,
            budget: Duration::MAX,
            work: None,
            goes_on: true,
            counted: false,
        };
        let search = |left, error: MeasureError| {
            let mut prober = Observed::new(Failing { left, error }, conditions.objective);
            search(&mut prober, &conditions, |threads| threads, |n| n)
        };
        let ended = MeasureError::new(Retry::Never, "the program has ended");
        let answer = search(3, ended.clone()).unwrap();
        assert_eq!((answer.parameter, answer.interrupted, answer.attempts.len()), (3, false, 3));
        assert!(
            answer.notes.iter().any(|note| note.contains("the program has ended")),
            "{:?}",
            answer.notes
        );
        let answer = search(3, MeasureError::interrupted()).unwrap();
        assert_eq!((answer.parameter, answer.interrupted), (3, true));
        assert!(search(2, ended).is_err(), "then there is none");
    }
}
