//! Which events of a program's threads are counted here.

use super::Finding;
use pinwise_counters::{CountError, CountSource, PerfSource, SoftwareSource};
use pinwise_linux::sys::CountedModes;

/// Tries every event that pinwise knows. `hardware` is what another check found of the processor's
/// counters: an error that it has already is not repeated.
pub(super) fn counters(hardware: &Finding) -> Finding {
    reported_once(judge_counters(&PerfSource::open(), &SoftwareSource::open()), hardware)
}

fn reported_once(mut found: Finding, hardware: &Finding) -> Finding {
    if let Finding::Counters { error, .. } = &mut found
        && !hardware.is_ok()
    {
        *error = None;
    }
    found
}

fn judge_counters(hardware: &Result<PerfSource, CountError>, software: &SoftwareSource) -> Finding {
    let opened = hardware.as_ref().ok();
    let uncounted = opened.map(CountSource::uncounted).unwrap_or_default();
    Finding::Counters {
        hardware: opened.map(|source| source.named_events().to_vec()).unwrap_or_default(),
        with_kernel: opened.is_some_and(|source| source.modes() == CountedModes::UserAndKernel),
        error: hardware.as_ref().err().map(CountError::to_string),
        software: software.events(),
        uncounted: uncounted.into_iter().chain(software.uncounted()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{CountedEvents, FindingState};
    use pinwise_counters::{ProcCounts, UncountedReason};
    use pinwise_measure::CounterEvent;

    #[test]
    fn without_counters_of_the_processor_the_kernels_remain() {
        let proc = SoftwareSource::Proc(ProcCounts::default());
        let found = judge_counters(&Err(CountError::NoPmu), &proc);
        assert_eq!(found.state(), FindingState::Missing);
        let Finding::Counters { hardware, error, software, uncounted, .. } = found else {
            panic!("{found:?}")
        };
        assert_eq!(error, Some(CountError::NoPmu.to_string()));
        assert!(hardware.is_empty() && software.contains(&CounterEvent::PageFaults));
        assert!(uncounted.iter().all(|one| one.reason == UncountedReason::NotInProc));
        assert_eq!(software.len() + uncounted.len(), 4);
    }

    #[test]
    fn what_another_check_says_of_the_processor_is_not_repeated() {
        let events = CountedEvents::Hardware;
        let error = |hardware: Finding| {
            let proc = SoftwareSource::Proc(ProcCounts::default());
            match reported_once(judge_counters(&Err(CountError::NoPmu), &proc), &hardware) {
                Finding::Counters { error, .. } => error,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(error(Finding::EventsAbsent { events }), None);
        let other = error(Finding::EventsCountable { events, paranoid: None });
        assert_eq!(other, Some(CountError::NoPmu.to_string()));
    }
}
