//! The fastest form of BlackBox: what all parts hold fits two registers, and what a prediction
//! reads the fastest cache.
//!
//! Where there are at most 16 parts (of [`crate::Compiled`]) and instances have at most three
//! threads, two bytes say where an instance is: four bits for each thread's part. Each byte indexes
//! what its threads add to a number that every part has, and both together the instance's base
//! performance.
//!
//! The number of a part tells what it holds and what the other part of its domain holds. A thread
//! adds the *unit* of its kind to that of its own part, and `span` times as much to that of the
//! other. Units are small numbers whose sums differ wherever contents do ([`units`]), and `span` is
//! beyond all of these sums. So the number is the index of what threads keep there, by kind.
//!
//! Assignments go through both steps (numbers, instances) in blocks: one's arithmetic fills the
//! time in which another waits for memory. Additions are in the order of the instances, as in
//! [`crate::Compiled`]: the results are equal to the last bit.

/// Parts, at most.
const PARTS: usize = 16;
/// Bits of a part's number.
const BITS: u32 = PARTS.trailing_zeros();
/// Threads per instance, at most.
const MOST_THREADS: usize = 3;
/// Bytes of an instance.
const BYTES: usize = 2;
/// Values of one byte and of two.
const ONE: usize = 1 << 8;
const TWO: usize = 1 << 16;
/// Assignments that go through each step together.
const BLOCK: usize = 64;
/// Kinds of threads, at most.
const MOST_KINDS: usize = 16;
/// Kinds for which the smallest units are searched.
const MOST_SEARCHED: usize = 4;
/// Entries of a table of shares: whatever number two bytes hold, with any kind.
const SHARES: usize = TWO + MOST_KINDS;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    /// By leaf, its part.
    parts: Vec<u8>,
    troupes: Vec<Troupe>,
    /// By number of a part, plus kind.
    shares: Vec<f32>,
}

/// An application as [`Narrow::new`] is told of it.
pub(crate) struct Played<'a> {
    /// Its threads, instance after instance.
    pub(crate) order: &'a [usize],
    /// The kinds of an instance's threads.
    pub(crate) kinds: Vec<usize>,
    /// The base performance of an instance in these parts.
    pub(crate) base: &'a dyn Fn(&[usize]) -> f32,
}

/// The instances of one application.
#[derive(Clone, Debug)]
struct Troupe {
    order: Vec<usize>,
    kinds: Vec<usize>,
    /// By each byte of an instance's two and its value, what it adds to the numbers of all parts.
    added: [Vec<[u16; PARTS]>; BYTES],
    /// By both bytes: as many as they have values, so that none has to be looked for.
    base: Vec<f32>,
}

/// Numbers of which all sums of up to `most` are different, by kind: added up, they name what a
/// part holds. The largest is the smallest there can be where kinds are few; beyond, each is the
/// smallest that goes with those before it. `None` where sums would not fit a byte.
pub(crate) fn units(kinds: usize, most: usize) -> Option<Vec<usize>> {
    let limit = usize::from(u8::MAX) / most.max(1);
    let mut none = vec![Vec::new(); most + 1];
    none[0].push(0);
    if kinds <= MOST_SEARCHED {
        return (1..=limit).find_map(|largest| extended(&none, kinds, 1, largest));
    }
    let (mut units, mut sums): (Vec<usize>, _) = (Vec::new(), none);
    while units.len() < kinds {
        let from = units.last().map_or(1, |last| last + 1);
        let (unit, more) = (from..=limit).find_map(|unit| Some((unit, with(&sums, unit)?)))?;
        units.push(unit);
        sums = more;
    }
    Some(units)
}

/// `count` numbers from `from` to `largest` that go with those of `sums`, first the smallest.
fn extended(sums: &[Vec<usize>], count: usize, from: usize, largest: usize) -> Option<Vec<usize>> {
    if count == 0 {
        return Some(Vec::new());
    }
    (from..=largest).find_map(|unit| {
        let rest = extended(&with(sums, unit)?, count - 1, unit + 1, largest)?;
        Some([&[unit], &rest[..]].concat())
    })
}

