//! Why a request is refused before anything is decided about it: its name in the response, in the log and in
//! the metrics, and its status code.
//!
//! Each reason is one row of the table of `docs/operating/errors.md`.

use http::StatusCode;

/// Why a request is refused before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not the grammar of RFC 9112.
    Malformed,
    /// A line that does not end in CR LF.
    BareLineFeed,
    /// The request line's target is too long.
    TargetTooLong,
    /// A character in the request line's target that is to be percent-encoded there.
    TargetInvalid,
    /// The header section is too long.
    HeadTooLarge,
    /// Too many header lines.
    TooManyHeaders,
    /// No Host line in HTTP/1.1.
    HostMissing,
    /// More than one Host line.
    HostRepeated,
    /// More than one length, or one that is no number.
    LengthInvalid,
    /// A length and a transfer coding.
    LengthAndCoding,
    /// A transfer coding other than chunked, or one in HTTP/1.0.
    CodingUnknown,
    /// The content is too long.
    ContentTooLarge,
    /// CONNECT: this is no proxy for strangers.
    MethodConnect,
    /// The header section did not arrive in time.
    HeadTimeout,
    /// The content did not arrive in time.
    ContentTimeout,
    /// The content comes too slowly.
    ContentTooSlow,
    /// The content broke off, or its chunks cannot be read.
    ContentMalformed,
    /// So much content of requests waits on the disk that there is no room for this.
    ContentNoRoom,
    /// The disk did not take the content, or did not give it back.
    ContentNotKept,
    /// The client's address has too many requests at once over HTTP/2.
    TooManyStreams,
}

impl Refusal {
    /// The status code that answers it.
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

    /// Its name, as it stands in the answer and in the log.
    pub fn as_str(self) -> &'static str {
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

    /// The whole answer; the connection ends with it.
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
