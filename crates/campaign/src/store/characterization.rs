//! What was found out about machines themselves.

use super::error::unusable;
use super::row::text;
use super::{Store, StoreError};
use pinwise_characterization::Characterization;
use pinwise_topology::Fingerprint;
use rusqlite::{OptionalExtension, TransactionBehavior};

/// What a characterization is called in the table of machines.
const CHARACTERIZATION: &str = "characterization";
/// The kind of a document that describes too little of its machine to base decisions on.
const EXCERPT: &str = "excerpt";

/// A characterization as the store holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCharacterization {
    /// Its number in the table of machines.
    pub id: i64,
    /// When it was kept, seconds since the Unix epoch.
    pub at: i64,
    /// Whether it describes enough of its machine to base decisions on. Otherwise it is an excerpt.
    pub whole: bool,
    /// What was found.
    pub characterization: Characterization,
}

impl Store {
    /// Keeps a characterization under its machine's fingerprint. One that is not `whole` is of some
    /// benchmarks only, or disturbed.
    pub fn keep_characterization(
        &mut self,
        characterization: Characterization,
        whole: bool,
    ) -> Result<KeptCharacterization, StoreError> {
        let kind = if whole { CHARACTERIZATION } else { EXCERPT };
        let fingerprint = &characterization.fingerprint;
        let (fingerprint_text, document) = (text(fingerprint), text(&characterization));
        let (id, at) = self.sql(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Added since the format began; older versions do not miss it, so the format stays.
            transaction.execute_batch(include_str!("machine.sql"))?;
            let kept = transaction.query_row(
                "INSERT INTO machine (kind, topology, model, fingerprint, document) VALUES (?, ?, ?, ?, ?) RETURNING id, at",
                (kind, &fingerprint.topology, &fingerprint.model, fingerprint_text, document),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            transaction.commit()?;
            Ok(kept)
        })?;
        Ok(KeptCharacterization { id, at, whole, characterization })
    }

    /// The latest whole characterization of a machine with the topology and model of `fingerprint`,
    /// or where there is no whole one the latest excerpt; the conditions (kernel, governor) may
    /// differ and are in its own. `None` where there is neither, and where it was written in
    /// another form than this version's.
    ///
    /// Of a whole one [`pinwise_characterization::Findings::local`] is the level that a predictor
    /// may look at alone.
    pub fn characterization(
        &self,
        fingerprint: &Fingerprint,
    ) -> Result<Option<KeptCharacterization>, StoreError> {
        if !self.has_table("machine")? {
            return Ok(None);
        }
        let found: Option<(i64, i64, String, String)> = self.read(|connection| {
            connection
                .query_row(
                    "SELECT id, at, kind, document FROM machine WHERE kind IN (?1, ?2) AND topology = ?3 AND model = ?4
                     ORDER BY kind = ?1 DESC, id DESC LIMIT 1",
                    (CHARACTERIZATION, EXCERPT, &fingerprint.topology, &fingerprint.model),
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
                )
                .optional()
        })?;
        let Some((id, at, kind, document)) = found else { return Ok(None) };
        let read = Characterization::from_json(&document).map_err(|error| {
            unusable(&self.path, format!("holds a damaged characterization: {error}"))
        })?;
        let whole = kind == CHARACTERIZATION;
        Ok(read.map(|characterization| KeptCharacterization { id, at, whole, characterization }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_characterization::{Conditions, Plan, execute};
    use pinwise_measure::{Bench, Fame, MeasureError, Microbenchmark, Pace, PaceUnit, Retry, Seat};
    use pinwise_topology::Machine;
    use rusqlite::Connection;
    use std::time::Duration;

    /// A machine of one context, characterized without a benchmark: what is kept is what counts
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
            fn expected(&self, _: &[Seat], _: &Fame, _: &[Duration]) -> Duration {
                Duration::ZERO
            }
            fn run(&self, _: &[Seat], _: &Fame, _: u64) -> Result<Vec<Pace>, MeasureError> {
                Err(MeasureError::new(Retry::Never, "there is nothing to run"))
            }
        }
        let bench = Nothing(Machine::from_shape(shape).unwrap());
        let plan = Plan::new(bench.machine(), &[], &[], 1).unwrap();
        let conditions = Conditions { fame: Fame::default(), rounds: 1, seed };
        execute(&bench, &plan, conditions, Fingerprint::of(bench.machine()), &|_| {}).unwrap()
    }

    #[test]
    fn the_latest_characterization_of_a_machine_is_found_by_its_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pinwise.db");
        let mut store = Store::open(&path).unwrap();
        let fingerprint = |shape: &str| Fingerprint::of(&Machine::from_shape(shape).unwrap());
        let found = |store: &Store, fingerprint: &Fingerprint| {
            let found = store.characterization(fingerprint).unwrap();
            found.map(|kept| (kept.characterization.conditions.seed, kept.whole))
        };
        assert_eq!(
            found(&store, &fingerprint("2x2")),
            None,
            "a store that never held one has no table for it"
        );
        for (shape, number, whole) in [
            ("2x2", 1, true),
            ("2x2", 2, true),
            ("2x2", 4, false),
            ("4x2", 3, true),
            ("4x1", 5, false),
            ("4x1", 6, false),
        ] {
            let kept = store.keep_characterization(characterization(shape, number), whole).unwrap();
            assert_eq!(
                (kept.id > 0, kept.whole, kept.characterization.conditions.seed),
                (true, whole, number)
            );
            if whole || shape != "2x2" {
                let read = store.characterization(&fingerprint(shape)).unwrap().unwrap();
                assert_eq!((read.id, read.at, read.whole), (kept.id, kept.at, kept.whole));
                assert_eq!(text(&read.characterization), text(&kept.characterization));
            }
        }
        let mut kernel = fingerprint("2x2");
        kernel.kernel = Some("7.0".into());
        let store = Store::open(&path).unwrap();
        assert_eq!(
            found(&store, &kernel),
            Some((2, true)),
            "a later excerpt does not take its place"
        );
        assert_eq!(found(&store, &fingerprint("4x2")), Some((3, true)));
        assert_eq!(
            found(&store, &fingerprint("4x1")),
            Some((6, false)),
            "the latest excerpt where there is no more"
        );
        assert_eq!(found(&store, &fingerprint("8x2")), None);
        let change = |form: &str| {
            Connection::open(&path)
                .unwrap()
                .execute("UPDATE machine SET document = ?", [form])
                .unwrap();
            store.characterization(&kernel)
        };
        assert_eq!(change(r#"{"version":99,"figures":"others"}"#).unwrap(), None);
        assert!(change("{}").unwrap_err().to_string().contains("damaged characterization"));
    }
}
