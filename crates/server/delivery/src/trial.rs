//! The answers that visitors get from the origin during a trial, on their way from the request to the crate `audit`,
//! which compares them with the pages that would have been sent.
//!
//! An answer is compared with the stored page while it passes: as long as both are equal, nothing of it is kept. From
//! the first difference on it is copied, up to 2 MiB, and within an account for all answers; one that is longer is only
//! known to differ. A visitor waits for none of this: a full queue and a full account drop the copy.
//!
//! | who | gets |
//! |---|---|
//! | a visitor | the origin's answer, streamed |
//! | a visitor of the share `trial.serve`, by address | hits, unless one address makes more than half of the requests |
//!
//! Memory: 64 answers that wait, 32 MiB for their content, 32 MiB for the first answers of keys, and the last 128
//! addresses as hashes. Decompressed copies of stored pages count as content.

use crate::byte_account::{AccountedBytes, ByteAccount};
use crate::site::Site;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version, header};
use http_cache::codings::Coding;
use origin::OriginResponse;
use page_comparison::{MAX_COMPARED_BYTES, UnjudgedReason};
use request_values::target::TargetUri;
use rule_conditions::RequestClient;
use site_rules::Plan;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stored_pages::content_decoding;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::client::{Client, Spent};
use telemetry::per_address::subscriber;
use tokio::sync::mpsc;
use trial_record::{TrialNotice, TrialSettings};

/// Answers that may wait to be compared.
const WAITING_MAX: usize = 64;
/// Content of answers that is kept at the same time, for all visitors of a site.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Tokens of the first answers of keys, in bytes; an answer beyond is remembered without.
const FIRST_BYTES_MAX: usize = 32 << 20;
/// The requests among which an address is counted.
const ADDRESSES: usize = 128;
/// With fewer requests, nothing is known about their addresses.
const ADDRESSES_MIN: usize = 16;

/// A request of a visitor, as it is needed to render its page again.
#[derive(Clone)]
pub struct TrialRequest {
    /// The target of the page.
    pub target: TargetUri,
    /// The target as the origin has received it.
    pub written: TargetUri,
    /// The key of the page.
    pub key: Vec<u8>,
    /// The header lines of the client.
    pub headers: Arc<HeaderMap>,
    /// The HTTP version of the request.
    pub version: Version,
    /// The client that got the answer.
    pub client: Client,
    /// The plan of the request.
    pub plan: Plan,
}

/// The content of an answer, beside the page that would have been sent.
pub enum VisitorContent {
    /// The same bytes as the page's.
    OfPage,
    /// These bytes, decoded.
    Other(Vec<u8>),
    /// It differs from the page, and is too long to be kept.
    TooLong,
    /// It was not kept, or is in an unknown coding.
    Unknown,
}

/// The answer that a visitor got from the origin.
pub struct VisitorAnswer {
    /// The request of the visitor.
    pub request: TrialRequest,
    /// The fresh page that would have been sent.
    pub page: Option<SharedPage>,
    /// The status of the answer.
    pub status: StatusCode,
    /// The header lines of the answer, as the origin has sent them.
    pub headers: HeaderMap,
    /// The content, as far as it is needed.
    pub content: VisitorContent,
    /// When its request was sent, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The time that the origin worked for it.
    pub took: Duration,
    _kept: AccountedBytes,
}

/// Turns the record of the trial on or off, as the configuration of the site says.
pub fn follow(site: &Site) {
    let Some(trial) = &site.config.trial else { return site.trial.end() };
    let settings = TrialSettings {
        rules: site.config.print as u64,
        file: site.config.records.as_ref().map(|files| files.trial.clone()),
        accepted: trial.accepted.clone(),
        serve: trial.serve,
    };
    site.trial.begin(settings, site.clock.now().0 / 1_000);
}

/// The answers of a site that are to be compared, and the addresses of its last requests.
pub struct TrialQueue {
    sender: mpsc::Sender<VisitorAnswer>,
    receiver: Mutex<Option<mpsc::Receiver<VisitorAnswer>>>,
    /// The content of answers that is kept now.
    kept: Arc<ByteAccount>,
    /// The tokens of the first answers of keys, which the crate `audit` keeps.
    pub first_answers: Arc<ByteAccount>,
    /// Hashes of the addresses of the last requests.
    addresses: Mutex<VecDeque<u64>>,
    /// The hash of the address that has made more than half of them, until it makes less than two fifths; else 0.
    most_frequent: AtomicU64,
    hasher: RandomState,
}

