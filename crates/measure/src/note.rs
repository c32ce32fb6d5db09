//! What disturbed measurements, as values. The text is made where it is shown.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// Something that happened while a program was measured and that no performance shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// Other programs used the contexts.
    Busy {
        /// Share of the contexts' time that they took.
        share: f64,
    },
    /// Placed threads ended, and new ones of their names took their places.
    ThreadsReplaced {
        /// How often.
        times: u64,
    },
    /// Threads or child processes appeared after the survey. They were not placed.
    ThreadsAppeared {
        /// How many.
        threads: u64,
    },
    /// In some runs a thread that has a place did not appear.
    ThreadMissing {
        /// The runs without it.
        runs: u64,
        /// All runs.
        of: u64,
    },
    /// In some runs a thread was busy that the first run did not have. It was not placed.
    ThreadUnknown {
        /// The runs with it.
        runs: u64,
        /// All runs.
        of: u64,
    },
    /// The metric never fell, so it may be a total and not a rate.
    MaybeTotal,
    /// A sentence that begins small and has no full stop: from a store that was written before
    /// notes had kinds, or from where only text is known.
    Text {
        /// The sentence.
        text: String,
    },
}

impl Note {
    /// The text of [`Self::MaybeTotal`].
    pub const MAYBE_TOTAL: &str = "the metric never fell while it was measured: if it is a total, \
        this says nothing of the program, and --counter measures its rate; if it is a rate, the \
        program was still warming up";
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Text { text }
    }
}

/// A value, or the text that stood for it in earlier versions.
#[derive(Deserialize)]
#[serde(untagged)]
enum One<T> {
    Text(String),
    Value(T),
}

impl<T: From<String>> One<T> {
    fn value(self) -> T {
        match self {
            Self::Text(text) => text.into(),
            Self::Value(value) => value,
        }
    }
}

/// Reads a value that was plain text in earlier versions.
///
/// # Errors
/// It is of a kind that this version does not know.
pub fn value_or_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + From<String>,
    D: Deserializer<'de>,
{
    One::deserialize(deserializer).map(One::value)
}

/// Reads a value that was plain text in earlier versions, or that is not there.
///
/// # Errors
/// It is of a kind that this version does not know.
pub fn optional_value_or_text<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned + From<String>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.map(One::value))
}

/// Reads a list of values that were plain text in earlier versions: a text, or a list of texts and
/// values.
///
/// # Errors
/// It is neither, or a value is of a kind that this version does not know.
pub fn values_or_text<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned + From<String>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored<T> {
        Text(String),
        List(Vec<One<T>>),
    }
    Ok(match Stored::deserialize(deserializer)? {
        Stored::Text(text) => vec![text.into()],
        Stored::List(list) => list.into_iter().map(One::value).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disturbances;

    #[test]
    fn notes_carry_their_kind_and_those_of_earlier_versions_are_text() {
        let busy = Note::Busy { share: 0.25 };
        let written = serde_json::to_value(&busy).unwrap();
        assert_eq!(written, serde_json::json!({ "kind": "busy", "share": 0.25 }));
        let met = |notes| Disturbances { others: None, notes };
        let old: Disturbances = serde_json::from_str(r#"{"notes": ["a thread came"]}"#).unwrap();
        assert_eq!(old, met(vec![Note::Text { text: "a thread came".into() }]));
        let new = met(vec![busy, Note::MaybeTotal, Note::ThreadMissing { runs: 1, of: 9 }]);
        let again: Disturbances =
            serde_json::from_value(serde_json::to_value(&new).unwrap()).unwrap();
        assert_eq!(again, new);
        assert!(
            serde_json::from_str::<Disturbances>(r#"{"notes": [{"kind": "unheard of"}]}"#).is_err()
        );
    }
}
