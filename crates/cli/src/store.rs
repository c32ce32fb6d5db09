//! Finds the store of campaigns on which a command works.

use crate::output::Usage;
use crate::own_stores;
use anyhow::Context;
use clap::Args;
use pinwise_campaign::Store;
use std::path::{Path, PathBuf};

/// Where pinwise keeps what it writes, in the user's data directory. `remedy` says to a user
/// without a store what to do.
pub(crate) fn data_folder(remedy: &str) -> Result<PathBuf, Usage> {
    pinwise_jobs::data_folder()
        .ok_or_else(|| Usage(format!("neither HOME nor XDG_DATA_HOME is set; {remedy}")))
}

/// The folder in which the affinities that a plan replaces are noted.
pub(crate) fn undo_notes() -> Result<PathBuf, Usage> {
    Ok(data_folder("set XDG_DATA_HOME to a folder you may write to")?.join("applied"))
}

/// Where measurements are kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArguments {
    /// Use FILE as the store [default: pinwise/pinwise.db in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

impl StoreArguments {
    /// This file, or the one that commands find by themselves.
    pub(crate) fn at(file: Option<&Path>) -> Self {
        Self { store: file.map(Path::to_owned) }
    }

    /// The file, which need not exist.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = &self.store {
            return Ok(path.clone());
        }
        Ok(data_folder("name a file with --store")?.join("pinwise.db"))
    }

    /// The file, where it is not the one that later commands find by themselves.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// Of a store that is named the folder has to be there: it may be mistyped.
    pub(crate) fn check(&self) -> Result<(), Usage> {
        let folder = self
            .store
            .as_deref()
            .and_then(Path::parent)
            .filter(|folder| !folder.as_os_str().is_empty());
        if let (Some(path), Some(folder)) = (&self.store, folder)
            && !folder.is_dir()
        {
            let (path, folder) = (path.display(), folder.display());
            return Err(Usage(format!(
                "--store {path}: there is no folder {folder}; make it, or name another file"
            )));
        }
        Ok(())
    }

    /// The store, made where there is none.
    pub(crate) fn open(&self) -> anyhow::Result<Store> {
        self.check()?;
        open(&self.path()?)
    }

    /// The store, if there is one: looking for campaigns makes no file.
    pub(crate) fn open_existing(&self) -> anyhow::Result<Option<Store>> {
        let path = self.path()?;
        let there = path.try_exists().with_context(|| {
            format!(
                "{}: cannot check whether there is a store; name another file with --store",
                path.display()
            )
        })?;
        if there { open(&path).map(Some) } else { Ok(None) }
    }
}

/// Opens a store. One whose file or tables this makes is the user's own.
fn open(path: &Path) -> anyhow::Result<Store> {
    let store = Store::open(path)?;
    if store.was_made() {
        own_stores::note_made(&store);
    }
    Ok(store)
}
