//! The packet-processing programs of the studies, as pipelines of simulated threads.
//!
//! An instance is three threads that pass packets on over two rings (`layout`): R receives, P
//! processes, T transmits. There may be several P ([`PacketPipeline`]). Each takes the next packet
//! of the ring from R, and all feed the ring to T. Taking and giving a slot then costs an atomic
//! instruction: a load and a store of the index they share. They share the tables of the instance.
//! Threads run as in Netra DPS, with no operating system and one thread per hardware context. A
//! thread whose ring is empty or full polls it.
//!
//! **Blocks.** The compiled programs of the studies are not known, only some of their throughputs.
//! All code not named below is made of *blocks* of 18 instructions. A block has 10 additions, a
//! load of the thread's variables, 6 additions, and a taken branch. That is one load and one branch
//! in 18, as in compiled integer code. A block takes 24 cycles if nothing is shared.
//!
//! **R** waits five times for its network interface, 120 ± 32 cycles each, with 31 blocks in
//! between. It writes the packet's descriptor, 32 bytes, into the ring to P. **T** reads the
//! descriptor from the ring of P and does the same with waits of 110 ± 32 cycles. **P** reads a
//! descriptor and does 25 ± 6 blocks and the work of its program. It passes the descriptor on to T:
//!
//! - `hash1_L1`, `hash1_L2`, `hash1_Mem`: one lookup. That is 17 blocks and two loads at random in
//!   a table of 1 KiB, 512 KiB or 64 MiB.
//! - `hashN_L1`, `hashN_L2`, `hashN_Mem`: three of these.
//! - `intadd`, `intmul`, `intdiv`: `hash1_L1` and 480 additions in 30 rounds, 80 multiplications,
//!   or 26 divisions.
//! - `packet-analyzer`: 823 instructions. It loads the header (58 bytes) of a packet in memory. It
//!   stores an entry of 56 bytes in a log of 4,096.
//! - `aho-corasick`: 20 instructions for each of 167 ± 160 bytes of payload. They load the byte
//!   and a transition from 12 KiB.
//! - `stateful`: 634 instructions: 6 multiplications (hash), loads and stores in a table of 512 KiB
//!   (lock, record).
//!
//! **Sources.** The numbers of R, T and the nine IPFwd variants are chosen to approximate the
//! studies' figures. See docs/lab/fidelity.md for both. Those of the last three come from the
//! programs that ship with pinwise. The tool cachegrind counted them by instruction on x86-64
//! (`lab/examples/process.rs`). They are the instructions per packet, the mean length of payloads
//! and headers, and 12 KiB of transitions. The packets are those that the programs generate. With a
//! cache like the T2's (8 KiB, 4 ways), 0.37 transitions per byte miss. The table of `stateful` is
//! that of 4,096 active flows, 128 bytes each with lock and record. Loads and stores of the stack
//! are left out: a register window or a better compiler saves them.
//!
//! **Jitter.** Waits and loops marked ± are uniform, drawn in pairs ([`crate::program`]). Without
//! them the threads of a deterministic model fall into step for millions of cycles. One start
//! offset then says nothing about another.

mod layout;
mod pipeline;

pub use pipeline::PacketPipeline;

use super::{Address, ProgramSet, ProgramStep, Side, SimulatedProgram};
use layout::MemoryLayout;
use pinwise_measure::{Thread, Workload};

/// A packet-processing program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketProgram {
    /// IP forwarding, one lookup in 1 KiB.
    Hash1L1,
    /// IP forwarding, one lookup in 512 KiB.
    Hash1L2,
    /// IP forwarding, one lookup in 64 MiB.
    Hash1Mem,
    /// IP forwarding, three lookups in 1 KiB.
    HashNL1,
    /// IP forwarding, three lookups in 512 KiB.
    HashNL2,
    /// IP forwarding, three lookups in 64 MiB.
    HashNMem,
    /// [`PacketProgram::Hash1L1`] and additions.
    IntAdd,
    /// [`PacketProgram::Hash1L1`] and multiplications.
    IntMul,
    /// [`PacketProgram::Hash1L1`] and divisions.
    IntDiv,
    /// Decodes and logs headers.
    PacketAnalyzer,
    /// Searches the payload for keywords.
    AhoCorasick,
    /// Keeps a record of every flow.
    Stateful,
}

