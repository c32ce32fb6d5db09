//! Plans on real processes. [`PlanPinner`] has the tests of pinning itself.

use super::*;
use pinwise_placement::{PlannedMemory, PlannedNumber, PlannedThread};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A shell that waits. It ends with its standard input, when this is dropped.
struct Shell(Child);

impl Shell {
    fn start() -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "echo started; read -r line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        Self(child)
    }

    fn pid(&self) -> Pid {
        Pid(self.0.id() as i32)
    }

    fn cpus(&self) -> CpuSet {
        affinity::get(self.pid().main()).unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The first CPU that this test may use.
fn cpu() -> CpuSet {
    this_machine().unwrap().allowed.first().into_iter().collect()
}

/// A plan of this machine for threads of these names.
fn plan(names: &[&str]) -> Plan {
    let threads = names.iter().map(|name| PlannedThread {
        name: (*name).to_owned(),
        role: "r".to_owned(),
        instance: 0,
        cpus: cpu(),
    });
    Plan::new("sh", fingerprint(&this_machine().unwrap()), threads.collect())
}

fn with_number(names: &[&str], set: Option<String>) -> Plan {
    let number = PlannedNumber { n: 3, environment: Default::default(), set };
    let mut plan = plan(names);
    plan.number = Some(number);
    plan
}

/// The events as debug text, and what `act` returns.
fn events<T>(act: impl FnOnce(&mut PlanEvents<'_>) -> T) -> (T, Vec<String>) {
    let mut seen = Vec::new();
    let done = act(&mut |event| {
        seen.push(format!("{event:?}"));
        Ok(())
    });
    (done, seen)
}

#[test]
fn a_plan_is_applied_and_taken_back() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let before = shell.cpus();
    let program = HeldProgram::of(shell.pid()).unwrap();
    let nothing = program.undo(notes.path()).unwrap_err();
    assert!(matches!(nothing, ApplyError::NothingToUndo(pid) if pid == shell.pid()));
    let plan = plan(&["sh", "worker#1"]);
    let (applied, seen) =
        events(|events| program.apply(&plan, ApplyOptions::default(), notes.path(), events));
    let applied = applied.unwrap();
    assert_eq!(seen, [""; 0]);
    assert_eq!((shell.cpus(), applied.pinned()[0].tid), (cpu(), shell.pid().main()));
    assert_eq!(applied.missing().unwrap().names, ["worker#1"]);
    let Err(ApplyError::Unplaced(unplaced)) = applied.complete() else { panic!("it is complete") };
    assert_eq!((unplaced.refused, unplaced.threads), (0, 2));
    assert!(unplaced.to_string().starts_with(
        "1 of 2 threads of the plan are not pinned: the process has no thread worker#1; the plan \
         is for sh. "
    ));
    let released = program.undo(notes.path()).unwrap();
    assert_eq!((released.len(), &released[0].cpus), (1, &before));
    assert_eq!(shell.cpus(), before);
}

/// A child process has the name of its parent until it becomes another program, and so has a thread
/// until it gives itself a name. Meanwhile the parent is the first of two.
#[test]
fn a_name_that_is_not_its_own_for_a_moment_is_waited_for() {
    let (notes, plan) = (tempfile::tempdir().unwrap(), plan(&["sh"]));
    let script = "exec 3<&0; (read -r go <&3; exec cat <&3) & echo started; wait";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let mut go = child.stdin.take().unwrap();
    let shell = Shell(child);
    let pinner =
        super::pinner(Scope::Trees(vec![shell.pid()]), &plan, EndedThreads::Forgotten).unwrap();
    assert_eq!(pinner.preview().len(), 0, "no thread has that name yet");
    let notes = open_notes(notes.path()).unwrap();
    let applied = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            writeln!(go, "go").unwrap();
        });
        AppliedPlan::begin(&plan, pinner, notes, None, Duration::from_secs(60)).unwrap()
    });
    assert!(applied.missing().is_none());
    assert_eq!(shell.cpus(), cpu());
    drop(go);
}

