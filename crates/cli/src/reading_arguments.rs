//! `--pick`, `--counter` and the like: how the number of a metric is read.

use clap::Args;
use pinwise_jobs::ReadingOptions;

/// How the number of `--metric` is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReadingArguments {
    /// Read the number that the ( ) of this regex matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) pick: Option<String>,
    /// Use the rate of a growing number [default: detected]
    #[arg(long, conflicts_with = "gauge", hide_short_help = true)]
    pub(crate) counter: bool,
    /// Use the mean of the number [default: detected]
    #[arg(long, hide_short_help = true)]
    pub(crate) gauge: bool,
    /// Prefer low numbers, as for latency or misses
    #[arg(long, alias = "minimize")]
    lower_is_better: bool,
    /// Name the unit: chunks, if the rate is chunks/s
    #[arg(long, hide_short_help = true)]
    unit: Option<String>,
}

impl ReadingArguments {
    /// What was typed; what was not is as `usual`.
    pub(crate) fn reading(&self, usual: ReadingOptions) -> ReadingOptions {
        let counter = if self.counter { Some(true) } else { self.gauge.then_some(false) };
        ReadingOptions {
            pick: self.pick.clone(),
            counter: counter.or(usual.counter),
            lower_is_better: self.lower_is_better,
            unit: self.unit.clone().or(usual.unit),
            ..usual
        }
    }
}
