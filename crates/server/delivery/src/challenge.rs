//! A challenge, such as Anubis, for clients that are deferred a second time (`misses.challenge`). No other client sees it.
//!
//! | the client | what happens |
//! |---|---|
//! | is deferred for the first time | it gets the page that loads again, and a ticket |
//! | is deferred with a ticket; its cookies are not checked | the same page; the check begins in the background |
//! | … and the challenge lets it pass (2xx) | it comes first among the clients with tickets for 60 s |
//! | … and the challenge refuses it (3xx, 4xx) | 307 to the challenge, with its own URL to return to |
//! | … and there is no answer within 300 ms, or a 404, 405 or 5xx | nothing changes |
//!
//! Paths below `/.within.website/` are the challenge's own: they are forwarded to it and never stored. Invariants: no
//! client waits for a check, at most 32 are made at a time, and no request to the challenge has a credential of the
//! site: `Authorization`, a session or login cookie.

use crate::services::{Challenge, CheckResult};
use crate::site::Site;
use event_log::Seldom;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use miss_control::{OutsideAnswer, ShownEvidence};
use origin::{Admission, OriginClass, OriginRequest};
use request_values::target::TargetUri;
use site_rules::SiteRules;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use telemetry::client::Client;
use tokio::time::timeout;

/// The endpoint that says whether cookies pass.
const CHECK: &str = "/.within.website/x/cmd/anubis/api/check";
/// The page that shows the challenge, up to the URL to return to.
const PAGE: &str = "/.within.website/?redir=";

const CHECK_LASTS: Duration = Duration::from_millis(300);

const PASSED_LASTS: Duration = Duration::from_secs(60);
/// A client that solves the challenge has other cookies afterwards, so this may be short.
const OTHER_LASTS: Duration = Duration::from_secs(10);

/// Whether the challenge has let the client with these header lines pass.
pub(crate) fn has_passed(site: &Site, headers: &HeaderMap) -> bool {
    site.services.challenge().is_some_and(|challenge| {
        let client = challenge.client_of(headers);
        challenge.results.get(client, site.clock.monotonic()) == Some(CheckResult::Passed)
    })
}

/// The address of the challenge for a client that is deferred a second time, if the challenge has refused it. Begins a
/// check if its result is not known.
pub(crate) fn redirect_to(
    site: &Arc<Site>,
    asked: (&Client, &TargetUri, &HeaderMap),
) -> Option<HeaderValue> {
    let challenge = site.services.challenge()?;
    let (_, target, headers) = asked;
    let (client, now) = (challenge.client_of(headers), site.clock.monotonic());
    match challenge.results.get(client, now) {
        Some(CheckResult::Refused) => return page_for(target),
        Some(CheckResult::Passed | CheckResult::Unanswered) => return None,
        None => {}
    }
    if challenge.results.begin(client, now) {
        tokio::spawn(check(site.clone(), challenge.clone(), client, check_request(site, asked)));
    }
    None
}

/// Asks the challenge about a client, and records the result.
async fn check(
    site: Arc<Site>,
    challenge: Arc<Challenge>,
    client: u64,
    mut request: Box<OriginRequest>,
) {
    let answered = async {
        let permit = challenge.checks.admit(&request.admission).await?;
        challenge.checks.send(&mut request, permit, &site.counters).await
    };
    let sent = timeout(CHECK_LASTS, answered).await;
    let result = match sent {
        Ok(Ok(response)) if response.status.is_success() => CheckResult::Passed,
        Ok(Ok(response)) if is_refusal(response.status) => CheckResult::Refused,
        Ok(Ok(response)) => unanswered(&site, &response.status),
        Ok(Err(unsent)) => unanswered(&site, &format_args!("{unsent:?}")),
        Err(_) => unanswered(&site, &"no answer within 300 ms"),
    };
    let is_genuine = result == CheckResult::Passed;
    let lasts = if is_genuine { PASSED_LASTS } else { OTHER_LASTS };
    let answer = OutsideAnswer { answer: result, lasts, is_genuine };
    challenge.results.end(client, answer, site.clock.monotonic());
}

/// Whether a status is a refusal of the challenge. 404 and 405 are those of a server that has no such endpoint: the
/// page of the challenge would not be there either.
fn is_refusal(status: StatusCode) -> bool {
    let is_elsewhere = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    (status.is_redirection() || status.is_client_error()) && !is_elsewhere
}

/// Logs that the challenge does not work, at most once a minute.
fn unanswered(site: &Site, error: &dyn std::fmt::Display) -> CheckResult {
    static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(60));
    if LOGGED.is_due(site.clock.monotonic()) {
        tracing::error!(event = "challenge-failed", %error);
    }
    CheckResult::Unanswered
}

