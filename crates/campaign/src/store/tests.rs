//! Tests of [`Store`]: what it keeps, and what it refuses.

use super::*;
use crate::Journal;
use crate::fixture::campaign;
use crate::{Purpose, Trial};
use pinwise_measure::{
    Detail, Disturbances, Effort, MeasureError, Measurement, MemoryPolicy, OtherLoad,
    PinnedInstance, Placed, Retry, Seat, Seating, Setting, ThreadCount, ThreadMoves,
};
use pinwise_topology::{Assignment, CpuId, Policy};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::time::Duration;
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/pinwise.db");
    (folder, path)
}

fn record(number: u64, performance: f64) -> Record {
    Record {
        number,
        trial: Trial {
            setting: Setting::Pinned(Assignment::new(vec![0, 3, 1])),
            purpose: Purpose::Sample,
            effort: Effort::default(),
        },
        outcome: Ok(Measurement::new(performance, Duration::from_millis(30))),
        elapsed: Duration::from_millis(40 * (number + 1)),
    }
}

fn reason(path: &Path) -> String {
    Store::open(path).unwrap_err().to_string()
}

#[test]
fn a_campaign_is_read_as_it_was_written() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    store.append(id, &record(0, 0.1)).unwrap();
    let conclusion = serde_json::json!({ "best": 0.1 });
    store.set_state(id, CampaignState::Stopped, Some(&conclusion)).unwrap();
    let mut journal = store.journal(id).unwrap();
    journal.append(&record(1, 0.2)).unwrap();
    drop(journal);
    assert_eq!(store.get(id).unwrap().conclusion, None, "it was drawn from fewer records");
    store.set_state(id, CampaignState::Stopped, Some(&conclusion)).unwrap();
    drop(store.journal(id).unwrap());
    store.set_state(id, CampaignState::Finished, None).unwrap();

    let store = Store::open(&path).unwrap();
    let info = store.get(id).unwrap();
    assert_eq!(info.new, campaign());
    assert_eq!((info.state, info.records, info.running), (CampaignState::Finished, 2, false));
    assert_eq!(info.conclusion, Some(conclusion));
    assert!(info.started > 1_700_000_000);
    assert_eq!(store.list().unwrap().campaigns, [info]);
}

#[test]
fn a_record_of_a_part_ends_what_the_whole_had_concluded() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let whole = store.create(&campaign()).unwrap();
    let part = |of: CampaignId| NewCampaign { parent: Some(Parent::new(of, &"x")), ..campaign() };
    let first = store.create(&part(whole)).unwrap();
    let second = store.create(&part(whole)).unwrap();
    let of_first = store.create(&part(first)).unwrap();
    let all = [whole, first, second, of_first];
    for id in all {
        store.set_state(id, CampaignState::Stopped, Some(&serde_json::json!(1))).unwrap();
    }
    store.set_state(whole, CampaignState::Finished, None).unwrap();
    store.journal(of_first).unwrap().append(&record(0, 1.0)).unwrap();
    let concluded = all.map(|id| store.get(id).unwrap().conclusion.is_some());
    assert_eq!(concluded, [false, false, true, false]);
    // Or nothing would conclude it again.
    assert_eq!(store.get(whole).unwrap().state, CampaignState::Stopped);
}

#[test]
fn a_running_campaign_keeps_its_parts() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let whole = store.create(&campaign()).unwrap();
    let parent = Some(Parent::new(whole, &"search"));
    let part = store.create(&NewCampaign { parent, ..campaign() }).unwrap();
    store.append(part, &record(0, 1.0)).unwrap();
    let other = Store::open(&path).unwrap();
    let lock = other.lock(whole).unwrap();
    assert!(matches!(store.delete(whole), Err(StoreError::Running { .. })));
    assert_eq!(store.records(part).unwrap().len(), 1);
    drop(lock);
    let lock = other.lock(part).unwrap();
    assert!(matches!(store.delete(whole), Err(StoreError::Running { .. })));
    assert_eq!(store.list().unwrap().campaigns.len(), 2);
    drop(lock);
    store.delete(whole).unwrap();
    assert!(store.list().unwrap().campaigns.is_empty());
}

