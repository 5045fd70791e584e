//! The pages whose reads were refused last, with the reason in words: for `explain`.
//!
//! A path stands once, with its last reason. Bounded by their number and by the length of both texts. Not here: the
//! counters, and the log.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The maximum number of pages.
const PAGES_MAX: usize = 256;
/// The maximum length of a path and of a reason that is remembered, in bytes.
const TEXT_MAX: usize = 500;

/// The pages whose reads were refused last.
#[derive(Default)]
pub struct RefusedPages(Mutex<VecDeque<(Box<str>, Box<str>)>>);

impl RefusedPages {
    /// Records why the reads of the page at `path` were refused.
    pub fn note(&self, path: &str, why: &str) {
        if path.len() > TEXT_MAX {
            return;
        }
        let end = (0..=why.len().min(TEXT_MAX)).rev().find(|end| why.is_char_boundary(*end));
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(known, _)| **known != *path);
        if pages.len() >= PAGES_MAX {
            pages.pop_front();
        }
        pages.push_back((path.into(), why[..end.unwrap_or_default()].into()));
    }

    /// The reason for the page at `path`, if it was refused recently.
    pub fn reason(&self, path: &str) -> Option<String> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.iter().find(|(known, _)| **known == *path).map(|(_, why)| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reason_of_each_page_is_known_within_bounds() {
        let pages = RefusedPages::default();
        for at in 0..1_000 {
            pages.note(&format!("/{at}"), "a view");
        }
        pages.note("/999", &"\u{fc}".repeat(400));
        assert_eq!(pages.reason("/999").map(|why| why.len()), Some(500));
        assert_eq!(pages.reason("/998").as_deref(), Some("a view"));
        assert_eq!((pages.reason("/0"), pages.reason("/none")), (None, None));
        pages.note(&"/x".repeat(1_000), "long");
        assert!(pages.0.lock().expect("not poisoned").len() <= PAGES_MAX);
    }
}
