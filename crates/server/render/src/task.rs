//! Starts renders, and records their results for explanations (`why`): the outcome, the duration,
//! the application's own reason, and the cookies of response and request that may have prevented storing.
//! Recording happens afterwards and affects nothing else. Private copies are not recorded.

use super::{ForNobody, Render, RenderPermit, RenderRequest};
use delivery::body::ResponseBody;
use delivery::serve;
use delivery::site::Site;
use delivery::visitors;
use history::shown::cut;
use history::{Content, RenderRecord, StoreOutcome, UnstoredRecord};
use http::{HeaderMap, Response, StatusCode, header};
use http_cache::status::CacheStatus;
use http_cache::{ForwardReason, StoredFacts, StoredResponse, refusal_code};
use origin::routes::Script;
use origin::{OriginClass, OriginRequest, OriginResponse};
use page_store::Lease;
use reasons::Reason;
use std::pin::Pin;
use std::sync::Arc;
use telemetry::client::RequestPurpose;
use telemetry::request_fields::AsSent;
use tokio::sync::oneshot;

/// Stores a private copy for its owner, and returns the response to the owner's request.
pub async fn store_for_owner(
    site: &Arc<Site>,
    ask: RenderRequest,
    lease: Lease,
    stored: StoredResponse,
    response: OriginResponse,
    status: CacheStatus<'static>,
) -> Response<ResponseBody> {
    let (answer, answered) = oneshot::channel();
    let render = Render::new(site, ask, RenderPermit::Solo(lease), answer);
    apart(Box::pin(render.collect(stored, response, status)), answered).await
}

/// Runs a render as a separate task, and waits for its answer. The future is boxed, because the
/// runtime would otherwise copy it a dozen times.
pub(super) async fn apart(
    render: Pin<Box<impl Future<Output = ()> + Send + 'static>>,
    answered: oneshot::Receiver<Response<ResponseBody>>,
) -> Response<ResponseBody> {
    tokio::spawn(render);
    match answered.await {
        Ok(response) => response,
        // The panic of the task has been logged.
        Err(_) => serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None),
    }
}

/// The channel to the client of a render.
type Answer = oneshot::Sender<Response<ResponseBody>>;

/// Maximum number of a response's cookies that are recorded.
const COOKIES_MAX: usize = history::memory::COOKIES_MAX;

impl Render {
    /// Creates a render whose answer is sent through the channel.
    pub(super) fn new(
        site: &Arc<Site>,
        ask: RenderRequest,
        right: RenderPermit,
        answer: Answer,
    ) -> Box<Render> {
        Render::with(site, ask, right, (Some(answer), None))
    }

    /// Creates a render for which no client waits. Returns it together with its result.
    pub(super) fn for_nobody(
        site: &Arc<Site>,
        mut ask: RenderRequest,
        right: RenderPermit,
    ) -> (Box<Render>, Arc<ForNobody>) {
        ask.client.extras.purpose = RequestPurpose::Background;
        let outcome = Arc::new(ForNobody::default());
        (Render::with(site, ask, right, (None, Some(outcome.clone()))), outcome)
    }

    fn with(
        site: &Arc<Site>,
        ask: RenderRequest,
        right: RenderPermit,
        (answer, for_nobody): (Option<Answer>, Option<Arc<ForNobody>>),
    ) -> Box<Render> {
        Box::new(Render {
            site: site.clone(),
            ask,
            right,
            answer,
            for_nobody,
            began_ms: None,
            asked: site.clock.now(),
            answered: None,
            capture: None,
            reads: None,
            untracked: None,
            is_fixed: false,
            names: None,
        })
    }

    /// The request that is sent to the origin, with these header lines.
    pub(super) fn request(&mut self, headers: HeaderMap, script: Option<Script>) -> OriginRequest {
        let (capture, peer) = (self.begin_capture(script.as_ref()), self.peer());
        let RenderRequest { target, client, version, headers: asked, .. } = &self.ask;
        let admission = visitors::admission(&self.site, client, OriginClass::Page, (target, asked));
        let mut request = OriginRequest {
            headers,
            peer,
            script,
            version: *version,
            capture,
            counter: Some(|counters| counters.renders.add()),
            ..OriginRequest::of(target, client, admission)
        };
        if let RenderPermit::Leader(leader) = &self.right {
            request.admission.share(&leader.waiter().level);
        }
        request
    }

