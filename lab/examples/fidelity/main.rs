//! Prints docs/lab/fidelity.md: each published figure that the simulator can reproduce, and the
//! simulated one.
//!
//!     cargo run --release -p pinwise-lab --example fidelity -- ../shared/published >
//! docs/lab/fidelity.md

mod instances;
mod microbenchmarks;
mod paths;
mod pipelines;
mod scheduler;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Each section as soon as it is known: all together take half an hour.
fn print() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("name the folder of published figures, such as ../shared/published")?;
    let folder = PathBuf::from(folder);
    let from_pages = [scheduler::section()?, paths::section()?];
    println!(
        "# How well the simulated machines agree with published figures\n\nThis command prints \
         this page:\n\n```sh\ncargo run --release -p pinwise-lab --example fidelity -- \
         ../shared/published\n```\n\n[simulator.md](simulator.md) explains the model. It says \
         which of its numbers the papers print and\nwhich follow from their figures. The last \
         sections have the choices of Thread Reinforcer on the\nmodelled operating system, \
         program by program, and path \
         profiles.\n\n[smt-core.md](smt-core.md#the-paper-beside-the-model) has the figures of \
         the paper on hardware\nmonitoring for SMT.\n"
    );
    println!("{}", instances::section()?);
    println!("{}", microbenchmarks::section(&folder)?);
    println!("{}", pipelines::section()?);
    print!("{}", from_pages.join("\n"));
    Ok(())
}
