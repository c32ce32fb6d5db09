//! Results that are saved at once, so that an interrupted study goes on where it was.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::{fs, io};

/// A folder with a file for each result. What is in it is of one version of the program: another
/// one begins another folder.
pub(crate) struct SavedResults(PathBuf);

impl SavedResults {
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder).map(|()| Self(folder))
    }

    /// The result `name`, made if it is not there.
    ///
    /// # Panics
    /// If the folder cannot be written: a study that saves nothing is not worth going on with.
    pub(crate) fn get<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> T,
    ) -> T {
        let path = self.0.join(name);
        let known = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        known.unwrap_or_else(|| {
            let made = make();
            self.keep(name, &made);
            made
        })
    }

    /// Saves a result, if it is not there.
    ///
    /// # Panics
    /// As [`Self::get`].
    pub(crate) fn keep(&self, name: &str, made: &impl Serialize) {
        let path = self.0.join(name);
        if path.exists() {
            return;
        }
        // Under its name only when it is whole. Several nodes may write to one folder.
        let new = path.with_extension(format!("new{}", std::process::id()));
        let text = serde_json::to_vec(made).expect("it has no maps");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .expect("the folder can be written");
    }
}
