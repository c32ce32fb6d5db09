//! Checks that a campaign can go on: what its measurements depend on has not changed.

use crate::error::JobError;
use crate::events::Events;
use crate::job::Caller;
use crate::open_subject::{OpenSubject, Opening, open_with};
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use pinwise_campaign::{CampaignInfo, Store};
use pinwise_linux::{Pid, process};
use pinwise_present::shell;
use pinwise_topology::{CpuSet, Fingerprint, Machine};

/// Opens the subject of a campaign again, with the threads that the campaign has. A thread that
/// runs little would be judged differently every other time.
///
/// # Errors
/// It cannot be opened; something has changed that the campaign's measurements depend on.
pub(crate) fn reopen(
    info: &CampaignInfo,
    request: &PlacementRequest,
    caller: &Caller,
    store: &Store,
    events: &mut dyn Events,
) -> Result<Box<dyn OpenSubject>, JobError> {
    match &request.subject {
        Subject::Pids(pids) => check_processes(info, pids)?,
        Subject::Tree(root) => check_processes(info, &[*root])?,
        _ => (),
    }
    let threads = info.new.workload.threads.iter().map(|thread| thread.name.clone());
    let (threads, node_scales) = (threads.collect(), store.node_scales(info.id)?);
    let opening = Opening { threads, node_scales, ..Opening::default() };
    let subject = request.subject.clone().of_any_version(&caller.program()?);
    let request = &PlacementRequest { subject, ..request.clone() };
    let mut testbed = open_with(request, opening, caller, events)?;
    match changed(info, request, &*testbed) {
        Some(change) => Err(no_longer(info, &change)),
        None => {
            testbed.recall(&store.records(info.id)?);
            Ok(testbed)
        }
    }
}

/// Names the changes since a campaign began on which its measurements depend.
fn changed(
    info: &CampaignInfo,
    request: &PlacementRequest,
    testbed: &dyn OpenSubject,
) -> Option<String> {
    let before = &info.new;
    let mut machine = testbed.machine().clone();
    // The description is the campaign's own. What its name says of it is another digest since.
    if let Subject::Simulated(simulation) = &request.subject
        && simulation.model.description.is_some()
    {
        machine.name.clone_from(&before.machine.name);
    }
    if let Some(change) = machine_changed(&before.machine, &machine) {
        return Some(change);
    }
    let affinities = testbed.affinities();
    let differs = |(name, before): (&String, &CpuSet)| {
        let now = affinities.get(name).filter(|now| *now != before)?;
        Some(format!(
            "its thread {name} could run on CPU {before} then, and on {now} now (restore: \
             pinwise apply --undo --pid PID, or taskset -pc LIST TID)"
        ))
    };
    let other = testbed.workload().threads != before.workload.threads;
    let others = "the program's threads are no longer those it was begun with";
    request.affinities.iter().find_map(differs).or_else(|| other.then(|| others.to_owned()))
}

fn machine_changed(began_on: &Machine, now: &Machine) -> Option<String> {
    // The size of a node's memory does not matter for a placement, and it changes with the kernel.
    // Notes were text in earlier versions; the tree has what they are about.
    let compared = |machine: &Machine| {
        let mut machine = machine.clone();
        // Earlier versions read which nodes pinwise may use, not which the program may.
        machine.numa.iter_mut().for_each(|node| (node.memory, node.allowed) = (None, true));
        machine.notes.clear();
        // Earlier versions did not read them.
        (machine.isolated, machine.nohz_full) = (CpuSet::new(), CpuSet::new());
        machine.exclusive.clear();
        machine
    };
    let (began_on, now) = (compared(began_on), compared(now));
    if now == began_on {
        return None;
    }
    let same = Machine { allowed: began_on.allowed.clone(), ..now.clone() } == began_on;
    Some(match same {
        true => format!(
            "its threads could run on CPU {} when it began, and on {} now (restore them: \
             affinity, cpuset, offline CPUs)",
            began_on.allowed, now.allowed
        ),
        false => format!(
            "the machine has changed: {} then, {} now; or its name, caches, kinds of cores \
             or distances differ",
            Fingerprint::of(&began_on).summary,
            Fingerprint::of(&now).summary
        ),
    })
}

