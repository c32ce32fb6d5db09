//! What a characterization found, in sentences, and why nothing is decided by it.

use crate::figures;
use pinwise_characterization::{
    AbsenceReason, Characterization, Doubt, ExcerptReason, Findings, Noise, Remote, Sensitivity,
    SensitivityClass, Warning,
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

/// Whether programs on other cores matter, and what a scheduler may therefore study alone.
pub fn other_cores(findings: &Findings) -> Vec<String> {
    let Some(remote) = &findings.remote else {
        return vec!["There is no other core.".to_owned()];
    };
    let mut sentences = slowed_from_other_cores(remote);
    sentences.push(match findings.local {
        Some(kind) => {
            format!("The smallest domain to study alone: {}.", kind.name().to_lowercase())
        }
        None => "No domain below the whole machine can be studied alone.".to_owned(),
    });
    // With two contexts there are as few assignments as contents: nothing is saved.
    if let Some(scope) = findings.scope.as_ref().filter(|scope| scope.times_fewer > 1.0) {
        let (premise, have) = match remote.core_local {
            true => ("One core at a time is enough", "have"),
            false => ("If one core at a time were enough", "would have"),
        };
        sentences.push(format!(
            "{premise}: {} tasks {have} {} contents of a core instead of {} assignments ({:.1} \
             times fewer).",
            scope.tasks,
            figures::group(&scope.core_local),
            figures::group(&scope.assignments),
            scope.times_fewer
        ));
    }
    sentences
}

fn slowed_from_other_cores(remote: &Remote) -> Vec<String> {
    let listed = |names: &[String], before: &str, after: &str| {
        (!names.is_empty()).then(|| format!("{before} {}{after}.", names.join(", ")))
    };
    let undecided = remote.undecided.iter().map(|row| {
        let (benchmark, reason) = (&row.benchmark, doubt(&row.reason));
        format!("Whether programs on other cores slow down {benchmark} is undecided: {reason}.")
    });
    let arrangement = match (remote.arrangement, &remote.arrangement_of) {
        (Some(change), Some((reference, stressor))) => format!(
            "The arrangement of programs on other cores changes a time by up to {} ({reference} \
             next to {stressor}).",
            figures::percent(change.abs())
        ),
        (Some(_), None) => {
            "The arrangement of programs on other cores changes no time significantly.".to_owned()
        }
        (None, _) => "There is only one way to arrange programs on other cores.".to_owned(),
    };
    let private = ", whose resources are private to a core";
    [
        listed(&remote.independent, "Programs on other cores do not slow down", ""),
        listed(&remote.dependent, "Programs on other cores slow down", private),
        listed(&remote.shared, "Programs on other cores slow down", ""),
    ]
    .into_iter()
    .flatten()
    .chain(undecided)
    .chain([arrangement])
    .collect()
}

/// How much identical runs differ, in sentences.
pub fn characterization_noise(noise: &Noise) -> String {
    let (Some(median), Some(most)) = (noise.median, noise.most) else {
        return "Too few runs to show how much identical runs differ.".to_owned();
    };
    let [median, most, share] = [median, most, noise.share].map(figures::percent);
    format!(
        "Identical runs differ by {median} (median), {most} (95 % of {} pairs). Programs had their \
         contexts for {share} of the time.",
        noise.pairs
    )
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
