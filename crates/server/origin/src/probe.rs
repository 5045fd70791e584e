//! Tests whether an origin can be reached, for `pagewell check`: connects, and sends one message that
//! runs no code of the site.
//!
//! A FastCGI responder gets a GET_VALUES record (FastCGI §4.1), which php-fpm and libfcgi answer
//! themselves. An HTTP server gets `OPTIONS *`, which concerns the server and no resource (RFC 9110
//! section 9.3.7); any HTTP/1 status line is an answer. Not here: sentences for the operator, and the
//! user by which the connection is made.

use config::Address;
use fastcgi::pairs;
use fastcgi::record::{HEADER_LEN, MANAGEMENT_ID, RecordHeader, RecordType, VERSION};
use sockets::Socket;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The beginning of an HTTP/1 status line.
const STATUS_LINE: &[u8] = b"HTTP/1.";

/// Why an origin is not ready for requests.
#[derive(Debug)]
pub enum ProbeFailure {
    /// The system refused the connection.
    NotConnected(io::Error),
    /// The connection was not established in time.
    ConnectTimedOut,
    /// The connection was closed before a complete answer.
    Closed,
    /// The connection was established, and no answer arrived in time.
    AnswerTimedOut,
    /// The answer is not of the expected protocol.
    OtherProtocol,
}

/// Connects to a FastCGI responder and requests one of its values. Each of the two steps may take as
/// long as `limit`.
///
/// # Errors
/// The responder cannot be reached, or is no FastCGI responder.
pub async fn fastcgi(address: &Address, limit: Duration) -> Result<(), ProbeFailure> {
    let socket = connected(limit, Socket::connect(address)).await?;
    let mut content = Vec::new();
    pairs::encode(b"FCGI_MPXS_CONNS", b"", &mut content);
    let length = u16::try_from(content.len()).unwrap_or_default();
    let header = RecordHeader::new(RecordType::GetValues, MANAGEMENT_ID, length);
    let message = [&header.encode()[..], &content].concat();
    let start: [u8; HEADER_LEN] = exchange(socket, &message, limit).await?;
    let answer = RecordHeader::decode(start);
    let kinds = [RecordType::GetValuesResult as u8, RecordType::UnknownType as u8];
    let is_answer = answer.version == VERSION
        && answer.request_id == MANAGEMENT_ID
        && kinds.contains(&answer.type_number);
    if is_answer { Ok(()) } else { Err(ProbeFailure::OtherProtocol) }
}

/// Connects to an HTTP server (`host` or `host:port`) and requests its options. Each of the two steps
/// may take as long as `limit`.
///
/// # Errors
/// The server cannot be reached, or is no HTTP server.
pub async fn http(authority: &str, limit: Duration) -> Result<(), ProbeFailure> {
    let place = match authority.parse::<::http::uri::Authority>() {
        Ok(parsed) if parsed.port().is_none() => format!("{}:80", parsed.host()),
        _ => authority.to_owned(),
    };
    let socket = connected(limit, TcpStream::connect(place)).await?;
    let message = format!("OPTIONS * HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    let start: [u8; STATUS_LINE.len()] = exchange(socket, message.as_bytes(), limit).await?;
    if start == STATUS_LINE { Ok(()) } else { Err(ProbeFailure::OtherProtocol) }
}

async fn connected<S>(
    limit: Duration,
    connecting: impl Future<Output = io::Result<S>>,
) -> Result<S, ProbeFailure> {
    match timeout(limit, connecting).await {
        Ok(connected) => connected.map_err(ProbeFailure::NotConnected),
        Err(_) => Err(ProbeFailure::ConnectTimedOut),
    }
}

/// Sends a message and reads the first bytes of the answer.
async fn exchange<const LEN: usize>(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    message: &[u8],
    limit: Duration,
) -> Result<[u8; LEN], ProbeFailure> {
    let mut start = [0; LEN];
    let both = async {
        socket.write_all(message).await?;
        socket.read_exact(&mut start).await
    };
    match timeout(limit, both).await {
        Ok(Ok(_)) => Ok(start),
        Ok(Err(_)) => Err(ProbeFailure::Closed),
        Err(_) => Err(ProbeFailure::AnswerTimedOut),
    }
}
