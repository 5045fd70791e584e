//! The part of a visitor's request that makes a difference: renders with some of its parts, which `CauseSearch` chooses.
//!
//! The values are in memory while the search lasts, and are sent to the origin only. Never sent again: cookies of a
//! session, and any cookie, field or parameter that looks like a credential by its name or its value; cookies that the
//! answer sets; `Authorization`. Nor is a field by which an application takes a GET for another method. The result has
//! names only.

use crate::AuditState;
use crate::judged_page::render_tokens;
use crate::samples::{compute, render_with, request_of};
use delivery::site::Site;
use delivery::trial::TrialRequest;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_cache::fields::OneHop;
use page_comparison::{
    CauseSearch, DifferenceCause, DifferenceClass, PageTokens, RequestPart, UnjudgedReason,
    is_replayable_url,
};
use render::{ReferenceRender, RenderRequest, SentParts, sent_by_render, sent_for_trial};
use request_values::steering_fields::is_from_clients;
use site_rules::BypassBecause;
use std::net::SocketAddr;
use std::sync::Arc;
use telemetry::request_fields::{AsSent, METHOD_OVERRIDES};

/// Cookies and fields that are looked at.
const PARTS_MAX: usize = 64;

/// After a longer search its result is not confirmed: there are at most twelve renders, and one more for the class of a
/// combination.
const SEARCHED_MAX: u32 = 10;

/// Fields of the connection, and those that Pagewell writes itself.
const NOT_SEARCHED: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "pagewell-reference",
    "te",
    "traceparent",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// A part of a request with its value.
enum PartValue {
    Cookie(String),
    Field(HeaderName, Vec<HeaderValue>),
    Parameter(String),
    Address(SocketAddr),
}

/// The parts of a request that may be sent again.
fn parts(site: &Site, request: &TrialRequest, answer: &HeaderMap) -> Vec<(RequestPart, PartValue)> {
    let mut parts = Vec::new();
    let fields = AsSent(&*request.headers);
    let as_session = request.plan.bypassing(BypassBecause::SessionCookie);
    let sessions = site.config.rules.bypassing_cookies(&as_session, &fields);
    let set_again = set_cookies(answer);
    for pair in cookie_pairs(&request.headers) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_session = sessions.iter().any(|session| **session == *name);
        let is_set_again = set_again.contains(&name);
        if let Some(part) = RequestPart::cookie(name, value, is_session, is_set_again) {
            parts.push((part, PartValue::Cookie(pair.to_owned())));
        }
    }
    for name in searched_fields(&request.headers) {
        if METHOD_OVERRIDES.contains(&name.as_str()) {
            continue;
        }
        let values: Vec<HeaderValue> = request.headers.get_all(name).iter().cloned().collect();
        let part = |value: &HeaderValue| RequestPart::field(name.as_str(), value.to_str().ok()?);
        let all: Option<Vec<RequestPart>> = values.iter().map(part).collect();
        if let Some(part) = all.and_then(|mut all| all.pop()) {
            parts.push((part, PartValue::Field(name.clone(), values)));
        }
    }
    // A visit that is an action, or has a secret in its URL, is never sent again as a whole.
    let has_parameters = is_replayable_url(&request.written.path_and_query);
    for pair in removed_parameters(request).filter(|_| has_parameters) {
        if let Some(part) = RequestPart::parameter(pair) {
            parts.push((part, PartValue::Parameter(pair.to_owned())));
        }
    }
    parts.truncate(PARTS_MAX - 1);
    parts.extend(request.client.peer.map(|peer| (RequestPart::Address, PartValue::Address(peer))));
    parts
}

/// The fields of a visitor's request that have reached the origin and may make a difference.
fn searched_fields(headers: &HeaderMap) -> impl Iterator<Item = &HeaderName> {
    let hop = OneHop::of(headers);
    headers.keys().filter(move |name| {
        !NOT_SEARCHED.contains(&name.as_str()) && is_from_clients(name.as_str()) && !hop.has(name)
    })
}

/// The cookies of a request as sent: name, equals sign and value.
fn cookie_pairs(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).map(str::trim).filter(|pair| !pair.is_empty())
}

