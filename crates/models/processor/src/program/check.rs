//! What a program and a job must satisfy.

use super::{Address, PacketRing, ProgramSet, ProgramStep, Region, Side};

/// Addresses are below this: 64 GiB.
const MOST_ADDRESS: u64 = 1 << 36;

/// Why steps are no program. Steps are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulatedProgramError {
    /// A [`ProgramStep::End`] that nothing opened, or something that nothing closes.
    #[error("program, step {0}: loops, polls and ends do not match")]
    Unbalanced(usize),
    /// A pass through the program may fetch no instruction at all, and would never end.
    #[error("program: a pass may fetch no instruction")]
    Idle,
    /// A number out of its range; the documentation of the step states it.
    #[error("program, step {0}: a value is out of its range")]
    Value(usize),
}

/// Why programs cannot run together. Threads, steps and rings are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramSetError {
    /// A step names a ring that the job does not have.
    #[error("thread {thread}, step {step}: there is no ring {ring}")]
    NoRing {
        /// The thread.
        thread: usize,
        /// The step.
        step: usize,
        /// The ring it names.
        ring: usize,
    },
    /// A ring without slots, with empty slots, or beyond the addresses.
    #[error("ring {0}: no slots, empty slots, or beyond 64 GiB")]
    Ring(usize),
    /// A resident region without bytes or beyond the addresses.
    #[error("resident region {0}: no bytes, or beyond 64 GiB")]
    Region(usize),
    /// An offset that is not within the slot.
    #[error("thread {thread}, step {step}: the offset is not within a slot of ring {ring}")]
    Offset {
        /// The thread.
        thread: usize,
        /// The step.
        step: usize,
        /// The ring it names.
        ring: usize,
    },
}

impl ProgramStep {
    /// Whether it is an instruction: takes a fetch slot.
    pub fn is_instruction(&self) -> bool {
        !matches!(self, Self::Loop { .. } | Self::End | Self::Done)
    }

    /// The end of a ring that it is about, and the offset in a slot.
    fn end(&self) -> Option<(usize, Side, u64)> {
        match *self {
            Self::Poll { ring, side } | Self::Publish { ring, side } => Some((ring, side, 0)),
            Self::Load(Address::Slot { ring, side, offset })
            | Self::Store(Address::Slot { ring, side, offset }) => Some((ring, side, offset)),
            _ => None,
        }
    }

    fn is_in_range(&self) -> bool {
        match *self {
            Self::Alu(count) => count > 0,
            Self::Divide(cycles) => cycles > 0,
            Self::Wait { mean, spread } => spread < mean && mean <= u32::MAX / 2,
            Self::Loop { times, spread } => spread <= times && times <= u32::MAX / 2,
            Self::Load(address) | Self::Store(address) => address.is_in_range(),
            _ => true,
        }
    }
}

impl Address {
    fn is_in_range(&self) -> bool {
        let fits = |base: u64, length: u64| base < MOST_ADDRESS && length <= MOST_ADDRESS - base;
        match *self {
            Self::Fixed(address) => address < MOST_ADDRESS,
            Self::Walk { base, stride: grain, length } | Self::Random { base, length, grain } => {
                length > 0 && fits(base, length) && grain > 0 && length.is_multiple_of(grain)
            }
            Self::Slot { .. } => true,
        }
    }
}

/// Whether `steps` are a program.
pub(super) fn steps(steps: &[ProgramStep]) -> Result<(), SimulatedProgramError> {
    // For each open body: whether it surely runs, and whether a run of it surely fetches an
    // instruction.
    let mut bodies = vec![(true, false)];
    for (number, step) in steps.iter().enumerate() {
        if !step.is_in_range() {
            return Err(SimulatedProgramError::Value(number));
        }
        if step.is_instruction()
            && let Some((_, fetches)) = bodies.last_mut()
        {
            *fetches = true;
        }
        match *step {
            ProgramStep::Loop { times, spread } => bodies.push((times > spread, false)),
            ProgramStep::Poll { .. } => bodies.push((false, true)),
            ProgramStep::End if bodies.len() == 1 => {
                return Err(SimulatedProgramError::Unbalanced(number));
            }
            ProgramStep::End => {
                let inner = bodies.pop();
                if inner == Some((true, true))
                    && let Some((_, fetches)) = bodies.last_mut()
                {
                    *fetches = true;
                }
            }
            _ => {}
        }
    }
    match bodies[..] {
        [(_, true)] => Ok(()),
        [_] => Err(SimulatedProgramError::Idle),
        _ => Err(SimulatedProgramError::Unbalanced(steps.len())),
    }
}

impl ProgramSet {
    /// Whether every ring that the programs name exists and can hold what they put into it.
    pub fn check(&self) -> Result<(), ProgramSetError> {
        for (number, ring) in self.rings.iter().enumerate() {
            let PacketRing { base, slots, slot_bytes } = *ring;
            if slots == 0
                || slot_bytes == 0
                || base >= MOST_ADDRESS
                || ring.bytes() > MOST_ADDRESS - base
            {
                return Err(ProgramSetError::Ring(number));
            }
        }
        for (number, &Region { base, length }) in self.resident.iter().enumerate() {
            if length == 0 || base >= MOST_ADDRESS || length > MOST_ADDRESS - base {
                return Err(ProgramSetError::Region(number));
            }
        }
        for (thread, program) in self.threads.iter().enumerate() {
            for (step, what) in program.steps().iter().enumerate() {
                let Some((ring, _, offset)) = what.end() else { continue };
                let Some(found) = self.rings.get(ring) else {
                    return Err(ProgramSetError::NoRing { thread, step, ring });
                };
                if offset >= u64::from(found.slot_bytes) {
                    return Err(ProgramSetError::Offset { thread, step, ring });
                }
            }
        }
        Ok(())
    }

