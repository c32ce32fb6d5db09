//! A campaign that was stopped before it had an answer: it is shown, and has a page.

mod support;

use pinwise_campaign::{CampaignId, CampaignState, Kind, NewCampaign, Store};
use pinwise_characterization::Conditions;
use pinwise_jobs::{
    CalibrationExamples, CalibrationRequest, Caller, CharacterizeRequest, CompareRequest, Event,
    Events, HostProgram, Job, JobError, LatencyRequest, ModelledProgram, PlaceRequest,
    PlacementRequest, SelectRequest, Silent, SimulatedProcessor, SimulationRequest, Subject,
    ThreadsMethod, ThreadsProgram, ThreadsRequest, TuneRequest,
};
use pinwise_measure::{Fame, Unit, Workload};
use pinwise_placement::{Budget, SelectionQuestion};
use pinwise_topology::{Alike, Machine};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{agree, json, pinwise};
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

/// A store whose campaign 1 was stopped after its first measurement, or that of a part.
fn stopped<J: Job>(folder: &TempDir, request: J) -> PathBuf {
    let path = folder.path().join("some store.db");
    let mut store = Store::open(&path).unwrap();
    let caller = Caller::default();
    let mut events = StopAfterOne(caller.interrupt.flag());
    let Err(ended) = pinwise_jobs::run(request, &caller, &mut store, &mut events) else { panic!() };
    assert!(matches!(ended, JobError::Interrupted(_)), "{ended}");
    path
}

/// The text, the JSON document and the page of campaign 1. They say how far it is, and give the
/// command that goes on. The text says it in its first three lines.
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
    let measured = unfinished["measured"].as_u64().unwrap();
    assert!(unfinished["of"].as_u64().is_none_or(|of| measured < of), "{document:#}");
    let said = unfinished["text"].as_str().unwrap();
    assert!(said.starts_with(&format!("It is not finished: {measured} ")), "{said}");
    assert!(said.ends_with(&format!("pinwise campaign resume 1 --store '{store}'")), "{said}");
    assert!(text.lines().take(3).any(|line| line == said), "{text}");
    agree(said, &page);
    assert!(page.contains("Unfinished."));
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("-->"));
    (text, document, page)
}

/// A program on a model of a processor.
fn simulated(program: &str) -> PlacementRequest {
    let (model, program) = (SimulatedProcessor::built_in("ultrasparc-t2"), program.to_owned());
    let (instances, cycles, starts, others) = (1, 50_000, 1, Vec::new());
    let simulation = SimulationRequest { model, program, instances, cycles, starts, others };
    let mut request = PlacementRequest::simulated(simulation);
    request.question.budget = Budget::Measurements(60);
    request
}

#[test]
fn a_placement_that_was_stopped_has_its_leader() {
    let folder = TempDir::new().unwrap();
    let store = stopped(&folder, PlaceRequest::from(simulated("intadd")));
    let (text, document, page) = shown(&folder, store.to_str().unwrap());
    assert!(text.starts_with("Undecided so far: no assignment has had fresh windows yet.\n"));
    assert_eq!(document["unfinished"]["of"], 60);
    agree(&text, &page);
}

