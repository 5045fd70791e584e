//! The requests of a scenario as bytes: normal ones get their framing, raw ones are sent as written.
//!
//! The client that sends them is that of all tests ([`harness::Client`]).

use harness::wire::{MessageFields, chunk, head_bytes};

/// A request with its placeholders replaced.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The bytes to send.
    pub(crate) bytes: Vec<u8>,
    /// Whether the method is HEAD, so that the answer has no content.
    pub(crate) is_head: bool,
}

impl Request {
    /// A normal request. Content gets a `Content-Length`, or one chunk if `fields` contains `Transfer-Encoding:
    /// chunked`. Lengths given by the scenario are not changed.
    pub(crate) fn http(
        method: &str,
        target: &[u8],
        mut fields: MessageFields,
        body: Option<Vec<u8>>,
    ) -> Request {
        let has = |fields: &MessageFields, name: &str| fields.iter().any(|(n, _)| n == name);
        let chunked = has(&fields, "transfer-encoding");
        if let Some(body) = &body
            && !chunked
            && !has(&fields, "content-length")
        {
            fields.push(("content-length".into(), body.len().to_string().into_bytes()));
        }
        let first = format!("{method} {} HTTP/1.1", String::from_utf8_lossy(target));
        let mut bytes = head_bytes(&first, &fields);
        match body {
            Some(body) if chunked => {
                bytes.extend(chunk(&body));
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            Some(body) => bytes.extend(body),
            None => {}
        }
        Request { bytes, is_head: method == "HEAD" }
    }

    /// A request of literal bytes.
    pub(crate) fn raw(bytes: Vec<u8>) -> Request {
        let is_head = bytes.starts_with(b"HEAD ");
        Request { bytes, is_head }
    }
}
