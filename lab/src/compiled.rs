//! BlackBox, laid out for speed: tens of millions of whole predictions a second.
//!
//! Searching and drawing by prediction needs many cheap predictions. Here the tables of a
//! [`BlackBox`] are arrays that a few additions index. An assignment is *packed*: one byte per
//! thread.
//!
//! * A *part* is the innermost group of contexts within a core-local domain. Examples are a pipe of
//!   the UltraSPARC T2 and a core with two contexts. Which of its contexts a thread has makes no
//!   difference. The packed form of a thread is its part times the *stride*. The part is counted
//!   with every level's digit padded to whole bits. The stride is the number of kinds, rounded up
//!   to a power of two.
//! * What a part holds is a sum. If each part has `a` contexts, a thread of kind k adds (a + 1)^k.
//!   The sum names the content. The contents of one or two parts name a row of shares, one per part
//!   and kind. Rows are laid side by side, so that a thread's share stands where its packed byte
//!   and its kind say.
//! * An instance's base performance depends on the domains its threads share. These follow from the
//!   bits in which their parts differ. The index is the exclusive or of each thread's part with the
//!   first one's.
//!
//! It is the same prediction as [`BlackBox::performance`], in single precision. A compiled form
//! exists for machines of one regular tree whose core-local domain is one or two parts. It needs
//! one thread per context, few kinds and few threads per instance.

use pinwise_prediction::{BlackBox, CoreLocal, Predictor};
use pinwise_topology::{Assignment, PerContext, SharingTree, Space};

/// Sums that name contents, at most.
const MOST_SUMS: usize = 1 << 16;
/// Shares in all rows, at most: beyond, memory decides the speed and nothing is gained.
const MOST_SHARES: usize = 1 << 22;
/// Entries of a base table, at most.
const MOST_BASE: usize = 1 << 16;
/// Values of a packed byte.
const BYTES: usize = 256;
/// Kinds of threads, at most.
const MOST_KINDS: usize = 16;

/// A predictor of packed assignments. See the module.
#[derive(Clone, Debug)]
pub struct Compiled {
    packing: Packing,
    /// Threads in the order of packing: by application, then instance.
    order: Vec<usize>,
    applications: Vec<Application>,
    /// The content of a part by its sum.
    contents: Vec<u16>,
    /// How many contents a part has.
    content_count: usize,
    /// `rows[content of the first part][content of the second][part][kind]`.
    rows: Vec<f32>,
}

/// The instances of one application.
#[derive(Clone, Debug)]
struct Application {
    /// For each thread of an instance what it adds to the sum of its part, and its kind.
    roster: Vec<(u16, usize)>,
    /// All their threads, in bytes of a packed assignment.
    bytes: usize,
    base: Vec<f32>,
}

/// How contexts become bytes.
#[derive(Clone, Debug)]
struct Packing {
    /// By leaf.
    packed: Vec<u8>,
    /// Contexts per part.
    slots: usize,
    /// Parts per core-local domain, 1 or 2.
    per_domain: usize,
    stride: usize,
    /// Part numbers are below this power of two.
    parts: usize,
}

/// What a prediction needs room for: kept from one to the next.
#[derive(Clone, Debug)]
struct Scratch {
    sums: [u16; BYTES],
    shares: [f32; BYTES + MOST_KINDS],
}

impl Packing {
    fn new(tree: &SharingTree, local: &CoreLocal, kinds: usize) -> Option<Self> {
        let [build] = local.builds() else { return None };
        let (per_domain, slots) = match build.arities() {
            [] => (1, 1),
            [slots] => (1, *slots),
            [parts, slots] if *parts <= 2 => (*parts, *slots),
            _ => return None,
        };
        // Where one thread alone has one way to be placed, every domain can take the place of every
        // other.
        let one = Space::new(tree.clone(), 1, PerContext::AtMost(1)).ok()?;
        if local.per_context() > 1 || one.count() != 1u32.into() {
            return None;
        }
        let stride = kinds.next_power_of_two();
        let leaves = tree.leaves().len();
        let mut packed = vec![0; leaves];
        let (mut inner, mut parts) = (slots, 1);
        for width in
            tree.around(0).iter().map(|(_, leaves)| leaves.len()).filter(|width| *width > slots)
        {
            let arity = width / inner;
            packed
                .iter_mut()
                .enumerate()
                .for_each(|(leaf, packed)| *packed += leaf / inner % arity * parts);
            parts *= arity.next_power_of_two();
            inner = width;
        }
        let fits = kinds <= MOST_KINDS && parts * stride <= BYTES;
        let packed = packed.into_iter().map(|part| (part * stride) as u8).collect();
        fits.then_some(Self { packed, slots, per_domain, stride, parts })
    }

