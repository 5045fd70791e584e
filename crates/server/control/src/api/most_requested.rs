//! `GET /v1/most-requested`: the stored pages that have answered the most requests.
//!
//! Each stored page counts the requests that it answers, approximately and up to 65,535. The counts
//! are read from all pages, in batches and at most once in [`VALID`], so that calls cost little. A
//! page that is purged takes its count with it. Private copies and items of memcached clients are
//! not listed.
//!
//! Lock: that of the last answer, held while the pages are read, on a blocking thread.

use exchange::site::Site;
use page_store::{SERVED_MAX, Walk};
use serde_json::{Value, json};
use site_state::history::shown;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an answer is used.
const VALID: Duration = Duration::from_secs(30);
/// The most pages in the answer.
const SHOWN_MAX: usize = 10;
/// The number of places in the store that are read at once.
const PLACES: usize = 256;

/// The last answer, with the time at which its counting ended.
#[derive(Default)]
pub(super) struct MostRequested(Mutex<Option<(Duration, Value)>>);

/// A page of a site: the requests it has answered, its site, key and variant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RequestedPage {
    served: u16,
    site: Option<String>,
    key: Box<[u8]>,
    variant: u32,
}

impl MostRequested {
    /// Returns the most requested pages of all sites. Call it on a blocking thread.
    pub(super) fn pages(&self, default_site: &Arc<Site>) -> Value {
        let now = default_site.clock.monotonic();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((counted, answer)) = last.as_ref()
            && now.saturating_sub(*counted) < VALID
        {
            return answer.clone();
        }
        let mut most = Vec::new();
        default_site.all_sites().for_each(|site| read(site, &mut most));
        let pages: Vec<_> = most.iter().map(page).collect();
        let answer = json!({ "counted_at_ms": default_site.clock.now().0, "pages": pages });
        *last = Some((default_site.clock.monotonic(), answer.clone()));
        answer
    }
}

/// Reads the counts of a site's pages, and adds the highest to `most`.
fn read(site: &Site, most: &mut Vec<RequestedPage>) {
    let mut walk = Walk::default();
    while !walk.is_over() {
        for found in site.store.walk(&mut walk, PLACES) {
            let page = &found.page;
            let is_listed = page.payload().item().is_none() && !page.payload().stored.is_private();
            let key = page.key().bytes();
            if is_listed && page.served() > least(most) {
                let site = site.config.hosts.canonical.clone();
                let (served, variant) = (page.served(), page.variant());
                add(most, RequestedPage { served, site, key: key.into(), variant });
            }
        }
    }
}

/// Returns the count that a page must exceed to be among the most requested ones.
fn least(most: &[RequestedPage]) -> u16 {
    most.get(SHOWN_MAX - 1).map_or(0, |last| last.served)
}

/// Inserts a page, the most requested first. A walk may find a page twice.
fn add(most: &mut Vec<RequestedPage>, page: RequestedPage) {
    let is_same = |other: &RequestedPage| {
        (&other.site, &other.key, other.variant) == (&page.site, &page.key, page.variant)
    };
    most.retain(|other| !is_same(other));
    let at = most.partition_point(|other| other.served >= page.served);
    most.insert(at, page);
    most.truncate(SHOWN_MAX);
}

fn page(page: &RequestedPage) -> Value {
    json!({
        "site": page.site,
        "url": shown::masked(&shown::address_of(&page.key)),
        "served": page.served,
        "served_at_least": page.served == SERVED_MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_counts_are_listed_once() {
        let page = |served: u16, key: u8| RequestedPage {
            served,
            site: None,
            key: [key].into(),
            variant: 0,
        };
        let mut most = Vec::new();
        for n in 1..=20 {
            add(&mut most, page(u16::from(n), n));
            add(&mut most, page(u16::from(n) + 1, n));
        }
        let shown: Vec<_> = most.iter().map(|page| page.served).collect();
        assert_eq!(shown, (12..=21).rev().collect::<Vec<_>>());
        assert_eq!((least(&most), least(&most[1..])), (12, 0));
    }
}
