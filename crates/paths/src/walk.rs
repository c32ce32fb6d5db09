//! Follows taken branches through the graphs, and cuts what ran into paths.
//!
//! A call does not end a path. What the callee does is a path of the callee. The caller's path goes
//! on where the callee returns to. So the walk keeps a stack of calls.
//! - A walk that begins in a callee knows of no caller. When control returns behind a call, a
//!   partial path of the caller begins with the block of that call.
//! - A walk that ends in a callee leaves a partial path in each caller that it knows of. Its last
//!   block is the one that calls.
//! - A return to a caller further up (a long jump, an exception) cuts the paths in between.
//! - A jump to another function ends the path, and its destination begins one there. That function
//!   returns to the first one's caller: a tail call.
//! - Code without a graph, such as a library, may be called, and may call. It has no paths.
//! - A branch that cannot follow the one before it (a signal, a lost record) cuts all paths.

use crate::fragments::Branch;
use crate::path::{PathEnd, START};
use crate::program_graph::{BlockPlace, Landing, ProgramGraph, SiteKind};

/// The deepest stack of calls that is kept. Beyond it the outermost call is forgotten.
const DEEPEST: usize = 1 << 16;

/// What a walk met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met<'walk> {
    /// A path or a part of one, as the marks of [`Path`](crate::path::Path), in a function.
    Path(u32, &'walk [u32]),
    /// A call within a block.
    Call(BlockPlace),
    /// A callee came back to a block.
    Return(BlockPlace),
    /// A path begins without a taken branch: control fell into a loop head from below.
    Fall(BlockPlace),
    /// A branch that cannot follow the one before it.
    Break,
}

#[derive(Debug)]
struct Frame {
    /// Without a place: code without a graph.
    place: Option<BlockPlace>,
    /// Where the callee of the pending call returns to.
    after: Option<u64>,
    /// Where its path begins in the marks of all frames.
    from: usize,
}

/// A walk through graphs.
#[derive(Debug)]
pub(crate) struct Walk<'graph> {
    program: &'graph ProgramGraph,
    frames: Vec<Frame>,
    /// The marks of the paths of all frames, outermost first.
    marks: Vec<u32>,
}

impl<'graph> Walk<'graph> {
    pub(crate) fn new(program: &'graph ProgramGraph) -> Self {
        Self { program, frames: Vec::new(), marks: Vec::new() }
    }

    /// Follows the next taken branch.
    pub(crate) fn take(&mut self, branch: Branch, met: &mut impl FnMut(Met)) {
        let Some(site) = self.program.site(branch.from) else {
            return self.take_from_unknown(branch.to, met);
        };
        if !self.run_to(site.place, met) {
            if !self.frames.is_empty() {
                met(Met::Break);
                self.cut(0, met);
            }
            self.push(Some(site.place), false);
        }
        let landing = self.program.landing(branch.to);
        match site.kind {
            SiteKind::Call(after) => {
                met(Met::Call(site.place));
                self.frames.last_mut().expect("it runs").after = Some(after);
                self.push(landing.map(|landing| landing.place), true);
            }
            SiteKind::Jump => match landing {
                Some(landing) if landing.place.function == site.place.function => {
                    self.step(landing.place, met);
                }
                _ => {
                    self.end(PathEnd::Exit, met);
                    self.pop();
                    self.push(landing.map(|landing| landing.place), true);
                }
            },
            SiteKind::Return => {
                self.end(PathEnd::Exit, met);
                self.pop();
                self.return_to(branch.to, landing, met);
            }
        }
    }

    /// Ends here: what is known about the paths that go on.
    pub(crate) fn finish(&mut self, met: &mut impl FnMut(Met)) {
        self.cut(0, met);
    }

    /// Where code without a graph goes to: back, on within unknown code, or into a function.
    fn take_from_unknown(&mut self, to: u64, met: &mut impl FnMut(Met)) {
        if self.frames.last().is_some_and(|frame| frame.place.is_some()) {
            met(Met::Break);
            self.cut(0, met);
        }
        match self.program.landing(to) {
            None if self.frames.is_empty() => self.push(None, false),
            None => {}
            Some(landing) if landing.returned => self.return_to(to, Some(landing), met),
            Some(landing) => self.push(Some(landing.place), true),
        }
    }

    fn return_to(&mut self, to: u64, landing: Option<Landing>, met: &mut impl FnMut(Met)) {
        if let Some(depth) = self.frames.iter().rposition(|frame| frame.after == Some(to)) {
            self.cut(depth + 1, met);
            let frame = &mut self.frames[depth];
            frame.after = None;
            let place = frame.place.expect("only known code has a pending call");
            met(Met::Return(place));
            return;
        }
        if self.frames.last().is_some_and(|frame| frame.place.is_none()) && landing.is_none() {
            return; // Back in the unknown code that called.
        }
        self.cut(0, met);
        self.push(landing.map(|landing| landing.place), landing.is_some_and(|it| !it.returned));
    }

