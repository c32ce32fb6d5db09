//! Tests of all formats of export.

use super::*;
use crate::PlannedMemory;
use pinwise_measure::MemoryPolicy;
use pinwise_topology::{Fingerprint, Machine};

/// Threads as `name role instance cpus`.
pub(crate) fn plan(program: &str, threads: &[(&str, &str, usize, &str)]) -> Plan {
    let machine = Fingerprint::of(&Machine::from_shape("2x4x2").unwrap());
    let thread = |&(name, role, instance, cpus): &(&str, &str, usize, &str)| PlannedThread {
        name: name.into(),
        role: role.into(),
        instance,
        cpus: CpuSet::parse_list(cpus).unwrap(),
    };
    Plan::new(program, machine, threads.iter().map(thread).collect())
}

fn pipelines() -> Plan {
    plan(
        "ipfwd",
        &[
            ("ipfwd0-R", "R", 0, "3"),
            ("ipfwd0-P", "P", 0, "1"),
            ("ipfwd0-T", "T", 0, "1"),
            ("ipfwd1-R", "R", 1, "8"),
            ("ipfwd1-P", "P", 1, "9"),
            ("ipfwd1-T", "T", 1, "10"),
        ],
    )
}

fn export(plan: &Plan, format: &str) -> Result<Export, String> {
    Format::find(format).unwrap().export(plan).map_err(|error| error.to_string())
}

fn text(plan: &Plan, format: &str) -> String {
    export(plan, format).unwrap().text
}

#[test]
fn syntaxes_of_whole_processes_give_the_union_and_say_so() {
    for (format, expected) in [
        ("cpulist", "1,3,8-10\n"),
        ("mask", "0x70a\n"),
        ("hwloc", "0x0000070a\n"),
        ("taskset", "taskset -c 1,3,8-10\n"),
        ("numactl", "numactl --physcpubind=1,3,8-10\n"),
        ("systemd", "[Service]\nCPUAffinity=1,3,8-10\n"),
        ("systemd_cpuset", "[Service]\nAllowedCPUs=1,3,8-10\n"),
        ("gamemode", "[cpu]\npin_cores=1,3,8-10\n"),
    ] {
        let export = export(&pipelines(), format).unwrap();
        assert_eq!(export.text, expected, "{format}");
        assert_eq!(export.notes, [ExportNote::WholeProcess], "{format}");
    }
    assert!(text(&pipelines(), "cgroup").contains("echo 1,3,8-10 > \"$CGROUP/cpuset.cpus\"\n"));
    let lone = export(&plan("x", &[("a", "a", 0, "1")]), "gamemode").unwrap_err();
    assert!(lone.contains("no fewer than 4 CPUs, and the plan uses 1"), "{lone}");
    let one_set = plan("x", &[("a", "a", 0, "1-3"), ("b", "b", 0, "1-3")]);
    assert_eq!(
        export(&one_set, "taskset").unwrap(),
        Export { text: "taskset -c 1-3\n".into(), notes: Vec::new() }
    );
}

#[test]
fn the_memory_of_a_plan_is_in_the_words_of_numactl_and_systemd_and_noted_elsewhere() {
    let with = |policy, nodes: &[u32]| {
        let mut plan = plan("x", &[("a", "a", 0, "1-3")]);
        plan.memory = Some(PlannedMemory { policy, nodes: nodes.iter().copied().collect() });
        plan
    };
    for (planned, numactl, systemd) in [
        (
            with(MemoryPolicy::Follow, &[1]),
            " --preferred=1\n",
            "NUMAPolicy=preferred\nNUMAMask=1\n",
        ),
        (with(MemoryPolicy::Follow, &[0, 1]), " --localalloc\n", "NUMAPolicy=local\n"),
        (
            with(MemoryPolicy::Interleave, &[0, 1]),
            " --interleave=0,1\n",
            "NUMAPolicy=interleave\nNUMAMask=0,1\n",
        ),
    ] {
        assert_eq!(text(&planned, "numactl"), format!("numactl --physcpubind=1-3{numactl}"));
        assert_eq!(text(&planned, "systemd"), format!("[Service]\nCPUAffinity=1-3\n{systemd}"));
        assert_eq!(export(&planned, "systemd").unwrap().notes, []);
        let policy = planned.memory.as_ref().unwrap().policy;
        let notes = export(&planned, "taskset").unwrap().notes;
        assert_eq!(notes, [ExportNote::MemoryLeftOut { policy }]);
    }
}

