//! The fastest form of BlackBox: what all parts hold fits one register.
//!
//! Where there are at most 16 parts (of [`crate::Compiled`]) and instances have at most three threads, two bytes say where an
//! instance is: four bits for each thread's part. They index what its threads add to the sums of all parts, one byte each, so
//! that an instance is one addition of 16 bytes; and its base performance. The sums of a domain index its row of shares at once.
//!
//! Assignments go through each of the three steps (sums, rows, instances) in blocks: one's arithmetic fills the time in which another
//! waits for memory. Additions are in the order of the instances, as in [`crate::Compiled`]: the results are equal to the last bit.

/// Parts, at most.
const LANES: usize = 16;
/// Bits of a part's number.
const BITS: u32 = LANES.trailing_zeros();
/// Threads per instance, at most.
const MOST_THREADS: usize = 3;
/// Ways of placing an instance.
const CODES: usize = LANES.pow(MOST_THREADS as u32);
/// Bytes of an instance.
const BYTES: usize = 2;
/// Assignments that go through each step together.
const BLOCK: usize = 16;
/// Kinds of threads, at most.
const MOST_KINDS: usize = 16;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    /// By leaf, its part.
    parts: Vec<u8>,
    troupes: Vec<Troupe>,
    /// Shares by part and kind, for a domain whose parts have the sums a and b at a + b · `span`, each `width` long.
    rows: Vec<f32>,
    span: usize,
    per_domain: usize,
    stride: usize,
}

/// The instances of one application.
#[derive(Clone, Debug)]
pub(crate) struct Troupe {
    /// Its threads, instance after instance.
    pub(crate) order: Vec<usize>,
    /// The kinds of an instance's threads.
    pub(crate) kinds: Vec<usize>,
    units: Vec<[u8; LANES]>,
    base: Vec<f32>,
}

/// What predictions need room for: kept from one block to the next.
struct Scratch {
    sums: [[u8; LANES]; BLOCK],
    shares: [f32; LANES * MOST_KINDS * BLOCK],
}

impl Troupe {
    /// Threads in the order of packing, the kinds of an instance's, what a thread of each kind adds to the sum of its part, and the base
    /// performance of an instance in these parts.
    pub(crate) fn new(
        order: Vec<usize>,
        kinds: Vec<usize>,
        unit: impl Fn(usize) -> Option<u8>,
        base: impl Fn(&[usize]) -> f32,
    ) -> Option<Self> {
        if kinds.len() > MOST_THREADS {
            return None;
        }
        let mut troupe = Self { units: vec![[0; LANES]; CODES], base: vec![0.0; CODES], order, kinds };
        for code in 0..LANES.pow(troupe.kinds.len() as u32) {
            let parts: Vec<usize> =
                (0..troupe.kinds.len()).map(|thread| code >> (BITS * thread as u32) & (LANES - 1)).collect();
            for (part, kind) in parts.iter().zip(&troupe.kinds) {
                // More than a part has room for is no assignment, and is not asked for.
                troupe.units[code][*part] = troupe.units[code][*part].wrapping_add(unit(*kind)?);
            }
            troupe.base[code] = base(&parts);
        }
        Some(troupe)
    }
}

