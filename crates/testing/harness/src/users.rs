//! System accounts: the user of this process, and the users that servers run as if it is root.
//!
//! Only `/etc/passwd` is read. Accounts from other sources (LDAP) are not needed, because the relevant ones
//! (`mysql`, `www-data`, `nobody`) come with the system's packages.

use std::fs;

/// An account of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name of the account.
    pub name: String,
    /// The user id of the account.
    pub uid: u32,
    /// The id of its primary group.
    pub gid: u32,
}

impl Account {
    /// The account with this name, if it exists.
    #[must_use]
    pub fn named(name: &str) -> Option<Account> {
        accounts().into_iter().find(|account| account.name == name)
    }
}

/// Whether this process may change users.
#[must_use]
pub fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The account of this process, if it has a name.
pub(crate) fn current() -> Option<Account> {
    let uid = rustix::process::geteuid().as_raw();
    accounts().into_iter().find(|account| account.uid == uid)
}

/// The account for a server: the first of `names` that exists, if this process is root. `None` for an ordinary
/// user, whose servers run as the same user.
pub(crate) fn for_server(names: &[&str]) -> Option<Account> {
    if !am_root() {
        return None;
    }
    let accounts = accounts();
    names.iter().find_map(|name| accounts.iter().find(|account| account.name == *name).cloned())
}

fn accounts() -> Vec<Account> {
    parse(&fs::read_to_string("/etc/passwd").unwrap_or_default())
}

fn parse(passwd: &str) -> Vec<Account> {
    passwd.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(Account { name, uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_accounts_and_skips_nonsense() {
        let found =
            parse("root:x:0:0:root:/root:/bin/sh\nnonsense\n+::::::\nwww-data:x:33:34::/:\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], Account { name: "www-data".into(), uid: 33, gid: 34 });
    }
}