#[test]
fn openmp_runtimes_get_one_place_per_thread_in_order() {
    assert_eq!(
        text(&pipelines(), "openmp"),
        "export OMP_PLACES='{3},{1},{1},{8},{9},{10}'\nexport OMP_PROC_BIND=close\nexport \
         OMP_NUM_THREADS=6\n"
    );
    assert_eq!(
        text(&pipelines(), "gomp"),
        "export GOMP_CPU_AFFINITY='3 1 1 8 9 10'\nexport OMP_NUM_THREADS=6\n"
    );
    assert!(
        text(&pipelines(), "kmp")
            .contains("KMP_AFFINITY='granularity=fine,proclist=[3,1,1,8,9,10],explicit'")
    );
    let wide = plan("x", &[("a", "a", 0, "1,2")]);
    assert!(text(&wide, "openmp").contains("'{1,2}'"));
    assert!(text(&wide, "kmp").contains("proclist=[{1,2}],"));
    for format in ["gomp", "likwid"] {
        let error = export(&wide, format).unwrap_err();
        assert_eq!(
            error,
            format!(
                "{format} cannot express this plan: thread 'a' may run on several CPUs (1,2); use \
                 script"
            )
        );
    }
}

#[test]
fn likwid_takes_each_cpu_once_and_goes_round() {
    let on = |cpus: &[&'static str]| -> Plan {
        let names = ["a", "b", "c", "d", "e"];
        let threads: Vec<_> =
            names.iter().zip(cpus).map(|(name, cpu)| (*name, "r", 0, *cpu)).collect();
        plan("x", &threads)
    };
    for (cpus, list) in [
        (&["3", "1", "8"][..], "3,1,8"),
        (&["3", "1", "3", "1", "3"], "3,1"),
        (&["4", "4", "4"], "4"),
    ] {
        assert_eq!(text(&on(cpus), "likwid"), format!("likwid-pin -c {list}\n"));
    }
    for (cpus, reason) in [
        (&["3", "1", "1"][..], "CPUs 3,1 to the threads in turn, and 'c' would not get CPU 1"),
        (&["1", "1", "3"], "CPUs 1,3 to the threads in turn, and 'b' would not get CPU 1"),
        (&["1", "3", "1", "8"], "CPUs 1,3,8 to the threads in turn, and 'c' would not get CPU 1"),
    ] {
        let error = export(&on(cpus), "likwid").unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

/// The second thread only waits and is not placed, but these tools would pin it.
#[test]
fn what_pins_in_the_order_of_creation_refuses_a_plan_with_a_gap() {
    let gap = plan(
        "pigz",
        &[("pigz#0", "pigz", 0, "0"), ("pigz#2", "pigz", 0, "1"), ("pigz#3", "pigz", 0, "0")],
    );
    for format in ["likwid", "openmp", "gomp", "kmp"] {
        let error = export(&gap, format).unwrap_err();
        let told = error.contains("the plan has no 'pigz#1'") && error.contains("use script");
        assert!(told, "{format}: {error}");
    }
}

#[test]
fn launchers_of_jobs_get_the_cpus_of_each_instance() {
    let slurm = export(&pipelines(), "slurm").unwrap();
    assert_eq!(
        slurm.text,
        "salloc --nodes=1 --exclusive srun --overcommit --ntasks=2 --cpu-bind=mask_cpu:0xa,0x700\n"
    );
    assert_eq!(slurm.notes, [ExportNote::WholeInstances { instance: "task" }]);
    let rankfile = export(&pipelines(), "rankfile").unwrap();
    let lines: Vec<&str> = rankfile.text.lines().collect();
    assert!(lines[0].starts_with("# mpirun "));
    assert_eq!(lines[1..], ["rank 0=localhost slot=1,3", "rank 1=localhost slot=8-10"]);
    assert_eq!(rankfile.notes, [ExportNote::WholeInstances { instance: "rank" }]);
    let gap = plan("x", &[("a", "a", usize::MAX, "0")]);
    for format in ["slurm", "rankfile"] {
        assert!(export(&gap, format).unwrap_err().contains("no thread of instance 0"));
    }
}

#[test]
fn dpdk_workers_keep_their_lcore_numbers() {
    let testpmd = plan(
        "/usr/bin/dpdk-testpmd",
        &[
            ("dpdk-testpmd", "dpdk-testpmd", 0, "0"),
            ("rte-worker-1", "rte-worker", 0, "3"),
            ("rte-worker-2", "rte-worker", 0, "4-6"),
            ("telemetry-v2", "telemetry-v2", 0, "0"),
        ],
    );
    let export = export(&testpmd, "dpdk").unwrap();
    assert_eq!(export.text, "--lcores '0@0,1@3,2@(4-6)' --main-lcore 0\n");
    let threads = vec!["telemetry-v2".to_owned()];
    assert_eq!(export.notes, [ExportNote::LeftOut { by: LeftOutBy::Dpdk, threads }]);
    let workers =
        plan("dpdk-testpmd", &[("rte-worker-0", "w", 0, "5"), ("lcore-worker-2", "w", 0, "6")]);
    let export = super::tests::export(&workers, "dpdk").unwrap();
    assert_eq!(export.text, "--lcores '0@5,1@(5,6),2@6' --main-lcore 1\n");
    assert_eq!(export.notes, [ExportNote::NoFirstThread { lcore: 1 }]);
    assert!(super::tests::export(&pipelines(), "dpdk").unwrap_err().contains("rte-worker-N"));
    let beyond = plan("dpdk-testpmd", &[("rte-worker-128", "w", 0, "5")]);
    assert!(super::tests::export(&beyond, "dpdk").unwrap_err().contains("RTE_MAX_LCORE"));
}

#[test]
fn vpp_gets_its_cores_and_what_it_cannot_keep_is_noted() {
    let router = plan(
        "vpp",
        &[("vpp_main", "m", 0, "1"), ("vpp_wk_0", "w", 0, "5"), ("vpp_wk_1", "w", 0, "4")],
    );
    let export = export(&router, "vpp").unwrap();
    assert_eq!(export.text, "cpu {\n  main-core 1\n  corelist-workers 4,5\n}\n");
    assert_eq!(export.notes, [ExportNote::WorkersByCore { cpus: vec![CpuId(5), CpuId(4)] }]);
    let shared = plan("vpp", &[("vpp_wk_0", "w", 0, "5"), ("vpp_wk_1", "w", 0, "5")]);
    assert!(
        super::tests::export(&shared, "vpp").unwrap_err().contains("two workers are on one CPU")
    );
    assert!(super::tests::export(&pipelines(), "vpp").unwrap_err().contains("not VPP"));
}

#[test]
fn suricata_gets_its_cpu_sets() {
    let ids = plan(
        "suricata",
        &[
            ("FM#01", "FM", 0, "0,4-6"),
            ("FR#01", "FR", 0, "0,4-6"),
            ("W#01", "W", 0, "2"),
            ("W#02", "W", 0, "3"),
            ("W#03", "W", 0, "2"),
            ("Suricata-Main", "main", 0, "1"),
        ],
    );
    let export = export(&ids, "suricata").unwrap();
    assert_eq!(
        export.text,
        "threading:\n  set-cpu-affinity: yes\n  cpu-affinity:\n    - management-cpu-set:\n        \
         cpu: [ \"0\", \"4-6\" ]\n        mode: \"balanced\"\n    - worker-cpu-set:\n        cpu: \
         [ \"2\", \"3\" ]\n        mode: \"exclusive\"\n        threads: 3\n"
    );
    let threads = vec!["Suricata-Main".to_owned()];
    assert_eq!(export.notes, [ExportNote::LeftOut { by: LeftOutBy::Suricata, threads }]);
    let crossed = plan("suricata", &[("W#01", "W", 0, "3"), ("W#02", "W", 0, "2")]);
    let in_turn = [ExportNote::CpusInTurn {
        set: "worker-cpu-set",
        cpus: CpuSet::parse_list("2,3").unwrap(),
    }];
    assert_eq!(super::tests::export(&crossed, "suricata").unwrap().notes, in_turn);
    let uneven =
        plan("suricata", &[("W#01", "W", 0, "2"), ("W#02", "W", 0, "2"), ("W#03", "W", 0, "3")]);
    assert_eq!(super::tests::export(&uneven, "suricata").unwrap().notes, in_turn);
    assert!(super::tests::export(&pipelines(), "suricata").unwrap_err().contains("not Suricata"));
}

#[test]
fn scx_layered_gets_a_layer_for_the_program() {
    let long = plan("/opt/a-very-long-program-name --fast", &[("x", "x", 0, "0,5")]);
    let export = export(&long, "scx_layered").unwrap();
    let layers: serde_json::Value = serde_json::from_str(&export.text).unwrap();
    assert_eq!(layers[0]["matches"][0][0]["PcommPrefix"], "a-very-long-pro");
    assert_eq!(layers[0]["kind"]["Confined"]["cpus_range"], serde_json::json!([2, 2]));
    assert_eq!(
        (&layers[1]["matches"], layers.as_array().map(Vec::len)),
        (&serde_json::json!([[]]), Some(2))
    );
    assert_eq!(export.notes, [ExportNote::CpusByScheduler { cpus: 2 }]);
}

#[test]
fn json_has_every_thread_in_three_forms() {
    let document: serde_json::Value = serde_json::from_str(&text(&pipelines(), "json")).unwrap();
    let thread = &document["threads"][3];
    assert_eq!((&thread["name"], &thread["instance"]), (&"ipfwd1-R".into(), &1.into()));
    assert_eq!(
        (&thread["cpus"], &thread["mask"], &thread["hwloc"]),
        (&"8".into(), &"0x100".into(), &"0x00000100".into())
    );
}

#[test]
fn the_script_quotes_names() {
    let odd = plan("x", &[("it's; rm -rf", "x", 0, "1,4-6")]);
    assert!(text(&odd, "script").ends_with("pin 'it'\\''s; rm -rf' 1,4-6\nexit $failed\n"));
}

#[test]
fn format_names_are_unique_and_every_text_ends_its_line() {
    for format in FORMATS {
        assert_eq!(
            FORMATS.iter().filter(|other| other.name == format.name).count(),
            1,
            "{}",
            format.name
        );
        assert_eq!(Format::find(format.name).unwrap().about, format.about);
        if let Ok(export) = format.export(&pipelines()) {
            assert!(export.text.ends_with('\n'), "{}", format.name);
        }
    }
    assert!(Format::find("chair").is_none());
}
