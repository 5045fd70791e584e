//! The configuration that the service has already. If it serves another site, the new file must not replace it,
//! because that site would be gone after the next restart.
//!
//! Only its hosts, document roots and origins are compared. A file that cannot be read or parsed is taken for that of
//! another site: a running server may have read it before.

use crate::application::recognise;
use crate::facts::CONFIG;
use crate::file_text::has_http_origin;
use crate::machine::ExaminedMachine;
use crate::plan::{HTTP_ORIGIN, SetupPlan};
use config::load;
use config::raw::{File, OneOrMany, Site};
use std::path::Path;

/// The document root in the file of the package. It may have no site.
const PACKAGED_ROOT: &str = "/var/www/html";

/// A configuration of the service that must not be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingConfiguration {
    /// The reason, as the end of a sentence that begins with the file.
    pub why: String,
    /// Whether the plan's site is one of several in it.
    pub has_site: bool,
    /// The addresses at which the service listens; `None` if the file could not be read.
    pub addresses: Option<ServiceAddresses>,
}

/// The addresses in the configuration of the service, as they are written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAddresses {
    /// The address for visitors: the first that is no Unix socket, if there is one.
    pub listen: String,
    /// The address of the control interface, if it is not the default.
    pub admin: Option<String>,
}

impl ServiceAddresses {
    fn of(file: &File) -> ServiceAddresses {
        let listen = match &file.listen {
            Some(OneOrMany::One(one)) => Some(one),
            Some(OneOrMany::Many(all)) => {
                all.iter().find(|one| !one.starts_with("unix:")).or(all.first())
            }
            None => None,
        };
        let listen = listen.map_or("127.0.0.1:8080", String::as_str).to_owned();
        let admin = file.admin.clone().filter(|admin| admin != "127.0.0.1:8081");
        ServiceAddresses { listen, admin }
    }
}

/// The configuration of the service, if it has another site than the plan's, or may have one. Each of several sites is
/// another one than the rest.
#[must_use]
pub fn other_site(machine: &ExaminedMachine, plan: &SetupPlan) -> Option<ExistingConfiguration> {
    let unknown =
        |why: String| Some(ExistingConfiguration { why, has_site: false, addresses: None });
    match machine.text(Path::new(CONFIG)) {
        Ok(None) => return None,
        Ok(Some(_)) => {}
        Err(file) => return unknown(format!("may serve another site (it {})", file.reason)),
    }
    let Ok((file, _)) = load(&machine.real(Path::new(CONFIG))) else {
        return unknown("may serve another site (`pagewell check` names its error)".into());
    };
    let sites = if file.site.list.is_empty() {
        std::slice::from_ref(&file.site)
    } else {
        &file.site.list[..]
    };
    let other = sites.iter().find_map(|site| name_of_other(site, machine, plan));
    let other = other.or_else(|| sites.get(1)?.host.clone())?;
    let has_site = sites.iter().any(|site| is_same(site, plan));
    let why = if has_site {
        format!("has this site already, and another one, {other}")
    } else {
        format!("serves another site, {other}")
    };
    Some(ExistingConfiguration { why, has_site, addresses: Some(ServiceAddresses::of(&file)) })
}

/// Whether a site is the plan's: by one of its hosts, or by its document root if the host of either is unknown.
fn is_same(site: &Site, plan: &SetupPlan) -> bool {
    let (Some(host), Some(own)) = (&site.host, &plan.host) else {
        return site.root.as_ref() == Some(&plan.site.root);
    };
    let own = || std::iter::once(own).chain(&plan.aliases);
    let mut all = std::iter::once(host).chain(&site.aliases);
    all.any(|name| own().any(|own| own.eq_ignore_ascii_case(name)))
}

/// The host, document root or origin of a site, if it may be another one than the plan's.
fn name_of_other(site: &Site, machine: &ExaminedMachine, plan: &SetupPlan) -> Option<String> {
    let is_same = is_same(site, plan);
    if let Some(host) = &site.host {
        return (!is_same).then(|| host.clone());
    }
    if let Some(root) = site.root.as_ref().filter(|_| !is_same) {
        let is_empty = root == Path::new(PACKAGED_ROOT) && recognise(machine, root, None).is_err();
        return (!is_empty).then(|| root.display().to_string());
    }
    // Without a host, it serves all pages of the origin, and so did the plan's file if that is its origin.
    let is_own = |origin: &&Vec<String>| has_http_origin(plan) && origin[..] == [HTTP_ORIGIN];
    let origin = site.origin.as_ref().filter(|origin| !is_own(origin))?;
    Some(origin.join(", "))
}
