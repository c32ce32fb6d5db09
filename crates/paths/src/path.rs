//! A path, and what a fragment shows of one.
//!
//! A *path* is a sequence of blocks. It begins at an entry or a loop head, and ends at an exit or a
//! back edge. Source: Ball and Larus, "Efficient Path Profiling", MICRO-29, 1996, section 3. A
//! *partial path* is the part of a path that a fragment shows: consecutive blocks. It also says if
//! they are the first or the last ones.
//!
//! Both are sequences of marks here. Between [`START`] and a mark of the end there are the numbers
//! of blocks. So a partial path fits a path if its marks occur there side by side.

/// The mark before the first block.
pub(crate) const START: u32 = u32::MAX - 1;
const EXIT: u32 = u32::MAX;
/// Blocks have smaller numbers. With the number of a loop head it marks a back edge.
const BACK: u32 = 1 << 31;

/// How a path ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathEnd {
    /// Control leaves the function.
    Exit,
    /// Control goes back to the loop head of this number.
    Back(u32),
}

impl PathEnd {
    pub(crate) fn mark(self) -> u32 {
        match self {
            Self::Exit => EXIT,
            Self::Back(head) => BACK | head,
        }
    }
}

/// What a path does at a block: it ends, or goes on to another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathStep {
    End(PathEnd),
    On(u32),
}

impl PathStep {
    pub(crate) fn mark(self) -> u32 {
        match self {
            Self::End(end) => end.mark(),
            Self::On(block) => block,
        }
    }
}

/// A path of a function: whole, or its observed part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The number of the function's graph.
    pub function: u32,
    /// Its marks: never empty.
    pub(crate) marks: Box<[u32]>,
}

pub(crate) fn is_end(mark: u32) -> bool {
    mark >= BACK && mark != START
}

/// The block that a mark after a block leads to. None: out of the function.
pub(crate) fn destination(mark: u32) -> Option<u32> {
    (mark < START).then_some(mark & !BACK)
}

impl Path {
    /// A whole path of these blocks.
    pub fn whole(function: u32, blocks: &[u32], end: PathEnd) -> Self {
        let marks = [START].iter().chain(blocks).copied().chain([end.mark()]).collect();
        Self { function, marks }
    }

    /// The numbers of its blocks, in order.
    pub fn blocks(&self) -> &[u32] {
        let from = usize::from(self.begins());
        &self.marks[from..self.marks.len() - usize::from(self.end().is_some())]
    }

    /// Whether its first block is known to be that.
    pub fn begins(&self) -> bool {
        self.marks.first() == Some(&START)
    }

    /// How it ends, if that is known.
    pub fn end(&self) -> Option<PathEnd> {
        match *self.marks.last()? {
            EXIT => Some(PathEnd::Exit),
            mark if is_end(mark) => Some(PathEnd::Back(mark & !BACK)),
            _ => None,
        }
    }

    /// Whether all of it is known.
    pub fn is_whole(&self) -> bool {
        self.begins() && self.end().is_some()
    }
}