fn check_request(
    site: &Site,
    (client, target, headers): (&Client, &TargetUri, &HeaderMap),
) -> Box<OriginRequest> {
    let admission =
        Admission::of(client, &ShownEvidence::default(), OriginClass::Background, CHECK);
    let mut request = Box::new(OriginRequest {
        target: CHECK.to_owned(),
        ..OriginRequest::of(target, client, admission)
    });
    // Nothing of the check is sent to the client, and it takes none of the client's time.
    request.extras = Default::default();
    for name in [header::COOKIE, header::USER_AGENT, header::ACCEPT, header::ACCEPT_LANGUAGE] {
        for value in headers.get_all(&name) {
            request.headers.append(name.clone(), value.clone());
        }
    }
    describe_client(site, &mut request);
    request
}

/// Prepares a request to the challenge: removes the credentials of the site, and adds the field by which Anubis knows
/// the client's address.
pub fn describe_client(site: &Site, request: &mut OriginRequest) {
    const NAME: HeaderName = HeaderName::from_static("x-real-ip");
    remove_credentials(&site.config.rules, &mut request.headers);
    let address = request.peer.map(|peer| peer.ip().to_canonical().to_string());
    if let Some(value) = address.and_then(|address| HeaderValue::from_str(&address).ok()) {
        request.headers.insert(NAME, value);
    }
}

/// Removes what identifies a user of the site. The cookies of the challenge itself stay.
fn remove_credentials(rules: &SiteRules, headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    headers.remove(header::PROXY_AUTHORIZATION);
    let left = |line: &HeaderValue| {
        let cookies = rules.cookies_without_sessions(line.as_bytes(), is_of_anubis)?;
        HeaderValue::from_bytes(&cookies).ok()
    };
    let lines: Vec<HeaderValue> = headers.get_all(header::COOKIE).iter().filter_map(left).collect();
    headers.remove(header::COOKIE);
    for line in lines {
        headers.append(header::COOKIE, line);
    }
}

/// Whether a cookie is one of Anubis: `techaro.lol-anubis-auth` looks like a login of the site. (With another prefix,
/// the site names it in `cookies.ignore`.)
fn is_of_anubis(name: &[u8]) -> bool {
    const WORD: &[u8] = b"anubis";
    name.windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// The address of the challenge's page, which returns to the target: this site's own URL, whatever its path is.
fn page_for(target: &TargetUri) -> Option<HeaderValue> {
    let mut location = String::from(PAGE);
    for byte in target.uri().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            location.push(char::from(byte));
        } else {
            write!(location, "%{byte:02X}").ok()?;
        }
    }
    HeaderValue::from_str(&location).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_cache::Policy;
    use site_rules::{Secret, Surroundings, raw};

    #[test]
    fn the_challenge_gets_no_credentials_of_the_site() {
        let around = Surroundings {
            base: Policy::default(),
            secret: Secret::new([1; 32]),
            has_trusted_proxies: false,
            files: None,
        };
        let (keys, cookies) = (raw::Keys::default(), raw::Cookies::default());
        let rules = SiteRules::read(&[], &keys, &cookies, around).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Basic eDp5"),
            ("proxy-authorization", "Basic eDp5"),
            ("accept", "text/html"),
            ("cookie", "PHPSESSID=0123456789abcdef; techaro.lol-anubis-auth-347ddb4a=jwt"),
            ("cookie", "wordpress_logged_in_5=me"),
            ("cookie", "pagewell-place=1"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        remove_credentials(&rules, &mut headers);
        let mut left: Vec<&str> = headers.values().map(|value| value.to_str().unwrap()).collect();
        left.sort_unstable();
        let anubis = "techaro.lol-anubis-auth-347ddb4a=jwt";
        assert_eq!(left, ["pagewell-place=1", anubis, "text/html"]);
    }

    #[test]
    fn a_server_without_the_endpoint_refuses_nobody() {
        let refuses = |status: u16| is_refusal(StatusCode::from_u16(status).unwrap());
        assert!([302, 307, 401, 403, 429].into_iter().all(refuses));
        assert!(![200, 404, 405, 500, 503].into_iter().any(refuses));
    }

    #[test]
    fn the_challenge_returns_to_this_site_only() {
        let to = |path: &str| {
            let target = TargetUri {
                scheme: "https",
                host: "a.test".into(),
                path_and_query: path.into(),
                normal: None,
                written: None,
            };
            page_for(&target).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(to("/b?c=d&e"), "/.within.website/?redir=https%3A%2F%2Fa.test%2Fb%3Fc%3Dd%26e");
        assert_eq!(
            to("//evil.test/"),
            "/.within.website/?redir=https%3A%2F%2Fa.test%2F%2Fevil.test%2F"
        );
    }
}
