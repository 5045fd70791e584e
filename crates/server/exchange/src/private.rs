//! Private copies: a page that was made for one visitor is kept for him, and found by nobody else.
//!
//! | | |
//! |---|---|
//! | found by | the target as it was written, the plan's parts, and every cookie but a script's (`site_rules::Owner`) |
//! | stored | only what says `private` and how long, under a lease that was taken before the request went out |
//! | dropped | by what drops any page (tags, addresses, everything), by private purges of its owner's, by each unsafe request of his, by a response that sets one of his cookies |
//!
//! Invariants: a request is passed on as it came and waits for nobody; only a fresh copy is used. What a
//! copy depends on names each cookie of its owner by itself, so that a request with any of them drops it.
//! Names of owners begin with a byte that no field can carry; a clash of their hashes could only drop too
//! much. Deliberately not here: stale copies, validation, renders in the background.

use crate::body::ResponseBody;
use crate::codings;
use crate::esi;
use crate::exchange::{bypassing_field, tell_bypassed};
use crate::forward::{self, Why};
use crate::heard::Patience;
use crate::lookup::{self, StoredPages};
use crate::render::{self, Ask, ExtraFields, Ranges};
use crate::sendfile;
use crate::serve;
use crate::site::Site;
use config::PrivateCopies;
use config::target::Target;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_cache::litespeed::{CacheControl, Purge, PurgeTarget, Scope, Switch};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{
    FieldUse, ForwardReason, OwnedTerms, RequestFacts, Reuse, StoredResponse, Timestamp, Verdict,
    storable_for_owner,
};
use origin::OriginResponse;
use page_store::{ChangeTarget as Changed, Dependencies, Lease, Strength};
use site_rules::{BypassBecause, Owner, Plan};
use site_state::client::{RequestContent, Visitor};
use site_state::request_fields::view_of;
use site_state::request_fields::{AsSent, read_facts};
use site_state::why::Cause;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// What a private copy is stored with.
pub struct Keep {
    owner: Arc<Owner>,
    key: Vec<u8>,
    /// In its normal form: what the copy depends on.
    target: Target,
    visitor: Visitor,
    plan: Plan,
    lease: Lease,
    request_time: Timestamp,
}

impl Keep {
    /// The response is not kept: what is stored for the same request is over (rule 9). A 304 answers a
    /// condition of the owner's own and says nothing of the copy.
    fn end_copies(&self, site: &Site, status: StatusCode, reason: &'static str) {
        // Also where there is none yet: a request that began before may be about to bring one.
        if status != StatusCode::NOT_MODIFIED {
            let (page, began) =
                ((&*self.key, self.target.page()), (&self.lease, self.request_time));
            render::end_private_copies(site, page, began, (status, reason));
        }
    }
}

/// Answers a GET or HEAD with a session's cookie: by its owner's copy, or by passing it on, whose response
/// may become one.
pub async fn answer(
    site: &Arc<Site>,
    copies: &PrivateCopies,
    request: Request<RequestContent>,
    target: Target,
    visitor: &Visitor,
    plan: Plan,
) -> Response<ResponseBody> {
    let headers = request.headers();
    let owner = match site.config.rules.owner(&copies.cookies, &AsSent(headers)) {
        Ok(owner) => Arc::new(owner),
        Err(reason) => {
            tell_bypassed(site, headers, &target, &plan, reason.as_str());
            let why = passed_on(reason.as_str());
            return forward::pass_bypassed(site, request, target, visitor, why, None).await;
        }
    };
    // A part of a page, or what a field of the request says who asks for, is no copy of the page.
    if let Some(because) = bypassing_field(&site.config.rules, &plan, headers) {
        tell_bypassed(site, headers, &target, &plan, because.as_str());
        let why = passed_on(because.as_str());
        return forward::pass_bypassed(site, request, target, visitor, why, None).await;
    }
    let key = key_of(site, &target, &plan, &owner, headers);
    let facts = read_facts(request.method(), headers);
    if let Some(response) = from_store(site, &facts, headers, &plan, &key) {
        return response;
    }
    tell_bypassed(site, headers, &target, &plan, BypassBecause::SessionCookie.as_str());
    let keep = (request.method() == Method::GET).then(|| Keep {
        owner,
        key,
        target: site.shared(&target).unwrap_or_else(|| target.clone()),
        visitor: visitor.clone(),
        plan,
        // Before anything is sent: a change from here on refuses the copy.
        lease: site.store.lease(),
        request_time: site.clock.now(),
    });
    let why = passed_on(BypassBecause::SessionCookie.as_str());
    forward::pass_bypassed(site, request, target, visitor, why, keep).await
}

