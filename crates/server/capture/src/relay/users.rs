//! Names and numbers of users, as far as `/etc/passwd` has them.
//!
//! Users of other sources (LDAP) are unknown here: the caller has a rule for that. Not here: groups.

use std::fs::read_to_string;

/// The number of the user with this name.
pub fn number_of(name: &str) -> Option<u32> {
    let passwd = read_to_string("/etc/passwd").ok()?;
    lines(&passwd).find(|(known, _)| *known == name).map(|(_, number)| number)
}

/// The name of the user with this number.
pub fn name_of(number: u32) -> Option<String> {
    let passwd = read_to_string("/etc/passwd").ok()?;
    lines(&passwd).find(|(_, known)| *known == number).map(|(name, _)| name.to_owned())
}

fn lines(passwd: &str) -> impl Iterator<Item = (&str, u32)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((name, fields.nth(1)?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_found() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nwww-data:x:33:33::/var/www:\n";
        assert_eq!(lines(passwd).collect::<Vec<_>>(), [("root", 0), ("www-data", 33)]);
        assert_eq!((number_of("root"), name_of(0)), (Some(0), Some("root".to_owned())));
        assert_eq!(number_of("no such user"), None);
    }
}
