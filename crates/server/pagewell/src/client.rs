//! The client of a request: its address, how that is known, and by which scheme its requests come.
//!
//! A connection has one, made when it is accepted; each request refers to it. Nothing here is read from a
//! request: its fields are `request_fields`'s.

use crate::origin::Besides;
use hyper::body::Incoming;
use site_rules::Peer;
use std::net::SocketAddr;

/// The content of a request; none where Pagewell itself asks, for a fragment of a page.
pub type RequestContent = Option<Incoming>;

/// Who asks, and by which way.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// The client's address; none over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address it came to; none over a Unix socket.
    pub local: Option<SocketAddr>,
    /// Whether the connection is a trusted proxy's, whose word about its clients is taken.
    pub believed: Peer,
    /// Who says where the connection comes from.
    pub said_by: SaidBy,
    /// `https` over TLS, else `http`.
    pub scheme: &'static str,
    /// What is sent besides responses.
    pub besides: Besides,
}

impl Visitor {
    /// Whether the connection is one over TLS.
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }
}

/// Who says where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// The socket itself: nobody stands between, as far as the connection shows.
    Socket,
    /// A proxy names the client by the PROXY protocol.
    Proxy,
    /// A proxy does not know whose it is: the address is the proxy's.
    Nobody,
}