/// Why a request with a session's cookie is passed on.
fn passed_on(detail: &'static str) -> Why {
    let patience = Patience::ToTheHead;
    Why { forward: ForwardReason::Bypass, detail: Some(detail), patience }
}

/// The key of an owner's copy. The origin gets the target as it was written, so that is what the copy is of.
fn key_of(
    site: &Site,
    target: &Target,
    plan: &Plan,
    owner: &Owner,
    headers: &HeaderMap,
) -> Vec<u8> {
    let mut key = Vec::with_capacity(256);
    Target { normal: None, written: None, ..target.clone() }.write_key(&mut key);
    site.config.rules.write_key(plan, &AsSent(headers), &mut key);
    key.extend_from_slice(&owner.key);
    key
}

/// The owner's copy, where it is fresh.
fn from_store(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    plan: &Plan,
    key: &[u8],
) -> Option<Response<ResponseBody>> {
    let candidates = site.store.candidates(site.store.key(key));
    let (copies, now) = (StoredPages::Private(candidates.as_slice()), site.clock.now());
    let verdict = lookup::choose(site, facts, &AsSent(headers), plan, copies, now);
    let Verdict::Reuse { candidate, state: Reuse::Fresh, answer } = verdict else { return None };
    let found = &candidates.as_slice()[candidate];
    let page = found.payload();
    codings::wanted(site, facts, found);
    site.counters.private_hits.add();
    found.serve();
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Hit);
    status.ttl_seconds = Some(page.stored.ttl_seconds(now));
    status.detail = Some("private");
    Some(serve::page(facts, found, answer, now, &status))
}

/// What became of a response that might be kept for its owner.
pub enum Taken {
    /// It is the answer, and is kept, or the answer says why not.
    Answer(Response<ResponseBody>),
    /// It is to be passed on.
    PassOn(OriginResponse, Option<&'static str>),
}

/// Keeps a response for its owner, if it is to be.
pub async fn take(
    site: &Arc<Site>,
    keep: Keep,
    head: &http::request::Parts,
    mut response: OriginResponse,
) -> Taken {
    let Some(copies) = &site.config.private else { return Taken::PassOn(response, None) };
    let mut stored = match storable(site, copies, &keep, head, &response) {
        Ok(Some(stored)) => stored,
        Ok(None) => {
            keep.end_copies(site, response.status, "not-kept");
            return Taken::PassOn(response, None);
        }
        Err(reason) => {
            keep.end_copies(site, response.status, reason);
            site.counters.not_stored.add();
            return Taken::PassOn(response, Some(reason));
        }
    };
    esi::note(site, &response.headers, &mut stored);
    render::understand(site, &head.method, &head.headers, &mut response, Some(&mut stored));
    if stored.headers.contains_key(header::CONTENT_ENCODING) {
        // Its owner may ask from a browser that does not know it.
        keep.end_copies(site, response.status, "owner-coded");
        return Taken::PassOn(response, Some("owner-coded"));
    }
    let mut status =
        CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(ForwardReason::UriMiss));
    status.forward_status = Some(response.status);
    let ask = Ask {
        target: keep.target,
        key: keep.key,
        method: head.method.clone(),
        headers: Arc::new(head.headers.clone()),
        version: head.version,
        visitor: keep.visitor,
        plan: keep.plan,
        why: ForwardReason::UriMiss,
        validate: None,
        fallback: None,
        ranges: Ranges::Cut,
        owner: Some(keep.owner),
        extra_fields: ExtraFields::default(),
    };
    Taken::Answer(render::kept_for_owner(site, ask, keep.lease, stored, response, status).await)
}

/// What is kept of a response; `None` where it is not said to be private, or is nothing to be kept.
fn storable(
    site: &Site,
    copies: &PrivateCopies,
    keep: &Keep,
    head: &http::request::Parts,
    response: &OriginResponse,
) -> Result<Option<StoredResponse>, &'static str> {
    let (status, fields) = (response.status, AsSent(&head.headers));
    if status.is_server_error() || status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    if sendfile::field_of(&response.headers).is_some() {
        return Err(sendfile::REASON);
    }
    let view = view_of(&keep.target, &head.method, &fields, &keep.visitor);
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
        .map_err(|reason| reason.as_str())?;
    match (stored, revision.refusal) {
        (Some(_), Some(refusal)) => Err(refusal.as_str()),
        _ if render::is_stream(headers) => Ok(None),
        // What a rule has ignored was said all the same.
        (stored, _) => Ok(stored.filter(|_| revision.ignored.is_empty())),
    }
}

