//! `GET /v1/requests`: the answered requests, as server-sent events, for the live list of the dashboard.
//!
//! The query filters them: `path=TEXT` (a part of the path), `status=4` or `status=404`, `outcome=hit` (the words
//! of the access log); `events=N` ends the stream after N events. An event has at most
//! [`ROOM`](telemetry::request_tap::ROOM) requests and the number of those omitted, so that watching a busy site costs
//! little. Requests cost nothing while no stream runs.
//!
//! At most [`STREAMS`] streams run at once (`event_streams`). Not shown: cookies and other header fields, addresses.

use super::event_streams::EventStreams;
use super::query::parameters;
use super::{Control, ControlError};
use bytes::Bytes;
use delivery::body::ResponseBody;
use history::shown::masked;
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use telemetry::request_tap::{RequestFilter, RequestWatch, ShownRequest};

/// The most streams at once.
pub const STREAMS: usize = 4;
/// The interval between two events.
const EVERY: Duration = Duration::from_millis(500);
/// The longest part of a path in a filter, in bytes.
const PATH_BYTES_MAX: usize = 1024;
/// The words for cache results that a filter may have: those of the access log.
const OUTCOMES: [&str; 9] =
    ["hit", "stale", "collapsed", "validated", "miss", "bypass", "file", "own", "rejected"];

/// The places for streams.
pub(super) struct RequestStreams(EventStreams);

impl Default for RequestStreams {
    fn default() -> RequestStreams {
        RequestStreams(EventStreams::new(STREAMS))
    }
}

/// Starts a stream.
///
/// # Errors
/// The query is invalid, or too many streams are running.
pub(super) fn begin(
    control: &Arc<Control>,
    query: Option<&str>,
) -> Result<ResponseBody, ControlError> {
    let (filter, events) = read(query)?;
    let place = control.request_streams.0.enter()?;
    let watch = control.site.request_tap.watch(filter);
    Ok(place.begin(control, EVERY, events, move || event(&watch)))
}

fn event(watch: &RequestWatch) -> Bytes {
    let (requests, omitted) = watch.take();
    let requests: Vec<Value> = requests.iter().map(shown).collect();
    let data = json!({ "requests": requests, "omitted": omitted });
    Bytes::from(format!("event: requests\ndata: {data}\n\n"))
}

fn shown(request: &ShownRequest) -> Value {
    json!({
        "at_ms": request.at_ms,
        "method": request.method,
        "host": request.host,
        "target": masked(&request.target),
        "status": request.status,
        "outcome": request.outcome,
        "detail": request.detail,
        "took_us": request.took_us,
    })
}

/// Reads the filter and the number of events from the query.
fn read(query: Option<&str>) -> Result<(RequestFilter, Option<NonZeroU64>), ControlError> {
    let known = [("path", "TEXT"), ("status", "404"), ("outcome", "hit"), ("events", "N")];
    let [path, status, outcome, events] = parameters(query, known)?;
    let wrong = |what: &str| Err(ControlError::Unreadable(what.into()));
    if path.as_ref().is_some_and(|path| path.len() > PATH_BYTES_MAX) {
        return wrong("path is too long");
    }
    let status = match status.map(|text| text.parse()) {
        None => None,
        Some(Ok(status @ (1..=5 | 100..=599))) => Some(status),
        Some(_) => return wrong("status is a code such as 404, or its first digit"),
    };
    let outcome = outcome.unwrap_or_default();
    if !outcome.is_empty() && !OUTCOMES.contains(&outcome.as_str()) {
        return wrong(&format!("outcome is one of {}", OUTCOMES.join(", ")));
    }
    let events = match events.map(|text| text.parse()) {
        None => None,
        Some(Ok(count)) => Some(count),
        Some(Err(_)) => return wrong("events is a number from 1"),
    };
    Ok((RequestFilter { path: path.unwrap_or_default(), status, outcome }, events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_a_filter() {
        let (filter, events) = read(Some("path=/news%3F&status=4&outcome=miss&events=2")).unwrap();
        let expected =
            RequestFilter { path: "/news?".into(), status: Some(4), outcome: "miss".into() };
        assert_eq!((filter, events), (expected, NonZeroU64::new(2)));
        assert_eq!(read(None).unwrap(), (RequestFilter::default(), None));
        for wrong in ["status=9", "status=600", "status=x", "outcome=hits", "events=0", "page=1"] {
            assert!(read(Some(wrong)).is_err(), "{wrong}");
        }
        assert!(read(Some(&format!("path={}", "x".repeat(PATH_BYTES_MAX + 1)))).is_err());
    }
}
