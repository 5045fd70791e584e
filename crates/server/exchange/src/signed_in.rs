//! Pages that signed-in visitors share (LiteSpeed's ESI): the plugin marks them as public and moves their
//! personal parts to fragments. Enabled by `dialects.litespeed_esi`.
//!
//! | step | condition |
//! |---|---|
//! | a stored page answers | the application has confirmed the visitor's cookies, and it is fresh |
//! | a visitor is confirmed for a host | the response to such a request for a page could be shared, and set no cookie |
//! | a response is stored | `public` with a lifetime; `esi=on`, or a fragment of a confirmed visitor; to a request with no fields but those of shared pages, and no cookie that others may lack |
//! | a request loses its other fields, and its cookies of scripts | the last response under its key could be shared, or it is for a fragment |
//!
//! Invariants: the key has the values of all vary cookies, and a part that no other key has, so
//! these pages never answer a visitor without a session. A cookie that an attacker invents is not
//! confirmed, because the plugin then sets the right vary cookie or forbids caching. Confirmation
//! ends with `private.lifetime_max`, and with a response that sets a session or vary cookie. Out of scope:
//! stale pages, validation, collapsing. The marks are in `site_state::signed_in_marks`.

use config::PrivateCopies;
use delivery::body::ResponseBody;
use delivery::codings;
use delivery::lookup::{self, StoredPages};
use delivery::serve;
use delivery::site::Site;
use forward::owner_copies;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_cache::litespeed::{CacheControl, Scope, StorePermission, Switch};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{Answer, RequestFacts, Reuse, StoredResponse, Timestamp, Verdict, storable};
use origin::OriginResponse;
use page_store::Candidates;
use reasons::Reason;
use request_values::target::TargetUri;
use site_rules::{NoRole, Plan, key_without_vary};
use site_state::signed_in_marks::MarkOf;
use std::sync::Arc;
use stored_pages::page::{SharedPage, StoredPage};
use telemetry::client::{Client, FragmentSharing};
use telemetry::request_fields::{AsSent, METHOD_OVERRIDES, read_facts, view_of};

/// The end of the key of a page that signed-in visitors share. No other part of a key is equal.
const SIGNED_IN_PART: &[u8] = b"\nsigned-in";

/// The parameter in the URL of a fragment of LiteSpeed's plugin for WordPress. For such a request the plugin
/// does not compare the vary cookie with the session, so a client that sends it is not confirmed.
const FRAGMENT_PARAMETER: &str = "lsesi";

/// The parameter in the URL of a request to WordPress's REST API, in the form without a path.
const REST_PARAMETER: &str = "rest_route";

/// How long the marks of a page stay that it could be shared, in milliseconds.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1000;

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

/// The state of a page that signed-in visitors share, and of one of them. For explanations.
pub struct RoleState {
    /// The key of the page.
    pub key: Vec<u8>,
    /// Whether the application has confirmed the visitor's cookies.
    pub is_confirmed: bool,
    /// Whether the last response under the key could be shared.
    pub is_known: bool,
    /// The page that answers a confirmed visitor, if it is fresh.
    pub page: Option<SharedPage>,
}

/// Whether a key is that of a page that signed-in visitors share.
pub fn is_key_of_role(key: &[u8]) -> bool {
    key.ends_with(SIGNED_IN_PART)
}

/// The subject of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Page,
    /// A fragment of a page, for that page.
    Fragment,
}

impl SignedInRequest {
    /// The request as one for a page that signed-in visitors share. `key` is the cache key of the page for
    /// visitors without a session.
    ///
    /// # Errors
    /// The reason why it cannot be one.
    pub fn of(
        site: &Site,
        target: &TargetUri,
        client: &Client,
        (plan, key): (&Plan, &[u8]),
        headers: &HeaderMap,
    ) -> Result<SignedInRequest, NoRole> {
        if !delivery::esi::is_litespeeds(site) {
            return Err(NoRole::NotOffered);
        }
        site.config.rules.shares_by_vary_cookies(plan)?;
        let subject = match &client.extras.fragment {
            Some(fragment) if fragment.sharing == FragmentSharing::OneVisitor => {
                return Err(NoRole::NotOffered);
            }
            _ if is_uncorrected(target, headers) => return Err(NoRole::Uncorrected),
            Some(_) => Subject::Fragment,
            None if target.may_have_parameter(FRAGMENT_PARAMETER) => {
                return Err(NoRole::Uncorrected);
            }
            None => Subject::Page,
        };
        let cookies = site.config.rules.session_and_vary_cookies(&AsSent(headers))?;
        let visitor = site
            .signed_in
            .mark(MarkOf::Visitor, &[target.host.as_bytes(), b"\n", &cookies].concat());
        let ended = site.signed_in.mark(MarkOf::Ended, &cookies);
        Ok(SignedInRequest { key: [key, SIGNED_IN_PART].concat(), visitor, ended, subject })
    }

    /// The state of the shared page and of the visitor. It does not count as a use of the page.
    pub fn state(
        self,
        site: &Site,
        facts: &RequestFacts<'_>,
        headers: &HeaderMap,
        plan: &Plan,
    ) -> RoleState {
        let look = |key: &[u8]| site.store.peek(site.store.key(key));
        let fresh = self.fresh(site, facts, headers, (plan, site.clock.now()), look);
        RoleState {
            is_confirmed: self.is_confirmed(site),
            is_known: self.is_known(site),
            page: fresh.map(|(page, _)| page),
            key: self.key,
        }
    }

