//! Tests of profiling.

use super::*;
use crate::tables::blackbox::tests::Obedient;
use crate::tables::core_local::tests::hybrid;
use crate::tables::profiling::batch::{STEPS, TEMPERATURE};
use crate::{Predictor, draw};
use pinwise_topology::DomainKind;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A profile of at most `share` of the experiments, before the first.
fn begun(obedient: &Obedient, share: f64) -> Profiling {
    let local = CoreLocal::new(&obedient.tree, obedient.level, 1).unwrap();
    Profiling::new(&obedient.tree, obedient.thread_kinds.clone(), local, share, 0.01).unwrap()
}

/// The profile of a processor that keeps to the model, with relative noise on every measurement.
fn profiled(obedient: &Obedient, share: f64, noise: f64, seed: u64) -> Profiling {
    let mut profiling = begun(obedient, share);
    let (space, mut random) = (obedient.space(), Random::new(seed));
    let mut chance = Random::new(seed + 1);
    loop {
        let entries = profiling.next(&space, &mut random);
        if entries.is_empty() {
            return profiling;
        }
        for entry in entries {
            let measured = obedient.experiment(&profiling.experiment(&entry).unwrap());
            profiling.learn(&entry, Some(measured * (1.0 + noise * (chance.unit() - 0.5))));
        }
    }
}

proptest! {
    #[test]
    fn a_larger_share_allows_no_less_and_none_allows_more_than_itself(
        shares in (0.0..=1.0, 0.0..=1.0),
        base in 0..100_000_u32,
        entries in 0..100_000_usize,
    ) {
        let base = f64::from(base);
        let [allowed, other] =
            [shares.0, shares.1].map(|share| Profiling::allowed(share, base, entries));
        let monotone = if shares.0 <= shares.1 { allowed <= other } else { allowed >= other };
        prop_assert!(monotone, "{allowed} and {other}");
        let least = LEAST_REDUCED.min(entries);
        let most = (shares.0 * (base + entries as f64) - base).max(least as f64);
        prop_assert!((least..=entries).contains(&allowed) && allowed as f64 <= most);
        prop_assert_eq!(Profiling::allowed(1.0, base, entries), entries);
    }
}

#[test]
fn base_tables_larger_than_the_share_leave_the_least() {
    let allowed = |share| Profiling::allowed(share, 5_000.0, 20_000);
    assert_eq!([0.0, 0.19, 0.2, 0.21, 0.5, 1.0].map(allowed), [20, 20, 20, 250, 800, 20_000]);
}

#[test]
fn every_kind_has_company_in_every_build_before_anything_is_forecast() {
    for seed in 0..8 {
        let obedient = Obedient::on(hybrid(3, 2), DomainKind::L2, "RPT RPT");
        let mut profiling = begun(&obedient, 0.05);
        let (space, mut random) = (obedient.space(), Random::new(seed));
        while matches!(profiling.stage, ProfilingStage::Begin | ProfilingStage::Frame) {
            for entry in profiling.next(&space, &mut random) {
                let measured = obedient.experiment(&profiling.experiment(&entry).unwrap());
                profiling.learn(&entry, Some(measured));
            }
        }
        let company = |site: &site::Site| site.counts.iter().any(|count| *count > 0.0);
        let of = |known: bool| -> BTreeSet<(usize, usize)> {
            let sites = profiling.sites.iter().zip(&profiling.measured);
            let sites = sites.filter(|(site, share)| company(site) && (!known || share.is_some()));
            sites.map(|(site, _)| (site.kind, site.build)).collect()
        };
        assert_eq!(of(true), of(false), "seed {seed}");
    }
}

#[test]
fn company_of_which_none_was_measured_may_cost_much() {
    let obedient = Obedient::on(hybrid(3, 2), DomainKind::L2, "RPT RPT");
    let profiling = begun(&obedient, 1.0);
    let alone: Vec<Option<f64>> = profiling
        .sites
        .iter()
        .map(|site| site.counts.iter().all(|count| *count == 0.0).then_some(1.0))
        .collect();
    for (site, forecast) in
        profiling.sites.iter().zip(forecast::forecast(&profiling.sites, &alone, 0.01, 1.0))
    {
        let company = site.counts.iter().any(|count| *count > 0.0);
        assert_eq!(company, forecast.high - forecast.low > 0.5, "{site:?} {forecast:?}");
    }
}

#[test]
fn all_of_it_is_the_published_profile() {
    for (shape, obedient) in [
        ("8x2x4", Obedient::new("8x2x4", DomainKind::Package, "RPT RPT RPT")),
        ("4x2", Obedient::new("4x2", DomainKind::Core, "RW RW RW")),
        ("hybrid", Obedient::on(hybrid(3, 2), DomainKind::L2, "RPT RPT")),
    ] {
        let (published, profiling) = (obedient.profile(), profiled(&obedient, 1.0, 0.0, 1));
        let (entries, asked) = profiling.slowdown_entries();
        assert_eq!((entries, profiling.slowdown_measured()), (asked, entries));
        let (space, mut random) = (obedient.space(), Random::new(2));
        for _ in 0..300 {
            let leaves = space.sample(&mut random);
            let whole = profiling.blackbox().performance(leaves.leaves());
            assert_eq!(whole, published.performance(leaves.leaves()), "{shape}");
        }
        assert_eq!(profiling.checked(), Checked::default());
    }
}

