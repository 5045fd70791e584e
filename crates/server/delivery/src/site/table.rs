//! Selects the site of a host if one process serves several sites.
//!
//! Every site has its own store, origin, rules and counters, so requests, pages and purges of one
//! do not affect another. Connections belong to the **default site** (`default_site`): the site for
//! unconfigured hosts if there is one, else the first. Its limits and counters apply to
//! connections, and only it has references to the other sites. A single site needs no look-up.

use crate::site::Site;
use request_values::hosts::OtherHosts;
use request_values::target::normal_host;
use std::collections::HashMap;
use std::sync::Arc;

/// The other sites of the process, for the default site. Fixed at the start.
#[derive(Default)]
pub struct SiteTable {
    all: Vec<Arc<Site>>,
    by_host: HashMap<String, Arc<Site>>,
}

impl SiteTable {
    /// Indexes these sites by host and aliases.
    pub fn new(all: Vec<Arc<Site>>) -> SiteTable {
        let hosts = |site: &Arc<Site>| -> Vec<_> {
            site.config.hosts.all().map(|host| (host.clone(), site.clone())).collect()
        };
        SiteTable { by_host: all.iter().flat_map(hosts).collect(), all }
    }

    /// Whether the process has only one site.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Site {
    /// The site for a normalised host. For an unconfigured host it is the default site, which
    /// refuses or accepts it.
    pub fn for_host<'a>(self: &'a Arc<Site>, host: &str) -> &'a Arc<Site> {
        if self.other_sites.is_empty() {
            return self;
        }
        self.other_sites.by_host.get(host).unwrap_or(self)
    }

    /// The site with this host or alias; the host need not be normalised.
    pub fn named<'a>(self: &'a Arc<Site>, host: &str) -> Option<&'a Arc<Site>> {
        let host = normal_host(host, "http").ok()?;
        let site = self.for_host(&host);
        site.config.hosts.all().any(|known| *known == host).then_some(site)
    }

    /// The default site and all others.
    pub fn all_sites(self: &Arc<Site>) -> impl Iterator<Item = &Arc<Site>> {
        self.selected_or_all(None)
    }

    /// The chosen site alone, or the default site and all others.
    pub fn selected_or_all<'a>(
        self: &'a Arc<Site>,
        chosen: Option<&'a Arc<Site>>,
    ) -> impl Iterator<Item = &'a Arc<Site>> {
        let other_sites = if chosen.is_some() { &[][..] } else { &self.other_sites.all };
        std::iter::once(chosen.unwrap_or(self)).chain(other_sites)
    }

    /// The host for a request without one (HTTP/1.0). With several sites it is the host of the site
    /// for unconfigured hosts; without such a site it belongs to no site.
    pub fn unnamed_host(&self) -> &str {
        let hosts = &self.config.hosts;
        let is_for_all = self.other_sites.is_empty() || hosts.others == OtherHosts::Serve;
        hosts.canonical.as_deref().filter(|_| is_for_all).unwrap_or("localhost")
    }
}
