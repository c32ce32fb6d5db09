//! `pinwise place` on a cluster finds, stores and says what one machine does, whatever happens
//! to the nodes meanwhile.
//!
//! It runs on the model, whose results depend on their number alone. So each row of the campaign is
//! compared. No fault may lose a record, double one, or leave a process or a job.

use crate::cluster::Cluster;
use crate::daemons::{command_of, send};
use crate::slurm::slurm;
use crate::ssh::{hosts, hosts_apart};
use crate::support::{PATIENCE, PINWISE, Program, tool, wait_until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// What is asked: about three seconds of work for one CPU.
const MODEL: [&str; 10] = [
    "place",
    "--machine",
    "ultrasparc-t2",
    "--workload",
    "intadd:2",
    "--strategy",
    "random",
    "--budget",
    "600",
    "--json",
];

/// The rows of a campaign, as `pinwise campaign export` prints them. The last two columns are about
/// the campaign: they are left out.
fn rows(store: &Path) -> Vec<String> {
    let words = ["campaign", "export", "1", "--store"];
    let output = Command::new(PINWISE).args(words).arg(store).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.rsplitn(3, ',').nth(2)).map(str::to_owned).collect()
}

/// The rows and the answer of one machine.
static ALONE: LazyLock<(Vec<String>, String)> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let output = Command::new(PINWISE).args(MODEL).arg("--store").arg(&store).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (rows(&store), answer(&output.stdout))
});

/// The best assignment that a document names, with its performance.
fn answer(document: &[u8]) -> String {
    let document: serde_json::Value = serde_json::from_slice(document).unwrap();
    format!("{} {}", document["best"], document["bound"])
}

/// A campaign on a cluster, while it runs.
struct Campaign<'a> {
    cluster: &'a Cluster,
    folder: TempDir,
    program: Program,
}

impl<'a> Campaign<'a> {
    /// Begins on `nodes` nodes.
    fn begin(cluster: &'a Cluster, nodes: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let on = (cluster.on)(nodes);
        let words = MODEL.into_iter().chain(on.iter().map(String::as_str));
        let program = Self::start(cluster, &folder, words);
        Self { cluster, folder, program }
    }

    fn start<'w>(
        cluster: &Cluster,
        folder: &TempDir,
        words: impl IntoIterator<Item = &'w str>,
    ) -> Program {
        let mut command = cluster.command(PINWISE);
        command.args(words).arg("--store").arg(folder.path().join("pinwise.db"));
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        command.env("XDG_DATA_HOME", folder.path()).stdout(file("out")).stderr(file("err"));
        Program::start(&mut command)
    }

    /// Continues after its end.
    fn resume(&mut self) {
        let words = ["campaign", "resume", "1", "--json"];
        self.program = Self::start(self.cluster, &self.folder, words);
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("pinwise.db")
    }

    /// How many records are stored, as an independent reader sees it.
    fn recorded(&self) -> usize {
        let Ok(reader) = rusqlite::Connection::open(self.store()) else { return 0 };
        reader.busy_timeout(PATIENCE).unwrap();
        let count = reader.query_row("SELECT count(*) FROM record", [], |row| row.get(0));
        count.unwrap_or(0_i64) as usize
    }

    /// Waits until it has stored some more.
    fn goes_on(&mut self) {
        let before = self.recorded();
        wait_until(PATIENCE, "records", || {
            let ended = self.program.0.try_wait().unwrap();
            assert!(ended.is_none(), "it ended too early: {ended:?} {}", self.said());
            self.recorded() > before
        });
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("err")).unwrap()
    }

    /// The processes that measure, in the order of their ids.
    fn workers(&self) -> Vec<u32> {
        let is_worker = |pid: &u32| {
            let command = command_of(*pid);
            command.contains("pinwise worker") && !command.starts_with("srun")
        };
        let mut all = self.cluster.daemons.in_use();
        all.retain(is_worker);
        all.into_iter().collect()
    }

    /// The connections: the children of the coordinator.
    fn connections(&self) -> BTreeSet<u32> {
        let parent = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            line.and_then(|number| number.trim().parse::<u32>().ok())
        };
        let mut all = self.cluster.daemons.in_use();
        all.retain(|pid| parent(*pid) == Some(self.program.pid()));
        all
    }

    /// It ends well, having stored and said what one machine stores and says.
    fn is_as_alone(&mut self) {
        let status = self.program.ended(PATIENCE);
        assert!(status.success(), "{status}: {}", self.said());
        self.cluster.is_left();
        let (rows_alone, answer_alone) = &*ALONE;
        let rows = rows(&self.store());
        let differs = rows.iter().zip(rows_alone).find(|(one, other)| one != other);
        assert_eq!((rows.len(), differs), (rows_alone.len(), None));
        let document = fs::read(self.folder.path().join("out")).unwrap();
        assert_eq!(&answer(&document), answer_alone);
    }

    /// It ends with an error that says this, and keeps the first rows of one machine.
    fn is_cut(&mut self, error: &str) {
        let status = self.program.ended(PATIENCE);
        assert!(
            status.code() == Some(1) && self.said().contains(error),
            "{status} {}",
            self.said()
        );
        self.cluster.is_left();
        let rows = rows(&self.store());
        assert_eq!(rows[..], ALONE.0[..rows.len()]);
    }
}

