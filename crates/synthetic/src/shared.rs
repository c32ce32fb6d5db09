//! What others measured and published, in a folder beside the repository.

use crate::not_judged::lacking;
use std::env::var_os;
use std::path::{Path, PathBuf};

/// The variables that name the folders.
const DATA: &str = "PINWISE_SHARED_DATA";
const PUBLISHED: &str = "PINWISE_SHARED_PUBLISHED";

fn data() -> PathBuf {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    var_os(DATA).unwrap_or_else(|| usual.into()).into()
}

/// The place of a file or folder of others' measurements. `None`, after saying so, if it is absent.
///
/// # Panics
/// With `CI=true`, if it is absent.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let path = data().join(name);
    if !path.exists() {
        lacking(told(&path, DATA));
    }
    path.exists().then_some(path)
}

/// The place of a file or folder of published figures. They are beside the data, if nothing else is
/// said. `None`, after saying so, if it is absent.
///
/// # Panics
/// With `CI=true`, if it is absent.
pub fn published(name: &str) -> Option<PathBuf> {
    let beside = || data().with_file_name("published");
    let path = var_os(PUBLISHED).map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        lacking(told(&path, PUBLISHED));
    }
    path.exists().then_some(path)
}

fn told(path: &Path, variable: &str) -> String {
    format!("{} (set {variable})", path.display())
}
