//! How ways of placing compare: performance, loss against the best known, what each spent, what it claimed and whether that holds.

use crate::Estimate;
use crate::lineup::{Claim, Entry, Lineup, parts, worst};
use crate::statistics::{Ratio, estimate, mean, ratio};
use pinwise_campaign::{CampaignId, Record};
use pinwise_testbed::{Setting, Unit};
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Windows by setting, in the order of rounds; `None` for one that failed.
type Windows<'a> = BTreeMap<&'a Setting, Vec<Option<f64>>>;

/// A claim, and what measuring everything beside one another says about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What was claimed.
    pub claim: Claim,
    /// The gap claimed is within what was asked for.
    pub certified: bool,
    /// The best known is above the bound, with its whole interval: the claim is false. Otherwise it stands so far.
    pub refuted: bool,
}

/// One line of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The way of placing: `random, worst of 50`.
    pub name: String,
    /// The one assignment it stands for; `None` for the unpinned program and for means over draws.
    pub assignment: Option<Assignment>,
    /// Its performance, on windows that nothing was chosen by.
    pub performance: Estimate,
    /// 1 - performance / that of the best known, with its interval: (estimate, low, high). The interval is paired by round.
    pub loss: (f64, f64, f64),
    /// Measurements spent on coming to it, those of this comparison left out.
    pub spent: u64,
    /// The campaign in which it searched.
    pub campaign: Option<CampaignId>,
    /// What it claimed.
    pub claim: Option<Judged>,
}

/// What the measurements of a [`Lineup`] show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What performance is counted in.
    pub unit: Unit,
    /// In the order of the lineup; a draw has two, its mean and its worst.
    pub rows: Vec<Row>,
    /// The row of the best known assignment; `None` where nothing could be measured.
    pub best: Option<usize>,
    /// Ways that are not in it: name and reason.
    pub left_out: Vec<(String, String)>,
    /// Of every interval.
    pub confidence: f64,
    /// A claim of a gap up to this is a certificate.
    pub within: f64,
}

impl Comparison {
    /// From the records of a [`crate::Judge`] of `lineup`: a pure function. Ways that could not be measured are left out, with the reason.
    pub fn new(lineup: &Lineup, unit: &Unit, records: &[Record]) -> Self {
        let (first, later) = parts(lineup, records);
        let drawn: Vec<(&Setting, f64)> =
            first.iter().filter_map(|(setting, value)| Some((*setting, (*value)?))).collect();
        let mut rounds: Windows = BTreeMap::new();
        for (setting, value) in later {
            rounds.entry(setting).or_default().push(value);
        }
        let best = best_known(&rounds);
        let known =
            best.as_ref().and_then(|best| Some((rounds.get(best)?, fresh(rounds.get(best)?, lineup.confidence)?)));
        let mut comparison = Self {
            unit: unit.clone(),
            rows: Vec::new(),
            best: None,
            left_out: lineup.left_out.clone(),
            confidence: lineup.confidence,
            within: lineup.within,
        };
        for contender in &lineup.contenders {
            let mut add = |name: String, assignment: Option<Assignment>, setting: Option<&Setting>, draws: &[f64]| {
                let windows = setting.and_then(|setting| rounds.get(setting));
                let performance = match windows {
                    Some(windows) if draws.is_empty() => fresh(windows, lineup.confidence),
                    _ => estimate(draws, lineup.confidence),
                };
                let (Some(performance), Some((best_windows, best_performance))) = (performance, &known) else {
                    comparison.left_out.push((name, "it could not be measured".to_owned()));
                    return;
                };
                let paired =
                    windows.filter(|_| draws.is_empty()).and_then(|windows| against(windows, best_windows, lineup));
                let loss = match paired {
                    Some(ratio) => (1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low),
                    None => {
                        let share = |value: f64| 1.0 - value / best_performance.mean;
                        (share(performance.mean), share(performance.high), share(performance.low))
                    }
                };
                let claim = contender.claim.filter(|_| matches!(contender.entry, Entry::Announced(_))).map(|claim| {
                    Judged { claim, certified: claim.gap <= lineup.within, refuted: best_performance.low > claim.bound }
                });
                if setting.is_some() && setting == best.as_ref() && comparison.best.is_none() {
                    comparison.best = Some(comparison.rows.len());
                }
                let (spent, campaign) = (contender.spent, contender.campaign);
                comparison.rows.push(Row { name, assignment, performance, loss, spent, campaign, claim });
            };
            match &contender.entry {
                Entry::Unpinned => {
                    let unpinned =
                        drawn.iter().filter(|(setting, _)| **setting == Setting::Unpinned).map(|(_, value)| *value);
                    let later = rounds.get(&Setting::Unpinned).into_iter().flatten().flatten().copied();
                    let all: Vec<f64> = unpinned.chain(later).collect();
                    add(contender.name.clone(), None, None, &all);
                }
                Entry::Announced(assignment) => {
                    let setting = Setting::Pinned(assignment.clone());
                    add(contender.name.clone(), Some(assignment.clone()), Some(&setting), &[]);
                }
                Entry::Drawn(assignments) => {
                    let draws = values(assignments, &drawn);
                    let n = assignments.len();
                    add(format!("{}, mean of {n}", contender.name), None, None, &draws);
                    if let Some(worst) = worst(assignments, &drawn) {
                        let setting = Setting::Pinned(worst.clone());
                        add(format!("{}, worst of {n}", contender.name), Some(worst), Some(&setting), &[]);
                    }
                }
            }
        }
        comparison
    }

