//! The worker on a node: it opens what a local run would open, and measures for a coordinator.

use crate::characterize::serve_benchmarks;
use crate::error::JobError;
use crate::events::Silent;
use crate::job::Caller;
use crate::open_subject::{OpenSubject, Opening, open_with};
use crate::pairs::PairsRequest;
use crate::placement_request::PlacementRequest;
use crate::threads::{AskedProbes, ThreadsRequest, UsableContexts, serve_probes};
use crate::tune::serve_tuned;
use crate::with_other_load::WithOtherLoad;
use crate::{CharacterizeRequest, Interrupt};
use pinwise_cluster::{ABANDONED, FrameError, NodeTurn, Session, serve};
use pinwise_measure::{ProgramNote, WorkingSets, Workload};
use pinwise_topology::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a coordinator asks a worker to open.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WorkerRequest {
    /// A program to place, with the names of threads that it is known to have.
    Place {
        request: Box<PlacementRequest>,
        threads: Vec<String>,
        /// What is left of a budget in time: it may not take longer to open.
        left: Option<Duration>,
        /// Where it runs, and where programs are looked for; `None`: that does not matter.
        from: Option<WorkingPlace>,
    },
    /// Programs to pair.
    Pairs { request: Box<PairsRequest>, from: Option<WorkingPlace> },
    /// A program to probe with numbers of threads.
    Threads { asked: AskedProbes, from: Option<WorkingPlace> },
    /// A program to measure with numbers of threads, pinned or not. Of one number, the threads may
    /// be known.
    Tune { request: Box<ThreadsRequest>, known: Option<(u32, Workload)>, from: WorkingPlace },
    /// Microbenchmarks, with what was found about the caches once somebody has looked.
    Characterize { request: CharacterizeRequest, found: Option<WorkingSets> },
}

impl WorkerRequest {
    /// Whether something runs on the node's own processors, in real time.
    fn is_real(&self) -> bool {
        match self {
            Self::Place { from, .. } | Self::Pairs { from, .. } | Self::Threads { from, .. } => {
                from.is_some()
            }
            Self::Tune { .. } => true,
            Self::Characterize { request, .. } => request.model.is_none(),
        }
    }
}

/// Where the coordinator runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkingPlace {
    folder: PathBuf,
    /// Its `PATH`.
    path: Option<String>,
}

impl WorkingPlace {
    /// That of this process.
    pub(crate) fn here() -> Result<Self, JobError> {
        let folder = std::env::current_dir().map_err(|error| {
            JobError::failed(format!("cannot find the working directory: {error}"))
        })?;
        Ok(Self { folder, path: std::env::var("PATH").ok() })
    }

    /// Goes there. Returns its `PATH`, with that of this node behind it.
    fn enter(&self) -> Result<String, JobError> {
        std::env::set_current_dir(&self.folder).map_err(|error| {
            JobError::failed(format!(
                "cannot run in {} there ({error}): give the nodes this folder, or run pinwise in \
                 one that they have",
                self.folder.display()
            ))
        })?;
        let own = std::env::var("PATH").ok();
        // An empty one would be the folder itself.
        let paths = self.path.iter().chain(&own).filter(|path| !path.is_empty()).cloned();
        let paths: Vec<String> = paths.collect();
        Ok(paths.join(":"))
    }
}

/// What an [`OpenSubject`] says besides what every testbed says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OpenFacts {
    pub(crate) affinities: BTreeMap<String, CpuSet>,
    pub(crate) notes: Vec<ProgramNote>,
    pub(crate) each: Duration,
    pub(crate) experiment: Option<Duration>,
    pub(crate) profiles: bool,
    pub(crate) restart: Option<Duration>,
    /// The contexts that the program may use, where its number of threads is asked.
    pub(crate) usable: Option<UsableContexts>,
}

impl OpenFacts {
    fn of(subject: &dyn OpenSubject, period: Duration) -> Self {
        Self {
            affinities: subject.affinities(),
            notes: subject.notes(),
            each: subject.each(period),
            experiment: subject.experiment(period),
            profiles: subject.profiles(),
            restart: subject.restart(),
            usable: None,
        }
    }
}

