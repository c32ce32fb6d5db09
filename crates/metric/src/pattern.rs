//! A regular expression that says where the number is in a line or an output.

use crate::MetricError;
use crate::number::{self, Comma};
use crate::source::MetricValue;
use crate::words::{self, behind_number, unit_behind};
use regex_lite::{Captures, Regex, RegexBuilder};
use std::fmt;

/// A regular expression whose first group, or the one named `value`, is the number. `thousands` and
/// `decimal` name the number, too, and say what a comma in it is. A group named `seconds` is the
/// program's own clock.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    value: usize,
    comma: Option<Comma>,
    seconds: Option<usize>,
    /// The unit that the text shows behind the number counts: the pattern does not fix it.
    open: bool,
    /// What the prefix of the unit that the user named multiplies by.
    named: f64,
}

impl Pattern {
    /// Compiles a pattern; multi-line mode, so that `^` and `$` mean lines.
    ///
    /// # Errors
    /// [`MetricError::Pattern`] when it is no regular expression, [`MetricError::NoGroup`] when
    /// nothing in it says which part is the number.
    pub fn new(text: &str) -> Result<Self, MetricError> {
        let regex = RegexBuilder::new(text).multi_line(true).build().map_err(|error| {
            MetricError::Pattern { pattern: text.into(), reason: error.to_string() }
        })?;
        let group = |name: &str| regex.capture_names().position(|group| group == Some(name));
        let seconds = group("seconds");
        let first_other = (1..regex.captures_len()).find(|&index| Some(index) != seconds);
        let (thousands, decimal) = (group("thousands"), group("decimal"));
        let comma = match (thousands, decimal) {
            (Some(_), _) => Some(Comma::Thousands),
            (None, Some(_)) => Some(Comma::Decimal),
            (None, None) => None,
        };
        let value = thousands.or(decimal).or(group("value")).or(first_other);
        let value = value.ok_or_else(|| MetricError::NoGroup { pattern: text.into() })?;
        let open = behind_number(text).is_none_or(|behind| unit_behind(behind).is_none());
        Ok(Self { regex, value, comma, seconds, open, named: 1.0 })
    }

    /// The same pattern for numbers in this unit: `9.41 Gbits/sec` is 9410 `Mbits/sec`. `None`: in
    /// the unit that is printed, without its prefix.
    #[must_use]
    pub fn in_unit(mut self, unit: Option<&str>) -> Self {
        self.named = unit.map_or(1.0, number::factor_of);
        self
    }

    /// The same pattern for numbers as they stand, whatever unit stands behind them.
    #[must_use]
    pub fn as_printed(mut self) -> Self {
        self.open = false;
        self
    }

    /// The first match in `text` that holds a number; `None` when there is none.
    ///
    /// # Errors
    /// [`MetricError::TwoReadings`]: the number may be either of two.
    pub fn find(&self, text: &str) -> Result<Option<MetricValue>, MetricError> {
        self.regex
            .captures_iter(text)
            .find_map(|captures| self.read(&captures, text).transpose())
            .transpose()
    }

    /// The last match in `text` that holds a number.
    ///
    /// # Errors
    /// [`MetricError::TwoReadings`]: a number may be either of two.
    pub fn find_last(&self, text: &str) -> Result<Option<MetricValue>, MetricError> {
        let mut last = None;
        for captures in self.regex.captures_iter(text) {
            last = self.read(&captures, text)?.or(last);
        }
        Ok(last)
    }

    /// What the number is, by the words around it in the pattern. After what stands behind it
    /// there, the unit that a text has `shown` counts.
    pub fn quantity(&self, shown: Option<&str>) -> Option<String> {
        words::quantity(self.as_str(), shown)
    }

