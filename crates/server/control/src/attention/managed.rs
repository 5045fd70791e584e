//! Problems of managed certificates: one that ends soon, one that cannot be obtained, a storage that cannot be used.
//!
//! A failed try is a problem only if it matters: the host has no certificate, or less than a fifth of its lifetime is
//! left. Not here: certificates in files (`files`).

use super::Problem;
use crate::managed::report;
use certificates::CertificateStatus;
use delivery::site::Site;

/// An hour in milliseconds.
const HOUR_MS: u64 = 3_600_000;

pub(super) fn problems(default_site: &Site) -> Vec<Problem> {
    let (report, now_ms) = (report(default_site), default_site.clock.now().0);
    let managed = report.certificates.iter().filter(|status| status.file.is_none());
    let mut all: Vec<Problem> = managed.filter_map(|status| problem(status, now_ms)).collect();
    all.extend(report.storage_error.map(|error| Problem {
        name: "certificate-storage",
        subject: "acme.storage".into(),
        what: format!("Certificates cannot be stored or read: {error}."),
        remedy: "Do what the message says, as root. Pagewell tries again by itself.".into(),
    }));
    all
}

fn problem(status: &CertificateStatus, now_ms: u64) -> Option<Problem> {
    let name = &status.name;
    let failure = status.failure.as_ref();
    let reason = failure
        .map(|failure| format!(" The last try failed: {}.", failure.text.trim_end_matches('.')));
    let reason = reason.unwrap_or_default();
    let remedy = match failure {
        Some(failure) => {
            let remedy = failure.cause.remedy();
            let (first, rest) = remedy.split_at(remedy.chars().next().map_or(0, char::len_utf8));
            format!("{}{rest}. `pagewell certificates` shows the next try.", first.to_uppercase())
        }
        None => "Look for events that begin with certificate- in the log: journalctl -u pagewell."
            .into(),
    };
    let Some((begins_ms, ends_ms)) = status.begins_ms.zip(status.ends_ms) else {
        failure?;
        let what = format!("{name} has no certificate, so its HTTPS does not work.{reason}");
        return Some(Problem {
            name: "certificate-not-obtained",
            subject: name.clone(),
            what,
            remedy,
        });
    };
    let left_ms = ends_ms.saturating_sub(now_ms);
    if left_ms > ends_ms.saturating_sub(begins_ms) / 5 || (failure.is_none() && left_ms > 0) {
        return None;
    }
    let what = match left_ms {
        0 => {
            let hours = now_ms.saturating_sub(ends_ms) / HOUR_MS;
            format!("The certificate of {name} has ended {hours} hours ago.{reason}")
        }
        left_ms => {
            format!("The certificate of {name} ends in {} hours.{reason}", left_ms / HOUR_MS)
        }
    };
    Some(Problem { name: "certificate-ends", subject: name.clone(), what, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use certificates::{FailureCause, TryFailure};

    fn status(left_hours: Option<u64>, is_failed: bool) -> CertificateStatus {
        let ends_ms = left_hours.map(|hours| 1_000 * HOUR_MS + hours * HOUR_MS);
        CertificateStatus {
            name: "a.org".into(),
            begins_ms: ends_ms.map(|ends_ms| ends_ms - 100 * HOUR_MS),
            ends_ms,
            failure: is_failed.then(|| TryFailure {
                at_ms: Some(0),
                text: "refused".into(),
                cause: FailureCause::Port80,
            }),
            ..CertificateStatus::default()
        }
    }

    #[test]
    fn a_failure_is_a_problem_when_it_matters() {
        let of = |left_hours, is_failed| problem(&status(left_hours, is_failed), 1_000 * HOUR_MS);
        assert_eq!(of(None, false), None, "the first try is under way");
        let none = of(None, true).unwrap();
        assert_eq!(none.name, "certificate-not-obtained");
        assert!(none.remedy.starts_with("Port 80 is not reachable"), "{}", none.remedy);
        assert_eq!((of(Some(50), true), of(Some(10), false)), (None, None));
        assert!(
            of(Some(10), true)
                .unwrap()
                .what
                .contains("ends in 10 hours. The last try failed: refused.")
        );
        assert!(of(Some(0), false).unwrap().what.contains("has ended 0 hours ago"));
    }
}