/// Adds to what a copy depends on: that it is its owner's, by each of his cookies.
pub fn depend(dependencies: &mut Dependencies, owner: &Owner, stored: &StoredResponse, page: &str) {
    dependencies.owner(&owner.cookies.join(&b'\n'));
    for cookie in &owner.cookies {
        dependencies.tag(&name(cookie, What::Everything));
        dependencies.tag(&name(cookie, What::Url(page)));
        for tag in stored.extras().owner_tags.iter() {
            dependencies.tag(&name(cookie, What::Tag(tag)));
        }
    }
}

/// What of an owner's.
#[derive(Clone, Copy)]
enum What<'a> {
    Everything,
    Url(&'a str),
    Tag(&'a [u8]),
}

/// The name of what is an owner's: no field of a response can name it.
fn name(cookie: &[u8], what: What<'_>) -> Vec<u8> {
    let (kind, of): (&[u8], &[u8]) = match what {
        What::Everything => (b"\0owner ", b""),
        What::Url(url) => (b"\0owner-url ", url.as_bytes()),
        What::Tag(tag) => (b"\0owner-tag ", tag),
    };
    [kind, &xxh3_128(cookie).to_be_bytes(), &xxh3_128(of).to_be_bytes()].concat()
}

/// The cookies of a request that tell an owner, for what is to be dropped; none where nothing private is
/// kept.
fn cookies(site: &Site, request: &HeaderMap) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if let Some(copies) = &site.config.private {
        copies.cookies.each(&AsSent(request), &mut |cookie| found.push(cookie.to_vec()));
    }
    found
}

/// Drops every copy of the owner who sent these lines.
fn drop_all(site: &Site, request: &HeaderMap) {
    let names: Vec<_> =
        cookies(site, request).iter().map(|cookie| name(cookie, What::Everything)).collect();
    change(site, &names, Strength::Drop);
}

fn change(site: &Site, names: &[Vec<u8>], strength: Strength) {
    let changed: Vec<Changed<'_>> = names.iter().map(|name| Changed::Tag(name)).collect();
    if !changed.is_empty() {
        site.changes().apply(&changed, strength, Cause::Visitor);
    }
}

/// An unsafe request of an owner's has been to the origin: what he sees may be otherwise now, whatever the
/// answer was, and if there was none (RFC 9111 section 4.4 asks for less). LiteSpeed's `no-autoflush` says
/// that nothing has changed for him.
pub fn wrote(site: &Site, request: &HeaderMap, response: Option<&OriginResponse>) {
    let said = response.and_then(|response| CacheControl::read(&response.headers));
    let obeyed = site.config.dialects.litespeed == FieldUse::Obey;
    if obeyed && said.is_some_and(|said| said.no_autoflush == Switch::On) {
        return;
    }
    drop_all(site, request);
}

/// Whoever gets one of his cookies anew signs in or out: what he has seen until now is over.
pub fn signed(site: &Site, request: &HeaderMap, response: &HeaderMap) {
    let Some(copies) = &site.config.private else { return };
    let mut lines = response.get_all(header::SET_COOKIE).iter();
    if lines.any(|line| copies.cookies.are_set_by(line.as_bytes())) {
        drop_all(site, request);
    }
}

/// Applies the purges of private scope to the copies of whoever sent the request.
pub fn purged<'p>(
    site: &Site,
    request: &HeaderMap,
    purges: impl Iterator<Item = &'p Purge>,
    strength: Strength,
) {
    let mut private = purges.filter(|purge| purge.scope != Scope::Public).peekable();
    if private.peek().is_none() {
        return;
    }
    let cookies = cookies(site, request);
    let form = site.config.rules.form();
    let mut names = Vec::new();
    for purge in private {
        for cookie in &cookies {
            names.push(match &purge.what {
                PurgeTarget::Tag(tag) => name(cookie, What::Tag(tag)),
                PurgeTarget::Url(url) => name(cookie, What::Url(&form.normal(url).page)),
                PurgeTarget::Everything => name(cookie, What::Everything),
            });
        }
    }
    change(site, &names, strength);
}

#[cfg(test)]
#[path = "private_tests.rs"]
mod tests;
