//! Workers of this process: threads in the place of nodes.

use super::*;
use crate::launch::LaunchedWorker;
use crate::likeness::CHECK_EVERY;
use crate::message::read_frame;
use crate::worker::{ABANDONED, serve};
use pinwise_measure::{Testbed, Unit, Workload};
use pinwise_topology::{Assignment, Fingerprint, Machine};
use serde_json::Value;
use std::io::pipe;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

#[test]
fn who_was_told_something_is_pinged_from_then_on() {
    let (mut read, write) = pipe().unwrap();
    let (errors, _kept) = sync_channel(1);
    let sender = write_to(0, write, Duration::from_millis(1), errors);
    sender.send(ToWorker::Open { request: Value::Null }).unwrap();
    let mut next = || read_frame::<ToWorker>(&mut read).unwrap();
    assert!(matches!(next(), ToWorker::Open { .. }), "nobody reads before");
    // It opens for as long as it likes.
    assert_eq!([next(), next()], [ToWorker::Ping, ToWorker::Ping]);
    drop(sender);
}

/// What a node does with a setting: it knows how many it has measured before.
type Measures = fn(&Setting, u64) -> Result<f64, MeasureError>;

/// A node of a test.
struct FakeNode {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    measures: Measures,
    made: u64,
}

impl Testbed for FakeNode {
    fn machine(&self) -> &Machine {
        &self.machine
    }
    fn workload(&self) -> &Workload {
        &self.workload
    }
    fn unit(&self) -> &Unit {
        &self.unit
    }
    fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        let performance = (self.measures)(setting, self.made)?;
        self.made += 1;
        Ok(Measurement::new(performance, Duration::from_secs(1)))
    }
}

/// Workers `n0`, `n1`, … that have opened the request. Each tells its number of threads what the
/// request says.
fn workers(nodes: &[Measures]) -> Workers {
    let (sender, messages) = sync_channel(MOST_MESSAGES);
    let own = OwnProgram::read("/proc/self/exe".as_ref(), "1").unwrap();
    let (nodes_named, interrupt) = (Nodes::Ssh(Vec::new()), Interrupt::default());
    let mut all = Workers::without_nodes(nodes_named, own, String::new(), messages, interrupt);
    for (number, &measures) in nodes.iter().enumerate() {
        let (orders, input) = pipe().unwrap();
        let (output, answers) = pipe().unwrap();
        std::thread::spawn(move || {
            let interrupt = Interrupt::default();
            let ends = (&interrupt, ABANDONED);
            serve(orders, answers, "1", "here", ends, |request, session| {
                let machine = Machine::from_shape("2").unwrap();
                let fingerprint = Fingerprint::of(&machine);
                let workload = Workload::new(request.to_string(), &[&["r"]]);
                let unit = Unit::rate("1/s");
                let mut node = FakeNode { machine, workload, unit, measures, made: 0 };
                session.measure(&mut node, fingerprint, Value::Null)
            })
        });
        let child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
        let launched = LaunchedWorker { child, said: Said::default() };
        let node = (number, format!("n{number}"));
        all.connect(node, launched, (Some(input), Some(output)), sender.clone());
    }
    let informed = |first: &Opened| Value::from(format!("as {}", first.workload.name));
    let request = OpeningRequest { request: 7.into(), informed: Some(&informed) };
    all.open(&request, &mut || ());
    all
}

fn pinned(leaf: u32) -> Wanted {
    (Setting::Pinned(Assignment::new(vec![leaf])), Effort::default())
}

fn fails(retry: Retry) -> Result<f64, MeasureError> {
    Err(MeasureError::new(retry, "no such file"))
}

/// All results until each of these trials has one.
fn measured(workers: &mut Workers, trials: &[Wanted]) -> Vec<(String, Wanted, bool)> {
    let mut results = Vec::new();
    for trial in trials {
        let mut take = |result: NodeResult| {
            let NodeResult { node, setting, effort, outcome, .. } = result;
            results.push((node, (setting, effort), outcome.is_ok()));
        };
        workers.measure_first(&[vec![trial.clone()]], None, &mut take).unwrap();
    }
    results
}

fn keep_alike(workers: &mut Workers) {
    let unlike = UnlikeNodes::SetAside;
    workers.keep_alike_in(&Setting::Unpinned, Effort::default(), unlike).unwrap();
}

