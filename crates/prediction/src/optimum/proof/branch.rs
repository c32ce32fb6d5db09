//! The branching of the proof: goes through all assignments that prices do not rule out.
//!
//! Each domain in order gets a holding. What is chosen and the most that the rest can be worth must
//! stay above a floor. Holdings come in one order, so that no set of them comes twice. When all
//! domains have one, their fragments are joined to instances in every way that stays above the
//! floor. What the prices pay for an instance beyond its performance is subtracted from the room
//! above the floor.

use super::completion::Completion;
use super::fragment::{Cut, InstanceThreads, ProofFragments};
use super::price::Prices;
use crate::BlackBox;
use crate::optimum::TopN;
use crate::optimum::incremental::Incremental;

/// Holdings and parts looked at between questions whether to go on. They take about a millisecond,
/// however many there are at one node.
pub(crate) const ASK: u64 = 1 << 18;
/// Differences below this share of the floor do not count. Sums of the same numbers differ that
/// much by their order.
pub(crate) const ROUNDING: f64 = 1e-11;

/// What is gone through, and what for.
pub(crate) struct ProofBranch<'a> {
    pub(crate) blackbox: &'a BlackBox,
    pub(crate) fragments: &'a ProofFragments,
    pub(crate) prices: &'a Prices,
    pub(crate) completion: &'a Completion,
    /// The price of every holding.
    pub(crate) values: &'a [f64],
    /// The holdings that are tried, by build.
    pub(crate) candidates: &'a [Vec<usize>],
    /// The domains in the order in which they are given holdings, those of one build one after the
    /// other.
    pub(crate) domains: &'a [usize],
    /// Their builds.
    pub(crate) builds: &'a [usize],
}

/// What came of it.
pub(crate) struct BranchFindings<'a, 'b> {
    pub(crate) top: &'a mut TopN,
    pub(crate) moving: &'a mut Incremental<'b>,
    /// What is not above this is not looked for.
    pub(crate) floor: f64,
    /// The highest possible prediction of an assignment that was neither looked at nor ruled out.
    pub(crate) unresolved: f64,
    /// The highest possible prediction of an assignment that holds the same as one looked at, in
    /// other domains.
    pub(crate) elsewhere: f64,
    pub(crate) nodes: u64,
    /// Holdings and parts looked at so far,
    pub(crate) looked: u64,
    /// and at how many it is asked next whether to go on.
    pub(crate) ask_at: u64,
    pub(crate) ended: bool,
    /// Asked now and then, with the nodes so far, what was looked at, and the best prediction.
    pub(crate) go_on: &'a mut dyn FnMut(u64, u64, f64) -> bool,
}

/// A part of a holding that was given to a domain.
#[derive(Clone, Copy)]
struct Given {
    domain: usize,
    /// The index of a holding in [`ProofFragments::holdings`].
    holding: usize,
    part: usize,
    price: f64,
}

/// Parts to be joined to instances.
struct Joining {
    given: Vec<Given>,
    taken: Vec<bool>,
    /// Parts of the instances so far, by position in `given`, and their cuts.
    instances: Vec<(usize, Vec<usize>)>,
}

impl BranchFindings<'_, '_> {
    /// What has to be exceeded to matter.
    fn bar(&self) -> f64 {
        self.floor.max(self.top.threshold()) * (1.0 + ROUNDING)
    }

    /// Counts a node, and the holdings or parts looked at there.
    fn count(&mut self, looked: usize) {
        self.nodes += 1;
        self.looked += 1 + looked as u64;
        if self.looked >= self.ask_at {
            self.ask_at = self.looked + ASK;
            self.ended |= !(self.go_on)(self.nodes, self.looked, self.top.best());
        }
    }
}

