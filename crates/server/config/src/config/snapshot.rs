//! `[snapshot]`: the directory for pages that survive a restart, and how often they are written.
//!
//! If a site follows no database, changes during a downtime are unknown, so the operator has to
//! choose the behaviour. The fingerprint is a hash of everything that determines a page and the
//! requests that find it. A snapshot with another fingerprint is not loaded.

use super::raw::{self, File};
use super::resolve::{LoadError, wrong};
use super::units::{parse_bytes, parse_duration};
use super::{Config, SiteConfig, resolve_rules};
use std::path::{Path, PathBuf};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

const EVERY: Duration = Duration::from_secs(600);
/// The minimum interval; more frequent snapshots would take most of the time.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// How the pages of a site survive a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The directory of the snapshots.
    pub directory: PathBuf,
    /// The prefix of the site's file names in it.
    pub name: String,
    /// Time from the end of one snapshot to the beginning of the next.
    pub every: Duration,
    /// Maximum size of a snapshot in bytes.
    pub bytes_max: u64,
    /// The fingerprint: a hash of everything on which the meaning of the pages depends.
    pub print: u128,
}

/// The files of a site's records, beside the snapshots of its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFiles {
    /// The record of a trial.
    pub trial: PathBuf,
    /// The results of an audit.
    pub audit: PathBuf,
}

impl Config {
    /// The directory of this site's files that survive a restart: snapshots of pages, and the records of a trial and an
    /// audit.
    pub fn kept_directory(&self) -> Option<&Path> {
        let of_pages = self.snapshot.as_ref().map(|snapshot| &*snapshot.directory);
        let has_record = self.trial.is_some() || self.audit.is_some();
        let of_records = self.records.as_ref().filter(|_| has_record);
        of_pages.or_else(|| of_records?.trial.parent())
    }
}

/// Checks and completes `[snapshot]`; `None` if no snapshots are written, or they could not be
/// relied on.
pub(super) fn resolve(
    file: &File,
    site: &SiteConfig,
    memory_bytes: usize,
) -> Result<Option<Snapshot>, LoadError> {
    let raw = &file.snapshot;
    let Some(directory) = &raw.directory else {
        return if raw.every.is_some() || raw.max_size.is_some() || raw.unwatched.is_some() {
            wrong("snapshot.directory", "is required, because it turns snapshots on")
        } else {
            Ok(None)
        };
    };
    let every = match raw.every.as_deref().map(parse_duration) {
        None => EVERY,
        Some(Ok(every)) if every >= EVERY_MIN => every,
        Some(Ok(_)) => return wrong("snapshot.every", "must be at least 1s"),
        Some(Err(error)) => return wrong("snapshot.every", error),
    };
    let bytes_max = match raw.max_size.as_deref().map(parse_bytes) {
        None => memory_bytes as u64,
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return wrong("snapshot.max_size", error),
    };
    let is_watched = !file.database.is_empty();
    match raw.unwatched.as_deref() {
        Some("serve") => {}
        Some("drop") if !is_watched => return Ok(None),
        None if !is_watched => {
            return wrong(
                "snapshot.unwatched",
                "no [[database]] is followed, so changes while Pagewell was down are unknown: \
                 write \"serve\" if nothing changes meanwhile, or \"drop\" to start without \
                 this site's pages",
            );
        }
        None | Some("drop") => {}
        Some(other) => {
            return wrong("snapshot.unwatched", format!("{other:?}: must be serve or drop"));
        }
    }
    let name = files_prefix(file)?;
    let print = print(file, site, Rewrites::Counted);
    Ok(Some(Snapshot { directory: directory.clone(), name, every, bytes_max, print }))
}

/// Returns the files of the records of a trial and an audit; `None` without a directory. `unwatched` does not concern
/// them: a record is no page, so no change while Pagewell is down makes it wrong.
pub(super) fn record_files(file: &File) -> Result<Option<RecordFiles>, LoadError> {
    let Some(directory) = &file.snapshot.directory else { return Ok(None) };
    let name = files_prefix(file)?;
    let at = |end: &str| directory.join(format!("{name}.{end}"));
    Ok(Some(RecordFiles { trial: at("trial"), audit: at("audit") }))
}

