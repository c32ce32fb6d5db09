//! The chart of drift: the reference assignment through the campaign shows whether the machine
//! stayed the same.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::evidence::Evidence;
use crate::figure::{Figure, Table};
use pinwise_campaign::Purpose;
use pinwise_placement::Outcome;
use pinwise_present::figures::{self, Scale};

/// The figure.
pub(crate) fn figure(evidence: &Evidence<'_>, outcome: &Outcome, scale: &Scale) -> Figure {
    const TITLE: &str = "The reference through the campaign";
    let reference: Vec<(f64, f64)> = evidence
        .shots
        .iter()
        .filter(|shot| shot.purpose == Purpose::Reference)
        .map(|shot| (shot.elapsed.as_secs_f64(), shot.performance))
        .collect();
    let Some(&(last, _)) = reference.last().filter(|_| reference.len() > 2) else {
        return Figure::absent(TITLE, "No reference was measured often enough to show drift.");
    };
    let (divisor, unit) = if last > 600.0 { (60.0, "min") } else { (1.0, "s") };
    let mean =
        |part: &[(f64, f64)]| part.iter().map(|point| point.1).sum::<f64>() / part.len() as f64;
    let third = (reference.len() / 3).max(1);
    let (first, final_) = (&reference[..third], &reference[reference.len() - third..]);
    let level = |part: &[(f64, f64)]| {
        let height = scale.value(mean(part));
        [part.first(), part.last()]
            .into_iter()
            .flatten()
            .map(|point| (point.0 / divisor, height))
            .collect::<Vec<_>>()
    };
    let y = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let chart = Chart::new("chart-drift", Axis::new(format!("time measuring, {unit}")), y)
        .series(Series::new(
            "reference assignment",
            Shape::Dots,
            Ink::Data,
            reference.iter().map(|&(time, value)| (time / divisor, scale.value(value))),
        ))
        .series(Series::new("mean of the first third", Shape::Line, Ink::Faint, level(first)))
        .series(Series::new("mean of the last third", Shape::Dashes, Ink::Faint, level(final_)));
    let mut table = Table::new(["", "Mean", "Measurements"]);
    table.row(["First third".to_owned(), scale.show(mean(first)), first.len().to_string()]);
    table.row(["Last third".to_owned(), scale.show(mean(final_)), final_.len().to_string()]);
    let says = match &outcome.drift {
        Some(drift) => format!(
            "One assignment, measured {} times through the campaign, became {} from the first to \
             the last third. {}.",
            drift.n,
            figures::better_or_worse(drift.change),
            if drift.significant {
                "Noise does not explain that, so measurements far apart in time are less comparable"
            } else {
                "Noise may explain that"
            }
        ),
        None => {
            format!("One assignment was measured {} times through the campaign.", reference.len())
        }
    };
    Figure {
        title: TITLE,
        says,
        reading: "A flat cloud means that the machine treated early and late assignments alike. A \
            step or a slope means that something else changed: frequency, temperature, another \
            program, the load itself.",
        chart: Some(chart),
        table,
    }
}
