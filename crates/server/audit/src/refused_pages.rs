//! The pages of a trial that are not stored: some are the same for all visitors so far, some are looked at again.
//!
//! Two equal answers prove nothing. So from the second answer on, each further one is compared, and the first that differs
//! ends the advice for the paths of the page, until the record ends.
//!
//! A page that is not stored is left alone for a while. It is looked at again before, and once, if the answers of its
//! visitors could not be stored either and one now could: the application has changed, for example by a plugin.
//! Not here: how many visitors the advice needs (`ComparedVisitors`). Memory: 1,024 pages with 256 numbers each at most,
//! so 4 MB, and 4,096 keys; further pages get no advice.

use crate::seen_visitors::{SeenVisitors, VisitorNumbers};
use page_comparison::ComparedVisitors;
use std::collections::{HashMap, HashSet};

/// Pages whose answers are compared.
const PAGES_MAX: usize = 1_024;
/// Keys whose visitors got answers that could not be stored; beyond, all are forgotten.
const UNSTORABLE_MAX: usize = 4_096;

/// The result of a comparison with the answers before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedAnswer {
    /// All were the same: those of these visitors.
    Same(ComparedVisitors),
    /// This one is another. The page is not watched any more.
    Differs,
}

/// The pages that are not stored, by the hash of their keys.
#[derive(Debug, Default)]
pub(crate) struct RefusedPages {
    watched: HashMap<u64, RefusedPage>,
    /// Those whose visitors got answers that could not be stored either.
    unstorable: HashSet<u64>,
}

#[derive(Debug)]
struct RefusedPage {
    /// The digest of the answer.
    content: u64,
    visitors: SeenVisitors,
}

impl RefusedPages {
    /// Notes that a page was not stored. `could_be_stored`: whether the answer of its visitor could be.
    pub(crate) fn refuse(&mut self, key: u64, could_be_stored: bool) {
        self.unstorable.remove(&key);
        if could_be_stored {
            return;
        }
        if self.unstorable.len() >= UNSTORABLE_MAX {
            self.unstorable.clear();
        }
        self.unstorable.insert(key);
    }

    /// Whether a page was not stored, and the answers of its visitors could not be either.
    pub(crate) fn is_unstorable(&self, key: u64) -> bool {
        self.unstorable.contains(&key)
    }

    /// A visitor got an answer that could be stored, or the page was stored.
    pub(crate) fn note_storable(&mut self, key: u64) {
        self.unstorable.remove(&key);
    }

    /// Begins to watch a page whose first answers were the same.
    pub(crate) fn watch(&mut self, key: u64, content: u64, first: [VisitorNumbers; 2]) {
        if self.watched.len() < PAGES_MAX {
            let mut visitors = SeenVisitors::default();
            first.into_iter().for_each(|visitor| visitors.note(visitor));
            self.watched.insert(key, RefusedPage { content, visitors });
        }
    }

    /// Ends it: the page was stored, or there was no render to compare it with.
    pub(crate) fn forget(&mut self, key: u64) {
        self.watched.remove(&key);
    }

    /// The visitors who got the same; none if the page is not watched.
    pub(crate) fn visitors(&self, key: u64) -> Option<ComparedVisitors> {
        Some(self.watched.get(&key)?.visitors.counts())
    }

    /// Compares a further answer of a watched page. `content` is its digest, or none if it cannot be the same.
    pub(crate) fn compare(
        &mut self,
        key: u64,
        content: Option<u64>,
        visitor: VisitorNumbers,
    ) -> Option<RefusedAnswer> {
        let page = self.watched.get_mut(&key)?;
        if content != Some(page.content) {
            self.watched.remove(&key);
            return Some(RefusedAnswer::Differs);
        }
        page.visitors.note(visitor);
        Some(RefusedAnswer::Same(page.visitors.counts()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(client: u64) -> VisitorNumbers {
        VisitorNumbers { client, agent: client, cookies: None }
    }

    #[test]
    fn each_answer_is_compared_and_the_first_other_one_ends_the_watch() {
        let mut pages = RefusedPages::default();
        assert_eq!(pages.compare(1, Some(7), visitor(1)), None);
        pages.watch(1, 7, [visitor(1), visitor(2)]);
        assert_eq!(pages.visitors(1).map(|seen| seen.clients), Some(2));
        let Some(RefusedAnswer::Same(seen)) = pages.compare(1, Some(7), visitor(3)) else {
            panic!("it is the same");
        };
        assert_eq!(seen.clients, 3);
        assert_eq!(pages.compare(1, Some(8), visitor(4)), Some(RefusedAnswer::Differs));
        assert_eq!((pages.compare(1, Some(7), visitor(5)), pages.visitors(1)), (None, None));
        pages.watch(2, 7, [visitor(1), visitor(2)]);
        assert_eq!(pages.compare(2, None, visitor(3)), Some(RefusedAnswer::Differs));
        pages.watch(3, 7, [visitor(1), visitor(2)]);
        pages.forget(3);
        assert_eq!(pages.visitors(3), None);
    }

    #[test]
    fn a_page_is_looked_at_again_if_its_visitors_answers_could_not_be_stored() {
        let mut pages = RefusedPages::default();
        pages.refuse(1, true);
        pages.refuse(2, false);
        assert!(!pages.is_unstorable(1) && pages.is_unstorable(2) && !pages.is_unstorable(3));
        pages.forget(2);
        assert!(pages.is_unstorable(2), "only the comparison ends");
        pages.note_storable(2);
        assert!(!pages.is_unstorable(2), "once");
        pages.refuse(2, false);
        pages.refuse(2, true);
        assert!(!pages.is_unstorable(2), "the last time counts");
        (0..2 * UNSTORABLE_MAX as u64).for_each(|key| pages.refuse(key, false));
        assert!(pages.unstorable.len() <= UNSTORABLE_MAX);
    }

    #[test]
    fn the_number_of_pages_is_bounded_and_none_is_forgotten_for_another() {
        let mut pages = RefusedPages::default();
        (0..2 * PAGES_MAX as u64).for_each(|key| pages.watch(key, 7, [visitor(1), visitor(2)]));
        assert_eq!(pages.watched.len(), PAGES_MAX);
        assert!(pages.visitors(0).is_some());
    }
}
