//! Applies the site's rules to a request before it is looked up: the plan, the cache key, and the reason
//! if the request bypasses the cache. Also decides whether a background refresh may begin now.
//! `exchange`, `render` and `explain` use the same functions.

use crate::site::Site;
use http::{HeaderMap, Method};
use reasons::Reason;
use request_values::steering_fields::is_from_clients;
use request_values::target::TargetUri;
use site_rules::{BypassBecause, Handling, Owner, Plan, SiteRules};
use telemetry::client::Client;
use telemetry::request_fields::AsSent;
use telemetry::request_fields::view_of;

/// Whether a background refresh may begin: clients that wait for a page have priority. If it may
/// not, the next request that gets the stale page tries again.
pub fn may_refresh(site: &Site) -> bool {
    let may = site.origin.places().is_one_to_spare();
    if !may {
        site.counters.refreshes_put_off.add();
    }
    may
}

/// Applies the rules to a request. Returns the plan, and the key of the page that would answer it.
pub fn plan(
    site: &Site,
    method: &Method,
    headers: &HeaderMap,
    target: &TargetUri,
    client: &Client,
) -> (Plan, Vec<u8>) {
    let rules = &site.config.rules;
    let fields = AsSent(headers);
    let view = view_of(target, method, &fields, client);
    let mut plan = rules.plan(&view, site.load(), site.clock.now().0);
    if plan.handling == Handling::Store
        && let Some(because) = bypassing_field(rules, &plan, headers)
    {
        plan = plan.bypassing(because);
    }
    let mut key = Vec::with_capacity(128);
    target.write_key(&mut key);
    rules.write_key(&plan, &fields, &mut key);
    mark_fragment(client, &mut key);
    (plan, key)
}

/// The end of the key of a fragment of LiteSpeed's ESI. The application renders it for the page around
/// it, so it is not the page that has the same URL. No other part of a key is equal.
const FRAGMENT_PART: &[u8] = b"\nfragment";

/// Appends to the key that the request is for a fragment of LiteSpeed's ESI, if it is.
pub fn mark_fragment(client: &Client, key: &mut Vec<u8>) {
    if client.extras.fragment.is_some() {
        key.extend_from_slice(FRAGMENT_PART);
    }
}

/// The key of an owner's copy. It contains the target as the client sent it, because the origin
/// gets that target.
pub fn copy_key(
    site: &Site,
    (target, client): (&TargetUri, &Client),
    plan: &Plan,
    owner: &Owner,
    headers: &HeaderMap,
) -> Vec<u8> {
    let mut key = Vec::with_capacity(256);
    TargetUri { normal: None, written: None, ..target.clone() }.write_key(&mut key);
    site.config.rules.write_key(plan, &AsSent(headers), &mut key);
    mark_fragment(client, &mut key);
    key.extend_from_slice(&owner.key);
    key
}

/// Returns the reason if one of the fields that the origin would get makes the request bypass the
/// cache.
pub fn bypassing_field(
    rules: &SiteRules,
    plan: &Plan,
    headers: &HeaderMap,
) -> Option<BypassBecause> {
    headers.iter().find_map(|(name, value)| {
        let name = name.as_str();
        rules.field_bypasses(plan, name, value.as_bytes()).filter(|_| is_from_clients(name))
    })
}

/// Records for explanations that a request bypasses the cache, and the cookies that cause it.
pub fn tell_bypassed(
    site: &Site,
    headers: &HeaderMap,
    target: &TargetUri,
    plan: &Plan,
    reason: Reason,
) {
    let cookies = site.config.rules.bypassing_cookies(plan, &AsSent(headers));
    site.history.bypassed(target, reason, &cookies);
}
