//! `pinwise characterize` from the command line, on the host and on the model.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use support::{json, pinwise};
use tempfile::TempDir;

fn characterize(folder: &TempDir, more: &[&str]) -> Value {
    let store = folder.path().join("pinwise.db");
    let words =
        ["characterize", "--json", "--store"].map(Path::new).into_iter().chain([store.as_path()]);
    json(&pinwise(words.chain(more.iter().map(Path::new))))
}

/// Structure and sanity only: what a busy machine measures is not for a test to judge.
#[test]
fn the_host_is_characterized_and_the_page_is_written() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("page.html");
    let few =
        ["--benchmarks", "intadd,Dcache", "--rounds", "2", "--maiv", "20%", "--stressors", "1"];
    let document = characterize(&folder, &[&few[..], &["--html", page.to_str().unwrap()]].concat());
    assert_eq!(document["unit"], "ns/operation");
    let isolation = document["isolation"].as_array().unwrap();
    assert!(
        isolation.iter().all(|row| row["ns"].as_f64().unwrap() > 0.0 && row["cpi"].is_null()),
        "{isolation:?}"
    );
    let caches = document["working_sets"]["caches"].as_array().unwrap();
    let curve = document["working_sets"]["curve"].as_array().unwrap();
    assert!(
        curve.len() > 10 && curve.iter().all(|point| point["ns"].as_f64().unwrap() > 0.0),
        "{curve:?}"
    );
    assert!(caches.iter().all(|cache| cache["level"].as_u64().unwrap() >= 1), "{caches:?}");
    let levels = document["references"][0]["levels"].as_array().unwrap();
    let absent = document["references"][0]["absent"].as_array().unwrap();
    assert!(levels.len() + absent.len() >= 3, "what is not there is named: {levels:?} {absent:?}");
    for level in absent {
        assert!(level["reason"]["kind"].is_string() && level["reason"]["text"].is_string());
    }
    let slowdowns = document["slowdowns"].as_array().unwrap();
    assert_eq!(slowdowns.is_empty(), levels.is_empty());
    for row in slowdowns {
        assert!(
            row["slowdown"].as_f64().unwrap() > 0.0 && row["rounds"].as_array().unwrap().len() == 2,
            "{row}"
        );
        assert!(row["low"].as_f64().unwrap() <= row["high"].as_f64().unwrap(), "{row}");
    }
    let html = fs::read_to_string(page).unwrap();
    assert!(
        html.starts_with("<!DOCTYPE html>")
            && html.trim_end().ends_with("</html>")
            && !html.contains("<script")
    );
    assert!(html.contains("no level") || html.contains("There is no level") || absent.is_empty());
}

