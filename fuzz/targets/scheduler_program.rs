//! Descriptions of programs on the model of a scheduler (TOML). A program is the same when it is
//! stored and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_scheduler::ModelProgram;

fuzz_target!(|text: &str| {
    if let Ok(program) = ModelProgram::parse(text) {
        let stored = serde_json::to_value(&program).expect("it has only finite numbers");
        assert_eq!(serde_json::from_value::<ModelProgram>(stored).expect("it was stored"), program);
    }
});
