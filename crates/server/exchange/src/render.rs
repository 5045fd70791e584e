//! A page that the store could not answer: rendered once, for everybody who asks for it meanwhile.
//!
//! | turn | what happens |
//! |---|---|
//! | lead | a task of its own asks the origin, tells the followers, stores the page |
//! | follow | waits; shares the page if rule 2 allows it, else takes another turn |
//! | alone | asks the origin for itself; the page may be stored all the same |
//!
//! The task goes on when its visitor leaves, as long as somebody follows or the page is about to be
//! stored; otherwise the request at the origin is given up, once nothing more is to be heard from it
//! (`heard`). The lease is taken before the request
//! goes out (by the turn) and kept until the followers have decided. The page is stored before its
//! last byte is handed to the visitor, so that whoever has it finds it in the store.

mod collect;
mod fields;
mod parts;
mod revised;
mod stale;
mod superseded;
mod told;
mod turns;
mod understood;

pub use fields::ExtraFields;
pub use parts::Ranges;
use stale::{on_failure, stale_on};
pub use superseded::end_private_copies;
use told::apart;
pub use told::kept_for_owner;
use turns::Taken;
pub use understood::{is_stream, understand};

use crate::body::ResponseBody;
use crate::forward::{self, Answerer, answerer};
use crate::heard::{Patience, is_heard, unless_left};
use crate::litespeed;
use crate::lookup::decide_on;
use crate::serve;
use crate::site::Site;
use config::target::Target;
use http::{HeaderMap, Method, Response, StatusCode, Version, header};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{
    Failure, ForwardReason, RequestFacts, Reuse, StoredResponse, Timestamp, Verdict,
    make_conditional,
};
use origin::routes::Script;
use origin::{OriginRequest, OriginResponse, Unsent};
use page_store::{Candidates, Leader, Lease, Number};
use site_rules::{Owner, Plan, PlannedFields};
use site_state::client::Visitor;
use site_state::page::{ReadPage, SharedPage, StoredPage};
use site_state::panics::{self, Place};
use site_state::reached::Limit;
use site_state::request_fields::{AsSent, read_facts};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::{oneshot, watch};

/// How often the origin is asked: with a condition, without, and for a range of what is not stored.
/// With fields that `Vary` names, and with custom ones.
const ATTEMPTS_MAX: usize = 5;

/// What the followers of a render wait on.
pub struct Waiter {
    outcome: watch::Sender<Option<Outcome>>,
}

impl Waiter {
    fn new() -> Waiter {
        Waiter { outcome: watch::Sender::new(None) }
    }
}

/// What came of a render, for its followers.
#[derive(Clone)]
enum Outcome {
    /// A page; whether one may share it is for each to find out.
    Page(SharedPage),
    /// A response for the one who asked.
    NotShareable,
    /// None: the origin failed.
    Failed(Failure),
    /// None: the render was given up, or was not needed, or has panicked.
    GivenUp,
}

/// A GET or HEAD that the store could not answer.
#[derive(Clone)]
pub struct Ask {
    /// What is asked for.
    pub target: Target,
    /// The cache key.
    pub key: Vec<u8>,
    /// GET or HEAD.
    pub method: Method,
    /// The client's header lines.
    pub headers: Arc<HeaderMap>,
    /// The HTTP version the client spoke.
    pub version: Version,
    /// Who asks.
    pub visitor: Visitor,
    /// What the rules make of it.
    pub plan: Plan,
    /// Why it is not answered from the store.
    pub why: ForwardReason,
    /// The stored page to be validated.
    pub validate: Option<SharedPage>,
    /// The stored page to fall back on when the origin fails.
    pub fallback: Option<SharedPage>,
    /// What becomes of a Range.
    pub ranges: Ranges,
    /// Whose private copy it will be; none: everybody's page.
    pub owner: Option<Arc<Owner>>,
    /// The fields of the client's that go to the origin beside those of every render.
    pub extra_fields: ExtraFields,
}

