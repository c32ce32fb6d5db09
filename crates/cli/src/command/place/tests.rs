use super::*;
use pinwise_measure::{Thread, Unit, Workload};
use pinwise_topology::{Alike, Machine};

/// A campaign for a program of so many threads on two contexts that are alike.
fn campaign(threads: usize, request: &Request) -> NewCampaign {
    let thread = |number| Thread { name: format!("t{number}"), role: "t".into(), instance: 0 };
    NewCampaign {
        kind: Kind::Place,
        parent: None,
        command: Vec::new(),
        machine: Machine::from_shape("2").unwrap(),
        alike: Alike::ByStructure,
        workload: Workload { name: "true".into(), threads: (0..threads).map(thread).collect() },
        unit: Unit::cost("s"),
        question: serde_json::to_value(request).unwrap(),
        seed: 1,
    }
}

/// What a program of so many threads is refused with.
fn refused(threads: usize, words: &[&str]) -> Option<String> {
    let request = arguments::tests::request(&[words, &["--", "true"]].concat()).unwrap();
    let new = campaign(threads, &request);
    ensure_choice(&request, &new).err().map(|error| error.to_string())
}

#[test]
fn one_assignment_only_is_refused_with_a_remedy_where_there_is_one() {
    assert_eq!(refused(2, &[]), None, "both on one, or apart");
    assert_eq!(refused(3, &["--per-context", "2"]), None);
    let alone = refused(1, &["--per-context", "2"]).unwrap();
    assert!(alone.ends_with("so there is nothing to choose"), "{alone}");
    let apart = refused(2, &["--per-context", "1"]).unwrap();
    assert!(apart.ends_with("; allow more than 1 on each (--per-context)"), "{apart}");
}

#[test]
fn a_metric_that_was_a_total_is_answered_with_the_command_that_measures_its_rate() {
    let request = arguments::tests::request(&["--", "true"]).unwrap();
    for (command, meant) in [
        (
            &["pinwise", "place", "--metric", "stdout:(.*) ops/s", "--", "a", "--", "b"][..],
            "'stdout:(.*) ops/s' --counter -- a -- b",
        ),
        (&["pinwise", "place", "--pid", "7"], "--pid 7 --counter"),
    ] {
        let new = NewCampaign {
            kind: Kind::Place,
            parent: None,
            command: command.iter().map(ToString::to_string).collect(),
            ..campaign(2, &request)
        };
        let told = again(&new);
        assert!(told.starts_with("pinwise place --") && told.ends_with(meant), "{told}");
    }
}
