//! Determines how a request would be answered: its step in the table of `exchange::steps`, which is not executed. The
//! result is a [`Judgement`] with an [`ExplainVerdict`]; `sentence.rs` puts both into words. Nothing
//! is counted, stored or sent to the origin.

use super::role::Role;
use super::{ExplainRequest, client};
use delivery::lookup::decide_by;
use delivery::site::Site;
use exchange::private::{has_copy, owner};
use exchange::steps::{AskedRequest, EdgeMatches, RequestPlan, RequestStep};
use forward::rewrites::RoutedRequest;
use forward::route_of;
use forward::upgrade;
use history::memory::Entry;
use history::{StoreOutcome, refusals, shown};
use http::{HeaderMap, HeaderName, header};
use http_cache::{ForwardReason, PrivateWord, RequestFacts, Reuse, Verdict};
use miss_control::RequestRate;
use origin::routes::Route;
use page_store::Candidates;
use purge_requests::is_purge_method;
use reasons::Reason;
use request_values::steering_fields::is_from_clients;
use request_values::target::TargetUri;
use serde_json::{Value, json};
use site_rules::{Handling, LimitRule, Plan, key_without_vary};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use stored_pages::page::{SharedPage, StoredPage};
use telemetry::client::{Client, PassedChecks};
use telemetry::request_fields::{AsSent, read_facts};

/// How a request would be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExplainVerdict {
    /// From the cache, fresh.
    Hit,
    /// From the cache, while it is refreshed.
    Stale,
    /// It is fetched from the origin, and the response may be stored.
    Render,
    /// It is forwarded to the origin, and nothing is stored.
    Bypass,
    /// By Pagewell itself: a file, a redirect, an error.
    Answered,
}

impl ExplainVerdict {
    /// The name of the verdict in the control API.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ExplainVerdict::Hit => "hit",
            ExplainVerdict::Stale => "stale",
            ExplainVerdict::Render => "render",
            ExplainVerdict::Bypass => "bypass",
            ExplainVerdict::Answered => "answered",
        }
    }
}

/// The result of judging a request.
pub(super) struct Judgement {
    /// The normalised URL of the page.
    pub(super) target: TargetUri,
    /// The key under which the page is stored.
    pub(super) key: Vec<u8>,
    /// The step that answers the request.
    pub(super) step: RequestStep,
    /// The rules that it has to pass before: its limit, and the number of the rule for its password.
    pub(super) checks: (Option<LimitRule>, Option<usize>),
    /// The number of the rule that limits the renders of the page, and its rate.
    pub(super) renders: Option<(usize, RequestRate)>,
    /// The address to which a rule or a file redirects the request.
    pub(super) location: Option<String>,
    /// The names of the steps up to this one.
    pub(super) steps: Vec<&'static str>,
    /// The rule that applies.
    pub(super) rule: Value,
    pub(super) verdict: ExplainVerdict,
    /// The reason for the verdict.
    pub(super) reason: Option<Reason>,
    /// The names of the cookies that cause the bypass.
    pub(super) cookies: Vec<Box<str>>,
    /// Whether the client may get a private copy instead.
    pub(super) private_copy: PrivateCopy,
    /// The cookies of the last request, if its response was not stored and this request has none of
    /// them. The reason for that response may not hold for this request.
    pub(super) cookies_of_last: Vec<Box<str>>,
    /// The URL as a page that signed-in visitors share (LiteSpeed's ESI).
    pub(super) role: Role,
    /// The stored page for such a request, if there is one.
    pub(super) page: Option<SharedPage>,
    /// The number of variants under the key.
    pub(super) variants: usize,
    /// The request fields by which the variants differ (`Vary`).
    pub(super) varies_by: BTreeSet<String>,
    /// If a render is in progress: how many requests wait for it.
    pub(super) waiting: Option<usize>,
    /// The remembered history of the page.
    pub(super) remembered: Option<Entry>,
    /// The names of the request's fields that are not sent to the origin.
    pub(super) removed: Vec<String>,
    /// The names of the request's custom fields: a render with them is for this client only, unless `Vary` names them.
    pub(super) custom: Vec<String>,
}

/// Whether a request that bypasses the cache may be answered by a private copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrivateCopy {
    /// No: private copies are off, or the request has no owner.
    Never,
    /// Private copies are not configured: a response is stored for its client only if a LiteSpeed plugin
    /// declares it private.
    ByPlugin,
    /// Yes, as configured.
    Configured,
}

