//! The redirect of a plain request: a GET or HEAD without content, whose host and path are written as in a key, and
//! that no page answers. Its step is found by the same table, from the same rules. So the front answers it before
//! hyper, with the response of `exchange::answer`.
//!
//! Most requests are not redirected. So the redirect is found first, although it is a late step, and the rules of the
//! earlier steps are compared only if there is one: once, for all clients.
//!
//! Left to `exchange::answer` is everything that needs more: purges and challenges by their paths, a trial and traces,
//! which note each request; a request that a rule refuses or counts, of any client; a response that has a page of the
//! site as its content, or fields by a rule with conditions.

use super::{RequestStep, StepFacts, is_redirected, step};
use crate::challenge;
use crate::edge;
use crate::purge;
use delivery::body::ResponseBody;
use delivery::redirect_forms::RedirectForm;
use delivery::serve;
use delivery::site::Site;
use reasons::Reason;
use rule_conditions::RequestView;
use site_rules::{AccessRequest, PageAccess, Redirect};
use std::sync::Arc;

/// A plain request that no page answers.
pub struct PlainAsked<'a> {
    /// The default site of the listener.
    pub default_site: &'a Site,
    /// The site of the request's host.
    pub site: &'a Site,
    /// The request as it was sent.
    pub sent: RequestView<'a>,
    /// Whether its target and its host are in their normal form.
    pub is_normal: bool,
}

/// The step of a plain request, as far as the front executes it.
pub enum PlainStep {
    /// It is redirected, and nothing else is to be done.
    Redirected(PlainRedirect),
    /// No rule redirects it, and its host is not redirected. `exchange::answer` decides without comparing these rules
    /// again.
    NotRedirected,
    /// `exchange::answer` decides.
    Unknown,
}

/// The response to a plain request that is redirected.
pub struct PlainRedirect {
    /// The lines that are common to many responses.
    pub form: Arc<RedirectForm>,
    /// The value of `Location`; `None` with status 410.
    pub location: Option<String>,
}

impl PlainAsked<'_> {
    /// The step of the request. Nothing is counted.
    pub fn step(&self) -> PlainStep {
        let PlainAsked { default_site, site, sent, is_normal } = *self;
        let path_and_query = sent.path_and_query;
        if challenge::is_challenge(path_and_query)
            || purge::is_purge_path(default_site, path_and_query)
            || site.config.trial.is_some()
            || default_site.config.traces.is_some()
        {
            return PlainStep::Unknown;
        }
        let shared = if is_normal { None } else { site.shared_url(sent.host, path_and_query) };
        let normal = shared.as_ref().map(|(host, _, page)| RequestView {
            host,
            path_and_query: page,
            ..sent
        });
        let asked = AccessRequest::new(&site.config.rules, sent, normal);
        let found = match site.config.hosts.redirect_of(sent.host) {
            // An earlier step redirects it.
            Some(_) => None,
            None => match edge::found_redirect(site, &asked) {
                Some(found) => Some(found),
                None => return PlainStep::NotRedirected,
            },
        };
        answer(site, &asked, found).map_or(PlainStep::Unknown, PlainStep::Redirected)
    }
}

/// The response to a request with this redirect by a rule, or to an alias, if no other step comes first.
fn answer(
    site: &Site,
    asked: &AccessRequest<'_>,
    found: Option<Redirect>,
) -> Option<PlainRedirect> {
    let (config, sent) = (&site.config, &asked.sent);
    // Otherwise an earlier step may come first, or the response is `private`.
    if config.rules.access_of_all(asked) != Some(PageAccess::Everybody) {
        return None;
    }
    let (reason, status, location) = match step_of(site, sent, found.as_ref()) {
        RequestStep::ToCanonical => {
            let target = sent.path_and_query;
            let (status, location) =
                serve::canonical_address(site, sent.scheme, sent.host, target)?;
            (Reason::ToCanonical, status, Some(location))
        }
        RequestStep::Redirected(source) => (Reason::Redirected, source.status, found?.location),
        _ => return None,
    };
    let (rules, view) = (&config.rules, asked.normal.unwrap_or(*sent));
    let is_line =
        |text: &String| text.bytes().fold(true, |all, byte| all & byte.is_ascii_graphic());
    if !rules.has_common_fields(&view)
        || config.error_pages.of(status).is_some()
        || !location.as_ref().is_none_or(is_line)
    {
        return None;
    }
    let form = site.redirect_forms.get(status, reason, || {
        let mut response = serve::moved(status, reason, None);
        rules.change_fields(&view, status, response.headers_mut());
        response.map(ResponseBody::whole)
    });
    Some(PlainRedirect { form: form?.clone(), location })
}

/// The step of a request that no rule refuses or counts, and that has this redirect by a rule.
fn step_of(site: &Site, sent: &RequestView<'_>, found: Option<&Redirect>) -> RequestStep {
    let hosts = &site.config.hosts;
    step(&StepFacts {
        is_host_known: hosts.have(sent.host),
        is_redirected: is_redirected(site, sent.scheme),
        is_alias: hosts.redirect_of(sent.host).is_some(),
        redirect: &|| found.map(|found| found.source),
        method: sent.method,
        ..StepFacts::LOOKUP
    })
}
