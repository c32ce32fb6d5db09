//! Exponential generating functions with exact integer coefficients.
//!
//! A series counts placements of labelled threads. Its variables are the kinds of threads. f(x, y,
//! …) is the sum of f(a, b, …) x^a/a! y^b/b! …. There are f(a, b, …) ways to place a threads of the
//! first kind and b of the second. The series is kept as these integers, up to some highest
//! degrees. The product of two series counts the ways to split the threads between two places. See
//! Flajolet & Sedgewick, *Analytic Combinatorics*, II.2. Costs are quadratic in the number of
//! coefficients.

use num_bigint::BigUint;

/// The coefficients, in the order of [`Degrees`]; those beyond the last are zero.
pub(super) type PowerSeries = Vec<BigUint>;

/// The variables and their highest degrees. They number the coefficients: the degree of the first
/// variable runs fastest.
#[derive(Clone, Debug)]
pub(super) struct Degrees {
    /// The degrees of every coefficient.
    of: Vec<Vec<usize>>,
    /// By variable: how far apart coefficients are whose degrees differ by 1.
    strides: Vec<usize>,
}

impl Degrees {
    /// Up to `most` of each variable.
    pub(super) fn up_to(most: &[usize]) -> Self {
        let mut of = vec![Vec::new()];
        let mut strides = Vec::new();
        for &most in most {
            strides.push(of.len());
            let with = |degree: usize| of.iter().map(move |low| [&low[..], &[degree]].concat());
            of = (0..=most).flat_map(with).collect();
        }
        Self { of, strides }
    }

    /// How many coefficients.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// The degrees of coefficient `n`.
    pub(super) fn of(&self, n: usize) -> &[usize] {
        &self.of[n]
    }

    /// Whether no degree of `k` is above that of `n`. Then `n - k` has the differences.
    pub(super) fn within(&self, k: usize, n: usize) -> bool {
        k <= n && self.of[k].iter().zip(&self.of[n]).all(|(k, n)| k <= n)
    }

    /// In how many ways the threads of `n` can be split into those of `k` and the others.
    pub(super) fn choose(&self, n: usize, k: usize) -> BigUint {
        let each = self.of[n].iter().zip(&self.of[k]);
        each.filter_map(|(&n, &k)| binomials(n).nth(k)).product()
    }

    /// Any set of at most `most` threads on one place, if `may` allows their kinds.
    pub(super) fn place(&self, most: usize, may: impl Fn(usize) -> bool) -> PowerSeries {
        let fits = |degrees: &Vec<usize>| {
            degrees.iter().sum::<usize>() <= most
                && (0..degrees.len()).all(|kind| degrees[kind] == 0 || may(kind))
        };
        trimmed(self.of.iter().map(|degrees| u32::from(fits(degrees)).into()).collect())
    }

    /// f · g: the threads are split between two places.
    pub(super) fn product(&self, f: &[BigUint], g: &[BigUint]) -> PowerSeries {
        let top = (f.len() + g.len()).saturating_sub(1).min(self.len());
        trimmed((0..top).map(|n| self.coefficient_of_product(f, g, n)).collect())
    }

    /// Coefficient `n` of f · g.
    fn coefficient_of_product(&self, f: &[BigUint], g: &[BigUint], n: usize) -> BigUint {
        // The shorter factor runs, so that the cost is that of the shorter one.
        let (short, long) = if f.len() <= g.len() { (f, g) } else { (g, f) };
        let nonzero = |number: &&BigUint| **number != BigUint::ZERO;
        let row = |(&n, stride)| binomials(n).take(short.len() / stride + 1).collect::<Vec<_>>();
        let rows: Vec<Vec<BigUint>> = self.of[n].iter().zip(&self.strides).map(row).collect();
        let mut sum = BigUint::ZERO;
        for (k, a) in short.iter().enumerate().take(n + 1) {
            let Some(b) = long.get(n - k).filter(nonzero) else { continue };
            if *a == BigUint::ZERO || !self.within(k, n) {
                continue;
            }
            let choose = rows.iter().zip(&self.of[k]).map(|(row, &k)| &row[k]);
            sum += choose.fold(a * b, |ways, choose| ways * choose);
        }
        sum
    }

    /// The sum over j <= `members` of (f - 1)^j / j!. The threads are split among alike places, and
    /// each place can be filled in f ways. Filled places hold different threads, so exactly j!
    /// orders of j of them are the same.
    ///
    /// Let g = f - 1 and p = g^m / m!. The sum e satisfies e' = g' (e - p) for the derivatives in
    /// each variable.
    pub(super) fn alike(&self, f: &[BigUint], members: usize) -> PowerSeries {
        if members == 1 {
            return f.to_vec();
        }
        let one = BigUint::from(1u32);
        let filled: PowerSeries =
            [BigUint::ZERO].into_iter().chain(f.iter().skip(1).cloned()).collect();
        let power = self.power_over_factorial(&filled, members);
        let slopes: Vec<PowerSeries> =
            (0..self.strides.len()).map(|kind| self.derivative(&filled, kind)).collect();
        let top = (f.len().saturating_sub(1).saturating_mul(members) + 1).min(self.len());
        // d = e - p counts the placements that leave a member empty.
        let mut sum: PowerSeries = vec![one.clone()];
        let mut fewer: PowerSeries = vec![if members > 0 { one } else { BigUint::ZERO }];
        for n in 1..top {
            // One thread of a kind that is there comes last: the derivative in its variable.
            let kind = self.of[n].iter().position(|&degree| degree > 0).unwrap_or(0);
            let before = n - self.strides[kind];
            sum.push(self.coefficient_of_product(&slopes[kind], &fewer, before));
            fewer.push(&sum[n] - power.get(n).unwrap_or(&BigUint::ZERO));
        }
        trimmed(sum)
    }

