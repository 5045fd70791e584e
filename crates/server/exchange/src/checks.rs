//! The checks of a request before it is answered: rate limits for all requests (`limit`), and passwords (`auth_file`).
//!
//! Which check is next is decided in [`steps`](crate::steps), without an effect; this module carries it out. Until all
//! are passed, nothing else happens to a request. `Authorization` is consumed by the check, so that a page behind a
//! password can be cached for all who have it; with `auth_forward`, the origin gets it and answers each request.
//!
//! A client may send a wrong password for a user of a site 20 times at once, and then every six seconds: beyond that, it
//! gets a 429 without a look at the password, unless it is a remembered one. Other users at the same address are not
//! concerned. Clients in `connections_exempt` or without an address are not limited: they may be a proxy for many.
//!
//! Passwords of all sites are checked on one queue, and all rates are in one table: those of the default site. The front
//! asks only whether a password is remembered ([`is_remembered`]); all else about it is left to this module.

use crate::edge;
use crate::steps::{AskedRequest, RequestStep};
use delivery::body::ResponseBody;
use delivery::serve;
use delivery::site::Site;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use miss_control::RequestRate;
use passwords::{Credentials, PasswordFile, PasswordOutcome, WrongPasswords};
use reasons::Reason;
use rule_conditions::RequestClient;
use site_rules::{AuthRule, LimitCount, LimitRule};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
use telemetry::client::{Client, PassedChecks, RequestLimits};
use telemetry::clock::Clock;
use telemetry::limit_hits::Limit;

/// The limit of wrong passwords. Rules are numbered from 1.
const WRONG_PASSWORDS: LimitRule = LimitRule {
    rule: 0,
    rate: RequestRate { interval: Duration::from_secs(6), burst: 20 },
    count: LimitCount::All,
};

/// The response to a request that does not pass a check.
pub(crate) type RefusalResponse = Box<Response<ResponseBody>>;

/// A request that has passed its checks.
#[derive(Default)]
pub(crate) struct AdmittedRequest {
    /// The client with what it has passed, if there was a check.
    pub(crate) client: Option<Client>,
    /// Whether `Authorization` was for Pagewell only.
    pub(crate) is_consumed: bool,
}

impl AdmittedRequest {
    fn checks(&mut self, asked: &AskedRequest<'_>) -> &mut PassedChecks {
        &mut self.client.get_or_insert_with(|| asked.client.clone()).extras.checks
    }
}

/// Carries out the checks of a request in their order.
///
/// # Errors
/// The response, if a check is not passed.
pub(crate) async fn admit(
    default_site: &Arc<Site>,
    asked: &AskedRequest<'_>,
) -> Result<AdmittedRequest, RefusalResponse> {
    let mut admitted = AdmittedRequest::default();
    if asked.site.config.rules.has_limits() {
        admitted.checks(asked).limits = Some(Arc::new(limits(default_site, asked)));
    }
    loop {
        let client = admitted.client.as_ref().unwrap_or(asked.client);
        let next = AskedRequest { client, ..*asked }.next_check();
        match next {
            Some(RequestStep::Limited(limit)) => {
                count(asked.site, admitted.checks(asked), limit)?;
            }
            Some(RequestStep::Password(rule)) => {
                let auth = rule_of(asked.site, rule)?;
                let user = checked(default_site, asked, auth).await?;
                let checks = admitted.checks(asked);
                checks.password = Some(rule);
                checks.user = auth.is_forwarded.then(|| user.into());
                admitted.is_consumed = !auth.is_forwarded;
            }
            _ => break,
        }
    }
    if let Some(limit) = edge::limit(asked).filter(|limit| limit.count == LimitCount::Origin) {
        admitted.checks(asked).limit = Some(limit);
    }
    if admitted.is_consumed {
        asked.matches.find_all(asked);
    }
    Ok(admitted)
}

/// Counts a page's request for a fragment under the limit of the fragment's own path, if the page is not counted there
/// yet. Returns the client with its limit, if there is one.
///
/// # Errors
/// The response, if the client has reached the limit.
pub(crate) fn admit_fragment(asked: &AskedRequest<'_>) -> Result<Option<Client>, RefusalResponse> {
    if !asked.site.config.rules.has_limits() {
        return Ok(None);
    }
    let mut client = asked.client.clone();
    match asked.next_check() {
        Some(RequestStep::Limited(limit)) => count(asked.site, &mut client.extras.checks, limit)?,
        // It is refused.
        Some(_) => return Ok(None),
        None => {}
    }
    let limit = edge::limit(asked).filter(|limit| limit.count == LimitCount::Origin);
    client.extras.checks.limit = limit;
    Ok(Some(client))
}

fn count(site: &Site, checks: &mut PassedChecks, limit: LimitRule) -> Result<(), RefusalResponse> {
    checks.is_counted = true;
    let Some(limits) = &checks.limits else { return Ok(()) };
    limits.count(limit, site.clock.now()).map_err(|seconds| limited(site, seconds))
}

/// The response to a request over a limit.
fn limited(site: &Site, seconds: u32) -> RefusalResponse {
    site.counters.rate_limited.add();
    let mut response = serve::error(StatusCode::TOO_MANY_REQUESTS, Reason::RateLimited, None);
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    Box::new(response)
}

/// The limits under which a request may be counted.
fn limits(default_site: &Arc<Site>, asked: &AskedRequest<'_>) -> RequestLimits {
    limits_of(default_site, (asked.site, asked.client), &())
}

