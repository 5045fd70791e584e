//! Problems of files and directories that the configuration names.
//!
//! Certificates that end soon, cannot be read or do not name a host, and directories that this process cannot write.

use super::Problem;
use crate::managed::report;
use certificates::{CertificateStatus, TryFailure, unnamed_hosts};
use config::{AccessLogTo, Config, TlsPair};
use delivery::site::Site;
use rustix::fs::Access;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate that ends within this time is a problem. Clients of certificate authorities renew them a month
/// before their end, those of six days after half of it.
const SOON_MS: u64 = 2 * DAY_MS;
const DAY_MS: u64 = 24 * 3_600_000;
/// The key of the directory that PHP enters, too, and whose sockets are opened at the start.
const CAPTURES: &str = "automatic.capture_directory";

pub(super) fn problems(default_site: &Arc<Site>) -> Vec<Problem> {
    let config = &default_site.config;
    let now_ms = default_site.clock.now().0;
    let pairs: &[TlsPair] = if config.listen_tls.is_empty() { &[] } else { &config.tls };
    let mut all: Vec<Problem> = pairs.iter().filter_map(unreadable).collect();
    let mut in_files = report(default_site).certificates;
    in_files.retain(|status| status.file.is_some());
    for status in &mut in_files {
        // One problem has one name.
        let is_known = |failure: &TryFailure| {
            all.iter().any(|problem| failure.text.contains(&problem.subject))
        };
        if status.failure.as_ref().is_some_and(is_known) {
            status.failure = None;
        }
    }
    all.extend(in_files.iter().filter_map(|status| certificate(status, now_ms)));
    all.extend(unnamed(default_site));
    all.extend(default_site.all_sites().flat_map(|site| of_configuration(site)));
    all.extend(not_reloaded(default_site));
    all.extend(default_site.all_sites().filter_map(|site| snapshot(site)));
    all.extend(directories(config).iter().filter_map(|(key, path)| directory(key, path)));
    all
}

/// The directories that this process writes, each with the key that names it.
fn directories(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let mut all = Vec::new();
    for site in config.all_sites() {
        let directory = site.kept_directory();
        all.extend(directory.map(|path| ("snapshot.directory", path.to_owned())));
        let captures = site.automatic.as_ref().and_then(|on| on.capture_directory.clone());
        all.extend(captures.map(|path| (CAPTURES, path)));
    }
    all.extend(config.uploads.clone().map(|uploads| ("uploads", uploads)));
    if let Some(AccessLogTo::File(path)) = config.access_log.as_ref().map(|log| &log.to) {
        all.extend(path.parent().map(|parent| ("access_log.to", parent.to_owned())));
    }
    all
}

/// A file that this process cannot read.
fn unreadable(pair: &TlsPair) -> Option<Problem> {
    [&pair.key, &pair.certificate].into_iter().find_map(|path| {
        let why = trusted_files::open(path).err()?;
        let path = path.display();
        Some(Problem {
            name: "certificate-unreadable",
            subject: path.to_string(),
            what: format!(
                "{path} cannot be read ({why}), so a renewed certificate will not be used."
            ),
            remedy: "Let the user of the service read the file; pagewell check names what is in the way."
                .into(),
        })
    })
}

/// A certificate in use that ends soon, or whose renewal cannot be used.
fn certificate(status: &CertificateStatus, now_ms: u64) -> Option<Problem> {
    let path = status.file.as_ref()?;
    let reason = status.failure.as_ref().map(|failure| format!(" {}.", failure.text));
    let left_ms = status.ends_ms?.saturating_sub(now_ms);
    let when = match left_ms {
        0 => {
            let ended_ms = now_ms.saturating_sub(status.ends_ms.unwrap_or(now_ms));
            format!("has ended {} hours ago", ended_ms / 3_600_000)
        }
        left if left < SOON_MS => format!("ends in {} hours", left / 3_600_000),
        _ if reason.is_some() => "was renewed, and the new one cannot be used".into(),
        _ => return None,
    };
    Some(Problem {
        name: "certificate-ends",
        subject: path.clone(),
        what: format!("The certificate {path} {when}.{}", reason.unwrap_or_default()),
        remedy: "Renew it (certbot renew), and see that the renewal reaches this file. Pagewell reads it again by \
                 itself."
            .into(),
    })
}

