//! `GET /v1/certificates`: all certificates in use, each with its issuer, its end, the next try, and the last failure
//! with its remedy. Also their metrics.
//!
//! Invariants: the number of series depends on the configuration alone; a name has one series, of the certificate that
//! ends first.

use super::metrics::{begin, escaped};
use crate::api::metrics::Format;
use crate::managed::report;
use crate::metrics_table::Kind;
use certificates::CertificateStatus;
use delivery::site::Site;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
        "file": status.file,
        "issuer": status.issuer,
        "ends_ms": status.ends_ms,
        "ends_in_s": status.ends_ms.map(left_s),
        "next_try_ms": status.next_try_ms,
        "next_try_in_s": status.next_try_ms.map(|at_ms| left_s(at_ms).max(0)),
        "failure": failure,
    })
}

/// Writes the metrics of certificates.
pub(super) fn metrics(out: &mut String, site: &Site, format: Format) {
    let (report, now_ms) = (report(site), site.clock.now().0);
    if !report.certificates.is_empty() {
        begin(out, "pagewell_certificate_expiry_seconds", EXPIRY, Kind::Gauge, format);
    }
    for (name, left_s) in left(&report.certificates, now_ms) {
        let name = escaped(name);
        let _ = writeln!(out, "pagewell_certificate_expiry_seconds{{name=\"{name}\"}} {left_s}");
    }
    if site.config.acme.is_none() {
        return;
    }
    begin(out, "pagewell_acme_orders", ORDERS, Kind::Counter, format);
    for (result, count) in report.orders {
        let _ = writeln!(out, "pagewell_acme_orders_total{{result=\"{result}\"}} {count}");
    }
}

/// The seconds until the end of each name's certificate.
fn left(all: &[CertificateStatus], now_ms: u64) -> BTreeMap<&str, f64> {
    let mut left = BTreeMap::new();
    for status in all {
        let of_end = |ends_ms: u64| (ends_ms as f64 - now_ms as f64) / 1000.0;
        let left_s = status.ends_ms.map_or(0.0, of_end);
        let known = left.entry(status.name.as_str()).or_insert(left_s);
        *known = known.min(left_s);
    }
    left
}

const EXPIRY: &str =
    "Seconds until a certificate ends; negative after its end, 0 without a certificate.";

const ORDERS: &str = "Orders of certificates by their result.";

#[test]
fn a_name_has_the_end_of_the_certificate_that_ends_first() {
    let of = |name: &str, ends_ms| CertificateStatus {
        name: name.into(),
        ends_ms,
        ..CertificateStatus::default()
    };
    let all = [of("b", Some(9_000)), of("a", Some(5_000)), of("a", Some(4_000)), of("c", None)];
    let found: Vec<_> = left(&all, 5_000).into_iter().collect();
    assert_eq!(found, [("a", -1.0), ("b", 4.0), ("c", 0.0)]);
}
