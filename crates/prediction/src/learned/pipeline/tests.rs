//! Tests of the fitted pipeline.

use super::*;
use crate::interchangeable_threads::tests::workload;
use crate::predictor::tests::walks_as_it_predicts;
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_synthetic::{Contention, Crowding, Demand, Disturbance};
use pinwise_topology::{
    Alike, Assignment, CoreKind, CpuId, CpuSet, Machine, PerContext, Random, Space,
};

#[test]
fn derivatives_are_those_of_small_differences() {
    let tree = SharingTree::new(&Machine::from_shape("2x2x2").unwrap(), Alike::ByStructure);
    let thread_kinds = ThreadKinds::new(&workload("RPT RPT W"));
    let pipeline = PipelinePredictor::new(&thread_kinds, &tree).unwrap();
    let mut random = Random::new(2);
    let space = Space::new(tree, 7, PerContext::AtMost(2)).unwrap();
    let levels: Vec<usize> = (0..pipeline.levels.domains.len()).collect();
    let mut formula = pipeline.formula(&levels, true);
    for _ in 0..20 {
        let drawn = space.sample(&mut random);
        let at: Vec<f64> = (0..pipeline.parameters).map(|_| random.unit() - 0.3).collect();
        let mut gradient = vec![0.0; at.len()];
        let counts = pipeline.count(drawn.leaves(), &levels);
        formula.move_to(&at);
        let mut evaluation = formula::Evaluation::default();
        formula.evaluate(&counts, &mut evaluation);
        formula.gradient(&counts, &mut evaluation, &mut gradient);
        for (parameter, slope) in gradient.iter().enumerate() {
            let mut value = |by: f64| {
                let mut moved = at.clone();
                moved[parameter] += by;
                formula.move_to(&moved);
                formula.evaluate(&counts, &mut evaluation)
            };
            let numeric = (value(1e-5) - value(-1e-5)) / 2e-5;
            assert!(
                (numeric - slope).abs() < 1e-5 * (1.0 + slope.abs()),
                "{parameter}: {slope} {numeric}"
            );
        }
    }
}

#[test]
fn the_compact_formula_is_the_formula() {
    let machines = ["2x2x2", "hybrid"].map(|name| match name {
        "hybrid" => {
            let machine = Machine::from_shape("2x4").unwrap();
            let some = CpuSet::parse_list("0-4,6").unwrap();
            SharingTree::over(&machine, &some, Alike::ByStructure)
        }
        shape => SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure),
    });
    let thread_kinds = ThreadKinds::new(&workload("RPT RPT W"));
    let mut random = Random::new(4);
    for tree in machines {
        let pipeline = PipelinePredictor::new(&thread_kinds, &tree).unwrap();
        let space = Space::new(tree, 7, PerContext::AtMost(2)).unwrap();
        for _ in 0..50 {
            let drawn = space.sample(&mut random);
            let at: Vec<f64> = (0..pipeline.parameters).map(|_| random.unit() - 0.3).collect();
            let levels: Vec<usize> = (0..pipeline.levels.domains.len()).collect();
            let mut formula = pipeline.formula(&levels, true);
            formula.move_to(&at);
            let counts = pipeline.count(drawn.leaves(), &levels);
            let plain = formula.evaluate(&counts, &mut formula::Evaluation::default());
            let mut work = compact::Workspace::default();
            let compact = Compact::new(&pipeline, &at).performance(drawn.leaves(), &mut work).ln();
            assert!((plain - compact).abs() < 1e-12 * plain.abs().max(1.0), "{plain} {compact}");
        }
    }
}

#[test]
fn a_walk_predicts_what_a_prediction_is() {
    let thread_kinds = ThreadKinds::new(&workload("RPT RPT W"));
    let mut random = Random::new(7);
    for shape in ["2x2x2", "8"] {
        let tree = SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure);
        let pipeline = PipelinePredictor::new(&thread_kinds, &tree).unwrap();
        let at: Vec<f64> = (0..pipeline.parameters).map(|_| random.unit() - 0.3).collect();
        let compact = Compact::new(&pipeline, &at);
        let minima = fit::Minima::default();
        let fitted = FittedPipeline { compact, error: 0.0, minima, posterior: None };
        let space = Space::new(tree, 7, PerContext::AtMost(2)).unwrap();
        walks_as_it_predicts(&fitted, &space, &mut random);
    }
}

