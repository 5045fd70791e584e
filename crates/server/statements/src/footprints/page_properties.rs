//! The properties that the last renders of pages have shown, for renders of pages that are not stored.
//!
//! A property is noted for the page's URL, its path and its script. Each of them has it if a render within
//! [`YES_MS`] had it, and else has not if one within [`NO_MS`] had not. A page has what the first of the three says
//! with a note.
//!
//! So all URLs of `/login.php?return=…` are known after one of them. "Yes" counts more, because a visitor can ask any
//! page for an answer without the property (by `Accept`, or by a parameter), and that decides nothing for others.
//! All of it may be lost at any time; this costs renders, and decides nothing about storing.

use page_store::ExpiringKeys;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a render counts that had the property, in milliseconds.
const YES_MS: u64 = 3_600_000;
/// How long one counts that had not.
const NO_MS: u64 = 24 * YES_MS;
/// The numbers of URLs, paths and scripts with a note: 16 bytes each.
const YES_MAX: usize = 8_192;
const NO_MAX: usize = 8_192;

/// A property of pages.
#[derive(Clone, Copy, Debug, Hash)]
pub enum PageProperty {
    /// Nothing in the response stands against storing the page.
    Storable,
    /// `Vary` names `Accept-Language`.
    ByLanguage,
}

/// The hashes of a page's URL, path and script, for [`RenderProperties`].
#[derive(Clone, Copy, Debug)]
pub struct PageNames([u64; 3]);

/// The properties of pages, as their last renders had them.
#[derive(Debug)]
pub struct RenderProperties {
    /// No visitor can choose names with equal hashes.
    hasher: RandomState,
    /// Held for one look-up or note. `None` until the first note.
    known: Mutex<Option<Notes>>,
}

#[derive(Debug)]
struct Notes {
    yes: ExpiringKeys,
    no: ExpiringKeys,
}

impl Default for RenderProperties {
    fn default() -> RenderProperties {
        RenderProperties { hasher: RandomState::new(), known: Mutex::new(None) }
    }
}

impl RenderProperties {
    /// The names of a page.
    pub fn names(&self, url: &[u8], path: &[u8], script: &[u8]) -> PageNames {
        let all = [(0_u8, url), (1, path), (2, script)];
        PageNames(all.map(|name| self.hasher.hash_one(name)))
    }

    /// Notes whether a page had the property when it was rendered.
    pub fn note(&self, property: PageProperty, names: PageNames, has_it: bool, now_ms: u64) {
        let mut known = self.known();
        let Notes { yes, no } = known.get_or_insert_with(|| Notes {
            yes: ExpiringKeys::new(YES_MAX),
            no: ExpiringKeys::new(NO_MAX),
        });
        for name in self.of(property, names) {
            if has_it {
                yes.add(name, now_ms + YES_MS);
            } else {
                no.add(name, now_ms + NO_MS);
            }
        }
    }

    /// Whether a page has the property; `None` if nothing is known of its URL, path and script.
    pub fn has(&self, property: PageProperty, names: PageNames, now_ms: u64) -> Option<bool> {
        let known = self.known();
        let Notes { yes, no } = known.as_ref()?;
        self.of(property, names).into_iter().find_map(|name| {
            let has_not = || no.contains(name, now_ms).then_some(false);
            yes.contains(name, now_ms).then_some(true).or_else(has_not)
        })
    }

    fn of(&self, property: PageProperty, PageNames(names): PageNames) -> [u64; 3] {
        names.map(|name| self.hasher.hash_one((property, name)))
    }

    fn known(&self) -> MutexGuard<'_, Option<Notes>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PageProperty::{ByLanguage, Storable};

    #[test]
    fn the_url_says_more_than_the_path_and_the_path_more_than_the_script() {
        let pages = RenderProperties::default();
        let names = |url: &str| {
            let path = url.split('?').next().unwrap_or_default();
            pages.names(url.as_bytes(), path.as_bytes(), b"index.php")
        };
        let has = |url: &str, now_ms| pages.has(Storable, names(url), now_ms);
        assert_eq!(has("/", 0), None);
        pages.note(Storable, names("/login?to=1"), false, 0);
        assert_eq!((has("/login?to=2", 0), has("/", 0)), (Some(false), Some(false)));
        pages.note(Storable, names("/"), true, 0);
        assert_eq!((has("/login?to=3", 0), has("/?p=4", 0)), (Some(false), Some(true)));
        assert_eq!(has("/new", 0), Some(true));
        assert_eq!(pages.has(ByLanguage, names("/"), 0), None);
    }

    #[test]
    fn one_answer_without_a_property_does_not_take_it_from_a_page() {
        let pages = RenderProperties::default();
        let names = pages.names(b"/a?b", b"/a", b"index.php");
        pages.note(Storable, names, true, 0);
        pages.note(Storable, names, false, 1);
        assert_eq!(pages.has(Storable, names, YES_MS - 1), Some(true));
        assert_eq!(pages.has(Storable, names, YES_MS), Some(false));
        assert_eq!(pages.has(Storable, names, NO_MS + 1), None);
    }

    #[test]
    fn many_urls_do_not_displace_a_script_in_use() {
        let pages = RenderProperties::default();
        for at in 0..4 * YES_MAX as u64 {
            let names = pages.names(&at.to_le_bytes(), &at.to_le_bytes(), b"index.php");
            pages.note(Storable, names, true, at);
        }
        let new = pages.names(b"/new", b"/new", b"index.php");
        assert_eq!(pages.has(Storable, new, 4 * YES_MAX as u64), Some(true));
    }
}
