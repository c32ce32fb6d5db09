//! The published search on the model, program by program, compared with the paper. `cargo run
//! --release -p pinwise-lab --example thread_reinforcer` prints the Markdown of
//! docs/lab/fidelity-threads.md.

use pinwise_lab::thread_reinforcer::{self, PublishedRow, RUNS, SEARCHES, SEED, WINDOW};
use pinwise_measure::RoleTime;
use pinwise_scheduler::{ModelProber, ModelProgram, Platform, run};
use pinwise_threads::Thresholds;
use std::collections::BTreeMap;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = thread_reinforcer::folder().ok_or("the comparison needs the published figures")?;
    let platform = Platform::opteron_24();
    let thresholds = thread_reinforcer::thresholds(&platform)?;
    println!(
        "Thresholds, calibrated from fluidanimate, facesim and blackscholes on small inputs:\n"
    );
    println!("```toml\n{}```\n", toml::to_string(&thresholds)?);
    if std::env::args().any(|argument| argument == "--probes") {
        return probes(&platform, thresholds);
    }
    let rows = thread_reinforcer::published(&std::fs::read_to_string(
        folder.join("thread_reinforcer.csv"),
    )?)?;
    // One thread per program; each is deterministic by its seeds.
    let compared = std::thread::scope(|scope| {
        let programs: Vec<_> = rows
            .iter()
            .map(|row| {
                scope.spawn(|| {
                    compare(&platform, thresholds, row).map_err(|error| error.to_string())
                })
            })
            .collect();
        let results = programs
            .into_iter()
            .map(|program| program.join().unwrap_or_else(|_| Err("a panic".to_owned())));
        results.collect::<Result<Vec<Compared>, String>>()
    })?;
    let fitted: String = compared.iter().map(|row| row.fitted.as_str()).collect();
    let searched: String = compared.iter().map(|row| row.searched.as_str()).collect();
    let choices = compared.iter().filter(|row| row.same_choice).count();
    let reasons = compared.iter().filter(|row| row.same_choice && row.same_reason).count();
    println!("Speed-ups, mean of {RUNS} runs, *fitted* to the published ones:\n");
    println!(
        "| program | best: threads, paper | model | speed-up there, paper | model | speed-up at \
         the choice, paper | model |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n{fitted}");
    println!(
        "The search's choice. It is *not fitted*, but the speed-up at the paper's choice is:\n"
    );
    println!(
        "| program | threads chosen, paper | model, most of {SEARCHES} searches | chosen by | \
         stopped by, paper | model | loss, paper | model |"
    );
    println!("| --- | ---: | ---: | ---: | --- | --- | ---: | ---: |\n{searched}");
    println!(
        "{choices} of {} choices are the paper's, {reasons} of them for the paper's reason.",
        rows.len()
    );
    thresholds_moved(&platform, thresholds, &rows)?;
    let parsec = std::fs::read_to_string(folder.join("parsec_threads.csv"))?;
    switches(&platform, &rows, &parsec)?;
    ferret(&platform, &std::fs::read_to_string(folder.join("ferret_stages.csv"))?)?;
    let chosen = |program: &str| {
        rows.iter()
            .zip(&compared)
            .find(|(row, _)| row.program == program)
            .map(|(_, it)| it.parameter)
    };
    critical(&platform, &parsec, chosen)
}

