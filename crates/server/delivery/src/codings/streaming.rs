//! Compresses responses while they are sent: responses that are not stored, and a page for the client
//! that waited for its fetch.
//!
//! It uses gzip at the fastest level, because every client that accepts compression accepts gzip. Each
//! piece is flushed, so that a response that the origin sends in pieces reaches the client in pieces.
//! The bytes differ from those of the form that will be cached, so the entity tag becomes weak (RFC
//! 9110 section 8.8.1). A weak tag is valid for any coding, and the origin recognises it in a later
//! conditional request.

use crate::body::{Content, ResponseBody, StreamingEncoder};
use crate::site::Site;
use crate::template_mark;
use http::{HeaderValue, Response, header};
use http_cache::RequestFacts;
use http_cache::codings::{Coding, choose, vary_on_accept_encoding, weaken};

/// Content up to this length, in bytes, is compressed at once, so that `Content-Length` is known.
const AT_ONCE_BYTES: usize = 256 << 10;

/// Compresses `response` while it is sent, if it is compressible and the client accepts gzip.
pub fn encode_response(
    site: &Site,
    facts: &RequestFacts<'_>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let codings = &site.config.codings;
    if template_mark::template_dialect(&response).is_some() {
        // Its ESI fragments are processed first.
        return response;
    }
    if !codings.on_the_way || !codings.make.contains(&Coding::Gzip) {
        return response;
    }
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    let (status, headers) = (response.status(), response.headers_mut());
    // A trailer may describe the uncompressed bytes.
    let trailed = headers.contains_key(header::TRAILER);
    if trailed || codings.codable.check(status, headers, length).is_err() {
        return response;
    }
    vary_on_accept_encoding(headers);
    let accepted = facts.accept_encoding.get().and_then(|lines| choose(lines, &[Coding::Gzip]));
    // A range request that gets the complete content refers to the uncompressed form.
    if accepted.is_none() || facts.range.is_some() {
        return response;
    }
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.as_str()));
    weaken(headers);
    headers.remove(header::CONTENT_LENGTH);
    let (mut head, body) = response.into_parts();
    let body = body.map(|content| match content {
        Content::Whole(bytes) if bytes.len() <= AT_ONCE_BYTES => {
            let coded = StreamingEncoder::new(Content::Empty).all_of(&bytes);
            head.headers.insert(header::CONTENT_LENGTH, coded.len().into());
            Content::Whole(coded)
        }
        Content::Empty => Content::Empty,
        content => Content::OnTheWay(Box::new(StreamingEncoder::new(content))),
    });
    Response::from_parts(head, body)
}