#[test]
fn the_model_repeats_bit_for_bit_and_keeps_its_result() {
    let folder = TempDir::new().unwrap();
    let few = [
        "--machine",
        "ultrasparc-t2",
        "--benchmarks",
        "intadd,FPdiv",
        "--stressors",
        "2",
        "--rounds",
        "2",
    ];
    let (one, two) = (characterize(&folder, &few), characterize(&folder, &few));
    assert_eq!(one["slowdowns"], two["slowdowns"]);
    assert_eq!((one["id"].as_i64(), two["id"].as_i64()), (Some(1), Some(2)));
    let row = |reference: &str, stressor: &str, place: &str, count: u64| {
        let rows = one["slowdowns"].as_array().unwrap().iter();
        let mut found = rows.filter(|row| {
            row["reference"] == reference
                && row["stressor"] == stressor
                && row["where"] == place
                && row["count"] == count
        });
        found.next().unwrap()["slowdown"].as_f64().unwrap()
    };
    // MICRO 2009, figures 3 and 4(b).
    assert!((row("intadd", "intadd", "pipe", 3) / 4.0 - 1.0).abs() < 0.02);
    assert!((row("FPdiv", "FPdiv", "pipe", 2) / 3.0 - 1.0).abs() < 0.02);
    assert!((row("FPdiv", "FPdiv", "chip", 2) - 1.0).abs() < 0.01);
    assert_eq!(one["findings"]["remote"]["core_local"], true);
    // Its duration comes from the records, so every command shows the same.
    let (id, store) = (one["campaign"].to_string(), folder.path().join("pinwise.db"));
    let shown =
        json(&pinwise(["campaign", "show", &id, "--json", "--store", store.to_str().unwrap()]));
    assert!(one["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(shown["seconds"], one["seconds"]);
}

#[test]
fn what_is_kept_gives_the_page_again_and_campaigns_on_that_machine_show_it() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = ["--machine", "ultrasparc-t2"];
    let store = file("pinwise.db");
    let nothing =
        pinwise([&["report", "characterization", "--store", &store], &model[..]].concat());
    let said = String::from_utf8(nothing.stderr).unwrap();
    assert!(
        said.lines().count() == 1
            && said.contains("pinwise characterize --machine ultrasparc-t2 --store"),
        "{said}"
    );
    assert_eq!((nothing.status.code(), Path::new(&store).exists()), (Some(2), false));
    let few = ["--benchmarks", "intadd", "--stressors", "1", "--html", &file("measured.html")];
    let measured = characterize(&folder, &[&model[..], &few].concat());
    let report =
        ["report", "characterization", "--json", "--store", &store, "--html", &file("stored.html")];
    let written = json(&pinwise([&report[..], &model].concat()));
    assert_eq!((&written["id"], &written["excerpt"]), (&measured["id"], &Value::Bool(true)));
    let page = fs::read_to_string(file("stored.html")).unwrap();
    assert_eq!(page, fs::read_to_string(file("measured.html")).unwrap());
    let of_host = pinwise(["report", "characterization", "--store", &store]);
    assert_eq!(of_host.status.code(), Some(2), "another machine's is not this one's");
    let place = [
        "place",
        "--workload",
        "intadd:1",
        "--cycles",
        "20000",
        "--starts",
        "1",
        "--budget",
        "60",
        "--json",
    ];
    json(&pinwise([&place[..], &["--store", &store], &model].concat()));
    json(&pinwise(["report", "2", "--json", "--store", &store, "-o", &file("campaign.html")]));
    let campaign = fs::read_to_string(file("campaign.html")).unwrap();
    let heat =
        page.split_once("<table class=\"heat\">").unwrap().1.split_once("</table>").unwrap().0;
    assert!(
        campaign.contains("What contexts of this machine share") && campaign.contains(heat),
        "{campaign}"
    );
}

/// Of the whole one a level is taken, of an excerpt nothing: neither is needed to search.
#[test]
fn a_damaged_characterization_is_reported_and_the_search_goes_on() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let model = ["--machine", "ultrasparc-t2"];
    characterize(&folder, &[&model[..], &["--benchmarks", "intadd", "--stressors", "1"]].concat());
    let place = |more: &[&str]| {
        let words = [
            "place",
            "--strategy",
            "blackbox",
            "--workload",
            "intadd:2",
            "--store",
            store.to_str().unwrap(),
        ];
        pinwise([&words[..], &model, more].concat())
    };
    let rehearsed = place(&["--dry-run"]);
    assert!(rehearsed.status.success() && rehearsed.stderr.is_empty(), "{rehearsed:?}");
    // The text stands in the file as it is; keys of other names are no characterization.
    let (key, damaged) = (b"\"isolation\"", b"\"isolatiom\"");
    let mut bytes = fs::read(&store).unwrap();
    let at: Vec<usize> =
        (0..bytes.len() - key.len()).filter(|&at| bytes[at..].starts_with(key)).collect();
    assert!(!at.is_empty());
    at.into_iter().for_each(|at| bytes[at..at + key.len()].copy_from_slice(damaged));
    fs::write(&store, bytes).unwrap();
    let rehearsed = place(&["--dry-run"]);
    let said = String::from_utf8(rehearsed.stderr).unwrap();
    assert!(rehearsed.status.success(), "{said}");
    assert!(
        said.starts_with("note: ") && said.contains("damaged") && said.lines().count() == 1,
        "{said}"
    );
    let told = String::from_utf8(rehearsed.stdout).unwrap();
    assert!(told.contains("Core (the usual one; pinwise characterize measures it)"), "{told}");
}

#[test]
fn what_cannot_be_run_is_bad_usage() {
    for (words, reason) in [
        (
            &["characterize", "--machine", "8x2x4"][..],
            "cannot run a program: characterize takes host, or a simulated processor: \
             ultrasparc-t2",
        ),
        (&["characterize", "--machine", "opteron-24"], "is described but not simulated"),
        (&["characterize", "--machine", "UltraSPARC-T2"], "did you mean ultrasparc-t2?"),
        (
            &["characterize", "--benchmarks", "intsub"],
            "no benchmark 'intsub' here; there are intadd",
        ),
        (&["characterize", "--benchmarks", "l3FULL"], "; did you mean L3full?"),
    ] {
        let done = pinwise(words.iter().map(Path::new));
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(reason) && said.lines().count() == 1, "{said}");
    }
}
