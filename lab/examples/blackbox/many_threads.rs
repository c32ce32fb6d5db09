//! Instances with several processing threads. The default profile of BlackBox, the default
//! strategy and other ways to place 24 threads on the simulator.

use super::gains::OtherWays;
use super::{DECIDING, JUDGING, Study, highest_of};
use pinwise_measure::{Setting, Testbed};
use pinwise_placement::{Budget, Outcome, PlacementQuestion, StrategyName};
use pinwise_prediction::ThreadKinds;
use pinwise_topology::{Assignment, PerContext, Space};
use std::error::Error;

/// Processing threads of an instance, and instances: 24 threads each time.
pub(crate) const SHAPES: [(usize, usize); 3] = [(2, 6), (4, 4), (10, 2)];
/// The most that BlackBox measures. It never needs as many.
const MOST: u64 = 5000;
/// What the default strategy measures. It may end earlier: a gap of nothing does not let it.
const BUDGET: u64 = 600;

pub(crate) const HEADING: &str = "| program | instances | of an instance: threads | assignments \
    alone | BlackBox: experiments alone | with others | measured / predicted | best known, \
    M packets/s | BlackBox loses | measurements | default loses | measurements | naive: mean loss \
    | best of 300 | balanced: mean loss | best of 300 | modelled OS: mean loss \
    |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

impl Study {
    /// The row of some instances of this pipeline.
    pub(crate) fn many_threads(&self, instances: usize) -> Result<String, Box<dyn Error>> {
        let threads = ThreadKinds::new(self.testbed(instances, 1)?.workload()).threads();
        let space = Space::new(self.tree.clone(), threads, PerContext::AtMost(1))?;
        let predicted = self.campaign(instances, StrategyName::Blackbox, MOST)?;
        let searched = self.campaign(instances, StrategyName::Auto, BUDGET)?;
        let forecast = predicted.forecast.as_ref().ok_or("BlackBox predicted nothing")?;
        let announced = |outcome: &Outcome| {
            let best = outcome.best.as_ref().ok_or("a strategy announced nothing")?;
            Ok::<_, Box<dyn Error>>(best.assignment.leaves().to_vec())
        };
        let (ours, defaults) = (announced(&predicted)?, announced(&searched)?);

        let OtherWays { naive, even, system } = self.other_ways(&space, instances)?;

        // The best few draws are decided in windows of their own. What is left is judged in others.
        let pinned = |leaves: &Vec<u32>| Setting::Pinned(Assignment::new(leaves.clone()));
        let mut judged = vec![ours, defaults];
        for drawn in [&naive, &even] {
            let few = highest_of(drawn.clone())?;
            let settings = few.iter().map(pinned).collect();
            let values = self.measure(instances, 74, settings, DECIDING)?.into_iter();
            let best = few.into_iter().zip(values).max_by(|a, b| a.1.total_cmp(&b.1));
            judged.extend(best.map(|(leaves, _)| leaves));
        }
        let settings = judged.iter().map(pinned).collect();
        let judged = self.measure(instances, 75, settings, JUDGING)?;
        let known = judged.iter().copied().fold(f64::MIN, f64::max);
        let loss = |value: f64| super::gains::percent(1.0 - value / known);
        let mean_loss = |values: &[(String, f64)]| {
            loss(values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
        };
        let ratio = forecast.ratio();
        let cells = [
            self.pipeline.to_string(),
            instances.to_string(),
            (threads / instances).to_string(),
            forecast.sampled.first().cloned().unwrap_or_else(|| forecast.base.to_string()),
            forecast.base.to_string(),
            format!("{} of {}", forecast.measured, forecast.slowdown),
            ratio.map_or("-".into(), |(mean, spread)| format!("{mean:.3} ± {spread:.3}")),
            format!("{:.3}", known / 1e6),
            loss(judged[0]),
            predicted.cost.measurements.to_string(),
            loss(judged[1]),
            searched.cost.measurements.to_string(),
            mean_loss(&naive),
            loss(judged[2]),
            mean_loss(&even),
            loss(judged[3]),
            mean_loss(&system),
        ];
        Ok(format!("| {} |", cells.join(" | ")))
    }

    /// The outcome of `strategy`. It is stored, so that it is not searched again.
    fn campaign(
        &self,
        instances: usize,
        strategy: StrategyName,
        budget: u64,
    ) -> Result<Outcome, Box<dyn Error>> {
        let name = serde_json::to_value(strategy)?;
        let name = name.as_str().unwrap_or_default();
        let path = self.stored(&format!("{name}.{instances}.json"));
        if path.exists() {
            return Ok(serde_json::from_str(&std::fs::read_to_string(&path)?)?);
        }
        let mut testbed = self.testbed(instances, 101)?;
        let question = PlacementQuestion {
            within: 1e-9,
            per_context: Some(1),
            ..PlacementQuestion::new(strategy, Budget::Measurements(budget))
        };
        let outcome = pinwise_lab::searched(question, &self.tree, &mut testbed)?;
        std::fs::write(&path, serde_json::to_string(&outcome)?)?;
        Ok(outcome)
    }
}