/// Instructions of a block.
const BLOCK: u32 = 18;
/// Waits for the interface per packet, and blocks between two of them: 31 in all with the last one.
const WAITS: u32 = 5;
const BLOCKS_PER_WAIT: u32 = 6;
const RECEIVE: u32 = 120;
const TRANSMIT: u32 = 110;
const WAIT_SPREAD: u32 = 32;
/// Bytes of a descriptor, and of one load or store.
const DESCRIPTOR: u32 = 32;
const WORD: u64 = 8;
/// Bytes of a line of the first level.
const LINE: u64 = 16;

impl PacketProgram {
    /// All programs, in the order of the papers.
    pub const ALL: [Self; 12] = [
        Self::Hash1L1,
        Self::Hash1L2,
        Self::Hash1Mem,
        Self::HashNL1,
        Self::HashNL2,
        Self::HashNMem,
        Self::IntAdd,
        Self::IntMul,
        Self::IntDiv,
        Self::PacketAnalyzer,
        Self::AhoCorasick,
        Self::Stateful,
    ];

    /// The name users type, which is that of the papers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash1L1 => "hash1_L1",
            Self::Hash1L2 => "hash1_L2",
            Self::Hash1Mem => "hash1_Mem",
            Self::HashNL1 => "hashN_L1",
            Self::HashNL2 => "hashN_L2",
            Self::HashNMem => "hashN_Mem",
            Self::IntAdd => "intadd",
            Self::IntMul => "intmul",
            Self::IntDiv => "intdiv",
            Self::PacketAnalyzer => "packet-analyzer",
            Self::AhoCorasick => "aho-corasick",
            Self::Stateful => "stateful",
        }
    }

    /// The program of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pipeline| pipeline.name() == name)
    }

    /// What its instances' threads are named after: `ipfwd0-R` is the receiver of the first
    /// instance.
    pub fn stem(self) -> &'static str {
        match self {
            Self::PacketAnalyzer => "analyzer",
            Self::AhoCorasick => "aho",
            Self::Stateful => "flow",
            _ => "ipfwd",
        }
    }

    /// The threads of instances of these programs: R, every P and T of each instance, one instance
    /// after the other. They have the names of the program's threads on Linux, so that plans are
    /// the same. Where the programs differ, roles say the program too: threads of one role do the
    /// same.
    pub fn workload<P: Copy + Into<PacketPipeline>>(programs: &[P]) -> Workload {
        let pipelines: Vec<PacketPipeline> =
            programs.iter().map(|program| (*program).into()).collect();
        let mut different = pipelines.clone();
        different.dedup();
        let thread = |instance: usize, pipeline: PacketPipeline, name: String, role: &str| {
            Thread::new(
                format!("{}{instance}-{name}", pipeline.program.stem()),
                if different.len() > 1 { format!("{pipeline}-{role}") } else { role.to_owned() },
                instance,
            )
        };
        let instances = pipelines.iter().enumerate();
        let threads = instances.flat_map(|(instance, &pipeline)| {
            let roles = pipeline.threads().into_iter();
            roles.map(move |(name, role)| (instance, pipeline, name, role))
        });
        let threads =
            threads.map(|(instance, pipeline, name, role)| thread(instance, pipeline, name, role));
        Workload {
            name: different.iter().map(ToString::to_string).collect::<Vec<_>>().join("+"),
            threads: threads.collect(),
        }
    }

    /// Instances of these programs that run together, each with its own rings, tables and packets.
    /// Threads are in the order of [`PacketProgram::workload`]. In an instance, only T counts units
    /// of work: packets.
    pub fn job<P: Copy + Into<PacketPipeline>>(programs: &[P]) -> ProgramSet {
        let mut job = ProgramSet::default();
        let mut layout = MemoryLayout::default();
        for program in programs {
            let PacketPipeline { program, processors } = (*program).into();
            let rings = [job.rings.len(), job.rings.len() + 1];
            job.rings.extend(rings.map(|_| layout.ring(DESCRIPTOR)));
            let claims = |ring: usize, side| {
                if processors > 1 { claim(job.rings[ring].index(side)) } else { Vec::new() }
            };
            let [taken, given] =
                [claims(rings[0], Side::Consumer), claims(rings[1], Side::Producer)];
            let mut steps = vec![receiver(&layout.variables(), rings[0])];
            let own = layout.variables();
            let body = [repeat(25, 6, &block(&own)), program.work(&mut layout, &own)].concat();
            for processor in 0..processors {
                // The others have variables of their own, and the tables of the first.
                let variables = if processor == 0 { own } else { layout.variables() };
                let body = body.iter().map(|step| match step {
                    ProgramStep::Load(address) if *address == own => ProgramStep::Load(variables),
                    other => *other,
                });
                let [taken, given] = [taken.clone(), given.clone()];
                steps.push([take(rings[0], taken), body.collect(), put(rings[1], given)].concat());
            }
            steps.push(transmitter(&layout.variables(), rings[1]));
            // Nothing in the steps depends on what users say.
            job.threads.extend(steps.into_iter().map(|steps| {
                SimulatedProgram::new(steps).expect("each pipeline is made of valid programs")
            }));
            layout.next_instance();
        }
        job.resident = layout.into_resident();
        job
    }

    /// What P does with a packet besides what every P does.
    fn work(self, layout: &mut MemoryLayout, variables: &Address) -> Vec<ProgramStep> {
        let block = block(variables);
        let instructions = |count: u32| repeat(count / BLOCK, 0, &block);
        let mut lookups = |times, bytes| {
            let entry = ProgramStep::Load(layout.table(bytes, WORD));
            repeat(times, 0, &[repeat(17, 0, &block), vec![entry; 2]].concat())
        };
        match self {
            Self::Hash1L1 => lookups(1, 1 << 10),
            Self::Hash1L2 => lookups(1, 512 << 10),
            Self::Hash1Mem => lookups(1, 64 << 20),
            Self::HashNL1 => lookups(3, 1 << 10),
            Self::HashNL2 => lookups(3, 512 << 10),
            Self::HashNMem => lookups(3, 64 << 20),
            Self::IntAdd => {
                [lookups(1, 1 << 10), repeat(30, 0, &[ProgramStep::Alu(16), ProgramStep::Branch])]
                    .concat()
            }
            Self::IntMul => [lookups(1, 1 << 10), repeat(80, 0, &[ProgramStep::Multiply])].concat(),
            Self::IntDiv => {
                let three = [19, 20, 19].map(ProgramStep::Divide);
                [lookups(1, 1 << 10), repeat(8, 0, &three), three[..2].to_vec()].concat()
            }
            Self::PacketAnalyzer => {
                let header = layout.packets(4, LINE).into_iter().map(ProgramStep::Load);
                let entry = layout.log(4096, 7).into_iter().map(ProgramStep::Store);
                header.chain(instructions(823 - 4 - 7)).chain(entry).collect()
            }
            Self::AhoCorasick => {
                let byte = ProgramStep::Load(layout.payload());
                let transition = ProgramStep::Load(layout.table(12 << 10, WORD));
                repeat(
                    167,
                    160,
                    &[
                        byte,
                        ProgramStep::Alu(5),
                        transition,
                        ProgramStep::Alu(12),
                        ProgramStep::Branch,
                    ],
                )
            }
            Self::Stateful => {
                let record = layout.table(512 << 10, LINE);
                let hash = repeat(6, 0, &[ProgramStep::Multiply, ProgramStep::Alu(4)]);
                let find = [ProgramStep::Load(record); 6];
                let update = [ProgramStep::Store(record), ProgramStep::Alu(4)].repeat(6);
                let rest = instructions(634 - 6 * 5 - 6 - 6 * 5);
                [hash, find.to_vec(), rest, update].concat()
            }
        }
    }
}

