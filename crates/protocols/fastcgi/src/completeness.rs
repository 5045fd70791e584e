//! Whether a response arrived whole, and whether its connection may carry another request.
//!
//! A response that is not known to be whole may still go to the client, but is never stored. It is
//! whole when END_REQUEST said so (FastCGI §5.5) and the content has the length that the program
//! declared (RFC 9110 §8.6). A connection that just closes proves nothing: so ends a killed worker.
//!
//! Not here: whether a whole response may be stored; that is for the cache to decide.

use crate::end_request::{EndRequest, ProtocolStatus};
use crate::params::AfterRequest;
use crate::php_fatal::PhpFatal;
use crate::response::ResponseReader;

/// Whether the response carries the content its `Content-Length` speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFraming {
    /// It carries content.
    Content,
    /// It answers HEAD, or is a 204 or 304: `Content-Length`, if there, is not its own (RFC 9110
    /// §6.4.1, §8.6), and content the program sent all the same is dropped.
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

/// Whether a response arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// All of it is here.
    Complete,
    /// It is not, or nobody can tell.
    Incomplete(IncompleteReason),
}

/// Why a response does not count as whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompleteReason {
    /// The connection closed, or was given up, before END_REQUEST.
    EndMissing,
    /// END_REQUEST came with another status than `FCGI_REQUEST_COMPLETE`.
    Protocol(ProtocolStatus),
    /// The program ended with a status of its own other than 0: it may have died half-way.
    AppStatus(u32),
    /// Less content than `Content-Length` declares.
    ContentShort,
    /// More content than `Content-Length` declares.
    ContentLong,
    /// PHP reported on STDERR that the script has died.
    PhpFatal,
}

impl IncompleteReason {
    /// The reason's name, for logs and metrics.
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
    /// Judges a response by its END_REQUEST if one came, the `Content-Length` it declared, if any,
    /// and the bytes of content received after the head.
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

    /// The same judgement, but a response that seemed whole is not if PHP reported its death.
    pub fn and_php(self, fatal: PhpFatal) -> Completeness {
        match (self, fatal) {
            (Completeness::Complete, PhpFatal::Reported) => {
                Completeness::Incomplete(IncompleteReason::PhpFatal)
            }
            (judged, _) => judged,
        }
    }
}

/// How much of the request's content has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinSent {
    /// All of it, and the empty record that ends it.
    Whole,
    /// Not all: the responder would take the next request for the rest of this one.
    Partly,
}

/// What to do with a connection once a request on it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It may carry another request.
    Keep,
    /// It has to be closed.
    Close(CloseReason),
}

/// Why a connection cannot be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The request did not ask for it to be kept.
    NotAsked,
    /// The response was given up or refused before its end.
    ResponseUnfinished,
    /// The responder ended the request before all of its content was sent.
    StdinUnfinished,
    /// The responder ended the request for want of something; the next would fare no better.
    Protocol(ProtocolStatus),
    /// Bytes lie in the read buffer that belong to no request.
    BytesAfterEnd,
}

impl CloseReason {
    /// The reason's name, for logs and metrics.
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
    /// Judges a connection by what was asked in BEGIN_REQUEST, how much of STDIN was sent, the
    /// reader of the response, and how many bytes are left in the buffer it read from.
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
