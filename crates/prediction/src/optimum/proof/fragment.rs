//! Lists the fragments of an instance that one domain can hold, and the holdings of a domain over
//! all instances. Also lists the ways in which fragments make an instance.

use crate::BlackBox;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Contents of a domain are listed up to this many, and as many ways to divide them among
/// instances.
const MOST_CONTENTS: usize = 40_000;
const MOST_HOLDINGS: usize = 400_000;
/// Ways of cutting an instance into fragments that are priced.
const MOST_CUTS: usize = 400;

/// A way in which the threads of an instance are spread over domains. It has the fragments by
/// number, sorted, and the best base performance of such an instance.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) application: usize,
    pub(crate) fragments: Vec<usize>,
    pub(crate) base: f64,
    /// In any place of these fragments, the base performance is this one.
    pub(crate) settled: bool,
}

/// What a domain holds, and which of its threads are of one instance.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    /// How the domain is built.
    pub(crate) build: usize,
    /// By slot, 0 or 1 + kind.
    pub(crate) held: Vec<u8>,
    /// Threads of each kind.
    pub(crate) counts: Vec<u8>,
    pub(crate) parts: Vec<InstanceThreads>,
}

/// The threads of one instance in a domain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InstanceThreads {
    pub(crate) fragment: usize,
    /// The smallest share that they keep there.
    pub(crate) share: f64,
    pub(crate) slots: Vec<usize>,
}

/// A fragment and the share that its threads keep: what has a price.
type Offer = (usize, f64);

/// All fragments, cuts and holdings of a workload.
#[derive(Clone, Debug)]
pub(crate) struct ProofFragments {
    /// How many threads each fragment has.
    pub(crate) sizes: Vec<usize>,
    pub(crate) cuts: Vec<Cut>,
    /// By fragment, the cuts that it is part of.
    pub(crate) cuts_of: Vec<Vec<usize>>,
    /// The empty ones come first.
    pub(crate) holdings: Vec<Holding>,
    /// For each holding, a number that identifies its build and its threads of each kind, from 0.
    pub(crate) groups: Vec<usize>,
    /// The fragments of all holdings, each once. They are few, and they are valued again and again.
    offers: Vec<Offer>,
    /// By holding, its number of parts. Then the numbers of their offers, part by part.
    parts: Vec<usize>,
    offered: Vec<u32>,
}

/// The number of every fragment, by the build of its domain and what it holds; kinds imply the
/// application.
type Numbers = HashMap<(usize, Vec<u8>), usize>;

impl ProofFragments {
    /// `None` if there are too many, or if `go_on` returns false. It is called before each content.
    pub(crate) fn new(blackbox: &BlackBox, mut go_on: impl FnMut() -> bool) -> Option<Self> {
        let mut numbers = Numbers::new();
        let mut cuts = Vec::new();
        for application in 0..blackbox.thread_kinds().applications() {
            cuts.extend(cut(blackbox, application, &mut numbers)?);
        }
        let counts = blackbox.thread_kinds().counts();
        let mut instances = vec![0; blackbox.thread_kinds().applications()];
        blackbox
            .thread_kinds()
            .instances()
            .iter()
            .for_each(|instance| instances[instance.application] += 1);
        let mut holdings = Vec::new();
        let mut all = Vec::new();
        for (number, build) in blackbox.local().builds().iter().enumerate() {
            all.extend(contents(build.arities(), &counts)?.into_iter().map(|held| (number, held)));
        }
        for (build, held) in all {
            if !go_on() {
                return None;
            }
            let shares = blackbox.slowdown().shares_within(build, &held);
            if held.iter().zip(&shares).any(|(held, (_, share))| *held > 0 && share.is_nan()) {
                // What the tables do not know of is predicted as 0.
                continue;
            }
            let mut division = Division {
                blackbox,
                build,
                numbers: &numbers,
                held: &held,
                shares: &shares,
                sets: Vec::new(),
                known: HashMap::new(),
                names: BTreeMap::new(),
                found: BTreeMap::new(),
            };
            division.divide(&mut vec![false; held.len()], &mut Vec::new());
            let number = |kind: usize| {
                held.iter().filter(|held| usize::from(**held) == 1 + kind).count() as u8
            };
            let counts: Vec<u8> = (0..counts.len()).map(number).collect();
            for sets in division.found.values() {
                let parts: Vec<InstanceThreads> =
                    sets.iter().map(|set| division.sets[*set].1.clone()).collect();
                let of = |application: usize| {
                    parts
                        .iter()
                        .filter(|part| division.application(part.slots[0]) == application)
                        .count()
                };
                if (0..instances.len()).all(|application| of(application) <= instances[application])
                {
                    holdings.push(Holding {
                        build,
                        held: held.clone(),
                        counts: counts.clone(),
                        parts,
                    });
                }
            }
            if holdings.len() > MOST_HOLDINGS {
                return None;
            }
        }
        holdings.sort_by_key(|holding| holding.parts.len());
        let mut sizes = vec![0; numbers.len()];
        numbers.iter().for_each(|((_, held), number)| {
            sizes[*number] = held.iter().filter(|held| **held > 0).count()
        });
        let part_of = |fragment: usize| {
            (0..cuts.len()).filter(|cut| cuts[*cut].fragments.contains(&fragment)).collect()
        };
        let cuts_of = (0..sizes.len()).map(part_of).collect();
        let mut known: HashMap<(usize, Vec<u8>), usize> = HashMap::new();
        let group = |holding: &Holding| {
            let next = known.len();
            *known.entry((holding.build, holding.counts.clone())).or_insert(next)
        };
        let groups = holdings.iter().map(group).collect();
        let mut numbered: HashMap<(usize, u64), u32> = HashMap::new();
        let mut offers = Vec::new();
        let offer = |part: &InstanceThreads| {
            *numbered.entry((part.fragment, part.share.to_bits())).or_insert_with(|| {
                offers.push((part.fragment, part.share));
                offers.len() as u32 - 1
            })
        };
        let offered = holdings.iter().flat_map(|holding| &holding.parts).map(offer).collect();
        let parts = holdings.iter().map(|holding| holding.parts.len()).collect();
        Some(Self { sizes, cuts, cuts_of, holdings, groups, offers, parts, offered })
    }

