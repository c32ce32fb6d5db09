//! The figures of path profiles beside those of the paper on hardware monitoring. They come from
//! docs/lab/path-profiles.md, which has the rest.

use std::error::Error;

/// What `path_profiles` prints, and what is said of it.
const PAGE: &str = include_str!("../../../docs/lab/path-profiles.md");
/// Where its table beside the paper begins, and what follows it.
const BEGIN: &str = "| the paper says |";
const END: &str = "\n\n";

pub(crate) fn section() -> Result<String, Box<dyn Error>> {
    let begin =
        PAGE.find(BEGIN).ok_or("docs/lab/path-profiles.md has no table beside the paper")?;
    let length = PAGE[begin..].find(END).unwrap_or(PAGE.len() - begin);
    let table = PAGE[begin..begin + length].trim_end();
    Ok(format!(
        "## Path profiles from branch records\n\nT. Moseley and others, \"Hardware monitoring for \
         SMT scheduling and path profiles\", section 3.\n`cargo run --release -p pinwise-lab \
         --example path_profiles` measures it.\n[path-profiles.md](path-profiles.md) says how, \
         and has each program.\n\n{table}\n"
    ))
}
