//! Does the work of one P thread and nothing else, so that its instructions can be counted:
//!
//! ```text
//! cargo build --release -p pinwise-lab --example process
//! valgrind --tool=cachegrind --cache-sim=yes --branch-sim=yes \
//!     target/release/examples/process aho-corasick 20000
//! ```
//!
//! The difference between two runs of different lengths is the work of the packets between them.

use pinwise_workloads::{BuiltInProgram, BuiltInWorkload, Layout, PacketAction};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, packets] = arguments.as_slice() else {
        return Err("usage: process PROGRAM PACKETS".into());
    };
    let program: BuiltInProgram = BuiltInWorkload::parse(name)?.programs()[0];
    let packets: u64 = packets.parse()?;
    let traffic = program.traffic(1);
    // As R hands them over: headers located.
    let layouts: Vec<Option<Layout>> =
        (0..traffic.frames() as u64).map(|n| Layout::of(traffic.frame(n))).collect();
    let mut processor = program.processor(1);
    let mut forwarded = 0u64;
    for n in 0..packets {
        if let Some(layout) = &layouts[n as usize % layouts.len()] {
            forwarded += u64::from(matches!(
                processor.process(traffic.frame(n), layout),
                PacketAction::Forward(_)
            ));
        }
    }
    println!("{forwarded} of {packets} packets forwarded; {:?}", processor.findings());
    Ok(())
}
