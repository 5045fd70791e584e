//! Pages that declare nothing (automatic dependencies): what is fixed for their render, and what in a response is
//! taken for personal. Silence is no consent, so such a page is stored only if nothing in it can be one client's.
//!
//! | of the request | in a render whose response may be stored |
//! |---|---|
//! | `User-Agent` | one value for each class of devices; the class selects the variant (`site_rules::PlannedFields`) |
//! | `Accept-Language` | left out, unless a rule has `language`, or `Vary` names the field |
//! | the client's address | [`FIXED_ADDRESS`]; the access log keeps the true one |
//!
//! Before a render it is not known whether its page declares anything, so this holds for every render of a site with
//! automatic dependencies. A response that only its client gets is rendered as the client has sent the request: for
//! own requests (`fields`), and for pages that could recently not be stored ([`AS_SENT_MS`]). Such a response is never
//! stored as a page that declares nothing.

use super::{Render, RenderRequest};
use config::Automatic;
use delivery::site::Site;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reasons::Reason;
use site_rules::{is_personal_field, is_personal_value};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address that a script gets for a page that may be stored: one for documentation (RFC 5737), which no client
/// has, and which no application trusts.
const FIXED_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);
/// How long the renders of a page that cannot be stored get the request as it was sent, in milliseconds. It ends
/// with the first response that could be stored.
const AS_SENT_MS: u64 = 3_600_000;
/// The end of the key under which this is remembered. Key parts added by rules contain a space.
const AS_SENT: &[u8] = b"\nas-sent";


/// The media types of pages, style sheets and scripts. Types that end with `+xml` are feeds and the like.
const PAGES: &[&str] = &[
    "application/javascript",
    "application/xml",
    "text/css",
    "text/html",
    "text/javascript",
    "text/plain",
    "text/xml",
];

/// Checks that nothing in a response that declares nothing is one client's.
///
/// # Errors
/// The reason not to store it.
pub(super) fn check(
    automatic: &Automatic,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<(), Reason> {
    let is_personal = |(name, value): (&HeaderName, &HeaderValue)| {
        is_personal_field(name.as_str()) || is_personal_value(value.as_bytes())
    };
    if headers.iter().any(is_personal) {
        return Err(Reason::PersonalField);
    }
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|text| text.split(';').next()).unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    let is_page = match &*media_type {
        "" => status.is_redirection() || status == StatusCode::NO_CONTENT,
        media_type => {
            PAGES.contains(&media_type)
                || media_type.ends_with("+xml")
                || automatic.content_types.iter().any(|named| fits(named, media_type))
        }
    };
    if is_page { Ok(()) } else { Err(Reason::ContentType) }
}

/// Whether a media type is the named one; a `*` at the end stands for anything.
fn fits(named: &str, media_type: &str) -> bool {
    match named.strip_suffix('*') {
        Some(begin) => media_type.starts_with(begin),
        None => named == media_type,
    }
}

impl RenderRequest {
    /// Whether the client alone gets the response, so that its request goes to the origin as it was sent.
    fn is_as_sent(&self, site: &Site) -> bool {
        self.is_own(site)
            || site.fills.is_marked(site.store.key(&self.as_sent_key()), site.clock.now().0)
    }

    fn as_sent_key(&self) -> Vec<u8> {
        [&self.key, AS_SENT].concat()
    }
}

impl Render {
    /// Whether the next origin request has fixed values in place of the client's own.
    pub(super) fn fixes_request(&self) -> bool {
        let is_for_client = self.answer.is_some() && self.ask.is_as_sent(&self.site);
        self.ask.owner.is_none() && self.site.footprints.settings().is_some() && !is_for_client
    }

    /// The address of the client, for the script.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        if self.is_fixed { Some(FIXED_ADDRESS) } else { self.ask.client.peer }
    }

    /// Remembers whether the page can be stored: renders of one that cannot get the request as it was sent.
    pub(super) fn note_storable(&self, is_storable: bool) {
        let site = &self.site;
        if self.ask.owner.is_some() || site.footprints.settings().is_none() {
            return;
        }
        let key = self.ask.as_sent_key();
        let key = site.store.key(&key);
        match is_storable {
            true if !self.is_fixed => site.fills.shareable(key),
            false if self.is_fixed => site.fills.mark(key, site.clock.now().0 + AS_SENT_MS),
            true | false => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_named_in_full_or_by_their_beginning() {
        assert!(fits("application/json", "application/json"));
        assert!(fits("application/*", "application/json"));
        assert!(!fits("application/json", "application/json+ld"));
    }
}
