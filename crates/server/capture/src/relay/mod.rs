//! The relay: captures the statements of any PHP application between PHP and its database
//! ([0089](../../../../../../docs/decisions/automatic-dependencies.md)).
//!
//! | step | where |
//! |---|---|
//! | each FastCGI connection leases a slot, a Unix socket `sql-N.sock` | here |
//! | its first request sets the default socket of PHP's worker (`PHP_VALUE`) | `fastcgi` |
//! | connections to the socket are relayed to the database | `connection` |
//! | the statements that pass are booked for the request of the slot | `ledger` |
//! | `php/capture/hidden-reads.php` says on the response that a cache hides reads | PHP |
//!
//! A lock guards the books; it is held for single entries. Not here: the protocol (`mysql-relay`).

mod connection;
mod ledger;
pub mod users;

use self::connection::{SharedLedger, serve};
use self::ledger::{Ledger, LedgerId};
use super::socket::{ACCEPT_AGAIN, bind};
use super::{CaptureAccess, CaptureReport, NotCaptured, check_directory, server_of, write_file};
use config::{Automatic, Config, Place};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::UnixListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// The file that PHP runs before each script, and its content.
const FILE: (&str, &str) =
    ("hidden-reads.php", include_str!("../../../../../php/capture/hidden-reads.php"));
/// Maximum number of slots.
const SLOTS_MAX: usize = 256;
/// Maximum number of relayed connections, and of those of one user: no account takes them all.
const CONNECTIONS_MAX: usize = 1024;
const USER_CONNECTIONS_MAX: usize = 512;

/// The users whose processes may connect to the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerUsers {
    /// Pagewell's user, and the one with this number.
    Only(u32),
    /// Every user that can enter the directory.
    Everyone,
}

/// The database that a relay connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayTarget {
    /// The address of the database.
    pub place: Place,
    /// The name of the database whose tables are known.
    pub schema: String,
    /// The users whose processes may connect.
    pub users: PeerUsers,
    /// The number of slots: the PHP workers that can be in use at a time.
    pub slots: usize,
    /// The time from which the intervals between log messages count.
    pub started: Instant,
}

impl RelayTarget {
    /// The target for the automatic dependencies of a site, with room for `workers` PHP workers.
    ///
    /// # Errors
    /// The database is not configured: a sentence for the operator.
    pub fn of(
        config: &Config,
        automatic: &Automatic,
        workers: usize,
    ) -> Result<RelayTarget, String> {
        let server = server_of(config, automatic)?;
        Ok(RelayTarget {
            place: server.place.clone(),
            schema: server.account.database.clone(),
            users: PeerUsers::Everyone,
            // A connection that is being closed still has its slot.
            slots: workers.saturating_mul(2).clamp(1, SLOTS_MAX),
            started: Instant::now(),
        })
    }
}

/// The relay of a site.
pub struct SqlRelay {
    directory: PathBuf,
    access: CaptureAccess,
    target: Arc<RelayTarget>,
    books: SharedLedger,
    /// The relayed connections. Held only to add one.
    connections: Arc<Mutex<RelayConnections>>,
    /// The tasks that accept connections. Held only to replace them.
    accepting: Mutex<Vec<AbortHandle>>,
}

impl SqlRelay {
    /// Opens the sockets in `directory`, and serves them on tasks that end when this is dropped. Needs a tokio
    /// runtime.
    ///
    /// # Errors
    /// The system refuses a socket, other users can write to the directory, or the path cannot be a value in
    /// PHP's configuration: a sentence for the operator.
    pub fn open(
        directory: &Path,
        access: CaptureAccess,
        target: RelayTarget,
    ) -> Result<SqlRelay, String> {
        check_directory(directory)?;
        let is_plain =
            |text: &str| !text.chars().any(|c| c.is_control() || matches!(c, '"' | '$' | '\\'));
        if !directory.to_str().is_some_and(is_plain) {
            return Err(format!(
                "{}: the path has characters that cannot be in a setting of PHP",
                directory.display()
            ));
        }
        let relay = SqlRelay {
            directory: directory.to_owned(),
            access,
            books: Arc::new(Mutex::new(Ledger::new(target.slots))),
            target: Arc::new(target),
            connections: Arc::default(),
            accepting: Mutex::default(),
        };
        relay.restore()?;
        Ok(relay)
    }

    /// Writes the file and opens the sockets again. Connections that are open stay.
    ///
    /// # Errors
    /// As for [`SqlRelay::open`].
    pub fn restore(&self) -> Result<(), String> {
        write_file(&self.directory, self.access, FILE.0, FILE.1)?;
        let open = |slot| bind(&self.socket(slot), self.access);
        let sockets = (0..=self.target.slots).map(open);
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        let started = sockets.into_iter().enumerate().map(|(slot, listener)| {
            let (target, books) = (self.target.clone(), self.books.clone());
            tokio::spawn(accept(listener, slot, target, books, self.connections.clone()))
                .abort_handle()
        });
        self.accept_by(started.collect());
        Ok(())
    }

