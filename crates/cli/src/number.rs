//! Whole numbers on the command line.

use pinwise_testbed::figures::count;
use std::ops::RangeInclusive;

/// Reads a whole number of `range`; what is refused is told the range in words.
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

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn the_range_is_told_in_words() {
        let rounds = whole::<u64>(5..=100_000);
        assert_eq!([rounds("5"), rounds("100000")], [Ok(5), Ok(100_000)]);
        for text in ["4", "100001", "-3", "many", ""] {
            assert_eq!(rounds(text).unwrap_err(), "expected a whole number from 5 to 100,000", "{text}");
        }
        assert_eq!(whole::<u32>(1..=u64::MAX)("0").unwrap_err(), "expected a whole number from 1");
    }
}
