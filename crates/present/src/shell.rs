//! Commands that the reader can paste into a shell.

use pinwise_campaign::CampaignId;
use std::path::Path;

/// Where later commands find what they need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// The plan, if one was written.
    pub plan: Option<&'a Path>,
    /// The store, where it has to be named.
    pub store: Option<&'a Path>,
}

impl<'a> Files<'a> {
    /// Without a plan.
    pub fn of_store(store: Option<&'a Path>) -> Self {
        Self { plan: None, store }
    }

    /// The command that goes on with a campaign.
    pub fn resume(&self, id: CampaignId) -> String {
        format!("pinwise campaign resume {}{}", id.0, self.flag())
    }

    /// What a command line needs to find the store: nothing, or ` --store FILE`.
    pub fn flag(&self) -> String {
        self.store.map_or_else(String::new, |store| {
            format!(" --store {}", quoted(&store.to_string_lossy()))
        })
    }
}

/// The words as a shell takes them.
pub fn shell(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// One word as a shell takes it. Control characters need `$'...'`, which bash, zsh, ksh and POSIX
/// 2024 shells read. Written plainly, they would act on the terminal.
pub fn quoted(word: &str) -> String {
    if word.contains(char::is_control) {
        let safe: String = word
            .chars()
            .map(|c| match c {
                '\'' | '\\' => format!("\\{c}"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    c.encode_utf8(&mut bytes).bytes().map(|byte| format!(r"\{byte:03o}")).collect()
                }
                c => c.to_string(),
            })
            .collect();
        return format!("$'{safe}'");
    }
    let plain = !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words =
            ["place", "--metric", r"stdout:Tx-pps: +(\d+)", "--", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&words), r"place --metric 'stdout:Tx-pps: +(\d+)' -- 'it'\''s' ''");
    }

    #[test]
    fn a_pasted_command_cannot_control_the_terminal() {
        assert_eq!(quoted("a\nb"), r"$'a\012b'");
        assert_eq!(quoted("it's \u{1b}[31m\\ \u{9b}"), r"$'it\'s \033[31m\\ \302\233'");
    }
}
