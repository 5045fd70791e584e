//! `GET /v1/live`: the metrics once a second, as server-sent events, for the dashboard and for
//! `pagewell stats --watch`.
//!
//! At most [`STREAMS`] streams run at once (`event_streams`). All streams share a recent event, so
//! the metrics are read once for all of them, and never without clients. Lock: that of the last
//! event, held while it is created.

use super::event_streams::EventStreams;
use super::query::parameter;
use super::{Control, ControlError, ready, stats};
use bytes::Bytes;
use delivery::body::ResponseBody;
use serde_json::json;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most streams at once.
pub const STREAMS: usize = 16;
/// The interval between two events.
const EVERY: Duration = Duration::from_secs(1);
/// Events younger than this are shared with other streams.
const YOUNG: Duration = Duration::from_millis(500);

/// The running streams, and the last event.
pub(super) struct Live {
    streams: EventStreams,
    last: Mutex<Option<(Duration, Bytes)>>,
}

impl Default for Live {
    fn default() -> Live {
        Live { streams: EventStreams::new(STREAMS), last: Mutex::default() }
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
    let place = control.live.streams.enter()?;
    let of = control.clone();
    Ok(place.begin(control, EVERY, events, move || event(&of)))
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
