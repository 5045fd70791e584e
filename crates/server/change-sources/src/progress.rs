//! Two positions of a database's stream: up to where its changes are applied, and up to where they
//! are also settled. A broken stream resumes at the first. Another process resumes at the second,
//! with the pages of this one. No stored page is older than the applied changes, and an unsettled
//! change is applied once more.
//!
//! PostgreSQL keeps its log until a position is confirmed. Where snapshots are written, only the
//! settled position is confirmed, and never more than the snapshots on disk contain. After a kill
//! the next process starts there. The log that is kept for this is bounded. A transaction with rows that
//! are held back (`held_rows`) is not behind the settled position: the next process must apply them.
//!
//! Lock: that of [`Progress`]. It is never held across an `await`, and no other lock is taken under
//! it.

use databases::stream_types::{Bookmark, Position, StreamPosition};
use std::collections::VecDeque;
use std::sync::Arc;

/// The applied and settled positions of a database's stream.
#[derive(Debug, Default)]
pub struct Progress {
    /// The applied position; `None` if nothing is known, and the gate is closed.
    applied: Option<StreamPosition>,
    server: Option<Arc<str>>,
    /// For each open change, in the order of the stream: the position that was applied before it.
    open: VecDeque<PositionBefore>,
    /// The position before the first transaction with a held row; `None` if no row is held.
    held: Option<PositionBefore>,
    /// The number of changes opened so far.
    opened: u64,
    snapshots: SnapshotPositions,
}

/// The position that was applied before a change.
#[derive(Clone, Debug)]
struct PositionBefore {
    /// The number of the change; positions ascend with it.
    number: u64,
    /// `None` if nothing was known.
    position: Option<StreamPosition>,
}

/// The positions from which snapshots need the database's log.
#[derive(Debug, Default)]
struct SnapshotPositions {
    are_written: bool,
    /// The position of the snapshot on disk.
    in_place: Option<Position>,
    /// The positions of the snapshots that are being written, each with its number. The snapshot at
    /// shutdown begins while another may still be in progress.
    begun: Vec<(u64, Position)>,
    /// The number of snapshots begun so far.
    number: u64,
}

/// How the writing of a snapshot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is complete and has replaced the one before.
    Written,
    /// It was not completed.
    Nothing,
}

/// The result of asking up to where a database may discard its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscardLimit {
    /// It must not discard more than before.
    NoFurther,
    /// It may discard the log up to this position.
    UpTo(Position),
    /// It may discard the log up to this position, and the snapshot on disk can no longer be
    /// resumed from.
    Released(Position),
}

impl Progress {
    /// Returns the position at which to resume the stream on this server; `None` if nothing is
    /// known.
    pub fn resume(&mut self, server: &Arc<str>) -> Option<StreamPosition> {
        self.server = Some(server.clone());
        self.applied.clone()
    }

    /// Returns whether the applied position belongs to another server.
    pub fn is_of_another(&self, server: &str) -> bool {
        self.applied.is_some() && self.server.as_deref() != Some(server)
    }

    /// Returns whether any position is known to be applied.
    pub fn is_known(&self) -> bool {
        self.applied.is_some()
    }

    /// Returns whether the applied position is valid on other servers too (GTIDs).
    pub fn is_anywhere(&self) -> bool {
        self.applied.as_ref().is_some_and(|applied| applied.position.is_anywhere())
    }

    /// Records everything up to this position as applied.
    pub fn advance(&mut self, reached: StreamPosition) {
        self.applied = Some(reached);
    }

    /// Sets the server's new identifier. The changes that came with it must already be applied.
    pub fn is_now(&mut self, server: Arc<str>) {
        self.server = Some(server);
    }

    /// Records that a change is about to be opened. A call of [`advance`](Self::advance) must
    /// follow.
    pub fn opened(&mut self) {
        self.opened += 1;
        self.open.push_back(PositionBefore { number: self.opened, position: self.applied.clone() });
    }

    /// Records that rows are held back, of the transaction that is being applied or of an earlier one.
    pub fn hold(&mut self) {
        if self.held.is_none() {
            self.held =
                Some(PositionBefore { number: self.opened, position: self.applied.clone() });
        }
    }

    /// Records that no row is held any more.
    pub fn hold_none(&mut self) {
        self.held = None;
    }

    /// Records that the oldest open change has settled.
    pub fn settled(&mut self) {
        self.open.pop_front();
    }

    /// Forgets all positions, because changes may have been missed.
    pub fn gap(&mut self) {
        self.applied = None;
        let open = self.open.iter_mut().chain(&mut self.held);
        open.for_each(|before| before.position = None);
        (self.snapshots.in_place, self.snapshots.begun) = (None, Vec::new());
    }

