//! Which paths a program takes: reads a recording of branches, and the binaries that it names.
//!
//! Nothing is measured here, so there is no campaign: the recording can be read again.

use pinwise_paths::{
    BinaryFiles, BranchInputError, BranchRecording, DebugFile, PathMethod, ProfiledBinary,
    RecordedProfile, UnreadBinary, UnreadReason, read_branches,
};
use pinwise_topology::Random;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// The largest binary that is read, in bytes.
const LARGEST_BINARY: u64 = 4 << 30;

/// A recording, and how to read it.
#[derive(Debug, Clone)]
pub struct PathsRequest {
    /// The file. `-` is standard input.
    pub recording: PathBuf,
    /// Look at these binaries only, and find them here. If there are none: at all that the
    /// recording names.
    pub binaries: Vec<PathBuf>,
    /// How fragments become paths.
    pub method: PathMethod,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// The recording or a binary that was asked for cannot be opened.
    #[error("cannot read {}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has no branches that can be read.
    #[error("{}: {source}", file.display())]
    Recording {
        /// The recording.
        file: PathBuf,
        /// Why, and what to do.
        source: BranchInputError,
    },
    /// Nothing was seen of a binary that was asked for.
    #[error(
        "{}: the recording has no branches in this binary, only in {}",
        file.display(),
        seen.join(", ")
    )]
    NotSeen {
        /// The binary.
        file: PathBuf,
        /// Those with a sample.
        seen: Vec<String>,
    },
    /// A binary that was asked for cannot be used.
    #[error("{}: {reason}", file.display())]
    Binary {
        /// The binary.
        file: PathBuf,
        /// Why, and what to do.
        reason: UnreadReason,
    },
}

/// Reads a recording and its binaries, and estimates the paths. The same files give the same
/// answer.
///
/// # Errors
/// If the recording cannot be read, or a binary that was asked for.
pub fn profile_paths(request: &PathsRequest) -> Result<RecordedProfile, PathsError> {
    let BranchRecording { totals, binaries: recorded } = read_recording(&request.recording)?;
    let mut random = Random::new(1);
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    let names: Vec<String> = recorded.keys().cloned().collect();
    let seen: Vec<(&str, u64)> =
        recorded.iter().map(|(name, seen)| (name.as_str(), seen.entries())).collect();
    let (meant, without) = recorded_as(&request.binaries, &seen);
    for (name, seen) in recorded {
        let place = match request.binaries.is_empty() {
            true => Ok(PathBuf::from(&name)),
            false => meant.get(&name).cloned().ok_or(UnreadReason::NotAskedFor),
        };
        let is_asked_for = place.is_ok() && !request.binaries.is_empty();
        let mut profiled_from = |file: &Path, called: &Path| {
            let binary = bytes_of(&name, file)?;
            let bytes = BinaryFiles { debug: debug_file_of(file, &binary), binary };
            let called = called.to_string_lossy().into_owned();
            let method = request.method;
            ProfiledBinary::new(&name, called, bytes, &seen, &totals, method, &mut random)
        };
        let mut profiled = place.and_then(|file| profiled_from(&file, &file));
        if let Err(UnreadReason::Missing | UnreadReason::OtherBuild { .. }) = &profiled
            && !is_asked_for
        {
            let kept = seen.build_ids.iter().filter_map(|id| kept_by_perf(id));
            let kept = kept.filter_map(|file| profiled_from(&file, Path::new(&name)).ok()).next();
            profiled = kept.map_or(profiled, Ok);
        }
        match profiled {
            Ok(binary) => read.push(binary),
            Err(reason) if is_asked_for => {
                return Err(not_usable(meant[&name].clone(), reason));
            }
            Err(reason) => unread.push(UnreadBinary::new(name, seen, reason)),
        }
    }
    if let Some(file) = without {
        // A missing file is reported first.
        return Err(match bytes_of("asked for", &file) {
            Err(reason) => not_usable(file, reason),
            Ok(_) => PathsError::NotSeen { file, seen: names },
        });
    }
    Ok(RecordedProfile::new(totals, read, unread))
}

/// A binary that was asked for is missing, or no binary.
fn not_usable(file: PathBuf, reason: UnreadReason) -> PathsError {
    match reason {
        UnreadReason::Missing => PathsError::Open { file, source: io::ErrorKind::NotFound.into() },
        reason => PathsError::Binary { file, reason },
    }
}

fn read_recording(file: &Path) -> Result<BranchRecording, PathsError> {
    let read = match file == Path::new("-") {
        true => read_branches(io::stdin().lock()),
        false => {
            let opened = File::open(file);
            let opened = opened.map_err(|source| PathsError::Open { file: file.into(), source })?;
            read_branches(BufReader::with_capacity(1 << 16, opened))
        }
    };
    read.map_err(|source| match source {
        BranchInputError::Io(source) => PathsError::Open { file: file.into(), source },
        source => PathsError::Recording { file: file.into(), source },
    })
}

