//! [`SetAside`]: measurements of a search that its answer does not rest on.

/// How many measurements a search set aside, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// They failed.
    pub failed: usize,
    /// The budget cut them short.
    pub cut_short: usize,
    /// They showed no progress, and were made again.
    pub idle: usize,
    /// Others starved them, and they were made again.
    pub starved: usize,
    /// Progress had jumped, and they were made again.
    pub jumped: usize,
    /// They came before whole runs were timed, or timed the first.
    pub earlier: usize,
}

impl SetAside {
    /// All of them.
    pub fn total(self) -> usize {
        self.failed + self.cut_short + self.idle + self.starved + self.jumped + self.earlier
    }
}
