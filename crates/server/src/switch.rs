//! Connections that change to another protocol (RFC 9110 section 7.8), WebSocket above all: the
//! request goes to an HTTP origin as it came, and when the origin agrees (101), what either side says
//! is carried to the other at once, and neither read nor kept.
//!
//! | who | what ends it |
//! |---|---|
//! | client or origin | an error; an end of one direction is passed on, the other goes on |
//! | Pagewell | nothing was said for `upgrade_idle_timeout`; it is told to stop |
//!
//! The place at the origin is given back at the 101, or conversations would starve pages; how many
//! there are at once is bounded by `upgrades`. The visitor's connection stays counted. A FastCGI
//! responder has no other protocol to offer: there, and for `h2c`, the request is an ordinary one, as
//! the section lets a server choose. In HTTP/2 there is no such request.

use crate::body::{Content, ResponseBody};
use crate::config::Limits;
use crate::exchange::Visitor;
use crate::forward;
use crate::front::Front;
use crate::origin::http::{HttpOrigin, Switch};
use crate::origin::{Origin, OriginRequest, RequestBody};
use crate::serve;
use crate::site::Site;
use crate::target::Target;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_cache::ForwardReason;
use http_cache::status::{CacheStatus, Handled};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, split};
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Carried at a time, in each direction.
const PIECE_BYTES: usize = 16 << 10;

/// Two connections that are to be joined.
pub struct Tunnel {
    client: OnUpgrade,
    origin: Upgraded,
    _place: OwnedSemaphorePermit,
}

/// Where an exchange leaves what its connection is to do next. Guards that one value, for no longer
/// than it takes to put it there or take it.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Option<Tunnel>>>);

impl Slot {
    /// What was left.
    pub fn take(&self) -> Option<Tunnel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, tunnel: Tunnel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
    }
}

/// The origin that may be asked to change the protocol, if the request wants that and it can be.
pub fn asked<'a>(site: &'a Site, request: &Request<Incoming>) -> Option<&'a HttpOrigin> {
    let Origin::Http(origin) = &site.origin else { return None };
    let plain = request.method() == Method::GET && request.version() == Version::HTTP_11;
    let possible = plain && request.body().is_end_stream();
    (possible && wants_other(request.headers())).then_some(origin)
}

/// RFC 9110 section 7.8: Upgrade counts only where Connection names it.
fn wants_other(headers: &HeaderMap) -> bool {
    let words = |name| {
        let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
    };
    let named = words(header::CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    let mut protocols = words(header::UPGRADE).peekable();
    named && protocols.peek().is_some() && protocols.all(|p| !p.eq_ignore_ascii_case("h2c"))
}

/// Passes such a request on.
pub async fn pass(
    site: &Arc<Site>,
    origin: &HttpOrigin,
    mut request: Request<Incoming>,
    target: Target,
    visitor: &Visitor,
) -> Response<ResponseBody> {
    let why = ForwardReason::Bypass;
    let mut status = CacheStatus::new(serve::CACHE_NAME, Handled::Forwarded(why));
    let place = site.upgrades.clone().try_acquire_owned();
    let slot = request.extensions_mut().remove::<Slot>();
    let (Ok(place), Some(slot)) = (place, slot) else {
        return serve::error(StatusCode::SERVICE_UNAVAILABLE, "upgrades-full", None);
    };
    site.counters.forwards.add();
    let client = hyper::upgrade::on(&mut request);
    let (head, _) = request.into_parts();
    let outgoing = OriginRequest {
        target: target.path_and_query.clone(),
        host: target.host.clone(),
        scheme: target.scheme,
        headers: switching(forward::outgoing(&head.headers), &head.headers),
        body: RequestBody::Empty,
        peer: visitor.peer,
        local: visitor.local,
        script: None,
        version: head.version,
        method: head.method,
    };
    match origin.switch(outgoing).await {
        Err(unsent) => forward::failed(site, unsent, why),
        Ok(Switch::Refused(response)) => {
            status.forward_status = Some(response.status);
            forward::stream(site, response, &status)
        }
        Ok(Switch::Agreed { headers, protocol }) => {
            site.counters.upgrades.add();
            slot.put(Tunnel { client, origin: protocol, _place: place });
            status.forward_status = Some(StatusCode::SWITCHING_PROTOCOLS);
            let policy = &site.config.policy;
            let mut response = Response::new(ResponseBody::from(Content::Empty));
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.headers_mut() =
                switching(serve::passed_on(headers.clone(), policy, &status), &headers);
            response
        }
    }
}

/// End-to-end lines, and those that change the protocol on this hop.
fn switching(mut kept: HeaderMap, all: &HeaderMap) -> HeaderMap {
    kept.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    for protocol in all.get_all(header::UPGRADE) {
        kept.append(header::UPGRADE, protocol.clone());
    }
    kept
}

/// Joins the two connections until they end. `IO` is what the visitor's connection runs on.
pub async fn join<IO>(tunnel: Tunnel, limits: &Limits, stop: &mut watch::Receiver<bool>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(client) = tunnel.client.await else { return };
    let Ok(parts) = client.downcast::<TokioIo<Front<IO>>>() else { return };
    let (client, arrived) = parts.io.into_inner().into_parts();
    let (from_client, to_client) = split(client);
    let (from_origin, mut to_origin) = split(TokioIo::new(tunnel.origin));
    let moved = AtomicU64::new(0);
    let up = async {
        // What the client said before it had the answer.
        to_origin.write_all(&parts.read_buf).await?;
        to_origin.write_all(&arrived).await?;
        carry(from_client, to_origin, &moved).await
    };
    let down = carry(from_origin, to_client, &moved);
    let ended = tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(|_| "ended"),
        () = silence(&moved, limits) => Ok("silent"),
        _ = stop.wait_for(|stop| *stop) => Ok("stopping"),
    };
    match ended {
        Ok(why) => tracing::debug!(event = "upgrade-ended", why),
        Err(error) => tracing::debug!(event = "upgrade-ended", %error),
    }
}

/// Carries one direction until its end, and passes that on.
async fn carry<R, W>(mut from: ReadHalf<R>, mut to: W, moved: &AtomicU64) -> io::Result<()>
where
    R: AsyncRead,
    W: AsyncWrite + Unpin,
{
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut piece).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..count]).await?;
        to.flush().await?;
        moved.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ready when nothing was carried for as long as is allowed.
async fn silence(moved: &AtomicU64, limits: &Limits) {
    let mut before = moved.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(limits.upgrade_idle_timeout).await;
        let now = moved.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_another_protocol() {
        let wants = |lines: &[(header::HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(name, HeaderValue::from_static(value));
            }
            wants_other(&headers)
        };
        let (connection, upgrade) = (header::CONNECTION, header::UPGRADE);
        let both = |c, u| wants(&[(connection.clone(), c), (upgrade.clone(), u)]);
        assert!(both("Upgrade", "websocket"));
        assert!(both("keep-alive, upgrade", "WebSocket"));
        assert!(!both("keep-alive", "websocket"));
        assert!(!both("Upgrade, HTTP2-Settings", "h2c"));
        assert!(!wants(&[(connection.clone(), "upgrade")]));
    }
}
