//! The step that lets the service connect to php-fpm's socket: by its access list if it has one, else by its group.
//!
//! The group root is never recommended: its files would be open to the service.

use super::{NextStep, add_setting, append_to_setting, join_group, step};
use crate::facts::{MachineFacts, SERVICE_USER, SocketFault};
use crate::file_text::has_http_origin;
use crate::machine::ExaminedMachine;
use crate::php_pools::PhpPool;
use crate::plan::{SetupPlan, plain_name};

/// Makes php-fpm's socket usable for the service; `None` if it is, or has no socket.
pub(super) fn socket_step(
    plan: &SetupPlan,
    facts: &MachineFacts,
    machine: &ExaminedMachine,
) -> Option<NextStep> {
    if has_http_origin(plan) {
        return None;
    }
    let Some(pool) = &plan.pool else {
        let title = "Install php-fpm: no pool was found below /etc/php or /etc/php-fpm.d. Then run this command again.";
        let is_missing = plan.php_of_server().is_none();
        return is_missing.then(|| step(title, &["sudo apt-get install -y php-fpm"]));
    };
    let socket = pool.socket()?;
    let (service, shown, file) = (pool.service(), socket.display(), pool.file.display());
    let restart = format!("sudo systemctl restart {service}");
    let group = match facts.socket_fault(machine, socket) {
        Some(SocketFault::Missing) => {
            return Some(step(
                format!("Start php-fpm: there is no socket {shown}."),
                &[&format!("sudo systemctl enable --now {service}")],
            ));
        }
        Some(SocketFault::NotASocket) => {
            return Some(step(
                format!("Correct `listen` in {file}: {shown} is not a socket."),
                &[&restart],
            ));
        }
        // Its group and mode say nothing then.
        _ if pool.has_access_list() => return access_list_step(pool, facts),
        Some(SocketFault::Mode(mode)) => {
            return Some(step(
                format!(
                    "Allow the group of php-fpm's socket to connect: {shown} has the mode {mode:o}. Write `listen.mode \
                     = 0660` in {file}, then:"
                ),
                &[&restart],
            ));
        }
        Some(SocketFault::Group(group)) => group,
        // Before the package is installed, its user is in no group.
        None if facts.service.is_none() => pool.socket_group.clone(),
        None => return None,
    };
    if group == "root" {
        return Some(step(
            format!(
                "Give php-fpm's socket a group that the web server and {SERVICE_USER} may be in: that of {shown} is \
                 root. Write `listen.group` in {file}, restart php-fpm, and run `pagewell init` again."
            ),
            &[&restart],
        ));
    }
    let add = join_group(machine, SERVICE_USER, &group);
    plain_name(&group).then(|| {
        step(
            format!(
                "Allow the service to connect to php-fpm ({shown}); otherwise every page is a 502."
            ),
            &[&format!("sudo {add} && sudo systemctl try-restart pagewell")],
        )
    })
}

/// Adds the service to the access list of a socket, unless it is there.
fn access_list_step(pool: &PhpPool, facts: &MachineFacts) -> Option<NextStep> {
    if facts.is_listed(pool) || !plain_name(&pool.name) {
        return None;
    }
    if !pool.acl_users.iter().all(|user| plain_name(user)) {
        let title = format!(
            "Add {SERVICE_USER} to `listen.acl_users` in {}, and restart php-fpm; otherwise every page is a 502.",
            pool.file.display()
        );
        return Some(step(title, &[]));
    }
    let change = if pool.acl_users.is_empty() {
        add_setting(pool, &format!("listen.acl_users = {SERVICE_USER}"))
    } else {
        append_to_setting(pool, "listen\\.acl_users", &format!(",{SERVICE_USER}"))
    };
    Some(step(
        "Add the service to the access list of php-fpm's socket; otherwise every page is a 502.",
        &[&change, &format!("sudo systemctl restart {}", pool.service())],
    ))
}
