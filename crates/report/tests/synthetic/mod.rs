//! Campaigns made up for tests: real types, invented performances, the same each time.

// Each test binary uses a part of this.
#![allow(dead_code)]

use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Kind, NewCampaign, Purpose, Record, Trial,
};
use pinwise_characterization::StoredCharacterization;
use pinwise_evt::{Method, Options, Sample, estimate};
use pinwise_measure::{Effort, MeasureError, Measurement, Retry, Setting, Thread, Unit, Workload};
use pinwise_placement::{
    Bound, BoundMethod, BoundNote, Budget, Drift, Estimate, Outcome, PlacedAssignment,
    PlacementQuestion, PlacementVerdict, SearchCost, StopReason, StrategyName, StrategyReason,
};
use pinwise_present::Files;
use pinwise_report::{ReportError, placement_page};
use pinwise_topology::{Alike, Assignment, Machine, Random};
use std::time::Duration;

/// A campaign, its records and its outcome.
pub(crate) struct Synthetic {
    pub(crate) info: CampaignInfo,
    pub(crate) question: PlacementQuestion,
    pub(crate) records: Vec<Record>,
    pub(crate) outcome: Outcome,
}

impl Synthetic {
    /// Its page.
    pub(crate) fn page(
        &self,
        files: Files<'_>,
        characterization: Option<&StoredCharacterization>,
    ) -> Result<String, ReportError> {
        let Self { info, question, records, outcome } = self;
        placement_page(info, question, records, outcome, files, characterization)
    }
}

/// What to invent.
pub(crate) struct Plot<'a> {
    pub(crate) machine: &'a str,
    pub(crate) instances: usize,
    pub(crate) samples: usize,
    pub(crate) unit: Unit,
    /// The end of the distribution of performances.
    pub(crate) optimum: f64,
    pub(crate) method: Method,
    pub(crate) ties: usize,
}

impl Default for Plot<'_> {
    fn default() -> Self {
        Self {
            machine: "package:2 l3:1 core:4 pu:2",
            instances: 2,
            samples: 1000,
            unit: Unit::rate("packets/s"),
            optimum: 1.76e6,
            method: Method::Bayes,
            ties: 3,
        }
    }
}

