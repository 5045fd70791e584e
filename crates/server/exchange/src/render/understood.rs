//! Codings that nobody asked for: a response that came in one is understood before it is stored, and before
//! a client gets it who does not accept it. Invariant: the fields that tell of the coding go with it, and
//! an entity tag of the coded form is weakened. What cannot be understood stays as it is.

use crate::site::Site;
use http::{HeaderMap, HeaderValue, Method, header};
use http_cache::StoredResponse;
use http_cache::codings::{CODED_FIELDS, choose, weaken};
use origin::{OriginBody, OriginResponse};
use origin::{Understanding, may_be_understood};
use site_state::request_fields::read_facts;

/// Undoes the coding of a response that nobody asked to be in one: where it is about to be `stored`,
/// or where the client, whose method and lines these are, does not accept it.
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
    let Some(coding) = may_be_understood(response) else { return };
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
    // The origin's tag is that of the form it sent.
    weaken(headers);
    let body = std::mem::replace(&mut response.body, OriginBody::Nothing);
    response.body = OriginBody::Understood(Box::new(Understanding::new(body, coding)));
}

/// Whether a response is one that goes on: server-sent events, or what the application asks not to
/// be held back (nginx's word for it). Neither held nor stored, nor shared.
pub fn is_stream(headers: &HeaderMap) -> bool {
    let begins = |value: Option<&HeaderValue>, word: &[u8]| {
        value.is_some_and(|value| {
            value.as_bytes().get(..word.len()).is_some_and(|v| v.eq_ignore_ascii_case(word))
        })
    };
    let media_type = headers.get(header::CONTENT_TYPE);
    begins(media_type, b"text/event-stream") || begins(headers.get("x-accel-buffering"), b"no")
}
