//! Whether a budget has room for the measurements of a verdict, and which one has.

use crate::error::JobError;
use crate::open_subject::OpenSubject;
use crate::request::Request;
use pinwise_measure::Time;
use pinwise_placement::{Budget, Search};
use pinwise_present::{Notice, notice};
use std::time::Duration;

/// The budget that may do, where `spent` went before the first measurement: into a run, of a
/// program that is started anew.
pub(super) fn remedy(
    request: &Request,
    testbed: &dyn OpenSubject,
    search: &Search,
    spent: Duration,
) -> String {
    let each = testbed.each(request.period);
    pinwise_present::budget_for(search.enough(), Some(each), spent)
}

/// A budget without room for the measurements of a verdict.
struct TooFew {
    /// How many it has room for, and what a verdict takes.
    notice: Notice,
    /// It has room for less than a fifth of them: what they would show is not worth their time.
    hopeless: bool,
}

/// That what is left of a budget of time has no room for the measurements of a verdict, before the
/// first of them: of a number that comes once a second, say, or of long runs. `spent` is what
/// getting to know the program took.
///
/// # Errors
/// It has room for less than a fifth of them.
pub(crate) fn too_few(
    request: &Request,
    testbed: &dyn OpenSubject,
    search: &Search,
    spent: Duration,
) -> Result<Option<Notice>, JobError> {
    let Budget::Time(left) = request.question.budget else { return Ok(None) };
    if testbed.time() != Time::Real {
        return Ok(None);
    }
    let (enough, each) = (search.enough(), testbed.each(request.period));
    match no_room(left, enough, each, spent) {
        Some(few) if few.hopeless => Err(JobError::Usage(notice(&few.notice))),
        few => Ok(few.map(|few| few.notice)),
    }
}

/// That `left` has no room for `enough` measurements of `each`.
fn no_room(left: Duration, enough: u64, each: Duration, spent: Duration) -> Option<TooFew> {
    let [left, each, spent] = [left, each, spent].map(|time| time.as_secs_f64());
    let fits = (left / each) as u64;
    (fits < enough).then(|| TooFew {
        notice: Notice::FewMeasurements { fits, enough, each, spent },
        hopeless: 5 * fits < enough,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_without_room_for_a_verdict_is_told_before_the_first_measurement() {
        let room = |left, each| {
            let [left, each] = [left, each].map(Duration::from_millis);
            no_room(left, 50, each, Duration::ZERO)
        };
        assert!(room(60_000, 1200).is_none());
        for (left, fits, hopeless) in [(60_000, 48, false), (12_500, 10, false), (100, 0, true)] {
            let few = room(left, 1250).unwrap();
            let notice = Notice::FewMeasurements { fits, enough: 50, each: 1.25, spent: 0.0 };
            assert_eq!((few.notice, few.hopeless), (notice, hopeless), "one a second, say");
        }
    }
}
