//! The times of runs from the records, with their uncertainty.
//!
//! *Problem.* A measurement has several runs, one after the other. A context may be slower for some
//! seconds, and these runs then have that in common. So a second measurement says more than more
//! runs. And a pair has few measurements. The variance of two or three values says little.
//!
//! *Method.* The mean of a measurement's runs counts as one value. The relative variance of these
//! values is *moderated* (G. K. Smyth, "Linear models and empirical Bayes methods", Statistical
//! Applications in Genetics and Molecular Biology 3, 2004). The variance of the program's
//! measurements beside other programs adds up to [`PRIOR`] degrees of freedom. If it has fewer,
//! that of all programs adds the rest. The difference between a mean and the truth then follows
//! Student's t with all these degrees.
//!
//! Every interval comes from *draws* of all times at once, so that two numbers that share a time
//! vary together. A draw is one possible truth.
//!
//! A pair without runs may have a *predicted* time ([`PredictedKept`]). Its draws add residuals of
//! training pairs to the prediction. Each program gets a training program by lot, and a pair the
//! residual of both of these. So errors of pairs that share a program vary together (A. B. Owen,
//! "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007).

use crate::pairs_search::{PairsQuestion, PairsSearch};
use crate::predicted_kept::PredictedKept;
use crate::speedup::PairTimes;
use pinwise_campaign::{Purpose, Record, settled};
use pinwise_measure::{AccompaniedRuns, Setting};
use pinwise_topology::Random;
use std::collections::BTreeMap;

/// Degrees of freedom that measurements elsewhere count for.
const PRIOR: f64 = 6.0;

/// The runs of every program, alone and beside each.
#[derive(Clone, Debug)]
pub(crate) struct RunTimes {
    programs: usize,
    /// Of each program, beside each program and last alone.
    cells: Vec<Vec<Measurements>>,
    /// The [`spread`] of all measurements of each program, with those that are left out here.
    noise: Vec<(f64, f64)>,
    /// What stands for pairs without runs.
    predicted: Option<PredictedKept>,
}

/// The measurements of a program beside another one, or alone.
#[derive(Clone, Debug, Default)]
struct Measurements {
    /// The mean of the runs of each.
    means: Vec<f64>,
    /// All runs.
    runs: usize,
}

impl Measurements {
    /// Adds one that has these runs. One without a run says nothing.
    fn add(&mut self, runs: &[f64]) {
        if !runs.is_empty() {
            self.means.push(mean(runs));
            self.runs += runs.len();
        }
    }
}

/// One time of every program, alone and beside each.
#[derive(Clone, Debug)]
pub(crate) struct Times(Vec<Vec<f64>>);

impl Times {
    /// Those of two programs.
    pub(crate) fn pair(&self, one: usize, other: usize) -> PairTimes {
        let last = self.0.len();
        PairTimes {
            alone: [self.0[one][last], self.0[other][last]],
            together: [self.0[one][other], self.0[other][one]],
        }
    }

    pub(crate) fn alone(&self, program: usize) -> f64 {
        self.0[program][self.0.len()]
    }
}

impl RunTimes {
    /// All runs that `records` hold, of that many programs.
    pub(crate) fn of(records: &[Record], programs: usize) -> Self {
        Self::of_those(records, programs, |_| true)
    }

    /// Those that chose the pairing.
    pub(crate) fn of_search(records: &[Record], programs: usize) -> Self {
        Self::of_those(records, programs, |record| record.trial.purpose != Purpose::Final)
    }

    /// The same, with predictions for pairs without runs, where the question has a model.
    pub(crate) fn predicting(mut self, records: &[Record], question: &PairsQuestion) -> Self {
        let of = |model| PredictedKept::of(model, records, self.programs, &question.recorded).ok();
        self.predicted = question.model.as_ref().and_then(of);
        self
    }

