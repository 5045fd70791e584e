//! `set_headers`, `add_headers`, `remove_headers` and `file_cache`: the fields of responses.
//!
//! All rules that match apply, in their order, so a later rule wins for the same field. The fields are part of a
//! stored page, so a hit pays nothing for them; that is why a rule with them has no condition on the client. They are
//! changed after the caching decision: a field that is removed here still counts for it. A 304 or 206 is about a
//! response with 200, and gets the fields of that response.
//!
//! Invariant: to apply the rules again changes nothing, because the response of a stored page passes twice.

use crate::rules::SiteRules;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use rule_conditions::{RequestConditions, RequestView, ResponseConditions};

/// A rule that changes the fields of responses.
#[derive(Clone, Debug)]
pub(crate) struct FieldRule {
    pub(crate) number: usize,
    pub(crate) conditions: RequestConditions,
    pub(crate) response: Option<ResponseConditions>,
    pub(crate) removed: Vec<HeaderName>,
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    pub(crate) added: Vec<(HeaderName, HeaderValue)>,
    pub(crate) file_cache: Option<HeaderValue>,
    /// Whether it changes the fields of some responses, by its conditions, and not of files only.
    pub(crate) is_special: bool,
}

impl FieldRule {
    /// Whether it changes the fields of responses other than files.
    pub(super) fn changes_all(&self) -> bool {
        !(self.removed.is_empty() && self.set.is_empty() && self.added.is_empty())
    }

    fn fits(&self, view: &RequestView<'_>) -> bool {
        // A page that was stored for GET answers HEAD too.
        let method = if view.method == Method::HEAD { &Method::GET } else { view.method };
        self.conditions.fit(&RequestView { method, ..*view })
    }

    fn apply(&self, status: StatusCode, headers: &mut HeaderMap) {
        // The type of several ranges has their boundary, without which no client can read them.
        let is_of_ranges =
            |value: &HeaderValue| value.as_bytes().starts_with(b"multipart/byteranges");
        let has_ranges = status == StatusCode::PARTIAL_CONTENT
            && headers.get(CONTENT_TYPE).is_some_and(is_of_ranges);
        let may_change = |name: &HeaderName| !has_ranges || name != CONTENT_TYPE;
        for name in self.removed.iter().filter(|name| may_change(name)) {
            headers.remove(name);
        }
        let goes = |name: &HeaderName| {
            may_change(name) && (status != StatusCode::NOT_MODIFIED || !is_of_content(name))
        };
        for (name, value) in self.set.iter().filter(|(name, _)| goes(name)) {
            headers.insert(name, value.clone());
        }
        for (name, value) in self.added.iter().filter(|(name, _)| goes(name)) {
            if !headers.get_all(name).iter().any(|known| known == value) {
                headers.append(name, value.clone());
            }
        }
    }
}

/// Whether the field describes the content, so that a 304 does not have it (RFC 9110 section 15.4.5).
fn is_of_content(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("content-") && !name.starts_with("content-security-policy")
}

impl SiteRules {
    /// Whether any rule changes the fields of responses.
    #[inline]
    pub fn has_response_fields(&self) -> bool {
        !self.edge.fields.is_empty()
    }

    /// Whether the changed fields depend on nothing but the path, so that they are laid out with a file.
    pub fn fields_follow_path(&self) -> bool {
        self.edge.fields_follow_path
    }

    /// A hash of the rules for fields: responses that are laid out under another one have other fields.
    pub fn fields_print(&self) -> u64 {
        self.edge.fields_print
    }

    /// Whether the fields of a response to this request are changed as those of all other responses with its status:
    /// only by rules without conditions.
    pub fn has_common_fields(&self, view: &RequestView<'_>) -> bool {
        !self.edge.fields.iter().any(|rule| rule.is_special && rule.fits(view))
    }

    /// Changes the fields of a response with this status.
    pub fn change_fields(
        &self,
        view: &RequestView<'_>,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) {
        let of_whole = match status {
            StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT => StatusCode::OK,
            status => status,
        };
        for rule in &self.edge.fields {
            let response = rule.response.as_ref();
            if response.is_none_or(|response| response.fit(of_whole, headers)) && rule.fits(view) {
                rule.apply(status, headers);
            }
        }
    }

    /// Sets `Cache-Control` in the response with a file, if a rule has `file_cache`.
    pub fn cache_file(&self, view: &RequestView<'_>, headers: &mut HeaderMap) {
        for rule in &self.edge.fields {
            let response = rule.response.as_ref();
            if let Some(value) = &rule.file_cache
                && response.is_none_or(|response| response.fit(StatusCode::OK, headers))
                && rule.fits(view)
            {
                headers.insert(CACHE_CONTROL, value.clone());
            }
        }
    }

    /// The numbers of the rules that change the fields of a response with status 200.
    pub fn field_rules_of(&self, view: &RequestView<'_>) -> Vec<usize> {
        let headers = HeaderMap::new();
        let fits = |rule: &&FieldRule| {
            let response = rule.response.as_ref();
            response.is_none_or(|response| response.fit(StatusCode::OK, &headers))
                && rule.fits(view)
        };
        let changes = |rule: &&FieldRule| rule.changes_all();
        self.edge.fields.iter().filter(changes).filter(fits).map(|rule| rule.number).collect()
    }

    /// The number of the rule whose `file_cache` a file of this request gets: the last one that matches.
    pub fn file_cache_rule_of(&self, view: &RequestView<'_>) -> Option<usize> {
        let fits = |rule: &&FieldRule| rule.file_cache.is_some() && rule.fits(view);
        self.edge.fields.iter().rev().find(fits).map(|rule| rule.number)
    }
}
