//! The hits that an audit compares with renders, on their way from the request to the crate `audit`; what an audit has
//! decided about paths; and its results.
//!
//! Off, nothing of this is on the path of a hit. On, each worker counts down; the hit at zero is answered by
//! `exchange` instead of the hit path, and copied into a bounded queue. A full queue drops it: no visitor waits.
//!
//! Memory: 64 hits (headers and a handle of the page), 1,024 paths, and 744 hours of results.

use config::target::TargetUri;
use http::{HeaderMap, Version};
use page_comparison::ConfidenceBound;
use site_rules::Plan;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stored_pages::page::SharedPage;
use telemetry::client::Client;
use tokio::sync::mpsc;

/// Hits that may wait to be compared.
const WAITING_MAX: usize = 64;
/// Paths with a limit at the same time; further ones have none.
const PATHS_MAX: usize = 1_024;
/// How long a limit holds, in milliseconds.
const LIMITED_MS: u64 = 3_600_000;
/// The hours of a month, for the results.
const HOURS_MAX: usize = 744;
const HOUR_MS: u64 = 3_600_000;

thread_local! {
    /// The hits until the next one that is compared, for each worker.
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

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

/// The decision of an audit about a path, for an hour.
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

/// The hits of a site that are to be compared, and the decisions about its paths.
pub struct AuditQueue {
    is_due: AtomicBool,
    sender: mpsc::Sender<AuditedHit>,
    receiver: Mutex<Option<mpsc::Receiver<AuditedHit>>>,
    has_limits: AtomicBool,
    limits: Mutex<HashMap<u64, (PathLimit, u64)>>,
    hours: Mutex<VecDeque<AuditHour>>,
    hasher: RandomState,
}

impl Default for AuditQueue {
    fn default() -> AuditQueue {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        AuditQueue {
            is_due: AtomicBool::new(false),
            sender,
            receiver: Mutex::new(Some(receiver)),
            has_limits: AtomicBool::new(false),
            limits: Mutex::default(),
            hours: Mutex::default(),
            hasher: RandomState::new(),
        }
    }
}

impl AuditQueue {
    /// Counts a plain hit of this worker. Returns whether `exchange` answers it, because it is to be compared.
    pub fn is_due(&self, one_in: u32) -> bool {
        let is_due = LEFT.with(|left| {
            let count = left.get();
            left.set(if count == 0 { one_in - 1 } else { count - 1 });
            count == 0
        });
        if is_due {
            self.is_due.store(true, Ordering::Relaxed);
        }
        is_due
    }

    /// Whether the hit that is being answered outside of the hit path is to be compared.
    pub fn wants(&self, one_in: u32) -> bool {
        self.is_due.swap(false, Ordering::Relaxed) || {
            self.is_due(one_in) && self.is_due.swap(false, Ordering::Relaxed)
        }
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

    /// The decision about the path of this target; none without one.
    pub fn limit_of(&self, target: &TargetUri, now_ms: u64) -> PathLimit {
        if !self.has_limits.load(Ordering::Acquire) {
            return PathLimit::default();
        }
        let limits = self.limits();
        let found = limits.get(&self.path(target)).filter(|(_, until_ms)| *until_ms > now_ms);
        found.map(|(limit, _)| *limit).unwrap_or_default()
    }

    /// Limits the path of this target for an hour, in addition to what is decided already.
    pub fn limit(&self, target: &TargetUri, limit: PathLimit, now_ms: u64) {
        let mut limits = self.limits();
        limits.retain(|_, (_, until_ms)| *until_ms > now_ms);
        let path = self.path(target);
        if limits.len() < PATHS_MAX || limits.contains_key(&path) {
            let (before, until_ms) = limits.entry(path).or_default();
            before.is_short |= limit.is_short;
            before.is_neutral |= limit.is_neutral;
            *until_ms = now_ms + LIMITED_MS;
        }
        self.has_limits.store(true, Ordering::Release);
    }

    /// The exact path of a target, with its host, as a number.
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
    fn one_hit_in_so_many_is_due_on_each_worker() {
        let audit = AuditQueue::default();
        let due = (0..30).filter(|_| audit.is_due(10)).count();
        assert_eq!(due, 3);
        assert!(audit.wants(10), "a plain hit was due");
        LEFT.set(5);
        assert!(!audit.wants(10));
    }

    #[test]
    fn a_limit_holds_for_its_exact_path_and_an_hour() {
        let audit = AuditQueue::default();
        let short = PathLimit { is_short: true, is_neutral: false };
        audit.limit(&target("/a?b=c"), short, 0);
        assert_eq!(audit.limit_of(&target("/a"), 5), short);
        assert_eq!(audit.limit_of(&target("/a/b"), 5), PathLimit::default());
        assert_eq!(audit.limit_of(&target("/a"), LIMITED_MS), PathLimit::default());
        (0..2 * PATHS_MAX).for_each(|n| audit.limit(&target(&format!("/{n}")), short, 5));
        assert_eq!(audit.limits().len(), PATHS_MAX);
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
