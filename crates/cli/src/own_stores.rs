//! Which stores are the user's own.
//!
//! A stored campaign names programs, commands and files, and `campaign resume` uses them. So only
//! stores that this user's pinwise made are resumed without a question. They are in the data
//! directory, or on a list there. The owner of a file proves nothing, since a file that was
//! downloaded is the user's, too.

use pinwise_campaign::{Store, private_folder};
use pinwise_jobs::data_folder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Whether this user's pinwise made the store.
pub(crate) fn is_own(store: &Store) -> bool {
    data_folder().is_some_and(|folder| owned(store.path()) && is_known(&folder, store))
}

/// Lists a store that was just made. Where that fails, `campaign resume` asks.
pub(crate) fn note_made(store: &Store) {
    if let (Some(folder), Some(token)) = (data_folder(), store.token()) {
        let _ = list(&folder, &token, store.path());
    }
}

/// Lists the copy of a store whose file is gone, if the store was the user's own.
pub(crate) fn note_rescued(store: &Store) {
    if let (Some(folder), Some(token), Some(copy)) = (data_folder(), store.token(), store.rescued())
        && (store.was_made() || is_known(&folder, store))
    {
        let _ = list(&folder, &token, copy);
    }
}

/// The list, in the data directory.
const LIST: &str = "stores";

/// Whether a store is in the data directory, or on the list there.
fn is_known(folder: &Path, store: &Store) -> bool {
    let Some(path) = full(store.path()) else { return false };
    let list = folder.join(LIST);
    let listed = || {
        let line = line(&store.token()?, &path)?;
        let known = read(&list).ok().filter(|_| owned(&list))?;
        Some(known.lines().any(|known| known == line))
    };
    is_inside(folder, &path) || listed() == Some(true)
}

/// Reads the list while nobody changes it.
fn read(list: &Path) -> io::Result<String> {
    let mut file = File::open(list)?;
    file.lock_shared()?;
    let mut known = String::new();
    file.read_to_string(&mut known)?;
    Ok(known)
}

fn is_inside(folder: &Path, path: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| path.starts_with(folder))
}

/// Adds a store elsewhere to the list, and removes those whose files are gone.
fn list(folder: &Path, token: &str, store: &Path) -> io::Result<()> {
    let Some(new) = full(store).filter(|path| !is_inside(folder, path)) else { return Ok(()) };
    let Some(line) = line(token, &new) else { return Ok(()) };
    private_folder(folder)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(folder.join(LIST))?;
    file.lock()?;
    let mut known = String::new();
    file.read_to_string(&mut known)?;
    let stays = |known: &&str| {
        let path = known.find(" /").map(|space| Path::new(&known[space + 1..]));
        // A copy that was rescued may get the old name.
        let same = known.starts_with(token);
        path.is_some_and(|path| path != new && (same || path.exists()))
    };
    let lines: Vec<&str> = known.lines().filter(stays).chain([line.as_str()]).collect();
    let new = lines.join("\n") + "\n";
    // If it is killed in between, the list is not empty.
    file.rewind()?;
    file.write_all(new.as_bytes())?;
    file.set_len(new.len() as u64)
}

/// The path of a file without links, also of one that is gone.
fn full(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let path = std::path::absolute(path).ok()?;
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    })
}

/// The line of a store: its token and its path. What is copied over the file has another token.
/// `None`: the path has no place in one line.
fn line(token: &str, path: &Path) -> Option<String> {
    let path = path.to_str().filter(|path| !path.contains('\n'))?;
    Some(format!("{token} {path}"))
}

fn owned(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::Store;

    #[test]
    fn the_list_keeps_what_is_there_and_knows_a_store_from_another_of_its_path() {
        let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let folder = folder.path();
        let at = |name: &str| elsewhere.path().join(name);
        let open = |name: &str| Store::open(&at(name)).unwrap();
        let list = |store: &Store| list(folder, &store.token().unwrap(), store.path()).unwrap();
        let lines = || fs::read_to_string(folder.join(LIST)).unwrap().lines().count();
        for name in ["a b.db", "second.db", "second.db"] {
            list(&open(name));
            assert!(is_known(folder, &open(name)), "{name}");
        }
        assert_eq!(lines(), 2);
        drop(open("stranger.db"));
        assert!(!is_known(folder, &open("stranger.db")));
        // The file stays the same one.
        fs::copy(at("stranger.db"), at("a b.db")).unwrap();
        assert!(!is_known(folder, &open("a b.db")));
        fs::remove_file(at("a b.db")).unwrap();
        list(&open("second.db"));
        assert_eq!(lines(), 1, "the file that is gone is gone from the list");
    }

    #[test]
    fn a_store_is_known_while_others_are_listed() {
        let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let folder = folder.path();
        let [own, other] =
            ["own.db", "other.db"].map(|name| Store::open(&elsewhere.path().join(name)).unwrap());
        list(folder, &own.token().unwrap(), own.path()).unwrap();
        let (token, other) = (other.token().unwrap(), other.path());
        std::thread::scope(|scope| {
            let lists = scope.spawn(|| {
                (0..1000).for_each(|_| list(folder, &token, other).unwrap());
            });
            while !lists.is_finished() {
                assert!(is_known(folder, &own));
            }
        });
    }
}
