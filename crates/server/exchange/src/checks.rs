//! The checks of a request before it is answered: rate limits for all requests (`limit`), and passwords (`auth_file`).
//!
//! Which check is next is decided in [`steps`](crate::steps), without an effect; this module carries it out. Until all
//! are passed, nothing else happens to a request. `Authorization` is consumed by the check, so that a page behind a
//! password can be cached for all who have it; with `auth_forward`, the origin gets it and answers each request.
//!
//! Passwords of all sites are checked on one queue, and all rates are in one table: those of the default site.

use crate::edge;
use crate::steps::{AskedRequest, RequestStep};
use delivery::body::ResponseBody;
use delivery::serve;
use delivery::site::Site;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use passwords::{Credentials, PasswordFile, PasswordOutcome};
use reasons::Reason;
use site_rules::{AuthRule, LimitCount, LimitRule, RequestClient};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use telemetry::client::{Client, PassedChecks, RequestLimits};
use telemetry::limit_hits::Limit;

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
    limits.count(limit, site.clock.now()).map_err(|seconds| {
        site.counters.rate_limited.add();
        let mut response = serve::error(StatusCode::TOO_MANY_REQUESTS, Reason::RateLimited, None);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
        Box::new(response)
    })
}

/// The limits under which a request may be counted.
fn limits(default_site: &Arc<Site>, asked: &AskedRequest<'_>) -> RequestLimits {
    let mut site = DefaultHasher::new();
    asked.site.config.hosts.canonical.hash(&mut site);
    let entries = default_site.limits.rate_limit_entries;
    let key = (site.finish(), asked.client.address());
    RequestLimits::new((&default_site.per_address, entries), key)
}

fn rule_of(site: &Site, rule: usize) -> Result<&AuthRule, RefusalResponse> {
    site.config
        .rules
        .auth_rules()
        .find(|auth| auth.rule == rule)
        .ok_or_else(|| Box::new(serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None)))
}

/// Checks the password of a request, and returns the name of the user.
async fn checked(
    default_site: &Arc<Site>,
    asked: &AskedRequest<'_>,
    auth: &AuthRule,
) -> Result<String, RefusalResponse> {
    let site = asked.site;
    let refused = || Box::new(refused(site, auth));
    let file = site.config.passwords.get(&auth.file).ok_or_else(refused)?;
    let given = credentials(asked.headers).ok_or_else(refused)?;
    let now = site.clock.monotonic();
    if file.is_due(now) {
        read_again(file).await;
    }
    match default_site.passwords.check(file, &given, now).await {
        PasswordOutcome::Right => Ok(given.user().to_owned()),
        PasswordOutcome::Wrong => Err(refused()),
        PasswordOutcome::Busy => {
            site.counters.limit_hits.note(Limit::PasswordChecks);
            let mut response =
                serve::error(StatusCode::SERVICE_UNAVAILABLE, Reason::PasswordsBusy, None);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
            Err(Box::new(response))
        }
    }
}

/// The credentials of a request; none if it has several.
fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    match (lines.next(), lines.next()) {
        (Some(only), None) => Credentials::read(only.as_bytes()),
        _ => None,
    }
}

/// Reads a password file again if it has changed.
async fn read_again(file: &Arc<PasswordFile>) {
    let again = file.clone();
    match tokio::task::spawn_blocking(move || again.refresh()).await {
        Ok(Ok(true)) => tracing::info!(event = "passwords-read", ?file),
        Ok(Err(error)) => tracing::error!(event = "passwords-unusable", %error),
        Ok(Ok(false)) | Err(_) => {}
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
