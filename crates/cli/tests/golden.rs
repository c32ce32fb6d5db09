//! Golden transcripts: every `$ pinwise ...` in `tests/cmd/**/*.trycmd` is run and must print what stands below it.
//! `tests/README.md` tells how to record them again and how to add a machine.

#[test]
fn every_transcript_is_what_the_program_prints() {
    trycmd::TestCases::new().env("NO_COLOR", "1").case("tests/cmd/**/*.trycmd");
}