/// Four instances of three threads on 32 contexts, and its model.
fn processor(crowding: Crowding, noise: f64) -> (Contention, PipelinePredictor, Space) {
    modelled(Machine::from_shape("4x2x4").unwrap(), &[1.0], crowding, noise)
}

fn modelled(
    machine: Machine,
    speeds: &[f64],
    crowding: Crowding,
    noise: f64,
) -> (Contention, PipelinePredictor, Space) {
    let demand = Demand {
        time: vec![1.0, 1.4, 0.8],
        burden: vec![vec![0.1, 0.3, 0.2], vec![0.05, 0.1, 0.0], vec![0.002, 0.004, 0.0]],
        distance: 0.08,
        near: 1,
        cap: None,
        needle: None,
    };
    let disturbance = Disturbance { noise, ..Disturbance::default() };
    let bed = Contention::new(machine.clone(), 4, &["R", "P", "T"], demand, disturbance);
    let bed = bed.crowded(crowding).with_speeds(speeds);
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let space = Space::new(tree.clone(), 12, PerContext::AtMost(1)).unwrap();
    let pipeline = PipelinePredictor::new(&ThreadKinds::new(bed.workload()), &tree).unwrap();
    (bed, pipeline, space)
}

/// What a model learns from 160 random assignments, and its error on 60 others.
fn learned(
    bed: &mut Contention,
    pipeline: &PipelinePredictor,
    space: &Space,
) -> (FittedPipeline, f64) {
    let mut random = Random::new(8);
    let drawn: Vec<_> = (0..220).map(|_| space.sample(&mut random)).collect();
    let (learn, held_out) = drawn.split_at(160);
    let mut measure = |drawn: &Assignment| {
        bed.measure(&Setting::Pinned(drawn.clone()), Effort::default()).unwrap().performance
    };
    let measured: Vec<f64> = learn.iter().map(&mut measure).collect();
    let rows = learn.iter().map(|drawn| drawn.leaves()).zip(measured);
    let fitted = pipeline.learn(rows, None).unwrap();
    (fitted.clone(), root_mean_square(&fitted, bed, held_out))
}

fn root_mean_square(fitted: &FittedPipeline, bed: &Contention, drawn: &[Assignment]) -> f64 {
    let square = |drawn: &Assignment| {
        (fitted.predict(drawn.leaves()) / bed.truth(drawn.leaves()) - 1.0).powi(2)
    };
    (drawn.iter().map(square).sum::<f64>() / drawn.len() as f64).sqrt()
}

#[test]
fn a_processor_on_paper_is_learned_from_random_runs_to_a_fraction_of_a_percent() {
    let (mut bed, pipeline, space) = processor(Crowding::Sum, 0.0);
    let (fitted, error) = learned(&mut bed, &pipeline, &space);
    // Its curve of load is a parabola, the processor's a logarithm. Performances differ by half,
    // and the better count for more.
    assert!(error < 0.004, "{error}");
    let mut random = Random::new(9);
    let mut others: Vec<Assignment> = (0..100).map(|_| space.sample(&mut random)).collect();
    others.sort_by(|a, b| bed.truth(b.leaves()).total_cmp(&bed.truth(a.leaves())));
    let best = root_mean_square(&fitted, &bed, &others[..20]);
    assert!(best < 0.004, "{best}");
    assert!(fitted.error() < 0.004, "{}", fitted.error());
    let leaves: Vec<u32> = (0..12).collect();
    assert!(pipeline.learn([(&leaves[..], 1.0)], None).is_none());
}

