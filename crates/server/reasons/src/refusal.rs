//! The reasons for refusing a request before it is processed. Each has a name in the response, in
//! the log and in the metrics, and a status code.
//!
//! Each reason is one row of the table in `docs/operating/errors.md`.

use http::StatusCode;

/// Why a request is refused before it is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Invalid syntax (RFC 9112).
    Malformed,
    /// A line that ends in LF without CR.
    BareLineFeed,
    /// The request target is too long.
    TargetTooLong,
    /// A character in the request target that has to be percent-encoded.
    TargetInvalid,
    /// The header section is too long.
    HeadTooLarge,
    /// Too many header lines.
    TooManyHeaders,
    /// No Host field in HTTP/1.1.
    HostMissing,
    /// More than one Host field.
    HostRepeated,
    /// More than one length, or an invalid one.
    LengthInvalid,
    /// A length and a transfer coding.
    LengthAndCoding,
    /// A transfer coding other than chunked, or one in HTTP/1.0.
    CodingUnknown,
    /// The content is too long.
    ContentTooLarge,
    /// CONNECT, which is not supported: Pagewell is not a forward proxy.
    MethodConnect,
    /// The header section did not arrive in time.
    HeadTimeout,
    /// The content did not arrive in time.
    ContentTimeout,
    /// The content arrives too slowly.
    ContentTooSlow,
    /// The content was cut off, or its chunks are invalid.
    ContentMalformed,
    /// The disk space for content of requests is used up.
    ContentNoRoom,
    /// The content could not be written to the disk, or not be read back.
    ContentNotKept,
    /// The client's address has too many HTTP/2 requests in progress.
    TooManyStreams,
}

impl Refusal {
    /// The status code of the response.
    pub fn status(self) -> StatusCode {
        match self {
            Refusal::TargetTooLong => StatusCode::URI_TOO_LONG,
            Refusal::HeadTooLarge | Refusal::TooManyHeaders => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Refusal::CodingUnknown => StatusCode::NOT_IMPLEMENTED,
            Refusal::ContentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::MethodConnect => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::HeadTimeout | Refusal::ContentTimeout | Refusal::ContentTooSlow => {
                StatusCode::REQUEST_TIMEOUT
            }
            Refusal::ContentNoRoom | Refusal::TooManyStreams => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::ContentNotKept => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// The reason's name in the response and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::BareLineFeed => "bare-line-feed",
            Refusal::TargetTooLong => "target-too-long",
            Refusal::TargetInvalid => "target-invalid",
            Refusal::HeadTooLarge => "head-too-large",
            Refusal::TooManyHeaders => "too-many-headers",
            Refusal::HostMissing => "host-missing",
            Refusal::HostRepeated => "host-repeated",
            Refusal::LengthInvalid => "length-invalid",
            Refusal::LengthAndCoding => "length-and-coding",
            Refusal::CodingUnknown => "coding-unknown",
            Refusal::ContentTooLarge => "content-too-large",
            Refusal::MethodConnect => "method-connect",
            Refusal::HeadTimeout => "head-timeout",
            Refusal::ContentTimeout => "content-timeout",
            Refusal::ContentTooSlow => "content-too-slow",
            Refusal::ContentMalformed => "content-malformed",
            Refusal::ContentNoRoom => "content-no-room",
            Refusal::ContentNotKept => "content-not-kept",
            Refusal::TooManyStreams => "too-many-streams",
        }
    }

    /// The complete response, after which the connection is closed.
    pub fn answer(self) -> Vec<u8> {
        let status = self.status();
        let text = format!("{status}: {}\n", self.as_str());
        let allow = if self == Refusal::MethodConnect { "allow: GET, HEAD\r\n" } else { "" };
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n{allow}\
             content-length: {}\r\ncache-control: no-store\r\n\
             cache-status: pagewell; detail={}\r\nconnection: close\r\n\r\n{text}",
            text.len(),
            self.as_str(),
        )
        .into_bytes()
    }
}
