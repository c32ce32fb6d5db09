//! Doubts about a plan: the caveats of its search, and changes of the machine since.

use crate::note::sentence;
use pinwise_placement::{MachineCondition, PlacementVerdict, Plan, PlanDifference};

/// What the search of a plan says against it, in sentences. `None` if it says nothing. The plan's
/// `[origin]` has all of it.
pub fn plan_caution(plan: &Plan) -> Option<String> {
    let origin = plan.origin.as_ref()?;
    let verdict = match origin.verdict {
        PlacementVerdict::Pin => None,
        // A plan that leaves them unpinned does as its verdict says.
        PlacementVerdict::KeepDefault if plan.threads.is_empty() => None,
        PlacementVerdict::KeepDefault => {
            Some("its search found nothing better than unpinned".to_owned())
        }
        PlacementVerdict::Undecided => Some("its search was undecided".to_owned()),
    };
    let model = origin.simulated.then(|| {
        format!("its CPU numbers are those of {}, a simulated processor", plan.machine.model)
    });
    let weakening: Vec<_> = origin.notes.iter().filter(|note| note.weakens()).collect();
    let notes = match &weakening[..] {
        [] => None,
        [only] => Some(only.text.trim_end_matches('.').to_owned()),
        several => Some(format!("{} notes of its search speak against it", several.len())),
    };
    let parts = [verdict, model, notes].into_iter().flatten();
    let parts: Vec<String> = parts.map(|part| sentence(&part)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// A difference between the machine of a plan and this one, as a clause.
pub fn plan_difference(difference: &PlanDifference) -> String {
    match difference {
        PlanDifference::Topology { planned, here } => format!(
            "the plan is for another topology ({}: {}; here {}: {})",
            planned.model, planned.summary, here.model, here.summary
        ),
        PlanDifference::Processor { planned, here } => {
            format!("the plan is for another processor ({planned}; here {here})")
        }
        PlanDifference::Condition { condition, planned, here } => {
            let what = match condition {
                MachineCondition::Smt => "SMT",
                MachineCondition::Kernel => "the kernel",
                MachineCondition::Governor => "the frequency governor",
            };
            format!("{what} was {planned}, is {here}")
        }
        PlanDifference::Lacking { cpus } => {
            format!("the plan uses CPU {cpus}, which is offline here or not allowed")
        }
    }
}

/// `thread a`, `threads a, b and c`, and of many some.
pub fn named_threads(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = &names[..names.len() - more];
    match (shown, more) {
        ([only], _) => format!("thread {only}"),
        ([first @ .., last], 0) => format!("threads {} and {last}", first.join(", ")),
        (shown, more) => format!("threads {} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_placement::{PlanNote, PlanOrigin, PlannedThread};
    use pinwise_topology::{CpuId, CpuSet, Fingerprint, Machine};

    fn machine() -> Fingerprint {
        Fingerprint {
            kernel: Some("6.1.0-18-amd64".into()),
            smt: Some("on".into()),
            ..Fingerprint::of(&Machine::from_shape("2x2x2").unwrap())
        }
    }

    fn planned(verdict: PlacementVerdict, simulated: bool, pinned: bool) -> Plan {
        let thread = PlannedThread {
            name: "ipfwd0-R".into(),
            role: "R".into(),
            instance: 0,
            cpus: [CpuId(1)].into_iter().collect(),
        };
        let note = PlanNote::from("The machine was busy.".to_owned());
        let notes = if simulated { vec![note] } else { Vec::new() };
        let threads = if pinned { vec![thread] } else { Vec::new() };
        let mut plan = Plan::new("ipfwd", machine(), threads);
        plan.origin = Some(PlanOrigin { campaign: None, verdict, simulated, notes });
        plan
    }

    #[test]
    fn a_plan_says_what_speaks_against_it() {
        let of = |verdict, simulated| plan_caution(&planned(verdict, simulated, true));
        assert_eq!(of(PlacementVerdict::Pin, false), None);
        assert_eq!(of(PlacementVerdict::Undecided, false).unwrap(), "Its search was undecided.");
        assert_eq!(
            of(PlacementVerdict::KeepDefault, true).unwrap(),
            "Its search found nothing better than unpinned. Its CPU numbers are those of 2x2x2, a \
             simulated processor. The machine was busy."
        );
    }

    #[test]
    fn a_plan_that_pins_nothing_speaks_against_itself_only_where_it_was_undecided() {
        let of = |verdict| plan_caution(&planned(verdict, false, false));
        assert_eq!(of(PlacementVerdict::KeepDefault), None);
        assert_eq!(of(PlacementVerdict::Undecided).unwrap(), "Its search was undecided.");
    }

    #[test]
    fn differences_name_what_changed_and_ignore_what_is_unknown() {
        let plan = planned(PlacementVerdict::Pin, false, true);
        let all = CpuSet::from_iter([CpuId(0), CpuId(1)]);
        let differences = |here: &Fingerprint, allowed: &CpuSet| -> Vec<String> {
            plan.differences(here, allowed).iter().map(plan_difference).collect()
        };
        assert!(differences(&machine(), &all).is_empty());
        assert_eq!(
            differences(&machine(), &CpuSet::from_iter([CpuId(0)])),
            ["the plan uses CPU 1, which is offline here or not allowed"]
        );
        let unknown = Fingerprint { kernel: None, smt: None, ..machine() };
        assert!(differences(&unknown, &all).is_empty());
        let changed = Fingerprint {
            kernel: Some("6.12.1".into()),
            smt: Some("off".into()),
            governor: Some("powersave".into()),
            ..Fingerprint::of(&Machine::from_shape("2x2").unwrap())
        };
        let changes = differences(&changed, &all);
        assert_eq!(changes.len(), 3);
        assert!(changes[0].contains("here 2x2: 2 cores, 4 contexts"), "{changes:?}");
        assert_eq!(changes[1], "SMT was on, is off");
        assert_eq!(changes[2], "the kernel was 6.1.0-18-amd64, is 6.12.1");
        let newer = Fingerprint { model: "newer".into(), ..machine() };
        assert_eq!(
            differences(&newer, &all),
            ["the plan is for another processor (2x2x2; here newer)"]
        );
    }
    #[test]
    fn many_threads_are_named_in_one_line() {
        let named = |names: &[&str]| {
            named_threads(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(named(&["a"]), "thread a");
        assert_eq!(named(&["a", "b", "c"]), "threads a, b and c");
        assert_eq!(named(&["x"; 11]), format!("threads {} and 3 more", ["x"; 8].join(", ")));
    }
}