#[test]
fn a_deleted_campaign_is_gone_and_its_number_is_not_used_again() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let (first, second) = (store.create(&campaign()).unwrap(), store.create(&campaign()).unwrap());
    store.append(first, &record(0, 1.0)).unwrap();
    store.append(second, &record(0, 2.0)).unwrap();
    let lock = Store::open(&path).unwrap().lock(second).unwrap();
    assert!(
        matches!(store.delete(second), Err(StoreError::Running { .. })),
        "a running campaign is not deleted"
    );
    drop(lock);
    store.delete(second).unwrap();
    assert!(matches!(store.delete(second), Err(StoreError::NoCampaign { .. })));
    assert_eq!(
        (store.list().unwrap().campaigns.len(), store.records(first).unwrap().len()),
        (1, 1)
    );
    assert_eq!(store.records(second).unwrap(), []);
    assert_eq!(store.create(&campaign()).unwrap(), CampaignId(second.0 + 1));
}

#[test]
fn every_kind_of_setting_and_what_else_was_observed_comes_back() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    let part = |instance, leaves: &[u32]| PinnedInstance { instance, leaves: leaves.to_vec() };
    let threads = |n, placed: Option<&[u32]>| {
        let placed = placed.map(|leaves| Placed::At(Assignment::new(leaves.to_vec())));
        Setting::Threads(ThreadCount { placed, ..ThreadCount::unpinned(n) })
    };
    let by = |memory| {
        let placed = Some(Placed::By(Policy::Cores));
        Setting::Threads(ThreadCount { n: Some(8), placed, memory })
    };
    let seat = |leaf, benchmark| Seat { leaf, benchmark };
    let settings = [
        (Setting::Unpinned, "unpinned"),
        (Setting::Pinned(Assignment::new(vec![0, 3, 1])), "0,3,1"),
        (Setting::Profile(vec![part(0, &[0, 8, 16])]), "0:0,8,16"),
        (Setting::Profile(vec![part(1, &[3]), part(0, &[0, 1, 2])]), "1:3 0:0,1,2"),
        (threads(Some(4), None), "n=4"),
        (threads(None, None), "n=default"),
        (threads(Some(2), Some(&[0, 5])), "n=2 0,5"),
        (by(MemoryPolicy::Leave), "n=8 cores"),
        (by(MemoryPolicy::Follow), "n=8 cores memory follow"),
        (Setting::Pair(CpuId(3), CpuId(0)), "3>0"),
        (
            Setting::Benchmarks(Seating { seats: vec![seat(0, 3), seat(8, 1)], seed: u64::MAX }),
            "seats 0=3 8=1 seed 18446744073709551615",
        ),
        (Setting::Caches(CpuId(17)), "caches 17"),
        (Setting::Coscheduled(ThreadMoves::Counted), "moved counted"),
        (Setting::Coscheduled(ThreadMoves::Apart), "moved apart"),
        (Setting::Coscheduled(ThreadMoves::Dealt(7)), "moved 7"),
    ];
    let detail = Detail::of(&serde_json::json!({ "locked": 0.25, "threads": ["a", "b"] }));
    for (number, (setting, text)) in settings.into_iter().enumerate() {
        assert_eq!(assignment_text(&setting), text);
        let trial = Trial { setting, purpose: Purpose::Other, effort: Effort::default() };
        let mut made = Record { trial, ..record(number as u64, 2.0) };
        if let Ok(measurement) = &mut made.outcome {
            measurement.detail = detail.clone().filter(|_| number % 2 == 0);
        }
        store.append(id, &made).unwrap();
        assert_eq!(Store::open(&path).unwrap().records(id).unwrap().last(), Some(&made));
    }
    let slow = MeasureError { detail: detail.map(Box::new), ..MeasureError::below_floor("slow") };
    let gone = MeasureError::new(Retry::Other, "gone");
    for (number, error) in [(15, MeasureError::expired("over")), (16, slow), (17, gone)] {
        let failed = Record { outcome: Err(error), ..record(number, 0.0) };
        store.append(id, &failed).unwrap();
        assert_eq!(store.records(id).unwrap().last(), Some(&failed));
    }
}