/// The names of the cookies that an answer sets.
fn set_cookies(answer: &HeaderMap) -> Vec<&str> {
    let lines = answer.get_all(header::SET_COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.filter_map(|line| Some(line.split('=').next()?.trim())).collect()
}

/// The parameters of the query that the page does not have.
fn removed_parameters(request: &TrialRequest) -> impl Iterator<Item = &str> {
    let pairs = |text: &str| text.split_once('?').map_or("", |(_, query)| query).to_owned();
    let kept = pairs(&request.target.path_and_query);
    let written = request.written.path_and_query.split_once('?').map_or("", |(_, query)| query);
    let is_kept = move |pair: &&str| kept.split('&').any(|other| other == *pair);
    written.split('&').filter(|pair| !pair.is_empty()).filter(move |pair| !is_kept(pair))
}

/// Whether a second request may have all that a render of this one sends.
pub(crate) fn is_replayable(site: &Arc<Site>, ask: &RenderRequest) -> bool {
    let sent = sent_by_render(site, ask);
    let as_session = ask.plan.bypassing(BypassBecause::SessionCookie);
    let sessions = site.config.rules.bypassing_cookies(&as_session, &AsSent(&sent));
    let is_cookie = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        RequestPart::cookie(name, value, false, false).is_some()
    };
    let is_field = |(name, value): (&HeaderName, &HeaderValue)| {
        NOT_SEARCHED.contains(&name.as_str())
            || value.to_str().is_ok_and(|value| RequestPart::field(name.as_str(), value).is_some())
    };
    sessions.is_empty() && cookie_pairs(&sent).all(is_cookie) && sent.iter().all(is_field)
}

/// Searches for the part of the request that makes a render `show` the difference. `answer` has the header lines that
/// the visitor got; `refusal` is its status, if the origin has refused the visitor.
pub(crate) async fn cause(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    (request, answer, refusal): (&TrialRequest, &HeaderMap, Option<StatusCode>),
    shows: impl Fn(&ReferenceRender) -> bool,
) -> Result<DifferenceCause, UnjudgedReason> {
    let (names, values): (Vec<_>, Vec<_>) = parts(site, request, answer).into_iter().unzip();
    let chosen = |at: &[usize]| SentParts { refusal, ..chosen_parts(&values, at) };
    let mut search = CauseSearch::new(names);
    let mut last = Vec::new();
    while let Some(next) = search.next_render() {
        let is_shown = shown(site, ask, state, &chosen(&next.parts), &shows).await?;
        search.answer(is_shown);
        if is_shown {
            last = next.parts;
        }
    }
    let found = search.cause().cloned().unwrap_or(DifferenceCause::Unknown);
    if found == DifferenceCause::Unknown || search.renders() > SEARCHED_MAX {
        return Ok(found);
    }
    // A page that is drawn at each render may have shown the difference by chance.
    let is_by_chance = shown(site, ask, state, &SentParts::default(), &shows).await?
        || !shown(site, ask, state, &chosen(&last), &shows).await?;
    Ok(if is_by_chance { DifferenceCause::Unknown } else { found })
}

/// Whether the request by which a page was made for its first visitor shows it again, and a neutral one does not. Without
/// this, nothing says that the page has anything of that visitor.
pub(crate) async fn is_made_again(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    request: &TrialRequest,
    shows: impl Fn(&ReferenceRender) -> bool,
) -> Result<bool, UnjudgedReason> {
    let made = request_of(request, None);
    let may_have_fields = is_replayable(site, &made);
    let Some(headers) = sent_for_trial(site, made, may_have_fields) else { return Ok(false) };
    // The origin got the visitor's address, or the fixed one of a neutral render.
    for address in [request.client.peer, None] {
        let sent = SentParts { address, replaced: Some(headers.clone()), ..SentParts::default() };
        let again = render_with(site, ask, state, &sent).await?;
        if compute(site, state, || shows(&again)) {
            return Ok(!shown(site, ask, state, &SentParts::default(), &shows).await?);
        }
    }
    Ok(false)
}

/// Whether the request by which a page was made for its first visitor shows now what a neutral one shows neither before
/// nor afterwards: something of that visitor, which each of its requests may change.
pub(crate) async fn is_made_otherwise(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    request: &TrialRequest,
    is_like: impl Fn(&PageTokens, &PageTokens) -> bool,
) -> Result<bool, UnjudgedReason> {
    let made = request_of(request, None);
    let may_have_fields = is_replayable(site, &made);
    let Some(headers) = sent_for_trial(site, made, may_have_fields) else { return Ok(false) };
    let are_alike =
        |one: &PageTokens, other: &PageTokens| compute(site, state, || is_like(one, other));
    let before = rendered(site, ask, state, &SentParts::default()).await?;
    // As the page was made: with the other address, the address may be the only difference.
    let address = request.client.peer.filter(|_| site.config.automatic.is_none());
    let sent = SentParts { address, replaced: Some(headers), ..SentParts::default() };
    let again = rendered(site, ask, state, &sent).await?;
    if are_alike(&before, &again) {
        return Ok(false);
    }
    let after = rendered(site, ask, state, &SentParts::default()).await?;
    match (are_alike(&after, &again), are_alike(&before, &after)) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => Err(UnjudgedReason::ChangedMeanwhile),
    }
}