fn repeat(times: u32, spread: u32, steps: &[ProgramStep]) -> Vec<ProgramStep> {
    [&[ProgramStep::Loop { times, spread }], steps, &[ProgramStep::End]].concat()
}

fn block(variables: &Address) -> [ProgramStep; 4] {
    [ProgramStep::Alu(10), ProgramStep::Load(*variables), ProgramStep::Alu(6), ProgramStep::Branch]
}

/// What R and T do with their interface.
fn interface(variables: &Address, wait: u32) -> Vec<ProgramStep> {
    let block = block(variables);
    let wait = ProgramStep::Wait { mean: wait, spread: WAIT_SPREAD };
    let turn = [vec![wait], repeat(BLOCKS_PER_WAIT, 0, &block)].concat();
    [repeat(WAITS, 0, &turn), block.to_vec()].concat()
}

/// Waits for the ring; a round of polling takes 36 cycles.
fn poll(ring: usize, side: Side) -> Vec<ProgramStep> {
    vec![
        ProgramStep::Poll { ring, side },
        ProgramStep::Alu(28),
        ProgramStep::Branch,
        ProgramStep::End,
    ]
}

/// The words of the slot whose turn it is.
fn descriptor(ring: usize, side: Side) -> impl Iterator<Item = Address> {
    (0..u64::from(DESCRIPTOR) / WORD).map(move |word| Address::Slot {
        ring,
        side,
        offset: word * WORD,
    })
}

