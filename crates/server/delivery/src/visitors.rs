//! The evidence about the client of a request that needs the origin: its level there, and what raises it.
//!
//! | evidence | from |
//! |---|---|
//! | a confirmed session | [`note`]: the application says `X-Pagewell-Refusal: signed-in`, or a write sets a login cookie |
//! | a ticket, and that the challenge has let it pass | `deferral`, `challenge` |
//! | a write just before | the signed mark after a write |
//! | a verified crawler | its networks, or the name of its address (`crawler_names`) |
//! | hits | `telemetry::evidence` |
//!
//! The marks of confirmed sessions are keyed hashes with a bounded number ([`SignedInMarks`]), so no client can
//! compute one, and a flood ends only the oldest. Nothing here is called for a hit. Which evidence counts how much is
//! decided in `miss_control::ClientTable`.
//!
//! [`SignedInMarks`]: site_state::signed_in_marks::SignedInMarks

use crate::challenge;
use crate::services::LookUp;
use crate::site::Site;
use config::VerifiedCrawler;
use config::target::TargetUri;
use http::{HeaderMap, Method, header};
use http_cache::{Method as Kind, refusal_code};
use miss_control::{ClientLevel, MissKind, RateOf, ShownEvidence, Ticket};
use origin::{Admission, OriginClass, SharedLevel};
use site_rules::{Plan, RequestClient, VisitorCookies, is_same_code};
use site_state::signed_in_marks::MarkOf;
use telemetry::client::Client;
use telemetry::request_fields::AsSent;

/// How long a session is confirmed. Each page of a signed-in visitor confirms it again.
const CONFIRMED_MS: u64 = 3_600_000;
/// The code by which an application says that a page is for a signed-in visitor.
const SIGNED_IN: &str = "signed-in";

/// The evidence that a request to `host` with these header lines shows about its client.
pub fn evidence(site: &Site, client: &Client, headers: &HeaderMap, host: &str) -> ShownEvidence {
    let address = client.address();
    let is_exempt = address.is_some_and(|address| site.config.misses.exempt.have(address));
    let mut shown = ShownEvidence { address, is_exempt, ..ShownEvidence::default() };
    if headers.contains_key(header::COOKIE) {
        let cookies = cookies_of(site, headers, host);
        shown.session = session(site, &cookies, host);
        shown.ticket = ticket(site, &cookies, host).map(|ticket| ticket.id());
        shown.written = cookies.written.map(|mark_of| mark(site, host, &mark_of) as u64);
        shown.has_passed = shown.ticket.is_some() && challenge::has_passed(site, headers);
    }
    shown
}

/// The level of the client of a request, by which its requests to the origin are ordered.
pub fn level(site: &Site, client: &Client, headers: &HeaderMap, host: &str) -> ClientLevel {
    client.level(&evidence(site, client, headers, host))
}

/// The admission of a request of this class to the origin; it counts as a miss of the client.
pub fn admission(
    site: &Site,
    client: &Client,
    class: OriginClass,
    (target, headers): (&TargetUri, &HeaderMap),
) -> Admission {
    if site.services.challenge_of(&target.path_and_query).is_some() {
        // Another server, whose requests have no level and cost no credit.
        let nobody = ShownEvidence::default();
        return Admission::of(client, &nobody, OriginClass::Background, &target.path_and_query);
    }
    let shown = evidence(site, client, headers, &target.host);
    let mut admission = Admission::of(client, &shown, class, &target.path_and_query);
    admission.describe(headers);
    let is_read = matches!(class, OriginClass::Page | OriginClass::Personal);
    if is_read && is_crawler_in_rate(site, client, headers) {
        admission.group.kind = MissKind::Crawler;
        admission.level = SharedLevel::new(ClientLevel::Known);
    } else if class == OriginClass::Personal && headers.contains_key(header::AUTHORIZATION) {
        admission.group.kind = MissKind::Credential;
    }
    admission
}

/// Whether the client is a verified crawler, and within its rate.
fn is_crawler_in_rate(site: &Site, client: &Client, headers: &HeaderMap) -> bool {
    let Some(number) = verified_crawler(site, client, headers, LookUp::InBackground) else {
        return false;
    };
    let rate = site.config.misses.crawlers[number].rate;
    site.rates.take(RateOf::Crawler(number), rate, site.clock.monotonic())
}