#[test]
fn a_store_that_another_program_made_runs_nothing_without_a_word() {
    let folder = TempDir::new().unwrap();
    let path = stopped(&folder, PlaceRequest::from(simulated("intadd")));
    let mut store = Store::open(&path).unwrap();
    let first = store.get(CampaignId(1)).unwrap();
    let marker = folder.path().join("a marker");
    let mut question = first.new.question.clone();
    question["subject"] = serde_json::json!({ "rerun": ["touch", marker] });
    question["output"] = "/a/file".into();
    question["pids"] = serde_json::json!([41, 42]);
    question["hidden"] = serde_json::json!({ "model": "/a/model" });
    question["model"] = "of a processor".into();
    let second = store.create(&NewCampaign { question, ..first.new }).unwrap();
    let (path, id) = (path.to_str().unwrap(), second.0.to_string());
    let refused = |id: &str| {
        let output = pinwise(["campaign", "resume", id, "--store", path]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&id);
    let command = format!("note: it has subject.rerun: touch '{}'\n", marker.display());
    let others = ["output: /a/file", "pids: 41 42", "hidden.model: /a/model"];
    let others = others.map(|said| format!("note: it has {said}\n"));
    assert!(others.iter().chain([&command]).all(|one| said.contains(one)), "{said}");
    assert!(!said.contains("of a processor"), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("did not make") && last.ends_with("then add --trust"), "{said}");
    assert!(!marker.exists());
    // The first one runs a model only; nobody looks that closely.
    refused("1");
    let trusted = pinwise(["campaign", "resume", "1", "--trust", "--store", path, "--json"]);
    assert_eq!(json(&trusted)["unfinished"], Value::Null);
}

#[test]
fn a_comparison_that_was_stopped_compares_nothing_yet() {
    let folder = TempDir::new().unwrap();
    let store = stopped(&folder, CompareRequest::new(simulated("intadd")));
    let (text, document, page) = shown(&folder, store.to_str().unwrap());
    assert!(text.starts_with("Nothing is compared yet: the fresh windows come last.\n"), "{text}");
    assert_eq!(document["unfinished"]["measured"], 0, "a search measured");
    agree(&text, &page);
    // Its searches are in the store, and will be.
    assert!(page.contains("Nothing is compared yet.") && !page.contains("any more"));
}

#[test]
fn a_selection_that_was_stopped_announces_nothing() {
    let folder = TempDir::new().unwrap();
    let Subject::Simulated(mut simulation) = simulated("intadd").subject else { panic!() };
    simulation.others = vec![("intmul".to_owned(), 1)];
    let question = SelectionQuestion { choose: 1, budget: 50, confidence: 0.95, seed: 1 };
    let (subject, cpus) = (Subject::Simulated(simulation), Some("0-7".to_owned()));
    let request = SelectRequest { question, subject, alone: Vec::new(), cpus, name: None };
    let store = stopped(&folder, request);
    let (text, ..) = shown(&folder, store.to_str().unwrap());
    assert!(text.starts_with("No result yet: no selection has had fresh windows.\n"), "{text}");
}

/// A search for a number on a model.
fn number() -> ThreadsRequest {
    let program = ModelledProgram {
        machine: "opteron-24".into(),
        model: Machine::model("opteron-24").unwrap(),
        program: "facesim".into(),
        seed: 1,
        description: None,
        others: Vec::new(),
    };
    ThreadsRequest::new(ThreadsProgram::Modelled(program))
}

#[test]
fn a_search_for_a_number_that_was_stopped_has_no_answer_but_its_probes() {
    let folder = TempDir::new().unwrap();
    let sweep = ThreadsRequest { method: ThreadsMethod::Sweep, max: Some(4), ..number() };
    let store = stopped(&folder, sweep);
    let (text, document, page) = shown(&folder, store.to_str().unwrap());
    assert!(text.starts_with("No answer yet: the search has not ended.\n"), "{text}");
    assert_eq!(document["probes"].as_array().map(Vec::len), Some(1), "{document:#}");
    assert!(text.contains("CPU_UTIL") && page.contains("CPU_UTIL"), "{text}");
    agree(&text, &page);
}

#[test]
fn a_number_that_another_campaign_confirms_is_not_confirmed_by_its_probes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pinwise.db");
    let mut store = Store::open(&path).unwrap();
    // As a part of tune asks for it.
    let request = ThreadsRequest { confirm: false, max: Some(4), ..number() };
    pinwise_jobs::run(request, &Caller::default(), &mut store, &mut Silent).unwrap();
    let at = ["--store", path.to_str().unwrap()];
    let text = pinwise([&["campaign", "show", "1"][..], &at].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("By the probes, not confirmed: n = "), "{text}");
    let file = folder.path().join("page.html");
    json(&pinwise([&["report", "1", "--json", "-o", file.to_str().unwrap()][..], &at].concat()));
    agree(&text, &fs::read_to_string(file).unwrap());
    let list = pinwise([&["campaign", "list"][..], &at].concat());
    assert!(String::from_utf8(list.stdout).unwrap().contains(", not confirmed "));
}

#[test]
fn a_search_for_number_and_placement_that_was_stopped_has_no_plan() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("some store.db");
    let mut store = Store::open(&path).unwrap();
    let command = vec!["encoder".to_owned(), "{n}".to_owned()];
    let program = ThreadsProgram::Here(HostProgram { command, ..HostProgram::default() });
    let request = TuneRequest { threads: ThreadsRequest::new(program), plan: None, memory: None };
    // Stopped before its first part.
    let new = NewCampaign {
        kind: Kind::Tune,
        parent: None,
        command: Vec::new(),
        machine: Machine::from_shape("2x4").unwrap(),
        alike: Alike::ExceptNuma,
        workload: Workload::new("encoder {n}", &[]),
        unit: Unit::rate("1/s"),
        simulated: false,
        question: serde_json::to_value(&request).unwrap(),
        seed: 1,
    };
    let id = store.create(&new).unwrap();
    store.set_state(id, CampaignState::Stopped, None).unwrap();
    let (text, document, page) = shown(&folder, path.to_str().unwrap());
    let none = "No answer yet: the search has not ended. There is no plan.\n";
    assert!(text.starts_with(none), "{text}");
    assert_eq!(
        (&document["program"], &document["estimate"]),
        (&"encoder {n}".into(), &Value::Null)
    );
    agree(&text, &page);
}

#[test]
fn a_calibration_that_was_stopped_shows_what_is_probed() {
    let folder = TempDir::new().unwrap();
    let request = CalibrationRequest {
        examples: CalibrationExamples::Modelled {
            name: "2x4".into(),
            machine: Box::new(Machine::from_shape("2x4").unwrap()),
        },
        max: Some(16),
        step: None,
        rounds: 1,
        probe: ThreadsRequest::PROBE,
    };
    let store = stopped(&folder, request);
    let (_, document, _) = shown(&folder, store.to_str().unwrap());
    assert_eq!(document["unfinished"]["measured"], 1, "{document:#}");
}

#[test]
fn a_characterization_that_was_stopped_shows_its_runs() {
    let folder = TempDir::new().unwrap();
    let request = CharacterizeRequest {
        model: Some(SimulatedProcessor::built_in("ultrasparc-t2")),
        benchmarks: vec!["intadd".into()],
        stressors: 1,
        on: None,
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
