//! The `VirtualHost` sections of Apache, line by line.
//!
//! `Include` is not followed: the places of Debian and RHEL are known. Sections without a name or a document
//! root are kept, as those that redirect to HTTPS.

use super::{FILES_MAX, ServedSite, WebServer};
use crate::machine::ExaminedMachine;
use std::path::PathBuf;

/// The files with sites: Debian, then RHEL.
const PLACES: [&str; 3] =
    ["/etc/apache2/sites-enabled/*", "/etc/httpd/conf/httpd.conf", "/etc/httpd/conf.d/*.conf"];
/// Directives that do work which Pagewell does not do.
const RULES: [&str; 6] =
    ["rewriterule", "authtype", "require", "header", "redirect", "allowoverride"];

/// The sites in the configuration of Apache.
pub(super) fn sites(machine: &ExaminedMachine) -> Vec<ServedSite> {
    let files = PLACES.iter().flat_map(|place| machine.matching(place)).take(FILES_MAX);
    let mut found = Vec::new();
    for file in files {
        let Some(text) = machine.text_or_none(&file) else { continue };
        let mut open: Option<ServedSite> = None;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace().map(|word| word.trim_matches('"'));
            let Some(name) = words.next().map(str::to_ascii_lowercase) else { continue };
            if name == "<virtualhost" {
                open = Some(ServedSite::new(WebServer::Apache, &file));
            } else if name.starts_with("</virtualhost") {
                found.extend(open.take());
            } else if let Some(site) = &mut open {
                directive(site, &name, words);
            }
        }
    }
    found.sort_by_key(|site| site.root.is_none());
    found
}

fn directive<'a>(site: &mut ServedSite, name: &str, mut values: impl Iterator<Item = &'a str>) {
    match name {
        "servername" | "serveralias" => values.for_each(|name| site.name(name)),
        "documentroot" => site.root = values.next().map(PathBuf::from),
        "sslcertificatefile" | "sslcertificatekeyfile" => {
            let (mut chain, mut key) = site.certificate.take().unwrap_or_default();
            let file = if name == "sslcertificatefile" { &mut chain } else { &mut key };
            *file = values.next().map(PathBuf::from).unwrap_or_default();
            site.certificate = Some((chain, key));
        }
        _ if RULES.contains(&name) => site.rule(name),
        _ => {}
    }
}
