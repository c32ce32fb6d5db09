//! The lines of a text, numbered, of bounded length.

use super::BranchInputError;
use std::io::{BufRead, Read};

/// No line of these formats is longer, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// The lines of a text.
pub(super) struct NumberedLines<R> {
    input: R,
    bytes: Vec<u8>,
    /// The number of the line last read, from one.
    pub(super) number: u64,
}

impl<R: BufRead> NumberedLines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, bytes: Vec::new(), number: 0 }
    }

    /// The next line, without its end. Bytes that are no UTF-8 are replaced.
    pub(super) fn next(&mut self) -> Result<Option<String>, BranchInputError> {
        self.bytes.clear();
        self.number += 1;
        let read = (&mut self.input).take(LONGEST_LINE).read_until(b'\n', &mut self.bytes)?;
        match self.bytes.pop() {
            None => return Ok(None),
            Some(b'\n') => {}
            Some(_) if read as u64 == LONGEST_LINE => return Err(self.bad()),
            Some(last) => self.bytes.push(last),
        }
        Ok(Some(String::from_utf8_lossy(&self.bytes).into_owned()))
    }

    /// The line last read is none of the format.
    pub(super) fn bad(&self) -> BranchInputError {
        BranchInputError::BadLine { line: self.number }
    }
}

/// A hexadecimal number, with or without `0x`.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}
