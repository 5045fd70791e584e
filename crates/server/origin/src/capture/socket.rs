//! The socket that PHP reports on: accepts connections, compares their token, and reads one report of each.
//!
//! | peer | result |
//! |---|---|
//! | sends nothing, or no valid token within [`DELIVERY`] | closed; no capture is affected |
//! | sends a token that is unknown, or was used before | closed at once |
//! | stops in the middle, sends too much or garbage | the capture of its token fails with the reason |
//! | is beyond [`CONNECTIONS_MAX`] | closed at once |
//!
//! Nothing is ever written to a peer. Memory is bounded by the captures in flight: without a token a peer
//! has a buffer of at most one read.

use super::format::{CaptureReport, REPORT_BYTES, parse_capture, read_token};
use super::{CaptureAccess, NotCaptured, TOKEN_BYTES, Token};
use bytes::BytesMut;
use std::collections::HashMap;
use std::fs::{Permissions, remove_file, rename, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Maximum number of concurrent connections.
pub const CONNECTIONS_MAX: usize = 256;
/// Maximum time from the acceptance of a connection to the end of its report.
pub const DELIVERY: Duration = Duration::from_secs(2);
/// Maximum size of one read, in bytes.
const READ_BYTES: usize = 32 << 10;
/// The wait after the system refused to accept a connection, for instance because of too many open
/// files.
pub const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The receiver of a report.
type ReportSender = oneshot::Sender<Result<CaptureReport, NotCaptured>>;

/// The captures that have begun, by token.
#[derive(Default)]
pub struct Pending {
    /// Held only to add or remove one.
    senders: Mutex<HashMap<Token, ReportSender>>,
}

impl Pending {
    /// Makes a token valid.
    pub fn expect(&self, token: Token) -> oneshot::Receiver<Result<CaptureReport, NotCaptured>> {
        let (sender, receiver) = oneshot::channel();
        self.senders.lock().unwrap_or_else(PoisonError::into_inner).insert(token, sender);
        receiver
    }

    /// Makes a token invalid.
    pub fn forget(&self, token: &Token) -> Option<ReportSender> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner).remove(token)
    }
}

/// Opens the socket for these users. It replaces one that exists, in one step.
///
/// # Errors
/// The path is too long, or the directory cannot be written: a sentence for the operator.
pub fn bind(path: &Path, access: CaptureAccess) -> Result<UnixListener, String> {
    let mode = if access == CaptureAccess::Owner { 0o600 } else { 0o666 };
    let new = path.with_extension(std::process::id().to_string());
    let open = || {
        if new.symlink_metadata().is_ok() {
            remove_file(&new)?;
        }
        let listener = UnixListener::bind(&new)?;
        set_permissions(&new, Permissions::from_mode(mode))?;
        rename(&new, path)?;
        Ok(listener)
    };
    open().map_err(|error: std::io::Error| {
        format!("the socket {} cannot be opened: {error}", path.display())
    })
}

/// Accepts connections, until the task is aborted, which also ends those that are open.
pub async fn serve(listener: UnixListener, pending: Arc<Pending>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn(receive(stream, pending.clone()));
                }
                // Closed at once.
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Reads the report of one connection, and hands it to the capture of its token.
async fn receive(mut stream: UnixStream, pending: Arc<Pending>) {
    let (mut bytes, mut sender) = (BytesMut::new(), None);
    let reading = read(&mut stream, &pending, &mut bytes, &mut sender);
    let end = tokio::time::timeout(DELIVERY, reading).await.unwrap_or(ReadEnd::CutOff);
    let Some(sender) = sender else { return };
    let outcome = match end {
        ReadEnd::Whole => parse_capture(&bytes).outcome,
        ReadEnd::CutOff => Err(NotCaptured::CutOff),
        ReadEnd::TooLarge => Err(NotCaptured::TooLarge("4 MB")),
    };
    // The capture may have been dropped.
    let _ = sender.send(outcome);
}

/// How the reading of a connection ended.
enum ReadEnd {
    Whole,
    CutOff,
    TooLarge,
}

/// Reads until the peer closes. As soon as the token has arrived, `sender` becomes the receiver of its report;
/// without a valid token the reading ends.
async fn read(
    stream: &mut UnixStream,
    pending: &Pending,
    bytes: &mut BytesMut,
    sender: &mut Option<ReportSender>,
) -> ReadEnd {
    loop {
        bytes.reserve(READ_BYTES);
        match stream.read_buf(bytes).await {
            Ok(0) => return ReadEnd::Whole,
            Ok(_) => {}
            Err(_) => return ReadEnd::CutOff,
        }
        if bytes.len() > REPORT_BYTES {
            return ReadEnd::TooLarge;
        }
        if sender.is_none() {
            match read_token(bytes) {
                Ok(None) => continue,
                Ok(Some((token, _))) => {
                    let token = <&[u8; TOKEN_BYTES]>::try_from(token).ok();
                    *sender = token.and_then(|token| pending.forget(token));
                }
                Err(_) => {}
            }
            if sender.is_none() {
                return ReadEnd::CutOff;
            }
        }
    }
}
