//! The queue of cached pages and files that wait for compression. It keeps no content in memory: a page
//! that is purged in the meantime is skipped. Adding entries and compressing them is in `codings`.
//!
//! Lock: the list of entries; held to add or take one, never during compression.

use page_store::KeyBuf;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use stored_pages::page::SharedPage;
use tokio::sync::Notify;

/// Content longer than this, in bytes, is cached in compressed forms only, because few clients request
/// it uncompressed.
pub const PLAIN_BYTES: usize = 64 << 10;

/// A page or file to compress; it does not keep the content in memory.
pub enum Work {
    /// The page with this key and variant, whose turn has been taken.
    Page(KeyBuf, u32),
    /// The file at this path.
    File(PathBuf),
}

impl Work {
    /// The work for a stored page.
    pub(crate) fn page(page: &SharedPage) -> Work {
        Work::Page(page.key().to_buf(), page.variant())
    }
}

/// The queue of pages and files to compress.
pub struct Queue {
    /// Guards only the list; never held during compression.
    waiting: Mutex<VecDeque<Work>>,
    /// Notified when an entry is added.
    pub(crate) added: Notify,
    most: usize,
}

impl Queue {
    /// An empty queue that holds at most `most` entries.
    pub fn new(most: usize) -> Queue {
        Queue { waiting: Mutex::default(), added: Notify::new(), most }
    }

    /// Appends `work`, unless the queue is full. Returns whether it was appended.
    pub(crate) fn put(&self, work: Work) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.most {
            return false;
        }
        waiting.push_back(work);
        drop(waiting);
        self.added.notify_one();
        true
    }

    /// Takes the oldest entry.
    pub(crate) fn take(&self) -> Option<Work> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
