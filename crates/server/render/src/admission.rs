//! Request collapsing: the turns of a request before it renders. They decide which render it waits for.
//!
//! A render with an unknown cookie, custom fields or Authorization is usually for one client alone. Requests without
//! them must neither wait for it nor find the page marked as unshareable by it. So there are groups:
//!
//! | group | leads, and waits for renders of | joins the render of `Everybody` |
//! |---|---|---|
//! | `Everybody` | its own group | its own group |
//! | with an unknown cookie or a custom field | its own group | if one is in progress: a declared page may be shared with it |
//! | with Authorization | its own group | never: few shared pages may be used for it (RFC 9111 section 3.5) |
//! | `no-store`, honoured | none: its response is not stored | if one is in progress |
//!
//! A response that is not stored, or has to be validated for each request (`no-cache`), marks the page as
//! hit-for-miss for its own group (`limits.hit_for_miss`). Any other stored page is used by all groups.
//! The response to an own request (unknown cookie, custom field) that is marked as shared begins a render for
//! everybody. It is entered before the followers of the own request are notified, so that they find it:
//!
//! | interleaving | what happens |
//! |---|---|
//! | the own leader has its response; its followers wake | they join the render for everybody, whose lease is newer than their arrival |
//! | another request leads a render for everybody already | none is begun; the followers join that one by rule 2 |
//! | the render for everybody may not be stored | it marks the page as hit-for-miss for `Everybody`; the followers take a turn of their own group, and no further render for everybody begins while the mark counts |
//! | the page was stored before the render for everybody has looked | it ends without a request to the origin; its followers look again |
//! | a change arrives during it | it is not stored if the change touches it (rule 1); its followers, who arrived before, may share it (rule 2) |
//!
//! | a render fails | its followers |
//! |---|---|
//! | refused, timed out, overloaded: theirs would fail, too | get the same answer, or a stale page |
//! | deferred (`misses.mode = "protect"`) | take one more turn; then they get the same answer |
//! | connection closed, invalid response, error status: may depend on the request | take another turn; the second time they get the same |

use super::stale::ClientConnection;
use super::{Ranges, RenderPermit, RenderRequest, on_failure, stale_on};
use delivery::body::ResponseBody;
use delivery::codings;
use delivery::lookup::{self, StoredPages};
use delivery::serve;
use delivery::site::Site;
use delivery::visitors;
use delivery::waiter::{RenderOutcome, Waiter};
use http::Response;
use http::header::AUTHORIZATION;
use http_cache::{Failure, RequestControl, Verdict, must_be_validated};
use page_store::{Follower, Number, SoloReason, SoloRender, Turn};
use std::borrow::Cow;
use std::sync::Arc;
use stored_pages::page::SharedPage;
use telemetry::limit_hits::Limit;
use telemetry::request_fields::AsSent;

/// Maximum number of renders that a request waits for before it renders alone.
const TURNS_MAX: usize = 3;

/// The result of the turns of a request.
pub(super) enum Admission {
    /// The render of another request has answered it.
    Answer(Response<ResponseBody>),
    /// The request renders, and handles its Range in this way.
    Right(RenderPermit, Ranges),
}

/// A group of requests that wait for each other's renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CollapseGroup {
    Everybody,
    /// With an unknown cookie or a custom field.
    Own,
    Authorization,
    Nobody,
}

impl CollapseGroup {
    fn of(site: &Site, ask: &RenderRequest) -> CollapseGroup {
        let rules = &site.config.rules;
        let honours = rules.policy(&ask.plan).request_directives == RequestControl::Honour;
        if honours && ask.facts().cache_control.no_store {
            return CollapseGroup::Nobody;
        }
        let has_authorization = ask.headers.contains_key(AUTHORIZATION);
        match (has_authorization, ask.is_own(site)) {
            (true, _) => CollapseGroup::Authorization,
            (false, true) => CollapseGroup::Own,
            (false, false) => CollapseGroup::Everybody,
        }
    }

    /// The key under which the requests of a group find each other. Key parts added by rules
    /// contain a space, so they never equal the suffix.
    fn key<'a>(self, of_page: &'a [u8]) -> Cow<'a, [u8]> {
        let group: &[u8] = match self {
            CollapseGroup::Everybody => return Cow::Borrowed(of_page),
            CollapseGroup::Own => b"\nown",
            CollapseGroup::Authorization => b"\nauthorization",
            CollapseGroup::Nobody => b"\nnobody",
        };
        Cow::Owned([of_page, group].concat())
    }

    fn joins_everybody(self) -> bool {
        matches!(self, CollapseGroup::Own | CollapseGroup::Nobody)
    }

    fn turn(self, site: &Site, ask: &RenderRequest, arrival: Number) -> Turn<Waiter> {
        if self == CollapseGroup::Nobody {
            return Turn::Alone(SoloRender {
                lease: site.store.lease(),
                why: SoloReason::NotShareable,
            });
        }
        let key = self.key(&ask.key);
        site.fills.turn(&site.store, site.store.key(&key), arrival, now_ms(site), Waiter::default)
    }
}