/// The hosts of the sites that no certificate names.
fn unnamed(default_site: &Site) -> Vec<Problem> {
    let Some(all) = default_site.certificates.get() else { return Vec::new() };
    let hosts = unnamed_hosts(&default_site.config, |host| all.is_given(host));
    let problem = |host: &str| Problem {
        name: "certificate-missing",
        subject: host.to_owned(),
        what: format!("No certificate names {host}, so browsers refuse https://{host}/."),
        remedy: "Name it in the certificate, or add a [[tls]] for it.".into(),
    };
    hosts.into_iter().map(problem).collect()
}

/// The files of a site's configuration that cannot be used as they are now, and a redirect file that never ends.
/// Password files are read here if they have changed, because requests may not need them.
fn of_configuration(site: &Site) -> Vec<Problem> {
    let (redirects, pages) = (&site.config.redirect_files, &site.config.error_pages);
    let of_redirects = redirects.unusable.iter().map(|file| (file, FORMER_REDIRECTS));
    let of_pages = pages.unusable().iter().map(|file| (file, FORMER_CONTENT));
    let mut all: Vec<Problem> = of_redirects
        .chain(of_pages)
        .map(|(file, so)| not_read(file.path.display().to_string(), &file.why, so))
        .collect();
    for file in site.config.passwords.all() {
        exchange::refresh_passwords(file);
        let path = file.path().display().to_string();
        all.extend(file.failure().map(|why| not_read(path, &why, FORMER_CONTENT)));
    }
    all.extend(redirects.endless.as_ref().map(|error| Problem {
        name: "redirects-endless",
        subject: site.config.hosts.canonical.clone().unwrap_or_default(),
        what: format!(
            "A redirect file leads in a circle, and its redirects are sent nevertheless: {error}."
        ),
        remedy: "Correct the line in the file; Pagewell reads it again when it changes.".into(),
    }));
    all
}

/// The effect of a file that cannot be used.
const FORMER_CONTENT: &str = "its content from before counts";
const FORMER_REDIRECTS: &str = "Pagewell still sends the former redirects";

fn not_read(subject: String, why: &str, so: &str) -> Problem {
    // It may name the file, too.
    let why = why.strip_prefix(&format!("{subject}: ")).unwrap_or(why);
    Problem {
        name: "file-not-read",
        what: format!("{subject} has changed and cannot be used ({why}), so {so}."),
        remedy:
            "Correct the file; Pagewell reads it again by itself. pagewell check tests all files."
                .into(),
        subject,
    }
}

/// The reload that has failed, of the configuration or of its files.
fn not_reloaded(default_site: &Site) -> Vec<Problem> {
    let failed = &default_site.failed_reload;
    let reload = failed.of_reload().map(|why| Problem {
        name: "reload-failed",
        subject: String::new(),
        what: format!("The last reload failed, so the configuration from before counts: {why}"),
        remedy: "Correct the file (pagewell check FILE), then run pagewell reload; a key that needs a restart needs \
                 systemctl restart pagewell."
            .into(),
    });
    let subject = || "A file of the configuration".to_owned();
    let files = failed.of_files().map(|why| not_read(subject(), &why, FORMER_CONTENT));
    reload.into_iter().chain(files).collect()
}

