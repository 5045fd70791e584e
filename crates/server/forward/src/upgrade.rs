//! Protocol upgrades (RFC 9110 section 7.8), mainly WebSocket. The request is forwarded to an HTTP
//! origin. If the origin accepts (101), bytes are copied in both directions until both sides have
//! ended, nothing was sent for `upgrade_idle_timeout`, or Pagewell stops. They are neither interpreted
//! nor cached.
//!
//! To hyper the request is an ordinary one: the front has removed the Upgrade field and stored it in
//! the [`Slot`]. A response other than 101 is handled as usual; after a 101 the connection is taken
//! back from hyper.
//!
//! An upgraded connection does not count as a request at the origin, because many of them would block
//! page requests; `upgrades` limits their number. FastCGI does not support upgrades: there, and for
//! `h2c`, the Upgrade field is ignored. In HTTP/2 there is no such request.

use crate::forward;
use crate::litespeed;
use crate::rate_limit;
use config::Limits;
use delivery::body::{Content, ResponseBody};
use delivery::serve;
use delivery::site::Site;
use delivery::visitors;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_cache::ForwardReason;
use http_cache::status::{CacheOutcome, CacheStatus};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use origin::http::Switch;
use origin::{Origin, OriginClass, OriginRequest};
use reasons::Reason;
use request_values::target::TargetUri;
use site_state::pending_changes::PendingChange;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use telemetry::client::Client;
use telemetry::client::ClientExtras;
use telemetry::limit_hits::Limit;
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_content::RequestContent;
use telemetry::traces;
use telemetry::trailers::Trailers;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, split};
use tokio::sync::OwnedSemaphorePermit;

/// Size of the copy buffer for each direction, in bytes.
const PIECE_BYTES: usize = 16 << 10;

/// The origin's side of an upgraded connection.
pub struct Tunnel {
    origin: Upgraded,
    _place: OwnedSemaphorePermit,
}

/// Passes an offered or accepted upgrade between the front and the exchange. The lock is held only to
/// store or take the value.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Change>>);

/// The state of an upgrade on a connection.
#[derive(Default)]
enum Change {
    #[default]
    None,
    /// The request that hyper is about to read offers these protocols.
    Offered(Vec<HeaderValue>),
    /// The origin has accepted.
    Agreed(Tunnel),
}

/// The protocols that a request offers, and the slot for the result.
#[derive(Clone)]
pub struct Offer {
    protocols: Vec<HeaderValue>,
    slot: Slot,
}

impl Slot {
    /// Stores the protocols that a request offers, before hyper reads it.
    pub fn offer(&self, protocols: Vec<HeaderValue>) {
        *self.now() = Change::Offered(protocols);
    }

    /// Takes the offer of the request that hyper has read.
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

    /// Whether the origin has accepted the upgrade.
    pub fn is_agreed(&self) -> bool {
        matches!(*self.now(), Change::Agreed(_))
    }

    /// Takes the origin's side of the accepted upgrade.
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

/// Whether a request offers an upgrade, and the origin may support it. A server may ignore an offer (RFC 9110 section 7.8). It is ignored for methods other
/// than GET, so that writes are handled as writes.
pub fn is_upgrade(site: &Site, request: &Request<RequestContent>) -> bool {
    may_switch(site, request.method()) && request.extensions().get::<Offer>().is_some()
}

/// Whether the origin may accept an upgrade that a request with this method offers.
pub fn may_switch(site: &Site, method: &Method) -> bool {
    matches!(*site.origin, Origin::Http(_)) && *method == Method::GET
}

/// Forwards an upgrade request to the origin.
pub async fn pass(
    site: &Arc<Site>,
    mut request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
) -> Response<ResponseBody> {
    let why = ForwardReason::Bypass;
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why));
    if let Err(limited) = rate_limit::count(site, &client.extras) {
        return forward::failed(site, limited.into(), why);
    }
    let place = site.upgrades.clone().try_acquire_owned();
    let offer = request.extensions_mut().remove::<Offer>();
    let (Ok(place), Some(Offer { protocols, slot })) = (place, offer) else {
        site.counters.limit_hits.note(Limit::Upgrades);
        return serve::error(StatusCode::SERVICE_UNAVAILABLE, Reason::UpgradesFull, None);
    };
    site.counters.forwards.add();
    let (head, _) = request.into_parts();
    let asked = (&target, &head.headers);
    let admission = visitors::admission(site, client, OriginClass::Upgrade, asked);
    let mut outgoing = OriginRequest {
        headers: switching(forward::outgoing(&head.headers), &protocols),
        version: head.version,
        extras: ClientExtras { trailers: Trailers::Dropped, ..client.extras.clone() },
        method: head.method.clone(),
        ..OriginRequest::of(&target, client, admission)
    };
    let trace = client.extras.trace.as_ref();
    let asked = traces::in_request(site.config.traces.as_ref(), &mut outgoing.headers, trace);
    let pending = PendingChange::begin(site.state()).await;
    let switched = site.origin.switch(outgoing).await;
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
            status.detail = pending.acknowledge().await.reason().map(Reason::as_str);
            status.forward_status = Some(response.status);
            forward::stream(site, response, &status, None)
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

/// Adds the fields `Connection` and `Upgrade` for this hop to end-to-end fields.
fn switching(mut kept: HeaderMap, protocols: &[HeaderValue]) -> HeaderMap {
    kept.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    for protocol in protocols {
        kept.append(header::UPGRADE, protocol.clone());
    }
    kept
}

/// Copies bytes between the client's connection and the origin's until they end. `early` was already
/// read from the client.
pub async fn join<IO>(tunnel: Tunnel, client: IO, early: &[u8], site: &Site, stop: &mut PhaseWatch)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (from_client, to_client) = split(client);
    let (from_origin, mut to_origin) = split(TokioIo::new(tunnel.origin));
    let moved = AtomicU64::new(0);
    let up = async {
        // Bytes that the client sent before it got the response.
        to_origin.write_all(early).await?;
        carry(from_client, to_origin, &moved).await
    };
    let down = carry(from_origin, to_client, &moved);
    let ended = tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(|_| "ended"),
        () = silence(&moved, &site.limits) => {
            site.counters.limit_hits.note(Limit::UpgradeIdleTimeout);
            Ok("silent")
        }
        _ = stop.wait_for(Phase::is_over) => Ok("stopping"),
    };
    match ended {
        Ok(why) => tracing::debug!(event = "upgrade-ended", why),
        Err(error) => tracing::debug!(event = "upgrade-ended", %error),
    }
}

/// Copies one direction until its end, and then shuts down the other side.
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

/// Completes when nothing was copied for `upgrade_idle_timeout`.
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
