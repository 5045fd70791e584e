//! Redirects before hyper: of a plain request that no page or file answers, by a rule, a file or the canonical host.
//!
//! `exchange` decides, by the table of its steps. A site without redirects only compares a flag, and no hit does. The
//! rules of a request that is not redirected are not compared again for it: their number goes with it.

use super::find::{ConnectionPeer, Key, NoHit};
use super::read::PlainRequest;
use super::send::{FoundHit, HitForm, HitParts};
use delivery::site::Site;
use exchange::{PlainAsked, PlainStep};
use http_cache::Timestamp;
use std::time::Instant;
use stored_pages::page::Section;

/// Whether the site redirects any request.
pub(super) fn may_be(site: &Site) -> bool {
    site.config.rules.has_redirects() || site.config.hosts.redirect.is_some()
}

/// Whether a target has a character that the HTTP library refuses. No page is stored under such a target.
fn has_refused(target: &str) -> bool {
    target.bytes().fold(false, |any, byte| any | matches!(byte, b'"' | b'<' | b'>' | b'`'))
}

/// Returns the redirect that answers the request. `sites`: the default site, and that of the host. `is_normal`: whether
/// target and host are in their normal form.
#[inline(never)]
pub(super) fn find(
    (default_site, site): (&Site, &Site),
    peer: &ConnectionPeer,
    (asked, key, is_normal): (&PlainRequest<'_>, &Key, bool),
    when: (Timestamp, Instant),
    content_max: usize,
) -> Result<(FoundHit, HitParts), NoHit> {
    // The rules do not see `Authorization` then, and the redirect may depend on it.
    if asked.password.is_some() || has_refused(asked.target) {
        return Err(NoHit::Other);
    }
    let client = asked.client(site, peer);
    let sent = asked.view(key, &client).ok_or(NoHit::Other)?;
    let redirect = match (PlainAsked { default_site, site, sent, is_normal }).step() {
        PlainStep::Redirected(redirect) => redirect,
        PlainStep::NotRedirected => return Err(NoHit::Unredirected(site.reading())),
        PlainStep::Unknown => return Err(NoHit::Other),
    };
    let length = redirect.form.content().len();
    if length > content_max {
        return Err(NoHit::Other);
    }
    site.counters.requests.add();
    site.counters.redirected.add();
    let form = HitForm { head: Section::Whole, coding: None, lines_bytes: 0, length };
    Ok((FoundHit::Redirect(redirect), asked.answered(form, when)))
}
