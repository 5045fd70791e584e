//! The open transaction, with its changes within the limits.
//!
//! Invariant: rows are held up to `transaction_bytes`. Beyond that, the held rows are replaced by changes of
//! their tables, and later changes are recorded per table only. Beyond `tables`, one change of everything is
//! recorded. No change is lost in these steps.

use super::outcome::{self, ChangeScope, FallbackReason, ROW_EXTRA_BYTES, TableRows, Transaction};
use super::{Limits, Table};
use crate::message::{Begin, Commit};
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum number of runs of rows: each run needs memory in addition to its rows.
const RUNS_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Rows,
    Tables,
    Everything,
}

/// The open transaction.
#[derive(Debug)]
pub(super) struct Group {
    begin: Begin,
    detail: Detail,
    changes: Vec<ChangeScope>,
    bytes: usize,
    /// The whole-table changes that were recorded already.
    tables: HashSet<(Arc<str>, Arc<str>, FallbackReason)>,
}

impl Group {
    pub(super) fn new(begin: Begin) -> Group {
        let (changes, tables) = (Vec::new(), HashSet::new());
        Group { begin, detail: Detail::Rows, changes, bytes: 0, tables }
    }

    /// Adds a row. Consecutive rows of one table share a run.
    pub(super) fn add_row(&mut self, table: &Arc<Table>, message: &[u8], limits: &Limits) {
        if self.detail == Detail::Rows {
            self.bytes = self.bytes.saturating_add(message.len() + ROW_EXTRA_BYTES);
            if self.bytes > limits.transaction_bytes || self.changes.len() > RUNS_MAX {
                self.degrade(limits);
            }
        }
        if self.detail != Detail::Rows {
            return self.add(outcome::whole(table, FallbackReason::TooLarge), limits);
        }
        match self.changes.last_mut() {
            Some(ChangeScope::Rows(rows)) if Arc::ptr_eq(&rows.table, table) => rows.push(message),
            _ => {
                let mut rows = TableRows::new(table.clone());
                rows.push(message);
                self.changes.push(ChangeScope::Rows(rows));
            }
        }
    }

    /// Adds a change other than a row, unless it was added already.
    pub(super) fn add(&mut self, what: ChangeScope, limits: &Limits) {
        if self.detail == Detail::Everything && !is_defined(&what) {
            return;
        }
        match &what {
            ChangeScope::Table { schema, name, why } => {
                if !self.tables.insert((schema.clone(), name.clone(), *why)) {
                    return;
                }
                if self.tables.len() > limits.tables {
                    return self.give_up();
                }
            }
            _ if self.changes.iter().rev().take(8).any(|own| *own == what) => return,
            _ => {}
        }
        self.changes.push(what);
        if self.changes.len() > RUNS_MAX + limits.tables {
            self.degrade(limits);
        }
    }

    /// From now on records tables instead of rows, and converts the rows that are held.
    fn degrade(&mut self, limits: &Limits) {
        self.detail = Detail::Tables;
        self.tables.clear();
        for what in std::mem::take(&mut self.changes) {
            match what {
                ChangeScope::Rows(rows) => {
                    self.add(outcome::whole(&rows.table, FallbackReason::TooLarge), limits)
                }
                what => self.add(what, limits),
            }
        }
        self.changes.shrink_to_fit();
    }

    /// Replaces all changes by one change of everything, but keeps the information that definitions changed.
    fn give_up(&mut self) {
        self.detail = Detail::Everything;
        self.tables.clear();
        let defined = self.changes.iter().any(is_defined);
        self.changes = vec![ChangeScope::Everything(FallbackReason::TooLarge)];
        if defined {
            self.changes.push(ChangeScope::Definitions);
        }
    }

    pub(super) fn finish(self, commit: Commit) -> Transaction {
        let Begin { xid, micros, .. } = self.begin;
        let (commit, end) = (commit.commit, commit.end);
        Transaction { xid, commit, end, micros, changes: self.changes }
    }
}

fn is_defined(what: &ChangeScope) -> bool {
    matches!(
        what,
        ChangeScope::Definitions | ChangeScope::Table { why: FallbackReason::Defined, .. }
    )
}
