//! What a search for a number of threads recommends, in a line.

use pinwise_threads::{Interval, NumberAdvice};

/// `n = 26 (23-29), speed-up 11.4 ± 0.3, n = 72 costs 4 ± 2 %`
pub(crate) fn advice_text(advice: &NumberAdvice) -> String {
    let NumberAdvice { threads: n, between: (low, high), probed, .. } = advice;
    let unprobed = if *probed { "" } else { ", not probed" };
    let answer = format!("n = {n} ({low}-{high}{unprobed})");
    if advice.numbers == 1 && low < high {
        let only =
            if *probed { "the only number probed" } else { "by probes of a single other number" };
        return format!("{answer}, {only}: no speed-up is known");
    }
    let about = if *probed { "" } else { "about " };
    let gain = format!("{about}{}", times(&advice.gain));
    let gain = match (advice.reference, advice.reference_threads) {
        (Some(n), _) if advice.threads == n => String::new(),
        // One thread, or one in addition to the first, which waits for it.
        (None, _) | (Some(1), 1 | 2) => format!(", speed-up {gain}"),
        (Some(n), threads) if n == threads => format!(", {gain} times n = {n}"),
        (Some(n), threads) => format!(", {gain} times n = {n} ({threads} threads)"),
    };
    let more = advice.more.map_or(String::new(), |(n, cost)| format!(", {}", more(n, &cost)));
    format!("{answer}{gain}{more}")
}

/// What a greater number `n` costs, as a share of the speed.
fn more(n: u32, cost: &Interval<f64>) -> String {
    let half = half(cost) * 100.0;
    let decimals = usize::from(half < 1.0);
    let percent = |share: f64| format!("{:.decimals$}", share * 100.0);
    // The ratio of the two speeds is 1 - cost.
    let skewed = is_skewed(&Interval {
        value: 1.0 - cost.value,
        low: 1.0 - cost.high,
        high: 1.0 - cost.low,
    });
    let with_error = |does: &str, value: f64, low: f64, high: f64| {
        let value = percent(value);
        match skewed {
            // More than twice as fast with more threads: that end of the interval is not known.
            true if cost.low < -1.0 && does == "costs" => {
                format!("n = {n} {does} {value} % (at most {} %)", percent(high))
            }
            true => format!("n = {n} {does} {value} % ({} to {} %)", percent(low), percent(high)),
            false => format!("n = {n} {does} {value} ± {half:.decimals$} %"),
        }
    };
    match cost.value {
        share if share >= 0.005 => with_error("costs", share, cost.low, cost.high),
        share if share <= -0.005 => with_error("gains", -share, -cost.high, -cost.low),
        _ if skewed => {
            format!(
                "n = {n} is as fast (gains {} to {} %)",
                percent(-cost.high),
                percent(-cost.low)
            )
        }
        _ => format!("n = {n} is as fast (± {half:.decimals$} %)"),
    }
}

/// If half of an interval exceeds this share of its value, both ends are printed. Such intervals
/// are skewed: the value minus half may be impossible.
const SKEWED: f64 = 0.3;

/// `11.4 ± 0.3`, or `1.6 (0.7 to 13.2)`.
fn times(interval: &Interval<f64>) -> String {
    let half = half(interval);
    let decimals = [0.1, 0.01].iter().position(|&least| half >= least).map_or(3, |index| index + 1);
    let Interval { value, low, high } = interval;
    if is_skewed(interval) {
        return format!("{value:.decimals$} ({low:.decimals$} to {high:.decimals$})");
    }
    format!("{value:.decimals$} ± {half:.decimals$}")
}

fn half(interval: &Interval<f64>) -> f64 {
    (interval.high - interval.low) / 2.0
}

