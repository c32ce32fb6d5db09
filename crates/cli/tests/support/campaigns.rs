//! A store of campaigns that repeat exactly, for transcripts: their testbeds look performances up.

use pinwise_campaign::{CampaignState, Ending, Kind, NewCampaign, Record, Store, drive};
use pinwise_measure::{Thread, Unit, Workload};
use pinwise_placement::{Budget, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_synthetic::{Disturbance, Replay};
use pinwise_topology::{Machine, PerContext, Random, SharingTree, Snapshot, Space};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A campaign on a recorded machine: a number of pipelines of receive, process and transmit.
struct Made {
    machine: &'static str,
    pipelines: usize,
    unit: Unit,
    /// The performances of assignments lie between half of this and this.
    best: f64,
    /// Unpinned.
    baseline: f64,
    strategy: StrategyName,
    budget: u64,
    /// After how many records it is asked to stop.
    stopped: u64,
}

/// Makes the store at `path`: a campaign that found something, one that found nothing better, one
/// that was stopped.
pub(crate) fn store(path: &Path) {
    let mut store = Store::open(path).unwrap();
    let packets = || Unit::rate("packets/s");
    for made in [
        Made {
            machine: "qemu-smt",
            pipelines: 1,
            unit: packets(),
            best: 2.4e6,
            baseline: 1.7e6,
            strategy: StrategyName::Auto,
            budget: 200,
            stopped: u64::MAX,
        },
        Made {
            machine: "qemu-offline",
            pipelines: 1,
            unit: Unit::cost("s"),
            best: 0.5,
            baseline: 0.52,
            strategy: StrategyName::Exhaustive,
            budget: 120,
            stopped: u64::MAX,
        },
        Made {
            machine: "qemu-numa",
            pipelines: 2,
            unit: packets(),
            best: 3.1e6,
            baseline: 2.9e6,
            strategy: StrategyName::Random,
            budget: 600,
            stopped: 90,
        },
    ] {
        made.measure(&mut store);
    }
}

impl Made {
    fn measure(&self, store: &mut Store) {
        let archive =
            format!("{}/tests/machines/{}.tar.bz2", env!("CARGO_MANIFEST_DIR"), self.machine);
        let snapshot = Snapshot::from_tar(&fs::read(archive).unwrap()).unwrap();
        let machine = Machine::from_snapshot(&snapshot).unwrap();
        let workload = self.workload();
        let question = self.question();
        let tree = SharingTree::new(&machine, question.alike);
        let space =
            Space::new(tree.clone(), workload.threads.len(), PerContext::AtMost(1)).unwrap();
        let population = space.classes().enumerate().map(|(rank, class)| {
            let share = 0.5 + 0.5 * Random::new(rank as u64).unit();
            (class, share * self.best)
        });
        let disturbance = Disturbance { noise: 0.01, seed: 1, ..Disturbance::default() };
        let unit = self.unit.clone();
        let mut testbed = Replay::new(
            machine.clone(),
            workload.clone(),
            unit.clone(),
            population,
            vec![self.baseline],
            disturbance,
        );
        let id = store
            .create(&NewCampaign {
                kind: Kind::Place,
                parent: None,
                command: vec!["pinwise".into(), "place".into()],
                machine,
                alike: question.alike,
                workload: workload.clone(),
                unit: unit.clone(),
                simulated: false,
                question: serde_json::to_value(&question).unwrap(),
                seed: question.seed,
            })
            .unwrap();
        let mut search = PlacementSearch::new(&question, &tree, &workload).unwrap();
        let made = Cell::new(0);
        let (ending, records) = drive(
            &mut store.journal(id).unwrap(),
            &mut search,
            &mut testbed,
            &|| Duration::ZERO,
            &|| made.get() >= self.stopped,
            &mut |_: &Record| made.set(made.get() + 1),
        )
        .unwrap();
        if ending == Ending::Finished {
            let outcome = serde_json::to_value(search.outcome(&unit, &records, None)).unwrap();
            store.set_state(id, CampaignState::Finished, Some(&outcome)).unwrap();
        } else {
            store.set_state(id, CampaignState::Stopped, None).unwrap();
        }
    }

    fn workload(&self) -> Workload {
        let thread = |(instance, role): (usize, &str)| {
            Thread::new(format!("ipfwd{instance}-{role}"), role, instance)
        };
        let threads = (0..self.pipelines)
            .flat_map(|instance| ["R", "P", "T"].map(|role| thread((instance, role))));
        Workload { name: "ipfwd".into(), threads: threads.collect() }
    }

    fn question(&self) -> PlacementQuestion {
        PlacementQuestion {
            per_context: Some(1),
            ..PlacementQuestion::new(self.strategy, Budget::Measurements(self.budget))
        }
    }
}
