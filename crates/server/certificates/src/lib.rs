//! The certificates of the TLS listeners: where they come from, and which one a client gets.
//!
//! | file | contents |
//! |---|---|
//! | `source` | what a source of certificates is: it may change them at any time, each host by itself |
//! | `files` | the source for `[[tls]]` |
//! | `leaf` | what a certificate says: names, issuer, lifetime |
//! | `by_name` | the current certificates by server name (SNI, RFC 6066 section 3) |
//! | `challenges` | the answers to challenges of a certificate authority (TLS-ALPN-01, RFC 8737) |
//! | `authorities` | the authorities that are trusted when Pagewell connects to a server |
//! | `tickets` | session tickets, whose keys nodes may share |
//! | `managed` | the seam for certificates that are obtained at run time, and their state for operators |
//!
//! Start reading at [`Certificates`]. Invariants: a source that fails changes nothing; a client that offers the
//! protocol of a challenge never gets another certificate than that of a pending challenge.
//!
//! Not here: sockets and handshakes (`front`), and how a certificate is obtained.

mod authorities;
mod by_name;
mod challenges;
mod files;
mod leaf;
mod managed;
mod source;
mod tickets;

pub use authorities::{authorities, client_config};
pub use challenges::{CHALLENGE_PROTOCOL, PendingChallenge};
pub use files::CertificateFiles;
pub use leaf::LeafFacts;
pub use managed::{
    CertificateStatus, ChallengeAnswer, ChallengeLookup, FailureCause, ManagedHosts, ManagedReport,
    TryFailure,
};
pub use source::{Certificate, CertificateSource};
pub use tickets::TicketKey;

use by_name::ByName;
use challenges::Challenges;
use config::{Config, TlsPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use source::LoadedSource;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use tickets::Tickets;

/// The offered protocols (ALPN, RFC 7301), in order of preference.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificates of all sources, and the TLS configuration that uses them.
pub struct Certificates {
    /// The sources, in the order of their precedence, each with its certificates as last loaded. Held while they are
    /// loaded, also from files, so that an older load never replaces a newer one. No handshake takes it.
    sources: Mutex<Vec<LoadedSource>>,
    current: Arc<Current>,
    challenges: Arc<Challenges>,
    tickets: Arc<Tickets>,
    /// Obtains certificates, if that is configured.
    manager: OnceLock<Arc<dyn ManagedHosts>>,
    config: Arc<ServerConfig>,
}

/// The current certificates by name. The lock guards only the pointer.
#[derive(Debug, Default)]
struct Current(RwLock<Arc<ByName>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.now().find(hello.server_name())
    }
}

impl Current {
    fn now(&self) -> Arc<ByName> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, by_name: ByName) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(by_name);
    }
}