#[test]
fn slurm_nodes_measure_what_one_machine_measures() {
    let Some(cluster) = slurm() else { return };
    for nodes in [1, 4] {
        Campaign::begin(&cluster, nodes).is_as_alone();
    }
}

#[test]
fn a_node_that_slurm_does_not_have_is_named_and_not_awaited() {
    let Some(cluster) = slurm() else { return };
    let mut campaign = Campaign::begin(&cluster, 5);
    campaign.is_as_alone();
    assert!(campaign.said().contains("fewer --nodes"), "{}", campaign.said());
}

#[test]
fn hosts_measure_what_one_machine_measures() {
    let Some(cluster) = hosts() else { return };
    Campaign::begin(&cluster, 4).is_as_alone();
}

/// What a fault does, and what is said about it.
type Fault<'a> = (&'a dyn Fn(&Campaign), Option<&'a str>);

/// Begins a campaign for each fault, and lets the fault happen while it measures.
fn survives(cluster: &Cluster, faults: &[Fault]) {
    for (fault, said) in faults {
        let mut campaign = Campaign::begin(cluster, 4);
        campaign.goes_on();
        fault(&campaign);
        campaign.is_as_alone();
        let told =
            campaign.said() + &fs::read_to_string(campaign.folder.path().join("out")).unwrap();
        if let Some(said) = said {
            assert!(told.contains(said), "{said}: {told}");
        }
    }
}

/// A worker killed, a node drained, a node gone, a job cancelled.
#[test]
fn what_ends_on_a_slurm_node_is_measured_on_another() {
    let Some(cluster) = slurm() else { return };
    let set = |state: &str| {
        let state = format!("State={state}");
        cluster.says(&["scontrol", "update", "NodeName=n2", &state, "Reason=test"]);
    };
    let killed = |campaign: &Campaign| send(Signal::KILL, campaign.workers()[0]);
    let drained = |_: &Campaign| set("DRAIN");
    let gone = |_: &Campaign| set("DOWN");
    let cancelled = |_: &Campaign| {
        let jobs = cluster.jobs();
        cluster.says(&["scancel", jobs.split(' ').next().unwrap()]);
    };
    survives(&cluster, &[(&killed, Some("connection was lost")), (&drained, None)]);
    set("RESUME");
    // Its slurmd registers again, so Slurm uses it again.
    survives(&cluster, &[(&gone, Some("connection was lost"))]);
    survives(&cluster, &[(&cancelled, Some("was lost"))]);
}

/// Stops a process for a while, `times` times.
fn pauses(pid: u32, times: usize, pause: Duration) {
    for _ in 0..times {
        send(Signal::STOP, pid);
        thread::sleep(pause);
        send(Signal::CONT, pid);
        thread::sleep(pause / 20);
    }
}

/// Also a worker that gets a twentieth of the time.
#[test]
fn a_host_that_dies_pauses_or_is_slow_costs_no_record() {
    let Some(cluster) = hosts() else { return };
    let killed = |campaign: &Campaign| send(Signal::KILL, campaign.workers()[1]);
    let cut = |campaign: &Campaign| {
        send(Signal::KILL, *campaign.connections().first().unwrap());
    };
    let paused = |campaign: &Campaign| {
        pauses(*campaign.connections().first().unwrap(), 1, Duration::from_secs(2));
    };
    let slow = |campaign: &Campaign| pauses(campaign.workers()[2], 20, Duration::from_millis(100));
    survives(
        &cluster,
        &[
            (&killed, Some("connection was lost")),
            (&cut, Some("connection was lost")),
            (&paused, None),
            (&slow, None),
        ],
    );
}

/// Two workers are stopped when their coordinator is killed, so they still run when it is resumed.
#[test]
fn a_coordinator_is_resumed_while_its_earlier_workers_still_run() {
    let Some(cluster) = hosts() else { return };
    let mut campaign = Campaign::begin(&cluster, 4);
    campaign.goes_on();
    let earlier = &campaign.workers()[1..3];
    earlier.iter().for_each(|worker| send(Signal::STOP, *worker));
    send(Signal::KILL, campaign.program.pid());
    campaign.program.ended(PATIENCE);
    campaign.resume();
    let status = campaign.program.ended(PATIENCE);
    assert!(status.success(), "{status}: {}", campaign.said());
    let workers = campaign.workers();
    assert!(earlier.iter().all(|worker| workers.contains(worker)), "{earlier:?} {workers:?}");
    earlier.iter().for_each(|worker| send(Signal::CONT, *worker));
    campaign.is_as_alone();
}