    /// The row of the best known assignment.
    pub fn best(&self) -> Option<&Row> {
        self.rows.get(self.best?)
    }
}

/// One value for each draw. One assignment may be drawn more than once, and has a window for each time.
fn values(assignments: &[Assignment], drawn: &[(&Setting, f64)]) -> Vec<f64> {
    let mut left = drawn.to_vec();
    let take = |assignment: &Assignment| {
        let own = |setting: &Setting| matches!(setting, Setting::Pinned(other) if other == assignment);
        let index = left.iter().position(|(setting, _)| own(setting))?;
        Some(left.remove(index).1)
    };
    assignments.iter().filter_map(take).collect()
}

/// The pinned setting with the highest mean over the rounds.
fn best_known(rounds: &Windows<'_>) -> Option<Setting> {
    let height = |windows: &Vec<Option<f64>>| {
        let windows: Vec<f64> = windows.iter().flatten().copied().collect();
        (!windows.is_empty()).then(|| mean(&windows))
    };
    let pinned = rounds.iter().filter(|(setting, _)| ***setting != Setting::Unpinned);
    let measured = pinned.filter_map(|(setting, windows)| Some((*setting, height(windows)?)));
    measured.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(setting, _)| setting.clone())
}

fn fresh(windows: &[Option<f64>], confidence: f64) -> Option<Estimate> {
    estimate(&windows.iter().flatten().copied().collect::<Vec<_>>(), confidence)
}

