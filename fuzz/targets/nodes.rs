//! Nodes as `--on` names them: as many as were named, or a reason in one line. No name of a host is
//! an option or several words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_cluster::Nodes;

fuzz_target!(|text: &str| {
    for count in [None, Some(3)] {
        match Nodes::parse(text, count) {
            Ok(Nodes::Ssh(hosts)) => {
                assert_eq!(hosts.len(), text.matches(',').count() + 1);
                for host in &hosts {
                    assert!(!host.is_empty() && !host.starts_with('-'), "{host}");
                    assert!(!host.contains(char::is_whitespace), "{host}");
                }
            }
            Ok(nodes) => assert_eq!(Some(nodes.count()), count),
            // A message may quote what was typed.
            Err(error) => assert!(text.contains('\n') || !error.to_string().contains('\n')),
        }
    }
});
