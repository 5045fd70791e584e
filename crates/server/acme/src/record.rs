//! The record of a host in the storage, as JSON: its failures, its renewal time, and an order that is not finished.
//!
//! Invariant: unknown fields are ignored and missing ones have defaults, so that nodes of two versions can share a
//! storage. Not here: certificates with their keys (`leaf`), and the moment of the next try (`schedule`).

use certificates::{FailureCause, TryFailure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of a host that is to have a certificate. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameRecord {
    /// Failed rounds since the last success.
    pub failures: u32,
    /// When the last round failed.
    pub failed_at_ms: u64,
    /// How long the next try waits after the last failure.
    pub wait_ms: u64,
    /// Until when authorities must not be called for this host, by their directories (`Retry-After`).
    pub refused_until_ms: BTreeMap<String, u64>,
    /// The message of the last failure.
    pub failure_text: String,
    /// The name of its cause.
    pub failure_cause: String,
    /// The directory of the authority that has issued the certificate.
    pub issued_by: Option<String>,
    /// The renewal time that the authority suggests.
    pub suggestion: Option<SuggestionRecord>,
    /// An order that is not finished. A node that continues it does not order again.
    pub order: Option<OrderRecord>,
}

/// The renewal time that an authority suggests (ARI, RFC 9773).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuggestionRecord {
    /// When the authority was called.
    pub asked_ms: u64,
    /// The suggested window; `None` if the authority suggests none.
    pub window_ms: Option<(u64, u64)>,
    /// The chosen time in the window.
    pub chosen_ms: u64,
}

/// An order that is not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderRecord {
    /// The URL of the order.
    pub url: String,
    /// The directory of its authority.
    pub directory: String,
    /// The private key of the certificate, in PEM.
    pub key_pem: String,
}

/// A pending challenge of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeRecord {
    /// The kind of the challenge.
    pub kind: ChallengeKind,
    /// The token of the challenge.
    pub token: String,
    /// The key authorization (RFC 8555 section 8.1).
    pub authorization: String,
}

/// The kinds of challenges that Pagewell answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// A path over HTTP, at port 80.
    #[serde(rename = "http-01")]
    Http01,
    /// A TLS handshake, at port 443.
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
}

impl NameRecord {
    /// The last failure, for operators.
    pub fn failure(&self) -> Option<TryFailure> {
        let cause = FailureCause::of_name(&self.failure_cause).unwrap_or(FailureCause::Authority);
        (self.failures > 0).then(|| TryFailure {
            at_ms: Some(self.failed_at_ms),
            text: self.failure_text.clone(),
            cause,
        })
    }

    /// Records a failed round, after which the next try waits for this long.
    pub fn fail(&mut self, text: &str, cause: FailureCause, now_ms: u64, wait_ms: u64) {
        self.failures = self.failures.saturating_add(1);
        (self.failed_at_ms, self.wait_ms) = (now_ms, wait_ms);
        self.failure_text = text.to_owned();
        cause.as_str().clone_into(&mut self.failure_cause);
    }

    /// How long the authority with this directory asks to wait, if it does.
    pub fn asked_wait_ms(&self, directory: &str, now_ms: u64) -> Option<u64> {
        self.refused_until_ms.get(directory)?.checked_sub(now_ms).filter(|left_ms| *left_ms > 0)
    }

    /// Records a certificate of this authority.
    pub fn succeed(&mut self, directory: &str) {
        *self = NameRecord { issued_by: Some(directory.to_owned()), ..NameRecord::default() };
    }
}
