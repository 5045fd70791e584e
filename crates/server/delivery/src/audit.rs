//! The hits that an audit compares with renders, on their way from the request to the crate `audit`; what an audit has
//! decided about paths; and its results.
//!
//! Off, nothing of this is on the path of a hit. On, the number of a hit decides whether it is copied into a bounded
//! queue (`config::Audit`): only hits with GET are, of the hit path and of `exchange` alike. A full queue drops it: no
//! visitor waits.
//!
//! Memory: 64 hits (headers and a handle of the page), 1,024 URLs, and 744 hours of results.

use config::target::TargetUri;
use http::{HeaderMap, Version};
use page_comparison::{ConfidenceBound, UnjudgedReason};
use site_rules::Plan;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stored_pages::page::SharedPage;
use telemetry::client::Client;
use tokio::sync::mpsc;

/// Hits that may wait to be compared.
const WAITING_MAX: usize = 64;
/// URLs with a limit at the same time. A further one takes the place of the one that ends first.
const URLS_MAX: usize = 1_024;
/// How long a limit holds, in milliseconds.
const LIMITED_MS: u64 = 3_600_000;
/// The hours of a month, for the results.
const HOURS_MAX: usize = 744;
const HOUR_MS: u64 = 3_600_000;

/// A hit to compare: the request, and the page that answered it.
pub struct AuditedHit {
    /// The target of the request.
    pub target: TargetUri,
    /// The key of the page.
    pub key: Vec<u8>,
    /// The header lines of the client.
    pub headers: Arc<HeaderMap>,
    /// The HTTP version of the request.
    pub version: Version,
    /// The client that got the page.
    pub client: Client,
    /// The plan of the request.
    pub plan: Plan,
    /// The page that was sent.
    pub page: SharedPage,
}

/// The decision of an audit about a URL, for an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathLimit {
    /// Pages live for at most a minute.
    pub is_short: bool,
    /// Only renders without anything of one visitor are stored.
    pub is_neutral: bool,
}

/// The comparisons of one hour.
#[derive(Clone, Copy, Debug, Default)]
struct AuditHour {
    number: u64,
    compared: u64,
    wrong: u64,
}

/// The hits of a site that are to be compared, and the decisions about its URLs.
pub struct AuditQueue {
    hits: AtomicU64,
    sender: mpsc::Sender<AuditedHit>,
    receiver: Mutex<Option<mpsc::Receiver<AuditedHit>>>,
    has_limits: AtomicBool,
    limits: Mutex<HashMap<u64, (PathLimit, u64)>>,
    hours: Mutex<VecDeque<AuditHour>>,
    unjudged: Mutex<BTreeMap<&'static str, u64>>,
    hasher: RandomState,
}

impl Default for AuditQueue {
    fn default() -> AuditQueue {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        AuditQueue {
            hits: AtomicU64::new(0),
            sender,
            receiver: Mutex::new(Some(receiver)),
            has_limits: AtomicBool::new(false),
            limits: Mutex::default(),
            hours: Mutex::default(),
            unjudged: Mutex::default(),
            hasher: RandomState::new(),
        }
    }
}

