//! What a campaign on several nodes takes, before it begins.

use crate::figures;
use crate::progress_notice::long_time;
use pinwise_placement::Budget;
use serde::Serialize;
use std::time::Duration;

/// What a campaign on several nodes takes, if its trials split evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodesOutlook {
    /// How many nodes there are.
    pub nodes: usize,
    /// Measurements, if the budget counts them.
    pub measurements: Option<u64>,
    /// Seconds on one node like this machine; `None`: it is not known before the first run.
    pub seconds_on_one: Option<f64>,
    /// Seconds on all nodes, at best.
    pub seconds: Option<f64>,
}

impl NodesOutlook {
    /// That of a budget. `each`: what a measurement takes, if it is known.
    pub fn of(nodes: usize, budget: Budget, each: Option<Duration>) -> Self {
        let (measurements, seconds_on_one, seconds) = match budget {
            // More nodes measure more in the same time.
            Budget::Time(time) => (None, Some(time.as_secs_f64()), Some(time.as_secs_f64())),
            Budget::Measurements(most) => {
                let on_one = each.map(|each| each.as_secs_f64() * most as f64);
                (Some(most), on_one, on_one.map(|seconds| seconds / nodes as f64))
            }
        };
        Self { nodes, measurements, seconds_on_one, seconds }
    }
}

/// The outlook in words, as lines.
pub fn nodes_outlook(outlook: &NodesOutlook) -> String {
    let NodesOutlook { nodes, measurements, seconds_on_one, seconds } = *outlook;
    let count = match measurements {
        Some(most) => format!("at most {}", figures::counted(most, "measurement")),
        None => "as many measurements as the budget has time for".to_owned(),
    };
    let nodes = figures::counted(nodes as u64, "node");
    let time = match (seconds_on_one, seconds) {
        (Some(one), Some(all)) if measurements.is_some() => {
            format!(
                "about {} on one node like this machine, at best {} on {nodes}",
                long_time(one),
                long_time(all)
            )
        }
        (_, Some(all)) => format!("{} on {nodes}", long_time(all)),
        _ => format!("on {nodes}; how long one takes is not known before the first"),
    };
    format!(
        "{count}: {time}\nif a node dies, what it measures then is measured again on another one; \
         every result that arrived is stored\nno node was contacted: the search finds out whether \
         each can be reached\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlook_says_what_is_known() {
        let said = |measurements, seconds_on_one, seconds| {
            nodes_outlook(&NodesOutlook { nodes: 4, measurements, seconds_on_one, seconds })
        };
        let model = said(Some(4000), Some(800.0), Some(200.0));
        assert!(model.starts_with("at most 4,000 measurements: about "), "{model}");
        assert!(
            model.contains("one node like this machine") && model.contains("4 nodes\n"),
            "{model}"
        );
        assert!(said(Some(600), None, None).contains("not known before"));
        assert!(said(None, Some(300.0), Some(300.0)).starts_with("as many measurements"));
    }
}
