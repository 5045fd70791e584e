//! The seam for certificates that are obtained while Pagewell runs: a trait, and the state of each certificate as
//! operators see it.
//!
//! Invariants: a challenge is answered only for the host for which it is pending; a report has no secrets. Not here:
//! orders, storage and schedule (`acme`), and handshakes (`front`).

use rustls::sign::CertifiedKey;
use std::pin::Pin;

/// The pending challenge of a host, read from the storage that all nodes share.
pub type ChallengeLookup<'a> = Pin<Box<dyn Future<Output = Option<ChallengeAnswer>> + Send + 'a>>;

/// Obtains and renews certificates for hosts.
pub trait ManagedHosts: Send + Sync {
    /// Whether the certificate of this host (in lower case, without a port) is managed.
    fn manages(&self, host: &str) -> bool;

    /// Looks up the pending challenge of a managed host; `None` if there is none.
    fn challenge<'a>(&'a self, host: &'a str) -> ChallengeLookup<'a>;

    /// The state of the managed hosts.
    fn report(&self) -> ManagedReport;
}

/// The answer to a pending challenge.
pub enum ChallengeAnswer {
    /// HTTP-01 (RFC 8555 section 8.3).
    Http {
        /// The last segment of the path.
        token: String,
        /// The content of the response.
        content: String,
    },
    /// TLS-ALPN-01 (RFC 8737): the certificate of the handshake.
    Tls(Box<CertifiedKey>),
}

/// The state of certificates, for operators.
#[derive(Clone, Debug, Default)]
pub struct ManagedReport {
    /// The certificates in files, as configured; then the managed hosts, sorted by name.
    pub certificates: Vec<CertificateStatus>,
    /// Configured hosts that get no certificate, each with the reason.
    pub skipped: Vec<(String, &'static str)>,
    /// Finished orders of this process by result.
    pub orders: [(&'static str, u64); 2],
    /// Why the storage cannot be used, if so.
    pub storage_error: Option<String>,
}

/// The state of one managed host, or of a certificate in a file.
#[derive(Clone, Debug, Default)]
pub struct CertificateStatus {
    /// The host, in lower case; of a certificate in a file, its first name.
    pub name: String,
    /// The name of the issuer; `None` without a certificate.
    pub issuer: Option<String>,
    /// When the certificate begins, in milliseconds since 1970; `None` without a certificate.
    pub begins_ms: Option<u64>,
    /// When the certificate ends, in milliseconds since 1970; `None` without a certificate.
    pub ends_ms: Option<u64>,
    /// When the certificate authority is called next for this host, in milliseconds since 1970.
    pub next_try_ms: Option<u64>,
    /// The last failure since the last success.
    pub failure: Option<TryFailure>,
    /// Its file, if the configuration names it; `None` if it is managed.
    pub file: Option<String>,
}

/// A failure to obtain a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFailure {
    /// When it occurred, in milliseconds since 1970; `None` for a file.
    pub at_ms: Option<u64>,
    /// The message, mostly of the certificate authority.
    pub text: String,
    /// Its cause, as far as it is known.
    pub cause: FailureCause,
}

/// The cause of a failure to obtain a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// Port 80 cannot be reached from the Internet.
    Port80,
    /// Port 443 cannot be reached from the Internet.
    Port443,
    /// A CAA record of the domain forbids this certificate authority.
    Caa,
    /// A proxy or a CDN redirects the challenge to HTTPS.
    Redirected,
    /// Another server answers for the host.
    OtherServer,
    /// The host has no usable address in the DNS.
    Dns,
    /// A limit of the certificate authority is reached.
    RateLimited,
    /// The clock of this machine is wrong.
    Clock,
    /// The certificate authority refuses the host or the account.
    Refused,
    /// The certificate authority cannot be reached, or its answers are invalid.
    Authority,
    /// The storage cannot be written or read.
    Storage,
    /// A file of the configuration cannot be used.
    File,
}

/// All causes, each with its name and its remedy.
const CAUSES: [(FailureCause, &str, &str); 12] = [
    (
        FailureCause::Port80,
        "port-80",
        "port 80 is not reachable from the Internet: open it in the firewall, and let `listen` include it",
    ),
    (
        FailureCause::Port443,
        "port-443",
        "port 443 is not reachable from the Internet: open it in the firewall, and let `listen_tls` include it",
    ),
    (
        FailureCause::Caa,
        "caa",
        "a CAA record of the domain forbids this certificate authority: add it to the record, or set acme.directory",
    ),
    (
        FailureCause::Redirected,
        "redirected",
        "a proxy or CDN redirects the challenge to HTTPS: exempt /.well-known/acme-challenge/ from its redirect",
    ),
    (
        FailureCause::OtherServer,
        "other-server",
        "another server answers for this host: let its DNS records lead to this machine, also the AAAA record",
    ),
    (
        FailureCause::Dns,
        "dns",
        "the host has no usable address: add an A or AAAA record that leads to this machine",
    ),
    (
        FailureCause::RateLimited,
        "rate-limited",
        "a limit of the certificate authority is reached: nothing to do, Pagewell waits as long as it asks",
    ),
    (
        FailureCause::Clock,
        "clock",
        "the clock of this machine is wrong: set it (`timedatectl set-ntp true`)",
    ),
    (
        FailureCause::Refused,
        "refused",
        "the certificate authority refuses the host or the account: see its message; another acme.directory may accept it",
    ),
    (
        FailureCause::Authority,
        "authority",
        "the certificate authority does not answer as it should: check the connection to the Internet, and acme.directory",
    ),
    (
        FailureCause::Storage,
        "storage",
        "the storage of certificates cannot be used: see the message",
    ),
    (
        FailureCause::File,
        "file",
        "the file cannot be used, and the certificate that was read before stays in use: mend what the message names",
    ),
];

impl FailureCause {
    /// The name of the cause, in lower case with hyphens.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The remedy, in a clause for operators.
    pub fn remedy(self) -> &'static str {
        self.row().2
    }

    /// The cause with this name.
    pub fn of_name(name: &str) -> Option<FailureCause> {
        CAUSES.iter().find(|(_, known, _)| *known == name).map(|(cause, ..)| *cause)
    }

    fn row(self) -> &'static (FailureCause, &'static str, &'static str) {
        // The table has a row for each cause: see the test.
        CAUSES.iter().find(|(cause, ..)| *cause == self).unwrap_or(&CAUSES[9])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_row() {
        for (at, (cause, name, _)) in CAUSES.iter().enumerate() {
            assert_eq!(*cause as usize, at);
            assert_eq!(FailureCause::of_name(name), Some(*cause));
        }
        assert_eq!(CAUSES.len(), FailureCause::File as usize + 1);
    }
}
