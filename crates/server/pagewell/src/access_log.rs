//! The access log: a line for each answer, written by a thread of its own.
//!
//! Whoever has answered a request writes its line into the buffer of his thread's shard, in memory that
//! is there already, under a lock that nobody else wants but the writer, for a moment, to take the buffer
//! away. So a visitor waits neither for a disk nor for another visitor. What does not fit is dropped and
//! counted (`access_log_dropped`). The writer sleeps until somebody has written, lets lines gather for a
//! moment, and writes them in one piece.
//!
//! Locks: one a shard, held to write a line, or to put an empty buffer in the place of a full one. All
//! buffers together have the configured size, whatever happens (see [`LINE_BYTES_MAX`]).
//!
//! Not logged: what is said on the control interface, the memcached port, and after an upgrade.

mod entry;
mod writer;

pub use crate::access_log_format::{
    BUFFER_BYTES_MIN, Client, FILE, Format, HIT, LINE_BYTES_MAX, Line, Masks, Outcome, Unreadable,
    outcome,
};
pub use entry::{Entry, Spent};
pub use writer::{Sink, Writing, start};

use crate::access_log_format::{SHARD_BYTES_MIN, Stamp};
use crate::config::AccessLog as Chosen;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// The access log.
pub struct AccessLog {
    format: Format,
    shards: Vec<Mutex<Shard>>,
    /// What one buffer holds.
    shard_bytes: usize,
    /// The thread that writes.
    writer: OnceLock<Thread>,
    orders: Orders,
}

/// What the writer is told.
#[derive(Default)]
struct Orders {
    /// A buffer is filling up: write now.
    hurry: AtomicBool,
    /// Open the file again.
    reopen: AtomicBool,
    /// Write what there is, and end.
    end: AtomicBool,
}

/// Lines of some threads.
struct Shard {
    text: Vec<u8>,
    stamp: Stamp,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Logged {
    /// It will be written.
    Taken,
    /// There was no room for it.
    Dropped,
}

impl AccessLog {
    /// A log of this kind. Nothing is written before [`start`].
    pub fn new(chosen: &Chosen) -> AccessLog {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // One more buffer is in the writer's hands.
        let most = (chosen.buffer_bytes / SHARD_BYTES_MIN).saturating_sub(1).max(1);
        let count = cores.min(most);
        let shard_bytes = chosen.buffer_bytes / (count + 1);
        // Memory that was never written to is not there, for all its address space.
        let shard = || Shard { text: Vec::with_capacity(shard_bytes), stamp: Stamp::default() };
        AccessLog {
            format: chosen.format.clone(),
            shards: (0..count).map(|_| Mutex::new(shard())).collect(),
            shard_bytes,
            writer: OnceLock::new(),
            orders: Orders::default(),
        }
    }

    /// How lines are written.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Takes a line in. Nothing is allocated, and nobody waits.
    pub fn write(&self, line: &Line<'_>) -> Logged {
        let mut shard = lock(&self.shards[shard_of_thread() % self.shards.len()]);
        let before = shard.text.len();
        if self.shard_bytes - before < LINE_BYTES_MAX {
            return Logged::Dropped;
        }
        let Shard { text, stamp } = &mut *shard;
        stamp.set(line.time);
        self.format.write(line, stamp, text);
        let after = text.len();
        drop(shard);
        if before == 0 || after > self.shard_bytes / 2 {
            self.wake(before == 0, after > self.shard_bytes / 2);
        }
        Logged::Taken
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

    /// Has the file opened again, because the one that is open was moved away.
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

/// Threads take turns in taking shards, once each.
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
