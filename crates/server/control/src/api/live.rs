//! `GET /v1/live`: the metrics once a second, as server-sent events, for the dashboard and for
//! `pagewell stats --watch`.
//!
//! At most [`STREAMS`] streams run at once. A stream ends when Pagewell stops, when its client
//! disconnects, or when its client reads nothing for [`SLOW`]. All streams share a recent event, so
//! the metrics are read once for all of them, and never without clients. Lock: that of the last
//! event, held while it is created.

use super::query::parameter;
use super::{Control, ControlError, ready, stats};
use bytes::Bytes;
use delivery::body::{Content, ResponseBody};
use delivery::response_spool::Piece;
use serde_json::json;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use telemetry::phase::Phase;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::MissedTickBehavior;

/// The most streams at once.
pub const STREAMS: usize = 16;
/// The interval between two events.
const EVERY: Duration = Duration::from_secs(1);
/// Events younger than this are shared with other streams.
const YOUNG: Duration = Duration::from_millis(500);
/// How long an event may wait for its client.
const SLOW: Duration = Duration::from_secs(30);

/// The running streams, and the last event.
pub(super) struct Live {
    places: Arc<Semaphore>,
    last: Mutex<Option<(Duration, Bytes)>>,
}

impl Default for Live {
    fn default() -> Live {
        Live { places: Arc::new(Semaphore::new(STREAMS)), last: Mutex::default() }
    }
}

/// Starts a stream; the query `events=N` ends it after N events.
///
/// # Errors
/// The query is invalid, or too many streams are running.
pub(super) fn begin(
    control: &Arc<Control>,
    query: Option<&str>,
) -> Result<ResponseBody, ControlError> {
    let events = events(query)?;
    let places = control.live.places.clone();
    let place = places.try_acquire_owned().map_err(|_| ControlError::StreamsFull(STREAMS))?;
    let (sender, pieces) = mpsc::channel(1);
    let (control, mut stop) = (control.clone(), control.stop.clone());
    tokio::spawn(async move {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => {}
            () = sender.closed() => {}
            () = tell(&control, &sender, events) => {}
        }
        drop(place);
    });
    Ok(ResponseBody::from(Content::Channel(pieces)))
}

async fn tell(control: &Control, sender: &mpsc::Sender<Piece>, events: Option<NonZeroU64>) {
    let mut left = events.map_or(u64::MAX, NonZeroU64::get);
    let mut due = tokio::time::interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while left > 0 {
        due.tick().await;
        let sent = sender.send_timeout(Ok(event(control)), SLOW);
        if sent.await.is_err() {
            return;
        }
        left -= 1;
    }
}

/// Returns the current event.
fn event(control: &Control) -> Bytes {
    let site = &control.site;
    let now = site.clock.monotonic();
    let mut last = control.live.last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, event)) = last.as_ref()
        && now.saturating_sub(*at) < YOUNG
    {
        return event.clone();
    }
    let picture = json!({
        "at_ms": now.as_millis() as u64,
        "version": env!("CARGO_PKG_VERSION"),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "not_ready": ready::reasons_json(&ready::why_not(site, *control.stop.borrow()))["reasons"],
        "figures": stats::stats_and_limits(site),
        "origin_times": stats::origin_times(site),
    });
    let event = Bytes::from(format!("event: figures\ndata: {picture}\n\n"));
    *last = Some((now, event.clone()));
    event
}

/// Parses the number of events from the query; `None`: unlimited.
fn events(query: Option<&str>) -> Result<Option<NonZeroU64>, ControlError> {
    let Some(count) = parameter(query, "events", "N")? else { return Ok(None) };
    let wrong = |_| ControlError::Unreadable("events is a number from 1".into());
    count.parse().map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_events() {
        assert_eq!(events(None), Ok(None));
        assert_eq!(events(Some("")), Ok(None));
        assert_eq!(events(Some("events=2")), Ok(NonZeroU64::new(2)));
        for wrong in ["events=0", "events=-1", "events", "event=2", "events=2&x"] {
            assert!(events(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
