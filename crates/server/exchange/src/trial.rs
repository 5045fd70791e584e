//! A request of a visitor during a trial: it gets the origin's answer, streamed as a bypass. The answer is never stored
//! and ends no page. The page that would have been sent is looked up, and compared with the answer while it passes
//! (`delivery::trial`); the rest is in the background (the crate `audit`).
//!
//! A request that would be a hit counts neither as a render nor under a limit for requests to the origin. So a trial
//! refuses no request that the cache would have answered.
//!
//! Invariants: nothing stored is sent. The look-up comes before the request to the origin, so the page is one that the
//! visitor would have got.

use crate::dispatch::renders_limited;
use crate::steps::RequestPlan;
use delivery::body::ResponseBody;
use delivery::lookup::decide_on;
use delivery::plan::tell_bypassed;
use delivery::site::Site;
use delivery::trial::{AnswerWatch, TrialRequest, note_failure};
use delivery::visitors;
use forward::ForwardCause;
use forward::client_gone::OnClientGone;
use http::{Method, Request, Response};
use http_cache::{ForwardReason, Reuse, Verdict};
use reasons::Reason;
use request_values::target::TargetUri;
use site_rules::Handling;
use std::sync::Arc;
use stored_pages::page::SharedPage;
use telemetry::client::Client;
use telemetry::request_content::RequestContent;
use telemetry::request_fields::read_facts;

/// Forwards the request, and lets its answer be compared if a stored page could have answered it.
pub(crate) async fn answer(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    planned: RequestPlan,
) -> Response<ResponseBody> {
    let RequestPlan { shared, plan, key } = planned;
    tell_bypassed(site, request.headers(), &target, &plan, Reason::Trial);
    let is_for_all = plan.handling == Handling::Store;
    let on_client_gone = if is_for_all { OnClientGone::Abort } else { OnClientGone::AwaitHead };
    let why = ForwardCause {
        forward: ForwardReason::Bypass,
        reason: Some(Reason::Trial),
        on_client_gone,
    };
    if !is_for_all {
        let asked = (&target, request.headers());
        if let Err(seconds) = visitors::count_render(site, client, &plan, asked) {
            return renders_limited(seconds);
        }
        return forward::pass_bypassed(site, request, target, client, why).await;
    }
    let mut client = client.clone();
    client.extras.spent.get_or_insert_default();
    let headers = Arc::new(request.headers().clone());
    let is_get = request.method() == Method::GET;
    let (found, is_for_store) = {
        let facts = read_facts(request.method(), &headers);
        let (candidates, verdict) = decide_on(site, &facts, &headers, &plan, &key);
        (would_be_hit(candidates.as_slice(), &verdict), facts.cache_control.only_if_cached)
    };
    let asked = (&target, request.headers());
    if !found.0
        && let Err(seconds) = visitors::count_render(site, &client, &plan, asked)
    {
        return renders_limited(seconds);
    }
    if found.0 {
        client.extras.checks.limit = None;
    }
    let request_of_page = TrialRequest {
        target: shared.unwrap_or_else(|| target.clone()),
        written: target.clone(),
        key,
        headers,
        version: request.version(),
        client: client.clone(),
        plan,
    };
    let page = request_of_page.target.page().to_owned();
    let is_compared = is_get && found.1.is_some();
    let watch = AnswerWatch::new(site, (request_of_page, is_get), found);
    let answer = forward::pass_watched(site, request, target, &client, (why, watch)).await;
    if answer.status().is_server_error() && !is_for_store {
        note_failure(site, &page, is_compared);
    }
    answer
}

/// Whether a verdict is a hit; and the page, if it is fresh.
fn would_be_hit(pages: &[SharedPage], verdict: &Verdict) -> (bool, Option<SharedPage>) {
    match verdict {
        Verdict::Reuse { candidate, state: Reuse::Fresh, .. } => {
            (true, Some(pages[*candidate].clone()))
        }
        Verdict::Reuse { state: Reuse::Stale(_), .. } => (true, None),
        Verdict::Forward { .. } | Verdict::Bypass(_) | Verdict::Unsatisfied => (false, None),
    }
}