/// Serves the coordinator on `input` and `output` until it has gone. `version` is this program's,
/// `host` what the node calls itself. Real programs are measured in the `turn` of this name
/// ([`NodeTurn`]).
///
/// # Errors
/// The coordinator cannot be heard or answered any more.
pub fn serve_as_worker(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    (version, host): (&str, &str),
    turn: Option<&str>,
    caller: &Caller,
) -> Result<(), FrameError> {
    let ends = (&caller.interrupt, ABANDONED);
    let mut held = None;
    serve(input, output, version, host, ends, |request, session| {
        let begin = Instant::now();
        let request = serde_json::from_value::<WorkerRequest>(request);
        if let (Ok(request), Some(turn), None) = (&request, turn, &held)
            && request.is_real()
        {
            match wait_for_turn(turn, &caller.interrupt) {
                Ok(turn) => held = Some(turn),
                Err(error) => return refuse(session, &error, &caller.interrupt),
            }
        }
        match request {
            Ok(WorkerRequest::Place { mut request, threads, left, from }) => {
                let until = left.and_then(|left| begin.checked_add(left));
                let opening = Opening { threads, until, ..Opening::default() };
                let entered = from.map(|from| from.enter()).transpose();
                let opened = entered.and_then(|path| {
                    let path = path.filter(|path| !path.is_empty());
                    let path = path.map(|path| ("PATH".to_owned(), path));
                    // What the request names comes last, and counts.
                    let named = std::mem::take(&mut request.environment);
                    request.environment = path.into_iter().chain(named).collect();
                    open_with(&request, opening, caller, &mut Silent)
                });
                match opened {
                    Ok(mut subject) => measure(session, &mut *subject, request.period),
                    Err(error) => refuse(session, &error, &caller.interrupt),
                }
            }
            Ok(WorkerRequest::Pairs { request, from }) => {
                let entered = from.map(|from| from.enter()).transpose();
                match entered.and_then(|path| {
                    let path = path.filter(|path| !path.is_empty());
                    request.open(path, caller, &mut Silent)
                }) {
                    Ok(mut ready) => {
                        measure(session, &mut *ready.testbed, PlacementRequest::PERIOD)
                    }
                    Err(error) => refuse(session, &error, &caller.interrupt),
                }
            }
            Ok(WorkerRequest::Threads { asked, from }) => {
                let path = from.map(|from| from.enter()).transpose();
                serve_probes(asked, path, caller, session)
            }
            Ok(WorkerRequest::Tune { request, known, from }) => {
                serve_tuned(*request, known, from.enter(), caller, session)
            }
            Ok(WorkerRequest::Characterize { request, found }) => {
                serve_benchmarks(&request, found, caller, session)
            }
            Err(error) => session.refuse(&error),
        }
    })
}

/// How long a worker waits for the end of an earlier one.
const TURN: Duration = Duration::from_secs(30);

fn wait_for_turn(name: &str, interrupt: &Interrupt) -> Result<NodeTurn, JobError> {
    let begin = Instant::now();
    loop {
        let taken = NodeTurn::take(name).map_err(|error| {
            JobError::failed(format!("cannot tell whether another worker measures there: {error}"))
        })?;
        match taken {
            Some(turn) => return Ok(turn),
            None if interrupt.came() || begin.elapsed() > TURN => {
                return Err(JobError::failed(format!(
                    "another worker of this store still measures there: wait for its campaign, or \
                     end it there with pkill -f 'worker --turn {name}'"
                )));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Says why nothing can be opened. A worker that was asked to stop says nothing: it has gone.
pub(crate) fn refuse(
    session: &mut Session,
    error: &JobError,
    interrupt: &Interrupt,
) -> Result<(), FrameError> {
    if interrupt.came() { Ok(()) } else { session.refuse(error) }
}

fn measure(
    session: &mut Session,
    subject: &mut dyn OpenSubject,
    period: Duration,
) -> Result<(), FrameError> {
    let facts = serde_json::to_value(OpenFacts::of(subject, period));
    let facts = facts.map_err(FrameError::Malformed)?;
    let fingerprint = subject.fingerprint();
    session.measure(&mut WithOtherLoad::new(subject), fingerprint, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_a_node_does_not_have_is_named_on_one_line() {
        let place = WorkingPlace { folder: "/no/such/folder".into(), path: None };
        let error = place.enter().unwrap_err().to_string();
        assert!(error.contains("cannot run in /no/such/folder there"), "{error}");
        // The folder that this process is in is one that it has.
        let path = WorkingPlace::here().unwrap().enter().unwrap();
        let own = std::env::var("PATH").unwrap();
        assert_eq!(path, format!("{own}:{own}"));
    }
}
