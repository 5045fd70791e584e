//! ESI templates: which responses are templates, and how they are marked until they are assembled for
//! their client (`assembly`). Enabled by `cache.esi`.
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
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_cache::{Forms, StoredFacts, StoredResponse, says_esi};

/// The field that informs the origin that ESI is supported (Edge Architecture 1.0, section 2.2).
const CAPABILITY: HeaderName = HeaderName::from_static("surrogate-capability");

/// Response extension: the content is a template.
#[derive(Clone, Copy)]
pub(crate) struct IsTemplate;

/// Adds `Surrogate-Capability` if ESI is enabled, and requests templates uncompressed.
pub fn announce(site: &Site, headers: &mut HeaderMap) {
    if site.config.esi {
        headers.insert(CAPABILITY, HeaderValue::from_static("pagewell=\"ESI/1.0\""));
        headers.remove(header::ACCEPT_ENCODING);
    }
}

/// Whether responses of this site may be templates.
pub fn may_come(site: &Site) -> bool {
    site.config.esi
}

/// Whether a stored response may be used. A stored template may be used only while ESI is enabled.
pub fn may_use(site: &Site, stored: &StoredFacts) -> bool {
    stored.forms != Forms::Assembled || site.config.esi
}

/// Whether the origin's response fields declare a template.
fn is_said(site: &Site, headers: &HeaderMap) -> bool {
    site.config.esi && says_esi(headers, &site.config.policy.cache_name)
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
        return serve::error(StatusCode::RANGE_NOT_SATISFIABLE, "range", None);
    }
    let is_plain = !answer.headers().contains_key(header::CONTENT_ENCODING);
    if is_plain && is_said(site, headers) {
        answer.extensions_mut().insert(IsTemplate);
    }
    answer
}

/// Marks a response that was made from a stored template.
pub fn mark_as<B>(stored: &StoredFacts, answer: &mut Response<B>) {
    if stored.forms == Forms::Assembled {
        answer.extensions_mut().insert(IsTemplate);
    }
}

/// Whether a response must be assembled before it is sent.
pub fn is_template<B>(answer: &Response<B>) -> bool {
    answer.extensions().get::<IsTemplate>().is_some()
}
