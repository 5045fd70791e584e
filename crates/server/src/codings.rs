//! Content in codings: made once for a page or a file that is kept, off the path of a hit, and then sent
//! to everybody who accepts it; made while it is sent for what is not kept.
//!
//! | what | when | how |
//! |---|---|---|
//! | a page in the store | after it was stored, in its turn, one at a time | each configured coding, with care |
//! | a small file | likewise | likewise |
//! | a page for the one who asked, before its codings are made; a response that is not stored | while it is sent | gzip, quickly |
//!
//! Invariants: at most one set of compressor tables is in use for what is kept (16 MiB at most); what
//! waits holds no content (a page that goes meanwhile is freed); a form is kept only if it is smaller by
//! a tenth; nothing that is encoded already is encoded again. Which response may be coded, and in which
//! coding a request is answered, is decided in `http_cache::codings`.

mod make;
mod on_the_way;
mod understand;

pub use make::{make, make_for_file};
pub use on_the_way::{OnTheWay, on_the_way};
pub use understand::{Understanding, may_be_understood, whole};

use crate::page::{Plain, SharedPage, StoredPage};
use crate::site::Site;
use http_cache::codings::vary_on_accept_encoding;
use http_cache::{Forms, Stored};
use page_store::Page;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{Notify, watch};

/// Content longer than this is kept in its codings only: few ask for it in none.
pub const PLAIN_BYTES: usize = 64 << 10;
/// Content longer than this is kept as it came, too: to undo its coding would take too long.
const UNDONE_BYTES: usize = 4 << 20;

/// Something whose codings are to be made: without holding on to it.
pub enum Work {
    /// A page.
    Page(Weak<Page<StoredPage>>),
    /// The file at this path.
    File(PathBuf),
}

/// What waits for its codings.
pub struct Queue {
    /// Guards the list only; never held while anything is compressed.
    waiting: Mutex<VecDeque<Work>>,
    told: Notify,
    most: usize,
}

impl Queue {
    /// An empty queue with so many places.
    pub fn new(most: usize) -> Queue {
        Queue { waiting: Mutex::default(), told: Notify::new(), most }
    }

    /// Puts `work` in, unless there is no place.
    fn put(&self, work: Work) -> Queued {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.most {
            return Queued::Full;
        }
        waiting.push_back(work);
        drop(waiting);
        self.told.notify_one();
        Queued::Waits
    }

    fn take(&self) -> Option<Work> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Whether there was a place in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queued {
    Waits,
    Full,
}

/// Notes in a response that is about to be stored with `length` bytes of content whether it will be
/// sent in codings: then its `Vary` says so from the first time it is sent.
pub fn prepare(site: &Site, stored: &mut Stored, length: usize) {
    let codings = &site.config.codings;
    let may = codings.codable.check(stored.status, &stored.headers, Some(length as u64));
    stored.forms = match may {
        Ok(()) if codings.are_made() => Forms::ByCoding,
        _ => Forms::One,
    };
    if stored.forms == Forms::ByCoding {
        vary_on_accept_encoding(&mut stored.headers);
    }
}

/// Has the codings of a page made that was just stored, if it is to be sent in any and has none yet.
pub fn have_made(site: &Site, page: &SharedPage) {
    let payload = page.payload();
    if payload.stored.forms == Forms::ByCoding && payload.forms.codings().is_empty() {
        note(site, Work::Page(Arc::downgrade(page)));
    }
}

/// Puts `work` in the queue, if there is room.
pub fn note(site: &Site, work: Work) {
    if site.coding_queue.put(work) == Queued::Full {
        site.counters.codings_skipped.add();
    }
}

/// Makes codings, one page after the other, until Pagewell stops.
pub async fn run(site: Arc<Site>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = site.coding_queue.told.notified() => {}
        }
        while let Some(work) = site.coding_queue.take() {
            let site = site.clone();
            let made = tokio::task::spawn_blocking(move || match work {
                Work::Page(page) => {
                    page.upgrade().into_iter().for_each(|page| code_page(&site, &page))
                }
                Work::File(path) => code_file(&site, &path),
            });
            // A panic has been logged; the page stays as it is.
            let _ = made.await;
            if *stop.borrow() {
                return;
            }
        }
    }
}

fn code_file(site: &Site, path: &Path) {
    let Some((_, files)) = &site.files else { return };
    if let Err(error) = files.code(site, path) {
        tracing::debug!(event = "not-coded", reason = "file", path = %path.display(), %error);
    }
}

fn code_page(site: &Site, page: &SharedPage) {
    let payload = page.payload();
    let content = payload.content();
    let coded = make(&content, &site.config.codings.make);
    if coded.is_empty() {
        return;
    }
    let coded = as_kept(StoredPage::with_forms(payload.response(), content, coded));
    match site.store.replace_payload(page, coded) {
        Ok(_) => site.counters.coded.add(),
        // It was dropped, or rendered anew, or is about to be.
        Err(reason) => tracing::debug!(event = "not-coded", reason = reason.as_str()),
    }
}

/// Keeps the content of a long page as it came, too, now that somebody has asked for it so: where a
/// quarter of the memory is left for it. Otherwise each who asks has it made again out of a coding.
pub fn keep_plain(site: &Site, page: &SharedPage) {
    let payload = page.payload();
    let Plain::InCodings(length) = payload.plain else { return };
    let memory = site.config.memory_bytes;
    if site.store.stats().bytes.total() + length > memory - memory / 4 {
        return;
    }
    let plain = Plain::Kept(payload.content());
    let both = StoredPage::restored(payload.response(), plain, payload.forms.contents());
    if let Err(reason) = site.store.replace_payload(page, both) {
        tracing::debug!(event = "plain-not-kept", reason = reason.as_str());
    }
}

/// A page as it is kept: where it is long and has codings, they are enough.
pub fn as_kept(page: StoredPage) -> StoredPage {
    match page.plain.length() {
        bytes if bytes <= PLAIN_BYTES || bytes > UNDONE_BYTES => page,
        _ => page.without_plain(),
    }
}
