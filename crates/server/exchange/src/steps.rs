//! The steps of a request: one table, in their order. `exchange` and `dispatch` execute the step,
//! `pagewell explain` prints it; neither has rules of its own.
//!
//! Invariants: finding the step has no effect: nothing is counted, logged, stored or sent. Purges come first, so that
//! no other step can prevent an invalidation. HTTPS on the same host comes before all that may show or store a page.
//! The plan of the site's rules is made only if no earlier step applies. Whether a stored page answers is decided in
//! `delivery::lookup`; a plain hit does not come here. The rows `limited` and `password` are checks: they are carried
//! out, and then the request goes on with the next row (`checks`). The second table, `LATER_STEPS`, has what follows: a
//! limit for requests that reach the origin is there, because a stored page may answer them.

mod plain;

use crate::challenge;
use crate::edge;
pub use crate::edge::EdgeMatches;
use delivery::plan::plan;
use delivery::site::Site;
use delivery::trial;
use forward::upgrade;
use http::{HeaderMap, Method, Request};
use http_body::Body;
use http_cache::Method as Kind;
pub use plain::{PlainAsked, PlainRedirect, PlainStep};
use reasons::Reason;
use request_values::target::{TargetError, TargetUri};
use site_rules::{
    BypassBecause, Denial, Handling, LimitCount, LimitRule, Plan, Redirect, RedirectSource,
};
use std::cell::OnceCell;
use telemetry::client::Client;
use telemetry::request_content::RequestContent;

/// A way to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStep {
    /// It purges pages, if it is authorised.
    Purge,
    /// Its target is invalid.
    Invalid(Reason),
    /// It is for the challenge of a certificate authority, for a host whose certificate is managed.
    Challenge,
    /// Its host is none of the site's.
    Misdirected,
    /// It is redirected to the same target over HTTPS.
    ToHttps,
    /// It is redirected to the same target at the canonical host.
    ToCanonical,
    /// A rule refuses it.
    Denied(Denial),
    /// It counts under a limit for all requests.
    Limited(LimitRule),
    /// It needs the password of the rule with this number.
    Password(usize),
    /// A rule or a line of a redirect file has another address for it.
    Redirected(RedirectSource),
    /// It offers another protocol, and the origin may accept it.
    Upgrade,
    /// A GET or HEAD with content is forwarded: the content is not part of the key.
    WithContent,
    /// This process has no current cache any more, so the request bypasses it.
    Leaving(Reason),
    /// TRACE is refused.
    Trace,
    /// OPTIONS for the server as a whole.
    Options,
    /// Its changes could not be published to the cluster, so it is refused.
    Unpublished,
    /// A write, or another method that only the origin can answer.
    Write,
    /// It would be answered from the store, but the site is in a trial: it is forwarded, and the answer compared.
    Trial,
    /// It has a session cookie: it gets a private copy, or a page that signed-in visitors share.
    Private,
    /// It is forwarded unchanged.
    Bypass(BypassBecause),
    /// It is answered from the store, or by a render.
    Lookup,
}

impl RequestStep {
    /// The reason for the response of Pagewell, or for not using the cache, as `Cache-Status` shows it.
    pub fn reason(self) -> Option<Reason> {
        match self {
            RequestStep::Purge => Some(Reason::Purged),
            RequestStep::Invalid(reason) | RequestStep::Leaving(reason) => Some(reason),
            RequestStep::Challenge => Some(Reason::AcmeChallenge),
            RequestStep::Misdirected => Some(Reason::HostUnknown),
            RequestStep::ToHttps => Some(Reason::ToHttps),
            RequestStep::ToCanonical => Some(Reason::ToCanonical),
            RequestStep::Denied(_) => Some(Reason::Denied),
            RequestStep::Limited(_) => Some(Reason::RateLimited),
            RequestStep::Password(_) => Some(Reason::PasswordRequired),
            RequestStep::Redirected(_) => Some(Reason::Redirected),
            RequestStep::Upgrade | RequestStep::WithContent => Some(Reason::Bypass),
            RequestStep::Trace => Some(Reason::MethodTrace),
            RequestStep::Unpublished => Some(Reason::ClusterUnpublished),
            RequestStep::Write => Some(Reason::Method),
            RequestStep::Trial => Some(Reason::Trial),
            RequestStep::Private => Some(Reason::SessionCookie),
            RequestStep::Bypass(because) => Some(because.into()),
            RequestStep::Options | RequestStep::Lookup => None,
        }
    }

