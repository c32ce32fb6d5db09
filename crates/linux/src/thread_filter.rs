//! The threads that the user wants placed, by name, and why the others are left alone.

use crate::target_error::TargetError;
use pinwise_measure::{LeftAlone, ProgramNote};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

/// The names of threads to place, and of those to leave alone. A name is the one that is shown: the
/// comm, or `comm#2` if several share it. A pattern matches anywhere in the name, as with grep.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    include: Option<Regex>,
    exclude: Option<Regex>,
    known: BTreeSet<String>,
    starter: Option<String>,
}

/// A text that is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a regular expression for thread names: {reason}")]
pub struct ThreadFilterError {
    text: String,
    reason: String,
}

impl ThreadFilter {
    /// Selects the threads whose names match `include`, except those that match `exclude`.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, ThreadFilterError> {
        let compiled = |text: &str| {
            Regex::new(text)
                .map_err(|error| ThreadFilterError { text: text.into(), reason: error.to_string() })
        };
        let (include, exclude) =
            (include.map(compiled).transpose()?, exclude.map(compiled).transpose()?);
        Ok(Self { include, exclude, ..Self::default() })
    }

    /// Selects exactly the threads of these names, if there are any: those of a campaign that is
    /// resumed. Which threads run enough was decided when the campaign began. A thread near the
    /// limit would be judged differently every other time.
    #[must_use]
    pub fn known(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { known: names.into_iter().collect(), ..self }
    }

    /// The names of the threads that are all to be placed. Empty for a new campaign.
    pub fn known_names(&self) -> &BTreeSet<String> {
        &self.known
    }

    /// The error that no thread of `name` is left to place. `running` are those that run.
    pub fn none_left(&self, name: String, running: &[impl AsRef<str>]) -> TargetError {
        let running = listed(running.iter().map(AsRef::as_ref));
        if self.known.is_empty() {
            return TargetError::NoneChosen { name, running };
        }
        let known = listed(self.known.iter().map(String::as_str));
        TargetError::NoneKnown { name, known, running }
    }

    /// Names the program whose first thread starts the others ([`Self::is_starter`]).
    #[must_use]
    pub fn started_by(self, program: &Path) -> Self {
        // The kernel keeps that much of a name.
        let comm = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            String::from_utf8_lossy(&name[..name.len().min(15)]).into_owned()
        };
        Self { starter: program.file_name().map(comm), ..self }
    }

    /// Whether it is the thread that starts the others: to be neither placed nor named. A campaign
    /// begun by an earlier version may have placed it.
    pub fn is_starter(&self, name: &str) -> bool {
        self.starter.as_deref() == Some(name) && !self.known.contains(name)
    }

    /// Why to leave alone a thread that `runs`, or does not; `None` if it is to be placed.
    pub fn why_not(&self, name: &str, runs: bool) -> Option<LeftAlone> {
        if self.include.as_ref().is_some_and(|include| !include.is_match(name)) {
            Some(LeftAlone::NotIncluded)
        } else if self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(name)) {
            Some(LeftAlone::Excluded)
        } else if self.known.contains(name) {
            None
        } else if !runs {
            Some(LeftAlone::HardlyRuns)
        } else {
            (!self.known.is_empty()).then_some(LeftAlone::Unknown)
        }
    }
}

/// The first names, and how many more there are.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 6;
    let names: Vec<&str> = names.collect();
    let first = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// One note for each reason.
pub fn left_alone<'a>(threads: impl Iterator<Item = (LeftAlone, &'a str)>) -> Vec<ProgramNote> {
    let mut reasons: BTreeMap<LeftAlone, BTreeMap<String, usize>> = BTreeMap::new();
    for (why, comm) in threads {
        *reasons.entry(why).or_default().entry(comm.to_owned()).or_default() += 1;
    }
    reasons.into_iter().map(|(reason, names)| ProgramNote::LeftAlone { reason, names }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusion_goes_before_inclusion_and_neither_makes_a_sleeper_run() {
        let filter = ThreadFilter::new(Some("worker|^main$"), Some("#0$")).unwrap();
        assert_eq!(filter.why_not("rte-worker-1", true), None);
        assert_eq!(filter.why_not("rte-worker-1", false), Some(LeftAlone::HardlyRuns));
        assert_eq!(filter.why_not("worker#0", true), Some(LeftAlone::Excluded));
        assert_eq!(filter.why_not("maintenance", true), Some(LeftAlone::NotIncluded));
        assert_eq!(ThreadFilter::default().why_not("anything", true), None);
    }

    #[test]
    fn the_thread_that_starts_a_built_in_workload_is_neither_placed_nor_listed() {
        let filter = ThreadFilter::default().started_by(Path::new("/usr/bin/pinwise-of-tomorrow"));
        assert!(filter.is_starter("pinwise-of-tomo") && !filter.is_starter("ipfwd0-R"));
        let begun_before = filter.known(["pinwise-of-tomo".to_owned()]);
        assert!(!begun_before.is_starter("pinwise-of-tomo"));
    }

    #[test]
    fn a_resumed_campaign_places_the_threads_it_was_begun_with_and_no_others() {
        let filter = ThreadFilter::default().known(["worker".to_owned(), "main".to_owned()]);
        assert_eq!(filter.why_not("worker", true), None);
        assert_eq!(
            filter.why_not("main", false),
            None,
            "about the limit it hardly runs every other time"
        );
        assert_eq!(filter.why_not("log", true), Some(LeftAlone::Unknown));
        assert_eq!(filter.why_not("log", false), Some(LeftAlone::HardlyRuns));
    }

    #[test]
    fn a_pattern_that_is_none_is_named_with_the_reason_on_one_line() {
        let error = ThreadFilter::new(None, Some("worker(")).unwrap_err().to_string();
        assert_eq!(
            error,
            "'worker(' is not a regular expression for thread names: found open group \
             without closing ')'"
        );
    }
}
