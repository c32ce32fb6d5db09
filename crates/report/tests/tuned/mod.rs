//! A search for number and placement as it may end: pinning four threads is the best.

use crate::synthetic::{Plot, Synthetic, campaign};
use pinwise_campaign::{CampaignId, CampaignInfo, Kind, Parent};
use pinwise_jobs::ShownProbe;
use pinwise_measure::{Measure, MemoryPolicy, Probe, Progress, SchedulingProfile, Unit};
use pinwise_placement::{ComparedRounds, LastComparisonVerdict, TunePart, Way};
use pinwise_present::{Files, TuneVerdict, tune_next};
use pinwise_report::{PlacedNumber, ThreadsSearch, TriedPolicy, TuneSearch, tune_page};
use pinwise_topology::Policy;
use std::path::Path;
use std::time::Duration;

/// The search, and the campaign that one of its parts is.
pub(crate) struct Tuned {
    pub(crate) campaign: Synthetic,
    part: CampaignInfo,
    rounds: ComparedRounds,
}

/// Of a program of this name.
pub(crate) fn tuned(name: &str) -> Tuned {
    let mut campaign = campaign(&Plot::default());
    campaign.info.new.kind = Kind::Tune;
    campaign.info.new.workload.name = name.into();
    let mut part = campaign.info.clone();
    part.id = CampaignId(8);
    part.new.kind = Kind::Place;
    part.new.parent = Some(Parent::new(campaign.info.id, &TunePart::Place { n: 4, round: 1 }));
    let mut rounds = ComparedRounds::new(vec![Way::Default, Way::Number, Way::Placed], 0.95);
    for round in 0..6 {
        let off = 1.0 + 0.004 * f64::from(round % 3);
        rounds.take(vec![Some(1e6 * off), Some(1.2e6), Some(1.6e6 * off)]);
    }
    Tuned { campaign, part, rounds }
}

impl Tuned {
    /// What follows.
    pub(crate) fn verdict(&self) -> TuneVerdict<'_> {
        TuneVerdict {
            rounds: &self.rounds,
            choice: LastComparisonVerdict::Placed,
            within: 0.01,
            budget: Duration::from_secs(60),
            n: 4,
            default: Some(8),
            unplaced: None,
            others: None,
            cut_short: None,
        }
    }

    /// Its page.
    pub(crate) fn page(&self) -> String {
        let unit = Unit::rate("packets/s");
        let name = &self.campaign.info.new.workload.name;
        let probes = [probe(4, 1.2e6), probe(2, 0.7e6), probe(8, 1e6)];
        let number = ThreadsSearch {
            verdict: "n = 4 (3-4).".into(),
            ended: None,
            open: None,
            compared: None,
            chosen: Some(4),
            unit: unit.clone(),
            probes: &probes,
            notes: Vec::new(),
        };
        let tried = |n: u32, policy: Option<Policy>, performance: f64| TriedPolicy {
            n,
            policy,
            memory: MemoryPolicy::Leave,
            threads: n as usize,
            performance,
        };
        let tried = vec![
            tried(4, None, 1.2e6),
            tried(4, Some(Policy::Compact), 1.5e6),
            tried(4, Some(Policy::Cores), 1.1e6),
            tried(8, Some(Policy::Scatter), 0.9e6),
        ];
        let search = TuneSearch {
            compared: Some((self.verdict(), &unit)),
            notes: vec![format!("A note about {name}.")],
            number: Some(number),
            tried: (tried, unit.clone()),
            placed: vec![
                PlacedNumber { n: 4, search: Ok((&self.part, &self.campaign.outcome)) },
                PlacedNumber { n: 2, search: Err("it has ended".into()) },
            ],
            parts: std::slice::from_ref(&self.part),
            next: Some(tune_next(Path::new("tuned.toml"), Some("encoder {n}"), &[])),
        };
        tune_page(&self.campaign.info, None, &search, Files::default()).unwrap()
    }
}

/// A probe by a metric.
pub(crate) fn probe(parameter: u32, rate: f64) -> ShownProbe {
    ShownProbe::from(Probe {
        parameter,
        threads: parameter + 1,
        profile: SchedulingProfile { lock: 12.5, ..SchedulingProfile::default() },
        progress: Progress { rate, error: None, measure: Measure::Metric },
        cost: Duration::from_millis(100),
    })
}