fn lost(workers: &Workers) -> Vec<String> {
    workers.lost.iter().map(ToString::to_string).collect()
}

#[test]
fn the_first_node_opens_alone_and_the_others_get_what_it_found() {
    let mut all = workers(&[|_, _| Ok(1.0), |_, _| Ok(1.0), |_, _| Ok(1.0)]);
    let name = |worker: &ConnectedWorker| worker.opened.as_ref().unwrap().workload.name.clone();
    let names: Vec<String> = all.workers.iter().map(name).collect();
    let first = names.iter().filter(|name| *name == "7").count();
    let others = names.iter().filter(|name| *name == "\"as 7\"").count();
    assert_eq!((first, others), (1, 2), "{names:?}");
    // Something else, on the same nodes. What one of them still had is forgotten.
    all.dispatch.hand_to(0, pinned(0), 0).unwrap();
    let again = OpeningRequest { request: 8.into(), informed: None };
    all.reopen(&again).unwrap();
    assert!(all.workers.iter().map(name).all(|name| name == "8"));
    assert_eq!((all.dispatch.idle().len(), all.dispatch.waiting()), (3, 0));
}

#[test]
fn a_worker_that_has_just_connected_is_not_lost_for_its_silence() {
    let mut all = workers(&[|_, _| Ok(1.0), |_, _| Ok(1.0)]);
    let patience = Duration::from_secs(15);
    let now = Instant::now();
    let Some(long_ago) = now.checked_sub(2 * patience) else { return };
    // Both have greeted. From now on, neither has.
    (0..2).for_each(|worker| all.watch.forget(worker));
    (all.workers[0].connected, all.workers[1].connected) = (long_ago, now);
    all.lose_unheard(patience, || NodeLoss::Stopped);
    assert_eq!(lost(&all), ["node n0: its worker was asked to stop"]);
}

#[test]
fn one_node_that_cannot_measure_is_lost_and_the_others_go_on() {
    let never: Measures = |_, _| fails(Retry::Never);
    let mut all = workers(&[|_, _| Ok(5.0), never]);
    let trials: Vec<Wanted> = (0..9).map(pinned).collect();
    let results = measured(&mut all, &trials);
    assert!(results.iter().all(|(node, _, worked)| node == "n0" && *worked), "{results:?}");
    // Both may begin each trial, so it has failed at once.
    let rounds: Vec<Vec<Wanted>> = (0..2).map(|leaf| vec![pinned(leaf)]).collect();
    all.measure_first(&rounds, None, &mut |_| ()).unwrap();
    while all.count() > 1 {
        drop(all.result());
    }
    assert_eq!(lost(&all).len(), 1);
    assert!(lost(&all)[0].contains("node n1: its measurements fail (no such file)"));
    let mut none = workers(&[never, never]);
    let error = none.measure_first(&rounds, None, &mut |_| ()).unwrap_err();
    assert!(error.message.contains("no such file") && none.count() == 0, "{error}");
}

#[test]
fn a_trial_that_fails_on_one_node_is_measured_on_another_and_the_node_is_lost() {
    let broken: Measures = |_, _| fails(Retry::Other);
    let mut all = workers(&[broken, |_, _| Ok(5.0)]);
    let trials: Vec<Wanted> = (0..6).map(pinned).collect();
    let results = measured(&mut all, &trials);
    assert!(results.iter().all(|(node, _, worked)| node == "n1" && *worked), "{results:?}");
    assert!(lost(&all)[0].contains("node n0: its measurements fail"), "{:?}", lost(&all));

    // A setting that fails everywhere is at fault itself, and no node is.
    let picky: Measures = |setting, _| match setting {
        Setting::Pinned(assignment) if assignment.leaves() == [3] => fails(Retry::Other),
        _ => Ok(5.0),
    };
    let mut all = workers(&[picky, picky]);
    let trials: Vec<Wanted> = [3, 0, 3, 1, 3, 2, 3].map(pinned).to_vec();
    let results = measured(&mut all, &trials);
    let failed: Vec<&Wanted> =
        results.iter().filter(|(.., worked)| !worked).map(|(_, trial, _)| trial).collect();
    assert_eq!(failed, [&pinned(3); 4]);
    assert_eq!((all.count(), results.len()), (2, 7));
}

