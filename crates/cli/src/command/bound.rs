//! `pinwise bound`: how far the best of anyone's measurements may be from the best possible.

mod column;

use crate::output::{self, Usage};
use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use column::Column;
use pinwise_evt::{
    Better, Estimator, Method, Options, Refusal, Sample, ValueBound, better_fraction, looks,
};
use pinwise_placement::PlacementQuestion;
use pinwise_present::{tagged, texts};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::num::ParseFloatError;
use std::path::{Path, PathBuf};

/// Estimate the best possible performance from your measurements
///
/// Each value is the performance of one configuration: an assignment, flags, a layout. Draw
/// configurations at random with equal chance. Average the repeats of one configuration first. Exit
/// code: 0 with a bound, 1 if the values support none, 2 for a wrong file or option.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise bound pps.txt                           one number per line
  pinwise bound runs.csv --column pps             a column of a CSV file
  pinwise bound runs.jsonl --column seconds --lower-is-better
  my-benchmark --random 500 | pinwise bound -     from standard input
  pinwise bound runs.csv --cap 14.88e6 --json     with a line rate, for scripts")]
pub(crate) struct Bound {
    /// CSV, TSV, JSON lines, a JSON array, or one number per line. `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read this column: its name, or its number from 1. Needed if several hold numbers
    #[arg(long, value_name = "NAME|N")]
    column: Option<String>,
    /// Bound the lowest possible value, as for run times
    #[arg(long, alias = "minimize")]
    lower_is_better: bool,
    /// Fit the values beyond U [default: the method chooses]
    #[arg(long, value_name = "U", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Choose the estimator. `bayes` is the posterior of the tail's end, from the best 50 values.
    /// `profile` is the published one, which often finds no finite end below a few thousand values
    #[arg(
        long,
        default_value = "bayes",
        value_parser = PossibleValuesParser::new(["bayes", "profile"]).map(|name| method(&name))
    )]
    method: Method,
    /// Set the confidence of the interval, at least 0.5 and below 1
    #[arg(long, value_name = "C", default_value_t = 0.95, value_parser = share)]
    confidence: f64,
    /// Name a value that cannot be exceeded, such as a line rate. With --lower-is-better, name
    /// the lowest possible
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    cap: Option<f64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// `0.95` or `95%`; whether it is a confidence is for the estimate to say.
fn share(text: &str) -> Result<f64, ParseFloatError> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    }
}

fn method(name: &str) -> Method {
    if name == "profile" { Method::Profile } else { Method::Bayes }
}

/// What is printed. With `--lower-is-better` in the values' own sign, so that the open end
/// is `upb_low`.
#[derive(Serialize)]
struct BoundJson {
    column: Option<String>,
    unit: Option<String>,
    skipped: usize,
    first_skipped: Option<String>,
    minimize: bool,
    n: usize,
    best: Option<f64>,
    threshold: Option<f64>,
    exceedances: Option<usize>,
    shape: Option<f64>,
    scale: Option<f64>,
    upb: Option<f64>,
    upb_low: Option<f64>,
    upb_high: Option<f64>,
    confidence: f64,
    gap: Option<f64>,
    gap_high: Option<f64>,
    better_fraction: Option<f64>,
    method: Estimator,
    diagnostics: Vec<Value>,
    reason: Option<Value>,
}

