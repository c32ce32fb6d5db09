//! Whether a budget has room for the measurements of a verdict, and which one has.

use crate::open_subject::OpenSubject;
use crate::request::Request;
use pinwise_measure::Time;
use pinwise_placement::{Budget, Search};
use pinwise_present::figures;
use std::time::Duration;

/// The budget that may do, where `spent` went before the first measurement: into a run, of a
/// program that is started anew.
pub(super) fn remedy(
    request: &Request,
    testbed: &dyn OpenSubject,
    search: &Search,
    spent: Duration,
) -> String {
    let each = testbed.each(request.period, spent);
    pinwise_present::budget_for(search.enough(), Some(each), spent)
}

/// That what is left of a budget of time has no room for the measurements of a verdict, before the
/// first of them: of a number that comes once a second, say, or of long runs. `spent` is what
/// getting to know the program took.
pub(crate) fn too_few(
    request: &Request,
    testbed: &dyn OpenSubject,
    search: &Search,
    spent: Duration,
) -> Option<String> {
    let Budget::Time(left) = request.question.budget else { return None };
    if testbed.time() != Time::Real {
        return None;
    }
    let (enough, each) = (search.enough(), testbed.each(request.period, spent));
    no_room(left, enough, each)
        .map(|why| format!("{why}, and {}", pinwise_present::budget_for(enough, Some(each), spent)))
}

/// That `left` has no room for `enough` measurements of `each`.
fn no_room(left: Duration, enough: u64, each: Duration) -> Option<String> {
    let fits = (left.as_secs_f64() / each.as_secs_f64()) as u64;
    let told =
        || format!("the budget has room for about {}", figures::counted(fits, "measurement"));
    (fits < enough).then(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_without_room_for_a_verdict_is_told_before_the_first_measurement() {
        let room =
            |left, each| no_room(Duration::from_millis(left), 50, Duration::from_millis(each));
        assert_eq!(room(60_000, 1200), None);
        let told = "the budget has room for about 48 measurements";
        assert_eq!(
            room(60_000, 1250).as_deref(),
            Some(told),
            "of a number that comes once a second"
        );
        assert_eq!(room(100, 1250).as_deref(), Some(told.replace("48", "0").as_str()));
    }
}
