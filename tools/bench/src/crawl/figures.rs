//! The figures of a site that is crawled: the page views of its visitors, and the pages of the crawler.
//!
//! A page view is lost if the page never came or took ten seconds; a deferred one came later, or was lost, too. Files
//! are plain hits.

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

#[derive(Debug, Clone, Default)]
struct OfKind {
    took: Vec<Duration>,
    deferred: u64,
    lost: u64,
}

/// The figures of one run.
#[derive(Debug, Clone, Default)]
pub struct RunFigures {
    kinds: [OfKind; KINDS.len()],
    files: Vec<Duration>,
    files_failed: u64,
    crawler_pages: u64,
    crawler_refused: u64,
    /// The CPU of PHP during the measured time, in cores.
    pub php_cores: f64,
    /// The measured time in seconds.
    pub seconds: f64,
}

impl RunFigures {
    /// Records that a page came.
    pub fn came(&mut self, kind: PageKind, took: Duration, deferred: bool) {
        let of_kind = &mut self.kinds[kind as usize];
        of_kind.took.push(took);
        of_kind.deferred += u64::from(deferred);
        of_kind.lost += u64::from(took >= Duration::from_secs(10));
    }

    /// Records that a page did not come.
    pub fn lost(&mut self, kind: PageKind, deferred: bool) {
        let of_kind = &mut self.kinds[kind as usize];
        of_kind.lost += 1;
        of_kind.deferred += u64::from(deferred);
        of_kind.took.push(Duration::from_secs(10));
    }

    /// Records that a file came, or not.
    pub fn file(&mut self, is_there: bool, took: Duration) {
        self.files.push(took);
        self.files_failed += u64::from(!is_there);
    }

    /// The crawler got a page, or not.
    pub fn crawled(&mut self, came: bool) {
        self.crawler_pages += u64::from(came);
        self.crawler_refused += u64::from(!came);
    }

    /// The views of pages of these kinds that were lost, in per cent.
    pub fn lost_percent(&self, of: impl Fn(PageKind) -> bool) -> f64 {
        self.share(&of, |of_kind| of_kind.lost)
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

    /// The crawler's cold pages each second.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 pages")]
    pub fn crawler_per_second(&self) -> f64 {
        self.crawler_pages as f64 / self.seconds.max(0.001)
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
            "crawler_pages_per_second": self.crawler_per_second(),
            "crawler_refused": self.crawler_refused,
        })
    }
}

/// In milliseconds; 0 without a time.
fn percentile(mut times: Vec<Duration>, percent: usize) -> f64 {
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
            figures.came(PageKind::Warm, ms(n), false);
        }
        figures.came(PageKind::Session, ms(50), false);
        figures.came(PageKind::Crawled, ms(2_500), true);
        figures.lost(PageKind::Crawled, true);
        figures.crawled(true);
        figures.crawled(false);
        assert_eq!(figures.lost_percent(|kind| kind == PageKind::Crawled), 50.0);
        assert_eq!(figures.lost_percent(|kind| kind != PageKind::Crawled), 0.0);
        assert!((figures.deferred_percent() - 66.67).abs() < 0.1);
        assert_eq!(figures.times_ms()[..2], [50.0, 10_000.0]);
        assert_eq!(figures.crawler_per_second(), 0.5);
        assert_eq!(percentile(Vec::new(), 95), 0.0);
    }
}
