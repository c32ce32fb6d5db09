//! Plan files: beside the store, or where the user wants them.

use crate::error::JobError;
use crate::output_check::{check_writable, unwritable_reason};
use pinwise_campaign::{
    CampaignIdentity, CampaignInfo, Kind, Store, private_folder, unpredictable,
};
use pinwise_placement::{Plan, PlanOrigin};
use serde::Deserialize;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How well `named` identifies this campaign:
///
/// - 2: it names this campaign.
/// - 1: it names a store that is gone. That may be this store under an earlier name.
/// - 0: it names another campaign.
fn likeness(named: &CampaignIdentity, store: &Store, info: &CampaignInfo) -> u8 {
    let own = store.identity(info);
    if (named.number, named.started) != (own.number, own.started) {
        return 0;
    }
    let other = store.path().with_file_name(&named.store);
    if named.store == own.store { 2 } else { u8::from(!other.exists()) }
}

/// The folder of the plans of a store.
fn folder(store: &Store) -> PathBuf {
    store.path().with_file_name("plans")
}

/// The path of a campaign's plan. It is the latest file that names the campaign, in the store's
/// folder of plans or at the user's path. The file may have any name, and an earlier name of the
/// store counts. If no file names the campaign, it is an `N.toml` that names none. Such a file was
/// written by hand, or before plans named their campaigns.
pub fn plan_path(store: &Store, info: &CampaignInfo) -> Option<PathBuf> {
    let like = |path: &Path| campaign_named(path).map_or(0, |named| likeness(&named, store, info));
    let files = fs::read_dir(folder(store)).into_iter().flatten();
    let latest = files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .chain(asked_for(info))
        // Not a pipe, which would be read until somebody writes it.
        .filter(|path| path.is_file())
        .map(|path| (like(&path), path))
        .filter(|(like, _)| *like > 0)
        .max_by_key(|(like, path)| {
            (*like, fs::metadata(path).and_then(|file| file.modified()).ok())
        });
    latest.map(|(_, path)| path).or_else(|| {
        let path = folder(store).join(format!("{}.toml", info.id.0));
        (origin(&path) == Some(None)).then_some(path)
    })
}

/// The path that the user gave for the plan of a campaign, if its kind has a plan.
fn asked_for(info: &CampaignInfo) -> Option<PathBuf> {
    /// The fields that the requests of both kinds share.
    #[derive(Deserialize)]
    struct PlanField {
        plan: Option<PathBuf>,
    }
    match info.new.kind {
        Kind::Place | Kind::Tune => PlanField::deserialize(&info.new.question).ok()?.plan,
        _ => None,
    }
}

/// Writes a plan next to the store as `NAME.toml`, or if that is taken as `NAME-2.toml`,
/// `NAME-3.toml`, …. So no other plan, and no edited one, is lost. In the file name `-` takes the
/// place of what a shell would need quotes for.
///
/// # Errors
/// The folder or the file cannot be written.
pub(crate) fn keep_plan(store: &Store, name: &str, plan: &Plan) -> Result<PathBuf, JobError> {
    let folder = folder(store);
    private_folder(&folder).map_err(|error| cannot("make", &folder, &error))?;
    let plain = |letter: char| letter.is_alphanumeric() || "-_.+".contains(letter);
    let words = name.split(|letter| !plain(letter)).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    let names = std::iter::once(format!("{name}.toml"))
        .chain((2_u64..).map(|copy| format!("{name}-{copy}.toml")));
    for path in names.map(|name| folder.join(name)) {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            // The name is taken. Until the plan is whole, the file is empty, which is no plan.
            Ok(_) => {
                if let Err(error) = replace(&path, plan) {
                    let _ = fs::remove_file(&path);
                    return Err(cannot("write", &path, &error));
                }
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("write", &path, &error)),
        }
    }
    Err(JobError::failed(format!("{}: no name is free for the plan", folder.display())))
}

/// Writes a plan where the user wants it.
///
/// # Errors
/// The file cannot be written, or its folder does not exist.
pub(crate) fn write_plan(path: &Path, plan: &Plan) -> Result<(), JobError> {
    replace(path, plan).map_err(|error| cannot("write", path, &error))
}

/// Replaces the file with a plan, completely or not at all. A truncated plan would be a plan for
/// fewer threads. A link stays a link, and a device or a pipe is written as it is.
fn replace(path: &Path, plan: &Plan) -> io::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let there = fs::metadata(&real).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return fs::write(path, plan.to_toml());
    }
    let mut name = OsString::from(".");
    name.push(real.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", unpredictable()));
    let whole = real.with_file_name(name);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&whole)?;
        file.write_all(plan.to_toml().as_bytes())?;
        file.sync_all()?;
        if let Some(there) = &there {
            fs::set_permissions(&whole, there.permissions())?;
        }
        fs::rename(&whole, &real)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&whole);
    }
    written
}

