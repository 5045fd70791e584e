//! Renders a page that the store could not answer: once, for all requests that arrive while it is
//! in progress.
//!
//! | turn | what happens |
//! |---|---|
//! | lead | a separate task sends the origin request, notifies the followers, stores the page |
//! | follow | waits; shares the page if rule 2 allows it, else takes another turn |
//! | alone | sends its own origin request; the page may still be stored |
//!
//! The task continues after its client has disconnected, as long as it has followers or the page is
//! about to be stored. Otherwise the origin request is cancelled as soon as `client_gone` allows it. The
//! lease is taken before the request is sent, and held until the followers have decided. The page
//! is stored before its last byte is sent.

mod admission;
mod collect;
mod decoded;
mod fields;
mod inlines;
mod parts;
mod permit;
mod reads;
mod reference;
mod refresh;
mod request;
mod revised;
pub mod rewarm;
mod stale;
mod superseded;
mod task;
mod trial;
mod undeclared;

use admission::Admission;
pub use decoded::{is_stream, understand};
pub use fields::ExtraFields;
pub use inlines::{IncludeTags, InlineStore};
pub use parts::Ranges;
use permit::RenderPermit;
use reasons::Reason;
pub use reference::{
    NoReference, ReferenceRender, SentParts, is_of_mobile, neutral, other_device, reference,
};
pub use refresh::{RefreshOutcome, refresh};
pub use request::RenderRequest;
use revised::NotKept;
use stale::{on_failure, over_renders, stale_on};
pub use superseded::end_private_copies;
use task::apart;
pub use task::store_for_owner;
pub use trial::{
    is_of_nobody, may_be_stored, sent_by_render, sent_for_trial, store_for_trial, visitors_form,
};

use capture::Capture;
use delivery::body::ResponseBody;
use delivery::esi;
use delivery::lookup::decide_on;
use delivery::serve;
use delivery::site::Site;
use delivery::waiter::RenderOutcome;
use forward::client_gone::{OnClientGone, must_await_response, unless_left};
use forward::{Answerer, answerer};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_cache::{
    Failure, ForwardReason, LifetimeSource, Reuse, StoredResponse, Timestamp, Verdict,
    make_conditional,
};
use origin::routes::Script;
use origin::{OriginRequest, OriginResponse, Unsent};
use page_store::Number;
use statements::footprints::{PageNames, PageReads, ScriptHash};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::client::RequestPurpose;
use telemetry::limit_hits::Limit;
use telemetry::panics::{self, Place};
use tokio::sync::oneshot;

/// Maximum number of origin requests per render. They are conditional, unconditional, for a range
/// of a page that is not stored, and with dropped fields that `Vary` names.
const ATTEMPTS_MAX: usize = 4;

/// Answers a request by a render: its own, or that of another request.
pub async fn get(site: &Arc<Site>, mut ask: RenderRequest) -> Response<ResponseBody> {
    let arrival = site.store.number();
    let script = match answerer(site, ask.routed(), &ask.facts()).await {
        Answerer::Here(response) => {
            if response.status().is_success() {
                ask.client.note_hit();
            }
            return response;
        }
        Answerer::Origin(script) => script,
    };
    if ask.why == ForwardReason::Bypass {
        if let Some(refused) = over_renders(site, &ask) {
            return refused;
        }
        return rendered(site, ask, script, RenderPermit::Solo(site.store.lease())).await;
    }
    if let Some(response) = parts::from_store(site, &mut ask) {
        return response;
    }
    match admission::taken(site, &ask, arrival).await {
        Admission::Answer(response) => response,
        Admission::Right(right, ranges) => {
            // The response to an own request is not stored, so that no range can be cut from it.
            let ranges = if ask.is_own(site) { ask.for_range() } else { ranges };
            leased(site, RenderRequest { ranges, ..ask }, script, right).await
        }
    }
}

/// Renders, unless the page was stored between the look-up and the turn. The pages to validate and
/// to fall back on are looked up again, now that the lease is taken. A page that was invalidated
/// since the look-up must not be revalidated, because an origin's validators may not distinguish
/// two changes within one second.
async fn leased(
    site: &Arc<Site>,
    mut ask: RenderRequest,
    script: Option<Script>,
    right: RenderPermit,
) -> Response<ResponseBody> {
    let (candidates, verdict) = decide_on(site, &ask.facts(), &ask.headers, &ask.plan, &ask.key);
    if let Verdict::Reuse { candidate, state: Reuse::Fresh, answer } = verdict {
        drop(right);
        let page = &candidates.as_slice()[candidate];
        return delivery::stored_answer::hit(site, &ask.facts(), page, answer);
    }
    ask.look_again(&candidates, verdict);
    if let Some(refused) = over_renders(site, &ask) {
        // Its followers take another turn, each with its own level.
        drop(right);
        return refused;
    }
    rendered(site, ask, script, right).await
}

