//! The history that a site records to explain itself. It covers how the last renders of a page
//! ended, what purged it, the sources of changes, and the top causes of misses.
//!
//! Invariants: nothing here affects a decision, and everything is recorded after it happened. All
//! of it is bounded: [`memory`] by pages, [`changes`] by changes, [`misses`] by entries, every
//! text by [`shown::TEXT_BYTES`]. Values of cookies and of query parameters are never recorded, and
//! private copies are left out. A hit records nothing (its page counts it,
//! `page_store::Page::serve`).
//!
//! Lock: one, for all of it. No other lock is taken under it. It may be taken under the lock of a
//! database's gate and under a stripe of the memcached port, which are held during a change.

pub mod cause;
mod change_recorder;
pub mod changes;
pub mod memory;
pub mod misses;
pub mod refusals;
pub mod shown;

pub use cause::ChangeSource;
pub use change_recorder::ChangeRecorder;
pub use changes::{Change, ChangeName};
pub use memory::{Entry, LastDrop, LastRender};
pub use misses::MissCauses;

use changes::Changes;
use memory::{Comparison, Memory};
use reasons::Reason;
use request_values::target::TargetUri;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stored_pages::page::SharedPage;

/// The recorded history of a site.
pub struct History {
    inner: Mutex<Inner>,
    /// When recording began, in milliseconds since 1970.
    pub since_ms: u64,
}

struct Inner {
    memory: Memory,
    changes: Changes,
    misses: MissCauses,
    /// Scheme and host of the last render.
    last_host: Option<(&'static str, Box<str>)>,
    /// Whether all renders had that scheme and host.
    hosts: RenderedHosts,
}

/// How many hosts the renders had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderedHosts {
    /// There was no render yet.
    #[default]
    None,
    /// All had the same scheme and host.
    One,
    /// There were several.
    Several,
}

/// How a render of a shared page ended.
pub struct RenderRecord<'a> {
    /// The key of the request.
    pub key: &'a [u8],
    /// The URL of the request.
    pub target: &'a TargetUri,
    /// When the request was sent to the origin and when the render ended, in milliseconds since
    /// 1970.
    pub times: (u64, u64),
    /// The status code of the response; `None` if there was no response.
    pub status: Option<u16>,
    /// The names of the cookies that the response sets.
    pub cookies: Vec<Box<str>>,
    /// Whether it was stored, and the reason if not.
    pub outcome: StoreOutcome,
    /// The application's code for its own reason not to offer the response (`X-Pagewell-Refusal`).
    pub refusal: Option<Box<str>>,
    /// The names of the cookies of the request on which a response that was not stored may depend.
    pub visitor_cookies: Vec<Box<str>>,
    /// Whether no page was stored for the URL before.
    pub is_new: bool,
}

/// The result of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The response was stored as a page.
    Stored(Content),
    /// The response was not stored, for this reason.
    NotStored(Reason),
}

/// Identifies the content of a page, to compare it with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The variant under its key.
    pub variant: u32,
    /// The hash of the content.
    pub hash: u64,
}

/// The record of a response that is not stored, while its content is sent.
pub struct UnstoredRecord {
    history: Arc<History>,
    key: Vec<u8>,
    at_ms: u64,
}

impl UnstoredRecord {
    /// Creates it for a response to the request with this key, recorded at this time.
    pub fn new(history: Arc<History>, key: Vec<u8>, at_ms: u64) -> UnstoredRecord {
        UnstoredRecord { history, key, at_ms }
    }

    /// Corrects the reason, because the true one has become known from the content. The record of a
    /// later render stays as it is.
    pub fn correct(self, reason: Reason) {
        self.history.lock().memory.correct_reason(&self.key, self.at_ms, reason);
    }
}

impl History {
    /// Creates an empty history, for a site with this much memory for pages.
    pub fn new(memory_bytes: usize, now_ms: u64) -> History {
        let inner = Inner {
            memory: Memory::new(memory::entries_for(memory_bytes)),
            changes: Changes::default(),
            misses: MissCauses::default(),
            last_host: None,
            hosts: RenderedHosts::None,
        };
        History { inner: Mutex::new(inner), since_ms: now_ms }
    }

    /// Records how a render ended.
    pub fn rendered(&self, rendered: RenderRecord<'_>) {
        let url = shown::masked(&rendered.target.uri());
        let mut inner = self.lock();
        let (scheme, host) = (rendered.target.scheme, &rendered.target.host);
        if inner.last_host.as_ref().is_none_or(|last| last.0 != scheme || *last.1 != **host) {
            inner.hosts = match inner.hosts {
                RenderedHosts::None => RenderedHosts::One,
                RenderedHosts::One | RenderedHosts::Several => RenderedHosts::Several,
            };
            inner.last_host = Some((scheme, shown::cut(host)));
        }
        inner.misses.rendered(&rendered, &url);
        match inner.memory.rendered(rendered) {
            Comparison::None => {}
            compared => inner.misses.compared(&compared, &url),
        }
    }

    /// Records a bypassed request with its reason, and the cookies that caused it.
    pub fn bypassed(&self, target: &TargetUri, reason: Reason, cookies: &[Box<str>]) {
        let url = shown::masked(&target.uri());
        self.lock().misses.bypassed(reason, cookies, &url);
    }

    /// Records that a later response of the origin, with this number, has removed a page.
    pub fn superseded(&self, page: &SharedPage, number: u64, at_ms: u64, by: ChangeSource) {
        let stored = &page.payload().stored;
        if stored.is_private() || page.payload().item().is_some() {
            return;
        }
        let dropped = LastDrop::of(number, at_ms, Arc::new(by));
        self.lock().memory.dropped(page.key().bytes(), page.variant(), dropped);
    }

    /// Returns the history of the page under a key.
    pub fn of_key(&self, key: &[u8]) -> Option<Entry> {
        self.lock().memory.get(key)
    }

    /// Returns the last changes, newest first.
    pub fn changes(&self) -> Vec<Arc<Change>> {
        self.lock().changes.newest_first()
    }

    /// Returns the last change of this name, or of every page.
    pub fn last_change_of(&self, named: &ChangeName) -> Option<Arc<Change>> {
        self.lock().changes.last_of(named)
    }

    /// Returns a copy of the top causes of misses.
    pub fn miss_causes(&self) -> MissCauses {
        self.lock().misses.clone()
    }

    /// Returns scheme and host of the last render.
    pub fn last_host(&self) -> Option<(&'static str, Box<str>)> {
        self.lock().last_host.clone()
    }

    /// Returns how many hosts the renders had.
    pub fn hosts(&self) -> RenderedHosts {
        self.lock().hosts
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
