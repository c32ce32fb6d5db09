//! Plan files: on the command line, and beside the store.

use crate::output::{Stdout, Usage, aside, read_input};
use crate::store::StoreArguments;
use anyhow::Context as _;
use clap::Args;
use pinwise_campaign::{CampaignId, CampaignInfo};
use pinwise_jobs::{ApplyError, NoPlan, NumberOutcome, PlanEvent};
use pinwise_placement::{Plan, PlannedNumber};
use pinwise_present::{plan_caution, plan_difference, shell, stop_reasons};
use std::path::{Path, PathBuf};

/// The plan a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanArgument {
    /// A plan file, or the number of the campaign that found the plan
    #[arg(value_name = "PLAN")]
    path: PathBuf,
    /// The store of that campaign [default: pinwise/pinwise.db in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

impl PlanArgument {
    /// A plan that pinwise itself wrote.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), store: None }
    }

    /// Reads the plan, and says on stderr what its search did not advise.
    pub(crate) fn load(&self) -> anyhow::Result<Plan> {
        let path = match (self.path.exists(), &self.store) {
            (true, None) => None,
            (true, Some(_)) => {
                let file = self.path.display();
                let why = format!("--store is for the number of a campaign, and {file} is a file");
                return Err(Usage(format!("{why}: leave --store out")).into());
            }
            (false, _) => self.of_campaign()?,
        };
        let path = path.as_deref().unwrap_or(&self.path);
        let what = || format!("cannot read plan {}", path.display());
        let bytes = read_input(path).with_context(what)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Usage("it is not a text file".into()))
            .with_context(what)?;
        let plan =
            Plan::parse(&text).map_err(|error| Usage(error.to_string())).with_context(what)?;
        if let Some(caution) = plan_caution(&plan) {
            let file = path.display();
            aside(&format!("warning: this plan may not help. {caution} See [origin] in {file}."));
        }
        Ok(plan)
    }

    /// The plan of a campaign of the store, if a number is given.
    fn of_campaign(&self) -> anyhow::Result<Option<PathBuf>> {
        let number = self.path.to_str().and_then(|word| word.parse().ok());
        let Some(number) = number else { return Ok(None) };
        let arguments = StoreArguments::at(self.store.as_deref());
        let campaign = arguments
            .open_existing()?
            .and_then(|store| store.get(CampaignId(number)).ok().map(|info| (store, info)));
        let Some((store, info)) = campaign else {
            let path = arguments.path()?;
            let none = format!(
                "there is no file {number} and no campaign {number} in {}: name the plan's file, \
                 or the store with --store",
                path.display()
            );
            return Err(Usage(none).into());
        };
        pinwise_jobs::plan_path(&store, &info)
            .map(Some)
            .ok_or_else(|| Usage(without_plan(&info)).into())
    }
}

/// Why there is no plan beside the store of this campaign, and what to do.
fn without_plan(info: &CampaignInfo) -> String {
    let number = info.id.0;
    match NoPlan::of(info) {
        NoPlan::Kind(kind) => format!(
            "campaign {number} is of kind {}, which has no plan: only place and tune write plans",
            kind.name()
        ),
        NoPlan::Part(CampaignId(whole)) => format!(
            "campaign {number} is a part of campaign {whole} and has no plan: name campaign {whole}"
        ),
        NoPlan::Running => format!("campaign {number} is still running and has no plan yet"),
        NoPlan::NotFinished => format!(
            "campaign {number} is not finished and has no plan yet: continue with pinwise \
             campaign resume {number}"
        ),
        NoPlan::Undecided(reasons) => format!(
            "campaign {number} ended undecided and has no plan ({}): search again with a larger \
             --budget; it was: {}",
            stop_reasons(&reasons),
            shell(&info.new.command)
        ),
        NoPlan::Gone => format!(
            "the plan of campaign {number} was moved or deleted: name its file, or write it again \
             with pinwise campaign resume {number}"
        ),
        NoPlan::None => format!(
            "campaign {number} has no plan: see its answer with pinwise campaign show {number}"
        ),
    }
}

/// Notes on stderr that a plan of this machine uses a CPU that it lacks. A plan of another machine
/// is for use there.
pub(crate) fn note_lacking(plan: &Plan) {
    let Ok(machine) = pinwise_linux::this_machine() else { return };
    let is_ours = plan.machine.topology == pinwise_linux::fingerprint(&machine).topology;
    if let Some(lacking) = plan.lacking(&machine.allowed).filter(|_| is_ours) {
        let lacking = plan_difference(&lacking);
        aside(&format!("note: {lacking}: bring it online, or place again"));
    }
}

/// Prints on stderr what happens while a plan is used, except the threads that are pinned.
pub(crate) fn print_event(event: &PlanEvent<'_>) {
    let text = match event {
        PlanEvent::Difference(difference) => format!("warning: {}", plan_difference(difference)),
        PlanEvent::Number { n, outcome } => number_text(*n, *outcome),
        PlanEvent::NoPins => {
            "note: the plan pins no thread: all stay where they may run now".into()
        }
        PlanEvent::Note(note) => format!("note: {}", pinwise_present::note(note)),
        PlanEvent::GivenUp(error) => format!("warning: no more threads are pinned: {error}"),
        PlanEvent::Pinned(_) => return,
    };
    aside(&text);
}