    /// Marks the page as hit-for-miss for `limits.hit_for_miss`, so that its requests do not wait for each
    /// other.
    pub(super) fn not_shareable(&self) {
        self.site.counters.not_stored.add();
        if let RenderPermit::Leader(leader) = &self.right {
            let until_ms =
                self.site.clock.now().0 + self.site.limits.hit_for_miss.as_millis() as u64;
            leader.not_shareable(until_ms);
        }
    }

    /// Records that the response was not stored. Returns when it was recorded.
    pub(super) fn tell_not_stored(
        &self,
        reason: Reason,
        status: Option<http::StatusCode>,
        headers: &HeaderMap,
    ) -> u64 {
        self.tell(&self.ask.key, StoreOutcome::NotStored(reason), status, headers)
    }

    /// Records that the response was not stored, before its content is sent. Returns the record, to be
    /// corrected if the content ends with a fatal error.
    pub(super) fn unstored_record(
        &self,
        reason: Reason,
        response: &OriginResponse,
    ) -> Option<UnstoredRecord> {
        let at_ms = self.tell_not_stored(reason, Some(response.status), &response.headers);
        let is_recorded = self.ask.owner.is_none() && !response.status.is_server_error();
        let (site, key) = (self.site.state(), &self.ask.key);
        is_recorded.then(|| UnstoredRecord::new(site.history.clone(), key.clone(), at_ms))
    }

    /// Records that the response is complete, and was stored under `key` or refused for a reason.
    pub(super) fn tell_complete(
        &self,
        key: &[u8],
        stored: &StoredFacts,
        content: Result<Content, Reason>,
    ) {
        let outcome = content.map_or_else(StoreOutcome::NotStored, StoreOutcome::Stored);
        // A response that sets a cookie, or that the application refuses, does not get here.
        self.tell(key, outcome, Some(stored.status), &HeaderMap::new());
    }

    /// Records the outcome. `headers` are the response's. Returns the time of the record.
    fn tell(
        &self,
        key: &[u8],
        outcome: StoreOutcome,
        status: Option<http::StatusCode>,
        headers: &HeaderMap,
    ) -> u64 {
        let now_ms = self.site.clock.now().0;
        if self.ask.owner.is_some() {
            return now_ms;
        }
        let visitor_cookies = match outcome {
            StoreOutcome::Stored(_) => Vec::new(),
            StoreOutcome::NotStored(_) => self.visitor_cookies(),
        };
        let began_ms = self.began_ms.unwrap_or(now_ms);
        let is_new = matches!(self.ask.why, ForwardReason::UriMiss | ForwardReason::Miss);
        self.site.history.rendered(RenderRecord {
            key,
            target: &self.ask.target,
            times: (began_ms, now_ms),
            status: status.map(|status| status.as_u16()),
            cookies: cookies_set(headers),
            outcome,
            refusal: refusal_code(headers).map(Box::from),
            visitor_cookies,
            is_new,
        });
        now_ms
    }

    /// The names of the request's cookies on which the response may depend.
    fn visitor_cookies(&self) -> Vec<Box<str>> {
        let fields = AsSent(&*self.ask.headers);
        self.site.config.rules.stranger_cookies(&self.ask.plan, &fields)
    }
}

/// The names of the cookies that a response sets.
fn cookies_set(headers: &HeaderMap) -> Vec<Box<str>> {
    let name = |value: &http::HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes());
        // A cookie without `=` is skipped: it has only a value.
        text.split(';').next()?.split_once('=').map(|(name, _)| cut(name.trim()))
    };
    let mut names = Vec::new();
    for name in headers.get_all(header::SET_COOKIE).iter().filter_map(name) {
        if names.len() < COOKIES_MAX && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
