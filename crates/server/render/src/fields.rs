//! Selects the fields of the client's request that a render forwards to the origin.
//!
//! | fields | forwarded | the response |
//! |---|---|---|
//! | those that all renders have, those in the key, and harmless ones (`site_rules::SiteRules::sends_field`) | yes | may be stored |
//! | custom fields | yes (RFC 9110 section 5.1) | is for this client only, unless its `Vary` names each of them |
//! | dropped fields that `Vary` of a page stored under the key names | yes | may be stored, for this value |
//! | dropped fields that only this response's `Vary` names | in a second request, if the response may be stored | is discarded |
//! | other dropped fields, method overrides | no | may be stored |
//!
//! A response for one client only ends no stored page either, and so does one to a request with an unknown cookie.
//! If the application marks it as shared, the page is rendered for everybody in the background, without these
//! fields and cookies (`superseded`). So a `GET` reaches the origin once, and no client chooses what others get
//! (RFC 9111 section 4.1).
//!
//! Invariants: a response to a request with a field that is neither in the key nor in `Vary` is not stored
//! ([`may_store`]). Every stored response was requested with all of the client's fields that its `Vary` names.

use super::{OriginTimes, RenderRequest};
use delivery::site::Site;
use http::header::ACCEPT_LANGUAGE;
use http::{HeaderMap, HeaderName};
use http_cache::variants::NominatedFields;
use http_cache::{Fields, StoredResponse};
use page_store::Candidates;
use reasons::Reason;
use site_rules::PlannedFields;
use stored_pages::page::StoredPage;
use telemetry::request_fields::{AsSent, METHOD_OVERRIDES};

/// Fields that Pagewell writes itself, or that do not choose a variant here.
const WRITTEN_HERE: [&str; 8] = [
    "accept-encoding",
    "range",
    "if-range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "via",
];

/// The fields that are forwarded in addition to those of all renders, and to custom ones.
#[derive(Clone, Debug, Default)]
pub struct ExtraFields {
    /// The fields that `Vary` names.
    named: Vec<HeaderName>,
    /// Whether the request has nothing of a visitor (`reference::neutral`).
    pub(super) is_neutral: bool,
}

impl RenderRequest {
    /// Whether the field of this name (in lower case) goes to the origin. `is_fixed`: with fixed values in place of
    /// the client's own.
    pub(super) fn sends(&self, site: &Site, name: &str, is_fixed: bool) -> bool {
        if is_fixed && name == ACCEPT_LANGUAGE.as_str() {
            return self.is_named(name);
        }
        !METHOD_OVERRIDES.contains(&name)
            && (site.config.rules.sends_field(name) || self.sends_extra(site, name))
    }

    fn sends_extra(&self, site: &Site, name: &str) -> bool {
        let rules = &site.config.rules;
        !rules.sends_field(name)
            && rules.may_send_field(&self.plan, name)
            && !METHOD_OVERRIDES.contains(&name)
            && (self.is_named(name) || rules.is_custom_field(name))
    }

    /// Sends `Accept-Language`, which renders with fixed values leave out.
    pub(super) fn send_language(&mut self) {
        if !self.is_named(ACCEPT_LANGUAGE.as_str()) {
            self.extra_fields.named.push(ACCEPT_LANGUAGE);
        }
    }

