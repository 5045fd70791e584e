//! Renders for a trial: the page that would have been stored for its first visitor, and the answer of a visitor in the
//! form in which it would have been stored.
//!
//! Such a render is a reference render in all but one: it is stored. So it takes a place only while two are free,
//! and plugins do not count it. It has the fields of the visitor that a render would send; without them if they may be
//! credentials, or if the page would be rendered for everybody.

use super::reference::{NoReference, is_of_common_browser, neutral};
use super::{OriginTimes, Render, RenderPermit, RenderRequest, admission};
use delivery::lookup::decide_on;
use delivery::site::Site;
use forward::{Answerer, answerer};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, COOKIE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_cache::codings::CODED_FIELDS;
use http_cache::variants::NominatedFields;
use http_cache::{Reuse, Verdict};
use origin::{OriginBody, OriginResponse};
use site_state::propagation::Propagation;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use telemetry::client::RequestPurpose;

/// Renders the page of a request and stores it, as if the request had missed. `is_replayable`: a second request may
/// send the visitor's own fields. The page may not be stored although nothing failed; the history of its key has the
/// reason.
///
/// # Errors
/// The reason why no request was sent to the origin.
pub async fn store_for_trial(
    site: &Arc<Site>,
    ask: RenderRequest,
    is_replayable: bool,
) -> Result<(), NoReference> {
    let mut ask = of_trial(site, ask, is_replayable).ok_or(NoReference::OnlyForVisitor)?;
    let Some(right) = admission::to_refresh(site, &ask) else { return Err(NoReference::NotNeeded) };
    let answerer = answerer(site, ask.routed(), &ask.facts()).await;
    let Answerer::Origin(script) = answerer else { return Err(NoReference::NotOfOrigin) };
    let (candidates, verdict) = decide_on(site, &ask.facts(), &ask.headers, &ask.plan, &ask.key);
    if matches!(verdict, Verdict::Reuse { state: Reuse::Fresh, .. }) {
        return Err(NoReference::NotNeeded);
    }
    ask.look_again(&candidates, verdict);
    let (mut render, outcome) = Render::for_nobody(site, ask, right);
    render.ask.client.extras.purpose = RequestPurpose::Reference;
    render.run(script).await;
    if outcome.is_deferred.load(Relaxed) { Err(NoReference::NoPlace) } else { Ok(()) }
}

/// The request by which the page of a visitor's request is rendered; none if that would be another page.
fn of_trial(site: &Arc<Site>, ask: RenderRequest, is_replayable: bool) -> Option<RenderRequest> {
    let is_own = ask.headers.contains_key(AUTHORIZATION)
        || ask.is_own_beside(site, &NominatedFields::default());
    if !is_own && is_replayable {
        return Some(ask);
    }
    let mut all = neutral(site, &ask)?;
    // The caller measures the time of the origin, whatever is sent.
    all.client.extras.spent = ask.client.extras.spent;
    Some(all)
}

/// The header lines with which [`store_for_trial`] renders the page of this request.
pub fn sent_for_trial(
    site: &Arc<Site>,
    ask: RenderRequest,
    is_replayable: bool,
) -> Option<HeaderMap> {
    Some(sent_by_render(site, &of_trial(site, ask, is_replayable)?))
}

/// The header lines that a render for this request sends to the origin.
pub fn sent_by_render(site: &Arc<Site>, ask: &RenderRequest) -> HeaderMap {
    probe(site, ask).page_headers()
}

/// Whether a reference render of this request sends no cookie, and no line that the visitor has sent. Then its response has
/// nothing of the visitor but what the URL says.
pub fn is_of_nobody(site: &Arc<Site>, ask: &RenderRequest) -> bool {
    let Some(neutral) = neutral(site, ask) else { return false };
    let sent = sent_by_render(site, &neutral);
    let is_visitors = |(name, value): (&HeaderName, &HeaderValue)| {
        let is_fixed = [HOST, ACCEPT_ENCODING].contains(name) || is_of_common_browser(value);
        !is_fixed && ask.headers.get_all(name).iter().any(|own| own == value)
    };
    !sent.contains_key(COOKIE) && !sent.iter().any(is_visitors)
}

/// The header lines of a visitor's answer as they would be stored; as they were sent if it would not be.
pub fn visitors_form(
    site: &Arc<Site>,
    ask: &RenderRequest,
    answer: (StatusCode, &HeaderMap),
) -> HeaderMap {
    let (mut headers, _) = stored_form(site, ask, answer);
    if site.config.codings.are_made() {
        CODED_FIELDS.iter().for_each(|name| drop(headers.remove(name)));
    }
    headers
}

/// Whether a visitor's answer would be stored, and sent to others, if nothing in the visitor's own request forbids it.
pub fn may_be_stored(
    site: &Arc<Site>,
    ask: &RenderRequest,
    answer: (StatusCode, &HeaderMap),
) -> bool {
    stored_form(site, ask, answer).1
}

/// The header lines of a visitor's answer as they would be stored, or as they were sent; and whether it would be.
fn stored_form(
    site: &Arc<Site>,
    ask: &RenderRequest,
    (status, headers): (StatusCode, &HeaderMap),
) -> (HeaderMap, bool) {
    // The visitor's own cookies and fields may be why it would not be stored; they do not change its form.
    let all = neutral(site, ask);
    let probe = probe(site, all.as_ref().unwrap_or(ask));
    let now = site.clock.now();
    let sent = OriginTimes {
        headers: probe.page_headers(),
        request_time: now,
        response_time: now,
        is_fixed: probe.is_fixed,
    };
    let (body, waited) = (OriginBody::Nothing, Propagation::NotNeeded);
    let response = OriginResponse { status, headers: headers.clone(), body, waited };
    match probe.kept(&response, &sent) {
        Ok(stored) => (stored.headers, true),
        Err(_) => (response.headers, false),
    }
}

/// A render of this request that is not sent.
fn probe(site: &Arc<Site>, ask: &RenderRequest) -> Box<Render> {
    let right = RenderPermit::Solo(site.store.lease());
    let (mut probe, _) = Render::for_nobody(site, ask.clone(), right);
    probe.fix(None);
    probe
}