impl Ask {
    fn facts(&self) -> RequestFacts<'_> {
        read_facts(&self.method, &self.headers)
    }

    fn status(&self) -> CacheStatus<'static> {
        CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(self.why))
    }

    /// Changes what goes to the origin as the plan has it.
    fn plan_headers(&self, site: &Site, headers: &mut HeaderMap) {
        let fields = AsSent(&*self.headers);
        forward::as_planned(headers, &PlannedFields::new(&site.config.rules, self.plan, &fields));
        litespeed::give_vary_value(&site.config.dialects, &self.plan, headers);
    }

    /// Takes what is validated, and what is fallen back on, from what is stored now.
    fn look_again(&mut self, stored: &Candidates<StoredPage>, verdict: Verdict) {
        let page = |at: usize| stored.as_slice().get(at).cloned();
        (self.validate, self.fallback) = match verdict {
            Verdict::Forward { validate, fallback, .. } => {
                (validate.and_then(page), fallback.and_then(page))
            }
            // Stale, but good enough meanwhile: a refresh.
            Verdict::Reuse { candidate, .. } => (page(candidate), page(candidate)),
            Verdict::Unsatisfied => (None, None),
        };
        self.send_nominated(stored);
        // A change has marked it: what it was validated by may be no younger than the change.
        if self.validate.as_ref().is_some_and(|page| page.is_marked()) {
            self.validate = None;
        }
    }
}

/// Answers a request by a render, its own or another's.
pub async fn get(site: &Arc<Site>, mut ask: Ask) -> Response<ResponseBody> {
    let arrival = site.store.number();
    let script = match answerer(site, &ask.target, &ask.facts()).await {
        Answerer::Here(response) => return response,
        Answerer::Origin(script) => script,
    };
    if ask.why == ForwardReason::Bypass {
        return rendered(site, ask, script, Right::Alone(site.store.lease())).await;
    }
    if let Some(response) = parts::from_store(site, &mut ask) {
        return response;
    }
    match turns::taken(site, &ask, arrival).await {
        Taken::Answer(response) => response,
        Taken::Right(right, ranges) => leased(site, Ask { ranges, ..ask }, script, right).await,
        Taken::Unshared(right, ranges) => {
            let mut ask = Ask { ranges, ..ask };
            if ask.can_send_custom(site) {
                ask.send_custom();
            }
            leased(site, ask, script, right).await
        }
    }
}

/// What has come of rendering a page anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It is stored, or cannot be: another attempt would come to the same.
    Done,
    /// Something that it is made from has changed meanwhile, or somebody else's render is under way that
    /// may have begun before it did.
    Overtaken,
}

/// Renders a page anew for nobody in particular, unless that is being done already.
pub async fn refresh(site: Arc<Site>, mut ask: Ask) -> Refreshed {
    let answerer = answerer(&site, &ask.target, &ask.facts()).await;
    let Answerer::Origin(script) = answerer else { return Refreshed::Done };
    if turns::is_personal(&site, &ask)
        && let Some(all) = superseded::for_everybody(&site, &ask)
    {
        ask = all;
    }
    let Some(right) = turns::to_refresh(&site, &ask) else { return Refreshed::Overtaken };
    // Another refresh may have ended between the look-up that found the page stale and this turn.
    let (candidates, verdict) = decide_on(&site, &ask.facts(), &ask.headers, &ask.plan, &ask.key);
    if matches!(verdict, Verdict::Reuse { state: Reuse::Fresh, .. }) {
        return Refreshed::Done;
    }
    ask.look_again(&candidates, verdict);
    let (render, outcome) = Render::for_nobody(&site, ask, right);
    render.run(script).await;
    match outcome.is_outdated.load(Relaxed) {
        true => Refreshed::Overtaken,
        false => Refreshed::Done,
    }
}

