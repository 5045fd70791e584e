//! Applies changed rows of a database, for automatic dependencies, beside the tags of the rules.
//!
//! | step | a render that begins before it, and reads a changed row |
//! |---|---|
//! | the tables are defined | its page is not stored, if they differ from those before |
//! | the look for touched statements | its page is tested against the rows when it is stored |
//! | the change of these statements is opened | its page is purged, or refused by the store |
//! | the change is settled, and the look with it | as before; a later render has seen the row |
//!
//! Between two transactions of different definitions, the tables are read again and defined first: statements and
//! rows always have the same definitions. Not here: the order of changes of held rows (`held_rows`).

use super::follow::{Follower, open};
use super::held_rows::ReleaseCause;
use super::partner_search::PartnerSearch;
use super::settle::{Entry, Opening, Waiting};
use super::stream_ahead::StreamAhead;
use change_feed::TouchedTags;
use databases::stream_types::{ChangedRows, VisibilityMarker};
use footprint::TableChange;
use footprint::schema::{SqlSchema, TableId};
use history::ChangeSource;
use statements::footprints::{StatementLook, TransactionRows};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

impl Follower {
    /// Sets the server and the tables, at the start of a connection.
    pub(super) async fn begin(&mut self, stream: &mut StreamAhead, server: &Arc<str>) {
        if self.site.footprints.follows(self.feed.name()) {
            self.site.footprints.follow_server(server);
        }
        self.define(stream).await;
    }

    /// Sets the tables, if they were just read. If they differ from before, every page is purged, and none is stored
    /// until the transactions before are visible: rows of these are not compared with statements of the new tables.
    pub(super) async fn define(&mut self, stream: &mut StreamAhead) {
        let Some(tables) = stream.take_definitions() else { return };
        self.partners.open(&self.feed).await;
        if self.tables.as_ref().is_some_and(|before| *before != tables) {
            self.feed.progress().opened();
            let mut touched = TouchedTags::default();
            touched.add_everything();
            let by = ChangeSource::database(self.feed.name(), std::iter::empty());
            self.open(touched, None, self.last_mark.clone(), by).await;
        }
        self.site.footprints.define(tables.clone(), &self.site.changes()).await;
        self.tables = Some(tables);
        // Rows that were held are gone, together with all pages.
        self.plan_release().await;
    }

    /// Opens the change of a transaction's rows, and queues it for settling.
    pub(super) async fn rows(
        &mut self,
        changed: ChangedRows,
        mark: Option<VisibilityMarker>,
        stream: &mut StreamAhead,
    ) {
        let (site, feed) = (self.site.clone(), self.feed.clone());
        let names = names(&changed, self.tables.as_ref());
        let by = ChangeSource::database(feed.name(), names.into_iter());
        let ChangedRows { touched, rows, transaction } = changed;
        feed.progress().opened();
        let mut statements = None;
        if !rows.is_empty() {
            let now = site.clock.monotonic();
            let mut search = PartnerSearch::new(&feed, &mut self.partners, mark.clone());
            search.read_ahead_in(stream);
            let changes = TransactionRows { id: transaction, rows };
            statements = Some(site.footprints.look(changes, &mut search, now).await);
            self.plan_release().await;
        }
        self.last_mark.clone_from(&mark);
        self.open(touched, statements, mark, by).await;
    }

    /// Opens the change of rows that were held back. Every transaction that held one of them is queued before it.
    pub(super) async fn release(&mut self, cause: &ReleaseCause) {
        let (site, feed) = (self.site.clone(), self.feed.clone());
        let (which, now) = (self.held.which(cause), site.clock.monotonic());
        let mark = self.last_mark.clone();
        let mut search = PartnerSearch::new(&feed, &mut self.partners, mark.clone());
        if let Some(look) = site.footprints.release(which, &mut search, now).await {
            feed.progress().opened();
            let by = ChangeSource::database(feed.name(), std::iter::empty());
            self.open(TouchedTags::default(), Some(look), mark, by).await;
        }
        self.plan_release().await;
    }

    /// Sets the time at which held rows are released. While there are any, the settled position stays before the
    /// transaction that held the first of them.
    async fn plan_release(&mut self) {
        let next = self.site.footprints.next_release().await;
        let after = next.map(|next| next.saturating_sub(self.site.clock.monotonic()));
        self.held.set_next(after);
        let mut progress = self.feed.progress();
        match after {
            Some(_) => progress.hold(),
            None => progress.hold_none(),
        }
        drop(progress);
        self.feed.note_settled();
    }

    /// Opens a change, and queues it for settling.
    async fn open(
        &self,
        touched: TouchedTags,
        statements: Option<StatementLook>,
        mark: Option<VisibilityMarker>,
        by: ChangeSource,
    ) {
        let lookups = statements.as_ref().map_or(0, |look| look.lookups as u64);
        let neighbours = statements.as_ref().map(|look| look.neighbours).unwrap_or_default();
        let counters = &self.site.counters;
        counters.reads_lookups.add_many(lookups);
        counters.reads_neighbours.add_many(neighbours.used);
        counters.reads_neighbours_unknown.add_many(neighbours.unknown);
        let by = by.with_row(statements.as_ref().and_then(|look| look.row.clone()));
        let (opened, look) = open(&self.site, touched, statements.as_ref(), by).await;
        let (what, since) = (Opening::Transaction, Instant::now());
        let waiting = Waiting { opened, look, statements, mark, what, since };
        // The send fails only if the server stops.
        let _ = self.entries.send(Entry::Change(Box::new(waiting))).await;
    }
}

/// The names of the tables of changed rows, and of those that the rules name.
fn names<'t>(changed: &'t ChangedRows, tables: Option<&'t SqlSchema>) -> BTreeSet<&'t str> {
    let id = |change: &TableChange| match change {
        TableChange::Row(event) => Some(event.table),
        TableChange::Table(table) => Some(*table),
        TableChange::Everything => None,
    };
    let ids: BTreeSet<TableId> = changed.rows.iter().filter_map(id).collect();
    let mut names: BTreeSet<&str> = changed.touched.tables().collect();
    if let Some(tables) = tables {
        names.extend(ids.into_iter().map(|id| tables.table(id).name.as_str()));
    }
    names
}

#[cfg(test)]
#[path = "row_changes_tests.rs"]
mod tests;