impl ProofBranch<'_> {
    /// Gives the domains from `domain` on holdings, the first from candidate `from` on. `worth` is
    /// what those given before cost, with all that is paid besides.
    pub(crate) fn give(
        &self,
        domain: usize,
        from: usize,
        left: &[u8],
        worth: f64,
        given: &mut Vec<usize>,
        findings: &mut BranchFindings<'_, '_>,
    ) {
        let candidates = self.builds.get(domain).map_or(&[][..], |build| &self.candidates[*build]);
        findings.count(candidates.len() - from);
        if findings.ended {
            return;
        }
        let remaining = self.builds.len() - domain;
        if remaining == 0 {
            if left.iter().all(|left| *left == 0) {
                self.join_all(given, worth, findings);
            }
            return;
        }
        let mut rest = left.to_vec();
        for (position, &candidate) in candidates.iter().enumerate().skip(from) {
            let holding = &self.fragments.holdings[candidate];
            if holding.counts.iter().zip(left).any(|(taken, left)| taken > left) {
                continue;
            }
            rest.iter_mut()
                .zip(left)
                .zip(&holding.counts)
                .for_each(|((rest, left), taken)| *rest = left - taken);
            let worth = worth + self.values[candidate];
            if worth + self.completion.most(remaining - 1, &rest) > findings.bar() {
                given.push(candidate);
                // Within a build, no set of holdings comes twice.
                let same = self.builds.get(domain + 1) == self.builds.get(domain);
                self.give(
                    domain + 1,
                    if same { position } else { 0 },
                    &rest,
                    worth,
                    given,
                    findings,
                );
                given.pop();
                if findings.ended {
                    return;
                }
            }
        }
    }

    fn join_all(&self, holdings: &[usize], worth: f64, findings: &mut BranchFindings<'_, '_>) {
        let mut given = Vec::new();
        for (domain, &holding) in holdings.iter().enumerate() {
            for (part, InstanceThreads { fragment, share, .. }) in
                self.fragments.holdings[holding].parts.iter().enumerate()
            {
                given.push(Given {
                    domain,
                    holding,
                    part,
                    price: self.prices.of(*fragment, *share),
                });
            }
        }
        let taken = vec![false; given.len()];
        self.join(&mut Joining { given, taken, instances: Vec::new() }, worth, findings);
    }

    fn part(&self, given: &Given) -> &InstanceThreads {
        &self.fragments.holdings[given.holding].parts[given.part]
    }

    /// Joins the first part that is left with others, in every way. `worth` is what all instances
    /// can do at most.
    fn join(&self, joining: &mut Joining, worth: f64, findings: &mut BranchFindings<'_, '_>) {
        findings.count(joining.given.len());
        if findings.ended {
            return;
        }
        let Some(first) = joining.taken.iter().position(|taken| !taken) else {
            self.enter(joining, worth, findings);
            return;
        };
        let fragment = self.part(&joining.given[first]).fragment;
        joining.taken[first] = true;
        for &cut in &self.fragments.cuts_of[fragment] {
            let mut wanted = self.fragments.cuts[cut].fragments.clone();
            wanted.remove(wanted.iter().position(|other| *other == fragment).unwrap_or_default());
            self.partners(joining, cut, &wanted, &mut vec![first], worth, findings);
        }
        joining.taken[first] = false;
    }

    /// Finds parts for the wanted fragments of a cut, all in different domains.
    fn partners(
        &self,
        joining: &mut Joining,
        cut: usize,
        wanted: &[usize],
        chosen: &mut Vec<usize>,
        worth: f64,
        findings: &mut BranchFindings<'_, '_>,
    ) {
        let Some((fragment, later)) = wanted.split_first() else {
            let Cut { application, base, .. } = self.fragments.cuts[cut];
            let paid: f64 = chosen.iter().map(|part| joining.given[*part].price).sum();
            let kept = chosen
                .iter()
                .map(|part| self.part(&joining.given[*part]).share)
                .fold(f64::INFINITY, f64::min);
            let worth = worth - (paid + self.prices.rest[application] - base * kept);
            if worth > findings.bar() {
                joining.instances.push((cut, chosen.clone()));
                self.join(joining, worth, findings);
                joining.instances.pop();
            }
            return;
        };
        // Parts are interchangeable if their domains hold the same and have the same left.
        let mut tried = Vec::new();
        // Equal fragments are chosen in ascending order.
        let after = chosen[1..]
            .last()
            .filter(|last| self.part(&joining.given[**last]).fragment == *fragment);
        for candidate in after.map_or(0, |last| last + 1)..joining.given.len() {
            let given = joining.given[candidate];
            let elsewhere =
                || chosen.iter().all(|other| joining.given[*other].domain != given.domain);
            if joining.taken[candidate] || self.part(&given).fragment != *fragment || !elsewhere() {
                continue;
            }
            let neighbours = joining
                .given
                .iter()
                .zip(&joining.taken)
                .filter(|(other, _)| other.domain == given.domain);
            let state: Vec<bool> = neighbours.map(|(_, taken)| *taken).collect();
            let name = (given.holding, given.part, state);
            if tried.contains(&name) {
                continue;
            }
            tried.push(name);
            joining.taken[candidate] = true;
            chosen.push(candidate);
            self.partners(joining, cut, later, chosen, worth, findings);
            chosen.pop();
            joining.taken[candidate] = false;
            if findings.ended {
                return;
            }
        }
    }

    /// Enters a whole assignment.
    fn enter(&self, joining: &Joining, worth: f64, findings: &mut BranchFindings<'_, '_>) {
        let (thread_kinds, local) = (self.blackbox.thread_kinds(), self.blackbox.local());
        let mut leaves = vec![0; thread_kinds.threads()];
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); thread_kinds.applications()];
        for (number, instance) in thread_kinds.instances().iter().enumerate() {
            waiting[instance.application].push(number);
        }
        for (cut, parts) in &joining.instances {
            let Some(instance) = waiting[self.fragments.cuts[*cut].application].pop() else {
                return;
            };
            let mut threads = thread_kinds.instances()[instance].threads.clone();
            for given in parts.iter().map(|part| joining.given[*part]) {
                let holding = &self.fragments.holdings[given.holding];
                for &slot in &holding.parts[given.part].slots {
                    let kind = usize::from(holding.held[slot]) - 1;
                    let Some(next) =
                        threads.iter().position(|thread| thread_kinds.kind(*thread) == kind)
                    else {
                        return;
                    };
                    let (leaf, _) =
                        local.context(local.slots(self.domains[given.domain]).start + slot);
                    leaves[threads.swap_remove(next)] = leaf;
                }
            }
        }
        findings.moving.place(&leaves);
        findings.top.enter(findings.moving);
        // Base performance may depend on which domains they are. Then another choice of these may
        // be as good as this one was thought.
        let settled = joining.instances.iter().all(|(cut, _)| self.fragments.cuts[*cut].settled);
        if !settled {
            findings.elsewhere = findings.elsewhere.max(worth);
            if worth > findings.moving.predicted().0 * (1.0 + ROUNDING) {
                findings.unresolved = findings.unresolved.max(worth);
            }
        }
    }
}
