//! Descriptions of an SMT core, of its programs and of their phases (TOML): what they say, or a
//! reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_smt::{PhasedProgram, SmtCore, StreamProgram};

fuzz_target!(|text: &str| {
    let _ = SmtCore::parse(text);
    let _ = PhasedProgram::parse(text, &StreamProgram::spec2000());
    if let Ok(programs) = StreamProgram::parse(text) {
        let _ = PhasedProgram::parse(text, &programs);
    }
});
