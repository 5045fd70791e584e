//! Pages that a change has dropped or marked, rendered anew in the background: the most used first, at a
//! bounded pace, by a request as a visitor without cookies would make it.
//!
//! Invariants: a render in the background begins only while a place at the origin is free and nobody waits
//! for one, so it takes nothing from visitors but what they leave; it takes its turn like any other
//! (`render::refresh`), so a page is never rendered twice at once, and it is stored or refused by its lease
//! like any other. Only pages that anybody gets are rendered so: the store asks the page when it is touched
//! (`StoredPage::audience`), and here the key is made once more, as for a request without header lines; where
//! that is another key, or the rules bypass such a request, the page is left to its visitors.
//!
//! What is not done here: choosing the pages (`page_store`), and renders that a stale hit starts.

use crate::exchange::{SaidBy, Visitor, view_of};
use crate::forward::{AsSent, read_facts};
use crate::lookup::decide_on;
use crate::origin::Besides;
use crate::phase::{Phase, Told};
use crate::render::{self, Ask, ExtraFields, Ranges, Refreshed};
use crate::site::Site;
use crate::target::Target;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use http_cache::{ForwardReason, Reuse, Verdict};
use page_store::KeyBuf;
use site_rules::{Handling, Peer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// What the application sees in `User-Agent`.
const USER_AGENT: HeaderValue = HeaderValue::from_static("pagewell-rewarm");

/// How long a page waits whose render a change has overtaken: by then, most changes have settled.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often a page is tried; then it is left to its visitors.
const TRIES_MAX: u8 = 5;
/// How many pages wait to be tried again; more are left to their visitors.
const AGAIN_MAX: usize = 256;

/// A page to be rendered, and how often that has been tried.
struct Wanted {
    key: KeyBuf,
    tries: u8,
}

/// Renders what changes leave behind, until the server stops. Ends at once where it is not wanted.
pub async fn run(site: Arc<Site>, mut stop: Told) {
    let Some(config) = site.config.rewarm.clone() else { return };
    let at_once = Arc::new(Semaphore::new(config.at_once));
    let again = Arc::new(Again::default());
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = site.rewarm.notified() => {}
            () = again.due() => {}
        }
        while again.is_due() || site.store.to_rewarm() > 0 {
            let place = tokio::select! {
                _ = stop.wait_for(Phase::is_leaving) => return,
                place = turn(&site, &at_once, config.pause) => place,
            };
            let Some(place) = place else { return };
            // By the rules that count now, and not where a visitor has had it rendered meanwhile.
            let Some((site, ask, wanted)) = next(&site.now(), &again) else { break };
            tokio::spawn(render(site, ask, wanted, again.clone(), place));
        }
    }
}

async fn render(
    site: Arc<Site>,
    ask: Ask,
    wanted: Wanted,
    again: Arc<Again>,
    place: OwnedSemaphorePermit,
) {
    site.counters.rewarmed.add();
    if render::refresh(site, ask).await == Refreshed::Overtaken {
        again.add(wanted);
    }
    drop(place);
}

/// Pages whose render a change has overtaken, and from when on they are tried again: the first to come
/// first.
#[derive(Default)]
struct Again {
    waiting: Mutex<VecDeque<(Instant, Wanted)>>,
    added: Notify,
}

impl Again {
    fn add(&self, Wanted { key, tries }: Wanted) {
        let mut waiting = self.lock();
        if tries < TRIES_MAX && waiting.len() < AGAIN_MAX {
            waiting.push_back((Instant::now() + AGAIN_AFTER, Wanted { key, tries }));
            self.added.notify_one();
        }
    }

    fn is_due(&self) -> bool {
        self.lock().front().is_some_and(|(at, _)| *at <= Instant::now())
    }

    fn take(&self) -> Option<Wanted> {
        let mut waiting = self.lock();
        waiting.pop_front_if(|(at, _)| *at <= Instant::now()).map(|(_, wanted)| wanted)
    }

    /// Ready when one is due.
    async fn due(&self) {
        loop {
            let first = self.lock().front().map(|(at, _)| *at);
            match first {
                Some(at) => return tokio::time::sleep_until(at).await,
                None => self.added.notified().await,
            }
        }
    }

    /// A list that is torn costs a render at worst.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Wanted)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the next render may begin: for its time, for those that are under way, for visitors.
async fn turn(
    site: &Site,
    at_once: &Arc<Semaphore>,
    pause: Duration,
) -> Option<OwnedSemaphorePermit> {
    // The semaphore is never closed.
    let place = at_once.clone().acquire_owned().await.ok()?;
    loop {
        tokio::time::sleep(pause).await;
        if site.origin.places().is_one_to_spare() {
            return Some(place);
        }
    }
}

/// The next page that is worth it and not there again already.
fn next(site: &Arc<Site>, again: &Again) -> Option<(Arc<Site>, Ask, Wanted)> {
    let first = || Some(Wanted { key: site.store.next_to_rewarm()?, tries: 0 });
    while let Some(Wanted { key, tries }) = again.take().or_else(first) {
        let Some(ask) = ask(site, &key) else { continue };
        let facts = read_facts(&ask.method, &ask.headers);
        let (_, verdict) = decide_on(site, &facts, &ask.headers, &ask.plan, &ask.key);
        if !matches!(verdict, Verdict::Reuse { state: Reuse::Fresh, .. }) {
            return Some((site.clone(), ask, Wanted { key, tries: tries + 1 }));
        }
    }
    None
}

/// The request of a visitor without cookies for the page of this key; `None` where such a visitor would
/// not get that page.
fn ask(site: &Arc<Site>, key: &KeyBuf) -> Option<Ask> {
    let bytes = key.as_key().bytes();
    let target = Target::of_key(bytes)?;
    let target = site.shared(&target).unwrap_or(target);
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, USER_AGENT);
    headers.insert(header::HOST, HeaderValue::from_str(&target.host).ok()?);
    let scheme = target.scheme;
    let besides = Besides::default();
    let (believed, said_by) = (Peer::Anybody, SaidBy::Socket);
    let visitor = Visitor { peer: None, local: None, believed, said_by, scheme, besides };
    let fields = AsSent(&headers);
    let view = view_of(&target, &Method::GET, &fields, &visitor);
    let rules = &site.config.rules;
    let plan = rules.plan(&view, site.load(), site.clock.now().0);
    let mut own = Vec::with_capacity(bytes.len());
    target.write_key(&mut own);
    rules.write_key(&plan, &fields, &mut own);
    if plan.handling != Handling::Store || own != bytes {
        return None;
    }
    Some(Ask {
        target,
        key: own,
        method: Method::GET,
        headers: Arc::new(headers),
        version: Version::HTTP_11,
        visitor,
        plan,
        why: ForwardReason::Stale,
        validate: None,
        fallback: None,
        ranges: Ranges::Cut,
        owner: None,
        extra_fields: ExtraFields::default(),
    })
}
