//! Which stores are the user's own.
//!
//! A stored campaign names programs, commands and files, and `campaign resume` uses them. So only
//! stores that this user's pinwise made are resumed without a question: those in the data
//! directory, and those on a list there. The owner of a file proves nothing, since a file that was
//! downloaded is the user's, too.

use crate::store::data_folder;
use pinwise_campaign::private_folder;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Whether this user's pinwise made the store.
pub(crate) fn is_own(store: &Path) -> bool {
    let Ok(folder) = data_folder("") else { return false };
    let list = folder.join(LIST);
    let inside = || Some(store.canonicalize().ok()?.starts_with(folder.canonicalize().ok()?));
    let listed = || {
        let line = line(store)?;
        let list = fs::read_to_string(&list).ok().filter(|_| owned(&list))?;
        Some(list.lines().any(|known| known == line))
    };
    owned(store) && (inside() == Some(true) || listed() == Some(true))
}

/// Lists a store that was just made. Where that fails, `campaign resume` asks.
pub(crate) fn note_made(store: &Path) {
    if let Ok(folder) = data_folder("") {
        let _ = list(&folder, store);
    }
}

/// The list, in the data directory.
const LIST: &str = "stores";

/// Adds a store to the list, and removes those that are gone.
fn list(folder: &Path, store: &Path) -> io::Result<()> {
    let Some(new) = line(store) else { return Ok(()) };
    private_folder(folder)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(folder.join(LIST))?;
    file.lock()?;
    let mut known = String::new();
    file.read_to_string(&mut known)?;
    let there = |known: &&str| {
        let path = known.splitn(3, ' ').nth(2).map(PathBuf::from);
        path.and_then(|path| line(&path)).as_deref() == Some(*known)
    };
    let lines: Vec<&str> = known.lines().filter(there).chain([new.as_str()]).collect();
    file.rewind()?;
    file.set_len(0)?;
    file.write_all((lines.join("\n") + "\n").as_bytes())
}

/// The line of a file: inode, time of its creation, path. Another file of that path has another
/// line. `None`: the path has no place in one line.
fn line(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let file = fs::metadata(&path).ok()?;
    let created = file.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let created = created.unwrap_or_default().as_nanos();
    let path = path.to_str().filter(|path| !path.contains('\n'))?;
    Some(format!("{} {created} {path}", file.ino()))
}

fn owned(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_keeps_what_is_there_and_knows_a_file_from_another_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let lines = || fs::read_to_string(at(LIST)).unwrap().lines().count();
        for name in ["a b.db", "second.db"] {
            fs::write(at(name), "").unwrap();
            list(folder.path(), &at(name)).unwrap();
        }
        assert_eq!(lines(), 2);
        // Both files exist at one time, so they differ in their inodes.
        fs::write(at("other.db"), "").unwrap();
        let before = line(&at("a b.db"));
        fs::rename(at("other.db"), at("a b.db")).unwrap();
        assert_ne!(line(&at("a b.db")), before);
        list(folder.path(), &at("second.db")).unwrap();
        assert_eq!(lines(), 2, "the file that was replaced is gone from the list");
    }
}