/// The cable of a host is unplugged. What was sent meanwhile is sent again, later and later. The
/// network of the test waits less between two tries than that of a far host, if the kernel can.
#[test]
fn a_network_that_pauses_for_half_a_minute_costs_no_node_and_no_record() {
    let Some((cluster, networks)) = hosts_apart() else { return };
    let daemons = &cluster.daemons;
    for network in ["hub", "sshd1"] {
        // More often, and so more times before it gives up.
        let often = "cd $0; test ! -e tcp_rto_max_ms || \
                     { echo 1000 > tcp_rto_max_ms && echo 200 > tcp_retries2; }";
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &daemons.pid(network).to_string(), "--", "sh", "-c"]);
        command.args([often, "/proc/sys/net/ipv4"]);
        assert!(command.status().unwrap().success());
    }
    let mut campaign = Campaign::begin(&cluster, 4);
    campaign.goes_on();
    networks.ip(daemons, "sshd1", "link set eth0 down");
    thread::sleep(Duration::from_secs(30));
    assert!(campaign.program.0.try_wait().unwrap().is_none(), "{}", campaign.said());
    networks.ip(daemons, "sshd1", "link set eth0 up");
    campaign.is_as_alone();
    let told = fs::read_to_string(campaign.folder.path().join("out")).unwrap() + &campaign.said();
    assert!(!told.contains("node_lost") && !told.contains("was lost"), "{told}");
}

#[test]
fn a_campaign_without_nodes_is_kept_and_resumed() {
    let Some(cluster) = slurm() else { return };
    let mut campaign = Campaign::begin(&cluster, 2);
    campaign.goes_on();
    cluster.says(&["scancel", "--state=RUNNING", "--name", &job_name(&cluster)]);
    campaign.is_cut("no node is left");
    campaign.resume();
    campaign.goes_on();
    // Ctrl-C ends workers and jobs.
    send(Signal::INT, campaign.program.pid());
    campaign.program.ended(PATIENCE);
    cluster.is_left();
    campaign.resume();
    campaign.goes_on();
    // Nothing tells the workers but the end of their connections.
    send(Signal::KILL, campaign.program.pid());
    campaign.program.ended(PATIENCE);
    cluster.is_left();
    campaign.resume();
    campaign.is_as_alone();
}

fn job_name(cluster: &Cluster) -> String {
    cluster.says(&["squeue", "-h", "-o", "%j"]).lines().next().unwrap().to_owned()
}

/// A host whose worker is of another version, and one that Debian's ssh does not know.
#[test]
fn hosts_that_cannot_measure_are_named_with_the_reason() {
    let Some(cluster) = hosts() else { return };
    let hello = r#"{"kind":"hello","protocol":1,"version":"0.0.0","host":"h2"}"#;
    let script = format!(
        "case \"$SSH_ORIGINAL_COMMAND\" in\n*worker*)\nprintf '\\0\\0\\0\\{:o}%s\\n' '{hello}'\n\
         exec cat >/dev/null ;;\nesac\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
        hello.len() + 1
    );
    fs::write(cluster.daemons.path("h2/login"), script).unwrap();
    let mut campaign = Campaign::begin(&cluster, 3);
    campaign.is_as_alone();
    let said = campaign.said();
    assert!(said.contains("node h2 ") && said.contains("its pinwise is 0.0.0"), "{said}");
    let refused = cluster.command(PINWISE).args(MODEL).args(["--on", "ssh:h5"]).output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("h5") && error.contains("host key"), "{error}");
    cluster.is_left();
}

#[test]
fn a_partition_that_slurm_does_not_have_is_named() {
    let Some(cluster) = slurm() else { return };
    let on = ["--on", "slurm:none", "--nodes", "2"];
    let output = cluster.command(PINWISE).args(MODEL).args(on).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("no partition none"), "{error}");
    cluster.is_left();
}

/// The store stands on a disk that is full after a while.
#[test]
fn a_full_disk_at_the_coordinator_keeps_what_was_stored() {
    let (Some(unshare), Some(cluster)) = (tool("unshare"), hosts()) else { return };
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"mount -t tmpfs -o size=120k none "$0" || exit 77
        "$@" --store "$0/pinwise.db"; result=$?
        cp "$0"/pinwise.db* "$0/.."; exit $result"#;
    let mut command = cluster.command(&unshare);
    command.args(["--mount", "sh", "-c", script]).arg(&disk).arg(PINWISE).args(MODEL);
    let output = command.args((cluster.on)(4)).output().unwrap();
    if output.status.code() == Some(77) {
        pinwise_synthetic::not_judged("this user may not mount a disk");
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("disk is full"), "{error}");
    cluster.is_left();
    let rows = rows(&folder.path().join("pinwise.db"));
    assert!(rows.len() > 1 && rows[..] == ALONE.0[..rows.len()], "{rows:?}");
}