impl Certificates {
    /// Loads the certificates of these sources. If two have one for the same name, the first source's is used.
    ///
    /// # Errors
    /// A source cannot be loaded: a sentence for the operator.
    pub fn load(sources: Vec<Box<dyn CertificateSource>>) -> Result<Certificates, String> {
        let current = Arc::new(Current::default());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| format!("tls: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = ALPN.iter().map(|name| name.to_vec()).collect();
        // A ticket is good for the server name only for which it was issued.
        let tickets = Arc::new(Tickets::new()?);
        config.ticketer = tickets.clone();
        let loaded = LoadedSource::new;
        let certificates = Certificates {
            sources: Mutex::new(sources.into_iter().map(loaded).collect()),
            current,
            challenges: Arc::default(),
            tickets,
            manager: OnceLock::new(),
            config: Arc::new(config),
        };
        certificates.refresh()?;
        Ok(certificates)
    }

    /// Loads the certificates of the configuration's files.
    ///
    /// # Errors
    /// There are none, a file cannot be read, or a key does not match its certificate: a sentence for the operator.
    pub fn of_files(pairs: &[TlsPair]) -> Result<Certificates, String> {
        Certificates::load(vec![Box::new(CertificateFiles::new(pairs)?)])
    }

    /// Loads the certificates of the sources that have changed; they are used from the next handshake on. Returns
    /// whether there were any.
    ///
    /// # Errors
    /// The sentences of the sources that cannot be loaded. Their old certificates stay in use, and each failure is
    /// reported once.
    pub fn refresh(&self) -> Result<bool, String> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut is_changed, mut failed) = (false, Vec::new());
        for LoadedSource { source, certificates, failure } in sources.iter_mut() {
            match source.load_changed() {
                Ok(None) => {}
                Ok(Some(loaded)) => (*certificates, *failure, is_changed) = (loaded, None, true),
                Err(why) => {
                    if failure.replace(why.clone()).as_ref() != Some(&why) {
                        failed.push(why);
                    }
                }
            }
        }
        if is_changed {
            self.current.set(ByName::of(&sources));
        }
        if failed.is_empty() { Ok(is_changed) } else { Err(failed.join("; ")) }
    }

    /// The TLS configuration for a client: that of a pending challenge, if the client asks for it.
    pub fn config_for(&self, hello: &ClientHello<'_>) -> Arc<ServerConfig> {
        self.challenges.find(hello).unwrap_or_else(|| self.config.clone())
    }

    /// Uses these keys for session tickets from now on, the first for new ones. All nodes of a cluster use the same.
    pub fn share_ticket_keys(&self, keys: &[TicketKey]) {
        self.tickets.share(keys);
    }

    /// Adds a source, whose certificates are loaded by the next [`refresh`](Self::refresh).
    pub fn add_source(&self, source: Box<dyn CertificateSource>) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.push(LoadedSource::new(source));
    }

    /// Sets the manager of certificates; the first call counts.
    pub fn set_managed(&self, manager: Arc<dyn ManagedHosts>) {
        let _ = self.manager.set(manager);
    }

    /// The manager of certificates, if there is one.
    pub fn manager(&self) -> Option<&Arc<dyn ManagedHosts>> {
        self.manager.get()
    }

    /// The state of all certificates: first those of the configuration's files, then the managed ones.
    pub fn report(&self) -> ManagedReport {
        let managed = self.manager.get().map(|manager| manager.report());
        let mut report = managed.unwrap_or_default();
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let given = sources.iter().flat_map(LoadedSource::given).collect::<Vec<_>>();
        drop(sources);
        report.certificates.splice(0..0, given);
        report
    }

    /// Whether the certificate of this host is managed.
    #[inline]
    pub fn manages(&self, host: &str) -> bool {
        self.manager.get().is_some_and(|manager| manager.manages(host))
    }

    /// Whether a client gets a certificate for this host: its own one, or, unless it is managed, the default.
    pub fn is_ready(&self, host: &str) -> bool {
        let now = self.current.now();
        now.find_named(&host.to_ascii_lowercase()).is_some()
            || (now.has_default() && !self.manages(host))
    }

    /// Whether the files of the configuration have a certificate for this host.
    pub fn is_given(&self, host: &str) -> bool {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let given = sources.iter().filter(|source| source.source.has_default());
        let mut names =
            given.flat_map(|source| &source.certificates).flat_map(|each| each.names.iter());
        let wildcard = host.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        names.any(|name| name == host || Some(name) == wildcard.as_ref())
    }

    /// The managed host of a challenge that only the shared storage may know, because another node has begun it.
    pub fn unknown_challenge(&self, hello: &ClientHello<'_>) -> Option<String> {
        let host = challenges::asked_host(hello)?;
        (self.manages(&host) && !self.challenges.have(&host)).then_some(host)
    }

    /// Looks up the challenge of a managed host. It is answered until the result is dropped.
    pub async fn look_up_challenge(&self, host: &str) -> Option<PendingChallenge> {
        match self.manager.get()?.challenge(host).await? {
            ChallengeAnswer::Tls(key) => self.begin_challenge(host, *key).ok(),
            ChallengeAnswer::Http { .. } => None,
        }
    }

    /// Answers challenges for a host by this certificate, until the result is dropped.
    ///
    /// # Errors
    /// The certificate cannot be used: a sentence for the operator.
    pub fn begin_challenge(
        &self,
        host: &str,
        key: CertifiedKey,
    ) -> Result<PendingChallenge, String> {
        Challenges::begin(&self.challenges, host, key)
    }
}

/// The hosts of all sites, without ports and addresses, that no certificate of the files names: `is_given` says
/// whether one does. None with `[acme]`, which obtains certificates for them.
#[must_use]
pub fn unnamed_hosts(config: &Config, is_given: impl Fn(&str) -> bool) -> Vec<&str> {
    if config.acme.is_some() {
        return Vec::new();
    }
    let hosts = config.all_sites().flat_map(|site| site.hosts.all());
    let names = hosts.map(|host| host.split(':').next().unwrap_or_default());
    let is_name = |name: &&str| !name.starts_with('[') && name.parse::<Ipv4Addr>().is_err();
    names.filter(is_name).filter(|name| !is_given(name)).collect()
}

#[cfg(test)]
mod tests;
