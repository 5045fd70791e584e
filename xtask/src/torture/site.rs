//! The site under torture, and the truth about it.
//!
//! Some items, and pages that each read four of them and something of their own. Every item, and
//! what a page has of its own, is a *cell* with two numbers: the version committed, which renders
//! read, and the version acknowledged, which a writer sets once it has the answer to its change. Both
//! only grow; every access is sequentially consistent, so that a reader that takes the acknowledged
//! versions before it sends its request may hold the answer to them.

use super::chance::Chance;
use super::stamp::{READS, Shape, Versions};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// How many items a page reads.
const ITEMS: usize = READS - 1;
/// About two kilobytes.
const USUAL: Shape = Shape { lines: 32, filling_bytes: 24 };
/// About 300 kilobytes: more than is held back before a response goes out.
const LARGE: Shape = Shape { lines: 150, filling_bytes: 2000 };

/// How a page behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Complete at once, good for an hour.
    Plain,
    /// In chunks, while it is made.
    Streamed,
    /// Streamed, and longer than is held back; in chunks, or with its length.
    Large,
    /// Streamed, over a longer time than is held back.
    Slow,
    /// Three variants, by `X-Variant`.
    Varying,
    /// Stored, and validated each time (`no-cache`, `ETag`, 304).
    Validated,
    /// Good for a second, and to be served stale while it is made anew or cannot be made.
    Brief,
    /// Sets a cookie, every other time.
    Personal,
}

/// A page of the site.
#[derive(Debug)]
pub struct Page {
    /// Its number.
    pub number: usize,
    /// Its path and query.
    pub target: String,
    /// How it behaves.
    pub kind: Kind,
    /// The cells that it reads: its items, then its own.
    pub reads: [usize; READS],
    /// How long it is.
    pub shape: Shape,
}

impl Page {
    /// Its items.
    pub fn items(&self) -> &[usize] {
        &self.reads[..ITEMS]
    }

    /// The cell of what only this page shows.
    pub fn own(&self) -> usize {
        self.reads[ITEMS]
    }

    /// Its variants.
    pub fn variants(&self) -> &'static [char] {
        if self.kind == Kind::Varying { &['a', 'b', 'c'] } else { &['-'] }
    }
}

#[derive(Debug, Default)]
struct Cell {
    committed: AtomicU64,
    acknowledged: AtomicU64,
}

/// The pages, and the truth about what they are made from.
#[derive(Debug)]
pub struct Site {
    /// The pages, by number.
    pub pages: Vec<Page>,
    /// How many items there are: cells 0 to `items` − 1.
    pub items: usize,
    cells: Vec<Cell>,
}

impl Site {
    /// A site of so many items and pages; which page reads what comes from the seed. There are at
    /// least four items.
    pub fn new(seed: u64, items: usize, pages: usize) -> Site {
        let items = items.max(ITEMS);
        let mut chance = Chance::new(seed, u64::MAX);
        let page = |number| {
            let kind = kind(number);
            let own = items + number;
            let [a, b, c, d] = distinct(&mut chance, items);
            Page {
                number,
                target: target(number),
                kind,
                reads: [a, b, c, d, own],
                shape: if kind == Kind::Large { LARGE } else { USUAL },
            }
        };
        let pages: Vec<Page> = (0..pages).map(page).collect();
        let cells = (0..items + pages.len()).map(|_| Cell::default()).collect();
        Site { pages, items, cells }
    }

    /// The page at this path and query.
    pub fn page_at(&self, target: &str) -> Option<&Page> {
        let number = target.strip_prefix("/page/")?.split('?').next()?.parse().ok()?;
        self.pages.get::<usize>(number).filter(|page| page.target == target)
    }

    /// The targets of the pages that read an item.
    pub fn pages_with(&self, item: usize) -> Vec<&str> {
        let with = self.pages.iter().filter(|page| page.items().contains(&item));
        with.map(|page| page.target.as_str()).collect()
    }

    /// The version of a cell that a render reads now.
    pub fn read(&self, cell: usize) -> u64 {
        self.cells[cell].committed.load(SeqCst)
    }

    /// Changes a cell; from now on renders read the version that is returned.
    pub fn commit(&self, cell: usize) -> u64 {
        self.cells[cell].committed.fetch_add(1, SeqCst) + 1
    }

    /// The writer of this version has its answer.
    pub fn acknowledge(&self, cell: usize, version: u64) {
        self.cells[cell].acknowledged.fetch_max(version, SeqCst);
    }

    /// The versions that a request for this page, sent after this call, may count on.
    pub fn acknowledged(&self, page: &Page) -> Versions {
        page.reads.map(|cell| self.cells[cell].acknowledged.load(SeqCst))
    }
}

/// The tag of an item.
pub fn tag(item: usize) -> String {
    format!("item:{item}")
}

fn kind(number: usize) -> Kind {
    match (number % 50, number % 10) {
        (4 | 25, _) => Kind::Large,
        (15, _) => Kind::Slow,
        (_, 5) => Kind::Streamed,
        (_, 6) => Kind::Varying,
        (_, 7) => Kind::Validated,
        (_, 8) => Kind::Brief,
        (_, 9) => Kind::Personal,
        _ => Kind::Plain,
    }
}

/// Every fifth page has a query.
fn target(number: usize) -> String {
    match number % 5 {
        3 => format!("/page/{number}?part=2&of=3"),
        _ => format!("/page/{number}"),
    }
}

fn distinct(chance: &mut Chance, items: usize) -> [usize; ITEMS] {
    let mut drawn = BTreeSet::new();
    while drawn.len() < ITEMS {
        drawn.insert(chance.below(items));
    }
    let mut places = [0; ITEMS];
    places.iter_mut().zip(drawn).for_each(|(place, item)| *place = item);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_pages_are_of_every_kind_and_are_found_by_their_targets() {
        let site = Site::new(1, 60, 200);
        let count = |kind| site.pages.iter().filter(|page| page.kind == kind).count();
        let kinds = [
            Kind::Plain,
            Kind::Streamed,
            Kind::Large,
            Kind::Slow,
            Kind::Varying,
            Kind::Validated,
            Kind::Brief,
            Kind::Personal,
        ];
        assert!(kinds.iter().all(|kind| count(*kind) >= 4));
        for page in &site.pages {
            assert_eq!(site.page_at(&page.target).map(|found| found.number), Some(page.number));
            assert!(page.items().iter().all(|item| *item < 60));
            let item = page.items()[0];
            assert!(site.pages_with(item).contains(&page.target.as_str()));
        }
        assert!(site.page_at("/page/3").is_none(), "it has a query");
        assert!(site.page_at("/page/200").is_none());
    }

    #[test]
    fn what_is_committed_counts_once_it_is_acknowledged() {
        let site = Site::new(1, 60, 10);
        let page = &site.pages[7];
        let version = site.commit(page.own());
        assert_eq!((version, site.read(page.own())), (1, 1));
        assert_eq!(site.acknowledged(page), [0; READS]);
        site.acknowledge(page.own(), version);
        site.acknowledge(page.own(), 0);
        assert_eq!(site.acknowledged(page), [0, 0, 0, 0, 1]);
    }
}