/// How far the choices depend on the threshold of CPU_UTIL, and what ends the searches.
fn thresholds_moved(
    platform: &Platform,
    thresholds: Thresholds,
    rows: &[PublishedRow],
) -> Result<(), Box<dyn Error>> {
    println!(
        "\nOne search of each program with other thresholds of CPU_UTIL. Calibrated: {:.2} \
         points.\n",
        thresholds.delta_cpu_util
    );
    println!(
        "| threshold, points | choices as in the paper | ended by CPU_UTIL | LOCK | VCX_RATE | \
         MIGR_RATE | other |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    let moved = [2.0, 3.0, 4.0, 5.0, thresholds.delta_cpu_util, 6.0, 7.0, 8.26];
    let all = std::thread::scope(|scope| {
        let running = moved.map(|delta_cpu_util| {
            let thresholds = Thresholds { delta_cpu_util, ..thresholds };
            let count = move || {
                let mut same = 0;
                let mut ends = BTreeMap::<&str, usize>::new();
                for row in rows {
                    let program = ModelProgram::built_in(&row.program).map_err(text)?;
                    let found = thread_reinforcer::choice(platform, &program, thresholds, 1)
                        .map_err(text)?;
                    same += usize::from(row.reported(&program, found.parameter) == row.found);
                    *ends.entry(found.stopped.word()).or_default() += 1;
                }
                Ok::<_, String>((same, ends))
            };
            scope.spawn(count)
        });
        running.map(|one| one.join().unwrap_or_else(|_| Err("a panic".to_owned())))
    });
    for (threshold, found) in moved.into_iter().zip(all) {
        let (same, mut ends) = found?;
        let by = ["CPU_UTIL", "LOCK", "VCX_RATE", "MIGR_RATE"]
            .map(|signal| ends.remove(signal).unwrap_or_default().to_string());
        let other: usize = ends.values().sum();
        println!("| {threshold:.2} | {same} of {} | {} | {other} |", rows.len(), by.join(" | "));
    }
    Ok(())
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Table V: which share of the context switches is voluntary, in whole runs with the paper's best
/// number of threads.
fn switches(platform: &Platform, rows: &[PublishedRow], table: &str) -> Result<(), Box<dyn Error>> {
    println!("\nVoluntary context switches at the paper's best number (Table V), whole runs:\n");
    println!(
        "| program | threads | paper | model | the paper's is |\n| --- | ---: | ---: | ---: | --- |"
    );
    for fields in thread_reinforcer::rows(table) {
        let [name, .., percent] = fields[..] else { return Err("a line is too short".into()) };
        let Ok(paper) = percent.parse::<f64>() else { continue };
        let row = rows.iter().find(|row| row.program == name).ok_or("a program without figures")?;
        let program = ModelProgram::built_in(name)?;
        let total = run(platform, &program, row.parameter(&program, row.opt), SEED)?.total();
        let model = total.voluntary as f64 / (total.voluntary + total.involuntary) as f64 * 100.0;
        let kind = if name == "swaptions" { "fitted" } else { "not fitted" };
        println!("| {name} | {} | {paper:.0} % | {model:.0} % | {kind} |", row.opt);
    }
    Ok(())
}

/// One program's lines of both tables.
struct Compared {
    fitted: String,
    searched: String,
    /// What the model's search chooses.
    parameter: u32,
    same_choice: bool,
    same_reason: bool,
}

fn compare(
    platform: &Platform,
    thresholds: Thresholds,
    row: &PublishedRow,
) -> Result<Compared, Box<dyn Error>> {
    let program = ModelProgram::built_in(&row.program)?;
    let at = |reported| {
        thread_reinforcer::speedups(platform, &program, row.parameter(&program, reported))
    };
    let ((opt, ..), (there, ..)) = (at(row.opt)?, at(row.found)?);
    let (n, best) = thread_reinforcer::best(platform, &program)?;
    let fitted = format!(
        "| {} | {} | {} ({best:.1}) | {:.1} | {opt:.1} | {:.1} | {there:.1} |\n",
        row.program,
        row.opt,
        row.reported(&program, n),
        row.opt_speedup,
        row.found_speedup
    );
    let found = thread_reinforcer::choice(platform, &program, thresholds, SEARCHES)?;
    let chosen = row.reported(&program, found.parameter);
    let reason = found.stopped.word();
    let (speedup, ..) = thread_reinforcer::speedups(platform, &program, found.parameter)?;
    let searched = format!(
        "| {} | {} | {chosen}{} | {} of {SEARCHES} | {} | {reason} | {:.1} % | {:.1} % |\n",
        row.program,
        row.found,
        if chosen == row.found { "" } else { " (differs)" },
        found.times,
        row.stop,
        (1.0 - row.found_speedup / row.opt_speedup) * 100.0,
        (1.0 - speedup / best).max(0.0) * 100.0,
    );
    let (parameter, same_choice) = (found.parameter, chosen == row.found);
    Ok(Compared { fitted, searched, parameter, same_choice, same_reason: reason == row.stop })
}

/// The rows of Table IV that the description of ferret was fitted to: up to this n.
const FITTED_STAGES: u32 = 15;

/// Table IV and the model: busy (USR and SYS) and LOCK per stage.
fn ferret(platform: &Platform, table: &str) -> Result<(), Box<dyn Error>> {
    let program = ModelProgram::built_in("ferret")?;
    println!("\nferret by stage, paper / model: share of its threads' time, and speed-up:\n");
    println!(
        "| threads | n | load busy % | load LOCK % | vector USR % | vector LOCK % | rank USR % | \
         rank LOCK % | speed-up | how |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
    let mut others = Vec::new();
    for fields in thread_reinforcer::rows(table) {
        let paper = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<f64>().ok())
                .ok_or("a line is too short")
        };
        let n = paper(1)? as u32;
        // Both columns of a stage.
        let stage = |role: &str, first: usize| {
            let (busy, lock) = thread_reinforcer::stage(platform, &program, n, role)?;
            let both = format!("{} / {busy:.0} | {} / {lock:.0}", paper(first)?, paper(first + 1)?);
            Ok::<_, Box<dyn Error>>(both)
        };
        let (load, load_lock) = thread_reinforcer::stage(platform, &program, n, "load")?;
        let (vector, rank) = (stage("vector", 9)?, stage("rank", 11)?);
        let (speedup, ..) = thread_reinforcer::speedups(platform, &program, n)?;
        println!(
            "| {} | {n} | {:.0} / {load:.0} | {} / {load_lock:.0} | {vector} | {rank} | {} / \
             {speedup:.1} | {} |",
            fields[0],
            paper(2)? + paper(3)?,
            paper(4)?,
            fields[15],
            if n <= FITTED_STAGES { "fitted" } else { "free" },
        );
        let (segment, extract, out) =
            (stage("segment", 5)?, stage("extract", 7)?, stage("out", 13)?);
        others.push(format!("| {} | {n} | {segment} | {extract} | {out} |", fields[0]));
    }
    println!(
        "\nThe other stages of ferret, paper / model:\n\n| threads | n | segment USR % | segment \
         LOCK % | extract USR % | extract LOCK % | out USR % | out LOCK % |\n| ---: | ---: | \
         ---: | ---: | ---: | ---: | ---: | ---: |\n{}",
        others.join("\n")
    );
    Ok(())
}

/// The critical threads of section II, and those that a probe of the chosen number marks.
fn critical(
    platform: &Platform,
    table: &str,
    chosen: impl Fn(&str) -> Option<u32>,
) -> Result<(), Box<dyn Error>> {
    println!(
        "\nCritical threads, at the number that the search on the model chooses. The share of the \
         time with work to do is in parentheses:\n"
    );
    println!("| program | paper | n | model | the others |\n| --- | --- | ---: | --- | --- |");
    for fields in thread_reinforcer::rows(table) {
        let [name, _, paper, ..] = fields[..] else { return Err("a line is too short".into()) };
        let n = chosen(name).ok_or_else(|| format!("{name}: no search for it"))?;
        let mut prober = ModelProber::new(platform.clone(), ModelProgram::built_in(name)?, SEED);
        let probed = prober.probe(n, WINDOW)?;
        let told = |critical: bool| {
            let roles = probed.roles.iter().filter(|role| role.critical == critical);
            let told = |role: &RoleTime| {
                format!("{} ({:.0} %)", role.role, ((role.ran + role.waited) * 100.0).min(100.0))
            };
            roles.map(told).collect::<Vec<String>>().join(", ")
        };
        println!("| {name} | {paper} | {n} | {} | {} |", told(true), told(false));
    }
    Ok(())
}

/// With `--probes`: what each search saw, and nothing else.
fn probes(platform: &Platform, thresholds: Thresholds) -> Result<(), Box<dyn Error>> {
    for name in ModelProgram::names() {
        let program = ModelProgram::built_in(name)?;
        println!(
            "\n{name}\n\n| T | threads | LOCK % | VCX_RATE /s | MIGR_RATE /s | CPU_UTIL % |\n| \
             ---: | ---: | ---: | ---: | ---: | ---: |"
        );
        let found = thread_reinforcer::search(platform, &program, thresholds, SEED)?;
        for attempt in &found.attempts {
            let seen = attempt.probe.profile;
            println!(
                "| {} | {} | {:.1} | {:.0} | {:.0} | {:.1} |",
                attempt.asked,
                attempt.probe.threads,
                seen.lock,
                seen.vcx_rate,
                seen.migr_rate,
                seen.cpu_util
            );
        }
        println!("\nchosen: {} ({})", found.chosen, found.stopped.word());
    }
    Ok(())
}
