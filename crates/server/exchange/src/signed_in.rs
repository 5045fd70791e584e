//! Pages that signed-in visitors share (LiteSpeed's ESI): the plugin marks them as public and moves their
//! personal parts to fragments. Enabled by `dialects.litespeed_esi`.
//!
//! | step | condition |
//! |---|---|
//! | a stored page answers | the application has confirmed the visitor's cookies, and it is fresh |
//! | a visitor is confirmed for a host | the response to such a request for a page could be shared, and set no cookie |
//! | a response is stored | `public` with a lifetime; `esi=on`, or a fragment of a confirmed visitor; to a request with no fields but those of shared pages |
//! | a request loses its other fields | the last response under its key could be shared |
//!
//! Invariants: the key has the values of all vary cookies, and a part that no other key has, so
//! these pages never answer a visitor without a session. A cookie that an attacker invents is not
//! confirmed, because the plugin then sets the right vary cookie or forbids caching. Confirmation
//! ends with `private.lifetime_max`, and with a response that sets a session or vary cookie. Out of scope:
//! stale pages, validation, collapsing. A lock guards the marks for one look-up.

use crate::body::ResponseBody;
use crate::codings;
use crate::forward;
use crate::lookup::{self, StoredPages};
use crate::serve;
use crate::site::Site;
use config::PrivateCopies;
use config::target::TargetUri;
use http::{HeaderMap, Response, StatusCode, header};
use http_cache::litespeed::{CacheControl, Scope, StorePermission, Switch};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{RequestFacts, Reuse, StoredResponse, Timestamp, Verdict, storable};
use origin::OriginResponse;
use site_rules::{Plan, key_without_vary};
use site_state::client::{Client, FragmentSharing};
use site_state::page::SharedPage;
use site_state::request_fields::{AsSent, METHOD_OVERRIDES, read_facts, view_of};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The end of the key of a page that signed-in visitors share. No other part of a key is equal.
const SIGNED_IN_PART: &[u8] = b"\nsigned-in";

/// The parameter in the URL of a fragment of LiteSpeed's plugin for WordPress. For such a request the plugin
/// does not compare the vary cookie with the session, so the response confirms nobody.
const FRAGMENT_PARAMETER: &str = "lsesi";

/// The parameter in the URL of a request to WordPress's REST API, in the form without a path.
const REST_PARAMETER: &str = "rest_route";

/// How long the marks of a page stay that it could be shared, in milliseconds.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1000;

/// The maximum number of marks of a site (32 bytes each).
const MARKS_MAX: usize = 65_536;

/// The marks of a site: which visitors the application has confirmed, and which pages could be shared. A lost
/// mark costs a request to the origin.
#[derive(Default)]
pub struct SignedInMarks {
    /// By hash; the value is the time at which the mark ends, in milliseconds since 1970.
    ends_ms: Mutex<HashMap<u128, u64>>,
    /// The secret keys of the hashes: a visitor cannot find other cookies with the same mark.
    keys: [RandomState; 2],
}

impl SignedInMarks {
    fn has(&self, mark: u128, now_ms: u64) -> bool {
        self.lock().get(&mark).is_some_and(|ends_ms| now_ms < *ends_ms)
    }

    fn add(&self, mark: u128, (now_ms, for_ms): (u64, u64)) {
        let mut all = self.lock();
        if all.len() >= MARKS_MAX {
            all.retain(|_, ends_ms| now_ms < *ends_ms);
        }
        if all.len() >= MARKS_MAX {
            all.clear();
        }
        all.insert(mark, now_ms.saturating_add(for_ms));
    }

