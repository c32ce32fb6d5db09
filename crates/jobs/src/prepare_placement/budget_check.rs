//! Checks whether a budget fits the measurements of a verdict, and names one that does.

use crate::error::JobError;
use crate::open_subject::OpenSubject;
use crate::placement_request::PlacementRequest;
use pinwise_measure::Time;
use pinwise_placement::{Budget, PlacementSearch};
use pinwise_present::{Notice, notice};
use std::time::Duration;

/// A `--budget` that is probably enough. `spent` was used before the first measurement, such as by
/// a first run of the program.
pub(super) fn remedy(
    request: &PlacementRequest,
    testbed: &dyn OpenSubject,
    search: &PlacementSearch,
    spent: Duration,
) -> String {
    let each = testbed.each(request.period);
    pinwise_present::budget_for(search.enough(), Some(each), spent)
}

/// A budget without room for the measurements of a verdict.
struct TooFew {
    /// How many it has room for, and what a verdict takes.
    notice: Notice,
    /// The budget fits less than a fifth of the measurements of a verdict. Their result would not
    /// be worth their time.
    hopeless: bool,
}

/// A notice, before the first measurement, if the remaining time fits fewer measurements than a
/// verdict needs. Examples are a number that comes once a second, and long runs. `spent` was used
/// to examine the program. A budget that counts measurements is only refused.
///
/// # Errors
/// It has room for less than a fifth of them.
pub(crate) fn too_few(
    request: &PlacementRequest,
    testbed: &dyn OpenSubject,
    search: &PlacementSearch,
    spent: Duration,
) -> Result<Option<Notice>, JobError> {
    let enough = search.enough();
    let left = match request.question.budget {
        Budget::Measurements(asked) => return check_count(asked, enough).map(|()| None),
        Budget::Time(left) if testbed.time() == Time::Real => left,
        _ => return Ok(None),
    };
    let each = testbed.each(request.period);
    match no_room(left, enough, each, spent) {
        Some(few) if few.hopeless => Err(JobError::Usage(notice(&few.notice))),
        few => Ok(few.map(|few| few.notice)),
    }
}

/// Refuses a budget of `asked` measurements that is hopeless.
fn check_count(asked: u64, enough: u64) -> Result<(), JobError> {
    if !is_hopeless(asked, enough) {
        return Ok(());
    }
    let verdict = pinwise_present::budget_for(enough, None, Duration::ZERO);
    Err(JobError::Usage(format!("--budget {asked} is too small: {verdict}")))
}

/// The finding that `left` has no room for `enough` measurements of `each`, if it has none.
fn no_room(left: Duration, enough: u64, each: Duration, spent: Duration) -> Option<TooFew> {
    let [left, each, spent] = [left, each, spent].map(|time| time.as_secs_f64());
    let fits = (left / each) as u64;
    (fits < enough).then(|| TooFew {
        notice: Notice::FewMeasurements { fits, enough, each, spent },
        hopeless: is_hopeless(fits, enough),
    })
}

/// Whether there is room for less than a fifth of the measurements of a verdict.
fn is_hopeless(fits: u64, enough: u64) -> bool {
    fits.saturating_mul(5) < enough
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_with_room_for_less_than_a_fifth_of_a_verdict_is_refused() {
        let Err(JobError::Usage(refused)) = check_count(9, 50) else { panic!("9 are taken") };
        let expected = "--budget 9 is too small: a verdict takes at least about 50 measurements: \
            use --budget 50";
        assert_eq!(refused, expected);
        assert!(check_count(10, 50).is_ok());
    }

    #[test]
    fn a_budget_without_room_for_a_verdict_is_noted_before_the_first_measurement() {
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