    /// Whether Pagewell answers without the store and without the origin.
    pub fn is_answered_here(self) -> bool {
        match self {
            RequestStep::Purge
            | RequestStep::Invalid(_)
            | RequestStep::Challenge
            | RequestStep::Misdirected
            | RequestStep::ToHttps
            | RequestStep::ToCanonical
            | RequestStep::Denied(_)
            | RequestStep::Limited(_)
            | RequestStep::Password(_)
            | RequestStep::Redirected(_)
            | RequestStep::Trace
            | RequestStep::Options
            | RequestStep::Unpublished => true,
            RequestStep::Upgrade
            | RequestStep::WithContent
            | RequestStep::Leaving(_)
            | RequestStep::Write
            | RequestStep::Trial
            | RequestStep::Private
            | RequestStep::Bypass(_)
            | RequestStep::Lookup => false,
        }
    }
}

/// The facts by which the step of a request is found.
pub struct StepFacts<'a> {
    is_purge: bool,
    /// Why its target is invalid, if it is.
    invalid: Option<TargetError>,
    /// Whether its target is the server as a whole.
    is_for_server: bool,
    is_challenge: bool,
    is_host_known: bool,
    is_redirected: bool,
    is_alias: bool,
    /// The refusal by a rule, if it is needed.
    denial: &'a dyn Fn() -> Option<Denial>,
    /// The limit for all requests under which it is not counted yet.
    limit: &'a dyn Fn() -> Option<LimitRule>,
    /// The rule whose password it needs and does not have.
    password: &'a dyn Fn() -> Option<usize>,
    /// The redirect by a rule or a file, if it is needed.
    redirect: &'a dyn Fn() -> Option<RedirectSource>,
    offers_upgrade: bool,
    method: &'a Method,
    has_content: bool,
    /// Why this process may not answer from its cache, if so.
    leaving: Option<Reason>,
    refuses_writes: bool,
    has_private_copies: bool,
    /// Whether the client gets the origin's answers only.
    is_in_trial: &'a dyn Fn() -> bool,
    /// Makes the plan, if it is needed.
    handling: &'a dyn Fn() -> Handling,
}

impl StepFacts<'_> {
    /// The facts of a GET that may be answered from the store: no step comes before that.
    const LOOKUP: StepFacts<'static> = StepFacts {
        is_purge: false,
        invalid: None,
        is_for_server: false,
        is_challenge: false,
        is_host_known: true,
        is_redirected: false,
        is_alias: false,
        denial: &|| None,
        limit: &|| None,
        password: &|| None,
        redirect: &|| None,
        offers_upgrade: false,
        method: &Method::GET,
        has_content: false,
        leaving: None,
        refuses_writes: false,
        has_private_copies: false,
        is_in_trial: &|| false,
        handling: &|| Handling::Store,
    };

    fn is_read(&self) -> bool {
        matches!(Kind::of(self.method), Kind::Get | Kind::Head)
    }
}