#[test]
fn a_plan_of_another_machine_needs_force() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let before = shell.cpus();
    let program = HeldProgram::of(shell.pid()).unwrap();
    let mut plan = plan(&["sh"]);
    plan.machine.topology = "0".to_owned();
    let apply = |force| {
        let options = ApplyOptions { force, set_number: false };
        let (applied, seen) = events(|events| program.apply(&plan, options, notes.path(), events));
        (applied.map(|applied| applied.complete().is_ok()), seen)
    };
    let (refused, seen) = apply(false);
    assert!(matches!(refused, Err(ApplyError::Misfit(differences)) if differences.len() == 1));
    assert_eq!((seen.len(), shell.cpus()), (0, before));
    let (applied, seen) = apply(true);
    assert!(applied.unwrap());
    assert!(seen.len() == 1 && seen[0].starts_with("Difference(Topology"), "{seen:?}");
    assert_eq!(shell.cpus(), cpu());
}

#[test]
fn a_preview_pins_nothing_and_knows_what_is_missing() {
    let shell = Shell::start();
    let before = shell.cpus();
    let plan = plan(&["sh", "worker"]);
    let preview = Preview::of(shell.pid(), &plan, false, &mut |_| Ok(())).unwrap();
    let [(pinned, now)] = &preview.moves[..] else { panic!("{preview:?}") };
    assert_eq!((&*pinned.name, &pinned.cpus, now), ("sh", &cpu(), &before));
    assert!(matches!(preview.complete(), Err(ApplyError::Unplaced(_))));
    assert_eq!(shell.cpus(), before);
}

#[test]
fn the_number_is_set_only_where_that_is_asked_for() {
    let (folder, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let file = folder.path().join("number");
    let command = format!("echo {{n}} > {}", file.display());
    let plan = with_number(&["sh"], Some(command.clone()));
    let told = || std::fs::read_to_string(&file).ok();
    let (preview, seen) = events(|events| Preview::of(shell.pid(), &plan, false, events));
    preview.unwrap();
    assert_eq!((told(), seen[0].contains("Settable")), (None, true), "{seen:?}");
    let program = HeldProgram::of(shell.pid()).unwrap();
    let apply = |set_number| {
        let options = ApplyOptions { force: false, set_number };
        let (applied, seen) = events(|events| {
            program.apply(&plan, options, &folder.path().join("notes"), events).map(drop)
        });
        applied.unwrap();
        seen
    };
    let event = |outcome| format!("{:?}", PlanEvent::Number { n: 3, outcome });
    assert_eq!(apply(false), [event(NumberOutcome::NotAsked(&command))]);
    assert_eq!(told(), None);
    assert_eq!(apply(true), [event(NumberOutcome::Set(&command))]);
    assert_eq!(told().as_deref(), Some("3\n"));
}

#[test]
fn a_number_without_a_command_needs_a_new_start() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let (program, plan) = (HeldProgram::of(shell.pid()).unwrap(), with_number(&[], None));
    let options = ApplyOptions { force: false, set_number: true };
    let (applied, seen) = events(|events| program.apply(&plan, options, notes.path(), events));
    applied.unwrap().complete().unwrap();
    assert_eq!(seen, ["Number { n: 3, outcome: NeedsStart }", "NoPins"]);
}

#[test]
fn nothing_is_pinned_where_nothing_can_be_noted() {
    let shell = Shell::start();
    let (before, plan) = (shell.cpus(), plan(&["sh"]));
    let program = HeldProgram::of(shell.pid()).unwrap();
    let (options, notes) = (ApplyOptions::default(), PathBuf::from("/dev/null/notes"));
    let refused = program.apply(&plan, options, &notes, &mut |_| Ok(())).unwrap_err();
    let reason = "/dev/null/notes: cannot use this folder for the affinities to restore: ";
    assert!(refused.to_string().starts_with(reason), "{refused}");
    assert_eq!(shell.cpus(), before);
}

