//! The access log: one line per response. A thread of its own writes the lines to their destination.
//!
//! The thread that sent a response formats the line into the buffer of its shard, which is already
//! allocated. The shard's lock is held only briefly: to add a line, or to give the buffer to the
//! writer. So a request never waits for a disk. A line that does not fit is dropped and counted
//! (`access_log_dropped`). The writer sleeps until a shard has a line, waits briefly for more, and
//! writes them with one call.
//!
//! Locks: one per shard. It is held to add a line or to replace a full buffer by an empty one. All
//! buffers together never exceed the configured size (see [`LINE_BYTES_MAX`]).
//!
//! Not logged: the control interface, the memcached port, and traffic after a protocol upgrade.

mod writer;

pub use access_log_format::{
    BUFFER_BYTES_MIN, ClientText, FILE, Format, HIT, LINE_BYTES_MAX, Line, Masks, Outcome,
    Unreadable, outcome,
};
pub use writer::{Sink, Writing, start};

use access_log_format::{SHARD_BYTES_MIN, Stamp};
use config::AccessLog as Chosen;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// The access log of one default site: its format, and the buffers that wait for the writer.
pub struct AccessLog {
    format: Format,
    shards: Vec<Mutex<Shard>>,
    /// Size of one buffer, in bytes.
    shard_bytes: usize,
    /// The writer's thread, once it has been started.
    writer: OnceLock<Thread>,
    orders: Orders,
}

/// Requests to the writer's thread.
#[derive(Default)]
struct Orders {
    /// A buffer is more than half full: write now.
    hurry: AtomicBool,
    /// Reopen the file, for log rotation.
    reopen: AtomicBool,
    /// Write all buffered lines, then exit.
    end: AtomicBool,
}

/// The buffer that several threads share.
struct Shard {
    text: Vec<u8>,
    stamp: Stamp,
}

impl AccessLog {
    /// Creates the log with empty buffers. Nothing is written to the destination before [`start`].
    pub fn new(chosen: &Chosen) -> AccessLog {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // The writer always holds one more buffer.
        let most = (chosen.buffer_bytes / SHARD_BYTES_MIN).saturating_sub(1).max(1);
        let count = cores.min(most);
        let shard_bytes = chosen.buffer_bytes / (count + 1);
        // The system allocates memory only for pages that have been written to.
        let shard = || Shard { text: Vec::with_capacity(shard_bytes), stamp: Stamp::default() };
        AccessLog {
            format: chosen.format.clone(),
            shards: (0..count).map(|_| Mutex::new(shard())).collect(),
            shard_bytes,
            writer: OnceLock::new(),
            orders: Orders::default(),
        }
    }

    /// The format of the lines.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Formats `line` into the buffer of the calling thread's shard, without allocating memory. Only a
    /// shard's lock can delay the caller, for as long as another thread adds a line. Returns false if the buffer
    /// was full: the line is lost.
    #[must_use]
    pub fn write(&self, line: &Line<'_>) -> bool {
        let mut shard = lock(&self.shards[shard_of_thread() % self.shards.len()]);
        let before = shard.text.len();
        if self.shard_bytes - before < LINE_BYTES_MAX {
            return false;
        }
        let Shard { text, stamp } = &mut *shard;
        stamp.set(line.time);
        self.format.write(line, stamp, text);
        let after = text.len();
        drop(shard);
        if before == 0 || after > self.shard_bytes / 2 {
            self.wake(before == 0, after > self.shard_bytes / 2);
        }
        true
    }

    #[cold]
    fn wake(&self, is_first: bool, is_filling: bool) {
        if is_filling {
            self.orders.hurry.store(true, Ordering::Release);
        }
        if let (true, Some(writer)) = (is_first, self.writer.get()) {
            writer.unpark();
        }
    }

    /// Makes the writer reopen the file, after log rotation has renamed the open one.
    pub fn reopen(&self) {
        self.order(&self.orders.reopen);
    }

    fn end(&self) {
        self.order(&self.orders.end);
    }

    fn order(&self, order: &AtomicBool) {
        order.store(true, Ordering::Release);
        self.orders.hurry.store(true, Ordering::Release);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }
}

/// The shard number of the calling thread, assigned round-robin at the thread's first line. The caller
/// applies the modulus.
fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            // usize::MAX itself is never reached by counting threads.
            mine.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        mine.get()
    })
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
