//! `GET /v1/most-requested`: the URLs whose stored pages have answered the most requests.
//!
//! Each stored page counts the requests that it answers, approximately and up to 65,535. The counts
//! are read from all pages, in batches and at most once in [`VALID`], so that calls cost little. A
//! page that is purged takes its count with it. A URL has one row for all its variants. Values in
//! its query are hidden, so URLs that differ only in these share a row. Private copies and items of
//! memcached clients are not listed.
//!
//! Lock: that of the last answer, held while the pages are read, on a blocking thread.

use delivery::site::Site;
use history::shown;
use page_store::{SERVED_MAX, Walk};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an answer is used.
const VALID: Duration = Duration::from_secs(30);
/// The most URLs in the answer.
const SHOWN_MAX: usize = 10;
/// The number of places in the store that are read at once.
const PLACES: usize = 256;
/// The most pages that are added up by URL: some 12 MiB while they are read. Each further page
/// counts as a URL of its own, unless its URL is among the most requested ones.
const SUMMED_MAX: usize = 1 << 18;

/// The last answer, with the time at which its counting ended.
#[derive(Default)]
pub(super) struct MostRequested(Mutex<Option<(Duration, Value)>>);

impl MostRequested {
    /// Returns the most requested URLs of all sites. Call it on a blocking thread.
    pub(super) fn pages(&self, default_site: &Arc<Site>) -> Value {
        let now = default_site.clock.monotonic();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((counted, answer)) = last.as_ref()
            && now.saturating_sub(*counted) < VALID
        {
            return answer.clone();
        }
        let mut ranking = Ranking::default();
        default_site.all_sites().for_each(|site| read(site, &mut ranking));
        let pages: Vec<_> = ranking.most.iter().map(row).collect();
        let answer = json!({ "counted_at_ms": default_site.clock.now().0, "pages": pages });
        *last = Some((default_site.clock.monotonic(), answer.clone()));
        answer
    }
}

/// Reads the counts of a site's pages into the ranking.
fn read(site: &Site, ranking: &mut Ranking) {
    let host = site.config.hosts.canonical.as_deref();
    let mut walk = Walk::default();
    while !walk.is_over() {
        for found in site.store.walk(&mut walk, PLACES) {
            let page = &found.page;
            let is_listed = page.payload().item().is_none() && !page.payload().stored.is_private();
            if is_listed && page.served() > 0 {
                ranking.add(host, page.key().bytes(), page.variant(), page.served());
            }
        }
    }
}

/// The requests that the stored pages of a URL have answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RequestCount {
    served: u64,
    variants: u64,
    /// Whether the counter of a page is at its end.
    is_least: bool,
}

/// A URL among the most requested ones.
#[derive(Debug)]
struct RequestedUrl {
    site: Option<String>,
    url: Box<str>,
    count: RequestCount,
}

/// Adds up the counts of pages by URL, and ranks the URLs. The counts of a URL only grow, so the
/// highest are complete when all pages are added.
#[derive(Default)]
struct Ranking {
    hasher: RandomState,
    /// The hashes of the pages that were added, because a walk may find a page twice.
    added: HashSet<u64>,
    /// By the hash of site and URL.
    counts: HashMap<u64, RequestCount>,
    /// The highest first, at most [`SHOWN_MAX`].
    most: Vec<RequestedUrl>,
}

impl Ranking {
    /// Adds a stored page.
    fn add(&mut self, site: Option<&str>, key: &[u8], variant: u32, served: u16) {
        let page = self.hasher.hash_one((site, key, variant));
        if self.added.contains(&page) {
            return;
        }
        let url = shown::masked(&shown::address_of(key));
        let known =
            self.most.iter().position(|one| *one.url == *url && one.site.as_deref() == site);
        let of_url = self.hasher.hash_one((site, &url));
        let has_room = self.added.len() < SUMMED_MAX;
        let before = match known {
            Some(at) => Some(self.most[at].count),
            None => self.counts.get(&of_url).copied(),
        };
        let before = before.unwrap_or_default();
        let count = RequestCount {
            served: before.served + u64::from(served),
            variants: before.variants + 1,
            is_least: before.is_least || served == SERVED_MAX,
        };
        if has_room {
            self.added.insert(page);
            self.counts.insert(of_url, count);
        }
        known.into_iter().for_each(|at| drop(self.most.remove(at)));
        let at = self.most.partition_point(|other| other.count.served >= count.served);
        if at < SHOWN_MAX {
            self.most.insert(at, RequestedUrl { site: site.map(str::to_owned), url, count });
            self.most.truncate(SHOWN_MAX);
        }
    }
}

fn row(row: &RequestedUrl) -> Value {
    json!({
        "site": row.site,
        "url": row.url,
        "variants": row.count.variants,
        "served": row.count.served,
        "served_at_least": row.count.is_least,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_url_has_one_row_for_its_variants() {
        let mut ranking = Ranking::default();
        for (key, variant, served) in [
            ("http://a.test/?q=1", 0, 2),
            ("http://a.test/", 1, 3),
            ("http://a.test/", 2, SERVED_MAX),
            ("http://a.test/\ncookie lang=de", 0, 4),
            ("http://a.test/?q=2", 0, 5),
            // A walk may find a page twice.
            ("http://a.test/", 1, 3),
        ] {
            ranking.add(Some("a.test"), key.as_bytes(), variant, served);
        }
        ranking.add(Some("b.test"), b"http://a.test/", 1, 1);
        let rows: Vec<_> = ranking.most.iter().map(row).collect();
        let served = u64::from(SERVED_MAX) + 7;
        assert_eq!(
            json!(rows),
            json!([
                { "site": "a.test", "url": "http://a.test/", "variants": 3, "served": served,
                  "served_at_least": true },
                { "site": "a.test", "url": "http://a.test/?q=…", "variants": 2, "served": 7,
                  "served_at_least": false },
                { "site": "b.test", "url": "http://a.test/", "variants": 1, "served": 1,
                  "served_at_least": false },
            ])
        );
    }

    proptest! {
        #[test]
        fn the_highest_sums_are_listed(pages in prop::collection::vec((0..30u8, 1..200u16), 0..200)) {
            let (mut ranking, mut sums) = (Ranking::default(), BTreeMap::<u8, u64>::new());
            for (variant, (url, served)) in pages.into_iter().enumerate() {
                ranking.add(None, format!("/{url}").as_bytes(), variant as u32, served);
                *sums.entry(url).or_default() += u64::from(served);
            }
            let mut highest: Vec<_> = sums.values().copied().collect();
            highest.sort_unstable_by(|one, other| other.cmp(one));
            highest.truncate(SHOWN_MAX);
            let listed = ranking.most.iter().map(|one| one.count.served);
            prop_assert_eq!(listed.collect::<Vec<_>>(), highest);
        }
    }
}