impl PrivateCopy {
    fn of(
        site: &Site,
        step: RequestStep,
        plan: &Plan,
        headers: &HeaderMap,
    ) -> Result<PrivateCopy, Reason> {
        let is_private = step == RequestStep::Private;
        let copies = site.config.private.as_ref().filter(|_| is_private);
        let Some(copies) = copies else { return Ok(PrivateCopy::Never) };
        owner(site, copies, plan, None, headers)?;
        Ok(match copies.word {
            PrivateWord::Anybodys => PrivateCopy::Configured,
            PrivateWord::LiteSpeeds => PrivateCopy::ByPlugin,
        })
    }
}

/// A verdict, its reason, and its page.
type VerdictWithPage = (ExplainVerdict, Option<Reason>, Option<SharedPage>);

/// Determines how a request would be answered.
pub(super) fn judge(asked: &ExplainRequest) -> Judgement {
    let ExplainRequest { site, method, headers, target, .. } = asked;
    let (client, matches) = (client(asked), EdgeMatches::default());
    let request = AskedRequest {
        site,
        method,
        headers,
        target: Ok(target),
        client: &client,
        is_purge: is_purge_method(method.as_str()),
        offers_upgrade: upgrade::may_switch(site, method) && offers_upgrade(headers),
        has_content: has_content(headers),
        is_fragment: false,
        matches: &matches,
    };
    let (checks, admitted) = admitted(&request);
    let admitted = AskedRequest { client: &admitted, ..request };
    let ((step, planned), steps) = (admitted.step(), admitted.rows());
    let planned = planned.unwrap_or_else(|| RequestPlan::of(&request, target));
    let RequestPlan { shared, plan, key } = planned;
    let shared = shared.unwrap_or_else(|| target.clone());
    let facts = read_facts(method, headers);
    let peek = |site: &Site, key: &[u8]| site.store.peek(site.store.key(key));
    let (candidates, decided) = decide_by(site, &facts, headers, (&plan, &key), peek);
    let role = Role::of(asked, &shared, (&plan, &key), &facts);
    let key = role.state().map_or(key, |state| state.key.clone());
    let of_key = |key: &[u8]| site.history.of_key(key);
    let remembered = of_key(&key).or_else(|| of_key(&key_without_vary(&key)?));
    let is_refused = needs_cache(&request, step, &plan, &facts);
    let (verdict, reason, page) =
        verdict((step, is_refused), &role, || looked_up(asked, &shared, &candidates, decided));
    let fields = AsSent(headers);
    let cookies = site.config.rules.bypassing_cookies(&plan, &fields);
    let (removed, custom) = (removed(site, &plan, headers), custom(site, &plan, headers));
    let (private_copy, reason) = match PrivateCopy::of(site, step, &plan, headers) {
        Ok(private_copy) => (private_copy, reason),
        Err(because) if verdict == ExplainVerdict::Bypass => (PrivateCopy::Never, Some(because)),
        Err(_) => (PrivateCopy::Never, reason),
    };
    let own = site.config.rules.stranger_cookies(&plan, &fields);
    let last = last_unstored((verdict, reason), page.as_ref(), remembered.as_ref());
    let cookies_of_last = last.map_or(&[][..], |(entry, _)| cookies_of_visitor(entry, &own));
    Judgement {
        location: request.redirect().and_then(|redirect| redirect.location.clone()),
        step,
        checks,
        renders: site.config.rules.renders(&plan),
        steps,
        private_copy,
        cookies_of_last: cookies_of_last.to_vec(),
        rule: caching_rule(site, &plan),
        cookies: cookies.iter().map(|name| shown::cut(name)).collect(),
        variants: candidates.as_slice().len(),
        varies_by: varies_by(&candidates),
        waiting: site.fills.followers(site.store.key(&key)),
        reason: last
            .filter(|_| verdict == ExplainVerdict::Render && cookies_of_last.is_empty())
            .map_or(reason, |(_, not_stored)| Some(not_stored)),
        target: shared,
        key,
        role,
        verdict,
        page,
        remembered,
        removed,
        custom,
    }
}

