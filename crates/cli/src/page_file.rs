//! The file that a page is written to if the user names none.

use std::fs;
use std::path::PathBuf;

/// The file of a page in this directory: `STEM.html`. If another page has that name, the name gets
/// a number. It is the first that is free or has the page's `mark`.
pub(crate) fn free(stem: &str, mark: &str) -> PathBuf {
    let of_another = |path: &PathBuf| {
        fs::read(path).is_ok_and(|page| !String::from_utf8_lossy(&page).contains(mark))
    };
    let first = PathBuf::from(format!("{stem}.html"));
    let mut next = (2..=u32::MAX).map(|copy| PathBuf::from(format!("{stem}-{copy}.html")));
    if of_another(&first) { next.find(|path| !of_another(path)).unwrap_or(first) } else { first }
}
