//! END_REQUEST: the end of a request (FastCGI §5.5).
//!
//! The last record of a response contains the status of the program and the status of the protocol. Any number
//! decodes; one that the specification does not define keeps its value. Not here: the consequence for the
//! response, see [`crate::completeness`].

use crate::record::BODY_LEN;

/// The content of END_REQUEST (FastCGI §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The status of the program: the exit status of a CGI program. php-fpm always sends 0.
    pub app_status: u32,
    /// The status of the protocol.
    pub protocol_status: ProtocolStatus,
}

/// The protocol status of a request (FastCGI §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolStatus {
    /// `FCGI_REQUEST_COMPLETE`: the normal end.
    RequestComplete,
    /// `FCGI_CANT_MPX_CONN`: a second concurrent request on a connection that supports only one.
    CannotMultiplex,
    /// `FCGI_OVERLOADED`: a resource is exhausted; the same request may succeed later.
    Overloaded,
    /// `FCGI_UNKNOWN_ROLE`: the program does not support the role of a responder.
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

    /// The number to send.
    pub fn number(self) -> u8 {
        match self {
            ProtocolStatus::RequestComplete => 0,
            ProtocolStatus::CannotMultiplex => 1,
            ProtocolStatus::Overloaded => 2,
            ProtocolStatus::UnknownRole => 3,
            ProtocolStatus::Other(number) => number,
        }
    }

    /// The name of the status, for logs and metrics.
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
    /// Decodes the record's content: application status, protocol status, three reserved bytes.
    pub fn decode(body: [u8; BODY_LEN]) -> EndRequest {
        EndRequest {
            app_status: u32::from_be_bytes([body[0], body[1], body[2], body[3]]),
            protocol_status: ProtocolStatus::from_number(body[4]),
        }
    }

    /// The record's content to send.
    pub fn encode(self) -> [u8; BODY_LEN] {
        let [a, b, c, d] = self.app_status.to_be_bytes();
        [a, b, c, d, self.protocol_status.number(), 0, 0, 0]
    }
}