impl Default for TrialQueue {
    fn default() -> TrialQueue {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        TrialQueue {
            sender,
            receiver: Mutex::new(Some(receiver)),
            kept: ByteAccount::new(KEPT_BYTES_MAX),
            first_answers: ByteAccount::new(FIRST_BYTES_MAX),
            addresses: Mutex::default(),
            most_frequent: AtomicU64::new(0),
            hasher: RandomState::new(),
        }
    }
}

impl TrialQueue {
    /// The answers to compare, for the one task that compares them.
    pub fn receive(&self) -> Option<mpsc::Receiver<VisitorAnswer>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The bytes of answers that are kept now.
    pub fn kept_bytes(&self) -> usize {
        self.kept.used() + self.first_answers.used()
    }

    /// Notes the address of a request.
    pub fn note_address(&self, address: Option<IpAddr>) {
        let hash = self.hasher.hash_one(address.map(subscriber));
        let mut last = self.addresses();
        if last.len() >= ADDRESSES {
            last.pop_front();
        }
        last.push_back(hash);
    }

    /// Whether one address has made more than half of the last requests, or too few are known: a proxy in front that
    /// is not trusted would get all of the hits, or none. It ends below two fifths, so that the answers of a visitor do
    /// not change between hits and the origin's at each request.
    pub fn is_one_mostly(&self) -> bool {
        let last = self.addresses();
        if last.len() < ADDRESSES_MIN {
            return true;
        }
        // The only address that can have more than half (Boyer and Moore).
        let (mut candidate, mut votes) = (0, 0_usize);
        for address in &*last {
            match votes {
                0 => (candidate, votes) = (*address, 1),
                _ if candidate == *address => votes += 1,
                _ => votes -= 1,
            }
        }
        let count_of = |wanted: u64| last.iter().filter(|address| **address == wanted).count();
        if count_of(candidate) * 2 > last.len() {
            self.most_frequent.store(candidate, Ordering::Relaxed);
            return true;
        }
        let before = self.most_frequent.load(Ordering::Relaxed);
        let is_still = before != 0 && count_of(before) * 5 >= last.len() * 2;
        if !is_still {
            self.most_frequent.store(0, Ordering::Relaxed);
        }
        is_still
    }