/// Renders the page in a separate task, and waits for the answer.
async fn rendered(
    site: &Arc<Site>,
    ask: RenderRequest,
    script: Option<Script>,
    right: RenderPermit,
) -> Response<ResponseBody> {
    let (answer, answered) = oneshot::channel();
    apart(Box::pin(Render::new(site, ask, right, answer).run(script)), answered).await
}

/// One render, from the request to the origin to the stored page.
struct Render {
    site: Arc<Site>,
    ask: RenderRequest,
    right: RenderPermit,
    /// The channel to the client; `None` if no client waits.
    answer: Option<oneshot::Sender<Response<ResponseBody>>>,
    /// The result of a background refresh, for which no client waits from the beginning.
    for_nobody: Option<Arc<ForNobody>>,
    /// When the first origin request was sent, in milliseconds since 1970, later by the time that further ones have
    /// waited for their places. `None` if none was sent.
    began_ms: Option<u64>,
    /// When the last origin request was sent.
    asked: Timestamp,
    /// The number of the answer that was not stored, if the render continues with another request.
    answered: Option<Number>,
    /// Whether the last origin request had fixed values in place of the client's own (`undeclared`).
    is_fixed: bool,
    /// The names under which its properties are remembered; `None` if it is not for everybody.
    names: Option<PageNames>,
    /// The capture of the statements of the last origin request, until it is complete.
    capture: Option<(Capture, ScriptHash)>,
    /// The statements that the render has run, once all of them are known.
    reads: Option<Arc<PageReads>>,
    /// The reason why the reads are not known, if the page is stored for a short time because of it.
    untracked: Option<Reason>,
}

/// The result of a background render, for the caller that began it.
#[derive(Default)]
struct ForNobody {
    /// Whether the page was refused because of a change.
    is_outdated: AtomicBool,
    /// Whether no place at the origin was free for it.
    is_deferred: AtomicBool,
}

/// When the request was sent and the response received, and the header lines that were sent.
struct OriginTimes {
    headers: HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
    /// Whether the request had fixed values in place of the client's own.
    is_fixed: bool,
}

impl Render {
    async fn run(self: Box<Self>, script: Option<Script>) {
        let mut render = self;
        let mut validated = render.ask.validate.take();
        for _ in 0..ATTEMPTS_MAX {
            render = match render.attempt(script.clone(), validated.take()).await {
                Attempt::Done => return,
                Attempt::Unconditionally(render)
                | Attempt::ForRange(render)
                | Attempt::WithFields(render) => render,
            };
        }
        render.unusable();
    }

    /// Treats a 304 response to an unconditional request as a failure of the origin, because it
    /// cannot be used (RFC 9110 section 15.4.5).
    fn unusable(self: Box<Self>) {
        let failure = Failure::InvalidResponse;
        self.tell_not_stored(failure.into(), Some(StatusCode::NOT_MODIFIED), &HeaderMap::new());
        let response = on_failure(&self.site, &self.ask, failure, self.recipient());
        self.give_up(response, RenderOutcome::Failed(failure));
    }

    /// Sends one origin request: for the page, or conditional, to validate `validate`.
    async fn attempt(
        mut self: Box<Self>,
        script: Option<Script>,
        validate: Option<SharedPage>,
    ) -> Attempt {
        self.fix(script.as_ref());
        let mut headers = self.page_headers();
        // The page to refresh may have no validator. A 304 does not tell which rows the content is made from,
        // and one to an own request would be about this client only.
        let validate = validate.filter(|page| {
            let stored = &page.payload().stored;
            stored.can_be_validated()
                && page.payload().reads().is_none()
                && !self.ask.is_own_beside(&self.site, stored.nominated())
        });
        let known = validate.as_ref().map(|page| page.response());
        make_conditional(&mut headers, known.as_ref());
        if validate.is_none() {
            self.ask.put_range(&mut headers);
        }
        let request_time = self.site.clock.now();
        self.asked = request_time;
        // Trace context and Pagewell's capabilities are added to the lines that are sent; they are
        // not used otherwise.
        let config = &self.site.config;
        let untraced =
            (config.traces.is_some() || esi::may_come(&self.site)).then(|| headers.clone());
        let mut request = Box::new(self.request(headers, script));
        let sent = self.send(&mut request).await;
        if let Some(waited_ms) = request.waited_ms {
            self.began_ms = Some(self.began_ms.unwrap_or(request_time.0) + waited_ms);
        }
        let Some(sent) = sent else { return Attempt::Done };
        let response = match sent {
            Ok(response) => response,
            Err(unsent) => return self.unsent(unsent, request.waited_ms.is_some()),
        };
        if request.capture.is_none() {
            self.capture = None;
        }
        let headers = untraced.unwrap_or(request.headers);
        let (response_time, is_fixed) = (self.site.clock.now(), self.is_fixed);
        let sent = OriginTimes { headers, request_time, response_time, is_fixed };
        match validate {
            Some(page) if response.status == StatusCode::NOT_MODIFIED => {
                self.not_modified(&page, response, &sent)
            }
            _ if response.status == StatusCode::NOT_MODIFIED => {
                self.unusable();
                Attempt::Done
            }
            _ => self.responded(response, &sent).await,
        }
    }

