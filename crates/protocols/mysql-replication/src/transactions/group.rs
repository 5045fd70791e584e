//! The transaction that is open: its name, its changes within the bounds, its savepoints.
//!
//! Invariant: rows are held up to `transaction_bytes`. Beyond that those that are held become changes
//! of their tables, and what follows is told by tables only; beyond `tables` it is everything. A
//! change is never lost on the way from one to the other, and never undone by it.

use super::{Change, Effect, Gtid, Limits, What, Why, whole};
use std::collections::HashSet;
use std::sync::Arc;

/// Savepoints that are remembered; changes after others are never taken for undone.
const SAVEPOINTS_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Named, perhaps; a single statement would end it.
    Named,
    /// A transaction that waits for its end.
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
    /// Changes of whole tables that were told already, and hold.
    tables: HashSet<(Arc<str>, Arc<str>, Why)>,
    savepoints: Vec<(String, usize)>,
}

/// The changes of a transaction, and how many bytes of rows they hold.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) changes: Vec<Change>,
    pub(super) bytes: usize,
}

impl Changes {
    /// Changes of tables in the place of rows: a few bytes each.
    pub(super) fn without_rows(&mut self) {
        let mut told = HashSet::new();
        self.changes.retain_mut(|change| {
            if let What::Rows(rows) = &change.what {
                change.what = whole(&rows.table, Why::TooLarge);
            }
            match &change.what {
                What::Table { schema, name, why } => {
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
    /// Without a name, and without a BEGIN.
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

    /// Whether a statement does not end it.
    pub(super) fn goes_on(&self) -> bool {
        self.phase == Phase::Begun
    }

    pub(super) fn add(&mut self, what: What, limits: &Limits) {
        let what = match what {
            What::Rows(rows) => {
                self.bytes = self.bytes.saturating_add(rows.rows.len_bytes());
                if self.detail == Detail::Rows && self.bytes > limits.transaction_bytes {
                    self.degrade(limits);
                }
                match self.detail {
                    Detail::Rows => What::Rows(rows),
                    Detail::Tables => whole(&rows.table, Why::TooLarge),
                }
            }
            what => what,
        };
        self.push(what, limits);
    }

    fn push(&mut self, what: What, limits: &Limits) {
        if let What::Table { schema, name, why } = &what {
            if !self.tables.insert((schema.clone(), name.clone(), *why)) {
                return;
            }
            if self.tables.len() > limits.tables {
                return self.give_up();
            }
        }
        // Everything needs to be told once only.
        let is_told = |change: &Change| change.what == what && change.effect == Effect::Holds;
        if matches!(what, What::Everything(_) | What::Schema { .. })
            && self.changes.iter().rev().take(8).any(is_told)
        {
            return;
        }
        self.changes.push(Change { what, effect: Effect::Holds });
        // Statements that name databases, in great number; rows count their own size.
        if self.changes.len() > limits.tables + limits.transaction_bytes / 256 {
            self.degrade(limits);
        }
    }

    /// Tables instead of rows from now on, and for what is held.
    fn degrade(&mut self, limits: &Limits) {
        self.detail = Detail::Tables;
        // Savepoints are about places among the changes, which go.
        self.savepoints.clear();
        self.tables.clear();
        for mut change in std::mem::take(&mut self.changes) {
            if let What::Rows(rows) = &change.what {
                change.what = whole(&rows.table, Why::TooLarge);
            }
            match &change.what {
                What::Table { schema, name, why } => {
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
        let what = What::Everything(Why::TooLarge);
        self.changes = vec![Change { what, effect: Effect::Holds }];
    }

    pub(super) fn savepoint(&mut self, name: String) {
        self.begin();
        // A name used again takes the place of the one before.
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
            // Definitions commit what is open, and are not rolled back.
            if !matches!(change.what, What::Table { why: Why::Defined, .. }) {
                change.effect = Effect::UndoneIfTransactional;
            }
            // What is written to it from now on is to be told again.
            if let What::Table { schema, name, why } = &change.what {
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
