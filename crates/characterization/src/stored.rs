//! A characterization in the store, where predictors find it later.

use crate::Characterization;
use pinwise_campaign::{Store, StoreError};
use pinwise_topology::Fingerprint;
use serde::{Deserialize, Serialize};

/// The name of a characterization in the store.
const WHOLE: &str = "characterization";
/// The name of a partial characterization. It describes too little of its machine to decide by.
const EXCERPT: &str = "excerpt";

/// A characterization as the store holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCharacterization {
    /// Its number in the store.
    pub id: i64,
    /// When it was stored, seconds since the Unix epoch.
    pub at: i64,
    /// Why it describes too little of its machine to decide by. `None`: it describes enough.
    pub excerpt: Option<ExcerptReason>,
    /// What was found.
    pub characterization: Characterization,
}

/// Why a characterization is an excerpt: nothing is decided by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExcerptReason {
    /// Only some of the benchmarks took part.
    SomeBenchmarks,
    /// Few stressors ran on other cores.
    FewStressors {
        /// The fewest stressors that count as many.
        enough: usize,
    },
    /// Other programs had the contexts.
    Busy {
        /// Share of the time that programs had the contexts of the benchmarks.
        share: f64,
    },
    /// Not known: from a store that was written before reasons were kept with it.
    Unknown,
    /// Text: from a store that was written before these reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(ExcerptReason);

/// The stored document. In earlier versions it had no reason.
#[derive(Serialize)]
struct StoredJson<'a> {
    #[serde(flatten)]
    characterization: &'a Characterization,
    excerpt: &'a Option<ExcerptReason>,
}

/// The part of the stored document beside the characterization.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    excerpt: Option<ExcerptReason>,
}

impl StoredCharacterization {
    /// Stores a characterization under its machine's fingerprint, and why it is an `excerpt`, if
    /// so.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn keep(
        store: &mut Store,
        characterization: Characterization,
        excerpt: Option<ExcerptReason>,
    ) -> Result<Self, StoreError> {
        let kind = if excerpt.is_none() { WHOLE } else { EXCERPT };
        let document = StoredJson { characterization: &characterization, excerpt: &excerpt };
        let document = serde_json::to_string(&document)
            .map_err(|error| store.unusable(format!("cannot hold it: {error}")))?;
        let stored = store.add_about_machine(&characterization.fingerprint, kind, document)?;
        Ok(Self { id: stored.id, at: stored.at, excerpt, characterization })
    }

    /// The latest whole characterization of a machine with the topology and model of `fingerprint`.
    /// If there is no whole one, it is the latest excerpt. The conditions (kernel, governor) may
    /// differ: its fingerprint has them. `None` if there is neither, and where it was written in
    /// another form than this version's.
    ///
    /// Of a whole one [`crate::Findings::local`] is the level that a predictor may look at alone.
    ///
    /// # Errors
    /// The store cannot be read; what it holds is damaged.
    pub fn latest(store: &Store, fingerprint: &Fingerprint) -> Result<Option<Self>, StoreError> {
        for kind in [WHOLE, EXCERPT] {
            let Some(stored) = store.about_machine(fingerprint, kind)? else { continue };
            let damaged =
                |error| store.unusable(format!("holds a damaged characterization: {error}"));
            let read = Characterization::from_json(&stored.document).map_err(damaged)?;
            let Some(characterization) = read else { return Ok(None) };
            let excerpt = if kind == WHOLE {
                None
            } else {
                let Beside { excerpt } = serde_json::from_str(&stored.document).map_err(damaged)?;
                Some(excerpt.unwrap_or_else(|| why(&characterization)))
            };
            let (id, at) = (stored.id, stored.at);
            return Ok(Some(Self { id, at, excerpt, characterization }));
        }
        Ok(None)
    }
}

/// Why a characterization that was stored without a reason is an excerpt.
fn why(characterization: &Characterization) -> ExcerptReason {
    let noise = &characterization.noise;
    if noise.busy() { ExcerptReason::Busy { share: noise.share } } else { ExcerptReason::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conditions, RoundPlan};
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
        let plan = RoundPlan::new(bench.machine(), &[], &[], 1).unwrap();
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
            found.map(|kept| (kept.characterization.conditions.seed, kept.excerpt.is_none()))
        };
        assert_eq!(found(&store, &fingerprint("2x2")), None);
        for (shape, seed, whole) in
            [("2x2", 1, true), ("2x2", 2, true), ("2x2", 4, false), ("4x1", 5, false)]
        {
            let why = (!whole).then_some(ExcerptReason::FewStressors { enough: 8 });
            let kept = StoredCharacterization::keep(
                &mut store,
                characterization(shape, seed),
                why.clone(),
            );
            let kept = kept.unwrap();
            assert_eq!((&kept.excerpt, kept.characterization.conditions.seed), (&why, seed));
            if seed != 4 {
                let read = StoredCharacterization::latest(&store, &fingerprint(shape)).unwrap();
                let read = read.unwrap();
                assert_eq!((read.id, read.at, &read.excerpt), (kept.id, kept.at, &kept.excerpt));
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
        // Earlier versions stored no reason.
        let other = fingerprint("3x1");
        let plain = serde_json::to_string(&characterization("3x1", 6)).unwrap();
        store.add_about_machine(&other, EXCERPT, plain).unwrap();
        let read = StoredCharacterization::latest(&store, &other).unwrap().unwrap();
        assert_eq!(read.excerpt, Some(why(&read.characterization)));
        let mut replace = |form: &str| {
            store.add_about_machine(&kernel, WHOLE, form.into()).unwrap();
            StoredCharacterization::latest(&store, &kernel)
        };
        assert_eq!(replace(r#"{"version":99,"figures":"others"}"#).unwrap(), None);
        assert!(replace("{}").unwrap_err().to_string().contains("damaged characterization"));
    }
}