/// Whether nothing in the request makes its response one for this client only.
pub(super) fn is_everybodys(site: &Site, ask: &RenderRequest) -> bool {
    CollapseGroup::of(site, ask) == CollapseGroup::Everybody
}

fn now_ms(site: &Site) -> u64 {
    site.clock.now().0
}

/// Removes the hit-for-miss mark of the page, because the response to `ask` was stored, unless it has
/// to be validated for each request: then no request can use the render of another.
pub(super) fn shared_from_now(site: &Site, ask: &RenderRequest, page: &SharedPage) {
    let (stored, policy) = (&page.payload().stored, site.config.rules.policy(&ask.plan));
    if must_be_validated(stored, policy, site.clock.now()) {
        return;
    }
    site.fills.shareable(site.store.key(&ask.key));
    let group = CollapseGroup::of(site, ask);
    if group != CollapseGroup::Everybody {
        site.fills.shareable(site.store.key(&group.key(&ask.key)));
    }
}

/// The right to render a page for everybody in the background that is not stored. `None` if a render is in
/// progress, or if the page is marked as hit-for-miss.
pub(super) fn to_fill(site: &Site, ask: &RenderRequest) -> Option<RenderPermit> {
    match CollapseGroup::of(site, ask).turn(site, ask, site.store.number()) {
        Turn::Lead(leader) => Some(RenderPermit::Leader(leader)),
        Turn::Alone(_) | Turn::Follow(_) => None,
    }
}

/// The right to refresh a page in the background. `None` if a render is in progress or the page is
/// marked as hit-for-miss.
pub(super) fn to_refresh(site: &Site, ask: &RenderRequest) -> Option<RenderPermit> {
    let group = CollapseGroup::of(site, ask);
    match group.turn(site, ask, site.store.number()) {
        Turn::Lead(leader) => Some(RenderPermit::Leader(leader)),
        // Marked as hit-for-miss, but a page is stored, so it is worth trying.
        Turn::Alone(SoloRender { lease, why: SoloReason::NotShareable })
            if group == CollapseGroup::Everybody =>
        {
            Some(RenderPermit::Solo(lease))
        }
        Turn::Alone(_) | Turn::Follow(_) => None,
    }
}

/// Takes turns for a request that arrived at `arrival`, until the render of another request has
/// answered it or it has the right to render.
pub(super) async fn taken(site: &Arc<Site>, ask: &RenderRequest, arrival: Number) -> Admission {
    let group = CollapseGroup::of(site, ask);
    let join = || site.fills.join(site.store.key(&ask.key), arrival, now_ms(site));
    let mut may_join = group.joins_everybody();
    let mut failed_before = false;
    let mut refused: Option<Follower<Waiter>> = None;
    for _ in 0..TURNS_MAX {
        let joined = if may_join { join() } else { None };
        let is_everybodys = joined.is_some();
        may_join &= !is_everybodys;
        let follower = match joined {
            Some(follower) => follower,
            None => match next_turn(site, ask, (group, arrival), refused.take()) {
                Turn::Lead(leader) => {
                    return Admission::Right(RenderPermit::Leader(leader), Ranges::Cut);
                }
                Turn::Alone(alone) => return by_itself(site, ask, alone),
                Turn::Follow(follower) => follower,
            },
        };
        match follow(site, ask, &follower, failed_before).await {
            FollowOutcome::Answered(response) => return Admission::Answer(response),
            FollowOutcome::Failed => failed_before = true,
            FollowOutcome::Refused => {}
        }
        if !is_everybodys {
            refused = Some(follower);
        }
    }
    let right = match refused.map(|refused| again(site, refused)) {
        Some(Turn::Lead(leader)) => RenderPermit::Leader(leader),
        Some(Turn::Alone(SoloRender { lease, .. })) => RenderPermit::Solo(lease),
        Some(Turn::Follow(_)) | None => RenderPermit::Solo(site.store.lease()),
    };
    Admission::Right(right, Ranges::Cut)
}

/// The next turn in the request's own group, after a render of it was `refused`.
fn next_turn(
    site: &Site,
    ask: &RenderRequest,
    (group, arrival): (CollapseGroup, Number),
    refused: Option<Follower<Waiter>>,
) -> Turn<Waiter> {
    match refused {
        Some(refused) => again(site, refused),
        None => group.turn(site, ask, arrival),
    }
}

