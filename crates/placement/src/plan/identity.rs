//! How a plan names its campaign.

use pinwise_campaign::{CampaignId, CampaignIdentity};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Reads the name of a campaign: a table, or the sentence that earlier versions wrote. A sentence
/// in other words names no campaign, and the plan is good without one.
pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CampaignIdentity>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(sentence) => Ok(of_sentence(&sentence)),
        table => CampaignIdentity::deserialize(table).map(Some).map_err(D::Error::custom),
    }
}

/// `campaign 3 of pinwise.db, begun 2026-11-22 18:20 UTC (1795371620)`.
fn of_sentence(sentence: &str) -> Option<CampaignIdentity> {
    let (number, rest) = sentence.strip_prefix("campaign ")?.split_once(" of ")?;
    let (store, begun) = rest.rsplit_once(", begun ")?;
    let (_, started) = begun.strip_suffix(')')?.rsplit_once('(')?;
    let (number, started) = (CampaignId(number.parse().ok()?), started.parse().ok()?);
    Some(CampaignIdentity { store: store.to_owned(), number, started })
}