/// Whether a request of a client to `site` would be allowed under a limit now. It is not counted.
///
/// # Errors
/// The client has reached the limit: the whole seconds until its next request is allowed.
pub fn check_limit(
    (default_site, site): (&Arc<Site>, &Site),
    client: &Client,
    limit: LimitRule,
) -> Result<(), u32> {
    limits_of(default_site, (site, client), &()).check(limit, site.clock.now())
}

/// The limits of a client for something of a site.
fn limits_of(
    default_site: &Arc<Site>,
    (site, client): (&Site, &Client),
    what: &impl Hash,
) -> RequestLimits {
    let mut number = DefaultHasher::new();
    (&site.config.hosts.canonical, what).hash(&mut number);
    let entries = default_site.limits.rate_limit_entries;
    let key = (number.finish(), client.address());
    RequestLimits::new((&default_site.per_address, entries), key)
}

/// The wrong passwords of a client for one user of a site.
struct WrongOfClient {
    /// `None`: they are not limited.
    limits: Option<RequestLimits>,
    clock: Clock,
}

impl WrongOfClient {
    fn new(default_site: &Arc<Site>, asked: &AskedRequest<'_>, user: &str) -> WrongOfClient {
        let exempt = &default_site.config.connections_exempt;
        let limited = asked.client.address().filter(|address| !exempt.have(*address));
        let limits = limited.map(|_| limits_of(default_site, (asked.site, asked.client), &user));
        WrongOfClient { limits, clock: asked.site.clock.clone() }
    }
}

impl WrongPasswords for WrongOfClient {
    fn may_try(&self) -> Result<(), u32> {
        let check = |limits: &RequestLimits| limits.check(WRONG_PASSWORDS, self.clock.now());
        self.limits.as_ref().map_or(Ok(()), check)
    }

    fn count(&self) {
        if let Some(limits) = &self.limits {
            // If others were counted meanwhile, the limit is reached anyway.
            let _ = limits.count(WRONG_PASSWORDS, self.clock.now());
        }
    }
}

fn rule_of(site: &Site, rule: usize) -> Result<&AuthRule, RefusalResponse> {
    site.config
        .rules
        .auth_rules()
        .find(|auth| auth.rule == rule)
        .ok_or_else(|| Box::new(serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None)))
}

/// Whether the value of a request's only `Authorization` field has a password that is remembered as right for this rule of
/// `site`, at this moment. False also if the rule's file has to be looked at.
pub fn is_remembered(
    (default_site, site): (&Site, &Site),
    rule: usize,
    authorization: &[u8],
    instant: Instant,
) -> bool {
    let now = site.clock.monotonic_at(instant);
    site.config.passwords.of_rule(rule).is_some_and(|file| {
        file.is_fresh(now) && default_site.passwords.remembers(file, authorization, now)
    })
}

/// Checks the password of a request, and returns the name of the user.
async fn checked(
    default_site: &Arc<Site>,
    asked: &AskedRequest<'_>,
    auth: &AuthRule,
) -> Result<String, RefusalResponse> {
    let site = asked.site;
    let refused = || Box::new(refused(site, auth));
    let file = site.config.passwords.of_rule(auth.rule).ok_or_else(refused)?;
    let given = credentials(asked.headers).ok_or_else(refused)?;
    let now = site.clock.monotonic();
    if file.look(now, || site.clock.monotonic(), report_look).await.is_err() {
        return Err(busy());
    }
    let wrong = || WrongOfClient::new(default_site, asked, given.user());
    match default_site.passwords.check(file, &given, now, wrong).await {
        PasswordOutcome::Limited(seconds) => Err(limited(site, seconds)),
        PasswordOutcome::Right => Ok(given.user().to_owned()),
        PasswordOutcome::Wrong => Err(refused()),
        PasswordOutcome::Busy => {
            site.counters.limit_hits.note(Limit::PasswordChecks);
            Err(busy())
        }
    }
}

/// The response to a request whose password cannot be checked now.
fn busy() -> RefusalResponse {
    let mut response = serve::error(StatusCode::SERVICE_UNAVAILABLE, Reason::PasswordsBusy, None);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
    Box::new(response)
}

/// The credentials of a request; none if it has several.
fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    match (lines.next(), lines.next()) {
        (Some(only), None) => Credentials::read(only.as_bytes()),
        _ => None,
    }
}

/// Reads a password file again if it has changed, and logs the result. Blocks.
pub fn refresh_passwords(file: &PasswordFile) {
    report_look(file, file.refresh());
}

/// Logs the result of a look at a password file, if it has changed.
fn report_look(file: &PasswordFile, result: Result<bool, String>) {
    match result {
        Ok(true) => tracing::info!(event = "passwords-read", file = %file.path().display()),
        Err(error) => tracing::error!(event = "passwords-unusable", %error),
        Ok(false) => {}
    }
}

/// The response to a request without a right password (RFC 7617 section 2).
pub(crate) fn refused(site: &Site, auth: &AuthRule) -> Response<ResponseBody> {
    site.counters.passwords_refused.add();
    let mut response = serve::error(StatusCode::UNAUTHORIZED, Reason::PasswordRequired, None);
    let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", auth.realm);
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The response to a page's request for a fragment behind a password that the page's own request did not need.
pub(crate) fn fragment_refused(site: &Site, rule: usize) -> Response<ResponseBody> {
    rule_of(site, rule).map_or_else(|response| *response, |auth| refused(site, auth))
}
