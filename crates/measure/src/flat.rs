//! Flattened fields of stored documents, read by way of a JSON value.
//!
//! serde keeps the entries of a flattened field in a buffer of its own. It reads the field from
//! there. So the code that reads the field's type, with all types inside, exists twice. One copy
//! reads JSON values, the other that buffer. `#[serde(flatten, deserialize_with =
//! "pinwise_measure::by_value")]` makes one copy do.

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::Value;

/// Reads a flattened field as [`serde_json::from_value`] reads it.
///
/// # Errors
/// The entries are no `T`.
pub fn by_value<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = <Value as serde::Deserialize>::deserialize(deserializer)?;
    T::deserialize(&value).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        seed: u64,
        share: Option<f64>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Outer {
        #[serde(flatten, deserialize_with = "crate::by_value")]
        inner: Inner,
        name: String,
    }

    #[test]
    fn a_flat_field_is_read_back_and_its_errors_name_what_is_missing() {
        let outer =
            Outer { inner: Inner { seed: u64::MAX, share: Some(0.1) }, name: String::from("a") };
        let text = serde_json::to_string(&outer).unwrap();
        assert_eq!(text, r#"{"seed":18446744073709551615,"share":0.1,"name":"a"}"#);
        assert_eq!(serde_json::from_str::<Outer>(&text).unwrap(), outer);
        let error = serde_json::from_str::<Outer>(r#"{"name":"a"}"#).unwrap_err();
        assert!(error.to_string().contains("missing field `seed`"), "{error}");
    }
}
