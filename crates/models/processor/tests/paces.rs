//! Skipping idle cycles and rows of instructions gives exactly what stepping through every cycle
//! gives. It holds for any programs on any contexts of any processor.

use pinwise_processor::program::{
    Address, PacketPipeline, PacketProgram, PacketRing, ProgramStep, Region, Side,
};
use pinwise_processor::{
    AfterLoad, Arbitration, Chip, ClockMode, PlacedThread, Processor, ProgramSet, SimulatedProgram,
    StrandCounters,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Programs use these rings; not every ring has both a producer and a consumer, so some wait for
/// ever.
const RINGS: usize = 4;

fn address() -> impl Strategy<Value = Address> {
    // Few lines, so that threads share some and every cache has conflicts.
    prop_oneof![
        (0u64..64).prop_map(|line| Address::Fixed(line * 16)),
        (0u64..8, select(vec![16u64, 64, 2048]), 1u64..200).prop_map(|(base, stride, steps)| {
            Address::Walk { base: base << 20, stride, length: stride * steps }
        }),
        (0u64..8, 1u64..2000).prop_map(|(base, lines)| Address::Random {
            base: base << 16,
            length: lines * 64,
            grain: 64
        }),
        (0..RINGS, side(), 0u64..32).prop_map(|(ring, side, offset)| Address::Slot {
            ring,
            side,
            offset
        }),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    select(vec![Side::Producer, Side::Consumer])
}

fn instruction() -> impl Strategy<Value = ProgramStep> {
    prop_oneof![
        3 => (1u32..20).prop_map(ProgramStep::Alu),
        1 => Just(ProgramStep::Branch),
        1 => Just(ProgramStep::Multiply),
        1 => (12u32..=41).prop_map(ProgramStep::Divide),
        1 => Just(ProgramStep::FpAdd),
        1 => Just(ProgramStep::FpDivide),
        3 => address().prop_map(ProgramStep::Load),
        2 => address().prop_map(ProgramStep::Store),
        1 => (1u32..80).prop_flat_map(|mean| {
            (0..mean).prop_map(move |spread| ProgramStep::Wait { mean, spread })
        }),
        1 => (0..RINGS, side()).prop_map(|(ring, side)| ProgramStep::Publish { ring, side }),
        1 => Just(ProgramStep::Done),
    ]
}

/// One instruction at the beginning, so that every pass has one; loops and polls around some of the
/// rest.
fn program() -> impl Strategy<Value = SimulatedProgram> {
    let block = prop_oneof![
        4 => prop::collection::vec(instruction(), 1..4),
        1 => (0u32..6, prop::collection::vec(instruction(), 0..4)).prop_flat_map(|(times, body)| {
            (0..=times).prop_map(move |spread| {
                [&[ProgramStep::Loop { times, spread }], &body[..], &[ProgramStep::End]].concat()
            })
        }),
        1 => (0..RINGS, side(), prop::collection::vec(instruction(), 0..3))
            .prop_map(|(ring, side, body)| {
                [&[ProgramStep::Poll { ring, side }], &body[..], &[ProgramStep::End]].concat()
            }),
    ];
    prop::collection::vec(block, 1..5).prop_map(|blocks| {
        SimulatedProgram::new([vec![ProgramStep::Alu(1)], blocks.concat()].concat())
            .expect("balanced, and begins with an instruction")
    })
}

/// The same program as thread number `thread` of `of`, at ends of rings that no other thread uses.
fn at_own_ends(program: &SimulatedProgram, thread: usize, threads: usize) -> SimulatedProgram {
    let own = |ring: usize, side: Side| {
        let ends: Vec<usize> = (0..2 * RINGS).filter(|end| end % threads == thread).collect();
        let end = ends[(2 * ring + side as usize) % ends.len()];
        (end / 2, if end.is_multiple_of(2) { Side::Producer } else { Side::Consumer })
    };
    let address = |address| match address {
        Address::Slot { ring, side, offset } => {
            let (ring, side) = own(ring, side);
            Address::Slot { ring, side, offset }
        }
        other => other,
    };
    let step = |step: &ProgramStep| match *step {
        ProgramStep::Load(at) => ProgramStep::Load(address(at)),
        ProgramStep::Store(at) => ProgramStep::Store(address(at)),
        ProgramStep::Poll { ring, side } => {
            let (ring, side) = own(ring, side);
            ProgramStep::Poll { ring, side }
        }
        ProgramStep::Publish { ring, side } => {
            let (ring, side) = own(ring, side);
            ProgramStep::Publish { ring, side }
        }
        other => other,
    };
    SimulatedProgram::new(program.steps().iter().map(step).collect())
        .expect("as balanced as before")
}

/// The T2, or one with other latencies or more pipes. The second level holds all that is used or
/// does not.
fn processor() -> impl Strategy<Value = Processor> {
    let t2 = Processor::model("ultrasparc-t2").unwrap();
    let l2 = select(vec![64, 1024]);
    (1u32..4, 0u32..9, 0u32..6, 1u32..4, l2).prop_map(
        move |(pipes, patience, handover, fill, l2)| {
            let mut processor = t2.clone();
            processor.intra_core.pipes = pipes;
            processor.intra_core.lsu.fill_patience = patience;
            processor.intra_core.lsu.fill = fill;
            processor.intra_core.fpd.handover = handover;
            processor.inter_core.l2.size_kib = l2;
            processor.inter_core.cores = 3;
            processor
        },
    )
}

/// A processor, a job and places for it: mostly crowded into one core.
fn scene() -> impl Strategy<Value = (Processor, ProgramSet, Vec<PlacedThread>)> {
    let contexts = Just((0..24).collect::<Vec<usize>>()).prop_shuffle();
    let threads = prop::collection::vec((program(), 0u64..40, any::<u64>()), 1..9);
    (processor(), threads, contexts, any::<bool>(), any::<bool>()).prop_map(
        |(processor, threads, mut contexts, crowded, shared)| {
            contexts.retain(|&context| {
                context < if crowded { processor.contexts_per_core() } else { processor.contexts() }
            });
            let rings = (0..RINGS as u64)
                .map(|ring| PacketRing { base: (1 << 24) + ring * 4096, slots: 3, slot_bytes: 32 })
                .collect();
            let count = threads.len().min(contexts.len());
            let (programs, placed) = (0..count)
                .zip(threads)
                .zip(contexts)
                .map(|((thread, (program, start, seed)), context)| {
                    let own = at_own_ends(&program, thread, count);
                    let program = if shared { program } else { own };
                    (program, PlacedThread { context, start, seed })
                })
                .unzip();
            let resident =
                vec![Region { base: 0, length: 1 << 18 }, Region { base: 1 << 20, length: 4096 }];
            (processor, ProgramSet { threads: programs, rings, resident }, placed)
        },
    )
}

/// Mostly instructions that need a shared unit or the port of the cache, with few others between.
fn demanding() -> impl Strategy<Value = SimulatedProgram> {
    let load = (0u64..4, 1u64..600).prop_map(|(base, lines)| {
        ProgramStep::Load(Address::Random { base: base << 16, length: lines * 16, grain: 16 })
    });
    let step = prop_oneof![
        3 => load,
        3 => select(vec![ProgramStep::Multiply, ProgramStep::FpAdd]),
        1 => (12u32..=20).prop_map(ProgramStep::Divide),
        1 => (0u64..64).prop_map(|line| ProgramStep::Store(Address::Fixed(line * 16))),
        2 => (1u32..4).prop_map(ProgramStep::Alu),
        1 => Just(ProgramStep::Branch),
    ];
    // Rounds without a unit, after which one is wanted: how many are left is known.
    let rounds = (1u32..20, 0u32..3, 1u32..9).prop_map(|(times, spread, row)| {
        let spread = spread.min(times);
        vec![
            ProgramStep::Loop { times, spread },
            ProgramStep::Alu(row),
            ProgramStep::Branch,
            ProgramStep::End,
        ]
    });
    let block = prop_oneof![4 => step.prop_map(|step| vec![step]), 1 => rounds];
    prop::collection::vec(block, 1..6).prop_map(|blocks| {
        SimulatedProgram::new([vec![ProgramStep::Alu(1)], blocks.concat()].concat())
            .expect("begins with an instruction")
    })
}

/// A core all of whose strands want its units all the time. It is tried under either arbitration,
/// whether or not loads yield after a load.
fn crowd() -> impl Strategy<Value = (Processor, ProgramSet, Vec<PlacedThread>)> {
    let threads = prop::collection::vec((demanding(), 0u64..40, any::<u64>()), 12);
    let rule = || select(vec![Arbitration::OldestFirst, Arbitration::LastUserYields]);
    let after_load = || select(vec![AfterLoad::LoadsYield, AfterLoad::Alike]);
    (processor(), threads, rule(), rule(), after_load(), 1u32..8).prop_map(
        |(mut processor, threads, fpx, lsu, after_load, taken_branch)| {
            processor.intra_pipe.fetch.after_load = after_load;
            processor.intra_core.fpx.arbitration = fpx;
            processor.intra_core.lsu.arbitration = lsu;
            processor.intra_pipe.integer.taken_branch = taken_branch;
            let count = processor.contexts_per_core().min(threads.len());
            let places = (0..count).zip(threads);
            let (threads, placed): (Vec<_>, _) = places
                .map(|(context, (program, start, seed))| {
                    (program, PlacedThread { context, start, seed })
                })
                .unzip();
            let resident = vec![Region { base: 0, length: 1 << 18 }];
            (processor, ProgramSet { threads, rings: Vec::new(), resident }, placed)
        },
    )
}

/// Threads anywhere that load a few lines again and again. Some store to half of these; one may
/// drive them out of a small second level.
fn sharers() -> impl Strategy<Value = (Processor, ProgramSet, Vec<PlacedThread>)> {
    let line = |lines: u64| (0..lines).prop_map(|line| Address::Fixed(line * 16));
    let step = prop_oneof![
        4 => line(8).prop_map(ProgramStep::Load),
        1 => line(4).prop_map(ProgramStep::Store),
        2 => (1u32..10).prop_map(ProgramStep::Alu),
        1 => Just(ProgramStep::Branch),
        1 => (1u32..80).prop_map(|mean| ProgramStep::Wait { mean, spread: mean / 2 }),
    ];
    let program = prop::collection::vec(step, 1..6);
    let threads = prop::collection::vec((program, 0u64..400, any::<u64>()), 2..7);
    let contexts = Just((0..24).collect::<Vec<usize>>()).prop_shuffle();
    (processor(), threads, contexts, any::<bool>()).prop_map(
        |(mut processor, mut threads, mut contexts, walks)| {
            if walks {
                // Eight sets of 16 lines, and 32 lines of one of them.
                processor.inter_core.l2.size_kib = 8;
                let array = Address::Walk { base: 1 << 20, stride: 512, length: 1 << 14 };
                threads.insert(0, (vec![ProgramStep::Load(array); 4], 0, 0));
            }
            contexts.retain(|&context| context < processor.contexts());
            let (threads, placed) = threads
                .into_iter()
                .zip(contexts)
                .map(|((steps, start, seed), context)| {
                    let program =
                        SimulatedProgram::new([vec![ProgramStep::Alu(1)], steps].concat())
                            .expect("begins with an instruction");
                    (program, PlacedThread { context, start, seed })
                })
                .unzip();
            (processor, ProgramSet::independent(threads), placed)
        },
    )
}

/// Packet pipelines on contexts of the T2.
fn packets() -> impl Strategy<Value = (Processor, ProgramSet, Vec<PlacedThread>)> {
    let contexts = Just((0..64).collect::<Vec<usize>>()).prop_shuffle();
    let cores = select(vec![1usize, 3, 8]);
    let pipeline = (select(PacketProgram::ALL.to_vec()), 1usize..=4)
        .prop_map(|(program, processors)| PacketPipeline { program, processors });
    (pipeline, 1usize..=8, contexts, cores, any::<u64>()).prop_map(
        |(pipeline, instances, contexts, cores, seed)| {
            let contexts: Vec<usize> =
                contexts.into_iter().filter(|context| context / 8 < cores).collect();
            let job = PacketProgram::job(&vec![
                pipeline;
                instances
                    .min(contexts.len() / (2 + pipeline.processors))
            ]);
            let place = |(thread, &context): (usize, &usize)| {
                let seed = seed.wrapping_add(thread as u64);
                PlacedThread { context, start: seed % 500, seed }
            };
            let placed = contexts.iter().take(job.threads.len()).enumerate().map(place).collect();
            (Processor::model("ultrasparc-t2").unwrap(), job, placed)
        },
    )
}

/// The counters after each of these spans.
fn watch(
    scene: &(Processor, ProgramSet, Vec<PlacedThread>),
    pace: ClockMode,
    spans: &[u64],
) -> Vec<Vec<StrandCounters>> {
    let (processor, job, placed) = scene;
    let mut chip = Chip::new(processor, job, placed, pace).unwrap();
    spans
        .iter()
        .map(|&span| {
            chip.run(span);
            chip.counters()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_paces_agree_in_every_span(
        scene in scene(),
        spans in prop::collection::vec(1u64..1500, 1..6),
    ) {
        prop_assert_eq!(
            watch(&scene, ClockMode::EveryCycle, &spans),
            watch(&scene, ClockMode::Events, &spans)
        );
    }

    #[test]
    fn both_paces_agree_where_every_strand_wants_a_unit(
        scene in crowd(),
        spans in prop::collection::vec(1u64..1500, 1..4),
    ) {
        prop_assert_eq!(
            watch(&scene, ClockMode::EveryCycle, &spans),
            watch(&scene, ClockMode::Events, &spans)
        );
    }

    #[test]
    fn both_paces_agree_where_cores_take_lines_from_each_other(
        scene in sharers(),
        spans in prop::collection::vec(1u64..4000, 1..4),
    ) {
        prop_assert_eq!(
            watch(&scene, ClockMode::EveryCycle, &spans),
            watch(&scene, ClockMode::Events, &spans)
        );
    }

    #[test]
    fn how_time_is_cut_into_spans_does_not_matter(
        scene in scene(),
        spans in prop::collection::vec(1u64..900, 1..6),
    ) {
        let whole = watch(&scene, ClockMode::Events, &[spans.iter().sum()]);
        let parts = watch(&scene, ClockMode::Events, &spans);
        prop_assert_eq!(parts.last(), whole.last());
    }

    #[test]
    fn a_pipe_never_fetches_more_than_one_instruction_a_cycle(
        scene in scene(),
        cycles in 1u64..3000,
    ) {
        let counters = &watch(&scene, ClockMode::Events, &[cycles])[0];
        let (processor, _, placed) = &scene;
        let strands = processor.intra_pipe.strands as usize;
        let mut fetched = vec![0; processor.contexts() / strands];
        for (place, counters) in placed.iter().zip(counters) {
            fetched[place.context / strands] += counters.instructions;
        }
        prop_assert!(fetched.iter().all(|&fetched| fetched <= cycles), "{:?} in \
            {}", fetched, cycles);
    }

    #[test]
    fn which_core_the_threads_share_does_not_matter(scene in scene(), which in any::<Index>()) {
        // The same threads in the next core: cores are alike.
        let (processor, job, placed) = &scene;
        let step = (1 + which.index(2)) * processor.contexts_per_core();
        let moved = placed
            .iter()
            .map(|place| PlacedThread {
                context: (place.context + step) % processor.contexts(),
                ..*place
            })
            .collect();
        let one_core = placed.iter().all(|place| place.context < processor.contexts_per_core());
        prop_assume!(one_core);
        let there = (processor.clone(), job.clone(), moved);
        let [here, there] = [&scene, &there].map(|s| watch(s, ClockMode::Events, &[2000]));
        prop_assert_eq!(here, there);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn both_paces_agree_on_packet_pipelines(scene in packets()) {
        let spans = [5000, 1, 999, 9000];
        prop_assert_eq!(
            watch(&scene, ClockMode::EveryCycle, &spans),
            watch(&scene, ClockMode::Events, &spans)
        );
    }
}
