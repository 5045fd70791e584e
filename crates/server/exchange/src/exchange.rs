//! Answers one request: a purge, or a request for the site of its host. [`steps`](crate::steps) says what happens
//! to it, and [`dispatch`](crate::dispatch) executes that. A template is assembled for its client afterwards (`assembly`).
//!
//! Also here: the scheme of a request behind a trusted proxy.

use crate::assembly::{PageRequest, assembled};
use crate::challenge;
use crate::checks;
use crate::dispatch::dispatch;
use crate::edge::{self, EdgeMatches, ResponseChanges};
use crate::internal_files::FileRequest;
use crate::purge;
use crate::steps::{AskedRequest, RequestStep};
use delivery::body::ResponseBody;
use delivery::esi;
use delivery::serve;
use delivery::site::Site;
use delivery::template_mark;
use forward::litespeed;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use reasons::Reason;
use request_values::networks::forwarded_scheme;
use request_values::target::{TargetError, TargetUri};
use rule_conditions::{Peer, RequestClient};
use std::sync::Arc;
use telemetry::client::Client;
use telemetry::panics::{self, Place};
use telemetry::request_content::RequestContent;
use telemetry::request_fields::AsSent;
use telemetry::request_fields::view_of;

/// Answers a request to the default site, by the site of its host.
pub async fn answer(
    default_site: &Arc<Site>,
    request: Request<RequestContent>,
    client: &Client,
) -> Response<ResponseBody> {
    panics::may_happen(Place::Request);
    panics::may_happen(Place::Store);
    // Bytes after chunked content are not read, so this response closes the connection.
    let last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let response = by_site(default_site, request, client).await;
    closing(last, response)
}

/// Adds `Connection: close` if the response is the last of its connection.
fn closing(last: bool, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Answers a request by the site of its host, if it passes the checks of the site's rules.
async fn by_site(
    default_site: &Arc<Site>,
    mut request: Request<RequestContent>,
    client: &Client,
) -> Response<ResponseBody> {
    let fallback = default_site.unnamed_host();
    let read =
        TargetUri::read(request.uri(), request.headers(), fallback, client.connection.scheme);
    let read = read.map(|target| with_scheme(request.headers(), client, target));
    let site = match &read {
        Ok(target) => default_site.for_host(&target.host),
        Err(_) => default_site,
    };
    if !site.config.rules.has_checks() {
        let found = (client, &EdgeMatches::default());
        return admitted(default_site, site, request, read, found).await;
    }
    let matches = EdgeMatches::default();
    let asked = AskedRequest {
        is_purge: purge::is_purge_request(default_site, &request),
        ..AskedRequest::of(site, &request, read.as_ref(), (client, &matches))
    };
    match Box::pin(checks::admit(default_site, &asked)).await {
        Ok(found) => {
            if found.is_consumed {
                request.headers_mut().remove(header::AUTHORIZATION);
            }
            let client = found.client.as_ref().unwrap_or(client);
            Box::pin(admitted(default_site, site, request, read, (client, &matches))).await
        }
        Err(mut refused) => {
            site.counters.requests.add();
            ResponseChanges::of(&asked).apply(site, &mut refused);
            *refused
        }
    }
}

/// Answers a request that has passed its checks.
async fn admitted(
    default_site: &Arc<Site>,
    site: &Arc<Site>,
    request: Request<RequestContent>,
    read: Result<TargetUri, TargetError>,
    (client, matches): (&Client, &EdgeMatches),
) -> Response<ResponseBody> {
    let asked = AskedRequest {
        is_purge: purge::is_purge_request(default_site, &request),
        ..AskedRequest::of(site, &request, read.as_ref(), (client, matches))
    };
    let (step, planned) = asked.step();
    if step == RequestStep::Purge {
        return Box::pin(purge::answer(default_site, &request, client)).await;
    }
    let changes = ResponseChanges::of(&asked);
    let redirect = matches.redirect().filter(|_| matches!(step, RequestStep::Redirected(_)));
    site.counters.requests.add();
    if site.config.trial.as_ref().is_some_and(|trial| trial.serve > 0) {
        site.trial_queue.note_address(client.address());
    }
    let target = match read {
        Ok(target) => target,
        Err(error) => {
            site.counters.own_errors.add();
            return serve::error(StatusCode::BAD_REQUEST, error.reason(), None);
        }
    };
    match step {
        RequestStep::Challenge => return Box::pin(challenge::answer(site, &target)).await,
        RequestStep::Misdirected => {
            site.counters.own_errors.add();
            return serve::error(StatusCode::MISDIRECTED_REQUEST, Reason::HostUnknown, None);
        }
        RequestStep::ToHttps => return changes.applied(site, serve::to_https(site, &target)),
        RequestStep::ToCanonical => {
            return changes.applied(site, serve::to_canonical(site, &target));
        }
        _ => {}
    }
    if let Some(redirect) = redirect {
        return changes.applied(site, edge::redirected(site, redirect));
    }
    let told = litespeed::is_told(&site.config.dialects, request.headers());
    let is_timed = is_told_timing(site, &request, &target, client);
    let asked = esi::may_come(site).then(|| PageRequest::of(&request, &target, client));
    let file = FileRequest::of(site, &request);
    let mut response = dispatch(site, request, target, client, (step, planned)).await;
    if let Some(file) = file {
        response = Box::pin(file.answer(site, response)).await;
    }
    if let Some(asked) = asked
        && let Some(dialect) = template_mark::template_dialect(&response)
    {
        response = Box::pin(assembled(site, asked, dialect, response)).await;
    }
    if is_timed {
        serve::tell_timing(&mut response, client.extras.spent.as_ref());
    }
    if told {
        litespeed::tell_crawler(&mut response);
    }
    changes.apply(site, &mut response);
    response
}

/// Whether the origin's response time is needed for requests to this default site.
pub fn is_timed(default_site: &Arc<Site>) -> bool {
    let tells = |site: &Site| site.config.server_timing || site.config.rules.have_timing();
    default_site.access_log.is_some() || default_site.all_sites().any(|site| tells(site))
}

/// Whether the client gets the origin's response time: by the rule for the page, or else by the
/// site's option.
fn is_told_timing(
    site: &Site,
    request: &Request<RequestContent>,
    target: &TargetUri,
    client: &Client,
) -> bool {
    let rules = &site.config.rules;
    let of_rule = || {
        let (fields, shared) = (AsSent(request.headers()), site.shared(target));
        let target = shared.as_ref().unwrap_or(target);
        rules.server_timing(&view_of(target, request.method(), &fields, client))
    };
    rules.have_timing().then(of_rule).flatten().unwrap_or(site.config.server_timing)
}

/// Applies the scheme that a trusted proxy sends. For any other peer, the target stays unchanged.
fn with_scheme(headers: &HeaderMap, client: &Client, target: TargetUri) -> TargetUri {
    let named = match client.connection.proxy_trust {
        Peer::Trusted => forwarded_scheme(headers),
        Peer::Anybody => None,
    };
    match named {
        Some(scheme) => target.by_scheme(scheme),
        None => target,
    }
}