/// The rule that decides about the caching of a request.
fn caching_rule(site: &Site, plan: &Plan) -> Value {
    let ruling = site.config.rules.ruling_of(plan);
    let rule = ruling.map(|r| json!({ "number": r.number, "name": r.name, "path": r.path }));
    rule.unwrap_or_default()
}

/// The limit and the rule for the password of a request, and its client, if it passes these checks. The request is
/// explained as one that does.
fn admitted(request: &AskedRequest<'_>) -> ((Option<LimitRule>, Option<usize>), Client) {
    let (limit, password) = request.checks();
    let mut rules = request.site.config.rules.auth_rules();
    let auth = password.and_then(|rule| rules.find(|auth| auth.rule == rule));
    let user = auth.filter(|auth| auth.is_forwarded).map(|_| "user".into());
    let mut client = request.client.clone();
    client.extras.checks =
        PassedChecks { is_counted: true, password, user, ..PassedChecks::default() };
    ((limit, password), client)
}

/// Whether a request that bypasses the cache has `only-if-cached`, so that it is not forwarded (RFC 9111 section
/// 5.2.1.7), and no private copy answers it.
fn needs_cache(
    request: &AskedRequest<'_>,
    step: RequestStep,
    plan: &Plan,
    facts: &RequestFacts<'_>,
) -> bool {
    let AskedRequest { site, headers, target, client, .. } = *request;
    let is_bypass = match step {
        RequestStep::Private => {
            !target.is_ok_and(|target| has_copy(site, (target, client), facts, headers, plan))
        }
        RequestStep::Bypass(_) | RequestStep::Leaving(_) | RequestStep::Trial => true,
        _ => false,
    };
    facts.cache_control.only_if_cached && is_bypass
}

/// The verdict about a request of this step and role, which may be refused unless a page is stored; `looked_up` is that
/// of a look-up.
fn verdict(
    (step, is_refused): (RequestStep, bool),
    role: &Role,
    looked_up: impl FnOnce() -> VerdictWithPage,
) -> VerdictWithPage {
    if step.is_answered_here() {
        return (ExplainVerdict::Answered, step.reason(), None);
    }
    let of_role = role.state().map(|state| (state.is_confirmed, &state.page));
    if let (Some((true, Some(page))), RequestStep::Private) = (of_role, step) {
        return (ExplainVerdict::Hit, None, Some(page.clone()));
    }
    if is_refused {
        return (ExplainVerdict::Answered, Some(Reason::OnlyIfCached), None);
    }
    let (verdict, reason, page) = match step {
        RequestStep::Lookup => looked_up(),
        RequestStep::Trial => match looked_up() {
            // A file, or an error of Pagewell, is the same in a trial.
            here @ (ExplainVerdict::Answered, _, _) => here,
            (would_be, _, page) => {
                let page = page.filter(|_| would_be == ExplainVerdict::Hit);
                (ExplainVerdict::Bypass, step.reason(), page)
            }
        },
        step => (ExplainVerdict::Bypass, step.reason(), None),
    };
    (verdict, reason, of_role.map_or(page, |(_, page)| page.clone()))
}

/// Returns the request's fields that are not sent to the origin. For a page that may be shared,
/// these are the fields that no `Vary` names; otherwise only those that clients may not set.
fn removed(site: &Site, plan: &Plan, headers: &HeaderMap) -> Vec<String> {
    let is_shared = plan.handling == Handling::Store;
    let rules = &site.config.rules;
    let is_sent = |name: &str| {
        let is_of_renders = rules.sends_field(name) || rules.is_custom_field(name);
        is_from_clients(name) && (!is_shared || is_of_renders)
    };
    let names = headers.keys().map(HeaderName::as_str);
    names
        .filter(|name| !is_sent(name))
        .take(REMOVED_MAX)
        .map(|name| shown::cut(name).into())
        .collect()
}

/// Returns the custom fields of a request for a page that may be shared.
fn custom(site: &Site, plan: &Plan, headers: &HeaderMap) -> Vec<String> {
    let rules = &site.config.rules;
    let is_custom = |name: &str| {
        plan.handling == Handling::Store
            && is_from_clients(name)
            && rules.is_custom_field(name)
            && rules.may_send_field(plan, name)
    };
    let names = headers.keys().map(HeaderName::as_str).filter(|name| is_custom(name));
    names.take(REMOVED_MAX).map(|name| shown::cut(name).into()).collect()
}

