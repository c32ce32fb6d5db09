//! What a characterization found, in one sentence.

use pinwise_characterization::Characterization;

/// The largest slowdown that is critical: `4 intadd slow each other down 3.98 times: integer unit.`
pub fn characterization_verdict(characterization: &Characterization) -> String {
    let critical = characterization.findings.critical.iter();
    let Some(worst) = critical.max_by(|a, b| a.slowdown.total_cmp(&b.slowdown)) else {
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
