//! [`ThreadsPerN`]: how many threads a program makes for its parameter, and back.
//!
//! A search counts in threads; a program takes a parameter n. The published programs make `1 + n`,
//! `1 + n + 1` or `1 + (n - 1)` threads. A pipeline of four pools makes `1 + (1 + n + n + n + n +
//! 1)`. The source is Thread Reinforcer (IISWC 2011), Table II. A [`ThreadsPerN`] is such a
//! formula. It has whole numbers, `n`, `+`, `-`, `*` and parentheses. A number right before `n` or
//! a parenthesis multiplies it. `Counting` in the crate `jobs`, `ThreadsForN` in `programs` and
//! `Convert()` in the paper mean the same relation.

use pinwise_measure::MOST_THREADS;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The number of threads for each parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ThreadsPerN {
    text: String,
    /// The number of threads is `constant + slope * n`: products of two `n` are refused.
    constant: i64,
    slope: i64,
}

/// Why a text is no formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' does not say how many threads there are for n: {reason}; write it as 1+n, 1+4*n or \
     1+(n-1)"
)]
pub struct ThreadsPerNError {
    text: String,
    reason: &'static str,
}

impl ThreadsPerN {
    /// The formula of a program that makes as many threads as its parameter says.
    pub fn identity() -> Self {
        Self { text: "n".into(), constant: 0, slope: 1 }
    }

    /// Threads for the parameter `n`, at least 1.
    pub fn threads(&self, n: u32) -> u32 {
        let threads = self.constant.saturating_add(self.slope.saturating_mul(i64::from(n)));
        u32::try_from(threads.max(1)).unwrap_or(u32::MAX)
    }

    /// Whether the number of threads depends on the parameter at all.
    pub fn follows(&self) -> bool {
        self.slope > 0
    }

    /// Convert() of figure 8: the parameter for a search's number of threads. If each n makes one
    /// thread, the number itself. The paper reports 9 threads, `1 + n`, if its search chose 8. If n
    /// makes several, the largest n whose threads do not exceed the number (63 for 64). At least 1.
    pub fn parameter(&self, threads: u32) -> u32 {
        if self.slope < 2 {
            return threads.max(1);
        }
        let largest = (i64::from(threads) - self.constant) / self.slope;
        u32::try_from(largest.max(1)).unwrap_or(u32::MAX)
    }
}

impl TryFrom<String> for ThreadsPerN {
    type Error = ThreadsPerNError;

    fn try_from(text: String) -> Result<Self, ThreadsPerNError> {
        text.parse()
    }
}

impl From<ThreadsPerN> for String {
    fn from(formula: ThreadsPerN) -> Self {
        formula.text
    }
}

impl fmt::Display for ThreadsPerN {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ThreadsPerN {
    type Err = ThreadsPerNError;

    fn from_str(text: &str) -> Result<Self, ThreadsPerNError> {
        let error = |reason| ThreadsPerNError { text: text.into(), reason };
        let letters: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let mut parser = Parser { rest: &letters, depth: 0 };
        let Linear { constant, slope } = parser.sum().map_err(error)?;
        if !parser.rest.is_empty() {
            return Err(error("something follows its end"));
        }
        if slope < 0 {
            return Err(error("it shrinks as n grows"));
        }
        Ok(Self { text: text.trim().into(), constant, slope })
    }
}

/// `constant + slope * n`.
#[derive(Clone, Copy)]
struct Linear {
    constant: i64,
    slope: i64,
}

struct Parser<'a> {
    rest: &'a [char],
    depth: u32,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Linear, &'static str> {
        let mut sum = self.product()?;
        while let Some(sign @ ('+' | '-')) = self.rest.first().copied() {
            self.rest = &self.rest[1..];
            let next = self.product()?;
            let factor = if sign == '+' { 1 } else { -1 };
            sum = sane(sum.constant + factor * next.constant, sum.slope + factor * next.slope)?;
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Linear, &'static str> {
        let mut product = self.atom()?;
        loop {
            match self.rest.first() {
                Some('*') => self.rest = &self.rest[1..],
                // 4n, 4(n+1)
                Some('n' | '(') => {}
                _ => return Ok(product),
            }
            let next = self.atom()?;
            if product.slope != 0 && next.slope != 0 {
                return Err("n is multiplied by n");
            }
            let slope = product.constant * next.slope + product.slope * next.constant;
            product = sane(product.constant * next.constant, slope)?;
        }
    }

