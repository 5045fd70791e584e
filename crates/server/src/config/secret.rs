//! What of a configuration is not shown to whoever reads a log or a screen.
//!
//! By its key, and where that is no secret by its form: files of secrets are named, not read. In doubt it is
//! not shown.

/// In the place of a secret.
const HIDDEN: &str = "(not shown)";
/// What the name of a key has that holds a secret.
const WORDS: [&str; 7] = ["pass", "secret", "token", "_pw", "key", "auth", "credential"];

/// A value as it may be shown: environment of scripts, and what sounds like a secret, is not; of a
/// database's address the account is not.
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
    match (value.find("://"), value.rfind('@')) {
        (Some(begin), Some(end)) if end > begin => {
            format!("{}{HIDDEN}{}", &value[..begin + 3], &value[end..])
        }
        _ => value.into(),
    }
}

/// A line of a file in which this key stands, as it may be shown: as long as it is, with stars for what is not.
pub fn blotted(key: &str, line: &str) -> String {
    let account = line.find("://").zip(line.rfind('@')).map(|(begin, end)| (begin + 3, end));
    let value = line.find('=').map(|begin| (begin + 1, line.len()));
    match if key.contains("php.env") { value } else { account } {
        Some((begin, end)) if begin < end => {
            let stars = "*".repeat(line[begin..end].chars().count());
            format!("{}{stars}{}", &line[..begin], &line[end..])
        }
        _ => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_nothing_else() {
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
