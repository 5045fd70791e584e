//! Who waits for whose render, and until when: the turns that a request takes before it renders.
//!
//! Everybody waits for a render whose outcome says something to everybody. What is rendered for a request
//! with an unknown cookie or with Authorization is, more often than not, for that visitor alone; who has
//! neither must not wait for it, nor be told by it that the page is nobody else's, or any visitor could have
//! a crowd render a page as often as it asks. So there are circles:
//!
//! | circle | leads, and waits for those of | joins everybody's render |
//! |---|---|---|
//! | everybody | its own | |
//! | with an unknown cookie | its own | where one is in progress: pages of a declared lifetime are for it as well |
//! | with Authorization | its own | never: most of what is made for everybody is not for it (RFC 9111 section 3.5) |
//! | `no-store`, honoured | none: what it renders is kept for nobody | where one is in progress |
//!
//! A response that is not stored marks the page for the circle that it was rendered for, and for no other
//! (`limits.solo`). What *is* stored is found by all.
//!
//! | a render fails | its followers |
//! |---|---|
//! | refused, timed out, overloaded: so would theirs | get the same, or a stale page |
//! | hung up, no valid response, a status: it may have been its request's doing | take another turn; the second time they get the same |

use super::stale::Recipient;
use super::{Ask, Outcome, Ranges, Right, Waiter, on_failure, stale_on};
use crate::body::ResponseBody;
use crate::codings;
use crate::lookup::{self, StoredPages};
use crate::serve;
use crate::site::Site;
use http::Response;
use http::header::AUTHORIZATION;
use http_cache::{Failure, RequestControl, Verdict};
use page_store::{Follower, Number, SoloReason, SoloRender, Turn};
use site_state::page::SharedPage;
use site_state::reached::Limit;
use site_state::request_fields::AsSent;
use std::borrow::Cow;
use std::sync::Arc;

/// How many renders a request waits for before it asks for itself.
const TURNS_MAX: usize = 3;

/// What the turns of a request have come to.
pub(super) enum Taken {
    /// Another's render has answered it.
    Answer(Response<ResponseBody>),
    /// It renders, and this becomes of its Range.
    Right(Right, Ranges),
    /// The same, where what is rendered was not shareable a moment ago.
    Unshared(Right, Ranges),
}

/// Those who wait for each other's renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circle {
    Everybody,
    UnknownCookie,
    Authorization,
    Nobody,
}

impl Circle {
    fn of(site: &Site, ask: &Ask) -> Circle {
        let rules = &site.config.rules;
        let honours = rules.policy(&ask.plan).request_directives == RequestControl::Honour;
        if honours && ask.facts().cache_control.no_store {
            return Circle::Nobody;
        }
        let has_authorization = ask.headers.contains_key(AUTHORIZATION);
        match (has_authorization, rules.has_strangers(&ask.plan)) {
            (true, _) => Circle::Authorization,
            (false, true) => Circle::UnknownCookie,
            (false, false) => Circle::Everybody,
        }
    }

    /// The key by which its requests find each other. What rules add to a page's key has a space.
    fn key<'a>(self, of_page: &'a [u8]) -> Cow<'a, [u8]> {
        let circle: &[u8] = match self {
            Circle::Everybody => return Cow::Borrowed(of_page),
            Circle::UnknownCookie => b"\nunknown-cookie",
            Circle::Authorization => b"\nauthorization",
            Circle::Nobody => b"\nnobody",
        };
        Cow::Owned([of_page, circle].concat())
    }

    fn joins_everybody(self) -> bool {
        matches!(self, Circle::UnknownCookie | Circle::Nobody)
    }

    fn turn(self, site: &Site, ask: &Ask, arrival: Number) -> Turn<Waiter> {
        if self == Circle::Nobody {
            return Turn::Alone(SoloRender {
                lease: site.store.lease(),
                why: SoloReason::NotShareable,
            });
        }
        let key = self.key(&ask.key);
        site.fills.turn(&site.store, site.store.key(&key), arrival, now_ms(site), Waiter::new)
    }
}

/// Whether what is rendered for the request may be for its client alone, who has `Authorization` or an unknown
/// cookie.
pub(super) fn is_personal(site: &Site, ask: &Ask) -> bool {
    ask.headers.contains_key(AUTHORIZATION) || site.config.rules.has_strangers(&ask.plan)
}

fn now_ms(site: &Site) -> u64 {
    site.clock.now().0
}

/// Forgets that the page was not shareable: what was rendered for `ask` has been stored, for all.
pub(super) fn shareable(site: &Site, ask: &Ask) {
    site.fills.shareable(site.store.key(&ask.key));
    let circle = Circle::of(site, ask);
    if circle != Circle::Everybody {
        site.fills.shareable(site.store.key(&circle.key(&ask.key)));
    }
}

/// The right to render a page anew for nobody in particular; none where that is being done, or has shown
/// to be of no use.
pub(super) fn to_refresh(site: &Site, ask: &Ask) -> Option<Right> {
    let circle = Circle::of(site, ask);
    match circle.turn(site, ask, site.store.number()) {
        Turn::Lead(leader) => Some(Right::Lead(leader)),
        // Not shareable lately, but there is a page: it is worth trying.
        Turn::Alone(SoloRender { lease, why: SoloReason::NotShareable })
            if circle == Circle::Everybody =>
        {
            Some(Right::Alone(lease))
        }
        Turn::Alone(_) | Turn::Follow(_) => None,
    }
}

