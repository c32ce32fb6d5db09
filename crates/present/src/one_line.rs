//! Every note is one line of at most 100 columns, with typical values.

use crate::bound_note;
use crate::figures::Scale;
use crate::{
    Notice, caveat, characterization_warning, excerpt_reason, export_note, last_comparison_note,
    latency_warning, note, notice, sentence, threads_note, verdict::qualification,
};
use pinwise_characterization::{ExcerptReason, Warning};
use pinwise_evt::{Diagnostic, Limit, Refusal};
use pinwise_hardware::LatencyWarning;
use pinwise_linux::{LeftChanged, Pid};
use pinwise_measure::{CounterEvent, LeftAlone, MemoryPolicy, Pinner, ProgramNote, Unit};
use pinwise_placement::{
    BoundMethod, BoundNote, Comparison, ComparisonRow, Estimate, ExportNote, Gain,
    LastComparisonNote, LeftOutBy, Loss, OutcomeNote, PlanNote, Unmeasured, WayStanding,
};
use pinwise_threads::{Jump, PhaseChange, Sign, ThreadsNote};
use pinwise_topology::{CpuId, CpuSet, Policy};
use std::time::Duration;

/// The values of an enum that are listed. It does not compile if a variant is not among them.
macro_rules! every {
    ($enum:ident: $($variant:ident { $($fields:tt)* })*) => {{
        #[allow(unreachable_patterns)]
        fn complete(value: &$enum) {
            match value { $($enum::$variant { .. } => (),)* }
        }
        let values = vec![$($enum::$variant { $($fields)* }),*];
        values.iter().for_each(complete);
        values
    }};
}

pub(crate) use every;

/// Columns of a fact's name, with the blanks around it.
const FACT: usize = 12;

/// `texts` are made of `values`, with the first letter small and no full stop.
fn are_lines<T>(values: &[T], text: impl Fn(&T) -> String) {
    fit(100, values, text);
}

/// The same, on lines that have `columns` left for the text.
fn fit<T>(columns: usize, values: &[T], text: impl Fn(&T) -> String) {
    let is_line = |text: &String| {
        text.chars().count() <= columns
            && !text.contains(['\n', '\u{2212}'])
            && !text.contains("  ")
    };
    let texts = values.iter().map(|value| sentence(text(value).trim_end_matches('.')));
    let others: Vec<String> = texts.filter(|text| !is_line(text)).collect();
    assert!(others.is_empty(), "{}", others.join("\n"));
}

fn text() -> String {
    "a note of an earlier version".to_owned()
}

fn error() -> String {
    "Operation not permitted".to_owned()
}

fn program_notes() -> Vec<ProgramNote> {
    let names = || [("log".to_owned(), 1), ("mc-worker".to_owned(), 2)].into();
    every!(ProgramNote:
        Busy { share: 0.239 }
        ThreadsReplaced { times: 12 }
        ThreadsAppeared { threads: 1 }
        ThreadsAppeared { threads: 12 }
        ThreadsMoved { threads: 1, name: text(), cpus: "0-7".into(), by: Pinner::Unknown }
        ThreadsMoved { threads: 3, name: "w#2".into(), cpus: "0-7".into(), by: Pinner::Cpuset }
        WithoutEvents { events: vec![CounterEvent::FrontEndMisses, CounterEvent::FpOperations] }
        ThreadsLeftToOthers { threads: 1, by: Pinner::Unknown }
        ThreadsLeftToOthers { threads: 12, by: Pinner::Cpuset }
        ProgramsEnded {}
        CpusAway { cpus: text(), seconds: 1.5 }
        ThreadMissing { runs: 12, of: 30 }
        ThreadUnknown { runs: 12, of: 30 }
        NotSteady { n: 24 }
        BelowFloor { n: 24 }
        MaybeTotal {}
        MetricRead { counter: true, by_name: false }
        MetricRead { counter: false, by_name: true }
        MetricRead { counter: false, by_name: false }
        LinesAdded { lines: 4, seconds: 1.0 }
        MetricRare { seconds: 1.5 }
        MetricSlow { seconds: 0.417 }
        MetricStill {}
        MetricRenewed { seconds: 0.417 }
        PeriodStretched { seconds: 0.417, asked: 0.05 }
        LeftAlone { reason: LeftAlone::HardlyRuns, names: names() }
        LeftAlone { reason: LeftAlone::NotIncluded, names: names() }
        LeftAlone { reason: LeftAlone::Excluded, names: names() }
        LeftAlone { reason: LeftAlone::Unknown, names: names() }
        LeftAlone { reason: LeftAlone::Confined, names: names() }
        KeepsTo { names: names(), cpus: "2-3,8".into() }
        NotPunctual { error: error() }
        NoInstructions { error: error() }
        LockUnseen {}
        PinnedBefore { threads: 12, of: 24 }
        OfflineForgotten { cpus: "12-15".into() }
        NothingKept { error: error() }
        ThreadsMissed {}
        MigrationsUnseen {}
        OneMemoryNode {}
        MemoryRemote { share: 0.412 }
        MemoryNotMoved { share: 0.412 }
        MemoryNotReturned { share: 0.412 }
        NumaBalancing { pages: 39_042, of: 250_000 }
        NodeLost { node: "h2".into(), error: error() }
        NodeScaled { node: text(), factor: 1.0526, error: 0.012 }
        NodesAlike { nodes: 4, references: 3, checks: 1, missed: 0.034 }
        Text { text: text() }
    )
}