    /// What every holding costs where a fragment whose threads keep a share has this price.
    pub(crate) fn values(&self, price: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let prices: Vec<f64> =
            self.offers.iter().map(|(fragment, share)| price(*fragment, *share)).collect();
        let mut offered = self.offered.iter();
        let value = |parts: &usize| {
            offered.by_ref().take(*parts).map(|offer| prices[*offer as usize]).sum()
        };
        self.parts.iter().map(value).collect()
    }
}

/// The ways in which an instance of an application can be cut into fragments, which are numbered as
/// they come.
fn cut(blackbox: &BlackBox, application: usize, numbers: &mut Numbers) -> Option<Vec<Cut>> {
    let local = blackbox.local();
    let roster = blackbox.thread_kinds().roster(application);
    let mut known: BTreeMap<Vec<usize>, (f64, f64)> = BTreeMap::new();
    for (assignment, base) in blackbox.base(application).entries() {
        let mut domains: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (kind, leaf) in roster.iter().zip(assignment.leaves()) {
            let domain = local.domain_of(*leaf);
            let slots = local.slots(domain);
            let first = *leaf as usize * local.per_context() - slots.start;
            let held = domains.entry(domain).or_insert_with(|| vec![0; slots.len()]);
            let free =
                held[first..first + local.per_context()].iter().position(|held| *held == 0)?;
            held[first + free] = 1 + *kind as u8;
        }
        let number = |(domain, mut held): (usize, Vec<u8>)| {
            let build = local.build(domain);
            arrange(&mut held, local.builds()[build].arities());
            let next = numbers.len();
            *numbers.entry((build, held)).or_insert(next)
        };
        let mut fragments: Vec<usize> = domains.into_iter().map(number).collect();
        fragments.sort_unstable();
        let range = known.entry(fragments).or_insert((base, base));
        *range = (range.0.min(base), range.1.max(base));
        if known.len() > MOST_CUTS {
            return None;
        }
    }
    let cut = |(fragments, (least, most))| Cut {
        application,
        fragments,
        base: most,
        settled: least == most,
    };
    Some(known.into_iter().map(cut).collect())
}

/// Puts a domain's content in canonical order. Contents that differ by exchanges of alike parts get
/// the same order.
fn arrange(held: &mut [u8], arities: &[usize]) {
    let Some((arity, inner)) = arities.split_first() else { return };
    let width = held.len() / arity;
    held.chunks_mut(width).for_each(|child| arrange(child, inner));
    let mut children: Vec<Vec<u8>> = held.chunks(width).map(<[u8]>::to_vec).collect();
    children.sort_by(|a, b| b.cmp(a));
    held.copy_from_slice(&children.concat());
}

/// All contents of a domain with no more threads of each kind than there are.
fn contents(arities: &[usize], counts: &[usize]) -> Option<Vec<Vec<u8>>> {
    let Some((arity, inner)) = arities.split_first() else {
        let present =
            (0..counts.len()).filter(|kind| counts[*kind] > 0).map(|kind| vec![1 + kind as u8]);
        return Some(std::iter::once(vec![0]).chain(present).collect());
    };
    let mut children = contents(inner, counts)?;
    children.sort();
    let mut all = vec![(Vec::new(), 0)];
    for place in 0..*arity {
        let mut longer = Vec::new();
        for (held, last) in &all {
            // The first child has the greatest content, and none is greater than the one before it.
            let candidates = if place == 0 { &children[..] } else { &children[..=*last] };
            for (index, child) in candidates.iter().enumerate() {
                let held: Vec<u8> = [&held[..], child].concat();
                let enough = |kind: usize| {
                    held.iter().filter(|held| usize::from(**held) == kind + 1).count()
                        <= counts[kind]
                };
                if (0..counts.len()).all(enough) {
                    longer.push((held, index));
                }
            }
            if longer.len() > MOST_CONTENTS {
                return None;
            }
        }
        all = longer;
    }
    Some(all.into_iter().map(|(held, _)| held).collect())
}

