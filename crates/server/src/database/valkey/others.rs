//! Tells the other machines what was changed here: each change is an entry of the stream.
//!
//! A change is put here after it was applied, and whoever made it waits until the stream has it, for as long
//! as `barrier` says ([`Others::told`]). What cannot be told stays here until it can, in its order; of more
//! than [`WAITING_BYTES`] the rest is told as a change of every page. Where an answer was lost a change is told
//! twice, which drops nothing that had not to be dropped.
//!
//! Lock: `queue`, to put something in or take it out; never across an `await`, no other is taken under it.

use super::connection::{Connection, good};
use super::stream::shared;
use super::words;
use crate::config::Database;
use crate::database::Waited;
use crate::database::source::Failed;
use crate::site::Site;
use page_store::{Strength, Target};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use valkey::{Added, add};

/// How much may wait to be told.
const WAITING_BYTES: usize = 16 << 20;
/// How many are sent at once.
const AT_ONCE: usize = 256;
/// Between two attempts, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The other machines, by way of a stream.
pub struct Others {
    config: Arc<Database>,
    queue: Mutex<Queue>,
    /// The number of the last change that the stream has.
    has: watch::Sender<u64>,
    put: Notify,
    is_begun: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The number of the last change that was put in.
    last: u64,
    /// Since when the stream cannot be reached.
    away_since: Option<Instant>,
}

struct Waiting {
    number: u64,
    added: Added,
}

impl Others {
    /// By this stream. Nothing is told before [`begin`](Self::begin).
    #[must_use]
    pub fn new(config: Arc<Database>) -> Others {
        let (queue, has, put) = (Mutex::default(), watch::Sender::new(0), Notify::new());
        Others { config, queue, has, put, is_begun: AtomicBool::new(false) }
    }

    /// This was changed, and is to be told.
    pub fn tell(&self, targets: &[Target<'_>], strength: Strength) {
        let mut added = words::entry(targets, strength);
        let mut queue = self.queue();
        if queue.bytes + added.bytes() > WAITING_BYTES {
            tracing::error!(event = "stream-too-much", changes = queue.waiting.len());
            queue.waiting.clear();
            queue.bytes = 0;
            added = words::entry(&[Target::Everything], Strength::Drop);
        }
        queue.last += 1;
        queue.bytes += added.bytes();
        let number = queue.last;
        queue.waiting.push_back(Waiting { number, added });
        drop(queue);
        self.put.notify_one();
    }

    /// Waits until the stream has all that was put in by now, within the bound; not at all where it has been
    /// out of reach for as long.
    pub async fn told(&self) -> Waited {
        let bound = self.config.barrier;
        let (last, until) = {
            let queue = self.queue();
            (queue.last, queue.away_since.unwrap_or_else(Instant::now) + bound)
        };
        let mut has = self.has.subscribe();
        if last == 0 || bound.is_zero() {
            return Waited::No;
        }
        match tokio::time::timeout_at(until, has.wait_for(|has| *has >= last)).await {
            Ok(Ok(_)) => Waited::Applied,
            Ok(Err(_)) | Err(_) => Waited::Late,
        }
    }

    /// How many changes the stream does not have yet.
    #[must_use]
    pub fn untold(&self) -> u64 {
        let last = self.queue().last;
        last.saturating_sub(*self.has.borrow())
    }

    /// Begins to tell what is put in; once is enough.
    pub fn begin(self: &Arc<Others>, site: &Arc<Site>) {
        if !self.is_begun.swap(true, Ordering::AcqRel) {
            tokio::spawn(run(self.clone(), site.clone()));
        }
    }

    async fn run(&self, site: &Site) {
        let (mut connection, mut batch, mut pause) = (None, Vec::new(), PAUSE);
        loop {
            while !self.take(&mut batch) {
                self.put.notified().await;
            }
            let was_kept = connection.is_some();
            match self.send(&mut connection, &batch).await {
                Ok(()) => {
                    if let Some(last) = batch.last() {
                        self.has.send_replace(last.number);
                    }
                    self.is_there();
                    site.counters.stream_told.add_many(batch.len() as u64);
                    batch.clear();
                    pause = PAUSE;
                }
                Err(failed) => {
                    connection = None;
                    // The server may have closed it because it was idle.
                    if !was_kept {
                        self.is_away(&failed);
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                }
            }
        }
    }

    /// Fills an empty batch. Whether there is anything in it.
    fn take(&self, batch: &mut Vec<Waiting>) -> bool {
        if batch.is_empty() {
            let mut queue = self.queue();
            let count = queue.waiting.len().min(AT_ONCE);
            batch.extend(queue.waiting.drain(..count));
            queue.bytes -= batch.iter().map(|one| one.added.bytes()).sum::<usize>();
        }
        !batch.is_empty()
    }

    async fn send(
        &self,
        connection: &mut Option<Connection>,
        batch: &[Waiting],
    ) -> Result<(), Failed> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(Connection::open(&self.config.server).await?),
        };
        let shared = shared(&self.config);
        let commands = batch.iter().map(|one| add(&shared.key, shared.keep, &one.added));
        connection.send(&commands.collect::<Vec<_>>().concat()).await?;
        for _ in batch {
            good(connection.receive(Duration::ZERO).await?)?;
        }
        Ok(())
    }

    fn is_there(&self) {
        if self.queue().away_since.take().is_some() {
            tracing::info!(event = "stream-told");
        }
    }

    fn is_away(&self, failed: &Failed) {
        let mut queue = self.queue();
        if queue.away_since.is_none() {
            queue.away_since = Some(Instant::now());
            let (reason, place) = (failed.as_str(), self.config.server.place.to_string());
            tracing::error!(event = "stream-untold", place, reason, error = %failed);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells what is put in, as long as the process lives: what is told last is told while it ends.
async fn run(others: Arc<Others>, site: Arc<Site>) {
    others.run(&site).await;
}
