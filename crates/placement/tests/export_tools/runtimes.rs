//! Runtimes that pin the threads of a program as it creates them.

use super::*;
use tempfile::TempDir;

/// A team of three that prints the CPUs each thread may run on, in order.
const TEAM: &str = r#"
    #define _GNU_SOURCE
    #include <sched.h>
    #include <stdio.h>
    int main(void) {
        #pragma omp parallel for ordered schedule(static, 1)
        for (int i = 0; i < 3; i++) {
            cpu_set_t set;
            sched_getaffinity(0, sizeof set, &set);
            #pragma omp ordered
            {
                for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                    if (CPU_ISSET(cpu, &set)) printf("%d ", cpu);
                printf(";");
            }
        }
    }"#;

/// The team's program, with the OpenMP runtime that `link` names to the linker.
fn team(folder: &TempDir, link: &str) -> String {
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("team.c"), TEAM).unwrap();
    shell(&format!("gcc -fopenmp -c {} -o {}", path("team.c"), path("team.o")));
    shell(&format!("gcc {} {link} -o {}", path("team.o"), path("team")));
    path("team")
}

#[test]
fn libgomp_binds_the_team_as_exported() {
    let Some((cpus, mut plan)) = plan(&["a", "b", "c"]) else { return };
    if tool("gcc").is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let program = team(&folder, "-fopenmp");
    let expected = format!("{} ;{} ;{} ;", cpus[0], cpus[1], cpus[0]);
    for format in ["openmp", "gomp"] {
        assert_eq!(shell(&format!("{}{program}", export(&plan, format))), expected, "{format}");
    }
    let (lists, several) = one_of_several(&mut plan, &cpus);
    assert_eq!(shell(&format!("{}{program}", export(&several, "openmp"))), lists);
}

/// The plan with the second thread on both CPUs, and what the team prints then.
fn one_of_several(plan: &mut Plan, cpus: &[String]) -> (String, Plan) {
    plan.threads[1].cpus = CpuSet::parse_list(&cpus.join(",")).unwrap();
    (format!("{} ;{} {} ;{} ;", cpus[0], cpus[1], cpus[0], cpus[0]), plan.clone())
}

#[test]
fn libomp_binds_the_team_as_exported() {
    let Some((cpus, mut plan)) = plan(&["a", "b", "c"]) else { return };
    if tool("gcc").is_none() {
        return;
    }
    let found = shell("ls /usr/lib/*/libomp.so.5 2>/dev/null || true");
    let Some(library) = found.lines().next() else {
        left_out::<()>("libomp5");
        return;
    };
    let folder = TempDir::new().unwrap();
    let program = team(&folder, library);
    let expected = format!("{} ;{} ;{} ;", cpus[0], cpus[1], cpus[0]);
    for format in ["openmp", "gomp", "kmp"] {
        assert_eq!(shell(&format!("{}{program}", export(&plan, format))), expected, "{format}");
    }
    let (lists, several) = one_of_several(&mut plan, &cpus);
    for format in ["openmp", "kmp"] {
        assert_eq!(shell(&format!("{}{program}", export(&several, format))), lists, "{format}");
    }
}

#[test]
fn likwid_pins_threads_as_exported_and_goes_round() {
    let Some((cpus, plan)) = plan(&["a", "b", "c"]) else { return };
    if tool("gcc").and(tool("likwid-pin")).is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let program = team(&folder, "-fopenmp");
    let command = export(&plan, "likwid");
    // Two CPUs for three threads.
    assert_eq!(command, format!("likwid-pin -c {},{}\n", cpus[0], cpus[1]));
    let printed = shell(&format!("OMP_NUM_THREADS=3 {} -q {program}", command.trim()));
    assert!(printed.contains(&format!("{} ;{} ;{} ;", cpus[0], cpus[1], cpus[0])), "{printed}");
}
