//! END_REQUEST: how a request ended (FastCGI §5.5).
//!
//! The last record of a response carries two answers: the program's own status, and the
//! protocol's. Any number decodes; one that the specification does not define keeps its value.
//! Not here: what follows from it for the response, see [`crate::completeness`].

use crate::record::BODY_LEN;

/// The content of END_REQUEST (FastCGI §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The program's own status: for a CGI program its exit status. php-fpm always sends 0.
    pub app_status: u32,
    /// How the protocol saw the request end.
    pub protocol_status: ProtocolStatus,
}

/// How a request ended (FastCGI §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolStatus {
    /// `FCGI_REQUEST_COMPLETE`: the normal end.
    RequestComplete,
    /// `FCGI_CANT_MPX_CONN`: a second request on a connection that takes one at a time.
    CannotMultiplex,
    /// `FCGI_OVERLOADED`: out of some resource; the same request may succeed later.
    Overloaded,
    /// `FCGI_UNKNOWN_ROLE`: not a responder.
    UnknownRole,
    /// A number that the specification does not define.
    Other(u8),
}

impl ProtocolStatus {
    /// The status with this number.
    pub fn from_number(number: u8) -> ProtocolStatus {
        match number {
            0 => ProtocolStatus::RequestComplete,
            1 => ProtocolStatus::CannotMultiplex,
            2 => ProtocolStatus::Overloaded,
            3 => ProtocolStatus::UnknownRole,
            other => ProtocolStatus::Other(other),
        }
    }

    /// The number as sent.
    pub fn number(self) -> u8 {
        match self {
            ProtocolStatus::RequestComplete => 0,
            ProtocolStatus::CannotMultiplex => 1,
            ProtocolStatus::Overloaded => 2,
            ProtocolStatus::UnknownRole => 3,
            ProtocolStatus::Other(number) => number,
        }
    }

    /// The status's name, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ProtocolStatus::RequestComplete => "request-complete",
            ProtocolStatus::CannotMultiplex => "cannot-multiplex",
            ProtocolStatus::Overloaded => "overloaded",
            ProtocolStatus::UnknownRole => "unknown-role",
            ProtocolStatus::Other(_) => "unknown-protocol-status",
        }
    }
}

impl EndRequest {
    /// Reads the record's content: application status, protocol status, three reserved bytes.
    pub fn decode(body: [u8; BODY_LEN]) -> EndRequest {
        EndRequest {
            app_status: u32::from_be_bytes([body[0], body[1], body[2], body[3]]),
            protocol_status: ProtocolStatus::from_number(body[4]),
        }
    }

    /// The record's content as sent.
    pub fn encode(self) -> [u8; BODY_LEN] {
        let [a, b, c, d] = self.app_status.to_be_bytes();
        [a, b, c, d, self.protocol_status.number(), 0, 0, 0]
    }
}