    /// The index of an instance in its base table: its parts relative to the first one's, as
    /// digits.
    #[inline(always)]
    fn base(&self, packed: &[u8]) -> usize {
        let (shift, bits) = (self.stride.trailing_zeros(), self.parts.trailing_zeros());
        packed[1..]
            .iter()
            .fold(0, |index, byte| index << bits | usize::from(byte ^ packed[0]) >> shift)
    }
}

impl Compiled {
    /// `blackbox` over `tree`; `None` if it has no compiled form: see the module.
    pub fn new(blackbox: &BlackBox, tree: &SharingTree) -> Option<Self> {
        let (thread_kinds, local) = (blackbox.thread_kinds(), blackbox.local());
        let kinds = thread_kinds.kinds().len();
        let packing = Packing::new(tree, local, kinds)?;
        let radix = packing.slots + 1;
        let sums =
            radix.checked_pow(u32::try_from(kinds).ok()?).filter(|sums| *sums <= MOST_SUMS)?;
        // The contents of a part, as sums.
        let count = |sum: usize, kind: usize| sum / radix.pow(kind as u32) % radix;
        let fits =
            |sum: &usize| (0..kinds).map(|kind| count(*sum, kind)).sum::<usize>() <= packing.slots;
        let possible: Vec<usize> = (0..sums).filter(fits).collect();
        let mut contents = vec![0; sums];
        for (content, sum) in possible.iter().enumerate() {
            contents[*sum] = content as u16;
        }
        let slots_of = |sum: usize| {
            let mut slots: Vec<usize> =
                (0..kinds).flat_map(|kind| vec![kind + 1; count(sum, kind)]).collect();
            slots.resize(packing.slots, 0);
            slots
        };
        let rows = possible.len().checked_pow(packing.per_domain as u32)?;
        if rows.checked_mul(packing.per_domain * packing.stride)? > MOST_SHARES {
            return None;
        }
        let layouts = blackbox.slowdown().layouts();
        let mut around = vec![0; packing.per_domain * packing.slots];
        let mut shares = Vec::with_capacity(rows * packing.per_domain * packing.stride);
        for row in 0..rows {
            let own = if packing.per_domain == 2 {
                vec![row / possible.len(), row % possible.len()]
            } else {
                vec![row]
            };
            let held: Vec<usize> =
                own.into_iter().flat_map(|content| slots_of(possible[content])).collect();
            layouts.around(0, &held, &mut around);
            for (part, held) in held.chunks(packing.slots).enumerate() {
                // What is not in a part is not asked for there; what was not measured predicts 0.
                let share = |kind: usize| {
                    let slot = held.iter().position(|held| *held == kind + 1)?;
                    blackbox.slowdown().share(kind, around[part * packing.slots + slot])
                };
                shares.extend((0..packing.stride).map(|kind| share(kind).unwrap_or(0.0) as f32));
            }
        }
        let (mut order, mut applications) = (Vec::new(), Vec::new());
        for application in 0..thread_kinds.applications() {
            let before = order.len();
            let instances = thread_kinds
                .instances()
                .iter()
                .filter(|instance| instance.application == application);
            order.extend(instances.flat_map(|instance| &instance.threads));
            let thread = |kind: usize| (radix.pow(kind as u32) as u16, kind);
            applications.push(Application {
                roster: thread_kinds.roster(application).into_iter().map(thread).collect(),
                bytes: order.len() - before,
                base: base(blackbox, application, &packing)?,
            });
        }
        Some(Self {
            packing,
            order,
            applications,
            contents,
            content_count: possible.len(),
            rows: shares,
        })
    }

    /// An assignment in packed form: one byte per thread.
    ///
    /// # Panics
    /// If there are fewer leaves than threads or a leaf does not exist.
    pub fn pack(&self, leaves: &[u32]) -> Vec<u8> {
        self.order.iter().map(|&thread| self.packing.packed[leaves[thread] as usize]).collect()
    }