    /// Records that snapshots are written from now on.
    pub fn keep_for_snapshots(&mut self) {
        self.snapshots.are_written = true;
    }

    /// Begins a snapshot at the settled position, and keeps the log from there. Returns the
    /// bookmark and the snapshot's number; `None` if no position is known.
    pub fn begin_snapshot(&mut self) -> Option<(Bookmark, u64)> {
        let bookmark = self.bookmark()?;
        let kept = &mut self.snapshots;
        kept.number += 1;
        kept.begun.push((kept.number, bookmark.stream_position.position.clone()));
        Some((bookmark, kept.number))
    }

    /// Ends the snapshot with this number. A snapshot that began before a gap, or before its log
    /// was released, is ignored.
    pub fn end_snapshot(&mut self, number: u64, became: Became) {
        let begun = &mut self.snapshots.begun;
        let Some(at) = begun.iter().position(|(begun, _)| *begun == number) else { return };
        let (_, position) = begun.remove(at);
        if became == Became::Written {
            self.snapshots.in_place = Some(position);
        }
    }

    /// Decides up to where the database may discard its log. `applied` is the position of the last
    /// applied transaction; at most `bytes` of log are kept for snapshots.
    pub fn forget(&mut self, applied: &Position, bytes: u64) -> DiscardLimit {
        let kept = &self.snapshots;
        if !kept.are_written {
            return DiscardLimit::UpTo(applied.clone());
        }
        let settled = self.bookmark().map(|bookmark| bookmark.stream_position.position);
        let begun = kept.begun.iter().map(|(_, position)| position);
        let needed = [&settled, &kept.in_place].into_iter().flatten().chain(begun);
        let first =
            needed.fold(applied, |first, other| if first.has_all(other) { other } else { first });
        if applied.bytes_since(first).is_some_and(|held| held > bytes) {
            let was_relied_on = kept.in_place.is_some() || !kept.begun.is_empty();
            (self.snapshots.in_place, self.snapshots.begun) = (None, Vec::new());
            let applied = applied.clone();
            return if was_relied_on {
                DiscardLimit::Released(applied)
            } else {
                DiscardLimit::UpTo(applied)
            };
        }
        match settled {
            Some(_) => DiscardLimit::UpTo(first.clone()),
            None => DiscardLimit::NoFurther,
        }
    }

    /// Returns the position up to which changes are applied and settled; `None` if nothing is
    /// known.
    pub fn bookmark(&self) -> Option<Bookmark> {
        let first = self.open.front().into_iter().chain(&self.held).min_by_key(|it| it.number);
        let reached = match first {
            Some(before) => before.position.clone()?,
            None => self.applied.clone()?,
        };
        Some(Bookmark { server: self.server.clone()?, stream_position: reached })
    }

