//! Cache warming after changes: pages that a change has purged or marked are fetched again in the
//! background. The most used pages come first, at a limited rate, with a request of a client
//! without cookies.
//!
//! Invariants: a background fetch starts only while there is capacity for concurrent origin
//! requests and no client's request is queued. It collapses with other renders (`render::refresh`),
//! so no page is rendered twice at once, and its lease decides whether it is stored. Only pages for
//! all clients are fetched. The store checks this when a page is touched (`StoredPage::audience`).
//! Then the key is computed again for a request without further header fields. If the key differs,
//! or the rules bypass this request, the page waits for its next client. Not here: the choice of
//! the pages (`page_store`), and renders that a stale hit starts.

use crate::{RefreshOutcome, RenderRequest, refresh};
use delivery::lookup::decide_on;
use delivery::site::Site;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use http_cache::{ForwardReason, Reuse, Verdict};
use page_store::KeyBuf;
use request_values::target::TargetUri;
use site_rules::Handling;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::client::{Client, ClientConnection};
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_fields::{AsSent, read_facts, view_of};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The `User-Agent` that the application receives.
const USER_AGENT: HeaderValue = HeaderValue::from_static("pagewell-rewarm");

/// How long a page waits if a change invalidated its render. Most changes have settled by then.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often a page is tried before it is left to its next client.
const TRIES_MAX: u8 = 5;
/// The most pages that wait for another attempt; further ones are left to their next clients.
const AGAIN_MAX: usize = 256;

/// A page to fetch, and the number of attempts so far.
struct WarmingEntry {
    key: KeyBuf,
    tries: u8,
}

/// Fetches purged and marked pages until the server stops. Returns immediately if warming is
/// disabled.
pub async fn run(site: Arc<Site>, mut stop: PhaseWatch) {
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
            // With the current rules, and only if no client has had the page fetched in the
            // meantime.
            let Some((site, ask, wanted)) = next(&site.now(), &again) else { break };
            tokio::spawn(render(site, ask, wanted, again.clone(), place));
        }
    }
}

async fn render(
    site: Arc<Site>,
    ask: RenderRequest,
    wanted: WarmingEntry,
    again: Arc<Again>,
    place: OwnedSemaphorePermit,
) {
    site.counters.rewarmed.add();
    if refresh(site, ask).await == RefreshOutcome::Overtaken {
        again.add(wanted);
    }
    drop(place);
}

/// Pages whose render was invalidated by a change, with the time of the next attempt, earliest
/// first.
#[derive(Default)]
struct Again {
    waiting: Mutex<VecDeque<(Instant, WarmingEntry)>>,
    added: Notify,
}

impl Again {
    fn add(&self, WarmingEntry { key, tries }: WarmingEntry) {
        let mut waiting = self.lock();
        if tries < TRIES_MAX && waiting.len() < AGAIN_MAX {
            waiting.push_back((Instant::now() + AGAIN_AFTER, WarmingEntry { key, tries }));
            self.added.notify_one();
        }
    }

    fn is_due(&self) -> bool {
        self.lock().front().is_some_and(|(at, _)| *at <= Instant::now())
    }

    fn take(&self) -> Option<WarmingEntry> {
        let mut waiting = self.lock();
        waiting.pop_front_if(|(at, _)| *at <= Instant::now()).map(|(_, wanted)| wanted)
    }

    /// Completes when a page is due.
    async fn due(&self) {
        loop {
            let first = self.lock().front().map(|(at, _)| *at);
            match first {
                Some(at) => return tokio::time::sleep_until(at).await,
                None => self.added.notified().await,
            }
        }
    }

    /// After a panic the list may be incomplete, which costs at most a fetch.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, WarmingEntry)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the next fetch may start: for the pause, for the fetches in progress, and for
/// clients.
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

/// Returns the next page to fetch that is not stored and fresh already.
fn next(site: &Arc<Site>, again: &Again) -> Option<(Arc<Site>, RenderRequest, WarmingEntry)> {
    let first = || Some(WarmingEntry { key: site.store.next_to_rewarm()?, tries: 0 });
    while let Some(WarmingEntry { key, tries }) = again.take().or_else(first) {
        let Some(ask) = ask(site, &key) else { continue };
        let facts = read_facts(&ask.method, &ask.headers);
        let (_, verdict) = decide_on(site, &facts, &ask.headers, &ask.plan, &ask.key);
        if !matches!(verdict, Verdict::Reuse { state: Reuse::Fresh, .. }) {
            return Some((site.clone(), ask, WarmingEntry { key, tries: tries + 1 }));
        }
    }
    None
}

/// Returns the request of a client without cookies for the page with this key; `None` if such a
/// client would not get that page.
fn ask(site: &Arc<Site>, key: &KeyBuf) -> Option<RenderRequest> {
    let bytes = key.as_key().bytes();
    let target = TargetUri::of_key(bytes)?;
    let target = site.shared(&target).unwrap_or(target);
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, USER_AGENT);
    headers.insert(header::HOST, HeaderValue::from_str(&target.host).ok()?);
    let client = Client::of(ClientConnection::none(target.scheme).into());
    let fields = AsSent(&headers);
    let view = view_of(&target, &Method::GET, &fields, &client);
    let rules = &site.config.rules;
    let plan = rules.plan(&view, site.load(), site.clock.now().0);
    let mut own = Vec::with_capacity(bytes.len());
    target.write_key(&mut own);
    rules.write_key(&plan, &fields, &mut own);
    if plan.handling != Handling::Store || own != bytes {
        return None;
    }
    let asked = (Method::GET, Version::HTTP_11, Arc::new(headers));
    Some(RenderRequest::of_page((target, own, plan), asked, client, ForwardReason::Stale))
}
