//! The keys of session tickets that all nodes with the same storage share: a client that comes back is not slower at
//! another node.
//!
//! A key seals new tickets for [`REPLACED_AFTER`], and opens them for as long again. Then it is removed from the
//! storage, so that a recorded connection cannot be opened later. A node that does not know a key yet, because it has
//! not looked, makes a whole handshake. While the storage cannot be used, a node forgets each key [`FORGOTTEN_AFTER`]
//! it has seen it first, by its own monotonic clock; without any, the process uses keys of its own.
//!
//! Invariants: one node at a time replaces a key, and reads the storage again under the lock. A key that came while a
//! node ran serves its time by that node's clock: nodes whose clocks differ by a year replace no key of each other at
//! every look. Not here: the tickets themselves (`certificates`).

use crate::hosts::locked;
use crate::storage::{Storage, StorageKey, ValueKind};
use certificates::{Certificates, TicketKey};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a key seals new tickets.
const REPLACED_AFTER: Duration = Duration::from_secs(6 * 3600);

/// How long after its first sight a key is used at most.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(12 * 3600);

const KEYS: StorageKey<'_> = StorageKey { kind: ValueKind::Tickets, name: "keys" };

/// The name of the lock.
const LOCK: &str = "session-tickets";

/// The keys as they are stored, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct KeyRecord {
    keys: Vec<KeyEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeyEntry {
    /// When it was made, in milliseconds since 1970, by the clock of its node.
    made_ms: u64,
    /// The bytes of a [`TicketKey`].
    bytes: Vec<u8>,
}

/// The shared keys of this node.
#[derive(Default)]
pub(crate) struct SharedTickets(Mutex<KnownKeys>);

/// The keys as last read.
#[derive(Default)]
struct KnownKeys {
    record: KeyRecord,
    /// When this node saw each of them first.
    seen: Vec<(KeyEntry, Instant)>,
    /// When the newest key came, in milliseconds since 1970 by this node's clock; `None` if it was there before.
    came_ms: Option<u64>,
    /// How many are in use.
    in_use: usize,
}

impl SharedTickets {
    /// Reads the keys, if they may have changed, replaces them if their time has come, and uses them.
    ///
    /// # Errors
    /// The storage cannot be used: a sentence for the operator. The keys stay as they are.
    pub async fn look(
        &self,
        storage: &Storage,
        certificates: &Certificates,
        (may_differ, now_ms, now): (bool, u64, Instant),
    ) -> Result<(), String> {
        let (known, before_ms) = {
            let all = locked(&self.0);
            (all.record.clone(), all.came_ms)
        };
        let mut record = if may_differ { read(storage).await? } else { known.clone() };
        let mut came_ms = if record.has_newer(&known) { Some(now_ms) } else { before_ms };
        let is_fresh = came_ms.is_some_and(|came_ms| is_recent(came_ms, now_ms));
        if record.keys.is_empty() || (!is_fresh && record.is_due(now_ms)) {
            let Some(lock) = storage.lock(LOCK).await? else { return Ok(()) };
            let storage = storage.clone();
            // In a task: a look may be cut off, and the lock is released nevertheless.
            let replacing = tokio::spawn(async move {
                let replaced = replace(&storage, now_ms).await;
                lock.release().await;
                replaced
            });
            record = replacing.await.map_err(|error| error.to_string())??;
            came_ms = Some(now_ms);
        }
        if record != known {
            let mut all = locked(&self.0);
            let first = |entry: &KeyEntry| {
                let before = all.seen.iter().find(|(seen, _)| seen == entry);
                before.map_or(now, |(_, first)| *first)
            };
            let seen = record.keys.iter().map(|entry| (entry.clone(), first(entry))).collect();
            (all.record, all.seen, all.came_ms) = (record, seen, came_ms);
            all.share(certificates, now);
        }
        Ok(())
    }

    /// Forgets keys that have served their time, also if the storage cannot be read.
    pub fn forget(&self, certificates: &Certificates, now: Instant) {
        let mut known = locked(&self.0);
        if known.usable(now).count() != known.in_use {
            known.share(certificates, now);
        }
    }
}

impl KnownKeys {
    fn usable(&self, now: Instant) -> impl Iterator<Item = TicketKey> {
        let is_usable =
            move |first: &Instant| now.saturating_duration_since(*first) < FORGOTTEN_AFTER;
        let usable = self.seen.iter().filter(move |(_, first)| is_usable(first));
        usable.filter_map(|(entry, _)| entry.key())
    }

    fn share(&mut self, certificates: &Certificates, now: Instant) {
        let keys: Vec<TicketKey> = self.usable(now).collect();
        self.in_use = keys.len();
        certificates.share_ticket_keys(&keys);
    }
}

#[cfg(test)]
impl SharedTickets {
    /// When each key was made.
    pub fn made_ms(&self) -> Vec<u64> {
        locked(&self.0).record.keys.iter().map(|entry| entry.made_ms).collect()
    }

    /// Whether both nodes have the same keys, and have some.
    pub fn has_those_of(&self, other: &SharedTickets) -> bool {
        let (ours, theirs) = (locked(&self.0).record.clone(), locked(&other.0).record.clone());
        !ours.keys.is_empty() && ours == theirs
    }

    /// How many keys are in use.
    pub fn in_use(&self) -> usize {
        locked(&self.0).in_use
    }
}

impl KeyRecord {
    /// Whether the newest key has served its time. One of the future was made by another clock, which is allowed to be
    /// a day ahead: nodes with different clocks shall not replace each other's keys.
    fn is_due(&self, now_ms: u64) -> bool {
        let limit = replaced_after_ms();
        self.keys.first().is_none_or(|newest| {
            now_ms.saturating_sub(newest.made_ms) >= limit
                || newest.made_ms > now_ms.saturating_add(4 * limit)
        })
    }

    /// Whether the newest key is another one than that of before.
    fn has_newer(&self, before: &KeyRecord) -> bool {
        matches!((self.keys.first(), before.keys.first()), (Some(newest), Some(known)) if newest != known)
    }
}

impl KeyEntry {
    fn key(&self) -> Option<TicketKey> {
        self.bytes.as_slice().try_into().ok().map(TicketKey)
    }
}

/// Whether a key that came at this time still serves its time. Both times are of one clock, which may have been set
/// back.
fn is_recent(came_ms: u64, now_ms: u64) -> bool {
    now_ms.checked_sub(came_ms).is_some_and(|age_ms| age_ms < replaced_after_ms())
}

fn replaced_after_ms() -> u64 {
    u64::try_from(REPLACED_AFTER.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the stored keys. Ones that cannot be read count as none: they will be replaced.
async fn read(storage: &Storage) -> Result<KeyRecord, String> {
    let stored = storage.read(KEYS).await?;
    Ok(stored.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
}

/// Adds a key, and keeps the newest of the others. To be called under the lock.
async fn replace(storage: &Storage, now_ms: u64) -> Result<KeyRecord, String> {
    let before = read(storage).await?;
    if !before.is_due(now_ms) {
        // Another node was faster.
        return Ok(before);
    }
    let bytes = TicketKey::random()?.0.to_vec();
    let keys = std::iter::once(KeyEntry { made_ms: now_ms, bytes }).chain(before.keys).take(2);
    let record = KeyRecord { keys: keys.collect() };
    let text = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
    storage.write(KEYS, &text).await?;
    Ok(record)
}
