//! One client's connection. HTTP/1: the front (strict reading, time limits, plain hits); when there is
//! something else to answer, hyper's HTTP/1 behind it, with an exchange per request, until the client
//! rests. So an idle connection is a socket and a front, and no more. HTTP/2: see `http2`.
//!
//! Which of the two it is, TLS has agreed on with the client; in the clear the first bytes tell. Ends
//! with the client, with an error, or when Pagewell is told to stop and the request in hand has been
//! answered.

use crate::access_log::{Entry, Spent};
use crate::body::ResponseBody;
use crate::exchange::{self, Visitor};
use crate::front::{Front, Next};
use crate::hit::HitFinder;
use crate::http2;
use crate::in_flight::InFlight;
use crate::origin::{Besides, Origin};
use crate::phase::{Phase, Told};
use crate::reached::Limit;
use crate::site::Site;
use crate::switch::{self, Slot};
use crate::traces::Trace;
use crate::trailers;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::task::unconstrained;
use tokio::time::timeout;

/// hyper's own buffer need not be larger: the front hands it whole header sections.
const HYPER_BUFFER_BYTES_MIN: usize = 8 << 10;

/// Which protocol a connection speaks, and what of it has come already.
pub enum Spoken {
    /// HTTP/1.1 or 1.0.
    Http1(Vec<u8>),
    /// HTTP/2.
    Http2(Vec<u8>),
}

/// Serves a connection in the clear until it ends: its first bytes say what it speaks.
pub async fn serve_plain<IO>(mut io: IO, visitor: Visitor, site: Arc<Site>, mut stop: Told)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let spoken = tokio::select! {
        // What has come already is read before anybody waits.
        biased;
        spoken = listen_in(&mut io, &site) => spoken,
        () = told(&mut stop) => return,
    };
    match spoken {
        Ok(Some(spoken)) => serve(io, spoken, visitor, site, stop).await,
        Ok(None) => {}
        Err(error) => tracing::debug!(event = "connection-ended", %error),
    }
}

/// Reads until it is clear whether a client begins with HTTP/2's preface; `None` when it leaves, or
/// says nothing for too long.
async fn listen_in<IO>(io: &mut IO, site: &Site) -> io::Result<Option<Spoken>>
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
                site.counters.reached.note(Limit::IdleTimeout);
                return Ok(None);
            }
            // What it is not, the front says.
            Ok(Ok(0)) | Err(_) => return Ok(Some(Spoken::Http1(begun))),
            Ok(Ok(_)) => {}
        }
        let common = begun.len().min(http2::PREFACE.len());
        if begun[..common] != http2::PREFACE[..common] {
            return Ok(Some(Spoken::Http1(begun)));
        }
        if common == http2::PREFACE.len() {
            return Ok(Some(Spoken::Http2(begun)));
        }
    }
}

/// Reads what has come, and returns how much; a request fits, as a rule.
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

/// Serves a connection until it ends.
pub async fn serve<IO>(io: IO, spoken: Spoken, visitor: Visitor, site: Arc<Site>, stop: Told)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match spoken {
        Spoken::Http1(begun) => serve_http1(io, begun, visitor, site, stop).await,
        Spoken::Http2(begun) => Box::pin(http2::serve(io, begun, visitor, site, stop)).await,
    }
}

async fn serve_http1<IO>(io: IO, begun: Vec<u8>, visitor: Visitor, site: Arc<Site>, mut stop: Told)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (in_flight, slot) = (Arc::new(InFlight::default()), Slot::default());
    let _ending = in_flight.ending();
    let redirected = exchange::is_redirected(&site, visitor.scheme);
    let hits = (site.config.hits_in_front && !redirected && !site.is_leaving())
        .then(|| HitFinder::new(site.clone(), visitor.believed, visitor.scheme));
    let front = Front::new(io, begun, site.clone(), in_flight.clone(), slot.clone(), hits);
    let mut front = front.logged(&visitor);
    loop {
        let next = until_told(pin!(poll_fn(|cx| front.poll_request(cx))), stop.clone()).await;
        match next {
            Some(Ok(Next::Request)) => {}
            Some(Err(error)) => {
                tracing::debug!(event = "connection-ended", %error);
                return;
            }
            // All is written, and a bare socket that is closed says so.
            Some(Ok(Next::Ended)) if !visitor.is_secure() => return,
            Some(Ok(Next::Ended)) | None => {
                let _ = front.shutdown().await;
                return;
            }
        }
        // In an allocation of its own, which is there only while there is something to answer.
        let answering = answer(front, &visitor, &site, (&in_flight, &slot), &mut stop);
        match Box::pin(answering).await {
            Some(rested) => front = rested,
            None => return,
        }
    }
}

