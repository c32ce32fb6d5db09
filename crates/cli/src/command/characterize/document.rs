//! A characterization as `--json` prints it; docs/reference/json.md describes the fields. It is the
//! stored one, with the text of its warnings and reasons.

use pinwise_characterization::{
    Absent, Arranged, Characterization, CoRunners, Conditions, Critical, ExcerptReason, Findings,
    Isolated, Level, Noise, Reference, Remote, RunsSoFar, Sensitivity, Slowdown, SpaceSizes,
    StoredCharacterization, Undecided,
};
use pinwise_measure::{Microbenchmark, PaceUnit, WorkingSets};
use pinwise_present::{
    Unfinished, absence, characterization_warning, doubt, excerpt_reason, tagged,
};
use pinwise_topology::{DomainKind, Fingerprint};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// The JSON document of a campaign that is not complete.
#[derive(Serialize)]
pub(super) struct SoFar<'a> {
    pub(super) campaign: i64,
    pub(super) machine: &'a str,
    pub(super) unit: &'a str,
    pub(super) unfinished: Option<Unfinished>,
    /// One for each set of programs that was run.
    pub(super) runs: &'a [RunsSoFar],
    pub(super) seconds: f64,
    pub(super) store: &'a Path,
}

/// The JSON document.
#[derive(Serialize)]
pub(super) struct CharacterizationJson<'a> {
    /// The campaign that measured it.
    pub(super) campaign: i64,
    /// How long it took in all, what a core gets of its caches included.
    pub(super) seconds: f64,
    /// The file it is kept in.
    pub(super) store: &'a Path,
    /// Its number there.
    id: i64,
    /// Why nothing is decided by it, if so.
    excerpt: Option<Value>,
    #[serde(flatten)]
    characterization: MeasuredJson<'a>,
}

/// What was measured, and what follows.
#[derive(Serialize)]
struct MeasuredJson<'a> {
    version: u32,
    machine: &'a str,
    fingerprint: &'a Fingerprint,
    unit: PaceUnit,
    conditions: &'a Conditions,
    working_sets: &'a Option<WorkingSets>,
    benchmarks: &'a [Microbenchmark],
    references: Vec<ReferenceRow<'a>>,
    isolation: &'a [Isolated],
    slowdowns: &'a [Slowdown],
    arrangements: &'a [Arranged],
    noise: &'a Noise,
    findings: FindingsRow<'a>,
    warnings: Vec<Value>,
}

#[derive(Serialize)]
struct ReferenceRow<'a> {
    core_kind: &'a Option<String>,
    leaf: u32,
    levels: &'a [Level],
    absent: Vec<AbsentRow<'a>>,
}

#[derive(Serialize)]
struct AbsentRow<'a> {
    name: &'a str,
    reason: Value,
}

#[derive(Serialize)]
struct FindingsRow<'a> {
    critical: &'a [Critical],
    sensitivity: &'a [Sensitivity],
    co_runners: &'a [CoRunners],
    remote: Option<RemoteRow<'a>>,
    local: Option<DomainKind>,
    scope: &'a Option<SpaceSizes>,
}

#[derive(Serialize)]
struct RemoteRow<'a> {
    independent: &'a [String],
    dependent: &'a [String],
    shared: &'a [String],
    undecided: Vec<UndecidedRow<'a>>,
    arrangement: Option<f64>,
    arrangement_of: &'a Option<(String, String)>,
    core_local: bool,
}

#[derive(Serialize)]
struct UndecidedRow<'a> {
    benchmark: &'a str,
    reason: Value,
}

impl<'a> CharacterizationJson<'a> {
    pub(super) fn new(
        campaign: i64,
        kept: &'a StoredCharacterization,
        excerpt: Option<&ExcerptReason>,
        seconds: f64,
        store: &'a Path,
    ) -> Self {
        Self {
            campaign,
            seconds,
            store,
            id: kept.id,
            excerpt: excerpt.map(|excerpt| tagged(excerpt, excerpt_reason(excerpt))),
            characterization: (&kept.characterization).into(),
        }
    }
}

// Nothing is left out: each takes its type apart by all fields.

impl<'a> From<&'a Characterization> for MeasuredJson<'a> {
    fn from(characterization: &'a Characterization) -> Self {
        let Characterization {
            version,
            machine,
            fingerprint,
            unit,
            conditions,
            working_sets,
            benchmarks,
            references,
            isolation,
            slowdowns,
            arrangements,
            noise,
            findings,
            warnings,
        } = characterization;
        let warning = |warning| tagged(warning, characterization_warning(warning));
        Self {
            version: *version,
            machine,
            fingerprint,
            unit: *unit,
            conditions,
            working_sets,
            benchmarks,
            references: references.iter().map(ReferenceRow::from).collect(),
            isolation,
            slowdowns,
            arrangements,
            noise,
            findings: findings.into(),
            warnings: warnings.iter().map(warning).collect(),
        }
    }
}

impl<'a> From<&'a Reference> for ReferenceRow<'a> {
    fn from(Reference { core_kind, leaf, levels, absent }: &'a Reference) -> Self {
        let absent = absent.iter().map(|Absent { name, reason }| AbsentRow {
            name,
            reason: tagged(reason, absence(reason)),
        });
        Self { core_kind, leaf: *leaf, levels, absent: absent.collect() }
    }
}

impl<'a> From<&'a Findings> for FindingsRow<'a> {
    fn from(findings: &'a Findings) -> Self {
        let Findings { critical, sensitivity, co_runners, remote, local, scope } = findings;
        let remote = remote.as_ref().map(RemoteRow::from);
        Self { critical, sensitivity, co_runners, remote, local: *local, scope }
    }
}

impl<'a> From<&'a Remote> for RemoteRow<'a> {
    fn from(remote: &'a Remote) -> Self {
        let Remote {
            independent,
            dependent,
            shared,
            undecided,
            arrangement,
            arrangement_of,
            core_local,
        } = remote;
        let undecided = undecided.iter().map(|Undecided { benchmark, reason }| UndecidedRow {
            benchmark,
            reason: tagged(reason, doubt(reason)),
        });
        Self {
            independent,
            dependent,
            shared,
            undecided: undecided.collect(),
            arrangement: *arrangement,
            arrangement_of,
            core_local: *core_local,
        }
    }
}
