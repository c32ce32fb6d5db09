//! Pairs of programs as a JSON document.

use pinwise_campaign::CampaignId;
use pinwise_coscheduling::{
    Neighbour, PairOutcome, Pairing, PairsVerdict, ProgramGroup, Resampled,
};
use pinwise_jobs::PairsAnswer;
use pinwise_measure::{CounterQuality, MemoryPolicy};
use pinwise_present::{Files, Unfinished, tagged_program_notes, unmoved_memory};
use serde::Serialize;
use serde_json::Value;

/// The document; the fields are a contract.
#[derive(Serialize)]
pub(super) struct PairsJson<'a> {
    campaign: CampaignId,
    verdict: PairsVerdictJson,
    unfinished: Option<Unfinished>,
    machine: &'a str,
    simulated: bool,
    memory: Option<MemoryPolicy>,
    level: &'static str,
    cpus: [String; 2],
    programs: Vec<PairedProgramJson<'a>>,
    /// The weighted speed-up of each program (row) and each (column).
    matrix: Vec<Vec<Option<f64>>>,
    pairs: Vec<PairJson<'a>>,
    pairing: Option<PairingJson<'a>>,
    rival: Option<PairingJson<'a>>,
    weighted_speedup: Option<Resampled>,
    gain: Option<Resampled>,
    model: Option<PairsModelJson<'a>>,
    groups: Option<ProgramGroupsJson<'a>>,
    apart: Vec<&'a str>,
    neighbours: Vec<NeighbourJson<'a>>,
    confidence: f64,
    notes: Vec<Value>,
    measurements: u64,
    seed: u64,
}

#[derive(Serialize)]
struct PairsVerdictJson {
    kind: PairsVerdict,
    text: String,
}

#[derive(Serialize)]
struct PairedProgramJson<'a> {
    name: &'a str,
    command: &'a str,
    seconds: Option<Resampled>,
    runs: usize,
    counters: Option<&'a CounterQuality>,
}

/// Groups on a wider level; an estimate.
#[derive(Serialize)]
struct ProgramGroupsJson<'a> {
    width: usize,
    mean: f64,
    groups: Vec<ProgramGroupJson<'a>>,
}

#[derive(Serialize)]
struct ProgramGroupJson<'a> {
    programs: Vec<&'a str>,
    weighted_speedup: f64,
}

#[derive(Serialize)]
struct PairJson<'a> {
    names: [&'a str; 2],
    weighted_speedup: Resampled,
    speedup: Resampled,
    unfairness: Resampled,
    slowdowns: [Resampled; 2],
    runs: [usize; 2],
    predicted: bool,
}

#[derive(Serialize)]
struct PairsModelJson<'a> {
    cpu: &'a str,
    programs: &'a [String],
    margin: f64,
    saved: Option<usize>,
}

#[derive(Serialize)]
struct PairingJson<'a> {
    pairs: Vec<[&'a str; 2]>,
    alone: Vec<&'a str>,
}

#[derive(Serialize)]
struct NeighbourJson<'a> {
    name: &'a str,
    leaves: Resampled,
}

impl<'a> PairsJson<'a> {
    pub(super) fn new(answer: &'a PairsAnswer, files: Files<'_>) -> Self {
        let (outcome, info, findings) = (&answer.outcome, &answer.campaign, answer.findings());
        let name = |program: usize| answer.names[program].as_str();
        let all = 0..answer.names.len();
        let program = |(number, command): (usize, &'a String)| PairedProgramJson {
            name: name(number),
            command,
            seconds: outcome.alone[number].map(|alone| alone.seconds),
            runs: outcome.alone[number].map_or(0, |alone| alone.runs),
            counters: outcome.counters.get(number).and_then(Option::as_ref),
        };
        let pair = |pair: &PairOutcome| PairJson {
            names: pair.programs.map(name),
            weighted_speedup: pair.weighted_speedup,
            speedup: pair.speedup,
            unfairness: pair.unfairness,
            slowdowns: pair.slowdowns,
            runs: pair.runs,
            predicted: pair.is_predicted(),
        };
        let pairing = |pairing: &Pairing| PairingJson {
            pairs: pairing.pairs.iter().map(|pair| pair.map(name)).collect(),
            alone: pairing.alone.iter().map(|&program| name(program)).collect(),
        };
        let group = |group: &ProgramGroup| ProgramGroupJson {
            programs: group.programs.iter().map(|&program| name(program)).collect(),
            weighted_speedup: group.weighted_speedup,
        };
        let neighbour = |neighbour: &Neighbour| NeighbourJson {
            name: name(neighbour.program),
            leaves: neighbour.leaves,
        };
        Self {
            campaign: info.id,
            verdict: PairsVerdictJson { kind: outcome.verdict, text: findings.verdict() },
            unfinished: answer.unfinished(files),
            machine: &info.new.machine.name,
            simulated: info.new.simulated,
            memory: unmoved_memory(info),
            level: answer.seats.level.name(),
            cpus: answer.contexts().map(|cpus| cpus.to_string()),
            programs: answer.commands.iter().enumerate().map(program).collect(),
            matrix: all
                .clone()
                .map(|row| {
                    all.clone().map(|column| findings.weighted_speedup(row, column)).collect()
                })
                .collect(),
            pairs: outcome.pairs.iter().map(pair).collect(),
            pairing: outcome.pairing.as_ref().map(pairing),
            rival: outcome.rival.as_ref().map(pairing),
            weighted_speedup: outcome.per_slot,
            gain: outcome.gain,
            model: findings.model.map(|model| PairsModelJson {
                cpu: &model.cpu,
                programs: &model.programs,
                margin: model.margin(findings.confidence).value(),
                saved: findings.saved(),
            }),
            groups: findings.groups().map(|groups| ProgramGroupsJson {
                width: groups.width,
                mean: groups.mean,
                groups: groups.groups.iter().map(group).collect(),
            }),
            apart: outcome.apart.iter().map(|&program| name(program)).collect(),
            neighbours: outcome.neighbours.iter().map(neighbour).collect(),
            confidence: answer.request.question.confidence,
            notes: tagged_program_notes(&answer.notes),
            measurements: outcome.measurements,
            seed: info.new.seed,
        }
    }
}