fn again(site: &Site, refused: Follower<Waiter>) -> Turn<Waiter> {
    site.fills.again(&site.store, refused, now_ms(site), Waiter::default)
}

fn by_itself(site: &Site, ask: &RenderRequest, SoloRender { lease, why }: SoloRender) -> Admission {
    match why {
        SoloReason::NotShareable => Admission::Right(RenderPermit::Solo(lease), ask.for_range()),
        SoloReason::TooManyFollowers => {
            site.counters.limit_hits.note(Limit::Followers);
            Admission::Right(RenderPermit::Solo(lease), Ranges::Cut)
        }
    }
}

/// The result of waiting for the render of another request.
enum FollowOutcome {
    Answered(Response<ResponseBody>),
    /// The page may not be shared, or the render was cancelled: take another turn.
    Refused,
    /// The render failed, perhaps because of its own request: take another turn, once.
    Failed,
}

/// Waits for the render of another request.
async fn follow(
    site: &Arc<Site>,
    ask: &RenderRequest,
    follower: &Follower<Waiter>,
    failed_before: bool,
) -> FollowOutcome {
    let _following = site.counters.followers.during();
    // The render is for this client as well, so it waits no longer than this client would.
    visitors::raise(site, &ask.client, (&ask.target, &ask.headers), &follower.waiter().level);
    let mut outcome = follower.waiter().outcome.subscribe();
    // The follower keeps the sender alive; `Right` ensures that an outcome is sent.
    let outcome = match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone(),
        Err(_) => None,
    };
    match outcome {
        Some(RenderOutcome::Page(page)) => shared(site, ask, follower, &page),
        Some(RenderOutcome::Failed(failure)) => failed(site, ask, failure, failed_before),
        Some(RenderOutcome::NotShared) | None => FollowOutcome::Refused,
    }
}

/// Shares the page of another request's render if that is allowed.
fn shared(
    site: &Arc<Site>,
    ask: &RenderRequest,
    follower: &Follower<Waiter>,
    page: &SharedPage,
) -> FollowOutcome {
    let stored = &page.payload().stored;
    let reads = page.payload().reads().map(|reads| &**reads);
    let mut made_from = site.dependencies(stored, reads, ask.target.page(), None);
    made_from.place(site.store.key(page.key().bytes()), page.variant());
    if follower.may_share(&site.store, &made_from).is_err() {
        site.counters.joins_refused.add();
        return FollowOutcome::Refused;
    }
    let facts = ask.facts();
    let now = site.clock.now();
    let (fields, rendered) = (AsSent(&*ask.headers), StoredPages::Rendered(page));
    let verdict = lookup::choose(site, &facts, &fields, &ask.plan, rendered, now);
    let Verdict::Reuse { answer, .. } = verdict else {
        // Those that wait with it have waited in vain, too, and the next ones must not.
        if must_be_validated(stored, site.config.rules.policy(&ask.plan), now) {
            let until_ms = now.0 + site.limits.hit_for_miss.as_millis() as u64;
            site.fills.not_shareable(follower.key(), until_ms);
        }
        return FollowOutcome::Refused;
    };
    site.counters.collapsed.add();
    page.serve();
    codings::wanted(site, &facts, page);
    let mut status = ask.status();
    status.collapsed = true;
    status.ttl_seconds = Some(stored.ttl_seconds(now));
    FollowOutcome::Answered(serve::page(&facts, page, answer, now, &status))
}

/// Handles the failure of another request's render. A failure of the origin itself is passed to all
/// followers at once, any other only the second time. So no request waits for more than two failing
/// renders.
fn failed(
    site: &Arc<Site>,
    ask: &RenderRequest,
    failure: Failure,
    failed_before: bool,
) -> FollowOutcome {
    let is_of_origin = match failure {
        // The leader had the level of the best follower. Its address may have had too many requests: one more turn.
        Failure::Deferred => failed_before,
        Failure::Refused | Failure::TimedOut | Failure::Overloaded => true,
        // A limit of its own client, so that it is not passed on at all.
        Failure::Limited(_) => false,
        Failure::HungUp | Failure::InvalidResponse | Failure::Status(_) => false,
    };
    if is_of_origin || failed_before {
        return FollowOutcome::Answered(on_failure(site, ask, failure, ClientConnection::Client));
    }
    let stale = matches!(failure, Failure::Status(_))
        .then(|| stale_on(site, ask, failure, ClientConnection::Client));
    stale.flatten().map_or(FollowOutcome::Failed, FollowOutcome::Answered)
}