#[test]
fn the_number_is_not_set_where_nothing_can_be_noted() {
    let (folder, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let file = folder.path().join("number");
    let plan = with_number(&["sh"], Some(format!("echo {{n}} > {}", file.display())));
    let program = HeldProgram::of(shell.pid()).unwrap();
    let options = ApplyOptions { force: false, set_number: true };
    // No folder, and one in which a folder stands where the notes of the process belong.
    let taken = folder.path().join("notes");
    UndoNotes::open(&taken).unwrap();
    let boot = std::fs::read_dir(&taken).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir(boot.join(shell.pid().to_string())).unwrap();
    for notes in [PathBuf::from("/dev/null/notes"), taken] {
        let (refused, seen) =
            events(|events| program.apply(&plan, options, &notes, events).map(drop));
        assert!(matches!(refused, Err(ApplyError::Notes { .. })), "{refused:?}");
        assert!(!file.exists() && seen.is_empty(), "{seen:?}");
    }
}

#[test]
fn a_note_that_cannot_be_written_is_named_as_such() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    UndoNotes::open(notes.path()).unwrap();
    let boot = std::fs::read_dir(notes.path()).unwrap().next().unwrap().unwrap().path();
    // A folder where the notes of the process belong.
    std::fs::create_dir(boot.join(shell.pid().to_string())).unwrap();
    let (before, plan) = (shell.cpus(), plan(&["sh"]));
    let program = HeldProgram::of(shell.pid()).unwrap();
    let options = ApplyOptions::default();
    let refused = program.apply(&plan, options, notes.path(), &mut |_| Ok(())).unwrap_err();
    let named = matches!(&refused, ApplyError::Notes { folder, .. } if *folder == notes.path());
    assert!(named, "{refused}");
    assert_eq!(shell.cpus(), before);
}

#[test]
fn a_thread_is_refused_until_one_of_its_name_is_pinned() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let mut plan = plan(&["sh"]);
    plan.threads[0].cpus = [pinwise_topology::CpuId(8191)].into_iter().collect();
    let program = HeldProgram::of(shell.pid()).unwrap();
    let options = ApplyOptions { force: true, set_number: false };
    let mut applied = program.apply(&plan, options, notes.path(), &mut |_| Ok(())).unwrap();
    let refused = applied.complete().unwrap_err();
    assert!(matches!(&refused, ApplyError::Unplaced(Unplaced { refused: 1, .. })), "{refused}");
    let (name, tid) = ("sh".to_owned(), shell.pid().main());
    applied.note_refused(&[Pinned { name, tid, cpus: cpu(), result: Ok(()) }]);
    applied.complete().unwrap();
}

#[test]
fn the_memory_of_a_process_stays_where_a_thread_was_refused() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let mut plan = plan(&["sh"]);
    plan.memory = PlannedMemory::new(MemoryPolicy::Follow, &this_machine().unwrap(), &cpu());
    plan.threads[0].cpus = [pinwise_topology::CpuId(8191)].into_iter().collect();
    let program = HeldProgram::of(shell.pid()).unwrap();
    let options = ApplyOptions { force: true, set_number: false };
    let applied = program.apply(&plan, options, notes.path(), &mut |_| Ok(())).unwrap();
    // On one node there is nowhere to move it, and no word of it.
    let nodes = this_machine().unwrap().memory_nodes().len();
    let expected = if nodes > 1 { vec![shell.pid()] } else { Vec::new() };
    assert_eq!(applied.memory_stayed().collect::<Vec<_>>(), expected);
    assert_eq!(applied.memory(), None);
}