    /// The header lines of an origin request, without conditions and ranges.
    fn page_headers(&self) -> HeaderMap {
        let sends = |name: &str| self.ask.sends(&self.site, name, self.is_fixed);
        let mut headers = forward::outgoing_for_page(&self.ask.headers, sends);
        self.ask.plan_headers(&self.site, &mut headers, self.is_fixed);
        if self.ask.client.extras.purpose == RequestPurpose::Reference {
            headers.insert(reference::REFERENCE, HeaderValue::from_static("1"));
        }
        if self.site.config.codings.are_made() {
            // Pagewell compresses the page itself, once for all clients.
            headers.remove(header::ACCEPT_ENCODING);
        }
        headers
    }

    /// Sends the request. `None` if no client waits any more and the response is not needed for
    /// invalidation.
    async fn send(
        &mut self,
        request: &mut OriginRequest,
    ) -> Option<Result<OriginResponse, Unsent>> {
        let (site, reached) = (self.site.clone(), request.progress.clone());
        let mut sending = pin!(forward::send::send_following(&site, request));
        if must_await_response(&site, OnClientGone::Abort) {
            unless_left(sending.as_mut(), self.abandoned(), &reached).await
        } else {
            tokio::select! {
                sent = &mut sending => Some(sent),
                () = self.abandoned() => None,
            }
        }
    }

    /// Completes when no client waits for this render any more.
    async fn abandoned(&mut self) {
        match &mut self.answer {
            Some(answer) => answer.closed().await,
            None => std::future::pending().await,
        }
        if let RenderPermit::Leader(leader) = &self.right {
            leader.waiter().outcome.closed().await;
        }
    }

    /// Ends a render whose request got no response. One that was never sent was no render, and is not recorded.
    fn unsent(self: Box<Self>, unsent: Unsent, was_sent: bool) -> Attempt {
        match unsent {
            Unsent::Failed(failure) => {
                if let Some(for_nobody) = &self.for_nobody {
                    for_nobody.is_deferred.store(failure == Failure::Deferred, Relaxed);
                }
                if was_sent {
                    self.tell_not_stored(failure.into(), None, &HeaderMap::new());
                }
                let response = on_failure(&self.site, &self.ask, failure, self.recipient());
                let outcome = match failure {
                    // The followers' clients have limits of their own.
                    Failure::Limited(_) => RenderOutcome::NotShared,
                    failure => RenderOutcome::Failed(failure),
                };
                self.give_up(response, outcome);
            }
            other => {
                let response = forward::failed(&self.site, other, self.ask.why);
                self.give_up(response, RenderOutcome::NotShared);
            }
        }
        Attempt::Done
    }

    /// Notifies the followers and answers the client.
    fn give_up(self: Box<Self>, response: Response<ResponseBody>, outcome: RenderOutcome) {
        self.right.end(outcome);
        if let Some(answer) = self.answer {
            let _ = answer.send(response);
        }
    }

    /// Handles a 304 response to a conditional request (RFC 9111 section 4.3.4).
    fn not_modified(
        mut self: Box<Self>,
        page: &SharedPage,
        response: OriginResponse,
        sent: &OriginTimes,
    ) -> Attempt {
        match revised::freshened(&self.site, &self.ask, page, &response, sent) {
            Ok(stored) if stored.lifetime_source == LifetimeSource::Reads => {
                tracing::debug!(event = "not-freshened", reason = Reason::ReadsUnknown.as_str());
                Attempt::Unconditionally(self)
            }
            Ok(mut stored) => {
                // The reads of the page are not known, and those of the 304 are not the page's.
                let is_tracked = self.site.footprints.settings().is_none();
                if !is_tracked
                    && let Some(reason) = self.store_untracked(&mut stored, Reason::ReadsUnknown)
                {
                    tracing::debug!(event = "not-freshened", reason = reason.as_str());
                    return Attempt::Unconditionally(self);
                }
                self.site.counters.validated.add();
                let mut status = self.ask.status();
                status.forward_status = Some(StatusCode::NOT_MODIFIED);
                status.detail = response.waited.reason().map(Reason::as_str);
                let content = page.content();
                let coded = page.payload().forms().contents();
                self.store(stored, content, coded, status);
                Attempt::Done
            }
            Err(reason) => {
                tracing::debug!(event = "not-freshened", reason = reason.as_str());
                Attempt::Unconditionally(self)
            }
        }
    }

