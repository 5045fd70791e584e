//! Limits the concurrent requests at an origin, and the length and duration of the queue for them.
//! Above these limits the origin counts as overloaded, and requests fail at once instead of
//! accumulating. Each request holds a permit, which is released when it is dropped (`admission`).

use crate::admission::{Admission, OriginPermit};
use crate::upload::Room;
use config::Limits;
use http_cache::Failure;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use telemetry::limit_hits::{Limit, LimitHits};
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// The fraction (1/`ROOM_SHARE`) of the page budget that content of waiting requests may use.
const ROOM_SHARE: usize = 16;

/// How long a request waits before a response that only waits for its client has to release its permit.
/// Most pages take less time, and clients wait longer.
const NEEDED_AFTER: Duration = Duration::from_secs(1);

/// The interval at which the notification is repeated.
const NEEDED_AGAIN: Duration = Duration::from_millis(100);

/// The concurrent requests at one origin, and the queue for them.
pub struct Places {
    free: Arc<Semaphore>,
    count: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
    timeout: Duration,
    /// The number of requests that have waited for more than [`NEEDED_AFTER`].
    impatient: AtomicUsize,
    /// Notified repeatedly for each of them, because at first no response may wait in
    /// [`Places::needed`].
    needed: Notify,
    /// The limits that were reached at this origin.
    pub limit_hits: Arc<LimitHits>,
    /// The memory for content that is collected before its request is sent.
    pub room: Arc<Room>,
}

impl Places {
    /// Allows `count` concurrent requests, and a queue as in `limits`. `memory` is the page budget in
    /// bytes.
    pub fn new(count: usize, limits: &Limits, memory: usize) -> Places {
        Places {
            free: Arc::new(Semaphore::new(count)),
            count,
            waiting: AtomicUsize::new(0),
            waiting_max: limits.origin_queue,
            timeout: limits.origin_queue_timeout,
            impatient: AtomicUsize::new(0),
            needed: Notify::new(),
            limit_hits: Arc::default(),
            room: Arc::new(Room::new(limits.body_ahead, memory / ROOM_SHARE)),
        }
    }

    /// Waits for a permit. All classes wait in one queue, in the order of their arrival.
    ///
    /// # Errors
    /// [`Failure::Overloaded`] if the queue is full or the wait was too long.
    pub(crate) async fn enter(&self, _admission: &Admission) -> Result<OriginPermit, Failure> {
        if let Ok(place) = self.free.clone().try_acquire_owned() {
            return Ok(OriginPermit::new(place));
        }
        self.limit_hits.note(Limit::OriginConnections);
        let waiting = CountGuard::enter(&self.waiting);
        if waiting.before >= self.waiting_max {
            self.limit_hits.note(Limit::OriginQueue);
            return Err(Failure::Overloaded);
        }
        match tokio::time::timeout(self.timeout, self.wait()).await {
            Ok(Ok(place)) => Ok(OriginPermit::new(place)),
            _ => {
                self.limit_hits.note(Limit::OriginQueueTimeout);
                Err(Failure::Overloaded)
            }
        }
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let mut place = pin!(self.free.clone().acquire_owned());
        if let Ok(place) = tokio::time::timeout(NEEDED_AFTER, &mut place).await {
            return place;
        }
        let _impatient = CountGuard::enter(&self.impatient);
        loop {
            self.needed.notify_one();
            if let Ok(place) = tokio::time::timeout(NEEDED_AGAIN, &mut place).await {
                return place;
            }
        }
    }

    /// Completes when a request has waited for a permit for more than `NEEDED_AFTER`. Called by
    /// responses that hold a permit only because their client is slow; the one that has waited here
    /// longest is notified.
    pub async fn needed(&self) {
        loop {
            self.needed.notified().await;
            // The notification may be obsolete: its request may no longer wait.
            if self.impatient.load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }

    /// The number of requests at the origin now.
    pub fn taken(&self) -> usize {
        self.count.saturating_sub(self.free.available_permits())
    }

    /// Whether a permit is free and no request waits for one, so that background work may begin. The
    /// result is a snapshot.
    pub fn is_one_to_spare(&self) -> bool {
        self.free.available_permits() > 0 && self.waiting() == 0
    }

    /// The number of requests that wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Increments a counter until it is dropped.
struct CountGuard<'a> {
    count: &'a AtomicUsize,
    /// The value of the counter before the increment.
    before: usize,
}

impl<'a> CountGuard<'a> {
    fn enter(count: &'a AtomicUsize) -> CountGuard<'a> {
        CountGuard { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::OriginClass;

    #[tokio::test]
    async fn a_place_is_spare_while_one_is_free_and_no_request_waits() {
        let places = Arc::new(Places::new(1, &Limits::default(), 1 << 20));
        assert!(places.is_one_to_spare());
        let page = Admission { class: OriginClass::Page };
        let place = places.enter(&page).await.unwrap();
        assert!(!places.is_one_to_spare());
        let other = places.clone();
        let waiting = tokio::spawn(async move { other.enter(&page).await });
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
