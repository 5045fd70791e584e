//! The dependencies of private copies, and their invalidation: by each unsafe request of the owner, a response
//! that sets one of the owner's cookies, a purge with private scope.
//!
//! A copy depends on each cookie of its owner separately, so a request with any of them invalidates it.
//! Names of owners begin with a byte that no field can contain; a hash collision only invalidates too
//! much. Answering with copies, and storing them, is in `private`.

use config::PrivateCopies;
use delivery::esi;
use delivery::site::Site;
use history::ChangeSource;
use http::{HeaderMap, HeaderValue, header};
use http_cache::litespeed::{CacheControl, Purge, PurgeTarget, Scope, Switch};
use http_cache::{FieldUse, StoredResponse};
use origin::OriginResponse;
use page_store::{ChangeTarget as Changed, Dependencies, Strength};
use site_rules::Owner;
use site_state::signed_in_marks::MarkOf;
use telemetry::request_fields::AsSent;
use xxhash_rust::xxh3::xxh3_128;

/// Adds to a copy's dependencies that it belongs to its owner, once for each of the owner's
/// cookies.
pub fn depend(dependencies: &mut Dependencies, owner: &Owner, stored: &StoredResponse, page: &str) {
    dependencies.owner(&owner.cookies.join(&b'\n'));
    for cookie in &owner.cookies {
        dependencies.tag(&name(cookie, CopySelection::Everything));
        dependencies.tag(&name(cookie, CopySelection::Url(page)));
        for tag in stored.extras().owner_tags.iter() {
            dependencies.tag(&name(cookie, CopySelection::Tag(tag)));
        }
    }
}

/// The subset of an owner's copies to name.
#[derive(Clone, Copy)]
enum CopySelection<'a> {
    Everything,
    Url(&'a str),
    Tag(&'a [u8]),
}

/// The tag of an owner's copies; no field of a response can contain it.
fn name(cookie: &[u8], what: CopySelection<'_>) -> Vec<u8> {
    let (kind, of): (&[u8], &[u8]) = match what {
        CopySelection::Everything => (b"\0owner ", b""),
        CopySelection::Url(url) => (b"\0owner-url ", url.as_bytes()),
        CopySelection::Tag(tag) => (b"\0owner-tag ", tag),
    };
    [kind, &xxh3_128(cookie).to_be_bytes(), &xxh3_128(of).to_be_bytes()].concat()
}

/// Returns the cookies of a request that identify its owner, for invalidation. It is empty if the
/// site stores no private copies.
fn cookies(site: &Site, request: &HeaderMap) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if let Some(copies) = &site.config.private {
        copies.cookies.each(&AsSent(request), &mut |cookie| found.push(cookie.to_vec()));
    }
    found
}

/// Invalidates every copy of the owner that sent these lines.
fn drop_all(site: &Site, request: &HeaderMap) {
    let names: Vec<_> = cookies(site, request)
        .iter()
        .map(|cookie| name(cookie, CopySelection::Everything))
        .collect();
    change(site, &names, Strength::Drop);
}

fn change(site: &Site, names: &[Vec<u8>], strength: Strength) {
    let changed: Vec<Changed<'_>> = names.iter().map(|name| Changed::Tag(name)).collect();
    if !changed.is_empty() {
        site.changes().apply(&changed, strength, ChangeSource::Client);
    }
}

/// Invalidates the owner's copies after an unsafe request was sent to the origin, whatever the
/// response was, and without one. RFC 9111 section 4.4 requires less. LiteSpeed's `no-autoflush`
/// prevents it.
pub fn wrote(site: &Site, request: &HeaderMap, response: Option<&OriginResponse>) {
    let said = response.and_then(|response| CacheControl::read(&response.headers));
    let obeyed = site.config.dialects.litespeed == FieldUse::Obey;
    if obeyed && said.is_some_and(|said| said.no_autoflush == Switch::On) {
        return;
    }
    drop_all(site, request);
}

/// Invalidates the owner's copies if the response sets one of the owner's cookies, as at login and
/// logout.
pub fn signed(site: &Site, request: &HeaderMap, response: &HeaderMap) {
    let Some(copies) = &site.config.private else { return };
    let lines = || response.get_all(header::SET_COOKIE).iter().map(HeaderValue::as_bytes);
    if lines().any(|line| copies.cookies.are_set_by(line)) {
        drop_all(site, request);
        forget(site, request);
    } else if lines().any(|line| site.config.rules.sets_vary_cookie(line)) {
        forget(site, request);
    }
}

/// Ends the confirmation of the visitor that sent these lines.
fn forget(site: &Site, request: &HeaderMap) {
    if esi::is_litespeeds(site)
        && let Some(copies) = &site.config.private
        && let Ok(cookies) = site.config.rules.session_and_vary_cookies(&AsSent(request))
    {
        // A response that is on its way must not confirm them again.
        let ended = site.signed_in.mark(MarkOf::Ended, &cookies);
        site.signed_in.add(ended, (site.clock.now().0, lifetime_ms(copies)));
    }
}

/// The longest lifetime of a private copy, in milliseconds.
pub fn lifetime_ms(copies: &PrivateCopies) -> u64 {
    u64::try_from(copies.lifetime_max.as_millis()).unwrap_or(u64::MAX)
}

/// Applies purges with private scope to the copies of the client that sent the request.
pub fn purged<'p>(
    site: &Site,
    request: &HeaderMap,
    purges: impl Iterator<Item = &'p Purge>,
    strength: Strength,
) {
    let mut private = purges.filter(|purge| purge.scope != Scope::Public).peekable();
    if private.peek().is_none() {
        return;
    }
    let cookies = cookies(site, request);
    let form = site.config.rules.form();
    let mut names = Vec::new();
    for purge in private {
        for cookie in &cookies {
            names.push(match &purge.what {
                PurgeTarget::Tag(tag) => name(cookie, CopySelection::Tag(tag)),
                PurgeTarget::Url(url) => name(cookie, CopySelection::Url(&form.normal(url).page)),
                PurgeTarget::Everything => name(cookie, CopySelection::Everything),
            });
        }
    }
    change(site, &names, strength);
}

#[cfg(test)]
#[path = "owner_copies_tests.rs"]
mod tests;
