//! Reads facts from a stored question of any kind: its budget, and the commands and files it names.

use crate::{CompareQuestion, PlaceRequest, stored_campaign};
use pinwise_campaign::{CampaignId, CampaignInfo, Kind, Store, StoreError};
use pinwise_placement::Budget;
use pinwise_present::shell;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many measurements a placement may make, or each search of a comparison. `None`: another
/// kind of question, or a budget in time.
pub fn measurement_budget(info: &CampaignInfo) -> Option<u64> {
    let request = match info.new.kind {
        Kind::Place => stored_campaign::question::<PlaceRequest>(info).ok()?.request,
        Kind::Compare => stored_campaign::question::<CompareQuestion>(info).ok()?.request,
        _ => return None,
    };
    match request.question.budget {
        Budget::Measurements(most) => Some(most),
        Budget::Time(_) => None,
    }
}

/// A text or a whole number of a stored question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The names of its field and of those around it, such as `output` or `subject.command`.
    pub field: String,
    /// The text. The words of a list are quoted for a shell.
    pub text: String,
}

/// All texts and whole numbers in the questions of a campaign, of those above it, and of all their
/// parts. Commands, metrics, files and processes are among them.
///
/// # Errors
/// The store cannot be read.
pub fn named_in(store: &Store, id: CampaignId) -> Result<BTreeSet<Named>, StoreError> {
    let campaigns = store.list()?.campaigns;
    let mut family = BTreeSet::from([id]);
    // Parts come after what they are a part of. A damaged store may have a circle.
    let mut known = 0;
    while known < family.len() {
        known = family.len();
        for one in &campaigns {
            if let Some(parent) = &one.new.parent
                && (family.contains(&one.id) || family.contains(&parent.id))
            {
                family.extend([one.id, parent.id]);
            }
        }
    }
    let mut found = BTreeSet::new();
    for one in campaigns.iter().filter(|one| family.contains(&one.id)) {
        add_named("", &one.new.question, &mut found);
    }
    Ok(found)
}

fn add_named(field: &str, value: &Value, found: &mut BTreeSet<Named>) {
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        // A fraction names nothing.
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    };
    let named = |text| Named { field: field.to_owned(), text };
    match value {
        Value::Array(values) => match values.iter().map(word).collect::<Option<Vec<_>>>() {
            Some(words) if !words.is_empty() => {
                found.insert(named(shell(&words)));
            }
            _ => values.iter().for_each(|value| add_named(field, value, found)),
        },
        Value::Object(fields) => {
            // A simulated machine runs nothing.
            let last = field.rsplit('.').next().unwrap_or_default();
            let has_model = ["", "simulated", "modelled"].contains(&last);
            for (name, value) in fields.iter().filter(|(name, _)| *name != "model" || !has_model) {
                let point = if field.is_empty() { "" } else { "." };
                add_named(&format!("{field}{point}{name}"), value, found);
            }
        }
        value => found.extend(word(value).map(named)),
    }
}
