//! `GET /v1/certificates`: the managed certificates, each with its issuer, its end, the next try, and the last failure
//! with its remedy. Also their metrics.
//!
//! Invariant: the number of series depends on the configured hosts alone.

use super::metrics::{begin, escaped};
use crate::api::metrics::Format;
use crate::managed::report;
use crate::metrics_table::Kind;
use certificates::CertificateStatus;
use delivery::site::Site;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The answer of `GET /v1/certificates`.
pub fn answer(site: &Site) -> Value {
    let (report, now_ms) = (report(site), site.clock.now().0);
    let certificates: Vec<Value> =
        report.certificates.iter().map(|status| of_one(status, now_ms)).collect();
    let skipped = report.skipped.iter().map(|(name, why)| json!({ "name": name, "why": why }));
    json!({
        "certificates": certificates,
        "skipped": skipped.collect::<Vec<_>>(),
        "storage_error": report.storage_error,
    })
}

fn of_one(status: &CertificateStatus, now_ms: u64) -> Value {
    let left_s = |at_ms: u64| (at_ms as i64 - now_ms as i64) / 1000;
    let failure = status.failure.as_ref().map(|failure| {
        json!({
            "cause": failure.cause.as_str(),
            "message": failure.text,
            "remedy": failure.cause.remedy(),
            "at_ms": failure.at_ms,
        })
    });
    json!({
        "name": status.name,
        "issuer": status.issuer,
        "ends_ms": status.ends_ms,
        "ends_in_s": status.ends_ms.map(left_s),
        "next_try_ms": status.next_try_ms,
        "next_try_in_s": status.next_try_ms.map(|at_ms| left_s(at_ms).max(0)),
        "failure": failure,
    })
}

/// Writes the metrics of managed certificates.
pub(super) fn metrics(out: &mut String, site: &Site, format: Format) {
    if site.config.acme.is_none() {
        return;
    }
    let (report, now_ms) = (report(site), site.clock.now().0);
    begin(out, "pagewell_certificate_expiry_seconds", EXPIRY, Kind::Gauge, format);
    for status in &report.certificates {
        let ends_ms = status.ends_ms.unwrap_or(0);
        let left_s = if ends_ms == 0 { 0.0 } else { (ends_ms as f64 - now_ms as f64) / 1000.0 };
        let name = escaped(&status.name);
        let _ = writeln!(out, "pagewell_certificate_expiry_seconds{{name=\"{name}\"}} {left_s}");
    }
    begin(out, "pagewell_acme_orders", ORDERS, Kind::Counter, format);
    for (result, count) in report.orders {
        let _ = writeln!(out, "pagewell_acme_orders_total{{result=\"{result}\"}} {count}");
    }
}

const EXPIRY: &str =
    "Seconds until a managed certificate ends; negative after its end, 0 without a certificate.";

const ORDERS: &str = "Orders of certificates by their result.";
