//! Decides by which way a request for a known target is answered: from the store, by a render, forwarded, as an
//! upgrade, or by Pagewell itself. The pure function `http_cache::decide`, called by `lookup`, gives the verdict;
//! this module contains the one match on it. Renders are in the crate `render`, forwarded requests in `forward`.
//! Plain hits over HTTP/1.1 do not come here: `front` answers them before hyper, by the same verdict.

use crate::private;
use config::target::TargetUri;
use delivery::body::{Content, ResponseBody};
use delivery::codings::encode_response;
use delivery::lookup::decide_on;
use delivery::plan::{may_refresh, plan, tell_bypassed};
use delivery::serve;
use delivery::site::Site;
use delivery::stored_answer::{hit, stale_hit};
use forward::ForwardCause;
use forward::client_gone::OnClientGone;
use forward::upgrade;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_cache::{ForwardReason, Method as Kind, Reuse, StaleBecause, Verdict};
use reasons::Reason;
use render::{ExtraFields, Ranges, RenderRequest};
use site_rules::{BypassBecause, Handling, Plan};
use std::sync::Arc;
use telemetry::client::{Client, RequestContent};
use telemetry::request_fields::read_facts;

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
            serve::error(StatusCode::BAD_REQUEST, Reason::TargetInvalid, None)
        }
        // The content of a GET is not part of the key.
        (Kind::Get | Kind::Head, _) if has_content => {
            pass(site, request, target, client, ForwardReason::Bypass).await
        }
        // After a handover the successor has the cache and receives the invalidations. During
        // shutdown no process has it, and the other nodes do not wait for this one. This cache may
        // be outdated, so the request bypasses it.
        (Kind::Get | Kind::Head, _) if !site.answers_from_cache() => {
            let reason = site.successor().map_or(Reason::Stopping, |_| Reason::HandedOver);
            let (forward, reason) = (ForwardReason::Bypass, Some(reason));
            let why = ForwardCause { forward, reason, on_client_gone: OnClientGone::Abort };
            Box::pin(forward::pass_bypassed(site, request, target, client, why)).await
        }
        (Kind::Get | Kind::Head, _) => get(site, request, target, client).await,
        (_, &Method::TRACE) => {
            let mut response =
                serve::error(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodTrace, None);
            // RFC 9110 section 15.5.6: a 405 response lists the allowed methods.
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        (_, &Method::OPTIONS) if target.path_and_query == "*" => {
            let mut response = Response::new(ResponseBody::from(Content::Empty));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        _ if site.cluster.as_ref().is_some_and(|cluster| cluster.refuses_writes()) => {
            serve::unpublished()
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
            return serve::error(StatusCode::GATEWAY_TIMEOUT, Reason::OnlyIfCached, None);
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
    tell_bypassed(site, request.headers(), &target, plan, because.into());
    let on_client_gone = match because {
        BypassBecause::SessionCookie => OnClientGone::AwaitHead,
        _ => OnClientGone::Abort,
    };
    let why = ForwardCause {
        forward: ForwardReason::Bypass,
        reason: Some(because.into()),
        on_client_gone,
    };
    Box::pin(forward::pass_bypassed(site, request, target, client, why)).await
}