/// A row of the table: the step, if it applies.
type Row = fn(&StepFacts<'_>) -> Option<RequestStep>;

/// The steps in their order: the first that applies is executed. If none does, the request is looked up.
const STEPS: [(&str, Row); 20] = [
    ("purge", |facts| facts.is_purge.then_some(RequestStep::Purge)),
    ("target", |facts| facts.invalid.map(|error| RequestStep::Invalid(error.reason()))),
    ("challenge", |facts| facts.is_challenge.then_some(RequestStep::Challenge)),
    ("misdirected", |facts| (!facts.is_host_known).then_some(RequestStep::Misdirected)),
    ("to-https", |facts| facts.is_redirected.then_some(RequestStep::ToHttps)),
    ("to-canonical", |facts| facts.is_alias.then_some(RequestStep::ToCanonical)),
    ("denied", |facts| (facts.denial)().map(RequestStep::Denied)),
    ("limited", |facts| (facts.limit)().map(RequestStep::Limited)),
    ("password", |facts| (facts.password)().map(RequestStep::Password)),
    ("redirected", |facts| (facts.redirect)().map(RequestStep::Redirected)),
    ("upgrade", |facts| facts.offers_upgrade.then_some(RequestStep::Upgrade)),
    ("target-of-read", |facts| {
        let is_invalid = facts.is_read() && facts.is_for_server;
        is_invalid.then_some(RequestStep::Invalid(Reason::TargetInvalid))
    }),
    ("content", |facts| (facts.is_read() && facts.has_content).then_some(RequestStep::WithContent)),
    ("leaving", |facts| facts.leaving.filter(|_| facts.is_read()).map(RequestStep::Leaving)),
    ("trace", |facts| (facts.method == Method::TRACE).then_some(RequestStep::Trace)),
    ("options", |facts| {
        let is_options = facts.method == Method::OPTIONS && facts.is_for_server;
        is_options.then_some(RequestStep::Options)
    }),
    ("write", |facts| {
        let step = if facts.refuses_writes { RequestStep::Unpublished } else { RequestStep::Write };
        (!facts.is_read()).then_some(step)
    }),
    ("trial", |facts| {
        let uses_store = || match (facts.handling)() {
            Handling::Bypass(because) => {
                facts.has_private_copies && because == BypassBecause::SessionCookie
            }
            Handling::Store => true,
        };
        ((facts.is_in_trial)() && uses_store()).then_some(RequestStep::Trial)
    }),
    ("private", |facts| {
        let is_session = || (facts.handling)() == Handling::Bypass(BypassBecause::SessionCookie);
        (facts.has_private_copies && is_session()).then_some(RequestStep::Private)
    }),
    ("bypass", |facts| match (facts.handling)() {
        Handling::Bypass(because) => Some(RequestStep::Bypass(because)),
        Handling::Store => None,
    }),
];

/// The last row that is a check.
const LAST_CHECK: &str = "password";

/// Returns the step of a request with these facts, if it is one of the rows up to the last check.
fn check(facts: &StepFacts<'_>) -> Option<RequestStep> {
    let is_last = |(name, _): &(&str, Row)| *name == LAST_CHECK;
    let count = STEPS.iter().position(is_last).map_or(STEPS.len(), |at| at + 1);
    STEPS[..count].iter().find_map(|(_, row)| row(facts))
}

/// Returns the step of a request with these facts.
pub fn step(facts: &StepFacts<'_>) -> RequestStep {
    STEPS.iter().find_map(|(_, row)| row(facts)).unwrap_or(RequestStep::Lookup)
}

/// The source of an answer, which decides the later steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// Pagewell itself, at a step of the table.
    Step,
    /// A stored page.
    Cache,
    /// A file of the site, or an error or redirect of its document root.
    Files,
    /// The origin of a site without files of its own.
    Origin,
    /// A script.
    Script,
}

/// The steps after those of the table, in their order, each with the answers that pass it. They are carried out by
/// `forward::rewrites`, `forward::scripts`, `forward::rate_limit`, `delivery::error_pages` and
/// `edge::ResponseChanges`. A stored page has its fields already.
const LATER_STEPS: [(&str, &[AnswerSource]); 5] = {
    use AnswerSource::{Cache, Files, Origin, Script, Step};
    [
        ("rewritten", &[Files, Script]),
        ("script", &[Files, Script]),
        ("limited-origin", &[Origin, Script]),
        ("error-page", &[Step, Files, Origin, Script]),
        ("fields", &[Step, Cache, Files, Origin, Script]),
    ]
};

