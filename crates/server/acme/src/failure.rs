//! Why a certificate was not obtained: the message, and the cause with its remedy, as far as the message tells it.
//!
//! Authorities describe failures by types (RFC 8555 section 6.7) and by free texts. A cause that is not recognised
//! leaves the message. Invariant: the text has no control characters, and a bounded length, because operators see it
//! in a terminal.

use crate::record::ChallengeKind;
use certificates::FailureCause;
use instant_acme::{Error, Problem};

/// The most characters of a message.
pub const TEXT_CHARACTERS: usize = 500;

/// A failure to obtain a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFailure {
    /// The cause, by which operators find a remedy.
    pub cause: FailureCause,
    /// The message, mostly of the authority.
    pub text: String,
}

impl OrderFailure {
    /// A failure with this cause and message.
    pub fn of(cause: FailureCause, text: &str) -> OrderFailure {
        let shown = |character: char| if character.is_control() { ' ' } else { character };
        OrderFailure { cause, text: text.chars().take(TEXT_CHARACTERS).map(shown).collect() }
    }

    /// The failure of a request to an authority.
    pub fn of_error(error: &Error, kind: Option<ChallengeKind>) -> OrderFailure {
        match error {
            Error::Api(problem) => OrderFailure::of_problem(problem, kind),
            // A certificate of the authority that is not valid at this machine's time.
            other => {
                let text = other.to_string();
                let is_time =
                    text.contains("certificate expired") || text.contains("not valid yet");
                let cause = if is_time { FailureCause::Clock } else { FailureCause::Authority };
                OrderFailure::of(cause, &text)
            }
        }
    }

    /// The failure that an authority describes in these bytes (RFC 9457); `None` if they describe none.
    pub fn of_bytes(problem: &[u8], kind: Option<ChallengeKind>) -> Option<OrderFailure> {
        let problem: Problem = serde_json::from_slice(problem).ok()?;
        Some(OrderFailure::of_problem(&problem, kind))
    }

    /// The failure that an authority describes.
    pub fn of_problem(problem: &Problem, kind: Option<ChallengeKind>) -> OrderFailure {
        let parts = problem.subproblems.iter().filter_map(|part| part.detail.as_deref());
        let details: Vec<&str> = problem.detail.as_deref().into_iter().chain(parts).collect();
        let details = details.join("; ");
        let name = problem.r#type.as_deref().unwrap_or_default();
        let name = name.rsplit(':').next().unwrap_or_default();
        OrderFailure::of(cause(name, &details, kind), &format!("{details} ({name})"))
    }
}

/// The cause of a problem with this type and these details.
fn cause(name: &str, details: &str, kind: Option<ChallengeKind>) -> FailureCause {
    let details = details.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| details.contains(word));
    match name {
        "caa" => FailureCause::Caa,
        "dns" => FailureCause::Dns,
        "rateLimited" => FailureCause::RateLimited,
        _ if has(&["caa record"]) => FailureCause::Caa,
        "connection" | "tls" | "incorrectResponse" | "unauthorized"
            if kind == Some(ChallengeKind::Http01)
                && has(&["https://", "redirect", "invalid port", "too many hops"]) =>
        {
            FailureCause::Redirected
        }
        "connection" => match kind {
            Some(ChallengeKind::TlsAlpn01) => FailureCause::Port443,
            _ => FailureCause::Port80,
        },
        "tls" => FailureCause::Port443,
        "unauthorized" | "incorrectResponse" if kind.is_some() => FailureCause::OtherServer,
        "serverInternal" | "badNonce" | "malformed" => FailureCause::Authority,
        _ => FailureCause::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, detail: &str, kind: ChallengeKind) -> FailureCause {
        let text = format!(r#"{{"type":"urn:ietf:params:acme:error:{name}","detail":"{detail}"}}"#);
        let failure = OrderFailure::of_bytes(text.as_bytes(), Some(kind)).expect("a problem");
        assert!(failure.text.contains(detail) && failure.text.contains(name));
        failure.cause
    }

    #[test]
    fn causes_are_recognised_in_the_words_of_lets_encrypt() {
        use ChallengeKind::{Http01, TlsAlpn01};
        let timeout = "192.0.2.1: Fetching http://a.org/.well-known/acme-challenge/x: Timeout during connect (likely firewall problem)";
        assert_eq!(of("connection", timeout, Http01), FailureCause::Port80);
        assert_eq!(
            of("connection", "192.0.2.1: Connection refused", TlsAlpn01),
            FailureCause::Port443
        );
        let caa = "CAA record for a.org prevents issuance";
        assert_eq!(of("caa", caa, Http01), FailureCause::Caa);
        assert_eq!(of("rejectedIdentifier", caa, Http01), FailureCause::Caa);
        let redirected =
            "192.0.2.1: Invalid response from https://a.org/.well-known/acme-challenge/x: 404";
        assert_eq!(of("unauthorized", redirected, Http01), FailureCause::Redirected);
        let other =
            "192.0.2.1: Invalid response from http://a.org/.well-known/acme-challenge/x: 404";
        assert_eq!(of("unauthorized", other, Http01), FailureCause::OtherServer);
        assert_eq!(
            of("dns", "DNS problem: NXDOMAIN looking up A for a.org", Http01),
            FailureCause::Dns
        );
        let limited = "too many certificates (5) already issued for this exact set";
        assert_eq!(of("rateLimited", limited, Http01), FailureCause::RateLimited);
        assert_eq!(of("rejectedIdentifier", "policy forbids", Http01), FailureCause::Refused);
        assert_eq!(of("serverInternal", "down", Http01), FailureCause::Authority);
    }

    #[test]
    fn a_message_can_be_shown_in_a_terminal() {
        let failure =
            OrderFailure::of(FailureCause::Authority, &format!("\x1b[2J{}", "x".repeat(900)));
        assert_eq!(failure.text.chars().count(), TEXT_CHARACTERS);
        assert!(!failure.text.contains('\x1b'));
    }
}
