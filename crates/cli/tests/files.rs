//! What holds for the files of the repository: links lead somewhere, lines end at 100 columns.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const COLUMNS: usize = 100;

/// Also to a heading of the file where the link names one.
#[test]
fn relative_links_resolve() {
    let broken: Vec<String> = files(&["md"]).iter().flat_map(|file| broken_links(file)).collect();
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn lines_of_sources_end_at_100_columns() {
    let mut sources = files(&["rs", "toml", "sh", "py", "sql", "css", "js", "html", "c", "h"]);
    sources.extend(files(&[""]).into_iter().filter(|file| is_script(file)));
    // What a transcript expects is as wide as what the program writes. Stores of earlier versions
    // and minified libraries are kept as they came.
    let as_it_came = ["tests/cmd/", "tests/stores/", ".min."];
    sources.retain(|file| !as_it_came.iter().any(|part| file.to_string_lossy().contains(part)));
    let long: Vec<String> = sources.iter().flat_map(|file| long_lines(file)).collect();
    assert!(long.is_empty(), "lines beyond {COLUMNS} columns:\n{}", long.join("\n"));
}

/// A hyphen can be typed, searched for and copied into a shell; the minus sign of Unicode cannot.
#[test]
fn no_text_has_the_minus_sign_of_unicode() {
    let texts = files(&["rs", "toml", "sh", "py", "sql", "css", "js", "html", "md", "trycmd"]);
    let has_minus = |file: &&PathBuf| fs::read_to_string(file).unwrap().contains('\u{2212}');
    let found: Vec<String> =
        texts.iter().filter(has_minus).map(|file| file.display().to_string()).collect();
    assert!(found.is_empty(), "U+2212 in:\n{}", found.join("\n"));
}

/// "Imports point down, or sideways within one box": the picture of the house in ARCHITECTURE.md.
/// The crates for tests and studies are outside of it.
#[test]
fn crates_depend_on_those_below_them_in_the_picture_of_the_house() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let ours = |value: &serde_json::Value| match value["name"].as_str().unwrap() {
        "pinwise" => Some("cli".to_owned()),
        name => name.strip_prefix("pinwise-").map(str::to_owned),
    };
    let picture = architecture();
    let picture = picture.split("```").nth(1).unwrap();
    let mut wrong = Vec::new();
    let mut inside = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let Some(from) = ours(package).filter(|name| !["lab", "synthetic"].contains(&&**name))
        else {
            continue;
        };
        let Some((row, side)) = place_in(picture, &from) else {
            wrong.push(format!("{from} is not in the picture"));
            continue;
        };
        inside += 1;
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        for to in dependencies.filter(|to| to["kind"].is_null()).filter_map(ours) {
            let is_below = place_in(picture, &to).is_some_and(|(other, its_side)| {
                other > row || other == row && side.is_some() && its_side == side
            });
            if !is_below {
                wrong.push(format!("{from} depends on {to}"));
            }
        }
    }
    assert!(inside > 20, "only {inside} crates are in the picture");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The row of a crate, counted from the top. The side, if the row is a box of two.
fn place_in(picture: &str, name: &str) -> Option<(usize, Option<usize>)> {
    let mut row = 0;
    for line in picture.lines() {
        let is_box = line.starts_with('│');
        row += usize::from(!is_box);
        for (side, text) in line.split('│').enumerate() {
            if text.split(|c: char| !c.is_alphanumeric()).any(|word| word == name) {
                return Some((row, is_box.then_some(side)));
            }
        }
    }
    None
}

/// `cli` has arguments, text and JSON: it measures nothing itself and knows no format of the store.
#[test]
fn the_program_measures_and_stores_through_the_library_alone() {
    let sources = files(&["rs"]).into_iter().filter(|file| {
        let path = file.to_string_lossy();
        path.contains("crates/cli/src/")
    });
    let mut found = Vec::new();
    let mut read = 0;
    for file in sources {
        let text = fs::read_to_string(&file).unwrap();
        read += 1;
        for word in [" Testbed for ", "rusqlite", "measure_all(", "drive("] {
            if text.contains(word) {
                found.push(format!("{}: {word}", file.display()));
            }
        }
    }
    assert!(read > 40, "{read} files");
    assert!(found.is_empty(), "{found:#?}");
}

/// The script has the limit, and people read it in CONTRIBUTING.
#[test]
fn contributors_know_how_long_the_emulated_machine_of_a_test_may_take() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [script, told] =
        ["test", "CONTRIBUTING.md"].map(|file| fs::read_to_string(root.join(file)).unwrap());
    let (_, rest) = script.split_once("=${PINWISE_MACHINE_LIMIT:-").unwrap();
    let limit = rest.split_once('}').unwrap().0;
    assert!(told.contains(&format!("emulated machines, for {limit} s at most")), "{limit} s");
}

