//! The answer to the pending challenge of a host, from the shared storage: any node can be the one that the authority
//! reaches.
//!
//! Invariant: an answer belongs to the host for which it was stored; its caller compares the token. Not here: which
//! hosts are managed (`hosts`).

use crate::record::{ChallengeKind, ChallengeRecord};
use crate::storage::{Storage, StorageKey, ValueKind};
use certificates::ChallengeAnswer;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivateKeyDer;
use std::time::Duration;

/// The timeout for reading a challenge.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// Reads the pending challenge of a host.
pub async fn find(storage: &Storage, host: &str) -> Option<ChallengeAnswer> {
    let read = storage.read(StorageKey { kind: ValueKind::Challenge, name: host });
    let bytes = tokio::time::timeout(READ_WITHIN, read).await.ok()?.ok()??;
    let pending: ChallengeRecord = serde_json::from_slice(&bytes).ok()?;
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
