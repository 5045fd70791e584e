//! The parameters of URLs that change no page: each of their values makes a page of its own, until they are dropped from the
//! key.
//!
//! A parameter without an effect is dropped from the key and from what the origin gets. So the page with it must be the page
//! without it, for each value and each path:
//!
//! | what is seen | result |
//! |---|---|
//! | a visitor's answer with the parameter equals the stored page without it | this value changes nothing here |
//! | it does not | three neutral renders: without, with, without it. A difference between the first and the last is no effect of it |
//! | the second of them is like the first; or it may not be sent, and the answer is | this value changes nothing here |
//! | it differs | the parameter has an effect, and is never advised in this record |
//! | there is no such page, no render was possible, or the answer was not kept or has no budget | this value is *open*: nothing is advised until it is compared on this page |
//! | the content is compared by its hash, and the first and the last render differ in it | the same |
//!
//! Advice needs enough different visitors, too (`seen_visitors`): a parameter may have an effect for those with a cookie.
//! No page is requested without the parameter unless visitors have requested it so.
//!
//! The results are in `known_parameters`.

use crate::judged_page::{fresh_page, render_tokens, stored_tokens};
use crate::known_parameters::ParameterEffect;
use crate::may_request;
use crate::samples::{compute, compute_answer, may_compare, render, render_with, request_of};
use crate::seen_visitors::VisitorNumbers;
use crate::trial_judgement::visitor_tokens;
use crate::trial_state::TrialState;
use delivery::site::Site;
use delivery::trial::{TrialRequest, VisitorAnswer, VisitorContent};
use page_comparison::{PageTokens, RequestPart, differing, is_replayable_url, is_token_like};
use render::SentParts;
use request_values::target::TargetUri;
use std::hash::BuildHasher;
use std::sync::Arc;
use stored_pages::page::ReadPage;

/// Parameters of a URL that are looked at.
const PARAMETERS_MAX: usize = 4;
/// The longest name.
const NAME_BYTES_MAX: usize = 40;

/// A parameter of a URL, with its pairs of name and value as they are written.
struct UrlParameter {
    name: String,
    pairs: Vec<String>,
}

/// Looks at the parameters in the URL of an answer, and records what is known about them.
pub(crate) async fn look(
    site: &Arc<Site>,
    state: &TrialState,
    (answer, visitor): (&VisitorAnswer, VisitorNumbers),
) {
    let request = &answer.request;
    let parameters: Vec<UrlParameter> = {
        let known = state.parameters();
        let form = site.config.rules.form();
        parameters_of(request.target.page())
            .into_iter()
            .filter(|one| !form.is_kept(&one.name) && known.has_room(&one.name))
            .filter(|one| !known.has_effect(&one.name))
            .collect()
    };
    if parameters.is_empty() {
        return;
    }
    let generation = site.trial.generation();
    let tokens = may_compare(site, &state.audit)
        .then(|| compute_answer(site, &state.audit, || tokens_of(site, state, answer)))
        .flatten();
    for parameter in parameters {
        let Some(without) = request_without(request, &parameter.name) else { continue };
        let effect = match &tokens {
            Some(tokens) => effect_of(site, state, (&parameter, request), (&without, tokens)).await,
            // It may be another page.
            None => ParameterEffect::Open,
        };
        if site.trial.generation() != generation {
            // A new record begins with nothing of the old one.
            return;
        }
        let value = state.hasher.hash_one(&parameter.pairs);
        let page = state.hasher.hash_one(&without.key);
        let seen = state.parameters().note(&parameter.name, (value, page), (effect, visitor));
        site.trial.parameter(&parameter.name, seen);
    }
}

/// The parameters of a path and query that can be named in the configuration.
fn parameters_of(page: &str) -> Vec<UrlParameter> {
    let query = page.split_once('?').map_or("", |(_, query)| query);
    let mut parameters: Vec<UrlParameter> = Vec::new();
    for pair in query.split('&') {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && name.bytes().all(is_plain)
            && !is_token_like(name);
        if !is_name || value.is_empty() {
            continue;
        }
        let has_room = parameters.len() < PARAMETERS_MAX;
        match parameters.iter_mut().find(|known| known.name == name) {
            Some(known) => known.pairs.push(pair.to_owned()),
            None if has_room => {
                parameters.push(UrlParameter { name: name.into(), pairs: vec![pair.into()] });
            }
            None => {}
        }
    }
    parameters
}

