//! Places at the origin: so many requests at once, so many waiting, for so long. Beyond that the
//! origin counts as overloaded, and says so at once instead of piling up. A place is given back by
//! being dropped, whatever becomes of its request.

use crate::config::Limits;
use crate::reached::{Limit, Reached};
use crate::upload::Room;
use http_cache::Failure;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// The part of the page budget that content may take while it is waited for: one in so many.
const ROOM_SHARE: usize = 16;

/// How long a request waits before a response that waits for its client gives its place up: more than most
/// pages take, and less than a visitor gives up after.
const NEEDED_AFTER: Duration = Duration::from_secs(1);

/// How long until it asks again.
const NEEDED_AGAIN: Duration = Duration::from_millis(100);

/// The places of one origin.
pub struct Places {
    free: Arc<Semaphore>,
    count: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
    timeout: Duration,
    /// Requests that have waited for a while.
    impatient: AtomicUsize,
    /// Notified for each of them, again and again while it waits: a notification may find nobody yet.
    needed: Notify,
    /// Limits that were reached at this origin.
    pub reached: Arc<Reached>,
    /// Where content is waited for before it takes a place.
    pub room: Arc<Room>,
}

impl Places {
    /// So many places as `count`, and a queue as the limits say; `memory`: the page budget, in bytes.
    pub fn new(count: usize, limits: &Limits, memory: usize) -> Places {
        Places {
            free: Arc::new(Semaphore::new(count)),
            count,
            waiting: AtomicUsize::new(0),
            waiting_max: limits.origin_queue,
            timeout: limits.origin_queue_timeout,
            impatient: AtomicUsize::new(0),
            needed: Notify::new(),
            reached: Arc::default(),
            room: Arc::new(Room::new(limits.body_ahead, memory / ROOM_SHARE)),
        }
    }

    /// A place, held until it is dropped.
    ///
    /// # Errors
    /// [`Failure::Overloaded`] when the queue is full or the wait was too long.
    pub async fn enter(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(place) = self.free.clone().try_acquire_owned() {
            return Ok(place);
        }
        self.reached.note(Limit::OriginConnections);
        let waiting = Counted::enter(&self.waiting);
        if waiting.before >= self.waiting_max {
            self.reached.note(Limit::OriginQueue);
            return Err(Failure::Overloaded);
        }
        match tokio::time::timeout(self.timeout, self.wait()).await {
            Ok(Ok(place)) => Ok(place),
            _ => {
                self.reached.note(Limit::OriginQueueTimeout);
                Err(Failure::Overloaded)
            }
        }
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let mut place = pin!(self.free.clone().acquire_owned());
        if let Ok(place) = tokio::time::timeout(NEEDED_AFTER, &mut place).await {
            return place;
        }
        let _impatient = Counted::enter(&self.impatient);
        loop {
            self.needed.notify_one();
            if let Ok(place) = tokio::time::timeout(NEEDED_AGAIN, &mut place).await {
                return place;
            }
        }
    }

    /// Ready when a request waits for a place that has waited for a while: for the one that has waited here
    /// longest. For a response that keeps its place only because its client is slow.
    pub async fn needed(&self) {
        loop {
            self.needed.notified().await;
            // A notification may be older: of a request that waits no more.
            if self.impatient.load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }

    /// Requests at the origin now.
    pub fn taken(&self) -> usize {
        self.count.saturating_sub(self.free.available_permits())
    }

    /// Whether a place is free and nobody waits for one, as far as can be seen: work in the background
    /// may begin.
    pub fn is_one_to_spare(&self) -> bool {
        self.free.available_permits() > 0 && self.waiting() == 0
    }

    /// Requests waiting for a place now.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// One that is counted until this is dropped.
struct Counted<'a> {
    count: &'a AtomicUsize,
    /// How many there were before.
    before: usize,
}

impl<'a> Counted<'a> {
    fn enter(count: &'a AtomicUsize) -> Counted<'a> {
        Counted { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_is_to_spare_while_one_is_free_and_nobody_waits() {
        let places = Arc::new(Places::new(1, &Limits::default(), 1 << 20));
        assert!(places.is_one_to_spare());
        let place = places.enter().await.unwrap();
        assert!(!places.is_one_to_spare());
        let other = places.clone();
        let waiting = tokio::spawn(async move { other.enter().await });
        while places.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        drop(place);
        let place = waiting.await.unwrap();
        assert!(!places.is_one_to_spare());
        drop(place);
        assert!(places.is_one_to_spare());
    }
}
