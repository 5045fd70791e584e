//! Tests of the choice of a certificate, by files and by handshakes in memory.

use super::*;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};
use rustls_pki_types::CertificateDer;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        let made = made(names);
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

fn made(names: &[&str]) -> rcgen::CertifiedKey<rcgen::KeyPair> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    rcgen::generate_simple_self_signed(names).unwrap()
}

fn certified(name: &str) -> CertifiedKey {
    let made = made(&[name]);
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    CertifiedKey::from_der(vec![made.cert.der().clone()], key, &ring::default_provider()).unwrap()
}

fn certificate(name: &str) -> Certificate {
    Certificate { key: Arc::new(certified(name)), names: vec![name.to_owned()] }
}

/// The certificate for a server name.
fn leaf(certificates: &Certificates, name: Option<&str>) -> Option<Vec<u8>> {
    certificates.current.now().find(name).map(|key| key.cert[0].to_vec())
}

/// A source whose certificates a test sets.
#[derive(Clone, Default)]
struct Managed(Arc<Mutex<Vec<Certificate>>>, Arc<AtomicUsize>);

impl Managed {
    fn set(&self, certificate: Certificate) {
        let mut all = self.0.lock().unwrap();
        all.retain(|other| other.names != certificate.names);
        all.push(certificate);
        self.1.store(1, Ordering::Relaxed);
    }
}

impl CertificateSource for Managed {
    fn load_changed(&self) -> Result<Option<Vec<Certificate>>, String> {
        let is_changed = self.1.swap(0, Ordering::Relaxed) == 1;
        Ok(is_changed.then(|| self.0.lock().unwrap().clone()))
    }
}

/// The sessions of a client that trusts this certificate and offers these protocols.
fn client(trusted: &CertificateDer<'static>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

/// A handshake in memory for this server name. Returns both sides, or why it failed.
fn shake(
    certificates: &Certificates,
    client: &Arc<ClientConfig>,
    name: &str,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(client.clone(), name)?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut &hello[..]).unwrap();
    let accepted = acceptor.accept().map_err(|(error, _)| error)?.expect("a whole hello");
    let config = certificates.config_for(&accepted.client_hello());
    let mut server = accepted.into_connection(config).map_err(|(error, _)| error)?;
    while server.wants_write() || client.wants_write() {
        let (mut down, mut up) = (Vec::new(), Vec::new());
        while server.wants_write() {
            server.write_tls(&mut down).unwrap();
        }
        client.read_tls(&mut &down[..]).unwrap();
        client.process_new_packets()?;
        while client.wants_write() {
            client.write_tls(&mut up).unwrap();
        }
        server.read_tls(&mut &up[..]).unwrap();
        server.process_new_packets()?;
    }
    Ok((client, server))
}

#[test]
fn a_certificate_is_found_by_name() {
    let dir = Dir::new("tls-names");
    let pairs = [dir.pair("a", &["a.test", "www.a.test"]), dir.pair("b", &["*.b.test", "b.test"])];
    let certificates = Certificates::of_files(&pairs).unwrap();
    let (a, b) = (leaf(&certificates, Some("a.test")), leaf(&certificates, Some("b.test")));
    assert!(a != b && a.is_some());
    assert_eq!(leaf(&certificates, Some("WWW.a.test")), a);
    assert_eq!(leaf(&certificates, Some("x.b.test")), b);
    assert_eq!(leaf(&certificates, Some("y.x.b.test")), a, "a wildcard stands for one label");
    assert_eq!(leaf(&certificates, None), a, "the first is the default");
}

