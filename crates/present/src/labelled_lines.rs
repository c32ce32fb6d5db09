//! [`LabelledLines`]: labelled lines for a terminal, broken at its width.

use crate::printable::one_line;
use crate::unfinished::Unfinished;

/// Columns before a value: two, the label, one.
pub(crate) const INDENT: usize = 12;

/// Lines are not broken into less than this, however narrow the terminal.
const LEAST_WIDTH: usize = 30;

/// Text that grows line by line.
#[derive(Clone, Debug)]
pub struct LabelledLines {
    /// What is written so far; every line ends in a newline.
    pub text: String,
    /// Columns of the terminal.
    pub width: usize,
}

impl LabelledLines {
    /// `label value`; what does not fit on the line hangs below the value.
    pub fn line(&mut self, label: &str, value: &str) {
        self.paragraph(&format!("  {label:<9} "), INDENT, value);
    }

    /// How far a campaign is that has not ended: on one line, so that its command can be copied.
    pub fn unfinished(&mut self, unfinished: Option<&Unfinished>) {
        if let Some(Unfinished { text, .. }) = unfinished {
            self.text.push_str(&format!("{}\n", one_line(text)));
        }
    }

    /// Words after `start`, broken at the width, with `indent` columns before all lines but the
    /// first. A word too long for a line stays whole. It is a path or a placement, and someone may
    /// want to copy it. A number stays with what it counts: `12.5 M packets/s` is torn nowhere.
    pub fn paragraph(&mut self, start: &str, indent: usize, words: &str) {
        let width = self.width.max(INDENT + LEAST_WIDTH);
        let mut line = start.to_owned();
        let mut fresh = true;
        let mut words = words.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let mut word = word.to_owned();
            while let Some(next) = words.next_if(|next| binds(&word) && !is_number(next)) {
                word.push(' ');
                word.push_str(next);
            }
            if !fresh && line.chars().count() + 1 + word.chars().count() > width {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = " ".repeat(indent);
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(&word);
            fresh = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// Whether the end of `words` belongs to the next word. A number belongs to its unit, and a prefix
/// to the unit after it.
fn binds(words: &str) -> bool {
    let mut backwards = words.split(' ').rev();
    match backwards.next() {
        Some("k" | "M" | "G" | "m" | "\u{b5}") => backwards.next().is_some_and(is_number),
        Some(word) => is_number(word),
        None => false,
    }
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['(', '+', '-', '\u{b1}', '~', '<', '>']);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.ends_with(|last: char| last.is_ascii_digit())
        && digits.chars().all(|one| one.is_ascii_digit() || matches!(one, '.' | ',' | 'e'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_numbers_is_broken() {
        let mut sheet = LabelledLines { text: String::new(), width: INDENT + LEAST_WIDTH };
        sheet.paragraph("", 0, &"12 ".repeat(60));
        assert!(sheet.text.lines().all(|line| line.len() <= sheet.width), "{}", sheet.text);
    }

    #[test]
    fn a_number_is_never_torn_from_its_unit() {
        let text = "It reaches 12.5 M packets/s (11.9 to 13.1 M packets/s, 5,000 windows, 95 %) \
            after 4 min 10 s, and that is +12.0 % more.";
        let kept = [
            "12.5 M packets/s",
            "13.1 M packets/s",
            "5,000 windows",
            "95 %)",
            "4 min",
            "10 s,",
            "+12.0 %",
        ];
        for width in INDENT + LEAST_WIDTH..text.len() {
            let mut sheet = LabelledLines { text: String::new(), width };
            sheet.paragraph("", 0, text);
            let joined = sheet.text.replace('\n', " ");
            assert_eq!(joined.trim_end(), text);
            for kept in kept {
                assert!(sheet.text.contains(kept), "{kept:?} at {width}: {}", sheet.text);
            }
            assert!(sheet.text.lines().all(|line| line.chars().count() <= width), "{width}");
        }
    }
}
