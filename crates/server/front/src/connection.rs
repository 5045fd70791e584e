//! Serves one client connection.
//!
//! HTTP/1: the front (`front`) parses strictly, enforces time limits and answers plain hits. For any
//! other request, hyper's HTTP/1 runs on top of the front, with one exchange per request, until the
//! client is idle. So an idle connection consists of a socket and a front. HTTP/2: see `http2`.
//!
//! With TLS, ALPN selects the protocol; without TLS, the first bytes do. A connection ends when the
//! client closes it, at an error, or at shutdown after the request in progress has been answered.

use crate::front::{Front, Next};
use crate::hit::HitFinder;
use crate::http2;
use crate::hyper_content;
use crate::serve_request::{HttpVersion, RequestServer};
use delivery::body::ResponseBody;
use delivery::in_flight::{InFlight, InFlightGuard};
use delivery::log_entry::Entry;
use delivery::site::Site;
use forward::upgrade::{self, Slot};
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use origin::Origin;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use telemetry::client::{ClientConnection, ClientExtras};
use telemetry::limit_hits::Limit;
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_content::RequestContent;
use telemetry::traces::Trace;
use telemetry::trailers;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::task::unconstrained;
use tokio::time::timeout;

/// Minimum size of hyper's own buffer, in bytes. It can be small because the front passes complete
/// header sections.
const HYPER_BUFFER_BYTES_MIN: usize = 8 << 10;

/// The protocol of a connection, and the bytes that have been read from it so far.
pub enum DetectedProtocol {
    /// HTTP/1.1 or 1.0, with the bytes read so far.
    Http1(Vec<u8>),
    /// HTTP/2, with the bytes read so far.
    Http2(Vec<u8>),
}

/// Serves a connection without TLS until it ends. Its first bytes select the protocol.
pub async fn serve_plain<IO>(
    mut io: IO,
    client: Arc<ClientConnection>,
    site: Arc<Site>,
    mut stop: PhaseWatch,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let spoken = tokio::select! {
        // Bytes that have already arrived are read before shutdown is checked.
        biased;
        spoken = listen_in(&mut io, &site) => spoken,
        () = stop_requested(&mut stop) => return,
    };
    match spoken {
        Ok(Some(spoken)) => serve(io, spoken, client, site, stop).await,
        Ok(None) => {}
        Err(error) => tracing::debug!(event = "connection-ended", %error),
    }
}

/// Reads until it is clear whether the client starts with the HTTP/2 preface. `None` if the client
/// closes the connection, or sends nothing within `idle_timeout`.
async fn listen_in<IO>(io: &mut IO, site: &Site) -> io::Result<Option<DetectedProtocol>>
where
    IO: AsyncRead + Unpin,
{
    let limits = &site.limits;
    let mut begun = Vec::new();
    loop {
        let wait = if begun.is_empty() { limits.idle_timeout } else { limits.header_timeout };
        match timeout(wait, poll_fn(|cx| poll_piece(io, &mut begun, cx))).await {
            Ok(Ok(0)) if begun.is_empty() => return Ok(None),
            Ok(Err(error)) => return Err(error),
            Err(_) if begun.is_empty() => {
                site.counters.limit_hits.note(Limit::IdleTimeout);
                return Ok(None);
            }
            // The front reports the error if the bytes are not HTTP/1.
            Ok(Ok(0)) | Err(_) => return Ok(Some(DetectedProtocol::Http1(begun))),
            Ok(Ok(_)) => {}
        }
        let common = begun.len().min(http2::PREFACE.len());
        if begun[..common] != http2::PREFACE[..common] {
            return Ok(Some(DetectedProtocol::Http1(begun)));
        }
        if common == http2::PREFACE.len() {
            return Ok(Some(DetectedProtocol::Http2(begun)));
        }
    }
}

