//! Prints docs/lab/fidelity.md: each published figure that the simulator can reproduce, and the
//! simulated one.
//!
//!     cargo run --release -p pinwise-lab --example fidelity -- ../shared/published [SECTION]

mod headline;
mod instances;
mod microbenchmarks;
mod paths;
mod pipelines;
mod scheduler;
mod smt;

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

/// Each section as soon as it is known. With the name of one, only that.
fn print() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments
        .next()
        .ok_or("name the folder of published figures, such as ../shared/published")?;
    let folder = PathBuf::from(folder);
    let only = arguments.next();
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let from_pages = [scheduler::section()?, paths::section()?, smt::section()?];
    if only.is_none() {
        println!("{INTRODUCTION}");
    }
    if wanted("headline") {
        println!("{}", headline::section(&folder)?);
    }
    if wanted("instances") {
        println!("{}", instances::section()?);
    }
    if wanted("microbenchmarks") {
        println!("{}", microbenchmarks::section(&folder)?);
    }
    if wanted("pipelines") {
        println!("{}", pipelines::section()?);
    }
    if only.is_none() {
        print!("{}", from_pages.join("\n"));
    }
    Ok(())
}

const INTRODUCTION: &str = "# How well the simulated machines agree with published figures

This command prints this page:

```sh
cargo run --release -p pinwise-lab --example fidelity -- ../shared/published
```

Add `headline`, `instances`, `microbenchmarks` or `pipelines` to print one section. `instances`
takes eight minutes of a processor.

[simulator.md](simulator.md) explains the model. It says which of its numbers the papers print and
which follow from their figures. The last sections have the choices of Thread Reinforcer on the
modelled operating system, program by program, path profiles, and the SMT core with its
co-scheduler.
";