    /// The cache key of the shared page.
    pub fn into_key(self) -> Vec<u8> {
        self.key
    }

    fn is_confirmed(&self, site: &Site) -> bool {
        let now_ms = site.clock.now().0;
        site.signed_in.has(self.visitor, now_ms) && !site.signed_in.has(self.ended, now_ms)
    }

    /// The fields with which the request goes to the origin, if they are not all: those of shared pages, without
    /// cookies of scripts. So for a fragment, and for a page that could be shared the last time.
    pub fn fields(&self, site: &Site, plan: &Plan, headers: &HeaderMap) -> Option<HeaderMap> {
        if self.subject != Subject::Fragment && !self.is_known(site) {
            return None;
        }
        let mut fields = shared_fields(site, headers);
        let cookies = site.config.rules.role_cookies(plan, &AsSent(headers));
        if let Ok(cookies) = HeaderValue::from_bytes(&cookies.forwarded) {
            fields.insert(header::COOKIE, cookies);
        }
        Some(fields)
    }

    /// Whether the last response under the key could be shared.
    fn is_known(&self, site: &Site) -> bool {
        site.signed_in.has(page_mark(site, &self.key), site.clock.now().0)
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
        let now = site.clock.now();
        let look = |key: &[u8]| site.store.candidates(site.store.key(key));
        let (found, answer) = self.fresh(site, facts, headers, (plan, now), look)?;
        codings::wanted(site, facts, &found);
        site.counters.hits.add();
        found.serve();
        let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Hit);
        status.ttl_seconds = Some(found.payload().stored.ttl_seconds(now));
        status.detail = Some(Reason::SignedIn.as_str());
        Some(serve::page(facts, &found, answer, now, &status))
    }

    /// The fresh page that answers the request of a confirmed visitor, and how.
    fn fresh(
        &self,
        site: &Site,
        facts: &RequestFacts<'_>,
        headers: &HeaderMap,
        (plan, now): (&Plan, Timestamp),
        look: impl Fn(&[u8]) -> Candidates<StoredPage>,
    ) -> Option<(SharedPage, Answer)> {
        let under = |key: &[u8]| {
            let candidates = look(key);
            let pages = StoredPages::SignedIn(candidates.as_slice());
            match lookup::choose(site, facts, &AsSent(headers), plan, pages, now) {
                Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => {
                    Some((candidates.as_slice()[candidate].clone(), answer))
                }
                _ => None,
            }
        };
        under(&self.key).or_else(|| {
            let for_all = under(&key_without_vary(&self.key)?)?;
            for_all.0.payload().stored.says_no_vary().then_some(for_all)
        })
    }

    /// The response as a page that signed-in visitors share; `None` if it must not be shared. Marks what the
    /// response shows about the visitor and about the page.
    ///
    /// # Errors
    /// The reason why a page of the role is not stored: the request has a cookie that others may lack.
    pub fn storable(
        &self,
        site: &Site,
        copies: &PrivateCopies,
        sent: SentRequest<'_>,
        response: &OriginResponse,
    ) -> Result<Option<StoredResponse>, Reason> {
        let Some(stored) = self.shareable(site, sent, response) else { return Ok(None) };
        if self.subject == Subject::Fragment && !self.is_confirmed(site) {
            return Ok(None);
        }
        let now_ms = site.clock.now().0;
        let outgoing = forward::outgoing(&sent.head.headers);
        let mut names = outgoing.keys().filter(|name| **name != header::VIA);
        let cookies = site.config.rules.role_cookies(sent.plan, &AsSent(&sent.head.headers));
        let is_as_shared = sent.is_normal
            && !cookies.leaves_some_out
            && names.all(|name| is_of_shared_pages(site, name.as_str()));
        if !is_as_shared {
            site.signed_in.add(page_mark(site, &self.key), (now_ms, KNOWN_MS));
            return Ok(None);
        }
        if self.subject == Subject::Page {
            site.signed_in.add(self.visitor, (now_ms, owner_copies::lifetime_ms(copies)));
        }
        if cookies.are_nominated(stored.nominated()) {
            Ok(Some(stored))
        } else {
            Err(Reason::CookieNotInKey)
        }
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
            Subject::Fragment => response.status.is_success(),
        };
        let is_part = response.status == StatusCode::PARTIAL_CONTENT;
        let is_file = forward::sendfile::field_of(&response.headers).is_some();
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

/// Whether the plugin may not correct a wrong vary cookie in the response to this request: the REST API, AJAX, and
/// requests of its own crawler (`vary.cls.php`, `can_change_vary`). WordPress also decodes the path once.
fn is_uncorrected(target: &TargetUri, headers: &HeaderMap) -> bool {
    let mut agents = headers.get_all(header::USER_AGENT).iter();
    agents.any(|agent| forward::litespeed::is_crawler(agent.as_bytes()))
        || ["/wp-json", "/admin-ajax.php"].iter().any(|part| target.path_and_query.contains(part))
        || target.path().contains('%')
        || target.may_have_parameter(REST_PARAMETER)
}

fn page_mark(site: &Site, key: &[u8]) -> u128 {
    site.signed_in.mark(MarkOf::Page, key)
}
