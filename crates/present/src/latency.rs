//! What latencies say of a machine, in the sentences that the terminal and the page share.

use crate::figures::{self, percent};
use crate::unfinished::Unfinished;
use pinwise_hardware::LatencyWarning;
use pinwise_topology::{
    DeclaredGroups, Difference, DomainKind, HeaderCheck, LatencyComparison, LatencyLevels,
    LatencyMatrix, Machine, Oddity,
};

/// Contradictions, oddities and directions that are shown.
const FEW: usize = 4;

/// How an implied level differs from a declared grouping, as a clause.
pub fn difference(difference: &Difference) -> String {
    let Difference { nearest, implied, declared, pairs } = difference;
    let nearest: Vec<&str> = nearest.iter().rev().map(|kind| kind.name()).collect();
    let declared: Vec<String> = declared.iter().map(ToString::to_string).collect();
    format!(
        "{implied} are near to each other; nearest declared is {}, with {}; {pairs} pairs differ",
        nearest.join(" = "),
        declared.join(" and ")
    )
}

/// What follows from a matrix of latencies.
#[derive(Clone, Debug)]
pub struct LatencyFindings {
    /// The latencies.
    pub matrix: LatencyMatrix,
    /// How far the campaign is, if it has not ended.
    pub unfinished: Option<Unfinished>,
    /// The levels that they imply.
    pub levels: LatencyLevels,
    /// What the head of a file declares.
    pub header: Vec<HeaderCheck>,
    /// The levels beside those that a machine declares, where one does.
    pub comparison: Option<LatencyComparison>,
}

impl LatencyFindings {
    /// Of all latencies of a machine, or of those so far, compared with what `declared` declares.
    /// Nothing is compared before the end, because an incomplete matrix implies other levels than
    /// the whole one.
    pub fn new(
        matrix: LatencyMatrix,
        unfinished: Option<Unfinished>,
        declared: Option<&Machine>,
    ) -> Self {
        let levels = LatencyLevels::of(&matrix);
        let declared = declared.filter(|_| unfinished.is_none());
        let comparison = declared.map(|machine| LatencyComparison::new(&matrix, &levels, machine));
        Self { matrix, unfinished, levels, header: Vec::new(), comparison }
    }

    /// Whether the levels agree with the declared ones; `None` if nothing is declared.
    pub fn agrees(&self) -> Option<bool> {
        let header = self.header.iter().all(|check| check.agrees);
        match &self.comparison {
            Some(comparison) => Some(comparison.agrees() && header),
            None if self.header.is_empty() => None,
            None => Some(header),
        }
    }

    /// `The latencies imply 3 levels, at 30, 110, 300 cycles, as declared.`
    pub fn verdict(&self) -> String {
        let levels = &self.levels.levels;
        let medians = levels.iter().filter_map(|level| level.latency);
        let medians: Vec<String> = medians.map(|latency| self.show(latency.median)).collect();
        let at = match medians.as_slice() {
            [] => String::new(),
            medians => format!(", at {} {}", medians.join(", "), self.matrix.unit()),
        };
        let declared = match self.agrees() {
            None => "",
            Some(true) => ", as declared",
            Some(false) => ", which DIFFERS from what is declared",
        };
        let levels = figures::counted(levels.len() as u64, "level");
        let so_far = if self.unfinished.is_some() { " so far" } else { "" };
        format!("The latencies{so_far} imply {levels}{at}{declared}.")
    }