/// A path and query without the parameter of this name.
fn page_without(page: &str, name: &str) -> String {
    let (path, query) = page.split_once('?').unwrap_or((page, ""));
    let is_other = |pair: &&str| pair.split('=').next() != Some(name);
    let left: Vec<&str> = query.split('&').filter(is_other).collect();
    let is_all = left.is_empty() || query.is_empty();
    if is_all { path.to_owned() } else { format!("{path}?{}", left.join("&")) }
}

/// The request for the page without this parameter; none if its key has another form.
fn request_without(request: &TrialRequest, name: &str) -> Option<TrialRequest> {
    let with = &request.target;
    let target = TargetUri {
        path_and_query: page_without(&with.path_and_query, name),
        normal: with.normal.as_deref().map(|normal| page_without(normal, name)),
        ..with.clone()
    };
    let (mut start, mut key) = (Vec::new(), Vec::new());
    with.write_key(&mut start);
    target.write_key(&mut key);
    key.extend_from_slice(request.key.strip_prefix(&start[..])?);
    let written = target.clone();
    Some(TrialRequest { target, written, key, ..request.clone() })
}

/// The tokens of an answer, whatever page it was compared with; none if its content is not known.
fn tokens_of(site: &Arc<Site>, state: &TrialState, answer: &VisitorAnswer) -> Option<PageTokens> {
    let audit = &state.audit;
    match &answer.content {
        VisitorContent::Other(content) => Some(visitor_tokens(site, audit, answer, content)),
        VisitorContent::OfPage => {
            let page = answer.page.as_ref()?;
            Some(visitor_tokens(site, audit, answer, &page.content()))
        }
        VisitorContent::TooLong | VisitorContent::Unknown => None,
    }
}

/// The effect of a parameter in the URL of a request; see the table at the top.
async fn effect_of(
    site: &Arc<Site>,
    state: &TrialState,
    (parameter, request): (&UrlParameter, &TrialRequest),
    (without, answer): (&TrialRequest, &PageTokens),
) -> ParameterEffect {
    let audit = &state.audit;
    let noise = state.noise(&without.key, state.pattern(without.target.page()));
    if noise.is_random() {
        return ParameterEffect::Open;
    }
    let Some(page) = fresh_page(site, without) else { return ParameterEffect::Open };
    let difference = || differing(&stored_tokens(audit, &page), answer);
    if compute_answer(site, audit, || noise.without_noise(&difference()).is_empty()) {
        return ParameterEffect::Nothing;
    }
    if !may_request(site, &without.target) || !state.parameters().may_test(&parameter.name) {
        return ParameterEffect::Changes;
    }
    let ask = request_of(without, Some(&page));
    let Ok(first) = render(site, &ask, audit).await else { return ParameterEffect::Open };
    let is_sent = may_request(site, &request.target)
        && is_replayable_url(&request.target.path_and_query)
        && parameter.pairs.iter().all(|pair| RequestPart::parameter(pair).is_some());
    let mut with = None;
    if is_sent {
        let parts = SentParts { parameters: parameter.pairs.clone(), ..SentParts::default() };
        let Ok(render) = render_with(site, &ask, audit, &parts).await else {
            return ParameterEffect::Open;
        };
        with = Some(render);
    }
    let Ok(last) = render(site, &ask, audit).await else { return ParameterEffect::Open };
    compute(site, audit, || {
        let (first, last) = (render_tokens(audit, &first), render_tokens(audit, &last));
        let restless = differing(&first, &last);
        if restless.has_whole_content(&first, &last) {
            return ParameterEffect::Open;
        }
        let difference = match &with {
            Some(with) => differing(&first, &render_tokens(audit, with)),
            None => differing(&first, answer),
        };
        let is_nothing = noise.without_noise(&difference).without(&restless).is_empty();
        if is_nothing { ParameterEffect::Nothing } else { ParameterEffect::Changes }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_removed_from_a_page_and_the_others_stay() {
        let names = |page| parameters_of(page).into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names("/a?ref=x&page=2&ref=y"), ["ref", "page"]);
        assert_eq!(names("/a?alice&b=&8f3a9c2b77d1=x&c[]=1&d%20=1&e.f=1"), [""; 0]);
        assert_eq!(names("/a?a=1&b=1&c=1&d=1&e=1").len(), PARAMETERS_MAX);
        for (page, left) in [
            ("/a?ref=x", "/a"),
            ("/a?ref=x&page=2&ref=y", "/a?page=2"),
            ("/a?page=2&reference=x", "/a?page=2&reference=x"),
            ("/a", "/a"),
        ] {
            assert_eq!(page_without(page, "ref"), left);
        }
    }
}