/// Three-stage pipelines whose performances have a tail of shape -0.3 that ends at the optimum.
pub(crate) fn campaign(plot: &Plot<'_>) -> Synthetic {
    let machine = Machine::from_shape(plot.machine).unwrap();
    let contexts = machine.contexts.len();
    let threads: Vec<Thread> = (0..plot.instances)
        .flat_map(|instance| {
            ["R", "P", "T"]
                .map(|role| Thread::new(format!("ipfwd{instance}-{role}"), role, instance))
        })
        .collect();
    let mut maker = Maker { random: Random::new(7), records: Vec::new(), elapsed: Duration::ZERO };
    let draw = |random: &mut Random| {
        let mut leaves: Vec<u32> = (0..contexts as u32).collect();
        random.shuffle(&mut leaves);
        Assignment::new(leaves.into_iter().cycle().take(threads.len()).collect())
    };
    let quality = |random: &mut Random| plot.optimum * (1.0 - 0.4 * random.unit().powf(0.3));
    let reference = draw(&mut maker.random);
    let mut sampled: Vec<(Assignment, f64)> = Vec::new();
    for turn in 0..plot.samples {
        if turn % 20 == 0 {
            let bistable = if maker.random.unit() < 0.3 { 0.66 } else { 0.79 };
            maker.measure(Setting::Unpinned, Purpose::Baseline, plot.optimum * bistable, 0.02);
            maker.measure(
                Setting::Pinned(reference.clone()),
                Purpose::Reference,
                plot.optimum * 0.83,
                0.006,
            );
        }
        if turn % 97 == 96 {
            maker.fail(Setting::Pinned(draw(&mut maker.random.clone())));
        }
        let assignment = draw(&mut maker.random);
        let true_value = quality(&mut maker.random);
        let value =
            maker.measure(Setting::Pinned(assignment.clone()), Purpose::Sample, true_value, 0.002);
        sampled.push((assignment, value));
    }
    sampled.sort_by(|a, b| b.1.total_cmp(&a.1));
    let finalists: Vec<(Assignment, f64)> = sampled.iter().take(plot.ties + 1).cloned().collect();
    let mut fresh: Vec<Vec<f64>> = vec![Vec::new(); finalists.len()];
    let mut unpinned = Vec::new();
    for turn in 0..12 {
        for ((assignment, _), values) in finalists.iter().zip(&mut fresh) {
            let setting = Setting::Pinned(assignment.clone());
            values.push(maker.measure(setting, Purpose::Final, finalists[0].1 * 0.997, 0.004));
        }
        let bistable = if turn % 3 == 0 { 0.66 } else { 0.79 };
        unpinned.push(maker.measure(
            Setting::Unpinned,
            Purpose::Final,
            plot.optimum * bistable,
            0.02,
        ));
    }
    let best = |index: usize| PlacedAssignment {
        assignment: finalists[index].0.clone(),
        performance: mean(&fresh[index]),
    };
    let baseline = mean(&unpinned);
    let first = best(0).performance;
    let (Maker { records, elapsed, .. }, failed) = (maker, (plot.samples / 97) as u64);
    let outcome = Outcome {
        verdict: PlacementVerdict::Pin,
        unit: plot.unit.clone(),
        best: Some(best(0)),
        baseline: Some(baseline),
        so_far: None,
        as_found: None,
        gain: Some((
            first.mean / baseline.mean - 1.0,
            first.low / baseline.high - 1.0,
            first.high / baseline.low - 1.0,
        )),
        ties: (1..finalists.len()).map(best).collect(),
        bound: bound(&sampled, plot.method),
        assignments: "592573".to_owned(),
        drift: Some(Drift { change: -0.002, significant: false, n: plot.samples.div_ceil(20) }),
        notes: Vec::new(),
        cost: SearchCost {
            measurements: records.len() as u64,
            failed,
            classes: plot.samples as u64,
            time: elapsed,
            stalled: Duration::ZERO,
        },
        failure: records
            .iter()
            .rev()
            .find_map(|record| Some(record.outcome.as_ref().err()?.message.clone().into())),
        strategy: vec![StrategyReason::RandomAsked { assignments: "592573".to_owned() }],
        stopped_because: vec![StopReason::BudgetUsed { another_seconds: None, left_seconds: None }],
        memory: None,
        forecast: None,
    };
    let question = PlacementQuestion {
        per_context: Some(1),
        start: 100,
        method: plot.method,
        seed: 42,
        ..PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(plot.samples as u64))
    };
    let command = [
        "pinwise",
        "place",
        "--metric",
        r"stdout:Tx-pps: +(\d+)",
        "--",
        "./ipfwd",
        "--pipelines",
        "2",
    ];
    let info = CampaignInfo {
        id: CampaignId(12),
        started: 1_795_231_081,
        new: NewCampaign {
            kind: Kind::Place,
            parent: None,
            command: command.map(str::to_owned).to_vec(),
            machine,
            alike: Alike::ByStructure,
            workload: Workload { name: "ipfwd".to_owned(), threads },
            unit: plot.unit.clone(),
            simulated: false,
            question: serde_json::to_value(&question).unwrap(),
            seed: 42,
        },
        state: CampaignState::Finished,
        running: false,
        records: records.len() as u64,
        conclusion: None,
    };
    Synthetic { info, question, records, outcome }
}

struct Maker {
    random: Random,
    records: Vec<Record>,
    elapsed: Duration,
}

impl Maker {
    /// `value` with noise of this relative spread.
    fn measure(&mut self, setting: Setting, purpose: Purpose, value: f64, spread: f64) -> f64 {
        // Twelve uniforms make a normal deviate to the eye.
        let normal: f64 = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
        let performance = value * (1.0 + spread * normal);
        self.record(setting, purpose, Ok(Measurement::new(performance, Duration::from_millis(40))));
        performance
    }

