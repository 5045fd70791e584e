//! TLS 1.2 and 1.3 with rustls. Certificates are chosen by server name (SNI, RFC 6066 section 3), and
//! reloaded when their files change.
//!
//! For a server name, the certificate with exactly that name is used, else one with a matching wildcard
//! (one label, RFC 6125 section 6.4.3). Without a match, or without SNI, the first certificate is used.
//!
//! Reloading is atomic: if one certificate or key is invalid, all old ones stay in use. The error is
//! logged once per change of the files. One lock, taken for a look-up per handshake and to replace one
//! pointer; never while a file is read.

use config::TlsPair;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// The offered protocols (ALPN, RFC 7301), in order of preference.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The longest file of a certificate chain or key, in bytes.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The metadata of the files when they were read; differs if one of them has changed.
type FileStamps = Vec<Option<(u64, i64, i64, u64)>>;

/// The certificates of the TLS listening sockets.
pub struct Tls {
    pairs: Vec<TlsPair>,
    certificates: Arc<Certificates>,
    acceptor: TlsAcceptor,
}

/// The current certificates by name.
#[derive(Debug)]
struct Certificates {
    /// The current certificates. The lock guards only the pointer.
    now: RwLock<Arc<ByName>>,
}

#[derive(Debug)]
struct ByName {
    names: HashMap<String, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
}

impl Tls {
    /// Loads the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or a key does not match its certificate: a sentence for the operator.
    pub fn load(pairs: &[TlsPair]) -> Result<Tls, String> {
        let provider = Arc::new(ring::default_provider());
        let by_name = read_all(pairs, &provider)?;
        let certificates = Arc::new(Certificates { now: RwLock::new(Arc::new(by_name)) });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| format!("tls: {error}"))?
            .with_no_client_auth()
            .with_cert_resolver(certificates.clone());
        config.alpn_protocols = ALPN.iter().map(|name| name.to_vec()).collect();
        config.ticketer = ring::Ticketer::new().map_err(|error| format!("tls: {error}"))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Tls { pairs: pairs.to_vec(), certificates, acceptor })
    }

    /// Performs TLS handshakes on accepted sockets.
    pub fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// The current metadata of the files.
    pub fn look(&self) -> FileStamps {
        let looks = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            // The time of the last change: programs can set the modification time.
            Some((found.ino(), found.ctime(), found.ctime_nsec(), found.size()))
        };
        self.pairs.iter().flat_map(|pair| [looks(&pair.certificate), looks(&pair.key)]).collect()
    }

    /// Reloads the certificates. They are used from the next handshake on.
    ///
    /// # Errors
    /// As for [`Tls::load`]; the old certificates then stay in use.
    pub fn reload(&self) -> Result<(), String> {
        let by_name = Arc::new(read_all(&self.pairs, &ring::default_provider())?);
        *self.certificates.now.write().unwrap_or_else(PoisonError::into_inner) = by_name;
        Ok(())
    }
}

impl Certificates {
    fn find(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(name) = name.map(str::to_ascii_lowercase) else { return now.default.clone() };
        let wildcard = || {
            let (_, parent) = name.split_once('.')?;
            now.names.get(&format!("*.{parent}"))
        };
        now.names.get(&name).or_else(wildcard).unwrap_or(&now.default).clone()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.find(hello.server_name()))
    }
}

fn read_all(pairs: &[TlsPair], provider: &CryptoProvider) -> Result<ByName, String> {
    let mut names = HashMap::new();
    let mut default = None;
    for pair in pairs {
        let (key, its_names) = read_pair(pair, provider)?;
        let key = Arc::new(key);
        default.get_or_insert_with(|| key.clone());
        for name in its_names {
            // If two certificates have the same name, the first is used.
            names.entry(name).or_insert_with(|| key.clone());
        }
    }
    let default = default.ok_or("tls: no certificate is given")?;
    Ok(ByName { names, default })
}

