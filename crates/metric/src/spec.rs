//! The value of `--metric`, as the user types it.

use crate::MetricError;
use crate::pattern::Pattern;
use crate::prometheus::Selector;
use crate::reading::Interpretation;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The number of a program from which performance is read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricSpec {
    /// `stdout:REGEX`: the lines the launched program prints.
    Stdout(Pattern),
    /// `stderr:REGEX`: the same for its standard error.
    Stderr(Pattern),
    /// `file:PATH:REGEX`: a file that grows, or is rewritten, while the program runs.
    File {
        /// The file; it may appear later.
        path: PathBuf,
        /// Where the number stands in a line.
        pattern: Pattern,
    },
    /// `cmd:COMMAND`: what a shell command prints, run again for each reading.
    Command(String),
    /// `prom:URL#SERIES`: the sum of the matching series of a Prometheus text page.
    Prometheus {
        /// `http://…`.
        url: String,
        /// The series' name and the labels it must have.
        selector: Selector,
    },
    /// `netdev:IFACE:FIELD`: a counter of `/proc/net/dev`.
    Netdev {
        /// The network interface.
        interface: String,
        /// As in `/sys/class/net/IFACE/statistics`: `tx_packets`, `rx_bytes`, …
        field: String,
    },
    /// `io:FIELD`: a counter of `/proc/PID/io`, over all processes of the program.
    Io(String),
    /// `runtime`: how long the program runs; for programs that end by themselves.
    Runtime,
    /// `dpdk:PREFIX[:FIELD]`: a counter over all ports of a DPDK program, from its telemetry
    /// socket.
    Dpdk {
        /// The program's `--file-prefix` (`rte` unless given).
        prefix: String,
        /// A field of `/ethdev/stats`, `opackets` unless given.
        field: String,
    },
}

/// Each kind of metric: its name and an example.
const KINDS: [(&str, &str); 9] = [
    ("stdout", r"stdout:packets/s: ([\d.]+)"),
    ("stderr", r"stderr:fps=(\d+)"),
    ("file", r"file:/tmp/progress.txt:frame=(\d+)"),
    ("cmd", r"cmd:redis-cli info stats"),
    ("prom", "prom:http://127.0.0.1:9100/metrics#requests_total"),
    ("netdev", "netdev:eth0:tx_packets"),
    ("io", "io:rchar"),
    ("runtime", "runtime"),
    ("dpdk", "dpdk:rte"),
];

impl MetricSpec {
    /// Whether the number is a counter or a value, if the kind or the words around the number
    /// indicate it.
    pub(crate) fn hint(&self) -> Option<Interpretation> {
        match self {
            Self::Stdout(pattern) | Self::Stderr(pattern) | Self::File { pattern, .. } => {
                hint(pattern.as_str())
            }
            Self::Command(_) => None,
            Self::Prometheus { selector, .. } => hint(selector.name()),
            Self::Netdev { .. } | Self::Io(_) | Self::Dpdk { .. } => Some(Interpretation::Counter),
            Self::Runtime => Some(Interpretation::Value),
        }
    }

    /// What the number counts, if the pattern indicates it or the unit that a text `shown` had
    /// behind it.
    pub(crate) fn quantity(&self, shown: Option<&str>) -> Option<String> {
        match self {
            Self::Stdout(pattern) | Self::Stderr(pattern) | Self::File { pattern, .. } => {
                pattern.quantity(shown)
            }
            Self::Command(_) => None,
            Self::Prometheus { selector, .. } => {
                Some(selector.name().trim_end_matches("_total").to_owned())
            }
            Self::Netdev { field, .. } => {
                Some(field.split_once('_').map_or(field.as_str(), |(_, what)| what).to_owned())
            }
            Self::Io(field) => {
                Some(if field.starts_with("sysc") { "calls" } else { "bytes" }.to_owned())
            }
            Self::Dpdk { field, .. } => Some(field.trim_start_matches(['i', 'o']).to_owned()),
            Self::Runtime => Some("s".to_owned()),
        }
    }
}