#[test]
fn a_broken_new_pair_leaves_all_the_old_ones() {
    let dir = Dir::new("tls-broken");
    let pairs = [dir.pair("a", &["a.test"]), dir.pair("b", &["b.test"])];
    let certificates = Certificates::of_files(&pairs).unwrap();
    let old = leaf(&certificates, Some("a.test"));
    assert_eq!(certificates.refresh(), Ok(false));
    dir.pair("a", &["a.test"]);
    std::fs::write(&pairs[1].key, "no key").unwrap();
    let why = certificates.refresh().unwrap_err();
    assert!(why.starts_with("tls.key: ") && why.ends_with("b.key: no private key in it"), "{why}");
    assert_eq!(leaf(&certificates, Some("a.test")), old);
    assert_eq!(certificates.refresh(), Ok(false), "it is reported once");
    dir.pair("b", &["b.test"]);
    assert_eq!(certificates.refresh(), Ok(true));
    assert_ne!(leaf(&certificates, Some("a.test")), old);
}

#[test]
fn files_that_cannot_be_used_are_tried_at_each_look() {
    let dir = Dir::new("tls-tried");
    let pairs = [dir.pair("a", &["a.test"])];
    let files = CertificateFiles::new(&pairs).unwrap();
    let load = || files.load_changed().map(|all| all.map(|all| all.len()));
    assert_eq!((load(), load()), (Ok(Some(1)), Ok(None)));
    std::fs::write(&pairs[0].key, "no key").unwrap();
    assert!(load().is_err() && load().is_err());
    dir.pair("a", &["a.test"]);
    assert_eq!((load(), load()), (Ok(Some(1)), Ok(None)));
}

#[test]
fn a_key_has_to_belong_to_its_certificate() {
    let dir = Dir::new("tls-mixed");
    let (a, b) = (dir.pair("a", &["a.test"]), dir.pair("b", &["b.test"]));
    let mixed = TlsPair { certificate: a.certificate.clone(), key: b.key };
    let why = Certificates::of_files(&[mixed]).err().unwrap();
    assert!(why.contains("b.key is not the key of ") && why.ends_with("a.crt"), "{why}");
    let away = TlsPair { certificate: dir.0.join("away.crt"), key: a.key.clone() };
    let why = Certificates::of_files(&[away]).err().unwrap();
    assert!(why.starts_with("tls.certificate: ") && why.contains("away.crt: No such"), "{why}");
    assert!(Certificates::of_files(&[]).is_err());
    assert!(Certificates::of_files(&[a]).is_ok());
}

#[test]
fn a_source_changes_the_certificate_of_one_host_while_it_is_used() {
    let managed = Managed::default();
    let certificates = Certificates::load(vec![Box::new(managed.clone())]).unwrap();
    assert_eq!(leaf(&certificates, Some("a.test")), None, "no certificate yet");
    managed.set(certificate("a.test"));
    managed.set(certificate("b.test"));
    assert_eq!(certificates.refresh(), Ok(true));
    let (a, b) = (leaf(&certificates, Some("a.test")), leaf(&certificates, Some("b.test")));
    managed.set(certificate("a.test"));
    assert_eq!(certificates.refresh(), Ok(true));
    assert_ne!(leaf(&certificates, Some("a.test")), a);
    assert_eq!(leaf(&certificates, Some("b.test")), b);
    assert_eq!(leaf(&certificates, None), None, "a managed certificate is for its names only");
}

#[test]
fn files_come_before_other_sources_for_the_same_name() {
    let (dir, managed) = (Dir::new("tls-order"), Managed::default());
    let files = CertificateFiles::new(&[dir.pair("a", &["a.test"])]).unwrap();
    managed.set(certificate("a.test"));
    managed.set(certificate("b.test"));
    let managed_b = managed.0.lock().unwrap()[1].key.cert[0].to_vec();
    let certificates = Certificates::load(vec![Box::new(files), Box::new(managed)]).unwrap();
    let default = leaf(&certificates, None);
    assert_eq!(leaf(&certificates, Some("a.test")), default);
    assert_eq!(leaf(&certificates, Some("b.test")), Some(managed_b));
    assert_eq!(leaf(&certificates, Some("c.test")), default);
}

