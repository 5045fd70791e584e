//! Tests whether an origin can be reached, for `pagewell check`: connects, and sends one message that
//! runs no code of the site.
//!
//! A FastCGI responder gets a GET_VALUES record (FastCGI §4.1), which php-fpm and libfcgi answer
//! themselves. An HTTP server gets `OPTIONS *`, which concerns the server and no resource (RFC 9110
//! section 9.3.7); any HTTP/1 status line is an answer. Not here: sentences for the operator, and the
//! user by which the connection is made.

use config::{Address, OriginServer};
use fastcgi::pairs;
use fastcgi::record::{HEADER_LEN, MANAGEMENT_ID, RecordHeader, RecordType, VERSION};
use origin_servers::Connector;
use sockets::Socket;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
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

/// Connects to an HTTP server and requests its options. Each of the two steps may take as long as `limit`.
///
/// # Errors
/// The server cannot be reached, its certificate is not valid for it, or it is no HTTP server.
pub async fn http(
    server: &OriginServer,
    connector: Connector,
    limit: Duration,
) -> Result<(), ProbeFailure> {
    let connecting = async {
        let uri = server.to_string().parse().map_err(io::Error::other)?;
        connector.connect(uri).await.map_err(|error| io::Error::new(kind(&*error), error))
    };
    let socket = connected(limit, connecting).await?;
    let authority = &server.authority;
    let message = format!("OPTIONS * HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    let start: [u8; STATUS_LINE.len()] = exchange(socket, message.as_bytes(), limit).await?;
    if start == STATUS_LINE { Ok(()) } else { Err(ProbeFailure::OtherProtocol) }
}

/// The kind of the system's error behind this one.
fn kind(error: &(dyn std::error::Error + 'static)) -> io::ErrorKind {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut causes = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.next().map_or(io::ErrorKind::Other, io::Error::kind)
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
