//! Sends one request to the origin. ESI and trace fields are added, local redirects are followed, and the origin's
//! time is counted, from the place that the request gets, and its server errors are counted and logged. Invalidations in the response head are applied before the
//! response is returned.
//! Which requests are sent, and with which fields, is decided in `forward` and `render`.

use crate::litespeed;
use crate::rate_limit;
use crate::scripts;
use crate::sendfile;
use delivery::challenge;
use delivery::esi;
use delivery::site::Site;
use delivery::visitors;
use event_log::Seldom;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use http_cache::{Failure, FieldUse};
use origin::routes::{Route, route_in};
use origin::{OriginPermit, OriginRequest, OriginResponse, Unsent};
use site_state::pending_changes::PendingChange;
use std::sync::Arc;
use std::time::Duration;
use telemetry::client::ClientExtras;
use telemetry::traces;

/// Maximum number of local redirects that an origin may request (RFC 3875 section 6.2.2).
const REDIRECTS_MAX: usize = 5;

/// Waits for the content of a request, sends it, and follows local redirects of the origin. Invalidations that the
/// response contains in LiteSpeed's fields are applied before the response is returned.
///
/// # Errors
/// The failure of the origin, or the reason why the request could not be sent.
pub async fn send_following(
    site: &Arc<Site>,
    request: &mut OriginRequest,
) -> Result<OriginResponse, Unsent> {
    collect_content(site, request).await?;
    send_collected(site, request).await
}

/// Counts a request under its rate limit, and waits for all of its content. The origin has nothing of the request when
/// this ends, so it is no operation in flight yet: a slow client can send for hours, and nothing waits for that. The
/// time does not count as the origin's.
///
/// # Errors
/// The client has reached the limit, or the content is invalid, or there is no room for it.
pub(crate) async fn collect_content(
    site: &Arc<Site>,
    request: &mut OriginRequest,
) -> Result<(), Unsent> {
    rate_limit::count(site, &request.extras)?;
    site.origin_of(&request.target).take_in(request).await
}

/// The same as [`send_following`], for a request whose content was collected.
///
/// # Errors
/// The failure of the origin, or the reason why the request could not be sent.
pub(crate) async fn send_collected(
    site: &Arc<Site>,
    request: &mut OriginRequest,
) -> Result<OriginResponse, Unsent> {
    let hand =
        if may_report_change(site) { Some(PendingChange::begin(site.state()).await) } else { None };
    request.litespeed = litespeed::features(site);
    esi::announce(site, &mut request.headers);
    let method = request.method.clone();
    let (spent, trace) = (request.extras.spent.clone(), request.extras.trace.clone());
    if site.services.challenge_of(&request.target).is_some() {
        challenge::describe_client(site, request);
    }
    for _ in 0..REDIRECTS_MAX {
        let permit = admitted(site, request).await?;
        let begun = site.clock.monotonic();
        let asked =
            traces::in_request(site.config.traces.as_ref(), &mut request.headers, trace.as_ref());
        let origin = site.origin_of(&request.target);
        let mut answered = origin.send(request, permit, &site.counters).await;
        if let Ok(response) = &mut answered {
            traces::out_of_response(site.config.traces.as_ref(), &mut response.headers);
            sendfile::note(site, response, || request.url());
            note_error(site, response.status, request);
        }
        if let Some(asked) = asked {
            asked.ended(answered.as_ref().ok().map(|response| response.status));
        }
        let took = site.clock.monotonic().saturating_sub(begun);
        site.counters.origin_times.add(took);
        spent.iter().for_each(|spent| spent.add(took));
        let path = match answered {
            Err(Unsent::Redirected(path)) => path,
            Ok(mut response) => {
                add_tags(&request.extras, &mut response.headers);
                visitors::note(site, &request.host, (&method, &request.headers), &response.headers);
                let place = || request.url();
                litespeed::take_in(site, (&method, place), &request.headers, &response.headers);
                if let Some(hand) = hand {
                    response.waited = hand.acknowledge().await;
                }
                return Ok(response);
            }
            unsent => return unsent,
        };
        let root = site.root().ok_or(Failure::InvalidResponse)?;
        let Route::Script(script) = route_in(root, path.split('?').next().unwrap_or_default())
        else {
            tracing::error!(event = "origin-invalid", reason = "redirect-to-no-script", path);
            return Err(Failure::InvalidResponse.into());
        };
        let below = path.split('?').next().unwrap_or_default();
        if scripts::refusal_at(site, (&request.host, below), &script).is_some() {
            site.counters.scripts_refused.add();
            tracing::error!(event = "origin-invalid", reason = "redirect-to-refused-script", path);
            return Err(Failure::InvalidResponse.into());
        }
        // The content was sent with the first request.
        (request.method, request.target, request.script) = (Method::GET, path, Some(script));
        let ClientExtras { fragment, checks, .. } = std::mem::take(&mut request.extras);
        // The user is the same; the request is counted already.
        request.extras = ClientExtras { fragment, checks, ..ClientExtras::default() };
        // The first script has used up the capture; the statements of the next one would be unknown.
        request.capture = None;
    }
    tracing::error!(event = "origin-invalid", reason = "too-many-redirects");
    Err(Failure::InvalidResponse.into())
}

/// Counts a response that is a server error, and logs one a minute.
fn note_error(site: &Site, status: StatusCode, request: &OriginRequest) {
    static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(60));
    if !status.is_server_error() {
        return;
    }
    site.counters.origin_errors.add();
    site.counters.origin_error_status.set(u64::from(status.as_u16()));
    if LOGGED.is_due(site.clock.monotonic()) {
        tracing::warn!(event = "origin-error", status = status.as_u16(), url = request.url());
    }
}

/// Waits for the place of a request. The time in the queue is added up in the request: it is not the origin's.
///
/// # Errors
/// The request may not be sent.
async fn admitted(site: &Site, request: &mut OriginRequest) -> Result<OriginPermit, Failure> {
    let came = site.clock.now();
    let permit = site.origin_of(&request.target).admit(&request.admission).await?;
    let waited_ms = site.clock.now().0.saturating_sub(came.0);
    request.waited_ms = Some(request.waited_ms.unwrap_or_default() + waited_ms);
    Ok(permit)
}

/// Adds the tags of an include element to those of its fragment's response.
fn add_tags(extras: &ClientExtras, headers: &mut HeaderMap) {
    if let Some(tags) = extras.fragment.as_ref().and_then(|fragment| fragment.tags.clone()) {
        headers.append(HeaderName::from_static("x-litespeed-tag"), tags);
    }
}

/// Whether a response to a safe request may report a change.
pub fn may_report_change(site: &Site) -> bool {
    // A response that ends a session invalidates that user's private copies.
    site.config.dialects.litespeed == FieldUse::Obey || site.config.private.is_some()
}