/// Checks, before the first measurement, that the plan can be written: at `wanted`, or next to the
/// store.
///
/// # Errors
/// The folder of `wanted` does not exist or may not be written; it is a folder itself.
pub(crate) fn check_plan_path(store: &Store, wanted: Option<&Path>) -> Result<(), JobError> {
    let Some(path) = wanted else {
        let folder = folder(store);
        return private_folder(&folder).map_err(|error| cannot("make", &folder, &error));
    };
    check_writable(path).map_err(|error| JobError::Usage(unwritable_reason("write", path, &error)))
}

/// The path of the plan of a resumed campaign. It is the user's, if that can still be written and
/// holds nothing else. `None` otherwise.
pub(crate) fn resumed_path(
    store: &Store,
    info: &CampaignInfo,
    wanted: Option<PathBuf>,
) -> Option<PathBuf> {
    let free = |path: &Path| !path.exists() || is_its_plan(store, info, path);
    wanted.filter(|path| free(path) && check_plan_path(store, Some(path)).is_ok())
}

/// Whether a file is a plan that names this campaign.
fn is_its_plan(store: &Store, info: &CampaignInfo, path: &Path) -> bool {
    campaign_named(path).is_some_and(|named| likeness(&named, store, info) > 0)
}

/// The campaign that the plan in a file names.
fn campaign_named(path: &Path) -> Option<CampaignIdentity> {
    origin(path).flatten()?.campaign
}

/// The origin of the plan in a file, as far as it says so; `None`: it is no plan.
fn origin(path: &Path) -> Option<Option<PlanOrigin>> {
    Some(Plan::parse(&fs::read_to_string(path).ok()?).ok()?.origin)
}