    fn read(
        &self,
        captures: &Captures<'_>,
        text: &str,
    ) -> Result<Option<MetricValue>, MetricError> {
        let number = |group: usize| match captures.get(group) {
            Some(found) => number::parse(found.as_str(), self.comma),
            None => Ok(None),
        };
        let seconds = self.seconds.map(number).transpose()?;
        let (Some(value), None | Some(Some(_))) = (number(self.value)?, seconds) else {
            return Ok(None);
        };
        let end = captures.get(self.value).map_or(text.len(), |found| found.end());
        let printed = if self.open { number::printed(&text[end..]) } else { None };
        let factor = printed.map_or(1.0, |printed| printed.factor / self.named);
        let unit = printed.and_then(|printed| printed.unit);
        Ok(Some(MetricValue { value: value * factor, seconds: seconds.flatten(), unit }))
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

    fn find(pattern: &Pattern, text: &str) -> Option<MetricValue> {
        pattern.find(text).unwrap()
    }

    #[test]
    fn a_prefix_that_the_pattern_leaves_open_is_read_from_the_text() {
        let read = |pattern: &str, unit: Option<&str>, text: &str| {
            let found = find(&Pattern::new(pattern).unwrap().in_unit(unit), text).unwrap();
            (found.value, found.unit)
        };
        let iperf = r"([\d.]+) \wbits/sec";
        for (text, value) in [
            ("[  5]  0.00-1.00 sec  1.10 GBytes  9.41 Gbits/sec    0", 9.41e9),
            ("[  5]  0.00-1.00 sec   112 MBytes  941 Mbits/sec    0", 9.41e8),
        ] {
            assert_eq!(read(iperf, None, text), (value, Some("bits/sec")), "{text}");
        }
        assert_eq!(read(iperf, Some("Mbits/sec"), "9.41 Gbits/sec").0.round(), 9410.0);
        // As openssl speed and wrk print.
        assert_eq!(read(r"^AES +([\d.]+)", None, "AES    565.43k   1.2k").0, 565_430.0);
        assert_eq!(read(r"Latency +([\d.]+)", None, "Latency   1.20ms  2us").1, Some("s"));
        assert_eq!(read(r"Latency +([\d.]+)", Some("us"), "Latency   1.20ms").0.round(), 1200.0);
        // A pattern that fixes the unit takes the number as it is.
        assert_eq!(read(r"([\d.]+) Gbits/sec", None, "9.41 Gbits/sec"), (9.41, None));
        let printed = Pattern::new(iperf).unwrap().as_printed();
        let found = find(&printed, "9.41 Gbits/sec").unwrap();
        assert_eq!((found.value, found.unit), (9.41, None), "as before prefixes counted");
        assert_eq!(
            read(r"rate=([\d.]+(?:k|M)?)", None, "rate=12.3k ops/s"),
            (12_300.0, Some("ops/s"))
        );
    }

    #[test]
    fn json_is_read_on_one_line_or_on_many() {
        let pattern = Pattern::new(r#""iops"\s*:\s*"?([\d.]+)"#).unwrap();
        for text in [
            r#"{"read":{"iops":512.5,"bw":1}}"#,
            "{\n  \"read\" : {\n    \"iops\" : 512.5,\n    \"bw\" : 1\n  }\n}",
            r#"{"iops": "512.5"}"#,
        ] {
            assert_eq!(find(&pattern, text).map(|found| found.value), Some(512.5), "{text}");
        }
    }

    #[test]
    fn a_comma_that_may_be_either_is_asked_about_and_the_group_s_name_answers() {
        let read = |pattern: &str| Pattern::new(pattern).unwrap().find("rate 12,345 op/s");
        let error = read(r"rate ([\d,]+)").unwrap_err();
        assert!(error.is_usage());
        assert_eq!(
            error.to_string(),
            "'12,345' may be 12345 or 12.345: name the group (?<thousands>…) or (?<decimal>…)"
        );
        let value = |pattern| read(pattern).unwrap().unwrap().value;
        assert_eq!(value(r"rate (?<thousands>[\d,]+)"), 12_345.0);
        assert_eq!(value(r"rate (?<decimal>[\d,]+)"), 12.345);
    }

    #[test]
    fn the_first_group_is_the_number() {
        let pattern = Pattern::new(r"Tx-pps: +(\d+)").unwrap();
        let found = find(&pattern, "  Tx-pps:      12034567          Tx-bps: 5776592000");
        assert_eq!(found, Some(MetricValue { value: 12_034_567.0, seconds: None, unit: None }));
    }

    #[test]
    fn named_groups_come_before_their_order() {
        let pattern = Pattern::new(r"(?<seconds>[\d.]+)s (\w+) (?<value>[\d,]+)").unwrap();
        assert_eq!(
            find(&pattern, "1.5s packets 1,000,000"),
            Some(MetricValue { value: 1e6, seconds: Some(1.5), unit: None })
        );
        let pattern = Pattern::new(r"t=(?<seconds>[\d.]+) n=(\d+)").unwrap();
        let expected = MetricValue { value: 7.0, seconds: Some(2.25), unit: None };
        assert_eq!(find(&pattern, "t=2.25 n=7"), Some(expected));
    }

    #[test]
    fn a_match_without_a_number_is_passed_over() {
        let pattern = Pattern::new(r"ops: (\S+)").unwrap();
        assert_eq!(find(&pattern, "ops: none\nops: 5").map(|found| found.value), Some(5.0));
        assert_eq!(find(&pattern, "ops: none"), None);
    }

    #[test]
    fn anchors_mean_lines() {
        let pattern = Pattern::new(r"^total:(\d+)\r?$").unwrap();
        let found = find(&pattern, "subtotal:1\ntotal:2\r\n");
        assert_eq!(found.map(|found| found.value), Some(2.0));
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
        assert!(error.contains("without closing") && !error.contains('\n'), "{error}");
    }
}
