//! How often the interval of a gain misses the truth, in simulated last comparisons of two ways.
//! Intervals come from means, or from ranks as in `threads` and `tune`. Prints the table of
//! docs/method/threads.md ("Fresh windows"). Takes a minute of CPU time in a release build.
//!
//! A comparison looks at its gains and ends as a search with `--within 1%` does. The time of
//! `--budget` is 100 rounds. On the quiet machine windows differ by normal noise. On the others,
//! other programs also slow 3 % or 30 % of the windows, by up to twenty times.

use pinwise_placement::{ComparedRounds, GainRule, Way};
use pinwise_topology::Random;

const COMPARISONS: u32 = 6000;
const MOST_ROUNDS: usize = 100;

fn main() {
    println!(
        "| machine | noise | gain | missed by means | by ranks | half width by means | by ranks |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (machine, slowed) in [("quiet", 0.0), ("rare bursts", 0.03), ("busy", 0.3)] {
        for (noise, gain) in [0.01, 0.05].into_iter().flat_map(|of| [(of, 0.0), (of, 0.05)]) {
            let [means, ranks] =
                [GainRule::Means, GainRule::Ranks].map(|rule| missed(noise, gain, slowed, rule));
            println!(
                "| {machine} | {:.0} % | {:.0} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
                noise * 100.0,
                gain * 100.0,
                means.0 * 100.0,
                ranks.0 * 100.0,
                means.1 * 100.0,
                ranks.1 * 100.0
            );
        }
    }
}

/// The share of comparisons whose last interval misses the gain, and the mean half of its width.
fn missed(noise: f64, gain: f64, slowed: f64, rule: GainRule) -> (f64, f64) {
    let mut random = Random::new(1);
    let (mut missed, mut widths) = (0, 0.0);
    for _ in 0..COMPARISONS {
        let new = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
        let mut rounds = new.with_looks(ComparedRounds::LOOKS).by(rule);
        loop {
            let mut window = |speed: f64| {
                let slow = if random.unit() < slowed { 1.0 - 0.95 * random.unit() } else { 1.0 };
                Some(speed * slow * (1.0 + noise * random.normal()))
            };
            rounds.take(vec![window(1.0), window(1.0 + gain)]);
            if rounds.count() == MOST_ROUNDS || rounds.is_settled(false, 0.005) {
                break;
            }
        }
        let shown = rounds.gain(Way::Number, Way::Default).expect("there are enough rounds");
        missed += u32::from(gain < shown.low || gain > shown.high);
        widths += (shown.high - shown.low) / 2.0;
    }
    (f64::from(missed) / f64::from(COMPARISONS), widths / f64::from(COMPARISONS))
}