/// Renders, unless the page was stored between the look-up and the turn. What is validated, and what
/// is fallen back on, is what is stored now that the lease is taken: a page that a change has dropped
/// since the look-up must not be brought back by an origin whose validators cannot tell two changes
/// within a second apart.
async fn leased(
    site: &Arc<Site>,
    mut ask: Ask,
    script: Option<Script>,
    right: Right,
) -> Response<ResponseBody> {
    let (candidates, verdict) = decide_on(site, &ask.facts(), &ask.headers, &ask.plan, &ask.key);
    if let Verdict::Reuse { candidate, state: Reuse::Fresh, answer } = verdict {
        drop(right);
        let page = &candidates.as_slice()[candidate];
        return crate::exchange::hit(site, &ask.facts(), page, answer);
    }
    ask.look_again(&candidates, verdict);
    rendered(site, ask, script, right).await
}

/// Has the page rendered by a task of its own, and waits for the answer.
async fn rendered(
    site: &Arc<Site>,
    ask: Ask,
    script: Option<Script>,
    right: Right,
) -> Response<ResponseBody> {
    let (answer, answered) = oneshot::channel();
    apart(Box::pin(Render::new(site, ask, right, answer).run(script)), answered).await
}

/// The right to render: with others waiting, or not.
enum Right {
    Lead(Leader<Waiter>),
    Alone(Lease),
}

impl Right {
    fn lease(&self) -> &Lease {
        match self {
            Right::Lead(leader) => leader.lease(),
            Right::Alone(lease) => lease,
        }
    }

    /// Tells the followers what came of it, and that this render can be joined no more: who asks
    /// after the visitor has his answer must not be given what was before.
    fn end(self, outcome: Outcome) {
        self.tell(outcome);
    }

    fn tell(&self, outcome: Outcome) {
        if let Right::Lead(leader) = self {
            leader.waiter().outcome.send_replace(Some(outcome));
        }
    }
}

/// However a render ends, its followers are told: also when it is given up, when the page was found
/// after all, and by a panic. Without a word they would wait for ever.
impl Drop for Right {
    fn drop(&mut self) {
        let Right::Lead(leader) = self else { return };
        leader.waiter().outcome.send_if_modified(|outcome| {
            let is_open = outcome.is_none();
            if is_open {
                *outcome = Some(Outcome::GivenUp);
            }
            is_open
        });
    }
}

/// One render, from the request to the origin to the stored page.
struct Render {
    site: Arc<Site>,
    ask: Ask,
    right: Right,
    /// Where the visitor waits; none when nobody does.
    answer: Option<oneshot::Sender<Response<ResponseBody>>>,
    /// Where nobody has waited from the beginning: a page that is read is rendered anew.
    for_nobody: Option<Arc<ForNobody>>,
    /// When the origin was asked first, in milliseconds since 1970.
    began_ms: Option<u64>,
    /// When it was asked last.
    asked: Timestamp,
    /// The number of its answer that was not stored, where it goes on with another request.
    answered: Option<Number>,
}

/// What a render in the background leaves for whoever began it.
#[derive(Default)]
struct ForNobody {
    /// Whether the page was refused because of a change.
    is_outdated: AtomicBool,
}

/// When the request went out and the response came, and the header lines it went out with.
struct Sent {
    headers: HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
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

    /// RFC 9110 section 15.4.5: a 304 to a request without a condition says nothing that could be used, so the
    /// origin has failed.
    fn unusable(self: Box<Self>) {
        let failure = Failure::InvalidResponse;
        self.tell_not_stored(failure.as_str(), Some(StatusCode::NOT_MODIFIED), &HeaderMap::new());
        let response = on_failure(&self.site, &self.ask, failure, self.recipient());
        self.give_up(response, Outcome::Failed(failure));
    }

