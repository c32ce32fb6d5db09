//! Jump tables, as GCC and LLVM make them of a `switch` for x86-64.
//!
//! The number of the case is compared with the last one, and a conditional jump leaves if it is
//! above. Then an indirect jump goes where a table says. It has one of two forms:
//!
//! - `jmp [table + 8 index]`: the table holds addresses. Code that is linked to one place has such
//!   tables.
//! - `lea base, [table]`, `movsxd to, [base + 4 index]`, `add to, base`, `jmp to`: it holds
//!   distances from its own start. Code that may lie anywhere has such tables.
//!
//! A comparison counts if it is of the index, or of what the index is a copy of. Another one
//! belongs to other code. Control must come from there without a jump or a call. A subtraction
//! compares, too.
//!
//! A compiler may keep the base in a register from far above, or compare somewhere else. Such a
//! table is not found. Its jump has the destinations that were observed, as any other one.

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// The comparison and the base lie at most this number of instructions before the jump.
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
        // The index is known together with the table, or with what loads an entry.
        let mut index = index_of(jump);
        let mut bounds: Vec<IndexBound> = Vec::new();
        let mut entries = None;
        let mut is_above = None;
        for instruction in before.take(FARTHEST) {
            let flow = instruction.flow_control();
            if !matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch) {
                return None;
            }
            match instruction.mnemonic() {
                Mnemonic::Ja => is_above = Some(true),
                Mnemonic::Jae => is_above = Some(false),
                _ => {}
            }
            let known = search;
            search = search.before(&instruction)?;
            if entries.is_none() {
                for bound in std::mem::take(&mut bounds) {
                    let place = bound.place.before(&instruction);
                    bounds.extend(place.map(|place| IndexBound { place, ..bound }));
                }
                index = match index {
                    Some(index) => Some(index.before(&instruction)?),
                    None if search != known => index_of(&instruction),
                    None => None,
                };
                // The jump is by the flags of the instruction that last changed them.
                if instruction.rflags_modified() != 0 {
                    let leaves_above = is_above.take();
                    bounds.extend(leaves_above.and_then(|it| IndexBound::of(&instruction, it)));
                }
                let bound = bounds.iter().find(|bound| index == Some(bound.place));
                entries = bound.map(|bound| bound.entries);
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

/// What holds a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// The register, in all its bits.
    Register(Register),
    /// Base, index, scale and displacement of its address.
    Memory(Register, Register, u32, u64),
}

impl Operand {
    fn of(instruction: &Instruction, operand: u32) -> Option<Operand> {
        match instruction.try_op_kind(operand).ok()? {
            OpKind::Register => {
                Some(Operand::Register(instruction.op_register(operand).full_register()))
            }
            OpKind::Memory => Some(Operand::Memory(
                instruction.memory_base(),
                instruction.memory_index(),
                instruction.memory_index_scale(),
                instruction.memory_displacement64(),
            )),
            _ => None,
        }
    }

    /// Where its number was one instruction earlier. `None`: nowhere, or nobody knows.
    fn before(self, instruction: &Instruction) -> Option<Operand> {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let writes = |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite);
        let is_written = match self {
            Operand::Register(own) => {
                let mut used = info.used_registers().iter();
                used.any(|it| {
                    !matches!(it.access(), OpAccess::Read | OpAccess::CondRead)
                        && it.register().full_register() == own
                })
            }
            Operand::Memory(..) => {
                writes(info.op0_access()) && Operand::of(instruction, 0) == Some(self)
            }
        };
        if !is_written {
            return Some(self);
        }
        let copies = matches!(
            instruction.mnemonic(),
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
        );
        copies.then(|| Operand::of(instruction, 1))?
    }
}

/// The index of what an instruction loads.
fn index_of(instruction: &Instruction) -> Option<Operand> {
    let register = instruction.memory_index();
    (register != Register::None).then(|| Operand::Register(register.full_register()))
}

/// A place, and the number of values that it may hold.
struct IndexBound {
    place: Operand,
    entries: u64,
}

