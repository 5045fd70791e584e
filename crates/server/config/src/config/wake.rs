//! `[[wake]]`: URLs of the site that are requested at intervals, such as WordPress's `wp-cron.php`.
//! Cache hits do not run PHP, so background tasks that an application runs during requests would be
//! delayed. A URL without a host gets the site's host. `wake.rs` sends the requests.
//!
//! A document root with WordPress's `wp-cron.php` gets a request for it by default: without it, a scheduled post would
//! not appear as long as every request is a hit.

use super::resolve::LoadError;
use super::units::parse_duration;
use super::{Address, SiteConfig, raw};
use http::{HeaderMap, Uri};
use request_values::target::TargetUri;
use std::path::Path;
use std::time::Duration;

/// Maximum number of URLs per site.
const WAKES_MAX: usize = 16;
/// The shortest and the longest interval.
const EVERY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(86_400)];

/// WordPress's script for scheduled tasks, and the interval at which it is requested by default.
const WORDPRESS_CRON: &str = "wp-cron.php";
const WORDPRESS_EVERY: Duration = Duration::from_secs(60);
/// The host of default requests to a site without one. WordPress uses it for nothing, except in a network of sites.
const NO_HOST: &str = "localhost";

/// A URL that is requested at intervals.
#[derive(Clone, Debug)]
pub struct Wake {
    /// The target of the requests.
    pub target: TargetUri,
    /// Time from the end of one request to the beginning of the next.
    pub every: Duration,
}

/// Checks and completes `[[wake]]`. `host` is the site's own. A URL without a scheme has HTTPS if the site listens for it.
pub(super) fn resolve(
    all: &[raw::Wake],
    host: Option<&str>,
    listen_tls: &[Address],
    site: &SiteConfig,
) -> Result<Vec<Wake>, LoadError> {
    let scheme = if listen_tls.is_empty() { "http" } else { "https" };
    let root = site.files.as_ref().map(|files| files.root.as_path());
    resolve_in(all, (host, scheme), root)
}

fn resolve_in(
    all: &[raw::Wake],
    (host, scheme): (Option<&str>, &'static str),
    root: Option<&Path>,
) -> Result<Vec<Wake>, LoadError> {
    if all.len() > WAKES_MAX {
        return Err(LoadError(format!("wake: at most {WAKES_MAX} for each site")));
    }
    let mut wakes =
        all.iter().map(|wake| one(wake, host, scheme)).collect::<Result<Vec<Wake>, LoadError>>()?;
    let is_named = all.iter().any(|wake| wake.url.contains(WORDPRESS_CRON));
    if !is_named && root.is_some_and(|root| root.join(WORDPRESS_CRON).is_file()) {
        let host = host.unwrap_or(NO_HOST);
        let uri = Uri::from_static("/wp-cron.php");
        let target = TargetUri::read(&uri, &HeaderMap::new(), host, scheme);
        wakes.extend(target.ok().map(|target| Wake { target, every: WORDPRESS_EVERY }));
    }
    Ok(wakes)
}

fn one(raw: &raw::Wake, host: Option<&str>, scheme: &'static str) -> Result<Wake, LoadError> {
    let wrong = |key: &str, why: String| Err(LoadError(format!("wake.{key}: {why}")));
    let written = &raw.url;
    let Ok(uri) = written.parse::<Uri>() else {
        return wrong("url", format!("{written:?} is not a URL; write \"/wp-cron.php\""));
    };
    let scheme = match (uri.scheme_str(), uri.authority()) {
        (None, None) if host.is_none() => {
            let why =
                "without site.host, write the complete URL: \"http://blog.example/wp-cron.php\"";
            return wrong("url", format!("{written:?}: {why}"));
        }
        (None, None) => scheme,
        (Some("http"), Some(_)) => "http",
        (Some("https"), Some(_)) => "https",
        _ => {
            let why = "write a path that begins with `/`, or a URL of http or https";
            return wrong("url", format!("{written:?}: {why}"));
        }
    };
    let target = TargetUri::read(&uri, &HeaderMap::new(), host.unwrap_or_default(), scheme);
    let Ok(target) = target else {
        return wrong("url", format!("{written:?} is not a URL; write \"/wp-cron.php\""));
    };
    let every =
        parse_duration(&raw.every).map_err(|why| LoadError(format!("wake.every: {why}")))?;
    if EVERY[0] <= every && every <= EVERY[1] {
        Ok(Wake { target, every })
    } else {
        wrong("every", format!("{:?}: must be \"1s\" to \"1d\"", raw.every))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str, every: &str, host: Option<&str>) -> Result<(String, u64), String> {
        let raw = raw::Wake { url: url.into(), every: every.into() };
        let read = resolve_in(&[raw], (host, "https"), None).map_err(|error| error.0)?;
        Ok((read[0].target.uri(), read[0].every.as_secs()))
    }

    #[test]
    fn paths_and_whole_addresses() {
        let cron = ("https://a.test/wp-cron.php?x=1".to_owned(), 60);
        assert_eq!(read("/wp-cron.php?x=1", "1m", Some("a.test")), Ok(cron));
        let other = ("http://b.test/cron".to_owned(), 5);
        assert_eq!(read("http://B.test/cron", "5s", None), Ok(other));
    }

    #[test]
    fn wordpress_is_asked_for_its_scheduled_tasks_unless_a_table_names_them() {
        let root = std::env::temp_dir().join(format!("wake-{}", std::process::id()));
        std::fs::create_dir(&root).expect("a directory");
        let wakes = |all: &[raw::Wake], host| {
            let read = resolve_in(all, (host, "https"), Some(&root)).map_err(|error| error.0);
            let shown = |wake: &Wake| (wake.target.uri(), wake.every.as_secs());
            read.expect("it can be used").iter().map(shown).collect::<Vec<_>>()
        };
        assert!(wakes(&[], None).is_empty(), "no WordPress");
        std::fs::write(root.join(WORDPRESS_CRON), "").expect("a file");
        assert_eq!(wakes(&[], None), [("https://localhost/wp-cron.php".to_owned(), 60)]);
        assert_eq!(wakes(&[], Some("a.test")), [("https://a.test/wp-cron.php".to_owned(), 60)]);
        let named = |url: &str| [raw::Wake { url: url.into(), every: "1d".into() }];
        let own = wakes(&named("/wp-cron.php?doing_wp_cron"), Some("a.test"));
        assert_eq!(own, [("https://a.test/wp-cron.php?doing_wp_cron".to_owned(), 86_400)]);
        assert_eq!(wakes(&named("/other"), Some("a.test")).len(), 2);
        std::fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        let why = |url, every, host| read(url, every, host).expect_err("it cannot be used");
        assert!(why("/wp-cron.php", "1m", None).contains("write the complete URL"));
        assert!(why("ftp://a.test/", "1m", None).contains("or a URL of http or https"));
        assert!(why("a b", "1m", Some("a.test")).contains("not a URL"));
        assert!(why("/", "0s", Some("a.test")).contains("wake.every"));
        assert!(why("/", "soon", Some("a.test")).contains("wake.every"));
        assert!(why("/", "2d", Some("a.test")).contains("1d"));
    }
}