#[test]
fn a_challenge_is_answered_by_its_own_certificate_and_protocol_only() {
    let managed = Managed::default();
    let usual = certificate("a.test");
    let usual_leaf = usual.key.cert[0].clone();
    managed.set(usual);
    let certificates = Certificates::load(vec![Box::new(managed)]).unwrap();
    let key = certified("a.test");
    let challenge_leaf = key.cert[0].clone();
    let authority = client(&challenge_leaf, &[CHALLENGE_PROTOCOL]);
    let browser = client(&usual_leaf, &[b"h2", b"http/1.1"]);
    assert!(shake(&certificates, &authority, "a.test").is_err(), "none is pending");

    let pending = certificates.begin_challenge("A.test", key).unwrap();
    let (client_side, server_side) = shake(&certificates, &authority, "a.test").unwrap();
    assert_eq!(server_side.alpn_protocol(), Some(CHALLENGE_PROTOCOL));
    assert_eq!(client_side.peer_certificates().unwrap()[0], challenge_leaf);
    assert!(shake(&certificates, &authority, "b.test").is_err(), "that of another host");
    let (client_side, server_side) = shake(&certificates, &browser, "a.test").unwrap();
    assert_eq!(server_side.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(client_side.peer_certificates().unwrap()[0], usual_leaf);
    // A client that offers other protocols, too, is no certificate authority.
    let both = client(&challenge_leaf, &[CHALLENGE_PROTOCOL, b"http/1.1"]);
    assert!(shake(&certificates, &both, "a.test").is_err(), "it gets the usual certificate");

    let newer = certificates.begin_challenge("a.test", certified("a.test")).unwrap();
    drop(pending);
    assert_eq!(certificates.challenges.pending(), 1, "the newer one stays");
    drop(newer);
    assert_eq!(certificates.challenges.pending(), 0);
    assert!(shake(&certificates, &authority, "a.test").is_err());
}

#[test]
fn a_session_is_resumed_after_a_change_of_certificates() {
    let managed = Managed::default();
    let first = certificate("a.test");
    let trusted = first.key.cert[0].clone();
    managed.set(first);
    let certificates = Certificates::load(vec![Box::new(managed.clone())]).unwrap();
    assert_eq!(certificates.config.ticketer.lifetime(), 12 * 60 * 60);
    let client = client(&trusted, &[b"http/1.1"]);
    let kind = |certificates| shake(certificates, &client, "a.test").unwrap().0.handshake_kind();
    assert_eq!(kind(&certificates), Some(rustls::HandshakeKind::Full));
    managed.set(certificate("a.test"));
    assert_eq!(certificates.refresh(), Ok(true));
    assert_eq!(kind(&certificates), Some(rustls::HandshakeKind::Resumed));
}

#[test]
fn a_session_goes_on_at_another_node_that_shares_its_keys() {
    let shared = certificate("a.test");
    let trusted = shared.key.cert[0].clone();
    let nodes = [(); 2].map(|()| {
        let managed = Managed::default();
        managed.set(shared.clone());
        Certificates::load(vec![Box::new(managed)]).unwrap()
    });
    let client = client(&trusted, &[b"http/1.1"]);
    let kind = |certificates| shake(certificates, &client, "a.test").unwrap().0.handshake_kind();
    assert_eq!(kind(&nodes[0]), Some(rustls::HandshakeKind::Full));
    assert_eq!(kind(&nodes[1]), Some(rustls::HandshakeKind::Full), "each has its own keys");
    let key = TicketKey::random().unwrap();
    nodes.iter().for_each(|node| node.share_ticket_keys(std::slice::from_ref(&key)));
    assert_eq!(
        kind(&nodes[0]),
        Some(rustls::HandshakeKind::Full),
        "the ticket of before is for the other node"
    );
    assert_eq!(kind(&nodes[1]), Some(rustls::HandshakeKind::Resumed));
    assert_eq!(kind(&nodes[0]), Some(rustls::HandshakeKind::Resumed));
}
