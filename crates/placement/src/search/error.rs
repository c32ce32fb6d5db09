//! Why a search cannot begin.

use pinwise_figures::{duration, percent};
use pinwise_measure::MeasureError;
use pinwise_prediction::{CoreLocalError, ProfilingError};
use pinwise_topology::SpaceError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why a question cannot be searched for. Reasons store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SearchError {
    /// Asked to measure every assignment of too many.
    #[error(
        "there are {count} assignments, too many to measure each; use --strategy auto, or fewer \
         threads per context"
    )]
    TooMany {
        /// The number of assignments.
        count: String,
    },
    /// BlackBox predicts how instances affect each other, and there is one.
    #[error(
        "blackbox predicts how instances affect each other, and {workload} is one instance: run \
         more (--workload NAME:2), or use --strategy auto"
    )]
    OneInstance {
        /// The workload.
        workload: String,
    },
    /// The testbed cannot run what a profile needs.
    #[error("{}", MeasureError::no_profiles(.workload))]
    NoProfile {
        /// The workload.
        workload: String,
    },
    /// Fewer measurements than the least profile takes.
    #[error(
        "profiling takes at least {least} measurements, and the budget is {budget}: use --budget \
         {enough}, or --strategy auto"
    )]
    TooSmall {
        /// Measurements of the least profile and selection.
        least: u64,
        /// Measurements there may be.
        budget: u64,
        /// A budget that does.
        enough: u64,
    },
    /// Less time than the least profile takes.
    #[error(
        "profiling {workload} takes at least {} ({least} experiments of {}), and may take only {} \
         of the budget: use --budget {enough_seconds}s or more",
        seconds(least * each_seconds), seconds(*each_seconds), percent(*share)
    )]
    TooShort {
        /// The workload.
        workload: String,
        /// Experiments of the least profile.
        least: f64,
        /// The time of each.
        each_seconds: f64,
        /// The share of the budget that profiling may take.
        share: f64,
        /// A budget that does.
        enough_seconds: f64,
    },
    /// Its threads keep to CPUs of their own. Profiles do not.
    #[error(
        "threads of {workload} keep to some of the CPUs, and blackbox would profile them on all: \
         use --strategy auto"
    )]
    Masked {
        /// The workload.
        workload: String,
    },
    /// Text: from a store that was written before reasons had the values.
    #[error("{text}")]
    Text {
        /// The message.
        text: String,
    },
    /// There is no such space. Its kinds, and those of the two below, differ from all others.
    #[error(transparent)]
    #[serde(untagged)]
    Space(#[from] SpaceError),
    /// No level to profile within.
    #[error("{0}: name another level with --core-local, or use --strategy auto, which needs none")]
    #[serde(untagged)]
    Local(CoreLocalError),
    /// The workload cannot be profiled.
    #[error(transparent)]
    #[serde(untagged)]
    Profiling(ProfilingError),
}

pinwise_measure::text_in_old_stores!(SearchError);

fn seconds(seconds: f64) -> String {
    duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeftOutReason;
    use pinwise_topology::DomainKind;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn a_refusal_is_stored_with_its_values_and_read_back() {
        let (workload, level) = ("l2fwd:2".to_owned(), DomainKind::L2);
        let too_short = SearchError::TooShort {
            workload: workload.clone(),
            least: 44.0,
            each_seconds: 0.1,
            share: 0.4,
            enough_seconds: 11.0,
        };
        let too_many = SpaceError::TooManyThreads { threads: 9, contexts: 2, per_context: 1 };
        let no_level = CoreLocalError::NoSuchLevel { wanted: level, there: vec![DomainKind::Core] };
        let mut kinds = BTreeSet::new();
        for error in [
            SearchError::TooMany { count: "7".into() },
            SearchError::OneInstance { workload: workload.clone() },
            SearchError::Masked { workload: workload.clone() },
            SearchError::NoProfile { workload },
            SearchError::TooSmall { least: 44, budget: 20, enough: 110 },
            too_short,
            SearchError::Text { text: "no room".into() },
            SearchError::Space(SpaceError::NoContexts),
            SearchError::Space(too_many),
            SearchError::Space(SpaceError::Elsewhere { cpus: "3".into() }),
            SearchError::Space(SpaceError::TooNarrow { per_context: 1 }),
            SearchError::Space(SpaceError::TooManyMasks),
            SearchError::Local(no_level),
            SearchError::Local(CoreLocalError::Irregular { level }),
            SearchError::Profiling(ProfilingError::TooManyLayouts { kinds: 3, slots: 8, level }),
        ] {
            let reason = LeftOutReason::Refused { error };
            let stored = serde_json::to_value(&reason).unwrap();
            let kind = stored["error"]["kind"].as_str().unwrap().to_owned();
            assert!(kinds.insert(kind), "two have this kind: {stored}");
            assert_eq!(serde_json::from_value::<LeftOutReason>(stored).unwrap(), reason);
        }
    }

    #[test]
    fn a_refusal_of_an_earlier_version_keeps_its_text() {
        let stored = json!({ "kind": "refused", "error": "no room" });
        let error = SearchError::Text { text: "no room".into() };
        assert_eq!(error.to_string(), "no room");
        let read = serde_json::from_value::<LeftOutReason>(stored).unwrap();
        assert_eq!(read, LeftOutReason::Refused { error });
        for stored in
            [json!({ "kind": "no_profile" }), json!({ "kind": "one_instance", "workload": "w" })]
        {
            let read = serde_json::from_value::<LeftOutReason>(stored).unwrap();
            assert!(matches!(
                read,
                LeftOutReason::Refused { error: SearchError::NoProfile { .. } }
            ));
        }
    }
}
