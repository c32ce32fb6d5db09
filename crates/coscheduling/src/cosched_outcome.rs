//! What a co-scheduled campaign shows so far.

use crate::cosched_search::{CoschedQuestion, CoschedVerdict, Judgement};
use pinwise_campaign::Record;
use pinwise_measure::{CounterQuality, ThreadMoves};
use pinwise_placement::Gain;
use serde::{Deserialize, Serialize};

/// Whether moving threads helps, and what each program makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoschedOutcome {
    /// The verdict so far.
    pub verdict: CoschedVerdict,
    /// The gain that it rests on, over leaving the threads to the kernel.
    pub gain: Option<Gain>,
    /// Rounds that were judged.
    pub rounds: u64,
    /// Splits that were tried before, where nothing was counted.
    pub tried: u64,
    /// How threads are moved, once that is known.
    pub moves: Option<ThreadMoves>,
    /// The programs, by name.
    pub programs: Vec<ProgramOutcome>,
    /// The programs that lose too much, by name.
    pub losers: Vec<String>,
    /// What pinwise cost.
    pub cost: CoschedCost,
    /// How far the counts can be trusted, over the last session. `None`: nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterQuality>,
}

/// The progress of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramOutcome {
    /// The name of its processes.
    pub name: String,
    /// The most processes of that name in a period.
    pub processes: u64,
    /// Its gain over leaving the threads to the kernel: in instructions, or in CPU time without
    /// counters.
    pub gain: Option<Gain>,
    /// Its unpinned progress, as a share of that alone. `None`: nothing was counted.
    pub alone_as_found: Option<f64>,
    /// The same in moves.
    pub alone_moved: Option<f64>,
    /// The contexts to which its threads were kept at the end of the last round.
    pub contexts: Vec<usize>,
}

/// What pinwise cost, and what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoschedCost {
    /// The share of the time of all contexts that pinwise took as CPU time.
    pub share: f64,
    /// The length of all periods, in seconds.
    pub seconds: f64,
    /// The mean length of a quantum, in seconds.
    pub quantum: f64,
    /// Moves of threads.
    pub moves: u64,
    /// Threads that began.
    pub begun: u64,
    /// Threads that ended.
    pub ended: u64,
}

impl CoschedOutcome {
    /// Of all records so far, on a machine with that many contexts.
    pub fn of(records: &[Record], question: &CoschedQuestion, contexts: usize) -> Self {
        let mut judgement = Judgement::new(question.clone());
        judgement.take(records);
        let (verdict, gain) = judgement.verdict();
        let programs = judgement.programs.iter().map(|(name, program)| {
            let [alone_as_found, alone_moved] = program.of_alone();
            let (gain, processes) = (program.kept(), program.processes);
            ProgramOutcome {
                name: name.clone(),
                processes,
                gain,
                alone_as_found,
                alone_moved,
                contexts: program.contexts.clone(),
            }
        });
        let total = &judgement.total;
        let share = |of: f64| if of > 0.0 { total.cost / of } else { 0.0 };
        Self {
            verdict,
            gain,
            rounds: judgement.judged,
            tried: judgement.tried.len() as u64,
            moves: judgement.chosen,
            programs: programs.collect(),
            losers: judgement.losers().map(str::to_owned).collect(),
            cost: CoschedCost {
                share: share(total.whole * contexts.max(1) as f64),
                seconds: total.whole,
                quantum: total.whole / total.quanta.max(1) as f64,
                moves: total.moves,
                begun: total.begun,
                ended: total.ended,
            },
            counters: total.counters.clone(),
        }
    }
}