/// By how many are added up, all sums with one number more; `None` where two are equal.
fn with(sums: &[Vec<usize>], unit: usize) -> Option<Vec<Vec<usize>>> {
    let sums_of = |count: usize| {
        (0..=count)
            .flat_map(|own| sums[count - own].iter().map(move |sum| sum + own * unit))
            .collect::<Vec<usize>>()
    };
    let more: Vec<Vec<usize>> = (0..sums.len()).map(sums_of).collect();
    let mut all = more.concat();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    (all.len() == count).then_some(more)
}

impl Narrow {
    /// `parts` by leaf, each below 16, those of a domain side by side; `units` by kind. `kept`
    /// gives the shares by kind of threads in a part that holds the first of two sums of units,
    /// while the other one of the `per_domain` parts of its domain holds the second; no sum is
    /// above `largest`. `None` where that has no narrow form.
    pub(crate) fn new<'a>(
        parts: Vec<u8>,
        per_domain: usize,
        applications: &[Played<'_>],
        (units, largest): (&[usize], usize),
        kept: impl Fn(usize, usize) -> Option<&'a [f32]>,
    ) -> Option<Self> {
        let span = largest + 1;
        let stride = units.len();
        let numbers = span.checked_pow(per_domain as u32)?.checked_mul(stride)?;
        let wide = parts.iter().any(|part| usize::from(*part) >= PARTS);
        let large = applications.iter().any(|played| played.kinds.len() > MOST_THREADS);
        if wide || large || per_domain > 2 || stride > MOST_KINDS || numbers > TWO {
            return None;
        }
        let mut shares = vec![0.0; SHARES];
        for (number, shares) in shares.chunks_exact_mut(stride).enumerate().take(numbers / stride) {
            if let Some(kept) = kept(number % span, number / span) {
                shares.copy_from_slice(&kept[..stride]);
            }
        }
        let steps: Vec<usize> = units.iter().map(|unit| unit * stride).collect();
        let troupes = applications
            .iter()
            .map(|played| Troupe::new(played, per_domain, span, &steps))
            .collect();
        Some(Self { parts, troupes, shares })
    }

    /// An assignment in packed form.
    pub(crate) fn pack(&self, leaves: &[u32]) -> Vec<u8> {
        let code = |instance: &[usize]| {
            let part = |(place, thread): (u32, &usize)| {
                u16::from(self.parts[leaves[*thread] as usize]) << (BITS * place)
            };
            (0..).zip(instance).map(part).sum::<u16>().to_le_bytes()
        };
        let of = |troupe: &Troupe| {
            troupe.order.chunks(troupe.kinds.len().max(1)).flat_map(code).collect::<Vec<u8>>()
        };
        self.troupes.iter().flat_map(of).collect()
    }

    /// Bytes of a packed assignment.
    pub(crate) fn bytes(&self) -> usize {
        self.troupes.iter().map(Troupe::bytes).sum()
    }

    /// Appends the predictions of packed assignments.
    pub(crate) fn predict_all(&self, packed: &[u8], predicted: &mut Vec<f32>) {
        let bytes = self.bytes().max(1);
        let Ok(shares) = <&[f32; SHARES]>::try_from(&self.shares[..]) else { return };
        let mut numbers = [[0; PARTS]; BLOCK];
        let before = predicted.len();
        predicted.resize(before + packed.len() / bytes, 0.0);
        for (block, sums) in packed.chunks(bytes * BLOCK).zip(predicted[before..].chunks_mut(BLOCK))
        {
            let numbers = &mut numbers[..sums.len()];
            numbers.fill([0; PARTS]);
            let mut first = 0;
            for troupe in &self.troupes {
                let own = first..first + troupe.bytes();
                add(
                    block.chunks_exact(bytes).map(|packed| &packed[own.clone()]),
                    &troupe.added,
                    numbers,
                );
                first = own.end;
            }
            let mut first = 0;
            for troupe in &self.troupes {
                let own = first..first + troupe.bytes();
                let instances = block.chunks_exact(bytes).map(|packed| &packed[own.clone()]);
                match troupe.kinds[..] {
                    [a] => perform(instances, [a], &troupe.base, shares, numbers, sums),
                    [a, b] => perform(instances, [a, b], &troupe.base, shares, numbers, sums),
                    // Kinds that are known when compiling need no register.
                    [0, 1, 2] => perform(instances, [0, 1, 2], &troupe.base, shares, numbers, sums),
                    [a, b, c] => perform(instances, [a, b, c], &troupe.base, shares, numbers, sums),
                    _ => {}
                }
                first = own.end;
            }
        }
    }
}

