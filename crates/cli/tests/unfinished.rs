//! A campaign that was stopped before it had an answer: it is shown, and has a page.

mod support;

use pinwise_campaign::Store;
use pinwise_characterization::Conditions;
use pinwise_jobs::{
    Caller, CharacterizeRequest, Event, Events, Job, LatencyRequest, SimulatedProcessor,
};
use pinwise_measure::Fame;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{json, pinwise};
use tempfile::TempDir;

/// Asks to stop as soon as there is a measurement.
struct StopAfterOne(Arc<AtomicBool>);

impl Events for StopAfterOne {
    fn take(&mut self, event: Event<'_>) -> io::Result<()> {
        if matches!(event, Event::Measured(_)) {
            self.0.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A store whose campaign 1 was stopped after its first measurement.
fn stopped<J: Job>(folder: &TempDir, request: J) -> PathBuf {
    let path = folder.path().join("some store.db");
    let mut store = Store::open(&path).unwrap();
    let caller = Caller::default();
    let mut events = StopAfterOne(caller.interrupt.flag());
    assert!(pinwise_jobs::run(request, &caller, &mut store, &mut events).is_err());
    path
}

/// The text, the JSON document and the page of campaign 1. The first two and the last say how far
/// it is, and give the command that goes on.
fn shown(folder: &TempDir, store: &str) -> (String, Value, String) {
    let show = ["campaign", "show", "1", "--store", store];
    let text = pinwise(show);
    assert_eq!(text.status.code(), Some(0), "{text:?}");
    let text = String::from_utf8(text.stdout).unwrap();
    let document = json(&pinwise([&show[..], &["--json"]].concat()));
    let file = folder.path().join("page.html").to_str().unwrap().to_owned();
    json(&pinwise(["report", "1", "--json", "--store", store, "-o", &file]));
    let page = fs::read_to_string(file).unwrap();
    let unfinished = &document["unfinished"];
    let (measured, of) = (&unfinished["measured"], &unfinished["of"]);
    assert!(measured.as_u64() >= Some(1) && measured.as_u64() < of.as_u64(), "{document:#}");
    let said = unfinished["text"].as_str().unwrap();
    assert!(said.starts_with(&format!("It is not finished: {measured} of {of} ")), "{said}");
    assert!(said.ends_with(&format!("pinwise campaign resume 1 --store '{store}'")), "{said}");
    assert!(text.contains(said), "{text}");
    assert!(page.contains(&format!("{measured} of {of} ")) && page.contains("Unfinished."));
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("-->"));
    (text, document, page)
}

#[test]
fn a_characterization_that_was_stopped_shows_its_runs() {
    let folder = TempDir::new().unwrap();
    let request = CharacterizeRequest {
        model: Some(SimulatedProcessor::built_in("ultrasparc-t2")),
        benchmarks: vec!["intadd".into()],
        stressors: 1,
        conditions: Conditions { fame: Fame::default(), rounds: 20, seed: 1 },
    };
    let store = stopped(&folder, request);
    let (text, document, page) = shown(&folder, store.to_str().unwrap());
    assert!(text.starts_with("No answer yet: the slowdowns follow from all runs.\n"), "{text}");
    let runs = document["runs"].as_array().unwrap();
    let made: u64 = runs.iter().map(|set| set["runs"].as_u64().unwrap()).sum();
    assert_eq!(made, document["unfinished"]["measured"]);
    assert!(runs.iter().all(|set| set["benchmark"] == "intadd" && set["time"].is_f64()));
    assert!(text.contains("  intadd ") && page.contains("<td>intadd</td>"), "{text}");
}

#[test]
fn latencies_that_were_stopped_are_not_held_against_what_is_declared() {
    let folder = TempDir::new().unwrap();
    let contexts = pinwise_linux::this_machine().unwrap().allowed;
    if contexts.len() < 2 {
        pinwise_synthetic::lacking("a second CPU");
        return;
    }
    let store = stopped(&folder, LatencyRequest { contexts });
    let (text, document, page) = shown(&folder, store.to_str().unwrap());
    assert!(text.starts_with("The latencies so far imply "), "{text}");
    assert!(document["agrees"].is_null() && !text.contains("declared"), "{text}");
    assert!(page.contains("The latencies so far imply "));
    // What is kept of them is as unfinished.
    let kept = folder.path().join("kept.json");
    fs::write(&kept, document.to_string()).unwrap();
    let from = ["latency", "--json", "--machine", "host", "--from", kept.to_str().unwrap()];
    assert_eq!(json(&pinwise(from)), document);
}