/// Returns the prefix of the site's file names in the directory.
fn files_prefix(file: &File) -> Result<String, LoadError> {
    let hosts = resolve_rules::hosts(file)?;
    Ok(hosts.canonical.as_deref().unwrap_or("site").replace(':', "+"))
}

/// Whether a fingerprint has the rewrites of rules. A reload purges the pages that they concern; a snapshot of other
/// rewrites is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rewrites {
    Counted,
    Omitted,
}

/// Computes the fingerprint of the pages from everything except the settings listed here.
pub(super) fn print(file: &File, site: &SiteConfig, rewrites: Rewrites) -> u128 {
    let database = |database: &raw::Database| {
        // The name and password of the account do not affect the pages.
        let place = database.url.rsplit('@').next().unwrap_or_default();
        format!("{place:?}")
    };
    let mut databases: Vec<String> = file.database.iter().map(database).collect();
    if let Some(url) = &file.cluster.url {
        let place = url.rsplit('@').next().unwrap_or_default();
        databases.push(format!("{place:?} {:?}", file.cluster.key));
    }
    let mut other = file.clone();
    other.listen = None;
    other.listen_tls = None;
    other.https_redirect = None;
    other.connections_exempt = None;
    // A GET below this path is no request for a page.
    other.purge = raw::Purge { get_below: other.purge.get_below, ..raw::Purge::default() };
    other.proxy_protocol = None;
    other.admin = None;
    other.admin_token_file = None;
    other.user = None;
    other.group = None;
    other.memory = None;
    other.uploads = None;
    other.hits_in_front = None;
    other.audit = None;
    (other.mode, other.site.mode) = (None, None);
    (other.trial, other.site.trial) = (raw::TrialKeys::default(), None);
    other.database = Vec::new();
    other.cluster = raw::ClusterKeys::default();
    other.tls = Vec::new();
    // Only whether there is one: it decides who answers challenges.
    other.acme = other.acme.map(|_| raw::AcmeKeys::default());
    other.rewarm = raw::Rewarm::default();
    other.misses = raw::MissesKeys::default();
    other.wake = Vec::new();
    other.site.wake = None;
    other.traces = raw::Traces::default();
    other.access_log = raw::AccessLog::default();
    other.cache.server_timing = None;
    other.cache.inactive = None;
    other.rule.iter_mut().for_each(|rule| rule.server_timing = None);
    other.rule = other.rule.into_iter().filter_map(site_rules::raw::Rule::without_access).collect();
    if rewrites == Rewrites::Omitted {
        let rules = other.rule.into_iter();
        other.rule = rules.filter_map(site_rules::raw::Rule::without_rewrite).collect();
    }
    other.error_pages.clear();
    other.site.error_pages = None;
    other.memcached = raw::Memcached::default();
    other.snapshot = raw::Snapshot::default();
    other.limits.clear();
    other.php.children = None;
    other.php.binary = None;
    other.site.memory = None;
    other.site.canonical_redirect = None;
    other.site.redirect_files = Vec::new();
    other.site.internal_files.clear();
    other.site.php = None;
    other.site.cache = None;
    other.site.cluster = None;
    let root = site.files.as_ref().map(|files| &files.root);
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("{version} {} {other:?} {databases:?} {root:?}", page_snapshot::VERSION);
    xxh3_128(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use crate::config::{RecordFiles, Snapshot, resolve};
    use std::path::Path;

    const SITE: &str = "site.origin = \"http://127.0.0.1:1\"\n";

    fn read(text: &str) -> Result<Option<Snapshot>, String> {
        let file = toml::from_str(&format!("{SITE}{text}")).map_err(|error| error.to_string())?;
        resolve(&file).map(|config| config.snapshot).map_err(|error| error.0)
    }

    #[test]
    fn the_records_of_a_trial_and_an_audit_need_the_directory_alone() {
        let config = |text: &str| {
            let file = toml::from_str(text).expect("a file");
            resolve(&file).expect("it can be used")
        };
        let without = config(&format!("mode = \"trial\"\naudit = \"1 in 10\"\n{SITE}"));
        assert_eq!((&without.records, without.kept_directory()), (&None, None));
        let files = RecordFiles { trial: "/x/site.trial".into(), audit: "/x/site.audit".into() };
        for unwatched in ["serve", "drop"] {
            let keys = format!("[snapshot]\ndirectory = \"/x\"\nunwatched = {unwatched:?}");
            for on in ["mode = \"trial\"", "audit = \"1 in 10\""] {
                let with = config(&format!("{on}\n{SITE}{keys}"));
                assert_eq!(with.records.as_ref(), Some(&files), "{unwatched}");
                assert_eq!(with.kept_directory(), Some(Path::new("/x")), "{on}");
            }
        }
        let neither =
            config(&format!("{SITE}[snapshot]\ndirectory = \"/x\"\nunwatched = \"drop\""));
        assert_eq!(neither.kept_directory(), None);
    }

    fn print(text: &str) -> u128 {
        let all = format!("{text}\n[snapshot]\ndirectory = \"/x\"\nunwatched = \"serve\"");
        read(&all).expect("it can be used").expect("it is on").print
    }

    #[test]
    fn it_is_off_unless_there_is_a_directory() {
        assert_eq!(read(""), Ok(None));
        let on = "[snapshot]\ndirectory = \"/x\"\n";
        assert!(read(on).expect_err("nobody tells").contains("no [[database]]"));
        assert_eq!(read(&format!("{on}unwatched = \"drop\"")), Ok(None));
        let used = read(&format!("{on}unwatched = \"serve\"\nmax_size = \"5M\""));
        let used = used.expect("it can be used").expect("it is on");
        assert_eq!((used.name.as_str(), used.bytes_max), ("site", 5 << 20));
        for (more, part) in [
            ("every = \"1ms\"", "at least 1s"),
            ("max_size = \"much\"", "no size"),
            ("unwatched = \"x\"", "serve or drop"),
        ] {
            let said = read(&format!("{on}{more}")).expect_err("it is refused");
            assert!(said.contains(part), "{more}: {said}");
        }
        assert!(read("[snapshot]\nevery = \"5s\"").expect_err("off").contains("directory"));
    }

    #[test]
    fn a_database_is_part_of_the_fingerprint_and_its_account_is_not() {
        let rule = "[[change]]\ntable = \"news\"\ntags = [\"news\"]";
        let of = |url: &str| print(&format!("[[database]]\nurl = {url:?}\n{rule}"));
        let before = of("mysql://a:b@127.0.0.1:3306/x");
        assert_eq!(before, of("mysql://c:d@127.0.0.1:3306/x"));
        assert_ne!(before, of("mysql://a:b@127.0.0.1:3306/y"), "a trial begins a new record, too");
    }

    #[test]
    fn options_that_change_pages_change_the_fingerprint() {
        let plain = print("");
        assert_eq!(plain, print("memory = \"77M\"\nlisten = \"127.0.0.1:7\""));
        assert_eq!(plain, print("connections_exempt = []\npurge.from = [\"10.0.0.0/8\"]"));
        assert_eq!(plain, print("[[rule]]\npath = \"/x\"\ndeny = 403"));
        assert_eq!(plain, print("[[rule]]\npath = \"/x\"\nredirect = \"/y\""));
        for other in [
            "keys.lower_case = true",
            "cache.default_lifetime = \"5s\"",
            "codings.make = []",
            "cookies.ignore = [\"x\"]",
            "purge.get_below = \"/purge\"",
            "[[rule]]\npath = \"/x\"",
            "[[rule]]\nset_headers = { X-A = \"1\" }\ndeny = 403",
        ] {
            assert_ne!(plain, print(other), "{other}");
        }
    }
}