/// Loads a certificate chain with its key, and returns it with its DNS names.
fn read_pair(
    pair: &TlsPair,
    provider: &CryptoProvider,
) -> Result<(CertifiedKey, Vec<String>), String> {
    let (certificate, key) = (pair.certificate.display(), pair.key.display());
    let of_certificate = |why: String| format!("tls.certificate: {certificate}: {why}");
    let chain = read(&pair.certificate)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .map_err(|error| of_certificate(unread(&error, "certificate")))?;
    let first = chain.first().ok_or_else(|| of_certificate("no certificate in it".into()))?;
    let names = webpki::EndEntityCert::try_from(first)
        .map_err(|error| of_certificate(error.to_string()))?
        .valid_dns_names()
        .map(str::to_ascii_lowercase)
        .collect();
    let private = read(&pair.key)
        .and_then(|text| PrivateKeyDer::from_pem_slice(&text))
        .map_err(|error| format!("tls.key: {key}: {}", unread(&error, "private key")))?;
    let certified =
        CertifiedKey::from_der(chain, private, provider).map_err(|error| match error {
            Error::InconsistentKeys(_) => format!("tls.key: {key} is not the key of {certificate}"),
            other => format!("tls: {certificate} with {key}: {other}"),
        })?;
    Ok((certified, names))
}

fn read(path: &Path) -> Result<Vec<u8>, pem::Error> {
    trusted_files::read(path, PEM_BYTES_MAX).map_err(pem::Error::Io)
}

/// A sentence for the operator: why a PEM file could not be read.
fn unread(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("no {what} in it"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A directory for each test; removed when dropped.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let dir = std::env::temp_dir().join(format!("pagewell-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Dir(dir)
        }

        /// Writes a certificate and key for these names.
        fn pair(&self, file: &str, names: &[&str]) -> TlsPair {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let made = rcgen::generate_simple_self_signed(names).unwrap();
            let pair = TlsPair {
                certificate: self.0.join(format!("{file}.crt")),
                key: self.0.join(format!("{file}.key")),
            };
            std::fs::write(&pair.certificate, made.cert.pem()).unwrap();
            std::fs::write(&pair.key, made.signing_key.serialize_pem()).unwrap();
            pair
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn leaf(tls: &Tls, name: Option<&str>) -> Vec<u8> {
        tls.certificates.find(name).cert[0].to_vec()
    }

    #[test]
    fn a_certificate_is_found_by_name() {
        let dir = Dir::new("tls-names");
        let tls = Tls::load(&[
            dir.pair("a", &["a.test", "www.a.test"]),
            dir.pair("b", &["*.b.test", "b.test"]),
        ])
        .unwrap();
        let (a, b) = (leaf(&tls, Some("a.test")), leaf(&tls, Some("b.test")));
        assert_ne!(a, b);
        assert_eq!(leaf(&tls, Some("WWW.a.test")), a);
        assert_eq!(leaf(&tls, Some("x.b.test")), b);
        assert_eq!(leaf(&tls, Some("y.x.b.test")), a, "a wildcard stands for one label");
        assert_eq!(leaf(&tls, None), a, "the first is the default");
    }

    #[test]
    fn a_broken_new_pair_leaves_all_the_old_ones() {
        let dir = Dir::new("tls-broken");
        let pairs = [dir.pair("a", &["a.test"]), dir.pair("b", &["b.test"])];
        let tls = Tls::load(&pairs).unwrap();
        let (seen, old) = (tls.look(), leaf(&tls, Some("a.test")));
        dir.pair("a", &["a.test"]);
        std::fs::write(&pairs[1].key, "no key").unwrap();
        assert_ne!(tls.look(), seen);
        let why = tls.reload().unwrap_err();
        assert!(
            why.starts_with("tls.key: ") && why.ends_with("b.key: no private key in it"),
            "{why}"
        );
        assert_eq!(leaf(&tls, Some("a.test")), old);
        dir.pair("b", &["b.test"]);
        tls.reload().unwrap();
        assert_ne!(leaf(&tls, Some("a.test")), old);
    }

    #[test]
    fn a_key_has_to_belong_to_its_certificate() {
        let dir = Dir::new("tls-mixed");
        let (a, b) = (dir.pair("a", &["a.test"]), dir.pair("b", &["b.test"]));
        let mixed = TlsPair { certificate: a.certificate.clone(), key: b.key };
        let why = Tls::load(&[mixed]).err().unwrap();
        assert!(why.contains("b.key is not the key of ") && why.ends_with("a.crt"), "{why}");
        let away = TlsPair { certificate: dir.0.join("away.crt"), key: a.key.clone() };
        let why = Tls::load(&[away]).err().unwrap();
        assert!(why.starts_with("tls.certificate: ") && why.contains("away.crt: No such"), "{why}");
        assert!(Tls::load(&[]).is_err());
        assert!(Tls::load(&[a]).is_ok());
    }
}
