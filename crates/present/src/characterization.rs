//! What a characterization found, in one sentence, and why nothing is decided by it.

use crate::figures;
use pinwise_characterization::{Characterization, ExcerptReason};

/// The largest slowdown that is critical: `4 intadd slow each other down 3.98 times: integer unit.`
pub fn characterization_verdict(characterization: &Characterization) -> String {
    let Some(worst) = characterization.findings.worst() else {
        return match characterization.slowdowns.is_empty() {
            true => "No slowdown was measured.".to_owned(),
            false => "No benchmark slows its equals down by 5 % or more.".to_owned(),
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
        ExcerptReason::SomeBenchmarks => "only some of the benchmarks took part".to_owned(),
        ExcerptReason::FewStressors { enough } => {
            format!("fewer than {enough} stressors ran on other cores")
        }
        ExcerptReason::Busy { share } => {
            format!("programs had their contexts for {} of the time", figures::percent(*share))
        }
        ExcerptReason::Unknown => {
            "only some of the benchmarks, or few stressors, took part".to_owned()
        }
        ExcerptReason::Text { text } => text.clone(),
    }
}