impl Bound {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let text = read(&self.file)?;
        let name = if self.file == Path::new("-") {
            "standard input".into()
        } else {
            self.file.to_string_lossy()
        };
        let column = column::read(&text, self.column.as_deref())
            .map_err(|reason| Usage(format!("cannot read measurements from {name}: {reason}")))?;
        let better = self.better();
        let sample = better.sample(column.values.iter().copied());
        let options = Options {
            method: self.method,
            confidence: self.confidence,
            cap: self.cap,
            threshold: self.threshold,
            exhausted: column.complete,
        };
        let found = better.estimate(&sample, &options);
        if let Err(refusal @ (Refusal::Confidence { .. } | Refusal::NotFinite { .. })) = found {
            return Err(Usage(refusal.to_string()).into());
        }
        let document = self.document(&column, &sample, &found);
        if self.json {
            output::print_json(&document)?;
        } else {
            output::print(&document.text())?;
        }
        match found {
            Ok(_) => Ok(()),
            // The answer has the reason.
            Err(refusal) => anyhow::bail!("no bound from {name}: {}", remedy(&refusal)),
        }
    }

    fn better(&self) -> Better {
        if self.lower_is_better { Better::Lower } else { Better::Higher }
    }

    fn document(
        &self,
        column: &Column,
        sample: &Sample,
        found: &Result<ValueBound, Refusal>,
    ) -> BoundJson {
        let empty = BoundJson {
            column: column.name.clone(),
            unit: column.unit.clone(),
            skipped: column.skipped,
            first_skipped: column.first_skipped.clone(),
            minimize: self.lower_is_better,
            n: sample.n(),
            best: sample.best().map(|best| self.better().turned(best)),
            threshold: None,
            exceedances: None,
            shape: None,
            scale: None,
            upb: None,
            upb_low: None,
            upb_high: None,
            confidence: self.confidence,
            gap: None,
            gap_high: None,
            better_fraction: better_fraction(sample.n() as u64, self.confidence),
            method: self.method.into(),
            diagnostics: Vec::new(),
            reason: None,
        };
        match found {
            Err(refusal) => {
                let (threshold, exceedances, shape, scale) = fitted(refusal);
                let reason = Some(tagged(refusal, refusal.to_string()));
                BoundJson { threshold, exceedances, shape, scale, reason, ..empty }
            }
            Ok(found) => {
                // What is left is noise, which one mean of each assignment does not show.
                let exact = found.method == Estimator::Exact;
                let beyond = |value: Option<f64>| value.filter(|_| !exact);
                let notes = found.diagnostics.iter();
                BoundJson {
                    threshold: found.threshold,
                    exceedances: Some(found.exceedances),
                    shape: found.shape,
                    scale: found.scale,
                    upb: Some(found.bound),
                    upb_low: beyond(found.low),
                    upb_high: beyond(found.high),
                    gap: found.gap,
                    gap_high: beyond(found.gap_high),
                    better_fraction: beyond(empty.better_fraction),
                    method: found.method,
                    diagnostics: notes.map(|note| tagged(note, note.to_string())).collect(),
                    ..empty
                }
            }
        }
    }
}

/// Threshold, exceedances, shape and scale of the tail that supports no bound, as far as it was
/// fitted.
fn fitted(refusal: &Refusal) -> (Option<f64>, Option<usize>, Option<f64>, Option<f64>) {
    match *refusal {
        Refusal::NoEnd { threshold, exceedances, shape, scale } => {
            (Some(threshold), Some(exceedances), Some(shape), Some(scale))
        }
        Refusal::NoMaximum { threshold, exceedances }
        | Refusal::FewExceedances { threshold, exceedances, .. } => {
            (Some(threshold), Some(exceedances), None, None)
        }
        _ => (None, None, None, None),
    }
}

/// What to do about a refusal.
fn remedy(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Empty { .. } => "give measurements",
        Refusal::Constant { .. } => "check that the metric responds to what is varied",
        Refusal::TooFew { .. } => "measure more, or measure every configuration if there are few",
        Refusal::FewExceedances { .. } => "move --threshold into the bulk or leave it out",
        Refusal::NoThreshold { .. } => "measure more, or use --method bayes",
        Refusal::NoEnd { .. } | Refusal::NoMaximum { .. } => "measure more, or use --method bayes",
        Refusal::Range => "give the values in another unit",
        Refusal::Confidence { .. } | Refusal::NotFinite { .. } => "correct the option",
    }
}

