//! A tuned program on several nodes, from both sides.
//!
//! The search for the number has its own workers, and so has each search for a placement. Slurm
//! gives a whole node to each, so no two of them are open at once.

use super::program_testbed::TunedProgram;
use crate::error::JobError;
use crate::events::Events;
use crate::job::Caller;
use crate::node_worker::{OpenFacts, WorkerRequest, WorkingPlace, refuse};
use crate::open_subject::{OnNodes, start_on_nodes};
use crate::threads::{ThreadsRequest, look_in};
use pinwise_cluster::{FrameError, Session};
use pinwise_measure::{Setting, ThreadCount, Workload};

/// Refuses what nodes cannot measure: each measurement starts the program anew.
pub(super) fn check(request: &ThreadsRequest) -> Result<(), JobError> {
    if request.on.is_some() && !request.per_run {
        return Err(JobError::usage("--on measures whole runs: add --per-run, or leave --on out"));
    }
    Ok(())
}

/// Starts workers that measure the program with any number, pinned or not. `known`: a number whose
/// threads are known by name. `None`: the request names no nodes.
///
/// # Errors
/// No node can open it, or the user asked to stop.
pub(super) fn start(
    request: &ThreadsRequest,
    known: Option<(u32, Workload)>,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<Option<OnNodes>, JobError> {
    let Some(nodes) = &request.on else { return Ok(None) };
    let (alone, from) = (ThreadsRequest { on: None, ..request.clone() }, WorkingPlace::here()?);
    let asked = WorkerRequest::Tune { request: Box::new(alone), known, from };
    let mut opened = start_on_nodes(nodes, &asked, None, caller, events)?;
    let count = ThreadCount::unpinned(request.default);
    opened.keep_alike_in(&Setting::Threads(count), events)?;
    Ok(Some(opened))
}

/// Opens the program, and measures it for a coordinator. `path`: where programs are looked for.
///
/// # Errors
/// The coordinator cannot be heard or answered any more.
pub(crate) fn serve_tuned(
    mut request: ThreadsRequest,
    known: Option<(u32, Workload)>,
    path: Result<String, JobError>,
    caller: &Caller,
    session: &mut Session,
) -> Result<(), FrameError> {
    let opened = path.and_then(|path| {
        look_in(Some(path), &mut request);
        let machine = pinwise_linux::this_machine()?;
        let fingerprint = pinwise_linux::fingerprint(&machine);
        let mut program = TunedProgram::anew(&request, machine, None, caller)?;
        known.into_iter().for_each(|(n, workload)| program.know(n, workload));
        Ok((program, fingerprint))
    });
    match opened {
        Ok((mut program, fingerprint)) => {
            let facts =
                serde_json::to_value(OpenFacts::default()).map_err(FrameError::Malformed)?;
            session.measure(&mut program, fingerprint, facts)
        }
        Err(error) => refuse(session, &error, &caller.interrupt),
    }
}