    /// Handles a response other than a 304.
    async fn responded(
        mut self: Box<Self>,
        mut response: OriginResponse,
        sent: &OriginTimes,
    ) -> Attempt {
        panics::may_happen(Place::Render);
        if response.status.is_server_error() {
            let failure = Failure::Status(response.status);
            if let Some(stale) = stale_on(&self.site, &self.ask, failure, self.recipient()) {
                self.give_up(stale, RenderOutcome::Failed(failure));
                return Attempt::Done;
            }
        }
        let mut status = self.ask.status();
        status.forward_status = Some(response.status);
        // The propagation state of a change has precedence over the reason for not storing.
        status.detail = response.waited.reason().map(Reason::as_str);
        match self.kept(&response, sent) {
            // The followers keep waiting, because the response will be a page.
            Ok(stored) if self.ask.send_missing(&self.site, &stored, sent) => {
                self.note_language(&response.headers);
                return Attempt::WithFields(self);
            }
            Ok(mut stored) => {
                self.note_language(&response.headers);
                self.understand(&mut response, Some(&mut stored));
                self.collect(stored, response, status).await;
            }
            Err(not_kept) if self.is_worth_a_range(&response) => {
                self.end_older(&response, not_kept.reason);
                // The followers need not wait for the range.
                self.not_shareable();
                self.right.tell(RenderOutcome::NotShared);
                self.ask.ranges = Ranges::Forwarded;
                return Attempt::ForRange(self);
            }
            Err(NotKept { reason, is_for_all }) => {
                if !response.status.is_server_error() {
                    self.note_storable(reason == Reason::AsSent);
                }
                self.understand(&mut response, None);
                self.end_older(&response, reason);
                if self.is_filled(is_for_all) {
                    // The followers join the render for everybody.
                    self.site.counters.not_stored.add();
                } else {
                    self.not_shareable();
                }
                let record = self.unstored_record(reason, &response);
                if reason == Reason::TooLarge {
                    self.site.counters.limit_hits.note(Limit::PageBytes);
                }
                status.detail = status.detail.or(Some(reason.as_str()));
                if self.site.config.rules.withholds_session(&self.ask.plan) {
                    // The request was sent without a session, so a session cookie in the response
                    // is not this client's.
                    response.headers.remove(header::SET_COOKIE);
                }
                let passed = forward::stream(&self.site, response, &status, record);
                let head_only = self.ask.method == Method::HEAD;
                let passed = if head_only { serve::without_body(passed) } else { passed };
                self.give_up(passed, RenderOutcome::NotShared);
            }
        }
        Attempt::Done
    }

    fn understand(&self, response: &mut OriginResponse, stored: Option<&mut StoredResponse>) {
        understand(&self.site, &self.ask.method, &self.ask.headers, response, stored);
    }
}

/// The result of one origin request.
enum Attempt {
    /// The client and the followers have been answered.
    Done,
    /// The condition could not be used; send the request without it.
    Unconditionally(Box<Render>),
    /// The whole page will not be stored; request the range.
    ForRange(Box<Render>),
    /// The page depends on dropped fields, as its `Vary` says; send the request with them.
    WithFields(Box<Render>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use delivery::waiter::Waiter;
    use page_store::{FillLimits, Fills, Limits, Store, Turn};
    use stored_pages::page::StoredPage;

    /// The outcome that a follower receives after its leader has ended by `leave`.
    fn outcome_after(leave: impl FnOnce(RenderPermit)) -> Option<RenderOutcome> {
        let store: Store<StoredPage> = Store::new(Limits::new(1 << 20));
        let fills: Fills<Waiter> = Fills::new(FillLimits::default());
        let key = store.key(b"a page");
        let turn = || fills.turn(&store, key, store.number(), 0, Waiter::default);
        let (Turn::Lead(leader), Turn::Follow(follower)) = (turn(), turn()) else {
            panic!("the first leads and the second follows");
        };
        leave(RenderPermit::Leader(leader));
        follower.waiter().outcome.subscribe().borrow().clone()
    }

    #[test]
    fn followers_are_notified_however_their_leader_ends() {
        assert!(matches!(outcome_after(drop), Some(RenderOutcome::NotShared)));
        let told = outcome_after(|right| right.end(RenderOutcome::Failed(Failure::TimedOut)));
        assert!(matches!(told, Some(RenderOutcome::Failed(Failure::TimedOut))));
        let panicked = outcome_after(|right| {
            let _ = std::thread::spawn(move || {
                let _right = right;
                panic!("as a bug would");
            })
            .join();
        });
        assert!(matches!(panicked, Some(RenderOutcome::NotShared)));
    }
}
