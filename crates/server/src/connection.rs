//! One client's connection. HTTP/1: the front (strict reading, time limits), then hyper's HTTP/1,
//! then an exchange per request. HTTP/2: see `http2`. Which of the two it is, TLS has agreed on with
//! the client; in the clear the first bytes tell. Ends with the client, with an error, or when
//! Pagewell is told to stop and the request in hand has been answered.

use crate::config::Limits;
use crate::exchange::{self, Visitor};
use crate::front::{Front, InFlight};
use crate::hits::Hits;
use crate::http2;
use crate::site::Site;
use crate::switch::{self, Slot};
use http::{Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;
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
pub async fn serve_plain<IO>(
    mut io: IO,
    visitor: Visitor,
    site: Arc<Site>,
    mut stop: watch::Receiver<bool>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = site.limits.clone();
    let spoken = tokio::select! {
        spoken = listen_in(&mut io, &limits) => spoken,
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
async fn listen_in<IO>(io: &mut IO, limits: &Limits) -> io::Result<Option<Spoken>>
where
    IO: AsyncRead + Unpin,
{
    let mut begun = Vec::new();
    loop {
        let wait = if begun.is_empty() { limits.idle_timeout } else { limits.header_timeout };
        match timeout(wait, io.read_buf(&mut begun)).await {
            Ok(Ok(0)) if begun.is_empty() => return Ok(None),
            Ok(Err(error)) => return Err(error),
            Err(_) if begun.is_empty() => return Ok(None),
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

/// Serves a connection until it ends.
pub async fn serve<IO>(
    io: IO,
    spoken: Spoken,
    visitor: Visitor,
    site: Arc<Site>,
    stop: watch::Receiver<bool>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match spoken {
        Spoken::Http1(begun) => serve_http1(io, begun, visitor, site, stop).await,
        Spoken::Http2(begun) => http2::serve(io, begun, visitor, site, stop).await,
    }
}

async fn serve_http1<IO>(
    io: IO,
    begun: Vec<u8>,
    visitor: Visitor,
    site: Arc<Site>,
    mut stop: watch::Receiver<bool>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = site.limits.clone();
    let in_flight = Arc::new(InFlight::default());
    let redirected = exchange::is_redirected(&site, visitor.scheme);
    let hits = (site.config.hits_in_front && !redirected)
        .then(|| Hits::new(site.clone(), visitor.peer, visitor.scheme));
    let front = Front::new(io, begun, site.clone(), in_flight.clone(), hits);
    let slot = Slot::default();
    let service = service_fn(|mut request: Request<Incoming>| {
        let guard = in_flight.enter();
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(slot.clone());
        }
        let (site, visitor) = (site.clone(), visitor.clone());
        async move {
            let response = exchange::answer(&site, request, &visitor).await;
            Ok::<_, Infallible>(response.map(|body| body.guarded(guard)))
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes.max(HYPER_BUFFER_BYTES_MIN) + (64 << 10))
        .serve_connection(TokioIo::new(front), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = told(&mut stop) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(event = "connection-ended", %error);
    }
    if let Some(tunnel) = slot.take() {
        switch::join::<IO>(tunnel, &limits, &mut stop).await;
    }
}

/// Ready when Pagewell is to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
