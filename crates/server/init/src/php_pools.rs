//! The pools of php-fpm on this machine, as their configuration says: socket, user, and who may connect.
//!
//! The places of Debian, RHEL and Alpine are known. Whether the service can connect to a socket is in
//! [`crate::facts`], because that depends on its user.

use crate::machine::ExaminedMachine;
use doctor::read::pool_address;
use std::path::{Path, PathBuf};

/// The files that configure pools: Debian, RHEL, Alpine, and PHP's own default.
const PLACES: [&str; 5] = [
    "/etc/php/*/fpm/pool.d/*.conf",
    "/etc/php-fpm.d/*.conf",
    "/etc/php*/php-fpm.d/*.conf",
    "/etc/opt/remi/php*/php-fpm.d/*.conf",
    "/usr/local/etc/php-fpm.d/*.conf",
];

/// The settings of PHP for all pools, in the order in which they are read: paths in the directory above that of the
/// pools.
const PHP_INI: [&str; 5] =
    ["php.ini", "conf.d/*.ini", "php.d/*.ini", "php/php.ini", "php/conf.d/*.ini"];

/// The file that reports the statements of a render to Pagewell, for PHP's `auto_prepend_file`.
pub const PREPEND_FILE: &str = "/var/lib/pagewell-php/prepend.php";

/// A pool of php-fpm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhpPool {
    /// The name of the pool.
    pub name: String,
    /// The file that defines it.
    pub file: PathBuf,
    /// The version of PHP, if the file's path names it: `8.2`.
    pub version: String,
    /// Its address, as `php.at` has it: `unix:/run/php/php8.2-fpm.sock` or `127.0.0.1:9000`.
    pub at: String,
    /// `pm.max_children`; 0 if it is unknown.
    pub children: usize,
    /// The user of its scripts.
    pub user: String,
    /// The group that may connect to its socket.
    pub socket_group: String,
    /// `listen.acl_users`: the users on the access list of its socket.
    pub acl_users: Vec<String>,
    /// `listen.acl_groups`: the groups on that list.
    pub acl_groups: Vec<String>,
    /// Other addresses of its socket: those of symbolic links that a web server names.
    pub links: Vec<String>,
    /// `open_basedir`: the directories whose files its scripts may open; empty for all.
    pub open_basedir: String,
    /// The file that sets `open_basedir`: the pool's, or one of PHP that counts for each pool without the setting.
    pub basedir_file: PathBuf,
    /// `auto_prepend_file`: the file that is loaded before each script; empty for none.
    pub prepend: String,
}

impl PhpPool {
    /// Whether this is the pool's address, or that of a link to its socket.
    #[must_use]
    pub fn is_at(&self, at: &str) -> bool {
        self.at == at || self.links.iter().any(|link| link == at)
    }

    /// Whether its socket has an access list. Then php-fpm ignores the settings of the socket's owner and group.
    #[must_use]
    pub fn has_access_list(&self) -> bool {
        !self.acl_users.is_empty() || !self.acl_groups.is_empty()
    }

    /// Whether the access list has a user, or one of the user's groups, all by name.
    #[must_use]
    pub fn lists(&self, user: &str, groups: &[String]) -> bool {
        self.acl_users.iter().any(|listed| listed == user)
            || groups.iter().any(|group| self.acl_groups.contains(group))
    }

    /// Whether `open_basedir` allows the files in a directory.
    #[must_use]
    pub fn may_open(&self, dir: &Path) -> bool {
        let allowed = |above: &str| !above.is_empty() && dir.starts_with(above);
        self.open_basedir.is_empty() || self.open_basedir.split(':').any(allowed)
    }

    /// Whether `open_basedir` is a list of absolute paths: a command adds a path only to such a list.
    #[must_use]
    pub fn has_plain_basedir(&self) -> bool {
        self.open_basedir.split(':').all(|dir| dir.starts_with('/'))
    }

    /// The path of its socket, if it has one.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.at.strip_prefix("unix:").map(Path::new)
    }

    /// The name of its service, such as `php8.2-fpm`.
    #[must_use]
    pub fn service(&self) -> String {
        let is_debian = self.file.starts_with("/etc/php") && !self.version.is_empty();
        if is_debian { format!("php{}-fpm", self.version) } else { "php-fpm".into() }
    }
}

/// All pools, those of the newest PHP first.
#[must_use]
pub fn php_pools(machine: &ExaminedMachine) -> Vec<PhpPool> {
    let mut found: Vec<PhpPool> = Vec::new();
    for file in PLACES.iter().flat_map(|place| machine.matching(place)) {
        if found.iter().any(|pool| pool.file == file) {
            continue;
        }
        let Some(text) = machine.text_or_none(&file) else { continue };
        let mut pools = of_file(&text, &file);
        let unset = pools.iter_mut().filter(|pool| pool.basedir_file.as_os_str().is_empty());
        for pool in unset {
            (pool.open_basedir, pool.basedir_file) = basedir_of_php(machine, &file);
        }
        found.append(&mut pools);
    }
    found.sort_by_key(|pool| std::cmp::Reverse(number(&pool.version)));
    found
}

