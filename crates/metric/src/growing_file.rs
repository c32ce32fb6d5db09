//! A file to which a program writes its progress. pinwise follows it like `tail -F`. It reads the
//! file again from its start if it is replaced, truncated or overwritten.

use pinwise_linux::{LineReceiver, LineSender, OutputLine, RealtimeClass, RunDelay, line_queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, inotify};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The position of a follower in a file.
#[derive(Debug)]
struct FileFollower {
    path: PathBuf,
    open: Option<Open>,
    /// The file existed when following began, so its contents at that moment do not count.
    skip_present: bool,
    /// More is there than was read.
    behind: bool,
    /// How long before this look the reader was kept from running.
    late: Duration,
}

/// A look at the file.
#[derive(Clone, Copy, Debug)]
struct FileLook {
    at: Instant,
    /// How long before it the reader was kept from running.
    late: Duration,
}

#[derive(Debug)]
struct Open {
    file: File,
    inode: (u64, u64),
    offset: u64,
    /// The last bytes before `offset`. If the file no longer has them there, it has been rewritten.
    before: Vec<u8>,
    /// An unfinished line.
    partial: Vec<u8>,
    /// Whether a line came before it.
    has_lines: bool,
    modified: (i64, i64),
    /// The longest that the file was when opened or rewritten. A longer one is appended to: it
    /// is a log.
    whole: u64,
    /// Since when looks have seen a new time, but nothing new. Either a status file has the same
    /// numbers once more, or a line is under way. Linux sets the time of a file before its length.
    doubtful: Option<FileLook>,
    /// The look that first saw the numbers that the last look took as written once more.
    first_seen: Option<FileLook>,
}

/// Bytes that distinguish a file that grew from one that was overwritten.
const REMEMBERED: usize = 64;
/// A longer file is a log, not a status that is rewritten.
const LONGEST_STATUS: u64 = 4096;
/// A line is written in less than this, from the new time of the file to its new length.
const UNDER_WAY: Duration = Duration::from_millis(10);
/// A line longer than this is taken as it is.
const LONGEST: usize = 64 * 1024;
/// The most bytes read at a time: a file without end must not take memory without end.
const MOST: usize = 4 << 20;

impl FileFollower {
    fn new(path: PathBuf) -> Self {
        let skip_present = path.exists();
        Self { path, open: None, skip_present, behind: false, late: Duration::ZERO }
    }

    /// The lines that were completed since the last call. A file that does not exist is no error:
    /// it may appear.
    fn lines(&mut self) -> io::Result<Vec<String>> {
        let found = match std::fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let inode = (found.dev(), found.ino());
        let mut lines = Vec::new();
        if let Some(open) = &mut self.open
            && open.inode != inode
        {
            // Rotated: what was written before the new file appeared still counts.
            self.behind = !open.take(&mut lines, self.late)?;
            if self.behind {
                return Ok(lines);
            }
            lines.extend(open.last_line()?);
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let offset = if std::mem::take(&mut self.skip_present) { found.len() } else { 0 };
                self.open.insert(Open::at(open_file(&self.path)?, offset)?)
            }
        };
        self.behind = !open.take(&mut lines, self.late)?;
        Ok(lines)
    }

    /// The look that first saw the lines of the last call of [`Self::lines`], if it was an earlier
    /// one.
    fn first_seen(&self) -> Option<FileLook> {
        self.open.as_ref()?.first_seen
    }
}

