//! Where each thread of a command runs best, by the time that it takes.
//!
//! ```sh
//! cargo run -p pinwise-jobs --example place -- xz -T4 -k -c big.file
//! ```

use pinwise_campaign::Store;
use pinwise_jobs::{Caller, JobError, PlaceRequest, Silent, Subject};
use pinwise_placement::{Budget, joined};

fn main() -> Result<(), JobError> {
    // Affinities are put back by a second process, which is this program started again.
    if pinwise_jobs::served_as_guardian() {
        return Ok(());
    }
    let command: Vec<String> = std::env::args().skip(1).collect();
    let budget = Budget::Measurements(80);
    let job = PlaceRequest::new(Subject::Rerun(command), "runtime", budget);
    let mut store = Store::open(&std::env::temp_dir().join("pinwise-example.db"))?;
    let answer = pinwise_jobs::run(job, &Caller::default(), &mut store, &mut Silent)?;
    println!("{:?}: {}", answer.outcome.advice, joined(&answer.outcome.stopped_because));
    for (index, thread) in answer.campaign.new.workload.threads.iter().enumerate() {
        let leaf = answer.outcome.best.as_ref().map(|best| best.assignment.leaf(index));
        println!("{}: leaf {leaf:?}", thread.name);
    }
    Ok(())
}
