//! Prices that bound the best prediction from above.
//!
//! **The bound.** Let h(p, s) be the price of a fragment p whose threads keep the share s. It does
//! not fall as s grows. Let r(a) be the extra price of an instance of application a. The prices of
//! the fragments of every cut m must cover its worth at every common share s. So r(a) plus the sum
//! of h(p, s) over p in m is at least base(m) s. Prices do not fall. So they make up at different
//! shares, too, for the least of them. So no assignment is predicted above the sum of r over all
//! instances and of h over all fragments. The sum of h is that over domains of what they hold. Only
//! the number of threads of each kind ties the holdings of different domains. `Prices::value`
//! chooses them domain by domain, and the largest sum is the bound. This is Lagrangian relaxation
//! (Geoffrion, Mathematical Programming Study 2, 1974). It holds for any prices; good ones make it
//! tight.
//!
//! **The best prices** solve a linear program: the smallest sum of r + domains × v under the
//! conditions above. There v is at least the price of every holding, for each build of domains
//! separately. Prices are taken linear between a few shares, so that the conditions need hold only
//! at these. Few of the holdings matter. They are found by solving with those known and adding the
//! ones that cost most (cutting planes; Kelley, J. SIAM 8, 1960). The search for these is half-way
//! between the new prices and the best so far. That keeps prices steady (Ben-Ameur and Neto,
//! Networks 49, 2007). The solver's result is only a proposal. So `r` is computed from `h`, and the
//! bound from both.

use super::fragment::{Holding, ProofFragments};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, Variable};

/// Holdings added in one round at most.
const MOST_ADDED: usize = 24;
/// Rounds of the cutting planes at most.
const MOST_ROUNDS: usize = 150;
/// The rounds end when the solver's value is so near the bound, as a share of it.
const NEAR: f64 = 1e-7;

/// Limits of adding knots. In order: the rounds, the number of knots, and the least distance of two
/// as a share of the last. Then the least improvement of the bound that justifies another round.
const MOST_REFINED: usize = 8;
const MOST_KNOTS: usize = 64;
const KNOTS_APART: f64 = 0.000_5;
const WORTHWHILE: f64 = 0.000_1;
/// Holdings this much below the dearest, as a share, have a say in where knots are.
const MATTERS: f64 = 0.002;
/// A holding is added if it costs more than a domain may. The excess must be above this share of
/// the best an instance can do.
const EXCEEDS: f64 = 1e-8;
/// No price is beyond this many times the best an instance can do. The first programs know of few
/// holdings, and the limit keeps them from promising too much.
const MOST_PRICE: f64 = 20.0;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// Ascending, the first is 0.
    knots: Vec<f64>,
    /// By fragment, at every knot.
    prices: Vec<Vec<f64>>,
    /// By application.
    pub(crate) rest: Vec<f64>,
}

impl Prices {
    /// The price of a fragment whose threads keep `share`.
    pub(crate) fn of(&self, fragment: usize, share: f64) -> f64 {
        let (segment, part) = position(&self.knots, share);
        let prices = &self.prices[fragment];
        prices[segment] + part * (prices[segment + 1] - prices[segment])
    }

    /// The price of all fragments of a holding.
    fn value(&self, holding: &Holding) -> f64 {
        holding.parts.iter().map(|part| self.of(part.fragment, part.share)).sum()
    }

    /// The extra price of all instances, given how many there are of each application.
    pub(crate) fn besides(&self, instances: &[usize]) -> f64 {
        self.rest.iter().zip(instances).map(|(rest, n)| rest * *n as f64).sum()
    }

    /// Those whose prices are given: what they leave to pay for an instance follows.
    fn new(
        fragments: &ProofFragments,
        knots: Vec<f64>,
        prices: Vec<Vec<f64>>,
        applications: usize,
    ) -> Self {
        let mut rest = vec![f64::NEG_INFINITY; applications];
        for cut in &fragments.cuts {
            for (knot, share) in knots.iter().enumerate() {
                let paid: f64 = cut.fragments.iter().map(|fragment| prices[*fragment][knot]).sum();
                let rest = &mut rest[cut.application];
                *rest = rest.max(cut.base * share - paid);
            }
        }
        Self { knots, prices, rest }
    }