fn threads_notes() -> Vec<ThreadsNote> {
    let shift = |sign, change, sure| PhaseChange { at: 11, sign, parameter: 16, change, sure };
    let numbers = || vec![4, 8, 12, 16, 24];
    every!(ThreadsNote:
        Quota { group: "/sys/fs/cgroup/cpu/guide".into(), granted: 1.5, contexts: 24, allowed: 24 }
        Affinity { allowed: 12, contexts: 24, cpus: "0-11".into() }
        ShortRuns { run_seconds: Some(0.417), pieces: None }
        ShortRuns { run_seconds: None, pieces: Some(16) }
        CutOff { n: 24, asked: true }
        CutOff { n: 24, asked: false }
        DefaultAboveMax { default: 24, max: 16 }
        Capped { threads: 12, numbers: numbers(), pooled: true, follows: true }
        Capped { threads: 12, numbers: numbers(), pooled: true, follows: false }
        Translated { counts_n: false, n: [1, 24], threads: [5, 97] }
        Shifted { 0: shift(Sign::Progress, -0.5, true) }
        Shifted { 0: shift(Sign::Progress, 0.5, false) }
        Shifted { 0: shift(Sign::CpuUtil, -12.0, false) }
        Shifted { 0: shift(Sign::Lock, 12.0, false) }
        Unchecked { reason: "the program ended".to_owned().into() }
        Jumped { 0: Jump { n: 24, times: 12.34 } }
        Text { text: text() }
        Drifting { numbers: numbers() }
        SingleRuns {}
        FixedTime { seconds: 1.0312, more_work: true }
        HardlyComputes { seconds: 0.00412 }
        CpuTimeOnly {}
        Busy { share: 0.239 }
        Watching { share: 0.123 }
        WatchedOtherwise { probes: 12, of: 24, by: "sampling".into(), later: "eBPF".into() }
        Pieces { pieces: 128 }
        SharedCores {}
        Simulated {}
        Set { n: 24 }
        NotSet { n: 24, command: "kill -USR24 4242".into() }
        LimitsRestored {}
        Program { 0: ProgramNote::MaybeTotal }
    )
}

/// A kind with a new name would weaken the results of all plans.
#[test]
fn what_does_not_weaken_a_result_is_the_kind_of_a_note() {
    let all = [
        serde_json::to_value(program_notes()),
        serde_json::to_value(threads_notes()),
        serde_json::to_value(last_comparison_notes()),
        serde_json::to_value(outcome_notes()),
        serde_json::to_value(bound_notes()),
    ];
    let notes = all.into_iter().flat_map(|notes| notes.unwrap().as_array().unwrap().clone());
    let kinds: Vec<String> = notes.map(|note| note["kind"].as_str().unwrap().to_owned()).collect();
    for explaining in PlanNote::EXPLAINING {
        assert!(kinds.iter().any(|kind| kind == explaining), "{explaining} of {kinds:?}");
    }
}

