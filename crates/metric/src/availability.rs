//! Whether the source of a metric can exist at all. If it certainly cannot, pinwise refuses before
//! it starts anything.
//!
//! If the program already runs, its source exists now, or the name is wrong. A program that is yet
//! to be started may create its files, sockets and pages. It creates no commands and hardly a
//! network interface.

use crate::command;
use crate::dpdk::{self, Dpdk};
use crate::netdev::Netdev;
use crate::procio::ProcIo;
use crate::prometheus::Prometheus;
use crate::source::{Source, SourceError};
use crate::{MetricError, MetricSpec};
use pinwise_linux::thread::Pid;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

/// How long to wait for a page.
const PATIENCE: Duration = Duration::from_secs(1);

impl MetricSpec {
    /// The file that the numbers come from, if there is none yet: the program has to create it.
    pub fn missing_file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } if !path.exists() => Some(path),
            _ => None,
        }
    }

    /// Checks that its source exists, or may exist once the program runs. `running`: the processes
    /// of a program that already runs.
    pub(super) fn present(&self, running: Option<&[Pid]>) -> Result<(), MetricError> {
        let missing = |why: String, remedy: &'static str| MetricError::Missing {
            metric: self.to_string(),
            why,
            remedy,
        };
        let refused = |failure, remedy| match failure {
            SourceError::Cancelled => Ok(()),
            SourceError::Unreadable(why) | SourceError::Hopeless(why) => Err(missing(why, remedy)),
            SourceError::TwoReadings(error) => Err(error),
        };
        let read = |source: &mut dyn Source, remedy| match source.read(&|| false) {
            Ok(_) => Ok(()),
            Err(failure) => refused(failure, remedy),
        };
        match (self, running) {
            (Self::File { path, .. }, running) => match unreadable(path, running.is_some()) {
                None => Ok(()),
                Some(why) => {
                    Err(missing(why, "name a readable file that the program writes its numbers to"))
                }
            },
            (Self::Command(command), _) => match command::unknown(command) {
                None => Ok(()),
                Some(program) => Err(missing(
                    format!("there is no program '{program}'"),
                    "give its path, or add its folder to PATH",
                )),
            },
            (Self::Netdev { interface, field }, running) => {
                let pids = running.unwrap_or_default().to_vec();
                let mut source =
                    Netdev::new(interface.clone(), field.clone(), Box::new(move || pids.clone()));
                read(
                    &mut source,
                    match running {
                        Some(_) => "name one of these",
                        None => {
                            "name one of these; if the program creates it, start the program \
                             yourself and give --pid"
                        }
                    },
                )
            }
            (Self::Io(field), Some(pids)) => {
                let pids = pids.to_vec();
                read(
                    &mut ProcIo { field: field.clone(), pids: Box::new(move || pids.clone()) },
                    "or take another metric",
                )
            }
            (Self::Prometheus { url, selector }, Some(_)) => {
                // A page that takes its time is there; whether it answers is seen when it is read.
                let asked = Instant::now();
                let page = Prometheus::new(url.clone(), selector.clone())
                    .fetch(&|| asked.elapsed() > PATIENCE);
                let remedy = "give the address at which the program answers";
                page.map_or_else(|failure| refused(failure, remedy), |_| Ok(()))
            }
            (Self::Dpdk { prefix, field }, Some(_)) => {
                let found = Dpdk::new(dpdk::runtime_directory(), prefix, field.clone()).found();
                found.map_err(|why| missing(why, "give the program's --file-prefix"))
            }
            (Self::Stdout(_) | Self::Stderr(_) | Self::Runtime, _)
            | (Self::Io(_) | Self::Prometheus { .. } | Self::Dpdk { .. }, None) => Ok(()),
        }
    }
}

/// Why no number can come from this file. A file that does not exist may appear, unless it has to
/// exist `now`.
fn unreadable(path: &Path, now: bool) -> Option<String> {
    let because = |error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        format!("{}: {why}", path.display())
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !now => None,
        Err(error) => Some(because(error)),
        Ok(found) if found.is_dir() => Some(format!("{}: it is a folder", path.display())),
        // A pipe has no content to follow, and a device may have content without end.
        Ok(found) if !found.is_file() => {
            Some(format!("{}: it is a pipe, a socket or a device", path.display()))
        }
        Ok(_) => fs::File::open(path).err().map(because),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(metric: &str, running: Option<&[Pid]>) -> Option<String> {
        let refused = metric.parse::<MetricSpec>().unwrap().present(running).err();
        assert!(refused.as_ref().is_none_or(MetricError::is_usage), "{refused:?}");
        refused.map(|error| error.to_string())
    }

    #[test]
    fn what_the_program_may_make_is_refused_only_where_it_runs_already() {
        let folder = tempfile::tempdir().unwrap();
        let own = [Pid(std::process::id() as i32)];
        // A port that was free a moment ago: nobody answers there.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = format!(r"file:{}/new/log:(\d+)", folder.path().display());
        let page = format!("prom:http://127.0.0.1:{port}/metrics#served");
        for (metric, why) in [
            (file.as_str(), "there is no such file"),
            (&page, "127.0.0.1"),
            ("dpdk:pinwise-nobody", "no such socket"),
        ] {
            assert_eq!(refused(metric, None), None);
            assert!(refused(metric, Some(&own)).is_some_and(|told| told.contains(why)), "{metric}");
        }
    }

    #[test]
    fn what_can_never_be_there_is_refused_beforehand() {
        let own = [Pid(std::process::id() as i32)];
        for (metric, why) in [
            (r"file:/proc:(\d+)", "it is a folder"),
            (r"file:/dev/null/log:(\d+)", "Not a directory"),
            (r"file:/dev/null:(\d+)", "it is a pipe, a socket or a device"),
            (r"file:/dev/zero:(\d+)", "it is a pipe, a socket or a device"),
            ("netdev:eth99:tx_packets", "there are only "),
            ("cmd:pinwise-nothing --stat", "there is no program 'pinwise-nothing'"),
        ] {
            for running in [None, Some(&own[..])] {
                assert!(
                    refused(metric, running).is_some_and(|told| told.contains(why)),
                    "{metric} {running:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_there_is_not_refused() {
        let own = [Pid(std::process::id() as i32)];
        for metric in [
            r"file:/proc/uptime:(\d+)",
            "netdev:lo:tx_packets",
            "io:rchar",
            "cmd:cat /no/such/file",
            "cmd:test 1",
            "cmd:x=5; echo $x",
        ] {
            for running in [None, Some(&own[..])] {
                assert_eq!(refused(metric, running), None, "{metric} {running:?}");
            }
        }
    }
}
