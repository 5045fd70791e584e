//! The site under torture, and its correct data.
//!
//! There are some items, and pages that each read four of them and data of their own. Every item,
//! and a page's own data, is a *cell* with two numbers. Renders read the committed version; a
//! writer sets the acknowledged version after the response to its change. Both only grow. Every
//! access is sequentially consistent, so a reader may compare a response with the versions
//! acknowledged before its request. For soft changes the time of each is recorded: from then on the
//! older page may be served for a limited time, or not at all.

use super::publication::{By, Strength};
use super::stamp::{READS, Shape, Versions};
use harness::Chance;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many items a page reads.
const ITEMS: usize = READS - 1;
/// About two kilobytes.
const USUAL: Shape = Shape { lines: 32, filling_bytes: 24 };
/// About 300 kilobytes: more than is held back before a response goes out.
const LARGE: Shape = Shape { lines: 150, filling_bytes: 2000 };

/// The longest render, in microseconds.
const RENDER_MICROS: usize = 8000;

/// How long a page may be served after a soft change, by the word of the site (`cache.soft_for`).
pub const SOFT_FOR: Duration = Duration::from_secs(1);
/// How long by its own word (`stale-while-revalidate`) in the mode `soft`.
const BRIEF_SOFT_FOR: Duration = Duration::from_secs(2);
/// Two readings of a clock in whole milliseconds.
const ROUNDING_MICROS: u64 = 2000;
/// Soft changes of a cell are acknowledged in their order, but for those of so many writers at once.
const OUT_OF_ORDER: u64 = 256;

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
    /// Fresh for a second, then stale while it is refreshed or cannot be rendered.
    Brief,
    /// Sets a cookie with every other version of its data.
    Personal,
}

impl Kind {
    /// All of them; a kind's place in this list is its place in every count.
    pub const ALL: [Kind; 8] = [
        Kind::Plain,
        Kind::Streamed,
        Kind::Large,
        Kind::Slow,
        Kind::Varying,
        Kind::Validated,
        Kind::Brief,
        Kind::Personal,
    ];

    /// In a word, as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Streamed => "streamed",
            Kind::Large => "large",
            Kind::Slow => "slow",
            Kind::Varying => "varying",
            Kind::Validated => "validated",
            Kind::Brief => "brief",
            Kind::Personal => "personal",
        }
    }
}

/// A page of the site.
#[derive(Debug)]
pub struct Page {
    /// The number of the page.
    pub number: usize,
    /// Its path and query.
    pub target: String,
    /// How the page behaves.
    pub kind: Kind,
    /// The cells that it reads: its items, then its own.
    pub reads: [usize; READS],
    /// How long it is.
    pub shape: Shape,
}

impl Page {
    /// The items that the page shows.
    pub fn items(&self) -> &[usize] {
        &self.reads[..ITEMS]
    }

    /// The cell of what only this page shows.
    pub fn own(&self) -> usize {
        self.reads[ITEMS]
    }

    /// The value of its `Cache-Control`.
    pub fn cache_control(&self, by: By) -> &'static str {
        match (self.kind, by) {
            (Kind::Validated, _) => "no-cache",
            (Kind::Brief, By::Soft) => "max-age=1, stale-while-revalidate=2, stale-if-error=2",
            (Kind::Brief, _) => "max-age=1, stale-while-revalidate=60, stale-if-error=60",
            _ if self.forbids_stale(by) => "max-age=3600, must-revalidate",
            _ => "max-age=3600",
        }
    }

    /// For how long after a soft change it may be served as it was before.
    pub fn stale_for(&self, by: By) -> Duration {
        match self.kind {
            _ if by != By::Soft || self.forbids_stale(by) => Duration::ZERO,
            Kind::Brief => BRIEF_SOFT_FOR,
            _ => SOFT_FOR,
        }
    }

    /// Some pages want nobody to get what was before, whatever the site allows.
    fn forbids_stale(&self, by: By) -> bool {
        self.kind == Kind::Validated || by == By::Soft && self.number % 10 == 1
    }

    /// The variants of the page.
    pub fn variants(&self) -> &'static [char] {
        if self.kind == Kind::Varying { &['a', 'b', 'c'] } else { &['-'] }
    }
}

#[derive(Debug, Default)]
struct Cell {
    committed: AtomicU64,
    acknowledged: AtomicU64,
    softly: Mutex<Vec<Mark>>,
}

/// A soft change that has been acknowledged.
#[derive(Debug, Clone, Copy)]
struct Mark {
    version: u64,
    at_micros: u64,
}

/// How new an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// Not older than what had been acknowledged.
    Current,
    /// Older than a soft change, and served while that is allowed.
    StaleAsAllowed,
    /// Older than a hard change, or than a soft one for too long.
    Outdated,
}