/// The number of the crawler that the client is, as far as its address or the name of that shows it.
pub fn verified_crawler(
    site: &Site,
    client: &Client,
    headers: &HeaderMap,
    look_up: LookUp,
) -> Option<usize> {
    let crawlers = &site.config.misses.crawlers;
    let address = client.address().filter(|_| !crawlers.is_empty())?;
    let by_network = crawlers.iter().position(|crawler| crawler.networks.have(address));
    by_network.or_else(|| {
        let agent = headers.get(header::USER_AGENT)?.to_str().ok()?.to_ascii_lowercase();
        let claims = |crawler: &VerifiedCrawler| {
            !crawler.hosts.is_empty() && agent.contains(&crawler.name.to_ascii_lowercase())
        };
        let claimed = crawlers.iter().any(claims);
        claimed.then(|| site.services.crawler_at(address, &site.clock, look_up)).flatten()
    })
}

/// Whether a rule limits the renders of its pages, and there were too many for this client.
pub fn is_over_renders(site: &Site, client: &Client, plan: &Plan, shown: &ShownEvidence) -> bool {
    let Some((rule, rate)) = site.config.rules.renders(plan) else { return false };
    client.level(shown) != ClientLevel::Confirmed
        && !site.rates.take(RateOf::Rule(rule), rate, site.clock.monotonic())
}

fn cookies_of(site: &Site, headers: &HeaderMap, host: &str) -> VisitorCookies {
    let asked = (host, site.clock.now().0);
    site.config.rules.visitor_cookies(&AsSent(headers), std::iter::empty(), asked)
}

/// The valid ticket of a request with these header lines.
pub(crate) fn ticket_of(site: &Site, headers: &HeaderMap, host: &str) -> Option<Ticket> {
    headers
        .contains_key(header::COOKIE)
        .then(|| cookies_of(site, headers, host))
        .and_then(|cookies| ticket(site, &cookies, host))
}

fn ticket(site: &Site, cookies: &VisitorCookies, host: &str) -> Option<Ticket> {
    let code = |ticket: &[u8]| site.config.rules.ticket_code(host, ticket);
    let value = cookies.ticket.as_ref()?;
    Ticket::read(value, site.clock.now().0 / 1000, code, is_same_code)
}

/// The number of the session, if it is confirmed.
fn session(site: &Site, cookies: &VisitorCookies, host: &str) -> Option<u64> {
    let whole = Some(&cookies.session).filter(|session| !session.is_empty());
    let now_ms = site.clock.now().0;
    let marks = whole.into_iter().chain(&cookies.logins).map(|of| mark(site, host, of));
    marks.into_iter().find(|mark| site.signed_in.has(*mark, now_ms)).map(|mark| mark as u64)
}

fn mark(site: &Site, host: &str, of: &[u8]) -> u128 {
    site.signed_in.mark(MarkOf::Session, &[host.as_bytes(), b"\n", of].concat())
}

/// Records what a response of the origin shows about the client of its request.
pub fn note(
    site: &Site,
    host: &str,
    (method, headers): (&Method, &HeaderMap),
    response: &HeaderMap,
) {
    let rules = &site.config.rules;
    let set = || response.get_all(header::SET_COOKIE).iter().map(|line| line.as_bytes());
    let confirm = |of: &[u8]| {
        let lasts = (site.clock.now().0, CONFIRMED_MS);
        site.signed_in.add(mark(site, host, of), lasts);
    };
    if refusal_code(response) == Some(SIGNED_IN) {
        let asked = (host, site.clock.now().0);
        let sessions = [
            rules.visitor_cookies(&AsSent(headers), std::iter::empty(), asked).session,
            rules.visitor_cookies(&AsSent(headers), set(), asked).session,
        ];
        sessions.iter().filter(|session| !session.is_empty()).for_each(|session| confirm(session));
    }
    if Kind::of(method) == Kind::Unsafe {
        set().filter_map(|line| rules.login_set_by(line)).for_each(confirm);
    }
}
