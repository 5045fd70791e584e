//! A storage in Valkey or Redis: the server of the cluster. Every value is sealed.
//!
//! A lock is a key with the token of its holder (`SET … NX PX`), which the server removes when nobody refreshes it.
//! Refresh and release compare the token on the server, by a script. One connection is used at a time and opened again
//! after a failure. Challenges end after an hour.

use super::seal::Seal;
use super::{LockTimes, StorageKey, VALUE_BYTES_MAX, ValueKind};
use crate::randomness::random_hex;
use ::valkey::{Reply, command};
use cluster::connection::Connection;
use config::DatabaseServer;
use tokio::sync::Mutex;

/// How long an unfinished challenge is stored, in milliseconds.
const CHALLENGE_MS: &str = "3600000";
/// Extends a lock of this holder.
const REFRESH: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";
/// Removes a lock of this holder.
const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// A storage in Valkey or Redis.
pub struct ValkeyStorage {
    server: DatabaseServer,
    prefix: String,
    seal: Seal,
    pub(super) times: LockTimes,
    connection: Mutex<Option<Connection>>,
}

impl ValkeyStorage {
    /// The storage on this server, under keys that begin with `prefix`.
    pub fn new(
        server: &DatabaseServer,
        prefix: &str,
        key: &[u8],
        times: LockTimes,
    ) -> ValkeyStorage {
        let (server, prefix) = (server.clone(), prefix.to_owned());
        ValkeyStorage { server, prefix, seal: Seal::new(key), times, connection: Mutex::default() }
    }

    pub(super) async fn read(&self, key: StorageKey<'_>) -> Result<Option<Vec<u8>>, String> {
        let key = self.key(key);
        match self.ask(&[b"GET", key.as_bytes()]).await? {
            Reply::Null => Ok(None),
            Reply::Bytes(sealed) if sealed.len() as u64 <= VALUE_BYTES_MAX => {
                self.seal.open(key.as_bytes(), &sealed).map(Some)
            }
            Reply::Bytes(_) => Ok(Some(Vec::new())),
            _ => Err(format!("acme.storage: {key}: not a value of Pagewell")),
        }
    }

    pub(super) async fn write(&self, key: StorageKey<'_>, value: &[u8]) -> Result<(), String> {
        let name = self.key(key);
        let sealed = self.seal.close(name.as_bytes(), value)?;
        let mut words = vec![&b"SET"[..], name.as_bytes(), &sealed];
        if key.kind == ValueKind::Challenge {
            words.extend([&b"PX"[..], CHALLENGE_MS.as_bytes()]);
        }
        self.ask(&words).await?;
        let version = format!("{}version", self.prefix);
        self.ask(&[b"SET", version.as_bytes(), random_hex()?.as_bytes()]).await.map(drop)
    }

    pub(super) async fn remove(&self, key: StorageKey<'_>) -> Result<(), String> {
        self.ask(&[b"DEL", self.key(key).as_bytes()]).await.map(drop)
    }

    pub(super) async fn version(&self) -> Result<Vec<u8>, String> {
        match self.ask(&[b"GET", format!("{}version", self.prefix).as_bytes()]).await? {
            Reply::Bytes(version) => Ok(version),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn lock(&self, name: &str, token: &str) -> Result<bool, String> {
        let (key, stale) = (self.lock_key(name), self.times.stale.as_millis().to_string());
        let words = [b"SET", key.as_bytes(), token.as_bytes(), b"NX", b"PX", stale.as_bytes()]
            as [&[u8]; 6];
        Ok(matches!(self.ask(&words).await?, Reply::Status(_)))
    }

    pub(super) async fn refresh(&self, name: &str, token: &str) -> Result<bool, String> {
        let stale = self.times.stale.as_millis().to_string();
        self.run(REFRESH, name, &[token, &stale]).await
    }

    pub(super) async fn unlock(&self, name: &str, token: &str) -> Result<bool, String> {
        self.run(RELEASE, name, &[token]).await
    }

    async fn run(&self, script: &str, name: &str, arguments: &[&str]) -> Result<bool, String> {
        let key = self.lock_key(name);
        let mut words = vec![&b"EVAL"[..], script.as_bytes(), b"1", key.as_bytes()];
        words.extend(arguments.iter().map(|argument| argument.as_bytes()));
        Ok(matches!(self.ask(&words).await?, Reply::Integer(1)))
    }

    /// Sends a command, and opens a connection if there is none. A connection that has failed is opened again once:
    /// the server may have been restarted.
    async fn ask(&self, words: &[&[u8]]) -> Result<Reply, String> {
        let mut slot = self.connection.lock().await;
        let mut is_new = slot.is_none();
        loop {
            let mut connection = match slot.take() {
                Some(connection) => connection,
                None => Connection::open(&self.server).await.map_err(|error| said(&error))?,
            };
            match connection.ask(&command(words)).await {
                Ok(reply) => {
                    *slot = Some(connection);
                    return Ok(reply);
                }
                Err(error) if is_new => return Err(said(&error)),
                Err(_) => is_new = true,
            }
        }
    }

    fn key(&self, key: StorageKey<'_>) -> String {
        format!("{}{}:{}", self.prefix, key.kind.parts().0, key.name)
    }

    fn lock_key(&self, name: &str) -> String {
        format!("{}locks:{name}", self.prefix)
    }
}

fn said(error: &dyn std::fmt::Display) -> String {
    format!("acme.storage: the server of [cluster]: {error}")
}
