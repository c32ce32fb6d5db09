//! Results about machines, such as characterizations, as documents in the form of their writer.

use super::digest::seal_machine;
use super::row::text;
use super::{Store, StoreError};
use pinwise_topology::Fingerprint;
use rusqlite::{OptionalExtension, TransactionBehavior};

/// A document about a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineDocument {
    /// Its number in the table of machines.
    pub id: i64,
    /// When it was stored, seconds since the Unix epoch.
    pub at: i64,
    /// What it is. It decides which type the document has.
    pub kind: String,
    /// JSON.
    pub document: String,
}

impl Store {
    /// Stores a document about the machine of `fingerprint`.
    pub fn add_about_machine(
        &mut self,
        fingerprint: &Fingerprint,
        kind: &str,
        document: String,
    ) -> Result<MachineDocument, StoreError> {
        self.upgrade()?;
        let (id, at) = self.sql(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Added since the format began; older versions do not miss it, so the format stays.
            transaction.execute_batch(include_str!("machine.sql"))?;
            let stored = transaction.query_row(
                "INSERT INTO machine (kind, topology, model, fingerprint, document)
                 VALUES (?, ?, ?, ?, ?) RETURNING id, at",
                (kind, &fingerprint.topology, &fingerprint.model, text(fingerprint), &document),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            seal_machine(&transaction, stored.0)?;
            transaction.commit()?;
            Ok(stored)
        })?;
        Ok(MachineDocument { id, at, kind: kind.to_owned(), document })
    }

    /// The latest document of `kind` about a machine with the topology and model of `fingerprint`.
    /// The conditions (kernel, governor) may differ. `None` if there is none.
    ///
    /// # Errors
    /// It is not as it was written.
    pub fn about_machine(
        &self,
        fingerprint: &Fingerprint,
        kind: &str,
    ) -> Result<Option<MachineDocument>, StoreError> {
        if !self.has_table("machine")? {
            return Ok(None);
        }
        let found: Option<(i64, i64, String)> = self.read(|connection| {
            connection
                .query_row(
                    "SELECT id, at, document FROM machine
                     WHERE kind = ? AND topology = ? AND model = ? ORDER BY id DESC LIMIT 1",
                    (kind, &fingerprint.topology, &fingerprint.model),
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()
        })?;
        found.iter().try_for_each(|&(id, ..)| self.check_machine(id))?;
        Ok(found.map(|(id, at, document)| MachineDocument {
            id,
            at,
            kind: kind.to_owned(),
            document,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Machine;

    #[test]
    fn the_latest_document_of_a_kind_is_found_by_the_machines_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pinwise.db");
        let mut store = Store::open(&path).unwrap();
        let fingerprint = |shape: &str| Fingerprint::of(&Machine::from_shape(shape).unwrap());
        let none = store.about_machine(&fingerprint("2x2"), "a").unwrap();
        assert_eq!(none, None, "a store that never held one has no table for it");
        for (shape, kind, document) in
            [("2x2", "a", "1"), ("2x2", "a", "2"), ("2x2", "b", "3"), ("4x2", "a", "4")]
        {
            let fingerprint = fingerprint(shape);
            let stored = store.add_about_machine(&fingerprint, kind, document.into()).unwrap();
            assert_eq!(store.about_machine(&fingerprint, kind).unwrap(), Some(stored));
        }
        let kernel = Fingerprint { kernel: Some("7.0".into()), ..fingerprint("2x2") };
        let store = Store::open(&path).unwrap();
        let found = |fingerprint: &Fingerprint, kind: &str| {
            store.about_machine(fingerprint, kind).unwrap().map(|found| found.document)
        };
        assert_eq!(found(&kernel, "a").as_deref(), Some("2"));
        assert_eq!(found(&kernel, "b").as_deref(), Some("3"));
        assert_eq!(found(&fingerprint("4x2"), "a").as_deref(), Some("4"));
        assert_eq!(found(&fingerprint("4x2"), "b"), None);
        assert_eq!(found(&fingerprint("8x2"), "a"), None);
    }

    #[test]
    fn a_document_that_has_changed_on_disk_is_refused_until_there_is_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
        let machine = Fingerprint::of(&Machine::from_shape("2x2").unwrap());
        store.add_about_machine(&machine, "a", "17".into()).unwrap();
        let damage = "UPDATE machine SET document = '19'";
        store.sql(|connection| connection.execute_batch(damage)).unwrap();
        let refused = store.about_machine(&machine, "a").unwrap_err().to_string();
        assert!(refused.contains("is damaged: what it knows about this machine"), "{refused}");
        assert!(store.list().unwrap().unreadable.is_empty(), "no campaign is damaged");
        let again = store.add_about_machine(&machine, "a", "17".into()).unwrap();
        assert_eq!(store.about_machine(&machine, "a").unwrap(), Some(again));
    }
}
