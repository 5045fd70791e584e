//! Addresses of the site that are requested at intervals (`[[wake]]`): a request for each after its interval,
//! never two at once, to the origin and past the store. The answer is read to its end and discarded; an
//! answer with an error, or none, is logged.
//!
//! | state | request |
//! |---|---|
//! | serving | one after each interval; the interval begins when the one before has ended |
//! | leaving (stop, hand-over) | none is begun; one that has begun goes on like any visitor's |
//!
//! Not here: what the request changes. The application says so over the control interface, or its database does.

use crate::body::ResponseBody;
use crate::client::{SaidBy, Visitor};
use crate::config::Wake;
use crate::forward::{self, Why};
use crate::origin::Besides;
use crate::phase::{Phase, Told};
use crate::site::Site;
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use http_cache::ForwardReason;
use site_rules::Peer;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The `User-Agent` that the application sees.
const USER_AGENT: HeaderValue = HeaderValue::from_static("pagewell-wake");

/// How long an answer is read; then the script goes on without a reader, or ends.
const READ_FOR: Duration = Duration::from_secs(600);

/// Requests each address of the site after its interval, until the server stops.
pub fn begin(site: &Arc<Site>, stop: &Told) {
    for wake in &site.config.wakes {
        tokio::spawn(run(site.clone(), wake.clone(), stop.clone()));
    }
}

async fn run(site: Arc<Site>, wake: Wake, mut stop: Told) {
    let mut leaving = pin!(stop.wait_for(Phase::is_leaving));
    loop {
        tokio::select! {
            _ = &mut leaving => return,
            () = tokio::time::sleep(wake.every) => {}
        }
        // By the rules that count now.
        request(&site.now(), &wake).await;
    }
}

async fn request(site: &Arc<Site>, wake: &Wake) {
    let target = wake.target.clone();
    let Ok(host) = HeaderValue::from_str(&target.host) else { return };
    let mut request = Request::new(None);
    if let Ok(uri) = target.path_and_query.parse() {
        *request.uri_mut() = uri;
    }
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
    let visitor = Visitor {
        peer: None,
        local: None,
        believed: Peer::Anybody,
        said_by: SaidBy::Socket,
        scheme: target.scheme,
        besides: Besides::default(),
    };
    let url = target.uri();
    site.counters.wakes.add();
    let why = Why::of(ForwardReason::Bypass);
    let response = forward::pass(site, request, target, &visitor, why).await;
    let status = response.status();
    let is_whole = tokio::time::timeout(READ_FOR, read(response.into_body())).await;
    let is_whole = is_whole.unwrap_or(false);
    if status.is_client_error() || status.is_server_error() || !is_whole {
        site.counters.wakes_failed.add();
        tracing::warn!(event = "wake-failed", url, status = status.as_u16(), whole = is_whole);
    }
}

/// Reads content to its end and throws it away; whether that was its end.
async fn read(body: ResponseBody) -> bool {
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}