/// An address in the form in which two of them are compared: `/run` for `/var/run`, and an address for `localhost`.
#[must_use]
pub fn plain_address(at: &str) -> String {
    if let Some(path) = at.strip_prefix("unix:/var/run/") {
        return format!("unix:/run/{path}");
    }
    match at.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => at.to_owned(),
    }
}

/// The value of `open_basedir` for the pools of a file that do not set it, and the file of PHP that sets it; both empty
/// if none does.
fn basedir_of_php(machine: &ExaminedMachine, pools: &Path) -> (String, PathBuf) {
    let mut found = (String::new(), PathBuf::new());
    let Some(above) = pools.parent().and_then(Path::parent) else { return found };
    for place in PHP_INI {
        for file in machine.matching(&above.join(place).to_string_lossy()) {
            let text = machine.text_or_none(&file).unwrap_or_default();
            if let Some(value) = basedir_setting(&text) {
                found = (value.to_owned(), file);
            }
        }
    }
    found
}

/// The last value of `open_basedir` in a file of settings of PHP.
#[must_use]
pub fn basedir_setting(text: &str) -> Option<&str> {
    let settings = text.lines().filter_map(setting);
    settings.filter(|(key, _)| *key == "open_basedir").map(|(_, value)| value).next_back()
}

/// The value of `auto_prepend_file`; empty if no file is loaded.
#[must_use]
pub fn prepend_file(value: &str) -> &str {
    if value == "none" { "" } else { value }
}

fn number(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// The pools in a file that have an address.
fn of_file(text: &str, file: &Path) -> Vec<PhpPool> {
    let version = version_of(file);
    let mut found: Vec<PhpPool> = Vec::new();
    let mut owner_group = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            found.push(PhpPool {
                name: name.to_owned(),
                file: file.to_owned(),
                version: version.clone(),
                ..PhpPool::default()
            });
            owner_group.push(String::new());
            continue;
        }
        let (Some((key, value)), Some(pool)) = (setting(line), found.last_mut()) else {
            continue;
        };
        let value = value.replace("$pool", &pool.name);
        match key {
            "listen" => pool.at = plain_address(&pool_address(&value)),
            "user" => pool.user = value,
            "pm.max_children" => pool.children = value.parse().unwrap_or(0),
            "group" => {
                owner_group.last_mut().into_iter().for_each(|group| group.clone_from(&value))
            }
            "listen.group" => pool.socket_group = value,
            "listen.acl_users" => pool.acl_users = listed(&value),
            "listen.acl_groups" => pool.acl_groups = listed(&value),
            "php_value[open_basedir]" | "php_admin_value[open_basedir]" => {
                pool.open_basedir = value;
                pool.basedir_file = file.to_owned();
            }
            "php_value[auto_prepend_file]" | "php_admin_value[auto_prepend_file]" => {
                pool.prepend = prepend_file(&value).to_owned();
            }
            _ => {}
        }
    }
    for (pool, group) in found.iter_mut().zip(owner_group) {
        if pool.socket_group.is_empty() {
            pool.socket_group = if group.is_empty() { pool.user.clone() } else { group };
        }
    }
    found.retain(|pool| !pool.at.is_empty() && pool.name != "global");
    found
}

/// The key and the value of a line such as `key = "value" ; comment`.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split(';').next(),
    };
    Some((key.trim(), value.unwrap_or_default().trim()))
}

/// The names of a list with commas.
fn listed(value: &str) -> Vec<String> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// The version in a path such as `/etc/php/8.2/fpm/pool.d/www.conf` or `/etc/php82/php-fpm.d/www.conf`.
fn version_of(file: &Path) -> String {
    let parts = file.iter().filter_map(|part| part.to_str());
    let mut versions = parts.filter_map(|part| {
        let digits = part.strip_prefix("php").unwrap_or(part);
        let is_version = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        match (is_version, digits.len()) {
            (true, 2) if !digits.contains('.') => {
                Some(format!("{}.{}", &digits[..1], &digits[1..]))
            }
            (true, _) => Some(digits.to_owned()),
            (false, _) => None,
        }
    });
    versions.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_read() {
        let text = "; a comment\n[global]\nerror_log = x\n[www]\nuser = www-data\ngroup = www-data\n\
             listen = /run/php/php8.2-fpm.sock ; the socket\nlisten.owner = www-data\npm.max_children = 5\n[shop]\nuser = $pool\n\
             listen = 9001\nlisten.group = nginx\n;listen = 1\n[none]\nuser = x\n";
        let found = of_file(text, Path::new("/etc/php/8.2/fpm/pool.d/www.conf"));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].at, "unix:/run/php/php8.2-fpm.sock");
        assert_eq!((found[0].children, found[1].children), (5, 0));
        assert_eq!((&*found[0].user, &*found[0].socket_group), ("www-data", "www-data"));
        assert_eq!((&*found[1].at, &*found[1].user), ("127.0.0.1:9001", "shop"));
        assert_eq!(
            (found[1].socket_group.as_str(), found[1].service().as_str()),
            ("nginx", "php8.2-fpm")
        );
        assert_eq!(version_of(Path::new("/etc/php82/php-fpm.d/www.conf")), "8.2");
        assert_eq!(version_of(Path::new("/etc/php-fpm.d/www.conf")), "");
    }
}
