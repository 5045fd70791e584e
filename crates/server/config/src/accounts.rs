//! Looks up users and groups in /etc/passwd and /etc/group, by name or number.
//!
//! Directory services (LDAP and others) are not supported, because they need the C library's modules.
//! Lines that cannot be parsed are skipped, as in other software.

use std::fs;

/// A user with groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user's name, or the number if the user has no entry.
    pub name: String,
    /// The user id of the account.
    pub uid: u32,
    /// The id of the primary group.
    pub gid: u32,
    /// The ids of all groups of the user, beginning with the primary group.
    pub groups: Vec<u32>,
}

/// The account of a user, with `group` instead of the user's primary group if given.
///
/// # Errors
/// A sentence for the operator: no such user or group, or the user is root.
pub fn of(user: &str, group: Option<&str>) -> Result<Account, String> {
    let text = |path: &str| {
        fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))
    };
    find(user, group, &text("/etc/passwd")?, &text("/etc/group")?)
}

/// The account of a user in the texts of `/etc/passwd` and `/etc/group`.
///
/// # Errors
/// As for [`of`].
pub fn find(user: &str, group: Option<&str>, users: &str, groups: &str) -> Result<Account, String> {
    let number: Option<u32> = user.parse().ok();
    let fields = |line: &str| -> Option<(String, u32, u32)> {
        let mut fields = line.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
        Some((name.to_owned(), uid.parse().ok()?, gid.parse().ok()?))
    };
    let mut all = users.lines().filter_map(fields);
    let found = all.find(|(name, uid, _)| name == user || number == Some(*uid));
    let group = group.map(|group| find_group(group, groups)).transpose()?;
    let (name, uid, gid) = match (found, number, group) {
        (Some((name, uid, own)), _, given) => (name, uid, given.unwrap_or(own)),
        (None, Some(uid), Some(gid)) => (user.to_owned(), uid, gid),
        (None, Some(_), None) => {
            return Err(format!("user = {user:?} is not in /etc/passwd: give a group as well"));
        }
        (None, None, _) => {
            return Err(format!("user = {user:?}: there is no such user in /etc/passwd"));
        }
    };
    if uid == 0 {
        return Err(format!("user = {user:?}: that is root, who it is without `user`"));
    }
    let mut member: Vec<u32> = groups.lines().filter_map(|line| member_of(&name, line)).collect();
    member.retain(|other| *other != gid);
    member.insert(0, gid);
    Ok(Account { name, uid, gid, groups: member })
}

fn find_group(group: &str, groups: &str) -> Result<u32, String> {
    let number: Option<u32> = group.parse().ok();
    let fields = |line: &str| -> Option<(String, u32)> {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
    };
    let mut all = groups.lines().filter_map(fields);
    let found = all.find(|(name, gid)| name == group || number == Some(*gid));
    let gid = found.map(|(_, gid)| gid).or(number);
    gid.ok_or_else(|| format!("group = {group:?}: there is no such group in /etc/group"))
}

/// The id of the group in this line of /etc/group, if the user is a member.
fn member_of(user: &str, line: &str) -> Option<u32> {
    let mut fields = line.split(':');
    let gid = fields.nth(2)?.parse().ok()?;
    fields.next()?.split(',').any(|member| member == user).then_some(gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\n# none\n\nwww-data:x:33:33::/:/bin/sh\n\
                         news:x:9:9::/:/bin/sh\n";
    const GROUPS: &str = "root:x:0:\nwww-data:x:33:\nnews:x:9:\nssl-cert:x:101:news,www-data\n\
                          adm:x:4:syslog\nextra:x:200:www-data\n";

    fn found(user: &str, group: Option<&str>) -> Result<Account, String> {
        find(user, group, USERS, GROUPS)
    }

    #[test]
    fn a_user_has_the_primary_and_supplementary_groups() {
        let name = "www-data".to_owned();
        let right = Account { name, uid: 33, gid: 33, groups: vec![33, 101, 200] };
        assert_eq!(found("www-data", None), Ok(right.clone()));
        assert_eq!(found("33", None), Ok(right.clone()));
        let right = Account { gid: 9, groups: vec![9, 101, 200], ..right };
        assert_eq!(found("www-data", Some("news")), Ok(right.clone()));
        assert_eq!(found("www-data", Some("9")), Ok(right));
    }

    #[test]
    fn numbers_need_no_names() {
        let right = Account { name: "4711".into(), uid: 4711, gid: 4712, groups: vec![4712] };
        assert_eq!(found("4711", Some("4712")), Ok(right));
        assert!(found("4711", None).is_err_and(|error| error.contains("give a group")));
    }

    #[test]
    fn missing_users_and_root_are_refused() {
        assert!(found("nobody", None).is_err_and(|error| error.contains("no such user")));
        assert!(found("", None).is_err());
        assert!(found("news", Some("nogroup")).is_err_and(|error| error.contains("no such group")));
        for root in ["root", "0"] {
            assert!(found(root, None).is_err_and(|error| error.contains("that is root")));
        }
    }
}
