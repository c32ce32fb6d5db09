//! A split of running programs, in the words of what a system has: cpusets, scx_layered.
//!
//! The split is that of the last round. Programs are found by the names of their processes.

use crate::one_line;
use pinwise_coscheduling::ProgramOutcome;
use pinwise_topology::{CpuId, CpuSet};
use serde_json::json;
use std::collections::BTreeSet;

/// To what a split is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// Control groups with a cpuset each, as shell commands (cgroup v2).
    Cpuset,
    /// A configuration file of scx_layered. Its layers have a number of CPUs, and the scheduler
    /// chooses which.
    ScxLayered,
}

/// What stands for a split that puts threads of two programs on one CPU.
const WITHIN: &str =
    "# Nothing to hand over: threads were split, not programs, so two of them share a CPU.\n";

impl HandOver {
    /// The text for these programs. Those that were kept to no context are left out. If two share a
    /// CPU, the text is a comment that says so.
    pub fn text(self, programs: &[ProgramOutcome]) -> String {
        let kept: Vec<(&ProgramOutcome, CpuSet)> = programs
            .iter()
            .filter(|program| !program.contexts.is_empty())
            .map(|program| {
                let cpus = program.contexts.iter().map(|&context| CpuId(context as u32));
                (program, cpus.collect())
            })
            .collect();
        let mut taken = BTreeSet::new();
        if !kept.iter().all(|(_, cpus)| cpus.iter().all(|cpu| taken.insert(cpu))) {
            return WITHIN.to_owned();
        }
        match self {
            Self::Cpuset => cpusets(&kept),
            Self::ScxLayered => layers(&kept),
        }
    }
}

/// A name that is the same word in a shell, a path and a pattern.
fn is_plain(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    !name.is_empty() && name.chars().all(plain) && !name.starts_with('-')
}

fn cpusets(programs: &[(&ProgramOutcome, CpuSet)]) -> String {
    let root = "/sys/fs/cgroup";
    let mut text = format!("echo +cpuset >{root}/cgroup.subtree_control\n");
    for (program, cpus) in programs {
        let name = &program.name;
        if !is_plain(name) {
            text += &format!("# left out, its name is no plain word: {}\n", one_line(name));
            continue;
        }
        let group = format!("{root}/pinwise-{name}");
        text += &format!("mkdir -p {group} && echo {cpus} >{group}/cpuset.cpus\n");
        text += &format!(
            "for pid in $(pgrep -x {name}); do echo \"$pid\" >{group}/cgroup.procs; done\n"
        );
    }
    text
}

fn layers(programs: &[(&ProgramOutcome, CpuSet)]) -> String {
    let layer = |(program, cpus): &(&ProgramOutcome, CpuSet)| {
        json!({
            "name": program.name,
            "comment": format!("from pinwise cosched, where it was kept to CPU {cpus}"),
            "matches": [[{ "PcommPrefix": program.name }]],
            "kind": {
                "Confined": { "cpus_range": [cpus.len(), cpus.len()], "util_range": [0.0, 1.0] }
            },
        })
    };
    let rest = json!(
        { "name": "rest", "comment": "everything else", "matches": [[]], "kind": { "Open": {} } }
    );
    let all: Vec<serde_json::Value> = programs.iter().map(layer).chain([rest]).collect();
    format!("{:#}\n", serde_json::Value::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, contexts: &[usize]) -> ProgramOutcome {
        ProgramOutcome {
            name: name.into(),
            processes: 1,
            gain: None,
            alone_as_found: None,
            alone_moved: None,
            contexts: contexts.to_vec(),
        }
    }

    #[test]
    fn cpusets_name_each_program_and_no_word_of_it_is_run() {
        let programs =
            [program("solver", &[0, 1, 4]), program("a; rm -rf /", &[2]), program("idle", &[])];
        let text = HandOver::Cpuset.text(&programs);
        let group = "/sys/fs/cgroup/pinwise-solver";
        assert!(text.contains(&format!("echo 0,1,4 >{group}/cpuset.cpus\n")), "{text}");
        assert!(text.contains("$(pgrep -x solver)") && !text.contains("idle"), "{text}");
        let run = text.lines().filter(|line| !line.starts_with('#'));
        assert!(run.clone().count() == 3 && run.clone().all(|line| !line.contains("rm")), "{text}");
    }

    #[test]
    fn a_split_within_programs_is_a_comment() {
        for to in [HandOver::Cpuset, HandOver::ScxLayered] {
            let text = to.text(&[program("solver", &[0, 1]), program("xz", &[1])]);
            assert_eq!(text, WITHIN);
            assert!(text.lines().all(|line| line.starts_with('#')));
        }
    }

    #[test]
    fn layers_are_one_for_each_program_and_one_for_the_rest() {
        let text = HandOver::ScxLayered.text(&[program("solver", &[0, 4]), program("xz", &[1])]);
        let layers: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(layers.as_array().unwrap().len(), 3);
        assert_eq!(layers[0]["kind"]["Confined"]["cpus_range"], json!([2, 2]));
        assert_eq!(layers[1]["matches"][0][0]["PcommPrefix"], "xz");
        assert_eq!(layers[2]["kind"], json!({ "Open": {} }));
    }
}
