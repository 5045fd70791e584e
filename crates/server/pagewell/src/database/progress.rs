//! How far a database's changes are applied, and how far they are settled as well: by the first the
//! stream is taken up after a break, by the second another process can take it up (a page that it gets
//! from here is right as of there: no page in the store is older than what was applied, and a change
//! that is not settled is applied once more).
//!
//! Where snapshots are written, the second is also what a database may be told that keeps its log until it
//! is told (PostgreSQL), and no more than the snapshots on the disk have seen: after a kill the next
//! process begins there. What is kept for that is bounded.
//!
//! Lock: that of [`Progress`], never held across an `await`; no other is taken under it.

use super::source::{Bookmark, Position, Reached};
use std::collections::VecDeque;
use std::sync::Arc;

/// How far.
#[derive(Debug, Default)]
pub struct Progress {
    /// What is applied, and whose it is; none: nothing is known, and the gate is closed.
    applied: Option<Reached>,
    server: Option<Arc<str>>,
    /// For each change that is open, in the order of the stream, what was applied before it.
    open: VecDeque<Option<Reached>>,
    snapshots: Kept,
}

/// From where the log is needed by snapshots.
#[derive(Debug, Default)]
struct Kept {
    are_written: bool,
    /// By the one that is there.
    in_place: Option<Position>,
    /// By those that are being written, each with its number: the last one is begun while another may still
    /// be written.
    begun: Vec<(u64, Position)>,
    /// How many have been begun.
    number: u64,
}

/// What became of a snapshot that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is there, in place of the one before.
    Written,
    /// There is none.
    Nothing,
}

/// Up to where a database need not keep its log any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// No further than it was told before.
    NoFurther,
    /// Up to here.
    UpTo(Position),
    /// Up to here, and the snapshot that is there can be gone on from no more.
    Released(Position),
}

impl Progress {
    /// Where to take the stream up at this server; none: nothing is known.
    pub fn resume(&mut self, server: &Arc<str>) -> Option<Reached> {
        self.server = Some(server.clone());
        self.applied.clone()
    }

    /// Whether what is applied is another server's.
    pub fn is_of_another(&self, server: &str) -> bool {
        self.applied.is_some() && self.server.as_deref() != Some(server)
    }

    /// Whether anything is known to be applied.
    pub fn is_known(&self) -> bool {
        self.applied.is_some()
    }

    /// Whether what is applied means the same to another server.
    pub fn is_anywhere(&self) -> bool {
        self.applied.as_ref().is_some_and(|applied| applied.position.is_anywhere())
    }

    /// Counts all up to here as applied.
    pub fn advance(&mut self, reached: Reached) {
        self.applied = Some(reached);
    }

    /// The server has another name, and what has changed with that is applied.
    pub fn is_now(&mut self, server: Arc<str>) {
        self.server = Some(server);
    }

    /// A change is about to be opened; [`advance`](Self::advance) follows.
    pub fn opened(&mut self) {
        self.open.push_back(self.applied.clone());
    }

    /// The oldest open change has settled.
    pub fn settled(&mut self) {
        self.open.pop_front();
    }

    /// Changes may have been missed: nothing is known any more.
    pub fn gap(&mut self) {
        self.applied = None;
        self.open.iter_mut().for_each(|before| *before = None);
        (self.snapshots.in_place, self.snapshots.begun) = (None, Vec::new());
    }

    /// From now on snapshots are written.
    pub fn keep_for_snapshots(&mut self) {
        self.snapshots.are_written = true;
    }

    /// A snapshot is begun here: what comes after is needed if it is written.
    /// Returns its number besides.
    pub fn begin_snapshot(&mut self) -> Option<(Bookmark, u64)> {
        let bookmark = self.bookmark()?;
        let kept = &mut self.snapshots;
        kept.number += 1;
        kept.begun.push((kept.number, bookmark.reached.position.clone()));
        Some((bookmark, kept.number))
    }

    /// So much for the one with this number. Of one that was begun before a gap, or before the log was
    /// released, nothing is known any more.
    pub fn end_snapshot(&mut self, number: u64, became: Became) {
        let begun = &mut self.snapshots.begun;
        let Some(at) = begun.iter().position(|(begun, _)| *begun == number) else { return };
        let (_, position) = begun.remove(at);
        if became == Became::Written {
            self.snapshots.in_place = Some(position);
        }
    }