#[test]
fn notes_of_programs_and_numbers() {
    are_lines(&program_notes(), note);
    are_lines(&threads_notes(), threads_note);
}

fn unmeasured() -> Vec<Unmeasured> {
    every!(Unmeasured:
        NoTime {}
        Interrupted {}
        Failed { error: "the program ended".into() }
        Jumped { n: 24, times: 12.34 }
        BelowFloor { n: 24 }
        Text { text: text() }
    )
}

fn last_comparison_notes() -> Vec<LastComparisonNote> {
    let failed = || Unmeasured::Failed { error: "the program ended".into() };
    let mut notes = every!(LastComparisonNote:
        DefaultAssumed { n: 24, threads: Some(12) }
        DefaultInferred { n: 24, threads: 25 }
        NotMeasured { n: 24, policy: Some(Policy::Compact), error: error() }
        NotPlaced { n: 24, reason: Unmeasured::NoTime }
        WhilePlaced { numbers: vec![24], note: ProgramNote::ThreadsReplaced { times: 1 } }
        Busy { share: 0.239 }
        ComparisonBusy { share: 0.239 }
        RoundsStarved { rounds: 12, of: 40 }
        WindowsMissing { windows: 12, error: error() }
        CutShort { rounds: 12, reason: failed() }
        FewRounds { rounds: 3 }
        Set { n: 24, pins: true }
        Text { text: text() }
    );
    notes.extend(unmeasured().into_iter().flat_map(|reason| {
        let cut_short = LastComparisonNote::CutShort { rounds: 12, reason: reason.clone() };
        [LastComparisonNote::NotPlaced { n: 24, reason }, cut_short]
    }));
    notes
}

#[test]
fn notes_of_both_together() {
    are_lines(&last_comparison_notes(), last_comparison_note);
}

fn outcome_notes() -> Vec<OutcomeNote> {
    let as_found =
        |apart, gain| OutcomeNote::AsFound { apart, windows: 12, after: 120, drifted: false, gain };
    let gain = |high| Some(Gain { mean: 0.123, low: -0.123, high });
    let mut notes = every!(OutcomeNote:
        AsFound { apart: Some(0.123), windows: 12, after: 120, drifted: true, gain: None }
        Drift { change: -0.123, n: 120 }
        Stalled { seconds: 92.3, of: 184.6 }
        Program { 0: ProgramNote::MaybeTotal }
    );
    let found = [(None, None), (Some(0.123), None), (Some(-0.123), gain(0.345))];
    notes.extend(found.map(|(apart, gain)| as_found(apart, gain)));
    notes
}

#[test]
fn notes_of_placements() {
    are_lines(&outcome_notes(), qualification);
}

