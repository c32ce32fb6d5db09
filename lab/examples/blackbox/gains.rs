//! What BlackBox gains over other ways to place threads, and what its selection phase does: figures
//! 7, 8 and 9 of the paper.

use super::{DECIDING, JUDGING, Performances, RANKED, STEPS, Study, Tables, highest_of};
use pinwise_measure::{Setting, Testbed};
use pinwise_prediction::{BlackBox, Predicted, ThreadKinds};
use pinwise_topology::{Assignment, PerContext, Random, Space, balanced};
use std::error::Error;

/// Instances of three threads: 6, 9, 12, 18 and 24 threads.
pub(crate) const INSTANCES: [usize; 5] = [2, 3, 4, 6, 8];
/// Assignments that each other way draws.
const DRAWS: usize = 300;
/// The most that the selection phase measures.
const MOST: usize = 10;

pub(crate) const HEADING: &str = "| program | threads | BlackBox, M packets/s | naive: mean loss | \
    worst | balanced: mean loss | worst | modelled OS: mean loss | worst \
    |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|";

/// Assignments by name, with the performance of each.
pub(crate) struct OtherWays {
    /// At random.
    pub(crate) naive: Vec<(String, f64)>,
    /// Even over cores and pipes.
    pub(crate) even: Vec<(String, f64)>,
    /// As the modelled operating system places threads, without their assignments.
    pub(crate) system: Vec<(String, f64)>,
}

/// Rows of the table of losses by the number of assignments that are measured.
pub(crate) struct Selection(pub(crate) Vec<String>);

impl Selection {
    pub(crate) fn heading() -> String {
        let numbers: Vec<String> = (1..=MOST).map(|number| number.to_string()).collect();
        let rule = "--:|".repeat(MOST);
        format!("| program | threads | rule | {} |\n|---|--:|---|{rule}", numbers.join(" | "))
    }
}

impl Study {
    /// The row of gains of some instances, and the rows of their selection phase.
    pub(crate) fn gains(
        &self,
        tables: &Tables,
        instances: usize,
    ) -> Result<(String, Selection), Box<dyn Error>> {
        let thread_kinds = ThreadKinds::new(self.testbed(instances, 1)?.workload());
        let threads = thread_kinds.threads();
        let space = Space::new(self.tree.clone(), threads, PerContext::AtMost(1))?;
        let blackbox = self.profile(tables, &space, &thread_kinds, 1.0, 1)?.blackbox();
        let ranked = |blackbox: &BlackBox| {
            let mut random = Random::new(9);
            blackbox
                .optima(&space, RANKED, &mut random, &mut |progress| progress.steps < STEPS)
                .ranked
        };
        let leaves = |one: &Predicted| one.assignment.leaves().to_vec();
        let (found, spread) = (ranked(&blackbox), ranked(&blackbox.spread()));
        let top: Vec<Vec<u32>> = found.iter().take(MOST).map(leaves).collect();
        let varied = blackbox.selected(&space, &found, &spread, MOST);
        let varied: Vec<Vec<u32>> = varied.iter().map(leaves).collect();

        let OtherWays { naive, even, system } = self.other_ways(&space, instances)?;

        let pinned = |leaves: &Vec<u32>| Setting::Pinned(Assignment::new(leaves.clone()));
        let mut candidates: Vec<Vec<u32>> = top.iter().chain(&varied).cloned().collect();
        candidates.sort_unstable();
        candidates.dedup();
        let measured = |candidates: &[Vec<u32>], seed, windows| {
            let settings = candidates.iter().map(pinned).collect();
            let values = self.measure(instances, seed, settings, windows)?;
            Ok::<Performances, Box<dyn Error>>(candidates.iter().cloned().zip(values).collect())
        };
        let selecting = measured(&candidates, 74, DECIDING)?;
        candidates.extend(highest_of(naive.clone())?);
        candidates.extend(highest_of(even.clone())?);
        if instances == 2 {
            let known = self.enumerated(&space)?.known;
            let named = known.into_iter().map(|(leaves, value)| (format!("{leaves:?}"), value));
            candidates.extend(highest_of(named.collect())?);
        }
        let judged = measured(&candidates, 75, JUDGING)?;
        let known = judged.values().copied().fold(f64::MIN, f64::max);
        // The best of the first N by the windows of the selection phase, in other windows.
        let after = |chosen: &[Vec<u32>], number: usize| {
            let first = chosen.iter().take(number);
            let best = first.max_by(|a, b| selecting[*a].total_cmp(&selecting[*b]));
            best.map_or(f64::NAN, |best| judged[best])
        };
        let name = self.pipeline;
        let rows = [("top", &top), ("varied", &varied)].map(|(rule, chosen)| {
            let losses: Vec<String> =
                (1..=MOST).map(|number| percent(1.0 - after(chosen, number) / known)).collect();
            format!("| {name} | {threads} | {rule} | {} |", losses.join(" | "))
        });
        let ours = after(&varied, super::TOP);
        let losses = [naive, even, system].map(|values| {
            let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let worst = values.iter().copied().fold(f64::MAX, f64::min);
            [mean, worst].map(|value| percent(1.0 - value / ours)).join(" | ")
        });
        let row = format!("| {name} | {threads} | {:.3} | {} |", ours / 1e6, losses.join(" | "));
        Ok((row, Selection(rows.to_vec())))
    }

    /// Draws of each other way, by name, with one window of each.
    pub(crate) fn other_ways(
        &self,
        space: &Space,
        instances: usize,
    ) -> Result<OtherWays, Box<dyn Error>> {
        let threads = ThreadKinds::new(self.testbed(instances, 1)?.workload()).threads();
        let drawn = |what: &str, seed: u64, draw: &dyn Fn(&mut Random) -> Assignment| {
            self.kept(&format!("{what}.{instances}"), || {
                let mut random = Random::new(seed);
                let all: Vec<Assignment> = (0..DRAWS).map(|_| draw(&mut random)).collect();
                let settings = all.iter().cloned().map(Setting::Pinned).collect();
                let names = all.iter().map(|one| format!("{:?}", one.leaves()));
                Ok(names.zip(self.measure(instances, seed, settings, 1.0)?).collect())
            })
        };
        Ok(OtherWays {
            naive: drawn("naive", 71, &|random| space.sample(random))?,
            even: drawn("balanced", 72, &|random| {
                space.canonical(&balanced(&self.tree, threads, random))
            })?,
            system: self.kept(&format!("unpinned.{instances}"), || {
                let windows = self.measure(instances, 73, vec![Setting::Unpinned; DRAWS], 1.0)?;
                Ok(windows.into_iter().map(|value| ("unpinned".to_owned(), value)).collect())
            })?,
        })
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