/// The names of the later steps that an answer passes, in their order.
pub fn later_step_names(source: AnswerSource) -> Vec<&'static str> {
    let passes = |(_, sources): &&(&str, &[AnswerSource])| sources.contains(&source);
    LATER_STEPS.iter().filter(passes).map(|(name, _)| *name).collect()
}

/// A request whose step is to be found.
#[derive(Clone, Copy)]
pub struct AskedRequest<'a> {
    /// The site of its host; the default site if the target is invalid.
    pub site: &'a Site,
    /// The method of the request.
    pub method: &'a Method,
    /// The header lines of the request.
    pub headers: &'a HeaderMap,
    /// Its target, or why that is invalid.
    pub target: Result<&'a TargetUri, TargetError>,
    /// The client that sent it.
    pub client: &'a Client,
    /// Whether it is a purge request.
    pub is_purge: bool,
    /// Whether it offers an upgrade that the origin may accept.
    pub offers_upgrade: bool,
    /// Whether it has content.
    pub has_content: bool,
    /// Whether it is a fragment's, for a page whose host and scheme are checked already.
    pub is_fragment: bool,
    /// The rules that apply to it, as far as they were found.
    pub matches: &'a EdgeMatches,
}

/// The result of the site's rules for a request.
pub struct RequestPlan {
    /// The target as pages are stored, if it differs from that of the request.
    pub shared: Option<TargetUri>,
    /// The plan that the rules give the request.
    pub plan: Plan,
    /// The key of the page that would answer the request.
    pub key: Vec<u8>,
}

impl RequestPlan {
    /// Applies the rules of the site.
    pub fn of(asked: &AskedRequest<'_>, target: &TargetUri) -> RequestPlan {
        let AskedRequest { site, method, headers, client, .. } = *asked;
        let shared = site.shared(target);
        let (plan, key) = plan(site, method, headers, shared.as_ref().unwrap_or(target), client);
        RequestPlan { shared, plan, key }
    }
}