    /// The first prices. An instance at its best is shared among its fragments by size, in
    /// proportion to the share kept.
    fn by_size(fragments: &ProofFragments, knots: Vec<f64>, applications: usize) -> Self {
        let mut prices = vec![vec![0.0; knots.len()]; fragments.sizes.len()];
        for cut in &fragments.cuts {
            let threads: usize =
                cut.fragments.iter().map(|fragment| fragments.sizes[*fragment]).sum();
            for fragment in &cut.fragments {
                let worth = cut.base * fragments.sizes[*fragment] as f64 / threads as f64;
                prices[*fragment]
                    .iter_mut()
                    .zip(&knots)
                    .for_each(|(price, share)| *price = f64::max(*price, worth * share));
            }
        }
        Self::new(fragments, knots, prices, applications)
    }

    fn halfway(&self, other: &Self, fragments: &ProofFragments) -> Self {
        let mean =
            |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| (a + b) / 2.0).collect();
        let prices = self.prices.iter().zip(&other.prices).map(mean).collect();
        Self::new(fragments, self.knots.clone(), prices, self.rest.len())
    }

    /// The same prices with more knots.
    fn at(&self, fragments: &ProofFragments, knots: Vec<f64>) -> Self {
        let prices = (0..self.prices.len())
            .map(|fragment| knots.iter().map(|knot| self.of(fragment, *knot)).collect());
        Self::new(fragments, knots.clone(), prices.collect(), self.rest.len())
    }
}

/// The segment between knots that holds a share, and how far into it the share is.
fn position(knots: &[f64], share: f64) -> (usize, f64) {
    let segment = knots.partition_point(|knot| *knot <= share).clamp(1, knots.len() - 1) - 1;
    (segment, (share - knots[segment]) / (knots[segment + 1] - knots[segment]))
}

/// The linear program. Variables are what a price rises by from knot to knot.
struct LinearProgram {
    solution: Solution,
    knots: Vec<f64>,
    rises: Vec<Vec<Variable>>,
    /// By build.
    domains: Vec<Variable>,
    /// What counts as 1: solvers keep to absolute tolerances.
    unit: f64,
}

impl LinearProgram {
    /// With the conditions of all cuts and of the holdings that `known` numbers.
    fn new(
        fragments: &ProofFragments,
        knots: &[f64],
        instances: &[usize],
        domains: &[usize],
        known: &[usize],
    ) -> Option<Self> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let unit = fragments.cuts.iter().map(|cut| cut.base).fold(f64::MIN_POSITIVE, f64::max);
        let free = (-MOST_PRICE, MOST_PRICE);
        let rest: Vec<Variable> =
            instances.iter().map(|count| problem.add_var(*count as f64, free)).collect();
        let domains: Vec<Variable> =
            domains.iter().map(|count| problem.add_var(*count as f64, (0.0, MOST_PRICE))).collect();
        let rise = |problem: &mut Problem, knot: usize| {
            problem.add_var(0.0, if knot == 0 { free } else { (0.0, MOST_PRICE) })
        };
        let rises: Vec<Vec<Variable>> = (0..fragments.sizes.len())
            .map(|_| (0..knots.len()).map(|knot| rise(&mut problem, knot)).collect())
            .collect();
        for cut in &fragments.cuts {
            for (knot, share) in knots.iter().enumerate() {
                let mut terms = Terms::default();
                cut.fragments.iter().for_each(|fragment| {
                    (0..=knot).for_each(|knot| terms.add(rises[*fragment][knot], 1.0))
                });
                terms.add(rest[cut.application], 1.0);
                problem.add_constraint(terms.0, ComparisonOp::Ge, cut.base / unit * share);
            }
        }
        for holding in known {
            let terms = holding_terms(&fragments.holdings[*holding], knots, &rises, &domains);
            problem.add_constraint(terms.0, ComparisonOp::Le, 0.0);
        }
        let solution = problem.solve().ok()?.into_solution().ok()?;
        Some(Self { solution, knots: knots.to_vec(), rises, domains, unit })
    }

    fn add(self, holding: &Holding) -> Option<Self> {
        let terms = holding_terms(holding, &self.knots, &self.rises, &self.domains);
        let solution = self
            .solution
            .add_constraint(terms.0, ComparisonOp::Le, 0.0)
            .ok()?
            .into_solution()
            .ok()?;
        Some(Self { solution, ..self })
    }

    fn prices(&self, fragments: &ProofFragments, applications: usize) -> Prices {
        let climb = |rises: &Vec<Variable>| {
            let mut price = 0.0;
            let step = |(knot, rise): (usize, &Variable)| {
                let rise = self.unit * self.solution.var_value(*rise);
                price += if knot == 0 { rise } else { rise.max(0.0) };
                price
            };
            rises.iter().enumerate().map(step).collect()
        };
        Prices::new(
            fragments,
            self.knots.clone(),
            self.rises.iter().map(climb).collect(),
            applications,
        )
    }
}

