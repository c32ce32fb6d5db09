//! Descriptions of processors (TOML): a processor whose machine has its contexts, or a reason in
//! one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_processor::Processor;

fuzz_target!(|text: &str| {
    match Processor::parse(text) {
        Ok(processor) => assert_eq!(processor.machine().contexts.len(), processor.contexts()),
        // A message may quote what was typed.
        Err(error) => assert!(text.contains('\r') || !error.to_string().contains('\n'), "{error}"),
    }
});
