//! Prometheus text pages: `name{label="value",…} number [timestamp]`, one series a line.
//!
//! The format is the text exposition format 0.0.4. OpenMetrics differs only where it does not
//! matter here (`# EOF`, exemplars behind a `#`). Lines that cannot be read are skipped, so that
//! one bad exporter does not hide the wanted series.

use crate::MetricError;
use crate::reading::Interpretation;
use crate::source::{MetricValue, Source, SourceError};
use std::fmt;
use std::str::FromStr;
use std::sync::mpsc;
use std::time::Duration;

/// Which series of a page: a name, and labels that must be there with these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    name: String,
    labels: Vec<(String, String)>,
}

impl Selector {
    /// The name of the series.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sum of the finite values it matches on a page.
    ///
    /// # Errors
    /// There is no such value, or the sum is not finite. The error lists what is there instead.
    pub fn sum(&self, page: &str) -> Result<f64, String> {
        let (mut matched, mut alike, mut series) = (None, 0, 0);
        for line in page.lines().filter_map(parse_line) {
            series += 1;
            if self.matches(&line) && line.value.is_finite() {
                *matched.get_or_insert(0.0) += line.value;
            } else if line.name == self.name {
                alike += 1;
            }
        }
        matched.filter(|sum: &f64| sum.is_finite()).ok_or_else(|| match (alike, series) {
            (_, 0) => format!("no Prometheus series in {} bytes", page.len()),
            (0, _) if matched.is_some() => {
                format!("the series called '{}' have no finite sum", self.name)
            }
            (0, _) => format!("none of its {series} series is called '{}'", self.name),
            _ => format!(
                "{alike} series are called '{}', none with these labels and a finite number",
                self.name
            ),
        })
    }

    fn matches(&self, series: &SampleLine<'_>) -> bool {
        series.name == self.name && self.labels.iter().all(|wanted| series.labels.contains(wanted))
    }
}

impl FromStr for Selector {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        let fail =
            |reason: &str| MetricError::Selector { text: text.into(), reason: reason.into() };
        let (name, rest) = split_name(text.trim());
        if name.is_empty() {
            return Err(fail("the name is missing"));
        }
        if rest.is_empty() {
            return Ok(Self { name: name.into(), labels: Vec::new() });
        }
        match parse_labels(rest) {
            Some((labels, "")) => Ok(Self { name: name.into(), labels }),
            _ => Err(fail("labels are written {name=\"value\",…}")),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut separator = "{";
        for (name, value) in &self.labels {
            write!(
                f,
                "{separator}{name}=\"{}\"",
                value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
            )?;
            separator = ",";
        }
        if self.labels.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

/// One line of a page.
#[derive(Clone, Debug, PartialEq)]
struct SampleLine<'a> {
    name: &'a str,
    labels: Vec<(String, String)>,
    value: f64,
}

/// The leading metric name (`[a-zA-Z_:][a-zA-Z0-9_:]*`) and what follows it.
fn split_name(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
        .unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { ("", text) } else { text.split_at(end) }
}

/// `{a="b",c="d"}` and what follows it. Values may hold `\\`, `\"` and `\n`; a comma before the
/// brace is allowed.
fn parse_labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut rest = text.strip_prefix('{')?.trim_start();
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = split_name(rest);
        let mut value = String::new();
        let quoted = after.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    escaped => value.push(escaped),
                },
                (_, character) => value.push(character),
            }
        };
        if name.is_empty() {
            return None;
        }
        labels.push((name.to_owned(), value));
        rest = quoted[end + 1..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if rest.starts_with('}') => rest,
            None => return None,
        };
    }
}

/// One line, unless it is a comment, blank, or cannot be read.
fn parse_line(line: &str) -> Option<SampleLine<'_>> {
    let (name, rest) = split_name(line.trim());
    if name.is_empty() {
        return None;
    }
    let (labels, rest) = match rest.trim_start() {
        braced if braced.starts_with('{') => parse_labels(braced)?,
        bare => (Vec::new(), bare),
    };
    // Behind the value may stand a timestamp and an exemplar; `NaN` and `+Inf` are legal.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(SampleLine { name, labels, value })
}

/// The type a page declares for `name` (`# TYPE name counter`).
fn declared_type<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    page.lines().find_map(|line| {
        let mut words = line.strip_prefix('#')?.split_whitespace();
        let family = words.next().filter(|word| *word == "TYPE").and(words.next())?;
        // OpenMetrics names the family without the suffix that its counter series carry.
        (family == name || name.strip_suffix("_total") == Some(family))
            .then(|| words.next())
            .flatten()
    })
}

/// A page that is fetched for each reading over one open connection.
pub(crate) struct Prometheus {
    url: String,
    selector: Selector,
    agent: ureq::Agent,
    declared: Option<Interpretation>,
}

/// A page that takes longer than this is no basis for measuring.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Prometheus {
    pub(crate) fn new(url: String, selector: Selector) -> Self {
        // No proxy: the page is the program's own, and a proxy would be part of what is timed.
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .proxy(None)
            .build()
            .new_agent();
        Self { url, selector, agent, declared: None }
    }

    /// Fetches on a separate thread, so that a server that does not answer cannot delay a Ctrl-C.
    pub(super) fn fetch(&self, cancelled: &dyn Fn() -> bool) -> Result<String, SourceError> {
        let (agent, url) = (self.agent.clone(), self.url.clone());
        let (sender, receiver) = mpsc::sync_channel(1);
        let fetch = move || {
            let page = agent
                .get(&url)
                .call()
                .and_then(|mut response| response.body_mut().read_to_string());
            // After a Ctrl-C the receiver is gone.
            let _ = sender.send(page);
        };
        std::thread::Builder::new()
            .name("scrape".into())
            .spawn(fetch)
            .map_err(|error| SourceError::on("cannot start a thread", error))?;
        loop {
            match receiver.recv_timeout(Duration::from_millis(10)) {
                Ok(page) => return page.map_err(|error| SourceError::on(&self.url, error)),
                Err(mpsc::RecvTimeoutError::Timeout) if cancelled() => {
                    return Err(SourceError::Cancelled);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(SourceError::on(&self.url, "the request failed"));
                }
            }
        }
    }
}