/// What becomes of a plan's number, and what to do about it.
fn number_text(n: u32, outcome: NumberOutcome<'_>) -> String {
    let place = PlannedNumber::PLACE;
    match outcome {
        NumberOutcome::Settable(command) => {
            format!("note: --set would set n = {n} with: {command}")
        }
        NumberOutcome::NotAsked(command) => format!(
            "note: the plan is for n = {n}, the program keeps its number; add --set to run: \
             {command}"
        ),
        NumberOutcome::Set(command) => format!("note: n = {n} was set with: {command}"),
        NumberOutcome::NeedsStart => format!(
            "note: the plan is for n = {n}, which needs a new start: pinwise run PLAN -- CMD \
             {place}"
        ),
        NumberOutcome::Unused => {
            format!("warning: the plan's n = {n} is not used: write {place} where CMD takes it")
        }
    }
}

/// The error of a plan that could not be used, with its exit code.
pub(crate) fn failed(error: ApplyError) -> anyhow::Error {
    match error {
        ApplyError::Output(error) => Stdout(error).into(),
        error if error.is_usage() => Usage(error.to_string()).into(),
        error => error.into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pinwise_campaign::{CampaignState, Kind, NewCampaign};
    use pinwise_measure::{Unit, Workload};
    use pinwise_placement::{Budget, PlacementQuestion, StrategyName};
    use pinwise_topology::{Alike, Machine};

    /// What `place` was asked.
    fn question() -> serde_json::Value {
        let mut question = serde_json::to_value(PlacementQuestion::new(
            StrategyName::Auto,
            Budget::Measurements(1),
        ))
        .unwrap();
        let second = serde_json::to_value(std::time::Duration::from_secs(1)).unwrap();
        let reading = serde_json::json!({
            "pick": null, "counter": null, "lower_is_better": false, "unit": null,
        });
        let request = serde_json::json!({
            "subject": { "rerun": ["./a \
                b"] }, "metric": "runtime", "reading": reading, "cpus": null,
                "floor": null, "period": second,
            "limit": second,
        });
        question.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
        question
    }

    /// Began as `pinwise place`.
    pub(crate) fn campaign(
        state: CampaignState,
        conclusion: Option<serde_json::Value>,
    ) -> CampaignInfo {
        CampaignInfo {
            id: CampaignId(3),
            new: NewCampaign {
                kind: Kind::Place,
                parent: None,
                command: ["pinwise", "place", "--budget", "5s", "--", "./a b"]
                    .map(String::from)
                    .to_vec(),
                machine: Machine::from_shape("2").unwrap(),
                alike: Alike::ByStructure,
                workload: Workload::new("a", &[]),
                unit: Unit::cost("s"),
                simulated: false,
                question: question(),
                seed: 1,
            },
            started: 1_790_000_000,
            state,
            conclusion,
            records: 1,
            running: false,
        }
    }

    #[test]
    fn a_campaign_without_a_plan_says_why_and_what_to_do() {
        let told = |state, conclusion| without_plan(&campaign(state, conclusion));
        let undecided = serde_json::json!({
            "advice": "undecided", "unit": Unit::cost("s"), "best": null, "baseline": null,
            "gain": null, "ties": [],
            "bound": {
                "upb": null, "upb_low": null, "upb_high": null, "gap": null, "gap_high": null,
                "confidence": 0.95,
                "method": "bayes", "n": 0, "notes": [],
            },
            "assignments": "2", "drift": null, "strategy": "none", "stopped_because": "the budget \
                is used up",
            "cost": {
                "measurements": 1, "failed": 0, "classes": 0, "time": { "secs": 5, "nanos": 0 },
            },
        });
        assert_eq!(
            told(CampaignState::Finished, Some(undecided)),
            "campaign 3 ended undecided and has no plan (the budget is used up): search again with \
             a larger --budget; it was: pinwise place --budget 5s -- './a b'"
        );
        assert!(
            told(CampaignState::Stopped, None).ends_with("continue with pinwise campaign resume 3")
        );
        // What an older version concluded, or none.
        for conclusion in [Some(serde_json::json!({ "rows": [] })), None] {
            let told = told(CampaignState::Finished, conclusion);
            assert!(told.contains("write it again with pinwise campaign resume"), "{told}");
        }
        let mut other = campaign(CampaignState::Finished, None);
        other.new.kind = Kind::Select;
        assert_eq!(
            without_plan(&other),
            "campaign 3 is of kind select, which has no plan: only place and tune write plans"
        );
        other.new.kind = Kind::Tune;
        assert!(without_plan(&other).ends_with("see its answer with pinwise campaign show 3"));
    }
}
