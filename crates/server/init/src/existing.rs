//! The configuration that the service has already. If it serves another site, the new file must not replace it,
//! because that site would be gone after the next restart.
//!
//! Only its hosts, document roots and origins are compared. A file that cannot be read or parsed is taken for that of
//! another site: a running server may have read it before.

use crate::application::recognise;
use crate::file_text::has_http_origin;
use crate::machine::ExaminedMachine;
use crate::plan::{HTTP_ORIGIN, SetupPlan};
use crate::steps::CONFIG;
use config::load;
use config::raw::Site;
use std::path::Path;

/// The document root in the file of the package. It may have no site.
const PACKAGED_ROOT: &str = "/var/www/html";

/// The reason why the configuration of the service must not be replaced, as the end of a sentence that begins with the
/// file; `None` if it has no other site than the plan's.
#[must_use]
pub fn other_site(machine: &ExaminedMachine, plan: &SetupPlan) -> Option<String> {
    match machine.text(Path::new(CONFIG)) {
        Ok(None) => return None,
        Ok(Some(_)) => {}
        Err(file) => return Some(format!("may serve another site (it {})", file.reason)),
    }
    let Ok((file, _)) = load(&machine.real(Path::new(CONFIG))) else {
        return Some("may serve another site (`pagewell check` names its error)".into());
    };
    let sites = if file.site.list.is_empty() {
        std::slice::from_ref(&file.site)
    } else {
        &file.site.list[..]
    };
    let other = sites.iter().find_map(|site| name_of_other(site, machine, plan));
    other.map(|name| format!("serves another site, {name}"))
}

/// The host, document root or origin of a site, if it may be another one than the plan's.
fn name_of_other(site: &Site, machine: &ExaminedMachine, plan: &SetupPlan) -> Option<String> {
    let has_same_root = site.root.as_ref() == Some(&plan.site.root);
    match (&site.host, &plan.host) {
        (Some(host), Some(own)) => {
            let own = || std::iter::once(own).chain(&plan.aliases);
            let mut all = std::iter::once(host).chain(&site.aliases);
            let is_same = all.any(|name| own().any(|own| own.eq_ignore_ascii_case(name)));
            return (!is_same).then(|| host.clone());
        }
        (Some(host), None) => return (!has_same_root).then(|| host.clone()),
        (None, _) => {}
    }
    if let Some(root) = site.root.as_ref().filter(|_| !has_same_root) {
        let is_empty = root == Path::new(PACKAGED_ROOT) && recognise(machine, root, None).is_err();
        return (!is_empty).then(|| root.display().to_string());
    }
    // Without a host, it serves all pages of the origin, and so did the plan's file if that is its origin.
    let is_own = |origin: &&Vec<String>| has_http_origin(plan) && origin[..] == [HTTP_ORIGIN];
    let origin = site.origin.as_ref().filter(|origin| !is_own(origin))?;
    Some(origin.join(", "))
}