/// Whether a search can send all that the visitor has sent. Then a difference that it does not show is not the visitor's.
pub(crate) fn is_sent_whole(site: &Site, request: &TrialRequest, answer: &HeaderMap) -> bool {
    let fields = searched_fields(&request.headers).count();
    let cookies = cookie_pairs(&request.headers).count();
    let all = fields + cookies + removed_parameters(request).count();
    let parts = parts(site, request, answer);
    parts.iter().filter(|(part, _)| *part != RequestPart::Address).count() == all
}

/// Whether a render with these parts of a request shows the difference.
async fn shown(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    sent: &SentParts,
    shows: &impl Fn(&ReferenceRender) -> bool,
) -> Result<bool, UnjudgedReason> {
    let render = render_with(site, ask, state, sent).await?;
    Ok(compute(site, state, || shows(&render)))
}

/// A render with these parts of a request, as tokens.
async fn rendered(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    sent: &SentParts,
) -> Result<PageTokens, UnjudgedReason> {
    let render = render_with(site, ask, state, sent).await?;
    Ok(compute(site, state, || render_tokens(state, &render)))
}

fn chosen_parts(values: &[PartValue], chosen: &[usize]) -> SentParts {
    let mut sent = SentParts::default();
    for value in chosen.iter().filter_map(|at| values.get(*at)) {
        match value {
            PartValue::Cookie(pair) => sent.cookies.push(pair.clone()),
            PartValue::Field(name, values) => {
                sent.fields.extend(values.iter().map(|value| (name.clone(), value.clone())));
            }
            PartValue::Parameter(pair) => sent.parameters.push(pair.clone()),
            PartValue::Address(peer) => sent.address = Some(*peer),
        }
    }
    sent
}

/// The class of a difference with this cause that a visitor sees, while the page is right for a visitor of whom nothing
/// is known: the visitor loses what Pagewell removes by design; all else would be another visitor's. A page has the part
/// of a combination that a render for it sends: with nothing else, it `is_page` if this part alone makes no difference.
pub(crate) async fn class_of(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    (request, answer, refusal): (&TrialRequest, &HeaderMap, Option<StatusCode>),
    cause: &DifferenceCause,
    is_page: impl Fn(&ReferenceRender) -> bool,
) -> Result<DifferenceClass, UnjudgedReason> {
    let named: &[RequestPart] = match cause {
        DifferenceCause::One(part) => std::slice::from_ref(part),
        DifferenceCause::OneOf(parts) | DifferenceCause::Together(parts) => parts,
        _ => &[],
    };
    let sent = sent_by_render(site, &request_of(request, None));
    // Names as they are shown are not those that are sent.
    let parts = parts(site, request, answer).into_iter();
    let values = parts.filter(|(part, _)| named.contains(part)).map(|(_, value)| value);
    let (of_page, removed): (Vec<PartValue>, Vec<PartValue>) =
        values.partition(|value| is_sent(site, &sent, value));
    if of_page.is_empty() {
        return Ok(DifferenceClass::Loses);
    }
    if removed.is_empty() || !matches!(cause, DifferenceCause::Together(_)) {
        return Ok(DifferenceClass::Leak);
    }
    let all: Vec<usize> = (0..of_page.len()).collect();
    let chosen = SentParts { refusal, ..chosen_parts(&of_page, &all) };
    let is_page_still = shown(site, ask, state, &chosen, &is_page).await?;
    Ok(if is_page_still { DifferenceClass::Loses } else { DifferenceClass::Leak })
}

/// Whether a render that has these lines sends this part of its visitor's request.
fn is_sent(site: &Site, sent: &HeaderMap, value: &PartValue) -> bool {
    match value {
        PartValue::Cookie(pair) => {
            let name = pair.split('=').next();
            cookie_pairs(sent).any(|other| other.split('=').next() == name)
        }
        PartValue::Field(field, _) => sent.contains_key(field),
        PartValue::Parameter(_) => false,
        // The origin gets a fixed address in renders of pages that declare nothing.
        PartValue::Address(_) => site.config.automatic.is_none(),
    }
}
