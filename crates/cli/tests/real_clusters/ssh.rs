//! Four hosts that one sshd on loopback serves, or one sshd each, in its own network. Each has its
//! own port and home.
//!
//! Keys, known hosts and configuration are made for the test. ssh looks for the configuration in
//! the home of the password file, whatever `HOME` says. So the first `ssh` in `PATH` is a script
//! that names this configuration.

use crate::cluster::{Cluster, NODES};
use crate::daemons::{Daemons, ports};
use crate::support::tool;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a host does when somebody logs in. A test that wants another host writes another one to
/// the file `login` in its home.
const AS_ASKED: &str = "exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n";

/// Hosts `h1` to `h4`. The key of `h5` is not known: it is `h1` by another name. `None` if this
/// machine lacks a program; the test then says so.
pub(crate) fn hosts() -> Option<Cluster> {
    connected(None)
}

/// The same, each with a network of its own. None of them is the network of this machine.
pub(crate) fn hosts_apart() -> Option<(Cluster, Networks)> {
    tool("nsenter")?;
    let networks = Networks { unshare: tool("unshare")?, ip: tool("ip")? };
    let may = Command::new(&networks.unshare).args(["--net", "true"]).status().unwrap();
    if !may.success() {
        pinwise_synthetic::not_judged("this user may not make networks");
        return None;
    }
    Some((connected(Some(&networks))?, networks))
}

/// What makes networks: a hub, from which ssh calls, and a cable to each host.
pub(crate) struct Networks {
    unshare: PathBuf,
    ip: PathBuf,
}

impl Networks {
    /// Starts a daemon in a new network.
    fn start(&self, daemons: &mut Daemons, name: &str, program: &Path, words: &[&str]) {
        let all = [&["--net", "--", program.to_str().unwrap()], words].concat();
        daemons.start(name, &self.unshare, &all);
        // Until then it is in that of this machine.
        let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let pid = daemons.pid(name).to_string();
        let apart = || of(&pid).is_some_and(|network| Some(network) != of("self"));
        daemons.reach("a network of its own", apart);
    }

    /// Runs `ip` in the network of a daemon.
    pub(crate) fn ip(&self, daemons: &Daemons, name: &str, words: &str) {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &daemons.pid(name).to_string(), "--"]);
        let status = command.arg(&self.ip).args(words.split(' ')).status().unwrap();
        assert!(status.success(), "{name}: ip {words}");
    }

    /// Connects a host with the hub.
    fn connect(&self, daemons: &Daemons, number: usize) {
        let (host, pid) = (format!("sshd{number}"), daemons.pid(&format!("sshd{number}")));
        let hub = |words: &str| self.ip(daemons, "hub", words);
        hub(&format!("link add h{number} type veth peer name eth0 netns {pid}"));
        hub(&format!("address add 10.0.{number}.1/24 dev h{number}"));
        hub(&format!("link set h{number} up"));
        self.ip(daemons, &host, &format!("address add 10.0.{number}.2/24 dev eth0"));
        self.ip(daemons, &host, "link set eth0 up");
    }
}

fn connected(networks: Option<&Networks>) -> Option<Cluster> {
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
    let listens = if networks.is_some() { "0.0.0.0" } else { "127.0.0.1" };
    let mut server = format!(
        "ListenAddress {listens}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n\
         PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
         PermitRootLogin prohibit-password\nMaxStartups 100\n"
    );
    let mut user = String::new();
    let mut known = String::new();
    let host = |name: usize, port: u16| {
        let address = match networks {
            Some(_) => format!("10.0.{name}.2"),
            None => "127.0.0.1".to_owned(),
        };
        format!("Host h{name}\nHostName {address}\nPort {port}\nHostKeyAlias h{name}\n")
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
    let words = format!("{folder}/sshd_config");
    let words = ["-D", "-e", "-f", &words];
    let mut enter = String::new();
    if let Some(networks) = networks {
        networks.start(&mut daemons, "hub", &tool("sleep")?, &["infinity"]);
        enter = format!("nsenter --net --target {} -- ", daemons.pid("hub"));
        for number in 1..=NODES {
            networks.start(&mut daemons, &format!("sshd{number}"), sshd, &words);
            networks.connect(&daemons, number);
        }
    } else {
        daemons.start("sshd", sshd, &words);
    }
    let first = daemons.path("bin/ssh");
    let script = format!("#!/bin/sh\nexec {enter}{} -F {folder}/config \"$@\"\n", ssh.display());
    fs::write(&first, script).unwrap();
    fs::set_permissions(&first, fs::Permissions::from_mode(0o755)).unwrap();

    daemons.reach("sshd answers", || match networks {
        Some(_) => (1..=NODES).all(|number| {
            let mut hello = Command::new(&first);
            hello.args([&format!("h{number}"), "true"]).stderr(Stdio::null());
            hello.status().unwrap().success()
        }),
        None => ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok()),
    });
    daemons.all_are_up();
    let path = format!("{folder}/bin:{}", std::env::var("PATH").unwrap());
    let on = |nodes: usize| {
        let hosts: Vec<String> = (1..=nodes).map(|node| format!("h{node}")).collect();
        vec!["--on".into(), format!("ssh:{}", hosts.join(","))]
    };
    Some(Cluster { daemons, environment: vec![("PATH", path)], on, has_jobs: false })
}