    fn addresses(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nobody gets hits although `trial.serve` says so: one address makes most of the requests, or few are known.
pub fn is_share_refused(site: &Site) -> bool {
    let has_share = site.config.trial.as_ref().is_some_and(|trial| trial.serve > 0);
    has_share && site.trial_queue.is_one_mostly()
}

/// Whether the client gets the origin's answers only. Otherwise its requests are answered as without a trial.
pub fn is_in_trial(site: &Site, client: &Client) -> bool {
    let Some(trial) = &site.config.trial else { return false };
    let is_of_share = |address| site.trial.share_of(address) < trial.serve;
    let is_served = trial.serve > 0
        && client.address().is_some_and(is_of_share)
        && !site.trial_queue.is_one_mostly();
    !is_served
}

/// Notes that a visitor got a failure of the origin. `is_compared`: a page would have been sent instead, which has no verdict.
pub fn note_failure(site: &Site, page: &str, is_compared: bool) {
    if !site.trial.is_on() {
        return;
    }
    site.trial.notice(TrialNotice::OriginFailing, true);
    if is_compared {
        site.trial.unjudged(page, UnjudgedReason::RenderFailed, false);
    }
}

/// The content as far as it is known.
enum ContentSoFar {
    /// So many bytes are those of the page.
    OfPage(usize),
    /// So many bytes are those of the page; these follow.
    Other(usize, Vec<u8>),
    TooLong,
    Unknown,
}

/// Sees the answer of the origin on its way to a visitor.
pub struct AnswerWatch {
    site: Arc<Site>,
    request: TrialRequest,
    is_get: bool,
    /// Whether it would have been a hit.
    is_hit: bool,
    page: Option<SharedPage>,
    /// Set with the first piece of the answer, when its header section is on its way to the visitor: the content, or
    /// none if the account is full.
    content_of_page: Option<Option<Bytes>>,
    spent: Spent,
    begun_ms: u64,
    head: Option<(StatusCode, HeaderMap)>,
    /// The bytes of content that have not come yet, if their number is known.
    left: Option<u64>,
    so_far: ContentSoFar,
    kept: AccountedBytes,
}

impl AnswerWatch {
    /// Begins before the request is sent. `page` is the fresh page that would have been sent.
    pub fn new(
        site: &Arc<Site>,
        (request, is_get): (TrialRequest, bool),
        (is_hit, page): (bool, Option<SharedPage>),
    ) -> Box<AnswerWatch> {
        Box::new(AnswerWatch {
            is_get,
            content_of_page: None,
            spent: request.client.extras.spent.clone().unwrap_or_default(),
            begun_ms: site.clock.now().0,
            kept: AccountedBytes::of(&site.trial_queue.kept),
            so_far: ContentSoFar::OfPage(0),
            head: None,
            left: None,
            site: site.clone(),
            request,
            is_hit,
            page,
        })
    }

    /// Takes the header section of the answer.
    pub fn head(&mut self, response: &OriginResponse) {
        let length = response.headers.get(header::CONTENT_LENGTH);
        self.left = length.and_then(|length| length.to_str().ok()?.parse().ok());
        self.head = Some((response.status, response.headers.clone()));
        if !self.is_get {
            self.so_far = ContentSoFar::Unknown;
        }
    }

    /// Takes a piece of the content.
    pub fn piece(&mut self, piece: &[u8]) {
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        if let ContentSoFar::OfPage(equal) = self.so_far {
            let (page, kept) = (self.page.as_ref(), &mut self.kept);
            let content = self.content_of_page.get_or_insert_with(|| content_of(page, kept));
            let Some(content) = content else {
                self.so_far = ContentSoFar::Unknown;
                self.content_of_page = None;
                self.kept.shrink_to(0);
                return;
            };
            let rest = &content[equal..];
            let same = rest.iter().zip(piece).take_while(|(a, b)| a == b).count();
            let equal = equal + same;
            self.so_far = ContentSoFar::OfPage(equal);
            if same < piece.len() {
                self.so_far = ContentSoFar::Other(equal, Vec::new());
                self.keep(&piece[same..]);
            }
        } else {
            self.keep(piece);
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let ContentSoFar::Other(equal, rest) = &mut self.so_far else { return };
        let is_short = *equal + rest.len() + piece.len() <= MAX_COMPARED_BYTES;
        if is_short && self.kept.grow(piece.len()) {
            rest.extend_from_slice(piece);
            return;
        }
        self.so_far = if is_short { ContentSoFar::Unknown } else { ContentSoFar::TooLong };
        self.content_of_page = None;
        self.kept.shrink_to(0);
    }

    /// The client has left. It may have all of the answer: then its connection is faster than the signal of the end.
    pub fn client_gone(self: Box<Self>) {
        if self.left == Some(0) {
            self.end();
        }
    }

    /// The answer is complete: it is counted, and may be compared.
    pub fn end(self: Box<Self>) {
        let AnswerWatch { site, request, is_get, is_hit, page, mut kept, spent, begun_ms, .. } =
            *self;
        let (head, so_far, known) = (self.head, self.so_far, self.content_of_page);
        let took = Duration::from_micros(spent.micros().unwrap_or_default());
        site.trial.request(is_hit.then_some(took));
        let is_compared = |(status, _): &(StatusCode, HeaderMap)| is_get && is_compared(*status);
        let Some((status, headers)) = head.filter(is_compared) else {
            return;
        };
        // Without a piece, no byte of it was compared.
        let content_of_page = known.flatten().unwrap_or_default();
        let content = match so_far {
            ContentSoFar::OfPage(equal)
                if page.as_ref().is_some_and(|page| page.length() == equal) =>
            {
                VisitorContent::OfPage
            }
            // The beginning of the page is copied.
            ContentSoFar::OfPage(equal) | ContentSoFar::Other(equal, _) if !kept.grow(equal) => {
                VisitorContent::Unknown
            }
            ContentSoFar::OfPage(equal) => {
                decoded(&headers, content_of_page[..equal].to_vec(), &mut kept)
            }
            ContentSoFar::Other(equal, mut rest) => {
                rest.splice(..0, content_of_page[..equal].iter().copied());
                decoded(&headers, rest, &mut kept)
            }
            ContentSoFar::TooLong if !headers.contains_key(header::CONTENT_ENCODING) => {
                VisitorContent::TooLong
            }
            ContentSoFar::TooLong | ContentSoFar::Unknown => VisitorContent::Unknown,
        };
        drop(content_of_page);
        kept.shrink_to(match &content {
            VisitorContent::Other(content) => content.len(),
            VisitorContent::OfPage | VisitorContent::TooLong | VisitorContent::Unknown => 0,
        });
        let queue = site.trial_queue.clone();
        // Full: other answers are compared instead.
        let _ = queue.sender.try_send(VisitorAnswer {
            request,
            page,
            status,
            headers,
            content,
            begun_ms,
            took,
            _kept: kept,
        });
    }
}

/// The content of a page, nothing without a page; none if the account is full. A page that is stored compressed is
/// decompressed, so all content counts.
fn content_of(page: Option<&SharedPage>, kept: &mut AccountedBytes) -> Option<Bytes> {
    let Some(page) = page else { return Some(Bytes::new()) };
    let length = page.length();
    kept.grow(length).then(|| page.content())
}

/// Whether an answer with this status can be compared with a page: it is whole, and the origin has not failed. A limit
/// (RFC 6585 section 4) is about the other requests of its visitor.
fn is_compared(status: StatusCode) -> bool {
    !status.is_server_error()
        && !matches!(
            status,
            StatusCode::PARTIAL_CONTENT
                | StatusCode::NOT_MODIFIED
                | StatusCode::RANGE_NOT_SATISFIABLE
                | StatusCode::PRECONDITION_FAILED
                | StatusCode::TOO_MANY_REQUESTS
        )
}

/// Decodes content that the origin has compressed; unknown if there is no room for the result.
fn decoded(headers: &HeaderMap, content: Vec<u8>, kept: &mut AccountedBytes) -> VisitorContent {
    let coding = match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => return VisitorContent::Other(content),
        Some(b"gzip") => Coding::Gzip,
        Some(b"br") => Coding::Brotli,
        Some(b"zstd") => Coding::Zstd,
        Some(_) => return VisitorContent::Unknown,
    };
    let whole = content_decoding::whole(coding, &content, MAX_COMPARED_BYTES);
    match whole {
        Ok(mut whole) if kept.grow(whole.len()) => {
            whole.shrink_to_fit();
            VisitorContent::Other(whole)
        }
        _ => VisitorContent::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_makes_more_than_half_of_the_requests_is_found() {
        let queue = TrialQueue::default();
        let address = |n: u8| Some(IpAddr::from([192, 0, 2, n]));
        assert!(queue.is_one_mostly(), "nothing is known");
        (0..64).for_each(|n| queue.note_address(address(n)));
        assert!(!queue.is_one_mostly());
        (0..64).for_each(|_| queue.note_address(address(1)));
        assert!(queue.is_one_mostly(), "65 of 128");
        (0..8).for_each(|n| queue.note_address(address(n)));
        (0..64).for_each(|_| queue.note_address(address(1)));
        assert!(queue.is_one_mostly(), "the older ones are forgotten");
        assert_eq!(queue.addresses().len(), ADDRESSES);
        (0..70).for_each(|n| queue.note_address(address(n + 2)));
        assert!(queue.is_one_mostly(), "58 of 128 are more than two fifths");
        (0..10).for_each(|n| queue.note_address(address(n + 100)));
        assert!(!queue.is_one_mostly());
        (0..58).for_each(|_| queue.note_address(address(1)));
        assert!(!queue.is_one_mostly(), "58 of 128 again");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| subscriber(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
