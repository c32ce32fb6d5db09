//! What the figures of the Thread Reinforcer paper show, on the model. Figure 1 is about binding, 2
//! about speed-ups, and 3 about times of critical threads. Figures 4 to 7 say why speed-ups change.
//! Section II.D has ferret with uneven stages. It prints a part of docs/lab/fidelity-threads.md.
//!
//!     cargo run --release -p pinwise-lab --example scheduler_figures -- ../shared/published

use pinwise_lab::thread_reinforcer::{self, RUNS, SEED};
use pinwise_scheduler::{Account, ModelProgram, Nanos, Platform, Simulation, Structure};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

/// Numbers of threads in the tables.
const NUMBERS: [u32; 10] = [4, 8, 16, 24, 32, 40, 48, 64, 96, 128];
/// Seconds that a program runs before it is watched, and for which it is. An iteration of swaptions
/// takes 2.5 s at least, and its end is no part of the figures.
const SETTLE: f64 = 1.0;
const WATCHED: f64 = 1.0;

type Outcome<T> = Result<T, Box<dyn Error>>;
/// By program and number of threads.
type Found<T> = BTreeMap<(String, u32), T>;

/// A program of PARSEC.
#[derive(Clone)]
struct Subject {
    program: ModelProgram,
    /// Its best number of threads in the paper.
    best: u32,
    /// The role of the critical threads; none: all.
    critical: Option<&'static str>,
}

/// What its threads do in one window.
#[derive(Clone, Copy)]
struct Seen {
    critical: Account,
    all: Account,
}

fn main() -> Outcome<()> {
    let folder = std::env::args_os().nth(1).ok_or("name the folder of published figures")?;
    let folder = PathBuf::from(folder);
    let read = |name: &str| std::fs::read_to_string(folder.join(name));
    let published = thread_reinforcer::published(&read("thread_reinforcer.csv")?)?;
    let mut subjects = Vec::new();
    for fields in thread_reinforcer::rows(&read("parsec_threads.csv")?) {
        let [name, _, critical, ..] = fields[..] else { return Err("a line is too short".into()) };
        let row = published.iter().find(|row| row.program == name).ok_or("no such program")?;
        let critical = match critical {
            "workers" => Some("workers"),
            "rank stage" => Some("rank"),
            "main" => Some("main"),
            _ => None,
        };
        subjects.push(Subject { program: ModelProgram::built_in(name)?, best: row.opt, critical });
    }
    let platform = Platform::opteron_24();
    let free = measure(&subjects, |subject, n| speedup(&platform, subject, n))?;
    let seen = measure(&subjects, |subject, n| watch(&platform, subject, n))?;
    let mut claims = binding(&platform, &subjects, &free)?;
    claims.extend(speedups(&subjects, &free));
    claims.extend(critical(&subjects, &seen));
    claims.extend(causes(&seen));
    claims.extend(uneven(&platform)?);
    claims.push(items(&platform)?);
    println!(
        "\nWhat the paper says, and the same here. \
         *Agrees*: speed-ups within 10 %, losses within 5 \
         points,\nwords as the last column says.\n\n| figure | paper | model | kind | agrees, \
         rule |\n| --- | --- | --- | --- | --- |"
    );
    for Claim { figure, paper, model, fitted, agrees, rule } in claims {
        println!(
            "| {figure} | {paper} | {model} | {} | {}{rule} |",
            if fitted { "fitted" } else { "free" },
            if agrees { "yes" } else { "no" }
        );
    }
    Ok(())
}

struct Claim {
    figure: &'static str,
    paper: &'static str,
    model: String,
    /// Whether the figure was an input of the model.
    fitted: bool,
    agrees: bool,
    /// What was compared, if that is not a number.
    rule: &'static str,
}

