//! The figures of a site that is crawled: the page views of its visitors, and the pages of the crawler.
//!
//! A page view is lost if the page never came or took ten seconds; a deferred one came later, or was lost, too. A view
//! that the end of the run cut off counts with the time that it had waited: its true time is longer. Files are plain
//! hits.

use super::clients::PATIENCE;
use serde_json::{Value, json};
use std::time::Duration;

/// The kinds of pages that visitors open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// A stored article.
    Warm,
    /// A filter that nobody has opened: the group that is crawled.
    Crawled,
    /// Another page that PHP has to make.
    Other,
    /// A page of a signed-in visitor.
    Session,
    /// A login or a comment.
    Write,
}

const KINDS: [PageKind; 5] =
    [PageKind::Warm, PageKind::Crawled, PageKind::Other, PageKind::Session, PageKind::Write];

impl PageKind {
    fn name(self) -> &'static str {
        match self {
            PageKind::Warm => "warm",
            PageKind::Crawled => "crawled group",
            PageKind::Other => "other",
            PageKind::Session => "session",
            PageKind::Write => "write",
        }
    }
}

/// How a page view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewEnd {
    /// The page came.
    Came,
    /// It did not come, or the visitor gave up.
    Lost,
    /// The end of the run cut it off.
    CutOff,
}

#[derive(Debug, Clone, Default)]
struct OfKind {
    took: Vec<Duration>,
    deferred: u64,
    lost: u64,
    cut_off: u64,
}

/// The requests of a crawler for cold pages, each with its further tries.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrawlerCounts {
    /// Those for which the page came.
    pub came: u64,
    /// Those for which it did not.
    pub refused: u64,
}

/// The figures of one run.
#[derive(Debug, Clone, Default)]
pub struct RunFigures {
    kinds: [OfKind; KINDS.len()],
    files: Vec<Duration>,
    files_failed: u64,
    /// The requests of the crawler.
    pub crawler: CrawlerCounts,
    /// The CPU of PHP during the measured time, in cores.
    pub php_cores: f64,
    /// The measured time in seconds.
    pub seconds: f64,
}

impl RunFigures {
    /// Records the end of a page view, and how long its visitor had waited then.
    pub fn view(&mut self, kind: PageKind, end: ViewEnd, waited: Duration, deferred: bool) {
        let of_kind = &mut self.kinds[kind as usize];
        let is_lost = end == ViewEnd::Lost || waited >= PATIENCE;
        of_kind.took.push(if is_lost { PATIENCE } else { waited });
        of_kind.deferred += u64::from(deferred);
        of_kind.lost += u64::from(is_lost);
        of_kind.cut_off += u64::from(end == ViewEnd::CutOff && !is_lost);
    }

    /// Records that a file came, or not.
    pub fn file(&mut self, is_there: bool, took: Duration) {
        self.files.push(took);
        self.files_failed += u64::from(!is_there);
    }

    /// The views of pages of these kinds that were lost, in per cent.
    pub fn lost_percent(&self, of: impl Fn(PageKind) -> bool) -> f64 {
        self.share(&of, |of_kind| of_kind.lost)
    }

    /// The views that the end of the run cut off, in per cent. They are not lost; their times are lower bounds.
    pub fn cut_off_percent(&self) -> f64 {
        self.share(&|_| true, |of_kind| of_kind.cut_off)
    }

    /// Those that were deferred, in per cent of the visitors' misses.
    pub fn deferred_percent(&self) -> f64 {
        self.share(&|kind| kind != PageKind::Warm, |of_kind| of_kind.deferred)
    }

    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 pages")]
    fn share(&self, of: &dyn Fn(PageKind) -> bool, part: impl Fn(&OfKind) -> u64) -> f64 {
        let kinds =
            || KINDS.iter().filter(|kind| of(**kind)).map(|kind| &self.kinds[*kind as usize]);
        let all: usize = kinds().map(|of_kind| of_kind.took.len()).sum();
        kinds().map(part).sum::<u64>() as f64 * 100.0 / all.max(1) as f64
    }