impl Narrow {
    /// `parts` by leaf, each below 16, those of a domain side by side; `row` gives the shares, `stride` per part, of a domain whose
    /// `per_domain` parts have these sums, which are below `span`. `None` where sums do not fit a byte.
    pub(crate) fn new<'a>(
        parts: Vec<u8>,
        troupes: Vec<Troupe>,
        (per_domain, stride, span): (usize, usize, usize),
        row: impl Fn(usize, usize) -> Option<&'a [f32]>,
    ) -> Option<Self> {
        if span > usize::from(u8::MAX) || parts.iter().any(|part| usize::from(*part) >= LANES) {
            return None;
        }
        let width = per_domain * stride;
        let seconds = if per_domain == 2 { span } else { 1 };
        let mut rows = vec![0.0; span * seconds * width];
        for (number, shares) in rows.chunks_exact_mut(width).enumerate() {
            if let Some(known) = row(number % span, number / span) {
                shares.copy_from_slice(known);
            }
        }
        Some(Self { parts, troupes, rows, span, per_domain, stride })
    }

    /// An assignment in packed form.
    pub(crate) fn pack(&self, leaves: &[u32]) -> Vec<u8> {
        let code = |instance: &[usize]| {
            let part =
                |(place, thread): (u32, &usize)| u16::from(self.parts[leaves[*thread] as usize]) << (BITS * place);
            (0..).zip(instance).map(part).sum::<u16>().to_le_bytes()
        };
        let of = |troupe: &Troupe| troupe.order.chunks(troupe.kinds.len().max(1)).flat_map(code).collect::<Vec<u8>>();
        self.troupes.iter().flat_map(of).collect()
    }

    /// Bytes of a packed assignment.
    pub(crate) fn bytes(&self) -> usize {
        self.troupes.iter().map(Troupe::bytes).sum()
    }

    /// Appends the predictions of packed assignments.
    pub(crate) fn predict_all(&self, packed: &[u8], predicted: &mut Vec<f32>) {
        let predict = match (self.per_domain, self.stride) {
            (1, 1) => Self::predict_block::<1, 1, 1, 16>,
            (1, 2) => Self::predict_block::<1, 2, 2, 32>,
            (1, 4) => Self::predict_block::<1, 4, 4, 64>,
            (1, 8) => Self::predict_block::<1, 8, 8, 128>,
            (1, _) => Self::predict_block::<1, 16, 16, 256>,
            (_, 1) => Self::predict_block::<2, 1, 2, 16>,
            (_, 2) => Self::predict_block::<2, 2, 4, 32>,
            (_, 4) => Self::predict_block::<2, 4, 8, 64>,
            (_, 8) => Self::predict_block::<2, 8, 16, 128>,
            _ => Self::predict_block::<2, 16, 32, 256>,
        };
        let mut scratch = Scratch { sums: [[0; LANES]; BLOCK], shares: [0.0; LANES * MOST_KINDS * BLOCK] };
        packed.chunks(self.bytes().max(1) * BLOCK).for_each(|block| predict(self, block, &mut scratch, predicted));
    }

    /// The predictions of up to [`BLOCK`] assignments, with `PARTS` parts per domain and `STRIDE` shares per part: `WIDTH` per domain, `USED` for
    /// all lanes. Lengths known when compiling are copied in one or two steps, and shares lie close together.
    #[inline(never)]
    fn predict_block<const PARTS: usize, const STRIDE: usize, const WIDTH: usize, const USED: usize>(
        &self,
        block: &[u8],
        scratch: &mut Scratch,
        predicted: &mut Vec<f32>,
    ) {
        let bytes = self.bytes();
        let count = block.len() / bytes;
        let (rows, _) = self.rows.as_chunks::<WIDTH>();
        scratch.sums[..count].fill([0; LANES]);
        let mut first = 0;
        for troupe in &self.troupes {
            let Ok(units) = <&[[u8; LANES]; CODES]>::try_from(&troupe.units[..]) else { return };
            for (packed, sums) in block.chunks_exact(bytes).zip(scratch.sums.iter_mut()) {
                let mut sum = *sums;
                for code in packed[first..first + troupe.bytes()].as_chunks::<BYTES>().0 {
                    let unit = &units[usize::from(u16::from_le_bytes(*code)) & (CODES - 1)];
                    sum = std::array::from_fn(|lane| sum[lane].wrapping_add(unit[lane]));
                }
                *sums = sum;
            }
            first += troupe.bytes();
        }
        for (sums, shares) in scratch.sums[..count].iter().zip(scratch.shares.as_chunks_mut::<USED>().0) {
            for (sums, shares) in sums.chunks_exact(PARTS).zip(shares.chunks_exact_mut(WIDTH)) {
                let second = if PARTS == 2 { usize::from(sums[1]) * self.span } else { 0 };
                shares.copy_from_slice(&rows[usize::from(sums[0]) + second]);
            }
        }
        for (packed, shares) in block.chunks_exact(bytes).zip(scratch.shares.as_chunks::<USED>().0) {
            let (mut rest, mut sum) = (packed, 0.0);
            for troupe in &self.troupes {
                let own;
                (own, rest) = rest.split_at(troupe.bytes());
                let Ok(base) = <&[f32; CODES]>::try_from(&troupe.base[..]) else { return };
                sum += match troupe.kinds[..] {
                    [a] => perform::<1, STRIDE, USED>(own, [a], base, shares),
                    [a, b] => perform::<2, STRIDE, USED>(own, [a, b], base, shares),
                    [a, b, c] => perform::<3, STRIDE, USED>(own, [a, b, c], base, shares),
                    _ => 0.0,
                };
            }
            predicted.push(sum);
        }
    }
}

impl Troupe {
    fn bytes(&self) -> usize {
        self.order.len() / self.kinds.len().max(1) * BYTES
    }
}

/// What all instances of an application do together.
#[inline(always)]
fn perform<const N: usize, const STRIDE: usize, const USED: usize>(
    own: &[u8],
    kinds: [usize; N],
    base: &[f32; CODES],
    shares: &[f32; USED],
) -> f32 {
    let mut sum = 0.0;
    for code in own.as_chunks::<BYTES>().0 {
        let code = usize::from(u16::from_le_bytes(*code)) & (CODES - 1);
        let mut kept = f32::INFINITY;
        for (thread, kind) in kinds.iter().enumerate() {
            let part = code >> (BITS as usize * thread) & (LANES - 1);
            let share = shares[part * STRIDE + (kind & (STRIDE - 1))];
            // Not f32::min, which spends as much again on numbers that are none.
            kept = if share < kept { share } else { kept };
        }
        sum += kept * base[code];
    }
    sum
}
