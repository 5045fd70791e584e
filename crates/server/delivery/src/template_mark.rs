//! The mark of a response whose content is an ESI template, until it is assembled for its client (`assembly`).
//! Which responses are templates is in `esi`.
//!
//! The mark is an extension of the response, so it never reaches a client or the store.

use esi::EsiDialect;
use http::Response;
use http_cache::{Forms, StoredFacts};

/// Response extension: the content is a template of this dialect.
#[derive(Clone, Copy)]
pub struct IsTemplate(EsiDialect);

/// Marks a response as a template of a dialect.
pub fn mark<B>(answer: &mut Response<B>, dialect: EsiDialect) {
    answer.extensions_mut().insert(IsTemplate(dialect));
}

/// Marks a response that was made from a stored template.
pub fn mark_as<B>(stored: &StoredFacts, answer: &mut Response<B>) {
    if stored.forms == Forms::Assembled {
        mark(answer, dialect_of(stored));
    }
}

/// The dialect of the template, if a response must be assembled before it is sent.
pub fn template_dialect<B>(answer: &Response<B>) -> Option<EsiDialect> {
    answer.extensions().get::<IsTemplate>().map(|template| template.0)
}

/// The dialect of a stored template.
pub fn dialect_of(stored: &StoredFacts) -> EsiDialect {
    if stored.says_esi() { EsiDialect::LiteSpeed } else { EsiDialect::Standard }
}
