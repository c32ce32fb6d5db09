//! What speaks against a plan: its own search, and what has changed since.

use crate::note::sentence;
use pinwise_placement::{PlacementVerdict, Plan};
use pinwise_topology::Fingerprint;

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
        several => Some(format!("its search left {} notes", several.len())),
    };
    let parts = [verdict, model, notes].into_iter().flatten();
    let parts: Vec<String> = parts.map(|part| sentence(&part)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// How the machine differs from the one the plan was found on, one line each; empty if the plan
/// fits. A condition that either side does not know is no difference.
pub fn plan_differences(plan: &Plan, now: &Fingerprint) -> Vec<String> {
    let then = &plan.machine;
    let mut differences = Vec::new();
    if then.topology != now.topology {
        differences.push(format!(
            "the plan is for another topology ({}: {}; here {}: {})",
            then.model, then.summary, now.model, now.summary
        ));
    } else if then.model != now.model {
        differences.push(format!(
            "the plan is for another processor ({}; here {})",
            then.model, now.model
        ));
    }
    for (what, then, now) in [
        ("SMT was", &then.smt, &now.smt),
        ("the kernel was", &then.kernel, &now.kernel),
        ("the frequency governor was", &then.governor, &now.governor),
    ] {
        if let (Some(then), Some(now)) = (then, now)
            && then != now
        {
            differences.push(format!("{what} {then}, is {now}"));
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_placement::{PlanNote, PlanOrigin, PlannedThread};
    use pinwise_topology::{CpuId, Machine};

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
        let plan = Plan::new("ipfwd", machine(), Vec::new());
        assert!(plan_differences(&plan, &machine()).is_empty());
        let unknown = Fingerprint { kernel: None, smt: None, ..machine() };
        assert!(plan_differences(&plan, &unknown).is_empty());
        let changed = Fingerprint {
            kernel: Some("6.12.1".into()),
            smt: Some("off".into()),
            governor: Some("powersave".into()),
            ..Fingerprint::of(&Machine::from_shape("2x2").unwrap())
        };
        let differences = plan_differences(&plan, &changed);
        assert_eq!(differences.len(), 3);
        assert!(differences[0].contains("here 2x2: 2 cores, 4 contexts"), "{differences:?}");
        assert_eq!(differences[1], "SMT was on, is off");
        assert_eq!(differences[2], "the kernel was 6.1.0-18-amd64, is 6.12.1");
        let newer = Fingerprint { model: "newer".into(), ..machine() };
        assert_eq!(
            plan_differences(&plan, &newer),
            ["the plan is for another processor (2x2x2; here newer)"]
        );
    }
}
