//! The listening sockets: accepts connections until shutdown, up to the configured number at a time.
//! Further connections wait in the kernel's queue. If the system has no file descriptors left,
//! accepting pauses for a moment. Binding: `bound`. An accepted socket: `socket`.
//!
//! If configured (`proxy_protocol`), a connection begins with a PROXY protocol header. Then only
//! trusted proxies may connect, and each must send the header within `header_timeout`. Its addresses
//! replace those of the socket. Nothing after the header is read here.

use crate::client_stream::ClientStream;
use crate::connection::{self, DetectedProtocol};
use crate::proxy_protocol::{self, ProxyClient, ProxyRefusal, Step};
use certificates::{CHALLENGE_PROTOCOL, Certificates};
use config::Begin;
use delivery::site::Site;
use rule_conditions::Peer;
use rustls::server::Acceptor;
use sockets::accept::Ends;
use sockets::{AcceptedConnection, Listener, accept_each};
use std::net::SocketAddr;
use std::sync::Arc;
use telemetry::client::{AddressSource, ClientConnection};
use telemetry::evidence::ClientEvidence;
use telemetry::limit_hits::Limit;
use telemetry::per_address::ConnectionGuard;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

/// Accepts client connections until shutdown; over TLS if `tls` is given.
pub async fn serve(
    listener: Listener,
    begin: Begin,
    tls: Option<Arc<Certificates>>,
    site: Arc<Site>,
    stop: PhaseWatch,
) {
    let places = site.connections.clone();
    let full = || site.counters.limit_hits.note(Limit::Connections);
    let ended = accept_each(&listener, places, full, stop.clone(), |accepted, place| {
        let (tls, site, stop) = (tls.clone(), site.now(), stop.clone());
        async move {
            site.counters.connections_accepted.add();
            let _open = site.counters.connections.during();
            let (stream, ends) = match accepted {
                AcceptedConnection::Tcp(stream, ends) => (ClientStream::Tcp(stream), ends),
                AcceptedConnection::Unix(stream) => (ClientStream::Unix(stream), (None, None)),
            };
            welcome(stream, begin, ends, tls, &site, stop).await;
            drop(place);
        }
    })
    .await;
    listener.close(ended);
}

/// Serves an accepted connection, after the PROXY header and the TLS handshake where configured.
async fn welcome(
    mut io: ClientStream,
    begin: Begin,
    ends: Ends,
    tls: Option<Arc<Certificates>>,
    site: &Arc<Site>,
    mut stop: PhaseWatch,
) {
    let ((peer, local), said) = match begin {
        Begin::Client => (ends, ProxyClient::Own),
        Begin::Proxied => {
            let named = tokio::select! {
                named = introduced(&mut io, ends.0, site) => named,
                _ = stop.wait_for(Phase::is_over) => return,
            };
            match named {
                Some(said @ ProxyClient::Client { from, to }) => ((Some(from), Some(to)), said),
                Some(said) => (ends, said),
                None => return,
            }
        }
    };
    let Ok(_counted) = count_in(site, peer) else {
        site.counters.limit_hits.note(Limit::ConnectionsPerAddress);
        tracing::debug!(event = "too-many-of-one-address", peer = %shown(peer));
        return;
    };
    // If the proxy does not know the client, header fields that it forwards are not trusted.
    let proxy_trust = if said != ProxyClient::Unknown && site.config.trusted_proxies.have_peer(peer)
    {
        Peer::Trusted
    } else {
        Peer::Anybody
    };
    let address_source = match said {
        ProxyClient::Own => AddressSource::Socket,
        ProxyClient::Client { .. } => AddressSource::Proxy,
        ProxyClient::Unknown => AddressSource::Nobody,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    // The hits of an HTTP proxy's connection are those of many clients.
    let credited = peer.filter(|_| proxy_trust == Peer::Anybody).map(|peer| peer.ip());
    let evidence = ClientEvidence::new(site.per_address.clone(), site.clock.clone(), credited);
    let evidence = Some(evidence);
    let client = ClientConnection { peer, local, proxy_trust, address_source, scheme, evidence };
    let client = Arc::new(client);
    match tls {
        None => connection::serve_plain(io, client, site.clone(), stop).await,
        Some(tls) => Box::pin(shake(io, &tls, client, site.clone(), stop)).await,
    }
}

/// Counts a connection for its address, unless the address is exempt.
///
/// # Errors
/// The address has the maximum number of connections.
fn count_in(site: &Site, peer: Option<SocketAddr>) -> Result<Option<ConnectionGuard>, ()> {
    match peer.filter(|peer| is_counted(site, *peer)) {
        Some(peer) => {
            site.per_address.enter(peer, site.limits.connections_per_address).map(Some).ok_or(())
        }
        None => Ok(None),
    }
}

/// Whether an address is subject to limits per address. Proxies are not, because they connect for many
/// clients.
pub fn is_counted(site: &Site, peer: SocketAddr) -> bool {
    let config = &site.config;
    !config.connections_exempt.have(peer.ip()) && !config.trusted_proxies.have(peer.ip())
}

fn shown(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string())
}

