//! A bench with known answers: what is planned, run and concluded must be what was put in.

use pinwise_characterization::{
    Characterization, Conditions, RoundPlan, SensitivityClass, Task, Warning,
};
use pinwise_measure::{Bench, Fame, MeasureError, Microbenchmark, Pace, PaceUnit, Seat};
use pinwise_topology::{Alike, DomainKind, Fingerprint, Machine, Random, SharingTree};

/// Every benchmark is slowed down by its equals within its own domain: by 1 for each. `idle` minds
/// nobody.
struct Synthetic {
    machine: Machine,
    tree: SharingTree,
    benchmarks: Vec<Microbenchmark>,
    /// Relative deviation of times.
    noise: f64,
    share: f64,
    /// How the machine's own speed changes from run to run, relative, and whether stressors pause
    /// so that it cancels.
    drift: f64,
    pauses: bool,
}

impl Synthetic {
    fn new(machine: Machine) -> Self {
        let benchmark = |name: &str, level| Microbenchmark {
            name: name.into(),
            resource: format!("{name} unit"),
            level,
            pipelined: true,
        };
        let benchmarks = vec![
            benchmark("fetch", DomainKind::Pipe),
            benchmark("divide", DomainKind::Core),
            benchmark("cache", DomainKind::L2),
            benchmark("idle", DomainKind::Pu),
        ];
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        Self { machine, tree, benchmarks, noise: 0.01, share: 1.0, drift: 0.0, pauses: false }
    }

    fn conditions(rounds: usize) -> Conditions {
        Conditions { fame: Fame::default(), rounds, seed: 1 }
    }

    fn all_runs(
        &self,
        plan: &RoundPlan,
        conditions: Conditions,
    ) -> Result<Characterization, MeasureError> {
        let run = |task: Task| {
            let layout = &plan.experiments[task.experiment].layout;
            Ok((task, self.run(layout, &conditions.fame, task.seed)?))
        };
        let paces: Vec<_> =
            plan.tasks(conditions).into_iter().map(run).collect::<Result<_, MeasureError>>()?;
        let fingerprint = Fingerprint::of(&self.machine);
        Ok(Characterization::of(self, plan, conditions, fingerprint, paces))
    }

    fn characterize(&self, rounds: usize) -> Result<Characterization, MeasureError> {
        let plan = RoundPlan::new(&self.machine, &self.benchmarks, &[], 8).unwrap();
        self.all_runs(&plan, Self::conditions(rounds))
    }
}

impl Bench for Synthetic {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn benchmarks(&self) -> &[Microbenchmark] {
        &self.benchmarks
    }

    fn unit(&self) -> PaceUnit {
        PaceUnit::Cycles
    }

    fn at_once(&self) -> usize {
        1
    }

    fn run(&self, layout: &[Seat], fame: &Fame, seed: u64) -> Result<Vec<Pace>, MeasureError> {
        let mut random = Random::new(seed);
        let speed = 1.0 + self.drift * random.unit();
        let pace = |seat: &Seat| {
            let domain = match self.benchmarks[seat.benchmark].name.as_str() {
                "fetch" => self.tree.around(seat.leaf)[0].1.clone(),
                "divide" => self.tree.around(seat.leaf)[1].1.clone(),
                "cache" => 0..64,
                _ => seat.leaf..seat.leaf + 1,
            };
            let equals = layout
                .iter()
                .filter(|other| other.benchmark == seat.benchmark && domain.contains(&other.leaf));
            let noise = 1.0 + self.noise * (2.0 * random.unit() - 1.0);
            let time = 10.0 * speed * equals.count() as f64 * noise;
            let alone = self.pauses.then_some(10.0 * speed);
            Pace { share: self.share, alone, ..Pace::new(&[time; 5], 100, fame).unwrap() }
        };
        Ok(layout.iter().map(pace).collect())
    }
}

fn t2() -> Synthetic {
    Synthetic::new(Machine::model("ultrasparc-t2").unwrap())
}