/// Round by round, where both could be measured.
fn against(windows: &[Option<f64>], best: &[Option<f64>], lineup: &Lineup) -> Option<Ratio> {
    let pairs: Vec<(f64, f64)> = windows.iter().zip(best).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    ratio(&pairs, 0.0, lineup.confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contender, Judge};
    use pinwise_campaign::{Step, Strategy};
    use pinwise_testbed::{MeasureError, Measurement, Retry};
    use std::time::Duration;

    fn contender(name: &str, entry: Entry, claim: Option<Claim>) -> Contender {
        Contender { name: name.into(), entry, spent: 7, campaign: None, claim }
    }

    fn on(leaf: u32) -> Assignment {
        Assignment::new(vec![leaf])
    }

    fn lineup() -> Lineup {
        let claim = |bound, gap| Some(Claim { bound, gap });
        Lineup {
            contenders: vec![
                contender("unpinned", Entry::Unpinned, None),
                contender("random", Entry::Drawn(vec![on(1), on(2), on(2), on(3)]), None),
                contender("low claim", Entry::Announced(on(4)), claim(102.0, 0.02)),
                contender("wide claim", Entry::Announced(on(5)), claim(130.0, 0.2)),
                contender("cannot run", Entry::Announced(on(9)), None),
            ],
            left_out: vec![("other".into(), "no reason".into())],
            rounds: 4,
            confidence: 0.95,
            within: 0.025,
            seed: 3,
        }
    }

    /// What is pinned on leaf l does 10, 20, 30, 100, 110 from leaf 1 on, in rounds that are all a little different; nothing runs on leaf 9.
    fn measure(lineup: &Lineup) -> Vec<Record> {
        let mut judge = Judge::new(lineup);
        let mut records: Vec<Record> = Vec::new();
        while let Step::Measure(trial) = judge.step(&records) {
            let weather = 1.0 + 0.001 * (records.len() % 5) as f64;
            let outcome = match &trial.setting {
                Setting::Unpinned => Ok(50.0),
                Setting::Profile(_) => unreachable!("no lineup has partial settings"),
                Setting::Pinned(assignment) if assignment.leaf(0) == 9 => Err(MeasureError::new(Retry::Other, "no")),
                Setting::Pinned(assignment) => Ok([0.0, 10.0, 20.0, 30.0, 100.0, 110.0][assignment.leaf(0)] * weather),
            };
            let outcome =
                outcome.map(|performance| Measurement { performance, duration: Duration::ZERO, spread: None });
            records.push(Record { number: records.len() as u64, trial, outcome, elapsed: Duration::ZERO });
        }
        records
    }

    #[test]
    fn every_way_is_measured_beside_the_others_and_its_claim_is_judged() {
        let (lineup, unit) = (lineup(), Unit::rate("1/s"));
        let records = measure(&lineup);
        // Four draws, as many unpinned windows; then rounds of unpinned, the worst draw and three announced, one of which fails once.
        assert_eq!(records.len(), 4 + 4 + 4 * 4 + 1);
        let comparison = Comparison::new(&lineup, &unit, &records);
        let names: Vec<&str> = comparison.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["unpinned", "random, mean of 4", "random, worst of 4", "low claim", "wide claim"]);
        assert_eq!(comparison.best, Some(4));
        assert_eq!(comparison.best().unwrap().loss.0, 0.0);
        assert_eq!(comparison.rows[0].performance.n, 8);
        assert!((comparison.rows[1].performance.mean - 20.0).abs() < 0.1);
        assert_eq!(comparison.rows[2].assignment, Some(on(1)));
        assert!((comparison.rows[3].loss.0 - 1.0 / 11.0).abs() < 0.01);
        let judged = |row: usize| comparison.rows[row].claim.unwrap();
        assert!(judged(3).certified && judged(3).refuted);
        assert!(!judged(4).certified && !judged(4).refuted);
        assert_eq!(comparison.left_out.len(), 2);
    }

    #[test]
    fn a_judge_goes_on_where_it_was_interrupted() {
        let lineup = lineup();
        let records = measure(&lineup);
        let mut judge = Judge::new(&lineup);
        for (done, record) in records.iter().enumerate() {
            assert_eq!(judge.step(&records[..done]), Step::Measure(record.trial.clone()));
        }
        assert!(matches!(judge.step(&records), Step::Stop(_)));
        // Half of it compares what there is.
        let half = Comparison::new(&lineup, &Unit::rate("1/s"), &records[..records.len() / 2]);
        assert!(half.best.is_some());
        assert_eq!(Comparison::new(&lineup, &Unit::rate("1/s"), &[]).best, None);
    }
}
