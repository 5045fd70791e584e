//! Requests URLs of the site at intervals (`[[wake]]`). Each URL is requested after its interval,
//! never twice at once, from the origin and without the cache. The response is read to its end and
//! discarded. An error status, or an incomplete response, is logged.
//!
//! | state | request |
//! |---|---|
//! | serving | one after each interval, which begins when the previous request has ended |
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

/// The `User-Agent` that the application receives.
const USER_AGENT: HeaderValue = HeaderValue::from_static("pagewell-wake");

/// How long a response is read. After that the script continues without a reader, or is aborted.
const READ_FOR: Duration = Duration::from_secs(600);

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
            () = tokio::time::sleep(wake.every) => {}
        }
        // With the rules that are current now.
        request(&site.now(), &wake).await;
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
    client.extras.purpose = RequestPurpose::Background;
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