    /// The first runs of each pair that did not fail, and all runs alone. What a pair's own runs
    /// showed had no part in that they were made.
    pub(crate) fn of_first_each(records: &[Record], programs: usize) -> Self {
        let mut seen: Vec<Vec<usize>> = Vec::new();
        let mut is_first = |record: &&Record| {
            let Setting::Profile(parts) = &record.trial.setting else { return false };
            let mut pair: Vec<usize> = parts.iter().map(|part| part.instance).collect();
            pair.sort_unstable();
            let first = pair.len() == 1 || !seen.contains(&pair);
            seen.push(pair);
            first
        };
        let made = settled(records).filter(|record| record.outcome.is_ok());
        let first: Vec<Record> = made.filter(&mut is_first).cloned().collect();
        let noise = Self::of(records, programs).noise;
        Self { noise, ..Self::of_search(&first, programs) }
    }

    /// Those of the part of the search that measured everything once. Later ones were made because
    /// of what the earlier ones showed. On average, the mean of both is not the truth.
    pub(crate) fn of_first(records: &[Record], programs: usize) -> Self {
        let first = PairsSearch::least(programs) as usize;
        let noise = Self::of(records, programs).noise;
        Self { noise, ..Self::of(&records[..first.min(records.len())], programs) }
    }

    /// Those that were made after the pairing was chosen.
    pub(crate) fn of_last(records: &[Record], programs: usize) -> Self {
        Self::of_those(records, programs, |record| record.trial.purpose == Purpose::Final)
    }

    /// The same, with the runs of `pairs` that `others` has. `None` if one of these has none.
    pub(crate) fn with_pairs(
        &self,
        others: &Self,
        pairs: impl IntoIterator<Item = [usize; 2]>,
    ) -> Option<Self> {
        let mut mixed = self.clone();
        for [one, other] in pairs {
            for (program, beside) in [(one, other), (other, one)] {
                let cell = &others.cells[program][beside];
                if cell.runs == 0 && others.predicted.is_none() {
                    return None;
                }
                mixed.cells[program][beside].clone_from(cell);
            }
        }
        Some(mixed)
    }

    /// The same, with the runs alone of these programs that `others` has. `None` if one of these
    /// has none.
    pub(crate) fn with_alone(
        &self,
        others: &Self,
        programs: impl IntoIterator<Item = usize>,
    ) -> Option<Self> {
        let mut mixed = self.clone();
        for program in programs {
            let cell = &others.cells[program][self.programs];
            if cell.runs == 0 {
                return None;
            }
            mixed.cells[program][self.programs].clone_from(cell);
        }
        Some(mixed)
    }

    fn of_those(records: &[Record], programs: usize, those: impl Fn(&Record) -> bool) -> Self {
        let noise = Self::cells_of(records, programs, |_| true);
        let noise = noise.iter().map(|row| together(row.iter().map(|cell| spread(&cell.means))));
        let cells = Self::cells_of(records, programs, those);
        Self { programs, cells, noise: noise.collect(), predicted: None }
    }

    fn cells_of(
        records: &[Record],
        programs: usize,
        those: impl Fn(&Record) -> bool,
    ) -> Vec<Vec<Measurements>> {
        let mut cells = vec![vec![Measurements::default(); programs + 1]; programs];
        for record in settled(records).filter(|record| those(record)) {
            let Setting::Profile(parts) = &record.trial.setting else { continue };
            let runs = record.detail().and_then(|detail| detail.read::<AccompaniedRuns>().ok());
            let Some(runs) = runs.filter(|_| record.outcome.is_ok()) else { continue };
            // Both sides of a program beside itself are one measurement.
            let mut seen: BTreeMap<[usize; 2], Vec<f64>> = BTreeMap::new();
            for (number, (part, seconds)) in parts.iter().zip(runs.seconds).enumerate() {
                let beside = match parts.len() {
                    1 => programs,
                    _ => parts[1 - number.min(1)].instance,
                };
                let valid = seconds.into_iter().filter(|time| time.is_finite() && *time > 0.0);
                seen.entry([part.instance, beside]).or_default().extend(valid);
            }
            for ([program, beside], runs) in seen {
                let cell = cells.get_mut(program).and_then(|row| row.get_mut(beside));
                if let Some(cell) = cell {
                    cell.add(&runs);
                }
            }
        }
        cells
    }

    /// How many runs of a program there are beside another, or alone.
    pub(crate) fn count(&self, program: usize, beside: Option<usize>) -> usize {
        self.cells[program][beside.unwrap_or(self.programs)].runs
    }

