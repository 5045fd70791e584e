//! The thread that compresses pages of the store: one for all sites, and none while there is nothing to do.
//!
//! | the thread | until |
//! |---|---|
//! | is not there | a page is to be coded |
//! | compresses, one page at a time | all that wait have had their turn |
//! | waits, its memory ready for the next | none came for [`IDLE`] |
//!
//! It gives way to all others, and takes no lock that others wait for. Whose turn it is, is a queue in the
//! order of coming: sites that have much to do do not hold up those that have little. It ends between two
//! pages only, so none is lost.

use super::make;
use crate::page::{ReadPage, SharedPage};
use bytes::Bytes;
use http_cache::codings::Coding;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// After so long with nothing to do the thread ends: to start one costs less than a page does.
pub const IDLE: Duration = Duration::from_secs(2);

/// The priority ("nice") of those who compress: a tenth of what others get who want the processor at the same
/// time. Not the least there is: where a thread is stopped between two instructions that others have to wait
/// for, in the allocator say, they wait until it gets its turn.
const BEHIND: i32 = 10;

/// What was made of a page.
pub type Made = Vec<(Coding, Bytes)>;

/// A page to be compressed, and who waits for it.
struct Job {
    page: SharedPage,
    codings: Vec<Coding>,
    done: oneshot::Sender<Made>,
}

/// What compresses, one page at a time.
#[derive(Default)]
pub struct Compressor {
    /// The way to the thread, where there is one. Held by whose turn it is.
    thread: Mutex<Option<SyncSender<Job>>>,
    /// How many turns there were.
    turns: AtomicU64,
}

impl Compressor {
    /// The page's content in those of `codings` that are worth it; none where that cannot be done.
    pub async fn make(&self, page: SharedPage, codings: &[Coding]) -> Made {
        let mut thread = self.thread.lock().await;
        self.turns.fetch_add(1, Ordering::Relaxed);
        let (done, made) = oneshot::channel();
        let job = Job { page, codings: codings.to_vec(), done };
        if let Err(error) = hand_over(&mut thread, job) {
            tracing::error!(event = "codings-thread", %error);
        }
        // Of a panic nothing comes; it has been logged.
        made.await.unwrap_or_default()
    }

    /// How many turns there were.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Ends the thread, if nobody has had a turn since there were so many.
    pub fn rest(&self, turns: u64) {
        if let Ok(mut thread) = self.thread.try_lock()
            && self.turns() == turns
        {
            *thread = None;
        }
    }
}

/// Hands a page to the thread; starts one where there is none, or where it has ended in a panic.
fn hand_over(thread: &mut Option<SyncSender<Job>>, job: Job) -> io::Result<()> {
    let unsent = match thread {
        Some(jobs) => jobs.try_send(job),
        None => Err(TrySendError::Disconnected(job)),
    };
    // There is room: whoever has the turn waits for what becomes of it.
    let Err(TrySendError::Disconnected(job)) = unsent else { return Ok(()) };
    let (jobs, waiting) = sync_channel(1);
    thread::Builder::new().name("codings".into()).spawn(move || compress(&waiting))?;
    // It has just been started, and listens.
    let _ = jobs.send(job);
    *thread = Some(jobs);
    Ok(())
}

/// Compresses what comes, until nobody can send any more.
fn compress(waiting: &Receiver<Job>) {
    // Of this thread, on Linux. Where that is not allowed, it is done like anything else.
    let _ = rustix::process::setpriority_process(None, BEHIND);
    while let Ok(Job { page, codings, done }) = waiting.recv() {
        let content = page.content();
        let made = make(&content, &codings);
        // Whoever waits holds the page, too: it is not freed here.
        drop((content, page));
        let _ = done.send(made);
    }
}