    /// Up to where the database need not keep its log, `applied` being what was handed out and applied, and
    /// at most `bytes` kept for snapshots.
    pub fn forget(&mut self, applied: &Position, bytes: u64) -> Forgotten {
        let kept = &self.snapshots;
        if !kept.are_written {
            return Forgotten::UpTo(applied.clone());
        }
        let settled = self.bookmark().map(|bookmark| bookmark.reached.position);
        let begun = kept.begun.iter().map(|(_, position)| position);
        let needed = [&settled, &kept.in_place].into_iter().flatten().chain(begun);
        let first =
            needed.fold(applied, |first, other| if first.has_all(other) { other } else { first });
        if applied.bytes_since(first).is_some_and(|held| held > bytes) {
            let was_relied_on = kept.in_place.is_some() || !kept.begun.is_empty();
            (self.snapshots.in_place, self.snapshots.begun) = (None, Vec::new());
            let applied = applied.clone();
            return if was_relied_on {
                Forgotten::Released(applied)
            } else {
                Forgotten::UpTo(applied)
            };
        }
        match settled {
            Some(_) => Forgotten::UpTo(first.clone()),
            None => Forgotten::NoFurther,
        }
    }

    /// What is applied and settled; none: nothing is known.
    pub fn bookmark(&self) -> Option<Bookmark> {
        let reached = match self.open.front() {
            Some(before) => before.clone()?,
            None => self.applied.clone()?,
        };
        Some(Bookmark { server: self.server.clone()?, reached })
    }

    /// Begins where another process has been. Nothing happens once anything is applied.
    pub fn begin_at(&mut self, bookmark: Bookmark) {
        if self.applied.is_none() {
            self.snapshots.in_place = Some(bookmark.reached.position.clone());
            self.applied = Some(bookmark.reached);
            self.server = Some(bookmark.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Reached {
        text.parse::<Bookmark>().expect("a bookmark").reached
    }

    fn here(lsn: u64) -> Reached {
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
        assert_eq!(progress.forget(&place(30), 100), Forgotten::UpTo(place(20)));
        progress.end_snapshot(after, Became::Written);
        progress.advance(here(40));
        assert_eq!(progress.forget(&place(40), 100), Forgotten::UpTo(place(20)));
    }

    #[test]
    fn what_snapshots_need_is_kept_within_a_bound() {
        let up_to = |lsn| Forgotten::UpTo(place(lsn));
        let mut progress = Progress::default();
        progress.resume(&"7/1".into());
        progress.advance(here(10));
        assert_eq!(progress.forget(&place(10), 100), up_to(10), "nobody writes snapshots");
        progress.keep_for_snapshots();
        // What is open would be before the next snapshot.
        progress.opened();
        progress.advance(here(20));
        assert_eq!(progress.forget(&place(20), 100), up_to(10));
        progress.settled();
        assert_eq!(progress.forget(&place(20), 100), up_to(20));
        // One is begun, and another that comes to nothing.
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
        // The last one is begun while another is being written, which comes to nothing.
        let fourth = begun(&mut progress);
        progress.advance(here(45));
        let last = begun(&mut progress);
        progress.end_snapshot(fourth, Became::Nothing);
        progress.advance(here(50));
        progress.end_snapshot(last, Became::Written);
        assert_eq!(progress.forget(&place(50), 100), up_to(45));
        // Too much, said once.
        assert_eq!(progress.forget(&place(146), 100), Forgotten::Released(place(146)));
        progress.advance(here(150));
        assert_eq!(progress.forget(&place(150), 100), up_to(150));
        // A gap needs nothing of before, and what was open then is not told.
        progress.opened();
        progress.gap();
        assert_eq!(progress.forget(&place(160), 100), Forgotten::NoFurther);
    }

    #[test]
    fn who_goes_on_from_a_snapshot_keeps_what_it_needs() {
        let mut progress = Progress::default();
        progress.keep_for_snapshots();
        progress.begin_at("postgres 7/1 0/A".parse().expect("a bookmark"));
        progress.advance(here(50));
        assert_eq!(progress.forget(&place(50), 100), Forgotten::UpTo(place(10)));
    }

    #[test]
    fn what_is_open_is_not_behind_us() {
        let mut progress = Progress::default();
        let bookmark = |progress: &Progress| progress.bookmark().map(|mark| mark.to_string());
        assert_eq!(bookmark(&progress), None);
        assert_eq!(progress.resume(&"1".into()), None);
        for position in ["mariadb 1 0-1-1", "mariadb 1 0-1-2"] {
            progress.opened();
            progress.advance(at(position));
        }
        progress.advance(at("mariadb 1 0-1-3"));
        // The first was opened when nothing was known.
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
