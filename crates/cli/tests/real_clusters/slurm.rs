//! Slurm on one host without systemd: munged, slurmctld and a slurmd for each of four nodes.
//!
//! All of it has its files in one folder. Nothing of the system's configuration is read or changed.

use crate::cluster::{Cluster, NODES};
use crate::daemons::{Daemons, ports};
use crate::support::tool;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::process::{Command, Stdio};

/// A cluster of four idle nodes, `n1` to `n4`, in the partition `all`. The partition `two` has the
/// first two of them. `None` if this machine lacks a program; the test then says so.
pub(crate) fn slurm() -> Option<Cluster> {
    let [munged, slurmctld, slurmd] = ["munged", "slurmctld", "slurmd"].map(daemon);
    let (munged, slurmctld, slurmd) = (munged?, slurmctld?, slurmd?);
    tool("srun")?;
    tool("setpriv")?;
    let mut daemons = Daemons::new();
    let folder = daemons.folder().to_owned();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let options = [("key-file", "key"), ("socket", "munge.socket"), ("pid-file", "munge.pid")];
    let files = options.into_iter().chain([("log-file", "munge"), ("seed-file", "munge.seed")]);
    let files: Vec<String> = files.map(|(name, file)| format!("--{name}={}", path(file))).collect();
    let mut words = vec!["--foreground", "--force", "--num-threads=1"];
    words.extend(files.iter().map(String::as_str));
    let mut key = File::options().write(true).create_new(true).mode(0o600).open(path("key"));
    key.as_mut().unwrap().write_all(&fs::read("/proc/sys/kernel/random/uuid").unwrap()).unwrap();
    daemons.start("munged", &munged, &words);
    daemons.reach("munged answers", || fs::exists(path("munge.socket")).unwrap());

    let conf = path("slurm.conf");
    fs::write(&conf, configuration(&folder.to_string_lossy())).unwrap();
    DirBuilder::new().mode(0o700).create(path("state")).unwrap();
    daemons.start("slurmctld", &slurmctld, &["-D", "-c", "-f", &conf]);
    for node in 1..=NODES {
        let node = format!("n{node}");
        fs::create_dir(path(&node)).unwrap();
        daemons.start(&node, &slurmd, &["-D", "-c", "-f", &conf, "-N", &node]);
    }
    daemons.reach("every node is idle", || {
        let mut sinfo = Command::new("sinfo");
        sinfo.args(["--noheader", "--partition=all", "--states=idle", "--format=%D"]);
        let output = sinfo.env("SLURM_CONF", &conf).stderr(Stdio::null()).output().unwrap();
        output.stdout.trim_ascii() == NODES.to_string().as_bytes()
    });
    daemons.all_are_up();
    let on =
        |nodes: usize| vec!["--on".into(), "slurm".into(), "--nodes".into(), nodes.to_string()];
    Some(Cluster { daemons, environment: vec![("SLURM_CONF", conf)], on, has_jobs: true })
}

/// Daemons stand where a user's `PATH` may not look.
fn daemon(name: &str) -> Option<std::path::PathBuf> {
    let outside = std::path::Path::new("/usr/sbin").join(name);
    if outside.is_file() { Some(outside) } else { tool(name) }
}

fn configuration(folder: &str) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim().split('.').next().unwrap().to_owned();
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    let user = user.trim();
    let [controller] = ports();
    let nodes: [u16; NODES] = ports();
    let mut text = format!(
        "ClusterName=pinwise-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PlugStackConfig=/dev/null
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldLogFile={folder}/slurmctld.own
SlurmdLogFile={folder}/%n.own
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
"
    );
    for (number, port) in (1..).zip(nodes) {
        text += &format!(
            "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 \
             RealMemory=100\n"
        );
    }
    text + "PartitionName=all Nodes=ALL Default=YES State=UP\nPartitionName=two Nodes=n[1-2]\n"
}