    /// The response with `Accept-Language` in its variant, if a request with fixed values has sent it: other responses
    /// of the script vary by it, so this one may depend on it.
    pub(super) fn with_language(&self, stored: &mut StoredResponse, sent: &OriginTimes) {
        if sent.is_fixed
            && self.is_named(ACCEPT_LANGUAGE.as_str())
            && sent.headers.contains_key(ACCEPT_LANGUAGE)
        {
            let nominated = stored.nominated().with(ACCEPT_LANGUAGE, &sent.headers);
            stored.set_nominated(nominated);
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.extra_fields.named.iter().any(|named| named.as_str() == name)
    }

    /// Whether the request has a custom field or an unknown cookie, so that its response may be for its client
    /// only.
    pub(super) fn is_own(&self, site: &Site) -> bool {
        self.is_own_beside(site, &NominatedFields::default()) || self.is_visitors(site)
    }

    /// Whether the request is a visitor's, on a path for which an audit lets only neutral renders be stored.
    pub(super) fn is_visitors(&self, site: &Site) -> bool {
        self.owner.is_none()
            && !self.extra_fields.is_neutral
            && site.audit.limit_of(&self.target, site.clock.now().0).is_neutral
    }

    /// The same for a response that nominates these fields and cookies.
    pub(super) fn is_own_beside(&self, site: &Site, nominated: &NominatedFields) -> bool {
        let (rules, fields) = (&site.config.rules, AsSent(&*self.headers));
        let is_nominated = |name: &HeaderName| nominated.names().any(|other| other == name);
        let is_own_field = |name: &HeaderName| {
            rules.is_custom_field(name.as_str())
                && self.sends_extra(site, name.as_str())
                && !is_nominated(name)
                && is_there(&fields, name.as_str())
        };
        !rules.are_strangers_apart(&self.plan, &fields, nominated, false)
            || self.headers.keys().any(is_own_field)
    }

    /// Removes the custom fields from the lines of a request for everybody, but for those that the page nominates.
    pub(super) fn remove_own_fields(
        site: &Site,
        headers: &mut HeaderMap,
        nominated: &NominatedFields,
    ) {
        let rules = &site.config.rules;
        let is_nominated = |name: &HeaderName| nominated.names().any(|other| other == name);
        let is_own =
            |name: &&HeaderName| rules.is_custom_field(name.as_str()) && !is_nominated(name);
        let own: Vec<HeaderName> = headers.keys().filter(is_own).cloned().collect();
        own.iter().for_each(|name| drop(headers.remove(name)));
    }

    /// Adds the fields that `Vary` of the pages stored under the key names.
    pub(super) fn send_nominated(&mut self, stored: &Candidates<StoredPage>) {
        for page in stored.as_slice() {
            // `Accept-Language` is sent already, but for renders with fixed values, which decide themselves (`undeclared`).
            self.send_named(page.payload().stored.nominated(), |name| *name != ACCEPT_LANGUAGE);
        }
    }

    /// Adds those of the fields by which a page was selected, as far as the client has sent them.
    pub(super) fn send_named(
        &mut self,
        nominated: &NominatedFields,
        is_sent: impl Fn(&HeaderName) -> bool,
    ) {
        for name in nominated.names().filter(|name| is_sent(name)) {
            if self.headers.contains_key(name) && !self.extra_fields.named.contains(name) {
                self.extra_fields.named.push(name.clone());
            }
        }
    }

    /// Adds the fields that the response's `Vary` names, the client sent, and the origin did not
    /// get. Returns whether there are any.
    pub(super) fn send_missing(
        &mut self,
        site: &Site,
        stored: &StoredResponse,
        sent: &OriginTimes,
    ) -> bool {
        let mut missing: Vec<HeaderName> = Vec::new();
        {
            let fields = AsSent(&*self.headers);
            let planned = PlannedFields::new(&site.config.rules, self.plan, &fields);
            for name in stored.nominated().names() {
                let is_known = self.extra_fields.named.contains(name)
                    || sent.headers.contains_key(name)
                    || WRITTEN_HERE.contains(&name.as_str())
                    || METHOD_OVERRIDES.contains(&name.as_str());
                if !is_known && is_there(&planned, name.as_str()) {
                    missing.push(name.clone());
                }
            }
        }
        let is_new = !missing.is_empty();
        self.extra_fields.named.extend(missing);
        is_new
    }
}

fn is_there(fields: &dyn Fields, name: &str) -> bool {
    let mut is_there = false;
    fields.values(name, &mut |_| is_there = true);
    is_there
}

/// Fields that identify the client or its group, and that clients may not set. Responses that vary
/// on one of them cannot be distinguished when a later request comes.
const OF_ONE_CLIENT: [&str; 10] = [
    "x-user-context-hash",
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "x-cluster-client-ip",
    "fastly-client-ip",
];

/// Refuses to store a response that may vary on a field by which later requests cannot be compared.
///
/// # Errors
/// The reason: `VaryOfOneClient`, or `FieldNotInKey`.
pub(super) fn may_store(
    site: &Site,
    ask: &RenderRequest,
    stored: &StoredResponse,
    sent: &OriginTimes,
) -> Result<(), Reason> {
    if stored.nominated().names().any(|name| OF_ONE_CLIENT.contains(&name.as_str())) {
        return Err(Reason::VaryOfOneClient);
    }
    let is_nominated = |name: &HeaderName| stored.nominated().names().any(|other| other == name);
    let fields = AsSent(&*ask.headers);
    let is_extra = |name: &HeaderName| {
        let is_of_fixed =
            sent.is_fixed && *name == ACCEPT_LANGUAGE && ask.is_named(ACCEPT_LANGUAGE.as_str());
        // Pagewell has added others itself.
        let is_clients = || is_there(&fields, name.as_str());
        is_of_fixed || (ask.sends_extra(site, name.as_str()) && is_clients())
    };
    let is_at_large = |name: &HeaderName| is_extra(name) && !is_nominated(name);
    if sent.headers.keys().any(is_at_large) { Err(Reason::FieldNotInKey) } else { Ok(()) }
}
