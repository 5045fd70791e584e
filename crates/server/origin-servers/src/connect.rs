//! Connections to the servers of an origin, by TCP, and by TLS for `https://`.
//!
//! The certificate of a server is always verified, with the name of its URL or the configured one (RFC 9110 section
//! 4.3.4). The handshake has the same time limit as the connection.

use config::OriginServers;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use sockets::one_of_transports;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to the servers of one origin, with its settings for TLS.
#[derive(Clone)]
pub struct Connector {
    tcp: HttpConnector,
    /// For `https://`; `None` if no server has such a URL.
    tls: Option<TlsConnector>,
    name: Option<ServerName<'static>>,
    timeout: Duration,
}

impl Connector {
    /// Prepares connections. Each takes at most `timeout` for TCP, and as long again for TLS.
    ///
    /// # Errors
    /// The certificates of authorities cannot be read, or the name is none: a sentence for the operator.
    pub fn new(servers: &OriginServers, timeout: Duration) -> Result<Connector, String> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(timeout));
        tcp.enforce_http(false);
        let tls = servers.all().any(|server| server.is_tls);
        let tls = tls.then(|| client(servers.ca_file.as_deref())).transpose()?;
        let name = |name: &String| {
            ServerName::try_from(name.clone())
                .map_err(|_| format!("site.origin_tls.name: {name:?} is no name of a certificate"))
        };
        let name = servers.tls_name.as_ref().map(name).transpose()?;
        Ok(Connector { tcp, tls: tls.map(|tls| TlsConnector::from(Arc::new(tls))), name, timeout })
    }

    /// Connects to the host and port of a URL.
    ///
    /// # Errors
    /// The server cannot be reached in time, or its certificate is not valid for it.
    pub async fn connect(mut self, uri: http::Uri) -> Result<ServerStream, BoxError> {
        let is_tls = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let stream = self.tcp.call(uri).await?.into_inner();
        let Some(tls) = self.tls.filter(|_| is_tls) else {
            return if is_tls {
                Err("TLS is not prepared".into())
            } else {
                Ok(ServerStream::Tcp(stream))
            };
        };
        let name = match self.name {
            Some(name) => name,
            None => ServerName::try_from(host)?,
        };
        match tokio::time::timeout(self.timeout, tls.connect(name, stream)).await {
            Ok(connected) => Ok(ServerStream::Tls(Box::new(connected?))),
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

impl Service<http::Uri> for Connector {
    type Response = ServerStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ServerStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        // The connector that is ready is used; its copy is for the next call.
        let next = self.clone();
        Box::pin(std::mem::replace(self, next).connect(uri))
    }
}

/// The TLS of a client that trusts these authorities, or those of the system.
fn client(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let key = if ca_file.is_some() { "site.origin_tls.ca_file" } else { "site.origin" };
    let roots = certificates::authorities(ca_file).map_err(|why| format!("{key}: {why}"))?;
    let config = certificates::client_config(roots);
    let mut config = config.map_err(|why| format!("site.origin: {why}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A connection to a server.
pub enum ServerStream {
    /// Without TLS.
    Tcp(TcpStream),
    /// With TLS. Boxed, because its state is large.
    Tls(Box<TlsStream<TcpStream>>),
}

one_of_transports!(ServerStream: Tcp, Tls);

impl Connection for ServerStream {
    fn connected(&self) -> Connected {
        match self {
            ServerStream::Tcp(stream) => stream.connected(),
            ServerStream::Tls(stream) => stream.get_ref().0.connected(),
        }
    }
}
