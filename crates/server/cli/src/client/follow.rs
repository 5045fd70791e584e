//! Reads the event stream of metrics (`GET /v1/live`): server-sent events (HTML, section 9.2),
//! limited to `data` lines. The length of an event is bounded. `next` is cancel-safe: a cancelled
//! call loses no event.

use super::{ask, refused, whole, within};
use command_line::options::ControlArgs;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// The longest event in bytes: the metrics of some thousand sites.
const EVENT_BYTES: usize = 32 << 20;

/// An event stream that is being read.
pub struct EventStream {
    body: Incoming,
    text: Vec<u8>,
}

/// Starts the event stream.
///
/// # Errors
/// A sentence for the operator.
pub async fn follow(args: &ControlArgs) -> Result<EventStream, String> {
    let answer = within(args, ask(args, Method::GET, "/v1/live", Vec::new())).await?;
    if answer.status() == StatusCode::OK {
        return Ok(EventStream { body: answer.into_body(), text: Vec::new() });
    }
    let (status, body) = within(args, whole(args, answer)).await?;
    Err(refused(args, status, &body))
}

impl EventStream {
    /// Returns the next event; `None` when Pagewell has ended the stream.
    ///
    /// # Errors
    /// The connection failed, or the data is not a valid event.
    pub async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            if let Some(event) = self.take() {
                return event.map(Some);
            }
            if self.text.len() > EVENT_BYTES {
                return Err("an event has no end".into());
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| error.to_string())?;
            self.text.extend_from_slice(frame.data_ref().map_or(&[][..], |bytes| bytes));
        }
    }

    fn take(&mut self) -> Option<Result<Value, String>> {
        let end = self.text.windows(2).position(|two| two == b"\n\n")?;
        let event: Vec<u8> = self.text.drain(..end + 2).collect();
        let lines = event.split(|byte| *byte == b'\n');
        let data = lines.filter_map(|line| line.strip_prefix(b"data: ")).next()?;
        Some(serde_json::from_slice(data).map_err(|error| error.to_string()))
    }
}