/// Every source that ARCHITECTURE.md names exists. Its path begins with the crate, or the table's
/// row names the crate.
#[test]
fn the_map_names_files_that_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = architecture();
    let mut named = 0;
    let mut gone = Vec::new();
    for line in text.lines() {
        let of_row = line.split('`').nth(1).filter(|_| line.starts_with('|')).unwrap_or("cli");
        let words = line.split(|c: char| !c.is_alphanumeric() && !"_/.*".contains(c));
        for file in words.filter(|word| word.ends_with(".rs") && !word.contains('*')) {
            named += 1;
            let (first, rest) = file.split_once('/').unwrap_or((of_row, file));
            let paths = [
                crates.join(file),
                crates.join(of_row).join("src").join(file),
                crates.join(first).join("src").join(rest),
            ];
            if !paths.iter().any(|path| path.exists()) {
                gone.push(format!("{file}: {line}"));
            }
        }
    }
    assert!(named > 80, "only {named} files");
    assert!(gone.is_empty(), "no such file:\n{}", gone.join("\n"));
}

fn architecture() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    fs::read_to_string(file).unwrap()
}

/// The rule "one name, one type" of ARCHITECTURE.md, without the types of tests.
#[test]
fn no_two_types_have_the_same_name() {
    let of_commands = ["Bound", "Export", "Pairs", "Space", "Workload"];
    let mut sources = files(&["rs"]);
    let of_tests = ["tests.rs", "_test.rs", "fixture.rs"];
    sources.retain(|file| {
        let file = file.to_string_lossy();
        file.contains("/../../crates/")
            && file.contains("/src/")
            && !of_tests.iter().any(|end| file.ends_with(end))
    });
    let mut declared: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in sources {
        for name in types(&fs::read_to_string(&file).unwrap()) {
            declared.entry(name).or_default().push(file.clone());
        }
    }
    assert!(declared.len() > 500, "only {} types", declared.len());
    declared.retain(|name, files| files.len() > 1 && !of_commands.contains(&name.as_str()));
    assert!(declared.is_empty(), "types of the same name: {declared:#?}");
}

/// The types that a file declares outside of functions and of its tests.
fn types(text: &str) -> impl Iterator<Item = String> {
    let kinds = ["struct", "enum", "trait", "type", "union"];
    let code = text.split("\nmod tests {").next().unwrap_or_default().lines();
    code.filter(|line| !line.starts_with([' ', '/'])).filter_map(move |line| {
        let declared = match line.split_once(") ") {
            Some((visibility, rest)) if visibility.starts_with("pub(") => rest,
            _ => line.strip_prefix("pub ").unwrap_or(line),
        };
        let mut words = declared.split(' ');
        kinds.contains(&words.next()?).then_some(())?;
        let name = words.next()?.split(|c: char| !c.is_alphanumeric()).next()?;
        Some(name.to_owned())
    })
}

fn long_lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let long = text.lines().zip(1..).filter(|(line, _)| line.chars().count() > COLUMNS);
    long.map(|(_, number)| format!("{}:{number}", file.display())).collect()
}

fn is_script(file: &Path) -> bool {
    fs::read(file).unwrap().starts_with(b"#!")
}

/// All files of the repository with one of these extensions. `""`: those with none.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    add_files_below(&root, extensions, &mut files);
    assert!(files.len() > 10, "only {} files below {}", files.len(), root.display());
    files
}

/// Leaves out build output and hidden directories.
fn add_files_below(directory: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            add_files_below(&path, extensions, files);
        } else if path.is_file() && extensions.iter().any(|&wanted| extension == wanted) {
            files.push(path);
        }
    }
}

fn broken_links(file: &Path) -> Vec<String> {
    let text = prose(&fs::read_to_string(file).unwrap());
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let relative = targets.map(|(target, _)| target).filter(|target| !target.contains("://"));
    let broken = relative.filter(|target| !resolves(file, target));
    broken.map(|target| format!("{}: {target}", file.display())).collect()
}

fn resolves(from: &Path, target: &str) -> bool {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let to = if path.is_empty() { from.into() } else { from.with_file_name(path) };
    if heading.is_empty() {
        return to.exists();
    }
    let Ok(text) = fs::read_to_string(to) else { return false };
    prose(&text).lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading)
}

/// The text without its fenced code, in which a bracket is no link and `#` no heading.
fn prose(text: &str) -> String {
    let outside = text.split("\n```").step_by(2);
    outside.collect::<Vec<_>>().join("\n")
}

/// The name that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let title = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    title.map(|c| if c == ' ' { '-' } else { c }).collect()
}
