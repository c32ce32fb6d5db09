//! How often a certificate is right, and what it costs: every strategy on workloads whose best
//! possible performance is known.
//!
//! `cargo run --release -p pinwise-lab --example certificates -- DIR` prints the tables of
//! docs/lab/certificates.md in Markdown. Its studies are of workloads on paper, of programs on the
//! simulated UltraSPARC T2, and of both together. One has workloads that no published method
//! describes. Name studies and strategies after DIR to run only these. Each campaign is stored in
//! DIR when it ends and is not run again. Seeds are fixed, so a second run prints the same text.
//! `--on ssh:HOST,HOST` or `--on slurm --nodes N` shares the campaigns among nodes.

mod beyond;
mod campaign;
mod nodes;
mod published;
mod saved_results;
mod table;
mod workloads;

use campaign::{Run, WAYS};
use pinwise_lab::on_nodes::{each, run};
use saved_results::SavedResults;
use std::path::PathBuf;
use std::process::ExitCode;
use table::Results;
use workloads::{Case, Group};

const STUDIES: [&str; 3] = ["paper", "simulated", "beyond"];
const BLACKBOX: &str = "blackbox";

/// Workloads, and by strategy its campaigns on each.
struct Study {
    cases: Vec<Case>,
    columns: Vec<(String, Vec<Vec<Run>>)>,
}

fn main() -> ExitCode {
    run(study)
}

fn study(words: Vec<String>) -> ExitCode {
    let mut arguments = words.into_iter();
    let folder = arguments.next().map(PathBuf::from);
    let named: Vec<String> = arguments.collect();
    let strategies: Vec<&str> = WAYS.iter().map(|way| way.name).chain([BLACKBOX]).collect();
    let is_known = |name: &String| STUDIES.iter().chain(&strategies).any(|known| known == name);
    let Some(folder) = folder.filter(|_| named.iter().all(is_known)) else {
        eprintln!("usage: certificates DIR [{}|{}]…", STUDIES.join("|"), strategies.join("|"));
        return ExitCode::from(2);
    };
    let saved = match SavedResults::open(folder.clone()) {
        Ok(saved) => saved,
        Err(error) => {
            eprintln!("{}: {error}: name a folder that can be written", folder.display());
            return ExitCode::FAILURE;
        }
    };
    // Those named; all if none is.
    let of = |all: &[&str]| -> Vec<String> {
        let some: Vec<String> =
            named.iter().filter(|name| all.contains(&name.as_str())).cloned().collect();
        if some.is_empty() { all.iter().map(|name| (*name).to_owned()).collect() } else { some }
    };
    let (chosen, strategies) = (of(&STUDIES), of(&strategies));
    let mut judged: Vec<Study> = Vec::new();
    for name in STUDIES.iter().filter(|name| chosen.iter().any(|chosen| chosen == *name)) {
        let (title, cases) = match *name {
            "paper" => ("On paper", workloads::on_paper(&saved)),
            "simulated" => ("Simulated", workloads::simulated(&saved)),
            _ => ("What no published method does", beyond::beyond(&saved)),
        };
        println!("\n### {title}");
        let study = Study::of(cases, &strategies, &saved);
        study.print();
        if *name != "beyond" {
            judged.push(study);
        }
        if *name == "simulated" && judged.len() > 1 {
            println!("\n### On paper and simulated");
            table::strategies(&together(&judged), &[]);
        }
    }
    ExitCode::SUCCESS
}

/// The results of all studies, by strategy.
fn together(studies: &[Study]) -> Vec<Results<'_>> {
    let mut all = studies.iter().map(Study::results);
    let mut together = all.next().unwrap_or_default();
    for other in all {
        together.iter_mut().zip(other).for_each(|(results, other)| results.runs.extend(other.runs));
    }
    together
}

impl Study {
    /// The campaigns of the strategies named.
    fn of(mut cases: Vec<Case>, strategies: &[String], saved: &SavedResults) -> Self {
        let is_chosen = |name: &str| strategies.iter().any(|strategy| strategy == name);
        let mut columns: Vec<(String, Vec<Vec<Run>>)> = Vec::new();
        for way in WAYS.iter().filter(|way| is_chosen(way.name)) {
            let mut runs: Vec<Vec<Run>> = vec![Vec::new(); cases.len()];
            for seed in 0..way.campaigns {
                let name = |case: &Case| format!("{}-{}-{seed}", case.key, way.name);
                let one = each(&cases, |case| saved.get(&name(case), || Run::of(case, way, seed)));
                // What other nodes have made is saved here, too.
                cases.iter().zip(&one).for_each(|(case, run)| saved.keep(&name(case), run));
                runs.iter_mut().zip(one).for_each(|(runs, run)| runs.push(run));
                eprintln!("{}, seed {seed}: done on {} workloads", way.name, cases.len());
            }
            columns.push((way.name.to_owned(), runs));
        }
        if is_chosen(BLACKBOX) {
            let run = |case: &Case| {
                saved.get(&format!("{}-{BLACKBOX}", case.key), || published::blackbox(case))
            };
            let runs: Vec<Result<Vec<Run>, String>> = each(&cases, run);
            for (case, refused) in cases
                .iter()
                .zip(&runs)
                .filter_map(|(case, runs)| Some((case, runs.as_ref().err()?)))
            {
                println!("\n{BLACKBOX} refuses {}: {refused}.", case.name);
            }
            for (index, finalists) in published::FINALISTS.iter().enumerate() {
                let one = |runs: &Result<Vec<Run>, String>| {
                    runs.iter().map(|runs| runs[index].clone()).collect()
                };
                columns
                    .push((format!("{BLACKBOX}, top {finalists}"), runs.iter().map(one).collect()));
            }
        }
        let long = |case: &Case| {
            let search = case.is_simulated() && !case.is_enumerated();
            if search {
                saved.get(&format!("{}-long", case.key), || Run::long(case)).most
            } else {
                0.0
            }
        };
        let long = each(&cases, long);
        for (number, case) in cases.iter_mut().enumerate() {
            let runs = columns.iter().flat_map(|(_, runs)| &runs[number]);
            case.settle(runs.map(|run| run.most).fold(long[number], f64::max));
        }
        Self { cases, columns }
    }

    fn results(&self) -> Vec<Results<'_>> {
        let of = |(name, runs)| Results { name, runs: self.cases.iter().zip(runs).collect() };
        self.columns
            .iter()
            .map(|(name, runs)| (name.as_str(), runs.iter().map(Vec::as_slice)))
            .map(of)
            .collect()
    }

    fn print(&self) {
        let results = self.results();
        println!();
        table::workloads(&self.cases, &results);
        let mut groups: Vec<Group> = Group::ALL.to_vec();
        groups.retain(|group| self.cases.iter().any(|case| case.group == *group));
        table::strategies(&results, &groups);
    }
}