    /// The 95th percentile of signed-in visitors, and of all page views, in milliseconds; the 99th of plain hits.
    pub fn times_ms(&self) -> [f64; 3] {
        let all = self.kinds.iter().flat_map(|of_kind| of_kind.took.iter().copied()).collect();
        [
            percentile(self.kinds[PageKind::Session as usize].took.clone(), 95),
            percentile(all, 95),
            percentile(self.files.clone(), 99),
        ]
    }

    /// How many pages of signed-in visitors there were.
    pub fn signed_in(&self) -> usize {
        self.kinds[PageKind::Session as usize].took.len()
    }

    /// The crawler's cold pages each second, and the pages that it asked for.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 pages")]
    pub fn crawler_per_second(&self) -> (f64, f64) {
        let CrawlerCounts { came, refused } = self.crawler;
        [came, came + refused].map(|count| count as f64 / self.seconds.max(0.001)).into()
    }

    /// All figures, for the file.
    pub fn json(&self) -> Value {
        let kinds = KINDS.iter().map(|kind| {
            let of_kind = &self.kinds[*kind as usize];
            json!({
                "kind": kind.name(),
                "views": of_kind.took.len(),
                "deferred": of_kind.deferred,
                "lost": of_kind.lost,
                "cut_off": of_kind.cut_off,
                "p50_ms": percentile(of_kind.took.clone(), 50),
                "p95_ms": percentile(of_kind.took.clone(), 95),
            })
        });
        json!({
            "kinds": kinds.collect::<Vec<_>>(),
            "files": self.files.len(),
            "files_failed": self.files_failed,
            "file_p99_ms": percentile(self.files.clone(), 99),
            "php_cores": self.php_cores,
            "crawler_pages_per_second": self.crawler_per_second().0,
            "crawler_refused": self.crawler.refused,
        })
    }
}

/// In milliseconds; 0 without a time.
pub fn percentile(mut times: Vec<Duration>, percent: usize) -> f64 {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_page_views_of_their_kind() {
        let mut figures = RunFigures { seconds: 2.0, ..RunFigures::default() };
        let ms = Duration::from_millis;
        for n in 1..=3 {
            figures.view(PageKind::Warm, ViewEnd::Came, ms(n), false);
        }
        figures.view(PageKind::Session, ViewEnd::Came, ms(50), false);
        figures.view(PageKind::Crawled, ViewEnd::Came, ms(2_500), true);
        figures.view(PageKind::Crawled, ViewEnd::Lost, ms(3), true);
        figures.crawler = CrawlerCounts { came: 1, refused: 1 };
        assert_eq!(figures.lost_percent(|kind| kind == PageKind::Crawled), 50.0);
        assert_eq!(figures.lost_percent(|kind| kind != PageKind::Crawled), 0.0);
        assert!((figures.deferred_percent() - 66.67).abs() < 0.1);
        assert_eq!(figures.times_ms()[..2], [50.0, 10_000.0]);
        assert_eq!(figures.crawler_per_second(), (0.5, 1.0));
        assert_eq!(percentile(Vec::new(), 95), 0.0);
    }

    #[test]
    fn a_view_that_is_cut_off_counts_with_the_time_that_it_had_waited() {
        let mut figures = RunFigures::default();
        figures.view(PageKind::Session, ViewEnd::Came, Duration::from_millis(40), false);
        figures.view(PageKind::Session, ViewEnd::CutOff, Duration::from_secs(4), false);
        assert_eq!((figures.times_ms()[0], figures.cut_off_percent()), (4_000.0, 50.0));
        assert_eq!(figures.lost_percent(|_| true), 0.0);
        figures.view(PageKind::Session, ViewEnd::CutOff, Duration::from_secs(12), true);
        figures.view(PageKind::Session, ViewEnd::Came, Duration::from_secs(12), false);
        assert_eq!((figures.times_ms()[0], figures.cut_off_percent()), (10_000.0, 25.0));
        assert_eq!(figures.lost_percent(|_| true), 50.0);
    }
}
