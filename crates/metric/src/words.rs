//! The words around the number of a pattern: what it counts, and its unit.

/// The word that follows the number. Where none does, the last one in front of it that names
/// something. Examples: `tx: (\d+) packets` is about `packets`, `Tx-pps: +(\d+)` about `Tx-pps`,
/// `ops total (\d+)` about `ops`. `shown` is what a text showed behind the number: it comes second.
pub(crate) fn quantity(pattern: &str, shown: Option<&str>) -> Option<String> {
    let (before, behind) = around_number(pattern)?;
    let words = |text: &str| {
        // Escapes such as `\d` are no words; a `/` keeps `packets/s` together.
        let text = regex_escapes_blanked(text);
        let words = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '%')));
        let words = words.map(|word| word.trim_matches(['-', '/']).to_owned());
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).collect::<Vec<_>>()
    };
    // `events per second: (\d+)`
    let rate = |words: &[String]| match words {
        [.., what, per, second] if per == "per" && second.starts_with('s') => {
            Some(format!("{what}/s"))
        }
        _ => None,
    };
    let names = |word: &String| !NO_NAMES.contains(&word.to_ascii_lowercase().as_str());
    unit_behind(behind)
        .or_else(|| shown.map(str::to_owned))
        .or_else(|| rate(&words(before)))
        .or_else(|| words(before).into_iter().rfind(names))
        .or_else(|| words(behind).into_iter().find(names))
}

/// Words around a number that do not name what it counts: sums, times, prefixes and the like.
const NO_NAMES: [&str; 29] = [
    "after", "all", "at", "average", "avg", "count", "counter", "for", "g", "in", "is", "k", "m",
    "mean", "ms", "now", "of", "s", "sec", "second", "seconds", "secs", "so", "sum", "t", "time",
    "total", "us", "value",
];

/// The unit that the part of a pattern behind its number begins with. What a `:` or `=` follows
/// names the next number, and a preposition names nothing. A word that may be left out, or a prefix
/// alone, leaves the unit open.
pub(crate) fn unit_behind(text: &str) -> Option<String> {
    const NO_UNITS: [&str; 9] = ["after", "and", "at", "for", "from", "in", "of", "per", "to"];
    const PREFIXES: [&str; 5] = ["k", "K", "M", "G", "T"];
    let text = regex_escapes_blanked(text);
    let text = text.trim_start_matches([' ', '+', '*']);
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/')));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let named = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !NO_UNITS.contains(&word)
        && !PREFIXES.contains(&word);
    let another = rest.trim_start().starts_with([':', '=']);
    let unit = named && !another && !rest.starts_with(['?', '*', '{']);
    unit.then(|| word.trim_end_matches(['-', '/']).to_owned())
}

fn regex_escapes_blanked(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            blanked.push(character);
        } else {
            match characters.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => blanked.push(escaped),
                // Any letter, which may belong to a word.
                Some('w' | 'W' | 'D' | 'S') => blanked.push('.'),
                _ => blanked.push(' '),
            }
        }
    }
    blanked
}

/// The part of a pattern behind the group of its number.
pub(crate) fn behind_number(pattern: &str) -> Option<&str> {
    let (_, behind) = around_number(pattern)?;
    Some(behind)
}

/// What stands in front of the group of the number, and behind it.
fn around_number(pattern: &str) -> Option<(&str, &str)> {
    let named = ["<thousands>", "<decimal>", "<value>"].iter().find_map(|name| pattern.find(name));
    let group = match named {
        Some(name) => pattern[..name].rfind('(')?,
        None => pattern
            .match_indices('(')
            .map(|(at, _)| at)
            .find(|&at| !pattern[at..].starts_with("(?") && !pattern[..at].ends_with('\\'))?,
    };
    // To the end of this group: others may stand in it.
    let (mut depth, mut escaped, mut class) = (0, false, false);
    for (at, letter) in pattern[group..].char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => class = false,
            _ if class => {}
            '[' => class = true,
            '(' => depth += 1,
            ')' if depth == 1 => {
                return Some((&pattern[..group], &pattern[group + at + 1..]));
            }
            ')' => depth -= 1,
            _ => {}
        }
    }
    Some((&pattern[..group], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_behind_the_number_or_else_in_front_is_the_quantity() {
        for (pattern, word) in [
            (r"Tx-pps: +(\d+)", Some("Tx-pps")),
            (r"^total_commands_processed:(\d+)", Some("total_commands_processed")),
            (r"(\d+) packets/s", Some("packets/s")),
            (r"t=(?<seconds>\d+) n=(?<value>\d+)", Some("n")),
            (r"ops\s+(\d+)", Some("ops")),
            (r"(?i)done (\d+)", Some("done")),
            (r"progress: [0-9.]+ s, ([0-9.]+) tps", Some("tps")),
            (r"throughput: (\d+)\s+ops/s, ", Some("ops/s")),
            (r"Rx-pps: (\d+)  Tx-pps: \d+", Some("Rx-pps")),
            (r"encoded (\d+) in \d+ s", Some("encoded")),
            // Neither a sum nor a time names what is counted.
            (r"ops total (\d+)", Some("ops")),
            (r"after [0-9.]+ s: (\d+)", None),
            (r"total: (\d+)", None),
            (r"events per second: +([0-9.]+)", Some("events/s")),
            (r"([0-9.]+)k", None),
            (r"speed ([0-9.]+(?:k|M)?) ops/s", Some("ops/s")),
            (r"(\d+)", None),
        ] {
            assert_eq!(quantity(pattern, None).as_deref(), word, "{pattern}");
        }
        // What is printed behind the number comes before what stands in front of it.
        let shown = |pattern| quantity(pattern, Some("bits/sec"));
        assert_eq!(shown(r"speed ([0-9.]+)").as_deref(), Some("bits/sec"));
        assert_eq!(shown(r"([0-9.]+) Gbits/sec").as_deref(), Some("Gbits/sec"));
    }
}
