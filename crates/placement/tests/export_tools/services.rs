//! Programs and service managers that read the text as their configuration.

use super::*;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;

/// `systemd --test` reads units as the real manager does and prints what it understood.
#[test]
fn systemd_understands_the_drop_ins_as_planned() {
    const SYSTEMD: &str = "/lib/systemd/systemd";
    if tool(SYSTEMD).is_none() {
        return;
    }
    let cpus = CpuSet::parse_list("1,3,8-10,64").unwrap();
    let thread =
        PlannedThread { name: "x".into(), role: "x".into(), instance: 0, cpus: cpus.clone() };
    let plan = Plan::new("x", Fingerprint::of(&Machine::from_shape("2").unwrap()), vec![thread]);
    let folder = tempfile::tempdir().unwrap();
    let drop_ins = folder.path().join("pinwise.service.d");
    fs::create_dir(&drop_ins).unwrap();
    fs::write(
        folder.path().join("pinwise.service"),
        "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/true\n",
    )
    .unwrap();
    for format in ["systemd", "systemd_cpuset"] {
        fs::write(drop_ins.join(format!("{format}.conf")), export(&plan, format)).unwrap();
    }
    let mut command = Command::new(SYSTEMD);
    command.args(["--test", "--user", "--unit=pinwise.service"]);
    command.env_clear().env("HOME", folder.path()).env("SYSTEMD_UNIT_PATH", folder.path());
    command.env("XDG_RUNTIME_DIR", folder.path());
    // It refuses to test as root.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let runtime = folder.path().join("run");
        fs::create_dir(&runtime).unwrap();
        std::os::unix::fs::chown(&runtime, Some(65534), Some(65534)).unwrap();
        command.env("XDG_RUNTIME_DIR", runtime).uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let understood = |what: &str| -> Vec<CpuSet> {
        let values =
            text.lines().filter_map(|line| line.trim().strip_prefix(what)?.strip_prefix(": "));
        values
            .filter(|value| !value.is_empty())
            .map(|list| CpuSet::parse_list(&list.replace(' ', ",")).unwrap())
            .collect()
    };
    for what in ["CPUAffinity", "AllowedCPUs"] {
        assert_eq!(
            understood(what),
            std::slice::from_ref(&cpus),
            "{what}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_dpdk_program_starts_its_lcores_where_exported() {
    let names = ["dpdk-testpmd", "rte-worker-1", "rte-worker-2"];
    let Some((cpus, plan)) = plan(&names) else { return };
    if tool("dpdk-testpmd").is_none() {
        return;
    }
    let command = format!(
        "exec dpdk-testpmd {} --no-huge -m 64 --no-pci --no-telemetry --no-shconf --vdev net_null0 \
         --vdev net_null1 -- -i --nb-cores=2 --total-num-mbufs=2048 --no-mlockall",
        export(&plan, "dpdk").trim()
    );
    let mut child = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let expected = [0, 1, 0].map(|index: usize| cpus[index].clone());
    let seen = settled(&mut child, &names, &expected);
    if let Some(mut prompt) = child.stdin.take() {
        let _ = prompt.write_all(b"quit\n");
    }
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(seen, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

/// Reads a capture from a pipe that stays open, so that its threads wait while they are looked at.
#[test]
fn suricata_hands_out_its_cpus_as_exported() {
    let names = ["RX#01", "W#01", "W#02", "W#03"];
    let Some((cpus, plan)) = plan(&names) else { return };
    if !is_there("suricata") {
        not_here::<()>("suricata, which bookworm-backports has,");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("suricata.yaml"), format!("%YAML 1.1\n---\n{}", export(&plan, "suricata")))
        .unwrap();
    shell(&format!("mkfifo {}", path("capture").display()));
    // Open for reading too: opening waits for nobody, and nobody's end is an end of file.
    let mut capture = fs::File::options().read(true).write(true).open(path("capture")).unwrap();
    capture.write_all(&packets(300)).unwrap();
    let log = fs::File::create(path("log")).unwrap();
    let child = Command::new("suricata")
        .args(["--runmode", "autofp", "-S", "/dev/null", "-c"])
        .arg(path("suricata.yaml"))
        .args([Path::new("-l"), folder.path(), Path::new("-r"), &path("capture")])
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut child = Ends(child);
    let expected = [0, 1, 0, 1].map(|index: usize| cpus[index].clone());
    let seen = settled(&mut child.0, &names, &expected);
    assert_eq!(seen, expected, "{}", fs::read_to_string(path("log")).unwrap());
}

/// A capture of `count` empty UDP packets: more than the reader's buffer of 4,096 bytes holds.
fn packets(count: usize) -> Vec<u8> {
    // The header of a pcap file, version 2.4, for Ethernet.
    let mut bytes: Vec<u8> =
        [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1].map(u32::to_ne_bytes).concat();
    let mut packet = vec![0; 42];
    packet[..6].fill(0xff);
    packet[12..14].copy_from_slice(&[0x08, 0x00]);
    packet[14..24].copy_from_slice(&[0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17]);
    packet[26..34].copy_from_slice(&[127, 0, 0, 1, 127, 0, 0, 1]);
    packet[34..42].copy_from_slice(&[0, 1, 0, 2, 0, 8, 0, 0]);
    for _ in 0..count {
        bytes.extend([1_u32, 0, 42, 42].map(u32::to_ne_bytes).concat());
        bytes.extend(&packet);
    }
    bytes
}

/// Needs the cpuset controller in the unified hierarchy, and root.
#[test]
fn a_cgroup_confines_its_processes_as_exported() {
    let Some((cpus, plan)) = plan(&["main"]) else { return };
    let root = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if !controllers.split_whitespace().any(|controller| controller == "cpuset") {
        not_here::<()>("the cpuset controller of cgroup version 2");
        return;
    }
    let group = root.join(format!("pinwise-test-{}", std::process::id()));
    if fs::create_dir(&group).is_err() {
        not_here::<()>("permission to make a cgroup");
        return;
    }
    let child = Ends(Command::new("sleep").arg("60").spawn().unwrap());
    fs::write(group.join("cgroup.procs"), child.0.id().to_string()).unwrap();
    shell(&format!("CGROUP={}\n{}", group.display(), export(&plan, "cgroup")));
    let seen = allowed(&Path::new("/proc").join(child.0.id().to_string()));
    drop(child);
    // The kernel needs a moment to let go of the process.
    for _ in 0..100 {
        if fs::remove_dir(&group).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(seen, cpus[0]);
}
