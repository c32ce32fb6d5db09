//! How ways of placing compare: performance, loss against the best known, and cost. Also what each
//! claimed and whether that holds.

mod row;
mod verdict_rounds;

pub use row::{ClaimVerdict, ComparisonRow, JudgedClaim, Loss, WayStanding};

use crate::compare::strategy::{ComparisonStrategy, Round, WindowOwner};
use crate::compare::ways::{ComparedWays, Contender, LeftOut, LeftOutReason, WayResult};
use pinwise_campaign::Record;
use pinwise_measure::{Setting, Unit};
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};
use verdict_rounds::{VerdictRounds, judged};

/// The result of the measurements of a [`ComparedWays`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The unit of performance.
    pub unit: Unit,
    /// In the order of the ways; a draw has two, its mean and its worst. If the best known is
    /// a draw, it comes last.
    pub rows: Vec<ComparisonRow>,
    /// Ways that are not in it.
    pub left_out: Vec<LeftOut>,
    /// Rounds of fresh windows that were made.
    pub rounds: usize,
    /// The measurements before them, if there are no fresh windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BeforeRounds>,
    /// The confidence of every interval.
    pub confidence: f64,
    /// A claim of a gap up to this is a certificate.
    pub within: f64,
}

/// The measurements of a comparison before its rounds of fresh windows. They choose, and show no
/// loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeforeRounds {
    /// Windows.
    pub windows: usize,
    /// The way that leads in them; `None` before the first that chooses.
    pub leader: Option<LeadingWay>,
}

/// The way that leads before anything is decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeadingWay {
    /// Its name.
    pub name: String,
    /// Its mean.
    pub performance: f64,
}

impl BeforeRounds {
    fn of(strategy: &ComparisonStrategy, ways: &ComparedWays) -> Option<Self> {
        let windows = strategy.windows_before();
        let leader = strategy.leader().map(|(leader, performance)| {
            let leads = |way: &&Contender| way.entry == WayResult::Announced(leader.clone());
            let way = ways.contenders.iter().find(leads);
            let name = way.map_or("a draw", |way| &way.name).to_owned();
            LeadingWay { name, performance }
        });
        (windows > 0).then_some(Self { windows, leader })
    }
}

/// The question that a comparison left open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenComparison<'a> {
    /// May be as good as the best known, or lose more than what was asked for.
    pub rows: Vec<&'a ComparisonRow>,
    /// The most that one of them may lose.
    pub high: f64,
    /// Rounds after which the intervals would be as narrow as what was asked for, at the same
    /// noise.
    pub rounds: usize,
}

impl Comparison {
    /// From the records of a [`ComparisonStrategy`] of `ways`: a pure function. Ways that could not
    /// be measured are left out, with the reason.
    pub fn new(ways: &ComparedWays, unit: &Unit, records: &[Record]) -> Self {
        let strategy = ComparisonStrategy::replay(ways, records);
        let mut comparison = Self {
            unit: unit.clone(),
            rows: Vec::new(),
            left_out: ways.left_out.clone(),
            rounds: strategy.verdict().len(),
            before: None,
            confidence: ways.confidence,
            within: ways.within,
        };
        let chosen = strategy.chosen();
        let Some(best) =
            chosen.best.as_ref().map(|best| WindowOwner::Of(Setting::Pinned(best.clone())))
        else {
            comparison.before = BeforeRounds::of(&strategy, ways);
            return comparison;
        };
        let seats = strategy
            .verdict()
            .iter()
            .flat_map(Round::keys)
            .collect::<std::collections::BTreeSet<_>>()
            .len();
        let verdict = VerdictRounds {
            rounds: strategy.verdict(),
            best,
            ways,
            losses: seats.saturating_sub(1).max(1),
        };
        for (index, contender) in ways.contenders.iter().enumerate() {
            let mut add =
                |name: String, assignment: Option<&Assignment>, seat: WindowOwner| match verdict
                    .row(&seat)
                {
                    Some((performance, loss, standing)) => {
                        let claim = contender
                            .claim
                            .map(|claim| judged(claim, verdict.most(&seat), ways.within));
                        let assignment = assignment.cloned();
                        let (spent, campaign) = (contender.spent, contender.campaign);
                        comparison.rows.push(ComparisonRow {
                            name,
                            assignment,
                            performance,
                            loss,
                            standing,
                            spent,
                            campaign,
                            claim,
                        });
                    }
                    None => {
                        let reason = LeftOutReason::NotMeasured;
                        comparison.left_out.push(LeftOut { name, reason });
                    }
                };
            match &contender.entry {
                WayResult::Unpinned => {
                    add(contender.name.clone(), None, WindowOwner::Of(Setting::Unpinned))
                }
                WayResult::Announced(assignment) => {
                    let seat = WindowOwner::Of(Setting::Pinned(assignment.clone()));
                    add(contender.name.clone(), Some(assignment), seat);
                }
                WayResult::Drawn(assignments) => {
                    let n = assignments.len();
                    add(
                        format!("{}, mean of {n}", contender.name),
                        None,
                        WindowOwner::Draws(index),
                    );
                    if let Some(worst) = chosen.worst.get(&index) {
                        let seat = WindowOwner::Of(Setting::Pinned(worst.clone()));
                        add(format!("{}, worst of {n}", contender.name), Some(worst), seat);
                    }
                }
            }
        }
        comparison.add_best_draw(&verdict, chosen.best.as_ref());
        if comparison.best().is_none() {
            comparison.before = BeforeRounds::of(&strategy, ways);
        }
        comparison
    }