    /// Runs straight on to a block. False if control cannot get there.
    fn run_to(&mut self, goal: BlockPlace, met: &mut impl FnMut(Met)) -> bool {
        let Some(Frame { place: Some(here), after: None, .. }) = self.frames.last() else {
            return false;
        };
        let here = *here;
        if here.function != goal.function {
            return false;
        }
        let graph = self.program.graph(here.function);
        let next = |block: u32| {
            let content = &graph.blocks[block as usize];
            let follows = |to: &u32| content.falls_to(&graph.blocks[*to as usize]);
            content.edges.iter().map(|edge| edge.to).find(follows).filter(|to| *to <= goal.block)
        };
        let run = || std::iter::successors(Some(here.block), |block| next(*block));
        if run().last() != Some(goal.block) {
            return false;
        }
        for block in run().skip(1) {
            if self.step(BlockPlace { block, ..here }, met) {
                met(Met::Fall(BlockPlace { block, ..here }));
            }
        }
        true
    }

    /// Along an edge. Tells whether a path begins.
    fn step(&mut self, to: BlockPlace, met: &mut impl FnMut(Met)) -> bool {
        let frame = self.frames.last_mut().expect("it runs");
        let from = frame.place.expect("known code").block;
        frame.place = Some(to);
        let edges = &self.program.graph(to.function).blocks[from as usize].edges;
        match edges.iter().find(|edge| edge.to == to.block) {
            Some(edge) if edge.back => {
                self.end(PathEnd::Back(to.block), met);
                self.marks.extend([START, to.block]);
                return true;
            }
            Some(_) => {}
            // The graph was made without this branch.
            None => self.emit(met),
        }
        self.marks.push(to.block);
        false
    }

    fn push(&mut self, place: Option<BlockPlace>, begins: bool) {
        if self.frames.len() == DEEPEST {
            // Half of them at once: this costs nothing in the long run.
            let kept = self.frames.split_off(DEEPEST / 2);
            let first = kept[0].from;
            self.marks.drain(..first);
            self.frames = kept;
            self.frames.iter_mut().for_each(|frame| frame.from -= first);
        }
        self.frames.push(Frame { place, after: None, from: self.marks.len() });
        if let Some(place) = place {
            self.marks.extend(begins.then_some(START));
            self.marks.push(place.block);
        }
    }

    fn end(&mut self, end: PathEnd, met: &mut impl FnMut(Met)) {
        self.marks.push(end.mark());
        self.emit(met);
    }

    /// Hands out the path of the innermost frame and forgets it.
    fn emit(&mut self, met: &mut impl FnMut(Met)) {
        let Some(frame) = self.frames.last() else { return };
        if let Some(place) = frame.place {
            met(Met::Path(place.function, &self.marks[frame.from..]));
        }
        self.marks.truncate(frame.from);
    }

    fn pop(&mut self) {
        let frame = self.frames.pop().expect("it runs");
        self.marks.truncate(frame.from);
    }

    /// Ends all frames from a depth on, without knowing how their paths go on.
    fn cut(&mut self, depth: usize, met: &mut impl FnMut(Met)) {
        while self.frames.len() > depth {
            self.emit(met);
            self.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{FunctionGraph, ObservedEdges};
    use crate::instruction_set::InstructionSet;
    use crate::path::Path;

    /// At 0 a function calls the one at 0x20 and returns behind it, at 5. That one is a return.
    fn caller_and_callee() -> ProgramGraph {
        let caller = [0xe8, 0x1b, 0, 0, 0, 0xc3];
        let graph = |code: &[u8], start| {
            let none = ObservedEdges::default();
            FunctionGraph::new(InstructionSet::X86_64, code, start, &none, |_, _| None)
        };
        let (caller, callee) = (graph(&caller, 0), graph(&[0xc3], 0x20));
        ProgramGraph::of_graphs(vec![caller, callee])
    }

    const CALL: Branch = Branch { from: 0, to: 0x20 };
    const BACK: Branch = Branch { from: 0x20, to: 5 };
    const OUT: Branch = Branch { from: 5, to: 0x901 };
    const IN: Branch = Branch { from: 0x900, to: 0 };

    /// Each path's function, and whether its beginning and its end are known.
    fn walked(branches: &[Branch]) -> Vec<(u32, bool, bool)> {
        let program = caller_and_callee();
        let mut paths = Vec::new();
        let mut met = |met: Met| match met {
            Met::Path(function, marks) => {
                let path = Path { function, marks: marks.into() };
                assert_eq!(path.blocks(), [0]);
                paths.push((function, path.begins(), path.end().is_some()));
            }
            Met::Break => paths.push((9, false, false)),
            _ => {}
        };
        let mut walk = Walk::new(&program);
        branches.iter().for_each(|&branch| walk.take(branch, &mut met));
        walk.finish(&mut met);
        paths
    }

    #[test]
    fn a_call_does_not_end_a_path() {
        assert_eq!(walked(&[IN, CALL, BACK, OUT]), [(1, true, true), (0, true, true)]);
    }

    #[test]
    fn a_fragment_may_begin_or_end_in_a_callee() {
        assert_eq!(walked(&[IN, CALL]), [(1, true, false), (0, true, false)]);
        assert_eq!(walked(&[BACK, OUT]), [(1, false, true), (0, false, true)]);
    }

    #[test]
    fn a_branch_that_cannot_follow_cuts_all_paths() {
        let cut = [(9, false, false), (1, true, false), (0, true, false), (0, false, true)];
        assert_eq!(walked(&[IN, CALL, OUT]), cut);
    }
}