    fn atom(&mut self) -> Result<Linear, &'static str> {
        let (first, rest) = self.rest.split_first().ok_or("it ends too early")?;
        match first {
            'n' => {
                self.rest = rest;
                Ok(Linear { constant: 0, slope: 1 })
            }
            '(' => {
                self.depth += 1;
                if self.depth > 100 {
                    return Err("it is nested too deeply");
                }
                self.rest = rest;
                let inner = self.sum()?;
                self.rest = self.rest.strip_prefix(&[')']).ok_or("a parenthesis is not closed")?;
                self.depth -= 1;
                Ok(inner)
            }
            digit if digit.is_ascii_digit() => {
                let length = self.rest.iter().take_while(|letter| letter.is_ascii_digit()).count();
                let (digits, rest) = self.rest.split_at(length);
                self.rest = rest;
                let number: String = digits.iter().collect();
                sane(number.parse().map_err(|_| "a number is too large")?, 0)
            }
            _ => Err("it has other signs than n, numbers, + - * and parentheses"),
        }
    }
}

fn sane(constant: i64, slope: i64) -> Result<Linear, &'static str> {
    if constant.abs().max(slope.abs()) > i64::from(MOST_THREADS) {
        return Err("a number is too large");
    }
    Ok(Linear { constant, slope })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn formula(text: &str) -> ThreadsPerN {
        text.parse().unwrap()
    }

    #[test]
    fn the_paper_s_programs() {
        // Table II, with n = 15 and, for ferret, its 63 threads.
        for (text, threads) in
            [("1+n", 16), ("1 + (1 + n + n + n + n + 1)", 63), ("1+n+1", 17), ("1 + (n-1)", 15)]
        {
            assert_eq!(formula(text).threads(15), threads, "{text}");
        }
        assert_eq!((formula("1+n").parameter(8), formula("1+n+1").parameter(24)), (8, 24));
        let ferret = formula("1 + (1 + n + n + n + n + 1)");
        assert_eq!((ferret.parameter(64), ferret.parameter(62), ferret.parameter(1)), (15, 14, 1));
    }

    #[test]
    fn other_ways_to_write_it() {
        for text in ["3+4n", "3+4*n", "3 + 2(n+n)", "(3)+n*4", "5+4n-2"] {
            assert_eq!((formula(text).threads(2), formula(text).threads(10)), (11, 43), "{text}");
        }
        assert_eq!(formula("n-3").threads(1), 1, "there is always a thread");
        assert!(!formula("8").follows() && formula("n").follows());
        assert_eq!(formula(" 1+n ").to_string(), "1+n");
    }

    #[test]
    fn what_is_no_formula_is_refused_in_one_line() {
        for text in [
            "",
            "1+",
            "n*n",
            "n^2",
            "(n",
            "n)",
            "m",
            "1-n",
            "99999999999999999999",
            "1048577*n",
            "+n",
            "n n n",
        ] {
            let error = text.parse::<ThreadsPerN>().unwrap_err().to_string();
            assert!(!error.contains('\n') && error.contains("1+n"), "{error}");
        }
        assert!("(".repeat(100_000).parse::<ThreadsPerN>().is_err());
    }

    proptest! {
        /// The parameter for a number of threads is the largest that does not make more, if n
        /// makes several.
        #[test]
        fn convert_is_the_inverse(constant in 0u32..20, slope in 2u32..9, threads in 1u32..500) {
            let formula = formula(&format!("{constant}+{slope}n"));
            let n = formula.parameter(threads);
            prop_assert!(n == 1 || formula.threads(n) <= threads);
            prop_assert!(formula.threads(n + 1) > threads);
        }

        #[test]
        fn any_text_is_a_formula_or_an_error(text in "[0-9n+*() -]{0,40}") {
            let _ = text.parse::<ThreadsPerN>();
        }
    }
}