#[test]
fn a_watch_ends_when_it_is_asked_to_stop_and_with_the_program() {
    let (notes, shell) = (tempfile::tempdir().unwrap(), Shell::start());
    let plan = plan(&["sh"]);
    let program = HeldProgram::of(shell.pid()).unwrap();
    let options = ApplyOptions::default();
    let mut applied = program.apply(&plan, options, notes.path(), &mut |_| Ok(())).unwrap();
    let asked = Interrupt::default();
    asked.give_up();
    applied.watch(&asked, &mut |_| Ok(())).unwrap();
    drop(shell);
    let late = Interrupt::default();
    let (stop, (_done, watched)) = (late.clone(), mpsc::channel::<()>());
    // A watch that does not see the end is stopped after 20 s.
    std::thread::spawn(move || {
        if watched.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
            stop.give_up();
        }
    });
    applied.watch(&late, &mut |_| Ok(())).unwrap();
    assert!(!late.came(), "the watch did not see the end");
}

/// What a start of `command` under a plan returns, and its events.
fn started(plan: &Plan, command: &[&str]) -> (Result<PlannedRun, ApplyError>, Vec<String>) {
    let command: Vec<OsString> = command.iter().map(Into::into).collect();
    events(|events| {
        let start = PlannedStart::new(plan, &command, &StartOptions::default(), events)?;
        start.run(&AtomicUsize::new(0), events)
    })
}

#[test]
fn a_program_is_started_with_the_number_and_followed_to_its_end() {
    let (folder, plan) = (tempfile::tempdir().unwrap(), with_number(&["sh", "b"], None));
    let told = folder.path().join("told");
    // It ends after the event of the pin. After 2000 naps it gives up.
    let script = format!(
        "i=0; until [ -e {} ] || [ $i -gt 2000 ]; do sleep 0.01; i=$((i + 1)); done; exit {{n}}",
        told.display()
    );
    let command = ["sh".into(), "-c".into(), script.into()];
    let options = StartOptions::default();
    let start = PlannedStart::new(&plan, &command, &options, &mut |_| Ok(())).unwrap();
    let mut take = |event: PlanEvent<'_>| {
        assert!(matches!(event, PlanEvent::Pinned(Pinned { name, .. }) if name == "sh"));
        std::fs::write(&told, "")
    };
    let run = start.run(&AtomicUsize::new(0), &mut take).unwrap();
    assert!(told.exists(), "no pin was told");
    assert_eq!(run.status.code(), Some(3));
    assert_eq!(run.missing.unwrap().names, ["b"]);
}

/// Requires that `script` ends well under the plan. In it `on PID CPU` waits until the process may
/// run on that CPU only. After 2000 naps it gives up.
fn ends_well(plan: &Plan, script: &str) {
    const ON: &str = r#"
        on() {
            i=0
            while [ $i -lt 2000 ]; do
                while read -r key value; do
                    [ "$key $value" = "Cpus_allowed_list: $2" ] && return
                done < /proc/$1/status
                sleep 0.01; i=$((i + 1))
            done
            exit 9
        }
        trap 'kill $a $b $c' EXIT
    "#;
    let (run, seen) = started(plan, &["sh", "-c", &format!("{ON}{script}")]);
    assert_eq!(run.unwrap().status.code(), Some(0), "{seen:?}");
}

/// Two CPUs, if the machine has them.
fn two_cpus() -> Option<[String; 2]> {
    let allowed = this_machine().unwrap().allowed;
    let cpus: Vec<String> = allowed.iter().take(2).map(|cpu| cpu.0.to_string()).collect();
    cpus.try_into().ok()
}

#[test]
fn a_thread_that_ends_moves_no_other_if_the_plan_counts_those_that_ended() {
    let Some([first, second]) = two_cpus() else { return };
    let mut plan = plan(&["tail#0", "tail#1", "tail#2"]);
    plan.counts_ended_threads = true;
    plan.threads[2].cpus = CpuSet::parse_list(&second).unwrap();
    let script = format!(
        "tail -f /dev/null & a=$!
        tail -f /dev/null & b=$!
        on $a {first}
        on $b {first}
        kill $a; wait $a 2>/dev/null; a=
        tail -f /dev/null & c=$!
        on $c {second}
        on $b {first}
        exit 0"
    );
    ends_well(&plan, &script);
}