/// Has hyper answer the request that has come, and those that follow, until the client rests: then the
/// front is given back. `None` when the connection has ended.
async fn answer<IO>(
    front: Front<IO>,
    visitor: &Visitor,
    site: &Arc<Site>,
    (in_flight, slot): (&Arc<InFlight>, &Slot),
    stop: &mut Told,
) -> Option<Front<IO>>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &site.limits;
    let has_http_origin = site.all_or(None).any(|site| matches!(site.origin, Origin::Http(_)));
    let is_timed = exchange::is_timed(site);
    let service = service_fn(|mut request: Request<Incoming>| {
        let mut guard = in_flight.enter();
        let (site, mut visitor) = (site.now(), visitor.clone());
        if has_http_origin {
            if request.headers().contains_key(header::CONNECTION)
                && let Some(offer) = slot.offered()
            {
                request.extensions_mut().insert(offer);
            }
            visitor.besides = besides(&request, in_flight);
        }
        visitor.besides.spent = is_timed.then(Spent::default);
        visitor.besides.trace = Trace::of(&site, &request, &visitor);
        guard.entry = Entry::of(&site, &request, &visitor);
        let in_flight = in_flight.clone();
        async move {
            let mut response = exchange::answer(&site, request, &visitor).await;
            end_if_leaving(&site, &mut response);
            in_flight.seal();
            say_whether_last(&in_flight, &mut response);
            guard.answered(&response, visitor.besides.trace);
            let tracked = |body: ResponseBody| body.tracked(|| in_flight.client(&site).clone());
            Ok::<_, Infallible>(response.map(|body| tracked(body).guarded(guard)))
        }
    });
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes.max(HYPER_BUFFER_BYTES_MIN) + (64 << 10))
        .serve_connection(TokioIo::new(front), service);
    in_flight.has_rested();
    let rested = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        // hyper was asking for the next request: it has nothing in its hands.
        Poll::Pending if in_flight.has_rested() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let ended = match until_told(pin!(rested), stop.clone()).await {
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
            switch::join(tunnel, io, &early, site, stop).await;
        }
        (Ok(()), None) => {}
    }
    None
}

/// A response says that the connection ends behind it, where it does.
fn say_whether_last<B>(in_flight: &InFlight, response: &mut Response<B>) {
    if in_flight.is_last() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
}

/// Tells a client whose next connection is another process's. Asked after the answer was made: that may have
/// taken long.
fn end_if_leaving<B>(site: &Site, response: &mut Response<B>) {
    if site.is_leaving() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
}

/// What the client of a request takes besides its response: interim responses from HTTP/1.1 on (RFC
/// 9110 section 15.2), trailers if it says so.
fn besides(request: &Request<Incoming>, in_flight: &Arc<InFlight>) -> Besides {
    match request.version() {
        Version::HTTP_11 => Besides {
            interims: Some(in_flight.interims()),
            trailers: trailers::wanted(request.headers()),
            spent: None,
            trace: None,
        },
        _ => Besides::default(),
    }
}

/// What `connection` comes to; `None` when Pagewell is to stop before. Waiting for that is begun once,
/// and afterwards costs a connection that is woken a look at a counter. A connection that has always something to do
/// has used up its turn each time: whoever tells counts for nothing in that.
async fn until_told<F: Future>(mut connection: Pin<&mut F>, mut stop: Told) -> Option<F::Output> {
    let seen = stop.clone();
    let mut told = pin!(unconstrained(told(&mut stop)));
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

/// Ready when Pagewell is to stop.
async fn told(stop: &mut Told) {
    let _ = stop.wait_for(Phase::is_over).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Socket;
    use std::net::TcpStream;
    use std::time::Duration;
    use tokio::sync::watch;
    use tokio::task::coop;

    /// What the state of a connection takes that `serve` serves.
    fn taken<F>(_serve: impl Fn(Socket<TcpStream>, Visitor, Arc<Site>, Told) -> F) -> usize {
        size_of::<F>()
    }

    /// Thousands of them wait at a time; what is large and rare is to be boxed.
    #[test]
    fn the_state_of_a_connection_is_small() {
        let bytes = taken(serve_plain::<Socket<TcpStream>>);
        println!("{bytes} bytes, of which the front is {}", size_of::<Front<Socket<TcpStream>>>());
        assert!(bytes <= 2048, "{bytes} bytes");
    }

    /// Uses up its turn the first `turns` times that it is polled, and then waits for ever.
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
    async fn who_uses_up_his_turn_is_told_at_once_and_when_he_rests() {
        for turns in [usize::MAX, 2] {
            let (says, told) = watch::channel(Phase::Serving);
            let ended = tokio::spawn(async move { until_told(pin!(busy(turns)), told).await });
            tokio::time::sleep(Duration::from_millis(10)).await;
            says.send(Phase::Stopping).expect("it listens");
            let ended = timeout(Duration::from_secs(30), ended).await;
            assert_eq!(ended.expect("told").expect("it ran"), None, "{turns}");
        }
    }
}