/// The file of each binary, by the recorded name, and the first file that is none. `seen`: names
/// and entries that lead there. Several binaries may have the file's name. Then the most matching
/// folders decide, then the most entries. Text without mappings has one binary without a name.
fn recorded_as(
    files: &[PathBuf],
    seen: &[(&str, u64)],
) -> (BTreeMap<String, PathBuf>, Option<PathBuf>) {
    let mut meant: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut without = None;
    for file in files {
        // How many components agree, from the last on.
        let common = |name: &str| {
            let (own, recorded) = (file.components().rev(), Path::new(name).components().rev());
            own.zip(recorded).take_while(|(own, recorded)| own == recorded).count()
        };
        let is_only = |name: &str| name.is_empty() && seen.len() == 1;
        let free = seen.iter().filter(|(name, _)| !meant.contains_key(*name));
        let named = free.filter(|(name, _)| is_only(name) || common(name) > 0);
        match named.max_by_key(|(name, entries)| (common(name), *entries)) {
            Some((name, _)) => drop(meant.insert((*name).to_owned(), file.clone())),
            None => without = without.or_else(|| Some(file.clone())),
        }
    }
    (meant, without)
}

fn bytes_of(name: &str, file: &Path) -> Result<Vec<u8>, UnreadReason> {
    if name.is_empty() && file == Path::new("") {
        return Err(UnreadReason::Unnamed);
    }
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => UnreadReason::Missing,
        _ => error.into(),
    };
    // A device would fill the memory. Opening a FIFO would wait for its writer.
    let about = std::fs::metadata(file).map_err(missing)?;
    if !about.is_file() {
        return Err(io::Error::other("it is no regular file").into());
    }
    if about.len() > LARGEST_BINARY {
        return Err(io::Error::other("it is larger than 4 GiB").into());
    }
    let opened = File::open(file).map_err(missing)?;
    let mut bytes = Vec::new();
    opened.take(LARGEST_BINARY).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where perf keeps its copy of a binary with this build id. `perf record` copies those that ran,
/// and `perf archive` takes the copies to another machine.
fn kept_by_perf(build_id: &[u8]) -> Option<PathBuf> {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, rest) = hex.split_at_checked(2)?;
    let home = PathBuf::from(std::env::var_os("HOME")?);
    Some(home.join(".debug/.build-id").join(folder).join(rest).join("elf"))
}

/// The content of the separate file of a binary's debugging information, if it needs and has one.
fn debug_file_of(file: &Path, binary: &[u8]) -> Option<Vec<u8>> {
    let wanted = DebugFile::of(binary)?;
    // A link may lead to the program from another folder.
    let file = std::fs::canonicalize(file).ok()?;
    let places = wanted.places(&file).into_iter();
    places.filter_map(|place| bytes_of("debug", &place).ok()).find(|bytes| wanted.is(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_meant_by_its_name_or_as_the_only_one_without() {
        let meant = |file: &str, seen: &[(&str, u64)]| {
            recorded_as(&[file.into()], seen).0.into_keys().next()
        };
        assert_eq!(meant("./app", &[("/usr/bin/app", 1)]).as_deref(), Some("/usr/bin/app"));
        assert_eq!(meant("./app", &[("/usr/bin/ap", 1)]), None);
        assert_eq!(meant("./app", &[("", 1)]).as_deref(), Some(""));
        assert_eq!(meant("./app", &[("", 1), ("/bin/x", 1)]), None);
    }

    #[test]
    fn of_two_binaries_of_one_name_the_folder_decides_then_the_entries() {
        let seen = [("/new/bin/app", 3), ("/old/bin/app", 9)];
        let meant = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            let (meant, without) = recorded_as(&files, &seen);
            let meant = meant.into_iter().map(|(name, file)| format!("{name}={}", file.display()));
            (meant.collect::<Vec<_>>(), without)
        };
        assert_eq!(meant(&["app"]).0, ["/old/bin/app=app"]);
        assert_eq!(meant(&["/new/bin/app"]).0, ["/new/bin/app=/new/bin/app"]);
        assert_eq!(meant(&["app", "x/app"]).0, ["/new/bin/app=x/app", "/old/bin/app=app"]);
        assert_eq!(meant(&["app", "app", "app"]).1, Some("app".into()));
    }

    #[test]
    fn a_device_is_not_read() {
        let reason = bytes_of("zero", Path::new("/dev/zero")).unwrap_err();
        assert!(reason.to_string().starts_with("it is no regular file"), "{reason}");
    }
}
