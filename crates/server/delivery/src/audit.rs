//! The hits that an audit compares with renders, on their way from the request to the crate `audit`; what an audit has
//! decided about paths; and its results (`trial_record::AuditHours`).
//!
//! Off, nothing of this is on the path of a hit. On, a countdown of each thread decides whether a hit is copied into a
//! bounded queue ([`HitDraws`]): only hits with GET are, of the hit path and of `exchange` alike. A full queue drops it:
//! no visitor waits.
//!
//! Memory: 64 hits (headers and a handle of the page), 1,024 URLs, 744 hours of results, and 128 MiB for the responses that
//! audit and trial compare.

use crate::byte_account::ByteAccount;
use crate::site::Site;
use config::{AUDIT_UNIT, Audit};
use http::{HeaderMap, Version};
use page_comparison::UnjudgedReason;
use random_number::random_number;
use request_values::target::TargetUri;
use site_rules::Plan;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stored_pages::page::SharedPage;
use telemetry::client::Client;
use tokio::sync::mpsc;
use trial_record::AuditHours;

/// Hits that may wait to be compared.
const WAITING_MAX: usize = 64;
/// Responses, as tokens, that comparisons have in memory at the same time, and the noise of keys. One comparison has at most
/// fifteen responses of 8 MiB each, usually a hundredth of that; one without room has no verdict.
const COMPARED_BYTES_MAX: usize = 128 << 20;
/// URLs with a limit at the same time. A further one takes the place of the one that ends first.
const URLS_MAX: usize = 1_024;
/// How long a limit holds, in milliseconds.
const LIMITED_MS: u64 = 3_600_000;

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
    /// Nothing is stored: each class of devices gets another page, and the key does not distinguish them.
    pub is_unstored: bool,
}

/// Begins to count the results of the audit, and reads those of earlier processes, if there is an audit.
pub fn follow(site: &Site) {
    if site.config.audit.is_some() {
        let file = site.config.records.as_ref().map(|files| files.audit.clone());
        site.audit.hours.begin(file, site.clock.now().0);
    }
}

/// The hits of a site that are to be compared, and the decisions about its URLs.
pub struct AuditQueue {
    sender: mpsc::Sender<AuditedHit>,
    receiver: Mutex<Option<mpsc::Receiver<AuditedHit>>>,
    has_limits: AtomicBool,
    limits: Mutex<HashMap<u64, (PathLimit, u64)>>,
    /// The results by hour.
    pub hours: AuditHours,
    unjudged: Mutex<BTreeMap<&'static str, u64>>,
    /// The memory of comparisons: those of a trial, too.
    pub memory: Arc<ByteAccount>,
    hasher: RandomState,
}

/// The way to the next hit that is compared.
///
/// Its length is drawn from an exponential distribution, which has no memory: each hit is compared with the same chance,
/// whatever came before it, and hits of sites with different shares may use one way. A client cannot know which hits are
/// compared, and so cannot choose them. A hit costs a subtraction; the length is drawn only after a comparison.
struct HitDraws {
    /// Below zero: nothing was drawn yet.
    left: Cell<i64>,
}

impl HitDraws {
    const fn new() -> HitDraws {
        HitDraws { left: Cell::new(-1) }
    }

    #[inline]
    fn is_drawn(&self, audit: Audit, random: impl Fn() -> u64) -> bool {
        // No overflow: it is at least -1 before.
        let left = self.left.get() - audit.step;
        self.left.set(left);
        left < 0 && self.ended(audit, random)
    }

    /// The way has ended, or is the first one.
    #[cold]
    #[inline(never)]
    fn ended(&self, audit: Audit, random: impl Fn() -> u64) -> bool {
        let length = || {
            // Above 0, at most 1.
            let share = (random() as f64 + 1.0) / (u64::MAX as f64 + 1.0);
            (-share.ln() * AUDIT_UNIT as f64) as i64
        };
        let is_first = self.left.get() + audit.step < 0;
        self.left.set(length());
        if is_first { self.is_drawn(audit, random) } else { true }
    }
}

