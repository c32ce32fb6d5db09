//! The search that looks at speed, on modelled programs of five kinds. Its choice is compared with
//! whole runs, and its cost with its limit. docs/lab/fidelity-threads.md has all sixteen programs.

use pinwise_lab::sweep::{PAIR, ParameterSweep, survey_model, whole};
use pinwise_scheduler::{ModelProgram, Platform};
use pinwise_threads::PROBE_SHARE;
use std::error::Error;

/// Parameters around the best, behind dips and beyond, among which a sweep of whole runs has its
/// fastest.
const PROGRAMS: [(&str, &[u32]); 5] = [
    // Beyond a dip, after a long start: five probes.
    ("bodytrack", &[24, 44, 48, 52]),
    // 128 pieces that do not divide.
    ("swaptions", &[26, 64, 68, 72]),
    // Fewer threads than contexts, since they spin at barriers.
    ("ammp", &[21, 22, 23]),
    // A serial part: flat from a third of the contexts on.
    ("blackscholes", &[45, 48, 72]),
    // A pipeline.
    ("ferret", &[14, 15, 16]),
];

#[test]
fn searches_are_within_two_percent_of_the_best_in_the_mean_and_keep_to_their_time()
-> Result<(), Box<dyn Error>> {
    let platform = Platform::opteron_24();
    for (name, known) in PROGRAMS {
        let program = ModelProgram::built_in(name)?;
        let mut sweep = ParameterSweep::at(&platform, &program, PAIR, known.iter().copied())?;
        let (_, best) = sweep.best();
        let mut losses = Vec::new();
        for seed in 1..=3 {
            let (found, _) = survey_model(&platform, &program, seed)?;
            let speed = sweep.speed(found.parameter)?;
            let share = found.cost().as_secs_f64() * speed / whole(&program)?;
            assert!(share <= PROBE_SHARE, "{name}, seed {seed}: {share:.4} of the run");
            losses.push((found.parameter, 1.0 - speed / best));
        }
        let mean = losses.iter().map(|(_, loss)| loss.max(0.0)).sum::<f64>() / losses.len() as f64;
        assert!(mean <= 0.02, "{name}: {losses:?}");
    }
    Ok(())
}
