//! How far a database's changes are applied, and how far they are settled as well: by the first the
//! stream is taken up after a break, by the second another process can take it up (a page that it gets
//! from here is right as of there: no page in the store is older than what was applied, and a change
//! that is not settled is applied once more).
//!
//! Lock: that of [`Progress`], never held across an `await`; no other is taken under it.

use super::source::{Bookmark, Position};
use std::collections::VecDeque;
use std::sync::Arc;

/// How far.
#[derive(Debug, Default)]
pub struct Progress {
    /// What is applied, and whose it is; none: nothing is known, and the gate is closed.
    applied: Option<Position>,
    server: Option<Arc<str>>,
    /// For each change that is open, in the order of the stream, what was applied before it.
    open: VecDeque<Option<Position>>,
}

impl Progress {
    /// Where to take the stream up at this server; none: nothing is known.
    pub fn resume(&mut self, server: &Arc<str>) -> Option<Position> {
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
        self.applied.as_ref().is_some_and(Position::is_anywhere)
    }

    /// Counts all up to `position` as applied.
    pub fn advance(&mut self, position: Position) {
        self.applied = Some(position);
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
    }

    /// What is applied and settled; none: nothing is known.
    pub fn bookmark(&self) -> Option<Bookmark> {
        let position = match self.open.front() {
            Some(before) => before.clone()?,
            None => self.applied.clone()?,
        };
        Some(Bookmark { server: self.server.clone()?, position })
    }

    /// Begins where another process has been. Nothing happens once anything is applied.
    pub fn begin_at(&mut self, bookmark: Bookmark) {
        if self.applied.is_none() {
            self.applied = Some(bookmark.position);
            self.server = Some(bookmark.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Position {
        text.parse::<Bookmark>().expect("a bookmark").position
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
