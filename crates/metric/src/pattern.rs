//! A regular expression that says where the number is in a line or an output.

use crate::MetricError;
use crate::number;
use crate::source::Sample;
use regex::{Captures, Regex};
use std::fmt;

/// A regular expression whose first group, or the one named `value`, is the number. A group named
/// `seconds` is the program's own clock.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    value: usize,
    seconds: Option<usize>,
}

impl Pattern {
    /// Compiles a pattern; multi-line mode, so that `^` and `$` mean lines.
    ///
    /// # Errors
    /// [`MetricError::Pattern`] when it is no regular expression, [`MetricError::NoGroup`] when
    /// nothing in it says which part is the number.
    pub fn new(text: &str) -> Result<Self, MetricError> {
        let regex = regex::RegexBuilder::new(text).multi_line(true).build().map_err(|error| {
            // The crate draws the place over several lines and gives the reason in the last.
            let message = error.to_string();
            let reason =
                message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            MetricError::Pattern { pattern: text.into(), reason }
        })?;
        let group = |name: &str| regex.capture_names().position(|group| group == Some(name));
        let seconds = group("seconds");
        let first_other = (1..regex.captures_len()).find(|&index| Some(index) != seconds);
        match group("value").or(first_other) {
            Some(value) => Ok(Self { regex, value, seconds }),
            None => Err(MetricError::NoGroup { pattern: text.into() }),
        }
    }

    /// The first match in `text` that holds a number; `None` when there is none.
    pub fn find(&self, text: &str) -> Option<Sample> {
        self.regex.captures_iter(text).find_map(|captures| self.read(&captures))
    }

    fn read(&self, captures: &Captures<'_>) -> Option<Sample> {
        let number =
            |group: usize| captures.get(group).and_then(|found| number::parse(found.as_str()));
        let seconds = match self.seconds {
            Some(group) => Some(number(group)?),
            None => None,
        };
        Some(Sample { value: number(self.value)?, seconds })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_group_is_the_number() {
        let pattern = Pattern::new(r"Tx-pps: +(\d+)").unwrap();
        let found = pattern.find("  Tx-pps:      12034567          Tx-bps: 5776592000").unwrap();
        assert_eq!(found, Sample { value: 12_034_567.0, seconds: None });
    }

    #[test]
    fn named_groups_come_before_their_order() {
        let pattern = Pattern::new(r"(?<seconds>[\d.]+)s (\w+) (?<value>[\d,]+)").unwrap();
        assert_eq!(
            pattern.find("1.5s packets 1,000"),
            Some(Sample { value: 1000.0, seconds: Some(1.5) })
        );
        let pattern = Pattern::new(r"t=(?<seconds>[\d.]+) n=(\d+)").unwrap();
        assert_eq!(pattern.find("t=2.25 n=7"), Some(Sample { value: 7.0, seconds: Some(2.25) }));
    }

    #[test]
    fn a_match_without_a_number_is_passed_over() {
        let pattern = Pattern::new(r"ops: (\S+)").unwrap();
        assert_eq!(pattern.find("ops: none\nops: 5"), Some(Sample { value: 5.0, seconds: None }));
        assert_eq!(pattern.find("ops: none"), None);
    }

    #[test]
    fn anchors_mean_lines() {
        let pattern = Pattern::new(r"^total:(\d+)\r?$").unwrap();
        assert_eq!(pattern.find("subtotal:1\ntotal:2\r\n").map(|found| found.value), Some(2.0));
    }

    #[test]
    fn a_pattern_without_a_group_says_how_to_put_one() {
        let error = Pattern::new(r"Tx-pps: +\d+").unwrap_err();
        assert!(matches!(error, MetricError::NoGroup { .. }));
        assert!(error.to_string().contains("parentheses"), "{error}");
        assert!(Pattern::new(r"(?<seconds>\d+)").is_err());
        assert!(Pattern::new(r"(?:\d+)").is_err());
    }

    #[test]
    fn a_broken_pattern_gives_its_reason_on_one_line() {
        let error = Pattern::new(r"Tx-pps: (\d+").unwrap_err().to_string();
        assert!(error.contains("unclosed group") && !error.contains('\n'), "{error}");
    }
}
