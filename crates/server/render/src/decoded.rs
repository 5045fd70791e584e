//! Decodes responses in a content coding that the client did not ask for: before they are stored,
//! or if the client does not accept it. Invariant: the fields that describe the coding are removed
//! with it, and a strong entity tag is weakened. A response that cannot be decoded stays unchanged.

use delivery::site::Site;
use http::{HeaderMap, HeaderValue, Method, header};
use http_cache::StoredResponse;
use http_cache::codings::{CODED_FIELDS, choose, weaken};
use origin::{DecodedBody, decodable_coding};
use origin::{OriginBody, OriginResponse};
use telemetry::request_fields::read_facts;

/// Removes the content coding of a response if it is about to be `stored`. It is also removed if
/// the client, whose method and header lines these are, does not accept it.
pub fn understand(
    site: &Site,
    method: &Method,
    headers: &HeaderMap,
    response: &mut OriginResponse,
    stored: Option<&mut StoredResponse>,
) {
    if !site.config.codings.are_made() {
        return;
    }
    let Some(coding) = decodable_coding(response) else { return };
    let facts = read_facts(method, headers);
    let lines = facts.accept_encoding.get();
    let accepted = lines.is_some_and(|lines| choose(lines, &[coding]).is_some());
    let headers = match stored {
        Some(stored) => {
            stored.set_content_length(None);
            &mut stored.headers
        }
        None if accepted => return,
        None => &mut response.headers,
    };
    for name in CODED_FIELDS {
        headers.remove(name);
    }
    // The origin's entity tag is that of the compressed form.
    weaken(headers);
    let body = std::mem::replace(&mut response.body, OriginBody::Nothing);
    response.body = OriginBody::Understood(Box::new(DecodedBody::new(body, coding)));
}

/// Whether a response is a stream: server-sent events, or one with nginx's `X-Accel-Buffering: no`.
/// A stream is neither held back, nor stored, nor shared.
pub fn is_stream(headers: &HeaderMap) -> bool {
    let begins = |value: Option<&HeaderValue>, word: &[u8]| {
        value.is_some_and(|value| {
            value.as_bytes().get(..word.len()).is_some_and(|v| v.eq_ignore_ascii_case(word))
        })
    };
    let media_type = headers.get(header::CONTENT_TYPE);
    begins(media_type, b"text/event-stream") || begins(headers.get("x-accel-buffering"), b"no")
}
