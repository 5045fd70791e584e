//! The configuration that the service has already. If it serves another site, the new file must not replace it,
//! because that site would be gone after the next restart.
//!
//! Only its hosts and document roots are compared. A file that cannot be parsed serves no site.

use crate::application::recognise;
use crate::machine::ExaminedMachine;
use crate::plan::SetupPlan;
use crate::steps::CONFIG;
use config::load;
use config::raw::Site;
use std::path::Path;

/// The host or document root of another site than the plan's in the configuration of the service; `None` if there is
/// none.
#[must_use]
pub fn other_site(machine: &ExaminedMachine, plan: &SetupPlan) -> Option<String> {
    let (file, _) = load(&machine.real(Path::new(CONFIG))).ok()?;
    let sites = if file.site.list.is_empty() {
        std::slice::from_ref(&file.site)
    } else {
        &file.site.list[..]
    };
    sites.iter().find_map(|site| name_of_other(site, machine, plan))
}

fn name_of_other(site: &Site, machine: &ExaminedMachine, plan: &SetupPlan) -> Option<String> {
    if let (Some(host), Some(own)) = (&site.host, &plan.host) {
        let own = || std::iter::once(own).chain(&plan.aliases);
        let mut all = std::iter::once(host).chain(&site.aliases);
        let is_same = all.any(|name| own().any(|own| own.eq_ignore_ascii_case(name)));
        return (!is_same).then(|| host.clone());
    }
    let root = site.root.as_ref().filter(|root| **root != plan.site.root)?;
    // The packaged file names a directory that may have no site.
    recognise(machine, root, None).ok().map(|_| root.display().to_string())
}
