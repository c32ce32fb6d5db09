//! Where each thread of a command runs best, by the time that it takes.
//!
//! ```sh
//! cargo run -p pinwise-jobs --example place -- xz -T4 -k -c big.file
//! ```

use pinwise_campaign::Store;
use pinwise_jobs::{Caller, JobError, PlaceRequest, PlacementRequest, Silent, run};

fn main() -> Result<(), JobError> {
    // Affinities are put back by a second process, which is this program started again.
    if pinwise_jobs::served_as_guardian() {
        return Ok(());
    }
    let command = std::env::args().skip(1).collect();
    let mut request = PlacementRequest::command(command, None);
    request.question.budget = pinwise_placement::Budget::Measurements(80);
    let mut store = Store::open(&std::env::temp_dir().join("pinwise-example.db"))?;
    let answer = run(PlaceRequest::from(request), &Caller::default(), &mut store, &mut Silent)?;
    println!("{:?}: {:?}", answer.outcome.verdict, answer.plan);
    Ok(())
}