/// Takes turns for a request that arrived at `arrival`, until another's render has answered it or it has
/// the right to render.
pub(super) async fn taken(site: &Arc<Site>, ask: &Ask, arrival: Number) -> Taken {
    let circle = Circle::of(site, ask);
    let joins = || site.fills.join(site.store.key(&ask.key), arrival, now_ms(site));
    let mut joined = if circle.joins_everybody() { joins() } else { None };
    let mut failed_before = false;
    let mut next = None;
    for _ in 0..TURNS_MAX {
        let is_everybodys = joined.is_some();
        let follower = match joined.take() {
            Some(follower) => follower,
            None => match next.take().unwrap_or_else(|| circle.turn(site, ask, arrival)) {
                Turn::Lead(leader) => return Taken::Right(Right::Lead(leader), Ranges::Cut),
                Turn::Alone(alone) => return by_itself(site, ask, alone),
                Turn::Follow(follower) => follower,
            },
        };
        match follow(site, ask, &follower, failed_before).await {
            Followed::Answered(response) => return Taken::Answer(response),
            Followed::Failed => failed_before = true,
            Followed::Refused => {}
        }
        if !is_everybodys {
            next = Some(site.fills.again(&site.store, follower, now_ms(site), Waiter::new));
        }
    }
    let right = match next {
        Some(Turn::Lead(leader)) => Right::Lead(leader),
        Some(Turn::Alone(SoloRender { lease, .. })) => Right::Alone(lease),
        Some(Turn::Follow(_)) | None => Right::Alone(site.store.lease()),
    };
    Taken::Right(right, Ranges::Cut)
}

fn by_itself(site: &Site, ask: &Ask, SoloRender { lease, why }: SoloRender) -> Taken {
    match why {
        SoloReason::NotShareable => Taken::Unshared(Right::Alone(lease), ask.for_range()),
        SoloReason::TooManyFollowers => {
            site.counters.reached.note(Limit::Followers);
            Taken::Right(Right::Alone(lease), Ranges::Cut)
        }
    }
}

/// What came of waiting for another's render.
enum Followed {
    Answered(Response<ResponseBody>),
    /// It may not be shared, or was given up: another turn has to be taken.
    Refused,
    /// It has failed, perhaps by its own doing: another turn has to be taken, once.
    Failed,
}

/// Waits for another's render.
async fn follow(
    site: &Arc<Site>,
    ask: &Ask,
    follower: &Follower<Waiter>,
    failed_before: bool,
) -> Followed {
    let _following = site.counters.followers.during();
    let mut outcome = follower.waiter().outcome.subscribe();
    // The follower itself keeps the sender alive: that there is an outcome is up to `Right`.
    let outcome = match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone(),
        Err(_) => None,
    };
    match outcome {
        Some(Outcome::Page(page)) => shared(site, ask, follower, &page),
        Some(Outcome::Failed(failure)) => failed(site, ask, failure, failed_before),
        Some(Outcome::NotShareable | Outcome::GivenUp) | None => Followed::Refused,
    }
}

/// Shares the page of another's render, where that may be.
fn shared(site: &Arc<Site>, ask: &Ask, follower: &Follower<Waiter>, page: &SharedPage) -> Followed {
    let stored = &page.payload().stored;
    let mut made_from = site.dependencies(stored, ask.target.page(), None);
    made_from.place(site.store.key(page.key().bytes()), page.variant());
    if follower.may_share(&site.store, &made_from).is_err() {
        site.counters.joins_refused.add();
        return Followed::Refused;
    }
    let facts = ask.facts();
    let now = site.clock.now();
    let (fields, rendered) = (AsSent(&*ask.headers), StoredPages::Rendered(page));
    let verdict = lookup::choose(site, &facts, &fields, &ask.plan, rendered, now);
    let Verdict::Reuse { answer, .. } = verdict else { return Followed::Refused };
    site.counters.collapsed.add();
    page.serve();
    codings::wanted(site, &facts, page);
    let mut status = ask.status();
    status.collapsed = true;
    status.ttl_seconds = Some(stored.ttl_seconds(now));
    Followed::Answered(serve::page(&facts, page, answer, now, &status))
}

/// A failure that says something of the origin is everybody's at once, any other when it happens again: so
/// nobody waits for more than two renders that fail.
fn failed(site: &Arc<Site>, ask: &Ask, failure: Failure, failed_before: bool) -> Followed {
    let is_of_origin = match failure {
        Failure::Refused | Failure::TimedOut | Failure::Overloaded => true,
        Failure::HungUp | Failure::InvalidResponse | Failure::Status(_) => false,
    };
    if is_of_origin || failed_before {
        return Followed::Answered(on_failure(site, ask, failure, Recipient::Client));
    }
    let stale = matches!(failure, Failure::Status(_))
        .then(|| stale_on(site, ask, failure, Recipient::Client));
    stale.flatten().map_or(Followed::Failed, Followed::Answered)
}
