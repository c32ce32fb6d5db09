//! [`WatchSummary`]: how the threads of a search's probes were watched.

use pinwise_monitor::{Activity, Layer, Unavailable};
use pinwise_programs::ProbeDetails;
use std::time::Duration;

/// How the threads of a search's probes were watched.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchSummary<'a> {
    /// The layer that watched the last probe.
    pub layer: Layer,
    /// Better layers, and why they cannot be used.
    pub refused: &'a [Unavailable],
    /// The CPU time of watching over the program's own, over the probes by that layer.
    pub overhead: Option<f64>,
    /// The longest time between two looks at the threads, if looks cost too much to make them every
    /// 10 ms.
    pub stretched: Option<Duration>,
    /// The number of records that were dropped.
    pub lost: u64,
}

impl<'a> WatchSummary<'a> {
    /// From all probes of a search; `None` without any.
    pub(super) fn of(seen: impl Iterator<Item = &'a ProbeDetails>) -> Option<Self> {
        let seen: Vec<&ProbeDetails> = seen.collect();
        let last = *seen.last()?;
        let layer = last.activity.layer;
        let by_it = || seen.iter().filter(|seen| seen.activity.layer == layer);
        let sum = |of: fn(&Activity) -> Duration| {
            by_it().map(|seen| of(&seen.activity).as_secs_f64()).sum::<f64>()
        };
        let ran = sum(Activity::ran);
        Some(Self {
            layer,
            refused: &last.refused,
            overhead: (ran > 0.0).then(|| sum(|activity| activity.overhead.total()) / ran),
            stretched: seen.iter().filter_map(|seen| seen.activity.stretched).max(),
            lost: seen.iter().map(|seen| seen.activity.lost).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::{Pid, StartTime, ThreadId, Tid};
    use pinwise_monitor::{Overhead, ThreadActivity};

    /// A window in which a thread ran for 80 ms.
    fn probe(layer: Layer, watching: u64) -> ProbeDetails {
        let thread = ThreadActivity {
            id: ThreadId { pid: Pid(7), tid: Tid(9), start: StartTime(0) },
            comm: "worker".into(),
            elapsed: Duration::from_millis(200),
            ran: Duration::from_millis(80),
            waited: Duration::ZERO,
            slept: Duration::from_millis(120),
            locked: None,
            looks: 0,
            voluntary: 0,
            involuntary: 0,
            migrations: None,
            cpu: None,
        };
        let watching = Duration::from_millis(watching);
        ProbeDetails {
            parameter: 1,
            threads: 1,
            activity: Activity {
                layer,
                elapsed: Duration::from_millis(200),
                threads: vec![thread],
                stretched: None,
                lost: 1,
                overhead: Overhead { watching, ..Overhead::default() },
            },
            initialization: Duration::ZERO,
            drift: None,
            disturbed: true,
            watts: None,
            begun: None,
            settled: None,
            notes: Vec::new(),
            refused: Vec::new(),
        }
    }

    #[test]
    fn what_watching_cost_is_that_of_the_layer_that_is_named() {
        let seen = [probe(Layer::Ebpf, 40), probe(Layer::Proc, 8), probe(Layer::Proc, 0)];
        let watched = WatchSummary::of(seen.iter()).unwrap();
        let (layer, overhead) = (watched.layer, watched.overhead);
        assert_eq!((layer, overhead, watched.lost), (Layer::Proc, Some(0.05), 3));
        assert_eq!(WatchSummary::of(seen[..1].iter()).unwrap().overhead, Some(0.5));
    }
}
