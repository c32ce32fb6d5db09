//! Plan files: beside the store, or where the user wants them.

use crate::error::JobError;
use pinwise_campaign::{CampaignInfo, Store};
use pinwise_placement::Plan;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Which campaign of which store, and when it began: what tells the files of one campaign from
/// another's of the same number.
pub fn plan_identity(store: &Store, info: &CampaignInfo) -> String {
    let file = store.path().file_name().unwrap_or_default().to_string_lossy();
    let (number, begun) = number_and_begin(info);
    format!("{number}{file}{begun}")
}

/// What tells a campaign apart but the name of its store, which may have another by now.
fn number_and_begin(info: &CampaignInfo) -> (String, String) {
    let begun = pinwise_present::figures::date(info.started);
    (format!("campaign {} of ", info.id.0), format!(", begun {begun} ({})", info.started))
}

/// Whether the plan of `origin` is this campaign's: 2 where it says so, 1 where it names a store
/// that is no longer there (this one has another name since), 0 where it is not.
fn likeness(origin: &str, store: &Store, info: &CampaignInfo) -> u8 {
    let (number, begun) = number_and_begin(info);
    let named = origin.strip_prefix(&number).and_then(|rest| rest.strip_suffix(&begun));
    let Some(named) = named else { return 0 };
    let other = store.path().with_file_name(named);
    if other == store.path() { 2 } else { u8::from(!other.exists()) }
}

/// The folder of the plans of a store.
fn folder(store: &Store) -> PathBuf {
    store.path().with_file_name("plans")
}

/// The plan of a campaign beside its store, where there is one: the latest that says so, or that
/// did under another name of the store, or else `N.toml` if that does not say whose it is
/// (written by hand, or before plans did).
pub fn plan_beside(store: &Store, info: &CampaignInfo) -> Option<PathBuf> {
    let number = info.id.0.to_string();
    let of_number = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name == number || name.strip_prefix(&number).is_some_and(|rest| rest.starts_with('-'))
    };
    let origin = |path: &Path| Some(Plan::parse(&fs::read_to_string(path).ok()?).ok()?.origin);
    let of = |path: &PathBuf| origin(path).flatten()?.campaign;
    let like = |path: &PathBuf| of(path).map_or(0, |campaign| likeness(&campaign, store, info));
    let files = fs::read_dir(folder(store)).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let latest = files
        .filter(of_number)
        .filter(|path| like(path) > 0)
        .max_by_key(|path| (like(path), fs::metadata(path).and_then(|file| file.modified()).ok()));
    latest.or_else(|| {
        Some(folder(store).join(format!("{number}.toml"))).filter(|path| origin(path) == Some(None))
    })
}

/// Writes a plan beside the store as `NAME.toml`, or where that is taken as `NAME-2.toml` and so
/// on: another campaign's answer, or one that was edited, is never lost.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn keep_plan(store: &Store, name: &str, plan: &Plan) -> Result<PathBuf, JobError> {
    let folder = folder(store);
    fs::create_dir_all(&folder).map_err(|error| cannot("make", &folder, &error))?;
    let names = std::iter::once(format!("{name}.toml"))
        .chain((2_u64..).map(|copy| format!("{name}-{copy}.toml")));
    for path in names.map(|name| folder.join(name)) {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                if let Err(error) = file.write_all(plan.to_toml().as_bytes()) {
                    // What there is of it is no plan, and would take its name.
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
pub fn write_plan(path: &Path, plan: &Plan) -> Result<(), JobError> {
    fs::write(path, plan.to_toml()).map_err(|error| cannot("write", path, &error))
}

/// That the plan will have a place, before the first measurement: at `wanted`, or beside the store.
///
/// # Errors
/// The folder of `wanted` does not exist or may not be written; it is a folder itself.
pub fn check_plan_path(store: &Store, wanted: Option<&Path>) -> Result<(), JobError> {
    let Some(path) = wanted else {
        let folder = folder(store);
        return fs::create_dir_all(&folder).map_err(|error| cannot("make", &folder, &error));
    };
    let there = path.exists();
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| JobError::Usage(cannot("write", path, &error).to_string()))?;
    if !there {
        // Only whether it can be made was asked. That it can be removed is no part of it.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> JobError {
    let path = path.display();
    JobError::failed(match error.kind() {
        ErrorKind::NotFound => {
            format!("cannot {act} {path}: its folder does not exist; make it, or name another file")
        }
        ErrorKind::IsADirectory => {
            format!("cannot {act} {path}: it is a directory; name a file in it")
        }
        ErrorKind::PermissionDenied => format!(
            "cannot {act} {path}: permission denied; name a file in a folder that you may write to"
        ),
        _ => format!("cannot {act} {path}: {error}; make room, or name another file"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{CampaignId, CampaignState, Kind, NewCampaign};
    use pinwise_measure::{Unit, Workload};
    use pinwise_topology::{Alike, Machine};

    fn campaign() -> CampaignInfo {
        CampaignInfo {
            id: CampaignId(3),
            new: NewCampaign {
                kind: Kind::Place,
                parent: None,
                command: Vec::new(),
                machine: Machine::from_shape("2").unwrap(),
                alike: Alike::ByStructure,
                workload: Workload { name: "a".into(), threads: Vec::new() },
                unit: Unit::cost("s"),
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
        let own = plan_identity(&store, &info);
        let likeness = |origin: &str| likeness(origin, &store, &info);
        assert_eq!(likeness(&own), 2);
        assert_eq!(likeness(&own.replace("new.db", "old.db")), 1);
        std::fs::write(folder.path().join("old.db"), "").unwrap();
        assert_eq!(likeness(&own.replace("new.db", "old.db")), 0, "it is the other store's");
        for other in [
            own.replace("campaign 3", "campaign 13"),
            own.replace("1790000000", "1790000001"),
            String::new(),
        ] {
            assert_eq!(likeness(&other), 0, "{other}");
        }
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
        fs::write(&new, "old").unwrap();
        check_plan_path(&store, Some(&new)).unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "old");
    }
}