impl<'a> AskedRequest<'a> {
    /// A request of a client; no purge, and for no fragment.
    pub fn of(
        site: &'a Site,
        request: &'a Request<RequestContent>,
        target: Result<&'a TargetUri, &TargetError>,
        (client, matches): (&'a Client, &'a EdgeMatches),
    ) -> AskedRequest<'a> {
        AskedRequest {
            site,
            method: request.method(),
            headers: request.headers(),
            target: target.map_err(|error| *error),
            client,
            is_purge: false,
            offers_upgrade: upgrade::is_upgrade(site, request),
            has_content: !request.body().is_end_stream(),
            is_fragment: false,
            matches,
        }
    }

    /// The redirect of the request by a rule or a file, if there is one.
    pub fn redirect(&self) -> Option<&'a Redirect> {
        edge::redirect(self)
    }

    /// Returns the step of the request; with its plan, if that was needed to find it.
    pub fn step(&self) -> (RequestStep, Option<RequestPlan>) {
        self.find(step)
    }

    /// Returns the names of the rows up to that of the request's step, in their order. The last is `lookup`, if no row
    /// applies.
    pub fn rows(&self) -> Vec<&'static str> {
        let applies =
            |facts: &StepFacts<'_>| STEPS.iter().position(|(_, row)| row(facts).is_some());
        let rows = STEPS.iter().map(|(name, _)| *name).chain(["lookup"]);
        match self.find(applies).0 {
            Some(at) => rows.take(at + 1).collect(),
            None => rows.collect(),
        }
    }

    /// Finds something by the facts of the request; with its plan, if that was needed.
    fn find<T>(&self, find: impl FnOnce(&StepFacts<'_>) -> T) -> (T, Option<RequestPlan>) {
        let planned = OnceCell::new();
        let is_for_user = self.client.extras.checks.user.is_some();
        // Nothing of the challenge is stored (`misses.challenge`).
        let is_for_challenge = self
            .target
            .is_ok_and(|target| self.site.services.challenge_of(&target.path_and_query).is_some());
        let handling = || match self.target {
            Ok(target) => match planned.get_or_init(|| RequestPlan::of(self, target)) {
                // The origin answers each user itself (`auth_forward`).
                _ if is_for_user || is_for_challenge => Handling::Bypass(BypassBecause::Rule),
                planned => planned.plan.handling,
            },
            Err(_) => Handling::Store,
        };
        let found = self.with_facts(&handling, find);
        (found, planned.into_inner())
    }

    /// Returns the check that the request has not passed yet, or an earlier step that applies.
    pub(crate) fn next_check(&self) -> Option<RequestStep> {
        self.with_facts(&|| Handling::Store, check)
    }

    /// The limit for all requests and the password that apply to the request, passed or not.
    pub fn checks(&self) -> (Option<LimitRule>, Option<usize>) {
        (edge::limit(self), edge::password(self))
    }

    fn with_facts<T>(
        &self,
        handling: &dyn Fn() -> Handling,
        find: impl FnOnce(&StepFacts<'_>) -> T,
    ) -> T {
        let (site, passed) = (self.site, &self.client.extras.checks);
        let is_host_known = self.is_fragment
            || self.target.is_ok_and(|target| site.config.hosts.have(&target.host));
        let is_challenge = !self.is_fragment
            && matches!(*self.method, Method::GET | Method::HEAD)
            && self.target.is_ok_and(|target| challenge::is_managed(site, target));
        let of_site = self.target.ok().filter(|target| !self.is_fragment && !is_exempt(target));
        let is_redirected = of_site.is_some_and(|target| {
            is_redirected(site, target.scheme) && challenge::has_certificate(site, target)
        });
        let is_alias =
            of_site.is_some_and(|target| site.config.hosts.redirect_of(&target.host).is_some());
        find(&StepFacts {
            is_purge: self.is_purge,
            invalid: self.target.err(),
            is_for_server: self.target.is_ok_and(|target| target.path_and_query == "*"),
            is_challenge,
            is_host_known,
            is_redirected,
            is_alias,
            denial: &|| edge::denial(self),
            limit: &|| {
                let is_pending = !passed.is_counted;
                let limit = is_pending.then(|| edge::limit(self)).flatten();
                limit.filter(|limit| limit.count == LimitCount::All)
            },
            password: &|| edge::password(self).filter(|rule| passed.password != Some(*rule)),
            redirect: &|| edge::redirect(self).map(|redirect| redirect.source),
            offers_upgrade: self.offers_upgrade,
            method: self.method,
            has_content: self.has_content,
            leaving: leaving(site),
            refuses_writes: site.cluster.as_ref().is_some_and(|cluster| cluster.refuses_writes()),
            has_private_copies: site.config.private.is_some(),
            is_in_trial: &|| trial::is_in_trial(site, self.client),
            handling,
        })
    }
}

/// Why this process may not answer from its cache, if so. After a handover the successor has the cache and receives
/// the invalidations. During shutdown no process has it, and the other nodes do not wait for this one. This cache may
/// be outdated.
fn leaving(site: &Site) -> Option<Reason> {
    let reason = || site.successor().map_or(Reason::Stopping, |_| Reason::HandedOver);
    (!site.answers_from_cache()).then(reason)
}

/// Whether a request with this scheme is redirected to HTTPS.
pub fn is_redirected(site: &Site, scheme: &str) -> bool {
    site.config.https_redirect.is_some() && scheme == "http"
}

/// Whether the target is redirected to no other scheme or host: an ACME challenge, which is always answered over HTTP
/// (RFC 8555 section 8.3), or the server as a whole.
fn is_exempt(target: &TargetUri) -> bool {
    challenge::is_challenge(&target.path_and_query) || &*target.path_and_query == "*"
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIRECT: RedirectSource =
        RedirectSource { rule: None, line: None, status: http::StatusCode::FOUND, slash: None };

    /// The step of a request: `edit` changes the facts of a GET that is looked up.
    fn step_of(handling: Handling, edit: impl FnOnce(&mut StepFacts<'_>)) -> RequestStep {
        let handling = move || handling;
        let mut facts =
            StepFacts { has_private_copies: true, handling: &handling, ..StepFacts::LOOKUP };
        edit(&mut facts);
        step(&facts)
    }

    #[test]
    fn an_earlier_step_comes_before_all_later_ones() {
        let session = Handling::Bypass(BypassBecause::SessionCookie);
        assert_eq!(step_of(Handling::Store, |_| {}), RequestStep::Lookup);
        assert_eq!(step_of(session, |_| {}), RequestStep::Private);
        let rule = Handling::Bypass(BypassBecause::Rule);
        assert_eq!(step_of(rule, |_| {}), RequestStep::Bypass(BypassBecause::Rule));
        for (handling, step) in [
            (Handling::Store, RequestStep::Trial),
            (session, RequestStep::Trial),
            (rule, RequestStep::Bypass(BypassBecause::Rule)),
        ] {
            assert_eq!(step_of(handling, |facts| facts.is_in_trial = &|| true), step);
        }
        let leaving = |facts: &mut StepFacts<'_>| facts.leaving = Some(Reason::Stopping);
        assert_eq!(step_of(session, leaving), RequestStep::Leaving(Reason::Stopping));
        let steps = [
            RequestStep::WithContent,
            RequestStep::Upgrade,
            RequestStep::Redirected(REDIRECT),
            RequestStep::ToCanonical,
            RequestStep::ToHttps,
            RequestStep::Misdirected,
            RequestStep::Challenge,
            RequestStep::Purge,
        ];
        for (at, right) in steps.into_iter().enumerate() {
            let found = step_of(session, |facts| {
                leaving(facts);
                facts.has_content = true;
                facts.offers_upgrade = at >= 1;
                if at >= 2 {
                    facts.redirect = &|| Some(REDIRECT);
                }
                facts.is_alias = at >= 3;
                facts.is_redirected = at >= 4;
                facts.is_host_known = at < 5;
                facts.is_challenge = at >= 6;
                facts.is_purge = at >= 7;
            });
            assert_eq!(found, right);
        }
    }

    #[test]
    fn the_documentation_has_the_rows_in_their_order() {
        let text = include_str!("../../../../ARCHITECTURE.md");
        let (_, section) = text.split_once("## The steps of a request").expect("its section");
        let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
        let cells = rows.filter_map(|row| row.split(" |").next());
        let documented: Vec<&str> = cells
            .skip_while(|cell| !cell.starts_with('`'))
            .take_while(|cell| cell.starts_with('`'))
            .flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`')))
            .collect();
        let rows: Vec<&str> = STEPS.iter().map(|(row, _)| *row).collect();
        assert_eq!(documented, rows);
    }

    #[test]
    fn other_methods_are_never_looked_up() {
        let of = |method: &'static Method, refuses: bool| {
            step_of(Handling::Store, |facts| {
                (facts.method, facts.refuses_writes) = (method, refuses);
                facts.leaving = Some(Reason::HandedOver);
            })
        };
        assert_eq!(of(&Method::POST, false), RequestStep::Write);
        assert_eq!(of(&Method::POST, true), RequestStep::Unpublished);
        assert_eq!(of(&Method::OPTIONS, false), RequestStep::Write);
        assert_eq!(of(&Method::TRACE, true), RequestStep::Trace);
    }
}
