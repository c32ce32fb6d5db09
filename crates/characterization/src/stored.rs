//! A characterization in the store, where predictors find it later.

use crate::Characterization;
use pinwise_campaign::{Store, StoreError};
use pinwise_topology::Fingerprint;

/// What a characterization is called in the store.
const WHOLE: &str = "characterization";
/// What one is called that describes too little of its machine to base decisions on.
const EXCERPT: &str = "excerpt";

/// A characterization as the store holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCharacterization {
    /// Its number in the store.
    pub id: i64,
    /// When it was stored, seconds since the Unix epoch.
    pub at: i64,
    /// Whether it describes enough of its machine to base decisions on. Otherwise it is an excerpt.
    pub whole: bool,
    /// What was found.
    pub characterization: Characterization,
}

impl StoredCharacterization {
    /// Stores a characterization under its machine's fingerprint. One that is not `whole` is of
    /// some benchmarks only, or disturbed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn keep(
        store: &mut Store,
        characterization: Characterization,
        whole: bool,
    ) -> Result<Self, StoreError> {
        let kind = if whole { WHOLE } else { EXCERPT };
        let document = serde_json::to_string(&characterization)
            .map_err(|error| store.unusable(format!("cannot hold it: {error}")))?;
        let stored = store.add_about_machine(&characterization.fingerprint, kind, document)?;
        Ok(Self { id: stored.id, at: stored.at, whole, characterization })
    }

    /// The latest whole characterization of a machine with the topology and model of `fingerprint`,
    /// or where there is no whole one the latest excerpt; the conditions (kernel, governor) may
    /// differ and are in its own. `None` where there is neither, and where it was written in
    /// another form than this version's.
    ///
    /// Of a whole one [`crate::Findings::local`] is the level that a predictor may look at alone.
    ///
    /// # Errors
    /// The store cannot be read; what it holds is damaged.
    pub fn latest(store: &Store, fingerprint: &Fingerprint) -> Result<Option<Self>, StoreError> {
        for (kind, whole) in [(WHOLE, true), (EXCERPT, false)] {
            let Some(stored) = store.about_machine(fingerprint, kind)? else { continue };
            let read = Characterization::from_json(&stored.document).map_err(|error| {
                store.unusable(format!("holds a damaged characterization: {error}"))
            })?;
            let (id, at) = (stored.id, stored.at);
            return Ok(read.map(|characterization| Self { id, at, whole, characterization }));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conditions, Plan};
    use pinwise_measure::{Bench, Fame, MeasureError, Microbenchmark, Pace, PaceUnit, Retry, Seat};
    use pinwise_topology::Machine;

    /// A machine of one context, characterized without a benchmark: what is stored is what counts
    /// here.
    fn characterization(shape: &str, seed: u64) -> Characterization {
        struct Nothing(Machine);
        impl Bench for Nothing {
            fn machine(&self) -> &Machine {
                &self.0
            }
            fn benchmarks(&self) -> &[Microbenchmark] {
                &[]
            }
            fn unit(&self) -> PaceUnit {
                PaceUnit::Cycles
            }
            fn at_once(&self) -> usize {
                1
            }
            fn run(&self, _: &[Seat], _: &Fame, _: u64) -> Result<Vec<Pace>, MeasureError> {
                Err(MeasureError::new(Retry::Never, "there is nothing to run"))
            }
        }
        let bench = Nothing(Machine::from_shape(shape).unwrap());
        let plan = Plan::new(bench.machine(), &[], &[], 1).unwrap();
        let conditions = Conditions { fame: Fame::default(), rounds: 1, seed };
        let fingerprint = Fingerprint::of(bench.machine());
        Characterization::of(&bench, &plan, conditions, fingerprint, [])
    }

    #[test]
    fn the_latest_characterization_of_a_machine_is_found_whole_ones_before_excerpts() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
        let fingerprint = |shape: &str| Fingerprint::of(&Machine::from_shape(shape).unwrap());
        let found = |store: &Store, fingerprint: &Fingerprint| {
            let found = StoredCharacterization::latest(store, fingerprint).unwrap();
            found.map(|kept| (kept.characterization.conditions.seed, kept.whole))
        };
        assert_eq!(found(&store, &fingerprint("2x2")), None);
        for (shape, seed, whole) in
            [("2x2", 1, true), ("2x2", 2, true), ("2x2", 4, false), ("4x1", 5, false)]
        {
            let kept =
                StoredCharacterization::keep(&mut store, characterization(shape, seed), whole);
            let kept = kept.unwrap();
            assert_eq!((kept.whole, kept.characterization.conditions.seed), (whole, seed));
            if seed != 4 {
                let read = StoredCharacterization::latest(&store, &fingerprint(shape)).unwrap();
                let read = read.unwrap();
                assert_eq!((read.id, read.at, read.whole), (kept.id, kept.at, kept.whole));
                let text = |kept: &StoredCharacterization| {
                    serde_json::to_string(&kept.characterization).unwrap()
                };
                assert_eq!(text(&read), text(&kept));
            }
        }
        let kernel = Fingerprint { kernel: Some("7.0".into()), ..fingerprint("2x2") };
        assert_eq!(
            found(&store, &kernel),
            Some((2, true)),
            "a later excerpt takes no whole's place"
        );
        assert_eq!(found(&store, &fingerprint("4x1")), Some((5, false)), "where there is no more");
        assert_eq!(found(&store, &fingerprint("8x2")), None);
        let mut replace = |form: &str| {
            store.add_about_machine(&kernel, WHOLE, form.into()).unwrap();
            StoredCharacterization::latest(&store, &kernel)
        };
        assert_eq!(replace(r#"{"version":99,"figures":"others"}"#).unwrap(), None);
        assert!(replace("{}").unwrap_err().to_string().contains("damaged characterization"));
    }
}