    fn mark(&self, subject: MarkOf, of: &[u8]) -> u128 {
        let [high, low] = self.keys.each_ref().map(|key| u128::from(key.hash_one((&subject, of))));
        high << 64 | low
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, u64>> {
        self.ends_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of a visitor with a session cookie and a vary cookie, whose response may be shared.
pub struct SignedInRequest {
    /// The key of the shared page.
    key: Vec<u8>,
    /// The mark that the visitor's cookies are confirmed for this host.
    visitor: u128,
    /// The mark that they are not valid any more.
    ended: u128,
    subject: Subject,
}

/// The subject of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Page,
    /// A fragment of a page, for that page.
    Fragment,
    /// A fragment, requested by its URL.
    FragmentAlone,
}

impl SignedInRequest {
    /// The request as one for a page that signed-in visitors share. `None` if it cannot be one. `key` is the
    /// cache key of the page for visitors without a session.
    pub fn of(
        site: &Site,
        target: &TargetUri,
        client: &Client,
        (plan, key): (&Plan, &[u8]),
        headers: &HeaderMap,
    ) -> Option<SignedInRequest> {
        if !crate::esi::is_litespeeds(site) || !site.config.rules.shares_by_vary_cookies(plan) {
            return None;
        }
        if is_uncorrected(target, headers) {
            return None;
        }
        let subject = match &client.extras.fragment {
            Some(fragment) if fragment.sharing == FragmentSharing::OneVisitor => return None,
            Some(_) => Subject::Fragment,
            None if has_parameter(target, FRAGMENT_PARAMETER) => Subject::FragmentAlone,
            None => Subject::Page,
        };
        let cookies = site.config.rules.session_and_vary_cookies(&AsSent(headers))?;
        let visitor = site
            .signed_in
            .mark(MarkOf::Visitor, &[target.host.as_bytes(), b"\n", &cookies].concat());
        let ended = site.signed_in.mark(MarkOf::Ended, &cookies);
        Some(SignedInRequest { key: [key, SIGNED_IN_PART].concat(), visitor, ended, subject })
    }

    /// The cache key of the shared page.
    pub fn into_key(self) -> Vec<u8> {
        self.key
    }

    fn is_confirmed(&self, site: &Site) -> bool {
        let now_ms = site.clock.now().0;
        site.signed_in.has(self.visitor, now_ms) && !site.signed_in.has(self.ended, now_ms)
    }

    /// The fields with which the request goes to the origin: those of shared pages, if the response is expected
    /// to be one, else all.
    pub fn fields(&self, site: &Site, headers: &HeaderMap) -> Option<HeaderMap> {
        let is_known = site.signed_in.has(page_mark(site, &self.key), site.clock.now().0);
        is_known.then(|| shared_fields(site, headers))
    }

    /// Answers from the shared page if it is fresh and the visitor is confirmed.
    pub fn from_store(
        &self,
        site: &Arc<Site>,
        facts: &RequestFacts<'_>,
        headers: &HeaderMap,
        plan: &Plan,
    ) -> Option<Response<ResponseBody>> {
        if !self.is_confirmed(site) {
            return None;
        }
        let all = |page: &SharedPage| page.payload().stored.says_no_vary();
        stored(site, facts, headers, (plan, &self.key), |_| true).or_else(|| {
            let plain = key_without_vary(&self.key)?;
            stored(site, facts, headers, (plan, &plain), all)
        })
    }

    /// The response as a page that signed-in visitors share; `None` if it must not be shared. Marks what the
    /// response shows about the visitor and about the page.
    pub fn storable(
        &self,
        site: &Site,
        copies: &PrivateCopies,
        sent: SentRequest<'_>,
        response: &OriginResponse,
    ) -> Option<StoredResponse> {
        let (stored, now_ms) = (self.shareable(site, sent, response)?, site.clock.now().0);
        match self.subject {
            Subject::FragmentAlone => return None,
            Subject::Fragment if !self.is_confirmed(site) => return None,
            Subject::Fragment | Subject::Page => {}
        }
        let outgoing = forward::outgoing(&sent.head.headers);
        let mut names = outgoing.keys().filter(|name| **name != header::VIA);
        let is_as_shared =
            sent.is_normal && names.all(|name| is_of_shared_pages(site, name.as_str()));
        if !is_as_shared {
            site.signed_in.add(page_mark(site, &self.key), (now_ms, KNOWN_MS));
            return None;
        }
        if self.subject == Subject::Page {
            site.signed_in.add(self.visitor, (now_ms, lifetime_ms(copies)));
        }
        Some(stored)
    }

    /// The response, if the application declares it as one for all visitors with these vary cookies.
    fn shareable(
        &self,
        site: &Site,
        sent: SentRequest<'_>,
        response: &OriginResponse,
    ) -> Option<StoredResponse> {
        let said = CacheControl::read(&response.headers)?;
        let is_public = said.scope == Scope::Public && said.keeping == StorePermission::Allowed;
        // Only `esi=on` shows that the personal parts are not in the page.
        let is_of_esi = match self.subject {
            Subject::Page => said.esi == Switch::On,
            Subject::Fragment | Subject::FragmentAlone => response.status.is_success(),
        };
        let is_part = response.status == StatusCode::PARTIAL_CONTENT;
        let is_file = crate::sendfile::field_of(&response.headers).is_some();
        if !is_public || !is_of_esi || is_part || is_file {
            return None;
        }
        let (method, headers) = (&sent.head.method, &sent.head.headers);
        let (fields, facts) = (AsSent(headers), read_facts(method, headers));
        let view = view_of(sent.target, method, &fields, sent.client);
        let rules = &site.config.rules;
        let revision =
            rules.revise(sent.plan, &view, response.status, &response.headers, site.load());
        if revision.refusal.is_some() || !revision.ignored.is_empty() {
            return None;
        }
        let times = (sent.request_time, site.clock.now());
        let (status, answered) = (response.status, &response.headers);
        let stored =
            storable(&facts, &fields, status, answered, times.0, times.1, revision.policy).ok()?;
        stored.may_be_shared(times.1).then_some(stored)
    }
}

/// A request as it went to the origin.
#[derive(Clone, Copy)]
pub struct SentRequest<'a> {
    /// The target of the request after URL normalisation.
    pub target: &'a TargetUri,
    /// Whether the target that was sent is the normalised one.
    pub is_normal: bool,
    /// The head of the request.
    pub head: &'a http::request::Parts,
    /// The client that sent it.
    pub client: &'a Client,
    /// The result of the site's rules.
    pub plan: &'a Plan,
    /// When it was sent.
    pub request_time: Timestamp,
}

/// The fields of a request that the origin gets for a page that may be shared, with all cookies.
pub fn shared_fields(site: &Site, headers: &HeaderMap) -> HeaderMap {
    let lines = headers.iter().filter(|(name, _)| is_of_shared_pages(site, name.as_str()));
    lines.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_of_shared_pages(site: &Site, name: &str) -> bool {
    site.config.rules.sends_field(name) && !METHOD_OVERRIDES.contains(&name)
}

/// Ends the confirmation of the visitor that sent these lines.
pub fn forget(site: &Site, request: &HeaderMap) {
    if crate::esi::is_litespeeds(site)
        && let Some(copies) = &site.config.private
        && let Some(cookies) = site.config.rules.session_and_vary_cookies(&AsSent(request))
    {
        // A response that is on its way must not confirm them again.
        let ended = site.signed_in.mark(MarkOf::Ended, &cookies);
        site.signed_in.add(ended, (site.clock.now().0, lifetime_ms(copies)));
    }
}

fn lifetime_ms(copies: &PrivateCopies) -> u64 {
    u64::try_from(copies.lifetime_max.as_millis()).unwrap_or(u64::MAX)
}

/// Whether the plugin does not correct a wrong vary cookie in the response to this request: the REST API, and
/// requests of its own crawler (`vary.cls.php`, `can_change_vary`).
fn is_uncorrected(target: &TargetUri, headers: &HeaderMap) -> bool {
    let mut agents = headers.get_all(header::USER_AGENT).iter();
    agents.any(|agent| crate::litespeed::is_crawler(agent.as_bytes()))
        || target.path_and_query.contains("/wp-json")
        || has_parameter(target, REST_PARAMETER)
}

fn stored(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    (plan, key): (&Plan, &[u8]),
    may_be_used: impl Fn(&SharedPage) -> bool,
) -> Option<Response<ResponseBody>> {
    let (candidates, now) = (site.store.candidates(site.store.key(key)), site.clock.now());
    let pages = StoredPages::SignedIn(candidates.as_slice());
    let verdict = lookup::choose(site, facts, &AsSent(headers), plan, pages, now);
    let Verdict::Reuse { candidate, state: Reuse::Fresh, answer } = verdict else { return None };
    let found = &candidates.as_slice()[candidate];
    if !may_be_used(found) {
        return None;
    }
    codings::wanted(site, facts, found);
    site.counters.hits.add();
    found.serve();
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Hit);
    status.ttl_seconds = Some(found.payload().stored.ttl_seconds(now));
    status.detail = Some("signed-in");
    Some(serve::page(facts, found, answer, now, &status))
}

fn page_mark(site: &Site, key: &[u8]) -> u128 {
    site.signed_in.mark(MarkOf::Page, key)
}

/// The subject of a mark.
#[derive(Hash)]
enum MarkOf {
    /// A host with the cookies of a visitor that are confirmed for it.
    Visitor,
    /// The cookies of a visitor that are not valid any more, on any host.
    Ended,
    /// The key of a page that could be shared.
    Page,
}

/// Whether the query has a parameter of this name, in any way in which PHP reads it.
fn has_parameter(target: &TargetUri, name: &str) -> bool {
    let query = target.path_and_query.split_once('?').map_or("", |(_, query)| query);
    // An encoded letter could hide the name. PHP also takes `name[x]` for the name.
    query.split('&').any(|pair| {
        let written = pair.split('=').next().unwrap_or_default();
        written.contains('%') || written.trim_start_matches('+').starts_with(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_end_and_are_bounded() {
        let marks = SignedInMarks::default();
        marks.add(1, (1_000, 50));
        assert!(marks.has(1, 1_049) && !marks.has(1, 1_050) && !marks.has(2, 1_000));
        for mark in 0..=MARKS_MAX as u128 {
            marks.add(mark, (2_000, 50));
        }
        assert!(marks.lock().len() <= MARKS_MAX && marks.has(MARKS_MAX as u128, 2_000));
    }

    #[test]
    fn a_fragment_is_recognised_by_its_url() {
        let target = |path_and_query: &str| TargetUri {
            scheme: "https",
            host: "example.org".into(),
            path_and_query: path_and_query.into(),
            normal: None,
            written: None,
        };
        for url in ["/?lsesi=nonce", "/?a=1&lsesi=x", "/?lsesi[]=x", "/?%6csesi=x", "/?+lsesi=x"] {
            assert!(has_parameter(&target(url), FRAGMENT_PARAMETER), "{url}");
        }
        for url in ["/", "/?a=lsesi", "/lsesi", "/?a=%6c"] {
            assert!(!has_parameter(&target(url), FRAGMENT_PARAMETER), "{url}");
        }
    }
}
