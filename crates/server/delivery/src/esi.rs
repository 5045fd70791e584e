//! ESI templates: which responses are templates, and how they are marked until they are assembled for
//! their client (`assembly`). Standard ESI is enabled by `cache.esi`, that of LiteSpeed's plugins by
//! `dialects.litespeed_esi`. A response is a template only if its own header fields say so.
//!
//! | step | function |
//! |---|---|
//! | the origin is informed that templates are supported | [`announce`], for every request |
//! | a response that is a template is marked | [`marked`], and [`note`] when it is stored |
//! | a stored template has one form and is never a plain hit | `http_cache::Forms::Assembled` |
//! | a marked response is assembled for its client | `assembly::assembled` |

use crate::body::ResponseBody;
use crate::serve;
use crate::site::Site;
use crate::template_mark::{self, dialect_of};
use esi::EsiDialect;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_cache::litespeed::{CacheControl, Switch};
use http_cache::{FieldUse, Forms, StoredFacts, StoredResponse, says_esi};
use reasons::Reason;
use telemetry::client::{FragmentRequest, FragmentSharing};

/// The field that informs the origin that ESI is supported (Edge Architecture 1.0, section 2.2).
const CAPABILITY: HeaderName = HeaderName::from_static("surrogate-capability");

/// Adds `Surrogate-Capability` if ESI is enabled, and requests templates uncompressed.
pub fn announce(site: &Site, headers: &mut HeaderMap) {
    if site.config.esi {
        headers.insert(CAPABILITY, HeaderValue::from_static("pagewell=\"ESI/1.0\""));
    }
    if may_come(site) {
        headers.remove(header::ACCEPT_ENCODING);
    }
}

/// The value of a response field that an element's attribute stands for. Control characters count as commas: no field
/// that purges a tag can contain one, so none can be part of a tag.
pub fn field_value(attribute: &str) -> Option<HeaderValue> {
    HeaderValue::from_bytes(attribute.replace(char::is_control, ",").as_bytes()).ok()
}

/// Whether LiteSpeed's ESI is enabled.
pub fn is_litespeeds(site: &Site) -> bool {
    site.config.dialects.litespeed_esi == FieldUse::Obey
}

/// Whether responses of this site may be templates.
pub fn may_come(site: &Site) -> bool {
    site.config.esi || is_litespeeds(site)
}

/// Whether a stored response may be used. A stored template may be used only while its ESI is enabled.
pub fn may_use(site: &Site, stored: &StoredFacts) -> bool {
    stored.forms != Forms::Assembled || may_use_template(site, stored)
}

#[cold]
fn may_use_template(site: &Site, stored: &StoredFacts) -> bool {
    match dialect_of(stored) {
        EsiDialect::Standard => site.config.esi,
        EsiDialect::LiteSpeed => is_litespeeds(site),
    }
}

/// The dialect of the template that the origin's response fields declare, if they do.
fn declared(site: &Site, headers: &HeaderMap) -> Option<EsiDialect> {
    let says_on = || CacheControl::read(headers).is_some_and(|said| said.esi == Switch::On);
    if is_litespeeds(site) && says_on() {
        return Some(EsiDialect::LiteSpeed);
    }
    let is_standard = site.config.esi && says_esi(headers, &site.config.policy.cache_name);
    is_standard.then_some(EsiDialect::Standard)
}

/// Whether the response to a request for a fragment may be stored for several visitors.
///
/// # Errors
/// The reason why not: it is an error, or the include element says that it is for one visitor.
pub fn may_store_fragment(fragment: &FragmentRequest, status: StatusCode) -> Result<(), Reason> {
    match fragment.sharing {
        // Another page may include the same fragment, and would then lack it.
        _ if !status.is_success() => Err(Reason::FragmentError),
        FragmentSharing::AsDeclared => Ok(()),
        FragmentSharing::OneVisitor => Err(Reason::Private),
    }
}

/// Whether the origin's response fields declare a template.
fn is_said(site: &Site, headers: &HeaderMap) -> bool {
    declared(site, headers).is_some()
}

/// Marks a response that is about to be stored as a template, if `headers` declare one.
pub fn note(site: &Site, headers: &HeaderMap, stored: &mut StoredResponse) {
    if is_said(site, headers) {
        stored.forms = Forms::Assembled;
    }
}

/// Whether a response is a partial template (206), which cannot be assembled.
pub fn is_part(site: &Site, status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::PARTIAL_CONTENT && is_said(site, headers)
}

/// Marks a forwarded response as a template if the origin's fields declare one. A compressed template
/// is forwarded unchanged. A partial template is replaced by an error, because it would reveal ESI
/// markup.
pub fn marked(
    site: &Site,
    headers: &HeaderMap,
    mut answer: Response<ResponseBody>,
) -> Response<ResponseBody> {
    if is_part(site, answer.status(), headers) {
        return serve::error(StatusCode::RANGE_NOT_SATISFIABLE, Reason::Range, None);
    }
    let is_plain = !answer.headers().contains_key(header::CONTENT_ENCODING);
    if let Some(dialect) = declared(site, headers).filter(|_| is_plain) {
        template_mark::mark(&mut answer, dialect);
    }
    answer
}
