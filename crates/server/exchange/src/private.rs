//! Private copies: a page for one client is stored for that client alone and never served to
//! another.
//!
//! | event | how |
//! |---|---|
//! | lookup | by the target as the client sent it, the plan's key parts, and every cookie except script cookies (`site_rules::Owner`) |
//! | storing | only a response with `private` and an explicit lifetime, under a lease taken before the request was sent |
//! | invalidation | like any page (tags, URLs, everything), by private purges, by each unsafe request of the owner, by a response that sets one of the owner's cookies |
//!
//! Invariants: a request is forwarded unchanged and waits for no other; only a fresh copy is used.
//! Dependencies and invalidation of copies are in `owner_copies`. Out of scope: stale copies,
//! validation, background refresh. A response that signed-in visitors may share is stored for all of
//! them instead (`signed_in`).

use crate::signed_in::{SentRequest, SignedInRequest};
use config::PrivateCopies;
use delivery::body::ResponseBody;
use delivery::codings::{self, encode_response};
use delivery::deferral;
use delivery::esi;
use delivery::lookup::{self, StoredPages};
use delivery::plan::{bypassing_field, copy_key, tell_bypassed};
use delivery::serve;
use delivery::site::Site;
use forward::ForwardCause;
use forward::client_gone::{self, OnClientGone};
use forward::litespeed::FromPrivateCopy;
use forward::sendfile;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{
    Answer, ForwardReason, OwnedTerms, RequestFacts, Reuse, StoredResponse, Timestamp, Verdict,
    storable_for_owner,
};
use origin::OriginResponse;
use page_store::{Candidates, Lease};
use reasons::Reason;
use render::RenderRequest;
use request_values::target::TargetUri;
use site_rules::{NoOwner, Owner, Plan, RewriteFor};
use std::sync::Arc;
use stored_pages::page::StoredPage;
use telemetry::client::Client;
use telemetry::request_content::RequestContent;
use telemetry::request_fields::view_of;
use telemetry::request_fields::{AsSent, read_facts};

/// The data from which a private copy is stored, or a page that signed-in visitors share.
struct Keep {
    /// The owner of the private copy, and its key.
    own: Option<(Arc<Owner>, Vec<u8>)>,
    /// The request as one for a page that signed-in visitors share.
    shared: Option<SignedInRequest>,
    /// Whether the target was sent as it is normalised.
    is_normal: bool,
    /// The normalised target, on which the copy depends.
    target: TargetUri,
    client: Client,
    plan: Plan,
    lease: Lease,
    request_time: Timestamp,
}

impl Keep {
    /// Removes the older copies for the same request, because the response is not stored (rule 9).
    /// A 304 response answers the client's own condition and says nothing about the copy.
    fn end_copies(&self, site: &Site, status: StatusCode, reason: Reason) {
        // Also if there is no copy yet: an earlier request may be about to store one.
        if let Some((_, key)) = self.own.as_ref().filter(|_| status != StatusCode::NOT_MODIFIED) {
            let (page, began) = ((&**key, self.target.page()), (&self.lease, self.request_time));
            render::end_private_copies(site, page, began, (status, reason));
        }
    }

    /// The response as a page that signed-in visitors share, if it may be one
    /// ([`SignedInRequest::storable`]).
    fn shareable(
        &self,
        site: &Site,
        copies: &PrivateCopies,
        head: &http::request::Parts,
        response: &OriginResponse,
    ) -> Result<Option<StoredResponse>, Reason> {
        let sent = SentRequest {
            target: &self.target,
            is_normal: self.is_normal,
            head,
            client: &self.client,
            plan: &self.plan,
            request_time: self.request_time,
        };
        let shared = self.shared.as_ref();
        shared.map_or(Ok(None), |shared| shared.storable(site, copies, sent, response))
    }
}

/// The owner of the private copies that may answer a request with these fields. `None` if there is none: then only a
/// page that signed-in visitors share may answer it.
///
/// # Errors
/// The reason to forward the request without a look at either, as in the `detail` of Cache-Status.
pub fn owner(
    site: &Site,
    copies: &PrivateCopies,
    plan: &Plan,
    shared: Option<&SignedInRequest>,
    headers: &HeaderMap,
) -> Result<Option<Owner>, Reason> {
    let rules = &site.config.rules;
    let owner = match rules.owner(&copies.cookies, &AsSent(headers)) {
        Ok(owner) => Some(owner),
        Err(NoOwner::Nobody) if shared.is_some() => None,
        Err(reason) => return Err(reason.into()),
    };
    // A fragment of a page is not a copy of the page. Neither is a response that depends on a field
    // which identifies the client.
    match bypassing_field(rules, plan, headers) {
        Some(because) => Err(because.into()),
        None => Ok(owner),
    }
}