/// The last snapshot of a site that was not written. A database that is not followed is a problem of its own.
fn snapshot(site: &Site) -> Option<Problem> {
    let snapshots = site.snapshots.as_ref()?;
    let why = snapshots.last_failure()?;
    let directory = snapshots.config.directory.display();
    Some(Problem {
        name: "snapshot-not-written",
        subject: directory.to_string(),
        what: format!(
            "The last snapshot in {directory} was not written ({why}), so a restart begins with the pages of an older \
             one, or with none."
        ),
        remedy: format!(
            "Find snapshot-not-written in the log: journalctl -u pagewell. See that the disk has space: df -h \
             {directory}"
        ),
    })
}

fn directory(key: &str, path: &Path) -> Option<Problem> {
    let shown = path.display();
    let why = if !path.is_dir() {
        "is missing".to_owned()
    } else {
        let error = rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).err()?;
        format!("cannot be written ({error})")
    };
    let (mode, then) = match key {
        CAPTURES => {
            ("0755", "; then systemctl restart pagewell, because PHP needs the sockets there")
        }
        _ => ("0750", ""),
    };
    Some(Problem {
        name: "directory-not-writable",
        subject: shown.to_string(),
        what: format!("The directory {shown} ({key}) {why}."),
        remedy: format!(
            "Create it, and give it to the user of the service: install -d -o pagewell -m {mode} {shown}{then}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use certificates::FailureCause;

    #[test]
    fn a_certificate_in_use_is_a_problem_by_its_end_and_its_file() {
        let of = |left_hours: u64, failure: Option<&str>| {
            let failure = failure.map(|text| TryFailure {
                at_ms: None,
                text: text.into(),
                cause: FailureCause::File,
            });
            let status = CertificateStatus {
                ends_ms: Some((1_000 + left_hours) * 3_600_000),
                file: Some("/a.pem".into()),
                failure,
                ..CertificateStatus::default()
            };
            certificate(&status, 1_000 * 3_600_000).map(|problem| problem.what)
        };
        assert_eq!(of(49, None), None);
        assert_eq!(of(47, None).unwrap(), "The certificate /a.pem ends in 47 hours.");
        assert_eq!(of(0, None).unwrap(), "The certificate /a.pem has ended 0 hours ago.");
        let why = "tls.key: /a.key is not the key of /a.pem";
        assert!(of(900, Some(why)).unwrap().ends_with(&format!("cannot be used. {why}.")));
    }

    #[test]
    fn a_directory_has_to_be_there() {
        assert!(directory("uploads", &std::env::temp_dir()).is_none());
        let missing = directory("uploads", Path::new("/no/such")).unwrap();
        assert!(missing.what.contains("/no/such (uploads) is missing"), "{}", missing.what);
        assert!(missing.remedy.ends_with("-m 0750 /no/such"), "{}", missing.remedy);
        // PHP enters it as another user.
        let captures = directory(CAPTURES, Path::new("/no/such")).unwrap();
        assert!(captures.remedy.contains("-m 0755 /no/such; then"), "{}", captures.remedy);
    }

    #[test]
    fn every_directory_that_is_written_is_looked_at() {
        let root = std::env::temp_dir().join(format!("pagewell-written-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("index.php"), "<?php").unwrap();
        let text = format!(
            "uploads = \"/x/uploads\"\nphp.at = \"127.0.0.1:1\"\nsite.root = {root:?}\n\
             snapshot.directory = \"/x/pages\"\naccess_log.to = \"/x/log/access.log\"\n\
             [[database]]\nurl = \"mysql://p@localhost/shop?socket=/x\"\n\
             [automatic]\nenabled = true\ncapture_directory = \"/x/captures\"\n"
        );
        let config = config::resolve(&toml::from_str(&text).unwrap()).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let found: Vec<_> = directories(&config)
            .into_iter()
            .map(|(key, path)| format!("{key} {}", path.display()))
            .collect();
        let right = [
            "snapshot.directory /x/pages",
            "automatic.capture_directory /x/captures",
            "uploads /x/uploads",
            "access_log.to /x/log",
        ];
        assert_eq!(found, right);
    }
}
