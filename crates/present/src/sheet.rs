//! Text for a terminal: labelled values, broken at its width.

/// Columns before a value: two, the label, one.
pub(crate) const INDENT: usize = 12;

/// Lines are not broken into less than this, however narrow the terminal.
const LEAST_WIDTH: usize = 30;

/// Text that grows line by line.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// What is written so far; every line ends in a newline.
    pub text: String,
    /// Columns of the terminal.
    pub width: usize,
}

impl Sheet {
    /// `label value`; what does not fit on the line hangs below the value.
    pub fn line(&mut self, label: &str, value: &str) {
        self.paragraph(&format!("  {label:<9} "), INDENT, value);
    }

    /// Words after `start`, broken at the width, with `indent` columns before all lines but the
    /// first. A word too long for a line is left whole: it is a path or a placement, which
    /// someone may want to copy.
    pub fn paragraph(&mut self, start: &str, indent: usize, words: &str) {
        let width = self.width.max(INDENT + LEAST_WIDTH);
        let mut line = start.to_owned();
        let mut fresh = true;
        for word in words.split_whitespace() {
            if !fresh && line.chars().count() + 1 + word.chars().count() > width {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = " ".repeat(indent);
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
            fresh = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}
