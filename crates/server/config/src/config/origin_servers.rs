//! The servers of an HTTP origin (`site.origin`, `site.origin_backup`), how their certificates are verified, and the
//! path by which they are checked.
//!
//! Not here: connections, and the choice of a server (`origin-servers`).

use super::raw;
use super::resolve::{LoadError, wrong};
use std::fmt;
use std::path::PathBuf;

/// Maximum number of servers of a site, backups among them.
const SERVERS_MAX: usize = 64;

/// The HTTP servers that render the pages of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginServers {
    /// The servers, in the order of the configuration; at least one.
    pub servers: Vec<OriginServer>,
    /// The servers that get requests only while none of the others can.
    pub backups: Vec<OriginServer>,
    /// The name that their certificates must have; `None`: the host of their URL.
    pub tls_name: Option<String>,
    /// The certificates that may sign theirs; `None`: those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// The path that is requested every few seconds of each server.
    pub check: Option<String>,
}

impl OriginServers {
    /// All servers, the backups last.
    pub fn all(&self) -> impl Iterator<Item = &OriginServer> {
        self.servers.iter().chain(&self.backups)
    }
}

/// An HTTP server. Shown as its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginServer {
    /// Whether the connection to it uses TLS.
    pub is_tls: bool,
    /// Its host, with the port if that is not the scheme's: `127.0.0.1:8000`.
    pub authority: String,
}

impl fmt::Display for OriginServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(out, "{scheme}://{}", self.authority)
    }
}

/// Returns the servers of a site; `None` if it has no HTTP origin.
pub(super) fn resolve(site: &raw::Site) -> Result<Option<OriginServers>, LoadError> {
    let Some(urls) = &site.origin else {
        let keys = [
            ("site.origin_backup", site.origin_backup.is_some()),
            ("site.origin_tls", site.origin_tls.is_some()),
            ("site.origin_check", site.origin_check.is_some()),
        ];
        return match keys.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => wrong(key, "needs site.origin, the servers that it is about"),
            None => Ok(None),
        };
    };
    let parse = |key: &str, urls: &[String]| {
        urls.iter().map(|url| server(key, url)).collect::<Result<Vec<_>, LoadError>>()
    };
    let tls = site.origin_tls.clone().unwrap_or_default();
    let servers = OriginServers {
        servers: parse("site.origin", urls)?,
        backups: parse("site.origin_backup", site.origin_backup.as_deref().unwrap_or_default())?,
        tls_name: tls.name,
        ca_file: tls.ca_file,
        check: site.origin_check.clone(),
    };
    check(&servers)?;
    Ok(Some(servers))
}

fn check(all: &OriginServers) -> Result<(), LoadError> {
    if all.servers.is_empty() {
        return wrong("site.origin", "is an empty list: name at least one server");
    }
    if all.all().count() > SERVERS_MAX {
        return wrong("site.origin", format!("has more than {SERVERS_MAX} servers"));
    }
    let is_twice = |(at, one): (usize, &OriginServer)| all.all().skip(at + 1).any(|it| it == one);
    if let Some((_, twice)) = all.all().enumerate().find(|one| is_twice(*one)) {
        return wrong("site.origin", format!("{twice} is there twice"));
    }
    let is_for_tls = all.tls_name.is_some() || all.ca_file.is_some();
    if is_for_tls && !all.all().any(|server| server.is_tls) {
        return wrong("site.origin_tls", "no server has a URL that begins with https://");
    }
    match &all.check {
        Some(path) if !path.starts_with('/') || path.contains(|c: char| !c.is_ascii_graphic()) => {
            wrong("site.origin_check", format!("{path:?}: write a path, for example \"/health\""))
        }
        _ => Ok(()),
    }
}

pub(super) fn server(key: &str, url: &str) -> Result<OriginServer, LoadError> {
    const FORM: &str = "write for example http://127.0.0.1:8000";
    if url.starts_with("unix:") {
        let why = "an HTTP origin cannot be a Unix socket (a FastCGI server can: php.at)";
        return wrong(key, format!("{url:?}: {why}; {FORM}"));
    }
    let uri: http::Uri = url.parse().or_else(|_| wrong(key, format!("{url:?}: {FORM}")))?;
    let (is_tls, authority) = match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(authority)) => (false, authority),
        (Some("https"), Some(authority)) => (true, authority),
        _ => return wrong(key, format!("{url:?}: {FORM}")),
    };
    if !matches!(uri.path(), "/" | "") || uri.query().is_some() {
        return wrong(key, format!("{url:?}: must not have a path"));
    }
    if authority.as_str().contains('@') {
        return wrong(key, format!("{url:?}: must not have a user or password"));
    }
    Ok(OriginServer { is_tls, authority: authority.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<OriginServers>, LoadError> {
        resolve(&toml::from_str(text).unwrap())
    }

    #[test]
    fn one_server_or_a_list() {
        let one = read("origin = \"http://127.0.0.1:8000/\"").unwrap().unwrap();
        assert_eq!(one.servers[0].to_string(), "http://127.0.0.1:8000");
        let text = "origin = [\"https://a.test\", \"https://b.test:8443\"]\n\
                    origin_backup = \"http://c.test\"\norigin_check = \"/health\"\n\
                    origin_tls = { name = \"shop.test\", ca_file = \"/etc/ca.pem\" }";
        let several = read(text).unwrap().unwrap();
        let shown: Vec<String> = several.all().map(ToString::to_string).collect();
        assert_eq!(shown, ["https://a.test", "https://b.test:8443", "http://c.test"]);
        assert_eq!(several.tls_name.as_deref(), Some("shop.test"));
        assert!(read("").unwrap().is_none());
    }

    #[test]
    fn unusable_servers_are_refused_with_the_reason() {
        for (text, right) in [
            ("origin = []", "at least one server"),
            ("origin = \"ftp://a.test\"", "http://127.0.0.1:8000"),
            ("origin = \"unix:/run/x\"", "php.at"),
            ("origin = \"http://a.test/x\"", "must not have a path"),
            ("origin = \"http://a.test/?x\"", "must not have a path"),
            ("origin = \"https://me@a.test\"", "a user or password"),
            ("origin = [\"http://a.test\", \"http://a.test\"]", "http://a.test is there twice"),
            ("origin = \"http://a.test\"\norigin_tls = { name = \"b\" }", "https://"),
            ("origin = \"http://a.test\"\norigin_check = \"health\"", "/health"),
            ("origin_backup = \"http://a.test\"", "needs site.origin"),
        ] {
            let LoadError(said) = read(text).unwrap_err();
            assert!(said.contains(right), "{text}: {said}");
        }
    }
}
