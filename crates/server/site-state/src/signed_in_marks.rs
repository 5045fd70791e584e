//! Marks of signed-in visitors, for pages that they share (LiteSpeed's ESI): whose cookies the application has
//! confirmed, whose cookies are not valid any more, and which pages could be shared.
//!
//! Invariants: a mark is a keyed hash, so no client can compute it, and no cookie is stored. The number of
//! marks is limited; a lost one costs a request to the origin. The lock is held for one look-up. Not here:
//! the decisions by these marks (`exchange::signed_in`, `delivery::visitors`).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of marks of a site: those of a hash table with 65,536 places of 33 bytes. With more, it would
/// have twice as many places.
const MARKS_MAX: usize = 65_536 / 8 * 7;

/// The marks of a site: which visitors the application has confirmed, and which pages could be shared. A lost
/// mark costs a request to the origin.
#[derive(Default)]
pub struct SignedInMarks {
    marks: Mutex<HashMap<u128, Mark>>,
    /// The secret keys of the hashes: a visitor cannot find other cookies with the same mark.
    keys: [RandomState; 2],
}

/// A mark that is set.
#[derive(Clone, Copy)]
struct Mark {
    /// When it ends, in milliseconds since 1970.
    ends_ms: u64,
    /// The number of the session that it is of; 0 for a subject without sessions.
    session: u64,
}

impl SignedInMarks {
    /// Whether the mark is set and has not ended.
    pub fn has(&self, mark: u128, now_ms: u64) -> bool {
        self.session_of(mark, now_ms).is_some()
    }

    /// The number of the session with which the mark is set, if it has not ended.
    pub fn session_of(&self, mark: u128, now_ms: u64) -> Option<u64> {
        self.lock().get(&mark).filter(|mark| now_ms < mark.ends_ms).map(|mark| mark.session)
    }

    /// Sets the mark at the time `now_ms` for `for_ms` milliseconds.
    pub fn add(&self, mark: u128, lasts: (u64, u64)) {
        self.add_of(mark, 0, lasts);
    }

    /// Sets the mark for a session with this number.
    pub fn add_of(&self, mark: u128, session: u64, (now_ms, for_ms): (u64, u64)) {
        let mut all = self.lock();
        if all.len() >= MARKS_MAX {
            // Another table: in one with removed entries, the next entries would double its size.
            let before = mem::replace(&mut *all, HashMap::with_capacity(MARKS_MAX));
            let valid = before.into_iter().filter(|(_, mark)| now_ms < mark.ends_ms);
            let mut left: Vec<(u128, Mark)> = valid.collect();
            if left.len() >= MARKS_MAX {
                // Those that end first are the oldest of their kind. Many at once, so that this is seldom.
                left.select_nth_unstable_by_key(MARKS_MAX / 16, |(_, mark)| mark.ends_ms);
                left.drain(..=MARKS_MAX / 16);
            }
            all.extend(left);
        }
        all.insert(mark, Mark { ends_ms: now_ms.saturating_add(for_ms), session });
    }

    /// The mark of a subject, given by its key or its cookies.
    pub fn mark(&self, subject: MarkOf, of: &[u8]) -> u128 {
        let [high, low] = self.keys.each_ref().map(|key| u128::from(key.hash_one((&subject, of))));
        high << 64 | low
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Mark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subject of a mark.
#[derive(Hash)]
pub enum MarkOf {
    /// A host with the cookies of a visitor that are confirmed for it.
    Visitor,
    /// The cookies of a visitor that are not valid any more, on any host.
    Ended,
    /// The key of a page that could be shared.
    Page,
    /// A host with the session cookies of a visitor, or with its login cookie, whom the application has confirmed: its
    /// requests to the origin come first.
    Session,
    /// A secret in the session cookies of such a visitor, on any host.
    SessionSecret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_end_and_are_bounded() {
        let marks = SignedInMarks::default();
        marks.add(1, (1_000, 50));
        assert!(marks.has(1, 1_049) && !marks.has(1, 1_050) && !marks.has(2, 1_000));
        marks.add_of(3, 7, (1_000, 50));
        assert_eq!((marks.session_of(3, 1_049), marks.session_of(3, 1_050)), (Some(7), None));
        for mark in 0..=MARKS_MAX as u128 {
            marks.add(mark, (2_000, 50));
        }
        assert!(marks.lock().len() <= MARKS_MAX && marks.has(MARKS_MAX as u128, 2_000));
        // A flood removes the oldest marks only.
        let marks = SignedInMarks::default();
        for mark in 0..MARKS_MAX as u128 * 2 {
            marks.add(mark, (2_000 + mark as u64, 1 << 20));
            assert!(mark < 1_000 || marks.has(mark - 1_000, 2_000), "{mark}");
        }
        assert!(!marks.has(0, 2_000) && marks.lock().len() > MARKS_MAX / 2);
        // 2 MiB.
        assert!(marks.lock().capacity() <= MARKS_MAX, "{}", marks.lock().capacity());
        assert_eq!(size_of::<(u128, Mark)>(), 32);
    }
}
