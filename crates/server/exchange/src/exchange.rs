//! Answers one request. The pure function `http_cache::decide`, called by `lookup`, decides what to
//! do. This module contains the one match on its verdict. Renders are in `render`, forwarded
//! requests in `forward`, and responses as they are sent in `serve`. Plain hits over HTTP/1.1 do
//! not come here: `hit` answers them before hyper, by the same verdict.

use crate::assembly::{PageRequest, assembled};
use crate::body::{Content, ResponseBody};
use crate::client_gone::OnClientGone;
use crate::codings::encode_response;
use crate::esi;
use crate::forward::{self, ForwardCause};
use crate::litespeed;
use crate::lookup::decide_on;
use crate::plan::{may_refresh, plan, tell_bypassed};
use crate::private;
use crate::purge;
use crate::render::{self, ExtraFields, Ranges, RenderRequest};
use crate::serve;
use crate::site::Site;
use crate::stored_answer::{hit, stale_hit};
use crate::upgrade;
use config::networks::forwarded_scheme;
use config::target::TargetUri;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_cache::{ForwardReason, Method as Kind, Reuse, StaleBecause, Verdict};
use hyper::body::Incoming;
use site_rules::{BypassBecause, Handling, Peer, Plan};
use site_state::client::{Client, RequestContent};
use site_state::panics::{self, Place};
use site_state::request_fields::view_of;
use site_state::request_fields::{AsSent, read_facts};
use site_state::successor;
use std::net::SocketAddr;
use std::sync::Arc;

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
    let response = if purge::is_purge_request(default_site, &request) {
        purge::answer(default_site, &request, client).await
    } else {
        by_site(default_site, request.map(Some), client).await
    };
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
    let target = TargetUri::read(request.uri(), request.headers(), fallback, client.scheme);
    match target {
        Ok(target) => {
            let (client, target) = proxy_trust(default_site, request.headers(), client, target);
            let site = default_site.for_host(&target.host);
            site.counters.requests.add();
            if !site.config.hosts.have(&target.host) {
                serve::error(StatusCode::MISDIRECTED_REQUEST, "host-unknown", None)
            } else if is_redirected(site, target.scheme) && !is_challenge(&target) {
                serve::to_https(site, &target)
            } else {
                let told = litespeed::is_told(&site.config.dialects, request.headers());
                let is_timed = is_told_timing(site, &request, &target, &client);
                let asked =
                    esi::may_come(site).then(|| PageRequest::of(&request, &target, &client));
                let mut response = dispatch(site, request, target, &client).await;
                if let Some(asked) = asked
                    && let Some(dialect) = esi::template_dialect(&response)
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
        }
        Err(error) => {
            default_site.counters.requests.add();
            serve::error(StatusCode::BAD_REQUEST, error.as_str(), None)
        }
    }
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

/// Whether a request with this scheme is redirected to HTTPS.
pub fn is_redirected(site: &Site, scheme: &str) -> bool {
    site.config.https_redirect.is_some() && scheme == "http"
}

/// Whether the target is an ACME challenge, which is always answered over HTTP (RFC 8555 section
/// 8.3).
fn is_challenge(target: &TargetUri) -> bool {
    target.path_and_query.starts_with("/.well-known/acme-challenge/")
}

/// Answers a request for this target of the site.
pub async fn dispatch(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
) -> Response<ResponseBody> {
    if let Some(origin) = upgrade::upgrade_origin(site, &request) {
        return Box::pin(upgrade::pass(site, origin, request, target, client)).await;
    }
    let has_content = request.body().as_ref().is_some_and(|body| !body.is_end_stream());
    match (Kind::of(request.method()), request.method()) {
        (Kind::Get | Kind::Head, _) if target.path_and_query == "*" => {
            serve::error(StatusCode::BAD_REQUEST, "target-invalid", None)
        }
        // The content of a GET is not part of the key.
        (Kind::Get | Kind::Head, _) if has_content => {
            pass(site, request, target, client, ForwardReason::Bypass).await
        }
        // After a handover the successor has the cache and receives the invalidations. During
        // shutdown no process has it, and the other nodes do not wait for this one. This cache may
        // be outdated, so the request bypasses it.
        (Kind::Get | Kind::Head, _) if !site.answers_from_cache() => {
            let detail = site.successor().map_or(successor::STOPPING, |_| successor::HANDED_OVER);
            let (forward, detail) = (ForwardReason::Bypass, Some(detail));
            let why = ForwardCause { forward, detail, on_client_gone: OnClientGone::Abort };
            Box::pin(forward::pass_bypassed(site, request, target, client, why, None)).await
        }
        (Kind::Get | Kind::Head, _) => get(site, request, target, client).await,
        (_, &Method::TRACE) => {
            let mut response = serve::error(StatusCode::METHOD_NOT_ALLOWED, "method-trace", None);
            // RFC 9110 section 15.5.6: a 405 response lists the allowed methods.
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        (_, &Method::OPTIONS) if target.path_and_query == "*" => {
            let mut response = Response::new(ResponseBody::from(Content::Empty));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        _ => pass(site, request, target, client, ForwardReason::Method).await,
    }
}

/// Forwards a request. The future is boxed, like those of other rare paths. Otherwise the future of
/// every request would be as large as the largest of them, and it is copied for each request.
async fn pass(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    why: ForwardReason,
) -> Response<ResponseBody> {
    Box::pin(forward::pass(site, request, target, client, ForwardCause::of(why))).await
}

/// Answers a GET or HEAD request from the store if the verdict allows it, else by a render.
async fn get(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
) -> Response<ResponseBody> {
    let shared = site.shared(&target);
    let (method, headers) = (request.method(), request.headers());
    let (plan, key) = plan(site, method, headers, shared.as_ref().unwrap_or(&target), client);
    if let (Handling::Bypass(BypassBecause::SessionCookie), Some(copies)) =
        (plan.handling, &site.config.private)
    {
        return Box::pin(private::answer(site, copies, request, target, client, (plan, key))).await;
    }
    if let Handling::Bypass(because) = plan.handling {
        return bypass(site, request, target, client, (&plan, because)).await;
    }
    let target = shared.unwrap_or(target);
    let head = request.into_parts().0;
    // A render shares the headers, and may outlive its client's connection.
    let headers = Arc::new(head.headers);
    let facts = read_facts(&head.method, &headers);
    let (candidates, verdict) = decide_on(site, &facts, &headers, &plan, &key);
    let ask = |why: ForwardReason| RenderRequest {
        target,
        key,
        method: head.method,
        headers: headers.clone(),
        version: head.version,
        client: client.clone(),
        plan,
        why,
        validate: None,
        fallback: None,
        ranges: Ranges::Cut,
        owner: None,
        extra_fields: ExtraFields::default(),
    };
    let pages = candidates.as_slice();
    let (why, validate, fallback) = match verdict {
        Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => {
            return hit(site, &facts, &pages[candidate], answer);
        }
        Verdict::Reuse { candidate, state: Reuse::Stale(because), answer } => {
            let page = &pages[candidate];
            if because == StaleBecause::WhileRevalidate && may_refresh(site) {
                let again = Some(page.clone());
                let mut ask = RenderRequest {
                    validate: again.clone(),
                    fallback: again,
                    ..ask(ForwardReason::Stale)
                };
                // The client does not wait for the refresh.
                (ask.client.extras.spent, ask.client.extras.trace) = (None, None);
                tokio::spawn(Box::pin(render::refresh(site.clone(), ask)));
            }
            return stale_hit(site, &facts, (page, answer), because);
        }
        Verdict::Unsatisfied => {
            return serve::error(StatusCode::GATEWAY_TIMEOUT, "only-if-cached", None);
        }
        Verdict::Forward { why, validate, fallback } => (why, validate, fallback),
    };
    let page = |at: Option<usize>| at.map(|at| pages[at].clone());
    let ask = RenderRequest { validate: page(validate), fallback: page(fallback), ..ask(why) };
    let response = render::get(site, ask).await;
    encode_response(site, &facts, response)
}

/// Forwards a GET or HEAD unchanged; the response is for one client and is not stored.
async fn bypass(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    (plan, because): (&Plan, BypassBecause),
) -> Response<ResponseBody> {
    tell_bypassed(site, request.headers(), &target, plan, because.as_str());
    let on_client_gone = match because {
        BypassBecause::SessionCookie => OnClientGone::AwaitHead,
        _ => OnClientGone::Abort,
    };
    let why = ForwardCause {
        forward: ForwardReason::Bypass,
        detail: Some(because.as_str()),
        on_client_gone,
    };
    Box::pin(forward::pass_bypassed(site, request, target, client, why, None)).await
}
