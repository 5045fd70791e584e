//! The storage that all nodes share: certificates with their keys, accounts, records of hosts, pending challenges,
//! and locks.
//!
//! | file | contents |
//! |---|---|
//! | `directory` | files in a directory of this machine, or of a file system that several machines share |
//! | `valkey` | values in Valkey or Redis, sealed |
//! | `seal` | the encryption of these values |
//!
//! Invariants: a reader finds the old or the new value, and nothing between. A write changes the version after the
//! value, so a reader that has read the version first misses nothing. A lock has one holder at a time; its holder
//! refreshes it, and a lock that nobody refreshes becomes free, also one without content. No clock of a machine is
//! compared with that of another one.

mod directory;
mod seal;
mod valkey;

pub use directory::Directory;
pub use seal::Seal;
pub use valkey::ValkeyStorage;

use crate::randomness::random_hex;
use config::AcmeStorage;
use std::sync::Arc;
use std::time::Duration;
use telemetry::clock::Clock;

/// The longest value in bytes.
const VALUE_BYTES_MAX: u64 = 1 << 20;

/// The timeout of an operation in a directory.
const DONE_WITHIN: Duration = Duration::from_secs(10);
/// Maximum number of operations in a directory at a time.
const PLACES: usize = 16;

/// The key of a value: its kind and the name that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageKey<'a> {
    /// The kind of the value.
    pub kind: ValueKind,
    /// A host, or the hash of an authority's URL: letters, digits, dots and hyphens.
    pub name: &'a str,
}

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A certificate chain with its key.
    Certificate,
    /// The record of a host.
    Host,
    /// A pending challenge.
    Challenge,
    /// An account at an authority.
    Account,
    /// The keys of session tickets.
    Tickets,
}

impl ValueKind {
    /// The name of the folder, or the part of the key, and the end of a file's name.
    fn parts(self) -> (&'static str, &'static str) {
        match self {
            ValueKind::Certificate => ("certificates", "pem"),
            ValueKind::Host => ("hosts", "json"),
            ValueKind::Challenge => ("challenges", "json"),
            ValueKind::Account => ("accounts", "json"),
            ValueKind::Tickets => ("tickets", "json"),
        }
    }
}

/// How long a lock lasts.
#[derive(Clone, Copy, Debug)]
pub struct LockTimes {
    /// How often its holder refreshes it.
    pub refresh: Duration,
    /// After this time without a refresh it is free.
    pub stale: Duration,
}

impl Default for LockTimes {
    fn default() -> LockTimes {
        LockTimes { refresh: Duration::from_secs(5), stale: Duration::from_secs(20) }
    }
}

/// A storage; clones share it.
#[derive(Clone)]
pub enum Storage {
    /// Files in a directory.
    Directory(Arc<Directory>),
    /// Values in Valkey or Redis.
    Valkey(Arc<ValkeyStorage>),
}

impl Storage {
    /// The configured storage. Nothing is read or connected here.
    pub fn new(config: &AcmeStorage, times: LockTimes, clock: Clock) -> Storage {
        match config {
            AcmeStorage::Directory(path) => {
                Storage::Directory(Arc::new(Directory::new(path.clone(), times, clock)))
            }
            AcmeStorage::Valkey { server, prefix, seal_key } => {
                Storage::Valkey(Arc::new(ValkeyStorage::new(server, prefix, &seal_key.0, times)))
            }
        }
    }

    /// Reads a value; `None` if there is none. One that is too long is read as empty, which nobody can use.
    ///
    /// # Errors
    /// The storage cannot be used: a sentence for the operator.
    pub async fn read(&self, key: StorageKey<'_>) -> Result<Option<Vec<u8>>, String> {
        match self {
            Storage::Directory(directory) => {
                let (kind, name) = (key.kind, key.name.to_owned());
                in_directory(directory, move |directory| directory.read(kind, &name)).await
            }
            Storage::Valkey(valkey) => valkey.read(key).await,
        }
    }

    /// Reads a certificate in a directory that is refused because others may read it; `None` if there is none, or
    /// others may have written it.
    pub async fn read_exposed(&self, host: &str) -> Option<Vec<u8>> {
        let Storage::Directory(directory) = self else { return None };
        let host = host.to_owned();
        let read = in_directory(directory, move |directory| Ok(directory.read_exposed(&host)));
        read.await.ok()?
    }