    /// Whether the time of each of these two beside the other is known. It comes from runs of both
    /// and of each alone, or from a prediction.
    pub(crate) fn knows(&self, one: usize, other: usize) -> bool {
        let alone = || [one, other].iter().all(|&program| self.count(program, None) > 0);
        self.has(one, other) || (self.predicted.is_some() && alone())
    }

    /// Whether there are runs of each of these two beside the other, and of each alone.
    pub(crate) fn has(&self, one: usize, other: usize) -> bool {
        [(one, Some(other)), (other, Some(one)), (one, None), (other, None)]
            .into_iter()
            .all(|(program, beside)| self.count(program, beside) > 0)
    }

    /// Whether something was measured twice. Else no time has an interval.
    pub(crate) fn is_varied(&self) -> bool {
        self.noise.iter().any(|(_, degrees)| *degrees > 0.0)
    }

    /// The mean of each time; predicted, or else no number, where there is no run.
    pub(crate) fn means(&self) -> Times {
        let means = self.cells.iter().map(|row| row.iter().map(|cell| mean(&cell.means)).collect());
        self.with_predicted(means.collect(), |predicted, one, other| predicted.kept(one, other))
    }

    /// These times. Those of pairs without runs follow from what the program keeps.
    fn with_predicted(
        &self,
        mut times: Vec<Vec<f64>>,
        kept: impl Fn(&PredictedKept, usize, usize) -> f64,
    ) -> Times {
        if let Some(predicted) = &self.predicted {
            for (one, row) in times.iter_mut().enumerate() {
                let alone = row[self.programs];
                for other in (0..self.programs).filter(|&other| self.count(one, Some(other)) == 0) {
                    row[other] = alone / kept(predicted, one, other);
                }
            }
        }
        Times(times)
    }

    /// The relative standard error of a time and its degrees of freedom. It is infinite if nothing
    /// was measured twice.
    pub(crate) fn error(&self, program: usize, beside: Option<usize>) -> (f64, f64) {
        let own = &self.cells[program][beside.unwrap_or(self.programs)];
        if let (Some(predicted), Some(beside), 0) = (&self.predicted, beside, own.runs) {
            return (predicted.error(program, beside), f64::INFINITY);
        }
        let (mut squares, mut degrees) = spread(&own.means);
        let (of_program, known) = self.noise[program];
        let elsewhere = ((of_program - squares).max(0.0), (known - degrees).max(0.0));
        let others = self.noise.iter().enumerate().filter(|(number, _)| *number != program);
        let others = together(others.map(|(_, noise)| *noise));
        let mut rest = PRIOR;
        for (sum, known) in [elsewhere, others] {
            let counted = known.min(rest);
            if counted > 0.0 {
                squares += counted * sum / known;
                degrees += counted;
                rest -= counted;
            }
        }
        if own.runs == 0 || degrees == 0.0 {
            return (f64::INFINITY, 1.0);
        }
        ((squares / degrees / own.means.len() as f64).sqrt(), degrees)
    }

    /// Draws `count` possible truths.
    pub(crate) fn draws(&self, count: usize, random: &mut Random) -> Vec<Times> {
        let means = self.means().0;
        let errors: Vec<Vec<(f64, f64)>> = (0..self.programs)
            .map(|program| {
                let beside = (0..self.programs).map(Some).chain([None]);
                beside.map(|beside| self.error(program, beside)).collect()
            })
            .collect();
        let mut draw = || {
            let row = |(means, errors): (&Vec<f64>, &Vec<(f64, f64)>)| {
                let cells = means.iter().zip(errors);
                cells
                    .map(|(mean, &(error, degrees))| mean * (error * t(degrees, random)).exp())
                    .collect()
            };
            let drawn = means.iter().zip(&errors).map(row).collect();
            let lots = self.predicted.as_ref().map(|predicted| predicted.lots(random));
            let lots = lots.unwrap_or_default();
            self.with_predicted(drawn, |predicted, one, other| predicted.drawn(one, other, &lots))
        };
        (0..count).map(|_| draw()).collect()
    }
}