/// Variables with their factors, each once.
#[derive(Default)]
struct Terms(Vec<(Variable, f64)>);

impl Terms {
    fn add(&mut self, variable: Variable, factor: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == variable) {
            Some((_, known)) => *known += factor,
            None => self.0.push((variable, factor)),
        }
    }
}

/// What a holding costs, less what a domain may.
fn holding_terms(
    holding: &Holding,
    knots: &[f64],
    rises: &[Vec<Variable>],
    domains: &[Variable],
) -> Terms {
    let mut terms = Terms::default();
    for part in &holding.parts {
        let (segment, share) = position(knots, part.share);
        (0..=segment).for_each(|knot| terms.add(rises[part.fragment][knot], 1.0));
        if share > 0.0 {
            terms.add(rises[part.fragment][segment + 1], share);
        }
    }
    terms.add(domains[holding.build], -1.0);
    terms
}

/// The best prices found, in rounds that each ask `go_on` with the bound so far. The bound is the
/// most that all domains of all builds can be worth, whatever they hold. The extra prices are
/// added. Prices are linear between `knots` first, then also at the shares of the holdings that
/// turn out to matter.
pub(crate) fn best(
    fragments: &ProofFragments,
    knots: Vec<f64>,
    instances: &[usize],
    domains: &[usize],
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Prices {
    let mut best = Prices::by_size(fragments, knots, instances.len());
    let bound = |prices: &Prices, most: &[f64]| {
        let held = domains.iter().zip(most).map(|(domains, most)| *domains as f64 * most);
        prices.besides(instances) + held.sum::<f64>()
    };
    let (most, mut known) = dearest(fragments, &best);
    let mut least = bound(&best, &most);
    for _ in 0..MOST_REFINED {
        let before = least;
        let Some(program) = LinearProgram::new(fragments, &best.knots, instances, domains, &known)
        else {
            break;
        };
        let going = plane(fragments, program, &mut best, &mut least, &mut known, &bound, go_on);
        let finer = refined(fragments, &best, &known);
        if !going || before - least < WORTHWHILE * least || finer.len() == best.knots.len() {
            break;
        }
        best = best.at(fragments, finer);
    }
    best
}

/// Solves, adds what costs most to `known`, and repeats. Tells whether to go on.
fn plane(
    fragments: &ProofFragments,
    mut program: LinearProgram,
    best: &mut Prices,
    least: &mut f64,
    known: &mut Vec<usize>,
    bound: &dyn Fn(&Prices, &[f64]) -> f64,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> bool {
    for _ in 0..MOST_ROUNDS {
        let solved = program.prices(fragments, best.rest.len());
        let limit =
            |build: usize| program.unit * program.solution.var_value(program.domains[build]);
        let promised = program.unit * program.solution.objective();
        let mut added = Vec::new();
        for prices in [best.halfway(&solved, fragments), solved.clone()] {
            let (most, dear) = dearest(fragments, &prices);
            let value = bound(&prices, &most);
            let exceeds = |number: &usize| {
                let holding = &fragments.holdings[*number];
                !known.contains(number)
                    && solved.value(holding) > limit(holding.build) + EXCEEDS * program.unit
            };
            added = dear.into_iter().filter(exceeds).collect();
            if value < *least {
                (*best, *least) = (prices, value);
            }
            if !added.is_empty() {
                break;
            }
        }
        if added.is_empty() || *least - promised <= NEAR * least.abs() {
            return true;
        }
        if !go_on(*least) {
            return false;
        }
        for holding in added {
            known.push(holding);
            match program.add(&fragments.holdings[holding]) {
                Some(next) => program = next,
                // The solver gave up: what was found stands.
                None => return true,
            }
        }
    }
    true
}

/// The knots and the shares of those known holdings that are as dear as any.
fn refined(fragments: &ProofFragments, prices: &Prices, known: &[usize]) -> Vec<f64> {
    let mut valued: Vec<(f64, usize)> = known
        .iter()
        .map(|holding| (prices.value(&fragments.holdings[*holding]), *holding))
        .collect();
    valued.sort_by(|a, b| b.0.total_cmp(&a.0));
    let build = |holding: usize| fragments.holdings[holding].build;
    let matters = |(value, holding): &(f64, usize)| {
        let most = valued
            .iter()
            .find(|(_, other)| build(*other) == build(*holding))
            .map_or(0.0, |(most, _)| *most);
        *value >= most - MATTERS * most.abs()
    };
    let mut knots = prices.knots.clone();
    let apart = KNOTS_APART * knots[knots.len() - 1];
    let dear = valued.iter().filter(|valued| matters(valued));
    for part in dear.flat_map(|(_, holding)| &fragments.holdings[*holding].parts) {
        let place = knots.partition_point(|knot| *knot <= part.share);
        let near = |knot: Option<&f64>| knot.is_some_and(|knot| (knot - part.share).abs() < apart);
        if part.share > 0.0
            && !near(knots.get(place))
            && !near(knots.get(place - 1))
            && knots.len() < MOST_KNOTS
        {
            knots.insert(place, part.share);
        }
    }
    knots
}

/// The highest price of a holding in each build. Also the holdings that cost most, one for each
/// build and number of threads of each kind.
fn dearest(fragments: &ProofFragments, prices: &Prices) -> (Vec<f64>, Vec<usize>) {
    let groups = fragments.groups.iter().max().map_or(0, |last| last + 1);
    let builds =
        fragments.holdings.iter().map(|holding| holding.build + 1).max().unwrap_or_default();
    let mut by_counts = vec![(f64::NEG_INFINITY, 0); groups];
    let mut most = vec![f64::NEG_INFINITY; builds];
    let values = fragments.values(|fragment, share| prices.of(fragment, share));
    for (number, (value, group)) in values.into_iter().zip(&fragments.groups).enumerate() {
        let dearest: &mut (f64, usize) = &mut by_counts[*group];
        if value > dearest.0 {
            *dearest = (value, number);
            let most = &mut most[fragments.holdings[number].build];
            *most = most.max(value);
        }
    }
    // Sorted by the distance of each below the most expensive of its build.
    let below = |(value, holding): &(f64, usize)| most[fragments.holdings[*holding].build] - value;
    let mut dear = by_counts;
    dear.sort_by(|a, b| below(a).total_cmp(&below(b)).then(a.1.cmp(&b.1)));
    let dear = dear.into_iter().take(MOST_ADDED).map(|(_, number)| number).collect();
    (most, dear)
}
