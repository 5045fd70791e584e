//! Executes the step of a request for a known target: it is answered from the store, by a render, forwarded, as an
//! upgrade, or by Pagewell itself. Which step that is stands in [`steps`](crate::steps). The pure function `http_cache::decide`, called by `lookup`, gives the verdict;
//! this module contains the one match on it. Renders are in the crate `render`, forwarded requests in `forward`.
//! Plain hits over HTTP/1.1 do not come here: `front` answers them before hyper, by the same verdict.

use crate::checks;
use crate::edge::{self, EdgeMatches};
use crate::internal_files::FileRequest;
use crate::private;
use crate::steps::{AskedRequest, RequestPlan, RequestStep};
use crate::trial;
use delivery::audit::{AuditedHit, is_drawn};
use delivery::body::{Content, ResponseBody};
use delivery::codings::encode_response;
use delivery::deferral;
use delivery::lookup::decide_on;
use delivery::plan::{may_refresh, tell_bypassed};
use delivery::serve;
use delivery::site::Site;
use delivery::stored_answer::{hit, stale_hit};
use delivery::visitors;
use forward::ForwardCause;
use forward::client_gone::OnClientGone;
use forward::upgrade;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{ForwardReason, Method as Kind, RequestFacts, Reuse, StaleBecause, Verdict};
use reasons::Reason;
use render::RenderRequest;
use request_values::target::TargetUri;
use site_rules::{BypassBecause, Plan};
use std::sync::Arc;
use stored_pages::page::SharedPage;
use telemetry::client::{Client, RequestPurpose};
use telemetry::request_content::RequestContent;
use telemetry::request_fields::read_facts;

/// Answers a request for a fragment of a page. Host and scheme of the page have been checked.
pub async fn fragment(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
) -> Response<ResponseBody> {
    let matches = EdgeMatches::default();
    let asked = AskedRequest::of(site, &request, Ok(&target), (client, &matches));
    let asked = AskedRequest { is_fragment: true, ..asked };
    let counted = match checks::admit_fragment(&asked) {
        Ok(counted) => counted,
        Err(refused) => return *refused,
    };
    let client = counted.as_ref().unwrap_or(client);
    let step = AskedRequest { client, ..asked }.step();
    let file = FileRequest::of(site, &request);
    let response = dispatch(site, request, target, client, step).await;
    match file {
        Some(file) => Box::pin(file.answer(site, response)).await,
        None => response,
    }
}