impl Open {
    fn at(file: File, offset: u64) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let mut before = vec![0; REMEMBERED.min(usize::try_from(offset).unwrap_or(REMEMBERED))];
        let start = offset - before.len() as u64;
        let read = read_at(&file, &mut before, start)?;
        before.truncate(read);
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Self {
            file,
            inode: (metadata.dev(), metadata.ino()),
            offset,
            before,
            partial: Vec::new(),
            has_lines: offset > 0,
            modified,
            whole: offset,
            doubtful: None,
            first_seen: None,
        })
    }

    /// Whether the file no longer has what was read last, or has it written once more. `late`: how
    /// long before this look the reader was kept from running.
    fn rewritten(&mut self, late: Duration) -> io::Result<bool> {
        let metadata = self.file.metadata()?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let doubtful = self.doubtful.take();
        self.first_seen = None;
        if metadata.len() < self.offset {
            return Ok(true);
        }
        if self.modified == modified && doubtful.is_none() {
            return Ok(false);
        }
        let mut now = vec![0; self.before.len()];
        let read = read_at(&self.file, &mut now, self.offset - self.before.len() as u64)?;
        if now[..read] != self.before[..] {
            return Ok(true);
        }
        // Written, no longer than before, and the same to the last byte. A later look decides. A
        // long file is a log that somebody touched.
        let again = metadata.len() == self.offset
            && (1..=LONGEST_STATUS).contains(&self.offset)
            && self.offset <= self.whole;
        self.first_seen = doubtful.filter(|first| again && first.at.elapsed() >= UNDER_WAY);
        if again && self.first_seen.is_none() {
            self.doubtful = doubtful.or_else(|| Some(FileLook { at: Instant::now(), late }));
        }
        Ok(self.first_seen.is_some())
    }

    /// The unfinished line, taken as it is.
    fn unfinished(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
        Some(line).filter(|line| !line.is_empty())
    }

    /// The unfinished line of a file that was replaced. A status file that is renamed into place
    /// need not end its last line. A log that is moved away may still get the rest of it.
    fn last_line(&mut self) -> io::Result<Option<String>> {
        let is_moved = self.file.metadata()?.nlink() > 0;
        let is_log = self.has_lines && (is_moved || self.offset > self.whole);
        Ok(if is_log { None } else { self.unfinished() })
    }

    /// Reads on, [`MOST`] bytes at most. Returns whether that was everything.
    fn take(&mut self, lines: &mut Vec<String>, late: Duration) -> io::Result<bool> {
        let whole = self.rewritten(late)?;
        if whole {
            self.whole = self.whole.max(self.offset);
            self.offset = 0;
            self.before.clear();
            self.partial.clear();
            self.has_lines = false;
        }
        let mut buffer = [0; 16 * 1024];
        let start = self.offset;
        let end = start + MOST as u64;
        let mut all = false;
        while !all && self.offset < end {
            let read = read_at(&self.file, &mut buffer, self.offset)?;
            all = read == 0;
            self.offset += read as u64;
            self.before.extend_from_slice(&buffer[..read]);
            let surplus = self.before.len().saturating_sub(REMEMBERED);
            self.before.drain(..surplus);
            for &byte in &buffer[..read] {
                if matches!(byte, b'\n' | b'\r') || self.partial.len() >= LONGEST {
                    lines.push(String::from_utf8_lossy(&self.partial).into_owned());
                    self.partial.clear();
                    self.has_lines = true;
                } else {
                    self.partial.push(byte);
                }
            }
        }
        if start == 0 {
            self.whole = self.whole.max(self.offset);
        }
        if whole && all && !self.partial.is_empty() {
            // A file that is rewritten each time need not end in a newline.
            lines.extend(self.unfinished());
        }
        // Looked at after reading: what is appended in between shows in the length, and is not
        // taken for a rewrite.
        let metadata = self.file.metadata()?;
        self.modified = (metadata.mtime(), metadata.mtime_nsec());
        lines.retain(|line| !line.is_empty());
        Ok(all)
    }
}

/// Opens a regular file for reading. Anything else is refused; opening a pipe does not wait for its
/// other end.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    match file.read_at(buffer, offset) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => read_at(file, buffer, offset),
        read => read,
    }
}

/// The lines of a file as they appear, from a separate thread. The thread ends when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct FileLines {
    pub(crate) lines: LineReceiver,
    stop: Arc<AtomicBool>,
}

impl Drop for FileLines {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Follows the file at `path`, which need not exist yet.
pub(crate) fn follow(path: &Path) -> io::Result<FileLines> {
    let (sender, lines) = line_queue();
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, path) = (Arc::clone(&stop), path.to_owned());
    // What is in the file now is history, from this moment and not from when the thread gets to
    // run.
    let mut follower = FileFollower::new(path.clone());
    follower.lines()?;
    std::thread::Builder::new().name("follow".into()).spawn(move || {
        // Used if allowed. A line is dated when it is seen. Next to spinning threads that would be
        // up to 15 ms late.
        let _raised = RealtimeClass::raise();
        let inotify =
            inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok();
        let mut delay = RunDelay::of_this_thread();
        while !stopped.load(Ordering::Relaxed) {
            if !forward(&mut follower, &mut delay, &sender) {
                return;
            }
            if !follower.behind {
                wait(inotify.as_ref(), &path);
            }
        }
    })?;
    Ok(FileLines { lines, stop })
}