/// The sums of squares and of degrees of freedom.
fn together(all: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The sum of squared relative deviations from the mean, and its degrees of freedom.
fn spread(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
    if values.len() < 2 { (0.0, 0.0) } else { (squares, (values.len() - 1) as f64) }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A draw of Student's t (R. W. Bailey, "Polar generation of random variates with the
/// t-distribution", Mathematics of Computation 62, 1994).
fn t(degrees: f64, random: &mut Random) -> f64 {
    let radius = (degrees * ((1.0 - random.unit()).powf(-2.0 / degrees) - 1.0)).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs_search::fixture::{Noisy, records_of};
    use pinwise_measure::{MeasureError, Retry};

    #[test]
    fn draws_of_t_have_its_quantiles() {
        let mut random = Random::new(2);
        for (degrees, at) in [(1.0, 12.706), (4.0, 2.776), (30.0, 2.042)] {
            let outside = (0..20_000).filter(|_| t(degrees, &mut random).abs() > at).count();
            // 5 standard deviations of a binomial with n = 20,000, p = 0.05.
            assert!(outside.abs_diff(1000) < 155, "{degrees}: {outside}");
        }
    }

    #[test]
    fn a_program_beside_itself_has_twice_the_runs() {
        let records = records_of(&mut Noisy::new(vec![vec![1.5, 1.2], vec![1.1, 1.3]], 0.02, 1), 2);
        let runs = RunTimes::of_first(&records, 2);
        assert_eq!(
            [runs.count(0, None), runs.count(0, Some(1)), runs.count(0, Some(0))],
            [4, 2, 4]
        );
        assert!(runs.has(0, 1));
        let pair = runs.means().pair(0, 1);
        assert!((pair.slowdowns()[0] - 1.2).abs() < 0.1 && (pair.slowdowns()[1] - 1.1).abs() < 0.1);
    }

    #[test]
    fn a_failed_try_is_not_the_first_of_its_pair() {
        let mut records =
            records_of(&mut Noisy::new(vec![vec![1.5, 1.2], vec![1.1, 1.3]], 0.02, 1), 2);
        let is_pair = |record: &Record| match &record.trial.setting {
            Setting::Profile(parts) => parts.len() == 2 && parts[0].instance != parts[1].instance,
            _ => false,
        };
        let pair = records.iter().position(is_pair).unwrap();
        for retry in [Retry::Same, Retry::Other] {
            let mut failed = records[pair].clone();
            failed.outcome = Err(MeasureError::new(retry, "it failed"));
            records.insert(pair, failed);
        }
        let runs = RunTimes::of_first_each(&records, 2);
        assert_eq!([runs.count(0, Some(1)), runs.count(1, Some(0))], [2, 2]);
    }

    #[test]
    fn one_measurement_has_the_error_of_its_program_and_then_of_all() {
        let cell = |means: &[f64]| Measurements { means: means.to_vec(), runs: 5 * means.len() };
        let cells = vec![
            vec![cell(&[2.0]), cell(&[]), cell(&[1.0, 1.1, 0.9])],
            vec![cell(&[]), cell(&[3.0, 3.6, 2.4]), cell(&[1.0])],
        ];
        let noise = vec![(0.02, 2.0), (0.08, 2.0)];
        let runs = RunTimes { programs: 2, cells, noise, predicted: None };
        // A variance of 0.01 with two degrees of freedom, and 0.04 with two.
        let (error, degrees) = runs.error(0, Some(0));
        assert!((error - 0.025f64.sqrt()).abs() < 1e-12 && degrees == 4.0, "{error} {degrees}");
        let (own, _) = runs.error(0, None);
        let mixed = (0.02 + 0.08) / 4.0 / 3.0;
        assert!((own - f64::sqrt(mixed)).abs() < 1e-12, "{own}");
        // Many runs of one measurement do not show how the machine varies.
        let cells = vec![vec![cell(&[2.0]), cell(&[1.0])]];
        let noise = vec![(0.0, 0.0)];
        let nothing = RunTimes { programs: 1, cells, noise, predicted: None };
        assert_eq!(nothing.error(0, None).0, f64::INFINITY);
    }
}
