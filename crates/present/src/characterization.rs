//! What a characterization found, in one sentence, and why nothing is decided by it.

use crate::figures;
use pinwise_characterization::{
    AbsenceReason, Characterization, Doubt, ExcerptReason, Findings, Sensitivity, SensitivityClass,
    Warning,
};

/// The largest slowdown that is critical: `4 intadd slow each other down 3.98 times: integer unit.`
pub fn characterization_verdict(characterization: &Characterization) -> String {
    let Some(worst) = characterization.findings.worst() else {
        return match characterization.slowdowns.is_empty() {
            true => "No slowdown was measured.".to_owned(),
            false => "No benchmark slows copies of itself down by 5 % or more.".to_owned(),
        };
    };
    let (count, slowdown, resource) = (worst.count, worst.slowdown, &worst.resource);
    if worst.benchmark == worst.stressor {
        let all = count + 1;
        return format!(
            "{all} {} slow each other down {slowdown:.2} times: {resource}.",
            worst.benchmark
        );
    }
    format!(
        "{count} {} slow {} down {slowdown:.2} times: {resource}.",
        worst.stressor, worst.benchmark
    )
}

/// Why nothing is decided by a characterization, as a clause.
pub fn excerpt_reason(reason: &ExcerptReason) -> String {
    match reason {
        ExcerptReason::SomeBenchmarks => {
            "only some of the benchmarks took part; leave out --benchmarks".to_owned()
        }
        ExcerptReason::FewStressors { enough } => {
            format!("fewer than {enough} stressors ran on other cores; use --stressors {enough}")
        }
        ExcerptReason::Busy { share } => {
            format!(
                "programs had their contexts for {} of the time; stop others and repeat",
                figures::percent(*share)
            )
        }
        ExcerptReason::Unknown => {
            "only some of the benchmarks, or few stressors, took part; repeat with all".to_owned()
        }
        ExcerptReason::Text { text } => text.clone(),
    }
}

/// A warning, as a clause.
pub fn characterization_warning(warning: &Warning) -> String {
    match warning {
        Warning::Busy { share } => format!(
            "slowdowns are too small: benchmarks had their CPUs for {} of the time; stop other \
             programs",
            figures::percent(*share)
        ),
        Warning::Noisy { most, pairs } => format!(
            "identical runs differ by up to {} (95 % of {pairs} pairs): stop other programs or \
             raise --rounds",
            figures::percent(*most)
        ),
        Warning::Unsteady { sets, of } => format!(
            "{sets} of {of} sets did not become steady (marked): stop other programs, or raise \
             --maiv"
        ),
        Warning::Text { text } => text.clone(),
    }
}

/// A measurement that leaves the class of a benchmark open.
pub fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Interval { slowdown, low, high, count, stressor, place } => {
            format!("{slowdown:.2} ({low:.2} to {high:.2}) next to {count} {stressor} ({place})")
        }
        Doubt::Text { text } => text.clone(),
    }
}

/// Why a machine does not have a level, as a clause.
pub fn absence(reason: &AbsenceReason) -> &str {
    match reason {
        AbsenceReason::OneContext => "this kind of core has one context",
        AbsenceReason::NoSharedCore => {
            "no two contexts that may be used share a core (no SMT, or hidden by a VM or a cpuset)"
        }
        AbsenceReason::NoSharedPackage => "no two cores that may be used are in one package",
        AbsenceReason::OnePackage => "the contexts that may be used are all in one package",
        AbsenceReason::Text { text } => text,
    }
}

/// How sensitive a benchmark is, in a word. One that the intervals leave open is not called
/// insensitive.
pub fn sensitivity(findings: &Findings, of: &Sensitivity) -> &'static str {
    let undecided = findings.remote.iter().flat_map(|remote| &remote.undecided);
    match of.class {
        SensitivityClass::Insensitive
            if undecided.map(|row| &row.benchmark).any(|open| *open == of.benchmark) =>
        {
            "undecided"
        }
        SensitivityClass::Insensitive => "insensitive",
        SensitivityClass::Moderate => "moderate",
        SensitivityClass::High => "high",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_characterization::{Doubt, Remote, Undecided};

    #[test]
    fn a_benchmark_that_the_intervals_leave_open_is_not_called_insensitive() {
        let row = |benchmark: &str, class| Sensitivity {
            benchmark: benchmark.into(),
            class,
            most: 1.0,
            stressor: None,
            place: None,
            up_to: None,
        };
        let reason = Doubt::Text { text: String::new() };
        let findings = Findings {
            critical: Vec::new(),
            sensitivity: Vec::new(),
            co_runners: Vec::new(),
            remote: Some(Remote {
                independent: Vec::new(),
                dependent: Vec::new(),
                shared: Vec::new(),
                undecided: vec![Undecided { benchmark: "intadd".into(), reason }],
                arrangement: None,
                arrangement_of: None,
                core_local: false,
            }),
            local: None,
            scope: None,
        };
        let word = |benchmark, class| sensitivity(&findings, &row(benchmark, class));
        assert_eq!(word("intadd", SensitivityClass::Insensitive), "undecided");
        assert_eq!(word("intadd", SensitivityClass::High), "high");
        assert_eq!(word("intmul", SensitivityClass::Insensitive), "insensitive");
    }
}