/// The path of a plan, independent of the directory from which the campaign is resumed.
///
/// # Errors
/// The current directory is not known.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, JobError> {
    std::path::absolute(path).map_err(|error| cannot("find", path, &error))
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> JobError {
    JobError::failed(unwritable_reason(act, path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::assignment_count;
    use pinwise_campaign::{CampaignId, CampaignState, Kind, NewCampaign};
    use pinwise_measure::{LeftAlone, ProgramNote as Met};
    use pinwise_measure::{Unit, Workload};
    use pinwise_placement::{
        LastComparisonNote, PlacementVerdict, PlanNote, PlanOrigin, PlannedThread,
    };
    use pinwise_present::tagged;
    use pinwise_threads::ThreadsNote;
    use pinwise_topology::{Alike, CpuSet, Fingerprint, Machine};
    use std::os::unix::fs::PermissionsExt;

    fn campaign() -> CampaignInfo {
        CampaignInfo {
            id: CampaignId(3),
            new: NewCampaign {
                kind: Kind::Place,
                parent: None,
                command: Vec::new(),
                machine: Machine::from_shape("2").unwrap(),
                alike: Alike::ByStructure,
                workload: Workload::new("a", &[]),
                unit: Unit::cost("s"),
                simulated: false,
                question: serde_json::Value::Null,
                seed: 1,
            },
            started: 1_790_000_000,
            state: CampaignState::Finished,
            conclusion: None,
            records: 1,
            running: false,
        }
    }

    #[test]
    fn a_plan_is_found_under_another_name_of_its_store_after_those_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("new.db")).unwrap();
        let info = campaign();
        let own = store.identity(&info);
        let likeness = |named: &CampaignIdentity| likeness(named, &store, &info);
        assert_eq!(likeness(&own), 2);
        let old = CampaignIdentity { store: "old.db".into(), ..own.clone() };
        assert_eq!(likeness(&old), 1);
        std::fs::write(folder.path().join("old.db"), "").unwrap();
        assert_eq!(likeness(&old), 0, "it is the other store's");
        for other in [
            CampaignIdentity { number: CampaignId(13), ..own.clone() },
            CampaignIdentity { started: own.started + 1, ..own },
        ] {
            assert_eq!(likeness(&other), 0, "{other:?}");
        }
    }

    #[test]
    fn what_a_campaign_says_of_plan_and_space_is_read_though_the_rest_is_of_another_version() {
        let mut info = campaign();
        assert_eq!((asked_for(&info), assignment_count(&info)), (None, None));
        info.new.question = serde_json::json!({ "plan": "/a.toml", "unknown": 1 });
        info.conclusion = Some(serde_json::json!({ "assignments": "42", "unknown": 1 }));
        let known = (Some(PathBuf::from("/a.toml")), Some("42".to_owned()));
        assert_eq!((asked_for(&info), assignment_count(&info)), known);
        info.new.kind = Kind::Latency;
        assert_eq!((asked_for(&info), assignment_count(&info)), (None, None));
    }

    #[test]
    fn a_plan_is_found_by_the_campaign_that_it_names_and_not_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).unwrap();
        let info = campaign();
        let write = |name: &str, campaign: Option<CampaignIdentity>| {
            let threads = vec![PlannedThread {
                name: "a".into(),
                role: "a".into(),
                instance: 0,
                cpus: CpuSet::parse_list("0").unwrap(),
            }];
            let verdict = PlacementVerdict::Pin;
            let origin = PlanOrigin { campaign, verdict, simulated: false, notes: Vec::new() };
            let mut plan = Plan::new("a", Fingerprint::of(&info.new.machine), threads);
            plan.origin = Some(origin);
            keep_plan(&store, name, &plan).unwrap()
        };
        let own = store.identity(&info);
        let others = [
            write("3", Some(CampaignIdentity { number: CampaignId(4), ..own.clone() })),
            write("3-2", None),
        ];
        assert_eq!(plan_path(&store, &info), None, "the names of files say nothing");
        let tuned = write("tune-a (pid 7)", Some(own));
        assert_eq!(tuned.file_name().unwrap(), "tune-a-pid-7.toml");
        assert_eq!(plan_path(&store, &info), Some(tuned.clone()));
        // Written again, it takes the place of no other.
        let wanted = |path: &Path| resumed_path(&store, &info, Some(path.to_owned()));
        for free in [&tuned, &folder.path().join("new.toml")] {
            assert_eq!(wanted(free).as_ref(), Some(free));
        }
        assert_eq!(others.map(|path| wanted(&path)), [None, None]);
    }

    #[test]
    fn a_path_that_cannot_hold_a_plan_is_refused_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).unwrap();
        let refused = |path: &Path| match check_plan_path(&store, Some(path)) {
            Err(JobError::Usage(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let lost = folder.path().join("none/x.toml");
        assert!(refused(&lost).contains("its folder does not exist"));
        assert!(!lost.parent().unwrap().exists());
        assert!(refused(folder.path()).contains("it is a directory"));
        let new = folder.path().join("new.toml");
        check_plan_path(&store, Some(&new)).unwrap();
        assert!(!new.exists());
        check_plan_path(&store, None).unwrap();
        let plan = Plan::new("a", Fingerprint::of(&Machine::from_shape("2").unwrap()), Vec::new());
        let kept = keep_plan(&store, "1", &plan).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([kept.parent().unwrap(), &kept].map(mode), [0o700, 0o600], "for its user alone");
        fs::write(&new, "old").unwrap();
        check_plan_path(&store, Some(&new)).unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "old");
    }

    #[test]
    fn a_plan_takes_the_place_of_another_whole_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::new("a", Fingerprint::of(&Machine::from_shape("2").unwrap()), Vec::new());
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("link.toml"));
        fs::write(&real, "an earlier one, longer than any plan".repeat(100)).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_plan(&link, &plan).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), plan.to_toml());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
        write_plan(Path::new("/dev/null"), &plan).unwrap();
        assert!(write_plan(Path::new("/dev/full"), &plan).is_err());
    }

    #[test]
    fn notes_that_explain_a_result_do_not_weaken_its_plan() {
        let (reason, names) = (LeftAlone::HardlyRuns, Default::default());
        let watched = ThreadsNote::WatchedOtherwise {
            probes: 1,
            of: 2,
            by: "ebpf".to_owned(),
            later: "proc".to_owned(),
        };
        let explaining = [
            tagged(&LastComparisonNote::DefaultAssumed { n: 2, threads: None }, ""),
            tagged(&LastComparisonNote::DefaultInferred { n: 2, threads: 3 }, ""),
            tagged(&ThreadsNote::SingleRuns, ""),
            tagged(&ThreadsNote::ShortRuns { run_seconds: None, pieces: None }, ""),
            tagged(&ThreadsNote::CutOff { n: 2, asked: true }, ""),
            tagged(&ThreadsNote::Translated { counts_n: true, n: [1, 2], threads: [1, 2] }, ""),
            tagged(&ThreadsNote::Set { n: 2 }, ""),
            tagged(&watched, ""),
            tagged(&ThreadsNote::LimitsRestored, ""),
            tagged(&ThreadsNote::Pieces { pieces: 2 }, ""),
            tagged(&Met::MetricRead { counter: true, by_name: true }, ""),
            tagged(&Met::LinesAdded { lines: 2, seconds: 1.0 }, ""),
            tagged(&Met::LeftAlone { reason, names }, ""),
        ];
        for note in explaining {
            assert!(!PlanNote::new(&note).weakens(), "{note}");
        }
        for note in [tagged(&Met::Busy { share: 0.5 }, ""), tagged(&ThreadsNote::Simulated, "")] {
            assert!(PlanNote::new(&note).weakens(), "{note}");
        }
    }
}
