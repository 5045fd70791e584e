//! What a site remembers to explain itself: how the last renders of a page ended, what dropped it, who
//! changed what, and what happens so often that somebody should look at it.
//!
//! Invariants: nothing here decides anything; all of it is told after it has happened. Everything is
//! bounded: [`memory`] by pages, [`changes`] by changes, [`offenders`] by entries, every text by
//! [`shown::TEXT_BYTES`]. No value of a cookie comes in here, and no value in a query; private copies
//! are left out altogether. A hit tells nothing (it is counted by its page, `page_store::Page::serve`).
//!
//! Lock: one, for all of it; nothing else is locked under it, and it is taken under no other.

pub mod cause;
pub mod changes;
pub mod memory;
pub mod offenders;
pub mod remedies;
pub mod shown;
mod telling;

pub use cause::Cause;
pub use changes::{Change, Named};
pub use memory::{Entry, LastDrop, LastRender};
pub use offenders::Offenders;
pub use telling::Telling;

use crate::page::SharedPage;
use crate::target::Target;
use changes::Changes;
use memory::{Comparison, Memory};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A site's memory of what happened.
pub struct Why {
    inner: Mutex<Inner>,
    /// When it began to remember, in milliseconds since 1970.
    pub since_ms: u64,
}

struct Inner {
    memory: Memory,
    changes: Changes,
    offenders: Offenders,
    /// Scheme and host of the last render.
    last_host: Option<(&'static str, Box<str>)>,
}

/// How a render ended, for everybody's page.
pub struct Rendered<'a> {
    /// The key it was asked by.
    pub key: &'a [u8],
    /// What was asked for.
    pub target: &'a Target,
    /// When the origin was asked, and when it ended, in milliseconds since 1970.
    pub times: (u64, u64),
    /// The response's status; none where there was no response.
    pub status: Option<u16>,
    /// The names of the cookies that the response sets.
    pub cookies: Vec<Box<str>>,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether nothing was in memory for the address.
    pub is_new: bool,
}

/// What came of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was stored.
    Stored(Content),
    /// It was not, for this reason.
    NotStored(&'static str),
}

/// What a page's content is told from another by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Which variant of its key it is.
    pub variant: u32,
    /// The content's hash.
    pub hash: u64,
}

impl Why {
    /// An empty memory, for a site whose pages may take so much.
    pub fn new(memory_bytes: usize, now_ms: u64) -> Why {
        let inner = Inner {
            memory: Memory::new(memory::entries_for(memory_bytes)),
            changes: Changes::default(),
            offenders: Offenders::default(),
            last_host: None,
        };
        Why { inner: Mutex::new(inner), since_ms: now_ms }
    }

    /// Takes in how a render ended.
    pub fn rendered(&self, rendered: Rendered<'_>) {
        let url = shown::masked(&rendered.target.uri());
        let mut inner = self.lock();
        let (scheme, host) = (rendered.target.scheme, &rendered.target.host);
        if inner.last_host.as_ref().is_none_or(|last| last.0 != scheme || *last.1 != **host) {
            inner.last_host = Some((scheme, shown::cut(host)));
        }
        inner.offenders.rendered(&rendered, &url);
        match inner.memory.rendered(rendered) {
            Comparison::None => {}
            compared => inner.offenders.compared(compared, &url),
        }
    }

    /// Takes in that a request was passed on for this reason, and by which cookies.
    pub fn bypassed(&self, target: &Target, reason: &'static str, cookies: &[Box<str>]) {
        let url = shown::masked(&target.uri());
        self.lock().offenders.bypassed(reason, cookies, &url);
    }

    /// Takes in that a page was removed because of a later answer of the origin, with this number.
    pub fn superseded(&self, page: &SharedPage, number: u64, at_ms: u64, by: Cause) {
        let stored = &page.payload().stored;
        if stored.is_private() || page.payload().item().is_some() {
            return;
        }
        let dropped = LastDrop::of(number, at_ms, Arc::new(by));
        self.lock().memory.dropped(page.key().bytes(), page.variant(), dropped);
    }

    /// What is remembered of the page under a key.
    pub fn of_key(&self, key: &[u8]) -> Option<Entry> {
        self.lock().memory.get(key)
    }

    /// The last changes, the newest first.
    pub fn changes(&self) -> Vec<Arc<Change>> {
        self.lock().changes.newest_first()
    }

    /// The last change of this name, or of everything.
    pub fn last_change_of(&self, named: &Named) -> Option<Arc<Change>> {
        self.lock().changes.last_of(named)
    }

    /// What happens too often, as it stands now.
    pub fn offenders(&self) -> Offenders {
        self.lock().offenders.clone()
    }

    /// Scheme and host of the last render.
    pub fn last_host(&self) -> Option<(&'static str, Box<str>)> {
        self.lock().last_host.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
