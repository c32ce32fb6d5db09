//! Notes as text, and as JSON: the kind, its values and the text.

use crate::figures;
use crate::other_load::busy;
use pinwise_measure::Note;
use serde::Serialize;
use serde_json::{Value, json};

/// A note as text that begins small and has no full stop.
pub fn note(note: &Note) -> String {
    match note {
        Note::Busy { share } => busy(*share, "measurements", ""),
        Note::ThreadsReplaced { times } => {
            let times = figures::counted(*times, "time");
            format!("placed threads that ended were replaced by new ones of their name {times}")
        }
        Note::ThreadsAppeared { threads: 1 } => {
            "a thread or child process appeared after the survey; it was not placed".to_owned()
        }
        Note::ThreadsAppeared { threads } => format!(
            "{threads} threads or child processes appeared after the survey; they were not placed"
        ),
        Note::ThreadMissing { runs, of } => {
            format!("its threads vary: in {runs} of {of} runs a placed thread did not appear")
        }
        Note::ThreadUnknown { runs, of } => format!(
            "its threads vary: in {runs} of {of} runs a thread was busy that the first run did not \
             have; it was not placed"
        ),
        Note::MaybeTotal => Note::MAYBE_TOTAL.to_owned(),
        Note::Text { text } => text.clone(),
    }
}

/// `text`, which begins small and has no full stop, as a sentence of its own. The number n stays
/// small.
pub fn sentence(text: &str) -> String {
    if text.starts_with("n = ") {
        return format!("{text}.");
    }
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    format!("{}{}.", first.into_iter().flatten().collect::<String>(), letters.as_str())
}

/// A value that is serialized with its `kind`, and its `text` beside: what JSON has of notes and
/// reasons, so that a program can go by the kind and a person by the text.
pub fn tagged(value: &impl Serialize, text: impl Into<String>) -> Value {
    let mut tagged = match serde_json::to_value(value) {
        Ok(value @ Value::Object(_)) => value,
        // Values of a kind are objects.
        _ => json!({ "kind": "text" }),
    };
    tagged["text"] = Value::String(text.into());
    tagged
}

/// The texts of values that are [`tagged`], or were plain text in documents of earlier versions.
pub fn texts(tagged: &[Value]) -> Vec<String> {
    let text = |one: &Value| one.as_str().or(one["text"].as_str()).unwrap_or_default().to_owned();
    tagged.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_a_capital_but_for_the_number() {
        assert_eq!(sentence("its threads vary"), "Its threads vary.");
        assert_eq!(sentence("n = 4 is set now"), "n = 4 is set now.");
    }

    #[test]
    fn a_note_in_json_has_its_kind_its_values_and_its_text() {
        let missing = Note::ThreadMissing { runs: 2, of: 9 };
        assert_eq!(
            tagged(&missing, sentence(&note(&missing))),
            json!({
                "kind": "thread_missing",
                "runs": 2,
                "of": 9,
                "text": "Its threads vary: in 2 of 9 runs a placed thread did not appear."
            })
        );
    }
}
