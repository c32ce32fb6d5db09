//! Latencies as a JSON document, which `--from` reads back.

use pinwise_hardware::Quantiles;
use pinwise_jobs::LatencyAnswer;
use pinwise_present::{LatencyFindings, Unfinished, latency_warning, tagged};
use pinwise_topology::{
    CpuId, CpuSet, DeclaredGroups, Difference, DomainKind, HeaderCheck, LatencyClass, LatencyError,
    LatencyMatrix, LatencyUnit, Oddity,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The JSON document. What a file may lack has a default: `--from` reads it back.
#[derive(Serialize, Deserialize)]
pub(super) struct LatencyJson {
    /// The campaign that measured them.
    #[serde(default)]
    pub(super) campaign: Option<i64>,
    /// How far the campaign is, if it has not ended. Nothing is compared before.
    #[serde(default)]
    pub(super) unfinished: Option<Unfinished>,
    /// Whose latencies they are.
    pub(super) name: String,
    pub(super) unit: LatencyUnit,
    pub(super) contexts: Vec<CpuId>,
    /// Row by row, the writer first.
    pub(super) matrix: Vec<Vec<Option<f64>>>,
    #[serde(default)]
    pub(super) levels: Vec<ImpliedLevel>,
    /// Whether all of them are declared; `None` where nothing declares any.
    #[serde(default)]
    pub(super) agrees: Option<bool>,
    #[serde(default)]
    pub(super) unseen: Vec<DeclaredGroups>,
    #[serde(default)]
    pub(super) unknown: CpuSet,
    #[serde(default)]
    pub(super) unmeasured: CpuSet,
    #[serde(default)]
    pub(super) header: Vec<HeaderCheck>,
    #[serde(default)]
    pub(super) oddities: Vec<Oddity>,
    #[serde(default)]
    pub(super) pairs: Vec<Pair>,
    #[serde(default)]
    pub(super) tsc_ghz: Option<f64>,
    #[serde(default)]
    pub(super) seconds: Option<f64>,
    /// Reasons for doubt, each with its kind, its values and its text.
    #[serde(default)]
    pub(super) warnings: Vec<Value>,
}

/// An implied level, and what declares it.
#[derive(Serialize, Deserialize)]
pub(super) struct ImpliedLevel {
    pub(super) groups: Vec<CpuSet>,
    /// Contexts in each group, where that is the same in all.
    pub(super) size: Option<usize>,
    pub(super) latency: Option<LatencyClass>,
    pub(super) classes: Vec<LatencyClass>,
    pub(super) contradictions: Vec<(CpuId, CpuId, f64)>,
    pub(super) declared: Vec<DomainKind>,
    pub(super) difference: Option<Difference>,
}

/// One direction of a pair, as it was measured: nanoseconds one way.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) from: CpuId,
    pub(super) to: CpuId,
    #[serde(flatten)]
    pub(super) latency: Quantiles,
    /// Middle half of the batches, each relative to the median of its line.
    pub(super) spread: f64,
    pub(super) batches: usize,
    /// Median of each line that was tried, ascending.
    pub(super) lines: Vec<f64>,
    /// Share of the time that a thread waited for its CPU.
    pub(super) waited: f64,
}

impl LatencyJson {
    /// What `findings` say of the machine `name`.
    pub(super) fn new(name: String, findings: &LatencyFindings) -> Self {
        let LatencyFindings { matrix, unfinished, levels, header, comparison } = findings;
        let n = matrix.contexts().len();
        let compared = comparison.as_ref();
        let implied = levels.levels.iter().enumerate().map(|(index, level)| {
            let declared = compared.and_then(|comparison| comparison.levels.get(index));
            ImpliedLevel {
                size: level.size(),
                groups: level.groups.clone(),
                latency: level.latency,
                classes: level.classes.clone(),
                contradictions: level.contradictions.clone(),
                declared: declared.map_or(Vec::new(), |level| level.declared.clone()),
                difference: declared.and_then(|level| level.difference.clone()),
            }
        });
        Self {
            campaign: None,
            unfinished: unfinished.clone(),
            name,
            unit: matrix.unit(),
            contexts: matrix.contexts().to_vec(),
            matrix: (0..n).map(|from| (0..n).map(|to| matrix.get(from, to)).collect()).collect(),
            levels: implied.collect(),
            agrees: findings.agrees(),
            unseen: compared.map_or(Vec::new(), |comparison| comparison.unseen.clone()),
            unknown: compared.map_or(CpuSet::new(), |comparison| comparison.unknown.clone()),
            unmeasured: compared.map_or(CpuSet::new(), |comparison| comparison.unmeasured.clone()),
            header: header.clone(),
            oddities: levels.oddities.clone(),
            pairs: Vec::new(),
            tsc_ghz: None,
            seconds: None,
            warnings: Vec::new(),
        }
    }

    /// What a campaign measured.
    pub(super) fn of(answer: &LatencyAnswer, findings: &LatencyFindings) -> Self {
        let latencies = &answer.latencies;
        let pairs = latencies.directions.iter().filter_map(|direction| {
            Some(Pair {
                from: direction.from,
                to: direction.to,
                latency: direction.quantiles()?,
                spread: direction.spread()?,
                batches: direction.batches(),
                lines: direction.line_medians(),
                waited: direction.waited,
            })
        });
        let warnings = latencies.warnings();
        Self {
            campaign: Some(answer.campaign.id.0),
            tsc_ghz: latencies.tsc_ghz,
            seconds: Some(latencies.elapsed.as_secs_f64()),
            pairs: pairs.collect(),
            warnings: warnings.iter().map(|one| tagged(one, latency_warning(one))).collect(),
            ..Self::new(answer.campaign.new.machine.name.clone(), findings)
        }
    }

    /// The matrix it holds.
    pub(super) fn latencies(&self) -> Result<LatencyMatrix, LatencyError> {
        LatencyMatrix::new(self.contexts.clone(), self.unit, self.matrix.concat())
    }
}
