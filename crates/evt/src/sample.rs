//! The performances an estimate rests on, put in order once.

/// One performance per measured assignment: the finite values, best first, and how many were no
/// finite number.
///
/// The values should come from assignments drawn independently and with equal chance. Average the
/// repeats of one assignment before, since a repeat is no new draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    descending: Vec<f64>,
    distinct: Vec<f64>,
    dropped: usize,
}

impl Sample {
    /// Takes the finite values, in any order, and counts the rest.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut dropped = 0;
        let mut descending: Vec<f64> = values
            .into_iter()
            .filter(|value| {
                dropped += usize::from(!value.is_finite());
                value.is_finite()
            })
            // -0.0 and 0.0 are one value. Adding 0.0 makes them the same bits, so that the order of
            // the input is forgotten.
            .map(|value| value + 0.0)
            .collect();
        descending.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut distinct = descending.clone();
        distinct.dedup();
        Self { descending, distinct, dropped }
    }

    /// How many finite values.
    pub fn n(&self) -> usize {
        self.descending.len()
    }

    /// How many values were left out because they were infinite or no number.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The highest value; `None` of an empty sample.
    pub fn best(&self) -> Option<f64> {
        self.descending.first().copied()
    }

    /// All values, best first.
    pub fn descending(&self) -> &[f64] {
        &self.descending
    }

    /// The different values, best first.
    pub fn distinct(&self) -> &[f64] {
        &self.distinct
    }

    /// How many values equal the best, itself included.
    pub fn ties(&self) -> usize {
        self.descending.iter().take_while(|&&value| Some(value) == self.best()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_no_finite_number_are_counted_and_left_out() {
        let sample = Sample::new([1.0, f64::NAN, 3.0, f64::INFINITY, 2.0, f64::NEG_INFINITY]);
        assert_eq!((sample.n(), sample.dropped()), (3, 3));
        assert_eq!(sample.descending(), [3.0, 2.0, 1.0]);
    }

    #[test]
    fn ties_and_distinct_values_are_told_apart_and_both_zeros_are_one() {
        let sample = Sample::new([2.0, 5.0, 5.0, 2.0, 5.0]);
        assert_eq!((sample.ties(), sample.distinct()), (3, &[5.0, 2.0][..]));
        assert_eq!(Sample::new([0.0, -0.0]).distinct(), [0.0]);
    }

    #[test]
    fn an_empty_sample_has_no_best() {
        assert_eq!(Sample::new([f64::NAN]).best(), None);
    }
}
