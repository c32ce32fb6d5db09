//! How many threads a command should run, with `{n}` where it takes their number.
//!
//! ```sh
//! cargo run -p pinwise-jobs --example threads -- xz '-T{n}' -k -c big.file
//! ```

use pinwise_campaign::Store;
use pinwise_jobs::{Caller, HostProgram, JobError, Silent, ThreadsProgram, ThreadsRequest};
use std::time::Duration;

fn main() -> Result<(), JobError> {
    // What is started is ended by a second process, which is this program started again.
    if pinwise_jobs::served_as_guardian() {
        return Ok(());
    }
    let command: Vec<String> = std::env::args().skip(1).collect();
    let program = ThreadsProgram::Here(HostProgram { command, ..HostProgram::default() });
    let mut store = Store::open(&std::env::temp_dir().join("pinwise-example.db"))?;
    let budget = Some(Duration::from_secs(20));
    let job = ThreadsRequest { budget, ..ThreadsRequest::new(program) };
    let answer = pinwise_jobs::run(job, &Caller::default(), &mut store, &mut Silent)?;
    for shown in &answer.outcome.probes {
        println!("n = {}: {:?}", shown.probe.parameter, shown.probe.progress);
    }
    if let Some(n) = answer.number() {
        println!("n = {n}");
    }
    Ok(())
}
