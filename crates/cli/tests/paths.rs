//! `pinwise paths`: its answer for a small program, its exports, its refusals, and its recording.
//! `tests/cmd/paths/paths.in/app.s` is the program, and `arm.s` the same one for AArch64.

mod support;

use pinwise_synthetic::shared_data;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{PATIENCE, Program, agree, json, pinwise, wait_until};
use tempfile::TempDir;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/paths/paths.in");

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Of the program for x86-64, `app`, or of the same one for AArch64, `arm`.
fn of(program: &str, words: &[&str]) -> Output {
    let (text, binary) = (file(&format!("{program}.brstack")), file(program));
    pinwise([&["paths", &text, "--binary", &binary][..], words].concat())
}

fn of_app(words: &[&str]) -> Output {
    of("app", words)
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line of a command that is refused.
fn refused(words: &[&str]) -> (Option<i32>, String) {
    let output = pinwise(words);
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.starts_with("pinwise: ") && line.lines().count() == 1, "{words:?}: {line}");
    assert!(output.stdout.is_empty(), "{words:?}");
    (output.status.code(), line)
}

/// `work` makes 12 turns, for the numbers 12 to 1. Each third one is squared.
#[test]
fn the_shares_of_a_known_program_are_near_what_it_does() {
    ["app", "arm"].iter().for_each(|program| shares_are_near_what_it_does(program));
}