    /// Appends the performance of each packed assignment in `packed` to `predicted`. They stand one
    /// after the other, each with at most one thread per context. An instance for which a table has
    /// no entry counts as 0.
    ///
    /// # Panics
    /// If their bytes are not those of whole assignments.
    pub fn predict_all(&self, packed: &[u8], predicted: &mut Vec<f32>) {
        let bytes = self.order.len();
        let assignments = packed.chunks_exact(bytes.max(1));
        assert!(assignments.remainder().is_empty(), "whole assignments as they were packed");
        let mut scratch = Scratch { sums: [0; BYTES], shares: [0.0; BYTES + MOST_KINDS] };
        // Rows of a length that is known when compiling are copied in one or two steps.
        let predict = match (self.packing.per_domain, self.packing.stride) {
            (1, 1) => Self::predict_one::<1, 1>,
            (1, 2) => Self::predict_one::<1, 2>,
            (1, 4) => Self::predict_one::<1, 4>,
            (1, 8) => Self::predict_one::<1, 8>,
            (1, _) => Self::predict_one::<1, 16>,
            (_, 1) => Self::predict_one::<2, 2>,
            (_, 2) => Self::predict_one::<2, 4>,
            (_, 4) => Self::predict_one::<2, 8>,
            (_, 8) => Self::predict_one::<2, 16>,
            _ => Self::predict_one::<2, 32>,
        };
        predicted.extend(assignments.map(|packed| predict(self, packed, &mut scratch)));
    }

    /// One prediction; `PARTS` per domain, rows of `WIDTH`.
    fn predict_one<const PARTS: usize, const WIDTH: usize>(
        &self,
        packed: &[u8],
        scratch: &mut Scratch,
    ) -> f32 {
        let Scratch { sums, shares } = scratch;
        let used = self.packing.parts * self.packing.stride;
        sums[..used].fill(0);
        let mut rest = packed;
        for application in &self.applications {
            let own;
            (own, rest) = rest.split_at(application.bytes);
            match &application.roster[..] {
                [a] => tally(own, [*a], sums),
                [a, b] => tally(own, [*a, *b], sums),
                [a, b, c] => tally(own, [*a, *b, *c], sums),
                roster => {
                    for instance in own.chunks_exact(roster.len()) {
                        instance
                            .iter()
                            .zip(roster)
                            .for_each(|(byte, (unit, _))| sums[usize::from(*byte)] += unit);
                    }
                }
            }
        }
        for (sums, shares) in sums[..used].chunks_exact(WIDTH).zip(shares.chunks_exact_mut(WIDTH)) {
            let content =
                |part: usize| usize::from(self.contents[usize::from(sums[part * WIDTH / PARTS])]);
            let row =
                if PARTS == 2 { content(0) * self.content_count + content(1) } else { content(0) };
            shares.copy_from_slice(&self.rows[row * WIDTH..][..WIDTH]);
        }
        let (mut rest, mut sum) = (packed, 0.0);
        for application in &self.applications {
            let own;
            (own, rest) = rest.split_at(application.bytes);
            sum += match &application.roster[..] {
                [a] => self.perform(own, [*a], &application.base, shares),
                [a, b] => self.perform(own, [*a, *b], &application.base, shares),
                [a, b, c] => self.perform(own, [*a, *b, *c], &application.base, shares),
                roster => {
                    let instances = own.chunks_exact(roster.len());
                    instances
                        .map(|own| {
                            application.base[self.packing.base(own)] * kept(own, roster, shares)
                        })
                        .sum()
                }
            };
        }
        sum
    }

    #[inline(always)]
    fn perform<const N: usize>(
        &self,
        bytes: &[u8],
        roster: [(u16, usize); N],
        base: &[f32],
        shares: &[f32; BYTES + MOST_KINDS],
    ) -> f32 {
        let instances = bytes.as_chunks::<N>().0;
        instances.iter().map(|own| base[self.packing.base(own)] * kept(own, &roster, shares)).sum()
    }
}

/// Adds the threads of instances of `N` to the sums of their parts.
#[inline(always)]
fn tally<const N: usize>(bytes: &[u8], roster: [(u16, usize); N], sums: &mut [u16; BYTES]) {
    for instance in bytes.as_chunks::<N>().0 {
        for thread in 0..N {
            sums[usize::from(instance[thread])] += roster[thread].0;
        }
    }
}

/// The smallest share that the threads of an instance keep.
#[inline(always)]
fn kept(own: &[u8], roster: &[(u16, usize)], shares: &[f32; BYTES + MOST_KINDS]) -> f32 {
    let share = |(byte, (_, kind)): (&u8, &(u16, usize))| {
        shares[usize::from(*byte) + (kind & (MOST_KINDS - 1))]
    };
    // Not f32::min, which spends as much again on numbers that are none.
    own.iter()
        .zip(roster)
        .map(share)
        .fold(f32::INFINITY, |least, share| if share < least { share } else { least })
}

impl Predictor for Compiled {
    fn predict(&self, leaves: &[u32]) -> f64 {
        let mut predicted = Vec::with_capacity(1);
        self.predict_all(&self.pack(leaves), &mut predicted);
        predicted.first().copied().map_or(0.0, f64::from)
    }
}