thread_local! {
    static HIT_DRAWS: HitDraws = const { HitDraws::new() };
}

/// Whether a hit of a site with this audit is compared.
#[inline]
pub fn is_drawn(audit: Audit) -> bool {
    HIT_DRAWS.with(|draws| draws.is_drawn(audit, random_number))
}

impl Default for AuditQueue {
    fn default() -> AuditQueue {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        AuditQueue {
            sender,
            receiver: Mutex::new(Some(receiver)),
            has_limits: AtomicBool::new(false),
            limits: Mutex::default(),
            hours: AuditHours::default(),
            unjudged: Mutex::default(),
            memory: ByteAccount::new(COMPARED_BYTES_MAX),
            hasher: RandomState::new(),
        }
    }
}

impl AuditQueue {
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
        before.is_unstored |= limit.is_unstored;
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

    /// Counts a comparison without a verdict.
    pub fn had_no_verdict(&self, reason: UnjudgedReason) {
        let mut unjudged = self.unjudged.lock().unwrap_or_else(PoisonError::into_inner);
        *unjudged.entry(reason.name()).or_default() += 1;
    }

    /// The comparisons without a verdict since the start, by reason.
    pub fn without_verdict(&self) -> BTreeMap<&'static str, u64> {
        self.unjudged.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    /// Random numbers from a seed (SplitMix64).
    fn numbers(seed: u64) -> impl Fn() -> u64 {
        let state = Cell::new(seed);
        move || {
            state.set(state.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
            let mixed = (state.get() ^ (state.get() >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        }
    }

    /// Whether a count of draws is at most five standard deviations away from that of one in so many.
    fn is_even(drawn: usize, hits: usize, one_in: u32) -> bool {
        let (hits, chance) = (hits as f64, 1.0 / f64::from(one_in));
        let deviation = (hits * chance * (1.0 - chance)).sqrt();
        (drawn as f64 - hits * chance).abs() <= 5.0 * deviation
    }

    #[test]
    fn each_hit_is_drawn_with_the_same_chance_whatever_came_before() {
        const HITS: usize = 400_000;
        for one_in in [1, 2, 10, 1_000] {
            let (draws, random, audit) = (HitDraws::new(), numbers(7), Audit::of(one_in));
            let drawn: Vec<bool> = (0..HITS).map(|_| draws.is_drawn(audit, &random)).collect();
            // All hits; every second one; every tenth, as of one page of several.
            for step in [1, 2, 10] {
                let count = drawn.iter().step_by(step).filter(|is_drawn| **is_drawn).count();
                assert!(is_even(count, HITS / step, one_in), "1 in {one_in}, {step}: {count}");
            }
            // A client that knows the last draw knows nothing about the next: right after it, and at the usual distance.
            for distance in [1, one_in as usize] {
                let draws = drawn[..HITS - distance].iter().filter(|is_drawn| **is_drawn).count();
                let pairs = drawn.windows(distance + 1).filter(|w| w[0] && w[distance]).count();
                assert!(is_even(pairs, draws, one_in), "1 in {one_in}, {distance}: {pairs}");
            }
        }
    }

    #[test]
    fn sites_with_other_shares_use_one_way() {
        const HITS: usize = 400_000;
        let (draws, random) = (HitDraws::new(), numbers(11));
        let shares = [2, 10, 1_000];
        let mut drawn = [0; 3];
        for hit in 0..HITS {
            let site = hit % 3;
            drawn[site] += usize::from(draws.is_drawn(Audit::of(shares[site]), &random));
        }
        for (count, one_in) in drawn.into_iter().zip(shares) {
            assert!(is_even(count, HITS / 3, one_in), "1 in {one_in}: {count}");
        }
    }

    #[test]
    fn a_limit_holds_for_its_exact_url_and_an_hour() {
        let audit = AuditQueue::default();
        let short = PathLimit { is_short: true, ..PathLimit::default() };
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
}
