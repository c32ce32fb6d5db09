//! Opens a program, decides its question, and makes the search and its campaign.

mod budget_check;

pub(crate) use budget_check::too_few;

use crate::error::JobError;
use crate::events::{Events, note};
use crate::job::Caller;
use crate::open_subject::{OpenSubject, Opening, open_with, whole_machine};
use crate::placement_request::PlacementRequest;
use crate::profiling_cost::{decide_core_local, profiling_outlook};
use crate::subject::Subject;
use pinwise_campaign::{Kind, NewCampaign, Parent, Store};
use pinwise_measure::{MemoryPolicy, ProgramNote, Time};
use pinwise_metric::MetricSpec;
use pinwise_placement::{Budget, PlacementSearch, SearchError, StrategyName};
use pinwise_present::{Notice, figures};
use pinwise_topology::SharingTree;
use std::time::Instant;

/// A program that is known, and the question about it.
pub(crate) struct PreparedSearch {
    pub(crate) request: PlacementRequest,
    pub(crate) testbed: Box<dyn OpenSubject>,
    pub(crate) new: NewCampaign,
    pub(crate) search: PlacementSearch,
}

/// Opens the program of a request and decides what the request leaves open. Makes the search and
/// the campaign that it begins. The program's first numbers must come before the budget ends.
pub(crate) fn prepare_search(
    mut request: PlacementRequest,
    parent: Option<Parent>,
    begin: Instant,
    store: &Store,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<PreparedSearch, JobError> {
    if matches!(request.subject, Subject::Launched(_) | Subject::BuiltIn(_))
        && let Ok(metric) = request.metric.parse::<MetricSpec>()
        && let Some(file) = metric.missing_file()
    {
        note(events, Notice::FileAwaited { file: file.to_owned() })?;
    }
    if matches!(request.subject, Subject::Rerun(_)) && request.floor.is_some() {
        return Err(JobError::usage(
            "--floor needs a program that keeps running: leave it out, or add --metric",
        ));
    }
    prepare_memory(&mut request, events)?;
    let until = match request.question.budget {
        Budget::Time(budget) => begin.checked_add(budget),
        Budget::Measurements(_) => None,
    };
    let opening = Opening { until, ..Opening::default() };
    let testbed = open_with(&request, opening, caller, events)?;
    let unit = testbed.unit().clone();
    request.affinities = testbed.affinities();
    request.question = request.question.on(&*testbed);
    if request.question.strategy == StrategyName::Blackbox {
        let question = &mut request.question;
        decide_core_local(&mut question.profile, Some(store), &testbed.fingerprint(), events)?;
        if let Some(outlook) = with_left_alone(
            profiling_outlook(&mut request, &*testbed).map_err(JobError::usage),
            &*testbed,
            events,
        )? {
            note(events, Notice::Profiling(outlook))?;
        }
    }
    let spent = begin.elapsed();
    let mut workload = testbed.workload().clone();
    if let Some(name) = &request.name {
        workload.name.clone_from(name);
    }
    let tree = SharingTree::new(testbed.machine(), request.question.alike);
    let Some(left) = request.question.budget.after(spent) else {
        let search = PlacementSearch::new(&request.question, &tree, &workload).ok();
        let enough = search.map(|search| budget_check::remedy(&request, &*testbed, &search, spent));
        let reason = format!(
            "preparing the program took all of the budget ({}); {}",
            figures::duration(spent),
            enough.unwrap_or_else(|| "raise --budget".to_owned())
        );
        return Err(JobError::budget_spent(reason));
    };
    request.question.budget = left;
    request.question.prepared = spent;
    if let Some(cap) = request.shown_cap.take() {
        request.question.cap = Some(unit.quantity(cap));
    }
    let new = NewCampaign {
        kind: Kind::Place,
        parent,
        command: caller.command.clone(),
        machine: testbed.machine().clone(),
        alike: request.question.alike,
        workload,
        unit,
        simulated: testbed.time() != Time::Real,
        question: serde_json::to_value(&request)?,
        seed: request.question.seed,
    };
    // Before anything is stored: a question that has no answer makes no campaign.
    let search =
        PlacementSearch::new(&request.question, &tree, &new.workload).map_err(
            |error| match error {
                SearchError::Local(_)
                | SearchError::Profiling(_)
                | SearchError::TooSmall { .. } => JobError::usage(error),
                error => error.into(),
            },
        );
    let search = with_left_alone(search, &*testbed, events)?;
    if let [only] = tree.leaves() {
        let name = &new.workload.name;
        let only = only.0;
        let remedy = match request.cpus {
            Some(_) => "name more with --cpus",
            None if request.subject.runs() => "allow more (taskset -apc LIST PID)",
            None if whole_machine()?.allowed.len() == 1 => {
                "start pinwise with more (taskset -c LIST pinwise ...)"
            }
            None => "it confines its own threads; let it use more",
        };
        let refused = JobError::failed(format!(
            "{name} may only run on CPU {only}, so there is nothing to choose: {remedy}"
        ));
        return with_left_alone(Err(refused), &*testbed, events);
    }
    Ok(PreparedSearch { request, testbed, new, search })
}

/// Checks that the memory of the subject can be where the request wants it. With one node it always
/// is.
fn prepare_memory(request: &mut PlacementRequest, events: &mut dyn Events) -> Result<(), JobError> {
    if matches!(request.subject, Subject::Simulated(_)) && !request.memory.is_leave() {
        return Err(JobError::usage("a model has no memory nodes: leave --memory out"));
    }
    let runs = request.subject.runs();
    request.memory = usable_memory(request.memory, runs, events)?;
    Ok(())
}

/// The policy, or [`MemoryPolicy::Leave`] where the machine has one node. `runs`: pinwise does not
/// start the program for each placement.
pub(crate) fn usable_memory(
    policy: MemoryPolicy,
    runs: bool,
    events: &mut dyn Events,
) -> Result<MemoryPolicy, JobError> {
    if policy == MemoryPolicy::Interleave && runs {
        return Err(JobError::usage(
            "interleave needs a program that pinwise starts: use -- CMD, or --memory follow",
        ));
    }
    if !policy.is_leave() && whole_machine()?.memory_nodes().len() < 2 {
        note(events, ProgramNote::OneMemoryNode)?;
        return Ok(MemoryPolicy::Leave);
    }
    Ok(policy)
}

/// Returns `checked`. Before an error it reports threads that are left alone or keep to some CPUs.
/// They may be its cause.
pub(crate) fn with_left_alone<T>(
    checked: Result<T, JobError>,
    testbed: &dyn OpenSubject,
    events: &mut dyn Events,
) -> Result<T, JobError> {
    if checked.is_err() {
        for about in testbed.notes() {
            if let ProgramNote::LeftAlone { .. } | ProgramNote::KeepsTo { .. } = about {
                note(events, about)?;
            }
        }
    }
    checked
}

/// An error if there is one assignment only. Do not call it in a search among several numbers of
/// threads. There, a number with a single assignment may be the best one.
pub(crate) fn ensure_choice(prepared: &PreparedSearch) -> Result<(), JobError> {
    let PreparedSearch { request, new, search, .. } = prepared;
    if !search.has_no_choice() {
        return Ok(());
    }
    let count = new.workload.threads.len();
    let threads = figures::counted(count as u64, "thread");
    let remedy = match request.question.per_context {
        _ if new.simulated => "; allow more contexts (--cpus)".to_owned(),
        Some(most) if count > 1 => format!("; allow more than {most} on each (--per-context)"),
        _ if count == 1 => "; pinwise threads finds how many to run".to_owned(),
        _ => String::new(),
    };
    let alike = if search.space().is_masked() { "" } else { ", all alike" };
    Err(JobError::failed(format!(
        "{} has {threads} for {} contexts{alike}: there is only one assignment, so there is \
         nothing to choose{remedy}",
        new.workload.name,
        SharingTree::new(&new.machine, new.alike).leaves().len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Failure, Remedy};
    use crate::job::Job;
    use crate::{PlaceRequest, Silent, stored_campaign};
    use std::time::Duration;

    #[test]
    fn a_floor_is_refused_for_a_program_that_is_started_anew() {
        let (_folder, store) = stored_campaign::empty_store();
        let command = PlacementRequest::command(vec!["no-such-program".into()], None);
        let asked = PlaceRequest::from(PlacementRequest { floor: Some(0.8), ..command });
        let prepared = asked.prepare(&Caller::default(), &store, &mut Silent);
        let error = prepared.err().unwrap().to_string();
        let refused = "--floor needs a program that keeps running: leave it out, or add --metric";
        assert_eq!(error, refused);
    }

    #[test]
    fn memory_that_cannot_be_where_it_is_wanted_is_refused() {
        let of = |subject, memory| {
            let mut request = PlacementRequest::new(subject, "io:rchar");
            request.memory = memory;
            let told = prepare_memory(&mut request, &mut Silent);
            told.map(|()| request.memory).map_err(|error| error.to_string())
        };
        let refused = of(Subject::Pids(vec![1]), MemoryPolicy::Interleave).unwrap_err();
        assert!(refused.starts_with("interleave needs a program that pinwise starts"));
        let model = crate::SimulatedProcessor::built_in("ultrasparc-t2");
        let model = crate::placement_request::simulated(model, Budget::Measurements(9)).subject;
        let refused = of(model, MemoryPolicy::Follow).unwrap_err();
        assert_eq!(refused, "a model has no memory nodes: leave --memory out");
        assert_eq!(of(Subject::Pids(vec![1]), MemoryPolicy::Leave), Ok(MemoryPolicy::Leave));
        let nodes = whole_machine().unwrap().memory_nodes().len();
        let kept = if nodes > 1 { MemoryPolicy::Follow } else { MemoryPolicy::Leave };
        assert_eq!(of(Subject::Pids(vec![1]), MemoryPolicy::Follow), Ok(kept));
    }

    /// A limit on a run time is one on runs per second. A prepared request can be prepared again.
    #[test]
    fn a_known_limit_is_asked_in_the_unit_shown_and_searched_as_a_performance() {
        let (_folder, store) = stored_campaign::empty_store();
        let command = ["sleep", "0.05"].map(str::to_owned).into();
        let mut request = PlacementRequest::command(command, None);
        request.shown_cap = Some(4.0);
        for _ in 0..2 {
            let (caller, begin) = (Caller::default(), Instant::now());
            let prepared = prepare_search(request, None, begin, &store, &caller, &mut Silent);
            request = prepared.map_err(|error| error.to_string()).unwrap().request;
            assert_eq!((request.shown_cap, request.question.cap), (None, Some(0.25)));
        }
    }

    /// Otherwise a part of `tune` would pass on a budget that is not the user's.
    #[test]
    fn a_budget_that_preparing_used_up_is_told_from_other_failures() {
        let (_folder, store) = stored_campaign::empty_store();
        let mut asked =
            PlacementRequest::command(["sleep", "0.05"].map(str::to_owned).into(), None);
        asked.question.budget = Budget::Time(Duration::from_millis(1));
        let (caller, begin) = (Caller::default(), Instant::now());
        let prepared = prepare_search(asked, None, begin, &store, &caller, &mut Silent);
        let told = |failure: &Failure| failure.remedy == Remedy::RaiseBudget;
        assert!(matches!(prepared, Err(JobError::Failed(failure)) if told(&failure)));
    }
}
