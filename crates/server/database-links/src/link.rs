//! The transport of a database connection: TCP, a Unix socket, or TLS over TCP.
//!
//! | `ssl-mode` | check of the server's certificate |
//! |---|---|
//! | `required` | none: the connection is encrypted, but the server is not authenticated |
//! | `verify-ca` | it is signed by a trusted certificate |
//! | `verify-full` | the same, and it is valid for the host name of the configuration (RFC 6125) |
//!
//! The trusted certificates are those of the configured file, or else those of the system. The file
//! is read for each connection. TLS is rustls. Not here: the moment at which TLS begins, which is
//! part of each database's protocol.

use crate::fault::ConnectionError;
use bytes::BytesMut;
use config::{Address, DatabaseServer, DatabaseTls, Place, Trust};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sockets::Socket;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The transport of a connection.
pub enum Link {
    /// A connection without encryption.
    Plain(Socket),
    /// A connection that uses TLS.
    Tls(Box<TlsStream<Socket>>),
}

impl Link {
    /// Connects without TLS, to the first address of the host that accepts.
    ///
    /// # Errors
    /// Name resolution failed, or no address accepted the connection.
    pub async fn connect(server: &DatabaseServer) -> Result<Link, ConnectionError> {
        let (host, port) = match &server.place {
            Place::Unix(path) => {
                return Ok(Link::Plain(Socket::connect(&Address::Unix(path.clone())).await?));
            }
            Place::Tcp(host, port) => (host.as_str(), *port),
        };
        let mut why = io::Error::from(io::ErrorKind::NotFound);
        for address in tokio::net::lookup_host((host, port)).await? {
            match Socket::connect(&Address::Tcp(address)).await {
                Ok(socket) => return Ok(Link::Plain(socket)),
                Err(error) => why = error,
            }
        }
        Err(why.into())
    }

    /// Starts TLS on this connection.
    ///
    /// # Errors
    /// `bad-certificate` with a sentence, or the connection failed.
    pub async fn over_tls(self, server: &DatabaseServer) -> Result<Link, ConnectionError> {
        let (Link::Plain(socket), Place::Tcp(host, _)) = (self, &server.place) else {
            return Err(wrong("TLS goes over TCP, and once".into()));
        };
        let name = ServerName::try_from(host.clone());
        let name =
            name.map_err(|_| wrong(format!("{host:?} is no name a certificate can have")))?;
        let Some(tls) = &server.tls else { return Err(wrong("TLS was not asked for".into())) };
        let connector = TlsConnector::from(Arc::new(client(tls)?));
        match connector.connect(name, socket).await {
            Ok(stream) => Ok(Link::Tls(Box::new(stream))),
            // rustls reports a rejected certificate as `InvalidData`.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(wrong(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads available bytes into the buffer. Returns their number; 0 at the end of the connection.
    ///
    /// # Errors
    /// The I/O error of the system.
    pub async fn read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        match self {
            Link::Plain(socket) => socket.read_buf(into).await,
            Link::Tls(stream) => stream.read_buf(into).await,
        }
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// The I/O error of the system.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Link::Plain(socket) => socket.write_all(bytes).await,
            Link::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }
}

/// Runs a future with a timeout.
///
/// # Errors
/// The errors of the future, or `TimedOut`.
pub async fn within<T>(
    time: Duration,
    what: impl Future<Output = Result<T, ConnectionError>>,
) -> Result<T, ConnectionError> {
    match tokio::time::timeout(time, what).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

fn wrong(why: String) -> ConnectionError {
    ConnectionError::Lasting("bad-certificate", why)
}

/// Creates the TLS client configuration for these trust settings.
///
/// # Errors
/// The configured certificate file cannot be read.
pub fn client(tls: &DatabaseTls) -> Result<ClientConfig, ConnectionError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new(tls, &provider)?);
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| wrong(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(config)
}

/// Verifies certificates as the table above says. Handshake signatures are always verified.
#[derive(Debug)]
struct Verifier {
    trust: Trust,
    /// `None`: certificates are not verified.
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(tls: &DatabaseTls, provider: &Arc<CryptoProvider>) -> Result<Verifier, ConnectionError> {
        let chains = match tls.trust {
            Trust::Anybody => None,
            Trust::Signed | Trust::SignedForHost => {
                let roots = certificates::authorities(tls.authorities.as_deref());
                let roots = Arc::new(roots.map_err(wrong)?);
                let builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
                Some(builder.build().map_err(|error| wrong(error.to_string()))?)
            }
        };
        Ok(Verifier { trust: tls.trust, chains, provider: provider.clone() })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chains) = &self.chains else { return Ok(ServerCertVerified::assertion()) };
        let judged =
            chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match judged {
            // The name is checked last, so the chain itself is valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.trust == Trust::Signed => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
