//! Which events of a program's threads are counted here.

use super::Finding;
use pinwise_counters::{CountError, CountSource, PerfSource, SoftwareSource};
use pinwise_linux::sys::CountedModes;

/// Tries every event that pinwise knows.
pub(super) fn counters() -> Finding {
    judge_counters(&PerfSource::open(), &SoftwareSource::open())
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
    use crate::doctor::FindingState;
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
}