fn bound_notes() -> Vec<BoundNote> {
    let mut notes = every!(BoundNote:
        AnyDistribution { share: 0.049 }
        Exceeded {}
        PredictionExceeded { high: 1.2e7 }
        Predicted { scatter: 0.021, draws: 200 }
        NothingMeasured {}
        FewWindows {}
        AllMeasured {}
        LeftOut { assignments: 12 }
        WrongCap { cap: 1.2e7 }
        Limit { method: BoundMethod::Cap }
        Limit { method: BoundMethod::Solo }
        HigherLimit { method: BoundMethod::Cap, high: 1.2e7 }
        HigherLimit { method: BoundMethod::Solo, high: 1.2e7 }
        NoLower { method: BoundMethod::Bayes, high: 1.2e7 }
        CompanyHelps {}
        StandsStill { share: 0.412 }
        UnpinnedBetter { unpinned: 1.23e7, high: 1.2e7 }
        NodesDiffer { share: 0.012 }
        SingleWindow {}
        Text { text: text() }
        Diagnostic { 0: Diagnostic::Exhausted }
        Refusal { 0: Refusal::Range }
    );
    let diagnostics = every!(Diagnostic:
        Dropped { count: 12 }
        Saturated { ties: 12 }
        Atoms { distinct: 12, n: 600 }
        Unstable { ratio: 3.4 }
        PriorDriven { shape: 0.12 }
        Few { exceedances: 12, enough: 50 }
        NotLinear { r_squared: 0.85 }
        StraightOnly { exceedances: 11 }
        ThresholdLow { fraction: 0.123 }
        Unbounded {}
        CapActive { cap: 1.2e7 }
        CapFalsified { cap: 1.2e7 }
        GapUndefined {}
        Exhausted {}
    );
    let (threshold, exceedances) = (1.2e7, 30);
    let refusals = every!(Refusal:
        Empty { dropped: 12 }
        Constant { value: 1.2e7, n: 60 }
        TooFew { distinct: 12, n: 60, needed: 20 }
        FewExceedances { threshold, exceedances, needed: 50 }
        NoThreshold { n: 60, needed: 20 }
        NoEnd { threshold, exceedances, shape: 0.123, scale: 1.0 }
        NoMaximum { threshold, exceedances }
        Range {}
        Confidence { confidence: 2.0 }
        NotFinite { option: Limit::Threshold, value: f64::INFINITY }
    );
    notes.extend(diagnostics.into_iter().map(BoundNote::Diagnostic));
    notes.extend(refusals.into_iter().map(BoundNote::Refusal));
    notes
}

fn bound_text(note: &BoundNote) -> String {
    bound_note::text(note, &Scale::new(&Unit::rate("packets/s"), 1.2e7))
}

#[test]
fn notes_of_bounds() {
    // They stand behind the names of facts.
    fit(100 - FACT, &bound_notes(), bound_text);
}

fn warnings() -> Vec<Warning> {
    every!(Warning:
        Busy { share: 0.852 }
        Noisy { most: 0.123, pairs: 120 }
        Unsteady { sets: 12, of: 120 }
        Text { text: text() }
    )
}

fn excerpt_reasons() -> Vec<ExcerptReason> {
    every!(ExcerptReason:
        SomeBenchmarks {}
        FewStressors { enough: 8 }
        Busy { share: 0.852 }
        Unknown {}
        Text { text: text() }
    )
}

fn latency_warnings() -> Vec<LatencyWarning> {
    let [from, to] = [CpuId(10), CpuId(11)];
    every!(LatencyWarning:
        Busy { directions: 12, of: 240, waited: 0.412, from, to }
        Unsteady { directions: 12, of: 240, spread: 0.412, from, to }
        NoTime { directions: vec![(from, to); 12] }
    )
}

#[test]
fn warnings_of_machines() {
    are_lines(&warnings(), characterization_warning);
    are_lines(&excerpt_reasons(), excerpt_reason);
    are_lines(&latency_warnings(), latency_warning);
}

#[test]
fn notes_of_exports() {
    let cpus: CpuSet = (0..4).map(CpuId).collect();
    let notes = every!(ExportNote:
        WholeProcess {}
        WholeInstances { instance: "container" }
        LeftOut { by: LeftOutBy::Dpdk, threads: vec!["telemetry-v2".into(), "log".into()] }
        LeftOut { by: LeftOutBy::Vpp, threads: vec!["telemetry-v2".into(), "log".into()] }
        LeftOut { by: LeftOutBy::Suricata, threads: vec!["US".into(), "CW".into()] }
        NoFirstThread { lcore: 12 }
        TeamInOrder {}
        AllThreadsInOrder {}
        CpusByScheduler { cpus: 12 }
        CpusInTurn { set: "worker-cpu-set", cpus: cpus.clone() }
        WorkersByCore { cpus: cpus.iter().collect() }
        MemoryLeftOut { policy: MemoryPolicy::Interleave }
        ForNumber { n: 24 }
    );
    are_lines(&notes, export_note);
}