/// The base table of an application by the parts of its threads relative to the first one's.
fn base(blackbox: &BlackBox, application: usize, packing: &Packing) -> Option<Vec<f32>> {
    let threads = blackbox.thread_kinds().roster(application).len();
    let entries = packing.parts.checked_pow(u32::try_from(threads).ok()?.saturating_sub(1))?;
    if entries > MOST_BASE {
        return None;
    }
    let mut leaves_of: Vec<Vec<u32>> = vec![Vec::new(); packing.parts];
    for (leaf, byte) in (0..).zip(&packing.packed) {
        leaves_of[usize::from(*byte) / packing.stride].push(leaf);
    }
    let performance = |entry: usize| {
        let apart = (1..threads)
            .rev()
            .map(|thread| entry / packing.parts.pow(thread as u32 - 1) % packing.parts);
        let apart: Vec<usize> = std::iter::once(0).chain(apart).collect();
        // If a level's number of domains is no power of two, some first parts have none at some
        // distance.
        (0..packing.parts).find_map(|first| {
            let mut free = leaves_of.clone();
            let leaves =
                apart.iter().map(|apart| free[first ^ apart].pop()).collect::<Option<_>>()?;
            blackbox.base(application).performance(&Assignment::new(leaves))
        })
    };
    Some((0..entries).map(|entry| performance(entry).unwrap_or(0.0) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::{Thread, Workload};
    use pinwise_prediction::{BaseSpace, BaseTable, SlowdownTable, ThreadKinds};
    use pinwise_topology::{Alike, DomainKind, Machine, Random};

    /// Tables of random numbers; a word of `instances` names the roles of an instance.
    fn blackbox(shape: &str, level: DomainKind, instances: &str) -> (BlackBox, SharingTree) {
        let tree = SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure);
        let threads = instances.split(' ').enumerate().flat_map(|(instance, roles)| {
            roles.chars().map(move |role| {
                Thread::new(format!("{role}{instance}"), role.to_string(), instance)
            })
        });
        let kinds =
            ThreadKinds::new(&Workload { name: instances.into(), threads: threads.collect() });
        let local = CoreLocal::new(&tree, level, 1).unwrap();
        let mut random = Random::new(1);
        let mut base = |application| {
            let space = BaseSpace::new(&tree, &kinds, application, 1).unwrap();
            BaseTable::fill(space, |_| Ok::<f64, ()>(1.0 + random.unit())).unwrap()
        };
        let bases = (0..kinds.applications()).map(&mut base).collect();
        let mut slowdown = SlowdownTable::new(&kinds, &local).unwrap();
        slowdown.fill(&kinds, &local, |_| Ok::<f64, ()>(0.5 + random.unit())).unwrap();
        (BlackBox::new(kinds, local, bases, slowdown), tree)
    }

    #[test]
    fn it_predicts_as_the_tables_do() {
        for (shape, level, instances) in [
            ("8x2x4", DomainKind::Package, "RPT RPT RPT RPT RPT RPT RPT RPT"),
            ("8x2x4", DomainKind::Core, "RPT RPT AB AB"),
            ("6x2", DomainKind::Core, "RW RW RW"),
            ("3x3x2", DomainKind::Core, "RWW RWW"),
            ("4x2x3", DomainKind::Package, "RPT RPT RPT"),
        ] {
            let (blackbox, tree) = blackbox(shape, level, instances);
            let compiled = Compiled::new(&blackbox, &tree).unwrap();
            let threads = blackbox.thread_kinds().threads();
            let space = Space::new(tree, threads, PerContext::AtMost(1)).unwrap();
            let mut random = Random::new(2);
            let drawn: Vec<Assignment> = (0..500).map(|_| space.sample(&mut random)).collect();
            let packed: Vec<u8> =
                drawn.iter().flat_map(|assignment| compiled.pack(assignment.leaves())).collect();
            let mut predicted = Vec::new();
            compiled.predict_all(&packed, &mut predicted);
            for (assignment, together) in drawn.iter().zip(predicted) {
                let slow = blackbox.performance(assignment.leaves()).unwrap();
                let fast = compiled.predict(assignment.leaves());
                assert_eq!(fast, f64::from(together), "{shape} {instances}");
                // Single precision: half a unit in the last place (2^-24) for each of two entries,
                // their product, and eight sums.
                assert!(
                    (fast / slow - 1.0).abs() < 11.0 * 2f64.powi(-24),
                    "{shape} {instances}: {fast} {slow}"
                );
            }
        }
    }
}
