//! Several sites in one process: which of them answers for a host.
//!
//! Every site has a store, an origin, rules and counters of its own, so nothing that is asked, kept
//! or dropped in one concerns another. Connections come to one of them, the door: the site that
//! answers for hosts nobody has named if there is one, else the first. Its limits and counters are
//! those of connections, and it alone has neighbours. A single site has none, and looks nothing up.

use crate::site::Site;
use config::OtherHosts;
use config::target::normal_host;
use std::collections::HashMap;
use std::sync::Arc;

/// The other sites of the process, as the door knows them. Fixed at the start.
#[derive(Default)]
pub struct Neighbours {
    all: Vec<Arc<Site>>,
    by_host: HashMap<String, Arc<Site>>,
}

impl Neighbours {
    /// These sites, each found by its host and aliases.
    pub fn new(all: Vec<Arc<Site>>) -> Neighbours {
        let hosts = |site: &Arc<Site>| -> Vec<_> {
            site.config.hosts.all().map(|host| (host.clone(), site.clone())).collect()
        };
        Neighbours { by_host: all.iter().flat_map(hosts).collect(), all }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Site {
    /// The site that answers for a host in its normal form; for one that nobody has named it is the
    /// door, which refuses it or not.
    pub fn for_host<'a>(self: &'a Arc<Site>, host: &str) -> &'a Arc<Site> {
        if self.neighbours.is_empty() {
            return self;
        }
        self.neighbours.by_host.get(host).unwrap_or(self)
    }

    /// The site that has this host or alias, however it is written.
    pub fn named<'a>(self: &'a Arc<Site>, host: &str) -> Option<&'a Arc<Site>> {
        let host = normal_host(host, "http").ok()?;
        let site = self.for_host(&host);
        site.config.hosts.all().any(|known| *known == host).then_some(site)
    }

    /// The chosen site alone, or the door and all its neighbours.
    pub fn all_or<'a>(
        self: &'a Arc<Site>,
        chosen: Option<&'a Arc<Site>>,
    ) -> impl Iterator<Item = &'a Arc<Site>> {
        let neighbours = if chosen.is_some() { &[][..] } else { &self.neighbours.all };
        std::iter::once(chosen.unwrap_or(self)).chain(neighbours)
    }

    /// The host of a request that names none (HTTP/1.0). Of several sites it is the one for hosts
    /// that nobody has named; without such a site the request is for none of them.
    pub fn unnamed_host(&self) -> &str {
        let hosts = &self.config.hosts;
        let is_for_all = self.neighbours.is_empty() || hosts.others == OtherHosts::Serve;
        hosts.canonical.as_deref().filter(|_| is_for_all).unwrap_or("localhost")
    }
}