/// The pages, and the truth about what they are made from.
#[derive(Debug)]
pub struct Site {
    /// The pages, by number.
    pub pages: Vec<Page>,
    /// How many items there are: cells 0 to `items` − 1.
    pub items: usize,
    /// How its changes are published.
    pub by: By,
    /// The longest render, in microseconds.
    pub render_micros: usize,
    /// Whether each writer makes each change twice, as an author does who saves again.
    pub saves_twice: bool,
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
        Site {
            pages,
            items,
            by: By::Mixed,
            render_micros: RENDER_MICROS,
            saves_twice: false,
            cells,
        }
    }

    /// The same site, whose changes are published in another way.
    pub fn by(self, by: By) -> Site {
        Site { by, ..self }
    }

    /// The same site, whose longest render takes so many microseconds, and whose writers make each change twice: the
    /// second one meets renders that the first has caused.
    pub fn slow_and_saved_twice(self, render_micros: usize) -> Site {
        Site { render_micros, saves_twice: true, ..self }
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

    /// The writer of this version has its answer, so long after the start of the run.
    pub fn acknowledge(&self, cell: usize, version: u64, strength: Strength, at_micros: u64) {
        let cell = &self.cells[cell];
        match strength {
            Strength::Hard => {
                cell.acknowledged.fetch_max(version, SeqCst);
            }
            Strength::Soft => {
                let mut softly = cell.softly.lock().unwrap_or_else(PoisonError::into_inner);
                softly.push(Mark { version, at_micros });
            }
        }
    }

    /// The versions that a request for this page, sent after this call, may count on.
    pub fn acknowledged(&self, page: &Page) -> Versions {
        page.reads.map(|cell| self.cells[cell].acknowledged.load(SeqCst))
    }

    /// How new an answer made from these versions is, to a request that was sent so long after the
    /// start, when `acknowledged` had been.
    pub fn currency(
        &self,
        page: &Page,
        made_from: &Versions,
        acknowledged: &Versions,
        sent_micros: u64,
    ) -> Currency {
        if made_from.iter().zip(acknowledged).any(|(mine, known)| mine < known) {
            return Currency::Outdated;
        }
        if self.by != By::Soft {
            return Currency::Current;
        }
        let allowed_micros = match page.stale_for(self.by) {
            Duration::ZERO => 0,
            time => u64::try_from(time.as_micros()).unwrap_or(u64::MAX) + ROUNDING_MICROS,
        };
        let marked = page.reads.into_iter().zip(made_from);
        let since = marked.filter_map(|(cell, version)| self.marked_since(cell, *version)).min();
        match since {
            Some(since) if since.saturating_add(allowed_micros) < sent_micros => Currency::Outdated,
            Some(since) if since < sent_micros => Currency::StaleAsAllowed,
            _ => Currency::Current,
        }
    }

    /// When the first soft change after this version of a cell was acknowledged.
    fn marked_since(&self, cell: usize, version: u64) -> Option<u64> {
        let softly = self.cells[cell].softly.lock().unwrap_or_else(PoisonError::into_inner);
        let late = softly.iter().rev().take_while(|mark| mark.version + OUT_OF_ORDER > version);
        late.filter(|mark| mark.version > version).map(|mark| mark.at_micros).min()
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
        assert!(Kind::ALL.iter().all(|kind| count(*kind) >= 4));
        assert!(Kind::ALL.iter().enumerate().all(|(place, kind)| *kind as usize == place));
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
    fn a_commit_counts_once_it_is_acknowledged() {
        let site = Site::new(1, 60, 10);
        let page = &site.pages[7];
        let version = site.commit(page.own());
        assert_eq!((version, site.read(page.own())), (1, 1));
        assert_eq!(site.acknowledged(page), [0; READS]);
        site.acknowledge(page.own(), version, Strength::Hard, 0);
        site.acknowledge(page.own(), 0, Strength::Hard, 0);
        assert_eq!(site.acknowledged(page), [0, 0, 0, 0, 1]);
    }

    #[test]
    fn soft_changes_leave_a_page_its_time_and_hard_ones_none() {
        let site = Site::new(1, 60, 50).by(By::Soft);
        let second = 1_000_000;
        let at = |page: usize, sent_micros: u64| {
            let page = &site.pages[page];
            site.currency(page, &[0; READS], &site.acknowledged(page), sent_micros)
        };
        for page in [0, 1, 7, 8] {
            let own = site.pages[page].own();
            site.acknowledge(own, 2, Strength::Soft, 7 * second);
            site.acknowledge(own, 1, Strength::Soft, 5 * second);
            assert_eq!(at(page, 5 * second), Currency::Current, "not acknowledged before");
        }
        let last = [(0, 6 * second), (8, 7 * second)];
        for (page, last) in last {
            assert_eq!(at(page, last), Currency::StaleAsAllowed);
            assert_eq!(at(page, last + 3000), Currency::Outdated);
        }
        assert_eq!(at(1, 5 * second + 1), Currency::Outdated, "must-revalidate");
        assert_eq!(at(7, 5 * second + 1), Currency::Outdated, "no-cache");
        site.acknowledge(site.pages[0].own(), 3, Strength::Hard, 0);
        assert_eq!(at(0, 5 * second + 1), Currency::Outdated);
    }
}
