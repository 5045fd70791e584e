//! Requests URLs of the site at intervals (`[[wake]]`). Each URL is requested after its interval,
//! never twice at once, from the origin and without the cache. The response is read to its end and
//! discarded. An error status, or an incomplete response, is logged.
//!
//! | state | request |
//! |---|---|
//! | serving | one after each interval, which begins when the previous request has ended, and when the origin has a place to spare; at the latest after another interval |
//! | leaving (stop, hand-over) | no new one; one in progress continues like a client's |
//!
//! Not here: changes that the request causes. The application announces them over the control
//! interface, or its database does.

use config::Wake;
use delivery::body::ResponseBody;
use delivery::site::Site;
use forward::{self, ForwardCause};
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use http_cache::ForwardReason;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use telemetry::client::{Client, ClientConnection, RequestPurpose};
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_content::RequestContent;
use tokio::time::Instant;

/// The `User-Agent` that the application receives.
const USER_AGENT: HeaderValue = HeaderValue::from_static("pagewell-wake");

/// How long a response is read. After that the script continues without a reader, or is aborted.
const READ_FOR: Duration = Duration::from_secs(600);

/// How often a request that was put off looks for a place.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Starts the requests for each configured URL of the site, until the server stops.
pub fn begin(site: &Arc<Site>, stop: &PhaseWatch) {
    for wake in &site.config.wakes {
        tokio::spawn(run(site.clone(), wake.clone(), stop.clone()));
    }
}

async fn run(site: Arc<Site>, wake: Wake, mut stop: PhaseWatch) {
    let mut leaving = pin!(stop.wait_for(Phase::is_leaving));
    loop {
        tokio::select! {
            _ = &mut leaving => return,
            () = turn(&site, &wake) => {}
        }
        // With the rules that are current now.
        request(&site.now(), &wake).await;
    }
}

/// Waits for the interval, and then until the origin has a place to spare: visitors go first. After another interval
/// the task has waited long enough. It is not deferred then, so that scheduled tasks run while the site is crawled.
async fn turn(site: &Arc<Site>, wake: &Wake) {
    tokio::time::sleep(wake.every).await;
    let latest = Instant::now() + wake.every;
    while Instant::now() < latest && !site.now().origin.places().is_one_to_spare() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn request(site: &Arc<Site>, wake: &Wake) {
    let target = wake.target.clone();
    let Ok(host) = HeaderValue::from_str(&target.host) else { return };
    let mut request = Request::new(RequestContent::default());
    if let Ok(uri) = target.path_and_query.parse() {
        *request.uri_mut() = uri;
    }
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
    let mut client = Client::of(ClientConnection::none(target.scheme).into());
    client.extras.purpose = RequestPurpose::Scheduled;
    let url = target.uri();
    site.counters.wakes.add();
    let why = ForwardCause::of(ForwardReason::Bypass);
    let response = forward::pass(site, request, target, &client, why).await;
    let status = response.status();
    let is_whole = tokio::time::timeout(READ_FOR, read(response.into_body())).await;
    let is_whole = is_whole.unwrap_or(false);
    if status.is_client_error() || status.is_server_error() || !is_whole {
        site.counters.wakes_failed.add();
        tracing::warn!(event = "wake-failed", url, status = status.as_u16(), whole = is_whole);
    }
}

/// Reads the content to its end and discards it. Returns false if it was incomplete.
async fn read(body: ResponseBody) -> bool {
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}
