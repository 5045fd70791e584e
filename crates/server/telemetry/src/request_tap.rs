//! Shows requests to operators who watch them (`GET /v1/requests`), as far as each watcher's filter selects them.
//!
//! Without a watcher, a request costs one relaxed load ([`RequestTap::is_watched`]). With one, each answered request
//! is compared with the filters, and a selected one is copied into the watcher's buffer. A buffer has at most
//! [`ROOM`] requests between two reads of its watcher, and counts the others. So a watcher costs a bounded amount of
//! memory, and no request waits for it.
//!
//! Locks: the list of watchers, read for each request while there is one, and written when a watcher comes or goes;
//! under it the buffer of a watcher, for a push. Nothing else is locked under them.
//!
//! Not shown: header fields, addresses, contents, and traffic of the control interface.

use crate::access_log::Outcome;
use std::collections::VecDeque;
use std::mem::take;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The most requests in a buffer between two reads.
pub const ROOM: usize = 50;
/// The longest target that is shown, in bytes; longer ones are cut.
const TARGET_BYTES_MAX: usize = 1024;
/// The longest of the other values, in bytes.
const VALUE_BYTES_MAX: usize = 255;

/// A request and its response, before it is known whether anyone wants to see it.
pub struct TappedRequest<'a> {
    /// The time of the request, in milliseconds since 1970.
    pub at_ms: u64,
    /// The method of the request.
    pub method: &'a [u8],
    /// The host of the request; may be empty.
    pub host: &'a [u8],
    /// The path and the query of the request.
    pub target: &'a [u8],
    /// The status code of the response.
    pub status: u16,
    /// The cache result of the response.
    pub outcome: Outcome<'a>,
    /// The time until the response was complete, in microseconds; `None` for a plain hit, which is not timed.
    pub took_us: Option<u64>,
}

/// A request that a watcher has selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRequest {
    /// The time of the request, in milliseconds since 1970.
    pub at_ms: u64,
    /// The method of the request.
    pub method: String,
    /// The host of the request; may be empty.
    pub host: String,
    /// The path and the query, cut after 1024 bytes.
    pub target: String,
    /// The status code of the response.
    pub status: u16,
    /// The word for the cache result, as in the access log.
    pub outcome: &'static str,
    /// The reason for it; may be empty.
    pub detail: String,
    /// The time until the response was complete, in microseconds.
    pub took_us: Option<u64>,
}

/// The requests that a watcher wants to see. An empty filter selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// A part of the path and query.
    pub path: String,
    /// The status code, or its first digit.
    pub status: Option<u16>,
    /// The word for the cache result.
    pub outcome: String,
}

impl RequestFilter {
    fn selects(&self, request: &TappedRequest<'_>) -> bool {
        let status = self.status.is_none_or(|wanted| match wanted {
            class @ 1..=9 => request.status / 100 == class,
            code => request.status == code,
        });
        status
            && (self.outcome.is_empty() || self.outcome == request.outcome.word)
            && (self.path.is_empty()
                || memchr::memmem::find(path_of(request.target), self.path.as_bytes()).is_some())
    }
}

/// The path of a target: values of a query may be secret, so no filter compares them.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// The watchers of the requests.
#[derive(Default)]
pub struct RequestTap {
    count: AtomicUsize,
    watchers: RwLock<Vec<Arc<WatchedRequests>>>,
}

#[derive(Default)]
struct WatchedRequests {
    filter: RequestFilter,
    buffer: Mutex<WatchBuffer>,
}

#[derive(Default)]
struct WatchBuffer {
    requests: VecDeque<ShownRequest>,
    omitted: u64,
}

impl WatchedRequests {
    fn buffer(&self) -> MutexGuard<'_, WatchBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestTap {
    /// Whether any operator watches the requests.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Begins to collect the requests that the filter selects.
    pub fn watch(self: &Arc<RequestTap>, filter: RequestFilter) -> RequestWatch {
        let watched = Arc::new(WatchedRequests { filter, ..WatchedRequests::default() });
        let mut watchers = self.watchers.write().unwrap_or_else(PoisonError::into_inner);
        watchers.push(watched.clone());
        self.count.store(watchers.len(), Ordering::Relaxed);
        drop(watchers);
        RequestWatch { tap: self.clone(), watched }
    }

