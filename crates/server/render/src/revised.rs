//! Applies the site's rules to a response, together with RFC 9111. Fields that a rule ignores do
//! not affect storing, but are still sent to clients. The rule's caching policy is used, and rules
//! may refuse storing.
//!
//! Cookies that a rule ignores are removed from the stored page and from the client's response.

use super::{OriginTimes, Ranges, Render, RenderRequest, fields, is_stream, parts};
use delivery::esi;
use delivery::site::Site;
use forward::sendfile;
use http::{HeaderMap, Method, StatusCode, header};
use http_cache::parts::storable_part;
use http_cache::{
    Forms, LifetimeSource, NotStored, StoredResponse, freshen, refusal_code, storable,
};
use origin::OriginResponse;
use reasons::Reason;
use rule_conditions::RequestView;
use site_rules::{IgnoredFields, Revision, is_marked_as_shared};
use std::borrow::Cow;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::request_fields::view_of;
use telemetry::request_fields::{AsSent, read_facts};

/// The code of the PHP library for a page made from a cache which no statement shows (`php/core/src/Refusal.php`).
const CODE_OF_HIDDEN_READS: &str = "reads-hidden";

/// The lifetime of pages whose path an audit has found to break the promise.
const SHORT_LIFETIME_MS: u64 = 60_000;

/// Why a response is not stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotKept {
    /// The reason to show.
    pub(super) reason: Reason,
    /// Whether only the request's own fields or cookies prevent it: the application marks the page as the same for
    /// everybody, so a render without them can be stored.
    pub(super) is_for_all: bool,
}

impl From<Reason> for NotKept {
    fn from(reason: Reason) -> NotKept {
        NotKept { reason, is_for_all: false }
    }
}

impl Render {
    /// Returns the form in which a response is stored.
    ///
    /// # Errors
    /// The reason to show why it must not be stored.
    pub(super) fn kept(
        &self,
        response: &OriginResponse,
        sent: &OriginTimes,
    ) -> Result<StoredResponse, NotKept> {
        let kept = if is_stream(&response.headers) {
            Err(Reason::Streamed.into())
        } else {
            self.storable(response, sent).and_then(|stored| self.audited(stored))
        };
        kept.map_err(|NotKept { reason, is_for_all }| NotKept {
            reason: unstored_reason(response, reason),
            is_for_all,
        })
    }
}

impl Render {
    /// Applies what an audit has decided about the path: a short lifetime; the page is rendered again for everybody; or
    /// it is not stored.
    fn audited(&self, mut stored: StoredResponse) -> Result<StoredResponse, NotKept> {
        let limit = self.site.audit.limit_of(&self.ask.target, self.site.clock.now().0);
        if self.ask.is_visitors(&self.site) {
            return Err(NotKept { reason: Reason::Audited, is_for_all: true });
        }
        if limit.is_unstored {
            return Err(Reason::Audited.into());
        }
        if limit.is_short && stored.lifetime_ms() > SHORT_LIFETIME_MS {
            stored.set_lifetime_ms(SHORT_LIFETIME_MS);
        }
        Ok(stored)
    }
}

/// Returns the reason to show for a response that is not stored for `reason`. After a fatal error of PHP,
/// everything else may be missing because of it; status and fields were sent before.
fn unstored_reason(response: &OriginResponse, reason: Reason) -> Reason {
    let is_clients = reason == Reason::RequestNoStore;
    if is_clients || response.status.is_server_error() {
        return reason;
    }
    if refusal_code(&response.headers) == Some(CODE_OF_HIDDEN_READS) {
        return Reason::ReadsHidden;
    }
    response.body.end_so_far().against_storing().unwrap_or(reason)
}

