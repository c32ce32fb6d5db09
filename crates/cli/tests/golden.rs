//! Golden transcripts: every `$ pinwise ...` in `tests/cmd/**/*.trycmd` and in the README is run.
//! It must print what stands below it. `tests/README.md` says how to record them again and how to
//! add a machine.

mod support;

use std::fs;

#[test]
fn every_transcript_is_what_the_program_prints() {
    // The store that commands find by themselves.
    let data = support::shared_folder("found");
    fs::create_dir_all(data.join("pinwise")).unwrap();
    support::campaigns::store(&data.join("pinwise/pinwise.db"));
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("XDG_DATA_HOME", data.to_str().unwrap())
        .case("tests/cmd/**/*.trycmd")
        .case("README.md");
}