#[test]
fn a_node_whose_references_fail_is_not_alike() {
    let broken: Measures = |_, _| fails(Retry::Same);
    let mut all = workers(&[|_, _| Ok(5.0), broken, |_, _| Ok(5.0)]);
    keep_alike(&mut all);
    assert_eq!(lost(&all).len(), 1);
    assert!(lost(&all)[0].contains("node n1: its measurements fail (no such file)"));
    let told = all.news().take();
    assert!(matches!(&told[..], [ProgramNote::NodeLost { node, .. }] if node == "n1"));
    let notes = all.disturbances().notes;
    assert!(notes.iter().any(|note| matches!(note,
        ProgramNote::NodesAlike { nodes: 2, references: 3, checks: 1, missed } if *missed == 0.02
    )), "{notes:?}");
    // If it fails on all, the program is at fault.
    let mut all = workers(&[broken, broken]);
    keep_alike(&mut all);
    assert_eq!(all.count(), 2);
}

#[test]
fn a_node_that_becomes_slow_is_set_aside() {
    let slower: Measures = |_, made| Ok(if made < 20 { 5.0 } else { 4.0 });
    let mut all = workers(&[|_, _| Ok(5.0), slower]);
    keep_alike(&mut all);
    assert_eq!(lost(&all), [""; 0]);
    let mut results = 0;
    // On a busy machine one node may measure nearly all at first.
    while all.count() == 2 && results <= 100 * CHECK_EVERY {
        let rounds: Vec<Vec<Wanted>> = (0..4).map(|leaf| vec![pinned(leaf)]).collect();
        all.measure_first(&rounds, None, &mut |_| results += 1).unwrap();
    }
    let why = lost(&all);
    assert!(why.len() == 1 && why[0].contains("node n1: its performance differs by -20.0 %"));
    assert!(results >= 2 * CHECK_EVERY, "{results}");
}

#[test]
fn a_node_that_was_slow_for_a_moment_stays() {
    let disturbed: Measures = |_, made| Ok(if made < 3 { 4.0 } else { 5.0 });
    let mut all = workers(&[|_, _| Ok(5.0), disturbed]);
    keep_alike(&mut all);
    assert_eq!(lost(&all), [""; 0]);
    let notes = all.disturbances().notes;
    assert!(matches!(notes[..], [ProgramNote::NodesAlike { checks: 1, .. }]), "{notes:?}");
    // Of two nodes the second one is named. First this one was slow, and then the other.
    let other: Measures = |_, made| Ok(if made < 3 { 5.0 } else { 4.0 });
    let mut all = workers(&[other, disturbed]);
    keep_alike(&mut all);
    assert_eq!(lost(&all), [""; 0]);
}

/// Another node has the same trial under way for a later round, and nobody else is free.
#[test]
fn what_another_node_measures_is_not_the_rest_of_a_round() {
    let mut all = workers(&[|_, _| Ok(0.0), |_, _| Ok(1.0)]);
    for own in ["n0", "n1", "n0", "n1"] {
        for worker in 0..2 {
            all.dispatch.offer(Some(worker), [(pinned(5), 0), (pinned(6), 1)]);
        }
        all.hand_out().unwrap();
        let mut by = Vec::new();
        let rounds = [vec![pinned(6)], vec![pinned(5), pinned(6)]];
        all.measure_first(&rounds, Some(own), &mut |result| {
            by.push((result.node, result.setting == pinned(6).0));
        })
        .unwrap();
        assert_eq!(by.last(), Some(&(own.to_owned(), true)), "{by:?}");
        // What is left of it.
        while all.dispatch.in_flight().count() + all.dispatch.waiting() > 0 {
            drop(all.result());
            all.hand_out().unwrap();
        }
    }
}