/// Reads the addresses in the PROXY protocol header; `None` if the connection has to end.
async fn introduced(
    io: &mut ClientStream,
    peer: Option<SocketAddr>,
    site: &Site,
) -> Option<ProxyClient> {
    let header = async {
        if site.config.trusted_proxies.have_peer(peer) {
            read_header(io).await
        } else {
            Err(ProxyRefusal::Untrusted)
        }
    };
    let refused = match timeout(site.limits.header_timeout, header).await {
        Ok(Ok(said)) => return said,
        Ok(Err(refused)) => refused,
        Err(_) => {
            site.counters.limit_hits.note(Limit::HeaderTimeout);
            ProxyRefusal::Incomplete
        }
    };
    site.counters.proxies_refused.add();
    tracing::debug!(event = "proxy-refused", reason = refused.as_str(), peer = %shown(peer));
    None
}

/// Reads the header and nothing after it. `None` if the peer closes the connection without sending
/// anything, as health checks do.
async fn read_header(io: &mut ClientStream) -> Result<Option<ProxyClient>, ProxyRefusal> {
    let mut bytes = Vec::new();
    loop {
        let missing = match proxy_protocol::read(&bytes)? {
            Step::Done(said) => return Ok(Some(said)),
            Step::More(missing) => missing as u64,
        };
        match (&mut *io).take(missing).read_buf(&mut bytes).await {
            Ok(0) | Err(_) if bytes.is_empty() => return Ok(None),
            Ok(0) | Err(_) => return Err(ProxyRefusal::Incomplete),
            Ok(_) => {}
        }
    }
}

/// Serves a connection after its TLS handshake.
async fn shake(
    io: ClientStream,
    tls: &Certificates,
    client: Arc<ClientConnection>,
    site: Arc<Site>,
    mut stop: PhaseWatch,
) {
    let handshake = async {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), io).await?;
        // Another node may have begun the challenge that this client asks for.
        let _pending = match tls.unknown_challenge(&begun.client_hello()) {
            Some(host) => tls.look_up_challenge(&host).await,
            None => None,
        };
        let config = tls.config_for(&begun.client_hello());
        begun.into_stream(config).await
    };
    let shaken = tokio::select! {
        shaken = timeout(site.limits.handshake_timeout, handshake) => shaken,
        _ = stop.wait_for(Phase::is_over) => return,
    };
    let refused = match shaken {
        Ok(Ok(io)) => {
            let spoken = match io.get_ref().1.alpn_protocol() {
                Some(b"h2") => DetectedProtocol::Http2(Vec::new()),
                // The certificate authority has seen the certificate.
                Some(CHALLENGE_PROTOCOL) => return,
                _ => DetectedProtocol::Http1(Vec::new()),
            };
            let io = ClientStream::Tls(Box::new(io));
            return connection::serve(io, spoken, client, site, stop).await;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            site.counters.limit_hits.note(Limit::HandshakeTimeout);
            "it took too long".to_owned()
        }
    };
    site.counters.handshakes_failed.add();
    tracing::debug!(event = "handshake-failed", error = refused);
}
