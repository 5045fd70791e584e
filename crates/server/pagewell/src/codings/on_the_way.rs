//! Compressing what is not kept in a coding while it is sent: responses that are not stored, and a page
//! for the one who waited for its render.
//!
//! gzip at its quickest, the one coding that everybody accepts who accepts any. Each piece that comes is
//! passed on at once (flushed), so that a page that is sent bit by bit arrives bit by bit. The bytes
//! are not those of the form that will be kept, so the entity tag is made a weak one (RFC 9110 §8.8.1),
//! which says that it may be of any coding, and which the origin knows when it comes back.

use crate::body::{Content, Piece, ResponseBody};
use crate::esi;
use crate::site::Site;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, Response, header};
use http_cache::RequestFacts;
use http_cache::codings::{Coding, choose, vary_on_accept_encoding, weaken};
use std::io::{self, Write};

/// Content up to this length is compressed in one go, so that its length can be said.
const AT_ONCE_BYTES: usize = 256 << 10;

/// Sends `response` compressed, if it is worth it and the client accepts it.
pub fn on_the_way(
    site: &Site,
    facts: &RequestFacts<'_>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let codings = &site.config.codings;
    if esi::is_template(&response) {
        // Its parts are read first.
        return response;
    }
    if !codings.on_the_way || !codings.make.contains(&Coding::Gzip) {
        return response;
    }
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    let (status, headers) = (response.status(), response.headers_mut());
    // Trailers may speak of the bytes before them.
    let trailed = headers.contains_key(header::TRAILER);
    if trailed || codings.codable.check(status, headers, length).is_err() {
        return response;
    }
    vary_on_accept_encoding(headers);
    let accepted = facts.accept_encoding.get().and_then(|lines| choose(lines, &[Coding::Gzip]));
    // A request for parts that is answered with the whole: it is the untouched form that it was about.
    if accepted.is_none() || facts.range.is_some() {
        return response;
    }
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.as_str()));
    weaken(headers);
    headers.remove(header::CONTENT_LENGTH);
    let (mut head, body) = response.into_parts();
    let body = body.map(|content| match content {
        Content::Whole(bytes) if bytes.len() <= AT_ONCE_BYTES => {
            let coded = OnTheWay::new().all_of(&bytes);
            head.headers.insert(header::CONTENT_LENGTH, coded.len().into());
            Content::Whole(coded)
        }
        Content::Empty => Content::Empty,
        content => Content::OnTheWay(Box::new(OnTheWay { source: content, ..OnTheWay::new() })),
    });
    Response::from_parts(head, body)
}

/// Content that is compressed while it is sent.
pub struct OnTheWay {
    /// What is to be compressed.
    pub source: Content,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl OnTheWay {
    fn new() -> OnTheWay {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        OnTheWay { source: Content::Empty, encoder: Some(encoder) }
    }

    fn all_of(mut self, bytes: &[u8]) -> Bytes {
        let fed = self.encoder.as_mut().map(|encoder| encoder.write_all(bytes));
        debug_assert!(fed.is_some_and(|fed| fed.is_ok()), "writing to a Vec cannot fail");
        self.end().and_then(Result::ok).unwrap_or_default()
    }

    /// What is to be sent for a piece; nothing where it is too little.
    pub fn feed(&mut self, piece: &[u8]) -> Option<Piece> {
        let encoder = self.encoder.as_mut()?;
        encoder.write_all(piece).and_then(|()| encoder.flush()).map_or_else(failed, |()| {
            let coded = std::mem::take(encoder.get_mut());
            (!coded.is_empty()).then(|| Ok(coded.into()))
        })
    }

    /// What is to be sent at the end; nothing the second time.
    pub fn end(&mut self) -> Option<Piece> {
        self.encoder.take()?.finish().map_or_else(failed, |coded| Some(Ok(coded.into())))
    }
}

/// Writing to a Vec fails where there is no memory, and then not in this way.
fn failed(_: io::Error) -> Option<Piece> {
    Some(Err(http_cache::Failure::InvalidResponse))
}
