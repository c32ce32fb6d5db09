//! The worker on a node: it opens what a local run would open, and measures for a coordinator.

use crate::characterize::serve_benchmarks;
use crate::error::JobError;
use crate::events::Silent;
use crate::job::Caller;
use crate::open_subject::{OpenSubject, Opening, open_with};
use crate::placement_request::PlacementRequest;
use crate::with_other_load::WithOtherLoad;
use crate::{CharacterizeRequest, Interrupt};
use pinwise_cluster::{FrameError, Session, serve};
use pinwise_measure::{ProgramNote, WorkingSets};
use pinwise_topology::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

/// What a coordinator asks a worker to open.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum WorkerRequest {
    /// A program to place, with the names of threads that it is known to have.
    Place { request: Box<PlacementRequest>, threads: Vec<String> },
    /// Microbenchmarks, with what was found about the caches once somebody has looked.
    Characterize { request: CharacterizeRequest, found: Option<WorkingSets> },
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
        }
    }
}

/// Serves the coordinator on `input` and `output` until it has gone. `version` is this program's,
/// `host` what the node calls itself.
///
/// # Errors
/// The coordinator cannot be heard or answered any more.
pub fn serve_as_worker(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    version: &str,
    host: &str,
    caller: &Caller,
) -> Result<(), FrameError> {
    serve(input, output, version, host, &caller.interrupt, |request, session| {
        match serde_json::from_value(request) {
            Ok(WorkerRequest::Place { request, threads }) => {
                let opening = Opening { threads, ..Opening::default() };
                match open_with(&request, opening, caller, &mut Silent) {
                    Ok(mut subject) => measure(session, &mut *subject, request.period),
                    Err(error) => refuse(session, &error, &caller.interrupt),
                }
            }
            Ok(WorkerRequest::Characterize { request, found }) => {
                serve_benchmarks(&request, found, caller, session)
            }
            Err(error) => session.refuse(&error),
        }
    })
}

/// Says why nothing can be opened. A worker that was asked to stop says nothing: it has gone.
pub(crate) fn refuse(
    session: Session,
    error: &JobError,
    interrupt: &Interrupt,
) -> Result<(), FrameError> {
    if interrupt.came() { Ok(()) } else { session.refuse(error) }
}

fn measure(
    session: Session,
    subject: &mut dyn OpenSubject,
    period: Duration,
) -> Result<(), FrameError> {
    let facts = serde_json::to_value(OpenFacts::of(subject, period));
    let facts = facts.map_err(FrameError::Malformed)?;
    let fingerprint = subject.fingerprint();
    session.measure(&mut WithOtherLoad::new(subject), fingerprint, facts)
}
