//! Selects the fields of the client's request that a render forwards to the origin if the response
//! may be shared.
//!
//! | fields | forwarded |
//! |---|---|
//! | those that all renders have, and those in the key (`site_rules::SiteRules::sends_field`) | always |
//! | those that `Vary` names, of a page stored under the key or of this render's own response | in the next attempt |
//! | custom fields | if the page is known not to be shareable, or its response was not stored |
//!
//! Invariants: a response to a request with a field that is neither in the key nor in `Vary` is not
//! stored ([`may_store`]). Every stored response was requested with all of the client's fields that
//! its `Vary` names. So no client chooses what others get (RFC 9111 section 4.1). Method override
//! fields are never forwarded.

use super::{OriginTimes, RenderRequest};
use delivery::site::Site;
use http::HeaderName;
use http_cache::{Fields, StoredResponse};
use page_store::Candidates;
use site_rules::PlannedFields;
use site_state::page::StoredPage;
use site_state::request_fields::{AsSent, METHOD_OVERRIDES};

/// The reason not to store a response to a request with a field that is neither in the key nor in `Vary`.
pub(super) const FIELD_NOT_IN_KEY: &str = "field-not-in-key";

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

/// The fields that are forwarded in addition to those of all renders.
#[derive(Clone, Debug, Default)]
pub struct ExtraFields {
    /// The fields that `Vary` names.
    named: Vec<HeaderName>,
    /// Whether custom fields are forwarded.
    custom: Custom,
}

impl ExtraFields {
    /// The same fields without custom ones.
    pub(super) fn without_custom(&self) -> ExtraFields {
        ExtraFields { named: self.named.clone(), custom: Custom::LeftOut }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Custom {
    #[default]
    LeftOut,
    Sent,
}

impl RenderRequest {
    /// Whether the field of this name (in lower case) goes to the origin.
    pub(super) fn sends(&self, site: &Site, name: &str) -> bool {
        !METHOD_OVERRIDES.contains(&name)
            && (site.config.rules.sends_field(name) || self.sends_extra(site, name))
    }

    fn sends_extra(&self, site: &Site, name: &str) -> bool {
        let rules = &site.config.rules;
        let extra = &self.extra_fields;
        !rules.sends_field(name)
            && rules.may_send_field(&self.plan, name)
            && !METHOD_OVERRIDES.contains(&name)
            && (extra.named.iter().any(|named| named.as_str() == name)
                || (extra.custom == Custom::Sent && rules.is_custom_field(name)))
    }

    /// Adds the fields that `Vary` of the pages stored under the key names.
    pub(super) fn send_nominated(&mut self, stored: &Candidates<StoredPage>) {
        for page in stored.as_slice() {
            for name in page.payload().stored.nominated().names() {
                if self.headers.contains_key(name) && !self.extra_fields.named.contains(name) {
                    self.extra_fields.named.push(name.clone());
                }
            }
        }
    }

    /// Whether custom fields of the request were sent to the origin, so that the response may
    /// depend on them.
    pub(super) fn has_sent_custom(&self) -> bool {
        self.extra_fields.custom == Custom::Sent
    }

    /// Adds the custom fields of the request.
    pub(super) fn send_custom(&mut self) {
        self.extra_fields.custom = Custom::Sent;
    }

    /// Whether the request has custom fields that the origin did not get.
    pub(super) fn can_send_custom(&self, site: &Site) -> bool {
        let is_custom = |name: &HeaderName| {
            let name = name.as_str();
            site.config.rules.is_custom_field(name)
                && !METHOD_OVERRIDES.contains(&name)
                && is_there(&AsSent(&*self.headers), name)
        };
        self.extra_fields.custom == Custom::LeftOut
            && self.headers.keys().any(|name| is_custom(name) && !self.sends(site, name.as_str()))
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

/// The reason not to store a response whose `Vary` names one of these fields.
pub(super) const VARY_OF_ONE_CLIENT: &str = "vary-of-one-client";

/// Refuses to store a response that may vary on a field by which later requests cannot be compared.
///
/// # Errors
/// The reason: [`VARY_OF_ONE_CLIENT`], or [`FIELD_NOT_IN_KEY`].
pub(super) fn may_store(
    site: &Site,
    ask: &RenderRequest,
    stored: &StoredResponse,
    sent: &OriginTimes,
) -> Result<(), &'static str> {
    if stored.nominated().names().any(|name| OF_ONE_CLIENT.contains(&name.as_str())) {
        return Err(VARY_OF_ONE_CLIENT);
    }
    let is_nominated = |name: &HeaderName| stored.nominated().names().any(|other| other == name);
    let is_at_large =
        |name: &HeaderName| ask.sends_extra(site, name.as_str()) && !is_nominated(name);
    if sent.headers.keys().any(is_at_large) { Err(FIELD_NOT_IN_KEY) } else { Ok(()) }
}