/// Executes the step of a request for this target of the site.
pub async fn dispatch(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    (step, planned): (RequestStep, Option<RequestPlan>),
) -> Response<ResponseBody> {
    let reason = step.reason();
    match step {
        RequestStep::Denied(denial) => edge::refused(site, denial),
        // Only a fragment: other requests have passed their checks.
        RequestStep::Password(rule) => checks::fragment_refused(site, rule),
        RequestStep::Upgrade => Box::pin(upgrade::pass(site, request, target, client)).await,
        RequestStep::WithContent => {
            pass(site, request, target, client, ForwardReason::Bypass).await
        }
        RequestStep::Write => pass(site, request, target, client, ForwardReason::Method).await,
        RequestStep::Leaving(_) => {
            let (forward, on_client_gone) = (ForwardReason::Bypass, OnClientGone::Abort);
            let why = ForwardCause { forward, reason, on_client_gone };
            Box::pin(forward::pass_bypassed(site, request, target, client, why)).await
        }
        RequestStep::Trace => {
            let mut response =
                serve::error(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodTrace, None);
            // RFC 9110 section 15.5.6: a 405 response lists the allowed methods.
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        RequestStep::Options => {
            let mut response = Response::new(ResponseBody::from(Content::Empty));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        RequestStep::Unpublished => serve::unpublished(),
        RequestStep::Trial
        | RequestStep::Private
        | RequestStep::Bypass(_)
        | RequestStep::Lookup => get(site, request, target, client, (step, planned)).await,
        // The caller has executed the others.
        RequestStep::Invalid(_)
        | RequestStep::Limited(_)
        | RequestStep::Purge
        | RequestStep::Challenge
        | RequestStep::Misdirected
        | RequestStep::ToHttps
        | RequestStep::ToCanonical
        | RequestStep::Redirected(_) => {
            let reason = reason.unwrap_or(Reason::TargetInvalid);
            serve::error(StatusCode::BAD_REQUEST, reason, None)
        }
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
    (step, planned): (RequestStep, Option<RequestPlan>),
) -> Response<ResponseBody> {
    let Some(RequestPlan { shared, plan, key }) = planned else {
        return serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None);
    };
    // A look-up counts a miss when it renders, a trial what would be no hit.
    let is_counted = !matches!(step, RequestStep::Lookup | RequestStep::Trial);
    let asked = (&target, request.headers());
    if is_counted && let Err(seconds) = visitors::count_render(site, client, &plan, asked) {
        return renders_limited(seconds);
    }
    match (step, &site.config.private) {
        (RequestStep::Trial, _) => {
            let planned = RequestPlan { shared, plan, key };
            return Box::pin(trial::answer(site, request, target, client, planned)).await;
        }
        (RequestStep::Private, Some(copies)) => {
            let planned = (plan, key);
            return Box::pin(private::answer(site, copies, request, target, client, planned)).await;
        }
        (RequestStep::Bypass(because), _) => {
            return bypass(site, request, target, client, (&plan, because)).await;
        }
        _ => {}
    }
    let target = shared.unwrap_or(target);
    let head = request.into_parts().0;
    let headers = Arc::new(head.headers); // for a render, which may outlive the connection
    let facts = read_facts(&head.method, &headers);
    let (candidates, verdict) = decide_on(site, &facts, &headers, &plan, &key);
    let asked = (head.method, head.version, headers.clone());
    let ask = |why| RenderRequest::of_page((target, key, plan), asked, client.clone(), why);
    let pages = candidates.as_slice();
    let (why, validate, fallback) = match verdict {
        Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => {
            client.note_hit();
            if is_audited(site, &facts, client) {
                site.audit.add(audited(ask(ForwardReason::Stale), &pages[candidate]));
            }
            return hit(site, &facts, &pages[candidate], answer);
        }
        Verdict::Reuse { candidate, state: Reuse::Stale(because), answer } => {
            let page = &pages[candidate];
            if because == StaleBecause::WhileRevalidate && may_refresh(site) {
                refresh(site, page, ask(ForwardReason::Stale));
            }
            return stale_hit(site, &facts, (page, answer), because);
        }
        Verdict::Unsatisfied => {
            return serve::error(StatusCode::GATEWAY_TIMEOUT, Reason::OnlyIfCached, None);
        }
        Verdict::Bypass(_) => (ForwardReason::Bypass, None, None),
        Verdict::Forward { why, validate, fallback } => (why, validate, fallback),
    };
    let page = |at: Option<usize>| at.map(|at| pages[at].clone());
    let ask = RenderRequest { validate: page(validate), fallback: page(fallback), ..ask(why) };
    let response = render::get(site, ask).await;
    encode_response(site, &facts, response)
}

/// Whether the hit is compared with a render.
fn is_audited(site: &Site, facts: &RequestFacts<'_>, client: &Client) -> bool {
    site.config.audit.is_some_and(|audit| {
        facts.method == Kind::Get
            && client.extras.purpose == RequestPurpose::Client
            && is_drawn(audit)
    })
}

/// The answer to a request for which a rule allows no more renders for so many seconds.
pub(crate) fn renders_limited(seconds: u32) -> Response<ResponseBody> {
    let why = CacheOutcome::Forwarded(ForwardReason::Bypass);
    deferral::renders_limited(CacheStatus::new(serve::CACHE_NAME, why), seconds)
}

/// A hit, for the audit.
fn audited(ask: RenderRequest, page: &SharedPage) -> AuditedHit {
    let RenderRequest { target, key, headers, version, client, plan, .. } = ask;
    AuditedHit { target, key, headers, version, client, plan, page: page.clone() }
}

/// Renders a stale page again in the background.
fn refresh(site: &Arc<Site>, page: &SharedPage, ask: RenderRequest) {
    let again = Some(page.clone());
    let mut ask = RenderRequest { validate: again.clone(), fallback: again, ..ask };
    // The client does not wait for the refresh.
    (ask.client.extras.spent, ask.client.extras.trace) = (None, None);
    tokio::spawn(Box::pin(render::refresh(site.clone(), ask)));
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
