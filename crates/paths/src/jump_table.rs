//! Jump tables, as GCC and LLVM make them of a `switch` for x86-64.
//!
//! The number of the case is compared with the last one, and a conditional jump leaves if it is
//! above. Then an indirect jump goes where a table says. It has one of two forms:
//!
//! - `jmp [table + 8 index]`: the table has addresses. So does code that is linked to one place.
//! - `lea base, [table]`, `movsxd to, [base + 4 index]`, `add to, base`, `jmp to`: it has distances
//!   from its own start. So does code that may lie anywhere.
//!
//! A compiler may keep the base in a register from far above, or compare somewhere else. Such a
//! table is not found. Its jump has the destinations that were observed, as any other one.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A comparison lies at most so many instructions before its jump, and so does the base.
const FARTHEST: usize = 32;
/// A table with more entries is no table.
const MOST_ENTRIES: u64 = 4096;

/// A table of destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JumpTable {
    at: u64,
    entries: u64,
    /// Whether entries are distances from the table's start, in 4 bytes. Else: addresses.
    is_relative: bool,
}

impl JumpTable {
    /// The table of an indirect jump. `before` are the instructions in front of it, the nearest
    /// first.
    pub(crate) fn of(
        jump: &Instruction,
        before: impl Iterator<Item = Instruction>,
    ) -> Option<JumpTable> {
        let mut search = Search::of(jump)?;
        let mut entries = None;
        let mut is_above = None;
        for instruction in before.take(FARTHEST) {
            match instruction.mnemonic() {
                Mnemonic::Ja if entries.is_none() && is_above.is_none() => is_above = Some(true),
                Mnemonic::Jae if entries.is_none() && is_above.is_none() => is_above = Some(false),
                Mnemonic::Cmp if entries.is_none() && instruction.op_count() == 2 => {
                    let last = instruction.try_immediate(1).ok()?;
                    entries = Some(last.checked_add(u64::from(is_above?))?);
                }
                _ => search = search.before(&instruction)?,
            }
            if let (Search::Found { at, is_relative }, Some(entries)) = (search, entries) {
                let table = JumpTable { at, entries, is_relative };
                return (1..=MOST_ENTRIES).contains(&entries).then_some(table);
            }
        }
        None
    }

    /// Where its entries lead. `None` if not all of it is in the file.
    pub(crate) fn destinations<'data>(
        self,
        bytes: impl Fn(u64, u64) -> Option<&'data [u8]>,
    ) -> Option<Vec<u64>> {
        let size = if self.is_relative { 4 } else { 8 };
        let entries = bytes(self.at, self.at.checked_add(size * self.entries)?)?;
        Some(match self.is_relative {
            true => {
                let distance = |it: &[u8; 4]| i64::from(i32::from_le_bytes(*it));
                let (entries, _) = entries.as_chunks();
                entries.iter().map(|it| self.at.wrapping_add_signed(distance(it))).collect()
            }
            false => entries.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect(),
        })
    }
}

/// What is known of the table, from the jump backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// The destination is in this register.
    Destination(Register),
    /// It is the sum of these: one is the base, the other one was loaded from the table.
    Sum(Register, Register),
    /// The base is in this register.
    Base(Register),
    Found {
        at: u64,
        is_relative: bool,
    },
}

impl Search {
    fn of(jump: &Instruction) -> Option<Search> {
        match jump.op0_kind() {
            OpKind::Register => Some(Search::Destination(jump.op0_register())),
            OpKind::Memory
                if jump.memory_base() == Register::None
                    && jump.memory_index() != Register::None
                    && jump.memory_index_scale() == 8 =>
            {
                let at = jump.memory_displacement64();
                Some(Search::Found { at, is_relative: false })
            }
            _ => None,
        }
    }