/// The most removed or custom fields that are listed.
const REMOVED_MAX: usize = 32;

/// Returns the request fields in the `Vary` of the stored variants.
fn varies_by(candidates: &Candidates<StoredPage>) -> BTreeSet<String> {
    let names = candidates.iter().flat_map(|page| page.payload().stored.nominated().names());
    names.map(|name| name.as_str().to_owned()).collect()
}

/// The verdict on a request that is looked up.
fn looked_up(
    asked: &ExplainRequest,
    shared: &TargetUri,
    candidates: &Candidates<StoredPage>,
    decided: Verdict,
) -> VerdictWithPage {
    let page = |at: usize| candidates.as_slice().get(at).cloned();
    let (verdict, reason, old) = match decided {
        Verdict::Reuse { candidate, state: Reuse::Fresh, .. } => {
            return (ExplainVerdict::Hit, None, page(candidate));
        }
        Verdict::Reuse { candidate, state: Reuse::Stale(because), .. } => {
            return (ExplainVerdict::Stale, Some(because.into()), page(candidate));
        }
        Verdict::Unsatisfied => {
            return (ExplainVerdict::Answered, Some(Reason::OnlyIfCached), None);
        }
        Verdict::Bypass(because) => (ExplainVerdict::Bypass, because.into(), None),
        Verdict::Forward { why, validate, fallback } => {
            let old = validate.or(fallback).and_then(page);
            let only = || candidates.as_slice().last().cloned();
            let is_there = matches!(why, ForwardReason::Stale | ForwardReason::Request);
            let old = if is_there { old.or_else(only) } else { old };
            (ExplainVerdict::Render, why.into(), old)
        }
    };
    match answered_here(&asked.site, &RoutedRequest::of_page(shared, &asked.method)) {
        Some(reason) => (ExplainVerdict::Answered, Some(reason), None),
        None => (verdict, Some(reason), old),
    }
}

/// Whether a request with these fields offers another protocol (RFC 9110 section 7.8). `h2c` is ignored.
fn offers_upgrade(headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, word: &str| {
        let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    headers.contains_key(header::UPGRADE)
        && has(header::CONNECTION, "upgrade")
        && !has(header::UPGRADE, "h2c")
        && !has_content(headers)
}

/// Whether a request with these fields has content (RFC 9112 section 6.3).
fn has_content(headers: &HeaderMap) -> bool {
    let is_some = headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0");
    is_some || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Returns how a site with files answers by itself, without a request to the origin.
fn answered_here(site: &Arc<Site>, request: &RoutedRequest<'_>) -> Option<Reason> {
    site.files.as_ref()?;
    match route_of(site, request) {
        Route::Script(_) => None,
        Route::Static(path) if File::open(&path).is_err() => Some(Reason::FileFailed),
        Route::Static(_) => Some(Reason::File),
        Route::NotFound => Some(Reason::NotFound),
        Route::Hidden(withheld) => Some(withheld.reason()),
        Route::Malformed => Some(Reason::PathMalformed),
        Route::AddSlash(_) => Some(Reason::AddSlash),
    }
}

/// If nothing is stored because the last response could not be, returns its history and the reason. In a trial, this is
/// the last render of the page for it.
fn last_unstored<'e>(
    (verdict, reason): (ExplainVerdict, Option<Reason>),
    page: Option<&SharedPage>,
    remembered: Option<&'e Entry>,
) -> Option<(&'e Entry, Reason)> {
    let entry = remembered?;
    let is_miss = verdict == ExplainVerdict::Render
        || (verdict == ExplainVerdict::Bypass && reason == Some(Reason::Trial));
    match (page, entry.render.as_ref()?.outcome) {
        (None, StoreOutcome::NotStored(reason)) if is_miss => Some((entry, reason)),
        _ => None,
    }
}

/// The cookies of the last request that may be why its response was not stored, unless the request
/// with the cookies `own` has one of them too.
fn cookies_of_visitor<'e>(entry: &'e Entry, own: &[Box<str>]) -> &'e [Box<str>] {
    let of_last = entry.visitor_cookies();
    let is_for_all = entry.refusal().is_some_and(|code| !refusals::may_be_of_visitor(code));
    if is_for_all || own.iter().any(|name| of_last.contains(name)) { &[] } else { of_last }
}
