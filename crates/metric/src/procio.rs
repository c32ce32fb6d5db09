//! `/proc/PID/io`: how much the processes of a program have read and written.

use crate::source::{MetricValue, Source, SourceError};
use pinwise_linux::thread::Pid;
use std::fs;

/// Counters of `/proc/PID/io` (proc_pid_io(5)). `rchar` and `wchar` count what passes through
/// read(2), write(2) and their relatives, including sockets and pipes. `read_bytes` and
/// `write_bytes` count what went to storage.
pub(crate) const FIELDS: &[&str] =
    &["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"];

/// The processes of a program. Called for each reading.
pub type Pids = Box<dyn Fn() -> Vec<Pid> + Send>;

/// The sum of one counter over the processes of a program. When a process ends, its parent's
/// counter takes its numbers over as soon as it is waited for.
pub(crate) struct ProcIo {
    pub(crate) field: String,
    pub(crate) pids: Pids,
}

impl Source for ProcIo {
    fn read(&mut self, _: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
        let pids = (self.pids)();
        let mut sum = None;
        let mut failure = SourceError::on("/proc/PID/io", "the program has no process any more");
        for pid in pids {
            let path = format!("/proc/{pid}/io");
            match fs::read_to_string(&path) {
                Ok(text) => match parse(&text, &self.field) {
                    Some(value) => sum = Some(sum.unwrap_or(0) + value),
                    None => {
                        return Err(SourceError::on(
                            path,
                            format_args!("no field '{}'", self.field),
                        ));
                    }
                },
                // A process that has just ended is no failure; one of another user is.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    failure = SourceError::on(
                        path,
                        "permission denied: run pinwise as the program's user, or give it \
                         CAP_SYS_PTRACE",
                    );
                }
                Err(_) => {}
            }
        }
        match sum {
            Some(sum) => Ok(MetricValue::of(sum as f64)),
            None => Err(failure),
        }
    }

    fn exact(&self) -> bool {
        true
    }
}

/// The value of `field` in the text of `/proc/PID/io`.
fn parse(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        line.split_once(':').filter(|(name, _)| *name == field)?.1.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text =
            "rchar: 12\nwchar: 34\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        assert_eq!(parse(text, "write_bytes"), Some(6));
        assert_eq!(parse(text, "rchar"), Some(12));
        assert_eq!(parse(text, "bytes"), None);
    }

    #[test]
    fn what_this_process_writes_is_counted() {
        let mut source = ProcIo {
            field: "wchar".into(),
            pids: Box::new(|| vec![Pid(std::process::id().cast_signed())]),
        };
        let before = source.read(&|| false).unwrap().value;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 123_456]).unwrap();
        let after = source.read(&|| false).unwrap().value;
        assert!(after - before >= 123_456.0, "{before} {after}");
    }

    #[test]
    fn a_program_without_processes_is_named() {
        let mut source = ProcIo { field: "wchar".into(), pids: Box::new(Vec::new) };
        assert!(
            matches!(source.read(&|| false), Err(SourceError::Unreadable(why)) if why.contains("no \
                process"))
        );
    }
}