/// A store of an earlier format, with these campaigns: kind, parent and question. The first has a
/// record.
fn older(path: &Path, format: i32, campaigns: &[(Kind, Option<i64>, &str)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let store = Connection::open(path).unwrap();
    store.execute_batch(include_str!("schema.sql")).unwrap();
    store
        .execute_batch(&format!(
            "ALTER TABLE campaign DROP COLUMN simulated;
             PRAGMA user_version = {format}; PRAGMA application_id = 1885957751;"
        ))
        .unwrap();
    for (kind, parent, question) in campaigns {
        let NewCampaign { command, machine, alike, workload, unit, .. } = campaign();
        let texts = [text(&command), text(&machine), word(&alike), text(&workload), text(&unit)];
        // Its word in those versions.
        let kind = if *kind == Kind::LastComparison { "finals" } else { kind.name() };
        let texts = texts.into_iter().chain(["7", question, kind].map(str::to_owned));
        store
            .execute(
                "INSERT INTO campaign (command, machine, alike, workload, unit, seed, question,
                 kind, parent, step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '\"a step\"')",
                rusqlite::params_from_iter(
                    texts.map(Value::Text).chain([parent.map_or(Value::Null, Value::Integer)]),
                ),
            )
            .unwrap();
    }
    store
        .execute(
            "INSERT INTO record (campaign, number, purpose, assignment, windows, performance,
             duration_s, elapsed_s) VALUES (1, 0, 'sample', '0,1', 1, 2, 1, 1)",
            [],
        )
        .unwrap();
    if format < 3 {
        store
            .execute_batch(
                "ALTER TABLE campaign DROP COLUMN kind; ALTER TABLE campaign DROP COLUMN parent;
                 ALTER TABLE campaign DROP COLUMN step; ALTER TABLE record DROP COLUMN detail;",
            )
            .unwrap();
    }
}

