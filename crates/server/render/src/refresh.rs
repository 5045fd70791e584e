//! Renders in the background, for which no client waits: the refresh of a stale page, cache warming, and the render
//! for everybody that follows an own request (`superseded`).
//!
//! Invariants: such a render is sent without what only one client has sent, but for what selects the stored page. If
//! it would be another page then, there is none. The page is looked up again after its turn, because another render
//! may have stored it.

use super::{Render, RenderPermit, RenderRequest, admission, superseded};
use delivery::lookup::decide_on;
use delivery::site::Site;
use forward::{Answerer, answerer};
use http::header::AUTHORIZATION;
use http_cache::{Reuse, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The result of refreshing a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// The page was stored, or cannot be: another attempt would have the same result.
    Done,
    /// A dependency changed during the refresh, or another render is in progress that may have
    /// begun before the change.
    Overtaken,
}

/// Refreshes a page in the background, unless a render of it is in progress already.
pub async fn refresh(site: Arc<Site>, mut ask: RenderRequest) -> RefreshOutcome {
    let nominated = ask.fallback.as_ref().map(|page| page.payload().stored.nominated());
    if ask.headers.contains_key(AUTHORIZATION)
        || ask.is_own_beside(&site, &nominated.cloned().unwrap_or_default())
    {
        let Some(all) = superseded::for_everybody(&site, &ask) else { return RefreshOutcome::Done };
        ask = all;
    }
    let Some(right) = admission::to_refresh(&site, &ask) else { return RefreshOutcome::Overtaken };
    refresh_by(site, ask, right).await
}

/// Renders a page in the background by this right.
pub(super) async fn refresh_by(
    site: Arc<Site>,
    mut ask: RenderRequest,
    right: RenderPermit,
) -> RefreshOutcome {
    let answerer = answerer(&site, ask.routed(), &ask.facts()).await;
    let Answerer::Origin(script) = answerer else { return RefreshOutcome::Done };
    // Another refresh may have ended between the look-up that found the page stale and this turn.
    let (candidates, verdict) = decide_on(&site, &ask.facts(), &ask.headers, &ask.plan, &ask.key);
    if matches!(verdict, Verdict::Reuse { state: Reuse::Fresh, .. }) {
        return RefreshOutcome::Done;
    }
    ask.look_again(&candidates, verdict);
    let (render, outcome) = Render::for_nobody(&site, ask, right);
    render.run(script).await;
    if outcome.is_outdated.load(Relaxed) { RefreshOutcome::Overtaken } else { RefreshOutcome::Done }
}