#[test]
fn a_round_is_measured_on_one_node() {
    let mut all = workers(&[|_, _| Ok(0.0), |_, _| Ok(1.0), |_, _| Ok(2.0)]);
    let round: Vec<Wanted> = (0..4).map(pinned).collect();
    let rounds = vec![round.clone(); 6];
    let mut results = Vec::new();
    let mut keep = |NodeResult { node, setting, effort, .. }| {
        results.push((node, (setting, effort)));
        results.len()
    };
    let mut made = 0;
    all.measure_first(&rounds, None, &mut |result| made = keep(result)).unwrap();
    while made < 24 {
        if let Some(result) = all.result() {
            let (worker, _, trial, outcome) = result;
            made = keep(all.node_result(worker, trial, outcome));
            all.hand_out().unwrap();
        }
    }
    let of = |node: &str| -> Vec<Wanted> {
        let own = results.iter().filter(|(by, _)| by == node);
        own.map(|(_, trial)| trial.clone()).collect()
    };
    let by: Vec<Vec<Wanted>> = ["n0", "n1", "n2"].map(of).to_vec();
    assert!(by.iter().flat_map(|own| own.chunks(4)).all(|one| one == round), "{by:?}");
    assert!(by.iter().filter(|own| !own.is_empty()).count() > 1, "nodes measure at the same time");
}

/// Measures rounds until that many nodes have results. Each result has its performance, and that on
/// the common scale. The machine decides which node comes first.
fn by_node(workers: &mut Workers, nodes: usize) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut results: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for round in 0..100_000 {
        if results.len() == nodes {
            break;
        }
        let rounds: Vec<Vec<Wanted>> = (0..4).map(|leaf| vec![pinned(4 * round + leaf)]).collect();
        let mut take = |result: NodeResult| {
            let own = result.outcome.as_ref().unwrap().performance;
            let values = results.entry(result.node.clone()).or_default();
            values.push((own, result.on_common_scale().unwrap().performance));
        };
        workers.measure_first(&rounds, None, &mut take).unwrap();
    }
    results
}

fn scale(workers: &mut Workers, known: &[(&str, Option<NodeScale>)]) {
    let known = known.iter().map(|(node, scale)| ((*node).to_owned(), *scale)).collect();
    let unlike = UnlikeNodes::Scaled { known };
    workers.keep_alike_in(&Setting::Unpinned, Effort::default(), unlike).unwrap();
}

#[test]
fn a_slow_node_is_put_on_the_common_scale_and_keeps_its_own_values() {
    let fast: Measures = |_, made| Ok([9.9, 10.0, 10.1][made as usize % 3]);
    let slow: Measures = |_, made| Ok([7.92, 8.0, 8.08][made as usize % 3]);
    let mut all = workers(&[fast, slow]);
    scale(&mut all, &[]);
    assert_eq!(lost(&all), [""; 0]);
    let notes = all.disturbances().notes;
    let [ProgramNote::NodeScaled { node, factor, error }] = &notes[..] else { panic!("{notes:?}") };
    assert!(node == "n1" && (factor - 1.25).abs() < 1e-9 && *error > 0.0, "{notes:?}");
    assert_eq!((all.news().take(), all.spread()), (notes.clone(), *error));
    let results = by_node(&mut all, 2);
    assert!(results["n0"].iter().all(|(own, common)| own == common), "{results:?}");
    let scaled = |(own, common): &(f64, f64)| *own < 8.1 && (common / own - 1.25).abs() < 1e-9;
    assert!(results["n1"].iter().all(scaled), "{results:?}");
}

#[test]
fn a_resumed_campaign_keeps_the_common_scale_whoever_is_there() {
    let (slow, fast): (Measures, Measures) = (|_, _| Ok(8.0), |_, _| Ok(10.0));
    let known = NodeScale { factor: 1.25, error: 0.01 };
    // The node on whose scale the results are does not answer.
    let mut alone = workers(&[slow]);
    scale(&mut alone, &[("n0", Some(known)), ("n7", None)]);
    let results = by_node(&mut alone, 1);
    assert!(
        results["n0"].iter().all(|(own, common)| (*own, *common) == (8.0, 10.0)),
        "{results:?}"
    );
    // One that has measured nothing is put on the scale of one that has, whatever their order.
    let mut new = workers(&[fast, slow]);
    scale(&mut new, &[("n1", None)]);
    let results = by_node(&mut new, 2);
    let common: Vec<f64> = results.values().flatten().map(|(_, common)| *common).collect();
    assert!(results.len() == 2 && common.iter().all(|value| *value == 8.0), "{results:?}");
}