    /// Whether several threads are the producers of a ring, and its consumers.
    pub(crate) fn shared(&self, ring: usize) -> [bool; 2] {
        [Side::Producer, Side::Consumer].map(|side| {
            let is_it = |step: &ProgramStep| {
                step.end().is_some_and(|(other, at, _)| (other, at) == (ring, side))
            };
            let threads = self.threads.iter();
            threads.filter(|program| program.steps().iter().any(is_it)).count() > 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::SimulatedProgram;
    use super::*;

    #[test]
    fn bodies_must_be_closed() {
        let open = ProgramStep::Loop { times: 2, spread: 0 };
        assert_eq!(
            SimulatedProgram::new(vec![ProgramStep::Branch, ProgramStep::End]),
            Err(SimulatedProgramError::Unbalanced(1))
        );
        assert_eq!(
            SimulatedProgram::new(vec![open, ProgramStep::Branch]),
            Err(SimulatedProgramError::Unbalanced(2))
        );
        assert!(
            SimulatedProgram::new(
                [vec![open; 9], vec![ProgramStep::Branch], vec![ProgramStep::End; 9]].concat()
            )
            .is_ok()
        );
    }

    #[test]
    fn a_pass_without_an_instruction_is_refused() {
        assert_eq!(SimulatedProgram::new(vec![]), Err(SimulatedProgramError::Idle));
        assert_eq!(
            SimulatedProgram::new(vec![ProgramStep::Done]),
            Err(SimulatedProgramError::Idle)
        );
        let sometimes = |spread| {
            vec![ProgramStep::Loop { times: 2, spread }, ProgramStep::Branch, ProgramStep::End]
        };
        assert_eq!(SimulatedProgram::new(sometimes(2)), Err(SimulatedProgramError::Idle));
        assert!(SimulatedProgram::new(sometimes(1)).is_ok());
        let poll = vec![ProgramStep::Poll { ring: 0, side: Side::Consumer }, ProgramStep::End];
        assert!(SimulatedProgram::new(poll).is_ok());
        let inner = vec![
            ProgramStep::Loop { times: 1, spread: 1 },
            ProgramStep::Loop { times: 1, spread: 0 },
            ProgramStep::Branch,
            ProgramStep::End,
            ProgramStep::End,
        ];
        assert_eq!(SimulatedProgram::new(inner), Err(SimulatedProgramError::Idle));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for step in [
            ProgramStep::Alu(0),
            ProgramStep::Divide(0),
            ProgramStep::Wait { mean: 10, spread: 10 },
            ProgramStep::Loop { times: 3, spread: 4 },
            ProgramStep::Load(Address::Fixed(1 << 36)),
            ProgramStep::Load(Address::Walk { base: 0, stride: 48, length: 1024 }),
            ProgramStep::Store(Address::Random { base: 0, length: 0, grain: 8 }),
            ProgramStep::Store(Address::Random { base: (1 << 36) - 64, length: 128, grain: 64 }),
        ] {
            assert_eq!(
                SimulatedProgram::new(vec![ProgramStep::Branch, step]),
                Err(SimulatedProgramError::Value(1)),
                "{step:?}"
            );
        }
    }

    #[test]
    fn a_job_knows_its_rings() {
        let ring = PacketRing { base: 0, slots: 16, slot_bytes: 32 };
        let job = |steps: Vec<ProgramStep>, rings| ProgramSet {
            threads: vec![SimulatedProgram::new(steps).unwrap()],
            rings,
            resident: Vec::new(),
        };
        let publish = ProgramStep::Publish { ring: 0, side: Side::Producer };
        assert_eq!(job(vec![publish], vec![ring]).check(), Ok(()));
        assert_eq!(
            job(vec![publish], vec![]).check(),
            Err(ProgramSetError::NoRing { thread: 0, step: 0, ring: 0 })
        );
        assert_eq!(
            job(vec![publish], vec![PacketRing { slots: 0, ..ring }]).check(),
            Err(ProgramSetError::Ring(0))
        );
        let resident = vec![Region { base: 0, length: 1 }, Region { base: 64, length: 0 }];
        assert_eq!(
            ProgramSet { resident, ..ProgramSet::default() }.check(),
            Err(ProgramSetError::Region(1))
        );
        let far = ProgramStep::Load(Address::Slot { ring: 0, side: Side::Producer, offset: 32 });
        let mut twice = job(vec![publish], vec![ring]);
        assert_eq!(twice.shared(0), [false, false]);
        twice.threads.push(twice.threads[0].clone());
        assert_eq!((twice.check(), twice.shared(0)), (Ok(()), [true, false]));
        assert_eq!(
            job(vec![far], vec![ring]).check(),
            Err(ProgramSetError::Offset { thread: 0, step: 0, ring: 0 })
        );
    }
}
