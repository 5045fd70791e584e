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
//! automatic dependencies that may be for everybody (`admission`), unless the page could not be stored when it, its
//! path or its script was last rendered (`statements::footprints::RenderProperties`). Any other request goes to the
//! origin as its client has sent it. The response is never stored as a page that declares nothing.

use super::{Render, admission};
use config::Automatic;
use http::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use known_names::personal::{is_personal_field, is_personal_value};
use origin::routes::Script;
use reasons::Reason;
use statements::footprints::PageProperty;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;

/// The address that a script gets for a page that may be stored: one for documentation (RFC 5737), which no client
/// has, and which no application trusts.
pub(super) const FIXED_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);

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

impl Render {
    /// Decides whether the next origin request has fixed values in place of the client's own. Renders without a
    /// client always have.
    pub(super) fn fix(&mut self, script: Option<&Script>) {
        let (site, ask) = (&self.site, &self.ask);
        let is_everybodys = ask.owner.is_none()
            && (self.answer.is_none() || admission::is_everybodys(site, ask))
            && site.footprints.settings().is_some();
        self.names = is_everybodys.then(|| {
            let path = ask.target.page().split('?').next().unwrap_or_default();
            let path = [ask.target.host.as_bytes(), path.as_bytes()].concat();
            let script = script.map(|script| script.filename.as_os_str().as_bytes());
            site.footprints.pages.names(&ask.key, &path, script.unwrap_or_default())
        });
        self.is_fixed = is_everybodys
            && (self.answer.is_none() || self.has(PageProperty::Storable).unwrap_or(true));
        if self.is_fixed && self.has(PageProperty::ByLanguage) == Some(true) {
            self.ask.send_language();
        }
    }

    /// The address of the client, for the script.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        if self.is_fixed { Some(FIXED_ADDRESS) } else { self.ask.client.peer }
    }

    /// Remembers whether the page can be stored: if not, its renders get the request as it was sent.
    pub(super) fn note_storable(&self, is_storable: bool) {
        self.note(PageProperty::Storable, is_storable);
    }

    /// Remembers whether the page varies by `Accept-Language`: if so, its renders get the field at once.
    pub(super) fn note_language(&self, headers: &HeaderMap) {
        let is_named = |value: &HeaderValue| {
            let text = String::from_utf8_lossy(value.as_bytes());
            text.split(',').any(|name| name.trim().eq_ignore_ascii_case(ACCEPT_LANGUAGE.as_str()))
        };
        self.note(PageProperty::ByLanguage, headers.get_all(VARY).iter().any(is_named));
    }

    fn note(&self, property: PageProperty, has_it: bool) {
        if let Some(names) = self.names {
            let now_ms = self.site.clock.now().0;
            self.site.footprints.pages.note(property, names, has_it, now_ms);
        }
    }

    fn has(&self, property: PageProperty) -> Option<bool> {
        let now_ms = self.site.clock.now().0;
        self.names.and_then(|names| self.site.footprints.pages.has(property, names, now_ms))
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