/// Counter or value, from the words of a pattern or the name of a series. Only unambiguous words
/// count; otherwise the readings decide.
pub(crate) fn hint(text: &str) -> Option<Interpretation> {
    const RATES: [&str; 19] = [
        "pps",
        "bps",
        "fps",
        "eps",
        "qps",
        "tps",
        "rps",
        "mbps",
        "gbps",
        "kbps",
        "mpps",
        "kpps",
        "iops",
        "persec",
        "rate",
        "throughput",
        "latency",
        "percent",
        "instantaneous",
    ];
    let text = text.to_ascii_lowercase();
    let per_second = ["/s", "per_sec", "per sec"].iter().any(|mark| text.contains(mark));
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    if per_second || words.any(|word| RATES.contains(&word)) {
        return Some(Interpretation::Value);
    }
    let counter = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .any(|name| name.ends_with("_total"));
    counter.then_some(Interpretation::Counter)
}

impl FromStr for MetricSpec {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let incomplete = |missing: &'static str| {
            let example =
                KINDS.iter().find(|(name, _)| *name == kind).map_or("", |(_, example)| example);
            MetricError::Incomplete { text: text.into(), missing, example }
        };
        let required = |part: &str, missing: &'static str| match part.trim() {
            "" => Err(incomplete(missing)),
            part => Ok(part.to_owned()),
        };
        Ok(match kind {
            "stdout" | "stderr" if rest.is_empty() => {
                return Err(incomplete("a regular expression"));
            }
            "stdout" => Self::Stdout(Pattern::new(rest)?),
            "stderr" => Self::Stderr(Pattern::new(rest)?),
            "file" => {
                let (path, pattern) = rest
                    .split_once(':')
                    .ok_or_else(|| incomplete("a path and a regular expression"))?;
                if pattern.is_empty() {
                    return Err(incomplete("a regular expression"));
                }
                Self::File {
                    path: required(path, "a path")?.into(),
                    pattern: Pattern::new(pattern)?,
                }
            }
            "cmd" => Self::Command(required(rest, "a command")?),
            "prom" => {
                let (url, selector) = rest.split_once('#').ok_or_else(|| incomplete("#SERIES"))?;
                if !url.starts_with("http://") {
                    return Err(MetricError::Scheme { url: url.into() });
                }
                Self::Prometheus { url: url.to_owned(), selector: selector.parse()? }
            }
            "netdev" => {
                let (interface, field) =
                    rest.rsplit_once(':').ok_or_else(|| incomplete("an interface and a field"))?;
                let field = known_field(required(field, "a field")?, super::netdev::FIELDS)?;
                Self::Netdev { interface: required(interface, "an interface")?, field }
            }
            "io" => Self::Io(known_field(required(rest, "a field")?, super::procio::FIELDS)?),
            "runtime" if !rest.is_empty() => return Err(MetricError::RuntimeTakesNothing),
            "runtime" => Self::Runtime,
            "dpdk" => {
                let (prefix, field) = rest.split_once(':').unwrap_or((rest, "opackets"));
                Self::Dpdk {
                    prefix: required(prefix, "a file prefix")?,
                    field: required(field, "a field")?,
                }
            }
            _ => return Err(unknown(text)),
        })
    }
}

fn known_field(field: String, known: &'static [&'static str]) -> Result<String, MetricError> {
    if known.contains(&field.as_str()) {
        Ok(field)
    } else {
        Err(MetricError::UnknownField { field, known })
    }
}

