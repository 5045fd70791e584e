//! How often pages are rendered, and how many renders of one page run at once.
//!
//! A render lasts from the end of its request until its last bytes are about to be sent. They are
//! counted by the kind of page. Renders of a page that sets a cookie, or that requires validation
//! for each request, need not wait for each other.

use super::site::{Kind, Page};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// All renders of a run.
#[derive(Debug)]
pub struct Renders {
    running: Vec<AtomicU64>,
    begun: AtomicU64,
    most: [AtomicU64; Kind::ALL.len()],
}

/// The most renders of one page at once, by its kind, in the order of [`Kind::ALL`].
pub type Most = [u64; Kind::ALL.len()];

/// A render that runs until this is dropped.
#[derive(Debug)]
pub struct Running<'a>(&'a AtomicU64);

impl Renders {
    /// None yet, of so many pages.
    pub fn new(pages: usize) -> Renders {
        Renders {
            running: (0..pages).map(|_| AtomicU64::new(0)).collect(),
            begun: AtomicU64::new(0),
            most: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// A render of this page begins.
    pub fn begin(&self, page: &Page) -> Running<'_> {
        let running = &self.running[page.number];
        let at_once = running.fetch_add(1, SeqCst) + 1;
        self.begun.fetch_add(1, SeqCst);
        self.most[page.kind as usize].fetch_max(at_once, SeqCst);
        Running(running)
    }

    /// How many there were, validations among them.
    pub fn begun(&self) -> u64 {
        self.begun.load(SeqCst)
    }

    /// The most that ran at once of one page.
    pub fn most(&self) -> Most {
        std::array::from_fn(|kind| self.most[kind].load(SeqCst))
    }
}

/// The most of any page but those that nobody may share, and those that are validated for each request.
pub fn most_of_a_page(most: &Most) -> u64 {
    let shared = |kind: &Kind| !matches!(kind, Kind::Personal | Kind::Validated);
    Kind::ALL.into_iter().filter(shared).map(|kind| most[kind as usize]).max().unwrap_or(0)
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::Site;
    use super::*;

    #[test]
    fn counts_those_of_one_page_that_run_at_once() {
        let site = Site::new(1, 60, 10);
        let renders = Renders::new(site.pages.len());
        let first = renders.begin(&site.pages[0]);
        let other = renders.begin(&site.pages[1]);
        drop(first);
        let again = renders.begin(&site.pages[0]);
        assert_eq!((renders.begun(), most_of_a_page(&renders.most())), (3, 1));
        let personal = [renders.begin(&site.pages[9]), renders.begin(&site.pages[9])];
        assert_eq!(renders.most()[Kind::Personal as usize], 2);
        assert_eq!(most_of_a_page(&renders.most()), 1);
        let second = renders.begin(&site.pages[1]);
        assert_eq!(most_of_a_page(&renders.most()), 2);
        drop((other, again, personal, second));
    }
}