/// Reads the available bytes, at most 2 KiB (enough for most requests), and returns their number.
fn poll_piece<IO>(io: &mut IO, begun: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<io::Result<usize>>
where
    IO: AsyncRead + Unpin,
{
    let mut piece = [MaybeUninit::<u8>::uninit(); 2 << 10];
    let mut buffer = ReadBuf::uninit(&mut piece);
    ready!(Pin::new(io).poll_read(cx, &mut buffer))?;
    begun.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Serves a connection of a known protocol until it ends.
pub async fn serve<IO>(
    io: IO,
    spoken: DetectedProtocol,
    client: Arc<ClientConnection>,
    site: Arc<Site>,
    stop: PhaseWatch,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match spoken {
        DetectedProtocol::Http1(begun) => serve_http1(io, begun, client, site, stop).await,
        DetectedProtocol::Http2(begun) => {
            Box::pin(http2::serve(io, begun, client, site, stop)).await
        }
    }
}

async fn serve_http1<IO>(
    io: IO,
    begun: Vec<u8>,
    client: Arc<ClientConnection>,
    site: Arc<Site>,
    mut stop: PhaseWatch,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (in_flight, slot) = (Arc::new(InFlight::default()), Slot::default());
    let _ending = in_flight.ending();
    let redirected = exchange::is_redirected(&site, client.scheme);
    let hits = (site.config.hits_in_front && !redirected && site.answers_from_cache())
        .then(|| HitFinder::new(site.clone(), &client));
    let front = Front::new(io, begun, site.clone(), in_flight.clone(), slot.clone(), hits);
    let mut front = front.logged(&client).credited(&client);
    loop {
        let next = until_stopping(pin!(poll_fn(|cx| front.poll_request(cx))), stop.clone()).await;
        if !matches!(next, Some(Ok(Next::Request))) {
            note_last_hits(&client, &in_flight, front.requests());
        }
        match next {
            Some(Ok(Next::Request)) => {}
            Some(Err(error)) => {
                tracing::debug!(event = "connection-ended", %error);
                return;
            }
            // All output is written, and closing a plain socket signals the end.
            Some(Ok(Next::Ended)) if !client.is_secure() => return,
            Some(Ok(Next::Ended)) | None => {
                let _ = front.shutdown().await;
                return;
            }
        }
        // A separate allocation, which exists only while hyper has a request to answer.
        let answering = answer(front, &client, &site, (&in_flight, &slot), &mut stop);
        match Box::pin(answering).await {
            Some(rested) => front = rested,
            None => return,
        }
    }
}

/// Records the plain hits of a connection that ends.
fn note_last_hits(client: &ClientConnection, in_flight: &InFlight, requests: usize) {
    if let Some(evidence) = &client.evidence {
        in_flight.note_received(requests);
        evidence.add_last_hits(in_flight.plain_hits(0));
    }
}

/// Lets hyper answer the pending request and those that follow, until the client is idle. Returns the
/// front then, and `None` if the connection has ended.
async fn answer<IO>(
    front: Front<IO>,
    client: &Arc<ClientConnection>,
    site: &Arc<Site>,
    (in_flight, slot): (&Arc<InFlight>, &Slot),
    stop: &mut PhaseWatch,
) -> Option<Front<IO>>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let has_http_origin = site.all_sites().any(|site| matches!(*site.origin, Origin::Http(_)));
    let server = RequestServer::new(site, client);
    let service = service_fn(|request: Request<Incoming>| {
        let version = Http1 { guard: in_flight.enter(), in_flight, slot, has_http_origin };
        if let Some(evidence) = &client.evidence {
            evidence.add_hits(in_flight.plain_hits(1));
        }
        server.serve(request.map(hyper_content::content), version)
    });
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_headers(site.limits.headers)
        .max_buf_size(site.limits.header_bytes.max(HYPER_BUFFER_BYTES_MIN) + (64 << 10))
        .serve_connection(TokioIo::new(front), service);
    in_flight.has_rested();
    let rested = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        // hyper was waiting for the next request, so it holds no data.
        Poll::Pending if in_flight.has_rested() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let ended = match until_stopping(pin!(rested), stop.clone()).await {
        Some(Some(ended)) => ended,
        Some(None) => return Some(connection.into_parts().io.into_inner()),
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    match (ended, slot.take()) {
        (Err(error), _) => tracing::debug!(event = "connection-ended", %error),
        (Ok(()), Some(tunnel)) => {
            let parts = connection.into_parts();
            let (io, arrived) = parts.io.into_inner().into_parts();
            let early = [&parts.read_buf[..], &arrived].concat();
            upgrade::join(tunnel, io, &early, site, stop).await;
        }
        (Ok(()), None) => {}
    }
    None
}

/// A request over HTTP/1.
struct Http1<'a> {
    guard: InFlightGuard,
    in_flight: &'a Arc<InFlight>,
    slot: &'a Slot,
    has_http_origin: bool,
}

impl HttpVersion for Http1<'_> {
    type Body = ResponseBody;

    fn begin(&mut self, request: &mut Request<RequestContent>) -> ClientExtras {
        let unredirected = self.in_flight.take_unredirected();
        if !self.has_http_origin {
            return ClientExtras { unredirected, ..ClientExtras::default() };
        }
        if request.headers().contains_key(header::CONNECTION)
            && let Some(offer) = self.slot.offered()
        {
            request.extensions_mut().insert(offer);
        }
        ClientExtras { unredirected, ..client_extras(request, self.in_flight) }
    }

    fn keep(&mut self, entry: Option<Box<Entry>>) {
        self.guard.entry = entry;
    }

    /// The front has checked it.
    fn accept(
        &mut self,
        _site: &Arc<Site>,
        request: Request<RequestContent>,
    ) -> Result<Request<RequestContent>, Box<Response<ResponseBody>>> {
        Ok(request)
    }

    fn complete(
        mut self,
        site: &Arc<Site>,
        mut response: Response<ResponseBody>,
        trace: Option<Trace>,
    ) -> Response<ResponseBody> {
        end_if_leaving(site, &mut response);
        self.in_flight.seal();
        say_whether_last(self.in_flight, &mut response);
        self.guard.answered(&response, trace);
        let in_flight = self.in_flight;
        response.map(|body| body.tracked(|| in_flight.client(site).clone()).guarded(self.guard))
    }
}

