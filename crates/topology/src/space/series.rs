//! Exponential generating functions with exact integer coefficients.
//!
//! Let f(x) = f0 + f1 x/1! + f2 x^2/2! + … be a series. It stands for a kind of placement of
//! labelled threads. There are fn ways to place n threads. The series is kept as the integers fn,
//! up to some highest degree. The product of two series counts the ways to split the threads
//! between two places. See Flajolet & Sedgewick, *Analytic Combinatorics*, II.2. Costs are
//! quadratic in the degree.

use num_bigint::BigUint;

/// The coefficients f0, f1, …; those beyond the last are zero.
pub(super) type PowerSeries = Vec<BigUint>;

/// C(n, 0), C(n, 1), …, C(n, n).
fn binomials(n: usize) -> impl Iterator<Item = BigUint> {
    let step = move |(row, k): &(BigUint, usize)| Some((row * (n - k) / (k + 1), k + 1));
    std::iter::successors(Some((BigUint::from(1u32), 0)), step).take(n + 1).map(|(row, _)| row)
}

/// One thread set to one place: exp(x), cut after `most` threads.
pub(super) fn up_to(most: usize) -> PowerSeries {
    vec![BigUint::from(1u32); most + 1]
}

/// f · g up to degree `limit`: the threads are split between two places.
pub(super) fn product(f: &[BigUint], g: &[BigUint], limit: usize) -> PowerSeries {
    let top = (f.len() + g.len()).saturating_sub(2).min(limit);
    (0..=top).map(|n| coefficient_of_product(f, g, n)).collect()
}

/// Coefficient `n` of f · g.
pub(super) fn coefficient_of_product(f: &[BigUint], g: &[BigUint], n: usize) -> BigUint {
    // The shorter factor runs, so that the cost is that of the shorter one.
    let (short, long) = if f.len() <= g.len() { (f, g) } else { (g, f) };
    let mut sum = BigUint::ZERO;
    for ((a, k), choose) in short.iter().zip(0..).zip(binomials(n)) {
        if let Some(b) = long.get(n - k).filter(|b| **b != BigUint::ZERO && *a != BigUint::ZERO) {
            sum += choose * a * b;
        }
    }
    sum
}

/// f' : one more thread is there, and it is known where. The coefficients move down by one.
pub(super) fn derivative(f: &[BigUint]) -> PowerSeries {
    f.iter().skip(1).cloned().collect()
}

/// The sum over j <= `members` of (f - 1)^j / j! up to degree `limit`. The threads are split among
/// alike places, and each place can be filled in f ways. Filled places hold different threads, so
/// exactly j! orders of j of them are the same.
///
/// Let g = f - 1 and p = g^m / m!. The sum e satisfies e' = g' (e - p). And p follows from p' g = m
/// g' p (J. C. P. Miller's recurrence; Knuth, *TAOCP* 2, 4.7). Both need a number of products
/// quadratic in the degree, whatever m is.
pub(super) fn alike(f: &[BigUint], members: usize, limit: usize) -> PowerSeries {
    let degree = f.len().saturating_sub(1);
    let top = limit.min(degree.saturating_mul(members));
    let power = power_over_factorial(f, members, top);
    // d = e - p counts the placements that leave a member empty.
    let mut sum: PowerSeries = vec![BigUint::from(1u32)];
    let mut fewer: PowerSeries = vec![BigUint::from(u32::from(members > 0))];
    let slope = derivative(f);
    for n in 0..top {
        sum.push(coefficient_of_product(&slope, &fewer, n));
        fewer.push(&sum[n + 1] - &power[n + 1]);
    }
    sum
}

/// (f - 1)^m / m! up to degree `top`: all m places are filled.
fn power_over_factorial(f: &[BigUint], m: usize, top: usize) -> PowerSeries {
    let mut power = vec![BigUint::ZERO; top + 1];
    if m > top || f.len() < 2 {
        return power;
    }
    let first = &f[1];
    power[m] = first.pow(m as u32);
    for n in m + 1..=top {
        let (mut plus, mut minus) = (BigUint::ZERO, BigUint::ZERO);
        for (j, choose) in (1..=n + 1 - m).zip(binomials(n)).skip(1) {
            let Some(g) = f.get(j) else { break };
            // m C(n, j-1) - C(n, j) = C(n, j-1) ((m+1) j - (n+1)) / j, an integer.
            let (grows, shrinks) = ((m + 1) * j, n + 1);
            let term = choose * grows.abs_diff(shrinks) / j * g * &power[n + 1 - j];
            if grows > shrinks { plus += term } else { minus += term }
        }
        power[n] = (plus - minus) / (first * (n - m));
    }
    power
}

/// f^m up to degree `limit`: m different places.
pub(super) fn power(f: &[BigUint], m: usize, limit: usize) -> PowerSeries {
    let mut result = up_to(0);
    for bit in (0..usize::BITS - m.leading_zeros()).rev() {
        result = product(&result, &result, limit);
        if m >> bit & 1 == 1 {
            result = product(&result, f, limit);
        }
    }
    result
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

    #[test]
    fn unlimited_alike_places_give_the_bell_numbers() {
        assert_eq!(numbers(&alike(&up_to(8), 9, 8)), [1, 1, 2, 5, 15, 52, 203, 877, 4140]);
    }

    #[test]
    fn two_alike_places_give_the_partitions_into_at_most_two_blocks() {
        assert_eq!(numbers(&alike(&up_to(6), 2, 6)), [1, 1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn different_places_give_all_functions() {
        assert_eq!(numbers(&power(&up_to(5), 3, 5)), [1, 3, 9, 27, 81, 243]);
    }

    #[test]
    fn no_room_leaves_the_empty_placement() {
        assert_eq!(numbers(&alike(&up_to(0), 4, 5)), [1]);
        assert_eq!(numbers(&alike(&up_to(3), 0, 5)), [1]);
        assert_eq!(numbers(&power(&up_to(3), 0, 5)), [1]);
    }

    /// The sum as it is defined: j blocks, the one with the smallest thread first.
    fn by_blocks(f: &[BigUint], members: usize, limit: usize) -> PowerSeries {
        let mut sum = vec![BigUint::ZERO; limit + 1];
        let mut blocks = up_to(0);
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
            let mut got = alike(&f, members, limit);
            got.resize(limit + 1, BigUint::ZERO);
            prop_assert_eq!(got, by_blocks(&f, members, limit));
        }
    }
}