    /// Writes a value, then changes the version.
    ///
    /// # Errors
    /// As for [`read`](Self::read); then the old value is still there.
    pub async fn write(&self, key: StorageKey<'_>, value: &[u8]) -> Result<(), String> {
        match self {
            Storage::Directory(directory) => {
                let (kind, name, value) = (key.kind, key.name.to_owned(), value.to_vec());
                in_directory(directory, move |directory| directory.write(kind, &name, &value)).await
            }
            Storage::Valkey(valkey) => valkey.write(key, value).await,
        }
    }

    /// Removes a value.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn remove(&self, key: StorageKey<'_>) -> Result<(), String> {
        match self {
            Storage::Directory(directory) => {
                let (kind, name) = (key.kind, key.name.to_owned());
                in_directory(directory, move |directory| directory.remove(kind, &name)).await
            }
            Storage::Valkey(valkey) => valkey.remove(key).await,
        }
    }

    /// The version, which differs after each write.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn version(&self) -> Result<Vec<u8>, String> {
        match self {
            Storage::Directory(directory) => in_directory(directory, Directory::version).await,
            Storage::Valkey(valkey) => valkey.version().await,
        }
    }

    /// Takes the lock with this name; `None` if another node has it.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn lock(&self, name: &str) -> Result<Option<HeldLock>, String> {
        let (token, name) = (random_hex()?, name.to_owned());
        let is_taken = match self {
            Storage::Directory(directory) => {
                let (name, token) = (name.clone(), token.clone());
                in_directory(directory, move |directory| directory.lock(&name, &token)).await?
            }
            Storage::Valkey(valkey) => valkey.lock(&name, &token).await?,
        };
        Ok(is_taken.then(|| HeldLock { storage: self.clone(), name, token }))
    }
}

/// Runs blocking operations on files elsewhere. One that hangs, as on a network file system whose server is away, has
/// its thread and its place until it ends.
async fn in_directory<T: Send + 'static>(
    directory: &Arc<Directory>,
    what: impl FnOnce(&Directory) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let directory = directory.clone();
    let done = async {
        let place = directory.places.clone().acquire_owned().await;
        let what = move || (what(&directory), drop(place)).0;
        tokio::task::spawn_blocking(what).await.map_err(|error| format!("acme.storage: {error}"))
    };
    match tokio::time::timeout(DONE_WITHIN, done).await {
        Ok(done) => done?,
        Err(_) => Err(format!("acme.storage: no answer of the directory within {DONE_WITHIN:?}")),
    }
}

/// A lock that this process has taken. A lock that is not released becomes free when it is stale.
pub struct HeldLock {
    storage: Storage,
    name: String,
    token: String,
}

impl HeldLock {
    /// Refreshes the lock. Returns whether this process still has it.
    ///
    /// # Errors
    /// The storage cannot be used: a sentence for the operator.
    pub async fn refresh(&self) -> Result<bool, String> {
        let (name, token) = (self.name.clone(), self.token.clone());
        match &self.storage {
            Storage::Directory(directory) => {
                in_directory(directory, move |directory| directory.refresh(&name, &token)).await
            }
            Storage::Valkey(valkey) => valkey.refresh(&name, &token).await,
        }
    }

    /// Refreshes the lock at intervals. Returns when this process has it no more.
    pub async fn keep(&self) {
        let times = match &self.storage {
            Storage::Directory(directory) => directory.times,
            Storage::Valkey(valkey) => valkey.times,
        };
        loop {
            tokio::time::sleep(times.refresh).await;
            match self.refresh().await {
                Ok(true) => {}
                Ok(false) => return,
                // It may be stale before the storage can be used again.
                Err(_) => return,
            }
        }
    }

    /// Releases the lock, so that another node can take it at once.
    pub async fn release(self) {
        let (name, token) = (self.name.clone(), self.token.clone());
        // If that fails, the lock becomes stale.
        let _ = match &self.storage {
            Storage::Directory(directory) => {
                in_directory(directory, move |directory| directory.unlock(&name, &token)).await
            }
            Storage::Valkey(valkey) => valkey.unlock(&name, &token).await,
        };
    }
}
