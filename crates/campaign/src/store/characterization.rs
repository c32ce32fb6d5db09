//! What was found out about machines themselves.

use super::error::unusable;
use super::row::text;
use super::{Store, StoreError};
use pinwise_characterization::Characterization;
use pinwise_topology::Fingerprint;
use rusqlite::{OptionalExtension, TransactionBehavior};

/// What a characterization is called in the table of machines.
const CHARACTERIZATION: &str = "characterization";
/// What one is called that tells too little of its machine to decide by.
const EXCERPT: &str = "excerpt";

impl Store {
    /// Keeps a characterization under its machine's fingerprint; the number it has there. One that is not `whole`, of some benchmarks only or
    /// disturbed, is kept and not found by [`Store::characterization`].
    pub fn keep_characterization(
        &mut self,
        characterization: &Characterization,
        whole: bool,
    ) -> Result<i64, StoreError> {
        let kind = if whole { CHARACTERIZATION } else { EXCERPT };
        let fingerprint = &characterization.fingerprint;
        let (fingerprint_text, document) = (text(fingerprint), text(characterization));
        self.sql(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Added since the format began; older versions do not miss it, so the format stays.
            transaction.execute_batch(include_str!("machine.sql"))?;
            transaction.execute(
                "INSERT INTO machine (kind, topology, model, fingerprint, document) VALUES (?, ?, ?, ?, ?)",
                (kind, &fingerprint.topology, &fingerprint.model, fingerprint_text, document),
            )?;
            let id = transaction.last_insert_rowid();
            transaction.commit()?;
            Ok(id)
        })
    }

    /// The latest whole characterization of a machine with the topology and model of `fingerprint`; the conditions (kernel, governor) may
    /// differ and are in its own. `None` where there is none, and where the latest was written in another form than this version's.
    ///
    /// Its [`pinwise_characterization::Findings::local`] is the level that a predictor may look at alone.
    pub fn characterization(&self, fingerprint: &Fingerprint) -> Result<Option<Characterization>, StoreError> {
        if !self.has_table("machine")? {
            return Ok(None);
        }
        let found: Option<String> = self.read(|connection| {
            connection
                .query_row(
                    "SELECT document FROM machine WHERE kind = ? AND topology = ? AND model = ? ORDER BY id DESC LIMIT 1",
                    (CHARACTERIZATION, &fingerprint.topology, &fingerprint.model),
                    |row| row.get(0),
                )
                .optional()
        })?;
        let Some(found) = found else { return Ok(None) };
        Characterization::from_json(&found)
            .map_err(|error| unusable(&self.path, format!("holds a damaged characterization: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_characterization::{Conditions, Plan, execute};
    use pinwise_testbed::{Bench, Fame, MeasureError, Microbenchmark, Pace, PaceUnit, Retry, Seat};
    use pinwise_topology::Machine;
    use rusqlite::Connection;
    use std::time::Duration;

    /// A machine of one context, characterized without a benchmark: what is kept is what counts here.
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
        let seed = |store: &Store, fingerprint: &Fingerprint| {
            store.characterization(fingerprint).unwrap().map(|found| found.conditions.seed)
        };
        assert_eq!(seed(&store, &fingerprint("2x2")), None, "a store that never held one has no table for it");
        for (shape, number, whole) in [("2x2", 1, true), ("2x2", 2, true), ("2x2", 4, false), ("4x2", 3, true)] {
            store.keep_characterization(&characterization(shape, number), whole).unwrap();
        }
        let mut kernel = fingerprint("2x2");
        kernel.kernel = Some("7.0".into());
        let store = Store::open(&path).unwrap();
        assert_eq!(seed(&store, &kernel), Some(2));
        assert_eq!(seed(&store, &fingerprint("4x2")), Some(3));
        assert_eq!(seed(&store, &fingerprint("8x2")), None);
        let change = |form: &str| {
            Connection::open(&path).unwrap().execute("UPDATE machine SET document = ?", [form]).unwrap();
            store.characterization(&kernel)
        };
        assert_eq!(change(r#"{"version":99,"figures":"others"}"#).unwrap(), None);
        assert!(change("{}").unwrap_err().to_string().contains("damaged characterization"));
    }
}