/// The error for a text that starts with no known kind, with what was probably meant.
fn unknown(text: &str) -> MetricError {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let meant = |kinds: &[&str], meant: &'static str| kinds.contains(&kind).then_some(meant);
    let guess = if text.starts_with("http://") {
        Some(format!("prom:{text}{}", if text.contains('#') { "" } else { "#SERIES" }))
    } else if text.starts_with(['/', '.']) {
        Some(format!("file:{text}{}", if text.contains('(') { "" } else { r":(\d+)" }))
    } else if text.contains('(')
        && !kind.chars().all(|c| c.is_ascii_lowercase())
        && KINDS.iter().all(|(name, _)| !name.eq_ignore_ascii_case(kind))
    {
        Some(format!("stdout:{text}"))
    } else {
        let alias = meant(&["command", "exec", "shell", "sh"], "cmd")
            .or_else(|| meant(&["prometheus", "http", "metrics"], "prom"))
            .or_else(|| meant(&["net", "nic", "dev", "iface"], "netdev"))
            .or_else(|| meant(&["time", "wall", "elapsed", "duration"], "runtime"))
            .or_else(|| meant(&["log", "tail", "path"], "file"))
            .or_else(|| meant(&["out", "output"], "stdout"))
            .or_else(|| meant(&["err"], "stderr"))
            .or_else(|| meant(&["testpmd", "telemetry"], "dpdk"));
        alias.or_else(|| alike(kind)).map(|name| with_kind(name, rest))
    };
    MetricError::UnknownKind { text: text.into(), suggestion: guess }
}

/// The kind that begins and ends most as this word does.
fn alike(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let same = |name: &str| {
        let before = name.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
        let behind = name.bytes().rev().zip(word.bytes().rev());
        (before, before + behind.take_while(|(a, b)| a == b).count())
    };
    // Of several that are as alike, the first: it is more common.
    KINDS
        .iter()
        .rev()
        .map(|(name, _)| (same(name), *name))
        .filter(|((before, all), name)| *before > 1 || *all > 1 && all + 2 >= name.len())
        .max_by_key(|((_, all), _)| *all)
        .map(|(_, name)| name)
}

/// A metric of the kind `name` with what was typed behind another one. It is an example if that is
/// no such metric. A fault of its pattern is shown when it is used.
fn with_kind(name: &str, rest: &str) -> String {
    let typed = format!("{name}:{rest}");
    match typed.parse::<MetricSpec>() {
        Ok(_) | Err(MetricError::NoGroup { .. } | MetricError::Pattern { .. })
            if !rest.is_empty() =>
        {
            typed
        }
        _ => {
            let example = KINDS.iter().find(|(known, _)| *known == name);
            example.map_or(typed, |(_, example)| (*example).to_owned())
        }
    }
}