#[test]
fn slowdowns_are_those_put_in_and_intervals_contain_them() {
    let result = t2().characterize(3).unwrap();
    let row = |reference: &str, stressor: &str, place: &str, count: usize| {
        let found = result.slowdowns.iter().find(|row| {
            (row.reference.as_str(), row.stressor.as_str(), row.place.as_str(), row.count)
                == (reference, stressor, place, count)
        });
        found.unwrap_or_else(|| panic!("{reference} {stressor} {place} {count}"))
    };
    for (reference, place, count, expected) in [
        ("fetch", "pipe", 3, 4.0),
        ("fetch", "core", 4, 1.0),
        ("fetch", "pipe+core", 7, 4.0),
        ("divide", "core", 4, 5.0),
        ("divide", "pipe+core", 5, 6.0),
        ("divide", "chip", 8, 1.0),
        ("cache", "chip", 8, 9.0),
        ("idle", "pipe", 3, 1.0),
    ] {
        let row = row(reference, reference, place, count);
        assert!((row.slowdown / expected - 1.0).abs() < 0.02, "{row:?}");
        assert!(
            row.low.unwrap() < row.slowdown
                && row.slowdown < row.high.unwrap()
                && row.rounds.len() == 3
        );
    }
    assert!((row("fetch", "divide", "pipe", 3).slowdown - 1.0).abs() < 0.02);
    let inside = result.slowdowns.iter().filter(|row| {
        let truth = row.slowdown.round();
        row.low.unwrap() <= truth && truth <= row.high.unwrap()
    });
    let coverage = inside.count() as f64 / result.slowdowns.len() as f64;
    assert!(coverage > 0.9, "{coverage}");
    let alone = &result.isolation[0];
    assert!(
        (alone.cpi.unwrap() / 10.0 - 1.0).abs() < 0.01 && alone.ns.is_none() && alone.runs == 9
    );
    assert!(result.warnings.is_empty(), "{:?}", result.warnings);
}

#[test]
fn where_stressors_pause_a_change_of_the_machine_is_no_slowdown() {
    let worst = |pauses| {
        let bench = Synthetic { drift: 1.0, pauses, ..t2() };
        let result = bench.characterize(2).unwrap();
        let idle = result.slowdowns.iter().filter(|row| row.reference == "idle");
        idle.map(|row| (row.slowdown - 1.0).abs()).fold(0.0, f64::max)
    };
    assert!(worst(true) < 0.02 && worst(false) > 0.1, "{} {}", worst(true), worst(false));
}

#[test]
fn findings_name_the_resource_at_its_own_level() {
    let findings = t2().characterize(3).unwrap().findings;
    let critical: Vec<(&str, &str)> =
        findings.critical.iter().map(|row| (row.level.as_str(), row.resource.as_str())).collect();
    assert_eq!(critical, [("pipe", "fetch unit"), ("core", "divide unit"), ("chip", "cache unit")]);
    let of = |name: &str| findings.sensitivity.iter().find(|row| row.benchmark == name).unwrap();
    assert_eq!(
        (of("fetch").class, of("fetch").up_to.as_deref()),
        (SensitivityClass::High, Some("pipe"))
    );
    assert_eq!(
        (of("divide").up_to.as_deref(), of("divide").place.as_deref()),
        (Some("core"), Some("pipe+core"))
    );
    assert_eq!(
        (of("idle").class, of("idle").up_to.as_deref()),
        (SensitivityClass::Insensitive, None)
    );
    let pipe = findings
        .co_runners
        .iter()
        .find(|row| row.benchmark == "fetch" && row.place == "pipe")
        .unwrap();
    assert_eq!((pipe.high.as_slice(), pipe.low.len()), (&["fetch".to_owned()][..], 3));
    let remote = findings.remote.unwrap();
    assert_eq!(remote.independent, ["fetch", "divide", "idle"]);
    assert_eq!((remote.shared.as_slice(), remote.dependent.len()), (&["cache".to_owned()][..], 0));
    assert!(remote.core_local);
    assert_eq!(findings.scope.unwrap().assignments, "592573");
}

#[test]
fn a_document_is_read_back_as_it_was() {
    let result = t2().characterize(2).unwrap();
    let text = serde_json::to_string(&result).unwrap();
    let again: Characterization = serde_json::from_str(&text).unwrap();
    assert_eq!(again.slowdowns.len(), result.slowdowns.len());
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}

#[test]
fn a_busy_and_noisy_machine_is_said_to_be_so() {
    let mut bench = t2();
    (bench.noise, bench.share) = (0.2, 0.5);
    let warnings = bench.characterize(2).unwrap().warnings;
    assert_eq!(warnings[0], Warning::Busy { share: 0.5 });
    assert!(matches!(warnings[1], Warning::Noisy { .. }), "{warnings:?}");
    let again: Vec<Warning> =
        serde_json::from_value(serde_json::to_value(&warnings).unwrap()).unwrap();
    assert_eq!(again, warnings);
}

#[test]
fn a_machine_of_one_context_has_only_runs_alone() {
    let bench = Synthetic::new(Machine::from_shape("1").unwrap());
    let plan = RoundPlan::new(&bench.machine, &bench.benchmarks[3..], &[], 8).unwrap();
    let bench = Synthetic { benchmarks: bench.benchmarks[3..].to_vec(), ..bench };
    let result = bench.all_runs(&plan, Synthetic::conditions(2)).unwrap();
    assert!(result.slowdowns.is_empty() && result.findings.remote.is_none());
    assert_eq!(result.references[0].absent.len(), 3);
}