    /// The derivative of f in one variable: one more thread of this kind is there, and it is known
    /// where.
    fn derivative(&self, f: &[BigUint], kind: usize) -> PowerSeries {
        let stride = self.strides[kind];
        let most = self.of[self.len() - 1][kind];
        let next = |n: usize| {
            f.get(n + stride).filter(|_| self.of[n][kind] < most).cloned().unwrap_or_default()
        };
        trimmed((0..f.len()).map(next).collect())
    }

    /// g^m / m!, for a series g that begins with 0: all m places are filled.
    fn power_over_factorial(&self, g: &[BigUint], m: usize) -> PowerSeries {
        if m > self.of[self.len() - 1].iter().sum() {
            return PowerSeries::new();
        }
        let factorial: BigUint = (1..=m).map(BigUint::from).product();
        self.power(g, m).into_iter().map(|ways| ways / &factorial).collect()
    }

    /// f^m: m different places.
    pub(super) fn power(&self, f: &[BigUint], m: usize) -> PowerSeries {
        let mut result = vec![BigUint::from(1u32)];
        for bit in (0..usize::BITS - m.leading_zeros()).rev() {
            result = self.product(&result, &result);
            if m >> bit & 1 == 1 {
                result = self.product(&result, f);
            }
        }
        result
    }
}

/// C(n, 0), C(n, 1), …, C(n, n).
fn binomials(n: usize) -> impl Iterator<Item = BigUint> {
    let step = move |(row, k): &(BigUint, usize)| Some((row * (n - k) / (k + 1), k + 1));
    std::iter::successors(Some((BigUint::from(1u32), 0)), step).take(n + 1).map(|(row, _)| row)
}

/// Without the zeros at its end.
fn trimmed(mut series: PowerSeries) -> PowerSeries {
    while series.last().is_some_and(|last| *last == BigUint::ZERO) {
        series.pop();
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(series: &[BigUint]) -> Vec<u64> {
        series.iter().map(|n| u64::try_from(n).unwrap()).collect()
    }

    fn series(numbers: &[u64]) -> PowerSeries {
        numbers.iter().map(|&n| BigUint::from(n)).collect()
    }

    /// One kind of threads, up to `limit` of them.
    fn one_kind(limit: usize) -> Degrees {
        Degrees::up_to(&[limit])
    }

    fn any(limit: usize) -> PowerSeries {
        one_kind(limit).place(limit, |_| true)
    }

    #[test]
    fn unlimited_alike_places_give_the_bell_numbers() {
        let bell = [1, 1, 2, 5, 15, 52, 203, 877, 4140];
        assert_eq!(numbers(&one_kind(8).alike(&any(8), 9)), bell);
    }

    #[test]
    fn two_alike_places_give_the_partitions_into_at_most_two_blocks() {
        assert_eq!(numbers(&one_kind(6).alike(&any(6), 2)), [1, 1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn different_places_give_all_functions() {
        assert_eq!(numbers(&one_kind(5).power(&any(5), 3)), [1, 3, 9, 27, 81, 243]);
    }

    #[test]
    fn no_room_leaves_the_empty_placement() {
        assert_eq!(numbers(&one_kind(5).alike(&any(0), 4)), [1]);
        assert_eq!(numbers(&one_kind(5).alike(&any(3), 0)), [1]);
        assert_eq!(numbers(&one_kind(5).power(&any(3), 0)), [1]);
    }

    #[test]
    fn kinds_of_threads_are_counted_apart() {
        let degrees = Degrees::up_to(&[2, 1]);
        // Only the first kind may be here: 1 + x + x^2/2, and nothing with y.
        let first = degrees.place(2, |kind| kind == 0);
        assert_eq!(numbers(&first), [1, 1, 1]);
        // Either kind, one thread: 1 + x + y.
        let either = degrees.place(1, |_| true);
        assert_eq!(numbers(&either), [1, 1, 0, 1]);
        assert_eq!(numbers(&degrees.product(&first, &either)), [1, 2, 3, 1, 1, 1]);
        // Two alike places: one thread, one of each kind, or two of the first kind apart.
        assert_eq!(numbers(&degrees.alike(&either, 2)), [1, 1, 1, 1, 1]);
    }

    /// The sum as it is defined: j blocks, the one with the smallest thread first.
    fn by_blocks(f: &[BigUint], members: usize, limit: usize) -> PowerSeries {
        let mut sum = vec![BigUint::ZERO; limit + 1];
        let mut blocks = series(&[1]);
        blocks.resize(limit + 1, BigUint::ZERO);
        for _ in 0..=members {
            sum.iter_mut().zip(&blocks).for_each(|(total, n)| *total += n);
            let mut next = vec![BigUint::ZERO; limit + 1];
            for n in 1..=limit {
                for (k, choose) in (1..=n).zip(binomials(n - 1)) {
                    next[n] += choose * f.get(k).unwrap_or(&BigUint::ZERO) * &blocks[n - k];
                }
            }
            blocks = next;
        }
        sum
    }

    proptest! {
        #[test]
        fn alike_places_agree_with_the_sum_over_blocks(
            tail in prop::collection::vec(1u64..9, 0..6), members in 0usize..7, limit in 0usize..14,
        ) {
            let f = series(&[&[1], &tail[..]].concat());
            let mut got = one_kind(limit).alike(&f[..f.len().min(limit + 1)], members);
            got.resize(limit + 1, BigUint::ZERO);
            prop_assert_eq!(got, by_blocks(&f, members, limit));
        }
    }
}
