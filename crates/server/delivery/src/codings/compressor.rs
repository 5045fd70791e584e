//! The thread that compresses cached pages: one for all sites, started on demand.
//!
//! | state of the thread | until |
//! |---|---|
//! | not started | there is a page to compress |
//! | compresses, one page at a time | the queue is empty |
//! | idle, with its memory still allocated | [`IDLE`] has passed |
//!
//! It runs at low priority and takes no lock that requests wait for. Pages are compressed in the order
//! of their arrival, so a site with many pages does not block one with few. The thread exits only
//! between two pages, so none is lost.

use bytes::Bytes;
use http_cache::codings::Coding;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;
use stored_pages::content_encoding::make;
use stored_pages::page::{ReadPage, SharedPage};
use tokio::sync::{Mutex, oneshot};

/// How long the thread stays idle before it exits. To start a thread costs less than to compress a
/// page.
pub const IDLE: Duration = Duration::from_secs(2);

/// The thread's "nice" value: it gets about a tenth of the CPU share of other threads. It is not the
/// maximum, because a thread that is preempted while it holds a lock, such as the allocator's, makes
/// others wait.
const BEHIND: i32 = 10;

/// The compressed forms of a page.
pub type CompressedForms = Vec<(Coding, Bytes)>;

/// A page to compress, and the channel for the result.
struct Job {
    page: SharedPage,
    codings: Vec<Coding>,
    done: oneshot::Sender<CompressedForms>,
}

/// Access to the compressing thread, for one page at a time.
#[derive(Default)]
pub struct Compressor {
    /// The channel to the thread, if it runs. The lock is held from the submission of a page to its
    /// result.
    thread: Mutex<Option<SyncSender<Job>>>,
    /// How many pages have been submitted.
    turns: AtomicU64,
}

impl Compressor {
    /// Compresses the page's content with each of `codings`, and returns the forms that are small
    /// enough. Empty if none is, or if the thread failed.
    pub async fn make(&self, page: SharedPage, codings: &[Coding]) -> CompressedForms {
        let mut thread = self.thread.lock().await;
        self.turns.fetch_add(1, Ordering::Relaxed);
        let (done, made) = oneshot::channel();
        let job = Job { page, codings: codings.to_vec(), done };
        if let Err(error) = hand_over(&mut thread, job) {
            tracing::error!(event = "codings-thread", %error);
        }
        // A panic in the thread gives no result; it has been logged.
        made.await.unwrap_or_default()
    }

    /// How many pages have been submitted since the start.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Makes the thread exit, unless pages have been submitted since `turns` was read.
    pub fn rest(&self, turns: u64) {
        if let Ok(mut thread) = self.thread.try_lock()
            && self.turns() == turns
        {
            *thread = None;
        }
    }
}

/// Sends a page to the thread. Starts the thread if it does not run, or has panicked.
fn hand_over(thread: &mut Option<SyncSender<Job>>, job: Job) -> io::Result<()> {
    let unsent = match thread {
        Some(jobs) => jobs.try_send(job),
        None => Err(TrySendError::Disconnected(job)),
    };
    // There is room, because the lock's owner waits for its result.
    let Err(TrySendError::Disconnected(job)) = unsent else { return Ok(()) };
    let (jobs, waiting) = sync_channel(1);
    thread::Builder::new().name("codings".into()).spawn(move || compress(&waiting))?;
    // The new thread is receiving.
    let _ = jobs.send(job);
    *thread = Some(jobs);
    Ok(())
}

/// Compresses the pages that are received, until the channel is closed.
fn compress(waiting: &Receiver<Job>) {
    // On Linux this applies to the calling thread only. If it is not permitted, the thread runs at
    // normal priority.
    let _ = rustix::process::setpriority_process(None, BEHIND);
    while let Ok(Job { page, codings, done }) = waiting.recv() {
        let content = page.content();
        let made = make(&content, &codings);
        // The submitter holds the page, too, so its memory is not freed by this thread.
        drop((content, page));
        let _ = done.send(made);
    }
}
