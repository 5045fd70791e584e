//! The words that differ, for an operator who asks for them (`pagewell trial --text`).
//!
//! | text | shown |
//! |---|---|
//! | of a neutral render | if nothing that the visitor has sent was sent to the origin for it, neither a cookie nor a field |
//! | of the stored page | if such a render was equal to it before: then it is that render's text |
//! | of a visitor's answer | never |
//!
//! A URL with a secret is never rendered, and words of its query are left out (`page_comparison::differing_words`). Text of
//! nonces is left out, too. The words are in memory only, beside the record of the trial.

use crate::judged_page::{identity, render_tokens, stored_tokens};
use crate::samples::{compute, request_of};
use crate::seen_answer::SeenAnswer;
use crate::trial_state::TrialState;
use delivery::site::Site;
use http::{HeaderMap, StatusCode};
use page_comparison::{
    Conclusion, DifferenceClass, DifferingText, PageDifference, PageNoise, PageTokens, differing,
    differing_words,
};
use render::{ReferenceRender, is_of_nobody};
use std::sync::Arc;
use stored_pages::page::{ReadPage, SharedPage};

/// The words in which the page and the last render differ at the places of the difference; those that the page has and the
/// visitor's answer does not have, if the page is right.
pub(crate) fn text_of(
    site: &Arc<Site>,
    state: &TrialState,
    (page, seen): (&SharedPage, &SeenAnswer),
    (conclusion, last, noise): (&Conclusion, Option<ReferenceRender>, &PageNoise),
) -> DifferingText {
    let url = seen.request.target.page();
    let Conclusion::Differs { class, spots, .. } = conclusion else {
        return DifferingText::default();
    };
    let is_wanted = *class != DifferenceClass::Noise && site.trial.lacks_text(*class, url);
    if !is_wanted || !is_of_nobody(site, &request_of(&seen.request, Some(page))) {
        return DifferingText::default();
    }
    let audit = &state.audit;
    let is_everybodys = state.was_equal(identity(site, page));
    compute(site, audit, || {
        let stored = stored_tokens(audit, page);
        let of_page = |difference: &PageDifference| {
            let response = page.response();
            let head = (response.status, &response.headers);
            let words = || words(difference, false, (&stored, url), head, &page.content());
            is_everybodys.then(words).flatten()
        };
        // The places of a difference that only a visitor's answer has are not named as numbers.
        if let Some(render) = last.filter(|_| !spots.is_empty()) {
            let tokens = render_tokens(audit, &render);
            let difference = differing(&stored, &tokens).at(spots);
            let head = (render.status, &render.headers);
            let of_render = words(&difference, true, (&tokens, url), head, &render.content);
            return DifferingText { stored: of_page(&difference), render: of_render };
        }
        let of_visitor = seen.tokens.as_ref().filter(|_| spots.is_empty());
        let difference = of_visitor.map(|tokens| noise.without_noise(&differing(&stored, tokens)));
        DifferingText { stored: None, render: difference.as_ref().and_then(of_page) }
    })
}

fn words(
    difference: &PageDifference,
    is_added: bool,
    of: (&PageTokens, &str),
    (status, headers): (StatusCode, &HeaderMap),
    content: &[u8],
) -> Option<String> {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    differing_words(difference, is_added, of, (status.as_u16(), fields, content))
}
