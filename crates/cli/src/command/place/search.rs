//! The arguments that say how much a search may spend and when it may stop.

use crate::number_argument::{positive, whole};
use clap::Args;
use pinwise_placement::{Budget, PlacementQuestion};
use std::time::Duration;

/// What is asked of every search.
#[derive(Args)]
pub(crate) struct SearchArguments {
    /// Stop within this gap of the bound
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = percent(PlacementQuestion::WITHIN),
        value_parser = fraction,
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    within: f64,
    /// Set the confidence of intervals
    #[arg(
        long,
        value_name = "P",
        default_value = PlacementQuestion::CONFIDENCE.to_string(),
        value_parser = confidence,
        hide_short_help = true
    )]
    confidence: f64,
    /// Spend N measurements or a time [default: 30s to 5m]
    #[arg(long, value_name = "N|TIME", value_parser = budget)]
    pub(crate) budget: Option<Budget>,
    /// Narrow intervals to this half-width
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = percent(PlacementQuestion::PRECISION),
        value_parser = fraction,
        hide_short_help = true
    )]
    precision: f64,
    /// Put at most N threads on a context
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(1..=u64::MAX),
        hide_short_help = true
    )]
    pub(crate) per_context: Option<usize>,
    /// Use only these contexts, as in 0-3,8
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Name a known limit, such as a line rate
    #[arg(long, value_name = "VALUE", value_parser = positive, hide_short_help = true)]
    pub(crate) cap: Option<f64>,
    /// Set the seed of random choices
    #[arg(
        long,
        default_value_t = PlacementQuestion::SEED,
        value_parser = whole::<u64>(0..=u64::MAX),
        hide_short_help = true
    )]
    pub(crate) seed: u64,
}

impl SearchArguments {
    /// The question `usual` with what was typed.
    pub(crate) fn question(&self, usual: PlacementQuestion) -> PlacementQuestion {
        PlacementQuestion {
            within: self.within,
            confidence: self.confidence,
            budget: self.budget.unwrap_or(usual.budget),
            per_context: self.per_context.or(usual.per_context),
            precision: self.precision,
            seed: self.seed,
            ..usual
        }
    }
}

/// A share as the help shows a default: `2.5%`.
pub(crate) fn percent(share: f64) -> String {
    format!("{}%", (share * 1e6).round() / 1e4)
}

/// A time as the help shows a default: `50ms`, `60s`.
pub(crate) fn short(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// `2.5%` or `0.025`.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    match digits.parse::<f64>().map(|value| value * factor) {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("expected a percentage such as 2.5% or a fraction between 0 and 1".into()),
    }
}

/// A probability from one half up to, not including, one.
pub(crate) fn confidence(text: &str) -> Result<f64, String> {
    fraction(text)
        .ok()
        .filter(|value| *value >= 0.5)
        .ok_or("expected a confidence such as 0.95 or 95%".into())
}

/// `600` measurements, or a time.
pub(crate) fn budget(text: &str) -> Result<Budget, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("a budget of 0 measures nothing".into()),
        Ok(measurements) => Ok(Budget::Measurements(measurements)),
        Err(_) => time(text)
            .map(Budget::Time)
            .map_err(|_| "expected measurements (600) or a time (90s, 5m)".into()),
    }
}

/// `50ms`, `1.5s`, `5m`, `2h`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time with its unit: 50ms, 2s, 5m".into()),
    };
    match digits.trim().parse::<f64>().map(|value| value * seconds) {
        Ok(value) if value > 0.0 && value < 1e7 => Ok(Duration::from_secs_f64(value)),
        _ => Err("expected a positive time: 50ms, 2s, 5m".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_times_and_fractions_are_read_with_their_units() {
        assert_eq!(budget("600"), Ok(Budget::Measurements(600)));
        assert_eq!(budget("5m"), Ok(Budget::Time(Duration::from_secs(300))));
        assert!(budget("0").is_err() && budget("soon").is_err() && budget("-3s").is_err());
        assert_eq!(fraction("2.5%"), Ok(0.025));
        assert!(
            fraction("250%").is_err() && fraction("NaN").is_err() && confidence("0.3").is_err()
        );
        assert_eq!(time("50ms"), Ok(Duration::from_millis(50)));
        assert!(time("50").is_err() && time("infs").is_err());
    }
}
