//! Real programs on this machine, end to end. See [`programs`] for how the test binary plays them.

mod cosched;
mod guardian;
mod live;
mod monitor;
mod number_setter;
mod pairs;
mod prober;
mod programs;
mod rerun;

use pinwise_linux::{GUARDIAN_ARGUMENT, Scope, Target, guardian_main};
use programs::{
    LIFE, PROGRAM, Program, breeder, child, flood, parent, respawner, spin, spinners, wanderer,
    workers,
};

#[test]
fn __guardian() {
    if std::env::args().nth(1).as_deref() == Some(GUARDIAN_ARGUMENT) {
        guardian_main();
    }
}

#[test]
fn __program() {
    if std::env::args().nth(1).as_deref() != Some("__program") {
        return;
    }
    let Ok(program) = std::env::var(PROGRAM) else { return };
    match program.split(' ').collect::<Vec<_>>()[..] {
        // A second number is taken and has no effect.
        ["spin", count] | ["spin", count, _] => spinners(count.parse().unwrap()),
        ["late", count] => prober::late(count.parse().unwrap()),
        ["brief", count, ..] => prober::brief(count.parse().unwrap()),
        ["pool", path] => prober::pool(path),
        ["warming", path] => prober::warming(path),
        ["fill", path, _] => prober::fill(path),
        ["respawn", folder] => respawner(folder.as_ref()),
        ["work"] => workers(0),
        // One thread more in every run but the first.
        ["vary", mark] => workers(usize::from(
            std::fs::write(mark, "").is_ok()
                && std::fs::remove_dir(format!("{mark}.first")).is_err(),
        )),
        ["wander"] => wanderer(),
        ["flood"] => flood(),
        ["contend", kind] | ["contend", kind, _] => {
            let counter = pinwise_synthetic::waiting::start(kind).expect("a kind of contention");
            std::thread::sleep(programs::LIFE);
            drop(counter);
        }
        ["monitor"] => monitor::ask_for_the_best(),
        ["replace", go] => monitor::replace(go),
        ["breed"] => breeder(),
        ["lcores"] => {
            let steady = spin("steady", LIFE);
            breeder();
            steady.join().unwrap();
        }
        // Its child outlives it, unless whoever launched it ends both.
        ["parent"] => parent(Program::start("spin 1")),
        ["family"] => parent(Program::start(&format!("child {}", std::process::id()))),
        ["child", parent] => child(parent.parse().unwrap()),
        ["fail"] | ["fail", _] => {
            eprintln!("cannot open the thing");
            std::process::exit(3);
        }
        ["tune", pid] => {
            guardian::tune(Target::attach(Scope::Processes(vec![pid.parse().unwrap()])).unwrap())
        }
        ["keep", pid, folder] => {
            pinwise_linux::keep_ledgers(folder.as_ref());
            guardian::tune(Target::attach(Scope::Processes(vec![pid.parse().unwrap()])).unwrap())
        }
        ["pin", pid] => {
            guardian::pin(Target::attach(Scope::Processes(vec![pid.parse().unwrap()])).unwrap())
        }
        ["panic", pid] => {
            guardian::panic(Target::attach(Scope::Processes(vec![pid.parse().unwrap()])).unwrap())
        }
        ["end", pid] => guardian::end_with_stopped_guardian(pid.parse().unwrap()),
        ["launch"] => guardian::tune(Target::launch(&live::launch("parent")).unwrap().0),
        ["keep", folder] => {
            pinwise_linux::keep_ledgers(folder.as_ref());
            guardian::tune(Target::launch(&live::launch("parent")).unwrap().0)
        }
        ["forgetful", "place", pid] => live::forgetful(pid.parse().unwrap()),
        ["forgetful", pid] => number_setter::forgetful(pid.parse().unwrap()),
        ["forgetful", one, other] => cosched::forgetful([one, other]),
        ["limit", pid, directory] => number_setter::limit(pid.parse().unwrap(), directory),
        ["attach", pid] => live::refused(pid.parse().unwrap()),
        _ => panic!("no such program: {program}"),
    }
}
