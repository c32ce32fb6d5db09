//! The page of a campaign says what the terminal says, in the same order.

mod support;

use pinwise_measure::Unit;
use pinwise_present::figures::Scale;
use serde_json::Value;
use std::fs;
use support::{agree, json, pinwise, words_of_page};
use tempfile::TempDir;

/// Threads that count, as many as the number. The program ends soon.
const COUNTS: &str = r#"for i in $(seq $0); do
    sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i+1)); done" & done; wait"#;

/// Questions that are answered soon.
fn questions() -> Vec<Vec<&'static str>> {
    let simulated = |command: &'static str, workload: &'static str| {
        let model = ["--machine", "ultrasparc-t2", "--cpus", "0-15", "--cycles", "20000"];
        [&[command, "--workload", workload][..], &model, &["--starts", "1", "--budget", "60"]]
            .concat()
    };
    let number = |method: &'static str| {
        let model = [
            "--machine",
            "opteron-24",
            "--workload",
            "facesim",
            "--min",
            "8",
            "--max",
            "24",
            "--step",
            "8",
            "--window",
            "20ms",
        ];
        [&["threads", "--method", method][..], &model].concat()
    };
    vec![
        simulated("place", "intadd:1"),
        [simulated("compare", "intadd:1"), vec!["--draws", "3", "--rounds", "5"]].concat(),
        [simulated("pairs", "intadd"), vec!["--workload", "intmul", "--workload", "intdiv"]]
            .concat(),
        number("survey"),
        [number("sweep"), vec!["--rounds", "1"]].concat(),
        number("reinforcer"),
        vec!["tune", "--max", "2", "--budget", "4s", "--", "sh", "-c", COUNTS, "{n}"],
    ]
}

#[test]
fn the_page_says_the_verdict_and_the_notes_of_the_terminal() {
    for question in questions() {
        let folder = TempDir::new().unwrap();
        let (store, page) = (folder.path().join("pinwise.db"), folder.path().join("page.html"));
        let at = ["--store", store.to_str().unwrap()];

        let asked = pinwise([&question[..1], &at, &question[1..]].concat());
        assert!(asked.status.success(), "{question:?}: {asked:?}");
        let shown = pinwise(["campaign", "show", "1"].iter().chain(&at));
        let report = ["report", "1", "--json", "-o", page.to_str().unwrap()];
        json(&pinwise(report.iter().chain(&at)));
        let terminal = String::from_utf8(shown.stdout).unwrap();
        assert!(!terminal.starts_with('\n') && !terminal.is_empty(), "{question:?}");
        let page = fs::read_to_string(page).unwrap();
        agree(&terminal, &page);
        let document = json(&pinwise(["campaign", "show", "1", "--json"].iter().chain(&at)));
        let [terminal, page] = [terminal, words_of_page(&page)].map(|said| plain(&said));
        for text in texts(&document) {
            // Without --verbose the terminal leaves out how probes were watched.
            let sides = if text.contains(" watched by ") { 1 } else { 2 };
            for said in [&page, &terminal].into_iter().take(sides) {
                assert!(said.contains(&plain(&text)), "{question:?}: {text:?} is not in {said}");
            }
        }
        for mean in means_of_ways(&document) {
            assert!(page.contains(&plain(&mean)), "{question:?}: {mean:?} is not in {page}");
        }
    }
}

/// The number of each way of a last comparison with its mean, as one row of a table has them.
fn means_of_ways(document: &Value) -> Vec<String> {
    let (unit, ways) = match (document["ways"].as_array(), &document["verdict"]["ways"]) {
        (Some(ways), _) if document.get("comparison").is_some() => (&document["unit"], ways),
        (_, Value::Array(ways)) => (&document["unit"]["name"], ways),
        _ => return Vec::new(),
    };
    assert!(ways.len() > 1, "{document}");
    let named = |name: &Value| name.as_str().unwrap().to_owned();
    let lower = document["lower_is_better"] == true || document["unit"]["reciprocal"] == true;
    let unit = Unit { name: named(unit), reciprocal: lower };
    let performance = |way: &Value, end| unit.quantity(way[end].as_f64().unwrap_or(f64::NAN));
    let scale = Scale::new(&unit, performance(&ways[0], "performance"));
    let told = |way: &Value| {
        let [mean, low, high] = ["performance", "low", "high"].map(|end| performance(way, end));
        let pinned = match (way["way"].as_str(), document.get("comparison")) {
            (Some("placed"), _) => ", pinned",
            (_, Some(_)) => ", unpinned",
            _ => "",
        };
        let scale = scale.telling(low.min(high), low.max(high));
        format!("n = {}{pinned} {}", way["parameter"], scale.show(mean))
    };
    // A busy machine may leave a way without fresh windows. It has no mean to show.
    ways.iter().filter(|way| way["performance"].is_number()).map(told).collect()
}

/// The values of every `text` of a document.
fn texts(document: &Value) -> Vec<String> {
    match document {
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            let text = fields.get("text").and_then(Value::as_str).map(str::to_owned);
            text.into_iter().chain(fields.values().flat_map(texts)).collect()
        }
        _ => Vec::new(),
    }
}

/// Words in small letters with one blank between them, without the last full stop.
fn plain(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    words.trim_end_matches('.').to_owned()
}