    /// Asks the origin once: for the page, or whether `validate` still holds.
    async fn attempt(
        mut self: Box<Self>,
        script: Option<Script>,
        validate: Option<SharedPage>,
    ) -> Attempt {
        let sends = |name: &str| self.ask.sends(&self.site, name);
        let mut headers = forward::outgoing_for_page(&self.ask.headers, sends);
        self.ask.plan_headers(&self.site, &mut headers);
        if self.site.config.codings.are_made() {
            // Coded here, once for everybody.
            headers.remove(header::ACCEPT_ENCODING);
        }
        // A refresh may be of a page without a validator.
        let validate = validate.filter(|page| page.payload().stored.can_be_validated());
        let known = validate.as_ref().map(|page| page.response());
        make_conditional(&mut headers, known.as_ref());
        if validate.is_none() {
            self.ask.put_range(&mut headers);
        }
        let request_time = self.site.clock.now();
        self.began_ms.get_or_insert(request_time.0);
        self.asked = request_time;
        self.site.counters.renders.add();
        // A trace, and what Pagewell can, go into the lines that are sent, and count for nothing else.
        let config = &self.site.config;
        let untraced = (config.traces.is_some() || config.esi).then(|| headers.clone());
        let mut request = Box::new(self.request(headers, script));
        let sent = self.send(&mut request).await;
        let Some(sent) = sent else { return Attempt::Done };
        let response = match sent {
            Ok(response) => response,
            Err(unsent) => return self.unsent(unsent),
        };
        let headers = untraced.unwrap_or(request.headers);
        let sent = Sent { headers, request_time, response_time: self.site.clock.now() };
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

    /// Sends the request; `None` if nobody waits any more, and nothing more is to be heard from it.
    async fn send(
        &mut self,
        request: &mut OriginRequest,
    ) -> Option<Result<OriginResponse, Unsent>> {
        let (site, reached) = (self.site.clone(), request.reached.clone());
        let mut sending = pin!(forward::send_following(&site, request));
        match is_heard(&site, Patience::WhileAsked) {
            true => unless_left(sending.as_mut(), self.abandoned(), &reached).await,
            false => tokio::select! {
                sent = &mut sending => Some(sent),
                () = self.abandoned() => None,
            },
        }
    }

    /// Ready when nobody waits for this render any more.
    async fn abandoned(&mut self) {
        match &mut self.answer {
            Some(answer) => answer.closed().await,
            None => std::future::pending().await,
        }
        if let Right::Lead(leader) = &self.right {
            leader.waiter().outcome.closed().await;
        }
    }

    fn unsent(self: Box<Self>, unsent: Unsent) -> Attempt {
        match unsent {
            Unsent::Failed(failure) => {
                self.tell_not_stored(failure.as_str(), None, &HeaderMap::new());
                let response = on_failure(&self.site, &self.ask, failure, self.recipient());
                self.give_up(response, Outcome::Failed(failure));
            }
            other => {
                let response = forward::failed(&self.site, other, self.ask.why);
                self.give_up(response, Outcome::NotShareable);
            }
        }
        Attempt::Done
    }

    /// Tells the followers and answers the visitor.
    fn give_up(self: Box<Self>, response: Response<ResponseBody>, outcome: Outcome) {
        self.right.end(outcome);
        if let Some(answer) = self.answer {
            let _ = answer.send(response);
        }
    }

    /// RFC 9111 section 4.3.4.
    fn not_modified(
        self: Box<Self>,
        page: &SharedPage,
        response: OriginResponse,
        sent: &Sent,
    ) -> Attempt {
        match revised::freshened(&self.site, &self.ask, page, &response, sent) {
            Ok(stored) => {
                self.site.counters.validated.add();
                let mut status = self.ask.status();
                status.forward_status = Some(StatusCode::NOT_MODIFIED);
                status.detail = response.waited.detail();
                let content = page.content();
                let coded = page.payload().forms().contents();
                self.store(stored, content, coded, status);
                Attempt::Done
            }
            Err(reason) => {
                tracing::debug!(event = "not-freshened", reason);
                Attempt::Unconditionally(self)
            }
        }
    }

    /// A response other than a 304.
    async fn responded(mut self: Box<Self>, mut response: OriginResponse, sent: &Sent) -> Attempt {
        panics::may_happen(Place::Render);
        if response.status.is_server_error() {
            let failure = Failure::Status(response.status);
            if let Some(stale) = stale_on(&self.site, &self.ask, failure, self.recipient()) {
                self.give_up(stale, Outcome::Failed(failure));
                return Attempt::Done;
            }
        }
        let mut status = self.ask.status();
        status.forward_status = Some(response.status);
        // What a visitor has changed comes before why his page is not kept.
        status.detail = response.waited.detail();
        let kept = match is_stream(&response.headers) {
            true => Err("streamed"),
            false => revised::keep(&self.site, &self.ask, &response, sent),
        };
        match kept {
            // Others may wait on: it will be a page.
            Ok(stored) if self.ask.send_missing(&self.site, &stored, sent) => {
                return Attempt::WithFields(self);
            }
            Ok(mut stored) => {
                self.understand(&mut response, Some(&mut stored));
                self.collect(stored, response, status).await;
            }
            Err(reason) if self.is_worth_a_range(&response) => {
                self.end_older(&response, reason);
                // Nobody else need wait for it.
                self.not_shareable();
                self.right.tell(Outcome::NotShareable);
                self.ask.ranges = Ranges::Forwarded;
                return Attempt::ForRange(self);
            }
            // It is for one client, whose application may read more of the request.
            Err(reason) if self.ask.can_send_custom(&self.site) => {
                // This was the answer for everybody; the next one is this client's.
                self.end_older(&response, reason);
                self.ask.send_custom();
                self.not_shareable();
                self.right.tell(Outcome::NotShareable);
                return Attempt::WithFields(self);
            }
            Err(reason) => {
                self.understand(&mut response, None);
                self.end_older(&response, reason);
                self.not_shareable();
                self.tell_not_stored(reason, Some(response.status), &response.headers);
                if reason == http_cache::NotStored::TooLarge.as_str() {
                    self.site.counters.reached.note(Limit::PageBytes);
                }
                status.detail = status.detail.or(Some(reason));
                if self.site.config.rules.withholds_session(&self.ask.plan) {
                    // It was rendered for nobody in particular: its session is not this visitor's.
                    response.headers.remove(header::SET_COOKIE);
                }
                let passed = forward::stream(&self.site, response, &status);
                let head_only = self.ask.method == Method::HEAD;
                let passed = if head_only { serve::without_body(passed) } else { passed };
                self.give_up(passed, Outcome::NotShareable);
            }
        }
        Attempt::Done
    }

    fn understand(&self, response: &mut OriginResponse, stored: Option<&mut StoredResponse>) {
        understand(&self.site, &self.ask.method, &self.ask.headers, response, stored);
    }
}

/// What came of asking the origin once.
enum Attempt {
    /// Everybody has been told.
    Done,
    /// The condition was of no use; ask without.
    Unconditionally(Box<Render>),
    /// The whole will not be stored; ask for the range.
    ForRange(Box<Render>),
    /// The response depends on fields that the origin did not get; ask with them.
    WithFields(Box<Render>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use page_store::{FillLimits, Fills, Limits, Store, Turn};

    /// What the follower of a render finds when its leader has gone by `leave`.
    fn outcome_after(leave: impl FnOnce(Right)) -> Option<Outcome> {
        let store: Store<StoredPage> = Store::new(Limits::new(1 << 20));
        let fills: Fills<Waiter> = Fills::new(FillLimits::default());
        let key = store.key(b"a page");
        let turn = || fills.turn(&store, key, store.number(), 0, Waiter::new);
        let (Turn::Lead(leader), Turn::Follow(follower)) = (turn(), turn()) else {
            panic!("the first leads and the second follows");
        };
        leave(Right::Lead(leader));
        follower.waiter().outcome.subscribe().borrow().clone()
    }

    #[test]
    fn followers_are_told_however_their_leader_goes() {
        assert!(matches!(outcome_after(drop), Some(Outcome::GivenUp)));
        let told = outcome_after(|right| right.end(Outcome::NotShareable));
        assert!(matches!(told, Some(Outcome::NotShareable)));
        let panicked = outcome_after(|right| {
            let _ = std::thread::spawn(move || {
                let _right = right;
                panic!("as a bug would");
            })
            .join();
        });
        assert!(matches!(panicked, Some(Outcome::GivenUp)));
    }
}
