//! The hosts of a site: the canonical one, its aliases, and how requests for others are handled.
//!
//! A host is compared as it stands in a target URI: in lower case and without the scheme's default port
//! ([`normal_host`](crate::target::normal_host)).

use http::StatusCode;

/// The hosts of the site.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// The canonical host, used in keys and in origin requests for pages; `None`: each host has its own.
    pub canonical: Option<String>,
    /// Other hosts of the same site.
    pub aliases: Vec<String>,
    /// Whether requests for other hosts are refused.
    pub others: OtherHosts,
    /// The status with which the aliases are redirected to the canonical host, if they are.
    pub redirect: Option<StatusCode>,
}

impl Hosts {
    /// All configured hosts, the canonical one first.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.canonical.iter().chain(&self.aliases)
    }

    /// The other names of the host, if it belongs to the site.
    pub fn same_as<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a String> {
        let all = || self.canonical.iter().chain(&self.aliases);
        let is_site = all().any(|known| known == host);
        all().filter(move |known| is_site && *known != host)
    }

    /// The canonical host, and the status with which this host is redirected to it, if it is.
    pub fn redirect_of(&self, host: &str) -> Option<(&str, StatusCode)> {
        let is_alias = || self.aliases.iter().any(|alias| alias == host);
        self.canonical.as_deref().zip(self.redirect).filter(|_| is_alias())
    }

    /// Whether requests for this host are answered.
    #[inline]
    pub fn have(&self, host: &str) -> bool {
        self.others == OtherHosts::Serve
            || self.canonical.as_deref() == Some(host)
            || self.aliases.iter().any(|alias| alias == host)
    }
}

/// How requests for unconfigured hosts are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherHosts {
    /// They are served, and each host has its own pages.
    #[default]
    Serve,
    /// They are refused with status 421.
    Refuse,
}
