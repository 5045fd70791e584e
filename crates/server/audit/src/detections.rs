//! The pages that were found wrong: those that are watched for a minute, because they may be purged late or the
//! application may be old, and those that were still wrong afterwards (*detections*).
//!
//! | detection of | what follows |
//! |---|---|
//! | the first page of a URL | a report |
//! | the same page again | it is purged; if it may be its first visitor's, renders of the URL are neutral for an hour |
//! | another page of the same URL within an hour | it is purged, and the URL gets a limit: a short life, neutral renders, or nothing is stored if the page is for one class of devices |
//!
//! **Why strangers gain nothing.** A limit that costs others hits needs two pages that were rendered apart, of exactly one
//! URL with its query: neither one request with odd fields, nor one rare draw that is compared again and again, nor a
//! page with another query counts. Neutral renders cost nobody hits. A page that was late is no detection. The memory of
//! detections is bounded; the oldest is forgotten first.

use delivery::audit::PathLimit;
use page_comparison::DifferenceClass;
use std::collections::HashMap;

/// Pages that are watched at the same time; each holds a request's header section, and at most 32 KB of places.
const WATCHED_MAX: usize = 64;
/// Pages of one path among them, whatever their queries, so that one path leaves room for others.
const WATCHED_OF_PATH_MAX: usize = 4;
/// URLs with a detection.
const URLS_MAX: usize = 1_024;
/// How long a detection waits for a second one, in milliseconds.
const DETECTED_MS: u64 = 3_600_000;

/// One stored response, whatever its form: another form of it (compression) is the same page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageIdentity {
    /// The key, as a number of this process.
    pub(crate) key: u64,
    pub(crate) variant: u32,
    pub(crate) lease: u64,
    /// When its request was sent: a page that follows an expired one may have the same lease.
    pub(crate) sent_ms: u64,
}

/// The exact URL of a page, and its path without a query, as numbers of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageUrl {
    pub(crate) url: u64,
    pub(crate) path: u64,
}

/// A page that was still wrong after a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detection {
    pub(crate) page: PageIdentity,
    pub(crate) class: DifferenceClass,
    /// Whether it may have been made for its first visitor.
    pub(crate) is_of_visitor: bool,
    /// Whether it was made for one class of devices.
    pub(crate) is_by_device: bool,
}

impl Detection {
    /// The limit of the URL after a second page was found. A neutral render is for one class of devices, too.
    pub(crate) fn limit(&self) -> PathLimit {
        PathLimit {
            is_short: self.class == DifferenceClass::BrokenPromise,
            is_neutral: self.is_of_visitor && !self.is_by_device,
            is_unstored: self.is_by_device,
        }
    }
}

/// The pages of one site that were found wrong.
#[derive(Debug, Default)]
pub(crate) struct Detections {
    /// The pages that are watched, and the paths of their URLs.
    watched: HashMap<PageIdentity, u64>,
    /// The first detection of a URL, and its time.
    first: HashMap<u64, (Detection, u64)>,
}

impl Detections {
    /// Whether a page is watched: comparing it again would say the same.
    pub(crate) fn is_watched(&self, page: PageIdentity) -> bool {
        self.watched.contains_key(&page)
    }

    /// Enters a page to be watched. Returns false if it is watched already, or if there are too many.
    pub(crate) fn watch(&mut self, page: PageIdentity, at: PageUrl) -> bool {
        let of_path = self.watched.values().filter(|path| **path == at.path).count();
        if self.watched.len() >= WATCHED_MAX || of_path >= WATCHED_OF_PATH_MAX {
            return false;
        }
        self.watched.insert(page, at.path).is_none()
    }

    /// Ends the watch of a page.
    pub(crate) fn unwatch(&mut self, page: PageIdentity) {
        self.watched.remove(&page);
    }

    /// The first detection of a URL, if it was of this page: it was watched.
    pub(crate) fn of_page(
        &self,
        page: PageIdentity,
        at: PageUrl,
        now_ms: u64,
    ) -> Option<Detection> {
        let (detection, _) =
            self.first.get(&at.url).filter(|(_, at_ms)| is_recent(*at_ms, now_ms))?;
        (detection.page == page).then_some(*detection)
    }

    /// Counts a page that was still wrong after it was watched. Returns whether another page of its URL was before,
    /// within an hour.
    pub(crate) fn count(&mut self, detection: Detection, at: PageUrl, now_ms: u64) -> bool {
        self.first.retain(|_, (_, at_ms)| is_recent(*at_ms, now_ms));
        if let Some((first, _)) = self.first.get(&at.url) {
            return first.page != detection.page;
        }
        if self.first.len() >= URLS_MAX {
            let oldest = self.first.iter().min_by_key(|(_, (_, at_ms))| *at_ms);
            let oldest = oldest.map(|(url, _)| *url);
            oldest.map(|url| self.first.remove(&url));
        }
        self.first.insert(at.url, (detection, now_ms));
        false
    }
}

fn is_recent(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) < DETECTED_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(key: u64, lease: u64) -> PageIdentity {
        PageIdentity { key, variant: 0, lease, sent_ms: lease }
    }

    fn found(page: PageIdentity) -> Detection {
        Detection {
            page,
            class: DifferenceClass::BrokenPromise,
            is_of_visitor: false,
            is_by_device: false,
        }
    }

    fn at(url: u64) -> PageUrl {
        PageUrl { url, path: url / 1_000 }
    }

    #[test]
    fn a_limit_needs_two_pages_of_one_url_within_an_hour() {
        let mut all = Detections::default();
        assert!(!all.count(found(page(1, 1)), at(1), 0));
        assert!(!all.count(found(page(1, 1)), at(1), 5), "the same page again");
        assert_eq!(all.of_page(page(1, 1), at(1), 5), Some(found(page(1, 1))));
        assert_eq!(all.of_page(page(1, 2), at(1), 5), None);
        assert!(!all.count(found(page(2, 2)), at(2), 5), "another query of the path");
        assert!(all.count(found(page(1, 2)), at(1), DETECTED_MS - 1));
        assert!(!all.count(found(page(1, 3)), at(1), DETECTED_MS), "the first is forgotten");
    }

    #[test]
    fn a_flood_of_urls_forgets_the_oldest_and_leaves_room() {
        let mut all = Detections::default();
        for url in 0..2 * URLS_MAX as u64 {
            all.count(found(page(url, 1)), at(url), url);
        }
        assert_eq!(all.first.len(), URLS_MAX);
        let now_ms = 2 * URLS_MAX as u64;
        assert!(all.count(found(page(now_ms, 2)), at(now_ms - 1), now_ms));
        let entered = (0..100).filter(|url| all.watch(page(*url, 1), at(*url))).count();
        assert_eq!(entered, WATCHED_OF_PATH_MAX, "of one path");
        assert!(!all.watch(page(0, 1), at(5_000)), "it is watched already");
        let entered = (0..1_000).filter(|url| all.watch(page(*url, 2), at(*url * 1_000))).count();
        assert!(entered >= WATCHED_MAX - WATCHED_OF_PATH_MAX && all.watched.len() == WATCHED_MAX);
        all.unwatch(page(0, 1));
        assert!(!all.is_watched(page(0, 1)) && all.watch(page(0, 1), at(9_000_000)));
    }
}