impl AuditQueue {
    /// The number of a hit among those that may be drawn; each number is given once.
    #[inline]
    pub fn number(&self) -> u64 {
        self.hits.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Queues a hit, unless too many wait.
    pub fn add(&self, hit: AuditedHit) {
        // Full: other hits are compared instead.
        let _ = self.sender.try_send(hit);
    }

    /// The hits to compare, for the one task that compares them.
    pub fn receive(&self) -> Option<mpsc::Receiver<AuditedHit>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The decision about the URL of this target; none without one.
    pub fn limit_of(&self, target: &TargetUri, now_ms: u64) -> PathLimit {
        if !self.has_limits.load(Ordering::Acquire) {
            return PathLimit::default();
        }
        let limits = self.limits();
        let found = limits.get(&self.url(target)).filter(|(_, until_ms)| *until_ms > now_ms);
        found.map(|(limit, _)| *limit).unwrap_or_default()
    }

    /// Limits exactly the URL of this target, with its query, for an hour; in addition to what is decided already. Other
    /// queries of the path are other pages: many applications have all of their pages at one path.
    pub fn limit(&self, target: &TargetUri, limit: PathLimit, now_ms: u64) {
        let mut limits = self.limits();
        limits.retain(|_, (_, until_ms)| *until_ms > now_ms);
        let url = self.url(target);
        if limits.len() >= URLS_MAX && !limits.contains_key(&url) {
            let first =
                limits.iter().min_by_key(|(_, (_, until_ms))| *until_ms).map(|(url, _)| *url);
            first.map(|url| limits.remove(&url));
        }
        let (before, until_ms) = limits.entry(url).or_default();
        before.is_short |= limit.is_short;
        before.is_neutral |= limit.is_neutral;
        *until_ms = now_ms + LIMITED_MS;
        self.has_limits.store(true, Ordering::Release);
    }

    /// The URL of a target as it is in the key, with its host and query, as a number.
    pub fn url(&self, target: &TargetUri) -> u64 {
        self.hasher.hash_one((&target.host, target.page()))
    }

    /// A key as a number.
    pub fn key(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The path of a target without its query, with its host, as a number.
    pub fn path(&self, target: &TargetUri) -> u64 {
        let path = target.page().split('?').next().unwrap_or_default();
        self.hasher.hash_one((&target.host, path))
    }

    /// Counts a comparison with a verdict.
    pub fn compared(&self, is_wrong: bool, now_ms: u64) {
        let mut hours = self.hours.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_ms / HOUR_MS;
        if hours.back().is_none_or(|last| last.number < number) {
            hours.push_back(AuditHour { number, ..AuditHour::default() });
            if hours.len() > HOURS_MAX {
                hours.pop_front();
            }
        }
        if let Some(hour) = hours.back_mut() {
            hour.compared += 1;
            hour.wrong += u64::from(is_wrong);
        }
    }

    /// Counts a comparison without a verdict.
    pub fn had_no_verdict(&self, reason: UnjudgedReason) {
        let mut unjudged = self.unjudged.lock().unwrap_or_else(PoisonError::into_inner);
        *unjudged.entry(reason.name()).or_default() += 1;
    }

    /// The comparisons without a verdict since the start, by reason.
    pub fn without_verdict(&self) -> BTreeMap<&'static str, u64> {
        self.unjudged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The proof by the comparisons of the last `hours` hours.
    pub fn bound(&self, hours: u64, now_ms: u64) -> ConfidenceBound {
        let first = (now_ms / HOUR_MS + 1).saturating_sub(hours);
        let all = self.hours.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = all.iter().filter(|hour| hour.number >= first);
        let sum =
            |(compared, wrong), hour: &AuditHour| (compared + hour.compared, wrong + hour.wrong);
        let (compared, wrong) = counted.fold((0, 0), sum);
        ConfidenceBound { compared, wrong }
    }

    fn limits(&self) -> MutexGuard<'_, HashMap<u64, (PathLimit, u64)>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> TargetUri {
        TargetUri::of_key(format!("http://a{path}").as_bytes()).expect("a key")
    }

    #[test]
    fn a_limit_holds_for_its_exact_url_and_an_hour() {
        let audit = AuditQueue::default();
        let short = PathLimit { is_short: true, is_neutral: false };
        audit.limit(&target("/a?b=c"), short, 0);
        assert_eq!(audit.limit_of(&target("/a?b=c"), 5), short);
        for other in ["/a", "/a?b=d", "/a?b=c&d", "/a/b"] {
            assert_eq!(audit.limit_of(&target(other), 5), PathLimit::default(), "{other}");
        }
        assert_eq!(audit.limit_of(&target("/a?b=c"), LIMITED_MS), PathLimit::default());
        (0..2 * URLS_MAX as u64).for_each(|n| audit.limit(&target(&format!("/{n}")), short, n));
        assert_eq!(audit.limits().len(), URLS_MAX);
        assert_eq!(audit.limit_of(&target(&format!("/{}", 2 * URLS_MAX - 1)), 5_000), short);
    }

    #[test]
    fn results_are_counted_by_hour() {
        let audit = AuditQueue::default();
        for hour in 0..800 {
            audit.compared(hour == 798, hour * HOUR_MS);
        }
        let now_ms = 799 * HOUR_MS;
        let bound = |hours| audit.bound(hours, now_ms);
        assert_eq!((bound(1).compared, bound(1).wrong), (1, 0));
        assert_eq!((bound(24).compared, bound(24).wrong), (24, 1));
        assert_eq!(bound(744).compared, 744);
    }
}