#[test]
fn a_tenth_of_it_finds_what_the_whole_predicts_best() {
    reduced(&Obedient::new("8x2x4", DomainKind::Package, "RPT RPT RPT RPT RPT RPT"));
    reduced(&Obedient::on(hybrid(6, 4), DomainKind::L2, "RPT RPT RPT RPT"));
}

fn reduced(obedient: &Obedient) {
    let published = obedient.profile();
    let (space, mut random) = (obedient.space(), Random::new(3));
    let best = published.optima(&space, 1, &mut random, &mut |_| true).best().unwrap().performance;
    for noise in [0.0, 0.01] {
        let profiling = profiled(obedient, 0.1, noise, 4);
        let (entries, asked) = profiling.slowdown_entries();
        assert!(asked <= (entries / 10).max(LEAST_REDUCED), "{asked} of {entries}");
        let found = profiling.blackbox().optima(&space, 1, &mut random, &mut |_| true);
        let truth = published.performance(found.best().unwrap().assignment.leaves()).unwrap();
        assert!(
            truth > best * (1.0 - 0.01 - noise),
            "noise {noise}: {truth} of {best}, {:?}",
            profiling.ended()
        );
    }
}

#[test]
fn what_was_measured_is_kept_and_intervals_hold_the_rest() {
    let obedient = Obedient::new("4x2x4", DomainKind::Package, "RPT RPT RPT RPT");
    let (published, profiling) = (obedient.profile(), profiled(&obedient, 0.1, 0.0, 5));
    for (site, measured) in profiling.sites.iter().zip(&profiling.measured) {
        let share = profiling.blackbox().slowdown().share(site.kind, site.layout);
        assert!(measured.is_none() || *measured == share, "{site:?}");
    }
    let ([low, high], predictor) = (profiling.ends(), profiling.blackbox());
    let (space, mut random) = (obedient.space(), Random::new(6));
    let mut held = 0;
    for _ in 0..200 {
        // Where good assignments are, which is what the batches are about.
        let leaves = draw(&predictor, &space, TEMPERATURE, STEPS * space.threads(), &mut random);
        let truth = published.predict(leaves.leaves());
        let [low, high] = [&low, &high].map(|end| end.predict(leaves.leaves()));
        held += usize::from((low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(&truth));
    }
    assert!(held >= 190, "{held} of 200");
    let checked = profiling.checked();
    assert!(
        checked.drawn > 0 && checked.held <= checked.drawn && checked.error < 0.1,
        "{checked:?}"
    );
}

#[test]
fn an_instance_of_too_many_assignments_is_sampled() {
    let threads = "RPPPPPPPPT";
    let obedient = Obedient::new("8x2x4", DomainKind::Package, &[threads; 2].join(" "));
    let profiling = profiled(&obedient, 0.1, 0.0, 7);
    assert_eq!(profiling.sampled().count(), 1);
    let measured = profiling.base_measured();
    assert!((200..=profiling.base_experiments()).contains(&measured), "{measured}");
    let (space, mut random) = (obedient.space(), Random::new(8));
    let blackbox = profiling.blackbox();
    let found = blackbox.optima(&space, 5, &mut random, &mut |_| true);
    let best = found.best().unwrap();
    // Its bound holds for forecasts too, and claims no proof.
    assert!(found.upper >= best.performance && !found.complete, "{found:?}");
    let (chosen, [low, high]) = (best.assignment.leaves(), profiling.ends());
    assert!(low.predict(chosen) <= best.performance && best.performance <= high.predict(chosen));
    let mut drawn: Vec<f64> =
        (0..200).map(|_| obedient.truth(space.sample(&mut random).leaves())).collect();
    drawn.sort_by(f64::total_cmp);
    assert!(obedient.truth(chosen) > drawn[100], "{} {drawn:?}", obedient.truth(chosen));
    // What an instance does alone is forecast.
    let sampled = profiling.sampled().next().unwrap();
    let off = |_| {
        let leaves = sampled.draw(&mut random).leaves().to_vec();
        let forecast = blackbox.base(0).performance(&Assignment::new(leaves.clone())).unwrap();
        let instances = vec![PlacedInstance { application: 0, leaves }];
        (forecast / obedient.experiment(&Experiment { instances }) - 1.0).powi(2)
    };
    let error = ((0..200).map(off).sum::<f64>() / 200.0).sqrt();
    assert!(error < 0.04, "{error}");
    // Of the spread ones, only those over all cores are known.
    let spread = blackbox.spread();
    for one in spread.optima(&space, 3, &mut random, &mut |_| false).ranked {
        for instance in obedient.thread_kinds.instances() {
            let leaves = instance.threads.iter().map(|thread| one.assignment.leaves()[*thread]);
            assert_eq!(obedient.local.domains_of(&leaves.collect::<Vec<_>>()).len(), 8);
        }
    }
}