/// Passes on the new lines. Returns false if nobody listens any more. An error, such as a file made
/// unreadable, may pass.
fn forward(follower: &mut FileFollower, delay: &mut RunDelay, sender: &LineSender) -> bool {
    follower.late = delay.since_last();
    let lines = follower.lines().unwrap_or_default();
    let this = FileLook { at: Instant::now(), late: follower.late + delay.since_last() };
    let FileLook { at, late } = follower.first_seen().unwrap_or(this);
    lines.into_iter().all(|text| sender.send(OutputLine { at, late, text }))
}

/// Waits until the file changes, at most 20 ms. The limit serves a file that is replaced, does not
/// exist yet, or is on a filesystem without inotify.
fn wait(inotify: Option<&OwnedFd>, path: &Path) {
    let slice = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let Some(inotify) = inotify else {
        std::thread::sleep(Duration::from_millis(2));
        return;
    };
    // The watch is on the inode that has the name now; added again, the same one is only confirmed.
    let flags = inotify::WatchFlags::MODIFY
        | inotify::WatchFlags::MOVE_SELF
        | inotify::WatchFlags::DELETE_SELF;
    let _ = inotify::add_watch(inotify, path, flags);
    if poll(&mut [PollFd::new(inotify, PollFlags::IN)], Some(&slice)).is_ok_and(|ready| ready > 0) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        while events.next().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn append(path: &Path, text: &str) {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    #[test]
    fn a_file_renamed_into_place_need_not_end_in_a_newline() {
        let folder = tempfile::tempdir().unwrap();
        let [path, new] = ["status", "new"].map(|name| folder.path().join(name));
        let mut follower = FileFollower::new(path.clone());
        let mut seen = Vec::new();
        for done in 1..=4 {
            fs::write(&new, format!("done {done}")).unwrap();
            fs::rename(&new, &path).unwrap();
            seen.extend(follower.lines().unwrap());
        }
        assert_eq!(seen, ["done 1", "done 2", "done 3"], "a later one may still be written");
    }

    #[test]
    fn a_log_that_is_moved_away_gives_no_half_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for (present, name) in [("", "log.1"), ("old\n", "log.2")] {
            append(&path, present);
            let mut follower = FileFollower::new(path.clone());
            follower.lines().unwrap();
            append(&path, "rate 99\nrate 12");
            assert_eq!(follower.lines().unwrap(), ["rate 99"]);
            fs::rename(&path, folder.path().join(name)).unwrap();
            append(&path, "");
            assert!(follower.lines().unwrap().is_empty());
            fs::remove_file(&path).unwrap();
        }
        // Several lines that are renamed into place are a status all the same.
        let [path, new] = ["status", "new"].map(|name| folder.path().join(name));
        let mut follower = FileFollower::new(path.clone());
        let mut seen = Vec::new();
        for done in 1..=2 {
            fs::write(&new, format!("status\ndone {done}")).unwrap();
            fs::rename(&new, &path).unwrap();
            seen.extend(follower.lines().unwrap());
        }
        assert_eq!(seen, ["status", "done 1", "status"]);
    }

    #[test]
    fn only_complete_new_lines_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "old\n");
        let mut follower = FileFollower::new(path.clone());
        assert!(follower.lines().unwrap().is_empty());
        append(&path, "one\ntw");
        assert_eq!(follower.lines().unwrap(), ["one"]);
        append(&path, "o\nthree\n");
        assert_eq!(follower.lines().unwrap(), ["two", "three"]);
        assert!(follower.lines().unwrap().is_empty());
    }

    #[test]
    fn a_file_that_comes_later_is_read_from_its_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut follower = FileFollower::new(path.clone());
        assert!(follower.lines().unwrap().is_empty());
        append(&path, "first\n");
        assert_eq!(follower.lines().unwrap(), ["first"]);
    }

    #[test]
    fn a_rotated_file_is_read_to_its_end_before_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "old\n");
        let mut follower = FileFollower::new(path.clone());
        follower.lines().unwrap();
        append(&path, "last of the old\n");
        fs::rename(&path, directory.path().join("log.1")).unwrap();
        append(&path, "first of the new\n");
        assert_eq!(follower.lines().unwrap(), ["last of the old", "first of the new"]);
    }

    #[test]
    fn a_truncated_file_is_read_from_its_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "a long line that was there\n");
        let mut follower = FileFollower::new(path.clone());
        follower.lines().unwrap();
        fs::write(&path, "short\n").unwrap();
        assert_eq!(follower.lines().unwrap(), ["short"]);
    }

    #[test]
    fn an_overwritten_file_is_read_whole_whether_it_grew_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        fs::write(&path, "ops 999\n").unwrap();
        let mut follower = FileFollower::new(path.clone());
        follower.lines().unwrap();
        for text in ["ops 1000", "ops 1001", "ops 99", "a\nops 100000"] {
            // The clock of file times is coarser than this loop.
            std::thread::sleep(Duration::from_millis(20));
            fs::write(&path, text).unwrap();
            assert_eq!(follower.lines().unwrap(), text.lines().collect::<Vec<_>>());
        }
    }

    /// Gives the file a new time, as a write does before it changes the length.
    fn touch(path: &Path, seconds: u64) {
        let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        OpenOptions::new().append(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_line_under_way_does_not_repeat_those_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "done 1\n");
        let mut follower = FileFollower::new(path.clone());
        assert!(follower.lines().unwrap().is_empty());
        for number in 2..6 {
            // A log that has grown is none that is rewritten, however long a line takes.
            for look in 0..if number == 2 { 1 } else { 2 } {
                touch(&path, number * 10 + look);
                assert!(follower.lines().unwrap().is_empty(), "before line {number}");
                std::thread::sleep(UNDER_WAY);
            }
            append(&path, &format!("done {number}\n"));
            assert_eq!(follower.lines().unwrap(), [format!("done {number}")]);
        }
    }

    #[test]
    fn the_same_status_once_more_is_read_at_a_later_look() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        fs::write(&path, "rate 99\n").unwrap();
        let mut follower = FileFollower::new(path.clone());
        follower.lines().unwrap();
        fs::write(&path, "rate 100\n").unwrap();
        touch(&path, 1);
        // The end of what is there differs: no doubt.
        assert_eq!(follower.lines().unwrap(), ["rate 100"]);
        for time in 2..5 {
            touch(&path, time);
            let written = Instant::now();
            assert!(follower.lines().unwrap().is_empty());
            let looked = Instant::now();
            std::thread::sleep(UNDER_WAY);
            assert_eq!(follower.lines().unwrap(), ["rate 100"]);
            let first = follower.first_seen().unwrap().at;
            assert!((written..=looked).contains(&first), "dated by the later look");
            assert!(follower.lines().unwrap().is_empty());
            assert!(follower.first_seen().is_none());
        }
        // Seen when half of it was written: still no log.
        fs::write(&path, "").unwrap();
        assert!(follower.lines().unwrap().is_empty());
        for half in ["rate ", "100\n"] {
            append(&path, half);
            assert_eq!(follower.lines().unwrap().is_empty(), half == "rate ");
        }
        touch(&path, 5);
        assert!(follower.lines().unwrap().is_empty());
        std::thread::sleep(UNDER_WAY);
        assert_eq!(follower.lines().unwrap(), ["rate 100"]);
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [pipe, "/dev/zero".into()] {
            assert!(follow(&path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn a_pipe_that_replaces_the_file_gives_no_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "old\n");
        let mut follower = FileFollower::new(path.clone());
        follower.lines().unwrap();
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(follower.lines().is_err());
        fs::remove_file(&path).unwrap();
        append(&path, "new\n");
        assert_eq!(follower.lines().unwrap(), ["new"]);
    }

    #[test]
    fn much_is_read_in_parts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut follower = FileFollower::new(path.clone());
        append(&path, &"0123456\n".repeat(MOST / 8 + 1));
        assert_eq!((follower.lines().unwrap().len(), follower.behind), (MOST / 8, true));
        fs::rename(&path, directory.path().join("log.1")).unwrap();
        append(&path, "new\n");
        assert_eq!(follower.lines().unwrap(), ["0123456", "new"]);
        assert!(!follower.behind);
    }

    #[test]
    fn lines_arrive_from_the_thread_and_it_ends_when_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let followed = follow(&path).unwrap();
        for line in 0..50 {
            append(&path, &format!("line {line}\n"));
        }
        let lines: Vec<String> = (0..50)
            .map(|_| followed.lines.recv_timeout(Duration::from_secs(60)).unwrap().text)
            .collect();
        assert_eq!(lines[0], "line 0");
        assert_eq!(lines[49], "line 49");
    }
}
