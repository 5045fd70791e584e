//! The open transaction: its GTID, its changes within the limits, its savepoints.
//!
//! Invariant: rows are held up to `transaction_bytes`. Beyond that, the held rows are replaced by changes of
//! their tables, and later changes are recorded per table only. Beyond `tables`, one change of everything is
//! recorded. No change is lost or marked as undone by these steps.

use super::{Change, ChangeScope, Effect, FallbackReason, Gtid, Limits, whole};
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum number of savepoints. Changes after further savepoints are never marked as undone.
const SAVEPOINTS_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The transaction may have a GTID; a single statement would end it.
    Named,
    /// The transaction waits for its end.
    Begun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Rows,
    Tables,
}

/// The open transaction.
#[derive(Debug)]
pub(super) struct Group {
    gtid: Option<Gtid>,
    phase: Phase,
    detail: Detail,
    changes: Vec<Change>,
    bytes: usize,
    /// Changes of whole tables that were recorded already and are not undone.
    tables: HashSet<(Arc<str>, Arc<str>, FallbackReason)>,
    savepoints: Vec<(String, usize)>,
}

/// The changes of a transaction, and the size of their rows in bytes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) changes: Vec<Change>,
    pub(super) bytes: usize,
}

impl Changes {
    /// Replaces rows by changes of their tables, which take a few bytes each.
    pub(super) fn without_rows(&mut self) {
        let mut told = HashSet::new();
        self.changes.retain_mut(|change| {
            if let ChangeScope::Rows(rows) = &change.what {
                change.what = whole(&rows.table, FallbackReason::TooLarge);
            }
            match &change.what {
                ChangeScope::Table { schema, name, why } => {
                    told.insert((schema.clone(), name.clone(), *why, change.effect))
                }
                _ => true,
            }
        });
        self.changes.shrink_to_fit();
        self.bytes = 0;
    }
}

impl Group {
    /// A transaction without a GTID and without a BEGIN.
    pub(super) fn unnamed() -> Group {
        Group {
            gtid: None,
            phase: Phase::Named,
            detail: Detail::Rows,
            changes: Vec::new(),
            bytes: 0,
            tables: HashSet::new(),
            savepoints: Vec::new(),
        }
    }

    /// A transaction that waits for its end.
    pub(super) fn begun() -> Group {
        Group { phase: Phase::Begun, ..Group::unnamed() }
    }

    pub(super) fn name(&mut self, gtid: Option<Gtid>) {
        self.gtid = gtid;
    }

    pub(super) fn begin(&mut self) {
        self.phase = Phase::Begun;
    }

    /// Whether the transaction continues after a statement.
    pub(super) fn goes_on(&self) -> bool {
        self.phase == Phase::Begun
    }

    pub(super) fn add(&mut self, what: ChangeScope, limits: &Limits) {
        let what = match what {
            ChangeScope::Rows(rows) => {
                self.bytes = self.bytes.saturating_add(rows.rows.len_bytes());
                if self.detail == Detail::Rows && self.bytes > limits.transaction_bytes {
                    self.degrade(limits);
                }
                match self.detail {
                    Detail::Rows => ChangeScope::Rows(rows),
                    Detail::Tables => whole(&rows.table, FallbackReason::TooLarge),
                }
            }
            what => what,
        };
        self.push(what, limits);
    }

    fn push(&mut self, what: ChangeScope, limits: &Limits) {
        if let ChangeScope::Table { schema, name, why } = &what {
            if !self.tables.insert((schema.clone(), name.clone(), *why)) {
                return;
            }
            if self.tables.len() > limits.tables {
                return self.give_up();
            }
        }
        // A change of everything is recorded only once.
        let is_told = |change: &Change| change.what == what && change.effect == Effect::Holds;
        if matches!(what, ChangeScope::Everything(_) | ChangeScope::Schema { .. })
            && self.changes.iter().rev().take(8).any(is_told)
        {
            return;
        }
        self.changes.push(Change { what, effect: Effect::Holds });
        // Limits a large number of statements that name databases. Rows have their own limit.
        if self.changes.len() > limits.tables + limits.transaction_bytes / 256 {
            self.degrade(limits);
        }
    }

    /// From now on records tables instead of rows, and converts the rows that are held.
    fn degrade(&mut self, limits: &Limits) {
        self.detail = Detail::Tables;
        // Savepoints are indices of changes, which are removed.
        self.savepoints.clear();
        self.tables.clear();
        for mut change in std::mem::take(&mut self.changes) {
            if let ChangeScope::Rows(rows) = &change.what {
                change.what = whole(&rows.table, FallbackReason::TooLarge);
            }
            match &change.what {
                ChangeScope::Table { schema, name, why } => {
                    let is_new = self.tables.insert((schema.clone(), name.clone(), *why));
                    if is_new || change.effect != Effect::Holds {
                        self.changes.push(Change { what: change.what, effect: Effect::Holds });
                    }
                }
                _ => self.changes.push(change),
            }
        }
        self.changes.shrink_to_fit();
        if self.changes.len() > limits.tables {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.detail = Detail::Tables;
        self.savepoints.clear();
        self.tables.clear();
        let what = ChangeScope::Everything(FallbackReason::TooLarge);
        self.changes = vec![Change { what, effect: Effect::Holds }];
    }

    pub(super) fn savepoint(&mut self, name: String) {
        self.begin();
        // A new savepoint replaces an older one of the same name.
        self.savepoints.retain(|(own, _)| *own != name);
        if self.savepoints.len() < SAVEPOINTS_MAX {
            self.savepoints.push((name, self.changes.len()));
        }
    }

    pub(super) fn undo_to(&mut self, name: &str) {
        self.begin();
        let Some(at) = self.savepoints.iter().position(|(own, _)| own == name) else { return };
        let from = self.savepoints[at].1;
        self.savepoints.truncate(at + 1);
        self.undo(from);
    }

    pub(super) fn undo_all(&mut self) {
        self.undo(0);
    }

    fn undo(&mut self, from: usize) {
        for change in self.changes.get_mut(from..).unwrap_or_default() {
            // Definitions commit the open transaction, and are not rolled back.
            if !matches!(change.what, ChangeScope::Table { why: FallbackReason::Defined, .. }) {
                change.effect = Effect::UndoneIfTransactional;
            }
            // Later changes of this table must be recorded again.
            if let ChangeScope::Table { schema, name, why } = &change.what {
                self.tables.remove(&(schema.clone(), name.clone(), *why));
            }
        }
    }

    pub(super) fn take_changes(&mut self) -> Changes {
        let changes = std::mem::take(&mut self.changes);
        Changes { changes, bytes: std::mem::take(&mut self.bytes) }
    }

    pub(super) fn put_changes(&mut self, changes: Changes) {
        self.changes.extend(changes.changes);
    }

    pub(super) fn into_parts(self) -> (Option<Gtid>, Vec<Change>) {
        (self.gtid, self.changes)
    }
}