#[test]
fn company_that_is_worse_together_is_learned_by_its_pairs() {
    let (mut bed, pipeline, space) = processor(Crowding::Clash { clash: 0.3 }, 0.0);
    let without = PipelinePredictor { parameters: pipeline.pairs + 1, ..pipeline.clone() };
    let mut random = Random::new(9);
    let mut others: Vec<Assignment> = (0..100).map(|_| space.sample(&mut random)).collect();
    others.sort_by(|a, b| bed.truth(b.leaves()).total_cmp(&bed.truth(a.leaves())));
    // A few decide on the mean square: their co-runners do not occur among those learned from.
    let median = |fitted: &FittedPipeline, bed: &Contention| {
        let error = |drawn: &Assignment| {
            (fitted.predict(drawn.leaves()) / bed.truth(drawn.leaves()) - 1.0).abs()
        };
        let mut errors: Vec<f64> = others.iter().map(error).collect();
        errors.sort_by(f64::total_cmp);
        errors[50]
    };
    let plain = median(&learned(&mut bed, &without, &space).0, &bed);
    let fitted = learned(&mut bed, &pipeline, &space).0;
    let paired = median(&fitted, &bed);
    assert!(paired < 0.6 * plain, "{paired} {plain}");
    let best = root_mean_square(&fitted, &bed, &others[..20]);
    assert!((best / fitted.error()).ln().abs() < 2f64.ln(), "{best} {}", fitted.error());
}

#[test]
fn what_a_thread_does_on_each_kind_of_core_is_learned() {
    let mut machine = Machine::from_shape("4x2x4").unwrap();
    let kind = |name: &str, cpus: std::ops::Range<u32>| CoreKind {
        name: name.to_owned(),
        cpus: cpus.map(CpuId).collect(),
        capacity: None,
    };
    machine.kinds = vec![kind("performance", 0..16), kind("efficiency", 16..32)];
    machine.contexts.iter_mut().for_each(|context| context.kind = usize::from(context.cpu.0 >= 16));
    let (mut bed, pipeline, space) = modelled(machine, &[1.0, 0.6], Crowding::Sum, 0.0);
    let (fitted, error) = learned(&mut bed, &pipeline, &space);
    let mut blind = pipeline.levels.clone();
    blind.sorts.fill(0);
    blind.sort_count = 1;
    let (_, without) =
        learned(&mut bed, &PipelinePredictor::over(&pipeline.thread_kinds, blind).unwrap(), &space);
    assert!(error < 0.01 && without > 5.0 * error, "{error} {without}");
    assert!(fitted.error() < 0.01, "{}", fitted.error());
}

#[test]
fn a_level_that_nobody_shares_changes_nothing() {
    for (crowding, noise) in
        [(Crowding::Sum, 0.0), (Crowding::Clash { clash: 0.3 }, 0.0), (Crowding::Sum, 0.01)]
    {
        let (mut bed, whole, space) = processor(crowding, noise);
        let mut levels = whole.levels.clone();
        // One thread per context at most.
        levels.domains.remove(0);
        let shared = PipelinePredictor::over(&whole.thread_kinds, levels).unwrap();
        let (with, _) = learned(&mut bed, &whole, &space);
        let (mut bed, ..) = processor(crowding, noise);
        let (without, _) = learned(&mut bed, &shared, &space);
        assert!(
            (with.error() / without.error() - 1.0).abs() < 1e-6,
            "{} {}",
            with.error(),
            without.error()
        );
        let mut random = Random::new(5);
        for _ in 0..20 {
            let drawn = space.sample(&mut random);
            let (a, b) = (with.predict(drawn.leaves()), without.predict(drawn.leaves()));
            assert!((a / b - 1.0).abs() < 1e-6, "{crowding:?}: {a} {b}");
        }
    }
}

