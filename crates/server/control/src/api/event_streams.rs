//! Server-sent events at an interval, for `/v1/live` and `/v1/requests`.
//!
//! A stream ends after the requested number of events, when Pagewell stops, when its client disconnects, or when its
//! client reads nothing for [`SLOW`]. Not here: what an event has.

use super::{Control, ControlError};
use bytes::Bytes;
use delivery::body::{Content, ResponseBody};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use telemetry::phase::Phase;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::MissedTickBehavior;

/// How long an event may wait for its client.
const SLOW: Duration = Duration::from_secs(30);

/// The streams of one kind.
pub(super) struct EventStreams {
    places: Arc<Semaphore>,
    max: usize,
}

/// The place of a stream that may begin.
pub(super) struct EventStreamPlace(OwnedSemaphorePermit);

impl EventStreams {
    /// At most `max` streams at a time.
    pub(super) fn new(max: usize) -> EventStreams {
        EventStreams { places: Arc::new(Semaphore::new(max)), max }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// Too many streams are running.
    pub(super) fn enter(&self) -> Result<EventStreamPlace, ControlError> {
        let place = self.places.clone().try_acquire_owned();
        place.map(EventStreamPlace).map_err(|_| ControlError::StreamsFull(self.max))
    }
}

impl EventStreamPlace {
    /// Starts a stream with an event at each interval; `events`: so many, or without end.
    pub(super) fn begin(
        self,
        control: &Control,
        every: Duration,
        events: Option<NonZeroU64>,
        mut event: impl FnMut() -> Bytes + Send + 'static,
    ) -> ResponseBody {
        let (sender, pieces) = mpsc::channel(1);
        let mut stop = control.stop.clone();
        tokio::spawn(async move {
            let sending = async {
                let mut due = tokio::time::interval(every);
                due.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for _ in 0..events.map_or(u64::MAX, NonZeroU64::get) {
                    due.tick().await;
                    if sender.send_timeout(Ok(event()), SLOW).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                _ = stop.wait_for(Phase::is_leaving) => {}
                () = sender.closed() => {}
                () = sending => {}
            }
            drop(self.0);
        });
        ResponseBody::from(Content::Channel(pieces))
    }
}
