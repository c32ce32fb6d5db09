//! Co-scheduling as a JSON document.

use pinwise_campaign::CampaignId;
use pinwise_coscheduling::{CoschedCost, CoschedVerdict, CoscheduleObjective, ProgramOutcome};
use pinwise_jobs::{CoschedAnswer, CoschedPreview, PreviewBasis};
use pinwise_measure::{CounterQuality, MemoryPolicy};
use pinwise_placement::Gain;
use pinwise_present::{Files, Unfinished, tagged_program_notes, unmoved_memory};
use serde::Serialize;
use serde_json::Value;

/// The document; the fields are a contract.
#[derive(Serialize)]
pub(super) struct CoschedJson<'a> {
    campaign: CampaignId,
    verdict: CoschedVerdictJson,
    unfinished: Option<Unfinished>,
    machine: &'a str,
    memory: Option<MemoryPolicy>,
    level: &'static str,
    objective: CoscheduleObjective,
    counted: bool,
    rule: Option<&'static str>,
    gain: Option<Gain>,
    rounds: u64,
    tried: u64,
    periods: u64,
    programs: &'a [ProgramOutcome],
    losers: &'a [String],
    cost: CoschedCost,
    counters: Option<&'a CounterQuality>,
    quantum: f64,
    confidence: f64,
    notes: Vec<Value>,
    seed: u64,
}

#[derive(Serialize)]
struct CoschedVerdictJson {
    kind: CoschedVerdict,
    text: String,
}

impl<'a> CoschedJson<'a> {
    pub(super) fn new(answer: &'a CoschedAnswer, files: Files<'_>) -> Self {
        let (outcome, info) = (&answer.outcome, &answer.campaign);
        let question = &answer.request.question;
        let text = answer.findings().verdict();
        Self {
            campaign: info.id,
            verdict: CoschedVerdictJson { kind: outcome.verdict, text },
            unfinished: answer.unfinished(files),
            machine: &info.new.machine.name,
            memory: unmoved_memory(info),
            level: answer.level.name(),
            objective: question.objective,
            counted: question.counted,
            rule: question.counted.then(|| question.rule.name()),
            gain: outcome.gain,
            rounds: outcome.rounds,
            tried: outcome.tried,
            periods: info.records,
            programs: &outcome.programs,
            losers: &outcome.losers,
            cost: outcome.cost,
            counters: outcome.counters.as_ref(),
            quantum: question.quantum.as_secs_f64(),
            confidence: question.confidence,
            notes: tagged_program_notes(&answer.notes),
            seed: info.new.seed,
        }
    }
}

/// What a dry run shows.
#[derive(Serialize)]
pub(super) struct PreviewJson<'a> {
    level: &'static str,
    uncounted: Option<String>,
    counters: Option<&'a CounterQuality>,
    quanta: Vec<Vec<PreviewedMoveJson>>,
    notes: Vec<Value>,
}

#[derive(Serialize)]
struct PreviewedMoveJson {
    pid: i32,
    tid: i32,
    program: String,
    context: usize,
}

impl<'a> PreviewJson<'a> {
    pub(super) fn new(preview: &'a CoschedPreview) -> Self {
        let moves = |moves: &Vec<pinwise_jobs::PreviewedMove>| {
            let of = |one: &pinwise_jobs::PreviewedMove| PreviewedMoveJson {
                pid: one.thread.pid.0,
                tid: one.thread.tid.0,
                program: one.program.clone(),
                context: one.context,
            };
            moves.iter().map(of).collect()
        };
        Self {
            level: preview.level.name(),
            uncounted: match &preview.basis {
                PreviewBasis::Uncounted(error) => Some(error.to_string()),
                PreviewBasis::Counted | PreviewBasis::Metric => None,
            },
            counters: preview.counters.as_ref(),
            quanta: preview.quanta.iter().map(moves).collect(),
            notes: tagged_program_notes(&preview.notes),
        }
    }
}