impl fmt::Display for MetricSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout(pattern) => write!(f, "stdout:{pattern}"),
            Self::Stderr(pattern) => write!(f, "stderr:{pattern}"),
            Self::File { path, pattern } => write!(f, "file:{}:{pattern}", path.display()),
            Self::Command(command) => write!(f, "cmd:{command}"),
            Self::Prometheus { url, selector } => write!(f, "prom:{url}#{selector}"),
            Self::Netdev { interface, field } => write!(f, "netdev:{interface}:{field}"),
            Self::Io(field) => write!(f, "io:{field}"),
            Self::Runtime => f.write_str("runtime"),
            Self::Dpdk { prefix, field } => write!(f, "dpdk:{prefix}:{field}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> MetricSpec {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_is_read_and_written_back() {
        for text in [
            r"stdout:Tx-pps: +(\d+)",
            r"stderr:fps=(\d+)",
            r"file:/tmp/a b.txt:frame=(\d+):x",
            "cmd:redis-cli -p 16379 info stats",
            r#"prom:http://127.0.0.1:9100/metrics#requests_total{code="200"}"#,
            "netdev:eth0:1:tx_packets",
            "io:rchar",
            "runtime",
            "dpdk:pw:ipackets",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse("dpdk:rte").to_string(), "dpdk:rte:opackets");
    }

    #[test]
    fn the_examples_in_error_texts_are_themselves_right() {
        for (kind, example) in KINDS {
            assert!(example.starts_with(kind), "{example}");
            assert!(example.parse::<MetricSpec>().is_ok(), "{example}");
        }
    }

    #[test]
    fn a_missing_part_is_named_with_an_example() {
        for (text, missing) in [
            ("stdout", "a regular expression"),
            ("stdout:", "a regular expression"),
            ("file:/tmp/x", "a path and a regular expression"),
            ("file:/tmp/x:", "a regular expression"),
            ("cmd: ", "a command"),
            ("prom:http://localhost/metrics", "#SERIES"),
            ("netdev:eth0", "an interface and a field"),
            ("io:", "a field"),
            ("dpdk", "a file prefix"),
        ] {
            let error = text.parse::<MetricSpec>().unwrap_err();
            let expected = format!("{missing} is missing, as in");
            assert!(error.to_string().contains(&expected) && error.is_usage(), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_kind_lists_the_known_and_guesses() {
        for (text, guess) in [
            (r"Tx-pps: (\d+)", r"did you mean 'stdout:Tx-pps: (\d+)'?"),
            (
                "http://localhost:9100/metrics",
                "did you mean 'prom:http://localhost:9100/metrics#SERIES'?",
            ),
            ("/var/log/x", r"did you mean 'file:/var/log/x:(\d+)'?"),
            ("prometheus:x", "did you mean 'prom:"),
            ("stdut:x", "did you mean 'stdout:x'?"),
            // What was typed behind the kind is kept.
            (r"stdot:ops: (\d+)", r"did you mean 'stdout:ops: (\d+)'?"),
            (r"Stdout:ops: (\d+)", r"did you mean 'stdout:ops: (\d+)'?"),
            (r"sdtout:ops: (\d+)", r"did you mean 'stdout:ops: (\d+)'?"),
            (r"stdrr:fps=(\d+)", r"did you mean 'stderr:fps=(\d+)'?"),
            (r"log:/tmp/a:n=(\d+)", r"did you mean 'file:/tmp/a:n=(\d+)'?"),
            ("exec:redis-cli info", "did you mean 'cmd:redis-cli info'?"),
            ("net:eth1:rx_bytes", "did you mean 'netdev:eth1:rx_bytes'?"),
            ("elapsed", "did you mean 'runtime'?"),
        ] {
            let error = text.parse::<MetricSpec>().unwrap_err().to_string();
            assert!(error.contains(guess) && error.contains("netdev:"), "{error}");
        }
        let error = "zzz".parse::<MetricSpec>().unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn fields_and_schemes_that_do_not_exist_are_refused() {
        assert!(matches!("io:bytes".parse::<MetricSpec>(), Err(MetricError::UnknownField { .. })));
        assert!(matches!(
            "netdev:lo:packets".parse::<MetricSpec>(),
            Err(MetricError::UnknownField { .. })
        ));
        assert!(matches!(
            "prom:https://x/#y".parse::<MetricSpec>(),
            Err(MetricError::Scheme { .. })
        ));
        assert!(matches!("runtime:5".parse::<MetricSpec>(), Err(MetricError::RuntimeTakesNothing)));
    }

    #[test]
    fn words_around_the_number_separate_rates_from_totals() {
        for text in [
            r"Tx-pps: +(\d+)",
            r"instantaneous_ops_per_sec:(\d+)",
            r"([\d.]+) packets/s",
            r"fps=(\d+)",
            "eps: (.*)",
        ] {
            assert_eq!(hint(text), Some(Interpretation::Value), "{text}");
        }
        assert_eq!(hint("http_requests_total"), Some(Interpretation::Counter));
        for text in [
            r"packets: (\d+)",
            "total_commands_processed:(.*)",
            r"(\d+)",
            r"drops (\d+)",
            r"ops=(\d+)",
        ] {
            assert_eq!(hint(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "((stdout|stderr|file|cmd|prom|netdev|io|runtime|dpdk|)(:|))\\PC{0,30}",
        ) {
            if let Ok(spec) = text.parse::<MetricSpec>() {
                let _ = (spec.hint(), spec.quantity(None));
            }
        }
    }
}
