//! What durability costs: one record appended, on disk when the call returns. Run it on the disk
//! that will hold the store (`TMPDIR` names it). The time is that of the disk's flush.

use pinwise_campaign::{CampaignId, Kind, NewCampaign, Purpose, Record, Store, Trial};
use pinwise_measure::{Effort, Measurement, Setting, Unit, Workload};
use pinwise_topology::{Alike, Assignment, Machine};
use std::time::Duration;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 1000, sample_size = 1)]
fn append(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
    let id = begin(&mut store);
    let mut number = 0;
    bencher.bench_local(|| {
        store.append(id, &record(number)).unwrap();
        number += 1;
    });
}

#[divan::bench]
fn read_1000(bencher: divan::Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
    let id = begin(&mut store);
    (0..1000).for_each(|number| store.append(id, &record(number)).unwrap());
    bencher.bench_local(|| store.records(id).unwrap());
}

fn begin(store: &mut Store) -> CampaignId {
    let new = NewCampaign {
        kind: Kind::Place,
        parent: None,
        command: vec!["pinwise".into(), "place".into()],
        machine: Machine::from_shape("8x2x4").unwrap(),
        alike: Alike::ByStructure,
        workload: Workload::new("none", &[]),
        unit: Unit::rate("ops/s"),
        simulated: false,
        question: serde_json::Value::Null,
        seed: 1,
    };
    store.create(&new).unwrap()
}

fn record(number: u64) -> Record {
    Record {
        number,
        trial: Trial {
            setting: Setting::Pinned(Assignment::new((0..24).collect())),
            purpose: Purpose::Sample,
            effort: Effort::default(),
        },
        outcome: Ok(Measurement {
            performance: 1e6 / 3.0,
            duration: Duration::from_millis(30),
            spread: Some(1e4),
            detail: None,
        }),
        elapsed: Duration::from_millis(40 * number),
    }
}