/// A fragment, and of its threads what they are and what is around them.
type Name = (usize, Vec<(u8, usize)>);

/// The ways in which a content can be divided among instances.
struct Division<'a> {
    blackbox: &'a BlackBox,
    /// Of the domain.
    build: usize,
    numbers: &'a Numbers,
    held: &'a [u8],
    /// Layout and share by slot.
    shares: &'a [(usize, f64)],
    /// The parts found so far, each with the number of its name. `known` finds them by their slots.
    /// `None` for what no instance can have in a domain.
    sets: Vec<(usize, InstanceThreads)>,
    known: HashMap<Vec<usize>, Option<usize>>,
    names: BTreeMap<Name, usize>,
    /// By the names of their parts, the parts.
    found: BTreeMap<Vec<usize>, Vec<usize>>,
}

impl Division<'_> {
    /// Divides what these parts do not take.
    fn divide(&mut self, taken: &mut Vec<bool>, parts: &mut Vec<usize>) {
        let Some(first) = (0..self.held.len()).find(|slot| self.held[*slot] > 0 && !taken[*slot])
        else {
            let mut sorted = parts.clone();
            sorted.sort_by_key(|set| self.sets[*set].0);
            let names = sorted.iter().map(|set| self.sets[*set].0).collect();
            self.found.entry(names).or_insert(sorted);
            return;
        };
        let application = self.application(first);
        let mut room = vec![0usize; self.blackbox.thread_kinds().kinds().len()];
        self.blackbox.thread_kinds().roster(application).iter().for_each(|kind| room[*kind] += 1);
        let mut partners = BTreeSet::new();
        self.extend(&mut vec![first], first + 1, &mut room, taken, &mut partners);
        for slots in partners {
            let Some(set) = self.set(&slots) else { continue };
            slots.iter().for_each(|slot| taken[*slot] = true);
            parts.push(set);
            self.divide(taken, parts);
            parts.pop();
            slots.iter().for_each(|slot| taken[*slot] = false);
        }
    }

    /// The part on these slots, if an instance can have that.
    fn set(&mut self, slots: &[usize]) -> Option<usize> {
        if let Some(known) = self.known.get(slots) {
            return *known;
        }
        let mut fragment = vec![0; self.held.len()];
        slots.iter().for_each(|slot| fragment[*slot] = self.held[*slot]);
        arrange(&mut fragment, self.arities());
        let set = self.numbers.get(&(self.build, fragment)).map(|&fragment| {
            let mut threads: Vec<_> =
                slots.iter().map(|slot| (self.held[*slot], self.shares[*slot].0)).collect();
            threads.sort_unstable();
            let next = self.names.len();
            let name = *self.names.entry((fragment, threads)).or_insert(next);
            let share = slots.iter().map(|slot| self.shares[*slot].1).fold(f64::INFINITY, f64::min);
            self.sets.push((name, InstanceThreads { fragment, share, slots: slots.to_vec() }));
            self.sets.len() - 1
        });
        self.known.insert(slots.to_vec(), set);
        set
    }

    fn arities(&self) -> &[usize] {
        self.blackbox.local().builds()[self.build].arities()
    }

    fn application(&self, slot: usize) -> usize {
        self.blackbox.thread_kinds().kinds()[usize::from(self.held[slot]) - 1].application
    }

    /// All sets of slots that begin with `slots` and could be of one instance.
    fn extend(
        &self,
        slots: &mut Vec<usize>,
        from: usize,
        room: &mut [usize],
        taken: &[bool],
        sets: &mut BTreeSet<Vec<usize>>,
    ) {
        let kind = |slot: usize| usize::from(self.held[slot]) - 1;
        let last = kind(slots[slots.len() - 1]);
        if room[last] == 0 {
            return;
        }
        room[last] -= 1;
        sets.insert(slots.clone());
        for slot in from..self.held.len() {
            // Threads of one kind side by side are the same to all others, so it takes the first
            // free one.
            let innermost = self.arities().last().copied().unwrap_or(1);
            let same = slot % innermost > 0 && self.held[slot - 1] == self.held[slot];
            let passed_over = same && !taken[slot - 1] && slots[slots.len() - 1] != slot - 1;
            if self.held[slot] == 0 || taken[slot] || passed_over {
                continue;
            }
            slots.push(slot);
            self.extend(slots, slot + 1, room, taken, sets);
            slots.pop();
        }
        room[last] += 1;
    }
}
