//! What a killed pinwise left changed: put back once, before this process changes a program. And
//! what this process could not put back.

use pinwise_linux::{Restored, is_left_changed, keep_ledgers, restore_abandoned, restore_again};
use pinwise_present::Notice;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Where pinwise keeps what it writes, in the user's data directory. `None`: neither `HOME` nor
/// `XDG_DATA_HOME` is set.
pub fn data_folder() -> Option<PathBuf> {
    // The XDG base directory specification has relative paths ignored.
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Some(data?.join("pinwise"))
}

/// Puts back what an earlier pinwise changed that was killed together with its guardian. Has the
/// guardians of this process keep what is needed for that.
///
/// Only the first call does it. [`crate::run()`], [`crate::resume()`], [`crate::HeldProgram`] and
/// [`crate::AppliedPlan`] call it themselves. A program that shows the notices calls it before.
pub fn put_back_leftovers() -> Vec<Notice> {
    static BEGUN: Once = Once::new();
    let mut notices = Vec::new();
    BEGUN.call_once(|| {
        let Some(folder) = guarded() else {
            // Nothing can be kept there, and searches say so.
            return keep_ledgers(Path::new(""));
        };
        notices.extend(restore_abandoned(&folder).into_iter().map(notice));
        keep_ledgers(&folder);
    });
    notices
}

/// What this process changed and could not put back. Call it when the work is done: it tries once
/// more.
pub fn not_put_back() -> Vec<Notice> {
    if !is_left_changed() {
        return Vec::new();
    }
    let restored = guarded().map(|folder| restore_again(&folder)).unwrap_or_default();
    if restored.is_empty() {
        return vec![Notice::NotPutBack];
    }
    restored.into_iter().filter(|one| !one.worked).map(notice).collect()
}

/// Where guardians keep what is needed if they are killed.
fn guarded() -> Option<PathBuf> {
    Some(data_folder()?.join("guarded"))
}

fn notice(Restored { what, worked }: Restored) -> Notice {
    Notice::PutBack { what, worked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Listening, stopping_at};
    use crate::placement_request::simulated;
    use crate::{Caller, HeldProgram, PlaceRequest, SimulatedProcessor, resume, run};
    use pinwise_campaign::{CampaignId, Store};
    use pinwise_linux::{LeftChanged, Pid};
    use pinwise_placement::Budget;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::process::Command;

    /// Says how the process of a test begins, and names its folder.
    const BEGINNING: &str = "PINWISE_TEST_BEGINNING";

    fn job() -> PlaceRequest {
        let model = SimulatedProcessor::built_in("ultrasparc-t2");
        PlaceRequest::from(simulated(model, Budget::Measurements(60)))
    }

    /// Begins in one of the ways, in a separate process.
    #[test]
    fn __begin() {
        let Ok(beginning) = std::env::var(BEGINNING) else { return };
        let (way, folder) = beginning.split_once(' ').unwrap();
        let mut store = Store::open(&Path::new(folder).join("test.db")).unwrap();
        let caller = Caller::default();
        let mut told = Vec::new();
        let mut events = Listening(|event: Event<'_>| {
            if let Event::Note(notice @ Notice::PutBack { .. }) = event {
                told.push(notice.clone());
            }
            Ok(())
        });
        match way {
            "run" => {
                run(job(), &caller, &mut store, &mut events).unwrap();
                run(job(), &caller, &mut store, &mut events).unwrap();
            }
            "resume" => {
                resume(CampaignId(1), &caller, &mut store, &mut events).unwrap();
            }
            _ => {
                HeldProgram::of(Pid(std::process::id() as i32)).unwrap();
                return;
            }
        }
        let what = LeftChanged::File(Path::new(folder).join("cpu.max"));
        assert_eq!(told, [Notice::PutBack { what, worked: true }], "once");
    }

    /// The notes of a guardian that was killed, as pinwise finds them in this boot.
    fn killed_guardian(data: &Path, note: &serde_json::Value) {
        let [host, boot] = ["hostname", "random/boot_id"]
            .map(|name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap());
        let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let name = format!("{}.boot-{}.{namespace}", host.trim(), boot.trim());
        let folder = data.join("pinwise/guarded").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1-0"), note.to_string()).unwrap();
    }

    #[test]
    fn what_a_killed_pinwise_left_is_put_back_before_the_library_begins() {
        for way in ["run", "resume", "hold"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            if way == "resume" {
                let mut store = Store::open(&path.join("test.db")).unwrap();
                let caller = Caller::default();
                let measured = |event: &Event<'_>| matches!(event, Event::Measured(_));
                let mut stopping = stopping_at(&caller.interrupt, 3, measured);
                run(job(), &caller, &mut store, &mut stopping).unwrap_err();
            }
            let changed = path.join("cpu.max");
            fs::write(&changed, "10000 100000").unwrap();
            killed_guardian(path, &serde_json::json!({"File": {"path": changed, "text": "max"}}));
            let begun = Command::new("/proc/self/exe")
                .args(["leftovers::tests::__begin", "--exact"])
                .env(BEGINNING, format!("{way} {}", path.display()))
                .env("XDG_DATA_HOME", path)
                .output()
                .unwrap();
            assert!(begun.status.success(), "{way}: {begun:?}");
            assert_eq!(fs::read_to_string(&changed).unwrap(), "max", "{way}");
        }
    }
}