#[test]
fn caveats_of_comparisons() {
    let performance =
        Estimate { mean: 1.2e6, low: 1.1e6, high: 1.3e6, n: 40, confidence: 0.95, spread: 1e5 };
    let row = |name: &str, standing, loss| ComparisonRow {
        name: name.to_owned(),
        assignment: None,
        performance,
        loss,
        standing,
        spent: 0,
        campaign: None,
        claim: None,
    };
    let tied = Loss { estimate: 0.05, low: -0.02, high: 0.128 };
    let comparison = Comparison {
        unit: Unit::rate("packets/s"),
        rows: vec![
            row("naive, mean of 1000", WayStanding::Tied, tied),
            row(
                "best of 2000 draws",
                WayStanding::Best,
                Loss { estimate: 0.0, low: 0.0, high: 0.0 },
            ),
        ],
        left_out: Vec::new(),
        rounds: 420,
        before: None,
        confidence: 0.95,
        within: 0.025,
    };
    let busy = vec![ProgramNote::Busy { share: 0.239 }];
    are_lines(&[Vec::new(), busy], |notes| caveat(&comparison, notes).unwrap());
}

#[test]
fn notices_while_a_job_runs() {
    let outlook = crate::ProfilingOutlook { alone: 39.0, company: 2072.0, each: 0.5, here: None };
    let (machine, seconds) = ("Intel(R) Xeon(R) Processor".to_owned(), Duration::from_secs(60));
    let levels = || vec!["Core".to_owned(), "Package".to_owned()];
    let notices = every!(Notice:
        PutBack { what: LeftChanged::Affinities(Pid(21873)), worked: true }
        PutBack { what: LeftChanged::Affinities(Pid(21873)), worked: false }
        PutBack { what: LeftChanged::Number(Pid(21873)), worked: false }
        PutBack { what: LeftChanged::File("/sys/fs/cgroup/a/cpu.max".into()), worked: true }
        PutBack { what: LeftChanged::Program(Pid(21873)), worked: true }
        PutBack { what: LeftChanged::Program(Pid(21873)), worked: false }
        NotPutBack {}
        StoreUpgraded { copy: "pinwise/pinwise.db.v3".into() }
        NodesQueued { nodes: 4 }
        FileAwaited { file: "/var/log/server.log".into() }
        StillRuns { name: "server".into(), after: seconds, limit: 10 * seconds }
        Uncharacterized { error: "it is of another machine".into() }
        Profiling { 0: outlook }
        BudgetSpent { spent: 20.0, left: 10.0 }
        FewMeasurements { fits: 12, enough: 44, each: 5.0, spent: 9.0 }
        ComparisonTakes { searches: 4, searching: 80.0, rounds: 30, comparing: 60.0 }
        NoRoomToCompare { needed: 80.0, each: 0.417 }
        WideIntervals { each: 0.417, takes: None }
        WideIntervals { each: 4.17, takes: Some(137.0) }
        FewerRounds { rounds: 12, asked: 30, draws: 10 }
        BoundNotReached { name: "statistical".into(), first: 1000, drawn: 400 }
        NotPlacedAgain { n: 24, reason: Unmeasured::NoTime }
        NumberReturned { pid: 21873, n: 24 }
        NumberLeft { pid: 21873 }
        MeasuringCaches {}
        Characterizing { machine, levels: levels(), benchmarks: 19, sets: 84, runs: 252, rounds: 3 }
        Threads { 0: ThreadsNote::SharedCores }
        Program { 0: ProgramNote::MetricStill }
    );
    are_lines(&notices, notice);
}

/// Verbs that begin what to do.
const REMEDIES: [&str; 21] = [
    "allow", "check", "choose", "correct", "free", "give", "measure", "name", "place", "put",
    "raise", "repeat", "resume", "run", "search", "set", "start", "stop", "take", "try", "use",
];

/// Commands that help.
const COMMANDS: [&str; 3] = ["pinwise apply", "pinwise campaign", "pinwise doctor"];

/// Whether it says what to do: it names an option or a command, or a clause begins with a verb.
fn has_remedy(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut clauses = text.split([':', ';', ',', '.', '(']).map(str::trim);
    let is_told = |clause: &str| REMEDIES.contains(&clause.split(' ').next().unwrap_or_default());
    text.contains(" --") || COMMANDS.iter().any(|one| text.contains(one)) || clauses.any(is_told)
}

