//! Text from outside, made safe for a terminal.
//!
//! The observed program chooses the names of its threads. Names of processors may come from a
//! recorded machine, and a plan or a store from a stranger. A terminal obeys control characters in
//! them. These can hide lines, forge a verdict or change the title of the window.

use std::borrow::Cow;

/// Whether a terminal could obey `c` instead of showing it. Control characters (C0, DEL, C1) and
/// separators of lines count, and so do characters that change the direction of text.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

fn escaped(text: &str, obeyed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&obeyed) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if obeyed(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// `text` for a terminal: every character that a terminal could obey is escaped as in Rust
/// (`\u{1b}`). Line ends and tabs remain.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

/// A JSON document for a terminal or a file: as [`printable`], with the escapes of JSON (`\u001b`).
/// It reads back as the same document.
pub fn printable_json(document: &str) -> Cow<'_, str> {
    // Only strings contain such a character, but for the line ends between values.
    let to_escape = |c: char| is_obeyed(c) && c != '\n';
    if !document.contains(to_escape) {
        return Cow::Borrowed(document);
    }
    let mut safe = String::with_capacity(document.len());
    for c in document.chars() {
        match to_escape(c) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// `text` for a part of a line: as [`printable`], with line ends and tabs escaped too.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("\u{1b}[31mX\u{7}"), r"\u{1b}[31mX\u{7}");
        assert_eq!(printable("over\rwritten \u{9b}2J \u{7f}"), r"over\rwritten \u{9b}2J \u{7f}");
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{2028}d"), r"a\u{202e}b\u{2066}c\u{2028}d");
        assert_eq!(one_line("rx\nPin: forged\t"), r"rx\nPin: forged\t");
    }

    #[test]
    fn json_reads_back_as_it_was() {
        let name = "\u{1b}X\n \u{7f}\u{9b}2J \u{202e}b\u{2066}c\u{2028}d \u{7} é 🙂";
        let document = serde_json::to_string_pretty(&[name]).unwrap();
        let safe = printable_json(&document);
        assert!(safe.contains(r"\u007f\u009b2J \u202eb\u2066c\u2028d \u0007 é 🙂"), "{safe}");
        assert_eq!(safe.lines().count(), document.lines().count());
        assert_eq!(serde_json::from_str::<[String; 1]>(&safe).unwrap(), [name]);
    }

    #[test]
    fn other_text_remains_as_it_is() {
        let text = "Pin: µs, ±, 日本語, 🙂\n\tindented\n";
        assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        assert_eq!(one_line("worker-1 é"), "worker-1 é");
    }
}
