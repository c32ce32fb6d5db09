//! What a search shows while it runs: one line on stderr, on a terminal only. It is redrawn at most
//! four times a second, because drawing costs time on the machine under test.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pinwise_campaign::Record;
use pinwise_measure::{Setting, ThreadCount, Unit};
use pinwise_placement::Budget;
use pinwise_present::figures::{self, Scale};
use pinwise_present::one_line;
use std::time::Duration;

/// The line.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    budget: Budget,
    unit: Unit,
    best: f64,
    baseline: f64,
}

impl ProgressLine {
    /// An empty line for a search that may spend `budget`.
    pub(crate) fn new(budget: Budget, unit: Unit) -> Self {
        let length = match budget {
            Budget::Measurements(measurements) => measurements,
            Budget::Time(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        };
        let bar =
            ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("[{elapsed_precise}] {bar:10} {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar, budget, unit, best: f64::NEG_INFINITY, baseline: f64::NEG_INFINITY }
    }

    /// Takes in one more record.
    pub(crate) fn observe(&mut self, record: &Record) {
        let performance = record.outcome.as_ref().ok().map(|measurement| measurement.performance);
        self.take(&record.trial.setting, performance, record.number + 1, record.elapsed);
    }

    /// Takes in one more measurement, the number `made` of all, `elapsed` after the begin; without
    /// a performance one that failed.
    pub(crate) fn take(
        &mut self,
        setting: &Setting,
        performance: Option<f64>,
        made: u64,
        elapsed: Duration,
    ) {
        if let Some(performance) = performance {
            let seen = match setting {
                Setting::Unpinned => Some(&mut self.baseline),
                Setting::Pinned(_) => Some(&mut self.best),
                _ => None,
            };
            if let Some(seen) = seen {
                *seen = seen.max(performance);
            }
        }
        if self.bar.position() == 0 && made > 1 {
            // Those of earlier runs say nothing about how long one takes now.
            self.bar.set_position(made - 1);
            self.bar.reset_eta();
        }
        self.bar.set_position(match self.budget {
            Budget::Measurements(_) => made,
            Budget::Time(_) => u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        });
        if let Setting::Threads(ThreadCount { n: Some(n), .. }) = setting {
            let probes = figures::counted(made, "probe");
            self.bar.set_message(format!("{probes}, the last with n = {n}"));
            return;
        }
        let measurements = figures::counted(made, "measurement");
        let typical = [self.best, self.baseline].into_iter().find(|value| value.is_finite());
        let message = if let Some(typical) = typical {
            let scale = Scale::new(&self.unit, typical);
            let [best, unpinned] =
                [self.best, self.baseline].map(|value| match value.is_finite() {
                    true => scale.number(value),
                    false => "-".to_owned(),
                });
            format!("{measurements}, best {best}, unpinned {unpinned} {}", scale.label)
        } else if let Budget::Measurements(all) = self.budget {
            let left = figures::duration(self.bar.eta());
            format!("{measurements} of {}, about {left} left", figures::count(all))
        } else {
            measurements
        };
        self.bar.set_message(one_line(&message).into_owned());
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Assignment;

    #[test]
    fn the_line_of_a_long_search_says_what_counts_in_few_words() {
        let mut progress = ProgressLine::new(Budget::Measurements(5000), Unit::rate("packets/s"));
        let pinned = Setting::Pinned(Assignment::new(vec![0, 1]));
        progress.take(&Setting::Unpinned, Some(1.124e6), 1, Duration::from_secs(1));
        progress.take(&pinned, Some(1.322e6), 4000, Duration::from_secs(3600));
        let message = progress.bar.message();
        // The time and the bar before it take 22 columns of 80.
        assert_eq!(message, "4,000 measurements, best 1.32, unpinned 1.12 M packets/s");
    }
}
