//! `place --strategy blackbox --dry-run`: what profiling takes, on one line.

use super::arguments::Place;
use crate::events::{self, Terminal};
use crate::output;
use pinwise_jobs::ProfilingCost;
use pinwise_present::{ProfilingOutlook, level_source, profiling_outlook, tagged};
use serde::Serialize;
use serde_json::Value;

/// What profiling takes at most, as `--json` prints it.
#[derive(Serialize)]
struct ProfilingCostJson {
    core_local: String,
    core_local_because: Value,
    /// Experiments of one instance alone, of a thread with co-runners, in all.
    base: f64,
    slowdown: f64,
    experiments: f64,
    /// On a model, of the model's time.
    seconds: f64,
    /// On a model, of this machine's time.
    seconds_here: Option<f64>,
}

impl Place {
    /// Prints the cost of profiling. Starts nothing.
    pub(super) fn print_profiling_cost(&self) -> anyhow::Result<()> {
        let (request, caller) = (self.request()?, events::caller(self.store.named())?);
        let store = self.store.open_existing()?;
        let mut terminal = Terminal::new(self.json);
        let cost = pinwise_jobs::profiling_cost(&request, &caller, store.as_ref(), &mut terminal);
        let ProfilingCost { outlook, level, because } = cost.map_err(events::failed)?;
        let level = level.name();
        if self.json {
            let ProfilingOutlook { alone, company, each, here } = outlook;
            return output::print_json(&ProfilingCostJson {
                core_local: level.to_owned(),
                core_local_because: tagged(&because, level_source(&because)),
                base: alone,
                slowdown: company,
                experiments: alone + company,
                seconds: (alone + company) * each,
                seconds_here: here,
            });
        }
        let outlook = profiling_outlook(&outlook);
        let because = level_source(&because);
        output::print(&format!("{outlook}; threads interfere within a {level} ({because})\n"))
    }
}
