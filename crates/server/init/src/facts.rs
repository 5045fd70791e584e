//! The facts about this machine: php-fpm, web servers, ports in use, a database server, memory, and the user of the
//! service. All is collected once, before the first decision.
//!
//! A fact that cannot be read is missing, and is no error. Decisions are in [`crate::plan`].

use crate::change_stream::{ChangeStream, change_stream};
use crate::listeners::{UsedPort, listeners};
use crate::machine::ExaminedMachine;
use crate::memory::memory_bytes;
use crate::php_pools::{PhpPool, php_pools, plain_address};
use crate::web_server::{ServedSite, served_sites};
use config::accounts::{self, Account};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The path at which the service reads its configuration.
pub const CONFIG: &str = "/etc/pagewell/pagewell.toml";
/// The file with the password of Pagewell's account at the database.
pub const PASSWORD_FILE: &str = "/etc/pagewell/database-password";
/// The user of the service.
pub const SERVICE_USER: &str = "pagewell";
/// The ports that are looked at beside those of sites: those of visitors, and those that a configuration may get.
pub const PORTS: [u16; 8] = [80, 443, 8080, 8081, 8180, 8181, 8280, 8281];

/// The facts about a machine.
#[derive(Debug, Clone, Default)]
pub struct MachineFacts {
    /// The pools of php-fpm, the newest PHP first.
    pub pools: Vec<PhpPool>,
    /// The ports in use among [`PORTS`] and those of the sites.
    pub listeners: Vec<UsedPort>,
    /// The sites of nginx and Apache.
    pub sites: Vec<ServedSite>,
    /// The database server on this machine.
    pub stream: Option<ChangeStream>,
    /// The memory in bytes.
    pub memory: Option<u64>,
    /// Whether there is a file with the password of Pagewell's account at the database.
    pub has_password_file: bool,
    /// The account of the service, if it exists.
    pub service: Option<Account>,
    users: String,
    groups: String,
}

/// A socket that the service cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketFault {
    /// There is no such socket.
    Missing,
    /// It is a file or a directory.
    NotASocket,
    /// The service is not in the group that may connect.
    Group(String),
    /// Neither its group nor others may connect.
    Mode(u32),
}

impl MachineFacts {
    /// Collects the facts about a machine.
    #[must_use]
    pub fn of(machine: &ExaminedMachine) -> MachineFacts {
        let users = machine.text_or_none("/etc/passwd").unwrap_or_default();
        let groups = machine.text_or_none("/etc/group").unwrap_or_default();
        let sites = served_sites(machine);
        let mut pools = php_pools(machine);
        for at in sites.iter().filter_map(|site| site.php.as_ref()) {
            add_link(&mut pools, at, machine);
        }
        let of_sites = sites.iter().flat_map(ServedSite::ports);
        let ports: Vec<u16> = PORTS.into_iter().chain(of_sites).collect();
        MachineFacts {
            pools,
            listeners: listeners(machine, &ports),
            sites,
            stream: change_stream(machine),
            memory: memory_bytes(machine),
            has_password_file: machine.is_file(Path::new(PASSWORD_FILE)),
            service: accounts::find(SERVICE_USER, None, &users, &groups).ok(),
            users,
            groups,
        }
    }

    /// The program that listens on a port, or `None` if the port is free or Pagewell's own.
    #[must_use]
    pub fn other_program(&self, port: u16) -> Option<&str> {
        let found = self.listeners.iter().find(|listener| listener.port == port)?;
        let program = found.program.as_deref().unwrap_or("another program");
        (program != "pagewell").then_some(program)
    }

    /// The name of a user.
    #[must_use]
    pub fn user_name(&self, uid: u32) -> Option<String> {
        name_of(&self.users, uid)
    }

    /// Whether the access list of a pool has the user of the service, or one of its groups.
    #[must_use]
    pub fn is_listed(&self, pool: &PhpPool) -> bool {
        let groups = self.service.iter().flat_map(|service| &service.groups);
        let names: Vec<_> = groups.filter_map(|number| name_of(&self.groups, *number)).collect();
        pool.lists(SERVICE_USER, &names)
    }

    /// The fault of a socket for the user of the service; `None` if it can connect, or is unknown.
    #[must_use]
    pub fn socket_fault(&self, machine: &ExaminedMachine, path: &Path) -> Option<SocketFault> {
        let Ok(found) = machine.metadata(path) else { return Some(SocketFault::Missing) };
        if !found.file_type().is_socket() {
            return Some(SocketFault::NotASocket);
        }
        let service = self.service.as_ref()?;
        let mode = found.mode() & 0o777;
        let is_member = service.groups.contains(&found.gid());
        let may = mode & 0o002 != 0
            || service.uid == found.uid() && mode & 0o200 != 0
            || is_member && mode & 0o020 != 0;
        match (may, mode & 0o020 != 0) {
            (true, _) => None,
            (false, true) => {
                let number = found.gid();
                Some(SocketFault::Group(
                    name_of(&self.groups, number).unwrap_or(number.to_string()),
                ))
            }
            (false, false) => Some(SocketFault::Mode(mode)),
        }
    }
}

/// Notes the address of a link to the socket of a pool, such as `/run/php/php-fpm.sock` of Debian.
fn add_link(pools: &mut [PhpPool], at: &str, machine: &ExaminedMachine) {
    let Some(path) = at.strip_prefix("unix:").map(Path::new) else { return };
    if pools.iter().any(|pool| pool.is_at(at)) {
        return;
    }
    let target = plain_address(&format!("unix:{}", machine.followed(path).display()));
    let pool = pools.iter_mut().find(|pool| pool.at == target);
    pool.into_iter().for_each(|pool| pool.links.push(at.to_owned()));
}

/// The name for a number in `/etc/passwd` or `/etc/group`.
fn name_of(text: &str, number: u32) -> Option<String> {
    let is_it = |line: &&str| line.split(':').nth(2) == Some(&*number.to_string());
    let line = text.lines().find(is_it)?;
    line.split(':').next().map(str::to_owned)
}