    /// The best known has a row, also if nobody announced it.
    fn add_best_draw(&mut self, verdict: &VerdictRounds<'_>, best: Option<&Assignment>) {
        let is_there = self.rows.iter().any(|row| row.standing == WayStanding::Best);
        let (Some(best), Some((performance, loss, standing)), false) =
            (best, verdict.row(&verdict.best), is_there)
        else {
            return;
        };
        let name = format!(
            "best of {} draws",
            verdict.ways.drawn().map(|(_, drawn)| drawn.len()).sum::<usize>()
        );
        let assignment = Some(best.clone());
        self.rows.push(ComparisonRow {
            name,
            assignment,
            performance,
            loss,
            standing,
            spent: 0,
            campaign: None,
            claim: None,
        });
    }

    /// The row of the best known assignment.
    pub fn best(&self) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.standing == WayStanding::Best)
    }

    /// The best row that contradicts the best known in the fresh windows. It is the best of those
    /// that are significantly better. If all others did better, or the best known made no progress,
    /// it is the best of the others.
    pub fn contradiction(&self) -> Option<&ComparisonRow> {
        let others = || self.rows.iter().filter(|row| row.standing != WayStanding::Best);
        let least =
            |a: &&ComparisonRow, b: &&ComparisonRow| a.loss.estimate.total_cmp(&b.loss.estimate);
        let all = others().count() > 1 && others().all(|row| row.loss.estimate < 0.0);
        if self.is_idle() {
            let did = others().filter(|row| row.performance.mean > 0.0);
            return did.max_by(|a, b| a.performance.mean.total_cmp(&b.performance.mean));
        }
        others()
            .filter(|row| row.standing == WayStanding::Better)
            .min_by(least)
            .or_else(|| others().filter(|_| all).min_by(least))
    }

    /// The best known got nothing done in the fresh windows: there are no shares of that.
    pub fn is_idle(&self) -> bool {
        self.best().is_some_and(|best| best.performance.mean <= 0.0)
    }

    /// The performance by which figures are scaled. It is that of the best known. If that got
    /// nothing done, it is the highest performance.
    pub fn typical(&self) -> f64 {
        let most = || self.rows.iter().map(|row| row.performance.mean).fold(0.0, f64::max);
        self.best()
            .map(|best| best.performance.mean)
            .filter(|mean| *mean > 0.0)
            .unwrap_or_else(most)
    }

    /// The rows that tie with the best known and may still lose more than `within`. Also a guess of
    /// the rounds that would decide them. `None` if there are none.
    pub fn unclear(&self) -> Option<OpenComparison<'_>> {
        if self.is_idle() {
            return None;
        }
        let is_unclear =
            |row: &&ComparisonRow| row.standing == WayStanding::Tied && row.loss.high > self.within;
        let rows: Vec<&ComparisonRow> = self.rows.iter().filter(is_unclear).collect();
        let high = rows.iter().map(|row| row.loss.high).reduce(f64::max)?;
        let half = rows.iter().map(|row| row.loss.high - row.loss.estimate).reduce(f64::max)?;
        // An interval narrows with the root of the number of rounds.
        let rounds = self.rounds as f64 * (half / self.within).powi(2).max(1.0);
        // Two digits: it is no more than a guess.
        let digits = 10f64.powf((rounds.log10().floor() - 1.0).max(0.0));
        Some(OpenComparison { rows, high, rounds: ((rounds / digits).ceil() * digits) as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BoundClaim;
    use crate::fixture::recorded;
    use crate::statistics::mean;
    use pinwise_campaign::{Step, Strategy};
    use pinwise_measure::{MeasureError, Retry};
    use pinwise_topology::Random;

    fn contender(name: &str, entry: WayResult, claim: Option<BoundClaim>) -> Contender {
        Contender { name: name.into(), entry, spent: 7, campaign: None, claim }
    }

    fn on(leaf: u32) -> Assignment {
        Assignment::new(vec![leaf])
    }

    fn ways() -> ComparedWays {
        let claim = |bound, gap| Some(BoundClaim { bound, gap, estimated: false });
        ComparedWays {
            contenders: vec![
                contender("unpinned", WayResult::Unpinned, None),
                contender("naive", WayResult::Drawn(vec![on(1), on(2), on(2), on(3)]), None),
                contender("low claim", WayResult::Announced(on(4)), claim(102.0, 0.02)),
                contender("wide claim", WayResult::Announced(on(5)), claim(130.0, 0.2)),
                contender("cannot run", WayResult::Announced(on(9)), None),
            ],
            left_out: vec![LeftOut { name: "other".into(), reason: LeftOutReason::NotMeasured }],
            rounds: 4,
            confidence: 0.95,
            within: 0.025,
            seed: 3,
        }
    }

    /// Runs a strategy on a testbed where a setting does `performance`; nothing runs on leaf 9.
    fn measure(
        ways: &ComparedWays,
        mut performance: impl FnMut(&Setting, usize) -> f64,
    ) -> Vec<Record> {
        recorded(&mut ComparisonStrategy::new(ways), |setting, number| match setting {
            Setting::Pinned(assignment) if assignment.leaf(0) == 9 => {
                Err(MeasureError::new(Retry::Other, "no"))
            }
            setting => Ok(performance(setting, number)),
        })
    }

    /// A thread pinned on leaf l does 10, 20, 30, 100, 110 from leaf 1 on, always a little
    /// differently.
    fn orderly(setting: &Setting, number: usize) -> f64 {
        let weather = 1.0 + 0.001 * (number % 5) as f64;
        match setting {
            Setting::Pinned(assignment) => {
                [0.0, 10.0, 20.0, 30.0, 100.0, 110.0][assignment.leaf(0)] * weather
            }
            _ => 50.0,
        }
    }

    #[test]
    fn every_way_is_measured_beside_the_others_and_its_claim_is_judged() {
        let (ways, unit) = (ways(), Unit::rate("1/s"));
        let records = measure(&ways, orderly);
        // Four draws. Four rounds of three draws and three announced; one of these fails once. Four
        // rounds of the worst draw, two announced, two windows unpinned and one of the draws.
        assert_eq!(records.len(), 4 + (4 * 5 + 1) + 4 * (1 + 2 + 2 + 1));
        assert!(records.len() as u64 <= ComparisonStrategy::measurements(&ways));
        let comparison = Comparison::new(&ways, &unit, &records);
        let names: Vec<&str> = comparison.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            names,
            ["unpinned", "naive, mean of 4", "naive, worst of 4", "low claim", "wide claim"]
        );
        assert_eq!(comparison.best().map(|row| row.name.as_str()), Some("wide claim"));
        assert_eq!(comparison.rows[0].performance.n, 8);
        assert!((comparison.rows[1].performance.mean - 20.0).abs() < 0.1);
        assert_eq!(comparison.rows[2].assignment, Some(on(1)));
        assert!((comparison.rows[3].loss.estimate - 1.0 / 11.0).abs() < 0.01);
        assert_eq!(comparison.rows[3].standing, WayStanding::Worse);
        let judged = |row: usize| comparison.rows[row].claim.unwrap();
        assert!(judged(3).certified && judged(3).verdict == ClaimVerdict::False);
        assert!(!judged(4).certified && judged(4).verdict == ClaimVerdict::Holds);
        assert_eq!(comparison.left_out.len(), 2);
        assert_eq!(comparison.unclear(), None);
    }

    /// Leaf 5 leads in the windows that choose. In those of the verdict it does this share of that.
    fn trailing(ways: &ComparedWays, share: f64) -> Vec<Record> {
        measure(ways, |setting, number| {
            let trails = matches!(setting, Setting::Pinned(assignment) if assignment.leaf(0) == 5)
                && number >= 4 + (4 * 5 + 1);
            orderly(setting, number) * if trails { share } else { 1.0 }
        })
    }

    #[test]
    fn a_comparison_that_ends_before_its_rounds_says_what_there_is() {
        let (ways, unit) = (ways(), Unit::rate("1/s"));
        let records = measure(&ways, orderly);
        let before = |records: usize| {
            Comparison::new(&ways, &unit, &measure(&ways, orderly)[..records]).before
        };
        assert_eq!(before(0), None);
        assert_eq!(before(3), Some(BeforeRounds { windows: 3, leader: None }));
        let chosen = before(4 + 4 * 5 + 1).unwrap();
        let leader = chosen.leader.unwrap();
        assert_eq!((chosen.windows, leader.name.as_str()), (24, "wide claim"));
        assert!((leader.performance - 110.0).abs() < 1.0, "{leader:?}");
        assert_eq!(before(records.len()), None);
    }

    #[test]
    fn fewer_rounds_and_draws_fit_into_fewer_windows() {
        let ways = ComparedWays { rounds: 10, ..ways() };
        let (announced, all) = (ways.announced().count(), ComparisonStrategy::measurements(&ways));
        assert_eq!(ways.fitted(all, announced), ways);
        let fewer = ways.fitted(all * 7 / 10, announced);
        assert!((5..10).contains(&fewer.rounds), "{fewer:?}");
        assert!(ComparisonStrategy::measurements(&fewer) <= all * 7 / 10);
        let WayResult::Drawn(drawn) = &fewer.contenders[1].entry else { panic!() };
        assert_eq!(drawn[..], [on(1), on(2)]);
        let least = ways.fitted(0, announced);
        assert_eq!((least.rounds, least.draws()), (5, 2));
        assert_eq!(
            ways.fewest_windows(announced),
            ComparisonStrategy::measurements(&ways.fitted(0, announced))
        );
    }

    #[test]
    fn a_best_that_fresh_windows_contradict_is_reported_and_judged_by_them() {
        let ways = ways();
        let records = trailing(&ways, 0.8);
        let comparison = Comparison::new(&ways, &Unit::rate("1/s"), &records);
        let best = comparison.best().unwrap();
        assert_eq!(best.name, "wide claim");
        let better = comparison.contradiction().unwrap();
        assert_eq!((better.name.as_str(), better.standing), ("low claim", WayStanding::Better));
        assert!(better.loss.high < 0.0, "{better:?}");
        // 88 against 100: beyond 2 %, within 20 %.
        assert_eq!(
            (best.claim.unwrap().verdict, better.claim.unwrap().verdict),
            (ClaimVerdict::Holds, ClaimVerdict::Holds)
        );
        assert!((best.claim.unwrap().loss.estimate - 0.12).abs() < 0.01, "{best:?}");
        let narrow = BoundClaim { bound: 120.0, gap: 0.05, estimated: false };
        let mut claimed = ways.clone();
        claimed.contenders[3].claim = Some(narrow);
        let comparison = Comparison::new(&claimed, &Unit::rate("1/s"), &records);
        assert_eq!(
            comparison.best().unwrap().claim.unwrap().verdict,
            ClaimVerdict::False,
            "nothing better than 5 % was claimed"
        );
        assert_eq!(
            Comparison::new(&ways, &Unit::rate("1/s"), &measure(&ways, orderly)).contradiction(),
            None
        );
    }

    #[test]
    fn a_best_known_that_gets_nothing_done_in_its_fresh_windows_is_not_borne_out() {
        let ways = ways();
        let records = trailing(&ways, 0.0);
        let comparison = Comparison::new(&ways, &Unit::rate("1/s"), &records);
        let best = comparison.best().unwrap();
        assert_eq!((best.name.as_str(), best.performance.mean), ("wide claim", 0.0));
        let better = comparison.contradiction().unwrap();
        assert_eq!((better.name.as_str(), better.loss.estimate), ("low claim", f64::NEG_INFINITY));
        assert!(
            comparison.rows.iter().all(|row| !row.loss.estimate.is_nan()),
            "{:?}",
            comparison.rows
        );
        assert_eq!((comparison.unclear(), comparison.typical()), (None, better.performance.mean));
    }

    #[test]
    fn what_is_reported_was_not_chosen_by() {
        // All assignments are alike, and noise is 20 %: whatever leads or trails does so by luck.
        let mut random = Random::new(11);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let drawn = WayResult::Drawn((10..40).map(on).collect());
        let announced =
            (1..6).map(|leaf| contender("search", WayResult::Announced(on(leaf)), None));
        let contenders = [contender("naive", drawn, None)].into_iter().chain(announced).collect();
        let ways = ComparedWays { contenders, rounds: 6, ..ways() };
        let (mut best, mut worst, mut losses, mut told) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for seed in 0..200 {
            let ways = ComparedWays { seed, ..ways.clone() };
            let records = measure(&ways, |_, _| 100.0 + 20.0 * normal());
            let comparison = Comparison::new(&ways, &Unit::rate("1/s"), &records);
            best.push(comparison.best().unwrap().performance.mean);
            worst.push(comparison.rows[1].performance.mean);
            losses.extend(
                comparison
                    .rows
                    .iter()
                    .filter(|row| row.standing != WayStanding::Best)
                    .map(|row| row.loss.estimate),
            );
            told +=
                usize::from(comparison.rows.iter().any(|row| row.standing == WayStanding::Worse));
            assert!(comparison.unclear().is_some_and(|unclear| unclear.rounds > 100));
        }
        // Of 200 means of six windows the standard error is 0.6; the luckiest of six would be 10
        // above.
        assert!((mean(&best) - 100.0).abs() < 2.0, "{}", mean(&best));
        assert!((mean(&worst) - 100.0).abs() < 2.0, "{}", mean(&worst));
        assert!(mean(&losses).abs() < 0.02, "{}", mean(&losses));
        // At most 5 % of comparisons distinguish ways that are alike. The limit of 10 % leaves room
        // for chance. It also leaves room for what t intervals of ratios miss.
        assert!(told <= 20, "{told} of 200");
    }

    #[test]
    fn a_draw_that_nobody_announced_may_be_the_best_known() {
        let ways = ComparedWays { contenders: ways().contenders.drain(..3).collect(), ..ways() };
        let records = measure(&ways, |setting, _| match setting {
            Setting::Pinned(assignment) => f64::from(10 - assignment.leaf(0) as u32),
            _ => 1.0,
        });
        let comparison = Comparison::new(&ways, &Unit::rate("1/s"), &records);
        let best = comparison.best().unwrap();
        assert_eq!((best.name.as_str(), &best.assignment), ("best of 4 draws", &Some(on(1))));
        assert_eq!(comparison.rows.len(), 5);
    }

    #[test]
    fn a_judge_goes_on_where_it_was_interrupted() {
        let ways = ways();
        let records = measure(&ways, orderly);
        let mut strategy = ComparisonStrategy::new(&ways);
        for (done, record) in records.iter().enumerate() {
            assert_eq!(strategy.step(&records[..done]), Step::Measure(record.trial.clone()));
        }
        assert_eq!(strategy.step(&records), Step::Stop);
        let part = |records: &[Record]| Comparison::new(&ways, &Unit::rate("1/s"), records);
        // Before the verdict there is nothing to show; in it there is.
        assert!(part(&records[..10]).rows.is_empty());
        assert!(part(&records[..records.len() - 8]).best().is_some());
    }
}
