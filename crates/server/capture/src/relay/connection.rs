//! One relayed connection: bytes between PHP and the database, until either side ends it.
//!
//! | peer | result |
//! |---|---|
//! | a user other than PHP's | closed without a word |
//! | connects while the database is not reachable | an error packet with the reason |
//! | does not log in within [`LOGIN`] | closed |
//! | sends what cannot be followed | an error packet with the reason, closed |
//!
//! Invariant: a statement is recorded before the database gets its last byte. Memory: two buffers, and what
//! `mysql-relay` holds. Not here: what the packets mean.

use super::ledger::{Ledger, LedgerId};
use super::{PeerUsers, RelayTarget, users};
use config::Place;
use event_log::Seldom;
use mysql_relay::{AccountCheck, IsGreeted, Relay, RelayEvent, RelayRefused, error_packet};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

/// Maximum time to connect to the database.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum time from the acceptance of a connection to the end of its login.
const LOGIN: Duration = Duration::from_secs(30);
/// Maximum time for what the database has sent before it closed the connection.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Maximum size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;
/// How often a problem is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A connection to the database.
trait Stream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

/// The books, which many connections write to.
pub type SharedLedger = Arc<Mutex<Ledger>>;

/// The entry of a connection in the books, which ends with it.
struct Entry {
    ledger: SharedLedger,
    id: LedgerId,
}

impl Entry {
    fn record(&self, events: &mut Vec<RelayEvent>) {
        if events.is_empty() {
            return;
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        events.drain(..).for_each(|event| ledger.record(self.id, event));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).close(self.id);
    }
}

/// Serves a connection that was accepted on the socket of a slot.
pub async fn serve(
    mut client: UnixStream,
    slot: usize,
    target: Arc<RelayTarget>,
    books: SharedLedger,
) {
    let Ok(peer) = client.peer_cred() else { return };
    let own = rustix::process::geteuid().as_raw();
    let is_allowed = match &target.users {
        PeerUsers::Everyone => true,
        PeerUsers::Only(user) => peer.uid() == own || peer.uid() == *user,
    };
    if !is_allowed {
        let why = format!("a process of user {} connected", peer.uid());
        log_refused(&target, "other-user", &why);
        return;
    }
    let id = books.lock().unwrap_or_else(PoisonError::into_inner).accept(slot, peer.pid());
    let entry = Entry { ledger: books, id };
    let server = match timeout(CONNECT, connect(&target.place)).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => return unreachable(&mut client, &target, &error.to_string()).await,
        Err(_) => return unreachable(&mut client, &target, "no answer within 5 s").await,
    };
    // Over TCP, no server knows the user of a process.
    let check = match target.place {
        Place::Unix(_) if peer.uid() != own => AccountCheck::Password(users::name_of(own)),
        Place::Unix(_) | Place::Tcp(..) => AccountCheck::None,
    };
    let mut relay = Relay::new(check, target.schema.as_bytes());
    if let Err(refused) = pass(&mut client, server, &mut relay, &entry).await {
        log_refused(&target, refused.as_str(), &refused.to_string());
        entry.record(&mut vec![RelayEvent::Unknown("a connection to the database was refused")]);
        let _ = timeout(LOGIN, client.write_all(&relay.farewell(&refused))).await;
    } else if relay.is_logged_in() && !relay.is_idle() {
        let ended = "a connection to the database ended within a statement or its result";
        entry.record(&mut vec![RelayEvent::Unknown(ended)]);
    }
}

/// Passes bytes until one side closes.
async fn pass(
    client: &mut UnixStream,
    mut server: Pin<Box<dyn Stream>>,
    relay: &mut Relay,
    entry: &Entry,
) -> Result<(), RelayRefused> {
    let (mut from_client, mut from_server) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    let (mut out, mut events) = (Vec::with_capacity(READ_BYTES), Vec::new());
    let login_ends = Instant::now() + LOGIN;
    loop {
        out.clear();
        let (taken, is_for_server) = tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(length) if length > 0 => {
                    let bytes = &from_client[..length];
                    (relay.take_from_client(bytes, &mut out, &mut events), true)
                }
                _ => return Ok(()),
            },
            read = server.read(&mut from_server) => match read {
                Ok(length) if length > 0 => {
                    let bytes = &from_server[..length];
                    (relay.take_from_server(bytes, &mut out, &mut events), false)
                }
                _ => return Ok(()),
            },
            () = tokio::time::sleep_until(login_ends), if !relay.is_logged_in() => return Ok(()),
        };
        entry.record(&mut events);
        let written = if !is_for_server {
            client.write_all(&out).await
        } else if taken.is_ok() {
            server.write_all(&out).await
        } else {
            Ok(())
        };
        taken?;
        if written.is_err() {
            if is_for_server {
                let _ = timeout(LAST_WORDS, pass_last(client, &mut server, relay)).await;
            }
            return Ok(());
        }
    }
}

/// Passes on what the database has sent before it stopped reading, such as the reason (ER_NET_PACKET_TOO_LARGE).
async fn pass_last(
    client: &mut UnixStream,
    server: &mut Pin<Box<dyn Stream>>,
    relay: &mut Relay,
) -> io::Result<()> {
    let (mut bytes, mut out) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let length = server.read(&mut bytes).await?;
        out.clear();
        let taken = relay.take_from_server(&bytes[..length], &mut out, &mut Vec::new());
        if length == 0 || taken.is_err() {
            return Ok(());
        }
        client.write_all(&out).await?;
    }
}

async fn connect(place: &Place) -> io::Result<Pin<Box<dyn Stream>>> {
    Ok(match place {
        Place::Unix(path) => Box::pin(UnixStream::connect(path).await?),
        Place::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Box::pin(stream)
        }
    })
}

/// Tells a client, and the operator, that the database cannot be reached.
async fn unreachable(client: &mut UnixStream, target: &RelayTarget, error: &str) {
    static LOGGED: Seldom = Seldom::once_in(LOG_EVERY);
    let address = target.place.to_string();
    if LOGGED.is_due(target.started.elapsed()) {
        tracing::warn!(event = "sql-relay-unreachable", address, error);
    }
    let text = format!("the database at {address} cannot be reached: {error}");
    let _ = timeout(LOGIN, client.write_all(&error_packet(0, &text, IsGreeted::No))).await;
}

fn log_refused(target: &RelayTarget, reason: &'static str, why: &str) {
    static LOGGED: Seldom = Seldom::once_in(LOG_EVERY);
    if LOGGED.is_due(target.started.elapsed()) {
        tracing::warn!(event = "sql-relay-refused", reason, why);
    }
}