/// Checks that the processes of a campaign still run. Measurements of other processes would not
/// compare. So a campaign cannot go on with other process numbers.
///
/// # Errors
/// One or more have ended; it names all of them.
pub(crate) fn check_processes(info: &CampaignInfo, pids: &[i32]) -> Result<(), JobError> {
    let gone = pids.iter().filter(|&&pid| process::ended(Pid(pid))).map(i32::to_string);
    let gone: Vec<String> = gone.collect();
    let (which, again) = match &gone[..] {
        [] => return Ok(()),
        [one] => (format!("its process {one} has ended, and another one does not"), "program"),
        [all @ .., last] => {
            let all = all.join(", ");
            (format!("its processes {all} and {last} have ended, and others do not"), "programs")
        }
    };
    // The command as it was typed, with a place for each new number.
    let mut command = info.new.command.clone();
    for place in 1..command.len() {
        for option in ["--pid", "--tree"] {
            if command[place - 1] == option && gone.contains(&command[place]) {
                command[place] = "PID".to_owned();
            } else if gone.iter().any(|pid| command[place] == format!("{option}={pid}")) {
                command[place] = format!("{option}=PID");
            }
        }
    }
    // A part is not a separate search.
    let whole = info.new.parent.as_ref().map_or(info.id, |parent| parent.id);
    let search = if command.is_empty() { String::new() } else { format!(": {}", shell(&command)) };
    Err(JobError::Usage(format!(
        "campaign {}: {which} compare; start the {again} again, and then a new search{search}",
        whole.0,
    )))
}

/// Checks that a campaign is resumed on the machine it began on.
///
/// # Errors
/// It is another machine, or other contexts of it may be used.
pub(crate) fn check_machine(info: &CampaignInfo, now: &Machine) -> Result<(), JobError> {
    match machine_changed(&info.new.machine, now) {
        None => Ok(()),
        Some(change) => Err(no_longer(info, &change)),
    }
}

/// Checks that the nodes of a part are like those with which its campaign began. Each part starts
/// new workers, and the first node may be another one by then.
///
/// # Errors
/// They are other machines, or other contexts of them may be used.
pub(crate) fn check_nodes(info: &CampaignInfo, now: &Machine) -> Result<(), JobError> {
    let Some(change) = machine_changed(&info.new.machine, now) else { return Ok(()) };
    // A part is not a separate search.
    let whole = info.new.parent.as_ref().map_or(info.id, |parent| parent.id);
    Err(JobError::Usage(format!(
        "campaign {}: the nodes that answer now are unlike those before: {change}; resume it when \
         the earlier ones answer, or name only nodes that are alike and start a new one: {}",
        whole.0,
        shell(&info.new.command)
    )))
}