fn shares_are_near_what_it_does(program: &str) {
    let document = json(&of(program, &["--json"]));
    let paths = document["paths"].as_array().unwrap();
    let of_work: Vec<&Value> = paths.iter().filter(|path| path["function"] == "work").collect();
    let lines = |path: &Value| -> Vec<u64> {
        path["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["first_line"].as_u64().unwrap())
            .collect()
    };
    let line_of = |label: &str| {
        let source = fs::read_to_string(file(&format!("{program}.s"))).unwrap();
        source.lines().position(|line| line.starts_with(label)).unwrap() as u64 + 1
    };
    let (even, squares) = (line_of(".Leven:"), line_of(".Lthird:") + 2);
    let share = |is_even: bool, is_squared: bool| {
        let found = of_work.iter().filter(|path| {
            let lines = lines(path);
            lines.contains(&even) == is_even && lines.contains(&squares) == is_squared
        });
        found.map(|path| path["flow"].as_f64().unwrap()).sum::<f64>()
    };
    // Counted in the program: of 13 paths, 4 even and 4 odd ones are not squared, 2 and 2 are.
    for (is_even, is_squared, exact) in
        [(true, false, 4.0), (false, false, 4.0), (true, true, 2.0), (false, true, 2.0)]
    {
        let found = share(is_even, is_squared);
        assert!((found - exact / 13.0).abs() < 0.05, "{program} {is_even} {is_squared}: {found}");
    }
    assert!(document["coverage"].as_f64().unwrap() > 0.95);
    assert_eq!(document["totals"]["samples"], 150);
    assert_eq!(document["totals"]["truncated_samples"], 150);
}

#[test]
fn the_page_says_what_the_terminal_says_and_draws_the_paths() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("paths.html");
    let output = of_app(&["--html", page.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let html = fs::read_to_string(page).unwrap();
    agree(&said(&output), &html);
    assert!(html.contains("<svg class=\"flow\"") && html.contains("<circle class=\"p0\""));
    assert!(html.contains("app.s:") && !html.contains("src=\"http"));
    // The code of both functions.
    assert!(html.contains("imul eax,eax") && html.contains("40007d  call 0x40008f"), "{html}");
}

#[test]
fn as_many_paths_as_asked_for_are_shown_everywhere() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("paths.html");
    let rows = |top: &[&str]| {
        let words = [&["--html", page.to_str().unwrap()], top].concat();
        let text = said(&of_app(&words));
        let html = fs::read_to_string(&page).unwrap();
        let table = html.split("The hottest paths</h2>").nth(1).unwrap();
        let table = table.split("</section>").next().unwrap().to_owned();
        let more = |text: &str| text.contains("more hot paths: see them with --top");
        assert_eq!(more(&text), more(&table), "{text}");
        let of_table = text.lines().filter(|line| line.contains(" app.s:")).skip(1).count();
        assert_eq!(table.matches("<tr>").count() - 1, of_table);
        of_table
    };
    assert_eq!((rows(&[]), rows(&["--top", "2"])), (7, 2));
    let folded = |top: &[&str]| said(&of_app(&[&["--to", "folded"], top].concat()));
    let all = folded(&[]);
    let first: Vec<&str> = all.lines().take(2).collect();
    assert_eq!(folded(&["--top", "2"]).lines().collect::<Vec<_>>(), first);
    let (text, app) = (file("app.brstack"), file("app"));
    for format in ["bolt", "autofdo"] {
        let words = ["paths", &text, "--binary", &app, "--to", format, "--top", "2"];
        let (code, line) = refused(&words);
        assert!(code == Some(2) && line.contains("leave out --top"), "{line}");
    }
}

/// A record of two branches spans no two of the three choices in `work`.
#[test]
fn paths_that_no_fragment_tells_apart_are_a_group_everywhere() {
    let folder = TempDir::new().unwrap();
    let short = folder.path().join("short");
    let text_of_all = fs::read_to_string(file("app.brstack")).unwrap();
    let newest = |line: &str| line.split("  ").take(3).collect::<Vec<_>>().join("  ");
    fs::write(&short, text_of_all.lines().map(newest).collect::<Vec<_>>().join("\n")).unwrap();
    let page = folder.path().join("page.html");
    let (short, app) = (short.to_str().unwrap(), file("app"));
    let words = ["paths", short, "--binary", &app];
    let document = json(&pinwise([&words[..], &["--json"]].concat()));
    let groups = document["groups"].as_array().unwrap();
    assert!(!groups.is_empty());
    for (number, group) in groups.iter().enumerate() {
        let all = document["paths"].as_array().unwrap().iter();
        let of_it: Vec<_> = all.filter(|path| path["group"] == number).collect();
        let flow: f64 = of_it.iter().map(|path| path["flow"].as_f64().unwrap()).sum();
        // Some of its paths may be below what is shown.
        assert!(of_it.len() as u64 <= group["paths"].as_u64().unwrap());
        assert!(flow <= group["flow"].as_f64().unwrap() + 1e-9);
    }
    let output = pinwise([&words[..], &["--html", page.to_str().unwrap()]].concat());
    let text = said(&output);
    assert!(text.contains("a group, known together:") && text.contains("- work"), "{text}");
    assert!(text.contains("is known by group only"), "{text}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("a group, known together:"), "{html}");
    // One branch alone never tells, so nothing is known with confidence.
    let newest = |line: &str| line.split("  ").take(2).collect::<Vec<_>>().join("  ");
    fs::write(short, text_of_all.lines().map(newest).collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(json(&pinwise([&words[..], &["--json"]].concat()))["confidence"], Value::Null);
    // The whole record tells all hot paths apart.
    assert!(!said(&of_app(&[])).contains("group"));
}

/// Text with the samples of `arm`, which is mapped from `binary` and has this build id.
fn of_a_build(file: &Path, binary: &str, id: &str) -> String {
    let text = fs::read_to_string(self::file("arm.brstack")).unwrap();
    let samples = text.lines().map(|line| format!("arm 7 {:>16}{}\n", &line[..6], &line[6..]));
    let mapping =
        format!("arm 7 PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0 <{id}>]: r-xp {binary}\n");
    fs::write(file, mapping + &samples.collect::<String>()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_binary_that_is_gone_or_changed_is_the_one_that_perf_kept() {
    let home = TempDir::new().unwrap();
    let kept = home.path().join(".debug/.build-id/01/23456789abcdef");
    fs::create_dir_all(&kept).unwrap();
    fs::copy(file("arm"), kept.join("elf")).unwrap();
    let text = home.path().join("text");
    let changed = home.path().join("arm");
    let mut bytes = fs::read(file("arm")).unwrap();
    let id = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    let at = bytes.windows(8).position(|it| it == id).unwrap();
    bytes[at] = 0x02;
    fs::write(&changed, bytes).unwrap();
    for binary in ["/nowhere/arm", changed.to_str().unwrap()] {
        let text = of_a_build(&text, binary, "0123456789abcdef");
        let answer = |home: &Path| {
            let mut command = Command::new(support::PINWISE);
            said(&command.args(["paths", &text]).env("HOME", home).output().unwrap())
        };
        let found = answer(home.path());
        assert!(found.contains("hot paths hold 100 % of the flow of arm"), "{found}");
        let not_found = answer(&kept);
        assert!(not_found.starts_with("no paths are known: arm: "), "{not_found}");
    }
}

#[test]
fn another_build_than_the_recorded_one_is_not_read() {
    let folder = TempDir::new().unwrap();
    let binary = file("arm");
    let recorded = |name: &str, id: &str| of_a_build(&folder.path().join(name), &binary, id);
    let right = recorded("right", "0123456789abcdef");
    let text = said(&pinwise(["paths", &right]));
    assert!(text.contains("hot paths hold 100 % of the flow of arm"), "{text}");
    let wrong = recorded("wrong", "0123456789abcdee");
    let why = "another build than the recorded one (build id 0123456789abcdef, recorded \
               0123456789abcdee)";
    let output = pinwise(["paths", &wrong]);
    assert!(output.status.success(), "{output:?}");
    let text = said(&output).replace("\n  ", " ");
    assert!(text.starts_with(&format!("no paths are known: arm: {why}")), "{text}");
    let document = json(&pinwise(["paths", &wrong, "--json"]));
    assert!(document["binaries"][0]["problem"].as_str().unwrap().starts_with(why));
    let (code, line) = refused(&["paths", &wrong, "--binary", &binary]);
    assert!(code == Some(2) && line.contains(why), "{line}");
}

/// `apart/app` is stripped. It names `app.debug` beside it.
#[test]
fn a_stripped_program_has_names_and_lines_from_its_separate_file() {
    let folder = TempDir::new().unwrap();
    let text = file("app.brstack");
    let answer = |binary: &Path| pinwise(["paths", &text, "--binary", binary.to_str().unwrap()]);
    let (apart, stripped) = (PathBuf::from(file("apart/app")), folder.path().join("app"));
    assert_eq!(said(&answer(&apart)), said(&of_app(&[])));
    fs::copy(&apart, &stripped).unwrap();
    let refusal = answer(&stripped);
    let line = String::from_utf8(refusal.stderr).unwrap();
    assert!(line.contains("neither symbols nor an unwind table"), "{line}");
    // The second place. A link leads to the program from another folder.
    fs::create_dir(folder.path().join(".debug")).unwrap();
    let separate = folder.path().join(".debug/app.debug");
    fs::copy(file("apart/app.debug"), &separate).unwrap();
    let link = TempDir::new().unwrap();
    std::os::unix::fs::symlink(&stripped, link.path().join("app")).unwrap();
    assert_eq!(said(&answer(&link.path().join("app"))), said(&of_app(&[])));
    // One of another build has another checksum.
    let mut other = fs::read(&separate).unwrap();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&separate, other).unwrap();
    assert_eq!(answer(&stripped).status.code(), Some(2));
}

#[test]
fn code_is_marked_with_the_paths_through_it() {
    let text = said(&of_app(&["--annotate"]));
    for word in ["imul eax,eax", "dec ecx", "  A ", "app.s:"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let text = said(&of("arm", &["--annotate"]));
    for word in ["mul w0, w0, w0", "cbnz w1, 0x4000ec", "b.ne 0x40010c", "  A ", "arm.s:"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn what_is_written_for_others_reads_the_same() {
    let folder = TempDir::new().unwrap();
    let bolt = folder.path().join("bolt");
    fs::write(&bolt, said(&of_app(&["--to", "bolt"]))).unwrap();
    let app = file("app");
    let again = json(&pinwise(["paths", bolt.to_str().unwrap(), "--binary", &app, "--json"]));
    let ranges = |document: &Value| document["binaries"][0]["ranges"]["list"].clone();
    assert_eq!(ranges(&again), ranges(&json(&of_app(&["--json"]))));
    // It has each branch alone, so nothing is known with confidence.
    assert_eq!(again["confidence"], Value::Null);
    assert_eq!(again["paths"][0]["flow_low"], Value::Null);
    let text = said(&pinwise(["paths", bolt.to_str().unwrap(), "--binary", &app]));
    assert!(text.contains("how they follow each other is a guess"), "{text}");
    assert!(!text.contains("90 %"), "{text}");
    // Three lists, each after its length.
    let autofdo = said(&of_app(&["--to", "autofdo"]));
    let mut lines = autofdo.lines();
    for separator in ["-", ":", "->"] {
        let length: usize = lines.next().unwrap().parse().unwrap();
        assert!(lines.by_ref().take(length).all(|line| line.contains(separator)), "{autofdo}");
    }
    assert_eq!(lines.next(), None);
    let folded = said(&of_app(&["--to", "folded"]));
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        assert!(stack.starts_with("app;") && stack.split(';').count() > 2, "{line}");
        assert!(count.parse::<u64>().unwrap() > 0, "{line}");
    }
}

/// The totals that AutoFDO's own test of this file has. Its binary is not here.
#[test]
fn a_recording_without_its_binary_has_its_published_totals() {
    let Some(path) = shared_data("branches/test.lbr") else { return };
    let path = path.to_str().unwrap();
    let document = json(&pinwise(["paths", path, "--json"]));
    assert_eq!(document["totals"]["samples"], 9_232);
    assert_eq!(document["totals"]["branches"], 147_712);
    let program = document["binaries"].as_array().unwrap().iter();
    let program = program.max_by_key(|binary| binary["branches"].as_u64()).unwrap();
    assert_eq!(program["name"], "/export/hda3/tmp/test.binary");
    assert_eq!(program["dropped"]["repeated_top"], 55);
    let ranges = &program["ranges"];
    assert_eq!(
        [&ranges["distinct"], &ranges["count"], &ranges["bytes"]],
        [357, 134_622, 5_383_657]
    );
    let hottest = ranges["list"].as_array().unwrap().iter();
    let hottest = hottest.filter(|it| it["start"] == "0x4e80" && it["end"] == "0x4e8e");
    assert_eq!(hottest.map(|it| it["count"].as_u64().unwrap()).collect::<Vec<_>>(), [1_134]);
    let text = said(&pinwise(["paths", path]));
    assert!(text.starts_with("no paths are known: test.binary: "), "{text}");
    assert!(text.contains("--binary") && text.contains("147,712"), "{text}");
    assert!(said(&pinwise(["paths", path, "--to", "autofdo"])).starts_with("357\n"));
    let (code, line) = refused(&["paths", path, "--to", "bolt"]);
    assert!(code == Some(2) && line.contains("--binary"), "{line}");
}

#[test]
fn a_recording_without_branches_says_how_to_record_them() {
    let Some(path) = shared_data("branches/ro_sample.perf") else { return };
    let (code, line) = refused(&["paths", path.to_str().unwrap()]);
    assert!(code == Some(2) && line.contains("perf record -b -- COMMAND"), "{line}");
}

#[test]
fn what_cannot_be_read_is_refused_on_one_line_with_a_remedy() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let make = |name: &str, bytes: &[u8]| {
        fs::write(path(name), bytes).unwrap();
        path(name)
    };
    let (text, app) = (file("app.brstack"), file("app"));
    // 243 is RISC-V.
    let mut risc_v = fs::read(&app).unwrap();
    risc_v[18..20].copy_from_slice(&243_u16.to_le_bytes());
    // No section, so no symbol.
    let mut bare = fs::read(&app).unwrap();
    bare[40..48].fill(0);
    bare[60..64].fill(0);
    for folder in ["risc_v", "bare"] {
        fs::create_dir(path(folder)).unwrap();
    }
    let cases: &[(&[&str], &str)] = &[
        (&["missing.data"], "there is no such file"),
        (&["/"], "it is a directory"),
        (&[&make("empty", b"")], "no recording of branches: give a perf.data"),
        (&[&make("elf", b"\x7fELF\x02\x01\x01")], "no recording of branches: give a perf.data"),
        (&[&make("words", b"some words\n")], "no line has a branch record: print them with"),
        (&[&make("short", b"PERFILE2\x68\0\0\0")], "short"),
        (&[&text, "--binary", "missing"], "cannot read missing: there is no such file"),
        (&[&text, "--binary", "/dev/zero"], "it is no regular file"),
        (&[&text, "--binary", &make("script", b"#!/bin/sh\n")], "not a readable 64-bit ELF file"),
        (&[&text, "--binary", &make("risc_v/app", &risc_v)], "not a program for x86-64 or"),
        (&[&text, "--binary", &make("bare/app", &bare)], "neither symbols nor an unwind table"),
        (&[&make("far", b"99 0x20/0x10/P/-/-/0\n"), "--binary", &app], "no sampled address"),
    ];
    for (words, expected) in cases {
        let (code, line) = refused(&[&["paths"], *words].concat());
        assert!(code == Some(2) && line.contains(expected), "{words:?}: {code:?} {line}");
    }
}

/// A folder with a program named perf, and a PATH that begins there.
fn stand_in(script: &str) -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let perf = folder.path().join("perf");
    fs::write(&perf, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    (folder, path)
}

fn recorder(path: &str, output: &Path, program: &[&str]) -> Command {
    let mut command = Command::new(support::PINWISE);
    command.args(["paths", "record", "-o"]).arg(output).arg("--").args(program).env("PATH", path);
    command.stdin(Stdio::null());
    command
}

/// Takes the second event, writes what perf writes, and runs the program.
const PERF: &str = r#"
case "$*" in *instructions:u*) echo "Error:" >&2; echo "no such event" >&2; exit 255;; esac
while [ "$1" != -- ]; do if [ "$1" = -o ]; then out=$2; fi; shift; done
shift
[ "$out" = /dev/null ] && exit 0
trap 'printf "PERFILE2 cut" > "$out"; kill $child; exit 0' INT TERM
"$@" & child=$!
wait $child
code=$?
printf "PERFILE2 whole" > "$out"
exit $code
"#;

#[test]
fn recording_takes_the_event_that_perf_takes_and_ends_as_the_program() {
    let (folder, path) = stand_in(PERF);
    let output = folder.path().join("app.data");
    let ended = recorder(&path, &output, &["sh", "-c", "exit 7"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(said, format!("recorded; next: pinwise paths {}\n", output.display()));
    assert_eq!(fs::read(&output).unwrap(), b"PERFILE2 whole");
}

#[test]
fn an_interrupted_recording_is_kept() {
    let (folder, path) = stand_in(PERF);
    let (output, begun) = (folder.path().join("app.data"), folder.path().join("begun"));
    let script = format!("touch {}; exec sleep 600", begun.display());
    let mut pinwise = Program(
        recorder(&path, &output, &["sh", "-c", &script]).stderr(Stdio::piped()).spawn().unwrap(),
    );
    wait_until(PATIENCE, "the program to begin", || begun.exists());
    let pid = pinwise.pid().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(pinwise.ended(PATIENCE).code(), Some(130));
    assert_eq!(fs::read(&output).unwrap(), b"PERFILE2 cut");
}

#[test]
fn without_perf_or_branch_records_one_line_says_what_to_do() {
    let nowhere: PathBuf = "/nowhere/perf.data".into();
    let ended = recorder("/usr/bin", &nowhere, &["true"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let folder = TempDir::new().unwrap();
    let output = folder.path().join("perf.data");
    let line = |path: &str| {
        let ended = recorder(path, &output, &["true"]).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let line = String::from_utf8(ended.stderr).unwrap();
        assert!(line.starts_with("pinwise: ") && line.lines().count() == 1, "{line}");
        line
    };
    assert!(line(folder.path().to_str().unwrap()).contains("perf is not here: install it"));
    let (_perf, path) = stand_in("echo 'Error:' >&2; echo 'PMU is odd' >&2; exit 255\n");
    let refused = line(&path);
    // Where the processor has branch records, perf's own words say why.
    assert!(refused.contains("no branch records: ") || refused.contains("PMU is odd"), "{refused}");
    let (_perf, path) = stand_in("exit 0\n");
    assert!(line(&path).contains("perf ended without a recording"));
}
