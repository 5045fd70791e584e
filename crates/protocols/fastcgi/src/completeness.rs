//! Decides whether a response is complete, and whether its connection may carry another request.
//!
//! A response that is not known to be complete may still be sent to the client, but is never stored. It is
//! complete if END_REQUEST says so (FastCGI §5.5) and the content has the declared length (RFC 9110 §8.6). A
//! closed connection alone proves nothing, because the worker may have been killed.
//!
//! Not here: whether a complete response may be stored; the cache decides this.

use crate::end_request::{EndRequest, ProtocolStatus};
use crate::params::AfterRequest;
use crate::php_fatal::PhpFatal;
use crate::response::ResponseReader;

/// Whether the response carries the content that its `Content-Length` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFraming {
    /// The response carries content.
    Content,
    /// The response answers HEAD, or is a 204 or 304. A `Content-Length` does not describe its content (RFC
    /// 9110 §6.4.1, §8.6), and content that the program sends is discarded.
    NoContent,
}

impl ContentFraming {
    /// The framing of a response with `status` to a request with `method`.
    pub fn of(method: &http::Method, status: http::StatusCode) -> ContentFraming {
        let without = *method == http::Method::HEAD
            || status == http::StatusCode::NO_CONTENT
            || status == http::StatusCode::NOT_MODIFIED
            || status.is_informational();
        if without { ContentFraming::NoContent } else { ContentFraming::Content }
    }
}

/// Whether a response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// The whole response has arrived.
    Complete,
    /// The response is not complete, or its completeness is unknown.
    Incomplete(IncompleteReason),
}

/// The reason why a response does not count as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompleteReason {
    /// The connection was closed, or the request was abandoned, before END_REQUEST.
    EndMissing,
    /// END_REQUEST has another status than `FCGI_REQUEST_COMPLETE`.
    Protocol(ProtocolStatus),
    /// The program's own status is not 0: it may have failed while it wrote the response.
    AppStatus(u32),
    /// The content is shorter than `Content-Length` declares.
    ContentShort,
    /// The content is longer than `Content-Length` declares.
    ContentLong,
    /// PHP reported a fatal error on STDERR.
    PhpFatal,
}

impl IncompleteReason {
    /// The name of the reason, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            IncompleteReason::EndMissing => "end-missing",
            IncompleteReason::Protocol(status) => status.as_str(),
            IncompleteReason::AppStatus(_) => "app-status-not-zero",
            IncompleteReason::ContentShort => "content-short",
            IncompleteReason::ContentLong => "content-long",
            IncompleteReason::PhpFatal => "php-fatal-error",
        }
    }
}

impl Completeness {
    /// Judges a response by its END_REQUEST record, the `Content-Length` that it declared, and the bytes of
    /// content received after the head.
    pub fn of(
        end: Option<EndRequest>,
        framing: ContentFraming,
        declared_bytes: Option<u64>,
        received_bytes: u64,
    ) -> Completeness {
        let Some(end) = end else {
            return Completeness::Incomplete(IncompleteReason::EndMissing);
        };
        if end.protocol_status != ProtocolStatus::RequestComplete {
            return Completeness::Incomplete(IncompleteReason::Protocol(end.protocol_status));
        }
        if end.app_status != 0 {
            return Completeness::Incomplete(IncompleteReason::AppStatus(end.app_status));
        }
        match (framing, declared_bytes) {
            (ContentFraming::Content, Some(declared)) if received_bytes < declared => {
                Completeness::Incomplete(IncompleteReason::ContentShort)
            }
            (ContentFraming::Content, Some(declared)) if received_bytes > declared => {
                Completeness::Incomplete(IncompleteReason::ContentLong)
            }
            _ => Completeness::Complete,
        }
    }

    /// This result, except that a complete response becomes incomplete if PHP reported a fatal error.
    pub fn and_php(self, fatal: PhpFatal) -> Completeness {
        match (self, fatal) {
            (Completeness::Complete, PhpFatal::Reported) => {
                Completeness::Incomplete(IncompleteReason::PhpFatal)
            }
            (judged, _) => judged,
        }
    }
}

/// How much of the request's content has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinSent {
    /// All content, and the empty record that ends it.
    Whole,
    /// Only a part: the responder would read the next request as the rest of this one.
    Partly,
}

/// Whether to keep a connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The connection may carry another request.
    Keep,
    /// The connection must be closed.
    Close(CloseReason),
}

/// The reason why a connection cannot be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The request did not ask the responder to keep the connection open.
    NotAsked,
    /// The response was abandoned or refused before its end.
    ResponseUnfinished,
    /// The responder ended the request before all of its content was sent.
    StdinUnfinished,
    /// The responder ended the request for lack of a resource or a feature; the next request would fail too.
    Protocol(ProtocolStatus),
    /// The read buffer contains bytes after the end of the response.
    BytesAfterEnd,
}

impl CloseReason {
    /// The name of the reason, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            CloseReason::NotAsked => "not-asked",
            CloseReason::ResponseUnfinished => "response-unfinished",
            CloseReason::StdinUnfinished => "stdin-unfinished",
            CloseReason::Protocol(status) => status.as_str(),
            CloseReason::BytesAfterEnd => "bytes-after-end",
        }
    }
}

impl Reuse {
    /// Judges a connection by the flag in BEGIN_REQUEST and the part of STDIN that was sent. Further inputs are
    /// the reader of the response, and the number of bytes left in the read buffer.
    pub fn of(
        after: AfterRequest,
        stdin: StdinSent,
        reader: &ResponseReader,
        unread_bytes: usize,
    ) -> Reuse {
        let Some(end) = reader.end() else {
            return Reuse::Close(CloseReason::ResponseUnfinished);
        };
        if after == AfterRequest::Close {
            return Reuse::Close(CloseReason::NotAsked);
        }
        if end.protocol_status != ProtocolStatus::RequestComplete {
            return Reuse::Close(CloseReason::Protocol(end.protocol_status));
        }
        if stdin == StdinSent::Partly {
            return Reuse::Close(CloseReason::StdinUnfinished);
        }
        if !reader.at_end() {
            return Reuse::Close(CloseReason::ResponseUnfinished);
        }
        if unread_bytes > 0 {
            return Reuse::Close(CloseReason::BytesAfterEnd);
        }
        Reuse::Keep
    }
}
