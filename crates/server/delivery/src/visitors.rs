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
//! compute one, and a flood ends only the oldest. Sets of cookies with a secret in common are one session: it has one
//! rate for its misses, and for the sets that it confirms. Nothing here is called for a hit. Which evidence counts how
//! much is decided in `miss_control::ClientTable`.
//!
//! [`SignedInMarks`]: site_state::signed_in_marks::SignedInMarks

use crate::challenge;
use crate::services::LookUp;
use crate::site::Site;
use config::VerifiedCrawler;
use http::{HeaderMap, Method, header};
use http_cache::{Method as Kind, refusal_code};
use miss_control::{ClientLevel, MissKind, RateOf, ShownEvidence, Ticket};
use origin::{Admission, OriginClass, SharedLevel};
use random_number::random_number;
use request_values::target::TargetUri;
use rule_conditions::RequestClient;
use site_rules::{Plan, VisitorCookies, is_same_code};
use site_state::signed_in_marks::MarkOf;
use telemetry::client::{Client, whole_seconds};
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
        let ticket = ticket(site, &cookies, host);
        shown.ticket = ticket.map(|ticket| ticket.id());
        shown.is_own_ticket = ticket.zip(address).is_some_and(|(ticket, of)| ticket.is_of(of));
        shown.written = cookies.written.map(|mark_of| mark(site, host, &mark_of) as u64);
        shown.has_passed = shown.ticket.is_some() && challenge::has_passed(site, headers);
    }
    shown
}

/// Raises a request to the origin to the level and credit of another client, which waits for the same response. If it
/// comes earlier by that, it counts as a miss of that client: otherwise one client would raise all requests of a crawler.
pub fn raise(
    site: &Site,
    client: &Client,
    (target, headers): (&TargetUri, &HeaderMap),
    raised: &SharedLevel,
) {
    let shown = evidence(site, client, headers, &target.host);
    let level = client.level(&shown);
    if raised.raise(level, client.credit(level, &shown)) {
        client.note_miss(&shown);
    }
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
    let within = || is_crawler_in_rate(site, client, headers);
    let page = client.extras.page.as_ref();
    if is_read && page.map_or_else(within, |page| page.is_crawler(within)) {
        admission.group.kind = MissKind::Crawler;
        admission.level = SharedLevel::new(ClientLevel::Known, 0);
        admission.page = None;
    } else if admission.class == OriginClass::Personal
        && headers.contains_key(header::AUTHORIZATION)
    {
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
    site.rates.take(RateOf::Crawler(number), rate, site.clock.monotonic()).is_ok()
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

/// Counts a render under the rule that limits those of its pages, if one does: also for a client that invents a session
/// cookie, and not for a confirmed session.
///
/// # Errors
/// The rule allows no more: the whole seconds until the next one.
pub fn count_render(
    site: &Site,
    client: &Client,
    plan: &Plan,
    (target, headers): (&TargetUri, &HeaderMap),
) -> Result<(), u32> {
    let Some((rule, rate)) = site.config.rules.renders(plan) else { return Ok(()) };
    let shown = evidence(site, client, headers, &target.host);
    if client.level(&shown) == ClientLevel::Confirmed {
        return Ok(());
    }
    site.rates.take(RateOf::Rule(rule), rate, site.clock.monotonic()).map_err(|wait| {
        site.counters.renders_limited.add();
        whole_seconds(wait)
    })
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
    let mut marks = whole.into_iter().chain(&cookies.logins).map(|of| mark(site, host, of));
    marks.find_map(|mark| site.signed_in.session_of(mark, now_ms))
}

fn mark(site: &Site, host: &str, of: &[u8]) -> u128 {
    site.signed_in.mark(MarkOf::Session, &[host.as_bytes(), b"\n", of].concat())
}

fn secret_mark(site: &Site, secret: &[u8]) -> u128 {
    site.signed_in.mark(MarkOf::SessionSecret, secret)
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
    // With credentials, the application may mean these, and the cookies may be invented.
    let is_signed_in =
        refusal_code(response) == Some(SIGNED_IN) && !headers.contains_key(header::AUTHORIZATION);
    let may_sign_in = Kind::of(method) == Kind::Unsafe;
    let logins = set().filter(|_| may_sign_in).filter_map(|line| rules.login_set_by(line));
    let logins: Vec<&[u8]> = logins.collect();
    if !is_signed_in && logins.is_empty() {
        return;
    }
    let asked = (host, site.clock.now().0);
    let sent = rules.visitor_cookies(&AsSent(headers), std::iter::empty(), asked);
    let next = rules.visitor_cookies(&AsSent(headers), set(), asked);
    let sessions = [sent.session.as_slice(), next.session.as_slice()].into_iter();
    let sessions = sessions.filter(|session| is_signed_in && !session.is_empty());
    confirm(site, host, (&sent, &next), sessions.chain(logins));
}

/// Confirms sets of session cookies and login cookies of the client that has `sent` cookies, and has those of `next` for
/// its next request. If one of their secrets is of a session already, they are of it. New ones are confirmed within the
/// rate of that session only: otherwise sets with invented cookies would displace the marks of others.
///
/// Two responses at once that begin the same session give it two numbers, and the later one stays.
fn confirm<'a>(
    site: &Site,
    host: &str,
    (sent, next): (&VisitorCookies, &VisitorCookies),
    confirmed: impl Iterator<Item = &'a [u8]>,
) {
    let (marks, now_ms) = (&site.signed_in, site.clock.now().0);
    let of_secret = |secret: &Vec<u8>| marks.session_of(secret_mark(site, secret), now_ms);
    let counted = session(site, sent, host);
    let known = counted.or_else(|| sent.secrets.iter().chain(&next.secrets).find_map(of_secret));
    let shown = ShownEvidence { session: known, ..ShownEvidence::default() };
    let (clients, now) = (&site.per_address.clients, site.clock.monotonic());
    let is_within_rate = match (known, counted) {
        (None, _) => true,
        (_, Some(_)) => clients.level(&shown, now) <= ClientLevel::Known,
        // The request was counted for its address.
        (_, None) => clients.note_miss_of(&shown, now).0 == ClientLevel::Confirmed,
    };
    let number = known.unwrap_or_else(random_number);
    let add = |mark| marks.add_of(mark, number, (now_ms, CONFIRMED_MS));
    let new = confirmed.map(|of| mark(site, host, of));
    new.filter(|mark| is_within_rate || marks.has(*mark, now_ms)).for_each(add);
    // Those that a client has added to its session may be invented.
    let may_be_invented = |secret: &Vec<u8>| known.is_some() && sent.secrets.contains(secret);
    let secrets = sent.secrets.iter().chain(&next.secrets);
    let own = secrets.filter(|secret| !may_be_invented(secret) || of_secret(secret).is_some());
    own.for_each(|secret| add(secret_mark(site, secret)));
}