/// Those of `notes` that weaken the answer say what to do.
fn have_remedies<T>(notes: &[T], weakens: impl Fn(&T) -> bool, text: impl Fn(&T) -> String) {
    let caveats = notes.iter().filter(|note| weakens(note)).map(text);
    let bare: Vec<String> = caveats.filter(|text| !has_remedy(text)).collect();
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

fn program_note_weakens(note: &ProgramNote) -> bool {
    match note {
        ProgramNote::Busy { .. }
        | ProgramNote::ThreadsReplaced { .. }
        | ProgramNote::ThreadsAppeared { .. }
        | ProgramNote::ThreadsMoved { .. }
        | ProgramNote::WithoutEvents { .. }
        | ProgramNote::ThreadsLeftToOthers { .. }
        | ProgramNote::ProgramsEnded
        | ProgramNote::ThreadMissing { .. }
        | ProgramNote::ThreadUnknown { .. }
        | ProgramNote::NotSteady { .. }
        | ProgramNote::BelowFloor { .. }
        | ProgramNote::MaybeTotal
        | ProgramNote::MetricSlow { .. }
        | ProgramNote::MetricStill
        | ProgramNote::NotPunctual { .. }
        | ProgramNote::NoInstructions { .. }
        | ProgramNote::LockUnseen
        | ProgramNote::PinnedBefore { .. }
        | ProgramNote::OfflineForgotten { .. }
        | ProgramNote::NothingKept { .. }
        | ProgramNote::ThreadsMissed
        | ProgramNote::MigrationsUnseen
        | ProgramNote::MemoryRemote { .. }
        | ProgramNote::MemoryNotMoved { .. }
        | ProgramNote::MemoryNotReturned { .. } => true,
        // Of some programs. There are so many that they may belong to the measured one.
        ProgramNote::NumaBalancing { pages, of } => *pages >= of / 10,
        ProgramNote::LeftAlone { reason, .. } => match reason {
            LeftAlone::Unknown | LeftAlone::Confined => true,
            LeftAlone::HardlyRuns | LeftAlone::NotIncluded | LeftAlone::Excluded => false,
        },
        ProgramNote::CpusAway { .. }
        | ProgramNote::KeepsTo { .. }
        | ProgramNote::MetricRead { .. }
        | ProgramNote::LinesAdded { .. }
        | ProgramNote::MetricRare { .. }
        | ProgramNote::MetricRenewed { .. }
        | ProgramNote::PeriodStretched { .. }
        | ProgramNote::OneMemoryNode
        | ProgramNote::NodeLost { .. }
        | ProgramNote::NodeScaled { .. }
        | ProgramNote::NodesAlike { .. }
        | ProgramNote::Text { .. } => false,
    }
}

fn threads_note_weakens(note: &ThreadsNote) -> bool {
    match note {
        ThreadsNote::Quota { .. }
        | ThreadsNote::Affinity { .. }
        | ThreadsNote::CutOff { .. }
        | ThreadsNote::DefaultAboveMax { .. }
        | ThreadsNote::Capped { .. }
        | ThreadsNote::Shifted(_)
        | ThreadsNote::Unchecked { .. }
        | ThreadsNote::Jumped(_)
        | ThreadsNote::Drifting { .. }
        | ThreadsNote::SingleRuns
        | ThreadsNote::FixedTime { .. }
        | ThreadsNote::HardlyComputes { .. }
        | ThreadsNote::CpuTimeOnly
        | ThreadsNote::Busy { .. }
        | ThreadsNote::Watching { .. }
        | ThreadsNote::WatchedOtherwise { .. }
        | ThreadsNote::SharedCores
        | ThreadsNote::NotSet { .. } => true,
        ThreadsNote::Program(note) => program_note_weakens(note),
        // A model was asked for.
        ThreadsNote::Simulated
        | ThreadsNote::ShortRuns { .. }
        | ThreadsNote::Translated { .. }
        | ThreadsNote::Pieces { .. }
        | ThreadsNote::Set { .. }
        | ThreadsNote::LimitsRestored
        | ThreadsNote::Text { .. } => false,
    }
}

fn last_comparison_note_weakens(note: &LastComparisonNote) -> bool {
    let is_known = |reason: &Unmeasured| !matches!(reason, Unmeasured::Text { .. });
    match note {
        LastComparisonNote::DefaultAssumed { .. }
        | LastComparisonNote::DefaultInferred { .. }
        | LastComparisonNote::NotMeasured { .. }
        | LastComparisonNote::Busy { .. }
        | LastComparisonNote::ComparisonBusy { .. }
        | LastComparisonNote::RoundsStarved { .. }
        | LastComparisonNote::WindowsMissing { .. }
        | LastComparisonNote::FewRounds { .. } => true,
        LastComparisonNote::NotPlaced { reason, .. }
        | LastComparisonNote::CutShort { reason, .. } => is_known(reason),
        LastComparisonNote::WhilePlaced { note, .. } => program_note_weakens(note),
        LastComparisonNote::Set { .. } | LastComparisonNote::Text { .. } => false,
    }
}

fn outcome_note_weakens(note: &OutcomeNote) -> bool {
    match note {
        OutcomeNote::AsFound { .. } | OutcomeNote::Drift { .. } | OutcomeNote::Stalled { .. } => {
            true
        }
        OutcomeNote::Program(note) => program_note_weakens(note),
    }
}

fn bound_note_weakens(note: &BoundNote) -> bool {
    match note {
        BoundNote::Exceeded
        | BoundNote::PredictionExceeded { .. }
        | BoundNote::NothingMeasured
        | BoundNote::FewWindows
        | BoundNote::LeftOut { .. }
        | BoundNote::WrongCap { .. }
        | BoundNote::CompanyHelps
        | BoundNote::StandsStill { .. }
        | BoundNote::UnpinnedBetter { .. }
        | BoundNote::SingleWindow => true,
        BoundNote::Diagnostic(diagnostic) => match diagnostic {
            Diagnostic::Dropped { .. }
            | Diagnostic::Atoms { .. }
            | Diagnostic::Unstable { .. }
            | Diagnostic::PriorDriven { .. }
            | Diagnostic::Few { .. }
            | Diagnostic::NotLinear { .. }
            | Diagnostic::ThresholdLow { .. }
            | Diagnostic::Unbounded
            | Diagnostic::CapFalsified { .. } => true,
            Diagnostic::Saturated { .. }
            | Diagnostic::StraightOnly { .. }
            | Diagnostic::CapActive { .. }
            | Diagnostic::GapUndefined
            | Diagnostic::Exhausted => false,
        },
        BoundNote::Refusal(_) => note.lacks_values().is_some(),
        // What the bound rests on.
        BoundNote::AnyDistribution { .. }
        | BoundNote::Predicted { .. }
        | BoundNote::AllMeasured
        | BoundNote::NodesDiffer { .. }
        | BoundNote::Limit { .. }
        | BoundNote::HigherLimit { .. }
        | BoundNote::NoLower { .. }
        | BoundNote::Text { .. } => false,
    }
}

fn excerpt_weakens(reason: &ExcerptReason) -> bool {
    match reason {
        ExcerptReason::SomeBenchmarks
        | ExcerptReason::FewStressors { .. }
        | ExcerptReason::Busy { .. }
        | ExcerptReason::Unknown => true,
        ExcerptReason::Text { .. } => false,
    }
}

#[test]
fn notes_that_weaken_the_answer_say_what_to_do() {
    have_remedies(&program_notes(), program_note_weakens, note);
    have_remedies(&threads_notes(), threads_note_weakens, threads_note);
    have_remedies(&last_comparison_notes(), last_comparison_note_weakens, last_comparison_note);
    have_remedies(&outcome_notes(), outcome_note_weakens, qualification);
    have_remedies(&bound_notes(), bound_note_weakens, bound_text);
    have_remedies(&excerpt_reasons(), excerpt_weakens, excerpt_reason);
    let is_known = |warning: &Warning| !matches!(warning, Warning::Text { .. });
    have_remedies(&warnings(), is_known, characterization_warning);
    have_remedies(&latency_warnings(), |_| true, latency_warning);
    assert!(!has_remedy("the interval has no finite end: nothing is used, raised or named"));
}