/// Answers a GET or HEAD with a session cookie by its owner's copy, or forwards it. The response
/// may then be stored as a private copy.
pub async fn answer(
    site: &Arc<Site>,
    copies: &PrivateCopies,
    mut request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    (plan, page_key): (Plan, Vec<u8>),
) -> Response<ResponseBody> {
    let headers = request.headers();
    let shared = SignedInRequest::of(site, &target, client, (&plan, &page_key), headers).ok();
    let owner = match owner(site, copies, &plan, shared.as_ref(), headers) {
        Ok(owner) => owner,
        Err(reason) => {
            tell_bypassed(site, headers, &target, &plan, reason);
            let why = passed_on(reason);
            return forward::pass_bypassed(site, request, target, client, why).await;
        }
    };
    let own = owner.map(|owner| {
        let key = copy_key(site, (&target, client), &plan, &owner, headers);
        (Arc::new(owner), key)
    });
    let facts = read_facts(request.method(), headers);
    let own_copy =
        || from_store(site, &facts, headers, &plan, own.as_ref().map(|(_, key)| &**key)?);
    let shared_page = || shared.as_ref()?.from_store(site, &facts, headers, &plan);
    if let Some(response) = own_copy().or_else(shared_page) {
        return response;
    }
    tell_bypassed(site, headers, &target, &plan, Reason::SessionCookie);
    if let Some(fields) = shared.as_ref().and_then(|shared| shared.fields(site, &plan, headers)) {
        *request.headers_mut() = fields;
    }
    let normal = site.shared(&target);
    let keep = (request.method() == Method::GET).then(|| Keep {
        own,
        shared,
        is_normal: normal.as_ref().is_none_or(|normal| {
            normal.path_and_query == target.path_and_query && normal.host == target.host
        }),
        target: normal.unwrap_or_else(|| target.clone()),
        client: client.clone(),
        plan,
        // Taken before the request is sent, so that any later change refuses the copy.
        lease: site.store.lease(),
        request_time: site.clock.now(),
    });
    let why = passed_on(Reason::SessionCookie);
    forward_and_keep(site, request, target, client, why, keep).await
}

/// Forwards the request. The response is stored for its owner, or for all signed-in visitors, if `keep` is given
/// and it may be stored.
async fn forward_and_keep(
    site: &Arc<Site>,
    request: Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    mut why: ForwardCause,
    keep: Option<Keep>,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let facts = read_facts(&head.method, &head.headers);
    if let Err(refused) = forward::begin_bypass(site, &facts) {
        return *refused;
    }
    let asked = (&facts, RewriteFor::Page);
    let outgoing = match forward::prepare(site, (&head, body), &target, client, asked).await {
        Ok(outgoing) => *outgoing,
        Err(response) => return *response,
    };
    let mut sent = client_gone::send(site, outgoing, why.on_client_gone).await;
    if let Some(keep) = keep
        && let Ok(Ok(response)) = sent
    {
        match take(site, keep, &head, response).await {
            Keeping::Answer(answer) => return encode_response(site, &facts, answer),
            Keeping::PassOn(response, reason) => {
                why.reason = reason.or(why.reason);
                sent = Ok(Ok(response));
            }
        }
    }
    let answer = forward::answer(site, &facts, sent.map(forward::not_late), why);
    deferral::finish(site, (&head.method, &head.headers), &target, client, answer)
}

/// The reason for forwarding a request with a session cookie.
fn passed_on(reason: Reason) -> ForwardCause {
    ForwardCause {
        forward: ForwardReason::Bypass,
        reason: Some(reason),
        on_client_gone: OnClientGone::AwaitHead,
    }
}

/// Answers from the owner's copy if it is fresh.
fn from_store(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    plan: &Plan,
    key: &[u8],
) -> Option<Response<ResponseBody>> {
    let candidates = site.store.candidates(site.store.key(key));
    let now = site.clock.now();
    let (candidate, answer) = fresh_copy(site, facts, headers, plan, (&candidates, now))?;
    let found = &candidates.as_slice()[candidate];
    let page = found.payload();
    codings::wanted(site, facts, found);
    site.counters.private_hits.add();
    found.serve();
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Hit);
    status.ttl_seconds = Some(page.stored.ttl_seconds(now));
    status.detail = Some(Reason::Private.as_str());
    let mut response = serve::page(facts, found, answer, now, &status);
    response.extensions_mut().insert(FromPrivateCopy);
    Some(response)
}

/// The copy that answers the request now, and how.
fn fresh_copy(
    site: &Site,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    plan: &Plan,
    (copies, now): (&Candidates<StoredPage>, Timestamp),
) -> Option<(usize, Answer)> {
    let copies = StoredPages::Private(copies.as_slice());
    match lookup::choose(site, facts, &AsSent(headers), plan, copies, now) {
        Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => Some((candidate, answer)),
        _ => None,
    }
}

