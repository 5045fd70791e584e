//! The socket that PHP reports on: accepts connections, compares their token, and reads one report of each.
//!
//! | peer | result |
//! |---|---|
//! | sends nothing, or no valid token within [`DELIVERY`] | closed; no capture is affected |
//! | sends a token that is unknown, or was used before | closed at once |
//! | stops in the middle, sends too much or garbage | the capture of its token fails with the reason |
//! | is of another user than PHP's, where that is known | closed at once |
//! | is beyond [`CONNECTIONS_MAX`] of its user, or [`STRANGER_MAX`] before that user's first valid token | closed at once |
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

/// Maximum number of concurrent connections of PHP's user: one that has sent a valid token.
pub const CONNECTIONS_MAX: usize = 256;
/// Maximum number of concurrent connections of any other user.
pub const STRANGER_MAX: usize = 16;
/// Maximum number of users that are remembered for their tokens.
const REPORTERS_MAX: usize = 64;
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

/// The users that connect. No user takes the connections of another.
#[derive(Default)]
struct PeerCounts {
    /// Held only to count.
    users: Mutex<HashMap<u32, PeerCount>>,
}

#[derive(Default)]
struct PeerCount {
    open: usize,
    /// Whether a connection of this user has sent a valid token.
    has_reported: bool,
}

/// A connection that is counted, until it is dropped.
struct CountedPeer {
    counts: Arc<PeerCounts>,
    user: u32,
}

impl PeerCounts {
    /// Counts a connection of this user. `None` if it is refused.
    fn enter(self: &Arc<Self>, user: u32, access: CaptureAccess) -> Option<CountedPeer> {
        let own = rustix::process::geteuid().as_raw();
        let is_php = match access {
            CaptureAccess::Owner => user == own,
            CaptureAccess::User(php) => user == php || user == own,
            CaptureAccess::Everyone => false,
        };
        if !is_php && access != CaptureAccess::Everyone {
            return None;
        }
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let count = users.entry(user).or_default();
        let max = if is_php || count.has_reported { CONNECTIONS_MAX } else { STRANGER_MAX };
        if count.open >= max {
            return None;
        }
        count.open += 1;
        Some(CountedPeer { counts: self.clone(), user })
    }
}

impl CountedPeer {
    /// Records that the connection has sent a valid token.
    fn has_reported(&self) {
        let mut users = self.counts.users.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = users.values().filter(|count| count.has_reported).count() < REPORTERS_MAX;
        if let Some(count) = users.get_mut(&self.user).filter(|_| is_room) {
            count.has_reported = true;
        }
    }
}

impl Drop for CountedPeer {
    fn drop(&mut self) {
        let mut users = self.counts.users.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = users.get_mut(&self.user) else { return };
        count.open -= 1;
        if count.open == 0 && !count.has_reported {
            users.remove(&self.user);
        }
    }
}

/// Accepts connections, until the task is aborted, which also ends those that are open.
pub async fn serve(listener: UnixListener, access: CaptureAccess, pending: Arc<Pending>) {
    let (mut connections, counts) = (JoinSet::new(), Arc::new(PeerCounts::default()));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let user = stream.peer_cred().ok().map(|peer| peer.uid());
                    // Any other is closed at once.
                    if let Some(peer) = user.and_then(|user| counts.enter(user, access)) {
                        connections.spawn(receive(stream, peer, pending.clone()));
                    }
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Reads the report of one connection, and hands it to the capture of its token.
async fn receive(mut stream: UnixStream, peer: CountedPeer, pending: Arc<Pending>) {
    let (mut bytes, mut sender) = (BytesMut::new(), None);
    let reading = read(&mut stream, (&peer, &pending), &mut bytes, &mut sender);
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
    (peer, pending): (&CountedPeer, &Pending),
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
            peer.has_reported();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_does_not_take_the_connections_of_another() {
        let counts = Arc::new(PeerCounts::default());
        let enter = |user| counts.enter(user, CaptureAccess::Everyone);
        let php = enter(33).expect("the first");
        let hostile: Vec<_> = (0..300).filter_map(|_| enter(1000)).collect();
        assert_eq!(hostile.len(), STRANGER_MAX);
        php.has_reported();
        let more: Vec<_> = (0..300).filter_map(|_| enter(33)).collect();
        assert_eq!(more.len(), CONNECTIONS_MAX - 1);
        drop((php, hostile, more));
        let known = counts.users.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(known.keys().collect::<Vec<_>>(), [&33], "no stranger is remembered");
    }

    #[test]
    fn only_phps_user_connects_where_it_is_known() {
        let counts = Arc::new(PeerCounts::default());
        let own = rustix::process::geteuid().as_raw();
        for (access, user, expected) in [
            (CaptureAccess::Owner, own, true),
            (CaptureAccess::Owner, own + 1, false),
            (CaptureAccess::User(own + 1), own + 1, true),
            (CaptureAccess::User(own + 1), own, true),
            (CaptureAccess::User(own + 1), own + 2, false),
            (CaptureAccess::Everyone, own + 2, true),
        ] {
            assert_eq!(counts.enter(user, access).is_some(), expected, "{access:?} {user}");
        }
    }
}