#[test]
fn a_thread_that_ended_before_the_others_began_has_no_number_in_a_plan_of_living_threads() {
    let Some([first, second]) = two_cpus() else { return };
    // The first one is called `tail` while it is alone. Its pin shows that it was seen.
    let mut plan = plan(&["tail", "tail#0", "tail#1"]);
    plan.threads[2].cpus = CpuSet::parse_list(&second).unwrap();
    let script = format!(
        "tail -f /dev/null & a=$!
        on $a {first}
        kill $a; wait $a 2>/dev/null; a=
        tail -f /dev/null & b=$!
        tail -f /dev/null & c=$!
        on $b {first}
        on $c {second}
        exit 0"
    );
    ends_well(&plan, &script);
}

#[test]
fn a_program_gets_its_signals_after_pinning_has_failed() {
    let (folder, plan) = (tempfile::tempdir().unwrap(), plan(&["sleep"]));
    let got = folder.path().join("got");
    let script = format!("trap 'kill $!; echo > {}; exit' TERM; sleep 20 & wait", got.display());
    let command = ["sh".into(), "-c".into(), script.into()];
    let options = StartOptions::default();
    let start = PlannedStart::new(&plan, &command, &options, &mut |_| Ok(())).unwrap();
    let signal = AtomicUsize::new(0);
    let mut fail = |_: PlanEvent<'_>| {
        signal.store(15, Ordering::Relaxed);
        Err(io::Error::other("nobody listens"))
    };
    let error = start.run(&signal, &mut fail).unwrap_err();
    assert!(matches!(error, ApplyError::Output(_)), "{error}");
    assert!(got.exists(), "it got its signal, and had ended when the error came");
}

#[test]
fn a_command_and_a_plan_have_to_agree_on_a_number() {
    let (none, _) = started(&plan(&["sh"]), &["echo", "-p{n}"]);
    assert!(matches!(&none, Err(error @ ApplyError::NoNumber) if error.is_usage()));
    let (unused, seen) = started(&with_number(&[], None), &["true"]);
    assert!(unused.unwrap().status.success());
    assert_eq!(seen, ["Number { n: 3, outcome: Unused }"]);
    let (typed, seen) = started(&with_number(&[], None), &["true", "-p3"]);
    assert!(typed.is_ok() && seen.is_empty(), "{seen:?}");
}

/// A plan may come from somebody else.
#[test]
fn a_variable_that_says_more_than_the_number_is_set_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    std::fs::write(&code, "exit 9").unwrap();
    let code = code.to_str().unwrap();
    let mut plan = with_number(&[], None);
    plan.threads.clear();
    let start = |plan: &Plan, named: &[&str]| {
        let command = ["bash", "-c", "exit $((OMP_NUM_THREADS))"].map(OsString::from);
        let environment = named.iter().map(|name| (*name).to_owned()).collect();
        let options = StartOptions { force: false, environment };
        let start = PlannedStart::new(plan, &command, &options, &mut |_| Ok(()))?;
        start.run(&AtomicUsize::new(0), &mut |_| Ok(()))
    };
    let ended = |started: Result<PlannedRun, ApplyError>| started.unwrap().status.code();
    plan.number.as_mut().unwrap().environment.insert("OMP_NUM_THREADS".into(), "3".into());
    assert_eq!(ended(start(&plan, &[])), Some(3));
    plan.number.as_mut().unwrap().environment.insert("BASH_ENV".into(), code.into());
    let error = start(&plan, &[]).unwrap_err();
    let told = format!(
        "the plan sets BASH_ENV={code}, which can make a program run other code; if you trust the \
         plan, add --env BASH_ENV"
    );
    assert_eq!((error.to_string(), error.is_usage()), (told, true));
    assert_eq!(ended(start(&plan, &["BASH_ENV"])), Some(9));
    let error = start(&plan, &["BASH_ENV", "OTHER"]).unwrap_err();
    assert!(matches!(&error, ApplyError::NoVariable(name) if name == "OTHER"), "{error}");
}

