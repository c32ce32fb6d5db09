//! `pinwise space`: how many different assignments there are, and what it would take to measure
//! them.

use crate::machine::LookedAt;
use crate::number_argument::whole;
use crate::output::{self, Usage};
use clap::Args;
use num_bigint::BigUint;
use pinwise_evt::{better_fraction, capture_probability};
use pinwise_present::{figures, one_line};
use pinwise_topology::{Alike, PerContext, SharingTree, Space as Assignments};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Count the different assignments of threads to a machine
///
/// Two assignments are the same if swapping alike hardware turns one into the other. Alike hardware
/// is cores, pipes or packages. NUMA nodes are never alike, because memory stays on one of them.
/// All threads count as different. The count is exact. place searches the same assignments.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pinwise space --threads 4                              on this machine\n  \
    pinwise space --threads 24 --machine ultrasparc-t2     on a built-in model\n  \
    pinwise space --threads 12 --machine 2x4x2 --per-context any")]
pub(crate) struct Space {
    /// Count for N threads
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=1024))]
    threads: u16,
    #[command(flatten)]
    machine: LookedAt,
    /// Put at most K threads on a context, or `any` number [default: 1; any if threads outnumber
    /// contexts]
    #[arg(long, value_name = "K|any", value_parser = per_context)]
    per_context: Option<PerContext>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn per_context(text: &str) -> Result<PerContext, String> {
    match text.parse() {
        _ if text == "any" => Ok(PerContext::Any),
        Ok(0) | Err(_) => Err("expected a number of threads from 1, or any".into()),
        Ok(most) => Ok(PerContext::AtMost(most)),
    }
}

/// The JSON document.
#[derive(Serialize)]
struct SpaceJson {
    threads: usize,
    contexts: usize,
    /// `null` for any number.
    per_context: Option<usize>,
    /// Decimal, exact.
    assignments: String,
    /// Functions from threads to contexts; decimal, exact.
    labelled: String,
}

impl Space {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let machine = self.machine.argument().load()?;
        let tree = SharingTree::new(&machine, Alike::ExceptNuma);
        let threads = usize::from(self.threads);
        let contexts = tree.leaves().len();
        let fits = if threads <= contexts { PerContext::AtMost(1) } else { PerContext::Any };
        let space = Assignments::new(tree, threads, self.per_context.unwrap_or(fits))
            .map_err(|error| Usage(error.to_string()))?;
        let document = SpaceJson {
            threads,
            contexts,
            per_context: match space.per_context() {
                PerContext::AtMost(most) => Some(most),
                PerContext::Any => None,
            },
            assignments: space.count().to_string(),
            labelled: space.labelled().to_string(),
        };
        if self.json {
            output::print_json(&document)
        } else {
            output::print(&text(&one_line(&machine.name), &space, &document))
        }
    }
}

fn text(machine: &str, space: &Assignments, document: &SpaceJson) -> String {
    let levels = space.tree().levels();
    let shape: Vec<String> = levels
        .iter()
        .map(|(kind, arity)| {
            format!("{} {}", arity.map_or("?".into(), |arity| arity.to_string()), kind.name())
        })
        .collect();
    let limit = match document.per_context {
        Some(most) => format!("at most {most} per context"),
        None => "any number per context".into(),
    };
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<13} {value}");
    };
    let shape = if shape.is_empty() { String::new() } else { format!(" ({})", shape.join(" x ")) };
    line(
        "machine",
        format!("{machine}: {}{shape}", figures::counted(document.contexts as u64, "context")),
    );
    line("threads", format!("{}, {limit}", document.threads));
    line("assignments", figures::group(&document.assignments));
    line(
        "labelled",
        format!(
            "{} assignments if alike hardware counts as different",
            figures::group(&document.labelled)
        ),
    );
    let count = space.count();
    line(
        "to measure",
        format!("{} at 1 s each, {} at 50 ms each", time(&count, 1.0), time(&count, 0.05)),
    );
    for n in [100, 1_000, 10_000] {
        if count <= BigUint::from(n) {
            break;
        }
        let captured = capture_probability(n, 0.01).unwrap_or_default();
        let better = better_fraction(n, 0.95).unwrap_or_default();
        line(
            &format!("{n} random"),
            format!(
                "contain one of the best 1 % with probability {}; at most {} beat their best (95 % \
                 confidence)",
                percent(captured),
                percent(better)
            ),
        );
    }
    text
}

/// No probability below 1 is shown as 100 %.
fn percent(fraction: f64) -> String {
    if fraction > 0.999 { "above 99.9 %".into() } else { figures::percent(fraction) }
}

/// How long `count` measurements of `seconds` take.
fn time(count: &BigUint, seconds: f64) -> String {
    const YEAR: f64 = 365.25 * 86_400.0;
    // A number too large for a float reads as infinite.
    let total = count.to_string().parse::<f64>().unwrap_or(f64::INFINITY) * seconds;
    match total {
        total if total < 120.0 => figures::duration(Duration::from_secs_f64(total)),
        total if total < 7_200.0 => format!("{:.0} min", total / 60.0),
        total if total < 172_800.0 => format!("{:.0} h", total / 3_600.0),
        total if total < 2.0 * YEAR => format!("{:.0} days", total / 86_400.0),
        total if total < 1e6 * YEAR => format!("{:.0} years", total / YEAR),
        total if total < 13.8e9 * YEAR => format!("{:.0} million years", total / YEAR / 1e6),
        _ => "longer than the universe has existed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_a_unit_that_can_be_grasped() {
        let time = |count: u64, seconds| time(&BigUint::from(count), seconds);
        assert_eq!(time(11, 1.0), "11 s");
        assert_eq!(time(1_526, 1.0), "25 min");
        assert_eq!(time(592_573, 0.05), "8 h");
        assert_eq!(time(592_573, 1.0), "7 days");
        assert_eq!(time(600_985_034_650, 1.0), "19044 years");
        assert_eq!(
            super::time(&BigUint::from(10u32).pow(400), 1.0),
            "longer than the universe has existed"
        );
    }

    #[test]
    fn a_limit_is_a_positive_number_or_any() {
        assert_eq!(per_context("any"), Ok(PerContext::Any));
        assert_eq!(per_context("2"), Ok(PerContext::AtMost(2)));
        for text in ["0", "-1", "many", ""] {
            assert!(per_context(text).is_err(), "{text}");
        }
    }
}
