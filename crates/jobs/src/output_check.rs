//! Checks, before anything is measured, that the output files a user names can be written.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Checks, before anything is measured, that a file can be written. It does not leave a new file
/// behind.
///
/// # Errors
/// See [`unwritable_reason`].
pub fn check_writable(path: &Path) -> io::Result<()> {
    // A link counts, even one to nothing: it is not ours to remove.
    let there = fs::symlink_metadata(path).is_ok();
    OpenOptions::new().append(true).create(true).open(path)?;
    if !there {
        // The question was only whether it can be made, not whether it can be removed.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Why a file cannot be written or a folder cannot be made (`act`), and what to do.
pub fn unwritable_reason(act: &str, path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dangling_link_is_not_removed_by_the_check() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link.toml");
        std::os::unix::fs::symlink(folder.path().join("nothing"), &link).unwrap();
        check_writable(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
