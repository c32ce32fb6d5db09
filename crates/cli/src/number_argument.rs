//! Reads numbers on the command line.

use pinwise_linux::Pid;
use pinwise_present::figures::count;
use std::ops::RangeInclusive;

/// Reads a whole number of `range`. A refusal says the range in words.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| match (*range.start(), *range.end()) {
            (from, u64::MAX) => format!("expected a whole number from {}", count(from)),
            (from, to) => format!("expected a whole number from {} to {}", count(from), count(to)),
        })
    }
}

/// Reads the number of a process, whether or not there is one.
pub(crate) fn pid(text: &str) -> Result<Pid, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(Pid).ok_or("expected the number of one process (pgrep NAME finds it)".into())
}

/// Reads a number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or("expected a number above 0".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_positive_numbers_are_told_apart_from_the_rest() {
        assert_eq!((pid("42"), positive("14.88e6")), (Ok(Pid(42)), Ok(14.88e6)));
        for text in ["0", "-3", "99999999999", "nginx", ""] {
            assert!(pid(text).unwrap_err().contains("pgrep"), "{text}");
        }
        for text in ["0", "-3", "nan", "inf", "10Gbit"] {
            assert!(positive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_allowed_range_is_in_the_message() {
        let rounds = whole::<u64>(5..=100_000);
        assert_eq!([rounds("5"), rounds("100000")], [Ok(5), Ok(100_000)]);
        for text in ["4", "100001", "-3", "many", ""] {
            assert_eq!(
                rounds(text).unwrap_err(),
                "expected a whole number from 5 to 100,000",
                "{text}"
            );
        }
        assert_eq!(whole::<u32>(1..=u64::MAX)("0").unwrap_err(), "expected a whole number from 1");
    }
}
