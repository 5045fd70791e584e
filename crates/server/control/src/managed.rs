//! All certificates in use, with their state: for `GET /v1/certificates`, the metrics and the findings.
//!
//! Invariant: the report is empty without TLS. Not here: files that cannot be read (`attention::files`).

use certificates::ManagedReport;
use delivery::site::Site;

/// The report of all certificates.
pub(crate) fn report(site: &Site) -> ManagedReport {
    site.certificates.get().map(|all| all.report()).unwrap_or_default()
}