#[test]
fn a_store_of_the_versions_before_is_read_as_it_is_and_copied_before_it_is_upgraded() {
    let model = r#""subject":{"simulated":{"model":"m"}}"#;
    let [place, compare, select] =
        ["", r#","lineup":{}"#, r#","alone":[1.0]"#].map(|more| format!("{{{model}{more}}}"));
    let of_each = [
        (Kind::Place, None, "{}"),
        (Kind::Compare, None, r#"{"subject":{"rerun":["a"]},"lineup":{}}"#),
        (Kind::Place, None, &place),
        (Kind::Compare, None, &compare),
        (Kind::Select, None, &select),
    ];
    let of_kinds = [
        (Kind::Threads, None, r#"{"program":{"here":{"command":["a"]}}}"#),
        (Kind::LastComparison, Some(6), r#"{"rounds":5}"#),
        (Kind::Threads, None, r#"{"program":{"modelled":{"machine":"m"}}}"#),
        (Kind::LastComparison, Some(8), r#"{"rounds":5}"#),
        (Kind::Calibrate, None, r#"{"examples":{"commands":["a","b","c"]}}"#),
        (Kind::Calibrate, None, r#"{"examples":{"modelled":{"name":"m"}}}"#),
        (Kind::Characterize, None, r#"{"benchmarks":[]}"#),
        (Kind::Characterize, None, r#"{"model":"m","benchmarks":[]}"#),
    ];
    let simulated_of_each = [false, false, true, true, true];
    let simulated_of_kinds = [false, false, true, true, false, true, false, true];
    let all = [&of_each[..], &of_kinds].concat();
    let simulated_all = [&simulated_of_each[..], &simulated_of_kinds].concat();
    for (format, campaigns, simulated) in [
        (1, &of_each[..], &simulated_of_each[..]),
        (2, &of_each, &simulated_of_each),
        (3, &all, &simulated_all),
    ] {
        let (_folder, path) = folder();
        older(&path, format, campaigns);
        let read = |store: &Store| {
            let Listing { campaigns: read, unreadable } = store.list().unwrap();
            assert!(unreadable.is_empty(), "{unreadable:?}");
            for ((info, (kind, parent, _)), simulated) in read.iter().zip(campaigns).zip(simulated)
            {
                assert_eq!((info.new.kind, info.new.simulated), (*kind, *simulated), "{info:?}");
                let of = info.new.parent.as_ref().map(|parent| parent.id.0);
                assert_eq!(of, *parent);
                assert_eq!(&store.get(info.id).unwrap(), info);
            }
            assert_eq!(read.len(), campaigns.len());
            assert_eq!(store.records(CampaignId(1)).unwrap().len(), 1);
            assert!(store.parts(CampaignId(1)).unwrap().is_empty());
        };
        let connection = Connection::open_with_flags(
            format!("file:{}?immutable=1", path.display()),
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI,
        );
        let connection = connection.unwrap();
        let (inode, locked) = (None, Default::default());
        let mut fixed = Store {
            connection,
            path: path.clone(),
            inode,
            format: FORMAT,
            made: false,
            rescued: None,
            locked,
        };
        fixed.check_or_create().unwrap();
        assert_eq!(fixed.format, format);
        read(&fixed);
        drop(fixed);

        let mut store = Store::open(&path).unwrap();
        read(&store);
        assert_eq!(store.format, format, "who only reads leaves it is");
        let copy = store.upgrade().unwrap().unwrap();
        assert_eq!((store.format, store.upgrade().unwrap()), (FORMAT, None));
        read(&store);
        assert!(copy.ends_with(format!("pinwise.db.format-{format}")), "{copy:?}");
        let copy = Store::open(&copy).unwrap();
        assert_eq!(copy.format, format);
        read(&copy);
        let parent = Parent::new(CampaignId(1), &"search");
        let part =
            NewCampaign { kind: Kind::Place, parent: Some(parent), simulated: true, ..campaign() };
        let id = store.create(&part).unwrap();
        assert_eq!(store.get(id).unwrap().new, part);
        assert_eq!(store.parts(CampaignId(1)).unwrap().len(), 1);
        store.delete(CampaignId(1)).unwrap();
        assert!(store.get(id).is_err(), "a part goes with its campaign");
    }
}

#[test]
fn a_question_that_is_damaged_keeps_no_older_store_from_being_read_and_upgraded() {
    let (_folder, path) = folder();
    older(&path, 3, &[(Kind::Place, None, "{}"), (Kind::Place, None, "damaged")]);
    let mut store = Store::open(&path).unwrap();
    let read = |store: &Store| {
        let Listing { campaigns, unreadable } = store.list().unwrap();
        assert_eq!((campaigns.len(), unreadable.len()), (1, 1));
    };
    read(&store);
    store.upgrade().unwrap();
    read(&store);
}

#[test]
fn disturbances_are_read_back_and_older_stores_have_none() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let [id, other] = [store.create(&campaign()).unwrap(), store.create(&campaign()).unwrap()];
    assert_eq!(
        (store.disturbances(id).unwrap(), store.next_session(id).unwrap()),
        (Vec::new(), 0),
        "no table yet"
    );
    let met = |taken, note: &str| Disturbances {
        others: Some(OtherLoad::new(taken, 3.0)),
        notes: vec![note.to_owned().into()],
    };
    store.keep_disturbances(id, 0, &met(0.1, "early")).unwrap();
    store.keep_disturbances(id, 0, &met(0.3, "it's \"late\"")).unwrap();
    store.keep_disturbances(id, 1, &Disturbances::default()).unwrap();
    store.keep_disturbances(other, 0, &met(9.0, "another's")).unwrap();
    let mut store = Store::open(&path).unwrap();
    let of_id = [met(0.3, "it's \"late\""), Disturbances::default()];
    assert_eq!(store.disturbances(id).unwrap(), of_id);
    assert_eq!(store.journal(id).unwrap().disturbances().unwrap(), of_id);
    assert_eq!((store.next_session(id).unwrap(), store.next_session(other).unwrap()), (2, 1));
    assert!(store.records(id).unwrap().is_empty());
    for damage in ["UPDATE part SET met = replace(met, '0.3', '0.2')", "DELETE FROM part"] {
        let damage = format!("SAVEPOINT whole; {damage} WHERE campaign = 1 AND number = 0");
        store.sql(|connection| connection.execute_batch(&damage)).unwrap();
        let refused = store.disturbances(id).unwrap_err().to_string();
        assert!(refused.contains("is damaged: campaign 1 is not as it was written"), "{refused}");
        let whole = "ROLLBACK TO whole; RELEASE whole";
        store.sql(|connection| connection.execute_batch(whole)).unwrap();
    }
    store.delete(id).unwrap();
    assert_eq!(
        (store.disturbances(id).unwrap().len(), store.disturbances(other).unwrap().len()),
        (0, 1)
    );
}

#[test]
fn records_can_be_asked_with_plain_sql() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    store.append(id, &record(0, 12.5)).unwrap();
    let row: (String, String, f64, f64) = store
        .connection
        .query_row("SELECT purpose, assignment, performance, duration_s FROM record", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(row, ("sample".into(), "0,3,1".into(), 12.5, 0.03));
}

#[test]
fn an_unknown_campaign_is_answered_with_those_there_are() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    assert!(
        store.get(CampaignId(7)).unwrap_err().to_string().contains("no campaign 7; it holds none")
    );
    store.create(&campaign()).unwrap();
    store.create(&campaign()).unwrap();
    assert!(store.get(CampaignId(7)).unwrap_err().to_string().contains("the latest are 2, 1"));
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_as_it_was() {
    let (folder, _) = folder();
    let text = folder.path().join("notes.txt");
    let contents = "these are notes, and no database at all; ".repeat(100);
    std::fs::write(&text, &contents).unwrap();
    assert!(reason(&text).contains("is not a store of pinwise"), "{}", reason(&text));
    assert_eq!(std::fs::read_to_string(&text).unwrap(), contents);

    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = std::fs::read(&other).unwrap();
    assert!(reason(&other).contains("not a store of pinwise"), "{}", reason(&other));
    assert_eq!(std::fs::read(&other).unwrap(), before);

    assert!(reason(folder.path()).contains("is no regular file"), "{}", reason(folder.path()));
}

#[test]
fn a_newer_store_is_refused() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    store.connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    drop(store);
    assert!(reason(&path).contains("format 6, and this version reads 1 to 5"), "{}", reason(&path));
}

#[test]
fn what_another_version_wrote_is_answered_with_what_to_do() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    store.connection.execute("UPDATE campaign SET machine = '{\"cores\":4}'", []).unwrap();
    let error = store.get(id).unwrap_err().to_string();
    assert!(
        error.contains("cannot read (missing field")
            && error.contains("use the version that wrote it"),
        "{error}"
    );
}

#[test]
fn a_full_disk_keeps_what_was_acknowledged() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    // SQLite answers its own page limit exactly as it answers a full disk.
    let pages: i64 =
        store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store
        .connection
        .pragma_update_and_check(None, "max_page_count", pages + 2, |_| Ok(()))
        .unwrap();
    let mut acknowledged = 0;
    let error = loop {
        match store.append(id, &record(acknowledged, 1.0)) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(
        error.to_string().contains("the disk is full; all earlier records are safe"),
        "{error}"
    );
    assert!(acknowledged > 0);
    drop(store);
    assert_eq!(Store::open(&path).unwrap().records(id).unwrap().len() as u64, acknowledged);
}

/// Removes the file and its journal, as `rm pinwise.db*` does.
fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
}

#[test]
fn a_store_that_is_removed_or_replaced_meanwhile_is_rescued_and_ends_the_campaign() {
    for replaced in [false, true] {
        let (_folder, path) = folder();
        let mut store = Store::open(&path).unwrap();
        let id = store.create(&campaign()).unwrap();
        store.append(id, &record(0, 1.0)).unwrap();
        remove(&path);
        if replaced {
            Store::open(&path).unwrap();
        }
        let error = store.append(id, &record(1, 2.0)).unwrap_err().to_string();
        assert!(error.contains("was removed or replaced"), "{error}");
        let copy = error.split(' ').find(|word| word.contains(".rescued-")).unwrap();
        let copy = copy.trim_end_matches(':').to_owned();
        assert!(copy.starts_with(&format!("{}.rescued-", path.display())), "{error}");
        let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "for its user alone");
        let rescued = Store::open(Path::new(&copy)).unwrap();
        assert_eq!(store.rescued(), Some(rescued.path()));
        assert!(rescued.token().is_some() && rescued.token() == store.token());
        assert_eq!(rescued.records(id).unwrap(), [record(0, 1.0), record(1, 2.0)]);
        // The end of a campaign is written, too.
        remove(Path::new(&copy));
        assert!(store.set_state(id, CampaignState::Finished, None).is_err());
    }
}

#[test]
fn a_read_only_store_can_be_read() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    store.append(id, &record(0, 1.0)).unwrap();
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        // Permissions do not bind root: take what SQLite itself would then meet.
        let mut store = Store::open(&path).unwrap();
        store.connection.pragma_update(None, "query_only", true).unwrap();
        let error = store.append(id, &record(1, 1.0)).unwrap_err().to_string();
        assert!(error.contains("is read-only; make it and its folder writable"), "{error}");
        return;
    }
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.records(id).unwrap().len(), 1);
    let error = store.append(id, &record(1, 1.0)).unwrap_err().to_string();
    assert!(error.contains("is read-only"), "{error}");
}

#[test]
fn a_new_store_is_for_its_user_alone() {
    let (folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    let _lock = store.lock(id).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for made in ["deep", "deep/er"] {
        assert_eq!(mode(&folder.path().join(made)), 0o700, "{made}");
    }
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 3, "the store, its journal and a lock: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_locked_store_says_so_and_works_afterwards() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.connection.busy_timeout(Duration::ZERO).unwrap();
    let error = store.append(id, &record(0, 1.0)).unwrap_err().to_string();
    assert!(error.contains("is locked by another program"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    store.append(id, &record(0, 1.0)).unwrap();
}

#[test]
fn writers_of_different_campaigns_share_a_new_store() {
    let (_folder, path) = folder();
    let ids: Vec<CampaignId> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = Store::open(&path).unwrap();
                    let id = store.create(&campaign()).unwrap();
                    let _lock = store.lock(id).unwrap();
                    for number in 0..20 {
                        store.append(id, &record(number, 1.0)).unwrap();
                    }
                    id
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list().unwrap().campaigns.len(), 6);
    assert!(ids.iter().all(|&id| store.records(id).unwrap().len() == 20));
}

#[test]
fn a_campaign_that_cannot_be_read_leaves_the_others_in_the_list() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let ids = [(); 3].map(|()| store.create(&campaign()).unwrap());
    let damage = "UPDATE campaign SET workload = '{}' WHERE id = 2";
    store.sql(|connection| connection.execute_batch(damage)).unwrap();
    let Listing { campaigns: read, unreadable } = store.list().unwrap();
    assert_eq!(read.iter().map(|info| info.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    assert_eq!(unreadable.len(), 1);
    assert_eq!(unreadable[0].0, ids[1]);
    assert!(
        unreadable[0].1.to_string().contains("that this version cannot read"),
        "{:?}",
        unreadable[0].1
    );
}

/// A store is damaged, read, and restored, 1,000 times. What can be read is as it was written.
#[test]
fn a_damaged_store_is_refused_or_read_as_it_was_written() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    for count in [3, 40, 80] {
        let id = store.create(&campaign()).unwrap();
        for number in 0..count {
            store.append(id, &record(number, 1e6 + number as f64)).unwrap();
        }
        let conclusion = serde_json::json!({ "best": count });
        store.set_state(id, CampaignState::Finished, Some(&conclusion)).unwrap();
    }
    let known = store.list().unwrap().campaigns;
    let records: Vec<Vec<Record>> =
        known.iter().map(|info| store.records(info.id).unwrap()).collect();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut random = pinwise_topology::Random::new(5);
    let (mut refused, mut correct) = (0, 0);
    for round in 0..1000 {
        remove(&path);
        let mut bytes = whole.clone();
        for _ in 0..=random.below(8) {
            bytes[random.below(whole.len() as u64) as usize] = random.below(256) as u8;
        }
        std::fs::write(&path, bytes).unwrap();
        let Ok(store) = Store::open(&path) else {
            refused += 1;
            continue;
        };
        let Ok(Listing { campaigns, unreadable }) = store.list() else {
            refused += 1;
            continue;
        };
        let mut complained = !unreadable.is_empty();
        for (info, records) in known.iter().zip(&records) {
            let listed = campaigns.iter().find(|listed| listed.id == info.id);
            assert!(complained || listed.is_some(), "round {round}: {info:?} is gone");
            let read = store.get(info.id);
            for read in listed.into_iter().chain(&read) {
                // How many there are is no column: the records themselves are compared.
                let read = CampaignInfo { records: info.records, ..read.clone() };
                assert_eq!(read, *info, "round {round}");
            }
            match store.records(info.id) {
                Ok(read) => assert_eq!(read, *records, "round {round}"),
                Err(_) => complained = true,
            }
            complained |= read.is_err();
        }
        (refused, correct) = (refused + i32::from(complained), correct + i32::from(!complained));
    }
    println!("{refused} times an error, {correct} times the right answer");
    assert!(refused > 300 && correct > 100, "{refused} {correct}");
}

#[test]
fn a_campaign_has_one_writer_at_a_time() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let id = store.create(&campaign()).unwrap();
    let other = store.create(&campaign()).unwrap();
    let lock = store.lock(id).unwrap();
    let reader = Store::open(&path).unwrap();
    assert!(reader.get(id).unwrap().running);
    assert!(!reader.get(other).unwrap().running);
    assert!(!store.get(id).unwrap().running, "it is our own");
    assert!(matches!(reader.lock(id), Err(StoreError::Running { .. })));
    let _other = store.lock(other).unwrap();
    // Its holder may take it again.
    let again = store.lock(id).unwrap();
    drop(lock);
    assert!(matches!(reader.lock(id), Err(StoreError::Running { .. })));
    drop(again);
    assert!(!reader.get(id).unwrap().running);
    drop(reader.lock(id).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_record_comes_back_bit_for_bit(
        leaves in proptest::collection::vec(0u32..5000, 1..20),
        pinned: bool,
        failed: bool,
        performance in proptest::num::f64::NORMAL
            | proptest::num::f64::SUBNORMAL
            | proptest::num::f64::ZERO,
        spread in proptest::option::of(0.0..1e9f64),
        duration in 0u64..4_000_000_000_000_000,
        elapsed in 0u64..4_000_000_000_000_000,
        message in "\\PC{0,40}",
    ) {
        let record = Record {
            number: 0,
            trial: Trial {
                setting: if pinned {
                    Setting::Pinned(Assignment::new(leaves))
                } else {
                    Setting::Unpinned
                },
                purpose: Purpose::Climb,
                effort: Effort { windows: 1.5 },
            },
            outcome: if failed {
                Err(MeasureError::new(Retry::Other, message))
            } else {
                let duration = Duration::from_nanos(duration);
                Ok(Measurement { performance, duration, spread, detail: None })
            },
            elapsed: Duration::from_nanos(elapsed),
        };
        let (_folder, path) = folder();
        let mut store = Store::open(&path).unwrap();
        let id = store.create(&campaign()).unwrap();
        store.append(id, &record).unwrap();
        let back = store.records(id).unwrap();
        if let (Ok(a), Ok(b)) = (&back[0].outcome, &record.outcome) {
            prop_assert_eq!(a.performance.to_bits(), b.performance.to_bits());
        }
        prop_assert_eq!(back, [record]);
    }
}

#[test]
fn a_campaign_whose_row_is_gone_is_listed_and_can_be_deleted() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let ids = [(); 3].map(|()| store.create(&campaign()).unwrap());
    ids.iter().for_each(|id| store.append(*id, &record(0, 1.0)).unwrap());
    let damage = "DELETE FROM record WHERE campaign = 2; DELETE FROM campaign WHERE id = 2";
    store.sql(|connection| connection.execute_batch(damage)).unwrap();
    let listed = store.list().unwrap();
    let lost: Vec<CampaignId> = listed.unreadable.iter().map(|(id, _)| *id).collect();
    assert_eq!((lost, listed.campaigns.len()), (vec![ids[1]], 2));
    store.delete(ids[1]).unwrap();
    assert!(store.list().unwrap().unreadable.is_empty());
    assert!(matches!(store.delete(ids[1]), Err(StoreError::NoCampaign { .. })));
}

#[test]
fn the_store_that_makes_the_tables_knows_and_each_has_its_own_token() {
    let (_folder, path) = folder();
    private_folder(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "").unwrap();
    let [made, found] = [(); 2].map(|()| Store::open(&path).unwrap());
    assert!(made.was_made() && !found.was_made());
    assert!(made.token().is_some() && made.token() == found.token());
    let other = Store::open(&path.with_extension("other")).unwrap();
    assert_ne!(other.token(), made.token());
}

#[test]
fn a_new_store_may_be_opened_by_several_at_once() {
    for _ in 0..5 {
        let (_folder, path) = folder();
        let together = Barrier::new(4);
        let open = || {
            together.wait();
            Store::open(&path).map(drop)
        };
        let opened: Vec<_> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            opening.into_iter().map(|opening| opening.join().unwrap()).collect()
        });
        assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    }
}