    /// Whether the file and the sockets exist; a clean-up job might have removed them.
    pub fn are_there(&self) -> bool {
        let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
        is_there(self.file()) && (0..=self.target.slots).all(|slot| is_there(self.socket(slot)))
    }

    /// The file for PHP's setting `auto_prepend_file`.
    pub fn file(&self) -> PathBuf {
        self.directory.join(FILE.0)
    }

    fn socket(&self, slot: usize) -> PathBuf {
        self.directory.join(format!("sql-{slot}.sock"))
    }

    fn books(&self) -> MutexGuard<'_, Ledger> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases a slot to a new FastCGI connection.
    pub fn lease(self: &Arc<Self>) -> SlotLease {
        SlotLease { slot: self.books().lease(), relay: self.clone() }
    }

    /// Begins the capture of one request.
    pub fn begin(self: &Arc<Self>) -> RelayCapture {
        RelayCapture { id: self.books().begin(), relay: self.clone() }
    }

    fn accept_by(&self, tasks: Vec<AbortHandle>) {
        let mut accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *accepting, tasks).iter().for_each(AbortHandle::abort);
    }
}

impl Drop for SqlRelay {
    fn drop(&mut self) {
        self.accept_by(Vec::new());
    }
}

/// The relayed connections of all slots.
#[derive(Default)]
struct RelayConnections {
    tasks: JoinSet<()>,
    /// For each user with open connections, a mark that each of these has.
    users: HashMap<u32, Arc<()>>,
}

impl RelayConnections {
    /// Counts a connection of this user until the mark is dropped. `None` if there is no room.
    fn enter(&mut self, user: u32) -> Option<Arc<()>> {
        while self.tasks.try_join_next().is_some() {}
        self.users.retain(|_, mark| Arc::strong_count(mark) > 1);
        let open = self.users.values().map(|mark| Arc::strong_count(mark) - 1).sum::<usize>();
        let mark = self.users.entry(user).or_default();
        let has_room = open < CONNECTIONS_MAX && Arc::strong_count(mark) <= USER_CONNECTIONS_MAX;
        has_room.then(|| mark.clone())
    }
}

/// Accepts connections on the socket of a slot, until the task is aborted.
async fn accept(
    listener: UnixListener,
    slot: usize,
    target: Arc<RelayTarget>,
    books: SharedLedger,
    connections: Arc<Mutex<RelayConnections>>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let user = stream.peer_cred().map_or(u32::MAX, |peer| peer.uid());
                let mut all = connections.lock().unwrap_or_else(PoisonError::into_inner);
                // One beyond the limits is closed at once.
                if let Some(counted) = all.enter(user) {
                    let (target, books) = (target.clone(), books.clone());
                    all.tasks.spawn(async move {
                        serve(stream, slot, target, books).await;
                        drop(counted);
                    });
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// The slot of a FastCGI connection. Drop it before the connection, because PHP's worker may serve another
/// one from then on.
pub struct SlotLease {
    relay: Arc<SqlRelay>,
    slot: usize,
}

impl SlotLease {
    /// The value of the FastCGI param `PHP_VALUE` that makes the slot the default socket of PHP's worker.
    pub fn php_value(&self) -> String {
        let path = self.relay.socket(self.slot);
        let path = path.display();
        format!("mysqli.default_socket=\"{path}\"\npdo_mysql.default_socket=\"{path}\"")
    }

    /// A request is about to be sent over the connection.
    pub fn send(&self, capture: Option<&RelayTicket>) {
        self.relay.books().send(self.slot, capture.map(|ticket| ticket.0));
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        self.relay.books().release(self.slot);
    }
}

/// The number of a capture, for the request that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct RelayTicket(LedgerId);

/// The capture of one request.
pub struct RelayCapture {
    relay: Arc<SqlRelay>,
    id: LedgerId,
}

impl RelayCapture {
    /// The ticket for the request.
    pub fn ticket(&self) -> RelayTicket {
        RelayTicket(self.id)
    }

    /// The statements of the request up to now.
    ///
    /// # Errors
    /// The reason why its statements are not known.
    pub fn report(&self) -> Result<CaptureReport, NotCaptured> {
        self.relay.books().end(self.id)
    }
}

impl Drop for RelayCapture {
    fn drop(&mut self) {
        let _ = self.relay.books().end(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_takes_all_connections() {
        let mut all = RelayConnections::default();
        let mut take =
            |user, count| -> Vec<Arc<()>> { (0..count).filter_map(|_| all.enter(user)).collect() };
        let mut first = take(7, 1_000);
        assert_eq!(first.len(), USER_CONNECTIONS_MAX);
        let second = take(33, 500);
        assert_eq!(second.len(), 500);
        assert_eq!(take(8, 100).len(), CONNECTIONS_MAX - USER_CONNECTIONS_MAX - 500);
        first.truncate(500);
        assert_eq!(take(7, 100).len(), 12);
        drop(second);
        drop(first);
        assert_eq!(take(33, 1_000).len(), USER_CONNECTIONS_MAX);
    }
}
