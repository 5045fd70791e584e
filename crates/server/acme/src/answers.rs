//! The answer to the pending challenge of a host: any node can be the one that the authority reaches.
//!
//! The node that orders answers from memory. Every other node reads the shared storage: at most one read for a host
//! at a time, and one in [`READ_INTERVAL`], whose result all clients that wait for it get.
//!
//! Invariants: an answer belongs to the host for which it was stored; its caller compares the token. A client gets the
//! result of a read that began after it asked, so that each stored challenge is answered by every node at once. Not
//! here: which hosts are managed (`hosts`).

use crate::record::{ChallengeKind, ChallengeRecord};
use crate::storage::{Storage, StorageKey, ValueKind};
use certificates::ChallengeAnswer;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivateKeyDer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The storage is asked at most once in this time for a host.
const READ_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of challenges that are read from the storage at a time.
const READS_MAX: usize = 16;

/// The bounds of the reads of all hosts' challenges from the storage.
pub struct ChallengeReads {
    /// The places for reads at the same time.
    pub places: Semaphore,
    /// The timeout of a read, with the wait for a place.
    pub within: Duration,
}

impl ChallengeReads {
    /// The bounds with this timeout; all places are free.
    pub fn new(within: Duration) -> ChallengeReads {
        ChallengeReads { places: Semaphore::new(READS_MAX), within }
    }
}

/// The pending challenge of one host, as this node knows it.
#[derive(Default)]
pub struct HostChallenge {
    /// That of this node's own order.
    own: Mutex<Option<ChallengeRecord>>,
    /// The reads that have begun.
    begun: AtomicU64,
    last: tokio::sync::Mutex<LastRead>,
}

/// The last read of a host's challenge.
#[derive(Default)]
struct LastRead {
    /// The number of the read that has found this, counted from 1.
    number: u64,
    found: Option<ChallengeRecord>,
    /// When the last read began.
    began: Option<Instant>,
}

/// The challenge of this node's own order, which is answered from memory until this is dropped.
pub struct OwnChallenge(Arc<HostChallenge>);

impl OwnChallenge {
    /// Begins the validation of a host. Nothing is answered from memory yet.
    pub fn begin(challenge: &Arc<HostChallenge>) -> OwnChallenge {
        OwnChallenge(challenge.clone())
    }

    /// Answers this challenge from memory.
    pub fn set(&self, pending: ChallengeRecord) {
        self.0.set_own(Some(pending));
    }
}

impl Drop for OwnChallenge {
    fn drop(&mut self) {
        self.0.set_own(None);
    }
}

impl HostChallenge {
    /// Finds the answer. `reads` bounds the reads of all hosts.
    pub async fn find(
        &self,
        storage: &Storage,
        reads: &ChallengeReads,
        host: &str,
    ) -> Option<ChallengeAnswer> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pending = match own {
            Some(own) => own,
            None => self.shared(storage, reads, host).await?,
        };
        match pending.kind {
            ChallengeKind::Http01 => {
                let (token, content) = (pending.token, pending.authorization);
                Some(ChallengeAnswer::Http { token, content })
            }
            ChallengeKind::TlsAlpn01 => {
                Some(ChallengeAnswer::Tls(Box::new(certificate(host, &pending.authorization)?)))
            }
        }
    }

    /// The challenge in the storage, by a read that begins from now on.
    async fn shared(
        &self,
        storage: &Storage,
        reads: &ChallengeReads,
        host: &str,
    ) -> Option<ChallengeRecord> {
        let asked = self.begun.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        if last.number > asked {
            return last.found.clone();
        }
        if let Some(began) = last.began {
            tokio::time::sleep_until(began + READ_INTERVAL).await;
        }
        last.began = Some(Instant::now());
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let found = read(storage, &reads.places, host);
        let found = tokio::time::timeout(reads.within, found).await;
        // A client that goes away before leaves the number, so that the next one reads.
        (last.number, last.found) = (number, found.ok().flatten());
        last.found.clone()
    }

    fn set_own(&self, pending: Option<ChallengeRecord>) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = pending;
    }
}

/// Reads the pending challenge of a host.
async fn read(storage: &Storage, places: &Semaphore, host: &str) -> Option<ChallengeRecord> {
    let _place = places.acquire().await.ok()?;
    let read = storage.read(StorageKey { kind: ValueKind::Challenge, name: host });
    serde_json::from_slice(&read.await.ok()??).ok()
}

/// The certificate that proves the control over a host (RFC 8737 section 3).
fn certificate(host: &str, authorization: &str) -> Option<CertifiedKey> {
    let digest = ::ring::digest::digest(&::ring::digest::SHA256, authorization.as_bytes());
    let key = KeyPair::generate().ok()?;
    let mut params = CertificateParams::new(vec![host.to_owned()]).ok()?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let made = params.self_signed(&key).ok()?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).ok()?;
    // Not `from_der`, which refuses the critical extension.
    let key = ring::default_provider().key_provider.load_private_key(key).ok()?;
    Some(CertifiedKey::new(vec![made.der().clone()], key))
}
