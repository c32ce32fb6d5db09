//! The part of `pinwise place` that is about `--strategy blackbox`: its arguments, and its output
//! before the first experiment.

use super::search::fraction;
use crate::output::Usage;
use clap::{Args, ValueEnum};
use pinwise_placement::{BlackboxOptions, FinalistRule, LevelSource};
use pinwise_topology::DomainKind;

/// How the strategy goes about it.
#[derive(Args)]
pub(crate) struct BlackBoxArguments {
    /// Make this share of the experiments [default: 10%]
    #[arg(
        long,
        alias = "profile",
        value_name = "P",
        value_parser = share,
        hide_short_help = true
    )]
    blackbox_share: Option<f64>,
    /// Measure N predicted ones [default: all likely]
    #[arg(long, value_name = "N", value_parser = top, hide_short_help = true)]
    top: Option<usize>,
    /// Choose `varied` ones, or the `top` [default: varied]
    #[arg(
        long,
        value_name = "RULE",
        value_enum,
        hide_possible_values = true,
        hide_short_help = true
    )]
    select: Option<Rule>,
    /// Name the level of interference: Core, L2, …
    #[arg(long, value_name = "LEVEL", value_parser = level, hide_short_help = true)]
    core_local: Option<DomainKind>,
    /// Print the cost of profiling or --on. Measure nothing
    #[arg(long, hide_short_help = true)]
    pub(super) dry_run: bool,
}

/// See [`FinalistRule`].
#[derive(Clone, Copy, ValueEnum)]
enum Rule {
    Varied,
    Top,
}

impl From<Rule> for FinalistRule {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::Varied => Self::Varied,
            Rule::Top => Self::Top,
        }
    }
}

impl BlackBoxArguments {
    /// Refuses these options for another strategy, which uses none of them. With nodes, `--dry-run`
    /// works for every strategy.
    pub(super) fn refuse(&self, on_nodes: bool) -> Result<(), Usage> {
        let given = [
            (self.blackbox_share.is_some(), "--blackbox-share"),
            (self.top.is_some(), "--top"),
            (self.select.is_some(), "--select"),
            (self.core_local.is_some(), "--core-local"),
            (self.dry_run && !on_nodes, "--dry-run"),
        ];
        match given.iter().find(|(given, _)| *given) {
            Some((_, name)) => {
                Err(Usage(format!("{name} needs profiling: add --strategy blackbox")))
            }
            None => Ok(()),
        }
    }

    /// As asked; a level that was not stays open.
    pub(super) fn profile(&self) -> BlackboxOptions {
        BlackboxOptions {
            core_local: self.core_local,
            core_local_because: self.core_local.map_or(LevelSource::Usual, |_| LevelSource::Asked),
            share: self.blackbox_share.unwrap_or(BlackboxOptions::default().share),
            top: self.top,
            select: self.select.map_or_else(FinalistRule::default, FinalistRule::from),
        }
    }
}

/// `10%`, up to `100%`.
fn share(text: &str) -> Result<f64, String> {
    if matches!(text.trim(), "100%" | "1") {
        return Ok(1.0);
    }
    fraction(text).map_err(|_| "expected a percentage such as 10% or 100%".into())
}

fn top(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|top| (1..=1000).contains(top))
        .ok_or("expected a number from 1 to 1000".into())
}

fn level(text: &str) -> Result<DomainKind, String> {
    serde_json::from_value(serde_json::Value::String(text.to_lowercase())).map_err(|_| {
        "expected a level that `pinwise topo` shows, such as Core, L2 or Package".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_levels_and_numbers_are_read() {
        assert_eq!(
            (share("100%"), share("10%"), level("core"), level("L2")),
            (Ok(1.0), Ok(0.1), Ok(DomainKind::Core), Ok(DomainKind::L2))
        );
        assert!(
            share("0%").is_err()
                && share("200%").is_err()
                && level("Socket").is_err()
                && top("0").is_err()
        );
    }
}