    /// What does not fit a table: classes, contradictions, odd values.
    pub fn notes(&self) -> Vec<String> {
        let unit = self.matrix.unit();
        let mut notes = Vec::new();
        for (number, level) in (1..).zip(&self.levels.levels) {
            if !level.classes.is_empty() {
                let classes = level.classes.iter();
                let classes: Vec<String> = classes
                    .map(|class| format!("{} ({} pairs)", self.show(class.median), class.pairs))
                    .collect();
                let classes = classes.join(", ");
                notes.push(format!(
                    "level {number} has several distances that form no groups, like hops: \
                     {classes} {unit}"
                ));
            }
            let pairs = level.contradictions.iter();
            let pairs =
                pairs.map(|(a, b, value)| format!("{} and {}: {}", a.0, b.0, self.show(*value)));
            notes.extend(self.list(&format!("level {number} is contradicted by"), pairs));
        }
        let odd = self.levels.oddities.iter().map(|oddity| match oddity {
            Oddity::Impossible { from, to, value } => {
                format!("{} to {}: {value}, left out", from.0, to.0)
            }
            Oddity::Asymmetric { from, to, low, high } => {
                let [low, high] = [low, high].map(|value| self.show(*value));
                format!("{} to {}: {low}, back {high}, the lower counts", from.0, to.0)
            }
        });
        notes.extend(self.list("odd values", odd));
        notes
    }

    /// The comparison with the declared levels, in detail.
    pub fn compared(&self) -> Vec<String> {
        let check = |check: &HeaderCheck| {
            let verdict = if check.agrees { "agrees" } else { "differs" };
            let HeaderCheck { what, declared, implied, .. } = check;
            format!("{what}: {declared}; latencies imply {implied}: {verdict}")
        };
        let mut lines: Vec<String> = self.header.iter().map(check).collect();
        let Some(comparison) = &self.comparison else { return lines };
        for (number, level) in (1..).zip(&comparison.levels) {
            let shown = level.difference.iter();
            lines.extend(shown.map(|one| format!("level {number}: {}", difference(one))));
        }
        lines.extend(comparison.unseen.iter().map(|unseen| self.hidden(unseen)));
        if !comparison.unknown.is_empty() {
            lines.push(format!("the machine has no contexts {}", comparison.unknown));
        }
        if !comparison.unmeasured.is_empty() {
            lines.push(format!("not measured: contexts {}", comparison.unmeasured));
        }
        lines
    }

    fn hidden(&self, unseen: &DeclaredGroups) -> String {
        let middle = |value: Option<f64>| value.map_or("?".into(), |value| self.show(value));
        let unit = self.matrix.unit();
        format!(
            "{} ({} groups) does not show: median {} {unit} inside, {} {unit} to its neighbours",
            domain_kinds(&unseen.kinds),
            unseen.groups,
            middle(unseen.inside),
            middle(unseen.outside)
        )
    }

    fn list(&self, what: &str, items: impl Iterator<Item = String>) -> Option<String> {
        let items: Vec<String> = items.collect();
        let more = match items.len().saturating_sub(FEW) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let shown = items[..items.len().min(FEW)].join("; ");
        (!items.is_empty()).then(|| format!("{what} ({}): {shown}{more}", self.matrix.unit()))
    }

    fn show(&self, value: f64) -> String {
        figures::latency(self.matrix.unit(), value)
    }
}

/// Kinds of domains that group alike, the outermost first: `Package = NumaNode`.
pub fn domain_kinds(kinds: &[DomainKind]) -> String {
    kinds.iter().rev().map(|kind| kind.name()).collect::<Vec<_>>().join(" = ")
}

/// A reason for doubt, and what to do about it.
pub fn latency_warning(warning: &LatencyWarning) -> String {
    match warning {
        LatencyWarning::Busy { directions, of, waited, from, to } => format!(
            "in {directions} of {of} directions a thread waited, up to {} of the time ({} to {}): \
             stop other programs",
            percent(*waited),
            from.0,
            to.0
        ),
        LatencyWarning::Unsteady { directions, of, spread, from, to } => format!(
            "batches differ in {directions} of {of} directions, by up to {} ({} to {}): stop other \
             programs",
            percent(*spread),
            from.0,
            to.0
        ),
        LatencyWarning::NoTime { directions } => {
            let shown = directions.iter().take(FEW);
            let shown: Vec<String> =
                shown.map(|(from, to)| format!("{} to {}", from.0, to.0)).collect();
            let more = match directions.len().saturating_sub(FEW) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("no time to measure {}{more}: stop other programs", shown.join(", "))
        }
    }
}