impl Source for Prometheus {
    fn read(&mut self, cancelled: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
        let page = self.fetch(cancelled)?;
        let value = self.selector.sum(&page).map_err(|why| SourceError::on(&self.url, why))?;
        if self.declared.is_none() {
            self.declared = match declared_type(&page, &self.selector.name) {
                Some("counter") => Some(Interpretation::Counter),
                Some("gauge") => Some(Interpretation::Value),
                _ => None,
            };
        }
        Ok(MetricValue::of(value))
    }

    fn declared(&self) -> Option<Interpretation> {
        self.declared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    const PAGE: &str = r#"# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000
http_requests_total{ method = "get" , code="200", } 2e3

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="None:\n\"FILE.TXT\""} 1.458255915e9
# TYPE queue gauge
queue 12.5
something_weird{problem="division by zero"} +Inf -3982045
this line is broken {
rpc_total 5 # {trace="x"} 1
# EOF
"#;

    fn selector(text: &str) -> Selector {
        text.parse().unwrap()
    }

    #[test]
    fn matching_series_are_added_up() {
        assert_eq!(selector("http_requests_total").sum(PAGE), Ok(3030.0));
        assert_eq!(selector(r#"http_requests_total{method="post"}"#).sum(PAGE), Ok(1030.0));
        assert_eq!(
            selector(r#"http_requests_total{code="200",method="get"}"#).sum(PAGE),
            Ok(2000.0)
        );
        assert_eq!(selector("queue").sum(PAGE), Ok(12.5));
        assert_eq!(selector("rpc_total").sum(PAGE), Ok(5.0));
        let escaped = selector(r#"msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT"}"#);
        assert_eq!(escaped.sum(PAGE), Ok(1.458255915e9));
        assert_eq!(escaped.to_string().parse::<Selector>().unwrap(), escaped);
    }

    #[test]
    fn a_missing_series_is_named() {
        assert!(selector("http_requests").sum(PAGE).unwrap_err().contains("none of its 7 series"));
        assert!(
            selector(r#"queue{a="b"}"#).sum(PAGE).unwrap_err().contains("none with these labels")
        );
        assert!(selector("something_weird").sum(PAGE).unwrap_err().contains("finite"));
        assert!(
            selector("x")
                .sum("<html>not found</html>")
                .unwrap_err()
                .contains("no Prometheus series")
        );
    }

    #[test]
    fn types_are_read_with_and_without_the_counter_suffix() {
        assert_eq!(declared_type(PAGE, "http_requests_total"), Some("counter"));
        assert_eq!(declared_type(PAGE, "queue"), Some("gauge"));
        assert_eq!(
            declared_type("# TYPE rpc counter\nrpc_total 5\n", "rpc_total"),
            Some("counter")
        );
        assert_eq!(declared_type(PAGE, "rpc_total"), None);
    }

    #[test]
    fn a_selector_that_is_none_is_refused() {
        for text in ["", "{a=\"b\"}", "x{a=b}", "x{a=\"b\"", "x{a=\"b\"}y", "9x", "x y"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "(\\PC|\n){0,200}") {
            let _ = selector("x").sum(&page);
            let _ = declared_type(&page, "x");
        }

        #[test]
        fn a_written_series_is_read_back(
            name in "[a-z_:][a-z0-9_:]{0,10}",
            labels in proptest::collection::btree_map("[a-z_]{1,5}", "\\PC{0,8}", 0..4),
            value in -1e12f64..1e12,
        ) {
            let labels: Vec<_> = labels.into_iter().collect();
            let selector = Selector { name, labels };
            let line = format!("{selector} {value}");
            prop_assert_eq!(selector.sum(&line), Ok(value));
            prop_assert_eq!(selector.to_string().parse::<Selector>().unwrap(), selector);
        }
    }

    #[test]
    fn a_real_server_is_read_over_one_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            for count in 1..=3 {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let read = stream.read(&mut buffer).unwrap();
                    request.extend_from_slice(&buffer[..read]);
                }
                assert!(request.starts_with(b"GET /metrics "));
                let page = format!("# TYPE ops_total counter\nops_total {count}\n");
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len())
                    .unwrap();
            }
        });
        let mut source = Prometheus::new(url, selector("ops_total"));
        for count in 1..=3 {
            assert_eq!(source.read(&|| false), Ok(MetricValue::of(f64::from(count))));
        }
        assert_eq!(source.declared(), Some(Interpretation::Counter));
        server.join().unwrap();
    }

    #[test]
    fn a_server_that_does_not_answer_can_be_interrupted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut source =
            Prometheus::new(format!("http://{}/", listener.local_addr().unwrap()), selector("x"));
        assert_eq!(source.read(&|| true), Err(SourceError::Cancelled));
    }

    #[test]
    fn a_port_nobody_listens_on_is_named() {
        let url = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}/metrics", listener.local_addr().unwrap())
        };
        let mut source = Prometheus::new(url.clone(), selector("x"));
        let read = source.read(&|| false);
        assert!(matches!(read, Err(SourceError::Unreadable(why)) if why.starts_with(&url)));
    }
}
