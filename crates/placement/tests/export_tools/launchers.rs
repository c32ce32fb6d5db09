//! Launchers of parallel jobs: one process per instance.

use super::*;
use std::net::TcpListener;

/// What each of three instances says about itself, sorted: its number from the environment, and
/// where it runs.
fn report(number: &str) -> String {
    format!("sh -c 'echo ${number} $({})'", WHERE.replace('\'', "\""))
}

fn sorted(printed: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn open_mpi_binds_ranks_as_the_rankfile_says() {
    let Some((cpus, mut plan)) = plan_of_instances(&["a", "b", "c"]) else { return };
    if tool("mpirun").is_none() || !shell("mpirun --version").contains("Open MPI) 4") {
        left_out::<()>("mpirun of Open MPI 4");
        return;
    }
    plan.threads[1].cpus = CpuSet::parse_list(&cpus.join(",")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rankfile");
    let text = export(&plan, "rankfile");
    fs::write(&file, &text).unwrap();
    // The command is the one that the file names.
    let command = text
        .lines()
        .next()
        .unwrap()
        .trim_start_matches("# ")
        .replace("FILE", &file.display().to_string());
    let command = command.replace("PROGRAM", &report("OMPI_COMM_WORLD_RANK"));
    let printed = shell(&format!(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 {command}"
    ));
    let expected = plan
        .threads
        .iter()
        .enumerate()
        .map(|(rank, thread)| format!("{rank} {}", kernel(&thread.cpus)));
    assert_eq!(sorted(&printed), expected.collect::<Vec<_>>());
}

/// As the kernel writes a set of CPUs: a range of two with a dash.
fn kernel(cpus: &CpuSet) -> String {
    let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.0).collect();
    match numbers[..] {
        [a, b] if b == a + 1 => format!("{a}-{b}"),
        _ => cpus.to_string(),
    }
}

/// A cluster of one node: the authentication service, the controller and the node's daemon, on free
/// ports of the loopback.
struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Ends>,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [controller, node] = ports.map(|port| port.local_addr().unwrap().port());
        let user = shell("id -un").trim().to_owned();
        let host = shell("hostname -s").trim().to_owned();
        let cpus = shell("nproc --all").trim().to_owned();
        fs::write(path("munge.key"), std::process::id().to_string().repeat(32)).unwrap();
        shell(&format!(
            "chmod 600 {}; mkdir {} {}",
            path("munge.key"),
            path("state"),
            path("spool")
        ));
        let settings = [
            "ClusterName=pinwise".to_owned(),
            format!("SlurmctldHost={host}(127.0.0.1)"),
            format!("SlurmctldPort={controller}"),
            format!("SlurmUser={user}"),
            format!("SlurmdUser={user}"),
            "AuthType=auth/munge".into(),
            format!("AuthInfo=socket={}", path("munge")),
            "SlurmdParameters=config_overrides".into(),
            "ProctrackType=proctrack/linuxproc".into(),
            "TaskPlugin=task/affinity".into(),
            "SelectType=select/cons_tres".into(),
            "SelectTypeParameters=CR_Core".into(),
            "SchedulerType=sched/builtin".into(),
            "MpiDefault=none".into(),
            "ReturnToService=2".into(),
            "JobAcctGatherType=jobacct_gather/none".into(),
            "AccountingStorageType=accounting_storage/none".into(),
            format!("StateSaveLocation={}", path("state")),
            format!("SlurmdSpoolDir={}", path("spool")),
            format!("SlurmdPidFile={}", path("slurmd.pid")),
            format!("SlurmctldPidFile={}", path("slurmctld.pid")),
            format!(
                "NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node} CPUs={cpus} \
                 RealMemory=100"
            ),
            "PartitionName=p Nodes=n1 Default=YES State=UP".into(),
        ];
        fs::write(path("slurm.conf"), settings.join("\n") + "\n").unwrap();
        let munge = [
            "key-file=munge.key",
            "socket=munge",
            "pid-file=munge.pid",
            "log-file=munge.log",
            "seed-file=munge.seed",
        ]
        .map(|option| option.replace('=', &format!("={}/", folder.path().display())));
        let mut cluster = Self { folder, daemons: Vec::new() };
        cluster.daemon(&format!("munged --force --foreground --{}", munge.join(" --")));
        for _ in 0..100 {
            if cluster.folder.path().join("munge").exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster.daemon(&format!("slurmctld -D -c -f {}", cluster.settings()));
        cluster.daemon(&format!("slurmd -D -c -f {} -N n1", cluster.settings()));
        assert!(
            cluster.is_idle(),
            "{}",
            fs::read_to_string(cluster.folder.path().join("log")).unwrap()
        );
        cluster
    }

    /// Waits until nothing runs on the node, at most 20 s.
    fn is_idle(&self) -> bool {
        (0..100).any(|_| {
            let idle = self.run("sinfo -h -o %T").trim() == "idle";
            if !idle {
                std::thread::sleep(Duration::from_millis(200));
            }
            idle
        })
    }

    fn settings(&self) -> String {
        self.folder.path().join("slurm.conf").display().to_string()
    }

    fn daemon(&mut self, command: &str) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .unwrap();
        // The daemons are in folders of administrators.
        let script = format!("PATH=$PATH:/usr/sbin:/sbin; exec {command}");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.daemons.push(Ends(shell.spawn().unwrap()));
    }

    /// What a command prints, whether it succeeds or not.
    fn run(&self, command: &str) -> String {
        let output = Command::new("sh")
            .args(["-c", &format!("timeout 60 {command}")])
            .env("SLURM_CONF", self.settings())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The daemon of a step outlives the node's daemon, and waits for the controller to hear of
        // its end.
        self.is_idle();
        // Last started, first ended: the controller asks the authentication service to the end.
        while let Some(mut daemon) = self.daemons.pop() {
            shell(&format!("kill {}", daemon.0.id()));
            let ended = (0..100).any(|_| {
                std::thread::sleep(Duration::from_millis(50));
                daemon.0.try_wait().is_ok_and(|status| status.is_some())
            });
            assert!(ended || std::thread::panicking(), "a daemon of Slurm does not end");
        }
    }
}

#[test]
fn slurm_binds_tasks_as_exported() {
    let Some((cpus, mut plan)) = plan_of_instances(&["a", "b", "c"]) else { return };
    for name in ["/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "srun"] {
        if tool(name).is_none() {
            return;
        }
    }
    plan.threads[1].cpus = CpuSet::parse_list(&cpus.join(",")).unwrap();
    let cluster = Cluster::start();
    let printed =
        cluster.run(&format!("{} {}", export(&plan, "slurm").trim(), report("SLURM_PROCID")));
    let tasks: Vec<&str> =
        sorted(&printed).into_iter().filter(|line| !line.starts_with("salloc:")).collect();
    let expected = plan
        .threads
        .iter()
        .enumerate()
        .map(|(task, thread)| format!("{task} {}", kernel(&thread.cpus)));
    assert_eq!(tasks, expected.collect::<Vec<_>>());
}
