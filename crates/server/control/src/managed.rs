//! The managed certificates, as their manager reports them: for `GET /v1/certificates`, the metrics and the findings.
//!
//! Invariant: without `[acme]` the report is empty. Not here: certificates in files (`attention::files`).

use certificates::ManagedReport;
use delivery::site::Site;

/// The report of the managed hosts; empty if no certificate is managed.
pub(crate) fn report(site: &Site) -> ManagedReport {
    let managed = site.certificates.get().and_then(|all| all.manager());
    managed.map(|managed| managed.report()).unwrap_or_default()
}
