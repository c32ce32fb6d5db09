//! Four hosts that one sshd on loopback serves. Each has its own port and home.
//!
//! Keys, known hosts and configuration are made for the test. ssh looks for the configuration in
//! the home of the password file, whatever `HOME` says. So the first `ssh` in `PATH` is a script
//! that names this configuration.

use crate::cluster::{Cluster, NODES};
use crate::daemons::{Daemons, ports};
use crate::support::tool;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a host does when somebody logs in. A test that wants another host writes another one to
/// the file `login` in its home.
const AS_ASKED: &str = "exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n";

/// Hosts `h1` to `h4`. The key of `h5` is not known: it is `h1` by another name. `None` if this
/// machine lacks a program; the test then says so.
pub(crate) fn hosts() -> Option<Cluster> {
    let (ssh, keygen) = (tool("ssh")?, tool("ssh-keygen")?);
    let sshd = Path::new("/usr/sbin/sshd");
    if !sshd.is_file() {
        pinwise_synthetic::lacking("sshd");
        return None;
    }
    tool("setpriv")?;
    let mut daemons = Daemons::new();
    let folder = daemons.folder().to_str().unwrap().to_owned();
    for key in ["host", "user"] {
        let file = daemons.path(key);
        let mut command = Command::new(&keygen);
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file);
        assert!(command.stdin(Stdio::null()).status().unwrap().success());
    }
    // A server of root refuses to start without it. The package makes it when the system starts.
    let _ = fs::DirBuilder::new().mode(0o755).create("/run/sshd");

    let ports: [u16; NODES] = ports();
    let key = fs::read_to_string(daemons.path("host.pub")).unwrap();
    let mut server = format!(
        "ListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n\
         PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
         PermitRootLogin prohibit-password\nMaxStartups 100\n"
    );
    let mut user = String::new();
    let mut known = String::new();
    let host = |name: usize, port: u16| {
        format!("Host h{name}\nHostName 127.0.0.1\nPort {port}\nHostKeyAlias h{name}\n")
    };
    for port in ports {
        server += &format!("Port {port}\n");
    }
    for (number, port) in (1..).zip(ports) {
        let home = format!("{folder}/h{number}");
        fs::create_dir(&home).unwrap();
        fs::write(format!("{home}/login"), AS_ASKED).unwrap();
        server += &format!("Match LocalPort {port}\nSetEnv HOME={home}\n");
        server += &format!("ForceCommand exec sh {home}/login\n");
        user += &host(number, port);
        known += &format!("h{number} {key}");
    }
    user += &host(5, ports[0]);
    user += &format!(
        "Host *\nIdentityFile {folder}/user\nIdentitiesOnly yes\n\
         UserKnownHostsFile {folder}/known\nGlobalKnownHostsFile /dev/null\n"
    );
    fs::write(daemons.path("sshd_config"), server).unwrap();
    fs::write(daemons.path("config"), user).unwrap();
    fs::write(daemons.path("known"), known).unwrap();
    fs::create_dir(daemons.path("bin")).unwrap();
    let first = daemons.path("bin/ssh");
    let script = format!("#!/bin/sh\nexec {} -F {folder}/config \"$@\"\n", ssh.display());
    fs::write(&first, script).unwrap();
    fs::set_permissions(&first, fs::Permissions::from_mode(0o755)).unwrap();

    daemons.start("sshd", sshd, &["-D", "-e", "-f", &format!("{folder}/sshd_config")]);
    daemons.reach("sshd answers", || {
        ports.iter().all(|port| std::net::TcpStream::connect(("127.0.0.1", *port)).is_ok())
    });
    daemons.all_are_up();
    let path = format!("{folder}/bin:{}", std::env::var("PATH").unwrap());
    let on = |nodes: usize| {
        let hosts: Vec<String> = (1..=nodes).map(|node| format!("h{node}")).collect();
        vec!["--on".into(), format!("ssh:{}", hosts.join(","))]
    };
    Some(Cluster { daemons, environment: vec![("PATH", path)], on, has_jobs: false })
}