#[test]
fn few_runs_already_tell_good_from_bad_and_what_is_not_known() {
    let (mut bed, pipeline, space) = processor(Crowding::Sum, 0.002);
    let mut random = Random::new(3);
    let mut learn = |runs: usize| {
        let drawn: Vec<_> = (0..runs).map(|_| space.sample(&mut random)).collect();
        let mut measure = |drawn: &Assignment| {
            bed.measure(&Setting::Pinned(drawn.clone()), Effort::default()).unwrap().performance
        };
        let measured: Vec<f64> = drawn.iter().map(&mut measure).collect();
        pipeline.learn(drawn.iter().map(|drawn| drawn.leaves()).zip(measured), None).unwrap()
    };
    let [few, many] = [24, 200].map(&mut learn);
    let others: Vec<Assignment> = (0..100).map(|_| space.sample(&mut random)).collect();
    let truth: Vec<f64> = others.iter().map(|other| bed.truth(other.leaves())).collect();
    let mean = truth.iter().sum::<f64>() / truth.len() as f64;
    let spread = truth.iter().map(|truth| (truth / mean - 1.0).powi(2)).sum::<f64>().sqrt() / 10.0;
    let error = root_mean_square(&few, &bed, &others);
    assert!(error < 0.6 * spread, "{error} {spread}");
    // There are more parameters than runs, so a fit of all of them would have no residuals.
    let claimed = few.error();
    assert!(claimed > 0.3 * error && claimed < 3.0 * error, "{claimed} {error}");
    // How far apart plausible predictors are.
    let mut apart = |fitted: &FittedPipeline| {
        let at = |other: &Assignment| {
            let ratio = fitted.plausible(&mut random).predict(other.leaves())
                / fitted.predict(other.leaves());
            (ratio - 1.0).powi(2)
        };
        (others.iter().map(at).sum::<f64>() / others.len() as f64).sqrt()
    };
    let [few_apart, many_apart] = [apart(&few), apart(&many)];
    assert!(few_apart > 0.3 * error && few_apart < 3.0 * error, "{few_apart} {error}");
    assert!(many_apart < 0.3 * few_apart, "{many_apart} {few_apart}");
}

#[test]
fn a_fit_that_begins_where_an_earlier_one_ended_comes_to_the_same() {
    for crowding in [Crowding::Sum, Crowding::Clash { clash: 0.3 }] {
        let (mut bed, pipeline, space) = processor(crowding, 0.002);
        let mut random = Random::new(6);
        let drawn: Vec<_> = (0..190).map(|_| space.sample(&mut random)).collect();
        let mut measure = |drawn: &Assignment| {
            bed.measure(&Setting::Pinned(drawn.clone()), Effort::default()).unwrap().performance
        };
        let measured: Vec<f64> = drawn.iter().map(&mut measure).collect();
        let rows = |count| {
            let leaves = drawn.iter().map(|drawn| drawn.leaves());
            leaves.zip(measured.iter().copied()).take(count)
        };
        let earlier = pipeline.learn(rows(110), None).unwrap();
        let [again, anew] = [Some(&earlier), None].map(|earlier| {
            let fitted = pipeline.learn(rows(190), earlier).unwrap();
            assert_eq!(fitted.minima.rows, if earlier.is_some() { 110 } else { 190 });
            fitted
        });
        let errors = [again.error(), anew.error()];
        assert!((errors[0] / errors[1]).ln().abs() < 0.1, "{crowding:?}: {errors:?}");
        let others: Vec<Assignment> = (0..100).map(|_| space.sample(&mut random)).collect();
        let true_errors = [&again, &anew].map(|fitted| root_mean_square(fitted, &bed, &others));
        assert!(true_errors[0] < 1.2 * true_errors[1], "{crowding:?}: {true_errors:?}");
        // With twice as many measurements it begins anew.
        let sixty = pipeline.learn(rows(60), None).unwrap();
        assert_eq!(pipeline.learn(rows(190), Some(&sixty)).unwrap().minima.rows, 190);
    }
}

#[test]
fn the_precision_of_the_prior_is_the_inverse_of_its_covariance() {
    let (_, pipeline, _) = processor(Crowding::Sum, 0.0);
    let entries = pipeline.precision();
    let precision = |a: usize, b: usize| {
        let (a, b) = (a.max(b), a.min(b));
        entries
            .iter()
            .filter(|entry| (entry.0, entry.1) == (a, b))
            .map(|entry| entry.2)
            .sum::<f64>()
    };
    for level in 0..pipeline.levels.domains.len() {
        let (whole, own) = pipeline.weight_variances(level);
        for other in 0..3 {
            let at = |kind: usize| pipeline.weight(level, kind, other);
            for a in 0..3 {
                for b in 0..3 {
                    let covariance = |k: usize| whole + if k == b { own } else { 0.0 };
                    let product: f64 =
                        (0..3).map(|k| precision(at(a), at(k)) * covariance(k)).sum();
                    let expected = if a == b { 1.0 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-9, "{level} {a} {b}: {product}");
                }
            }
        }
    }
}
