//! The answers to challenges of a certificate authority (TLS-ALPN-01, RFC 8737): for a server name with a pending
//! challenge, a client that offers only the protocol `acme-tls/1` gets the certificate of the challenge.
//!
//! Such a client never gets another certificate: without a pending challenge, the handshake fails, because the usual
//! configuration does not have the protocol. A connection of a challenge ends with its handshake.

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The protocol of a challenge (ALPN).
pub const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

/// The pending challenges of TLS-ALPN-01, by server name.
#[derive(Default)]
pub struct Challenges {
    /// How many there are, so that no other handshake takes the lock.
    count: AtomicUsize,
    by_host: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl Challenges {
    /// Answers challenges for a host by this certificate, until the result is dropped.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub fn begin(
        challenges: &Arc<Challenges>,
        host: &str,
        key: CertifiedKey,
    ) -> Result<PendingChallenge, String> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| format!("tls: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        config.alpn_protocols = vec![CHALLENGE_PROTOCOL.to_vec()];
        // Nothing to resume: the connection has no content.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let (host, config) = (host.to_ascii_lowercase(), Arc::new(config));
        challenges.change(|by_host| drop(by_host.insert(host.clone(), config.clone())));
        Ok(PendingChallenge { challenges: challenges.clone(), host, config })
    }

    /// The configuration of the challenge that a client asks for.
    pub fn find(&self, hello: &ClientHello<'_>) -> Option<Arc<ServerConfig>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.by_host().get(&asked_host(hello)?).cloned()
    }

    /// Whether a challenge is pending for this host, which is in lower case.
    pub fn have(&self, host: &str) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.by_host().contains_key(host)
    }

    /// The number of pending challenges.
    #[cfg(test)]
    pub fn pending(&self) -> usize {
        self.by_host().len()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, Arc<ServerConfig>>)) {
        let mut by_host = self.by_host();
        change(&mut by_host);
        self.count.store(by_host.len(), Ordering::Release);
    }

    fn by_host(&self) -> MutexGuard<'_, HashMap<String, Arc<ServerConfig>>> {
        self.by_host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host of a client that offers the protocol of challenges and no other, in lower case.
pub fn asked_host(hello: &ClientHello<'_>) -> Option<String> {
    let mut protocols = hello.alpn()?;
    let (first, second) = (protocols.next(), protocols.next());
    let is_challenge = first == Some(CHALLENGE_PROTOCOL) && second.is_none();
    hello.server_name().filter(|_| is_challenge).map(str::to_ascii_lowercase)
}

/// A challenge that is answered until this is dropped.
pub struct PendingChallenge {
    challenges: Arc<Challenges>,
    host: String,
    config: Arc<ServerConfig>,
}

impl Drop for PendingChallenge {
    fn drop(&mut self) {
        self.challenges.change(|by_host| {
            // A newer challenge for the same host stays.
            if by_host.get(&self.host).is_some_and(|config| Arc::ptr_eq(config, &self.config)) {
                by_host.remove(&self.host);
            }
        });
    }
}
