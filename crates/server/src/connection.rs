//! One client's connection: the front (strict reading, time limits), then hyper's HTTP/1, then an
//! exchange per request. Ends with the client, with an error, or when Pagewell is told to stop and
//! the request in hand has been answered.

use crate::exchange::{self, Visitor};
use crate::front::{Front, InFlight};
use crate::hits::Hits;
use crate::site::Site;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// hyper's own buffer need not be larger: the front hands it whole header sections.
const HYPER_BUFFER_BYTES_MIN: usize = 8 << 10;

/// Serves a connection until it ends.
pub async fn serve<IO>(io: IO, visitor: Visitor, site: Arc<Site>, mut stop: watch::Receiver<bool>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = site.limits.clone();
    let in_flight = Arc::new(InFlight::default());
    let hits = site.config.hits_in_front.then(|| Hits::new(site.clone(), visitor.peer));
    let front = Front::new(io, site.clone(), in_flight.clone(), hits);
    let service = service_fn(|request| {
        let guard = in_flight.enter();
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
        .serve_connection(TokioIo::new(front), service);
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
}

/// Ready when Pagewell is to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