    /// Shows a request to the watchers that have selected it.
    #[cold]
    pub fn show(&self, request: &TappedRequest<'_>) {
        let watchers = self.watchers.read().unwrap_or_else(PoisonError::into_inner);
        for watched in watchers.iter().filter(|one| one.filter.selects(request)) {
            let mut buffer = watched.buffer();
            if buffer.requests.len() < ROOM {
                buffer.requests.push_back(shown(request));
            } else {
                buffer.omitted += 1;
            }
        }
    }
}

/// A watch, until it is dropped.
pub struct RequestWatch {
    tap: Arc<RequestTap>,
    watched: Arc<WatchedRequests>,
}

impl RequestWatch {
    /// Takes the requests since the last call, oldest first, and the number of those that had no room.
    pub fn take(&self) -> (VecDeque<ShownRequest>, u64) {
        let mut buffer = self.watched.buffer();
        (take(&mut buffer.requests), take(&mut buffer.omitted))
    }
}

impl Drop for RequestWatch {
    fn drop(&mut self) {
        let mut watchers = self.tap.watchers.write().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|one| !Arc::ptr_eq(one, &self.watched));
        self.tap.count.store(watchers.len(), Ordering::Relaxed);
    }
}

fn shown(request: &TappedRequest<'_>) -> ShownRequest {
    let text = |bytes: &[u8], most: usize| {
        String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned()
    };
    ShownRequest {
        at_ms: request.at_ms,
        method: text(request.method, VALUE_BYTES_MAX),
        host: text(request.host, VALUE_BYTES_MAX),
        target: text(request.target, TARGET_BYTES_MAX),
        status: request.status,
        outcome: request.outcome.word,
        detail: text(request.outcome.detail, VALUE_BYTES_MAX),
        took_us: request.took_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(target: &'a str, status: u16, word: &'static str) -> TappedRequest<'a> {
        TappedRequest {
            at_ms: 1,
            method: b"GET",
            host: b"a.test",
            target: target.as_bytes(),
            status,
            outcome: Outcome { word, detail: b"" },
            took_us: None,
        }
    }

    #[test]
    fn a_watch_sees_what_its_filter_selects() {
        let tap = Arc::new(RequestTap::default());
        assert!(!tap.is_watched());
        let filter = |path: &str, status, outcome: &str| RequestFilter {
            path: path.into(),
            status,
            outcome: outcome.into(),
        };
        let cases = [
            (filter("", None, ""), 4),
            (filter("/news/", None, ""), 2),
            (filter("", Some(4), ""), 1),
            (filter("", Some(200), ""), 2),
            (filter("", None, "hit"), 2),
            (filter("/news/", Some(2), "hit"), 1),
        ];
        let watches: Vec<_> = cases.iter().map(|(filter, _)| tap.watch(filter.clone())).collect();
        assert!(tap.is_watched());
        tap.show(&request("/news/1", 200, "hit"));
        tap.show(&request("/news/2", 404, "miss"));
        tap.show(&request("/", 200, "hit"));
        tap.show(&request("/", 302, "bypass"));
        for (watch, (filter, many)) in watches.iter().zip(&cases) {
            assert_eq!(watch.take().0.len(), *many, "{filter:?}");
            assert_eq!(watch.take(), (VecDeque::new(), 0), "each is read once");
        }
        drop(watches);
        assert!(!tap.is_watched());
    }

    #[test]
    fn a_buffer_is_bounded_and_counts_the_rest() {
        let tap = Arc::new(RequestTap::default());
        let watch = tap.watch(RequestFilter::default());
        let long = format!("/{}", "é".repeat(TARGET_BYTES_MAX));
        (0..ROOM + 7).for_each(|_| tap.show(&request(&long, 200, "hit")));
        let (requests, omitted) = watch.take();
        assert_eq!((requests.len(), omitted), (ROOM, 7));
        assert!(requests.iter().all(|one| one.target.len() <= TARGET_BYTES_MAX + 2));
        tap.show(&request("/", 200, "hit"));
        assert_eq!(watch.take().0.len(), 1, "there is room again");
    }
}