/// Something of each program at each number, and at its best.
fn measure<T: Send>(
    subjects: &[Subject],
    of: impl Fn(&Subject, u32) -> Outcome<T> + Sync,
) -> Outcome<Found<T>> {
    let each = |subject: &Subject| -> Result<Found<T>, String> {
        let numbers = NUMBERS.into_iter().chain([subject.best]);
        numbers
            .map(|threads| {
                let found = of(subject, parameter(subject, threads));
                let key = (subject.program.name.clone(), threads);
                Ok((key, found.map_err(|error| error.to_string())?))
            })
            .collect()
    };
    let each = &each;
    let all = std::thread::scope(|scope| {
        let running: Vec<_> =
            subjects.iter().map(|subject| scope.spawn(move || each(subject))).collect();
        let joined = running.into_iter().map(|one| one.join().map_err(|_| "a panic".to_owned())?);
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    Ok(all.into_iter().flatten().collect())
}

/// The parameter that gives this number of threads in all, or the next lower possible number.
fn parameter(subject: &Subject, threads: u32) -> u32 {
    (1..=threads).rev().find(|&n| subject.program.threads(n) <= threads.max(6)).unwrap_or(1)
}

fn speedup(platform: &Platform, subject: &Subject, n: u32) -> Outcome<f64> {
    Ok(thread_reinforcer::speedups(platform, &subject.program, n)?.0)
}

fn watch(platform: &Platform, subject: &Subject, n: u32) -> Outcome<Seen> {
    let mut simulation = Simulation::endless(platform, &subject.program, n, SEED)?;
    simulation.advance(Nanos::from_seconds(SETTLE))?;
    let before = simulation.accounts();
    simulation.advance(Nanos::from_seconds(SETTLE + WATCHED))?;
    let since = simulation.accounts().since(&before);
    let all = since.total();
    Ok(Seen { critical: subject.critical.map_or(all, |role| since.role(role)), all })
}

/// Figure 1: one thread per core, free and bound.
fn binding(platform: &Platform, subjects: &[Subject], free: &Found<f64>) -> Outcome<Vec<Claim>> {
    let mut bound = platform.clone();
    bound.bound = true;
    println!(
        "One thread per core (figure 1): what is lost against the paper's best number. Mean of \
         {RUNS} runs:\n\n| program | best: threads | parameter | threads | free: loss | bound: \
         loss |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    );
    let mut losses = BTreeMap::new();
    for subject in subjects {
        let name = &subject.program.name;
        // Of as many workers as cores. A pipeline has as many threads in all.
        let n = match subject.program.structure {
            Structure::ForkJoin(_) => platform.contexts() as u32,
            Structure::Pipeline(_) => subject.program.parameter(platform.contexts() as u32),
        };
        let best = free[&(name.clone(), subject.best)];
        let loss = |platform| Ok::<_, Box<dyn Error>>(1.0 - speedup(platform, subject, n)? / best);
        let [loose, tied] = [loss(platform)?, loss(&bound)?];
        println!(
            "| {name} | {} | {n} | {} | {} | {} |",
            subject.best,
            subject.program.threads(n),
            percent(loose),
            percent(tied)
        );
        losses.insert(name.clone(), [loose, tied]);
    }
    let worse = losses.values().filter(|[loose, tied]| tied - loose > 0.02).count();
    let near = |found: f64, published: f64| (found - published).abs() <= 0.05;
    let [swaptions, ferret] = [losses["swaptions"], losses["ferret"]];
    let claim = |figure, paper, found, published, fitted| Claim {
        figure,
        paper,
        model: percent(found),
        fitted,
        agrees: near(found, published),
        rule: "",
    };
    Ok(vec![
        claim("1, swaptions, free", "loses 9 %", swaptions[0], 0.09, true),
        claim("1, swaptions, bound", "loses 17 %", swaptions[1], 0.17, false),
        claim("1, ferret, bound", "loses 54 %", ferret[1], 0.54, false),
        Claim {
            figure: "1, most programs",
            paper: "significantly worse bound",
            model: format!("{worse} of {} are", losses.len()),
            fitted: false,
            agrees: 2 * worse > losses.len(),
            rule: ": lose 2 points more than free",
        },
    ])
}

/// Figure 2.
fn speedups(subjects: &[Subject], free: &Found<f64>) -> Vec<Claim> {
    println!(
        "\nSpeed-ups by threads in all (figure 2), \
         mean of {RUNS} runs. Where a program cannot have \
         that\nnumber, it has the next lower one:\n\n| program | {} |\n| --- |{}",
        NUMBERS.map(|threads| threads.to_string()).join(" | "),
        " ---: |".repeat(NUMBERS.len())
    );
    for subject in subjects {
        let name = &subject.program.name;
        let cells = NUMBERS.map(|threads| format!("{:.1}", free[&(name.clone(), threads)]));
        println!("| {name} | {} |", cells.join(" | "));
    }
    let at = |name: &str, threads: u32| free[&(name.to_owned(), threads)];
    let series = |name: &str, numbers: &[u32]| {
        numbers.iter().map(|&threads| format!("{:.1}", at(name, threads))).collect::<Vec<_>>()
    };
    let falls = |name: &str, numbers: &[u32]| {
        numbers.windows(2).all(|two| at(name, two[0]) > at(name, two[1]))
    };
    let rises = |name: &str, numbers: &[u32]| {
        numbers.windows(2).all(|two| at(name, two[0]) < at(name, two[1]))
    };
    let after_16 = ["blackscholes", "canneal"].map(|name| {
        let most = NUMBERS.iter().map(|&threads| at(name, threads)).fold(0.0, f64::max);
        most / at(name, 16) - 1.0
    });
    let declining = [("fluidanimate", 21), ("facesim", 16), ("streamcluster", 17)];
    vec![
        Claim {
            figure: "2, bodytrack",
            paper: "declines steadily beyond 26 threads",
            model: series("bodytrack", &[26, 32, 48, 64, 96, 128]).join(", "),
            fitted: false,
            agrees: falls("bodytrack", &[26, 32, 48, 64, 96, 128]),
            rule: ": each lower than the one before",
        },
        Claim {
            figure: "2, ferret",
            paper: "rises linearly to 63 threads",
            model: series("ferret", &[8, 16, 24, 32, 40, 48, 63]).join(", "),
            fitted: true,
            agrees: rises("ferret", &[8, 16, 24, 32, 40, 48, 63]),
            rule: ": each higher than the one before",
        },
        Claim {
            figure: "2, blackscholes, canneal",
            paper: "rise very little beyond 16 workers",
            model: after_16.map(percent).join(", "),
            fitted: true,
            agrees: after_16.iter().all(|gain| *gain <= 0.2),
            rule: ": by at most 20 %",
        },
        Claim {
            figure: "2, fluidanimate, facesim, streamcluster",
            paper: "fall beyond the best number",
            model: declining
                .map(|(name, best)| series(name, &[best, 32, 64]).join(", "))
                .join("; "),
            fitted: false,
            agrees: declining.iter().all(|&(name, best)| falls(name, &[best, 32, 64])),
            rule: ": lower with 32, and again with 64",
        },
    ]
}

/// Figure 3.
fn critical(subjects: &[Subject], seen: &Found<Seen>) -> Vec<Claim> {
    println!(
        "\nTimes of the critical threads at the paper's best number (figure 3), over {WATCHED} \
         s:\n\n| program | threads | critical | USR % | SYS % | LCK % | LAT % | SLP % |\n| --- | \
         ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    );
    let mut systems = Vec::new();
    for subject in subjects {
        let name = &subject.program.name;
        let account = seen[&(name.clone(), subject.best)].critical;
        let parts = [account.user, account.system, account.lock, account.latency, account.sleep];
        let shares = parts.map(|part| share(part, account));
        println!(
            "| {name} | {} | {} | {} |",
            subject.best,
            subject.critical.unwrap_or("all"),
            shares.map(|share| format!("{share:.1}")).join(" | ")
        );
        systems.push((name.as_str(), shares[1]));
    }
    systems.sort_by(|one, other| other.1.total_cmp(&one.1));
    let two: Vec<&str> = systems.iter().take(2).map(|(name, _)| *name).collect();
    vec![Claim {
        figure: "3, highest SYS",
        paper: "canneal, blackscholes",
        model: two.join(", "),
        fitted: false,
        agrees: ["canneal", "blackscholes"].iter().all(|name| two.contains(name)),
        rule: "",
    }]
}

/// Figures 4 to 7.
fn causes(seen: &Found<Seen>) -> Vec<Claim> {
    println!(
        "\nWhy speed-ups change (figures 4 to 7): LCK and LAT as shares of the time of critical \
         threads,\nvoluntary switches and migrations per second of all:\n\n| program | threads | \
         LCK % | LAT % | switches | migrations |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    );
    let row = |name: &str, threads: u32| {
        let Seen { critical, all } = seen[&(name.to_owned(), threads)];
        let rate = |count: u64| count as f64 / WATCHED;
        [
            share(critical.lock, critical),
            share(critical.latency, critical),
            rate(all.voluntary),
            rate(all.migrations),
        ]
    };
    for name in ["swaptions", "bodytrack", "fluidanimate", "facesim", "streamcluster"] {
        for threads in [8, 16, 24, 32, 40, 48, 64] {
            let [lock, latency, switches, migrations] = row(name, threads);
            println!(
                "| {name} | {threads} | {lock:.1} | {latency:.1} | {switches:.0} | {migrations:.0} \
                 |"
            );
        }
    }
    let [lock, latency, switches, migrations] = [0, 1, 2, 3];
    let of = |name: &str, numbers: &[u32], which: usize| -> Vec<f64> {
        numbers.iter().map(|&threads| row(name, threads)[which]).collect()
    };
    let rises = |values: &[f64]| values.windows(2).all(|two| two[0] < two[1]);
    let show = |values: &[f64]| {
        values.iter().map(|value| format!("{value:.0}")).collect::<Vec<_>>().join(", ")
    };
    let beyond = [24, 32, 40, 48, 64];
    let few = [8, 16, 24];
    let low = of("swaptions", &beyond, lock);
    let waiting = of("swaptions", &beyond, latency);
    let moved = of("swaptions", &[40, 48], migrations);
    let track = [lock, latency, migrations].map(|which| of("bodytrack", &beyond, which));
    let three = ["fluidanimate", "facesim", "streamcluster"];
    let locks = three.map(|name| of(name, &few, lock));
    let waits = three.map(|name| of(name, &few, latency));
    let rates = three.map(|name| of(name, &few, switches));
    let free = |figure, paper, model, agrees, rule| Claim {
        figure,
        paper,
        model,
        fitted: false,
        agrees,
        rule,
    };
    vec![
        free(
            "4(a), swaptions, LCK %",
            "very low throughout",
            show(&low),
            low.iter().all(|share| *share < 5.0),
            ": below 5 % from 24 to 64 threads",
        ),
        free(
            "4(a), swaptions, LAT %",
            "rises steadily",
            show(&waiting),
            rises(&waiting),
            ": from 24 to 64 threads",
        ),
        free(
            "4(b), swaptions, migrations/s",
            "fewer with 48 threads than with 40",
            show(&moved),
            moved[1] < moved[0],
            "",
        ),
        free(
            "5, bodytrack, LCK %, LAT %, migrations/s",
            "all rise with the threads",
            track.each_ref().map(|values| show(values)).join("; "),
            track.iter().all(|values| rises(values)),
            ": from 24 to 64 threads",
        ),
        free(
            "6, fluidanimate, facesim, streamcluster, LCK %",
            "rises dramatically",
            locks.each_ref().map(|values| show(values)).join("; "),
            locks.iter().all(|values| values[2] >= 2.0 * values[0]),
            ": twice as much with 24 threads as with 8",
        ),
        free(
            "6, the same, LAT %",
            "rises modestly or not",
            waits.each_ref().map(|values| show(values)).join("; "),
            waits.iter().all(|values| values[2] - values[0] <= 5.0),
            ": by at most 5 points from 8 to 24 threads",
        ),
        free(
            "7, the same, switches/s",
            "rise with the threads",
            rates.each_ref().map(|values| show(values)).join("; "),
            rates.iter().all(|values| rises(values)),
            ": from 8 to 24 threads",
        ),
    ]
}

/// Section II.D: ferret with more threads in its rank stage than in the others.
fn uneven(platform: &Platform) -> Outcome<Vec<Claim>> {
    let ferret = ModelProgram::built_in("ferret")?;
    let with = |others: u32, rank: u32| -> Outcome<f64> {
        let mut program = ferret.clone();
        let Structure::Pipeline(shape) = &mut program.structure else {
            return Err("ferret is a pipeline".into());
        };
        for stage in shape.stages.iter_mut().filter(|stage| stage.many) {
            stage.threads = Some(if stage.name == "rank" { rank } else { others });
        }
        Ok(thread_reinforcer::speedups(platform, &program, 1)?.0)
    };
    let claim = |figure, found: f64| Claim {
        figure,
        paper: "13.9",
        model: format!("{found:.1}"),
        fitted: false,
        agrees: (found / 13.9 - 1.0).abs() <= 0.1,
        rule: "",
    };
    Ok(vec![
        claim("II.D, ferret (1, 10, 10, 10, 16, 1)", with(10, 16)?),
        claim("II.D, ferret (1, 16, 16, 16, 16, 1)", with(16, 16)?),
    ])
}

/// Table V, ferret: the share of voluntary switches by the work of an item. The description has
/// items of 20 ms. The native input has 3,500 queries, and the sequential program takes `whole_s`
/// (C. Bienia, "Benchmarking Modern Multiprocessors", 2011).
fn items(platform: &Platform) -> Outcome<Claim> {
    const QUERIES: u32 = 3500;
    let ferret = ModelProgram::built_in("ferret")?;
    let native = 1e3 * ferret.whole_s.ok_or("its length is known")? / f64::from(QUERIES);
    println!(
        "\nferret with 63 threads and {QUERIES} items, by the work of an item:\n\n| work of an \
         item | speed-up | voluntary switches |\n| ---: | ---: | ---: |"
    );
    let mut voluntary = f64::NAN;
    for work_ms in [ferret.fitted.work_ms, 40.0, 80.0, native] {
        let mut program = ferret.clone();
        let longer = work_ms / program.fitted.work_ms;
        program.fitted.work_ms = work_ms;
        program.fitted.stage_ms.iter_mut().for_each(|stage| *stage *= longer);
        if let Structure::Pipeline(shape) = &mut program.structure {
            shape.items = QUERIES;
        }
        let run = pinwise_scheduler::run(platform, &program, 15, SEED)?;
        let (total, speed) = (run.total(), program.sequential().seconds() / run.at.seconds());
        voluntary = total.voluntary as f64 / (total.voluntary + total.involuntary) as f64;
        println!("| {work_ms:.0} ms | {speed:.1} | {} |", percent(voluntary));
    }
    Ok(Claim {
        figure: "Table V, ferret, native items",
        paper: "13 % voluntary",
        model: percent(voluntary),
        fitted: false,
        agrees: (voluntary - 0.13).abs() <= 0.05,
        rule: ": within 5 points",
    })
}

fn share(part: Nanos, account: Account) -> f64 {
    100.0 * part.seconds() / account.elapsed().seconds()
}

fn percent(share: f64) -> String {
    // Adding 0 takes the sign from what is rounded to -0.
    format!("{:.1} %", (1000.0 * share).round() / 10.0 + 0.0)
}