/// Returns the form in which a response is stored.
///
/// # Errors
/// The reason why it must not be stored.
pub(super) fn keep(
    site: &Site,
    ask: &RenderRequest,
    response: &OriginResponse,
    sent: &OriginTimes,
) -> Result<StoredResponse, NotKept> {
    if esi::is_part(site, response.status, &response.headers) {
        return Err(Reason::PartialContent.into());
    }
    if sendfile::field_of(&response.headers).is_some() {
        return Err(Reason::Sendfile.into());
    }
    if let Some(fragment) = &ask.client.extras.fragment {
        esi::may_store_fragment(fragment, response.status)?;
    }
    let revision = revise(site, ask, response.status, &response.headers);
    if let Some(refusal) = revision.refusal {
        return Err(Reason::from(refusal).into());
    }
    let counted = counted(revision.ignored, &response.headers);
    let facts = read_facts(&Method::GET, &ask.headers);
    let (asked, came) = (sent.request_time, sent.response_time);
    let (fields, status, policy) = (&sent.headers, response.status, revision.policy);
    let kept = match (ask.ranges, status) {
        (Ranges::Forwarded, StatusCode::PARTIAL_CONTENT) => {
            storable_part(&facts, fields, &counted, asked, came, policy)
                .map(|(stored, part)| parts::while_collected(stored, part))
        }
        // Any other response may depend on the range, as a 416 does.
        (Ranges::Forwarded, status) if status != StatusCode::OK => Err(NotStored::PartialContent),
        _ => storable(&facts, fields, status, &counted, asked, came, policy),
    };
    let mut stored = kept.map_err(Reason::from)?;
    if stored.lifetime_source == LifetimeSource::Reads && site.config.rules.fixes_device(&ask.plan)
    {
        let nominated = stored.nominated().with(header::USER_AGENT, &sent.headers);
        stored.set_nominated(nominated);
    }
    ask.with_language(&mut stored, sent);
    let is_for_all = is_marked_as_shared(&stored);
    let of_visitor = |reason| NotKept { reason, is_for_all };
    fields::may_store(site, ask, &stored, sent).map_err(of_visitor)?;
    let keeps = site.config.rules.keeps(&ask.plan, &AsSent(&*ask.headers), &stored);
    keeps.map_err(|refusal| of_visitor(refusal.into()))?;
    if !revision.ignored.is_empty() {
        revision.ignored.restore(&response.headers, &mut stored.headers);
    }
    esi::note(site, &response.headers, &mut stored);
    change_fields(site, ask, &mut stored);
    Ok(stored)
}

/// Changes the fields of a response that is stored, as rules say. The decision about storing does not see this.
fn change_fields(site: &Site, ask: &RenderRequest, stored: &mut StoredResponse) {
    let rules = &site.config.rules;
    if rules.has_response_fields() {
        let (target, status) = (&ask.target, stored.status);
        let view = RequestView::of_url(&ask.method, target.scheme, &target.host, target.page());
        rules.change_fields(&view, status, &mut stored.headers);
    }
}

/// Returns the stored response refreshed by a 304 (RFC 9111 section 4.3.4).
///
/// # Errors
/// The reason why the 304 cannot be used.
pub(super) fn freshened(
    site: &Site,
    ask: &RenderRequest,
    page: &SharedPage,
    response: &OriginResponse,
    sent: &OriginTimes,
) -> Result<StoredResponse, Reason> {
    let known = &page.response();
    let revision = revise(site, ask, known.status, &response.headers);
    let changed = |mut stored: StoredResponse| {
        change_fields(site, ask, &mut stored);
        stored
    };
    let refresh = |known: &StoredResponse, headers: &HeaderMap| {
        let facts = read_facts(&Method::GET, &ask.headers);
        let (asked, came) = (sent.request_time, sent.response_time);
        let stored = freshen(known, &facts, &sent.headers, headers, asked, came, revision.policy)
            .map_err(Reason::from)?;
        fields::may_store(site, ask, &stored, sent).map(|()| stored)
    };
    if revision.ignored.is_empty() {
        return Ok(changed(of_form(known, refresh(known, &response.headers)?)));
    }
    let mut plain = known.clone();
    revision.ignored.strip(&mut plain.headers);
    let stored = refresh(&plain, &counted(revision.ignored, &response.headers))?;
    let mut stored = of_form(known, stored);
    // The fields of the 304 have precedence over the stored ones.
    revision.ignored.restore(&known.headers, &mut stored.headers);
    if response.headers.contains_key(header::CACHE_CONTROL)
        || response.headers.contains_key(header::EXPIRES)
    {
        revision.ignored.restore(&response.headers, &mut stored.headers);
    }
    Ok(changed(stored))
}

/// Keeps the stored response's ESI form, whatever the 304 contains, because its content is
/// unchanged.
fn of_form(known: &StoredResponse, mut stored: StoredResponse) -> StoredResponse {
    if known.forms == Forms::Assembled {
        stored.forms = Forms::Assembled;
    }
    stored
}

fn revise<'s>(
    site: &'s Site,
    ask: &RenderRequest,
    status: http::StatusCode,
    headers: &HeaderMap,
) -> Revision<'s> {
    let fields = AsSent(&*ask.headers);
    let view = view_of(&ask.target, &ask.method, &fields, &ask.client);
    site.config.rules.revise(&ask.plan, &view, status, headers, site.load())
}

/// Returns the fields without those that a rule ignores.
fn counted(ignored: IgnoredFields, headers: &HeaderMap) -> Cow<'_, HeaderMap> {
    if ignored.is_empty() {
        return Cow::Borrowed(headers);
    }
    let mut counted = headers.clone();
    ignored.strip(&mut counted);
    Cow::Owned(counted)
}
