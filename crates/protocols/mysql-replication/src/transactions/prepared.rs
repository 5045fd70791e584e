//! XA transactions that are prepared and wait for their commit or rollback.
//!
//! They may wait for a long time, and are lost when the stream is interrupted: the commit of an unknown
//! transaction counts as a change of everything. Invariant: their rows stay within the limit. Beyond it only
//! the tables are kept, and beyond [`COUNT_MAX`] transactions nothing.

use super::group::Changes;
use crate::statement::XaId;
use std::collections::HashMap;

const COUNT_MAX: usize = 1000;

#[derive(Debug)]
pub(super) struct PreparedTransactions {
    bytes_max: usize,
    bytes: usize,
    waiting: HashMap<XaId, Changes>,
    /// Whether there were more than are kept: it is not known when these end.
    is_incomplete: bool,
}

impl PreparedTransactions {
    pub(super) fn new(bytes_max: usize) -> PreparedTransactions {
        PreparedTransactions { bytes_max, bytes: 0, waiting: HashMap::new(), is_incomplete: false }
    }

    pub(super) fn keep(&mut self, id: XaId, mut changes: Changes) {
        // An earlier transaction with the same id was never committed.
        self.take(&id);
        if self.waiting.len() >= COUNT_MAX {
            self.is_incomplete = true;
            return;
        }
        if self.bytes.saturating_add(changes.bytes) > self.bytes_max {
            changes.without_rows();
        }
        self.bytes += changes.bytes;
        self.waiting.insert(id, changes);
    }

    /// Whether no transaction is prepared, as far as the stream has shown.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && !self.is_incomplete
    }

    pub(super) fn take(&mut self, id: &XaId) -> Option<Changes> {
        let changes = self.waiting.remove(id)?;
        self.bytes -= changes.bytes;
        Some(changes)
    }
}
