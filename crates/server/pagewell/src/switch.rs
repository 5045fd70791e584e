//! Connections that change to another protocol (RFC 9110 section 7.8), WebSocket above all: the
//! request goes to an HTTP origin as it came, and when the origin agrees (101), what either side says
//! is carried to the other at once, until both have ended, nothing was said for
//! `upgrade_idle_timeout`, or Pagewell stops. It is neither read nor kept.
//!
//! To hyper the request is an ordinary one: the front has taken the offer out and left it in the
//! [`Slot`]. So is an answer in place of a 101; after a 101 the connection is taken back from hyper.
//!
//! The place at the origin is given back at the 101, or conversations would starve pages; `upgrades`
//! bounds how many there are. A FastCGI responder has no other protocol to offer: there, and for
//! `h2c`, the request is an ordinary one. In HTTP/2 there is no such request.

use crate::body::{Content, ResponseBody};
use crate::config::Limits;
use crate::exchange::{RequestContent, Visitor};
use crate::forward;
use crate::in_hand;
use crate::litespeed;
use crate::origin::http::{HttpOrigin, Switch};
use crate::origin::{Besides, Origin, OriginRequest, Reached, RequestBody};
use crate::phase::{Phase, Told};
use crate::reached::Limit;
use crate::serve;
use crate::site::Site;
use crate::target::Target;
use crate::traces;
use crate::trailers::Trailers;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{FieldUse, ForwardReason};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, split};
use tokio::sync::OwnedSemaphorePermit;

/// Carried at a time, in each direction.
const PIECE_BYTES: usize = 16 << 10;

/// The origin's side of a conversation, for the client's to be joined to.
pub struct Tunnel {
    origin: Upgraded,
    _place: OwnedSemaphorePermit,
}

/// Where front and exchange leave what they know of a change of the protocol. Guards that one value,
/// for no longer than it takes to put it there or take it.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Change>>);

/// How far a connection is with it.
#[derive(Default)]
enum Change {
    #[default]
    None,
    /// The request that hyper is about to read offers these.
    Offered(Vec<HeaderValue>),
    /// The origin has agreed.
    Agreed(Tunnel),
}

/// What a request offers, and where an agreement is left.
#[derive(Clone)]
pub struct Offer {
    protocols: Vec<HeaderValue>,
    slot: Slot,
}

impl Slot {
    /// Leaves the protocols that a request offers, before hyper reads it.
    pub fn offer(&self, protocols: Vec<HeaderValue>) {
        *self.now() = Change::Offered(protocols);
    }

    /// What the request that hyper has read offers.
    pub fn offered(&self) -> Option<Offer> {
        let mut now = self.now();
        match std::mem::take(&mut *now) {
            Change::Offered(protocols) => Some(Offer { protocols, slot: self.clone() }),
            other => {
                *now = other;
                None
            }
        }
    }

    /// Whether the connection is to go on in another protocol.
    pub fn is_agreed(&self) -> bool {
        matches!(*self.now(), Change::Agreed(_))
    }

    /// What it is to be joined to.
    pub fn take(&self) -> Option<Tunnel> {
        match std::mem::take(&mut *self.now()) {
            Change::Agreed(tunnel) => Some(tunnel),
            Change::None | Change::Offered(_) => None,
        }
    }

    fn now(&self) -> MutexGuard<'_, Change> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The origin that may be asked to change the protocol, if the request offers that and it can be. An
/// offer may be ignored (RFC 9110 section 7.8); with another method than GET it is, so that a write is a
/// write.
pub fn asked<'a>(site: &'a Site, request: &Request<RequestContent>) -> Option<&'a HttpOrigin> {
    let Origin::Http(origin) = &site.origin else { return None };
    if request.method() != Method::GET {
        return None;
    }
    request.extensions().get::<Offer>().map(|_| &**origin)
}

/// Passes such a request on.
pub async fn pass(
    site: &Arc<Site>,
    origin: &HttpOrigin,
    mut request: Request<RequestContent>,
    target: Target,
    visitor: &Visitor,
) -> Response<ResponseBody> {
    let why = ForwardReason::Bypass;
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why));
    let place = site.upgrades.clone().try_acquire_owned();
    let offer = request.extensions_mut().remove::<Offer>();
    let (Ok(place), Some(Offer { protocols, slot })) = (place, offer) else {
        site.counters.reached.note(Limit::Upgrades);
        return serve::error(StatusCode::SERVICE_UNAVAILABLE, "upgrades-full", None);
    };
    site.counters.forwards.add();
    let (head, _) = request.into_parts();
    let mut outgoing = OriginRequest {
        target: target.path_and_query.clone(),
        host: target.host.clone(),
        scheme: target.scheme,
        headers: switching(forward::outgoing(&head.headers), &protocols),
        body: RequestBody::Empty,
        peer: visitor.peer,
        local: visitor.local,
        script: None,
        version: head.version,
        besides: Besides { trailers: Trailers::Dropped, ..visitor.besides.clone() },
        method: head.method.clone(),
        litespeed: FieldUse::Ignore,
        reached: Reached::default(),
    };
    let trace = visitor.besides.trace.as_ref();
    let asked = traces::in_request(site, &mut outgoing.headers, trace);
    let hand = in_hand::begin(site).await;
    let switched = origin.switch(outgoing).await;
    if let Some(asked) = asked {
        asked.ended(switched.as_ref().ok().map(Switch::status));
    }
    match switched {
        Err(unsent) => forward::failed(site, unsent, why),
        Ok(Switch::Refused(response)) => {
            litespeed::take_in(
                site,
                (&head.method, || target.uri()),
                &head.headers,
                &response.headers,
            );
            status.detail = in_hand::end(site, hand).await.detail();
            status.forward_status = Some(response.status);
            forward::stream(site, response, &status)
        }
        Ok(Switch::Agreed { headers, protocol }) => {
            site.counters.upgrades.add();
            *slot.now() = Change::Agreed(Tunnel { origin: protocol, _place: place });
            status.forward_status = Some(StatusCode::SWITCHING_PROTOCOLS);
            let policy = &site.config.policy;
            let mut response = Response::new(ResponseBody::from(Content::Empty));
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let protocols: Vec<_> = headers.get_all(header::UPGRADE).iter().cloned().collect();
            *response.headers_mut() =
                switching(serve::passed_on(headers, policy, &status), &protocols);
            response
        }
    }
}

/// End-to-end lines, and those that change the protocol on this hop.
fn switching(mut kept: HeaderMap, protocols: &[HeaderValue]) -> HeaderMap {
    kept.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    for protocol in protocols {
        kept.append(header::UPGRADE, protocol.clone());
    }
    kept
}

/// Joins the visitor's connection, on which `early` has come already, to the origin's until they end.
pub async fn join<IO>(tunnel: Tunnel, client: IO, early: &[u8], site: &Site, stop: &mut Told)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (from_client, to_client) = split(client);
    let (from_origin, mut to_origin) = split(TokioIo::new(tunnel.origin));
    let moved = AtomicU64::new(0);
    let up = async {
        // What the client said before it had the answer.
        to_origin.write_all(early).await?;
        carry(from_client, to_origin, &moved).await
    };
    let down = carry(from_origin, to_client, &moved);
    let ended = tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(|_| "ended"),
        () = silence(&moved, &site.limits) => {
            site.counters.reached.note(Limit::UpgradeIdleTimeout);
            Ok("silent")
        }
        _ = stop.wait_for(Phase::is_over) => Ok("stopping"),
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