/// The error that a campaign cannot be resumed, since something has changed.
pub(crate) fn no_longer(info: &CampaignInfo, change: &str) -> JobError {
    JobError::failed(format!(
        "campaign {}: {change}, so old and new measurements do not compare; start a new one: {}",
        info.id.0,
        shell(&info.new.command)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_subject::open;
    use crate::placement_request::simulated;
    use crate::simulation::SimulatedProcessor;
    use pinwise_campaign::{CampaignId, CampaignState, Kind, NewCampaign};
    use pinwise_placement::Budget;
    use pinwise_processor::Processor;

    /// The campaign has the description itself. So a changed way to make the digest does not make
    /// another machine. A built-in model has only its name.
    #[test]
    fn a_campaign_on_a_described_processor_goes_on_whatever_its_digest_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let text = Processor::description("ultrasparc-t2").unwrap().replacen(
            "latency = 195",
            "latency = 196",
            1,
        );
        std::fs::write(&path, text).unwrap();
        for (machine, goes_on) in [(path.to_str().unwrap(), true), ("ultrasparc-t2", false)] {
            let model = if goes_on {
                SimulatedProcessor::read(machine).unwrap()
            } else {
                SimulatedProcessor::built_in(machine)
            };
            let request = simulated(model, Budget::Measurements(30));
            let testbed = open(&request, &Caller::default()).unwrap();
            let mut info = CampaignInfo {
                id: CampaignId(1),
                new: NewCampaign {
                    kind: Kind::Place,
                    parent: None,
                    command: Vec::new(),
                    machine: testbed.machine().clone(),
                    alike: request.question.alike,
                    workload: testbed.workload().clone(),
                    unit: testbed.unit().clone(),
                    simulated: true,
                    question: serde_json::to_value(&request).unwrap(),
                    seed: 1,
                },
                started: 0,
                state: CampaignState::Stopped,
                conclusion: None,
                records: 1,
                running: false,
            };
            assert_eq!(changed(&info, &request, &*testbed), None);
            info.new.machine.name = "ultrasparc-t2 (0123abcd)".to_owned();
            assert_eq!(changed(&info, &request, &*testbed).is_none(), goes_on, "{machine}");
            info.new.machine.caches.pop();
            assert!(changed(&info, &request, &*testbed).is_some(), "{machine}: a cache is gone");
        }
    }

    /// A stopped campaign on a machine of two contexts.
    fn stopped(
        kind: Kind,
        parent: Option<pinwise_campaign::Parent>,
        command: &[&str],
    ) -> CampaignInfo {
        CampaignInfo {
            id: CampaignId(2),
            new: NewCampaign {
                kind,
                parent,
                command: command.iter().map(|&word| word.to_owned()).collect(),
                machine: Machine::from_shape("2").unwrap(),
                alike: pinwise_topology::Alike::ExceptNuma,
                workload: pinwise_measure::Workload::new("a", &[]),
                unit: pinwise_measure::Unit::rate("1/s"),
                simulated: false,
                question: serde_json::Value::Null,
                seed: 1,
            },
            started: 0,
            state: CampaignState::Stopped,
            conclusion: None,
            records: 1,
            running: false,
        }
    }

    #[test]
    fn an_ended_process_is_told_by_the_whole_campaign_and_its_command_if_there_is_one() {
        let told = |pids: &[i32], command: &[&str], parent| {
            let info = stopped(Kind::Threads, parent, command);
            check_processes(&info, pids).unwrap_err().to_string()
        };
        let part = told(&[i32::MAX], &["pinwise", "tune", "--pid", "2147483647"], {
            Some(pinwise_campaign::Parent::new(CampaignId(1), &"threads"))
        });
        assert!(part.starts_with("campaign 1: its process 2147483647 has ended"), "{part}");
        assert!(part.ends_with("a new search: pinwise tune --pid PID"), "{part}");
        let own = std::process::id() as i32;
        let command = ["pinwise", "cosched", "--pid=2147483647", "--pid", "2147483646"];
        let several = told(&[i32::MAX, own, i32::MAX - 1], &command, None);
        let ended = "its processes 2147483647 and 2147483646 have ended, and others do not compare";
        assert!(several.contains(ended), "{several}");
        assert!(several.ends_with("pinwise cosched --pid=PID --pid PID"), "{several}");
        let library = told(&[i32::MAX], &[], None);
        assert!(library.starts_with("campaign 2: "), "{library}");
        assert!(library.ends_with("and then a new search"), "{library}");
    }

    #[test]
    fn the_nodes_of_a_part_are_like_those_of_its_campaign() {
        let machine = Machine::from_shape("2").unwrap();
        let parent = Some(pinwise_campaign::Parent::new(CampaignId(1), &"policies"));
        let mut info = stopped(Kind::Policies, parent, &["pinwise", "tune"]);
        assert!(check_nodes(&info, &machine).is_ok());
        info.new.machine = Machine::from_shape("4").unwrap();
        let refused = check_nodes(&info, &machine).unwrap_err();
        let told = refused.to_string();
        assert!(matches!(refused, JobError::Usage(_)), "a number that cannot be placed is Failed");
        assert!(told.starts_with("campaign 1: the nodes that answer now are unlike"), "{told}");
        assert!(told.ends_with("start a new one: pinwise tune"), "{told}");
    }

    #[test]
    fn a_campaign_is_resumed_on_its_own_machine_only() {
        let began_on = Machine::from_shape("2").unwrap();
        let allowed: CpuSet = began_on.allowed.first().into_iter().collect();
        let confined = Machine { allowed, ..began_on.clone() };
        let other = Machine::from_shape("4").unwrap();
        assert_eq!(machine_changed(&began_on, &began_on), None);
        let change = machine_changed(&began_on, &confined).unwrap();
        assert!(change.contains("could run on CPU 0,1 when it began, and on 0 now"), "{change}");
        let change = machine_changed(&began_on, &other).unwrap();
        assert!(change.contains("the machine has changed"), "{change}");
    }
}