impl IndexBound {
    /// The bound of a comparison with the last number. Otherwise a jump leaves, which is taken if
    /// the place is above, or, unless `leaves_above`, equal.
    fn of(instruction: &Instruction, leaves_above: bool) -> Option<IndexBound> {
        if !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub) {
            return None;
        }
        let last = instruction.try_immediate(1).ok()?;
        let entries = last.checked_add(u64::from(leaves_above))?;
        Some(IndexBound { place: Operand::of(instruction, 0)?, entries })
    }
}

/// The state of the search for a table, from the jump backwards.
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

    /// The state one instruction earlier. `None`: it is no known form.
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
    use crate::instruction_set::InstructionSet::X86_64;
    use proptest::prelude::*;

    /// Cases at 0x1040, 0x1044 and 0x1048 return. The code before lies at 0x1000.
    fn graph(switch: &[u8], table: &[u8]) -> FunctionGraph {
        let mut code = switch.to_vec();
        code.resize(0x40, 0xc3);
        code.extend([[0x90, 0x90, 0x90, 0xc3]; 3].concat());
        FunctionGraph::new(X86_64, &code, 0x1000, &ObservedEdges::default(), |start, end| {
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

    #[test]
    fn a_comparison_of_the_place_that_the_index_is_a_copy_of() {
        let table = distances(&[0x1040, 0x1048, 0x1044]);
        // The index is copied before the comparison: movzbl %dil,%eax; cmp $2,%dil; ja.
        let before = [
            0x40, 0x0f, 0xb6, 0xc7, 0x40, 0x80, 0xff, 2, 0x77, 0x1b, 0x48, 0x8d, 0x15, 0xef, 0x0f,
            0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0,
        ];
        assert_eq!(cases(&graph(&before, &table)), [0x1040, 0x1044, 0x1048]);
        // LLVM without optimisation keeps the index in memory: mov %eax,%ecx;
        // mov %rcx,-0xb0(%rbp); sub $2,%eax; ja; mov -0xb0(%rbp),%rcx.
        let mut subtracted = vec![
            0x89, 0xc1, 0x48, 0x89, 0x8d, 0x50, 0xff, 0xff, 0xff, 0x83, 0xe8, 2, 0x77, 0x26, 0x48,
            0x8b, 0x8d, 0x50, 0xff, 0xff, 0xff, 0x48, 0x8d, 0x05, 0xe4, 0x0f, 0, 0, 0x48, 0x63,
            0x0c, 0x88, 0x48, 0x01, 0xc8, 0xff, 0xe0,
        ];
        assert_eq!(cases(&graph(&subtracted, &table)), [0x1040, 0x1044, 0x1048]);
        // The index is the difference now: mov %rax,%rcx in the place of the load.
        subtracted.splice(14..21, [0x48, 0x89, 0xc1, 0x90, 0x90, 0x90, 0x90]);
        let no_cases: [u64; 0] = [];
        assert_eq!(cases(&graph(&subtracted, &table)), no_cases);
    }

    #[test]
    fn a_comparison_of_something_else_is_none() {
        let table = distances(&[0x1040, 0x1048, 0x1044]);
        let no_cases: [u64; 0] = [];
        // cmp $2,%esi
        let mut other = OF_DISTANCES.to_vec();
        other[1] = 0xfe;
        assert_eq!(cases(&graph(&other, &table)), no_cases);
        // The index changes between: lea 1(%rdi),%eax in the place of mov %edi,%eax.
        let mut changed = OF_DISTANCES.to_vec();
        changed.splice(12..14, [0x8d, 0x47, 1]);
        assert_eq!(cases(&graph(&changed, &table)), no_cases);
        // A call between, of the next instruction.
        let mut called = OF_ADDRESSES.to_vec();
        called.splice(5..5, [0xe8, 0, 0, 0, 0]);
        assert_eq!(cases(&graph(&called, &[0x44, 0x10, 0, 0, 0, 0, 0, 0].repeat(3))), no_cases);
    }

    #[test]
    fn many_numbers_of_one_case_leave_room_for_other_tables() {
        // 251 numbers are of one case: more than the function has bytes.
        let mut wide = OF_DISTANCES.to_vec();
        let table = distances(&[0x1044; 251]);
        wide.splice(0..3, [0x81, 0xff, 250, 0, 0, 0]);
        // What lies behind has moved.
        (wide[7], wide[11]) = (0x1d, 0xf1);
        assert_eq!(cases(&graph(&wide, &table)), [0x1044]);
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
