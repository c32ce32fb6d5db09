//! A study on two hosts prints what it prints on one machine. A script in place of ssh runs the
//! remote command, so both hosts are this machine. This file is the study, too: it is its own
//! program, which the hosts get.

use pinwise_lab::on_nodes::{each, run};
use pinwise_topology::Random;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode, Output};

/// Walks of which each begins where all the others together have led.
fn study(words: Vec<String>) -> ExitCode {
    if words != ["walk"] {
        return test();
    }
    let mut begin = 0.1;
    for items in [7_u64, 1, 0, 40] {
        let numbers: Vec<u64> = (0..items).collect();
        let walked = each(&numbers, |number| {
            let mut random = Random::new(*number);
            (0..100).fold(begin, |at: f64, _| at + random.unit() / 3.0)
        });
        println!("{walked:?}");
        begin = walked.iter().sum::<f64>() / 7.0;
    }
    // It is no node that prints.
    println!("{}", std::process::id());
    ExitCode::SUCCESS
}

fn test() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let ssh = folder.path().join("ssh");
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\ncase \"$last\" in *worker*) echo >> {} ;; esac\n\
         exec sh -c \"$last\"\n",
        log.display()
    );
    std::fs::write(&ssh, script).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let says = |words: &[&str]| -> (String, u32) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(words).env("PATH", &path).env("HOME", folder.path());
        let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let Output { status, stdout, .. } = child.wait_with_output().unwrap();
        assert!(status.success(), "{words:?}: {status}");
        (String::from_utf8(stdout).unwrap(), pid)
    };
    let (alone, pid) = says(&["walk"]);
    let (on_hosts, other) = says(&["walk", "--on", "ssh:h1,h2"]);
    // The process identifier is the last line alone: its digits may be within a number, too.
    let without = |printed: &str, pid: u32| -> Option<String> {
        printed.strip_suffix(&format!("\n{pid}\n")).map(str::to_owned)
    };
    let printed = without(&alone, pid);
    assert!(printed.is_some(), "{alone}");
    assert_eq!(printed, without(&on_hosts, other));
    assert_eq!(std::fs::read_to_string(log).unwrap().len(), 2, "two workers");
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    run(study)
}