    /// What is known one instruction earlier. `None`: it is no known form.
    fn before(self, instruction: &Instruction) -> Option<Search> {
        let written = match instruction.op0_kind() {
            OpKind::Register => instruction.op0_register().full_register(),
            _ => Register::None,
        };
        let is_read_only = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        match self {
            Search::Destination(to) if written == to => match instruction.mnemonic() {
                Mnemonic::Add if instruction.op1_kind() == OpKind::Register => {
                    Some(Search::Sum(to, instruction.op1_register()))
                }
                // Each entry is loaded by itself.
                Mnemonic::Mov
                    if instruction.op1_kind() == OpKind::Memory
                        && instruction.memory_base() == Register::None
                        && instruction.memory_index_scale() == 8 =>
                {
                    let at = instruction.memory_displacement64();
                    Some(Search::Found { at, is_relative: false })
                }
                _ => None,
            },
            Search::Sum(one, other) if written == one || written == other => {
                let base = if written == one { other } else { one };
                match instruction.mnemonic() {
                    Mnemonic::Movsxd
                        if instruction.memory_base() == base
                            && instruction.memory_index_scale() == 4
                            && instruction.memory_displacement64() == 0 =>
                    {
                        Some(Search::Base(base))
                    }
                    // The base is loaded behind the entry, from the same table.
                    _ => None,
                }
            }
            Search::Base(base) if written == base && !is_read_only => (instruction.mnemonic()
                == Mnemonic::Lea
                && instruction.is_ip_rel_memory_operand())
            .then(|| Search::Found { at: instruction.ip_rel_memory_address(), is_relative: true }),
            _ => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{BasicBlock, BlockEnd, FunctionGraph, ObservedEdges};
    use proptest::prelude::*;

    /// Cases at 0x1040, 0x1044 and 0x1048 return. The code before lies at 0x1000.
    fn graph(switch: &[u8], table: &[u8]) -> FunctionGraph {
        let mut code = switch.to_vec();
        code.resize(0x40, 0xc3);
        code.extend([[0x90, 0x90, 0x90, 0xc3]; 3].concat());
        FunctionGraph::new(&code, 0x1000, &ObservedEdges::default(), |start, end| {
            let from = start.checked_sub(0x2000)? as usize;
            table.get(from..end.checked_sub(0x2000)? as usize)
        })
    }

    fn jump(graph: &FunctionGraph) -> &BasicBlock {
        graph.blocks.iter().find(|block| block.kind == BlockEnd::IndirectJump).unwrap()
    }

    fn may_leave(graph: &FunctionGraph) -> bool {
        jump(graph).exits
    }

    fn cases(graph: &FunctionGraph) -> Vec<u64> {
        jump(graph).edges.iter().map(|edge| graph.blocks[edge.to as usize].start).collect()
    }

    fn distances(to: &[u64]) -> Vec<u8> {
        to.iter().flat_map(|to| (*to as i32 - 0x2000).to_le_bytes()).collect()
    }

    /// `gcc -O2 -fPIE`: cmp $2,%edi; ja; lea table(%rip),%rdx; mov %edi,%eax;
    /// movslq (%rdx,%rax,4),%rax; add %rdx,%rax; notrack jmp *%rax.
    const OF_DISTANCES: &[u8] = &[
        0x83, 0xff, 2, 0x77, 0x20, 0x48, 0x8d, 0x15, 0xf4, 0x0f, 0, 0, 0x89, 0xf8, 0x48, 0x63,
        0x04, 0x82, 0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0,
    ];

    /// `gcc -O2 -no-pie`: cmp $2,%edi; ja; mov %edi,%edi; notrack jmp *table(,%rdi,8).
    const OF_ADDRESSES: &[u8] =
        &[0x83, 0xff, 2, 0x77, 0x20, 0x89, 0xff, 0x3e, 0xff, 0x24, 0xfd, 0, 0x20, 0, 0];

    #[test]
    fn a_table_of_distances() {
        let table = distances(&[0x1040, 0x1048, 0x1040, 0x1044]);
        // The fourth one is beyond what the comparison lets through.
        assert_eq!(cases(&graph(OF_DISTANCES, &table)), [0x1040, 0x1048]);
        assert!(!may_leave(&graph(OF_DISTANCES, &table)));
    }

    #[test]
    fn a_table_of_addresses() {
        let table: Vec<u8> = [0x1044_u64, 0x1048, 0x1044].map(u64::to_le_bytes).concat();
        assert_eq!(cases(&graph(OF_ADDRESSES, &table)), [0x1044, 0x1048]);
        // LLVM may load the entry first: mov table(,%rdi,8),%rax; jmp *%rax.
        let mut loaded = OF_ADDRESSES[..5].to_vec();
        loaded.extend([0x48, 0x8b, 0x04, 0xfd, 0, 0x20, 0, 0, 0xff, 0xe0]);
        assert_eq!(cases(&graph(&loaded, &table)), [0x1044, 0x1048]);
    }

    #[test]
    fn cases_that_leave_the_function_are_exits() {
        let table = distances(&[0x1040, 0x5000, 0x900]);
        assert_eq!(cases(&graph(OF_DISTANCES, &table)), [0x1040]);
        assert!(may_leave(&graph(OF_DISTANCES, &table)));
    }

    #[test]
    fn without_a_comparison_or_a_whole_table_there_is_none() {
        let table = distances(&[0x1040, 0x1044, 0x1048]);
        let no_cases: [u64; 0] = [];
        assert_eq!(cases(&graph(OF_DISTANCES, &table[..11])), no_cases);
        let mut unbounded = OF_DISTANCES.to_vec();
        unbounded[..5].fill(0x90);
        assert_eq!(cases(&graph(&unbounded, &table)), no_cases);
        // Another register has the base, or none is known: nop in the place of lea.
        let mut baseless = OF_DISTANCES.to_vec();
        baseless[5..12].fill(0x90);
        assert_eq!(cases(&graph(&baseless, &table)), no_cases);
    }

    proptest! {
        #[test]
        fn any_code_has_a_graph_within_it(
            code in prop::collection::vec(any::<u8>(), 0..48),
            at in 0..48_usize,
            table in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut code = code;
            let at = at.min(code.len());
            code.splice(at..at, OF_DISTANCES.iter().copied());
            let graph = graph(&code, &table);
            for block in &graph.blocks {
                prop_assert!(block.edges.iter().all(|it| (it.to as usize) < graph.blocks.len()));
            }
        }
    }
}
