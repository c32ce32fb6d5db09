//! `latency` on this machine: what it measures can be kept, read again and looked at.

mod support;

use std::fs;
use support::pinwise;
use tempfile::TempDir;

#[test]
fn a_measurement_can_be_kept_read_again_and_looked_at() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let page = path("page.html");
    let measured = pinwise(["latency", "--json", "--html", &page]);
    if String::from_utf8_lossy(&measured.stderr).contains("only 1 may be used here") {
        pinwise_synthetic::lacking("a second CPU");
        return;
    }
    let first = support::json(&measured);
    assert_eq!(first["unit"], "ns");
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.starts_with("<!DOCTYPE html>")
            && html.contains("core-to-core latency")
            && !html.contains("<script")
    );
    fs::write(path("kept.json"), &measured.stdout).unwrap();
    let again = support::json(&pinwise([
        "latency",
        "--json",
        "--machine",
        "host",
        "--from",
        &path("kept.json"),
    ]));
    assert_eq!(again, first, "nothing is lost, and nothing differs when it is computed again");
}

#[test]
fn a_page_in_a_folder_that_is_not_there_is_bad_usage() {
    let folder = TempDir::new().unwrap();
    let matrix = folder.path().join("box.csv");
    fs::write(&matrix, ",\n57.2,\n").unwrap();
    let nowhere = folder.path().join("no/such/page.html");
    let done = pinwise([
        "latency",
        "--from",
        matrix.to_str().unwrap(),
        "--html",
        nowhere.to_str().unwrap(),
    ]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("its folder does not exist") && said.lines().count() == 1, "{said}");
}

/// What is measured here is not held against the levels of another machine.
#[test]
fn another_machine_cannot_be_measured_from_here() {
    let output = pinwise(["latency", "--machine", "64x64"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        output.stdout.is_empty() && error.contains("pinwise can only measure this machine"),
        "{error}"
    );
}

/// 256 contexts that are one group at the outermost level are listed as that, not one by one.
#[test]
fn many_contexts_that_are_one_group_are_listed_as_one() {
    let folder = TempDir::new().unwrap();
    let matrix = folder.path().join("box.csv");
    let latency = |a: usize, b: usize| match (a / 128 == b / 128, a / 2 == b / 2) {
        (true, true) => "10",
        (true, false) => "50",
        (false, _) => "200",
    };
    let row =
        |a: usize| (0..256).map(|b| if b < a { latency(a, b) } else { "" }).collect::<Vec<_>>();
    let rows: Vec<String> = (0..256).map(|a| row(a).join(",")).collect();
    fs::write(&matrix, rows.join("\n") + "\n").unwrap();
    let from = ["latency", "--from", matrix.to_str().unwrap(), "--machine", "2x64x2"];
    let document = support::json(&pinwise([&from[..], &["--json"]].concat()));
    let levels = document["levels"].as_array().unwrap();
    let groups: Vec<usize> =
        levels.iter().map(|level| level["groups"].as_array().unwrap().len()).collect();
    assert_eq!(groups, [128, 2, 1], "{levels:#?}");
    assert_eq!((&levels[2]["groups"][0], &document["agrees"]), (&"0-255".into(), &true.into()));
    let text = String::from_utf8(pinwise(from).stdout).unwrap();
    assert!(text.lines().any(|line| line.contains("1 x 256") && line.contains(" 0-255")), "{text}");
}