impl Troupe {
    /// A thread of each kind adds its step to the number of its part.
    fn new(played: &Played<'_>, per_domain: usize, span: usize, steps: &[usize]) -> Self {
        let threads = played.kinds.len();
        let place = |code: usize, thread: usize| code >> (BITS as usize * thread) & (PARTS - 1);
        let added = |byte: usize, value: usize| {
            let mut numbers = [0u16; PARTS];
            for thread in (2 * byte..2 * byte + 2).filter(|thread| *thread < threads) {
                let (part, step) =
                    (place(value << (8 * byte), thread), steps[played.kinds[thread]]);
                // More threads than a part has room for are no assignment, and their number is not
                // asked for.
                numbers[part] = numbers[part].wrapping_add(step as u16);
                if per_domain == 2 {
                    numbers[part ^ 1] = numbers[part ^ 1].wrapping_add((step * span) as u16);
                }
            }
            numbers
        };
        let base = |code: usize| {
            let own: Vec<usize> = (0..threads).map(|thread| place(code, thread)).collect();
            if code < PARTS.pow(threads as u32) { (played.base)(&own) } else { 0.0 }
        };
        Self {
            order: played.order.to_vec(),
            kinds: played.kinds.clone(),
            added: std::array::from_fn(|byte| (0..ONE).map(|value| added(byte, value)).collect()),
            base: (0..TWO).map(base).collect(),
        }
    }

    fn bytes(&self) -> usize {
        self.order.len() / self.kinds.len().max(1) * BYTES
    }
}

/// Adds the threads of instances, an application's of one assignment after the other, to the
/// numbers of the parts.
#[inline(never)]
fn add<'a>(
    instances: impl Iterator<Item = &'a [u8]>,
    added: &[Vec<[u16; PARTS]>; BYTES],
    numbers: &mut [[u16; PARTS]],
) {
    let [Ok(low), Ok(high)] =
        added.each_ref().map(|added| <&[[u16; PARTS]; ONE]>::try_from(&added[..]))
    else {
        return;
    };
    for (own, numbers) in instances.zip(numbers) {
        let mut sums = *numbers;
        for [a, b] in own.as_chunks::<BYTES>().0 {
            let (low, high) = (&low[usize::from(*a)], &high[usize::from(*b)]);
            sums = std::array::from_fn(|part| {
                sums[part].wrapping_add(low[part]).wrapping_add(high[part])
            });
        }
        *numbers = sums;
    }
}

/// Adds what the instances of an application do together to the predictions, one assignment after
/// the other.
#[inline(never)]
fn perform<'a, const N: usize>(
    instances: impl Iterator<Item = &'a [u8]>,
    kinds: [usize; N],
    base: &[f32],
    shares: &[f32; SHARES],
    numbers: &[[u16; PARTS]],
    predicted: &mut [f32],
) {
    let Ok(base) = <&[f32; TWO]>::try_from(base) else { return };
    for ((own, numbers), predicted) in instances.zip(numbers).zip(predicted) {
        let mut sum = 0.0;
        for code in own.as_chunks::<BYTES>().0 {
            let code = usize::from(u16::from_le_bytes(*code));
            let share = |thread: usize| {
                let part = code >> (BITS as usize * thread) & (PARTS - 1);
                shares[usize::from(numbers[part]) + (kinds[thread] & (MOST_KINDS - 1))]
            };
            let mut kept = share(0);
            for thread in 1..N {
                let other = share(thread);
                // Not f32::min, which spends as much again on numbers that are none.
                kept = if kept < other { kept } else { other };
            }
            sum += kept * base[code];
        }
        *predicted += sum;
    }
}

#[cfg(test)]
mod tests {
    use super::units;

    #[test]
    fn all_sums_of_units_are_different() {
        assert_eq!(units(3, 4), Some(vec![1, 11, 15]));
        assert_eq!(units(2, 4), Some(vec![1, 5]));
        assert_eq!(units(1, 8), Some(vec![1]));
        // One less than the sequence of Mian and Chowla: 1, 2, 4, 8, 13, 21, 31.
        assert_eq!(units(6, 2), Some(vec![1, 3, 7, 12, 20, 30]));
        assert_eq!(units(12, 4), None, "1,820 contents are no byte");
    }
}
