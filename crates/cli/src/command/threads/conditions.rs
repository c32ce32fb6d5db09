//! From what was typed to what is searched.

use super::arguments::{Asked, Least, Method};
use super::observed::Conditions;
use super::usage;
use crate::output::{Usage, read_input};
use anyhow::Context as _;
use pinwise_present::figures;
use pinwise_programs::Setter;
use pinwise_threads::{Objective, ThreadRange, Thresholds, standing};
use std::path::Path;
use std::time::Duration;

/// What may be spent where nothing is said and the length of the program's run is not known.
const BUDGET: Duration = Duration::from_secs(120);

/// How often a sweep tries each number where nothing is said.
const ROUNDS: u32 = 3;

impl Asked {
    /// What is searched and how, on so many contexts. `convert` is the program's Convert(),
    /// `threads` how many threads it makes for its parameter.
    pub(super) fn conditions(
        &self,
        contexts: u32,
        convert: impl Fn(u32) -> u32,
        threads: impl Fn(u32) -> u32,
    ) -> anyhow::Result<Conditions> {
        let (published, is_published) =
            (ThreadRange::published_on(contexts), self.method == Method::Reinforcer);
        let step = self.step.unwrap_or(if is_published { published.step } else { 1 });
        // Where one n makes more than that there are two at least to choose from.
        let most =
            || self.min.unwrap_or(1).max(self.most(contexts)).max(standing(2, &convert, &threads));
        let max = self.max.unwrap_or_else(most);
        let min = self.min.unwrap_or(if is_published { step.min(max).max(1) } else { 1 });
        let span = ThreadRange { min, max, step };
        // Only the published search takes half a step.
        let least = if is_published { 2 } else { 1 };
        let span = span.check(least).map_err(usage)?;
        if !is_published && span.candidates(&convert, &threads).is_empty() {
            let n = convert(span.max);
            let made = [n, n + 1].map(|n| format!("n = {n} makes {}", threads(n)));
            let (ThreadRange { min, max, .. }, made) = (span, made.join(", "));
            return Err(Usage(format!(
                "no n makes {min} to {max} threads: {made}; --min and --max count threads"
            ))
            .into());
        }
        let budget = self.budget();
        if self.method == Method::Survey && self.probe > budget {
            let (probe, budget) = (figures::duration(self.probe), figures::duration(budget));
            return Err(Usage(format!(
                "--probe {probe} is longer than --budget {budget}: not one probe fits"
            ))
            .into());
        }
        if self.rounds.is_some() && self.method != Method::Sweep {
            let method = self.method.name();
            return Err(Usage(format!(
                "--rounds is for a sweep, --method {method} decides itself how often a number is probed: leave it out, or add --method sweep"
            ))
            .into());
        }
        if self.pieces.is_some() && self.method != Method::Survey {
            let method = self.method.name();
            return Err(Usage(format!(
                "--pieces is for a survey, --method {method} does not count them: leave one out"
            ))
            .into());
        }
        if self.pieces.is_some() && self.whole_run {
            return Err(Usage(
                "whole runs show by themselves how pieces divide: leave --pieces out, or name a --metric to look at moments"
                    .into(),
            )
            .into());
        }
        if self.thresholds.is_some() && !is_published {
            let method = self.method.name();
            return Err(Usage(format!(
                "--thresholds is for the published search, --method {method} looks at none: leave it out, or add --method reinforcer"
            ))
            .into());
        }
        let thresholds = match &self.thresholds {
            None => Thresholds::scaled(span.step, contexts),
            Some(path) => read_thresholds(path)
                .with_context(|| format!("cannot read thresholds from {}", path.display()))?,
        };
        let (method, rounds, tolerance) = (self.method, self.rounds.unwrap_or(ROUNDS), self.within);
        let (window, whole_runs) = (self.probe, false);
        let objective = match self.objective {
            Least::Time => Objective::Time,
            Least::Energy => Objective::Energy,
            Least::Edp => Objective::Edp,
        };
        let (work, pieces, goes_on, counted) = (None, self.pieces, false, false);
        let bound = match self.max {
            Some(_) => Some("--max allows: more may be faster, raise it to see"),
            // More contexts than there are cannot be granted.
            None if self.grants() => None,
            None => Some("is tried without --max: more may be faster, --max N tries up to N"),
        };
        Ok(Conditions {
            method,
            span,
            bound,
            thresholds,
            window,
            whole_runs,
            pieces,
            rounds,
            tolerance,
            objective,
            budget,
            work,
            goes_on,
            counted,
        })
    }

    /// What may be spent on everything.
    pub(crate) fn budget(&self) -> Duration {
        self.budget.unwrap_or(BUDGET)
    }

    /// The most that makes sense where nothing is said: more than there are contexts cannot be
    /// granted, but may be started.
    fn most(&self, contexts: u32) -> u32 {
        match self.method {
            _ if self.grants() => contexts,
            Method::Reinforcer => ThreadRange::published_on(contexts).max,
            Method::Survey | Method::Sweep => contexts.saturating_mul(2),
        }
    }

    /// n is how many contexts the program may use.
    fn grants(&self) -> bool {
        self.set.as_ref().is_some_and(Setter::counts_contexts)
    }
}

/// What counts as high, from a file as `calibrate` writes it.
fn read_thresholds(path: &Path) -> anyhow::Result<Thresholds> {
    let text = String::from_utf8(read_input(path)?).map_err(|_| Usage("it is no text".into()))?;
    let needed = |error: toml::de::Error| {
        let names = Thresholds::NAMES.join(", ");
        Usage(format!(
            "{}; it needs {names}, each a number above 0: pinwise threads calibrate writes such a file",
            error.message()
        ))
    };
    let thresholds: Thresholds = toml::from_str(&text).map_err(needed)?;
    Ok(thresholds.check().map_err(usage)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_all_there_and_above_0() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("thresholds.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_thresholds(&path).map_err(|error| error.to_string())
        };
        let sound = toml::to_string(&Thresholds::OPTERON_24).unwrap();
        assert_eq!(read(&sound), Ok(Thresholds::OPTERON_24));
        let refused = read(&sound.replace("delta_lock = 8.26", "delta_lock = nan")).unwrap_err();
        assert!(refused.starts_with("delta_lock = NaN is no threshold"), "{refused}");
        let refused = read(&sound.replace("lock = 41.3\n", "")).unwrap_err();
        assert!(
            refused.contains("missing field `lock`; it needs lock, delta_lock, delta_vcx_rate"),
            "{refused}"
        );
    }
}
