//! Answers one request: a purge, or a request for the site of its host. [`steps`](crate::steps) says what happens
//! to it, and [`dispatch`](crate::dispatch) executes that. A template is assembled for its client afterwards (`assembly`).
//!
//! Also here: the address and the scheme of a client behind a trusted proxy.

use crate::assembly::{PageRequest, assembled};
use crate::dispatch::dispatch;
use crate::purge;
use crate::steps::{AskedRequest, RequestStep};
use config::networks::forwarded_scheme;
use config::target::TargetUri;
use delivery::body::ResponseBody;
use delivery::esi;
use delivery::serve;
use delivery::site::Site;
use delivery::template_mark;
use forward::litespeed;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use reasons::Reason;
use site_rules::Peer;
use std::net::SocketAddr;
use std::sync::Arc;
use telemetry::client::{Client, RequestContent};
use telemetry::panics::{self, Place};
use telemetry::request_fields::AsSent;
use telemetry::request_fields::view_of;

/// Answers a request to the default site, by the site of its host.
pub async fn answer(
    default_site: &Arc<Site>,
    request: Request<Incoming>,
    client: &Client,
) -> Response<ResponseBody> {
    panics::may_happen(Place::Request);
    panics::may_happen(Place::Store);
    // Bytes after chunked content are not read, so this response closes the connection.
    let last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let response = by_site(default_site, request.map(Some), client).await;
    closing(last, response)
}

/// Adds `Connection: close` if the response is the last of its connection.
fn closing(last: bool, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Answers a request by the site of its host.
async fn by_site(
    default_site: &Arc<Site>,
    request: Request<RequestContent>,
    client: &Client,
) -> Response<ResponseBody> {
    let fallback = default_site.unnamed_host();
    let read = TargetUri::read(request.uri(), request.headers(), fallback, client.scheme);
    let read = read.map(|target| proxy_trust(default_site, request.headers(), client, target));
    let (site, of_request) = match &read {
        Ok((of_request, target)) => (default_site.for_host(&target.host), of_request),
        Err(_) => (default_site, client),
    };
    let asked = AskedRequest {
        is_purge: purge::is_purge_request(default_site, &request),
        ..AskedRequest::of(site, &request, read.as_ref().map(|read| &read.1), of_request)
    };
    let (step, planned) = asked.step();
    if step == RequestStep::Purge {
        return purge::answer(default_site, &request, client).await;
    }
    site.counters.requests.add();
    let (client, target) = match read {
        Ok(read) => read,
        Err(error) => return serve::error(StatusCode::BAD_REQUEST, error.reason(), None),
    };
    match step {
        RequestStep::Misdirected => {
            return serve::error(StatusCode::MISDIRECTED_REQUEST, Reason::HostUnknown, None);
        }
        RequestStep::ToHttps => return serve::to_https(site, &target),
        _ => {}
    }
    let told = litespeed::is_told(&site.config.dialects, request.headers());
    let is_timed = is_told_timing(site, &request, &target, &client);
    let asked = esi::may_come(site).then(|| PageRequest::of(&request, &target, &client));
    let mut response = dispatch(site, request, target, &client, (step, planned)).await;
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

/// Applies the client address and the scheme that a trusted proxy sends. For any other peer,
/// visitor and target stay unchanged.
fn proxy_trust(
    site: &Arc<Site>,
    headers: &HeaderMap,
    client: &Client,
    target: TargetUri,
) -> (Client, TargetUri) {
    let trusted = &site.config.trusted_proxies;
    if client.proxy_trust != Peer::Trusted {
        return (client.clone(), target);
    }
    let address = trusted.client(headers).map(|address| SocketAddr::new(address, 0));
    let peer = address.or(client.peer);
    let client = Client { peer, ..client.clone() };
    match forwarded_scheme(headers) {
        Some(scheme) => (client, target.by_scheme(scheme)),
        None => (client, target),
    }
}