fn values(count: usize) -> String {
    if count == 1 { "1 value".into() } else { format!("{count} values") }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let bytes = if file == Path::new("-") {
        output::read_limited(std::io::stdin().lock()).context("cannot read standard input")?
    } else {
        output::read_input(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    // Numbers survive whatever the names are encoded in.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl BoundJson {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut line =
            |label: &str, value: String| writeln!(text, "{label:<10} {value}").unwrap_or(());
        if let Some(reason) = &self.reason {
            line("no bound", texts(std::slice::from_ref(reason)).concat());
        }
        if let Some(upb) = self.upb {
            let percent = 100.0 * self.confidence;
            line("bound", format!("{} ({})", self.quantity(upb), self.origin()));
            if self.is_exact() {
                line("interval", "none: these values do not show the noise of each".to_owned());
            } else {
                line("interval", format!("{} at {percent} % confidence", self.interval()));
                line("gap", self.gaps());
            }
        }
        if let Some(best) = self.best {
            line("best", self.quantity(best));
        }
        line(
            "sample",
            match &self.column {
                Some(column) => format!("{} of column {column}", values(self.n)),
                None => values(self.n),
            },
        );
        if let Some(first) = &self.first_skipped {
            line("skipped", format!("{} without a number, first {first}", self.skipped));
        }
        if let (Some(threshold), Some(count), Some(shape), Some(scale)) =
            (self.threshold, self.exceedances, self.shape, self.scale)
        {
            line(
                "tail",
                format!(
                    "{} beyond {}, shape {shape:+.3}, scale {}",
                    values(count),
                    number(threshold),
                    number(scale)
                ),
            );
        }
        if let Some(fraction) = self.better_fraction {
            let percent = 100.0 * self.confidence;
            line(
                "rarity",
                format!(
                    "at most {} % of all beat the best, at {percent} % confidence for any \
                     distribution",
                    significant(100.0 * fraction, 3)
                ),
            );
        }
        for note in texts(&self.diagnostics) {
            line("note", note);
        }
        if self.upb.is_some()
            && self.gap_high != Some(0.0)
            && !self.is_exact()
            && let Some(next) =
                looks(PlacementQuestion::FIRST_LOOK, None).find(|&n| n > self.n as u64)
        {
            let more = next - self.n as u64;
            line(
                "next",
                format!(
                    "measure {more} more and look at {next}: more looks than at 500, 1000, 2000, … \
                     cost confidence"
                ),
            );
        }
        text
    }

    /// Every assignment is among the values: the best of them is the best possible, but for noise.
    fn is_exact(&self) -> bool {
        self.method == Estimator::Exact
    }

    /// A value with its unit, where that is known.
    fn quantity(&self, value: f64) -> String {
        let unit = self.unit.iter().map(|unit| format!(" {unit}"));
        unit.fold(number(value), |value, unit| value + &unit)
    }

    fn origin(&self) -> &'static str {
        match self.method {
            Estimator::Exact => "every assignment was measured",
            Estimator::Bayes => "bayes, posterior median",
            Estimator::Profile => "profile, maximum likelihood",
        }
    }

    fn interval(&self) -> String {
        let end = |end: Option<f64>| end.map_or("no finite end".to_owned(), number);
        format!("{} to {}", end(self.upb_low), end(self.upb_high))
    }

    fn gaps(&self) -> String {
        let percent = |gap: f64| format!("{} %", significant(100.0 * gap, 3));
        match (self.gap, self.gap_high) {
            (None, _) => "undefined".to_owned(),
            (Some(gap), None) => format!("{}, no finite end", percent(gap)),
            (Some(gap), Some(high)) => format!("{}, at most {}", percent(gap), percent(high)),
        }
    }
}

/// A value, to six significant digits.
fn number(value: f64) -> String {
    significant(value, 6)
}

/// Significant digits without zeros that say nothing, and without exponent between 0.001 and a
/// million millions.
fn significant(value: f64, digits: usize) -> String {
    let magnitude = value.abs().log10().floor();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(-3.0..12.0).contains(&magnitude) {
        return format!("{value:.*e}", digits - 1);
    }
    let text = format!("{value:.*}", (digits as f64 - 1.0 - magnitude).max(0.0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_significant_digits() {
        let shown =
            [0.0, 12.0, 0.000_123_456_7, 0.012_345_678, 9.810_712_8, 1_234_567.8, -3.5, 1e15]
                .map(number);
        assert_eq!(
            shown,
            ["0", "12", "1.23457e-4", "0.0123457", "9.81071", "1234568", "-3.5", "1.00000e15"]
        );
    }

    fn asked() -> Bound {
        Bound {
            file: "values".into(),
            column: None,
            lower_is_better: true,
            threshold: None,
            method: Method::Profile,
            confidence: 0.95,
            cap: None,
            json: true,
        }
    }

    #[test]
    fn a_fit_that_gives_no_bound_is_in_the_document() {
        let (bound, column) = (asked(), Column::default());
        let document = |refusal| bound.document(&column, &Sample::new([1.0]), &Err(refusal));
        let (threshold, exceedances) = (3.5, 50);
        let no_end = Refusal::NoEnd { threshold, exceedances, shape: 0.25, scale: 2.0 };
        let of = |fit: BoundJson| (fit.threshold, fit.exceedances, fit.shape, fit.scale);
        assert_eq!(of(document(no_end)), (Some(3.5), Some(50), Some(0.25), Some(2.0)));
        let no_maximum = Refusal::NoMaximum { threshold, exceedances };
        assert_eq!(of(document(no_maximum)), (Some(3.5), Some(50), None, None));
        assert_eq!(of(document(Refusal::Range)), (None, None, None, None));
    }

    #[test]
    fn a_sample_of_all_assignments_is_exact_and_has_no_interval() {
        let (bound, sample) = (asked(), Better::Lower.sample([3.0, 5.0, 4.0]));
        let options = Options { exhausted: true, ..Options::default() };
        let found = bound.better().estimate(&sample, &options);
        let document = bound.document(&Column::default(), &sample, &found);
        assert_eq!((document.best, document.upb, document.gap), (Some(3.0), Some(3.0), Some(0.0)));
        assert_eq!((document.upb_low, document.upb_high, document.gap_high), (None, None, None));
        assert_eq!(document.method, Estimator::Exact);
        assert!(
            document.text().contains("3 (every assignment was measured)"),
            "{}",
            document.text()
        );
    }
}