/// An atomic instruction on the index of a side that several threads share.
fn claim(index: u64) -> Vec<ProgramStep> {
    let index = Address::Fixed(index);
    vec![ProgramStep::Load(index), ProgramStep::Store(index)]
}

/// Takes a descriptor from a ring. `claim` comes before it.
fn take(ring: usize, claim: Vec<ProgramStep>) -> Vec<ProgramStep> {
    let side = Side::Consumer;
    let loads = descriptor(ring, side).map(ProgramStep::Load);
    let taken = poll(ring, side).into_iter().chain(claim).chain(loads);
    taken.chain([ProgramStep::Publish { ring, side }]).collect()
}

/// Puts a descriptor into a ring. `claim` comes before it.
fn put(ring: usize, claim: Vec<ProgramStep>) -> Vec<ProgramStep> {
    let side = Side::Producer;
    let stores = descriptor(ring, side).map(ProgramStep::Store);
    let put = poll(ring, side).into_iter().chain(claim).chain(stores);
    put.chain([ProgramStep::Publish { ring, side }]).collect()
}

fn receiver(variables: &Address, ring: usize) -> Vec<ProgramStep> {
    [interface(variables, RECEIVE), put(ring, Vec::new())].concat()
}

fn transmitter(variables: &Address, ring: usize) -> Vec<ProgramStep> {
    let done = vec![ProgramStep::Done];
    [take(ring, Vec::new()), interface(variables, TRANSMIT), done].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_workloads as native;

    #[test]
    fn programs_and_threads_are_called_as_those_that_run_on_linux() {
        assert_eq!(
            PacketProgram::ALL.map(PacketProgram::name),
            native::BuiltInProgram::ALL.map(native::BuiltInProgram::name)
        );
        assert_eq!(
            PacketProgram::ALL.map(PacketProgram::stem),
            native::BuiltInProgram::ALL.map(native::BuiltInProgram::stem)
        );
        for pipeline in PacketProgram::ALL {
            assert_eq!(PacketProgram::named(pipeline.name()), Some(pipeline));
        }
        assert_eq!(PacketProgram::named("hash2_L1"), None);
        let workload = PacketProgram::workload(&[PacketProgram::Stateful; 2]);
        let names: Vec<&str> = workload.threads.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(names, ["flow0-R", "flow0-P", "flow0-T", "flow1-R", "flow1-P", "flow1-T"]);
        assert_eq!((workload.threads[4].role.as_str(), workload.threads[4].instance), ("P", 1));
        let mixed = PacketProgram::workload(&[
            PacketProgram::IntAdd,
            PacketProgram::IntAdd,
            PacketProgram::Stateful,
        ]);
        assert_eq!(mixed.name, "intadd+stateful");
        let of = |thread: usize| {
            (mixed.threads[thread].name.as_str(), mixed.threads[thread].role.as_str())
        };
        assert_eq!([of(3), of(8)], [("ipfwd1-R", "intadd-R"), ("flow2-T", "stateful-T")]);
    }

    #[test]
    fn several_processing_threads_share_both_rings_and_the_table() {
        let four = PacketPipeline::named("hash1_L2/4").unwrap();
        let job = PacketProgram::job(&[four; 2]);
        assert_eq!((job.threads.len(), job.check()), (12, Ok(())));
        let shared: Vec<[bool; 2]> = (0..4).map(|ring| job.shared(ring)).collect();
        assert_eq!(shared, [[false, true], [true, false]].repeat(2));
        let tables = |program: &SimulatedProgram| -> Vec<Address> {
            let loads = program.steps().iter().filter_map(|step| match step {
                ProgramStep::Load(address @ Address::Random { .. }) => Some(*address),
                _ => None,
            });
            loads.collect()
        };
        assert_eq!(tables(&job.threads[1]).len(), 2);
        assert_eq!(tables(&job.threads[1]), tables(&job.threads[4]));
        assert_ne!(tables(&job.threads[1]), tables(&job.threads[7]), "of another instance");
        let workload = PacketProgram::workload(&[four; 2]);
        let names: Vec<&str> = workload.threads.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(names[..3], ["ipfwd0-R", "ipfwd0-P0", "ipfwd0-P1"]);
        assert_eq!((names[5], workload.threads[3].role.as_str()), ("ipfwd0-T", "P"));
        let one = PacketPipeline::from(PacketProgram::IntMul);
        assert_eq!(PacketProgram::job(&[one]), PacketProgram::job(&[PacketProgram::IntMul]));
    }

    #[test]
    fn every_job_is_valid_up_to_a_full_processor() {
        for pipeline in PacketProgram::ALL {
            let job = PacketProgram::job(&[pipeline; 21]);
            assert_eq!((job.threads.len(), job.rings.len()), (63, 42), "{}", pipeline.name());
            assert_eq!(job.check(), Ok(()), "{}", pipeline.name());
        }
    }

    /// Instructions of one pass, with the middle of every range, polls found ready.
    fn instructions(steps: &[ProgramStep]) -> u64 {
        let mut counts = vec![(1, 0)];
        for step in steps {
            match *step {
                ProgramStep::Loop { times, .. } => counts.push((u64::from(times), 0)),
                ProgramStep::Poll { .. } => counts.push((0, 0)),
                ProgramStep::End => {
                    let (times, count) = counts.pop().unwrap();
                    counts.last_mut().unwrap().1 += times * count;
                }
                ProgramStep::Done => {}
                ProgramStep::Alu(count) => counts.last_mut().unwrap().1 += u64::from(count),
                _ => counts.last_mut().unwrap().1 += 1,
            }
        }
        counts[0].1
    }

    #[test]
    fn the_derived_programs_have_the_instructions_that_were_counted() {
        let work = |pipeline: PacketProgram| {
            let mut layout = MemoryLayout::default();
            let variables = layout.variables();
            instructions(&pipeline.work(&mut layout, &variables))
        };
        assert_eq!(work(PacketProgram::Hash1L1), 17 * 18 + 2);
        assert_eq!(work(PacketProgram::HashNMem), 3 * (17 * 18 + 2));
        assert_eq!(work(PacketProgram::IntAdd) - work(PacketProgram::Hash1L1), 30 * 17);
        assert_eq!(work(PacketProgram::IntMul) - work(PacketProgram::Hash1L1), 80);
        assert_eq!(work(PacketProgram::IntDiv) - work(PacketProgram::Hash1L1), 26);
        assert!(work(PacketProgram::PacketAnalyzer).abs_diff(823) < 18);
        assert!(work(PacketProgram::Stateful).abs_diff(634) < 18);
        assert_eq!(work(PacketProgram::AhoCorasick), 167 * 20);
    }

    /// The lengths that the payload loop and the header loads stand for.
    #[test]
    fn packets_are_as_long_as_those_of_the_native_programs() {
        let traffic = native::BuiltInProgram::AhoCorasick.traffic(1);
        let (mut payload, mut header) = (0, 0);
        for n in 0..traffic.frames() as u64 {
            let frame = traffic.frame(n);
            let length = native::Layout::of(frame).unwrap().payload(frame).len();
            payload += length;
            header += frame.len() - length;
        }
        assert_eq!(payload / traffic.frames(), 166);
        assert_eq!(header as u64 / traffic.frames() as u64 / LINE + 1, 4);
    }
}
