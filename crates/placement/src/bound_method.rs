//! [`BoundMethod`]: where a bound comes from.

use pinwise_evt::Method;
use serde::{Deserialize, Serialize};

/// The method of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundMethod {
    /// Every different assignment was measured.
    Exact,
    /// A learned predictor supports it.
    // Stores of earlier versions have the former word.
    #[serde(alias = "steered")]
    Predicted,
    /// It is what instances did alone.
    Solo,
    /// It is what the user says cannot be exceeded.
    Cap,
    /// The tail of a sample, by [`Method::Bayes`].
    Bayes,
    /// The tail of a sample, by [`Method::Profile`].
    Profile,
}

impl BoundMethod {
    /// The word for it: `bayes`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Predicted => "predicted",
            Self::Solo => "solo",
            Self::Cap => "cap",
            Self::Bayes => "bayes",
            Self::Profile => "profile",
        }
    }
}

impl From<Method> for BoundMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::Bayes => Self::Bayes,
            Method::Profile => Self::Profile,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_stored_as_its_name() {
        use BoundMethod::{Bayes, Cap, Exact, Predicted, Profile, Solo};
        for method in [Exact, Predicted, Solo, Cap, Bayes, Profile] {
            let stored = serde_json::to_value(method).unwrap();
            assert_eq!(stored, method.name());
            assert_eq!(serde_json::from_value::<BoundMethod>(stored).unwrap(), method);
        }
        assert_eq!(serde_json::from_str::<BoundMethod>("\"steered\"").unwrap(), Predicted);
    }
}
