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

/// A budget without room for the measurements of a verdict.
pub(crate) struct TooFew {
    /// How many it has room for, and which budget may do.
    pub(crate) why: String,
    /// It has room for less than a fifth of them: what they would show is not worth their time.
    pub(crate) hopeless: bool,
}

/// That what is left of a budget of time has no room for the measurements of a verdict, before the
/// first of them: of a number that comes once a second, say, or of long runs. `spent` is what
/// getting to know the program took.
pub(crate) fn too_few(
    request: &Request,
    testbed: &dyn OpenSubject,
    search: &Search,
    spent: Duration,
) -> Option<TooFew> {
    let Budget::Time(left) = request.question.budget else { return None };
    if testbed.time() != Time::Real {
        return None;
    }
    let (enough, each) = (search.enough(), testbed.each(request.period, spent));
    let remedy = pinwise_present::budget_for(enough, Some(each), spent);
    no_room(left, enough, each)
        .map(|few| TooFew { why: format!("{}, and {remedy}", few.why), ..few })
}

/// That `left` has no room for `enough` measurements of `each`.
fn no_room(left: Duration, enough: u64, each: Duration) -> Option<TooFew> {
    let fits = (left.as_secs_f64() / each.as_secs_f64()) as u64;
    let room = figures::counted(fits, "measurement");
    (fits < enough).then(|| TooFew {
        why: format!("the budget has room for about {room}"),
        hopeless: 5 * fits < enough,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_without_room_for_a_verdict_is_told_before_the_first_measurement() {
        let room =
            |left, each| no_room(Duration::from_millis(left), 50, Duration::from_millis(each));
        assert!(room(60_000, 1200).is_none());
        for (left, fits, hopeless) in
            [(60_000, "48", false), (12_500, "10", false), (100, "0", true)]
        {
            let few = room(left, 1250).unwrap();
            let told = format!("the budget has room for about {fits} measurements");
            assert_eq!((few.why, few.hopeless), (told, hopeless), "one a second, say");
        }
    }
}