    /// Starts at the position that another process has saved. Does nothing once a position is
    /// known.
    pub fn begin_at(&mut self, bookmark: Bookmark) {
        if self.applied.is_none() {
            self.snapshots.in_place = Some(bookmark.stream_position.position.clone());
            self.applied = Some(bookmark.stream_position);
            self.server = Some(bookmark.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> StreamPosition {
        text.parse::<Bookmark>().expect("a bookmark").stream_position
    }

    fn here(lsn: u64) -> StreamPosition {
        at(&format!("postgres 7/1 0/{lsn:X}"))
    }

    fn place(lsn: u64) -> Position {
        here(lsn).position
    }

    fn begun(progress: &mut Progress) -> u64 {
        progress.begin_snapshot().expect("it is known up to where").1
    }

    #[test]
    fn a_snapshot_from_before_a_gap_ends_no_other() {
        let mut progress = Progress::default();
        progress.keep_for_snapshots();
        progress.resume(&"7/1".into());
        progress.advance(here(10));
        let before = begun(&mut progress);
        progress.gap();
        progress.advance(here(20));
        let after = begun(&mut progress);
        progress.advance(here(30));
        progress.end_snapshot(before, Became::Written);
        assert_eq!(progress.forget(&place(30), 100), DiscardLimit::UpTo(place(20)));
        progress.end_snapshot(after, Became::Written);
        progress.advance(here(40));
        assert_eq!(progress.forget(&place(40), 100), DiscardLimit::UpTo(place(20)));
    }

    #[test]
    fn the_log_for_snapshots_is_kept_within_a_bound() {
        let up_to = |lsn| DiscardLimit::UpTo(place(lsn));
        let mut progress = Progress::default();
        progress.resume(&"7/1".into());
        progress.advance(here(10));
        assert_eq!(progress.forget(&place(10), 100), up_to(10), "nobody writes snapshots");
        progress.keep_for_snapshots();
        // The open change would be after the position of the next snapshot.
        progress.opened();
        progress.advance(here(20));
        assert_eq!(progress.forget(&place(20), 100), up_to(10));
        progress.settled();
        assert_eq!(progress.forget(&place(20), 100), up_to(20));
        // Two snapshots are begun; the second fails.
        let first = begun(&mut progress);
        progress.advance(here(30));
        assert_eq!(progress.forget(&place(30), 100), up_to(20));
        progress.end_snapshot(first, Became::Written);
        progress.advance(here(40));
        let second = begun(&mut progress);
        progress.end_snapshot(second, Became::Nothing);
        assert_eq!(progress.forget(&place(40), 100), up_to(20));
        let third = begun(&mut progress);
        progress.end_snapshot(third, Became::Written);
        assert_eq!(progress.forget(&place(41), 100), up_to(40));
        // The last snapshot begins while another is being written, which then fails.
        let fourth = begun(&mut progress);
        progress.advance(here(45));
        let last = begun(&mut progress);
        progress.end_snapshot(fourth, Became::Nothing);
        progress.advance(here(50));
        progress.end_snapshot(last, Became::Written);
        assert_eq!(progress.forget(&place(50), 100), up_to(45));
        // The log exceeds the limit, which is reported once.
        assert_eq!(progress.forget(&place(146), 100), DiscardLimit::Released(place(146)));
        progress.advance(here(150));
        assert_eq!(progress.forget(&place(150), 100), up_to(150));
        // After a gap no earlier log is needed, and no position is confirmed while that change is
        // open.
        progress.opened();
        progress.gap();
        assert_eq!(progress.forget(&place(160), 100), DiscardLimit::NoFurther);
    }

    #[test]
    fn a_start_from_a_snapshot_keeps_the_log_from_there() {
        let mut progress = Progress::default();
        progress.keep_for_snapshots();
        progress.begin_at("postgres 7/1 0/A".parse().expect("a bookmark"));
        progress.advance(here(50));
        assert_eq!(progress.forget(&place(50), 100), DiscardLimit::UpTo(place(10)));
    }

    #[test]
    fn a_snapshot_begins_before_rows_that_are_held() {
        let mut progress = Progress::default();
        let bookmark = |progress: &Progress| progress.bookmark().map(|mark| mark.to_string());
        progress.resume(&"1".into());
        progress.advance(at("mariadb 1 0-1-1"));
        // The first transaction has a held row, the second does not.
        for position in ["mariadb 1 0-1-2", "mariadb 1 0-1-3"] {
            progress.opened();
            progress.hold();
            progress.advance(at(position));
            progress.settled();
        }
        let before = Some("mariadb 1 0-1-1".to_owned());
        assert_eq!(bookmark(&progress), before);
        progress.opened();
        assert_eq!(bookmark(&progress), before);
        progress.hold_none();
        assert_eq!(bookmark(&progress).as_deref(), Some("mariadb 1 0-1-3"), "it is open");
        progress.advance(at("mariadb 1 0-1-4"));
        progress.hold();
        progress.gap();
        assert_eq!(bookmark(&progress), None);
    }

    #[test]
    fn the_bookmark_stays_before_open_changes() {
        let mut progress = Progress::default();
        let bookmark = |progress: &Progress| progress.bookmark().map(|mark| mark.to_string());
        assert_eq!(bookmark(&progress), None);
        assert_eq!(progress.resume(&"1".into()), None);
        for position in ["mariadb 1 0-1-1", "mariadb 1 0-1-2"] {
            progress.opened();
            progress.advance(at(position));
        }
        progress.advance(at("mariadb 1 0-1-3"));
        // The first change was opened when no position was known.
        assert_eq!(bookmark(&progress), None);
        progress.settled();
        assert_eq!(bookmark(&progress).as_deref(), Some("mariadb 1 0-1-1"));
        progress.settled();
        assert_eq!(bookmark(&progress).as_deref(), Some("mariadb 1 0-1-3"));
        assert!(progress.is_of_another("2") && !progress.is_of_another("1"));
        progress.opened();
        progress.gap();
        progress.advance(at("mariadb 1 0-1-9"));
        assert_eq!(bookmark(&progress), None, "what was opened before a gap hides what came after");
        progress.settled();
        assert_eq!(bookmark(&progress).as_deref(), Some("mariadb 1 0-1-9"));
    }
}