/// Adds `Connection: close` to the last response of a connection (RFC 9112 section 9.6).
fn say_whether_last<B>(in_flight: &InFlight, response: &mut Response<B>) {
    if in_flight.is_last() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
}

/// Adds `Connection: close` when this process is being replaced or stopped, so that the client's next
/// connection reaches the new process. Checked after the response was generated, because that may take
/// long.
fn end_if_leaving<B>(site: &Site, response: &mut Response<B>) {
    if !site.answers_from_cache() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
}

/// The messages that the client accepts in addition to the response. These are interim responses from
/// HTTP/1.1 on (RFC 9110 section 15.2), and trailers if it requests them.
fn client_extras(request: &Request<RequestContent>, in_flight: &Arc<InFlight>) -> ClientExtras {
    match request.version() {
        Version::HTTP_11 => ClientExtras {
            interims: Some(in_flight.interims()),
            trailers: trailers::wanted(request.headers()),
            ..ClientExtras::default()
        },
        _ => ClientExtras::default(),
    }
}

/// The result of `connection`, or `None` if Pagewell has to stop first. The stop signal is subscribed
/// to once; afterwards each wake-up of the connection only reads a counter. The wait is
/// `unconstrained`, because a busy connection uses up its tokio budget at each poll and would never see
/// the signal.
async fn until_stopping<F: Future>(
    mut connection: Pin<&mut F>,
    mut stop: PhaseWatch,
) -> Option<F::Output> {
    let seen = stop.clone();
    let mut told = pin!(unconstrained(stop_requested(&mut stop)));
    let mut waits = false;
    poll_fn(|cx| {
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(Some(ended));
        }
        if waits && matches!(seen.has_changed(), Ok(false)) {
            return Poll::Pending;
        }
        waits = true;
        told.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// Completes when Pagewell has to stop.
async fn stop_requested(stop: &mut PhaseWatch) {
    let _ = stop.wait_for(Phase::is_over).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_stream::ClientStream;
    use std::time::Duration;
    use tokio::sync::watch;
    use tokio::task::coop;

    /// Size in bytes of the future that serves a connection.
    fn taken<F>(
        _serve: impl Fn(ClientStream, Arc<ClientConnection>, Arc<Site>, PhaseWatch) -> F,
    ) -> usize {
        size_of::<F>()
    }

    /// Thousands of these futures exist at a time, so large and rarely used state must be boxed.
    #[test]
    fn the_state_of_a_connection_is_small() {
        let bytes = taken(serve_plain::<ClientStream>);
        println!("{bytes} bytes, of which the front is {}", size_of::<Front<ClientStream>>());
        assert!(bytes <= 1408, "{bytes} bytes");
    }

    /// Uses up tokio's budget in the first `turns` polls, and then stays pending for ever.
    async fn busy(mut turns: usize) {
        poll_fn(|cx| {
            turns = turns.saturating_sub(1);
            while turns > 0
                && let Poll::Ready(turn) = coop::poll_proceed(cx)
            {
                turn.made_progress();
            }
            Poll::Pending
        })
        .await
    }

    #[tokio::test]
    async fn a_connection_yields_after_its_turn_and_when_idle() {
        for turns in [usize::MAX, 2] {
            let (says, told) = watch::channel(Phase::Serving);
            let ended = tokio::spawn(async move { until_stopping(pin!(busy(turns)), told).await });
            tokio::time::sleep(Duration::from_millis(10)).await;
            says.send(Phase::Stopping).expect("it listens");
            let ended = timeout(Duration::from_secs(30), ended).await;
            assert_eq!(ended.expect("told").expect("it ran"), None, "{turns}");
        }
    }
}
