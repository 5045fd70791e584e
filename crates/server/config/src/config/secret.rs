//! Hides the secrets of a configuration in logs and on the screen.
//!
//! A value is a secret because of its key, or else because of its form. For secrets in files, only
//! the file's name is shown. In doubt a value is hidden.

/// The replacement for a secret.
const HIDDEN: &str = "(not shown)";
/// Words in the names of keys whose values are secrets.
const WORDS: [&str; 7] = ["pass", "secret", "token", "_pw", "key", "auth", "credential"];

/// Returns a value as it may be shown. Environment variables of scripts and values of secret-like
/// keys are hidden. For a database's address, the account is hidden.
pub fn hidden(key: &str, value: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_file = last.ends_with("_file") || key.starts_with("tls");
    let of_scripts = key.contains("php.env") || key.contains("php.ini");
    if key.contains("php.env") || (of_scripts && WORDS.iter().any(|word| last.contains(word))) {
        return HIDDEN.into();
    }
    if is_file {
        return value.into();
    }
    match account(value) {
        Account::At(begin, end) => format!("{}{HIDDEN}{}", &value[..begin], &value[end..]),
        Account::Somewhere if last.ends_with("url") => HIDDEN.into(),
        Account::None | Account::Somewhere => value.into(),
    }
}

/// The position of the account in an address.
enum Account {
    /// The address has no account.
    None,
    /// The byte range of the account.
    At(usize, usize),
    /// The address is malformed, so the position is unknown.
    Somewhere,
}

fn account(value: &str) -> Account {
    let Some(begin) = value.find("://").map(|begin| begin + 3) else { return Account::Somewhere };
    let (rest, query) = value[begin..].split_once('?').unwrap_or((&value[begin..], ""));
    let host = rest.rsplit('@').next().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.chars().all(|digit| digit.is_ascii_digit() || "/\"'] ".contains(digit));
    let is_known = |pair: &str| {
        ["socket=", "host=", "ssl", "position="].iter().any(|name| pair.starts_with(name))
    };
    let is_plain = query.is_empty() || query.split('&').all(is_known);
    match rest.rfind('@').map(|end| begin + end) {
        Some(end) if is_plain => Account::At(begin, end),
        None if is_plain && (is_port || host.contains('/')) && !host.contains("//") => {
            Account::None
        }
        _ => Account::Somewhere,
    }
}

/// Returns a line of a file with this key as it may be shown. Stars replace hidden characters, so
/// the length is unchanged. An invalid address may contain its password anywhere.
pub fn blotted(key: &str, line: &str) -> String {
    let is_secret =
        key.contains("php.env") || key.ends_with("database.url") || key.ends_with("cluster.url");
    let is_listed = key.starts_with("database[") || key.contains(".database[");
    match line.find('=').map(|begin| begin + 1) {
        Some(begin) if is_secret || is_listed && key.ends_with(".url") => {
            let stars = "*".repeat(line[begin..].chars().count());
            format!("{}{stars}", &line[..begin])
        }
        _ => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_are_hidden() {
        for (key, value, shown) in [
            ("php.env.DB", "\"x\"", HIDDEN),
            ("site[1].php.env.DB", "\"x\"", HIDDEN),
            ("php.ini.mysqli.default_pw", "\"x\"", HIDDEN),
            ("php.ini.memory_limit", "\"1G\"", "\"1G\""),
            ("database[0].url", "\"mysql://me:it@host/name\"", "\"mysql://(not shown)@host/name\""),
            ("admin_token_file", "\"/etc/token\"", "\"/etc/token\""),
            ("tls[0].key", "\"/etc/key\"", "\"/etc/key\""),
            ("keys.drop", "[\"x\"]", "[\"x\"]"),
        ] {
            assert_eq!(hidden(key, value), shown, "{key}");
        }
    }
}