    fn fail(&mut self, setting: Setting) {
        let error = MeasureError::new(
            Retry::Same,
            "no packet within the window of 40 ms: the target was idle",
        );
        self.record(setting, Purpose::Sample, Err(error));
    }

    fn record(
        &mut self,
        setting: Setting,
        purpose: Purpose,
        outcome: Result<Measurement, MeasureError>,
    ) {
        self.elapsed += Duration::from_millis(52);
        let trial = Trial { setting, purpose, effort: Effort::default() };
        self.records.push(Record {
            number: self.records.len() as u64,
            trial,
            outcome,
            elapsed: self.elapsed,
        });
    }
}

/// Mean and twice its standard error.
pub(crate) fn mean(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread =
        (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = 2.0 * spread / n.sqrt();
    Estimate {
        mean,
        low: mean - half,
        high: mean + half,
        n: values.len(),
        confidence: 0.95,
        spread,
    }
}

fn bound(sampled: &[(Assignment, f64)], method: Method) -> Bound {
    let sample = Sample::new(sampled.iter().map(|pair| pair.1));
    let options = Options { method, ..Options::default() };
    let empty = Bound {
        upb: None,
        upb_low: None,
        upb_high: None,
        gap: None,
        gap_high: None,
        confidence: 0.95,
        method: method.into(),
        n: sampled.len(),
        notes: Vec::new(),
    };
    match estimate(&sample, &options) {
        Ok(bound) => Bound {
            upb: Some(bound.upb),
            upb_low: Some(bound.upb_low),
            upb_high: bound.upb_high,
            gap: bound.gap,
            gap_high: bound.gap_high,
            notes: bound.diagnostics.iter().copied().map(BoundNote::Diagnostic).collect(),
            ..empty
        },
        Err(refusal) => Bound { notes: vec![refusal.into()], ..empty },
    }
}

/// Every assignment measured: nothing is estimated.
pub(crate) fn exact() -> Synthetic {
    let mut campaign = campaign(&Plot {
        machine: "core:3 pu:2",
        instances: 1,
        samples: 60,
        ties: 0,
        ..Plot::default()
    });
    let bound = &mut campaign.outcome.bound;
    (bound.method, bound.upb, bound.gap) = (BoundMethod::Exact, None, None);
    bound.notes = vec![BoundNote::AllMeasured];
    campaign.outcome.assignments = "120".to_owned();
    campaign
}

/// Text that a program under test controls, as an attacker would choose it.
pub(crate) const HOSTILE: &str = "</script><script>window.hostile=1</script><img src=x \
    onerror='window.hostile=1'>\"'&<!--\u{2028}";

/// Hostile text in every place that the program under test, the machine or the user can fill.
pub(crate) fn hostile() -> Synthetic {
    let mut campaign = campaign(&Plot { unit: Unit::rate(HOSTILE), ..Plot::default() });
    campaign.info.new.workload.name = HOSTILE.to_owned();
    campaign.info.new.machine.name = HOSTILE.to_owned();
    campaign.info.new.command.push(HOSTILE.to_owned());
    for thread in &mut campaign.info.new.workload.threads {
        thread.name = format!("{HOSTILE}{}", thread.name);
        thread.role.push_str(HOSTILE);
    }
    for record in &mut campaign.records {
        if let Err(error) = &mut record.outcome {
            error.message = HOSTILE.to_owned();
        }
    }
    campaign.outcome.bound.notes.push(HOSTILE.to_owned().into());
    campaign.outcome.strategy = vec![HOSTILE.to_owned().into()];
    campaign.outcome.stopped_because = vec![HOSTILE.to_owned().into()];
    campaign
}

/// What a reader without script sees: no tags, no style, no script.
pub(crate) fn text(html: &str) -> String {
    let body = html.split_once("<body>").unwrap().1.split_once("<script").unwrap().0;
    let mut text = String::new();
    let mut tag = false;
    for c in body.chars() {
        match c {
            '<' => tag = true,
            '>' => (tag, text) = (false, text + " "),
            c if !tag => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
