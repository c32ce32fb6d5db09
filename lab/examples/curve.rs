//! The speed of a described program by its number of threads: `cargo run --release -p pinwise-lab
//! --example curve -- facesim`.
//!
//! Whole runs give the speed-up, a probe of 100 ms gives what the search for a number of threads
//! sees.

use pinwise_scheduler::{ModelProber, ModelProgram, Nanos, Platform, run};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let platform = Platform::opteron_24();
    let name = std::env::args().nth(1).ok_or("which program? facesim, ferret, ...")?;
    let program = match name.strip_suffix(".toml") {
        Some(_) => ModelProgram::parse(&std::fs::read_to_string(&name)?)?,
        None => ModelProgram::built_in(&name)?,
    };
    println!(
        "    n threads  speedup   LOCK %  VCX/s  MIGR/s  UTIL % | whole run: USR SYS LCK SLP LAT \
         %, VCX %"
    );
    for threads in [1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72] {
        let n = program.parameter(threads);
        let probe = ModelProber::new(platform.clone(), program.clone(), 1)
            .probe(n, Duration::from_millis(100))?
            .probe
            .profile;
        let whole = run(&platform, &program, n, 1)?;
        let total = whole.total();
        let share = |part: Nanos| part.seconds() / total.elapsed().seconds() * 100.0;
        println!(
            "{n:5} {:7} {:8.2} {:8.1} {:6.0} {:7.0} {:7.1} | {:3.0} {:3.0} {:3.0} {:3.0} {:3.0}  \
             {:3.0}  {:.1} s",
            program.threads(n),
            program.sequential().seconds() / whole.at.seconds(),
            probe.lock,
            probe.vcx_rate,
            probe.migr_rate,
            probe.cpu_util,
            share(total.user),
            share(total.system),
            share(total.lock),
            share(total.sleep),
            share(total.latency),
            total.voluntary as f64 / (total.voluntary + total.involuntary) as f64 * 100.0,
            whole.at.seconds(),
        );
    }
    Ok(())
}