#[test]
fn what_does_not_exist_is_bad_usage() {
    let nobody = Pid(i32::MAX);
    let error = HeldProgram::of(nobody).unwrap_err();
    assert!(error.is_usage() && error.to_string().starts_with("there is no process 2147483647"));
    let plan = plan(&["sh"]);
    assert!(Preview::of(nobody, &plan, false, &mut |_| Ok(())).unwrap_err().is_usage());
    let (missing, _) = started(&plan, &["/no/such/program"]);
    let error = missing.unwrap_err();
    assert!(error.is_usage());
    let told = "cannot start /no/such/program: there is no such program; give its path";
    assert!(error.to_string().starts_with(told), "{error}");
}

#[test]
fn a_plan_with_memory_starts_only_where_its_nodes_are() {
    let planned = |policy, nodes: &[u32]| {
        let mut plan = plan(&["sh"]);
        plan.memory = Some(PlannedMemory { policy, nodes: nodes.iter().copied().collect() });
        plan
    };
    let command = ["sh", "-c", "exit 3"].map(OsString::from);
    let run = |plan: &Plan| {
        let start = PlannedStart::new(plan, &command, &StartOptions::default(), &mut |_| Ok(()))?;
        start.run(&AtomicUsize::new(0), &mut |_| Ok(())).map(|run| run.status.code())
    };
    let first = *this_machine().unwrap().memory_nodes().first().unwrap();
    assert_eq!(run(&planned(MemoryPolicy::Interleave, &[first])).unwrap(), Some(3));
    let error = run(&planned(MemoryPolicy::Follow, &[first, 4000])).unwrap_err().to_string();
    assert!(error.starts_with("no memory on node 4000: "), "{error}");
}

#[test]
fn the_memory_of_a_running_program_follows_a_plan_and_is_not_interleaved() {
    let folder = tempfile::tempdir().unwrap();
    let apply = |policy| {
        let shell = Shell::start();
        let machine = this_machine().unwrap();
        let mut plan = plan(&["sh"]);
        plan.memory = PlannedMemory::new(policy, &machine, &cpu());
        let program = HeldProgram::of(shell.pid()).unwrap();
        let options = ApplyOptions::default();
        let before = shell.cpus();
        let preview = Preview::of(shell.pid(), &plan, false, &mut |_| Ok(()));
        match program.apply(&plan, options, folder.path(), &mut |_| Ok(())) {
            Ok(applied) => {
                assert_eq!(shell.cpus(), cpu());
                // On one node there is nowhere to move it.
                let node = *machine.nearest_memory(&cpu()).first().unwrap();
                let moves = preview.unwrap().memory;
                assert!(moves.is_empty() || moves == [(shell.pid(), node)], "{moves:?}");
                assert!(moves.is_empty() || machine.memory_nodes().len() > 1, "{moves:?}");
                (applied.memory().cloned(), applied.complete().map_err(|error| error.to_string()))
            }
            Err(error) => {
                assert_eq!(shell.cpus(), before, "nothing is pinned");
                assert_eq!(preview.unwrap_err().to_string(), error.to_string());
                (None, Err(error.to_string()))
            }
        }
    };
    let refused = "the memory of a running program is not interleaved: use pinwise run PLAN -- CMD";
    assert_eq!(apply(MemoryPolicy::Interleave), (None, Err(refused.to_owned())));
    let (held, complete) = apply(MemoryPolicy::Follow);
    // Not every kernel knows nodes.
    let visible = memory::pages(Pid(std::process::id() as i32)).is_ok();
    assert_eq!((held.is_some(), complete.is_ok()), (visible, visible), "{complete:?}");
    let nodes = this_machine().unwrap().nearest_memory(&cpu());
    // Of a library that other programs map, a part may stay elsewhere.
    assert!(held.is_none_or(|held| held.nodes.outside(&nodes) < 1.0));
}
