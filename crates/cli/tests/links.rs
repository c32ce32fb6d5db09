//! Every relative link in every Markdown file leads to a file that exists, and to a heading in it
//! where the link names one.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn relative_links_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = markdown_below(&root);
    assert!(files.len() > 10, "only {} Markdown files below {}", files.len(), root.display());
    let broken: Vec<String> = files.iter().flat_map(|file| broken_links(file)).collect();
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// All Markdown files of the repository; build output and hidden directories left out.
fn markdown_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            files.extend(markdown_below(&path));
        } else if name.ends_with(".md") {
            files.push(path);
        }
    }
    files
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
