//! One part of a campaign: from where it begins or is resumed until it ends, is interrupted or
//! killed.

use super::Bed;
use crate::interrupt::Interrupt;
use crate::output::{self, crowded};
use crate::progress::Progress;
use pinwise_campaign::{
    CampaignId, CampaignInfo, Ending, Record, Store, StoreError, Strategy, run,
};
use pinwise_measure::{
    Effort, MeasureError, Measurement, Met, OtherLoad, Setting, Testbed, Time, Unit, Workload,
};
use pinwise_monitor::OtherLoadWatch;
use pinwise_placement::Budget;
use pinwise_topology::Machine;
use std::cell::Cell;
use std::time::Instant;

/// What a campaign's strategy measured, in all parts of the campaign.
pub(crate) struct Measured {
    pub(crate) ending: Ending,
    pub(crate) records: Vec<Record>,
    /// What the measurements met ([`pinwise_placement::Outcome::notes`]).
    pub(crate) notes: Vec<String>,
}

/// Runs a campaign's strategy, with a line that shows how far it is.
pub(crate) fn measure(
    store: &mut Store,
    info: &CampaignInfo,
    budget: Budget,
    strategy: &mut dyn Strategy,
    bed: &mut Bed,
    interrupt: &Interrupt,
) -> anyhow::Result<Measured> {
    let mut progress = Progress::new(budget, info.new.unit.clone());
    let before = bed.notes();
    let start = Instant::now();
    let clock = || start.elapsed();
    let mut watched = Watched::new(bed);
    let (ending, records) =
        run(store, info.id, strategy, &mut watched, &clock, &|| interrupt.came(), &mut |record| {
            progress.observe(record);
        })?;
    progress.finish();
    output::note_all(bed.notes().iter().filter(|note| !before.contains(note)));
    Ok(Measured { ending, records, notes: notes(store, info.id)? })
}

/// What the measurements of a campaign met, in all its parts, each once.
pub(crate) fn notes(store: &Store, id: CampaignId) -> Result<Vec<String>, StoreError> {
    notes_of(store, [id])
}

/// What the measurements of several campaigns met, of all together, each once.
pub(crate) fn notes_of(
    store: &Store,
    ids: impl IntoIterator<Item = CampaignId>,
) -> Result<Vec<String>, StoreError> {
    let met: Vec<Vec<Met>> = ids.into_iter().map(|id| store.met(id)).collect::<Result<_, _>>()?;
    Ok(told(met.concat()))
}

fn told(parts: Vec<Met>) -> Vec<String> {
    let shares: Vec<OtherLoad> = parts.iter().filter_map(|met| met.others).collect();
    let mut notes: Vec<String> = crowded(&shares, "measurements", "").into_iter().collect();
    for note in parts.into_iter().flat_map(|met| met.notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// A bed of which is known what other programs take of its contexts while it measures.
pub(crate) struct Watched<'a> {
    bed: &'a mut Bed,
    watch: Option<OtherLoadWatch>,
    /// What was last known of others: of a program that has ended meanwhile it is what was known
    /// while it ran.
    others: Cell<Option<OtherLoad>>,
}

impl<'a> Watched<'a> {
    /// From now on.
    pub(crate) fn new(bed: &'a mut Bed) -> Self {
        let watch = bed
            .pids()
            .and_then(|pids| OtherLoadWatch::begin(&bed.testbed().machine().allowed, &pids));
        Self { bed, watch, others: Cell::default() }
    }
}

impl Testbed for Watched<'_> {
    fn machine(&self) -> &Machine {
        self.bed.testbed().machine()
    }

    fn workload(&self) -> &Workload {
        self.bed.testbed().workload()
    }

    fn unit(&self) -> &Unit {
        self.bed.testbed().unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.bed.testbed_mut().measure(setting, effort)
    }

    fn profiles(&self) -> bool {
        self.bed.testbed().profiles()
    }

    fn time(&self) -> Time {
        self.bed.testbed().time()
    }

    fn met(&self) -> Met {
        let others = self.watch.as_ref().and_then(|watch| watch.so_far(&self.bed.pids()?));
        self.others.set(others.or(self.others.get()));
        Met { others: self.others.get(), ..self.bed.testbed().met() }
    }

    fn seek(&mut self, number: u64) {
        self.bed.testbed_mut().seek(number);
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.bed.testbed_mut().measure_all(trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_of_all_parts_together_and_every_note_once() {
        let parts = |met: &[(f64, &[&str])]| -> Vec<Met> {
            let part = |(taken, notes): &(f64, &[&str])| Met {
                others: Some(OtherLoad { taken: *taken, of: 10.0 }),
                notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            };
            met.iter().map(part).collect()
        };
        assert_eq!(told(parts(&[(0.1, &[]), (0.2, &[])])), Vec::<String>::new());
        let told = told(parts(&[
            (0.1, &["a thread came", "x"]),
            (3.9, &["a thread came"]),
            (0.0, &["y"]),
        ]));
        assert!(told[0].contains("other programs took 13.3 % of the contexts' time"), "{told:?}");
        assert_eq!(told[1..], ["a thread came", "x", "y"]);
    }
}