/// Whether a private copy answers the request now. Changes and counts nothing.
pub fn has_copy(
    site: &Site,
    request: (&TargetUri, &Client),
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    plan: &Plan,
) -> bool {
    let Some(copies) = &site.config.private else { return false };
    let Ok(Some(owner)) = owner(site, copies, plan, None, headers) else { return false };
    let key = copy_key(site, request, plan, &owner, headers);
    let (copies, now) = (site.store.peek(site.store.key(&key)), site.clock.now());
    fresh_copy(site, facts, headers, plan, (&copies, now)).is_some()
}

/// The result of trying to store a response for its owner.
enum Keeping {
    /// The complete answer. The page was stored, or `Cache-Status` contains the reason why not.
    Answer(Response<ResponseBody>),
    /// The response has to be forwarded, with the reason why it was not stored, if any.
    PassOn(OriginResponse, Option<Reason>),
}

/// Stores a response for its owner, or for all signed-in visitors, if it may be stored.
async fn take(
    site: &Arc<Site>,
    mut keep: Keep,
    head: &http::request::Parts,
    response: OriginResponse,
) -> Keeping {
    let Some(copies) = &site.config.private else { return Keeping::PassOn(response, None) };
    let shareable = keep.shareable(site, copies, head, &response);
    if let Ok(Some(stored)) = shareable {
        keep.end_copies(site, response.status, Reason::NotKept);
        let key = keep.shared.take().map(SignedInRequest::into_key).unwrap_or_default();
        return store(site, keep, head, (key, None), stored, response).await;
    }
    let own = || storable(site, copies, &keep, head, &response);
    let stored = match shareable.and_then(|_| own()) {
        Ok(Some(stored)) => stored,
        Ok(None) => {
            keep.end_copies(site, response.status, Reason::NotKept);
            return Keeping::PassOn(response, None);
        }
        Err(reason) => {
            keep.end_copies(site, response.status, reason);
            site.counters.not_stored.add();
            return Keeping::PassOn(response, Some(reason));
        }
    };
    let Some((owner, key)) = keep.own.take() else { return Keeping::PassOn(response, None) };
    store(site, keep, head, (key, Some(owner)), stored, response).await
}

/// Stores a response under `key`, and returns the answer with it.
async fn store(
    site: &Arc<Site>,
    keep: Keep,
    head: &http::request::Parts,
    (key, owner): (Vec<u8>, Option<Arc<Owner>>),
    mut stored: StoredResponse,
    mut response: OriginResponse,
) -> Keeping {
    esi::note(site, &response.headers, &mut stored);
    render::understand(site, &head.method, &head.headers, &mut response, Some(&mut stored));
    if stored.headers.contains_key(header::CONTENT_ENCODING) {
        // The next request may come from a browser that does not support the content coding.
        let (page, began) = ((&*key, keep.target.page()), (&keep.lease, keep.request_time));
        render::end_private_copies(site, page, began, (response.status, Reason::OwnerCoded));
        return Keeping::PassOn(response, Some(Reason::OwnerCoded));
    }
    let mut status =
        CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(ForwardReason::UriMiss));
    status.forward_status = Some(response.status);
    let page = (keep.target, key, keep.plan);
    let asked = (head.method.clone(), head.version, Arc::new(head.headers.clone()));
    let ask = RenderRequest::of_page(page, asked, keep.client, ForwardReason::UriMiss);
    let ask = RenderRequest { owner, ..ask };
    Keeping::Answer(render::store_for_owner(site, ask, keep.lease, stored, response, status).await)
}

/// The response to store; `None` if it is not marked private or must not be stored.
fn storable(
    site: &Site,
    copies: &PrivateCopies,
    keep: &Keep,
    head: &http::request::Parts,
    response: &OriginResponse,
) -> Result<Option<StoredResponse>, Reason> {
    let (status, fields) = (response.status, AsSent(&head.headers));
    if keep.own.is_none() || status.is_server_error() || status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    // Another page may include the same fragment, and would then lack it.
    if keep.client.extras.fragment.is_some() && !status.is_success() {
        return Err(Reason::FragmentError);
    }
    if sendfile::field_of(&response.headers).is_some() {
        return Err(Reason::Sendfile);
    }
    let view = view_of(&keep.target, &head.method, &fields, &keep.client);
    let rules = &site.config.rules;
    let revision = rules.revise(&keep.plan, &view, status, &response.headers, site.load());
    let terms = OwnedTerms {
        request_time: keep.request_time,
        response_time: site.clock.now(),
        word: copies.word,
        lifetime_max_ms: u64::try_from(copies.lifetime_max.as_millis()).unwrap_or(u64::MAX),
    };
    let facts = read_facts(&head.method, &head.headers);
    let headers = &response.headers;
    let stored = storable_for_owner(&facts, &fields, status, headers, terms, revision.policy)
        .map_err(Reason::from)?;
    match (stored, revision.refusal) {
        (Some(_), Some(refusal)) => Err(refusal.into()),
        _ if render::is_stream(headers) => Ok(None),
        // A response with a directive that a rule ignores is not stored.
        (stored, _) => Ok(stored.filter(|_| revision.ignored.is_empty())),
    }
}