/// Of a value that is above 0.
fn is_skewed(interval: &Interval<f64>) -> bool {
    half(interval) > SKEWED * interval.value
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_threads::SpeedSearchEnd;

    fn advice() -> NumberAdvice {
        NumberAdvice {
            threads: 26,
            between: (23, 29),
            open: Vec::new(),
            value: Interval { value: 8.7, low: 8.5, high: 8.9 },
            gain: Interval { value: 11.4, low: 11.1, high: 11.7 },
            reference: Some(1),
            reference_threads: 1,
            probed: true,
            loss: 0.001,
            more: Some((72, Interval { value: 0.04, low: 0.02, high: 0.06 })),
            ended: SpeedSearchEnd::Settled,
            probes: 7,
            numbers: 6,
            readings: 2,
        }
    }

    #[test]
    fn the_text_separates_certain_from_uncertain() {
        assert_eq!(
            advice_text(&advice()),
            "n = 26 (23-29), speed-up 11.4 ± 0.3, n = 72 costs 4 ± 2 %"
        );
        let gain = Interval { value: 1.234, low: 1.22, high: 1.26 };
        let unsure = NumberAdvice { probed: false, gain, more: None, ..advice() };
        assert_eq!(advice_text(&unsure), "n = 26 (23-29, not probed), speed-up about 1.23 ± 0.02");
        // A pipeline of several pools: n = 1 is far from sequential.
        let pipeline = NumberAdvice { reference_threads: 7, gain, more: None, ..advice() };
        assert_eq!(advice_text(&pipeline), "n = 26 (23-29), 1.23 ± 0.02 times n = 1 (7 threads)");
        let eight =
            NumberAdvice { reference: Some(8), reference_threads: 8, gain, more: None, ..advice() };
        assert_eq!(advice_text(&eight), "n = 26 (23-29), 1.23 ± 0.02 times n = 8");
        let fewest = NumberAdvice {
            threads: 1,
            between: (1, 3),
            gain: Interval { value: 1.0, low: 1.0, high: 1.0 },
            ..advice()
        };
        assert_eq!(advice_text(&fewest), "n = 1 (1-3), n = 72 costs 4 ± 2 %");
        let of = |value, low, high| NumberAdvice {
            more: Some((72, Interval { value, low, high })),
            ..fewest.clone()
        };
        assert_eq!(
            advice_text(&of(0.001, -0.004, 0.006)),
            "n = 1 (1-3), n = 72 is as fast (± 0.5 %)"
        );
        assert_eq!(advice_text(&of(-0.12, -0.20, -0.04)), "n = 1 (1-3), n = 72 gains 12 ± 8 %");
        let single = NumberAdvice { numbers: 1, ..advice() };
        assert_eq!(
            advice_text(&single),
            "n = 26 (23-29), the only number probed: no speed-up is known"
        );
        let only = NumberAdvice { between: (26, 26), more: None, reference: Some(26), ..single };
        assert_eq!(advice_text(&only), "n = 26 (26-26)", "there is no other");
        assert_eq!(
            advice_text(&advice().over_sequential(2.0)),
            "n = 26 (23-29), speed-up 17.4 ± 0.4, n = 72 costs 4 ± 2 %"
        );
    }

    #[test]
    fn wide_intervals_are_shown_by_their_ends() {
        let of =
            |gain, more| advice_text(&NumberAdvice { gain, more: Some((72, more)), ..advice() });
        let wide = Interval { value: 1.6, low: 0.7, high: 13.1 };
        let gains = Interval { value: -0.5, low: -1.31, high: 0.11 };
        assert_eq!(
            of(wide, gains),
            "n = 26 (23-29), speed-up 1.6 (0.7 to 13.1), n = 72 gains 50 % (-11 to 131 %)"
        );
        let costs = Interval { value: 0.5, low: 0.2, high: 0.7 };
        assert_eq!(
            of(wide, costs),
            "n = 26 (23-29), speed-up 1.6 (0.7 to 13.1), n = 72 costs 50 % (20 to 70 %)"
        );
        let unknown = Interval { value: 0.03, low: -10.93, high: 0.49 };
        assert!(of(wide, unknown).ends_with(", n = 72 costs 3 % (at most 49 %)"));
        let none = Interval { value: 0.0, low: -0.6, high: 0.4 };
        assert_eq!(
            of(wide, none),
            "n = 26 (23-29), speed-up 1.6 (0.7 to 13.1), n = 72 is as fast (gains -40 to 60 %)"
        );
    }
}
